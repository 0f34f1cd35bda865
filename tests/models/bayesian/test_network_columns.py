"""What a network reads its columns as: few whole numbers that are floats, kinds once learned, names that are none."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import suffice as sf
from suffice.errors import KindWarning, MissingColumnError, OptionError, UnknownStateError

LETTERS = ["x", "y", "x", "y", "x"]
WHOLE = {"a": [0, 1, None, 1, 3], "b": LETTERS}
EDGES = {"a": [], "b": ["a"]}


def forms(folder: Path) -> dict[str, Any]:
    """The same rows in the forms that widen whole numbers with gaps to floats."""
    frame = pd.DataFrame(WHOLE)
    assert frame["a"].dtype == np.float64
    frame.to_parquet(folder / "rows.parquet")
    frame.to_csv(folder / "rows.csv", index=False)
    return {
        "pandas": frame,
        "numpy": {"a": np.array([0, 1, np.nan, 1, 3]), "b": LETTERS},
        "float32": {"a": np.array([0, 1, np.nan, 1, 3], dtype=np.float32), "b": LETTERS},
        "polars": pl.from_pandas(frame),
        "arrow": pa.Table.from_pandas(frame),
        "parquet": folder / "rows.parquet",
        "csv": folder / "rows.csv",
        "lazy": pl.from_pandas(frame).lazy(),
        "list of floats": {"a": [0.0, 1.0, None, 1.0, 3.0], "b": LETTERS},
    }


FORMS = ("pandas", "numpy", "float32", "polars", "arrow", "parquet", "csv", "lazy", "list of floats")


@pytest.mark.parametrize("form", FORMS)
def test_whole_numbers_that_a_gap_made_floats_are_states(form: str, tmp_path: Path) -> None:
    expected = sf.BayesianNetwork(EDGES).fit(WHOLE)
    with pytest.warns(KindWarning, match="'a' holds floats"):
        net = sf.BayesianNetwork(EDGES).fit(forms(tmp_path)[form])
    assert net.states("a") == (0, 1, 3)
    assert all(type(state) is int for state in net.states("a"))
    np.testing.assert_array_equal(net.table("b").values, expected.table("b").values)
    assert net.report_.log_likelihood == expected.report_.log_likelihood
    (note,) = (note for note in net.report_.warnings if "whole numbers" in note)
    assert note.startswith("'a' holds floats of which at most 20 are different, all of them whole numbers: read as")
    assert not any("whole numbers" in note for note in expected.report_.warnings)


def test_rows_of_dicts_with_gaps_have_the_states_of_complete_rows() -> None:
    for values in ([0, 1, 1, 0], [True, False, True, True]):
        whole = sf.BayesianNetwork({"a": []}).fit([{"a": value} for value in values])
        gappy = sf.BayesianNetwork({"a": []}, tolerance=1e-13).fit([{"a": value} for value in (*values, None)])
        assert gappy.states("a") == whole.states("a")
        assert [type(state) for state in gappy.states("a")] == [type(state) for state in whole.states("a")]
        np.testing.assert_allclose(gappy.table("a").values, whole.table("a").values, atol=1e-12)


@pytest.mark.parametrize(
    "values",
    [[0.5, 1.0, 1.0], [0.5, 1.0, np.nan], [1e300, 1.0, np.nan]],
    ids=["no gap", "a fraction", "beyond whole numbers"],
)
def test_other_floats_stay_real(values: list[float]) -> None:
    net = sf.BayesianNetwork({"a": []}).fit({"a": np.minimum(np.array(values), 1e17)})
    assert net.node("a").kind == "linear-gaussian"


@pytest.mark.parametrize("said", [{"states": {"a": "real"}}, {"nodes": {"a": "linear-gaussian"}}])
def test_what_is_declared_wins(said: dict[str, Any]) -> None:
    net = sf.BayesianNetwork({"a": []}, **said).fit({"a": np.array([0, 1, np.nan, 1, 3])})
    assert net.node("a").kind == "linear-gaussian"
    assert net.node("a").weights_ == pytest.approx([1.25], abs=1e-5)
    assert net.report_.warnings == ()


def test_a_late_value_decides_in_batches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("suffice.sources.stream.BATCH_ROWS", 4)
    for late, kind in ((1.0, "table"), (0.5, "linear-gaussian")):
        pq.write_table(pa.table({"a": pa.array([0.0, 1.0, None, 1.0] * 3 + [late])}), tmp_path / "late.parquet")
        expected = pytest.warns(KindWarning) if kind == "table" else nullcontext()
        with expected:
            net = sf.BayesianNetwork({"a": []}, tolerance=1e-13).fit(tmp_path / "late.parquet")
        assert net.node("a").kind == kind
        if kind == "table":
            assert net.states("a") == (0, 1)
            np.testing.assert_allclose(net.table("a").values, [3 / 10, 7 / 10], atol=1e-9)


def test_laws_of_numbers_are_not_concerned() -> None:
    with pytest.raises(sf.errors.MissingValueError):
        sf.Normal().fit(np.array([1.0, 2.0, np.nan]))
    summary = sf.summarize(sf.Normal(), np.array([1.0, 2.0, 4.0]))
    assert sf.Normal().fit(summary).mean() == pytest.approx(7 / 3)


# --------------------------------------------------------------------------------------------------------------------
# Kinds once learned
# --------------------------------------------------------------------------------------------------------------------


def test_a_real_node_reads_whole_numbers_as_numbers() -> None:
    values = np.array([0.5, 1.25, 2.0, 3.5])
    whole = np.array([1, 2, 4])
    net = sf.BayesianNetwork({"a": []}).fit({"a": values})
    assert net.score({"a": whole}) == pytest.approx(net.score_samples({"a": whole}).mean(), rel=1e-13)
    together = sf.BayesianNetwork({"a": []}).fit({"a": np.concatenate([values, whole])})
    net.partial_fit({"a": whole})
    np.testing.assert_allclose(net.node("a").weights_, together.node("a").weights_, rtol=1e-13)
    net.unlearn({"a": whole})
    np.testing.assert_allclose(net.node("a").weights_, [values.mean()], rtol=1e-13)


def test_floats_find_the_whole_numbers_of_a_discrete_node() -> None:
    net = sf.BayesianNetwork({"a": []}).fit({"a": [0, 1, 1, 1]})
    floats = {"a": np.array([0.0, 1.0])}
    assert net.score(floats) == pytest.approx((np.log(0.25) + np.log(0.75)) / 2)
    net.partial_fit(floats)
    assert net.states("a") == (0, 1)
    assert type(net.states("a")[0]) is int
    np.testing.assert_allclose(net.table("a").values, [2 / 6, 4 / 6])
    net.unlearn(floats)
    np.testing.assert_allclose(net.table("a").values, [0.25, 0.75])


def test_rows_that_join_may_bring_new_states_and_rows_that_are_scored_may_not() -> None:
    net = sf.BayesianNetwork({"a": []}).fit({"a": [0, 1, 1]})
    with pytest.raises(
        UnknownStateError, match=r"Column 'a' holds 7 \(int\) \(row 1\), which is not one of its 2 states"
    ):
        net.score({"a": [0, 7]})
    net.partial_fit({"a": np.array([7.0])})
    assert net.states("a") == (0, 1, 7)
    net.unlearn({"a": [7]})
    np.testing.assert_allclose(net.table("a").at(a=1), 2 / 3)


def test_truth_values_are_no_numbers_after_learning_either() -> None:
    net = sf.BayesianNetwork({"a": []}).fit({"a": [0, 1, 1]})
    with pytest.raises(UnknownStateError, match="True"):
        net.score({"a": [True, True]})


@pytest.fixture(scope="module")
def chain() -> Any:
    rng = np.random.default_rng(3)
    a = rng.integers(0, 2, 200)
    b = np.where(rng.random(200) < 0.8, a, 1 - a)
    c = np.where(rng.random(200) < 0.7, b, 1 - b)
    return sf.BayesianNetwork([("a", "b"), ("b", "c")]).fit({"a": a, "b": b, "c": c})


def test_score_is_the_mean_of_the_log_likelihoods_with_gaps_and_without_columns(chain: Any) -> None:
    rows = {"a": [0, 1, None, 1], "b": [None, 1, 0, 1], "c": [1, None, 0, 0]}
    weights = np.array([1.0, 2.0, 0.5, 3.0])
    joint = chain.to_joint().values
    expected = [np.log(joint[0, :, 1].sum()), np.log(joint[1, 1].sum()), np.log(joint[:, 0, 0].sum())]
    expected.append(np.log(joint[1, 1, 0]))
    np.testing.assert_allclose(chain.score_samples(rows), expected, rtol=1e-12)
    assert chain.score(rows, sample_weight=weights) == pytest.approx(np.average(expected, weights=weights), rel=1e-12)
    some = {"c": [0, 1, 1]}
    marginal = np.log(joint.sum(axis=(0, 1)))
    np.testing.assert_allclose(chain.score_samples(some), marginal[[0, 1, 1]], rtol=1e-12)
    assert chain.score(some) == pytest.approx(marginal[[0, 1, 1]].mean(), rel=1e-12)


def test_score_and_log_likelihood_agree_where_a_node_is_hidden() -> None:
    rows = {"h": [5, 6, 5, 6, 5, 6], "x": [0, 0, 1, 1, 0, 1], "y": [0, 0, 1, 1, 1, 0]}
    net = sf.BayesianNetwork({"x": ["h"], "y": ["h"]}, hidden={"h": 2}, max_iter=20).fit(rows)
    assert "'h' is hidden: the column of that name is not read" in net.report_.warnings
    without = sf.BayesianNetwork({"x": ["h"], "y": ["h"]}, hidden={"h": 2}, max_iter=20).fit({k: rows[k] for k in "xy"})
    assert net.report_.log_likelihood == without.report_.log_likelihood
    assert not any("not read" in note for note in without.report_.warnings)
    assert net.score(rows) == pytest.approx(net.score_samples(rows).mean(), rel=1e-13)
    assert net.score(rows) == pytest.approx(net.report_.log_likelihood / 6, rel=1e-13)


# --------------------------------------------------------------------------------------------------------------------
# Names that are none
# --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ask", ["predict", "predict_proba", "query_rows", "score_samples", "score"])
def test_data_without_a_node_are_an_error(chain: Any, ask: str) -> None:
    rows = {"A": [0, 1], "B ": [1, 1]}
    calls = {
        "predict": lambda: chain.predict(rows, "c"),
        "predict_proba": lambda: chain.predict_proba(rows, "c"),
        "query_rows": lambda: chain.query_rows("c", rows),
        "score_samples": lambda: chain.score_samples(rows),
        "score": lambda: chain.score(rows),
    }
    with pytest.raises(MissingColumnError, match="columns are 'A', 'B ', and the nodes are 'a', 'b', 'c'"):
        calls[ask]()


def test_the_column_of_the_target_alone_is_no_evidence_but_a_node(chain: Any) -> None:
    np.testing.assert_allclose(chain.predict_proba({"c": [0, 1]}, "c"), [chain.query("c").values] * 2, rtol=1e-12)


# --------------------------------------------------------------------------------------------------------------------
# Options
# --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, -1, 1.5])
def test_the_number_of_runs_is_checked_whether_or_not_they_are_needed(value: Any) -> None:
    with pytest.raises(OptionError, match=r"n_init is .*; expected a whole number of at least 1"):
        sf.BayesianNetwork({"a": []}, n_init=value).fit({"a": [0, 1]})


def test_a_start_that_is_not_needed_is_noted() -> None:
    net = sf.BayesianNetwork({"a": []}, start={"a": [0.5, 0.5]}).fit({"a": [0, 1, 1]})
    assert any("start= was not used" in note for note in net.report_.warnings)
    net = sf.BayesianNetwork({"a": []}, start={"a": [0.5, 0.5]}).fit({"a": [0, 1, 1, None]})
    assert not any("start= was not used" in note for note in net.report_.warnings)


def test_counts_need_a_node_for_counts() -> None:
    with pytest.raises(OptionError, match=r"states\['k'\] is 'count', and its node is not one for counts; expected a"):
        sf.BayesianNetwork({"k": []}, states={"k": "count"})
