"""Effects of interventions: against formulas of adjustment and the mutilated network; and which are not identified."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import suffice as sf
from suffice.graphs.identification import ConfoundedGraph, hedge_of, hedge_of_conditional

Floats = NDArray[np.float64]


def confounded_rows(n: int, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 3, n)
    x = (rng.random(n) < np.array([0.2, 0.5, 0.8])[z]).astype(int)
    y = (rng.random(n) < 0.1 + 0.2 * x + 0.2 * z).astype(int)
    return {"z": z, "x": x, "y": y}


def test_the_effect_is_that_of_adjustment_with_its_error() -> None:
    """P(y | do(x)) = sum P(z) P(y | x, z): the error by the delta method, by hand."""
    rows = confounded_rows(600)
    net = sf.BayesianNetwork("z -> x; z -> y; x -> y").fit(rows)
    n = np.bincount(rows["z"], minlength=3)
    pz = n / 600
    rates, sizes = np.zeros((2, 3)), np.zeros((2, 3))
    for x, z in itertools.product(range(2), range(3)):
        inside = (rows["x"] == x) & (rows["z"] == z)
        rates[x, z], sizes[x, z] = rows["y"][inside].mean(), inside.sum()
    gain = rates[1] - rates[0]
    effect = net.effect("y", {"x": 1}, against={"x": 0})
    variance = (pz @ gain**2 - (pz @ gain) ** 2) / 600 + (pz**2 * rates * (1 - rates) / sizes).sum()
    assert effect.difference.at(y=1) == pytest.approx(pz @ gain, rel=1e-12)
    assert effect.standard_errors.at(y=1) == pytest.approx(np.sqrt(variance), rel=1e-9)
    assert effect.mean == pytest.approx(pz @ gain, rel=1e-12)
    assert effect.mean_error == pytest.approx(np.sqrt(variance), rel=1e-9)
    low, high = effect.interval(0.95)
    assert high.at(y=1) - low.at(y=1) == pytest.approx(2 * 1.959963984540054 * np.sqrt(variance), rel=1e-9)
    assert "effect on the probabilities of 'y'" in str(effect)
    assert effect.treated.at(y=1) == pytest.approx(pz @ rates[1], rel=1e-12)


def test_draws_of_an_effect_share_their_parameters() -> None:
    net = sf.BayesianNetwork("z -> x; z -> y; x -> y", prior=1.0).fit(confounded_rows(4000))
    effect = net.effect("y", {"x": 1}, against={"x": 0})
    delta, drawn = effect.interval(), effect.interval(method="posterior", draws=3000, random_state=0)
    width = delta[1].at(y=1) - delta[0].at(y=1)
    for one, other in zip(delta, drawn, strict=True):
        np.testing.assert_allclose(one.values, other.values, atol=0.06 * width)


def test_the_effect_in_a_linear_network_is_a_coefficient() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=300)
    x = 0.5 * z + rng.normal(size=300)
    y = 1.5 * x - z + rng.normal(size=300)
    net = sf.BayesianNetwork("z -> x; z -> y; x -> y").fit({"z": z, "x": x, "y": y})
    effect = net.effect("y", {"x": 2.0}, against={"x": 1.0})
    node = net.node("y")
    place = 1 + node.real_parents.index("x")
    assert effect.difference == pytest.approx(node.weights_[place], rel=1e-9)
    assert effect.standard_errors == pytest.approx(node.standard_errors_[place], rel=1e-9)
    low, high = effect.interval()
    assert low < effect.mean < high
    assert "effect on the mean" in repr(effect)


def test_mistakes_in_the_question_are_told() -> None:
    net = sf.BayesianNetwork("z -> x; z -> y; x -> y").fit(confounded_rows(100))
    with pytest.raises(sf.OptionError, match="same nodes"):
        net.effect("y", {"x": 1}, against={"z": 1})
    with pytest.raises(sf.OptionError, match="expected a dict"):
        net.effect("y", {}, against={})
    with pytest.raises(sf.OptionError, match="nothing acts"):
        net.effect("y", {"y": 1}, against={"y": 0})
    words = {"x": ["no", "yes"] * 10, "y": ["low", "low", "high", "low"] * 5}
    with pytest.raises(sf.OptionError, match="no mean"):
        _ = sf.BayesianNetwork("x -> y").fit(words).effect("y", {"x": "yes"}, against={"x": "no"}).mean


# -- identification ---------------------------------------------------------------------------------------------------

#: Graphs of the literature: parents with hidden nodes u..., the effect, and whether it is identified.
KNOWN: list[tuple[dict[str, str], str, str, str, bool]] = [
    ({"u": "", "x": "u", "y": "xu"}, "x", "y", "", False),  # The bow.
    ({"u": "", "x": "u", "m": "x", "y": "mu"}, "x", "y", "", True),  # The front door.
    ({"z": "", "x": "z", "y": "xz"}, "x", "y", "", True),  # The back door.
    ({"u": "", "z": "", "x": "zu", "y": "xu"}, "x", "y", "", False),  # An instrument.
    ({"u": "", "v": "", "z": "uv", "x": "u", "y": "xv"}, "x", "y", "", True),  # M-bias, empty adjustment.
    ({"u": "", "x": "", "m": "xu", "y": "mu"}, "x", "y", "", True),  # Confounding below x alone.
    ({"u": "", "x": "u", "m": "xu", "y": "m"}, "x", "y", "", False),  # A confounded first step.
    # Pearl's napkin, and the graph of figure 2 of Shpitser and Pearl with two hidden causes.
    ({"u": "", "v": "", "w": "uv", "z": "w", "x": "zu", "y": "xv"}, "x", "y", "", True),
    ({"u": "", "v": "", "x": "u", "z": "xv", "y": "zuv"}, "x", "y", "", False),
    # Given the instrument's child the bow stays; given what could as well be set, the effect of both counts.
    ({"u": "", "x": "u", "y": "xu", "w": "x"}, "x", "y", "w", False),
    ({"u": "", "z": "", "x": "z", "y": "xzu", "w": "u"}, "x", "y", "w", True),
]


@pytest.mark.parametrize(("graph", "x", "y", "given", "identified"), KNOWN)
def test_identification_of_the_literature(graph: dict[str, str], x: str, y: str, given: str, identified: bool) -> None:
    parents = {node: tuple(above) for node, above in graph.items()}
    projected = ConfoundedGraph.projected(parents, {"u", "v"} & set(parents))
    hedge = hedge_of_conditional(projected, set(y), set(x), set(given))
    assert (hedge is None) is identified
    if not given:
        assert (hedge_of(projected, set(y), set(x)) is None) is identified


def test_a_chain_of_hidden_nodes_is_projected() -> None:
    parents = {"a": (), "h": ("a",), "k": ("h",), "b": ("k",), "c": ("h",)}
    graph = ConfoundedGraph.projected(parents, {"h", "k"})
    assert graph.parents == {"a": frozenset(), "b": frozenset("a"), "c": frozenset("a")}
    assert graph.confounded == frozenset([frozenset("bc")])


def test_models_that_agree_in_what_is_seen_differ_where_there_is_a_hedge() -> None:
    """The bow: two networks with the same P(x, y) and effects of 0 and of 0.6; the question is refused by name."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 400)
    rows = {"x": x, "y": (rng.random(400) < 0.2 + 0.6 * x).astype(int)}
    net = sf.BayesianNetwork("u -> x; u -> y; x -> y", hidden={"u": 2}, max_iter=50)
    net.fit(rows)
    with pytest.raises(sf.EstimateError, match=r"hedge.*Observe a common cause|hold 'x', 'y' together"):
        net.effect("y", {"x": 1}, against={"x": 0})
    with pytest.raises(sf.EstimateError, match="is hidden"):
        net.effect("y", {"u": 1}, against={"u": 0})


