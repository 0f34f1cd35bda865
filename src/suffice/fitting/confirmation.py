"""Whether a fit is done: what its solver says counts only where the certificate agrees."""

from __future__ import annotations

import math
from dataclasses import replace

from suffice.errors import ConvergenceWarning, warn
from suffice.fitting.report import Report

#: How many times its tolerance the gap of a converged fit may be where it is measured again: sums in another order, and
#: statistics in other units than those of the solver, move it by a little.
SLACK = 10.0
#: A gap that rounding may leave where columns hardly vary, whatever the tolerance. Of a gap in standard deviations half
#: the square is lost, some 1e-10 nats per row.
ROUNDED = 1e-5
#: What stands for the tolerance of a closed form, which has none: its gap is rounding.
CLOSED_FORM = 1e-5
#: Why a fit has not converged whose solver says that it has.
DENIED = "denied by the certificate"


def allowed(tolerance: float | None, rounding: float = 0.0) -> float:
    """The largest gap of a fit that has converged to this tolerance; None: of a closed form.

    rounding: the gap that rounding of the parameters alone may leave, where it is known.
    """
    return max(SLACK * (CLOSED_FORM if tolerance is None else tolerance), rounding, ROUNDED)


def is_denied(gap: float, tolerance: float | None, rounding: float = 0.0) -> bool:
    """Whether a gap measured at the parameters that were returned denies that a fit has converged; warns if so.

    A gap that is not a number confirms nothing.
    """
    most = allowed(tolerance, rounding)
    if gap <= most:
        return False
    measured = f"the gap is {gap:.2e}, and {most:.2e} would be its end" if gap < math.inf else "no gap was measured"
    warn(
        f"The fit has not converged, though its solver says so: at the parameters that it returned {measured}.",
        ConvergenceWarning,
    )
    return True


def confirmed(report: Report, tolerance: float | None = None, gap: float | None = None) -> Report:
    """The report of a fit that has converged only where the certificate agrees; warns where it does not.

    gap: what the certificate has measured in the unit of the tolerance, where its own moment gap is in another one.
    """
    measured = report.certificate.moment_gap if gap is None else gap
    if not report.converged or not is_denied(measured, tolerance):
        return report
    return replace(report, converged=False, stop_reason=DENIED)
