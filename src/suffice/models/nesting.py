"""Tests between models of which one is a special case of the other: likelihood ratios, and scores of edges left out.

Which model lies in which is checked, not believed: by the columns of regressions, the span of features, the edges of
graphs, the independences of networks (Verma and Pearl 1990: a network can take every distribution of another where each
independence that it asks for holds in the other), and the parameters that distributions know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Flags, Floats
from suffice.domain import Domain
from suffice.errors import DataError, EstimateError, OptionError, listing, shortened
from suffice.families.exponential import Exponential
from suffice.families.exponential_family import ExponentialFamily
from suffice.families.gamma import Gamma
from suffice.fitting.estimator import Estimator
from suffice.fitting.hypotheses import HypothesisTest
from suffice.fitting.report import QUASI
from suffice.models.bayesian.declaration import BayesianNetwork
from suffice.models.bayesian.fitted import NetworkFitted
from suffice.models.gaussian_graph.declaration import GaussianGraph
from suffice.models.glm.declaration import GLM
from suffice.models.hidden_markov.declaration import HiddenMarkovModel
from suffice.models.markov.declaration import MarkovNetwork
from suffice.models.markov_chain.declaration import MarkovChain
from suffice.models.markov_chain.estimates import told_parameters
from suffice.models.mixture import Mixture
from suffice.models.dynamic_network.declaration import DynamicBayesianNetwork
from suffice.models.structures import DirectedGraph
from suffice.solvers.covariance_newton import entry_information
from suffice.statistics import Moments

#: Joint states up to which the span of features is compared, and log-likelihoods that are told apart.
MOST_CELLS, ROUNDING = 4_096, 1e-6
#: Singular values below this share of the largest are rounding.
RANK = 1e-9


def likelihood_ratio_test(smaller: Estimator, larger: Estimator) -> HypothesisTest:
    """Test a fit against a larger one of the same rows in which it is nested: does that gain more than by chance?

    Args:
        smaller: a fitted `GLM`, `MarkovNetwork`, `GaussianGraph`, `BayesianNetwork`, `MarkovChain` or distribution.
        larger: one of the same kind that can take every distribution of the smaller one, which is checked.

    Returns:
        Twice the difference of the log-likelihoods, chi-squared with as many degrees of freedom as the larger fit has
        parameters more that the rows tell. Where the maximum of the smaller fit is not attained, they are counted on
        the joint states that its limit leaves, and rows of tables that no row of data meets in neither. A Poisson regression lies on the edge of negative binomial ones, 1 / size = 0: the statistic is then half
        of the time smaller by one degree of freedom (Self and Liang 1987). Regressions whose dispersion is estimated
        have an F test.
    """
    _check_fits(smaller, larger)
    for small, large, ask in _NESTED:
        if isinstance(smaller, small) and isinstance(larger, large):
            why = ask(smaller, larger)
            break
    else:
        raise OptionError(_no_test(smaller, larger))
    if why:
        raise OptionError(f"The smaller fit is not nested in the larger one: {why}.")
    if isinstance(smaller, GLM):
        return _of_regressions(smaller, larger)
    df = _degrees(smaller, larger)
    if df <= 0:
        raise OptionError(
            f"The larger fit has no parameter more that these rows tell, of {larger.n_params_:,} against "
            f"{smaller.n_params_:,}; there is nothing to test."
        )
    return _chi2(_gain(smaller, larger), df)


def _no_test(smaller: Estimator, larger: Estimator) -> str:
    """Why two fits have no likelihood-ratio test, whatever their rows."""
    kinds = f"There is no likelihood-ratio test of a {type(smaller).__name__} against a {type(larger).__name__}."
    if isinstance(larger, Mixture | HiddenMarkovModel):
        return (
            f"{kinds} Hidden states lie on no smooth edge of one state more: compare such fits by BIC, or by a "
            "parametric bootstrap."
        )
    if type(smaller) is not type(larger):
        return f"{kinds} Give two fits of one class, of which one is a special case; sf.compare sets any side by side."
    return f"{kinds} sf.compare sets them side by side, by BIC or by rows held out."


def _check_fits(smaller: Any, larger: Any) -> None:
    for name, model in (("smaller", smaller), ("larger", larger)):
        if not isinstance(model, Estimator):
            raise OptionError(f"{name} is {shortened(model)}; expected a fitted model.")
        estimate = model.report_.estimate
        if estimate not in ("maximum likelihood", QUASI):
            raise EstimateError(f"The {name} fit is {estimate}; tests are of maximum likelihood, without a prior.")
    first, second = smaller.report_.weight, larger.report_.weight
    if abs(first - second) > 1e-9 * second:
        raise DataError(f"The fits have learned from {first:,.6g} and {second:,.6g} rows; give fits to the same rows.")


def _degrees(smaller: Any, larger: Any) -> int:
    """How many parameters more the larger fit has, of those that the rows tell.

    Both are counted on the support of the smaller fit: under it, no other joint state can be seen (Geyer 2009). Rows of
    tables at states of the parents that never occur say nothing, and are counted in neither.
    """
    if isinstance(smaller, MarkovNetwork):
        order = larger.nodes
        possible = _possible_cells(smaller, order)
        spans = [_rank(design_of(model, order)[possible]) for model in (smaller, larger)]
        return spans[1] - spans[0]
    if isinstance(smaller, BayesianNetwork):
        return _told(larger, larger.fitted_, smaller.fitted_) - _told(smaller, smaller.fitted_, smaller.fitted_)
    if isinstance(smaller, MarkovChain):
        return told_parameters(larger.fitted_, smaller.fitted_) - told_parameters(smaller.fitted_, smaller.fitted_)
    return int(larger.n_params_ - smaller.n_params_)


def _told(model: BayesianNetwork, fitted: NetworkFitted, support: NetworkFitted) -> int:
    """Parameters of a network that the rows tell, on the support of another one."""
    told = sum(fitted.nodes[name].told(_possible_of(fitted.nodes[name], support)) for name in fitted.leading)
    return min(told, model.n_params_)  # EM may have found further directions that no rows determine.


def _possible_of(node: Any, support: NetworkFitted) -> Any:
    """Which joint states of a table's family a network gives a probability; None where all, or for no table."""
    tables = [other for other in support.nodes.values() if other.kind == "table"]
    if node.kind != "table" or all((other.rows > 0.0).all() for other in tables):
        return None
    own, names = support.nodes[node.name], node.domain.names
    # Where no arc is turned, further parents are no descendants: the own row says all.
    table = own.table_ if set(own.parents) <= set(node.parents) else support.query(list(names))
    states = [[table.domain[name].index(state) for state in node.domain[name].states] for name in table.variables]
    cells = table.values[np.ix_(*states)] > 0.0
    order = [name for name in names if name in table.variables]
    cells = np.transpose(cells, [table.variables.index(name) for name in order])
    shape = tuple(node.domain[name].card if name in order else 1 for name in names)
    return np.broadcast_to(cells.reshape(shape), node.domain.shape(names))


