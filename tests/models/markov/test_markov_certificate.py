"""What a fitted Markov network says about itself: certificate, limits, errors, tests of fit, checkpoints."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import suffice as sf
from certificates import slope_of
from log_linear import design_of, law_of, table_features
from suffice.fitting.control import Control
from suffice.models.markov.family import LogLinearFamily
from suffice.models.markov.learning import LogLinearProblem
from suffice.models.markov.log_linear import LogLinear
from suffice.models.markov.priors import read_penalty

STATES = {"A": [0, 1], "B": [0, 1, 2], "C": [0, 1]}
CLIQUES = [("A", "B"), ("B", "C"), ("C", "A")]
DESIGN = design_of(table_features(CLIQUES, STATES), STATES)
COUNTS = np.array([4.0, 1, 0, 2, 7, 3, 2, 2, 5, 0, 1, 6])


def counted(states: Any, counts: Any) -> Any:
    domain = sf.Domain([sf.Variable.discrete(name, labels) for name, labels in states.items()])
    return sf.Table(domain, np.array(counts, float).reshape([len(labels) for labels in states.values()]))


TABLE = counted(STATES, COUNTS)


def slope(weights: Any) -> Any:
    """Observed less expected features a row, by enumeration."""
    return (COUNTS / 33 - law_of(DESIGN, weights)[1]) @ DESIGN


# -- certificate -----------------------------------------------------------------------------------------------------


def test_the_slope_of_a_normal_prior_is_a_row() -> None:
    """At the maximum observed - expected = P (w - mean) / N: the certificate divides the prior by the rows."""
    prior = sf.Normal(mean=0.5, variance=0.3)
    mrf = sf.MarkovNetwork(CLIQUES, prior=prior).fit(TABLE)
    assert slope_of(mrf.report_.certificate) <= 1e-10
    with pytest.warns(sf.ConvergenceWarning):
        early = sf.MarkovNetwork(CLIQUES, prior=prior, solver="lbfgs", max_iter=1).fit(TABLE)
    gap = np.abs(slope(early.weights_) - (early.weights_ - 0.5) / 0.3 / 33).max()
    assert early.report_.certificate.slope == pytest.approx(gap, rel=1e-9)


@pytest.mark.parametrize("mean", [0.0, 0.4])
def test_the_slope_of_a_laplace_prior_is_the_shortest(mean: float) -> None:
    prior = sf.Laplace(scale=0.5, mean=mean)
    mrf = sf.MarkovNetwork(CLIQUES, prior=prior).fit(TABLE)
    assert slope_of(mrf.report_.certificate) <= 1e-10
    assert 0 < np.count_nonzero(mrf.weights_ == mean) < 16
    with pytest.warns(sf.ConvergenceWarning):
        early = sf.MarkovNetwork(CLIQUES, prior=prior, max_iter=1).fit(TABLE)
    own, away = slope(early.weights_), early.weights_ - mean
    free = np.where(away != 0, own - np.sign(away) * 2 / 33, np.sign(own) * np.maximum(np.abs(own) - 2 / 33, 0))
    assert early.report_.certificate.slope == pytest.approx(np.abs(free).max(), rel=1e-9)


def test_the_bound_of_a_full_prior() -> None:
    """A row the objective curves by at least P / N, so what is left is at most g' (P / N)^-1 g / 2."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(16, 16))
    mean, covariance = rng.normal(size=16), root @ root.T / 16 + 0.2 * np.eye(16)
    with pytest.warns(sf.ConvergenceWarning):
        mrf = sf.MarkovNetwork(CLIQUES, prior=sf.MultivariateNormal(mean, covariance), solver="lbfgs", max_iter=2).fit(
            TABLE
        )
    left = slope(mrf.weights_) - np.linalg.solve(covariance, mrf.weights_ - mean) / 33
    assert mrf.report_.certificate.bound
    assert mrf.report_.certificate.value_gap == pytest.approx(33 * left @ covariance @ left / 2, rel=1e-9)


