"""Tables of counts with sums among their cells, and flat tables whose counts nobody named: said, never guessed."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from suffice.errors import DataError

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame({name: RNG.choice(list(states), 60) for name, states in {"A": "xy", "B": "uvw", "C": "pq"}.items()})
FLAT = pd.crosstab(ROWS.A, ROWS.B).stack().rename("Freq").reset_index()


@pytest.mark.parametrize(
    ("table", "state", "variable"),
    [
        (pd.crosstab(ROWS.A, ROWS.B, margins=True), "All", "A"),
        (pd.crosstab(ROWS.A, ROWS.B, margins=True).stack(), "All", "A"),
        (pd.crosstab(ROWS.A, ROWS.B, margins=True).drop(index="All"), "All", "B"),
        (pd.crosstab(ROWS.A, ROWS.B, margins=True).drop(columns="All"), "All", "A"),
        (pd.crosstab(ROWS.A, ROWS.B, margins=True, margins_name="Total", normalize=True), "Total", "A"),
        ({("A", "B"): pd.crosstab(ROWS.A, ROWS.B, margins=True)}, "All", "A"),
    ],
    ids=["both", "series", "columns", "rows", "shares", "margin"],
)
def test_sums_among_the_cells_are_refused(table: Any, state: str, variable: str) -> None:
    with pytest.raises(DataError, match=f"The state '{state}' of '{variable}' holds the sums.*margins=False"):
        sf.MarkovNetwork([("A", "B")]).fit(table)


def test_sums_over_nested_variables_are_refused() -> None:
    nested = pd.crosstab([ROWS.A, ROWS.C], ROWS.B, margins=True)
    with pytest.raises(DataError, match="The state 'All' of 'A' holds the sums"):
        sf.MarkovNetwork([("A", "B"), ("B", "C")]).fit(nested)


def test_without_the_sums_the_table_is_that_of_the_rows() -> None:
    table = pd.crosstab(ROWS.A, ROWS.B, margins=True).drop(index="All", columns="All")
    mrf = sf.MarkovNetwork([("A", "B")]).fit(table)
    shares = pd.crosstab(ROWS.A, ROWS.B).to_numpy() / 60
    np.testing.assert_allclose(mrf.marginal(("A", "B")).values, shares, rtol=1e-12)


def test_a_state_named_all_that_holds_no_sums_is_a_state() -> None:
    table = pd.crosstab(ROWS.A, ROWS.B)
    table.loc["All"] = table.sum().to_numpy() + np.array([0, 1, 0])
    mrf = sf.MarkovNetwork([("A", "B")]).fit(table)
    assert mrf.states("A") == ("All", "x", "y")
    assert mrf.report_.weight == 121


@pytest.mark.parametrize("model", [sf.BayesianNetwork, sf.MarkovNetwork])
@pytest.mark.parametrize("name", ["Freq", "count", "n", "Weights"])
def test_a_column_of_counts_that_nobody_named_is_said(model: Any, name: str) -> None:
    frame = FLAT.rename(columns={"Freq": name})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = model([("A", "B")]).fit(frame)
    assert [warning.category for warning in caught] == [sf.LeftOutWarning] * (name in ("Freq", "count"))
    assert fitted.report_.weight == 6
    wanted = f"the column '{name}' was not read: every row counted once"
    (note,) = [note for note in fitted.report_.warnings if note.startswith(wanted)]
    assert f"sample_weight='{name}'" in note
    named = model([("A", "B")]).fit(frame, sample_weight=name)
    assert named.report_.weight == 60
    assert not any("was not read" in note for note in named.report_.warnings)


def test_nothing_is_said_where_weights_are_given_or_the_column_is_read(tmp_path: Path) -> None:
    given = sf.BayesianNetwork([("A", "B")]).fit(FLAT, sample_weight=FLAT["Freq"].to_numpy())
    assert given.report_.warnings == ()
    read = sf.BayesianNetwork([("A", "Freq")]).fit(FLAT)
    assert not any("was not read" in note for note in read.report_.warnings)
    rows = sf.BayesianNetwork([("A", "B")]).fit(ROWS)
    assert rows.report_.warnings == ()
    path = tmp_path / "flat.csv"
    FLAT.to_csv(path, index=False)
    with pytest.warns(sf.LeftOutWarning, match="was not read"):
        (note,) = sf.BayesianNetwork([("A", "B")]).fit(path).report_.warnings
    assert note.startswith("the column 'Freq' was not read")


@pytest.mark.parametrize("used", [2_000, 60_000])
def test_margins_of_a_large_table_are_counted_whatever_cells_are_in_use(used: int) -> None:
    rng, names, shape = np.random.default_rng(used), list("abcde"), (10, 10, 10, 10, 11)
    counts = np.zeros(np.prod(shape))
    counts[rng.choice(counts.size, used, replace=False)] = rng.integers(1, 9, used)
    table = counts.reshape(shape)
    index = pd.MultiIndex.from_product([range(card) for card in shape], names=names)
    pairs = [("a", "b"), ("c", "b"), ("e", "a"), ("e", "c"), ("d",)]
    for data, options in ((pd.Series(counts, index=index), {}), (table, {"columns": names})):
        model = sf.MarkovNetwork(pairs).fit(data, **options)
        for scope in (("a", "b"), ("c", "b"), ("e", "a"), ("e", "c"), ("d",)):
            kept = [names.index(name) for name in scope]
            summed = table.sum(axis=tuple(axis for axis in range(5) if axis not in kept))
            expected = summed if kept == sorted(kept) else summed.T
            answer = model.statistics_[sf.Counts(scope)].dense()
            np.testing.assert_array_equal(answer, expected)
        assert model.statistics_.weight == counts.sum()


def test_cells_of_weight_0_say_nothing() -> None:
    index = pd.MultiIndex.from_tuples([("x", "u"), ("x", "v"), ("y", "u"), ("y", "v"), ("All", "u")], names=["A", "B"])
    model = sf.MarkovNetwork([("A", "B")]).fit(pd.Series([3, 1, 2, 4, 0], index=index))
    assert model.states("A") == ("All", "x", "y")
    np.testing.assert_array_equal(model.statistics_[sf.Counts(("A", "B"))].dense(), [[0, 0], [3, 1], [2, 4]])
