"""Does a fit with a prior hold? Measured from densities alone, without the formulas that made the fit.

By Bayes' theorem ``log posterior = log-likelihood + log prior + constant`` at every point. So along any path through
the parameters the two sides rise and fall alike, and at a mode their slope is zero. Paths are taken in units in which
the scale of the data drops out (log of a rate, log odds, means in standard deviations of a row), slopes by central
differences, and each is expressed in posterior standard deviations: slope over the root of the curvature.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.families.fitted import FamilyFitted
from suffice.families.matrices import root, whiten
from suffice.families.member import FamilyMember
from suffice.statistics import Summary

Parameters = Mapping[str, Any]

#: First step, for the curvature, and largest step, for the slope, in the units of a path.
PROBE, LARGEST = 0.01, 0.02
#: Weights of f(h), f(2 h), f(3 h) in the central difference of order six.
STENCIL = np.array([45.0, -9.0, 1.0]) / 60
#: Where a path is looked at, in steps: first for the curvature, then for the slope.
FIRST, SLOPE = (-1, 0, 1), (1, 2, 3, -1, -2, -3)
#: A gap above this is compared with rounding: what the difference of the densities does in so small a share of a step,
#: in which a gap that is one hardly shows. The terms of log densities may be far larger than their sum.
DOUBTFUL, NEAR = 1e-6, 1e-3
#: Up to so many states, or columns, every coordinate is checked by itself; above, as many fixed mixed directions.
MOST_STATES, MOST_COLUMNS, MIXED = 9, 5, 8


@dataclass(frozen=True)
class Path:
    """A line through the parameters: those at time t, and `towards`, the time at which others lie (first order).

    At time 0 it passes through the parameters it was made for.
    """

    position: Callable[[float], dict[str, Any]]
    towards: Callable[[Parameters], float]


@dataclass(frozen=True)
class PosteriorCheck:
    """Gaps in posterior standard deviations, and how much the log posterior could rise by the quadratic estimate.

    `bayes` is the part of the gap by which Bayes' theorem fails, wherever the parameters may be; rounding of the
    densities is in it, and is not in `gap`.
    """

    gap: float
    rise: float | None
    bayes: float = math.inf


def on_edge(parameters: Parameters) -> bool:
    """Whether a probability is 0 or 1, or a rate 0: a limit of the family, and no member."""
    shares = np.asarray(parameters.get("probabilities", 1.0))
    return bool((shares == 0).any()) or parameters.get("probability") in (0, 1) or parameters.get("rate") == 0


def check_posterior(fitted: FamilyFitted, prior: Any, summary: Summary, *, mode: bool) -> PosteriorCheck:
    """Measure a distribution fitted with a prior: its posterior, and its parameters as the mode or the mean of that.

    A path whose curvature is below one has no finite spread worth the name (a flat posterior); there the unit is that
    of the path itself, 100 % of a rate or one standard deviation of a row.
    """
    member = fitted.member
    posterior, parameters = fitted.posterior, fitted.parameters
    density = _Densities(fitted, prior, summary)
    centre = member.from_point(posterior.mean()) if on_edge(parameters) or not mode else None
    gaps, seen, steepness = list[float](), list[float](), list[float]()
    paths = list(_paths(member, parameters))
    for path, along in _slopes(density, paths):
        gaps.append(along.apart * along.spread)
        seen.append(along.beyond_rounding * along.spread)
        if mode:
            steepness.append(along.slope * along.spread)
        elif centre is not None:
            away = abs(path.towards(centre)) / along.spread
            gaps.append(away)
            seen.append(away)
    if mode and centre is not None:
        middle = [along for _, along in _slopes(density, list(_paths(member, centre)))]
        gaps += [along.apart * along.spread for along in middle]
        seen += [along.beyond_rounding * along.spread for along in middle]
        # No slope leads out of the edge along a path inside it, so the edge is compared with the middle by value.
        ends = density([centre, parameters])[:, 1]
        short = np.nan_to_num(ends[0] - ends[1])
        steepness.append(math.sqrt(2 * max(float(short), 0.0)))
    if not gaps:
        # Without a path nothing was free to learn (one state); with paths off the support nothing is proved.
        return PosteriorCheck(math.inf if paths else 0.0, None)
    rise = 0.5 * math.fsum(slope**2 for slope in steepness) if mode else None
    return PosteriorCheck(float(np.max(np.abs(seen + steepness))), rise, float(np.max(np.abs(gaps))))


class _Densities:
    """Log-likelihood plus log prior, and log posterior, at given parameters of the distribution."""

    def __init__(self, fitted: FamilyFitted, prior: Any, summary: Summary) -> None:
        self._fitted, self._prior, self._summary = fitted, prior, summary

    def __call__(self, points: Sequence[Parameters]) -> Floats:
        """(n, 2): the joint density of rows and parameters, and the posterior; -inf or nan on an edge."""
        with np.errstate(all="ignore"):
            given, prior_points = self._fitted.member.log_likelihoods(self._summary, points)
            return np.stack(
                [given + self._prior.log_prob(prior_points), self._fitted.posterior.log_prob(prior_points)], axis=-1
            )

    def along(self, paths: Sequence[Path], steps: Sequence[float], counts: Sequence[int]) -> Floats:
        """(paths, counts, 2): the densities on each path, so many of its steps away."""
        points = [path.position(count * step) for path, step in zip(paths, steps, strict=True) for count in counts]
        return self(points).reshape(len(paths), len(counts), 2) if points else np.zeros((0, len(counts), 2))


@dataclass(frozen=True)
class _Along:
    """The steepest chord of joint minus posterior, and what rounding does not explain of it; slope and spread.

    The slope is that of the joint, the spread the posterior standard deviation.
    """

    apart: float
    beyond_rounding: float
    slope: float
    spread: float


def _slopes(density: _Densities, paths: Sequence[Path]) -> Iterator[tuple[Path, _Along]]:
    """What each path shows, all of them asked at once.

    A chord rather than a slope, so that a posterior with the right centre and the wrong width is seen too. Paths are
    left out where the posterior is not finite; where only the posterior is (an unbounded prior on the edge), it stands
    for both.
    """
    firsts = density.along(paths, [PROBE] * len(paths), FIRST)
    kept = np.flatnonzero(np.isfinite(firsts[..., 1]).all(axis=1))
    paths, firsts = [paths[number] for number in kept.tolist()], firsts[kept]
    used = [0 if np.isfinite(ends[:, 0]).all() else 1 for ends in firsts]
    curvatures = [
        -float(ends[0, column] - 2 * ends[1, column] + ends[2, column]) / PROBE**2
        for ends, column in zip(firsts, used, strict=True)
    ]
    spreads = [1 / math.sqrt(max(curvature, 1.0)) for curvature in curvatures]
    steps = [min(spread, LARGEST) for spread in spreads]
    densities = density.along(paths, steps, SLOPE)
    for path, ends, column, spread, step, away in zip(paths, firsts, used, spreads, steps, densities, strict=True):
        slope = float(STENCIL @ (away[:3] - away[3:])[:, column]) / step
        if column == 1:
            yield path, _Along(0.0, 0.0, slope, spread)
            continue
        centre = float(ends[1, 0] - ends[1, 1])
        apart = float(np.abs(away @ [1, -1] - centre).max())
        beyond_rounding = apart
        if apart * spread > DOUBTFUL * 3 * step:
            near = density.along([path], [NEAR * step], SLOPE)[0]
            beyond_rounding = max(apart - 3 * float(np.abs(near @ [1, -1] - centre).max()), 0.0)
        yield path, _Along(apart / (3 * step), beyond_rounding / (3 * step), slope, spread)


# --------------------------------------------------------------------------------------------------------------------
# Paths through the free parameters
# --------------------------------------------------------------------------------------------------------------------


def _paths(member: FamilyMember, parameters: Parameters) -> Iterator[Path]:
    """Paths through the parameters that are learned, inside the family."""
    for name in member.parameter_names:
        if name in member.known:
            continue
        value = np.asarray(parameters[name], dtype=np.float64)
        if name == "probabilities":
            yield from _simplex(name, parameters)
        elif name == "probability":
            if 0 < value < 1:
                yield _odds(name, parameters)
        elif name == "covariance":
            yield from _matrix(name, parameters)
        elif name == "mean":
            spread = parameters["variance"] if value.ndim == 0 else parameters["covariance"]
            yield from _location(name, parameters, root(np.atleast_2d(np.asarray(spread, dtype=np.float64))))
        elif value > 0:
            yield _positive(name, parameters)


def _positive(name: str, parameters: Parameters) -> Path:
    """A positive number times exp(t)."""
    value = float(parameters[name])
    return Path(lambda t: {**parameters, name: value * math.exp(t)}, lambda other: (other[name] - value) / value)


def _odds(name: str, parameters: Parameters) -> Path:
    """A probability whose odds grow by exp(t)."""
    p = float(parameters[name])
    return Path(
        lambda t: {**parameters, name: p / (p + (1 - p) * math.exp(-t))},
        lambda other: (other[name] - p) / (p * (1 - p)),
    )


def _simplex(name: str, parameters: Parameters) -> Iterator[Path]:
    """``p_k exp(t s_k)``, normalised: between the most probable state and another, or of mixed signs s."""
    p = np.asarray(parameters[name], dtype=np.float64)
    inside, top = np.flatnonzero(p > 0), int(np.argmax(p))
    if len(inside) <= MOST_STATES:
        others = inside[inside != top]
        ways = np.eye(len(p))[others] - np.eye(len(p))[top]
    else:
        ways = _signs((MIXED, len(p)))

    def along(way: Floats) -> Path:
        def at(t: float) -> dict[str, Any]:
            moved = p * np.exp(t * way)
            return {**parameters, name: moved / moved.sum()}

        def towards(other: Parameters) -> float:
            away = (np.asarray(other[name])[inside] - p[inside]) / p[inside]
            return float(way[inside] @ away / (way @ way))

        return Path(at, towards)

    yield from map(along, ways)


def _location(name: str, parameters: Parameters, factor: Floats) -> Iterator[Path]:
    """A mean moved by t standard deviations of a row, along the columns of the factor L of the covariance L L'."""
    start = np.asarray(parameters[name], dtype=np.float64)
    d = len(factor)

    def along(way: Floats) -> Path:
        def towards(other: Parameters) -> float:
            return float(way @ whiten(factor, np.atleast_1d(other[name] - start)))

        return Path(lambda t: {**parameters, name: start + t * (factor @ way).reshape(start.shape)}, towards)

    yield from map(along, np.eye(d) if d <= MOST_COLUMNS else _signs((MIXED, d)) / math.sqrt(d))


