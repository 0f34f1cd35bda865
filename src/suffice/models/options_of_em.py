"""Options of EM, which no fit reads where nothing is hidden and no value may be missing."""

from __future__ import annotations

from suffice.options import Idle


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
