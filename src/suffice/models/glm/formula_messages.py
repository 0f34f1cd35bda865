"""What is wrong with a formula, or with the rows that it is asked of, in the words of this library."""

from __future__ import annotations

import importlib
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from suffice.domain import state_key
from suffice.errors import (
    DataError,
    MissingColumnError,
    MissingExtraError,
    MissingValueError,
    SufficeError,
    UnknownStateError,
    listing,
    meant,
    shortened,
)

#: What formulas of R have in other words, or in arguments; the first that a formula has.
WORDS_OF_R = {
    r"\bcbind\(": "cbind() is not known here. Give the share of successes as the response, and trials= to fit",
    r"\bfactor\(": "factor() is not known here. Write C() for columns that hold levels",
    r"\bns\(": "ns() is not known here. Write cr(x, df=4), a natural cubic spline",
    r"\b(?:s|te|ti|lo)\(": "terms whose smoothness is estimated are not fitted here. Write a spline: cr(x, df=4)",
    r"\([^()]*\|[^()]*\)": "random effects are not fitted here. Write C(group), with a prior to hold its effects",
    r"\bI\([^)]*\^": "Inside of I() is Python, where powers are written **. Write I(x**2)",
    r"~\s*\.|[+*:-]\s*\.(?!\d)": "The dot is not known here. Name the columns",
    r"^[^~(]*=": "A formula has ~ between the response and its terms. Write y ~ x",
}


@contextmanager
def formula_errors(frame: Any, formula: str | None = None) -> Iterator[None]:
    """What formulaic, or a function that a term calls, says of a formula and of rows is an error of the data."""
    which = "The formula" if formula is None else f"The formula {formula!r}"
    try:
        yield
    except (SufficeError, Warning):
        raise
    except ImportError as error:
        raise MissingExtraError(
            f"{which} of these rows needs the package {error.name!r}, which is not installed. Install it with: "
            'python -m pip install "suffice[files]", or give a pandas frame.'
        ) from error
    except Exception as error:
        raise _explained(which, formula or "", str(error), list(map(str, getattr(frame, "columns", ())))) from error


def _explained(which: str, formula: str, words: str, columns: Sequence[str]) -> DataError:
    """The error for what formulaic says."""
    known = f" Its columns are: {listing(columns)}." if columns else ""
    strange = re.search(r"NameError: (?:`(.+?)` is not present|name '(.+?)' is not defined)", words)
    name = "" if strange is None else strange[1] or strange[2]
    term = re.search(r"factor `(.+?)`\.", words)
    text = formula or ("" if term is None else term[1])
    instead = next((advice for pattern, advice in WORDS_OF_R.items() if re.search(pattern, text)), None)
    called = bool(name) and re.search(rf"\b{re.escape(name)}\s*\(", text) is not None
    within = "" if term is None or term[1] in (name, formula) else f" in {term[1]!r}"
    if name not in ("", ".") and not called:
        return MissingColumnError(
            f"{which} names {name!r}{within}, and there is no such column.{meant(name, columns)}{known}"
        )
    if instead is not None:
        return DataError(f"{which} cannot be read with these rows: {instead}.{known}")
    if called:
        return DataError(
            f"{which} calls {name}(){within}, and there is no such function. {_function_meant(name)}{known}"
        )
    attribute = re.search(r"module 'numpy' has no attribute '(.+?)'", words)
    if attribute is not None:
        near = meant(f"np.{attribute[1]}", [f"np.{one}" for one in _functions_of_numpy()])
        return DataError(
            f"{which} calls np.{attribute[1]}(), which NumPy does not have.{near} Expected one of its ufuncs.{known}"
        )
    spaced = [one for one in columns if not one.isidentifier() and one in formula and f"`{one}`" not in formula]
    if spaced:
        return DataError(
            f"{which} cannot be read: the name of the column {spaced[0]!r} is no word. Write it between backquotes, "
            f"`{spaced[0]}`.{known}"
        )
    return DataError(
        f"{which} cannot be read with these rows: {_plainly(words)}. Expected a formula such as 'y ~ x + C(z)'.{known}"
    )


def _functions_of_numpy() -> list[str]:
    return [name for name in dir(np) if isinstance(getattr(np, name), np.ufunc)]


