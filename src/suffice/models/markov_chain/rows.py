"""Rows by themselves: maximum likelihood, Dirichlet rows and mixtures of Dirichlet rows.

With counts n of a history and a Dirichlet(b) prior the posterior mean is ``(n_j + b_j) / (N + |b|)``, which is the
interpolation of n / N and b / |b| with the weight ``|b| / (|b| + N)`` of the prior; the mode has b - 1 in place of b.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.errors import EstimateError
from suffice.families.categoricals import Categoricals
from suffice.families.dirichlet_mixture import DirichletMixture
from suffice.families.gamma_function import log_gamma_ratio
from suffice.models.markov_chain.distributions import (
    BackoffDistribution,
    LevelMixture,
    TableDistribution,
    safe_log,
)
from suffice.models.markov_chain.levels import Levels


@dataclass(frozen=True, eq=False)
class RowPrior:
    """A prior of rows: pseudo-counts (C, card) of components with weights (C,), or (card, card), one row a state.

    `first` (card,) are the pseudo-counts of the first word. `each` says that row h of `alphas` belongs to state h.
    """

    weights: Floats
    alphas: Floats
    first: Floats | None
    each: bool = False

    def of(self, histories: Ints, card: int) -> Floats:
        """The pseudo-counts (n, card) of the rows after some histories (n, order); 0 where there are none."""
        first = (histories == card).all(axis=1) & (histories.shape[1] > 0)
        alpha = np.zeros((len(histories), card))
        if self.each:
            alpha[~first] = self.alphas[histories[~first, -1]]
        else:
            alpha[:] = self.alphas[0]
        if self.first is not None:
            alpha[first] = self.first
        return alpha

    def added(self, histories: Ints, card: int, estimate: str) -> Floats:
        """What pseudo-counts add to the counts of rows (n, card): one less where the mode is taken."""
        alpha = self.of(histories, card)
        return np.where(alpha.any(axis=1, keepdims=True), alpha - (1.0 if estimate == "map" else 0.0), 0.0)


@dataclass(frozen=True, eq=False)
class Histories:
    """The rows of counts: for each history with its own row, its level and its run there, and the total of its row."""

    level: Ints
    run: Ints
    total: Floats

    @classmethod
    def of(cls, levels: Levels, *, initial: bool) -> Histories:
        """Whole histories with counts; `initial` says whether the one before the first word is among them."""
        parts = []
        for n in range(1, levels.order + 1):
            total = levels.totals(n + 1)
            used = total > 0
            if n < levels.order:
                used = used & levels.begins[n - 1]
            if n == 1 and not initial:
                used = used & (levels.levels[0].word != levels.card)
            runs = np.flatnonzero(used)
            parts.append((np.full(len(runs), n, np.int64), runs, total[runs]))
        return cls(*(np.concatenate([part[field] for part in parts]) for field in range(3)))

    def cells(self, levels: Levels) -> tuple[Ints, Ints, Floats]:
        """Row, word and count of every cell in use of these rows."""
        rows, words, counts = [], [], []
        for n in range(1, levels.order + 1):
            mine = np.flatnonzero(self.level == n)
            number = np.full(len(levels.levels[n - 1]), -1, np.int64)
            number[self.run[mine]] = mine
            level = levels.levels[n]
            row = number[level.history]
            keep = (row >= 0) & (level.count > 0)
            rows.append(row[keep])
            words.append(level.word[keep])
            counts.append(level.count[keep])
        return np.concatenate(rows), np.concatenate(words), np.concatenate(counts)


def maximum_likelihood_distribution(levels: Levels, *, uniform: bool) -> BackoffDistribution:
    """``n(h, w) / n(h)``; a history never seen has the uniform distribution, or none."""
    none = np.append(np.full(levels.card, 1.0 / levels.card if uniform else 0.0), 0.0)
    return _single_distribution(levels, none[:-1], 0.0, unseen=1.0)


def dirichlet_distribution(levels: Levels, alpha: Floats, first: Floats | None, *, mode: bool) -> BackoffDistribution:
    """Posterior mean, or mode, of rows with one Dirichlet prior (card,)."""
    counts = alpha - 1.0 if mode else alpha
    if mode:
        _check_modes(levels, alpha, first)
    mean = Categoricals.most_likely(counts, before=1.0 / levels.card).probabilities
    own = None
    if first is not None:
        pulled = first_counts(levels) + first - (1.0 if mode else 0.0)
        own = safe_log(Categoricals.most_likely(pulled, before=1.0 / levels.card).probabilities)
    return _single_distribution(levels, mean, float(counts.sum()), unseen=1.0, first=own)


def first_counts(levels: Levels) -> Floats:
    """How often each word was the first of a sequence (card,)."""
    counts, level = np.zeros(levels.card), levels.levels[1]
    mine = level.history == levels.card
    counts[level.word[mine]] = level.count[mine]
    return counts


def _single_distribution(
    levels: Levels, mean: Floats, strength: float, *, unseen: float, first: Floats | None = None
) -> BackoffDistribution:
    """Every row is ``(n + strength mean) / (N + strength)``; shorter runs only lead to the rows."""
    padded = np.append(mean, 0.0)
    if levels.order == 0:
        mass = float(levels.levels[0].count.sum()) + strength
        padded = (levels.levels[0].count + strength * padded) / mass if mass > 0 else padded
    log_p, log_weight = [safe_log(padded)], []
    for n in range(2, levels.order + 2):
        level, total = levels.levels[n - 1], levels.totals(n)
        whole = levels.begins[n - 2] if n <= levels.order else np.ones(len(levels.levels[n - 2]), dtype=np.bool_)
        mine = whole & (total > 0)
        bottom = np.where(mine, total + strength, 1.0)
        weight = np.where(mine, strength / bottom, unseen)
        own = (level.count / bottom[level.history]) * mine[level.history]
        log_p.append(safe_log(own + weight[level.history] * padded[level.word]))
        log_weight.append(safe_log(weight))
    return BackoffDistribution(levels, tuple(log_p), tuple(log_weight), first)


def _check_modes(levels: Levels, alpha: Floats, first: Floats | None) -> None:
    """A mode exists where no count is negative after one has been taken off each pseudo-count."""
    if (alpha >= 1.0).all() and (first is None or (first >= 1.0).all()):
        return
    raise EstimateError(
        f"The smallest pseudo-count is {min(float(alpha.min()), np.inf if first is None else float(first.min())):g}; "
        "below 1 the posterior of a row with an event never seen has no mode. Use estimate='mean', or pseudo-counts of "
        "at least 1."
    )


def table_distribution(levels: Levels, prior: RowPrior, *, mode: bool) -> TableDistribution:
    """Order 1 with pseudo-counts for each row (card, card)."""
    if mode:
        _check_modes(levels, prior.alphas.ravel(), prior.first)
    counts = np.zeros((levels.card + 1, levels.card))
    level = levels.levels[1]
    counts[level.history, level.word] = level.count
    first = prior.first if prior.first is not None else np.zeros(levels.card)
    rows = counts + np.vstack([prior.alphas, first]) - (1.0 if mode else 0.0)
    if prior.first is None and mode:
        rows[-1] = counts[-1]
    return TableDistribution(safe_log(Categoricals.most_likely(rows, before=1.0 / levels.card).probabilities))


def log_joint(levels: Levels, rows: Histories, weights: Floats, alphas: Floats) -> Floats:
    """Log of weight times the probability of each row of counts as a sequence, for each component (rows, C).

    ``log w_c + log G(A_c) - log G(N + A_c) + sum_j log G(n_j + a_cj) - log G(a_cj)``; cells of count 0 add nothing.
    """
    row, word, count = rows.cells(levels)
    logs = np.empty((len(rows.total), len(weights)))
    for c, alpha in enumerate(alphas):
        mass = float(alpha.sum())
        logs[:, c] = np.bincount(row, log_gamma_ratio(alpha[word], count), minlength=len(rows.total))
        logs[:, c] -= log_gamma_ratio(mass, rows.total)
    return logs + safe_log(weights)


def responsibilities(joint: Floats) -> Floats:
    """Posterior probability of each component for each row (rows, C)."""
    shifted = np.exp(joint - joint.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def mixture_distribution(levels: Levels, prior: RowPrior) -> LevelMixture | BackoffDistribution:
    """Posterior mean of rows under a mixture of Dirichlet distributions."""
    if levels.order == 0:
        posterior = DirichletMixture(weights=prior.weights, alphas=prior.alphas).posterior(levels.levels[0].count[:-1])
        return BackoffDistribution(levels, (safe_log(np.append(posterior.mean(), 0.0)),), ())
    rows = Histories.of(levels, initial=True)
    shares = responsibilities(log_joint(levels, rows, prior.weights, prior.alphas))
    mass = prior.alphas.sum(axis=1)
    bottom = rows.total[:, None] + mass
    scale, share = [], []
    for n in range(1, levels.order + 1):
        mine = rows.level == n
        runs = rows.run[mine]
        size = len(levels.levels[n - 1])
        own, background = np.zeros(size), np.tile(prior.weights, (size, 1))
        own[runs] = (shares[mine] / bottom[mine]).sum(axis=1)
        background[runs] = shares[mine] * mass / bottom[mine]
        scale.append(own)
        share.append(background)
    first = None
    if prior.first is not None:
        first = dirichlet_distribution(levels, np.ones(levels.card), prior.first, mode=False).first
    means = prior.alphas / mass[:, None]
    return LevelMixture(levels, tuple(scale), tuple(share), prior.weights, means, first)
