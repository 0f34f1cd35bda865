"""Log Z and the likelihood of networks that are too large for exact inference: estimates with standard errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from suffice.array_types import RandomState
from suffice.engines.annealing import LogPartition, log_partition
from suffice.errors import EstimateError, SamplingWarning, warn
from suffice.models.em.rows import has_missing, read_rows
from suffice.models.markov.approximate.rows import model_sampler
from suffice.models.markov.feature_spread import offsets
from suffice.models.markov.observed import counts_by_scope
from suffice.solvers.scaling import inner
from suffice.statistics import Summary

if TYPE_CHECKING:
    from suffice.models.markov.fitted import MarkovFitted


#: Annealed chains that estimate log Z.
CHAINS = 128


@dataclass(frozen=True)
class Estimate:
    """A value with its standard error; unpacks as both.

    `effective_sample_size` and `pareto_k` are those of the annealed chains it comes from; see `LogPartition`.
    """

    value: float
    standard_error: float
    effective_sample_size: float | None = None
    pareto_k: float | None = None

    def __iter__(self) -> Iterator[float]:
        """Value and standard error."""
        return iter((self.value, self.standard_error))

    def __str__(self) -> str:
        return f"{self.value:.6g} +- {self.standard_error:.2g}"

    __repr__ = __str__


def estimate_log_partition(
    fitted: MarkovFitted, *, chains: int = CHAINS, steps: int | None = None, random_state: RandomState = None
) -> LogPartition:
    """Log Z by annealed importance sampling, for networks of any size.

    Args:
        fitted: the network.
        chains: independent runs, whose spread gives the error.
        steps: distributions between the uniform one and this; None takes as many as the weights need to be even.
        random_state: seed; that of the network by default.

    Returns:
        An estimate with `value`, `standard_error` and `lower_bound`; it unpacks as value and standard error.
    """
    estimate = _annealed(fitted, chains, steps, random_state)
    taken = inner(fitted.finite, offsets(fitted.near.model))
    return replace(estimate, value=estimate.value + taken, lower_bound=estimate.lower_bound + taken)


def _annealed(fitted: MarkovFitted, chains: int, steps: int | None, random_state: RandomState) -> LogPartition:
    """Log Z of the potentials of `near`."""
    family, seed = fitted.near, fitted.seed if random_state is None else random_state
    logs, sampler = family.potentials(fitted.finite)[: family.model.n_cells], model_sampler(family.model)
    estimate = log_partition(sampler, logs, chains=chains, steps=steps, random_state=seed)
    if estimate.distrust:
        warn(f"The estimate of log Z is not to be relied on: {estimate.distrust}. Use more steps.", SamplingWarning)
    return estimate


def estimate_score(fitted: MarkovFitted, summary: Summary, steps: int | None, random_state: RandomState) -> Estimate:
    """Mean log-likelihood of a row of a summary: what the rows say is exact, log Z is estimated.

    What a row does not show is summed out exactly.
    """
    if summary.weight <= 0:
        raise EstimateError("The score of no rows is undefined: the data have no weight.")
    if has_missing(summary):
        from suffice.models.markov.hidden.clamped import row_masses

        log_z: Any = estimate_log_partition(fitted, steps=steps, random_state=random_state)
        rows, family = read_rows(summary, summary.domain), fitted.family
        logs = family.potentials(fitted.finite)[: family.model.n_cells]
        mean = float(rows.weights @ row_masses(family.model, logs, rows)) / summary.weight
    else:
        log_z, family = _annealed(fitted, CHAINS, steps, random_state), fitted.near
        logs = family.potentials(fitted.finite)[: family.model.n_cells]
        mean = inner(logs, counts_by_scope(summary, family.model) / summary.weight)
    return Estimate(mean - log_z.value, log_z.standard_error, log_z.effective_sample_size, log_z.pareto_k)
