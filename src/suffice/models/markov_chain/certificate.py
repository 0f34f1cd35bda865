"""How near a chain is to what it claims to be, measured on the law that is returned."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from suffice.engines.runs import blocks
from suffice.models.markov_chain.laws import BackoffLaw, Law, row
from suffice.models.markov_chain.levels import Levels
from suffice.models.markov_chain.rows import Histories
from suffice.models.markov_chain.solve import Solved
from suffice.report import Certificate

Floats = NDArray[np.float64]

#: Most histories whose rows are added up, and most words of all of them together.
_ROWS, _WORDS = 64, 200_000


def log_likelihood(law: Law, levels: Levels) -> float:
    """Sum over the counted events, natural logarithm."""
    if not isinstance(law, BackoffLaw):
        windows, counts = events(levels)
        return float(counts @ law.log_prob(windows)) if len(counts) else 0.0
    total = 0.0
    for n in range(min(2, levels.order + 1), levels.order + 2):
        level = levels.levels[n - 1]
        whole = _whole(levels, n)
        logs = law.log_p[n - 1]
        if n == 2 and law.first is not None:
            logs = np.where(level.history == levels.card, law.first[level.word], logs)
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

    Maximum likelihood: the largest gap between n(h, w) and n(h) p(w | h), in standard deviations. Learned weights and
    priors: the slope of their objective. Everything: no row's sum may differ from one.
    """
    sums = _row_gap(solved)
    if estimate == "mle":
        gap, directions = _likelihood_gap(solved)
        never = len(directions) > 0
        shown = tuple(directions)
        return Certificate(max(gap, sums), value_gap=0.0, bound=True, exists=not never, directions=shown)
    scale = "slope in nats an event, or distance of a row's sum from 1"
    slopes = [
        used.gap(weights) for used, weights in zip(solved.evidence, solved.weights, strict=False) if len(used.number)
    ]
    if solved.outcome is not None and not slopes:
        slopes = [float(solved.outcome.state.gap)]
    exists = False if solved.directions else None if slopes else True
    return Certificate(max([sums, *slopes]), value_gap=None, exists=exists, directions=solved.directions, scale=scale)


def _row_gap(solved: Solved) -> float:
    """Largest distance of the sum of a row from one, over evenly chosen histories."""
    levels, law = solved.levels, solved.law
    most = min(_ROWS, max(_WORDS // levels.card, 1))
    gap = 0.0 if levels.order else abs(float(row(law, np.empty(0, np.int64)).sum()) - 1.0)
    for depth, place in _chosen(levels, most):
        history = np.full(levels.order, levels.card, np.int64)
        for n in range(depth, 0, -1):
            history[levels.order - depth + n - 1] = levels.levels[n - 1].word[place]
            place = int(levels.levels[n - 1].history[place])
        gap = max(gap, abs(float(row(law, history).sum()) - 1.0))
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


def _likelihood_gap(solved: Solved) -> tuple[float, list[str]]:
    """Largest gap between observed and expected counts, and how many events after seen histories never occur."""
    levels, law = solved.levels, solved.law
    assert isinstance(law, BackoffLaw)
    gap, seen = 0.0, 0
    for n in range(min(2, levels.order + 1), levels.order + 2):
        level = levels.levels[n - 1]
        whole = _whole(levels, n)
        seen += int(np.count_nonzero(whole))
        expected = levels.totals(n)[level.history[whole]] * np.exp(law.log_p[n - 1][whole])
        spread = np.sqrt(np.maximum(expected, 1.0))
        gap = max(gap, float((np.abs(level.count[whole] - expected) / spread).max(initial=0.0)))
    rows = len(Histories.of(levels, initial=True).place) if levels.order else 1
    never = rows * levels.card - seen
    if never == 0:
        return gap, []
    return gap, [f"{never:,} events never seen after a history that was: their log-odds run to -infinity"]


def _whole(levels: Levels, n: int) -> NDArray[np.bool_]:
    """The runs of level n that are counted events with their whole history."""
    seen = levels.levels[n - 1].count > 0
    return seen & levels.begins[n - 1] if n <= levels.order else seen
