"""Posteriors, their intervals and evidences in closed form, beside the numbers that books and papers print.

Each number is asked for to the digits that were printed: half a unit of the last one.
"""

import itertools
import math

import numpy as np
import pytest

import suffice as sf
from untyped import untyped

# --------------------------------------------------------------------------------------------------------------------
# Gelman, Carlin, Stern, Dunson, Vehtari and Rubin, Bayesian Data Analysis (third edition, 2013), chapters 2 and 3
# --------------------------------------------------------------------------------------------------------------------


def births(prior: sf.Beta) -> sf.Bernoulli:
    """Section 2.4: of 980 births with placenta previa 437 were female."""
    return sf.Bernoulli(prior=prior).fit([1, 0], sample_weight=[437, 543])


def test_births_with_placenta_previa_under_a_uniform_prior() -> None:
    law = births(sf.Beta(1, 1))
    assert (untyped(law.posterior_).alpha_, untyped(law.posterior_).beta_) == (438, 544)
    assert untyped(law.posterior_).mean() == pytest.approx(0.446, abs=5e-4)
    assert math.sqrt(untyped(law.posterior_).variance()) == pytest.approx(0.016, abs=5e-4)
    assert law.credible_intervals(0.95)["probability"] == pytest.approx((0.415, 0.477), abs=5e-4)


@pytest.mark.parametrize(
    ("mean", "size", "median", "low", "high"),
    [
        (0.500, 2, 0.446, 0.415, 0.477),
        (0.485, 2, 0.446, 0.415, 0.477),
        (0.485, 5, 0.446, 0.415, 0.477),
        (0.485, 10, 0.446, 0.415, 0.477),
        (0.485, 20, 0.447, 0.416, 0.478),
        (0.485, 100, 0.450, 0.420, 0.479),
        (0.485, 200, 0.453, 0.424, 0.481),
    ],
)
def test_births_with_placenta_previa_under_conjugate_priors(
    mean: float, size: int, median: float, low: float, high: float
) -> None:
    """Table 2.1."""
    posterior = untyped(births(sf.Beta(mean * size, (1 - mean) * size)).posterior_)
    assert posterior.quantile(0.5) == pytest.approx(median, abs=5e-4)
    assert posterior.intervals(0.95) == pytest.approx((low, high), abs=5e-4)


def test_laplace_was_morally_certain_that_fewer_girls_are_born() -> None:
    """Section 2.4: of 493,472 births in Paris 241,945 were girls; the probability of one half or more is 1.15e-42."""
    posterior = untyped(sf.Bernoulli(prior=sf.Beta(1, 1)).fit([1, 0], sample_weight=[241_945, 251_527]).posterior_)
    # What lies above one half of a law lies below one half of its mirror image.
    assert sf.Beta(posterior.beta_, posterior.alpha_).cdf(0.5) == pytest.approx(1.15e-42, rel=5e-3)


@pytest.mark.parametrize(("deaths", "exposure", "mean", "above_one"), [(3, 2, 0.86, 0.30), (30, 20, 1.32, 0.93)])
def test_deaths_of_asthma(deaths: int, exposure: int, mean: float, above_one: float) -> None:
    """Section 2.6: a Gamma(3, 5) prior of the deaths in a year among 100,000 persons."""
    law = sf.Poisson(prior=sf.Gamma(3.0, 5.0)).fit([deaths, *[0] * (exposure - 1)])
    assert (untyped(law.posterior_).shape_, untyped(law.posterior_).rate_) == (3 + deaths, 5 + exposure)
    assert untyped(law.posterior_).mean() == pytest.approx(mean, abs=5e-3)
    assert 1 - untyped(law.posterior_).cdf(1.0) == pytest.approx(above_one, abs=5e-3)


