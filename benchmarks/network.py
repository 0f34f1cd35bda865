"""A network of discrete variables as arrays, so that contenders in other processes can be given it, and its tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contender import Data

Floats = NDArray[np.float64]

#: Networks from elsewhere are read from here, where there are any.
FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "bn"

EQUIVALENT_SAMPLE_SIZE = 10.0


@dataclass(frozen=True)
class Network:
    """Variables are numbered and named ``v0``, ``v1``, ...; the states of each are ``s0``, ``s1``, ..."""

    cards: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, data: Data) -> Network:
        """From the arrays of `arrays`."""
        ends = data["parent_ends"].tolist()
        flat = data["parents"].tolist()
        pieces = zip([0, *ends[:-1]], ends, strict=True)
        return cls(tuple(data["cards"].tolist()), tuple(tuple(flat[begin:end]) for begin, end in pieces))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Cards, parents one after the other, and where those of each variable end."""
        return {
            "cards": np.array(self.cards),
            "parents": np.array([parent for parents in self.parents for parent in parents], dtype=np.int64),
            "parent_ends": np.cumsum([len(parents) for parents in self.parents]),
        }

    @property
    def names(self) -> list[str]:
        return [f"v{index}" for index in range(len(self.cards))]

    def states(self, variable: int) -> list[str]:
        return [f"s{state}" for state in range(self.cards[variable])]

    @property
    def structure(self) -> dict[str, list[str]]:
        """The parents of each variable, by name."""
        named = zip(self.names, self.parents, strict=True)
        return {name: [f"v{parent}" for parent in parents] for name, parents in named}

    @property
    def edges(self) -> list[tuple[str, str]]:
        return [(parent, child) for child, parents in self.structure.items() for parent in parents]

    @property
    def families(self) -> list[tuple[int, ...]]:
        """Parents, then the variable itself."""
        return [(*parents, index) for index, parents in enumerate(self.parents)]

    def shape(self, family: Iterable[int]) -> tuple[int, ...]:
        return tuple(self.cards[variable] for variable in family)

    def pseudo_counts(self, prior: str | None) -> list[float]:
        """Of a cell of each family: 0, or the share of the equivalent sample size."""
        cells = [math.prod(self.shape(family)) for family in self.families]
        return [0.0 if prior is None else EQUIVALENT_SAMPLE_SIZE / size for size in cells]

    def split(self, flat: Any) -> Iterator[Any]:
        """Tables (parents, node) from all of them in one array."""
        begin = 0
        for family in self.families:
            shape = self.shape(family)
            yield flat[begin : begin + math.prod(shape)].reshape(shape)
            begin += math.prod(shape)


def frame_of(data: Data) -> Any:
    """The codes as a pandas frame of categories."""
    import pandas as pd

    network = Network.of(data)
    small = np.int8 if max(network.cards) <= 127 else np.int16
    columns = {
        name: pd.Categorical.from_codes(data["codes"][at].astype(small), network.states(at))
        for at, name in enumerate(network.names)
    }
    return pd.DataFrame(columns)


def expected(data: Data, prior: str | None) -> Floats:
    """All tables in one array, from counts by `np.unique`; NaN where there is neither a row nor a prior."""
    network, codes = Network.of(data), data["codes"]
    tables = []
    for family, pseudo in zip(network.families, network.pseudo_counts(prior), strict=True):
        shape = network.shape(family)
        counts = np.full(math.prod(shape), pseudo)
        cells, seen = np.unique(np.ravel_multi_index(tuple(codes[list(family)]), shape), return_counts=True)
        counts[cells] += seen
        rows = counts.reshape(-1, shape[-1])
        with np.errstate(invalid="ignore"):
            tables.append((rows / rows.sum(axis=1, keepdims=True)).ravel())
    return np.concatenate(tables)


class Judge:
    """Compares the tables of a contender with those expected, where these are defined."""

    def __init__(self, data: Data) -> None:
        """Work out what is expected once."""
        self._expected = {prior: expected(data, prior) for prior in (None, "bdeu")}

    def __call__(self, name: str, answer: Any) -> str:
        truth = self._expected["bdeu" if "BDeu" in name else None]
        defined = ~np.isnan(truth)
        return f"{float(np.abs(np.asarray(answer)[defined] - truth[defined]).max()):.0e} off"
