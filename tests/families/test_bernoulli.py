"""The Bernoulli law against scipy.stats, enumeration, quadrature over the probability and a generic maximiser."""

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import expit

import suffice as sf
from families.law_oracles import Grid, check_entropy_and_divergence, check_exponential_family, maximise, weighted

X = np.array([1, 0, 1, 1, 0, 1, 1])
W = np.array([1, 3, 2, 1, 1, 4, 1])
BOTH = Grid.counts(1)


@pytest.mark.parametrize("p", [0.0, 1e-12, 0.3, 0.5, 0.9, 1.0])
def test_evaluation_equals_scipy(p: float) -> None:
    law, oracle = sf.Bernoulli(p), stats.bernoulli(p)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(law.log_prob([0, 1]), [np.log1p(-p), np.log(p)], rtol=1e-15)
    x = np.array([-1.0, 0.0, 0.5, 1.0, 2.0])
    np.testing.assert_allclose(law.cdf(x), oracle.cdf(x), rtol=1e-15)
    q = np.array([1e-9, 0.2, 0.5, 0.95])
    np.testing.assert_array_equal(law.quantile(q), oracle.ppf(q))
    assert law.mean() == p
    assert law.variance() == pytest.approx(oracle.var(), rel=1e-15)
    expected = -p * math.log(p) - (1 - p) * math.log1p(-p) if 0 < p < 1 else 0.0
    assert law.entropy() == pytest.approx(expected, rel=1e-14)
    assert law.mode() == int(p > 0.5)


def test_statistics_maps_and_cumulants() -> None:
    for eta in (-2.0, -0.3, 0.0, 1.7):
        check_exponential_family(sf.Bernoulli(), [eta], BOTH, [([1.0], 1.0), ([-2.0], 0.5)])


def test_natural_parameter_is_the_log_odds() -> None:
    for p in (1e-300, 0.2, 0.75):
        law = sf.Bernoulli(p)
        assert float(expit(law.natural_parameters_[0])) == pytest.approx(p, rel=1e-13)
        assert law.log_normalizer() == pytest.approx(-math.log1p(-p), rel=1e-14)
    far = sf.Bernoulli().with_natural_parameters([800.0])
    assert far.probability_ == 1
    assert sf.Bernoulli().log_normalizer([800.0]) == 800
    # The variance at large log odds is exp(-eta), which 1 - p would round to nothing.
    assert sf.Bernoulli().statistics_covariance([60.0])[0, 0] == pytest.approx(math.exp(-60), rel=1e-13)


def test_fourth_derivative_is_the_cumulant_and_not_the_central_moment() -> None:
    p = 0.3
    moment = float(stats.bernoulli(p).expect(lambda x: (x - p) ** 4))
    found = sf.Bernoulli(p).cumulants(4, [1.0])
    assert found[3] == pytest.approx(moment - 3 * (p * (1 - p)) ** 2, rel=1e-13)
    assert abs(found[3] - moment) > 0.1


def test_cumulants_of_a_rare_failure_mirror_those_of_a_rare_success() -> None:
    rare, common = sf.Bernoulli(2.0**-40).cumulants(6, [1.0]), sf.Bernoulli(1 - 2.0**-40).cumulants(6, [1.0])
    np.testing.assert_allclose(common[1:], rare[1:] * [1, -1, 1, -1, 1], rtol=1e-14)
    np.testing.assert_allclose(rare, 2.0**-40, rtol=1e-10)


def test_entropy_and_divergence() -> None:
    check_entropy_and_divergence(sf.Bernoulli(0.3), sf.Bernoulli(0.6), BOTH)
    check_entropy_and_divergence(sf.Bernoulli(0.999), sf.Bernoulli(0.001), BOTH)
    assert sf.Bernoulli(0.0).kl_divergence(sf.Bernoulli(0.25)) == pytest.approx(-math.log(0.75), rel=1e-15)
    assert sf.Bernoulli(0.25).kl_divergence(sf.Bernoulli(0.0)) == math.inf
    assert sf.Bernoulli(1.0).kl_divergence(sf.Bernoulli(1.0)) == 0
    # Close laws: (p - q)^2 / (2 p (1 - p)).
    assert sf.Bernoulli(0.5).kl_divergence(sf.Bernoulli(0.5 + 2.0**-30)) == pytest.approx(2.0**-59, rel=1e-8)


