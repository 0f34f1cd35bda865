"""Baum-Welch: monotone, stationary, and the same whatever the form, the weights and the threads."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

import suffice as sf
from suffice.kernels import choice
from suffice.models.hidden_markov import segments

Floats = NDArray[np.float64]
FAST: dict[str, Any] = {"max_iter": 30, "tolerance": 0.0}


def fitted(model: sf.HiddenMarkovModel, *data: Any, **form: Any) -> sf.HiddenMarkovModel:
    """A fit that stops at its limit of steps, as asked."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*data, **form)


def words(n: int = 12, seed: int = 0) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    return [list(rng.choice(list("abc"), size=int(length))) for length in rng.integers(1, 9, n)]


def reals(n: int = 3, seed: int = 0, d: int = 1) -> list[Floats]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        state = np.cumsum(rng.random(60) < 0.15) % 2
        found.append((rng.normal(size=(60, d)) * (1 + state[:, None]) + 6 * state[:, None]).squeeze())
    return found


def rises(model: sf.HiddenMarkovModel) -> bool:
    return bool((np.diff(model.history_) >= -1e-9 * abs(model.history_[-1])).all())


LAWS: dict[str, tuple[Any, Any]] = {
    "symbols": (sf.Categorical(), words()),
    "normal": (sf.Normal(), reals()),
    "full": (sf.MultivariateNormal(), reals(d=2)),
    "mixture": (sf.Mixture(sf.Normal(), 2), reals(4)),
    "vectors of bits": (sf.Bernoulli(), [(part > 3).astype(int) for part in reals(d=3)]),
    "counts": (sf.Poisson(), [np.floor(np.abs(part)) for part in reals()]),
    "waiting times": (sf.Exponential(), [np.abs(part) for part in reals()]),
    "shapes": (sf.Gamma(), [np.abs(part) + 0.1 for part in reals()]),
    "failures": (sf.Geometric(), [np.floor(np.abs(part)) for part in reals()]),
    "known variance": (sf.Normal(mean=None, variance=2.0), reals()),
    "columns": ([sf.Normal(), sf.Poisson()], [np.stack([p[:, 0], np.floor(np.abs(p[:, 1]))], 1) for p in reals(d=2)]),
}


@pytest.mark.parametrize("name", [name for name in LAWS if name != "known variance"])
def test_the_likelihood_never_falls_and_one_more_step_changes_nothing(name: str) -> None:
    law, data = LAWS[name]
    model = fitted(sf.HiddenMarkovModel(2, law, max_iter=400, tolerance=1e-6), data)
    assert rises(model)
    gap = model._judgement().gap
    assert gap is not None
    assert model.converged_ == (gap <= 1.01e-6 or model.stop_reason_ == "converged")
    assert gap < (2e-6 if model.converged_ else 1e-2)
    assert model.score_samples(data).sum() == pytest.approx(model.report_.log_likelihood, rel=1e-10)
    # The log-likelihood by the laws themselves, as densities of each step.
    logs = np.stack([item.log_prob(data[0]) for item in model.emissions_], axis=1)
    ahead = np.log(np.maximum(model.initial_, 1e-300)) + logs[0]
    for row in logs[1:]:
        with np.errstate(divide="ignore"):
            ahead = np.logaddexp.reduce(ahead[:, None] + np.log(model.transitions_), axis=0) + row
    assert np.logaddexp.reduce(ahead) == pytest.approx(model.score_samples(data[:1])[0], rel=1e-9)


@pytest.mark.parametrize("shape", ["full", "diagonal", "spherical", "tied"])
def test_covariances_have_their_shape(shape: Any) -> None:
    model = fitted(sf.HiddenMarkovModel(2, sf.MultivariateNormal(), covariance=shape, **FAST), reals(d=3))
    assert rises(model)
    first, second = (law.covariance_ for law in model.emissions_)
    if shape == "tied":
        np.testing.assert_array_equal(first, second)
    if shape in ("diagonal", "spherical"):
        np.testing.assert_array_equal(first, np.diag(np.diag(first)))
    if shape == "spherical":
        assert len(set(np.diag(first).tolist())) == 1
    free = {"full": 2 * 9, "diagonal": 2 * 6, "spherical": 2 * 4, "tied": 6 + 6}[shape]
    assert model.n_params_ == 1 + 2 + free


