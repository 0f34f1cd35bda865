"""Generalised linear models: the mean of a response follows, through a link, from a linear predictor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.attributes import Read, computed, reads
from suffice.choices import (
    Collinear,
    Covariance,
    Dispersion,
    FamilyName,
    LinkName,
    MissingRows,
    Predicted,
    Registered,
    RegressionSolverName,
    Residual,
    UnknownLevel,
)
from suffice.engines.workers import with_one_blas_thread
from suffice.errors import NotFittedError, OptionError, shortened
from suffice.families.base import Distribution, generator, take_states
from suffice.fitting.contract import Inputs, Judgement
from suffice.fitting.driver import Fit, run
from suffice.fitting.estimator import ResponseEstimator, delegated_property
from suffice.fitting.hypotheses import HypothesisTest, wald_test
from suffice.fitting.named import NamedVector
from suffice.fitting.portrait import Portrait
from suffice.fitting.report import MatchedStatistics, Report
from suffice.fitting.sklearn_face import Offered, named_causes, needs_response, remember, weights_of
from suffice.models.glm import effects, goodness, influence, predictive, ratios, robust, roles, rowwise, terms
from suffice.models.glm.error_kinds import Clustered, NeweyWest
from suffice.models.glm.family import ResponseFamily
from suffice.models.glm.fit_options import FitOptions, check_fitted, check_options
from suffice.models.glm.fitted import GLMFitted
from suffice.models.glm.input import RowOptions
from suffice.models.glm.matched import MatchedRows
from suffice.models.glm.missing import complete_rows, noted
from suffice.models.glm.quantile_residuals import residual_figure
from suffice.models.glm.results import (
    CoefficientPosterior,
    degrees_of_freedom,
    intervals_of,
    likelihood_ratio,
    posterior_of,
)
from suffice.models.glm.task import GLMTask
from suffice.options import RunOptions, own_options
from suffice.statistics import Summary


class GLM(ResponseEstimator):
    """A generalised linear model: ``E[y | x] = f(intercept + x' coefficients + offset)``, f the inverse of the link.

    Args:
        family: a distribution (``Poisson()``, ``Normal()``, ``Bernoulli()``, ``Gamma()``,
            ``NegativeBinomial(size=...)``, ``Categorical()`` for the softmax, ``MultivariateNormal()`` for vectors) or
            a name: "gaussian", "binomial", "poisson", "gamma", "inverse_gaussian", "negative_binomial", "quasipoisson",
            "quasibinomial", "multinomial", "multivariate_gaussian", "ordinal" (ordered labels,
            ``P(y <= k) = F(threshold_k - x' coefficients)``). The size of a negative binomial distribution is estimated
            unless it is given. Other exponential families of one natural parameter have the natural link.
        link: "identity", "log", "logit", "probit", "cloglog", "loglog", "inverse", "inverse_square", "sqrt"; canonical
            (for the negative binomial log, for ordered labels logit) unless said.
        fit_intercept: whether there is an intercept.
        prior: on the coefficients, taken off the SUM of the log-likelihood: ``Normal(variance=...)`` (ridge),
            ``MultivariateNormal(mean, covariance)``, ``Laplace(scale=...)`` (lasso), both in a tuple (elastic net) or,
            for a Gaussian response, ``NormalInverseGamma`` or ``LinearGaussianPrior`` with an exact posterior.
        penalize_intercept: whether the prior speaks of the intercept too.
        solver: "auto", "irls", "lbfgs", "cg", "newton-cg", "sgd", "cd", or another that is registered
            (`suffice.extend.register_solver`).
        dispersion: "pearson" (what None stands for without a prior; with one, "ml"), "ml", or the number where it is
            known; for distributions that have one.
        covariance: of the coefficients: from the "expected" or the "observed" information (of ordered labels always
            the latter), the "robust" sandwich ("HC0"), "HC1", "HC2", "HC3", `Clustered(groups)` or `NeweyWest(lags)`.
        categorical: names of columns that are factors although they hold numbers, or a dict of their levels in order.
        unknown: what a level never seen does when predicting: "raise" or, without a formula, "pool" (average effect).
        collinear: what a column that is a combination of others does: "raise" or "drop".
        missing: what a row in memory without a value of some column does: "raise", or "drop", which a warning counts.
        reference: the class whose linear predictor is 0 in a multinomial model, the last unless said; or the reference
            levels of factors by column, ``{"dose": "none"}``, each the first level unless said.
        states: labels of the response in their order: (failure, success), or from the lowest to the highest.
        formula: read by formulaic, e.g. ``"y ~ a + C(b)"``.
        start: coefficients to start from, intercept first, or by name.
        keep_iterates: keep every iterate of IRLS in `iterates_`, and start from zero.
        step_size: of `partial_fit`: a number, or a function of the number of the update.
        decay: exponent with which a constant `step_size` falls, from 0 to 1.
        batch_size: rows of one update of `partial_fit`.
        random_state: seed of the order of rows in solver="sgd".
        max_iter: most iterations.
        tolerance: on the Newton decrement, in standard errors (other solvers: on the largest scaled slope).
        memory_limit: most bytes of prepared rows that are read from files, or a text such as "2GB"; beyond it they are
            kept in a scratch folder. Half of the memory that is free by default.
        run: see `RunOptions`.

    >>> import numpy as np
    >>> model = GLM("poisson").fit(np.array([[0.0], [0.0], [1.0], [1.0]]), [1, 3, 4, 4])
    >>> round(float(np.exp(model.intercept_)), 6), round(model.coefficients_["x0"], 6)
    (2.0, 0.693147)
    """

    fitted_: GLMFitted

    def __init__(
        self,
        family: FamilyName | Registered | Distribution | ResponseFamily = "gaussian",
        *,
        link: LinkName | None = None,
        fit_intercept: bool = True,
        prior: Any = None,
        penalize_intercept: bool = False,
        solver: RegressionSolverName | Registered = "auto",
        dispersion: Dispersion | float | None = None,
        covariance: Covariance | Clustered | NeweyWest = "expected",
        categorical: Any = None,
        unknown: UnknownLevel = "raise",
        collinear: Collinear = "raise",
        missing: MissingRows = "raise",
        reference: Any = None,
        states: Any = None,
        formula: str | None = None,
        start: Any = None,
        keep_iterates: bool = False,
        step_size: Any = 0.01,
        decay: float = 0.0,
        batch_size: int = 1,
        random_state: Any = 0,
        max_iter: int = 100,
        tolerance: float = 1e-8,
        memory_limit: int | str | None = None,
        **run: Unpack[RunOptions],
    ) -> None:
        """See the class."""
        super().__init__(**own_options(locals()))
        check_options(self._options)

    def _task(self, *, vectors: bool = False) -> GLMTask:
        """What the options declare; vectors: a Gaussian response has several columns."""
        return GLMTask.of(self._options, vectors=vectors)

    _role = roles.glm_role

    def _fit_options(self) -> FitOptions:
        """The options, with the family that was fitted."""
        return self._task(vectors=self.fitted_.residual_covariance is not None).options

    # -- fitting -----------------------------------------------------------------------------------------------------

    def _summarized(self, given: Inputs) -> Summary | None:
        return self._task().summarize(given)

    def fit(
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
            X: an array, a sparse matrix, any table, or the path of files, or a frame of DuckDB, Dask, Spark or Ray,
                whose rows are prepared once, where they are, and then asked in rounds; or a `Summary` of them.
            y: the response: one value a row, (successes, failures) in two columns, or the name of a column of X.
            sample_weight: how many rows each row stands for, or the name of a column.
            offset: added to the linear predictor, or the name of a column.
            exposure: multiplies the mean (log link), or the name of a column.
            trials: of each row, where y is the number of successes.
            columns: names for the columns of an array, or the explanatory ones of a table; ``[]``: the intercept alone.

        Returns:
            self
        """
        X, y = roles.rows_of(self, X, no_columns=columns is not None), roles.checked_response(self, y)
        more = {"sample_weight": weights_of(sample_weight), "offset": offset, "exposure": exposure, "trials": trials}
        given = Inputs(X, {"y": y, **more, "columns": columns})
        task = self._task(vectors=roles.has_vectors(self, y))
        with named_causes(X):
            # The products of a fit are many and small: threads inside each would wait for one another.
            given, left_out = complete_rows(given, task.options)
            fit = with_one_blas_thread(lambda: run(task, given, self._control()))
            return remember(self._adopt(noted(robust.with_errors(fit, task.options, given), left_out)), X)

    _read_again = roles.read_again

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        exposure: Any = None,
        columns: Any = None,
        classes: Any = None,
    ) -> Self:
        """Go through the rows once, in their order: ``theta += step (y - mean) x`` for each (least mean squares).

        A prior enters with one over the number of rows of this call for each row. The first call begins at `start`, or
        at zero. `updates_` counts the updates so far, which is what schedules of `step_size` see. `classes` are both
        labels of a binomial response, where the first rows may not show them.
        """
        more = {"sample_weight": weights_of(sample_weight), "offset": offset, "exposure": exposure, "columns": columns}
        return remember(self._adopt(roles.one_pass(self, X, y, classes, more)), X)

    partial_fit = Offered(partial_fit, roles.without_one_pass)  # type: ignore[assignment]

    # -- coefficients ------------------------------------------------------------------------------------------------

    def _named(self, values: Floats, first: int = 0) -> NamedVector:
        """Parameters (k, m) by name, from the first one asked for on."""
        fitted = self.fitted_
        return NamedVector.of(values[first:, 0] if fitted.single else values[first:], fitted.parameters.names[first:])

    @property
    def response_(self) -> str | None:
        """The column of the response, where it was given by name or by a formula."""
        return self.fitted_.response

    @property
    def parameters_(self) -> NamedVector:
        """All coefficients, the intercept first: (k,), or (k, m) with a column for each class or response.

        Of ordered labels the thresholds come first.
        """
        return self._named(self.fitted_.limits())

    @property
    def thresholds_(self) -> NamedVector:
        """Between ordered labels (K - 1,), increasing: ``P(y <= k) = F(threshold_k - x' coefficients)``."""
        names = self.fitted_.parameters.ahead
        if not names:
            raise NotFittedError(f"The {self.family_name_} family has no thresholds.")
        return NamedVector.of(self.fitted_.limits()[: len(names), 0], names)

    @property
    def intercept_(self) -> float | Any:
        """The intercept: a number, or (m,); 0 without one, as beside thresholds."""
        fitted, values = self.fitted_, self.fitted_.by_class()
        first = values[0] if fitted.design.constant else np.zeros(values.shape[1])
        return float(first[0]) if fitted.single else first

    @property
    def coefficients_(self) -> NamedVector:
        """Coefficients by name, without the intercept: (p,), or (p, classes), where the reference class has zeros."""
        fitted = self.fitted_
        return self._named(fitted.by_class(), len(fitted.thresholds) + int(fitted.design.constant))

    @property
    def standard_errors_(self) -> NamedVector:
        """Of all coefficients, the intercept first; infinite where a coefficient is, NaN where a column was dropped.

        They are infinite, too, for coefficients about which the rows say nothing: where the information is not
        definite, no error is that of a pseudo-inverse.

        After a fit of many rows they are made when they are first read, from the rows, which must not have changed.
        """
        return self._named(self.fitted_.standard_errors())

    @property
    def covariance_(self) -> Floats:
        """Covariance of the coefficients (k, k), intercept first; with several predictors (m k, m k)."""
        return np.asarray(self.fitted_.covariance())

    @property
    def iterates_(self) -> tuple[Floats, ...]:
        """The iterates of IRLS, the start first; kept with keep_iterates=True."""
        if not self._options["keep_iterates"]:
            raise NotFittedError("The iterates were not kept; set keep_iterates=True.")
        return tuple(self.fitted_.iterates)

    def _history(self) -> tuple[Any, ...]:
        """The iterates with keep_iterates=True, else the objective before the first and after each iteration."""
        return self.iterates_ if self._options["keep_iterates"] else self.report_.history

    history_: Read[tuple[Any, ...]] = computed(_history)

    n_iter_: Read[int] = computed(roles.steps_of)

    # -- figures -----------------------------------------------------------------------------------------------------

    dispersion_: Read[float] = reads("fitted_.dispersion", "The dispersion phi, as the option `dispersion` asks.")

    @property
    def residual_covariance_(self) -> Floats:
        """Covariance of the residuals of a vector response, R'R / N."""
        if self.fitted_.residual_covariance is None:
            raise NotFittedError("Only a response of several columns has a residual covariance; see dispersion_.")
        return np.asarray(self.fitted_.residual_covariance)

    @property
    def size_(self) -> float:
        """The size of the negative binomial distribution: given, or estimated; the variance is mean + mean^2 / size."""
        if self.fitted_.size is None:
            raise NotFittedError(f"The {self.family_name_} family has no size.")
        return float(self.fitted_.size)

    deviance_: Read[float] = reads(
        "fitted_.deviance", "Twice what the log-likelihood loses against a mean of its own for each row, at phi = 1."
    )
    null_deviance_: Read[float] = reads("fitted_.null_deviance", "The deviance of the intercept (and offset) alone.")
    pearson_chi2_: Read[float] = reads("fitted_.pearson", "Sum of squared Pearson residuals.")
    df_resid_: Read[float] = reads("fitted_.df_resid", "Rows (by weight) less coefficients.")

    @property
    def separated_(self) -> bool:
        """Whether the likelihood rises for ever along some direction; report_.certificate.directions names it."""
        return self.report_.certificate.exists is False

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels of the response in order; a binomial model is about the second."""
        classes = self.fitted_.classes
        if classes is None:
            raise NotFittedError("The response was not given as labels, and has no classes. Fit labels for them.")
        return take_states(classes, np.arange(len(classes)))

    updates_: Read[int] = reads("fitted_.updates", "Updates made by partial_fit.")
    family_name_: Read[str] = reads("fitted_.family", "The name of the family.")
    link_: Read[str] = reads("fitted_.link", "The name of the link.")
    free_dispersion_: Read[bool] = delegated_property(GLMFitted.free_dispersion)

    @property
    def posterior_(self) -> CoefficientPosterior:
        """The posterior of the coefficients: exact where the prior is conjugate, else Laplace's approximation.

        The exact one is joint with the variance or, of vectors, with the covariance of the residuals. Laplace's is the
        normal distribution at the mode whose precision is the information there, the prior included.
        """
        return posterior_of(self.fitted_)

    # -- intervals and tests -----------------------------------------------------------------------------------------

    def _df(self) -> float | None:
        """Degrees of freedom of Student's t where the dispersion is estimated; None for the normal distribution."""
        return degrees_of_freedom(self.fitted_, self._fit_options().known_dispersion)

    intervals = intervals_of

    def likelihood_ratio_test(self, other: Any) -> HypothesisTest:
        """Test this fit against a larger one of the same rows in which it is nested (or the other way round)."""
        if isinstance(other, type) or not hasattr(other, "n_params_"):
            raise OptionError(f"other is {shortened(other)}; expected a fitted GLM of the same rows.")
        small, large = (self, other) if self.n_params_ < other.n_params_ else (other, self)
        return likelihood_ratio(small, large)

    anova = likelihood_ratio_test
    test = wald_test
    with_covariance = robust.with_covariance
    ratios = ratios.ratios
    contrasts = terms.contrasts
    term_tests = terms.term_tests
    marginal_effects = effects.marginal_effects
    r_squared = goodness.r_squared
    influence = influence.influence
    prediction_intervals = predictive.prediction_intervals
    dispersion_tests = goodness.dispersion_tests

    def matched_statistics(self) -> MatchedStatistics | None:
        """Both sides of the score equations, a row: X'y and X'mu with the canonical link, else weighted by row.

        They are worked out from the rows of the fit when first asked for; None where these are gone.
        """
        return self._judgement().kept.statistics(self.fitted_)  # type: ignore[no-any-return]

    def likelihood_estimate(self) -> Floats | None:
        """The coefficients without the prior, in the order of the rows of `summary`; None where there are none."""
        likelihood = self._judgement().kept.likelihood
        return None if likelihood is None else likelihood.T.ravel()

    # -- rows --------------------------------------------------------------------------------------------------------

    def predict(
        self,
        X: Any,
        *,
        kind: Predicted | None = None,
        offset: Any = None,
        exposure: Any = None,
        interval: float | None = None,
    ) -> NDArray[Any]:
        """Predict for new rows.

        Args:
            X: rows with the columns of the fit. Those of a Dask, Spark or Ray frame stay where they are: what comes
                back is such a frame with a column "prediction" (with an interval "lower" and "upper", too), or one for
                each label.
            kind: "response" (the mean; for labels their probabilities), "link" (the linear predictor; of ordered labels
                threshold less linear predictor, for each threshold), or "class" (the likeliest label). Labels are
                predicted by the likeliest one unless said or with an interval, all else by the mean.
            offset: as in `fit`.
            exposure: as in `fit`.
            interval: a level; then the answer is (n, 3): prediction and the ends of a Wald interval of the mean.
        """
        fitted = self.fitted_
        rows = roles.rows_of(self, X, no_columns=not fitted.design.columns)
        given = Inputs(rows, {"offset": offset, "exposure": exposure})
        asked, unknown = roles.predicted_kind(fitted, interval, kind), self._options["unknown"]
        answer: NDArray[Any] = rowwise.predicted(fitted, given, unknown, asked, interval, self._df())
        return answer

    def predict_proba(self, X: Any, *, offset: Any = None) -> Floats:
        """Probabilities of the classes (n, classes), in the order of `classes_`."""
        fitted = self.fitted_
        given = Inputs(roles.rows_of(self, X, no_columns=not fitted.design.columns), {"offset": offset})
        shares: Floats = rowwise.predicted(fitted, given, self._options["unknown"], labels=True)
        return shares

    predict_proba = Offered(predict_proba, roles.without_classes)  # type: ignore[assignment]

    def score_samples(self, X: Any, y: Any = None, **rows: Unpack[RowOptions]) -> Floats:
        """Log-likelihood of each row (n,), natural logarithm; rows: as for `fit`. Of a Dask or Spark frame a frame.

        Its column is "log_probability"; it is not computed yet.
        """
        return self.fitted_.score_samples(X, y, unknown=self._options["unknown"], **rows)

    score_samples = Offered(score_samples, needs_response)  # type: ignore[assignment]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **rows: Unpack[RowOptions]) -> float:
        """Mean log-likelihood of a row (weighted), natural logarithm, at `dispersion_`.

        `log_likelihood_` of a Gaussian response is the sum at the variance with divisor n, as logLik of R.
        """
        given = {"y": y, "sample_weight": sample_weight, **rows}
        return rowwise.mean_score(self.fitted_, X, given, self._options["unknown"])

    score = Offered(score, roles.without_likelihood)  # type: ignore[assignment]

    def residuals(
        self,
        X: Any,
        y: Any = None,
        *,
        kind: Residual = "deviance",
        random_state: Any = None,
        **rows: Unpack[RowOptions],
    ) -> Floats:
        """Residuals of rows (n,): "response", "pearson", "deviance", "working" or "quantile".

        The last are normal where the model holds (Dunn and Smyth 1996); of counts they have draws, by `random_state`.
        Of a Dask or Spark frame a frame with the column "residual"; not computed yet. `leverage` is like it.
        """
        figure = residual_figure(self.fitted_, X, kind, random_state)
        return rowwise.figures_of_rows(self.fitted_, X, {"y": y, **rows}, self._options["unknown"], figure, "residual")

    def leverage(self, X: Any, y: Any = None, sample_weight: Any = None, **rows: Unpack[RowOptions]) -> Floats:
        """The diagonal of ``W^1/2 X (X'WX)^-1 X' W^1/2`` (n,) on the rows of the fit."""
        given, figure = {"y": y, "sample_weight": sample_weight, **rows}, rowwise.leverage
        return rowwise.figures_of_rows(self.fitted_, X, given, self._options["unknown"], figure, "leverage")

    def sample(self, X: Any, random_state: Any = None, *, offset: Any = None, exposure: Any = None) -> NDArray[Any]:
        """One response for each row of a table in this process, drawn from the fitted distribution."""
        rowwise.check_drawn(X)
        mean = np.asarray(self.predict(X, kind="response", offset=offset, exposure=exposure))
        return np.asarray(self.fitted_.family_object.draw(self.fitted_, mean, generator(random_state)))

    def portrait(self) -> Portrait:
        """What there is to see of it: what pages, plots and notebooks show."""
        from suffice.models.glm.portrait import portrait_of_model

        return portrait_of_model(self)

    # -- files -------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Options, what was learned, both sides of its score equations, and the report as plain data."""
        plain = super().to_dict()
        if plain["fitted"] is not None:
            plain["matched"] = self._judgement().kept.to_dict()
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data."""
        model = cls._with_options(plain)
        if plain["fitted"] is None:
            return model
        fitted, report = GLMFitted.from_dict(plain["fitted"]), Report.from_dict(plain["report"])
        check_fitted(model._options, fitted.family, fitted.specification)
        matched = MatchedRows.from_dict(plain["matched"], fitted.values.shape)
        judged = Judgement(report.log_likelihood, report.objective, report.certificate, kept=matched)
        return model._adopt(Fit(fitted, report, judged))
