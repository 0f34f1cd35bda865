"""XDSL: the format of GeNIe."""

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
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


def fever(strengths: str, parameters: str) -> str:
    """A noisy-MAX of a coin, as GeNIe writes it."""
    text = '<noisymax id="fever"><state id="high"/><state id="normal"/><parents>coin</parents>'
    return f"{text}<strengths>{strengths}</strengths><parameters>{parameters}</parameters></noisymax>"


WARD = """<smile version="1.0" id="ward"><nodes>
  <cpt id="flu"><state id="yes"/><state id="no"/><probabilities>0.125 0.875</probabilities></cpt>
  <cpt id="cold"><state id="light"/><state id="none"/><state id="heavy"/>
    <probabilities>0.25 0.5 0.25</probabilities></cpt>
  <noisymax id="fever"><state id="high"/><state id="raised"/><state id="normal"/><parents>flu cold</parents>
    <strengths>0 1 2 0 1</strengths>
    <parameters>0.5 0.25 0.25 0 0 1 0.25 0.5 0.25 0.125 0.125 0.75 0 0 1 0.0625 0.0625 0.875</parameters></noisymax>
  <cpt id="bed"><state id="yes"/><state id="no"/><parents>fever</parents>
    <probabilities>0.75 0.25 0.5 0.5 0.125 0.875</probabilities></cpt>
</nodes></smile>"""


def test_noisy_max_nodes_are_the_product_of_their_distribution_functions(tmp_path: Path) -> None:
    """Strengths list the states of a parent, strongest first: of the cold heavy, light, none."""
    (tmp_path / "ward.xdsl").write_text(WARD)
    net = sf.read(tmp_path / "ward.xdsl")
    node = net.node("fever")
    assert node.kind == "noisy-max"
    assert node.levels == ("raised", "high")
    assert node.causes_["cold"]["light"] == pytest.approx({"high": 0.125, "raised": 0.125, "normal": 0.75}, rel=1e-14)
    effects = {"heavy": [0.25, 0.5, 0.25], "light": [0.125, 0.125, 0.75], "none": [0, 0, 1]}
    for flu, cold in itertools.product(("yes", "no"), effects):
        rows = [[0.0625, 0.0625, 0.875], [0.5, 0.25, 0.25] if flu == "yes" else [0, 0, 1], effects[cold]]
        below = np.prod(np.cumsum(np.array(rows)[:, ::-1], axis=1), axis=0)
        wanted = np.diff(below, prepend=0.0)[::-1]
        found = [net.table("fever").at(flu=flu, cold=cold, fever=level) for level in ("high", "raised", "normal")]
        np.testing.assert_allclose(found, wanted, atol=1e-15)
    rows = net.sample(400, random_state=0)
    assert net.fit(rows).node("fever").kind == "noisy-max"
    assert net.get_params()["nodes"]["fever"].inactive == {"flu": "no", "cold": "none"}


def test_noisy_nodes_are_written_and_read_again(tmp_path: Path) -> None:
    (tmp_path / "ward.xdsl").write_text(WARD)
    net = sf.read(tmp_path / "ward.xdsl")
    net.write(tmp_path / "again.xdsl")
    again = sf.read(tmp_path / "again.xdsl")
    for name in net.nodes:
        np.testing.assert_allclose(again.table(name).values, net.table(name).values, rtol=1e-15)
    assert again.node("fever").inactive == net.node("fever").inactive
    net.write(tmp_path / "net.bif")
    plain = sf.read(tmp_path / "net.bif")
    np.testing.assert_allclose(plain.table("fever").values, net.table("fever").values, rtol=1e-15)
    assert plain.node("fever").kind == "table"


