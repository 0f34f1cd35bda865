"""How near a chain is to what it claims to be, measured on the distribution that is returned.

Rows of counts n(h, w) with pseudo-counts a(w), none for maximum likelihood, maximise
``sum_w (n(h, w) + a(w)) log p(w | h)`` in closed form, so that what a distribution loses is a sum of divergences, known
exactly. A posterior mean has its pseudo-counts for a, a mode one less. Learned weights and priors are judged by the
slope of their objective. Discounts, given weights and means over a mixture of priors are formulas: they maximise
nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.engines.ngram_tree import blocks, sums_by
from suffice.families.categoricals import Categoricals
from suffice.fitting.report import Certificate, in_standard_errors
from suffice.models.markov_chain.distributions import BackoffDistribution, NextState, row, whole_history
from suffice.models.markov_chain.fitted import MarkovChainFitted
from suffice.models.markov_chain.hyper import LEAST, MOST, digamma_difference, limits_reached
from suffice.models.markov_chain.input import Vocabulary
from suffice.models.markov_chain.interpolation import WeightEvidence
from suffice.models.markov_chain.levels import Levels
from suffice.models.markov_chain.rows import Histories, RowPrior, log_joint, responsibilities

#: Most histories whose rows are added up, and most words of all of them together.
_ROWS, _WORDS = 64, 200_000
#: Most cells of rows with pseudo-counts that are looked at one by one, and most events that are named.
_CELLS, _NAMED = 1 << 22, 20
#: Rounding of a logarithm and of a sum of rows, in units of its size.
_ROUNDING = 8 * float(np.finfo(np.float64).eps)
_SUMS = "distance of a row's sum from 1"


def log_likelihood(distribution: NextState, levels: Levels) -> float:
    """Sum over the counted events, natural logarithm."""
    if not isinstance(distribution, BackoffDistribution):
        windows, counts = levels.events()
        return float(counts @ distribution.log_prob(windows)) if len(counts) else 0.0
    total = 0.0
    for n in levels.event_levels:
        level = levels.levels[n - 1]
        whole = levels.counted(n)
        logs = distribution.log_p[n - 1]
        if n == 2 and distribution.first is not None:
            logs = np.where(level.history == levels.card, distribution.first[level.word], logs)
        for part in blocks(len(level)):
            mine = whole[part]
            total += float(level.count[part][mine] @ logs[part][mine])
    return total


def certify(
    fitted: MarkovChainFitted, evidence: tuple[WeightEvidence, ...], formula: str, *, learned_prior: bool
) -> tuple[Certificate, float]:
    """The certificate of a chain, and its gap in the unit of the tolerance.

    Counts: the largest gap between n(h, w) + a(w) and their expectation, in standard errors, and what the rows lose to
    their maximum. Learned weights and priors: the slope of their objective. Everything: no row's sum may differ from
    one.

    Args:
        fitted: The rows, with their counts and prior.
        evidence: Of learned weights the events that they were learned from, for each length of history.
        formula: What rows that maximise nothing are computed by; empty where they maximise something.
        learned_prior: Whether the prior was learned from the rows.
    """
    sums, of_mass = _row_gap(fitted)
    if evidence:
        return _of_weights(fitted, evidence, sums, of_mass)
    if learned_prior:
        assert fitted.prior is not None
        directions = limits_reached(fitted.counted, fitted.prior, fitted.words.states)
        slope, gap = _prior_slope(fitted.counted, fitted.prior)
        certificate = Certificate(
            max(gap, of_mass),
            exists=False if directions else None,
            directions=directions,
            slope=slope,
            slope_unit="nats per unit of the logarithm of a pseudo-count or of a weight of the mixture",
        )
        return certificate, max(sums, slope / max(len(Histories.of(fitted.counted, initial=False).total), 1))
    if formula:
        certificate = Certificate(of_mass, slope=sums, slope_unit=_SUMS, formula=formula)
        return certificate, sums
    return _of_counts(fitted, sums, of_mass)


# -- counts ----------------------------------------------------------------------------------------------------------


def _of_counts(fitted: MarkovChainFitted, sums: float, of_mass: float) -> tuple[Certificate, float]:
    """Rows that maximise ``sum (n + a) log p``."""
    rows = _likelihood_gap(fitted) if fitted.prior is None else _posterior_gap(fitted)
    if rows is None:
        return Certificate(of_mass, slope=sums, slope_unit=_SUMS), sums
    rest = rows.n_never - len(rows.never)
    more = (f"{rest:,} more events never seen",) if rest else ()
    certificate = Certificate(
        max(rows.gap, of_mass),
        value_gap=rows.lost,
        bound=True,
        exists=rows.n_never == 0,
        directions=(*rows.never, *more),
        slope=rows.slope,
        slope_unit="nats per unit of the logarithm of a probability",
    )
    return certificate, max(rows.deviations, sums)


@dataclass(frozen=True)
class _RowGaps:
    """What rows differ by from their counts.

    `gap` is the largest one in standard errors, `slope` the largest difference of counts, `deviations` the largest in
    square roots of the expected count (at least 1), `lost` nats per event that are lost to the maximum. `never` names
    some of the `n_never` events that were never seen after a history.
    """

    gap: float
    slope: float
    deviations: float
    lost: float
    never: list[str]
    n_never: int


def _differences(counts: Floats, total: Floats, shares: Floats) -> tuple[float, float, float]:
    """Gap in standard errors, slope, and deviations, of cells with these counts in rows of these totals."""
    expected = total * shares
    slope = np.abs(counts - expected)
    gap = in_standard_errors(slope, expected * (1.0 - shares), _ROUNDING * total)
    deviations = float((slope / np.sqrt(np.maximum(expected, 1.0))).max(initial=0.0))
    return gap, float(slope.max(initial=0.0)), deviations


def objective(
    fitted: MarkovChainFitted,
    evidence: tuple[WeightEvidence, ...],
    formula: str,
    log_likelihood: float,
    *,
    learned_prior: bool,
) -> float:
    """What was maximised: the log-likelihood, and the log prior of the rows that were met up to a constant.

    With learned weights that of the events from which those of the longest histories were learned, with a learned prior
    the evidence of the rows.
    """
    levels, prior = fitted.counted, fitted.prior
    if evidence:
        return evidence[-1].objective(fitted.weights[-1])
    if learned_prior:
        assert prior is not None
        joint = log_joint(levels, Histories.of(levels, initial=False), prior.weights, prior.alphas)
        return float(np.logaddexp.reduce(joint, axis=1).sum())
    if prior is None or formula:
        return log_likelihood
    met = _met(levels)
    if len(met) * levels.card > _CELLS:
        return log_likelihood
    added, logs = prior.added(met, levels.card, fitted.estimate), _logs(fitted, met)
    return log_likelihood + float((added[added > 0] * logs[added > 0]).sum())


def _likelihood_gap(fitted: MarkovChainFitted) -> _RowGaps:
    """Of rows of relative frequencies, from the counted runs alone.

    ``sum n (log(n / N) - log p)`` is the loss of rows whose probabilities add up to 1 at most; what they have beyond
    that is taken off by ``N log`` of their sum.
    """
    levels, distribution = fitted.counted, fitted.distribution
    assert isinstance(distribution, BackoffDistribution)
    gap, slope, deviations = 0.0, 0.0, 0.0
    seen, lost, size, weight = 0, 0.0, 0.0, 0.0
    for n in levels.event_levels:
        level, mine = levels.levels[n - 1], levels.counted(n)
        count, logs, history = level.count[mine], distribution.log_p[n - 1][mine], level.history[mine]
        total = levels.totals(n)
        seen += len(count)
        differences = _differences(count, total[history], np.exp(logs))
        gap, slope, deviations = map(max, (gap, slope, deviations), differences)
        best = np.log(count / total[history])
        mass = np.bincount(history, np.exp(logs), minlength=len(total))
        lost += float((count * (best - logs)).sum()) + float((total * np.log(np.maximum(mass, 1.0))).sum())
        size += float((count * (1.0 + np.abs(best))).sum())
        weight += float(count.sum())
    rows = len(Histories.of(levels, initial=True).run) if levels.order else 1
    never = rows * levels.card - seen
    return _RowGaps(gap, slope, deviations, _at_most(lost, size, weight), _unseen(fitted, never), never)


def _at_most(lost: float, size: float, weight: float) -> float:
    """A loss of nats in all as a bound for each event, the rounding of its terms among it."""
    return (max(lost, 0.0) + _ROUNDING * size) / weight if weight > 0 else 0.0


def _unseen(fitted: MarkovChainFitted, never: int) -> list[str]:
    """Names of some events that never follow a history that was met: their probability runs to 0."""
    levels, names = fitted.counted, list[str]()
    if never == 0:
        return names
    for history in _met(levels, _NAMED * 4):
        counted = _counted(levels, history)
        for word in np.flatnonzero(counted <= 0).tolist():
            if len(names) == _NAMED:
                return names
            names.append(f"P({_called(history, word, fitted.words)}) -> 0: never seen")
    return names


def _counted(levels: Levels, history: NDArray[np.int64]) -> Floats:
    """Counts (card,) after one history (order,)."""
    if levels.order == 0:
        return np.asarray(levels.levels[0].count[:-1])
    depth = int(whole_history(history[None], levels.card)[0])
    level = levels.levels[depth]
    mine = level.history == int(levels.contexts(history[None])[depth][0])
    counts = np.zeros(levels.card)
    counts[level.word[mine]] = level.count[mine]
    return counts


def _met(levels: Levels, most: int | None = None) -> NDArray[np.int64]:
    """The histories (m, order) that were followed, with start marks before the first word; the first so many."""
    windows, counts = levels.events()
    if levels.order == 0:
        return np.zeros((1, 0), np.int64)
    return np.unique(windows[counts > 0, :-1], axis=0)[:most]


def _posterior_gap(fitted: MarkovChainFitted) -> _RowGaps | None:
    """Of rows with pseudo-counts, cell by cell; None where they have too many cells."""
    levels, prior, card = fitted.counted, fitted.prior, fitted.words.card
    assert prior is not None
    rows = _met(levels)
    if len(rows) * card > _CELLS:
        return None
    windows, counts = levels.events()
    numbers = {tuple(row): number for number, row in enumerate(rows.tolist())}
    number = np.array([numbers[tuple(row)] for row in windows[:, :-1].tolist()], dtype=np.int64)
    pulled = prior.added(rows, card, fitted.estimate)
    np.add.at(pulled, (number, windows[:, -1]), counts)
    logs, total = _logs(fitted, rows), pulled.sum(axis=1, keepdims=True)
    used = pulled > 0
    best = np.log(np.where(used, Categoricals.most_likely(pulled, before=1.0).probabilities, 1.0))
    lost = float(np.where(used, pulled * (best - np.where(used, logs, 0.0)), 0.0).sum())
    lost += float((total[:, 0] * np.log(np.maximum(np.exp(logs).sum(axis=1), 1.0))).sum())
    size = float(np.where(used, pulled * (1.0 + np.abs(best)), 0.0).sum())
    never = np.argwhere(~used)
    named = [
        f"P({_called(rows[row], word, fitted.words)}) -> 0: never seen, no pseudo-count"
        for row, word in never[:_NAMED].tolist()
    ]
    differences = _differences(pulled, total, np.exp(logs))
    return _RowGaps(*differences, _at_most(lost, size, float(counts.sum())), named, len(never))


def _logs(fitted: MarkovChainFitted, rows: NDArray[np.int64]) -> Floats:
    """Log probabilities of every word after some histories (m, card)."""
    card = fitted.words.card
    windows = np.column_stack([np.repeat(rows, card, axis=0), np.tile(np.arange(card), len(rows))])
    return fitted.distribution.log_prob(windows.astype(np.int64)).reshape(len(rows), card)


def _called(history: NDArray[np.int64], word: int, words: Vocabulary) -> str:
    """Such as "b after a"."""
    card = words.card
    before = " ".join(str(words.states[code]) for code in history.tolist() if code < card)
    after = "" if not len(history) else f" after {before}" if before else " first"
    return f"{words.states[word]}{after}"


# -- learned weights and priors --------------------------------------------------------------------------------------


def _of_weights(
    fitted: MarkovChainFitted, evidence: tuple[WeightEvidence, ...], sums: float, of_mass: float
) -> tuple[Certificate, float]:
    """Learned weights: the objective is concave on [0, 1], so that its tangent bounds what is left to climb."""
    gap, steepest, climb, lost = of_mass, 0.0, 0.0, 0.0
    for used, weights in zip(evidence, fitted.weights, strict=True):
        share = weights[used.bucket]
        mixed = share * used.shorter + (1.0 - share) * used.own
        with np.errstate(divide="ignore"):
            ratio = (used.shorter - used.own) / mixed
        slope, curvature, total = (
            sums_by(used.bucket, part, len(weights))
            for part in (used.number * ratio, used.number * ratio**2, used.number)
        )
        # By how much the tangent rises up to the end of [0, 1] towards which it does.
        tangent = np.where(slope > 0, slope * (1.0 - weights), -slope * weights)
        inside = np.where(tangent > 0, slope, 0.0)
        gap = max(gap, in_standard_errors(inside, curvature, _ROUNDING * total))
        steepest = max(steepest, float(np.abs(inside).max(initial=0.0)))
        climb = max(climb, float((tangent / np.maximum(total, 1e-300)).max(initial=0.0)))
        size = float(used.number @ (1.0 + np.abs(np.log(used.own + used.shorter))))
        lost = max(lost, _at_most(float(tangent.sum()), size, float(total.sum())))
    certificate = Certificate(
        gap,
        value_gap=lost,
        bound=True,
        exists=True,
        slope=steepest,
        slope_unit="nats per unit of an interpolation weight",
    )
    return certificate, max(sums, climb)


def _prior_slope(levels: Levels, prior: RowPrior) -> tuple[float, float]:
    """Largest slope of the evidence in the logarithm of a pseudo-count or in a weight, and in its standard errors.

    What stands at its limit has none beyond it. The variance of a slope is the sum of the squares of what the rows add
    to it: they are independent, and the mean of each is 0 at the truth.
    """
    rows = Histories.of(levels, initial=False)
    share = responsibilities(log_joint(levels, rows, prior.weights, prior.alphas))
    row, word, count = rows.cells(levels)
    most = MOST * max(float(rows.total.max()), 1.0)
    away = share - prior.weights
    slopes: list[Floats] = [away.sum(axis=0)]
    squares: list[Floats] = [(away**2).sum(axis=0)]
    for c, alpha in enumerate(prior.alphas):
        mass, size = float(alpha.sum()), len(alpha)
        top = share[row, c] * digamma_difference(alpha[word], count)
        bottom = share[:, c] * digamma_difference(mass, rows.total)
        slope = alpha * (np.bincount(word, top, minlength=size) - float(bottom.sum()))
        # A row adds -bottom for a state that it lacks, and top - bottom for one that it has.
        square = float((bottom**2).sum()) + np.bincount(word, top * (top - 2.0 * bottom[row]), minlength=size)
        held = ((alpha <= 1.01 * LEAST) & (slope < 0)) | ((mass >= 0.99 * most) & (slope > 0))
        slopes.append(np.where(held, 0.0, slope))
        squares.append(alpha**2 * square)
    steepest = float(np.abs(np.concatenate(slopes)).max())
    gap = in_standard_errors(np.concatenate(slopes), np.concatenate(squares), _ROUNDING * len(rows.total))
    return steepest, gap


# -- rows that add up ------------------------------------------------------------------------------------------------


def _row_gap(fitted: MarkovChainFitted) -> tuple[float, float]:
    """Largest distance of the sum of a row from one, over evenly chosen histories, and in standard errors.

    Of a history that was followed n times the sum is the expected number of steps in units of n, whose standard error
    is at most sqrt(n).
    """
    levels, distribution = fitted.counted, fitted.distribution
    most = min(_ROWS, max(_WORDS // levels.card, 1))
    gaps = [(0.0, 0.0)]
    if not levels.order:
        away = abs(float(row(distribution, np.empty(0, np.int64)).sum()) - 1.0)
        gaps.append((away, away * math.sqrt(max(float(levels.levels[0].count.sum()), 1.0))))
    for depth, run, total in _chosen(levels, most):
        history = np.full(levels.order, levels.card, np.int64)
        for n in range(depth, 0, -1):
            history[levels.order - depth + n - 1] = levels.levels[n - 1].word[run]
            run = int(levels.levels[n - 1].history[run])
        away = abs(float(row(distribution, history).sum()) - 1.0)
        gaps.append((away, away * math.sqrt(max(total, 1.0))))
    # Rounding of a sum over all words is no gap.
    largest, in_errors = (max(column) for column in zip(*gaps, strict=True))
    return largest, in_errors if largest > _ROUNDING * levels.card else 0.0


def _chosen(levels: Levels, most: int) -> list[tuple[int, int, float]]:
    """Length and run of some histories that were followed, evenly chosen, and how often each was.

    Shorter ones are of first words.
    """
    runs: list[tuple[int, int]] = []
    for n in range(1, levels.order + 1):
        above = levels.levels[n].history
        if n < levels.order:
            # The start mark is the last word, so that what begins with it comes last.
            above = above[np.searchsorted(above, len(levels.begins[n - 1]) - np.count_nonzero(levels.begins[n - 1])) :]
        if len(above):
            share = most if n == levels.order else max(most // 4, 1)
            chosen = np.unique(above[np.linspace(0, len(above) - 1, share).astype(np.int64)])
            runs.extend((n, int(run)) for run in chosen)
    followed = ((n, run, _total(levels, n, run)) for n, run in runs)
    return [(n, run, total) for n, run, total in followed if total > 0]


def _total(levels: Levels, n: int, run: int) -> float:
    """How often one history of n words was followed."""
    above = levels.levels[n]
    begin, end = np.searchsorted(above.history, [run, run + 1])
    return float(above.count[begin:end].sum())
