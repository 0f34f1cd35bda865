"""What every kind of node of a Bayesian network can do.

A node is frozen: `learn` makes a new one from statistics. Columns are given by name: codes for discrete variables,
numbers for real ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Flags, Floats
from suffice.domain import Domain, Variable
from suffice.records import record, replace
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.fitting.inference import Inference
    from suffice.models.bayesian.em.coordinates import Coordinates, Units
    from suffice.models.bayesian.error_bars.spread import ParameterSpread
    from suffice.statistics import Statistic, Summary

Columns = Mapping[Any, NDArray[Any]]
#: Why nodes learned by EM have no posterior.
NO_POSTERIOR = (
    "The rows had missing values or hidden nodes, so the posterior has no closed form. The parameters are a mode: its "
    "own with estimate='map', that under pseudo-counts + 1 with estimate='mean'; standard_errors_ give their spread."
)
#: Names of the axes, and the array.
Factor = tuple[tuple[Hashable, ...], Floats]


class Node(Protocol):
    """P(node | parents), fitted. `domain` holds the parents in declared order, then the node."""

    kind: ClassVar[str]
    #: Whether the node is normal, with a mean that is linear in its real parents.
    linear: ClassVar[bool]

    @property
    def domain(self) -> Domain:
        """The parents in declared order, then the node."""
        ...

    @property
    def n_params(self) -> int:
        """Free parameters."""
        ...

    def log_likelihood(self, summary: Summary) -> float:
        """Sum over rows of log P(node | parents), from the statistics."""
        ...

    def gap(self, summary: Summary) -> float:
        """Slope of the node's objective at its parameters, a row."""
        ...

    def steepest(self, summary: Summary, least: float = 0.0) -> tuple[float, float]:
        """The largest difference of observed and expected statistics in standard errors, and the largest slope in nats.

        Both are of totals over the rows, with the slope and the curvature of the log prior. The slope of a variance
        that is held at `least` does not count where it points below.
        """
        ...

    def log_evidence(self) -> float | None:
        """Log marginal likelihood of the node's data under its prior; None without one."""
        ...

    def log_prior(self) -> float:
        """Log prior density of the parameters up to a constant, as learning maximises it; 0 without a prior."""
        ...

    def parameters(self) -> Floats:
        """All parameters as one vector, in coordinates in which the steps of EM may be extrapolated."""
        ...

    def with_parameters(self, vector: Floats) -> Self:
        """The node at other parameters; EstimateError where there is no such node."""
        ...

    def loss_bound(self, summary: Summary) -> float | None:
        """How much the node's objective, log-likelihood and log prior, can still rise; None where no bound is known.

        It holds at the parameters of the node, whoever found them.
        """
        ...

    def edges(self, summary: Summary) -> tuple[str, ...]:
        """What runs to infinity, or to the edge, where no parameters attain the largest objective, in words."""
        ...

    def held(self, least: float) -> Self:
        """The node with its variances at `least` or above; itself where it has none below, or none at all."""
        ...

    def in_units(self, vector: Floats, units: Units, *, forward: bool) -> Floats:
        """Parameters in units of the columns, given as centre and scale by name; or back from them."""
        ...

    def point_masses(self, columns: Columns, n: int) -> NDArray[np.bool_]:
        """Where a real node has no variance given its parents (n,): observing it then weighs as a point mass."""
        ...

    def coordinates(self, units: Units) -> Coordinates:
        """Free coordinates around the parameters, for the observed information of an EM fit."""
        ...

    def without_prior(self) -> Self:
        """The node at the same parameters, as if it had no prior."""
        ...

    @property
    def posterior_(self) -> Any:
        """The posterior of the parameters: mean, mode, variance, intervals, sample; an error without a prior."""
        ...

    @property
    def standard_errors_(self) -> Any:
        """Of the parameters, in their shape: from the information, or posterior standard deviations with a prior."""
        ...

    def error_table(self) -> Table:
        """The standard errors of all parameters by label."""
        ...

    def spread_of(self, group: Sequence[Any], summary: Summary | None) -> ParameterSpread:
        """What is known about the parameters that a group of tied nodes shares, itself among them, as it was learned.

        summary: the statistics of the rows, for nodes that do not keep what these say about them.
        """
        ...

    def inference(self) -> Inference:
        """What the rows say about each parameter: estimates, errors, intervals."""
        ...

    def log_prob(self, columns: Columns) -> Floats:
        """Log P(node | parents) of each row (n,)."""
        ...

    def predictive_log_prob(self, columns: Columns) -> Floats:
        """Log P(node | parents, rows learned) of each row (n,), parameters integrated out; needs a prior."""
        ...

    def sample(self, columns: Columns, rng: np.random.Generator, n: int) -> NDArray[Any]:
        """One value for each of n rows of the parents."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        ...

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data, checking it."""
        ...


