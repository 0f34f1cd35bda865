"""Counts of the steps of a chain beside what its rows make of them: n(h, w), and n(h) p(w | h)."""

from __future__ import annotations

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.fitting.report import CountedRows, MatchedStatistics, largest_and_even
from suffice.models.markov_chain.distributions import NextState
from suffice.models.markov_chain.input import Vocabulary
from suffice.models.markov_chain.levels import Levels
from suffice.models.markov_chain.rows import RowPrior

#: Cells up to which every cell of a row that was met is told of; of more, those that were counted.
MOST = 4_000


def matched_counts(
    distribution: NextState, levels: Levels, words: Vocabulary, prior: RowPrior | None, estimate: str
) -> MatchedStatistics | None:
    """Shares of all counted steps; None where nothing was counted.

    With Dirichlet rows of pseudo-counts a the rows have ``n(h, w) + a(w) - |a| p(w | h) = n(h) p(w | h)``; the mode has
    a - 1 in place of a.
    """
    windows, counts = levels.events()
    total = float(counts.sum())
    if not total > 0:
        return None
    histories, number = _distinct(windows[:, :-1])
    number = number.reshape(-1)
    mass = np.bincount(number, counts, len(histories))
    every = len(histories) * levels.card
    if every <= MOST:
        observed = np.zeros((len(histories), levels.card))
        np.add.at(observed, (number, windows[:, -1]), counts)
        row = np.repeat(np.arange(len(histories)), levels.card)
        word, seen = np.tile(np.arange(levels.card), len(histories)), observed.ravel()
    else:
        row, word, seen = number, windows[:, -1], counts
    shares = np.exp(distribution.log_prob(np.column_stack((histories[row], word))))
    expected = mass[row] * shares
    kept = largest_and_even(seen - expected, MOST)
    met = histories[row[kept]]
    pull = None if prior is None else _pull(prior, met, word[kept], shares[kept], estimate, levels.card)
    return MatchedStatistics(
        tuple(_called(histories[row[cell]], int(word[cell]), words, levels.card) for cell in kept),
        seen[kept] / total,
        expected[kept] / total,
        None if pull is None else pull / total,
        about="Steps counted, and n(history) p(next | history), in shares of all: maximum likelihood matches them.",
        total=every if every > len(kept) else None,
    )


def rows_with_prior(levels: Levels, words: Vocabulary, prior: RowPrior) -> list[CountedRows]:
    """The rows that were met, with their pseudo-counts; none for a mixture of rows, nor for chains too large."""
    windows, counts = levels.events()
    histories, number = _distinct(windows[:, :-1])
    if len(histories) * levels.card > MOST or (len(prior.alphas) > 1 and not prior.each):
        return []
    seen = np.zeros((len(histories), levels.card))
    np.add.at(seen, (number.reshape(-1), windows[:, -1]), counts)
    alpha = prior.of(histories, levels.card)
    kept = np.flatnonzero((alpha > 0).all(axis=1))
    names = [_called(histories[history], word, words, levels.card) for history in kept for word in range(levels.card)]
    return [CountedRows(tuple(names), seen[kept], alpha[kept])] if len(kept) else []


def _distinct(histories: Ints) -> tuple[Ints, Ints]:
    """Each history once, and the number of each among them; a chain of order 0 has one."""
    if histories.shape[1] == 0:
        return histories[:1], np.zeros(len(histories), np.int64)
    distinct, number = np.unique(histories, axis=0, return_inverse=True)
    return distinct, number.reshape(-1)


def _pull(prior: RowPrior, histories: Ints, word: Ints, shares: Floats, estimate: str, card: int) -> Floats | None:
    """What pseudo-counts add to a count; None for a mixture of rows, which adds something else to each."""
    if len(prior.alphas) > 1 and not prior.each:
        return None
    added = prior.added(histories, card, estimate)
    return np.asarray(added[np.arange(len(word)), word] - added.sum(axis=1) * shares)


def _called(history: Ints, word: int, words: Vocabulary, card: int) -> str:
    before = " ".join(str(words.states[code]) for code in history.tolist() if code < card)
    return f"{before or 'start'} → {words.states[word]}" if len(history) else str(words.states[word])