def test_the_slope_of_the_likelihood_vanishes() -> None:
    data = reals()
    model = sf.HiddenMarkovModel(2, sf.Normal(), tolerance=1e-9).fit(data)

    def value(mean: float, variance: float, stay: float) -> float:
        laws = [sf.Normal(mean, variance), model.emissions_[1]]
        moved = model.transitions_.copy()
        moved[0] = [stay, 1 - stay]
        other = sf.HiddenMarkovModel(
            2, sf.Normal(), initial=model.initial_, transitions=moved, emissions=laws, max_iter=0,
            fixed=["initial", "transitions", "emissions"],
        )  # fmt: skip
        return float(other.fit(data).report_.log_likelihood)

    law, stay = model.emissions_[0], float(model.transitions_[0, 0])
    point = np.array([law.mean_, law.variance_, stay])
    for at in range(3):
        step = np.zeros(3)
        step[at] = 1e-4
        up, down = value(*(point + step)), value(*(point - step))
        curvature = (up + down - 2 * model.report_.log_likelihood) / 1e-8
        assert abs(up - down) / 2e-4 < 1e-4 * abs(curvature) + 1e-5


def test_standard_errors_are_those_of_the_numerical_hessian() -> None:
    data = reals(4)
    model = sf.HiddenMarkovModel(2, sf.Normal(), tolerance=1e-10, max_iter=5000).fit(data)
    errors = model.standard_errors_of(data)

    def value(x: Floats) -> float:
        logs = np.stack([stats.norm(x[k], np.sqrt(x[2 + k])).logpdf(np.stack(data)) for k in range(2)], axis=-1)
        matrix = np.array([[x[4], 1 - x[4]], [1 - x[5], x[5]]])
        ahead = np.log(np.maximum(model.initial_, 1e-300)) + logs[:, 0]
        for t in range(1, logs.shape[1]):
            ahead = np.logaddexp.reduce(ahead[:, :, None] + np.log(matrix), axis=1) + logs[:, t]
        return float(np.logaddexp.reduce(ahead, axis=1).sum())

    laws = model.emissions_
    point = np.array([*(law.mean_ for law in laws), *(law.variance_ for law in laws), *np.diag(model.transitions_)])
    steps = 1e-3 * np.maximum(np.abs(point), 0.1)
    hessian = np.empty((6, 6))
    for i in range(6):
        for j in range(6):
            total = 0.0
            for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
                moved = point.copy()
                moved[i] += a * steps[i]
                moved[j] += b * steps[j]
                total += a * b * value(moved)
            hessian[i, j] = total / (4 * steps[i] * steps[j])
    expected = np.sqrt(np.diag(np.linalg.inv(-hessian)))
    np.testing.assert_allclose(errors["emissions"]["means"][:, 0], expected[:2], rtol=2e-3)
    np.testing.assert_allclose(errors["emissions"]["covariances"][:, 0, 0], expected[2:4], rtol=2e-3)
    np.testing.assert_allclose(np.diag(errors["transitions"]), expected[4:], rtol=2e-3)


def test_pseudo_counts_in_em_climb_the_penalised_likelihood() -> None:
    model = sf.HiddenMarkovModel(2, sf.Categorical(), prior=0.5, tolerance=1e-7, max_iter=3000).fit(words())
    assert rises(model)
    penalty = 0.5 * sum(
        np.log(part).sum() for part in (model.initial_, model.transitions_, model.emission_probabilities_)
    )
    assert model.report_.objective == pytest.approx(model.report_.log_likelihood + penalty, rel=1e-10)
    assert model.history_[-1] == pytest.approx(model.report_.objective, rel=1e-9)
    assert (model.transitions_ > 0).all()


def test_a_conjugate_prior_holds_a_variance_up() -> None:
    data = [np.array([0.0, 0.0, 0.0, 5.0, 5.0, 5.0, 0.0, 0.0, 5.0])]
    prior = sf.NormalInverseGamma(alpha=2, beta=1, gamma=1, delta=2)
    model = sf.HiddenMarkovModel(2, sf.Normal(prior=prior)).fit(data)
    assert rises(model)
    assert min(law.variance_ for law in model.emissions_) > 0.05


