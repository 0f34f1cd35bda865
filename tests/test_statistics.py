"""Summaries: they add, subtract, scale, align by label, compare and refuse what does not fit."""

import math
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import suffice as sf
from suffice import double_double
from suffice.answers import CountTable, MomentSums, PatternTable, TermSums
from suffice.domain import Domain, Variable, sort_states
from suffice.statistics import Counts, Moments, Patterns, Summary, Sums, empty_summary

LETTERS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([0, 1])), max_size=12)
QUESTIONS = (Counts(("x", "y")), Counts(("y",)), Patterns(("y", "x")))


def summary_of(rows: list[tuple[str, int]]) -> Summary:
    """Counts and patterns of rows by hand, with the states that these rows show."""
    domain = Domain(
        Variable(name, "discrete", sort_states(row[k] for row in rows)) for k, name in enumerate(("x", "y"))
    )
    codes = np.array([[domain["x"].index(x), domain["y"].index(y)] for x, y in rows], dtype=np.int32).reshape(-1, 2)
    joint = np.zeros(domain.shape(("x", "y")))
    np.add.at(joint, tuple(codes.T), 1.0)
    answers: dict[Any, Any] = {
        QUESTIONS[0]: CountTable.of(joint),
        QUESTIONS[1]: CountTable.of(joint.sum(axis=0)),
        QUESTIONS[2]: PatternTable.of(codes[:, ::-1], np.ones(len(rows))),
    }
    return Summary(domain, answers, len(rows), float(len(rows)))


@given(LETTERS, LETTERS)
def test_summaries_add_by_label(left: list[tuple[str, int]], right: list[tuple[str, int]]) -> None:
    merged = summary_of(left) + summary_of(right)
    assert merged == summary_of(left + right) == summary_of(right) + summary_of(left)
    expected = Counter(left + right)
    for (x, y), count in expected.items():
        at = merged.domain["x"].index(x), merged.domain["y"].index(y)
        assert merged[QUESTIONS[0]].dense()[at] == count


@given(LETTERS, LETTERS)
def test_what_was_added_can_be_taken_out(left: list[tuple[str, int]], right: list[tuple[str, int]]) -> None:
    both = summary_of(left) + summary_of(right)
    back = both - summary_of(right)
    assert back == summary_of(left).align(both.domain)
    assert (back.rows, back.weight) == (len(left), float(len(left)))


@given(LETTERS)
def test_scaling_is_weighting(rows: list[tuple[str, int]]) -> None:
    assert 2.0 * summary_of(rows) == Summary(**{**vars(summary_of(rows + rows)), "rows": len(rows)})
    assert (summary_of(rows) * 0.0).weight == 0.0


def test_sums_start_from_nothing() -> None:
    parts = [summary_of([("a", 0)]), summary_of([("b", 1)]), summary_of([("a", 1)])]
    assert sum(parts) == parts[0] + parts[1] + parts[2]
    domain = parts[0].domain
    assert empty_summary(domain, QUESTIONS) + parts[0] == parts[0]


def test_different_questions_do_not_merge() -> None:
    one = summary_of([("a", 0)])
    fewer = Summary(one.domain, {QUESTIONS[0]: one[QUESTIONS[0]]}, 1, 1.0)
    with pytest.raises(sf.MergeError, match="answer different questions"):
        one + fewer
    with pytest.raises(sf.MergeError, match="not with int"):
        one + 3  # type: ignore[operator]
    with pytest.raises(sf.MergeError, match="does not answer"):
        fewer[QUESTIONS[1]]


def test_rows_never_in_are_refused() -> None:
    both = summary_of([("a", 0), ("b", 1)])
    with pytest.raises(sf.MergeError, match="never all in"):
        summary_of([("a", 0)]) - both
    with pytest.raises(sf.MergeError, match="never in"):
        both - summary_of([("a", 1)])


def test_float_weights_leave_no_residue() -> None:
    domain = Domain([Variable.discrete("x", ["a", "b"])])

    def weighted(*weights: float) -> Summary:
        return Summary(domain, {Counts(("x",)): CountTable.of(np.array(weights))}, 1, sum(weights))

    left = weighted(0.1, 0.0) + weighted(0.2, 0.7) - weighted(0.2, 0.7)
    assert left[Counts(("x",))].dense().tolist() == [0.10000000000000003, 0.0]
    assert left.weight == pytest.approx(0.1)


