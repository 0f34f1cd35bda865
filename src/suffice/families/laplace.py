"""The Laplace distribution, as a prior on weights: its best weights are exactly zero where they do not pay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.checks import draw_count
from suffice.errors import OptionError
from suffice.families.base import Distribution, Seed, as_floats, as_numbers, generator


class Laplace(Distribution):
    """The Laplace distribution, ``exp(-|x - mean| / scale) / (2 scale)``, given as a prior; it is not fitted.

    As a prior on weights it takes ``sum |weight - mean| / scale`` off the SUM of the log-likelihood over rows.

    Args:
        scale: the mean distance from the mean; one number, or one for each weight.
        mean: the centre, 0 unless said.

    >>> round(float(Laplace(scale=2.0).log_prob(0.0)), 6)
    -1.386294
    """

    parameter_names = ("scale", "mean")
    scale_: float
    mean_: float

    def __init__(self, scale: Any = 1.0, mean: Any = 0.0) -> None:
        """See the class."""
        super().__init__(scale=scale, mean=mean)

    def _check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        scale, mean = as_floats(parameters["scale"], "scale"), as_floats(parameters["mean"], "mean")
        if not (scale.size and (scale > 0).all()):
            raise OptionError(f"scale is {parameters['scale']!r}; expected positive numbers.")
        return {name: float(v) if v.ndim == 0 else v for name, v in (("scale", scale), ("mean", mean))}

    def _task(self) -> NoReturn:
        raise OptionError("Laplace serves as a prior and is not fitted. Give it as prior=Laplace(scale=...).")

    def log_prob(self, x: ArrayLike) -> Floats:
        """Log density of each value."""
        far = np.abs(as_numbers(x) - self.mean_) / self.scale_
        return np.asarray(-far - np.log(2.0) - np.log(self.scale_))[()]

    def sample(self, n: int = 1, random_state: Seed = None) -> Floats:
        """`n` independent draws."""
        shape = np.broadcast_shapes(np.shape(self.mean_), np.shape(self.scale_))
        return generator(random_state).laplace(self.mean_, self.scale_, size=(draw_count(n), *shape))

    def mean(self) -> Any:
        """The centre."""
        return self.mean_

    def mode(self) -> Any:
        """The centre."""
        return self.mean_
