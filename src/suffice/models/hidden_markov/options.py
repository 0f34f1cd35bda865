"""The options of a hidden Markov model, checked when it is made; which of them no fit reads beside others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suffice.checks import choice, whole_number
from suffice.choices import Estimate, choices
from suffice.errors import OptionError
from suffice.families.bernoulli import Bernoulli
from suffice.families.categorical import Categorical
from suffice.families.multivariate_normal import MultivariateNormal
from suffice.families.normal import Normal
from suffice.models.hidden_markov.durations.options import read_durations
from suffice.models.hidden_markov.emissions.distributions import MixtureDistribution
from suffice.models.hidden_markov.input import state_names
from suffice.models.hidden_markov.priors import PARTS, split_prior
from suffice.models.hidden_markov.structure import read_fixed, read_tied
from suffice.models.options_of_em import check_em
from suffice.options import Idle


def _emitted(emission: Any) -> list[Any]:
    """The distributions that an emission is made of."""
    if isinstance(emission, Mapping):
        return [part for one in emission.values() for part in _emitted(one)]
    if isinstance(emission, list | tuple):
        return [part for one in emission for part in _emitted(one)]
    if isinstance(emission, MixtureDistribution):
        return _emitted(emission.get_params(deep=False)["components"])
    return [emission]


def _has_shape(emission: Any, covariance: object) -> bool:
    """Whether the shape of covariances says something about a distribution: the one variance of a column may be tied.

    What a name stands for is found when the emission is built.
    """
    return isinstance(emission, str | MultivariateNormal) or (
        isinstance(emission, Normal) and isinstance(covariance, str) and covariance == "tied"
    )


IDLE = (
    Idle(
        "covariance",
        lambda given: not any(_has_shape(one, given["covariance"]) for one in _emitted(given["emission"])),
        "it is one of MultivariateNormal (and 'tied' of Normal too), and no state emits one",
    ),
    Idle(
        "estimate",
        lambda given: given["prior"] is None and not any(getattr(p, "prior", p) for p in _emitted(given["emission"])),
        "without a prior the estimate is that of maximum likelihood",
    ),
    Idle(
        "variance_floor",
        lambda given: all(isinstance(one, Categorical | Bernoulli) for one in _emitted(given["emission"])),
        "symbols have no variance",
    ),
)


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse what makes no sense."""
    names = state_names(options["states"])
    split_prior(options["prior"])
    read_tied(options["tied"], names)
    fixed = options["fixed"]
    _, known = read_durations(options["durations"], names)
    given = {name for name in PARTS if options[name] is not None and (name != "durations" or (known and all(known)))}
    if read_fixed(fixed) - given:
        raise OptionError(
            f"fixed is {fixed!r}; what is fixed needs start values, by initial=, transitions=, emissions= or "
            "durations=."
        )
    choice(options["estimate"], "estimate", (None, *choices(Estimate)))
    whole_number(options["n_init"], "n_init")
    check_em(options)
