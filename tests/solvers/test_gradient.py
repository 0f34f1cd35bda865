"""Gradient methods on concave problems whose maximum is known, and on log-linear models by enumeration."""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import suffice as sf
from engines.factor_graphs import ZOO
from log_linear import LogLinear, by_cells, maximum
from suffice.fitting.control import Control, Outcome, State
from suffice.solvers import gradient
from suffice.solvers.gradient import ascent, conjugate_gradient, indicator_scale, lbfgs, owlqn, pseudo_gradient

Floats = NDArray[np.float64]

SMOOTH: dict[str, Callable[..., Outcome]] = {"lbfgs": lbfgs, "conjugate gradient": conjugate_gradient, "ascent": ascent}
ALL: dict[str, Callable[..., Outcome]] = {
    **SMOOTH,
    "owlqn": lambda objective, start, control, **options: owlqn(objective, 0.0, start, control, **options),
}


def quadratic(seed: int, size: int, condition: float) -> tuple[Any, Floats, Floats]:
    """A concave quadratic with eigenvalues between 1 and 1 / condition: function, maximum, curvature."""
    generator = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(generator.normal(size=(size, size)))
    curve = (turn * np.geomspace(1.0, 1.0 / condition, size)) @ turn.T
    centre = generator.normal(size=size)

    def function(x: Floats) -> tuple[float, Floats]:
        slope = -curve @ (x - centre)
        return float(0.5 * slope @ (x - centre)), slope

    return function, centre, curve


def loopy(seed: int = 0) -> tuple[LogLinear, Floats]:
    """A loop of three tables, overcomplete, and the moments of a law inside its family."""
    model = by_cells(*ZOO["reversed"])
    weights: Floats = np.random.default_rng(seed).normal(size=(model.features.shape[1],))
    return model, model(weights)[1]


@pytest.mark.parametrize("solve", ALL.values(), ids=ALL)
@given(seed=st.integers(0, 10_000), size=st.integers(1, 6), condition=st.sampled_from([1.0, 5.0, 30.0]))
def test_quadratics(solve: Callable[..., Outcome], seed: int, size: int, condition: float) -> None:
    function, centre, _ = quadratic(seed, size, condition)
    start = 3.0 * np.random.default_rng(seed + 1).normal(size=size)
    outcome = solve(function, start, Control(max_iter=2000, tolerance=1e-11))
    assert outcome.converged
    np.testing.assert_allclose(outcome.state.parameters, centre, atol=1e-9)
    assert outcome.state.gap == np.abs(function(outcome.state.parameters)[1]).max() <= 1e-11


@pytest.mark.parametrize("solve", ALL.values(), ids=ALL)
def test_log_linear_models_reach_the_optimum(solve: Callable[..., Outcome]) -> None:
    model, observed = loopy()
    objective = model.objective(observed)
    outcome = solve(objective, np.zeros(len(observed)), Control(max_iter=5000, tolerance=1e-10))
    assert outcome.converged
    assert outcome.state.objective == pytest.approx(maximum(objective, np.zeros(len(observed))), abs=1e-9)
    np.testing.assert_allclose(model(outcome.state.parameters)[1], observed, atol=1e-10)
    assert np.all(np.diff(outcome.history) >= -1e-11)


@pytest.mark.parametrize("solve", ALL.values(), ids=ALL)
def test_a_gaussian_prior(solve: Callable[..., Outcome]) -> None:
    model, observed = loopy(1)
    objective = model.objective(observed, ridge=0.05)
    outcome = solve(objective, np.zeros(len(observed)), Control(max_iter=5000, tolerance=1e-11))
    assert outcome.converged
    assert outcome.state.objective == pytest.approx(maximum(objective, np.zeros(len(observed))), abs=1e-12)


@pytest.mark.parametrize("solve", [lbfgs, conjugate_gradient, partial(owlqn, penalty=0.0)])
def test_rounding_of_large_values_does_not_hide_the_maximum(solve: Any) -> None:
    # Values near 1e9 have a rounding of 1e-7, so the last five digits of x are invisible to them.
    function, centre, _ = quadratic(2, 5, 20.0)

    def far(x: Floats) -> tuple[float, Floats]:
        value, slope = function(x)
        return value + 1e9, slope

    outcome = solve(objective=far, start=np.zeros(5), control=Control(tolerance=1e-10, max_iter=500))
    assert outcome.converged
    np.testing.assert_allclose(outcome.state.parameters, centre, atol=1e-8)


