"""What a fit has learned from: the statistics that it makes equal, and the rows that a prior acts on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.errors import EstimateError, FileFormatError
from suffice.fitting.report import CountedRows, MatchedStatistics, largest_and_even
from suffice.models.hidden_markov.emissions.moments import MatchedPart, of_rows
from suffice.models.hidden_markov.fitted import HiddenMarkovFitted
from suffice.models.hidden_markov.learning import ChainRows, Learner
from suffice.models.hidden_markov.parameters import ChainParameters, Statistics
from suffice.models.hidden_markov.standard_errors import constant_errors

#: Statistics that are shown.
MOST = 4_000


@dataclass(frozen=True, eq=False)
class LearnedFrom:
    """The statistics that a fit makes equal, as they are given the sequences, and the M-step that learns from them.

    `step` is what one more step of EM would change. `errors` are the standard errors of the parameters, laid out as
    they are, where they were worked out with the fit.
    """

    statistics: Statistics
    learner: Learner
    step: float = 0.0
    errors: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file; the M-step follows from the options."""
        return {"statistics": self.statistics.to_dict(), "step": self.step, "errors": self.errors}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], learner: Learner, fitted: HiddenMarkovFitted) -> LearnedFrom:
        """Rebuild from plain data; what does not belong to the fitted value is an error."""
        statistics, step, errors = Statistics.from_dict(plain["statistics"]), plain["step"], plain["errors"]
        if _shapes(statistics) != _shapes(fitted.no_statistics()):
            raise FileFormatError("The statistics in this file are not those of the model's states and emissions.")
        if not (isinstance(step, float) and step >= 0.0):
            raise FileFormatError(f"The last step of EM in this file is {step!r}; expected a number of at least 0.")
        if errors is not None:
            lasting = zip(fitted.parameters.durations, errors.get("durations", ()), strict=True)
            held = tuple(one.holding(np.asarray(numbers)) for one, numbers in lasting)
            parts = ChainParameters(errors["initial"], errors["transitions"], errors["emissions"], held)
            if _shapes(parts) != _shapes(fitted.parameters):
                raise FileFormatError("The standard errors in this file are not those of the model's parameters.")
        return cls(statistics, learner, step, errors)

    def standard_errors(self, fitted: HiddenMarkovFitted) -> dict[str, Any]:
        """Those that were worked out with the fit; where every state was known, from the counts."""
        if self.errors is not None:
            return self.errors
        if fitted.hidden:
            raise EstimateError(
                "The standard errors of this fit were not worked out with it: they take two passes over the sequences "
                "for each parameter. Ask for standard_errors_of(sequences)."
            )
        return constant_errors(self.statistics, self.learner, fitted.parameters, self.step)

    def matched(self, fitted: HiddenMarkovFitted) -> MatchedStatistics | None:
        """Shares of steps, and of transitions and first states among themselves; what is fixed is left out."""
        learner = self.learner
        parts = list(self._parts(fitted.parameters, fitted.states))
        if not parts:
            return None
        total = sum(len(part.names) for part in parts)
        parts = [part.chosen(largest_and_even(part.seen - part.expected, MOST // len(parts))) for part in parts]
        columns = zip(*((part.seen, part.expected, part.pull) for part in parts), strict=True)
        seen, expected, pull = (np.concatenate(column) for column in columns)
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
            about += " The conjugate prior of the distributions moves their statistics off the line."
        return MatchedStatistics(
            names,
            seen,
            expected,
            pull if pull.any() else None,
            about=about,
            total=total if total > len(names) else None,
        )

    def _parts(self, values: ChainParameters, states: Sequence[object]) -> Iterator[MatchedPart]:
        learner, sums = self.learner, self.statistics
        for rows in learner.rows(sums, values):
            yield from of_rows(_cells(rows, states), rows.counts, rows.probabilities, rows.pseudo)
        if "emissions" in learner.free:
            yield from learner.emission.moments(
                learner.gathered(sums), values.emission, [str(state) for state in states]
            )

    def rows_with_prior(self, fitted: HiddenMarkovFitted, more: float) -> list[CountedRows]:
        """First states, transitions and symbols that have pseudo-counts; `more` makes them the Dirichlet prior."""
        learner, states = self.learner, fitted.states
        parts = [
            ([name for row in _cells(rows, states) for name in row], rows.counts, rows.pseudo)
            for rows in learner.rows(self.statistics, fitted.parameters)
        ]
        if "emissions" in learner.free:
            symbols = learner.emission.counted(learner.gathered(self.statistics), [str(state) for state in states])
            parts += [] if symbols is None else [symbols]
        return [
            CountedRows(tuple(names), counts, pseudo + more, fitted.hidden)
            for names, counts, pseudo in parts
            if pseudo.any()
        ]


def _cells(rows: ChainRows, states: Sequence[object]) -> list[list[str]]:
    """The names of the cells of each row."""
    before = ["first"] if rows.part == "initial" else [f"{state} →" for state in states]
    return [[f"{start} {state}" for state in states] for start in before]


def _shapes(arrays: Statistics | ChainParameters) -> dict[str, tuple[int, ...]]:
    """The shapes of all arrays by name."""
    return (
        {"initial": np.shape(arrays.initial), "transitions": np.shape(arrays.transitions)}
        | {f"emission.{name}": np.shape(array) for name, array in arrays.emission.items()}
        | _lasting_shapes(arrays)
    )


def _lasting_shapes(arrays: Statistics | ChainParameters) -> dict[str, tuple[int, ...]]:
    """Those of durations; their counts have as many rows as the longest segment."""
    if isinstance(arrays, ChainParameters):
        return {f"durations.{state}": one.numbers.shape for state, one in enumerate(arrays.durations)}
    counts = arrays.segments
    return {} if counts is None else {"ended": counts.ended.shape[1:], "cut": counts.cut.shape[1:]}