def test_a_collapsing_state_stops_at_the_floor() -> None:
    data = [np.array([1.0, 1.0, 1.0, 1.0, 9.0, 9.5, 10.0, 8.5])]
    model = fitted(sf.HiddenMarkovModel(2, sf.Normal(), variance_floor=1e-4, **FAST), data)
    assert np.isfinite([law.variance_ for law in model.emissions_]).all()
    assert min(law.variance_ for law in model.emissions_) == pytest.approx(1e-4 * np.var(data[0]), rel=1e-9)
    assert any("floor" in note for note in model.report_.warnings)
    constant = fitted(sf.HiddenMarkovModel(2, sf.Normal(), **FAST), [np.full(6, 3.0)])
    assert all(np.isfinite([law.mean_, law.variance_]).all() for law in constant.emissions_)


def test_more_states_than_data_need_stay_laws() -> None:
    model = fitted(
        sf.HiddenMarkovModel(5, sf.Normal(), **FAST), [np.r_[np.zeros(20), np.ones(20)] + 0.01 * np.arange(40)]
    )
    np.testing.assert_allclose(model.transitions_.sum(axis=1), 1.0)
    assert np.isfinite(model.transitions_).all()
    assert model.initial_.sum() == pytest.approx(1.0)


def test_an_unreachable_state_is_flagged() -> None:
    model = sf.HiddenMarkovModel(
        2, sf.Categorical(), initial=[1, 0], transitions=[[1, 0], [0.5, 0.5]], emissions=[[0.3, 0.3, 0.4]] * 2
    )
    with pytest.warns(sf.SufficeWarning, match="state 1 is unused"):
        model.fit(words())
    assert model.transitions_[1].tolist() == [0.5, 0.5]


def test_the_limit_of_steps_is_no_convergence() -> None:
    with pytest.warns(sf.ConvergenceWarning):
        model = sf.HiddenMarkovModel(2, sf.Categorical(), max_iter=1).fit(words())
    assert not model.converged_
    assert model.n_iter_ == 1
    assert len(model.history_) == 2


def test_structural_zeros_and_fixed_parts_stay() -> None:
    chain = np.array([[0.6, 0.4, 0.0], [0.0, 0.7, 0.3], [0.0, 0.0, 1.0]])
    model = fitted(
        sf.HiddenMarkovModel(3, sf.Normal(), initial=[1, 0, 0], transitions=chain, prior=0.1, **FAST), reals()
    )
    assert (model.transitions_[chain == 0] == 0).all()
    assert model.initial_.tolist() == [1, 0, 0]
    assert model.n_params_ == 0 + 2 + 6
    forward = fitted(sf.HiddenMarkovModel(3, sf.Normal(), topology="left-right", **FAST), reals())
    assert (np.tril(forward.transitions_, -1) == 0).all()
    laws = [sf.Normal(0.1, 1.3), sf.Normal(5.7, 2.9)]
    held = fitted(sf.HiddenMarkovModel(2, sf.Normal(), emissions=laws, fixed=["emissions"], **FAST), reals())
    assert [(law.mean_, law.variance_) for law in held.emissions_] == [(0.1, 1.3), (5.7, 2.9)]
    assert rises(held)


def test_tied_states_share_their_law() -> None:
    model = fitted(sf.HiddenMarkovModel(["a", "b", "c"], sf.Normal(), tied=[("a", "c")], **FAST), reals())
    first, _, third = model.emissions_
    assert (first.mean_, first.variance_) == (third.mean_, third.variance_)
    assert rises(model)
    assert model.n_params_ == 2 + 6 + 4


def test_known_states_guide_the_others() -> None:
    data = reals(4)
    truth = [(part > 3).astype(int) for part in data]
    some: list[Any] = [truth[0].tolist(), None, [None] * 30 + truth[2][30:].tolist(), None]
    model = fitted(sf.HiddenMarkovModel(2, sf.Normal(), tolerance=1e-7), data, some)
    assert rises(model)
    assert model.emissions_[0].mean_ < model.emissions_[1].mean_
    # Known states as impossible emissions of the others: the likelihood restricted to the paths that agree.
    whole = sf.HiddenMarkovModel(2, sf.Normal()).fit(data, states=truth)
    for k in range(2):
        inside = np.concatenate(data)[np.concatenate(truth) == k]
        assert whole.emissions_[k].mean_ == pytest.approx(inside.mean(), rel=1e-12)


