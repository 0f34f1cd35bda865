"""How near a GLM node is to its maximum: slopes of its objective, and a bound of what is left, from the rows alone.

Nothing here is used by the fit, so that a fault of its solvers shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Floats
from suffice.fitting.report import in_standard_errors
from suffice.models.bayesian.nodes.contract import Columns
from suffice.models.bayesian.nodes.glm_rows import ask_rows, table_of
from suffice.sources.reduction import Answers
from suffice.statistics import Summary

if TYPE_CHECKING:
    from suffice.models.bayesian.nodes.glm import GLMNode


#: Rows whose design is made at a time.
ROWS = 4_096
#: Distributions whose log-likelihood l along any line has |l'''| <= c |l''|, c the largest change of a linear
#: predictor.
SELF_CONCORDANT = {("binomial", "logit"), ("poisson", "log"), ("multinomial", "logit"), ("gaussian", "identity")}


@dataclass(frozen=True)
class ScoredRows:
    """Some rows: their design (n, k), weights (n,), scores (n, m) and information (n, m, m) at phi = 1."""

    design: Floats
    weights: Floats
    score: Floats
    information: Floats


@dataclass(frozen=True)
class Slopes:
    """Slope of the objective and diagonal of its information (k, m), in the order of the names; weight of the rows."""

    slope: Floats
    diagonal: Floats
    weight: float


def _parts(node: GLMNode, columns: Columns, weights: Floats) -> Iterator[ScoredRows]:
    table, _ = table_of(node.parents, node._places, columns, len(weights))
    eta = node._eta(columns, len(weights))
    y = np.asarray(columns[node.name], dtype=np.float64)
    score, information = _labels(node, eta, y) if node.learned.family == "multinomial" else _numbers(node, eta, y)
    for start in range(0, len(weights), ROWS):
        some = slice(start, start + ROWS)
        design = node.learned.design.matrix(table.part(some))
        yield ScoredRows(design, weights[some], score[some], information[some])


def _numbers(node: GLMNode, eta: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Of one linear predictor; rows that a separating direction decides say nothing any more."""
    finite = np.isfinite(eta[:, 0])
    score, information = np.zeros(len(y)), np.zeros(len(y))
    _, score[finite], information[finite] = node.learned.row_distribution()(eta[finite, 0], y[finite])
    return score[:, None], information[:, None, None]


def _labels(node: GLMNode, eta: Floats, y: Floats) -> tuple[Floats, Floats]:
    from suffice.models.glm.softmax import softmax

    states = range(node.variable.card)
    order = [states_but_last for states_but_last in states if states_but_last != node.learned.reference] + [
        node.learned.reference
    ]
    shares = softmax(eta)[:, :-1]
    seen = y[:, None] == np.array(order[:-1], dtype=np.float64)
    information = -shares[:, :, None] * shares[:, None, :]
    states_but_last = np.arange(shares.shape[1])
    information[:, states_but_last, states_but_last] += shares
    return seen - shares, information


def slopes_of(node: GLMNode, summary: Summary) -> Slopes:
    """The slope of log-likelihood and prior in every coefficient."""
    slope, diagonal, weight = ask_rows(node.domain, summary, _slope_sums, node.bare()).parts
    slope, diagonal = slope / node.dispersion, diagonal / node.dispersion
    if node.model._options["prior"] is not None:
        slope, diagonal = _with_prior(node, slope, diagonal)
    return Slopes(slope, diagonal, weight)


def _slope_sums(columns: Columns, weights: Floats, node: GLMNode) -> Answers:
    """Slope and diagonal of the information (k, m) at a dispersion of 1, and the weight of the rows."""
    slope, diagonal = np.zeros_like(node.learned.beta), np.zeros_like(node.learned.beta)
    for part in _parts(node, columns, weights):
        slope += part.design.T @ (part.weights[:, None] * part.score)
        own = np.diagonal(part.information, axis1=1, axis2=2)
        diagonal += (part.design**2).T @ (part.weights[:, None] * own)
    return Answers((slope, diagonal, float(weights.sum())))


def sides_of(node: GLMNode, summary: Summary) -> tuple[Floats, Floats, Floats | None]:
    """Both sides (k, m) of the score equations, a row, and what a prior adds; see `suffice.models.glm.matched`."""
    from suffice.models.glm.matched import prior_pull

    sides, total = ask_rows(node.domain, summary, _side_sums, node.bare()).parts
    pull = prior_pull(node.model._task().options, node.learned, sides[0] - sides[1])
    return sides[0] / total, sides[1] / total, None if pull is None else pull / total


