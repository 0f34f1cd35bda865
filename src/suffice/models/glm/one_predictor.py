"""A regression with a single linear predictor: start, solver, dispersion and size, existence, certificate."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from suffice.errors import EstimateError
from suffice.families.base import as_numbers
from suffice.fitting.report import Certificate
from suffice.models.glm.certificate import CONCAVE, Known, bent_by_dispersion, measured, rounding_of
from suffice.models.glm.covariances import RowEnd, null_deviance
from suffice.models.glm.edge import OnEdge, edge_rows, on_edge, solve_edged, solve_rest
from suffice.models.glm.existence import EDGED, RISING, Existence
from suffice.models.glm.families import NegativeBinomialFamily
from suffice.models.glm.family import Totals
from suffice.models.glm.fit_options import FitOptions
from suffice.models.glm.fitted import GLMFitted
from suffice.models.glm.input import Rows
from suffice.models.glm.laws import RowLaw, StartLaw
from suffice.models.glm.problem import Problem, totals
from suffice.models.glm.rank import checked_average, column_rank
from suffice.models.glm.regression import Ended, Factory, IteratedRegression
from suffice.models.glm.rows import RegressionData
from suffice.models.glm.sample import some_rows
from suffice.models.glm.separation import STILL, Separation, newton_step, share_of_slopes
from suffice.models.glm.size import POISSON, RUNNING_SIZE, at_rounding, best_size
from suffice.models.glm.solve import Result, choose, joined, refuse_spread, told_to_stop
from suffice.models.glm.squares import (
    PERFECTLY,
    Squares,
    least_spread,
    no_dispersion,
    read_squares,
    rounding_of_y,
    solve_squares,
)
from suffice.solvers.information import Information, LaterInformation
from suffice.solvers.irls import Last

Floats = NDArray[np.float64]

#: Rounds of coefficients and dispersion, each given the other.
ROUNDS = 100


class OnePredictor(IteratedRegression):
    """A regression with a single linear predictor.

    Coefficients are found together with a dispersion that is estimated beside a prior, and in turn with the size of a
    negative binomial response. `squares` are the double-double products of least squares in closed form, `edge` is
    where the best means lie on the edge of what the link allows.
    """

    def __init__(self, options: FitOptions, data: RegressionData, factory: Factory) -> None:
        """Refuse rows of which nothing can be learned."""
        super().__init__(options, data, factory)
        self.rows, self.design, self.link = data.blocks, data.design, options.link
        self.family = options.one_family
        self.average = checked_average(data.blocks, self.family)
        self.doubtful = self.perfect = False
        self.squares: Squares | None = None
        self.edge: OnEdge | None = None

    @property
    def law(self) -> RowLaw:
        """Family and link."""
        return RowLaw(self.family, self.link)

    @property
    def weight(self) -> float:
        """How many rows the rows stand for, trials counted each."""
        return self.average.weight

    @property
    def dispersion(self) -> float | None:
        """The dispersion where it is known."""
        return self.options.known_dispersion

    def problem(self) -> Problem:
        """What solvers see, in units of a dispersion that is known beside a prior."""
        known = self.dispersion if self.family.free_dispersion and self.penalties.any else None
        phi = 1.0 if known is None else known
        return Problem(self.rows, self.design.layout, self.law, self.penalties.gaussian, phi)

    # -- start -------------------------------------------------------------------------------------------------------

    def start(self, problem: Problem) -> Floats:
        """The coefficients asked for, else zero where that is a point of a well-scaled model, else least squares."""
        size = problem.layout.size
        if self.begin is not None:
            given = as_numbers(self.begin, "start").ravel()
            if given.shape != (size,):
                raise EstimateError(f"start has {len(given)} numbers for {size} coefficients, intercept first.")
            inner = self.design.internal(given)
            return inner if problem.kept is None else inner[problem.kept]
        zero = np.zeros(problem.size)
        if self.link.probability or (self.family.name == "gaussian" and self.link.name == "identity"):
            return zero
        if self.options.given["keep_iterates"] and math.isfinite(problem.objective(zero)[0]):
            return zero
        mean = float(self.average.total) / self.average.weight
        some = some_rows(problem)[0] if self.warm else None
        for candidate in (self._least_squares(some or problem, mean), self._flat(mean, zero)):
            if candidate is not None and math.isfinite(problem.objective(candidate)[0]):
                return candidate
        if math.isfinite(problem.objective(zero)[0]):
            return zero
        raise EstimateError(
            f"No start was found for which the link {self.link.name!r} gives every row a possible mean. Give start=, "
            f"or {'look at the offset' if self.link.name == 'log' else 'use the log link'}."
        )

    def _least_squares(self, problem: Problem, mean: float) -> Floats:
        law = StartLaw(self.law, mean)
        _, gradient, information = replace(problem, law=law).evaluate(np.zeros(problem.size))
        return information.solve(gradient)

    def _flat(self, mean: float, zero: Floats) -> Floats | None:
        if not self.design.constant or not mean > 0.0:
            return None
        found = zero.copy()
        found[0] = float(self.link.eta(np.array([mean]))[0])
        return found

    # -- solve -------------------------------------------------------------------------------------------------------

    def climb(self, problem: Problem, start: Floats) -> tuple[Problem, Result]:
        """Coefficients, and with them the size and a dispersion beside a prior."""
        problem, result = self._scaled_solve(problem, start)
        return self._with_shape(problem, result)

    def climb_on(self, problem: Problem, before: Result) -> tuple[Problem, Result]:
        """The same from a result on."""
        return self._with_shape(problem, joined(before, self.step(problem, before.beta)))

    def _with_shape(self, problem: Problem, result: Result) -> tuple[Problem, Result]:
        problem, result = self._with_dispersion(*self._with_size(problem, result))
        if (
            self.squares is not None
        ):  # Double-double sums are measured by themselves: rows in float64 would lose digits.
            return problem, result
        return problem, measured(problem, result)

    @property
    def inside(self) -> bool:
        """Whether the information of the rows says what is left."""
        return self.squares is None and self.edge is None

    @property
    def _edged(self) -> bool:
        """Whether the best means may be on the edge of what the link allows."""
        return (self.family.name, self.link.name) in EDGED and self.penalties.laplace is None

    def step(self, problem: Problem, start: Floats) -> Result:
        """One run of the solver asked for, which goes to the edge of the link's range where that is best."""
        chosen = choose(self.options.given["solver"], problem, self.penalties.laplace)
        edged = self._edged and chosen == "irls" and not self.options.given["keep_iterates"]
        rows = edge_rows(problem) if edged else None
        if rows is None:
            return self.run_solver(problem, start, chosen)
        with np.errstate(over="ignore"):  # Far from the edge the barrier is 0.
            return solve_edged(
                rows, start, self.control, lambda control: self.run_solver(problem, start, chosen, control)
            )

    def _scaled_solve(self, problem: Problem, start: Floats) -> tuple[Problem, Result]:
        """Solve in units of the dispersion, so that the tolerance does not depend on the unit of the response.

        The dispersion of the start is too large; where that of the result is much smaller, the fit goes on from there.
        """
        if not self.family.free_dispersion or self.penalties.any:
            return problem, self.step(problem, start)
        closed = self._by_squares(problem) if self.doubtful else None
        if closed is not None:
            return closed
        result: Result | None = None
        for _ in range(ROUNDS):
            phi = self._spread(totals(self.rows, problem.layout, self.law, problem.whole(start)))
            if not phi > 0.0:
                return self._perfectly(problem)
            problem = replace(problem, phi=phi)
            result = joined(result, self.step(problem, start))
            start = result.beta
            after = self._spread(totals(self.rows, problem.layout, self.law, problem.whole(start)))
            if not after > 0.0:
                return self._perfectly(problem)
            if after > 0.25 * phi or told_to_stop(result):
                break
        assert result is not None
        return problem, result

    def _perfectly(self, problem: Problem) -> tuple[Problem, Result]:
        """A fit that leaves nothing to the dispersion: least squares, or an error where there is no such fit."""
        closed = self._by_squares(problem)
        if closed is None:
            raise no_dispersion()
        return closed

    def _spread(self, sums: Totals) -> float:
        """The dispersion by deviance, 0 where the fit is perfect, or the one that is known."""
        if self.dispersion is not None:
            return self.dispersion
        least = least_spread(self.family, self.rows)
        found = refuse_spread("The deviance", sums.deviance) / sums.weight
        return found if found > least else 0.0

    def _by_squares(self, problem: Problem) -> tuple[Problem, Result] | None:
        """Least squares in closed form, for a Gaussian response of which no other solver is asked; else None."""
        if not (self.warm and (self.family.name, self.link.name) == ("gaussian", "identity")):
            return None
        squares = read_squares(problem)
        solved = None if squares is None else solve_squares(squares)
        if solved is None:
            return None
        result, left = solved
        self.squares, self.perfect = squares, not left > 0.0 and self.dispersion is None
        if self.perfect:
            self.notes.append(PERFECTLY)
        phi = max(left, rounding_of_y(self.rows)) if self.dispersion is None else self.dispersion
        last = replace(result.last, value=result.last.value / phi, information=result.last.information.times(1.0 / phi))
        return replace(problem, phi=phi), replace(result, last=last)

    def full_rank(self, problem: Problem) -> tuple[Problem, tuple[int, ...]]:
        """Find columns that say the same; choose the exact root where columns nearly do."""
        if self.penalties.any:
            return problem, ()
        rank = column_rank(problem, self.design, self.law, self.average, self.options.given["collinear"])
        self.notes += rank.notes
        self.doubtful = rank.doubtful
        if not rank.dropped:
            return replace(problem, rooted=rank.rooted), ()
        kept = np.setdiff1d(np.arange(problem.layout.size), np.array(rank.dropped))
        return problem.holding(kept, np.zeros(problem.layout.size)), rank.dropped

    # -- dispersion --------------------------------------------------------------------------------------------------

    def _with_dispersion(self, problem: Problem, result: Result) -> tuple[Problem, Result]:
        """With a prior the best coefficients depend on phi: each is found given the other, until neither moves."""
        if not (self.family.free_dispersion and self.penalties.any) or self.dispersion is not None:
            return problem, result
        for _ in range(ROUNDS):
            new = self.family.ml_dispersion(totals(self.rows, problem.layout, self.law, problem.whole(result.beta)))
            if not new > 0.0:
                raise no_dispersion()
            if abs(new - problem.phi) <= 1e-12 * new:
                break
            problem = replace(problem, phi=new)
            if told_to_stop(result):  # What is reported is about the best dispersion for the coefficients all the same.
                break
            result = self.step(problem, result.beta)
        return problem, result

    def _with_size(self, problem: Problem, result: Result) -> tuple[Problem, Result]:
        """The size of a negative binomial law, by Newton's method in its log, and the coefficients in turn."""
        first = self.family
        if not self.options.free_size or not isinstance(first, NegativeBinomialFamily):
            return problem, result
        before = math.inf
        for _ in range(ROUNDS):
            family = self.family
            assert isinstance(family, NegativeBinomialFamily)
            if told_to_stop(result):
                break
            # At the limit the search begins anew: the coefficients of Poisson counts may yet have a finite size.
            begin = first if family.size >= POISSON else family
            found = best_size(self.rows, problem.layout, self.link, problem.whole(result.beta), begin)
            if found.size == family.size:
                break
            moved = abs(math.log(found.size / family.size))
            self.family = found
            problem = replace(problem, law=self.law)
            result = self.step(problem, result.beta)
            if moved < 1e-10 or at_rounding(moved, before):
                break
            before = moved
        return problem, result

    @property
    def _size_runs(self) -> bool:
        """Whether the likelihood rises with the size of a negative binomial law for ever."""
        family = self.family
        return self.options.free_size and isinstance(family, NegativeBinomialFamily) and family.size >= POISSON

    # -- existence ---------------------------------------------------------------------------------------------------

    def separation(self, problem: Problem, result: Result) -> tuple[Result, Separation]:
        """Whether the maximum is attained: inside, or on the edge of what the link allows."""
        result, separation = self._settled(problem, result)
        if separation.exists is None and self._edged and (rows := edge_rows(problem)) is not None:
            self.edge = on_edge(rows, result.beta)
            if self.edge is not None and (self.family.name, self.link.name) in CONCAVE and not self.options.free_size:
                separation = Separation(False)
        return result, separation

    def _settled(self, problem: Problem, result: Result) -> tuple[Result, Separation]:
        """Whether it is attained inside. What the information of some rows cannot tell, that of all does."""
        asked = self._question(problem)
        if result.origin is not None and asked.pair in RISING and problem.size and not self.penalties.any:
            step = newton_step(problem, result)
            share = share_of_slopes(problem, asked.kind, result.beta, step, result.origin)
            if result.stands * share <= STILL and asked.pair not in EDGED:
                return result, Separation(True)
            if told_to_stop(result):
                last = Last(result.beta, *problem.evaluate(result.beta))
                result = replace(result, last=last, later=None)
                return result, asked.answer(result)
            more = measured(problem, self.run_solver(problem, result.beta, "irls", warm=False))
            result = replace(joined(result, more), method=f"{result.method}, then IRLS")
        return result, asked.answer(result)

    def _question(self, problem: Problem) -> Existence:
        known = not self.family.free_dispersion or self.dispersion is not None
        return Existence(problem, self.design, self.family, self.link, self.penalties, self.average, known)

    def limit(self, problem: Problem, result: Result, separation: Separation, start: Floats) -> tuple[Problem, Result]:
        """The law that the likelihood runs to: rows that the direction decides leave the fit of the others."""
        if separation.decided is None or not isinstance(self.rows, Rows):
            return problem, result
        block, left = self.rows.block, ~separation.decided
        # Rows that are decided may have any linear predictor, which is why they must not be there at all.
        reduced = problem.on(block.chosen(np.flatnonzero(left)))
        if left.any() and (block.weights is None or block.weights[left].any()):
            reduced = replace(reduced, rooted=False)
            zero = np.zeros(problem.size)
            begin = zero if math.isfinite(reduced.objective(zero)[0]) else result.beta
            found, self.edge = solve_rest(reduced, begin, self.control, edged=self._edged)
            result = measured(reduced, found)
        else:
            zero, none = np.zeros(problem.size), Information(np.zeros((problem.size, problem.size)))
            result = replace(result, beta=zero, last=replace(result.last, beta=zero, gradient=zero, information=none))
        return reduced, result

    # -- figures -----------------------------------------------------------------------------------------------------

    def at_rest(self, ended: Ended) -> Ended:
        """With deviance, Pearson's statistic and the rest at the result."""
        problem, separation = ended.problem, ended.separation
        beta = problem.whole(ended.result.beta)
        sums = totals(problem.rows, problem.layout, self.law, beta)
        if separation.exists is False and separation.decided is not None:
            whole = totals(self.rows, problem.layout, self.law, np.zeros_like(beta))
            sums = replace(sums, base=whole.base, log_y=whole.log_y)
        sums = replace(sums, weight=self.weight)
        if self.squares is not None:
            least = self.weight * rounding_of_y(self.rows) if self.perfect else 0.0
            left = max(self.squares.left(ended.result.beta), least)
            sums = replace(sums, deviance=left, pearson=left)
        return replace(ended, sums=sums)

    def fitted(self, ended: Ended) -> GLMFitted:
        """The coefficients with their information at the dispersion that is reported."""
        problem, sums, free = ended.problem, ended.sums, self.family.free_dispersion
        assert sums is not None
        ml = self.family.ml_dispersion(sums) if free else 1.0
        dispersion = self._dispersion(sums, ml, problem)
        if free and not self._dispersion_of_values(problem, ml) > 0.0:
            raise no_dispersion()
        if self._size_runs:
            self.notes.append("the size of the negative binomial law runs to infinity: the counts are Poisson")
        information = self._information(ended)
        if free and not self.penalties.any:
            information = information.times(problem.phi / dispersion)
        beta = problem.whole(ended.result.beta)
        size = self.family.size if isinstance(self.family, NegativeBinomialFamily) else None
        coefficients = len(beta) - len(ended.dropped)
        estimated = int(free and self.dispersion is None) + int(self.options.free_size)
        end = RowEnd(self.data, self.law, beta, information, dispersion, ended.dropped)
        return GLMFitted(
            **{**self.shared_figures(ended), "information": information},
            beta=self.design.public(beta)[:, None],
            dispersion=dispersion,
            ml_dispersion=ml,
            size=size,
            deviance=sums.deviance,
            null_deviance=null_deviance(end, self.average),
            pearson=sums.pearson,
            df_resid=self.data.weight - coefficients,
            n_params=coefficients + estimated,
            sandwich=None if ended.separation.exists is False else end.covariance(self.options.given["covariance"]),
            iterates=tuple(
                self.design.public(one) if len(one) == self.design.size else one for one in ended.result.iterates
            ),
        )

    def _information(self, ended: Ended) -> Information:
        """That of the objective at the result; none on an edge, as the theory of errors is about points inside."""
        size = ended.problem.size
        if self.edge is not None:
            self.notes.append(f"the {' and the '.join(self.edge.words)}: there are no standard errors")
        if ended.result.later is not None:
            return LaterInformation(ended.result.later, size)
        return ended.result.last.information if self.edge is None else Information(np.zeros((size, size)))

    def _dispersion_of_values(self, problem: Problem, ml: float) -> float:
        """The dispersion at which the log-likelihood is reported: the known one, that beside a prior, or the best."""
        if self.dispersion is not None:
            return self.dispersion
        return problem.phi if self.penalties.any and self.family.free_dispersion else ml

    def values(self, ended: Ended, fitted: GLMFitted) -> tuple[float, float]:
        """Log-likelihood at the dispersion of the largest one unless that is known, and less the prior."""
        assert ended.sums is not None
        phi = self._dispersion_of_values(ended.problem, fitted.ml_dispersion)
        value = self.family.log_likelihood(ended.sums, phi) + self.data.constant
        return value, value - self.log_prior(ended.problem.whole(ended.result.beta))

    # -- the judgement -----------------------------------------------------------------------------------------------

    def certificate(self, ended: Ended, fitted: GLMFitted) -> Certificate:
        """By double-double sums, by multipliers on the edge, or by slope and information."""
        if self.squares is not None:
            return self.squares.certificate(ended.result.beta, self.dispersion, perfect=self.perfect)
        exists = ended.separation.exists
        if self.edge is not None:
            left = self.edge.left / self.weight if (self.family.name, self.link.name) in CONCAVE else None
            return Certificate(self.edge.gap, left, False, True, exists, self.edge.words if exists is False else ())
        measured_here = super().certificate(ended, fitted)
        if self._size_runs:
            return Certificate(measured_here.moment_gap, exists=False, directions=(RUNNING_SIZE,))
        return measured_here

    def known(self, ended: Ended, fitted: GLMFitted) -> Known:
        """Concavity, the best possible value, and a dispersion that is estimated along."""
        sums, phi = ended.sums, ended.problem.phi
        assert sums is not None
        elsewhere = not (self.family.log_concave or (self.family.name, self.link.name) in CONCAVE)
        concave = not elsewhere and not self.options.free_size and ended.problem.kept is None
        bends = self.family.free_dispersion and self.penalties.any and self.dispersion is None
        return Known(
            concave,
            (sums.value + 0.5 * sums.deviance) / phi,
            self._left(ended.problem, fitted.ml_dispersion),
            bent_by_dispersion(self.family, sums, phi) if bends else 0.0,
            elsewhere,
        )

    def _left(self, problem: Problem, ml: float) -> float:
        """What the objective of the problem is yet to be divided by: a dispersion that is estimated without a prior."""
        free = self.family.free_dispersion and not self.penalties.any and self.dispersion is None
        return ml / problem.phi if free else 1.0

    def rounding(self, ended: Ended, fitted: GLMFitted) -> float:
        """In units of the dispersion; multipliers on the edge have their own."""
        return (
            0.0 if self.edge is not None else rounding_of(ended.result, self._left(ended.problem, fitted.ml_dispersion))
        )

    def _dispersion(self, sums: Totals, ml: float, problem: Problem) -> float:
        if not self.family.free_dispersion:
            return 1.0
        if self.dispersion is not None:
            return self.dispersion
        if self.penalties.any:
            return problem.phi
        if self.options.dispersion == "ml":
            return ml
        left = sums.weight - problem.size
        if not left > 0.0:
            raise EstimateError(
                f"There are {sums.weight:g} rows for {problem.size} coefficients, so that none are left for Pearson's "
                "estimate of the dispersion. Leave columns out, give a prior, or set dispersion= to a number."
            )
        found = refuse_spread("Pearson's statistic", sums.pearson) / left
        if not found > 0.0:
            raise no_dispersion()
        return found
