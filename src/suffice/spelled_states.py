"""Values that read like a state and are of another type, as a reader of files may have made them: what to do."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from suffice.errors import shortened


def other_type(name: Hashable, value: object, states: Sequence[Hashable]) -> str:
    """For a message: how to turn a column that holds a value into one that holds the states; empty if nothing does."""
    alike = [state for state in states if str(state).casefold() == str(value).casefold()]
    if not alike or type(alike[0]) is type(value):
        return ""
    column, kind = shortened(name), type(alike[0])
    make = f"astype({kind.__name__})" if _turns_into(value, alike[0]) else f"map({by_value(value, states)})"
    return (
        f" The states are of type {kind.__name__}: make the column so, as by data[{column}].{make}, or by "
        f"dtype={kind.__name__} where a file is read; or give the path of the file to this library."
    )


def by_value(value: object, states: Sequence[Hashable]) -> dict[Any, Hashable]:
    """The states by values of the type and the spelling of one that reads like a state."""
    if isinstance(value, bool):
        return {one: state for one in (True, False) for state in states if str(state).casefold() == str(one).casefold()}
    text = str(value)
    spell = str.upper if text.isupper() else str.lower if text.islower() else str
    return {spell(str(state)): state for state in states}


def _turns_into(value: Any, state: Any) -> bool:
    """Whether the type of a state makes this state of a value that reads alike; ``bool`` makes True of any text."""
    try:
        return not isinstance(state, bool) and bool(type(state)(value) == state)
    except (TypeError, ValueError):
        return False