class FittedNode:
    """What fitted nodes of every kind share; a kind overrides what it knows better."""

    kind: ClassVar[str]
    domain: Domain

    @property
    def name(self) -> Hashable:
        """The node."""
        return self.domain.names[-1]

    @property
    def parents(self) -> tuple[Hashable, ...]:
        """The parents in declared order."""
        return self.domain.names[:-1]

    def inference(self) -> Inference:
        """What the rows say about each parameter, where they have the layout of the table."""
        from suffice.models.bayesian.nodes.estimates import of_tables

        return of_tables(self.name, self.table_, self.error_table())  # type: ignore[attr-defined]

    # -- how it was learned ------------------------------------------------------------------------------------------

    @property
    def method(self) -> str | None:
        """How the parameters were found where they have no closed form."""
        return None

    @property
    def solver(self) -> str:
        """What a network's report calls the method."""
        return "Newton"

    @property
    def notes(self) -> tuple[str, ...]:
        """What learning has to say, for the report of the network."""
        return ()

    @property
    def directions(self) -> tuple[str, ...]:
        """What ran to infinity, or to the edge, while the node was learned, in words."""
        return ()

    @property
    def undecided(self) -> bool:
        """Whether it is open if some parameters attain the largest objective."""
        return False

    @property
    def stopped(self) -> str:
        """Why the node has not converged; empty where it has."""
        return ""

    @property
    def left_out(self) -> bool:
        """Whether columns were left out that may yet explain something: nobody can say how near the maximum is."""
        return False

    @property
    def n_unseen(self) -> int | None:
        """Joint states of the parents without any weight; None where the node has no parameters of their own."""
        return None

    def told(self, possible: Flags | None) -> int:
        """Free parameters of which the rows say something.

        possible: which joint states of a table's family (parents, node) can occur at all; None for all.
        """
        kept: int = self.n_params  # type: ignore[attr-defined]
        return kept

    # -- what it can answer ------------------------------------------------------------------------------------------

    @property
    def is_exact(self) -> bool:
        """Whether exact engines take the node as it is: distributions of states given states, and linear-Gaussian ones.

        So do they a node that cannot write itself as a table at known values: the engine then refuses it by name.
        """
        return True

    @property
    def whole(self) -> bool:
        """Whether the numbers of a real node are whole ones."""
        return False

    @property
    def has_posterior(self) -> bool:
        """Whether the node has a posterior, in closed form or by Laplace's approximation."""
        return self.log_evidence() is not None

    def log_evidence(self) -> float | None:
        """Log marginal likelihood of the node's data under its prior; None without one."""
        return None

    def expectation_factors(self) -> list[Factor]:
        """Tables whose marginals are the statistics that EM learns the node from; none for a real node."""
        return []

    # -- standard errors ---------------------------------------------------------------------------------------------

    #: Standard errors from the observed information, where rows had missing values.
    observed: Any

    def spread_of(self, group: Sequence[Any], summary: Summary | None) -> ParameterSpread:
        """By the information of the rows in free coordinates, which serves any kind."""
        from suffice.models.bayesian.error_bars.spread import InformedSpread

        return InformedSpread.of(self, group, summary)

    def begun(self) -> Self:
        """The node to begin EM with, where this one was learned from made-up counts."""
        return self

    def with_errors(self, observed: object) -> Self:
        """The node, which gives its standard errors from the observed information of a fit by EM."""
        return replace(self, observed=observed)  # type: ignore[type-var]


class Figures:
    """Figures of nodes of one class, judged by the same statistics: what each says alone."""

    def __init__(self, nodes: Sequence[Any], summary: Summary) -> None:
        """Take the nodes, and the statistics of rows laid out as the nodes are."""
        self.nodes, self.summary = tuple(nodes), summary

    def log_likelihoods(self) -> list[float]:
        """``node.log_likelihood(summary)`` of each node."""
        return [node.log_likelihood(self.summary) for node in self.nodes]

    def gaps(self) -> list[float]:
        """``node.gap(summary)`` of each node."""
        return [node.gap(self.summary) for node in self.nodes]

    def steepest(self) -> tuple[float, float]:
        """The largest of ``node.steepest(summary)``."""
        return largest([node.steepest(self.summary) for node in self.nodes])

    def loss_bounds(self) -> list[float | None]:
        """``node.loss_bound(summary)`` of each node."""
        return [node.loss_bound(self.summary) for node in self.nodes]

    def edges(self) -> list[tuple[str, ...]]:
        """``node.edges(summary)`` of each node."""
        return [node.edges(self.summary) for node in self.nodes]


