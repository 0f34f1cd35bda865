"""Maximum likelihood, MAP and posterior mean beside one another, with posterior intervals, for models with a prior."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import SufficeError
from suffice.views.charts import Interval

Floats = NDArray[np.float64]

#: Tables of more cells are left out where all nodes are asked for: quantiles of all of them would take long.
LARGE = 5_000


def estimates_of(model: Any, *, level: float = 0.95, node: Hashable = None) -> list[Interval]:
    """The parameters of a model that has a posterior, or a standard error; empty where it has neither.

    A network gives those of its tables, or of one `node`; a law of a column its own; a regression its coefficients.
    """
    if callable(getattr(model, "node", None)):
        if node is not None:
            return list(_of_table(model.node(node), level))
        nodes = [found for found in map(model.node, model.nodes) if np.size(getattr(found, "rows", 0)) <= LARGE]
        return [one for found in nodes for one in _of_table(found, level)]
    if hasattr(model, "credible_intervals"):
        return list(_of_law(model, level))
    if hasattr(model, "coefficients_") and hasattr(model, "summary"):
        return list(_of_regression(model, level))
    return []


def _of_table(node: Any, level: float) -> Iterator[Interval]:
    """Each cell P(state | parents) of a table with Dirichlet rows."""
    posterior = _or_none(lambda: node.posterior_) if hasattr(node, "counts") else None
    if posterior is None or not hasattr(posterior, "alpha_"):
        return
    wide = posterior.alpha_.values.size
    if node.counts.size != wide:  # A table that keeps only the rows that occur: the others have no names here.
        return
    ends = np.stack([end.values.ravel() for end in posterior.intervals(level)], axis=1).tolist()
    mode = _or_none(posterior.mode)
    total = node.counts.sum(axis=1, keepdims=True)
    points = zip(
        np.where(total > 0, node.counts / np.where(total > 0, total, 1.0), np.nan).ravel().tolist(),
        np.full(wide, np.nan).tolist() if mode is None else mode.values.ravel().tolist(),
        posterior.mean().values.ravel().tolist(),
        strict=True,
    )
    names = node.cell_names(np.arange(len(node.counts)))
    for name, (low, high), values in zip(names, ends, points, strict=True):
        yield Interval(name, low, high, *map(_number, values))


def refitted(model: Any, **options: Any) -> Any:
    """A copy of the model with other options, fitted to the same statistics; None where that has no answer."""
    return _or_none(lambda: model.clone().set_params(**options).fit(model.summary_))


def _of_law(law: Any, level: float) -> Iterator[Interval]:
    ends = _or_none(lambda: law.credible_intervals(level))
    if ends is None:
        return
    points = {
        "mle": refitted(law, prior=None, estimate=None),
        "map": refitted(law, estimate="map"),
        "mean": refitted(law, estimate="mean"),
    }
    for name, interval in ends.items():
        limits = np.asarray(interval, dtype=np.float64).reshape(-1, 2)
        found = {kind: _flat(fit, name, len(limits)) for kind, fit in points.items()}
        labels = _labels(law, name, len(limits))
        for at, (low, high) in enumerate(limits.tolist()):
            yield Interval(labels[at], low, high, **{kind: _number(values[at]) for kind, values in found.items()})


def _labels(law: Any, name: str, size: int) -> list[str]:
    if size == 1:
        return [name]
    states = getattr(law, "states_", ())
    return [f"{name}[{states[at] if len(states) == size else at}]" for at in range(size)]


def _flat(fit: Any, name: str, size: int) -> Floats:
    value = None if fit is None else fit.parameters_.get(name)
    found = np.full(size, np.nan) if value is None else np.asarray(value, dtype=np.float64).ravel()
    return found if len(found) == size else np.full(size, np.nan)


def _of_regression(model: Any, level: float) -> Iterator[Interval]:
    """Coefficients with Wald intervals; with a prior they are the MAP."""
    table = _or_none(lambda: model.summary(level))
    kind = "map" if model.get_params(deep=False).get("prior") is not None else "mle"
    for name, values in () if table is None else table.rows:
        low, high = values[-2:]
        if np.isfinite([values[0], low, high]).all():
            points: dict[str, float | None] = {"mle": None, "map": None, "mean": None, kind: float(values[0])}
            yield Interval(str(name), float(low), float(high), **points)


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _or_none(make: Callable[[], Any]) -> Any:
    """What is asked for, or None where the library says that it does not exist."""
    try:
        return make()
    except SufficeError:
        return None