def _matrix(name: str, parameters: Parameters) -> Iterator[Path]:
    """A covariance ``L L'`` moved to ``L exp(t E) L'`` for symmetric E."""
    start = np.asarray(parameters[name], dtype=np.float64)
    factor, d = root(start), len(start)
    if d <= MOST_COLUMNS:
        units = np.eye(d)
        ways = [np.outer(units[i], units[j]) for i in range(d) for j in range(i + 1)]
    else:
        ways = list(_signs((MIXED, d, d)) / d)

    def along(way: Floats, rates: Floats, axes: Floats) -> Path:
        turned = factor @ axes

        def at(t: float) -> dict[str, Any]:
            moved = (turned * np.exp(t * rates)) @ turned.T
            return {**parameters, name: (moved + moved.T) / 2}

        def towards(other: Parameters) -> float:
            away = whiten(factor, whiten(factor, np.asarray(other[name]) - start).T)
            return float((way * away).sum() / (way * way).sum())

        return Path(at, towards)

    turns = np.array(ways)
    turns = (turns + turns.swapaxes(-1, -2)) / 2
    yield from map(along, turns, *np.linalg.eigh(turns))


def _signs(shape: tuple[int, ...]) -> Floats:
    """Signs that look random and are always the same."""
    return np.random.default_rng(0).choice([-1.0, 1.0], size=shape)
