"""The score equations of a regression as pairs that a fit makes equal, worked out from the rows when first asked for.

With the canonical link they read ``X'y = X'mu``: what was observed, and what the model expects. Other links weigh every
row by ``s = (d mu / d eta) / variance``: ``X's y = X's mu``. For ordered labels, which are no exponential family, the
two sides are what pulls a parameter up and what pulls it down.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.engines.linear_predictor import CoefficientLayout, RowBlock, linear_predictor, transpose_product, weighted
from suffice.errors import EstimateError, FileFormatError, SufficeError
from suffice.families.normal_wishart import NormalWishart
from suffice.fitting.report import MatchedStatistics
from suffice.models.glm.cumulative import CumulativeRows, cumulative_problem
from suffice.models.glm.family import RowDistribution
from suffice.models.glm.fit_options import FitOptions
from suffice.models.glm.fitted import GLMFitted
from suffice.models.glm.links import find_link
from suffice.models.glm.priors import ahead_of
from suffice.models.glm.problem import deviance_of
from suffice.models.glm.rows import RegressionData
from suffice.models.glm.softmax import SoftmaxDistribution
from suffice.records import fields_of
from suffice.solvers.penalties import pull_of

CANONICAL = {
    *(("gaussian", "identity"), ("binomial", "logit"), ("poisson", "log"), ("gamma", "inverse")),
    *(("inverse_gaussian", "inverse_square"), ("multinomial", "logit"), ("multivariate_gaussian", "identity")),
}
#: The deviance of the rows may differ by this share from that of the fit, or they are others.
CHANGED = 1e-6
#: A row moves along a direction of separation from here on, in units of the row that moves most.
MOVES = 1e-7


@dataclass(frozen=True, eq=False)
class ScorePairs:
    """Both sides (k, m) in the order of the names, a row on average, and what a prior adds."""

    observed: Floats
    expected: Floats
    pull: Floats | None = None


class MatchedRows:
    """The pairs of a fit, and its coefficients (k, m) without the prior, made when first asked for.

    Copies and files hold the pairs made, unless that would read a file again.
    """

    def __init__(
        self,
        make: Callable[[], ScorePairs] | None = None,
        fit: Callable[[], Floats | None] | None = None,
        *,
        in_memory: bool = True,
    ) -> None:
        """Keep what makes them, and with it the rows, until then."""
        self._make, self._fit, self._in_memory = make, fit, in_memory
        self._pairs: ScorePairs | None = None
        self._likelihood: Floats | None = None

    @classmethod
    def later(
        cls, options: FitOptions, data: RegressionData, fitted: GLMFitted, fit: Callable[[], Floats | None] | None
    ) -> MatchedRows:
        """What makes the pairs of a fit, and its likelihood estimate by `fit`; both hold the rows."""
        return cls(lambda: _made(options, data, fitted), fit, in_memory=data.blocks.in_memory)

    @property
    def pairs(self) -> ScorePairs | None:
        """The pairs; an error where the rows are no longer those of the fit."""
        if self._make is not None:
            self._pairs = self._make()
            self._make = None
        return self._pairs

    def settle(self) -> None:
        """Make the pairs now, before the rows go; where that cannot be there are none, which is no error of the fit."""
        with contextlib.suppress(SufficeError):
            self.pairs  # noqa: B018
        self._make = None

    @property
    def likelihood(self) -> Floats | None:
        """Maximum likelihood; None without a prior, and where the likelihood has no maximum."""
        if self._fit is not None:
            self._likelihood = self._fit()
            self._fit = None
        return self._likelihood

    def statistics(self, fitted: GLMFitted) -> MatchedStatistics | None:
        """The pairs by name, predictors first; None where the rows are gone."""
        pairs = self.pairs
        if pairs is None:
            return None
        pull = None if pairs.pull is None else pairs.pull.T.ravel()
        both = (pairs.observed.T.ravel(), pairs.expected.T.ravel())
        words = about(fitted.family_object.rows_like, fitted.link)
        return MatchedStatistics(tuple(fitted.flat_names()), *both, pull, about=words)

    def __getstate__(self) -> dict[str, Any]:
        """As the pairs that they are; None where the rows are gone or others."""
        if self._in_memory:
            with contextlib.suppress(SufficeError):
                self.pairs  # noqa: B018
        return {**fields_of(self), "_make": None, "_fit": None}

    def to_dict(self) -> dict[str, Any] | None:
        """Plain data for a file."""
        held = self.__getstate__()
        return None if held["_pairs"] is None else {**vars(held["_pairs"]), "likelihood": held["_likelihood"]}

    @classmethod
    def from_dict(cls, plain: Any, shape: tuple[int, ...]) -> MatchedRows:
        """Rebuild from plain data; arrays of another shape are an error."""
        rows = cls()
        if plain is None:
            return rows
        arrays = {name: plain[name] for name in ("observed", "expected", "pull", "likelihood")}
        for name, array in arrays.items():
            if array is None and name in ("pull", "likelihood"):
                continue
            if not (isinstance(array, np.ndarray) and array.shape == shape and array.dtype == np.float64):
                raise FileFormatError(f"The file has {name} moments that do not fit {shape[0]} coefficients.")
        rows._likelihood = arrays.pop("likelihood")
        rows._pairs = ScorePairs(**arrays)
        return rows


def _is_canonical(family: str, link: str) -> bool:
    """Whether the linear predictor is the natural parameter."""
    return link == "natural" or (family, link) in CANONICAL


def about(family: str, link: str) -> str:
    """What the pairs are, in a sentence."""
    if family == "ordinal":
        return (
            "Both sides of the score equations of the ordered labels: what pulls a parameter up, and what pulls it "
            "down, a row."
        )
    if _is_canonical(family, link):
        return f"The {link} link is canonical: the fit makes X'y, observed, equal to X'mu, expected, a row."
    return (
        f"The {link} link is not canonical for this family: the fit makes the weighted sums X's y and X's mu equal, a "
        "row, with s = (d mu / d eta) / variance."
    )


# -- both sides --------------------------------------------------------------------------------------------------------


def _made(options: FitOptions, data: RegressionData, fitted: GLMFitted) -> ScorePairs:
    observed, expected = _ordinal_sides(data, fitted) if fitted.family == "ordinal" else _sides(data, fitted)
    weight = data.weight
    pull = prior_pull(options, fitted, observed - expected)
    return ScorePairs(observed / weight, expected / weight, None if pull is None else pull / weight)


def _sides(data: RegressionData, fitted: GLMFitted) -> tuple[Floats, Floats]:
    design = fitted.design
    layout, beta = design.layout, np.asarray(design.internal(fitted.beta))
    direction = None if fitted.direction is None else np.asarray(design.internal(fitted.direction))
    several = fitted.family in ("multinomial", "multivariate_gaussian")
    distribution = None if several else fitted.row_distribution()
    if distribution is not None and direction is None:
        _check_rows(data, fitted, beta[:, 0])
    both = np.asarray(data.blocks.reduce(_BothSides(layout, fitted.family, distribution, beta, direction)))
    return design.public(both[0].T), design.public(both[1].T)


@dataclass(frozen=True, eq=False)
class _BothSides:
    """The sums of both sides (2, m, k) over rows, which a direction of separation settles where it moves."""

    layout: CoefficientLayout
    family: str
    distribution: RowDistribution | None
    beta: Floats
    direction: Floats | None

    def __call__(self, block: RowBlock) -> Floats:
        layout = self.layout
        totals = np.zeros((2, self.beta.shape[1], layout.size))
        for part in layout.parts(block):
            for number, side in enumerate(self.sides(part)):
                values = weighted(side, part.weights)
                totals[number] += [transpose_product(layout, part, np.ascontiguousarray(one)) for one in values.T]
        return totals

    def sides(self, part: RowBlock) -> tuple[Floats, Floats]:
        """Both sides of each row (n, m)."""
        m, eta = self.beta.shape[1], linear_predictor(self.layout, part, self.beta)
        if self.family == "multivariate_gaussian":
            return part.y, eta
        moves = _moves(self.layout, part, self.direction)
        if self.distribution is None:
            seen = (part.y.astype(np.intp)[:, None] == np.arange(m)).astype(np.float64)
            score = SoftmaxDistribution(m + 1)(eta, part.y)[1]
            return seen, seen - np.where(moves, 0.0, score)
        return sides_of_numbers(self.distribution, eta[:, 0], part.y, moves[:, 0])


def sides_of_numbers(
    distribution: RowDistribution, eta: Floats, y: Floats, decided: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Both sides (n, 1) of rows with one linear predictor (n,); those that are decided have their response as mean."""
    with np.errstate(all="ignore"):
        _, score, information = distribution(eta, y)
        slope = distribution.link.slope(eta)
        share = np.where(slope != 0.0, information / slope, 0.0)
    share, score = np.where(decided, 0.0, share), np.where(decided, 0.0, score)
    if _is_canonical(distribution.family.rows_like, distribution.link.name):
        left = y - np.divide(score, share, out=np.zeros_like(score), where=share != 0.0)
        return y[:, None], left[:, None]
    seen = np.abs(share) * y
    return seen[:, None], (seen - np.sign(share) * score)[:, None]


