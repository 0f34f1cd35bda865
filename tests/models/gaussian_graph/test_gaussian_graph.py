"""Gaussian graphs against published figures, a generic optimiser, enumeration of pairs and the laws of estimation."""

import json
import math
from itertools import permutations
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize, stats

import suffice as sf
from suffice import extend
from suffice.errors import DataError, EstimateError, NotFittedError, OptionError
from suffice.solvers.covariance_newton import EntryObjective, entry_information
from suffice.solvers.registry import unregister

Floats = NDArray[np.float64]

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"
CYCLE = [(1, 2), (2, 3), (3, 4), (1, 4)]
SOLVERS = ("regression", "ipf", "newton")


def random_covariance(p: int, seed: int, rows: int | None = None) -> Floats:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows or 4 * p, p)) @ (np.eye(p) + 0.4 * rng.standard_normal((p, p)))
    return np.asarray(np.cov(x.T, bias=True))


def best_by_optimiser(S: Floats, edges: Any, weight: float = 1.0, penalty: Any = None) -> Floats:
    """Maximise log det K - tr(S K) over Cholesky-free entries with a generic method, from the written-out formula."""
    p = len(S)
    at = np.array([(i, i) for i in range(p)] + [tuple(edge) for edge in edges])

    def matrix(x: Floats) -> Floats:
        K = np.zeros((p, p))
        K[at[:, 0], at[:, 1]] = K[at[:, 1], at[:, 0]] = x
        return K

    def loss(x: Floats) -> tuple[float, Floats]:
        K = matrix(x)
        values = np.linalg.eigvalsh(K)
        if values[0] <= 0:
            return math.inf, np.zeros_like(x)
        slope = (np.linalg.inv(K) - S)[at[:, 0], at[:, 1]] * np.where(at[:, 0] == at[:, 1], 0.5, 1.0)
        value, more = (0.0, np.zeros_like(x)) if penalty is None else penalty(x)
        return -weight * 0.5 * (np.log(values).sum() - np.trace(S @ K)) + value, -weight * slope + more

    start = np.concatenate([1 / np.diag(S), np.zeros(len(edges))])
    found = optimize.minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000})
    return matrix(found.x)


# -- published figures -----------------------------------------------------------------------------------------------

EMPIRICAL = [[0.912, -0.239, 0.295, 0.002], [-0.239, 1.041, -0.322, 0.261], [0.295, -0.322, 0.928, -0.053], [0.002, 0.261, -0.053, 0.873]]  # fmt: skip # noqa: E501
PRINTED = [[1.167, 0.268, 0.0, -0.008], [0.268, 1.137, 0.373, 0.0], [0.0, 0.373, 1.21, 0.066], [-0.008, 0.0, 0.066, 1.149]]  # fmt: skip # noqa: E501


@pytest.mark.parametrize("solver", ["auto", *SOLVERS])
def test_the_printed_four_cycle_of_a_lecture_is_reproduced(solver: Any) -> None:
    start = np.eye(4) - 0.25 * (np.roll(np.eye(4), 1, axis=1) + np.roll(np.eye(4), -1, axis=1))
    given = None if solver == "regression" else start  # Regressions begin nowhere.
    fit = sf.GaussianGraph(CYCLE, solver=solver, start=given).fit(covariance=EMPIRICAL, n=100)
    np.testing.assert_allclose(fit.precision_, PRINTED, atol=1.1e-3)  # The print is truncated to three digits.
    assert fit.precision_[0, 2] == 0.0
    assert fit.precision_[1, 3] == 0.0
    for a, b in [(0, 1), (1, 2), (2, 3), (0, 3), (0, 0)]:
        assert fit.covariance_[a, b] == pytest.approx(EMPIRICAL[a][b], abs=1e-9)
    assert fit.covariance_[0, 2] == pytest.approx(0.074, abs=1e-3)
    assert fit.covariance_[1, 3] == pytest.approx(0.016, abs=1e-3)


def test_one_update_of_proportional_fitting_matches_its_pair_and_leaves_the_rest_of_the_law() -> None:
    start = np.eye(4) - 0.25 * (np.roll(np.eye(4), 1, axis=1) + np.roll(np.eye(4), -1, axis=1))
    seen: list[Floats] = []

    def keep(state: Any) -> None:
        seen.append(state.parameters.reshape(4, 4).copy())

    S = np.array(EMPIRICAL)
    units = np.sqrt(np.diag(S))
    with pytest.warns(sf.errors.ConvergenceWarning):
        sf.GaussianGraph(CYCLE, solver="ipf", start=start, max_iter=1, callback=keep).fit(covariance=S, n=100)
    K = start * np.outer(units, units)
    R = S / np.outer(units, units)
    expected = set()
    for order in permutations([(0, 1), (1, 2), (2, 3), (0, 3)]):
        now = K.copy()
        for pair in order:
            block = np.ix_(pair, pair)
            now[block] += np.linalg.inv(R[block]) - np.linalg.inv(np.linalg.inv(now)[block])
        expected.add(tuple(np.round(now.ravel(), 10)))
    assert tuple(np.round(seen[0].ravel(), 10)) in expected  # One sweep, in some order of the cliques.


# Covariances (divisor n) of the marks of 88 students in five examinations: Mardia, Kent and Bibby 1979.
MARKS = [
    [302.2933884297521, 125.7768595041322, 100.4251033057851, 105.0650826446281, 116.0705061983471],
    [125.7768595041322, 170.8780991735537, 84.1895661157025, 93.5971074380165, 97.8869834710744],
    [100.4251033057851, 84.1895661157025, 111.6031766528926, 110.8393595041322, 120.4856663223140],
    [105.0650826446281, 93.5971074380165, 110.8393595041322, 217.8760330578512, 153.7680785123967],
    [116.0705061983471, 97.8869834710744, 120.4856663223140, 153.7680785123967, 294.3717716942149],
]


