"""A hidden Markov model as plain data for a file, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from suffice.errors import FileFormatError, listing
from suffice.fitting.report import Report
from suffice.fitting.template import TemplateEstimator
from suffice.models.hidden_markov.parameters import Parameters, Statistics
from suffice.models.hidden_markov.structure import read_rows


class HiddenMarkovFile(TemplateEstimator):
    """Writing and reading; no sequence is kept."""

    def to_plain(self) -> dict[str, Any]:
        """Options, parameters, counts of known states, and report."""
        options = {name: None if name in self._transient else self._options[name] for name in self._option_names()}
        state: dict[str, Any] = {"options": options, "fitted": None}
        if "_values" not in self.__dict__:
            return state
        values, sums = self._values, self._statistics
        fitted = {
            "states": list(self._names),
            "columns": self._columns,
            "known": self._emission.describe(),
            "initial": values.initial,
            "transitions": values.transitions,
            "emission": values.emission,
            "scores": list(self.__dict__.get("_scores", ())),
            "counts": _plain_counts(sums),
            "expected": None if sums is not None else _plain_counts(self.__dict__.get("_expected")),
        }
        return state | {"fitted": fitted, "report": self.report_.to_plain()}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data, checking shapes and rows."""
        options = dict(plain["options"])
        known = cls._option_names()
        if set(options) - set(known):
            raise FileFormatError(f"{cls.__name__} has no option {listing(sorted(set(options) - set(known)))}.")
        model = cls(**{name: value for name, value in options.items() if name not in cls._transient})
        fitted = plain["fitted"]
        if fitted is None:
            return model
        model._restore_fit(fitted)
        model.report_ = Report.from_plain(plain["report"])
        return model

    def _build(self, hidden: bool, columns: Any, known: Any = None, variables: Any = None) -> None:
        raise NotImplementedError

    def _restore_fit(self, fitted: Mapping[str, Any]) -> None:
        self._names, self._columns = tuple(fitted["states"]), fitted["columns"]
        size = len(self._names)
        width = len(fitted["known"].get("parts", fitted["known"].get("centre", [0])))
        none = [np.zeros(0)] * max(width, 1)
        self._build(fitted["counts"] is None, none, fitted["known"])
        initial = read_rows(fitted["initial"], (size,), "initial")
        transitions = read_rows(fitted["transitions"], (size, size), "transitions")
        if initial is None or transitions is None:
            raise FileFormatError("A hidden Markov model needs initial and transition probabilities.")
        emission = {name: np.asarray(array, dtype=np.float64) for name, array in fitted["emission"].items()}
        if set(emission) != set(self._emission.kinds) or not self._emission.inside(emission):
            raise FileFormatError("The parameters of the emissions are not those of the laws that the model has.")
        if not all(_belongs(array, self._emission.kinds[name], size) for name, array in emission.items()):
            raise FileFormatError(f"The parameters of the emissions are not those of {size} states.")
        self._values = Parameters(initial, transitions, emission)
        self._scores = tuple(fitted["scores"])
        self._statistics = _counts(fitted["counts"])
        self._expected = self._statistics or _counts(fitted.get("expected"))


def _belongs(array: NDArray[np.float64], kind: str, size: int) -> bool:
    """Whether an array has rows, or matrices, for each of so many states; those of mixtures have several for each."""
    axes = 2 if kind in ("simplex", "real") else max(array.ndim, 2)
    return array.ndim == axes and (kind == "shared" or (len(array) > 0 and len(array) % size == 0))


def _plain_counts(sums: Statistics | None) -> dict[str, Any] | None:
    if sums is None:
        return None
    emission = {name: part.tolist() if part.dtype == object else part for name, part in sums.emission.items()}
    return {"initial": sums.initial, "transitions": sums.transitions, "emission": emission}


def _counts(plain: Any) -> Statistics | None:
    if plain is None:
        return None
    sums = {name: _array(value) for name, value in plain["emission"].items()}
    return Statistics(np.asarray(plain["initial"]), np.asarray(plain["transitions"]), sums)


def _array(value: Any) -> Any:
    """An array of numbers, or of summaries."""
    if isinstance(value, np.ndarray):
        return value
    found = np.empty(len(value), dtype=object)
    found[:] = value
    return found
