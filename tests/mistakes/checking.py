"""What holds of every mistake: an error of the library says what was found, what was expected and what to do.

A row of a table is a call as a user writes it, the class of its error, and pieces of the message in their order, with
"..." between them. The call is evaluated with the names that the table is given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf

#: A call, the class of its error, and pieces of the message, in order, with "..." between them.
Row = tuple[str, type[Exception], str]

#: What was expected, or what to do: every message has one of these.
ADVICE = re.compile(
    r"[Ee]xpected|Accepted are|[Dd]id you mean|must|needs?\b|takes?\b|known|at least|at most"
    r"|name every|name columns|one of|instead|first"
    r"|\b(Give|Call|Use|Leave|Fit|Declare|Correct|Check|Remove|Name|Divide|Ask|Fill|Rename|Read|Write|Add|Join|Install|Drop)\b"
    r"|\b(give|call|use|leave|declare|correct|check|remove|fit it|rename|install) "
    r"|(are|is|has|have):? '|Its \w+ are"
)
#: What no reader can use.
NOISE = re.compile(r"0x[0-9a-f]{6}|<class|<function|object at|Traceback|\bnan nan\b|__\w+__")
LONGEST = 900


def check(row: Row, names: Mapping[str, Any]) -> None:
    """Make the mistake of a row and read the message."""
    call, error, pieces = row
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the class is compared below, exactly
        eval(call, {"sf": sf, "np": np, "pd": pd, **names})
    message = str(caught.value)
    assert type(caught.value) is error, f"{type(caught.value).__name__}: {message}"
    assert issubclass(error, sf.SufficeError | FileNotFoundError)
    pattern = ".*".join(re.escape(piece.strip()) for piece in pieces.split("..."))
    assert re.search(pattern, message, re.DOTALL), message
    assert_grammar(message)


def assert_grammar(message: str) -> None:
    """What holds of all messages: a sentence of readable length, with advice and without noise."""
    assert message[:1].strip(), message
    assert len(message) <= LONGEST, message
    assert message.rstrip()[-1] in ".?:)\"'}]", message
    assert ADVICE.search(message), message
    assert not NOISE.search(message), message


def rows_of(table: list[Row], least: int = 100) -> list[Any]:
    """The rows as parameters of a test, each named by its call; a call stands in a table once."""
    calls = [call for call, _, _ in table]
    assert len(set(calls)) == len(calls), [call for call in calls if calls.count(call) > 1]
    assert len(table) >= least, len(table)
    return [pytest.param(row, id=row[0]) for row in table]
