"""Whether a Gaussian graph has a maximum, against a semi-definite programme of the tests' own; extreme covariances."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import suffice as sf
from suffice.errors import DataError, EstimateError, OptionError

Floats = NDArray[np.float64]
Edges = list[tuple[int, int]]


def largest_least_eigenvalue(R: Floats, edges: Edges) -> float:
    """The largest smallest eigenvalue of all matrices with the diagonal and edges of R, by a barrier; to p * 1e-7.

    Maximises ``t + mu log det(V - t I)`` over t and the entries of V that are no edges, by Newton's method.
    """
    p = len(R)
    free = [pair for pair in itertools.combinations(range(p), 2) if pair not in {tuple(sorted(e)) for e in edges}]
    known = R.copy()
    moves = [-np.eye(p)]
    for i, j in free:
        known[i, j] = known[j, i] = 0.0
        moves.append(np.zeros((p, p)))
        moves[-1][i, j] = moves[-1][j, i] = 1.0
    basis = np.array(moves)
    x = np.zeros(len(basis))
    x[0] = np.linalg.eigvalsh(known)[0] - 1.0

    def value(x: Floats, mu: float) -> float:
        try:
            factor = np.linalg.cholesky(known + np.tensordot(x, basis, 1))
        except np.linalg.LinAlgError:
            return -np.inf
        return float(x[0] + 2 * mu * np.log(np.diag(factor)).sum())

    for mu in 10.0 ** -np.arange(1, 8):
        for _ in range(100):
            turned = np.linalg.inv(known + np.tensordot(x, basis, 1)) @ basis
            slope = mu * np.trace(turned, axis1=1, axis2=2)
            slope[0] += 1.0
            curvature = mu * np.einsum("aij,bji->ab", turned, turned)
            step = np.linalg.solve(curvature, slope)
            if slope @ step < 1e-9 * mu:
                break
            size, before = 1.0, value(x, mu)
            while value(x + size * step, mu) < before + 1e-4 * size * (slope @ step) and size > 1e-12:
                size /= 2
            x = x + size * step
    return float(x[0])


def ring(p: int) -> Edges:
    return [(i, (i + 1) % p) for i in range(p)]


def grid(height: int, width: int) -> Edges:
    across = [(i * width + j, i * width + j + 1) for i in range(height) for j in range(width - 1)]
    return across + [(i * width + j, (i + 1) * width + j) for i in range(height - 1) for j in range(width)]


def drawn(seed: int) -> tuple[int, Edges, Floats]:
    """A graph with a chordless cycle and two rows about a mean of 0."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(4, 8))
    edges = ring(p) if seed % 3 == 0 else grid(2, 3) if seed % 3 == 1 else grid(2, 4)
    p = max(map(max, edges)) + 1
    rows = rng.standard_normal((2, p))
    return p, edges, rows