def _gain(smaller: Estimator, larger: Estimator) -> float:
    """Twice the difference of the log-likelihoods; a larger fit that is worse has not reached its maximum."""
    gain = 2.0 * (larger.log_likelihood_ - smaller.log_likelihood_)
    if gain < -ROUNDING * max(1.0, abs(larger.log_likelihood_)):
        raise EstimateError(
            f"The larger fit has the lower log-likelihood ({larger.log_likelihood_:,.6f} against "
            f"{smaller.log_likelihood_:,.6f}): it has not reached its maximum. Lower its tolerance, or raise n_init."
        )
    return max(0.0, gain)


def _chi2(statistic: float, df: float, note: str = "") -> HypothesisTest:
    from scipy.special import chdtrc

    return HypothesisTest(statistic, float(df), float(chdtrc(df, statistic)), note=note)


# -- which lies in which -----------------------------------------------------------------------------------------------


def _regression_in(smaller: GLM, larger: GLM) -> str:
    first, second = smaller.fitted_, larger.fitted_
    families = (first.family, second.family)
    if families[0] != families[1] and families != ("poisson", "negative_binomial"):
        return f"they have the families {families[0]} and {families[1]}"
    if first.link != second.link:
        return f"they have the links {first.link} and {second.link}"
    extra = [name for name in first.parameters.names if name not in second.parameters.names]
    return f"the larger one has no coefficient {listing(extra)}" if extra else ""


def _network_in(smaller: BayesianNetwork, larger: BayesianNetwork) -> str:
    if set(smaller.nodes) != set(larger.nodes):
        return "they have different nodes"
    first, second = smaller.fitted_, larger.fitted_
    nodes = [*first.nodes.values(), *second.nodes.values()]
    kinds = {node.kind for node in nodes}
    if smaller.get_params(deep=False)["hidden"] or larger.get_params(deep=False)["hidden"]:
        return "some nodes are hidden, and the likelihood is not regular where they explain nothing"
    for name in smaller.nodes:
        if set(first.variable(name).states) != set(second.variable(name).states):
            return f"they have different states of {name!r}"
    options = [model.get_params(deep=False) for model in (smaller, larger)]
    for option in ("fixed", "tied"):
        if options[1][option] and options[0][option] is not options[1][option]:
            return f"the larger one has {option}= of its own: give both fits the same object"
    graphs = DirectedGraph(smaller), DirectedGraph(larger)
    if len(kinds) == 1 and kinds <= {"table", "linear-gaussian"}:
        for node in graphs[1].nodes:
            parents = set(graphs[1].parents(node))
            rest = set(graphs[1].nodes) - parents - {node, *graphs[1].descendants(node)}
            if rest and not graphs[0].d_separated(node, sorted(rest, key=str), given=sorted(parents, key=str)):
                return f"the larger one makes {node!r} independent of {listing(rest)} given its parents"
        return ""
    lost = [node for node in graphs[0].nodes if not set(graphs[0].parents(node)) <= set(graphs[1].parents(node))]
    return f"the larger one lacks parents of {listing(lost)}" if lost else ""


