"""What every conjugate prior can do besides being a distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.checks import is_number
from suffice.errors import OptionError, shortened
from suffice.families.base import as_numbers
from suffice.statistics import Summary


class ConjugatePrior:
    """Mixed into the distributions that serve as priors.

    A prior has `mean`, `mode`, `log_prob`, `sample` and `posterior`; most have `stationarity`, the slope of the log
    density (on the simplex: along it), which is zero at the mode, and `intervals`, the central interval (low, high):
    arrays (..., 2) for vectors, a dict by name for joint distributions.
    """

    def posterior(self, data: Any, likelihood: Any = None) -> Any:
        """The posterior after the rows of a `Summary`.

        The summary is that of the family whose parameters the prior usually describes; for another family give it as
        `likelihood`. Priors on probabilities also take an array of counts, in the order of their own parameters.
        """
        return posterior_after(self, data, likelihood)

    def _from_summary(self, summary: Summary) -> Any:
        raise OptionError(f"Say what the rows follow: {type(self).__name__}.posterior(summary, likelihood=...).")

    def _from_counts(self, counts: object) -> Any:
        raise OptionError(
            f"{type(self).__name__}.posterior takes a Summary, not {type(counts).__name__}. "
            "Make one with suffice.summarize(distribution, data)."
        )

    def below_mode(self, point: Any) -> float | None:
        """How far the log density at a point is below that at the mode, by a formula; None where none is known."""
        return None


def posterior_after(prior: ConjugatePrior, data: object, likelihood: Any) -> Any:
    """The posterior after a summary of the prior's usual partner or of `likelihood`, or after counts."""
    if likelihood is not None and (isinstance(likelihood, type) or not hasattr(likelihood, "_family")):
        raise OptionError(f"likelihood is {shortened(likelihood)}; expected a distribution, such as Normal().")
    if likelihood is not None and type(prior).__name__ not in likelihood._family.conjugate_priors:
        raise OptionError(f"{type(prior).__name__} is not a conjugate prior of {type(likelihood).__name__}.")
    if not isinstance(data, Summary):
        return prior._from_counts(data)
    return prior._from_summary(data) if likelihood is None else likelihood._family.update(prior, data)


def tails(level: float) -> tuple[float, float]:
    """The two tail probabilities of a central interval."""
    if not (is_number(level) and 0 < level < 1):
        raise OptionError(f"level is {shortened(level)}; expected a number between 0 and 1, such as 0.95.")
    return (1 - level) / 2, (1 + level) / 2


def as_point(point: Any, names: tuple[str, ...]) -> tuple[Floats, ...]:
    """The coordinates of a point given as a dict by name or as a sequence."""
    if isinstance(point, dict):
        values = [point[name] for name in names if name in point]
    else:
        values = list(point) if np.iterable(point) else [point]
    if len(values) != len(names):
        raise OptionError(f"A point has the coordinates {', '.join(names)}; found {shortened(point)}.")
    return tuple(as_numbers(value, name) for name, value in zip(names, values, strict=True))
