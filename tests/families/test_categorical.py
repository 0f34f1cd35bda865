"""The categorical law against enumeration, scipy.stats and a generic maximiser on the simplex."""

import datetime
import json
import math
import pickle
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

import suffice as sf
from families.law_oracles import Grid, cauchy_cumulants, check_exponential_family, maximise, weighted
from untyped import untyped

STATES = ["red", "green", "blue"]
X = ["red", "blue", "red", "red", "green", "blue", "red"]
W = [1, 3, 2, 1, 1, 1, 4]
CODES = np.array([0, 2, 0, 0, 1, 2, 0])


def softmax(z: np.ndarray) -> np.ndarray:
    """Probabilities from K - 1 log odds against the last state."""
    return np.asarray(special.softmax(np.append(z, 0.0)))


# -- evaluation ------------------------------------------------------------------------------------------------------


def test_evaluation() -> None:
    law = sf.Categorical(STATES, [0.2, 0.3, 0.5])
    np.testing.assert_allclose(law.log_prob(X), np.log([0.2, 0.3, 0.5])[CODES], rtol=1e-15)
    np.testing.assert_allclose(law.prob("green"), [0.3])
    np.testing.assert_allclose(law.mean(), [0.2, 0.3, 0.5])
    assert law.mode() == "blue"
    assert law.entropy() == pytest.approx(stats.entropy([0.2, 0.3, 0.5]), rel=1e-14)
    for x in (np.array(X), pd.Series(X), pl.Series(X), tuple(X), iter(X)):
        np.testing.assert_array_equal(law.log_prob(x), law.log_prob(X))


def test_statistics_maps_and_cumulants() -> None:
    for eta in ([0.3, -1.2], [-0.1, 0.2], [2.0, 1.5]):
        check_exponential_family(
            sf.Categorical(states=[0, 1, 2]), eta, Grid.counts(2), [([1.0, 0.0], 0.8), ([1.0, -2.0], 0.4)]
        )


def test_natural_parameters_are_log_odds_against_the_last_state() -> None:
    # Printed as ln(pi_k / pi_k), which is 0 for every law; the softmax must give the probabilities back.
    p = np.array([0.1, 0.25, 0.05, 0.6])
    eta = sf.Categorical(probabilities=p).natural_parameters_
    np.testing.assert_allclose(softmax(eta), p, rtol=1e-14)
    assert np.abs(eta).min() > 0.5
    assert sf.Categorical(probabilities=p).log_normalizer() == pytest.approx(-math.log(0.6), rel=1e-14)


def test_one_indicator_for_every_state_would_be_one_too_many() -> None:
    # The covariance of all K indicators is singular along (1, ..., 1); that of K - 1 of them is not.
    p = np.array([0.2, 0.3, 0.5])
    full = np.diag(p) - np.outer(p, p)
    np.testing.assert_allclose(full @ np.ones(3), 0, atol=1e-16)
    minimal = sf.Categorical(probabilities=p).statistics_covariance()
    np.testing.assert_allclose(minimal, full[:2, :2], rtol=1e-15)
    assert np.linalg.eigvalsh(minimal).min() > 0.05


def test_fourth_derivative_is_the_cumulant_and_not_the_central_moment() -> None:
    law = sf.Categorical(states=[0, 1, 2], probabilities=[0.2, 0.3, 0.5])
    direction = np.array([3.0, 1.0])
    found = law.cumulants(4, direction)
    np.testing.assert_allclose(
        found, cauchy_cumulants(law, law.natural_parameters_, direction, Grid.counts(2), 0.3, 4), rtol=1e-9
    )
    values, p = np.array([3.0, 1.0, 0.0]), np.array([0.2, 0.3, 0.5])
    moment = float(p @ (values - p @ values) ** 4)
    assert found[3] == pytest.approx(moment - 3 * found[1] ** 2, rel=1e-12)
    assert abs(found[3] - moment) > 1


