"""Markov networks with hidden variables in use: starts, data, files, limits, and what is refused."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from certificates import slope_of
from observed_rows import CLASSES, CYCLE, ITEMS, class_rows, cycle_rows
from suffice.kernels.choice import force

# -- starts and restarts ---------------------------------------------------------------------------------------------


def test_the_best_of_several_runs_is_kept() -> None:
    rows = class_rows(60, seed=2)
    options: Any = {"hidden": {"H": 2}, "acceleration": "lbfgs", "tolerance": 1e-6}
    mrf = sf.MarkovNetwork(CLASSES, n_init=4, **options).fit(rows)
    assert len(mrf.scores_) == 4
    assert mrf.report_.log_likelihood == pytest.approx(max(mrf.scores_), rel=1e-12)
    assert len(mrf.scores_) == 4
    assert not any("runs" in note for note in mrf.report_.warnings)
    again = sf.MarkovNetwork(CLASSES, n_init=4, **options).fit(rows)
    np.testing.assert_allclose(again.weights_, mrf.weights_, rtol=1e-6, atol=1e-6)
    other = sf.MarkovNetwork(CLASSES, n_init=1, random_state=9, **options).fit(rows)
    assert other.history_[0] != mrf.history_[0]


def test_a_symmetric_start_is_named() -> None:
    rows = class_rows(60)
    with pytest.warns(sf.SufficeWarning, match="symmetric in the states of 'H'"):
        mrf = sf.MarkovNetwork(CLASSES, hidden={"H": 2}, start=np.zeros(16)).fit(rows)
    single = [sf.MarkovNetwork([(item,) for item in ITEMS]).fit(rows).report_.log_likelihood]
    assert mrf.report_.log_likelihood == pytest.approx(single[0], abs=1e-9)
    best = sf.MarkovNetwork(CLASSES, hidden={"H": 2}).fit(rows)
    assert best.report_.log_likelihood > single[0] + 1.0


# -- data and files --------------------------------------------------------------------------------------------------


def test_rows_weights_tables_and_summaries_say_the_same() -> None:
    rows = class_rows(90)
    mrf = sf.MarkovNetwork(CLASSES, hidden={"H": 2}).fit(rows)
    seen = list(zip(*(rows[item] for item in ITEMS), strict=True))
    distinct = sorted(set(seen))
    weights = [seen.count(cell) for cell in distinct]
    columns = {item: [cell[k] for cell in distinct] for k, item in enumerate(ITEMS)}
    weighted = sf.MarkovNetwork(CLASSES, hidden={"H": 2}).fit(columns, sample_weight=weights)
    counts = np.array([seen.count(cell) for cell in itertools.product([0, 1], repeat=4)]).reshape(2, 2, 2, 2)
    table = sf.MarkovNetwork(CLASSES, hidden={"H": 2}).fit(counts, columns=ITEMS)
    first, second = ({item: values[part] for item, values in rows.items()} for part in (slice(40), slice(40, None)))
    sites = sf.summarize(mrf, first) + sf.summarize(mrf, second)
    merged = sf.MarkovNetwork(CLASSES, hidden={"H": 2}).fit(sites)
    joint = sf.MarkovNetwork(CLASSES, hidden={"H": 2}).fit(sf.summarize(sf.Counts(tuple(ITEMS)), rows))
    for other in (weighted, table, merged, joint):
        np.testing.assert_allclose(other.weights_, mrf.weights_, rtol=1e-9)


def test_rows_are_added_and_taken_out_again() -> None:
    whole, rows = cycle_rows(100, 5, 0.2)
    first, second = ({name: values[part] for name, values in rows.items()} for part in (slice(60), slice(60, None)))
    mrf = sf.MarkovNetwork(CYCLE).fit(first).partial_fit(second)
    np.testing.assert_allclose(mrf.weights_, sf.MarkovNetwork(CYCLE).fit(rows).weights_, rtol=1e-9, atol=1e-9)
    errors = mrf.standard_errors_
    mrf.unlearn(second)
    assert np.abs(mrf.standard_errors_ - errors).max() > 1e-3
    np.testing.assert_allclose(mrf.weights_, sf.MarkovNetwork(CYCLE).fit(first).weights_, rtol=1e-9, atol=1e-9)
    begun = {name: values[:60] for name, values in whole.items()}
    mixed = sf.MarkovNetwork(CYCLE).fit(begun).partial_fit(second)
    together = {name: [*begun[name], *second[name]] for name in begun}
    np.testing.assert_allclose(mixed.weights_, sf.MarkovNetwork(CYCLE).fit(together).weights_, rtol=1e-9, atol=1e-9)


def test_a_later_fit_of_whole_rows_is_an_ordinary_one() -> None:
    whole, rows = cycle_rows(100, 5, 0.2)
    mrf = sf.MarkovNetwork(CYCLE).fit(rows)
    assert mrf.report_.method.startswith("EM")
    mrf.fit(whole)
    assert mrf.report_.method.startswith("iterative proportional fitting")
    assert not hasattr(mrf, "scores_")
    assert mrf.report_.certificate.value_gap is not None


@pytest.mark.parametrize("name", ["model.json", "model.suffice"])
def test_files_keep_everything(tmp_path: Path, name: str) -> None:
    rows = class_rows(50)
    mrf = sf.MarkovNetwork(CLASSES, hidden={"H": 2}, n_init=2, tolerance=1e-4).fit(rows)
    mrf.write(tmp_path / name)
    again = sf.read(tmp_path / name)
    np.testing.assert_array_equal(again.weights_, mrf.weights_)
    assert (again.scores_, again.n_expectations_) == (mrf.scores_, mrf.n_expectations_)
    assert again.report_.history == mrf.report_.history
    assert again.score(rows) == mrf.score(rows)
    assert again.get_params()["hidden"] == {"H": 2}
    again.partial_fit(rows)
    assert again.report_.rows == 100


def test_sampling_and_given_weights_know_hidden_variables() -> None:
    states = {item: [0, 1] for item in ITEMS}
    given = sf.MarkovNetwork(CLASSES, states=states, hidden={"H": ["x", "y"]}).with_weights(np.arange(16) / 10)
    assert set(given.sample(3, random_state=0)) == {"H", *ITEMS}
    assert given.states("H") == ("x", "y")
    assert given.query("H", given={"a": 1}).values.sum() == pytest.approx(1.0)
    rbm = sf.MarkovNetwork.ising([("a", "H"), ("b", "H")], hidden={"H": 2})
    assert rbm.with_weights(np.zeros(5)).states("H") == (-1, 1)


# -- long fits -------------------------------------------------------------------------------------------------------


def test_a_run_can_be_stopped_and_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    rows, path = class_rows(50), tmp_path / "em.json"
    options: Any = {"hidden": {"H": 2}, "n_init": 2, "tolerance": 1e-5}
    seen: list[float] = []

    def watch(state: Any) -> bool:
        seen.append(state.objective)
        return len(seen) >= 12

    with force("numpy"):  # One path, so that digits can be compared.
        cut = sf.MarkovNetwork(CLASSES, callback=watch, checkpoint=path, **options).fit(rows)
        rest = sf.MarkovNetwork(CLASSES, checkpoint=path, **options).fit(rows)
        plain = sf.MarkovNetwork(CLASSES, **options).fit(rows)
    assert (cut.converged_, cut.stop_reason_) == (False, "callback")
    assert seen[-1] * 50 == pytest.approx(cut.report_.objective, rel=1e-12)
    np.testing.assert_array_equal(rest.weights_, plain.weights_)
    assert rest.history_ == plain.history_
    assert not list(tmp_path.iterdir())


def test_ctrl_c_in_the_middle_of_a_step_keeps_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    from suffice.models.markov.hidden import problem as em
    from suffice.models.markov.learning import improve

    calls = [0]

    def interrupted(problem: Any) -> Any:
        calls[0] += 1
        if calls[0] == 5:
            raise KeyboardInterrupt
        return improve(problem)

    monkeypatch.setattr(em, "improve", interrupted)
    mrf = sf.MarkovNetwork(CLASSES, hidden={"H": 2}).fit(class_rows(50))
    assert (mrf.converged_, mrf.stop_reason_, mrf.n_iter_) == (False, "interrupted", 3)
    assert mrf.report_.objective == pytest.approx(max(mrf.history_), rel=1e-12)


def test_limits_are_honest() -> None:
    with pytest.warns(sf.ConvergenceWarning, match="max_iter"):
        mrf = sf.MarkovNetwork(CLASSES, hidden={"H": 2}, max_iter=3).fit(class_rows(50))
    assert (mrf.converged_, mrf.n_iter_) == (False, 3)
    assert slope_of(mrf.report_.certificate) > 1e-7


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": {"H": 0}}, "at least 1"),
        ({"hidden": {"Q": 2}}, "'Q'.*no term names"),
        ({"hidden": ["H"]}, "expected a dict"),
        ({"hidden": {"H": "real"}}, "needs states"),
        ({"hidden": {"H": 2}, "states": {"H": ["x", "y", "z"]}}, "3 states in states= and 2"),
        ({"hidden": dict.fromkeys(["H", *ITEMS], 2)}, "All variables are hidden"),
        ({"hidden": {"H": 2}, "n_init": 0}, "n_init is 0"),
        ({"hidden": {"H": 2}, "m_steps": 0}, "m_steps is 0"),
        ({"missing": "drop"}, "missing is 'drop'"),
        ({"acceleration": "rocket"}, "acceleration is 'rocket'"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(sf.OptionError, match=message):
        sf.MarkovNetwork(CLASSES, **options)


def test_data_that_do_not_suffice() -> None:
    mrf = sf.MarkovNetwork(CLASSES, hidden={"H": 2})
    with pytest.raises(sf.DataError, match="EM needs the rows"):
        mrf.fit({("a",): [1.0, 2.0], ("b",): [1.0, 2.0], ("c",): [1.0, 2.0], ("d",): [1.0, 2.0]})
    with pytest.raises(sf.MergeError, match="distinct rows of 'a', 'b', 'c', 'd'"):
        mrf.fit(sf.summarize([sf.Counts(("a", "b")), sf.Counts(("c", "d"))], class_rows(20)))
    with pytest.raises(sf.EstimateError, match="total weight is 0"):
        mrf.fit(class_rows(5), sample_weight=[0.0] * 5)
    with pytest.raises(sf.OptionError, match="start has shape"):
        sf.MarkovNetwork(CLASSES, hidden={"H": 2}, start=[0.0]).fit(class_rows(20))