def _graph_in(smaller: GaussianGraph, larger: GaussianGraph) -> str:
    if set(smaller.nodes) != set(larger.nodes):
        return "they have different nodes"
    if larger.fitted_.known_mean and not smaller.fitted_.known_mean:
        return "the larger one knows the mean"
    missing = {frozenset(edge) for edge in smaller.edges} - {frozenset(edge) for edge in larger.edges}
    return f"the larger one lacks the edge {listing(tuple(edge) for edge in missing)}" if missing else ""


def _markov_in(smaller: MarkovNetwork, larger: MarkovNetwork) -> str:
    first, second = smaller.fitted_, larger.fitted_
    for name in (*smaller.nodes, *larger.nodes):
        known = [set(f.domain[name].states) if name in f.domain.names else None for f in (first, second)]
        if known[0] != known[1]:
            return f"they have different states of {name!r}"
    if smaller.get_params(deep=False)["hidden"] or larger.get_params(deep=False)["hidden"]:
        return "some variables are hidden, and the likelihood is not regular where they explain nothing"
    every = design_of(larger, larger.nodes)
    both = np.hstack([every, design_of(smaller, larger.nodes)])
    return "" if _rank(both) == _rank(every) else "the larger one cannot take all of its distributions"


def _chain_in(smaller: MarkovChain, larger: MarkovChain) -> str:
    if smaller.states_ != larger.states_:
        return "they have different states"
    orders = [model.get_params(deep=False)["order"] for model in (smaller, larger)]
    return f"they have the orders {orders[0]} and {orders[1]}" if orders[0] > orders[1] else ""


def _family_in(smaller: ExponentialFamily, larger: ExponentialFamily) -> str:
    if isinstance(smaller, Exponential) and isinstance(larger, Gamma):
        return ""
    if type(smaller) is not type(larger):
        return f"a {type(smaller).__name__} is no special case of a {type(larger).__name__}"
    known = [model._member.known for model in (smaller, larger)]
    differing = [name for name, value in known[1].items() if not np.array_equal(known[0].get(name), value)]
    return f"the larger one knows {listing(differing)}, which is not so in the smaller" if differing else ""


_NESTED: tuple[tuple[type, type, Callable[[Any, Any], str]], ...] = (
    (GLM, GLM, _regression_in),
    (BayesianNetwork, BayesianNetwork, _network_in),
    (GaussianGraph, GaussianGraph, _graph_in),
    (MarkovNetwork, MarkovNetwork, _markov_in),
    (MarkovChain, MarkovChain, _chain_in),
    (ExponentialFamily, ExponentialFamily, _family_in),
)


def design_of(network: MarkovNetwork, order: tuple[Any, ...]) -> Floats:
    """A constant, and the features of every joint state (cells, 1 + k), axes of the cells in the order of variables."""
    fitted = network.fitted_
    shape = fitted.domain.shape(fitted.domain.names)
    if np.prod(shape, dtype=float) > MOST_CELLS:
        raise EstimateError(
            f"Features are compared over all joint states, of which there are {np.prod(shape, dtype=float):,.0f}; the "
            f"limit is {MOST_CELLS:,}."
        )
    model = fitted.near.model
    cells = _states_in(fitted.domain, order)
    return np.column_stack([np.ones(len(cells)), model.design(cells)])


def _states_in(domain: Domain, order: tuple[Any, ...]) -> NDArray[np.intp]:
    """Every joint state (states, variables) as codes by column of a domain, the last variable of an order fastest."""
    codes = np.indices(domain.shape(order)).reshape(len(order), -1)
    return codes[[order.index(name) for name in domain.names]].T


def _possible_cells(network: MarkovNetwork, order: tuple[Any, ...]) -> Flags:
    """The joint states that a network gives a probability, laid out as the rows of `design_of`."""
    fitted = network.fitted_
    logs = fitted.near.log_joint(fitted.finite, fitted.log_normaliser)
    axes = [fitted.domain.names.index(name) for name in order]
    return np.asarray(np.isfinite(np.transpose(logs, axes)).ravel())


