"""Prediction intervals beside statsmodels and adaptive quadrature."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf

sm = pytest.importorskip("statsmodels.api")
from scipy import integrate, stats  # noqa: E402

RNG = np.random.default_rng(6)
N = 40
ROWS = pd.DataFrame({"x": RNG.normal(size=N)})
ETA = 0.3 + 0.5 * ROWS["x"]
ROWS["real"] = ETA + RNG.normal(size=N)
ROWS["count"] = RNG.poisson(np.exp(1.0 + ETA))
ROWS["wide"] = RNG.negative_binomial(1.5, 1.5 / (1.5 + np.exp(1.0 + ETA)))
ROWS["size"] = RNG.gamma(2.0, np.exp(ETA) / 2.0)
X = ROWS[["x"]]
NEW = pd.DataFrame({"x": [-2.0, 0.0, 3.0]})


def test_least_squares() -> None:
    peer = sm.OLS(ROWS["real"], sm.add_constant(X)).fit().get_prediction(sm.add_constant(NEW))
    made = sf.GLM().fit(X, ROWS["real"]).prediction_intervals(NEW, 0.9)
    np.testing.assert_allclose(made[:, 1:], peer.conf_int(obs=True, alpha=0.1), rtol=1e-10)
    np.testing.assert_allclose(made[:, 0], peer.predicted_mean, rtol=1e-10)


def laws(model: sf.GLM, family: str) -> Any:
    if family == "poisson":
        return stats.poisson
    if family == "negative_binomial":
        return lambda mean: stats.nbinom(model.size_, model.size_ / (model.size_ + mean))
    return lambda mean: stats.gamma(1.0 / model.dispersion_, scale=model.dispersion_ * mean)


@pytest.mark.parametrize(("family", "y"), [("poisson", "count"), ("negative_binomial", "wide"), ("gamma", "size")])
def test_mixtures(family: Any, y: str) -> None:
    """The share below each end, by an adaptive rule over the linear predictor."""
    model = sf.GLM(family, link="log").fit(X, ROWS[y])
    made, law = model.prediction_intervals(NEW, 0.9), laws(model, family)
    np.testing.assert_allclose(made[:, 0], model.predict(NEW), rtol=1e-12)
    for (_, low, high), x in zip(made, NEW["x"], strict=True):
        row = np.array([1.0, x])
        eta, spread = float(row @ model.parameters_), float(np.sqrt(row @ model.covariance_ @ row))

        def below(value: float, eta: float = eta, spread: float = spread) -> float:
            at = integrate.quad(
                lambda z: law(np.exp(eta + spread * z)).cdf(value) * stats.norm.pdf(z), -9, 9, epsabs=1e-11, limit=200
            )
            return float(at[0])

        if family == "gamma":
            assert below(low) == pytest.approx(0.05, abs=1e-8)
            assert below(high) == pytest.approx(0.95, abs=1e-8)
        else:
            assert below(low) >= 0.05 > below(low - 1.0)
            assert below(high) >= 0.95 > below(high - 1.0)


def test_offsets_and_files(tmp_path: Path) -> None:
    model = sf.GLM("poisson").fit(X, ROWS["count"])
    made = model.prediction_intervals(X)
    path = tmp_path / "rows.csv"
    ROWS.to_csv(path, index=False)
    np.testing.assert_allclose(model.prediction_intervals(path), made, rtol=1e-12)
    twice = model.prediction_intervals(X, exposure=np.full(N, 2.0))
    np.testing.assert_allclose(twice, model.prediction_intervals(X, offset=np.full(N, np.log(2.0))), rtol=1e-12)
    assert (twice[:, 2] > made[:, 2]).all()


def test_what_is_refused() -> None:
    with pytest.raises(sf.OptionError, match="binomial family"):
        sf.GLM("binomial").fit(X, ROWS["count"] > 3).prediction_intervals(X)
    with pytest.raises(sf.EstimateError, match="beyond the range"):
        sf.GLM("gamma", link="identity").fit(X, ROWS["size"]).prediction_intervals({"x": [-9.0]})
    with pytest.raises(sf.OptionError, match="between 0 and 1"):
        sf.GLM().fit(X, ROWS["real"]).prediction_intervals(X, 95)