def test_divergence_matches_states_by_label() -> None:
    mine = sf.Categorical(STATES, [0.2, 0.3, 0.5])
    theirs = sf.Categorical(["blue", "red", "green"], [0.1, 0.6, 0.3])
    assert mine.kl_divergence(theirs) == pytest.approx(stats.entropy([0.2, 0.3, 0.5], [0.6, 0.3, 0.1]), rel=1e-12)
    assert mine.kl_divergence(sf.Categorical(STATES, [0.2, 0.8, 0.0])) == math.inf
    assert sf.Categorical(STATES, [0.2, 0.8, 0.0]).kl_divergence(mine) == pytest.approx(
        0.8 * math.log(0.8 / 0.3), rel=1e-12
    )
    with pytest.raises(sf.OptionError, match="different states"):
        mine.kl_divergence(sf.Categorical(["a", "b", "c"], [0.2, 0.3, 0.5]))
    with pytest.raises(sf.OptionError, match="different states"):
        sf.Categorical([0, 1], [0.5, 0.5]).kl_divergence(sf.Categorical([False, True], [0.5, 0.5]))


@pytest.mark.filterwarnings("ignore::suffice.errors.ExistenceWarning")
def test_samples_are_reproducible_and_keep_the_labels() -> None:
    law = sf.Categorical(STATES, [0.2, 0.3, 0.5])
    draws = law.sample(20_000, random_state=0)
    np.testing.assert_array_equal(draws, law.sample(20_000, random_state=0))
    observed = [int((draws == state).sum()) for state in STATES]
    assert stats.chisquare(observed, 20_000 * np.array([0.2, 0.3, 0.5])).pvalue > 1e-4
    for states in ([1, 2], [True, False], [0.5, 1.5]):
        drawn = sf.Categorical(states, [0.5, 0.5]).sample(30, random_state=1)
        assert {type(x) for x in drawn.tolist()} == {type(states[0])}
    mixed = sf.Categorical(["a", 1, (2, 3)], [0.3, 0.3, 0.4]).sample(60, random_state=1)
    assert set(mixed) == {"a", 1, (2, 3)}


# -- maximum likelihood ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, W])
def test_maximum_likelihood(weights: list[int] | None) -> None:
    rows = CODES if weights is None else weighted(CODES, weights)
    law = sf.Categorical(states=STATES).fit(X, sample_weight=weights)
    best, value = maximise(lambda z: float(np.log(softmax(z))[rows].sum()), [0.0, 0.0])
    np.testing.assert_allclose(law.probabilities_, softmax(best), rtol=1e-6)
    np.testing.assert_allclose(law.probabilities_, np.bincount(rows) / len(rows), rtol=1e-15)
    assert law.report_.log_likelihood == pytest.approx(value, rel=1e-12)
    assert law.report_.certificate.moment_gap < 1e-15
    assert law.report_.certificate.exists is True
    assert law.report_.n_params == 2
    assert law.score(X, sample_weight=weights) == pytest.approx(value / len(rows), rel=1e-12)


def test_likelihood_and_divergence_from_the_data_add_up_to_the_entropy_of_the_data() -> None:
    report = sf.Categorical(states=STATES, prior=2.0).fit(X).report_
    p = np.bincount(CODES) / 7
    q = (np.bincount(CODES) + 2) / 13
    assert report.empirical_entropy == pytest.approx(stats.entropy(p), rel=1e-14)
    assert report.kl_divergence == pytest.approx(stats.entropy(p, q), rel=1e-11)
    # D(data || model) = -H(data) - l/N; printed with a plus sign it would fall with the fit.
    assert report.kl_divergence == pytest.approx(-stats.entropy(p) - report.log_likelihood / 7, rel=1e-11)
    assert sf.Categorical().fit(X).report_.kl_divergence == pytest.approx(0, abs=1e-15)


def test_declared_states_keep_their_place_when_unseen() -> None:
    law = sf.Categorical(states=["purple", *STATES]).fit(X)
    np.testing.assert_allclose(law.probabilities_, [0, 4 / 7, 1 / 7, 2 / 7])
    assert law.states_ == ("purple", *STATES)
    assert law.report_.certificate.exists is False
    assert law.report_.certificate.directions == ("log probability of 'purple' -> -inf (never seen)",)
    assert np.isfinite(law.report_.log_likelihood)
    assert law.log_prob(["purple"]) == -np.inf
    assert law.entropy() == pytest.approx(stats.entropy([4, 1, 2]), rel=1e-14)
    assert law.natural_parameters_[0] == -np.inf
    assert law.with_mean_parameters(law.mean_parameters_).states_ == law.states_


