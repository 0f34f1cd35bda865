"""What every estimator does the same way: options, fitting in parts, files, copies, silence."""

import copy
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from moved_parameters import certificate_of, with_parameters
from untyped import untyped

ROWS = np.array([0.3, 1.7, 2.9, 0.4, 1.1, 5.2, 0.9, 2.2])
COUNTS = np.array([0, 3, 1, 1, 0, 2, 5, 1])
SHARES = np.array([[0.2, 0.5, 0.3], [0.1, 0.6, 0.3], [0.25, 0.35, 0.4], [0.3, 0.3, 0.4]] * 2)

LAWS: dict[str, tuple[Callable[[], Any], Any]] = {
    "normal": (sf.Normal, ROWS),
    "normal with prior": (lambda: sf.Normal(prior=sf.NormalInverseGamma(2, 1, 1, 0)), ROWS),
    "multivariate normal": (sf.MultivariateNormal, np.stack([ROWS, ROWS[::-1] ** 2], axis=1)),
    "categorical": (sf.Categorical, list("abacabca")),
    "categorical with prior": (lambda: sf.Categorical(states=list("abcd"), prior=0.5), list("abacabca")),
    "bernoulli": (sf.Bernoulli, COUNTS > 0),
    "poisson": (sf.Poisson, COUNTS),
    "poisson with prior": (lambda: sf.Poisson(prior=sf.Gamma(2, 1), estimate="map"), COUNTS),
    "exponential": (sf.Exponential, ROWS),
    "gamma": (sf.Gamma, ROWS),
    "beta": (sf.Beta, ROWS / 6),
    "inverse gamma": (sf.InverseGamma, ROWS),
    "von mises": (sf.VonMises, ROWS),
    "dirichlet": (sf.Dirichlet, SHARES),
    "geometric": (sf.Geometric, COUNTS),
    "negative binomial": (lambda: sf.NegativeBinomial(size=2.5), COUNTS),
}
EACH = pytest.mark.parametrize(("make", "rows"), LAWS.values(), ids=LAWS)


