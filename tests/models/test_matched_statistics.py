"""What a fit makes equal: observed and expected statistics of each model; elsewhere they differ by the slope."""

import gc
import pickle
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special

import suffice as sf
from suffice.fitting.report import MatchedStatistics, largest_and_even

RNG = np.random.default_rng(5)
X = RNG.normal(size=(300, 2))
ETA = 0.3 + X @ [0.5, -0.4]
DESIGN = np.column_stack([np.ones(300), X])


def pairs(model: Any) -> MatchedStatistics:
    found = model.matched_statistics()
    assert isinstance(found, MatchedStatistics)
    assert len(found.names) == len(found.observed) == len(found.expected)
    return found


# -- regressions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "response", "mean"),
    [
        ("gaussian", ETA + RNG.normal(size=300), lambda eta: eta),
        ("poisson", RNG.poisson(np.exp(ETA)), np.exp),
        ("binomial", (RNG.random(300) < special.expit(ETA)).astype(int), special.expit),
        ("gamma", RNG.gamma(4.0, 0.5 / (3 + ETA)), lambda eta: 1 / eta),
    ],
)
def test_canonical_links_match_x_y_and_x_mu(family: Any, response: Any, mean: Any) -> None:
    model = sf.GLM(family).fit(X, response)
    found = pairs(model)
    beta = np.array([model.intercept_, *model.coefficients_])
    assert found.names == ("intercept", "x0", "x1")
    assert found.observed == pytest.approx(DESIGN.T @ response / 300, rel=1e-12)
    assert found.expected == pytest.approx(DESIGN.T @ mean(DESIGN @ beta) / 300, rel=1e-8)
    assert np.abs(found.gaps).max() < 1e-7
    assert "is canonical" in found.about


def test_other_links_weigh_the_rows() -> None:
    response = (RNG.random(300) < special.ndtr(ETA)).astype(int)
    model = sf.GLM("binomial", link="probit").fit(X, response)
    found = pairs(model)
    eta = DESIGN @ np.array([model.intercept_, *model.coefficients_])
    mean, slope = special.ndtr(eta), np.exp(-(eta**2) / 2) / np.sqrt(2 * np.pi)
    share = slope / (mean * (1 - mean))
    assert found.observed == pytest.approx(DESIGN.T @ (share * response) / 300, rel=1e-8)
    assert found.expected == pytest.approx(DESIGN.T @ (share * mean) / 300, rel=1e-8)
    assert np.abs(found.gaps).max() < 1e-7
    assert "not canonical" in found.about


def test_a_fit_that_was_stopped_differs_by_its_slope() -> None:
    response = RNG.poisson(np.exp(ETA))
    with pytest.warns(sf.ConvergenceWarning):
        model = sf.GLM("poisson", solver="irls", start=[0.0, 0.0, 0.0], max_iter=1).fit(X, response)
    beta = np.array([model.intercept_, *model.coefficients_])
    slope = DESIGN.T @ (response - np.exp(DESIGN @ beta)) / 300
    assert np.abs(slope).max() > 1e-2
    assert pairs(model).gaps == pytest.approx(slope, rel=1e-9)


@pytest.mark.parametrize("family", ["gaussian", "binomial", "multinomial", "ordinal"])
@pytest.mark.parametrize("prior", [sf.Normal(variance=0.05), sf.Laplace(scale=0.02)])
def test_the_prior_pulls_coefficients(family: Any, prior: Any) -> None:
    response: Any = ETA + RNG.normal(size=300)
    if family != "gaussian":
        response = np.digitize(response, [0.3] if family == "binomial" else [-0.5, 0.8])
    found = pairs(sf.GLM(family, prior=prior).fit(X, response))
    assert found.pull is not None
    assert np.abs(found.pull).max() > 1e-3
    assert np.abs(found.observed - found.expected).max() > 1e-3
    assert np.abs(found.gaps).max() < 1e-6


def test_a_ridge_has_the_pull_of_its_formula_and_the_likelihood_beside_it() -> None:
    response = (RNG.random(300) < special.expit(ETA)).astype(int)
    model = sf.GLM("binomial", prior=sf.Normal(variance=0.05)).fit(X, response)
    found = pairs(model)
    assert found.pull == pytest.approx(np.array([0.0, *(-model.coefficients_ / 0.05 / 300)]), rel=1e-9)
    free = sf.GLM("binomial").fit(X, response)
    assert model.likelihood_estimate() == pytest.approx([free.intercept_, *free.coefficients_], rel=1e-6)
    separated = sf.GLM("binomial", prior=sf.Normal(variance=1.0)).fit(X[:, :1], X[:, 0] > 0)
    assert separated.likelihood_estimate() is None


