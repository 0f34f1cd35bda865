"""What every estimator does the same way: options, fitting in parts, files, copies, silence."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf

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
        assert twin.summary_ == law.summary_
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
    with pytest.raises(sf.NotFittedError, match="nothing can be unlearned"):
        sf.Normal().unlearn(ROWS)
    assert not hasattr(sf.Normal(), "variance_")
    with pytest.raises(AttributeError, match="no attribute 'sigma'"):
        sf.Normal().sigma  # noqa: B018


def test_rows_that_were_never_in_cannot_be_taken_out() -> None:
    law = sf.Categorical(states=["a", "b"]).fit(["a", "a", "b"])
    with pytest.raises(sf.MergeError, match="never in"):
        law.unlearn(["b", "b"])
    assert law.report_.rows == 3


def test_options_are_read_set_and_checked() -> None:
    law = sf.Normal(prior=sf.NormalInverseGamma(2, 1, 1, 0))
    assert law.get_params()["prior__alpha"] == 2
    law.set_params(prior__alpha=5, estimate="map")
    assert (law.prior.alpha_, law.estimate) == (5, "map")
    with pytest.raises(sf.OptionError, match="no option 'priors'"):
        law.set_params(priors=1)
    with pytest.raises(sf.OptionError, match="has no options of its own"):
        sf.Normal().set_params(prior__alpha=1)
    with pytest.raises(sf.OptionError, match=r"estimate is 'mode'.*'mle', 'map', 'mean'"):
        sf.Normal(prior=sf.NormalInverseGamma(2, 1, 1, 0), estimate="mode").fit(ROWS)
    with pytest.raises(sf.OptionError, match="needs a prior="):
        sf.Normal(estimate="map").fit(ROWS)
    with pytest.raises(sf.OptionError, match="conjugate prior of Normal is NormalInverseGamma"):
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
