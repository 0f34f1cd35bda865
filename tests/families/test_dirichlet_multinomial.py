"""The Dirichlet-multinomial law against scipy.stats, enumeration and draws of the categorical law."""

import itertools
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import suffice as sf


def all_counts(total: int, size: int) -> np.ndarray:
    """Every way to divide the draws among the states."""
    found = [row for row in itertools.product(range(total + 1), repeat=size) if sum(row) == total]
    return np.array(found)


@pytest.mark.parametrize(("total", "alpha"), [(4, [1.0, 2.0, 0.5]), (0, [1.0, 2.0]), (7, [1e-3, 30.0]), (3, [2.0])])
def test_evaluation_equals_scipy(total: int, alpha: list[float]) -> None:
    law = sf.DirichletMultinomial(total, alpha)
    counts = all_counts(total, len(alpha))
    expected = stats.dirichlet_multinomial.logpmf(counts, alpha, np.array(total))
    np.testing.assert_allclose(law.log_prob(counts), expected, rtol=1e-10, atol=1e-12)
    mass = np.exp(law.log_prob(counts))
    assert mass.sum() == pytest.approx(1, rel=1e-12)
    np.testing.assert_allclose(law.mean(), mass @ counts, rtol=1e-12)
    away = counts - law.mean()
    np.testing.assert_allclose(law.covariance(), (away * mass[:, None]).T @ away, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(law.variance(), np.diag(law.covariance()))


@given(
    st.integers(0, 9),
    st.lists(st.one_of(st.floats(0.05, 0.95), st.just(1.0), st.floats(1.05, 12)), min_size=1, max_size=4),
)
def test_mode_is_the_largest_mass(total: int, alpha: list[float]) -> None:
    law = sf.DirichletMultinomial(total, alpha)
    mode = law.mode()
    assert mode.sum() == total
    assert float(law.log_prob(mode)) == pytest.approx(
        float(law.log_prob(all_counts(total, len(alpha))).max()), abs=1e-9
    )


def test_mode_of_many_draws_is_near_the_mode_of_the_probabilities() -> None:
    alpha = np.array([3.0, 1.5, 6.0, 0.5])
    mode = sf.DirichletMultinomial(10**12, alpha).mode()
    votes = np.maximum(alpha - 1, 0)
    np.testing.assert_allclose(mode, 1e12 * votes / votes.sum(), atol=3)
    assert mode.sum() == 10**12


def test_rows_that_miss_the_total_have_no_mass() -> None:
    law = sf.DirichletMultinomial(3, [1, 2])
    rows = np.array([[3, 1], [-1, 4], [1.5, 1.5], [np.nan, 3], [np.inf, 0]])
    np.testing.assert_array_equal(law.log_prob(rows), np.full(5, -np.inf))
    assert law.log_prob([1, 2]).shape == ()
    with pytest.raises(sf.OptionError, match="last axis"):
        law.log_prob([1, 1, 1])


def test_large_alpha_approaches_the_multinomial_law() -> None:
    p, counts = np.array([0.2, 0.3, 0.5]), np.array([4, 1, 5])
    law = sf.DirichletMultinomial(10, p * 1e13)
    assert float(law.log_prob(counts)) == pytest.approx(float(stats.multinomial(10, p).logpmf(counts)), rel=1e-10)


def test_categorical_predicts_the_counts_of_future_rows() -> None:
    fitted = sf.Categorical(states=["a", "b", "c"], prior=sf.Dirichlet([1, 2, 0.5])).fit(["a", "b", "a", "a"])
    law = fitted.predictive_counts(1)
    one_row = fitted.predictive_.log_prob(["a", "b", "c"])
    np.testing.assert_allclose(law.log_prob(np.eye(3)), one_row, rtol=1e-13)
    # Two rows: the chain rule over one-step predictions, in both orders.
    second = sf.Categorical(states=["a", "b", "c"], prior=fitted.posterior_).fit(["a"]).predictive_.log_prob(["c"])
    chain = math.log(2) + float(one_row[0]) + float(second[0])
    assert float(fitted.predictive_counts(2).log_prob([1, 0, 1])) == pytest.approx(chain, rel=1e-12)
    mixed = sf.Categorical(states=["a", "b"], prior=sf.DirichletMixture([0.5, 0.5], [[1, 1], [2, 3]])).fit(["a"])
    with pytest.raises(sf.OptionError, match="Dirichlet posterior"):
        mixed.predictive_counts(2)
    with pytest.raises(sf.OptionError, match="prior="):
        sf.Categorical().fit(["a"]).predictive_counts(2)


def test_samples_are_reproducible_and_follow_the_law() -> None:
    law = sf.DirichletMultinomial(3, [1.0, 2.0, 0.5])
    draws = law.sample(20_000, random_state=0)
    np.testing.assert_array_equal(draws, law.sample(20_000, random_state=0))
    counts = all_counts(3, 3)
    expected = 20_000 * np.exp(law.log_prob(counts))
    observed = (draws[:, None, :] == counts[None]).all(axis=2).sum(axis=0)
    assert observed.sum() == 20_000
    assert stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(counts) - 1) > 1e-4


def test_options_and_files(tmp_path: Path) -> None:
    law = sf.DirichletMultinomial(total=5, alpha=[1, 2])
    law.write(tmp_path / "law.json")
    for back in (sf.read(tmp_path / "law.json"), pickle.loads(pickle.dumps(law))):
        assert back.total_ == 5
        np.testing.assert_array_equal(back.alpha_, [1, 2])
    for total in (-1, 1.5, np.inf, "x", [1]):
        with pytest.raises(sf.OptionError, match="total"):
            sf.DirichletMultinomial(total, [1, 2])  # type: ignore[arg-type]
    for alpha in ([], [0, 1], [[1, 2]], [np.nan], 3.0):
        with pytest.raises(sf.OptionError, match="alpha"):
            sf.DirichletMultinomial(3, alpha)
    with pytest.raises(sf.OptionError, match="not fitted"):
        law.fit([[1, 2]])
