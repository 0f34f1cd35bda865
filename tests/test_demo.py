"""The demo runs, and what it prints and writes is what the bundled data say."""

import csv
import gzip
from pathlib import Path

import pytest

import suffice as sf
from suffice.demo import infections, run


def test_the_demo_prints_receipts_and_writes_models(tmp_path: Path) -> None:
    said: list[str] = []
    run(tmp_path / "models", said.append)
    text = "\n".join(said)
    for part in ("from optimum", "P(infection | cough, 38.4 degrees)", "EM, exact expected", "posterior mean"):
        assert part in text
    names = {"ward", "smoker", "visits", "wait", "temperature", "infections"}
    assert {path.stem for path in (tmp_path / "models").glob("*.json")} == names
    assert sf.read(tmp_path / "models" / "infections.bif").states("xray") == ("clear", "shadow")


def test_the_network_of_the_demo_is_that_of_its_rows(tmp_path: Path) -> None:
    infections.run(tmp_path, lambda text: None)
    net = sf.read(tmp_path / "infections.json")
    with gzip.open(infections.DATA, "rt") as stream:
        rows = list(csv.DictReader(stream))
    coughs = [row["cough"] == "yes" for row in rows if (row["smoker"], row["infection"]) == ("yes", "viral")]
    found = net.table("cough").at(smoker="yes", infection="viral", cough="yes")
    assert found == pytest.approx((sum(coughs) + 1) / (len(coughs) + 2), rel=1e-12)
    warm = [float(row["temperature"]) for row in rows if row["infection"] == "viral"]
    mean = net.table("temperature").at(infection="viral", coefficient="(intercept)")
    assert mean == pytest.approx(sum(warm) / len(warm), rel=1e-12)
    # The X-ray has one parent, so gaps in it leave the shares of the rows that show it.
    shown = [row["xray"] for row in rows if row["infection"] == "bacterial" and row["xray"]]
    rays = sf.read(tmp_path / "infections.bif")
    share = (shown.count("shadow") + 1) / (len(shown) + 2)
    assert rays.table("xray").at(infection="bacterial", xray="shadow") == pytest.approx(share, abs=1e-5)
