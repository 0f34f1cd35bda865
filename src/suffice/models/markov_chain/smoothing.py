"""Ways to give events that were never seen a share: options of a Markov chain, plain and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np

from suffice.calls import explain_methods
from suffice.checks import choice, is_share, share, whole_number
from suffice.errors import OptionError, listing
from suffice.families.base import as_floats


class Smoothing:
    """What the ways have in common: options by name, for searches and files."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The options."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def set_params(self, **options: Any) -> Self:
        """A copy with other options; the original stays as it is."""
        known = self.get_params()
        if set(options) - set(known):
            raise OptionError(f"{type(self).__name__} has the options {listing(known)}; found {listing(options)}.")
        return replace(self, **options)  # type: ignore[type-var]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        plain: dict[str, Any] = asdict(self)  # type: ignore[call-overload]
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data, checking it."""
        return cls(**plain)


@explain_methods
@dataclass(frozen=True)
class Interpolation(Smoothing):
    """``p(w | h) = weight p(w | h') + (1 - weight) n(h, w) / n(h)``, where h' is h without its oldest word.

    The recursion ends at the background, a distribution of the next word alone.

    Args:
        weight: a number from 0 to 1 (or one for each length of history, shortest first); "deleted" for the weight
            that makes events likeliest when each is left out of all counts, those of shorter histories and of the
            background among them (leave-one-out), one length of history after the other;
            "held-out" for the weight that makes the sequences of ``fit(..., held_out=)`` likeliest.
        background: "unigram" (how often each word comes next), "uniform", or probabilities: a dict by state, or an
            array in the order of the states.
        buckets: None for one weight; or limits of n(h), such as (1, 5, 20): histories seen equally often share one,
            which is learned.

    >>> Interpolation("deleted").weight
    'deleted'
    """

    weight: Any = "deleted"
    background: Any = "unigram"
    buckets: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        if isinstance(self.weight, list | tuple | np.ndarray):
            object.__setattr__(self, "weight", tuple(as_floats(self.weight, "weight").ravel().tolist()))
        given = self.weight if isinstance(self.weight, tuple) else (self.weight,)
        if self.weight == "leave-one-out":
            object.__setattr__(self, "weight", "deleted")
        elif self.weight not in ("deleted", "held-out") and not (given and all(map(is_share, given))):
            raise OptionError(
                f"The weight is {self.weight!r}; expected a number from 0 to 1, several of them, 'deleted' or "
                "'held-out'."
            )
        if isinstance(self.background, str):
            choice(self.background, "The background", ("unigram", "uniform"), otherwise=", or probabilities")
        if self.buckets is not None:
            limits = tuple(as_floats(self.buckets, "buckets").ravel().tolist())
            if not limits or any(a >= b for a, b in pairwise(limits)):
                raise OptionError(
                    f"buckets is {self.buckets!r}; expected rising limits of how often a history is seen."
                )
            object.__setattr__(self, "buckets", limits)
            if not self.learned:
                raise OptionError(
                    f"buckets={self.buckets!r} has no effect: the weight is given, {self.weight!r}, and is that of "
                    "every history. Use weight='deleted' or 'held-out', which learn one for each bucket."
                )

    @property
    def learned(self) -> bool:
        """Whether the weight is learned from data."""
        return isinstance(self.weight, str)


@explain_methods
@dataclass(frozen=True)
class AbsoluteDiscount(Smoothing):
    """A constant is taken off every count, and what is gained goes to the shorter history.

    ``p(w | h) = max(n(h, w) - d, 0) / n(h) + weight(h) p(w | h')``.

    Args:
        discount: from 0 to 1; by default ``n1 / (n1 + 2 n2)`` for each length, from the runs seen once and twice.
        backoff: whether seen words keep the discounted share alone, and only unseen ones look at the shorter history.
    """

    discount: float | None = None
    backoff: bool = False

    def __post_init__(self) -> None:
        """Check the options."""
        if self.discount is not None:
            share(self.discount, "The discount", otherwise=", or None")


@explain_methods
@dataclass(frozen=True)
class Katz(Smoothing):
    """Backing off by Good-Turing counts: runs seen at most `most` times give a share to those never seen.

    A run seen r times counts as ``r* = (r + 1) n_{r+1} / n_r``, corrected so that runs seen more than `most` times
    keep their counts. Words never seen after a history share its weight in proportion to ``p(w | h')``.

    Args:
        most: counts above this one are trusted.
    """

    most: int = 5

    def __post_init__(self) -> None:
        """Check the option."""
        whole_number(self.most, "most")


@explain_methods
@dataclass(frozen=True)
class KneserNey(Smoothing):
    """Interpolated Kneser-Ney smoothing: shorter runs count in how many contexts they occur, not how often.

    Args:
        discounts: one number, or three for runs that occur once, twice and more often; by default those of Chen and
            Goodman for each length, from the runs that occur one to four times.
        modified: whether there are three discounts (or one, ``n1 / (n1 + 2 n2)``), where they are not given.
        uniform: whether the shortest runs give a share to the uniform distribution, so that no word has probability
            zero.
    """

    discounts: Any = None
    modified: bool = True
    uniform: bool = True

    def __post_init__(self) -> None:
        """Check the options."""
        if self.discounts is None:
            return
        numbers = as_floats(self.discounts, "discounts")
        given = (float(numbers),) * 3 if numbers.ndim == 0 else tuple(numbers.ravel().tolist())
        if len(given) != 3 or not all(d >= 0 for d in given):
            raise OptionError(f"discounts is {self.discounts!r}; expected one or three numbers of at least 0.")
        if any(d > most for d, most in zip(given, (1, 2, 3), strict=True)):
            raise OptionError(
                f"discounts is {self.discounts!r}; expected at most 1, 2 and 3, as no more can be taken off."
            )
        if not self.modified:
            raise OptionError(
                "modified=False has no effect: it chooses how many discounts are worked out, and discounts= gives "
                "them. Leave one of the two out."
            )
        object.__setattr__(self, "discounts", given)
