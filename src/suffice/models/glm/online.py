"""Stochastic gradient ascent on rows as they come: least mean squares for every canonical response."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.engines.linear_predictor import CoefficientLayout, linear_predictor, transpose_product, weighted
from suffice.errors import DataError, EstimateError, OptionError
from suffice.families.base import as_numbers
from suffice.fitting.contract import Found, Judgement
from suffice.fitting.control import Control, Outcome, State
from suffice.fitting.named import in_order
from suffice.fitting.report import Certificate
from suffice.models.glm.existence import RISING
from suffice.models.glm.families import NegativeBinomialFamily
from suffice.models.glm.family import RowDistribution, Totals
from suffice.models.glm.fit_options import FitOptions
from suffice.models.glm.fitted import GLMFitted
from suffice.models.glm.held_rows import PreparedRows
from suffice.models.glm.problem import response_sums, sums_of_response, totals
from suffice.models.glm.regression import SEPARATED, Factory, GLMProblem, IteratedRegression
from suffice.models.glm.rows import RegressionData
from suffice.models.glm.solve import Result
from suffice.solvers.information import Information
from suffice.solvers.irls import Last
from suffice.solvers.online import step_sizes
from suffice.solvers.penalties import GaussianPenalty


@dataclass(frozen=True, eq=False)
class OnlinePass:
    """One pass over the rows of a shard, from coefficients and updates on; `rows` are those of all shards."""

    layout: CoefficientLayout
    distribution: RowDistribution
    penalty: GaussianPenalty | None
    options: Mapping[str, Any]
    rows: int

    def __call__(self, prepared: PreparedRows, begin: tuple[Floats, int]) -> tuple[Floats, int]:
        """Coefficients and updates after the last row."""
        theta, updates = begin
        schedule = step_sizes(self.options["step_size"], self.options["decay"])
        for part in self.layout.parts(prepared.block, int(self.options["batch_size"])):
            if not part.rows:
                continue
            score = self.distribution(linear_predictor(self.layout, part, theta), part.y)[1]
            move = transpose_product(self.layout, part, weighted(score, part.weights))
            if self.penalty is not None:
                move = move - part.rows / self.rows * self.penalty.slope(theta)
            theta = theta + schedule(updates) * move
            updates += 1
            if not np.isfinite(theta).all():
                raise EstimateError(
                    "The steps have run away to infinity; use a smaller step_size, or scale the columns."
                )
        return theta, updates


class OnlineRegression(GLMProblem):
    """One pass over rows, in their order, from where a fitted value stands.

    For each row, or batch of rows, ``theta += step (score x - share of the prior)``. Over one pass the shares of the
    prior add up to the whole prior: each row brings one over the number of rows of it.
    """

    def __init__(
        self, options: FitOptions, data: RegressionData, factory: Factory, before: GLMFitted | None = None
    ) -> None:
        """Refuse priors that one pass does not take."""
        super().__init__(options, data, factory)
        self.before = before
        self.penalties = options.penalties(data.design)
        if self.penalties.laplace is not None or self.penalties.conjugate is not None:
            raise OptionError("partial_fit takes a Gaussian prior or none; use fit for other priors.")
        self.distribution = RowDistribution(options.one_family, options.link)
        if options.given["dispersion"] == "pearson":
            raise OptionError(
                "dispersion='pearson' has no effect on partial_fit, whose dispersion is the likeliest one. "
                "Leave dispersion= out, or give a number."
            )

    def _start(self) -> Floats:
        """The coefficients learned before, the start that is asked for, or zeros, in the engine's layout.

        Where the link has no mean for a linear predictor of 0, the intercept begins at the average of the rows.
        """
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
            beta = as_numbers(in_order(self.options.given["start"], design.names, "start"), "start").ravel()
            if beta.shape != (design.size,):
                raise EstimateError(
                    f"start has {len(beta)} numbers; expected {design.size}, one for each coefficient, intercept first."
                )
        elif not self._possible(np.zeros(1)):
            rows, link = self.data.blocks, self.distribution.link
            flat = link.eta(np.array([response_sums(rows, self.distribution.family).mean]))
            if not design.constant or not self._possible(flat):
                raise EstimateError(
                    f"The link {link.name!r} has no mean for a linear predictor of 0, where partial_fit would begin. "
                    "Give start=, or use the log link."
                )
            beta[0] = flat[0]
        return design.internal(beta).copy()

    def _possible(self, eta: Floats) -> bool:
        """Whether a linear predictor (1,) has a mean that a response can have."""
        with np.errstate(all="ignore"):
            mean = self.distribution.link.mean(eta)
        return self.distribution.link.inside(eta) and self.distribution.family.inside(mean)

    def solve(self, control: Control) -> Found[GLMFitted]:
        """Go through the rows once; this makes no claim to have converged."""
        rows, given = self.data.blocks, self.options.given
        options = {name: given[name] for name in ("step_size", "decay", "batch_size")}
        online = OnlinePass(self.data.design.layout, self.distribution, self.penalties.gaussian, options, rows.rows)
        theta, updates = self._start(), 0 if self.before is None else self.before.updates
        for shard in range(rows.held.shards):
            theta, updates = rows.held.sum((theta, updates), by=online, shards=[shard])
        sums = self._sums(theta)
        if not np.isfinite(sums.value):
            raise EstimateError(
                f"The steps have led to coefficients at which the link {self.distribution.link.name!r} gives some row "
                "no possible mean. Use a smaller step_size, give start=, or use the log link."
            )
        fitted = self._fitted(theta, updates, sums)
        outcome = Outcome(State(theta, self._value(fitted, sums), np.inf, updates), False, "rows as they come", ())
        return Found(fitted, "stochastic gradient ascent", self.options.estimate, outcome)

    def _sums(self, theta: Floats) -> Totals:
        """What the rows add up to, in one round."""
        rows, family = self.data.blocks, self.distribution.family
        rows.expect(("response", family), partial(sums_of_response, family=family))
        sums = totals(rows, self.data.design.layout, self.distribution, theta)
        alone = response_sums(rows, family)
        return replace(sums, base=alone.base, log_y=alone.log_y)

    def _fitted(self, theta: Floats, updates: int, sums: Totals) -> GLMFitted:
        data, family, known = self.data, self.distribution.family, self.options.known_dispersion
        free = family.free_dispersion
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

    def _value(self, fitted: GLMFitted, sums: Totals) -> float:
        """Log-likelihood of these rows."""
        return self.distribution.family.log_likelihood(sums, max(fitted.dispersion, 1e-300)) + self.data.constant

    def judge(self, fitted: GLMFitted) -> Judgement:
        """The log-likelihood of these rows; one pass is no maximum."""
        theta = self.data.design.internal(fitted.beta[:, 0])
        value = self._value(fitted, self._sums(theta))
        separated = self._separated(theta)
        certificate = Certificate(float("inf"), exists=False if separated else None)
        notes = (SEPARATED,) if separated else ()
        return Judgement(value, value, certificate, kept=self.matched(fitted), notes=notes)

    def _separated(self, theta: Floats) -> bool:
        """Whether the columns separate the rows of a first call; of later calls the earlier rows are gone."""
        if self.before is not None or self.penalties.gaussian is not None:
            return False
        regression = self.factory(self.options, self.data)
        pair = (self.distribution.family.name, self.distribution.link.name)
        if not isinstance(regression, IteratedRegression) or pair not in RISING:
            return False
        problem = regression.problem()
        last = Last(theta, *problem.evaluate(theta))
        unmoved = Outcome(State(theta, last.value, np.inf, 0), False, "one pass", ())
        return regression.separation(problem, Result(theta, unmoved, last)).exists is False
