"""What a user of log-linear models reads after a fit: deviance, degrees of freedom, errors, expected counts."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.answers import CountTable
from suffice.domain import Domain
from suffice.engines.memory import in_words
from suffice.errors import EstimateError, SizeError
from suffice.fitting.report import Report
from suffice.models.markov.errors import weight_errors
from suffice.models.markov.feature_rank import untold_weights
from suffice.models.markov.feature_spread import feature_units, features_of, standardised
from suffice.models.markov.law import LawFamily
from suffice.models.markov.priors import read_penalty
from suffice.models.markov.structure import Term
from suffice.solvers.penalties import GaussianPenalty
from suffice.statistics import Counts, Summary
from suffice.table import Table

Floats = NDArray[np.float64]

#: Cells of the largest joint table that is made on request.
MOST_CELLS = 2**24
#: Joint states up to which what was not observed is summed cell by cell, and not taken as the rest.
SUMMED_CELLS = 2**20


class MarkovStatistics:
    """Statistics of a fitted Markov network; the network itself gives the law and the summary."""

    report_: Report
    summary_: Summary
    _options: dict[str, Any]
    _domain: Domain
    _weights: Floats
    _limits: Floats
    _terms: tuple[Term, ...]

    @property
    def nodes(self) -> tuple[Hashable, ...]:
        """The variables."""
        raise NotImplementedError

    @property
    def n_params_(self) -> int:
        """Free parameters."""
        raise NotImplementedError

    @property
    def weight_names_(self) -> tuple[str, ...]:
        """One name for each weight."""
        raise NotImplementedError

    @property
    def weights_(self) -> Floats:
        """The weights."""
        raise NotImplementedError

    def _family(self) -> LawFamily:
        raise NotImplementedError

    def _near(self) -> LawFamily:
        raise NotImplementedError

    def _log_normaliser(self) -> float:
        raise NotImplementedError

    def _rank(self) -> int:
        raise NotImplementedError

    # -- curvature ---------------------------------------------------------------------------------------------------

    @property
    def information_(self) -> Floats:
        """Cov[f] under the model (n_weights, n_weights): the Fisher information of one row.

        That of all rows is ``report_.weight`` times as large; it is minus the Hessian of the summed log-likelihood.
        """
        return self._near().covariance(self._weights)

    def _information_of_rows(self) -> Floats:
        """The information of all rows (n_weights, n_weights), without the prior."""
        return self.report_.weight * self.information_

    @property
    def standard_errors_(self) -> Floats:
        """Standard errors of the weights (n_weights,).

        The square roots of the diagonal of the inverse of the information of all rows, where that is definite. A weight
        that the data do not tell has an infinite error: one that ran to infinity, that of a feature which does not vary
        under the law, and those of features of which one is a sum of others. Tables have more weights than free
        parameters; along the directions that change no law the error is that of the shortest of all weights with the
        same law, by the pseudo-inverse, and the variance of a contrast c of weights that is identified is
        ``c' pinv(information) c``. With a normal prior: standard deviations of the normal law that has the curvature of
        the posterior at its mode. With a Laplace prior a weight that was set to the centre of the prior has no error
        (NaN), and the others have the error of a fit without it. Where variables are hidden or rows have gaps, the
        information is the observed one, by differences of exact slopes.
        """
        penalty = read_penalty(self._options["prior"], len(self._weights))
        if isinstance(penalty, GaussianPenalty):
            errors = np.sqrt(penalty.posterior_variances(self._information_of_rows()))
        else:
            away = np.zeros(len(self._weights)) if penalty is None else penalty.mean
            used = np.full(len(self._weights), penalty is None) | (self._weights != away)
            errors = np.full(len(self._weights), np.nan)
            errors[used] = self._errors_of(np.flatnonzero(used))
        return np.where(self._limits != 0.0, np.inf, errors)

    def _errors_of(self, used: NDArray[np.intp]) -> Floats:
        """Errors of some weights (u,), the others held where they are."""
        family, within = self._family(), np.ix_(used, used)
        shares = self._near().margins(self._weights)[1]
        units = feature_units(family.model, shares)
        # All centred: the small variance of a feature that is nearly always the same is no difference of large numbers.
        near = family.over(standardised(family.model, units, shares, far=0.0))
        whole = len(used) == len(units)
        errors = weight_errors(
            self._information_in(near)[within],
            features_of(family.model)[used],
            lambda: near.covariance(np.zeros(len(units)))[within],
            len(units) - self._rank() if whole and not family.masks else None,
        )
        if whole:
            errors[untold_weights(family.model)] = np.inf
        return errors / units[used]

    def _information_in(self, family: LawFamily) -> Floats:
        """The information of all rows on weights of the same laws in other units (n_weights, n_weights)."""
        return self.report_.weight * family.covariance(self._weights * family.model.units)

    # -- against the saturated model ---------------------------------------------------------------------------------

    @property
    def n_cells_(self) -> int:
        """Joint states of all variables."""
        return math.prod(self._domain.shape(self.nodes))

    @property
    def df_(self) -> int:
        """Degrees of freedom against the saturated model: cells - 1 - parameters."""
        return self.n_cells_ - 1 - self.n_params_

    @property
    def deviance_(self) -> float:
        """G^2 = 2 sum (n log(n / expected) - n + expected): twice the log-likelihood that the saturated model gains.

        The last two terms add up to 0 over all cells, and take away what rounding of the expected counts does at first
        order. Where the joint counts are too many to be kept it is 2 N KL(data || model); of more variables than are
        counted together it is asked for by `deviance`.
        """
        known = self.report_.kl_divergence
        if known is not None and self._joint() is None:
            return 2.0 * self.report_.weight * known
        return self._deviance(*self._joint_counts())

    def deviance(self, data: Any, sample_weight: Any = None, *, columns: Any = None) -> float:
        """G^2 of these rows against the saturated model, from the joint states that occur in them.

        For networks of many variables, whose fit does not count them together. Rows other than those of the fit are
        compared with the law as it is.
        """
        return self._deviance(*self._counted(data, sample_weight, columns))

    def _deviance(self, codes: NDArray[Any], counts: Floats) -> float:
        expected, rest = self._expected(codes, counts)
        if (expected == 0).any():
            return math.inf
        ratio = (expected - counts) / counts
        return max(0.0, 2.0 * math.fsum([*(counts * (ratio - np.log1p(ratio))), rest]))

    @property
    def chi2_(self) -> float:
        """Pearson's X^2 = sum (n - expected)^2 / expected over all cells; cells expected and observed 0 add nothing."""
        codes, counts = self._joint_counts()
        expected, rest = self._expected(codes, counts)
        if (expected == 0).any():
            return math.inf
        return math.fsum([*((counts - expected) ** 2 / expected), rest])

    def _expected(self, codes: NDArray[Any], counts: Floats) -> tuple[Floats, float]:
        """Expected counts of these joint states (k,), and of all others together."""
        total = math.fsum(counts)
        expected = total * np.exp(self._near().log_cells(self._weights, codes, self._log_normaliser()))
        if self.n_cells_ > SUMMED_CELLS:
            return expected, max(0.0, total - math.fsum(expected))
        joint = np.exp(self._near().log_joint(self._weights, self._log_normaliser()))
        joint[tuple(codes.T)] = 0.0
        return expected, total * float(joint.sum())

    @property
    def p_value_(self) -> float:
        """Chance of a larger deviance if the model is true, by the chi-squared law.

        Its degrees of freedom are `df_`, or `adjusted_df_` where the maximum is not attained and that is known.
        """
        return _chance(self._test_df(), self.deviance_)

    @property
    def adjusted_df_(self) -> int | None:
        """Degrees of freedom on the face of an extended maximum."""
        raise NotImplementedError

    def _test_df(self) -> int:
        adjusted = self.adjusted_df_ if self.report_.certificate.exists is False else None
        return self.df_ if adjusted is None else adjusted

    @property
    def aic_(self) -> float:
        """Akaike's criterion, 2 k - 2 log-likelihood."""
        return self.report_.aic

    @property
    def bic_(self) -> float | None:
        """Schwarz's criterion, k log N - 2 log-likelihood."""
        return self.report_.bic

    @property
    def fitted_counts_(self) -> Table:
        """Expected counts N p(x) of every joint state, axes in the order of `nodes`."""
        return self.to_joint() * self.report_.weight

    def to_joint(self) -> Table:
        """P(all variables) as one table; too many cells are an error before any work."""
        if self.n_cells_ > MOST_CELLS:
            raise SizeError(
                f"The joint table has {self.n_cells_:,} cells ({in_words(8 * self.n_cells_)}); the limit is "
                f"{MOST_CELLS:,}. Ask for the marginal of fewer variables."
            )
        return Table(self._domain, np.exp(self._near().log_joint(self._weights, self._log_normaliser())))

    def _joint(self) -> tuple[NDArray[Any], Floats] | None:
        """The joint states of the variables that are seen (k, variables) and their counts (k,), where they are kept."""
        return joint_counts(self.summary_, self.nodes)

    def _joint_counts(self) -> tuple[NDArray[Any], Floats]:
        """The joint states that occur (k, variables), codes in the order of the domain, and their counts (k,)."""
        found = self._joint()
        if found is None:
            raise EstimateError(
                "The summary holds no joint counts of all variables, so there is no saturated model to compare with: "
                "the fit was from margins alone or from rows with gaps, or the joint states are too many to be kept. "
                "deviance(rows) counts the rows anew."
            )
        return found

    def _counted(self, data: Any, sample_weight: Any, columns: Any) -> tuple[NDArray[Any], Floats]:
        """The joint states of other data, as `_joint_counts` gives them."""
        raise NotImplementedError

    # -- a text ------------------------------------------------------------------------------------------------------

    def summary(self) -> str:
        """Goodness of fit and weights with their errors, as text; weights that ran to infinity are marked."""
        lines = [str(self.report_), ""]
        if self._joint() is not None:
            df = self._test_df()
            lines.append(f"{'':<20}{'X^2':>14}{'df':>8}{'P(> X^2)':>12}")
            for label, value in (("Likelihood ratio", self.deviance_), ("Pearson", self.chi2_)):
                lines.append(f"{label:<20}{value:>14.6f}{df:>8}{_chance(df, value):>12.5f}")
            if df != self.df_:
                lines.append(f"(df on the face of the limit; {self.df_} if the maximum were attained)")
            lines.append("")
        weights, errors = self.weights_, self.standard_errors_
        width = max((len(name) for name in self.weight_names_[:40]), default=6)
        lines.append(f"{'weight':<{width}}{'estimate':>14}{'std. error':>14}")
        lines += [
            f"{name:<{width}}{weight:>14.6f}{error:>14.6f}{_mark(limit)}"
            for name, weight, error, limit in list(zip(self.weight_names_, weights, errors, self._limits, strict=True))[
                :40
            ]
        ]
        if len(weights) > 40:
            lines.append(f"... ({len(weights) - 40} more weights)")
        return "\n".join(lines)


def _mark(limit: float) -> str:
    if math.isnan(limit):
        return "  no limit of its own: runs to infinity together with others"
    return "  ran to its limit" if limit else ""


def _chance(df: int, value: float) -> float:
    """P(chi-squared with df degrees of freedom > value); 1 without any."""
    from scipy.special import chdtrc

    return float(chdtrc(df, value)) if df else 1.0


def joint_counts(summary: Summary, names: tuple[Hashable, ...]) -> tuple[NDArray[Any], Floats] | None:
    """The cells in use (k, variables) and their counts (k,), where the summary counts all variables together."""
    for question, answer in summary.answers.items():
        if isinstance(question, Counts) and isinstance(answer, CountTable) and set(question.variables) == set(names):
            codes, counts = answer.items()
            return codes[:, [question.variables.index(name) for name in names]], counts
    return None


def joint_entropy(summary: Summary, names: tuple[Hashable, ...]) -> float | None:
    """Entropy of the observed joint states in nats, where the summary counts all variables together."""
    joint = joint_counts(summary, names)
    if joint is None or not summary.weight > 0:
        return None
    shares = joint[1] / math.fsum(joint[1].tolist())
    return -math.fsum((shares * np.log(shares)).tolist())
