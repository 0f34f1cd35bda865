"""Error bars of answers: derivatives against differences, variances against refits of the same formula and draws."""

import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import suffice as sf
from suffice.domain import Domain, Variable
from suffice.models.bayesian.error_bars.derivatives import joint_derivatives

Floats = NDArray[np.float64]
PARENTS: dict[str, tuple[str, ...]] = {"h": (), "x": ("h",), "m": ("x",), "y": ("m", "h"), "w": ("y", "x")}
CARDS = {"h": 2, "x": 3, "m": 2, "y": 3, "w": 2}
DOMAIN = Domain(Variable.discrete(name, range(card)) for name, card in CARDS.items())


def random_tables(seed: int, zeros: bool = False) -> dict[str, Floats]:
    rng = np.random.default_rng(seed)
    tables = {}
    for node, above in PARENTS.items():
        weights = rng.gamma(1.0, size=DOMAIN.shape([*above, node]))
        if zeros:
            weights *= rng.random(weights.shape) < 0.7
            weights[..., 0] += weights.sum(axis=-1) == 0
        tables[node] = weights / weights.sum(axis=-1, keepdims=True)
    return tables


def listed(tables: dict[str, Floats], asked: tuple[str, ...], given: dict[str, Any]) -> Floats:
    """P(asked, given) by listing every joint state: any numbers may stand in the tables."""
    answer = np.zeros(DOMAIN.shape(asked))
    for cell in itertools.product(*map(range, CARDS.values())):
        states = dict(zip(CARDS, cell, strict=True))
        weight = math.prod(float(tables[n][tuple(states[p] for p in (*PARENTS[n], n))]) for n in CARDS)
        for name, known in given.items():
            weight *= float(known[states[name]]) if isinstance(known, list) else float(states[name] == known)
        answer[tuple(states[name] for name in asked)] += weight
    return answer


QUESTIONS: list[tuple[tuple[str, ...], dict[str, Any]]] = [
    (("h",), {}),
    (("y",), {"w": 1}),
    (("x", "y"), {"w": 0}),
    (("h",), {"x": 1, "w": 1}),
    (("m", "w"), {"w": 1}),
    (("y",), {"x": [0.2, 0.9, 0.4]}),
    (("h",), {"y": [1.0, 0.0, 0.3], "m": 0}),
]


@pytest.mark.parametrize(("asked", "given"), QUESTIONS)
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_derivatives_are_those_of_the_list_of_all_states(
    asked: tuple[str, ...], given: dict[str, Any], zeros: bool, seed: int
) -> None:
    """P(q, e) is linear in each cell, so that a difference is its derivative, whatever the step: also where it is 0."""
    tables = random_tables(seed, zeros)
    net = sf.BayesianNetwork.from_tables(DOMAIN, PARENTS, tables)
    if listed(tables, asked, given).sum() == 0:
        with pytest.raises(sf.EstimateError, match="probability 0"):
            joint_derivatives(net.fitted_.inference, asked, given, list(PARENTS), lambda _: True)
        return
    found = joint_derivatives(net.fitted_.inference, asked, given, list(PARENTS), lambda _: True)
    before = listed(tables, asked, given)
    total = before.sum()
    np.testing.assert_allclose(found.values, (before / total).ravel(), rtol=1e-12, atol=1e-14)
    conditional = found.conditional()
    for name in PARENTS:
        slopes = np.zeros((before.size, *tables[name].shape))
        for cell in np.ndindex(*tables[name].shape):
            moved = {**tables, name: tables[name].copy()}
            moved[name][cell] += 1.0
            slope = (listed(moved, asked, given) - before) / total
            slopes[:, *cell] = (slope - before / total * slope.sum()).ravel()
        if name in conditional:
            np.testing.assert_allclose(conditional[name][0], slopes, rtol=1e-9, atol=1e-12)
        else:  # A row may move as it likes while it adds up to one.
            np.testing.assert_allclose(slopes - slopes[..., :1], 0.0, atol=1e-12)


