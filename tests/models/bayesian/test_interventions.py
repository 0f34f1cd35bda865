"""Interventions, against networks that are mutilated by hand: joint tables, formulas of adjustment, another library."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import suffice as sf
from suffice.choices import Registered
from suffice.domain import Domain, Variable

Floats = NDArray[np.float64]

PARENTS: dict[str, tuple[str, ...]] = {"h": (), "x": ("h",), "m": ("x",), "y": ("m", "h"), "w": ("y", "x")}
CARDS = {"h": 2, "x": 3, "m": 2, "y": 3, "w": 2}


def random_net(seed: int, zeros: bool = False) -> sf.BayesianNetwork:
    rng = np.random.default_rng(seed)
    domain = Domain(Variable.discrete(name, range(card)) for name, card in CARDS.items())
    tables = {}
    for node, above in PARENTS.items():
        weights = rng.gamma(1.0, size=domain.shape([*above, node]))
        if zeros:
            weights *= rng.random(weights.shape) < 0.8
            weights[..., 0] += weights.sum(axis=-1) == 0
        tables[node] = weights / weights.sum(axis=-1, keepdims=True)
    return sf.BayesianNetwork.from_tables(domain, PARENTS, tables)


def mutilated_joint(net: sf.BayesianNetwork, do: dict[str, int], given: dict[str, int]) -> Floats:
    """The truncated factorisation at every joint state, without the tables of the nodes that are set."""
    joint = np.zeros(tuple(CARDS.values()))
    names = list(CARDS)
    for cell in itertools.product(*map(range, CARDS.values())):
        states = dict(zip(names, cell, strict=True))
        if any(states[name] != state for name, state in {**do, **given}.items()):
            continue
        rows = (net.table(n).values[tuple(states[p] for p in (*PARENTS[n], n))] for n in names if n not in do)
        joint[cell] = math.prod(rows)
    return joint


def margin(joint: Floats, *names: str) -> Floats:
    axes = tuple(axis for axis, name in enumerate(CARDS) if name not in names)
    return np.asarray(joint.sum(axis=axes))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("do", [{"x": 2}, {"m": 1}, {"x": 0, "y": 1}, {"w": 1}])
def test_queries_are_those_of_the_mutilated_network(seed: int, do: dict[str, int]) -> None:
    net = random_net(seed)
    given = {} if seed % 2 else {"w": 0} if "w" not in do else {"m": 0}
    joint = mutilated_joint(net, do, given)
    for name in CARDS:
        answer = net.query(name, given=given, do=do)
        np.testing.assert_allclose(answer.values, margin(joint, name) / joint.sum(), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(net.marginals(given, do=do)[name].values, answer.values, rtol=1e-12, atol=1e-15)
    both = net.query(["h", "y"], given=given, do=do).values
    np.testing.assert_allclose(both, margin(joint, "h", "y") / joint.sum(), rtol=1e-12, atol=1e-15)
    assert net.log_probability(given, do=do) == pytest.approx(math.log(joint.sum()), abs=1e-12)
    best = np.unravel_index(int(joint.argmax()), joint.shape)
    assert net.map_query(given, do=do) == dict(zip(CARDS, map(int, best), strict=True))
    pair = margin(joint, "h", "m")
    h, m = np.unravel_index(int(pair.argmax()), pair.shape)
    assert net.map_query(given, do=do, variables=["h", "m"]) == {"h": int(h), "m": int(m)}


def test_every_engine_and_every_row_takes_interventions() -> None:
    net = random_net(3)
    joint = mutilated_joint(net, {"x": 1}, {"w": 1})
    expected = margin(joint, "y") / joint.sum()
    by_list = net.query("y", given={"w": 1}, do={"x": 1}, engine=Registered("enumeration"))
    np.testing.assert_allclose(by_list.values, expected, rtol=1e-12)
    sampled = net.query("y", given={"w": 1}, do={"x": 1}, engine="sampling", n=40_000, random_state=1)
    np.testing.assert_allclose(sampled.values, expected, atol=0.02)
    rows = net.query_rows("y", {"w": [1, 0, None]}, do={"x": 1})
    for row, given in zip(rows, ({"w": 1}, {"w": 0}, {}), strict=True):
        joint = mutilated_joint(net, {"x": 1}, given)
        np.testing.assert_allclose(row, margin(joint, "y") / joint.sum(), rtol=1e-12)


def test_an_impossible_value_can_be_set() -> None:
    """What never happens by itself may be brought about: only the parents of the node make it impossible."""
    domain = Domain(Variable.discrete(name, ["no", "yes"]) for name in "ab")
    net = sf.BayesianNetwork.from_tables(
        domain, {"a": (), "b": ("a",)}, {"a": [1.0, 0.0], "b": [[0.9, 0.1], [0.3, 0.7]]}
    )
    assert net.query("b", do={"a": "yes"}).at(b="yes") == pytest.approx(0.7)
    with pytest.raises(sf.EstimateError, match="probability 0"):
        net.query("b", given={"a": "yes"})


def test_samples_are_those_of_the_mutilated_network() -> None:
    net = random_net(1)
    for given in (None, {"w": 1}):
        drawn = net.sample(60_000, given, do={"m": 1}, random_state=0)
        assert set(drawn["m"]) == {1}
        joint = mutilated_joint(net, {"m": 1}, given or {})
        shares = np.bincount(drawn["y"], minlength=3) / 60_000
        np.testing.assert_allclose(shares, margin(joint, "y") / joint.sum(), atol=0.01)


def linear(seed: int) -> tuple[sf.BayesianNetwork, dict[str, Floats]]:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=400)
    x = 0.8 * z + rng.normal(size=400)
    y = 1.5 * x - 2.0 * z + rng.normal(size=400)
    rows = {"z": z, "x": x, "y": y}
    return sf.BayesianNetwork("z -> x; z -> y; x -> y").fit(rows), rows


def test_normal_networks_follow_the_formula_of_adjustment() -> None:
    """E[y | do(x)] is the regression of y at x and the mean of z; its variance that of y and of b_z z."""
    net, rows = linear(0)
    b0, bz, bx = np.linalg.lstsq(np.stack([np.ones(400), rows["z"], rows["x"]], axis=1), rows["y"], rcond=None)[0]
    away = rows["y"] - (b0 + bz * rows["z"] + bx * rows["x"])
    answer = net.query("y", do={"x": 3.0})
    assert answer.mean[0] == pytest.approx(b0 + bx * 3.0 + bz * rows["z"].mean(), rel=1e-10)
    assert answer.covariance[0, 0] == pytest.approx((away**2).mean() + bz**2 * rows["z"].var(), rel=1e-10)
    # z is above x: setting x says nothing about it.
    assert net.query("z", do={"x": 3.0}).mean[0] == pytest.approx(rows["z"].mean(), rel=1e-10)
    assert net.joint_gaussian(do={"x": 3.0}).mean_of("y") == pytest.approx(answer.mean[0], rel=1e-12)
    expected = -0.5 * math.log(2 * math.pi * answer.covariance[0, 0])
    expected -= 0.5 * (1.0 - answer.mean[0]) ** 2 / answer.covariance[0, 0]
    assert net.log_probability({"y": 1.0}, do={"x": 3.0}) == pytest.approx(expected, rel=1e-10)
    drawn = net.sample(20_000, do={"x": 3.0}, random_state=0)
    assert set(drawn["x"]) == {3.0}
    assert np.mean(drawn["y"]) == pytest.approx(answer.mean[0], abs=0.06)


def test_mixed_networks_and_generalised_linear_nodes_take_interventions() -> None:
    rng = np.random.default_rng(0)
    n = 3000
    z = rng.choice(["a", "b"], n)
    x = rng.normal(size=n) + (z == "b")
    y = rng.choice(["no", "yes"], n, p=[0.5, 0.5])
    p = 1 / (1 + np.exp(-(x - 1.5 * (z == "b"))))
    y = np.where(rng.random(n) < p, "yes", "no")
    net = sf.BayesianNetwork("z -> x; x -> y; z -> y", nodes={"y": "glm"}).fit({"z": z, "x": x, "y": y})
    given = [net.query("y", given={"x": 0.5, "z": state}).at(y="yes") for state in ("a", "b")]
    share = net.table("z").values
    assert net.query("y", do={"x": 0.5}).at(y="yes") == pytest.approx(share @ given, rel=1e-12)
    mixed = sf.BayesianNetwork("z -> x; x -> w; z -> w").fit({"z": z, "x": x, "w": x + (z == "a") + rng.normal(size=n)})
    table = mixed.table("w")
    means = [table.at(z=s)["(intercept)"] + 2.0 * table.at(z=s)["x"] for s in ("a", "b")]
    answer = mixed.query("w", do={"x": 2.0})
    assert answer.mean[0] == pytest.approx(mixed.table("z").values @ means, rel=1e-12)
    np.testing.assert_allclose(mixed.query("z", do={"x": 2.0}).values, mixed.table("z").values, rtol=1e-12)


def test_hidden_confounders_are_summed_out_of_the_whole_model() -> None:
    """With its parameters known, a confounder needs no adjustment set: the bow h -> x, h -> y, x -> y by hand."""
    domain = Domain(Variable.discrete(name, [0, 1]) for name in "hxy")
    tables = {"h": [0.3, 0.7], "x": [[0.9, 0.1], [0.2, 0.8]], "y": [[[0.8, 0.2], [0.5, 0.5]], [[0.4, 0.6], [0.1, 0.9]]]}
    parents = {"h": (), "x": ("h",), "y": ("h", "x")}
    given = sf.BayesianNetwork.from_tables(domain, parents, tables)
    net = sf.BayesianNetwork(parents, hidden={"h": [0, 1]}, states={"x": [0, 1], "y": [0, 1]}, fixed=tables)
    expected = 0.3 * 0.5 + 0.7 * 0.9
    assert net.query("y", do={"x": 1}).at(y=1) == pytest.approx(expected, rel=1e-14)
    assert given.query("y", do={"x": 1}).at(y=1) == pytest.approx(expected, rel=1e-14)
    assert net.query("y", given={"x": 1}).at(y=1) != pytest.approx(expected, abs=0.05)


def test_another_library_finds_the_same_effect() -> None:
    gum = pytest.importorskip("pyagrum")
    causal = pytest.importorskip("pyagrum.causal")
    net = random_net(5)
    other = gum.BayesNet()
    for name, card in CARDS.items():
        other.add(gum.RangeVariable(name, "", 0, card - 1))
    for node, above in PARENTS.items():
        for parent in above:
            other.addArc(parent, node)
    for node, above in PARENTS.items():
        for cell in itertools.product(*(range(CARDS[n]) for n in (*above, node))):
            place = gum.Instantiation(other.cpt(node))
            for name, code in zip((*above, node), cell, strict=True):
                place.chgVal(name, code)
            other.cpt(node).set(place, float(net.table(node).values[cell]))
    model = causal.CausalModel(other)
    _, table, _ = causal.causalImpact(model, on="y", doing="x", values={"x": 2})
    np.testing.assert_allclose(net.query("y", do={"x": 2}).values, table.toarray().ravel(), rtol=1e-9)


@pytest.mark.parametrize(
    ("do", "given", "message"),
    [
        ({"x": 1}, {"x": 1}, "is in given= and in do="),
        ({"x": [0.5, 0.25, 0.25]}, None, "an intervention is certain"),
        ({"x": 9}, None, "does not have"),
        ({"u": 1}, None, "no variable 'u'|'u'"),
        ([("x", 1)], None, "do is a list"),
    ],
)
def test_interventions_that_are_none_are_refused(do: Any, given: Any, message: str) -> None:
    with pytest.raises((sf.SufficeError, KeyError), match=message):
        random_net(0).query("y", given=given, do=do)


def test_rows_and_interventions_do_not_speak_of_the_same_node() -> None:
    net = random_net(0)
    with pytest.raises(sf.OptionError, match="is a column of the rows and in do="):
        net.query_rows("y", {"x": [0]}, do={"x": 1})
    with pytest.raises(sf.OptionError, match="for one question"):
        net.marginals(np.array([[0]]), columns=["w"], do={"x": 1})


def test_an_intervention_does_not_change_the_network() -> None:
    net = random_net(2)
    before = net.query("y").values
    for state in range(3):
        net.query("y", do={"x": state, "h": 1})
    np.testing.assert_array_equal(net.query("y").values, before)
    assert net.parents("x") == ("h",)