def test_samples_are_reproducible_and_follow_the_law() -> None:
    draws = sf.Bernoulli(0.3).sample(20_000, random_state=0)
    np.testing.assert_array_equal(draws, sf.Bernoulli(0.3).sample(20_000, random_state=0))
    assert draws.dtype.kind == "i"
    assert stats.binomtest(int(draws.sum()), 20_000, 0.3).pvalue > 1e-4
    words = sf.Bernoulli(0.3, states=("no", "yes")).sample(50, random_state=1)
    assert set(words) == {"no", "yes"}
    assert sf.Bernoulli(1.0, states=(False, True)).sample(3, random_state=0).tolist() == [True] * 3


@pytest.mark.parametrize("weights", [None, W])
def test_maximum_likelihood(weights: np.ndarray | None) -> None:
    rows = X if weights is None else weighted(X, weights)
    law = sf.Bernoulli().fit(X, sample_weight=weights)
    (best,), value = maximise(lambda z: float(stats.bernoulli.logpmf(rows, expit(z[0])).sum()), [0.0])
    assert law.probability_ == pytest.approx(float(expit(best)), rel=1e-6)
    assert law.probability_ == rows.mean()
    assert law.report_.log_likelihood == pytest.approx(value, rel=1e-12)
    assert law.report_.certificate.moment_gap < 1e-14
    assert law.report_.certificate.exists is True
    assert law.score(X, sample_weight=weights) == pytest.approx(value / len(rows), rel=1e-12)
    assert law.report_.n_params == 1


@pytest.mark.parametrize(
    ("data", "states"),
    [
        ([0, 1, 1], (0, 1)),
        ([False, True, True], (False, True)),
        ([0.0, 1.0, 1.0], (0, 1)),
        (np.array([0, 1, 1], dtype=np.int8), (0, 1)),
        (np.array([False, True, True]), (False, True)),
        (pd.Series([0, 1, 1], dtype="Int64"), (0, 1)),
        (pd.Series([0, 1, 1], dtype="category"), (0, 1)),
    ],
)
def test_usual_codings_of_success_need_no_states(data: Any, states: tuple[object, object]) -> None:
    law = sf.Bernoulli().fit(data)
    assert law.probability_ == pytest.approx(2 / 3)
    assert law.states_ == states
    assert [type(state) for state in law.states_] == [type(state) for state in states]
    assert law.mode() is states[1] or law.mode() == states[1]
    np.testing.assert_allclose(law.log_prob(data), np.log([1 / 3, 2 / 3, 2 / 3]))


@pytest.mark.parametrize("data", [[1, 2], ["no", "yes"], [0, 1, 2], [-1, 1], [True, 0]])
def test_other_states_ask_which_is_the_success(data: list[object]) -> None:
    with pytest.raises(sf.DataError, match=r"states=\(failure, success\)"):
        sf.Bernoulli().fit(data)


def test_declared_states_say_which_is_the_success() -> None:
    law = sf.Bernoulli(states=["yes", "no"]).fit(["yes", "no", "yes", "yes"])
    assert law.probability_ == 0.25
    np.testing.assert_allclose(law.log_prob(["yes", "no"]), np.log([0.75, 0.25]))
    with pytest.raises(sf.UnknownStateError, match="maybe"):
        sf.Bernoulli(states=("no", "yes")).fit(["no", "maybe"])
    with pytest.raises(sf.UnknownStateError, match="perhaps"):
        law.log_prob(["perhaps"])
    assert sf.Bernoulli(states=iter(("no", "yes"))).fit(["yes"]).probability_ == 1
    swapped = sf.Bernoulli(states=(1, 0)).fit([1, 1, 1, 0])
    assert swapped.probability_ == 0.25


