"""From what a user says about emissions to the emission that a fit works with."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.checks import choice, is_real
from suffice.domain import Origin, Variable
from suffice.errors import DataError, EstimateError, OptionError, listing
from suffice.families.base import Distribution
from suffice.families.bernoulli import Bernoulli
from suffice.families.categorical import Categorical
from suffice.families.dirichlet import Dirichlet
from suffice.families.exponential_family import ExponentialFamily
from suffice.families.multivariate_normal import MultivariateNormal
from suffice.families.normal import Normal
from suffice.families.registry import family_named
from suffice.families.student import StudentT
from suffice.families.vectors import VectorFamily
from suffice.models.glm.declaration import GLM
from suffice.models.hidden_markov.emissions.categorical import CategoricalEmission
from suffice.models.hidden_markov.emissions.columns import ColumnsEmission
from suffice.models.hidden_markov.emissions.contract import Emission
from suffice.models.hidden_markov.emissions.distributions import MixtureDistribution
from suffice.models.hidden_markov.emissions.family import FamilyEmission, as_unit, read_proportions
from suffice.models.hidden_markov.emissions.gaussian import SHAPES, GaussianEmission
from suffice.models.hidden_markov.emissions.gaussian_prior import check_prior
from suffice.models.hidden_markov.emissions.mixture import MixtureEmission
from suffice.models.hidden_markov.emissions.reals import as_reals, called, centre_and_scale, in_range
from suffice.models.hidden_markov.emissions.registry import (
    Columns,
    EmissionKind,
    EmissionOptions,
    SurveyedKind,
    kind_for,
    register_emission,
)
from suffice.models.hidden_markov.emissions.regression import regression_emission
from suffice.models.hidden_markov.emissions.student import student_emission
from suffice.models.hidden_markov.emissions.surveys import (
    FamilySurvey,
    PartsSurvey,
    SpreadSurvey,
    Survey,
    SymbolsSurvey,
    rough_parameters,
)
from suffice.models.hidden_markov.priors import pseudo_counts, split_prior
from suffice.sources.sequences import code_states


def emission_of(
    options: Mapping[str, Any],
    size: int,
    columns: Columns,
    names: Sequence[Any] | None,
    *,
    hidden: bool,
    known: Mapping[str, Any] | None = None,
    variables: Sequence[Variable | None] | None = None,
    weights: Floats | None = None,
) -> Emission:
    """The emission of a model of `size` states with these options, which keeps the zeros of given start values."""
    settings = settings_of(options, size, hidden=hidden, variables=variables, weights=weights)
    emission = build_emission(options["emission"], settings, columns, names, known)
    given = options["emissions"]
    return emission if given is None else emission.restricted(emission.parameters_of(given))


def settings_of(
    options: Mapping[str, Any],
    size: int,
    *,
    hidden: bool = True,
    variables: Sequence[Variable | None] | None = None,
    weights: Floats | None = None,
) -> EmissionOptions:
    """What the options of a model of `size` states say besides the distribution."""
    return EmissionOptions(
        size,
        options["covariance"],
        options["variance_floor"],
        split_prior(options["prior"]).get("emissions"),
        options["estimate"],
        hidden,
        None if variables is None else tuple(variables),
        weights,
    )


def build_emission(
    distribution: Any,
    settings: EmissionOptions,
    columns: Columns,
    names: Sequence[Any] | None = None,
    known: Mapping[str, Any] | None = None,
) -> Emission:
    """The emission of some columns; `known` holds what an earlier fit had settled."""
    known = known or {}
    choice(settings.covariance, "covariance", SHAPES)
    if not (is_real(settings.floor) and 0 <= settings.floor < 1):
        raise OptionError(
            f"variance_floor is {settings.floor!r}; expected a share of the variance of a column, 0 to 1."
        )
    distribution, kind = kind_of(distribution, settings, len(columns))
    if kind is None:
        if not isinstance(distribution, Distribution):
            raise OptionError(
                f"emission is {distribution!r}; expected a distribution such as Categorical(), Normal() or Poisson()."
            )
        raise OptionError(
            f"emission is {distribution!r}; expected an unfitted exponential family: of one column, or "
            "MultivariateNormal() or Dirichlet() of several."
        )
    if isinstance(distribution, Distribution):
        settings.check_estimate(distribution, symbols=isinstance(distribution, Categorical | Bernoulli))
    return kind.build(distribution, settings, columns, names, known)


def kind_of(distribution: Any, settings: EmissionOptions, width: int) -> tuple[Any, EmissionKind | None]:
    """A distribution of so many columns, as a user gives it or by its name, and its kind."""
    distribution = family_named(distribution)() if isinstance(distribution, str) else distribution
    return distribution, kind_for(distribution, settings, width)


def column_variables(distribution: Any, settings: EmissionOptions, names: Sequence[Hashable]) -> list[Variable] | None:
    """What the columns of a table hold that is surveyed; None where the emission cannot be built without rows."""
    distribution, kind = kind_of(distribution, settings, len(names))
    return kind.variables(distribution, settings, names) if isinstance(kind, SurveyedKind) else None


def survey_columns(distribution: Any, settings: EmissionOptions, columns: Columns, names: Sequence[Any]) -> Survey:
    """What some rows say about columns that are surveyed."""
    distribution, kind = kind_of(distribution, settings, len(columns))
    assert isinstance(kind, SurveyedKind)
    return kind.survey(distribution, settings, columns, names)


def _unknown(distribution: Any) -> bool:
    """Whether every parameter of a distribution is to be learned."""
    options = distribution.get_params(deep=False)
    return all(options.get(name) is None for name in distribution.parameter_names)


def _each_of(distribution: Any, width: int, names: Any) -> list[Any]:
    """The distribution of each column; one distribution of one column serves all of them alike."""
    if isinstance(distribution, Mapping):
        if names is None or set(distribution) != set(names):
            there = "have no names" if names is None else f"are {listing(names)}"
            raise DataError(f"emission describes the columns {listing(distribution)}; those of the data {there}.")
        distributions = [distribution[name] for name in names]
    else:
        distributions = list(distribution) if isinstance(distribution, list | tuple) else [distribution] * width
    if len(distributions) != width:
        raise DataError(f"emission has {len(distributions)} distributions; the data have {width} observations a step.")
    return distributions


def _of_columns(
    distribution: Any, settings: EmissionOptions, columns: Columns, names: Any, known: Mapping[str, Any]
) -> Emission:
    distributions = _each_of(distribution, len(columns), names)
    parts = known.get("parts", [None] * len(distributions))
    titles = range(len(distributions)) if names is None else names
    rows = enumerate(zip(distributions, columns, titles, parts, strict=True))
    built = tuple(
        build_emission(one, settings.of_column(number), [column], [title], part)
        for number, (one, column, title, part) in rows
    )
    return ColumnsEmission(settings.size, built, None if names is None else tuple(names))


def _categorical(
    distribution: Any, settings: EmissionOptions, columns: Columns, names: Any, known: Mapping[str, Any]
) -> Emission:
    bernoulli = isinstance(distribution, Bernoulli)
    if not _unknown(distribution):
        raise OptionError(
            f"emission is {distribution!r}, which is given. Give an unfitted distribution, and start values by "
            "emissions=."
        )
    states, origin = known.get("states"), known.get("origin", "declared")
    if states is None:
        states, origin = _symbols(distribution, settings, columns)
    size = len(states)
    prior, estimate = settings.of_distribution(distribution), settings.estimate_of(distribution)
    alpha = getattr(prior, "alpha_", None) if bernoulli and not is_real(prior) else None
    if bernoulli and prior is not None and alpha is not None:
        prior = np.array([prior.beta_, prior.alpha_])  # A Beta prior counts successes, then failures.
    pseudo = pseudo_counts(prior, (settings.size, size), estimate, "emissions")
    return CategoricalEmission(settings.size, tuple(states), pseudo, bernoulli, None, origin)


def _symbols(distribution: Any, settings: EmissionOptions, columns: Columns) -> tuple[tuple[Any, ...], Any]:
    """The states of a column, and their origin: declared, those of its type, or those seen."""
    declared = distribution.get_params(deep=False)["states"]
    if declared is not None:
        return tuple(declared), "declared"
    typed = None if settings.variables is None else settings.variables[0]
    _, states = code_states(columns[0], typed, name="observation")
    return _settled_symbols(distribution, states, "seen" if typed is None else typed.origin)


def _settled_symbols(distribution: Any, states: tuple[Any, ...], origin: Origin) -> tuple[tuple[Any, ...], Origin]:
    """The states of a distribution of states that were seen in a column, or that its type brings."""
    if isinstance(distribution, Bernoulli):
        return _two_states(states), "declared"
    if not states:
        raise DataError("All observations are missing values, so no symbol is known. Give states= to the distribution.")
    return states, origin


def _two_states(states: tuple[Any, ...]) -> tuple[Any, ...]:
    """(failure, success) of the values seen."""
    if all(isinstance(state, bool) for state in states):
        return (False, True)
    if all(not isinstance(state, str) and state in (0, 1) for state in states):
        return (0, 1)
    if len(states) != 2:
        raise DataError(
            f"A Bernoulli distribution has two states; the observations are {listing(states)}. Give states=."
        )
    return states


def _gaussian(
    distribution: Any, settings: EmissionOptions, columns: Columns, names: Any, known: Mapping[str, Any]
) -> Emission:
    if not _unknown(distribution):
        raise OptionError(
            f"emission is {distribution!r}; a normal distribution of hidden states is learned whole. Give start values "
            "by emissions=, and fixed=['emissions'] to keep them."
        )
    scalar = isinstance(distribution, Normal)
    shape = "full" if scalar and settings.covariance != "tied" else settings.covariance
    if known:
        centre, scale = np.asarray(known["centre"]), np.asarray(known["scale"])
    else:
        titles = [None] * len(columns) if names is None else names
        values = [as_reals(column, title) for column, title in zip(columns, titles, strict=True)]
        centre, scale = centre_and_scale(np.stack(values, axis=1), settings.weighted(len(values[0])), names)
    prior = settings.of_distribution(distribution)
    prior = None if is_real(prior) else prior  # A number counts symbols; a density needs a prior of its own.
    if prior is not None:
        check_prior(prior, len(centre), shape)
    estimate = settings.density_estimate_of(distribution)
    titles = None if names is None else tuple(names)
    return GaussianEmission(settings.size, shape, centre, scale, float(settings.floor), prior, estimate, scalar, titles)


def _family(
    distribution: Any, settings: EmissionOptions, columns: Columns, names: Any, known: Mapping[str, Any]
) -> Emission:
    prior, title = settings.of_distribution(distribution), None if names is None else names[0]
    own = distribution.clone()
    if prior is not None and not is_real(prior):
        own.set_params(prior=prior, estimate=settings.density_estimate_of(distribution))
    if known:
        return FamilyEmission(settings.size, own, np.asarray(known["unit"]), float(settings.floor), title)
    values = in_range(as_reals(columns[0], title), title)
    seen = values[~np.isnan(values) & (settings.weighted(len(values)) > 0)]
    if not len(seen):
        raise DataError(
            f"{called(title)}: there are missing values alone, and nothing to learn a distribution from. Leave the "
            "column out."
        )
    unit = rough_parameters(distribution, seen.mean(keepdims=True), np.abs(seen).mean(keepdims=True))
    return _whole(FamilyEmission(settings.size, own, unit, float(settings.floor), title), columns, settings)


def _whole(emission: FamilyEmission, columns: Columns, settings: EmissionOptions) -> FamilyEmission:
    """With the distribution of all steps for its units."""
    data = emission.read(columns)
    one = replace(emission, size=1, distribution=_plain_distribution(emission.distribution))
    data = data if one._matches == emission._matches else one.read(columns)
    try:
        scaled = one.rescaled(one.statistics(data, settings.weighted(len(data[0]))[:, None], {}))
    except EstimateError:
        return emission
    return replace(emission, unit=as_unit(scaled.unit))


def _plain_distribution(distribution: Any) -> Any:
    """The distribution without its prior, which has no say in the units."""
    return (
        distribution.clone().set_params(prior=None, estimate=None)
        if distribution.get_params(deep=False).get("prior") is not None
        else distribution
    )


def _proportions(
    distribution: Any, settings: EmissionOptions, columns: Columns, names: Any, known: Mapping[str, Any]
) -> Emission:
    """Dirichlet distributions of several columns."""
    own = distribution.clone()
    if own.get_params(deep=False)["columns"] is None and names is not None:
        own.set_params(columns=tuple(names))
    if known:
        return FamilyEmission(settings.size, own, np.asarray(known["unit"]), float(settings.floor))
    if len(columns) < 2:
        raise DataError(
            f"A Dirichlet distribution describes two or more columns of proportions; the data have {len(columns)}."
        )
    rows = read_proportions(columns, names)
    if np.isnan(rows).all():
        raise DataError("The observations hold missing values alone: there is nothing to learn a distribution from.")
    mass = np.where(np.isnan(rows), 0.0, settings.weighted(len(rows))[:, None])
    mean = (mass * np.nan_to_num(rows)).sum(axis=0) / mass.sum(axis=0)
    return _whole(FamilyEmission(settings.size, own, len(columns) * mean, float(settings.floor)), columns, settings)


def _mixture(
    distribution: MixtureDistribution, settings: EmissionOptions, columns: Columns, names: Any, known: Mapping[str, Any]
) -> Emission:
    options = distribution.get_params(deep=False)
    if isinstance(options["components"], tuple):
        raise OptionError("emission is a given mixture; give an unfitted one such as MixtureDistribution(Normal(), 3).")
    count = int(options["n"])
    many = replace(settings, size=settings.size * count, hidden=True)  # The component of a step is hidden, always.
    number = settings.prior if is_real(settings.prior) else None
    pseudo = pseudo_counts(number, (settings.size, count), settings.estimate, "emissions")
    return MixtureEmission(settings.size, build_emission(options["components"], many, columns, names, known), pseudo)


# -- surveys -----------------------------------------------------------------------------------------------------------


def _numbers(distribution: Any, settings: EmissionOptions, names: Sequence[Hashable]) -> list[Variable] | None:
    return [Variable(name, "real") for name in names]


def _symbol_variables(distribution: Any, settings: EmissionOptions, names: Sequence[Hashable]) -> list[Variable] | None:
    declared = distribution.get_params(deep=False)["states"]
    (name,) = names
    return [Variable(name, "discrete") if declared is None else Variable.discrete(name, tuple(declared))]


def _variables_of_each(
    distribution: Any, settings: EmissionOptions, names: Sequence[Hashable]
) -> list[Variable] | None:
    each = zip(_each_of(distribution, len(names), names), names, strict=True)
    parts = [column_variables(one, settings, [name]) for one, name in each]
    return None if any(part is None for part in parts) else [part[0] for part in parts if part is not None]


def _variables_of_components(
    distribution: Any, settings: EmissionOptions, names: Sequence[Hashable]
) -> list[Variable] | None:
    return column_variables(distribution.get_params(deep=False)["components"], settings, names)


def _survey_of_symbols(
    distribution: Any, settings: EmissionOptions, columns: Columns, names: Sequence[Any]
) -> SymbolsSurvey:
    variable = None if settings.variables is None else settings.variables[0]
    assert variable is not None
    return SymbolsSurvey(variable, partial(_settled_symbols, distribution))


def _survey_of_normal(
    distribution: Any, settings: EmissionOptions, columns: Columns, names: Sequence[Any]
) -> SpreadSurvey:
    return SpreadSurvey.of(columns, names)


def _survey_of_family(
    distribution: Any, settings: EmissionOptions, columns: Columns, names: Sequence[Any]
) -> FamilySurvey:
    spread = SpreadSurvey.of(columns, names)
    in_range(as_reals(columns[0], names[0]), names[0])
    own = _plain_distribution(distribution.clone())
    return _surveyed(
        FamilyEmission(1, own, rough_parameters(distribution, np.ones(1), np.ones(1)), 0.0, names[0]), columns, spread
    )


def _survey_of_proportions(
    distribution: Any, settings: EmissionOptions, columns: Columns, names: Sequence[Any]
) -> FamilySurvey:
    own = distribution.clone()
    if own.get_params(deep=False)["columns"] is None:
        own.set_params(columns=tuple(names))
    return _surveyed(FamilyEmission(1, own, np.ones(len(columns))), columns, SpreadSurvey.of(columns, names))


def _surveyed(one: FamilyEmission, columns: Columns, spread: SpreadSurvey) -> FamilySurvey:
    data = one.read(columns)
    return FamilySurvey(one, spread, one.statistics(data, np.ones((len(data[0]), 1)), {}))


def _survey_of_each(
    distribution: Any, settings: EmissionOptions, columns: Columns, names: Sequence[Any]
) -> PartsSurvey:
    each = enumerate(zip(_each_of(distribution, len(columns), names), columns, names, strict=True))
    parts = [survey_columns(one, settings.of_column(n), [column], [name]) for n, (one, column, name) in each]
    return PartsSurvey(tuple(parts))


def _survey_of_components(
    distribution: Any, settings: EmissionOptions, columns: Columns, names: Sequence[Any]
) -> Survey:
    return survey_columns(distribution.get_params(deep=False)["components"], settings, columns, names)


# -- the registry ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Kind:
    """A kind of emission of this package, by the functions of a `SurveyedKind`."""

    takes: Callable[[Any, EmissionOptions, int], bool]
    build: Callable[[Any, EmissionOptions, Columns, Any, Mapping[str, Any]], Emission]
    variables: Callable[[Any, EmissionOptions, Sequence[Hashable]], list[Variable] | None]
    survey: Callable[[Any, EmissionOptions, Columns, Sequence[Any]], Survey]


def _is_family(distribution: Any, settings: EmissionOptions, width: int) -> bool:
    return isinstance(distribution, ExponentialFamily) and not isinstance(distribution, VectorFamily)


def _is_normal(distribution: Any, settings: EmissionOptions, width: int) -> bool:
    """Normal distributions whose parameters are all learned; those of a known variance are families like others."""
    return (
        isinstance(distribution, Normal)
        and _unknown(distribution)
        and not isinstance(settings.of_distribution(distribution), Normal)
    )


def _is_of_columns(distribution: Any, settings: EmissionOptions, width: int) -> bool:
    """Several distributions, or one distribution of one column for several of them."""
    return isinstance(distribution, Mapping | list | tuple) or (
        width > 1 and not isinstance(distribution, VectorFamily)
    )


# From the most general to the most special: the latest is asked first.
register_emission("family", _Kind(_is_family, _family, _numbers, _survey_of_family))
register_emission("gaussian", _Kind(_is_normal, _gaussian, _numbers, _survey_of_normal))
register_emission(
    "categorical",
    _Kind(
        lambda distribution, *_: isinstance(distribution, Categorical | Bernoulli),
        _categorical,
        _symbol_variables,
        _survey_of_symbols,
    ),
)
register_emission(
    "student t",
    _Kind(lambda distribution, *_: isinstance(distribution, StudentT), student_emission, _numbers, _survey_of_normal),
)
register_emission("columns", _Kind(_is_of_columns, _of_columns, _variables_of_each, _survey_of_each))
register_emission(
    "proportions",
    _Kind(
        lambda distribution, *_: isinstance(distribution, Dirichlet) and _unknown(distribution),
        _proportions,
        _numbers,
        _survey_of_proportions,
    ),
)
register_emission(
    "multivariate gaussian",
    _Kind(
        lambda distribution, *_: isinstance(distribution, MultivariateNormal), _gaussian, _numbers, _survey_of_normal
    ),
)
register_emission(
    "mixture",
    _Kind(
        lambda distribution, *_: isinstance(distribution, MixtureDistribution),
        _mixture,
        _variables_of_components,
        _survey_of_components,
    ),
)
# Read into memory wherever the rows are: how far the columns reach must be known.
register_emission(
    "regression",
    _Kind(
        lambda distribution, *_: isinstance(distribution, GLM), regression_emission, lambda *_: None, _survey_of_each
    ),
)
