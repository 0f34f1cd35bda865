"""Options of EM, which no fit reads where nothing is hidden and no value may be missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suffice.checks import choice
from suffice.choices import Squarem, choices
from suffice.errors import OptionError
from suffice.options import Idle


def check_em(options: Mapping[str, Any]) -> None:
    """Refuse options of EM that make no sense, whether a fit comes to EM or not."""
    choice(options["acceleration"], "acceleration", (None, *choices(Squarem)))
    if "variance_floor" in options:
        floor = options["variance_floor"]
        if isinstance(floor, bool) or not (isinstance(floor, int | float) and 0 <= floor < 1):
            raise OptionError(f"variance_floor is {floor!r}; expected a share of the variance of a column, 0 to 1.")


def idle_without_em(hidden: str, *names: str) -> tuple[Idle, ...]:
    """The number of runs and these options of EM; hidden: what may be hidden, in words."""
    unused = f"it is one of EM, which neither hidden {hidden} nor, with missing='raise', missing values call for"
    return (
        Idle(
            "n_init",
            lambda given: not given["hidden"],
            f"EM begins at random where {hidden} are hidden, and hidden= names none",
        ),
        *(Idle(name, lambda given: given["missing"] == "raise" and not given["hidden"], unused) for name in names),
    )
