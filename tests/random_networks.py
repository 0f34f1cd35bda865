"""Random small networks, and their laws worked out by listing every joint state: the judge of the queries."""

import dataclasses
import itertools
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

import suffice as sf
from suffice.domain import Domain, Variable
from suffice.models.bayesian.nodes.linear_gaussian import LinearGaussianNode
from suffice.models.bayesian.nodes.table import TableNode

Floats = NDArray[np.float64]
Row = dict[Any, Any]

#: Names and states of many types, none of which may be told apart by its string alone.
NAMES: tuple[Hashable, ...] = ("a", 0, (1, 2), "", None, "0", 2.5)
STATES: tuple[tuple[Hashable, ...], ...] = (
    ("only",),
    ("no", "yes"),
    (True, False),
    (2, 0, 1),
    ("x", 1, "1"),
    (0.5, -1.5),
)


@st.composite
def graphs(draw: st.DrawFn, most: int = 5, names: Sequence[Hashable] = NAMES) -> dict[Hashable, tuple[Hashable, ...]]:
    """Parents of each node, nodes and parents in any order."""
    order = draw(st.permutations(names))[: draw(st.integers(2, most))]
    parents = {
        node: tuple(draw(st.permutations(draw(st.lists(st.sampled_from(order[:at]), unique=True, max_size=3)))))
        if at
        else ()
        for at, node in enumerate(order)
    }
    return {node: parents[node] for node in draw(st.permutations(order))}


@st.composite
def table_networks(draw: st.DrawFn, most: int = 5) -> sf.BayesianNetwork:
    """A network of random tables, some with zeros."""
    parents = draw(graphs(most))
    domain = Domain(Variable.discrete(node, draw(st.permutations(draw(st.sampled_from(STATES))))) for node in parents)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    zeros = draw(st.booleans())
    tables = {}
    for node, above in parents.items():
        weights = rng.gamma(1.0, size=domain.shape([*above, node]))
        if zeros:
            weights *= rng.random(weights.shape) < 0.7
            weights[..., 0] += weights.sum(axis=-1) == 0
        tables[node] = weights / weights.sum(axis=-1, keepdims=True)
    return sf.BayesianNetwork.from_tables(domain, parents, tables)


@st.composite
def real_networks(draw: st.DrawFn, most: int = 5, *, points: bool = False) -> sf.BayesianNetwork:
    """A linear-Gaussian network; with `points` some nodes have no variance."""
    parents = draw(graphs(most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    nodes = {}
    for node, above in parents.items():
        domain = Domain(Variable(name, "real") for name in (*above, node))
        variance = 0.0 if points and draw(st.booleans()) else float(rng.gamma(2.0))
        nodes[node] = LinearGaussianNode.given(domain, rng.normal(size=len(above) + 1), variance)
    return network_of(parents, nodes)


@st.composite
def mixed_networks(draw: st.DrawFn, most: int = 6) -> sf.BayesianNetwork:
    """Tables, and linear-Gaussian nodes with discrete and real parents; at least one of each."""
    names = draw(st.permutations(NAMES))[: draw(st.integers(2, most))]
    split = draw(st.integers(1, len(names) - 1))
    discrete, real = names[:split], names[split:]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    variables = {n: Variable.discrete(n, draw(st.sampled_from(STATES))) for n in discrete}
    variables |= {n: Variable(n, "real") for n in real}
    parents: dict[Hashable, tuple[Hashable, ...]] = {}
    nodes: dict[Hashable, Any] = {}
    for at, node in enumerate(names):
        above = names[:at]
        parents[node] = (
            tuple(draw(st.permutations(draw(st.lists(st.sampled_from(above), unique=True, max_size=3))))) if at else ()
        )
        domain = Domain(variables[name] for name in (*parents[node], node))
        if node in discrete:
            shape = domain.shape(domain.names)
            table = rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])
            nodes[node] = TableNode.given(domain, table)
        else:
            cards = tuple(variables[p].card for p in parents[node] if p in discrete)
            q = 1 + sum(p in real for p in parents[node])
            nodes[node] = LinearGaussianNode.given(domain, rng.normal(size=(*cards, q)), rng.gamma(2.0, size=cards))
    return network_of(parents, nodes)


