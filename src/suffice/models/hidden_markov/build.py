"""From what a user says about emissions to the emission that a fit works with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import DataError, OptionError, listing
from suffice.families.base import Distribution
from suffice.families.bernoulli import Bernoulli
from suffice.families.categorical import Categorical
from suffice.families.exponential import ExponentialFamily
from suffice.families.multivariate_normal import MultivariateNormal
from suffice.families.normal import Normal
from suffice.families.vectors import VectorFamily
from suffice.models.hidden_markov.emissions.categorical import CategoricalEmission
from suffice.models.hidden_markov.emissions.columns import ColumnsEmission
from suffice.models.hidden_markov.emissions.contract import Emission
from suffice.models.hidden_markov.emissions.family import FamilyEmission
from suffice.models.hidden_markov.emissions.gaussian import SHAPES, GaussianEmission, as_reals, centre_and_scale
from suffice.models.hidden_markov.emissions.gaussian_prior import check_prior
from suffice.models.hidden_markov.emissions.law import Mixture
from suffice.models.hidden_markov.emissions.mixture import MixtureEmission
from suffice.models.hidden_markov.priors import is_number, pseudo_counts
from suffice.sources.sequences import code_states

Columns = Sequence[NDArray[Any]]


@dataclass(frozen=True)
class Wish:
    """What a user says besides the law: number of states, covariances, floor, prior, and how it is estimated."""

    size: int
    covariance: str = "full"
    floor: float = 1e-6
    prior: Any = None
    estimate: str | None = None
    hidden: bool = True

    def of_law(self, law: Any) -> Any:
        """The prior of a law: its own, else the one for all."""
        own = law.get_params(deep=False).get("prior")
        return self.prior if own is None else own

    def estimate_of(self, law: Any) -> str | None:
        """How: as the law says, as the model says, else the mode in EM and the mean where all is seen."""
        own = law.get_params(deep=False).get("estimate")
        return own or self.estimate


def build_emission(
    law: Any, wish: Wish, columns: Columns, names: Sequence[Any] | None = None, known: Mapping[str, Any] | None = None
) -> Emission:
    """The emission of some columns; `known` holds what an earlier fit had settled."""
    known = known or {}
    if wish.covariance not in SHAPES:
        raise OptionError(f"covariance is {wish.covariance!r}; expected one of {listing(SHAPES)}.")
    if not (is_number(wish.floor) and 0 <= wish.floor < 1):
        raise OptionError(f"variance_floor is {wish.floor!r}; expected a share of the variance of a column, 0 to 1.")
    if isinstance(law, Mapping | list | tuple):
        return _of_columns(law, wish, columns, names, known)
    if isinstance(law, type) or not isinstance(law, Distribution):
        raise OptionError(f"emission is {law!r}; expected a law such as Categorical(), Normal() or Poisson().")
    if isinstance(law, Mixture):
        return _mixture(law, wish, columns, names, known)
    if isinstance(law, MultivariateNormal):
        return _gaussian(law, wish, columns, names, known)
    if len(columns) > 1 and not isinstance(law, VectorFamily):
        return _of_columns([law] * len(columns), wish, columns, names, known)
    if isinstance(law, Categorical | Bernoulli):
        return _categorical(law, wish, columns, known)
    if isinstance(law, Normal) and _unknown(law) and not isinstance(wish.of_law(law), Normal):
        return _gaussian(law, wish, columns, names, known)
    if isinstance(law, ExponentialFamily) and not isinstance(law, VectorFamily):
        return _family(law, wish, columns, known)
    raise OptionError(f"emission is {law!r}; expected an exponential family of one column, or a normal law of several.")


def _unknown(law: Any) -> bool:
    """Whether every parameter of a law is to be learned."""
    options = law.get_params(deep=False)
    return all(options.get(name) is None for name in law.parameter_names)


def _of_columns(law: Any, wish: Wish, columns: Columns, names: Any, known: Mapping[str, Any]) -> Emission:
    if isinstance(law, Mapping):
        if names is None or set(law) != set(names):
            found = "have no names" if names is None else f"are {listing(names)}"
            raise DataError(f"emission describes the columns {listing(law)}; those of the data {found}.")
        laws = [law[name] for name in names]
    else:
        laws = list(law)
    if len(laws) != len(columns):
        raise DataError(f"emission has {len(laws)} laws; the data have {len(columns)} observations a step.")
    parts = known.get("parts", [None] * len(laws))
    rows = zip(laws, columns, parts, strict=True)
    built = tuple(build_emission(one, wish, [column], None, part) for one, column, part in rows)
    return ColumnsEmission(wish.size, built, None if names is None else tuple(names))


def _categorical(law: Any, wish: Wish, columns: Columns, known: Mapping[str, Any]) -> Emission:
    bernoulli = isinstance(law, Bernoulli)
    if not _unknown(law):
        raise OptionError(f"emission is {law!r}, which is given. Give an unfitted law, and start values by emissions=.")
    states = known.get("states") or law.get_params(deep=False)["states"]
    if states is None:
        _, states = code_states(columns[0], name="observation")
        if bernoulli:
            states = _two_states(states)
        if not states:
            raise DataError("All observations are gaps, so no symbol is known. Give states= to the law.")
    size = len(states)
    prior, estimate = wish.of_law(law), wish.estimate_of(law)
    alpha = getattr(prior, "alpha_", None) if bernoulli and not is_number(prior) else None
    if bernoulli and prior is not None and alpha is not None:
        prior = np.array([prior.beta_, prior.alpha_])  # A Beta prior counts successes, then failures.
    pseudo = pseudo_counts(prior, (wish.size, size), estimate, "emissions")
    return CategoricalEmission(wish.size, tuple(states), pseudo, bernoulli)


def _two_states(states: tuple[Any, ...]) -> tuple[Any, ...]:
    """(failure, success) of the values seen."""
    if all(isinstance(state, bool) for state in states):
        return (False, True)
    if all(not isinstance(state, str) and state in (0, 1) for state in states):
        return (0, 1)
    if len(states) != 2:
        raise DataError(f"A Bernoulli law has two states; the observations are {listing(states)}. Give states=.")
    return states


def _gaussian(law: Any, wish: Wish, columns: Columns, names: Any, known: Mapping[str, Any]) -> Emission:
    if not _unknown(law):
        raise OptionError(
            f"emission is {law!r}; a normal law of hidden states is learned whole. Give start values by emissions=, "
            "and fixed=['emissions'] to keep them."
        )
    scalar = isinstance(law, Normal)
    shape = "full" if scalar and wish.covariance != "tied" else wish.covariance
    if known:
        centre, scale = np.asarray(known["centre"]), np.asarray(known["scale"])
    else:
        centre, scale = centre_and_scale(np.stack([as_reals(column) for column in columns], axis=1))
    prior = wish.of_law(law)
    prior = None if is_number(prior) else prior  # A number counts symbols; a density needs a prior of its own.
    if prior is not None:
        check_prior(prior, len(centre), shape)
    estimate = wish.estimate_of(law) or ("map" if wish.hidden else "mean")
    return GaussianEmission(
        wish.size,
        shape,
        centre,
        scale,
        float(wish.floor),
        prior,
        estimate,
        scalar,
        None if names is None else tuple(names),
    )


def _family(law: Any, wish: Wish, columns: Columns, known: Mapping[str, Any]) -> Emission:
    prior = wish.of_law(law)
    own = law.clone()
    if prior is not None and not is_number(prior):
        estimate = wish.estimate_of(law) or ("map" if wish.hidden else "mean")
        own.set_params(prior=prior, estimate=estimate)
    if known:
        return FamilyEmission(wish.size, own, np.asarray(known["unit"]))
    values = as_reals(columns[0])
    whole = own.clone().fit(values[~np.isnan(values)])
    unit = np.array([abs(float(whole.parameters_[name])) for name in law.parameter_names])
    return FamilyEmission(wish.size, own, np.where(unit > 0, unit, 1.0))


def _mixture(law: Mixture, wish: Wish, columns: Columns, names: Any, known: Mapping[str, Any]) -> Emission:
    options = law.get_params(deep=False)
    if isinstance(options["components"], tuple):
        raise OptionError("emission is a given mixture; give an unfitted one such as Mixture(Normal(), 3).")
    many = Wish(wish.size * int(options["n"]), wish.covariance, wish.floor, wish.prior, wish.estimate, wish.hidden)
    pseudo = float(wish.prior) if is_number(wish.prior) else 0.0
    return MixtureEmission(wish.size, build_emission(options["components"], many, columns, names, known), pseudo)
