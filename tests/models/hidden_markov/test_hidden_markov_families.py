"""Laws of every family: floors where a state collapses, proportions, priors in EM, starts from a few known states."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

import suffice as sf
from suffice.families.members import most_likely_row
from suffice.families.simplex import inverse_digamma
from suffice.models.em.restarts import run_all
from suffice.models.hidden_markov.emissions import registry
from suffice.models.hidden_markov.emissions.contract import Emission
from suffice.models.hidden_markov.emissions.gaussian import GaussianEmission
from suffice.models.hidden_markov.emissions.registry import EmissionOptions, register_emission

Floats = NDArray[np.float64]

FLOOR = 1e-6


def forward(model: Any, densities: Floats) -> float:
    """Log-likelihood of one sequence from densities (steps, K) and the chain of a model."""
    ahead, total = model.initial_ * densities[0], 0.0
    for row in densities[1:]:
        total += np.log(ahead.sum())
        ahead = (ahead / ahead.sum()) @ model.transitions_ * row
    return float(total + np.log(ahead.sum()))


# -- floors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [3])
@pytest.mark.parametrize("name", ["Gamma", "InverseGamma", "Beta", "Exponential", "Normal about 0"])
def test_a_collapsing_state_of_any_family_stops_at_the_floor(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    law, x = {
        "Gamma": (sf.Gamma(), np.ceil(rng.gamma(2, size=40))),
        "InverseGamma": (sf.InverseGamma(), np.ceil(rng.gamma(2, size=40))),
        "Beta": (sf.Beta(), np.round(rng.beta(2, 2, size=40), 1).clip(0.1, 0.9)),
        "Exponential": (sf.Exponential(), np.r_[[0.0] * 20, [1.0, 2, 3] * 5]),
        "Normal about 0": (sf.Normal(mean=0.0), np.r_[[0.0] * 20, [1.0, 2, -3] * 5]),
    }[name]
    model = sf.HiddenMarkovModel(3, law, random_state=seed, tolerance=1e-3, max_iter=3000).fit([x])
    values = np.array([list(found.parameters_.values()) for found in model.emissions_])
    assert np.isfinite(values).all()
    assert np.isfinite(model.report_.log_likelihood)
    assert (np.diff(model.report_.history) >= -1e-7).all()
    most = _highest(name, x)
    reached = 1 / values[:, 1] if name == "Normal about 0" else values.sum(axis=1) if name == "Beta" else values[:, 0]
    assert (reached <= most * (1 + 1e-6)).all()
    held = reached >= most * (1 - 1e-6)
    noted = [any(f"state {k} is held at its floor" in note for note in model.report_.warnings) for k in range(3)]
    assert noted == held.tolist()
    if name in ("Exponential", "Normal about 0"):
        assert held.any()


def _highest(name: str, x: Floats) -> float:
    """The bound, from maximum likelihood of all steps by SciPy."""
    if name == "Gamma":
        return stats.gamma.fit(x, floc=0)[0] / FLOOR
    if name == "InverseGamma":
        return stats.gamma.fit(1 / x, floc=0)[0] / FLOOR
    if name == "Beta":
        return sum(stats.beta.fit(x, floc=0, fscale=1)[:2]) / FLOOR
    return float(1 / x.mean() / np.sqrt(FLOOR) if name == "Exponential" else 1 / (FLOOR * np.mean(x**2)))


def test_laws_that_cannot_collapse_have_no_floor() -> None:
    x = [0] * 12 + [5, 6, 4, 7] * 3
    model = sf.HiddenMarkovModel(2, sf.Poisson()).fit([x], states=[[0] * 12 + [1] * 12])
    assert [law.rate_ for law in model.emissions_] == [0.0, 5.5]
    assert model.report_.warnings == ()


def test_the_law_on_the_floor_is_the_best_one_there() -> None:
    logs = np.log([0.3, 0.68])
    alpha = most_likely_row(sf.Beta()._family, logs, 20.0)
    assert alpha is not None
    best = optimize.minimize_scalar(
        lambda a: -(a * logs[0] + (20 - a) * logs[1] + stats.beta(a, 20 - a).logpdf(0.5) - 18 * np.log(0.5)),
        bounds=(0.1, 19.9), method="bounded", options={"xatol": 1e-10},
    )  # fmt: skip
    assert alpha == pytest.approx([best.x, 20 - best.x], rel=1e-5)
    narrow = most_likely_row(sf.Gamma()._family, np.array([np.log(2.0), 2.0]), 50.0)
    assert narrow is not None
    assert narrow.tolist() == [50.0, 25.0]
    free = most_likely_row(sf.Gamma()._family, np.array([0.5, 2.0]), 1e9)
    assert free is not None
    np.testing.assert_allclose(np.log(free[0]) - _digamma(free[0]), np.log(2.0) - 0.5, rtol=1e-9)
    x = np.array([1e-8, 0.3, 2.0, 1e6])
    np.testing.assert_allclose(inverse_digamma(_digamma(x)), x, rtol=1e-12)


def _digamma(x: Any) -> Any:
    from scipy.special import digamma

    return digamma(x)


def test_a_law_that_cannot_be_learned_is_kept_and_flagged() -> None:
    x = np.r_[[2.0] * 15, np.random.default_rng(0).gamma(3, size=15) + 5]
    states = [0] * 15 + [1] * 15
    with pytest.warns(sf.ConvergenceWarning, match="though its solver says so"):
        model = sf.HiddenMarkovModel(2, sf.Gamma(), variance_floor=0.0).fit([x], states=[states])
    assert any("distribution of state 0 was left as it was" in note for note in model.report_.warnings)
    assert model.emissions_[1].shape_ == pytest.approx(stats.gamma.fit(x[15:], floc=0)[0], rel=1e-6)


def test_a_run_that_fails_does_not_end_the_others() -> None:
    class Problem:
        def run(self, start: int, control: Any, **_: Any) -> Any:
            if start == 1:
                raise sf.EstimateError("no maximum")
            from suffice.fitting.control import Outcome, State

            return start, Outcome(
                State(np.zeros(1), float(start), 0.0, memory={"evaluations": 3}), True, "converged", ()
            )

        def resumed(self, start: int, outcome: Any) -> Any:
            return start, outcome

    from suffice.fitting.control import Control

    starts = [partial(int, at) for at in range(3)]
    found = run_all(Problem(), starts, Control(), acceleration=None, fingerprint="x")
    assert found.best == 2
    assert found.scores == (0.0, -np.inf, 2.0)
    assert found.notes == ("run 1 failed: no maximum",)
    assert found.evaluations == 6
    with pytest.raises(sf.EstimateError, match="no maximum"):
        run_all(Problem(), [lambda: 1], Control(), acceleration=None, fingerprint="x")


def test_a_singular_covariance_ends_one_run_only() -> None:
    x = np.r_[np.zeros(12), np.random.default_rng(0).normal(8, 1, 30)]
    model = sf.HiddenMarkovModel(
        2, sf.Normal(), variance_floor=0.0, n_init=2, emissions=[(0, 1e-3), (8, 1.0)], random_state=5, max_iter=4,
        tolerance=10.0,
    )  # fmt: skip
    assert len(model.fit([x]).scores_) == 2


# -- proportions -----------------------------------------------------------------------------------------------------


def test_states_emit_proportions(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = np.concatenate([rng.dirichlet([20, 5, 2], 40), rng.dirichlet([2, 5, 20], 40)])
    one = sf.HiddenMarkovModel(1, sf.Dirichlet()).fit([rows])
    np.testing.assert_allclose(one.emissions_[0].alpha_, sf.Dirichlet().fit(rows).alpha_, rtol=1e-9)
    assert one.score_samples([rows])[0] == pytest.approx(
        stats.dirichlet(one.emissions_[0].alpha_).logpdf(rows.T).sum(), rel=1e-10
    )
    model = sf.HiddenMarkovModel(2, sf.Dirichlet(), tolerance=1e-8).fit([rows])
    alphas = np.stack([law.alpha_ for law in model.emissions_])

    def value(theta: Floats) -> float:
        laws = np.exp(theta.reshape(2, 3))
        densities = np.stack([stats.dirichlet(law).pdf(rows.T) for law in laws], axis=1)
        return forward(model, densities)

    point = np.log(alphas).ravel()
    assert value(point) == pytest.approx(model.report_.log_likelihood, rel=1e-10)
    for step in np.eye(6) * 1e-4:
        assert abs(value(point + step) - value(point - step)) / 2e-4 < 1e-3
    assert model.n_params_ == 1 + 2 + 6
    labels = [0] * 40 + [1] * 40
    known = sf.HiddenMarkovModel(2, sf.Dirichlet()).fit([rows], states=[labels])
    for k, law in enumerate(known.emissions_):
        np.testing.assert_allclose(law.alpha_, sf.Dirichlet().fit(rows[40 * k : 40 * k + 40]).alpha_, rtol=1e-8)
    model.write(tmp_path / "model.json")
    again = sf.read(tmp_path / "model.json")
    assert again.score_samples([rows]).tolist() == model.score_samples([rows]).tolist()
    drawn, _ = model.sample(5, random_state=0)
    np.testing.assert_allclose(drawn.sum(axis=1), 1.0)


def test_wrong_proportions_are_named() -> None:
    with pytest.raises(sf.DataError, match=r"Step 1 holds .* add up to one"):
        sf.HiddenMarkovModel(2, sf.Dirichlet()).fit([[[0.5, 0.5], [0.5, 0.6]]])
    with pytest.raises(sf.DataError, match="Step 0 has a missing value in some"):
        sf.HiddenMarkovModel(2, sf.Dirichlet()).fit([np.array([[0.5, np.nan], [0.4, 0.6]])])
    rows = np.array([[0.5, 0.5], [np.nan, np.nan], [0.4, 0.6], [0.3, 0.7]])
    whole = sf.HiddenMarkovModel(1, sf.Dirichlet()).fit([rows])
    np.testing.assert_allclose(whole.emissions_[0].alpha_, sf.Dirichlet().fit(rows[[0, 2, 3]]).alpha_, rtol=1e-8)


# -- priors in EM ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 3, 6])
def test_densities_take_their_mode_in_em_whatever_the_estimate(seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=12) + 3 * (np.arange(12) % 2)
    prior = sf.NormalInverseGamma(alpha=1.5, beta=0.1, gamma=0.1, delta=0)
    options: dict[str, Any] = {"prior": {"emissions": prior}, "random_state": seed, "tolerance": 1e-8, "max_iter": 4000}
    model = sf.HiddenMarkovModel(2, sf.Normal(), estimate="mean", **options).fit([x])
    assert (np.diff(model.report_.history) >= -1e-9).all()

    def value(theta: Floats) -> float:
        means, variances = theta[:2], np.exp(theta[2:])
        densities = np.stack([stats.norm.pdf(x, m, np.sqrt(v)) for m, v in zip(means, variances, strict=True)], axis=1)
        laws = zip(means, variances, strict=True)
        return forward(model, densities) + float(sum(prior.log_prob({"mean": m, "variance": v}) for m, v in laws))

    laws = model.emissions_
    point = np.array([law.mean_ for law in laws] + [np.log(law.variance_) for law in laws])
    assert value(point) == pytest.approx(model.report_.objective, rel=1e-9)
    for step in np.eye(4) * 1e-4:
        assert abs(value(point + step) - value(point - step)) / 2e-4 < 1e-4


def test_a_prior_of_a_tied_variance_is_refused() -> None:
    prior = sf.NormalInverseGamma(alpha=1.5, beta=0.1, gamma=0.1, delta=0)
    with pytest.raises(sf.OptionError, match="not tied"):
        sf.HiddenMarkovModel(2, sf.Normal(prior=prior), covariance="tied").fit([[1.0, 2.0, 3.0, 5.0]])


# -- a few known states ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "law", [sf.Categorical(), sf.Mixture(sf.Categorical(), 2), [sf.Categorical(), sf.Normal()]], ids=str
)
def test_symbols_without_a_known_state_do_not_stop_a_fit(law: Any) -> None:
    rng = np.random.default_rng(0)
    steps: Any = rng.integers(0, 30, 120)
    if isinstance(law, list):
        steps = np.c_[steps, rng.normal(size=120)]
    states: list[Any] = [None] * 120
    states[3], states[40], states[90] = "A", "B", "A"
    model = sf.HiddenMarkovModel(["A", "B"], law, tolerance=1e-2).fit([steps], states=[states])
    assert np.isfinite(model.report_.log_likelihood)
    assert (np.diff(model.report_.history) >= -1e-9).all()


def test_known_states_name_the_others() -> None:
    rng = np.random.default_rng(2)
    z = np.cumsum(rng.random(200) < 0.1) % 2
    x = rng.normal(5.0 * z, 1.0)
    states: list[Any] = [None] * 200
    for at in (int(np.argmax(z == 0)), int(np.argmax(z == 1))):
        states[at] = "high" if z[at] else "low"
    model = sf.HiddenMarkovModel(["high", "low"], sf.Normal()).fit([x], states=[states])
    assert [law.mean_ for law in model.emissions_] == pytest.approx([x[z == 1].mean(), x[z == 0].mean()], abs=0.1)


def test_acceleration_of_laws_of_a_family_reaches_the_same_maximum() -> None:
    rng = np.random.default_rng(4)
    x = np.r_[rng.gamma(9, 1.0, 60), rng.gamma(40, 1.0, 60)]
    start: dict[str, Any] = {"emissions": [(4.0, 0.4), (9.0, 0.4)], "tolerance": 1e-7}
    plain = sf.HiddenMarkovModel(2, sf.Gamma(), **start).fit([x])
    fast = sf.HiddenMarkovModel(2, sf.Gamma(), acceleration="squarem", **start).fit([x])
    assert fast.report_.log_likelihood == pytest.approx(plain.report_.log_likelihood, rel=1e-9)
    assert fast.emissions_[0].shape_ == pytest.approx(plain.emissions_[0].shape_, rel=1e-3)


class Rounded(sf.Normal):
    """A normal distribution of values that are rounded to whole numbers before they are read."""


class RoundedEmission(GaussianEmission):
    def read(self, columns: Any) -> Any:
        return super().read([np.round(np.asarray(column, np.float64)) for column in columns])


class RoundedKind:
    def takes(self, law: Any, options: EmissionOptions, width: int) -> bool:
        return isinstance(law, Rounded)

    def build(self, law: Any, options: EmissionOptions, columns: Any, names: Any, known: Any) -> Emission:
        centre = np.array([np.mean(np.round(columns[0]))]) if len(columns[0]) else np.asarray(known["centre"])
        return RoundedEmission(options.size, "full", centre, np.ones(1), options.floor, scalar=True)


def test_a_kind_of_emission_can_be_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry._kinds, "_known", dict(registry._kinds._known))
    register_emission("rounded", RoundedKind())
    x = np.random.default_rng(0).normal(size=40) + np.repeat([0.0, 6.0], 20)
    start: dict[str, Any] = {
        "initial": [0.5, 0.5],
        "transitions": [[0.9, 0.1], [0.1, 0.9]],
        "emissions": [[0, 1], [6, 1]],
    }
    found = sf.HiddenMarkovModel(2, Rounded(), **start).fit([x])
    expected = sf.HiddenMarkovModel(2, sf.Normal(), **start).fit([np.round(x)])
    np.testing.assert_allclose(found.transitions_, expected.transitions_, atol=1e-6)
    assert found.emissions_[1].mean_ == pytest.approx(expected.emissions_[1].mean_, abs=1e-5)


def test_a_floor_holds_for_what_is_made_from_a_family() -> None:
    class Waiting(sf.Gamma):
        """Gamma by another name."""

    assert Waiting(3.0, 1.0).fitted_.member.concentration() == sf.Gamma(3.0, 1.0).fitted_.member.concentration() == 3.0
    assert sf.NegativeBinomial(2.0, 0.5).fitted_.member.concentration() == 0.0
