"""The fit of ordered labels: thresholds and coefficients, existence of the maximum, errors from the Hessian."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.engines.linear_predictor import Block, linear_predictor
from suffice.errors import EstimateError, OptionError, listing
from suffice.fitting.control import Control
from suffice.models.glm.cumulative import CumulativeLaw, CumulativeProblem
from suffice.models.glm.design import Parameters
from suffice.models.glm.families import GaussianFamily
from suffice.models.glm.figures import Known, Wishes, certify, cross_checked, measured, not_flat, rooted, rounding_of
from suffice.models.glm.fit import Fitter
from suffice.models.glm.input import Rows
from suffice.models.glm.laws import RowLaw
from suffice.models.glm.learned import Learned
from suffice.models.glm.links import Identity, Link
from suffice.models.glm.priors import Penalties
from suffice.models.glm.problem import Average, Largest, Problem
from suffice.models.glm.rows import Read
from suffice.models.glm.separation import (
    MOST_NUMBERS,
    MOVED,
    RAY,
    STILL,
    Separation,
    column_sizes,
    dense_rows,
    likely_rays,
    newton_step,
    programme,
    sentences,
    without_rounding,
)
from suffice.models.glm.solve import Result, choose, joined, solve
from suffice.solvers.irls import irls
from suffice.solvers.penalties import GaussianPenalty, LaplacePenalty

Floats = NDArray[np.float64]

#: Labels beyond which a response is taken for a number: each has a threshold.
MOST_LABELS = 1_000


def ahead_of(penalties: Penalties, thresholds: int) -> Penalties:
    """Priors on the coefficients alone: the thresholds before them have none."""
    if penalties.conjugate is not None:
        raise OptionError("The prior on coefficients and variance is for a Gaussian response; use Normal(variance=).")
    none = np.zeros(thresholds)
    gaussian, laplace = penalties.gaussian, penalties.laplace
    if gaussian is not None:
        precision = np.concatenate((none, gaussian.precision)) if gaussian.precision.ndim == 1 else None
        if precision is None:
            precision = np.pad(gaussian.precision, (thresholds, 0))
        gaussian = GaussianPenalty(np.concatenate((none, gaussian.mean)), precision)
    if laplace is not None:
        laplace = LaplacePenalty(np.concatenate((none, laplace.mean)), np.concatenate((none, laplace.rate)))
    return Penalties(gaussian, laplace)


def problem_of(read: Read, link: Link, penalties: Penalties) -> CumulativeProblem:
    """What solvers see; the penalties have the thresholds first."""
    assert read.classes is not None
    law: Any = CumulativeLaw(link)
    return CumulativeProblem(read.rows, read.design.layout, law, penalties.gaussian, classes=len(read.classes))


@dataclass(frozen=True, eq=False)
class OrdinalFit:
    """A fit in steps; the options and the data are its fields."""

    read: Read
    link: Link
    penalties: Penalties
    wishes: Wishes
    control: Control
    covariance: str = "expected"

    @property
    def parameters(self) -> Parameters:
        """Thresholds and coefficients."""
        return self.read.parameters

    def learned(self) -> Learned:
        """Fit, and all figures of it."""
        counts = self._counts()
        warnings: list[str] = []
        problem, dropped = self._full_rank(problem_of(self.read, self.link, self.penalties), warnings)
        assert isinstance(problem, CumulativeProblem)
        start = self._start(problem, counts)
        result = measured(problem, self._solve(problem, start))
        separation = self._separation(problem, result)
        exact = rooted(problem, result, separation, self.penalties)
        if exact is not None:
            assert isinstance(exact, CumulativeProblem)
            problem, result = exact, measured(exact, joined(result, self._solve(exact, result.beta)))
            separation = self._separation(problem, result)
        value = result.last.value + self._log_prior(problem.whole(result.beta), laplace=False)
        if separation.exists is False and separation.decided is not None:
            problem, result = self._limit(problem, start, separation)
            value = result.last.value
        return self._figures(problem, result, separation, (value, self._null(problem, counts)), dropped, warnings)

    # -- before ------------------------------------------------------------------------------------------------------

    def _counts(self) -> Floats:
        """Weight of each label (K,); a label without any has no threshold that the rows could tell."""
        classes = self.read.classes
        assert classes is not None
        if len(classes) > MOST_LABELS:
            raise EstimateError(
                f"The response has {len(classes):,} labels, and each has a threshold; at most {MOST_LABELS:,} are "
                "fitted. For a response of numbers use family='gaussian', or put the values into classes."
            )

        def task(block: Block) -> Average:
            found = np.bincount(block.y.astype(np.intp), block.weights, minlength=len(classes))
            return Average(0.0, found.astype(np.float64))

        counts: Floats = self.read.rows.reduce(task).total
        empty = [classes[at] for at in np.flatnonzero(counts == 0.0).tolist()]
        if empty:
            raise EstimateError(
                f"No row has the label{'' if len(empty) == 1 else 's'} {listing(empty)} of the ordered labels "
                f"{listing(classes)}, so its thresholds run to a neighbour or to infinity. Leave it out of the states, "
                "or join it with a neighbour."
            )
        return counts

    def _full_rank(self, problem: Problem, warnings: list[str]) -> tuple[Problem, tuple[int, ...]]:
        """Columns that say the same as others, or as the thresholds, which are a constant for the coefficients."""
        if self.penalties.any:
            return problem, ()
        design = replace(self.read.design, constant=True)
        fitter = Fitter(self.read.rows, design, GaussianFamily(), Identity(), Penalties(), self.wishes, self.control)
        flat = Problem(self.read.rows, design.layout, RowLaw(GaussianFamily(), Identity()))
        dropped = fitter._full_rank(flat)[1]
        if not dropped:
            return problem, ()
        warnings += fitter.warnings
        held = len(self.parameters.ahead)
        # The constant of that design stands where the last threshold does.
        places = tuple(held - 1 + at for at in dropped)
        kept = np.setdiff1d(np.arange(problem.width), np.array(places))
        return problem.holding(kept, np.zeros(problem.width)), places

    def _start(self, problem: CumulativeProblem, counts: Floats) -> Floats:
        """The parameters asked for, else the thresholds of the shares of the labels, and no effects."""
        size = self.parameters.size
        if self.wishes.start is not None:
            given = np.asarray(self.wishes.start, dtype=np.float64).ravel()
            if given.shape != (size,):
                raise EstimateError(
                    f"start has {len(given)} numbers for {size} parameters: the {problem.classes - 1} thresholds, "
                    "then the coefficients."
                )
            if not (np.diff(given[: problem.classes - 1]) > 0.0).all():
                raise EstimateError(
                    f"start begins with the thresholds {given[: problem.classes - 1].tolist()}; expected increasing "
                    "numbers."
                )
            whole = self.parameters.internal(given)
        else:
            shares = counts.cumsum()[:-1] / counts.sum()
            whole = np.concatenate((self.link.eta(shares), np.zeros(self.read.design.size)))
        return whole if problem.kept is None else whole[problem.kept]

    # -- the maximum -------------------------------------------------------------------------------------------------

    def _solve(self, problem: Problem, start: Floats) -> Result:
        keeper = self.wishes.keeper
        return solve(
            problem if keeper is None else replace(problem, record=keeper.note),
            start,
            self.control,
            solver=choose(self.wishes.solver, problem, self.penalties.laplace),
            laplace=self.penalties.laplace,
            keep=self.wishes.keep_iterates,
            seed=self.wishes.seed,
        )

    def _log_prior(self, whole: Floats, *, laplace: bool) -> float:
        parts = (self.penalties.gaussian, self.penalties.laplace if laplace else None)
        return sum(part.value(whole) for part in parts if part is not None)

    def _separation(self, problem: CumulativeProblem, result: Result) -> Separation:
        """Whether the maximum is attained; every label has rows, so that a prior on all coefficients settles it."""
        if self.penalties.any:
            return Separation(True if self._all_penalised(problem.classes - 1) else None)
        last = result.last
        if len(last.information.body) != problem.size:
            return Separation(None)
        found = find_ordered(problem, result)
        if found.exists is None and not _is_small(problem):
            others = (_ray(problem, one) for one in likely_rays(problem, last.information, result.beta))
            found = next((one for one in others if one.exists is False), found)
        return found

    def _all_penalised(self, thresholds: int) -> bool:
        held = np.zeros(thresholds + self.read.design.size, dtype=np.bool_)
        if self.penalties.gaussian is not None:
            held |= self.penalties.gaussian.diagonal() > 0.0
        if self.penalties.laplace is not None:
            held |= self.penalties.laplace.rate > 0.0
        return bool(held[thresholds:].all())

    def _limit(
        self, problem: CumulativeProblem, start: Floats, separation: Separation
    ) -> tuple[CumulativeProblem, Result]:
        """The law that the likelihood runs to: ends that the direction moves away leave the fit of the others."""
        assert isinstance(problem.rows, Rows)
        assert separation.decided is not None
        block = problem.rows.block
        lost = separation.decided[0] + 2 * separation.decided[1]
        opened = replace(block, y=block.y + problem.classes * lost)
        rest = replace(problem, rows=Rows(opened), record=None, rooted=False)
        return rest, measured(rest, solve(rest, start, self.control, solver="irls"))

    def _null(self, problem: CumulativeProblem, counts: Floats) -> float:
        """Log-likelihood of the thresholds alone (and the offset)."""
        if not self.read.has_offset:
            return float(counts @ np.log(counts / counts.sum()))
        bare = replace(problem, rows=self.read.rows, penalty=None, record=None)
        alone = bare.holding(np.arange(problem.classes - 1), np.zeros(problem.width))
        start = self.link.eta(counts.cumsum()[:-1] / counts.sum())
        return float(irls(alone.evaluate, start, Control(tolerance=1e-9)).outcome.state.objective)

    # -- figures -----------------------------------------------------------------------------------------------------

    def _figures(
        self,
        problem: CumulativeProblem,
        result: Result,
        separation: Separation,
        values: tuple[float, float],
        dropped: tuple[int, ...],
        warnings: list[str],
    ) -> Learned:
        read, (value, null) = self.read, values
        whole = problem.whole(result.beta)
        found = self.parameters.public(whole)
        held = problem.classes - 1
        certificate = certify(problem, result, self.penalties, separation, Known(True, 0.0), weight=read.weight)
        outcome = cross_checked(result.outcome, certificate, self.control.tolerance, rounding_of(result))
        outcome = not_flat(outcome, result, separation, self.penalties, certificate)
        direction = None
        if separation.exists is False and separation.direction is not None:
            direction = self.parameters.public(separation.direction)[:, None]
            certificate = replace(certificate, directions=sentences(self.parameters, direction))
        free = problem.size
        return Learned(
            read.design,
            "ordinal",
            self.link.name,
            found[held:, None],
            result.last.information,
            log_likelihood=value,
            objective=value - self._log_prior(whole, laplace=True),
            deviance=-2.0 * value,
            null_deviance=-2.0 * null,
            weight=read.weight,
            df_resid=read.weight - free,
            n_params=free,
            classes=read.classes,
            direction=direction,
            dropped=dropped,
            sandwich=self._sandwich(problem, result) if self.covariance == "robust" and direction is None else None,
            precision=None if self.penalties.gaussian is None else self.penalties.gaussian.diagonal(),
            certificate=certificate,
            outcome=outcome,
            iterates=tuple(self.parameters.public(problem.whole(one)) for one in result.iterates),
            method=result.method,
            warnings=tuple(warnings),
            thresholds=found[:held],
        )

    def _sandwich(self, problem: CumulativeProblem, result: Result) -> Floats:
        """I^-1 (sum over rows of squared scores) I^-1."""
        kept = np.arange(problem.width) if problem.kept is None else problem.kept
        middle = problem.score_squares(problem.whole(result.beta))[np.ix_(kept, kept)]
        bread = result.last.information.inverse()
        whole = np.zeros((problem.width, problem.width))
        whole[np.ix_(kept, kept)] = bread @ middle @ bread
        return self.parameters.public_matrix(whole)


# -- separation --------------------------------------------------------------------------------------------------------


def find_ordered(problem: CumulativeProblem, result: Result) -> Separation:
    """A direction along which no row's upper end falls, no lower end rises, and some end moves for ever.

    `decided` (2, n) says which upper and which lower ends the direction found moves away.
    """
    step = newton_step(problem, result)
    if result.last.information.definite and _share_of_slopes(problem, result.beta, step) <= STILL:
        return Separation(True)
    if not _is_small(problem):
        return _ray(problem, step)
    assert isinstance(problem.rows, Rows)
    block, held = problem.rows.block, problem.classes - 1
    matrix = np.concatenate([dense_rows(problem, part) for part in problem.layout.parts(block)])
    codes = block.y.astype(np.intp)
    edges = np.vstack((np.zeros(held), np.eye(held), np.zeros(held)))
    kept = np.ones(block.rows, dtype=np.bool_) if block.weights is None else block.weights > 0.0
    has_end = np.stack((codes < held, codes > 0)) & kept
    upper = np.column_stack((edges[codes + 1], -matrix))[has_end[0]]
    lower = np.column_stack((-edges[codes], matrix))[has_end[1]]
    constraints = np.concatenate((upper, lower))
    free = slice(None) if problem.kept is None else problem.kept
    found = programme(constraints[:, free], np.zeros(len(constraints), dtype=np.bool_))
    if found.direction is None or found.decided is None:
        return found
    direction = np.zeros(problem.width)
    direction[free] = found.direction
    decided = np.zeros((2, block.rows), dtype=np.bool_)
    decided[has_end] = found.decided
    return Separation(False, direction, decided)


def _is_small(problem: CumulativeProblem) -> bool:
    """Whether a linear programme decides."""
    return isinstance(problem.rows, Rows) and 2 * problem.rows.rows * problem.size <= MOST_NUMBERS


def _ray(problem: CumulativeProblem, step: Floats) -> Separation:
    """Whether a direction itself separates."""
    sizes = np.concatenate((np.ones(problem.classes - 1), column_sizes(problem)))
    step = without_rounding(step, sizes)
    worst, far = _moves(problem, step)
    return Separation(False, step) if far > MOVED and worst <= RAY else Separation(None)


def _share_of_slopes(problem: CumulativeProblem, beta: Floats, step: Floats) -> float:
    """The most that a Newton step changes the slope of a row in one of its ends, as a share of it.

    Along a separating direction every end that moves gains, as in `separation.share_of_slopes`; here the information of
    a row is the matrix of its second derivatives in both ends.
    """
    held = problem.classes - 1
    whole, still = problem.whole(beta), np.concatenate(([0.0], step[:held], [0.0]))

    def task(block: Block) -> Largest:
        found = 0.0
        for part in problem.layout.parts(block):
            ends = problem.ends(part, whole[:held], whole[held:])
            _, slopes, (upper, mixed, lower) = problem._cumulative(ends.upper, ends.lower)
            along = linear_predictor(problem.layout, replace(part, offset=None), step[held:])
            up, low = still[ends.above] - along, still[ends.below] - along
            up, low = np.where(np.isfinite(ends.upper), up, 0.0), np.where(np.isfinite(ends.lower), low, 0.0)
            for change, slope, end in (
                (upper * up + mixed * low, slopes[0], ends.upper),
                (mixed * up + lower * low, slopes[1], ends.lower),
            ):
                moves = np.isfinite(end) & (change != 0.0)
                moves &= True if part.weights is None else part.weights > 0.0
                size = np.abs(slope[moves])
                share = np.divide(np.abs(change[moves]), size, out=np.full_like(size, np.inf), where=size > 0.0)
                found = max(found, float(share.max(initial=0.0)))
        return Largest(found)

    return problem.rows.reduce(task).value


def _moves(problem: CumulativeProblem, step: Floats) -> tuple[float, float]:
    """How far a step moves an end the wrong way, as a share of its terms, and how far it moves any, at most."""
    theta, beta = step[: problem.classes - 1], step[problem.classes - 1 :]

    def task(block: Block) -> Largest:
        wrong = 0.0
        for part in problem.layout.parts(block):
            codes = part.y.astype(np.intp)
            along = linear_predictor(problem.layout, replace(part, offset=None), beta)
            up = np.append(theta, 0.0)[codes] - along
            low = np.append(0.0, theta)[codes] - along
            against = np.maximum(np.where(codes < len(theta), -up, 0.0), np.where(codes > 0, low, 0.0))
            sparse = None if part.sparse is None else abs(part.sparse)
            sizes = replace(part, dense=np.abs(part.dense), sparse=sparse, offset=None)
            most = linear_predictor(problem.layout, sizes, np.abs(beta))
            most += np.abs(np.where(-up > low, np.append(theta, 0.0)[codes], np.append(0.0, theta)[codes]))
            share = np.divide(against, most, out=np.zeros_like(most), where=most > 0.0)
            if part.weights is not None:
                share = share[part.weights > 0.0]
            wrong = max(wrong, float(share.max(initial=0.0)))
        return Largest(wrong)

    def reach(block: Block) -> Largest:
        bare = [replace(part, offset=None) for part in problem.layout.parts(block)]
        found = [float(np.abs(linear_predictor(problem.layout, part, beta)).max(initial=0.0)) for part in bare]
        return Largest(max(found, default=0.0))

    far = problem.rows.reduce(reach).value + float(np.abs(theta).max(initial=0.0))
    return problem.rows.reduce(task).value, far
