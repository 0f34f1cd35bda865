"""Random Gaussian graphs from their covariance, to the same likelihood; also where columns are nearly dependent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.contender import Contender, Data

_OURS = "benchmarks.rivals.gaussian_graph_with_suffice"
_SCIPY = "benchmarks.rivals.gaussian_graph_with_scipy"

CONTENDERS = (
    Contender("suffice", _OURS, "fit"),
    Contender("scipy L-BFGS", _SCIPY, "fit", requires="scipy", most_rows=2_000),
    Contender("numpy, one node after the other", _SCIPY, "by_regressions"),
)


@dataclass(frozen=True)
class Graph:
    """Edges that give nodes this degree on average; with strength 1 the precision would be singular."""

    nodes: int
    degree: int
    strength: float = 0.8

    REPEATS = 3
    CONTENDERS = CONTENDERS

    @property
    def NAME(self) -> str:  # noqa: N802  a constant of the problem
        return f"gaussian-graph, {self.nodes} nodes of degree {self.degree}{self._ill}"

    @property
    def ROWS(self) -> int:  # noqa: N802  a constant of the problem
        return 10 * self.nodes

    def title(self, rows: int) -> str:
        edges = self.nodes * self.degree // 2
        return f"Gaussian graph, {self.nodes} nodes and {edges} edges, covariance of {rows:,} rows{self._ill}"

    @property
    def _ill(self) -> str:
        return ", ill-conditioned" if self.strength > 0.99 else ""

    def make(self, rows: int, seed: int) -> Data:
        """The covariance (p, p) of rows drawn from a distribution of the graph, and the edges (m, 2)."""
        rng = np.random.default_rng(seed)
        p = self.nodes
        above = np.triu_indices(p, 1)
        chosen = np.sort(rng.choice(len(above[0]), p * self.degree // 2, replace=False))
        edges = np.stack([above[0][chosen], above[1][chosen]], axis=1)
        precision = np.zeros((p, p))
        precision[edges[:, 0], edges[:, 1]] = rng.uniform(0.3, 1.0, len(edges)) * rng.choice([-1.0, 1.0], len(edges))
        precision += precision.T
        # The least eigenvalue is 1 - strength of the diagonal.
        precision *= -self.strength / np.linalg.eigvalsh(precision)[0]
        precision += np.eye(p)
        scale = np.exp(rng.normal(0.0, 1.0, p))
        root = np.linalg.inv(np.linalg.cholesky(precision)) * scale
        return {
            "covariance": np.cov((rng.standard_normal((rows, p)) @ root).T, bias=True),
            "edges": edges,
            "rows": np.array([rows]),
        }

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
    """Three sizes, and one beside a singular matrix."""
    yield from (Graph(50, 4), Graph(200, 6), Graph(200, 6, 0.9999), Graph(1_000, 4))
