"""A fit that fails midway lets go of the shards it held, though the error it raises is kept with all its frames."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from suffice.models.em import held_rows


class StoppedError(Exception):
    pass


def _stop(state: Any) -> bool:
    raise StoppedError


def table(rows: int = 240) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    a = rng.integers(0, 2, rows)
    frame = pd.DataFrame({"a": a, "b": a ^ (rng.random(rows) < 0.3), "n": np.arange(rows)}).astype({"b": int})
    frame["gap"] = frame["b"].mask(rng.random(rows) < 0.2).astype("Int64")
    frame["x"] = a + rng.normal(size=rows)
    frame["group"] = np.arange(rows) // 12
    frame["label"] = np.where(frame["x"] > 0.5, "high", "low")
    return frame.assign(**{f"v{number}": rng.integers(0, 2, rows) for number in range(13)})


HELD: dict[str, Any] = {"memory_limit": 1, "callback": _stop}
PAIRS = [(f"v{number}", f"v{number + 1}") for number in range(12)]


def _sequences() -> sf.HiddenMarkovModel:
    return sf.HiddenMarkovModel(2, "categorical", **HELD)


FITS: dict[str, Callable[[str], Any]] = {
    "network": lambda path: sf.BayesianNetwork([("a", "gap")], **HELD).fit(path),
    "Markov network": lambda path: sf.MarkovNetwork([("a", "gap")], callback=_stop).fit(path),
    "pseudo-likelihood": lambda path: sf.MarkovNetwork(PAIRS, solver="pseudolikelihood", callback=_stop).fit(path),
    "regression": lambda path: sf.GLM("poisson", **HELD).fit(path, y="a", columns=["x", "b"]),
    "hidden Markov model": lambda path: sf.HiddenMarkovModel(2, "categorical", **HELD).fit(
        path, group="group", columns="b"
    ),
    "chain": lambda path: sf.ChainCRF(**HELD).fit(path, y="label", group="group", columns=["a", "b"]),
}


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of scratch folders, where everything that is held goes."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr("suffice.sources.base.free_memory", lambda: 0)
    monkeypatch.setattr("suffice.sources.stream.BATCH_ROWS", 60)
    monkeypatch.setattr(held_rows, "FEW_NUMBERS", 0)
    monkeypatch.setattr("suffice.models.glm.stream.GATHERED", 0)
    return folder


@pytest.mark.parametrize("name", FITS)
def test_shards_are_let_go_where_a_fit_fails(
    name: str, scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table().to_parquet(tmp_path / "rows.parquet", row_group_size=60)
    folders: list[Path] = []
    make = tempfile.mkdtemp

    def noted(**more: Any) -> str:
        folders.append(Path(make(**more)))
        return str(folders[-1])

    monkeypatch.setattr(tempfile, "mkdtemp", noted)
    with pytest.raises(StoppedError) as kept:
        FITS[name](str(tmp_path / "rows.parquet"))
    assert kept.tb is not None
    assert folders
    assert not any(folder.exists() for folder in folders)
