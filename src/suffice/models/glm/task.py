"""What a generalised linear model declares: how its rows are read, and which problem they set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from suffice.errors import OptionError
from suffice.families.normal_wishart import NormalWishart
from suffice.fitting.contract import Inputs, Purpose
from suffice.models.glm.conjugate import ConjugateRegression
from suffice.models.glm.fit_options import FitOptions, check_pooled
from suffice.models.glm.fitted import GLMFitted
from suffice.models.glm.labels import SoftmaxRegression
from suffice.models.glm.moments import has_moments, read_moments, read_sums, summarize_rows
from suffice.models.glm.online import OnlineRegression
from suffice.models.glm.ordered import OrderedRegression
from suffice.models.glm.predictor_judge import OnePredictor
from suffice.models.glm.registry import FAMILIES
from suffice.models.glm.regression import GLMProblem
from suffice.models.glm.rows import RegressionData, read_rows
from suffice.models.glm.vectors import JointMode, VectorLeastSquares, WishartRegression
from suffice.statistics import Summary


@dataclass(frozen=True, eq=False)
class GLMTask:
    """The options, with the family and the link that they name."""

    options: FitOptions

    @classmethod
    def of(cls, given: Mapping[str, Any], *, vectors: bool = False) -> GLMTask:
        """From the options of a model; vectors: a Gaussian response has several columns."""
        return cls(FitOptions.of(given, FAMILIES["multivariate_gaussian"] if vectors else None))

    def read(self, given: Inputs, known: GLMFitted | None, purpose: Purpose) -> RegressionData:
        """A design and a response, of rows or of a `Summary`."""
        data = self._read(given, purpose)
        check_pooled(self.options.given, data.design)
        return data

    def _read(self, given: Inputs, purpose: Purpose) -> RegressionData:
        if not isinstance(given.data, Summary):
            sums = read_sums(given, self.options) if purpose == "fit" else None
            return read_rows(given, self.options) if sums is None else sums
        if purpose != "fit":
            raise OptionError("partial_fit goes through rows, and a Summary holds none: add it to others and use fit.")
        return read_moments(given, self.options)

    def summarize(self, given: Inputs) -> Summary | None:
        """The statistics from which a fit learns; None where it learns from rows alone."""
        return summarize_rows(given, self.options) if has_moments(self.options) else None

    def problem(self, data: RegressionData, start: GLMFitted | None) -> GLMProblem:
        """The coefficients of these rows, from the start of the options or from that of a fitted value."""
        return regression_of(self.options.with_start(None if start is None else start.values), data)

    def one_pass(self, data: RegressionData, known: GLMFitted | None) -> OnlineRegression:
        """One pass of stochastic ascent over these rows."""
        return OnlineRegression(self.options, data, regression_of, known)


def regression_of(options: FitOptions, data: RegressionData) -> GLMProblem:
    """The regression that a kind of response asks for, and with it its prior."""
    response, prior = options.family.response, options.given["prior"]
    if response == "labels":
        return SoftmaxRegression(options, data, regression_of)
    if response == "ordered":
        return OrderedRegression(options, data, regression_of)
    if response == "vectors":
        _check_closed(options, "a response of vectors")
        if prior is None:
            return VectorLeastSquares(options, data, regression_of)
        kind = WishartRegression if isinstance(prior, NormalWishart) else JointMode
        return kind(options, data, regression_of)
    if options.penalties(data.design).conjugate is not None:
        _check_closed(options, "a conjugate prior")
        return ConjugateRegression(options, data, regression_of)
    return OnePredictor(options, data, regression_of)


def _check_closed(options: FitOptions, what: str) -> None:
    """Refuse options of solvers where none is used."""
    for name, default in (("solver", "auto"), ("keep_iterates", False)):
        if options.given[name] != default:
            raise OptionError(
                f"{name}={options.given[name]!r} has no effect: {what} has a solution of its own. Leave {name}= out."
            )
