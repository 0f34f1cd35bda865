"""Series as a fitted network knows them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Variable
from suffice.errors import DataError, MissingColumnError, OptionError, listing
from suffice.fitting.summaries import Declaring
from suffice.models.dynamic_network.series import Series, SeriesForm, read_series, with_inputs
from suffice.models.evidence import known_columns

if TYPE_CHECKING:
    from suffice.models.dynamic_network.fitted import DynamicFitted


def read_known(fitted: DynamicFitted, data: Any, form: Mapping[str, Any], sample_weight: Any) -> Series:
    """Series with the states that were learned; nodes without a column are missing in every slice."""

    def required(columns: Sequence[Hashable]) -> Mapping[Hashable, Variable | None]:
        return required_to_compare(fitted, columns)

    series = read_series(data, SeriesForm(**form), sample_weight, required, Declaring(), step=fitted.step)
    return with_inputs(series, fitted.structure)


def required_to_compare(fitted: DynamicFitted, columns: Sequence[Hashable]) -> dict[Hashable, Variable | None]:
    """The nodes that have a column, and the inputs; the states that were learned are closed."""
    read = known_columns(fitted.observed, columns)
    return _declared([*read, *(fitted.domain[name] for name in fitted.structure.inputs)])


def read_later_inputs(fitted: DynamicFitted, inputs: Any, slices: int, series: Series) -> dict[Hashable, NDArray[Any]]:
    """The inputs of later slices of each series, one series after another."""
    names = fitted.structure.inputs
    if not names:
        if inputs is not None:
            raise OptionError("inputs= has no effect: the network has none. Leave it out.")
        return {}
    tables = [inputs] if not series.listed else inputs
    if inputs is None or not isinstance(tables, list | tuple) or len(tables) != series.n_series:
        raise MissingColumnError(
            f"The network has the inputs {listing(names)}: give those of {slices} later slices, inputs=a table with "
            "these columns; of several series a list of such tables, one for each."
        )
    read = [read_inputs(fitted, table, slices) for table in tables]
    return {name: np.concatenate([one[name] for one in read]) for name in names}


def read_inputs(fitted: DynamicFitted, inputs: Any, slices: int) -> dict[Hashable, NDArray[Any]]:
    """The inputs of so many slices, as codes and numbers."""
    names = fitted.structure.inputs
    series = read_series(
        inputs, SeriesForm(), None, lambda columns: _declared([fitted.domain[n] for n in names]), Declaring()
    )
    series = with_inputs(series, fitted.structure)
    if series.listed or series.n_slices != slices:
        raise DataError(f"inputs= has {series.n_slices} rows; expected one table of {slices}, a row for each slice.")
    return dict(series.columns)


def _declared(variables: Sequence[Variable]) -> dict[Hashable, Variable | None]:
    return {variable.name: replace(variable, origin="declared") for variable in variables}
