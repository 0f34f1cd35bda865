"""Sensitivity functions against networks with the parameter moved, and explanations against lists of all states."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import suffice as sf
from suffice.domain import Domain, Variable

Floats = NDArray[np.float64]
PARENTS: dict[str, tuple[str, ...]] = {"h": (), "x": ("h",), "m": ("x",), "y": ("m", "h"), "w": ("y", "x")}
CARDS = {"h": 2, "x": 3, "m": 2, "y": 3, "w": 2}
DOMAIN = Domain(Variable.discrete(name, range(card)) for name, card in CARDS.items())


def random_net(seed: int, zeros: bool = False) -> sf.BayesianNetwork:
    rng = np.random.default_rng(seed)
    tables = {}
    for node, above in PARENTS.items():
        weights = rng.gamma(1.0, size=DOMAIN.shape([*above, node]))
        if zeros:
            weights *= rng.random(weights.shape) < 0.8
            weights[..., 0] += weights.sum(axis=-1) == 0
        tables[node] = weights / weights.sum(axis=-1, keepdims=True)
    return sf.BayesianNetwork.from_tables(DOMAIN, PARENTS, tables)


def moved(net: sf.BayesianNetwork, node: str, cell: tuple[int, ...], value: float) -> sf.BayesianNetwork:
    """The network with one probability set, the rest of its row in proportion."""
    tables = {name: net.table(name).values.copy() for name in PARENTS}
    row = tables[node][cell[:-1]]
    rest = 1 - row[cell[-1]]
    others = row / rest if rest > 0 else np.full(len(row), 1 / (len(row) - 1))
    row[:] = others * (1 - value)
    row[cell[-1]] = value
    return sf.BayesianNetwork.from_tables(DOMAIN, PARENTS, tables)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(("target", "given", "do"), [("h", {"w": 1}, None), ("y", {"x": 2}, None), ("y", {}, {"m": 1})])
def test_functions_are_those_of_moved_networks(target: str, given: dict[str, int], do: Any, zeros: bool) -> None:
    net = random_net(4, zeros)
    sensitivity = net.sensitivity(target, given, do=do, state=1)
    assert sensitivity.value == pytest.approx(net.query(target, given=given, do=do).values[1], rel=1e-12)
    slopes = [abs(one.derivative) for one in sensitivity]
    assert slopes == sorted(slopes, reverse=True)
    listed = {(one.node, tuple(one.parents.values()), one.state) for one in sensitivity}
    for node in PARENTS:
        for cell in np.ndindex(*net.table(node).values.shape):
            key = (node, cell[:-1], cell[-1])
            for value in (0.1, 0.45, 0.9):
                other = moved(net, node, cell, value).query(target, given=given, do=do).values[1]
                if key in listed:
                    one = sensitivity.of(node, cell[-1], dict(zip(PARENTS[node], cell[:-1], strict=True)))
                    assert one.at(value) == pytest.approx(other, rel=1e-9, abs=1e-12)
                else:
                    assert other == pytest.approx(sensitivity.value, rel=1e-9, abs=1e-12)


def test_derivatives_are_differences_of_the_functions() -> None:
    net = random_net(0)
    for one in net.sensitivity("y", {"w": 0}):
        step = 1e-6
        low, high = max(one.value - step, 0.0), min(one.value + step, 1.0)
        assert one.derivative == pytest.approx((one.at(high) - one.at(low)) / (high - low), rel=1e-5, abs=1e-8)


def test_the_decision_changes_where_it_is_said() -> None:
    net = random_net(1)
    sensitivity = net.sensitivity("y", {"w": 1})
    changes = sensitivity.changes()
    assert changes
    best = net.map_query({"w": 1}, variables=["y"])["y"]
    for one, value, state in changes:
        side = math.copysign(1e-6, value - one.value)
        before, after = one.distribution_at(value - side), one.distribution_at(min(max(value + side, 0.0), 1.0))
        assert CARDS["y"] > int(before.argmax()) == best
        assert int(after.argmax()) == state
    without = [one for one in sensitivity if one.change is None]
    for one in without:
        for value in np.linspace(0, 1, 41):
            assert int(one.distribution_at(float(value)).argmax()) == best


def test_a_tornado_moves_each_parameter_over_its_interval() -> None:
    rows = random_net(2).sample(400, random_state=0)
    net = sf.BayesianNetwork(PARENTS, states={n: list(range(c)) for n, c in CARDS.items()}, prior=1.0).fit(rows)
    sensitivity = net.sensitivity("h", {"w": 1})
    bars = sensitivity.tornado(5)
    assert [bar.width for bar in bars] == sorted((bar.width for bar in bars), reverse=True)
    assert len(bars) == 5
    root = next(one for one in sensitivity if one.node == "h")
    low, high = net.query("h").interval()
    bar = next(bar for bar in sensitivity.tornado(1000) if bar.name == root.name)
    assert (bar.low, bar.high) == pytest.approx((low.at(h=root.state), high.at(h=root.state)), rel=1e-9)
    assert bar.at_low == pytest.approx(root.at(bar.low), rel=1e-12)
    twice = random_net(2).sensitivity("h", {"w": 1}).tornado(3, odds=2.0)
    assert all(bar.low < bar.high for bar in twice)
    with pytest.raises(sf.EstimateError, match="were given"):
        random_net(2).sensitivity("h", {"w": 1}).tornado()
    assert "derivatives by" in str(sensitivity)


def test_a_tornado_is_drawn() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    sensitivity = random_net(2).sensitivity("h", {"w": 1})
    ax = sf.plot.tornado(sensitivity, 4, odds=2.0)
    bars = sensitivity.tornado(4, odds=2.0)
    assert [label.get_text() for label in ax.get_yticklabels()] == [bar.name for bar in bars]
    boxes = [patch.get_extents().transformed(ax.transData.inverted()) for patch in ax.patches]
    ends = sorted(box.x0 if abs(box.x1 - sensitivity.value) < 1e-9 else box.x1 for box in boxes)
    assert ends == pytest.approx(sorted(end for bar in bars for end in (bar.at_low, bar.at_high)), abs=1e-9)


def test_tied_tables_and_other_kinds_are_named() -> None:
    rows = {"a": [0, 1, 1, 0, 1] * 20, "b": [0, 1, 0, 0, 1] * 20, "c": [0, 1, 0, 1, 1] * 20}
    net = sf.BayesianNetwork("a -> b -> c", tied=[("b", "c")]).fit(rows)
    assert set(net.sensitivity("a", {"c": 1}).left_out) == {"b", "c"}
    net = sf.BayesianNetwork("a -> c; b -> c", nodes={"c": "noisy-or"}).fit(rows)
    assert net.sensitivity("a", {"c": 1}).left_out == ("c",)


def test_mistakes_in_the_question_are_told() -> None:
    net = random_net(0)
    with pytest.raises(sf.OptionError, match="among the evidence"):
        net.sensitivity("h", {"h": 1})
    with pytest.raises(sf.OptionError, match="one discrete node"):
        net.sensitivity(("h", "x"))
    with pytest.raises(sf.OptionError, match="no parameter"):
        net.sensitivity("h").of("w", 1, {"y": 0, "x": 1})
    with pytest.raises(sf.OptionError, match="0 to 1"):
        net.sensitivity("h")[0].at(1.5)
    linear = sf.BayesianNetwork("a -> b").fit({"a": [1.5, 2.25, 3.0], "b": [1.25, 2.5, 2.75]})
    with pytest.raises(sf.OptionError, match="network of tables"):
        linear.sensitivity("b")


# -- explanations -----------------------------------------------------------------------------------------------------


def joint(net: sf.BayesianNetwork) -> Floats:
    return np.asarray(net.to_joint().values)


@pytest.mark.parametrize("seed", range(3))
def test_an_explanation_is_made_of_questions(seed: int) -> None:
    net = random_net(seed)
    findings = {"w": 1, "m": 0}
    explanation = net.explain("h", findings)
    answer = net.query("h", given=findings).values
    np.testing.assert_allclose(explanation.after.values, answer, rtol=1e-12)
    np.testing.assert_allclose(explanation.before.values, net.query("h").values, rtol=1e-12)
    for name in findings:
        rest = {n: s for n, s in findings.items() if n != name}
        other = net.query("h", given=rest).values
        np.testing.assert_allclose(explanation.without[name].values, other, rtol=1e-12)
        assert explanation.moved[name] == pytest.approx(float((answer * np.log(answer / other)).sum()), abs=1e-12)
    np.testing.assert_allclose(explanation.in_order["w"].values, net.query("h", given={"w": 1}).values, rtol=1e-12)
    np.testing.assert_allclose(explanation.in_order["m"].values, answer, rtol=1e-12)


@pytest.mark.parametrize("given", [{}, {"w": 1}, {"m": 0, "w": 0}])
def test_information_is_that_of_the_joint_table(given: dict[str, int]) -> None:
    net = random_net(5)
    table, names = joint(net), list(CARDS)
    explanation = net.explain("y", given)
    index = tuple(given.get(name, slice(None)) for name in names)
    rest = [name for name in names if name not in given]
    inner = table[index] / table[index].sum()
    assert set(explanation.information) == set(rest) - {"y"}
    for name, nats in explanation.information.items():
        axes = tuple(axis for axis, other in enumerate(rest) if other not in ("y", name))
        pair = inner.sum(axis=axes)
        product = np.outer(pair.sum(axis=1), pair.sum(axis=0))
        expected = sum(
            pair[cell] * math.log(pair[cell] / product[cell])
            for cell in itertools.product(*map(range, pair.shape))
            if pair[cell] > 0
        )
        assert nats == pytest.approx(expected, abs=1e-12)


def test_nodes_that_take_part_are_those_that_change_the_answer() -> None:
    net = random_net(0)
    explanation = net.explain("m", {"x": 1, "h": 0})
    # Given x, neither its cause nor what lies below matters.
    assert explanation.relevant == ("x", "m")
    assert explanation.edges == (("x", "m"),)
    assert explanation.moved["h"] == pytest.approx(0.0, abs=1e-12)
    assert "without x" in str(explanation)
    cut = net.explain("y", {"w": 1}, do={"m": 1})
    np.testing.assert_allclose(cut.after.values, net.query("y", given={"w": 1}, do={"m": 1}).values, rtol=1e-12)
    with pytest.raises(sf.OptionError, match="nothing to explain"):
        net.explain("m", {"m": 1})
    linear = sf.BayesianNetwork("a -> b").fit({"a": [1.5, 2.25, 3.0], "b": [1.25, 2.5, 2.75]})
    with pytest.raises(sf.OptionError, match="one discrete node"):
        linear.explain("b")
