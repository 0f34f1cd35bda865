"""The score equations of a regression as pairs that a fit makes equal, worked out from the rows when first asked for.

With the canonical link they read ``X'y = X'mu``: what was observed, and what the model expects. Other links weigh every
row by ``s = (d mu / d eta) / variance``: ``X's y = X's mu``. For ordered labels, which are no exponential family, the
two sides are what pulls a parameter up and what pulls it down.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.engines.linear_predictor import Block, linear_predictor, transpose_product, weighted
from suffice.errors import EstimateError, FileFormatError, SufficeError
from suffice.families.normal_wishart import NormalWishart
from suffice.models.glm.cumulative import CumulativeProblem
from suffice.models.glm.learned import Learned
from suffice.models.glm.links import find_link
from suffice.models.glm.ordinal import ahead_of, problem_of
from suffice.models.glm.priors import Penalties
from suffice.models.glm.problem import totals
from suffice.models.glm.rows import Read
from suffice.models.glm.softmax import SoftmaxLaw
from suffice.solvers.penalties import pull_of

Floats = NDArray[np.float64]
#: The two sides of the score equations of some rows, for each predictor (n, m).
Sides = Callable[[Block], tuple[Floats, Floats]]

CANONICAL = {
    *(("gaussian", "identity"), ("binomial", "logit"), ("poisson", "log"), ("gamma", "inverse")),
    *(("inverse_gaussian", "inverse_square"), ("multinomial", "logit"), ("multivariate_gaussian", "identity")),
}
#: The deviance of the rows may differ by this share from that of the fit, or they are others.
CHANGED = 1e-6
#: A row moves along a direction of separation from here on, in units of the row that moves most.
MOVES = 1e-7


@dataclass(frozen=True, eq=False)
class Pairs:
    """Both sides (k, m) in the order of the names, a row on average, and what a prior adds."""

    observed: Floats
    expected: Floats
    pull: Floats | None = None


class Later:
    """The pairs of a fit, and its coefficients (k, m) without the prior, made when first asked for.

    Copies and files hold the pairs made, unless that would read a file again.
    """

    def __init__(
        self,
        make: Callable[[], Pairs] | None = None,
        fit: Callable[[], Floats | None] | None = None,
        *,
        in_memory: bool = True,
    ) -> None:
        """Keep what makes them, and with it the rows, until then."""
        self._make, self._fit, self._in_memory = make, fit, in_memory
        self._pairs: Pairs | None = None
        self._likelihood: Floats | None = None

    @property
    def pairs(self) -> Pairs | None:
        """The pairs; an error where the rows are no longer those of the fit."""
        if self._make is not None:
            self._pairs = self._make()
            self._make = None
        return self._pairs

    @property
    def likelihood(self) -> Floats | None:
        """Maximum likelihood; None without a prior, and where the likelihood has no maximum."""
        if self._fit is not None:
            self._likelihood = self._fit()
            self._fit = None
        return self._likelihood

    def __getstate__(self) -> dict[str, Any]:
        """As the pairs that they are; None where the rows are gone or others."""
        if self._in_memory:
            with contextlib.suppress(SufficeError):
                self.pairs  # noqa: B018
        return {**self.__dict__, "_make": None, "_fit": None}

    def to_plain(self) -> dict[str, Any] | None:
        """Plain data for a file."""
        held = self.__getstate__()
        return None if held["_pairs"] is None else {**vars(held["_pairs"]), "likelihood": held["_likelihood"]}

    @classmethod
    def from_plain(cls, plain: Any, shape: tuple[int, ...]) -> Later:
        """Rebuild from plain data; arrays of another shape are an error."""
        found = cls()
        if plain is None:
            return found
        arrays = {name: plain[name] for name in ("observed", "expected", "pull", "likelihood")}
        for name, array in arrays.items():
            if array is None and name in ("pull", "likelihood"):
                continue
            if not (isinstance(array, np.ndarray) and array.shape == shape and array.dtype == np.float64):
                raise FileFormatError(f"The file has {name} moments that do not fit {shape[0]} coefficients.")
        found._likelihood = arrays.pop("likelihood")
        found._pairs = Pairs(**arrays)
        return found


def later(model: Any, read: Read, learned: Learned) -> Later:
    """What makes the pairs of a fit, and its likelihood estimate; both hold the rows."""
    # Only the options: the model itself may hold the rows of an earlier fit.
    asked = object.__new__(type(model))
    asked.__dict__["_options"] = dict(model._options)
    free = model._options["prior"] is None
    fit = None if free else lambda: _without_prior(asked, read, learned)
    return Later(lambda: _made(asked, read, learned), fit, in_memory=read.rows.in_memory)


def about(family: str, link: str) -> str:
    """What the pairs are, in a sentence."""
    if family == "ordinal":
        return (
            "Both sides of the score equations of the ordered labels: what pulls a parameter up, and what pulls it "
            "down, a row."
        )
    if (family, link) in CANONICAL:
        return f"The {link} link is canonical: the fit makes X'y, observed, equal to X'mu, expected, a row."
    return (
        f"The {link} link is not canonical for this family: the fit makes the weighted sums X's y and X's mu equal, a "
        "row, with s = (d mu / d eta) / variance."
    )


# -- both sides --------------------------------------------------------------------------------------------------------


def _made(model: Any, read: Read, learned: Learned) -> Pairs:
    observed, expected = _ordinal_sides(read, learned) if learned.family == "ordinal" else _sides(read, learned)
    weight = read.weight
    pull = prior_pull(model, learned, observed - expected)
    return Pairs(observed / weight, expected / weight, None if pull is None else pull / weight)


def _sides(read: Read, learned: Learned) -> tuple[Floats, Floats]:
    design = learned.design
    layout, beta = design.layout, np.asarray(design.internal(learned.beta))
    m = beta.shape[1]
    sides = _of_rows(read, learned, beta)

    def task(block: Block) -> Floats:
        found = np.zeros((2, m, layout.size))
        for part in layout.parts(block):
            for place, side in enumerate(sides(part)):
                values = weighted(side, part.weights)
                found[place] += [transpose_product(layout, part, np.ascontiguousarray(one)) for one in values.T]
        return found

    both = np.asarray(read.rows.reduce(task))
    return design.public(both[0].T), design.public(both[1].T)


def _of_rows(read: Read, learned: Learned, beta: Floats) -> Sides:
    """The sides of each row, which a direction of separation settles where it moves."""
    layout, m = learned.design.layout, beta.shape[1]
    direction = None if learned.direction is None else np.asarray(learned.design.internal(learned.direction))
    if learned.family == "multinomial":
        labels = SoftmaxLaw(m + 1)

        def softmax_sides(part: Block) -> tuple[Floats, Floats]:
            eta = linear_predictor(layout, part, beta)
            seen = (part.y.astype(np.intp)[:, None] == np.arange(m)).astype(np.float64)
            score = labels(eta, part.y)[1]
            return seen, seen - np.where(_moves(layout, part, direction), 0.0, score)

        return softmax_sides
    if learned.family == "multivariate_gaussian":
        return lambda part: (part.y, linear_predictor(layout, part, beta))
    if direction is None:
        _check_rows(read, learned, beta[:, 0])

    def one_side(part: Block) -> tuple[Floats, Floats]:
        eta = linear_predictor(layout, part, beta[:, 0])
        return sides_of_numbers(learned, eta, part.y, _moves(layout, part, direction)[:, 0])

    return one_side


def sides_of_numbers(learned: Learned, eta: Floats, y: Floats, decided: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Both sides (n, 1) of rows with one linear predictor (n,); those that are decided have their response as mean."""
    law = learned.row_law()
    with np.errstate(all="ignore"):
        _, score, information = law(eta, y)
        slope = law.link.slope(eta)
        share = np.where(slope != 0.0, information / slope, 0.0)
    share, score = np.where(decided, 0.0, share), np.where(decided, 0.0, score)
    if (learned.family, learned.link) in CANONICAL:
        left = y - np.divide(score, share, out=np.zeros_like(score), where=share != 0.0)
        return y[:, None], left[:, None]
    seen = np.abs(share) * y
    return seen[:, None], (seen - np.sign(share) * score)[:, None]