def flat(law: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.concatenate([np.ravel(value) for value in law.parameters_.values()])


@EACH
def test_chunks_equal_the_whole(make: Callable[[], Any], rows: Any) -> None:
    whole = make().fit(rows)
    parts = make()
    for part in (rows[:3], rows[3:4], rows[4:]):
        parts.partial_fit(part)
    np.testing.assert_allclose(flat(parts), flat(whole), rtol=1e-12)
    assert parts.report_.rows == len(rows)


@EACH
def test_adding_then_unlearning_gives_what_was_before(make: Callable[[], Any], rows: Any) -> None:
    before = make().fit(rows[:5])
    after = make().fit(rows[:5]).partial_fit(rows[5:]).unlearn(rows[5:])
    np.testing.assert_allclose(flat(after), flat(before), rtol=1e-12)
    assert after.report_.rows == 5


@EACH
def test_a_summary_stands_in_for_the_rows(make: Callable[[], Any], rows: Any) -> None:
    model = make()
    merged = sf.summarize(model, rows[:3]) + sf.summarize(model, rows[3:])
    fitted = make().fit(merged)
    np.testing.assert_allclose(flat(fitted), flat(make().fit(rows)), rtol=1e-12)
    assert fitted.report_.passes == 0


@EACH
def test_a_weight_of_two_is_a_row_twice(make: Callable[[], Any], rows: Any) -> None:
    weights = np.array([1, 2, 0, 3, 1, 1, 2, 1])
    repeated = [row for row, weight in zip(rows, weights, strict=True) for _ in range(weight)]
    weighted = make().fit(rows, sample_weight=weights)
    again = make().fit(np.array(repeated) if isinstance(rows, np.ndarray) else repeated)
    assert flat(weighted).tobytes() == flat(again).tobytes()
    assert weighted.report_.weight == again.report_.weight == 11


@EACH
def test_the_order_of_rows_does_not_matter(make: Callable[[], Any], rows: Any) -> None:
    turned = rows[::-1]
    assert flat(make().fit(rows)).tobytes() == flat(make().fit(turned)).tobytes()


@EACH
def test_files_and_copies_are_exact(make: Callable[[], Any], rows: Any, tmp_path: Path) -> None:
    law = make().fit(rows)
    for name in ("law.json", "law.suffice"):
        law.write(tmp_path / name)
        twin = sf.read(tmp_path / name)
        assert type(twin) is type(law)
        assert flat(twin).tobytes() == flat(law).tobytes()
        assert twin.report_ == law.report_
        assert repr(twin) == repr(law)
        assert twin.statistics_ == law.statistics_
        np.testing.assert_array_equal(twin.log_prob(rows), law.log_prob(rows))
    for twin in (pickle.loads(pickle.dumps(law)), copy.deepcopy(law)):
        assert flat(twin).tobytes() == flat(law).tobytes()
        assert twin.partial_fit(rows).report_.rows == 2 * len(rows)
    assert law.report_.rows == len(rows)


@EACH
def test_the_score_is_the_mean_log_probability(make: Callable[[], Any], rows: Any) -> None:
    law = make().fit(rows)
    assert law.score(rows) == pytest.approx(float(np.mean(law.log_prob(rows))), rel=1e-11)
    assert law.report_.log_likelihood == pytest.approx(float(np.sum(law.log_prob(rows))), rel=1e-11)


@EACH
def test_clone_is_unfitted_and_equal_in_options(make: Callable[[], Any], rows: Any) -> None:
    twin = make().fit(rows).clone()
    assert repr(twin) == repr(make())
    with pytest.raises(sf.NotFittedError):
        twin.report_  # noqa: B018
    with pytest.raises(sf.NotFittedError, match="Call fit"):
        twin.log_prob(rows)


@EACH
def test_certificates_hold(make: Callable[[], Any], rows: Any) -> None:
    certificate = make().fit(rows).report_.certificate
    assert certificate.moment_gap < 1e-9
    assert certificate.exact
    assert certificate.exists


@EACH
def test_forgetting_weights_the_past_down(make: Callable[[], Any], rows: Any) -> None:
    forgetful = make().fit(rows[:4]).partial_fit(rows[4:], keep=0.5)
    weights = np.repeat([0.5, 1.0], 4)
    np.testing.assert_allclose(flat(forgetful), flat(make().fit(rows, sample_weight=weights)), rtol=1e-12)


def test_a_fit_that_fails_leaves_the_model_as_it_was() -> None:
    law = sf.Normal().fit(ROWS)
    before = (flat(law).tobytes(), law.report_)
    with pytest.raises(sf.EstimateError, match="constant"):
        law.fit([2.0, 2.0])
    with pytest.raises(sf.DataError):
        law.fit(["a", "b"])
    assert (flat(law).tobytes(), law.report_) == before


def test_a_result_before_fit_says_so() -> None:
    with pytest.raises(sf.NotFittedError, match="Call fit"):
        sf.Normal().mean_  # noqa: B018
    with pytest.raises(sf.NotFittedError, match="learned nothing to take rows out of"):
        sf.Normal().unlearn(ROWS)
    assert not hasattr(sf.Normal(), "variance_")
    with pytest.raises(AttributeError, match="no attribute 'sigma'"):
        sf.Normal().sigma  # type: ignore[attr-defined]  # noqa: B018


def test_rows_that_were_never_in_cannot_be_taken_out() -> None:
    law = sf.Categorical(states=["a", "b"]).fit(["a", "a", "b"])
    with pytest.raises(sf.MergeError, match="never in"):
        law.unlearn(["b", "b"])
    assert law.report_.rows == 3


def test_options_are_read_set_and_checked() -> None:
    law = sf.Normal(prior=sf.NormalInverseGamma(2, 1, 1, 0))
    assert law.get_params()["prior__alpha"] == 2
    law.set_params(prior__alpha=5, estimate="map")
    assert (law.prior.alpha_, law.estimate) == (5, "map")  # type: ignore[attr-defined]
    with pytest.raises(sf.OptionError, match="no option 'priors'"):
        law.set_params(priors=1)
    with pytest.raises(sf.OptionError, match="has no options of its own"):
        sf.Normal().set_params(prior__alpha=1)
    with pytest.raises(sf.OptionError, match=r"estimate is 'mode'.*'mle', 'map', 'mean'"):
        sf.Normal(prior=sf.NormalInverseGamma(2, 1, 1, 0), estimate="mode").fit(ROWS)  # type: ignore[arg-type]
    with pytest.raises(sf.OptionError, match="needs a prior="):
        sf.Normal(estimate="map").fit(ROWS)
    with pytest.raises(sf.OptionError, match="expected the conjugate prior of Normal, NormalInverseGamma"):
        sf.Normal(prior=sf.Beta(1, 1)).fit(ROWS)


def test_a_summary_of_another_question_is_refused() -> None:
    with pytest.raises(sf.MergeError, match=r"does not answer Moments.*summarize\(model, data\)"):
        sf.Normal().fit(sf.summarize(sf.Gamma(), ROWS))
    with pytest.raises(sf.OptionError, match="already holds weights"):
        sf.Normal().fit(sf.summarize(sf.Normal(), ROWS), sample_weight=[1.0])


def test_no_rows_need_a_prior() -> None:
    prior = sf.NormalInverseGamma(alpha=3, beta=2, gamma=1, delta=7)
    assert sf.Normal(prior=prior, estimate="map").fit([]).mean_ == 7
    assert sf.Normal(prior=prior).fit(np.array([])).variance_ == 1.0
    with pytest.raises(sf.EstimateError, match="no rows"):
        sf.Normal().fit([])


def test_the_size_of_a_saved_model_does_not_grow_with_the_rows() -> None:
    small, large = (pickle.dumps(sf.Normal().fit(np.random.default_rng(0).normal(size=n))) for n in (1_000, 100_000))
    assert abs(len(large) - len(small)) < 1_000


def test_fits_are_silent(capfd: pytest.CaptureFixture[str]) -> None:
    for make, rows in LAWS.values():
        make().fit(rows)
    assert capfd.readouterr() == ("", "")


def test_progress_is_shown_when_asked(capfd: pytest.CaptureFixture[str]) -> None:
    sf.Normal(progress=True).fit(np.arange(1_000.0))
    out, err = capfd.readouterr()
    assert out == ""
    assert "rows" in err


def test_scikit_learn_clones_and_searches() -> None:
    pytest.importorskip("sklearn")
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV

    law = sf.Normal(prior=sf.NormalInverseGamma(2, 1, 1, 0))
    assert repr(clone(law)) == repr(law)
    rows = np.random.default_rng(0).normal(3, 1, size=(60, 1))
    search = GridSearchCV(law, {"prior__gamma": [0.01, 1000.0]}, cv=3).fit(rows)
    assert search.best_params_ == {"prior__gamma": 0.01}
    assert search.best_estimator_.mean_ == pytest.approx(rows.mean(), abs=0.01)


def test_a_refit_without_a_prior_forgets_the_posterior(tmp_path: Path) -> None:
    law = sf.Normal(prior=sf.NormalInverseGamma(2, 1, 1, 0)).fit(ROWS).set_params(prior=None).fit(ROWS)
    law.write(tmp_path / "law.json")
    for twin in (law, sf.read(tmp_path / "law.json")):
        with pytest.raises(sf.OptionError, match="not fitted with a prior"):
            untyped(twin.posterior_)


def test_options_of_a_given_law_are_its_parameters() -> None:
    law = sf.Normal(mean=0.0, variance=1.0).set_params(variance=4.0)
    assert law.variance_ == 4.0
    fitted = sf.Normal().fit(ROWS)
    before = fitted.mean_
    assert fitted.set_params(progress=True).mean_ == before
    with pytest.raises(sf.OptionError, match="NormalInverseGamma has no option 'foo'"):
        sf.Normal(prior=sf.NormalInverseGamma(2, 1, 1, 0)).set_params(prior__foo=1)


def test_a_file_cannot_set_what_steers_a_run(tmp_path: Path) -> None:
    path, target = tmp_path / "law.json", tmp_path / "written"
    sf.Gamma().fit(ROWS).write(path)
    path.write_text(re.sub('"checkpoint": ?null', f'"checkpoint": "{target}"', path.read_text()))
    assert str(target) in path.read_text()
    law = sf.read(path)
    assert law.checkpoint is None
    law.partial_fit([3.0])
    assert not target.exists()


def test_statistics_can_be_asked_for_by_themselves() -> None:
    rows = {"a": ["x", "y", "x"], "b": [1.0, 2.0, 4.0]}
    questions = [sf.Counts(("a",)), sf.Moments(("b",))]
    summary = sf.summarize(questions, rows, states={"a": ["y", "x", "z"]})
    assert summary[questions[0]].dense().tolist() == [1.0, 2.0, 0.0]
    assert summary[questions[1]].mean[0] == pytest.approx(7 / 3)
    assert sf.summarize(sf.Counts(("a",)), rows).rows == 3
    with pytest.raises(sf.OptionError, match="expected a model"):
        sf.summarize("a", rows)  # type: ignore[arg-type]
    with pytest.raises(sf.OptionError, match="give a list"):
        sf.Counts("age")  # type: ignore[arg-type]


# -- certificates that can fail --------------------------------------------------------------------------------------

PLANE = np.stack([ROWS, ROWS[::-1] ** 2], axis=1)
WISHART = sf.NormalWishart(mean=[0.5, 1.0], strength=1.5, dof=5, inverse_scale=[[2, 0.5], [0.5, 30]])
PRIORS: dict[str, tuple[Callable[..., Any], Any]] = {
    "normal": (lambda **how: sf.Normal(prior=sf.NormalInverseGamma(2, 1, 1, 0), **how), ROWS),
    "normal, known variance": (lambda **how: sf.Normal(variance=2.0, prior=sf.Normal(1, 3), **how), ROWS),
    "multivariate normal": (lambda **how: sf.MultivariateNormal(prior=WISHART, **how), PLANE),
    "multivariate normal, known covariance": (
        lambda **how: sf.MultivariateNormal(
            covariance=[[2, 0.5], [0.5, 30]], prior=sf.MultivariateNormal([1, 2], [[3, 1], [1, 4]]), **how
        ),
        PLANE,
    ),
    "categorical": (lambda **how: sf.Categorical(states=list("abcd"), prior=1.5, **how), list("abacabca")),
    "categorical, many states": (lambda **how: sf.Categorical(prior=1.5, **how), [*range(12), *range(6), 0, 0]),
    "bernoulli": (lambda **how: sf.Bernoulli(prior=sf.Beta(2, 3), **how), COUNTS > 0),
    "poisson": (lambda **how: sf.Poisson(prior=sf.Gamma(2, 1), **how), COUNTS),
    "exponential": (lambda **how: sf.Exponential(prior=sf.Gamma(2, 1), **how), ROWS),
    "gamma": (lambda **how: sf.Gamma(shape=1.5, prior=sf.Gamma(2, 1), **how), ROWS),
    "geometric": (lambda **how: sf.Geometric(prior=sf.Beta(2, 3), **how), COUNTS),
    "negative binomial": (lambda **how: sf.NegativeBinomial(size=2.5, prior=sf.Beta(2, 3), **how), COUNTS),
}
EACH_PRIOR = pytest.mark.parametrize(("make", "rows"), PRIORS.values(), ids=PRIORS)
EACH_POINT = pytest.mark.parametrize("estimate", ["map", "mean"])


def moved_by_a_hundredth(law: Any) -> list[dict[str, Any]]:
    """The parameters of a law, each number that was learned being 1 % larger in turn."""
    found = []
    for name in law.parameter_names:
        if law.get_params().get(name) is not None:
            continue
        value = np.asarray(law.parameters_[name], dtype=np.float64)
        for place in np.ndindex(value.shape):
            moved = value.copy()
            moved[place] *= 1.01
            if name == "covariance":
                moved[place[::-1]] = moved[place]
            if name == "probabilities":
                moved /= moved.sum()
            found.append({**law.parameters_, name: moved if moved.ndim else float(moved)})
    return found


def check_that_moves_are_seen(law: Any) -> None:
    assert certificate_of(law) == law.report_.certificate
    assert law.report_.certificate.moment_gap <= 1e-7
    moves = moved_by_a_hundredth(law)
    assert moves
    for parameters in moves:
        law = with_parameters(law, parameters)
        certificate = certificate_of(law)
        assert certificate.moment_gap > 1e-4
        assert certificate.value_gap is None or certificate.value_gap > 1e-9


@EACH
def test_a_certificate_sees_a_parameter_that_is_one_percent_off(make: Callable[[], Any], rows: Any) -> None:
    check_that_moves_are_seen(make().fit(rows))


@EACH_POINT
@EACH_PRIOR
def test_a_certificate_sees_an_estimate_that_is_one_percent_off(
    make: Callable[..., Any], rows: Any, estimate: str
) -> None:
    law = make(estimate=estimate).fit(rows)
    assert law.report_.certificate.exists is True
    assert (law.report_.certificate.value_gap is None) == (estimate == "mean")
    check_that_moves_are_seen(law)


@EACH_POINT
@EACH_PRIOR
def test_a_certificate_sees_a_wrong_posterior(
    make: Callable[..., Any], rows: Any, estimate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = type(make()).member_class
    right = kind.update
    for name in untyped(make(estimate=estimate).fit(rows).posterior_).parameter_names:

        def wrong(self: Any, prior: Any, summary: Any, name: str = name) -> Any:
            posterior = right(self, prior, summary)
            value = np.array(posterior.parameters_[name], dtype=np.float64)
            value[(0,) * value.ndim] *= 1.1
            return type(posterior)(**{**posterior.parameters_, name: value if value.ndim else float(value)})

        monkeypatch.setattr(kind, "update", wrong)
        law = make(estimate=estimate).fit(rows)
        with pytest.warns(sf.ConvergenceWarning, match="though its solver says so"):
            converged = law.converged_  # The certificate of a closed form is made when it is first read.
        assert not converged
        assert law.report_.certificate.moment_gap > 1e-4, name
        monkeypatch.setattr(kind, "update", right)


def scaled_laws(unit: float, **how: Any) -> list[tuple[Any, Any]]:
    """Laws of real columns and their rows, all measured in another unit."""
    square = unit**2
    wishart = sf.NormalWishart([0.5 * unit, unit], 1.5, 5, square * WISHART.inverse_scale_)
    return [
        (sf.Normal(prior=sf.NormalInverseGamma(2, square, 1, 0), **how), ROWS * unit),
        (sf.Normal(variance=2 * square, prior=sf.Normal(unit, 3 * square), **how), ROWS * unit),
        (sf.MultivariateNormal(prior=wishart, **how), PLANE * unit),
        (sf.Exponential(prior=sf.Gamma(2, unit), **how), ROWS * unit),
        (sf.Gamma(shape=1.5, prior=sf.Gamma(2, unit), **how), ROWS * unit),
    ]


@EACH_POINT
@pytest.mark.parametrize("unit", [1e-8, 1e8])
def test_gaps_do_not_depend_on_the_unit_of_the_rows(unit: float, estimate: str) -> None:
    for (law, rows), (plain, same) in zip(
        scaled_laws(unit, estimate=estimate), scaled_laws(1, estimate=estimate), strict=True
    ):
        law.fit(rows)
        plain.fit(same)
        assert law.report_.certificate.moment_gap <= 1e-7
        for mine, theirs in zip(moved_by_a_hundredth(law), moved_by_a_hundredth(plain), strict=True):
            law, plain = with_parameters(law, mine), with_parameters(plain, theirs)
            gap = certificate_of(plain).moment_gap
            assert certificate_of(law).moment_gap == pytest.approx(gap, rel=1e-4)


@pytest.mark.parametrize("unit", [1e-8, 1e8])
@pytest.mark.parametrize("kind", [sf.Normal, sf.Exponential, sf.Gamma, sf.InverseGamma])
def test_gaps_of_maximum_likelihood_do_not_depend_on_the_unit(kind: Any, unit: float) -> None:
    assert kind().fit(ROWS * unit).report_.certificate.moment_gap <= 1e-7


def test_the_slope_of_a_mode_is_in_posterior_standard_deviations() -> None:
    law = sf.Normal(variance=2.0, prior=sf.Normal(1, 3), estimate="map").fit(ROWS)
    away = 0.25 * np.sqrt(untyped(law.posterior_).variance_)
    law = with_parameters(law, {"mean": law.mean_ + away, "variance": 2.0})
    certificate = certificate_of(law)
    assert certificate.moment_gap == pytest.approx(0.25, rel=1e-6)
    assert certificate.value_gap == pytest.approx(0.5 * 0.25**2 / len(ROWS), rel=1e-6)
    assert certificate.bound


def test_a_mode_on_the_edge_is_no_maximum_inside_the_family() -> None:
    states = list("abc")
    likely = sf.Categorical(states=states).fit(list("aab")).report_.certificate
    law = sf.Categorical(states=states, prior=sf.Dirichlet(1), estimate="map").fit(list("aab"))
    assert law.probabilities_[2] == 0
    assert law.report_.certificate.exists is likely.exists is False
    assert law.report_.certificate.directions == likely.directions
    assert law.report_.certificate.moment_gap <= 1e-7
    # A state that was never seen has a probability above zero under its own pseudo-count.
    mixed = sf.Categorical(states=states, prior=sf.Dirichlet([1, 1, 2]), estimate="map").fit(list("aaa"))
    (direction,) = mixed.report_.certificate.directions
    assert "'b'" in direction
    for edge in (
        sf.Poisson(prior=sf.Gamma(1, 2), estimate="map").fit([0, 0]),
        sf.Bernoulli(prior=sf.Beta(1, 1), estimate="map").fit([1, 1]),
        sf.Geometric(prior=sf.Beta(2, 1), estimate="map").fit([0, 0]),
    ):
        assert edge.report_.certificate.exists is False
        assert edge.report_.certificate.directions == edge.fitted_.member.edge(edge.statistics_) != ()
        assert edge.report_.certificate.moment_gap <= 1e-7
    assert sf.Poisson(prior=sf.Gamma(1, 2)).fit([0, 0]).report_.certificate.exists is True


def test_an_edge_that_is_not_the_mode_is_seen() -> None:
    law = sf.Poisson(prior=sf.Gamma(1, 2), estimate="map").fit([0, 1])
    law = with_parameters(law, {"rate": 0.0})
    assert certificate_of(law).moment_gap > 1e-4
    shares = sf.Categorical(states=list("abc"), prior=sf.Dirichlet(1), estimate="map").fit(list("aab"))
    shares = with_parameters(shares, {"probabilities": [1.0, 0.0, 0.0]})
    assert certificate_of(shares).moment_gap > 1e-4


def test_a_prior_alone_is_certified() -> None:
    prior = sf.NormalInverseGamma(alpha=3, beta=2, gamma=1, delta=7)
    law = sf.Normal(prior=prior, estimate="map").fit([])
    assert law.report_.certificate.moment_gap <= 1e-7
    edge = sf.Bernoulli(prior=sf.Beta(2, 1), estimate="map").fit([])
    assert edge.probability_ == 1
    assert edge.report_.certificate.exists is False
    assert "the prior has its mode on the edge" in edge.report_.certificate.directions[0]


def test_the_gap_of_a_normal_mean_is_in_standard_errors() -> None:
    law = sf.Normal().fit(ROWS)
    law = with_parameters(law, {"mean": law.mean_ + 0.01 * np.sqrt(law.variance_), "variance": law.variance_})
    assert certificate_of(law).moment_gap == pytest.approx(0.01 * np.sqrt(len(ROWS)), rel=1e-9)


def test_a_wrong_posterior_is_seen_from_the_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sf.Poisson.member_class, "update", lambda self, prior, summary: sf.Gamma(1.0, 3.0))
    law = sf.Poisson(prior=sf.Gamma(1, 2), estimate="map").fit([0, 0])
    assert law.rate_ == 0
    with pytest.warns(sf.ConvergenceWarning, match="though its solver says so"):
        converged = law.converged_
    assert not converged
    assert law.report_.certificate.moment_gap > 0.1


@EACH_POINT
def test_many_columns_are_certified_along_mixed_directions(estimate: Any) -> None:
    rows = np.random.default_rng(1).normal(size=(30, 7))
    prior = sf.NormalWishart(np.ones(7), 2.0, 10, np.eye(7))
    law = sf.MultivariateNormal(prior=prior, estimate=estimate).fit(rows)
    assert law.report_.certificate.moment_gap <= 1e-7
    mean, covariance = law.mean_, law.covariance_
    for moved in ({"mean": mean + 0.01 * np.eye(7)[3]}, {"covariance": covariance * (1 + 0.01 * np.eye(7))}):
        law = with_parameters(law, {"mean": mean, "covariance": covariance, **moved})
        assert certificate_of(law).moment_gap > 1e-3


def test_options_of_a_fitted_prior_leave_its_fit() -> None:
    prior = sf.Gamma().fit(ROWS)
    law = sf.Poisson(prior=prior).set_params(prior__tolerance=1e-9)
    assert law.prior is not prior  # type: ignore[attr-defined]
    assert (law.prior.shape_, law.prior.tolerance, prior.tolerance) == (prior.shape_, 1e-9, sf.Gamma().tolerance)  # type: ignore[attr-defined]
    assert untyped(law.fit(COUNTS).posterior_).shape_ == pytest.approx(prior.shape_ + COUNTS.sum())
