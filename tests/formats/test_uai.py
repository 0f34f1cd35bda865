"""UAI: Bayesian and Markov networks by position, and evidence."""

import gzip
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

from network_files import Found, largest_difference, probability, read_by_pyagrum, same, shared, sprinkler
from suffice.domain import Domain, Variable
from suffice.errors import FileFormatError, OptionError
from suffice.formats import bif, uai, xmlbif
from suffice.formats.networks import FactorNetwork, TableNetwork
from trees import identical

SPRINKLER = """c A network of three
c
BAYES
3   # season, rain, grass
2 3 4
3
3 0 1 2   # grass: its parents, then itself
1 0
2 0 1

24
 0.5 0.25 0.125 0.125
 0.125 0.5 0.25 0.125
 0.0625 0.0625 0.375 0.5
 0.25 0.25 0.25 0.25
 0.0625 0.1875 0.3125 0.4375
 0 0 0 1
2
 0.75 0.25
6
 0.5 0.375 0.125
 0.1 0.2 0.7
"""

PAIR = """MARKOV
3
2 3 1
3
2 0 1
0
1 1
6
1 2 3.5 4 5e-1 0
1 2.5
3 0.1 0.2 0.3
"""

NETWORKS = ["Alchemy_11", "CSP_12", "DBN_11", "Grids_11", "Grids_15", "ObjectDetection_74", "Pedigree_12"]
NETWORKS += ["Promedus_24", "Segmentation_11"]


def parsed(text: str) -> TableNetwork:
    network = uai.parse(text)
    assert isinstance(network, TableNetwork)
    return network


def test_a_bayesian_network() -> None:
    network, wanted = parsed(SPRINKLER), sprinkler()
    assert network.parents == {0: (), 1: (0,), 2: (0, 1)}
    assert [variable.states for variable in network.domain.variables] == [(0, 1), (0, 1, 2), (0, 1, 2, 3)]
    assert identical(list(network.tables.values()), list(wanted.tables.values()))
    assert same(parsed(uai.render(network)), network)
    # A network with names gives the same text: only positions are written.
    assert uai.render(wanted) == uai.render(network)


def test_a_markov_network() -> None:
    network = uai.parse(PAIR)
    assert isinstance(network, FactorNetwork)
    assert [scope for scope, _ in network.factors] == [(0, 1), (), (1,)]
    assert [table.tolist() for _, table in network.factors] == [[[1, 2, 3.5], [4, 0.5, 0]], 2.5, [0.1, 0.2, 0.3]]
    assert network.domain[2].states == (0,)
    assert same(uai.parse(uai.render(network)), network)


def test_factors_may_sum_to_anything_and_names_may_be_anything(tmp_path: Path) -> None:
    domain = Domain([Variable.discrete(("a", 1), ["x", "y"]), Variable.discrete(None, [0.5])])
    network = FactorNetwork(domain, (((None, ("a", 1)), np.array([[1e300, 1e-300]])),))
    uai.save(tmp_path / "net.uai.gz", network)
    found = uai.load(tmp_path / "net.uai.gz")
    assert isinstance(found, FactorNetwork)
    assert found.factors[0][0] == (1, 0)
    assert found.factors[0][1].tolist() == [[1e300, 1e-300]]


def test_rounded_tables_of_a_bayesian_network_are_mended() -> None:
    network = parsed("BAYES 1 3 1 1 0 3 0.333 0.333 0.333")
    assert np.allclose(network.tables[0], 1 / 3, rtol=0, atol=1e-16)
    assert "the worst, node 0, summed to" in network.notes[0]