def _rank(matrix: Floats) -> int:
    sizes = np.linalg.svd(matrix, compute_uv=False)
    return int((sizes > RANK * sizes[0]).sum())


def _of_regressions(smaller: GLM, larger: Any) -> HypothesisTest:
    """As `GLM.likelihood_ratio_test`; a Poisson regression against negative binomial ones lies on their edge."""
    if smaller.fitted_.family == larger.fitted_.family:
        return smaller.likelihood_ratio_test(larger)
    from scipy.special import chdtrc

    df = int(larger.n_params_ - smaller.n_params_)
    gain = _gain(smaller, larger)
    inner = float(chdtrc(df - 1, gain)) if df > 1 else float(gain <= 0.0)
    p_value = 0.5 * inner + 0.5 * float(chdtrc(df, gain))
    note = f"half of chi2 on {df - 1} and half on {df} df, as 1 / size = 0 is an edge"
    return HypothesisTest(gain, float(df), p_value, name="chi-bar2", note=note)


# -- scores ------------------------------------------------------------------------------------------------------------


def score_test(model: Estimator, edge: Any) -> HypothesisTest:
    """Test whether an edge that a fitted graph leaves out is missing, without fitting the larger one (Rao's test).

    Args:
        model: a fitted `GaussianGraph` or `MarkovNetwork`.
        edge: two of its nodes; of a Markov network a clique of any size, which becomes a table.

    Returns:
        ``s' V^-1 s`` with the score s of the new parameters and its variance V given that of the others: chi-squared
        with as many degrees of freedom as the edge would bring.
    """
    _check_fits(model, model)
    if isinstance(model, GaussianGraph):
        return _score_of_precision(model, edge)
    if isinstance(model, MarkovNetwork):
        return _score_of_table(model, tuple(edge))
    raise OptionError(f"score_test is for a GaussianGraph or a MarkovNetwork; found {shortened(model)}.")


def _score_of_precision(graph: GaussianGraph, edge: Any) -> HypothesisTest:
    fitted, nodes = graph.fitted_, graph.nodes
    first, second = (nodes.index(name) for name in fitted.domain.names_of(list(edge)))
    if first == second or fitted.precision[first, second] != 0.0 or frozenset(edge) in map(frozenset, graph.edges):
        raise OptionError(f"{edge!r} is no pair of different nodes that the graph leaves apart.")
    moments: Any = graph.statistics_[Moments(nodes)]
    seen = moments.scatter_about(fitted.mean) / moments.weight
    pairs = np.vstack([fitted.structure.pairs, [[first, second]]])
    information = moments.weight * entry_information(fitted.covariance, pairs)
    score = moments.weight * (fitted.covariance[first, second] - seen[first, second])
    across = information[-1, :-1]
    variance = information[-1, -1] - across @ np.linalg.solve(information[:-1, :-1], across)
    return _chi2(float(score**2 / variance), 1.0)


def _score_of_table(network: MarkovNetwork, clique: tuple[Any, ...]) -> HypothesisTest:
    from suffice.models.markov.comparison import kept_joint

    fitted = network.fitted_
    if fitted.family.masks:
        raise EstimateError("The maximum of this fit is not attained, and its scores have no normal limit.")
    names = fitted.domain.names_of(list(clique))
    order, design = fitted.domain.names, design_of(network, fitted.domain.names)
    shape = fitted.domain.shape(order)
    axes = [order.index(name) for name in names]
    places = np.indices(shape).reshape(len(order), -1)[axes]
    sizes = [shape[axis] for axis in axes]
    cells = np.ravel_multi_index(tuple(places), sizes)
    whole = np.hstack([design, np.eye(int(np.prod(sizes)))[cells]])
    df = _rank(whole) - _rank(design)
    if not df:
        raise OptionError(f"The network can take every table of {listing(names)} already; there is nothing to test.")
    expected = np.exp(fitted.near.log_joint(fitted.finite, fitted.log_normaliser)).ravel()
    codes, counts = kept_joint(network.statistics_, order)
    weight = float(counts.sum())
    observed = np.zeros(expected.size)
    observed[np.ravel_multi_index(tuple(np.asarray(codes).T), shape)] = counts
    score = whole.T @ (observed - weight * expected)
    centred = whole - expected @ whole
    information = weight * (centred * expected[:, None]).T @ centred
    return _chi2(float(score @ np.linalg.pinv(information, rcond=1e-10, hermitian=True) @ score), float(df))
