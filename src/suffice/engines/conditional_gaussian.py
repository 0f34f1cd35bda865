"""Exact inference in conditional linear-Gaussian networks: tables, and real nodes with discrete and real parents.

The discrete variables on which the real ones depend are enumerated, component by component (`gaussian_components`):
each joint state gives a normal distribution, and the density of the observed values there is a factor over these
variables. With it the discrete part is a discrete network, which a junction tree solves. Real variables follow a
mixture of normal distributions.

Point masses (variance 0) are limits of small variances: a joint state that puts the observed values on more point
masses outweighs every joint state with fewer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats, RandomState
from suffice.checks import generator
from suffice.engines.calibration import Calibration
from suffice.engines.gaussian_components import Component, cut
from suffice.engines.junction_tree import TreePlan, plan_tree
from suffice.engines.likelihood_weighting import WeightedSamples, weigh_samples
from suffice.engines.mixed_network import MixedNetwork
from suffice.engines.mixtures import GaussianMixture
from suffice.errors import DataError, OptionError, SizeError, listing
from suffice.graphs.nodes import Node

#: exp(-1500) is 0, also after a sum over all joint states.
UNDERFLOW = 1500.0
#: Joint states of discrete variables that are enumerated for a component of real ones.
LIMIT = 2**16
#: Junction trees that are kept for the next question of the same kind.
KEPT_PLANS = 32


class ConditionalGaussian:
    """The exact engine for a network of tables and regressions.

    >>> from suffice.engines.mixed_network import Discrete, NodeRegression
    >>> x = NodeRegression(discrete=("z",), reals=(), weights=[[0.0], [2.0]], variance=[1.0, 1.0])
    >>> network = MixedNetwork({"z": Discrete((), [0.5, 0.5])}, {"x": x})
    >>> ConditionalGaussian(network).condition({"x": 1.0}).table(("z",))
    array([0.5, 0.5])
    """

    def __init__(self, network: MixedNetwork, *, limit: int = LIMIT) -> None:
        """Take the network; `limit` bounds the joint states that are enumerated."""
        self.network = network
        self.limit = limit
        self._plans: dict[Any, TreePlan] = {}

    def plan(self, nodes: Sequence[Node], more: Sequence[tuple[Node, ...]]) -> TreePlan:
        """The junction tree of the tables of some nodes and of further scopes; the last few are kept."""
        key = (tuple(nodes), tuple(more))
        plan = self._plans.get(key)
        if plan is None:
            scopes = [*((*self.network.tables[node].parents, node) for node in nodes), *more]
            plan = plan_tree({node: self.network.cards[node] for node in nodes}, scopes)
            self._plans = dict([*self._plans.items(), (key, plan)][-KEPT_PLANS:])
        return plan

    def condition(
        self, evidence: Mapping[Any, Any] | None = None, likelihoods: Mapping[Any, Floats] | None = None
    ) -> MixedPosterior:
        """The distribution of all nodes given states (by index) and values of some; a query decides what is computed.

        likelihoods: soft evidence on discrete nodes, one number (card,) for each state.
        """
        return MixedPosterior(self, *self.network.split(evidence or {}), likelihoods or {})

    def approximate(
        self,
        evidence: Mapping[Any, Any] | None = None,
        targets: Sequence[Node] | None = None,
        *,
        n: int = 10_000,
        random_state: RandomState = None,
    ) -> WeightedSamples:
        """The same from n weighted samples, whatever the size of the network; see `effective_sample_size`."""
        return weigh_samples(self.network, evidence, targets, n=n, random_state=random_state)

    def log_evidence(self, evidence: Mapping[Any, Any]) -> float:
        """Log probability of states times density of values; -inf where they are impossible."""
        return self.condition(evidence).log_evidence


@dataclass(frozen=True)
class SolvedComponents:
    """The nodes that some question needs: real components, and the discrete part with the density of the values."""

    components: Sequence[Component]
    distribution: Calibration
    log_evidence: float
    n_points: int


class MixedPosterior:
    """The distribution of a conditional linear-Gaussian network under evidence; exact.

    Each question leaves out the nodes that have no bearing on it. It raises SizeError where the discrete variables that
    real ones depend on have too many joint states.
    """

    def __init__(
        self,
        engine: ConditionalGaussian,
        states: Mapping[Node, int],
        values: Mapping[Node, float],
        likelihoods: Mapping[Node, Floats],
    ) -> None:
        self._engine, self._states, self._values, self._likelihoods = engine, states, values, likelihoods
        self._columns = {node: np.array([value]) for node, value in values.items()}
        self._cache: dict[frozenset[Node], SolvedComponents] = {}

    @property
    def log_evidence(self) -> float:
        """Log probability of the given states times density of the given values, point masses counted as one."""
        return self._solve(()).log_evidence

    @property
    def n_points(self) -> int:
        """How many of the given values lie on point masses."""
        return self._solve(()).n_points

    def table(self, names: Sequence[Node]) -> Floats:
        """The joint distribution of discrete variables, axes in the order asked."""
        return self._possible(names).distribution.marginal(tuple(names))

    def mixture(self, names: Sequence[Node]) -> GaussianMixture:
        """The joint distribution of real variables: a normal one for each joint state of what they depend on."""
        discrete = [node for node in names if node in self._engine.network.tables]
        if discrete:
            raise OptionError(f"A mixture is of real variables; {listing(discrete)} is discrete. Ask for its table.")
        return self.mixture_by((), names)[1]

    def mixture_by(self, discrete: Sequence[Node], reals: Sequence[Node]) -> tuple[NDArray[np.intp], GaussianMixture]:
        """The joint distribution of discrete and real variables: normal distributions, and the cell (c,) of each.

        Cells number the joint states of the discrete variables, the last one fastest. The weights of a cell add up to
        its probability.
        """
        solved = self._possible([*discrete, *reals])
        parts = [part for part in solved.components if set(part.hidden) & set(reals)]
        union = tuple(dict.fromkeys([*discrete, *(name for part in parts for name in part.interface)]))
        shape = tuple(self._engine.network.cards[name] for name in union)
        if math.prod(shape) > self._engine.limit:
            raise SizeError(
                f"The real variables {listing(reals)} depend together on {listing(union)}, which have "
                f"{math.prod(shape):,} joint states; the limit is {self._engine.limit:,}. Ask for fewer of them "
                "together, or raise the limit."
            )
        weights = solved.distribution.marginal(union).ravel()
        used = np.flatnonzero(weights > 0)
        places = np.array(np.unravel_index(used, shape or (1,)))
        answers = [self._part(part, reals, places[[union.index(name) for name in part.interface]]) for part in parts]
        cells = used // math.prod(shape[len(discrete) :])
        return cells, _assembled(tuple(reals), weights[used], answers, self._values)

    def sample(self, n: int = 1, random_state: RandomState = None) -> dict[Node, NDArray[Any]]:
        """`n` draws (n,) by node: discrete ones from their exact distribution, real ones given these."""
        rng = generator(random_state)
        solved = self._possible(self._engine.network.order)
        codes = solved.distribution.sample(n, random_state=rng)
        drawn: dict[Node, NDArray[Any]] = {
            node: codes[:, column] for column, node in enumerate(solved.distribution.space.nodes)
        }
        drawn |= {node: np.full(n, value) for node, value in self._values.items()}
        for part in solved.components:
            if part.hidden:
                drawn |= zip(part.hidden, self._draw(part, drawn, n, rng).T, strict=True)
        return drawn

    def _draw(self, part: Component, drawn: Mapping[Node, NDArray[Any]], n: int, rng: np.random.Generator) -> Floats:
        """The unobserved nodes of a component (n, u), given the states drawn for its interface."""
        answers = part.solve(self._columns, 1, part.hidden)
        states = tuple(drawn[name] for name in part.interface)
        cells = np.ravel_multi_index(states, part.shape) if states else np.zeros(n, dtype=np.intp)
        z = rng.standard_normal((n, answers.root.shape[2]))
        means: Floats = answers.means[cells, 0]
        order = np.argsort(cells, kind="stable")
        ends = np.flatnonzero(np.diff(cells[order])) + 1
        for rows in np.split(order, ends) if n else ():
            means[rows] += z[rows] @ answers.root[cells[rows[0]]].T
        return means

    def _part(
        self, part: Component, names: Sequence[Node], places: NDArray[Any]
    ) -> tuple[tuple[Node, ...], Floats, Floats]:
        """Names, means (c, u) and roots (c, u, r) of one component at joint states of its interface (b, c)."""
        asked = tuple(node for node in part.hidden if node in names)
        answers = part.solve(self._columns, 1, asked)
        if not len(places):
            return asked, answers.means[:, 0], answers.root
        rows = np.ravel_multi_index(tuple(places), part.shape)
        return asked, answers.means[rows, 0], answers.root[rows]

    def _possible(self, names: Sequence[Node]) -> SolvedComponents:
        solved = self._solve(names)
        if solved.log_evidence == -math.inf:
            raise DataError("The evidence is impossible: its probability or density is 0.")
        return solved

    def _solve(self, names: Sequence[Node]) -> SolvedComponents:
        network = self._engine.network
        relevant = frozenset(network.above([*names, *self._states, *self._values, *self._likelihoods]))
        if relevant not in self._cache:
            self._cache[relevant] = self._solved(relevant)
        return self._cache[relevant]

    def _solved(self, relevant: frozenset[Node]) -> SolvedComponents:
        network = self._engine.network
        reals = [node for node in network.order if node in relevant and node in network.regressions]
        observed = frozenset(self._values)
        components = cut(reals, network.regressions, network.cards, observed, self._states, self._engine.limit)
        # Where nothing is observed the density is 1.
        informed = [component for component in components if component.observed]
        answers = [component.solve(self._columns, 1) for component in informed]
        tables = {node: table for node, table in network.tables.items() if node in relevant}
        lift, logs = lifted(answers, [table for _, table in tables.values()] + list(self._likelihoods.values()))
        with np.errstate(divide="ignore"):
            factors = [np.log(np.asarray(table, dtype=np.float64)) for _, table in tables.values()]
        factors += [log[0].reshape(part.shape) for log, part in zip(logs, informed, strict=True)]
        plan = self._engine.plan(tuple(tables), [part.interface for part in informed])
        distribution = plan.load(factors, log=True).condition(self._states, self._likelihoods)
        points = int(points_of(answers, lift, np.array([distribution.log_partition]))[0])
        return SolvedComponents(components, distribution, distribution.log_partition - lift * points, points)


class Densities(Protocol):
    """Densities of values at joint states of some discrete variables."""

    @property
    def log_density(self) -> Floats:
        """Logarithms (n, c), points counted as 0."""

    @property
    def points(self) -> NDArray[np.intp]:
        """How many values lie on point masses, (c,) or (n, c)."""


def lifted(parts: Sequence[Densities], tables: Sequence[ArrayLike]) -> tuple[float, list[Floats]]:
    """Log densities (n, c) of components, raised by an amount for each point mass, and that amount.

    The amount is larger than any difference between log densities and between log probabilities of joint states, so
    more points outweigh fewer. It is 0 where all joint states have as many.
    """
    if all((answers.points == answers.points[..., :1]).all() for answers in parts):
        return 0.0, [answers.log_density for answers in parts]
    lift = UNDERFLOW
    for answers in parts:
        finite = answers.log_density[np.isfinite(answers.log_density)]
        lift += 2 * float(np.abs(finite).max(initial=0.0))
    for table in tables:
        positive = np.asarray(table, dtype=np.float64)
        lift += 2 * float(np.abs(np.log(positive[positive > 0])).max(initial=0.0)) + 2 * math.log(positive.size)
    return lift, [answers.log_density + lift * answers.points for answers in parts]


def points_of(parts: Sequence[Densities], lift: float, log_sums: Floats) -> NDArray[np.intp]:
    """Points (n,) on which the joint states that count put the values, from the lifted sums (n,)."""
    if not lift:
        return np.zeros(len(log_sums), np.intp) + sum(answers.points.max(axis=-1, initial=0) for answers in parts)
    return np.where(np.isfinite(log_sums), np.round(np.maximum(log_sums, 0.0) / lift), 0).astype(np.intp)


def _assembled(
    names: tuple[Node, ...],
    weights: Floats,
    parts: Sequence[tuple[tuple[Node, ...], Floats, Floats]],
    values: Mapping[Node, float],
) -> GaussianMixture:
    """One mixture from independent parts and from known values."""
    count, width = len(weights), sum(root.shape[2] for _, _, root in parts)
    means, roots = np.zeros((count, len(names))), np.zeros((count, len(names), width))
    start = 0
    for asked, centre, root in parts:
        columns = [names.index(node) for node in asked]
        means[:, columns] = centre
        roots[:, columns, start : start + root.shape[2]] = root
        start += root.shape[2]
    for node in set(names) & set(values):
        means[:, names.index(node)] = values[node]
    return GaussianMixture(names, weights, means, roots)
