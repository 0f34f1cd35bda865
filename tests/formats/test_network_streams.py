"""Paths, streams, packed files and encodings of network files; and networks that no file would give back."""

import dataclasses
import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from network_files import same, sprinkler
from suffice.domain import Domain, Variable
from suffice.errors import FileFormatError, OptionError
from suffice.formats import bif
from suffice.formats.networks import FactorNetwork, TableNetwork

SPRINKLER = bif.render(sprinkler())
COIN = "variable coin { type discrete [ 2 ] { head, tail }; }\nprobability ( coin ) { table 0.5, 0.5; }\n"


# --------------------------------------------------------------------------------------------------------------------
# Files and streams
# --------------------------------------------------------------------------------------------------------------------


def test_paths_streams_and_packed_files(tmp_path: Path) -> None:
    network = bif.parse(SPRINKLER)
    for name in ("net.bif", "net.bif.gz", "NET.BIF.GZ"):
        bif.save(tmp_path / name, network)
        assert (tmp_path / name).read_bytes().startswith(b"\x1f\x8b") == name.lower().endswith(".gz")
        assert same(bif.load(tmp_path / name), network)
        assert same(bif.load(str(tmp_path / name)), network)
    assert (tmp_path / "net.bif.gz").read_bytes() == (tmp_path / "NET.BIF.GZ").read_bytes()
    assert same(bif.load(io.StringIO(SPRINKLER)), network)
    assert same(bif.load(io.BytesIO(gzip.compress(SPRINKLER.encode()))), network)


def test_damaged_packed_files_and_folders(tmp_path: Path) -> None:
    packed = gzip.compress(SPRINKLER.encode())
    for place in range(2, len(packed)):
        (tmp_path / "cut.bif.gz").write_bytes(packed[:place])
        with pytest.raises(FileFormatError, match="damaged or cut short"):
            bif.load(tmp_path / "cut.bif.gz")
    with pytest.raises(FileFormatError, match="it is a folder"):
        bif.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        bif.load(tmp_path / "absent.bif")


def test_a_packed_file_cannot_unpack_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.formats.streams.MOST_BYTES", 1000)
    (tmp_path / "bomb.bif.gz").write_bytes(gzip.compress(b" " * 1001))
    with pytest.raises(FileFormatError, match="larger than 1000 bytes"):
        bif.load(tmp_path / "bomb.bif.gz")
    with pytest.raises(FileFormatError, match="larger than 1000 bytes"):
        bif.load(io.StringIO(" " * 1001))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_of_unicode(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "net.bif").write_bytes(COIN.replace("head", "Kopf-ß").encode(encoding))
    found = bif.load(tmp_path / "net.bif")
    assert found.domain["coin"].states == ("Kopf-ß", "tail")
    assert found.notes == ()


def test_a_file_that_is_not_utf_8_is_latin_1_with_a_note(tmp_path: Path) -> None:
    (tmp_path / "net.bif").write_bytes(COIN.replace("head", "plat-blå").encode("latin-1"))
    found = bif.load(tmp_path / "net.bif")
    assert found.domain["coin"].states == ("plat-blå", "tail")
    assert found.notes == ("The file is not UTF-8 and was read as Latin-1.",)
    (tmp_path / "net.bif").write_bytes(COIN.encode("utf-16")[:-1])
    with pytest.raises(FileFormatError, match="no UTF-16, as it says"):
        bif.load(tmp_path / "net.bif")


# --------------------------------------------------------------------------------------------------------------------
# Writing
# --------------------------------------------------------------------------------------------------------------------


def test_numbers_and_truth_values_are_written_as_text() -> None:
    domain = Domain([Variable.discrete(0, [False, True]), Variable.discrete("b", [1, 2.5])])
    network = TableNetwork(domain, {0: (), "b": (0,)}, {0: np.array([0.25, 0.75]), "b": np.array([[0.1, 0.9], [1, 0]])})
    found = bif.parse(bif.render(network))
    assert [(variable.name, variable.states) for variable in found.domain.variables] == [
        ("0", ("False", "True")),
        ("b", ("1", "2.5")),
    ]
    assert np.array_equal(found.tables["b"], network.tables["b"])


def coin(**changes: Any) -> TableNetwork:
    network = TableNetwork(Domain([Variable.discrete("c", ["h", "t"])]), {"c": ()}, {"c": np.array([0.5, 0.5])})
    return dataclasses.replace(network, **changes)


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (coin(domain=Domain([Variable.discrete("c", [1, "1"])])), "1 and '1' are the same text"),
        (coin(domain=Domain([Variable.discrete("c", [(1, 2), "1"])])), r"the states of 'c' is \(1, 2\) \(tuple\)"),
        (coin(domain=Domain([Variable.discrete("c", ["a\r", "b"])])), "with a carriage return"),
        (coin(domain=Domain([Variable.discrete("c", ["\ud800", "b"])])), "half of a surrogate pair"),
        (coin(tables={"c": np.array([0.5, np.nan])}), "would not be read again: node 'c' holds nan"),
        (coin(tables={"c": np.array([0.5, 0.25])}), r"node 'c' sums to 0\.75"),
        (coin(tables={"c": np.array([[0.5, 0.5]])}), r"has shape \(1, 2\); its states and parents need \(2,\)"),
        (coin(parents={"c": ("c",)}), "The parents form a cycle: 'c' -> 'c'"),
        (coin(properties={"name": "a\x00b"}), "A property is 'a.x00b', with a carriage return or a NUL"),
        (FactorNetwork(Domain(), ()), "BIF holds directed networks of tables; this is FactorNetwork"),
    ],
)
def test_what_a_file_would_not_give_back_is_not_written(tmp_path: Path, network: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        bif.save(tmp_path / "net.bif", network)
    assert list(tmp_path.iterdir()) == []
