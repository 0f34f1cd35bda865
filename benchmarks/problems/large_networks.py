"""The tables of networks of two to four hundred nodes, from rows drawn from the networks themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.contender import Contender, Data
from benchmarks.network import FOLDER, Judge, Network

NAMES = ("andes", "munin1", "diabetes", "pigs")

_OURS = "benchmarks.rivals.networks_with_suffice"
_NUMPY = "benchmarks.rivals.networks_with_numpy"
_BDEU = {"prior": "bdeu"}
_FRAME = {"frame": True}


@dataclass(frozen=True)
class LargeNetwork:
    """One network of the shared data."""

    file: str

    ROWS = 100_000
    REPEATS = 4
    CONTENDERS = (
        Contender("suffice, frame, BDeu", _OURS, "fit", {**_FRAME, **_BDEU}, "pandas"),
        Contender("numpy bincount by hand, frame, BDeu", _NUMPY, "fit", {**_FRAME, **_BDEU}, "pandas"),
        Contender("polars group_by, codes, BDeu", "benchmarks.rivals.networks_with_polars", "fit", _BDEU, "polars"),
        Contender("pgmpy, frame, BDeu", "benchmarks.rivals.networks_with_pgmpy", "fit", _BDEU, "pgmpy"),
        Contender("pyAgrum, frame, BDeu", "benchmarks.rivals.networks_with_pyagrum", "fit", requires="pyagrum"),
    )

    @property
    def NAME(self) -> str:  # noqa: N802  a constant of the problem
        return f"large-networks, {self.file}"

    def title(self, rows: int) -> str:
        return f"Tables of {self.file.upper()}, {rows:,} rows"

    def make(self, rows: int, seed: int) -> Data:
        network, net = read(self.file)
        drawn = net.sample(rows, random_state=seed)
        dtype = np.uint8 if max(network.cards) <= 255 else np.uint16
        codes = np.empty((len(network.cards), rows), dtype)
        for at, name in enumerate(net.nodes):
            code = {state: place for place, state in enumerate(net.states(name))}
            labels, places = np.unique(drawn[name].astype(str), return_inverse=True)
            by_text = {str(state): place for state, place in code.items()}
            codes[at] = np.array([by_text[label] for label in labels.tolist()])[places]
        return {"codes": codes, **network.arrays()}

    def judge(self, data: Data) -> Callable[[str, Any], str]:
        """Against tables from `np.unique`: largest error of a probability."""
        return Judge(data)


def read(file: str) -> tuple[Network, Any]:
    """A network of the shared data, as arrays and as we read it."""
    import suffice as sf

    net = sf.read(FOLDER / f"{file}.bif.gz")
    place = {name: at for at, name in enumerate(net.nodes)}
    parents = tuple(tuple(place[parent] for parent in net.parents(name)) for name in net.nodes)
    return Network(tuple(len(net.states(name)) for name in net.nodes), parents), net


def cases() -> Iterator[LargeNetwork]:
    """Those whose file is there; the others are named."""
    for name in NAMES:
        if (FOLDER / f"{name}.bif.gz").exists():
            yield LargeNetwork(name)
        else:
            print(f"large-networks: {name}.bif.gz is not in {FOLDER}; left out.")
