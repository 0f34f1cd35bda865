"""Free coordinates of nodes around their parameters: what the observed information of an EM fit is taken in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from suffice.array_types import Floats
from suffice.models.bayesian.nodes.regression_objective import RegressionObjective
from suffice.statistics import Counts, Summary

if TYPE_CHECKING:
    from suffice.models.bayesian.nodes.glm import GLMNode
    from suffice.models.bayesian.nodes.linear_gaussian import LinearGaussianNode
    from suffice.models.bayesian.nodes.noisy_max import NoisyMaxNode
    from suffice.models.bayesian.nodes.table import TableNode

Units = Mapping[Hashable, tuple[float, float]]
#: Standard errors (n,) of n functions whose slopes (n, size) in the coordinates are given.
ErrorsOf = Callable[[Floats], Floats]

#: A probability nearer to 0 or 1 is on the edge of its range.
EDGE = 1e-6
#: Step of a coefficient in central differences of its table.
STEP = 1e-5
#: A probability of a table below this is on its way to 0, and its logarithm tells nothing.
GONE = 1e-9


class Coordinates(Protocol):
    """Free coordinates of a node around its parameters."""

    size: int

    def moved(self, delta: Floats) -> Any:
        """The node at other coordinates (size,); zeros give the node itself."""
        ...

    def score(self, node: Any, summary: Summary) -> Floats:
        """Slope of the objective at a node (size,), from expected statistics."""
        ...

    def names(self) -> list[str]:
        """What each coordinate moves."""
        ...

    def errors(self, of: ErrorsOf) -> Floats:
        """Standard errors of the parameters, in their shape."""
        ...

    def pulled(self, derivatives: Sequence[Floats]) -> Floats:
        """Slopes (a, size) of functions whose derivatives (a, ...) by the numbers of the node are given.

        These are the tables that it brings into a junction tree, or the weights and variances of a regression.
        """
        ...


class TableCoordinates:
    """Logarithms of the probabilities of each row, relative to its largest one; those on the edge stay there."""

    def __init__(self, node: TableNode) -> None:
        """Take the node; rows without weight have no coordinates: the data say nothing about them."""
        self.node = node
        self.seen = node.counts.sum(axis=1) > 0
        free = (node.rows > GONE) & self.seen[:, None]
        free[np.arange(len(node.rows)), np.nan_to_num(node.rows).argmax(axis=1)] = False
        self.free = np.nonzero(free)
        self.size = len(self.free[0])

    def moved(self, delta: Floats) -> TableNode:
        """Rows times exp(delta), divided by their sums."""
        factor = np.ones_like(self.node.rows)
        factor[self.free] = np.exp(delta)
        rows = self.node.rows * factor
        return self.node.with_parameters((rows / rows.sum(axis=1, keepdims=True)).ravel())

    def score(self, node: TableNode, summary: Summary) -> Floats:
        """Counts (and pseudo-counts) less what the row expects."""
        counts = summary[Counts(node.domain.names)].dense().reshape(node.rows.shape)
        pseudo = 0.0 if node.alpha is None else node.alpha - (1.0 if node.estimate == "map" else 0.0)
        both = counts + pseudo
        return np.asarray((both - node.rows * both.sum(axis=1, keepdims=True))[self.free])

    def names(self) -> list[str]:
        """Such as "P(x=1 | h=0)"."""
        cells = self.node.cell_names(np.arange(len(self.node.rows)))
        card = self.node.rows.shape[1]
        return [f"P({cells[row * card + column]})" for row, column in zip(*self.free, strict=True)]

    def errors(self, of: ErrorsOf) -> Floats:
        """By the delta method, dp_j = p_j (d_j - sum p_k d_k); rows without weight keep the spread of the prior."""
        rows = self.node.rows
        unseen, default = self._before()
        errors = np.where(self.seen[:, None], 0.0, unseen)
        for row in np.unique(self.free[0]):
            mine = np.flatnonzero(self.free[0] == row)
            columns = self.free[1][mine]
            slope = np.zeros((rows.shape[1], self.size))
            slope[:, mine] = rows[row][:, None] * (np.eye(rows.shape[1])[:, columns] - rows[row, columns])
            errors[row] = of(slope)
        return self.node.dense(errors, default)

    def pulled(self, derivatives: Sequence[Floats]) -> Floats:
        """p_k (d_k - sum p_j d_j), as the log-ratio of one probability moves all of its row."""
        rows, node = self.node.rows, self.node
        by_row = derivatives[0].reshape(len(derivatives[0]), -1, rows.shape[1])
        if node.configurations is not None:
            by_row = by_row[:, np.ravel_multi_index(tuple(node.configurations.T), node.domain.shape(node.parents))]
        slopes = rows * (by_row - (by_row * rows).sum(axis=-1, keepdims=True))
        return np.asarray(slopes[:, self.free[0], self.free[1]])

    def _before(self) -> tuple[Floats, Floats]:
        """Standard deviations of the prior, sqrt(p (1 - p) / (sum alpha + 1)) with p = alpha / sum alpha.

        Of the kept rows (k, card), and of all other configurations (card,); inf without a prior.
        """
        alpha, none = self.node.alpha, np.full(self.node.rows.shape[1], np.inf)
        if alpha is None or not len(alpha):
            return np.full(self.node.rows.shape, np.inf), none
        total = alpha.sum(axis=1, keepdims=True)
        deviations = np.sqrt(alpha * (total - alpha) / (total + 1)) / total
        # Tables with rows left out have one pseudo-count for all cells.
        return deviations, deviations[0]


class RegressionCoordinates:
    """Value at the means, weights in units of the columns, and log variance, for each joint state with rows."""

    def __init__(self, node: LinearGaussianNode, units: Units) -> None:
        """Take the node; a variance that is held at its floor has no coordinate."""
        self.node = node
        self.centre, self.scale = np.array([units[name] for name in (*node.real_parents, node.name)]).T
        k, q = node.weights.shape
        free = np.ones((k, q + 1), dtype=bool)
        free[:, q] = np.array([not node.directions or v > node.variance.min() for v in node.variance])
        self.free = np.nonzero(free)
        self.size = len(self.free[0])
        self.turn = self._natural()

    def _natural(self) -> Floats:
        """The matrix (q, q) from coordinates to weights: w = turn u + constant."""
        ratio = self.scale[-1] / self.scale[:-1]
        turn = np.diag(np.append(self.scale[-1], ratio))
        turn[0, 1:] = -self.centre[:-1] * ratio
        return turn

    def moved(self, delta: Floats) -> LinearGaussianNode:
        """Weights and variances moved."""
        wide = np.zeros((len(self.node.weights), self.node.weights.shape[1] + 1))
        wide[self.free] = delta
        weights = self.node.weights + wide[:, :-1] @ self.turn.T
        return replace(self.node, weights=weights, variance=self.node.variance * np.exp(wide[:, -1]))

    def score(self, node: LinearGaussianNode, summary: Summary) -> Floats:
        """Slopes of -N/2 log v - S/(2 v), with the rows of the prior where there is one."""
        seen, cells = node.products(summary)
        places = node.positions(cells)
        own = places >= 0
        seen, places = seen[own], places[own]
        objective = RegressionObjective(seen, node.prior, node.estimate)
        products, divisor = objective.products, objective.divisor
        weights, variance = node.weights[places], node.variance[places]
        slopes = products.slopes(weights)
        inner = slopes[:, 1:] + (products.mean[:, :-1] - self.centre[:-1]) * slopes[:, :1]
        ratio = self.scale[-1] / np.append(1.0, self.scale[:-1])
        first = np.concatenate([slopes[:, :1], inner], axis=1) * ratio / variance[:, None]
        last = 0.5 * (products.squares(weights) / variance - divisor)
        wide = np.zeros((len(node.weights), weights.shape[1] + 1))
        wide[places] = np.concatenate([first, last[:, None]], axis=1)
        return np.asarray(wide[self.free])

    def names(self) -> list[str]:
        """Such as "weight of x in y | h=0"."""
        node = self.node
        terms = ["mean", *(f"weight of {name} in" for name in node.real_parents), "variance of"]
        terms[0] = "mean of" if not node.real_parents else "level of"
        states = [node.domain[name].states for name in node.discrete_parents]
        given = [
            ", ".join(f"{n}={s[c]}" for n, s, c in zip(node.discrete_parents, states, codes, strict=True))
            for codes in node.configurations.tolist()
        ]
        return [
            f"{terms[column]} {node.name}" + (f" | {given[row]}" if node.discrete_parents else "")
            for row, column in zip(*self.free, strict=True)
        ]

    def errors(self, of: ErrorsOf) -> Floats:
        """Of the weights and of the variance; NaN for a variance at its floor."""
        k, q = self.node.weights.shape
        errors = np.full((k, q + 1), np.nan)
        for cell in range(k):
            mine = np.flatnonzero(self.free[0] == cell)
            turn = np.zeros((q + 1, q + 1))
            turn[:q, :q], turn[q, q] = self.turn, self.node.variance[cell]
            slope = np.zeros((q + 1, self.size))
            slope[:, mine] = turn[:, self.free[1][mine]]
            errors[cell] = of(slope)
            if q not in self.free[1][mine]:
                errors[cell, q] = np.nan
        return self.node.dense(errors, np.full(q + 1, np.inf))

    def pulled(self, derivatives: Sequence[Floats]) -> Floats:
        """Weights are a linear map of their coordinates; d v = v d log v."""
        cards, q = self.node.domain.shape(self.node.discrete_parents), self.node.weights.shape[1]
        own = np.ravel_multi_index(tuple(self.node.configurations.T), cards) if cards else np.zeros(1, dtype=np.intp)
        weights = derivatives[0].reshape(len(derivatives[0]), -1, q)[:, own] @ self.turn
        variances = derivatives[1].reshape(len(weights), -1)[:, own] * self.node.variance
        return np.asarray(np.concatenate([weights, variances[..., None]], axis=-1)[:, self.free[0], self.free[1]])


class InhibitionCoordinates:
    """Logits of the inhibition probabilities of a noisy-MAX; those that are 0 or 1 stay."""

    def __init__(self, node: NoisyMaxNode) -> None:
        """Take the node."""
        self.node, self.start = node, node.parameters()
        self.free = np.flatnonzero((self.start > EDGE) & (self.start < 1 - EDGE))
        self.size = len(self.free)

    def moved(self, delta: Floats) -> NoisyMaxNode:
        """Odds times exp(delta)."""
        vector = self.start.copy()
        odds = vector[self.free] / (1 - vector[self.free]) * np.exp(delta)
        vector[self.free] = odds / (1 + odds)
        return self.node.with_parameters(vector)

    def score(self, node: NoisyMaxNode, summary: Summary) -> Floats:
        """Slopes in the inhibition probabilities q, times q (1 - q)."""
        vector = node.parameters()
        return np.asarray((node.slopes(summary) * vector * (1 - vector))[self.free])

    def names(self) -> list[str]:
        """Such as "failure of a=1 to cause b", or b=high where it has more than two states."""
        node = self.node
        causes = ["=".join(map(str, label)) if isinstance(label, tuple) else str(label) for label in node.coefficients]
        effects = [f"{node.name}={level}" for level in node.levels] if node.n_levels > 1 else [str(node.name)]
        words = [f"failure of {cause} to cause {effect}" for cause in causes for effect in effects]
        return [words[weight] for weight in self.free.tolist()]

    def errors(self, of: ErrorsOf) -> Floats:
        """Of the inhibition probabilities; NaN on an edge."""
        errors = np.full(len(self.start), np.nan)
        inside = self.start[self.free]
        errors[self.free] = of(np.diag(inside * (1 - inside)))
        return errors

    def pulled(self, derivatives: Sequence[Floats]) -> Floats:
        """Tables are linear in each inhibition probability q, and dq = q (1 - q) d logit q."""
        slopes = []
        for number in self.free.tolist():
            ends = []
            for end in (0.0, 1.0):
                vector = self.start.copy()
                vector[number] = end
                ends.append([table for _, table in self.node.with_parameters(vector).factors()])
            moved = zip(derivatives, *ends, strict=True)
            slope = sum((part * (high - low)).reshape(len(part), -1).sum(axis=1) for part, low, high in moved)
            slopes.append(slope * self.start[number] * (1 - self.start[number]))
        return np.stack(slopes, axis=1) if slopes else np.zeros((len(derivatives[0]), 0))


class CoefficientCoordinates:
    """The coefficients of a GLM node; those that run to infinity stay."""

    def __init__(self, node: GLMNode) -> None:
        """Take the node."""
        self.node, self.start = node, node.parameters()
        direction = node.learned.direction
        away = np.zeros(len(self.start)) if direction is None else direction.ravel()
        self.free = np.flatnonzero(away == 0.0)
        self.size = len(self.free)

    def moved(self, delta: Floats) -> GLMNode:
        """Coefficients moved."""
        vector = self.start.copy()
        vector[self.free] += delta
        return self.node.with_parameters(vector)

    def score(self, node: GLMNode, summary: Summary) -> Floats:
        """Slopes of the objective in the coefficients."""
        return np.asarray(node.slopes(summary).ravel()[self.free])

    def names(self) -> list[str]:
        """Such as "coefficient of x in y"."""
        terms, shape = self.node.learned.design.names, self.node.learned.beta.shape
        rows = np.unravel_index(self.free, shape)[0].tolist()
        return [f"coefficient of {terms[row]} in {self.node.name}" for row in rows]

    def errors(self, of: ErrorsOf) -> Floats:
        """Of the coefficients (k, m); inf for those that run away or that the rows do not determine."""
        errors = np.full(len(self.start), np.inf)
        errors[self.free] = of(np.eye(self.size))
        return errors.reshape(self.node.learned.beta.shape)

    def pulled(self, derivatives: Sequence[Floats]) -> Floats:
        """Of tables, by central differences: a node of states whose parents are states has one."""
        slopes = []
        for number in range(self.size):
            step = np.zeros(self.size)
            step[number] = STEP
            (_, high), (_, low) = self.moved(step).factors()[0], self.moved(-step).factors()[0]
            slopes.append((derivatives[0] * (high - low)).reshape(len(derivatives[0]), -1).sum(axis=1) / (2 * STEP))
        return np.stack(slopes, axis=1) if slopes else np.zeros((len(derivatives[0]), 0))
