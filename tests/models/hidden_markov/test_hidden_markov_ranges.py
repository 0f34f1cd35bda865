"""Values that float64 cannot compute with are refused by name, without a foreign error or a warning of NumPy."""

import warnings
from typing import Any

import numpy as np
import pytest

import suffice as sf

LAWS: list[Any] = [
    sf.Poisson(),
    sf.Geometric(),
    sf.NegativeBinomial(),
    sf.Gamma(),
    sf.InverseGamma(),
    sf.Exponential(),
    sf.Normal(),
    sf.Normal(mean=0.0),
    sf.Mixture(sf.Poisson(), 2),
    sf.Exponential(prior=sf.Gamma(1.0, 1.0)),
    sf.Poisson(prior=sf.Gamma(1.0, 1.0)),
    [sf.Gamma(), sf.Normal()],
]


@pytest.mark.parametrize("value", [1e154, 1e200, 1e308])
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_huge_values_are_refused_by_name(law: Any, value: float) -> None:
    x = np.random.default_rng(0).poisson(3, 20) + 1.0
    x[7] = value
    data = np.column_stack([x, np.arange(20.0)]) if isinstance(law, list) else x
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(sf.DataError) as caught:
            sf.HiddenMarkovModel(2, law).fit(data)
    spread = "spread" in str(caught.value)  # Normal laws have units, and name those.
    assert spread or repr(value) in str(caught.value)


@pytest.mark.parametrize("law", [sf.Gamma(), sf.InverseGamma(), sf.Exponential(), sf.Normal(mean=0.0)], ids=str)
def test_values_next_to_nothing_are_refused_by_name(law: Any) -> None:
    x = np.random.default_rng(0).gamma(2.0, size=20)
    x[3] = 1e-200
    with pytest.raises(sf.DataError, match="1e-200"):
        sf.HiddenMarkovModel(2, law).fit(x)


def test_a_new_value_is_refused_as_well() -> None:
    model = sf.HiddenMarkovModel(2, sf.Poisson(), tolerance=1e-2).fit([1, 2, 1, 8, 9, 7, 1, 2, 9, 8])
    with pytest.raises(sf.DataError, match=r"1e\+16"):
        model.predict([1.0, 1e16])
    assert np.isfinite(model.score([3.0, 1e6]))


@pytest.mark.parametrize("unit", [1e-140, 1e-30, 1e30, 1e140])
def test_the_unit_of_a_column_does_not_matter(unit: float) -> None:
    x = np.random.default_rng(1).gamma(np.repeat([2.0, 20.0], 20))
    plain = sf.HiddenMarkovModel(2, sf.Gamma(), tolerance=1e-8, max_iter=2000).fit(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scaled = sf.HiddenMarkovModel(2, sf.Gamma(), tolerance=1e-8, max_iter=2000).fit(x * unit)
    np.testing.assert_allclose(scaled.transitions_, plain.transitions_, atol=1e-6)
