"""What a report makes of the curvature where EM has stopped."""

from __future__ import annotations

from dataclasses import replace

from suffice.fitting.report import Report

#: The largest change by one more step of EM from where curvatures say something about the point that it goes to.
STOPPED = 1e-4
#: Where EM has not come so far, or where it would take longer than EM itself.
NOT_COMPUTED = (
    "whether the rows determine all parameters was not computed: that takes two E-steps for each of them, from where "
    "EM has converged"
)


def counted_as_determined(report: Report) -> Report:
    """The report of a fit by EM, which counts the parameters that the rows determine and says which they do not."""
    curvature = report.certificate.curvature
    if curvature is None:
        return replace(report, warnings=(*report.warnings, NOT_COMPUTED))
    determined = report.n_params - len(curvature.flat)
    return replace(report, n_params=determined, warnings=(*report.warnings, *curvature.warnings()))
