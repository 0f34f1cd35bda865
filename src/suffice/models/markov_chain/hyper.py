"""Learning the prior of the rows from the rows: EM for mixtures of Dirichlet laws.

The evidence of the rows is ``sum_h log sum_c w_c DM(n_h | alpha_c)``. The weights have the mean responsibility; the
pseudo-counts of a component take one step of the fixed point
``alpha_j <- alpha_j sum_h r_h (psi(n_hj + alpha_j) - psi(alpha_j)) / sum_h r_h (psi(N_h + A) - psi(A))``,
which maximises a lower bound, so that the evidence never falls.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from suffice.engines.runs import sums_by
from suffice.errors import EstimateError
from suffice.iteration import Control, Outcome, State, iterate
from suffice.models.markov_chain.levels import Levels
from suffice.models.markov_chain.rows import Histories, log_joint, responsibilities

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Cells = tuple[Integers, Integers, Floats]

#: Pseudo-counts below this are not told from none.
_LEAST = 1e-10


def learn_prior(levels: Levels, weights: Floats, alphas: Floats, control: Control) -> tuple[Floats, Floats, Outcome]:
    """Weights (C,) and pseudo-counts (C, card) that maximise the evidence of the rows, from a start."""
    rows = Histories.of(levels, initial=False)
    if len(rows.total) == 0:
        raise EstimateError("No history has counts, so that nothing is known about the prior of the rows.")
    cells = rows.cells(levels)
    parts = len(weights)

    def unpack(parameters: Floats) -> tuple[Floats, Floats]:
        return parameters[:parts], parameters[parts:].reshape(parts, -1)

    def judged(parameters: Floats) -> State:
        w, a = unpack(parameters)
        joint = log_joint(levels, rows, w, a)
        value = float(np.logaddexp.reduce(joint, axis=1).sum())
        share = responsibilities(joint)
        slope = np.concatenate([[_weight_slope(w, share)], _log_slopes(rows, cells, a, share).ravel()])
        return State(parameters, value, float(np.abs(slope).max()) / len(rows.total), memory={"share": share})

    def step(state: State) -> State:
        _, a = unpack(state.parameters)
        share = state.memory["share"]
        fresh = np.maximum(_fixed_point(rows, cells, a, share), _LEAST)
        return judged(np.concatenate([share.mean(axis=0), fresh.ravel()]))

    outcome = iterate(step, judged(np.concatenate([weights, alphas.ravel()])), control)
    final_weights, final_alphas = unpack(outcome.state.parameters)
    return final_weights, final_alphas, outcome


def _weight_slope(weights: Floats, share: Floats) -> float:
    return float(np.abs(share.sum(axis=0) - len(share) * weights).max())


def _sums(rows: Histories, cells: Cells, alpha: Floats, share: Floats) -> tuple[Floats, float]:
    """Top (card,) and bottom of the fixed point of one component."""
    from scipy.special import digamma

    row, word, count = cells
    gained = share[row] * (digamma(count + alpha[word]) - digamma(alpha[word]))
    mass = float(alpha.sum())
    bottom = float(share @ (digamma(rows.total + mass) - digamma(mass)))
    return sums_by(word, gained, len(alpha)), bottom


def _fixed_point(rows: Histories, cells: Cells, alphas: Floats, share: Floats) -> Floats:
    found = alphas.copy()
    for c, alpha in enumerate(alphas):
        top, bottom = _sums(rows, cells, alpha, share[:, c])
        if bottom > 0:
            found[c] = alpha * top / bottom
    return found


def _log_slopes(rows: Histories, cells: Cells, alphas: Floats, share: Floats) -> Floats:
    """Derivative of the evidence in the logarithm of each pseudo-count (C, card)."""
    found = np.empty_like(alphas)
    for c, alpha in enumerate(alphas):
        top, bottom = _sums(rows, cells, alpha, share[:, c])
        found[c] = alpha * (top - bottom)
    return found
