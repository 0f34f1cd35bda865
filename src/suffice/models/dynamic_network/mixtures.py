"""Numbers that are not seen beside states that are not: in each slice a mixture of normal distributions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats, Ints
from suffice.errors import OptionError
from suffice.models.dynamic_network.pieces import joint_states
from suffice.models.dynamic_network.structure import Position

if TYPE_CHECKING:
    from suffice.models.dynamic_network.fitted import DynamicFitted
    from suffice.models.dynamic_network.series import Series
    from suffice.models.dynamic_network.slice_chains import SliceChains

#: Halvings of the interval in which a quantile lies: to the last digit of its width.
HALVINGS = 60


@dataclass(frozen=True, eq=False)
class NormalMixtures:
    """In each slice a mixture of normal distributions of one number: `weights`, `means`, `variances` (slices, c).

    A number that is seen is a mixture whose variances are 0. As an array it is mean and variance (slices, 2), as the
    answers of linear systems are.
    """

    weights: Floats
    means: Floats
    variances: Floats

    @property
    def mean(self) -> Floats:
        """Of each slice (slices,)."""
        return np.asarray((self.weights * self.means).sum(axis=1))

    @property
    def variance(self) -> Floats:
        """Of each slice (slices,): within the distributions, and between their means."""
        away = self.means - self.mean[:, None]
        return np.asarray((self.weights * (self.variances + away * away)).sum(axis=1))

    def cdf(self, values: ArrayLike) -> Floats:
        """P(number <= value) of each slice (slices,); values: one, or one a slice."""
        from scipy.special import ndtr

        away = np.broadcast_to(np.asarray(values, np.float64), len(self))[:, None] - self.means
        spread = np.sqrt(self.variances)
        points = np.where(away >= 0, np.inf, -np.inf)
        units = np.divide(away, spread, out=points, where=spread > 0)
        return np.asarray((self.weights * ndtr(units)).sum(axis=1))

    def quantile(self, level: float) -> Floats:
        """The number below which each slice stays with probability `level` (slices,), by bisection."""
        from scipy.special import ndtri

        if not 0.0 < level < 1.0:
            raise OptionError(f"level is {level!r}; expected a number between 0 and 1.")
        ends = self.means + ndtri(level) * np.sqrt(self.variances)
        some = self.weights > 0
        low = np.where(some, ends, np.inf).min(axis=1)
        high = np.where(some, ends, -np.inf).max(axis=1)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            below = self.cdf(middle) < level
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(high)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Mean and variance (slices, 2)."""
        return np.stack([self.mean, self.variance], axis=1).astype(dtype or np.float64)

    def __len__(self) -> int:
        """How many slices there are."""
        return len(self.weights)

    def __getitem__(self, slices: Any) -> NormalMixtures:
        """Those of some slices."""
        some = np.atleast_1d(np.arange(len(self))[slices])
        return NormalMixtures(self.weights[some], self.means[some], self.variances[some])


@dataclass(frozen=True, eq=False)
class NumberFamilies:
    """The families of a node of numbers on which nothing depends, under some series; its other parents may be unseen.

    `unseen` are the nodes of states that some slice does not show.
    """

    fitted: DynamicFitted
    series: Series
    node: Hashable
    unseen: frozenset[Hashable]

    @property
    def linear(self) -> bool:
        """Whether all of them are regressions, so that mixtures of normal distributions are what they say."""
        return all(self.fitted.nodes[family].linear for family in self.fitted.structure.versions(self.node))

    @property
    def depths(self) -> dict[Hashable, int]:
        """The unseen nodes on which it depends, and for how many slices these have to be known together."""
        kept: dict[Hashable, int] = {}
        for _, _, above in self._held():
            for name, lag in above.values():
                if name in self.unseen:
                    kept[name] = max(kept.get(name, 0), lag + 1)
        return kept

    def _held(self) -> list[tuple[Hashable, Ints, dict[Hashable, Position]]]:
        """Each family, the slices in which it holds and shows no number, and where its parents are."""
        series, structure = self.series, self.fitted.structure
        gone = series.missing(self.node) if self.node in series.columns else np.ones(series.n_slices, bool)
        held = []
        for family in structure.versions(self.node):
            span = structure.span(family)
            rows = series.rows_of(span)
            where = structure.positions(family, span[0])
            held.append((family, rows[gone[rows]], {p: where[p] for p in structure.families[family]}))
        return held

    def mixtures(self, chains: SliceChains, posteriors: Floats) -> NormalMixtures:
        """Of every slice, given what is known of the carried states (slices, K), `depths` among them."""
        parts = []
        for family, rows, above in self._held():
            node = self.fitted.nodes[family]
            hidden = [name for name in node.discrete_parents if above[name][0] in self.unseen]
            cards = [node.domain[name].card for name in hidden]
            places = np.zeros(chains.size, np.int64)
            for name, card in zip(hidden, cards, strict=True):
                places = places * card + chains.plan.interface.digits[above[name]]
            joint = joint_states(cards)
            indicator = np.zeros((chains.size, len(joint)))
            indicator[np.arange(chains.size), places] = 1.0
            means, variances = self._terms(node, rows, above, dict(zip(hidden, joint.T, strict=True)))
            parts.append((rows, posteriors[rows] @ indicator, means, variances))
        count = max(part[1].shape[1] for part in parts)
        shape = self.series.n_slices, count
        weights, means, variances = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        weights[:, 0] = 1.0
        if self.node in self.series.columns:
            means[:] = np.nan_to_num(self.series.columns[self.node])[:, None]
        for rows, shares, centres, spreads in parts:
            width = shares.shape[1]
            weights[rows, 0] = 0.0
            weights[rows, :width], means[rows, :width], variances[rows, :width] = shares, centres, spreads
        return NormalMixtures(weights, means, variances)

    def means(self, states: Mapping[Hashable, Ints]) -> Floats:
        """Of every slice (slices,) the number that is seen, or its mean under known states of all nodes."""
        values = np.full(self.series.n_slices, np.nan)
        if self.node in self.series.columns:
            values[:] = self.series.columns[self.node]
        for family, rows, above in self._held():
            node = self.fitted.nodes[family]
            own = [name for name in node.discrete_parents if above[name][0] in states]
            codes = {name: states[above[name][0]][rows - above[name][1], None] for name in own}
            values[rows] = self._terms(node, rows, above, codes)[0][:, 0]
        return values

    def _terms(
        self, node: Any, rows: Ints, above: Mapping[Hashable, Position], codes: Mapping[Hashable, Any]
    ) -> tuple[Floats, Floats]:
        """Means and variances (rows, c) under codes of some discrete parents, (c,) or (rows, c); others are seen."""
        columns = self.series.columns
        index = tuple(
            np.asarray(codes[p]) if p in codes else columns[above[p][0]][rows - above[p][1], None]
            for p in node.discrete_parents
        )
        shape = np.broadcast_shapes((len(rows), 1), *(part.shape for part in index))
        weights = np.broadcast_to(np.asarray(node.weights_)[index], (*shape, node.weights_.shape[-1]))
        means = weights[..., 0].copy()
        for number, name in enumerate(node.real_parents, start=1):
            parent, lag = above[name]
            means += weights[..., number] * columns[parent][rows - lag, None]
        return means, np.broadcast_to(np.asarray(node.variance_)[index], shape)


def states_of(fitted: DynamicFitted, names: Sequence[Hashable]) -> list[Hashable]:
    """Those of some nodes that have states."""
    return [name for name in names if fitted.domain[name].kind == "discrete"]