@pytest.mark.parametrize("solve", ALL.values(), ids=ALL)
def test_the_domain_has_an_edge(solve: Callable[..., Outcome]) -> None:
    # sum log x - x has its maximum at 1 and no value at or below 0; far out, the gradient leads across the edge.
    def function(x: Floats) -> tuple[float, Floats]:
        with np.errstate(all="ignore"):
            return float(np.sum(np.log(x) - x)), 1.0 / x - 1.0

    outcome = solve(function, np.array([1e-3, 30.0, 2.0]), Control(max_iter=5000, tolerance=1e-9))
    assert outcome.converged
    np.testing.assert_allclose(outcome.state.parameters, 1.0, rtol=1e-8)
    with pytest.raises(sf.EstimateError, match="not finite at the start"):
        solve(function, np.array([-1.0, 1.0, 1.0]), Control())


def test_ascent_keeps_potentials_positive() -> None:
    # Two states with p = psi / sum psi. A step of 3 from (0.05, 1) leads to psi = (-2.747, 1.14) unless it is halved.
    target = np.array([0.001, 0.999])

    def function(psi: Floats) -> tuple[float, Floats]:
        if (psi <= 0.0).any():
            return -math.inf, np.zeros(2)
        return float(target @ np.log(psi) - np.log(psi.sum())), target / psi - 1.0 / psi.sum()

    start = np.array([0.05, 1.0])
    np.testing.assert_allclose(start + 3.0 * function(start)[1], [-2.747, 1.14], atol=1e-3)
    seen: list[Floats] = []
    control = Control(max_iter=5000, tolerance=1e-9, callback=lambda state: seen.append(state.parameters))
    outcome = ascent(function, start, control, first_step=3.0)
    assert outcome.converged
    assert np.min(seen) > 0.0
    np.testing.assert_allclose(outcome.state.parameters / outcome.state.parameters.sum(), target, atol=1e-8)


@pytest.mark.parametrize("solve", SMOOTH.values(), ids=SMOOTH)
def test_a_scale_saves_iterations(solve: Callable[..., Outcome]) -> None:
    widths = np.geomspace(1.0, 1e6, 8)

    def function(x: Floats) -> tuple[float, Floats]:
        return float(-0.5 * np.sum(x * x / widths)), -x / widths

    control = Control(max_iter=3000, tolerance=1e-12)
    scaled = solve(function, np.ones(8), control, scale=widths)
    assert (scaled.converged, scaled.state.iteration) == (True, 1)


def test_the_scale_of_indicators_follows_the_model() -> None:
    # Cells of probability from 1e-5 to 1: without scale the rare ones take hundreds of iterations.
    model = by_cells({"a": 3, "b": 4}, [("a", "b"), ("b",)])
    law = np.geomspace(1e-5, 1.0, 12)
    observed = model.features.T @ (law / law.sum())
    objective, start = model.objective(observed), np.zeros(len(observed))
    control = Control(max_iter=5000, tolerance=1e-10)
    scale = indicator_scale(observed)
    for solve in (lbfgs, conjugate_gradient, partial(owlqn, penalty=0.0)):
        plain, scaled = (solve(objective=objective, start=start, control=control, scale=s) for s in (None, scale))
        assert (plain.converged, scaled.converged) == (True, True)
        assert 3 * scaled.state.iteration < plain.state.iteration
        assert scaled.state.objective == pytest.approx(plain.state.objective, abs=1e-9)
    # Expected are 0.3, 0.9 and 0: the larger of the variances (0.21, 0.09, 0) and (0.09, 0.21, 0) counts, or 1e-8.
    found = indicator_scale([0.1, 0.7, 0.0])(np.zeros(3), np.array([-0.2, -0.2, 0.0]))
    np.testing.assert_allclose(found, [1 / 0.21, 1 / 0.21, 1e8], rtol=1e-12)


@pytest.mark.parametrize("solve", ALL.values(), ids=ALL)
def test_gradients_that_lie_stall(solve: Callable[..., Outcome]) -> None:
    # The gradient points uphill, the value falls whichever way one goes: no step is good, and that is no convergence.
    def function(x: Floats) -> tuple[float, Floats]:
        return float(-np.abs(x).sum()), np.where(x <= 0.0, 1.0, -1.0)

    outcome = solve(function, np.zeros(2), Control(tolerance=1e-6))
    assert re.search("stalled", outcome.warning)
    assert (outcome.converged, outcome.stop_reason) == (False, "stalled")
    assert (outcome.state.parameters == 0.0).all()


