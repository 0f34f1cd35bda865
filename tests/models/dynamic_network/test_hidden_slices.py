"""Filter, smooth, forecast and best paths, against the network of all slices and against listing every path."""

import itertools
from typing import Any

import numpy as np
import pytest

import suffice as sf

RNG = np.random.default_rng(3)


def rows(*shape: int) -> Any:
    """Random conditional distributions."""
    return RNG.dirichlet(np.full(shape[-1], 0.8), size=shape[:-1])


def umbrella() -> sf.DynamicBayesianNetwork:
    """Russell and Norvig's umbrella world."""
    return sf.DynamicBayesianNetwork(
        [(("rain", -1), "rain"), ("rain", "umbrella")],
        hidden={"rain": [True, False]},
        states={"umbrella": [True, False]},
        fixed={("rain", 0): [0.5, 0.5], "rain": [[0.7, 0.3], [0.3, 0.7]], "umbrella": [[0.9, 0.1], [0.2, 0.8]]},
    )


def test_the_umbrella_world_has_its_known_answers() -> None:
    net, days = umbrella(), {"umbrella": [True, True]}
    assert net.filter(days)["rain"][:, 0] == pytest.approx([9 / 11, 0.8833570412], abs=1e-9)
    assert net.smooth(days)["rain"][:, 0] == pytest.approx([0.8833570412, 0.8833570412], abs=1e-9)
    assert net.forecast(days, 2)["rain"][0, 0] == pytest.approx(0.7 * 0.8833570412 + 0.3 * 0.1166429588, abs=1e-9)
    five = {"umbrella": [True, True, False, True, True]}
    assert net.map_query(five)["rain"].tolist() == [True, True, False, True, True]


#: Names, arcs, hidden nodes with their states, observed nodes with theirs.
NETWORKS: dict[str, tuple[list[Any], dict[str, int], dict[str, int]]] = {
    "hidden Markov": ([(("h", -1), "h"), ("h", "y")], {"h": 3}, {"y": 3}),
    "factorial": ([(("a", -1), "a"), (("b", -1), "b"), ("a", "y"), ("b", "y")], {"a": 2, "b": 3}, {"y": 3}),
    "coupled": (
        [(("a", -1), "a"), (("b", -1), "a"), (("b", -1), "b"), (("a", -1), "b"), ("a", "x"), ("b", "y")],
        {"a": 2, "b": 2},
        {"x": 2, "y": 3},
    ),
    "autoregressive": ([(("h", -1), "h"), ("h", "y"), (("y", -1), "y")], {"h": 2}, {"y": 3}),
    "second order": ([(("h", -1), "h"), (("h", -2), "h"), ("h", "y")], {"h": 2}, {"y": 2}),
    "order of the seen": ([("h", "y"), (("y", -2), "y"), (("y", -1), "h")], {"h": 2}, {"y": 3}),
    "inner hidden": (
        [(("h", -1), "h"), ("h", "m"), (("y", -1), "m"), ("m", "y"), ("m", "z")],
        {"h": 2, "m": 3},
        {"y": 2, "z": 2},
    ),
    "feedback": ([(("h", -1), "h"), (("y", -1), "h"), ("h", "y")], {"h": 2}, {"y": 2}),
    "no hidden": ([(("x", -1), "x"), ("x", "y"), (("y", -3), "y")], {}, {"x": 2, "y": 2}),
}


def bare(name: Any) -> Any:
    return name[0] if isinstance(name, tuple) else name


def network(name: str, first: Any = None) -> sf.DynamicBayesianNetwork:
    """With random tables."""
    arcs, hidden, seen = NETWORKS[name]
    cards = {**hidden, **seen}
    states = {node: range(card) for node, card in seen.items()}
    net = sf.DynamicBayesianNetwork(arcs, hidden=hidden, states=states, first=first)
    tables = {t: rows(*(cards[bare(p)] for p in net.parents(t)), cards[bare(t)]) for t in net.tables_}
    return net.clone().set_params(fixed=tables)


def with_holes(net: sf.DynamicBayesianNetwork, name: str, length: int, share: float) -> dict[str, list[Any]]:
    """A drawn series whose hidden nodes are left out, and some values with them."""
    drawn = net.sample(length, random_state=length)
    series = {}
    for node in NETWORKS[name][2]:
        gone = RNG.random(length) < share
        series[node] = [None if hole else value for value, hole in zip(drawn[node].tolist(), gone, strict=True)]
    return series


def evidence(series: dict[str, list[Any]], until: int | None = None) -> dict[Any, Any]:
    return {
        (node, t): value
        for node, values in series.items()
        for t, value in enumerate(values[:until])
        if value is not None
    }


