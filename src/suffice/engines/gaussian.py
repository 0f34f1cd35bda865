"""Linear-Gaussian networks as one normal distribution: joint, marginals, conditionals, partly observed rows.

A network of nodes x_j = w_0 + w . parents + noise of variance v_j has the covariance
``(I - B)^-1 diag(v) (I - B)^-T``, B holding the weights of the parents, and the precision
``(I - B)' diag(1/v) (I - B)``. Both are formed by substitution in topological order; nothing is inverted.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats, Indices, RandomState
from suffice.checks import generator
from suffice.engines.gaussian_rows import stacked_rows
from suffice.engines.square_root import ObservedColumns, network_mean, network_root
from suffice.errors import DataError, EstimateError, OptionError, listing, unknown_variable
from suffice.graphs.directed import topological_order
from suffice.kernels.patterns import label_codes

#: Parents, weights (intercept first, then one for each parent) and variance of a node.
Regression = tuple[Sequence[Hashable], ArrayLike, float]


#: Numbers in the largest array of a step.
_STEP = 2**20


class GaussianJoint:
    """A normal distribution of named columns; some combinations of columns may have no variance.

    Log densities are taken in the order of the names: a column that those before it determine is a point mass, counted
    as 0 at its point and -inf elsewhere. From a network the names are in topological order, and the log density of a
    row is then the sum of the log densities of its nodes.
    """

    def __init__(self, names: Sequence[Hashable], mean: ArrayLike, covariance: ArrayLike) -> None:
        """A distribution from its mean (d,) and covariance (d, d), symmetric and without negative variance."""
        self.names = tuple(names)
        self.mean = np.asarray(mean, dtype=np.float64)
        self.covariance = np.asarray(covariance, dtype=np.float64)
        d = len(self.names)
        if self.mean.shape != (d,) or self.covariance.shape != (d, d) or len(set(self.names)) != d:
            raise OptionError(
                f"{d} names need a mean of shape {(d,)} and a covariance of shape {(d, d)}; found {self.mean.shape} "
                f"and {self.covariance.shape}."
            )
        self.root = _root(self.covariance)

    @classmethod
    def _with(cls, names: Sequence[Hashable], mean: Floats, covariance: Floats, root: Floats) -> Self:
        distribution = cls.__new__(cls)
        distribution.names, distribution.mean, distribution.covariance, distribution.root = (
            tuple(names),
            mean,
            covariance,
            root,
        )
        return distribution

    @classmethod
    def from_root(cls, names: Sequence[Hashable], mean: Floats, root: Floats) -> Self:
        """The distribution of mean + root z, z standard: mean (d,), root (d, r), covariance root root'."""
        return cls._with(names, mean, root @ root.T, root)

    @classmethod
    def from_network(cls, nodes: Mapping[Any, Regression]) -> Self:
        """The joint distribution of a linear-Gaussian network, given as ``{node: (parents, weights, variance)}``."""
        order, parents, weights, variances = _in_order(nodes)
        slopes = [w[1:] for w in weights]
        root = network_root(parents, slopes, [np.asarray(v) for v in variances])
        mean = network_mean(parents, slopes, [w[:1] for w in weights])[0]
        covariance = np.zeros((len(order), len(order)))
        for j, above in enumerate(parents):
            covariance[j, :j] = covariance[:j, j] = slopes[j] @ covariance[above, :j]
            covariance[j, j] = variances[j] + slopes[j] @ covariance[np.ix_(above, above)] @ slopes[j]
        return cls._with(order, mean, covariance, root)

    def __repr__(self) -> str:
        """Names in one line."""
        return f"GaussianJoint({listing(self.names)})"

    def _places(self, names: Sequence[Hashable]) -> list[int]:
        unknown = [name for name in names if name not in self.names]
        if unknown:
            raise unknown_variable(unknown[0], self.names)
        return [self.names.index(name) for name in names]

    # -- other distributions
    # --------------------------------------------------------------------------------------------------

    def marginal(self, names: Sequence[Hashable]) -> GaussianJoint:
        """The distribution of some columns, in the order asked."""
        chosen = self._places(names)
        return GaussianJoint._with(names, self.mean[chosen], self.covariance[np.ix_(chosen, chosen)], self.root[chosen])

    def condition(self, values: Mapping[Hashable, float]) -> GaussianJoint:
        """The distribution of the other columns given the values of some; values of density zero are an error."""
        given = [name for name in self.names if name in values]
        self._places(list(values))
        rest = [name for name in self.names if name not in values]
        row = np.array([[values[name] for name in given]], dtype=np.float64)
        if not np.isfinite(row).all():
            raise DataError(f"The given values {dict(values)!r} are not all finite.")
        known, to = self._places(given), self._places(rest)
        observed = ObservedColumns.of(self.root[known])
        scores, possible = observed.whiten(self.mean[known], row)
        if not possible[0]:
            raise DataError(
                f"The given values {dict(values)!r} have density zero: one of {listing(given)} is determined by the "
                "others, and its value is another."
            )
        means, root = observed.condition(self.mean[to], self.root[to], scores)
        return GaussianJoint._with(rest, means[0], root @ root.T, root)

    def information(self) -> tuple[Floats, Floats]:
        """Information vector h = J mean (d,) and precision J (d, d), the inverse of the covariance."""
        observed = ObservedColumns.of(self.root)
        if observed.points.any():
            fixed = [name for name, point in zip(self.names, observed.points, strict=True) if point]
            raise EstimateError(f"There is no information form: {listing(fixed)} are determined by the other columns.")
        half = np.linalg.solve(observed.triangle, np.eye(len(self.names)))
        precision = half.T @ half
        return precision @ self.mean, precision

    # -- rows --------------------------------------------------------------------------------------------------------

    def log_prob(self, rows: ArrayLike) -> Floats:
        """Log density of rows (n, d) in the order of the names; NaN is a missing value and integrated out."""
        values = self._rows(rows)
        logs = np.zeros(len(values))
        for chosen, seen, _ in _patterns(values):
            observed, scores, possible = self._observed(values, chosen, seen)
            logs[chosen] = observed.log_density(scores, possible)
        return logs

    def conditional_means(self, rows: ArrayLike) -> tuple[Floats, Floats]:
        """Rows (n, d) with the conditional mean in place of each missing value, and the log density of what they show.

        Impossible rows have -inf.
        """
        values = self._rows(rows)
        filled, logs = values.copy(), np.zeros(len(values))
        for chosen, seen, missing in _patterns(values):
            observed, scores, possible = self._observed(values, chosen, seen)
            logs[chosen] = observed.log_density(scores, possible)
            means, _ = observed.condition(self.mean[missing][:, None], self.root[missing], scores)
            filled[chosen[:, :, None], missing[:, None]] = means
        return filled, logs

    def _observed(
        self, values: Floats, chosen: Indices, seen: Indices
    ) -> tuple[ObservedColumns, Floats, NDArray[np.bool_]]:
        """The observed columns (k, m) of some patterns, with scores and possibility of their rows (k, r)."""
        observed = ObservedColumns.of(self.root[seen])
        return observed, *observed.whiten(self.mean[seen][:, None], values[chosen[:, :, None], seen[:, None]])

    def _rows(self, rows: ArrayLike) -> Floats:
        values = np.asarray(rows, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != len(self.names):
            raise DataError(
                f"The rows have shape {values.shape}; expected one column for each of {listing(self.names)}."
            )
        return values

    def sample(self, n: int = 1, random_state: RandomState = None) -> Floats:
        """`n` draws (n, d)."""
        z = generator(random_state).standard_normal((n, self.root.shape[1]))
        return np.asarray(self.mean + z @ self.root.T)


def information_form(nodes: Mapping[Any, Regression]) -> tuple[tuple[Hashable, ...], Floats, Any]:
    """Names in topological order, information vector h (d,) and precision J of a linear-Gaussian network.

    J is a SciPy sparse array: it has an entry only for nodes joined by an edge or by a common child. A node of variance
    0 has none.
    """
    from scipy.sparse import coo_array

    order, parents, weights, variances = _in_order(nodes)
    fixed = [name for name, variance in zip(order, variances, strict=True) if variance == 0]
    if fixed:
        raise EstimateError(f"There is no information form: {listing(fixed)} have variance 0.")
    d = len(order)
    h = np.zeros(d)
    rows, columns, entries = [], [], []
    for j, above in enumerate(parents):
        # Each node adds c c' / v with c = 1 at the node and -w at its parents.
        family = np.array([j, *above])
        c = np.concatenate([[1.0], -weights[j][1:]])
        h[family] += c * (weights[j][0] / variances[j])
        rows.append(np.repeat(family, len(family)))
        columns.append(np.tile(family, len(family)))
        entries.append(np.outer(c, c).ravel() / variances[j])
    flat = (np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns)))
    return tuple(order), h, coo_array(flat, shape=(d, d)).tocsr()