def test_newton_knows_the_curvature_of_the_prior() -> None:
    """Minus the Hessian of the objective a row is Cov[f] + P / N, here by complex steps of its slope."""
    rng = np.random.default_rng(1)
    root = rng.normal(size=(16, 16))
    mean, covariance = rng.normal(size=16), root @ root.T / 16 + 0.2 * np.eye(16)
    prior = sf.MultivariateNormal(mean, covariance)
    model = LogLinear(sf.Domain([sf.Variable.discrete(n, s) for n, s in STATES.items()]), CLIQUES)
    margins = COUNTS @ DESIGN / 33
    problem = LogLinearProblem(
        LogLinearFamily(model), margins, 33.0, read_penalty(prior, 16), Control(), np.zeros(16), np.zeros(16)
    )
    weights, precision = rng.normal(size=16), np.linalg.inv(covariance)
    product = problem.information_product(weights)
    for k in range(16):
        step = weights.astype(complex)
        step[k] += 1e-30j
        column = -(slope(step) - precision @ (step - mean) / 33).imag / 1e-30
        np.testing.assert_allclose(problem.information(weights)[k], column, atol=1e-12)
        np.testing.assert_allclose(product(np.eye(16)[k]), column, atol=1e-12)
    mrf = sf.MarkovNetwork(CLIQUES, prior=prior, solver="newton").fit(TABLE)
    assert mrf.converged_
    assert mrf.n_iter_ <= 8


def test_only_a_whole_face_gives_the_limit() -> None:
    """Zero margins are left out of the law in any case; without the linear programme that may not be all."""
    counts = counted(STATES, [4, 0, 0, 0, 7, 3, 2, 2, 5, 0, 1, 6])
    whole = sf.MarkovNetwork(CLIQUES).fit(counts)
    assert any("the distribution returned is its limit" in note for note in whole.report_.warnings)
    zeros = sf.MarkovNetwork(CLIQUES, check_existence=False).fit(counts)
    assert any("was not decided" in note for note in zeros.report_.warnings)
    assert not any("the distribution returned is its limit" in note for note in zeros.report_.warnings)


# -- limits of weights -----------------------------------------------------------------------------------------------


def test_a_negative_feature_never_seen_runs_to_plus_infinity() -> None:
    negative = sf.Feature("A", np.array([0.0, -2.0, 0.0]))
    mrf = sf.MarkovNetwork([negative]).fit(counted({"A": [0, 1, 2]}, [3, 0, 5]))
    assert mrf.weights_.tolist() == [math.inf]
    np.testing.assert_allclose(mrf.to_joint().values, [0.5, 0.0, 0.5], atol=1e-12)


def test_a_feature_of_both_signs_with_mean_zero_stays() -> None:
    mixed = sf.Feature("A", np.array([-1.0, 0.0, 1.0]))
    mrf = sf.MarkovNetwork([mixed]).fit(counted({"A": [0, 1, 2]}, [2, 1, 2]))
    assert mrf.report_.certificate.exists is True
    np.testing.assert_allclose(mrf.weights_, [0.0], atol=1e-10)


def test_finite_weights_of_an_extended_fit_stay_small() -> None:
    """Haberman's zeros at 000 and 111: the start is moved towards the face, and the move is taken off again."""
    counts = counted({n: [0, 1] for n in "ABC"}, [0, 3, 2, 4, 5, 1, 6, 0])
    mrf = sf.MarkovNetwork([("A", "B"), ("A", "C"), ("B", "C")], solver="ipf").fit(counts)
    assert mrf.report_.certificate.exists is False
    assert np.abs(mrf.fitted_.finite).max() < 50
    finite = mrf.weights_[np.isfinite(mrf.weights_)]
    assert (np.abs(finite) < 50).all()


def test_minus_infinity_in_a_table_with_turned_axes() -> None:
    network = sf.MarkovNetwork([("A", "B"), ("B", "A")], states={"A": [0, 1], "B": [0, 1, 2]})
    weights = np.arange(12.0) / 7
    weights[6 + 2 * 2 + 1] = -math.inf  # B=2, A=1 of the second table.
    mrf = network.with_weights(weights)
    scores = weights[:6].reshape(2, 3) + weights[6:].reshape(3, 2).T
    expected = np.exp(scores) / np.exp(scores).sum()
    np.testing.assert_allclose(mrf.marginal(["A", "B"]).values, expected, rtol=1e-13)
    assert mrf.marginal(["A", "B"]).values[1, 2] == 0.0
    assert mrf.log_partition_ == pytest.approx(math.log(np.exp(scores).sum()), rel=1e-13)


