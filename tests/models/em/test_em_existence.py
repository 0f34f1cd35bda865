"""Whether EM of a network says that its maximum is attained, beside a log-likelihood summed over all joint states."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import suffice as sf

CHAIN = {"a": [], "b": ["a"], "c": ["b"]}
CLASSES = {"h": [], "a": ["h"], "b": ["h"], "c": ["h"]}


def log_likelihood(parents: Mapping[str, list[str]], tables: Mapping[str, Any], rows: Mapping[str, Any]) -> float:
    """The sum over rows of the log of the sum over every joint state that agrees with the row."""
    names, total = list(parents), 0.0
    cards = {name: np.shape(tables[name])[-1] for name in names}
    for at in range(len(next(iter(rows.values())))):
        mass = 0.0
        for states in itertools.product(*(range(cards[name]) for name in names)):
            state = dict(zip(names, states, strict=True))
            if all(rows[name][at] is None or rows[name][at] == state[name] for name in rows):
                mass += np.prod([tables[n][tuple(state[p] for p in (*parents[n], n))] for n in names])
        total += float(np.log(mass))
    return total


def with_gaps(n: int = 60) -> dict[str, list[Any]]:
    rng = np.random.default_rng(2)
    rows: dict[str, list[Any]] = {name: rng.integers(0, 2, n).tolist() for name in "abc"}
    rows["a"][:8] = [None] * 8
    return rows


def tables_of(net: sf.BayesianNetwork) -> dict[str, Any]:
    return {str(name): np.array(net.table(name).values) for name in net.nodes}


@pytest.mark.parametrize("options", [{"prior": 0.5}, {"prior": 2.0, "estimate": "map"}])
@pytest.mark.parametrize("hidden", [False, True])
def test_a_prior_that_outweighs_every_edge_proves_a_maximum(options: dict[str, Any], hidden: bool) -> None:
    rows = with_gaps()
    more: dict[str, Any] = {"hidden": {"h": 2}} if hidden else {}
    parents = CLASSES if hidden else CHAIN
    net = sf.BayesianNetwork(parents, states={name: [0, 1] for name in "abc"}, **more, **options).fit(rows)
    assert net.report_.certificate.exists is True
    # The objective falls without end towards the edge of each table, where the prior's weight of the cell is above 0.
    weight = options["prior"] - (1.0 if options.get("estimate") == "map" else 0.0)
    tables = tables_of(net)

    def objective(found: Mapping[str, Any]) -> float:
        return log_likelihood(parents, found, rows) + weight * sum(float(np.log(t).sum()) for t in found.values())  # type: ignore[no-any-return]

    for name, table in tables.items():
        values = []
        for small in (1e-3, 1e-30, 1e-300):
            moved = np.array(table)
            moved[..., 0], moved[..., 1] = small, 1 - small
            values.append(objective({**tables, name: moved}))
        assert objective(tables) > values[0] > values[1] > values[2]


@pytest.mark.parametrize("options", [{}, {"prior": 1.0, "estimate": "map"}, {"prior": {"b": 2.0}}])
def test_without_weight_in_every_cell_nothing_is_proved(options: dict[str, Any]) -> None:
    net = sf.BayesianNetwork(CHAIN, states={name: [0, 1] for name in "abc"}, **options).fit(with_gaps())
    assert net.report_.certificate.exists is None


def test_an_event_never_seen_in_a_family_that_all_rows_show_has_no_maximum() -> None:
    rows = with_gaps()
    rows["c"] = [0 if b == 0 else c for b, c in zip(rows["b"], rows["c"], strict=True)]
    net = sf.BayesianNetwork(CHAIN, states={name: [0, 1] for name in "abc"}).fit(rows)
    certificate = net.report_.certificate
    assert certificate.exists is False
    assert certificate.directions == ("log P(c=1 | b=0) -> -inf (never seen)",)
    tables = tables_of(net)
    values = []
    for small in (1e-1, 1e-3, 1e-6):
        moved = np.array(tables["c"])
        moved[0] = 1 - small, small
        values.append(log_likelihood(CHAIN, {**tables, "c": moved}, rows))
    assert values[0] < values[1] < values[2] < log_likelihood(CHAIN, tables, rows)


def test_a_declared_state_that_no_row_shows_has_no_maximum_below_a_hidden_node() -> None:
    rng = np.random.default_rng(3)
    rows = {name: rng.integers(0, 2, 80).tolist() for name in "abc"}
    states = {"a": [0, 1, 2], "b": [0, 1], "c": [0, 1]}
    net = sf.BayesianNetwork(CLASSES, states=states, hidden={"h": 2}, tolerance=1e-4).fit(rows)
    assert net.report_.certificate.exists is False
    assert net.report_.certificate.directions == ("log P(a=2 | ...) -> -inf (never seen)",)
    tables = tables_of(net)
    best = log_likelihood(CLASSES, tables, rows)
    for small in (1e-2, 1e-4):
        moved = np.array(tables["a"])
        moved[0] = np.append(moved[0, :2] * (1 - small), small)
        assert log_likelihood(CLASSES, {**tables, "a": moved}, rows) < best


def test_a_state_that_no_row_shows_may_stand_for_a_gap() -> None:
    rows = with_gaps()
    states = {"a": [0, 1, 2], "b": [0, 1], "c": [0, 1]}
    net = sf.BayesianNetwork(CHAIN, states=states).fit(rows)
    assert net.report_.certificate.exists is not True


def leaf_with_gaps(seed: int) -> dict[str, list[Any]]:
    """Rows of a, b in which b has gaps, and b=1 never goes with a=1."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, 60)
    b = np.where(a == 1, 0, rng.integers(0, 2, 60)).tolist()
    return {"a": a.tolist(), "b": [*b[:-5], *[None] * 5]}


@pytest.mark.parametrize("seed", range(3))
def test_gaps_in_a_leaf_do_not_hide_an_event_that_was_never_seen(seed: int) -> None:
    rows, parents = leaf_with_gaps(seed), {"a": [], "b": ["a"]}
    net = sf.BayesianNetwork(parents, states={"a": [0, 1], "b": [0, 1]}).fit(rows)
    found = net.report_.certificate
    assert found.exists is False
    assert found.directions == ("log P(b=1 | a=1) -> -inf (never seen)",)
    tables, values = tables_of(net), []
    for small in (1e-2, 1e-4, 1e-8, 0.0):  # The likelihood rises all the way to the edge.
        tables["b"][1] = 1 - small, small
        values.append(log_likelihood(parents, tables, rows))
    assert values == sorted(values)


def test_gaps_of_a_parent_or_of_a_node_with_children_leave_it_open() -> None:
    rows = leaf_with_gaps(0)
    net = sf.BayesianNetwork({"a": [], "b": ["a"]}, states={"a": [0, 1], "b": [0, 1]})
    hidden_parent = {"a": [None, *rows["a"][1:]], "b": rows["b"]}
    assert net.fit(hidden_parent).report_.certificate.exists is None
    shown = np.random.default_rng(1).integers(0, 2, 60).tolist()
    chain = sf.BayesianNetwork({"a": [], "b": ["a"], "c": ["b"]}, states={name: [0, 1] for name in "abc"})
    assert chain.fit({**rows, "c": shown}).report_.certificate.exists is None
    prior = sf.BayesianNetwork({"a": [], "b": ["a"]}, states={"a": [0, 1], "b": [0, 1]}, prior=1.0)
    assert prior.fit(rows).report_.certificate.exists is True