@pytest.mark.parametrize(
    ("data", "p", "sign"), [([1, 1, 1], 1.0, "+inf"), ([0, 0], 0.0, "-inf"), ([True], 1.0, "+inf")]
)
def test_all_alike_gives_the_limit_and_says_so(data: list[int], p: float, sign: str) -> None:
    law = sf.Bernoulli().fit(data)
    assert law.probability_ == p
    assert law.report_.log_likelihood == 0
    assert law.report_.certificate.exists is False
    assert sign in law.report_.certificate.directions[0]
    assert law.report_.warnings
    assert law.natural_parameters_[0] == float(sign)
    kind = type(data[0])
    np.testing.assert_array_equal(law.log_prob([kind(1 - p), kind(p)]), [-np.inf, 0.0])
    assert law.entropy() == 0
    assert law.report_.kl_divergence == 0


def test_likelihood_and_divergence_from_the_data_add_up_to_the_entropy_of_the_data() -> None:
    report = sf.Bernoulli(prior=sf.Beta(3, 1)).fit(X).report_
    q = (5 + 3) / (7 + 4)
    p = np.array([2 / 7, 5 / 7])
    direct = float(p @ np.log(p / [1 - q, q]))
    assert report.kl_divergence == pytest.approx(direct, rel=1e-11)
    # The divergence falls as the likelihood rises: minus, not plus.
    assert report.kl_divergence == pytest.approx(-stats.entropy(p) - report.log_likelihood / 7, rel=1e-11)
    assert report.kl_divergence != pytest.approx(-stats.entropy(p) + report.log_likelihood / 7, rel=0.1)


def test_posterior_mean_map_and_evidence_against_quadrature() -> None:
    prior, oracle = sf.Beta(2.5, 1.5), stats.beta(2.5, 1.5)

    def joint(p: float) -> float:
        return float(p**5 * (1 - p) ** 2 * oracle.pdf(p))

    evidence = integrate.quad(joint, 0, 1, epsabs=0, epsrel=1e-12)[0]
    mean = integrate.quad(lambda p: p * joint(p), 0, 1, epsabs=0, epsrel=1e-12)[0] / evidence
    law = sf.Bernoulli(prior=prior).fit(X)
    assert law.probability_ == pytest.approx(mean, rel=1e-11)
    assert law.log_evidence_ == pytest.approx(math.log(evidence), rel=1e-11)
    assert law.predictive_.log_prob(1)[0] == pytest.approx(math.log(mean), rel=1e-10)
    assert law.report_.parameterisation == "in probability"
    mode = sf.Bernoulli(prior=prior, estimate="map").fit(X)
    (best,), value = maximise(lambda z: math.log(joint(float(expit(z[0])))), [0.0])
    assert mode.probability_ == pytest.approx(float(expit(best)), rel=1e-6)
    assert mode.report_.objective == pytest.approx(value, rel=1e-11)
    assert mode.report_.certificate.moment_gap < 1e-10
    assert mode.report_.parameterisation == "in probability"
    low, high = law.credible_intervals(0.9)["probability"]
    np.testing.assert_allclose(stats.beta(7.5, 3.5).cdf([low, high]), [0.05, 0.95], rtol=1e-10)


def test_one_step_predictions_multiply_to_the_evidence() -> None:
    prior, chain = sf.Beta(0.7, 1.3), 0.0
    summary = sf.summarize(sf.Bernoulli(), X)
    for k in range(len(X)):
        first = sf.summarize(sf.Bernoulli(states=(0, 1)), X[: k + 1]) if k else summary * 0.0
        law = sf.Bernoulli(prior=prior).fit(sf.summarize(sf.Bernoulli(), X[:k]) if k else first)
        chain += float(law.predictive_.log_prob([X[k]])[0])
    assert sf.Bernoulli(prior=prior).fit(X).log_evidence_ == pytest.approx(chain, rel=1e-12)


