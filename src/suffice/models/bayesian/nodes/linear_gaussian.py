"""A fitted linear-Gaussian node: its regressions, what is known about their error, and its posterior."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Codes, Flags, Floats
from suffice.domain import Domain
from suffice.errors import EstimateError, FileFormatError, FloorWarning, OptionError, Remark, listing
from suffice.families.conjugate import tails
from suffice.families.regression import Products
from suffice.families.regression_distribution import (
    PseudoRows,
    RegressionDistribution,
    variance_quantiles,
    weight_quantiles,
)
from suffice.models.bayesian.nodes.contract import NO_POSTERIOR, Columns
from suffice.models.bayesian.nodes.posterior import RegressionPosteriors, RowPosteriors
from suffice.models.bayesian.nodes.regression_objective import RegressionObjective, finite
from suffice.models.bayesian.nodes.regressions import Regressions, named
from suffice.records import checked
from suffice.statistics import Moments, MomentsBy, Statistic, Summary
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.fitting.inference import Inference
    from suffice.models.bayesian.em.coordinates import Coordinates, Units
    from suffice.models.bayesian.error_bars.spread import ParameterSpread


@dataclass(frozen=True)
class LinearGaussianNode(Regressions):
    """A fitted or given linear-Gaussian node.

    Besides the regressions, for each of the k configurations: `size` (k,), the weight of its rows; `spread` (k, q, q),
    the covariance of the weights in units of the variance, inf on the diagonal where the rows do not determine a
    weight; and with a `prior`, `posterior` (k, 2), shape and scale of the inverse-gamma variance. `evidence` is the log
    marginal likelihood. `pool` names the columns whose moments the node reads, where several nodes share them. `notes`
    are warnings; `directions` say what runs to the edge where the likelihood has no maximum. It is `undecided` whether
    there is one where a variance cannot be told from the rounding of sums in float64, or where columns were left out
    that depend on others as far as the digits of the sums can tell.

    Variances of maximum likelihood are mean squares of the residuals (ddof 0).
    """

    size: Floats | None = None
    spread: Floats | None = None
    posterior: Floats | None = None
    prior: PseudoRows | None = None
    evidence: float | None = None
    estimate: str = "given"
    pool: tuple[Hashable, ...] = ()
    notes: tuple[str, ...] = ()
    directions: tuple[str, ...] = ()
    undecided: bool = False
    #: Standard errors from the observed information, where rows had missing values.
    observed: Any = field(default=None, compare=False, repr=False)

    @property
    def n_params(self) -> int:
        """Free parameters: weights and a variance for each joint state of the discrete parents, seen or not."""
        return self.n_configurations * (len(self.default_weights) + 1)

    def told(self, possible: Flags | None) -> int:
        """Weights that the rows determine, and a variance, at each joint state of the discrete parents with rows."""
        if self.spread is None or self.size is None:
            return self.n_params
        determined = np.isfinite(np.diagonal(self.spread, axis1=1, axis2=2)).sum(axis=1)
        return int((determined + 1)[self.size > 0.0].sum())

    @property
    def n_unseen(self) -> int:
        """Number of joint states of the discrete parents without any rows."""
        return self.n_configurations - len(self.configurations)

    @property
    def exists(self) -> bool | None:
        """Whether the objective has a maximum; the likelihood has none where a variance shrinks to 0; None: unknown."""
        return None if self.undecided else not self.directions

    @property
    def left_out(self) -> bool:
        """Whether columns were left out that may yet explain something: nobody can say how near the maximum is."""
        if not self.undecided or self.spread is None:
            return False
        free = np.isinf(np.diagonal(self.spread, axis1=1, axis2=2)).any(axis=1)
        return bool((free & (self.variance > 0)).any())

    # -- errors and the posterior ------------------------------------------------------------------------------------

    @property
    def standard_errors_(self) -> Floats:
        """Of the weights, in the shape of `weights_`; inf for weights that the rows do not determine.

        Maximum likelihood: from the information at the estimate, with its variance (ddof 0). With a prior: posterior
        standard deviations, which need a posterior shape above 1.
        """
        if self.observed is not None:
            return np.asarray(self.observed.of(self.name)[..., :-1])
        if self.spread is None:
            raise EstimateError(f"{self.name!r} was not learned from rows, so its weights have no standard errors.")
        if self.prior is None:
            spread, scale = self.spread, self.variance
            default = np.full(spread.shape[1], np.inf)
        else:
            _, spread, alpha, beta = self._posteriors
            scale = np.where(alpha > 1, beta / np.where(alpha > 1, alpha - 1, 1.0), np.inf)
        diagonal = np.diagonal(spread, axis1=1, axis2=2)
        bounded = np.where(np.isinf(diagonal), 0.0, diagonal)
        errors = np.where(np.isinf(diagonal), np.inf, np.sqrt(scale[:, None] * bounded))
        if self.prior is not None:
            errors, default = errors[:-1], errors[-1]
        return self.dense(errors, default)

    def covariances(self) -> tuple[Floats, Floats]:
        """Covariances of the weights (k + 1, q, q) and variances of the variances (k + 1,), last without rows.

        From the information at the estimate, or of the posterior; not finite where neither determines them.
        """
        if self.spread is None or self.size is None:
            raise EstimateError(f"{self.name!r} was not learned from rows, so its parameters have no covariance.")
        if self.prior is None:
            with np.errstate(divide="ignore"):
                squares = np.append(self.variance**2 * 2 / self.size, np.inf)
            rest = np.full((1, *self.spread.shape[1:]), np.inf)
            return np.concatenate([self.variance[:, None, None] * self.spread, rest]), squares
        _, spread, alpha, beta = self._posteriors
        with np.errstate(invalid="ignore", divide="ignore"):
            scale = np.where(alpha > 1, beta / (alpha - 1), np.inf)
            squares = np.where(alpha > 2, (beta / (alpha - 1)) ** 2 / (alpha - 2), np.inf)
            return scale[:, None, None] * spread, squares

    def spread_of(self, group: Sequence[Any], summary: Summary | None) -> ParameterSpread:
        """The covariance of weights and variances, and draws of them."""
        from suffice.models.bayesian.error_bars.spread import RegressionSpread

        return RegressionSpread.of(self)

    @cached_property
    def _posteriors(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Weights, spread, shape and scale of each configuration, and last of the joint states without rows.

        The latter are those of the prior, or NaN where it leaves the intercept flat.
        """
        if self.prior is None or self.spread is None or self.posterior is None:
            raise EstimateError(f"{self.name!r} was fitted without a prior, so it has no posterior. Give prior=.")
        if self.observed is not None:
            raise EstimateError(NO_POSTERIOR)
        q = len(self.default_weights)
        weights, spread, figures = np.full((1, q), np.nan), np.full((1, q, q), np.nan), np.full((1, 2), np.nan)
        if not self.prior.flat:
            solved, squares = self.prior.solve(Products.none(q))
            weights, spread, figures = solved.weights, solved.spread, np.array([[self.prior.alpha, squares[0] / 2]])
        alpha, beta = np.concatenate([self.posterior, figures]).T
        return np.concatenate([self.weights, weights]), np.concatenate([self.spread, spread]), alpha, beta

    def _posteriors_at(self, places: NDArray[np.intp]) -> tuple[Floats, Floats, Floats, Floats]:
        """The same (n, ...) at some positions."""
        weights, spread, alpha, beta = self._posteriors
        if self.prior is not None and self.prior.flat and (places < 0).any():
            raise EstimateError(
                f"Some joint state of {listing(self.discrete_parents)} has no rows and {self.name!r} has a flat prior "
                "of the intercept, so there is no posterior. Use LinearGaussianPrior(..., on='all')."
            )
        return weights[places], spread[places], alpha[places], beta[places]

    def posterior_distribution(
        self, where: Mapping[Hashable, Hashable] | None = None, /, **states: Hashable
    ) -> RegressionDistribution:
        """The posterior of weights and variance at a joint state of the discrete parents; needs a prior."""
        parts = self._posteriors_at(self.positions(self.codes_of(named(where, states))))
        weights, spread, alpha, beta = (part[0] for part in parts)
        return RegressionDistribution(weights, spread, float(alpha), float(beta))

    @property
    def posterior_(self) -> RegressionDistribution | RegressionPosteriors:
        """The posterior of weights and variance: one, or with discrete parents one for each joint state."""
        if not self.discrete_parents:
            return self.posterior_distribution()
        weights, spread, alpha, beta = self._posteriors
        q = weights.shape[1]
        flat = self.dense(spread[:-1].reshape(-1, q * q), spread[-1].reshape(-1))
        shapes = [self.dense(part[:-1, None], part[-1:])[..., 0] for part in (alpha, beta)]
        distributions = self.domain.select(self.discrete_parents)
        centres = self.dense(weights[:-1], weights[-1])
        return RegressionPosteriors(distributions, centres, flat.reshape(*flat.shape[:-1], q, q), *shapes)

    @property
    def variance_errors_(self) -> Any:
        """Standard errors of the variance, in the shape of `variance_`.

        Maximum likelihood: v sqrt(2 / N), from the information at the estimate. With a prior: posterior standard
        deviations, which need a posterior shape above 2 and are inf below.
        """
        if self.observed is not None:
            dense = self.observed.of(self.name)[..., -1]
            return dense if self.discrete_parents else float(dense)
        if self.size is None:
            raise EstimateError(f"{self.name!r} was not learned from rows, so its variance has no standard error.")
        if self.prior is None:
            with np.errstate(divide="ignore"):
                errors, default = self.variance * np.sqrt(2 / self.size), np.inf
        else:
            _, _, alpha, beta = self._posteriors
            with np.errstate(invalid="ignore", divide="ignore"):
                every = np.where(alpha <= 2, np.inf, beta / (alpha - 1) / np.sqrt(np.maximum(alpha - 2, 0)))
            errors, default = every[:-1], float(every[-1])
        dense = self.dense(errors[:, None], np.array([default]))[..., 0]
        return dense if self.discrete_parents else float(dense)

    def inference(self) -> Inference:
        """What the rows say about each parameter."""
        from suffice.models.bayesian.nodes.estimates import of_regressions

        return of_regressions(self)

    def error_table(self) -> Table:
        """The standard errors of weights and variance by label, laid out as `table_`."""
        variance = np.asarray(self.variance_errors_)[..., None]
        return self.table(np.concatenate([self.standard_errors_, variance], axis=-1))

    def credible_intervals(self, level: float = 0.95) -> tuple[Table, Table]:
        """Lower and upper ends of the central posterior interval of each coefficient; needs a prior.

        Weights are Student-t, variances inverse-gamma. Joint states without rows have the interval of the prior, or NaN
        where it is flat.
        """
        centre, spread, alpha, beta = self._posteriors
        shares = np.array(tails(level))
        diagonal = np.diagonal(spread, axis1=1, axis2=2)
        weights = weight_quantiles(centre, diagonal, alpha[:, None], beta[:, None], shares)
        ends = np.concatenate([weights, variance_quantiles(alpha, beta, shares)[:, None]], axis=1)
        low, high = (self.table(self.dense(ends[:-1, :, end], ends[-1, :, end])) for end in (0, 1))
        return low, high

    def predictive_log_prob(self, columns: Columns) -> Floats:
        """Log density of each row with weights and variance integrated out (Student-t); needs a prior."""
        return self.distributions_of_rows(columns).log_density(*self.design(columns))

    def design(self, columns: Columns) -> tuple[Floats, Floats]:
        """Intercept and real parents (n, q), and the node (n,), of each row."""
        y = np.asarray(columns[self.name], dtype=np.float64)
        reals = (np.asarray(columns[name], dtype=np.float64) for name in self.real_parents)
        return np.stack([np.ones(len(y)), *reals], axis=1), y

    def distributions_of_rows(self, columns: Columns) -> RowPosteriors:
        """The posterior of weights and variance that holds in each row; needs a prior."""
        codes = self.parent_codes(columns, len(columns[self.name]))
        return RowPosteriors(*self._posteriors_at(self.positions(codes)))

    # -- the objective -----------------------------------------------------------------------------------------------

    def log_likelihood(self, summary: Summary) -> float:
        """Sum over rows of the log density; point masses count as in `log_prob`."""
        products, cells = self.products(summary)
        if not products.weight.any():
            return 0.0
        return float(RegressionObjective(products).log_likelihoods(*self._rows(self.positions(cells))).sum())

    def gap(self, summary: Summary) -> float:
        """Slope of the objective, measured afresh: largest over the configurations, each weighted by its share of rows.

        For the weights it is the correlation of the residuals with 1 and with each parent; for the variance, its
        relative distance from the (penalised) mean square.
        """
        seen, cells = self.products(summary)
        if not seen.weight.any() or self.estimate == "given":
            return 0.0
        gaps = RegressionObjective(seen, self.prior, self.estimate).gaps(*self._rows(self.positions(cells)))
        return float((gaps * (seen.weight / seen.weight.sum())).max())

    def steepest(self, summary: Summary, least: float = 0.0) -> tuple[float, float]:
        """Of the slopes in weights and log variances, see `RegressionObjective.steepest`."""
        seen, cells = self.products(summary)
        if not seen.weight.any() or self.estimate == "given":
            return 0.0, 0.0
        objective = RegressionObjective(seen, self.prior, self.estimate)
        return objective.steepest(*self._rows(self.positions(cells)), least)

    def log_prior(self) -> float:
        """Log prior density up to a constant, as learning maximises it, of the joint states with a regression.

        The posterior mean of the variance is the mode under a prior with another power of it.
        """
        if self.prior is None:
            return 0.0
        k, q = self.weights.shape
        rows = self.prior.added_to(Products.none(q)[np.zeros(k, dtype=np.intp)])
        power = self.prior.divisor(np.zeros(k), self.estimate)
        return float(-0.5 * (power * np.log(self.variance) + rows.squares(self.weights) / self.variance).sum())

    def products(self, summary: Summary) -> tuple[Products, Codes]:
        """Sums of products of (real parents, node) for the joint states of the discrete parents seen, and these."""
        return products_of(self.domain, summary, self.pool)

    def point_masses(self, columns: Columns, n: int) -> NDArray[np.bool_]:
        """Where the variance given the parents is 0 (n,)."""
        rows = self.positions(self.parent_codes(columns, n))
        return np.asarray(np.append(self.variance, self.default_variance)[rows] == 0)

    def held(self, least: float) -> LinearGaussianNode:
        """The node with variances of `least` or more; a variance that shrinks to 0 is an error where `least` is 0."""
        low = self.variance <= least
        if not low.any():
            return self
        where = f" in {int(low.sum())} of {self.n_configurations} joint states" if self.discrete_parents else ""
        if not least > 0:
            raise EstimateError(
                f"The variance of {self.name!r} shrinks to 0{where}: the likelihood has no maximum there. Give a "
                "prior=, a positive variance_floor=, or fewer hidden states."
            )
        default = self.default_variance
        return replace(
            self,
            variance=np.where(low, least, self.variance),
            default_variance=least if default <= least else default,
            notes=(
                Remark(
                    f"The variance of {self.name!r} is held at {least:.3g}{where}, see variance_floor=.", FloorWarning
                ),
            ),
            directions=(f"variance of {self.name!r} -> 0{where}",),
        )

    def in_units(self, vector: Floats, units: Units, *, forward: bool) -> Floats:
        """Weights about the means and in units of the columns, and log variances in units of the node; or back."""
        q = len(self.default_weights)
        count = len(vector) // (q + 1)
        weights, logs = vector[: count * q].reshape(count, q).copy(), vector[count * q :]
        centre, scale = np.array([units[name] for name in (*self.real_parents, self.name)]).T
        ratio = scale[:-1] / scale[-1]
        if forward:
            weights[:, 0] = (weights[:, 0] + weights[:, 1:] @ centre[:-1] - centre[-1]) / scale[-1]
            weights[:, 1:] *= ratio
        else:
            weights[:, 1:] /= ratio
            weights[:, 0] = weights[:, 0] * scale[-1] - weights[:, 1:] @ centre[:-1] + centre[-1]
        shift = 2 * np.log(scale[-1]) * (-1 if forward else 1)
        return np.concatenate([weights.ravel(), logs + shift])

    def coordinates(self, units: Units) -> Coordinates:
        """Value at the means, weights in units of the columns, and log variance."""
        from suffice.models.bayesian.em.coordinates import RegressionCoordinates

        return RegressionCoordinates(self, units)

    def without_prior(self) -> LinearGaussianNode:
        """The same regressions without a prior."""
        return replace(self, prior=None)

    def parameters(self) -> Floats:
        """Weights of all joint states of the discrete parents, then the logarithms of their variances."""
        with np.errstate(divide="ignore"):
            return np.concatenate([self.weights_.ravel(), np.log(np.asarray(self.variance_)).ravel()])

    def with_parameters(self, vector: Floats) -> LinearGaussianNode:
        """The node with other weights and variances."""
        size, q = self.n_configurations, len(self.default_weights)
        weights, variance = vector[: size * q].reshape(size, q), np.exp(vector[size * q :])
        if not (np.isfinite(weights).all() and np.isfinite(variance).all() and (variance > 0).all()):
            raise EstimateError(f"{self.name!r} would have weights that are not finite, or a variance of 0.")
        own = self._numbers(self.configurations)
        # All joint states without a regression share one.
        rest = np.setdiff1d(np.arange(size), own)[:1] if len(own) < size else np.arange(0)
        default = (weights[rest[0]], float(variance[rest[0]])) if len(rest) else (self.default_weights, math.nan)
        return replace(
            self, weights=weights[own], variance=variance[own], default_weights=default[0], default_variance=default[1]
        )

    def loss_bound(self, summary: Summary) -> float | None:
        """What least squares and its variance have more, measured from the slopes; None where a fit is perfect."""
        products, cells = self.products(summary)
        if not products.weight.any() or self.estimate == "given":
            return 0.0
        objective = RegressionObjective(products, self.prior, self.estimate)
        return finite(float(objective.losses(*self._rows(self.positions(cells))).sum()))

    def edges(self, summary: Summary) -> tuple[str, ...]:
        """The variances that shrink to 0: the likelihood grows without bound there."""
        return self.directions

    def log_evidence(self) -> float | None:
        """Log marginal likelihood of the node's rows given its parents; None without a prior.

        Where the prior leaves the intercept flat, it is relative to an intercept of density one.
        """
        return self.evidence

    # -- files -------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name != "observed"}
        return {"kind": self.kind, **values, "prior": None if self.prior is None else self.prior.to_dict()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> LinearGaussianNode:
        """Rebuild from plain data, checking shapes, codes and signs."""
        options = {key: value for key, value in plain.items() if key != "kind"}
        if options["prior"] is not None:
            options["prior"] = PseudoRows(**options["prior"])
        node = checked(cls(**options))
        what = (
            f"The linear-Gaussian node {node.name!r}" if isinstance(node.domain, Domain) and node.domain else "A node"
        )
        if what == "A node" or not _sound(node):
            raise FileFormatError(f"{what} has arrays of the wrong type or shape, or a negative variance.")
        return node


def _sound(node: LinearGaussianNode) -> bool:
    """Whether the arrays of a node from a file fit together."""
    k, q, b = len(node.weights), len(node.real_parents) + 1, len(node.discrete_parents)
    shapes: dict[str, tuple[int, ...]] = {
        "weights": (k, q),
        "variance": (k,),
        "default_weights": (q,),
        "size": (k,),
        "spread": (k, q, q),
        "posterior": (k, 2),
    }
    for name, shape in shapes.items():
        array = getattr(node, name)
        optional = array is None and name in ("size", "spread", "posterior")
        if not optional and not (isinstance(array, np.ndarray) and array.dtype == np.float64 and array.shape == shape):
            return False
    codes, cards = node.configurations, np.array(node.domain.shape(node.discrete_parents), dtype=np.int64)
    if not (isinstance(codes, np.ndarray) and codes.dtype == np.int32 and codes.shape == (k, b)):
        return False
    inside = ((codes >= 0) & (codes < cards)).all() and (b > 0 or k == 1)
    if node.prior is not None:
        prior = node.prior
        inside = inside and prior.centre.shape == (q,) and prior.scatter.shape == (q, q) and node.posterior is not None
    return bool(inside and not (node.variance < 0).any() and not node.default_variance < 0)


# --------------------------------------------------------------------------------------------------------------------
# Statistics
# --------------------------------------------------------------------------------------------------------------------


def statistic_of(domain: Domain, pool: tuple[Hashable, ...]) -> Statistic:
    """The moments that a node needs: of its family, or of a pool of columns; by the states of discrete parents."""
    reals = tuple(v.name for v in domain.variables if v.kind != "discrete")
    discrete = tuple(v.name for v in domain.variables if v.kind == "discrete")
    if discrete:
        return MomentsBy(reals, discrete)
    if pool and not set(reals) <= set(pool):
        raise OptionError(f"The pool {listing(pool)} does not hold all of the columns {listing(reals)}.")
    return Moments(pool or reals)


def products_of(domain: Domain, summary: Summary, pool: tuple[Hashable, ...]) -> tuple[Products, Codes]:
    """Sums of products of (real parents, node) for each joint state of the discrete parents seen, and these states."""
    statistic = statistic_of(domain, pool)
    places = {name: axis for axis, name in enumerate(statistic.variables)}
    axes = [places[v.name] for v in domain.variables if v.kind != "discrete"]
    answer = summary[statistic]
    cells = answer.cells if isinstance(statistic, MomentsBy) else np.zeros((1, 0), dtype=np.int32)
    return Products.of(answer, axes), cells
