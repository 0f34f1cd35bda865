"""The Laplace law against SciPy; it serves as a prior."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import suffice as sf


def test_density_and_samples() -> None:
    law = sf.Laplace(scale=1.5, mean=-0.5)
    x = np.linspace(-4, 4, 9)
    np.testing.assert_allclose(law.log_prob(x), stats.laplace(-0.5, 1.5).logpdf(x), rtol=1e-13)
    assert (law.mean(), law.mode()) == (-0.5, -0.5)
    draws = law.sample(20_000, random_state=0)
    assert stats.kstest(draws, stats.laplace(-0.5, 1.5).cdf).pvalue > 1e-3
    np.testing.assert_array_equal(draws, law.sample(20_000, random_state=0))
    assert sf.Laplace(scale=[1.0, 2.0]).sample(3, random_state=0).shape == (3, 2)


def test_it_is_a_prior_only(tmp_path: Any) -> None:
    with pytest.raises(sf.OptionError, match="positive"):
        sf.Laplace(scale=0.0)
    with pytest.raises(sf.OptionError, match="not fitted"):
        sf.Laplace().fit([1.0])
    law = sf.Laplace(scale=0.3)
    law.write(tmp_path / "prior.json")
    assert sf.read(tmp_path / "prior.json").scale_ == 0.3
    assert law.clone().get_params() == {"scale": 0.3, "mean": 0.0}
