"""Noisy-MAX nodes: against products of cumulative distributions, a generic optimiser, whole tables and pyAgrum."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

import suffice as sf
from suffice.domain import Domain
from suffice.models.bayesian.nodes import noisy_max_chain
from suffice.models.bayesian.nodes.noisy_max import NoisyMaxNode
from suffice.models.bayesian.nodes.noisy_max_chain import Auxiliary

Floats = NDArray[np.float64]
LEVELS = ["none", "mild", "severe"]


def cdf_product(shares: list[Floats]) -> Floats:
    """P(the largest of independent draws), whose distributions (..., r) are broadcast."""
    below = np.ones(1)
    for one in shares:
        below = below * np.cumsum(one, axis=-1)
    return np.diff(below, axis=-1, prepend=0.0)


def rows_of(cards: list[int], n: int, seed: int, r: int = 3) -> tuple[dict[str, Any], list[Floats], Floats]:
    """Rows, and what each parent (card, r) and the leak (r,) bring about; the first state of a parent nothing."""
    rng = np.random.default_rng(seed)
    effects = [rng.dirichlet(np.ones(r), card) for card in cards]
    for effect in effects:
        effect[0] = np.eye(r)[0]
    leak = rng.dirichlet([6.0] + [1.0] * (r - 1))
    x = [rng.integers(0, card, n) for card in cards]
    y = (rng.random(n)[:, None] > np.cumsum(leak)).sum(axis=1)
    for column, effect in zip(x, effects, strict=True):
        y = np.maximum(y, (rng.random(n)[:, None] > np.cumsum(effect[column], axis=1)).sum(axis=1))
    return {f"x{k}": column for k, column in enumerate(x)} | {"y": np.minimum(y, r - 1)}, effects, leak


def network(cards: list[int], r: int = 3, kind: Any = "noisy-max", **options: Any) -> sf.BayesianNetwork:
    states: dict[Any, Any] = {f"x{k}": list(range(card)) for k, card in enumerate(cards)} | {"y": list(range(r))}
    return sf.BayesianNetwork({"y": [f"x{k}" for k in range(len(cards))]}, states=states, nodes={"y": kind}, **options)


def optimised(rows: dict[str, Any], cards: list[int], r: int, pseudo: float = 0.0) -> float:
    """The best log-likelihood, with pseudo-rows, of softmax distributions of every cause; by a generic optimiser."""
    sizes = [1, *(card - 1 for card in cards)]
    rest = np.where(np.arange(r) == 0, 0.0, -np.inf)

    def loss(v: Floats) -> float:
        logs = log_softmax(v.reshape(-1, r), axis=1)
        leak, *others = np.split(logs, np.cumsum(sizes)[:-1])
        total = np.tile(np.logaddexp.accumulate(leak[0]), (len(rows["y"]), 1))
        for k, other in enumerate(others):
            effect = np.concatenate([rest[None], other])
            total = total + np.logaddexp.accumulate(effect, axis=1)[rows[f"x{k}"]]
        shares = np.diff(np.exp(total), axis=1, prepend=0.0)
        with np.errstate(divide="ignore"):
            value = np.log(np.maximum(shares[np.arange(len(total)), rows["y"]], 1e-300)).sum()
        return -float(value + pseudo * logs.sum())

    start: Any = np.tile(np.linspace(1.0, 0.0, r), sum(sizes))
    options: Any = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 20_000, "maxfun": 10**6}
    return -float(minimize(loss, start, method="L-BFGS-B", options=options).fun)


@pytest.mark.parametrize(("seed", "cards", "r", "pseudo"), [(0, [2], 3, 0.0), (1, [2, 3], 3, 0.5), (2, [3, 2], 4, 1.0)])
def test_the_maximum_is_that_of_a_generic_optimiser(seed: int, cards: list[int], r: int, pseudo: float) -> None:
    rows, _, _ = rows_of(cards, 400, seed, r)
    net = network(cards, r, prior={"y": pseudo} if pseudo else None).fit(rows)
    node = net.node("y")
    best = optimised(rows, cards, r, pseudo)
    reached = float(node.log_prob({name: np.asarray(column) for name, column in rows.items()}).sum())
    shares = [node.leak_, *(s for states in node.causes_.values() for state, s in states.items() if state != 0)]
    reached += pseudo * float(sum(np.log(list(one.values())).sum() for one in shares)) if pseudo else 0.0
    assert best - 1e-8 * abs(best) <= reached <= best + 1e-5 * abs(best)
    assert net.report_.certificate.value_gap == pytest.approx(0.0, abs=1e-11)
    assert net.report_.certificate.moment_gap < 1e-9
    assert net.n_params_ == sum(card - 1 for card in cards) + (r - 1) * (1 + sum(card - 1 for card in cards))


def test_the_table_is_the_product_of_cumulative_distributions() -> None:
    rng = np.random.default_rng(5)
    cards, r = [2, 3, 2], 4
    effects = [rng.dirichlet(np.ones(r), card) for card in cards]
    for effect, rest in zip(effects, (0, 2, 0), strict=True):
        effect[rest] = np.eye(r)[0]
    leak = rng.dirichlet(np.ones(r))
    causes = {f"x{k}": {s: row.tolist() for s, row in enumerate(effect)} for k, effect in enumerate(effects)}
    net = network(
        cards,
        r,
        sf.NoisyMax(inactive={"x1": 2}),
        fixed={"y": {"leak": dict(enumerate(leak.tolist())), "causes": causes}},
    ).fit(rows_of(cards, 30, 0, r)[0])
    expected = np.stack(
        [
            cdf_product([leak, *(effect[s] for effect, s in zip(effects, states, strict=True))])
            for states in itertools.product(*map(range, cards))
        ]
    )
    node = net.node("y")
    np.testing.assert_allclose(net.table("y").values.reshape(-1, r), expected, atol=1e-14)
    columns = {f"x{k}": codes.ravel() for k, codes in enumerate(np.indices(cards))}
    for state in range(r):
        logs = node.log_prob({**columns, "y": np.full(12, state)})
        np.testing.assert_allclose(np.exp(logs), expected[:, state], atol=1e-14)
    for k, effect in enumerate(effects):
        for state, row in enumerate(effect):
            np.testing.assert_allclose(list(node.causes_[f"x{k}"][state].values()), row, atol=1e-14)
    np.testing.assert_allclose(list(node.leak_.values()), leak, atol=1e-14)
    many = {name: np.repeat(column[7:8], 200_000) for name, column in columns.items()}
    drawn = node.sample(many, np.random.default_rng(0), 200_000)
    np.testing.assert_allclose(np.bincount(drawn, minlength=r) / 200_000, expected[7], atol=4e-3)


def test_known_effects_are_recovered_within_their_errors() -> None:
    rows, effects, leak = rows_of([2, 3], 100_000, 7)
    node = network([2, 3]).fit(rows).node("y")
    np.testing.assert_allclose(list(node.causes_["x1"][2].values()), effects[1][2], atol=0.02)
    truth = np.stack([leak, effects[0][1], effects[1][1], effects[1][2]])
    below = np.cumsum(truth, axis=1)
    weights = -np.log(below[:, :-1] / below[:, 1:])
    assert node.weights_.variables == ("coefficient", "y")
    assert (np.abs(node.weights_.values - weights) < 4 * node.standard_errors_.values).all()


def test_one_parent_with_a_leak_is_the_saturated_table() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2, 3000)
    shares = np.array([[0.6, 0.3, 0.1], [0.2, 0.4, 0.4]])
    rows: dict[str, Any] = {"x0": x, "y": (rng.random(3000)[:, None] > np.cumsum(shares[x], axis=1)).sum(axis=1)}
    net = network([2]).fit(rows)
    plain = sf.BayesianNetwork({"y": ["x0"]}, states={"x0": [0, 1], "y": [0, 1, 2]}).fit(rows)
    np.testing.assert_allclose(net.table("y").values, plain.table("y").values, rtol=1e-11)
    assert net.report_.log_likelihood == pytest.approx(plain.report_.log_likelihood, rel=1e-13)


@pytest.mark.parametrize("prior", [None, {"y": 0.7}])
def test_with_two_states_it_is_the_noisy_or_to_the_bit(prior: Any) -> None:
    rows, _, _ = rows_of([2, 3, 2], 300, 4, r=2)
    most, either = (network([2, 3, 2], 2, kind, prior=prior).fit(rows) for kind in ("noisy-max", "noisy-or"))
    np.testing.assert_array_equal(most.node("y").weights, either.node("y").weights)
    np.testing.assert_array_equal(most.node("y").errors, either.node("y").errors)
    np.testing.assert_array_equal(most.table("y").values, either.table("y").values)
    assert most.report_.certificate == either.report_.certificate
    assert most.node("y").weights_.values.ravel().tolist() == either.node("y").weights_.values.tolist()


def test_the_bound_holds_away_from_the_maximum() -> None:
    rows, _, _ = rows_of([2, 3], 400, 5)
    net = network([2, 3]).fit(rows)
    node, summary = net.node("y"), net.statistics_
    best = node.log_likelihood(summary)
    rng = np.random.default_rng(0)
    for _ in range(20):
        moved = node.weights * np.exp(rng.normal(0.0, 0.3, node.n_params))
        away = NoisyMaxNode(node.domain, moved, node.order, node.inactive)
        loss = away.loss_bound(summary)
        assert loss is not None
        assert away.log_likelihood(summary) + loss >= best - 1e-9
        assert away.log_likelihood(summary) < best


def test_orders_and_inactive_states_are_options_and_names_do_not_matter() -> None:
    rows, _, _ = rows_of([2, 3], 500, 8)
    plain = network([2, 3]).fit(rows)
    named = {
        "x0": np.array(["yes", "no"])[1 - rows["x0"]],
        "x1": np.array(["c", "a", "b"])[rows["x1"]],
        "y": np.array(LEVELS)[rows["y"]],
    }
    levels: list[Any] = LEVELS
    kind = sf.NoisyMax(order=levels, inactive={"x0": "yes", "x1": "c"})
    turned = {**named, "x0": np.array(["yes", "no"])[rows["x0"]]}
    net = sf.BayesianNetwork({"y": ["x0", "x1"]}, nodes={"y": kind}).fit(turned)
    assert net.states("y") == ("none", "mild", "severe")
    other = {"y": ["severe", "none", "mild"]}
    turned_states = sf.BayesianNetwork({"y": ["x0", "x1"]}, states=other, nodes={"y": kind}).fit(turned)
    assert turned_states.states("y") == ("severe", "none", "mild")
    np.testing.assert_array_equal(turned_states.node("y").weights, net.node("y").weights)
    for y, x0, x1 in itertools.product(range(3), range(2), range(3)):
        mine = net.table("y").at(y=LEVELS[y], x0=["yes", "no"][x0], x1=["c", "a", "b"][x1])
        assert mine == pytest.approx(plain.table("y").at(y=y, x0=x0, x1=x1), rel=1e-9)
    assert net.report_.log_likelihood == pytest.approx(plain.report_.log_likelihood, rel=1e-12)
    assert net.node("y").levels == ("mild", "severe")
    assert net.node("y").causes_["x0"]["yes"] == {"none": 1.0, "mild": 0.0, "severe": 0.0}
    declared = sf.BayesianNetwork(
        {"y": ["x0", "x1"]}, states={"y": LEVELS}, nodes={"y": sf.NoisyMax(inactive={"x0": "yes", "x1": "c"})}
    ).fit(turned)
    np.testing.assert_allclose(declared.node("y").by_cause[0], net.node("y").by_cause[0], rtol=1e-9)


def test_rows_join_and_leave_and_weights_are_repetitions() -> None:
    (rows, _, _), (more, _, _) = rows_of([2, 3], 200, 1), rows_of([2, 3], 60, 2)
    net = network([2, 3]).fit(rows)
    both = network([2, 3]).fit({name: np.concatenate([rows[name], more[name]]) for name in rows})
    np.testing.assert_array_equal(net.clone().fit(rows).partial_fit(more).node("y").weights, both.node("y").weights)
    np.testing.assert_array_equal(both.unlearn(more).node("y").weights, net.node("y").weights)
    counts = np.random.default_rng(0).integers(1, 4, 200)
    weighted = network([2, 3]).fit(rows, sample_weight=counts.astype(float))
    repeated = network([2, 3]).fit({name: np.repeat(column, counts) for name, column in rows.items()})
    np.testing.assert_allclose(weighted.node("y").weights, repeated.node("y").weights, rtol=1e-9, atol=1e-12)


def test_a_state_without_rows_below_it_is_said() -> None:
    rows = {"a": [0, 0, 1, 1], "y": [1, 1, 2, 1]}
    net = sf.BayesianNetwork({"y": ["a"]}, states={"a": [0, 1], "y": [0, 1, 2]}, nodes={"y": "noisy-max"}).fit(rows)
    assert net.report_.certificate.exists is False
    assert "weight of ('(leak)', 1) in 'y' -> inf" in net.report_.certificate.directions
    expected: list[Any] = [[0.0, 1.0, 0.0], [0.0, 0.5, 0.5]]
    np.testing.assert_allclose(net.table("y").values, expected, atol=1e-12)


# -- inference -------------------------------------------------------------------------------------------------------


def graded(cards: list[int], seed: int) -> tuple[sf.BayesianNetwork, sf.BayesianNetwork]:
    """Two noisy-MAX children of the same causes, and the same distribution in whole tables."""
    rng = np.random.default_rng(seed)
    names, children = [f"x{k}" for k in range(len(cards))], ["s", "t"]
    rows: dict[str, Any] = {name: rng.integers(0, card, 80) for name, card in zip(names, cards, strict=True)}
    rows |= {"s": rng.integers(0, 3, 80), "t": rng.integers(0, 4, 80)}
    cards_of = {**dict(zip(names, cards, strict=True)), "s": 3, "t": 4}
    states = {name: list(range(card)) for name, card in cards_of.items()}
    kinds = {"s": sf.NoisyMax(), "t": sf.NoisyMax(order=[2, 0, 3, 1], inactive={"x1": 1})}
    structure: dict[Any, Any] = dict.fromkeys(children, names)
    net = sf.BayesianNetwork(structure, states=states, nodes=kinds, prior=1.0).fit(rows)
    domain = Domain(net.node(name).domain[name] for name in net.nodes)
    tables = {name: net.table(name).values for name in net.nodes}
    return net, sf.BayesianNetwork.from_tables(domain, {name: net.parents(name) for name in net.nodes}, tables)


@pytest.mark.parametrize("cards", [[2, 3], [2, 2, 3, 2, 2], [40, 3, 20]])
def test_queries_agree_with_whole_tables(cards: list[int]) -> None:
    net, whole = graded(cards, len(cards))
    chained = any(isinstance(name, Auxiliary) for names, _ in net.node("s").factors() for name in names)
    assert chained == (cards != [2, 3])
    for given in ({}, {"s": 1}, {"s": 2, "t": 0, "x1": 1}, {"t": 3, "x0": 0}, {"s": [0.2, 0.9, 0.4]}):
        mine, theirs = net.marginals(given), whole.marginals(given)
        for name in net.nodes:
            np.testing.assert_allclose(mine[name].values, theirs[name].values, rtol=1e-10)
        assert net.log_probability(given) == pytest.approx(whole.log_probability(given), rel=1e-11)
        assert net.map_query(given) == whole.map_query(given)
    rows = net.sample(40, random_state=0)
    np.testing.assert_allclose(net.score_samples(rows), whole.score_samples(rows), rtol=1e-11)


def test_pyagrum_answers_alike_by_the_maximum_of_private_nodes() -> None:
    gum = pytest.importorskip("pyagrum")
    net, _ = graded([2, 3], 3)
    node = net.node("t")
    bn = gum.BayesNet()
    for name, card in (("x0", 2), ("x1", 3)):
        bn.add(gum.LabelizedVariable(name, name, card))
        bn.cpt(name)[:] = net.table(name).values
    order = [2, 0, 3, 1]
    for number, (name, states) in enumerate(node.causes_.items()):
        bn.add(gum.RangeVariable(f"z{number}", "", 0, 3))
        bn.addArc(name, f"z{number}")
        for state, shares in states.items():
            bn.cpt(f"z{number}")[{name: state}] = [shares[level] for level in order]
    bn.add(gum.RangeVariable("leak", "", 0, 3))
    bn.cpt("leak")[:] = [node.leak_[level] for level in order]
    bn.addMAX(gum.RangeVariable("t", "", 0, 3))
    for above in ("z0", "z1", "leak"):
        bn.addArc(above, "t")
    engine = gum.LazyPropagation(bn)
    for given in ({}, {"x1": 2}):
        engine.setEvidence(given)
        engine.makeInference()
        theirs = engine.posterior("t").toarray()
        np.testing.assert_allclose([net.query("t", given=given).at(t=level) for level in order], theirs, rtol=1e-6)


def test_forty_parents_need_no_table() -> None:
    cards = [3] * 40
    rows, _, _ = rows_of(cards, 3000, 0)
    net = network(cards, prior={"y": 0.5, **{f"x{k}": 1.0 for k in range(40)}}).fit(rows)
    assert net.n_params_ == 40 * 2 + 2 * 81
    node = net.node("y")
    below = np.cumsum(list(node.leak_.values()))
    for k in range(40):
        shares = np.array([list(one.values()) for one in node.causes_[f"x{k}"].values()])
        below *= net.table(f"x{k}").values @ np.cumsum(shares, axis=1)
    np.testing.assert_allclose(net.query("y").values, np.diff(below, prepend=0.0), rtol=1e-9, atol=1e-14)
    assert net.size_report()["y"].cells == node.n_params == 162
    with pytest.raises(sf.SizeError, match=r"weights_, \.causes_"):
        net.table("y")


# -- missing values --------------------------------------------------------------------------------------------------


def holed(cards: list[int], n: int, seed: int, share: float = 0.2) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    rows, _, _ = rows_of(cards, n, seed)
    nothing: Any = None
    return {name: np.where(rng.random(n) < share, nothing, column) for name, column in rows.items()}


def test_missing_values_give_the_maximum_of_the_observed_likelihood() -> None:
    rows = holed([2, 2], 150, 3)
    net = network([2, 2], prior={"y": 0.5}, tolerance=1e-11, max_iter=5000).fit(rows)
    counts: dict[tuple[Any, ...], int] = {}
    for row in zip(*rows.values(), strict=True):
        counts[row] = counts.get(row, 0) + 1

    def loss(v: Floats) -> float:
        x = [np.array([1 - p, p]) for p in 1 / (1 + np.exp(-v[:2]))]
        logs = log_softmax(v[2:].reshape(3, 3), axis=1)
        effects = [np.stack([np.eye(3)[0], np.exp(one)]) for one in logs[1:]]
        joint = np.zeros((2, 2, 3))
        for a, b in itertools.product(range(2), range(2)):
            joint[a, b] = x[0][a] * x[1][b] * cdf_product([np.exp(logs[0]), effects[0][a], effects[1][b]])
        value = 0.5 * logs.sum()
        for row, n in counts.items():
            seen = tuple(slice(None) if state is None else int(state) for state in row)
            value += n * np.log(joint[seen].sum())
        return -float(value)

    options: Any = {"gtol": 1e-8, "maxiter": 5000}
    found = minimize(loss, np.zeros(11), method="BFGS", options=options)
    assert net.report_.objective == pytest.approx(-float(found.fun), abs=1e-6)
    shares = log_softmax(found.x[2:].reshape(3, 3), axis=1)
    node = net.node("y")
    np.testing.assert_allclose(list(node.leak_.values()), np.exp(shares[0]), atol=1e-4)
    np.testing.assert_allclose(list(node.causes_["x1"][1].values()), np.exp(shares[2]), atol=1e-4)
    assert net.report_.certificate.moment_gap < 1e-4
    errors = net.standard_errors_["y"].values
    assert (np.isfinite(errors) & (errors > 0)).all()


def test_the_chain_leads_to_the_maximum_of_the_family(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = holed([2, 3], 200, 5)
    options: dict[str, Any] = {"tolerance": 1e-10, "max_iter": 20_000, "acceleration": "squarem", "prior": {"y": 0.5}}
    kind = sf.NoisyMax(order=[1, 0, 2])
    family = network([2, 3], 3, kind, **options).fit(rows)
    expected = family.standard_errors_["y"].values
    monkeypatch.setattr(noisy_max_chain, "CHAINED_CELLS", 0)
    chain = network([2, 3], 3, kind, **options).fit(rows)
    assert chain.report_.objective == pytest.approx(family.report_.objective, abs=1e-7)
    np.testing.assert_allclose(chain.node("y").parameters(), family.node("y").parameters(), atol=1e-5)
    np.testing.assert_allclose(chain.standard_errors_["y"].values, expected, rtol=1e-3)


def test_a_hidden_parent_is_learned() -> None:
    rows, _, _ = rows_of([2, 3], 300, 6)
    net = sf.BayesianNetwork(
        [("h", "y"), ("x1", "y"), ("h", "x0")],
        hidden={"h": 2},
        states={"x0": [0, 1], "x1": [0, 1, 2], "y": [0, 1, 2]},
        nodes={"y": "noisy-max"},
        prior=1.0,
        tolerance=1e-7,
    ).fit(rows)
    assert net.converged_
    assert net.report_.log_likelihood == pytest.approx(net.score_samples(rows).sum(), rel=1e-12)
    assert np.diff(net.history_).min() > -1e-9


# -- files, answers, options -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["json", "suffice"])
def test_files_keep_every_bit(tmp_path: Path, ending: str) -> None:
    net, _ = graded([2, 2, 3, 2, 2], 3)
    net.write(tmp_path / f"net.{ending}")
    back = sf.read(tmp_path / f"net.{ending}")
    np.testing.assert_array_equal(back.node("t").weights, net.node("t").weights)
    assert back.node("t").order == (2, 0, 3, 1)
    assert back.get_params()["nodes"] == net.get_params()["nodes"]
    np.testing.assert_array_equal(back.query("s").values, net.query("s").values)
    assert back.fit(net.statistics_).report_.log_likelihood == net.report_.log_likelihood


def test_error_bars_of_answers_follow_the_weights() -> None:
    rows, _, _ = rows_of([2], 2000, 1)
    net = network([2]).fit(rows)
    plain = sf.BayesianNetwork({"y": ["x0"]}, states={"x0": [0, 1], "y": [0, 1, 2]}).fit(rows)
    np.testing.assert_allclose(net.table("y").values, plain.table("y").values, rtol=1e-9)
    mine, theirs = (one.query("y", given={"x0": 1}).standard_errors.values for one in (net, plain))
    np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_what_does_not_fit_is_refused() -> None:
    words = {"a": [0, 1, 0], "y": ["low", "high", "middle"]}
    with pytest.raises(sf.OptionError, match=r"Nothing says in which order the states of 'y' are.*NoisyMax\(order"):
        sf.BayesianNetwork({"y": ["a"]}, nodes={"y": "noisy-max"}).fit(words)
    with pytest.raises(sf.UnknownStateError, match="'middle'"):
        sf.BayesianNetwork({"y": ["a"]}, nodes={"y": sf.NoisyMax(order=["low", "high"])}).fit(words)
    with pytest.raises(sf.OptionError, match=r"declares the states 'low', 'high', and states= 'low', 'middle', 'high'"):
        sf.BayesianNetwork(
            {"y": ["a"]}, states={"y": ["low", "middle", "high"]}, nodes={"y": sf.NoisyMax(order=["low", "high"])}
        ).fit(words)
    with pytest.raises(sf.OptionError, match="names 'z'; expected the node or one of its parents 'a'"):
        sf.BayesianNetwork({"y": ["a"]}, nodes={"y": sf.NoisyMax(inactive={"z": 1})}).fit(words)
    with pytest.raises(sf.OptionError, match="names the node 'y' itself"):
        sf.BayesianNetwork({"y": ["a"]}, nodes={"y": sf.NoisyMax(inactive={"y": 1})}).fit(words)
    with pytest.raises(sf.OptionError, match="NoisyMax takes leak=True or False"):
        sf.NoisyMax(order="abc")
    with pytest.raises(sf.OptionError, match="has the real parents 'a'; a noisy-max node needs discrete parents"):
        sf.BayesianNetwork({"y": ["a"]}, nodes={"y": "noisy-max"}).fit({"a": [0.5, 1.5], "y": [0, 1]})
    with pytest.raises(sf.OptionError, match=r"prior of the noisy-MAX node 'y' is 'bdeu'"):
        network([2], prior="bdeu").fit(rows_of([2], 20, 0)[0])
    with pytest.raises(sf.OptionError, match=r"estimate='mean'.*noisy-MAX"):
        network([2], prior=1.0, estimate="mean").fit(rows_of([2], 20, 0)[0])
    with pytest.raises(sf.EstimateError, match=r"no parent is active.*NoisyMax\(leak=True\)"):
        network([2], kind=sf.NoisyMax(leak=False)).fit({"x0": [0, 1, 1], "y": [1, 0, 2]})
    with pytest.raises(sf.OptionError, match="a noisy-MAX node is given as"):
        network([2], fixed={"y": {"leak": 0.1}}).fit(rows_of([2], 20, 0)[0])
    with pytest.raises(sf.OptionError, match="expected 3 probabilities that add up to 1"):
        network([2], fixed={"y": {"leak": [0.5, 0.2, 0.2], "causes": {"x0": {1: [1, 0, 0]}}}}).fit(
            rows_of([2], 20, 0)[0]
        )
    plain = network([2]).fit(rows_of([2], 50, 0)[0]).node("y").to_dict()
    assert NoisyMaxNode.from_dict(plain).levels == (1, 2)
    for change in ({"order": (0, 1)}, {"order": (0, 1, 1)}, {"weights": np.zeros(3)}, {"weights": -np.ones(4)}):
        with pytest.raises(sf.FileFormatError, match="A noisy-MAX node has codes or arrays that do not fit"):
            NoisyMaxNode.from_dict({**plain, **change})
