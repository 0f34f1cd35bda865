"""Laws of several columns: what they share, above all that columns are matched by name."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Variable
from suffice.errors import MergeError, MissingColumnError, OptionError, listing
from suffice.families.base import as_numbers
from suffice.families.exponential import ExponentialFamily
from suffice.statistics import Summary

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait

Floats = NDArray[np.float64]


class VectorFamily(ExponentialFamily):
    """Base of the laws of d real columns, whose first parameter has one entry for each.

    The option `columns` names them; without it they are those of the data, and of further data those already learned.
    """

    # -- parameters --------------------------------------------------------------------------------------------------

    def _fixed_options(self) -> Sequence[str]:
        return ("columns",)

    @property
    def _size(self) -> int:
        """Number of columns."""
        return len(self.parameters_[self.parameter_names[0]])

    def _check_columns(self, size: int) -> None:
        """Raise where the declared names are not one for each of `size` columns."""
        names = self._options["columns"]
        if names is not None and len(set(names)) != size:
            raise OptionError(f"columns is {listing(names)}; expected {size} different names, one for each column.")

    def _known_columns(self) -> tuple[Hashable, ...] | None:
        """Names as declared or learned; None where neither has happened."""
        if self._options["columns"] is not None:
            return tuple(self._options["columns"])
        summary: Summary | None = self.__dict__.get("summary_")
        return None if summary is None else summary.domain.names

    @property
    def columns_(self) -> tuple[Hashable, ...]:
        """Names of the columns, in the order of the parameters: declared, learned, or 0, 1, ..."""
        known = self._known_columns()
        return tuple(range(self._size)) if known is None else known

    def portrait(self) -> Portrait:
        """What there is to see of it: what pages, plots and notebooks show."""
        from suffice.families.portrait import exponential_portrait

        return exponential_portrait(self, columns=self._known_columns() or ())

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        names = self._known_columns()
        if names is not None and len(names) != self._size:
            raise OptionError(f"The parameters are those of {self._size} columns, and there are {listing(names)}.")

    # -- evaluation --------------------------------------------------------------------------------------------------

    def _rows(self, x: Any) -> Floats:
        """Rows (..., d) of an array, or of a table: its columns by name, or in order where the law knows no names."""
        if isinstance(x, Mapping) or hasattr(x, "columns"):
            found = list(x if isinstance(x, Mapping) else x.columns)
            names = self._known_columns() or found
            missing = [name for name in names if name not in found]
            if missing:
                raise MissingColumnError(f"The rows lack {listing(missing)}; this law describes {listing(names)}.")
            columns = [as_numbers(x[name], str(name)) for name in names]
            if len({column.shape for column in columns}) != 1:
                shapes = ", ".join(f"{name!r}: {column.shape}" for name, column in zip(names, columns, strict=True))
                raise OptionError(
                    f"The rows have columns of the shapes {shapes or 'none'}; expected one shape for all."
                )
            rows = np.stack(columns, axis=-1)
        else:
            rows = as_numbers(x)
        if "_parameters" in self.__dict__ and rows.shape[-1:] != (self._size,):
            raise OptionError(
                f"The rows have shape {rows.shape}; expected {self._size} numbers in each, along the last axis."
            )
        return rows

    # -- fitting -----------------------------------------------------------------------------------------------------

    def _wanted(self, columns: Sequence[Hashable]) -> Mapping[Hashable, Variable | None]:
        names = self._options["columns"]
        return {name: Variable(name, "real") for name in (columns if names is None else names)}

    def _joining_summary(self, data: Any, sample_weight: Any, columns: Any) -> tuple[Summary, int]:
        from suffice.sources import Source

        learned = "summary_" in self.__dict__ and columns is None and not isinstance(data, Summary | Source)
        return super()._joining_summary(data, sample_weight, self.columns_ if learned else columns)

    def _own(self, summary: Summary) -> Summary:
        """The summary, where its columns are those declared."""
        return self._in_order(summary, self._options["columns"])

    def _joining(self, summary: Summary) -> Summary:
        """The summary, where its columns are those of the law."""
        known, found = self._known_columns(), summary.domain.names
        if known is None and "_parameters" in self.__dict__ and len(found) != self._size:
            raise OptionError(
                f"This {type(self).__name__} describes {self._size} columns and the data have {len(found)}: "
                f"{listing(found)}. Choose them with columns=."
            )
        return self._in_order(summary, known)

    def _in_order(self, summary: Summary, names: Sequence[Hashable] | None) -> Summary:
        if names is not None and summary.domain.names != tuple(names):
            raise MergeError(
                f"This {type(self).__name__} describes the columns {listing(names)}, in this order; the summary holds "
                f"{listing(summary.domain.names)}. Summarise the data with columns=[{listing(names)}]."
            )
        return summary