def _moves(layout: CoefficientLayout, part: RowBlock, direction: Floats | None) -> NDArray[np.bool_]:
    """Which rows (n, 1) the direction of separation settles: there the limit of the mean is the response."""
    if direction is None:
        return np.zeros((part.rows, 1), dtype=np.bool_)
    bare = RowBlock(part.dense, part.y, sparse=part.sparse, codes=part.codes)
    along = np.abs(linear_predictor(layout, bare, direction)).max(axis=1, keepdims=True)
    return np.asarray(along > MOVES * max(float(np.abs(direction).max(initial=0.0)), 1e-300))


def _check_rows(data: RegressionData, fitted: GLMFitted, beta: Floats) -> None:
    """The rows are those of the fit, or that is an error: arrays and files may have been written to."""
    deviance = deviance_of(data.blocks, fitted.design.layout, fitted.row_distribution(), beta)
    if math.isnan(fitted.deviance):
        return
    if not abs(deviance - fitted.deviance) <= CHANGED * max(abs(fitted.deviance), 1e-300):
        raise EstimateError(
            "The rows have changed since the fit, so that what they hold cannot be compared with what it expects. Fit "
            "again, or read matched_statistics before the arrays are written to."
        )


def _ordinal_sides(data: RegressionData, fitted: GLMFitted) -> tuple[Floats, Floats]:
    """What pulls up and what pulls down: slopes of a row's log probability in its two ends have opposite signs."""
    parameters = fitted.parameters
    whole = parameters.internal(fitted.values[:, 0])
    assert fitted.classes is not None
    link = find_link(fitted.link)
    problem = cumulative_problem(data.blocks, fitted.design.layout, link, len(fitted.classes))
    both = np.asarray(data.blocks.reduce(partial(_ordinal_sums, labels=problem.labels, whole=whole)))
    return parameters.public(both[0])[:, None], parameters.public(both[1])[:, None]


