"""What rows that do not show everything determine of a Markov network: the curvature where EM has stopped.

Weights of tables are more than a distribution needs. Of those that complete rows would tell apart a largest set is
chosen, the others being held: their information is definite in complete rows, and what is flat in it is flat because of
what the rows hide.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.fitting.report import Curvature
from suffice.models.em.identifiability import curvature, spectrum
from suffice.models.em.information import STOPPED

#: A spread below this share of the largest is that of a feature which is as good as constant: its weight is infinite.
STILL = 1e-4
#: Part of a direction, of length 1, from which on a weight changes along it.
PART = 1e-3
#: What is left of a correlation below which a feature is a combination of those chosen before, or of them and an event
#: that is on its way to probability 0.
ALIKE = 1e-6


def curvature_of(
    observed: Floats, complete: Floats, slope: Floats, names: Sequence[str], scores: Sequence[float]
) -> Curvature | None:
    """Rank, kind of point and flat directions of an observed information (k, k), a row; None where EM has not ended.

    Args:
        observed: minus the Hessian of the objective, a row.
        complete: the same of complete rows.
        slope: what is left of the slope of the objective (k,), a row.
        names: of the weights.
        scores: the objectives of all runs.
    """
    chosen = _apart(complete)
    inner = np.ix_(chosen, chosen)
    # The slope in units of the spread of each feature: what one more step would move.
    spread = np.sqrt(np.diag(complete)[chosen])
    step = float(np.abs(slope[chosen] / spread).max(initial=0.0))
    if step > STOPPED:
        return None
    eigenvalues = spectrum(observed[inner], complete=spread**2, step=step)
    return curvature(eigenvalues, [names[weight] for weight in chosen], scores)


def undetermined(observed: Floats, complete: Floats, threshold: float) -> NDArray[np.bool_]:
    """Which weights (k,) change along directions that complete rows tell and these rows do not, a row each.

    threshold: the share of the complete information below which nothing is told.
    """
    scale = np.sqrt(np.clip(np.diag(complete), 0.0, None))
    scale = np.where(scale > STILL * scale.max(initial=0.0), scale, np.inf)
    values, vectors = np.linalg.eigh(complete / np.outer(scale, scale))
    seen = values > ALIKE * max(float(values[-1]), 1e-300)
    half = vectors[:, seen] / np.sqrt(values[seen])
    shares, turns = np.linalg.eigh(half.T @ (observed / np.outer(scale, scale)) @ half)
    open_ones = half @ turns[:, shares <= threshold]
    sizes = np.linalg.norm(open_ones / np.maximum(np.linalg.norm(open_ones, axis=0), 1e-300), axis=1)
    return np.asarray(sizes > PART)


def _apart(information: Floats) -> NDArray[np.intp]:
    """Places of a largest set of weights that complete rows tell apart, by Cholesky's method with pivots."""
    from scipy.linalg.lapack import dpstrf

    scale = np.sqrt(np.clip(np.diag(information), 0.0, None))
    varies = np.flatnonzero(scale > STILL * scale.max(initial=0.0))
    if not len(varies):
        return varies
    correlation = information[np.ix_(varies, varies)] / np.outer(scale[varies], scale[varies])
    _, pivots, rank, _ = dpstrf(correlation, tol=ALIKE)
    return np.sort(varies[np.asarray(pivots[:rank]) - 1])
