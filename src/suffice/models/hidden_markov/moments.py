"""What a fit has learned from: the statistics that it makes equal, and the rows that a prior acts on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import FileFormatError
from suffice.fitting.report import CountedRows, MatchedStatistics, largest_and_even
from suffice.models.hidden_markov.emissions.moments import MatchedPart, of_rows
from suffice.models.hidden_markov.fitted import HiddenMarkovFitted
from suffice.models.hidden_markov.learning import Learner
from suffice.models.hidden_markov.parameters import Parameters, Statistics

Floats = NDArray[np.float64]

#: Statistics that are told of.
MOST = 4_000


@dataclass(frozen=True, eq=False)
class LearnedFrom:
    """The statistics that a fit makes equal, as they are given the sequences, and the M-step that learns from them.

    `errors` are the standard errors of the parameters, laid out as they are, where they were worked out with the fit.
    """

    statistics: Statistics
    learner: Learner
    errors: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file; the M-step follows from the options."""
        return {"statistics": self.statistics.to_dict(), "errors": self.errors}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], learner: Learner, fitted: HiddenMarkovFitted) -> LearnedFrom:
        """Rebuild from plain data; what does not belong to the fitted value is an error."""
        statistics, errors = Statistics.from_dict(plain["statistics"]), plain["errors"]
        if _shapes(statistics) != _shapes(fitted.no_statistics()):
            raise FileFormatError("The statistics in this file are not those of the model's states and emissions.")
        if errors is not None:
            parts = Parameters(errors["initial"], errors["transitions"], errors["emissions"])
            if _shapes(parts) != _shapes(fitted.parameters):
                raise FileFormatError("The standard errors in this file are not those of the model's parameters.")
        return cls(statistics, learner, errors)

    def matched(self, fitted: HiddenMarkovFitted) -> MatchedStatistics | None:
        """Shares of steps, and of transitions and first states among themselves; what is fixed is left out."""
        learner = self.learner
        parts = list(self._parts(fitted.parameters, fitted.states))
        if not parts:
            return None
        total = sum(len(part.names) for part in parts)
        parts = [part.chosen(largest_and_even(part.seen - part.expected, MOST // len(parts))) for part in parts]
        columns = zip(*((part.seen, part.expected, part.pull) for part in parts), strict=True)
        seen, told, pull = (np.concatenate(column) for column in columns)
        names = tuple(name for part in parts for name in part.names)
        about = (
            "Statistics expected given the sequences (the E-step), and by the parameters: a fixed point of EM matches "
            "them."
            if fitted.hidden
            else "Counts of the known states and what they emit, and as the parameters make them of their totals."
        )
        if learner.stationary:
            about += " A stationary first state moves the transitions a little off the line."
        if learner.emission.has_conjugate_prior:
            about += " The conjugate prior of the laws moves their statistics off the line."
        return MatchedStatistics(
            names, seen, told, pull if pull.any() else None, about=about, total=total if total > len(names) else None
        )

    def _parts(self, values: Parameters, states: Sequence[object]) -> Iterator[MatchedPart]:
        learner, sums = self.learner, self.statistics
        if "initial" not in learner.fixed and not learner.stationary:
            names = [f"first {state}" for state in states]
            yield from of_rows([names], sums.initial[None], values.initial[None], learner.first[None])
        if "transitions" not in learner.fixed:
            named = [[f"{a} → {b}" for b in states] for a in states]
            yield from of_rows(named, sums.transitions, values.transitions, learner.pairs)
        if "emissions" not in learner.fixed:
            gathered = learner.emission.gathered(sums.emission, learner.tied)
            yield from learner.emission.moments(gathered, values.emission, [str(state) for state in states])

    def rows_with_prior(self, states: Sequence[object], more: float, *, hidden: bool) -> list[CountedRows]:
        """First states, transitions and symbols that have pseudo-counts; `more` makes them the Dirichlet prior."""
        sums, learner = self.statistics, self.learner
        parts = [
            ("initial", [f"first {state}" for state in states], sums.initial[None], learner.first[None]),
            ("transitions", [f"{a} → {b}" for a in states for b in states], sums.transitions, learner.pairs),
        ]
        gathered = learner.emission.gathered(sums.emission, learner.tied)
        symbols = learner.emission.counted(gathered, [str(state) for state in states])
        parts += [("emissions", *symbols)] if symbols is not None else []
        return [
            CountedRows(tuple(names), counts, pseudo + more, hidden)
            for part, names, counts, pseudo in parts
            if part not in learner.fixed and pseudo.any()
        ]


def _shapes(arrays: Statistics | Parameters) -> dict[str, tuple[int, ...]]:
    """The shapes of all arrays by name."""
    return {"initial": np.shape(arrays.initial), "transitions": np.shape(arrays.transitions)} | {
        f"emission.{name}": np.shape(array) for name, array in arrays.emission.items()
    }