def test_the_butterfly_of_the_examination_marks() -> None:
    names = ["mechanics", "vectors", "algebra", "analysis", "statistics"]
    graph = sf.GaussianGraph([("mechanics", "vectors", "algebra"), ("algebra", "analysis", "statistics")], nodes=names)
    fit = graph.fit(covariance=MARKS, n=88)
    assert fit.deviance_ == pytest.approx(0.8957, abs=5e-4)
    assert round(fit.deviance_, 2) == 0.9  # Whittaker 1990, Edwards 2000
    assert fit.df_ == 4
    assert "closed form" in fit.report_.method
    partial = fit.partial_correlations_
    assert [round(float(partial[a, b]), 2) for a, b in [(0, 1), (0, 2), (2, 3), (2, 4)]] == [0.33, 0.24, 0.45, 0.36]
    saturated = sf.GaussianGraph([tuple(names)], nodes=names).fit(covariance=MARKS, n=88).partial_correlations_
    published = {(0, 1): 0.33, (0, 2): 0.23, (1, 2): 0.28, (2, 3): 0.43, (2, 4): 0.36, (3, 4): 0.25, (1, 3): 0.08}
    assert {pair: round(float(saturated[pair]), 2) for pair in published} == published


@pytest.mark.skipif(not SHARED.exists(), reason="the shared data are not here")
def test_published_and_recomputed_fits_of_the_shared_data() -> None:
    import pandas as pd

    cases = json.loads((SHARED / "ggm" / "expected.json").read_text())["cases"]
    marks = pd.read_csv(SHARED / "ggm" / "mathmark.csv")
    fit = sf.GaussianGraph([tuple(marks.columns[:3]), tuple(marks.columns[2:])], nodes=marks.columns).fit(marks)
    figures = cases["mathmark_butterfly"]["recomputed_here"]
    assert fit.report_.log_likelihood == pytest.approx(figures["loglik"], abs=1e-8)
    np.testing.assert_allclose(fit.precision_, figures["K"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(fit.covariance_, figures["Sigma"], rtol=1e-9)
    cork = pd.read_csv(SHARED / "ggm" / "cork.csv")
    for key, structure in {
        "four_cycle": [("N", "E"), ("E", "S"), ("S", "W"), ("W", "N")],
        "decomposable": [("N", "E", "S"), ("N", "S", "W")],
    }.items():
        figures = cases["cork"]["recomputed_here"][key]
        fit = sf.GaussianGraph(structure, nodes=cork.columns).fit(cork)
        assert fit.deviance_ == pytest.approx(figures["deviance"], abs=1e-8)
        assert fit.df_ == figures["df"]
        assert fit.report_.log_likelihood == pytest.approx(figures["loglik"], abs=1e-8)
        np.testing.assert_allclose(fit.precision_, figures["K"], atol=1e-10)
    anger = pd.read_csv(SHARED / "ggm" / "anger_cov.csv", index_col=0)
    fit = sf.GaussianGraph([("X", "Y"), ("X", "Z"), ("Z", "U"), ("Y", "U")]).fit(covariance=anger, n=684)
    assert fit.deviance_ == pytest.approx(cases["anger_4cycle"]["recomputed_here"]["deviance"], abs=1e-8)


@pytest.mark.skipif(not SHARED.exists(), reason="the shared data are not here")
def test_tests_of_edges_of_the_carcass_data() -> None:
    import pandas as pd

    cases = json.loads((SHARED / "ggm" / "expected.json").read_text())["cases"]
    carcass = pd.read_csv(SHARED / "ggm" / "carcass.csv")
    three = ["Fat11", "Fat12", "Fat13"]
    full = sf.GaussianGraph([tuple(three)]).fit(carcass)
    none = sf.GaussianGraph([], nodes=three).fit(carcass)
    published = cases["carcass_3var"]["published"]
    without_constant = -2 * full.report_.log_likelihood - len(carcass) * 3 * math.log(2 * math.pi)
    assert round(without_constant, 2) == published["minus2logL"]
    assert round(none.deviance_ - full.deviance_, 1) == published["ideviance"]
    twenty, edges = carcass[:20], cases["carcass20_model"]["published"]["edge_delete_deviance"]
    whole = sf.GaussianGraph([tuple(edge.split("-")) for edge in edges], nodes=carcass.columns).fit(twenty)
    assert whole.deviance_ == pytest.approx(cases["carcass20_model"]["recomputed_here"]["model_deviance"], abs=1e-6)
    assert whole.df_ == 11
    for gone, deviance in edges.items():
        less = sf.GaussianGraph([tuple(e.split("-")) for e in edges if e != gone], nodes=carcass.columns).fit(twenty)
        # Two of the graphs have a chordless cycle, where the published fits stopped short of the maximum.
        assert less.deviance_ - whole.deviance_ == pytest.approx(deviance, abs=2e-6 if less.n_iter_ == 0 else 6e-4)
        assert (less.report_.certificate.value_gap or 0.0) < 1e-18


# -- one optimum -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_all_solvers_reach_the_optimum_of_a_generic_optimiser(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = 6
    S = random_covariance(p, seed)
    ring = [(i, (i + 1) % p) for i in range(p)]
    extra = [(i, j) for i in range(p) for j in range(i + 2, p) if (i, j) != (0, p - 1) and rng.random() < 0.15]
    edges = [tuple(sorted(edge)) for edge in ring + extra]
    expected = best_by_optimiser(S, edges)
    for solver in SOLVERS:
        fit = sf.GaussianGraph(edges, nodes=range(p), solver=solver).fit(covariance=S, n=40)  # type: ignore[arg-type]
        np.testing.assert_allclose(fit.precision_, expected, atol=2e-6 * np.abs(expected).max())
        assert fit.converged_
        assert fit.report_.certificate.moment_gap < 1e-8 * math.sqrt(40)
        assert fit.report_.certificate.bound
        assert (fit.report_.certificate.value_gap or 0.0) < 1e-15
        assert fit.report_.certificate.exists is True


def test_a_chordal_graph_is_solved_in_closed_form_and_all_solvers_agree() -> None:
    S = random_covariance(7, 3)
    cliques = [(0, 1, 2), (1, 2, 3), (3, 4), (3, 5), (6,)]
    closed = sf.GaussianGraph(cliques, nodes=range(7)).fit(covariance=S, n=50)
    assert closed.n_iter_ == 0
    for solver in SOLVERS:
        fit = sf.GaussianGraph(cliques, nodes=range(7), solver=solver).fit(covariance=S, n=50)  # type: ignore[arg-type]
        np.testing.assert_allclose(fit.precision_, closed.precision_, rtol=1e-8, atol=1e-9)


def test_graphs_with_too_many_cliques_match_their_edges() -> None:
    """All pairs of 3 x 13 nodes in parts of three have 3^13 maximal cliques."""
    p = 39
    edges = [(i, j) for i in range(p) for j in range(i + 1, p) if i // 3 != j // 3]
    S = np.cov(np.random.default_rng(8).standard_normal((400, p)).T, bias=True)
    scaled = sf.GaussianGraph(edges, nodes=range(p), solver="ipf", tolerance=1e-8).fit(covariance=S, n=200)
    newton = sf.GaussianGraph(edges, nodes=range(p), solver="newton").fit(covariance=S, n=200)
    np.testing.assert_allclose(scaled.precision_, newton.precision_, atol=1e-5)


# -- where the covariance is singular --------------------------------------------------------------------------------


def test_a_five_cycle_of_four_rows_has_a_maximum_though_the_covariance_is_singular() -> None:
    x = np.random.default_rng(5).standard_normal((4, 5))
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]
    graph = sf.GaussianGraph(edges, nodes=range(5))
    fit = graph.fit(x)
    S = np.cov(x.T, bias=True)
    assert np.linalg.matrix_rank(S) == 3
    assert fit.report_.certificate.exists is True
    assert fit.deviance_ == math.inf
    np.testing.assert_allclose(fit.precision_, best_by_optimiser(S, edges), rtol=1e-4, atol=1e-4)
    for solver in SOLVERS:
        again = graph.clone().set_params(solver=solver).fit(x)
        np.testing.assert_allclose(again.precision_, fit.precision_, rtol=1e-7, atol=1e-7)


def test_a_clique_larger_than_the_rows_has_no_maximum_and_is_named() -> None:
    x = np.random.default_rng(1).standard_normal((3, 4))
    with pytest.raises(EstimateError, match=r"clique 0, 1, 2 is singular over 3 rows.*no maximum.*more than 3 rows"):
        sf.GaussianGraph([(0, 1, 2), (2, 3)]).fit(x)


def test_a_cycle_of_too_few_rows_has_no_maximum() -> None:
    """Two rows about a known mean of 0: the products have rank 2, and no positive definite matrix has these edges."""
    angles = np.array([0.0, 0.1, 0.2, 0.3])
    x = np.array([np.cos(angles), np.sin(angles)])
    graph = sf.GaussianGraph([(0, 1), (1, 2), (2, 3), (0, 3)], nodes=range(4), mean="zero", max_iter=300)
    with pytest.raises(EstimateError, match=r"0, 1, 2, 3 run to infinity.*no maximum"):
        graph.fit(x)


def test_a_constant_column_is_named() -> None:
    with pytest.raises(EstimateError, match="'b' is constant"):
        sf.GaussianGraph([("a", "b")]).fit({"a": [1.0, 2.0, 4.0], "b": [3.0, 3.0, 3.0]})


# -- laws ------------------------------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_order_of_nodes_edges_and_rows_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((30, 5)) @ rng.standard_normal((5, 5))
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (1, 4)]
    first = sf.GaussianGraph(edges, nodes=range(5)).fit(x)
    order = rng.permutation(5)
    shuffled = [tuple(rng.permutation(edge).tolist()) for edge in rng.permutation(edges)]
    again = sf.GaussianGraph(shuffled, nodes=order.tolist()).fit(x[rng.permutation(30)])
    np.testing.assert_allclose(again.precision_, first.precision_[np.ix_(order, order)], rtol=1e-7, atol=1e-9)
    assert again.report_.log_likelihood == pytest.approx(first.report_.log_likelihood, rel=1e-10)


def test_weights_count_rows_chunks_add_up_and_unlearning_takes_back() -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((40, 4)) @ rng.standard_normal((4, 4)) + 100.0
    weights = rng.integers(1, 4, 40)
    graph = sf.GaussianGraph(CYCLE, nodes=[1, 2, 3, 4])
    names = [1, 2, 3, 4]
    weighted = graph.clone().fit(x, sample_weight=weights, columns=names)
    repeated = graph.clone().fit(np.repeat(x, weights, axis=0), columns=names)
    np.testing.assert_allclose(weighted.precision_, repeated.precision_, rtol=1e-12)
    parts = sf.summarize(graph, x[:25], columns=names) + sf.summarize(graph, x[25:], columns=names)
    whole = graph.clone().fit(x, columns=names)
    np.testing.assert_allclose(graph.clone().fit(parts).precision_, whole.precision_, rtol=1e-12)
    back = graph.clone().fit(x[:25], columns=names).partial_fit(x[25:], columns=names).unlearn(x[25:], columns=names)
    np.testing.assert_allclose(back.precision_, graph.clone().fit(x[:25], columns=names).precision_, rtol=1e-10)


def test_a_summary_of_more_columns_serves() -> None:
    x = np.random.default_rng(0).standard_normal((50, 4))
    summary = sf.summarize(sf.MultivariateNormal(), x, columns=["d", "a", "c", "b"])
    fit = sf.GaussianGraph([("a", "b"), ("b", "c")]).fit(summary)
    direct = sf.GaussianGraph([("a", "b"), ("b", "c")]).fit(x, columns=["d", "a", "c", "b"])
    np.testing.assert_array_equal(fit.precision_, direct.precision_)
    with pytest.raises(sf.errors.MergeError, match="holds no moments"):
        sf.GaussianGraph([("a", "z")]).fit(summary)


def test_a_file_gives_the_same_graph(tmp_path: Path) -> None:
    fit = sf.GaussianGraph(CYCLE, mean="zero", prior=sf.Wishart(7, np.eye(4))).fit(covariance=EMPIRICAL, n=50)
    fit.write(tmp_path / "graph.suffice")
    again = sf.read(tmp_path / "graph.suffice")
    np.testing.assert_array_equal(again.precision_, fit.precision_)
    assert again.edges == fit.edges
    assert again.report_ == fit.report_
    assert again.deviance_ == fit.deviance_


# -- mean, likelihood, errors ----------------------------------------------------------------------------------------


def test_the_log_likelihood_is_that_of_scipy_and_the_mean_may_be_free_zero_or_known() -> None:
    x = np.random.default_rng(3).normal([1.0, 2.0, 3.0], size=(60, 3))
    for mean, centre in [("free", x.mean(axis=0)), ("zero", np.zeros(3)), ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])]:
        fit = sf.GaussianGraph([(0, 1), (1, 2)], mean=mean).fit(x)
        np.testing.assert_allclose(fit.mean_, centre, rtol=1e-14)
        law = stats.multivariate_normal(centre, fit.covariance_)
        assert fit.report_.log_likelihood == pytest.approx(law.logpdf(x).sum(), rel=1e-12)
        np.testing.assert_allclose(fit.score_samples(x), law.logpdf(x), rtol=1e-11)
        assert fit.score(x) == pytest.approx(law.logpdf(x).mean(), rel=1e-12)
        about = (x - centre).T @ (x - centre) / len(x)
        assert fit.covariance_[0, 1] == pytest.approx(about[0, 1], rel=1e-12)
    assert fit.n_params_ == 5
    assert sf.GaussianGraph([(0, 1), (1, 2)]).fit(x).n_params_ == 8


