"""Our own network, fitted to rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.contender import Data, Run
from benchmarks.network import EQUIVALENT_SAMPLE_SIZE, Network, frame_of
from suffice import BayesianNetwork


def fit(data: Data, *, prior: str | None = None, frame: bool = False, report: bool = False) -> Run:
    """From a pandas frame of categories, or from columns of codes, with construction; `report` reads that as well."""
    network = Network.of(data)
    table = frame_of(data) if frame else dict(zip(network.names, data["codes"], strict=True))
    labels = [network.states(at) if frame else list(range(card)) for at, card in enumerate(network.cards)]
    # Codes need not hold every state; categories bring theirs.
    states = None if frame else dict(zip(network.names, labels, strict=True))

    def run() -> object:
        weight: dict[str, Any] = {} if prior is None else {"equivalent_sample_size": EQUIVALENT_SAMPLE_SIZE}
        net = BayesianNetwork(network.structure, states=states, prior=prior, **weight)
        net.fit(table)
        if report:
            net.report_  # noqa: B018  Worked out when it is first read, with the certificate.
        return np.concatenate([net.table(name).values.ravel() for name in network.names])

    return run
