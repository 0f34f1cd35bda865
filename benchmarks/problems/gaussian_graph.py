"""Gaussian graphs of 50, 200 and 1,000 nodes from their covariance, to the same likelihood."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.contender import Contender, Data

_OURS = "benchmarks.rivals.gaussian_graph_with_suffice"
_SCIPY = "benchmarks.rivals.gaussian_graph_with_scipy"
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
_COMPILED = {**_ONE_THREAD, "SUFFICE_KERNELS": "compiled"}

CONTENDERS = (
    Contender("suffice", _OURS, "fit", environment=_COMPILED),
    Contender("suffice, NumPy path", _OURS, "fit", environment={**_ONE_THREAD, "SUFFICE_KERNELS": "numpy"}),
    Contender("suffice, ipf", _OURS, "fit", {"solver": "ipf"}, environment=_COMPILED, most_rows=2_000),
    Contender("suffice, newton", _OURS, "fit", {"solver": "newton"}, environment=_COMPILED),
    Contender("scipy L-BFGS", _SCIPY, "fit", requires="scipy", environment=_ONE_THREAD),
    Contender("numpy, one node after the other", _SCIPY, "by_regressions", environment=_ONE_THREAD),
)


@dataclass(frozen=True)
class Graph:
    """A ring of nodes with as many chords again, drawn at random."""

    nodes: int

    REPEATS = 5
    FLOOR = ""
    OURS = "suffice"
    CONTENDERS = CONTENDERS

    @property
    def NAME(self) -> str:  # noqa: N802  a constant of the problem
        return f"gaussian-graph, {self.nodes} nodes"

    @property
    def ROWS(self) -> int:  # noqa: N802  a constant of the problem
        return 10 * self.nodes

    def title(self, rows: int) -> str:
        return f"Gaussian graph, {self.nodes} nodes and {2 * self.nodes} edges, covariance of {rows:,} rows"

    def make(self, rows: int) -> Data:
        """The covariance (p, p) of rows drawn from a law of the graph, and the edges (m, 2)."""
        rng = np.random.default_rng(0)
        p = self.nodes
        ring = {tuple(sorted((i, (i + 1) % p))) for i in range(p)}
        while len(ring) < 2 * p:
            ring.add(tuple(sorted(int(node) for node in rng.choice(p, 2, replace=False))))
        edges = np.array(sorted(ring))
        precision = np.zeros((p, p))
        precision[edges[:, 0], edges[:, 1]] = rng.uniform(-0.6, 0.6, len(edges))
        precision += precision.T
        np.fill_diagonal(precision, np.abs(precision).sum(axis=1) + 0.2)
        root = np.linalg.cholesky(np.linalg.inv(precision))
        rows_drawn = rng.standard_normal((rows, p)) @ root.T
        return {"covariance": np.cov(rows_drawn.T, bias=True), "edges": edges, "rows": np.array([rows])}

    def judge(self, data: Data) -> Callable[[str, Any], str]:
        """Log-likelihood a row below the best precision met, and the largest gap of an edge of the covariance."""
        S, edges = data["covariance"], data["edges"]

        def verdict(_: str, precision: Any) -> str:
            W = np.linalg.inv(precision)
            gap = max(np.abs((W - S)[edges[:, 0], edges[:, 1]]).max(), np.abs(np.diag(W - S)).max())
            value = 0.5 * (np.linalg.slogdet(precision)[1] - np.vdot(S, precision))
            return f"edges {gap:.0e} off, likelihood {value:.9f}"

        return verdict


def cases() -> Iterator[Graph]:
    """Three sizes."""
    yield from (Graph(nodes) for nodes in (50, 200, 1_000))
