"""The M-step of a chain, and the counts that it learns from where every state is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import OptionError, listing
from suffice.models.hidden_markov.emissions import contract
from suffice.models.hidden_markov.emissions.contract import UNUSED, Emission
from suffice.models.hidden_markov.expectation import Expectation
from suffice.models.hidden_markov.parameters import Parameters, Statistics, stationary
from suffice.models.hidden_markov.priors import is_number, split_prior
from suffice.models.hidden_markov.rows import normalised, pseudo_log_prior
from suffice.models.hidden_markov.stationary_start import maximise_stationary
from suffice.models.hidden_markov.structure import Structure

Floats = NDArray[np.float64]

#: Expected steps below which a state is reported as unused.
UNUSED_STEPS = 1e-3


@dataclass(frozen=True)
class Learner:
    """The M-step: pseudo-counts of first states (K,) and transitions (K, K), what is fixed, which laws are tied.

    `stationary` says that the first state has the stationary law of the transitions, which are then found by a few
    steps of a quasi-Newton method.
    """

    emission: Emission
    first: Floats
    pairs: Floats
    fixed: frozenset[str] = frozenset()
    tied: tuple[tuple[int, ...], ...] = ()
    stationary: bool = False

    def learn(self, statistics: Statistics, before: Parameters) -> Parameters:
        """Parameters from statistics; rows without counts stay as they were."""
        initial, transitions, emission = before.initial, before.transitions, before.emission
        if "transitions" not in self.fixed:
            counts = statistics.transitions + self.pairs
            if self.stationary:
                transitions = maximise_stationary(statistics.initial + self.first, counts, transitions)
            else:
                transitions = normalised(counts, transitions, UNUSED)
        if self.stationary:
            initial = stationary(transitions)
        elif "initial" not in self.fixed:
            initial = normalised(statistics.initial + self.first, initial, UNUSED)
        if "emissions" not in self.fixed:
            emission = self.emission.maximise_tied(statistics.emission, emission, self.tied)
        return Parameters(initial, transitions, emission)

    def check_tied(self, given: contract.Parameters, states: Sequence[object]) -> None:
        """Raise where start values give states that share a law different ones."""
        for name, array in given.items():
            if not np.array_equal(array, contract.alike(array, self.tied, self.emission.size)):
                groups = [tuple(states[law] for law in group) for group in self.tied]
                raise OptionError(
                    f"emissions holds different {name} for states that share one law by tied={groups!r}. Give them the "
                    "same law."
                )

    # -- parameters as one vector ------------------------------------------------------------------------------------

    def vector(self, parameters: Parameters) -> Floats:
        """The free parameters one after another, in comparable units; a stationary first state is none of them."""
        parts = [np.zeros(0)]
        if "initial" not in self.fixed and not self.stationary:
            parts.append(parameters.initial)
        if "transitions" not in self.fixed:
            parts.append(parameters.transitions.ravel())
        if "emissions" not in self.fixed:
            parts.append(self.emission.vector(parameters.emission))
        return np.concatenate(parts)

    def at(self, vector: Floats, like: Parameters) -> Parameters:
        """The parameters that a vector holds; what is fixed is as in `like`, to the bit."""
        size, begin = len(like.initial), 0
        initial, transitions, emission = like.initial, like.transitions, like.emission
        if "initial" not in self.fixed and not self.stationary:
            initial, begin = vector[:size], size
        if "transitions" not in self.fixed:
            transitions = vector[begin : begin + size * size].reshape(size, size)
            begin += size * size
        if self.stationary:
            initial = stationary(transitions)
        if "emissions" not in self.fixed:
            emission = self.emission.at(vector[begin:], like.emission)
        return Parameters(initial, transitions, emission)

    def inside(self, parameters: Parameters) -> bool:
        """Whether rows hold finite numbers of at least 0, and the laws take theirs."""
        sizes = parameters.initial.sum() + parameters.transitions.sum(axis=1)
        rows = (parameters.initial >= 0).all() and (parameters.transitions >= 0).all() and np.isfinite(sizes).all()
        return bool(rows) and self.emission.inside(parameters.emission)

    def n_params(self, structure: Structure) -> int:
        """Free parameters: what is fixed, forbidden or tied does not count."""
        found = 0
        if "initial" not in self.fixed and not self.stationary:
            found += int(structure.first.sum()) - 1
        if "transitions" not in self.fixed:
            found += int((structure.pairs.sum(axis=1) - 1).sum())
        if "emissions" not in self.fixed:
            repeated = [law for group in self.tied for law in group[1:]]
            found += int(np.delete(self.emission.n_free, repeated).sum()) + self.emission.n_shared
        return found

    # -- the objective -----------------------------------------------------------------------------------------------

    def complete_log_likelihood(self, statistics: Statistics, parameters: Parameters) -> float:
        """Log-likelihood of complete sequences with these statistics, or the expected one."""
        from scipy.special import xlogy

        chain = xlogy(statistics.initial, parameters.initial).sum()
        chain += xlogy(statistics.transitions, parameters.transitions).sum()
        return float(chain + self.emission.expected(statistics.emission, parameters.emission).sum())

    def log_prior(self, parameters: Parameters) -> float:
        """Log prior density up to a constant, of what is not fixed."""
        value = 0.0
        if "initial" not in self.fixed or self.stationary:
            value += float(pseudo_log_prior(self.first, parameters.initial))
        if "transitions" not in self.fixed:
            value += float(pseudo_log_prior(self.pairs, parameters.transitions).sum())
        if "emissions" not in self.fixed:
            each = self.emission.log_prior(parameters.emission)
            repeated = {law for group in self.tied for law in group[1:]}
            value += float(sum(each[law] for law in range(len(each)) if law not in repeated))
        return value


def counted(expectation: Expectation, size: int, like: Parameters) -> Statistics:
    """The statistics of sequences whose states are all known: counts, to the last digit."""
    observed, emission = expectation.observed, expectation.emission
    labels = observed.labels
    assert labels is not None
    weights = observed.step_weights
    initial: Floats = np.bincount(labels[observed.offsets[:-1]], observed.weights, size).astype(np.float64)
    inner = np.ones(len(labels), bool)
    inner[observed.offsets[:-1]] = False
    at = np.flatnonzero(inner)
    cells = labels[at - 1].astype(np.int64) * size + labels[at]
    pairs: Floats = np.bincount(cells, weights[at], size * size).astype(np.float64).reshape(size, size)
    found = Statistics(initial, pairs, {})
    sums = None
    for begin in range(0, len(labels), 1 << 20):
        some = slice(begin, begin + (1 << 20))
        rows = np.zeros((len(labels[some]), size))
        rows[np.arange(len(rows)), labels[some]] = weights[some]
        part = emission.statistics(tuple(piece[some] for piece in observed.values), rows, like.emission)
        sums = part if sums is None else {name: sums[name] + part[name] for name in sums}
    return replace(found, emission=sums or {})


def remarks(
    statistics: Statistics, values: Parameters, learner: Learner, states: Sequence[object], prior: object
) -> tuple[str, ...]:
    """What a report should say of the answer; prior: that of the model, as its options have it."""
    left_open = undefined(statistics, learner, states, split_prior(prior).get("emissions"))
    if "emissions" in learner.fixed:
        return left_open
    sums = learner.emission.gathered(statistics.emission, learner.tied)
    called = [f"state {name!r}" for name in states]
    return (*left_open, *learner.emission.notes(values.emission, sums, called))


def estimate_name(options: Mapping[str, Any], emission: Emission, values: Parameters, *, hidden: bool) -> str:
    """What was aimed at; EM climbs to the mode under pseudo-counts + 1 where they are added as they are."""
    if not split_prior(options["prior"]) and not np.any(emission.log_prior(values.emission)):
        return "maximum likelihood"
    if options["estimate"] == "map":
        return "MAP"
    return "MAP under pseudo-counts + 1" if hidden else "posterior mean"


def undefined(
    statistics: Statistics, learner: Learner, states: Sequence[object], prior: object = None
) -> tuple[str, ...]:
    """What the counts leave undetermined, in words, and what a `prior` of the emissions that is a number leaves out."""
    if len(learner.fixed) == 3:
        return ()
    notes = []
    plain = learner.emission.without_prior
    if is_number(prior) and plain and "emissions" not in learner.fixed:
        notes.append(
            f"the prior {prior} counts states and symbols: the laws of {listing(plain)} have no prior, and were "
            "learned by maximum likelihood; give the law a conjugate prior, or prior={'emissions': ...}"
        )
    visits = statistics.visits
    for at, state in enumerate(states):
        if visits[at] < UNUSED_STEPS:
            notes.append(f"state {state!r} is unused: {visits[at]:.2g} expected steps")
        elif not (statistics.transitions + learner.pairs)[at].sum() > UNUSED and "transitions" not in learner.fixed:
            notes.append(f"no transition leaves state {state!r}: its row was left as it began")
    return tuple(notes)
