"""Newton's method where parameters are overcomplete, with matrices and with products."""

import math
import re
from collections.abc import Callable
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
from suffice.engines.junction_tree import plan_tree
from suffice.engines.tree_covariance import TreeCovariance
from suffice.fitting.control import Control, Outcome, State
from suffice.solvers.newton import damped_newton, newton_cg, shortest_direction, solve_truncated

Floats = NDArray[np.float64]


def with_matrix(model: LogLinear, observed: Floats, control: Control, ridge: float = 0.0) -> Outcome:
    start = np.zeros(len(observed))
    prior = ridge * np.eye(len(observed))
    return damped_newton(
        model.objective(observed, ridge), lambda x: model.covariance(x) + prior, start, control, problem="a"
    )


def with_products(model: LogLinear, observed: Floats, control: Control, ridge: float = 0.0) -> Outcome:
    def information(x: Floats) -> Callable[[Floats], Floats]:
        matrix = model.covariance(x) + ridge * np.eye(len(x))
        return lambda vector: np.asarray(matrix @ vector)

    start = np.zeros(len(observed))
    return newton_cg(model.objective(observed, ridge), information, start, control, problem="a")


METHODS: dict[str, Any] = {"matrix": with_matrix, "products": with_products}


def problem(seed: int) -> tuple[LogLinear, Floats]:
    model = by_cells(*ZOO["reversed"])
    weights: Floats = np.random.default_rng(seed).normal(scale=1.5, size=(model.features.shape[1],))
    return model, model(weights)[1]


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("ridge", [0.0, 0.01])
@pytest.mark.parametrize("seed", range(3))
def test_overcomplete_models_reach_the_optimum(method: Any, seed: int, ridge: float) -> None:
    model, observed = problem(seed)
    outcome = method(model, observed, Control(max_iter=60, tolerance=1e-11), ridge)
    assert outcome.converged
    objective = model.objective(observed, ridge)
    assert outcome.state.objective == pytest.approx(maximum(objective, np.zeros(len(observed))), abs=1e-9)
    assert outcome.state.gap == np.abs(objective(outcome.state.parameters)[1]).max()
    assert outcome.state.iteration < 20
    assert np.all(np.diff(outcome.history) >= -1e-11)


def test_the_rank_is_that_of_the_family() -> None:
    # Tables over (3, 4), (2, 3) and (4, 2) that share their single margins: 1 + 2 + 3 + 6 + 2 + 3 parameters less one.
    model, observed = problem(0)
    outcome = with_matrix(model, observed, Control(tolerance=1e-10))
    assert outcome.state.memory["rank"] == 1 + 2 + 3 + 1 * 2 + 2 * 3 + 3 * 1


def test_what_the_data_says_nothing_about_stays() -> None:
    model, observed = problem(1)
    start = np.random.default_rng(0).normal(size=len(observed))
    outcome = damped_newton(model.objective(observed), model.covariance, start, Control(tolerance=1e-11))
    _, values, rows = np.linalg.svd(model.features - model.features.mean(axis=0))
    unseen = rows[np.append(values, np.zeros(len(rows) - len(values))) < 1e-10]
    np.testing.assert_allclose(unseen @ outcome.state.parameters, unseen @ start, atol=1e-9)


def test_half_of_the_squared_decrement_estimates_what_is_missing() -> None:
    model, observed = problem(2)
    objective = model.objective(observed)
    best = maximum(objective, np.zeros(len(observed)))
    seen: list[State] = []
    with_matrix(model, observed, Control(tolerance=1e-11, callback=seen.append))
    for state in seen:
        missing = best - state.objective
        if 1e-10 < missing < 1e-3:
            assert 0.5 * state.memory["decrement"] ** 2 == pytest.approx(missing, rel=0.2)
    assert any(1e-10 < best - state.objective < 1e-3 for state in seen)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_the_last_decrement_is_exact(method: Any) -> None:
    model, observed = problem(2)
    outcome = method(model, observed, Control(tolerance=1e-4))
    slope = model.objective(observed)(outcome.state.parameters)[1]
    inverse = np.linalg.pinv(model.covariance(outcome.state.parameters), rcond=1e-12, hermitian=True)
    assert outcome.state.memory["decrement"] == pytest.approx(math.sqrt(slope @ inverse @ slope), rel=1e-4)


