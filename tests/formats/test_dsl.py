"""DSL: the older format of GeNIe, read only."""

import dataclasses
import gzip
import re
from pathlib import Path

import numpy as np
import pytest

from network_files import largest_difference, read_by_pyagrum, same, shared, sprinkler
from suffice.errors import FileFormatError
from suffice.formats import bif, dsl
from suffice.formats.tokens import place_in

SPRINKLER = """\
net sprinkler
{
 HEADER = { ID = sprinkler; NAME = "A lawn; and more"; };
 CREATION = { }; // nothing inside
 NUMSAMPLES = 1000;

 node grass
 {
  TYPE = CPT;
  HEADER = { ID = grass; NAME = "grass"; COMMENT = "it says \\"wet\\""; };
  SCREEN = { POSITION = { CENTER_X = 10; CENTER_Y = 20; }; COLOR = 16250597; };
  PARENTS = (season, rain);
  DEFINITION =
  {
   NAMESTATES = (dry, damp, wet, flooded);
   PROBABILITIES = (0.5, 0.25, 0.125, 0.125,
                    0.125, 0.5, 0.25, 0.125,
                    0.0625, 0.0625, 0.375, 0.5, /* season=wet from here */
                    0.25, 0.25, 0.25, 0.25,
                    0.0625, 0.1875, 0.3125, 0.4375,
                    0, 0, 0, 1);
  };
 };
 node season { HEADER = { ID = season; NAME = "Season of the year"; }; PARENTS = ();
               DEFINITION = { NAMESTATES = (dry, wet); PROBABILITIES = (0.75, 0.25); };
               USER_PROPERTIES = { source = "almanac"; }; };
 node N1 { TYPE = CPT; HEADER = { ID = rain; }; PARENTS = (season);
           DEFINITION = { NAMESTATES = (none, some, much); PROBABILITIES = (0.5, 0.375, 0.125, 0.1, 0.2, 0.7); }; };
};
"""

FILES = ["alarm.dsl", "hailfinder.dsl.gz"]


def node(name: str, definition: str, parents: str = "()", kind: str = "CPT") -> str:
    return f"node {name} {{ TYPE = {kind}; PARENTS = {parents}; DEFINITION = {{ {definition} }}; }};"


COIN = node("coin", "NAMESTATES = (head, tail); PROBABILITIES = (0.5, 0.5);")


def test_a_file_gives_its_network() -> None:
    network, wanted = dsl.parse(SPRINKLER), sprinkler()
    assert network.domain == wanted.domain
    assert network.domain.names == ("grass", "season", "rain")
    assert network.parents == wanted.parents
    assert all(np.array_equal(network.tables[name], wanted.tables[name]) for name in wanted.domain)
    assert network.properties == {
        "name": "sprinkler",
        "network": ('NAME = "A lawn; and more"',),
        "variables": {
            "grass": ('COMMENT = "it says \\"wet\\""',),
            "season": ('NAME = "Season of the year"', 'source = "almanac"'),
        },
    }
    assert same(bif.parse(bif.render(network)), network)


def test_a_truth_table_gives_one_state_for_each_row() -> None:
    text = f"""net n {{ {COIN}
    {node("both", "NAMESTATES = (no, yes); RESULTINGSTATES = (no, yes, yes, no);", "(coin, other)", "TRUTHTABLE")}
    {COIN.replace("node coin", "node other")} }}"""
    network = dsl.parse(text)
    assert network.tables["both"].tolist() == [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]


def test_a_noisy_max_node_is_read_as_that_of_xdsl() -> None:
    """Strengths list the states of a parent, strongest first; the states of the node stand highest first."""
    definition = "NAMESTATES = (high, normal); STRENGTHS = (1, 0); PROBABILITIES = (0.25, 0.75, 0, 1, 0.125, 0.875);"
    causes = dsl.parse(net(COIN, node("fever", definition, "(coin)", "NOISY_MAX"))).causes["fever"]
    assert (causes.order, causes.inactive) == ((1, 0), (0,))
    assert [effect.tolist() for effect in causes.effects] == [[[0.0, 1.0], [0.25, 0.75]]]
    np.testing.assert_allclose(causes.table(), [[0.125, 0.875], [1 - 0.75 * 0.875, 0.75 * 0.875]], rtol=1e-15)


