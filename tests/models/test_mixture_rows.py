"""Rows of mixtures: columns by name, one column in any form, texts as values; beside densities by hand."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

import suffice as sf

RNG = np.random.default_rng(0)
X = np.column_stack([np.concatenate([RNG.normal(0, 1, 60), RNG.normal(6, 1, 30)]), RNG.normal(size=90)])
ROWS = pd.DataFrame(X, columns=["a", "b"])
ONE = sf.Mixture(sf.Normal(), 2).fit(X[:, 0])


def densities(weights: Any, parts: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.asarray(np.log(sum(weight * part for weight, part in zip(weights, parts, strict=True))))


@pytest.mark.parametrize("component", [sf.MultivariateNormal(), sf.Normal()], ids=["vectors", "columns"])
def test_columns_are_read_by_name(component: Any) -> None:
    mixture = sf.Mixture(component, 2).fit(ROWS)
    if isinstance(component, sf.MultivariateNormal):
        parts = [stats.multivariate_normal(c.mean_, c.covariance_).pdf(X) for c in mixture.components_]
    else:
        parts = [np.exp(c[0].log_prob(X[:, 0]) + c[1].log_prob(X[:, 1])) for c in mixture.components_]
    expected = densities(mixture.weights_, parts)
    for rows in (ROWS, ROWS[["b", "a"]], ROWS.assign(c="x"), X, {"b": X[:, 1], "a": X[:, 0]}):
        np.testing.assert_allclose(mixture.score_samples(rows), expected, rtol=1e-12)
        assert mixture.score(rows) == pytest.approx(expected.mean(), rel=1e-12)
    for method in (mixture.score, mixture.score_samples):
        with pytest.raises(sf.MissingColumnError, match="no column 'a'"):
            method(ROWS.rename(columns={"a": "z"}))


@pytest.mark.parametrize("make", [np.asarray, list, pd.Series, lambda x: x[:, None], lambda x: pd.DataFrame({"x": x})])
def test_one_column_in_any_form(make: Any) -> None:
    mixture = sf.Mixture(sf.Normal(), 2).fit(make(X[:, 0]))
    np.testing.assert_allclose(mixture.weights_, ONE.weights_, rtol=1e-12)
    parts = [stats.norm(c.mean_, np.sqrt(c.variance_)).pdf(X[:, 0]) for c in mixture.components_]
    expected = densities(mixture.weights_, parts)
    np.testing.assert_allclose(mixture.score_samples(make(X[:, 0])), expected, rtol=1e-12)
    assert mixture.score(make(X[:, 0])) == pytest.approx(expected.mean(), rel=1e-12)


def test_scikit_learn_validates_mixtures() -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    scores = selection.cross_val_score(sf.Mixture(sf.Normal(), 2), X[RNG.permutation(90), :1], cv=3)
    assert np.isfinite(scores).all()


def test_texts_are_values() -> None:
    colours = ["red", "blue", "red", "red", "blue", "red"] * 5
    mixture = sf.Mixture(sf.Categorical(), 2).fit(colours)
    assert mixture.components_[0].states_ == ("blue", "red")
    np.testing.assert_allclose(np.exp(mixture.score_samples(["red", "blue"])), [2 / 3, 1 / 3], rtol=1e-9)
    assert mixture.report_.rows == 30


def test_rows_with_missing_values_are_not_scored() -> None:
    for call in (ONE.score, ONE.score_samples):
        with pytest.raises(sf.MissingValueError, match="Row 2 has a missing value; a row is scored as a whole"):
            call([1.0, 2.0, np.nan])


def test_names_stay_with_a_file(tmp_path: Any) -> None:
    mixture = sf.Mixture(sf.MultivariateNormal(), 2).fit(ROWS)
    mixture.write(tmp_path / "mixture.json")
    assert sf.read(tmp_path / "mixture.json").score(ROWS[["b", "a"]]) == mixture.score(ROWS)


def test_a_misspelt_option_of_a_fit_is_one_of_the_mixture() -> None:
    with pytest.raises(sf.CallError, match=r"Mixture.fit has no argument 'n_inti'. Did you mean 'n_init'?"):
        sf.Mixture(sf.Normal(), 2).fit(X[:, 0], n_inti=3)
    with pytest.raises(sf.MissingAttributeError) as caught:
        ONE.predict(X)  # type: ignore[attr-defined]
    assert "from_dict" not in str(caught.value)
