"""pomegranate's Bayesian network, on PyTorch, one thread: its counts and probabilities are float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from pomegranate.bayesian_network import BayesianNetwork
from pomegranate.distributions import Categorical, ConditionalCategorical

from benchmarks.contender import Data, Run
from benchmarks.network import Network


def fit(data: Data) -> Run:
    """Maximum likelihood only: of the pseudo-counts that its laws take, `fit` makes nothing."""
    torch.set_num_threads(1)
    network = Network.of(data)
    rows = torch.tensor(np.ascontiguousarray(data["codes"].T), dtype=torch.int64)

    def run() -> object:
        laws = [_law(network.shape(family)) for family in network.families]
        model = BayesianNetwork(
            laws, edges=[(laws[p], laws[at]) for at, above in enumerate(network.parents) for p in above]
        )
        model.fit(rows)
        return np.concatenate([law.probs[0].detach().numpy().ravel() for law in laws])

    return run


def _law(shape: tuple[int, ...]) -> Any:
    """A uniform law, so that states without a row have their place; axes (parents, node)."""
    uniform = np.full(shape, 1 / shape[-1], np.float32)
    return ConditionalCategorical([uniform]) if len(shape) > 1 else Categorical(uniform[None])