def test_gaps_in_real_steps_are_summed_out() -> None:
    rng = np.random.default_rng(0)
    data = [part.copy() for part in reals(3, d=2)]
    for part in data:
        part[rng.random(part.shape) < 0.2] = np.nan
    model = fitted(sf.HiddenMarkovModel(2, sf.MultivariateNormal(), max_iter=300), data)
    assert rises(model)
    logs = np.zeros((60, 2))
    for t, row in enumerate(data[0]):
        seen = ~np.isnan(row)
        for k, law in enumerate(model.emissions_):
            if seen.any():
                inner = stats.multivariate_normal(law.mean_[seen], law.covariance_[np.ix_(seen, seen)])
                logs[t, k] = inner.logpdf(row[seen])
    ahead = np.log(np.maximum(model.initial_, 1e-300)) + logs[0]
    for row in logs[1:]:
        ahead = np.logaddexp.reduce(ahead[:, None] + np.log(np.maximum(model.transitions_, 1e-300)), axis=0) + row
    assert np.logaddexp.reduce(ahead) == pytest.approx(model.score_samples(data[:1])[0], rel=1e-10)


def test_runs_keep_the_best() -> None:
    model = fitted(sf.HiddenMarkovModel(3, sf.Categorical(), n_init=4, max_iter=40), words(20))
    assert len(model.scores_) == 4
    assert model.report_.objective == pytest.approx(max(model.scores_), rel=1e-12)


def test_a_seed_repeats_the_fit_and_leaves_the_global_generator_alone() -> None:
    before = repr(np.random.get_state(legacy=False))
    first, second = (fitted(sf.HiddenMarkovModel(2, sf.Normal(), random_state=0, **FAST), reals()) for _ in range(2))
    assert np.array_equal(first.transitions_, second.transitions_)
    assert repr(np.random.get_state(legacy=False)) == before


def test_acceleration_reaches_the_same_maximum() -> None:
    plain = sf.HiddenMarkovModel(2, sf.Normal(), tolerance=1e-8).fit(reals())
    quick = sf.HiddenMarkovModel(2, sf.Normal(), tolerance=1e-8, acceleration="squarem").fit(reals())
    assert quick.report_.log_likelihood == pytest.approx(plain.report_.log_likelihood, abs=1e-6)
    assert rises(quick)


@pytest.mark.parametrize("name", ["symbols", "normal", "mixture", "counts", "columns", "known variance"])
def test_a_saved_model_is_the_same_model(name: str, tmp_path: Path) -> None:
    law, data = LAWS[name]
    model = fitted(sf.HiddenMarkovModel(["x", "y"], law, max_iter=5), data)
    for ending in (".json", ".suffice"):
        model.write(tmp_path / f"m{ending}")
        loaded = sf.read(tmp_path / f"m{ending}")
        assert np.array_equal(loaded.transitions_, model.transitions_)
        assert np.array_equal(loaded.score_samples(data), model.score_samples(data))
        assert loaded.report_ == model.report_
        assert loaded.states_ == ("x", "y")


def test_counts_survive_a_file(tmp_path: Path) -> None:
    model = sf.HiddenMarkovModel(["F", "L"], sf.Categorical(states=["H", "T"])).fit(["HTHH"], states=["FFLL"])
    model.write(tmp_path / "m.json")
    loaded = sf.read(tmp_path / "m.json").partial_fit(["TTH"], states=["LLF"])
    whole = sf.HiddenMarkovModel(["F", "L"], sf.Categorical(states=["H", "T"])).fit(["HTHH", "TTH"], ["FFLL", "LLF"])
    assert np.array_equal(loaded.transitions_, whole.transitions_)


def test_a_checkpoint_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    options: dict[str, Any] = {"emission": sf.Normal(), "tolerance": 1e-5}
    whole = sf.HiddenMarkovModel(2, **options).fit(reals())
    path = tmp_path / "fit.json"
    fitted(sf.HiddenMarkovModel(2, **options, max_iter=3, checkpoint=path), reals())
    assert path.exists()
    again = sf.HiddenMarkovModel(2, **options, checkpoint=path).fit(reals())
    assert np.array_equal(again.transitions_, whole.transitions_)
    assert not path.exists()


def test_a_stationary_start_has_the_law_of_its_transitions() -> None:
    model = sf.HiddenMarkovModel(2, sf.Normal(), initial="stationary").fit(reals())
    np.testing.assert_allclose(model.initial_ @ model.transitions_, model.initial_, atol=1e-10)
    assert rises(model)
    assert model.n_params_ == 2 + 4


