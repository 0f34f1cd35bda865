"""Nodes that are set from outside, and questions about one slice, against the mutilated network of all slices."""

from typing import Any

import numpy as np
import pytest

import suffice as sf


def bare(name: Any) -> Any:
    return name[0] if isinstance(name, tuple) else name


def states() -> sf.DynamicBayesianNetwork:
    """A hidden cause that a treatment and the reading before act upon."""
    arcs = [(("h", -1), "h"), (("y", -1), "t"), ("h", "t"), (("t", -1), "h"), ("h", "y"), ("t", "y")]
    cards = {"h": 2, "t": 2, "y": 3}
    net = sf.DynamicBayesianNetwork(arcs, hidden={"h": 2}, states={"t": ["no", "yes"], "y": range(3)})
    rng = np.random.default_rng(8)
    tables = {}
    for family in net.tables_:
        above = [cards[bare(parent)] for parent in net.parents(family)]
        tables[family] = rng.dirichlet(np.full(cards[bare(family)], 1.5), size=above)
    return net.clone().set_params(fixed=tables)


def levels() -> sf.DynamicBayesianNetwork:
    """Hidden numbers that a dose moves."""
    return sf.DynamicBayesianNetwork(
        [(("x", -1), "x"), (("dose", -1), "x"), ("x", "y"), (("x", -1), "dose"), ("y", "dose")],
        hidden={"x": "real"},
        states={"y": "real", "dose": "real"},
        fixed={
            ("x", 0): ([0.5], 1.0),
            "x": ([0.2, 0.8, 0.6], 0.3),
            "y": ([0.0, 1.0], 0.5),
            ("dose", 0): ([0.0, 0.5], 0.4),
            "dose": ([0.1, 0.3, -0.4], 0.2),
        },
    )


SEEN: dict[str, Any] = {"t": ["no", None, "yes", None], "y": [0, 2, None, 1]}


def known(series: dict[str, Any]) -> dict[Any, Any]:
    return {(name, t): v for name, column in series.items() for t, v in enumerate(column) if v is not None}


@pytest.mark.parametrize(
    "do", [{("t", 1): "yes"}, {("t", 3): "no", ("h", 2): 1}, {("h", 0): 0, ("h", 1): 1, ("t", 1): "no"}, {"h": 1}]
)
def test_answers_are_those_of_the_mutilated_network(do: dict[Any, Any]) -> None:
    net = states()
    everywhere = {(name, t): v for name, v in do.items() if isinstance(name, str) for t in range(4)} or do
    set_to = {place: value for place, value in everywhere.items() if place not in known(SEEN)}
    exact = net.unroll(4)
    smoothed = net.smooth(SEEN, ["h", "t", "y"], do=do)
    for t in range(4):
        for node in ("h", "t", "y"):
            answer = exact.query((node, t), given=known(SEEN), do=set_to) if (node, t) not in set_to else None
            if answer is not None:
                assert smoothed[node][t] == pytest.approx(answer.values, abs=1e-12)
            else:
                assert smoothed[node][t].max() == 1.0
    filtered = net.filter(SEEN, "h", do=do)["h"]
    for t in range(4):
        until = {place: value for place, value in known(SEEN).items() if place[1] <= t}
        early = {place: value for place, value in set_to.items() if place[1] <= t}
        if ("h", t) not in early:
            assert filtered[t] == pytest.approx(exact.query(("h", t), given=until, do=early).values, abs=1e-12)
    best = net.map_query(SEEN, do=do)
    mode = exact.map_query(given=known(SEEN), do=set_to)
    assert {(n, t): v for n, column in best.items() for t, v in enumerate(column.tolist())} == mode


def test_forecasts_under_a_plan() -> None:
    net, whole = states(), states().unroll(6)
    plan: dict[Any, Any] = {"t": "yes", ("t", 1): "no"}
    ahead = net.forecast(SEEN, 2, do=plan)
    for later in range(2):
        do = {("t", 4): "yes", ("t", 5): "no"}
        for node in ("h", "y"):
            exact = whole.query((node, 4 + later), given=known(SEEN), do=do).values
            assert ahead[node][later] == pytest.approx(exact, abs=1e-12)
    two = net.forecast([SEEN, {"t": ["no"], "y": [1]}], 2, "h", do=plan)
    short = states().unroll(3).query(("h", 2), given={("t", 0): "no", ("y", 0): 1}, do={("t", 1): "yes"}).values
    assert two[1]["h"][1] == pytest.approx(short, abs=1e-12)
    assert two[0]["h"] == pytest.approx(ahead["h"], abs=1e-14)


