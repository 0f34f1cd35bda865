"""The search for the coefficients of a single linear predictor: start, solver, dispersion and size, existence."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from suffice.array_types import Flags, Floats
from suffice.errors import EstimateError, ExistenceWarning, Remark, SufficeWarning
from suffice.families.base import as_numbers
from suffice.fitting.named import in_order
from suffice.models.glm.certificate import CONCAVE, nothing_left
from suffice.models.glm.covariances import RowEnd, expect_null_deviance, null_deviance
from suffice.models.glm.edge import OnEdge, edge_rows, on_edge, solve_edged, solve_rest
from suffice.models.glm.existence import EDGED, LIMITED, RISING, ExistenceQuestion
from suffice.models.glm.families import NegativeBinomialFamily
from suffice.models.glm.family import RowDistribution, StartDistribution, Totals
from suffice.models.glm.fit_options import FitOptions
from suffice.models.glm.fitted import GLMFitted
from suffice.models.glm.problem import RegressionProblem, move_bound, totals, totals_question
from suffice.models.glm.rank import checked_sums, column_rank
from suffice.models.glm.regression import Ended, Factory, IteratedRegression
from suffice.models.glm.rows import RegressionData
from suffice.models.glm.sample import some_rows
from suffice.models.glm.separation import Separation, newton_step, rules_out
from suffice.models.glm.size import POISSON, at_rounding, best_size
from suffice.models.glm.solve import Result, choose, joined, refuse_spread, told_to_stop
from suffice.models.glm.squares import (
    PERFECTLY,
    Squares,
    least_spread,
    no_dispersion,
    rounding_of_y,
    solve_squares,
)
from suffice.solvers.irls import Last

#: Rounds of coefficients and dispersion, each given the other.
ROUNDS = 100
#: Linear predictors up to this size have means whose sums do not overflow, however many rows there are.
MOST_PREDICTOR = 600.0


#: Why there is no fit where only mean and variance are known and every row is fitted.
SEPARATED_QUASI = (
    "Every row is fitted, as where columns separate the response: nothing is left for the dispersion. Leave columns "
    "out, or use the family of the same variance that has a likelihood."
)
#: What the report says of a response that the family does not draw.
QUASI = Remark(
    "the response holds numbers that are no counts: coefficients are those of quasi-likelihood; covariance='robust' "
    "gives errors that do not rest on the variance of the family",
    SufficeWarning,
)


class PredictorSearch(IteratedRegression):
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
        self.sums = checked_sums(data.blocks, self.family)
        if self.sums.quasi:
            self.notes.append(QUASI)
        self.doubtful = False
        self.first_step: Floats | None = None
        self.squares: Squares | None = None
        self.edge: OnEdge | None = None

    @property
    def distribution(self) -> RowDistribution:
        """Family and link."""
        return RowDistribution(self.family, self.link)

    @property
    def weight(self) -> float:
        """How many rows the rows stand for, trials counted each."""
        return self.sums.weight

    @property
    def dispersion(self) -> float | None:
        """The dispersion where it is known."""
        return self.options.known_dispersion

    def problem(self) -> RegressionProblem:
        """What solvers see, in units of a dispersion that is known beside a prior."""
        known = self.dispersion if self.family.free_dispersion and self.penalties.any else None
        phi = 1.0 if known is None else known
        return RegressionProblem(self.rows, self.design.layout, self.distribution, self.penalties.gaussian, phi)

    @property
    def one_run(self) -> bool:
        """Unless dispersion or size are found in turn with the coefficients."""
        return not (self.options.free_size or (self.has_unit and self.dispersion is None))

    # -- start -------------------------------------------------------------------------------------------------------

    def start(self, problem: RegressionProblem) -> Floats:
        """The coefficients asked for, else zero where that is a point of a well-scaled model, else least squares."""
        size = problem.layout.size
        if self.begin is not None:
            given = as_numbers(in_order(self.begin, self.design.names, "start"), "start").ravel()
            if given.shape != (size,):
                raise EstimateError(
                    f"start has {len(given)} numbers; expected {size}, one for each coefficient, intercept first."
                )
            inner = self.design.internal(given)
            return inner if problem.kept is None else inner[problem.kept]
        zero = np.zeros(problem.size)
        if self._from_zero:
            return zero
        if self.options.given["keep_iterates"] and math.isfinite(problem.objective(zero)[0]):
            return zero
        mean = self.sums.mean
        some = some_rows(problem)[0] if self.warm and self.first_step is None else None
        step = self._least_squares(some or problem, mean) if self.first_step is None else self.first_step
        for candidate in (step, self._flat(mean, zero)):
            if candidate is None:
                continue
            if self._near_enough(problem, candidate):
                return candidate
            problem.expect(candidate)
            if self.has_unit:
                self._expect_totals(problem.whole(candidate))
            if math.isfinite(problem.objective(candidate)[0]):
                return candidate
        if math.isfinite(problem.objective(zero)[0]):
            return zero
        raise EstimateError(
            f"No start was found for which the link {self.link.name!r} gives every row a possible mean. Give start=, "
            f"or {'look at the offset' if self.link.name == 'log' else 'use the log link'}."
        )

    def _near_enough(self, problem: RegressionProblem, beta: Floats) -> bool:
        """Whether the sizes of the columns alone show that no row's mean overflows."""
        if self.data.has_offset or not self.distribution.law:
            return False
        return move_bound(problem, problem.whole(beta)) <= MOST_PREDICTOR

    @property
    def _from_zero(self) -> bool:
        """Whether zero is a point of a well-scaled model, at which the fit begins."""
        return self.begin is None and (self.link.probability or self.pair == ("gaussian", "identity"))

    def _least_squares(self, problem: RegressionProblem, mean: float) -> Floats:
        distribution = StartDistribution(self.distribution, mean)
        _, gradient, information = replace(problem, distribution=distribution).evaluate(np.zeros(problem.size))
        return information.solve(gradient)

    def _flat(self, mean: float, zero: Floats) -> Floats | None:
        if not self.design.constant or not mean > 0.0:
            return None
        flat = zero.copy()
        flat[0] = float(self.link.eta(np.array([mean]))[0])
        return flat

    # -- solve -------------------------------------------------------------------------------------------------------

    def climb(self, problem: RegressionProblem, start: Floats) -> tuple[RegressionProblem, Result]:
        """Coefficients, and with them the size and a dispersion beside a prior."""
        problem, result = self._scaled_solve(problem, start)
        return self._with_shape(problem, result)

    def climb_on(self, problem: RegressionProblem, before: Result) -> tuple[RegressionProblem, Result]:
        """The same from a result on."""
        return self._with_shape(problem, joined(before, self.step(problem, before.beta)))

    def _with_shape(self, problem: RegressionProblem, result: Result) -> tuple[RegressionProblem, Result]:
        return self._with_dispersion(*self._with_size(problem, result))

    @property
    def inside(self) -> bool:
        """Whether the information of the rows says what is left: not of double-double sums, nor on an edge."""
        return self.squares is None and self.edge is None

    @property
    def pair(self) -> tuple[str, str]:
        """Family and link by name."""
        return self.family.rows_like, self.link.name

    @property
    def has_unit(self) -> bool:
        """Whether the response has a unit, so that steps are measured by its dispersion; shares have none."""
        return self.family.free_dispersion and self.family.response == "numbers"

    @property
    def _edged(self) -> bool:
        """Whether the best means may be on the edge of what the link allows."""
        return self.pair in EDGED and self.penalties.laplace is None

    def step(self, problem: RegressionProblem, start: Floats) -> Result:
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

    def _scaled_solve(self, problem: RegressionProblem, start: Floats) -> tuple[RegressionProblem, Result]:
        """Solve in units of the dispersion, so that the tolerance does not depend on the unit of the response.

        The dispersion of the start is too large; where that of the result is much smaller, the fit goes on from there.
        """
        if not self.has_unit or self.penalties.any:
            return problem, self.step(problem, start)
        closed = self._by_squares(problem) if self.doubtful else None
        if closed is not None:
            return closed
        result: Result | None = None
        for _ in range(ROUNDS):
            problem.expect(start)
            phi = self._spread(self._totals_at(problem.whole(start)))
            if not phi > 0.0:
                return self._perfectly(problem)
            problem = replace(problem, phi=phi)
            result = joined(result, self.step(problem, start))
            start = result.beta
            after = self._spread(self._totals_at(problem.whole(start)))
            if not after > 0.0:
                return self._perfectly(problem)
            if after > 0.25 * phi or told_to_stop(result):
                break
        assert result is not None
        return problem, result

    def _perfectly(self, problem: RegressionProblem) -> tuple[RegressionProblem, Result]:
        """A fit that leaves nothing to the dispersion: least squares, or an error where there is no such fit."""
        closed = self._by_squares(problem)
        if closed is None:
            raise no_dispersion()
        return closed

    def _spread(self, sums: Totals) -> float:
        """The dispersion by deviance, 0 where the fit is perfect, or the one that is known."""
        if self.dispersion is not None:
            return self.dispersion
        least = least_spread(self.family, self.sums)
        spread = refuse_spread("The deviance", sums.deviance) / sums.weight
        return spread if spread > least else 0.0

    def _by_squares(self, problem: RegressionProblem) -> tuple[RegressionProblem, Result] | None:
        """Least squares in closed form, for a Gaussian response of which no other solver is asked; else None."""
        closed = solve_squares(problem) if self.warm and self.pair == ("gaussian", "identity") else None
        if closed is None:
            return None
        self.squares, result, left = closed
        if self.squares.perfect and self.dispersion is None:
            self.notes.append(PERFECTLY)
        phi = max(left, rounding_of_y(self.sums)) if self.dispersion is None else self.dispersion
        last = replace(result.last, value=result.last.value / phi, information=result.last.information.times(1.0 / phi))
        return replace(problem, phi=phi), replace(result, last=last)

    def full_rank(self, problem: RegressionProblem) -> tuple[RegressionProblem, tuple[int, ...]]:
        """Find columns that say the same; choose the exact root where columns nearly do."""
        expect_null_deviance(self.data, self.distribution, self.sums.mean)
        if self._from_zero:
            problem.expect(np.zeros(problem.size))
        if self.penalties.any:
            return problem, ()
        rank = column_rank(problem, self.design, self.distribution, self.sums.mean, self.options.given["collinear"])
        self.notes += rank.notes
        self.doubtful, self.first_step = rank.doubtful, rank.step
        if not rank.dropped:
            return replace(problem, rooted=rank.rooted), ()
        kept = np.setdiff1d(np.arange(problem.layout.size), np.array(rank.dropped))
        return problem.holding(kept, np.zeros(problem.layout.size)), rank.dropped

    # -- dispersion --------------------------------------------------------------------------------------------------

    def _with_dispersion(self, problem: RegressionProblem, result: Result) -> tuple[RegressionProblem, Result]:
        """With a prior the best coefficients depend on phi: each is found given the other, until neither moves."""
        if not (self.family.free_dispersion and self.penalties.any) or self.dispersion is not None:
            return problem, result
        for _ in range(ROUNDS):
            new = self.family.ml_dispersion(self._totals_at(problem.whole(result.beta)))
            if not new > 0.0:
                raise no_dispersion()
            if abs(new - problem.phi) <= 1e-12 * new:
                break
            problem = replace(problem, phi=new)
            if told_to_stop(result):  # What is reported is about the best dispersion for the coefficients all the same.
                break
            result = joined(result, self.step(problem, result.beta))
        return problem, result

    def _with_size(self, problem: RegressionProblem, result: Result) -> tuple[RegressionProblem, Result]:
        """The size of a negative binomial distribution, by Newton's method in its log, and the coefficients in turn."""
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
            better = best_size(self.rows, problem.layout, self.link, problem.whole(result.beta), begin)
            if better.size == family.size:
                break
            moved = abs(math.log(better.size / family.size))
            self.family = better
            problem = replace(problem, distribution=self.distribution)
            result = joined(result, self.step(problem, result.beta))
            if moved < 1e-10 or at_rounding(moved, before):
                break
            before = moved
        return problem, result

    # -- existence ---------------------------------------------------------------------------------------------------

    def settled(self, problem: RegressionProblem, result: Result) -> tuple[Result, Separation]:
        """Whether the maximum is attained. What the information of some rows cannot tell, that of all does."""
        if self.pair in LIMITED and self.family.name != "gaussian" and not self.penalties.any:
            return result, Separation(None)  # No direction is ever found; whether there is a maximum the judge says.
        if not self.has_unit:
            self._expect_totals(problem.whole(result.beta))
        separation = self.separation(problem, result)
        if separation.exists is None and self._by_some(problem, result):
            if told_to_stop(result):
                result = replace(
                    result, last=Last(result.beta, *problem.evaluate(result.beta)), later=None, origin=None
                )
            else:
                more = self.run_solver(problem, result.beta, "irls", warm=False)
                result = replace(joined(result, more), method=f"{result.method}, then IRLS")
            separation = self.separation(problem, result)
        if separation.exists is not True and separation.direction is None:
            self.edge = self._edge_at(problem, result.beta)
        return result, separation

    def separation(self, problem: RegressionProblem, result: Result) -> Separation:
        """Whether the maximum is attained: inside, or on the edge of what the link allows."""
        asked = self._question(problem)
        if self._by_some(problem, result):
            step = newton_step(problem, result)
            still = rules_out(problem, asked.kind, result.beta, step, result.origin, result.stands)
            return Separation(True if still and asked.pair not in EDGED else None)
        separation = asked.answer(result)
        if separation.exists is None and asked.pair in CONCAVE and not self.options.free_size:
            return separation if self._edge_at(problem, result.beta) is None else Separation(False)
        return separation

    def _by_some(self, problem: RegressionProblem, result: Result) -> bool:
        """Whether the information of some rows is asked for a separating direction."""
        return result.origin is not None and self.pair in RISING and problem.size > 0 and not self.penalties.any

    def _edge_at(self, problem: RegressionProblem, beta: Floats) -> OnEdge | None:
        """The edge of what the link allows, where a point is on it."""
        rows = edge_rows(problem) if self._edged else None
        return None if rows is None else on_edge(rows, beta)

    def _question(self, problem: RegressionProblem) -> ExistenceQuestion:
        known = not self.family.free_dispersion or self.dispersion is not None
        assert isinstance(problem.distribution, RowDistribution)
        return ExistenceQuestion(
            problem, self.design, problem.distribution.family, self.link, self.penalties, self.sums.mean, known
        )

    def left_by(self, problem: RegressionProblem, decided: Flags) -> RegressionProblem | None:
        """Rows that are decided may have any linear predictor, which is why they must not be there at all."""
        block, left = problem.rows.block, ~decided
        if not left.any() or (block.weights is not None and not block.weights[left].any()):
            return None
        return replace(problem.on(block.chosen(np.flatnonzero(left))), rooted=False)

    def limit(
        self, problem: RegressionProblem, result: Result, separation: Separation, start: Floats
    ) -> tuple[RegressionProblem, Result]:
        """The distribution that the likelihood runs to: rows that the direction decides leave the fit of the others."""
        if separation.direction is None:
            return problem, result
        if separation.decided is None:
            reduced = self.left_along(problem, separation.direction)
        else:
            reduced = self.left_by(problem, separation.decided)
        if reduced is problem:
            return problem, result
        if reduced is None:
            none = nothing_left(problem)
            rows = self.data.blocks.block.chosen(slice(0, 0)) if self.data.blocks.in_memory else None
            problem = problem if rows is None else problem.on(rows)
            return problem, replace(result, beta=none.beta, last=none.last, later=None)
        zero = np.zeros(problem.size)
        begin = zero if math.isfinite(reduced.objective(zero)[0]) else result.beta
        rest, self.edge = solve_rest(reduced, begin, self.control, edged=self._edged)
        return reduced, rest

    # -- figures -----------------------------------------------------------------------------------------------------

    def fitted(self, ended: Ended) -> GLMFitted:
        """The coefficients with their information at the dispersion that is reported."""
        problem, free, known = ended.problem, self.family.free_dispersion, self.dispersion
        beta = problem.whole(ended.result.beta)
        whole = problem.rows is self.rows
        sums = self._totals_at(beta) if whole else totals(problem.rows, problem.layout, self.distribution, beta)
        sums = replace(sums, weight=self.weight)
        if self.squares is not None:
            left = self._left(self.squares, ended.result.beta)
            sums = replace(sums, deviance=left, pearson=left)
        ml = self.family.ml_dispersion(sums) if free else 1.0
        dispersion = self._dispersion(sums, ml, problem)
        if not self.family.has_likelihood:  # No dispersion is the likeliest.
            ml = dispersion
        if free and not (known or (problem.phi if self.penalties.any else ml)) > 0.0:
            raise no_dispersion()
        size = self.family.size if isinstance(self.family, NegativeBinomialFamily) else None
        if self._size_runs(size):
            limit = "the size of the negative binomial distribution runs to infinity: the counts are Poisson"
            self.notes.append(Remark(limit, ExistenceWarning))
        if self.edge is not None:
            edge = f"the {' and the '.join(self.edge.words)}: there are no standard errors"
            self.notes.append(Remark(edge, ExistenceWarning))
        # The theory of errors is about points inside.
        information = ended.result.information if self.edge is None else nothing_left(problem).last.information
        if free and not self.penalties.any:
            information = information.times(problem.phi / dispersion)
        coefficients = len(beta) - len(ended.dropped)
        estimated = int(free and known is None) + int(self.options.free_size)
        end = RowEnd(self.data, self.distribution, beta, information, dispersion, ended.dropped)
        return GLMFitted(
            **{**self.shared_figures(ended), "information": information},
            beta=self.design.public(beta)[:, None],
            dispersion=dispersion,
            ml_dispersion=ml,
            size=size,
            deviance=sums.deviance,
            null_deviance=null_deviance(self.data, self.distribution, self.sums.mean),
            pearson=sums.pearson,
            df_resid=self.data.weight - coefficients,
            quasi=self.sums.quasi,
            n_params=coefficients - len(self.corners(ended)) + estimated,
            sandwich=None if ended.separation.exists is False else end.covariance(self.options.given["covariance"]),
            iterates=tuple(
                self.design.public(one) if len(one) == self.design.size else one for one in ended.result.iterates
            ),
        )

    def _totals_at(self, whole: Floats) -> Totals:
        """What all rows add up to at all coefficients."""
        question = totals_question(self.design.layout, self.distribution, whole, self.problem().products)
        return self.rows.once(self._totals_name(whole), question)

    def _expect_totals(self, whole: Floats) -> None:
        """Let the next round bring them."""
        if not self.rows.in_memory:
            question = totals_question(self.design.layout, self.distribution, whole)
            self.rows.expect(self._totals_name(whole), question)

    def _totals_name(self, whole: Floats) -> Hashable:
        return "totals", self.family, self.link.name, whole.tobytes()

    def _left(self, squares: Squares, beta: Floats) -> float:
        """The sum of squares that coefficients leave, of a perfect fit no less than the rounding of the response."""
        perfect = squares.perfect and self.dispersion is None
        return max(squares.left(beta), self.weight * rounding_of_y(self.sums) if perfect else 0.0)

    def _size_runs(self, size: float | None) -> bool:
        """Whether the likelihood rises with the size of a negative binomial distribution for ever."""
        return self.options.free_size and size is not None and size >= POISSON

    def _dispersion(self, sums: Totals, ml: float, problem: RegressionProblem) -> float:
        if not self.family.free_dispersion:
            return 1.0
        if self.dispersion is not None:
            return self.dispersion
        if self.penalties.any:
            return problem.phi
        if self.options.dispersion == "ml":
            return ml
        left = self.data.weight - problem.size
        if not left > 0.0:
            raise EstimateError(
                f"There are {self.data.weight:g} rows for {problem.size} coefficients, so that none are left for "
                "Pearson's estimate of the dispersion. Leave columns out, give a prior, or set dispersion= to a number."
            )
        dispersion = refuse_spread("Pearson's statistic", sums.pearson) / left
        if not dispersion > 0.0:
            raise no_dispersion() if self.family.has_likelihood else EstimateError(SEPARATED_QUASI)
        return dispersion
