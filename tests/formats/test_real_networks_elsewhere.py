"""What `write` makes of every real network opens in pgmpy and pyAgrum with the same tables; skipped without them."""

from pathlib import Path
from typing import Literal

import pytest

import suffice as sf
from network_files import largest_difference, read_by_pgmpy, read_by_pyagrum, real_files, real_network, shared, texts

PGMPY = {"bif": "BIFReader", "bifxml": "XMLBIFReader", "net": "NETReader"}
#: BIF costs pgmpy seconds a file, NET the square of the number of nodes; the tests of these formats hold more.
SOME = {
    "bif": ("hailfinder.bif.gz", "munin1.bif.gz"),
    "bifxml": real_files(),
    "net": ("cancer.bif.gz", "earthquake.bif.gz", "survey.bif.gz"),
}


#: Beyond pyAgrum's grammar of BIF: variables that are numbers, states with "/". In NET names that are no identifiers
#: are written under one, so its labels differ.
BEYOND = {("child.bif.gz", "bif"), ("dog.bifxml", "net")}
BEYOND |= {(name, ending) for name in ("asia.agrum.uai", "dog.uai") for ending in ("bif", "net")}


#: UAI files do not say in which order their parents stand.
ORDERS: dict[str, Literal["forward", "reversed"]] = {"asia.agrum.uai": "forward", "dog.uai": "reversed"}


@pytest.mark.parametrize(
    ("name", "ending"), [(name, ending) for name in real_files() for ending in PGMPY if (name, ending) not in BEYOND]
)
def test_pyagrum_finds_the_same_tables(name: str, ending: str, tmp_path: Path) -> None:
    pytest.importorskip("pyagrum")
    network = texts(real_network(name))
    sf.read(shared(f"bn/{name}"), parent_order=ORDERS.get(name)).write(tmp_path / f"net.{ending}")
    difference = largest_difference(network, read_by_pyagrum(tmp_path / f"net.{ending}"))
    # It holds what it reads from BIF and NET in single precision.
    assert difference <= (0.0 if ending == "bifxml" else 1e-6)


@pytest.mark.parametrize(("name", "ending"), [(name, ending) for ending, names in SOME.items() for name in names])
def test_pgmpy_finds_the_same_tables(name: str, ending: str, tmp_path: Path) -> None:
    pytest.importorskip("pgmpy")
    sf.read(shared(f"bn/{name}"), parent_order=ORDERS.get(name)).write(tmp_path / f"net.{ending}")
    network = texts(real_network(name))
    assert largest_difference(network, read_by_pgmpy(PGMPY[ending], tmp_path / f"net.{ending}")) == 0.0
