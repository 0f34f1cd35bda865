"""The families of generalised linear models by name, and the distributions that stand for them.

A third party adds a family by one call of `register`, or as an entry point of the group ``suffice.glm_families``: an
object of a subclass of `families.Family` (variance, deviance, draws, links); `register_distribution` names the class of
the distribution that users give as ``GLM(family=...)``. An exponential family with one natural parameter needs neither:
it has the natural link, and is known by the name that it has in `families.registry`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from suffice.errors import OptionError, listing, meant, shortened
from suffice.families.base import Distribution
from suffice.families.bernoulli import Bernoulli
from suffice.families.categorical import Categorical
from suffice.families.exponential import Exponential
from suffice.families.exponential_family import ExponentialFamily
from suffice.families.gamma import Gamma
from suffice.families.geometric import Geometric
from suffice.families.multivariate_normal import MultivariateNormal
from suffice.families.negative_binomial import NegativeBinomial
from suffice.families.normal import Normal
from suffice.families.poisson import Poisson
from suffice.families.registry import FAMILIES as DISTRIBUTIONS
from suffice.models.glm.families import (
    BinomialFamily,
    GammaFamily,
    GaussianFamily,
    InverseGaussianFamily,
    NegativeBinomialFamily,
    PoissonFamily,
)
from suffice.models.glm.family import Family, ResponseFamily
from suffice.models.glm.links import Link
from suffice.models.glm.natural_family import NaturalFamily
from suffice.models.glm.quasi import QuasiBinomialFamily, QuasiPoissonFamily
from suffice.models.glm.several_families import MultinomialFamily, MultivariateGaussianFamily, OrdinalFamily
from suffice.registry import Registry


@dataclass(frozen=True, eq=False)
class Declared:
    """What a user says about the response: its family, and what of it is known already.

    `states` are labels in their order; `dispersion` and `size` are None where they are to be estimated.
    """

    family: ResponseFamily
    states: Any = None
    dispersion: float | None = None
    size: float | None = None


#: By name, in the order in which messages list them.
FAMILIES: Registry[ResponseFamily] = Registry("suffice.glm_families", "a family")
_OTHER_NAMES: dict[str, str] = {}
_DISTRIBUTIONS: dict[type[Distribution], Declared] = {}


def register(family: ResponseFamily, *, names: Iterable[str] = ()) -> None:
    """Let models have another family, by its name and by further ones."""
    FAMILIES.register(family.name, lambda: family)
    _OTHER_NAMES.update(dict.fromkeys(names, family.name))


def register_distribution(
    distribution: type[Distribution],
    family: ResponseFamily,
    *,
    dispersion: float | None = None,
    size: float | None = None,
) -> None:
    """Let a class of distributions, and its subclasses, stand for a family, at a dispersion or size that it fixes."""
    _DISTRIBUTIONS[distribution] = Declared(family, None, dispersion, size)


def declared(given: object) -> Declared:
    """What ``GLM(family=...)`` stands for: a name, a distribution or a family itself."""
    if isinstance(given, ResponseFamily):
        if given.name not in FAMILIES.own():
            register(given)
        return Declared(given)
    if isinstance(given, Distribution):
        known = next((_DISTRIBUTIONS[kind] for kind in type(given).__mro__ if kind in _DISTRIBUTIONS), None)
        if known is None and isinstance(given, ExponentialFamily) and len(given.statistic_names) == 1:
            if repr(given) not in FAMILIES.own():
                register(NaturalFamily(given, repr(given)))
            return Declared(FAMILIES[repr(given)])
        if known is None:
            raise OptionError(
                f"family is {given!r}; responses follow {listing([kind.__name__ for kind in _DISTRIBUTIONS])}."
            )
        options = given.get_params(deep=False)
        size = options.get("size") if known.size is None else known.size
        return Declared(known.family, options.get("states"), known.dispersion, size)
    if not isinstance(given, str):
        near = meant(type(given).__name__, FAMILIES.names())
        raise OptionError(f"family is {shortened(given)}; expected a distribution such as Poisson(), or a name.{near}")
    name = given.lower().replace("-", "_").replace(" ", "_")
    name = _OTHER_NAMES.get(name, name)
    registered = name in DISTRIBUTIONS.own() and name not in FAMILIES.own()
    family = None if registered else FAMILIES.find(name)
    if family is not None:
        return Declared(family)
    distribution = DISTRIBUTIONS.find(name)
    if distribution is None:
        names = FAMILIES.names()
        near = meant(name, names)
        raise OptionError(f"family is {given!r}; expected a distribution, or one of {listing(names, 20)}.{near}")
    return declared(distribution())


def link_of(family: ResponseFamily, name: str | None) -> Link:
    """The link asked for, or the family's own; one that the family does not take is an error."""
    chosen = family.link(family.canonical if name is None else name)
    if chosen.name not in family.links:
        raise OptionError(
            f"The {family.name} family does not take the link {chosen.name!r}; it takes {', '.join(family.links)}."
        )
    return chosen


def one_predictor_family(name: str, size: float | None = None) -> Family:
    """A family of one linear predictor by its name, at a size where it has one."""
    family = FAMILIES[name]
    assert isinstance(family, Family)
    return family.sized(size)


register(GaussianFamily(), names=("normal",))
register(BinomialFamily(), names=("bernoulli", "logistic"))
register(PoissonFamily())
register(GammaFamily())
register(InverseGaussianFamily(), names=("inversegaussian",))
register(NegativeBinomialFamily(), names=("negativebinomial",))
register(MultinomialFamily(), names=("categorical", "softmax"))
register(MultivariateGaussianFamily(), names=("multivariate_normal",))
register(QuasiPoissonFamily(), names=("quasi_poisson",))
register(QuasiBinomialFamily(), names=("quasi_binomial",))
register(OrdinalFamily(), names=("ordered", "cumulative", "proportional_odds"))

register_distribution(Normal, FAMILIES["gaussian"])
register_distribution(Bernoulli, FAMILIES["binomial"])
register_distribution(Poisson, FAMILIES["poisson"])
register_distribution(Gamma, FAMILIES["gamma"])
register_distribution(Exponential, FAMILIES["gamma"], dispersion=1.0)
register_distribution(NegativeBinomial, FAMILIES["negative_binomial"])
register_distribution(Geometric, FAMILIES["negative_binomial"], size=1.0)
register_distribution(Categorical, FAMILIES["multinomial"])
register_distribution(MultivariateNormal, FAMILIES["multivariate_gaussian"])