@pytest.mark.parametrize("factor", [-1.0, math.nan, math.inf])
def test_factors_that_make_no_sense(factor: float) -> None:
    with pytest.raises(sf.OptionError, match="finite factor of at least 0"):
        summary_of([("a", 0)]) * factor


def test_questions_are_checked() -> None:
    with pytest.raises(sf.OptionError, match="names a variable twice"):
        Counts(("x", "x"))
    with pytest.raises(sf.OptionError, match="known functions"):
        Sums.of(("x", "sinh"))


# -- count tables ----------------------------------------------------------------------------------------------------

WIDE = (50, 60, 70)  # 210,000 cells


@given(st.lists(st.tuples(*(st.integers(0, card - 1) for card in WIDE)), max_size=20), st.integers(0, 20))
def test_sparse_tables_follow_the_cells_in_use(cells: list[tuple[int, ...]], cut: int) -> None:
    def table(chosen: list[tuple[int, ...]]) -> CountTable:
        found = sorted(Counter(chosen).items())
        places = np.array([cell for cell, _ in found], dtype=np.int32).reshape(-1, 3)
        return CountTable.sparse(WIDE, places, np.array([n for _, n in found], dtype=float))

    whole = table(cells)
    assert whole.cells is not None
    assert len(whole.values) == len(set(cells))
    assert table(cells[:cut]) + table(cells[cut:]) == whole
    assert whole - table(cells[cut:]) == table(cells[:cut])
    assert CountTable.of(whole.dense()) == whole
    assert whole.total == len(cells)


def test_counts_of_no_variables_are_the_total_weight() -> None:
    summary = empty_summary(Domain(), [Counts(())])
    assert summary[Counts(())].dense() == 0.0
    assert CountTable.sparse((), np.empty((1, 0)), np.array([3.0])).dense() == 3.0
    assert (CountTable.of(np.array(2.0)) + CountTable.of(np.array(3.0))).total == 5.0


def test_storage_is_a_function_of_the_content() -> None:
    full = np.zeros(WIDE)
    full[:25] = 1.0  # half of the cells: dense
    assert CountTable.of(full).cells is None
    few = np.zeros(WIDE)
    few[0, 0, :9] = 1.0
    assert CountTable.of(few).cells is not None
    assert (CountTable.of(full) - CountTable.of(full - few)) == CountTable.of(few)
    assert CountTable.of(np.zeros((2, 3))).cells is None


def test_a_table_beyond_memory_says_how_large() -> None:
    shape = (1000,) * 7  # 1e21 cells, beyond 64 bits too
    table = CountTable.sparse(shape, np.array([[1, 2, 3, 4, 5, 6, 7]]), np.array([2.0]))
    assert (table + table).values.tolist() == [4.0]
    with pytest.raises(sf.SizeError, match="1,000,000,000,000,000,000,000 cells; only 1 are in use"):
        table.dense()


def test_alignment_of_sparse_tables_moves_cells() -> None:
    names = ("x", "y", "z")
    old = Domain(Variable(n, "discrete", tuple(range(1, card + 1))) for n, card in zip(names, WIDE, strict=True))
    new = Domain(Variable(n, "discrete", tuple(range(card + 1))) for n, card in zip(names, WIDE, strict=True))
    table = CountTable.sparse(WIDE, np.array([[0, 0, 0], [49, 1, 2]]), np.array([3.0, 4.0]))
    cells, values = table.aligned(names, old, new).items()
    assert cells.tolist() == [[1, 1, 1], [50, 2, 3]]
    assert values.tolist() == [3.0, 4.0]


# -- moments ---------------------------------------------------------------------------------------------------------


def moments(rows: list[list[float]]) -> MomentSums:
    """Raw sums of rows (n, d), by exact arithmetic."""
    d = len(rows[0])

    def pair(value: Fraction) -> tuple[float, float]:
        high = float(value)
        return high, float(value - Fraction(high))

    exact = [[Fraction(v) for v in row] for row in rows]
    total = np.array([pair(sum((r[i] for r in exact), Fraction())) for i in range(d)]).T
    cross = [[pair(sum((r[i] * r[j] for r in exact), Fraction())) for j in range(d)] for i in range(d)]
    return MomentSums(np.array([float(len(rows)), 0.0]), total, np.moveaxis(np.array(cross), -1, 0))


FINITE = st.integers(-(10**9), 10**9).map(lambda value: value / 1000)


