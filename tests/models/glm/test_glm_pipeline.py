"""Generalised linear models on the one driver: frozen values, families by a registry, solvers by name."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest
from scipy import optimize, special, stats

import suffice as sf
from suffice.extend import Objective, Outcome, Solver, State, iterate, register_solver
from suffice.families.exponential_family import ExponentialFamily
from suffice.families.member import FamilyMember
from suffice.fitting.contract import Inputs
from suffice.fitting.driver import run
from suffice.models.glm import registry
from suffice.models.glm.family import Family
from suffice.models.glm.fitted import GLMFitted
from suffice.models.glm.solve import SOLVERS
from suffice.solvers.registry import registered, unregister

RNG = np.random.default_rng(5)
X = RNG.normal(size=(80, 2))
COUNTS = RNG.poisson(np.exp(0.3 + X @ [0.5, -0.2]))
LABELS = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + RNG.logistic(size=80), [-0.7, 0.7])]


def test_no_summary_of_rows_is_enough() -> None:
    with pytest.raises(sf.OptionError, match="A GLM has no finite statistics of rows"):
        sf.summarize(sf.GLM("poisson"), {"x": [0.0, 1.0], "y": [1, 2]})
    model = sf.GLM("poisson").fit(X, COUNTS)
    assert not hasattr(model, "summary_")
    with pytest.raises(sf.OptionError, match="fit it again without them"):
        model.unlearn(X)


@pytest.mark.parametrize(
    ("family", "y"),
    [("poisson", COUNTS), ("multinomial", LABELS), ("ordinal", np.digitize(X[:, 1], [-0.5, 0.5])), ("gaussian", X + 1)],
)
def test_what_was_learned_is_a_frozen_value(family: Any, y: Any) -> None:
    rows = X[:, :1] + RNG.normal(size=(80, 1))
    model = sf.GLM(family).fit(rows, y)
    fitted = model.fitted_
    with pytest.raises(dataclasses.FrozenInstanceError):
        fitted.beta = None  # type: ignore[assignment, misc]
    again = GLMFitted.from_dict(fitted.to_dict())
    np.testing.assert_array_equal(again.values, fitted.values)
    np.testing.assert_array_equal(again.covariance(), fitted.covariance())
    assert again.n_params == fitted.n_params == model.n_params_
    np.testing.assert_allclose(model.score_samples(rows, y).sum(), model.log_likelihood_, rtol=1e-10)


def test_a_fit_that_fails_changes_nothing() -> None:
    model = sf.GLM("poisson").fit(X, COUNTS)
    report, fitted = model.report_, model.fitted_
    with pytest.raises(sf.DataError):
        model.fit(X, -COUNTS - 1.0)
    assert model.fitted_ is fitted
    assert model.report_ == report


def test_a_problem_judges_other_coefficients_than_its_own() -> None:
    """The judge measures the value that it is given, not what the solver found."""
    task = sf.GLM("poisson")._task()
    data = task.read(Inputs(X, {"y": COUNTS}), None, "fit")
    problem = task.problem(data, None)
    fitted = run(task, Inputs(X, {"y": COUNTS}), sf.GLM("poisson")._control()).fitted
    problem.solve(sf.GLM("poisson")._control())
    best = problem.judge(fitted)
    moved = problem.judge(dataclasses.replace(fitted, beta=fitted.beta + 0.1))
    assert moved.log_likelihood < best.log_likelihood
    assert moved.certificate.moment_gap > 1.0 > 1e-6 > best.certificate.moment_gap
    mean = np.exp(np.column_stack((np.ones(80), X)) @ (fitted.beta[:, 0] + 0.1))
    expected = float((COUNTS * np.log(mean) - mean - [math.lgamma(y + 1.0) for y in COUNTS]).sum())
    np.testing.assert_allclose(moved.log_likelihood, expected, rtol=1e-12)


@dataclass(frozen=True)
class HyperbolicSecant(Family):
    """The last of Morris's families with a quadratic variance, ``V = 1 + mean^2``; theta = arctan(mean)."""

    name = "hyperbolic_secant"
    links = ("identity",)

    def variance(self, mean: Any) -> Any:
        """1 + mean^2."""
        return 1.0 + mean**2

    def deviance(self, y: Any, mean: Any) -> Any:
        """Twice the integral of (y - t) / V(t) from the mean to y."""
        away = y * (np.arctan(y) - np.arctan(mean))
        return 2.0 * (away - 0.5 * np.log((1.0 + y**2) / (1.0 + mean**2)))

    def base(self, y: Any) -> Any:
        """The rest of the log density, ``-log(2 cosh(pi y / 2))``, and what `value` takes of y alone."""
        best = y * np.arctan(y) - 0.5 * np.log1p(y**2)
        return best - np.logaddexp(0.5 * np.pi * y, -0.5 * np.pi * y)

    def sample(self, mean: Any, phi: float, rng: np.random.Generator) -> Any:
        """Not needed here."""
        return mean


