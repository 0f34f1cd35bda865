"""Proportional fitting that crawls: `solver="auto"` watches its rate and goes on with another method."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

import suffice as sf

PAIRS = [("a", "b"), ("b", "c"), ("a", "c")]
#: All pair margins are large, and the maximum lies next to the edge: two cells hold one row each.
EDGE = np.array([0, 3, 2, 4, 5, 1, 6, 0.0]).reshape(2, 2, 2) * 10_000
EDGE[0, 0, 0] = EDGE[1, 1, 1] = 1


def counted(values: Any) -> Any:
    domain = sf.Domain([sf.Variable.discrete(n, range(k)) for n, k in zip("abc", values.shape, strict=True)])
    return sf.Table(domain, values)


def without_interaction(table: Any) -> Any:
    """The 2 x 2 x 2 table with the same pair margins and no three-way interaction, by a root in one unknown.

    Tables with these margins differ by a multiple of the signs (-1)^(i + j + k) alone.
    """
    signs = (-1.0) ** np.indices((2, 2, 2)).sum(axis=0)
    low, high = -table[signs > 0].min(), table[signs < 0].min()

    def interaction(t: float) -> float:
        return float((signs * np.log(table + t * signs)).sum())

    return table + brentq(interaction, low + 1e-12, high - 1e-12, xtol=1e-14, rtol=1e-14) * signs


def edge_of(levels: int) -> Any:
    """The same with more states: the second state is split into several."""
    at = np.minimum(np.indices((levels,) * 3), 1)
    return EDGE[at[0], at[1], at[2]] * (1.0 + np.random.default_rng(levels).random((levels,) * 3))


def test_auto_leaves_a_crawl_for_newton() -> None:
    fitted = sf.MarkovNetwork(PAIRS).fit(counted(EDGE))
    oracle = without_interaction(EDGE)
    assert fitted.converged_
    assert fitted.report_.iterations < 150
    assert "proportional fitting" in fitted.report_.method
    assert "then Newton" in fitted.report_.method
    assert "after 100 sweeps" in fitted.report_.method
    np.testing.assert_allclose(fitted.to_joint().values * EDGE.sum(), oracle, rtol=1e-6)
    deviance = 2 * (EDGE * np.log(EDGE / (fitted.to_joint().values * EDGE.sum()))).sum()
    assert deviance == pytest.approx(0.02484, abs=5e-6)
    assert len(fitted.report_.history) == fitted.report_.iterations + 1
    assert (np.diff(fitted.report_.history) > -1e-6).all()
    again = sf.MarkovNetwork(PAIRS).fit(counted(EDGE))
    assert np.array_equal(again.weights_, fitted.weights_)


def test_proportional_fitting_that_was_asked_for_stays() -> None:
    with pytest.warns(sf.ConvergenceWarning, match="max_iter"):
        fitted = sf.MarkovNetwork(PAIRS, solver="ipf", max_iter=500).fit(counted(EDGE))
    assert fitted.report_.method == "iterative proportional fitting on the junction tree"
    assert fitted.report_.iterations == 500


def test_a_good_rate_is_left_alone() -> None:
    counts = np.array([4, 1, 3, 2, 7, 3, 2, 2.0]).reshape(2, 2, 2)
    fitted = sf.MarkovNetwork(PAIRS).fit(counted(counts))
    assert fitted.converged_
    assert "then" not in fitted.report_.method
    np.testing.assert_allclose(fitted.to_joint().values * counts.sum(), without_interaction(counts), rtol=1e-8)


@pytest.mark.parametrize(
    ("levels", "start", "method"),
    [
        (4, None, "then Newton with conjugate gradients"),
        (14, 0.1, "then L-BFGS"),
        (14, None, "Newton's method on the table of all joint states"),  # It does not crawl.
    ],
)
def test_larger_tables_go_on_with_products_or_gradients(levels: int, start: float | None, method: str) -> None:
    counts = edge_of(levels)
    begin = None if start is None else np.full(3 * levels**2, start)
    fitted = sf.MarkovNetwork(PAIRS, start=begin).fit(counted(counts))
    assert fitted.converged_
    assert method in fitted.report_.method
    joint = fitted.to_joint().values
    for axis in range(3):
        np.testing.assert_allclose(joint.sum(axis), counts.sum(axis) / counts.sum(), atol=2e-10)
    # No three-way interaction: every second difference in all directions of the logarithms is 0.
    interaction = np.log(joint)
    for axis in range(3):
        interaction = np.diff(interaction, axis=axis)
    np.testing.assert_allclose(interaction, 0.0, atol=1e-8)


@pytest.mark.parametrize("stop", [60, 103])
def test_a_stopped_fit_goes_on_to_the_same_weights(tmp_path: Path, stop: int) -> None:
    whole = sf.MarkovNetwork(PAIRS).fit(counted(EDGE))
    path, seen = tmp_path / "fit.json", []

    def told(state: Any) -> bool:
        seen.append(state.iteration)
        return bool(state.iteration >= stop)

    stopped = sf.MarkovNetwork(PAIRS, checkpoint=path, callback=told).fit(counted(EDGE))
    assert not stopped.converged_
    assert seen == list(range(1, stop + 1))
    assert stopped.report_.iterations == stop
    resumed = sf.MarkovNetwork(PAIRS, checkpoint=path).fit(counted(EDGE))
    assert resumed.converged_
    assert np.array_equal(resumed.weights_, whole.weights_)
    assert resumed.report_.iterations == whole.report_.iterations
    assert not path.exists()


def test_limits_count_all_iterations() -> None:
    with pytest.warns(sf.ConvergenceWarning, match="max_iter"):
        fitted = sf.MarkovNetwork(PAIRS, max_iter=103).fit(counted(EDGE))
    assert fitted.report_.iterations == 103
    assert not fitted.converged_
    assert sf.MarkovNetwork(PAIRS, max_seconds=60.0).fit(counted(EDGE)).converged_


def margins_of_no_law() -> Any:
    """Each two of three bits differ with probability 0.67; in any law the three probabilities sum to at most 2."""
    pair = np.array([[0.165, 0.335], [0.335, 0.165]]) * 1000
    return dict.fromkeys(PAIRS, pair)


def test_margins_of_no_law_are_found_out() -> None:
    model = sf.MarkovNetwork(PAIRS, states={name: [0, 1] for name in "abc"}, check_existence=False)
    with pytest.raises(sf.EstimateError, match=r"No joint distribution"):
        model.fit(margins_of_no_law())


def test_margins_of_no_law_are_fitted_as_far_as_it_goes() -> None:
    options: dict[str, Any] = {
        "states": {name: [0, 1] for name in "abc"},
        "check_existence": False,
        "on_inconsistent": "warn",
        "max_iter": 300,
    }
    fits = []
    for solver in ("auto", "ipf"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fits.append(sf.MarkovNetwork(PAIRS, solver=solver, **options).fit(margins_of_no_law()))
    assert fits[0].report_.certificate.exists is False
    assert np.array_equal(fits[0].weights_, fits[1].weights_)