def test_standard_errors_are_those_of_the_observed_curvature() -> None:
    S = random_covariance(4, 7)
    edges = [(0, 1), (1, 2), (2, 3), (0, 3)]
    n = 35
    fit = sf.GaussianGraph(edges, nodes=range(4)).fit(covariance=S, n=n)
    at = [(i, i) for i in range(4)] + edges

    def log_likelihood(x: Floats) -> float:
        K = np.zeros((4, 4))
        for (a, b), value in zip(at, x, strict=True):
            K[a, b] = K[b, a] = value
        return float(0.5 * n * (np.linalg.slogdet(K)[1] - np.trace(S @ K)))

    point = np.array([fit.precision_[a, b] for a, b in at])
    hessian = np.empty((8, 8))
    h = 1e-4
    for i in range(8):
        for j in range(8):
            steps = [(si, sj) for si in (1, -1) for sj in (1, -1)]
            values = [si * sj * log_likelihood(point + h * (si * np.eye(8)[i] + sj * np.eye(8)[j])) for si, sj in steps]
            hessian[i, j] = sum(values) / (4 * h * h)
    expected = np.sqrt(np.diag(np.linalg.inv(-hessian)))
    found = [fit.standard_errors_[a, b] for a, b in at]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert fit.standard_errors_[0, 2] == 0.0


