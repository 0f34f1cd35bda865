"""Normal distributions as a user gives them to begin with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.errors import OptionError
from suffice.families.multivariate_normal import MultivariateNormal
from suffice.families.normal import Normal
from suffice.options import doubles

#: Covariances that should be alike, and cells that should be 0, may differ by this share.
ROUNDING = 1e-9


def read_distributions(distributions: Any, size: int, d: int, shape: str) -> dict[str, Floats]:
    """Means (size, d) and covariances (size, d, d) of distributions, or of pairs of mean and variance or covariance."""
    if (
        isinstance(distributions, str)
        or not isinstance(distributions, Sequence | np.ndarray)
        or len(distributions) != size
    ):
        raise OptionError(
            f"emissions is {distributions!r}; expected a list of {size} distributions, one for each state."
        )
    pairs = [_pair(distribution, d) for distribution in distributions]
    means, covariances = np.stack([mean for mean, _ in pairs]), np.stack([covariance for _, covariance in pairs])
    if not (np.isfinite(means).all() and np.isfinite(covariances).all()):
        raise OptionError("emissions holds a mean or a variance that is not finite.")
    if np.abs(covariances - covariances.transpose(0, 2, 1)).max() > ROUNDING * np.abs(covariances).max():
        raise OptionError("emissions holds a covariance that is not symmetric.")
    if (np.linalg.eigvalsh(covariances)[:, 0] <= 0).any():
        raise OptionError("emissions holds a covariance that is not positive definite.")
    return {"means": means, "covariances": _shaped(covariances, shape)}


def _pair(distribution: Any, d: int) -> tuple[Floats, Floats]:
    mean: Any
    spread: Any
    if isinstance(distribution, Normal):
        mean, spread = distribution.mean_, distribution.variance_
    elif isinstance(distribution, MultivariateNormal):
        mean, spread = distribution.mean_, distribution.covariance_
    else:
        try:
            mean, spread = distribution
        except (TypeError, ValueError):
            raise _no_distribution(distribution, d) from None
    try:
        centre = np.broadcast_to(doubles(mean), (d,)) if np.ndim(mean) == 0 else doubles(mean)
        given = doubles(spread)
        covariance = np.diag(np.broadcast_to(given, (d,))) if given.ndim < 2 else given
    except (TypeError, ValueError):
        raise _no_distribution(distribution, d) from None
    if centre.shape != (d,) or covariance.shape != (d, d):
        raise _no_distribution(distribution, d)
    return np.array(centre), np.array(covariance)


def _no_distribution(distribution: Any, d: int) -> OptionError:
    return OptionError(
        f"emissions holds {distribution!r}; expected a normal distribution of {d} column{'s' if d > 1 else ''}, or a "
        "pair of its mean and its variance or covariance."
    )


def _shaped(covariances: Floats, shape: str) -> Floats:
    """Covariances as they were given, where the model may have them."""
    d = covariances.shape[1]
    size = np.sqrt(np.einsum("kii->ki", covariances))
    cells = covariances / (size[:, :, None] * size[:, None, :])
    if shape in ("diagonal", "spherical") and np.abs(cells * (1 - np.eye(d))).max() > ROUNDING:
        raise OptionError(
            f"emissions holds a covariance with cells beside the diagonal, which covariance={shape!r} does not have. "
            "Give variances, or choose covariance='full'."
        )
    if shape == "spherical":
        level = np.einsum("kii->k", covariances) / d
        if np.abs(size**2 / level[:, None] - 1).max() > ROUNDING:
            raise OptionError(
                "emissions holds different variances of one distribution; covariance='spherical' has one for all "
                "columns."
            )
        return np.asarray(np.eye(d) * level[:, None, None])
    if shape == "diagonal":
        return np.asarray(covariances * np.eye(d))
    if shape == "tied":
        if np.abs(covariances - covariances[0]).max() > ROUNDING * np.abs(covariances[0]).max():
            raise OptionError(
                "emissions holds distributions of different covariances; covariance='tied' has one for all states."
            )
        return np.stack([covariances[0]] * len(covariances))
    return covariances


def below_floor(floor: float, scale: Floats, columns: Sequence[Any] | None) -> OptionError:
    """The error for a start that EM would have to leave downwards."""
    of = "the column" if len(scale) == 1 else "the columns"
    least = ", ".join(f"{floor * one**2:.3g}" for one in scale[:4])
    named = "" if columns is None else f" ({', '.join(map(repr, columns[:4]))})"
    return OptionError(
        f"emissions holds a variance below the floor, which is {floor:g} of that of {of}{named}: {least}. Begin with "
        "a larger variance, or choose a smaller variance_floor."
    )