def _function_meant(name: str) -> str:
    """What to write for a function that a formula does not have."""
    own = sorted(
        one for one in importlib.import_module("formulaic.transforms").TRANSFORMS if one not in ("np", "contr")
    )
    if name in _functions_of_numpy():
        return f"Write np.{name}()."
    return (
        f"{meant(name, own).strip()} Its functions are: {listing(own, 30)}, and those of NumPy, as np.sqrt().".strip()
    )


def _plainly(words: str) -> str:
    """The first sentence of formulaic, and the place that it marks with colours."""
    bare = re.sub(r"\x1b\[[0-9;]*m", "", words).strip()
    first = re.sub(r"\s+|\(<unknown>, line 1\)", " ", bare.split("\n")[0]).rstrip(". ")
    first = re.sub(r"Operator `(.+?)` has insuff\w+ arguments.*", r"the operator \1 lacks a term beside it", first)
    first = re.sub(r"Operator `(.+?)` is .*incorrectly used", r"the operator \1 cannot stand here", first)
    marked = re.search(r"⧛(.*?)⧚", bare)
    return first if marked is None else f"{first}, at {bare[: marked.end()].split(chr(10))[-1].translate(_MARKS)!r}"


#: The marks that formulaic puts around a place.
_MARKS = str.maketrans("", "", "⧛⧚")


def sides_of(parsed: Any, formula: str) -> tuple[Any, Any]:
    """The left of a formula, or None, and the right; both of a single part."""
    left, right = (parsed.lhs, parsed.rhs) if hasattr(parsed, "lhs") else (None, parsed)
    if any(
        isinstance(side if isinstance(side, tuple) else getattr(side, "_structure", {}).get("root"), tuple)
        for side in (left, right)
    ):
        raise DataError(
            f"The formula {formula!r} has several parts, with | between them, and a regression has one. Write + "
            "between terms, or a:b for an interaction."
        )
    return left, right


# -- rows --------------------------------------------------------------------------------------------------------------


def missing_rows(missing: int, rows: int, frame: Any = None, columns: Sequence[Hashable] = ()) -> MissingValueError:
    """The error for rows without a value in a column of a formula, which formulaic would leave out.

    frame, columns: the rows, where they are at hand, and the columns that the formula names.
    """
    for name in columns:
        gaps = np.flatnonzero(_is_missing(frame, name))
        if len(gaps):
            many = f"{len(gaps)} missing values, the first" if len(gaps) > 1 else "a missing value"
            return MissingValueError(
                f"Column {name!r} has {many} in row {int(gaps[0])}; a regression needs every value. Leave these rows "
                "out, or fill the missing values."
            )
    where = "the columns of the formula" if frame is None else "the terms of the formula, though not in its columns"
    hint = "" if frame is None else " A function such as log() may not be defined for them."
    return MissingValueError(
        f"{missing} of {rows} rows have missing values in {where}; a regression needs every value. "
        f"Leave these rows out, or fill the missing values.{hint}"
    )


def _is_missing(frame: Any, name: Hashable) -> Any:
    return np.array([_gap(value) for value in _values(frame, name)], dtype=bool)


def _gap(value: Any) -> bool:
    """Whether a value is missing, whatever its library writes for that."""
    return value is None or (not isinstance(value, str) and str(value) in ("nan", "NaT", "<NA>"))


def _values(frame: Any, name: Hashable) -> list[Any]:
    column = frame[name]
    listed = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
    return list(listed)


def named_columns(formula: str, columns: Sequence[Hashable]) -> list[Hashable]:
    """The columns of a table that a formula names."""
    words = set(re.findall(r"[^\W\d]\w*", formula))
    return [name for name in columns if name in words or f"`{name}`" in formula]


def check_values(frame: Any, columns: Sequence[Hashable], levels: Mapping[str, Sequence[Hashable]]) -> None:
    """Raise where new rows hold a level that the fit has not seen, or text where it had numbers.

    levels: those of the columns that are factors.
    """
    for name in columns:
        known = {state_key(level) for level in levels.get(str(name), ())}
        for row, value in enumerate(_values(frame, name)):
            if known and not _gap(value) and state_key(value) not in known:
                seen = levels[str(name)]
                raise UnknownStateError(
                    f"Column {name!r} holds {value!r} (row {row}), a level that the fit has not seen: "
                    f"{listing(seen, 8)}.{meant(value, seen)} Correct it, or leave the row out."
                )
            if not known and isinstance(value, str):
                raise DataError(
                    f"Column {name!r} holds {shortened(value)} (row {row}), and the fit had numbers: give such."
                )