def rows(n: int, seed: int = 0) -> dict[str, NDArray[Any]]:
    net = sf.BayesianNetwork.from_tables(DOMAIN, PARENTS, random_tables(seed))
    drawn: dict[str, NDArray[Any]] = net.sample(n, random_state=seed)
    return drawn


STATES = {name: list(range(card)) for name, card in CARDS.items()}


def by_differences(net: sf.BayesianNetwork, asked: str, given: dict[str, int], covariances: Any) -> Floats:
    """sqrt(g' S g) with g by central differences of the listed answer, S by row of each table."""
    tables = {name: net.table(name).values for name in PARENTS}
    variance = np.zeros(CARDS[asked])
    for name in PARENTS:
        for above in np.ndindex(*tables[name].shape[:-1]):
            slopes = np.zeros((CARDS[asked], CARDS[name]))
            for state in range(CARDS[name]):
                ends = []
                for sign in (1, -1):
                    moved = {**tables, name: tables[name].copy()}
                    moved[name][(*above, state)] += sign * 1e-6
                    joint = listed(moved, (asked,), given)
                    ends.append(joint / joint.sum())
                slopes[:, state] = (ends[0] - ends[1]) / 2e-6
            variance += np.einsum("as,st,at->a", slopes, covariances(name, above), slopes)
    return np.asarray(np.sqrt(variance))


@pytest.mark.parametrize(("asked", "given"), [("h", {"w": 1}), ("y", {"x": 2}), ("x", {})])
@pytest.mark.parametrize("estimate", ["mean", "map", None])
def test_standard_errors_are_the_delta_method(asked: str, given: dict[str, int], estimate: Any) -> None:
    data = rows(300)
    prior = None if estimate is None else 1.5
    net = sf.BayesianNetwork(PARENTS, states=STATES, prior=prior, estimate=estimate).fit(data)

    def covariance(name: str, above: tuple[int, ...]) -> Floats:
        counts = net.statistics_[sf.Counts((*PARENTS[name], name))].dense()[above]
        if prior is None:
            mean, size = counts / counts.sum(), counts.sum()
        else:
            mean, size = (counts + prior) / (counts + prior).sum(), (counts + prior).sum() + 1
        return np.asarray((np.diag(mean) - np.outer(mean, mean)) / size)

    expected = by_differences(net, asked, given, covariance)
    answer = net.query(asked, given=given)
    np.testing.assert_allclose(answer.standard_errors.values, expected, rtol=1e-6)
    low, high = answer.interval(0.9)
    z = 1.6448536269514722
    p = answer.values
    odds = np.log(p / (1 - p))
    for end, sign in ((low, -1), (high, 1)):
        expected_end = 1 / (1 + np.exp(-(odds + sign * z * expected / (p * (1 - p)))))
        np.testing.assert_allclose(end.values, expected_end, rtol=1e-6)


def test_draws_of_the_posterior_agree_where_rows_are_many() -> None:
    net = sf.BayesianNetwork(PARENTS, states=STATES, prior=1.0).fit(rows(20_000))
    for given, do in (({"w": 1}, None), (None, {"m": 1}), ({"w": 0}, {"x": 2})):
        answer = net.query("y", given=given, do=do)
        ends = answer.interval(0.95), answer.interval(0.95, method="posterior", draws=4000, random_state=0)
        width = ends[0][1].values - ends[0][0].values
        for delta, drawn in zip(*ends, strict=True):
            np.testing.assert_allclose(delta.values, drawn.values, atol=0.06 * float(width.max()))


def test_draws_have_the_moments_of_the_posterior() -> None:
    net = sf.BayesianNetwork({"a": []}, prior=0.5).fit({"a": [0, 0, 1, 2, 0, 1]})
    beta = net.posterior_["a"].intervals(0.9)
    low, high = net.query("a").interval(0.9, method="posterior", draws=20_000, random_state=1)
    np.testing.assert_allclose(low.values, beta[0].values, atol=0.01)
    np.testing.assert_allclose(high.values, beta[1].values, atol=0.01)
    np.testing.assert_allclose(net.query("a").standard_errors.values, net.standard_errors_["a"].values, rtol=1e-12)


