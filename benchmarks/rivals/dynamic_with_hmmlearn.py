"""hmmlearn, scaled recursions."""

from __future__ import annotations

import logging

import numpy as np
from hmmlearn import hmm

from benchmarks.contender import Data, Run
from benchmarks.problems.dynamic import LENGTH, STATES


def smooth(data: Data) -> Run:
    """From the symbols end to end to the posteriors."""
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    model = hmm.CategoricalHMM(n_components=STATES, implementation="scaling")
    model.startprob_ = np.full(STATES, 1.0 / STATES)
    model.transmat_, model.emissionprob_ = data["moves"][0], data["emits"][0]
    seen = data["seen"][..., 0]
    rows, lengths = seen.reshape(-1, 1), [LENGTH] * len(seen)

    def run() -> object:
        return model.predict_proba(rows, lengths).reshape(len(seen), LENGTH, STATES)

    return run
