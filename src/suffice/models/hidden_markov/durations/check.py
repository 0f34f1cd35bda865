"""The judge of explicit durations: a chain whose states are a state and how long it has lasted, in log space.

No step of EM uses it: it visits states and elapsed steps forward and backward, where EM visits segments.
"""

from __future__ import annotations

import numpy as np

from suffice.array_types import Floats
from suffice.models.hidden_markov.durations.segments import tables_of
from suffice.models.hidden_markov.parameters import ChainParameters, SegmentCounts


def lasting_again(scores: Floats, parameters: ChainParameters) -> tuple[float, Floats, Floats, SegmentCounts]:
    """Log-likelihood, posteriors (steps, K), sums of transitions (K, K) and segments of one sequence."""
    lasts, stays = tables_of(parameters.durations, len(scores))
    following = np.vstack([stays[1:], np.full((1, stays.shape[1]), -np.inf)])
    reachable = stays > -np.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        first, moves = np.log(parameters.initial), np.log(parameters.transitions)
        leaving = np.where(reachable, lasts - stays, -np.inf)
        staying = np.where(reachable, following - stays, -np.inf)
        ahead = np.full((len(scores), *lasts.shape), -np.inf)
        ahead[0, 0] = first + scores[0]
        for t in range(1, len(scores)):
            left = np.logaddexp.reduce(ahead[t - 1] + leaving, axis=0)
            ahead[t, 0] = np.logaddexp.reduce(left[:, None] + moves, axis=0) + scores[t]
            ahead[t, 1:] = (ahead[t - 1] + staying)[:-1] + scores[t]
        mass = float(np.logaddexp.reduce(ahead[-1].ravel()))
        back, joint = np.zeros_like(lasts), np.zeros_like(moves)
        ended, cut = np.zeros_like(lasts), np.exp(ahead[-1] - mass)
        posteriors = np.empty_like(scores)
        posteriors[-1] = cut.sum(axis=0)
        for t in range(len(scores) - 2, -1, -1):
            arriving = moves + (scores[t + 1] + back[0])
            after = np.logaddexp.reduce(arriving, axis=1)
            left = np.logaddexp.reduce(ahead[t] + leaving, axis=0)
            joint += np.exp(left[:, None] + arriving - mass)
            ended += np.exp(ahead[t] + leaving + after - mass)
            on = np.vstack([back[1:], np.full((1, back.shape[1]), -np.inf)]) + scores[t + 1] + staying
            back = np.logaddexp(leaving + after, on)
            posteriors[t] = np.exp(ahead[t] + back - mass).sum(axis=0)
    return mass, posteriors, joint, SegmentCounts(ended, cut)
