"""What can be asked of a fitted generalised linear model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import DataError, NotFittedError, OptionError
from suffice.families.base import generator, take_states
from suffice.families.matrix_regression_law import MatrixRegressionLaw
from suffice.families.multivariate_normal import MultivariateNormal
from suffice.families.regression_law import RegressionLaw
from suffice.fitting.report import MatchedStatistics
from suffice.models.glm import rowwise as rowwise
from suffice.models.glm.design import Table
from suffice.models.glm.formula import matrix_of
from suffice.models.glm.input import offset_of, open_rows, side_column, table_like
from suffice.models.glm.moments import about
from suffice.models.glm.pieces import pieces, stream_of
from suffice.models.glm.profile import profile_intervals
from suffice.models.glm.results import (
    LikelihoodRatio,
    NamedVector,
    RegressionTable,
    likelihood_ratio,
    quantile,
    two_sided,
)
from suffice.models.glm.rows import Asked, Kind
from suffice.models.glm.vector_registry import VECTOR_FAMILIES

if TYPE_CHECKING:
    from suffice.models.glm.learned import Learned

Floats = NDArray[np.float64]


class Reading:
    """Coefficients, tests, predictions; mixed into the model, which brings the options and what was learned."""

    _options: dict[str, Any]
    report_: Any

    @property
    def _learned_result(self) -> Learned:
        raise NotFittedError("This GLM has learned nothing yet. Call fit first.")

    def _kind(self) -> Kind:
        raise NotImplementedError

    def _known_dispersion(self) -> Any:
        raise NotImplementedError

    # -- coefficients ------------------------------------------------------------------------------------------------

    def _public(self) -> Floats:
        """All parameters (k, m) with those that run away at infinity."""
        learned = self._learned_result
        if learned.direction is None:
            return learned.values
        return np.where(learned.direction != 0.0, np.where(learned.direction > 0.0, np.inf, -np.inf), learned.values)

    @property
    def parameters_(self) -> NamedVector:
        """All coefficients, the intercept first: (k,), or (k, m) with a column for each class or response.

        Of ordered labels the thresholds come first.
        """
        found = self._public()
        return NamedVector.of(found[:, 0] if self._single else found, self._learned_result.parameters.names)

    @property
    def thresholds_(self) -> NamedVector:
        """Between ordered labels (K - 1,), increasing: ``P(y <= k) = F(threshold_k - x' coefficients)``."""
        learned = self._learned_result
        if not len(learned.thresholds):
            raise NotFittedError(f"The {learned.family} family has no thresholds.")
        names = learned.parameters.ahead
        return NamedVector.of(self._public()[: len(names), 0], names)

    @property
    def _single(self) -> bool:
        return self._learned_result.family not in ("multinomial", "multivariate_gaussian")

    @property
    def intercept_(self) -> Any:
        """The intercept: a number, or (m,); 0 without one, as beside thresholds."""
        found = self._by_class(self._public())
        if not self._learned_result.design.constant:
            return 0.0 if self._single else np.zeros(found.shape[1])
        return float(found[0, 0]) if self._single else found[0]

    @property
    def coefficients_(self) -> NamedVector:
        """Coefficients by name, without the intercept: (p,), or (p, classes), where the reference class has zeros."""
        learned = self._learned_result
        held = len(learned.thresholds) + int(learned.design.constant)
        found = self._by_class(self._public())[held:]
        return NamedVector.of(found[:, 0] if self._single else found, learned.parameters.names[held:])

    def _by_class(self, found: Floats) -> Floats:
        """A column for each class, zero for the reference."""
        learned = self._learned_result
        if learned.family != "multinomial" or learned.reference is None:
            return found
        return np.insert(found, learned.reference, 0.0, axis=1)

    @property
    def standard_errors_(self) -> NamedVector:
        """Of all coefficients, the intercept first; infinite where a coefficient is, 0 where a column was dropped.

        They are infinite, too, for coefficients about which the rows say nothing: where the information is not
        definite, no error is that of a pseudo-inverse.

        After a fit of many rows they are made when they are first read, from the rows, which must not have changed.
        """
        learned = self._learned_result
        found = np.sqrt(np.maximum(learned.variances(), 0.0))
        found = np.where(np.isinf(self._public()) | learned.undetermined(), np.inf, found)
        return NamedVector.of(found[:, 0] if self._single else found, learned.parameters.names)

    @property
    def covariance_(self) -> Floats:
        """Covariance of the coefficients (k, k), intercept first; with several predictors (m k, m k)."""
        return self._learned_result.covariance()

    @property
    def iterates_(self) -> tuple[Floats, ...]:
        """The iterates of IRLS, the start first; kept with keep_iterates=True."""
        if not self._options["keep_iterates"]:
            raise NotFittedError("The iterates were not kept; set keep_iterates=True.")
        return self._learned_result.iterates

    @property
    def history_(self) -> Any:
        """The iterates with keep_iterates=True, else the objective before the first and after each iteration."""
        return self.iterates_ if self._options["keep_iterates"] else self.report_.history

    # -- figures -----------------------------------------------------------------------------------------------------

    @property
    def dispersion_(self) -> float:
        """The dispersion phi, as the option `dispersion` asks."""
        return self._learned_result.dispersion

    @property
    def residual_covariance_(self) -> Floats:
        """Covariance of the residuals of a vector response, R'R / N."""
        found = self._learned_result.residual_covariance
        if found is None:
            raise NotFittedError("Only a response of several columns has a residual covariance; see dispersion_.")
        return found

    @property
    def size_(self) -> float:
        """The size of the negative binomial law: given, or estimated; the variance is mean + mean^2 / size."""
        found = self._learned_result.size
        if found is None:
            raise NotFittedError(f"The {self._learned_result.family} family has no size.")
        return found

    @property
    def deviance_(self) -> float:
        """Twice what the log-likelihood loses against a mean of its own for each row, at phi = 1."""
        return self._learned_result.deviance

    @property
    def null_deviance_(self) -> float:
        """The deviance of the intercept alone (and the offset)."""
        return self._learned_result.null_deviance

    @property
    def log_likelihood_(self) -> float:
        """Sum over rows, natural logarithm, at the dispersion of the largest likelihood unless that is given."""
        return self._learned_result.log_likelihood

    @property
    def pearson_chi2_(self) -> float:
        """Sum of squared Pearson residuals."""
        return self._learned_result.pearson

    @property
    def aic_(self) -> float:
        """2 k - 2 log-likelihood."""
        return float(self.report_.aic)

    @property
    def bic_(self) -> float:
        """K log(rows) - 2 log-likelihood."""
        return float(self.report_.bic)

    @property
    def df_resid_(self) -> float:
        """Rows (by weight) less coefficients."""
        return self._learned_result.df_resid

    @property
    def separated_(self) -> bool:
        """Whether the likelihood rises for ever along some direction; report_.certificate.directions names it."""
        return self.report_.certificate.exists is False

    @property
    def classes_(self) -> Any:
        """The labels of the response in order; a binomial model is about the second."""
        found = self._learned_result.classes
        if found is None:
            raise NotFittedError("The response was not given as labels.")
        return take_states(found, np.arange(len(found)))

    @property
    def updates_(self) -> int:
        """Updates made by partial_fit."""
        return self._learned_result.updates

    @property
    def family_name_(self) -> str:
        """The name of the family."""
        return self._learned_result.family

    @property
    def link_(self) -> str:
        """The name of the link."""
        return self._learned_result.link

    @property
    def free_dispersion_(self) -> bool:
        """Whether the family has a dispersion."""
        return self._learned_result.free_dispersion

    @property
    def posterior_(self) -> Any:
        """The posterior of the coefficients: exact where the prior is conjugate, else Laplace's approximation.

        The exact one is the joint law with the variance or, of vectors, with the covariance of the residuals.
        Laplace's approximation is the normal law at the mode whose precision is the information there, prior included.
        """
        learned = self._learned_result
        if learned.posterior is not None:
            joint = MatrixRegressionLaw if learned.family == "multivariate_gaussian" else RegressionLaw
            return joint(*learned.posterior)
        if learned.precision is None:
            raise NotFittedError("There is no posterior without a Gaussian or conjugate prior; give prior=.")
        return MultivariateNormal(mean=learned.values.T.ravel(), covariance=learned.covariance())

    # -- intervals and tests -----------------------------------------------------------------------------------------

    def _df(self) -> float | None:
        """Degrees of freedom of Student's t where the dispersion is estimated; None for the normal law."""
        learned = self._learned_result
        estimated = learned.free_dispersion and isinstance(self._known_dispersion(), str)
        return learned.df_resid if estimated and learned.df_resid > 0 and learned.precision is None else None

    def intervals(self, level: float = 0.95, *, method: str = "wald", X: Any = None, y: Any = None, **rows: Any) -> Any:
        """Confidence intervals of the coefficients, (k, 2) by name, intercept first.

        Args:
            level: probability of each interval.
            method: "wald", estimate +- quantile * standard error; or "profile", where twice the log-likelihood falls by
                the quantile's square with all other coefficients at their best: needs the rows again.
            X: the rows of the fit, for "profile".
            y: their response.
            rows: sample_weight, offset, exposure, trials, as for `fit`.
        """
        if method == "wald":
            reach = quantile(level, self._df()) * np.asarray(self.standard_errors_)
            centre = np.asarray(self.parameters_)
            with np.errstate(invalid="ignore"):
                low, high = centre - reach, centre + reach
            low, high = np.where(np.isinf(reach), -np.inf, low), np.where(np.isinf(reach), np.inf, high)
            return NamedVector.of(np.stack((low, high), axis=-1), self._learned_result.parameters.names)
        if method != "profile":
            raise OptionError(f"method is {method!r}; expected 'wald' or 'profile'.")
        if X is None and self._options["formula"] is None:
            raise OptionError("Profile intervals need the rows again: intervals(method='profile', X=..., y=...).")
        found = profile_intervals(self, X, Asked(y, **rows), quantile(level, self._df()))
        return NamedVector.of(found, self._learned_result.parameters.names)

    def likelihood_ratio_test(self, other: Any) -> LikelihoodRatio:
        """Test this fit against a larger one of the same rows in which it is nested (or the other way round)."""
        small, large = (self, other) if self._learned_result.n_params < other.n_params_ else (other, self)
        return likelihood_ratio(small, large)

    anova = likelihood_ratio_test

    def matched_statistics(self) -> MatchedStatistics | None:
        """Both sides of the score equations, a row: X'y and X'mu with the canonical link, else weighted by row.

        They are worked out from the rows of the fit when first asked for; None where these are gone.
        """
        learned, kept = self._learned_result, self.__dict__.get("_pairs")
        found = None if kept is None else kept.pairs
        if found is None:
            return None
        pull = None if found.pull is None else found.pull.T.ravel()
        both = (found.observed.T.ravel(), found.expected.T.ravel())
        return MatchedStatistics(tuple(self._flat_names()), *both, pull, about=about(learned.family, learned.link))

    def likelihood_estimate(self) -> Floats | None:
        """The coefficients without the prior, in the order of the rows of `summary`; None where there are none."""
        kept = self.__dict__.get("_pairs")
        found: Floats | None = None if kept is None else kept.likelihood
        return None if found is None else found.T.ravel()

    def _flat_names(self) -> list[str]:
        names, m = self._learned_result.parameters.names, self._learned_result.beta.shape[1]
        labels = self._column_labels() if m > 1 else [""]
        return [f"{name} ({label})" if label else name for label in labels for name in names]

    def summary(self, level: float = 0.95) -> RegressionTable:
        """The table of coefficients: estimate, standard error, statistic, p value, interval; prints, HTML, to_frame."""
        learned = self._learned_result
        beta, errors = np.asarray(self.parameters_), np.asarray(self.standard_errors_)
        ends = np.asarray(self.intervals(level))
        df = self._df()
        with np.errstate(all="ignore"):
            z = np.where(np.isfinite(beta) & (errors > 0.0), beta / errors, 0.0)
        p = np.where(np.isfinite(beta) & (errors > 0.0), two_sided(z, df), 1.0)
        figures = np.stack((beta, errors, z, p, ends[..., 0], ends[..., 1]), axis=-1)
        names = learned.parameters.names
        if beta.ndim == 2:
            labels = self._column_labels()
            rows = [
                (f"{names[at]} ({labels[col]})", tuple(figures[at, col].tolist()))
                for col in range(beta.shape[1])
                for at in range(len(names))
            ]
        else:
            rows = [(name, tuple(figures[at].tolist())) for at, name in enumerate(names)]
        ends_of = [f"{50 * (1 - level):g}%", f"{50 * (1 + level):g}%"]
        titles = ("coefficient", "std. error", "z" if df is None else "t", "p value", *ends_of)
        return RegressionTable(tuple(self._head()), titles, tuple(rows))

    def _column_labels(self) -> list[str]:
        learned = self._learned_result
        if learned.classes is None:
            return [f"response {at}" for at in range(learned.beta.shape[1])]
        return [str(label) for at, label in enumerate(learned.classes) if at != learned.reference]

    def _head(self) -> list[tuple[str, str]]:
        learned, report = self._learned_result, self.report_
        weight = f"{learned.weight:,.6g}"
        found = [
            ("family, link", f"{learned.family}, {learned.link}"),
            ("rows, coefficients", f"{weight}, {learned.parameters.size}"),
            ("method", f"{report.method}, {report.iterations} iterations"),
            ("log-likelihood", f"{learned.log_likelihood:,.6g}"),
            ("AIC, BIC", f"{report.aic:,.6g}, {report.bic:,.6g}"),
        ]
        if math.isfinite(learned.null_deviance):
            found.append(("deviance, null", f"{learned.deviance:,.6g}, {learned.null_deviance:,.6g}"))
        if math.isfinite(learned.pearson):
            found.append(("Pearson chi2", f"{learned.pearson:,.6g} on {learned.df_resid:,.6g} df"))
        if learned.free_dispersion:
            found.append(("dispersion", f"{learned.dispersion:.6g} ({self._options['dispersion']})"))
        if learned.size is not None:
            found.append(("size", f"{learned.size:.6g}"))
        if self._options["covariance"] == "robust":
            found.append(("covariance", "robust (sandwich)"))
        if self.separated_:
            label = "no maximum" if learned.direction is None else "separated"
            found.append((label, "; ".join(report.certificate.directions[:4])))
        return found

    # -- rows --------------------------------------------------------------------------------------------------------

    def _rows(self, X: Any, offset: Any, exposure: Any, columns: Any = None) -> tuple[Table, Floats | None]:
        """New rows as a table of the design, and their offset."""
        learned = self._learned_result
        if self._options["formula"] is not None:
            names = [str(name) for name in learned.design.reals]
            table = Table(matrix_of(self.__dict__["_specification"], X, names))
        else:
            table = table_like(X, learned.design, self._options["unknown"], columns)
        source = None
        if isinstance(offset, str) or isinstance(exposure, str):
            source = open_rows(X)
        added = side_column(offset, source, table.rows, "offset")
        return table, offset_of(added, side_column(exposure, source, table.rows, "exposure"), learned.link)

    def predict(
        self,
        X: Any,
        *,
        kind: str = "response",
        offset: Any = None,
        exposure: Any = None,
        interval: float | None = None,
    ) -> Any:
        """Predict for new rows.

        Args:
            X: rows with the columns of the fit.
            kind: "response" (the mean; for labels their probabilities), "link" (the linear predictor; of ordered labels
                threshold less linear predictor, for each threshold), or "class" (the likeliest label).
            offset: as in `fit`.
            exposure: as in `fit`.
            interval: a level; then the answer is (n, 3): prediction and the ends of a Wald interval of the mean.
        """
        source = stream_of(X)
        if source is not None:
            parts = self._pieces(source, offset, exposure)
            return np.concatenate(
                [self.predict(part, kind=kind, offset=offset, exposure=exposure, interval=interval) for part in parts]
            )
        table, added = self._rows(X, offset, exposure)
        return rowwise.predict(self._learned_result, table, added, kind, interval, self._df())

    def _pieces(self, source: Any, *sides: Any) -> Iterator[Any]:
        return pieces(source, self._learned_result, self.__dict__.get("_specification"), sides)

    def predict_proba(self, X: Any, *, offset: Any = None) -> Floats:
        """Probabilities of the classes (n, classes), in the order of `classes_`."""
        learned = self._learned_result
        if learned.classes is None and learned.family != "binomial":
            raise OptionError(f"The {learned.family} family has no classes.")
        found = np.asarray(self.predict(X, offset=offset))
        return found if found.ndim == 2 else np.column_stack((1.0 - found, found))

    def _scored(self, X: Any, asked: Asked) -> Iterator[rowwise.Scored]:
        """The rows with their response: all at once, or piece by piece where they are not in memory."""
        source = stream_of(X)
        if source is None:
            yield rowwise.scored(self, X, asked)
            return
        if asked.y is None:
            raise DataError("There is no response: give y=, the name of a column.")
        for part in self._pieces(source, asked.y, asked.sample_weight, asked.offset, asked.exposure, asked.trials):
            yield rowwise.scored(self, part, asked)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **rows: Any) -> float:
        """Mean log-likelihood of a row (weighted), natural logarithm."""
        total = weight = 0.0
        for found in self._scored(X, Asked(y, sample_weight, **rows)):
            total += float(found.weights @ found.log_prob)
            weight += float(found.weights.sum())
        return total / weight

    def residuals(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, kind: str = "deviance", **rows: Any
    ) -> Any:
        """Residuals of rows (n,): "response", "pearson", "deviance" or "working"."""
        parts = self._scored(X, Asked(y, sample_weight, **rows))
        return np.concatenate([rowwise.residuals(self._learned_result, found, kind) for found in parts])

    def leverage(self, X: Any, y: Any = None, sample_weight: Any = None, **rows: Any) -> Floats:
        """The diagonal of ``W^1/2 X (X'WX)^-1 X' W^1/2`` (n,) on the rows of the fit."""
        parts = self._scored(X, Asked(y, sample_weight, **rows))
        return np.concatenate([rowwise.leverage(self._learned_result, found) for found in parts])

    def sample(self, X: Any, random_state: Any = None, *, offset: Any = None, exposure: Any = None) -> Any:
        """One response for each row, drawn from the fitted law."""
        learned = self._learned_result
        mean = np.asarray(self.predict(X, offset=offset, exposure=exposure))
        several = VECTOR_FAMILIES.get(learned.family)
        if several is not None:
            return several.sample(learned, mean, generator(random_state))
        drawn = learned.row_law().family.sample(mean, learned.dispersion, generator(random_state))
        return drawn if learned.classes is None else take_states(learned.classes, drawn.astype(np.intp))