def test_queries_condition_the_normal_law() -> None:
    S = random_covariance(4, 11)
    fit = sf.GaussianGraph(CYCLE).fit(covariance=S, n=30, sample_mean=[1.0, 2.0, 3.0, 4.0])
    W, m = fit.covariance_, fit.mean_
    law = fit.query([4, 1], given={2: 0.5, 3: 1.0})
    a, b = [3, 0], [1, 2]
    gain = W[np.ix_(a, b)] @ np.linalg.inv(W[np.ix_(b, b)])
    np.testing.assert_allclose(law.mean, m[a] + gain @ (np.array([0.5, 1.0]) - m[b]), rtol=1e-10)
    np.testing.assert_allclose(law.covariance, W[np.ix_(a, a)] - gain @ W[np.ix_(b, a)], rtol=1e-9)
    rows = {2: [0.5, np.nan], 3: [1.0, 2.0]}
    predicted = fit.predict(rows, 4)
    assert predicted[0] == pytest.approx(law.mean[0], rel=1e-10)
    assert predicted[1] == pytest.approx(fit.query(4, given={3: 2.0}).mean[0], rel=1e-10)
    draws = fit.sample(20_000, random_state=0)
    assert np.mean(draws[4]) == pytest.approx(4.0, abs=4 * math.sqrt(W[3, 3] / 20_000))
    h, J = fit.information_form()
    np.testing.assert_allclose(np.linalg.solve(J, h), m, rtol=1e-9)


