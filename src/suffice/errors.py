"""Every error and warning of the library.

::

    SufficeError
    ├── DataError (ValueError)            the rows, columns or weights cannot be used as asked
    │   ├── MissingColumnError (KeyError) a column the model needs is not in the data
    │   ├── UnknownStateError             a value that the variable does not declare
    │   └── MissingValueError             a missing value where the model takes none
    ├── OptionError (ValueError)          an argument of a constructor or method is not valid
    │   ├── NotOfferedError (AttributeError)   a method that the model does not have with these options
    │   └── CallError (TypeError)         an argument that there is not, one too many, or one that is left out
    ├── EstimateError (ValueError)        the estimate asked for does not exist for this data
    ├── NotFittedError (ValueError, AttributeError)   a result was asked for before `fit`
    ├── MissingAttributeError (AttributeError)        a name that nothing has, fitted or not
    ├── MergeError (ValueError)           two summaries do not answer the same question
    ├── FileFormatError (ValueError)      a file is damaged, newer than this version, or hostile
    ├── SizeError (MemoryError)           the work would not fit in memory; raised before allocating
    ├── ClusterError (RuntimeError)       a cluster has no workers left, or has lost what it was asked for
    └── MissingExtraError (ImportError)   an optional dependency is needed; names the extra

    SufficeWarning (UserWarning)
    ├── ConvergenceWarning                an iterative fit stopped before it converged
    ├── SamplingWarning                   a sampled answer whose chains disagree, or that hangs on a few samples
    ├── KindWarning                       a column was read as states and may have been meant as numbers, or the reverse
    ├── ExistenceWarning                  the maximum does not exist: some parameters run to infinity
    │   └── SeparationWarning             the columns separate the classes of a response
    ├── FloorWarning                      a part was held at its floor, where the likelihood has no maximum
    ├── LeftOutWarning                    rows or columns were left out
    └── OptionWarning                     an option was changed, or could not be followed

A message says what was found, what was expected, and what to do.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from types import FrameType, ModuleType


class SufficeError(Exception):
    """Base of all errors raised on purpose by the library."""


class DataError(SufficeError, ValueError):
    """The rows, columns or weights cannot be used as asked."""


class MissingColumnError(DataError, KeyError):
    """A column the model needs is not in the data."""

    __str__ = Exception.__str__  # KeyError shows the repr of its message.


class UnknownStateError(DataError):
    """A value that the variable does not declare."""


class MissingValueError(DataError):
    """A missing value where the model takes none."""


class OptionError(SufficeError, ValueError):
    """An argument of a constructor or method is not valid."""


class NotOfferedError(OptionError, AttributeError):
    """A method that this model does not have with these options."""


class CallError(OptionError, TypeError):
    """An argument that there is not, one too many, or one that is left out."""


class EstimateError(SufficeError, ValueError):
    """The estimate asked for does not exist for this data."""


class NotFittedError(SufficeError, ValueError, AttributeError):
    """A result was asked for before `fit`; where scikit-learn is loaded, its own error of that name too."""

    def __new__(cls, *words: object) -> NotFittedError:
        """One that ``except sklearn.exceptions.NotFittedError`` catches."""
        theirs = sys.modules.get("sklearn.exceptions")
        if theirs is not None and cls is NotFittedError:
            cls = _known_to_both(theirs)
        return super().__new__(cls, *words)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """By its arguments, whatever is loaded where it is read."""
        return NotFittedError, self.args


class MissingAttributeError(SufficeError, AttributeError):
    """A name that nothing has, fitted or not."""


class MergeError(SufficeError, ValueError):
    """Two summaries do not answer the same question."""


class FileFormatError(SufficeError, ValueError):
    """A file is damaged, newer than this version, or hostile."""


class SizeError(SufficeError, MemoryError):
    """The work would not fit in memory; raised before allocating."""


class ClusterError(SufficeError, RuntimeError):
    """A cluster has no workers left, or has lost what it was asked for."""


class MissingExtraError(SufficeError, ImportError):
    """An optional dependency is needed; the message names the extra."""


class SufficeWarning(UserWarning):
    """Base of all warnings of the library."""


class ConvergenceWarning(SufficeWarning):
    """An iterative fit stopped before it converged."""


class SamplingWarning(SufficeWarning):
    """A sampled answer whose chains disagree, or that hangs on a few samples."""


class KindWarning(SufficeWarning):
    """A column was read as states, and might have been meant as numbers, or the other way round."""


class ExistenceWarning(SufficeWarning):
    """The maximum does not exist: some parameters run to infinity."""


class SeparationWarning(ExistenceWarning):
    """The columns separate the classes of a response, so that coefficients run to infinity."""


class FloorWarning(SufficeWarning):
    """A part was held at its floor, where the likelihood has no maximum."""


class LeftOutWarning(SufficeWarning):
    """Rows or columns were left out."""


class OptionWarning(SufficeWarning):
    """An option was changed, or could not be followed."""


class Remark(str):
    """A line of a report that matters for what a result means, and is a Python warning of its `category` as well."""

    category: type[SufficeWarning]

    def __new__(cls, text: str, category: type[SufficeWarning]) -> Remark:
        """Keep the category beside the text."""
        made = super().__new__(cls, text)
        made.category = category
        return made

    def __getnewargs__(self) -> tuple[str, type[SufficeWarning]]:  # type: ignore[override]
        """What makes it again out of a pickle."""
        return str(self), self.category


#: Packages that call estimators for their users: their lines are none of a user's.
_BETWEEN = frozenset({"suffice", "sklearn", "joblib"})
#: What parts of a fit would have said, while they are learned.
_HELD: ContextVar[list[Remark] | None] = ContextVar("held", default=None)
#: Known names that a misspelt one is compared with.
MOST_COMPARED = 2000


@cache
def _known_to_both(theirs: ModuleType) -> type[NotFittedError]:
    """The error of both libraries."""
    return type("NotFittedError", (NotFittedError, theirs.NotFittedError), {"__module__": __name__})


@contextmanager
def holding_remarks() -> Iterator[list[Remark]]:
    """Keep what would be a warning, for the fit that this one is a part of: it says everything once, at its end."""
    held: list[Remark] = []
    token = _HELD.set(held)
    try:
        yield held
    finally:
        _HELD.reset(token)


def warn(message: str, category: type[SufficeWarning] = SufficeWarning) -> None:
    """Warn at the line of the user that led here: the first outside of the package and of what calls estimators."""
    held = _HELD.get()
    if held is not None:
        held.append(Remark(message, category))
        return
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _package_of(frame) in _BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def after(prefix: str, note: str) -> str:
    """A line of a report behind a prefix; a remark stays one."""
    return Remark(prefix + note, note.category) if isinstance(note, Remark) else prefix + note


def announce(notes: Iterable[str]) -> None:
    """Warn of the remarks among the lines of a report: once for each category, of all lines together."""
    by_category: dict[type[SufficeWarning], list[str]] = {}
    for note in dict.fromkeys(notes):
        if isinstance(note, Remark):
            by_category.setdefault(note.category, []).append(str(note))
    for category, lines in by_category.items():
        warn("; ".join(lines), category)


def asked_by(package: str) -> bool:
    """Whether the line outside of this package that led here is one of another package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _package_of(frame) == "suffice":
        frame = frame.f_back
    return _package_of(frame) == package


