"""What approximate solvers share: the model in units of its features, a sampler, the observed means, the spread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.engines.gibbs import GibbsChains, GibbsSampler
from suffice.errors import EstimateError
from suffice.fitting.control import Control
from suffice.models.markov.approximate.held_sample import HeldSample
from suffice.models.markov.approximate.options import GibbsSampling
from suffice.models.markov.approximate.rows import CodedRows, model_sampler
from suffice.models.markov.existence import own_limits
from suffice.models.markov.feature_spread import feature_units, standardised, variances
from suffice.models.markov.learning import in_given_units
from suffice.models.markov.log_linear import LogLinear
from suffice.solvers.penalties import GaussianPenalty, Penalty

#: A variance counts for at least this share of that under the uniform distribution.
LEAST_VARIANCE = 0.01


@dataclass(frozen=True, eq=False)
class SampledProblem:
    """A log-linear model, the observed shares of its cells (n_cells,), the number of rows, and how to go about it.

    rows: the rows themselves, wherever they are, None where only their counts are known. batch_size, step_size: of
    stochastic solvers. units (n_weights,): what the features of the model were divided by, ones for the model as it was
    given.
    """

    model: LogLinear
    margins: Floats
    weight: float
    penalty: Penalty | None
    control: Control
    start: Floats
    sampling: GibbsSampling
    seed: np.random.Generator
    rows: CodedRows | HeldSample | None = None
    batch_size: int | None = None
    step_size: float | Callable[[int], float] | None = None
    units: Floats = field(default_factory=lambda: np.ones(1))

    def in_units(self) -> SampledProblem:
        """The same problem for the weights times the units of their features."""
        units = feature_units(self.model, self.margins)
        penalty = None if self.penalty is None else self.penalty.in_units(units)
        control = in_given_units(self.control, units)
        return replace(
            self,
            model=standardised(self.model, units),
            penalty=penalty,
            start=self.start * units,
            control=control,
            units=units,
        )

    @cached_property
    def bounded(self) -> NDArray[np.bool_]:
        """Which weights (n_weights,) do not run to infinity each by itself, as their features were not at an end."""
        limits = np.zeros(len(self.start)) if self.penalty is not None else own_limits(self.model, self.margins)
        return np.asarray(limits == 0.0)

    @cached_property
    def observed(self) -> Floats:
        """Mean of each feature (n_weights,)."""
        return self.model.expected(self.margins)

    @cached_property
    def spread(self) -> Floats:
        """Standard deviation of each feature (n_weights,), its places taken as independent."""
        sizes = np.diff(self.model.starts)
        uniform = variances(self.model, np.repeat(1.0 / sizes, sizes))
        spread = np.sqrt(np.maximum(variances(self.model, self.margins), LEAST_VARIANCE * uniform))
        return np.where(spread > 0.0, spread, 1.0)

    @cached_property
    def sampler(self) -> GibbsSampler:
        """The sampler of the model."""
        return model_sampler(self.model, scan=self.sampling.scan)

    @cached_property
    def matrix(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """Features by rows of cells."""
        matrix = self.model.matrix.tocsr()
        return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data.astype(np.float64)

    def load(self, weights: Floats) -> None:
        """Give the sampler the log-potentials at these weights."""
        self.sampler.load(self.model.log_potentials(weights))

    def prior_slope(self, weights: Floats) -> Floats:
        """Slope of minus the penalty, a row."""
        if not isinstance(self.penalty, GaussianPenalty):
            return np.zeros(len(weights))
        return -self.penalty.slope(weights) / self.weight

    def whole_rows(self, solver: str) -> CodedRows | HeldSample:
        """The rows, which this solver cannot do without."""
        if self.rows is None:
            raise EstimateError(
                f"solver={solver!r} needs the rows themselves, and only counts of cliques are at hand: from a table, a "
                "summary, partial_fit or unlearn. Fit all rows at once, or use solver='sml' without batch_size."
            )
        return self.rows

    def batch(self, chains: GibbsChains, count: int) -> NDArray[np.uint8]:
        """Rows (variables, count) drawn by their weights; which ones depends on the chains' seed and sweep alone."""
        seed, sweep = (int(part) for part in chains.scan)
        return self.whole_rows("sml").draw(seed, sweep, count, self.sampling.sweeps)