@given(st.lists(st.lists(FINITE, min_size=2, max_size=2), min_size=2, max_size=10), st.integers(1, 9))
def test_moments_add_to_the_bit_and_subtract_almost(rows: list[list[float]], cut: int) -> None:
    cut = min(cut, len(rows) - 1)
    left, right, whole = moments(rows[:cut]), moments(rows[cut:]), moments(rows)
    assert left + right == whole
    back = (left + right) - right
    for name in MomentSums.pairs:  # an error of 2^-100 of the largest sum that was ever in
        size = np.abs(getattr(whole, name)[0]) + np.abs(getattr(right, name)[0])
        assert (
            np.abs(getattr(back, name)[0] - getattr(left, name)[0])
            <= 2.0**-52 * np.abs(getattr(left, name)[0]) + 2.0**-100 * size
        ).all()
    gone = whole - whole
    assert gone.weight == 0.0
    assert not gone.cross_pair.any()


def test_variance_survives_a_mean_a_billion_times_larger() -> None:
    rows = [[1e9 + value] for value in (4.0, 7.0, 13.0, 16.0)]
    found = moments(rows)
    assert found.covariance[0, 0] == 22.5
    assert found.mean[0] == 1e9 + 10
    assert moments([[0.1]] * 7).scatter[0, 0] == 0.0


def test_unlearning_far_rows_keeps_the_digits_of_the_rest() -> None:
    near, far = [[0.1], [0.2], [0.4]], [[1e8], [-3e8]]
    left = moments(near + far) - moments(far)
    assert left.scatter[0, 0] == pytest.approx(moments(near).scatter[0, 0], rel=1e-14)


def test_scatter_about_a_point() -> None:
    rows = [[1.0, 2.0], [3.0, 5.0], [4.0, -1.0]]
    away = np.array(rows) - [2.0, 2.0]
    np.testing.assert_allclose(moments(rows).scatter_about(np.array([2.0, 2.0])), away.T @ away, rtol=1e-14)
    np.testing.assert_allclose(moments(rows).select([1]).scatter, moments([[r[1]] for r in rows]).scatter)


def test_term_means() -> None:
    sums = TermSums(np.array([4.0, 0.0]), double_double.pair(np.array([2.0, 6.0])))
    assert sums.means.tolist() == [0.5, 1.5]


# -- patterns --------------------------------------------------------------------------------------------------------


def test_patterns_keep_gaps_and_align_by_label() -> None:
    old = Domain([Variable("x", "discrete", ("b", "c")), Variable("r", "real")])
    new = Domain([Variable("x", "discrete", ("a", "b", "c")), Variable("r", "real")])
    rows = np.array([[0.0, 1.5], [np.nan, 1.5], [1.0, np.nan]])
    moved = PatternTable.of(rows, np.array([1.0, 2.0, 3.0])).aligned(("x", "r"), old, new)
    np.testing.assert_array_equal(moved.rows, [[1.0, 1.5], [2.0, np.nan], [np.nan, 1.5]])
    assert moved.weights.tolist() == [1.0, 3.0, 2.0]


def test_patterns_of_codes() -> None:
    table = PatternTable.of(np.array([[1, -1], [0, 2], [1, -1]], dtype=np.int32), np.array([1.0, 1.0, 0.5]))
    assert table.rows.tolist() == [[0, 2], [1, -1]]
    assert table.weights.tolist() == [1.0, 1.5]
    assert (table - table).rows.shape == (0, 2)
    with pytest.raises(sf.MergeError, match="never in"):
        table - table * 2.0


def test_moments_of_statistics_names() -> None:
    assert Moments(["a", "b"]).variables == ("a", "b")  # type: ignore[arg-type]


# -- rows inside a summary -------------------------------------------------------------------------------------------

HOLDERS: dict[str, tuple[Any, Any, tuple[str, ...]]] = {
    "counts": (sf.BayesianNetwork([("a", "b")]), {"a": [0, 1, 1], "b": [1, 1, 0]}, ()),
    "gaps": (sf.BayesianNetwork([("a", "b")]), {"a": [0, None, 1], "b": [1, 1, 0]}, ("a", "b")),
    "hidden": (
        sf.BayesianNetwork([("h", "a"), ("h", "b")], hidden={"h": 2}),
        {"a": [0, 1, 1], "b": [1, 1, 0]},
        ("a", "b"),
    ),
    "regression": (
        sf.BayesianNetwork([("u", "n")], nodes={"n": sf.GLM(family=sf.Poisson())}),
        {"u": [0.5, 1.5, 2.5], "n": [0, 1, 4]},
        ("u", "n"),
    ),
    "moments": (sf.MultivariateNormal(), {"u": [0.5, 1.5, 3.5], "v": [0.5, 1.0, -1.0]}, ()),
    "one column of counts": (sf.Poisson(), [0, 1, 4], ()),
    "one column of reals": (sf.Patterns(("u",)), {"u": [0.5, 1.5, 2.5]}, ("u",)),
}


