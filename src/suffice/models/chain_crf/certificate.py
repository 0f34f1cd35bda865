"""How far from the optimum the weights of a chain can be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from suffice.fitting.report import Certificate
from suffice.models.chain_crf.existence import Standing
from suffice.models.chain_crf.objective import ChainObjective
from suffice.models.feature_sums import Sums
from suffice.models.label_certificate import decrement
from suffice.models.label_learning import relative_gap, slopes

Floats = NDArray[np.float64]


def certify(
    objective: ChainObjective, x: Floats, standing: Standing | None = None
) -> tuple[Certificate, float, float, float, Sums]:
    """The certificate at x, the log-likelihood, the objective, the relative norm of the slope, and sums of features.

    standing: whether the likelihood has a maximum; None where x does not stand for one.
    """
    value, slope, likelihood = slopes(objective, x)
    penalties = objective.penalties
    bound = None
    if penalties.gaussian is not None:
        # The objective is as strongly concave as the prior, whatever else is taken off it.
        bound = penalties.gaussian.loss_bound(slope)
    elif penalties.laplace is not None:
        bound = penalties.laplace.loss_bound(slope, x, -value)
    rise = bound
    if standing is not None and not penalties.any and standing.exists is not False:
        rise = standing.rise if standing.rise is not None else decrement(objective, x, slope, objective.features)
    certificate = Certificate(
        moment_gap=float(np.abs(slope).max(initial=0.0)),
        value_gap=None if rise is None else rise / objective.weight,
        bound=bound is not None,
        exact=True,
        exists=True if bound is not None else None,
        scale="counts, summed over sequences",
    )
    if standing is not None:
        certificate = standing.judged(certificate, objective.block.structure.names)
    sums = Sums.of(objective.features, likelihood, slope, prior=penalties.any)
    return certificate, value + penalties.value(x), value, relative_gap(x, slope), sums
