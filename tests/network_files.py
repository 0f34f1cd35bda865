"""What the tests of the network formats share: a small network, the shared data, and the readers of other libraries."""

import dataclasses
import functools
import importlib
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from suffice.domain import Domain, Variable
from suffice.formats.networks import FactorNetwork, TableNetwork
from trees import identical

#: Real networks, beside the project where there are any; tests that need them are skipped by name elsewhere.
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

#: Module that reads a format, by ending.
READERS = {"bif": "bif", "bifxml": "xmlbif", "net": "net", "dsl": "dsl", "xdsl": "xdsl", "uai": "uai"}

Found = dict[str, tuple[list[str], dict[str, list[str]], NDArray[np.float64]]]


def sprinkler() -> TableNetwork:
    """Rain and season decide on wet grass: three cards, two parents, rows that are all different."""
    domain = Domain(
        [
            Variable.discrete("season", ["dry", "wet"]),
            Variable.discrete("rain", ["none", "some", "much"]),
            Variable.discrete("grass", ["dry", "damp", "wet", "flooded"]),
        ]
    )
    grass = np.array([[[8, 4, 2, 2], [2, 8, 4, 2], [1, 1, 6, 8]], [[4, 4, 4, 4], [1, 3, 5, 7], [0, 0, 0, 16]]]) / 16
    return TableNetwork(
        domain,
        {"season": (), "rain": ("season",), "grass": ("season", "rain")},
        {"season": np.array([0.75, 0.25]), "rain": np.array([[0.5, 0.375, 0.125], [0.1, 0.2, 0.7]]), "grass": grass},
    )


def same(left: TableNetwork | FactorNetwork, right: TableNetwork | FactorNetwork) -> bool:
    """Same variables and states in the same order, same parents and bits, same properties; notes may differ."""
    fields = [field.name for field in dataclasses.fields(left) if field.name != "notes"]
    return type(left) is type(right) and all(identical(getattr(left, name), getattr(right, name)) for name in fields)


def probability(network: TableNetwork, node: Hashable, state: Hashable, **given: Hashable) -> float:
    """P(node = state | parents = given), by label."""
    place = [network.domain[parent].index(given[str(parent)]) for parent in network.parents[node]]
    return float(network.tables[node][(*place, network.domain[node].index(state))])


def shared(name: str) -> Path:
    """A file of the shared data, or a skip that names it."""
    path = DATA / name
    if not path.exists():
        pytest.skip(f"shared data: {name} is not here")
    return path


def real_files() -> list[str]:
    """Names of the real networks in every format that is read; one name where there are none, for the skip."""
    names = [path.name for path in (DATA / "bn").glob("*") if _ending(path.name) in READERS]
    return sorted(names) or ["alarm.bif.gz"]


@functools.cache
def real_network(name: str) -> TableNetwork:
    """A real network, by the name of its file."""
    module = importlib.import_module(f"suffice.formats.{READERS[_ending(name)]}")
    network: TableNetwork = module.load(shared(f"bn/{name}"))
    return network


def _ending(name: str) -> str:
    return name.removesuffix(".gz").rpartition(".")[2]


def texts(network: TableNetwork) -> TableNetwork:
    """The network with text for names and states, as files but UAI hold them."""
    words: dict[Hashable, Hashable] = {name: str(name) for name in network.domain}
    domain = Domain(Variable.discrete(words[n], map(str, network.domain[n].states)) for n in network.domain)
    parents = {words[name]: tuple(words[parent] for parent in found) for name, found in network.parents.items()}
    return TableNetwork(domain, parents, {words[name]: table for name, table in network.tables.items()})


def largest_difference(network: TableNetwork, found: Found) -> float:
    """Largest difference of any probability from what another library found, matched by label."""
    assert set(found) == set(map(str, network.domain))
    worst = 0.0
    for node, (parents, states, values) in found.items():
        mine = network.parents[node]
        assert set(parents) == set(mine)
        aligned = np.transpose(values, [*(parents.index(str(parent)) for parent in mine), len(parents)])
        for axis, name in enumerate((*mine, node)):
            aligned = np.take(aligned, _order(states[str(name)], network.domain[name].states), axis=axis)
        worst = max(worst, float(np.abs(aligned - network.tables[node]).max()))
    return worst


def _order(theirs: Sequence[str], mine: Sequence[Hashable]) -> list[int]:
    assert sorted(theirs) == sorted(map(str, mine))
    return [list(theirs).index(str(state)) for state in mine]


def read_by_pgmpy(reader: str, path: Path) -> Found:
    """Tables as pgmpy's reader of that name finds them, with the axes (parents ..., node)."""
    readwrite = pytest.importorskip("pgmpy.readwrite")
    model = getattr(readwrite, reader)(str(path)).get_model()
    found: Found = {}
    for cpd in model.get_cpds():
        node, *parents = cpd.variables
        found[node] = (list(parents), dict(cpd.state_names), np.moveaxis(np.asarray(cpd.values), 0, -1))
    return found


def read_by_pyagrum(path: Path) -> Found:
    """Tables as pyAgrum finds them, with the axes (parents ..., node)."""
    gum: Any = pytest.importorskip("pyagrum")
    model = gum.loadBN(str(path))
    found: Found = {}
    for name in model.names():
        table = model.cpt(name)
        axes = list(reversed(table.names))  # The first variable of a table is its fastest, the last axis of the array.
        parents = [axis for axis in axes if axis != name]
        values = np.moveaxis(np.asarray(table.toarray()), axes.index(name), -1)
        states = {axis: list(model.variable(axis).labels()) for axis in axes}
        found[name] = (parents, states, values)
    return found
