"""Newton's method on functions whose maximum is known."""

import math
import re

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, polygamma

import suffice as sf
from suffice.fitting.control import Control
from suffice.solvers.newton import newton

Floats = NDArray[np.float64]


def test_a_quadratic_takes_one_step() -> None:
    centre, curve = np.array([3.0, -2.0]), np.array([[4.0, 1.0], [1.0, 2.0]])

    def function(x: Floats) -> tuple[float, Floats, Floats]:
        away = x - centre
        return float(-0.5 * away @ curve @ away), -curve @ away, curve

    outcome = newton(function, np.array([50.0, 70.0]), Control(tolerance=1e-9))
    np.testing.assert_allclose(outcome.state.parameters, centre, rtol=1e-14)
    assert (outcome.state.iteration, outcome.converged) == (1, True)


def test_steps_are_halved_at_the_edge_of_the_domain() -> None:
    # log x - x / 1000 from x = 9000: the full step leads far below zero, where the logarithm has no value.
    def function(x: Floats) -> tuple[float, Floats, Floats]:
        value = math.log(x[0]) - x[0] / 1000 if x[0] > 0 else -math.inf
        return value, np.array([1 / x[0] - 1e-3]), np.array([[x[0] ** -2]])

    outcome = newton(function, np.array([9000.0]), Control(tolerance=1e-10))
    assert outcome.state.parameters[0] == pytest.approx(1000, rel=1e-9)
    assert np.all(np.diff(outcome.history) > -1e-12)
    with pytest.raises(sf.EstimateError, match="not finite at the start"):
        newton(function, np.array([-1.0]), Control())


def test_rounding_of_the_gradient_counts_as_converged_where_its_size_is_known() -> None:
    # The terms of digamma(a) = m are near 20 and their rounding, here made coarse and visible, of the order of 1e-14;
    # with a = 5e8 that is a decrement of the order of 1e-10, which no step makes smaller.
    shape = 5e8
    mean = float(digamma(shape))

    def function(x: Floats) -> tuple[float, Floats, Floats]:
        value = float(x[0] * mean - gammaln(x[0])) if x[0] > 0 else -math.inf
        noise = 1e-14 * (1.5 + math.sin(x[0]))
        return value, np.array([mean - digamma(x[0]) + noise]), np.array([[polygamma(1, x[0])]])

    start = np.array([4.4e8])
    outcome = newton(function, start, Control(tolerance=1e-14), magnitude=np.array([mean]))
    assert outcome.converged
    assert outcome.state.parameters[0] == pytest.approx(shape, rel=1e-9)
    stalled = newton(function, start, Control(tolerance=1e-30))
    assert re.search("stalled", stalled.warning)
    assert not stalled.converged
    assert stalled.stop_reason == "stalled"


def test_the_limit_on_steps_is_kept() -> None:
    def function(x: Floats) -> tuple[float, Floats, Floats]:
        return float(x[0] - math.exp(x[0])), np.array([1 - math.exp(x[0])]), np.array([[math.exp(x[0])]])

    outcome = newton(function, np.array([5.0]), Control(max_iter=2))
    assert re.search("max_iter", outcome.warning)
    assert (outcome.state.iteration, outcome.converged, outcome.stop_reason) == (2, False, "max_iter")
    assert newton(function, np.array([5.0]), Control()).state.parameters[0] == pytest.approx(0, abs=1e-10)