def test_an_intervention_takes_the_error_of_what_it_cuts_away() -> None:
    """P(m | do(x)) is a row of the table of m, and has the error of that row; so has P(m | x)."""
    net = sf.BayesianNetwork(PARENTS, states=STATES, prior=1.0).fit(rows(500))
    row = net.standard_errors_["m"].at(x=2).values
    np.testing.assert_allclose(net.query("m", do={"x": 2}).standard_errors.values, row, rtol=1e-9)
    np.testing.assert_allclose(net.query("m", given={"x": 2}).standard_errors.values, row, rtol=1e-9)
    np.testing.assert_allclose(net.marginals(do={"x": 2})["m"].standard_errors.values, row, rtol=1e-9)
    assert (net.query("x", do={"x": 2}).standard_errors.values == 0).all()


def test_evidence_is_certain_and_an_unseen_event_is_not() -> None:
    data = {"a": [0, 0, 0, 1], "b": [0, 0, 0, 0]}
    net = sf.BayesianNetwork([("a", "b")], states={"b": [0, 1]}).fit(data)
    assert (net.query("a", given={"a": 1}).standard_errors.values == 0).all()
    assert np.isnan(net.query("b").standard_errors.values).all()
    low, high = net.query("b").interval()
    assert np.isnan(low.values).all()
    assert np.isnan(high.values).all()
    net = sf.BayesianNetwork([("a", "b")], states={"b": [0, 1]}, prior=0.5).fit(data)
    low, high = net.query("b").interval()
    assert (low.values > 0).all()
    assert (high.values < 1).all()


def test_the_mode_on_an_edge_moves_with_its_posterior() -> None:
    """MAP under Dirichlet(1): the mode is at 0, where the posterior still has the spread of Beta(1, n + 1)."""
    net = sf.BayesianNetwork({"a": []}, states={"a": [0, 1]}, prior=1.0, estimate="map").fit({"a": [0] * 10})
    assert net.query("a").values.tolist() == [1.0, 0.0]
    expected = math.sqrt(11 * 1 / (12**2 * 13))
    np.testing.assert_allclose(net.query("a").standard_errors.values, expected, rtol=1e-12)


def test_rows_without_data_and_prior_leave_everything_open() -> None:
    net = sf.BayesianNetwork([("a", "b")], states={"a": [0, 1, 2]}).fit({"a": [0, 1, 1, 0], "b": [0, 1, 0, 1]})
    assert np.isinf(net.query("b", do={"a": 2}).standard_errors.values).all()
    low, high = net.query("b", do={"a": 2}).interval()
    assert low.values.tolist() == [0.0, 0.0]
    assert high.values.tolist() == [1.0, 1.0]
    assert np.isfinite(net.query("b", given={"a": 1}).standard_errors.values).all()


def test_fixed_nodes_are_certain() -> None:
    fixed = {"b": [[0.9, 0.1], [0.2, 0.8]]}
    net = sf.BayesianNetwork([("a", "b")], states={"b": [0, 1]}, fixed=fixed).fit(
        {"a": [0, 1, 1, 0, 1], "b": [0, 1, 0, 0, 1]}
    )
    error = net.standard_errors_["a"].values[0]
    np.testing.assert_allclose(net.query("b").standard_errors.values, 0.7 * error, rtol=1e-12)


