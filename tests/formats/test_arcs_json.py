"""Networks as nodes, arcs and laws in JSON: what is read, its moments, and what is refused."""

import copy
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.errors import FileFormatError, OptionError
from suffice.formats import arcs_json, native

GAUSSIAN: dict[str, Any] = {
    "nodes": ["rain", "river", "flood"],
    "arcs": [["rain", "river"], ["rain", "flood"], ["river", "flood"]],
    "cpds": {
        "rain": {"coefficients": {"(Intercept)": [2.0]}, "variance": [1.5], "parents": []},
        "river": {"coefficients": {"(Intercept)": [1.0], "rain": [0.5]}, "variance": [0.25], "parents": ["rain"]},
        "flood": {
            "coefficients": {"rain": -1, "(Intercept)": 0.5, "river": 3},
            "variance": 4,
            "parents": ["river", "rain"],
        },
    },
}

# The discrete parents of the dose are numbered in another order than they are parents, and the levels of the sex in
# another order than those of the sex itself: labels decide.
MIXED: dict[str, Any] = {
    "name": "doses",
    "nodes": ["age", "sex", "weight", "dose", "ill"],
    "arcs": [
        {"from": "age", "to": "weight"},
        {"from": "age", "to": "dose"},
        {"from": "weight", "to": "dose"},
        {"from": "sex", "to": "dose"},
        {"from": "age", "to": "ill"},
        {"from": "sex", "to": "ill"},
    ],
    "cpds": {
        "age": {"type": "discrete", "parents": [], "levels": ["young", "old"], "cpt": {"old": 0.25, "young": 0.75}},
        "sex": {"parents": [], "levels": ["f", "m", "x"], "cpt": {"f": 0.5, "m": 0.375, "x": 0.125}},
        "ill": {
            "parents": ["age", "sex"],
            "levels": ["no", "yes"],
            "cpt": {
                "age=young,sex=f": {"no": 0.9, "yes": 0.1},
                "age=young, sex=m": {"no": 0.8, "yes": 0.2},
                "sex=x,age=young": {"yes": 0.3, "no": 0.7},
                "age=old;sex=f": {"no": 0.6, "yes": 0.4},
                "age=old|sex=m": {"no": 0.5, "yes": 0.5},
                "age=old,sex=x": {"no": 0.25, "yes": 0.75},
            },
        },
        "weight": {
            "type": "cgnode",
            "parents": ["age"],
            "dparents": ["age"],
            "gparents": [],
            "dlevels": {"age": ["young", "old"]},
            "coefficients": {"(Intercept)": {"0": 70, "1": 80}},
            "variances": {"0": 9, "1": 16},
        },
        "dose": {
            "type": "cgnode",
            "parents": ["age", "weight", "sex"],
            "dparents": ["sex", "age"],
            "gparents": ["weight"],
            "dlevels": {"sex": ["x", "f", "m"], "age": ["young", "old"]},
            "coefficients": {"(Intercept)": {str(k): 10 * k for k in range(6)}, "weight": [1, 2, 3, 4, 5, 6]},
            "sd": {"0": 0, "1": 0.5, "2": 1, "3": 1.5, "4": 2, "5": 2.5},
        },
    },
}


def kept(folder: Path, document: Any) -> Path:
    path = folder / "net.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_a_gaussian_network_has_the_moments_of_its_equations(tmp_path: Path) -> None:
    net = sf.read(kept(tmp_path, GAUSSIAN))
    assert isinstance(net, sf.BayesianNetwork)
    assert (net.nodes, net.n_params_, net.notes_) == (("rain", "river", "flood"), 9, ())
    assert net.parents("flood") == ("river", "rain")
    np.testing.assert_array_equal(net.node("flood").weights_, [0.5, 3.0, -1.0])
    assert net.node("flood").variance_ == 4.0
    # flood = 0.5 + 3 (1 + rain / 2 + e) - rain + d = 3.5 + rain / 2 + 3 e + d, by hand.
    joint = net.joint_gaussian()
    order = [joint.names.index(node) for node in net.nodes]
    np.testing.assert_allclose(joint.mean[order], [2.0, 2.0, 4.5], rtol=1e-14)
    np.testing.assert_allclose(
        joint.covariance[np.ix_(order, order)],
        [[1.5, 0.75, 0.75], [0.75, 0.625, 1.125], [0.75, 1.125, 0.375 + 2.25 + 4.0]],
        rtol=1e-14,
    )
    assert net.query("rain", {"river": 3.0}).mean.item() == pytest.approx(2.0 + 0.75 / 0.625, rel=1e-12)


