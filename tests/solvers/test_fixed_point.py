"""Climbing by a monotone map: plain steps, extrapolated ones, and what is refused."""

import numpy as np
import pytest

from suffice.errors import EstimateError, OptionError
from suffice.fitting.control import Control
from suffice.solvers.fixed_point import FixedPoint, fixed_point


def quadratic(rates: np.ndarray, target: np.ndarray) -> FixedPoint:
    """Ascent of -(x - target)' diag(1 - rates) (x - target) / 2 by x -> target + rates (x - target)."""

    def evaluate(x: np.ndarray) -> tuple[float, np.ndarray]:
        away = x - target
        return -0.5 * float(away @ ((1 - rates) * away)), target + rates * away

    return FixedPoint(evaluate, lambda x: True)


def test_plain_steps_are_those_of_the_map() -> None:
    rates, target = np.array([0.5, 0.9]), np.array([1.0, -2.0])
    outcome = fixed_point(quadratic(rates, target), np.zeros(2), Control(max_iter=3, tolerance=0.0))
    assert outcome.warning
    np.testing.assert_allclose(outcome.state.parameters, target - rates**3 * target, rtol=1e-14)
    assert outcome.state.memory["evaluations"] == 4
    assert len(outcome.history) == 4


@pytest.mark.parametrize("rates", [[0.99], [0.5, 0.99], [0.2, 0.9, 0.995]])
def test_extrapolation_ends_at_the_same_point_with_fewer_evaluations(rates: list[float]) -> None:
    problem = quadratic(np.array(rates), np.arange(1.0, len(rates) + 1))
    control = Control(max_iter=10_000, tolerance=1e-10)
    plain = fixed_point(problem, np.zeros(len(rates)), control)
    fast = fixed_point(problem, np.zeros(len(rates)), control, acceleration="squarem")
    np.testing.assert_allclose(fast.state.parameters, np.arange(1.0, len(rates) + 1), atol=1e-7)
    assert fast.state.memory["evaluations"] < plain.state.memory["evaluations"] / 4
    assert (np.diff(fast.history) >= 0).all()


def test_extrapolated_points_stay_inside() -> None:
    def evaluate(x: np.ndarray) -> tuple[float, np.ndarray]:
        assert (x > 0).all()
        return -float(x.sum()), 0.9 * x

    problem = FixedPoint(evaluate, lambda x: bool((x > 0).all()))
    outcome = fixed_point(problem, np.array([1.0, 3.0]), Control(max_iter=1000, tolerance=1e-8), acceleration="squarem")
    assert outcome.converged
    assert outcome.state.parameters.max() < 1e-6


def test_a_point_that_is_worse_is_given_up() -> None:
    # The objective falls beyond 0.6, where extrapolation from the first steps would lead.
    def evaluate(x: np.ndarray) -> tuple[float, np.ndarray]:
        value = x[0] if x[0] <= 0.6 else 1.2 - x[0] - 1.0
        return float(value), np.minimum(x + 0.5 * (0.61 - x) * 0.2, 0.6)

    outcome = fixed_point(
        FixedPoint(evaluate, lambda x: True), np.zeros(1), Control(tolerance=1e-9), acceleration="squarem"
    )
    assert outcome.state.parameters[0] == pytest.approx(0.6)
    assert (np.diff(outcome.history) >= 0).all()


def test_a_map_that_lowers_the_objective_is_an_error() -> None:
    problem = FixedPoint(lambda x: (-float(x[0]), x + 1.0), lambda x: True)
    with pytest.raises(EstimateError, match="Iteration 1 lowered the objective by 1"):
        fixed_point(problem, np.zeros(1), Control())


def test_an_impossible_start_and_an_unknown_method_are_refused() -> None:
    with pytest.raises(EstimateError, match="at the start"):
        fixed_point(FixedPoint(lambda x: (-np.inf, x), lambda x: True), np.zeros(1), Control())
    with pytest.raises(OptionError, match="acceleration is 'anderson'"):
        fixed_point(quadratic(np.array([0.5]), np.ones(1)), np.zeros(1), Control(), acceleration="anderson")


def test_a_coordinate_held_at_an_edge_does_not_keep_the_others_from_being_extrapolated() -> None:
    """The first would go to -1 and is held at 0, where the map leaves it from its second step on."""
    rates, target = np.array([0.1, 0.995]), np.array([-1.0, 2.0])
    free = quadratic(rates, target).evaluate

    def evaluate(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, mapped = free(x)
        return value, np.maximum(mapped, [0.0, -np.inf])

    held = FixedPoint(evaluate, lambda x: bool(x[0] >= 0.0), hold=lambda x: np.maximum(x, [0.0, -np.inf]))
    control = Control(max_iter=10_000, tolerance=1e-10)
    plain = fixed_point(held, np.array([0.5, 0.0]), control)
    fast = fixed_point(held, np.array([0.5, 0.0]), control, acceleration="squarem")
    np.testing.assert_allclose(fast.state.parameters, [0.0, 2.0], atol=1e-7)
    assert fast.state.memory["evaluations"] < plain.state.memory["evaluations"] / 10