@pytest.mark.parametrize("do", [{"dose": 0.7}, {("dose", 1): -1.0, ("x", 2): 0.4}, {("y", 2): 1.5}])
def test_numbers_may_be_set(do: dict[Any, Any]) -> None:
    net, whole = levels(), levels().unroll(4)
    seen: dict[str, Any] = {"y": [0.3, None, None, 1.2], "dose": [None, None, 0.2, None]}
    seen = {"y": seen["y"]} if "dose" in do else seen
    everywhere = {(name, t): v for name, v in do.items() if isinstance(name, str) for t in range(4)} or do
    smoothed = net.smooth(seen, ["x", "y", "dose"], do=do)
    for t in range(4):
        for node in ("x", "y", "dose"):
            if (node, t) in known(seen) or (node, t) in everywhere:
                value = {**known(seen), **everywhere}[node, t]
                assert smoothed[node][t] == pytest.approx([value, 0.0], abs=1e-9)
                continue
            normal = whole.query((node, t), given=known(seen), do=everywhere)
            exact = [float(np.ravel(normal.mean)[0]), float(np.ravel(normal.covariance)[0])]
            assert smoothed[node][t] == pytest.approx(exact, abs=1e-9)


def test_questions_about_one_slice() -> None:
    net, whole = states(), states().unroll(5)
    given: dict[Any, Any] = {("y", 0): 2, ("t", 4): "yes"}
    answer = net.query(("h", 2), given=given, do={("t", 1): "no"})
    exact = whole.query(("h", 2), given=given, do={("t", 1): "no"})
    assert isinstance(answer, sf.Table)
    assert answer.variables == (("h", 2),)
    assert answer.values == pytest.approx(exact.values, abs=1e-12)
    alone = net.query(("y", 3))
    assert alone.values == pytest.approx(whole.query(("y", 3)).values, abs=1e-12)
    number = levels().query(("x", 2), given={("y", 1): 0.4}, do={"dose": 0.2})
    normal = levels().unroll(3).query(("x", 2), given={("y", 1): 0.4}, do={("dose", t): 0.2 for t in range(3)})
    assert [number.mean[0], number.variance[0]] == pytest.approx(
        [float(np.ravel(normal.mean)[0]), float(np.ravel(normal.covariance)[0])], abs=1e-10
    )


def test_draws_under_an_intervention() -> None:
    net = states()
    drawn = net.sample(3, n=4000, do={"t": "yes", ("t", 2): "no"}, random_state=0)
    assert all(one["t"].tolist() == ["yes", "yes", "no"] for one in drawn)
    share = np.mean([one["h"][2] for one in drawn])
    exact = net.query(("h", 2), do={"t": "yes", ("t", 2): "no"}).at({("h", 2): 1})
    assert share == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 4000))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: states().smooth(SEEN, do={("t", 0): "yes"}), "the data show another value in slice 0"),
        (lambda: states().smooth(SEEN, do={"z": 1}), "which is no node"),
        (lambda: states().smooth(SEEN, do={("t", 9): "yes"}), "there are 4"),
        (lambda: states().smooth(SEEN, do={"t": "maybe"}), "maybe"),
        (lambda: states().smooth(SEEN, do={("t", 1): [0.5, 0.5]}), "an intervention is certain"),
        (lambda: states().smooth(SEEN, do=["t"]), "expected a dict"),
        (lambda: states().query("h"), "expected a node and the number of a slice"),
        (lambda: states().query(("h", 1), given={"t": "yes"}), "given names 't'"),
        (lambda: states().query(("h", 1), inputs={}), "has none"),
    ],
)
def test_what_cannot_be_set_is_refused(call: Any, said: str) -> None:
    with pytest.raises(sf.SufficeError, match=said):
        call()
