"""Variables that are never observed, as a user declares them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from suffice.domain import Variable, declare
from suffice.errors import OptionError


def hidden_variables(hidden: Mapping[Any, Any] | None) -> dict[Hashable, Variable]:
    """The hidden variables by name: a number of states, a list of them, or "real" each."""
    found: dict[Hashable, Variable] = {}
    for name, value in (hidden or {}).items():
        if isinstance(value, int) and value < 1:
            raise OptionError(f"hidden[{name!r}] is {value}; expected a number of states of at least 1.")
        found[name] = declare(name, range(value) if isinstance(value, int) else value)
    return found
