"""Families by name, of this package and of others; what an unfitted distribution does not know."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice import extend
from suffice.families.registry import FAMILIES, family_named
from suffice.storage.encoding import CLASSES


class Offered:
    """An entry point."""

    def __init__(self, name: str, value: Any) -> None:
        self.name, self._value = name, value

    def load(self) -> Any:
        return self._value


class Waiting(sf.Gamma):
    """A family of another package."""


def test_families_are_known_by_name() -> None:
    assert family_named("Negative-Binomial") is sf.NegativeBinomial is family_named("NegativeBinomial")
    assert family_named("gaussian") is sf.Normal
    assert family_named("multivariate gaussian") is sf.MultivariateNormal
    assert {type(family_named(name)()) for name in FAMILIES.own()} >= {sf.Normal, sf.Categorical, sf.Poisson, sf.Beta}
    with pytest.raises(sf.OptionError, match="no family 'waiting'"):
        family_named("waiting")


def test_another_package_offers_a_family(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FAMILIES, "_known", dict(FAMILIES._known))
    groups = {"suffice.families": [Offered("waiting", Waiting), Offered("normal", Waiting)]}
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: groups.get(group, []))
    x = np.random.default_rng(0).gamma(3.0, size=30)
    model = sf.HiddenMarkovModel(1, emission="waiting").fit([x])
    assert type(model.emissions_[0]) is Waiting
    assert model.emissions_[0].shape_ == pytest.approx(sf.Gamma().fit(x).shape_, rel=1e-6)
    assert family_named("normal") is sf.Normal  # What the package has itself is not replaced.


def test_a_family_that_is_registered_is_written_to_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for registry in (FAMILIES, CLASSES):
        monkeypatch.setattr(registry, "_known", dict(registry._known))
    extend.register_family("waiting", Waiting)
    Waiting(2.0, 3.0).write(tmp_path / "law.suffice")
    assert type(sf.read(tmp_path / "law.suffice")) is family_named("waiting") is Waiting


@pytest.mark.parametrize("law", [sf.Normal(), sf.Bernoulli(), sf.Gamma(), sf.Categorical(), sf.MultivariateNormal()])
def test_an_unfitted_distribution_has_no_parameters_to_count(law: Any) -> None:
    with pytest.raises(sf.NotFittedError):
        law.n_params_  # noqa: B018


def test_states_are_known_once_they_are_declared_given_or_seen() -> None:
    with pytest.raises(sf.NotFittedError, match="states"):
        sf.Bernoulli().states_  # noqa: B018
    assert sf.Bernoulli(states=("no", "yes")).states_ == ("no", "yes")
    assert sf.Bernoulli(0.3).states_ == (0, 1)
    assert sf.Bernoulli().fit([True, False]).states_ == (False, True)


def test_a_fitted_value_holds_parameters_and_no_options() -> None:
    law = sf.Normal(prior=sf.NormalInverseGamma(2, 1, 1, 0), estimate="map").fit([1.0, 2.0, 4.0])
    assert set(law.fitted_.member.known) == set()
    assert law.fitted_.n_params == 2
    np.testing.assert_array_equal(law.fitted_.score_samples([1.0, 3.0]), law.score_samples([1.0, 3.0]))