# -- priors ----------------------------------------------------------------------------------------------------------


def test_a_wishart_prior_counts_as_rows() -> None:
    S = random_covariance(4, 2)
    T = 3.0 * np.eye(4) + 0.5
    fit = sf.GaussianGraph(CYCLE, prior=sf.Wishart(9.0, T), mean="zero").fit(covariance=S, n=20)
    weight = 20 + 9 - 4 - 1
    edges = [(a - 1, b - 1) for a, b in CYCLE]
    np.testing.assert_allclose(fit.precision_, best_by_optimiser((20 * S + T) / weight, edges), atol=1e-6)
    assert fit.report_.estimate == "MAP"
    # On the graph of all edges it is the mode of the posterior law itself.
    whole = sf.GaussianGraph([(1, 2, 3, 4)], prior=sf.Wishart(9.0, T), mean="zero").fit(covariance=S, n=20)
    np.testing.assert_allclose(whole.precision_, sf.Wishart(29.0, T + 20 * S).mode()["precision"], rtol=1e-10)


def test_a_normal_wishart_prior_agrees_with_the_family_on_the_graph_of_all_edges() -> None:
    x = np.random.default_rng(4).standard_normal((15, 3))
    prior = sf.NormalWishart(mean=[0, 1, 0], strength=2.0, dof=6, inverse_scale=np.diag([1.0, 2.0, 3.0]))
    law = sf.MultivariateNormal(prior=prior, estimate="map").fit(x)
    graph = sf.GaussianGraph([(0, 1, 2)], prior=prior).fit(x)
    np.testing.assert_allclose(graph.mean_, law.mean_, rtol=1e-12)
    np.testing.assert_allclose(graph.covariance_, law.covariance_, rtol=1e-10)


def test_a_ridge_gives_an_answer_where_the_likelihood_alone_has_none() -> None:
    x = np.random.default_rng(9).standard_normal((2, 4))
    S = np.cov(x.T, bias=True)
    edges = [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)]
    fit = sf.GaussianGraph(edges, nodes=range(4), prior=sf.Normal(mean=0.5, variance=4.0)).fit(covariance=S, n=2)

    def penalty(k: Floats) -> tuple[float, Floats]:
        return float(((k - 0.5) ** 2).sum() / 8.0), (k - 0.5) / 4.0

    np.testing.assert_allclose(fit.precision_, best_by_optimiser(S, edges, 2.0, penalty), atol=1e-5)
    assert fit.report_.certificate.exists
    assert (fit.report_.certificate.value_gap or 0.0) < 1e-12


def test_the_wishart_law_agrees_with_scipy() -> None:
    T = np.array([[2.0, 0.3], [0.3, 1.0]])
    law = sf.Wishart(5.0, T)
    other = stats.wishart(5, np.linalg.inv(T))
    W = np.array([[1.5, -0.2], [-0.2, 3.0]])
    assert law.log_prob(W) == pytest.approx(other.logpdf(W), rel=1e-12)
    np.testing.assert_allclose(law.mode()["precision"], np.asarray(other.mode(), dtype=float), rtol=1e-12)
    np.testing.assert_allclose(law.mean()["precision"], other.mean(), rtol=1e-12)
    np.testing.assert_allclose(law.stationarity(law.mode()), 0.0, atol=1e-12)
    draws = law.sample(4_000, random_state=1)
    spread = np.sqrt(other.var() / 4_000)
    assert (np.abs(draws.mean(axis=0) - other.mean()) < 4 * spread).all()
    low, high = law.intervals(0.9)["variance"][0]
    marginal = stats.invgamma(0.5 * (5 - 2 + 1), scale=T[0, 0] / 2)
    np.testing.assert_allclose(marginal.cdf([low, high]), [0.05, 0.95], rtol=1e-9)


# -- input -----------------------------------------------------------------------------------------------------------


def test_structures_of_every_kind() -> None:
    import networkx as nx

    S = random_covariance(4, 0)
    expected = sf.GaussianGraph(CYCLE).fit(covariance=S, n=20)
    graph = nx.Graph(CYCLE)
    assert set(map(frozenset, sf.GaussianGraph(graph).edges)) == set(map(frozenset, CYCLE))
    support = sf.GaussianGraph(expected.precision_, nodes=[1, 2, 3, 4]).fit(covariance=S, n=20)
    np.testing.assert_allclose(support.precision_, expected.precision_, atol=1e-9)
    assert sf.GaussianGraph(expected).edges == expected.edges
    assert set(expected.to_networkx().edges) == set(nx.Graph(CYCLE).edges)

    class Lasso:
        precision_ = expected.precision_

    assert sf.GaussianGraph(Lasso()).edges == ((0, 1), (0, 3), (1, 2), (2, 3))


