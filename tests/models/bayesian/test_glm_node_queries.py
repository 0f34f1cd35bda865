"""Questions to networks with GLM nodes against enumeration, quadrature and weighted samples; rows with gaps."""

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import minimize
from scipy.special import log_expit, logsumexp

import suffice as sf
from curvature import hessian

Floats = NDArray[np.float64]


def logistic_rows(n: int = 400, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    a, b, c = rng.integers(0, 2, n), rng.integers(0, 3, n), rng.integers(0, 2, n)
    d = np.where(rng.random(n) < 0.7, c, 1 - c)
    y = (rng.random(n) < 1 / (1 + np.exp(0.5 - a + 0.8 * (b == 2) - 0.6 * c - 0.5 * d))).astype(int)
    z = np.where(rng.random(n) < 0.8, y, 1 - y)
    return {"a": a, "b": b, "c": c, "d": d, "y": y, "z": z}


DISCRETE = {"a": [], "b": [], "c": [], "d": ["c"], "y": ["a", "b", "c", "d"], "z": ["y"]}


def joint_of(net: sf.BayesianNetwork) -> Floats:
    """P(a, b, c, d, y, z) by enumeration, the logistic node written out."""
    node = net.node("y")
    w = node.coefficients_.to_dict()
    joint = np.zeros((2, 3, 2, 2, 2, 2))
    for a, b, c, d, y, z in itertools.product(*map(range, joint.shape)):
        odds = node.intercept_ + w["a[1]"] * a + w["c[1]"] * c + w["d[1]"] * d + (w[f"b[{b}]"] if b else 0.0)
        p = 1 / (1 + math.exp(-odds))
        cell = net.table("a").at(a=a) * net.table("b").at(b=b) * net.table("c").at(c=c) * net.table("d").at(c=c, d=d)
        joint[a, b, c, d, y, z] = cell * (p if y else 1 - p) * net.table("z").at(y=y, z=z)
    return joint


def test_a_logistic_node_among_tables_against_enumeration() -> None:
    net = sf.BayesianNetwork(DISCRETE, nodes={"y": sf.GLM("binomial")}).fit(logistic_rows())
    joint = joint_of(net)
    np.testing.assert_allclose(net.to_joint().values, joint, atol=1e-14)
    names = list(DISCRETE)
    for known in ({}, {"y": 1}, {"z": 0, "b": 2}, {"y": 0, "c": 1, "a": 0}):
        cut = joint[tuple(known.get(name, slice(None)) for name in names)]
        left = [name for name in names if name not in known]
        np.testing.assert_allclose(net.log_probability(known), math.log(cut.sum()), atol=1e-12)
        for name in left:
            expected = cut.sum(axis=tuple(at for at, other in enumerate(left) if other != name)) / cut.sum()
            np.testing.assert_allclose(net.query(name, known).values, expected, rtol=1e-10)
        best = np.unravel_index(cut.argmax(), cut.shape)
        assert net.map_query(known) == known | dict(zip(left, map(int, best), strict=True))
    soft = net.query("a", {"y": {0: 0.2, 1: 0.9}}).values
    expected = (joint * np.array([0.2, 0.9])[:, None]).sum(axis=(1, 2, 3, 4, 5))
    np.testing.assert_allclose(soft, expected / expected.sum(), rtol=1e-10)


# --------------------------------------------------------------------------------------------------------------------
# Real columns
# --------------------------------------------------------------------------------------------------------------------


MIXED = [("a", "x"), ("a", "t"), ("x", "t"), ("a", "c"), ("x", "c"), ("t", "s")]


@pytest.fixture(scope="module")
def mixed() -> sf.BayesianNetwork:
    """A table, regressions, a Poisson node with a linear-Gaussian child, and a softmax node with a real parent."""
    rng = np.random.default_rng(1)
    n = 500
    a = rng.choice(["u", "w"], n)
    x = rng.normal(0.5 * (a == "w"), 1.0)
    t = rng.poisson(np.exp(0.3 + 0.4 * x - 0.5 * (a == "w")))
    c = np.array(["k", "l", "m"])[(rng.gumbel(size=(n, 3)) + np.outer(x, [1.0, 0.0, -0.5])).argmax(axis=1)]
    rows = {"a": a, "x": x, "t": t, "c": c, "s": rng.normal(1.0 + 0.7 * t, 0.8)}
    return sf.BayesianNetwork(MIXED, nodes={"t": sf.GLM(sf.Poisson()), "c": sf.GLM(sf.Categorical())}).fit(rows)


def factors(net: sf.BayesianNetwork, x: float, t: Any = None, c: Any = None) -> Floats:
    """P(a) p(x | a) and, where given, P(t | a, x) and P(c | a, x), for both states of a."""
    found = net.table("a").values * stats.norm.pdf(x, net.node("x").weights_[:, 0], np.sqrt(net.node("x").variance_))
    other = np.array([0.0, 1.0])
    if t is not None:
        node = net.node("t")
        rate = np.exp(node.intercept_ + node.coefficients_["a[w]"] * other + node.coefficients_["x"] * x)
        found = found * stats.poisson.pmf(t, rate)
    if c is not None:
        node = net.node("c")
        eta = node.intercept_ + np.outer(other, node.coefficients_["a[w]"]) + node.coefficients_["x"] * x
        found = found * np.exp(eta - logsumexp(eta, axis=1, keepdims=True))[:, net.states("c").index(c)]
    return np.asarray(found)


def test_known_numbers_make_tables_of_generalised_linear_nodes(mixed: sf.BayesianNetwork) -> None:
    for known in ({"x": 0.4, "t": 3}, {"x": -1.0, "c": "l"}, {"x": 0.2, "t": 0, "c": "m"}):
        law = factors(mixed, **known)
        np.testing.assert_allclose(mixed.query("a", known).values, law / law.sum(), rtol=1e-10)
        np.testing.assert_allclose(mixed.log_probability(known), math.log(law.sum()), rtol=1e-10)
    each = [factors(mixed, 0.4, c=state).sum() for state in mixed.states("c")]
    np.testing.assert_allclose(mixed.query("c", {"x": 0.4}).values, each / np.sum(each), rtol=1e-10)
    # Nodes below what is asked are left out, and so is what they cannot be asked about.
    np.testing.assert_allclose(mixed.query("a").values, mixed.table("a").values, rtol=1e-12)
    np.testing.assert_allclose(mixed.query("x").mean, mixed.table("a").values @ mixed.node("x").weights_, rtol=1e-12)


def test_a_known_count_explains_its_linear_child(mixed: sf.BayesianNetwork) -> None:
    known = {"x": 0.4, "t": 3}
    law, line = mixed.query("s", known), mixed.node("s")
    np.testing.assert_allclose(law.mean, [line.weights_[0] + 3 * line.weights_[1]], rtol=1e-12)
    np.testing.assert_allclose(np.ravel(law.covariance), [line.variance_], rtol=1e-12)
    density = stats.norm.pdf(2.5, law.mean[0], math.sqrt(line.variance_))
    expected = math.log(factors(mixed, **known).sum() * density)
    np.testing.assert_allclose(mixed.log_probability(known | {"s": 2.5}), expected, rtol=1e-12)


def test_what_has_no_closed_form_says_so_and_samples_answer(mixed: sf.BayesianNetwork) -> None:
    for variables, known, says in (
        ("a", {"t": 2}, "real parents 'x' are not among the evidence"),
        ("t", {"x": 0.0}, "poisson family"),
        ("x", {"c": "k"}, "engine='sampling'"),
        ("s", {"x": 0.1}, "engine='sampling'"),
    ):
        with pytest.raises(sf.OptionError, match=says):
            mixed.query(variables, known)
    grid, step = np.linspace(-6.0, 7.0, 2601, retstep=True)
    law = sum(factors(mixed, float(x), t=2) for x in grid) * step
    found = mixed.query("a", {"t": 2}, engine="sampling", n=40_000, random_state=0)
    assert found.approximate
    assert (np.abs(found.values - law / law.sum()) < 5 * found.standard_errors.values).all()
    counts = mixed.query("t", {"a": "u", "x": 1.0}, engine="sampling", n=40_000, random_state=0)
    rate = math.exp(mixed.node("t").intercept_ + mixed.node("t").coefficients_["x"])
    assert abs(counts.mean[0] - rate) < 5 * counts.standard_errors[0]
    assert mixed.log_probability({"t": 2.5, "x": 0.0}) == -math.inf
    with pytest.raises(sf.EstimateError, match="density 0"):
        mixed.query("a", {"t": -1, "x": 0.0})


def test_rows_of_evidence(mixed: sf.BayesianNetwork) -> None:
    rows = {"x": [0.4, -1.0, 2.0], "t": [3, 0, 1], "c": ["k", "m", "l"]}
    laws = np.array([factors(mixed, x, t, c) for x, t, c in zip(*rows.values(), strict=True)])
    np.testing.assert_allclose(mixed.predict_proba(rows, "a"), laws / laws.sum(axis=1, keepdims=True), rtol=1e-10)
    assert list(mixed.predict(rows, "a")) == [mixed.states("a")[k] for k in laws.argmax(axis=1)]
    np.testing.assert_allclose(mixed.score_samples(rows), np.log(laws.sum(axis=1)), rtol=1e-10)
    gaps = {"x": [0.4, 0.4], "a": [None, "w"], "c": ["k", None]}
    expected = [math.log(factors(mixed, 0.4, c="k").sum()), math.log(factors(mixed, 0.4)[1])]
    np.testing.assert_allclose(mixed.score_samples(gaps), expected, rtol=1e-10)
    np.testing.assert_allclose(
        mixed.query_rows("a", {"x": [0.4], "c": ["k"]})[0], mixed.query("a", {"x": 0.4, "c": "k"}).values
    )


def test_predicted_counts_average_over_unknown_states(mixed: sf.BayesianNetwork) -> None:
    node = mixed.node("t")
    rates = np.exp(node.intercept_ + node.coefficients_["a[w]"] * np.array([0.0, 1.0]) + node.coefficients_["x"] * 0.4)
    np.testing.assert_allclose(mixed.predict({"a": ["w", "u"], "x": [0.4, 0.4]}, "t"), rates[::-1], rtol=1e-12)
    law = factors(mixed, 0.4)
    np.testing.assert_allclose(mixed.predict({"x": [0.4]}, "t"), [law @ rates / law.sum()], rtol=1e-12)
    with pytest.raises(sf.OptionError, match="real parents 'x'"):
        mixed.predict({"a": ["w"]}, "t")
    with pytest.raises(sf.OptionError, match="explains 's'"):
        mixed.predict({"a": ["w"], "x": [0.4], "s": [1.0]}, "t")


def test_samples_given_evidence(mixed: sf.BayesianNetwork) -> None:
    drawn = mixed.sample(20_000, given={"x": 0.4, "t": 3}, random_state=0)
    assert set(drawn["t"]) == {3}
    share = mixed.query("a", {"x": 0.4, "t": 3}).at(a="w")
    assert abs((drawn["a"] == "w").mean() - share) < 5 * 0.5 / math.sqrt(20_000)
    mean = float(mixed.node("s").weights_ @ [1.0, 3.0])
    assert abs(drawn["s"].mean() - mean) < 5 * drawn["s"].std() / math.sqrt(20_000)


# --------------------------------------------------------------------------------------------------------------------
# Gaps
# --------------------------------------------------------------------------------------------------------------------


def _at(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(slice(None) if value is None else value for value in row)


def test_em_with_a_logistic_node_is_the_maximum_of_the_observed_likelihood() -> None:
    rows = logistic_rows(150, 3)
    rng = np.random.default_rng(0)
    gappy = {"a": rows["a"].astype(object), "b": rows["b"].astype(object), "y": rows["y"].astype(object)}
    for name in gappy:
        gappy[name][rng.random(150) < 0.2] = None
    net = sf.BayesianNetwork(
        [("a", "y"), ("b", "y")], nodes={"y": sf.GLM("binomial")}, tolerance=1e-9, states={"a": [0, 1], "b": [0, 1, 2]}
    ).fit(gappy)

    patterns = Counter(zip(*gappy.values(), strict=True))

    def loss(t: Floats) -> float:
        root_a, root_b = np.append(0.0, t[0]), np.append(0.0, t[1:3])
        log = (root_a - logsumexp(root_a))[:, None, None] + (root_b - logsumexp(root_b))[None, :, None]
        odds = t[3] + np.array([0.0, t[4]])[:, None] + np.array([0.0, t[5], t[6]])
        joint = log + np.stack([log_expit(-odds), log_expit(odds)], axis=-1)
        return -float(sum(count * logsumexp(joint[_at(row)]) for row, count in patterns.items()))

    best = minimize(loss, np.zeros(7), method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(net.report_.log_likelihood, -best.fun, rtol=1e-9)
    np.testing.assert_allclose(net.node("y").parameters_, best.x[3:], atol=1e-4)
    assert (np.diff(net.history_) >= -1e-9).all()
    expected = np.sqrt(np.diag(np.linalg.inv(hessian(loss, best.x))))[3:]
    np.testing.assert_allclose(net.node("y").standard_errors_, expected, rtol=1e-4)


def test_em_without_gaps_in_its_family_equals_the_model_alone() -> None:
    """A Poisson node whose family every row shows is learned from the rows; the hidden classes as without it."""
    rng = np.random.default_rng(2)
    n = 300
    hidden, x, a = rng.integers(0, 2, n), rng.normal(size=n), rng.choice(["u", "w"], n)
    rows: dict[str, Any] = {f"z{k}": np.where(rng.random(n) < 0.85, hidden, 1 - hidden) for k in range(4)}
    classes = {"h": [], **{name: ["h"] for name in rows}}
    rows |= {"x": x, "a": a, "t": rng.poisson(np.exp(0.2 + 0.5 * x))}
    plain = sf.BayesianNetwork(classes, hidden={"h": 2}).fit(rows)
    net = sf.BayesianNetwork({**classes, "t": ["x", "a"]}, nodes={"t": sf.GLM("poisson")}, hidden={"h": 2}).fit(rows)
    alone = sf.GLM("poisson").fit({"x": x, "a": a}, rows["t"])
    np.testing.assert_allclose(net.node("t").parameters_, alone.parameters_, rtol=1e-9)
    np.testing.assert_allclose(net.node("t").standard_errors_, alone.standard_errors_, rtol=1e-8)
    np.testing.assert_allclose(net.table("z0").values, plain.table("z0").values, atol=1e-6)
    np.testing.assert_allclose(net.standard_errors_["z0"].values, plain.standard_errors_["z0"].values, rtol=1e-3)
    more = alone.log_likelihood_ + stats.norm.logpdf(x, x.mean(), x.std()).sum()
    more += sum((a == s).sum() * math.log((a == s).mean()) for s in ("u", "w"))
    np.testing.assert_allclose(net.report_.log_likelihood, plain.report_.log_likelihood + more, rtol=1e-9)
    np.testing.assert_allclose(net.history_[-1], net.report_.log_likelihood, rtol=1e-9)
    np.testing.assert_allclose(net.predict_proba(rows, "h"), plain.predict_proba(rows, "h"), atol=1e-5)
    assert net.report_.certificate.moment_gap < 1e-5 * math.sqrt(300)  # In standard errors of the 300 rows.


def test_gaps_in_the_family_of_a_count_say_what_to_do() -> None:
    rows = {"x": np.array([0.1, 0.4, 1.2, 2.0]), "t": np.array([1.0, np.nan, 2.0, 0.0])}
    model = sf.BayesianNetwork([("x", "t")], nodes={"t": sf.GLM("poisson")})
    with pytest.raises(sf.OptionError, match="'t' has missing values or is hidden"):
        model.fit(rows)
    with pytest.raises(sf.MissingValueError, match="'t' has 1 missing value"):
        sf.BayesianNetwork([("x", "t")], nodes={"t": sf.GLM("poisson")}, missing="raise").fit(rows)
