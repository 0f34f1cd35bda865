"""Normal distributions of one or several columns: full, diagonal, spherical or tied covariances."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.choices import CovarianceShape, choices
from suffice.engines.chain_statistics import diagonal_log_densities, diagonal_potentials, products_by_weight
from suffice.errors import DataError, EstimateError, FloorWarning, Remark
from suffice.families.multivariate_normal import MultivariateNormal
from suffice.families.normal import Normal
from suffice.families.normals import MultivariateNormals
from suffice.models.hidden_markov.emissions.contract import (
    UNUSED,
    Data,
    Emission,
    Parameters,
    Statistics,
    never_learned,
)
from suffice.models.hidden_markov.emissions.gaussian_missing import completed, marginal_log_densities
from suffice.models.hidden_markov.emissions.gaussian_prior import log_density, updated
from suffice.models.hidden_markov.emissions.gaussian_start import below_floor, read_distributions
from suffice.models.hidden_markov.emissions.moments import MatchedPart, without_pull
from suffice.models.hidden_markov.emissions.reals import as_reals
from suffice.models.hidden_markov.emissions.standing import Standing, of_scatters
from suffice.statistics import MomentsBy, Statistic

SHAPES = choices(CovarianceShape)


@dataclass(frozen=True)
class GaussianEmission(Emission):
    """N(mean, covariance) for each state.

    `centre` and `scale` (d,) are mean and standard deviation of the columns of the first fit: sums are taken about the
    centre, so that nothing cancels, and steps are measured in the scale. Variances along any direction stay at
    `floor` times that of the column or more.
    """

    size: int
    shape: str
    centre: Floats
    scale: Floats
    floor: float
    prior: Any = None
    estimate: str = "map"
    scalar: bool = False
    columns: tuple[Any, ...] | None = None

    @property
    def kinds(self) -> Mapping[str, str]:  # type: ignore[override]
        """Means, and covariances of their shape."""
        shapes = {"full": "symmetric", "diagonal": "diagonal", "spherical": "spherical", "tied": "shared"}
        return {"means": "real", "covariances": shapes[self.shape]}

    @property
    def width(self) -> int:
        """The columns of a mean."""
        return len(self.centre)

    @property
    def _d(self) -> int:
        return len(self.centre)

    # -- data --------------------------------------------------------------------------------------------------------

    def read(self, columns: Sequence[NDArray[Any]]) -> Data:
        """Values (steps, d) about the centre; NaN for a missing value."""
        titles = self.columns or (None,) * len(columns)
        if len(titles) != len(columns):
            titles = (None,) * len(columns)
        values = np.stack([as_reals(x, title) for x, title in zip(columns, titles, strict=True)], axis=1)
        if values.shape[1] != self._d:
            raise DataError(
                f"Steps hold {values.shape[1]} observations; expected {self._d}, the columns that were learned."
            )
        return (values - self.centre,)

    def points(self, data: Data) -> Floats:
        """As they are read."""
        return data[0]

    def in_closed_form(self, data: Data) -> bool:
        """Unless some columns of a step are missing, and others are not."""
        missing = np.isnan(data[0])
        return self._d == 1 or bool((missing.any(axis=1) == missing.all(axis=1)).all())

    # -- expectation -------------------------------------------------------------------------------------------------

    def log_densities(self, data: Data, parameters: Parameters) -> Floats:
        """Of complete rows by one triangular solve for each distribution; of others by the density of what was seen."""
        x, means = data[0], parameters["means"] - self.centre
        missing = np.isnan(x).any(axis=1)
        if missing.any():
            logs = np.empty((len(x), self.size))
            logs[~missing] = self.log_densities((x[~missing],), parameters)
            logs[missing] = marginal_log_densities(x[missing], means, parameters["covariances"])
            return logs
        if self._d == 1 or self.shape in ("diagonal", "spherical"):
            variances = np.stack([np.diag(matrix) for matrix in parameters["covariances"]])
            return diagonal_log_densities(x, means, variances)
        return self._normals(parameters).log_prob_of_many(x)

    def potentials(self, data: Data, parameters: Parameters, out: Floats | None = None) -> tuple[Floats, Floats]:
        """Of independent columns without missing values in one loop."""
        if not (self._d == 1 or self.shape in ("diagonal", "spherical")) or np.isnan(data[0]).any():
            return super().potentials(data, parameters, out)
        variances = np.stack([np.diag(matrix) for matrix in parameters["covariances"]])
        return diagonal_potentials(data[0], parameters["means"] - self.centre, variances, out)

    def statistics(self, data: Data, weights: Floats, parameters: Parameters) -> Statistics:
        """Weight (size,), sums (size, d) and products (size, d, d) about the centre."""
        x = data[0]
        missing = np.isnan(x).any(axis=1)
        if not missing.any():
            return products_by_weight(x, weights)
        whole = products_by_weight(x[~missing], weights[~missing])
        means = parameters["means"] - self.centre
        expected = completed(x[missing], weights[missing], means, parameters["covariances"])
        return {name: whole[name] + expected[name] for name in whole}

    # -- maximisation ------------------------------------------------------------------------------------------------

    def expected(self, statistics: Statistics, parameters: Parameters) -> Floats:
        """-(N log det(2 pi S) + tr(S^-1 scatter about the mean)) / 2."""
        return self._normals(parameters).log_likelihood(*self._centred(statistics))

    def _normals(self, parameters: Parameters) -> MultivariateNormals:
        """The distributions about the centre."""
        return MultivariateNormals(parameters["means"] - self.centre, parameters["covariances"])

    def _centred(self, statistics: Statistics) -> tuple[Floats, Floats, Floats]:
        """Weight (size,), means (size, d) about the centre, and scatter (size, d, d) about these; 0 without steps."""
        weight, sums = np.asarray(statistics["weight"]), statistics["sums"]
        used = weight > 0
        means = np.where(used[:, None], sums / np.where(used, weight, 1.0)[:, None], 0.0)
        return weight, means, statistics["products"] - weight[:, None, None] * means[:, :, None] * means[:, None, :]

    def maximise(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        """Means and covariances of the weighted steps (ddof 0), or the conjugate posterior's mode or mean."""
        weight, averages, scatters = self._centred(statistics)
        averages, scatters = averages + self.centre, (scatters + scatters.mT) / 2
        if self.prior is not None:
            cells = zip(weight, averages, scatters, strict=True)
            points = [updated(self.prior, self.estimate, *cell) for cell in cells]
            held = [self._held(covariance) for _, covariance in points]
            return {"means": np.stack([mean for mean, _ in points]), "covariances": np.stack(held)}
        used = weight > UNUSED
        best = MultivariateNormals.most_likely(weight, averages, scatters)
        covariances = parameters["covariances"].copy()
        if self.shape != "tied":
            for distribution in np.flatnonzero(used):
                covariances[distribution] = self._held(self._shaped(best.covariance[distribution]))
        elif used.any():
            covariances[:] = self._held(scatters[used].sum(axis=0) / weight[used].sum())
        return {"means": np.where(used[:, None], best.mean, parameters["means"]), "covariances": covariances}

    def _shaped(self, covariance: Floats) -> Floats:
        if self.shape == "diagonal":
            return np.diag(np.diag(covariance))
        if self.shape == "spherical":
            return np.asarray(np.eye(self._d) * (np.trace(covariance) / self._d))
        return covariance

    def _held(self, covariance: Floats) -> Floats:
        """The covariance with no variance, in units of the columns, below the floor: the best one above it."""
        if self.shape == "spherical":
            least = self.floor * float(np.mean(self.scale**2))
            return covariance if covariance[0, 0] >= least else np.eye(self._d) * least
        units = np.outer(self.scale, self.scale)
        values, vectors = np.linalg.eigh(covariance / units)
        if values[0] >= self.floor and values[0] > 0:
            return covariance
        if self.floor == 0:
            raise EstimateError(
                "The covariance of a state became singular: the likelihood grows without bound. Use fewer states, "
                "variance_floor above 0, or a prior."
            )
        held = (vectors * np.maximum(values, self.floor)) @ vectors.T
        return np.asarray((held + held.T) / 2 * units)

    def log_prior(self, parameters: Parameters) -> Floats:
        """Density of the conjugate prior."""
        if self.prior is None:
            return np.zeros(self.size)
        return np.array(
            [log_density(self.prior, *distribution) for distribution in zip(*self._pair(parameters), strict=True)]
        )

    def _pair(self, parameters: Parameters) -> tuple[Floats, Floats]:
        return parameters["means"], parameters["covariances"]

    @property
    def without_prior(self) -> tuple[str, ...]:
        """Normal distributions, unless they have a conjugate prior."""
        family = Normal if self.scalar else MultivariateNormal
        return () if self.prior is not None else (family.__name__,)

    def notes(self, parameters: Parameters, statistics: Statistics, names: Sequence[str]) -> tuple[str, ...]:
        """Which distributions lie on the floor."""
        smallest = self._smallest(parameters)
        low = [name for name, value in zip(names, smallest, strict=True) if value <= self.floor * (1 + 1e-6)]
        if low and self.shape == "tied":
            low = ["all states"]
        return tuple(
            Remark(
                f"a variance of {name} is held at its floor, variance_floor={self.floor:g} in units of the columns",
                FloorWarning,
            )
            for name in low
        )

    def standing(self, statistics: Statistics, parameters: Parameters, names: Sequence[str]) -> Standing:
        """Without a prior in closed form; a posterior has its point, and what it loses is not known."""
        edge = self.collapsed(parameters, names)
        if self.prior is not None or edge:
            return Standing(edge, lost=None)
        weight, _, scatters = self._centred(statistics)
        used = weight > UNUSED
        value = float(self.expected(statistics, parameters)[used].sum())
        return of_scatters(np.where(used, weight, 0.0), scatters, self.shape, value)

    def collapsed(self, parameters: Parameters, names: Sequence[str]) -> tuple[str, ...]:
        """Variances at the floor, by state and column; a prior holds them up by itself."""
        if self.prior is not None:
            return ()
        low = np.flatnonzero(self._smallest(parameters) <= self.floor * (1 + 1e-6)).tolist()
        tied = self.shape == "tied"
        places = [
            (distribution, "all states" if tied else names[distribution]) for distribution in (low[:1] if tied else low)
        ]
        return tuple(
            f"variance of {self._narrow(parameters, distribution)} in {name} -> 0" for distribution, name in places
        )

    def _narrow(self, parameters: Parameters, distribution: int) -> str:
        """The columns along which a distribution is narrowest, in words."""
        titles = [
            f"column {column}" if self.columns is None else repr(self.columns[column]) for column in range(self._d)
        ]
        if self._d == 1:
            return "the observations" if self.columns is None else titles[0]
        if self.shape == "spherical":
            return "all columns"
        _, vectors = np.linalg.eigh(parameters["covariances"][distribution] / np.outer(self.scale, self.scale))
        part = np.abs(vectors[:, 0])
        return " and ".join(titles[column] for column in np.flatnonzero(part > 0.1 * part.max()).tolist())

    @property
    def coercive(self) -> bool:
        """With a prior of precisions whose density goes to 0 as they do: in the variance always, else of dof > d."""
        dof = getattr(self.prior, "dof_", None)
        return self.prior is not None and (dof is None or bool(dof > self._d))

    def _smallest(self, parameters: Parameters) -> Floats:
        """The smallest variance of each distribution (size,) in units of the columns."""
        covariances = parameters["covariances"]
        if self.shape == "spherical":
            return np.asarray(covariances[:, 0, 0] / np.mean(self.scale**2))
        return np.asarray(np.linalg.eigvalsh(covariances / np.outer(self.scale, self.scale))[:, 0])

    def moments(self, statistics: Statistics, parameters: Parameters, names: Sequence[str]) -> Iterator[MatchedPart]:
        """First and second moments about the centre, in units of the columns, times the indicator of a state."""
        d, weight = self._d, np.asarray(statistics["weight"])
        total = float(weight.sum())
        if not total > UNUSED:
            return
        share, away = weight / total, (parameters["means"] - self.centre) / self.scale
        units = np.outer(self.scale, self.scale)
        seen, expected = statistics["sums"] / self.scale / total, share[:, None] * away
        square = statistics["products"] / units / total
        own = share[:, None, None] * (parameters["covariances"] / units + away[:, :, None] * away[:, None, :])
        titles = [str(title) for title in self.columns or ("x" if d == 1 else f"x{cells}" for cells in range(d))]
        named = [f"{name}: {title}" for name in names for title in titles]
        yield without_pull(named, seen.ravel(), expected.ravel())
        if self.shape == "spherical":
            both = [np.trace(part * units, axis1=1, axis2=2) / np.mean(self.scale**2) for part in (square, own)]
            yield without_pull([f"{name}: sum of squares" for name in names], both[0], both[1])
            return
        if self.shape == "tied":
            square, own, names = square.sum(axis=0, keepdims=True), own.sum(axis=0, keepdims=True), ["all states"]
        cells = np.diag_indices(d) if self.shape == "diagonal" else np.triu_indices(d)
        pairs = [f"{titles[i]}²" if i == j else f"{titles[i]}·{titles[j]}" for i, j in zip(*cells, strict=True)]
        named = [f"{name}: {pair}" for name in names for pair in pairs]
        yield without_pull(named, square[:, cells[0], cells[1]].ravel(), own[:, cells[0], cells[1]].ravel())

    @property
    def has_conjugate_prior(self) -> bool:
        """Where one was given."""
        return self.prior is not None

    # -- further steps -----------------------------------------------------------------------------------------------

    def left(self, rest: Statistics, before: Statistics) -> Statistics:
        """Weights of at least 0, and scatters without a negative direction."""
        left = super().left(rest, before)
        units = np.outer(self.scale, self.scale)
        for distribution, weight in enumerate(left["weight"]):
            slack = 1e-9 * max(float(np.trace(before["products"][distribution] / units)), 1.0)
            products, sums = left["products"][distribution] / units, left["sums"][distribution] / self.scale
            if weight == 0:
                if max(np.abs(products).max(), np.abs(sums).max()) > slack:
                    raise never_learned("a state without steps whose values do not add up to 0")
                left["products"][distribution], left["sums"][distribution] = 0.0, 0.0
            elif np.linalg.eigvalsh(products - np.outer(sums, sums) / weight)[0] < -slack:
                raise never_learned("a negative variance")
        return left

    def questions(self, by: Hashable, names: Sequence[Hashable]) -> tuple[Statistic, ...]:
        """Moments by state."""
        return (MomentsBy(tuple(names), (by,)),)

    def rescaled(self, statistics: Statistics) -> Self:
        """The spread of all steps, about the centre of the first fit."""
        weight = float(statistics["weight"].sum())
        if not weight > 0:
            return self
        mean = statistics["sums"].sum(axis=0) / weight
        square = np.diagonal(statistics["products"].sum(axis=0)) / weight - mean**2
        level = np.abs(self.centre + mean)
        spread = np.sqrt(np.maximum(square, 0.0))
        constant = spread <= 1e-7 * np.sqrt(np.diagonal(statistics["products"].sum(axis=0)) / weight)
        scale = np.where(constant | (spread <= 1e-14 * level), np.where(level > 0, level, 1.0), spread)
        return replace(self, scale=scale)

    # -- parameters as one vector ------------------------------------------------------------------------------------

    def vector(self, parameters: Parameters) -> Floats:
        """Means and covariances in units of the columns."""
        means = (parameters["means"] - self.centre) / self.scale
        return np.concatenate([means.ravel(), (parameters["covariances"] / np.outer(self.scale, self.scale)).ravel()])

    def at(self, vector: Floats, like: Parameters) -> Parameters:
        """Back from the units."""
        d, cut = self._d, self.size * self._d
        covariances = vector[cut:].reshape(self.size, d, d) * np.outer(self.scale, self.scale)
        if self.shape == "spherical":
            covariances = np.eye(d) * covariances[:, :1, :1]  # One number, whatever the units round to.
        return {"means": vector[:cut].reshape(self.size, d) * self.scale + self.centre, "covariances": covariances}

    def inside(self, parameters: Parameters) -> bool:
        """Covariances on or above the floor."""
        return bool((self._smallest(parameters) >= self.floor * (1 - 1e-9)).all())

    @property
    def n_free(self) -> NDArray[np.int64]:
        """Mean, and the free entries of a covariance that is not shared."""
        d = self._d
        free = {"full": MultivariateNormals.n_params(d), "diagonal": 2 * d, "spherical": d + 1, "tied": d}
        return np.full(self.size, free[self.shape], np.int64)

    @property
    def n_shared(self) -> int:
        """The tied covariance."""
        return MultivariateNormals.n_params(self._d) - self._d if self.shape == "tied" else 0

    # -- distributions
    # --------------------------------------------------------------------------------------------------------

    def distributions(self, parameters: Parameters) -> list[Any]:
        """Normal distributions for one column, else multivariate ones."""
        pairs = list(zip(*self._pair(parameters), strict=True))
        if self.scalar:
            return [Normal(float(mean[0]), float(covariance[0, 0])) for mean, covariance in pairs]
        return [MultivariateNormal(mean, covariance, columns=self.columns) for mean, covariance in pairs]

    def parameters_of(self, distributions: Any) -> Parameters:
        """From distributions, or from (mean, variance or covariance) of each state."""
        return read_distributions(distributions, self.size, self._d, self.shape)

    def check_start(self, given: Parameters) -> None:
        """Variances on or above the floor."""
        if not self.inside(given):
            raise below_floor(self.floor, self.scale, self.columns)

    def start(self, totals: Statistics, rng: np.random.Generator) -> Parameters:
        """The distribution of all steps for each state, at random means."""
        means = self.centre + self.scale * rng.standard_normal((self.size, self._d))
        return {"means": means, "covariances": np.stack([np.diag(self.scale**2)] * self.size)}

    def draw(self, codes: NDArray[np.intp], parameters: Parameters, rng: np.random.Generator) -> list[NDArray[Any]]:
        """Standard normal numbers times the root of the covariance."""
        return list(MultivariateNormals(*self._pair(parameters)).draw(codes, rng).T)

    def describe(self) -> dict[str, Any]:
        """Centre and scale."""
        return {"centre": self.centre, "scale": self.scale}
