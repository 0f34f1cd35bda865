"""Hidden Markov models of tables that stay where they are: the same fit from lists, frames, files and databases."""

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from suffice.sources.base import Source
from untyped import untyped


def steps(people: int = 50, seed: int = 0) -> pd.DataFrame:
    """Two states with symbols, numbers, counts and sizes; states that are known, and partly known ones."""
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(people):
        state = int(rng.integers(2))
        for time in range(int(rng.integers(1, 30))):
            state = state if rng.random() < 0.8 else 1 - state
            symbol = "abcd"[int(rng.integers(4)) if state else int(rng.integers(2))]
            numbers = rng.normal(3.0 * state), rng.normal(-1.0 * state), int(rng.poisson(1 + 4 * state))
            known = "xy"[state]
            partly = known if person % 3 else None
            rows.append((f"p{person:03d}", time, symbol, *numbers, 0.1 + rng.gamma(2.0 + state), known, partly))
    return pd.DataFrame(rows, columns=["person", "time", "symbol", "u", "v", "count", "size", "state", "partly"])


STEPS = steps()
MIXED = STEPS.sample(frac=1.0, random_state=1).reset_index(drop=True)
Make = Callable[..., sf.HiddenMarkovModel]


def model(states: Any, emission: Any, **options: Any) -> Make:
    return lambda **more: sf.HiddenMarkovModel(states, emission, **(options | {"max_iter": 15} | more))


CASES: dict[str, tuple[Make, Any, str | None]] = {
    "symbols": (model(2, sf.Categorical()), "symbol", None),
    "two starts of normals": (model(2, sf.Normal(), n_init=2), "u", None),
    "normals of columns": (model(2, sf.MultivariateNormal()), ["u", "v"], None),
    "columns": (
        model(2, {"u": sf.Normal(), "symbol": sf.Categorical(), "count": sf.Poisson()}),
        ["u", "symbol", "count"],
        None,
    ),
    "mixtures": (model(2, sf.Mixture(sf.Normal(), 2)), "u", None),
    "gamma": (model(2, sf.Gamma()), "size", None),
    "known states": (model(["x", "y"], [sf.Normal(), sf.Categorical()], prior=1.0), ["u", "symbol"], "state"),
    "known states, by number": (model(2, sf.Categorical()), "symbol", "state"),
    "partly known states": (model(["x", "y"], sf.Categorical()), "symbol", "partly"),
    "partly known states of normals": (model(["x", "y"], sf.Normal()), "u", "partly"),
}


def lists(columns: Any) -> list[Any]:
    groups = STEPS.groupby("person", sort=False)
    if isinstance(columns, str):
        return [group[columns].to_numpy() for _, group in groups]
    return [group[columns] for _, group in groups]


def parameters(fitted: sf.HiddenMarkovModel) -> dict[str, np.ndarray]:
    values = fitted.fitted_.parameters
    return {"initial": values.initial, "transitions": values.transitions, **values.emission}


def assert_same(left: sf.HiddenMarkovModel, right: sf.HiddenMarkovModel) -> None:
    assert left.states_ == right.states_
    assert left.n_iter_ == right.n_iter_
    assert left.report_.rows == right.report_.rows
    for name, values in parameters(right).items():
        np.testing.assert_allclose(parameters(left)[name], values, rtol=1e-10, atol=1e-12)
    assert left.report_.log_likelihood == pytest.approx(right.report_.log_likelihood, rel=1e-12)
    assert left.report_.certificate.exists == right.report_.certificate.exists
    np.testing.assert_allclose(
        left.standard_errors_["transitions"], right.standard_errors_["transitions"], rtol=1e-4, equal_nan=True
    )


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::suffice.SufficeWarning")
def test_tables_elsewhere_give_the_fit_of_lists(name: str, tmp_path: Path) -> None:
    duckdb, dask = pytest.importorskip("duckdb"), pytest.importorskip("dask.dataframe")
    make, columns, states = CASES[name]
    path, mixed = tmp_path / "steps.parquet", tmp_path / "mixed.csv"
    STEPS.to_parquet(path, row_group_size=64)
    MIXED.to_csv(mixed, index=False)
    form: dict[str, Any] = {"states": states, "group": "person", "columns": columns}
    paths = None if states is None else [[s if isinstance(s, str) else None for s in part] for part in lists(states)]
    if isinstance(columns, str):
        right = make().fit(lists(columns), paths)
        assert_same(make().fit(STEPS, **form), right)
    else:
        right = make().fit(STEPS, **form)
    whole, shards = make().fit(path, **form), make(memory_limit=6_000).fit(path, **form)
    for fitted in (whole, shards, make(memory_limit=6_000).fit(mixed, order="time", **form)):
        assert_same(fitted, right)
    assert_same(make().fit(duckdb.from_df(MIXED), order="time", **form), right)
    assert_same(make().fit(dask.from_pandas(MIXED, npartitions=3), order="time", **form), right)
    (note,) = [line for line in shards.report_.warnings if "stayed" in line]
    assert int(note.partition(" shards")[0].split()[-1]) > 3


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
def test_the_steps_of_a_file_are_never_laid_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "steps.parquet"
    STEPS.to_parquet(path, row_group_size=64)

    def refused(self: Source, domain: object) -> Any:
        raise AssertionError("the rows were read into memory")

    for kind in [Source, *Source.__subclasses__()]:
        monkeypatch.setattr(kind, "columns_in_parts", refused)
    sf.HiddenMarkovModel(2, sf.Normal(), max_iter=3).fit(path, group="person", columns="u")
    sf.MarkovChain().fit(path, group="person", columns="symbol")


