"""Families by name: those of this package, and those that others register or offer as entry points.

A name is written as the class is, in small letters with underscores: ``negative_binomial``. Wherever a distribution is
an option, as ``HiddenMarkovModel(emission=...)``, its name will do for one without options of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from suffice import storage
from suffice.errors import OptionError, listing, meant
from suffice.families.base import Distribution
from suffice.families.bernoulli import Bernoulli
from suffice.families.beta import Beta
from suffice.families.categorical import Categorical
from suffice.families.dirichlet import Dirichlet
from suffice.families.exponential import Exponential
from suffice.families.gamma import Gamma
from suffice.families.geometric import Geometric
from suffice.families.inverse_gamma import InverseGamma
from suffice.families.multivariate_normal import MultivariateNormal
from suffice.families.negative_binomial import NegativeBinomial
from suffice.families.normal import Normal
from suffice.families.poisson import Poisson
from suffice.families.student import StudentT
from suffice.families.von_mises import VonMises
from suffice.registry import Registry

FAMILIES: Registry[type[Distribution]] = Registry("suffice.families")
#: What users of other libraries call a family.
SYNONYMS = {"gaussian": "normal", "multivariate_gaussian": "multivariate_normal"}


def _given(family: type[Distribution]) -> Callable[[], type[Distribution]]:
    return lambda: family


def register_family(name: str, family: type[Distribution]) -> None:
    """Let a family be known by its name, and its distributions be written to files."""
    FAMILIES.register(name, _given(family))
    storage.register(family)


def family_named(name: str) -> type[Distribution]:
    """The class of a family, however its name is written; one that nobody knows is an error."""
    written = name.lower().replace("-", "_").replace(" ", "_")
    family = FAMILIES.find(SYNONYMS.get(written, written))
    if family is None:
        known = FAMILIES.names()
        joined = {one.replace("_", ""): one for one in known}  # As classes are written: ``MultivariateNormal``.
        if written in joined:
            return FAMILIES[joined[written]]
        raise OptionError(f"There is no family {name!r}.{meant(name, known)} Expected one of {listing(known, 20)}.")
    return family


for _name, _family in (
    ("bernoulli", Bernoulli),
    ("beta", Beta),
    ("categorical", Categorical),
    ("dirichlet", Dirichlet),
    ("exponential", Exponential),
    ("gamma", Gamma),
    ("geometric", Geometric),
    ("inverse_gamma", InverseGamma),
    ("multivariate_normal", MultivariateNormal),
    ("negative_binomial", NegativeBinomial),
    ("normal", Normal),
    ("poisson", Poisson),
    ("student_t", StudentT),
    ("von_mises", VonMises),
):
    FAMILIES.register(_name, _given(_family))
