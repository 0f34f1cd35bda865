"""How large numbers of conditional random fields may be."""

from __future__ import annotations

#: Numbers beyond this overflow when they are squared and summed.
LARGEST = 1e100


def too_large(what: str, value: float) -> str:
    """What is said about a number that is too large."""
    return f"{what} is {value:g}; sums of numbers beyond {LARGEST:g} overflow. Divide the feature by its largest value."
