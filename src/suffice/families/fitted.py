"""The fitted value of a distribution: one member of its family."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import FileFormatError, OptionError
from suffice.statistics import Summary

if TYPE_CHECKING:
    from suffice.families.member import FamilyMember
    from suffice.fitting.portrait import Portrait


@dataclass(frozen=True, eq=False)
class FamilyFitted:
    """One distribution of a family, given or learned.

    `posterior` is the conjugate posterior where there was a prior; `names` are the columns that were learned, None
    where nothing was.
    """

    member: FamilyMember
    posterior: Any = None
    names: tuple[Hashable, ...] | None = None

    @property
    def title(self) -> str:
        """The name of the family."""
        return self.member.title

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The usual parameters by name."""
        return self.member.parameters_

    @property
    def n_params(self) -> int:
        """Parameters that were learned."""
        return self.member.n_params

    def log_likelihood(self, summary: Summary) -> float:
        """Sum over the rows of a summary, natural logarithm."""
        return self.member.log_likelihood(summary)

    def score_samples(self, rows: Any) -> NDArray[np.float64]:
        """Log density or log probability of each row (n,)."""
        return self.member.score_samples(rows)

    def portrait(self) -> Portrait:
        """What there is to see of it."""
        return self.member.portrait()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file; the family is written by its options."""
        states = self.member.known.get("seen_states")
        held = {"posterior": self.posterior, "states": None if states is None else list(states)}
        names = None if self.names is None else list(self.names)
        plain = {"parameters": dict(self.parameters), "names": names}
        return plain | {name: value for name, value in held.items() if value is not None}

    @classmethod
    def from_dict(cls, family: FamilyMember, plain: Mapping[str, Any]) -> FamilyFitted:
        """The fitted value of a family out of a file."""
        names, posterior = plain["names"], plain.get("posterior")
        if names is not None and not (names and all(isinstance(name, Hashable) for name in names)):
            raise FileFormatError(f"The {family.title} has learned columns whose names are {names!r}.")
        if posterior is not None and type(posterior).__name__ not in family.conjugate_priors:
            raise OptionError(f"{type(posterior).__name__} is not a posterior of {family.title}.")
        if posterior is not None and set(family.parameter_names) <= set(family.known):
            raise FileFormatError(f"The {family.title} has a posterior, and all of its parameters are given.")
        return cls(family.restored(plain), posterior, None if names is None else tuple(names))
