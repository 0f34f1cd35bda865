"""From a summary to a distribution: the words, the counted runs, and the way of smoothing that was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.errors import OptionError, listing
from suffice.families.base import as_floats
from suffice.families.dirichlet import Dirichlet
from suffice.families.dirichlet_mixture import DirichletMixture
from suffice.fitting.control import Control, Outcome
from suffice.models.markov_chain import discounts
from suffice.models.markov_chain.distributions import BackoffDistribution, LevelMixture, NextState
from suffice.models.markov_chain.hyper import learn_prior, limits_reached
from suffice.models.markov_chain.input import Vocabulary, held_out_of, vocabulary, windows_of
from suffice.models.markov_chain.interpolation import interpolated_distribution
from suffice.models.markov_chain.levels import Levels, build_levels
from suffice.models.markov_chain.priors import row_prior
from suffice.models.markov_chain.rows import (
    Histories,
    RowPrior,
    dirichlet_distribution,
    first_counts,
    log_joint,
    maximum_likelihood_distribution,
    mixture_distribution,
    table_distribution,
)
from suffice.models.markov_chain.smoothing import AbsoluteDiscount, Interpolation, Katz, KneserNey, Smoothing
from suffice.sources.ngrams import WindowLayout
from suffice.statistics import Summary


@dataclass(frozen=True)
class ChainOptions:
    """The options that a solve looks at."""

    smoothing: Smoothing | None
    prior: Any
    estimate: str
    states: tuple[Any, ...] | None
    unknown: Any
    min_count: int
    unseen: str
    learn_prior: bool
    control: Control


@dataclass(frozen=True)
class SolvedChain:
    """A distribution, the runs it was learned from, and what is to be said about it.

    With several levels of learned weights the `outcome` is that of the longest histories, or of the first ones that did
    not converge.
    """

    distribution: NextState
    words: Vocabulary
    levels: Levels
    method: str
    outcome: Outcome | None = None
    prior: RowPrior | None = None
    weights: tuple[Floats, ...] = ()
    background: Floats | None = None
    notes: list[str] = field(default_factory=list)


def solve(summary: Summary, layout: WindowLayout, options: ChainOptions) -> SolvedChain:
    """Learn a chain from the counts of its windows."""
    words = vocabulary(summary, layout, options.states, options.unknown, options.min_count)
    windows, weights = windows_of(summary, layout, words)
    bounded = layout.end is not None
    # A declared vocabulary may leave words out; windows that hold one have no probability to learn.
    if windows.min(initial=0) < 0:
        known = (windows >= 0).all(axis=1)
        windows, weights = windows[known], weights[known]
    columns = list(windows.T)
    del windows
    levels = build_levels(columns, weights, words.card, first_events=bounded)
    del weights
    if options.prior is not None:
        return _by_prior(levels, words, layout.order, options)
    way = options.smoothing
    if way is None:
        distribution = maximum_likelihood_distribution(levels, uniform=options.unseen == "uniform")
        return SolvedChain(distribution, words, levels, "relative frequencies")
    if isinstance(way, Interpolation):
        return _by_interpolation(levels, words, way, options, held_out_of(summary, layout, words), bounded=bounded)
    distribution, notes = _by_discounts(levels, way)
    return SolvedChain(distribution, words, levels, method_of(way), notes=notes)


def method_of(way: Smoothing) -> str:
    """What a way of smoothing is called in receipts."""
    if isinstance(way, Interpolation):
        return f"interpolation, {way.weight if way.learned else 'fixed'} weight"
    if isinstance(way, KneserNey):
        return "modified Kneser-Ney" if way.modified else "Kneser-Ney"
    if isinstance(way, AbsoluteDiscount):
        return f"absolute discounting, {'backoff' if way.backoff else 'interpolated'}"
    return "Katz backoff"


def _by_discounts(levels: Levels, way: Smoothing) -> tuple[BackoffDistribution, list[str]]:
    if isinstance(way, KneserNey):
        return discounts.kneser_ney_distribution(levels, way)
    if isinstance(way, Katz):
        return discounts.katz_distribution(levels, way)
    if isinstance(way, AbsoluteDiscount):
        return discounts.absolute_distribution(levels, way)
    raise OptionError(
        f"smoothing is {way!r}; expected Interpolation, AbsoluteDiscount, Katz or KneserNey, or None without smoothing."
    )


def _by_interpolation(
    levels: Levels, words: Vocabulary, way: Interpolation, options: ChainOptions, held_out: Any, *, bounded: bool
) -> SolvedChain:
    if isinstance(way.weight, tuple) and len(way.weight) != levels.order:
        raise OptionError(
            f"Interpolation has {len(way.weight)} weights; a chain of order {levels.order} needs as many."
        )
    way = with_background(way, words)
    learned = interpolated_distribution(levels, way, options.control, bounded=bounded, held_out=held_out)
    return SolvedChain(
        learned.distribution,
        words,
        levels,
        method_of(way),
        outcome=next((one for one in learned.outcomes if not one.converged), (None, *learned.outcomes)[-1]),
        weights=learned.weights,
        background=learned.background,
        notes=list(learned.notes),
    )


def with_background(way: Interpolation, words: Vocabulary) -> Interpolation:
    """An interpolation whose background is a name, or probabilities in the order of the words."""
    if isinstance(way.background, str):
        return way
    return way.set_params(background=_given_background(way.background, words))


def _given_background(background: Any, words: Vocabulary) -> tuple[float, ...]:
    """Probabilities in the order of the words."""
    if isinstance(background, Mapping):
        shares = np.zeros(words.card)
        for state, value in background.items():
            shares[words.place(state)] = float(as_floats(value, "background"))
    else:
        shares = as_floats(getattr(background, "values", background), "background")
    if shares.shape != (words.card,) or not (shares >= 0).all() or not np.isclose(shares.sum(), 1.0):
        raise OptionError(
            f"The background must have one probability for each of {words.card} states ({listing(words.states)}) and "
            "add up to 1."
        )
    return tuple(float(value) for value in shares / shares.sum())


def _by_prior(levels: Levels, words: Vocabulary, order: int, options: ChainOptions) -> SolvedChain:
    prior = row_prior(options.prior, words, order)
    mode = options.estimate == "map"
    method = "MAP" if mode else "posterior mean"
    if prior.each:
        if options.learn_prior:
            raise OptionError("learn_prior is for a prior that the rows share; this one has a row for each state.")
        return SolvedChain(table_distribution(levels, prior, mode=mode), words, levels, method, prior=prior)
    outcome, notes = None, list[str]()
    if options.learn_prior:
        if order == 0:
            raise OptionError("learn_prior needs several rows to learn from; a chain of order 0 has one.")
        learned = learn_prior(levels, prior.weights, prior.alphas, options.control)
        prior, outcome = RowPrior(learned.weights, learned.alphas, prior.first), learned.outcome
        notes = list(limits_reached(levels, prior, words.states))
        method += ", prior learned by EM"
    distribution: BackoffDistribution | LevelMixture
    if len(prior.weights) == 1:
        distribution = dirichlet_distribution(levels, prior.alphas[0], prior.first, mode=mode)
    else:
        distribution = mixture_distribution(levels, prior)
    return SolvedChain(
        distribution,
        words,
        levels,
        method,
        outcome=outcome,
        prior=prior,
        notes=notes,
    )


def log_evidence(levels: Levels, prior: RowPrior) -> float:
    """Log probability of all rows, the first words among them, under the prior."""
    if levels.order == 0:
        mixture = DirichletMixture(weights=prior.weights, alphas=prior.alphas)
        return float(mixture.log_evidence(levels.levels[0].count[:-1]))
    rows = Histories.of(levels, initial=prior.first is None)
    total = float(np.logaddexp.reduce(log_joint(levels, rows, prior.weights, prior.alphas), axis=1).sum())
    if prior.first is not None and levels.totals(2)[levels.card] > 0:
        total += float(Dirichlet(prior.first).log_evidence(first_counts(levels)))
    return total
