"""A table cut in two against sums over the table itself, and Newton's method on it against proportional fitting."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.fitting.control import Control, iterate
from suffice.kernels.split_table import LEAST, SplitTable
from suffice.solvers.table_newton import TableNewton

Scopes = tuple[tuple[int, ...], ...]

PAIRS = tuple(itertools.combinations(range(5), 2))
MODELS: dict[str, tuple[tuple[int, ...], Scopes]] = {
    "pairs": ((2, 3, 4, 2, 6), PAIRS),
    "orders differ": ((2, 3, 4, 2, 6), tuple(scope[::-1] for scope in PAIRS)),
    "triples": ((3, 2, 4, 3, 4), ((0, 1, 2), (3, 2, 1), (2, 3, 4), (4, 0), (0, 3), (1, 4))),
    "one inside another": ((5, 7, 8), ((0, 1), (1, 2), (2, 0), (1,))),
}


def sums(table: Any, scope: tuple[int, ...]) -> Any:
    """The margin of a table with one axis for each variable, axes in the order of the scope."""
    return np.einsum(table, range(table.ndim), list(scope))


def random_margins(sizes: tuple[int, ...], scopes: Scopes, seed: int, sharp: float = 0.5) -> tuple[Any, Any]:
    """A positive table of sum one, and its margins one after another."""
    table = np.exp(sharp * np.random.default_rng(seed).normal(size=sizes))
    table /= table.sum()
    return table, np.concatenate([sums(table, scope).ravel() for scope in scopes])


@pytest.mark.parametrize("name", MODELS)
def test_spreading_is_a_sum_of_tables_and_margins_are_its_transpose(name: str) -> None:
    sizes, scopes = MODELS[name]
    split = SplitTable(sizes, scopes)
    table, margins = random_margins(sizes, scopes, 1)
    every = list(range(len(sizes)))
    np.testing.assert_allclose(split.margins(split.matrix_of(table, every)), margins, rtol=1e-13)
    vector = np.random.default_rng(2).normal(size=len(margins))
    expected, begin = np.zeros(sizes), 0
    for scope in scopes:
        shape = [sizes[v] for v in scope]
        part = vector[begin : begin + int(np.prod(shape))].reshape(shape)
        begin += part.size
        order = np.argsort(scope)
        wide = [size if v in scope else 1 for v, size in enumerate(sizes)]
        expected += part.transpose(order).reshape(wide)
    np.testing.assert_allclose(split.table_of(split.spread(vector), every), expected, rtol=1e-13, atol=1e-13)
    log_z, found, cells = split.moments(vector)
    assert log_z == pytest.approx(np.log(np.exp(expected).sum()), rel=1e-13)
    law = np.exp(expected - log_z)
    np.testing.assert_allclose(split.table_of(cells, every), law, rtol=1e-12)
    np.testing.assert_allclose(found, np.concatenate([sums(law, scope).ravel() for scope in scopes]), rtol=1e-12)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("sharp", [0.3, 1.5])
def test_newton_finds_the_table_of_proportional_fitting(name: str, sharp: float) -> None:
    sizes, scopes = MODELS[name]
    table, margins = random_margins(sizes, scopes, 3, sharp)
    split = SplitTable(sizes, scopes)
    newton = TableNewton(split, margins)
    outcome = iterate(newton.step, newton.start, Control(tolerance=1e-13))
    assert outcome.converged
    assert outcome.state.iteration <= 12
    fitted = np.full(sizes, 1.0 / table.size)
    for _ in range(500):  # Sweeps over the table of all joint states, by the definition.
        for scope in scopes:
            ordered = tuple(sorted(scope))
            wide = [size if v in scope else 1 for v, size in enumerate(sizes)]
            fitted *= (sums(table, ordered) / sums(fitted, ordered)).reshape(wide)
    _, _, cells = split.moments(outcome.state.parameters)
    np.testing.assert_allclose(split.table_of(cells, list(range(len(sizes)))), fitted, rtol=1e-8)


def test_where_variables_are_independent_nothing_is_left_to_do() -> None:
    sizes, scopes = MODELS["triples"]
    rng = np.random.default_rng(5)
    table: Any = np.ones(())
    for size in sizes:
        shares = rng.random(size) + 0.1
        table = np.multiply.outer(table, shares / shares.sum())
    margins = np.concatenate([sums(table, scope).ravel() for scope in scopes])
    newton = TableNewton(SplitTable(sizes, scopes), margins)
    assert newton.start.gap < 1e-14


def test_steps_are_those_of_a_method_that_starts_anew() -> None:
    """Steps that are known from before, and those after a checkpoint, are the same to the bit."""
    sizes, scopes = MODELS["pairs"]
    _, margins = random_margins(sizes, scopes, 7, 1.0)
    first, second = TableNewton(SplitTable(sizes, scopes), margins), TableNewton(SplitTable(sizes, scopes), margins)
    whole = iterate(first.step, first.start, Control(tolerance=1e-12))
    again = iterate(first.step, first.start, Control(tolerance=1e-12))
    part = iterate(second.step, second.start, Control(tolerance=1e-12, max_iter=2)).state
    later = iterate(TableNewton(SplitTable(sizes, scopes), margins).step, part, Control(tolerance=1e-12))
    for other in (again, later):
        np.testing.assert_array_equal(other.state.parameters, whole.state.parameters)
        assert other.state.iteration == whole.state.iteration


def counts_of(sizes: tuple[int, ...], seed: int) -> Any:
    """Counts of 100,000 rows of a random table."""
    table, _ = random_margins(sizes, ((0,),), seed)
    return np.random.default_rng(seed).multinomial(100_000, table.ravel()).reshape(sizes)


def test_auto_fits_a_table_of_hundreds_of_cells_by_newton_as_by_sweeps() -> None:
    sizes, names = (2, 3, 4, 2, 6), list("abcde")
    counts = counts_of(sizes, 11)
    assert counts.size >= LEAST
    pairs = list(itertools.combinations(names, 2))
    auto = sf.MarkovNetwork(pairs).fit(table=counts, columns=names)
    sweeps = sf.MarkovNetwork(pairs, solver="ipf").fit(table=counts, columns=names)
    assert auto.report_.method.startswith("Newton's method on the table of all joint states")
    assert auto.converged_
    assert auto.report_.certificate.exists
    assert auto.n_iter_ < sweeps.n_iter_
    np.testing.assert_allclose(auto.to_joint().values, sweeps.to_joint().values, rtol=1e-7)
    np.testing.assert_array_equal(auto.marginal(names).values, auto.to_joint().values)
    np.testing.assert_allclose(
        auto.marginal(["e", "a"]).values, counts.sum(axis=(1, 2, 3)).T / counts.sum(), atol=1e-10
    )


def test_a_margin_without_rows_is_left_to_sweeps() -> None:
    sizes, names = (2, 3, 4, 2, 6), list("abcde")
    counts = counts_of(sizes, 13)
    counts[1, 2] = 0
    pairs = list(itertools.combinations(names, 2))
    with pytest.warns(sf.ExistenceWarning, match="not attained"):
        fitted = sf.MarkovNetwork(pairs).fit(table=counts, columns=names)
    assert "proportional fitting" in fitted.report_.method
    assert fitted.to_joint().values[1, 2].sum() == 0.0