def verdict(graph: sf.GaussianGraph, rows: Floats) -> bool | None:
    """What a fit says about the maximum."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.errors.ConvergenceWarning)
        try:
            return graph.fit(rows).report_.certificate.exists
        except EstimateError as error:
            return False if "no maximum" in str(error) and "max_iter" not in str(error) else None


@pytest.mark.parametrize("solver", ["auto", "newton", "ipf", "regression"])
def test_every_solver_decides_as_a_semidefinite_programme_does(solver: Any) -> None:
    answers = []
    for seed in range(24):
        p, edges, rows = drawn(seed)
        S = rows.T @ rows / len(rows)
        units = np.sqrt(np.diag(S))
        truth = largest_least_eigenvalue(S / np.outer(units, units), edges) > 1e-6
        graph = sf.GaussianGraph(edges, nodes=range(p), mean="zero", solver=solver, max_iter=100)
        answers.append((truth, verdict(graph, rows)))
    assert answers.count((True, True)) + answers.count((False, False)) == len(answers) == 24
    assert min(answers.count((True, True)), answers.count((False, False))) >= 6


def test_the_units_of_the_columns_change_no_verdict() -> None:
    rng = np.random.default_rng(0)
    for seed in range(12):
        p, edges, rows = drawn(seed)
        graph = sf.GaussianGraph(edges, nodes=range(p), mean="zero")
        units = [np.ones(p), 10.0 ** rng.integers(-8, 9, p), 10.0 ** rng.integers(-8, 9, p)]
        verdicts = [verdict(graph, rows * unit) for unit in units]
        assert verdicts[0] is not None
        assert verdicts[0] == verdicts[1] == verdicts[2]


def test_a_cycle_without_a_maximum_names_what_runs_away_and_what_helps() -> None:
    """Angles 0, 0.1, 0.2, 0.3 on a half circle: the last cannot be 0.3 from the first in more than a plane."""
    angles = np.array([0.0, 0.1, 0.2, 0.3])
    x = np.array([np.cos(angles), np.sin(angles)])
    cycle = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"), ("d", "e")]
    data = {**dict(zip("abcd", x.T, strict=True)), "e": [1.0, -2.0]}
    with pytest.raises(EstimateError) as caught:
        sf.GaussianGraph(cycle, mean="zero").fit(data)
    said = str(caught.value)
    assert "'a', 'b', 'c', 'd' run to infinity" in said
    assert "4 always do" in said
    assert "Wishart" in said
    assert "'e'" not in said
    fit = sf.GaussianGraph(cycle, mean="zero", prior=sf.Wishart(8.0, np.eye(5))).fit(data)
    assert fit.converged_
    assert fit.report_.certificate.exists is True


def test_a_part_of_a_large_graph_without_a_maximum_is_found() -> None:
    rows = np.random.default_rng(4).standard_normal((2, 81))
    with pytest.raises(EstimateError, match="no maximum"):
        sf.GaussianGraph(grid(9, 9), nodes=range(81), mean="zero").fit(rows)
    rows = np.random.default_rng(4).standard_normal((4, 81))
    assert sf.GaussianGraph(grid(9, 9), nodes=range(81), mean="zero").fit(rows).report_.certificate.exists is True


def test_a_fit_that_is_stopped_early_knows_that_a_maximum_exists() -> None:
    rows = np.random.default_rng(5).standard_normal((4, 5))
    with pytest.warns(sf.errors.ConvergenceWarning):
        fit = sf.GaussianGraph(ring(5), nodes=range(5), solver="ipf", max_iter=2).fit(rows)
    assert not fit.converged_
    assert fit.report_.certificate.exists is True


# -- the judge -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["newton", "ipf", "regression"])
def test_the_certificate_bounds_what_a_wrong_solver_has_left(solver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A precision that was moved off the maximum: the bound holds and grows with what was lost."""
    from suffice.models.gaussian_graph import learning

    rng = np.random.default_rng(1)
    rows = rng.standard_normal((30, 6)) @ rng.standard_normal((6, 6))
    graph = sf.GaussianGraph(ring(6), nodes=range(6), solver=solver)
    best = graph.clone().fit(rows)
    S = best._task().problem(best._learned_data(), None).target.S
    found = learning.learn(learning.Selection(best._structure, S, 30.0, None, best._control(), None), solver)
    for share in (1e-4, 1e-2, 0.3):
        moved = found.precision * (1.0 + share)
        moved[0, 1] = moved[1, 0] = moved[0, 1] * (1.0 - share)
        monkeypatch.setattr(
            "suffice.models.gaussian_graph.task.learn",
            lambda *_, moved=moved: learning.LearnedPrecision(moved, "wrong", found.outcome),
        )
        with pytest.warns(sf.ConvergenceWarning, match="though its solver says so"):
            fit = graph.clone().fit(rows)
        assert not fit.converged_
        lost = (best.report_.log_likelihood - fit.report_.log_likelihood) / 30
        certificate = fit.report_.certificate
        assert certificate.bound
        assert certificate.value_gap is not None
        assert lost <= certificate.value_gap <= 30 * lost + 1e-12
        assert certificate.moment_gap > 1e-5 * np.sqrt(30)