def _ordinal_sums(block: RowBlock, *, labels: CumulativeRows, whole: Floats) -> Floats:
    held, totals = labels.classes - 1, np.zeros((2, labels.width))
    for part in labels.layout.parts(block):
        ends = labels.ends(part, whole)
        _, (up, low), _ = labels.distribution(ends.upper, ends.lower)
        up, low = weighted(up, part.weights), weighted(low, part.weights)
        none = np.zeros_like(up)
        above, below = labels.pulled(part, ends, up, none), labels.pulled(part, ends, none, low)
        totals[0] += np.concatenate((above[:held], below[held:]))
        totals[1] -= np.concatenate((below[:held], above[held:]))
    return totals


# -- the prior ---------------------------------------------------------------------------------------------------------


def prior_pull(options: FitOptions, fitted: GLMFitted, slope: Floats) -> Floats | None:
    """The slope of the log prior (k, m), in units of the score equations; None without a prior."""
    if options.given["prior"] is None:
        return None
    m, held = fitted.beta.shape[1], len(fitted.thresholds)
    if fitted.family == "multivariate_gaussian":
        return _pull_of_vectors(options, fitted)
    penalties = options.penalties(fitted.design, m)
    if held:
        penalties = ahead_of(penalties, held)
    phi = fitted.dispersion if fitted.free_dispersion else 1.0
    inner = np.asarray(fitted.parameters.internal(fitted.values)).T.ravel()
    left = np.asarray(fitted.parameters.internal(slope)).T.ravel() / phi
    pull = np.zeros_like(inner)
    if penalties.conjugate is not None:
        own = penalties.conjugate
        pull -= fitted.design.internal(own.strength) * (inner - fitted.design.internal(own.mean)) / phi
    for penalty in (penalties.gaussian, penalties.laplace):
        if penalty is not None:
            pull += pull_of(penalty, inner, left + pull)
    return phi * np.asarray(fitted.parameters.public(pull.reshape(m, -1).T))


def _pull_of_vectors(options: FitOptions, fitted: GLMFitted) -> Floats:
    """A Gaussian prior on coefficients acts through the covariance of the residuals, a conjugate one does not."""
    prior, inner = options.given["prior"], np.asarray(fitted.design.internal(fitted.beta))
    if isinstance(prior, NormalWishart):
        away = inner - np.asarray(prior.mean_, dtype=np.float64)
        if fitted.design.constant and not options.given["penalize_intercept"]:
            away[0] = 0.0
        return np.asarray(fitted.design.public(-float(prior.strength_) * away))
    penalty, covariance = options.penalties(fitted.design, 1).gaussian, fitted.residual_covariance
    assert penalty is not None
    assert covariance is not None
    slopes = np.stack([penalty.slope(column) for column in inner.T], axis=1)
    return np.asarray(fitted.design.public(-slopes @ covariance))
