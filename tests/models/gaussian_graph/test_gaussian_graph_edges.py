"""Partial correlations with intervals, and the deviance of leaving each edge out."""

import numpy as np
import pytest
from scipy import optimize
from scipy.stats import chi2, norm

import suffice as sf
from curvature import hessian

NAMES = ["mechanics", "vectors", "algebra", "analysis", "statistics"]
# Mardia, Kent and Bibby (1979), Multivariate Analysis, table 1.2.1: covariances of marks of 88 students.
MARKS = np.array(
    [
        [302.293, 125.777, 100.425, 105.065, 116.071],
        [125.777, 170.878, 84.190, 93.597, 97.887],
        [100.425, 84.190, 111.603, 110.839, 120.486],
        [105.065, 93.597, 110.839, 217.876, 153.768],
        [116.071, 97.887, 120.486, 153.768, 294.372],
    ]
)
PAIRS = [(one, other) for k, one in enumerate(NAMES) for other in NAMES[k + 1 :]]
BUTTERFLY = [("mechanics", "vectors", "algebra"), ("algebra", "analysis", "statistics")]
CYCLE = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
ROWS = np.random.default_rng(5).normal(size=(60, 4)) @ (np.eye(4) + 0.5 * np.roll(np.eye(4), 1, axis=1))


def correlations(S: np.ndarray) -> np.ndarray:
    K = np.linalg.inv(S)
    return -K / np.sqrt(np.outer(np.diag(K), np.diag(K)))


def test_with_all_edges_errors_and_deviances_have_closed_forms() -> None:
    graph = sf.GaussianGraph(PAIRS, nodes=NAMES).fit(covariance=MARKS, n=88)
    r = correlations(MARKS)[np.triu_indices(5, 1)]
    table = graph.edge_correlations(0.9)
    np.testing.assert_allclose(table.params, r, rtol=1e-9)
    np.testing.assert_allclose(table.bse, (1.0 - r**2) / np.sqrt(88), rtol=1e-9)
    reach = norm.ppf(0.95) / np.sqrt(88)
    ends = np.column_stack((np.tanh(np.arctanh(r) - reach), np.tanh(np.arctanh(r) + reach)))
    np.testing.assert_allclose(table.conf_int(), ends, rtol=1e-9)
    np.testing.assert_allclose(table.pvalues, 2 * norm.sf(np.abs(np.arctanh(r)) * np.sqrt(88)), rtol=1e-8)
    deviances = graph.edge_deviances()
    expected = -88 * np.log1p(-(r**2))
    assert [name for name, _ in deviances.rows] == [f"{one} - {other}" for one, other in PAIRS]
    found = np.array([values for _, values in deviances.rows])
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-8)
    np.testing.assert_array_equal(found[:, 1], 1.0)
    np.testing.assert_allclose(found[:, 2], chi2.sf(expected, 1), rtol=1e-6)


def test_in_a_chordal_graph_an_edge_of_one_clique_costs_what_it_costs_there() -> None:
    """Whittaker (1990): only the clique that holds the edge matters."""
    graph = sf.GaussianGraph(BUTTERFLY, nodes=NAMES).fit(covariance=MARKS, n=88)
    found = {name: values[0] for name, values in graph.edge_deviances().rows}
    for clique in ([0, 1, 2], [2, 3, 4]):
        r = correlations(MARKS[np.ix_(clique, clique)])
        for one, other in ((0, 1), (0, 2), (1, 2)):
            name = f"{NAMES[clique[one]]} - {NAMES[clique[other]]}"
            assert found[name] == pytest.approx(-88 * np.log1p(-(r[one, other] ** 2)), abs=1e-8)


def test_in_a_cycle_errors_are_those_of_the_curvature_of_the_likelihood() -> None:
    graph = sf.GaussianGraph(CYCLE, nodes=list("abcd")).fit(ROWS, columns=list("abcd"))
    places = [(k, k) for k in range(4)] + [
        (graph.nodes.index(one), graph.nodes.index(other)) for one, other in graph.edges
    ]
    S = np.cov(ROWS.T, ddof=0)

    def precision(point: np.ndarray) -> np.ndarray:
        K = np.zeros((4, 4))
        for (i, j), entry in zip(places, point, strict=True):
            K[i, j] = K[j, i] = entry
        return K

    def value(point: np.ndarray) -> float:
        K = precision(point)
        return 0.5 * len(ROWS) * (float(np.linalg.slogdet(K)[1]) - float(np.sum(S * K)))

    def partial(point: np.ndarray) -> np.ndarray:
        K = precision(point)
        return np.array([-K[i, j] / np.sqrt(K[i, i] * K[j, j]) for i, j in places[4:]])

    here = np.array([graph.precision_[i, j] for i, j in places])
    slopes = optimize.approx_fprime(here, partial, 1e-7)
    covariance = slopes @ np.linalg.inv(-hessian(value, here)) @ slopes.T
    table = graph.edge_correlations()
    np.testing.assert_allclose(table.params, partial(here), rtol=1e-10)
    np.testing.assert_allclose(table.cov_params(), covariance, rtol=1e-4, atol=1e-8)
    less = sf.GaussianGraph(CYCLE[1:], nodes=list("abcd")).fit(ROWS, columns=list("abcd"))
    test = sf.likelihood_ratio_test(less, graph)
    name, values = graph.edge_deviances().rows[0]
    assert name == "a - b"
    assert values == pytest.approx((test.statistic, 1.0, test.p_value), abs=1e-9)


def test_a_single_edge_can_be_left_out_and_a_prior_has_no_deviance() -> None:
    graph = sf.GaussianGraph([("a", "b")], mean="zero").fit(ROWS[:, :2], columns=["a", "b"])
    S = ROWS[:, :2].T @ ROWS[:, :2]
    r = S[0, 1] / np.sqrt(S[0, 0] * S[1, 1])
    assert graph.edge_deviances().rows[0][1][0] == pytest.approx(-60 * np.log1p(-(r**2)), abs=1e-9)
    held = sf.GaussianGraph(CYCLE, prior=sf.Wishart(8, np.eye(4))).fit(ROWS, columns=list("abcd"))
    assert "information of the rows" in str(held.edge_correlations())
    with pytest.raises(sf.EstimateError, match="MAP"):
        held.edge_deviances()
    with pytest.raises(sf.OptionError, match="level"):
        held.edge_correlations(95)