def test_regressions_that_rounding_holds_off_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from suffice.models.gaussian_graph import learning

    monkeypatch.setattr(learning, "_edge_gap", lambda *_: 1e-3)
    with pytest.warns(sf.ConvergenceWarning, match="rounding holds an edge 1.0e-03 off"):
        fit = sf.GaussianGraph(ring(5), nodes=range(5), solver="regression").fit(
            np.random.default_rng(2).standard_normal((30, 5))
        )
    assert (fit.converged_, fit.stop_reason_) == (False, "stalled")


def test_a_singular_covariance_without_a_verdict_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from suffice.models.gaussian_graph import learning
    from suffice.models.gaussian_graph.certificate import measure

    monkeypatch.setattr(learning, "measure", lambda *given: replace(measure(*given), exists=None))
    with pytest.warns(sf.ConvergenceWarning, match="not known whether there is a maximum"):
        fit = sf.GaussianGraph(ring(5), nodes=range(5)).fit(np.random.default_rng(5).standard_normal((4, 5)))
    assert (fit.converged_, fit.stop_reason_) == (False, "stalled")


# -- extreme covariances ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("a", r"holds 'a' \(str\); expected numbers"),
        (1j, r"holds 1j \(complex\); expected numbers"),
        (None, "holds None; expected finite"),
        (np.nan, "holds nan; expected finite"),
        (1e308, r"variance of 'a' is 1e\+308: too large"),
        (1e300, r"variance of 'a' is 1e\+300: too large"),
        (1e-308, "variance of 'a' is 1e-308: too small"),
        (-1.0, "negative variance, -1, of 'a'"),
    ],
)
def test_a_value_that_no_covariance_has_is_named(value: Any, message: str) -> None:
    S: list[list[Any]] = [[value, 0, 0], [0, 1, 0], [0, 0, 1]]
    graph = sf.GaussianGraph([("a", "b"), ("b", "c")], nodes=list("abc"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataError, match=message):
            graph.fit(covariance=S, n=10)


@pytest.mark.parametrize("unit", [1e-120, 1e-60, 1e60, 1e120])
def test_far_units_give_the_right_number(unit: float) -> None:
    S = np.array([[2.0, 1, 0.7, 0.4], [1, 2, 1, 0.5], [0.7, 1, 2, 1], [0.4, 0.5, 1, 2]])
    graph = sf.GaussianGraph(ring(4), nodes=range(4))
    units = np.array([unit, 1.0, 1.0, unit])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = graph.clone().fit(covariance=S, n=20)
        fit = graph.clone().fit(covariance=S * np.outer(units, units), n=20)
    np.testing.assert_allclose(fit.precision_ * np.outer(units, units), plain.precision_, rtol=1e-9, atol=1e-12)
    assert fit.report_.certificate.exists is True
    assert fit.report_.certificate.moment_gap < 1e-9 * np.sqrt(20)
    assert fit.report_.log_likelihood == pytest.approx(plain.report_.log_likelihood - 40 * np.log(unit), rel=1e-12)


def test_means_and_starts_that_are_no_numbers_are_named() -> None:
    with pytest.raises(OptionError, match="mean holds 'x'"):
        sf.GaussianGraph([("a", "b")], mean=["x", 1.0])
    with pytest.raises(OptionError, match="sample_mean holds 1j"):
        sf.GaussianGraph([("a", "b")], nodes=["a", "b"]).fit(covariance=np.eye(2), n=3, sample_mean=[0.0, 1j])
    with pytest.raises(OptionError, match="start holds 'x'"):
        sf.GaussianGraph([("a", "b")], nodes=["a", "b"], start=np.array([["x", 0], [0, 1]], object)).fit(
            covariance=np.eye(2), n=3
        )
