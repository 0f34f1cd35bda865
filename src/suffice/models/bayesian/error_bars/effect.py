"""Effects of interventions: how an outcome differs between two settings of nodes, and how far that is known."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Floats
from suffice.checks import generator, is_name
from suffice.choices import IntervalMethod
from suffice.errors import EstimateError, OptionError, listing
from suffice.models.bayesian.error_bars.answers import (
    MomentSpread,
    NetworkQuestion,
    ProbabilitySpread,
    drawn_answers,
    flat_moments,
    flat_table,
)
from suffice.models.bayesian.fitted import NetworkFitted
from suffice.models.bayesian.queries.joint_gaussian import JointGaussian
from suffice.models.uncertain import checked_draws, normal_quantile, quantiles
from suffice.records import record
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.models.bayesian.posterior import LearnedParameters


@record(frozen=True, eq=False)
class Effect:
    """How the outcome differs between two settings: P(outcome | do) less P(outcome | do against).

    `treated` and `control` are the two answers, each with its error bar. Of an outcome that holds numbers, the effect
    is the difference of the means.
    """

    outcome: Hashable
    treated: Any
    control: Any
    _spreads: tuple[Any, Any]

    @property
    def _discrete(self) -> bool:
        return isinstance(self.treated, Table)

    @property
    def difference(self) -> Any:
        """The difference of each probability, or of the means."""
        if self._discrete:
            return Table(self.treated.domain, self._differences)
        return float(self._differences[0])

    @property
    def mean(self) -> float:
        """The difference of the means; of a discrete outcome its states must be numbers."""
        return float(self._scores @ self._differences)

    @cached_property
    def standard_errors(self) -> Any:
        """The standard error of each difference of probabilities, or of that of the means."""
        if self._discrete:
            return Table(self.treated.domain, self._errors(np.eye(self._size)))
        return float(self._errors(np.eye(1))[0])

    @property
    def mean_error(self) -> float:
        """The standard error of the difference of the means."""
        return float(self._errors(self._scores[None])[0])

    def interval(
        self,
        level: float = 0.95,
        *,
        method: IntervalMethod = "delta",
        draws: int | None = None,
        random_state: Any = None,
    ) -> tuple[Any, Any]:
        """Lower and upper ends of an interval for each difference; arguments as those of an answer's interval."""
        size = checked_draws(method, draws, random_state)
        if size is None:
            reach = normal_quantile(level) * self._errors(np.eye(self._size))
            ends = self._differences - reach, self._differences + reach
        else:
            ends = quantiles(self._drawn(size, generator(random_state)), level)
        if self._discrete:
            return Table(self.treated.domain, ends[0]), Table(self.treated.domain, ends[1])
        return float(ends[0][0]), float(ends[1][0])

    @property
    def _size(self) -> int:
        return len(self._differences)

    @cached_property
    def _differences(self) -> Floats:
        if self._discrete:
            return np.asarray(self.treated.values - self.control.values)
        return np.asarray(self.treated.mean - self.control.mean)

    @property
    def _scores(self) -> Floats:
        """What each entry counts in the mean."""
        if not self._discrete:
            return np.ones(1)
        states = self.treated.domain.variables[0].states
        if not all(isinstance(state, int | float) for state in states):
            raise OptionError(
                f"The states of {self.outcome!r} are {listing(states)}, which have no mean: read difference, which has "
                "the effect on the probability of each."
            )
        return np.array(states, dtype=np.float64)

    def _errors(self, contrasts: Floats) -> Floats:
        """Standard errors (c,) of sums of the differences with these weights (c, a)."""
        first, second = self._spreads
        slopes: dict[Hashable, list[Floats]] = {}
        for sign, spread in ((1.0, first), (-1.0, second)):
            for name, parts in spread.derivatives.items():
                moved = [sign * np.tensordot(contrasts, part[: self._size], 1) for part in parts]
                earlier = slopes.get(name)
                slopes[name] = moved if earlier is None else [a + b for a, b in zip(earlier, moved, strict=True)]
        errors: Floats = first.spreads.errors(slopes, len(contrasts))
        return errors

    def _drawn(self, n: int, rng: np.random.Generator) -> Floats:
        """The differences (n, a) at draws of the parameters, the same for both settings."""
        questions = [spread.question for spread in self._spreads]
        numbers = flat_table if self._discrete else flat_moments
        drawn = drawn_answers(self._spreads[0].spreads, questions, n, rng, numbers)
        return np.asarray(drawn[:, 0, : self._size] - drawn[:, 1, : self._size])

    def __str__(self) -> str:
        if not self._discrete:
            words = f"effect on the mean of {self.outcome!r}: {self.difference:.4g}"
            return f"{words}, standard error {self.standard_errors:.2g}"
        states, errors = self.treated.domain.variables[0].states, self._errors(np.eye(self._size))
        rows = zip(states, self._differences, errors, strict=True)
        lines = [f"  {self.outcome}={state}: {value:+.4g}, standard error {error:.2g}" for state, value, error in rows]
        return "\n".join([f"effect on the probabilities of {self.outcome!r}", *lines])

    __repr__ = __str__


