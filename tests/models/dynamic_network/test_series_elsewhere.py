"""Series in files, DuckDB and Dask stay there, and give the fit of the same series in memory."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

RNG = np.random.default_rng(2)
STEPS: dict[str, Any] = {"tolerance": 1e-300, "max_iter": 3}


def table() -> Any:
    """Seven people, some days left out, some values missing."""
    rows = []
    for who in range(7):
        days = np.flatnonzero(RNG.random(14) < 0.85)
        state = 0
        for day in days:
            state = state if RNG.random() < 0.8 else 1 - state
            rows.append(
                {
                    "who": f"p{who:02d}",
                    "day": np.datetime64("2024-03-01") + int(day),
                    "number": int(day),
                    "mood": ["bad", "good"][int(RNG.random() < 0.2 + 0.6 * state)],
                    "noise": ["low", "high", "none"][RNG.integers(3)],
                    "pulse": float(RNG.normal(60 + 10 * state, 4)),
                    "dose": float(RNG.normal()),
                }
            )
    frame = pd.DataFrame(rows)
    frame["day"] = frame["day"].astype("datetime64[us]")
    return frame


WHOLE = table()
GAPS = WHOLE.copy()
GAPS.loc[::7, "mood"] = None
MIXED = GAPS.sample(frac=1.0, random_state=0).reset_index(drop=True)

#: Name: the model, the rows, how they hold series.
CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "complete": (
        lambda **more: sf.DynamicBayesianNetwork(
            [(("mood", -1), "mood"), ("noise", "mood"), ("mood", "pulse"), (("pulse", -1), "pulse")], prior=1.0, **more
        ),
        WHOLE,
        {"group": "who", "order": "day"},
    ),
    "hidden": (
        lambda **more: sf.DynamicBayesianNetwork(
            [(("h", -1), "h"), ("h", "mood"), ("h", "pulse")],
            hidden={"h": 2},
            start={"h": [[0.7, 0.3], [0.2, 0.8]], ("h", 0): [0.5, 0.5], "pulse": ([[58.0], [72.0]], [20.0, 20.0])},
            **STEPS,
            **more,
        ),
        GAPS,
        {"group": "who", "time": "day"},
    ),
    "missing": (
        lambda **more: sf.DynamicBayesianNetwork(
            [(("mood", -1), "mood"), ("noise", "mood"), (("noise", -1), "noise")], prior=0.5, **STEPS, **more
        ),
        GAPS,
        {"group": "who", "time": "number"},
    ),
    "linear": (
        lambda **more: sf.DynamicBayesianNetwork(
            [(("pulse", -1), "pulse"), ("dose", "pulse")], inputs="dose", carry="dose", **STEPS, **more
        ),
        WHOLE,
        {"group": "who", "time": "day"},
    ),
    "started at random": (
        lambda **more: sf.DynamicBayesianNetwork.hmm(2, ["mood", "pulse"], n_init=2, random_state=3, **STEPS, **more),
        GAPS,
        {"group": "who", "time": "number"},
    ),
}


def same(left: sf.DynamicBayesianNetwork, right: sf.DynamicBayesianNetwork) -> None:
    assert left.log_likelihood_ == pytest.approx(right.log_likelihood_, abs=1e-8, rel=1e-11)
    for name in right.tables_:
        assert left.table(name).values == pytest.approx(right.table(name).values, abs=1e-10, rel=1e-10)
    assert left.report_.rows == right.report_.rows
    assert left.report_.certificate.exists == right.report_.certificate.exists


@pytest.mark.parametrize("name", CASES)
def test_tables_elsewhere_give_the_fit_of_those_in_memory(name: str, tmp_path: Path) -> None:
    duckdb, dask = pytest.importorskip("duckdb"), pytest.importorskip("dask.dataframe")
    make, frame, form = CASES[name]
    path, mixed = tmp_path / "slices.parquet", tmp_path / "mixed.csv"
    frame.to_parquet(path, row_group_size=20)
    shuffled = frame.sample(frac=1.0, random_state=1).reset_index(drop=True)
    shuffled.to_csv(mixed, index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here = make().fit(frame, **form)
        spilled = make(memory_limit=2_500).fit(path, **form)
        fits = [spilled, make(memory_limit=2_500).fit(mixed, **form)]
        if name in ("complete", "hidden"):
            fits += [make().fit(path, **form), make().fit(duckdb.from_df(shuffled), **form)]
            fits += [make().fit(dask.from_pandas(shuffled, npartitions=3), **form)]
        for fitted in fits:
            same(fitted, here)
    (note,) = [line for line in spilled.report_.warnings if "stayed" in line]
    assert int(note.partition(" shards")[0].split()[-1]) > 1
    assert "scratch" in note


def test_errors_and_standard_errors_of_series_elsewhere(tmp_path: Path) -> None:
    frame = GAPS.rename(columns={"number": "t"})
    frame.to_parquet(tmp_path / "slices.parquet")

    def make() -> sf.DynamicBayesianNetwork:
        return sf.DynamicBayesianNetwork([(("mood", -1), "mood")], tolerance=1e-10)

    form: dict[str, Any] = {"group": "who", "time": "t"}
    here, there = make().fit(frame, **form), make().fit(tmp_path / "slices.parquet", **form)
    for name in here.tables_:
        left, right = there.standard_errors_[name].values, here.standard_errors_[name].values
        assert left == pytest.approx(right, rel=1e-5)
    with pytest.raises(sf.OptionError, match="neither join nor leave"):
        there.partial_fit(frame, **form)
    again = sf.DynamicBayesianNetwork.from_dict(there.to_dict())
    assert again.log_likelihood_ == there.log_likelihood_
    with pytest.raises(sf.MissingValueError, match="'mood' has no value in"):
        make().set_params(missing="raise").fit(tmp_path / "slices.parquet", **form)
    with pytest.raises(sf.OptionError, match="step= has no effect"):
        make().fit(tmp_path / "slices.parquet", group="who", time="t", step="1 day")
    with pytest.raises(sf.OptionError, match="step='1 day'"):
        sf.summarize(make(), tmp_path / "slices.parquet", group="who", time="day")
    two = make().fit(tmp_path / "slices.parquet", group="who", time="day", step="1 day")
    same(two, here)
