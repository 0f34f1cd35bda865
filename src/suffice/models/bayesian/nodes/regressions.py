"""Linear regressions of a node on its real parents, one for each joint state of its discrete parents.

Node | parents ~ N(w_0 + w . real parents, variance). Regressions are kept for some joint states; the others share one,
the default. A variance of 0 is a point mass: the node is a function of its parents. Log densities are taken with
respect to length where there is a variance, and with respect to counting for point masses: that of a point mass is 0 at
its point and -inf elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Codes, Floats
from suffice.domain import Domain, Variable
from suffice.engines.square_root import log_density_or_mass
from suffice.errors import EstimateError, OptionError, SizeError, listing
from suffice.families.base import as_floats
from suffice.families.normals import Normals
from suffice.models.bayesian.nodes.contract import Columns, FittedNode
from suffice.models.bayesian.nodes.lookup import row_positions
from suffice.table import Table

#: Arrays over all joint states of the discrete parents have at most this many numbers.
MOST_NUMBERS = 2**24


@dataclass(frozen=True)
class Regressions(FittedNode):
    """P(node | parents) of a linear-Gaussian node. `domain` holds the parents in declared order, then the node.

    `configurations` (k, b) are the joint states of the b discrete parents that have a regression of their own; without
    discrete parents there is one, of no columns. `weights` (k, q) are the intercept, then the real parents in declared
    order; `variance` (k,) is never negative. Other joint states have `default_weights` (q,) and `default_variance`.
    """

    domain: Domain
    configurations: Codes
    weights: Floats
    variance: Floats
    default_weights: Floats
    default_variance: float

    kind: ClassVar[str] = "linear-gaussian"
    linear: ClassVar[bool] = True

    @classmethod
    def given(cls, domain: Domain, weights: ArrayLike, variance: ArrayLike) -> Self:
        """From known numbers, in the shapes of `weights_` and `variance_`."""
        reals = [v for v in domain.variables[:-1] if v.kind != "discrete"]
        cards = tuple(v.card for v in domain.variables[:-1] if v.kind == "discrete")
        name, q = domain.names[-1], len(reals) + 1
        w, v = as_floats(weights, f"The weights of {name!r}"), as_floats(variance, f"The variance of {name!r}")
        if w.shape != (*cards, q) or v.shape != cards:
            raise OptionError(
                f"{name!r} has weights of shape {w.shape} and variances of shape {v.shape}; expected {(*cards, q)}, "
                f"intercept first, and {cards}."
            )
        if (v < 0).any():
            raise OptionError(f"{name!r} has the variance {float(v.min()):g}; expected numbers that are not negative.")
        places = np.array(list(np.ndindex(*cards)), dtype=np.int32).reshape(math.prod(cards), len(cards))
        return cls(domain, places, w.reshape(-1, q), v.reshape(-1), np.full(q, np.nan), math.nan)

    # -- shape -------------------------------------------------------------------------------------------------------

    @property
    def real_parents(self) -> tuple[Hashable, ...]:
        """The parents that hold numbers, in declared order: one weight each."""
        return tuple(v.name for v in self.domain.variables[:-1] if v.kind != "discrete")

    @property
    def discrete_parents(self) -> tuple[Hashable, ...]:
        """The parents that hold states, in declared order: one regression for each joint state."""
        return tuple(v.name for v in self.domain.variables[:-1] if v.kind == "discrete")

    @property
    def n_configurations(self) -> int:
        """Number of joint states of the discrete parents, with or without a regression of their own."""
        return math.prod(self.domain.shape(self.discrete_parents))

    # -- reading -----------------------------------------------------------------------------------------------------

    @property
    def weights_(self) -> Floats:
        """Intercept, then the weights of the real parents in declared order (q,).

        With discrete parents, one leading axis for each of them in declared order: (cards..., q).
        """
        return self.dense(self.weights, self.default_weights)

    @property
    def variance_(self) -> Any:
        """The variance: a number, or with discrete parents an array with one axis for each of them."""
        variances = self.dense(self.variance[:, None], np.array([self.default_variance]))[..., 0]
        return variances if self.discrete_parents else float(variances)

    @property
    def table_(self) -> Table:
        """Weights and variance by label: axes (discrete parents in declared order, coefficient)."""
        return self.table(np.concatenate([self.weights_, np.asarray(self.variance_)[..., None]], axis=-1))

    def to_frame(self) -> Any:
        """A pandas DataFrame: one row for each joint state of the discrete parents, one column for each coefficient."""
        frame = self.table_.to_frame()
        return frame if self.discrete_parents else frame.T.reset_index(drop=True)

    def at(self, where: Mapping[Hashable, Hashable] | None = None, /, **states: Hashable) -> dict[Hashable, float]:
        """The coefficients by name, at a joint state of the discrete parents.

        >>> x, y = Variable("x", "real"), Variable("y", "real")
        >>> Regressions.given(Domain([x, y]), [1.0, 2.0], 0.5).at()
        {'(intercept)': 1.0, 'x': 2.0, '(variance)': 0.5}
        """
        weights, variance = self._rows(self.positions(self.codes_of(named(where, states))))
        return dict(zip(self.coefficients, [*weights[0].tolist(), float(variance[0])], strict=True))

    def codes_of(self, states: Mapping[Hashable, Hashable]) -> Codes:
        """A joint state of the discrete parents as codes (1, b)."""
        if set(states) != set(self.discrete_parents):
            raise OptionError(f"Give a state for each of {listing(self.discrete_parents)}; found {listing(states)}.")
        codes = [self.domain[name].index(states[name]) for name in self.discrete_parents]
        return np.array(codes, dtype=np.int32).reshape(1, -1)

    @property
    def coefficients(self) -> tuple[Hashable, ...]:
        """Names of the weights and of the variance."""
        taken = set(self.real_parents)
        return (fresh_name("(intercept)", taken), *self.real_parents, fresh_name("(variance)", taken))

    def table(self, values: Floats) -> Table:
        """Values (cards..., q + 1) of weights and variance, by label."""
        outer = self.domain.select(self.discrete_parents).variables
        inner = Variable.discrete(fresh_name("coefficient", set(self.parents)), self.coefficients)
        return Table(Domain([*outer, inner]), values)

    def dense(self, rows: Floats, default: Floats) -> Floats:
        """Rows (k, m) as an array (cards..., m), with the default in the other places."""
        shape = (*self.domain.shape(self.discrete_parents), rows.shape[1])
        if math.prod(shape) > MOST_NUMBERS:
            raise SizeError(
                f"{self.name!r} given {listing(self.discrete_parents)} has {self.n_configurations:,} joint states, "
                f"{len(self.configurations):,} of them with a regression. Read those through node(name).weights, "
                ".variance and .configurations."
            )
        if not self.discrete_parents:
            return np.asarray(rows[0].copy())
        full = np.broadcast_to(default, shape).copy()
        full[tuple(self.configurations.T)] = rows
        return full

    # -- rows of data ------------------------------------------------------------------------------------------------

    @cached_property
    def _places(self) -> NDArray[np.intp] | None:
        """Position of the regression of each joint state, -1 for the default; None where there are too many."""
        if self.n_configurations > MOST_NUMBERS:
            return None
        places = np.full(self.n_configurations, -1, dtype=np.intp)
        places[self._numbers(self.configurations)] = np.arange(len(self.configurations))
        return places

    def _numbers(self, codes: NDArray[Any]) -> NDArray[np.intp]:
        if not self.discrete_parents:
            return np.zeros(len(codes), dtype=np.intp)
        return np.asarray(np.ravel_multi_index(tuple(codes.T), self.domain.shape(self.discrete_parents)))

    def positions(self, codes: NDArray[Any]) -> NDArray[np.intp]:
        """Which regression joint states of the discrete parents (n, b) have; -1 for the default."""
        if self._places is None:
            return row_positions(self.configurations, codes)
        return self._places[self._numbers(codes)]

    def _rows(self, positions: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Weights (n, q) and variances (n,) at some positions; the last entry, that of -1, is the default."""
        weights = np.concatenate([self.weights, self.default_weights[None]])
        return weights[positions], np.append(self.variance, self.default_variance)[positions]

    def parent_codes(self, columns: Columns, n: int) -> NDArray[Any]:
        """Joint states of the discrete parents (n, b) from columns."""
        codes = [np.asarray(columns[name]) for name in self.discrete_parents]
        return np.stack(codes, axis=1) if codes else np.zeros((n, 0), dtype=np.int32)

    def _means(self, columns: Columns, n: int) -> tuple[Floats, Floats, Floats]:
        """Mean and variance of the node in each of n rows, and the size of the terms of the mean."""
        positions = (
            self.positions(self.parent_codes(columns, n)) if self.discrete_parents else np.zeros(1, dtype=np.intp)
        )
        weights, variance = self._rows(positions)
        mean = np.broadcast_to(weights[:, 0], (n,)).copy()
        size = np.abs(mean)
        for number, name in enumerate(self.real_parents, start=1):
            term = weights[:, number] * np.asarray(columns[name], dtype=np.float64)
            mean += term
            size += np.abs(term)
        return mean, np.broadcast_to(variance, (n,)), size

    def normal_distributions(self, columns: Columns, n: int) -> tuple[Floats, Floats]:
        """Mean and variance of the node in each of n rows of its parents."""
        mean, variance, _ = self._means(columns, n)
        return mean, variance

    def log_prob(self, columns: Columns) -> Floats:
        """Log density of each row given its parents; 0 on a point mass and -inf beside it."""
        y = np.asarray(columns[self.name], dtype=np.float64)
        mean, variance, size = self._means(columns, len(y))
        return log_density_or_mass(y, mean, variance, size)

    def sample(self, columns: Columns, rng: np.random.Generator, n: int) -> Floats:
        """One value for each of n rows of the parents."""
        mean, variance, _ = self._means(columns, n)
        if np.isnan(variance).any():
            codes = self.parent_codes(columns, n)[np.isnan(variance)][0].tolist()
            parents = (self.domain[name] for name in self.discrete_parents)
            where = {v.name: v.states[code] for v, code in zip(parents, codes, strict=True)}
            raise EstimateError(
                f"The regression of {self.name!r} at {where!r} is undefined (unseen='nan'), so nothing can be drawn "
                "from it. Fit with a prior=, or unseen='uniform'."
            )
        return np.asarray(Normals(mean, variance).sample(1, rng)[0])


def named(where: Mapping[Hashable, Hashable] | None, states: Mapping[str, Hashable]) -> dict[Hashable, Hashable]:
    """States given in a dict and by keyword, together."""
    together: dict[Hashable, Hashable] = dict(where or {})
    return together | dict(states)


def fresh_name(name: str, taken: set[Hashable]) -> str:
    """A label that no variable has."""
    while name in taken:
        name = f"({name})"
    return name
