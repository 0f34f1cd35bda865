"""Laws of several columns: what they share, above all that columns are matched by name."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Variable
from suffice.errors import MergeError, MissingColumnError, OptionError, listing
from suffice.families.base import as_numbers
from suffice.families.exponential_family import ExponentialFamily
from suffice.families.fitted import FamilyFitted
from suffice.families.task import FamilyTask
from suffice.fitting.contract import Inputs, Purpose
from suffice.fitting.summaries import SummaryData
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
        return None if self._fit is None else self._fit.fitted.names

    @property
    def columns_(self) -> tuple[Hashable, ...]:
        """Names of the columns, in the order of the parameters: declared, learned, or 0, 1, ..."""
        known = self._known_columns()
        return tuple(range(self._size)) if known is None else known

    def portrait(self) -> Portrait:
        """What there is to see of it: what pages, plots and notebooks show."""
        from suffice.families.portrait import exponential_portrait

        return exponential_portrait(self, columns=self._known_columns() or ())

    def _fitted_from(self, plain: Mapping[str, Any]) -> FamilyFitted:
        fitted = super()._fitted_from(plain)
        names, size = fitted.names or self._options["columns"], len(fitted.parameters[self.parameter_names[0]])
        if names is not None and len(names) != size:
            raise OptionError(f"The parameters are those of {size} columns, and there are {listing(names)}.")
        return fitted

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
        if self._fit is not None and rows.shape[-1:] != (self._size,):
            raise OptionError(
                f"The rows have shape {rows.shape}; expected {self._size} numbers in each, along the last axis."
            )
        return rows

    def score_samples(self, x: Any) -> Floats:
        """Log density of each row (n,); tables are matched by name."""
        return np.atleast_1d(self.log_prob(x))

    # -- fitting -----------------------------------------------------------------------------------------------------

    def _task(self) -> VectorTask:
        return VectorTask(self._options, self._with_fit(None))

    def _required(self, columns: Sequence[Hashable]) -> Mapping[Hashable, Variable | None]:
        names = self._options["columns"]
        return {name: Variable(name, "real") for name in (columns if names is None else names)}


class VectorTask(FamilyTask[VectorFamily]):
    """The parameters of a family of several columns, with names and an order as declared or learned."""

    def read(self, given: Inputs, known: FamilyFitted | None, purpose: Purpose) -> SummaryData:
        """Rows that follow others are read by the columns that were learned."""
        from suffice.sources import Source

        learned = purpose != "fit" and known is not None and known.names is not None
        if learned and given["columns"] is None and not isinstance(given.data, Summary | Source):
            given = replace(given, more={**given.more, "columns": self._names(known)})
        return super().read(given, known, purpose)

    def _names(self, known: FamilyFitted | None) -> tuple[Hashable, ...] | None:
        """Names as declared or learned; None where neither has happened."""
        if self.options["columns"] is not None:
            return tuple(self.options["columns"])
        return None if known is None else known.names

    def check(self, summary: Summary, known: FamilyFitted | None, purpose: Purpose) -> Summary:
        """The summary, where its columns are those declared, or those learned."""
        title, found = type(self.family).__name__, summary.domain.names
        names = self._names(None if purpose == "fit" else known)
        if names is None and purpose != "fit" and known is not None:
            size = len(known.parameters[self.family.parameter_names[0]])
            if len(found) != size:
                raise OptionError(
                    f"This {title} describes {size} columns and the data have {len(found)}: {listing(found)}. "
                    "Choose them with columns=."
                )
        if names is not None and found != names:
            raise MergeError(
                f"This {title} describes the columns {listing(names)}, in this order; the summary holds "
                f"{listing(found)}. Summarise the data with columns=[{listing(names)}]."
            )
        return summary