def net(*parts: str) -> str:
    return f"net n {{ {' '.join(parts)} }};"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: found the end of the file; expected 'net'"),
        ("network n { }", "found 'network'; expected 'net'"),
        ("net { }", "found '{'; expected the name of the network"),
        ("net n { };", "line 1, column 1: no variable is declared"),
        (net(COIN) + " more", "found 'more'; expected the end of the file after the network"),
        (net(COIN)[:-2], "found the end of the file; expected an attribute or '}'"),
        (net(COIN, COIN), "variable 'coin' is declared twice"),
        (net("node x { }"), "node 'x' has no 'NAMESTATES'"),
        (net("node x { a }"), "found '}'; expected '{'"),
        (net("node x { a = 1 }"), "found '}'; expected ';'"),
        (net("node x { a = 1; a = 2; }"), "the attribute 'a' is given twice"),
        (net("node x { = 1; }"), "found '='; expected an attribute or '}'"),
        (net(node("x", "NAMESTATES = (a, a);")), "variable 'x' declares the state 'a' twice"),
        (net(node("x", "NAMESTATES = a, b;")), "'NAMESTATES' of node 'x' is no list in brackets"),
        (net(node("x", "NAMESTATES = ((a), b);")), "'NAMESTATES' of node 'x' is no list in brackets"),
        (net(node("x", "NAMESTATES = ();")), "variable 'x' has no states"),
        (net(node("x", "NAMESTATES = (a);")), "node 'x' has no 'PROBABILITIES'"),
        (net(node("x", "NAMESTATES = (a); PROBABILITIES = 1;")), "'PROBABILITIES' of node 'x' is no list in brackets"),
        (net(node("x", "NAMESTATES = (a); PROBABILITIES = (1, b);")), "found 'b'; expected a number or ')'"),
        (net(node("x", "NAMESTATES = (a); PROBABILITIES = (1, 0);")), "the table of node 'x' has 2 values; expected 1"),
        (net(node("x", "NAMESTATES = (a); PROBABILITIES = (-1);")), "node 'x' holds -1.0"),
        (
            net(node("x", "NAMESTATES = (a);", kind="NOISY_ADDER")),
            "node 'x' is of type 'NOISY_ADDER'; only CPT, TRUTHTABLE and NOISY_MAX",
        ),
        (net(node("x", "NAMESTATES = (a);", kind="NOISY_MAX")), "node 'x' has no 'STRENGTHS'"),
        (
            net(node("x", "NAMESTATES = (a, b); STRENGTHS = (u, v);", kind="NOISY_MAX")),
            "'STRENGTHS' of node 'x' holds 'u', no number",
        ),
        (net(node("x", "NAMESTATES = (a);", kind="a b")), "found no single word or string"),
        (net(node("x", "NAMESTATES = (a);", "(y)")), "node 'x' has no 'PROBABILITIES'"),
        (
            net(node("x", "NAMESTATES = (a); PROBABILITIES = (1);", "(y)")),
            "node 'x' has the parent 'y', which is no variable",
        ),
        (
            net(node("x", "NAMESTATES = (a); RESULTINGSTATES = (a, a);", kind="TRUTHTABLE")),
            "node 'x' has 2 resulting states; expected 1",
        ),
        (
            net(node("x", "NAMESTATES = (a); RESULTINGSTATES = (b);", kind="TRUTHTABLE")),
            "node 'x' has the resulting state 'b'; known: 'a'",
        ),
        ("net n " + "{ a = " * 100 + "}" * 100, "blocks inside blocks, more than 32 deep"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text: str, message: str) -> None:
    with pytest.raises(FileFormatError, match=re.escape(message)) as caught:
        dsl.parse(text, "file.dsl")
    assert re.match(r"file\.dsl, line \d+, column \d+: .*\.\Z", str(caught.value), re.DOTALL)


def test_the_place_is_that_of_the_value() -> None:
    text = SPRINKLER.replace("0.4375", "O.4375")
    line, column = place_in(text, text.index("O.4375"))
    with pytest.raises(FileFormatError, match=f"line {line}, column {column}: found 'O.4375'"):
        dsl.parse(text)


@pytest.mark.parametrize("name", FILES)
def test_pyagrum_reads_the_same_from_a_real_file(tmp_path: Path, name: str) -> None:
    data = shared(f"bn/{name}").read_bytes()
    (tmp_path / "net.dsl").write_bytes(gzip.decompress(data) if name.endswith(".gz") else data)
    assert largest_difference(dsl.load(shared(f"bn/{name}")), read_by_pyagrum(tmp_path / "net.dsl")) < 1e-6


@pytest.mark.parametrize(("name", "other"), [("alarm.dsl", "alarm.bif.gz"), ("hailfinder.dsl.gz", "hailfinder.bif.gz")])
def test_a_real_file_has_the_structure_and_the_numbers_of_the_same_network_in_bif(name: str, other: str) -> None:
    # In these files the parents of some nodes stand in another order than their tables: only the numbers are the same.
    found, wanted = dsl.load(shared(f"bn/{name}")), bif.load(shared(f"bn/{other}"))
    assert found.domain.names != ()
    assert set(found.domain) == set(wanted.domain)
    for node in found.domain:
        assert set(found.parents[node]) == set(wanted.parents[node])
        assert set(found.domain[node].states) == set(wanted.domain[node].states)
        assert np.allclose(np.sort(found.tables[node], axis=None), np.sort(wanted.tables[node], axis=None), atol=1e-5)
    stripped = dataclasses.replace(found, properties={})
    assert same(bif.parse(bif.render(stripped)), stripped)
