"""The judge of a Markov network: measured at the weights that were returned, whatever solver returned them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import suffice as sf
from certificates import slope_of
from log_linear import LogLinear, design_of, law_of, maximum, table_features
from suffice.models.markov import learning

STATES = {"A": [0, 1], "B": [0, 1, 2], "C": [0, 1]}
COUNTS = np.array([4.0, 1, 3, 2, 7, 3, 2, 2, 5, 1, 1, 6])
N = COUNTS.sum()
CYCLE = [("A", "B"), ("B", "C"), ("C", "A")]
CHAIN = [("A", "B"), ("B", "C")]
DOMAIN = sf.Domain([sf.Variable.discrete(name, labels) for name, labels in STATES.items()])
TABLE = sf.Table(DOMAIN, COUNTS.reshape(2, 3, 2))


def best_of(design: Any) -> float:
    """The largest mean log-likelihood, every joint state listed, by a generic optimiser."""
    observed = COUNTS @ design / N
    return maximum(LogLinear(design).objective(observed), np.zeros(design.shape[1]))


def objective(design: Any, weights: Any) -> float:
    log_z, _ = law_of(design, weights)
    return float(COUNTS @ design @ weights / N - log_z)


def tampered(monkeypatch: Any, by: float) -> None:
    """Every solver returns weights that are off, and says that it converged."""
    rng = np.random.default_rng(7)

    def wrong(method: Any) -> Any:
        def solve(*given: Any, **options: Any) -> Any:
            weights, outcome = method(*given, **options)
            return weights + by * rng.normal(size=len(weights)), outcome

        return solve

    named = learning.method_named

    def method_named(name: str) -> learning.LogLinearSolver:
        return replace(named(name), solve=wrong(named(name).solve))

    monkeypatch.setattr(learning, "method_named", method_named)


SOLVERS = ("auto", "ipf", "gis", "gis-cyclic", "lbfgs", "newton", "newton-cg", "cg", "ascent", "ascent-potentials")
CASES = [(CYCLE, solver) for solver in SOLVERS] + [(CHAIN, s) for s in ("auto", "closed-form", "ipf", "newton")]


@pytest.mark.parametrize("by", [1e-3, 0.3])
@pytest.mark.parametrize(("cliques", "solver"), CASES)
def test_the_judge_sees_what_a_solver_got_wrong(monkeypatch: Any, cliques: Any, solver: Any, by: float) -> None:
    design = design_of(table_features(cliques, STATES), STATES)
    best = best_of(design)
    tampered(monkeypatch, by)
    mrf = sf.MarkovNetwork(cliques, solver=solver).fit(TABLE)
    with pytest.warns(sf.ConvergenceWarning, match="though its solver says so"):
        certificate = mrf.report_.certificate
    assert not mrf.converged_
    law = law_of(design, mrf.weights_)[1]
    assert certificate.slope == pytest.approx(np.abs((COUNTS / N - law) @ design).max(), rel=1e-6)
    left = best - objective(design, mrf.weights_)
    assert left > 1e-8
    assert certificate.value_gap is not None
    if certificate.bound:
        assert left - 1e-13 <= certificate.value_gap <= left + 1e-10
    else:
        assert 0.3 * left <= certificate.value_gap <= 3 * left


NORMAL, LAPLACE = sf.Normal(variance=0.5), sf.Laplace(scale=0.4)
WITH_PRIOR = [(NORMAL, solver) for solver in ("auto", "lbfgs", "newton", "newton-cg", "cg", "ascent")]


@pytest.mark.parametrize(("prior", "solver"), [*WITH_PRIOR, (LAPLACE, "auto"), (LAPLACE, "owlqn")])
def test_the_judge_of_a_prior_sees_what_a_solver_got_wrong(monkeypatch: Any, prior: Any, solver: Any) -> None:
    best = sf.MarkovNetwork(CYCLE, prior=prior).fit(TABLE).report_.objective
    tampered(monkeypatch, 0.05)
    mrf = sf.MarkovNetwork(CYCLE, prior=prior, solver=solver).fit(TABLE)
    with pytest.warns(sf.ConvergenceWarning, match="though its solver says so"):
        certificate = mrf.report_.certificate
    assert not mrf.converged_
    assert certificate.bound
    assert certificate.value_gap is not None
    assert certificate.value_gap >= (best - mrf.report_.objective) / N > 1e-6
    assert slope_of(certificate) > 1e-4


# -- what is known is said -------------------------------------------------------------------------------------------


def plogp(counts: Any, *axes: int) -> float:
    """The sum of p log p over the margin on these axes."""
    part = counts.sum(axis=tuple({0, 1, 2} - set(axes))) / counts.sum()
    return float(sum(p * np.log(p) for p in np.ravel(part) if p > 0))


def random_counts(rng: Any, shape: tuple[int, ...]) -> Any:
    counts = rng.integers(0, 6, shape).astype(float) * 10.0 ** rng.integers(-6, 7)
    counts.flat[0] += 1.0
    return counts


DECOMPOSABLE = [
    [("A", "B"), ("B", "C")],
    [("A",), ("B",), ("C",)],
    [("A", "B", "C")],
    [("A", "C"), ("B",)],
    [("A", "B")],
]


@pytest.mark.parametrize("cliques", DECOMPOSABLE)
def test_closed_forms_are_exact_and_say_so(cliques: Any) -> None:
    """Margins over separators: the largest log-likelihood is sum n log(n / N) over cliques less that of separators."""
    rng = np.random.default_rng(len(cliques))
    for _ in range(12):
        counts = random_counts(rng, (2, 3, 2))
        total = counts.sum()
        mrf = sf.MarkovNetwork(cliques, states=STATES).fit(sf.Table(DOMAIN, counts))
        certificate = mrf.report_.certificate
        assert certificate.bound
        assert certificate.value_gap is not None
        size = abs(mrf.report_.log_likelihood) / total + 1.0
        assert 0.0 < certificate.value_gap < 1e-13 * size

        best = sum(plogp(counts, *("ABC".index(name) for name in clique)) for clique in cliques)
        if cliques == CHAIN:
            best -= plogp(counts, 1)
        held = {name for clique in cliques for name in clique}
        best -= sum(np.log(len(STATES[name])) for name in STATES if name not in held)
        assert abs(mrf.report_.log_likelihood / total - best) <= certificate.value_gap


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_best_fits_of_a_cycle_say_how_near_they_are(solver: Any) -> None:
    """Slopes of pure rounding are no reason to say nothing; no number is below the rounding of the objective."""
    rng = np.random.default_rng(3)
    for _ in range(4):
        counts = rng.integers(1, 40, (2, 3, 2)).astype(float)
        mrf = sf.MarkovNetwork(CYCLE, solver=solver, max_iter=40_000).fit(sf.Table(DOMAIN, counts))
        value = mrf.report_.certificate.value_gap
        assert value is not None
        assert 1e-16 < value < 1e-13


def test_no_bound_is_below_the_rounding_of_the_objective() -> None:
    for prior in (sf.Normal(variance=1.0), sf.Laplace(scale=1.0), sf.MultivariateNormal(np.zeros(16), np.eye(16))):
        certificate = sf.MarkovNetwork(CYCLE, prior=prior).fit(TABLE).report_.certificate
        assert certificate.bound
        assert certificate.value_gap is not None
        assert certificate.value_gap > 1e-15


def test_an_extended_maximum_of_a_closed_form_is_its_limit() -> None:
    counts = COUNTS.reshape(2, 3, 2).copy()
    counts[0, 1] = 0.0
    certificate = sf.MarkovNetwork(CHAIN).fit(sf.Table(DOMAIN, counts)).report_.certificate
    assert certificate.exists is False
    assert certificate.bound
    assert certificate.value_gap is not None
    assert certificate.value_gap < 1e-13
