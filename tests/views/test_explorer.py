"""The page of a discrete network answers questions exactly, in a real browser."""

import math
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.views.explorer import explorer_of

YES_NO = ["yes", "no"]


def asia() -> sf.BayesianNetwork:
    """The chest clinic of Lauritzen and Spiegelhalter (1988), with the probabilities of their paper, as a fit."""
    either = np.zeros((2, 2, 2))
    either[..., 0], either[1, 1] = 1.0, (0.0, 1.0)
    tables: dict[str, tuple[list[str], Any]] = {
        "asia": ([], [0.01, 0.99]),
        "tub": (["asia"], [[0.05, 0.95], [0.01, 0.99]]),
        "smoke": ([], [0.5, 0.5]),
        "lung": (["smoke"], [[0.1, 0.9], [0.01, 0.99]]),
        "bronc": (["smoke"], [[0.6, 0.4], [0.3, 0.7]]),
        "either": (["lung", "tub"], either),
        "xray": (["either"], [[0.98, 0.02], [0.05, 0.95]]),
        "dysp": (["bronc", "either"], [[[0.9, 0.1], [0.8, 0.2]], [[0.7, 0.3], [0.1, 0.9]]]),
    }
    return fixed({name: (parents, np.asarray(table)) for name, (parents, table) in tables.items()})  # type: ignore[no-any-return]


def fixed(tables: Mapping[str, tuple[list[str], Any]], states: Mapping[str, list[Any]] | None = None) -> Any:
    """A network whose tables are given, with a report."""
    said = states or {name: YES_NO[: table.shape[-1]] for name, (_, table) in tables.items()}
    net = sf.BayesianNetwork(
        {name: parents for name, (parents, _) in tables.items()},
        states=said,
        fixed={name: table for name, (_, table) in tables.items()},
    )
    return net.fit({name: [said[name][0]] for name in tables})


def random_network(n: int, seed: int, *, most_parents: int = 4) -> Any:
    """A network of the size of ALARM: nodes of 2 to 4 states, each below some of the 6 nodes before it."""
    rng = np.random.default_rng(seed)
    tables, cards = {}, {}
    for at in range(n):
        near = [f"N{k}" for k in range(max(0, at - 6), at)]
        parents = [str(p) for p in rng.choice(near, min(len(near), int(rng.integers(0, most_parents))), replace=False)]
        cards[f"N{at}"] = int(rng.integers(2, 5))
        rows = rng.dirichlet(np.full(cards[f"N{at}"], 0.6), math.prod(cards[p] for p in parents))
        tables[f"N{at}"] = parents, rows.reshape(*(cards[p] for p in parents), -1)
    return fixed(tables, {name: list(range(card)) for name, card in cards.items()})


def check(shown: Mapping[str, list[float | None]], net: Any, given: Mapping[Any, Hashable]) -> None:
    """Every bar of the page is the posterior of the library, by a computation of its own."""
    for name, table in net.marginals(given).items():
        assert shown[str(name)] == pytest.approx(table.values.tolist(), rel=1e-10, abs=1e-14), (name, given)


def test_asia_by_hand(visit: Callable[..., Any]) -> None:
    net = asia()
    page = visit(net)
    check(page.shares(), net, {})
    page.row("dysp", "yes").click()
    page.row("asia", "yes").click()
    shown = page.shares()
    check(shown, net, {"dysp": "yes", "asia": "yes"})
    # P(bronc | asia, dysp) of the original paper, to the digits that a sum over all joint states gives.
    assert shown["bronc"][0] == pytest.approx(brute_force(net, "bronc", {"dysp": "yes", "asia": "yes"}), rel=1e-12)
    chance = float(page.page.locator("#verdict").get_attribute("data-probability"))
    assert chance == pytest.approx(math.exp(net.log_probability({"dysp": "yes", "asia": "yes"})), rel=1e-12)
    assert page.page.locator("#chips button").all_text_contents() == ["dysp = yes ×", "asia = yes ×"]
    assert page.page.locator("svg .node.known").count() == 2


def brute_force(net: Any, name: str, given: dict[str, str]) -> float:
    """P(name = first state | given) from the joint table."""
    joint = net.to_joint()
    index = tuple(net.states(v).index(given[v]) if v in given else slice(None) for v in joint.variables)
    left = [v for v in joint.variables if v not in given]
    rest = np.moveaxis(joint.values[index], left.index(name), 0).reshape(len(net.states(name)), -1).sum(axis=1)
    return float(rest[0] / rest.sum())


@pytest.mark.parametrize("seed", [0, 1])
def test_networks_of_the_size_of_alarm(visit: Callable[..., Any], seed: int) -> None:
    net = random_network(37, seed)
    page = visit(net)
    rng = np.random.default_rng(seed)
    row = {name: values[0] for name, values in net.sample(1, random_state=seed).items()}
    given: dict[Any, Any] = {}
    for name in rng.choice(list(net.nodes), 6, replace=False):
        given[str(name)] = int(row[str(name)])
        page.row(name, row[str(name)]).click()
        check(page.shares(), net, given)
    assert page.page.locator("#explorer").get_attribute("data-ready") == "true"


def test_private_variables_parts_and_single_states(visit: Callable[..., Any]) -> None:
    rng = np.random.default_rng(5)
    rows = {f"cause{k}": rng.choice(YES_NO, 300) for k in range(7)}
    rows |= {"effect": rng.choice(YES_NO, 300), "alone": rng.choice(["x", "y", "z"], 300), "one": np.full(300, "only")}
    edges = [(f"cause{k}", "effect") for k in range(7)]
    net = sf.BayesianNetwork(edges, states={"alone": ["x", "y", "z"], "one": ["only"]}, nodes={"effect": "noisy-or"})
    net.fit(rows)
    page = visit(net)
    check(page.shares(), net, {})
    page.row("effect", "yes").click()
    page.row("alone", "z").click()
    page.row("one", "only").click()
    check(page.shares(), net, {"effect": "yes", "alone": "z"})


