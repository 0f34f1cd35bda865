"""New series for refits of a network through time: those of the fit as a list, and draws from the fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import OptionError
from suffice.fitting.matrices import matrix_of
from suffice.models.dynamic_network.series import list_of_tables

if TYPE_CHECKING:
    from suffice.models.dynamic_network.declaration import DynamicBayesianNetwork


def parted(rows: Mapping[str, Any]) -> Mapping[str, Any]:
    """Series of one table, told apart by a column, as a list of tables; others as they are."""
    data: Any = rows.get("data")
    group = rows.get("group")
    if group is None or list_of_tables(data) is not None:
        return rows
    rest = {name: value for name, value in rows.items() if name != "group"}
    if isinstance(data, Mapping):
        column = np.asarray(data[group])
        columns = {name: np.asarray(values) for name, values in data.items()}
        masks = [column == label for label in dict.fromkeys(column.tolist())]
        return {**rest, "data": [{name: values[mask] for name, values in columns.items()} for mask in masks]}
    if matrix_of(data) is None or type(data).__module__.partition(".")[0] not in ("pandas", "polars"):
        raise OptionError("Series are drawn as a whole from frames in memory. Give a frame with group=, or a list.")
    if hasattr(type(data), "partition_by"):
        return {**rest, "data": data.partition_by(group, maintain_order=True)}
    return {**rest, "data": [part for _, part in data.groupby(group, sort=False)]}


def redrawn(model: DynamicBayesianNetwork, given: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """As many series as the fit had, of the same lengths."""
    if given.get("data") is None or "sample_weight" in given:
        raise OptionError(
            "Series are drawn in the number and lengths of those of the fit, without weights: bootstrap(series, "
            "group=..., kind='parametric')."
        )
    form = {name: given[name] for name in ("group", "order", "time", "step") if name in given}
    series = model.fitted_.open(given["data"], form)
    if not series.is_complete and not model.fitted_.hidden:
        raise OptionError("Series with missing values cannot be drawn from the fit, which says not which are missing.")
    if model.fitted_.structure.inputs:
        raise OptionError("Series with inputs= are not drawn anew: bootstrap(series) draws those of the fit.")
    return {"data": [model.sample(int(length), random_state=rng) for length in series.lengths]}
