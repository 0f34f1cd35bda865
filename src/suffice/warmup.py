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

from suffice.engines.junction_tree import plan_tree
from suffice.engines.tree_covariance import TreeCovariance
from suffice.engines.tree_scaling import TreeScaling
from suffice.errors import MissingExtraError
from suffice.kernels import choice, coding, counting, grouped_moments, moments, patterns, row_laws

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
    yield "logistic rows", partial(row_laws.logistic_rows, np.zeros(2), np.ones(2))


def _counting() -> Iterator[Call]:
    narrow = counting.plan_counts((2, 2), [(0, 1)], 2)
    wide = counting.plan_counts((256, 257), [(0, 1)], 2)
    for dtype, (size, plan), weights in product(_CODES, (("", narrow), ("wide ", wide)), (None, np.ones(2))):
        codes = np.zeros((2, 2), dtype)
        name = f"counting {size}{np.dtype(dtype)}{' weighted' if weights is not None else ''}"
        yield name, partial(counting.count, codes, plan, weights)


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


if __name__ == "__main__":
    main()
