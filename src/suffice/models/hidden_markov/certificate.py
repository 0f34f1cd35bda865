"""What a fit of a hidden Markov model proves: whether its maximum is attained, and how far from it the answer is.

Where every state is known the estimate is a count, and what the parameters lose to their maximum is known. Where states
are hidden EM gives a stationary point, and no bound; whether a maximum exists is decided where a distribution
collapses, where a symbol was never seen, and where the prior alone keeps the objective away from every edge.

The slope of the objective is that of the expected log-likelihood of the complete sequences (Fisher's identity): of a
row of the chain with counts n, expected given the sequences, and pseudo-counts a it is n + a - |n + a| p in the
logarithms of its probabilities p, and the variance of the complete counts is |n + a| p (1 - p).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import partial

import numpy as np

from suffice.array_types import Floats
from suffice.fitting.report import Certificate, in_standard_errors
from suffice.models.hidden_markov.emissions.contract import UNUSED
from suffice.models.hidden_markov.emissions.standing import Standing, of_rows
from suffice.models.hidden_markov.learning import ChainRows, Learner
from suffice.models.hidden_markov.parameters import ChainParameters, Statistics
from suffice.models.hidden_markov.stationary_start import objective

SLOPE_UNIT = "nats per unit of the logarithm of a first-state or transition probability"
#: Rounding of a sum of logarithms, in units of the size of its terms.
_ROUNDING = 8 * float(np.finfo(np.float64).eps)


def counted_certificate(
    statistics: Statistics, parameters: ChainParameters, learner: Learner, names: Sequence[Hashable]
) -> Certificate:
    """Of parameters whose states were all known."""
    standing = _chain(statistics, parameters, learner, names)
    if "emissions" in learner.free:
        standing = standing + learner.emission.standing(
            learner.gathered(statistics), parameters.emission, _called(names)
        )
    if "durations" in learner.free:
        standing = standing + learner.standing_of_durations(statistics, parameters.durations, _called(names))
    weight = float(statistics.visits.sum())
    exists = False if standing.directions else True if standing.decided else None
    lost = None if standing.lost is None or not weight > 0 else (standing.lost + _ROUNDING * standing.size) / weight
    gap, slope = _gap_and_slope(statistics, parameters, learner)
    return Certificate(
        gap,
        value_gap=lost,
        bound=standing.bound and lost is not None,
        exists=exists,
        directions=standing.directions,
        slope=slope,
        slope_unit=SLOPE_UNIT,
    )


def climbed_certificate(
    statistics: Statistics,
    parameters: ChainParameters,
    learner: Learner,
    names: Sequence[Hashable],
    discrepancy: float,
) -> Certificate:
    """Of parameters that EM came to; `statistics` are expected there.

    discrepancy: how far two computations of them differ, as a share of all steps.
    """
    directions: tuple[str, ...] = ()
    structure = learner.structure
    if "emissions" in learner.free:
        # Where all transitions are possible every state has a share in every step, and moving its mass from a symbol
        # never seen to one that was raises the likelihood.
        possible = structure.first.all() and structure.pairs.all()
        unseen = learner.emission.unseen(learner.gathered(statistics)) if possible else ()
        directions = (*learner.emission.collapsed(parameters.emission, _called(names)), *unseen)
    exists = False if directions else True if _is_coercive(learner) else None
    gap, slope = _gap_and_slope(statistics, parameters, learner)
    # A share d of N steps is d N counts, and the standard error of a count is at most sqrt(N) / 2.
    gap += 2.0 * discrepancy * math.sqrt(float(statistics.visits.sum()))
    return Certificate(gap, exists=exists, directions=directions, slope=slope, slope_unit=SLOPE_UNIT)


def _gap_and_slope(statistics: Statistics, parameters: ChainParameters, learner: Learner) -> tuple[float, float | None]:
    """The largest gap in standard errors of the complete statistics, and the largest slope of a row of the chain."""
    emitted = _emission_gap(statistics, parameters, learner)
    gaps, slopes = [emitted, _duration_gap(statistics, parameters, learner)], list[float]()
    for rows in learner.rows(statistics, parameters):
        counts, shares = rows.counts + rows.pseudo, rows.probabilities
        total = counts.sum(axis=1, keepdims=True)
        slope = _stationary_slope(statistics, learner, rows) if learner.stationary else counts - total * shares
        slope = np.where(total > UNUSED, slope, 0.0)
        gaps.append(in_standard_errors(slope, total * shares * (1.0 - shares), _ROUNDING * total))
        slopes.append(float(np.abs(slope).max(initial=0.0)))
    return max(gaps), max(slopes) if slopes else None


def _stationary_slope(statistics: Statistics, learner: Learner, rows: ChainRows) -> Floats:
    """The slope in the logarithms of the transitions where these decide about the first state too."""
    shares = rows.probabilities
    _, slope = objective(shares, statistics.initial + learner.first, rows.counts + rows.pseudo)
    return np.asarray(shares * (slope - (slope * shares).sum(axis=1, keepdims=True)))


def _emission_gap(statistics: Statistics, parameters: ChainParameters, learner: Learner) -> float:
    """The root of twice what the emissions could still rise by: near the maximum, their Newton decrement.

    There it is in standard errors, and no statistic of theirs has a larger gap; farther off it is of the same size, by
    less than a factor of 2 in trials. Half its square is what the expected log-likelihood (and log prior) of the
    complete steps could still rise, which is known, since the best distributions of given statistics are.
    """
    if "emissions" not in learner.free:
        return 0.0
    emission, sums = learner.emission, learner.gathered(statistics)
    best = emission.maximise_tied(statistics.emission, parameters.emission, learner.tied)
    now, then = (
        emission.expected(sums, held) + _once(emission.log_prior(held), learner) for held in (parameters.emission, best)
    )
    with np.errstate(invalid="ignore"):
        gains = then - now
    # A state without steps has no say, whatever its distribution.
    gain = float(np.where(np.isnan(gains), 0.0, gains).sum())
    size = float(np.abs(np.where(np.isfinite(now), now, 0.0)).sum())
    return math.sqrt(2.0 * gain) if gain > _ROUNDING * size else 0.0


def _duration_gap(statistics: Statistics, parameters: ChainParameters, learner: Learner) -> float:
    """The same of durations: the root of twice what they could still rise by."""
    if "durations" not in learner.free:
        return 0.0
    best = learner.learn(statistics, parameters)
    now, then = (learner.value_of_durations(statistics, held.durations) for held in (parameters, best))
    gain, size = float((then - now).sum()), float(np.abs(now).sum())
    return math.sqrt(2.0 * gain) if gain > _ROUNDING * size else 0.0


def _once(log_prior: Floats, learner: Learner) -> Floats:
    """The log prior of distributions (K,), those that are shared counted once."""
    held = np.array(log_prior)
    held[learner.repeated] = 0.0
    return held


def _chain(
    statistics: Statistics, parameters: ChainParameters, learner: Learner, names: Sequence[Hashable]
) -> Standing:
    """Of first states and transitions, which are rows of counts and pseudo-counts."""
    if learner.stationary:
        # The first state pulls at all rows at once; with every transition seen the edge has the likelihood 0.
        pairs = (statistics.transitions + learner.pairs)[learner.structure.pairs]
        return Standing(decided="transitions" in learner.fixed or bool((pairs > 0).all()), lost=None)
    standing = Standing()
    for rows in learner.rows(statistics, parameters):
        standing = standing + of_rows(
            rows.counts + rows.pseudo,
            rows.probabilities,
            rows.allowed,
            partial(rows.called, names=names),
        )
    return standing


def distance_from_shares(statistics: Statistics, parameters: ChainParameters, learner: Learner) -> float:
    """Largest distance of a probability of the chain from its share of the counts, computed without the M-step."""
    if learner.stationary:
        return 0.0
    away = 0.0
    for rows in learner.rows(statistics, parameters):
        counts = rows.counts + rows.pseudo
        total = counts.sum(axis=1, keepdims=True)
        shares = np.where(total > 0, counts - total * rows.probabilities, 0.0) / np.where(total > 0, total, 1.0)
        away = max(away, float(np.abs(shares).max(initial=0.0)))
    return away


def _is_coercive(learner: Learner) -> bool:
    """Whether the prior alone sends the objective to -inf at every edge: continuous, it then has its maximum inside."""
    held = {
        "initial": bool((learner.first[learner.structure.first] > 0).all()),
        "transitions": bool((learner.pairs[learner.structure.pairs] > 0).all()),
        "emissions": learner.emission.coercive,
        "durations": all(
            one.is_coercive(pseudo) for one, pseudo in zip(learner.durations, learner.pseudo_durations.T, strict=True)
        ),
    }
    return all(held[name] for name in learner.free)


def _called(names: Sequence[Hashable]) -> list[str]:
    return [f"state {name!r}" for name in names]