def test_a_number_is_that_many_pseudo_counts_for_both() -> None:
    law = sf.Bernoulli(prior=1).fit(X)
    assert law.probability_ == pytest.approx(6 / 9, rel=1e-15)
    assert law.posterior_.parameters_ == {"alpha": 6.0, "beta": 3.0}
    # The mean with one pseudo-count is the mode with two, and neither is the mode with one, which is the estimate of
    # maximum likelihood.
    assert sf.Bernoulli(prior=2.0, estimate="map").fit(X).probability_ == pytest.approx(6 / 9, rel=1e-15)
    assert sf.Bernoulli(prior=1.0, estimate="map").fit(X).probability_ == pytest.approx(5 / 7, rel=1e-15)


def test_no_rows_give_the_prior_back() -> None:
    nothing = sf.summarize(sf.Bernoulli(), X) * 0.0
    law = sf.Bernoulli(prior=sf.Beta(3.0, 1.0)).fit(nothing)
    assert law.posterior_.parameters_ == {"alpha": 3.0, "beta": 1.0}
    assert law.probability_ == 0.75
    assert law.log_evidence_ == 0
    assert sf.Bernoulli(prior=sf.Beta(3.0, 1.0), estimate="map").fit(nothing).probability_ == 1
    with pytest.raises(sf.EstimateError, match=r"All weights of the \d+ rows are 0"):
        sf.Bernoulli().fit(nothing)
    assert sf.Bernoulli(prior=1.0).fit([1]).probability_ == pytest.approx(2 / 3)


def test_a_mode_needs_a_density_that_has_one() -> None:
    with pytest.raises(sf.EstimateError, match="unbounded at 1"):
        sf.Bernoulli(prior=0.5, estimate="map").fit([1, 1])
    with pytest.raises(sf.EstimateError, match="flat"):
        sf.Bernoulli(prior=1.0, estimate="map").fit(sf.summarize(sf.Bernoulli(), X) * 0.0)


def test_objective_of_a_mode_on_the_edge_is_a_number() -> None:
    # Half a success makes the posterior Beta(1, 3), whose mode is 0: there the likelihood is 0, the prior density
    # infinite, and their product 3 times the evidence.
    law = sf.Bernoulli(prior=sf.Beta(0.5, 1.0), estimate="map").fit([1, 0], sample_weight=[0.5, 2.0])
    assert law.probability_ == 0
    assert law.report_.objective == pytest.approx(math.log(3) + law.log_evidence_, rel=1e-12)


def test_large_counts_keep_their_digits() -> None:
    # log B(n + 1, n + 1) for n = 10^9, computed with 50 digits.
    assert sf.Beta(1, 1).log_evidence([1e9, 1e9]) == pytest.approx(-1386294371.6023057753, rel=4e-16)
    assert sf.Beta(1e9, 1e9).log_evidence([1, 0]) == pytest.approx(math.log(0.5), rel=1e-14)


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2, max_size=20).filter(
        lambda rows: any(w for _, w in rows)
    ),
    st.randoms(use_true_random=False),
)
def test_order_weights_and_names_do_not_matter(rows: list[tuple[bool, int]], random: Any) -> None:
    data, weights = [x for x, _ in rows], [w for _, w in rows]
    law = sf.Bernoulli(prior=0.5).fit(data, sample_weight=weights)
    repeated = sf.Bernoulli(prior=0.5).fit(weighted(data, weights))
    assert law.probability_ == repeated.probability_
    assert law.report_.log_likelihood == repeated.report_.log_likelihood
    mixed = list(rows)
    random.shuffle(mixed)
    words = sf.Bernoulli(states=("no", "yes"), prior=0.5)
    words.fit([("no", "yes")[x] for x, _ in mixed], sample_weight=[w for _, w in mixed])
    assert words.probability_ == law.probability_
    assert words.log_evidence_ == law.log_evidence_