def test_tied_nodes_move_together() -> None:
    """P(x2 = 1) = sum over x1 of p(x1) t(x1, 1), with one table t for both steps of the chain."""
    data = sf.BayesianNetwork.from_tables(
        Domain(Variable.discrete(n, [0, 1]) for n in ("x0", "x1", "x2")),
        {"x0": (), "x1": ("x0",), "x2": ("x1",)},
        {"x0": [0.5, 0.5], "x1": [[0.8, 0.2], [0.3, 0.7]], "x2": [[0.8, 0.2], [0.3, 0.7]]},
    ).sample(400, random_state=0)
    net = sf.BayesianNetwork("x0 -> x1 -> x2", tied=[("x1", "x2")]).fit(data)
    q, t = net.table("x0").values, net.table("x1").values
    sizes = [(data["x0"] == k).sum() + (data["x1"] == k).sum() for k in (0, 1)]
    p1 = q @ t
    # d/dt of q' t t [:, 1], once through each step.
    slopes = [q[k] * (t[1, 1] - t[0, 1]) + p1[k] for k in (0, 1)]
    variance = sum(s**2 * t[k, 1] * t[k, 0] / n for k, (s, n) in enumerate(zip(slopes, sizes, strict=True)))
    variance += ((t @ t)[1, 1] - (t @ t)[0, 1]) ** 2 * q[0] * q[1] / 400
    np.testing.assert_allclose(net.query("x2").standard_errors.values, math.sqrt(variance), rtol=1e-9)


def test_expected_counts_do_not_count_as_seen() -> None:
    """With half of b missing at random and no other node, the error is that of the rows that show it."""
    data = {"a": [0, 1] * 50, "b": ([0, 1, 1, 1, 0] * 20)[:50] + [None] * 50}
    net = sf.BayesianNetwork({"a": [], "b": []}, states={"b": [0, 1]}).fit(data)
    p = net.query("b").values
    np.testing.assert_allclose(net.query("b").standard_errors.values, np.sqrt(p * (1 - p) / 50), rtol=1e-4)


def test_errors_after_em_are_those_of_the_observed_information() -> None:
    """The likelihood of a mixture of coins, maximised and differentiated by hand."""
    rng = np.random.default_rng(0)
    h = rng.random(4000) < 0.4
    shares = np.array([[0.9, 0.2], [0.8, 0.3], [0.85, 0.1]])
    data = {f"c{k}": (rng.random(4000) < np.where(h, hi, lo)).astype(int) for k, (hi, lo) in enumerate(shares)}
    net = sf.BayesianNetwork({"h": [], "c0": ["h"], "c1": ["h"], "c2": ["h"]}, hidden={"h": 2}, tolerance=1e-9)
    net.fit(data)
    coins = np.stack(list(data.values()), axis=1)
    start = [net.table("h").values[1], *(net.table(f"c{k}").values[s, 1] for k in range(3) for s in (0, 1))]

    def loglik(v: Floats) -> float:
        rates = np.array(v[1:]).reshape(3, 2)
        by = [np.where(coins == 1, rates[:, s], 1 - rates[:, s]).prod(axis=1) for s in (0, 1)]
        return float(np.log((1 - v[0]) * by[0] + v[0] * by[1]).sum())

    def answer(v: Floats) -> float:
        on = [v[0] * v[2] * v[4], (1 - v[0]) * v[1] * v[3]]
        return float(on[0] / sum(on))

    point, size, step = np.array(start), 7, 1e-4
    eye = np.eye(size) * step
    hessian = np.array(
        [
            [
                (loglik(point + a + b) - loglik(point + a - b) - loglik(point - a + b) + loglik(point - a - b))
                for b in eye
            ]
            for a in eye
        ]
    ) / (4 * step**2)
    slope = np.array([(answer(point + a) - answer(point - a)) / (2 * step) for a in eye])
    expected = math.sqrt(slope @ np.linalg.inv(-hessian) @ slope)
    found = net.query("h", given={"c0": 1, "c1": 1})
    np.testing.assert_allclose(found.values[1], answer(point), rtol=1e-9)
    np.testing.assert_allclose(found.standard_errors.values, expected, rtol=2e-3)
    low, _ = found.interval(method="posterior", draws=4000, random_state=0)
    ends = found.interval()
    np.testing.assert_allclose(low.values, ends[0].values, atol=0.1 * float(ends[1].values[1] - ends[0].values[1]))