@pytest.mark.parametrize(("deaths", "mean"), [(0, 4.55e-5), (1, 4.77e-5), (2, 5.00e-5)])
def test_deaths_of_kidney_cancer_in_a_county_of_1000(deaths: int, mean: float) -> None:
    """Section 2.7: a Gamma(20, 430,000) prior of the rate, and 10,000 person-years, which are one row here."""
    law = sf.Poisson(prior=sf.Gamma(20.0, 43.0)).fit([deaths])
    assert untyped(law.posterior_).mean() / 10_000 == pytest.approx(mean, abs=5e-8)


#: Newcomb's measurements of the speed of light: deviations from 24,800 nanoseconds (figure 3.1; Stigler 1977).
NEWCOMB = [
    *(28, 26, 33, 24, 34, -44, 27, 16, 40, -2, 29, 22, 24, 21, 25, 30, 23, 29, 31, 19, 24, 20),
    *(36, 32, 36, 28, 25, 21, 28, 29, 37, 25, 28, 26, 30, 32, 36, 26, 30, 22, 36, 23, 27, 27),
    *(28, 27, 31, 27, 26, 33, 26, 32, 32, 24, 39, 28, 24, 25, 32, 25, 29, 27, 28, 29, 16, 23),
]


def test_the_speed_of_light() -> None:
    """Section 3.2: with a flat mean and a flat log standard deviation the mean is 26.2 +- 1.997 * 10.8 / sqrt(66).

    The same law is the limit of a flat intercept and of a variance whose inverse-gamma prior counts no rows.
    """
    prior = {"x": sf.LinearGaussianPrior(alpha=1e-9, beta=1e-9)}
    rows = {"x": np.array(NEWCOMB, float)}
    posterior = untyped(sf.BayesianNetwork({"x": []}, states={"x": "real"}, prior=prior).fit(rows).posterior_)["x"]
    assert posterior.weights_ == pytest.approx([26.2], abs=0.05)
    low, high = posterior.intervals(0.95)["weights"][0]
    # The book rounds the first end, and cuts the second, 28.85, off.
    assert (round(low, 1), math.floor(10 * high) / 10) == (23.6, 28.8)


def test_a_poll_before_an_election() -> None:
    """Section 3.4: of 1447 voters 727 were for Bush, 583 for Dukakis, 137 for neither; Bush had more with .9999."""
    law = sf.Categorical(states=["Bush", "Dukakis", "other"], prior=1.0)
    posterior = untyped(law.fit(["Bush", "Dukakis", "other"], sample_weight=[727, 583, 137]).posterior_)
    np.testing.assert_array_equal(posterior.alpha_, [728, 584, 138])
    drawn = posterior.sample(10_000, random_state=0)
    assert (drawn[:, 0] > drawn[:, 1]).mean() > 0.9995


# --------------------------------------------------------------------------------------------------------------------
# Hoff, A First Course in Bayesian Statistical Methods (2009)
# --------------------------------------------------------------------------------------------------------------------


def test_happy_women() -> None:
    """Section 3.1: 118 of 129 women of 65 or more said that they were happy."""
    law = sf.Bernoulli(prior=1.0).fit([1, 0], sample_weight=[118, 11])
    assert (untyped(law.posterior_).alpha_, untyped(law.posterior_).beta_) == (119, 12)
    assert untyped(law.posterior_).mean() == pytest.approx(0.908, abs=5e-4)
    assert untyped(law.posterior_).mode() == pytest.approx(0.915, abs=5e-4)
    assert math.sqrt(untyped(law.posterior_).variance()) == pytest.approx(0.025, abs=5e-4)


@pytest.mark.parametrize(
    ("women", "children", "mean", "low", "high"),
    [(111, 217, 1.955357, 1.704943, 2.222679), (44, 66, 1.511111, 1.173437, 1.890836)],
)
def test_birth_rates(women: int, children: int, mean: float, low: float, high: float) -> None:
    """Section 3.2: children of women without and with a degree, with a Gamma(2, 1) prior."""
    law = sf.Poisson(prior=sf.Gamma(2, 1)).fit([children, *[0] * (women - 1)])
    assert untyped(law.posterior_).mean() == pytest.approx(mean, abs=5e-7)
    assert law.credible_intervals(0.95)["rate"] == pytest.approx((low, high), abs=5e-7)