def test_questions_and_shards_travel(tmp_path: Path) -> None:
    from suffice.fitting.contract import Inputs
    from suffice.models.hidden_markov.baum_welch import HiddenSequences
    from suffice.sources.held import HeldLocal
    from suffice.sources.sequences import SequenceForm

    path = tmp_path / "steps.parquet"
    STEPS.to_parquet(path)
    task = sf.HiddenMarkovModel(2, sf.Gamma(), max_iter=3)._task()
    data = task.read(Inputs(path, {"form": SequenceForm(group="person", columns="size")}), None, "fit")
    assert isinstance(data, HiddenSequences)
    held = data.chains.held
    assert isinstance(held, HeldLocal)
    start = task.start(data).begin(0, np.random.default_rng(0))
    there = data.chains.expect(start)
    moved = [pickle.loads(pickle.dumps(load())) for load in held._loaders if load is not None]
    work = pickle.loads(pickle.dumps(held.work))
    again = sum(work.evaluate(shard, start) for shard in moved)
    np.testing.assert_array_equal(again.transitions, there.transitions)


def test_an_unknown_state_and_a_value_outside_of_the_support_are_named(tmp_path: Path) -> None:
    path = tmp_path / "steps.parquet"
    STEPS.to_parquet(path)
    form: dict[str, Any] = {"group": "person", "columns": "symbol"}
    with pytest.raises(sf.UnknownStateError, match="'y'"):
        sf.HiddenMarkovModel(["x", "z"], sf.Categorical()).fit(path, "state", **form)
    with pytest.raises(sf.DataError, match="the table has 'person'"):
        sf.HiddenMarkovModel(["x", "y"], sf.Categorical()).fit(path, "no column", **form)
    with pytest.raises(sf.DataError, match=r"Column 'u': .* is outside of the support of Gamma"):
        sf.HiddenMarkovModel(2, sf.Gamma()).fit(path, group="person", columns="u")
    begins = STEPS.index[(STEPS["time"] == 0) & (STEPS["state"] == "y")]
    forward = sf.HiddenMarkovModel(["x", "y"], sf.Categorical(), topology="left-right")
    for order, name in ((None, f"of row {begins[0]}"), ("time", f"'{STEPS['person'][begins[0]]}'")):
        with pytest.raises(sf.EstimateError, match=rf"The sequence {name}, step 0 begins in state 'y', which has"):
            forward.fit(path, "state", order=order, **form)


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
def test_files_are_scored_and_compared_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "steps.parquet"
    STEPS.to_parquet(path, row_group_size=64)
    form: dict[str, Any] = {"group": "person", "columns": "symbol"}
    fitted = sf.HiddenMarkovModel(2, sf.Categorical(), max_iter=10, memory_limit=6_000).fit(lists("symbol"))
    score, errors = fitted.score(lists("symbol")), fitted.standard_errors_of(lists("symbol"))
    flat = fitted.identifiability(lists("symbol"))
    monkeypatch.setattr("suffice.sources.sequence_tables.read_steps", None)
    monkeypatch.setattr("suffice.sources.sequences.read_steps", None)
    assert fitted.score(path, **form) == pytest.approx(score, rel=1e-12)
    there = fitted.standard_errors_of(path, **form)
    np.testing.assert_allclose(there["transitions"], errors["transitions"], rtol=1e-6)
    assert fitted.identifiability(path, **form).rank == flat.rank
    STEPS.assign(symbol=STEPS["symbol"].where(STEPS.index != 9, "new")).to_parquet(path)
    with pytest.raises(sf.UnknownStateError, match="'new'"):
        fitted.score(path, **form)


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
def test_partitions_are_decoded_where_they_are() -> None:
    dask = pytest.importorskip("dask.dataframe")
    fitted = sf.HiddenMarkovModel(["low", "high"], sf.Normal(), max_iter=5).fit(lists("u"))
    right = STEPS.assign(
        state=np.concatenate(fitted.predict(lists("u"))),
        low=np.concatenate(fitted.predict_proba(lists("u")))[:, 0],
    ).set_index(["person", "time"])
    frame = dask.from_pandas(MIXED, npartitions=3)
    form: dict[str, Any] = {"group": "person", "order": "time", "columns": "u"}
    states = untyped(fitted.predict(frame, **form)).compute().set_index(["person", "time"]).sort_index()
    assert states["state_"].tolist() == right["state"].tolist()  # The frame has a column "state" of its own.
    shares = untyped(fitted.predict_proba(frame, **form)).compute().set_index(["person", "time"]).sort_index()
    assert list(shares.columns) == ["low", "high"]
    np.testing.assert_allclose(shares["low"], right["low"], rtol=1e-12)
    sizes = sf.HiddenMarkovModel(2, sf.Gamma(), max_iter=5).fit(lists("size"))
    answers = untyped(sizes.predict(frame, group="person", order="time", columns="size")).compute()
    expected = np.concatenate(sizes.predict(lists("size"))).tolist()
    assert answers.set_index(["person", "time"]).sort_index()["state_"].tolist() == expected


