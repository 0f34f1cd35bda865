"""Distributions on arrays with a leading axis of cells: each cell is what SciPy, and the family of one, say it is."""

import numpy as np
import pytest
from scipy import stats

import suffice as sf
from suffice.families.categoricals import Categoricals
from suffice.families.normals import MultivariateNormals, Normals

RNG = np.random.default_rng(3)
COUNTS = np.array([[[3.0, 0.0, 1.5], [2.0, 2.0, 6.0]], [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]])
TABLE = RNG.dirichlet(np.ones(3), size=(2, 2))
CODES = np.array([0, 2, -1, 1, 1])


def test_rows_of_probabilities_are_counts_over_their_sum() -> None:
    found = Categoricals.most_likely(COUNTS, before=TABLE).probabilities
    np.testing.assert_allclose(found[0, 0], [3 / 4.5, 0, 1.5 / 4.5])
    np.testing.assert_array_equal(found[1, 0], TABLE[1, 0])
    assert np.isnan(Categoricals.most_likely(COUNTS).probabilities[1, 0]).all()
    np.testing.assert_array_equal(Categoricals.most_likely(COUNTS, before=TABLE, least=1.0).probabilities[1], TABLE[1])


def test_every_cell_of_a_table_is_a_categorical_distribution() -> None:
    cells = Categoricals(TABLE)
    logs, entropies = cells.log_prob(CODES), cells.entropy()
    lost, values = cells.shortfall(COUNTS), cells.log_likelihood(COUNTS)
    gaps, decrements = cells.gap(COUNTS)
    assert logs.shape == (5, 2, 2)
    np.testing.assert_allclose(np.exp(logs), cells.prob(CODES))
    for place in np.ndindex(2, 2):
        law = sf.Categorical(probabilities=TABLE[place])
        np.testing.assert_array_equal(logs[(slice(None), *place)], law.log_prob([0, 2, None, 1, 1]))
        assert entropies[place] == pytest.approx(stats.entropy(TABLE[place]))
        n, p = COUNTS[place], TABLE[place]
        assert values[place] == pytest.approx(sum(k * np.log(q) for k, q in zip(n, p, strict=True)))
        if n.sum() == 0:
            assert lost[place] == gaps[place] == decrements[place] == 0
            continue
        share = n / n.sum()
        assert lost[place] == pytest.approx(stats.entropy(share, p))
        assert gaps[place] == pytest.approx(np.max(np.abs(share - p) / np.sqrt(p * (1 - p))))
        # Neyman's chi-square with the expected shares below.
        assert decrements[place] ** 2 == pytest.approx(((share - p) ** 2 / p).sum())


def test_divergences_and_free_parameters_of_rows() -> None:
    other = Categoricals(TABLE[::-1])
    np.testing.assert_allclose(Categoricals(TABLE).divergence(other), stats.entropy(TABLE, TABLE[::-1], axis=-1))
    hard = Categoricals(np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]))
    assert hard.divergence(Categoricals(hard.probabilities[::-1])).tolist() == [np.inf, np.log(2)]
    assert Categoricals(TABLE).n_params().tolist() == [[2, 2], [2, 2]]
    assert hard.n_params(hard.probabilities > 0).tolist() == [1, 0]


def test_draws_follow_their_cells() -> None:
    drawn = Categoricals(TABLE).sample(20_000, np.random.default_rng(0))
    assert drawn.shape == (20_000, 2, 2)
    for place in np.ndindex(2, 2):
        shares = np.bincount(drawn[(slice(None), *place)], minlength=3) / 20_000
        np.testing.assert_allclose(shares, TABLE[place], atol=0.02)


X = RNG.normal(size=(40, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, -2.0]


def test_every_cell_is_a_normal_distribution() -> None:
    n, average = np.full(3, 40.0), X.mean(axis=0)
    scatter = ((X - average) ** 2).sum(axis=0)
    cells = Normals.most_likely(n, average, scatter)
    for at in range(3):
        law = sf.Normal().fit(X[:, at])
        assert (cells.mean[at], cells.variance[at]) == pytest.approx((law.mean_, law.variance_), rel=1e-12)
        assert cells.log_likelihood(n, average, scatter)[at] == pytest.approx(law.log_likelihood_, rel=1e-12)
        np.testing.assert_allclose(cells.log_prob(X[:, 0])[:, at], law.log_prob(X[:, 0]), rtol=1e-12)
        assert cells.entropy()[at] == pytest.approx(law.entropy(), rel=1e-12)
    spread = np.sqrt(cells.variance)
    np.testing.assert_allclose(cells.log_prob(X[:, 1]), stats.norm.logpdf(X[:, [1]], cells.mean, spread), rtol=1e-12)
    other = Normals(cells.mean + 1, cells.variance * 2)
    expected = 0.5 * (0.5 + 1 / (2 * cells.variance) - 1 + np.log(2))
    np.testing.assert_allclose(cells.divergence(other), expected, rtol=1e-12)
    held = Normals.most_likely(n, average, scatter, least=1.0)
    assert held.variance.tolist() == np.maximum(cells.variance, 1.0).tolist()
    assert np.isnan(Normals.most_likely(np.zeros(1), np.zeros(1), np.zeros(1)).mean).all()
    drawn = cells.sample(20_000, np.random.default_rng(1))
    np.testing.assert_allclose(drawn.mean(axis=0), cells.mean, atol=0.05 * spread.max())


def test_every_cell_is_a_multivariate_normal_distribution() -> None:
    parts = [X, X[:20] * 2]
    n = np.array([float(len(part)) for part in parts])
    average = np.stack([part.mean(axis=0) for part in parts])
    scatter = np.stack([len(part) * np.cov(part.T, bias=True) for part in parts])
    cells = MultivariateNormals.most_likely(n, average, scatter)
    logs, values = cells.log_prob(X), cells.log_likelihood(n, average, scatter)
    assert logs.shape == (40, 2)
    for at, part in enumerate(parts):
        law = sf.MultivariateNormal().fit(part)
        np.testing.assert_allclose(cells.covariance[at], law.covariance_, rtol=1e-10)
        np.testing.assert_allclose(
            logs[:, at], stats.multivariate_normal.logpdf(X, law.mean_, law.covariance_), rtol=1e-10
        )
        assert values[at] == pytest.approx(law.log_likelihood_, rel=1e-12)
        assert cells.entropy()[at] == pytest.approx(law.entropy(), rel=1e-12)
    moved = MultivariateNormals(cells.mean + 1, cells.covariance * 2)
    mine, theirs = (sf.MultivariateNormal(c.mean[0], c.covariance[0]) for c in (cells, moved))
    assert cells.divergence(moved)[0] == pytest.approx(mine.kl_divergence(theirs), rel=1e-12)
    drawn = cells.sample(20_000, np.random.default_rng(2))
    np.testing.assert_allclose(np.cov(drawn[:, 1].T), cells.covariance[1], rtol=0.1, atol=0.3)
    assert cells.n_params(3) == 9
