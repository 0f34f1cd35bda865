"""Columns of pandas and polars, by their own codes where they have them."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import Variable
from suffice.errors import DataError, require
from suffice.sources.arrays import NumberColumn, array_column
from suffice.sources.arrow import ArrowColumn, category
from suffice.sources.columns import Coded, Column, code_dtype
from suffice.sources.objects import ObjectColumn

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


# --------------------------------------------------------------------------------------------------------------------
# pandas
# --------------------------------------------------------------------------------------------------------------------


def pandas_column(name: Hashable, series: pd.Series, start: int = 0) -> Column:
    """The column of a pandas Series, by its type."""
    import pandas as pd

    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return PandasCategory(name, series, start)
    if isinstance(dtype, np.dtype) and dtype.kind in "biufOc":
        return array_column(name, series.to_numpy(), start)
    if isinstance(dtype, pd.ArrowDtype) or getattr(dtype, "storage", "") == "pyarrow":
        import pyarrow as pa

        return ArrowColumn(name, pa.array(series), start)
    if isinstance(dtype, pd.api.extensions.ExtensionDtype) and dtype.kind in "biuf":
        return _masked_column(name, series, start)
    if isinstance(dtype, pd.StringDtype):
        return ObjectColumn(name, series.to_numpy(dtype=object), start)
    return PandasValues(name, series, start)


def _masked_column(name: Hashable, series: pd.Series, start: int) -> Column:
    """Nullable and sparse numbers."""
    kind = {"b": "bool", "f": "float64"}.get(series.dtype.kind, series.dtype.name.lower())
    if hasattr(series, "sparse") and series.dtype.name.startswith("Sparse"):
        return array_column(name, np.asarray(series), start)
    missing = series.isna().to_numpy()
    return NumberColumn(name, series.to_numpy(dtype=kind, na_value=False if kind == "bool" else 0), missing, start)


class PandasValues(Column):
    """Dates, periods, intervals and other types that pandas can factorise; labels are pandas' own values."""

    def __init__(self, name: Hashable, series: Any, start: int = 0) -> None:
        """Keep the series."""
        super().__init__(name, start)
        self.series = series

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.series)

    def infer(self) -> Variable:
        """Discrete."""
        return self.discrete()

    def code(self) -> Coded:
        """By pandas' hash table."""
        import pandas as pd

        codes, distinct = pd.factorize(self.series)
        return _from_signed(codes, list(distinct))

    def floats(self, rows: slice) -> Floats:
        """None of these types are numbers."""
        return ObjectColumn(self.name, list(self.series.iloc[rows]), self.start + rows.start).floats(slice(0, None))


class PandasCategory(PandasValues):
    """A categorical column: its categories are the states, also those without a row."""

    @cached_property
    def _values(self) -> Any:
        """The pandas Categorical."""
        return self.series.array if hasattr(self.series, "array") else self.series

    @cached_property
    def _labels(self) -> list[Any]:
        return list(self._values.categories.tolist())

    @property
    def ordered(self) -> bool:
        """As the categories say."""
        return bool(self._values.ordered)

    def infer(self) -> Variable:
        """All categories, in their order."""
        return category(self.name, self._labels)

    def code(self) -> Coded:
        """The codes that pandas keeps."""
        return _from_signed(self._values.codes, self._labels)

    def floats(self, rows: slice) -> Floats:
        """Categories that are numbers, one by one."""
        return ObjectColumn(self.name, list(self._values[rows]), self.start + rows.start).floats(slice(0, None))

    def as_codes(self, variable: Variable) -> NDArray[np.uint8] | None:
        """The codes that pandas keeps, where the states are the categories; a missing value, -1, is the largest."""
        codes = self._values.codes
        return codes.view(np.uint8) if codes.dtype.char == "b" and variable.lists(self._labels) else None


def _from_signed(codes: NDArray[Any], labels: list[Any]) -> Coded:
    """Codes in which -1 is a missing value."""
    dtype = code_dtype(len(labels))
    if len(codes) == 0 or codes.min() >= 0:
        # Without a missing value signed and unsigned codes of one width are the same bytes.
        return Coded(codes.view(dtype) if codes.itemsize == np.dtype(dtype).itemsize else codes.astype(dtype), labels)
    return Coded(np.where(codes < 0, len(labels), codes).astype(dtype), labels)


