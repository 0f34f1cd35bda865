"""The face of an exponential family: options in the constructor, and the questions that its members answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import update_wrapper
from operator import methodcaller
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.attributes import Read, computed, read_parameters, reads
from suffice.errors import OptionError, listing
from suffice.families.base import Distribution
from suffice.families.fitted import FamilyFitted
from suffice.families.member import FamilyMember
from suffice.families.task import FamilyTask
from suffice.fitting.driver import Fit
from suffice.options import NewtonOptions

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait

P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M", bound=FamilyMember)


def answered_by(method: Callable[Concatenate[M, P], R]) -> Callable[Concatenate[ExponentialFamily, P], R]:
    """The method of a family that asks its member, with the signature and the words of the member's own method."""

    def ask(family: ExponentialFamily, /, *args: P.args, **options: P.kwargs) -> R:
        answer: R = methodcaller(method.__name__, *args, **options)(family._member)
        return answer

    return update_wrapper(ask, method)


#: Options that say how a distribution is learned.
OF_FITS = frozenset({"prior", "estimate", *NewtonOptions.__annotations__})


def given_parameters(family: ExponentialFamily) -> dict[str, Any] | None:
    """The parameters, where all are known; options that say how they are learned then have no effect, which is said."""
    given: dict[str, Any] | None = family._family.given()
    fitting = family._changed().keys() & OF_FITS
    if given is not None and fitting and given.keys() <= family._family.known.keys():
        named, parameters = listing([f"{name}=" for name in sorted(fitting)]), " and ".join(family.parameter_names)
        raise OptionError(
            f"{named} would have no effect: {parameters} of the {type(family).__name__} are given, so there is nothing "
            "to fit. Leave it out, or leave out what is to be learned."
        )
    return given


def _standard_errors(family: ExponentialFamily) -> dict[str, Any]:
    """Standard errors of the parameters that were learned, by name: from the information of the rows."""
    from suffice.families.estimates import standard_errors_of

    return standard_errors_of(family)


class ExponentialFamily(Distribution):
    """Base of the exponential families: the formulas are those of `member_class`, a subclass of `FamilyMember`."""

    member_class: ClassVar[type[FamilyMember]]
    #: Names of the components of T.
    statistic_names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """Take over the names of the members."""
        super().__init_subclass__(**options)
        if "member_class" in vars(cls):
            cls.parameter_names = cls.member_class.parameter_names
            cls.statistic_names = cls.member_class.statistic_names
            read_parameters(cls, cls.parameter_names)

    def _settle(self) -> None:
        if (given := given_parameters(self)) is not None:
            self._adopt(Fit(FamilyFitted(self._family.at(given))))

    @property
    def _family(self) -> Any:
        """The family that the options declare."""
        names = (*self.member_class.parameter_names, *self.member_class.constant_names)
        known = {name: self._options[name] for name in names if self._options.get(name) is not None}
        return self.member_class(type(self).__name__, known)

    @property
    def _member(self) -> Any:
        """The member that was given or learned; before a fit the family itself."""
        return self._family if self._fit is None else self._fit.fitted.member

    n_params_: Read[int] = reads("fitted_.n_params", "Number of free parameters.")

    @property
    def parameters_(self) -> dict[str, Any]:
        """The usual parameters by name."""
        return dict(self._member.parameters_)

    def portrait(self) -> Portrait:
        """What there is to see of it: what pages, plots and notebooks show."""
        from suffice.families.portrait import exponential_portrait

        return exponential_portrait(self, self._member)

    # -- what members answer -----------------------------------------------------------------------------------------

    sufficient_statistics = answered_by(FamilyMember.sufficient_statistics)
    log_base_measure = answered_by(FamilyMember.log_base_measure)
    log_normalizer = answered_by(FamilyMember.log_normalizer)
    expected_statistics = answered_by(FamilyMember.expected_statistics)
    statistics_covariance = answered_by(FamilyMember.statistics_covariance)
    cumulants = answered_by(FamilyMember.cumulants)
    log_prob = answered_by(FamilyMember.log_prob)
    score_samples = answered_by(FamilyMember.score_samples)
    sample = answered_by(FamilyMember.sample)
    entropy = answered_by(FamilyMember.entropy)

    def prob(self, x: Any) -> Floats:
        """Density or probability of each value."""
        return np.exp(self.log_prob(x))

    def kl_divergence(self, other: ExponentialFamily) -> float:
        """KL(self || other) in nats, without the cancellation of the general formula where the family has its own."""
        if type(other) is not type(self):
            raise OptionError(
                f"KL is between two members of one family, not {type(self).__name__} and {type(other).__name__}. "
                f"Give another {type(self).__name__}."
            )
        return float(self._member.divergence(other._member))

    @property
    def natural_parameters_(self) -> Floats:
        """Eta (k,)."""
        return np.asarray(self._member.natural_parameters())

    @property
    def mean_parameters_(self) -> Floats:
        """E[T] (k,)."""
        return self.expected_statistics()

    def with_natural_parameters(self, eta: ArrayLike) -> Self:
        """The distribution of this family that has the given natural parameters."""
        return self._with(self._member.from_natural(self._member.coordinates(eta, "eta")))

    def with_mean_parameters(self, mean: ArrayLike) -> Self:
        """The distribution of this family that has the given expected statistics."""
        return self._with(self._member.from_mean(self._member.coordinates(mean, "mean")))

    def _with(self, parameters: Mapping[str, Any]) -> Self:
        """The same distribution with these parameters given."""
        constants = {n: self._options[n] for n in self.member_class.constant_names}
        return type(self)(**{**constants, **parameters})

    # -- fitting -----------------------------------------------------------------------------------------------------

    def _task(self) -> FamilyTask:
        return FamilyTask(self._options, self._family)

    def _posterior(self) -> Any:
        """The conjugate posterior, itself a distribution over the parameters."""
        posterior = None if self._fit is None else self._fit.fitted.posterior
        if posterior is None:
            raise OptionError(
                f"This {type(self).__name__} was not fitted with a prior, so it has no posterior_. Give prior=."
            )
        return posterior

    def _predictive(self) -> Any:
        """The posterior predictive distribution of one more row."""
        return self._member.predictive(self.posterior_)

    # A family with one conjugate prior declares which distributions these are.
    posterior_: Read[Any] = computed(_posterior)
    predictive_: Read[Any] = computed(_predictive)
    standard_errors_: Read[dict[str, Any]] = computed(_standard_errors)

    @property
    def log_evidence_(self) -> float:
        """Log marginal likelihood of the rows under the prior."""
        value = self.report_.log_evidence
        if value is None:
            raise OptionError("There is no evidence without a prior. Give prior=.")
        return value

    def credible_intervals(self, level: float = 0.95) -> dict[str, Any]:
        """Central posterior intervals of the parameters, by name."""
        ends = self.posterior_.intervals(level)
        free = [name for name in self.parameter_names if name not in self._member.known]
        return ends if isinstance(ends, dict) else {free[0]: ends}

    # -- files -------------------------------------------------------------------------------------------------------

    def _fitted_from(self, plain: Mapping[str, Any]) -> FamilyFitted:
        return FamilyFitted.from_dict(self._family, plain)

    def to_dict(self) -> dict[str, Any]:
        """As plain data: parameters that are given are options, and are not written twice."""
        plain = super().to_dict()
        return plain if self._bare_report() is not None else plain | {"fitted": None}
