"""A fit that is done: what an estimator keeps of it.

It loads nothing that learns, so that a model whose parameters were given, as those of a file, can be asked at once.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import numpy as np

from suffice.checks import read_only
from suffice.domain import Domain, Variable
from suffice.options import Parameterized
from suffice.records import fields_of

if TYPE_CHECKING:
    from suffice.fitting.contract import Judgement
    from suffice.fitting.report import Report

F = TypeVar("F")


class Fit(Generic[F]):
    """A fit that is done: the fitted value, its receipt, what was measured at it, and the data where they add up.

    What is measured when someone first looks holds its problem until then. A value that was given, not fitted, has no
    receipt.
    """

    def __init__(
        self,
        fitted: F,
        report: Report | None = None,
        judgement: Judgement | None = None,
        *,
        later: Callable[[], tuple[Report, Judgement]] | None = None,
        data: Any = None,
    ) -> None:
        """later: a function that gives report and judgement, where they are not given."""
        self.fitted, self.data = sealed(fitted), data
        #: The task by which the data were learned: what options say later is about the next fit.
        self.task: Any = None
        #: The package whose frame was learned from, for draws of the same kind; None for other data, and out of files.
        self.frame: str | None = None
        #: How many columns were seen in `fit` and their names, where they were in memory.
        self.seen: Any = None
        #: The options that it was made with, but for those that only steer a run: those set later are of the next fit.
        self.options: dict[str, Any] = {}
        #: What was worked out about the spread of the parameters, for further answers with error bars.
        self.spreads: Any = None
        self._report, self._judgement, self._later = report, judgement, later

    def made_with(self, options: dict[str, Any]) -> Self:
        """The same fit, which remembers the options of the first model that took it over."""
        self.options = self.options or options
        return self

    @property
    def report(self) -> Report | None:
        """The receipt; None for a value that was given."""
        if self._report is None:
            self._look()
        return self._report

    @property
    def judgement(self) -> Judgement | None:
        """What was measured at the fitted value; None for a value that was given."""
        if self._judgement is None:
            self._look()
        return self._judgement

    @judgement.setter
    def judgement(self, measured: Judgement) -> None:
        """Keep what was measured anew, of a fit out of a file."""
        self._judgement = measured

    def measured(self) -> Judgement | None:
        """What was measured at the fitted value; of one out of a file measured anew, where its data are at hand."""
        if self.judgement is None and self.data is not None:
            self.judgement = self.task.problem(self.data, None).judge(self.fitted)
        return self.judgement

    def _look(self) -> None:
        if self._later is not None:
            self._report, self._judgement = self._later()
            self._later = None

    def __getstate__(self) -> dict[str, Any]:
        """Pickles and copies hold the receipt, not the problem; what was measured is measured anew where data are."""
        self._look()
        again = self.data is not None and self.data.lasting
        judgement = None if again else self._judgement
        return {**fields_of(self), "_judgement": judgement, "spreads": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Arrays come out of a pickle writeable."""
        fields_of(self).update(state)
        sealed(self.fitted)


#: Parts of values that hold no arrays of their own.
_PLAIN = {bool, float, int, str, type(None), frozenset, Domain, Variable}


def sealed(value: F) -> F:
    """A fitted value whose arrays cannot be written to, nor those of the frozen values that it is made of.

    Fields are replaced by views that are read-only: what a user gave stays as it was.
    """
    kind = type(value)
    if kind is dict:
        _seal(value)  # type: ignore[arg-type]
    elif kind is tuple or kind is list:
        parts: Any = value
        kinds = set(map(type, parts))
        # Edges and cliques, of which there may be thousands, hold names alone.
        if kinds - _PLAIN and not (kinds == {tuple} and _PLAIN.issuperset(map(type, chain.from_iterable(parts)))):
            for part in parts:
                if type(part) not in _PLAIN:
                    sealed(part)
    elif kind.__module__.startswith("suffice.") and _is_frozen(kind):
        _seal(fields_of(value))
    return value


def _is_frozen(kind: type) -> bool:
    """Whether instances refuse to be changed; models do too, but what they hold was given by a user."""
    plain: object = object.__setattr__
    return kind.__setattr__ is not plain and not issubclass(kind, Parameterized)


def _seal(parts: dict[Any, Any]) -> None:
    for name, part in parts.items():
        kind = type(part)
        if kind in _PLAIN:
            continue
        if kind is np.ndarray:
            if part.flags.writeable:
                parts[name] = read_only(part)
        elif kind is tuple and any(type(item) is np.ndarray and item.flags.writeable for item in part):
            parts[name] = tuple(read_only(item) if type(item) is np.ndarray else item for item in part)
        else:
            sealed(part)