def test_noisy_or_nodes_have_the_error_of_their_weights() -> None:
    rng = np.random.default_rng(0)
    causes = rng.integers(0, 2, (3000, 6))
    q = np.array([0.3, 0.5, 0.7, 0.4, 0.6, 0.8])
    y = (rng.random(3000) > 0.95 * np.prod(np.where(causes == 1, q, 1.0), axis=1)).astype(int)
    for p in (3, 6):  # A table, and a chain.
        names = [f"c{k}" for k in range(p)]
        data = {n: causes[:, k] for k, n in enumerate(names)} | {"y": y}
        net = sf.BayesianNetwork([(n, "y") for n in names], nodes={"y": "noisy-or"}).fit(data)
        first = dict.fromkeys(names, 0)
        # With no active cause only the leak is left: P(absent) = exp(-w0), whose error is P(absent) times that of w0.
        leak = float(net.standard_errors_["y"].values[0])
        expected = leak * net.query("y", given=first).values[0]
        np.testing.assert_allclose(net.query("y", given=first).standard_errors.values, expected, rtol=1e-4)
        assert np.isfinite(net.query("c0", given={"y": 1}).standard_errors.values).all()


# -- linear-Gaussian networks -----------------------------------------------------------------------------------------


def linear_rows(n: int, seed: int = 0) -> dict[str, Floats]:
    rng = np.random.default_rng(seed)
    z = rng.normal(1.0, 1.0, n)
    x = 0.8 * z + rng.normal(size=n)
    y = 1.5 * x - 2.0 * z + rng.normal(0.0, 0.7, n)
    return {"z": z, "x": x, "y": y, "w": 0.5 * y + rng.normal(size=n)}


LINEAR = {"z": [], "x": ["z"], "y": ["x", "z"], "w": ["y"]}