def test_products_of_the_tree_are_enough() -> None:
    structure = ZOO["grid"]
    plan = plan_tree(*structure)
    moments, covariances = plan.moments(), TreeCovariance(plan)
    _, observed = moments(np.random.default_rng(3).normal(size=sum(moments.sizes)))

    def objective(x: Floats) -> tuple[float, Floats]:
        log_z, expected = moments(x)
        return float(x @ observed) - log_z, observed - expected

    scale = 1.0 / (observed * (1.0 - observed))
    outcome = newton_cg(
        objective, covariances.covariance_products, np.zeros(len(observed)), Control(tolerance=1e-12), scale=scale
    )
    assert outcome.converged
    assert outcome.state.iteration < 25


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_resumed_fit_takes_the_same_steps(method: Any, tmp_path: Path) -> None:
    model, observed = problem(4)
    whole = method(model, observed, Control(tolerance=1e-10))
    path = tmp_path / "fit.suffice"
    assert method(model, observed, Control(tolerance=1e-10, max_iter=3, checkpoint=path)).warning
    parts = method(model, observed, Control(tolerance=1e-10, checkpoint=path))
    assert parts.history == whole.history
    assert parts.state.parameters.tobytes() == whole.state.parameters.tobytes()


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_an_interrupt_gives_the_best_so_far(method: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, observed = problem(5)
    covariance, calls = LogLinear.covariance, 0

    def interrupted(self: LogLinear, weights: Floats) -> Floats:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return covariance(self, weights)

    monkeypatch.setattr(LogLinear, "covariance", interrupted)
    outcome = method(model, observed, Control())
    assert (outcome.converged, outcome.stop_reason, outcome.state.iteration) == (False, "interrupted", 2)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_maximum_at_infinity_is_approached(method: Any) -> None:
    # The cell (0, 0) was never seen: its weight runs away, and the value goes to that of the law without it.
    model = by_cells({"a": 2, "b": 2}, [("a", "b")])
    observed = np.array([0.0, 0.2, 0.3, 0.5])
    outcome = method(model, observed, Control(tolerance=1e-9, max_iter=200))
    assert outcome.converged
    supremum = sum(p * math.log(p) for p in (0.2, 0.3, 0.5))
    assert supremum - 1e-8 < outcome.state.objective < supremum


@given(seed=st.integers(0, 10_000), size=st.integers(1, 7), rank=st.integers(1, 7))
def test_the_shortest_direction_is_the_pseudo_inverse(seed: int, size: int, rank: int) -> None:
    generator = np.random.default_rng(seed)
    root = generator.normal(size=(size, min(rank, size)))
    matrix = root @ root.T
    vector = matrix @ generator.normal(size=size)
    found, seen = shortest_direction(matrix, vector, 1e-8)
    expected = np.linalg.pinv(matrix, rcond=1e-12, hermitian=True) @ vector
    scale = np.linalg.cond(root) ** 2
    np.testing.assert_allclose(found, expected, atol=1e-12 * scale * (1.0 + np.abs(expected).max()))
    assert seen == np.linalg.matrix_rank(root)


def test_truncated_solutions_ascend() -> None:
    generator = np.random.default_rng(6)
    root = generator.normal(size=(6, 4))
    matrix = root @ root.T
    vector = matrix @ generator.normal(size=6)
    for forcing in (0.9, 0.3, 1e-3, 1e-9):
        found, _ = solve_truncated(lambda v: np.asarray(matrix @ v), vector, np.ones(6), forcing)
        assert vector @ found > 0.0
        assert np.linalg.norm(vector - matrix @ found) <= forcing * np.linalg.norm(vector)
    flat, _ = solve_truncated(np.zeros_like, vector, np.full(6, 2.0), 0.1)
    np.testing.assert_array_equal(flat, 2.0 * vector)


def test_an_objective_without_value_is_refused() -> None:
    with pytest.raises(sf.EstimateError, match="not finite at the start"):
        damped_newton(lambda x: (-math.inf, x), lambda x: np.eye(2), np.zeros(2), Control())


def test_a_step_that_never_rises_stalls() -> None:
    def function(x: Floats) -> tuple[float, Floats]:
        return float(-np.abs(x).sum()), np.where(x <= 0.0, 1.0, -1.0)

    outcome = damped_newton(function, lambda x: np.eye(2), np.zeros(2), Control())
    assert re.search("stalled", outcome.warning)
    assert not outcome.converged
    outcome = newton_cg(function, lambda x: lambda v: v, np.zeros(2), Control())
    assert re.search("stalled", outcome.warning)
    assert not outcome.converged