def _secant_log_likelihood(beta: Any, y: Any) -> float:
    theta = np.arctan(np.column_stack((np.ones(80), X)) @ beta)
    return float((theta * y + np.log(np.cos(theta)) - np.logaddexp(0.5 * np.pi * y, -0.5 * np.pi * y)).sum())


def test_a_family_of_a_third_party(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.FAMILIES, "_known", dict(registry.FAMILIES._known))
    registry.register(HyperbolicSecant())
    y = 0.5 + X @ [1.0, -0.5] + RNG.normal(size=80)
    for family in ("hyperbolic_secant", "hyperbolic-secant", HyperbolicSecant()):
        model = sf.GLM(family).fit(X, y)  # type: ignore[arg-type]
        best = cast(Any, optimize.minimize)(
            lambda b: -_secant_log_likelihood(b, y), np.zeros(3), method="BFGS", options={"gtol": 1e-9}
        )
        np.testing.assert_allclose(np.asarray(model.parameters_), best.x, atol=1e-6)
        np.testing.assert_allclose(model.log_likelihood_, -best.fun, rtol=1e-10)
        assert model.converged_


def test_a_subclass_of_a_distribution_stands_for_its_family() -> None:
    class Visits(sf.Poisson):
        """A name of one's own."""

    np.testing.assert_array_equal(
        np.asarray(sf.GLM(Visits()).fit(X, COUNTS).parameters_),
        np.asarray(sf.GLM("poisson").fit(X, COUNTS).parameters_),
    )
    with pytest.raises(sf.OptionError, match="responses follow 'Normal'"):
        sf.GLM(sf.Dirichlet([1.0, 2.0]))


@pytest.mark.parametrize("solver", [name for name in {**SOLVERS, **registered()} if name != "owlqn"])
def test_every_solver_by_its_name(solver: Any) -> None:
    model = sf.GLM("poisson", solver=solver, max_iter=2_000, random_state=0).fit(X, COUNTS)
    np.testing.assert_allclose(
        np.asarray(model.parameters_), np.asarray(sf.GLM("poisson").fit(X, COUNTS).parameters_), atol=1e-5
    )
    with pytest.raises(sf.OptionError, match="'irls', 'newton', 'lbfgs'"):
        sf.GLM("poisson", solver=solver + "?")


def test_a_solver_of_somebody_else_fits_regressions() -> None:
    def ascend(objective: Objective) -> Outcome:
        """Steps along the slope, which the model gives in units of the curvature."""

        def state(x: Any) -> State:
            value, slope = objective.evaluate(x)
            return State(x, value, float(np.abs(slope).max()), memory={"slope": slope})

        return iterate(
            lambda one: state(one.parameters + 0.5 * one.memory["slope"]), state(objective.start), objective.control
        )

    def twice(objective: Objective) -> Outcome:
        """Newton's steps without a line search, by the information of the model."""
        assert objective.information is not None
        information = objective.information

        def state(x: Any) -> State:
            value, slope = objective.evaluate(x)
            return State(x, value, float(np.abs(slope).max()), memory={"slope": slope})

        def step(one: State) -> State:
            return state(one.parameters + np.linalg.solve(information(one.parameters), one.memory["slope"]))

        return iterate(step, state(objective.start), objective.control)

    register_solver(Solver("half-steps", "ascent by half steps", ascend))
    register_solver(Solver("bare-newton", "Newton without a search", twice, uses="information"))
    try:
        labels = np.digitize(X[:, 0] + RNG.normal(size=80), [-0.5, 0.5])
        for family, y in (("poisson", COUNTS), ("multinomial", labels), ("ordinal", labels)):
            best = sf.GLM(family).fit(X, y)  # type: ignore[arg-type]
            for name, method in (("half-steps", "ascent by half steps"), ("bare-newton", "Newton without a search")):
                model = sf.GLM(family, solver=name, max_iter=5_000).fit(X, y)  # type: ignore[arg-type]
                assert model.converged_
                assert model.report_.method == method
                np.testing.assert_allclose(np.asarray(model.parameters_), np.asarray(best.parameters_), atol=1e-5)
        with pytest.raises(sf.OptionError, match="has corners at 0: use solver='cd' or 'lbfgs', not 'half-steps'"):
            sf.GLM("poisson", solver="half-steps", prior=sf.Laplace(scale=1.0)).fit(X, COUNTS)  # type: ignore[arg-type]
        with pytest.raises(sf.OptionError, match="solver='owlqn' is for a Laplace prior"):
            sf.GLM("poisson", solver="owlqn").fit(X, COUNTS)
    finally:
        unregister("half-steps")
        unregister("bare-newton")
    with pytest.raises(sf.OptionError, match="solver is 'half-steps'"):
        sf.GLM("poisson", solver="half-steps")  # type: ignore[arg-type]