def test_states_come_from_the_column() -> None:
    assert sf.Categorical().fit(X).states_ == ("blue", "green", "red")
    ordered = pd.Series(pd.Categorical(X, categories=["green", "red", "blue", "grey"]))
    law = sf.Categorical().fit(ordered)
    assert law.states_ == ("green", "red", "blue", "grey")
    np.testing.assert_allclose(law.probabilities_, [1 / 7, 4 / 7, 2 / 7, 0])
    enum = pl.Series(X, dtype=pl.Enum(["red", "blue", "green"]))
    assert sf.Categorical().fit(enum).states_ == ("red", "blue", "green")
    assert sf.Categorical(states=STATES).fit(ordered).states_ == tuple(STATES)


@pytest.mark.parametrize(
    "values",
    [
        ["1", "1", "2"],
        [1, 1, 2],
        [True, True, False],
        [0.5, 0.5, 1.5],
        [datetime.date(2020, 1, 1), datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)],
        [(1, 2), (1, 2), (3, 4)],
        ["", "", " "],
    ],
)
def test_labels_keep_their_type(values: list[Hashable]) -> None:
    column = {"x": values}
    law = sf.Categorical().fit(column)
    assert set(law.states_) == set(values)
    assert {type(state) for state in law.states_} == {type(value) for value in values}
    assert law.mode() == values[0]
    np.testing.assert_allclose(np.exp(law.log_prob(list(values))), [2 / 3, 2 / 3, 1 / 3])


def test_text_and_numbers_and_truth_values_are_different_states() -> None:
    law = sf.Categorical().fit({"x": ["1", 1, True, 1]})
    assert len(law.states_) == 3
    np.testing.assert_allclose(np.exp(law.log_prob(["1", 1, True])), [0.25, 0.5, 0.25])
    with pytest.raises(sf.UnknownStateError, match="False"):
        law.log_prob([False])


def test_unknown_states_are_named() -> None:
    with pytest.raises(sf.UnknownStateError, match=r"'x' holds 'pink'.*'red', 'green', 'blue'"):
        sf.Categorical(states=STATES).fit(["red", "pink"])
    law = sf.Categorical(states=STATES).fit(X)
    with pytest.raises(sf.UnknownStateError, match="pink"):
        law.log_prob(["pink"])
    seen = sf.Categorical().fit({"colour": X})
    with pytest.raises(sf.UnknownStateError, match="'colour' has no state 'pink'"):
        seen.score({"colour": ["pink"]})


def test_later_rows_may_bring_new_states_unless_states_are_declared() -> None:
    law = sf.Categorical().fit(["b", "b"]).partial_fit(["a", "c"])
    assert law.states_ == ("a", "b", "c")
    np.testing.assert_allclose(law.probabilities_, [0.25, 0.5, 0.25])
    assert law.unlearn(["c"]).score(["a", "b"]) == pytest.approx((math.log(1 / 3) + math.log(2 / 3)) / 2)
    # Scores are by label, not by position.
    assert sf.Categorical().fit(["a", "b", "b", "c"]).score(["c", "c"]) == pytest.approx(math.log(0.25))


# -- with a prior ----------------------------------------------------------------------------------------------------


def test_map_is_the_maximum_of_likelihood_times_prior() -> None:
    alpha = np.array([1.5, 4.0, 2.0])
    prior = stats.dirichlet(alpha)

    def objective(z: np.ndarray) -> float:
        p = softmax(z)
        return float(np.log(p)[CODES].sum() + prior.logpdf(p))

    best, value = maximise(objective, [0.0, 0.0])
    law = sf.Categorical(states=STATES, prior=sf.Dirichlet(alpha), estimate="map").fit(X)
    np.testing.assert_allclose(law.probabilities_, softmax(best), rtol=1e-6)
    # The sum over rows, not their mean, stands beside the log prior.
    assert law.report_.objective == pytest.approx(value, rel=1e-11)
    assert law.report_.certificate.moment_gap < 1e-10
    assert (law.report_.estimate, law.report_.parameterisation) == ("MAP", "in probabilities")
    # Pseudo-counts come from alpha; (N + lambda - 1) log lambda, as printed, would ignore it.
    counts = np.bincount(CODES)
    np.testing.assert_allclose(law.probabilities_, (counts + alpha - 1) / (7 + alpha.sum() - 3), rtol=1e-15)
    assert not np.allclose(law.probabilities_, counts / 7, rtol=0.01)