# -- errors and tests of fit -----------------------------------------------------------------------------------------


def test_errors_beside_counts_of_very_different_size() -> None:
    """Log-odds against the last state have the variances 1/n_k + 1/n_last."""
    features = [sf.Feature("A", np.eye(3)[k]) for k in range(2)]
    mrf = sf.MarkovNetwork(features).fit(counted({"A": [0, 1, 2]}, [1, 1e6, 1e6]))
    np.testing.assert_allclose(mrf.standard_errors_, np.sqrt([1 + 1e-6, 2e-6]), rtol=1e-7)
    both = sf.MarkovNetwork(["A"]).fit(counted({"A": [0, 1]}, [1, 1e6]))
    # The shortest weights are (d, -d) / 2 with the log-odds d, whose variance is 1 + 1e-6.
    np.testing.assert_allclose(both.standard_errors_, math.sqrt(1 + 1e-6) / 2, rtol=1e-7)


def test_the_text_has_both_tests() -> None:
    mrf = sf.MarkovNetwork(["A", "B", "C"]).fit(TABLE)
    p = [TABLE.values.sum(axis=tuple({0, 1, 2} - {k})) / 33 for k in range(3)]
    expected = 33 * np.einsum("a,b,c->abc", *p).ravel()
    seen = COUNTS > 0
    ratio = 2 * (COUNTS[seen] * np.log(COUNTS[seen] / expected[seen])).sum()
    pearson = ((COUNTS - expected) ** 2 / expected).sum()
    for label, value in (("Likelihood ratio", ratio), ("Pearson", pearson)):
        line = next(line for line in str(mrf.summary()).splitlines() if line.startswith(label))
        assert line.removeprefix(label).strip() == f"{value:.6g} on 7 df, p = {chi2.sf(value, 7):.5g}"
    assert f"{chi2.sf(ratio, 7):.5f}" != f"{chi2.sf(pearson, 7):.5f}"


def test_a_summary_for_a_network_with_its_variables_in_another_order() -> None:
    first = sf.MarkovNetwork(CLIQUES, states=STATES).fit(TABLE)
    turned = [("C", "B"), ("A", "C"), ("B", "A")]
    second = sf.MarkovNetwork(turned, states={name: STATES[name] for name in "CBA"}).fit(first.statistics_)
    assert second.nodes == ("C", "B", "A")
    assert second.deviance_ == pytest.approx(first.deviance_, abs=1e-9)
    assert second.chi2_ == pytest.approx(first.chi2_, abs=1e-8)
    np.testing.assert_allclose(second.marginal(list("ABC")).values, first.marginal(list("ABC")).values, atol=1e-9)


# -- starts and checkpoints ------------------------------------------------------------------------------------------


def test_a_laplace_prior_begins_at_the_start() -> None:
    start = np.linspace(-1.0, 1.0, 16)
    mrf = sf.MarkovNetwork(CLIQUES, prior=sf.Laplace(scale=0.5, mean=0.3), start=start).fit(TABLE)
    log_z, _ = law_of(DESIGN, start)
    first = COUNTS @ DESIGN @ start - 33 * log_z - np.abs(start - 0.3).sum() / 0.5
    assert mrf.history_[0] == pytest.approx(first, rel=1e-12)


def stop_early(state: Any) -> bool:
    return bool(state.iteration == 1)


def test_a_checkpoint_of_another_prior_is_refused(tmp_path: Any) -> None:
    path = tmp_path / "fit.suffice"
    sf.MarkovNetwork(CLIQUES, prior=sf.Normal(variance=1.0), checkpoint=path, callback=stop_early).fit(TABLE)
    for prior in (sf.Normal(variance=2.0), sf.Normal(mean=0.1, variance=1.0), sf.Laplace(scale=1.0)):
        with pytest.raises(sf.OptionError, match="belongs to another fit"):
            sf.MarkovNetwork(CLIQUES, prior=prior, checkpoint=path).fit(TABLE)
    assert sf.MarkovNetwork(CLIQUES, prior=sf.Normal(variance=1.0), checkpoint=path).fit(TABLE).converged_


