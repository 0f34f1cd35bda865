"""Where EM begins: given values, states that are known, clusters of the steps, and chance; the best of a few tries.

All that a start needs of sequences are sums over their steps (`start_rounds`), so that it is the same wherever they are
and in whatever order they come.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.errors import ConvergenceWarning, EstimateError
from suffice.models.em.restarts import first_best
from suffice.models.hidden_markov.emissions import contract
from suffice.models.hidden_markov.emissions.contract import Emission, alike
from suffice.models.hidden_markov.expectation import ChainExpectation
from suffice.models.hidden_markov.learning import Learner
from suffice.models.hidden_markov.parameters import ChainParameters, stationary
from suffice.models.hidden_markov.rounds import HeldChains
from suffice.models.hidden_markov.start_rounds import (
    SAMPLE,
    AllSteps,
    Axes,
    ByCentre,
    ByLabel,
    Chosen,
    ClusterSums,
    Evenly,
    Guess,
    GuessedMoments,
    GuessedSteps,
    Pieces,
    Points,
    ShortSteps,
    Softly,
    StartSurvey,
)

#: Tries of a run, the EM steps of each, and the steps of k-means before them.
TRIES = 8
SHORT_STEPS = 6
MOVES = 5
#: Steps of EM of a plain chain before durations become explicit.
PLAIN_STEPS = 10


@dataclass(frozen=True)
class Start:
    """What is known before EM: the sequences, wherever they are, and the M-step with the values that were given."""

    chains: HeldChains
    learner: Learner

    @property
    def _emission(self) -> Emission:
        return self.learner.emission

    def _ask(self, question: Callable[[ChainExpectation, Any], Any], parameters: Any = None) -> Any:
        return self.chains.sum(parameters, by=question)

    def begin(self, number: int, rng: np.random.Generator) -> ChainParameters:
        """The start of a run: the first keeps what was given, all keep what is fixed and what is forbidden.

        Explicit durations begin where a few steps of a plain chain lead, whose states last about as long.
        """
        if self.learner.durations:
            return self._lasting(number, rng)
        keep = {"initial", "transitions", "emissions"} if number == 0 else set(self.learner.fixed)
        of = self.learner.structure
        given = {"initial": of.initial, "transitions": of.transitions, "emissions": of.emission}
        complete = all(given[name] is not None for name in keep) and len(keep) == 3
        if self.learner.stationary:
            complete = number == 0 and of.transitions is not None and of.emission is not None
        one = len(of.pairs) == 1 and not self._emission.n_free.any()
        tries = 1 if complete or one or self._labelled else TRIES
        starts = self._tries(keep, tries, rng)
        return starts[0] if tries == 1 else self._best(starts)

    def _lasting(self, number: int, rng: np.random.Generator) -> ChainParameters:
        of, plain = self.learner.structure, replace(self, learner=self.learner.plain())
        begun = plain.begin(number, rng)
        kept = number == 0 and of.emission is not None and of.transitions is not None
        for _ in range(0 if kept else PLAIN_STEPS):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                begun = plain.learner.learn(self.chains.expect(begun), begun)
        if number == 0:
            initial = begun.initial if of.initial is None else of.initial
            begun = replace(begun, initial=initial, emission=begun.emission if of.emission is None else of.emission)
        return self.learner.from_plain(begun)

    def _best(self, tries: list[ChainParameters]) -> ChainParameters:
        """After a few steps on some of the sequences."""
        # A distribution of the first state that hangs on the transitions matters little here, and costs much.
        learner = replace(self.learner, stationary=False)
        heights, climbing = np.full(len(tries), -np.inf), dict(enumerate(tries))
        for _ in range(SHORT_STEPS):
            for number, statistics in self._expected(climbing).items():
                parameters = climbing.pop(number)
                heights[number] = statistics.log_likelihood + learner.log_prior(parameters)
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", ConvergenceWarning)  # A try is no fit.
                        climbing[number] = learner.learn(statistics, parameters)
                except (EstimateError, np.linalg.LinAlgError):
                    heights[number] = -np.inf
            heights[[number for number in range(len(tries)) if number not in climbing]] = -np.inf
        return tries[first_best(heights.tolist())]

    def _expected(self, climbing: dict[int, ChainParameters]) -> dict[int, Any]:
        """The E-steps of all tries in one round; those that exclude a sequence are not among them."""
        question = ShortSteps(self._chosen)
        try:
            expected = dict(zip(climbing, self._ask(question, list(climbing.values())).parts, strict=True))
        except (EstimateError, np.linalg.LinAlgError):
            expected = {}
            for number, parameters in climbing.items():
                try:
                    (expected[number],) = self._ask(question, [parameters]).parts
                except (EstimateError, np.linalg.LinAlgError):
                    continue
        for number in [number for number in climbing if number not in expected]:
            del climbing[number]
        possible = {number: one for number, one in expected.items() if np.isfinite(one.log_likelihood)}
        for number in expected.keys() - possible.keys():
            del climbing[number]
        return possible

    # -- what is asked of the sequences ------------------------------------------------------------------------------

    @cached_property
    def _survey(self) -> tuple[Any, ...]:
        """Steps by range of marks, steps in all, weights of known and of unknown states, known transitions."""
        parts: tuple[Any, ...] = self._ask(StartSurvey(len(self.learner.structure.pairs))).parts
        return parts

    @property
    def _labelled(self) -> bool:
        return self.chains.labelled

    @property
    def _of_few(self) -> bool:
        """Whether sums over few steps are answered, from which clusters are made."""
        return self.chains.held.tells_of_few or self._emission.in_pieces

    @cached_property
    def _chosen(self) -> Chosen:
        """All sequences where they have few steps, or may not be told apart, else those with the lowest marks."""
        if not self._of_few:
            return Chosen()
        by_range, steps = self._survey[:2]
        if steps <= SAMPLE:
            return Chosen()
        return Chosen(1 + int(np.searchsorted(np.cumsum(by_range), min(SAMPLE, by_range.sum() * (1 - 1e-12)))))

    @cached_property
    def _all(self) -> tuple[contract.Statistics, Points]:
        """The sums that the emission begins with, and the steps as points; known states choose among all steps."""
        chosen = Chosen() if self._labelled else self._chosen
        totals, spread = self._ask(AllSteps(chosen)).parts
        weight = np.where(spread.weight > 0, spread.weight, 1.0)
        scale = np.sqrt(spread.scatter / weight)
        return totals.sums, Points(chosen, spread.mean, np.where(scale > 0, scale, 1.0))

    # -- tries -------------------------------------------------------------------------------------------------------

    def _tries(self, keep: set[str], tries: int, rng: np.random.Generator) -> list[ChainParameters]:
        of = self.learner.structure
        if "emissions" in keep and of.emission is not None:
            return [self._try(keep, of.emission, rng) for _ in range(tries)]
        totals, points = self._all
        if not len(points.mean) and (not self._labelled or self._emission.in_pieces):
            return [self._try(keep, self._emission.start(totals, rng), rng) for _ in range(tries)]
        if self._emission.size == 1 and not self._labelled:
            return [self._try(keep, self._emission.start(totals, rng), rng) for _ in range(tries)]
        if self._labelled:
            _, _, known, unknown, _ = self._survey
            guesses: list[Guess] = [ByLabel(self._emission.size, known / unknown if unknown > 0 else 0.0)]
            rngs = [rng]
        else:
            rngs = list(rng.spawn(tries))
            if self._of_few:
                guesses = [ByCentre(centres) for centres in self._centres(rngs)]
            else:
                size = self._emission.size, len(points.mean)
                guesses = [Softly(own.standard_normal(size)) for own in rngs]
        emissions = self._learned(guesses, rngs)
        return [self._try(keep, one, own) for one, own in zip(emissions, rngs, strict=True)]

    def _try(self, keep: set[str], emission: contract.Parameters, rng: np.random.Generator) -> ChainParameters:
        of = self.learner.structure
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
            rows = rows + self._survey[4]
        rows = rows * self.learner.structure.pairs
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))

    def _centres(self, rngs: Sequence[np.random.Generator]) -> Floats:
        """Centres of clusters (tries, K, d), by k-means from a spread-out start.

        The start is drawn among the means of pieces of a line through the points, in a random direction.
        """
        points = self._all[1]
        lines = np.stack([_direction(len(points.mean), rng) for rng in rngs])
        pieces = self._ask(Pieces(points), lines)
        centres = np.stack([_spread_out(some, self._emission.size, r) for some, r in zip(pieces, rngs, strict=True)])
        for _ in range(MOVES):
            sums = self._ask(ClusterSums(points), centres)
            weight = sums[:, :, :1]
            centres = np.where(weight > 0, sums[:, :, 1:] / np.where(weight > 0, weight, 1.0), centres)
        return np.asarray(centres)

    def _learned(self, guesses: Sequence[Guess], rngs: Sequence[np.random.Generator]) -> list[contract.Parameters]:
        """The parameters of guesses of the states."""
        totals, points = self._all
        befores = [self._emission.before(totals, rng) for rng in rngs]
        axes: list[Axes | None] = [None] * len(guesses)
        if self._emission.in_pieces:
            axes = [Axes.of(moments) for moments in self._ask(GuessedMoments(points), list(guesses))]
        sums = self._ask(GuessedSteps(points), list(zip(guesses, axes, befores, strict=True))).parts
        return [self._emission.from_guess(one.sums, before) for one, before in zip(sums, befores, strict=True)]

    def idle(self, rng: np.random.Generator) -> contract.Parameters:
        """Parameters of distributions without steps."""
        totals, points = self._all
        before = self._emission.before(totals, rng)
        (even,) = self._ask(GuessedSteps(points), [(Evenly(self._emission.size), None, before)]).parts
        return self._emission.idle(even.sums, before)


def _direction(d: int, rng: np.random.Generator) -> Floats:
    """A line through points of d columns."""
    if d == 1:
        return np.ones(1)
    line = rng.standard_normal(d)
    return np.asarray(line / np.linalg.norm(line))


def _spread_out(pieces: Floats, size: int, rng: np.random.Generator) -> Floats:
    """Centres (K, d) among the means of pieces (pieces, 1 + d) of weight and sums, the farther the likelier."""
    used = pieces[pieces[:, 0] > 0]
    weights, rows = used[:, 0], used[:, 1:] / used[:, :1]
    centres = rows[[int(rng.choice(len(rows), p=weights / weights.sum()))]]
    away = ((rows - centres[0]) ** 2).sum(axis=1)
    while len(centres) < size:
        drawn = weights * away if (weights * away).sum() > 0 else weights
        centre = rows[int(rng.choice(len(rows), p=drawn / drawn.sum()))]
        centres = np.vstack([centres, centre])
        away = np.minimum(away, ((rows - centre) ** 2).sum(axis=1))
    return centres


def before_counts(start: Start, rng: np.random.Generator) -> ChainParameters:
    """The parameters of what counts of known states leave open: even rows, and the distribution of all steps."""
    of = start.learner.structure
    rows, first = of.pairs / of.pairs.sum(axis=1, keepdims=True), of.first / of.first.sum()
    return ChainParameters(
        first if of.initial is None else of.initial,
        rows if of.transitions is None else of.transitions,
        start.idle(rng) if of.emission is None else of.emission,
        start.learner.durations,
    )