def _side_sums(columns: Columns, weights: Floats, node: GLMNode) -> Answers:
    """Both sides (2, k, m) of the score equations, and the weight of the rows."""
    from suffice.models.glm.matched import sides_of_numbers

    eta, y = node._eta(columns, len(weights)), np.asarray(columns[node.name], dtype=np.float64)
    if node.learned.family == "multinomial":
        classes = [code for code in range(node.variable.card) if code != node.learned.reference]
        seen = (y[:, None] == np.array(classes)).astype(np.float64)
        expected = seen - _labels(node, eta, y)[0]
    else:
        finite = np.isfinite(eta[:, 0])
        seen, expected = sides_of_numbers(node.learned.row_distribution(), np.where(finite, eta[:, 0], 1.0), y, ~finite)
    table, _ = table_of(node.parents, node._places, columns, len(weights))
    sides = np.zeros((2, *node.learned.beta.shape))
    for start in range(0, len(weights), ROWS):
        some = slice(start, start + ROWS)
        design = (node.learned.design.matrix(table.part(some)) * weights[some, None]).T
        sides += design @ seen[some], design @ expected[some]
    return Answers((sides, float(weights.sum())))


def _with_prior(node: GLMNode, slope: Floats, diagonal: Floats) -> tuple[Floats, Floats]:
    from suffice.solvers.gradient import pseudo_gradient

    penalties, design, beta = node.penalties(), node.learned.design, node.inner()
    k, m = slope.shape

    def public(inner: Floats) -> Floats:
        return design.public(inner.reshape(m, k).T)

    if penalties.conjugate is not None:
        prior = penalties.conjugate
        pull = prior.strength * (node.learned.beta[:, 0] - prior.mean) / node.dispersion
        return slope - pull[:, None], diagonal + prior.strength[:, None] / node.dispersion
    if penalties.gaussian is not None:
        slope = slope - public(penalties.gaussian.slope(beta))
        diagonal = diagonal + public(penalties.gaussian.diagonal())
    if penalties.laplace is not None:
        inner = np.ascontiguousarray(design.internal(slope).T).ravel()
        slope = public(pseudo_gradient(beta - penalties.laplace.mean, inner, penalties.laplace.rate))
    return slope, diagonal


def slope_gap(node: GLMNode, summary: Summary) -> float:
    """|slope| / sqrt(weight * information) of the worst coefficient: its distance in standard errors of one row.

    Also how far the dispersion is from that of the largest likelihood, relatively, and the slope in the log of the size
    of a negative binomial distribution, a row.
    """
    scores = slopes_of(node, summary)
    scale = np.sqrt(scores.weight * np.where(scores.diagonal > 0, scores.diagonal, scores.weight))
    gap = float(np.max(np.abs(scores.slope) / np.where(scale > 0, scale, 1.0), initial=0.0))
    slope, information = _slope_of_shape(node, summary)
    # Half the weight is the information of a log dispersion: what is left is its relative distance.
    return max(gap, abs(slope) / (scores.weight if node.model._task().options.free_size else information))


def steepest(node: GLMNode, summary: Summary) -> tuple[float, float]:
    """The largest slope of log-likelihood and prior, in standard errors and as it is.

    Of the logarithm of a dispersion the information is n / 2, as that of a variance; of the logarithm of a size minus
    the second derivative, which near the maximum is positive.
    """
    scores = slopes_of(node, summary)
    variance = np.where(scores.diagonal > 0, scores.diagonal, scores.weight)
    shape = _slope_of_shape(node, summary)
    slope, variance = np.append(scores.slope, shape[0]), np.append(variance, shape[1])
    return in_standard_errors(slope, variance), float(np.abs(slope).max(initial=0.0))


def _slope_of_shape(node: GLMNode, summary: Summary) -> tuple[float, float]:
    """Slope and information in the logarithm of the dispersion, or of the size of a negative binomial distribution.

    0 and 1 where neither is estimated.
    """
    from suffice.models.glm.families import NegativeBinomialFamily
    from suffice.models.glm.family import Totals

    options = node.model._task().options
    free = node.learned.free_dispersion and options.known_dispersion is None
    if not (free and node.learned.posterior is None) and not options.free_size:
        return 0.0, 1.0
    family = node.learned.row_distribution().family
    total, first, second = ask_rows(node.domain, summary, _shape_sums, node.bare()).parts
    if isinstance(family, NegativeBinomialFamily):
        slope, information = family.size * first, -(family.size**2 * second + family.size * first)
        return slope, information if information > 0 else total
    return 0.5 * total * (family.ml_dispersion(Totals(total, first, 0.0, 0.0)) / node.dispersion - 1.0), 0.5 * total