def test_pairs_of_a_regression_outlive_files_and_pickles_but_not_other_rows(tmp_path: Path) -> None:
    rows, response = X.copy(), RNG.poisson(np.exp(ETA)).astype(float)
    model = sf.GLM("poisson").fit(rows, response)
    again = pickle.loads(pickle.dumps(model))
    model.write(tmp_path / "model.json")
    for other in (again, sf.read(tmp_path / "model.json")):
        assert np.array_equal(pairs(other).observed, pairs(model).observed)
    changed = sf.GLM("poisson").fit(rows, response)
    rows += 1.0
    with pytest.raises(sf.errors.EstimateError, match="rows have changed"):
        changed.matched_statistics()


def test_a_regression_lets_go_of_the_rows_of_earlier_fits() -> None:
    rows = X.copy()
    held = weakref.ref(rows)
    response = RNG.poisson(np.exp(ETA))
    model = sf.GLM("poisson", prior=sf.Normal(variance=1.0)).fit(rows, response)
    del rows
    model.fit(X[:100], response[:100])
    gc.collect()
    assert held() is None
    assert pairs(model).observed[0] == pytest.approx(response[:100].mean())


# -- networks ----------------------------------------------------------------------------------------------------------


def test_linear_gaussian_nodes_match_their_cross_products() -> None:
    group = RNG.integers(0, 2, 300)
    y = 3 + 2 * X[:, 0] + group + RNG.normal(size=300)
    net = sf.BayesianNetwork([("g", "y"), ("x", "y")]).fit({"g": group, "x": 10 * X[:, 0], "y": y})
    found = dict(zip(pairs(net).names, zip(pairs(net).observed, pairs(net).expected, strict=True), strict=True))
    some = group == 1
    share, x = some.mean(), 10 * X[some, 0]
    cross = share * np.cov(x, y[some], ddof=0)[0, 1] / (10 * X[:, 0]).std() / y.std()
    assert found["x·y | g=1"] == pytest.approx((cross, cross), rel=1e-9)
    square = share * y[some].var() / y.var()
    assert found["y² | g=1"] == pytest.approx((square, square), rel=1e-9)
    assert np.abs(pairs(net).gaps).max() < 1e-12


@pytest.mark.parametrize("estimate", ["mean", "map"])
def test_pseudo_counts_pull_the_cells_of_a_table(estimate: Any) -> None:
    rows = {"a": [0, 0, 0, 1, 1], "b": ["x", "y", "y", "y", "y"]}
    net = sf.BayesianNetwork([("a", "b")], prior=2.0, estimate=estimate).fit(rows)
    found = pairs(net)
    assert found.pull is not None
    added, share = (2.0 if estimate == "mean" else 1.0), net.table("b").at(a=0, b="x")
    assert found.pull[found.names.index("b=x | a=0")] == pytest.approx((added - 2 * added * share) / 5, rel=1e-12)
    assert np.abs(found.gaps).max() < 1e-15


@pytest.mark.parametrize("prior", [None, sf.Normal(variance=0.05)])
@pytest.mark.parametrize("family", ["poisson", "multinomial", "gamma"])
def test_nodes_that_are_regressions_match_both_sides_of_their_scores(family: Any, prior: Any) -> None:
    mean = np.exp(ETA)
    draws = {"poisson": RNG.poisson(mean), "gamma": RNG.gamma(3.0, mean / 3), "multinomial": np.digitize(ETA, [0, 1])}
    response = draws[family] if family != "multinomial" else (draws[family] + RNG.integers(0, 2, 300)) % 3
    link = "log" if family == "gamma" else None
    model = sf.GLM(family, prior=prior, link=link)  # type: ignore[arg-type]
    net = sf.BayesianNetwork([("x", "y")], nodes={"y": model}).fit({"x": X[:, 0], "y": response})
    found, alone = pairs(net), pairs(model.clone().fit(X[:, :1], response))
    at = [place for place, name in enumerate(found.names) if name.startswith("y: ")]
    assert found.observed[at] == pytest.approx(alone.observed, rel=1e-6)
    assert found.expected[at] == pytest.approx(alone.expected, rel=1e-6, abs=1e-9)
    assert np.abs(found.gaps).max() < 1e-6
    assert (found.pull is None) == (prior is None)


