"""What there is to see of a Bayesian network."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.engines.mixtures import GaussianMixture
from suffice.fitting.inference import Inference, joined
from suffice.fitting.portrait import (
    MOST_CELLS,
    Estimates,
    Factors,
    Graph,
    Grid,
    Interval,
    Portrait,
    VariableDistribution,
    dirichlet_intervals,
    finite,
    normal_reach,
    or_none,
    refitted,
    rescaled_by,
    table_grid,
)
from suffice.fitting.report import CountedRows
from suffice.models.bayesian.nodes.estimates import redrawn
from suffice.models.bayesian.nodes.linear_gaussian import LinearGaussianNode
from suffice.models.bayesian.nodes.table import TableNode
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.models.bayesian.declaration import BayesianNetwork
    from suffice.models.bayesian.fitted import NetworkFitted

#: Tables of more cells are left out where all nodes are asked for: quantiles of all of them would take long.
LARGE = 5_000
#: Cells of a table whose errors under missing values are worked out.
MOST_ERRORS = 400
#: Nodes whose tables are printed.
MOST_PRINTED = 5


def portrait_of(fitted: NetworkFitted) -> Portrait:
    """Its graph, P(node | parents) of each node, and the distribution of each variable."""
    edges = tuple((parent, child) for child, parents in fitted.parents.items() for parent in parents)
    return Portrait(
        title=fitted.title,
        kind="bayes",
        graph=Graph(tuple(fitted.nodes), edges, directed=True),
        n_params=lambda: fitted.n_params,
        parameters=lambda: {node: fitted.table(node) for node in fitted.nodes},
        text=partial(text_of, fitted),
        variables=lambda: [variable_distribution(*pair) for pair in fitted.marginals().items()],
        tables=[partial(grid_of, fitted, name) for name in fitted.nodes],
        table=fitted.table,
        factors=partial(_factors, fitted),
    )


def portrait_of_network(network: BayesianNetwork) -> Portrait:
    """The same with the posteriors of the parameters; of a network that has learned nothing its graph alone."""
    fitted = or_none(lambda: network.fitted_)
    drawn = (
        Portrait("BayesianNetwork", "bayes", graph=Graph(network.nodes, network.edges, directed=True))
        if fitted is None
        else portrait_of(fitted)
    )
    return replace(
        drawn,
        notes=network.notes_,
        n_params=lambda: network.n_params_,
        table=network.table,
        matched=network.matched_statistics,
        estimates=partial(_estimates, network),
        inference=partial(_inference, network),
        redraw=partial(redrawn, network),
        again=partial(_again, network),
        rescaled=rescaled_by(network),
    )


def variable_distribution(name: Hashable, answer: Any) -> VariableDistribution:
    """What a network answers about one variable: a table, a normal distribution, or a mixture of those."""
    if isinstance(answer, Table):
        return VariableDistribution(name, tuple(answer.domain.variables[0].states), tuple(answer.values.tolist()))
    if isinstance(answer, GaussianMixture):
        spreads = np.sqrt(answer.covariances[:, 0, 0])
        parts = zip(answer.weights.tolist(), answer.means[:, 0].tolist(), spreads.tolist(), strict=True)
        return VariableDistribution(name, normals=tuple(parts))
    mean, variance = (float(np.asarray(part).ravel()[0]) for part in (answer.mean, answer.covariance))
    return VariableDistribution.normal(name, mean, math.sqrt(variance))


def grid_of(fitted: NetworkFitted, name: Hashable) -> Grid | None:
    """P(node | parents), or the coefficients of a node."""
    domain = fitted.nodes[name].domain
    if math.prod(variable.card for variable in domain.variables if variable.kind == "discrete") > MOST_CELLS:
        return None
    table = fitted.table(name)
    if table.variables[-1] == name:
        return table_grid(table, _heading(fitted, name), "share")
    grid = table_grid(table, f"{name}: coefficients", "signed")
    # Intercepts and variances are in other units than the effects of parents.
    return replace(grid, plain=tuple(column for column, name in enumerate(grid.head) if name.startswith("(")))


def _heading(fitted: NetworkFitted, node: Hashable) -> str:
    parents = ", ".join(map(str, fitted.parents[node]))
    return f"P({node} | {parents})" if parents else f"P({node})"


def text_of(fitted: NetworkFitted) -> str:
    """The first tables."""
    shown = [f"{_heading(fitted, node)}\n{fitted.table(node)}" for node in list(fitted.nodes)[:MOST_PRINTED]]
    rest = len(fitted.nodes) - MOST_PRINTED
    return "\n\n".join(shown) + (f"\n... ({rest} more nodes)" if rest > 0 else "")


def _factors(fitted: NetworkFitted) -> Factors | None:
    nodes = [fitted.nodes[name] for name in fitted.nodes]
    if not all(variable.kind == "discrete" for node in nodes for variable in node.domain.variables):
        return None
    tables = tuple((tuple(names), np.asarray(table)) for node in nodes for names, table in node.factors())
    return Factors({name: fitted.variable(name).states for name in fitted.nodes}, tables)


# -- estimates -------------------------------------------------------------------------------------------------------


def _inference(network: BayesianNetwork) -> Inference:
    """Of all nodes that are learned; those that tied nodes share count once."""
    return joined([network.node(name).inference() for name in network._learning.leading])


def _again(network: BayesianNetwork) -> BayesianNetwork:
    """A copy that knows all states and, where EM fitted it, begins where that ended."""
    fitted, hidden = network.fitted_, network._learning.hidden
    kept = {n: list(fitted.variable(n).states) for n in network.nodes if n not in hidden and fitted.variable(n).states}
    again = network.clone().set_params(states={**kept, **(network._declared or {})})
    if not or_none(lambda: fitted.climbed.expectations):
        return again
    return again.set_params(start=network, n_init=1)


def _estimates(network: BayesianNetwork, level: float = 0.95, node: Hashable = None) -> Estimates:
    """Of tables and linear-Gaussian nodes: of all, or of one."""
    nodes = [network.node(name) for name in (network.nodes if node is None else (node,))]
    without_prior = cache(lambda: refitted(network, prior=None))
    intervals: list[Interval] = []
    for one in nodes:
        if one.kind == TableNode.kind and (node is not None or one.rows.size <= LARGE):
            intervals += _of_table(one, level)
        elif one.kind == LinearGaussianNode.kind:
            intervals += _of_real_node(one, level, without_prior)
    return Estimates(tuple(intervals), _note(intervals) if network.get_params(deep=False)["prior"] is not None else "")


def _note(intervals: list[Interval]) -> str:
    if not intervals:
        return "The posterior of this network has no closed form: its parameters are those of EM, without intervals."
    if all(one.mle is None for one in intervals):
        return (
            "Rows have missing values or variables are hidden: the estimate is that of EM, with intervals of two "
            "standard errors from the observed information. Maximum likelihood needs a fit of its own, with prior=None."
        )
    if any(one.map is None and "=" in one.name.partition(":")[0] for one in intervals):
        return "A row of a table has a mode, the MAP, only where each count and its pseudo-count make at least 1."
    return ""


def _of_table(node: TableNode, level: float) -> Iterator[Interval]:
    """Each cell P(state | parents) of a table with Dirichlet rows."""
    if node.alpha is None:
        return
    if node.observed is not None:
        yield from _under_missing_values(node, level)
    elif node.counts.size == math.prod(variable.card for variable in node.domain.variables):
        # A table that keeps only the rows that occur has no names for the others.
        names = tuple(node.cell_names(np.arange(len(node.counts))))
        yield from dirichlet_intervals(CountedRows(names, node.counts, node.alpha), level)


def _under_missing_values(node: TableNode, level: float) -> Iterator[Interval]:
    """Cells of a table that EM learned: standard errors of the observed information about the estimate."""
    if node.rows.size > MOST_ERRORS:
        return
    errors = or_none(lambda: node.standard_errors_)
    if errors is None or errors.values.size != node.rows.size:
        return
    reach = normal_reach(level) * errors.values.ravel()
    names = node.cell_names(np.arange(len(node.rows)))
    for name, value, far in zip(names, node.rows.ravel().tolist(), reach.tolist(), strict=True):
        if math.isfinite(far):
            yield Interval(name, max(0.0, value - far), min(1.0, value + far), None, value, None)


def _of_real_node(
    node: LinearGaussianNode, level: float, without_prior: Callable[[], BayesianNetwork | None]
) -> Iterator[Interval]:
    """Weights and variance of a linear-Gaussian node with a prior: Student-t and inverse-gamma intervals."""
    ends = or_none(lambda: node.credible_intervals(level))
    if ends is None:
        return
    mean, free = node.table_, without_prior()
    likelihood = None if free is None else free.node(node.name).table_.values.ravel()
    for number, (where, value) in enumerate(mean.items()):
        low, high = (float(end.values.ravel()[number]) for end in ends)
        given = " | " + ", ".join(map(str, where[:-1])) if node.discrete_parents else ""
        mle = None if likelihood is None else finite(likelihood[number])
        if math.isfinite(low) and math.isfinite(high):
            yield Interval(f"{node.name}: {where[-1]}{given}", low, high, mle, None, finite(value))