@pytest.mark.parametrize(
    ("structure", "options", "message"),
    [
        ([], {}, "no nodes"),
        ([("a", "a")], {}, "twice|itself"),
        ([("a", "b")], {"nodes": ["a"]}, "not among nodes"),
        ([("a", "b")], {"mean": "none"}, "expected 'free', 'zero'"),
        ([("a", "b")], {"solver": "magic"}, "expected one of"),
        (np.ones((2, 3)), {}, "expected a square matrix"),
        (np.triu(np.ones((3, 3))), {}, "not the other way round"),
        ("ab", {}, "expected a list of cliques"),
    ],
)
def test_bad_structures_and_options(structure: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        sf.GaussianGraph(structure, **options)


def test_bad_data() -> None:
    graph = sf.GaussianGraph([("a", "b"), ("b", "c")])
    S = np.eye(3)
    with pytest.raises(DataError, match="array without names"):
        graph.fit(covariance=S, n=10)
    with pytest.raises(OptionError, match="n is None"):
        graph.fit(covariance=S, columns=["a", "b", "c"])
    with pytest.raises(DataError, match="negative variance"):
        graph.fit(covariance=[[1, 2, 0], [2, 1, 0], [0, 0, 1]], n=5, columns=["a", "b", "c"])
    with pytest.raises(DataError, match="not symmetric"):
        graph.fit(covariance=[[1, 0.5, 0], [0.1, 1, 0], [0, 0, 1]], n=5, columns=["a", "b", "c"])
    with pytest.raises(DataError, match="'c' are missing"):
        graph.fit(covariance=S, n=5, columns=["a", "b", "x"])
    with pytest.raises(OptionError, match="Give rows"):
        graph.fit()
    with pytest.raises(sf.errors.SufficeError, match="c"):
        graph.fit({"a": [1.0, 2.0], "b": [1.0, 3.0]})
    with pytest.raises(NotFittedError):
        _ = graph.precision_
    with pytest.raises(OptionError, match="must lie in the model"):
        sf.GaussianGraph(CYCLE, solver="newton", start=np.eye(4) + 0.01).fit(covariance=np.eye(4), n=5)
    with pytest.raises(OptionError, match="There is no closed form"):
        sf.GaussianGraph(CYCLE, solver="closed-form").fit(covariance=EMPIRICAL, n=5)


def test_an_interrupted_fit_gives_the_best_so_far() -> None:
    def stop(state: Any) -> bool:
        return bool(state.iteration >= 2)

    fit = sf.GaussianGraph(CYCLE, callback=stop).fit(covariance=EMPIRICAL, n=100)
    assert not fit.converged_
    assert fit.stop_reason_ == "callback"
    np.testing.assert_allclose(fit.precision_, PRINTED, atol=0.05)


@pytest.mark.parametrize("alike", [0.999, 0.99999, 0.999999])
def test_columns_that_are_nearly_alike_are_fitted_as_well_as_others(alike: float) -> None:
    S = np.full((4, 4), alike)
    np.fill_diagonal(S, 1.0)
    S[0, 1] = S[1, 0] = 1 - 0.7 * (1 - alike)
    fit = sf.GaussianGraph(CYCLE).fit(covariance=S, n=100)
    assert fit.converged_
    assert fit.report_.certificate.moment_gap < 1e-9 * math.sqrt(100)
    assert fit.report_.certificate.exists is True


def test_columns_that_cannot_be_told_apart_are_named_as_such() -> None:
    S = np.full((4, 4), 1 - 1e-8)
    np.fill_diagonal(S, 1.0)
    with pytest.raises(EstimateError, match="nearly combinations of others"):
        sf.GaussianGraph(CYCLE, solver="newton").fit(covariance=S, n=100)


def test_a_covariance_frame_is_read_by_the_names_of_rows_and_columns() -> None:
    import pandas as pd

    frame = pd.DataFrame(EMPIRICAL, index=[1, 2, 3, 4], columns=[1, 2, 3, 4])
    expected = sf.GaussianGraph(CYCLE).fit(covariance=frame, n=100)
    shuffled = sf.GaussianGraph(CYCLE).fit(covariance=frame.loc[[3, 1, 4, 2]], n=100)
    np.testing.assert_array_equal(shuffled.precision_, expected.precision_)


class Moments(TypedDict):
    """What is known of rows that are not given themselves."""

    covariance: Floats
    n: int
    sample_mean: Floats


def test_covariances_join_and_leave_as_rows_do() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(60, 3)) @ np.array([[1.0, 0.4, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 1.0]])
    first, second = x[:25], x[25:]
    graph = sf.GaussianGraph([("a", "b"), ("b", "c")], nodes=["a", "b", "c"])

    def given(rows: Floats) -> Moments:
        return {"covariance": np.cov(rows.T, bias=True), "n": len(rows), "sample_mean": rows.mean(axis=0)}

    whole = graph.clone().fit(x, columns=["a", "b", "c"])
    parts = graph.clone().fit(**given(first)).partial_fit(**given(second))
    np.testing.assert_allclose(parts.precision_, whole.precision_, rtol=1e-12)
    np.testing.assert_allclose(parts.mean_, whole.mean_, rtol=1e-12)
    mixed = graph.clone().fit(**given(first)).partial_fit(second, columns=["a", "b", "c"])
    np.testing.assert_allclose(mixed.precision_, whole.precision_, rtol=1e-12)
    alone = parts.unlearn(**given(second))
    np.testing.assert_allclose(alone.precision_, graph.clone().fit(**given(first)).precision_, rtol=1e-9)
    with pytest.raises(sf.OptionError, match="not both"):
        alone.partial_fit(second, covariance=np.eye(3), n=5)


def test_degrees_of_freedom_are_those_of_a_fit() -> None:
    graph = sf.GaussianGraph([("a", "b")], nodes=["a", "b", "c"])
    with pytest.raises(sf.NotFittedError, match="Call fit first"):
        graph.df_  # noqa: B018
    fitted = graph.fit(covariance=np.eye(3), n=10)
    assert fitted.df_ == 2
    assert fitted.set_params(nodes=["a", "b", "c", "d"]).df_ == 2