@pytest.mark.parametrize("solve", ALL.values(), ids=ALL)
def test_a_coarse_gradient_is_no_convergence(solve: Callable[..., Outcome]) -> None:
    function, _, _ = quadratic(3, 4, 5.0)

    def coarse(x: Floats) -> tuple[float, Floats]:  # Steps of 1e-7, none of them at 0.
        value, slope = function(x)
        return value, 1e-7 * (np.floor(slope / 1e-7) + 0.5)

    outcome = solve(coarse, np.zeros(4), Control(tolerance=1e-12, max_iter=200))
    assert re.search(r"stalled|max_iter", outcome.warning)
    assert not outcome.converged
    assert 5e-8 <= outcome.state.gap < 1e-5


@pytest.mark.parametrize("solve", ALL.values(), ids=ALL)
def test_a_resumed_fit_takes_the_same_steps(solve: Callable[..., Outcome], tmp_path: Path) -> None:
    model, observed = loopy(4)
    objective = model.objective(observed)
    start = np.zeros(len(observed))
    whole = solve(objective, start, Control(max_iter=10_000, tolerance=1e-6))
    path = tmp_path / "fit.suffice"
    for limit in (3, 5, 17):
        assert solve(objective, start, Control(max_iter=limit, tolerance=1e-6, checkpoint=path)).warning
    parts = solve(objective, start, Control(max_iter=10_000, tolerance=1e-6, checkpoint=path))
    assert parts.history == whole.history
    assert parts.state.parameters.tobytes() == whole.state.parameters.tobytes()
    assert not path.exists()


@pytest.mark.parametrize("solve", ALL.values(), ids=ALL)
def test_an_interrupt_gives_the_best_so_far(solve: Callable[..., Outcome]) -> None:
    model, observed = loopy(5)
    objective = model.objective(observed)
    calls = 0

    def interrupted(x: Floats) -> tuple[float, Floats]:
        nonlocal calls
        calls += 1
        if calls == 12:
            raise KeyboardInterrupt
        return objective(x)  # type: ignore[no-any-return]

    outcome = solve(interrupted, np.zeros(len(observed)), Control())
    assert (outcome.converged, outcome.stop_reason) == (False, "interrupted")
    assert outcome.state.objective == max(outcome.history) > outcome.history[0]


def test_the_start_may_be_the_maximum() -> None:
    function, centre, _ = quadratic(6, 3, 2.0)
    for solve in ALL.values():
        outcome = solve(function, centre, Control(tolerance=1e-12))
        assert (outcome.converged, outcome.state.iteration) == (True, 0)
    nothing = lbfgs(lambda x: (0.0, x), np.zeros(0), Control())
    assert nothing.converged


def test_callbacks_see_the_states() -> None:
    function, _, _ = quadratic(7, 4, 50.0)
    seen: list[State] = []
    lbfgs(function, np.zeros(4), Control(tolerance=1e-9, callback=seen.append))
    assert [state.iteration for state in seen] == list(range(1, len(seen) + 1))
    for state in seen:
        value, slope = function(state.parameters)
        assert (state.objective, state.gap) == (value, np.abs(slope).max())


def test_memory_is_limited() -> None:
    function, centre, _ = quadratic(8, 30, 1e3)
    seen: list[int] = []
    watch = Control(tolerance=1e-9, max_iter=500, callback=lambda state: seen.append(len(state.memory["steps"])))
    outcome = lbfgs(function, np.zeros(30), watch, memory=3)
    assert outcome.converged
    assert max(seen) == 3
    np.testing.assert_allclose(outcome.state.parameters, centre, atol=1e-5)
    assert lbfgs(function, np.zeros(30), replace(watch, callback=None), memory=30).state.iteration < len(seen)


def test_the_inverse_product_is_that_of_the_updated_matrix() -> None:
    generator = np.random.default_rng(9)
    steps = generator.normal(size=(3, 5))
    changes = steps @ (np.eye(5) + 0.1 * np.ones((5, 5))) + 0.05 * generator.normal(size=(3, 5))
    diagonal = generator.random(5) + 0.5
    matrix = np.diag(diagonal) * (steps[-1] @ changes[-1]) / (changes[-1] @ (diagonal * changes[-1]))
    for step, change in zip(steps, changes, strict=True):  # The BFGS update of the inverse, written out.
        share = 1.0 / (step @ change)
        left = np.eye(5) - share * np.outer(step, change)
        matrix = left @ matrix @ left.T + share * np.outer(step, step)
    vector = generator.normal(size=5)
    np.testing.assert_allclose(
        gradient.inverse_product((steps, changes), vector, diagonal), matrix @ vector, rtol=1e-11
    )