def test_vectors_with_the_gaussian_name_are_saved_and_loaded(tmp_path: Any) -> None:
    model = sf.GLM("gaussian").fit(X[:, :1], X + RNG.normal(size=(80, 2)))
    model.write(tmp_path / "model.json")
    np.testing.assert_array_equal(sf.read(tmp_path / "model.json").coefficients_, model.coefficients_)


class VonMisesMember(FamilyMember):
    """Angles about 0, ``exp(kappa cos x) / (2 pi I_0(kappa))``: one natural parameter, T(x) = cos x."""

    parameter_names = ("kappa",)
    statistic_names = ("cos",)

    def check(self, parameters: Any) -> dict[str, Any]:
        return {"kappa": float(parameters["kappa"])}

    def sufficient_statistics(self, x: Any) -> Any:
        return np.cos(np.asarray(x))[..., None]

    def log_base_measure(self, x: Any) -> Any:
        return np.full(np.shape(x), -math.log(2.0 * math.pi))

    def log_normalizer(self, eta: Any = None) -> float:
        kappa = abs(float(self._eta(eta)[0]))
        return kappa + math.log(special.ive(0, kappa))

    def expected_statistics(self, eta: Any = None) -> Any:
        kappa = self._eta(eta)
        return np.sign(kappa) * special.ive(1, np.abs(kappa)) / special.ive(0, np.abs(kappa))

    def statistics_covariance(self, eta: Any = None) -> Any:
        kappa, mean = self._eta(eta), self.expected_statistics(eta)
        ratio = np.where(np.abs(kappa) > 1e-8, mean / np.where(kappa == 0.0, 1.0, kappa), 0.5)
        return np.asarray([1.0 - ratio - mean**2])

    def to_natural(self, parameters: Any) -> Any:
        return np.array([parameters["kappa"]])

    def from_natural(self, eta: Any) -> dict[str, Any]:
        return {"kappa": float(eta[0])}

    def start(self, mean: Any) -> Any:
        return np.zeros(1)

    def sample(self, n: int = 1, random_state: Any = None) -> Any:
        return np.random.default_rng(random_state).vonmises(0.0, self.parameters_["kappa"], n)

    def ask(self, domain: Any) -> Any:
        return (sf.Sums.of((domain.names[0], "cos")),)

    def observed(self, summary: Any) -> Any:
        return summary[self.ask(summary.domain)[0]].means


class VonMises(ExponentialFamily):
    """The options of `VonMisesMember`."""

    member_class = VonMisesMember

    def __init__(self, kappa: float | None = None) -> None:
        super().__init__(kappa=kappa)


