"""The Dirichlet formulas against values computed with 60 digits, and against plain sums."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

import suffice as sf
from suffice.families import simplex


@dataclass(frozen=True)
class Reference:
    """Textbook formulas for one alpha, evaluated with 60 digits and rounded once.

    `divergence` is that to ``alpha_k (1 + (k + 1)/64)``, `evidence` that of the counts 3, 6, 9, ...; `fourth` are the
    fourth cumulants of each log x.
    """

    alpha: list[float]
    log_beta: float
    mean_logs: list[float]
    variances: list[float]
    fourth: list[float]
    entropy: float
    divergence: float
    evidence: float


REFERENCES = [
    Reference(
        alpha=[2.0, 3.0],
        log_beta=-2.4849066497880004,
        mean_logs=[-1.0833333333333333, -0.5833333333333334],
        variances=[0.4236111111111111, 0.1736111111111111],
        fourth=[0.47251157407407407, 0.09751157407407407],
        entropy=-0.2349066497880003,
        divergence=0.0003142157916762384,
        evidence=-6.284600470242227,
    ),
    Reference(
        alpha=[5.0, 1e-12],
        log_beta=27.631021115926465,
        mean_logs=[-2.2132295573709092e-13, -1000000000002.0834],
        variances=[4.878973224510378e-14, 1e24],
        fourth=[1.4063191342106669e-14, 6e48],
        entropy=-999999999973.4524,
        divergence=0.000478341333245926,
        evidence=-36.870531865203326,
    ),
    Reference(
        alpha=[2.0, 10000000000.0],
        log_beta=-46.051701859980916,
        mean_logs=[-22.60306659499199, -1.9999999999e-10],
        variances=[0.6449340667482264, 1.9999999998e-20],
        fourth=[0.49393940226682914, 1.19999999976e-39],
        entropy=-21.448635265288925,
        divergence=0.00030794152631509334,
        evidence=-65.89949896337342,
    ),
    Reference(
        alpha=[3000000000000.0, 1000000000000.0, 2.0],
        log_beta=-2249340578546.021,
        mean_logs=[-0.2876820724523226, -1.3862943611207657, -28.59453114195035],
        variances=[8.333333333348264e-14, 7.500000000005938e-13, 0.6449340668479764],
        fourth=[4.2824074074146267e-38, 1.968750000003035e-36, 0.49393940226682914],
        entropy=-41.36680723425365,
        divergence=89571007.21708089,
        evidence=-255.23223910446637,
    ),
    Reference(
        alpha=[0.1, 0.2, 0.3],
        log_beta=4.474340610913831,
        mean_logs=[-8.883135726517885, -3.7484206826989976, -1.9619050083069427],
        variances=[97.79708947989039, 22.631167534521417, 8.609154875205373],
        fourth=[59957.10583574491, 3705.837953819379, 695.734723609704],
        entropy=-7.892551594926324,
        divergence=0.0009496104541872696,
        evidence=-22.535287353462245,
    ),
]


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda reference: str(reference.alpha))
def test_digits_survive_large_small_and_unequal_alpha(reference: Reference) -> None:
    alpha = np.array(reference.alpha)
    places = np.arange(1.0, len(alpha) + 1)
    assert simplex.log_beta(alpha) == pytest.approx(reference.log_beta, rel=4e-15)
    np.testing.assert_allclose(simplex.mean_logs(alpha), reference.mean_logs, rtol=4e-15)
    np.testing.assert_allclose(np.diag(simplex.logs_covariance(alpha)), reference.variances, rtol=4e-15)
    fourth = [simplex.logs_cumulants(alpha, 4, unit)[3] for unit in np.eye(len(alpha))]
    np.testing.assert_allclose(fourth, reference.fourth, rtol=4e-15)
    assert simplex.entropy(alpha) == pytest.approx(reference.entropy, rel=4e-15)
    assert simplex.divergence(alpha, alpha * (1 + places / 64)) == pytest.approx(reference.divergence, rel=1e-12)
    assert simplex.log_evidence(alpha, 3 * places) == pytest.approx(reference.evidence, rel=4e-15)


@pytest.mark.parametrize(
    ("alpha", "x", "expected"),
    [
        ([2.5, 3.5], [0.25, 0.75], 0.5031885471527644),
        ([1e8, 3e8], [0.25 + 2.0**-15, 0.75 - 2.0**-15], 8.828099007253659),
        ([1e10, 2.0], [1 - 2.0**-30, 2.0**-30], 15.944060693622284),
        ([0.5, 2e5, 1e-3], [2.0**-20, 1 - 2.0**-20 - 2.0**-30, 2.0**-30], 26.14987048476825),
    ],
)
def test_density_keeps_its_digits(alpha: list[float], x: list[float], expected: float) -> None:
    # Reference values with 60 digits, as above.
    assert float(simplex.log_density(np.array(alpha), np.array(x))) == pytest.approx(expected, rel=2e-12)
    # The logarithm of x is rounded, and alpha times larger in the density.
    rounding = 1e-15 * float(np.abs(np.log(x)) @ np.array(alpha))
    assert simplex.mean_log_density(np.array(alpha), np.log(x)) == pytest.approx(expected, rel=2e-12, abs=rounding)


@given(st.lists(st.floats(0.05, 50), min_size=2, max_size=6), st.data())
def test_formulas_equal_the_textbook(values: list[float], data: st.DataObject) -> None:
    alpha = np.array(values)
    other = np.array(data.draw(st.lists(st.floats(0.05, 50), min_size=len(alpha), max_size=len(alpha))))
    oracle, total = stats.dirichlet(alpha), alpha.sum()
    assert simplex.log_beta(alpha) == pytest.approx(
        special.gammaln(alpha).sum() - special.gammaln(total), rel=1e-11, abs=1e-11
    )
    logs = special.digamma(alpha) - special.digamma(total)
    np.testing.assert_allclose(simplex.mean_logs(alpha), logs, rtol=1e-11)
    np.testing.assert_allclose(
        simplex.logs_covariance(alpha), np.diag(special.polygamma(1, alpha)) - special.polygamma(1, total), rtol=1e-10
    )
    assert simplex.entropy(alpha) == pytest.approx(float(oracle.entropy()), rel=1e-9, abs=1e-9)
    log_beta = special.gammaln(other).sum() - special.gammaln(other.sum())
    bregman = log_beta - special.gammaln(alpha).sum() + special.gammaln(total) - (other - alpha) @ logs
    assert simplex.divergence(alpha, other) == pytest.approx(float(bregman), rel=1e-8, abs=1e-9)
    x = np.random.default_rng(0).dirichlet(other)
    if (x > 1e-100).all():
        assert float(simplex.log_density(alpha, x)) == pytest.approx(
            float((alpha - 1) @ np.log(x)) - special.gammaln(alpha).sum() + float(special.gammaln(total)),
            rel=1e-9,
            abs=1e-9,
        )


@given(st.lists(st.floats(1e-12, 1e12), min_size=1, max_size=8))
def test_sums_of_the_others(values: list[float]) -> None:
    expected = [math.fsum(values[:k] + values[k + 1 :]) for k in range(len(values))]
    np.testing.assert_allclose(simplex.others(np.array(values)), expected, rtol=1e-14, atol=0)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=6))
def test_relative_entropy_equals_scipy_and_is_never_negative(pairs: list[tuple[float, float]]) -> None:
    p, q = (np.array(values) + 1e-300 for values in zip(*pairs, strict=True))
    p, q = p / p.sum(), q / q.sum()
    found = simplex.relative_entropy(p, q)
    assert found >= 0
    assert found == pytest.approx(float(special.rel_entr(p, q).sum()), rel=1e-9, abs=1e-14)
    assert simplex.relative_entropy(p, p) == 0


def test_relative_entropy_on_the_edge() -> None:
    assert simplex.relative_entropy([0.0, 1.0], [0.5, 0.5]) == pytest.approx(math.log(2), rel=1e-15)
    assert simplex.relative_entropy([0.5, 0.5], [0.0, 1.0]) == math.inf
    assert simplex.relative_entropy([1e-320, 1.0], [1e-10, 1 - 1e-10]) == pytest.approx(1e-10, rel=1e-5)


@given(st.integers(1, 7), st.floats(0.01, 0.9))
def test_cumulants_of_trials_follow_from_moments(order: int, p: float) -> None:
    # Cumulants from raw moments: of one trial, whose moments are all p, and of a geometric count by summation.
    trial = [p] * order
    x = np.arange(4000.0)
    mass = stats.geom.pmf(x + 1, 0.3)
    count = [float(mass @ x**s) for s in range(1, order + 1)]
    for moments, found in (
        (trial, simplex.odds_cumulants(order, p, -1)),
        (count, simplex.odds_cumulants(order, 7 / 3, 1)),
    ):
        cumulants: list[float] = []
        for s in range(1, order + 1):
            lower = sum(math.comb(s - 1, j - 1) * cumulants[j - 1] * moments[s - j - 1] for j in range(1, s))
            cumulants.append(moments[s - 1] - lower)
        np.testing.assert_allclose(found, cumulants, rtol=1e-9, atol=1e-11)


def test_arguments_outside_the_domain_are_refused() -> None:
    assert simplex.log_beta(np.array([1.0, -1.0])) == math.inf
    with pytest.raises(sf.OptionError, match="above 0"):
        simplex.mean_logs(np.array([1.0, -1e9]))
    for logs in ([-1.0], [-1.0, 0.0], [-0.5, -0.5], [-np.inf, -1.0], [np.nan, -1.0]):
        with pytest.raises(sf.OptionError, match="mean of log x"):
            simplex.check_mean_logs(np.array(logs))


def test_very_small_alpha_are_not_taken_for_equal_rows() -> None:
    # The mean of log x is about -1/alpha, far below the logarithm of the smallest number.
    logs = simplex.mean_logs(np.array([1e-4, 1e-4, 1e-4]))
    assert np.exp(logs).sum() == 0
    assert not simplex.are_alike(logs)
    np.testing.assert_allclose(sf.Dirichlet().with_mean_parameters(logs).alpha_, 1e-4, rtol=1e-11)