@pytest.mark.parametrize("share", [0.0, 0.4])
@pytest.mark.parametrize("name", NETWORKS)
def test_all_answers_are_those_of_the_network_of_all_slices(name: str, share: float) -> None:
    net = network(name)
    many = [with_holes(net, name, length, share) for length in (1, 2, 3, 6)]
    nodes = list(NETWORKS[name][1]) + list(NETWORKS[name][2])
    scores, smoothed = net.score_samples(many), net.smooth(many, nodes)
    filtered, ahead = net.filter(many, nodes), net.forecast(many, 3)
    for number, one in enumerate(many):
        length = len(next(iter(one.values())))
        whole, known = net.unroll(length + 3), evidence(one)
        assert scores[number] == pytest.approx(whole.log_probability(known), abs=1e-10)
        marginals = whole.marginals(known)
        for node in nodes:
            exact = np.array([marginals[node, t].values for t in range(length + 3)])
            assert smoothed[number][node] == pytest.approx(exact[:length], abs=1e-10)
            assert ahead[number][node] == pytest.approx(exact[length:], abs=1e-10)
            for t in range(length):
                so_far = whole.marginals(evidence(one, t + 1))[node, t].values
                assert filtered[number][node][t] == pytest.approx(so_far, abs=1e-10)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_best_path_is_the_best_of_all(name: str) -> None:
    net = network(name)
    one = with_holes(net, name, 3, 0.5)
    nodes = list(NETWORKS[name][1]) + list(NETWORKS[name][2])
    found = net.map_query(one)
    known = evidence(one)
    whole = net.unroll(3)
    places = [(node, t) for node in nodes for t in range(3)]
    choices = [[known[p]] if p in known else whole.states(p) for p in places]
    table = {p: [] for p in places}  # type: ignore[var-annotated]
    for states in itertools.product(*choices):
        for place, state in zip(places, states, strict=True):
            table[place].append(state)
    scores = whole.score_samples(table)
    best = scores.max()
    mine = whole.score_samples({(node, t): [found[node][t]] for node, t in places})[0]
    assert mine == pytest.approx(best, abs=1e-10)


def test_a_first_slice_of_its_own_is_asked_as_it_is() -> None:
    net = network("coupled", first=[("a", "b"), ("b", "x"), ("b", "y")])
    one = with_holes(net, "coupled", 4, 0.3)
    marginals = net.unroll(4).marginals(evidence(one))
    for node, answer in net.smooth(one).items():
        assert answer == pytest.approx(np.array([marginals[node, t].values for t in range(4)]), abs=1e-10)


def test_an_answer_does_not_depend_on_how_series_lie_together() -> None:
    net = network("second order")
    many = [with_holes(net, "second order", length, 0.3) for length in (5, 1, 9, 2)]
    alone = [net.smooth(one)["h"] for one in many]
    for together, one in zip(net.smooth(many), alone, strict=True):
        assert together["h"] == pytest.approx(one, abs=1e-14)


def test_a_gap_in_time_is_a_missing_slice() -> None:
    net = umbrella()
    gap = net.smooth({"umbrella": [True, False], "day": [3, 6]}, time="day")["rain"]
    assert gap == pytest.approx(net.smooth({"umbrella": [True, None, None, False]})["rain"], abs=1e-14)
    assert len(gap) == 4


def test_a_long_series_has_no_end_of_numbers() -> None:
    net = umbrella()
    days = net.sample(100_000, random_state=0)
    smoothed = net.smooth({"umbrella": days["umbrella"]})["rain"]
    assert np.isfinite(smoothed).all()
    assert smoothed.sum(axis=1) == pytest.approx(np.ones(100_000), abs=1e-9)


def test_inputs_turn_the_wheel() -> None:
    tables = {("h", 0): rows(2), "h": rows(2, 2, 2), "y": rows(2, 3)}
    net = sf.DynamicBayesianNetwork(
        [(("h", -1), "h"), ("u", "h"), ("h", "y")],
        first=[("h", "y")],
        inputs=["u"],
        hidden={"h": 2},
        states={"y": range(3), "u": ["lo", "hi"]},
        fixed={**tables, ("y", 0): tables["y"]},
    )
    inputs, seen = ["lo", "hi", "hi", "lo"], [0, 2, None, 1]
    total, posterior = 0.0, np.zeros((4, 2))
    for path in itertools.product(range(2), repeat=4):
        weight = tables["h", 0][path[0]]
        for t in range(4):
            if t:
                weight *= tables["h"][path[t - 1], ["lo", "hi"].index(inputs[t]), path[t]]
            if seen[t] is not None:
                weight *= tables["y"][path[t], seen[t]]
        total += weight
        posterior[range(4), path] += weight
    series = {"u": inputs, "y": seen}
    assert net.score_samples(series)[0] == pytest.approx(np.log(total), abs=1e-12)
    assert net.smooth(series)["h"] == pytest.approx(posterior / total, abs=1e-12)
    ahead = net.forecast(series, 1, inputs={"u": ["hi"]})["h"][0]
    assert ahead == pytest.approx((posterior / total)[3] @ tables["h"][:, 1], abs=1e-12)
    with pytest.raises(sf.MissingColumnError, match="later slices"):
        net.forecast(series, 1)


def test_what_has_no_answer_is_refused_by_name() -> None:
    net = umbrella()
    with pytest.raises(sf.OptionError, match="nothing to tell"):
        sf.DynamicBayesianNetwork([(("a", -1), "a")]).fit({"a": [0, 1, 0]}).smooth({"a": [0, 1]})
    with pytest.raises(sf.UnknownStateError):
        net.smooth({"umbrella": ["perhaps"]})
    wide = sf.DynamicBayesianNetwork(
        [((f"h{i}", -1), f"h{i}") for i in range(13)] + [(f"h{i}", "y") for i in range(3)],
        hidden={f"h{i}": 2 for i in range(13)},
    )
    with pytest.raises(sf.SizeError, match="8,192 joint states"):
        wide.fit({"y": [0, 1, 0, 1]})
    never = sf.DynamicBayesianNetwork(
        [("h", "y")], hidden={"h": 2}, states={"y": [0, 1]}, fixed={"h": [1, 0], "y": [[1, 0], [0, 1]]}
    )
    with pytest.raises(sf.EstimateError, match="probability 0"):
        never.smooth({"y": [0, 1]})
