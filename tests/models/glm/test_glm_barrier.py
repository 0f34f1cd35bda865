"""The barrier at the edge of a link's range is for fits that do not come to rest inside it."""

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

import suffice as sf
from suffice.models.glm import edge


def test_counts_whose_means_are_inside_need_no_barrier(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("there is nothing at the edge")

    monkeypatch.setattr(edge, "to_the_edge", never)
    rng = np.random.default_rng(1)
    X = rng.random((600, 2))
    mean = 1 + X @ [0.8, 1.5]
    y = rng.negative_binomial(2.0, 2 / (2 + mean)).astype(float)
    model = sf.GLM("negative_binomial", link="identity").fit(X, y)

    def loss(at: Any) -> float:
        means = at[0] + X @ at[1:3]
        size = np.exp(at[3])
        return np.inf if (means <= 0).any() else -float(stats.nbinom.logpmf(y, size, size / (size + means)).sum())

    options: Any = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 5_000, "maxfev": 5_000}
    best = optimize.minimize(loss, [1.0, 1.0, 1.0, 0.5], method="Nelder-Mead", options=options)
    assert model.converged_
    np.testing.assert_allclose([*model.parameters_, np.log(model.size_)], best.x, rtol=1e-5)


@pytest.mark.parametrize("seed", [27, 51])
def test_counts_that_are_all_0_have_no_error_of_python(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.random((12, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.SufficeWarning)
        try:
            model = sf.GLM("negative_binomial", link="identity").fit(X, np.zeros(12))
        except sf.EstimateError:
            return
    assert model.report_.log_likelihood == pytest.approx(0.0, abs=1e-9)
    assert model.report_.certificate.exists is not True