def _moves(layout: Any, part: Block, direction: Floats | None) -> NDArray[np.bool_]:
    """Which rows (n, 1) the direction of separation settles: there the limit of the mean is the response."""
    if direction is None:
        return np.zeros((part.rows, 1), dtype=np.bool_)
    bare = Block(part.dense, part.y, sparse=part.sparse, codes=part.codes)
    along = np.abs(linear_predictor(layout, bare, direction)).max(axis=1, keepdims=True)
    return np.asarray(along > MOVES * max(float(np.abs(direction).max(initial=0.0)), 1e-300))


def _check_rows(read: Read, learned: Learned, beta: Floats) -> None:
    """The rows are those of the fit, or that is an error: arrays and files may have been written to."""
    found = totals(read.rows, learned.design.layout, learned.row_law(), beta).deviance
    if not abs(found - learned.deviance) <= CHANGED * max(abs(learned.deviance), 1e-300):
        raise EstimateError(
            "The rows have changed since the fit, so that what they hold cannot be compared with what it expects. Fit "
            "again, or read matched_statistics before the arrays are written to."
        )


def _ordinal_sides(read: Read, learned: Learned) -> tuple[Floats, Floats]:
    """What pulls up and what pulls down: slopes of a row's log probability in its two ends have opposite signs."""
    parameters, held = learned.parameters, len(learned.thresholds)
    whole = parameters.internal(learned.values[:, 0])
    problem: CumulativeProblem = problem_of(read, find_link(learned.link), Penalties())
    theta, beta = whole[:held], whole[held:]

    def task(block: Block) -> Floats:
        found = np.zeros((2, problem.width))
        for part in problem.layout.parts(block):
            ends = problem.ends(part, theta, beta)
            _, (up, low), _ = problem._cumulative(ends.upper, ends.lower)
            up, low = weighted(up, part.weights), weighted(low, part.weights)
            none = np.zeros_like(up)
            above, below = problem._pulled(part, ends, up, none), problem._pulled(part, ends, none, low)
            found[0] += np.concatenate((above[:held], below[held:]))
            found[1] -= np.concatenate((below[:held], above[held:]))
        return found

    both = np.asarray(read.rows.reduce(task))
    return parameters.public(both[0])[:, None], parameters.public(both[1])[:, None]