@pytest.mark.parametrize("prior", [sf.Normal(variance=0.1), sf.Laplace(scale=0.01)])
def test_markov_networks_with_a_prior(prior: Any) -> None:
    a, b = RNG.integers(0, 2, (2, 60))
    net = sf.MarkovNetwork([("a", "b")], prior=prior).fit({"a": a | b, "b": b})
    found = pairs(net)
    assert found.pull is not None
    assert np.abs(found.pull).max() > 1e-3
    assert np.abs(found.gaps).max() < 1e-7
    if isinstance(prior, sf.Normal):
        assert found.pull == pytest.approx(-net.weights_ / 0.1 / 60, rel=1e-12)


def test_networks_learned_by_sampling_have_errors() -> None:
    rows = {"a": RNG.integers(0, 2, 60), "b": RNG.integers(0, 2, 60)}
    net = sf.MarkovNetwork([("a", "b")], solver="sml", random_state=0).fit(rows)
    found = pairs(net)
    monte_carlo = net.report_.certificate.monte_carlo
    assert found.errors is not None
    assert monte_carlo is not None
    error = np.sqrt(found.expected * (1.0 - found.expected) / 60)  # Of the share of 60 rows in each cell.
    assert (found.errors / error).max() == pytest.approx(monte_carlo.error, rel=1e-9)
    assert np.abs(found.gaps / error).max() == pytest.approx(net.report_.certificate.moment_gap, rel=1e-9)
    assert np.abs(found.gaps).max() == pytest.approx(net.report_.certificate.slope, rel=1e-12)
    exact = net.query(["a", "b"]).values.ravel()
    assert (np.abs(found.expected - exact) < 5 * found.errors).all()


# -- sequences ---------------------------------------------------------------------------------------------------------

WORDS = [list("abacabadabca"), list("bacabd"), list("ccab")]


def test_chains_match_their_counts() -> None:
    chain = sf.MarkovChain().fit(WORDS)
    found = dict(zip(pairs(chain).names, pairs(chain).observed, strict=True))
    steps = sum(map(len, WORDS))
    assert found["a → b"] == pytest.approx(sum("".join(word).count("ab") for word in WORDS) / steps)
    assert found["start → b"] == pytest.approx(1 / steps)
    assert np.abs(pairs(chain).gaps).max() < 1e-15


@pytest.mark.parametrize("estimate", ["mean", "map"])
def test_pseudo_counts_pull_the_rows_of_a_chain(estimate: Any) -> None:
    chain = sf.MarkovChain(prior=2.0, estimate=estimate).fit(WORDS)
    found = pairs(chain)
    assert found.pull is not None
    at = found.names.index("a → d")
    added = 2.0 if estimate == "mean" else 1.0
    steps = sum(map(len, WORDS))
    assert found.pull[at] == pytest.approx((added - 4 * added * chain.probability("d", "a")) / steps, rel=1e-12)
    assert np.abs(found.gaps).max() < 1e-15


@pytest.mark.parametrize("prior", [None, 2.0])
def test_a_fixed_point_of_em_matches_its_statistics(prior: float | None, tmp_path: Path) -> None:
    model = sf.HiddenMarkovModel(2, emission=sf.Categorical(), prior=prior, random_state=0, tolerance=1e-8)
    model.set_params(max_iter=20_000, acceleration="squarem").fit([*WORDS, *WORDS[::-1]])
    found = pairs(model)
    assert np.abs(found.gaps).max() < 1e-7
    assert (found.pull is not None) == (prior is not None)
    model.write(tmp_path / "model.json")
    assert pairs(sf.read(tmp_path / "model.json")).expected == pytest.approx(found.expected, rel=1e-12)


def test_em_that_was_stopped_is_off_by_one_more_step() -> None:
    model = sf.HiddenMarkovModel(2, emission=sf.Categorical(), random_state=0, max_iter=2)
    with pytest.warns(sf.ConvergenceWarning):
        model.fit(WORDS)
    found = dict(zip(pairs(model).names, pairs(model).observed, strict=True))
    counts = np.array([[found[f"{a} → {b}"] for b in (0, 1)] for a in (0, 1)])
    posteriors = model.pairwise(WORDS)
    wanted = sum(np.asarray(one).sum(axis=0) for one in posteriors)
    assert counts == pytest.approx(wanted / wanted.sum(), rel=1e-9)
    moved = counts / counts.sum(axis=1, keepdims=True) - model.transitions_
    assert np.abs(moved).max() > 1e-3
    gaps = dict(zip(pairs(model).names, pairs(model).gaps, strict=True))
    assert gaps["0 → 1"] == pytest.approx(counts[0].sum() * moved[0, 1], rel=1e-9)


