"""The certificate of a regression: measured at what is returned, about what is reported, and never below the truth."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize, special

import suffice as sf
from suffice.models.glm import solve
from suffice.solvers import registry

Floats = Any
RNG = np.random.default_rng(11)
N = 150
X = RNG.normal(size=(N, 2))
ETA = 0.3 + X @ [0.6, -0.4]
BINARY = (RNG.random(N) < special.expit(ETA)).astype(float)
COUNTS = RNG.poisson(np.exp(ETA)).astype(float)
LABELS = np.digitize(ETA + RNG.logistic(size=N), [-0.5, 0.8])


# -- a solver that errs ------------------------------------------------------------------------------------------------


def moved(found: Any) -> Any:
    """What a solver returns, with other parameters than it has judged."""
    state = found.outcome.state if hasattr(found, "outcome") else found.state
    state = replace(state, parameters=state.parameters + 0.5)
    if hasattr(found, "outcome"):
        return replace(found, outcome=replace(found.outcome, state=state))
    return replace(found, state=state)


@pytest.mark.parametrize(
    ("family", "solver", "prior", "broken"),
    [
        ("binomial", "auto", None, "irls"),
        ("poisson", "auto", None, "irls"),
        ("gamma", "irls", None, "irls"),
        ("negative_binomial", "auto", None, "irls"),
        ("multinomial", "auto", None, "irls"),
        ("ordinal", "auto", None, "irls"),
        ("binomial", "lbfgs", None, "lbfgs"),
        ("multinomial", "lbfgs", None, "lbfgs"),
        ("binomial", "cg", None, "cg"),
        ("binomial", "newton-cg", None, "newton-cg"),
        ("binomial", "sgd", None, "corrected_ascent"),
        ("binomial", "auto", sf.Laplace(scale=0.5), "proximal_newton"),
        ("ordinal", "auto", sf.Laplace(scale=0.5), "proximal_newton"),
        ("multinomial", "lbfgs", sf.Laplace(scale=0.5), "owlqn"),
        ("binomial", "auto", sf.Normal(variance=1.0), "irls"),
    ],
)
def test_a_solver_that_returns_another_point_is_found_out(
    family: str, solver: str, prior: Any, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    responses: dict[str, Any] = {
        "binomial": BINARY,
        "poisson": COUNTS,
        "gamma": RNG.gamma(3.0, np.exp(ETA)),
        "negative_binomial": COUNTS,
        "multinomial": LABELS,
        "ordinal": LABELS,
    }
    law: Any = sf.NegativeBinomial(size=3.0) if family == "negative_binomial" else family
    link = "log" if family == "gamma" else None
    options: dict[str, Any] = {"link": link, "solver": solver, "prior": prior, "random_state": 0, "max_iter": 2_000}
    good = sf.GLM(law, **options).fit(X, responses[family])
    if broken in registry.registered():
        by_name = registry.registered()[broken]
        wrong = replace(by_name, solve=lambda objective: moved(by_name.solve(objective)))
        monkeypatch.setitem(registry._solvers._known, broken, lambda: wrong)
    else:
        honest = getattr(solve, broken)
        monkeypatch.setattr(solve, broken, lambda *given, **named: moved(honest(*given, **named)))
    with pytest.warns(sf.ConvergenceWarning, match="has not converged"):
        bad = sf.GLM(law, **options).fit(X, responses[family])
    assert good.converged_
    assert good.report_.certificate.moment_gap < 1e-6
    assert not bad.converged_
    assert bad.report_.certificate.moment_gap > 0.1
    lost = (good.report_.objective - bad.report_.objective) / N
    assert bad.report_.certificate.value_gap is None or bad.report_.certificate.value_gap > 0.2 * lost
    if bad.report_.certificate.bound:
        assert bad.report_.certificate.value_gap is not None
        assert bad.report_.certificate.value_gap > lost


def test_a_file_is_measured_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.column_stack([X, COUNTS])
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",", header="a,b,y", comments="")
    assert sf.GLM("poisson").fit(tmp_path / "rows.csv", "y").report_.certificate.moment_gap < 1e-6
    honest = getattr(solve, "irls")  # noqa: B009
    monkeypatch.setattr(solve, "irls", lambda *given, **named: moved(honest(*given, **named)))
    with pytest.warns(sf.ConvergenceWarning, match="has not converged"):
        bad = sf.GLM("poisson").fit(tmp_path / "rows.csv", "y")
    assert bad.report_.certificate.moment_gap > 0.5
    assert not bad.converged_


def test_many_rows_are_measured_by_one_more_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    many = rng.normal(size=(120_000, 3))
    y = (rng.random(len(many)) < special.expit(many @ [0.5, -0.5, 0.2])).astype(float)
    good = sf.GLM("binomial").fit(many, y)
    slope = many.T @ (y - special.expit(good.intercept_ + many @ np.asarray(good.coefficients_)))
    curve = np.sqrt((many**2).sum(axis=0) / 4.0)
    assert good.report_.certificate.moment_gap < 1e-7
    assert np.abs(slope / curve).max() < 1e-7
    from suffice.models.glm import sample

    honest = getattr(sample, "lbfgs")  # noqa: B009
    monkeypatch.setattr(sample, "lbfgs", lambda *given, **named: moved(honest(*given, **named)))
    with pytest.warns(sf.ConvergenceWarning, match="has not converged"):
        bad = sf.GLM("binomial").fit(many, y)
    assert bad.report_.certificate.moment_gap > 0.1


# -- fits that were stopped --------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
@pytest.mark.parametrize("family", ["gamma", "inverse_gaussian", "gaussian"])
def test_no_bound_of_a_stopped_fit_is_below_what_is_left(family: Any) -> None:
    bounds = 0
    for seed in range(70):
        rng = np.random.default_rng([seed, 3])
        n = int(rng.integers(20, 90))
        rows = rng.normal(size=(n, 2))
        mean = np.exp(0.5 + rows @ [0.4, -0.3])
        y = {
            "gamma": rng.gamma(2.0, mean / 2.0),
            "inverse_gaussian": rng.wald(mean, 3.0),
            "gaussian": mean + 0.3 * rng.normal(size=n),
        }[family]
        given: dict[str, Any] = {
            "link": "log",
            "prior": sf.Normal(variance=float(rng.choice([0.1, 1.0, 10.0]))),
            "penalize_intercept": bool(rng.integers(2)),
            "dispersion": float(rng.choice([0.2, 0.5, 2.0])) if rng.random() < 0.6 else None,
        }
        full = sf.GLM(family, max_iter=1_000, **given).fit(rows, y)
        short = sf.GLM(family, max_iter=int(rng.integers(1, 6)), **given).fit(rows, y)
        left = (full.report_.objective - short.report_.objective) / n
        found = short.report_.certificate
        bounds += found.bound
        assert not found.bound or left <= (found.value_gap or 0.0) + 1e-12, (seed, given, left, found)
        # The objective that is reported is that of the coefficients and the dispersion that are returned.
        away = np.asarray(short.parameters_)[not given["penalize_intercept"] :]
        taken = 0.5 * float(away @ away) / float(given["prior"].variance_)
        likelihood = float(density(family, y, short.predict(rows), short.dispersion_).sum())
        assert short.report_.objective == pytest.approx(likelihood - taken, rel=1e-9)
    assert bounds >= (15 if family == "gamma" else 0)


def density(family: str, y: Floats, mean: Floats, phi: float) -> Floats:
    from scipy import stats

    if family == "gaussian":
        return stats.norm.logpdf(y, mean, np.sqrt(phi))
    if family == "gamma":
        return stats.gamma.logpdf(y, 1.0 / phi, scale=mean * phi)
    return stats.invgauss.logpdf(y, mean * phi, scale=1.0 / phi)


# -- duality -----------------------------------------------------------------------------------------------------------


def log_likelihood(family: str, y: Floats, eta: Floats, phi: float) -> float:
    if family == "binomial":
        return float((y * eta - np.logaddexp(0.0, eta)).sum())
    if family == "poisson":
        return float((y * eta - np.exp(eta) - special.gammaln(y + 1.0)).sum())
    if family == "gamma":
        return float(density("gamma", y, np.exp(eta), phi).sum())
    return float(density("gaussian", y, eta, phi).sum())


def best_objective(family: str, y: Floats, rows: Floats, rate: Floats, precision: Floats, phi: float) -> float:
    """The penalised maximum by parts of either sign, with a general optimiser that knows bounds."""
    k = rows.shape[1]

    def loss(parts: Floats) -> float:
        beta = parts[:k] - parts[k:]
        taken = float(rate @ (parts[:k] + parts[k:])) + 0.5 * float(precision @ beta**2)
        return taken - log_likelihood(family, y, rows @ beta, phi)

    best = np.inf
    start = np.zeros(2 * k)
    for _ in range(6):
        found = optimize.minimize(
            loss, start, method="L-BFGS-B", bounds=[(0.0, None)] * 2 * k, options={"ftol": 1e-15, "maxfun": 60_000}
        )
        best, start = min(best, float(found.fun)), found.x
    return -best


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
@pytest.mark.parametrize("family", ["binomial", "poisson", "gaussian", "gamma"])
def test_the_duality_gap_of_lasso_and_elastic_net_is_a_bound(family: Any) -> None:
    for seed in range(12):
        rng = np.random.default_rng([seed, 5])
        n, k = int(rng.integers(25, 60)), int(rng.integers(2, 5))
        rows = rng.normal(size=(n, k)) * 10.0 ** rng.integers(-1, 2, k)
        eta = 0.3 + (rows / np.abs(rows).max(axis=0)) @ rng.normal(size=k)
        y = {
            "binomial": (rng.random(n) < special.expit(eta)).astype(float),
            "poisson": rng.poisson(np.exp(eta)).astype(float),
            "gaussian": eta + 0.5 * rng.normal(size=n),
            "gamma": rng.gamma(3.0, np.exp(eta) / 3.0),
        }[family]
        held = bool(rng.integers(2))
        scale = float(rng.choice([0.05, 0.3, 2.0]))
        prior: Any = sf.Laplace(scale=scale)
        precision = np.zeros(k + 1)
        if seed % 2:
            prior, precision = (prior, sf.Normal(variance=0.5)), np.r_[2.0 * held, np.full(k, 2.0)]
        rate = np.r_[held / scale, np.full(k, 1.0 / scale)]
        known = {"gaussian": 0.25, "gamma": 0.4}.get(family, 1.0)
        given: dict[str, Any] = {
            "prior": prior,
            "penalize_intercept": held,
            "link": "log" if family == "gamma" else None,
        }
        given["dispersion"] = known if family in ("gaussian", "gamma") else None
        whole = np.column_stack([np.ones(n), rows])
        truth = best_objective(family, y, whole, rate, precision, known)
        for solver, limit in (("auto", 1), ("auto", 3), ("lbfgs", 4), ("auto", 100)):
            model = sf.GLM(family, solver=solver, max_iter=limit, **given).fit(rows, y)  # type: ignore[arg-type]
            found = model.report_.certificate
            constant = np.asarray(model.parameters_)
            own = log_likelihood(family, y, whole @ constant, known)
            own -= float(rate @ np.abs(constant)) + 0.5 * float(precision @ constant**2)
            if found.value_gap is None:
                assert limit < 100
                continue
            assert found.bound
            assert (truth - own) / n <= found.value_gap + 1e-12 * (1.0 + abs(truth)), (seed, solver, limit)
            if limit == 100:
                assert model.converged_
                assert found.value_gap < 1e-6
                assert own == pytest.approx(truth, abs=1e-5)


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
@pytest.mark.parametrize("family", ["multinomial", "ordinal"])
def test_the_duality_gap_of_labels(family: Any) -> None:
    for prior in (sf.Laplace(scale=0.1), (sf.Laplace(scale=0.2), sf.Normal(variance=1.0))):
        full = sf.GLM(family, prior=prior, tolerance=1e-11).fit(X, LABELS)
        assert full.report_.certificate.bound
        assert full.report_.certificate.value_gap == pytest.approx(0.0, abs=1e-6)
        for limit in (1, 2, 3):
            short = sf.GLM(family, prior=prior, max_iter=limit).fit(X, LABELS)
            found = short.report_.certificate
            left = (full.report_.objective - short.report_.objective) / N
            assert found.value_gap is None or left <= found.value_gap + 1e-13


def test_a_lasso_beside_an_estimated_dispersion_has_an_estimate() -> None:
    model = sf.GLM(prior=sf.Laplace(scale=0.5)).fit(X, ETA + RNG.normal(size=N))
    found = model.report_.certificate
    assert found.value_gap is not None
    assert not found.bound
    assert found.value_gap < 1e-6


def test_a_lasso_about_other_numbers_than_zero_by_every_solver() -> None:
    prior = sf.Laplace(mean=0.4, scale=0.2)
    fits = [sf.GLM("poisson", prior=prior, solver=solver).fit(X, COUNTS) for solver in ("cd", "lbfgs")]
    np.testing.assert_allclose(fits[0].parameters_, fits[1].parameters_, atol=1e-6)
    assert [one.report_.certificate.value_gap for one in fits] == pytest.approx([0.0, 0.0], abs=1e-6)


# -- vectors -----------------------------------------------------------------------------------------------------------


def test_the_loss_of_vectors_is_measured() -> None:
    Y = np.column_stack([ETA, -ETA]) + RNG.normal(size=(N, 2)) @ [[1.0, 0.5], [0.0, 0.3]]
    for prior in (None, sf.Normal(variance=1.0), sf.NormalWishart(np.zeros(2), 1.0, 4.0, np.eye(2))):
        found = sf.GLM("multivariate_gaussian", prior=prior).fit(X, Y).report_.certificate
        assert found.value_gap is not None
        assert 0.0 <= found.value_gap < 1e-20
        assert found.moment_gap < 1e-9
    from suffice.models.glm.vectors import _of_least_squares
    from suffice.solvers.information import Information

    whole = np.column_stack([np.ones(N), X])
    best = np.linalg.lstsq(whole, Y, rcond=None)[0]
    away = best + 0.1 * RNG.normal(size=best.shape)
    left, least = Y - whole @ away, Y - whole @ best
    truth = 0.5 * (np.linalg.slogdet(left.T @ left)[1] - np.linalg.slogdet(least.T @ least)[1])
    found = _of_least_squares(whole.T @ left, Information(whole.T @ whole), left.T @ left, float(N))
    assert found.value_gap == pytest.approx(truth, rel=1e-9)