# -- the prior ---------------------------------------------------------------------------------------------------------


def prior_pull(model: Any, learned: Learned, slope: Floats) -> Floats | None:
    """The slope of the log prior (k, m), in units of the score equations; None without a prior."""
    if model._options["prior"] is None:
        return None
    m, held = learned.beta.shape[1], len(learned.thresholds)
    if learned.family == "multivariate_gaussian":
        return _pull_of_vectors(model, learned)
    penalties = model._penalties(learned.design, m)
    if held:
        penalties = ahead_of(penalties, held)
    phi = learned.dispersion if learned.free_dispersion else 1.0
    inner = np.asarray(learned.parameters.internal(learned.values)).T.ravel()
    left = np.asarray(learned.parameters.internal(slope)).T.ravel() / phi
    found = np.zeros_like(inner)
    if penalties.conjugate is not None:
        own = penalties.conjugate
        found -= learned.design.internal(own.strength) * (inner - learned.design.internal(own.mean)) / phi
    for penalty in (penalties.gaussian, penalties.laplace):
        if penalty is not None:
            found += pull_of(penalty, inner, left + found)
    return phi * np.asarray(learned.parameters.public(found.reshape(m, -1).T))


def _pull_of_vectors(model: Any, learned: Learned) -> Floats:
    """A Gaussian prior on coefficients acts through the covariance of the residuals, a conjugate one does not."""
    prior, inner = model._options["prior"], np.asarray(learned.design.internal(learned.beta))
    if isinstance(prior, NormalWishart):
        away = inner - np.asarray(prior.mean_, dtype=np.float64)
        if learned.design.constant and not model._options["penalize_intercept"]:
            away[0] = 0.0
        return np.asarray(learned.design.public(-float(prior.strength_) * away))
    penalty, covariance = model._penalties(learned.design, 1).gaussian, learned.residual_covariance
    slopes = np.stack([penalty.slope(column) for column in inner.T], axis=1)
    return np.asarray(learned.design.public(-slopes @ covariance))


def _without_prior(model: Any, read: Read, learned: Learned) -> Floats | None:
    """The coefficients (k, m) of maximum likelihood; None where the likelihood has no maximum."""
    from suffice.fitting.control import Control
    from suffice.models.glm.figures import Wishes
    from suffice.models.glm.fit import Fitter
    from suffice.models.glm.ordinal import OrdinalFit
    from suffice.models.glm.several import fit_labels, fit_vectors

    control, wishes = Control(max_iter=100, tolerance=1e-8), Wishes(dispersion=model._known_dispersion())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if learned.family == "ordinal":
                fit: Any = OrdinalFit(read, find_link(learned.link), Penalties(), wishes, control).learned()
                return None if fit.certificate.exists is False else np.asarray(fit.values)
            if learned.family == "multinomial":
                fit = fit_labels(read.rows, read.design, learned.beta.shape[1] + 1, Penalties(), wishes, control)
            elif learned.family == "multivariate_gaussian":
                fit = fit_vectors(read.rows, read.design, wishes, control)
            else:
                law = learned.row_law()
                fit = Fitter(read.rows, read.design, law.family, law.link, Penalties(), wishes, control).fit()
    except SufficeError:
        return None
    found = np.asarray(read.design.public(fit.beta))
    if fit.separation.exists is False or not np.isfinite(found).all() or not math.isfinite(fit.log_likelihood):
        return None
    return found[:, None] if found.ndim == 1 else found
