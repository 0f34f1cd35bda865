"""The demo runs, and what it prints and writes is what the bundled data say."""

import csv
import gzip
import json
import shlex
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import suffice as sf
from suffice.cli import main
from suffice.demo import alarm, run, sequences, try_next
from suffice.demo.exhibits import HERE, bundled
from suffice.demo.infections import DATA

NAMES = ("alarm", "infections", "circulation", "notes", "casino", "visits")


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of one run of the demo, and all that it said."""
    folder = tmp_path_factory.mktemp("demo") / "suffice-demo"
    said: list[str] = []
    exhibits = run(folder, said.append)
    assert tuple(exhibit.name for exhibit in exhibits) == NAMES
    return folder, "\n".join(said)


def rows_of(name: str) -> list[dict[str, str]]:
    with gzip.open(bundled(name), "rt", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


class Links(HTMLParser):
    """The links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in ("href", "src")]


def test_every_model_has_a_file_a_report_and_a_receipt(shown: tuple[Path, str]) -> None:
    folder, text = shown
    for name in NAMES:
        model = sf.read(folder / f"{name}.json")
        assert (folder / f"{name}.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
        assert f"log-likelihood     {model.report_.log_likelihood:,.6f}" in text
        assert model.report_.converged
    assert text.count("moment gap") == len(NAMES)


def test_the_page_leads_to_all_of_them_and_to_nothing_else(shown: tuple[Path, str]) -> None:
    folder, _ = shown
    links = Links()
    links.feed((folder / "index.html").read_text(encoding="utf-8"))
    assert set(links.found) == {f"{name}.{ending}" for name in NAMES for ending in ("html", "json")}


def test_what_to_try_next_works(
    shown: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, text = shown
    for command in try_next(folder):
        assert f"  {command}\n" in f"{text}\n"
        monkeypatch.setattr(sys, "argv", shlex.split(command))
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert (ended.value.code, said.err) == (0, "")
        assert said.out


def test_the_tables_of_alarm_are_counts_and_a_prior(shown: tuple[Path, str]) -> None:
    net = sf.read(shown[0] / "alarm.json")
    assert (len(net.nodes), len(net.edges)) == (37, 46)
    rows = rows_of("alarm.csv.gz")
    pairs = Counter((row["LVFAILURE"], row["HISTORY"]) for row in rows)
    failing = {state: pairs["TRUE", state] for state in ("TRUE", "FALSE")}
    # BDeu of 10 rows: 10 / 4 of a row for each of 2 x 2 cells.
    share = (failing["TRUE"] + 10 / 4) / (sum(failing.values()) + 10 / 2)
    assert net.table("HISTORY").at(LVFAILURE="TRUE", HISTORY="TRUE") == pytest.approx(share, rel=1e-12)
    truth = sf.read(bundled("alarm.bif.gz"))
    found = net.query(alarm.ASKED, given=alarm.SEEN).at(HYPOVOLEMIA="TRUE")
    assert found == pytest.approx(truth.query(alarm.ASKED, given=alarm.SEEN).at(HYPOVOLEMIA="TRUE"), abs=0.05)


def test_the_network_with_gaps_is_that_of_its_rows(shown: tuple[Path, str]) -> None:
    net = sf.read(shown[0] / "infections.json")
    rows = rows_of(DATA.name)
    coughs = [row["cough"] == "yes" for row in rows if (row["smoker"], row["infection"]) == ("yes", "viral")]
    found = net.table("cough").at(smoker="yes", infection="viral", cough="yes")
    assert found == pytest.approx((sum(coughs) + 1) / (len(coughs) + 2), rel=1e-12)
    warm = [float(row["temperature"]) for row in rows if row["infection"] == "viral"]
    mean = net.table("temperature").at(infection="viral", coefficient="(intercept)")
    assert mean == pytest.approx(sum(warm) / len(warm), rel=1e-12)
    # The X-ray has one parent, so gaps in it leave the shares of the rows that show it.
    xrays = [row["xray"] for row in rows if row["infection"] == "bacterial" and row["xray"]]
    share = (xrays.count("shadow") + 1) / (len(xrays) + 2)
    assert net.table("xray").at(infection="bacterial", xray="shadow") == pytest.approx(share, abs=1e-5)


def test_the_markov_network_has_the_margins_of_its_rows_by_both_methods() -> None:
    rows = rows_of("alarm.csv.gz")
    for solver in ("ipf", "lbfgs"):
        net = sf.MarkovNetwork(alarm.CIRCULATION, solver=solver).fit(bundled("alarm.csv.gz"))
        for pair in alarm.CIRCULATION:
            margin = net.marginal(pair)
            counts = Counter(tuple(row[name] for name in pair) for row in rows)
            for states, share in margin.items():
                seen = counts[tuple(map(str, states))]
                assert share == pytest.approx(seen / len(rows), abs=1e-8)


def test_the_casino_is_found_out(shown: tuple[Path, str]) -> None:
    hmm = sf.read(shown[0] / "casino.json")
    sixes = sorted(hmm.emission_probabilities_[:, 5])
    assert sixes[0] == pytest.approx(1 / 6, abs=0.03)
    assert sixes[1] == pytest.approx(0.5, abs=0.08)
    rows = rows_of("casino.csv.gz")
    games = [[int(row["roll"]) for row in rows if row["game"] == str(game)] for game in range(40)]
    assert hmm.report_.log_likelihood == pytest.approx(float(hmm.score_samples(games).sum()), rel=1e-9)


def test_the_notes_are_read_by_the_template_of_the_command(shown: tuple[Path, str]) -> None:
    crf = sf.read(shown[0] / "notes.json")
    X, y = sequences.tagged("notes-test.txt.gz")
    right = [a == b for found, truth in zip(crf.predict(X), y, strict=True) for a, b in zip(found, truth, strict=True)]
    assert f"{np.mean(right):.1%} of the words of 150 other notes" in shown[1]
    assert np.mean(right) > 0.95


def test_the_regression_solves_its_equations(shown: tuple[Path, str]) -> None:
    model, rows = sf.read(shown[0] / "visits.json"), rows_of("visits.csv.gz")
    X = np.array([[1.0, float(row["age"]), row["smoker"] == "yes", float(row["drugs"])] for row in rows])
    visits = np.array([float(row["visits"]) for row in rows])
    slope = X.T @ (visits - np.exp(X @ np.asarray(model.parameters_)))
    np.testing.assert_allclose(slope / np.abs(X.T @ visits), 0.0, atol=1e-9)


def test_the_bundled_alarm_is_near_the_published_one() -> None:
    shared = Path(__file__).resolve().parents[2] / "shared/data/bn/alarm.bif.gz"
    if not shared.is_file():
        pytest.skip("the published network is not here")
    ours, published = sf.read(bundled("alarm.bif.gz")), sf.read(shared)
    assert set(ours.edges) == set(published.edges)
    for node in ours.nodes:
        assert ours.states(node) == published.states(node)
    # The divergence of a row, estimated from rows of the published network.
    rows = published.sample(20_000, random_state=9)
    apart = published.score_samples(rows) - ours.score_samples(rows)
    assert 0.0 < apart.mean() < 0.01


def test_the_bundled_data_are_small() -> None:
    assert sum(path.stat().st_size for path in HERE.glob("*.gz")) < 200_000


def test_the_demo_in_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("suffice.demo.EXHIBITS", (sequences.hidden_markov,))
    monkeypatch.setattr(sys, "argv", ["suffice", "demo", "--folder", str(tmp_path / "here"), "--json"])
    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out)["casino"]["rows"] == 4000
    assert (tmp_path / "here" / "index.html").exists()
