"""HUGIN NET: the table order of the format, attributes that are kept, and names that are no identifiers."""

import dataclasses
import re
from collections.abc import Hashable
from pathlib import Path

import numpy as np
import pytest

from network_files import largest_difference, read_by_pgmpy, read_by_pyagrum, same, shared, sprinkler
from suffice.array_types import Floats
from suffice.domain import Domain, Variable
from suffice.errors import FileFormatError
from suffice.formats import bif, net, xmlbif
from suffice.formats.networks import TableNetwork
from trees import identical

SPRINKLER = """\
% A comment with "one quote and {
net { name = "sprinkler"; node_size = (80 40); }
discrete node season { states = ("dry" "wet"); label = "The season; 100 % sure"; }
node rain
{
    label = "";
    position = (110 120);  % where it stands
    states = ( "none" "some"
               "much" );
}
node grass { states = ("dry" "damp" "wet" "flooded"); subtype = label; }
potential (season) { data = (0.75 0.25); }
potential ( rain | season ) { data = (( 0.5 0.375 0.125 ) % season=dry
                                      ( 0.1 0.2 0.7 )); % season=wet
}
potential ( grass | season rain )
{
    data = ((( 0.5 0.25 0.125 0.125 )( 0.125 0.5 0.25 0.125 )( 0.0625 0.0625 0.375 0.5 ))
            (( 0.25 0.25 0.25 0.25 )( 0.0625 0.1875 0.3125 0.4375 )( 0 0 0 1 )));
    experience = (10 20);
}
"""

COIN = 'node coin { states = ("head" "tail"); }\n'
FAIR = "potential ( coin ) { data = (0.5 0.5); }\n"


def test_a_file_gives_its_network() -> None:
    network = net.parse(SPRINKLER)
    wanted = {
        "name": "sprinkler",
        "network": ("node_size = (80 40)",),
        "variables": {
            "season": ('label = "The season; 100 % sure"',),
            "rain": ('label = ""', "position = (110 120)"),
            "grass": ("subtype = label",),
        },
        "tables": {"grass": ("experience = (10 20)",)},
    }
    assert same(network, dataclasses.replace(sprinkler(), properties=wanted))
    assert same(net.parse(net.render(network)), network)


def test_brackets_inside_data_are_for_the_eye_and_blocks_come_in_any_order() -> None:
    head, season, rain, grass = SPRINKLER.partition("potential")[0], *SPRINKLER.split("potential")[1:]
    numbers = [re.sub(r"%.*", "", block).partition("data =")[2].partition(";")[0] for block in (rain, grass)]
    flat = [f"( {re.sub('[()]', ' ', text)} )" for text in numbers]
    found = net.parse(
        f"potential ( grass | season rain ) {{ data = {flat[1]}; }} potential ( rain | season ) {{ data = {flat[0]}; }}"
        f"{head} potential {season}"
    )
    assert identical(found.tables, sprinkler().tables)


def test_an_empty_list_of_parents() -> None:
    assert net.parse(COIN + "potential ( coin | ) { data = (0.5 0.5); }").parents == {"coin": ()}


def test_names_that_are_no_identifiers_come_back(tmp_path: Path) -> None:
    names = ["light-on", "light_on", "N_light_on", "", "1", 'a "b" \\', "ü", "ö", "two words"]
    domain = Domain(Variable.discrete(name, ["a/b", 'q"', "%", "\\"]) for name in names)
    parents: dict[Hashable, tuple[Hashable, ...]] = {
        name: tuple(names[max(place - 2, 0) : place]) for place, name in enumerate(names)
    }
    tables: dict[Hashable, Floats] = {name: np.full((4,) * (len(parents[name]) + 1), 0.25) for name in names}
    network = TableNetwork(domain, parents, tables)
    net.save(tmp_path / "net.net.gz", network)
    assert same(net.load(tmp_path / "net.net.gz"), network)
    words = re.findall(r"^node (.*)$", net.render(network), re.MULTILINE)
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", word) for word in words)
    assert len(set(words)) == len(names)


def test_properties_that_are_no_attributes_come_back() -> None:
    about = (
        "position = (73, 165)",
        "plain words",
        'label = "a"',
        'label = "twice"',
        "states = 3",
        "property_1 = x",
        "",
        "%",
    )
    properties = {
        "name": "n",
        "network": ("name = x", *about),
        "variables": {"rain": about},
        "tables": {"grass": about},
    }
    network = dataclasses.replace(sprinkler(), properties=properties)
    assert same(net.parse(net.render(network)), network)