def test_a_markov_network(visit: Callable[..., Any]) -> None:
    rng = np.random.default_rng(2)
    rows = {name: rng.choice(3, 400, p=rng.dirichlet([2, 2, 2])) for name in "ABCD"}
    mrf = sf.MarkovNetwork([("A", "B"), ("B", "C"), ("C", "D"), ("D", "A")], solver="ipf").fit(rows)
    page = visit(mrf)
    page.row("A", 2).click()
    page.row("C", 0).click()
    check(page.shares(), mrf, {"A": 2, "C": 0})


def test_a_state_is_changed_and_retracted(visit: Callable[..., Any]) -> None:
    net = asia()
    page = visit(net)
    before = page.shares()
    page.row("smoke", "yes").click()
    page.row("smoke", "no").click()
    check(page.shares(), net, {"smoke": "no"})
    assert page.row("smoke", "yes").get_attribute("aria-pressed") == "false"
    assert page.row("smoke", "no").get_attribute("aria-pressed") == "true"
    page.row("smoke", "no").click()
    assert page.shares() == before
    page.row("xray", "yes").click()
    page.page.locator("#chips button").click()
    assert page.shares() == before
    page.row("xray", "yes").click()
    page.row("lung", "no").click()
    page.page.get_by_role("button", name="Clear all").click()
    assert page.shares() == before
    assert page.page.get_by_role("button", name="Clear all").count() == 0


def test_impossible_evidence_is_said(visit: Callable[..., Any]) -> None:
    net = asia()
    page = visit(net)
    page.row("lung", "yes").click()
    page.row("either", "no").click()
    assert "Impossible" in page.page.locator("#verdict").inner_text()
    assert all(share is None for shares in page.shares().values() for share in shares)
    page.row("either", "no").click()
    check(page.shares(), net, {"lung": "yes"})


def test_the_keyboard_reaches_everything(visit: Callable[..., Any]) -> None:
    net = asia()
    page = visit(net)
    reached: list[str] = []
    for _ in range(60):
        page.page.keyboard.press("Tab")
        reached.append(
            page.page.evaluate(
                "(() => { const at = document.activeElement; return at.matches('button.row') ? "
                "at.closest('.card').querySelector('h3').textContent + '=' + at.querySelector('.state').textContent "
                ": at.matches('svg a') ? 'graph' : at.id || at.tagName; })()"
            )
        )
        if reached[-1] == "asia=yes":
            page.page.keyboard.press("Enter")
        if reached[-1] == "dysp=no":
            page.page.keyboard.press("Space")
            break
    assert [f"{name}={state}" for name in net.nodes for state in YES_NO] == [at for at in reached if "=" in at]
    assert reached.count("graph") == 8
    assert "filter" in reached
    check(page.shares(), net, {"asia": "yes", "dysp": "no"})
    assert page.page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    assert page.page.get_by_role("button", name="asia = yes: 100.0 %", exact=True, pressed=True).count() == 1
    lung = 100 * net.query("lung", given={"asia": "yes", "dysp": "no"}).at(lung="yes")
    assert page.page.get_by_role("button", name=f"lung = yes: {lung:.1f} %", exact=True, pressed=False).count() == 1
    live = page.page.locator("#verdict")
    assert (live.get_attribute("role"), live.get_attribute("aria-live")) == ("status", "polite")


def test_variables_are_found_by_name(visit: Callable[..., Any]) -> None:
    page = visit(asia())
    page.page.locator("#filter").fill("S")
    assert page.page.locator(".card:visible h3").all_text_contents() == ["asia", "smoke", "dysp"]


def test_names_are_text_and_never_markup(visit: Callable[..., Any]) -> None:
    nasty, worse = "<img src=x onerror=alert(1)>", "</script><script>alert('&\"')</script>"
    net = sf.BayesianNetwork([(nasty, worse)]).fit({nasty: [worse, "b", worse], worse: ["u", "v", "u"]})
    page = visit(net)
    assert page.page.locator(".card h3").all_text_contents() == [nasty, worse]
    page.row(worse, "v").click()
    check(page.shares(), net, {worse: "v"})


def test_what_is_too_large_stays_static_and_says_so(visit: Callable[..., Any]) -> None:
    small = asia()
    assert explorer_of(small.portrait()).data is not None
    refused = explorer_of(small.portrait(), most_cells=20)
    assert refused.data is None
    assert "up to 20" in refused.reason
    rng = np.random.default_rng(0)
    parents = [f"p{k}" for k in range(17)]
    rows = {name: rng.choice(2, 40) for name in [*parents, "c"]}
    large = sf.BayesianNetwork([(p, "c") for p in parents]).fit(rows)
    page = visit(large)
    assert "pages explore networks of up to 200,000" in page.page.locator("#distributions .note").inner_text()
    assert page.page.locator("button").count() == 0
    assert page.page.locator(".card").count() == 18


def test_undefined_rows_stay_static(visit: Callable[..., Any]) -> None:
    rows = {"a": [0, 0, 1], "b": [0, 1, 1], "c": [0, 1, 1]}
    net = sf.BayesianNetwork([("a", "c"), ("b", "c")], unseen="nan").fit(rows)
    page = visit(net)
    assert page.page.locator("button.row").count() == 0
    assert "undefined" in page.page.locator("#tables").inner_text() + page.page.locator("#tables").text_content()
