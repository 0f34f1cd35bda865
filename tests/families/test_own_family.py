"""A family written outside of the package: what it must give, and what it gets for it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

import suffice as sf
from suffice.families.base import as_float, as_numbers, generator
from suffice.families.beta import BetaMember
from suffice.families.exponential_family import ExponentialFamily
from suffice.families.member import FamilyMember
from suffice.options import NewtonOptions
from suffice.statistics import Sums

Floats = NDArray[np.float64]


class LogGammaMember(FamilyMember):
    """The distribution of x > 0 with density ``rate^shape / Gamma(shape) x^(shape - 1) exp(-rate x)``.

    It gives `_start` and nothing else about its fit.
    """

    parameter_names = ("shape", "rate")
    statistic_names = ("log x", "x")

    def check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return {name: as_float(parameters[name], name, above=0) for name in self.parameter_names}

    def sufficient_statistics(self, x: ArrayLike) -> Floats:
        values = as_numbers(x)
        return np.stack([np.log(values), values], axis=-1)

    def log_base_measure(self, x: ArrayLike) -> Floats:
        return np.zeros(as_numbers(x).shape)

    def log_normalizer(self, eta: ArrayLike | None = None) -> float:
        first, second = self._eta(eta)
        if not (first > -1 and second < 0):
            return np.inf
        return float(special.gammaln(first + 1) - (first + 1) * np.log(-second))

    def expected_statistics(self, eta: ArrayLike | None = None) -> Floats:
        first, second = self._eta(eta)
        return np.array([special.digamma(first + 1) - np.log(-second), -(first + 1) / second])

    def statistics_covariance(self, eta: ArrayLike | None = None) -> Floats:
        first, second = self._eta(eta)
        return np.array([[special.polygamma(1, first + 1), -1 / second], [-1 / second, (first + 1) / second**2]])

    def to_natural(self, parameters: Mapping[str, Any]) -> Floats:
        return np.array([parameters["shape"] - 1, -parameters["rate"]])

    def from_natural(self, eta: Floats) -> dict[str, Any]:
        return {"shape": float(eta[0] + 1), "rate": float(-eta[1])}

    def start(self, mean: Floats) -> Floats:
        return np.array([0.0, -1 / mean[1]])

    def sample(self, n: int = 1, random_state: Any = None) -> Floats:
        return np.asarray(generator(random_state).gamma(self.shape_, 1 / self.rate_, size=n))  # type: ignore[attr-defined]

    def ask(self, domain: Any) -> Any:
        (name,) = domain.names
        return (Sums.of((name, "log"), (name, "x")),)

    def observed(self, summary: Any) -> Floats:
        return np.asarray(summary[self.ask(summary.domain)[0]].means)


class LogGamma(ExponentialFamily):
    """The options of `LogGammaMember`."""

    member_class = LogGammaMember

    def __init__(self, shape: float | None = None, rate: float | None = None, **run: Unpack[NewtonOptions]) -> None:
        super().__init__(shape=shape, rate=rate, **run)


ROWS = stats.gamma.rvs(2.5, scale=0.7, size=60, random_state=1)


def test_a_family_that_gives_a_start_is_fitted_by_newton_and_says_so() -> None:
    law = LogGamma().fit(ROWS)
    assert law.report_.method == "Newton on the log-likelihood"
    assert law.n_iter_ > 2
    assert law.converged_
    same = sf.Gamma().fit(ROWS)
    assert law.parameters_ == pytest.approx(same.parameters_, rel=1e-9)
    assert law.log_likelihood_ == pytest.approx(same.log_likelihood_, rel=1e-12)
    np.testing.assert_allclose(law.score_samples(ROWS).mean(), law.score(ROWS), rtol=1e-12)


def test_a_family_that_gives_a_start_obeys_its_limits() -> None:
    with pytest.warns(sf.ConvergenceWarning):
        short = LogGamma(max_iter=1).fit(ROWS)
    assert short.n_iter_ == 1
    assert not short.converged_
    rough = LogGamma(tolerance=0.5).fit(ROWS)
    assert rough.n_iter_ < LogGamma().fit(ROWS).n_iter_


def test_the_newton_that_a_family_inherits_is_the_one_of_the_package() -> None:
    class MineMember(BetaMember):
        maximise = FamilyMember.maximise

    class Mine(sf.Beta):
        member_class = MineMember

    shares = [0.1, 0.4, 0.7, 0.9]
    with pytest.warns(sf.ConvergenceWarning):
        law = Mine(max_iter=1).fit(shares)
    assert law.report_.method == "Newton on the log-likelihood"
    assert (law.n_iter_, law.converged_) == (1, False)


def test_a_checkpoint_goes_on_and_another_problem_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fit.npz"
    with pytest.warns(sf.ConvergenceWarning):
        LogGamma(max_iter=2, checkpoint=path).fit(ROWS)
    law = LogGamma(checkpoint=path).fit(ROWS)
    assert law.parameters_ == LogGamma().fit(ROWS).parameters_
    with pytest.warns(sf.ConvergenceWarning):
        LogGamma(max_iter=2, checkpoint=path).fit(ROWS)
    with pytest.raises(sf.SufficeError, match="another"):
        LogGamma(checkpoint=path).fit(2 * ROWS)


def test_cumulants_without_formulas_are_those_of_the_formulas() -> None:
    mine, formulas = LogGamma(3.0, 2.0).cumulants(5), sf.Gamma(3.0, 2.0).cumulants(5)
    np.testing.assert_allclose(mine[:, :3], formulas[:, :3], rtol=1e-9)
    np.testing.assert_allclose(mine, formulas, rtol=1e-6)


def test_options_of_a_fit_are_named_in_the_signature_and_others_refused() -> None:
    import inspect

    assert list(inspect.signature(LogGamma).parameters)[2:] == [
        *("max_iter", "tolerance", "max_seconds", "progress", "callback", "checkpoint")
    ]
    law = LogGamma(max_iter=7)
    assert law.get_params()["max_iter"] == law.clone().max_iter == 7  # type: ignore[attr-defined]
    assert repr(law) == "LogGamma(max_iter=7)"
    with pytest.raises(TypeError, match="'maximum'"):
        LogGamma(maximum=7)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "law", [sf.LinearGaussianPrior(2, 1), sf.StudentT(3), sf.Laplace(), sf.NormalInverseGamma(2, 1, 1, 0)]
)
def test_a_distribution_that_is_always_given_has_no_free_parameters(law: Any) -> None:
    assert law.n_params_ == 0
    with pytest.raises(sf.OptionError, match="not fitted"):
        law.fit([1.0, 2.0])
