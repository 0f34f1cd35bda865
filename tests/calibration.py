"""Whether simulated truths lie among draws from their posteriors as one more draw would.

Parameters are drawn from a prior, rows from the parameters, and a posterior is computed from the rows: then the true
parameters and the draws from the posterior are exchangeable, and the rank of the truth among L draws is uniform on
0, ..., L (Cook, Gelman and Rubin 2006; Talts, Betancourt, Simpson, Vehtari and Gelman 2018). Nothing of the library is
used here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Floats = NDArray[np.float64]

#: How often each model is simulated, and the draws from each of its posteriors.
REPEATS, DRAWS = 600, 199
#: Probability of each central interval that is counted.
LEVEL = 0.8
#: A right posterior falls below this once in ten thousand statistics.
BOUND = 1e-4


@dataclass(frozen=True)
class Simulated:
    """Truths (n, k) and draws (n, DRAWS, k) of k scalars by name; `inside` (n, j): whether intervals hold the truth."""

    names: tuple[str, ...]
    truth: Floats
    draws: Floats
    inside: NDArray[np.bool_]


@dataclass(frozen=True)
class One:
    """One simulation: truth and draws by name, and which intervals hold the truth."""

    truth: Mapping[str, Any]
    draws: Mapping[str, ArrayLike]
    inside: ArrayLike = ()


def repeated(simulate: Callable[..., One]) -> Callable[..., Simulated]:
    """A simulation, REPEATS times."""

    @wraps(simulate)
    def every(rng: np.random.Generator, *options: Any) -> Simulated:
        found = [simulate(rng, *options) for _ in range(REPEATS)]
        names = tuple(found[0].truth)
        truth = np.array([[float(one.truth[name]) for name in names] for one in found])
        draws = np.array([np.stack([np.asarray(one.draws[name], float) for name in names], axis=1) for one in found])
        inside = np.array([np.ravel(np.asarray(one.inside, bool)) for one in found])
        return Simulated(names, truth, draws, inside)

    return every


def within(ends: ArrayLike, truth: ArrayLike) -> NDArray[np.bool_]:
    """Whether numbers (...) lie in intervals (..., 2)."""
    low, high = np.moveaxis(np.asarray(ends, float), -1, 0)
    return np.asarray((low <= truth) & (truth <= high))


def places(found: Simulated, rng: np.random.Generator) -> Floats:
    """The places (n, k) of the truths among their draws, in (0, 1): exactly uniform, as ties are broken by lot."""
    below = (found.draws < found.truth[:, None]).sum(axis=1)
    ties = (found.draws == found.truth[:, None]).sum(axis=1)
    return np.asarray((below + (ties + 1) * rng.random(below.shape)) / (found.draws.shape[1] + 1))


def p_values(found: Simulated) -> dict[str, float]:
    """How probable what was found is, or something further away, where the posterior is right.

    Of each scalar: by its mean and by its sum of squares on the scale of the normal law (that of Cook, Gelman and
    Rubin, sharp for a posterior that is too wide or too narrow), and by the test of Kolmogorov for anything else. Of
    each interval: by the number of truths it holds.
    """
    uniform = places(found, np.random.default_rng(0))
    score, n = stats.norm.ppf(uniform), len(uniform)
    answer = {}
    for at, name in enumerate(found.names):
        square = float(stats.chi2.cdf((score[:, at] ** 2).sum(), n))
        answer[f"{name}: place"] = 2 * float(stats.norm.sf(abs(score[:, at].sum()) / np.sqrt(n)))
        answer[f"{name}: width"] = 2 * min(square, 1 - square)
        answer[f"{name}: distribution"] = float(stats.kstest(uniform[:, at], "uniform").pvalue)
    for at in range(found.inside.shape[1]):
        held = stats.binomtest(int(found.inside[:, at].sum()), n, LEVEL)
        answer[f"interval {at}"] = float(held.pvalue)
    return answer


def wrong(found: Simulated) -> dict[str, float]:
    """The statistics that a right posterior would hardly give."""
    return {name: value for name, value in p_values(found).items() if value < BOUND}


def stretched(found: Simulated, factor: float) -> Simulated:
    """The same with draws that have another variance about their means."""
    centre = found.draws.mean(axis=1, keepdims=True)
    draws = centre + np.sqrt(factor) * (found.draws - centre)
    return Simulated(found.names, found.truth, draws, np.empty((len(draws), 0), bool))
