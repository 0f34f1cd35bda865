"""Answers of a network with their error bars: which derivatives an answer needs, and what spreads it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.errors import OptionError, listing
from suffice.models.bayesian.error_bars.derivatives import JointDerivatives, joint_derivatives
from suffice.models.bayesian.error_bars.normal import moment_derivatives
from suffice.models.bayesian.error_bars.spread import ParameterSpreads
from suffice.models.bayesian.fitted import NetworkFitted
from suffice.models.bayesian.queries.joint_gaussian import JointGaussian
from suffice.models.bayesian.queries.sampled_answers import certain_cells, possible_states
from suffice.models.evidence import read_evidence
from suffice.models.uncertain import Spread
from suffice.records import record, replace
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.models.bayesian.posterior import LearnedParameters

NO_DERIVATIVE = (
    "The answer about {} has no standard error by the delta method: the network has {}, for which derivatives of "
    "answers have no closed form here. Use interval(method='posterior'), with a prior=."
)

#: Derivatives (a, ...) of answers by the numbers of each node.
Derivatives = Mapping[Hashable, Sequence[Floats]]


@record(frozen=True, eq=False)
class NetworkQuestion:
    """What a network is asked: `asked` is the fitted network, or that in which some nodes are set (`under`)."""

    fitted: NetworkFitted
    asked: NetworkFitted
    names: tuple[Hashable, ...]
    known: Mapping[Any, Any] | None

    @classmethod
    def of(cls, fitted: NetworkFitted, variables: Any, given: Any, do: Any) -> NetworkQuestion:
        """Read as `query` does."""
        asked, known = fitted.under(do, given)
        return cls(fitted, asked, tuple(asked.domain.names_of(variables)), known)

    @cached_property
    def learned(self) -> list[Hashable]:
        """The nodes as they were learned: all but those that are set."""
        return [name for name, node in self.asked.nodes.items() if node is self.fitted.nodes[name]]

    @property
    def alone(self) -> NetworkFitted:
        """The network of the nodes that matter."""
        nodes = {name: node for name, node in self.asked.nodes.items() if name in self.relevant}
        return replace(self.asked, nodes=nodes)

    @property
    def certain(self) -> NDArray[np.bool_]:
        """The cells that the evidence alone decides (cells,)."""
        evidence = read_evidence(self.asked.domain, self.known)
        return certain_cells(self.asked.domain, self.names, possible_states(self.asked.domain, evidence))

    @cached_property
    def relevant(self) -> set[Hashable]:
        """The nodes on which an answer may depend: what is asked, what is known, and all above them."""
        from suffice.graphs.directed import ancestors

        return set(ancestors(self.asked.parents, [*self.names, *(self.known or {})]))


@record(frozen=True, eq=False)
class ProbabilitySpread:
    """How a table of probabilities varies with the parameters."""

    spreads: ParameterSpreads
    question: NetworkQuestion

    @cached_property
    def joint(self) -> JointDerivatives:
        """The derivatives of the probability of each cell (cells, ...) by all tables."""
        q = self.question
        if q.asked.inference.kind != "tables":
            raise OptionError(NO_DERIVATIVE.format(listing(q.names), _others(q.asked)))
        return joint_derivatives(q.asked.inference, q.names, q.known, q.learned, self.spreads.zeros_that_move)

    @cached_property
    def derivatives(self) -> Derivatives:
        """Those of the conditional probabilities."""
        return self.joint.conditional()

    def errors(self) -> Floats:
        """Standard errors (cells,); NaN on an edge where maximum likelihood has put the answer."""
        values = self.joint.values
        errors = self.spreads.errors(self.derivatives, len(values))
        edge = (values <= 0) | (values >= 1)
        if edge.any() and self.spreads.on_edge(self.question.relevant):
            errors = np.where(edge & ~self.question.certain, np.nan, errors)
        return errors

    def draws(self, n: int, rng: np.random.Generator) -> Floats:
        """The answers (n, cells) at draws of the parameters."""
        return drawn_answers(self.spreads, [self.question], n, rng, flat_table)[:, 0]


def flat_table(table: Table) -> Floats:
    """The probabilities (cells,)."""
    return table.values.ravel()


def flat_moments(answer: JointGaussian) -> Floats:
    """Means, then covariances (d + d * d,)."""
    return np.concatenate([answer.mean, answer.covariance.ravel()])


def drawn_answers(
    spreads: ParameterSpreads,
    questions: Sequence[NetworkQuestion],
    n: int,
    rng: np.random.Generator,
    numbers: Callable[[Any], Floats],
) -> Floats:
    """What is read from the answers to each question (n, questions, ...) at draws of the parameters that matter."""
    free = {name for question in questions for name in question.relevant.intersection(question.learned)}
    inner = [question.alone for question in questions]
    engines = [network.inference for network in inner]
    answers = []
    for drawn in spreads.draws(n, rng, free):
        row = []
        for question, network, engine in zip(questions, inner, engines, strict=True):
            nodes = {**network.nodes, **{name: drawn[name] for name in question.learned if name in network.nodes}}
            other = engine.at(nodes) if engine.kind == "tables" else replace(network, nodes=nodes).inference
            row.append(numbers(other.query(list(question.names), question.known)))
        answers.append(row)
    return np.array(answers)


def _others(fitted: NetworkFitted) -> str:
    kinds = sorted({node.kind for node in fitted.nodes.values()})
    return f"nodes of the kinds {listing(kinds)}"


@record(frozen=True, eq=False)
class MomentSpread:
    """How means (d,) and covariances (d, d) of a linear-Gaussian network vary with the parameters."""

    spreads: ParameterSpreads
    question: NetworkQuestion

    @cached_property
    def derivatives(self) -> Derivatives:
        """Of means and covariances (d + d * d, ...)."""
        q = self.question
        infer = q.asked.inference
        whole = infer.query(list(q.asked.domain.names), q.known)
        nodes = {name: node for name, node in q.asked.nodes.items() if name in q.relevant}
        return moment_derivatives(nodes, whole.names, whole.mean, whole.covariance, q.names, q.learned)

    def errors(self) -> Floats:
        """Standard errors (d + d * d,)."""
        d = len(self.question.names)
        return self.spreads.errors(self.derivatives, d + d * d)

    def draws(self, n: int, rng: np.random.Generator) -> Floats:
        """Means and covariances (n, d + d * d) at draws of the parameters."""
        return drawn_answers(self.spreads, [self.question], n, rng, flat_moments)[:, 0]


def spread_of_table(parameters: LearnedParameters, variables: Any, given: Any, do: Any) -> Spread:
    """What a table of probabilities varies by."""
    return ProbabilitySpread(parameters.spreads, NetworkQuestion.of(parameters.fitted, variables, given, do))


def spread_of_normal(parameters: LearnedParameters, variables: Any, given: Any, do: Any) -> Spread:
    """What means and covariances vary by."""
    return MomentSpread(parameters.spreads, NetworkQuestion.of(parameters.fitted, variables, given, do))
