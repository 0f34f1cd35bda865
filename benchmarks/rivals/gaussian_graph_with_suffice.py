"""Our own Gaussian graph."""

from __future__ import annotations

from benchmarks.contender import Data, Run
from suffice import GaussianGraph


def fit(data: Data, *, solver: str = "auto") -> Run:
    """From the covariance, with construction, certificate and report."""
    S, n = data["covariance"], float(data["rows"][0])
    edges = [tuple(edge) for edge in data["edges"].tolist()]

    def run() -> object:
        return GaussianGraph(edges, nodes=range(len(S)), solver=solver).fit(covariance=S, n=n).precision_  # type: ignore[arg-type]

    return run