def test_posterior_mean_is_not_the_mode() -> None:
    alpha = np.array([3.0, 1.5, 2.0])
    law = sf.Categorical(states=STATES, prior=sf.Dirichlet(alpha)).fit(X)
    counts = np.bincount(CODES)
    mean = (counts + alpha) / (7 + alpha.sum())
    draws = np.random.default_rng(0).dirichlet(counts + alpha, size=400_000)
    np.testing.assert_allclose(law.probabilities_, draws.mean(axis=0), atol=1e-3)
    np.testing.assert_allclose(law.probabilities_, mean, rtol=1e-15)
    assert np.abs(mean - (counts + alpha - 1) / (7 + alpha.sum() - 3)).max() > 0.01
    assert (law.report_.estimate, law.report_.parameterisation) == ("posterior mean", "in probabilities")
    np.testing.assert_array_equal(untyped(law.posterior_).alpha_, counts + alpha)
    intervals = law.credible_intervals(0.9)["probabilities"]
    for k, (low, high) in enumerate(intervals):
        marginal = stats.beta(
            untyped(law.posterior_).alpha_[k], untyped(law.posterior_).alpha_.sum() - untyped(law.posterior_).alpha_[k]
        )
        np.testing.assert_allclose(marginal.cdf([low, high]), [0.05, 0.95], rtol=1e-10)


def test_one_number_is_a_symmetric_prior() -> None:
    counts = np.bincount(CODES)
    for prior in (1, 1.0, sf.Dirichlet(1), sf.Dirichlet([1, 1, 1])):
        law = sf.Categorical(states=STATES, prior=prior).fit(X)
        np.testing.assert_allclose(law.probabilities_, (counts + 1) / 10, rtol=1e-15)
        np.testing.assert_array_equal(untyped(law.posterior_).alpha_, counts + 1)
    for prior in (2, sf.Dirichlet(2)):
        law = sf.Categorical(states=STATES, prior=prior, estimate="map").fit(X)
        np.testing.assert_allclose(law.probabilities_, (counts + 1) / 10, rtol=1e-15)
    flat = sf.Categorical(states=STATES, prior=sf.Dirichlet(1), estimate="map").fit(X)
    np.testing.assert_allclose(flat.probabilities_, counts / 7, rtol=1e-15)
    small = sf.Categorical(states=STATES, prior=1e-9).fit(X)
    np.testing.assert_allclose(small.probabilities_, counts / 7, rtol=1e-8)


def test_one_step_predictions_multiply_to_the_evidence() -> None:
    prior, chain = sf.Dirichlet([0.5, 2.0, 1.2]), 0.0
    empty = sf.summarize(sf.Categorical(states=STATES), X) * 0.0
    for k in range(len(X)):
        law = sf.Categorical(states=STATES, prior=prior).fit(X[:k] if k else empty)
        chain += float(untyped(law.predictive_).log_prob([X[k]])[0])
    assert sf.Categorical(states=STATES, prior=prior).fit(X).log_evidence_ == pytest.approx(chain, rel=1e-12)


def test_no_rows_give_the_prior_back() -> None:
    empty = sf.summarize(sf.Categorical(states=STATES), X) * 0.0
    law = sf.Categorical(states=STATES, prior=sf.Dirichlet([1, 2, 3])).fit(empty)
    np.testing.assert_allclose(law.probabilities_, [1 / 6, 1 / 3, 1 / 2])
    np.testing.assert_array_equal(untyped(law.posterior_).alpha_, [1, 2, 3])
    assert law.log_evidence_ == 0
    mode = sf.Categorical(states=STATES, prior=sf.Dirichlet([1, 2, 3]), estimate="map").fit(empty)
    np.testing.assert_allclose(mode.probabilities_, [0, 1 / 3, 2 / 3])
    with pytest.raises(sf.EstimateError, match=r"All weights of the \d+ rows are 0"):
        sf.Categorical(states=STATES).fit(empty)
    one = sf.Categorical(states=STATES, prior=1.0).fit(["red"])
    np.testing.assert_allclose(one.probabilities_, [0.5, 0.25, 0.25])


def test_a_mode_needs_counts_where_the_prior_is_below_one() -> None:
    with pytest.raises(sf.EstimateError, match=r"alpha\[3\] is 0.5"):
        sf.Categorical(states=[*STATES, "grey"], prior=0.5, estimate="map").fit(X)
    law = sf.Categorical(states=STATES, prior=0.5, estimate="map").fit(X)
    np.testing.assert_allclose(law.probabilities_, (np.bincount(CODES) - 0.5) / 5.5, rtol=1e-14)