@pytest.mark.parametrize("table", [np.array([1.0, -1.0]), np.array([1.0, np.inf]), np.ones(3), np.ones((2, 1))])
def test_factors_that_a_file_would_not_give_back_are_not_written(table: np.ndarray) -> None:
    network = FactorNetwork(Domain([Variable.discrete("a", [0, 1])]), ((("a",), table),))
    with pytest.raises(OptionError, match=r"The factor of 'a' has shape .* finite and not negative"):
        uai.render(network)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: found the end of the file; expected 'BAYES' or 'MARKOV'"),
        ("ID 1", "found 'ID'; expected 'BAYES' or 'MARKOV'"),
        ("BAYES 0 0", "no variable is declared"),
        ("BAYES", "line 1, column 6: found the end of the file; expected the number of variables"),
        ("BAYES two", "line 1, column 7: found 'two'; expected the number of variables, a whole number"),
        ("BAYES -1", "found '-1'; expected the number of variables, a whole number"),
        ("BAYES 100000 2", "found 100000; expected the number of variables, at most 1"),
        ("BAYES " + "9" * 5000, "expected the number of variables, a whole number"),
        ("MARKOV\n1\n1000000000\n0", "line 3, column 1: the variables have 1000000000 states; at most 1048576"),
        ("BAYES 1 0 1 1 0 0", "variable 0 has no states"),
        ("MARKOV 2 1 0 0", "column 12: variable 1 has no states"),
        ("BAYES 1 2 1000000", "found 1000000; expected the number of tables, at most 0"),
        ("BAYES 1 2 1 1 1", "found 1; expected a variable of table 0, at most 0"),
        ("BAYES 1 2 1 2 0 0 2 1 1", "table 0 has a variable twice: [0, 0]"),
        ("BAYES 1 2 1 0 1 1", "table 0 has no variable; the last one is the node"),
        ("MARKOV 1 2 1 100", "expected the number of variables of table 0, at most 64"),
        ("BAYES 1 2 1 1 0 3 0.5 0.5 0", "column 17: the table of node 0 has 3 values; its variables have 2 states"),
        ("BAYES 1 2 1 1 0\n2 0.5", "line 2, column 6: the table of node 0 has 2 values and the file ends after 1"),
        ("BAYES 1 2 1 1 0 2 0.5 nan", "column 23: found 'nan'; expected a number"),
        ("BAYES 1 2 1 1 0 2 0.5 0_5", "found '0_5'; expected a number"),
        ("BAYES 1 2 1 1 0 2 0.5 0.5 0.5", "column 27: found 1 words after the last one expected"),
        ("BAYES 1 2 1 1 0 2 -1 2", "column 13: node 0 holds -1.0"),
        ("BAYES 2 2 2 1 1 0 2 0.5 0.5", "column 11: node 1 has no table"),
        ("BAYES 1 2 2 1 0 1 0 2 0.5 0.5 2 0.5 0.5", "node 0 has two tables"),
        ("BAYES 2 1 1 2 2 0 1 2 1 0 1 1 1 1", "the parents form a cycle"),
        ("MARKOV 1 2 1 1 0 2 1 -1", "table 0 of [0] holds -1.0; expected 0 or more, finite"),
        ("MARKOV 1 2 1 1 0 2 1 1e999", "table 0 of [0] holds inf"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text: str, message: str) -> None:
    with pytest.raises(FileFormatError, match=re.escape(message)) as caught:
        uai.parse(text, "file.uai")
    assert re.match(r"file\.uai, line \d+, column \d+: .*\.\Z", str(caught.value), re.DOTALL)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", {}),
        ("0", {}),
        ("2 0 1 2 3", {0: 1, 2: 3}),
        ("2\n0 1\n2 3\n", {0: 1, 2: 3}),
        ("1\n2 0 1 2 3", {0: 1, 2: 3}),
        ("1 0", {}),
        ("1 2 3", {2: 3}),
    ],
)
def test_evidence(text: str, wanted: dict[int, int]) -> None:
    assert uai.parse_evidence(text) == wanted
    assert uai.load_evidence(io.BytesIO(gzip.compress(text.encode()))) == wanted


def test_evidence_by_the_labels_of_a_network() -> None:
    assert uai.load_evidence(io.StringIO("2 0 1 2 3"), sprinkler()) == {"season": "wet", "grass": "flooded"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2 0 1", "found 2; expected the number of observed variables, at most 1"),
        ("1 0 1 1 1", "column 7: found 2 words after the last one expected"),
        ("2 1 0 1 1 0 1 1", "the file holds 2 samples of evidence; expected one"),
        ("0 1", "found 1 words after the last one expected"),
        ("2 0 1 0 1", "column 7: variable 0 is observed twice"),
        ("1 3 0", "column 3: found variable 3; the network has 3"),
        ("1 2 4", "column 5: found state 4 of variable 2, which has 4"),
        ("1 a 4", "found 'a'; expected a variable, a whole number"),
    ],
)
def test_wrong_evidence(text: str, message: str) -> None:
    with pytest.raises(FileFormatError, match=re.escape(message)):
        uai.parse_evidence(text, "file.evid", sprinkler())


