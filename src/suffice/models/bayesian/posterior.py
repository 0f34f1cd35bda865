"""What is known about the parameters of a fitted network: posteriors, standard errors, predictions without them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Self

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

if TYPE_CHECKING:
    from suffice.fitting.contract import Judgement
    from suffice.fitting.fit import Fit
    from suffice.models.bayesian.em.standard_errors import ObservedErrors


def _errors_of(fit: Fit[NetworkFitted] | None, judged: Callable[[], Judgement]) -> ObservedErrors | None:
    """Standard errors from the observed information, where rows had missing values; None for a closed form."""
    from suffice.models.em.rows import has_missing

    if fit is None or fit.data is None or not has_missing(fit.data.statistics):
        return None
    errors: ObservedErrors | None = judged().kept
    return errors


def with_errors(node: Any, fit: Fit[NetworkFitted] | None, judged: Callable[[], Judgement]) -> Any:
    """A node that gives its standard errors from the observed information, where EM has learned it."""
    errors = _errors_of(fit, judged)
    return node if errors is None or not errors.knows(node.name) else node.with_errors(errors)


def _refuse_em(fit: Fit[NetworkFitted] | None, judged: Callable[[], Judgement]) -> None:
    if _errors_of(fit, judged) is not None:
        raise EstimateError(NO_POSTERIOR)


def posteriors(
    fitted: NetworkFitted, learning: NodeLearning, fit: Fit[NetworkFitted] | None, judged: Callable[[], Judgement]
) -> dict[Hashable, Any]:
    """The posterior of the parameters of each node that has one and is not fixed."""
    _refuse_em(fit, judged)
    free = [node for name, node in fitted.nodes.items() if name not in learning.fixed]
    nodes = [node for node in free if node.has_posterior]
    if nodes:
        return ByNode.of("posterior", nodes, lambda node: node.posterior_)
    raise EstimateError("No node was fitted with a conjugate prior, so there is no posterior. Give prior=.")


def log_predictive(
    fitted: NetworkFitted,
    learning: NodeLearning,
    fit: Fit[NetworkFitted] | None,
    judged: Callable[[], Judgement],
    data: Any,
    columns: Any,
) -> Floats:
    """Log probability (density) of each row by itself given the rows learned, parameters integrated out (n,)."""
    from suffice.models.row_answers import coded_columns

    _refuse_em(fit, judged)
    nodes, fixed = fitted.nodes, learning.fixed
    without = [name for name, node in nodes.items() if name not in fixed and node.log_evidence() is None]
    if without:
        raise EstimateError(f"{listing(without)} have no posterior in closed form. Give every node a prior=.")
    tied = {name for group in learning.groups for name in group}
    parts = []
    for codes, n in coded_columns(data, fitted.domain, columns):
        check_complete(codes, fitted.domain)
        total = np.zeros(n)
        for name, node in nodes.items():
            if name not in tied:
                total += node.log_prob(codes) if name in fixed else node.predictive_log_prob(codes)
        for group in learning.groups:
            total += OF_GROUP[nodes[group[0]].kind]([nodes[name] for name in group], codes)
        parts.append(total)
    return np.concatenate(parts) if parts else np.empty(0)


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