def test_wings_of_midges() -> None:
    """Section 5.3: nine lengths in millimetres; prior worth one row each, at a mean of 1.9 and a variance of 0.01."""
    lengths = [1.64, 1.70, 1.72, 1.74, 1.82, 1.82, 1.82, 1.90, 2.08]
    law = sf.Normal(prior=sf.NormalInverseGamma(alpha=0.5, beta=0.005, gamma=1, delta=1.9)).fit(lengths)
    found = untyped(law.posterior_)
    assert (found.gamma_, 2 * found.alpha_) == (10, 10)
    assert found.delta_ == pytest.approx(1.814, abs=5e-4)
    assert found.beta_ / found.alpha_ == pytest.approx(0.015, abs=5e-4)


# --------------------------------------------------------------------------------------------------------------------
# Evidences
# --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alpha", "ratio"),
    [(0.37, 0.25), (1.0, 0.48), (2.7, 0.82), (7.4, 1.3), (20, 1.8), (55, 1.9), (148, 1.7), (403, 1.3), (1096, 1.1)],
)
def test_the_euro_coin(alpha: float, ratio: float) -> None:
    """MacKay, Information Theory, Inference, and Learning Algorithms (2003), section 3.3 and figure 3.11.

    A coin gave 140 heads in 250 tosses: the evidence of a bias with a Beta(alpha, alpha) law against that of none.
    """
    law = sf.Bernoulli(prior=sf.Beta(alpha, alpha)).fit([1, 0], sample_weight=[140, 110])
    assert math.exp(law.log_evidence_ + 250 * math.log(2)) == pytest.approx(ratio, abs=0.005 if ratio < 1 else 0.05)


#: Table 1 of Cooper and Herskovits, "A Bayesian method for the induction of probabilistic networks from data",
#: Machine Learning 9 (1992): ten cases of three variables.
CASES = {
    "x1": [1, 1, 0, 1, 0, 0, 1, 0, 1, 0],
    "x2": [0, 1, 0, 1, 0, 1, 1, 0, 1, 0],
    "x3": [0, 1, 1, 1, 0, 1, 1, 0, 1, 0],
}


@pytest.mark.parametrize(
    ("edges", "probability"),
    [([("x1", "x2"), ("x2", "x3")], 2.23e-9), ([("x1", "x2"), ("x1", "x3")], 2.23e-10)],
)
def test_two_structures_of_cooper_and_herskovits(edges: list[tuple[str, str]], probability: float) -> None:
    """Their equation 5, but for the prior probability of the structure."""
    states = {name: [0, 1] for name in CASES}
    evidence = sf.BayesianNetwork(edges, states=states, prior="k2").fit(CASES).report_.log_evidence
    assert evidence is not None
    assert math.exp(evidence) == pytest.approx(probability, rel=2.5e-3)


def test_equivalent_structures_have_one_evidence_and_k2_tells_them_apart() -> None:
    """Heckerman, Geiger and Chickering (1995), theorems 2 and 6: BDe and BDeu are equivalent by likelihood."""
    orders = list(itertools.permutations(CASES))
    states = {name: [0, 1] for name in CASES}

    def evidence(order: tuple[str, ...], prior: str) -> float:
        full = sf.BayesianNetwork([(order[0], order[1]), (order[0], order[2]), (order[1], order[2])], states=states)
        full.set_params(prior=prior, **({} if prior == "k2" else {"equivalent_sample_size": 4.0}))
        found = full.fit(CASES).report_.log_evidence
        assert found is not None
        return found

    assert np.ptp([evidence(order, "bdeu") for order in orders]) < 1e-12
    assert np.ptp([evidence(order, "k2") for order in orders]) > 0.1