def front_door(n: int) -> tuple[Mapping[str, Any], float]:
    """Rows of a front-door graph with its effect."""
    rng = np.random.default_rng(1)
    u = rng.random(n) < 0.5
    x = (rng.random(n) < np.where(u, 0.8, 0.2)).astype(int)
    m = (rng.random(n) < np.where(x == 1, 0.9, 0.2)).astype(int)
    y = (rng.random(n) < 0.1 + 0.4 * m + 0.4 * u).astype(int)
    return {"x": x, "m": m, "y": y}, 0.7 * 0.4


def test_an_effect_that_is_identified_is_that_of_the_front_door() -> None:
    rows, truth = front_door(6000)
    net = sf.BayesianNetwork("u -> x -> m -> y; u -> y", hidden={"u": 2}, tolerance=1e-8).fit(rows)
    px, formula = np.bincount(rows["x"]) / 6000, np.zeros(2)
    for x in (0, 1):
        for m in (0, 1):
            pm = (rows["m"][rows["x"] == x] == m).mean()
            inner = sum(px[k] * rows["y"][(rows["x"] == k) & (rows["m"] == m)].mean() for k in (0, 1))
            formula[x] += pm * inner
    effect = net.effect("y", {"x": 1}, against={"x": 0})
    assert effect.difference.at(y=1) == pytest.approx(formula[1] - formula[0], abs=2e-3)
    assert effect.difference.at(y=1) == pytest.approx(truth, abs=0.05)