# L1 ------------------------------------------------------------------------------------------------------------------


def test_the_pseudo_gradient_is_the_shortest_slope() -> None:
    x = np.array([1.0, -1.0, 0.0, 0.0, 0.0])
    slope = np.array([0.5, 0.5, 0.5, 3.0, -3.0])
    np.testing.assert_array_equal(pseudo_gradient(x, slope, np.full(5, 2.0)), [-1.5, 2.5, 0.0, 1.0, -1.0])


@given(seed=st.integers(0, 10_000), penalty=st.sampled_from([0.05, 0.3, 1.0]))
def test_the_lasso_of_a_diagonal_quadratic_is_soft_thresholding(seed: int, penalty: float) -> None:
    generator = np.random.default_rng(seed)
    centre, curve = generator.normal(size=6), generator.random(6) + 0.5

    def function(x: Floats) -> tuple[float, Floats]:
        return float(-0.5 * curve @ (x - centre) ** 2), -curve * (x - centre)

    outcome = owlqn(function, penalty, generator.normal(size=6), Control(tolerance=1e-11, max_iter=500))
    expected = np.sign(centre) * np.maximum(np.abs(centre) - penalty / curve, 0.0)
    assert outcome.converged
    np.testing.assert_allclose(outcome.state.parameters, expected, atol=1e-10)
    assert ((outcome.state.parameters == 0.0) == (expected == 0.0)).all()


@pytest.mark.parametrize("seed", range(4))
def test_the_lasso_of_a_log_linear_model_is_that_of_twice_as_many_bounded_weights(seed: int) -> None:
    # |w| = u + v with w = u - v and u, v >= 0: a smooth problem with bounds, for a generic optimiser.
    from scipy.optimize import minimize

    model, observed = loopy(seed)
    objective, size = model.objective(observed), len(observed)
    penalty = np.linspace(0.002, 0.03, size)

    def doubled(both: Floats) -> tuple[float, Floats]:
        value, slope = objective(both[:size] - both[size:])
        return -value + penalty @ (both[:size] + both[size:]), np.concatenate([penalty - slope, penalty + slope])

    bounds = [(0.0, None)] * (2 * size)
    tight: Any = {"ftol": 0.0, "gtol": 1e-12, "maxiter": 10_000, "maxfun": 100_000}
    expected = minimize(doubled, np.zeros(2 * size), jac=True, method="L-BFGS-B", bounds=bounds, options=tight)
    outcome = owlqn(objective, penalty, np.zeros(size), Control(tolerance=1e-10, max_iter=2000))
    assert outcome.converged
    assert outcome.state.objective == pytest.approx(-expected.fun, abs=1e-9)
    slope = objective(outcome.state.parameters)[1]
    x = outcome.state.parameters
    assert np.all(np.abs(slope[x == 0.0]) <= penalty[x == 0.0] + 1e-10)
    np.testing.assert_allclose(slope[x != 0.0], (penalty * np.sign(x))[x != 0.0], atol=1e-10)
    assert 0 < np.count_nonzero(x) < size


def test_some_weights_may_go_free() -> None:
    function, centre, _ = quadratic(10, 3, 1.0)
    outcome = owlqn(function, [0.0, 1e9, 0.0], np.ones(3), Control(tolerance=1e-10))
    np.testing.assert_allclose(outcome.state.parameters, [centre[0], 0.0, centre[2]], atol=1e-9)


# Options -------------------------------------------------------------------------------------------------------------


def test_options_are_checked() -> None:
    function, centre, _ = quadratic(11, 2, 1.0)
    with pytest.raises(sf.OptionError, match="memory is 0"):
        lbfgs(function, centre, Control(), memory=0)
    with pytest.raises(sf.OptionError, match="scale of a solver"):
        lbfgs(function, centre + 1.0, Control(), scale=[1.0, 0.0])
    with pytest.raises(sf.OptionError, match=r"shape \(2, 1\); expected a vector"):
        ascent(function, centre[:, None], Control())
    for penalty in (-1.0, math.inf, [1.0, math.nan]):
        with pytest.raises(sf.OptionError, match="penalty"):
            owlqn(function, penalty, centre, Control())
