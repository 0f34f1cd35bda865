"""From a summary to a distribution: the words, the counted runs, and the way of smoothing that was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import OptionError, listing
from suffice.families.base import as_floats
from suffice.families.dirichlet_mixture import DirichletMixture
from suffice.fitting.control import Control, Outcome
from suffice.models.markov_chain import discounts
from suffice.models.markov_chain.distributions import BackoffDistribution, MixtureDistribution, NextState
from suffice.models.markov_chain.hyper import learn_prior, said
from suffice.models.markov_chain.input import Vocabulary, held_out_of, vocabulary, windows_of
from suffice.models.markov_chain.interpolation import Evidence, interpolated_law
from suffice.models.markov_chain.levels import Levels, build_levels
from suffice.models.markov_chain.priors import row_prior
from suffice.models.markov_chain.rows import (
    Histories,
    RowPrior,
    dirichlet_law,
    log_joint,
    maximum_likelihood_law,
    mixture_law,
    table_law,
)
from suffice.models.markov_chain.smoothing import AbsoluteDiscount, Interpolation, Katz, KneserNey, Smoothing
from suffice.sources.ngrams import WindowLayout
from suffice.statistics import Summary

Floats = NDArray[np.float64]


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
class Solved:
    """A distribution, the runs it was learned from, and what is to be told about it.

    told: the level of learned weights whose `outcome` this is.
    """

    distribution: NextState
    words: Vocabulary
    levels: Levels
    method: str
    outcome: Outcome | None = None
    prior: RowPrior | None = None
    weights: tuple[Floats, ...] = ()
    background: Floats | None = None
    evidence: tuple[Evidence, ...] = ()
    told: int = -1
    log_evidence: float | None = None
    notes: list[str] = field(default_factory=list)
    directions: tuple[str, ...] = ()


def solve(summary: Summary, layout: WindowLayout, options: ChainOptions) -> Solved:
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
        distribution = maximum_likelihood_law(levels, uniform=options.unseen == "uniform")
        return Solved(distribution, words, levels, "relative frequencies")
    if isinstance(way, Interpolation):
        return _by_interpolation(levels, words, way, options, held_out_of(summary, layout, words), bounded=bounded)
    found, notes, method = _by_discounts(levels, way)
    return Solved(found, words, levels, method, notes=notes)


def _by_discounts(levels: Levels, way: Smoothing) -> tuple[BackoffDistribution, list[str], str]:
    if isinstance(way, KneserNey):
        method = "modified Kneser-Ney" if way.modified else "Kneser-Ney"
        return (*discounts.kneser_ney_law(levels, way), method)
    if isinstance(way, Katz):
        return (*discounts.katz_law(levels, way), "Katz backoff")
    if isinstance(way, AbsoluteDiscount):
        method = "absolute discounting" + (", backoff" if way.backoff else ", interpolated")
        return (*discounts.absolute_law(levels, way), method)
    raise OptionError(
        f"smoothing is {way!r}; expected Interpolation, AbsoluteDiscount, Katz or KneserNey, or None without smoothing."
    )


def _by_interpolation(
    levels: Levels, words: Vocabulary, way: Interpolation, options: ChainOptions, held_out: Any, *, bounded: bool
) -> Solved:
    if isinstance(way.weight, tuple) and len(way.weight) != levels.order:
        raise OptionError(
            f"Interpolation has {len(way.weight)} weights; a chain of order {levels.order} needs as many."
        )
    if not isinstance(way.background, str):
        way = way.set_params(background=_given_background(way.background, words))
    found = interpolated_law(levels, way, options.control, bounded=bounded, held_out=held_out)
    method = f"interpolation, {way.weight} weight" if way.learned else "interpolation, fixed weight"
    told = _told(found.outcomes)
    return Solved(
        found.law,
        words,
        levels,
        method,
        outcome=found.outcomes[told] if found.outcomes else None,
        weights=found.weights,
        background=found.background,
        evidence=found.evidence,
        told=told,
        notes=list(found.notes),
    )


def _told(outcomes: tuple[Outcome, ...]) -> int:
    """The level whose fit is told: that of the longest histories, unless another did not converge."""
    return next((level for level, outcome in enumerate(outcomes) if not outcome.converged), len(outcomes) - 1)


def _given_background(background: Any, words: Vocabulary) -> tuple[float, ...]:
    """Probabilities in the order of the words."""
    if isinstance(background, Mapping):
        found = np.zeros(words.card)
        for state, value in background.items():
            found[words.place(state)] = float(as_floats(value, "background"))
    else:
        found = as_floats(getattr(background, "values", background), "background")
    if found.shape != (words.card,) or not (found >= 0).all() or not np.isclose(found.sum(), 1.0):
        raise OptionError(
            f"The background must have one probability for each of {words.card} states ({listing(words.states)}) and "
            "add up to 1."
        )
    return tuple(float(value) for value in found / found.sum())


def _by_prior(levels: Levels, words: Vocabulary, order: int, options: ChainOptions) -> Solved:
    prior = row_prior(options.prior, words, order)
    mode = options.estimate == "map"
    method = "MAP" if mode else "posterior mean"
    if prior.each:
        if options.learn_prior:
            raise OptionError("learn_prior is for a prior that the rows share; this one has a row for each state.")
        return Solved(table_law(levels, prior, mode=mode), words, levels, method, prior=prior)
    outcome, directions = None, tuple[str, ...]()
    if options.learn_prior:
        if order == 0:
            raise OptionError("learn_prior needs several rows to learn from; a chain of order 0 has one.")
        learned = learn_prior(levels, prior.weights, prior.alphas, options.control)
        prior, outcome = RowPrior(learned.weights, learned.alphas, prior.first), learned.outcome
        directions = said(learned, words.states)
        method += ", prior learned by EM"
    distribution: BackoffDistribution | MixtureDistribution
    if len(prior.weights) == 1:
        distribution = dirichlet_law(levels, prior.alphas[0], prior.first, mode=mode)
    else:
        distribution = mixture_law(levels, prior)
    return Solved(
        distribution,
        words,
        levels,
        method,
        outcome=outcome,
        prior=prior,
        log_evidence=_log_evidence(levels, prior),
        notes=list(directions),
        directions=directions,
    )


def _log_evidence(levels: Levels, prior: RowPrior) -> float:
    """Log probability of all rows, the first words among them, under the prior."""
    if levels.order == 0:
        mixture = DirichletMixture(weights=prior.weights, alphas=prior.alphas)
        return float(mixture.log_evidence(levels.levels[0].count[:-1]))
    rows = Histories.of(levels, initial=prior.first is None)
    total = float(np.logaddexp.reduce(log_joint(levels, rows, prior.weights, prior.alphas), axis=1).sum())
    if prior.first is not None and levels.totals(2)[levels.card] > 0:
        mine = levels.levels[1].history == levels.card
        counts = np.zeros(levels.card)
        counts[levels.levels[1].word[mine]] = levels.levels[1].count[mine]
        from suffice.families.dirichlet import Dirichlet

        total += float(Dirichlet(prior.first).log_evidence(counts))
    return total