def test_a_mixed_network_is_read_by_label(tmp_path: Path) -> None:
    net = sf.read(kept(tmp_path, MIXED))
    assert net.states("sex") == ("f", "m", "x")
    np.testing.assert_array_equal(net.table("age").values, [0.75, 0.25])
    ill = [[[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]], [[0.6, 0.4], [0.5, 0.5], [0.25, 0.75]]]
    np.testing.assert_array_equal(net.table("ill").values, ill)
    # Configuration = place of the sex among x, f, m, plus 3 for the old.
    place = np.array([[1, 2, 0], [4, 5, 3]])
    np.testing.assert_array_equal(net.node("dose").weights_, np.stack([10 * place, place + 1], axis=-1))
    np.testing.assert_array_equal(net.node("dose").variance_, (place / 2) ** 2)
    np.testing.assert_array_equal(net.node("weight").variance_, [9, 16])
    assert net.query("dose", {"age": "old", "sex": "m"}).mean.item() == pytest.approx(50 + 6 * 80, rel=1e-12)
    law = net.query("dose", {"age": "young", "sex": "f"})
    assert law.mean.item() == pytest.approx(10 + 2 * 70, rel=1e-12)
    assert law.covariance.item() == pytest.approx(4 * 9 + 0.25, rel=1e-12)
    assert np.isfinite(net.score(net.sample(20, random_state=0)))


def test_the_network_is_kept_in_our_own_file_and_learns_anew(tmp_path: Path) -> None:
    net = sf.read(kept(tmp_path, MIXED))
    rows = net.sample(400, random_state=1)
    for name in ("own.json", "own.suffice"):
        net.write(tmp_path / name)
        again = sf.read(tmp_path / name)
        assert again.score(rows) == net.score(rows)
    share = float(np.mean(rows["age"] == "old"))
    assert sf.BayesianNetwork(tmp_path / "net.json").fit(rows).table("age").at(age="old") == pytest.approx(share)
    assert net.fit(rows).table("age").at(age="old") == pytest.approx(share)


def test_packed_files_are_read_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "net.json.gz"
    path.write_bytes(gzip.compress(json.dumps(GAUSSIAN).encode()))
    net = sf.read(path)
    assert net.nodes == ("rain", "river", "flood")
    with pytest.raises(OptionError, match="can be read but not written"):
        net.write(path)


def test_rounded_rows_are_divided_by_their_sum_with_a_note(tmp_path: Path) -> None:
    document = copy.deepcopy(MIXED)
    document["cpds"]["sex"]["cpt"] = {"f": 0.333, "m": 0.333, "x": 0.333}
    net = sf.read(kept(tmp_path, document))
    np.testing.assert_allclose(net.table("sex").values, [1 / 3] * 3, rtol=1e-15)
    (note,) = net.notes_
    assert note.startswith("1 of 8 rows did not sum to one and were divided by their sum; the worst, node 'sex',")


def test_a_regression_may_have_any_number_of_parents(tmp_path: Path) -> None:
    above = [f"x{k}" for k in range(80)]
    laws: dict[str, Any] = {x: {"parents": [], "coefficients": {"(Intercept)": 1}, "variance": 1} for x in above}
    laws["y"] = {"parents": above, "coefficients": {"(Intercept)": 0} | dict.fromkeys(above, 2), "sd": 3}
    net = sf.read(kept(tmp_path, {"nodes": [*above, "y"], "arcs": [[x, "y"] for x in above], "cpds": laws}))
    law = net.query("y")
    assert law.mean.item() == pytest.approx(160, rel=1e-12)
    assert law.covariance.item() == pytest.approx(80 * 4 + 9, rel=1e-12)


def put(*path: Any) -> Callable[[Any], None]:
    """Put the last of `path` where the others lead."""

    def change(document: Any) -> None:
        *way, last, value = path
        for key in way:
            document = document[key]
        document[last] = value

    return change


def drop(*path: Any) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        *way, last = path
        for key in way:
            document = document[key]
        del document[last]

    return change


DOSE, ILL = ("cpds", "dose"), ("cpds", "ill")


