"""One fit of a regression with a single linear predictor: start, solve, dispersion, existence, certificate."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from suffice.errors import EstimateError
from suffice.families.base import as_numbers
from suffice.fitting.control import Control, Outcome
from suffice.fitting.report import Certificate
from suffice.models.glm.conjugate import conjugate_fit
from suffice.models.glm.design import Design
from suffice.models.glm.edge import OnEdge, edge_rows, on_edge, solve_edged, solve_rest
from suffice.models.glm.existence import EDGED, RISING, Existence
from suffice.models.glm.families import Family, NegativeBinomialFamily, Totals
from suffice.models.glm.figures import (
    CONCAVE,
    Fit,
    Known,
    Wishes,
    bent_by_dispersion,
    certify,
    cross_checked,
    is_number,
    measured,
    not_flat,
    rooted,
    rounding_of,
)
from suffice.models.glm.input import Rows, StreamRows
from suffice.models.glm.laws import RowLaw, StartLaw
from suffice.models.glm.links import Link
from suffice.models.glm.priors import Penalties
from suffice.models.glm.problem import Problem, average, totals
from suffice.models.glm.sample import MANY_ROWS, some_rows, spread_rows
from suffice.models.glm.separation import STILL, Separation, newton_step, share_of_slopes
from suffice.models.glm.size import POISSON, RUNNING_SIZE, at_rounding, best_size
from suffice.models.glm.solve import (
    Result,
    choose,
    dependent_columns,
    joined,
    refuse_dependent,
    refuse_extremes,
    refuse_large,
    refuse_spread,
    solve,
    told_to_stop,
)
from suffice.models.glm.squares import (
    PERFECTLY,
    Squares,
    is_doubtful,
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


class Fitter:
    """A fit in steps; the options and the data are its fields."""

    def __init__(
        self,
        rows: Rows | StreamRows,
        design: Design,
        family: Family,
        link: Link,
        penalties: Penalties,
        wishes: Wishes,
        control: Control,
    ) -> None:
        """Keep everything."""
        self.rows, self.design, self.link = rows, design, link
        self.family, self.penalties, self.wishes, self.control = family, penalties, wishes, control
        self.average = average(rows)
        if not self.average.weight > 0.0:
            raise EstimateError("There are no rows, or none with weight; nothing can be learned.")
        refuse_large(self.average, family)
        self.warnings: list[str] = []
        self.doubtful = self.perfect = False
        self.squares: Squares | None = None
        self.edge: OnEdge | None = None

    @property
    def law(self) -> RowLaw:
        """Family and link."""
        return RowLaw(self.family, self.link)

    def problem(self, phi: float = 1.0) -> Problem:
        """What solvers see."""
        return Problem(self.rows, self.design.layout, self.law, self.penalties.gaussian, phi)

    def _recorded(self, problem: Problem) -> Problem:
        """The problem of a new round, whose points the checkpoint is told."""
        if self.wishes.keeper is None:
            return problem
        self.wishes.keeper.fresh()
        return replace(problem, record=self.wishes.keeper.note)

    # -- start -------------------------------------------------------------------------------------------------------

    def start(self, problem: Problem) -> Floats:
        """The coefficients asked for, else zero where that is a point of a well-scaled model, else least squares."""
        size = problem.layout.size
        if self.wishes.start is not None:
            given = as_numbers(self.wishes.start, "start").ravel()
            if given.shape != (size,):
                raise EstimateError(f"start has {len(given)} numbers for {size} coefficients, intercept first.")
            inner = self.design.internal(given)
            return inner if problem.kept is None else inner[problem.kept]
        zero = np.zeros(problem.size)
        if self.link.probability or (self.family.name == "gaussian" and self.link.name == "identity"):
            return zero
        if self.wishes.keep_iterates and math.isfinite(problem.objective(zero)[0]):
            return zero
        mean = float(self.average.total) / self.average.weight
        some = some_rows(problem)[0] if self._warm else None
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

    def fit(self) -> Fit:
        """All steps."""
        if self.penalties.conjugate is not None:
            return conjugate_fit(self.rows, self.design, self.family, self.link, self.penalties.conjugate, self.average)
        given = self.wishes.dispersion
        known = self.family.free_dispersion and self.penalties.any and is_number(given)
        problem, dropped = self._full_rank(self.problem(float(given) if known else 1.0))
        problem, result = self._scaled_solve(problem, self.start(problem))
        problem, result = self._with_dispersion(*self._with_size(problem, result))
        if self.squares is None:  # Double-double sums are measured by themselves: rows in float64 would lose digits.
            result = measured(problem, result)
        result, separation = self._settled(problem, result)
        if separation.exists is None and self._edged and (rows := edge_rows(problem)) is not None:
            self.edge = on_edge(rows, result.beta)
            if self.edge is not None and (self.family.name, self.link.name) in CONCAVE and not self.wishes.free_size:
                separation = Separation(False)
        exact = rooted(problem, result, separation, self.penalties)
        if exact is not None and self.squares is None and self.edge is None:
            more = joined(result, self._solve(exact, result.beta))
            problem, result = self._with_dispersion(*self._with_size(exact, more))
            result, separation = self._settled(problem, measured(problem, result))
        beta = problem.whole(result.beta)
        if separation.exists is False:
            beta, problem, result = self._limit(problem, result, separation)
        return self._report(problem, result, beta, separation, dropped)

    @property
    def _edged(self) -> bool:
        """Whether the best means may be on the edge of what the link allows."""
        return (self.family.name, self.link.name) in EDGED and self.penalties.laplace is None

    def _solve(self, problem: Problem, start: Floats) -> Result:
        chosen = choose(self.wishes.solver, problem, self.penalties.laplace)
        rows = edge_rows(problem) if self._edged and chosen == "irls" and not self.wishes.keep_iterates else None
        if rows is None:
            return self._inside(problem, start, chosen, self.control)
        with np.errstate(over="ignore"):  # Far from the edge the barrier is 0.
            return solve_edged(rows, start, self.control, lambda control: self._inside(problem, start, chosen, control))

    def _inside(self, problem: Problem, start: Floats, chosen: str, control: Control) -> Result:
        return solve(
            self._recorded(problem),
            start,
            control,
            solver=chosen,
            laplace=self.penalties.laplace,
            keep=self.wishes.keep_iterates,
            seed=self.wishes.seed,
            warm=self._warm,
        )

    @property
    def _warm(self) -> bool:
        """Whether a fit of some rows may find the start."""
        return self.wishes.solver == "auto" and self.wishes.start is None and not self.wishes.keep_iterates

    def _scaled_solve(self, problem: Problem, start: Floats) -> tuple[Problem, Result]:
        """Solve in units of the dispersion, so that the tolerance does not depend on the unit of the response.

        The dispersion of the start is too large; where that of the result is much smaller, the fit goes on from there.
        """
        if not self.family.free_dispersion or self.penalties.any:
            return problem, self._solve(problem, start)
        closed = self._by_squares(problem) if self.doubtful else None
        if closed is not None:
            return closed
        result: Result | None = None
        for _ in range(ROUNDS):
            phi = self._spread(totals(self.rows, problem.layout, self.law, problem.whole(start)))
            if not phi > 0.0:
                return self._perfectly(problem)
            problem = replace(problem, phi=phi)
            result = joined(result, self._solve(problem, start))
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
        if is_number(self.wishes.dispersion):
            return float(self.wishes.dispersion)
        least = least_spread(self.family, self.rows)
        found = refuse_spread("The deviance", sums.deviance) / sums.weight
        return found if found > least else 0.0

    def _by_squares(self, problem: Problem) -> tuple[Problem, Result] | None:
        """Least squares in closed form, for a Gaussian response of which no other solver is asked; else None."""
        if not (self._warm and (self.family.name, self.link.name) == ("gaussian", "identity")):
            return None
        squares = read_squares(problem)
        solved = None if squares is None else solve_squares(squares)
        if solved is None:
            return None
        result, left = solved
        known = is_number(self.wishes.dispersion)
        self.squares, self.perfect = squares, not left > 0.0 and not known
        if self.perfect:
            self.warnings.append(PERFECTLY)
        phi = float(self.wishes.dispersion) if known else max(left, rounding_of_y(self.rows))
        last = replace(result.last, value=result.last.value / phi, information=result.last.information.times(1.0 / phi))
        return replace(problem, phi=phi), replace(result, last=last)

    def _full_rank(self, problem: Problem) -> tuple[Problem, tuple[int, ...]]:
        """Find columns that say the same; choose the exact root where columns nearly do."""
        start = np.zeros(problem.layout.size)
        if self.penalties.any or problem.layout.body > 6_000 or problem.size == 0:
            return problem, ()
        law = StartLaw(self.law, float(self.average.total) / self.average.weight)
        flat = replace(problem, law=law)
        if isinstance(self.rows, Rows) and self.rows.rows >= MANY_ROWS:
            # Columns that differ on some rows differ on all.
            every = self.rows.rows // max(2_000, 3 * problem.size) or 1
            some = self.rows.block.chosen(spread_rows(self.rows.rows, every))
            if flat.on(some).curvature(start)[2].definite:
                return problem, ()
        with np.errstate(over="ignore", invalid="ignore"):
            information = flat.curvature(start)[2]
            self.doubtful = is_doubtful(information)
            if information.definite:
                return problem, ()
            refuse_extremes(flat, self.design, information)
        dropped = dependent_columns(flat, self.design, start, information)
        if not dropped:
            return replace(problem, rooted=not (problem.layout.sparse or problem.layout.levels)), ()
        names = tuple(self.design.names[self.design.places[at]] for at in dropped)
        if self.wishes.collinear != "drop":
            raise refuse_dependent(names, self.rows.rows, self.design.size)
        self.warnings.append(f"left out as combinations of other columns: {', '.join(names)}")
        kept = np.setdiff1d(np.arange(problem.layout.size), np.array(dropped))
        return problem.holding(kept, np.zeros(problem.layout.size)), dropped

    # -- dispersion --------------------------------------------------------------------------------------------------

    def _with_dispersion(self, problem: Problem, result: Result) -> tuple[Problem, Result]:
        """With a prior the best coefficients depend on phi: each is found given the other, until neither moves."""
        if not (self.family.free_dispersion and self.penalties.any) or is_number(self.wishes.dispersion):
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
            result = self._solve(problem, result.beta)
        return problem, result

    def _with_size(self, problem: Problem, result: Result) -> tuple[Problem, Result]:
        """The size of a negative binomial law, by Newton's method in its log, and the coefficients in turn."""
        first = self.family
        if not self.wishes.free_size or not isinstance(first, NegativeBinomialFamily):
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
            result = self._solve(problem, result.beta)
            if moved < 1e-10 or at_rounding(moved, before):
                break
            before = moved
        return problem, result

    @property
    def _size_runs(self) -> bool:
        """Whether the likelihood rises with the size of a negative binomial law for ever."""
        family = self.family
        return self.wishes.free_size and isinstance(family, NegativeBinomialFamily) and family.size >= POISSON

    # -- existence ---------------------------------------------------------------------------------------------------

    def _settled(self, problem: Problem, result: Result) -> tuple[Result, Separation]:
        """Whether the maximum is attained. What the information of some rows cannot tell, that of all does."""
        asked = self._existence(problem)
        if result.origin is not None and asked.pair in RISING and problem.size and not self.penalties.any:
            step = newton_step(problem, result)
            share = share_of_slopes(problem, asked.kind, result.beta, step, result.origin)
            if result.stands * share <= STILL and asked.pair not in EDGED:
                return result, Separation(True)
            if told_to_stop(result):
                last = Last(result.beta, *problem.evaluate(result.beta))
                result = replace(result, last=last, later=None)
                return result, asked.answer(result)
            more = measured(problem, solve(self._recorded(problem), result.beta, self.control, solver="irls"))
            result = replace(joined(result, more), method=f"{result.method}, then IRLS")
        return result, asked.answer(result)

    def _existence(self, problem: Problem) -> Existence:
        known = not self.family.free_dispersion or is_number(self.wishes.dispersion)
        return Existence(problem, self.design, self.family, self.link, self.penalties, self.average, known)

    def _limit(self, problem: Problem, result: Result, separation: Separation) -> tuple[Floats, Problem, Result]:
        """The law that the likelihood runs to: rows that the direction decides leave the fit of the others."""
        if separation.decided is None or not isinstance(self.rows, Rows):
            return problem.whole(result.beta), problem, result
        block, left = self.rows.block, ~separation.decided
        # Rows that are decided may have any linear predictor, which is why they must not be there at all.
        reduced = problem.on(block.chosen(np.flatnonzero(left)))
        if left.any() and (block.weights is None or block.weights[left].any()):
            reduced = replace(reduced, rooted=False)
            zero = np.zeros(problem.size)
            start = zero if math.isfinite(reduced.objective(zero)[0]) else result.beta
            found, self.edge = solve_rest(reduced, start, self.control, edged=self._edged)
            result = measured(reduced, found)
        else:
            zero, none = np.zeros(problem.size), Information(np.zeros((problem.size, problem.size)))
            result = replace(result, beta=zero, last=replace(result.last, beta=zero, gradient=zero, information=none))
        return problem.whole(result.beta), reduced, result

    # -- figures -----------------------------------------------------------------------------------------------------

    def _report(
        self, problem: Problem, result: Result, beta: Floats, separation: Separation, dropped: tuple[int, ...]
    ) -> Fit:
        sums = totals(problem.rows, problem.layout, self.law, beta)
        if separation.exists is False and separation.decided is not None:
            whole = totals(self.rows, problem.layout, self.law, np.zeros_like(beta))
            sums = replace(sums, base=whole.base, log_y=whole.log_y)
        weight = self.average.weight
        sums = replace(sums, weight=weight)
        if self.squares is not None:
            left = max(self.squares.left(result.beta), weight * rounding_of_y(self.rows) if self.perfect else 0.0)
            sums = replace(sums, deviance=left, pearson=left)
        free = self.family.free_dispersion
        ml = self.family.ml_dispersion(sums) if free else 1.0
        dispersion = self._dispersion(sums, ml, problem)
        at = problem.phi if self.penalties.any and free else ml
        if free and not at > 0.0:
            raise no_dispersion()
        log_likelihood = self.family.log_likelihood(sums, dispersion if is_number(self.wishes.dispersion) else at)
        if self._size_runs:
            self.warnings.append("the size of the negative binomial law runs to infinity: the counts are Poisson")
        information = result.last.information
        if self.edge is not None:  # The theory of errors is about points inside.
            information = Information(np.zeros((problem.size, problem.size)))
            self.warnings.append(f"the {' and the '.join(self.edge.words)}: there are no standard errors")
        if result.later is not None:
            information = LaterInformation(result.later, problem.size)
        if free and not self.penalties.any:
            information = information.times(problem.phi / dispersion)
        objective = log_likelihood - self._log_prior(beta)
        certificate = self._certificate(problem, result, separation, sums, ml)
        return Fit(
            self.family,
            beta,
            information,
            sums,
            self.average,
            dispersion,
            ml,
            log_likelihood,
            objective,
            certificate,
            self._checked(problem, result, separation, certificate, ml),
            result.method,
            separation,
            dropped,
            result.iterates,
            tuple(self.warnings),
            size_estimated=self.wishes.free_size,
            dispersion_known=is_number(self.wishes.dispersion),
        )

    def _certificate(
        self, problem: Problem, result: Result, separation: Separation, sums: Totals, ml: float
    ) -> Certificate:
        """How far the result is from the optimum, by what is measured there."""
        given, number = self.wishes.dispersion, is_number(self.wishes.dispersion)
        if self.squares is not None:
            return self.squares.certificate(result.beta, float(given) if number else None, perfect=self.perfect)
        elsewhere = (self.family.name, self.link.name) not in CONCAVE
        if self.edge is not None:
            left = None if elsewhere else self.edge.left / self.average.weight
            words = self.edge.words if separation.exists is False else ()
            return Certificate(self.edge.gap, left, False, True, separation.exists, words)
        free, phi = self.family.free_dispersion, problem.phi
        concave = not elsewhere and not self.wishes.free_size
        best = (sums.value + 0.5 * sums.deviance) / phi
        bent = bent_by_dispersion(self.family, sums, phi) if free and self.penalties.any and not number else 0.0
        known_here = Known(concave and problem.kept is None, best, self._left(problem, ml), bent, elsewhere)
        found = certify(problem, result, self.penalties, separation, known_here, weight=self.average.weight)
        if self._size_runs:
            return Certificate(found.moment_gap, exists=False, directions=(RUNNING_SIZE,))
        return found

    def _left(self, problem: Problem, ml: float) -> float:
        """What the objective of the problem is yet to be divided by: a dispersion that is estimated without a prior."""
        free = self.family.free_dispersion and not self.penalties.any and not is_number(self.wishes.dispersion)
        return ml / problem.phi if free else 1.0

    def _checked(
        self, problem: Problem, result: Result, separation: Separation, certificate: Certificate, ml: float
    ) -> Outcome:
        """How the fit ended, as far as what was measured bears it out."""
        rounding = 0.0 if self.edge is not None else rounding_of(result, self._left(problem, ml))
        found = cross_checked(result.outcome, certificate, self.control.tolerance, rounding)
        inside = self.edge is None and self.squares is None
        return not_flat(found, result, separation, self.penalties, certificate) if inside else found

    def _log_prior(self, beta: Floats) -> float:
        parts = (self.penalties.gaussian, self.penalties.laplace)
        return sum(part.value(beta) for part in parts if part is not None)

    def _dispersion(self, sums: Totals, ml: float, problem: Problem) -> float:
        if not self.family.free_dispersion:
            return 1.0
        if is_number(self.wishes.dispersion):
            return float(self.wishes.dispersion)
        if self.penalties.any:
            return problem.phi
        if self.wishes.dispersion == "ml":
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