def test_order_of_the_prior_is_that_of_the_declared_states() -> None:
    law = sf.Categorical(states=["High", "Medium", "Low", "None"], prior=sf.Dirichlet([10, 1, 1, 1])).fit(["Low"])
    assert law.states_ == ("High", "Medium", "Low", "None")
    np.testing.assert_allclose(law.probabilities_, np.array([10, 1, 2, 1]) / 14)


# -- laws ------------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 4)), min_size=1, max_size=25), st.randoms())
def test_order_names_and_repetition_do_not_matter(rows: list[tuple[str, int]], random: Any) -> None:
    data, weights = [x for x, _ in rows], [w for _, w in rows]
    law = sf.Categorical(states="a b c d".split(), prior=0.5).fit(data, sample_weight=weights)
    repeated = sf.Categorical(states="a b c d".split(), prior=0.5).fit(weighted(data, weights).tolist())
    np.testing.assert_array_equal(law.probabilities_, repeated.probabilities_)
    assert law.log_evidence_ == repeated.log_evidence_
    mixed = list(rows)
    random.shuffle(mixed)
    numbers = {"a": 3, "b": 0, "c": 2, "d": 1}
    other = sf.Categorical(states=[0, 1, 2, 3], prior=0.5)
    other.fit([numbers[x] for x, _ in mixed], sample_weight=[w for _, w in mixed])
    np.testing.assert_allclose(
        [law.prob(x)[0] for x in "abcd"], [other.prob(numbers[x])[0] for x in "abcd"], rtol=1e-15
    )
    assert other.log_evidence_ == pytest.approx(law.log_evidence_, rel=1e-13)


@given(st.lists(st.sampled_from("abc"), min_size=2, max_size=25), st.integers(1, 24))
def test_rows_add_up_and_can_be_taken_out(values: list[str], cut: int) -> None:
    cut = min(cut, len(values) - 1)
    whole = sf.Categorical(prior=1.0).fit(values)
    parts = sf.Categorical(prior=1.0).fit(values[:cut]).partial_fit(values[cut:])
    np.testing.assert_array_equal(parts.probabilities_, whole.probabilities_)
    assert parts.states_ == whole.states_
    declared = sf.Categorical(states=["a", "b", "c"])
    left = sf.Categorical(states=["a", "b", "c"]).fit(values).unlearn(values[cut:])
    np.testing.assert_array_equal(left.probabilities_, declared.fit(values[:cut]).probabilities_)


# -- files, options --------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::suffice.errors.ExistenceWarning")
@pytest.mark.parametrize("declared", [None, (1, "b", 2.5, True, (3, "x"))])
def test_files_and_pickles_keep_states_and_types(tmp_path: Path, declared: tuple[Hashable, ...] | None) -> None:
    law = sf.Categorical(states=declared, prior=0.5).fit({"x": [1, "b", (3, "x"), True]})
    law.write(tmp_path / "law.json")
    for back in (sf.read(tmp_path / "law.json"), pickle.loads(pickle.dumps(law))):
        assert back.states_ == law.states_
        assert [type(state) for state in back.states_] == [type(state) for state in law.states_]
        np.testing.assert_array_equal(back.probabilities_, law.probabilities_)
        np.testing.assert_array_equal(untyped(back.posterior_).alpha_, untyped(law.posterior_).alpha_)
        np.testing.assert_array_equal(back.log_prob(["b", 1]), law.log_prob(["b", 1]))
        assert str(back.report_) == str(law.report_)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("parameters", "probabilities", "values"), [0.6, 0.5]),
        (("parameters", "probabilities", "values"), [-0.6, 1.6]),
        (("states",), ["a"]),
        (("states",), ["a", "a"]),
        (("states",), "ab"),
        (("states",), None),
        (("posterior", "class"), "Beta"),
        (("posterior", "state", "options", "alpha", "values"), [3.0, -2.0]),
        (("posterior", "state", "options", "alpha"), [3.0, 2.0, 1.0]),
    ],
)
def test_hostile_files_are_refused(tmp_path: Path, path: tuple[str, ...], value: object) -> None:
    sf.Categorical(prior=1.0).fit(["a", "b", "a"]).write(tmp_path / "law.json")
    tree = json.loads((tmp_path / "law.json").read_text())
    assert sf.read(tmp_path / "law.json").states_ == ("a", "b")
    place = tree["content"]["state"]["fitted"]
    for key in path[:-1]:
        place = place[key]
    assert path[-1] in place
    place[path[-1]] = value
    (tmp_path / "law.json").write_text(json.dumps(tree))
    with pytest.raises(sf.FileFormatError):
        sf.read(tmp_path / "law.json")