def test_a_checkpoint_of_other_counts_or_another_start_is_refused(tmp_path: Any) -> None:
    path = tmp_path / "fit.suffice"
    sf.MarkovNetwork(CLIQUES, solver="newton", checkpoint=path, callback=stop_early).fit(TABLE)
    with pytest.raises(sf.OptionError, match="belongs to another fit"):
        sf.MarkovNetwork(CLIQUES, solver="newton", checkpoint=path).fit(TABLE * 2.0)
    with pytest.raises(sf.OptionError, match="belongs to another fit"):
        sf.MarkovNetwork(CLIQUES, solver="newton", checkpoint=path, start=np.ones(16)).fit(TABLE)
    assert sf.MarkovNetwork(CLIQUES, solver="newton", checkpoint=path).fit(TABLE).converged_


# -- arguments -------------------------------------------------------------------------------------------------------


def test_potentials_that_do_not_fit() -> None:
    with pytest.raises(sf.OptionError, match="'A', 'B' has 1 axes; expected 2"):
        sf.MarkovNetwork.from_potentials({("A", "B"): np.ones(2)})
    with pytest.raises(sf.OptionError, match=r"'B', 'C' has 3 cells along 'B', which has 2 states: 0, 1"):
        sf.MarkovNetwork.from_potentials({("A", "B"): np.ones((2, 2)), ("B", "C"): np.ones((3, 2))})


def test_names_of_axes_in_one_text() -> None:
    with pytest.raises(sf.DataError, match="columns= is the text 'ABC'; give a list of names, one for each of the 3"):
        sf.MarkovNetwork(CLIQUES).fit(TABLE.values, columns="ABC")


@pytest.mark.parametrize("prior", [None, sf.Normal(mean=0.5, variance=0.3), sf.Laplace(scale=0.5)])
def test_the_moment_gap_is_in_standard_errors_of_each_statistic(prior: Any) -> None:
    """|slope of the total| / sqrt(N Var[f] + curvature of the log prior), by enumeration."""
    solver = "owlqn" if isinstance(prior, sf.Laplace) else "lbfgs"
    with pytest.warns(sf.ConvergenceWarning):
        early = sf.MarkovNetwork(CLIQUES, prior=prior, solver=solver, max_iter=1).fit(TABLE)  # type: ignore[arg-type]
    weights, law = early.weights_, law_of(DESIGN, early.weights_)[1]
    mean = law @ DESIGN
    total, variance = 33 * slope(weights), 33 * (law @ DESIGN**2 - mean**2)
    if isinstance(prior, sf.Normal):
        total, variance = total - (weights - 0.5) / 0.3, variance + 1 / 0.3
    elif prior is not None:
        total = np.where(weights, total - np.sign(weights) * 2, np.sign(total) * np.maximum(np.abs(total) - 2, 0))
    certificate = early.report_.certificate
    assert certificate.moment_gap == pytest.approx((np.abs(total) / np.sqrt(variance)).max(), rel=1e-9)
    assert certificate.slope == pytest.approx(np.abs(total).max() / 33, rel=1e-9)


def test_a_feature_on_several_places_has_the_variance_of_their_sum() -> None:
    rows = {"a": [0, 0, 1, 1, 1, 0], "b": [0, 1, 1, 1, 0, 0], "c": [0, 0, 1, 0, 1, 1]}
    tied = sf.Feature([("a", "b"), ("b", "c"), ("c", "a")], lambda x, y: x == y)
    with pytest.warns(sf.ConvergenceWarning):
        early = sf.MarkovNetwork([tied], solver="ascent", max_iter=1, start=[1.5]).fit(rows)
    states = np.array(list(itertools.product([0, 1], repeat=3)))
    f = sum((states[:, i] == states[:, j]).astype(float) for i, j in ((0, 1), (1, 2), (2, 0)))
    law = np.exp(early.weights_[0] * f)
    law /= law.sum()
    seen = sum(
        float(x == y) for i, j in (("a", "b"), ("b", "c"), ("c", "a")) for x, y in zip(rows[i], rows[j], strict=True)
    )
    gap = abs(seen - 6 * law @ f) / np.sqrt(6 * (law @ f**2 - (law @ f) ** 2))
    assert early.report_.certificate.moment_gap == pytest.approx(gap, rel=1e-9)