@pytest.mark.parametrize(
    ("asked", "given", "prior"),
    [
        (["x"], {}, None),
        (["z", "y"], {"w": 0.3}, None),
        (["w", "x"], {"y": 1.0, "z": 0.2}, None),
        (["w", "x"], {"y": 1.0}, True),
    ],
)
def test_means_and_covariances_have_the_error_of_the_delta_method(
    asked: list[str], given: dict[str, float], prior: Any
) -> None:
    prior = prior and sf.LinearGaussianPrior(alpha=2.0, beta=1.0)
    net = sf.BayesianNetwork(LINEAR, prior=prior).fit(linear_rows(80))

    def moments(parameters: dict[str, tuple[Floats, float]]) -> Floats:
        fixed = {name: (w, v) for name, (w, v) in parameters.items()}
        other = sf.BayesianNetwork(LINEAR, states=dict.fromkeys(LINEAR, "real"), fixed=fixed)
        answer = other.query(asked, given=given)
        return np.concatenate([answer.mean, answer.covariance.ravel()])

    start = {name: (net.node(name).weights_, net.node(name).variance_) for name in LINEAR}
    d = len(asked)
    variance = np.zeros(d + d * d)
    for name, (weights, noise) in start.items():
        node = net.node(name)
        posterior = net.posterior_[name] if prior else None
        scale = noise if posterior is None else posterior.beta_ / (posterior.alpha_ - 1)
        spread = node.spread[0] if posterior is None else posterior.spread_
        slopes = []
        for k in range(len(weights)):
            step = np.eye(len(weights))[k] * 1e-5
            up, down = (moments({**start, name: (weights + sign * step, noise)}) for sign in (1, -1))
            slopes.append((up - down) / 2e-5)
        variance += np.einsum("ia,ij,ja->a", slopes, scale * spread, slopes)
        up, down = (moments({**start, name: (weights, noise + sign * 1e-5)}) for sign in (1, -1))
        variance += ((up - down) / 2e-5) ** 2 * float(node.variance_errors_) ** 2
    answer = net.query(asked, given=given)
    np.testing.assert_allclose(answer.standard_errors, np.sqrt(variance)[:d], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(answer.covariance_errors.ravel(), np.sqrt(variance)[d:], rtol=1e-6, atol=1e-9)


def test_the_error_of_a_mean_is_that_of_textbooks() -> None:
    data = linear_rows(200)
    answer = sf.BayesianNetwork({"z": []}).fit({"z": data["z"]}).query("z")
    np.testing.assert_allclose(answer.standard_errors, data["z"].std() / math.sqrt(200), rtol=1e-12)
    low, high = answer.variance_interval(0.95)
    v = float(data["z"].var())
    reach = math.exp(1.959963984540054 * math.sqrt(2 / 200))
    np.testing.assert_allclose([low[0], high[0]], [v / reach, v * reach], rtol=1e-9)


def test_draws_of_linear_networks_agree_with_the_delta_method() -> None:
    net = sf.BayesianNetwork(LINEAR, prior=sf.LinearGaussianPrior(alpha=2.0, beta=1.0)).fit(linear_rows(5000))
    answer = net.query("z", given={"w": 1.0})
    delta, drawn = answer.interval(), answer.interval(method="posterior", draws=3000, random_state=0)
    np.testing.assert_allclose(np.ravel(delta), np.ravel(drawn), atol=0.08 * float(delta[1][0] - delta[0][0]))
    delta, drawn = answer.variance_interval(), answer.variance_interval(method="posterior", draws=3000, random_state=0)
    np.testing.assert_allclose(np.ravel(delta), np.ravel(drawn), atol=0.08 * float(delta[1][0] - delta[0][0]))


# -- what has no error bar --------------------------------------------------------------------------------------------


def test_parameters_that_were_given_have_no_spread() -> None:
    net = sf.BayesianNetwork.from_tables(DOMAIN, PARENTS, random_tables(0))
    with pytest.raises(sf.EstimateError, match="were given, not learned"):
        _ = net.query("y").standard_errors
    fixed = {"z": ([0.0], 1.0)}
    assert (sf.BayesianNetwork({"z": []}, states={"z": "real"}, fixed=fixed).query("z").standard_errors == 0).all()


def test_what_was_learned_without_a_prior_has_no_posterior() -> None:
    net = sf.BayesianNetwork(PARENTS, states=STATES).fit(rows(100))
    with pytest.raises(sf.EstimateError, match="learned without a prior"):
        net.query("y").interval(method="posterior")
    with pytest.raises(sf.OptionError, match="draws="):
        net.query("y").interval(draws=10)
    with pytest.raises(sf.OptionError, match="level"):
        net.query("y").interval(1.5)


def test_tables_learned_for_a_target_have_no_error_bar() -> None:
    net = sf.BayesianNetwork("naive-bayes", target="y", objective="conditional", prior=1.0).fit(rows(200), y="y")
    with pytest.raises(sf.EstimateError, match="conditional"):
        _ = net.query("y").standard_errors


def test_copies_hold_the_numbers_and_saved_networks_their_errors(tmp_path: Any) -> None:
    net = sf.BayesianNetwork(PARENTS, states=STATES, prior=1.0).fit(rows(200))
    answer = net.query("y", given={"w": 1})
    copied = pickle.loads(pickle.dumps(answer))
    np.testing.assert_array_equal(copied.values, answer.values)
    net.write(tmp_path / "net.json")
    again = sf.read(tmp_path / "net.json").query("y", given={"w": 1})
    np.testing.assert_array_equal(again.standard_errors.values, answer.standard_errors.values)
    # A later fit changes no answer that was given.
    before = net.query("y", given={"w": 1})
    expected = answer.standard_errors.values.copy()
    net.fit(rows(5000, seed=1))
    np.testing.assert_array_equal(before.standard_errors.values, expected)