def network_of(parents: Mapping[Any, Sequence[Any]], nodes: Mapping[Any, Any]) -> sf.BayesianNetwork:
    """A network whose nodes are given."""
    net = sf.BayesianNetwork({node: list(above) for node, above in parents.items()})
    return net._with_nodes({node: nodes[node] for node in net.nodes})


def discrete_nodes(net: sf.BayesianNetwork) -> list[Hashable]:
    """The nodes with states."""
    return [node for node in net.nodes if net.node(node).domain[node].kind == "discrete"]


def joint_states(net: sf.BayesianNetwork) -> Iterator[tuple[Row, float]]:
    """Every joint state of the discrete nodes with its probability, from the tables by label."""
    names = discrete_nodes(net)
    for states in itertools.product(*(net.states(node) for node in names)):
        row: Row = dict(zip(names, states, strict=True))
        tables = ((node, net.table(node)) for node in names)
        yield row, math.prod(t.at({name: row[name] for name in (*net.parents(node), node)}) for node, t in tables)


def same_state(left: Any, right: Any) -> bool:
    """1, True and "1" are three states."""
    return type(left) is type(right) and bool(left == right)


@dataclass
class Case:
    """One joint state of the discrete nodes: its weight given the evidence, and the law of the real nodes there."""

    row: Row
    log_weight: float
    names: list[Hashable]
    mean: Floats
    covariance: Floats


def cases(net: sf.BayesianNetwork, given: Mapping[Any, Any]) -> list[Case]:
    """The law of a network given states and values: for each joint state a normal law, by dense matrices."""
    found = []
    real = [node for node in net.nodes if node not in set(discrete_nodes(net))]
    for row, probability in joint_states(net):
        if probability == 0 or any(node in given and not same_state(given[node], row[node]) for node in row):
            continue
        mean, covariance = _normal(net, row, real)
        seen = [at for at, node in enumerate(real) if node in given]
        rest = [at for at in range(len(real)) if at not in seen]
        values = np.array([given[real[at]] for at in seen], dtype=np.float64)
        log = math.log(probability)
        if seen:
            inner = covariance[np.ix_(seen, seen)]
            log += float(multivariate_normal(mean[seen], inner).logpdf(values))
            gain = covariance[np.ix_(rest, seen)] @ np.linalg.inv(inner)
            away = values - mean[seen]
            mean, covariance = (
                mean[rest] + gain @ away,
                covariance[np.ix_(rest, rest)] - gain @ covariance[np.ix_(seen, rest)],
            )
        found.append(Case(row, log, [real[at] for at in rest], mean, covariance))
    return found


def _normal(net: sf.BayesianNetwork, row: Row, real: Sequence[Hashable]) -> tuple[Floats, Floats]:
    """Mean and covariance of the real nodes at a joint state: x = b + B x + noise, so x = (I - B)^-1 (b + noise)."""
    d = len(real)
    slopes, offset, variance = np.zeros((d, d)), np.zeros(d), np.zeros(d)
    for at, name in enumerate(real):
        node: LinearGaussianNode = net.node(name)
        place = tuple(node.domain[p].index(row[p]) for p in node.discrete_parents)
        weights = node.weights_[place]
        offset[at], variance[at] = weights[0], np.asarray(node.variance_)[place]
        for parent, weight in zip(node.real_parents, weights[1:], strict=True):
            slopes[at, real.index(parent)] = weight
    inverse = np.linalg.inv(np.eye(d) - slopes)
    return inverse @ offset, inverse @ np.diag(variance) @ inverse.T


def certificate_at(net: sf.BayesianNetwork, replaced: Mapping[Hashable, Any] | None = None, **nodes: Any) -> Any:
    """The certificate of a fit with some of its nodes replaced, measured anew."""
    assert net._fit is not None
    fitted = dataclasses.replace(net.fitted_, nodes=dict(net.fitted_.nodes) | dict(replaced or {}) | nodes)
    return net._task().problem(net._fit.data, None).judge(fitted).certificate