REGISTERED = ["lbfgs", "newton-cg", "cg"]
SQUARE = [(0, 1), (1, 2), (2, 3), (0, 3)]
PRIORS = {"ml": None, "ridge": sf.Normal(0.5, 2.0), "wishart": sf.Wishart(8.0, np.eye(4))}


@pytest.mark.parametrize("solver", REGISTERED)
@pytest.mark.parametrize(
    "prior", [None, sf.Normal(0.5, 2.0), sf.Wishart(8.0, np.eye(4))], ids=["ml", "ridge", "wishart"]
)
def test_registered_solvers_reach_the_same_precision(solver: Any, prior: Any) -> None:
    S = random_covariance(4, 5)
    best = sf.GaussianGraph(SQUARE, nodes=range(4), prior=prior).fit(covariance=S, n=50)
    other = sf.GaussianGraph(SQUARE, nodes=range(4), prior=prior, solver=solver, tolerance=1e-9).fit(covariance=S, n=50)
    assert other.converged_
    assert "on the free entries of the precision" in other.report_.method
    np.testing.assert_allclose(other.precision_, best.precision_, atol=1e-7)


def test_a_solver_of_somebody_else_is_offered(tmp_path: Path) -> None:
    def solve(objective: extend.Objective) -> Any:
        def state(x: NDArray[np.float64]) -> extend.State:
            value, slope = objective.evaluate(x)
            return extend.State(x, value, float(np.abs(slope).max()), memory={"slope": slope})

        scale = objective.scale()
        assert scale is not None
        return extend.iterate(
            lambda s: state(s.parameters + 0.5 * scale(s.parameters, s.memory["slope"]) * s.memory["slope"]),
            state(objective.start),
            objective.control,
        )

    extend.register_solver(extend.Solver("short-steps-for-graphs", "short steps", solve))
    try:
        S = random_covariance(4, 5)
        graph = sf.GaussianGraph(SQUARE, nodes=range(4), solver="short-steps-for-graphs", tolerance=1e-8)  # type: ignore[arg-type]
        fit = graph.fit(covariance=S, n=50)
        assert fit.converged_
        assert fit.report_.method == "short steps on the free entries of the precision"
        best = sf.GaussianGraph(SQUARE, nodes=range(4)).fit(covariance=S, n=50)
        np.testing.assert_allclose(fit.precision_, best.precision_, atol=1e-6)
    finally:
        unregister("short-steps-for-graphs")


def test_a_solver_for_l1_penalties_is_refused_by_name() -> None:
    with pytest.raises(OptionError, match="'owlqn' needs an L1 penalty, and this objective has none: use 'lbfgs'"):
        sf.GaussianGraph(SQUARE, nodes=range(4), solver="owlqn").fit(covariance=random_covariance(4, 5), n=50)
    with pytest.raises(OptionError, match="solver is 'no'; expected one of 'auto', 'closed-form'"):
        sf.GaussianGraph(SQUARE, solver="no")  # type: ignore[arg-type]


def test_the_moment_gap_is_in_standard_errors_of_each_product() -> None:
    """The variance of x_i x_j is W_ii W_jj + W_ij^2 a row; the gap is that of the totals of all rows."""
    S, n = random_covariance(4, 5), 50
    with pytest.warns(sf.ConvergenceWarning, match="max_iter"):
        fit = sf.GaussianGraph(SQUARE, nodes=range(4), solver="ipf", max_iter=1).fit(covariance=S, n=n)
    W = np.linalg.inv(fit.precision_)
    entries = [(i, i) for i in range(4)] + [(fit.nodes.index(a), fit.nodes.index(b)) for a, b in fit.edges]
    errors = [np.sqrt(n * (W[i, i] * W[j, j] + W[i, j] ** 2)) for i, j in entries]
    gaps = [abs(n * (S[i, j] - W[i, j])) / error for (i, j), error in zip(entries, errors, strict=True)]
    certificate = fit.report_.certificate
    assert certificate.moment_gap == pytest.approx(max(gaps), rel=1e-9)
    assert "nats per unit of an entry of the precision" in certificate.slope_unit
    assert certificate.slope is not None
    assert certificate.slope > 0


# -- Newton's method on random graphs --------------------------------------------------------------------------------


