"""Every real network through every format that is written: the same variables, states, parents and bits come back.

Labels decide. UAI has none, so there the places of variables and states are compared.
"""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import suffice as sf
from network_files import real_files, real_network, same, shared, texts
from suffice.formats import bif, net, uai, xmlbif
from trees import identical

WRITTEN = {"bif": bif, "bifxml": xmlbif, "net": net}


@pytest.mark.parametrize("ending", WRITTEN)
@pytest.mark.parametrize("name", real_files())
def test_reading_writing_and_reading_again_gives_the_same_network(name: str, ending: str, tmp_path: Path) -> None:
    network = real_network(name)
    module = WRITTEN[ending]
    module.save(tmp_path / f"net.{ending}", network)
    again = module.load(tmp_path / f"net.{ending}")
    text = texts(network)
    assert again.notes == ()
    assert identical((again.domain, again.parents, again.tables), (text.domain, text.parents, text.tables))
    assert same(module.parse(module.render(again)), again)


@pytest.mark.parametrize("name", real_files())
def test_uai_keeps_the_places_and_the_bits(name: str, tmp_path: Path) -> None:
    network = real_network(name)
    uai.save(tmp_path / "net.uai", network)
    again: Any = uai.load(tmp_path / "net.uai")
    names = network.domain.names
    for place, node in enumerate(names):
        assert tuple(names[parent] for parent in again.parents[place]) == network.parents[node]
        assert again.tables[place].tobytes() == network.tables[node].tobytes()


@pytest.mark.parametrize("name", real_files())
def test_the_model_in_our_own_file_is_the_network(name: str, tmp_path: Path) -> None:
    network = real_network(name)
    orders: dict[str, Literal["forward", "reversed"]] = {"asia.agrum.uai": "forward", "dog.uai": "reversed"}
    model = sf.read(shared(f"bn/{name}"), parent_order=orders.get(name))
    model.write(tmp_path / "net.suffice")
    again = sf.read(tmp_path / "net.suffice")
    assert (again.nodes, again.edges) == (model.nodes, model.edges)
    for node in network.domain.names:
        assert again.states(node) == network.domain[node].states
        assert again.parents(node) == network.parents[node]
        assert again.table(node).values.tobytes() == np.ascontiguousarray(network.tables[node]).tobytes()
