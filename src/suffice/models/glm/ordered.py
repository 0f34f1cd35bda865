"""Ordered labels: thresholds and coefficients together, existence of the maximum, errors from the Hessian."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from suffice.array_types import Flags, Floats
from suffice.engines.linear_predictor import CoefficientLayout, RowBlock, linear_predictor
from suffice.errors import EstimateError, listing
from suffice.families.base import as_numbers
from suffice.fitting.control import Control
from suffice.fitting.named import in_order
from suffice.models.glm.cumulative import CumulativeProblem, CumulativeRows, cumulative_problem
from suffice.models.glm.error_kinds import WHITE
from suffice.models.glm.families import GaussianFamily
from suffice.models.glm.family import RowDistribution
from suffice.models.glm.fit_options import FitOptions
from suffice.models.glm.fitted import GLMFitted
from suffice.models.glm.labels import label_counts
from suffice.models.glm.links import Identity
from suffice.models.glm.priors import CoefficientPenalties, ahead_of
from suffice.models.glm.problem import Largest, RegressionProblem
from suffice.models.glm.rank import checked_sums, column_rank
from suffice.models.glm.regression import Ended, Factory, IteratedRegression
from suffice.models.glm.rows import RegressionData
from suffice.models.glm.separation import (
    IN_PLACE,
    MOVED,
    RAY,
    STILL,
    Separation,
    column_sizes,
    dense_rows,
    is_small,
    likely_rays,
    newton_step,
    programme,
    without_rounding,
)
from suffice.models.glm.solve import Result
from suffice.solvers.irls import irls

#: Labels beyond which a response is taken for a number: each has a threshold.
MOST_LABELS = 1_000


class OrderedRegression(IteratedRegression):
    """Cumulative links; the parameters are ``[thresholds][coefficients]``."""

    def __init__(self, options: FitOptions, data: RegressionData, factory: Factory) -> None:
        """Count the labels."""
        super().__init__(options, data, factory)
        assert data.classes is not None
        self.classes = data.classes
        self.counts = self._counts()

    def _penalties(self) -> CoefficientPenalties:
        return ahead_of(super()._penalties(), len(self.data.ahead))

    @property
    def warm(self) -> bool:
        """Never: the fit of some rows is about one linear predictor without thresholds."""
        return False

    # -- before ------------------------------------------------------------------------------------------------------

    def problem(self) -> RegressionProblem:
        """What solvers see; the penalties have the thresholds first."""
        data = self.data
        return cumulative_problem(
            data.blocks, data.design.layout, self.options.link, len(self.classes), self.penalties.gaussian
        )

    def _counts(self) -> Floats:
        """Weight of each label (K,); a label without any has no threshold that the rows could tell."""
        classes = self.classes
        if len(classes) > MOST_LABELS:
            raise EstimateError(
                f"The response has {len(classes):,} labels, and each has a threshold; at most {MOST_LABELS:,} are "
                "fitted. For a response of numbers use family='gaussian', or put the values into classes."
            )

        counts = label_counts(self.data.blocks, len(classes))
        empty = [classes[label] for label in np.flatnonzero(counts == 0.0).tolist()]
        if empty:
            raise EstimateError(
                f"No row has the class{'' if len(empty) == 1 else 'es'} {listing(empty)} of the ordered labels "
                f"{listing(classes)}, so its thresholds run to a neighbour or to infinity. Leave it out of the states, "
                "or join it with a neighbour."
            )
        return counts

    def full_rank(self, problem: RegressionProblem) -> tuple[RegressionProblem, tuple[int, ...]]:
        """Columns that say the same as others, or as the thresholds, which are a constant for the coefficients."""
        if self.begin is None:
            problem.expect(self.start(problem))
        if self.penalties.any:
            return problem, ()
        design, rows = replace(self.data.design, constant=True), self.data.blocks
        distribution, mean = RowDistribution(GaussianFamily(), Identity()), checked_sums(rows).mean
        rank = column_rank(
            RegressionProblem(rows, design.layout, distribution),
            design,
            distribution,
            mean,
            self.options.given["collinear"],
        )
        self.notes += rank.notes
        if not rank.dropped:
            return problem, ()
        # The constant of that design stands where the last threshold does.
        places = tuple(len(self.data.ahead) - 1 + column for column in rank.dropped)
        kept = np.setdiff1d(np.arange(problem.width), np.array(places))
        return problem.holding(kept, np.zeros(problem.width)), places

    def start(self, problem: RegressionProblem) -> Floats:
        """The parameters asked for, else the thresholds of the shares of the labels, and no effects."""
        parameters, held = self.data.parameters, len(self.classes) - 1
        if self.begin is not None:
            given = as_numbers(in_order(self.begin, parameters.names, "start"), "start").ravel()
            if given.shape != (parameters.size,):
                raise EstimateError(
                    f"start has {len(given)} numbers for {parameters.size} parameters: the {held} thresholds, "
                    "then the coefficients."
                )
            if not (np.diff(given[:held]) > 0.0).all():
                raise EstimateError(
                    f"start begins with the thresholds {given[:held].tolist()}; expected increasing numbers."
                )
            whole = parameters.internal(given)
        else:
            whole = np.concatenate((self._flat_thresholds(), np.zeros(self.data.design.size)))
        return whole if problem.kept is None else whole[problem.kept]

    def _flat_thresholds(self) -> Floats:
        """The thresholds of the shares of the labels."""
        return self.options.link.eta(self.counts.cumsum()[:-1] / self.counts.sum())

    # -- the maximum -------------------------------------------------------------------------------------------------

    def separation(self, problem: RegressionProblem, result: Result) -> Separation:
        """Whether the maximum is attained; every label has rows, so that a prior on all coefficients settles it."""
        assert isinstance(problem, CumulativeProblem)
        if self.penalties.any:
            return Separation(True if self._all_penalised() else None)
        information = result.last.information
        if len(information.body) != problem.size:
            return Separation(None)
        separation = find_ordered(problem, result)
        if separation.exists is None and not is_small(problem, 2):
            others = (_ray(problem, one) for one in likely_rays(problem, information, result.beta))
            separation = next((one for one in others if one.exists is False), separation)
        return separation

    def _all_penalised(self) -> bool:
        held = np.zeros(self.data.parameters.size, dtype=np.bool_)
        if self.penalties.gaussian is not None:
            held |= self.penalties.gaussian.diagonal() > 0.0
        if self.penalties.laplace is not None:
            held |= self.penalties.laplace.rate > 0.0
        return bool(held[len(self.classes) - 1 :].all())

    def limit(
        self, problem: RegressionProblem, result: Result, separation: Separation, start: Floats
    ) -> tuple[RegressionProblem, Result]:
        """The limit distribution of the likelihood: ends that the direction moves away leave the fit of the others."""
        if separation.decided is None:
            return problem, result
        rest = self.left_by(problem, separation.decided)
        return rest, self.run_solver(rest, start, "irls")

    def left_by(self, problem: RegressionProblem, decided: Flags) -> RegressionProblem:
        """Rows without the ends that are decided (2, n), upper and lower ones."""
        block = problem.rows.block
        opened = replace(block, y=block.y + len(self.classes) * (decided[0] + 2 * decided[1]))
        return replace(problem.on(opened), rooted=False)

    def separates(self, problem: RegressionProblem, direction: Floats) -> bool:
        """Whether no upper end falls and no lower end rises."""
        assert isinstance(problem, CumulativeProblem)
        worst, far = _moves(problem, direction)
        return far > 0.0 and worst <= RAY

    def decided(self, problem: RegressionProblem, direction: Floats) -> Flags | None:
        """Upper and lower ends (2, n) that move away."""
        if not is_small(problem, 2):
            return None
        held, codes = len(self.classes) - 1, problem.rows.block.y.astype(np.intp)
        theta, bare = direction[:held], replace(problem.rows.block, offset=None)
        parts = [linear_predictor(problem.layout, part, direction[held:]) for part in problem.layout.parts(bare)]
        along = np.concatenate(parts)
        up = np.where(codes < held, np.append(theta, 0.0)[codes] - along, 0.0)
        low = np.where(codes > 0, along - np.append(0.0, theta)[codes], 0.0)
        ends = np.stack((up, low))
        return np.asarray(ends > IN_PLACE * np.abs(ends).max(initial=0.0))

    def _null(self, problem: RegressionProblem) -> float:
        """Log-likelihood of the thresholds alone (and the offset)."""
        if not self.data.has_offset:
            return float(self.counts @ np.log(self.counts / self.counts.sum()))
        bare = replace(problem, rows=self.data.blocks, penalty=None, record=None)
        alone = bare.holding(np.arange(len(self.classes) - 1), np.zeros(problem.width))
        return float(irls(alone.evaluate, self._flat_thresholds(), Control(tolerance=1e-9)).outcome.state.objective)

    # -- figures -----------------------------------------------------------------------------------------------------

    def fitted(self, ended: Ended) -> GLMFitted:
        """Thresholds and coefficients."""
        problem, result, parameters = ended.problem, ended.result, self.data.parameters
        whole, held = parameters.public(problem.whole(result.beta)), len(self.classes) - 1
        robust = self.options.given["covariance"] in WHITE and ended.direction is None
        return GLMFitted(
            **self.shared_figures(ended),
            beta=whole[held:, None],
            thresholds=whole[:held],
            deviance=-2.0 * self.likelihood(ended),
            null_deviance=-2.0 * self._null(problem),
            df_resid=self.data.weight - problem.size,
            n_params=problem.size - len(self.corners(ended)),
            sandwich=self._sandwich(ended) if robust else None,
            iterates=tuple(parameters.public(problem.whole(one)) for one in result.iterates),
        )

    def _sandwich(self, ended: Ended) -> Floats:
        """I^-1 (sum over rows of squared scores) I^-1."""
        problem, result = ended.problem, ended.result
        assert isinstance(problem, CumulativeProblem)
        kept = np.arange(problem.width) if problem.kept is None else problem.kept
        middle = problem.score_squares(problem.whole(result.beta))[np.ix_(kept, kept)]
        bread = result.last.information.inverse()
        whole = np.zeros((problem.width, problem.width))
        whole[np.ix_(kept, kept)] = bread @ middle @ bread
        return self.data.parameters.public_matrix(whole)


# -- separation --------------------------------------------------------------------------------------------------------


def find_ordered(problem: CumulativeProblem, result: Result) -> Separation:
    """A direction along which no row's upper end falls, no lower end rises, and some end moves for ever.

    `decided` (2, n) says which upper and which lower ends the direction found moves away.
    """
    step = newton_step(problem, result)
    if result.last.information.definite and _share_of_slopes(problem, result.beta, step) <= STILL:
        return Separation(True)
    if not is_small(problem, 2):
        return _ray(problem, step)
    block, held = problem.rows.block, problem.classes - 1
    matrix = np.concatenate([dense_rows(problem.layout, part) for part in problem.layout.parts(block)])
    codes = block.y.astype(np.intp)
    edges = np.vstack((np.zeros(held), np.eye(held), np.zeros(held)))
    kept = np.ones(block.rows, dtype=np.bool_) if block.weights is None else block.weights > 0.0
    has_end = np.stack((codes < held, codes > 0)) & kept
    upper = np.column_stack((edges[codes + 1], -matrix))[has_end[0]]
    lower = np.column_stack((-edges[codes], matrix))[has_end[1]]
    constraints = np.concatenate((upper, lower))
    free = slice(None) if problem.kept is None else problem.kept
    programmed = programme(constraints[:, free], np.zeros(len(constraints), dtype=np.bool_))
    if programmed.direction is None or programmed.decided is None:
        return programmed
    direction = np.zeros(problem.width)
    direction[free] = programmed.direction
    decided = np.zeros((2, block.rows), dtype=np.bool_)
    decided[has_end] = programmed.decided
    return Separation(False, direction, decided)


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
    question = partial(_largest_share, labels=problem.labels, whole=problem.whole(beta), step=step)
    return float(problem.rows.reduce(question).value)


def _largest_share(block: RowBlock, *, labels: CumulativeRows, whole: Floats, step: Floats) -> Largest:
    theta, beta = labels.split(step)
    still, largest = np.concatenate(([0.0], theta, [0.0])), 0.0
    for part in labels.layout.parts(block):
        ends = labels.ends(part, whole)
        _, slopes, (upper, mixed, lower) = labels.distribution(ends.upper, ends.lower)
        along = linear_predictor(labels.layout, replace(part, offset=None), beta)
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
            largest = max(largest, float(share.max(initial=0.0)))
    return Largest(largest)


def _moves(problem: CumulativeProblem, step: Floats) -> tuple[float, float]:
    """How far a step moves an end the wrong way, as a share of its terms, and how far it moves any, at most."""
    theta, beta = problem.labels.split(step)
    wrong, far = problem.rows.reduce_all(
        partial(_wrong_way, layout=problem.layout, theta=theta, beta=beta),
        partial(_reach, layout=problem.layout, beta=beta),
    )
    return wrong.value, far.value + float(np.abs(theta).max(initial=0.0))


def _wrong_way(block: RowBlock, *, layout: CoefficientLayout, theta: Floats, beta: Floats) -> Largest:
    wrong = 0.0
    for part in layout.parts(block):
        codes = part.y.astype(np.intp)
        along = linear_predictor(layout, replace(part, offset=None), beta)
        up = np.append(theta, 0.0)[codes] - along
        low = np.append(0.0, theta)[codes] - along
        against = np.maximum(np.where(codes < len(theta), -up, 0.0), np.where(codes > 0, low, 0.0))
        sparse = None if part.sparse is None else abs(part.sparse)
        sizes = replace(part, dense=np.abs(part.dense), sparse=sparse, offset=None)
        most = linear_predictor(layout, sizes, np.abs(beta))
        most += np.abs(np.where(-up > low, np.append(theta, 0.0)[codes], np.append(0.0, theta)[codes]))
        share = np.divide(against, most, out=np.zeros_like(most), where=most > 0.0)
        if part.weights is not None:
            share = share[part.weights > 0.0]
        wrong = max(wrong, float(share.max(initial=0.0)))
    return Largest(wrong)


def _reach(block: RowBlock, *, layout: CoefficientLayout, beta: Floats) -> Largest:
    bare = [replace(part, offset=None) for part in layout.parts(block)]
    moves = [float(np.abs(linear_predictor(layout, part, beta)).max(initial=0.0)) for part in bare]
    return Largest(max(moves, default=0.0))