def effect_of(
    parameters: LearnedParameters,
    outcome: Hashable,
    do: Mapping[Any, Any],
    against: Mapping[Any, Any],
    given: Mapping[Any, Any] | None,
) -> Effect:
    """The effect of one setting against another, refused where the observed nodes do not determine it."""
    if not is_name(outcome):
        raise OptionError(f"outcome is {outcome!r}; expected the name of one node.")
    for name, setting in (("do", do), ("against", against)):
        if not isinstance(setting, Mapping) or not setting:
            raise OptionError(f"{name} is {setting!r}; expected a dict of states and values by node.")
    if set(do) != set(against):
        raise OptionError(
            f"do sets {listing(do)} and against sets {listing(against)}; expected the same nodes, each at two values."
        )
    fitted = parameters.fitted
    fitted.domain.names_of(outcome)
    if outcome in do:
        raise OptionError(f"{outcome!r} is the outcome and is set by do=: nothing acts on what is set.")
    check_identified(fitted, outcome, do, given)
    settings = (do, against)
    questions = [NetworkQuestion.of(fitted, outcome, given, setting) for setting in settings]
    plain = [question.asked.query(outcome, question.known) for question in questions]
    if not isinstance(plain[0], Table | JointGaussian):
        raise OptionError(
            f"The outcome {outcome!r} is a mixture of normal distributions here, and its effects have no error bar. "
            "Ask query(..., do=) at each setting for its distribution."
        )
    answers = [parameters.carried(one, outcome, given, do) for one, do in zip(plain, settings, strict=True)]
    spread = ProbabilitySpread if isinstance(plain[0], Table) else MomentSpread
    both = [spread(parameters.spreads, question) for question in questions]
    return Effect(outcome, answers[0], answers[1], (both[0], both[1]))


def check_identified(
    fitted: NetworkFitted, outcome: Hashable, do: Mapping[Any, Any], given: Mapping[Any, Any] | None
) -> None:
    """Raise where hidden common causes keep the effect from following from the distribution of the observed nodes."""
    hidden = set(fitted.hidden)
    if not hidden:
        return
    named = [name for name in (outcome, *do, *(given or {})) if name in hidden]
    if named:
        raise EstimateError(
            f"{listing(named)} is hidden: what rows never show has states by agreement only, and effects on it, of it "
            "or given it do not follow from them. Ask about observed nodes; query(..., do=) gives what this network "
            "says."
        )
    from suffice.graphs.identification import ConfoundedGraph, hedge_of_conditional

    graph = ConfoundedGraph.projected(fitted.parents, hidden)
    hedge = hedge_of_conditional(graph, {outcome}, set(do), set(given or {}))
    if hedge is not None:
        order = [name for name in fitted.nodes if name in hedge.whole]
        inner = [name for name in order if name in hedge.part]
        raise EstimateError(
            f"The effect of {listing(do)} on {outcome!r} does not follow from what is observed, whatever the number of "
            f"rows: hidden common causes hold {listing(order)} together, and {listing(inner)} also without what is set "
            "(a hedge). Networks that agree in all that is observed differ in the effect. Observe a common cause, a "
            "node that carries the whole effect, or set the nodes in an experiment; query(..., do=) gives what this "
            "network says, which its start decides."
        )
