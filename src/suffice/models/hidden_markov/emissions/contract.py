"""What the chain asks of the laws that its states emit.

An emission is fixed for a fit: how many laws there are, what columns they read, which priors they have. Their
parameters are a dictionary of arrays whose first axis counts the laws, and so are their statistics, which add up over
steps: the E-step weighs them by the posterior of the states, the M-step makes parameters of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
#: Columns as an emission reads them: arrays whose first axis counts the steps.
Data = tuple[NDArray[Any], ...]
Parameters = dict[str, Floats]
Statistics = dict[str, NDArray[Any]]

#: A state whose expected steps are below this number is unused.
UNUSED = 1e-8


class Emission(ABC):
    """The laws of all states."""

    #: Number of laws.
    size: int
    #: What the arrays of parameters hold: rows of probabilities ("simplex"), numbers, or symmetric matrices.
    kinds: ClassVar[Mapping[str, str]]

    @property
    def n_arrays(self) -> int:
        """How many arrays `read` gives."""
        return 1

    # -- data --------------------------------------------------------------------------------------------------------

    @abstractmethod
    def read(self, columns: Sequence[NDArray[Any]]) -> Data:
        """Columns, each (steps,), as the laws take them; values that no law can have are an error."""

    @abstractmethod
    def spread(self, data: Data) -> Floats:
        """Steps as points (steps, d) of comparable columns for clustering; NaN for a gap, no columns for states."""

    # -- expectation -------------------------------------------------------------------------------------------------

    @abstractmethod
    def log_densities(self, data: Data, parameters: Parameters) -> Floats:
        """Log density of each step under each law (steps, size); 0 for a gap."""

    def potentials(self, data: Data, parameters: Parameters, out: Floats | None = None) -> tuple[Floats, Floats]:
        """Densities (steps, size) divided by the largest of their step, and the logs (steps,) taken out.

        out (steps, size) is memory that may be used for the answer.
        """
        logs = self.log_densities(data, parameters)
        shift = logs.max(axis=1, initial=-np.inf)
        shift[~np.isfinite(shift)] = 0.0
        logs -= shift[:, None]
        return np.exp(logs, out=logs), shift

    @abstractmethod
    def statistics(self, data: Data, weights: Floats, parameters: Parameters) -> Statistics:
        """Sums over steps, weighted by (steps, size); what is missing is expected at the parameters."""

    # -- maximisation ------------------------------------------------------------------------------------------------

    @abstractmethod
    def expected(self, statistics: Statistics, parameters: Parameters) -> Floats:
        """Expected log-likelihood of the complete steps of each law (size,)."""

    @abstractmethod
    def maximise(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        """The parameters of statistics; a law without weight and without prior keeps those it had."""

    def log_prior(self, parameters: Parameters) -> Floats:
        """Log prior density of each law up to a constant (size,), as the M-step maximises it."""
        return np.zeros(self.size)

    def pool(self, statistics: Statistics, groups: Sequence[Sequence[int]]) -> Statistics:
        """The statistics with those of tied laws added up, each law of a group holding the sum."""
        found = dict(statistics)
        for name, sums in statistics.items():
            pooled = sums.copy()
            for group in groups:
                pooled[list(group)] = sums[list(group)].sum(axis=0)
            found[name] = pooled
        return found

    @property
    def without_prior(self) -> tuple[str, ...]:
        """Names of families whose laws have no prior and take no pseudo-counts."""
        return ()

    def notes(self, parameters: Parameters) -> tuple[str, ...]:
        """What a report should say: floors that hold, edges that were reached."""
        return ()

    # -- parameters as one vector ------------------------------------------------------------------------------------

    @abstractmethod
    def vector(self, parameters: Parameters) -> Floats:
        """All parameters one after another, in units in which changes compare."""

    @abstractmethod
    def at(self, vector: Floats, like: Parameters) -> Parameters:
        """The parameters that a vector holds."""

    @abstractmethod
    def inside(self, parameters: Parameters) -> bool:
        """Whether parameters are those of laws."""

    @property
    @abstractmethod
    def n_params(self) -> int:
        """Free parameters of one law."""

    @property
    def n_shared(self) -> int:
        """Free parameters that all laws share."""
        return 0

    # -- laws --------------------------------------------------------------------------------------------------------

    @abstractmethod
    def laws(self, parameters: Parameters) -> list[Any]:
        """The distributions."""

    @abstractmethod
    def parameters_of(self, laws: Any) -> Parameters:
        """The parameters of distributions, or of what else a user gives as start values."""

    @abstractmethod
    def start(self, data: Data, rng: np.random.Generator) -> Parameters:
        """Parameters to begin with where nothing else is known."""

    def from_shares(self, data: Data, shares: Floats, rng: np.random.Generator) -> Parameters:
        """Parameters to begin with from a guess of the states (steps, size)."""
        before = self.start(data, rng)
        return self.maximise(self.statistics(data, shares, before), before)

    @abstractmethod
    def draw(self, codes: NDArray[np.intp], parameters: Parameters, rng: np.random.Generator) -> list[NDArray[Any]]:
        """One step of each law in `codes`, column by column."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What was settled by the data and must be known to rebuild the emission."""


def add(left: Statistics, right: Statistics) -> Statistics:
    """The statistics of both sets of steps."""
    return {name: left[name] + right[name] for name in left}