def _package_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional dependency, or say which extra brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{purpose} needs the package {module.split('.')[0]!r}, which is not installed. "
            f'Install it with: python -m pip install "suffice[{extra}]"'
        ) from error


def listing(values: Iterable[object], most: int = 12) -> str:
    """Values for a message: the first few in full, the rest as a number."""
    shown = [shortened(value) for _, value in zip(range(most + 1), values, strict=False)]
    if len(shown) <= most:
        return ", ".join(shown) if shown else "none"
    rest = f"{len(values) - most} more" if isinstance(values, Sized) else "more"
    return ", ".join(shown[:most]) + f", ... ({rest})"


def meant(name: object, known: Iterable[object], *, cutoff: float = 0.6) -> str:
    """For a message, behind a full stop: the known name that comes nearest to one that is not known, if any does.

    cutoff: how much alike they are at least, from 0 to 1.

    >>> meant("rian", ["rain", "wet"])
    " Did you mean 'rain'?"
    """
    from difflib import get_close_matches

    # A comparison takes microseconds, and a vocabulary may have a million words.
    few = [other for _, other in zip(range(MOST_COMPARED), known, strict=False)]
    folded = {_spelled(other): other for other in reversed(few)}
    near = get_close_matches(_spelled(name), folded, n=1, cutoff=cutoff)
    return f" Did you mean {shortened(folded[near[0]])}?" if near else ""


def _spelled(name: object) -> str:
    return (name if isinstance(name, str) else shortened(name)).casefold()


def shortened(value: object) -> str:
    """What a value looks like, in at most a line."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no integers of more than 4,300 digits.
        return f"a {type(value).__name__} with very long integers"
    if text.startswith("<") and " object at 0x" in text:  # An address tells a reader nothing.
        return f"a {type(value).__module__.partition('.')[0]} {type(value).__name__}"
    shape = getattr(value, "shape", None)
    if "\n" in text and isinstance(shape, tuple):  # A table or an array takes more than a line.
        return f"a {type(value).__name__} of shape {shape}"
    return text if len(text) <= 200 else f"{text[:160]} ..."


def unknown_variable(name: object, known: Sequence[object]) -> MissingColumnError:
    """The error for a variable that a model does not have."""
    return MissingColumnError(
        f"There is no variable {shortened(name)}.{meant(name, known)} The variables are: {listing(known)}."
    )


def without_states(name: object, rows: int) -> DataError:
    """The error for a discrete variable of which nothing tells the states."""
    if not rows:
        return DataError("The data have no rows, so that nothing tells the states. Give rows, or declare states=.")
    return DataError(
        f"Column {name!r} has no value in {rows} rows and no declared states. Declare states=, or "
        f"hidden= where "
        "it is never seen."
    )
