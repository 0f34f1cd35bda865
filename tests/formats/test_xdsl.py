"""XDSL: the format of GeNIe, read only."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from network_files import largest_difference, read_by_pgmpy, same, shared, sprinkler
from suffice.errors import FileFormatError
from suffice.formats import bif, xdsl

SPRINKLER = """<?xml version="1.0" encoding="UTF-8"?>
<smile version="1.0" id="sprinkler" numsamples="1000">
  <properties><property id="author">somebody</property></properties>
  <nodes>
    <cpt id="season">
      <state id="dry" /><state id="wet" />
      <property id="source">almanac</property>
      <probabilities>0.75 0.25</probabilities>
    </cpt>
    <cpt id="rain">
      <state id="none" /><state id="some" /><state id="much" />
      <parents>season</parents>
      <probabilities>0.5 0.375 0.125 0.1 0.2 0.7</probabilities>
    </cpt>
    <cpt id="grass">
      <state id="dry" /><state id="damp" /><state id="wet" /><state id="flooded" />
      <parents>season rain</parents>
      <probabilities>0.5 0.25 0.125 0.125 0.125 0.5 0.25 0.125 0.0625 0.0625 0.375 0.5
        0.25 0.25 0.25 0.25 0.0625 0.1875 0.3125 0.4375 0 0 0 1</probabilities>
    </cpt>
  </nodes>
  <extensions>
    <genie version="1.0" app="GeNIe">
      <node id="season"><name>Season of the year</name></node>
      <submodel id="garden"><name>Garden</name><node id="grass"><name>grass</name></node></submodel>
    </genie>
  </extensions>
</smile>
"""

COIN = '<cpt id="coin"><state id="head"/><state id="tail"/><probabilities>0.5 0.5</probabilities></cpt>'


def smile(*nodes: str) -> str:
    return f'<smile version="1.0"><nodes>{"".join(nodes)}</nodes></smile>'


def test_a_file_gives_its_network() -> None:
    network, wanted = xdsl.parse(SPRINKLER), sprinkler()
    assert network.domain == wanted.domain
    assert network.parents == wanted.parents
    assert all(np.array_equal(network.tables[name], wanted.tables[name]) for name in wanted.domain)
    assert network.properties == {
        "name": "sprinkler",
        "network": ("author = somebody",),
        "variables": {"season": ("name = Season of the year", "source = almanac")},
    }
    assert same(bif.parse(bif.render(network)), network)


def test_a_deterministic_node_gives_one_state_for_each_row() -> None:
    both = '<deterministic id="both"><state id="no"/><state id="yes"/><parents>coin other</parents>'
    both += "<resultingstates>no yes yes no</resultingstates></deterministic>"
    network = xdsl.parse(smile(both, COIN, COIN.replace('"coin"', '"other"')))
    assert network.tables["both"].tolist() == [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: not well-formed XML: no element found"),
        ("<BIF/>", "found <BIF>; expected <smile>"),
        ("<smile/>", "the file has 0 elements <nodes>; expected one"),
        (smile(), "no variable is declared"),
        (smile(COIN).replace("<nodes>", "<dynamic/><nodes>"), "line 1, column 22: the network has time slices"),
        (smile(COIN, COIN), "variable 'coin' is declared twice"),
        (smile("<cpt/>"), "<cpt> has no attribute 'id'"),
        (smile('<cpt id="x"/>'), "variable 'x' has no states"),
        (smile('<cpt id="x"><state/></cpt>'), "a state of node 'x' has no attribute 'id'"),
        (smile('<cpt id="x"><state id="a"/><state id="a"/></cpt>'), "variable 'x' declares the state 'a' twice"),
        (smile('<noisymax id="x"/>'), "node 'x' is <noisymax>; only <cpt> and <deterministic> can be read"),
        (smile('<equation id="x"/>'), "node 'x' is <equation>"),
        (smile('<cpt id="x"><state id="a"/></cpt>'), "node 'x' has 0 elements <probabilities>; expected one"),
        (smile(COIN.replace("0.5 0.5", "0.5 x")), "value 2 of <probabilities> is 'x'; expected a number"),
        (smile(COIN.replace("0.5 0.5", "0.5")), "the table of node 'coin' has 1 values; expected 2"),
        (smile(COIN.replace("0.5 0.5", "0.5 0.6")), "node 'coin' sums to 1.1"),
        (
            smile(COIN.replace("<prob", "<parents>x</parents><prob")),
            "node 'coin' has the parent 'x', which is no variable",
        ),
        (smile('<!DOCTYPE x [<!ENTITY a "b">]>'), "not well-formed XML"),
        ('<!DOCTYPE smile [<!ENTITY a "b">]>' + smile(COIN), "the DTD declares an entity"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text: str, message: str) -> None:
    with pytest.raises(FileFormatError, match=re.escape(message)) as caught:
        xdsl.parse(text, "file.xdsl")
    assert re.match(r"file\.xdsl, line \d+, column \d+: .*\.\Z", str(caught.value), re.DOTALL)


def test_a_real_file() -> None:
    path = shared("bn/benefits.xdsl")
    network = xdsl.load(path)
    arcs = sum(map(len, network.parents.values()))
    free = sum(table.size // table.shape[-1] * (table.shape[-1] - 1) for table in network.tables.values())
    assert (len(network.domain), arcs, free) == (14, 24, 59)
    assert network.properties["variables"]["Vendor_support"] == ("name = Vendor support",)
    assert same(bif.parse(bif.render(network)), network)


def test_pgmpy_reads_the_same_from_a_real_file() -> None:
    path = shared("bn/benefits.xdsl")
    assert largest_difference(xdsl.load(path), read_by_pgmpy("XDSLReader", path)) == 0.0


def test_files_of_pyagrum_have_the_first_parent_fastest(tmp_path: Path) -> None:
    """They name aGrUM as their author; the tables are those that pyAgrum holds, by label."""
    gum: Any = pytest.importorskip("pyagrum")
    model = gum.fastBN("a[2]->d[2]<-b[3];c[4]->d")
    model.generateCPTs()
    gum.saveBN(model, str(tmp_path / "net.xdsl"))
    found = xdsl.load(tmp_path / "net.xdsl")
    for place in np.ndindex(2, 3, 4):
        where = dict(zip("abc", place, strict=True))
        states: dict[Any, Any] = {name: found.domain[name].states[code] for name, code in where.items()}
        order = [states[parent] for parent in found.parents["d"]]
        at = tuple(found.domain[parent].index(state) for parent, state in zip(found.parents["d"], order, strict=True))
        np.testing.assert_allclose(found.tables["d"][at], model.cpt("d")[where], atol=1e-6)
    # The same text by another author is in the order of the format.
    text = (tmp_path / "net.xdsl").read_text()
    other = xdsl.parse(text.replace('app="aGrUM', 'app="GeNIe'))
    np.testing.assert_array_equal(other.tables["d"].ravel(), found.tables["d"].ravel())
    assert list(other.parents["d"]) == list(found.parents["d"])[::-1]
