"""Columns that nearly say the same as others, or as a constant: what is claimed about the maximum must be true there."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp

import suffice as sf

Floats = NDArray[np.float64]


def crossing(overlap: float) -> tuple[Floats, Floats]:
    """A time and a label that turns from 0 to 1, but for two rows `overlap` apart."""
    rng = np.random.default_rng(5)
    early, late = rng.integers(0, 50_000, 100), rng.integers(50_000, 100_000, 100)
    z = np.r_[early, late, 50_000 + overlap, 50_000].astype(np.float64)
    return z, np.r_[np.zeros(100), np.ones(100), 0.0, 1.0]


def best_of_binary(z: Floats, y: Floats) -> tuple[float, float, float]:
    """The largest log-likelihood of a logit with one column, its slope, and the standard error of the slope."""
    unit = (z - 50_000.0) / 25.0

    def loss(beta: Floats) -> float:
        eta = beta[0] + beta[1] * unit
        return -float(np.where(y > 0.0, log_expit(eta), log_expit(-eta)).sum())

    found = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-13})
    p = expit(found.x[0] + found.x[1] * unit)
    X = np.column_stack([np.ones_like(unit), unit])
    errors = np.sqrt(np.diag(np.linalg.inv((X * (p * (1.0 - p))[:, None]).T @ X)))
    return -float(found.fun), float(found.x[1]) / 25.0, float(errors[1]) / 25.0


@pytest.mark.parametrize("overlap", [20.0, 5.0])
@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
def test_a_fit_that_has_not_arrived_does_not_say_so(overlap: float) -> None:
    """The information is definite at the start, and no more at the result; sparse columns have no exact root."""
    z, y = crossing(overlap)
    best, _, _ = best_of_binary(z, y)
    model = sf.GLM("binomial").fit(sparse.csr_array((1.7e9 + z)[:, None]), y)
    assert (best - model.log_likelihood_) / len(y) > 1e-4
    assert not model.converged_
    assert model.stop_reason_ == "flat"
    assert model.report_.certificate.value_gap is None


def test_a_flat_likelihood_warns_once() -> None:
    z, y = crossing(20.0)
    with pytest.warns(sf.ConvergenceWarning, match="flat") as told:
        sf.GLM("binomial").fit(sparse.csr_array((1.7e9 + z)[:, None]), y)
    assert len(told) == 1
