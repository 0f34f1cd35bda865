"""Generalised linear models: the mean of a response follows, through a link, from a linear predictor."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Variable
from suffice.engines.workers import with_one_blas_thread
from suffice.errors import FileFormatError, NotFittedError, OptionError, listing
from suffice.families.base import Distribution
from suffice.fitting.control import Control
from suffice.fitting.report import Report
from suffice.fitting.template import TemplateEstimator
from suffice.models.glm.checkpoint import Keeper
from suffice.models.glm.design import Design
from suffice.models.glm.families import FAMILIES, Family
from suffice.models.glm.figures import Wishes
from suffice.models.glm.fit import Fitter
from suffice.models.glm.formula import specification_from_plain, specification_to_plain
from suffice.models.glm.input import Coding
from suffice.models.glm.laws import family_of
from suffice.models.glm.learned import Learned, learned_one
from suffice.models.glm.links import Link
from suffice.models.glm.moments import Later, later
from suffice.models.glm.online import online_update
from suffice.models.glm.priors import Penalties, read_prior
from suffice.models.glm.problem import average
from suffice.models.glm.reading import Reading
from suffice.models.glm.rows import Asked, Kind, Read, read_rows
from suffice.models.glm.vector_registry import VECTOR_FAMILIES
from suffice.options import own_options
from suffice.statistics import Summary

Floats = NDArray[np.float64]

_LAWS = {
    "Normal": "gaussian",
    "Bernoulli": "binomial",
    "Poisson": "poisson",
    "Gamma": "gamma",
    "Exponential": "gamma",
    "NegativeBinomial": "negative_binomial",
    "Geometric": "negative_binomial",
    "Categorical": "multinomial",
    "MultivariateNormal": "multivariate_gaussian",
}
_OTHER_NAMES = {
    "normal": "gaussian",
    "bernoulli": "binomial",
    "logistic": "binomial",
    "categorical": "multinomial",
    "softmax": "multinomial",
    "ordered": "ordinal",
    "cumulative": "ordinal",
    "proportional_odds": "ordinal",
    "multivariate_normal": "multivariate_gaussian",
    "inversegaussian": "inverse_gaussian",
    "negativebinomial": "negative_binomial",
}


class GLM(Reading, TemplateEstimator):  # type: ignore[misc]
    """A generalised linear model: ``E[y | x] = f(intercept + x' coefficients + offset)``, f the inverse of the link.

    Args:
        family: a law (``Poisson()``, ``Normal()``, ``Bernoulli()``, ``Gamma()``, ``NegativeBinomial(size=...)``,
            ``Categorical()`` for the softmax, ``MultivariateNormal()`` for vectors) or a name: "gaussian", "binomial",
            "poisson", "gamma", "inverse_gaussian", "negative_binomial", "multinomial", "multivariate_gaussian",
            "ordinal" (ordered labels, ``P(y <= k) = F(threshold_k - x' coefficients)``). The size of a negative
            binomial law is estimated unless it is given.
        link: "identity", "log", "logit", "probit", "cloglog", "loglog", "inverse", "inverse_square", "sqrt"; canonical
            (for the negative binomial log, for ordered labels logit) unless said.
        fit_intercept: whether there is an intercept.
        prior: on the coefficients, taken off the SUM of the log-likelihood: ``Normal(variance=...)`` (ridge),
            ``MultivariateNormal(mean, covariance)``, ``Laplace(scale=...)`` (lasso), both in a tuple (elastic net) or,
            for a Gaussian response, ``NormalInverseGamma`` or ``LinearGaussianPrior`` with an exact posterior.
        penalize_intercept: whether the prior speaks of the intercept too.
        solver: "auto", "irls", "lbfgs", "cg", "newton-cg", "sgd", "cd".
        dispersion: "pearson" (default), "ml", or the number where it is known; for laws that have one.
        covariance: of the coefficients: from the "expected" or the "observed" information (of ordered labels always
            the latter), or the "robust" sandwich.
        categorical: names of columns that are factors although they hold numbers, or a dict of their levels in order.
        unknown: what a level never seen does when predicting: "raise", or "pool" for the average effect.
        collinear: what a column that is a combination of others does: "raise" or "drop".
        reference: the class whose linear predictor is 0 in a multinomial model; the last unless said.
        states: labels of the response in their order: (failure, success), or from the lowest to the highest.
        formula: read by formulaic, e.g. ``"y ~ a + C(b)"``.
        start: coefficients to start from, intercept first.
        keep_iterates: keep every iterate of IRLS in `iterates_`, and start from zero.
        step_size: of `partial_fit`: a number, or a function of the number of the update.
        decay: exponent with which a constant `step_size` falls, from 0 to 1.
        batch_size: rows of one update of `partial_fit`.
        random_state: seed of the order of rows in solver="sgd".
        max_iter: most iterations.
        tolerance: on the Newton decrement, in standard errors (other solvers: on the largest scaled slope).
        max_seconds: most seconds.
        progress: show a bar.
        callback: called with the state after each iteration; True stops the fit.
        checkpoint: file from which an interrupted fit goes on.

    >>> import numpy as np
    >>> model = GLM("poisson").fit(np.array([[0.0], [0.0], [1.0], [1.0]]), [1, 3, 4, 4])
    >>> round(float(np.exp(model.intercept_)), 6), round(model.coefficients_["x0"], 6)
    (2.0, 0.693147)
    """

    def __init__(
        self,
        family: Any = "gaussian",
        *,
        link: str | None = None,
        fit_intercept: bool = True,
        prior: Any = None,
        penalize_intercept: bool = False,
        solver: str = "auto",
        dispersion: Any = "pearson",
        covariance: str = "expected",
        categorical: Any = None,
        unknown: str = "raise",
        collinear: str = "raise",
        reference: Any = None,
        states: Any = None,
        formula: str | None = None,
        start: Any = None,
        keep_iterates: bool = False,
        step_size: Any = 0.01,
        decay: float = 0.0,
        batch_size: int = 1,
        random_state: Any = None,
        max_iter: int = 100,
        tolerance: float = 1e-8,
        max_seconds: float | None = None,
        progress: bool = False,
        callback: Any = None,
        checkpoint: Any = None,
    ) -> None:
        """See the class."""
        super().__init__(**own_options(locals()))
        self._law_name()
        for name, allowed in _CHOICES.items():
            if self._options[name] not in allowed:
                raise OptionError(f"{name} is {self._options[name]!r}; expected one of {listing(allowed)}.")
        if not isinstance(fit_intercept, bool):
            raise OptionError(f"fit_intercept is {fit_intercept!r}; expected True or False.")
        if states is not None:
            self._check_states()
        known = isinstance(dispersion, int | float | np.number) and not isinstance(dispersion, bool) and dispersion > 0
        if dispersion not in ("pearson", "ml") and not known:
            raise OptionError(f"dispersion is {dispersion!r}; expected 'pearson', 'ml' or a positive number.")

    # -- the law -----------------------------------------------------------------------------------------------------

    def _law_name(self) -> str:
        """The name of the family."""
        family = self._options["family"]
        if isinstance(family, Distribution):
            name = _LAWS.get(type(family).__name__)
            if name is None:
                raise OptionError(f"family is {family!r}; responses follow {listing(_LAWS)}.")
            return name
        if not isinstance(family, str):
            raise OptionError(f"family is {family!r}; expected a law such as Poisson(), or a name.")
        name = family.lower().replace("-", "_").replace(" ", "_")
        name = _OTHER_NAMES.get(name, name)
        if name not in (*FAMILIES, *VECTOR_FAMILIES):
            raise OptionError(
                f"family is {family!r}; expected a law, or one of {listing((*FAMILIES, *VECTOR_FAMILIES), most=20)}."
            )
        return name

    def _check_states(self) -> None:
        """The states belong to labels, and are said once."""
        family, states = self._options["family"], self._options["states"]
        if self._law_name() not in ("binomial", "multinomial", "ordinal"):
            raise OptionError(f"states= belongs to families of labels; the {self._law_name()} family has none.")
        if isinstance(family, Distribution) and family._options.get("states") is not None:
            raise OptionError(f"The states are given twice, in {family!r} and in states=; give one of them.")
        Variable.discrete("y", states)

    def _law_option(self, name: str) -> Any:
        """An option of the law; the states may be given to the model instead."""
        family = self._options["family"]
        own = family._options.get(name) if isinstance(family, Distribution) else None
        return self._options["states"] if own is None and name == "states" else own

    def _family(self) -> tuple[Family, Link]:
        name = self._law_name()
        size = 1.0 if type(self._options["family"]).__name__ == "Geometric" else self._law_option("size")
        return family_of(name, self._options["link"], size)

    def _known_dispersion(self) -> Any:
        """The number where the dispersion is known, else how it is estimated."""
        if type(self._options["family"]).__name__ == "Exponential":
            return 1.0
        return self._options["dispersion"]

    def _kind(self) -> Kind:
        name = self._law_name()
        if name in VECTOR_FAMILIES:
            return VECTOR_FAMILIES[name].kind(self)
        family, link = self._family()
        if name == "binomial":
            return Kind("shares", self._law_option("states"), None, link.name)
        return Kind("numbers", None, family, link.name)

    # -- fitting -----------------------------------------------------------------------------------------------------

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        exposure: Any = None,
        trials: Any = None,
        columns: Any = None,
    ) -> Self:
        """Learn the coefficients.

        Args:
            X: an array, a sparse matrix, any table, or the path of a file, which is then read once for each iteration.
            y: the response: one value a row, (successes, failures) in two columns, or the name of a column of X.
            sample_weight: how many rows each row stands for, or the name of a column.
            offset: added to the linear predictor, or the name of a column.
            exposure: multiplies the mean (log link), or the name of a column.
            trials: of each row, where y is the number of successes.
            columns: names for the columns of an array, or the explanatory columns of a table.

        Returns:
            self
        """
        asked = Asked(y, sample_weight, offset, exposure, trials, columns)
        if self._law_name() == "gaussian" and _is_wide(y):
            self._take(self._as_vectors().fit(X, y, sample_weight, offset=offset, exposure=exposure, columns=columns))
            return self
        coding = Coding.of(self._options["fit_intercept"], self._options["categorical"])
        read = read_rows(X, asked, self._kind(), coding, self._options["formula"])
        # The products of a fit are many and small: threads inside each would wait for one another.
        fitted = self._accept(with_one_blas_thread(lambda: self._kept(read)), read)
        fitted.__dict__["_response"] = y if isinstance(y, str) else None
        return fitted

    @property
    def response_(self) -> str | None:
        """The column of the response, where it was given by name or by a formula."""
        formula = self._options["formula"]
        side = None if formula is None else str(formula).partition("~")[0].strip()
        return side if side and side.isidentifier() else self.__dict__.get("_response")

    def _as_vectors(self) -> GLM:
        return type(self)(**{**self._options, "family": "multivariate_gaussian"})

    def _take(self, fitted: GLM) -> None:
        """Take over what another model has learned, with the options of this one."""
        options = self._options
        self.__dict__.clear()
        self.__dict__.update({**fitted.__dict__, "_options": options})

    def _kept(self, read: Read) -> Learned:
        """What a fit learns, from its checkpoint on where there is one."""
        wishes = self._wishes()
        if self._options["checkpoint"] is None:
            return self._learned(read, wishes)
        sums = average(read.rows)
        options = {name: repr(value) for name, value in self._options.items() if name not in _ANY_TIME}
        seen = [read.given, sums.weight, np.asarray(sums.total).tolist()]
        keeper = Keeper(self._options["checkpoint"], read.parameters, options, seen)
        found = keeper.start()
        learned = self._learned(read, replace(wishes, keeper=keeper, start=wishes.start if found is None else found))
        assert learned.outcome is not None
        keeper.close(learned.outcome.converged)
        return learned

    def _control(self) -> Control:
        return replace(super()._control(), checkpoint=None)

    def _learned(self, read: Read, wishes: Wishes) -> Learned:
        name = self._law_name()
        if name in VECTOR_FAMILIES:
            return VECTOR_FAMILIES[name].learn(self, read, wishes)
        family, link = self._family()
        penalties = self._penalties(read.design, 1)
        one = Fitter(read.rows, read.design, family, link, penalties, wishes, self._control()).fit()
        return learned_one(read, one, link, penalties, covariance=self._options["covariance"])

    def _penalties(self, design: Design, outputs: int) -> Penalties:
        options = self._options
        return read_prior(options["prior"], design, penalize_intercept=options["penalize_intercept"], outputs=outputs)

    def _wishes(self) -> Wishes:
        options = self._options
        free = self._law_name() == "negative_binomial" and self._law_option("size") is None
        free = free and type(options["family"]).__name__ != "Geometric"
        return Wishes(
            options["solver"],
            self._known_dispersion(),
            options["collinear"],
            options["start"],
            options["keep_iterates"],
            free,
            options["random_state"],
        )

    def _accept(self, learned: Learned, read: Read) -> Self:
        fresh = copy.copy(self)
        fresh.__dict__.update({"_options": dict(self._options), "_learned_state": learned})
        fresh.__dict__["_specification"] = read.specification
        fresh.__dict__["_pairs"] = later(fresh, read, learned)
        fresh.summary_ = Summary(read.design.domain(), {}, read.given, read.weight)
        fresh.report_ = fresh._receipt(learned, read)
        self.__dict__.clear()
        self.__dict__.update(fresh.__dict__)
        return self

    def _receipt(self, learned: Learned, read: Read) -> Report:
        outcome = learned.outcome
        assert outcome is not None
        return Report(
            model=f"GLM, {learned.family}, {learned.link} link",
            rows=read.given,
            weight=read.weight,
            passes=read.rows.passes,
            method=learned.method,
            estimate="maximum likelihood" if self._options["prior"] is None else "posterior mode",
            log_likelihood=learned.log_likelihood,
            objective=learned.objective,
            n_params=learned.n_params,
            certificate=learned.certificate,
            converged=outcome.converged,
            iterations=outcome.state.iteration,
            history=outcome.history,
            stop_reason=outcome.stop_reason,
            warnings=learned.warnings,
        )

    def partial_fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        exposure: Any = None,
        columns: Any = None,
    ) -> Self:
        """Go through the rows once, in their order: ``theta += step (y - mean) x`` for each (least mean squares).

        A prior enters with one over the number of rows of this call for each row. The first call begins at `start`, or
        at zero. `updates_` counts the updates so far, which is what schedules of `step_size` see.
        """
        asked = Asked(y, sample_weight, offset, exposure, None, columns)
        coding = Coding.of(self._options["fit_intercept"], self._options["categorical"])
        if self._law_name() in VECTOR_FAMILIES:
            raise OptionError("partial_fit takes one linear predictor; use fit, with solver='sgd' for a softmax.")
        read = read_rows(X, asked, self._kind(), coding, self._options["formula"])
        before: Learned | None = self.__dict__.get("_learned_state")
        family, link = self._family()
        options = {**self._options, "dispersion": self._known_dispersion()}
        found = online_update(read, family, link, self._penalties(read.design, 1), options, before)
        return self._accept(found, read)

    def unlearn(self, data: Any, sample_weight: Any = None, *, columns: Any = None) -> Self:
        """Not offered: the rows of an iterative fit cannot be taken out again."""
        raise OptionError("A GLM has no finite statistics to take rows out of; fit it again without them.")

    # -- state -------------------------------------------------------------------------------------------------------

    @property
    def _learned_result(self) -> Learned:
        found: Learned | None = self.__dict__.get("_learned_state")
        if found is None:
            raise NotFittedError("This GLM has learned nothing yet. Call fit first.")
        return found

    @property
    def n_params_(self) -> int:
        """Coefficients that are free, and a dispersion or a size of a negative binomial law that is estimated."""
        return self._learned_result.n_params

    def _fitted_state(self) -> dict[str, Any]:
        specification = self.__dict__.get("_specification")
        plain = None if specification is None else specification_to_plain(specification)
        pairs: Later | None = self.__dict__.get("_pairs")
        moments = None if pairs is None else pairs.to_plain()
        return {
            **self._learned_result.to_plain(),
            "specification": plain,
            "moments": moments,
            "response": self.response_,
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        learned = {name: value for name, value in state.items() if name not in ("specification", "moments", "response")}
        plain = state.get("specification")
        self.__dict__["_learned_state"] = Learned.from_plain(learned)
        self.__dict__["_pairs"] = Later.from_plain(state.get("moments"), self._learned_state.values.shape)
        self.__dict__["_specification"] = None if plain is None else specification_from_plain(plain)
        self.__dict__["_response"] = state.get("response")
        formula, family = self._options["formula"], self._learned_state.family
        if (formula is None) != (plain is None) or family != self._law_name():
            raise FileFormatError(
                f"The file holds a fit of the family {family!r}, and options for {self._law_name()!r} and the formula "
                f"{formula!r}."
            )
        if not isinstance(self._response, str | None):
            raise FileFormatError(f"The response is {self._response!r}; expected the name of a column.")


#: Options that do not change what is fitted.
_ANY_TIME = {"callback", "progress", "checkpoint", "max_iter", "max_seconds", "tolerance", "start"}
_CHOICES: dict[str, tuple[Any, ...]] = {
    "covariance": ("expected", "observed", "robust"),
    "unknown": ("raise", "pool"),
    "collinear": ("raise", "drop"),
    "solver": ("auto", "irls", "newton", "lbfgs", "cg", "newton-cg", "sgd", "cd"),
}


def _is_wide(y: Any) -> bool:
    return hasattr(y, "shape") and len(y.shape) == 2 and y.shape[1] > 1