def largest(slopes: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The largest slope in standard errors, and the largest in nats; NaN where some figure is: it certifies nothing."""
    gap, slope = np.max([(0.0, 0.0), *slopes], axis=0).tolist()
    return gap, slope


class UnitFree(FittedNode):
    """A node without variances, whose parameters are probabilities: they have no unit."""

    linear: ClassVar[bool] = False

    def point_masses(self, columns: Columns, n: int) -> NDArray[np.bool_]:
        """None: observing a state weighs by its probability."""
        return np.zeros(n, dtype=bool)

    def held(self, least: float) -> Self:
        """Itself: there is no variance."""
        return self

    def in_units(self, vector: Floats, units: Units, *, forward: bool) -> Floats:
        """The parameters as they are."""
        return vector


class DiscreteNode(Node, Protocol):
    """A node of states whose parents have states: a conditional probability table, stored whole or not."""

    @property
    def table_(self) -> Table:
        """P(node | parents) with axes (parents, node); an error where it would be too large."""
        ...

    def factors(self) -> list[Factor]:
        """Tables whose product, summed over variables that only they hold, is P(node | parents)."""
        ...

    def expectation_factors(self) -> list[Factor]:
        """The same for the E-step: tables whose marginals are the statistics that EM learns the node from."""
        ...


class NodeLearner(ABC):
    """How a node is learned: the statistics it asks for, and the node they give.

    Statistics may be expected ones, so counts may be fractions. A node without closed-form statistics asks for the
    distinct rows of its family (`CompleteRows`). A kind overrides what it knows better than the defaults.
    """

    @abstractmethod
    def statistics(self, domain: Domain) -> tuple[Statistic, ...]:
        """What `learn` reads, for the family `domain` (parents, node)."""

    @abstractmethod
    def learn(self, domain: Domain, summary: Summary) -> Any:
        """The fitted node."""

    @classmethod
    def learn_many(cls, learners: Sequence[Any], domains: Sequence[Domain], summary: Summary) -> list[Any]:
        """The nodes of several learners of this class: one by one, as most kinds gain nothing from being together."""
        return [learner.learn(domain, summary) for learner, domain in zip(learners, domains, strict=True)]

    def pooled(self, summary: Summary) -> Summary:
        """The statistics that the node is learned from: those of all rows, of a tied node those of its group."""
        return summary

    @property
    def of_one(self) -> NodeLearner:
        """Itself; of a group of tied nodes, the learner of one of them."""
        return self

    @property
    def asks_rows(self) -> bool:
        """Whether it puts questions to the rows of its family, so that they may stay where they are."""
        return False

    def needs_rows(self, domain: Domain) -> bool:
        """Whether the node cannot be learned from expected statistics, but from rows that show its whole family."""
        return False

    def on_weighted_rows(self) -> Self:
        """The same learner, for steps of EM that have each row with every joint state of what it does not show."""
        return self

    def of_family(self) -> Self:
        """The same learner, which reads the statistics of its own family and no others."""
        return self

    def for_em(self, *, filled: bool) -> Self:
        """The same learner for the steps of EM, each node from its own family.

        filled: nodes are defined also for joint states of the parents without any weight.
        """
        return self.of_family()


# --------------------------------------------------------------------------------------------------------------------
# Kinds
# --------------------------------------------------------------------------------------------------------------------


@record(frozen=True)
class NodeOptions:
    """What the network says to all its nodes.

    `prior` is as the user gave it; `pool` names the real columns; `tied` says that the node shares its parameters.
    """

    prior: Any = None
    sample_size: float = 10.0
    estimate: str | None = None
    unseen: str = "uniform"
    pool: tuple[Hashable, ...] = ()
    tied: bool = False


class NodeKind(ABC):
    """A kind of node, with its options; `node_class` has the fitted nodes, as files hold them under the name `kind`."""

    kind: ClassVar[str]
    node_class: ClassVar[type[Node]]

    @property
    def column(self) -> Literal["discrete", "real"] | None:
        """What the node's own column holds; None where the column itself says."""
        return None

    @property
    def counts(self) -> bool:
        """Whether the node's own column may be declared to hold counts."""
        return False

    @property
    def states(self) -> tuple[Hashable, ...] | None:
        """The states of the node, where its options declare them."""
        return None

    def agrees(self, declared: Variable) -> bool:
        """Whether states that are declared beside those of the options are the same; in the same order, unless said."""
        return self.states is None or declared == Variable.discrete(declared.name, self.states)

    def renamed(self, names: Mapping[Hashable, Hashable]) -> NodeKind | str:
        """The kind of a family that knows the variables by other names; those that are left out are not in it."""
        return self

    @abstractmethod
    def check(self, family: Domain) -> None:
        """Raise where a family (parents, node) cannot have this kind."""

    @abstractmethod
    def learner(self, family: Domain, options: NodeOptions) -> NodeLearner:
        """How a node of this kind is learned."""

    @abstractmethod
    def given(self, family: Domain, values: Any, options: NodeOptions) -> Any:
        """The node whose parameters are given: numbers, or a fitted node of this kind over the same family."""

    def n_params(self, family: Domain) -> int | None:
        """Free parameters of a node over a family; None where it has a number for each joint state of its parents."""
        return None

    def factor_scopes(self, family: Domain) -> list[tuple[Hashable, ...]] | None:
        """Variables of the tables that a node brings into the junction tree; None for one table of the family."""
        return None
