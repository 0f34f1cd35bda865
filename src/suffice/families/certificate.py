"""The certificate of a fitted distribution: how far observed and expected statistics are apart, and what was lost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from suffice.families.fitted import FamilyFitted
from suffice.families.member import ROUNDING, FamilyMember
from suffice.families.posterior_check import check_posterior, on_edge
from suffice.fitting.report import Certificate
from suffice.statistics import Summary

#: Gaps in posterior standard deviations that the numerical derivatives of the check may leave.
WELL_BELOW = 1e-3


def certify(member: FamilyMember, summary: Summary) -> tuple[Certificate, float]:
    """Of maximum likelihood, and the gap in the unit of the solver, standard deviations of one row.

    A total over N rows has sqrt(N) times the standard deviation of one row, and N times the gap of a mean.
    """
    edge = member.edge(summary)
    gap, decrement = member.gap(summary)
    short, bound = member.shortfall(summary), True
    if short is None:
        most, bound = 0.5 * decrement * decrement, False
    else:  # It is quadratic in the standardised gap, of which rounding may hide a part.
        root = (1.0 + ROUNDING) * math.sqrt(max(short, 0.0)) + member.rounding()
        most = root * root
    away = member.observed(summary) - member.expected_statistics()
    certificate = Certificate(
        gap * math.sqrt(summary.weight),
        most,
        bound=bound,
        exists=not edge,
        directions=edge,
        slope=summary.weight * float(np.abs(away).max(initial=0.0)),
        slope_unit="nats per unit of a natural parameter",
    )
    return certificate, max(gap - member.unavoidable(), 0.0)


def certify_posterior(fitted: FamilyFitted, prior: Any, summary: Summary, estimate: str) -> tuple[Certificate, float]:
    """Bayes' theorem at the estimate, and the estimate as the mode or the mean; see `posterior_check`.

    The rise of the log posterior is half the squared slope in standard deviations, spread over the rows.
    """
    member = fitted.member
    checked = check_posterior(fitted, prior, summary, mode=estimate == "map")
    rise = None if checked.rise is None else checked.rise / max(summary.weight, 1.0)
    short = fitted.posterior.below_mode(member.prior_point()) if checked.rise is not None else None
    # Where Bayes' theorem holds, the objective is the log posterior and a constant.
    bound = short is not None and checked.bayes < WELL_BELOW
    if short is not None and bound:
        hidden = member.rounding() * math.sqrt(summary.weight + 1)
        rise = (math.sqrt(short) + hidden) ** 2 / max(summary.weight, 1.0)
    edge: tuple[str, ...] = ()
    if on_edge(fitted.parameters):
        seen = member.edge(summary) if summary.weight > 0 else ()
        edge = seen or ("a natural parameter -> +-inf (the prior has its mode on the edge)",)
    mean = "" if estimate == "map" else "the mean of the posterior"
    certificate = Certificate(checked.gap, rise, bound=bound, exists=not edge, directions=edge, formula=mean)
    return certificate, checked.gap
