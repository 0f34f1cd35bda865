"""What there is to see of a distribution of one column or of several."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Floats
from suffice.errors import SufficeError
from suffice.fitting.portrait import (
    Estimates,
    Grid,
    Interval,
    Likelihood,
    Portrait,
    VariableDistribution,
    finite,
    matrix_grid,
    or_none,
    redrawn_rows,
    refitted,
    rescaled_by,
)

if TYPE_CHECKING:
    from suffice.families.base import Distribution
    from suffice.families.exponential_family import ExponentialFamily
    from suffice.families.member import FamilyMember
    from suffice.fitting.inference import Inference


def portrait_of(family: Distribution, columns: Sequence[Hashable] = ()) -> Portrait:
    """Parameters of a distribution that was given; columns: those that it describes."""
    parameters = or_none(lambda: family.parameters_) or {}
    return replace(
        _portrait(type(family).__name__, parameters, (), columns),
        n_params=lambda: family.n_params_,
        matched=family.matched_statistics,
        rescaled=rescaled_by(family),
    )


def member_portrait(member: FamilyMember) -> Portrait:
    """The parameters of a member, and the distribution itself where it is one of states or normal."""
    drawn = _portrait(member.title, member.parameters or {}, member.labels(), member.columns())
    return replace(drawn, n_params=lambda: member.n_params)


def exponential_portrait(family: ExponentialFamily, member: FamilyMember) -> Portrait:
    """The same with the posterior of the parameters, and the likelihood as a function of them."""
    return replace(
        member_portrait(member),
        n_params=lambda: family.n_params_,
        matched=family.matched_statistics,
        rescaled=rescaled_by(family),
        estimates=partial(_estimates, family, member.labels()),
        inference=partial(_inference, family, member),
        redraw=partial(redrawn_rows, family),
        likelihood=partial(_likelihood, family),
    )


def _portrait(
    title: str, parameters: Mapping[str, Any], states: Sequence[Hashable], columns: Sequence[Hashable]
) -> Portrait:
    """states: those that the parameters speak of, where there are some; columns: those that are described."""
    return Portrait(
        title=title,
        kind="distribution",
        columns=tuple(columns),
        parameters=lambda: dict(parameters),
        text=lambda: "\n".join(f"{name} = {value}" for name, value in parameters.items()),
        variables=lambda: _variables(parameters, states),
        tables=_tables(parameters, states),
    )


def _variables(parameters: Mapping[str, Any], states: Sequence[Hashable]) -> list[VariableDistribution]:
    if set(parameters) == {"mean", "variance"} and np.ndim(parameters["mean"]) == 0:
        return [VariableDistribution.normal("value", parameters["mean"], math.sqrt(float(parameters["variance"])))]
    shares = parameters.get("probabilities")
    if shares is None and "probability" in parameters and len(states) == 2:
        shares = [1.0 - parameters["probability"], parameters["probability"]]
    if shares is None or len(states) != np.size(shares) or np.ndim(shares) != 1:
        return []
    return [VariableDistribution("value", tuple(states), tuple(np.asarray(shares, dtype=np.float64).tolist()))]


def _tables(parameters: Mapping[str, Any], states: Sequence[Hashable]) -> list[Callable[[], Grid | None]]:
    """Numbers in one table, arrays in one each."""
    single = {name: value for name, value in parameters.items() if np.ndim(value) == 0}
    tables: list[Callable[[], Grid | None]] = []
    if single:
        tables.append(partial(matrix_grid, "Parameters", list(single), ["value"], list(single.values()), "signed"))
    rest = {name: value for name, value in parameters.items() if name not in single}
    return tables + [partial(_array, name, value, states) for name, value in rest.items()]


def _array(name: str, value: Any, states: Sequence[Hashable]) -> Grid:
    array = np.asarray(value, dtype=np.float64)
    size = array.shape[-1]
    columns = list(states) if len(states) == size else [str(k) for k in range(size)]
    rows = [name] if array.ndim == 1 else columns
    shares = bool(array.ndim == 1 and abs(array.sum() - 1) < 1e-9 and (array >= 0).all())
    return matrix_grid(name, rows, columns, array, "share" if shares else "signed")


# -- estimates and likelihood ----------------------------------------------------------------------------------------


def _estimates(
    family: ExponentialFamily, states: Sequence[Hashable], level: float = 0.95, node: Hashable = None
) -> Estimates:
    return Estimates(tuple(_intervals(family, states, level)))


def _inference(family: ExponentialFamily, member: FamilyMember) -> Inference:
    from suffice.families.estimates import inference_of

    return inference_of(family, member)


def _intervals(family: ExponentialFamily, states: Sequence[Hashable], level: float) -> Iterator[Interval]:
    ends = or_none(lambda: family.credible_intervals(level))
    if ends is None:
        return
    points = {
        "mle": refitted(family, prior=None, estimate=None),
        "map": refitted(family, estimate="map"),
        "mean": refitted(family, estimate="mean"),
    }
    for name, interval in ends.items():
        limits = np.asarray(interval, dtype=np.float64).reshape(-1, 2)
        estimates = {kind: _flat(fit, name, len(limits)) for kind, fit in points.items()}
        labels = _labels(states, name, len(limits))
        for row, (low, high) in enumerate(limits.tolist()):
            yield Interval(labels[row], low, high, **{kind: finite(values[row]) for kind, values in estimates.items()})


def _labels(states: Sequence[Hashable], name: str, size: int) -> list[str]:
    if size == 1:
        return [name]
    return [f"{name}[{states[number] if len(states) == size else number}]" for number in range(size)]


def _flat(fit: Any, name: str, size: int) -> Floats:
    value = None if fit is None else fit.parameters_.get(name)
    numbers = np.full(size, np.nan) if value is None else np.asarray(value, dtype=np.float64).ravel()
    return numbers if len(numbers) == size else np.full(size, np.nan)


def _likelihood(family: ExponentialFamily) -> Likelihood | None:
    """``eta(parameters) @ mean of T - A(eta)``."""
    matched = family.matched_statistics()
    parameters = family.parameters_
    if matched is None:
        return None
    names = tuple(name for name, value in parameters.items() if np.ndim(value) == 0)

    def value(point: Floats) -> float:
        try:
            distribution = type(family)(**dict(zip(names, point.tolist(), strict=True)))
            return float(distribution.natural_parameters_ @ matched.observed - distribution.log_normalizer())
        except SufficeError:
            return -np.inf

    return Likelihood(names, np.array([float(parameters[name]) for name in names]), value, len(matched.observed))
