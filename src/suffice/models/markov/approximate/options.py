"""Options of approximate learning and inference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from suffice.checks import choice, positive, truth, whole_number
from suffice.choices import Scan
from suffice.engines.gibbs import SCANS
from suffice.engines.tempering import Lengths
from suffice.errors import OptionError, listing

#: Solvers that need no exact inference.
APPROXIMATE = ("sml", "pseudolikelihood", "cd", "loopy-bp")


@dataclass(frozen=True)
class GibbsSampling:
    """How chains are run, in learning and in answers.

    Args:
        chains: chains side by side, which persist through a fit.
        sweeps: sweeps of all chains before each update of the weights; the k of contrastive divergence.
        burn_in: sweeps before the first draw, and of every row that `sample` gives.
        draws: draws of each chain for a certificate or an answer, one sweep apart.
        scan: ``"systematic"``, colour by colour, or ``"random"``.
        accuracy: how large the Monte Carlo error of an expectation may be, as a share of the standard error that the
            rows give its observed mean. A stochastic fit of p weights to N rows stops when no mean of a feature is
            further from its expectation than ``accuracy * sqrt(2 log(2 p) / N)`` standard deviations of the feature:
            the largest of p such errors (or than `tolerance`, if that is more).
        tempering: whether replicas at several temperatures, which exchange their states, take over where the chains do
            not mix (R-hat above 1.05), as between the modes of a distribution. They cost as many sweeps as there are
            temperatures.
    """

    chains: int = 128
    sweeps: int = 1
    burn_in: int = 200
    draws: int = 1000
    scan: Scan = "systematic"
    accuracy: float = 0.5
    tempering: bool = True

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        for name, least in (("chains", 2), ("sweeps", 1), ("burn_in", 0), ("draws", 4)):
            whole_number(getattr(self, name), name, least)
        choice(self.scan, "scan", SCANS)
        positive(self.accuracy, "accuracy")
        truth(self.tempering, "tempering")

    @property
    def lengths(self) -> Lengths:
        """How long fresh chains run."""
        return Lengths(self.burn_in, self.draws, self.tempering)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The options by name."""
        return asdict(self)

    def set_params(self, **options: Any) -> Self:
        """A copy with other options."""
        return type(self)(**{**asdict(self), **options})

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data."""
        known = {option.name for option in fields(cls)}
        unknown = sorted(set(plain) - known)
        if unknown:
            raise OptionError(f"GibbsSampling has no option {listing(unknown)}.")
        return cls(**plain)


def read_sampling(given: object) -> GibbsSampling:
    """The options given, or the default ones."""
    if given is None:
        return GibbsSampling()
    if not isinstance(given, GibbsSampling):
        raise OptionError(f"sampling is {given!r}; expected GibbsSampling(chains=..., burn_in=...).")
    return given


def read_batch(size: object) -> int | None:
    """Rows of one update, or None for all."""
    return None if size is None else whole_number(size, "batch_size", otherwise=", or None for all rows")
