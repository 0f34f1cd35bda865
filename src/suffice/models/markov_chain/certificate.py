"""How near a chain is to what it claims to be, measured on the distribution that is returned.

Rows of counts n(h, w) with pseudo-counts a(w), none for maximum likelihood, maximise
``sum_w (n(h, w) + a(w)) log p(w | h)`` in closed form, so that what a distribution loses is a sum of divergences, known
exactly. A posterior mean has its pseudo-counts for a, a mode one less. Learned weights and priors are judged by the
slope of their objective. Discounts, given weights and means over a mixture of priors are formulas: they maximise
nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from suffice.engines.ngram_tree import blocks
from suffice.fitting.report import Certificate
from suffice.models.markov_chain.distributions import BackoffDistribution, NextState, row, whole_history
from suffice.models.markov_chain.hyper import LEAST, MOST, digamma_difference
from suffice.models.markov_chain.input import Vocabulary
from suffice.models.markov_chain.interpolation import Evidence
from suffice.models.markov_chain.levels import Levels
from suffice.models.markov_chain.rows import Histories, RowPrior, log_joint, responsibilities
from suffice.models.markov_chain.solve import Solved

Floats = NDArray[np.float64]

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
        windows, counts = events(levels)
        return float(counts @ distribution.log_prob(windows)) if len(counts) else 0.0
    total = 0.0
    for n in range(min(2, levels.order + 1), levels.order + 2):
        level = levels.levels[n - 1]
        whole = _whole(levels, n)
        logs = distribution.log_p[n - 1]
        if n == 2 and distribution.first is not None:
            logs = np.where(level.history == levels.card, distribution.first[level.word], logs)
        for part in blocks(len(level)):
            mine = whole[part]
            total += float(level.count[part][mine] @ logs[part][mine])
    return total


def events(levels: Levels) -> tuple[NDArray[np.int64], Floats]:
    """The counted windows (m, order + 1) with start marks before the first word, and their counts."""
    windows, counts = [], []
    for n in range(min(2, levels.order + 1), levels.order + 2):
        level = levels.levels[n - 1]
        whole = _whole(levels, n)
        spelled = levels.words(n)[whole]
        padded = np.full((len(spelled), levels.order + 1), levels.card, np.int64)
        padded[:, levels.order + 1 - n :] = spelled
        windows.append(padded)
        counts.append(level.count[whole])
    return np.concatenate(windows), np.concatenate(counts)


def certify(solved: Solved, estimate: str) -> Certificate:
    """The certificate of a chain.

    Counts: the largest gap between n(h, w) + a(w) and their expectation, in standard deviations, and what the rows lose
    to their maximum. Learned weights and priors: the slope of their objective. Everything: no row's sum may differ from
    one.
    """
    sums = _row_gap(solved)
    if solved.evidence:
        return _of_weights(solved, sums)
    if solved.outcome is not None and solved.prior is not None:
        scale = "slope of the evidence in nats a row, or " + _SUMS
        exists = False if solved.directions else None
        slope = _prior_slope(solved.levels, solved.prior)
        return Certificate(max(sums, slope), exists=exists, directions=solved.directions, scale=scale)
    formula = _formula(solved)
    if formula:
        return Certificate(sums, scale=_SUMS, formula=formula)
    return _of_counts(solved, estimate, sums)


def _formula(solved: Solved) -> str:
    """How the rows are made where they maximise nothing; empty where they do."""
    if solved.prior is None:
        return "" if solved.method == "relative frequencies" else solved.method
    return "posterior mean under a mixture" if len(solved.prior.weights) > 1 and not solved.prior.each else ""


# -- counts ----------------------------------------------------------------------------------------------------------


def _of_counts(solved: Solved, estimate: str, sums: float) -> Certificate:
    """Rows that maximise ``sum (n + a) log p``."""
    if solved.prior is None:
        gap, lost, never = _likelihood_gap(solved)
    elif (found := _posterior_gap(solved, estimate)) is not None:
        gap, lost, never = found
    else:
        return Certificate(sums, scale=_SUMS)
    rest = len(never[0]) < never[1]
    more = (f"{never[1] - len(never[0]):,} more events never seen",) if rest else ()
    return Certificate(
        max(gap, sums), value_gap=lost, bound=True, exists=never[1] == 0, directions=(*never[0], *more)
    )  # fmt: skip


def objective(solved: Solved, estimate: str, log_likelihood: float) -> float:
    """What was maximised: the log-likelihood, and the log prior of the rows that were met up to a constant.

    With learned weights that of the events they were learned from, with a learned prior the evidence of the rows.
    """
    if solved.evidence:
        return solved.evidence[solved.told].objective(solved.weights[solved.told])
    if solved.outcome is not None and solved.prior is not None:
        rows = Histories.of(solved.levels, initial=False)
        joint = log_joint(solved.levels, rows, solved.prior.weights, solved.prior.alphas)
        return float(np.logaddexp.reduce(joint, axis=1).sum())
    if solved.prior is None or _formula(solved):
        return log_likelihood
    met = _met(solved.levels)
    if len(met) * solved.levels.card > _CELLS:
        return log_likelihood
    added, logs = _added(solved.prior, met, solved.levels.card, estimate), _logs(solved, met)
    return log_likelihood + float((added[added > 0] * logs[added > 0]).sum())


def _likelihood_gap(solved: Solved) -> tuple[float, float, tuple[list[str], int]]:
    """Largest gap of a count, nats an event that are lost to the maximum, and the events never seen after a history.

    ``sum n (log(n / N) - log p)`` is the loss of rows whose probabilities add up to 1 at most; what they have beyond
    that is taken off by ``N log`` of their sum.
    """
    levels, distribution = solved.levels, solved.distribution
    assert isinstance(distribution, BackoffDistribution)
    gap, seen, lost, size, weight = 0.0, 0, 0.0, 0.0, 0.0
    for n in range(min(2, levels.order + 1), levels.order + 2):
        level, mine = levels.levels[n - 1], _whole(levels, n)
        count, logs, history = level.count[mine], distribution.log_p[n - 1][mine], level.history[mine]
        total = levels.totals(n)
        seen += len(count)
        expected = total[history] * np.exp(logs)
        gap = max(gap, float((np.abs(count - expected) / np.sqrt(np.maximum(expected, 1.0))).max(initial=0.0)))
        best = np.log(count / total[history])
        mass = np.bincount(history, np.exp(logs), minlength=len(total))
        lost += float((count * (best - logs)).sum()) + float((total * np.log(np.maximum(mass, 1.0))).sum())
        size += float((count * (1.0 + np.abs(best))).sum())
        weight += float(count.sum())
    rows = len(Histories.of(levels, initial=True).place) if levels.order else 1
    never = rows * levels.card - seen
    return gap, _at_most(lost, size, weight), (_unseen(solved, never), never)


def _at_most(lost: float, size: float, weight: float) -> float:
    """A loss of nats in all as a bound for each event, the rounding of its terms among it."""
    return (max(lost, 0.0) + _ROUNDING * size) / weight if weight > 0 else 0.0


def _unseen(solved: Solved, never: int) -> list[str]:
    """Names of some events that never follow a history that was met: their probability runs to 0."""
    levels, found = solved.levels, list[str]()
    if never == 0:
        return found
    for history in _met(levels, _NAMED * 4):
        counted = _counted(levels, history)
        for word in np.flatnonzero(counted <= 0).tolist():
            if len(found) == _NAMED:
                return found
            found.append(f"P({_said(history, word, solved.words)}) -> 0: never seen")
    return found


def _counted(levels: Levels, history: NDArray[np.int64]) -> Floats:
    """Counts (card,) after one history (order,)."""
    if levels.order == 0:
        return np.asarray(levels.levels[0].count[:-1])
    depth = int(whole_history(history[None], levels.card)[0])
    place = int(levels.contexts(history[None])[depth][0])
    level = levels.levels[depth]
    mine = level.history == place
    found = np.zeros(levels.card)
    found[level.word[mine]] = level.count[mine]
    return found


def _met(levels: Levels, most: int | None = None) -> NDArray[np.int64]:
    """The histories (m, order) that were followed, with start marks before the first word; the first so many."""
    windows, counts = events(levels)
    if levels.order == 0:
        return np.zeros((1, 0), np.int64)
    return np.unique(windows[counts > 0, :-1], axis=0)[:most]


def _posterior_gap(solved: Solved, estimate: str) -> tuple[float, float, tuple[list[str], int]] | None:
    """The same for rows with pseudo-counts, cell by cell; None where they have too many cells."""
    levels, prior, card = solved.levels, solved.prior, solved.levels.card
    assert prior is not None
    rows = _met(levels)
    if len(rows) * card > _CELLS:
        return None
    windows, counts = events(levels)
    place = {tuple(row): at for at, row in enumerate(rows.tolist())}
    number = np.array([place[tuple(row)] for row in windows[:, :-1].tolist()], dtype=np.int64)
    pulled = _added(prior, rows, card, estimate)
    np.add.at(pulled, (number, windows[:, -1]), counts)
    logs, total = _logs(solved, rows), pulled.sum(axis=1, keepdims=True)
    expected = total * np.exp(logs)
    gap = float((np.abs(pulled - expected) / np.sqrt(np.maximum(expected, 1.0))).max(initial=0.0))
    used = pulled > 0
    best = np.log(np.where(used, pulled / np.where(total > 0, total, 1.0), 1.0))
    lost = float(np.where(used, pulled * (best - np.where(used, logs, 0.0)), 0.0).sum())
    lost += float((total[:, 0] * np.log(np.maximum(np.exp(logs).sum(axis=1), 1.0))).sum())
    size = float(np.where(used, pulled * (1.0 + np.abs(best)), 0.0).sum())
    at, word = np.nonzero(~used)
    pairs = list(zip(at.tolist(), word.tolist(), strict=True))
    named = [f"P({_said(rows[row], w, solved.words)}) -> 0: never seen, no pseudo-count" for row, w in pairs[:_NAMED]]
    return gap, _at_most(lost, size, float(counts.sum())), (named, len(pairs))


def _added(prior: RowPrior, rows: NDArray[np.int64], card: int, estimate: str) -> Floats:
    """What pseudo-counts add to the counts of rows (m, card): one less where the mode is taken."""
    alpha = prior.of(rows, card)
    less = 1.0 if estimate == "map" else 0.0
    return np.where(alpha.any(axis=1, keepdims=True), alpha - less, 0.0)


def _logs(solved: Solved, rows: NDArray[np.int64]) -> Floats:
    """Log probabilities of every word after some histories (m, card)."""
    card = solved.levels.card
    windows = np.column_stack([np.repeat(rows, card, axis=0), np.tile(np.arange(card), len(rows))])
    return solved.distribution.log_prob(windows.astype(np.int64)).reshape(len(rows), card)


def _said(history: NDArray[np.int64], word: int, words: Vocabulary) -> str:
    """Such as "b after a"."""
    card = words.card
    before = " ".join(str(words.states[code]) for code in history.tolist() if code < card)
    after = "" if not len(history) else f" after {before}" if before else " first"
    return f"{words.states[word]}{after}"


# -- learned weights and priors --------------------------------------------------------------------------------------


def _of_weights(solved: Solved, sums: float) -> Certificate:
    """Learned weights: the objective is concave on [0, 1], so that its tangent bounds what is left to climb."""
    slope, lost = 0.0, 0.0
    for used, weights in zip(solved.evidence, solved.weights, strict=True):
        each = _tangents(used, weights)
        total = np.bincount(used.bucket, used.number, minlength=len(weights))
        slope = max(slope, float((each / np.maximum(total, 1e-300)).max(initial=0.0)))
        size = float(used.number @ (1.0 + np.abs(np.log(used.own + used.shorter))))
        lost = max(lost, _at_most(float(each.sum()), size, float(total.sum())))
    scale = "slope in nats an event, or " + _SUMS
    return Certificate(max(sums, slope), value_gap=lost, bound=True, exists=True, scale=scale)


def _tangents(used: Evidence, weights: Floats) -> Floats:
    """By how much the tangent in each weight rises up to the end of [0, 1] towards which it does (buckets,)."""
    share = weights[used.bucket]
    mixed = share * used.shorter + (1.0 - share) * used.own
    with np.errstate(divide="ignore"):
        rise = used.number * (used.shorter - used.own) / mixed
    slope = np.bincount(used.bucket, rise, minlength=len(weights))
    return np.asarray(np.where(slope > 0, slope * (1.0 - weights), -slope * weights))


def _prior_slope(levels: Levels, prior: RowPrior) -> float:
    """Largest slope of the evidence in the logarithm of a pseudo-count or in a weight, in nats a row.

    What stands at its limit has none beyond it.
    """
    rows = Histories.of(levels, initial=False)
    share = responsibilities(log_joint(levels, rows, prior.weights, prior.alphas))
    row, word, count = rows.cells(levels)
    most = MOST * max(float(rows.total.max()), 1.0)
    slopes = [float(np.abs(share.sum(axis=0) - len(share) * prior.weights).max())]
    for c, alpha in enumerate(prior.alphas):
        mass = float(alpha.sum())
        top = np.bincount(word, share[row, c] * digamma_difference(alpha[word], count), minlength=len(alpha))
        slope = alpha * (top - float(share[:, c] @ digamma_difference(mass, rows.total)))
        held = ((alpha <= 1.01 * LEAST) & (slope < 0)) | ((mass >= 0.99 * most) & (slope > 0))
        slopes.append(float(np.abs(np.where(held, 0.0, slope)).max()))
    return max(slopes) / len(rows.total)


# -- rows that add up ------------------------------------------------------------------------------------------------


def _row_gap(solved: Solved) -> float:
    """Largest distance of the sum of a row from one, over evenly chosen histories."""
    levels, distribution = solved.levels, solved.distribution
    most = min(_ROWS, max(_WORDS // levels.card, 1))
    gap = 0.0 if levels.order else abs(float(row(distribution, np.empty(0, np.int64)).sum()) - 1.0)
    for depth, place in _chosen(levels, most):
        history = np.full(levels.order, levels.card, np.int64)
        for n in range(depth, 0, -1):
            history[levels.order - depth + n - 1] = levels.levels[n - 1].word[place]
            place = int(levels.levels[n - 1].history[place])
        gap = max(gap, abs(float(row(distribution, history).sum()) - 1.0))
    return gap


def _chosen(levels: Levels, most: int) -> list[tuple[int, int]]:
    """Length and place of some histories that were followed, evenly chosen; shorter ones are of first words."""
    found: list[tuple[int, int]] = []
    for n in range(1, levels.order + 1):
        above = levels.levels[n].history
        if n < levels.order:
            # The start mark is the last word, so that what begins with it comes last.
            above = above[np.searchsorted(above, len(levels.begins[n - 1]) - np.count_nonzero(levels.begins[n - 1])) :]
        if len(above):
            share = most if n == levels.order else max(most // 4, 1)
            places = np.unique(above[np.linspace(0, len(above) - 1, share).astype(np.int64)])
            found.extend((n, int(place)) for place in places)
    return [(n, place) for n, place in found if _total(levels, n, place) > 0]


def _total(levels: Levels, n: int, place: int) -> float:
    """How often one history of n words was followed."""
    above = levels.levels[n]
    begin, end = np.searchsorted(above.history, [place, place + 1])
    return float(above.count[begin:end].sum())


def _whole(levels: Levels, n: int) -> NDArray[np.bool_]:
    """The runs of level n that are counted events with their whole history."""
    seen = levels.levels[n - 1].count > 0
    return seen & levels.begins[n - 1] if n <= levels.order else seen
