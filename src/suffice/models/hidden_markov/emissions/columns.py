"""Several columns that are independent given the state, each with laws of its own."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import DataError, OptionError
from suffice.models.hidden_markov.emissions.contract import Data, Emission, Floats, Parameters, Statistics
from suffice.models.hidden_markov.emissions.law import ColumnsLaw


@dataclass(frozen=True)
class ColumnsEmission(Emission):
    """The product of the emissions `parts`, one for each column; names of arrays carry the number of the column."""

    size: int
    parts: tuple[Emission, ...]
    columns: tuple[Any, ...] | None = None

    @property
    def kinds(self) -> Mapping[str, str]:  # type: ignore[override]
        """Of all parts."""
        return {f"{at}.{name}": kind for at, part in enumerate(self.parts) for name, kind in part.kinds.items()}

    def _split(self, arrays: Mapping[str, Any]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = [{} for _ in self.parts]
        for name, array in arrays.items():
            at, _, inner = name.partition(".")
            found[int(at)][inner] = array
        return found

    @staticmethod
    def _join(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return {f"{at}.{name}": array for at, part in enumerate(parts) for name, array in part.items()}

    # -- data --------------------------------------------------------------------------------------------------------

    def read(self, columns: Sequence[NDArray[Any]]) -> Data:
        """The arrays of all parts, one after another."""
        if len(columns) != len(self.parts):
            raise DataError(f"Steps hold {len(columns)} observations; the laws describe {len(self.parts)}.")
        return tuple(a for part, column in zip(self.parts, columns, strict=True) for a in part.read([column]))

    def _pieces(self, data: Data) -> list[Data]:
        """The arrays of each part."""
        widths = [part.n_arrays for part in self.parts]
        ends = np.cumsum([0, *widths]).tolist()
        return [data[a:b] for a, b in itertools.pairwise(ends)]

    @property
    def n_arrays(self) -> int:
        """Those of all parts."""
        return sum(part.n_arrays for part in self.parts)

    def spread(self, data: Data) -> Floats:
        """Side by side."""
        return np.hstack([part.spread(piece) for part, piece in zip(self.parts, self._pieces(data), strict=True)])

    # -- expectation -------------------------------------------------------------------------------------------------

    def log_densities(self, data: Data, parameters: Parameters) -> Floats:
        """The sum over columns."""
        rows = zip(self.parts, self._pieces(data), self._split(parameters), strict=True)
        return np.asarray(sum(part.log_densities(piece, own) for part, piece, own in rows))

    def statistics(self, data: Data, weights: Floats, parameters: Parameters) -> Statistics:
        """Those of every part."""
        rows = zip(self.parts, self._pieces(data), self._split(parameters), strict=True)
        return self._join([part.statistics(piece, weights, own) for part, piece, own in rows])

    # -- maximisation ------------------------------------------------------------------------------------------------

    def expected(self, statistics: Statistics, parameters: Parameters) -> Floats:
        """The sum over columns."""
        rows = zip(self.parts, self._split(statistics), self._split(parameters), strict=True)
        return np.asarray(sum(part.expected(sums, own) for part, sums, own in rows))

    def maximise(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        """Each part by itself."""
        rows = zip(self.parts, self._split(statistics), self._split(parameters), strict=True)
        return self._join([part.maximise(sums, own) for part, sums, own in rows])

    def log_prior(self, parameters: Parameters) -> Floats:
        """The sum over columns."""
        rows = zip(self.parts, self._split(parameters), strict=True)
        return np.asarray(sum(part.log_prior(own) for part, own in rows))

    def pool(self, statistics: Statistics, groups: Sequence[Sequence[int]]) -> Statistics:
        """Each part by itself."""
        rows = zip(self.parts, self._split(statistics), strict=True)
        return self._join([part.pool(sums, groups) for part, sums in rows])

    @property
    def without_prior(self) -> tuple[str, ...]:
        """Of all parts, each family once."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.without_prior))

    def notes(self, parameters: Parameters) -> tuple[str, ...]:
        """Of all parts."""
        rows = zip(self.parts, self._split(parameters), strict=True)
        return tuple(f"column {at}: {note}" for at, (part, own) in enumerate(rows) for note in part.notes(own))

    # -- parameters as one vector ------------------------------------------------------------------------------------

    def vector(self, parameters: Parameters) -> Floats:
        """One after another."""
        rows = zip(self.parts, self._split(parameters), strict=True)
        return np.concatenate([part.vector(own) for part, own in rows])

    def at(self, vector: Floats, like: Parameters) -> Parameters:
        """Cut into the parts."""
        found, begin = [], 0
        for part, own in zip(self.parts, self._split(like), strict=True):
            length = len(part.vector(own))
            found.append(part.at(vector[begin : begin + length], own))
            begin += length
        return self._join(found)

    def inside(self, parameters: Parameters) -> bool:
        """All parts."""
        return all(part.inside(own) for part, own in zip(self.parts, self._split(parameters), strict=True))

    @property
    def n_params(self) -> int:
        """The sum over columns."""
        return sum(part.n_params for part in self.parts)

    @property
    def n_shared(self) -> int:
        """The sum over columns."""
        return sum(part.n_shared for part in self.parts)

    # -- laws --------------------------------------------------------------------------------------------------------

    def laws(self, parameters: Parameters) -> list[Any]:
        """Laws of independent columns."""
        parts = [part.laws(own) for part, own in zip(self.parts, self._split(parameters), strict=True)]
        return [ColumnsLaw(laws, columns=self.columns) for laws in zip(*parts, strict=True)]

    def parameters_of(self, laws: Any) -> Parameters:
        """From one list of laws, or one law of columns, for each state."""
        if (np.ndim(laws) == 0 and not isinstance(laws, Sequence)) or len(laws) != self.size:
            raise OptionError(f"emissions is {laws!r}; expected one entry for each of {self.size} states.")
        rows = [law.laws if isinstance(law, ColumnsLaw) else list(law) for law in laws]
        if any(len(row) != len(self.parts) for row in rows):
            raise OptionError(f"emissions has a state without {len(self.parts)} laws, one for each column.")
        given = [part.parameters_of([row[at] for row in rows]) for at, part in enumerate(self.parts)]
        return self._join(given)

    def start(self, data: Data, rng: np.random.Generator) -> Parameters:
        """Each part by itself."""
        rows = zip(self.parts, self._pieces(data), strict=True)
        return self._join([part.start(piece, rng) for part, piece in rows])

    def draw(self, codes: NDArray[np.intp], parameters: Parameters, rng: np.random.Generator) -> list[NDArray[Any]]:
        """Column by column."""
        rows = zip(self.parts, self._split(parameters), strict=True)
        return [column for part, own in rows for column in part.draw(codes, own, rng)]

    def describe(self) -> dict[str, Any]:
        """Of all parts."""
        return {"parts": [part.describe() for part in self.parts]}
