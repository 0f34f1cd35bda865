"""The fewest rows behind anything that a site releases: what is about to leave is counted where the rows are.

Rows of weight 0 are no rows here, and all others count once: weights would hide how many there are.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from suffice.domain import Domain, Variable
from suffice.errors import DataError, listing
from suffice.sources.base import Batch, Source
from suffice.sources.held import Held, survey
from suffice.sources.partitions import Reading
from suffice.sources.releasing import (
    Disclosed,
    Discloses,
    check_cells,
    check_rows,
    check_summary,
    check_tables,
    columns_told,
    disclosed_by,
    parts_of,
)
from suffice.sources.tally import Tally
from suffice.statistics import Counts, Summary

Names = tuple[Hashable, ...]


@dataclass(frozen=True)
class EachOnce:
    """A task that is asked of the rows with weight, each of which counts once."""

    task: Callable[[Batch], Any]

    def __call__(self, batch: Batch) -> Any:
        """What it answers."""
        if batch.weights is None:
            return self.task(batch)
        kept = np.flatnonzero(batch.weights)
        codes, reals = np.ascontiguousarray(batch.codes[:, kept]), np.ascontiguousarray(batch.reals[:, kept])
        numbers = np.array([batch.number(row) for row in kept.tolist()], np.int64)
        return self.task(
            replace(batch, codes=codes, reals=reals, weights=None, rows=len(kept), numbers=numbers, complete=False)
        )


class MinimumCount:
    """Counts the rows of a site behind what it is asked for, and raises where they are too few."""

    def __init__(self, minimum: int, opened: Callable[[Reading], Source]) -> None:
        """opened: the rows of the site, to be read in some way."""
        self.minimum, self._opened = minimum, opened
        #: What was looked at before: columns of which all states have enough rows, tables, questions.
        self._passed: set[Any] = set()

    def tells(self, variable: Variable) -> bool:
        """Whether all categories of a column are those of enough rows."""
        try:
            self.check_columns(Reading(Domain([variable])))
        except DataError:
            return False
        return True

    def check_columns(self, reading: Reading) -> None:
        """Every state of a column that is read, and its missing values, are those of enough rows."""
        domain = reading.domain
        kinds = (tuple((variable.name, variable.kind) for variable in domain.variables), reading.weight)
        if kinds in self._passed or not len(domain):
            return
        met = self._reduce(survey, domain, reading)
        check_rows(met.rows, self.minimum)
        for name, missing in met.missing.items():
            check_cells([name], np.array([missing]), self.minimum)
        self._check_counts([(v.name,) for v in domain.variables if v.kind == "discrete"], domain, reading)
        self._passed.add(kinds)

    def check_task(self, task: Callable[[Batch], Any], reading: Reading) -> None:
        """Every cell of a table of counts in what a task answers is that of enough rows."""
        tables = []
        for part in parts_of(self._reduce(task, reading.domain, reading)):
            if isinstance(part, Summary):
                check_summary(part, self.minimum)
                tables += [names for question in part.answers for names in columns_told(question)]
        self._check_joint(tables, reading)

    def checked_work(self, work: object, reading: Reading) -> Reading:
        """A work has to say what its answers tell; the reading with the columns that it reads as they stand.

        Lists have no states that could be counted, and what tells sequences apart is not answered.
        """
        scalars = [name for one in disclosed_by(work) for name in one.columns]
        raw = [name for name in reading.layout.raw if name not in (*reading.layout.keys, *scalars)]
        if raw:
            raise DataError(
                f"The columns {listing(raw)} hold lists or texts that are read as they stand, and their values cannot "
                f"be counted against minimum_count={self.minimum}: nothing is released. Give features as columns of "
                "states, or a site without minimum_count=."
            )
        if not isinstance(work, Discloses):
            raise DataError(
                f"What {type(work).__name__} answers is not counted, so that nothing can be said of the rows behind it "
                f"against minimum_count={self.minimum}: nothing is released. Ask a site without minimum_count=."
            )
        source = self._opened(Reading(reading.domain))
        more = [source._infer(name) for name in dict.fromkeys(scalars) if name not in reading.domain]
        whole = replace(reading, domain=Domain([*reading.domain.variables, *more]))
        self.check_columns(whole)
        return whole

    def check_answer(self, answer: Any, asked: Sequence[object], held: Held[Any], reading: Reading) -> None:
        """What the answer to a work, a task and its parameters tells has enough rows behind it."""
        disclosed = disclosed_by(*asked)
        tables = [names for one in disclosed for names in one.tables]
        for part in parts_of(answer):
            if isinstance(part, Summary):
                tables += [names for question in part.answers for names in columns_told(question)]
                if not any(one.expected for one in disclosed):
                    if reading.weight is not None:
                        raise DataError(
                            "minimum_count= counts sequences that have no weights: leave sample_weight= out."
                        )
                    check_tables(part, self.minimum)
        self._check_joint(tables, reading)
        self._check_cells(disclosed, held, reading)

    def _check_joint(self, tables: Iterable[Names], reading: Reading) -> None:
        """Every joint state of some columns in use is that of enough rows; a column of two numbers has two states."""
        known = self._opened(Reading(reading.domain)).columns
        asked = {frozenset(name for name in names if name in known and name in reading.domain) for names in tables}
        new = [names for names in asked if names and (names, reading.weight) not in self._passed]
        numbers = [v.name for v in reading.domain.variables if v.kind != "discrete" and any(v.name in n for n in new)]
        source = self._opened(Reading(reading.domain))
        whole = source._whole_floats(numbers) if numbers else {}
        two = {name for name, numbers in whole.items() if numbers.two}
        domain = Domain(
            Variable(variable.name, "discrete") if variable.name in two else variable
            for variable in reading.domain.variables
            if variable.kind == "discrete" or variable.name in two
        )
        counted = {tuple(name for name in domain.names if name in names) for names in new}
        self._check_counts(sorted((names for names in counted if names), key=repr), domain, reading)
        self._passed.update((names, reading.weight) for names in new)

    def _check_cells(self, disclosed: Sequence[Disclosed], held: Held[Any], reading: Reading) -> None:
        """Every entry of the answers to some questions has enough rows behind it."""
        for words, task in (cells for one in disclosed for cells in one.cells):
            mark = pickle.dumps((held.work, reading, task))
            if mark not in self._passed:
                check_cells([words], held.sum(reading.domain, by=task), self.minimum)
                self._passed.add(mark)

    def _check_counts(self, tables: Sequence[Names], domain: Domain, reading: Reading) -> None:
        if not tables:
            return
        asked = tuple(Counts(names) for names in tables)
        summary = self._reduce(Tally(asked, "available"), domain, reading)
        for counts in asked:
            check_cells(counts.columns, summary[counts].values, self.minimum)

    def _reduce(self, task: Callable[[Batch], Any], domain: Domain, reading: Reading) -> Any:
        """The answer of the rows with weight, each of which counts once."""
        return self._opened(Reading(domain, reading.weight, reading.undeclared)).reduce(EachOnce(task), domain)