def test_any_exponential_family_of_one_natural_parameter() -> None:
    """How narrow angles are about 0 follows a column; the oracle is a generic optimiser of SciPy's density."""
    rng = np.random.default_rng(11)
    x = rng.uniform(0.5, 3.0, 150)
    angles = rng.vonmises(0.0, 0.5 + 1.2 * x)
    model = sf.GLM(family=VonMises()).fit(x[:, None], angles)

    def loss(b: Any) -> float:
        return -float(stats.vonmises.logpdf(angles, np.maximum(b[0] + b[1] * x, 1e-12)).sum())

    best = optimize.minimize(loss, [1.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
    np.testing.assert_allclose(np.asarray(model.parameters_), best.x, rtol=1e-5)
    np.testing.assert_allclose(model.log_likelihood_, -best.fun, rtol=1e-10)
    np.testing.assert_allclose(model.score_samples(x[:, None], angles).sum(), -best.fun, rtol=1e-10)
    assert model.converged_
    assert model.link_ == "natural"
    hessian, family = np.zeros((2, 2)), VonMises
    for row in np.column_stack((np.ones(150), x)):
        hessian += np.outer(row, row) * float(family(kappa=float(row @ best.x)).statistics_covariance()[0, 0])
    np.testing.assert_allclose(model.standard_errors_, np.sqrt(np.diag(np.linalg.inv(hessian))), rtol=1e-4)
    kappa = best.x[0] + best.x[1] * x[:3]
    means = special.ive(1, kappa) / special.ive(0, kappa)
    np.testing.assert_allclose(model.predict(x[:3, None]), means, rtol=1e-5)
    drawn = model.sample(np.full((2_000, 1), 2.0), random_state=0)
    np.testing.assert_allclose(np.cos(drawn).mean(), model.predict([[2.0]])[0], atol=0.02)
    assert model.matched_statistics() is not None
    assert "deviance" not in str(model.summary())


SEPARATED = (X[:, 0] > 0.0).astype(int)
ON_EDGE = np.array([0, 0, 0, 1, 2, 2, 3, 5])


@pytest.mark.parametrize(
    ("model", "rows", "y"),
    [
        (sf.GLM("poisson"), X, COUNTS),
        (sf.GLM("gaussian"), X, X[:, 0] + RNG.normal(size=80)),
        (sf.GLM("gaussian"), X, 2.0 * X[:, 0]),
        (sf.GLM("gaussian", collinear="drop"), np.column_stack([X, X[:, 0]]), X[:, 1] + RNG.normal(size=80)),
        (sf.GLM("gamma", link="log", prior=sf.Normal(variance=2.0)), X, np.exp(X[:, 0] + RNG.normal(size=80))),
        (sf.GLM("negative_binomial"), X, RNG.negative_binomial(2, 0.4, size=80)),
        (sf.GLM("binomial", prior=sf.Laplace(scale=0.5)), X, (COUNTS > 1).astype(int)),
        (sf.GLM("binomial"), X, SEPARATED),
        (sf.GLM("poisson", link="identity"), np.arange(8.0)[:, None], ON_EDGE),
        (sf.GLM("multinomial"), X, LABELS),
        (sf.GLM("multinomial"), X, np.where(SEPARATED == 1, "c", LABELS)),
        (sf.GLM("ordinal"), X, np.digitize(X[:, 1] + RNG.normal(size=80), [-0.5, 0.5])),
        (sf.GLM("ordinal"), X, np.digitize(X[:, 0], [-0.5, 0.5])),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_the_judge_needs_nothing_of_the_search(model: Any, rows: Any, y: Any) -> None:
    model.fit(rows, y)
    task = model._task()
    data = task.read(Inputs(rows, {"y": y}), None, "fit")
    judged = task.problem(data, None).judge(model.fitted_)
    assert judged.certificate.exists == model.report_.certificate.exists
    assert judged.certificate.directions == model.report_.certificate.directions
    assert judged.certificate.moment_gap == pytest.approx(model.report_.certificate.moment_gap, abs=1e-9)
    assert judged.log_likelihood == pytest.approx(model.report_.log_likelihood, rel=1e-12)
    assert judged.objective == pytest.approx(model.report_.objective, rel=1e-12)


def test_errors_of_two_labels_by_softmax_are_those_of_all_rows() -> None:
    rng = np.random.default_rng(8)
    many = rng.normal(size=(100_000, 2))
    y = (rng.random(100_000) < special.expit(many @ [0.5, -0.3])).astype(int)
    binary = sf.GLM("binomial").fit(many, y)
    softmax = sf.GLM("multinomial", reference=0).fit(many, y)
    np.testing.assert_allclose(
        np.asarray(softmax.standard_errors_)[:, 0], np.asarray(binary.standard_errors_), rtol=1e-6
    )


def test_a_fitted_value_scores_the_rows_of_a_user(tmp_path: Any) -> None:
    frame = {"x": X[:, 0], "g": np.where(X[:, 1] > 0, "a", "b"), "n": COUNTS, "label": LABELS}
    for family, y in (("poisson", "n"), ("multinomial", "label"), ("binomial", (COUNTS > 1).astype(int))):
        model = sf.GLM(family).fit(frame, y, columns=["x", "g"])  # type: ignore[arg-type]
        scores = model.fitted_.score_samples(frame, y)
        assert scores.shape == (80,)
        assert scores.sum() == pytest.approx(model.log_likelihood_, rel=1e-10)
        np.testing.assert_array_equal(scores, model.score_samples(frame, y))
    other = {**frame, "g": np.full(80, "c")}
    with pytest.raises(sf.UnknownStateError):
        model.fitted_.score_samples(other, y)
    assert np.isfinite(model.fitted_.score_samples(other, y, unknown="pool")).all()
    written = sf.GLM("poisson", formula="n ~ x + C(g)").fit(frame)
    written.write(tmp_path / "model.json")
    for one in (written, sf.read(tmp_path / "model.json")):
        assert one.fitted_.score_samples(frame).sum() == pytest.approx(written.log_likelihood_, rel=1e-10)
