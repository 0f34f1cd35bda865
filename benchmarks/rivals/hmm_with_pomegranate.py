"""pomegranate's dense hidden Markov model, on PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from pomegranate.distributions import Categorical, Normal
from pomegranate.hmm import DenseHMM

from benchmarks.contender import Data, Run
from benchmarks.problems.hmm import ITERATIONS


def fit(data: Data, *, law: str) -> Run:
    """A given number of steps from given values, one thread."""
    torch.set_num_threads(1)
    ends = np.cumsum(data["lengths"])[:-1]
    kind = torch.int64 if law == "symbols" else torch.float32
    parts = [torch.tensor(part[:, None], dtype=kind) for part in np.split(data["x"], ends)]

    def run() -> object:
        if law == "symbols":
            laws: list[Any] = [Categorical([row.tolist()]) for row in data["symbols"]]
        else:
            pairs = zip(data["means"], data["variances"], strict=True)
            laws = [Normal([float(m)], [float(v)], covariance_type="diag") for m, v in pairs]
        model = DenseHMM(
            laws, edges=data["transitions"].tolist(), starts=data["initial"].tolist(), max_iter=ITERATIONS, tol=0.0
        )
        model.fit(parts)
        # It works in float32: rows add up to one to seven digits.
        starts, edges = (torch.softmax(found.double(), -1).numpy() for found in (model.starts, model.edges))
        if law == "symbols":
            symbols = np.stack([found.probs[0].double().numpy() for found in model.distributions])
            return starts, edges, symbols / symbols.sum(axis=1, keepdims=True), data["means"], data["variances"]
        means = np.array([float(found.means[0]) for found in model.distributions])
        variances = np.array([float(found.covs.reshape(-1)[0]) for found in model.distributions])
        return starts, edges, data["symbols"], means, variances

    return run
