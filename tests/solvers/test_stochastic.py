"""Stochastic ascent: one step by hand, a noisy quadratic to its maximum, checkpoints to the bit."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.errors import ConvergenceWarning, OptionError
from suffice.fitting.control import Control
from suffice.solvers.stochastic import DELAY, LONGEST, AscentSteps, ascend, stochastic_ascent


def test_one_update_goes_uphill_by_the_step() -> None:
    x, gradient, spread = np.array([0.0, 1.0, -2.0]), np.array([0.2, -0.1, 40.0]), np.array([1.0, 0.5, 2.0])
    found = ascend(x, gradient, spread, 0.1)
    # x + step g / spread^2; the last one is cut at LONGEST / spread.
    np.testing.assert_allclose(found, [0.02, 1.0 - 0.04, -2.0 + LONGEST / 2.0], rtol=1e-15)


def test_steps_fall_by_the_power_of_their_number() -> None:
    steps = AscentSteps(0.8, 0.6)
    for t in (0, 7, 100, 5000):
        assert steps.at(t, 99.0) == pytest.approx(0.8 / (1.0 + t / DELAY) ** 0.6, rel=1e-15)
    assert AscentSteps(lambda t: 1.0 / (t + 1)).at(3, 99.0) == 0.25
    adaptive = AscentSteps()
    assert adaptive.adapted(0.5, -3.0, 1.0) == 0.25
    assert adaptive.adapted(0.5, -0.5, 1.0) == 0.5
    assert adaptive.adapted(0.5, 3.0, 1.0) == pytest.approx(0.55)


@pytest.mark.parametrize("wrong", [{"size": 0.0}, {"size": -1.0}, {"decay": 1.5}])
def test_steps_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        AscentSteps(**wrong)


CENTRE = np.array([1.0, -2.0, 0.5])
CURVATURE = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 0.5]])


def noisy(x: np.ndarray, chains: dict[str, Any], *, measuring: bool) -> np.ndarray:
    """The slope of a quadratic with noise that depends on a counter, which stands for the chains."""
    chains["count"] = int(chains["count"]) + 1
    noise = np.random.default_rng(chains["count"]).normal(0.0, 0.1, 3)
    return np.asarray(CURVATURE @ (CENTRE - x) + noise)


def ascent(control: Control) -> Any:
    spread = np.sqrt(np.diag(CURVATURE))
    return stochastic_ascent(noisy, np.zeros(3), {"count": 0}, control, spread=spread, noise=0.05, problem="quadratic")


def test_a_noisy_quadratic_reaches_its_maximum() -> None:
    found = ascent(Control(max_iter=50_000, tolerance=1.5e-2))
    assert found.converged
    slope = np.abs(CURVATURE @ (CENTRE - found.state.parameters)) / np.sqrt(np.diag(CURVATURE))
    # The averaged iterate is far better than one iterate, whose noise is of the size of 0.1.
    assert slope.max() < 3e-2


def test_an_interrupted_ascent_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    whole = ascent(Control(max_iter=50_000, tolerance=1.5e-2))
    path = tmp_path / "walk.suffice"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        first = ascent(Control(max_iter=130, tolerance=1.5e-2, checkpoint=path))
    assert not first.converged
    assert path.exists()
    second = ascent(Control(max_iter=50_000, tolerance=1.5e-2, checkpoint=path))
    assert (second.state.parameters == whole.state.parameters).all()
    assert second.state.iteration == whole.state.iteration


def test_the_limit_is_no_convergence() -> None:
    found = ascent(Control(max_iter=60, tolerance=1e-9))
    assert re.search("max_iter", found.warning)
    assert not found.converged
    assert found.stop_reason == "max_iter"
