"""How a Markov network reads rows with gaps, or without its hidden variables: it asks for the distinct rows."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from suffice.answers import PatternTable
from suffice.domain import Domain, Variable
from suffice.errors import (
    DataError,
    MergeError,
    MissingValueError,
    NotFittedError,
    OptionError,
    listing,
)
from suffice.models.em.hidden import hidden_variables
from suffice.models.em.rows import has_gaps
from suffice.models.markov.approximate.fitting import MarkovApproximation
from suffice.models.markov.contingency import Cells, is_margins, note_total, read_cells
from suffice.models.markov.data import MarkovData
from suffice.models.markov.log_linear import LogLinear
from suffice.models.markov.statistics import joint_counts
from suffice.statistics import Patterns, Statistic, Summary

Floats = NDArray[np.float64]


class MarkovGaps(MarkovApproximation):
    """The part of a Markov network that reads what rows do not show as gaps."""

    @property
    def _hidden(self) -> dict[Hashable, Variable]:
        """The hidden variables; states= may name the states that hidden= counts."""
        declared = super()._declared()
        found = hidden_variables(self._options["hidden"])
        for name, variable in found.items():
            if variable.kind != "discrete":
                raise OptionError(f"hidden[{name!r}] is {variable.kind!r}; a Markov network needs states. Count them.")
            if name in declared:
                counted = isinstance(self._options["hidden"][name], int)
                same = declared[name].card == variable.card if counted else declared[name].states == variable.states
                if not same:
                    raise OptionError(
                        f"{name!r} has {declared[name].card} states in states= and {variable.card} in hidden=, or other"
                        " ones. Declare it once."
                    )
                found[name] = declared[name]
        return found

    def _check_hidden(self) -> None:
        """Refuse hidden variables that are none."""
        given = self._options["hidden"]
        if given is not None and not isinstance(given, Mapping):
            raise OptionError(f"hidden is {given!r}; expected a dict by variable, such as hidden={{'class': 3}}.")
        unknown = [name for name in given or () if name not in self.nodes]
        if unknown:
            raise OptionError(
                f"hidden= names {listing(unknown)}, which no term names; there are {listing(self.nodes)}."
            )
        if given and not self._shown:
            raise OptionError("All variables are hidden, so no row says anything. Leave some to be observed.")
        self._hidden  # noqa: B018  Its states are checked.

    @property
    def _shown(self) -> tuple[Hashable, ...]:
        hidden = self._options["hidden"] or {}
        return tuple(name for name in self.nodes if name not in hidden)

    def _declared(self) -> dict[Hashable, Variable]:
        return {**super()._declared(), **self._hidden}

    def _by_em(self, summary: Summary) -> bool:
        """Whether these statistics are learned by EM and scored row by row."""
        return bool(self._options["hidden"]) or has_gaps(summary)

    # -- data --------------------------------------------------------------------------------------------------------

    def _ask(self, domain: Domain) -> tuple[Statistic, ...]:
        if not self.__dict__.get("_gaps"):
            return super()._ask(domain)
        wrong = [variable.name for variable in domain.variables if variable.kind != "discrete"]
        if wrong:
            raise OptionError(f"{listing(wrong)} hold numbers; a Markov network needs states. Declare them in states=.")
        whole = domain.merge(Domain(self._hidden.values())).select(self.nodes)
        if all(variable.card for variable in whole.variables) and not self._by_sampling:
            self._plan(LogLinear(whole, self._terms))  # Too large? Then say so before any counting.
        return (Patterns(self._shown),)

    def _summary_of(self, data: Any, sample_weight: Any, columns: Any) -> tuple[Summary, int]:
        """One pass for the counts; where gaps turn up or variables are hidden, one for the distinct rows."""
        self._gaps = False
        if isinstance(data, Summary):
            return super()._summary_of(data, sample_weight, columns)
        joins = self.__dict__.get("_purpose") == "join" and "summary_" in self.__dict__ and has_gaps(self.summary_)
        self._gaps = bool(self._options["hidden"]) or joins
        margins = is_margins(data, self._shown)
        cells = None if margins else read_cells(data, columns, self._declared(), self._shown)
        if margins or cells is not None:
            return self._table_summary(data, cells, sample_weight, columns)
        from suffice.sources import open_source

        # Opened once, so that the source counts the passes of both attempts.
        source = open_source(data, columns=columns, sample_weight=sample_weight)
        if self._gaps:
            return MarkovData._summary_of(self, source, None, None)
        try:
            return super()._summary_of(source, None, None)
        except MissingValueError as error:
            if self._by_sampling and self._options["solver"] != "sml":
                raise
            if self._options["missing"] == "raise":
                raise MissingValueError(f"{error} missing='em' learns from rows with gaps.") from None
            self._gaps = True
            return MarkovData._summary_of(self, source, None, None)

    def _table_summary(self, data: Any, cells: Cells | None, sample_weight: Any, columns: Any) -> tuple[Summary, int]:
        """Tables of counts have no gaps, and all variables but the hidden ones."""
        if not self._gaps:
            return super()._summary_of(data, sample_weight, columns)
        if cells is None:
            raise DataError(
                "Margins of cliques say too little where variables are hidden or rows have gaps: EM needs the rows, or "
                "a table of all variables that are seen."
            )
        if sample_weight is not None:
            raise OptionError("A table of counts holds its weights already; give no sample_weight beside it.")
        self._conflicts, self._notes = (), note_total("The table", cells.weights)
        missing = [name for name in self._shown if name not in cells.domain]
        if missing:
            raise DataError(f"The table has the variables {listing(cells.domain.names)}; it lacks {listing(missing)}.")
        declared = self._declared()
        domain = Domain(declared.get(name, cells.domain[name]) for name in self._shown)
        table = cells.over(domain)
        answer = PatternTable(np.argwhere(table > 0).astype(np.int32), table[table > 0])
        total = math.fsum(cells.weights)
        return Summary(domain, {Patterns(self._shown): answer}, math.ceil(total - 1e-9), total), 1

    def _own(self, summary: Summary) -> Summary:
        found = super()._own(summary)
        return self._as_rows(found) if self._options["hidden"] else found

    def _as_rows(self, summary: Summary) -> Summary:
        """The distinct rows of a summary; one that counts all variables together holds them too."""
        if has_gaps(summary):
            return summary
        joint = joint_counts(summary, self._shown)
        if joint is None:
            raise MergeError(
                f"EM needs the distinct rows of {listing(self._shown)}, and the summary answers "
                f"{listing(summary.answers, 3)}. Summarise the data for this model with suffice.summarize(model, data),"
                " or fit all rows at once."
            )
        rows = PatternTable.of(joint[0].astype(np.int32), joint[1])
        return Summary(summary.domain.select(self._shown), {Patterns(self._shown): rows}, summary.rows, summary.weight)

    def partial_fit(self, data: Any, sample_weight: Any = None, *, columns: Any = None, keep: float = 1.0) -> Self:
        """Add rows to those already learned; the result equals one fit on all of them.

        `keep` below 1 weights the earlier rows down first (forgetting). Where rows have gaps EM runs anew.
        """
        with self._reading("join"):
            summary, passes = self._joining_summary(data, sample_weight, columns)
        if "summary_" not in self.__dict__:
            return self._learn(summary, passes)
        earlier, later = self._alike(self.summary_, summary)
        return self._learn(earlier * keep + later, passes)

    def unlearn(self, data: Any, sample_weight: Any = None, *, columns: Any = None) -> Self:
        """Take rows out again; the result equals a fit that never saw them. Where rows have gaps EM runs anew."""
        if "summary_" not in self.__dict__:
            raise NotFittedError(f"This {type(self).__name__} has learned nothing yet, so nothing can be unlearned.")
        with self._reading("join"):
            summary, passes = self._joining_summary(data, sample_weight, columns)
        earlier, later = self._alike(self.summary_, summary)
        return self._learn(earlier - later, passes)

    def _alike(self, earlier: Summary, later: Summary) -> tuple[Summary, Summary]:
        """Both as distinct rows where one of them is: whole rows that were counted together are rows too."""
        if has_gaps(earlier) == has_gaps(later):
            return earlier, later
        return self._as_rows(earlier), self._as_rows(later)

    def _whole_domain(self, summary: Summary) -> Domain:
        """All variables, in the order of the nodes."""
        return summary.domain.merge(Domain(self._hidden.values())).select(self.nodes)


def check_counts(options: Mapping[str, Any]) -> None:
    """Refuse numbers of runs and steps that make no sense."""
    for name, least in (("n_init", 1), ("m_steps", 1)):
        value = options[name]
        if name == "m_steps" and value is None:
            continue
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
            raise OptionError(f"{name} is {value!r}; expected a whole number of at least {least}.")
