"""Several columns that are independent given the state, each with distributions of its own."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.errors import DataError, OptionError, after
from suffice.models.hidden_markov.emissions.contract import Data, Emission, Parameters, Statistics
from suffice.models.hidden_markov.emissions.distributions import IndependentColumns
from suffice.models.hidden_markov.emissions.moments import MatchedPart
from suffice.models.hidden_markov.emissions.standing import Standing
from suffice.statistics import Statistic


@dataclass(frozen=True)
class ColumnsEmission(Emission):
    """The product of the emissions `parts`, one for each column; names of arrays carry the number of the column."""

    size: int
    parts: tuple[Emission, ...]
    columns: tuple[Any, ...] | None = None

    @property
    def kinds(self) -> Mapping[str, str]:  # type: ignore[override]
        """Of all parts."""
        return {f"{number}.{name}": kind for number, part in enumerate(self.parts) for name, kind in part.kinds.items()}

    @property
    def known(self) -> Mapping[str, tuple[int, ...]]:
        """Of all parts."""
        return {
            f"{number}.{name}": cells for number, part in enumerate(self.parts) for name, cells in part.known.items()
        }

    def _split(self, arrays: Mapping[str, Any]) -> list[dict[str, Any]]:
        arrays_of_parts: list[dict[str, Any]] = [{} for _ in self.parts]
        for name, array in arrays.items():
            number, _, inner = name.partition(".")
            arrays_of_parts[int(number)][inner] = array
        return arrays_of_parts

    @staticmethod
    def _join(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return {f"{number}.{name}": array for number, part in enumerate(parts) for name, array in part.items()}

    # -- data --------------------------------------------------------------------------------------------------------

    def read(self, columns: Sequence[NDArray[Any]]) -> Data:
        """The arrays of all parts, one after another."""
        self._check_width(columns)
        return tuple(a for part, column in zip(self.parts, columns, strict=True) for a in part.read([column]))

    def _check_width(self, columns: Sequence[NDArray[Any]]) -> None:
        if len(columns) != len(self.parts):
            raise DataError(
                f"Steps hold {len(columns)} observations; expected {len(self.parts)}, one for each distribution."
            )

    def in_closed_form(self, data: Data) -> bool:
        """All parts."""
        return all(part.in_closed_form(piece) for part, piece in zip(self.parts, self._pieces(data), strict=True))

    def _pieces(self, data: Data) -> list[Data]:
        """The arrays of each part."""
        widths = [part.n_arrays for part in self.parts]
        ends = np.cumsum([0, *widths]).tolist()
        return [data[a:b] for a, b in itertools.pairwise(ends)]

    @property
    def width(self) -> int:
        """One for each part."""
        return len(self.parts)

    @property
    def n_arrays(self) -> int:
        """Those of all parts."""
        return sum(part.n_arrays for part in self.parts)

    # -- where EM begins ---------------------------------------------------------------------------------------------

    def points(self, data: Data) -> Floats:
        """Side by side."""
        return np.hstack([part.points(piece) for part, piece in zip(self.parts, self._pieces(data), strict=True)])

    def keys(self, data: Data) -> Data:
        """Those of all parts."""
        return tuple(
            key for part, piece in zip(self.parts, self._pieces(data), strict=True) for key in part.keys(piece)
        )

    def totals(self, data: Data, weights: Floats) -> Statistics:
        """Those of every part."""
        rows = zip(self.parts, self._pieces(data), strict=True)
        return self._join([part.totals(piece, weights) for part, piece in rows])

    def start(self, totals: Statistics, rng: np.random.Generator) -> Parameters:
        """Each part by itself."""
        rows = zip(self.parts, self._split(totals), strict=True)
        return self._join([part.start(own, rng) for part, own in rows])

    def before(self, totals: Statistics, rng: np.random.Generator) -> Parameters:
        """Each part by itself."""
        rows = zip(self.parts, self._split(totals), strict=True)
        return self._join([part.before(own, rng) for part, own in rows])

    @property
    def in_pieces(self) -> bool:
        """Where those of a part are."""
        return any(part.in_pieces for part in self.parts)

    def guessed(self, data: Data, shares: Floats, ranks: Floats, before: Parameters) -> Statistics:
        """Those of every part."""
        rows = zip(self.parts, self._pieces(data), self._split(before), strict=True)
        return self._join([part.guessed(piece, shares, ranks, own) for part, piece, own in rows])

    def from_guess(self, statistics: Statistics, before: Parameters) -> Parameters:
        """Each part by itself."""
        rows = zip(self.parts, self._split(statistics), self._split(before), strict=True)
        return self._join([part.from_guess(sums, own) for part, sums, own in rows])

    def idle(self, statistics: Statistics, before: Parameters) -> Parameters:
        """Each part by itself."""
        rows = zip(self.parts, self._split(statistics), self._split(before), strict=True)
        return self._join([part.idle(sums, own) for part, sums, own in rows])

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

    @property
    def without_prior(self) -> tuple[str, ...]:
        """Of all parts, each family once."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.without_prior))

    def notes(self, parameters: Parameters, statistics: Statistics, names: Sequence[str]) -> tuple[str, ...]:
        """Of all parts."""
        titles = self.columns or range(len(self.parts))
        rows = zip(titles, self.parts, self._split(parameters), self._split(statistics), strict=True)
        return tuple(
            after(f"column {title!r}: ", note)
            for title, part, own, sums in rows
            for note in part.notes(own, sums, names)
        )

    def _titled(self, texts: Sequence[Sequence[str]]) -> tuple[str, ...]:
        """Texts of all parts, after the name of their column."""
        titles = self.columns or range(len(self.parts))
        return tuple(f"column {title!r}: {text}" for title, some in zip(titles, texts, strict=True) for text in some)

    def standing(self, statistics: Statistics, parameters: Parameters, names: Sequence[str]) -> Standing:
        """Of all parts."""
        rows = zip(self.parts, self._split(statistics), self._split(parameters), strict=True)
        parts = [part.standing(sums, own, names) for part, sums, own in rows]
        whole = sum(parts, start=Standing())
        return replace(whole, directions=self._titled([part.directions for part in parts]))

    def collapsed(self, parameters: Parameters, names: Sequence[str]) -> tuple[str, ...]:
        """Of all parts."""
        rows = zip(self.parts, self._split(parameters), strict=True)
        return self._titled([part.collapsed(own, names) for part, own in rows])

    def unseen(self, statistics: Statistics) -> tuple[str, ...]:
        """Of all parts."""
        rows = zip(self.parts, self._split(statistics), strict=True)
        return self._titled([part.unseen(sums) for part, sums in rows])

    @property
    def coercive(self) -> bool:
        """All parts."""
        return all(part.coercive for part in self.parts)

    def moments(self, statistics: Statistics, parameters: Parameters, names: Sequence[str]) -> Iterator[MatchedPart]:
        """Of all parts."""
        titles = self.columns or range(len(self.parts))
        rows = zip(titles, self.parts, self._split(statistics), self._split(parameters), strict=True)
        for title, part, sums, own in rows:
            yield from part.moments(sums, own, [f"{name}, {title}" for name in names])

    @property
    def has_conjugate_prior(self) -> bool:
        """Some part."""
        return any(part.has_conjugate_prior for part in self.parts)

    # -- further steps -----------------------------------------------------------------------------------------------

    def left(self, rest: Statistics, before: Statistics) -> Statistics:
        """Each part by itself."""
        rows = zip(self.parts, self._split(rest), self._split(before), strict=True)
        return self._join([part.left(sums, held) for part, sums, held in rows])

    def describe_with(self, columns: Sequence[NDArray[Any]]) -> dict[str, Any]:
        """Of all parts."""
        self._check_width(columns)
        return {"parts": [part.describe_with([column]) for part, column in zip(self.parts, columns, strict=True)]}

    def questions(self, by: Hashable, names: Sequence[Hashable]) -> tuple[Statistic, ...]:
        """Those of every part, where all have some."""
        parts = [part.questions(by, [name]) for part, name in zip(self.parts, names, strict=True)]
        return tuple(question for part in parts for question in part) if all(parts) else ()

    def laid_out(self, statistics: Statistics, wider: Self) -> Statistics:
        """Each part by itself."""
        rows = zip(self.parts, self._split(statistics), wider.parts, strict=True)
        return self._join([part.laid_out(sums, other) for part, sums, other in rows])

    def rescaled(self, statistics: Statistics) -> Self:
        """Each part by itself."""
        rows = zip(self.parts, self._split(statistics), strict=True)
        return replace(self, parts=tuple(part.rescaled(sums) for part, sums in rows))

    # -- parameters as one vector ------------------------------------------------------------------------------------

    def vector(self, parameters: Parameters) -> Floats:
        """One after another."""
        rows = zip(self.parts, self._split(parameters), strict=True)
        return np.concatenate([part.vector(own) for part, own in rows])

    def at(self, vector: Floats, like: Parameters) -> Parameters:
        """Cut into the parts."""
        pieces, begin = [], 0
        for part, own in zip(self.parts, self._split(like), strict=True):
            length = len(part.vector(own))
            pieces.append(part.at(vector[begin : begin + length], own))
            begin += length
        return self._join(pieces)

    def inside(self, parameters: Parameters) -> bool:
        """All parts."""
        return all(part.inside(own) for part, own in zip(self.parts, self._split(parameters), strict=True))

    @property
    def n_free(self) -> NDArray[np.int64]:
        """The sum over columns."""
        return np.asarray(sum(part.n_free for part in self.parts))

    @property
    def n_shared(self) -> int:
        """The sum over columns."""
        return sum(part.n_shared for part in self.parts)

    # -- distributions
    # --------------------------------------------------------------------------------------------------------

    def distributions(self, parameters: Parameters) -> list[Any]:
        """Distributions of independent columns."""
        parts = [part.distributions(own) for part, own in zip(self.parts, self._split(parameters), strict=True)]
        return [IndependentColumns(distributions, columns=self.columns) for distributions in zip(*parts, strict=True)]

    def parameters_of(self, distributions: Any) -> Parameters:
        """From one list of distributions, or one distribution of columns, for each state."""
        if (
            isinstance(distributions, str)
            or not isinstance(distributions, Sequence | np.ndarray)
            or len(distributions) != self.size
        ):
            raise OptionError(f"emissions is {distributions!r}; expected one entry for each of {self.size} states.")
        rows = [
            list(distribution.get_params(deep=False)["distributions"])
            if isinstance(distribution, IndependentColumns)
            else distribution
            for distribution in distributions
        ]
        if any(not isinstance(row, Sequence | np.ndarray) or len(row) != len(self.parts) for row in rows):
            raise OptionError(
                f"emissions is {distributions!r}; expected {len(self.parts)} distributions for each state, one for "
                "each column."
            )
        given = [part.parameters_of([row[column] for row in rows]) for column, part in enumerate(self.parts)]
        return self._join(given)

    def restricted(self, given: Parameters) -> Self:
        """Each part by itself."""
        rows = zip(self.parts, self._split(given), strict=True)
        return replace(self, parts=tuple(part.restricted(own) for part, own in rows))

    def check_start(self, given: Parameters) -> None:
        """Each part by itself."""
        for part, own in zip(self.parts, self._split(given), strict=True):
            part.check_start(own)

    def draw(self, codes: NDArray[np.intp], parameters: Parameters, rng: np.random.Generator) -> list[NDArray[Any]]:
        """Column by column."""
        rows = zip(self.parts, self._split(parameters), strict=True)
        return [column for part, own in rows for column in part.draw(codes, own, rng)]

    def describe(self) -> dict[str, Any]:
        """Of all parts."""
        return {"parts": [part.describe() for part in self.parts]}
