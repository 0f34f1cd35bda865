"""Compile every kernel ahead of its first use: ``python -m suffice.warmup``.

Worth a line in the recipe of a container or before a timing. Each kernel is called once, through the functions that
call it at run time and for every type of column they pass on, so exactly the code that is needed lands in the cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from suffice.engines.chain import chains_of
from suffice.engines.chain_statistics import counts_by_code, diagonal_potentials
from suffice.engines.gibbs import GibbsSampler
from suffice.engines.junction_tree import plan_tree
from suffice.engines.label_scores import ChainWeights, Matrix, Packing, ScoredSteps
from suffice.engines.tree_covariance import TreeCovariance
from suffice.engines.tree_scaling import TreeScaling
from suffice.errors import MissingExtraError
from suffice.kernels import (
    choice,
    coding,
    counting,
    dense_rows,
    grouped_moments,
    moments,
    ngrams,
    patterns,
    row_distributions,
    words,
)

Call = tuple[str, Callable[[], object]]

_CODES = (np.uint8, np.uint16, np.uint32)


def main() -> None:
    """Compile all, one line each with the seconds it took."""
    if not choice.numba_installed():
        raise MissingExtraError("Nothing to compile: Numba is not installed or switched off. NumPy does the work then.")
    begin = time.perf_counter()
    for name, call in calls():
        start = time.perf_counter()
        with choice.force("compiled"):
            call()
        print(f"{name:<44}{time.perf_counter() - start:7.2f} s", flush=True)
    print(f"{'all kernels':<44}{time.perf_counter() - begin:7.2f} s")


def calls() -> Iterator[Call]:
    """Every kernel with every specialisation used at run time: a name, and a call on tiny arrays."""
    yield from _counting()
    yield from _moments()
    yield from _patterns()
    yield from _coding()
    yield from _junction_tree()
    yield from _gibbs()
    yield from _chains()
    yield from _runs()
    yield "logistic rows", partial(row_distributions.logistic_rows, np.zeros(2), np.ones(2))
    rows = dense_rows.RowProducts(compiled=True)
    yield "rows times a vector", partial(rows.forward, np.zeros((2, 2)), np.zeros(2))
    yield "values times rows", partial(rows.back, np.zeros(2), np.zeros((2, 2)))


def _runs() -> Iterator[Call]:
    codes, offsets = np.array([1, 1], dtype=np.int32), np.array([0, 2])
    yield "words of texts", lambda: words.WordNumbers().read(b"a b\n")
    for name, highest in (("windows", 1), ("wide windows", (1 << 22) - 1)):
        table = np.array([highest, 0], dtype=np.int32)
        yield name, partial(_count_windows, ngrams.CodedPart(codes, offsets), table)
    yield "runs by word", partial(_find_runs, codes[:1] * 0)


def _find_runs(one: NDArray[np.int32]) -> None:
    ends = np.array([0, 1], np.int32)
    ngrams.find_children(one, ends, one, ends, one)


def _count_windows(part: ngrams.CodedPart, table: NDArray[np.int32]) -> None:
    ngrams.count_parts([part], 2, table, table)


def _counting() -> Iterator[Call]:
    narrow = counting.plan_counts((2, 2), [(0, 1)], 2)
    wide = counting.plan_counts((256, 257), [(0, 1)], 2)
    for dtype, (size, plan), weights in product(_CODES, (("", narrow), ("wide ", wide)), (None, np.ones(2))):
        codes = np.zeros((2, 2), dtype)
        name = f"counting {size}{np.dtype(dtype)}{' weighted' if weights is not None else ''}"
        yield name, partial(counting.count, codes, plan, weights)


def _gibbs() -> Iterator[Call]:
    """Two states, Potts and tables: each has loops of its own."""
    for form, card, table in (("pairs", 2, np.eye(2)), ("Potts", 3, np.eye(3)), ("tables", 3, np.arange(9.0))):
        yield f"Gibbs sampling, {form}", partial(_sample, card, table.ravel())


def _sample(card: int, logs: NDArray[np.float64]) -> None:
    sampler = GibbsSampler((card, card), [(0, 1)])
    sampler.load(logs)
    chains = sampler.start(2, 0)
    sampler.sweep(chains)
    sampler.shares(chains)
    sampler.log_values(chains.states, logs)
    sampler.counts(chains.states, np.ones(2))
    sampler.pseudo_likelihood(chains.states, np.ones(2))
    cells = np.arange(len(logs))
    sampler.add_features((np.append(cells, len(logs)), cells, logs), chains.states, np.zeros((len(logs), 2)))


def _moments() -> Iterator[Call]:
    columns = np.ones((2, 3))
    for weights in (None, np.ones(3)):
        suffix = "" if weights is None else " weighted"
        yield f"moments{suffix}", partial(moments.moment_sums, columns, weights)
        yield f"sums{suffix}", partial(moments.column_sums, columns, weights)
    yield "grouped moments", partial(grouped_moments.grouped_moment_sums, columns, np.array([0, 1, 1]), 2)


def _patterns() -> Iterator[Call]:
    yield "patterns", partial(patterns.distinct_rows, np.ones((2, 3)))


def _coding() -> Iterator[Call]:
    for source, target in product((*_CODES, np.uint64), _CODES):
        codes, table = np.zeros(2, source), np.zeros(1, target)
        name = f"coding {np.dtype(source)} to {np.dtype(target)}"
        yield name, partial(coding.remap, codes, table, 1)


def _junction_tree() -> Iterator[Call]:
    plan = plan_tree({"a": 2, "b": 2, "c": 2}, [("a", "b"), ("b", "c")])
    tree = plan.load([np.full((2, 2), 0.25)] * 2)
    rows = np.array([[0, -1, 1], [-1, 1, -1]], dtype=np.int32)
    yield "junction tree calibration", lambda: tree.condition({"a": 0}).marginals()
    yield "junction tree rows", partial(tree.solve_rows, rows, ("a", "b", "c"), scopes=[("a",)])
    yield "junction tree expected counts", partial(tree.expect, rows, ("a", "b", "c"), weights=np.ones(2))
    yield "junction tree moments", partial(plan.moments(), np.zeros(8))
    yield "junction tree scaling", lambda: TreeScaling(plan, [np.full((2, 2), 0.25)] * 2).sweep()
    yield "junction tree covariances", lambda: TreeCovariance(plan).covariance(np.zeros(8))


def _chains() -> Iterator[Call]:
    """Chains with shared transitions and with one matrix a step, and sparse features with and without values."""
    for name, shape in (("", (2, 2)), (" by step", (3, 2, 2))):
        distribution = chains_of(np.ones((3, 2)), np.ones(shape), offsets=[0, 3])
        yield f"chains{name}: posteriors", distribution.expectations
        yield f"chains{name}: best paths", distribution.best_paths
        yield f"chains{name}: lists of best paths", partial(distribution.best_paths, 2)
        yield f"chains{name}: samples", partial(distribution.sample, random_state=0)
    side_by_side = chains_of(np.ones((8, 2)), np.ones((2, 2)), offsets=np.arange(9))
    yield "chains side by side: masses", side_by_side.log_partition
    yield "chains side by side: posteriors", side_by_side.expectations
    yield "steps by code", partial(counts_by_code, np.zeros(3, np.int32), np.ones((3, 2)), 2)
    yield "densities of steps", partial(diagonal_potentials, np.ones((3, 1)), np.ones((2, 1)), np.ones((2, 1)))
    packing = Packing(np.array([0, 2]), np.array([0, 1], np.int32), 2)
    weights = ChainWeights(np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((0, 2, 2)))

    def scored(count: int = 1) -> None:
        design = Matrix(np.arange(count + 1), np.zeros(count, np.int32), np.zeros(0), 1)
        ScoredSteps(design, packing, np.arange(count + 1)).expected(weights, np.ones(count))

    yield "label scores", scored
    yield "label scores side by side", partial(scored, 32)


if __name__ == "__main__":
    main()
