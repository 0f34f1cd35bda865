"""Stochastic gradient ascent on rows as they come: least mean squares for every canonical response."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from suffice.array_types import Floats
from suffice.engines.linear_predictor import linear_predictor, transpose_product, weighted
from suffice.errors import DataError, EstimateError, OptionError
from suffice.families.base import as_numbers
from suffice.fitting.contract import Found, Judgement
from suffice.fitting.control import Control, Outcome, State
from suffice.fitting.report import Certificate
from suffice.models.glm.families import NegativeBinomialFamily
from suffice.models.glm.family import RowDistribution, Totals
from suffice.models.glm.fit_options import FitOptions
from suffice.models.glm.fitted import GLMFitted
from suffice.models.glm.problem import response_sums, totals
from suffice.models.glm.regression import Factory, GLMProblem
from suffice.models.glm.rows import RegressionData
from suffice.solvers.information import Information
from suffice.solvers.online import step_sizes


class OnlineRegression(GLMProblem):
    """One pass over rows in memory, in their order, from where a fitted value stands.

    For each row, or batch of rows, ``theta += step (score x - share of the prior)``. Over one pass the shares of the
    prior add up to the whole prior: each row brings one over the number of rows of it.
    """

    def __init__(
        self, options: FitOptions, data: RegressionData, factory: Factory, before: GLMFitted | None = None
    ) -> None:
        """Refuse rows and priors that one pass does not take."""
        super().__init__(options, data, factory)
        if not data.blocks.in_memory:
            raise DataError("partial_fit takes rows in memory: give a file piece by piece.")
        self.block, self.before = data.blocks.block, before
        self.penalties = options.penalties(data.design)
        if self.penalties.laplace is not None or self.penalties.conjugate is not None:
            raise OptionError("partial_fit takes a Gaussian prior or none; use fit for other priors.")
        self.distribution = RowDistribution(options.one_family, options.link)

    def _start(self) -> Floats:
        """The coefficients learned before, the start that is asked for, or zeros, in the engine's layout."""
        design, before = self.data.design, self.before
        beta = np.zeros(design.size)
        if before is not None:
            if before.design.names != design.names:
                raise DataError(
                    f"The rows have the coefficients {', '.join(design.names[:8])}; the model has learned "
                    f"{', '.join(before.design.names[:8])}. Give the same columns and levels (categorical=)."
                )
            beta = before.beta[:, 0]
        elif self.options.given["start"] is not None:
            beta = as_numbers(self.options.given["start"], "start").ravel()
            if beta.shape != (design.size,):
                raise EstimateError(f"start has {len(beta)} numbers for {design.size} coefficients, intercept first.")
        return design.internal(beta).copy()

    def solve(self, control: Control) -> Found[GLMFitted]:
        """Go through the rows once; this makes no claim to have converged."""
        options, layout = self.options.given, self.data.design.layout
        theta, updates = self._start(), 0 if self.before is None else self.before.updates
        schedule, gaussian = step_sizes(options["step_size"], options["decay"]), self.penalties.gaussian
        for part in layout.parts(self.block, int(options["batch_size"])):
            score = self.distribution(linear_predictor(layout, part, theta), part.y)[1]
            move = transpose_product(layout, part, weighted(score, part.weights))
            if gaussian is not None:
                move = move - part.rows / self.block.rows * gaussian.slope(theta)
            theta = theta + schedule(updates) * move
            updates += 1
            if not np.isfinite(theta).all():
                raise EstimateError(
                    "The steps have run away to infinity; use a smaller step_size, or scale the columns."
                )
        fitted = self._fitted(theta, updates)
        outcome = Outcome(State(theta, self._value(fitted), np.inf, updates), False, "rows as they come", ())
        return Found(fitted, "stochastic gradient ascent", self.options.estimate, outcome)

    def _sums(self, theta: Floats) -> Totals:
        alone = response_sums(self.data.blocks, self.distribution.family)
        sums = totals(self.data.blocks, self.data.design.layout, self.distribution, theta)
        return replace(sums, base=alone.base, log_y=alone.log_y)

    def _fitted(self, theta: Floats, updates: int) -> GLMFitted:
        data, family, known = self.data, self.distribution.family, self.options.known_dispersion
        sums, free = self._sums(theta), family.free_dispersion
        phi = 1.0 if not free else family.ml_dispersion(sums) if known is None else known
        weight = data.weight + (0.0 if self.before is None else self.before.weight)
        return GLMFitted(
            **{**data.learned_names(), "weight": weight},
            family=family.name,
            link=self.distribution.link.name,
            beta=data.design.public(theta)[:, None],
            information=Information(np.zeros((0, 0))),
            dispersion=phi,
            ml_dispersion=phi,
            size=family.size if isinstance(family, NegativeBinomialFamily) else None,
            deviance=sums.deviance,
            null_deviance=sums.deviance,
            pearson=sums.pearson,
            df_resid=data.weight - data.design.size,
            n_params=data.design.size + int(free and known is None),
            updates=updates,
        )

    def _value(self, fitted: GLMFitted) -> float:
        """Log-likelihood of these rows."""
        sums = self._sums(self.data.design.internal(fitted.beta[:, 0]))
        return self.distribution.family.log_likelihood(sums, max(fitted.dispersion, 1e-300)) + self.data.constant

    def judge(self, fitted: GLMFitted) -> Judgement:
        """The log-likelihood of these rows; one pass is no maximum."""
        value = self._value(fitted)
        return Judgement(value, value, Certificate(float("inf")), kept=self.matched(fitted))
