"""What a Markov network asks of its data, and how rows, tables and margins become the answers."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain, Variable, declare
from suffice.engines.junction_tree import TreePlan
from suffice.errors import DataError, MergeError, MissingValueError, OptionError, SufficeWarning, listing
from suffice.fitting.template import TemplateEstimator
from suffice.models.markov.builders import closed_domain
from suffice.models.markov.contingency import (
    answering,
    is_margins,
    note_total,
    read_cells,
    read_margins,
    summary_of_cells,
    summary_of_margins,
)
from suffice.models.markov.log_linear import LogLinear
from suffice.models.markov.state import MarkovState
from suffice.models.markov.statistics import joint_counts, joint_entropy
from suffice.solvers.margins import describe, find_conflict
from suffice.statistics import Counts, Statistic, Summary

Floats = NDArray[np.float64]

#: Up to this many variables are counted together, to be compared with the saturated model ...
JOINT_VARIABLES = 12
#: ... and the counts are kept up to this many joint states: a fitted network must not hold its rows.
JOINT_CELLS = 2**16


class MarkovData(MarkovState, TemplateEstimator):
    """The part of a Markov network that meets data; the network itself gives structure and law."""

    #: Sentences on margins that no law has, and others on the data, for the report.
    _conflicts: tuple[str, ...]
    _notes: tuple[str, ...]
    #: Entropy of the observed joint states, where they were counted together.
    _entropy: float | None

    def _plan(self, model: LogLinear) -> TreePlan:
        raise NotImplementedError

    @property
    def _shown(self) -> tuple[Hashable, ...]:
        """The variables that data have columns of."""
        return self.nodes

    def _declared(self) -> dict[Hashable, Variable]:
        return {name: declare(name, states) for name, states in (self._options["states"] or {}).items()}

    def _wanted(self, columns: Sequence[Hashable]) -> Mapping[Hashable, Variable | None]:
        declared = self._declared()
        return {name: declared.get(name) for name in self._shown}

    def _ask(self, domain: Domain) -> tuple[Statistic, ...]:
        wrong = [variable.name for variable in domain.variables if variable.kind != "discrete"]
        if wrong:
            raise OptionError(f"{listing(wrong)} hold numbers; a Markov network needs states. Declare them in states=.")
        if self.__dict__.get("_jointly"):
            return (Counts(self.nodes),)
        if all(domain[name].card for name in self.nodes):
            self._plan(LogLinear(domain.select(self.nodes), self._terms))  # Too large? Then say so before any counting.
        closed = all(domain[name].origin == "declared" for name in self.nodes)
        many = closed and math.prod(domain.shape(self.nodes)) > JOINT_CELLS
        if len(self.nodes) <= JOINT_VARIABLES and not many:
            return (Counts(self.nodes),)
        scopes = LogLinear(domain.select(self.nodes), self._terms).scopes
        return tuple(Counts(scope) for scope in (*scopes, *self.__dict__.get("_further", ())))

    def _learn(self, summary: Summary, passes: int) -> Self:
        """Counts of more joint states than are kept are summed to those of the cliques; their entropy stays known."""
        joint = Counts(self.nodes)
        self._entropy = joint_entropy(summary, self.nodes)
        if joint in summary.answers and math.prod(summary.domain.shape(self.nodes)) > JOINT_CELLS:
            scopes = LogLinear(summary.domain.select(self.nodes), self._terms).scopes
            summary = answering(summary, [Counts(scope) for scope in scopes])
        return super()._learn(summary, passes)

    def _joining(self, summary: Summary) -> Summary:
        """The summary with the questions learned before, where it can answer them."""
        earlier: Summary | None = self.__dict__.get("summary_")
        return summary if earlier is None else answering(summary, list(earlier.answers))

    def _own(self, summary: Summary) -> Summary:
        missing = [name for name in self._shown if name not in summary.domain]
        if missing:
            raise MergeError(
                f"The summary holds {listing(summary.domain.names)}; the network needs {listing(missing)}."
            )
        return summary

    def _empirical_entropy(self, summary: Summary) -> float | None:
        return self._entropy

    # -- rows, tables, margins ---------------------------------------------------------------------------------------

    def _summary_of(self, data: Any, sample_weight: Any, columns: Any) -> tuple[Summary, int]:
        """Rows as everywhere; tables and margins become the answers that their rows would give."""
        self._conflicts, self._notes = (), ()
        if isinstance(data, Summary):
            return super()._summary_of(data, sample_weight, columns)
        declared = self._declared()
        margins = is_margins(data, self.nodes)
        cells = None if margins else read_cells(data, columns, declared, self.nodes)
        if not margins and cells is None:
            return super()._summary_of(data, sample_weight, columns)
        if sample_weight is not None:
            raise OptionError("A table of counts holds its weights already; give no sample_weight beside it.")
        if cells is not None:
            self._notes = note_total("The table", cells.weights)
            return summary_of_cells(cells, self.nodes, declared, self._ask), 1
        return self._margin_summary(data, declared), 1

    def _margin_summary(self, data: Mapping[Any, Any], declared: Mapping[Any, Variable]) -> Summary:
        tables = read_margins(data, declared, self.nodes)
        held = [set(table.variables) for table in tables]
        for term in self._terms:
            for scope in (term,) if isinstance(term, tuple) else term.placements:
                if not any(keys.issuperset(scope) for keys in held):
                    raise DataError(
                        f"No margin holds {tuple(scope)!r}; the margins are those of {listing(list(data))}. Give one "
                        "for every term of the model."
                    )
        scopes, arrays = [table.variables for table in tables], [table.values for table in tables]
        labels = {name: states for table in tables for name, states in table.states.items()}
        self._notes = note_total("The margins", arrays[0])
        conflict = find_conflict(scopes, arrays)
        if conflict is not None:
            sentence = describe(conflict, scopes, labels)
            if self._options["inconsistent"] == "raise":
                raise DataError(f"{sentence} inconsistent='warn' fits them all the same, as far as it goes.")
            self._conflict(sentence)
        return summary_of_margins(tables, declared)

    def _conflict(self, sentence: str) -> None:
        """Note and warn that no law has the margins."""
        self._conflicts = (*self.__dict__.get("_conflicts", ()), sentence)
        warnings.warn(f"{sentence} They are fitted as far as it goes.", SufficeWarning, stacklevel=2)

    # -- other data, compared with the fit ---------------------------------------------------------------------------

    def score(self, data: Any, sample_weight: Any = None, *, columns: Any = None) -> float:
        """Mean log-likelihood of a row (weighted), natural logarithm.

        Data as in `fit`, with the states of the fit; rows are whole. `log_likelihood` gives that of each row, and sums
        gaps and absent columns out.
        """
        if isinstance(data, Summary):
            return super().score(data, sample_weight, columns=columns)
        try:
            return self._comparing().__score(data, sample_weight, columns)
        except MissingValueError as error:
            raise MissingValueError(f"{error} score needs whole rows; log_likelihood sums gaps out.") from None

    def __score(self, data: Any, sample_weight: Any, columns: Any) -> float:
        return TemplateEstimator.score(self, data, sample_weight, columns=columns)

    def _comparing(self) -> Self:
        """A copy that reads data with the states of the fit, and counts what its masks need."""
        domain = closed_domain(self._known_domain())
        reader = copy.copy(self)
        reader._options = {**self._options, "states": dict(domain)}
        reader.__dict__.pop("summary_", None)
        reader.__dict__["_further"] = self._family().extra_scopes
        return reader

    def _counted(self, data: Any, sample_weight: Any, columns: Any) -> tuple[NDArray[Any], Floats]:
        """The joint states that occur in the data (k, variables) and their counts (k,)."""
        reader = self._comparing()
        reader.__dict__["_jointly"] = True
        summary = self._aligned(self._own(reader._summary_of(data, sample_weight, columns)[0]))
        found = joint_counts(summary, self.nodes)
        if found is None:
            raise MergeError(
                "The data do not hold joint counts of all variables. Give rows, or a table of all of them."
            )
        return found

    def _aligned(self, summary: Summary) -> Summary:
        """The summary with the states of the fit in their order; a state that the fit does not know is an error."""
        known = self._known_domain()
        for name in self._shown:
            for state in summary.domain[name].states:
                known[name].index(state)
        # The order of states is the network's: a category column of the rows may list the same states in another.
        return summary.align(Domain(known[v.name] if v.name in known else v for v in summary.domain.variables))
