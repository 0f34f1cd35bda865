"""What a fitted model says of itself, beside the truth, as records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import suffice as sf
from benchmarks.audit.record import Value

#: What float64 cannot tell from 0 in an objective of the size of one.
ROUNDING = 1e-12


def value_record(model: str, fitted: Any, optimum: float, here: float, size: float | None = None) -> Value:
    """The distance of a fit from the optimum, both by an oracle, beside what its certificate says.

    size: that of the numbers of which the objective is a difference; the objective's own unless given.
    """
    certificate = fitted.report_.certificate
    scale = max(1.0, abs(optimum), abs(here), 0.0 if size is None else abs(size))
    rounding = ROUNDING * scale
    assert optimum > here - 10.0 * rounding, f"the oracle is wrong: {model} found {here - optimum:.1e} more"
    return Value(model, optimum - here, certificate.value_gap, certificate.bound, fitted.report_.converged, rounding)


def fitted_or_refused(fit: Callable[[], Any]) -> Any:
    """The fitted model, or the text "refused" where the library says that there is no estimate."""
    try:
        return fit()
    except sf.EstimateError:
        return "refused"
