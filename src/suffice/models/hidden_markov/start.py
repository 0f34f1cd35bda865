"""Where EM begins: given values, states that are known, clusters of the steps, and chance; the best of a few tries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import EstimateError
from suffice.models.hidden_markov.emissions.contract import Emission
from suffice.models.hidden_markov.expectation import Expectation
from suffice.models.hidden_markov.learning import HiddenMarkovEM, Learner, counted
from suffice.models.hidden_markov.observed import Observed
from suffice.models.hidden_markov.parameters import Parameters, stationary

Floats = NDArray[np.float64]

#: Tries of a run, the EM steps of each, and the steps of the sequences that they look at.
TRIES = 8
SHORT_STEPS = 6
SAMPLE = 20_000
#: Share of a step's weight that begins in the state of its cluster.
OWN = 0.9


@dataclass(frozen=True)
class Start:
    """What is known before EM.

    `initial`, `transitions` and `emission` are the values that were given, or None. `allowed` (K, K) and
    `allowed_first` (K,) say which cells may be above 0.
    """

    observed: Observed
    learner: Learner
    initial: Floats | None
    transitions: Floats | None
    emission: dict[str, Floats] | None
    allowed: NDArray[np.bool_]
    allowed_first: NDArray[np.bool_]
    threads: int | None = 1

    @property
    def _laws(self) -> Emission:
        return self.learner.emission

    def begin(self, number: int, rng: np.random.Generator) -> Parameters:
        """The start of a run: the first keeps what was given, all keep what is fixed and what is forbidden."""
        keep = {"initial", "transitions", "emissions"} if number == 0 else set(self.learner.fixed)
        given = {"initial": self.initial, "transitions": self.transitions, "emissions": self.emission}
        complete = all(given[name] is not None for name in keep) and len(keep) == 3
        if self.learner.stationary:
            complete = number == 0 and self.transitions is not None and self.emission is not None
        one = len(self.allowed) == 1 and self._laws.n_params == 0
        tries = 1 if complete or one or self._labelled else TRIES
        found = [self._try(keep, rng) for _ in range(tries)]
        return found[0] if tries == 1 else self._best(found)

    def _best(self, tries: list[Parameters]) -> Parameters:
        """After a few steps on some of the sequences."""
        # A law of the first state that hangs on the transitions matters little here, and costs much.
        learner = replace(self.learner, stationary=False)
        problem = HiddenMarkovEM(Expectation(self._sample, self._laws, self.threads), learner)
        best, height = tries[0], -np.inf
        for start in tries:
            try:
                value = _climbed(problem, start)
            except (EstimateError, np.linalg.LinAlgError):
                continue
            if value > height:
                best, height = start, value
        return best

    @cached_property
    def _sample(self) -> Observed:
        """The first sequences, of at most so many steps; of a long first one its beginning."""
        if self.observed.n_steps <= SAMPLE:
            return self.observed
        last = int(np.searchsorted(self.observed.offsets, SAMPLE, side="right")) - 1
        return self.observed.take(0, last) if last >= 1 else self.observed.take(0, 1).steps(0, SAMPLE)

    @property
    def _labelled(self) -> bool:
        return self.observed.labels is not None and bool((self.observed.labels >= 0).any())

    def _try(self, keep: set[str], rng: np.random.Generator) -> Parameters:
        emission = self.emission if "emissions" in keep and self.emission is not None else self._emission(rng)
        transitions = self.transitions if "transitions" in keep and self.transitions is not None else self._rows(rng)
        if self.learner.stationary:
            initial = stationary(transitions)
        elif "initial" in keep and self.initial is not None:
            initial = self.initial
        else:
            weights = self.allowed_first * (1.0 + 0.1 * rng.random(len(self.allowed)))
            initial = weights / weights.sum()
        if self.learner.tied and emission is not self.emission:
            emission = {name: _tied(array, self.learner.tied, len(self.allowed)) for name, array in emission.items()}
        return Parameters(initial, transitions, emission)

    def _rows(self, rng: np.random.Generator) -> Floats:
        """Transitions that tend to stay, with chance; where states are known, from their counts."""
        size = len(self.allowed)
        rows = 0.5 * np.eye(size) + 0.5 * rng.dirichlet(np.ones(size), size=size)
        if self._labelled:
            labels = self.observed.labels
            assert labels is not None
            inner = np.ones(len(labels), bool)
            inner[self.observed.offsets[:-1]] = False
            at = np.flatnonzero(inner & (labels >= 0) & (np.roll(labels, 1) >= 0))
            counts = np.zeros((size, size))
            np.add.at(counts, (labels[at - 1], labels[at]), 1.0)
            rows = rows + counts
        rows = rows * self.allowed
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))

    def _emission(self, rng: np.random.Generator) -> dict[str, Floats]:
        laws = self._laws
        if self._labelled:
            labels = self.observed.labels
            assert labels is not None
            known = np.flatnonzero(labels >= 0)
            shares = np.full((len(known), laws.size), (1 - OWN) / laws.size)
            shares[np.arange(len(known)), labels[known]] += OWN
            data = tuple(part[known] for part in self.observed.data)
            return laws.from_shares(data, shares, rng)
        points = laws.spread(self._sample.data)
        if not points.shape[1] or laws.size == 1:
            return laws.start(self._sample.data, rng)
        cluster = clusters(points, laws.size, rng)
        shares = np.full((len(points), laws.size), (1 - OWN) / laws.size)
        shares[np.arange(len(points)), cluster] += OWN
        return laws.from_shares(self._sample.data, shares, rng)


def _tied(array: Floats, groups: Any, size: int) -> Floats:
    """Laws of a group begin alike: as the first of them."""
    found = array.reshape(size, -1, *array.shape[1:]).copy()
    for group in groups:
        found[list(group)] = found[group[0]]
    return found.reshape(array.shape)


def _climbed(problem: HiddenMarkovEM, parameters: Parameters) -> float:
    value = -np.inf
    for _ in range(SHORT_STEPS):
        statistics = problem.expectation.expect(parameters)
        value = problem.objective(statistics, parameters)
        if not np.isfinite(value):
            return -np.inf
        parameters = problem.learner.learn(statistics, parameters)
    return value


def clusters(points: Floats, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """The cluster of each point (n, d) by k-means from a spread-out start; a gap is at the mean."""
    rows = np.where(np.isnan(points), 0.0, points)
    centres = rows[[int(rng.integers(len(rows)))]]
    nearest = ((rows - centres[0]) ** 2).sum(axis=1)
    while len(centres) < size:
        total = nearest.sum()
        at = int(rng.choice(len(rows), p=nearest / total)) if total > 0 else int(rng.integers(len(rows)))
        centres = np.vstack([centres, rows[at]])
        nearest = np.minimum(nearest, ((rows - rows[at]) ** 2).sum(axis=1))
    label = np.zeros(len(rows), np.intp)
    for _ in range(10):
        away = np.stack([((rows - centre) ** 2).sum(axis=1) for centre in centres], axis=1)
        label = np.argmin(away, axis=1)
        for at in range(size):
            if (label == at).any():
                centres[at] = rows[label == at].mean(axis=0)
    return label


def known_counts(expectation: Expectation, start: Start, rng: np.random.Generator) -> tuple[Any, Parameters]:
    """Counts where all states are known, and the parameters of rows that have none: uniform, and the law of all."""
    laws, size = start.learner.emission, len(start.allowed)
    rows = start.allowed / start.allowed.sum(axis=1, keepdims=True)
    first = start.allowed_first / start.allowed_first.sum()
    sample = start._sample.data
    even = laws.from_shares(sample, np.full((len(sample[0]), laws.size), 1.0 / laws.size), rng)
    if not laws.spread(sample).shape[1] and "probabilities" in even:
        even = {name: np.full(array.shape, 1.0 / array.shape[-1]) for name, array in even.items()}
    before = Parameters(
        first if start.initial is None else start.initial,
        rows if start.transitions is None else start.transitions,
        even if start.emission is None else start.emission,
    )
    return counted(expectation, size, before), before
