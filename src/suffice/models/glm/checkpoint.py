"""A file from which an interrupted fit goes on: the best coefficients so far, and which fit they belong to."""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np

from suffice import storage
from suffice.array_types import Floats
from suffice.errors import FileFormatError, OptionError, warn
from suffice.fitting.control import CHECKPOINT_SECONDS
from suffice.models.glm.design import NamedParameters


class Keeper:
    """Notes the coefficients with the largest objective, and writes them now and then.

    `path` is that of the file; `problem` is the driver's mark, which tells one fit from another.
    """

    def __init__(self, path: str | Path, design: NamedParameters, problem: str) -> None:
        """Keep the names."""
        self._path, self._design, self._problem = Path(path), design, problem
        self._best, self._value = np.zeros(0), -math.inf
        self._saved = time.monotonic()
        self._ending = ".json" if self._path.suffix.lower() == ".json" else ".suffice"

    def start(self) -> Floats | None:
        """The coefficients of the file in the order of the names, (k,) or (k, m); None where there is no file."""
        if not self._path.exists():
            return None
        tree = storage.load(self._path, ending=self._ending)
        if not isinstance(tree, dict) or "coefficients" not in tree:
            raise FileFormatError(f"{self._path} is not a checkpoint of a GLM. Choose another path for checkpoint=.")
        if tree["checkpoint"] != self._problem:
            raise OptionError(
                f"The checkpoint {self._path} belongs to another fit (other data or other options). Delete it, or "
                "choose another path."
            )
        return np.asarray(tree["coefficients"], dtype=np.float64)

    def fresh(self) -> None:
        """A new round begins, whose objective is not that of the last one."""
        self._value = -math.inf

    def note(self, beta: Floats, value: float) -> None:
        """Coefficients in the engine's layout, (k,) or (m k,), and their objective."""
        if not value > self._value:
            return
        self._best, self._value = beta.copy(), value
        if time.monotonic() - self._saved > CHECKPOINT_SECONDS:
            self.save()
            self._saved = time.monotonic()

    def save(self) -> None:
        """Write; a disk that fails is a warning, not the loss of the fit."""
        if not len(self._best):
            return
        shaped = self._design.public(self._best.reshape(-1, self._design.size).T)
        tree = {"checkpoint": self._problem, "coefficients": shaped}
        try:
            storage.save(self._path, tree, ending=self._ending)
        except OSError as error:
            warn(f"The checkpoint {self._path} could not be written: {error}.")

    def close(self, converged: bool) -> None:
        """A finished fit leaves nothing to go on from."""
        if converged:
            self._path.unlink(missing_ok=True)
        else:
            self.save()
