"""The structure of a network: files, graphs, other models, names of any type, and what is wrong with a structure."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from network_files import DATA
from suffice.domain import Domain, Variable


def asia() -> sf.BayesianNetwork:
    """Two nodes, states in an order that no sort gives."""
    domain = Domain([Variable.discrete("smoke", ["yes", "no"]), Variable.discrete("lung", ["sick", "well", "doubt"])])
    tables = {"smoke": np.array([0.25, 0.75]), "lung": np.array([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125]])}
    return sf.BayesianNetwork.from_tables(domain, {"smoke": [], "lung": ["smoke"]}, tables)


@pytest.mark.parametrize("ending", [".bif", ".bifxml", ".net", ".json", ".suffice"])
def test_a_file_gives_structure_and_states(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"asia{ending}"
    asia().write(path)
    rows = {"lung": ["well", "well", "sick"], "smoke": ["no", "no", "yes"], "other": [1, 2, 3]}
    for structure in (path, str(path), sf.read(path)):
        net = sf.BayesianNetwork(structure).fit(rows)
        assert net.edges == (("smoke", "lung"),)
        assert net.states("lung") == ("sick", "well", "doubt")
        assert net.table("lung").at(smoke="no", lung="well") == 1.0
    with pytest.raises(sf.UnknownStateError, match="'gone'"):
        sf.BayesianNetwork(path).fit({**rows, "lung": ["well", "gone", "sick"]})
    other = sf.BayesianNetwork(path, states={"lung": ["sick", "well", "doubt", "gone"]})
    assert len(other.fit(rows).states("lung")) == 4


def test_a_network_from_a_file_clones_and_survives_its_file(tmp_path: Path) -> None:
    path = tmp_path / "asia.bif"
    asia().write(path)
    net = sf.BayesianNetwork(path, prior=1.0)
    twin = net.clone().set_params(prior=2.0)
    assert twin.nodes == net.nodes
    rows = {"lung": ["well", "well", "sick"], "smoke": ["no", "no", "yes"]}
    net.fit(rows).write(tmp_path / "fitted.json")
    path.unlink()
    back = sf.read(tmp_path / "fitted.json")
    assert back.states("lung") == ("sick", "well", "doubt")
    assert (
        back.partial_fit(rows)
        .table("lung")
        .allclose(sf.BayesianNetwork(asia(), prior=1.0).fit({k: v * 2 for k, v in rows.items()}).table("lung"))
    )


def test_alarm_learns_from_its_own_file() -> None:
    path = DATA / "bn" / "alarm.bif.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    truth = sf.read(path)
    net = sf.BayesianNetwork(path, prior=1.0).fit(truth.sample(2_000, random_state=0))
    assert net.edges == truth.edges
    assert all(net.states(node) == truth.states(node) for node in truth.nodes)
    assert net.size_report().too_large == ()


@pytest.mark.parametrize(
    ("structure", "message"),
    [
        ("nowhere.bif", "no such file; expected edges"),
        ([("a", "b"), ("b", "c"), ("c", "a")], "cycle: 'a' -> 'b' -> 'c' -> 'a'"),
        ([("a", "a")], "'a' is its own parent"),
        ([("a", "b"), ("a", "b")], "'a' -> 'b' is given more than once"),
        ({"b": ["a", "a"]}, "'a' -> 'b' is given more than once"),
        ({"b": "a"}, r"parents of 'b' are 'a'; expected a list of names, such as \['a'\]"),
        ({"b": 3}, "parents of 'b' are 3"),
        ([("a", "b", "c")], "An edge is a pair"),
        (["ab"], "An edge is a pair"),
        ([], "no nodes"),
        (7, "The structure is 7; expected edges"),
        (b"a.bif", "expected edges"),
        (sf.MarkovNetwork([("a", "b")]), "is a MarkovNetwork, which has no directed edges"),
        (sf.Normal(), "is a Normal, which has no directed edges"),
    ],
)
def test_what_is_wrong_with_a_structure_is_said(structure: Any, message: str) -> None:
    with pytest.raises(sf.OptionError, match=message):
        sf.BayesianNetwork(structure)


def test_a_file_without_a_directed_model_is_an_error(tmp_path: Path) -> None:
    sf.Normal(mean=0.0, variance=1.0).write(tmp_path / "law.json")
    with pytest.raises(sf.OptionError, match="is a Normal"):
        sf.BayesianNetwork(tmp_path / "law.json")
    (tmp_path / "text.txt").write_text("hello")
    with pytest.raises(sf.OptionError, match="no known ending"):
        sf.BayesianNetwork(tmp_path / "text.txt")
    (tmp_path / "broken.bif").write_text("network {")
    with pytest.raises(sf.FileFormatError):
        sf.BayesianNetwork(tmp_path / "broken.bif")


def test_graphs_of_networkx() -> None:
    nx = pytest.importorskip("networkx")
    graph = nx.DiGraph([("a", "b"), ("c", "b")])
    graph.add_node("d")
    net = sf.BayesianNetwork(graph)
    assert net.parents("b") == ("a", "c")
    assert net.nodes == ("a", "b", "c", "d")
    assert set(net.to_networkx().edges) == set(graph.edges)
    with pytest.raises(sf.OptionError, match="no directions"):
        sf.BayesianNetwork(nx.Graph([("a", "b")]))
    with pytest.raises(sf.OptionError, match="given more than once"):
        sf.BayesianNetwork(nx.MultiDiGraph([("a", "b"), ("a", "b")]))


def test_a_missing_column_is_named_at_fit() -> None:
    with pytest.raises(sf.MissingColumnError, match="'wet'"):
        sf.BayesianNetwork([("rain", "wet")]).fit({"rain": [0, 1], "dry": [1, 0]})


NAMES = (0, "", (1, "x"), None, "0", 1.5, (None, (2,)))


@pytest.mark.parametrize("kind", ["table", "real", "mixed"])
def test_any_hashable_name(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    n = 60
    states = np.array(["u", "v"], dtype=object)[rng.integers(0, 2, (len(NAMES), n))]
    numbers = rng.normal(size=(len(NAMES), n))
    first = {"table": len(NAMES), "real": 0, "mixed": 3}[kind]
    rows = {name: states[k] if k < first else numbers[k] for k, name in enumerate(NAMES)}
    net = sf.BayesianNetwork({name: list(NAMES[max(0, k - 2) : k]) for k, name in enumerate(NAMES)}).fit(rows)
    assert net.nodes == NAMES
    last, given = NAMES[-1], {name: rows[name][0] for name in NAMES[:3]}
    before = net.query(last, given)
    alone = net.query((1, "x"), {0: rows[0][0]})
    drawn = net.sample(5, given, random_state=0)
    assert list(drawn) == list(NAMES)
    assert len(net.predict(rows, None)) == n
    assert net.score_samples(rows).sum() == pytest.approx(net.report_.log_likelihood, rel=1e-9)
    assert str(net.size_report()).count("\n") >= len(NAMES)
    again = sf.BayesianNetwork({name: list(NAMES[max(0, k - 2) : k]) for k, name in enumerate(NAMES)}).fit(
        net.sample(50, random_state=0)
    )
    assert again.nodes == NAMES
    net.write(tmp_path / "net.suffice")
    back = sf.read(tmp_path / "net.suffice")
    for old, new in ((before, back.query(last, given)), (alone, back.query((1, "x"), {0: rows[0][0]}))):
        if hasattr(old, "values"):
            assert old.values.tobytes() == new.values.tobytes()
        else:
            assert old.mean.tobytes() == new.mean.tobytes()
