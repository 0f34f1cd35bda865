"""Distributions of several columns: what they share, above all that columns are matched by name."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import update_wrapper
from operator import methodcaller
from typing import Any, Concatenate, ParamSpec, Self

import numpy as np

from suffice.array_types import Floats
from suffice.checks import is_list, listed_names
from suffice.domain import Variable
from suffice.errors import MergeError, MissingColumnError, OptionError, listing
from suffice.families.base import as_numbers
from suffice.families.exponential_family import ExponentialFamily
from suffice.families.fitted import FamilyFitted
from suffice.families.member import FamilyMember
from suffice.families.task import FamilyTask
from suffice.fitting.contract import Inputs, Purpose
from suffice.fitting.estimator import as_frame
from suffice.fitting.summaries import SummaryData
from suffice.statistics import Summary

P = ParamSpec("P")


class VectorMember(FamilyMember):
    """A member of a family of d real columns, whose first parameter has one entry for each.

    The columns that are `known` name them; without these they are those of the data that were learned.
    """

    constant_names = ("columns",)

    # -- parameters --------------------------------------------------------------------------------------------------

    @property
    def _size(self) -> int:
        """Number of columns."""
        return len(self.parameters_[self.parameter_names[0]])

    @property
    def declared(self) -> tuple[Hashable, ...] | None:
        """Names as declared; None for those of the data."""
        names = self.known.get("columns")
        return None if names is None else listed_names(names, "columns")

    def _check_columns(self, size: int) -> None:
        """Raise where the declared names are not one for each of `size` columns."""
        names = self.declared
        if names is not None and len(set(names)) != size:
            raise OptionError(f"columns is {listing(names)}; expected {size} different names, one for each column.")

    def columns(self) -> tuple[Hashable, ...]:
        """Names as declared or learned; none where neither has happened."""
        return self.declared or tuple(self.known.get("seen_columns", ()))

    def named(self) -> tuple[Hashable, ...]:
        """Names of the columns, in the order of the parameters: declared, learned, or 0, 1, ..."""
        return self.columns() or tuple(range(self._size))

    def restored(self, plain: Mapping[str, Any]) -> Self:
        """The member of a file, with the columns that were learned."""
        names = plain["names"]
        member = self.at(plain["parameters"], **({} if names is None else {"seen_columns": tuple(names)}))
        known = tuple(names or member.columns())
        if known and len(known) != member._size:
            raise OptionError(f"The parameters are those of {member._size} columns, and there are {listing(known)}.")
        return member

    # -- evaluation --------------------------------------------------------------------------------------------------

    def _rows(self, x: Any) -> Floats:
        """Rows (..., d) of an array, or of a table: its columns by name, or in order where no names are known."""
        if isinstance(x, Mapping) or hasattr(x, "columns"):
            present = list(x if isinstance(x, Mapping) else x.columns)
            names = self.columns() or present
            missing = [name for name in names if name not in present]
            if missing:
                raise MissingColumnError(
                    f"The rows lack {listing(missing)}; this distribution describes {listing(names)}."
                )
            columns = [as_numbers(x[name], str(name)) for name in names]
            if len({column.shape for column in columns}) != 1:
                shapes = ", ".join(f"{name!r}: {column.shape}" for name, column in zip(names, columns, strict=True))
                raise OptionError(
                    f"The rows have columns of the shapes {shapes or 'none'}; expected one shape for all."
                )
            rows = np.stack(columns, axis=-1)
        else:
            rows = as_numbers(x)
        if self.parameters is not None and rows.shape[-1:] != (self._size,):
            raise OptionError(
                f"The rows have shape {rows.shape}; expected {self._size} numbers in each, along the last axis."
            )
        return rows

    def score_samples(self, x: Any) -> Floats:
        """Log density of each row (n,); tables are matched by name."""
        return np.atleast_1d(self.log_prob(x))

    # -- rows by their statistics ------------------------------------------------------------------------------------

    def seen_in(self, summary: Summary) -> Mapping[str, Any]:
        """The columns of the rows."""
        return {"seen_columns": summary.domain.names}

    def required(self, columns: Sequence[Hashable]) -> Mapping[Hashable, Variable | None]:
        """The columns that are declared, or all."""
        return {name: Variable(name, "real") for name in self.declared or columns}


def columns_option(columns: Any) -> Any:
    """The option `columns`, checked: a single name as it is, several as a tuple, None for those of the data."""
    if columns is None:
        return None
    names = listed_names(columns, "columns", otherwise=", or None")
    if not names:
        raise OptionError("columns is empty; expected at least one name, or None for all columns of the data.")
    return names if is_list(columns) else columns


def framed(method: Callable[Concatenate[Any, P], Floats]) -> Callable[Concatenate[VectorFamily, P], Any]:
    """The method of a family that draws rows (n, d) by its member; of a fit to a frame they are such a frame."""

    def ask(family: VectorFamily, /, *args: P.args, **options: P.kwargs) -> Any:
        rows: Floats = methodcaller(method.__name__, *args, **options)(family._member)
        frame = None if family._fit is None else family._fit.frame
        return rows if frame is None else as_frame(dict(zip(family.columns_, rows.T, strict=True)), frame)

    return update_wrapper(ask, method)


class VectorFamily(ExponentialFamily):
    """Base of the families of d real columns, which the option `columns` names; else they are those of the data."""

    _takes_matrices = True
    sample = framed(FamilyMember.sample)

    @property
    def columns_(self) -> tuple[Hashable, ...]:
        """Names of the columns, in the order of the parameters: declared, learned, or 0, 1, ..."""
        names: tuple[Hashable, ...] = self._member.named()
        return names

    def _task(self) -> VectorTask:
        return VectorTask(self._options, self._family)


class VectorTask(FamilyTask):
    """The parameters of a family of several columns, with names and an order as declared or learned."""

    family: VectorMember

    def read(self, given: Inputs, known: FamilyFitted | None, purpose: Purpose) -> SummaryData:
        """Rows that follow others are read by the columns that were learned."""
        from suffice.sources import Source

        learned = purpose != "fit" and known is not None and known.names is not None
        if learned and given["columns"] is None and not isinstance(given.data, Summary | Source):
            given = replace(given, more={**given.more, "columns": self._names(known)})
        return super().read(given, known, purpose)

    def _names(self, known: FamilyFitted | None) -> tuple[Hashable, ...] | None:
        """Names as declared or learned; None where neither has happened."""
        declared = self.family.declared
        return declared if declared is not None or known is None else known.names

    def check(self, summary: Summary, known: FamilyFitted | None, purpose: Purpose) -> Summary:
        """The summary, where its columns are those declared, or those learned."""
        title, present = self.family.title, summary.domain.names
        names = self._names(None if purpose == "fit" else known)
        if names is None and purpose != "fit" and known is not None:
            size = len(known.parameters[self.family.parameter_names[0]])
            if len(present) != size:
                raise OptionError(
                    f"This {title} describes {size} columns and the data have {len(present)}: {listing(present)}. "
                    "Choose them with columns=."
                )
        if names is not None and present != names:
            raise MergeError(
                f"This {title} describes the columns {listing(names)}, in this order; the summary holds "
                f"{listing(present)}. Summarise the data with columns=[{listing(names)}]."
            )
        return summary