def random_graph(p: int, edges: int, alike: float, seed: int) -> tuple[Floats, list[tuple[int, int]]]:
    """The covariance of 5 p rows of a random graph whose precision has a least eigenvalue of about `alike`."""
    rng = np.random.default_rng(seed)
    joined = rng.permutation(p * (p - 1) // 2)[:edges]
    first, second = (places[joined] for places in np.triu_indices(p, 1))
    K = np.zeros((p, p))
    K[first, second] = rng.uniform(-0.6, 0.6, edges)
    K += K.T
    K += (alike - np.linalg.eigvalsh(K)[0]) * np.eye(p)
    rows = rng.standard_normal((5 * p, p)) @ np.linalg.cholesky(np.linalg.inv(K)).T
    return np.cov(rows.T, bias=True), list(zip(first.tolist(), second.tolist(), strict=True))


@pytest.mark.parametrize(
    ("p", "edges"), [(12, 20), (30, 60), (60, 200), (120, 300)]
)  # The last two have more entries than a factor takes; the last is inverted by SciPy.
@pytest.mark.parametrize("alike", [0.5, 1e-2, 1e-4])
def test_newton_matches_the_edges_of_random_graphs_however_alike_their_columns_are(
    p: int, edges: int, alike: float
) -> None:
    """K is right where it has the zeros of the graph and K^-1 the edges of the rows: that is the whole theorem."""
    for seed in (31, 32):
        S, pairs = random_graph(p, edges, alike, seed)
        fit = sf.GaussianGraph(pairs, nodes=range(p), solver="newton").fit(covariance=S, n=5 * p)
        K, joined = fit.precision_, np.eye(p, dtype=bool)
        joined[tuple(np.array(pairs).T)] = True
        joined |= joined.T
        assert not K[~joined].any()
        spread = np.sqrt(np.diag(S))
        assert np.abs((np.linalg.inv(K) - S) / np.outer(spread, spread))[joined].max() < 1e-9
        assert fit.converged_
        assert fit.n_iter_ <= 25
        assert (fit.report_.certificate.value_gap or 0.0) < 1e-12


def test_the_information_of_entries_is_a_trace_of_products() -> None:
    S, pairs = random_graph(7, 12, 0.4, 2)
    W = np.asarray(np.linalg.inv(S + np.eye(7)))
    W = (W + W.T) / 2
    units = []
    for a, b in [(i, i) for i in range(7)] + pairs:
        E = np.zeros((7, 7))
        E[a, b] = E[b, a] = 1.0
        units.append(E)
    expected = [[0.5 * np.trace(W @ first @ W @ second) for second in units] for first in units]
    np.testing.assert_allclose(entry_information(W, np.array(pairs)), expected, rtol=1e-12, atol=1e-14)


def test_newton_takes_the_same_steps_by_whole_matrices_and_by_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    from suffice.solvers import covariance_newton

    S, pairs = random_graph(60, 200, 0.1, 5)
    graph = sf.GaussianGraph(pairs, nodes=range(60), solver="newton")
    whole = graph.clone().fit(covariance=S, n=300)
    monkeypatch.setattr(covariance_newton, "SPARSE", 10)
    sparse = graph.clone().fit(covariance=S, n=300)
    np.testing.assert_allclose(sparse.precision_, whole.precision_, rtol=1e-9, atol=1e-10)
    assert sparse.n_iter_ == whole.n_iter_


def test_newton_without_regressions_takes_more_steps_to_the_same_maximum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regressions that would cost more than the method itself, as those of dense graphs, give way to the identity."""
    from suffice.solvers import covariance_newton

    S, pairs = random_graph(20, 40, 0.2, 3)
    graph = sf.GaussianGraph(pairs, nodes=range(20), solver="newton")
    usual = graph.clone().fit(covariance=S, n=100)
    monkeypatch.setattr(covariance_newton, "START_COST", 0.0)
    plain = graph.clone().fit(covariance=S, n=100)
    np.testing.assert_allclose(plain.precision_, usual.precision_, rtol=1e-9, atol=1e-10)
    assert plain.n_iter_ > usual.n_iter_


def test_auto_takes_newton_for_small_graphs_and_compiled_regressions_for_large_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from suffice.kernels import choice
    from suffice.solvers.covariance_selection import regressions_pay

    monkeypatch.setattr(choice, "_ready", lambda kernel: True)  # On a new machine they are compiled first.
    S, pairs = random_graph(30, 60, 0.2, 8)
    assert (
        sf.GaussianGraph(pairs, nodes=range(30)).fit(covariance=S, n=150).report_.method.startswith("Newton (the cycle")
    )
    assert [regressions_pay(nodes, 3 * nodes) for nodes in (50, 200, 2_000)] == [False, False, True]


@pytest.mark.parametrize("precision", [1e10, 1e50, 1e150, 1e300])
def test_a_strong_ridge_has_its_maximum(precision: float) -> None:
    """Of one edge without rows that speak for it: n / (2 K_ii) = K_ii ridge + n S_ii / 2 on the diagonal, 0 beside."""
    x, y = np.array([1.0, 1.0, -1.0, -1.0]), np.array([2.0, -2.0, 2.0, -2.0])
    graph = sf.GaussianGraph([("x", "y")], prior=sf.Normal(variance=1.0 / precision)).fit({"x": x, "y": y})
    assert graph.report_.converged
    S, n = np.array([1.0, 4.0]), 4.0
    # The positive root of ridge k^2 + n S k / 2 - n / 2 = 0, without cancellation.
    expected = n / (n * S / 2.0 + np.sqrt((n * S / 2.0) ** 2 + 2.0 * n * precision))
    np.testing.assert_allclose(np.diag(graph.precision_), expected, rtol=1e-8)


@pytest.mark.parametrize("nodes", [40, 130])
def test_products_with_the_information_are_those_of_whole_matrices(nodes: int) -> None:
    rng = np.random.default_rng(nodes)
    pairs = np.array([(i, j) for i in range(nodes) for j in range(i) if rng.random() < 4 / nodes])
    half = rng.normal(size=(nodes, 2 * nodes))
    covariance = half @ half.T / (2 * nodes)
    direction = rng.normal(size=nodes + len(pairs))
    moved = np.diag(direction[:nodes])
    for (i, j), value in zip(pairs, direction[nodes:], strict=True):
        moved[i, j] = moved[j, i] = value
    # Minus the Hessian of (log det K - tr(S K)) / 2 is W V W / 2; an edge stands in K twice.
    image = covariance @ moved @ covariance
    expected = [*(np.diag(image) / 2), *(image[i, j] for i, j in pairs)]
    found = EntryObjective(np.eye(nodes), pairs).products_of(covariance)(direction)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
