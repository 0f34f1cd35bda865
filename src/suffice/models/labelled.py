"""What fitted models of labels have in common: what was learned, the labels, the weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import NotFittedError

Floats = NDArray[np.float64]


class Labelled:
    """Mixed into conditional random fields; `_trained` holds `structure` with its `labels`, and the `weights`."""

    _options: dict[str, Any]

    @property
    def _state(self) -> Any:
        found = self.__dict__.get("_trained")
        if found is None:
            raise NotFittedError(f"This {type(self).__name__} has learned nothing yet. Call fit first.")
        return found

    @property
    def labels_(self) -> tuple[Any, ...]:
        """The labels, in the order of the weights."""
        found: tuple[Any, ...] = self._state.structure.labels
        return found

    @property
    def classes_(self) -> list[Any]:
        """The labels, as scikit-learn calls them."""
        return list(self.labels_)

    @property
    def weights_(self) -> Floats:
        """All weights (k,), in the order of `weight_names_`."""
        return np.array(self._state.weights)
