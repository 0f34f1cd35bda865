"""What is known about the parameters of a fitted network: posteriors, standard errors, predictions without them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property, update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.errors import (
    EstimateError,
    LeftOutWarning,
    MissingColumnError,
    MissingValueError,
    SizeError,
    listing,
    warn,
)
from suffice.models.bayesian.fitted import NetworkFitted
from suffice.models.bayesian.learning import NodeLearning
from suffice.models.bayesian.nodes.contract import NO_POSTERIOR, Columns
from suffice.models.uncertain import LaterSpread, UncertainTable
from suffice.records import record
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.fitting.fit import Fit
    from suffice.models.bayesian.em.standard_errors import ObservedErrors
    from suffice.models.bayesian.error_bars.effect import Effect
    from suffice.models.bayesian.error_bars.explain import Explanation
    from suffice.models.bayesian.error_bars.sensitivity import Sensitivity
    from suffice.models.bayesian.error_bars.spread import ParameterSpreads
    from suffice.models.uncertain import Spread

P = ParamSpec("P")
R = TypeVar("R")


@record(frozen=True, eq=False)
class LearnedParameters:
    """The parameters of a network as a fit left them: how it learns its nodes, and the fit; None where it needed none.

    What a network says about its parameters, and answers with the error bars that follow from it.
    """

    fitted: NetworkFitted
    learning: NodeLearning
    fit: Fit[Any] | None

    @cached_property
    def _observed(self) -> ObservedErrors | None:
        """Standard errors from the observed information, where rows had missing values; None for a closed form."""
        from suffice.models.em.rows import has_missing

        if self.fit is None or self.fit.data is None or not has_missing(self.fit.data.statistics):
            return None
        measured = self.fit.measured()
        errors: ObservedErrors | None = None if measured is None else measured.kept
        return errors

    def _refuse_em(self) -> None:
        if self._observed is not None:
            raise EstimateError(NO_POSTERIOR)

    def node(self, name: Hashable) -> Any:
        """The fitted node; after EM its standard errors are those of the observed information."""
        node, errors = self.fitted.nodes[name], self._observed
        return node if errors is None or not errors.knows(node.name) else node.with_errors(errors)

    @property
    def posterior_(self) -> dict[Hashable, Any]:
        """The posterior of the parameters of each node that has a prior; tied nodes have the same.

        Tables have independent Dirichlet rows, linear-Gaussian nodes a normal-inverse-gamma distribution, GLM nodes the
        normal distribution of Laplace's approximation. Without any prior it is an error; nodes without one are left
        out, and so are, with a warning, those whose table does not fit.
        """
        self._refuse_em()
        free = [node for name, node in self.fitted.nodes.items() if name not in self.learning.fixed]
        nodes = [node for node in free if node.has_posterior]
        if nodes:
            return ByNode.of("posterior", nodes, lambda node: node.posterior_)
        raise EstimateError("No node was fitted with a conjugate prior, so there is no posterior. Give prior=.")

    @property
    def standard_errors_(self) -> dict[Hashable, Table]:
        """Standard errors of the parameters of each node that is not fixed, by label.

        Tables: of each probability, sqrt(p (1 - p) / n) with n the weight of its row. Linear-Gaussian nodes: of weights
        and variance, laid out as `table(node)`. Noisy-OR nodes: of the weights, NaN for those on the edge. GLM nodes:
        of the coefficients, infinite for those that run away. They are those of the observed information at the
        maximum; with a conjugate prior and complete rows, posterior standard deviations. A node whose table does not
        fit is left out with a warning, and is an error when it is asked for.
        """
        free = [self.node(name) for name in self.fitted.nodes if name not in self.learning.fixed]
        return ByNode.of("standard errors", free, lambda node: node.error_table())

    def log_predictive(self, data: Any, *, columns: Any = None) -> Floats:
        """Log probability (density) of each row by itself given the rows learned, parameters integrated out (n,).

        Exact: for tables the posterior mean, for linear-Gaussian nodes Student's t; of tied nodes those that come
        later in a row learn from those before. Fixed nodes count as known. The rows must be complete.
        """
        from suffice.models.row_answers import coded_columns

        self._refuse_em()
        nodes, fixed = self.fitted.nodes, self.learning.fixed
        without = [name for name, node in nodes.items() if name not in fixed and node.log_evidence() is None]
        if without:
            raise EstimateError(f"{listing(without)} have no posterior in closed form. Give every node a prior=.")
        tied = {name for group in self.learning.groups for name in group}
        parts = []
        for codes, n in coded_columns(data, self.fitted.domain, columns):
            check_complete(codes, self.fitted.domain)
            total = np.zeros(n)
            for name, node in nodes.items():
                if name not in tied:
                    total += node.log_prob(codes) if name in fixed else node.predictive_log_prob(codes)
            for group in self.learning.groups:
                total += OF_GROUP[nodes[group[0]].kind]([nodes[name] for name in group], codes)
            parts.append(total)
        return np.concatenate(parts) if parts else np.empty(0)

    # -- answers with error bars -------------------------------------------------------------------------------------

    @property
    def spreads(self) -> ParameterSpreads:
        """What is known about the parameters: a covariance, and draws; kept with the fit."""
        kept: ParameterSpreads | None = None if self.fit is None else self.fit.spreads
        if kept is None:
            from suffice.models.bayesian.error_bars.spread import ParameterSpreads

            groups = [self.learning.group_of(name) for name in self.learning.leading]
            data = None if self.fit is None else self.fit.data
            kept = ParameterSpreads(self.fitted.nodes, groups, self._observed, data and data.statistics)
            if self.fit is not None:
                self.fit.spreads = kept
        return kept

    def effect(
        self,
        outcome: Hashable,
        do: Mapping[Any, Any],
        *,
        against: Mapping[Any, Any],
        given: Mapping[Any, Any] | None = None,
    ) -> Effect:
        """How the outcome differs when nodes are set to `do` and when they are set to `against`, with its error bar.

        Where nodes are hidden, an effect that does not follow from what is observed is refused, with the hedge that
        keeps it from following.

        Args:
            outcome: the node on which they act.
            do: states and values of nodes that are set from outside.
            against: other states and values of the same nodes.
            given: what is known of nodes that are not set; under the intervention, as in `query`.
        """
        from suffice.models.bayesian.error_bars.effect import effect_of

        return effect_of(self, outcome, do, against, given)

    def sensitivity(
        self,
        target: Hashable,
        given: Mapping[Any, Any] | None = None,
        *,
        do: Mapping[Any, Any] | None = None,
        state: Hashable | None = None,
    ) -> Sensitivity:
        """How P(target | given) follows every single parameter of the tables, the largest derivatives first.

        Each entry is an exact function of its parameter, a quotient of linear ones, and says at which value another
        state of the target becomes the most probable.

        Args:
            target: one discrete node.
            given: states of nodes that are known, as in `query`.
            do: states of nodes that are set from outside.
            state: the state of the target whose probability is followed; by default the most probable one.
        """
        from suffice.models.bayesian.error_bars.sensitivity import sensitivity_of

        return sensitivity_of(self, target, given, do, state)

    def explain(
        self, target: Hashable, given: Mapping[Any, Any] | None = None, *, do: Mapping[Any, Any] | None = None
    ) -> Explanation:
        """What P(target | given) rests on: what each finding moved, what an observation would tell, who takes part.

        Args:
            target: one discrete node.
            given: the findings, as in `query`, in the order in which they came in.
            do: states and values of nodes that are set from outside; they are no findings.
        """
        from suffice.models.bayesian.error_bars.explain import explanation_of

        return explanation_of(self, target, given, do)

    def carried(self, answer: Any, variables: Any, given: Any, do: Any) -> Any:
        """An answer with what it varies by; one that has other errors, or none, as it is."""
        if type(answer) is Table:
            return UncertainTable.of(answer, LaterSpread(_spread_of_table, self, variables, *_kept(given, do)))
        if self.fitted.inference.kind != "normal" or isinstance(answer, Table):
            return answer
        from suffice.models.bayesian.queries.joint_gaussian import JointGaussian
        from suffice.models.bayesian.queries.uncertain_normal import UncertainNormal

        if not isinstance(answer, JointGaussian):
            return answer
        return UncertainNormal.of(answer, LaterSpread(_spread_of_normal, self, variables, *_kept(given, do)))


def _kept(*known: Mapping[Any, Any] | None) -> tuple[dict[Any, Any] | None, ...]:
    """What was known, as it was when it was asked."""
    return tuple(None if states is None else dict(states) for states in known)


def _spread_of_table(*question: Any) -> Spread:
    from suffice.models.bayesian.error_bars.answers import spread_of_table

    return spread_of_table(*question)


def _spread_of_normal(*question: Any) -> Spread:
    from suffice.models.bayesian.error_bars.answers import spread_of_normal

    return spread_of_normal(*question)


def answered(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """The question of a network about some variables, whose answer carries its error bar."""

    def ask(net: Any, /, *args: P.args, **options: P.kwargs) -> R:
        learned: LearnedParameters = net.parameters
        return learned.carried(method(learned.fitted, *args, **options), *_asked(*args, **options))  # type: ignore[no-any-return]

    return update_wrapper(ask, method)


def _asked(variables: Any, given: Any = None, *, do: Any = None, **_: Any) -> tuple[Any, Any, Any]:
    return variables, given, do


def answered_by_node(
    method: Callable[Concatenate[Any, P], dict[Hashable, Any]],
) -> Callable[Concatenate[Any, P], dict[Hashable, Any]]:
    """The question of a network about every variable: each of the answers carries its error bar."""

    def ask(net: Any, /, *args: P.args, **options: P.kwargs) -> dict[Hashable, Any]:
        learned: LearnedParameters = net.parameters
        answers = method(learned.fitted, *args, **options)
        _, given, do = _asked(None, *args, **options)
        return {name: learned.carried(answer, name, given, do) for name, answer in answers.items()}

    return update_wrapper(ask, method)


class ByNode(dict[Hashable, Any]):
    """Results by node. Those that do not fit are not among them; reading one of them raises what says why."""

    refused: dict[Hashable, SizeError]

    @classmethod
    def of(cls, what: str, nodes: Sequence[Any], result: Callable[[Any], Any]) -> Self:
        """The results of some nodes, and a warning that names those without."""
        results = cls()
        results.refused = {}
        for node in nodes:
            try:
                results[node.name] = result(node)
            except SizeError as error:
                results.refused[node.name] = error
        if results.refused:
            warn(
                f"There is no room for the {what} of {listing(results.refused)}: left out. Read by name, each raises "
                "an error that gives its size.",
                LeftOutWarning,
            )
        return results

    def __missing__(self, name: Hashable) -> Any:
        """The reason why a node has no result."""
        raise self.refused.get(name, KeyError(name))


def check_complete(columns: Columns, domain: Domain) -> None:
    """Raise where a column is missing or has a missing value."""
    missing = [name for name in domain.names if name not in columns]
    if missing:
        raise MissingColumnError(f"The rows lack the columns {listing(missing)}; log_predictive takes complete rows.")
    holes = [n for n, values in columns.items() if (values < 0 if values.dtype.kind == "i" else np.isnan(values)).any()]
    if holes:
        raise MissingValueError(
            f"The columns {listing(holes)} have missing values; log_predictive takes complete rows."
        )


def predictive_of_tables(nodes: Sequence[Any], columns: Columns) -> Floats:
    """Log predictive (n,) of tied tables: within a row, what the first members show is learned before the next.

    The i-th member has ``(alpha + counts + earlier members at this cell) / (the same, summed over its row)``.
    """
    cells = [np.stack([columns[name] for name in node.domain.names], axis=1) for node in nodes]
    total = np.zeros(len(cells[0]))
    for number, (node, mine) in enumerate(zip(nodes, cells, strict=True)):
        weight = node.posterior_weights(mine[:, :-1])
        above = [(other[:, :-1] == mine[:, :-1]).all(axis=1) for other in cells[:number]]
        same = [rows & (other[:, -1] == mine[:, -1]) for rows, other in zip(above, cells[:number], strict=True)]
        top = weight[np.arange(len(mine)), mine[:, -1]] + np.sum(same, axis=0, initial=0.0)
        total += np.log(top / (weight.sum(axis=1) + np.sum(above, axis=0, initial=0.0)))
    return total


def predictive_of_regressions(nodes: Sequence[Any], columns: Columns) -> Floats:
    """Log predictive (n,) of tied linear-Gaussian nodes, in the same way."""
    designs = [node.design(columns) for node in nodes]
    codes = [node.parent_codes(columns, len(designs[0][1])) for node in nodes]
    total = np.zeros(len(designs[0][1]))
    for number, (node, mine) in enumerate(zip(nodes, codes, strict=True)):
        distributions = node.distributions_of_rows(columns)
        for earlier in range(number):
            distributions = distributions.after(*designs[earlier], (codes[earlier] == mine).all(axis=1))
        total += distributions.log_density(*designs[number])
    return total


#: The predictive of a group of tied nodes, by kind.
OF_GROUP = {"table": predictive_of_tables, "linear-gaussian": predictive_of_regressions}


def told_parameters(network: Any) -> int:
    """Free parameters of all nodes that are not fixed; those that tied nodes share count once.

    Where EM has found directions that no rows determine, those are not counted.
    """
    if network._fit is None or network._fit.data is None:
        return int(network.fitted_.n_params)
    from suffice.models.em.rows import has_missing

    learned = has_missing(network._fit.data.statistics)
    return int(network.report_.n_params if learned else network.fitted_.n_params)