def test_a_long_sequence_in_segments_gives_the_same_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    data = [np.concatenate(reals(4))]
    options: dict[str, Any] = {"emission": sf.Normal(), "max_iter": 5, "tolerance": 0.0}
    whole = fitted(sf.HiddenMarkovModel(2, **options), data)
    from suffice.models.hidden_markov import expectation

    monkeypatch.setattr(expectation, "LONG", 16)
    monkeypatch.setattr(segments, "SEGMENT", 34)
    cut = fitted(sf.HiddenMarkovModel(2, **options), data)
    np.testing.assert_allclose(cut.transitions_, whole.transitions_, rtol=1e-10)
    np.testing.assert_allclose(cut.history_, whole.history_, rtol=1e-12)
    assert cut.score_samples(data)[0] == pytest.approx(whole.score_samples(data)[0], rel=1e-12)


def test_nothing_underflows() -> None:
    data = [np.r_[np.zeros(50), np.full(50, 1e4), np.zeros(50)]]
    laws = [sf.Normal(0.0, 1.0), sf.Normal(1.0, 1.0)]
    model = sf.HiddenMarkovModel(
        2, sf.Normal(), initial=[0.5, 0.5], transitions=[[1, 0], [0, 1]], emissions=laws, max_iter=0,
        fixed=["initial", "transitions", "emissions"],
    ).fit(data)  # fmt: skip
    expected = [stats.norm(law.mean_, 1.0).logpdf(data[0]).sum() + np.log(0.5) for law in laws]  # type: ignore[attr-defined]
    assert model.report_.log_likelihood == pytest.approx(np.logaddexp.reduce(expected), rel=1e-12)
    # The compiled loops multiply by an inverse where the plain ones divide: one unit in the last place.
    np.testing.assert_allclose(model.predict_proba(data)[0], np.tile([0.0, 1.0], (150, 1)), rtol=3e-16, atol=0)


@settings(max_examples=8, deadline=None)
@given(st.permutations(range(6)), st.lists(st.integers(0, 3), min_size=6, max_size=6).filter(any))
def test_order_weights_and_threads_do_not_matter(order: list[int], weights: list[int]) -> None:
    data = words(6, seed=4)
    options: dict[str, Any] = {
        "emission": sf.Categorical(states=["a", "b", "c"]), "max_iter": 4, "tolerance": 0.0,
        "initial": [0.5, 0.5], "transitions": [[0.7, 0.3], [0.2, 0.8]], "emissions": [[0.5, 0.3, 0.2], [0.1, 0.3, 0.6]],
    }  # fmt: skip
    base = fitted(sf.HiddenMarkovModel(2, **options, threads=1), data, sample_weight=weights)
    moved = fitted(
        sf.HiddenMarkovModel(2, **options), [data[at] for at in order], sample_weight=[weights[at] for at in order]
    )
    repeated = [word for word, count in zip(data, weights, strict=True) for _ in range(count)]
    again = fitted(sf.HiddenMarkovModel(2, **options), repeated)
    two = fitted(sf.HiddenMarkovModel(2, **options, threads=2), data, sample_weight=weights)
    assert np.array_equal(two.transitions_, base.transitions_)
    for other in (moved, again):
        np.testing.assert_allclose(other.transitions_, base.transitions_, rtol=1e-12)
        np.testing.assert_allclose(other.emission_probabilities_, base.emission_probabilities_, rtol=1e-12)


@pytest.mark.parametrize("name", ["symbols", "normal"])
def test_compiled_and_plain_paths_agree(name: str) -> None:
    law, data = LAWS[name]
    found = []
    for mode in ("numpy", "compiled"):
        with choice.force(mode):
            found.append(fitted(sf.HiddenMarkovModel(2, law, **FAST), data))
    np.testing.assert_allclose(found[0].history_, found[1].history_, rtol=1e-10)
    np.testing.assert_allclose(found[0].transitions_, found[1].transitions_, rtol=1e-6, atol=1e-9)


def test_a_mixture_fits_by_itself() -> None:
    rng = np.random.default_rng(0)
    x = np.r_[rng.normal(-3, 1, 150), rng.normal(3, 0.5, 50)]
    law = sf.Mixture(sf.Normal(), 2).fit(x, tolerance=1e-8)
    shares = sorted(zip((part.mean_ for part in law.components_), law.weights_, strict=True))
    assert shares[0] == pytest.approx((x[:150].mean(), 0.75), abs=0.05)
    assert law.log_prob(x).sum() == pytest.approx(law.report_.log_likelihood, rel=1e-10)
    assert sf.Mixture([sf.Normal(0, 1), sf.Normal(10, 1)], weights=[0.25, 0.75]).mean() == 7.5
