"""How far the rows leave the parameters of a network open: their covariance, and draws of them, node by node.

Nodes are independent given complete rows, and so are the rows of a table: a covariance is a sum over them. Where EM has
learned, the observed information joins the nodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.errors import EstimateError, listing
from suffice.models.em.information import score_differences
from suffice.records import record, replace

if TYPE_CHECKING:
    from suffice.models.bayesian.em.coordinates import Coordinates
    from suffice.models.bayesian.em.standard_errors import ObservedErrors
    from suffice.models.bayesian.nodes.linear_gaussian import LinearGaussianNode
    from suffice.models.bayesian.nodes.table import TableNode
    from suffice.models.em.identifiability import Spectrum
    from suffice.statistics import Summary

#: Derivatives (a, ...) of a answers by the numbers of a node: by its tables, or by its weights and variances.
ByNumbers = Sequence[Floats]
#: Variance of an answer per row, below which it does not depend on a row of a table at all but for rounding.
ROUNDING = 1e-20

GIVEN = (
    "The parameters of {} were given, not learned from rows: nothing is known about their spread, so that answers have "
    "no error bar. Fit the network to rows, or name what is known for certain with fixed=."
)
NO_DRAWS = (
    "{} was learned without a prior, so its parameters have no posterior to draw from. Give prior=, such as "
    "prior='jeffreys', or use method='delta'."
)


class ParameterSpread(Protocol):
    """What is known about the parameters of one node, or of a group of tied ones."""

    @property
    def zeros_move(self) -> bool:
        """Whether probabilities that are 0 may be others."""
        ...

    @property
    def on_edge(self) -> bool:
        """Whether maximum likelihood has put some probability at 0, where it has no standard error."""
        ...

    @classmethod
    def variance(cls, spreads: Sequence[Any], derivatives: Sequence[ByNumbers]) -> Floats:
        """The variance (a,) that answers with these derivatives have of several spreads of this class together."""
        ...

    def draw(self, rng: np.random.Generator) -> Any:
        """The node at a draw of its parameters from their posterior."""
        ...


@record(frozen=True, eq=False)
class TableSpread:
    """Rows of a table that vary independently, each with the covariance (diag(m) - m m') / size.

    `means` (r, card) and `sizes` (r,): the weight of the rows of data, or the sum of the Dirichlet parameters plus one.
    These parameters are `alpha` (r, card), where there is a prior.
    """

    node: TableNode
    means: Floats
    sizes: Floats
    alpha: Floats | None

    @classmethod
    def of(cls, node: TableNode) -> TableSpread:
        """The posterior of a table, or the information of its counts."""
        if node.alpha is not None:
            alpha = node.posterior_.alpha_.values.reshape(-1, node.card)
            total = alpha.sum(axis=1)
            return cls(node, alpha / total[:, None], total + 1, alpha)
        node.standard_errors_  # noqa: B018  Tables that have none say why.
        counts = node.dense(node.counts, np.zeros(node.card)).reshape(-1, node.card)
        if not counts.any():
            raise EstimateError(GIVEN.format(listing([node.name])))
        means = node.dense(node.rows, node.default).reshape(-1, node.card)
        return cls(node, np.nan_to_num(means), counts.sum(axis=1), None)

    @cached_property
    def zeros_move(self) -> bool:
        """With a prior: the mode may be 0 where the posterior is not."""
        return self.alpha is not None and bool((self.node.rows == 0).any())

    @cached_property
    def on_edge(self) -> bool:
        """Without a prior, where an event was never seen."""
        return self.alpha is None and bool((self.means == 0).any())

    @cached_property
    def _flat(self) -> tuple[Floats, NDArray[np.intp], Floats]:
        """Means (cells,), cells of each row (r,), and one over the sizes (r,)."""
        with np.errstate(divide="ignore"):
            return self.means.ravel(), np.full(len(self.means), self.means.shape[1]), 1.0 / self.sizes

    @classmethod
    def variance(cls, spreads: Sequence[TableSpread], derivatives: Sequence[ByNumbers]) -> Floats:
        """Sum over rows of (sum m d^2 - (sum m d)^2) / size."""
        by_cell = np.concatenate([part.reshape(len(part), -1) for (part,) in derivatives], axis=1)
        means, cards, inverse = (np.concatenate(parts) for parts in zip(*(s._flat for s in spreads), strict=True))
        starts = np.cumsum(cards) - cards
        centre = np.add.reduceat(by_cell * means, starts, axis=1)
        inside = np.add.reduceat(means * (by_cell - np.repeat(centre, cards, axis=1)) ** 2, starts, axis=1)
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(inside > ROUNDING, inside * inverse, 0.0).sum(axis=1))

    def draw(self, rng: np.random.Generator) -> TableNode:
        """Independent Dirichlet rows."""
        if self.alpha is None:
            raise EstimateError(NO_DRAWS.format(repr(self.node.name)))
        rows = rng.standard_gamma(self.alpha)
        total = rows.sum(axis=1, keepdims=True)
        if not (total > 0).all():  # Parameters near 0 leave the range of floats, one by one.
            rows = np.stack([rng.dirichlet(alpha) for alpha in self.alpha])
            total = np.ones((len(rows), 1))
        rows /= total
        return replace(self.node, rows=rows, counts=np.zeros_like(rows), configurations=None, alpha=None)


@record(frozen=True, eq=False)
class RegressionSpread:
    """Weights and variances of regressions, independent by joint state of the discrete parents.

    `weights` (k, q, q) are covariances of the weights, `variances` (k,) variances of the variances.
    """

    node: LinearGaussianNode
    weights: Floats
    variances: Floats

    @classmethod
    def of(cls, node: LinearGaussianNode) -> RegressionSpread:
        """The posterior of regressions, or the information of their rows."""
        if node.spread is None:
            raise EstimateError(GIVEN.format(listing([node.name])))
        weights, variances = node.covariances()
        codes = np.array(list(np.ndindex(*node.domain.shape(node.discrete_parents))), dtype=np.int32)
        places = node.positions(codes.reshape(node.n_configurations, -1))
        return cls(node, weights[places], variances[places])

    @property
    def zeros_move(self) -> bool:
        """There are none."""
        return False

    @property
    def on_edge(self) -> bool:
        """It is not."""
        return False

    @classmethod
    def variance(cls, spreads: Sequence[RegressionSpread], derivatives: Sequence[ByNumbers]) -> Floats:
        """Sum over joint states of d' S d for the weights and d^2 v for the variance."""
        pairs = zip(spreads, derivatives, strict=True)
        return np.asarray(np.sum([one._variance(part) for one, part in pairs], axis=0))

    def _variance(self, derivatives: ByNumbers) -> Floats:
        weights = derivatives[0].reshape(len(derivatives[0]), *self.weights.shape[:2])
        variances = derivatives[1].reshape(len(weights), -1)
        known = np.isfinite(self.weights).all(axis=(1, 2))
        inside = weights[:, known]
        total = np.einsum("akp,kpq,akq->a", inside, self.weights[known], inside, optimize=True)
        with np.errstate(invalid="ignore"):
            total += np.where(variances == 0, 0.0, variances**2 * self.variances).sum(axis=1)
        lost = (weights[:, ~known] ** 2).sum(axis=(1, 2)) > ROUNDING
        return np.asarray(np.where(lost, np.inf, total))

    def draw(self, rng: np.random.Generator) -> LinearGaussianNode:
        """Of the normal-inverse-gamma posterior."""
        if self.node.prior is None:
            raise EstimateError(NO_DRAWS.format(repr(self.node.name)))
        drawn = self.node.posterior_.sample(1, rng)
        return type(self.node).given(self.node.domain, drawn["weights"][0], drawn["variance"][0])


@record(frozen=True, eq=False)
class InformedSpread:
    """Parameters without a closed form, by the information of their rows in free coordinates (k, k)."""

    coordinates: Coordinates
    information: Floats

    @classmethod
    def of(cls, node: Any, group: Sequence[Any], summary: Summary | None) -> InformedSpread:
        """A node that was learned from a summary, and those that share its parameters."""
        if summary is None:
            raise EstimateError(GIVEN.format(listing([node.name])))
        from suffice.models.bayesian.em.standard_errors import Parts

        nodes = {one.name: one for one in group}
        parts = Parts(nodes, [tuple(nodes)], {})
        information = score_differences(lambda delta: parts.score(parts.moved(delta), summary), parts.size)
        return cls(parts.coordinates[0], information)

    @property
    def zeros_move(self) -> bool:
        """Those on the edge stay there."""
        return False

    @property
    def on_edge(self) -> bool:
        """Whether some parameter has no coordinate."""
        return False

    @classmethod
    def variance(cls, spreads: Sequence[InformedSpread], derivatives: Sequence[ByNumbers]) -> Floats:
        """By the inverse of the information; inf along directions that the rows leave open."""
        pairs = zip(spreads, derivatives, strict=True)
        return np.asarray(np.sum([s._spectrum.errors(s.coordinates.pulled(part)) ** 2 for s, part in pairs], axis=0))

    @cached_property
    def _spectrum(self) -> Spectrum:
        from suffice.models.em.identifiability import spectrum

        return spectrum(self.information)

    def draw(self, rng: np.random.Generator) -> Any:
        """Normal, around the estimate."""
        return self.coordinates.moved(self._spectrum.draw(rng))


@record(frozen=True, eq=False)
class ParameterSpreads:
    """What is known about all parameters: each node by itself, or those that EM has learned together.

    `groups` are the names of nodes that share parameters, each with what is known about them; nodes that are fixed are
    in none. `observed` is what EM knows.
    """

    nodes: Mapping[Hashable, Any]
    groups: Sequence[Sequence[Hashable]]
    observed: ObservedErrors | None
    summary: Summary | None

    @cached_property
    def _spreads(self) -> dict[Hashable, ParameterSpread]:
        return {}

    def of(self, group: Sequence[Hashable]) -> ParameterSpread:
        """What is known about the parameters of a group."""
        first = group[0]
        if first not in self._spreads:
            summary = None if self.observed is not None else self.summary
            self._spreads[first] = self.nodes[first].spread_of([self.nodes[name] for name in group], summary)
        return self._spreads[first]

    @cached_property
    def _alone(self) -> list[Sequence[Hashable]]:
        """The groups that EM has not learned."""
        return [group for group in self.groups if self.observed is None or not self.observed.knows(group[0])]

    def zeros_that_move(self, name: Hashable) -> bool:
        """Whether probabilities of a node that are 0 may be others."""
        group = self._group_of.get(name)
        return group is not None and self.of(group).zeros_move

    @cached_property
    def _group_of(self) -> dict[Hashable, Sequence[Hashable]]:
        return {name: group for group in self._alone for name in group}

    def on_edge(self, names: Iterable[Hashable]) -> bool:
        """Whether some probability of some nodes has no standard error, as it is 0 by maximum likelihood."""
        some = set(names)
        return any(self.of(group).on_edge for group in self._alone if some & set(group))

    def errors(self, derivatives: Mapping[Hashable, ByNumbers], size: int) -> Floats:
        """Standard errors (size,) of answers with these derivatives by the numbers of each node."""
        total = np.zeros(size)
        kinds: dict[type, tuple[list[Any], list[ByNumbers]]] = {}
        for group in self._alone:
            if parts := [derivatives[name] for name in group if name in derivatives]:
                # Tied nodes share their parameters, so that derivatives add up.
                together = [sum(same[1:], same[0]) for same in zip(*parts, strict=True)]
                spread = self.of(group)
                spreads, numbers = kinds.setdefault(type(spread), ([], []))
                spreads.append(spread)
                numbers.append(together)
        for kind, (spreads, numbers) in kinds.items():
            total += kind.variance(spreads, numbers)  # type: ignore[attr-defined]
        if self.observed is not None:
            total += self.observed.errors_of(derivatives, size) ** 2
        return np.sqrt(total)

    def draw(self, rng: np.random.Generator, names: Iterable[Hashable]) -> dict[Hashable, Any]:
        """Some nodes at a draw of their parameters; fixed ones as they are."""
        some = set(names)
        drawn = {name: self.nodes[name] for name in self.nodes if name in some}
        if self.observed is not None:
            drawn |= {n: node for n, node in self.observed.draw(rng).items() if n in some and self.observed.knows(n)}
        for group in self._alone:
            mine = [name for name in group if name in some]
            if mine:
                one = self.of(group).draw(rng)
                drawn |= {name: replace(one, domain=self.nodes[name].domain) for name in mine}
        return drawn

    def draws(self, n: int, rng: np.random.Generator, names: Iterable[Hashable]) -> Iterator[dict[Hashable, Any]]:
        """`n` draws of some nodes."""
        some = list(names)
        for _ in range(n):
            yield self.draw(rng, some)
