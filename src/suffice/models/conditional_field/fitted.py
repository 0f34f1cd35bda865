"""What conditional random fields learn: a structure with its weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from suffice.array_types import Floats
from suffice.checks import read_only
from suffice.errors import FileFormatError
from suffice.models.conditional_field.decoding import FieldDecoder
from suffice.models.conditional_field.objective import S
from suffice.models.conditional_field.rank import FeatureRank

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait


@dataclass(frozen=True, eq=False)
class FieldFitted(ABC, Generic[S]):
    """A structure with its weights (k,), their rank, and the number of updates so far.

    walk: vectors (k,) beside the weights from which `partial_fit` goes on.
    """

    structure: S
    weights: Floats
    rank: FeatureRank
    updates: int = 0
    walk: Mapping[str, Floats] = field(default_factory=dict)

    @property
    @abstractmethod
    def title(self) -> str:
        """The first line of the receipt."""

    @property
    def n_params(self) -> int:
        """The number of weights that the examples tell apart, or a bound of it, as the receipt says."""
        return self.rank.value

    def __post_init__(self) -> None:
        """Nobody changes what was learned."""
        object.__setattr__(self, "weights", read_only(self.weights))
        object.__setattr__(self, "walk", {name: read_only(vector) for name, vector in self.walk.items()})

    @abstractmethod
    def decoder(self) -> FieldDecoder[Any]:
        """The weights, asked about examples as a user gives them."""

    def score_samples(self, X: Iterable[Any], y: Iterable[Any]) -> Floats:
        """Log p(labels | example) of each example (n,), natural logarithm."""
        return self.decoder().score_samples(X, y)

    def named_weights(self) -> dict[str, float]:
        """All weights by name."""
        named = zip(self.structure.names(), self.weights.tolist(), strict=True)
        return {" ".join(map(str, name)): weight for name, weight in named}

    @abstractmethod
    def portrait(self) -> Portrait:
        """What there is to see of it."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        return {
            "weights": self.weights,
            "n_params": self.rank.value,
            "exact_rank": self.rank.exact,
            "updates": self.updates,
            "walk": dict(self.walk),
        }


def read_weights(plain: Mapping[str, Any], size: int, model: str) -> dict[str, Any]:
    """The parts of a fitted value that all shapes share, out of a file, for `size` weights."""
    damaged = f"The {model} in this file is damaged:"
    weights = np.asarray(plain["weights"], np.float64)
    if weights.shape != (size,) or not np.isfinite(weights).all():
        raise FileFormatError(f"{damaged} its weights do not fit its features.")
    walk = {str(name): np.asarray(value, np.float64) for name, value in dict(plain.get("walk", {})).items()}
    known = walk.keys() <= {"raw", "first", "second"}
    if not known or not all(value.shape == (size,) and np.isfinite(value).all() for value in walk.values()):
        raise FileFormatError(f"{damaged} its last updates do not fit its weights.")
    rank = FeatureRank(int(plain["n_params"]), bool(plain["exact_rank"]))
    return {"weights": weights, "rank": rank, "updates": int(plain["updates"]), "walk": walk}