@given(st.lists(st.integers(0, 1), min_size=2, max_size=20), st.integers(1, 19))
def test_rows_add_up_and_can_be_taken_out(values: list[int], cut: int) -> None:
    cut = min(cut, len(values) - 1)
    whole = sf.Bernoulli().fit(values)
    parts = sf.Bernoulli().fit(values[:cut]).partial_fit(values[cut:])
    assert parts.probability_ == whole.probability_
    assert parts.unlearn(values[cut:]).probability_ == sf.Bernoulli().fit(values[:cut]).probability_


def test_files_pickles_and_clones(tmp_path: Path) -> None:
    law = sf.Bernoulli(prior=sf.Beta(2, 1)).fit([True, False, True])
    law.write(tmp_path / "law.json")
    for back in (sf.read(tmp_path / "law.json"), pickle.loads(pickle.dumps(law))):
        assert back.probability_ == law.probability_
        assert back.states_ == (False, True)
        assert back.posterior_.parameters_ == law.posterior_.parameters_
        assert back.partial_fit([True]).probability_ == 5 / 7
    clone = sf.Bernoulli(states=("no", "yes"), prior=2.0).clone()
    assert clone.get_params()["states"] == ("no", "yes")
    assert clone.set_params(prior=1.0).fit(["yes"]).probability_ == pytest.approx(2 / 3)
    assert law.with_mean_parameters([0.25]).states_ == (False, True)


def test_gaps() -> None:
    with pytest.raises(sf.MissingValueError, match="missing value"):
        sf.Bernoulli().fit([1.0, np.nan, 0.0])
    assert sf.Bernoulli(0.3).log_prob([1, None, float("nan")])[1:].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(sf.Bernoulli(0.3).log_prob([True, None]), [math.log(0.3), 0])
    np.testing.assert_allclose(sf.Bernoulli(0.3).log_prob(iter([True, False])), np.log([0.3, 0.7]))
    assert sf.Bernoulli(0.3).log_prob(True) == pytest.approx(math.log(0.3))
    with pytest.raises(sf.MissingValueError, match="neither"):
        sf.Bernoulli(0.3).sufficient_statistics([1, None])


def test_options_are_checked() -> None:
    for p in (-0.1, 1.1, np.nan, "x", [0.1, 0.2]):
        with pytest.raises(sf.OptionError, match="probability"):
            sf.Bernoulli(p)  # type: ignore[arg-type]
    for states in (("a",), ("a", "b", "c"), "ab", ("a", "a"), ("a", None)):
        with pytest.raises(sf.OptionError, match="state"):
            sf.Bernoulli(states=states)
    for prior in (0, -1.0, math.nan, math.inf):
        with pytest.raises(sf.OptionError, match="pseudo-counts"):
            sf.Bernoulli(prior=prior).fit(X)
    for wrong in (True, sf.Dirichlet([1, 1]), sf.Beta, "bdeu"):
        with pytest.raises(sf.OptionError, match="Beta"):
            sf.Bernoulli(prior=wrong).fit(X)
    with pytest.raises(sf.NotFittedError, match="alpha"):
        sf.Bernoulli(prior=sf.Beta()).fit(X)
    with pytest.raises(sf.OptionError, match="nothing to fit"):
        sf.Bernoulli(0.5).fit(X)
    with pytest.raises(sf.NotFittedError, match="probability"):
        sf.Bernoulli().log_prob([1])
    with pytest.raises(sf.OptionError, match="one column"):
        sf.Bernoulli().fit({"a": [1], "b": [0]})
    with pytest.raises(sf.OptionError, match="from 0 to 1"):
        sf.Bernoulli(0.5).quantile(-0.1)


def test_divergence_goes_by_label() -> None:
    one, other = sf.Bernoulli(0.3, states=("a", "b")), sf.Bernoulli(0.6, states=("b", "a"))
    assert one.kl_divergence(other) == pytest.approx(sf.Bernoulli(0.3).kl_divergence(sf.Bernoulli(0.4)), rel=1e-12)
    with pytest.raises(sf.OptionError, match="different states"):
        one.kl_divergence(sf.Bernoulli(0.6, states=("b", "c")))
