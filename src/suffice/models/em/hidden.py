"""Variables that are never observed, as a user declares them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from suffice.domain import Variable, declare
from suffice.errors import OptionError


def hidden_variables(hidden: Mapping[Any, Any] | None) -> dict[Hashable, Variable]:
    """The hidden variables by name: a number of states, a list of them, or "real" each."""
    variables: dict[Hashable, Variable] = {}
    for name, value in (hidden or {}).items():
        number = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if number and value < 1:
            raise OptionError(f"hidden[{name!r}] is {value}; expected a number of states of at least 1.")
        listed = isinstance(value, Iterable) and not isinstance(value, str)
        if not (number or listed or isinstance(value, Variable) or value == "real"):
            raise OptionError(
                f"hidden[{name!r}] is {value!r}; expected a whole number of states, a list of states, or 'real'."
            )
        variables[name] = declare(name, range(value) if number else value)
        if variables[name].kind == "discrete" and not variables[name].states:
            raise OptionError(f"hidden[{name!r}] lists no states; expected at least one.")
    return variables