def test_options_clone_and_change() -> None:
    law = sf.Categorical(states=iter(STATES), prior=sf.Dirichlet([1, 2, 3]))
    clone = law.clone()
    assert clone.get_params()["states"] == tuple(STATES)
    np.testing.assert_array_equal(clone.get_params()["prior__alpha"], [1, 2, 3])
    changed = clone.set_params(states=["x", "y"], prior=1.0).fit(["x", "x", "y"])
    assert changed.states_ == ("x", "y")
    np.testing.assert_allclose(changed.probabilities_, [0.6, 0.4])


def test_a_failed_fit_leaves_the_law_as_it_was() -> None:
    law = sf.Categorical().fit(["a", "b"])
    with pytest.raises(sf.MissingValueError):
        law.fit(["c", None])
    assert law.states_ == ("a", "b")
    np.testing.assert_allclose(law.probabilities_, [0.5, 0.5])


def test_gaps() -> None:
    law = sf.Categorical(STATES, [0.2, 0.3, 0.5])
    np.testing.assert_allclose(law.log_prob(["red", None, float("nan")]), [math.log(0.2), 0, 0])
    with pytest.raises(sf.MissingValueError, match="missing value"):
        law.sufficient_statistics([None])
    with pytest.raises(sf.MissingValueError, match="missing value"):
        sf.Categorical().fit({"x": ["a", None]})


def test_options_are_checked() -> None:
    for p in ([0.5, 0.6], [-0.5, 1.5], [np.nan, 1], [], [[0.5, 0.5]], ["a", "b"], [0.504, 0.505]):
        with pytest.raises(sf.OptionError, match="probabilities"):
            sf.Categorical(probabilities=p)
    with pytest.raises(sf.OptionError, match="expected 3, one for each state"):
        sf.Categorical(STATES, [0.5, 0.5])
    for states in ("abc", ["a", "a"], ["a", None]):
        with pytest.raises(sf.OptionError, match="state"):
            sf.Categorical(states=states)
    for prior in (0, -1.0, math.nan, math.inf):
        with pytest.raises(sf.OptionError, match="pseudo-counts"):
            sf.Categorical(prior=prior).fit(X)
    for wrong in (True, "bdeu", sf.Beta(1, 1), [1, 2, 3]):
        with pytest.raises(sf.OptionError, match="Dirichlet"):
            sf.Categorical(prior=wrong).fit(X)
    with pytest.raises(sf.OptionError, match="2 parts and there are 3 states"):
        sf.Categorical(prior=sf.Dirichlet([1, 1])).fit(X)
    with pytest.raises(sf.OptionError, match="estimate"):
        sf.Categorical(estimate="median").fit(X)  # type: ignore[arg-type]
    with pytest.raises(sf.OptionError, match="needs a prior"):
        sf.Categorical(estimate="map").fit(X)
    with pytest.raises(sf.OptionError, match="nothing to fit"):
        sf.Categorical(STATES, [0.2, 0.3, 0.5]).fit(X)
    with pytest.raises(sf.NotFittedError, match="probabilities"):
        sf.Categorical(STATES).log_prob(["red"])
    with pytest.raises(sf.NotFittedError, match="states"):
        sf.Categorical().states_  # noqa: B018
    with pytest.raises(sf.OptionError, match="one column"):
        sf.Categorical().fit({"a": ["x"], "b": ["y"]})
    with pytest.raises(sf.OptionError, match="order"):
        sf.Categorical(STATES, [0.2, 0.3, 0.5]).cumulants(0)
    with pytest.raises(sf.OptionError, match="direction"):
        sf.Categorical(STATES, [0.2, 0.3, 0.5]).cumulants(2, [1.0])


def test_states_without_mass_lie_at_minus_infinity() -> None:
    law = sf.Categorical(states=list("abc")).fit(list("aa"))
    assert law.natural_parameters_.tolist() == [np.inf, -np.inf]
    np.testing.assert_allclose(
        sf.Categorical(states=list("abc")).fit(list("bcc")).natural_parameters_, [-np.inf, np.log(0.5)]
    )
