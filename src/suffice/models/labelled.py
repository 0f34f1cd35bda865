"""What fitted models of labels have in common: what was learned, the labels, the weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import FileFormatError, NotFittedError, OptionError
from suffice.fitting.report import MatchedStatistics
from suffice.models.feature_sums import Sums

Floats = NDArray[np.float64]


def whole_number(value: Any, name: str, least: int = 1) -> int:
    """A whole number of at least `least`, or an error that names the option; truth values are none."""
    if isinstance(value, bool | np.bool_) or not (isinstance(value, int | np.integer) and value >= least):
        raise OptionError(f"{name} is {value!r}; expected a whole number of at least {least}.")
    return int(value)


def read_walk(plain: Any, size: int, model: str) -> dict[str, Floats]:
    """The vectors (size,) from which stochastic ascent goes on, out of a file."""
    found = {str(name): np.asarray(value, np.float64) for name, value in dict(plain).items()}
    known = found.keys() <= {"raw", "first", "second"}
    if not known or not all(value.shape == (size,) and np.isfinite(value).all() for value in found.values()):
        raise FileFormatError(f"The {model} in this file is damaged: its last updates do not fit its weights.")
    return found


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

    # -- what the fit makes equal --------------------------------------------------------------------------------------

    def matched_statistics(self) -> MatchedStatistics | None:
        """Sums of features, a mean over the examples, of the labels given and as expected under the fit.

        The names are made when asked for. None where they were not kept, as in files of earlier versions.
        """
        sums: Sums | None = self.__dict__.get("_sums")
        if sums is None:
            return None
        model: Any = self
        report = model.report_
        said = "Mean sums of the features over the labels given, and as the fit expects them given what is known."
        if not report.certificate.exact:
            said += f" Where graphs are too wide, the slope is that of another objective: {report.certificate.engine}."
        return sums.matched(self._state.structure.names, max(report.weight, 1e-300), said)

    @property
    def label_shares_(self) -> Floats | None:
        """The share of each label among those that the model was fitted to (K,); None where it was not kept."""
        sums: Sums | None = self.__dict__.get("_sums")
        return None if sums is None else sums.shares

    def _plain_sums(self) -> dict[str, Any]:
        sums: Sums | None = self.__dict__.get("_sums")
        return {} if sums is None else {"sums": sums.to_plain()}

    def _restore_sums(self, state: Mapping[str, Any]) -> None:
        self.__dict__["_sums"] = Sums.from_plain(state.get("sums"), len(self._state.weights))
