"""Tests between models of which one is a special case of the other: likelihood ratios.

Which model lies in which is checked, not believed: by the columns of regressions, the span of features, the edges of
graphs, the independences of networks (Verma and Pearl 1990: a network can take every distribution of another where each
independence that it asks for holds in the other), and the parameters that distributions know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Flags, Floats
from suffice.domain import Domain
from suffice.errors import EstimateError, OptionError, listing, shortened
from suffice.families.exponential import Exponential
from suffice.families.exponential_family import ExponentialFamily
from suffice.families.gamma import Gamma
from suffice.fitting.estimator import Estimator
from suffice.fitting.hypotheses import HypothesisTest
from suffice.fitting.report import QUASI
from suffice.fitting.row_marks import check_same_rows
from suffice.models.bayesian.declaration import BayesianNetwork
from suffice.models.bayesian.fitted import NetworkFitted
from suffice.models.chain_crf.declaration import ChainCRF
from suffice.models.conditional_field.declaration import ConditionalField
from suffice.models.dynamic_network.declaration import DynamicBayesianNetwork
from suffice.models.dynamic_network.fitted import DynamicFitted
from suffice.models.dynamic_network.structure import name_of, place_of
from suffice.models.gaussian_graph.declaration import GaussianGraph
from suffice.models.glm.declaration import GLM
from suffice.models.graph_crf.declaration import GraphCRF
from suffice.models.hidden_markov.declaration import HiddenMarkovModel
from suffice.models.markov.declaration import MarkovNetwork
from suffice.models.markov_chain.declaration import MarkovChain
from suffice.models.markov_chain.estimates import told_parameters
from suffice.models.mixture import Mixture
from suffice.models.structures import DirectedGraph
from suffice.table import Table

#: Joint states up to which the span of features is compared, and log-likelihoods that are told apart.
MOST_CELLS, ROUNDING = 4_096, 1e-6
#: Singular values below this share of the largest are rounding.
RANK = 1e-9


def likelihood_ratio_test(smaller: Estimator, larger: Estimator) -> HypothesisTest:
    """Test a fit against a larger one of the same rows in which it is nested: does that gain more than by chance?

    Args:
        smaller: a fitted `GLM`, `MarkovNetwork`, `GaussianGraph`, `BayesianNetwork`, `DynamicBayesianNetwork`,
            `MarkovChain`, conditional random field or distribution.
        larger: one of the same kind that can take every distribution of the smaller one, which is checked.

    Returns:
        Twice the difference of the log-likelihoods, chi-squared with as many degrees of freedom as the larger fit has
        parameters more that the rows tell. Where the maximum of the smaller fit is not attained, they are counted on
        the joint states that its limit leaves, and rows of tables that no row of data meets in neither. A Poisson
        regression lies on the edge of negative binomial ones, 1 / size = 0: the statistic is then half of the time
        smaller by one degree of freedom (Self and Liang 1987). Regressions whose dispersion is estimated have an F
        test.
    """
    check_fits(smaller, larger)
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
    return chi2_test(_gain(smaller, larger), df)


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


def check_fits(smaller: Any, larger: Any) -> None:
    """Refuse what is no pair of fits to the same rows by maximum likelihood."""
    for name, model in (("smaller", smaller), ("larger", larger)):
        if not isinstance(model, Estimator):
            raise OptionError(f"{name} is {shortened(model)}; expected a fitted model.")
        estimate = model.report_.estimate
        if estimate not in ("maximum likelihood", QUASI):
            raise EstimateError(f"The {name} fit is {estimate}; tests are of maximum likelihood, without a prior.")
    check_same_rows({"The smaller fit": smaller, "the larger one": larger})


def _degrees(smaller: Any, larger: Any) -> int:
    """How many parameters more the larger fit has, of those that the rows tell.

    Both are counted on the support of the smaller fit: under it, no other joint state can be seen (Geyer 2009). Rows of
    tables at states of the parents that never occur say nothing, and are counted in neither.
    """
    if isinstance(smaller, MarkovNetwork):
        order = larger.nodes
        possible = _possible_cells(smaller, order)
        spans = [matrix_rank(design_of(model, order)[possible]) for model in (smaller, larger)]
        return spans[1] - spans[0]
    if isinstance(smaller, BayesianNetwork | DynamicBayesianNetwork):
        return _told(larger, smaller) - _told(smaller, smaller)
    if isinstance(smaller, MarkovChain):
        return told_parameters(larger.fitted_, smaller.fitted_) - told_parameters(smaller.fitted_, smaller.fitted_)
    return int(larger.n_params_ - smaller.n_params_)


def _told(model: Any, support: Any) -> int:
    """Parameters of a network that the rows tell, on the support of another one."""
    fitted, other = model.fitted_, support.fitted_
    zeros = [node.kind == "table" and not (node.rows > 0.0).all() for node in other.nodes.values()]
    possible = _possible_family if isinstance(model, DynamicBayesianNetwork) else _possible_states
    leading = fitted.network.leading if isinstance(model, DynamicBayesianNetwork) else fitted.leading
    free = 0
    for name in leading:
        node = fitted.nodes[name]
        free += node.told(possible(node, fitted, other) if any(zeros) and node.kind == "table" else None)
    return min(free, int(model.n_params_))  # EM may have found further directions that no rows determine.


def _possible_states(node: Any, fitted: NetworkFitted, support: NetworkFitted) -> Flags:
    """Which joint states of a table's family a network gives a probability."""
    own = support.nodes[node.name]
    # Where no arc is turned, further parents are no descendants: the own row says all.
    table = own.table_ if set(own.parents) <= set(node.parents) else support.query(list(node.domain.names))
    return _laid_out(table, {name: name for name in table.variables}, node)


