"""Where EM begins: given values, states that are known, clusters of the steps, and chance; the best of a few tries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.errors import EstimateError
from suffice.models.em.restarts import first_best
from suffice.models.hidden_markov.chains import Observed
from suffice.models.hidden_markov.emissions.contract import Data, Emission, alike
from suffice.models.hidden_markov.expectation import ChainExpectation
from suffice.models.hidden_markov.learning import Learner
from suffice.models.hidden_markov.parameters import ChainParameters, stationary

#: Tries of a run, the EM steps of each, and the steps of the sequences that they look at.
TRIES = 8
SHORT_STEPS = 6
SAMPLE = 20_000
#: Share of a step's weight that begins in the state of its cluster.
OWN = 0.9


@dataclass(frozen=True)
class Start:
    """What is known before EM: the sequences, and the M-step with the values that were given.

    Of sequences that are not in memory, `observed` are some of the first.
    """

    observed: Observed
    learner: Learner
    threads: int | None = 1

    @property
    def _emission(self) -> Emission:
        return self.learner.emission

    def begin(self, number: int, rng: np.random.Generator) -> ChainParameters:
        """The start of a run: the first keeps what was given, all keep what is fixed and what is forbidden."""
        keep = {"initial", "transitions", "emissions"} if number == 0 else set(self.learner.fixed)
        of = self.learner.structure
        given = {"initial": of.initial, "transitions": of.transitions, "emissions": of.emission}
        complete = all(given[name] is not None for name in keep) and len(keep) == 3
        if self.learner.stationary:
            complete = number == 0 and of.transitions is not None and of.emission is not None
        one = len(of.pairs) == 1 and not self._emission.n_free.any()
        tries = 1 if complete or one or self._labelled else TRIES
        starts = [self._try(keep, rng) for _ in range(tries)]
        return starts[0] if tries == 1 else self._best(starts)

    def _best(self, tries: list[ChainParameters]) -> ChainParameters:
        """After a few steps on some of the sequences."""
        # A distribution of the first state that hangs on the transitions matters little here, and costs much.
        learner = replace(self.learner, stationary=False)
        expectation = ChainExpectation(self._sample, self._emission, self.threads)
        heights = []
        for start in tries:
            try:
                heights.append(float(_climbed(expectation, learner, start)))
            except (EstimateError, np.linalg.LinAlgError):
                heights.append(-np.inf)
        return tries[first_best(heights)]

    @cached_property
    def _distinct(self) -> Observed:
        """Each sequence once, with the weight of all its repetitions: EM begins where it does for the weights."""
        return self.observed.merged()

    @cached_property
    def _sample(self) -> Observed:
        """The first sequences, of at most so many steps; of a long first one its beginning."""
        return self._distinct.head(SAMPLE)

    @cached_property
    def _steps(self) -> tuple[Data, Floats]:
        """Each step of the sample once, with its weight (steps,): what is drawn for a step is drawn once."""
        return _each_once(self._sample.values, self._sample.step_weights)

    @property
    def _labelled(self) -> bool:
        return self.observed.labels is not None and bool((self.observed.labels >= 0).any())

    def _try(self, keep: set[str], rng: np.random.Generator) -> ChainParameters:
        of = self.learner.structure
        emission = of.emission if "emissions" in keep and of.emission is not None else self._first_emission(rng)
        transitions = of.transitions if "transitions" in keep and of.transitions is not None else self._rows(rng)
        if self.learner.stationary:
            initial = stationary(transitions)
        elif "initial" in keep and of.initial is not None:
            initial = of.initial
        else:
            weights = of.first * (1.0 + 0.1 * rng.random(len(of.pairs)))
            initial = weights / weights.sum()
        if self.learner.tied and emission is not of.emission:
            emission = {name: alike(array, self.learner.tied, len(of.pairs)) for name, array in emission.items()}
        return ChainParameters(initial, transitions, emission)

    def _rows(self, rng: np.random.Generator) -> Floats:
        """Transitions that tend to stay, with chance; where states are known, from their counts."""
        size = len(self.learner.structure.pairs)
        rows = 0.5 * np.eye(size) + 0.5 * rng.dirichlet(np.ones(size), size=size)
        if self._labelled:
            labels, weights = self._distinct.labels, self._distinct.step_weights
            assert labels is not None
            inner = np.ones(len(labels), bool)
            inner[self._distinct.offsets[:-1]] = False
            later = np.flatnonzero(inner & (labels >= 0) & (np.roll(labels, 1) >= 0))
            counts = np.zeros((size, size))
            np.add.at(counts, (labels[later - 1], labels[later]), weights[later])
            rows = rows + counts
        rows = rows * self.learner.structure.pairs
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))

    def _first_emission(self, rng: np.random.Generator) -> dict[str, Floats]:
        emission = self._emission
        if self._labelled:
            return emission.from_shares(*self._guessed(), rng)
        data, weights = self._steps
        points = emission.spread(data, weights)
        if not points.shape[1] or emission.size == 1:
            return emission.start(data, weights, rng)
        cluster = clusters(points, weights, emission.size, rng)
        shares = np.full((len(points), emission.size), (1 - OWN) / emission.size)
        shares[np.arange(len(points)), cluster] += OWN
        return emission.from_shares(data, shares * weights[:, None], rng)

    def _guessed(self) -> tuple[Data, Floats]:
        """Steps of known state, and some of the others, which together weigh a share of 1 - `OWN` and say nothing.

        Without the others a state could begin with a distribution that forbids what is seen elsewhere.
        """
        observed, size = self._distinct, self._emission.size
        labels, weights = observed.labels, observed.step_weights
        assert labels is not None
        known, unknown = np.flatnonzero(labels >= 0), np.flatnonzero(labels < 0)[:SAMPLE]
        shares = np.full((len(known) + len(unknown), size), (1 - OWN) / size)
        shares[np.arange(len(known)), labels[known]] += OWN
        some = np.concatenate([known, unknown])
        shares *= weights[some, None]
        mass = float(weights[unknown].sum())
        shares[len(known) :] *= float(weights[known].sum()) / mass if mass > 0 else 0.0
        return tuple(part[some] for part in observed.values), shares


def _climbed(expectation: ChainExpectation, learner: Learner, parameters: ChainParameters) -> float:
    value = -np.inf
    for _ in range(SHORT_STEPS):
        statistics = expectation.expect(parameters)
        value = statistics.log_likelihood + learner.log_prior(parameters)
        if not np.isfinite(value):
            return -np.inf
        parameters = learner.learn(statistics, parameters)
    return value


def _each_once(data: Data, weights: Floats) -> tuple[Data, Floats]:
    """Each step once, in the order of first ones, and the sum of its weights; missing values are alike."""
    kinds = [(f"f{number}", part.dtype, part.shape[1:]) for number, part in enumerate(data)]
    whole = np.zeros(len(weights), dtype=kinds)
    for number, part in enumerate(data):
        whole[f"f{number}"] = part
    keys = whole.view(np.dtype((np.void, whole.dtype.itemsize)))
    _, first, label = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.intp)
    rank[order] = np.arange(len(order))
    total = np.bincount(rank[label.reshape(-1)], weights, len(order)).astype(np.float64)
    return tuple(part[first[order]] for part in data), total


def clusters(points: Floats, weights: Floats, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """The cluster of each point (n, d) by k-means of weighted points (n,) from a spread-out start.

    A missing value is at 0.
    """
    rows = np.where(np.isnan(points), 0.0, points)
    centres = rows[[int(rng.choice(len(rows), p=weights / weights.sum()))]]
    nearest = ((rows - centres[0]) ** 2).sum(axis=1)
    while len(centres) < size:
        drawn = weights * nearest if (weights * nearest).sum() > 0 else weights
        centre = rows[int(rng.choice(len(rows), p=drawn / drawn.sum()))]
        centres = np.vstack([centres, centre])
        nearest = np.minimum(nearest, ((rows - centre) ** 2).sum(axis=1))
    label = np.zeros(len(rows), np.intp)
    for _ in range(10):
        away = np.stack([((rows - centre) ** 2).sum(axis=1) for centre in centres], axis=1)
        label = np.argmin(away, axis=1)
        for cluster in range(size):
            if (mine := (label == cluster) & (weights > 0)).any():
                centres[cluster] = np.average(rows[mine], axis=0, weights=weights[mine])
    return label


def before_counts(start: Start, rng: np.random.Generator) -> ChainParameters:
    """The parameters of what counts of known states leave open: even rows, and the distribution of all steps."""
    emission, of = start.learner.emission, start.learner.structure
    rows, first = of.pairs / of.pairs.sum(axis=1, keepdims=True), of.first / of.first.sum()
    even = emission.idle(*start._steps, rng)
    return ChainParameters(
        first if of.initial is None else of.initial,
        rows if of.transitions is None else of.transitions,
        even if of.emission is None else of.emission,
    )
