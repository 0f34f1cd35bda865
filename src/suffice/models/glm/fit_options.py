"""The options of a generalised linear model, as its fit needs them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from suffice.checks import byte_count, choice, is_number, truth
from suffice.choices import Collinear, Dispersion, MissingRows, UnknownLevel, choices
from suffice.domain import Variable
from suffice.errors import FileFormatError, OptionError, shortened
from suffice.fitting.control import LIMITS
from suffice.fitting.report import QUASI
from suffice.models.glm.design import Design
from suffice.models.glm.error_kinds import checked_kind
from suffice.models.glm.family import Family, ResponseFamily
from suffice.models.glm.links import Link
from suffice.models.glm.priors import CoefficientPenalties, is_conjugate, read_prior
from suffice.models.glm.registry import FAMILIES, declared, link_of
from suffice.models.glm.solve import check_name

CHOICES: dict[str, tuple[Any, ...]] = {
    "unknown": choices(UnknownLevel),
    "collinear": choices(Collinear),
    "missing": choices(MissingRows),
}
#: Options that do not change what is fitted.
ANY_TIME = LIMITS | {"start"}


@dataclass(frozen=True, eq=False)
class FitOptions:
    """The options with what follows from the family.

    `dispersion` is a number where it is known, else how it is estimated ("pearson", "ml"); `size` is that of a negative
    binomial response, None where it is estimated; `states` are the labels of the response where they are declared.
    """

    given: Mapping[str, Any]
    family: ResponseFamily
    link: Link
    states: tuple[Hashable, ...] | None
    dispersion: Any
    size: float | None

    @classmethod
    def of(cls, given: Mapping[str, Any], family: ResponseFamily | None = None) -> FitOptions:
        """From the options of a model; options that do not belong to its family are an error.

        family: in place of the one that the options name.
        """
        known = declared(given["family"])
        chosen = known.family if family is None else family
        link = link_of(chosen, given["link"])
        chosen.check_options(given)
        check_effects(given, chosen, known.dispersion)
        states = given["states"] if known.states is None else known.states
        dispersion = next(one for one in (known.dispersion, given["dispersion"], "pearson") if one is not None)
        return cls(given, chosen, link, states, dispersion, known.size)

    # -- the response ------------------------------------------------------------------------------------------------

    @property
    def one_family(self) -> Family:
        """The family of one linear predictor, at its size."""
        assert isinstance(self.family, Family)
        return self.family.sized(self.size)

    @property
    def free_size(self) -> bool:
        """Whether the size of a negative binomial response is estimated."""
        return self.family is FAMILIES["negative_binomial"] and self.size is None

    @property
    def known_dispersion(self) -> float | None:
        """The dispersion where it is a number that is given."""
        return float(self.dispersion) if is_number(self.dispersion) else None

    # -- the fit -----------------------------------------------------------------------------------------------------

    @property
    def estimate(self) -> str:
        """What is aimed at."""
        if not self.family.has_likelihood:
            return QUASI if self.given["prior"] is None else f"penalised {QUASI}"
        return "maximum likelihood" if self.given["prior"] is None else "MAP"

    def penalties(self, design: Design, outputs: int = 1) -> CoefficientPenalties:
        """What the prior takes off the log-likelihood."""
        return read_prior(
            self.given["prior"], design, penalize_intercept=self.given["penalize_intercept"], outputs=outputs
        )

    def with_start(self, start: Any) -> FitOptions:
        """The same with coefficients to start from."""
        return self if start is None else replace(self, given={**self.given, "start": start})

    def of_likelihood(self) -> FitOptions:
        """Those of maximum likelihood by the solver that "auto" stands for."""
        plain = {"prior": None, "solver": "auto", "start": None, "keep_iterates": False, "collinear": "raise"}
        return replace(self, given={**self.given, **plain, "covariance": "expected"})


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse options that make no sense, whatever the data."""
    known, states, dispersion = declared(options["family"]), options["states"], options["dispersion"]
    for name, allowed in CHOICES.items():
        choice(options[name], name, allowed)
    checked_kind(options["covariance"])
    check_name(options["solver"])
    if not (options["formula"] is None or isinstance(options["formula"], str)):
        raise OptionError(f"formula is {options['formula']!r}; expected a text such as 'y ~ x + z', or None.")
    if options["memory_limit"] is not None:
        byte_count(options["memory_limit"], "memory_limit")
    truth(options["fit_intercept"], "fit_intercept")
    if states is not None:
        if not known.family.labels:
            raise OptionError(
                f"states= belongs to families of labels; the {known.family.name} family has none. Leave it out."
            )
        if known.states is not None:
            raise OptionError(f"The states are given twice, in {options['family']!r} and in states=; give one of them.")
        Variable.discrete("y", states)
    known_way = dispersion is None or (isinstance(dispersion, str) and dispersion in choices(Dispersion))
    if not known_way and not (is_number(dispersion) and dispersion > 0):
        raise OptionError(f"dispersion is {shortened(dispersion)}; expected 'pearson', 'ml' or a positive number.")
    check_effects(options, known.family, known.dispersion)