def _possible_family(node: Any, fitted: DynamicFitted, support: DynamicFitted) -> Flags:
    """The same of the family of a slice, by the family that the other network has there."""
    time, _ = fitted.structure.span(node.name)
    places = {place_of(name, time): name for name in node.domain.names}
    table = support.table(support.structure.at(name_of(node.name), time))
    return _laid_out(table, {name: places[place_of(name, time)] for name in table.variables}, node)


def _laid_out(table: Table, names: dict[Any, Any], node: Any) -> Flags:
    """Where a table is positive, over the family of a node that calls its variables by other names."""
    variables = [table.domain[name] for name in table.variables]
    states = [[variable.index(state) for state in node.domain[names[variable.name]].states] for variable in variables]
    own = [names[name] for name in table.variables]
    order = [name for name in node.domain.names if name in own]
    cells = np.transpose(table.values[np.ix_(*states)] > 0.0, [own.index(name) for name in order])
    shape = tuple(node.domain[name].card if name in order else 1 for name in node.domain.names)
    return np.broadcast_to(cells.reshape(shape), node.domain.shape(node.domain.names))


def _gain(smaller: Estimator, larger: Estimator) -> float:
    """Twice the difference of the log-likelihoods; a larger fit that is worse has not reached its maximum."""
    gain = 2.0 * (larger.log_likelihood_ - smaller.log_likelihood_)
    if gain < -ROUNDING * max(1.0, abs(larger.log_likelihood_)):
        raise EstimateError(
            f"The larger fit has the lower log-likelihood ({larger.log_likelihood_:,.6f} against "
            f"{smaller.log_likelihood_:,.6f}): it has not reached its maximum. Lower its tolerance, or raise n_init."
        )
    return max(0.0, gain)


def chi2_test(statistic: float, df: float, note: str = "") -> HypothesisTest:
    """A test whose statistic is chi-squared."""
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
    why = _families_in(smaller, larger, [(name, name) for name in smaller.nodes])
    if why:
        return why
    kinds = {node.kind for fitted in (smaller.fitted_, larger.fitted_) for node in fitted.nodes.values()}
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


def _families_in(smaller: Any, larger: Any, pairs: Sequence[tuple[Any, Any]]) -> str:
    """Why one network's nodes, or families, cannot do what those of another one can, whatever their parents.

    pairs: which is to be compared with which.
    """
    options = [model.get_params(deep=False) for model in (smaller, larger)]
    if options[0]["hidden"] or options[1]["hidden"]:
        return "some nodes are hidden, and the likelihood is not regular where they explain nothing"
    for option in ("fixed", "tied"):
        if options[1][option] and options[0][option] is not options[1][option]:
            return f"the larger one has {option}= of its own: give both fits the same object"
    for name, other in pairs:
        first, second = smaller.fitted_.nodes[name], larger.fitted_.nodes[other]
        if first.kind != second.kind and second.kind != "table":
            return f"{name!r} is a {first.kind} node there and a {second.kind} node in the larger one"
        if first.kind == second.kind == "glm" and first.learned.family != second.learned.family:
            return f"{name!r} has the families {first.learned.family} and {second.learned.family}"
        variables = first.domain.variables[-1], second.domain.variables[-1]
        if variables[0].kind != variables[1].kind or set(variables[0].states) != set(variables[1].states):
            return f"they have different states of {name!r}"
    return ""


def _slices_in(smaller: DynamicBayesianNetwork, larger: DynamicBayesianNetwork) -> str:
    if set(smaller.nodes_) != set(larger.nodes_):
        return "they have different nodes"
    first, second = smaller.fitted_.structure, larger.fitted_.structure
    times = range(max(first.depth, second.depth) + 2)
    families = [(time, first.at(node, time), second.at(node, time)) for node in first.nodes for time in times]
    why = _families_in(smaller, larger, [(one, other) for _, one, other in families])
    if why:
        return why
    held: dict[Any, Any] = {}
    for time, one, other in families:
        if held.setdefault(other, one) != one:
            return f"the larger one has one table of {other!r} where the smaller has {listing([held[other], one])}"
        above = [{place_of(p, time) for p in s.families[f]} for s, f in ((first, one), (second, other))]
        if not above[0] <= above[1]:
            return f"the larger one lacks parents of {one!r}"
    return ""


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
    return "" if matrix_rank(both) == matrix_rank(every) else "the larger one cannot take all of its distributions"


def _field_in(smaller: ConditionalField, larger: ConditionalField) -> str:
    if set(smaller.labels_) != set(larger.labels_):
        return "they have different labels"
    known = set(larger.weight_names_)
    extra = [" ".join(map(str, name)) for name in smaller.weight_names_ if name not in known]
    return f"the larger one has no weights {listing(extra)}" if extra else ""


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
    (DynamicBayesianNetwork, DynamicBayesianNetwork, _slices_in),
    (GaussianGraph, GaussianGraph, _graph_in),
    (MarkovNetwork, MarkovNetwork, _markov_in),
    (ChainCRF, ChainCRF, _field_in),
    (GraphCRF, GraphCRF, _field_in),
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


def matrix_rank(matrix: Floats) -> int:
    """How many columns can be told apart."""
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