def _shape_sums(columns: Columns, weights: Floats, node: GLMNode) -> Answers:
    """The weight of the rows, and first and second derivative in the size; of other families the deviance, and 0."""
    from suffice.models.glm.families import NegativeBinomialFamily

    mean, y = node.mean(columns, len(weights)), np.asarray(columns[node.name])
    family, total = node.learned.row_distribution().family, float(weights.sum())
    if isinstance(family, NegativeBinomialFamily):
        return Answers((total, *(float(weights @ part) for part in family.size_slopes(y, mean))))
    return Answers((total, float(weights @ family.deviance(y, mean)), 0.0))


def loss_bound(node: GLMNode, summary: Summary) -> float | None:
    """What the log-likelihood can still rise by, at most; None where no bound is known.

    With the slope g, the information H, the Newton decrement nu = sqrt(g' H^-1 g) and R, the largest sqrt(x' H^-1 x) of
    a row: along a line of unit length in H the objective falls at least as (e^-Rt + R t - 1) / R^2 bends it, so that no
    more than ``(R nu + (1 - R nu) log(1 - R nu)) / R^2`` is left, about nu^2 / 2, once R nu < 1.
    """
    learned = node.learned
    if (learned.family, learned.link) not in SELF_CONCORDANT or learned.direction is not None or learned.dropped:
        return None
    if node.model._options["prior"] is not None:
        return None
    bare = node.bare()
    slope, information = ask_rows(node.domain, summary, _curvature_sums, bare).parts
    k, m = learned.beta.shape
    try:
        inverse = np.linalg.inv(np.linalg.cholesky(information.reshape(m * k, m * k)))
    except np.linalg.LinAlgError:
        return None
    inverse = inverse.T @ inverse
    square = float(slope.ravel() @ inverse @ slope.ravel())
    if learned.family == "gaussian":
        return _left_of_squares(node, summary, square)
    largest = ask_rows(node.domain, summary, _largest_reach, (bare, inverse.reshape(m, k, m, k))).value
    reach = float(np.sqrt(largest)) * np.sqrt(square)
    if not reach < 1.0:
        return None
    # (r + (1 - r) log(1 - r)) / r^2 = 1/2 + r/6 + r^2/12 + ..., at most 1/2 + r/2.
    share = (reach + (1.0 - reach) * np.log1p(-reach)) / reach**2 if reach > 1e-4 else 0.5 + 0.5 * reach
    return float(share * square)


def _curvature_sums(columns: Columns, weights: Floats, node: GLMNode) -> Answers:
    """The slope (m, k) and the information (m, k, m, k) at a dispersion of 1."""
    k, m = node.learned.beta.shape
    slope, information = np.zeros((m, k)), np.zeros((m, k, m, k))
    for part in _parts(node, columns, weights):
        slope += (part.weights[:, None] * part.score).T @ part.design
        for a, b in np.ndindex(m, m):
            share = part.weights * part.information[:, a, b]
            information[a, :, b, :] += (part.design * share[:, None]).T @ part.design
    return Answers((slope, information))


def _left_of_squares(node: GLMNode, summary: Summary, square: float) -> float | None:
    """Least squares, with the variance at its best on both sides: n/2 log(S / (S - g' (X'X)^-1 g))."""
    if node.model._task().options.known_dispersion is not None:
        return 0.5 * square / node.dispersion
    left, weight = ask_rows(node.domain, summary, _square_sums, node.bare()).parts
    return float(-0.5 * weight * np.log1p(-square / left)) if 0 <= square < left else None


def _square_sums(columns: Columns, weights: Floats, node: GLMNode) -> Answers:
    """The sum of the squares of the residuals, and the weight of the rows."""
    left = float(weights @ (columns[node.name] - node.mean(columns, len(weights))) ** 2)
    return Answers((left, float(weights.sum())))


def _largest_reach(columns: Columns, weights: Floats, asked: tuple[GLMNode, Floats]) -> Any:
    """The largest v' H^-1 v of a row, v the change of a linear predictor, or of the difference of two."""
    from suffice.models.glm.problem import Largest

    node, inverse = asked
    m = len(inverse)
    pairs = [inverse[a, :, a, :] for a in range(m)]
    pairs += [
        inverse[a, :, a, :] + inverse[b, :, b, :] - inverse[a, :, b, :] - inverse[b, :, a, :]
        for a in range(m)
        for b in range(a)
    ]
    designs = (part.design for part in _parts(node, columns, weights))
    squares = [float(np.einsum("ni,ij,nj->n", x, one, x).max(initial=0.0)) for x in designs for one in pairs]
    return Largest(max(squares, default=0.0))