@pytest.mark.parametrize("covariance", ["full", "diagonal", "spherical", "tied"])
def test_known_states_match_moments_of_normal_laws(covariance: Any) -> None:
    steps, states = RNG.normal(size=(60, 2)) * [1.0, 20.0], ["u", "v"] * 30
    steps[::2] += [2.0, 30.0]
    model = sf.HiddenMarkovModel(["u", "v"], emission=sf.MultivariateNormal(), covariance=covariance)
    found = pairs(model.fit([steps], states=[states]))
    assert np.abs(found.gaps).max() < 1e-12
    mine = dict(zip(found.names, found.observed, strict=True))
    wanted = (steps[::2] - steps.mean(axis=0)).sum(axis=0) / steps.std(axis=0) / 60
    assert [mine["u: x0"], mine["u: x1"]] == pytest.approx(wanted.tolist(), rel=1e-9)


# -- conditional random fields -----------------------------------------------------------------------------------------

SENTENCES = [[{"w": word} for word in text.split()] for text in ("the dog runs", "a cat sleeps", "the cat", "dog cat")]
TAGS = [["D", "N", "V"], ["D", "N", "V"], ["D", "N"], ["N", "N"]]


@pytest.mark.parametrize("prior", [sf.Normal(variance=2.0), sf.Laplace(scale=2.0)])
def test_chains_of_labels_match_sums_of_features(prior: Any, tmp_path: Path) -> None:
    model = sf.ChainCRF(prior=prior, tolerance=1e-9).fit(SENTENCES, TAGS)
    found = pairs(model)
    assert found.total == len(model.weights_) == len(found.names)
    at = found.names.index("transition D → N")
    assert found.observed[at] == pytest.approx(3 / 4)
    assert found.observed[found.names.index("state w:cat → N")] == pytest.approx(3 / 4)
    marginals = [np.asarray(one) for one in model.predict_marginals(SENTENCES)]
    noun = model.labels_.index("N")
    expected = (marginals[1][1] + marginals[2][1] + marginals[3][1])[noun] / 4
    assert found.expected[found.names.index("state w:cat → N")] == pytest.approx(expected, rel=1e-9)
    assert np.abs(found.gaps).max() * 4 == pytest.approx(model.report_.certificate.slope, abs=1e-12)
    assert np.abs(found.gaps).max() < 1e-7
    if isinstance(prior, sf.Normal):
        assert found.pull == pytest.approx(-model.weights_ / 2.0 / 4, abs=1e-8)
    assert model.label_shares_ == pytest.approx([3 / 10, 5 / 10, 2 / 10])
    model.write(tmp_path / "model.json")
    assert np.array_equal(pairs(sf.read(tmp_path / "model.json")).expected, found.expected)


def test_graphs_of_labels_match_sums_of_features() -> None:
    examples = [sf.GraphExample.grid(RNG.normal(size=(2, 3))) for _ in range(6)]
    labels = [RNG.integers(0, 2, 6) for _ in examples]
    model = sf.GraphCRF(prior=sf.Normal(variance=1.0), tolerance=1e-9).fit(examples, labels)
    found = pairs(model)
    assert np.abs(found.gaps).max() < 1e-7
    assert found.pull == pytest.approx(-model.weights_ / 6, abs=1e-7)
    seen = [example.nodes[np.asarray(label) == 1].sum() for example, label in zip(examples, labels, strict=True)]
    assert found.observed[found.names.index("nodes 1, 0")] == pytest.approx(np.sum(seen) / 6, rel=1e-9)
    shares = np.concatenate(
        [
            np.asarray(one)[:, 1] * e.nodes[:, 0]
            for one, e in zip(model.predict_marginals(examples), examples, strict=True)
        ]
    )
    assert found.expected[found.names.index("nodes 1, 0")] == pytest.approx(shares.sum() / 6, rel=1e-7)


# -- a choice of many --------------------------------------------------------------------------------------------------


def test_of_many_statistics_the_worst_and_an_even_choice_are_kept() -> None:
    gaps = np.zeros(10_000)
    gaps[[17, 4_444]] = 3.0, -5.0
    kept = largest_and_even(gaps, 100)
    assert {0, 17, 4_444, 9_999} <= set(kept.tolist())
    assert 50 <= len(kept) <= 100
    assert np.array_equal(largest_and_even(gaps[:40], 100), np.arange(40))