@pytest.mark.parametrize("name", NETWORKS)
def test_a_real_network_has_its_published_size_and_survives_writing(name: str) -> None:
    network = uai.load(shared(f"uai/{name}.uai"))
    assert isinstance(network, FactorNetwork)
    wanted = json.loads(shared("uai/expected.json").read_text())["uai2014"][name]
    assert len(network.domain) == wanted["variables"]
    assert max(variable.card for variable in network.domain.variables) == wanted["max_card"]
    assert len(network.factors) == wanted["factors"]
    assert max(len(scope) for scope, _ in network.factors) == wanted["max_scope"]
    assert len(uai.load_evidence(shared(f"uai/{name}.uai.evid"), network)) == wanted["evidence"]
    assert same(uai.parse(uai.render(network)), network)


def test_a_real_bayesian_network_has_its_scopes() -> None:
    network = uai.load(shared("uai/merlin_cancer.uai"))
    wanted = json.loads(shared("uai/expected.json").read_text())["merlin_cancer_em"]["scopes_parents_then_child"]
    assert isinstance(network, TableNetwork)
    assert [[*parents, node] for node, parents in network.parents.items()] == wanted
    assert probability(network, 3, 1, **{"2": 1, "1": 1}) == 0.95


def named_as(plain: TableNetwork, named: TableNetwork, names: list[str]) -> Found:
    """The tables of a network without names, under the names and states of another one."""
    states = {str(name): [str(state) for state in named.domain[name].states] for name in names}
    places = dict(enumerate(names))
    return {
        places[node]: ([places[parent] for parent in plain.parents[node]], states, table)  # type: ignore[index]
        for node, table in plain.tables.items()
    }


def test_asia_is_the_same_in_two_formats() -> None:
    named, plain = bif.load(shared("bn/asia.agrum.bif")), uai.load(shared("bn/asia.agrum.uai"))
    assert isinstance(plain, TableNetwork)
    names = ["visit_to_Asia", "smoking", "bronchitis", "lung_cancer", "tuberculosis", "tuberculos_or_cancer"]
    assert largest_difference(named, named_as(plain, named, [*names, "dyspnoea", "positive_XraY"])) == 0.0


def test_dog_is_the_same_though_its_first_parents_are_fastest() -> None:
    # Written with the first parent fastest, against the format, and with a name after each scope.
    named, plain = xmlbif.load(shared("bn/dog.bifxml")), uai.load(shared("bn/dog.uai"))
    assert isinstance(plain, TableNetwork)
    assert largest_difference(named, named_as(plain, named, list(map(str, named.domain)))) == 0.0
    forward = uai.load(shared("bn/dog.uai"), "forward")
    assert isinstance(forward, TableNetwork)
    assert largest_difference(named, named_as(forward, named, list(map(str, named.domain)))) == pytest.approx(0.07)


@pytest.mark.parametrize("name", ["sprinkler", "asia", "sachs", "alarm", "child", "hailfinder"])
def test_pyagrum_reads_what_is_written(tmp_path: Path, name: str) -> None:
    network = sprinkler() if name == "sprinkler" else bif.load(shared(f"bn/{name}.bif.gz"))
    uai.save(tmp_path / "net.uai", network)
    names = network.domain.names
    for node, (parents, _, table) in read_by_pyagrum(tmp_path / "net.uai").items():
        # It takes the first parent as the fastest, against the format, and so lists them from the last to the first;
        # the values and their order are those of the file.
        assert tuple(names[int(parent)] for parent in reversed(parents)) == network.parents[names[int(node)]]
        assert np.abs(table.ravel() - network.tables[names[int(node)]].ravel()).max() < 1e-6


def test_pgmpy_reads_the_factors_that_are_written(tmp_path: Path) -> None:
    readwrite = pytest.importorskip("pgmpy.readwrite")
    network = uai.load(shared("uai/Segmentation_11.uai"))
    assert isinstance(network, FactorNetwork)
    kept = FactorNetwork(network.domain, tuple(pair for pair in network.factors if 1e-4 < pair[1].min())[:40])
    uai.save(tmp_path / "net.uai", kept)
    tables = readwrite.UAIReader(str(tmp_path / "net.uai")).get_tables()
    assert [[f"var_{name}" for name in scope] for scope, _ in kept.factors] == [scope for scope, _ in tables]
    assert [table.ravel().tolist() for _, table in kept.factors] == [list(map(float, values)) for _, values in tables]