# --------------------------------------------------------------------------------------------------------------------
# polars
# --------------------------------------------------------------------------------------------------------------------


def polars_column(name: Hashable, series: pl.Series, start: int = 0) -> Column:
    """The column of a polars Series, by its type."""
    import polars as pl

    dtype = series.dtype
    if isinstance(dtype, pl.Enum | pl.Categorical):
        return PolarsCategory(name, series, start)
    if dtype.is_float():
        return NumberColumn(name, series.to_numpy(), _polars_missing(series), start)
    if dtype.is_integer() or dtype == pl.Boolean:
        filled = series.fill_null(False if dtype == pl.Boolean else 0) if series.null_count() else series
        return NumberColumn(name, filled.to_numpy(), _polars_missing(series), start)
    if dtype == pl.Object:
        return ObjectColumn(name, series.to_list(), start)
    if dtype == pl.String:
        return PolarsText(name, series, start)
    require("pyarrow", extra="files", purpose=f"A polars column of the type {dtype}")
    return ArrowColumn(name, series.to_arrow(), start)


def polars_variable(name: Hashable, dtype: pl.DataType) -> Variable:
    """The variable that a column of a polars type holds, as far as the type alone says."""
    import polars as pl

    if isinstance(dtype, pl.Enum):
        return category(name, dtype.categories.to_list())
    if dtype.is_nested():
        raise DataError(f"Column {name!r} has the polars type {dtype}; expected text, numbers, truth values or dates.")
    return Variable(name, "real" if dtype.is_float() or dtype.is_decimal() or dtype == pl.Null else "discrete")


def _polars_missing(series: pl.Series) -> NDArray[np.bool_] | None:
    return series.is_null().to_numpy() if series.null_count() else None


class PolarsText(Column):
    """Text, by the hash table of polars."""

    def __init__(self, name: Hashable, series: Any, start: int = 0) -> None:
        """Keep the series."""
        super().__init__(name, start)
        self.series = series

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.series)

    def infer(self) -> Variable:
        """Discrete."""
        return self.discrete()

    def code(self) -> Coded:
        """The states are those seen."""
        import polars as pl

        labels = self.series.drop_nulls().unique()
        codes = self.series.cast(pl.Enum(labels)).to_physical().fill_null(len(labels))
        return Coded(codes.to_numpy().astype(code_dtype(len(labels)), copy=False), labels.to_list())

    def floats(self, rows: slice) -> Floats:
        """Only missing values may stand in a column of text that is read as numbers."""
        return ObjectColumn(self.name, self.series[rows].to_list(), self.start + rows.start).floats(slice(0, None))

    def arrow(self) -> Any:
        """As text, categories too."""
        import polars as pl

        require("pyarrow", extra="files", purpose="Rows of a table as Arrow arrays")
        return self.series.cast(pl.String).to_arrow()


class PolarsCategory(PolarsText):
    """An Enum, whose categories are the states; or a Categorical, whose states are those seen.

    The codes of a Categorical depend on what else the process has read, so its order is no order of states.
    """

    @property
    def ordered(self) -> bool:
        """The categories of an Enum are."""
        import polars as pl

        return isinstance(self.series.dtype, pl.Enum)

    def infer(self) -> Variable:
        """The categories of an Enum."""
        return polars_variable(self.name, self.series.dtype)

    def code(self) -> Coded:
        """By the codes that polars keeps."""
        import polars as pl

        numbers = polars_column(self.name, self.series.to_physical(), self.start).code()
        if isinstance(self.series.dtype, pl.Enum):
            names: Any = self.series.dtype.categories.to_list()
        else:
            distinct = self.series.drop_nulls().unique()
            names = dict(zip(distinct.to_physical().to_list(), distinct.cast(pl.String).to_list(), strict=True))
        # Whole numbers are coded over their range, so that some codes between have no row.
        used = numbers.occurs
        return Coded(numbers.indices, [names[code] if used[k] else None for k, code in enumerate(numbers.labels)])
