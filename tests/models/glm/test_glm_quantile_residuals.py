"""Randomised quantile residuals beside the distributions of SciPy."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf

stats = pytest.importorskip("scipy.stats")

RNG = np.random.default_rng(6)
N = 50
ROWS = pd.DataFrame({"x": RNG.normal(size=N)})
ETA = 0.3 + 0.5 * ROWS["x"]
ROWS["real"] = ETA + RNG.normal(size=N)
ROWS["count"] = RNG.poisson(np.exp(ETA))
ROWS["wide"] = RNG.negative_binomial(1.5, 1.5 / (1.5 + np.exp(1.0 + ETA)))
ROWS["size"] = RNG.gamma(2.0, np.exp(ETA) / 2.0)
ROWS["n"] = RNG.integers(1, 9, N)
ROWS["won"] = RNG.binomial(ROWS["n"], 1.0 / (1.0 + np.exp(-ETA)))
ROWS["ill"] = (ROWS["won"] > 2).astype(int)
X = ROWS[["x"]]


def drawn(law: Any, y: Any) -> Any:
    low = law.cdf(y - 1)
    return stats.norm.ppf(low + np.random.default_rng(3).random(N) * (law.cdf(y) - low))


def test_densities() -> None:
    real = sf.GLM().fit(X, ROWS["real"])
    made = real.residuals(X, ROWS["real"], kind="quantile")
    np.testing.assert_allclose(made, real.residuals(X, ROWS["real"], kind="response") / np.sqrt(real.dispersion_))
    positive = sf.GLM("gamma", link="log").fit(X, ROWS["size"])
    phi, mean = positive.dispersion_, positive.predict(X)
    law = stats.gamma(1.0 / phi, scale=phi * mean)
    made = positive.residuals(X, ROWS["size"], kind="quantile")
    np.testing.assert_allclose(made, stats.norm.ppf(law.cdf(ROWS["size"])), rtol=1e-9)
    late = sf.GLM("inverse_gaussian", link="log").fit(X, ROWS["size"])
    phi, mean = late.dispersion_, late.predict(X)
    law = stats.invgauss(mean * phi, scale=1.0 / phi)
    assert law.mean() == pytest.approx(mean)
    made = late.residuals(X, ROWS["size"], kind="quantile")
    np.testing.assert_allclose(made, stats.norm.ppf(law.cdf(ROWS["size"])), rtol=1e-9)


def test_counts(tmp_path: Path) -> None:
    model = sf.GLM("poisson").fit(X, ROWS["count"])
    made = model.residuals(X, ROWS["count"], kind="quantile", random_state=3)
    np.testing.assert_allclose(made, drawn(stats.poisson(model.predict(X)), ROWS["count"]), rtol=1e-9)
    assert not np.array_equal(made, model.residuals(X, ROWS["count"], kind="quantile", random_state=4))
    path = tmp_path / "rows.csv"
    ROWS.to_csv(path, index=False)
    np.testing.assert_allclose(model.residuals(path, "count", kind="quantile", random_state=3), made, rtol=1e-9)
    wide = sf.GLM("negative_binomial").fit(X, ROWS["wide"])
    law = stats.nbinom(wide.size_, wide.size_ / (wide.size_ + wide.predict(X)))
    made = wide.residuals(X, ROWS["wide"], kind="quantile", random_state=3)
    np.testing.assert_allclose(made, drawn(law, ROWS["wide"]), rtol=1e-8)


def test_trials_and_labels() -> None:
    model = sf.GLM("binomial").fit(X, ROWS["won"], trials=ROWS["n"])
    made = model.residuals(X, ROWS["won"], kind="quantile", random_state=3, trials=ROWS["n"])
    law = stats.binom(ROWS["n"], model.predict(X, kind="response"))
    np.testing.assert_allclose(made, drawn(law, ROWS["won"]), rtol=1e-9)
    single = sf.GLM("binomial").fit(X, ROWS["ill"])
    made = single.residuals(X, ROWS["ill"], kind="quantile", random_state=3)
    law = stats.bernoulli(single.predict(X, kind="response"))
    np.testing.assert_allclose(made, drawn(law, ROWS["ill"]), rtol=1e-9)


def test_far_tails_have_their_digits() -> None:
    model = sf.GLM("poisson").fit(X, ROWS["count"])
    far = {"x": [0.0]}
    mean = model.predict(far)[0]
    made = model.residuals(far, [80], kind="quantile", random_state=3)[0]
    share = np.random.default_rng(3).random(1)[0]
    law = stats.poisson(mean)
    expected = stats.norm.isf(law.sf(80) + (1.0 - share) * law.pmf(80))
    assert made == pytest.approx(expected, rel=1e-9)
    assert made > 15.0


def test_residuals_of_the_true_family_are_normal() -> None:
    """Those of the wrong family are not: Kolmogorov's distance of 4,000 rows tells both."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4000, 1))
    y = rng.negative_binomial(1.0, 1.0 / (1.0 + np.exp(0.5 + 0.4 * x[:, 0])))
    distances = [
        stats.kstest(sf.GLM(family).fit(x, y).residuals(x, y, kind="quantile", random_state=0), "norm").statistic
        for family in ("negative_binomial", "poisson")
    ]
    assert distances[0] < 1.36 / np.sqrt(4000)
    assert distances[1] > 0.1


def test_what_is_refused() -> None:
    model = sf.GLM("poisson").fit(X, ROWS["count"])
    with pytest.raises(sf.OptionError, match="belongs to kind='quantile'"):
        model.residuals(X, ROWS["count"], kind="pearson", random_state=3)
    with pytest.raises(sf.OptionError, match="has no effect"):
        sf.GLM().fit(X, ROWS["real"]).residuals(X, ROWS["real"], kind="quantile", random_state=3)
    with pytest.raises(sf.OptionError, match="quasipoisson family does not tell"):
        sf.GLM("quasipoisson").fit(X, ROWS["count"]).residuals(X, ROWS["count"], kind="quantile")
    with pytest.raises(sf.DataError, match="no count"):
        model.residuals(X, ROWS["count"] + 0.5, kind="quantile")