def test_an_attribute_with_a_value_of_many_tokens_comes_back() -> None:
    text = COIN.replace("}", 'HR_Group = foo("x", (1 2)) + 3; }') + FAIR
    network = net.parse(text)
    assert network.properties["variables"]["coin"] == ('HR_Group = foo("x", (1 2)) + 3',)
    assert same(net.parse(net.render(network)), network)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: no variable is declared"),
        ("net {", "line 1, column 6: found the end of the file; expected an attribute or '}'"),
        ("class x { }", "found 'class'; expected 'net', 'node' or 'potential' ('continuous', 'decision'"),
        ('continuous node x { label = "x"; }', "found 'continuous'; expected"),
        ("utility x { }", "found 'utility'; expected"),
        ("node { }", "found '{'; expected the name of a node"),
        ('node x { label = "x"; }', "line 1, column 6: node 'x' has no 'states'"),
        ("node x { states = yes; }", "found 'yes'; expected the states of node 'x' in brackets"),
        ('node x { states = ("a", "b"); }', "found ','; expected the states of node 'x'"),
        ("node x { states = (); }", "variable 'x' has no states"),
        ('node x { states = ("a" "a"); }', "variable 'x' declares the state 'a' twice"),
        ('node x { states = ("a"; }', "expected the states of node 'x' in brackets"),
        ('node x { states = ("a") }', "found '}'; expected ';'"),
        ('node x { states = ("a); }', "the string that starts here does not end"),
        ('node x { states = ("a"); states = ("b"); }', "the attribute 'states' is given twice"),
        ('node x { states = ("a"); label = ; }', "the attribute 'label' has no value"),
        ('node x { states = ("a"); original_name = a b; }', "found 'b'; expected one string"),
        (COIN + COIN, "line 2, column 6: node 'coin' is declared twice"),
        (COIN, "line 1, column 6: node 'coin' has no table"),
        (COIN + FAIR + FAIR, "line 3, column 1: node 'coin' has two tables"),
        (COIN + "potential ( coin ) { }", "the potential of node 'coin' has no 'data'; only tables"),
        (COIN + 'potential ( coin ) { model_data = ("x"); }', "has an expression ('model_data') and no 'data'"),
        (COIN + "potential ( coin coin ) { data = (1 0); }", "found the header '( coin coin )'; expected '( node )'"),
        (COIN + "potential ( coin , coin ) { data = (1 0); }", "expected '( node )' or '( node | parents )'"),
        (COIN + "potential ( ) { data = (1 0); }", "found the header '(  )'; expected"),
        (COIN + "potential ( | coin ) { data = (1 0); }", "expected '( node )'"),
        (COIN + "potential ( coin | x ) { data = (1 0); }", "column 20: there is no node 'x'; known: 'coin'"),
        (COIN + "potential ( coin | coin ) { data = (1 0); }", "node 'coin' has itself as a parent"),
        (COIN + "potential ( coin ) { data = (0.5 0.25 0.25); }", "the table of node 'coin' has 3 values; expected 2"),
        (COIN + "potential ( coin ) { data = (0.5 0.5; }", "the brackets of 'data' do not match"),
        (COIN + "potential ( coin ) { data = )0.5 0.5(; }", "the brackets of 'data' do not match"),
        (COIN + "potential ( coin ) { data = 0.5 0.5; }", "the brackets of 'data' do not match"),
        (COIN + "potential ( coin ) { data = (0.5 0.5)", "found the end of the file; expected ';'"),
        (COIN + "potential ( coin ) { data = normal (0, 1); }", "found 'normal'; expected ';'"),
        (COIN + "potential ( coin ) { data = (0.5 0.5.5); }", "column 34: found '0.5.5'; expected a number"),
        (COIN + "potential ( coin ) { data = (0.5 0.4); }", "line 2, column 1: node 'coin' sums to 0.9"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text: str, message: str) -> None:
    with pytest.raises(FileFormatError, match=re.escape(message)) as caught:
        net.parse(text, "file.net")
    assert re.match(r"file\.net, line \d+, column \d+: .*\.\Z", str(caught.value), re.DOTALL)


def test_alarm_is_the_same_in_both_formats() -> None:
    one, two = net.load(shared("bn/alarm.net")), bif.load(shared("bn/alarm.bif.gz"))
    assert same(dataclasses.replace(one, properties={}), dataclasses.replace(two, properties={}))
    assert one.notes == two.notes
    assert same(net.parse(net.render(one)), one)


@pytest.mark.parametrize("name", ["sprinkler", "asia", "sachs", "alarm", "child"])
def test_other_libraries_read_what_is_written(tmp_path: Path, name: str) -> None:
    network = sprinkler() if name == "sprinkler" else bif.load(shared(f"bn/{name}.bif.gz"))
    net.save(tmp_path / "net.net", network)
    assert largest_difference(network, read_by_pgmpy("NETReader", tmp_path / "net.net")) == 0.0
    assert largest_difference(network, read_by_pyagrum(tmp_path / "net.net")) < 1e-6


def test_other_libraries_read_names_that_are_no_identifiers(tmp_path: Path) -> None:
    network = xmlbif.load(shared("bn/dog.bifxml"))
    net.save(tmp_path / "net.net", network)
    found = read_by_pyagrum(tmp_path / "net.net")
    assert sorted(found) == sorted("N_" + str(name).replace("-", "_") for name in network.domain)
