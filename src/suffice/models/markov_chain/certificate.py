"""How near a chain is to what it claims to be, measured on the law that is returned."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
    for n in range(2, levels.order + 2):
        level = levels.levels[n - 1]
        whole = _whole(levels, n)
        logs = law.log_p[n - 1]
        if n == 2 and law.first is not None:
            logs = np.where(level.history == levels.card, law.first[level.word], logs)
        total += float(level.count[whole] @ logs[whole])
    return total


def events(levels: Levels) -> tuple[NDArray[np.int64], Floats]:
    """The counted windows (m, order + 1) with start marks before the first word, and their counts."""
    windows, counts = [], []
    for n in range(2, levels.order + 2):
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
    return Certificate(max([sums, *slopes]), value_gap=None, exists=None if slopes else True, scale=scale)


def _row_gap(solved: Solved) -> float:
    """Largest distance of the sum of a row from one, over evenly chosen histories."""
    levels, law = solved.levels, solved.law
    rows = Histories.of(levels, initial=True)
    most = min(_ROWS, max(_WORDS // levels.card, 1), len(rows.place))
    chosen = np.unique(np.linspace(0, max(len(rows.place) - 1, 0), most).astype(np.int64))
    gap = 0.0
    for at in chosen:
        depth = int(rows.level[at])
        history = np.full(levels.order, levels.card, np.int64)
        place = int(rows.place[at])
        for n in range(depth, 0, -1):
            history[levels.order - depth + n - 1] = levels.levels[n - 1].word[place]
            place = int(levels.levels[n - 1].history[place])
        gap = max(gap, abs(float(row(law, history).sum()) - 1.0))
    return gap


def _likelihood_gap(solved: Solved) -> tuple[float, list[str]]:
    """Largest gap between observed and expected counts, and how many events after seen histories never occur."""
    levels, law = solved.levels, solved.law
    assert isinstance(law, BackoffLaw)
    gap, seen = 0.0, 0
    for n in range(2, levels.order + 2):
        level = levels.levels[n - 1]
        whole = _whole(levels, n)
        seen += int(np.count_nonzero(whole))
        expected = levels.totals(n)[level.history[whole]] * np.exp(law.log_p[n - 1][whole])
        spread = np.sqrt(np.maximum(expected, 1.0))
        gap = max(gap, float((np.abs(level.count[whole] - expected) / spread).max(initial=0.0)))
    never = len(Histories.of(levels, initial=True).place) * levels.card - seen
    if never == 0:
        return gap, []
    return gap, [f"{never:,} events never seen after a history that was: their log-odds run to -infinity"]


def _whole(levels: Levels, n: int) -> NDArray[np.bool_]:
    """The runs of level n that are counted events with their whole history."""
    seen = levels.levels[n - 1].count > 0
    return seen & levels.begins[n - 1] if n <= levels.order else seen