def test_states_in_another_order_are_written_highest_first(tmp_path: Path) -> None:
    """A graded node above another, a noisy-OR and a table, all with orders of their own."""
    rng = np.random.default_rng(0)
    rows: dict[str, Any] = {
        "a": rng.choice(["x", "y"], 200),
        "g": rng.choice(["low", "mid", "top"], 200),
        "h": rng.choice(["no", "some", "full"], 200),
        "o": rng.choice(["off", "on"], 200),
        "t": rng.choice(["u", "v"], 200),
    }
    kinds: dict[Any, Any] = {
        "g": sf.NoisyMax(order=["low", "mid", "top"], inactive={"a": "y"}),
        "h": sf.NoisyMax(order=["no", "some", "full"], inactive={"g": "mid"}),
        "o": sf.NoisyOr(active={"g": ["low", "mid"]}),
    }
    edges = {"g": ["a"], "h": ["g", "a"], "o": ["g", "h"], "t": ["g"]}
    net = sf.BayesianNetwork(edges, states={"h": ["some", "full", "no"]}, nodes=kinds, prior=1.0).fit(rows)
    net.write(tmp_path / "net.xdsl")
    again = sf.read(tmp_path / "net.xdsl")
    assert again.states("h") == ("full", "some", "no")
    for name in net.nodes:
        mine, theirs = net.table(name), again.table(name)
        for where, value in mine.items():
            labels = dict(zip(mine.variables, where, strict=True))
            assert theirs.at(labels) == pytest.approx(value, rel=1e-13)
    assert {again.node(name).kind for name in "gho"} == {"noisy-max"}


def test_a_wide_node_needs_no_table(tmp_path: Path) -> None:
    causes = [f"x{k}" for k in range(40)]
    rng = np.random.default_rng(1)
    rows: dict[str, Any] = {name: rng.choice(["no", "yes"], 100, p=[0.9, 0.1]) for name in causes}
    rows["y"] = rng.choice(["a", "b", "c"], 100)
    net = sf.BayesianNetwork({"y": causes}, nodes={"y": sf.NoisyMax(order=["a", "b", "c"])}, prior=1.0).fit(rows)
    net.write(tmp_path / "wide.xdsl")
    again = sf.read(tmp_path / "wide.xdsl")
    for state in "abc":
        assert again.query("y").at(y=state) == pytest.approx(net.query("y").at(y=state), rel=1e-12)
    with pytest.raises(sf.SizeError, match="'y'"):
        again.write(tmp_path / "wide.bif")


def test_labels_that_are_no_identifiers_are_refused(tmp_path: Path) -> None:
    net = sf.BayesianNetwork([("a", "b")]).fit({"a": [0, 1, 1], "b": [0, 0, 1]})
    with pytest.raises(sf.OptionError, match="no identifier of GeNIe: a letter, then letters, digits and underscores"):
        net.write(tmp_path / "net.xdsl")


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
        (
            smile('<noisyadder id="x"/>'),
            "node 'x' is <noisyadder>; only <cpt>, <deterministic> and <noisymax> can be read",
        ),
        (smile('<equation id="x"/>'), "node 'x' is <equation>"),
        (smile('<noisymax id="x"><state id="a"/></noisymax>'), "node 'x' has 0 elements <strengths>; expected one"),
        (smile(COIN, fever("0 a", "1 0 0 1 1 0")), "<strengths> of node 'fever' holds 'a', no number"),
        (smile(COIN, fever("0 0", "1 0 0 1 1 0")), "the strengths of 'coin' in node 'fever' are 0, 0; expected 0 to 1"),
        (smile(COIN, fever("0 1", "1 0 0 1")), "'fever' has 2 strengths and 4 parameters; expected 2, one for each"),
        (smile(COIN, fever("0 1", "1 0 0.5 0.5 1 0")), "the weakest state of 'coin' brings about [0.5, 0.5]"),
        (smile(COIN, fever("1 0", "0.4 0.4 0 1 1 0")), "node 'fever', cause 'coin'='tail' sums to 0.8; expected 1"),
        (smile(COIN, fever("1 0", "0.4 0.6 0 1 0 6.2")), "node 'fever', cause leak sums to 6.2; expected 1"),
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
