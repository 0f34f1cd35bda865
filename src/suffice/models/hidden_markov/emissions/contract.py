"""What the chain asks of the distributions that its states emit.

An emission is fixed for a fit: how many distributions there are, what columns they read, which priors they have. Their
parameters are a dictionary of arrays whose first axis counts the distributions, and so are their statistics, which add
up over steps: the E-step weighs them by the posterior of the states, the M-step makes parameters of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.errors import EstimateError
from suffice.models.hidden_markov.emissions.moments import UNUSED as UNUSED
from suffice.models.hidden_markov.emissions.moments import MatchedPart
from suffice.models.hidden_markov.emissions.standing import Standing
from suffice.statistics import Statistic

#: Columns as an emission reads them: arrays whose first axis counts the steps.
Data = tuple[NDArray[Any], ...]
Parameters = dict[str, Floats]
Statistics = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Symbols:
    """Steps as codes (steps,) of `card` symbols, -1 for the last, which stands for a missing value where some are.

    `table(parameters)` has P(symbol | state) (card, size), `statistics(counts)` makes statistics of expected counts
    (card, size).
    """

    codes: NDArray[np.int32]
    card: int
    table: Callable[[Parameters], Floats]
    statistics: Callable[[Floats], Statistics]


class Emission(ABC):
    """The distributions of all states."""

    #: Number of distributions.
    size: int
    #: What the arrays of parameters hold: rows of probabilities ("simplex"), numbers ("real"), or symmetric matrices:
    #: "symmetric", "diagonal", one number on the diagonal ("spherical"), or one matrix for all distributions
    #: ("shared").
    kinds: ClassVar[Mapping[str, str]]

    @property
    def known(self) -> Mapping[str, tuple[int, ...]]:
        """Cells of each distribution, by array, that are given and not learned."""
        return {}

    @property
    def width(self) -> int:
        """How many columns the distributions describe."""
        return 1

    @property
    def n_arrays(self) -> int:
        """How many arrays `read` gives."""
        return 1

    # -- data --------------------------------------------------------------------------------------------------------

    @abstractmethod
    def read(self, columns: Sequence[NDArray[Any]]) -> Data:
        """Columns, each (steps,), as the distributions take them; values that no distribution can have are an error."""

    def in_closed_form(self, data: Data) -> bool:
        """Whether known states settle the statistics: nothing is left to be expected at the parameters."""
        return True

    # -- where EM begins ---------------------------------------------------------------------------------------------

    @abstractmethod
    def points(self, data: Data) -> Floats:
        """Steps as points (steps, d) for clustering; NaN where missing, no columns for states."""

    def keys(self, data: Data) -> Data:
        """The arrays that tell steps apart."""
        return data[:1]

    def totals(self, data: Data, weights: Floats) -> Statistics:
        """Sums over steps of weights (steps,) that `start` and `before` look at."""
        return {}

    @abstractmethod
    def start(self, totals: Statistics, rng: np.random.Generator) -> Parameters:
        """Parameters to begin with where nothing else is known."""

    def before(self, totals: Statistics, rng: np.random.Generator) -> Parameters:
        """Parameters before a guess of the states: what is missing is expected at them."""
        return self.start(totals, rng)

    @property
    def in_pieces(self) -> bool:
        """Whether the steps that are guessed to be of one state are cut into pieces."""
        return False

    def guessed(self, data: Data, shares: Floats, ranks: Floats, before: Parameters) -> Statistics:
        """Statistics by a guess of the states (steps, size), weighted as the steps are.

        ranks (steps, size): how far along the points of a state a step lies, between 0 and 1.
        """
        return self.statistics(data, shares, before)

    def from_guess(self, statistics: Statistics, before: Parameters) -> Parameters:
        """Parameters to begin with from the statistics of a guess."""
        return self.maximise(statistics, before)

    def idle(self, statistics: Statistics, before: Parameters) -> Parameters:
        """Parameters of distributions without steps: the distribution of all steps, of which each has a part."""
        return self.from_guess(statistics, before)

    # -- expectation -------------------------------------------------------------------------------------------------

    @abstractmethod
    def log_densities(self, data: Data, parameters: Parameters) -> Floats:
        """Log density of each step under each distribution (steps, size); 0 for a missing value."""

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

    def symbols(self, data: Data) -> Symbols | None:
        """The steps as symbols; None where the distributions are no tables of probabilities."""
        return None

    # -- maximisation ------------------------------------------------------------------------------------------------

    @abstractmethod
    def expected(self, statistics: Statistics, parameters: Parameters) -> Floats:
        """Expected log-likelihood of the complete steps of each distribution (size,)."""

    @abstractmethod
    def maximise(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        """The parameters of statistics; a distribution that they do not determine keeps those it had.

        That is a distribution without weight and without prior, and one that no member of its family fits best.
        """

    def maximise_tied(
        self, statistics: Statistics, parameters: Parameters, groups: Sequence[Sequence[int]]
    ) -> Parameters:
        """As `maximise`, with one distribution a group: the sums of a group are in its first, and nowhere else."""
        if not groups:
            return self.maximise(statistics, parameters)
        pooled = self.maximise(self.gathered(statistics, groups), parameters)
        return {name: alike(array, groups, self.size) for name, array in pooled.items()}

    def gathered(self, statistics: Statistics, groups: Sequence[Sequence[int]]) -> Statistics:
        """The statistics with those of each group added up in its first distribution; the others have none."""
        gathered = dict(statistics)
        for name, sums in statistics.items():
            pooled = sums.reshape(self.size, -1, *sums.shape[1:]).copy()
            for group in groups:
                first, others = group[0], list(group[1:])
                pooled[first] = pooled[list(group)].sum(axis=0)
                pooled[others] = pooled[others] * 0.0
            gathered[name] = pooled.reshape(sums.shape)
        return gathered

    def log_prior(self, parameters: Parameters) -> Floats:
        """Log prior density of each distribution up to a constant (size,), as the M-step maximises it."""
        return np.zeros(self.size)

    @property
    def without_prior(self) -> tuple[str, ...]:
        """Names of families whose distributions have no prior and take no pseudo-counts."""
        return ()

    def notes(self, parameters: Parameters, statistics: Statistics, names: Sequence[str]) -> tuple[str, ...]:
        """What a report should say of the distributions, called `names`: held at floors, or not to be learned."""
        return ()

    def standing(self, statistics: Statistics, parameters: Parameters, names: Sequence[str]) -> Standing:
        """Where the distributions of states, called `names`, stand whose steps are all known; by default unknown."""
        return Standing(decided=False, lost=None)

    def collapsed(self, parameters: Parameters, names: Sequence[str]) -> tuple[str, ...]:
        """What runs to the edge of the family, though steps are hidden: distributions held at their floor."""
        return ()

    def unseen(self, statistics: Statistics) -> tuple[str, ...]:
        """What no step shows and no pseudo-count holds up, in whatever state it is hidden."""
        return ()

    @property
    def coercive(self) -> bool:
        """Whether the prior alone sends the objective to -inf at every edge, so that its maximum is attained inside.

        The likelihood of discrete steps is at most 1. That of densities may grow, but by no more than a power of their
        narrowest scale s, which a factor exp(-1 / s) of the prior outweighs.
        """
        return False

    @abstractmethod
    def moments(self, statistics: Statistics, parameters: Parameters, names: Sequence[str]) -> Iterator[MatchedPart]:
        """What a fixed point of EM makes equal, of the distributions of states that are called `names`."""

    def counted(self, statistics: Statistics, names: Sequence[str]) -> tuple[list[str], Floats, Floats] | None:
        """Names, counts (size, M) and pseudo-counts (size, M) of symbols; None for distributions of anything else."""
        return None

    @property
    def has_conjugate_prior(self) -> bool:
        """Whether some distribution has a prior that is not one of pseudo-counts."""
        return False

    # -- summaries ---------------------------------------------------------------------------------------------------

    def questions(self, by: Hashable, names: Sequence[Hashable]) -> tuple[Statistic, ...]:
        """What a summary of steps whose state is in the column `by` answers to say all; none where no summary can.

        names: those of the columns.
        """
        return ()

    # -- further steps -----------------------------------------------------------------------------------------------

    def left(self, rest: Statistics, before: Statistics) -> Statistics:
        """What is left of `before` after steps were taken out, rounding set to 0.

        An EstimateError where no steps have such statistics.
        """
        left = dict(rest)
        for name in COUNTED & rest.keys():
            left[name] = counts_left(rest[name], before[name])
        return left

    def describe_with(self, columns: Sequence[NDArray[Any]]) -> dict[str, Any]:
        """As `describe`, for an emission that further steps belong to as well."""
        return self.describe()

    def laid_out(self, statistics: Statistics, wider: Self) -> Statistics:
        """The statistics as an emission has them that further steps belong to."""
        return statistics

    def rescaled(self, statistics: Statistics) -> Self:
        """The emission with the units, and so the floors, of all steps that the statistics are of."""
        return self

    # -- parameters as one vector ------------------------------------------------------------------------------------

    @abstractmethod
    def vector(self, parameters: Parameters) -> Floats:
        """All parameters one after another, in units in which changes compare."""

    @abstractmethod
    def at(self, vector: Floats, like: Parameters) -> Parameters:
        """The parameters that a vector holds."""

    @abstractmethod
    def inside(self, parameters: Parameters) -> bool:
        """Whether parameters are those of distributions."""

    @property
    @abstractmethod
    def n_free(self) -> NDArray[np.int64]:
        """Free parameters of each distribution (size,)."""

    @property
    def n_shared(self) -> int:
        """Free parameters that all distributions share."""
        return 0

    # -- distributions
    # --------------------------------------------------------------------------------------------------------

    @abstractmethod
    def distributions(self, parameters: Parameters) -> list[Any]:
        """The distributions."""

    @abstractmethod
    def parameters_of(self, distributions: Any) -> Parameters:
        """The parameters of distributions, or of what else a user gives as start values."""

    def restricted(self, given: Parameters) -> Self:
        """The emission whose distributions keep the zeros of given probabilities."""
        return self

    def check_start(self, given: Parameters) -> None:  # noqa: B027  most distributions have no floor
        """Raise where start values are beyond a floor: the first step would be a step down."""

    @abstractmethod
    def draw(self, codes: NDArray[np.intp], parameters: Parameters, rng: np.random.Generator) -> list[NDArray[Any]]:
        """One step of each distribution in `codes`, column by column."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What was settled by the data and must be known to rebuild the emission."""


#: Statistics that count steps, and are at least 0.
COUNTED = frozenset({"weight", "counts", "shares"})


def counts_left(rest: NDArray[Any], before: NDArray[Any]) -> NDArray[Any]:
    """Counts after a subtraction, rounding set to 0; a negative one is an error."""
    counts = np.where(np.abs(rest) <= 1e-9 * np.maximum(before, 1.0), 0.0, rest)
    if (counts < 0).any():
        raise never_learned("negative counts")
    return counts


def never_learned(what: str) -> EstimateError:
    """The error for sequences that are taken out and were not in."""
    return EstimateError(f"These sequences were never learned: taking them out would leave {what}.")


def alike(array: Floats, groups: Sequence[Sequence[int]], size: int) -> Floats:
    """An array of parameters of `size` distributions in which those of a group are as the first of them."""
    copied = array.reshape(size, -1, *array.shape[1:]).copy()
    for group in groups:
        copied[list(group)] = copied[group[0]]
    return copied.reshape(array.shape)


def add(left: Statistics, right: Statistics) -> Statistics:
    """The statistics of both sets of steps."""
    return {name: left[name] + right[name] for name in left}
