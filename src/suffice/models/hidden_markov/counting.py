"""The estimate where every state is known: counts, and one division."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from suffice.fitting.contract import Found, Judgement
from suffice.fitting.control import Control
from suffice.models.hidden_markov.certificate import counted_certificate, distance_from_shares
from suffice.models.hidden_markov.emissions.contract import Emission
from suffice.models.hidden_markov.fitted import HiddenMarkovFitted
from suffice.models.hidden_markov.learning import Learner, estimate_name, remarks
from suffice.models.hidden_markov.matched import LearnedFrom
from suffice.models.hidden_markov.parameters import ChainParameters, Statistics
from suffice.solvers.fixed_point import largest_change


@dataclass(frozen=True, eq=False)
class KnownSequences:
    """The statistics of sequences whose states are all known; they add up.

    `before` are the parameters of what they leave open, `rows` the steps of the sequences, `notes` what reading
    them has to say.
    """

    statistics: Statistics
    before: ChainParameters
    emission: Emission
    states: tuple[Hashable, ...]
    columns: list[Hashable] | None
    rows: int
    passes: int = 1
    notes: tuple[str, ...] = ()

    @property
    def weight(self) -> float:
        """Steps, weighted."""
        return float(self.statistics.visits.sum())


@dataclass(frozen=True, eq=False)
class Counting:
    """Counts of known states meet the parameters of a chain and its emissions."""

    options: Mapping[str, Any]
    data: KnownSequences
    learner: Learner

    def solve(self, control: Control) -> Found[HiddenMarkovFitted]:
        """Shares of the counts, and the distributions of the steps of each state."""
        data, learner = self.data, self.learner
        values = learner.learn(data.statistics, data.before)
        return Found(
            HiddenMarkovFitted(data.states, data.columns, data.emission, values, learner.n_params, hidden=False),
            "counts of known states",
            estimate_name(self.options, data.emission, values, hidden=False),
            notes=(*remarks(data.statistics, values, learner, data.states, self.options["prior"]), *data.notes),
        )

    def judge(self, fitted: HiddenMarkovFitted) -> Judgement:
        """What the parameters lose to their maximum, computed without the M-step."""
        data, learner, values = self.data, self.learner, fitted.parameters
        moved = learner.learn(data.statistics, values)
        step = largest_change(learner.vector(values), learner.vector(moved))
        step = max(step, distance_from_shares(data.statistics, values, learner))
        certificate = counted_certificate(data.statistics, values, learner, data.states)
        value = learner.complete_log_likelihood(data.statistics, values)
        # Half the square of a gap in standard deviations.
        lost = math.sqrt(2.0 * (certificate.value_gap or 0.0))
        held = LearnedFrom(data.statistics, learner, step)
        return Judgement(
            value,
            value + learner.log_prior(values),
            certificate,
            gap=max(step, lost),
            matched=partial(held.matched, fitted),
            kept=held,
        )

    def identity(self) -> Iterable[Any]:
        """The counts: a closed form goes on from nowhere."""
        sums = self.data.statistics
        return type(self).__name__, sums.initial, sums.transitions