@pytest.mark.filterwarnings("ignore::suffice.SufficeWarning")
def test_files_join_and_leave_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    early, late = STEPS[STEPS["person"] < "p020"], STEPS[STEPS["person"] >= "p020"]
    late = late.assign(symbol=late["symbol"].where(late["symbol"] != "a", "new"))
    path, first = tmp_path / "late.parquet", tmp_path / "early.parquet"
    late.to_parquet(path, row_group_size=64)
    early.to_parquet(first, row_group_size=64)
    columns = {"u": sf.Normal(), "symbol": sf.Categorical(), "size": sf.Gamma()}
    form: dict[str, Any] = {"states": "state", "group": "person", "columns": list(columns)}

    def fitted(*parts: Any) -> sf.HiddenMarkovModel:
        """Each part joins those before."""
        model = sf.HiddenMarkovModel(["x", "y"], columns, memory_limit=6_000)
        for part in parts:
            model.partial_fit(part, **form)
        return model

    here = fitted(early, late)
    left = fitted(early, late).unlearn(early, **form)
    accuracy = here.accuracy(early, "state", group="person")
    matched = here.match_states(early, "partly", group="person", method="posterior")
    monkeypatch.setattr("suffice.sources.sequence_tables.read_steps", None)
    monkeypatch.setattr("suffice.sources.sequences.read_steps", None)
    there = fitted(first, path)
    assert_same(there, here)
    assert "new" in there.emissions_[0]["symbol"].states_
    assert_same(there.unlearn(first, **form), left)
    assert here.accuracy(first, "state", group="person") == pytest.approx(accuracy, rel=1e-12)
    assert here.match_states(first, "partly", group="person", method="posterior") == matched
    with pytest.raises(sf.OptionError, match="Only sequences whose states are all known"):
        here.partial_fit(path, **(form | {"states": "partly"}))
    with pytest.raises(sf.OptionError, match="Only sequences whose states are all known"):
        here.partial_fit(path, **(form | {"states": None}))
    pd.DataFrame({"person": ["p"], "u": [0.0], "symbol": ["a"], "size": [1.0], "state": ["z"]}).to_parquet(path)
    with pytest.raises(sf.UnknownStateError, match="'z'"):
        here.partial_fit(path, **form)


PEAK = """
import re, sys
import suffice as sf
model = sf.HiddenMarkovModel(2, sf.Normal(), memory_limit="4MB", max_iter=2, threads=1)
model.fit(sys.argv[1], group="group", columns="value")
print(model.report_.rows, re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read in /proc")
def test_memory_does_not_follow_the_steps(tmp_path: Path) -> None:
    peaks = []
    for rows in (300_000, 1_200_000):
        rng, path = np.random.default_rng(0), tmp_path / f"{rows}.parquet"
        table = pd.DataFrame({"group": np.arange(rows) // 100, "value": rng.normal(size=rows)})
        table.to_parquet(path, row_group_size=50_000)
        answer = subprocess.run([sys.executable, "-W", "ignore", "-c", PEAK, path], capture_output=True, check=True)
        learned, peak = map(int, answer.stdout.split())
        assert learned == rows
        peaks.append(peak)
    assert peaks[1] < 1.2 * peaks[0]
