"""Compile every kernel ahead of its first use: ``python -m suffice.warmup``.

With ``--beside`` it compiles what another process of the library names on its input, while that one works; see
`suffice.kernels.ahead`.

Worth a line in the recipe of a container or before a timing. Each kernel is called once, through the functions that
call it at run time and for every type of column they pass on, so exactly the code that is needed lands in the cache.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.engines.chain import chains_of
from suffice.engines.chain_statistics import counts_by_code, diagonal_potentials
from suffice.engines.gibbs import GibbsSampler
from suffice.engines.junction_tree import plan_tree
from suffice.engines.label_scores import ChainWeights, Matrix, Packing, ScoredSteps
from suffice.engines.segment_chains import SegmentChains
from suffice.engines.tree_covariance import TreeCovariance
from suffice.engines.tree_scaling import TreeScaling
from suffice.errors import MissingExtraError
from suffice.kernels import (
    ahead,
    choice,
    coding,
    counting,
    dense_rows,
    grouped_moments,
    junction_tree,
    junction_tree_scaling,
    junction_tree_tangents,
    moments,
    ngrams,
    node_regression,
    patterns,
    row_distributions,
    words,
)


class Call(NamedTuple):
    """What compiles a part of a kernel; `kernel` is its name where NumPy or compiled is decided."""

    kernel: str
    name: str
    run: Callable[[], object]


Calls = Iterator[Call]

_CODES = (np.uint8, np.uint16, np.uint32)


def main() -> None:
    """Compile all, one line each with the seconds it took."""
    if not choice.numba_installed():
        raise MissingExtraError("Nothing to compile: Numba is not installed or switched off. NumPy does the work then.")
    begin = time.perf_counter()
    for kernel, parts in groupby(calls(), lambda call: call.kernel):
        with ahead.claimed(kernel), choice.force("compiled"):
            for part in parts:
                start = time.perf_counter()
                part.run()
                print(f"{part.name:<44}{time.perf_counter() - start:7.2f} s", flush=True)
    print(f"{'all kernels':<44}{time.perf_counter() - begin:7.2f} s")


def beside(names: Iterable[str]) -> None:
    """Compile the kernels of these names as they come, without taking time from the work they are meant for."""
    if hasattr(os, "nice"):
        os.nice(5)
    for name in names:
        kernel = name.strip()
        with ahead.claimed(kernel) as mine, choice.force("compiled"):
            for call in calls() if mine else ():
                if call.kernel == kernel:
                    call.run()


def calls() -> Calls:
    """Every kernel with every specialisation used at run time: a name, and a call on tiny arrays."""
    yield from _counting()
    yield from _moments()
    yield from _patterns()
    yield from _coding()
    yield from _junction_tree()
    yield from _gibbs()
    yield from _chains()
    yield Call("segments", "chains of segments", _segments)
    yield from _runs()
    yield Call("logistic rows", "logistic rows", partial(row_distributions.logistic_rows, np.zeros(2), np.ones(2)))
    rows = dense_rows.RowProducts(compiled=True)
    yield Call("dense rows", "rows times a vector", partial(rows.forward, np.zeros((2, 2)), np.zeros(2)))
    yield Call("dense rows", "values times rows", partial(rows.back, np.zeros(2), np.zeros((2, 2))))
    yield Call("dense rows", "sizes of columns", partial(rows.column_sizes, np.zeros((2, 2))))
    given = "poisson", np.eye(2), np.zeros(2), None, None, np.zeros(2)
    yield Call("dense rows", "slopes of rows", partial(rows.slopes, *given, constant=False))
    ends, one = np.array([0, 1, 2]), np.array([1, 0])
    sweep = partial(node_regression.sweep, np.eye(2), np.eye(2), ends, one, np.zeros(2), compiled=True)
    yield Call("node regression", "node regression", sweep)


def _runs() -> Calls:
    codes, offsets = np.array([1, 1], dtype=np.int32), np.array([0, 2])
    yield Call("words", "words of texts", lambda: words.WordNumbers().read(b"a b\n"))
    for name, highest in (("windows", 1), ("wide windows", (1 << 22) - 1)):
        table = np.array([highest, 0], dtype=np.int32)
        yield Call("windows", name, partial(_count_windows, ngrams.CodedPart(codes, offsets), table))
    yield Call("children", "runs by word", partial(_find_runs, codes[:1] * 0))


def _find_runs(one: NDArray[np.int32]) -> None:
    ends = np.array([0, 1], np.int32)
    ngrams.find_children(one, ends, one, ends, one)


def _count_windows(part: ngrams.CodedPart, table: NDArray[np.int32]) -> None:
    ngrams.count_parts([part], 2, table, table)


def _counting() -> Calls:
    narrow = counting.plan_counts((2, 2), [(0, 1)], 2)
    wide = counting.plan_counts((256, 257), [(0, 1)], 2)
    for dtype, weights, (size, plan) in product(_CODES, (None, np.ones(2)), (("", narrow), ("wide ", wide))):
        codes, kind = np.zeros((2, 2), dtype), np.dtype(dtype)
        name = f"counting {size}{kind}{' weighted' if weights is not None else ''}"
        kernel = f"count {kind} {'rows' if weights is None else 'weights'}"
        yield Call(kernel, name, partial(counting.count, codes, plan, weights))


def _segments() -> None:
    one, size = np.zeros((1, 2)), np.zeros(2)
    chains = SegmentChains(np.zeros((2, 2)), np.array([0, 2]), size, np.zeros((2, 2)), one, one)
    chains.expectations(np.ones(1))
    chains.filtered()
    chains.best_paths()


def _gibbs() -> Calls:
    """Two states, Potts and tables: each has loops of its own."""
    for form, card, table in (("pairs", 2, np.eye(2)), ("Potts", 3, np.eye(3)), ("tables", 3, np.arange(9.0))):
        yield Call("gibbs", f"Gibbs sampling, {form}", partial(_sample, card, table.ravel()))


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


def _moments() -> Calls:
    columns = np.ones((2, 3))
    for weights in (None, np.ones(3)):
        kind = "" if weights is None else "weighted "
        yield Call(f"{kind}moments", f"{kind}moments", partial(moments.moment_sums, columns, weights))
        yield Call(f"{kind}sums", f"{kind}sums", partial(moments.column_sums, columns, weights))
    grouped = partial(grouped_moments.grouped_moment_sums, columns, np.array([0, 1, 1]), 2)
    yield Call("grouped moments", "grouped moments", grouped)


def _patterns() -> Calls:
    yield Call("group words", "patterns", partial(patterns.distinct_rows, np.ones((2, 3))))


def _coding() -> Calls:
    for source, target in product((*_CODES, np.uint64), _CODES):
        codes, table = np.zeros(2, source), np.zeros(1, target)
        kinds = np.dtype(source), np.dtype(target)
        kernel, name = "remap {} {}".format(*kinds), "coding {} to {}".format(*kinds)
        yield Call(kernel, name, partial(coding.remap, codes, table, 1))


def _junction_tree() -> Calls:
    plan = plan_tree({"a": 2, "b": 2, "c": 2}, [("a", "b"), ("b", "c")])
    tree = plan.load([np.full((2, 2), 0.25)] * 2)
    rows = np.array([[0, -1, 1], [-1, 1, -1]], dtype=np.int32)
    names = ("a", "b", "c")
    tables = [np.full((2, 2), 0.25)] * 2
    kernel = junction_tree.KERNEL
    yield Call(kernel, "junction tree calibration", lambda: tree.condition({"a": 0}).marginals())
    yield Call(kernel, "junction tree rows", partial(tree.solve_rows, rows, names, scopes=[("a",)]))
    yield Call(kernel, "junction tree expected counts", partial(tree.expect, rows, names, weights=np.ones(2)))
    yield Call(kernel, "junction tree moments", partial(plan.moments(), np.zeros(8)))
    walk, tangents = junction_tree_scaling.KERNEL, junction_tree_tangents.KERNEL
    yield Call(walk, "junction tree scaling", lambda: TreeScaling(plan, tables).sweep())
    yield Call(tangents, "junction tree covariances", lambda: TreeCovariance(plan).covariance(np.zeros(8)))


def _chains() -> Calls:
    """Chains with shared transitions and with one matrix a step, and sparse features with and without values."""
    for name, shape in (("", (2, 2)), (" by step", (3, 2, 2))):
        distribution = chains_of(np.ones((3, 2)), np.ones(shape), offsets=[0, 3])
        yield Call("chain", f"chains{name}: posteriors", distribution.expectations)
        yield Call("chain", f"chains{name}: best paths", distribution.best_paths)
        yield Call("chain", f"chains{name}: lists of best paths", partial(distribution.best_paths, 2))
        yield Call("chain", f"chains{name}: samples", partial(distribution.sample, random_state=0))
    side_by_side = chains_of(np.ones((8, 2)), np.ones((2, 2)), offsets=np.arange(9))
    yield Call("chain", "chains side by side: masses", side_by_side.log_partition)
    yield Call("chain", "chains side by side: posteriors", side_by_side.expectations)
    steps = partial(counts_by_code, np.zeros(3, np.int32), np.ones((3, 2)), 2)
    yield Call("add by code", "steps by code", steps)
    densities = partial(diagonal_potentials, np.ones((3, 1)), np.ones((2, 1)), np.ones((2, 1)))
    yield Call("normal potentials", "densities of steps", densities)
    packing = Packing(np.array([0, 2]), np.array([0, 1], np.int32), 2)
    weights = ChainWeights(np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((0, 2, 2)))

    def scored(count: int = 1) -> None:
        design = Matrix(np.arange(count + 1), np.zeros(count, np.int32), np.zeros(0), 1)
        ScoredSteps(design, packing, np.arange(count + 1)).expected(weights, np.ones(count))

    yield Call("label scores", "label scores", scored)
    yield Call("label scores", "label scores side by side", partial(scored, 32))


if __name__ == "__main__":
    beside(sys.stdin) if "--beside" in sys.argv[1:] else main()
