"""What rows say about the usual parameters of an exponential family.

The mean of T has the covariance ``Cov[T] / n``, which maximum likelihood carries over to the parameters by the delta
method: their slopes along the directions in which T varies are central differences of the map from mean parameters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Floats
from suffice.errors import SufficeError
from suffice.fitting.inference import Drop, Inference, binomial_drop, variance_drop
from suffice.fitting.portrait import or_none

if TYPE_CHECKING:
    from suffice.families.exponential_family import ExponentialFamily
    from suffice.families.member import FamilyMember

#: Steps of differences, in standard deviations of a statistic, and the weights that take away their error to order 4.
STEPS = ((1e-3, 4.0 / 3.0), (2e-3, -1.0 / 3.0))
#: Shares of the largest below which a direction of T does not vary.
STILL = 1e-12
#: Parameters that lie between 0 and 1; all others above 0 but for these.
_SHARES, _SIGNED = {"probability", "probabilities"}, {"mean", "location"}


class ParameterLayout:
    """How the parameters of a member lie in one vector: arrays cell by cell, symmetric matrices by their upper half."""

    def __init__(self, parameters: Mapping[str, Any], known: Mapping[str, Any], labels: Sequence[object]) -> None:
        """parameters: those of the member; known: those that were given; labels: states or columns."""
        self.names: tuple[str, ...] = ()
        self.places: dict[str, Any] = {}
        owner, signed, shares = [], [], []
        for name, value in parameters.items():
            cells, places = _cells(name, np.asarray(value, dtype=np.float64), labels)
            self.places[name], self.names = places, (*self.names, *cells)
            owner += [name] * len(cells)
            off = [one != two for one, two in zip(*places, strict=True)] if len(places) == 2 else [False] * len(cells)
            signed += [name in _SIGNED or away for away in off]
            shares += [name in _SHARES] * len(cells)
        self.owner, self.signed, self.shares = owner, np.array(signed), np.array(shares)
        self.learned = np.array([known.get(name) is None for name in owner], dtype=bool)

    def vector(self, parameters: Mapping[str, Any]) -> Floats:
        """All parameters (k,)."""
        parts = [np.asarray(parameters[name], dtype=np.float64)[cells].ravel() for name, cells in self.places.items()]
        return np.concatenate(parts)


def _cells(name: str, value: Floats, labels: Sequence[object]) -> tuple[list[str], Any]:
    if value.ndim == 0:
        return [name], ()
    size = value.shape[-1]
    axis = [str(label) for label in labels] if len(labels) == size else [str(number) for number in range(size)]
    if value.ndim == 1:
        return [f"{name}[{label}]" for label in axis], (np.arange(size),)
    rows, columns = np.triu_indices(size)
    return [f"{name}[{axis[i]}, {axis[j]}]" for i, j in zip(rows, columns, strict=True)], (rows, columns)


def inference_of(family: ExponentialFamily, member: FamilyMember) -> Inference:
    """What the rows that were learned say about the parameters."""
    layout = ParameterLayout(member.parameters_, member.known, member.labels() or member.columns())
    free = np.flatnonzero(layout.learned)
    values, weight = layout.vector(member.parameters_)[free], family.report_.weight
    posterior = or_none(lambda: family.posterior_)
    return Inference.of_covariance(
        tuple(layout.names[number] for number in free),
        values,
        lambda: covariance_of(member, layout, weight),
        lowest=np.where(layout.signed, -math.inf, 0.0)[free],
        highest=np.where(layout.shares, 1.0, math.inf)[free],
        tested=layout.signed[free],
        drop=partial(_drop, family, member, layout, free) if posterior is None else None,
        posterior=None if posterior is None else partial(_credible, family, layout, free),
        about="" if posterior is None else "Errors are from the information of the rows at the estimate.",
    )


def standard_errors_of(family: ExponentialFamily) -> dict[str, Any]:
    """Standard errors of the parameters that were learned, by name and in their shape."""
    inference = inference_of(family, family._member)
    layout = ParameterLayout(family._member.parameters_, family._member.known, ())
    free, errors = np.flatnonzero(layout.learned), {}
    for name in dict.fromkeys(layout.owner[number] for number in free):
        own = inference.errors[[row for row, number in enumerate(free) if layout.owner[number] == name]]
        whole = np.zeros(np.shape(family._member.parameters_[name]))
        whole[layout.places[name]] = own if whole.ndim else own[0]
        errors[name] = np.maximum(whole, whole.T) if whole.ndim == 2 else float(whole) if whole.ndim == 0 else whole
    return errors


def covariance_of(member: FamilyMember, layout: ParameterLayout, weight: float) -> Floats:
    """Covariance (k, k) of the parameters that are learned from so many rows, given those that are known."""
    spread, mean = member.statistics_covariance(), member.expected_statistics()
    units = np.sqrt(np.diagonal(spread))
    units = np.where(units > 0.0, units, 1.0)
    sizes, vectors = np.linalg.eigh(spread / np.outer(units, units))
    moved = sizes > STILL * max(float(sizes.max(initial=0.0)), 1e-300)
    directions = (units[:, None] * vectors[:, moved] * np.sqrt(sizes[moved])).T
    slopes = np.zeros((len(directions), len(layout.names)))
    for number, direction in enumerate(directions):
        for step, share in STEPS:
            ahead, behind = (layout.vector(member.from_mean(mean + sign * step * direction)) for sign in (1.0, -1.0))
            slopes[number] += share * (ahead - behind) / (2.0 * step)
    whole = slopes.T @ slopes / weight
    free, known = np.flatnonzero(layout.learned), np.flatnonzero(~layout.learned)
    inner = whole[np.ix_(free, free)]
    if not len(known):
        return np.asarray(inner)
    cross = whole[np.ix_(free, known)]
    return np.asarray(inner - cross @ np.linalg.pinv(whole[np.ix_(known, known)], hermitian=True) @ cross.T)


def _credible(family: ExponentialFamily, layout: ParameterLayout, free: Any, level: float) -> Floats:
    """Central posterior intervals (k, 2); NaN where the prior speaks of another form of a parameter."""
    ends = family.credible_intervals(level)
    limits = np.full((len(free), 2), np.nan)
    for name in dict.fromkeys(layout.owner[number] for number in free):
        places = [row for row, number in enumerate(free) if layout.owner[number] == name]
        given = ends.get(name)
        flat = None if given is None else np.asarray(given, dtype=np.float64)
        if flat is not None and flat.shape[-1] == 2 and flat.size == 2 * len(places):
            limits[places] = flat.reshape(-1, 2)
    return limits


# -- profiles ----------------------------------------------------------------------------------------------------------


def _drop(
    family: ExponentialFamily, member: FamilyMember, layout: ParameterLayout, free: Any, number: int
) -> Drop | None:
    """How far twice the log-likelihood falls with one parameter held; None where there is no short way to say."""
    weight, name = family.report_.weight, layout.owner[free[number]]
    value = float(layout.vector(member.parameters_)[free[number]])
    if name == "probabilities":
        return binomial_drop(weight, value)
    if name == "mean" and np.ndim(member.parameters_["mean"]) == 1:
        if "covariance" in member.known:
            return None
        axis = layout.owner[: free[number]].count("mean")
        variance = float(member.parameters_["covariance"][axis, axis])
        return lambda held: weight * math.log1p((held - value) ** 2 / variance)
    if name == "covariance" and "mean" not in member.known:
        row, column = (int(axis[layout.owner[: free[number]].count("covariance")]) for axis in layout.places[name])
        return variance_drop(weight, value) if row == column else None
    names = [layout.owner[one] for one in free]
    if len(names) > 2 or any(np.ndim(member.parameters_[one]) for one in names):
        return None
    others = [one for one in names if one != name]
    return _scalar_drop(family, member, name, others[0] if others else None)


def _scalar_drop(family: ExponentialFamily, member: FamilyMember, name: str, other: str | None) -> Drop:
    """Of a family of one or two numbers: the other one is found by a search along a line."""
    summary, best = family.statistics_, dict(member.parameters_)
    top = member.log_likelihood(summary)

    def at(changes: Mapping[str, float]) -> float:
        try:
            return member.at({**best, **changes}).log_likelihood(summary)
        except SufficeError:
            return -math.inf

    def drop(held: float) -> float:
        if other is None:
            return 2.0 * (top - at({name: held}))
        from scipy.optimize import minimize_scalar

        start = float(best[other])
        unit = max(abs(start), 1e-8)
        free = (lambda t: start + t * unit) if other in _SIGNED else (lambda t: start * math.exp(t))
        best_other = minimize_scalar(lambda t: -at({name: held, other: free(t)}) / abs(top or 1.0), bracket=(-0.1, 0.1))
        return 2.0 * (top + float(best_other.fun) * abs(top or 1.0))

    return drop