@pytest.mark.parametrize(("asked", "rows", "columns"), HOLDERS.values(), ids=HOLDERS)
def test_a_summary_says_whether_rows_can_be_read_from_it(asked: Any, rows: Any, columns: Any, tmp_path: Path) -> None:
    summary = sf.summarize(asked, rows)
    assert set(summary.row_columns) == set(columns)
    assert summary.holds_rows == bool(columns)
    assert ("holds_rows=True" in repr(summary)) == bool(columns)
    summary.write(tmp_path / "s.json")
    text = (tmp_path / "s.json").read_text(encoding="utf-8")
    said = f'"holds_rows": {str(bool(columns)).lower()}'
    assert said in text
    assert sf.read(tmp_path / "s.json") == summary
    # Files of older versions do not say; one that says the opposite is no summary of ours.
    (tmp_path / "old.json").write_text(text.replace(said + ",", ""), encoding="utf-8")
    assert sf.read(tmp_path / "old.json").holds_rows == bool(columns)
    (tmp_path / "lie.json").write_text(
        text.replace(said, f'"holds_rows": {str(not columns).lower()}'), encoding="utf-8"
    )
    with pytest.raises(sf.FileFormatError, match="holds_rows"):
        sf.read(tmp_path / "lie.json")


def test_a_function_that_is_registered_is_added_up() -> None:
    from suffice.statistics import FUNCTIONS, Sums, register_function

    with pytest.raises(sf.OptionError, match="known functions"):
        Sums.of(("x", "root"))
    try:
        register_function("root", np.sqrt, lambda x: x >= 0, "zero or more")
        register_function("root", np.sqrt, lambda x: x >= 0, "zero or more")
        question = Sums.of(("x", "root"))
        assert sf.summarize(question, {"x": [4.0, 9.0]})[question].means.tolist() == [2.5]
        with pytest.raises(sf.DataError, match="zero or more"):
            sf.summarize(question, {"x": [4.0, -9.0]})
        with pytest.raises(sf.OptionError, match="taken"):
            register_function("root", np.cbrt)
    finally:
        del FUNCTIONS["root"]


def test_a_summary_with_rare_cells_is_refused() -> None:
    frame = {"a": ["x"] * 9 + ["y"] * 4, "b": ["u"] * 10 + ["v"] * 3, "w": [5.0] * 13, "r": list(range(13))}
    network = sf.BayesianNetwork([("a", "b")])
    cells = {("x", "u"): 9, ("y", "u"): 1, ("y", "v"): 3}
    assert sf.summarize(network, frame, minimum_count=min(cells.values())) == sf.summarize(network, frame)
    with pytest.raises(sf.DataError, match=r"2 of the 3 cells in use of .* minimum_count=4") as caught:
        sf.summarize(network, frame, minimum_count=4)
    assert "'y'" not in str(caught.value)
    with pytest.raises(sf.DataError, match="1 of the 3 cells"):
        sf.summarize(network, frame, sample_weight="w", minimum_count=2)
    assert sf.summarize(sf.Moments(("r",)), frame, states={"r": "real"}, minimum_count=13).rows == 13
    with pytest.raises(sf.DataError, match="fewer rows than minimum_count=14"):
        sf.summarize(sf.Moments(("r",)), frame, states={"r": "real"}, minimum_count=14)


def test_a_summary_of_rows_says_so() -> None:
    frame = {"a": ["x", None, "y"] * 5, "b": ["u", "v", "v"] * 5}
    network = sf.BayesianNetwork([("a", "b")])
    with pytest.warns(sf.SufficeWarning, match="holds the distinct rows of 'a', 'b'"):
        assert sf.summarize(network, frame).holds_rows
    with pytest.raises(sf.DataError, match=r"holds rows of 'a', 'b'.*sf\.Rounds"):
        sf.summarize(network, frame, minimum_count=1)