def _in_order(
    nodes: Mapping[Any, Regression],
) -> tuple[list[Hashable], list[list[int]], list[Floats], list[float]]:
    """Nodes in topological order, with parents by place, weights and variances checked."""
    order = topological_order({name: tuple(parents) for name, (parents, _, _) in nodes.items()})
    rank = {name: number for number, name in enumerate(order)}
    parents = [[rank[parent] for parent in nodes[name][0]] for name in order]
    weights = [np.asarray(nodes[name][1], dtype=np.float64) for name in order]
    variances = [float(nodes[name][2]) for name in order]
    for name, above, w, variance in zip(order, parents, weights, variances, strict=True):
        if w.shape != (len(above) + 1,) or not np.isfinite(w).all() or not 0 <= variance < np.inf:
            raise OptionError(
                f"{name!r} has {len(above)} parents, weights of shape {w.shape} and variance {variance}; expected "
                f"finite weights of shape {(len(above) + 1,)}, intercept first, and a finite variance of at least 0."
            )
    return order, parents, weights, variances


def _root(covariance: Floats) -> Floats:
    """A square root (d, d) of a symmetric matrix without negative eigenvalues; others are an error."""
    units = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = np.where(units > 0, units, 1.0)
    matrix = covariance / np.outer(scale, scale)
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    if np.abs(matrix - matrix.T).max(initial=0.0) > 1e-9 or values.min(initial=0.0) < -1e-9 * len(values):
        raise OptionError("The covariance is not symmetric, or has a negative variance in some direction.")
    # Rounding below zero, and directions whose spread is rounding, have none.
    values = np.where(values > 4 * len(values) * np.finfo(np.float64).eps, values, 0.0)
    return np.asarray(scale[:, None] * vectors * np.sqrt(values))


def _patterns(values: Floats) -> Iterator[tuple[Indices, Indices, Indices]]:
    """Patterns of missing values, k at a time that miss equally many in as many rows.

    Numbers of their rows (k, r), places of the observed columns (k, m) and of the missing ones (k, d - m).
    """
    d = values.shape[1]
    flags, label = label_codes(np.isnan(values).T.astype(np.uint8), [2] * d, range(d))
    misses = flags.sum(axis=1, dtype=np.intp)
    for chosen, rows in stacked_rows(label):
        for number in np.unique(misses[chosen]).tolist():
            ours = misses[chosen] == number
            for some in np.array_split(np.flatnonzero(ours), 1 + ours.sum() * d * (d + rows.shape[1]) // _STEP):
                missing = flags[chosen[some]] == 1
                seen = np.nonzero(~missing)[1].reshape(len(some), -1)
                yield rows[some], seen, np.nonzero(missing)[1].reshape(len(some), -1)
