"""The fitted value of a distribution: its family and its parameters, given or learned."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from suffice.fitting.driver import Fit
from suffice.statistics import Summary

if TYPE_CHECKING:
    from suffice.families.base import Distribution
    from suffice.fitting.portrait import Portrait


@dataclass(frozen=True, eq=False)
class FamilyFitted:
    """One distribution of a family.

    `family` declares which (its states, its columns, what is known of it); `posterior` is the conjugate posterior
    where there was a prior. `names` are the columns that were learned, `states` the states that were seen in them;
    None where nothing was learned, or there are none.
    """

    family: Distribution
    parameters: Mapping[str, Any]
    posterior: Any = None
    names: tuple[Hashable, ...] | None = None
    states: tuple[Hashable, ...] | None = None

    @property
    def title(self) -> str:
        """The name of the family."""
        return type(self.family).__name__

    @property
    def distribution(self) -> Distribution:
        """The distribution itself, which evaluates and samples."""
        return self.family._with_fit(Fit(self))

    @property
    def n_params(self) -> int:
        """Parameters that were learned."""
        return self.distribution._n_free()

    def log_likelihood(self, summary: Summary) -> float:
        """Sum over the rows of a summary, natural logarithm."""
        return self.distribution._log_likelihood(summary)

    def score_samples(self, rows: Any) -> NDArray[np.float64]:
        """Log density or log probability of each row (n,)."""
        return self.distribution.score_samples(rows)

    def portrait(self) -> Portrait:
        """What there is to see of it."""
        return self.distribution.portrait()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file; the family is written by its options."""
        held = {"posterior": self.posterior, "states": None if self.states is None else list(self.states)}
        names = None if self.names is None else list(self.names)
        found = {"parameters": dict(self.parameters), "names": names}
        return found | {name: value for name, value in held.items() if value is not None}