def check_effects(options: Mapping[str, Any], family: ResponseFamily, known: float | None) -> None:
    """Refuse options that would change nothing; known: the dispersion that a distribution fixes."""
    dispersion, solver = options["dispersion"], options["solver"]
    fixed = known if family.free_dispersion else 1.0
    if fixed is not None and dispersion not in (None, fixed):
        larger = ", or the negative binomial family" if family.name == "poisson" else ""
        raise OptionError(
            f"dispersion is {dispersion!r}, and it is {fixed:g} for this distribution of the response "
            f"({family.name}). Leave dispersion= out; where the spread is larger use covariance='robust'{larger}."
        )
    if not family.has_likelihood:
        if dispersion == "ml":
            raise OptionError(
                f"dispersion='ml': the {family.name} family has no likelihood. Use 'pearson' or a number."
            )
        if options["prior"] is not None and not is_number(dispersion):
            raise OptionError(
                f"A prior weighs against a likelihood, and the {family.name} family has none unless its dispersion is "
                "known: give dispersion= a number, or leave prior= out."
            )
    if fixed is None and is_conjugate(options["prior"]) and dispersion is not None:
        raise OptionError(
            f"dispersion={dispersion!r} has no effect: the conjugate prior {options['prior']!r} speaks of the variance "
            "itself. Leave dispersion= out, or give a prior on the coefficients alone, as Normal(variance=10)."
        )
    if fixed is None and options["prior"] is not None and dispersion == "pearson":
        raise OptionError(
            "dispersion='pearson' has no effect with a prior: the dispersion is then found together with the "
            "coefficients, by their joint mode. Leave dispersion= out, or give a number."
        )
    if options["penalize_intercept"] and options["prior"] is None:
        raise OptionError("penalize_intercept=True changes nothing without a prior; give prior=, or leave it out.")
    if options["penalize_intercept"] and not options["fit_intercept"]:
        raise OptionError("penalize_intercept=True changes nothing where fit_intercept=False; leave one of them out.")
    if options["formula"] is not None and options["unknown"] != "raise":
        raise OptionError(
            f"unknown={options['unknown']!r} has no effect with a formula, whose terms have no average effect; leave "
            "one of them out, or name the factors by categorical=."
        )
    if options["formula"] is not None and options["categorical"] is not None:
        raise OptionError("categorical= has no effect with a formula; write C(column) in the formula.")
    if options["formula"] is not None and isinstance(options["reference"], Mapping):
        raise OptionError(
            "reference= by column has no effect with a formula; write C(column, contr.treatment('level')) there."
        )
    if options["keep_iterates"] and solver not in ("auto", "irls"):
        raise OptionError(f"keep_iterates=True keeps those of IRLS; the solver is {solver!r}. Set solver='irls'.")
    if callable(options["step_size"]) and options["decay"]:
        raise OptionError(
            "decay= lets a constant step_size fall, and step_size is a function; leave decay= out, or put it there."
        )


def check_pooled(options: Mapping[str, Any], design: Design) -> None:
    """Refuse an average effect where no column has levels."""
    if options["unknown"] != "raise" and not design.factors:
        raise OptionError(
            f"unknown={options['unknown']!r} has no effect: no explanatory column holds levels. Leave it out, or name "
            "columns of numbers that are levels by categorical=."
        )


def check_fitted(options: Mapping[str, Any], family: str, specification: object) -> None:
    """Refuse what a file has learned where it does not belong to its options."""
    wanted, formula = declared(options["family"]).family.name, options["formula"]
    alike = family == wanted or (wanted, family) == ("gaussian", "multivariate_gaussian")
    if (formula is None) != (specification is None) or not alike:
        raise FileFormatError(
            f"The file holds a fit of the family {family!r}, and options for {wanted!r} and the formula {formula!r}."
        )
