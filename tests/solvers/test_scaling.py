"""Iterative scaling: features by enumeration, margins by the tree, bounds and limits."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import suffice as sf
from engines.factor_graphs import ZOO, Structure
from log_linear import LogLinear, by_cells, maximum
from suffice.engines.junction_tree import plan_tree
from suffice.engines.tree_scaling import TreeScaling
from suffice.fitting.control import Control
from suffice.kernels import choice
from suffice.solvers import scaling
from suffice.solvers.scaling import gis, ipf, likelihood_bound, scaling_step, sweeps_left

Floats = NDArray[np.float64]


def scaler(name: str, seed: int = 0) -> tuple[TreeScaling, LogLinear, Floats]:
    """Proportional fitting of margins of a law inside the family, the model by enumeration, and the margins."""
    structure: Structure = ZOO[name]
    model = by_cells(*structure)
    weights: Floats = np.random.default_rng(seed).normal(size=(model.features.shape[1],))
    observed = model(weights)[1]
    plan = plan_tree(*structure)
    ends = np.cumsum([plan.space.size(scope) for scope in plan.scopes])[:-1]
    cut = np.split(observed, ends)
    parts = [part.reshape(plan.space.shape(scope)) for part, scope in zip(cut, plan.scopes, strict=True)]
    return TreeScaling(plan, parts), model, observed


# IPF -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["reversed", "cycle", "grid", "complete", "families", "apart"])
def test_proportional_fitting_reaches_the_optimum(name: str) -> None:
    fitted, model, observed = scaler(name)
    outcome = ipf(fitted, Control(max_iter=3000, tolerance=1e-11))
    assert outcome.converged
    logs = outcome.state.memory["log_potentials"]
    np.testing.assert_allclose(model(logs)[1], observed, atol=1e-11)
    objective = model.objective(observed)
    assert outcome.state.objective == pytest.approx(maximum(objective, np.zeros(len(observed))), abs=1e-9)
    assert outcome.state.gap == pytest.approx(np.abs(model(logs)[1] - observed).max(), abs=1e-14)
    assert np.all(np.diff(outcome.history) >= -1e-12)


@pytest.mark.parametrize("path", ["numpy", "compiled"])
@pytest.mark.parametrize("limits", [(3,), (49, 50, 51, 60, 70)])
def test_a_resumed_sweep_is_the_same_to_the_bit(path: str, limits: tuple[int, ...], tmp_path: Path) -> None:
    control = Control(max_iter=3000, tolerance=1e-11)
    target = tmp_path / "fit.suffice"
    with choice.force(path):
        whole = ipf(scaler("complete", 3)[0], control)
        assert whole.state.iteration > 70
        for limit in limits:
            assert ipf(scaler("complete", 3)[0], Control(max_iter=limit, tolerance=1e-11, checkpoint=target)).warning
        parts = ipf(scaler("complete", 3)[0], Control(max_iter=3000, tolerance=1e-11, checkpoint=target))
    assert parts.history == whole.history
    logs = [outcome.state.memory["log_potentials"].tobytes() for outcome in (whole, parts)]
    assert logs[0] == logs[1]


def test_a_scaler_that_has_moved_goes_on_from_the_checkpoint(tmp_path: Path) -> None:
    target = tmp_path / "fit.suffice"
    control = Control(max_iter=3000, tolerance=1e-11)
    whole = ipf(scaler("complete", 3)[0], control)
    fitted = scaler("complete", 3)[0]
    assert ipf(fitted, Control(max_iter=0, tolerance=1e-11, checkpoint=target)).warning
    for _ in range(5):
        fitted.sweep()
    parts = ipf(fitted, Control(max_iter=3000, tolerance=1e-11, checkpoint=target))
    assert parts.history == whole.history


def test_fresh_tables_do_not_change_the_course(monkeypatch: pytest.MonkeyPatch) -> None:
    seldom = ipf(scaler("complete", 3)[0], Control(max_iter=3000, tolerance=1e-11))
    monkeypatch.setattr(scaling, "REFRESH", 1)
    always = ipf(scaler("complete", 3)[0], Control(max_iter=3000, tolerance=1e-11))
    assert seldom.state.iteration == always.state.iteration
    np.testing.assert_allclose(seldom.state.parameters, always.state.parameters, atol=1e-12)


def test_an_interrupted_sweep_gives_the_last_whole_one(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted, model, observed = scaler("grid")
    sweep, calls = TreeScaling.sweep, 0

    def interrupted(self: TreeScaling) -> float:
        nonlocal calls
        calls += 1
        if calls == 4:
            next(self.updates())
            raise KeyboardInterrupt
        return sweep(self)

    monkeypatch.setattr(TreeScaling, "sweep", interrupted)
    outcome = ipf(fitted, Control(tolerance=1e-14))
    assert (outcome.converged, outcome.stop_reason, outcome.state.iteration) == (False, "interrupted", 3)
    logs = outcome.state.memory["log_potentials"]
    assert float(logs @ observed) - model.log_z(logs) == pytest.approx(outcome.state.objective, rel=1e-12)


def test_zero_margins_die_and_the_rest_is_fitted() -> None:
    # A loop of three binary variables in which (a, b) = (0, 0) never occurs, against fits of the states that are left.
    cards, scopes = {"a": 2, "b": 2, "c": 2}, [("a", "b"), ("b", "c"), ("c", "a")]
    model = by_cells(cards, scopes)
    alive = model.features[:, 0] == 0.0
    law = np.random.default_rng(1).random(8) * alive
    law /= law.sum()
    observed = model.features.T @ law
    parts = [part.reshape(2, 2) for part in np.split(observed, 3)]
    outcome = ipf(TreeScaling(plan_tree(cards, scopes), parts), Control(max_iter=5000, tolerance=1e-12))
    assert outcome.converged
    logs = outcome.state.memory["log_potentials"]
    assert logs[0] == -math.inf
    assert outcome.state.parameters[0] == 0.0
    left = LogLinear(model.features[alive])
    best = maximum(left.objective(observed), np.zeros(len(observed)))
    assert outcome.state.objective == pytest.approx(best, abs=1e-9)


def test_margins_that_disagree_are_no_convergence() -> None:
    plan = plan_tree({"a": 2, "b": 2, "c": 2}, [("a", "b"), ("b", "c")])
    fitted = TreeScaling(plan, [np.full((2, 2), 0.25), np.array([[0.5, 0.2], [0.2, 0.1]])])
    outcome = ipf(fitted, Control(max_iter=50))
    assert re.search("max_iter", outcome.warning)
    assert not outcome.converged


# GIS -----------------------------------------------------------------------------------------------------------------


def features(seed: int, states: int = 12, count: int = 4, *, low: float = 0.0) -> tuple[LogLinear, Floats]:
    """Real features on a few states, and the moments of a law of all of them."""
    generator = np.random.default_rng(seed)
    model = LogLinear(generator.random((states, count)) + low)
    law = generator.gamma(2.0, size=states)
    return model, np.asarray(model.features.T @ (law / law.sum()))


@pytest.mark.parametrize("slack", [True, False])
@pytest.mark.parametrize("low", [0.0, -0.7])
@pytest.mark.parametrize("seed", range(3))
def test_scaling_of_real_features_reaches_the_optimum(seed: int, low: float, slack: bool) -> None:
    model, observed = features(seed, low=low)
    lower = np.full(4, low) if low < 0.0 else None
    total = float((model.features - low).sum(axis=1).max()) if low < 0.0 else float(model.features.sum(axis=1).max())
    control = Control(max_iter=100_000, tolerance=1e-9)
    outcome = gis(model, observed, np.zeros(4), control, total=total, lower=lower, slack=slack)
    assert outcome.converged
    best = maximum(model.objective(observed), np.zeros(4))
    assert outcome.state.objective == pytest.approx(best, abs=1e-9)
    assert np.all(np.diff(outcome.history) >= -1e-13)
    np.testing.assert_allclose(model(outcome.state.parameters)[1], observed, atol=1e-9)


def test_the_slack_is_a_feature_like_any_other() -> None:
    # The same model with the slack written out as a fifth feature: the laws agree after every iteration.
    model, observed = features(5)
    total = float(model.features.sum(axis=1).max()) + 0.1
    slack = total - model.features.sum(axis=1)
    full = LogLinear(np.column_stack([model.features, slack]))
    wanted = np.append(observed, total - observed.sum())
    weights = np.zeros(5)
    for steps in (1, 2, 10):
        folded = gis(model, observed, np.zeros(4), Control(max_iter=steps, tolerance=0.0), total=total)
        assert folded.warning
        weights = np.zeros(5)
        for _ in range(steps):
            weights = weights + np.log(wanted / full(weights)[1]) / total
        np.testing.assert_allclose(model.law(folded.state.parameters), full.law(weights), rtol=1e-12)


def test_one_step_without_normalising_loses_mass() -> None:
    # p' = p prod (observed / expected)^f with features that sum to one: a mass of at most 1, and 1 for indicators.
    generator = np.random.default_rng(6)
    shares = generator.dirichlet(np.ones(3), size=8)
    observed = generator.dirichlet(np.ones(3))
    model = LogLinear(shares)
    law, expected = model.law(np.zeros(3)), model(np.zeros(3))[1]
    change = scaling_step(observed, expected, 1.0)
    assert (law * np.exp(shares @ change)).sum() < 1.0 - 1e-4
    indicators = np.eye(3)[generator.integers(0, 3, 8)]
    expected = indicators.T @ law
    change = scaling_step(np.where(expected > 0.0, observed, 0.0), expected, 1.0)
    observed = np.where(expected > 0.0, observed, 0.0)
    assert (law * np.exp(indicators @ change)).sum() == pytest.approx(observed.sum(), rel=1e-13)


@given(seed=st.integers(0, 10_000), length=st.sampled_from([0.01, 0.3, 2.0]), low=st.sampled_from([0.0, -0.5]))
def test_the_bound_lies_below_the_likelihood_and_touches_it(seed: int, length: float, low: float) -> None:
    model, observed = features(seed, low=low)
    generator = np.random.default_rng(seed + 1)
    at = generator.normal(size=4)
    lower = np.full(4, min(low, 0.0))
    total = float((model.features - lower).sum(axis=1).max())
    anchor = (at, *model(at))
    objective = model.objective(observed)
    assert likelihood_bound(at, anchor, observed, total=total, lower=lower) == pytest.approx(
        objective(at)[0], rel=1e-12
    )
    weights = at + length * generator.normal(size=4)
    bound = likelihood_bound(weights, anchor, observed, total=total, lower=lower)
    assert bound <= objective(weights)[0] + 1e-12
    # The step of scaling without slack maximises the bound: no neighbour is higher.
    change = scaling_step(observed - lower, anchor[2] - lower, total, slack=False)
    best = likelihood_bound(at + change, anchor, observed, total=total, lower=lower)
    assert best <= objective(at + change)[0] + 1e-12
    for index in range(4):
        for size in (1e-3, -1e-3):
            beside = at + change + size * np.eye(4)[index]
            assert likelihood_bound(beside, anchor, observed, total=total, lower=lower) < best


def test_blocks_of_indicators_are_proportional_fitting() -> None:
    fitted, model, observed = scaler("reversed", 2)
    ends = np.cumsum([0, *fitted.sizes])
    blocks = [np.arange(ends[number], ends[number + 1]) for number in fitted.order]
    for sweeps in (1, 2, 5):
        cyclic = gis(
            model,
            observed,
            np.zeros(len(observed)),
            Control(max_iter=sweeps, tolerance=0.0),
            total=1.0,
            blocks=blocks,
        )
        assert cyclic.warning
        fitted.restart(np.zeros(len(observed)))
        for _ in range(sweeps):
            fitted.sweep()
        np.testing.assert_allclose(cyclic.state.parameters, fitted.log_potentials, rtol=1e-10, atol=1e-12)


def test_all_cells_at_once_converge_too() -> None:
    fitted, model, observed = scaler("reversed", 4)
    control = Control(max_iter=20_000, tolerance=1e-10)
    outcome = gis(model, observed, np.zeros(len(observed)), control, total=float(len(fitted.sizes)))
    assert outcome.converged
    cyclic = ipf(fitted, control)
    law = model.law(outcome.state.parameters)
    np.testing.assert_allclose(law, model.law(cyclic.state.parameters), atol=1e-8)
    assert cyclic.state.iteration < outcome.state.iteration


@pytest.mark.parametrize("low", [0.0, -1.0, 2.0])
def test_features_never_seen_fall_until_they_do_not_count(low: float) -> None:
    """Indicators, and the same features less or more a constant: the law is that of the cells that were seen."""
    model = LogLinear(by_cells({"a": 2, "b": 3}, [("a", "b")]).features + low)
    shares = np.array([0.0, 0.1, 0.2, 0.3, 0.0, 0.4])
    control = Control(tolerance=1e-12)
    outcome = gis(model, shares + low, np.zeros(6), control, total=1.0, lower=np.full(6, low))
    assert outcome.converged
    assert outcome.state.iteration <= 4
    assert np.isfinite(outcome.state.parameters).all()
    np.testing.assert_allclose(model.law(outcome.state.parameters), shares, atol=1e-12)
    assert np.all(np.diff(outcome.history) >= -1e-13)


def test_features_that_the_law_holds_at_their_least_value_stay() -> None:
    """The first feature is constant, the second 0 by rounding: their weights do not move, the third is fitted."""
    model = LogLinear(np.array([[3.0, 1e-17, 0.0], [3.0, 0.0, 1.0]]))
    start = np.array([0.5, -0.25, 0.0])
    lower = np.array([3.0, 0.0, 0.0])
    outcome = gis(model, [3.0, 0.0, 0.2], start, Control(tolerance=1e-12), total=1.0, lower=lower)
    assert outcome.converged
    np.testing.assert_allclose(outcome.state.parameters, [0.5, -0.25, math.log(0.25)], rtol=1e-11)


def test_a_resumed_fit_takes_the_same_steps(tmp_path: Path) -> None:
    model = by_cells({"a": 2, "b": 2, "c": 2}, [("a", "b"), ("b", "c"), ("a", "c")])
    law = np.array([0.0, 0.0, 0.1, 0.2, 0.15, 0.05, 0.3, 0.2])
    observed = model.features.T @ law
    whole = gis(model, observed, np.zeros(12), Control(max_iter=5000, tolerance=1e-9), total=3.0)
    path = tmp_path / "fit.json"
    assert gis(model, observed, np.zeros(12), Control(max_iter=7, tolerance=1e-9, checkpoint=path), total=3.0).warning
    parts = gis(model, observed, np.zeros(12), Control(max_iter=5000, tolerance=1e-9, checkpoint=path), total=3.0)
    assert (parts.history, parts.converged) == (whole.history, True)
    assert parts.state.parameters.tobytes() == whole.state.parameters.tobytes()


def test_arguments_are_checked() -> None:
    model, observed = features(7)
    start, control = np.zeros(4), Control()
    with pytest.raises(sf.OptionError, match="total is 0"):
        gis(model, observed, start, control, total=0)
    with pytest.raises(sf.OptionError, match=r"above their total of 0\.5"):
        gis(model, observed, start, control, total=0.5)
    with pytest.raises(sf.OptionError, match="lower bound"):
        gis(model, observed, start, control, total=4.0, lower=np.ones(4))
    with pytest.raises(sf.OptionError, match="blocks hold 3 of 4"):
        gis(model, observed, start, control, total=4.0, blocks=[[0, 1], [1, 2]])
    with pytest.raises(sf.EstimateError, match="probability 0"):
        gis(LogLinear(np.array([[1.0, 0.0]])), [0.5, 0.5], np.zeros(2), control, total=1.0)


def test_sweeps_left_by_the_rate() -> None:
    """A gap that falls by the factor 0.9 a sweep is at 1e-6 of itself after log(1e-6) / log(0.9) sweeps."""
    rate = 0.9
    found = sweeps_left(1e-2 * rate**50, 1e-2, 50, 1e-8 * rate**50)
    assert found == pytest.approx(np.log(1e-6) / np.log(rate))
    assert sweeps_left(1e-9, 1e-3, 50, 1e-8) == 0.0
    assert sweeps_left(1e-3, 1e-3, 50, 1e-8) == np.inf
    assert sweeps_left(1e-16, 1e-16, 50, 0.0) == 0.0