def crowd(document: Any) -> None:
    """Give the weight 64 more discrete parents of one level each."""
    for name in [f"d{k}" for k in range(64)]:
        document["nodes"].append(name)
        document["arcs"].append([name, "weight"])
        document["cpds"][name] = {"parents": [], "levels": ["one"], "cpt": {"one": 1}}
        for part in ("parents", "dparents"):
            document["cpds"]["weight"][part].append(name)
        document["cpds"]["weight"]["dlevels"][name] = ["one"]


BROKEN: dict[str, tuple[Callable[[Any], object], str]] = {
    "no arcs": (drop("arcs"), "expected an object with 'nodes', 'arcs', 'cpds'"),
    "no nodes": (put("nodes", []), "'nodes' is empty"),
    "a number as a node": (put("nodes", 0, 7), "'nodes' is .* expected a list of names"),
    "a node twice": (put("nodes", ["age", "sex", "sex"]), "'nodes' lists 'sex' twice"),
    "a node without a distribution": (drop(*ILL), "node 'ill' has no entry in 'cpds'"),
    "a distribution without a node": (put("cpds", "else", {}), "entry for 'else', which is not in 'nodes'"),
    "distributions in a list": (put("cpds", []), r"'cpds' is \[\]; expected an object"),
    "no parents": (drop(*ILL, "parents"), "node 'ill' has no 'parents'"),
    "an unknown parent": (put(*ILL, "parents", 0, "else"), "node 'ill' has the parent 'else', which is not in 'nodes'"),
    "a parent twice": (put(*ILL, "parents", 0, "sex"), "node 'ill': 'parents' lists 'sex' twice"),
    "a cycle": (put("cpds", "age", "parents", ["ill"]), "the parents form a cycle: '.*' -> '.*' -> '.*'"),
    "its own parent": (put("cpds", "age", "parents", ["age"]), "the parents form a cycle: 'age' -> 'age'"),
    "an arc too few": (drop("arcs", 5), "node 'ill' has the parent 'sex', and 'arcs' has no arc from it"),
    "an arc too many": (put("arcs", 0, ["sex", "weight"]), "an arc 'sex' -> 'weight', .* node 'weight' are 'age'"),
    "an arc to nowhere": (put("arcs", 0, ["sex", "else"]), "the arc 'sex' -> 'else' has an end that is not in 'nodes'"),
    "an arc of one end": (put("arcs", 0, {"from": "age"}), "an arc is .* expected"),
    "an unknown type": (put(*ILL, "type", "noisy"), "node 'ill' has the type 'noisy'; expected one of the types"),
    "no known part": (put("cpds", "sex", {"parents": []}), "node 'sex' has the parts 'parents'; expected"),
    "no levels": (drop(*ILL, "levels"), "node 'ill' has no 'levels'"),
    "levels empty": (put(*ILL, "levels", []), "'ill' has no states"),
    "a row too few": (drop(*ILL, "cpt", "age=old|sex=m"), "node 'ill': 'cpt' has 5 rows; expected 6"),
    "a row of no level": (
        lambda d: d["cpds"]["ill"]["cpt"].update({"age=odd,sex=m": d["cpds"]["ill"]["cpt"].pop("age=old|sex=m")}),
        "'cpt' has the row 'age=odd,sex=m', which is no joint level .* such as 'age=young,sex=f'",
    ),
    "a row again": (
        lambda d: d["cpds"]["ill"]["cpt"].update({"sex=f,age=old": d["cpds"]["ill"]["cpt"].pop("age=old|sex=m")}),
        "node 'ill': 'cpt' has the row 'sex=f,age=old', again",
    ),
    "a state missing": (drop("cpds", "sex", "cpt", "x"), "node 'sex': 'cpt' has figures for 'f', 'm'; expected"),
    "a sum of 1.02": (
        put("cpds", "age", "cpt", "old", 0.27),
        r"node 'age' sums to 1.02; expected 1, give or take 0.01",
    ),
    "a negative probability": (
        put(*ILL, "cpt", "age=old|sex=m", {"no": 1.5, "yes": -0.5}),
        r"node 'ill', row \('age'='old', 'sex'='m'\) holds -0.5",
    ),
    "a text as a number": (
        put("cpds", "age", "cpt", "old", "0.25"),
        "node 'age': 'cpt' at 'old' is '0.25'; expected a",
    ),
    "a truth value": (put("cpds", "age", "cpt", "old", True), "at 'old' is True; expected a finite number"),
    "a number too large": (put("cpds", "age", "cpt", "old", 10**400), "at 'old' is 1000.*; expected a finite number"),
    "a table below numbers": (
        lambda d: (d["cpds"]["ill"]["parents"].append("weight"), d["arcs"].append(["weight", "ill"])),
        "node 'ill' is discrete, and its parent 'weight' is not",
    ),
    "a crowd of parents": (crowd, "node 'weight' has 65 discrete parents; at most 63 are read"),
    "no cgnode": (put(*DOSE, "type", "gaussian"), "node 'dose' is gaussian and has the discrete parent 'age'"),
    "parents of the wrong kind": (put(*DOSE, "gparents", []), r"node 'dose': 'gparents' is \[\]; .* \['weight'\]"),
    "levels that differ": (
        put(*DOSE, "dlevels", "age", ["young", "new"]),
        "'dlevels' of 'age' are 'young', 'new'; its",
    ),
    "levels left out": (drop(*DOSE, "dlevels", "age"), "node 'dose': 'dlevels' of 'age' is None; expected a list"),
    "no intercept": (drop(*DOSE, "coefficients", "(Intercept)"), "node 'dose' has coefficients for 'weight'; expected"),
    "a figure too few": (drop(*DOSE, "coefficients", "weight", 0), "'weight' has 5 figures; expected 6"),
    "a figure of no number": (
        put(*DOSE, "sd", {str(k): 1 for k in range(1, 7)}),
        "node 'dose': the sd has figures for",
    ),
    "a negative variance": (
        put("cpds", "weight", "variances", "0", -9),
        "node 'weight' has the variances -9.0; expected",
    ),
    "a negative deviation": (put(*DOSE, "sd", "3", -1), "node 'dose' has the sd -1.0; expected a number from 0"),
    "a variance beyond floats": (put(*DOSE, "sd", "3", 1e200), r"node 'dose' has the sd 1e\+200; .* finite square"),
    "no variance": (drop(*DOSE, "sd"), "node 'dose' has none of 'variance', 'variances', 'sd'; expected exactly one"),
    "two variances": (put(*DOSE, "variance", 1), "node 'dose' has 'variance', 'sd' of .*; expected exactly one"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_by_file_and_node(tmp_path: Path, name: str) -> None:
    change, message = BROKEN[name]
    document = copy.deepcopy(MIXED)
    change(document)
    with pytest.raises(FileFormatError, match=message) as raised:
        sf.read(kept(tmp_path, document))
    assert str(raised.value).startswith(f"{tmp_path / 'net.json'}: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"nodes": [], "else": 1}', "JSON file of another kind"),
        ('{"format": "suffice", "nodes": [], "arcs": [], "cpds": {}}', "format version None"),
        ('{"nodes": [], "arcs": [], "cpds": {}, "format": "suffice"}', "format version None"),
        ('{"nodes": ["a"], "nodes": ["b"], "arcs": [], "cpds": {}}', "a key occurs twice"),
        ('{"nodes": ["a"], "arcs": [], "cpds": {"a": NaN}}', "NaN is not a JSON number"),
        ('{"nodes": ["a"], "arcs": [', "no valid JSON"),
        ("", "it is empty"),
    ],
)
def test_other_json_is_judged_as_our_own(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "net.json"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=message):
        native.read(path)


def test_our_own_file_is_not_read_as_a_packed_network(tmp_path: Path) -> None:
    sf.read(kept(tmp_path, GAUSSIAN)).write(tmp_path / "own.json")
    (tmp_path / "own.json.gz").write_bytes(gzip.compress((tmp_path / "own.json").read_bytes()))
    with pytest.raises(FileFormatError, match=r"the file holds 'format', .*; expected an object with 'nodes'"):
        sf.read(tmp_path / "own.json.gz")


def places(node: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value in a document."""
    parts = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [found for key, part in parts for found in ((*way, key), *places(part, (*way, key)))]


JUNK: list[Any] = [None, True, -1, 0, 1e308, 10**400, "", "age", [], [1], ["age"], {}, {"0": 1}, {"age": []}]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(way=st.sampled_from(places(MIXED)), junk=st.sampled_from(JUNK))
def test_any_value_may_be_wrong(tmp_path: Path, way: tuple[Any, ...], junk: Any) -> None:
    document = copy.deepcopy(MIXED)
    put(*way, junk)(document)
    try:
        net = arcs_json.load(kept(tmp_path, document))
    except FileFormatError:
        return
    assert set(net.nodes) == set(MIXED["nodes"])
    for node in ("age", "sex", "ill"):
        np.testing.assert_allclose(net.table(node).values.sum(axis=-1), 1.0, rtol=1e-12)
