"""Tables with constraints: against isotonic regression of scikit-learn, linear programs and generic optimisers."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize
from scipy.special import xlogy

import suffice as sf
from suffice.models.bayesian.nodes.table_optimality import optimality
from suffice.models.bayesian.nodes.table_region import TableLimits, TableRegion

Floats = NDArray[np.float64]


def drawn(cards: list[int], card: int, n: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {f"x{k}": rng.integers(0, c, n) for k, c in enumerate(cards)} | {"y": rng.integers(0, card, n)}


def network(cards: list[int], card: int, kind: Any, **options: Any) -> sf.BayesianNetwork:
    states: dict[Any, Any] = {f"x{k}": list(range(c)) for k, c in enumerate(cards)} | {"y": list(range(card))}
    return sf.BayesianNetwork({"y": [f"x{k}" for k in range(len(cards))]}, states=states, nodes={"y": kind}, **options)


def inequalities(cards: list[int], card: int, signs: dict[int, int]) -> Floats:
    """Rows whose products with the table (..., card), flat, are at least 0: the tails along each arc, written out."""
    shape = (*cards, card)
    rows: list[Floats] = []
    for axis, sign in signs.items():
        for place in itertools.product(*map(range, cards)):
            if place[axis] + 1 == cards[axis]:
                continue
            after = tuple(code + (k == axis) for k, code in enumerate(place))
            for level in range(1, card):
                row = np.zeros(shape)
                row[after][level:] = sign
                row[place][level:] = -sign
                rows.append(row.ravel())
    return np.array(rows).reshape(len(rows), math.prod(shape))


def counted(rows: dict[str, Any], cards: list[int], card: int) -> Floats:
    counts = np.zeros((*cards, card))
    np.add.at(counts, tuple(rows.values()), 1.0)
    return counts


def linear_gap(table: Floats, counts: Floats, cuts: Floats, low: Floats, high: Floats) -> float:
    """The most that a concave likelihood can still rise: its slope over all tables that keep the constraints."""
    # In units of the probabilities, so that slopes are counts.
    p = np.maximum(table.ravel(), 1e-9)
    sums = np.kron(np.eye(table.size // table.shape[-1]), np.ones(table.shape[-1]))
    cost = np.where(counts.ravel() > 0, counts.ravel() * p / np.maximum(table.ravel(), 1e-300), 0.0)
    found: Any = linprog(
        -cost,
        A_ub=-cuts * p if len(cuts) else None,
        b_ub=np.zeros(len(cuts)) if len(cuts) else None,
        A_eq=sums * p,
        b_eq=np.ones(len(sums)),
        bounds=list(zip(low.ravel() / p, high.ravel() / p, strict=True)),
    )
    assert found.status == 0
    return float(-found.fun - counts.sum())


# -- complete rows ---------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(2, 8), st.sampled_from(["+", "-"]), st.booleans())
def test_two_states_are_isotonic_regression(seed: int, card: int, sign: Any, bounded: bool) -> None:
    ends = (0.2, 0.7) if bounded else (0.0, 1.0)
    regression = pytest.importorskip("sklearn.isotonic").IsotonicRegression
    rows = drawn([card], 2, 60, seed)
    rows["x0"] = np.concatenate([rows["x0"], np.arange(card)])
    rows["y"] = np.concatenate([rows["y"], np.arange(card) % 2])
    net = network([card], 2, sf.ConstrainedTable({"x0": sf.Monotone(sign)}, bounds={1: ends})).fit(rows)
    model = regression(increasing=sign == "+", y_min=ends[0], y_max=ends[1])
    counts = counted(rows, [card], 2)
    total = counts.sum(axis=1)
    expected = model.fit_transform(np.arange(card), counts[:, 1] / total, sample_weight=total)
    np.testing.assert_allclose(net.table("y").values[:, 1], expected, atol=1e-12)
    assert net.report_.certificate.value_gap == pytest.approx(0.0, abs=1e-10)
    assert net.report_.certificate.moment_gap < 1e-9


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.booleans())
def test_no_feasible_direction_leads_up(seed: int, bounded: bool) -> None:
    """By a linear program over all tables that keep the constraints, which are written out here."""
    rng = np.random.default_rng(seed)
    cards, card = rng.integers(2, 4, rng.integers(1, 4)).tolist(), int(rng.integers(2, 5))
    rows = drawn(cards, card, 80, seed)
    signs = {axis: int(rng.choice([-1, 1])) for axis in range(len(cards)) if rng.random() < 0.7}
    arcs: dict[str, Any] = {f"x{axis}": sf.Monotone("+" if sign > 0 else "-") for axis, sign in signs.items()}
    low, high = np.zeros((*cards, card)), np.ones((*cards, card))
    bounds: Any = None
    if bounded or not arcs:
        low[..., 0], high[..., 0] = 0.1, 0.4
        bounds = (low, high)
    net = network(cards, card, sf.ConstrainedTable(arcs, bounds=bounds)).fit(rows)
    table, counts, cuts = net.table("y").values, counted(rows, cards, card), inequalities(cards, card, signs)
    assert (cuts @ table.ravel()).min(initial=0.0) > -1e-12
    assert (table >= low - 1e-12).all()
    assert (table <= high + 1e-12).all()
    # Where counts are 0 and the table is as well, the slope is taken as 0: such cells gain nothing.
    assert linear_gap(table, counts, cuts, low, high) < 1e-5
    loss = net.node("y").loss_bound(net.statistics_)
    assert loss is not None
    assert loss < 1e-8
    assert net.report_.certificate.moment_gap < 1e-6


def test_the_maximum_is_that_of_a_generic_optimiser() -> None:
    cards, card = [3, 2], 3
    rows = drawn(cards, card, 70, 11)
    kind = sf.ConstrainedTable({"x0": sf.Monotone("+"), "x1": sf.Monotone("-")}, bounds={2: (0.15, None)})
    net = network(cards, card, kind).fit(rows)
    counts, cuts = counted(rows, cards, card).ravel(), inequalities(cards, card, {0: 1, 1: -1})
    sums = np.kron(np.eye(6), np.ones(3))
    limits: Any = [(0.15 if k % 3 == 2 else 1e-9, 1.0) for k in range(18)]
    constraints: Any = [
        {"type": "eq", "fun": lambda p: sums @ p - 1, "jac": lambda _: sums},
        {"type": "ineq", "fun": lambda p: cuts @ p, "jac": lambda _: cuts},
    ]
    solve: Any = minimize
    found = solve(
        lambda p: -xlogy(counts, p).sum(),
        np.full(18, 1 / 3),
        jac=lambda p: -counts / p,
        method="SLSQP",
        bounds=limits,
        constraints=constraints,
        options={"ftol": 1e-13, "maxiter": 2000},
    )
    reached = float(xlogy(counts, net.table("y").values.ravel()).sum())
    assert -float(found.fun) - 1e-7 <= reached <= -float(found.fun) + 1e-6
    np.testing.assert_allclose(net.table("y").values.ravel(), found.x, atol=1e-4)


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_the_bound_holds_at_any_table(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cards, card = (3, 2, 3), 3
    lower, upper = np.zeros((6, 3)), np.ones((6, 3))
    lower[:, 0] = 0.05
    region = TableRegion(cards, TableLimits(((0, 1, 2), None), (0, 1, 2), lower, upper))
    counts = rng.integers(0, 9, (6, 3)).astype(float)
    best, rested = region.most_likely(counts, np.full(card, 1 / 3))
    assert rested
    value = float(xlogy(counts, best).sum())
    inside = np.zeros((6, 3))
    for block in region.blocks:
        region.unpacked(block.polytopes.inside, block.rows, inside)
    for share in (1e-9, 1e-6, 1e-3, 0.1, 1.0):
        away = (1 - share) * best + share * inside
        _, loss = optimality(region, away, counts)
        assert loss is not None
        assert float(xlogy(counts, away).sum()) + loss >= value - 1e-12 * abs(value)
    outside = np.tile([0.01, 0.0, 0.99], (6, 1))
    assert optimality(region, outside, counts)[1] is None


def test_constraints_that_do_not_bind_change_nothing() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, 3000)
    shares = np.array([[0.7, 0.2, 0.1], [0.4, 0.3, 0.3], [0.1, 0.3, 0.6]])
    rows: dict[str, Any] = {"x0": x, "y": (rng.random(3000)[:, None] > np.cumsum(shares[x], axis=1)).sum(axis=1)}
    plain = network([3], 3, "table").fit(rows)
    net = network([3], 3, sf.ConstrainedTable({"x0": sf.Monotone("+")}, bounds=(0.01, 0.95))).fit(rows)
    np.testing.assert_array_equal(net.table("y").values, plain.table("y").values)
    np.testing.assert_allclose(net.standard_errors_["y"].values, plain.standard_errors_["y"].values, rtol=1e-9)
    assert net.n_params_ == plain.n_params_ == 8
    mine, theirs = (one.query("y", given={"x0": [0.5, 0.3, 0.2]}).standard_errors for one in (net, plain))
    np.testing.assert_allclose(mine.values, theirs.values, rtol=1e-5)
    for prior, estimate in ((0.7, None), (2.5, "map")):
        options: dict[str, Any] = {"prior": prior, "estimate": estimate}
        smooth = network([3], 3, sf.ConstrainedTable({"x0": "+"}), **options).fit(rows)
        assert smooth.node("y").estimate == "map"
        expected = network([3], 3, "table", **options).fit(rows).table("y").values
        np.testing.assert_allclose(smooth.table("y").values, expected, rtol=1e-13)


def test_rows_that_are_pooled_have_the_error_of_the_pool() -> None:
    rows: dict[str, Any] = {
        "x0": [0] * 10 + [1] * 30 + [2] * 20,
        "y": [1] * 6 + [0] * 4 + [1] * 9 + [0] * 21 + [1] * 15 + [0] * 5,
    }
    net = network([3], 2, sf.ConstrainedTable({"x0": sf.Monotone("+")})).fit(rows)
    np.testing.assert_allclose(net.table("y").values[:, 1], [15 / 40, 15 / 40, 0.75], rtol=1e-12)
    errors = net.standard_errors_["y"].values[:, 1]
    pool = math.sqrt(0.375 * 0.625 / 40)
    np.testing.assert_allclose(errors, [pool, pool, math.sqrt(0.75 * 0.25 / 20)], rtol=1e-9)
    assert net.report_.method.endswith("isotonic regression for 'y'")
    answer = net.query("y", given={"x0": 1})
    np.testing.assert_allclose(answer.standard_errors.values, [pool, pool], rtol=1e-6)


def test_names_orders_and_directions_are_read_as_they_are_meant() -> None:
    rows = drawn([3], 3, 80, 5)
    plain = network([3], 3, sf.ConstrainedTable({"x0": sf.Monotone("+")})).fit(rows)
    doses: list[Any] = ["none", "low", "high"]
    ends: list[Any] = ["well", "ill", "dead"]
    named: dict[str, Any] = {"x0": np.array(doses)[rows["x0"]], "y": np.array(ends)[rows["y"]]}
    kind = sf.ConstrainedTable({"x0": sf.Monotone("+", order=["none", "low", "high"])}, order=["well", "ill", "dead"])
    turned = sf.ConstrainedTable({"x0": sf.Monotone("-", order=["high", "low", "none"])}, order=["well", "ill", "dead"])
    falling = sf.ConstrainedTable(
        {"x0": sf.Monotone("-", order=["none", "low", "high"])}, order=["dead", "ill", "well"]
    )
    for one in (kind, turned, falling):
        net = sf.BayesianNetwork({"y": ["x0"]}, nodes={"y": one}).fit(named)
        for dose, end in itertools.product(range(3), range(3)):
            mine = net.table("y").at(x0=doses[dose], y=ends[end])
            assert mine == pytest.approx(plain.table("y").at(x0=dose, y=end), abs=1e-9)
        assert net.report_.log_likelihood == pytest.approx(plain.report_.log_likelihood, rel=1e-11)


def test_bounds_that_are_equations_take_parameters() -> None:
    rows = drawn([2], 3, 90, 2)
    low = np.array([[0.25, 0.0, 0.0], [0.0, 0.1, 0.0]])
    high = np.array([[0.25, 1.0, 1.0], [1.0, 0.1, 0.0]])
    net = network([2], 3, sf.ConstrainedTable(bounds=(low, high)))
    with pytest.raises(sf.EstimateError, match=r"'y' cannot be learned.*probability 0 that occurs.*Widen bounds="):
        net.fit(rows)
    rows["y"] = np.where((rows["x0"] == 1) & (rows["y"] == 2), 0, rows["y"])
    net.fit(rows)
    assert net.n_params_ == 1 + 1 + 0
    np.testing.assert_allclose(net.table("y").values[1], [0.9, 0.1, 0.0], atol=1e-12)
    counts = counted(rows, [2], 3)[0]
    np.testing.assert_allclose(net.table("y").values[0, 1:], 0.75 * counts[1:] / counts[1:].sum(), rtol=1e-9)
    by_table = sf.Table(net.node("y").domain, low), sf.Table(net.node("y").domain, high)
    again = network([2], 3, sf.ConstrainedTable(bounds=by_table)).fit(rows)
    np.testing.assert_array_equal(again.table("y").values, net.table("y").values)


def test_rows_that_never_occur_are_as_near_to_uniform_as_their_neighbours_allow() -> None:
    rows: dict[str, Any] = {"x0": [0] * 10 + [2] * 10, "y": [2] * 4 + [1] * 4 + [0] * 2 + [2] * 6 + [1] * 3 + [0] * 1}
    net = network([4], 3, sf.ConstrainedTable({"x0": sf.Monotone("+")})).fit(rows)
    table = net.table("y").values
    np.testing.assert_allclose(table[0], [0.2, 0.4, 0.4], atol=1e-12)
    np.testing.assert_allclose(table[2], [0.1, 0.3, 0.6], atol=1e-12)
    # P(y >= 1) is at least 0.8 and P(y = 2) at least 0.4, where uniform ones would be 2/3 and 1/3.
    np.testing.assert_allclose(table[1], [0.2, 0.4, 0.4], atol=1e-12)
    np.testing.assert_allclose(table[3], [0.1, 0.3, 0.6], atol=1e-12)
    assert any("2 parent configurations of 'y' never occur" in text for text in net.report_.warnings)
    assert np.isinf(net.standard_errors_["y"].values[[1, 3]]).all()
    with pytest.raises(sf.EstimateError, match="2 parent configurations of 'y' never occur"):
        network([4], 3, sf.ConstrainedTable({"x0": "+"}), unseen="raise").fit(rows)
    with pytest.raises(sf.OptionError, match=r"unseen='nan'.*between others"):
        network([4], 3, sf.ConstrainedTable({"x0": "+"}), unseen="nan").fit(rows)


def test_an_event_that_never_occurs_has_no_maximum_of_its_logarithm() -> None:
    rows: dict[str, Any] = {"x0": [0, 0, 0, 1, 1, 1], "y": [0, 0, 0, 0, 1, 1]}
    found = network([2], 2, sf.ConstrainedTable({"x0": "+"})).fit(rows).report_.certificate
    assert found.exists is False
    assert found.directions == ("log P(y=1 | x0=0) -> -inf (never seen)",)
    held = network([2], 2, sf.ConstrainedTable({"x0": "+"}, bounds={1: (0.1, 0.9)})).fit(rows)
    assert held.report_.certificate.exists is True
    np.testing.assert_allclose(held.table("y").values[:, 1], [0.1, 2 / 3], rtol=1e-12)


def test_rows_join_and_leave_and_weights_are_repetitions() -> None:
    rows, more = drawn([3, 2], 3, 100, 1), drawn([3, 2], 3, 40, 2)
    kind = sf.ConstrainedTable({"x0": sf.Monotone("+")})
    net = network([3, 2], 3, kind).fit(rows)
    both = network([3, 2], 3, kind).fit({name: np.concatenate([rows[name], more[name]]) for name in rows})
    joined = net.clone().fit(rows).partial_fit(more)
    np.testing.assert_array_equal(joined.table("y").values, both.table("y").values)
    np.testing.assert_array_equal(both.unlearn(more).table("y").values, net.table("y").values)
    times = np.random.default_rng(0).integers(1, 4, 100)
    weighted = network([3, 2], 3, kind).fit(rows, sample_weight=times.astype(float))
    repeated = network([3, 2], 3, kind).fit({name: np.repeat(column, times) for name, column in rows.items()})
    np.testing.assert_allclose(weighted.table("y").values, repeated.table("y").values, rtol=1e-12)
    shuffled = np.random.default_rng(1).permutation(100)
    again = network([3, 2], 3, kind).fit({name: column[shuffled] for name, column in rows.items()})
    np.testing.assert_array_equal(again.table("y").values, net.table("y").values)


# -- missing values --------------------------------------------------------------------------------------------------


def holed(rows: dict[str, Any], share: float, seed: int) -> dict[str, Any]:
    rng, nothing = np.random.default_rng(seed), None
    holes: Any = nothing
    return {name: np.where(rng.random(len(column)) < share, holes, column) for name, column in rows.items()}


@pytest.mark.parametrize("card", [2, 3])
def test_missing_values_give_the_maximum_of_the_observed_likelihood(card: int) -> None:
    rows = holed(drawn([3], card, 120, 4), 0.25, 0)
    kind = sf.ConstrainedTable({"x0": sf.Monotone("+")}, bounds={0: (0.1, None)})
    net = network([3], card, kind, tolerance=1e-11, max_iter=5000).fit(rows)
    counts: dict[tuple[Any, ...], int] = {}
    for row in zip(*rows.values(), strict=True):
        counts[row] = counts.get(row, 0) + 1

    def loss(v: Floats) -> float:
        joint = v[:3, None] * v[3:].reshape(3, card)
        pairs = ((tuple(slice(None) if s is None else int(s) for s in row), n) for row, n in counts.items())
        return -float(sum(n * np.log(joint[place].sum()) for place, n in pairs))

    sums = np.zeros((4, 3 + 3 * card))
    sums[0, :3] = 1.0
    sums[1:, 3:] = np.kron(np.eye(3), np.ones(card))
    cuts = np.concatenate([np.zeros((2 * (card - 1), 3)), inequalities([3], card, {0: 1})], axis=1)
    constraints: Any = [
        {"type": "eq", "fun": lambda v: sums @ v - 1},
        {"type": "ineq", "fun": lambda v: cuts @ v},
    ]
    limits: Any = [(1e-6, 1.0)] * 3 + [(0.1 if k % card == 0 else 1e-6, 1.0) for k in range(3 * card)]
    start: Any = np.concatenate([np.full(3, 1 / 3), np.full(3 * card, 1 / card)])
    options: Any = {"ftol": 1e-14, "maxiter": 2000}
    found = minimize(loss, start, method="SLSQP", bounds=limits, constraints=constraints, options=options)
    assert net.converged_
    assert net.report_.log_likelihood == pytest.approx(-float(found.fun), abs=1e-6)
    np.testing.assert_allclose(net.table("y").values.ravel(), found.x[3:], atol=1e-4)
    assert (inequalities([3], card, {0: 1}) @ net.table("y").values.ravel() > -1e-12).all()
    assert np.diff(net.history_).min() > -1e-9
    assert net.report_.certificate.moment_gap < 1e-4
    errors = net.standard_errors_["y"].values
    whole = network([3], card, kind).fit({name: [v or 0 for v in column] for name, column in rows.items()})
    assert np.isfinite(errors).all()
    assert np.isfinite(whole.standard_errors_["y"].values).all()


def test_a_hidden_parent_keeps_its_direction() -> None:
    rng = np.random.default_rng(3)
    h = rng.integers(0, 3, 400)
    rows: dict[str, Any] = {name: (rng.random(400) < (0.15 + 0.3 * h)).astype(int) for name in ("a", "b", "c")}
    children: dict[Any, Any] = {name: sf.ConstrainedTable({"h": sf.Monotone("+")}) for name in rows}
    net = sf.BayesianNetwork(
        [("h", name) for name in rows], hidden={"h": 3}, nodes=children, prior=1.0, tolerance=1e-4, random_state=0
    ).fit(rows)
    for name in rows:
        assert (np.diff(net.table(name).values[:, 1]) > -1e-12).all()
    assert net.report_.log_likelihood == pytest.approx(net.score_samples(rows).sum(), rel=1e-12)


def test_rows_that_a_random_start_would_pool_do_not_stay_alike() -> None:
    """Counts at random break the order, and pooled rows of a hidden parent would never be told apart again."""
    rng = np.random.default_rng(3)
    h = rng.integers(0, 3, 1000)
    rows: dict[str, Any] = {name: (rng.random(1000) < 0.15 + 0.3 * h).astype(int) for name in "abcd"}
    kinds: dict[Any, Any] = {name: sf.ConstrainedTable({"h": sf.Monotone("+")}) for name in rows}
    options: dict[str, Any] = {"hidden": {"h": 3}, "nodes": kinds, "tolerance": 1e-3, "acceleration": "squarem"}
    edges = [("h", name) for name in rows]
    fits = [sf.BayesianNetwork(edges, n_init=1, random_state=seed, **options).fit(rows) for seed in range(4)]
    values = [net.report_.log_likelihood for net in fits]
    assert max(values) - min(values) < 0.5
    assert not any("symmetric" in text for net in fits for text in net.report_.warnings)


def test_early_families_of_networks_through_time_keep_what_holds_for_their_parents() -> None:
    """Options name parents as the structure does; in the first slices those that are not there fall away."""
    rng = np.random.default_rng(0)
    rows: dict[str, Any] = {"p": np.repeat(np.arange(30), 10), "t": np.tile(np.arange(10), 30)}
    rows |= {"w": rng.integers(0, 3, 300), "u": rng.integers(0, 2, 300), "v": rng.integers(0, 2, 300)}
    kinds: dict[Any, Any] = {
        "u": sf.ConstrainedTable({"w": sf.Monotone("+"), ("u", -1): sf.Monotone("+")}),
        "v": sf.ConstrainedTable({("v", -1): "+"}),
        "w": sf.NoisyMax(inactive={("w", -1): 1}),
    }
    edges: list[Any] = [("w", "u"), (("u", -1), "u"), (("w", -1), "w"), (("v", -1), "v")]
    net = sf.DynamicBayesianNetwork(edges, nodes=kinds).fit(rows, group="p", time="t")
    first = {name: column[rows["t"] == 0] for name, column in rows.items()}
    alone = sf.BayesianNetwork([("w", "u")], nodes={"u": sf.ConstrainedTable({"w": "+"})}).fit(
        {name: first[name] for name in ("w", "u")}
    )
    np.testing.assert_array_equal(net.node(("u", 0)).rows, alone.node("u").rows)
    assert [net.node((name, 0)).kind for name in "uvw"] == ["constrained-table", "table", "noisy-max"]
    assert net.node("w").inactive == (1,)
    tails = net.node("u").table_.values[..., 1]
    assert (np.diff(tails, axis=0) >= 0).all()
    assert (np.diff(tails, axis=1) >= 0).all()
    with pytest.raises(sf.OptionError, match="names arcs from 'v'; expected some of its parents 'w'"):
        sf.DynamicBayesianNetwork(
            [("w", "u"), (("w", -1), "w")], nodes={"u": sf.ConstrainedTable({"v": "+", "w": "+"})}
        ).fit({name: rows[name] for name in ("p", "t", "u", "w")}, group="p", time="t")


# -- files and options -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["json", "suffice"])
def test_files_keep_every_bit(tmp_path: Path, ending: str) -> None:
    rows = drawn([3, 2], 3, 100, 1)
    bounds: Any = {2: (0.1, np.full((3, 2), 0.8))}
    kind = sf.ConstrainedTable({"x0": sf.Monotone("-", order=[2, 0, 1])}, bounds=bounds, order=[1, 0, 2])
    net = network([3, 2], 3, kind).fit(rows)
    net.write(tmp_path / f"net.{ending}")
    back = sf.read(tmp_path / f"net.{ending}")
    np.testing.assert_array_equal(back.table("y").values, net.table("y").values)
    assert back.n_params_ == net.n_params_
    assert back.fit(net.statistics_).report_.log_likelihood == net.report_.log_likelihood
    plain = net.node("y").to_dict()
    for change in ({"order": (0, 1)}, {"arcs": (None,)}, {"lower": np.full((6, 3), 0.3)}, {"upper": np.zeros(3)}):
        with pytest.raises(sf.FileFormatError, match="constraints that do not fit"):
            type(net.node("y")).from_dict({**plain, **change})


def test_a_fixed_table_must_keep_its_constraints() -> None:
    rows = drawn([2], 2, 20, 0)
    kind = sf.ConstrainedTable({"x0": sf.Monotone("+")})
    net = network([2], 2, kind, fixed={"y": [[0.7, 0.3], [0.4, 0.6]]}).fit(rows)
    assert net.table("y").values.tolist() == [[0.7, 0.3], [0.4, 0.6]]
    again = network([2], 2, kind, fixed={"y": net.node("y")}).fit(rows)
    assert again.table("y").values.tolist() == net.table("y").values.tolist()
    with pytest.raises(sf.OptionError, match=r"fixed\['y'\] does not keep its constraints.*by 0\.3"):
        network([2], 2, kind, fixed={"y": [[0.4, 0.6], [0.7, 0.3]]}).fit(rows)


def test_tied_tables_share_their_constraints() -> None:
    rng = np.random.default_rng(0)
    rows: dict[str, Any] = {name: rng.integers(0, 2, 60) for name in ("a", "b", "c", "d")}
    kinds: dict[Any, Any] = {name: sf.ConstrainedTable({parent: "+"}) for name, parent in (("b", "a"), ("d", "c"))}
    net = sf.BayesianNetwork([("a", "b"), ("c", "d")], nodes=kinds, tied=[("b", "d")]).fit(rows)
    both = {"x0": np.concatenate([rows["a"], rows["c"]]), "y": np.concatenate([rows["b"], rows["d"]])}
    pooled = network([2], 2, sf.ConstrainedTable({"x0": "+"})).fit(both)
    np.testing.assert_allclose(net.table("d").values, pooled.table("y").values, rtol=1e-12)
    kinds["d"] = sf.ConstrainedTable({"c": "-"})
    with pytest.raises(sf.OptionError, match="are tied and have different kinds, options or priors"):
        sf.BayesianNetwork([("a", "b"), ("c", "d")], nodes=kinds, tied=[("b", "d")]).fit(rows)


def test_what_does_not_fit_is_refused() -> None:
    rows = drawn([2], 2, 20, 0)

    def fitted(kind: Any, data: Any = None, **options: Any) -> None:
        sf.BayesianNetwork({"y": ["x0"]}, nodes={"y": kind}, **options).fit(rows if data is None else data)

    words = {"x0": ["low", "mid", "high", "low"], "y": [0, 1, 1, 0]}
    with pytest.raises(sf.OptionError, match=r"in which order the states of 'x0' are.*Monotone\('\+', order="):
        fitted(sf.ConstrainedTable({"x0": sf.Monotone("+")}), words)
    with pytest.raises(sf.OptionError, match="in which order the states of 'y' are"):
        fitted(sf.ConstrainedTable({"x0": "+"}), {"x0": words["y"], "y": words["x0"]})
    with pytest.raises(sf.OptionError, match="has the real parents 'x0'"):
        fitted(sf.ConstrainedTable({"x0": "+"}), {"x0": [0.5, 1.5, 2.5], "y": [0, 1, 1]})
    with pytest.raises(sf.OptionError, match="names arcs from 'z'; expected some of its parents 'x0'"):
        fitted(sf.ConstrainedTable({"z": "+"}))
    with pytest.raises(sf.OptionError, match="has no constraint"):
        fitted("constrained-table")
    with pytest.raises(sf.OptionError, match="Monotone takes"):
        sf.Monotone("up")  # type: ignore[arg-type]
    with pytest.raises(sf.OptionError, match="The arc from 'x0' is 1; expected Monotone"):
        sf.ConstrainedTable({"x0": 1})
    with pytest.raises(sf.OptionError, match=r"expected \(lower, upper\), or a dict by state"):
        sf.ConstrainedTable(bounds=0.5)
    with pytest.raises(sf.OptionError, match=r"bounds of 'y' at 1 are 1\.5; expected a number from 0 to 1"):
        fitted(sf.ConstrainedTable(bounds={1: (0.1, 1.5)}))
    with pytest.raises(sf.OptionError, match=r"bounds of 'y' at \{'x0': 0\} leave no distribution: lower 0\.6, 0\.6"):
        fitted(sf.ConstrainedTable(bounds=(0.6, None)))
    against = np.array([[0.0, 0.7], [0.0, 0.0]]), np.array([[1.0, 1.0], [1.0, 0.4]])
    with pytest.raises(sf.OptionError, match="No table of 'y' keeps its constraints: the bounds contradict"):
        fitted(sf.ConstrainedTable({"x0": "+"}, bounds=against))
    with pytest.raises(sf.OptionError, match=r"estimate='mean'.*has no closed form"):
        fitted(sf.ConstrainedTable({"x0": "+"}), prior=1.0, estimate="mean")
    with pytest.raises(sf.EstimateError, match="has no single mode"):
        fitted(sf.ConstrainedTable({"x0": "+"}), {"x0": [0, 1], "y": [0, 1]}, prior=0.5, estimate="map")
    wide: dict[str, Any] = {"x0": list(range(40)) * 2, "x1": list(range(40)) * 2, "y": [0, 1] * 40}
    kind = sf.ConstrainedTable({"x0": "+", "x1": "+"})
    with pytest.raises(sf.SizeError, match=r"tie 3,200 probabilities of 'y' to each other; the limit is 2,048"):
        sf.BayesianNetwork({"y": ["x0", "x1"]}, nodes={"y": kind}).fit(wide)
    net = network([2], 2, sf.ConstrainedTable({"x0": "+"}), prior=1.0).fit(rows)
    with pytest.raises(sf.EstimateError, match="its posterior has no closed form"):
        _ = net.node("y").posterior_
