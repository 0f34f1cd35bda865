"""Baum-Welch: EM with exact expectations, by one pass forward and backward over all sequences."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.errors import EstimateError, warn
from suffice.fitting.contract import Found, Judgement
from suffice.fitting.control import LIMITS, Control, Outcome
from suffice.fitting.row_marks import Marks
from suffice.models.em.latent import Expected, LatentProblem, Starts
from suffice.models.em.restarts import Runs
from suffice.models.hidden_markov.certificate import climbed_certificate
from suffice.models.hidden_markov.check import computed_again, judged_statistics
from suffice.models.hidden_markov.emissions.contract import Emission
from suffice.models.hidden_markov.fitted import HiddenMarkovFitted
from suffice.models.hidden_markov.learning import Learner, estimate_name, parameterisation, remarks
from suffice.models.hidden_markov.matched import LearnedFrom
from suffice.models.hidden_markov.parameters import ChainParameters, Statistics
from suffice.models.hidden_markov.rounds import HeldChains
from suffice.models.hidden_markov.standard_errors import (
    ChainInformation,
    is_cheap,
    observed_information,
    standard_errors,
)
from suffice.models.hidden_markov.start import Start
from suffice.solvers.fixed_point import largest_change


@dataclass(frozen=True, eq=False)
class HiddenSequences:
    """Sequences of which some states are hidden, or some columns of a step."""

    chains: HeldChains
    emission: Emission
    states: tuple[Hashable, ...]
    columns: list[Hashable] | None
    passes: int = 1
    made: Marks = field(default_factory=dict)

    def marks(self) -> Marks:
        """What tells sequences that are in memory from others."""
        return self.made

    def close(self) -> None:
        """Let the sequences go."""
        self.chains.held.close()

    @property
    def rows(self) -> int:
        """Their steps."""
        return self.chains.rows

    @property
    def weight(self) -> float:
        """Steps, weighted."""
        return self.chains.weight


@dataclass(frozen=True, eq=False)
class BaumWelch(LatentProblem[ChainParameters, Statistics, HiddenMarkovFitted]):
    """Sequences meet the parameters of a chain and its emissions."""

    options: Mapping[str, Any]
    data: HiddenSequences
    beginning: Start

    @property
    def starts(self) -> Starts:
        """As the options say."""
        return Starts(self.options["n_init"], self.options["random_state"], self.options["acceleration"])

    @property
    def weight(self) -> float:
        """Steps, weighted."""
        return self.data.weight

    @property
    def learner(self) -> Learner:
        """The M-step."""
        return self.beginning.learner

    @property
    def chains(self) -> HeldChains:
        """The sequences, and their E-step."""
        return self.data.chains

    # -- steps -------------------------------------------------------------------------------------------------------

    def start(self, number: int, rng: np.random.Generator) -> ChainParameters:
        """The first run keeps what was given; all keep what is fixed and what is forbidden."""
        return self.beginning.begin(number, rng)

    def expect(self, parameters: ChainParameters) -> Expected[Statistics]:
        """One pass forward and backward."""
        statistics = self.chains.expect(parameters)
        return Expected(statistics.log_likelihood, statistics)

    def maximise(self, statistics: Statistics, before: ChainParameters) -> ChainParameters:
        """Shares of the expected counts, and the distributions of the steps that each state is expected to have."""
        return self.learner.learn(statistics, before)

    def log_prior(self, parameters: ChainParameters) -> float:
        """Of what is not fixed."""
        return self.learner.log_prior(parameters)

    def vector(self, parameters: ChainParameters) -> Floats:
        """What is not fixed."""
        return self.learner.vector(parameters)

    def at(self, vector: Floats, like: ChainParameters) -> ChainParameters:
        """What is fixed is as in `like`, to the bit."""
        return self.learner.at(vector, like)

    def inside(self, vector: Floats, like: ChainParameters) -> bool:
        """Rows of numbers of at least 0, and distributions."""
        return self.learner.inside(self.at(vector, like))

    def run(
        self, start: ChainParameters, control: Control, *, acceleration: str | None, fingerprint: str
    ) -> tuple[ChainParameters, Outcome]:
        """EM from a start; one that excludes what was seen is an error."""
        try:
            return super().run(start, control, acceleration=acceleration, fingerprint=fingerprint)
        except EstimateError as error:
            if "at the start" not in str(error):
                raise
            raise EstimateError(
                "The start gives some sequence probability 0: a start value of 0 (initial=, transitions=, emissions=) "
                "or a known state forbids what was seen. Choose another start."
            ) from error

    def found(self, runs: Runs[ChainParameters]) -> Found[HiddenMarkovFitted]:
        """The best run, and what its counts leave open."""
        data, learner, values = self.data, self.learner, runs.best
        notes = remarks(self.chains.expect(values), values, learner, data.states, self.options["prior"])
        unused = [note for note in notes if "unused" in note]
        if unused:
            warn("; ".join(unused))
        notes = (*notes, *runs.notes)
        passes, emission = max(runs.evaluations, 1), data.emission
        return Found(
            HiddenMarkovFitted(
                data.states, data.columns, emission, values, learner.n_params, True, scores=runs.scores, passes=passes
            ),
            "Baum-Welch (EM with exact expectations)",
            estimate_name(self.options, emission, values, hidden=True),
            runs.outcome,
            notes,
            parameterisation=parameterisation(self.options, emission, values),
            passes=passes,
        )

    # -- afterwards --------------------------------------------------------------------------------------------------

    def expect_again(self, parameters: ChainParameters) -> Expected[Statistics]:
        """In log space, one step after the other."""
        statistics: Statistics = self.chains.sum(parameters, by=computed_again)
        return Expected(statistics.log_likelihood, statistics)

    def observed_information(self, parameters: ChainParameters) -> ChainInformation | None:
        """Two passes for each free parameter."""
        return observed_information(self.chains, self.learner, parameters, self.data.states)

    def judge(self, fitted: HiddenMarkovFitted) -> Judgement:
        """The slope, existence, and where it costs little the curvature and the standard errors."""
        data, learner, values = self.data, self.learner, fitted.parameters
        statistics, discrepancy = judged_statistics(self.chains, values)
        step = largest_change(learner.vector(values), learner.vector(learner.learn(statistics, values))) + discrepancy
        certificate = climbed_certificate(statistics, values, learner, data.states, discrepancy)
        errors, notes = None, tuple[str, ...]()
        if is_cheap(data.rows, learner, values, fitted.passes):
            information = self.observed_information(values)
            errors = standard_errors(information, learner, values, step)
            if information is not None:
                curvature = information.curvature(step, fitted.scores)
                certificate, notes = replace(certificate, curvature=curvature), curvature.warnings()
        held = LearnedFrom(statistics, learner, step, errors)
        return Judgement(
            statistics.log_likelihood,
            statistics.log_likelihood + learner.log_prior(values),
            certificate,
            gap=step,
            matched=partial(held.matched, fitted),
            kept=held,
            notes=(*notes, *self.chains.notes),
        )

    def identity(self) -> Iterable[Any]:
        """The options but those that say how long to go on, and the sequences."""
        options = {name: repr(value) for name, value in self.options.items() if name not in LIMITS}
        return options, self.chains.fingerprint()
