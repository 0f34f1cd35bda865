"""Learning the weights of a log-linear model: the objective, and the method that maximises it.

The objective a row is ``weights . observed - log Z(weights) - penalty(weights) / N``, with the mean `observed` of each
feature. Its slope is the difference of observed and expected features, so at the maximum they agree.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.errors import OptionError, listing
from suffice.fitting.control import Control, Outcome, State, iterate
from suffice.models.markov.family import LogLinearFamily
from suffice.models.markov.feature import Feature
from suffice.models.markov.feature_spread import (
    feature_ends,
    feature_units,
    features_of,
    offsets,
    standardised,
    variances,
)
from suffice.models.markov.log_linear import LogLinear
from suffice.solvers import gradient, scaling
from suffice.solvers.closed_form import closed_form
from suffice.solvers.penalties import GaussianPenalty, LaplacePenalty, Penalty
from suffice.solvers.registry import Objective, named
from suffice.solvers.scaling import inner

#: How many nats a joint state off the face is put below those on it.
TOWARDS_FACE = 100.0
#: A mean log-probability above this is no rounding.
ABOVE_ZERO = 1e-9
#: Features whose spreads differ by more than this are scaled iteratively in units of them.
SIZES = 64.0
#: Up to this many weights Newton's method with the whole covariance is the fastest.
NEWTON_WEIGHTS = 32
#: Up to this many weights products with the covariance pay: they do not mind weights that depend on each other.
PRODUCT_WEIGHTS = 500


@dataclass(frozen=True)
class LearnedWeights:
    """Weights (n_weights,), how they were found, and how the iteration ended (None for a closed form).

    handed_on: whether IPF crawled and another method went on.
    """

    weights: Floats
    method: str
    outcome: Outcome | None = None
    handed_on: bool = False


@dataclass(frozen=True, eq=False)
class LogLinearProblem:
    """What is to be learned.

    margins: observed shares of all cells of the scopes (n_cells,), each scope summing to one; weight: number of rows;
    direction (n_weights,): along it the joint states off the face fall by 1 or more, those on it stay. method: the
    solver that was chosen; watched: whether IPF stops where its rate is too slow.
    """

    family: LogLinearFamily
    margins: Floats
    weight: float
    penalty: Penalty | None
    control: Control
    start: Floats
    direction: Floats
    method: str = ""
    watched: bool = False

    def in_units(self, units: Floats) -> LogLinearProblem:
        """The same problem for the weights times the units, whose features lie near 0 and all vary by about one."""
        model = standardised(self.model, units, self.margins)
        if model is self.model:
            return self
        return replace(
            self,
            family=self.family.over(model),
            penalty=None if self.penalty is None else self.penalty.in_units(units),
            control=in_given_units(self.control, units),
            start=self.start * units,
            direction=self.direction * units,
        )

    @property
    def model(self) -> LogLinear:
        """The terms."""
        return self.family.model

    @cached_property
    def observed(self) -> Floats:
        """Mean of each feature (n_weights,)."""
        return self.model.expected(self.margins)

    def smooth(self, weights: Floats) -> tuple[float, Floats]:
        """The objective a row without a Laplace penalty, and its slope (n_weights,)."""
        log_z, expected = self.family.moments(weights)
        value, slope = inner(weights, self.observed) - log_z, self.observed - expected
        if isinstance(self.penalty, GaussianPenalty):
            value -= self.penalty.value(weights) / self.weight
            slope = slope - self.penalty.slope(weights) / self.weight
        return value, slope

    def information(self, weights: Floats) -> Floats:
        """Minus the Hessian of the smooth objective a row (n_weights, n_weights)."""
        information = self.family.covariance(weights)
        if isinstance(self.penalty, GaussianPenalty):
            information = information + self.penalty.matrix() / self.weight
        return information

    def information_product(self, weights: Floats) -> Callable[[Floats], Floats]:
        """The function that multiplies the information at these weights by a vector."""
        product = self.family.covariance_product(weights)
        penalty = self.penalty
        if not isinstance(penalty, GaussianPenalty):
            return product
        return lambda vector: product(vector) + penalty.product(vector) / self.weight

    def scale(self) -> Callable[[Floats, Floats], Floats]:
        """A guess of the diagonal of the inverse of the information: a function of weights and slope.

        For cells of tables that of `indicator_scale`. For features one over the observed variance, where at least a
        hundredth of the variance under the uniform distribution counts, so that rare features take no huge steps; the
        places of a feature that has several count as independent.
        """
        sizes = np.diff(self.model.starts)
        uniform = np.repeat(1.0 / sizes, sizes)
        variance = np.maximum(variances(self.model, self.margins), 0.01 * variances(self.model, uniform))
        variance = np.where(variance > 0.0, variance, 1.0)
        features = features_of(self.model)
        cells, penalty = gradient.indicator_scale(self.observed), self.penalty
        if not isinstance(penalty, GaussianPenalty):
            return lambda weights, slope: np.where(features, 1.0 / variance, cells(weights, slope))
        precision = penalty.diagonal() / self.weight

        def with_prior(weights: Floats, slope: Floats) -> Floats:
            own = 1.0 / cells(weights, slope + penalty.slope(weights) / self.weight)
            return np.asarray(1.0 / (np.where(features, variance, own) + precision))

        return with_prior

    @property
    def objective(self) -> Objective:
        """What solvers see that know no model."""
        corners = isinstance(self.penalty, LaplacePenalty)
        return Objective(
            self.smooth,
            self.start,
            self.control,
            self.scale,
            self.information,
            self.information_product,
            rate=self.penalty.rate / self.weight if isinstance(self.penalty, LaplacePenalty) else None,
            centre=self.penalty.mean if self.penalty is not None and corners else None,
        )


# -- which method ----------------------------------------------------------------------------------------------------


def choose(problem: LogLinearProblem, solver: str) -> tuple[str, str]:
    """The method to use, and why."""
    if solver != "auto":
        _check(problem, solver)
        return solver, "as asked"
    if isinstance(problem.penalty, LaplacePenalty):
        return "owlqn", "a Laplace prior"
    if problem.penalty is None and problem.model.is_tables:
        if problem.model.decomposition.tree is not None:
            return "closed-form", "the model is decomposable"
        return "ipf", f"tables only, not decomposable: {problem.model.decomposition.reason}"
    return _by_size(problem), f"{problem.model.n_weights} weights"


def _by_size(problem: LogLinearProblem) -> str:
    """The method that follows the slope of this many weights the fastest."""
    if problem.model.n_weights <= NEWTON_WEIGHTS:
        return "newton"
    return "newton-cg" if problem.model.n_weights <= PRODUCT_WEIGHTS else "lbfgs"


def _check(problem: LogLinearProblem, solver: str) -> None:
    """Refuse a method that cannot do what is asked."""
    method, corners = method_named(solver), isinstance(problem.penalty, LaplacePenalty)
    if method.tables_only and not problem.model.is_tables:
        features = [term.name for term in problem.model.terms if isinstance(term, Feature)]
        raise OptionError(
            f"solver={solver!r} fits tables, and the model has the features {listing(features, 3)}. Use 'gis', "
            "'lbfgs' or 'newton'."
        )
    if not method.takes_prior and problem.penalty is not None:
        raise OptionError(f"solver={solver!r} takes no prior. Use 'lbfgs', 'newton', 'newton-cg', 'cg' or 'ascent'.")
    if method.corners != corners:
        raise OptionError("A Laplace prior goes with solver='owlqn', and no other does. Use solver='auto'.")


def settle(problem: LogLinearProblem, solver: str) -> tuple[str, str]:
    """The method to use, and what a report calls it."""
    chosen, why = choose(problem, solver)
    return chosen, method_named(chosen).title + (f" (chosen: {why})" if solver == "auto" else "")


def improve(problem: LogLinearProblem) -> tuple[Floats, Outcome | None]:
    """The weights that the method of the problem finds, in the units and from the start that it has."""
    with np.errstate(over="ignore", invalid="ignore"):  # A step too far has no value, and no solver takes it.
        return method_named(problem.method).solve(problem)


def learn(problem: LogLinearProblem, solver: str) -> LearnedWeights:
    """Find the weights."""
    chosen, title = settle(problem, solver)
    if solver == "auto" and chosen == "ipf":
        return _on_one_table(problem) or _watched_ipf(problem)
    units = feature_units(problem.model, problem.margins)
    weights, outcome = improve(replace(problem.in_units(units), method=chosen))
    return LearnedWeights(weights / units, title, outcome if outcome is None else in_sums(outcome, problem.weight))


def _on_one_table(problem: LogLinearProblem) -> LearnedWeights | None:
    """By Newton's method on the table of all joint states, where there is one that it is for, and a maximum."""
    newton = None if problem.start.any() else problem.family.newton(problem.margins)
    if newton is None:
        return None
    control = problem.control
    outcome = iterate(newton.step, newton.start, control, problem=f"{control.problem} on one table")
    if outcome.stop_reason == "stalled":
        if control.checkpoint is not None:
            Path(control.checkpoint).unlink(missing_ok=True)
        return None
    why = choose(problem, "auto")[1]
    title = f"Newton's method on the table of all joint states (chosen: {why})"
    weights = table_weights(problem.model, outcome.state.parameters)
    return LearnedWeights(weights, title, in_sums(outcome, problem.weight))


def _watched_ipf(problem: LogLinearProblem) -> LearnedWeights:
    """IPF while its rate is good, else a method that follows the slope, from where IPF has come to.

    A checkpoint holds the sweeps alone; what follows them is the same again.
    """
    began = time.monotonic()
    weights, first = method_named("ipf").solve(replace(problem, watched=True))
    assert first is not None
    why, sweeps = choose(problem, "auto")[1], first.state.iteration
    if first.stop_reason != "slow":
        return LearnedWeights(weights, f"{method_named('ipf').title} (chosen: {why})", in_sums(first, problem.weight))
    control, callback = problem.control, problem.control.callback

    def enough(state: State) -> bool:
        """Above 0 the mean log-likelihood is that of no distribution, and rises for ever."""
        stop = callback is not None and callback(replace(state, iteration=state.iteration + sweeps)) is True
        return stop or state.objective > ABOVE_ZERO

    if control.max_seconds is not None:
        control = replace(control, max_seconds=max(control.max_seconds - (time.monotonic() - began), 1e-9))
    control = replace(control, max_iter=control.max_iter - sweeps, checkpoint=None, callback=enough)
    method, path = _by_size(problem), problem.control.checkpoint
    weights, second = improve(replace(problem, method=method, start=weights, control=control))
    assert second is not None
    if path is not None and second.converged:
        Path(path).unlink(missing_ok=True)
    state = replace(second.state, iteration=second.state.iteration + sweeps)
    outcome = replace(second, state=state, history=(*first.history, *second.history[1:]))
    titles = f"{method_named('ipf').title}, then {method_named(method).title}"
    title = f"{titles} (chosen: {why}; after {sweeps} sweeps their rate was too slow)"
    return LearnedWeights(weights, title, in_sums(outcome, problem.weight), handed_on=True)


def in_given_units(control: Control, units: Floats) -> Control:
    """The control of a solver whose weights are those times the units: callbacks see weights as they were given."""
    callback = control.callback
    if callback is None:
        return control
    return replace(control, callback=lambda state: callback(replace(state, parameters=state.parameters / units)))


def in_sums(outcome: Outcome, weight: float) -> Outcome:
    """Objectives as sums over rows, as the report has them."""
    state = replace(outcome.state, objective=outcome.state.objective * weight)
    return replace(outcome, state=state, history=tuple(value * weight for value in outcome.history))


# -- methods ---------------------------------------------------------------------------------------------------------


def _closed_form(problem: LogLinearProblem) -> tuple[Floats, None]:
    model = problem.model
    tables = [model.part(problem.margins, number) for number in range(len(model.scopes))]
    potentials = closed_form(model.scopes, tables, model.decomposition)
    return table_weights(model, np.concatenate([np.zeros(0), *(table.ravel() for table in potentials)])), None


def _ipf(problem: LogLinearProblem) -> tuple[Floats, Outcome]:
    """Where the face takes more than zero margins, the start is moved so far towards it that the rest does not count.

    The updates keep the ratios on the face, so what was added is taken off again at the end.
    """
    model, family = problem.model, problem.family
    push = np.zeros(model.n_cells)
    if family.extra_scopes:
        family, push = LogLinearFamily(model), TOWARDS_FACE * model.log_potentials(problem.direction)
    tree = family.scaling(problem.margins, problem.family.potentials(problem.start)[: model.n_cells] + push)
    outcome = scaling.ipf(tree, problem.control, watch=problem.watched)
    return table_weights(model, outcome.state.memory["log_potentials"] - push), outcome


def _gis(problem: LogLinearProblem, blocks: Sequence[NDArray[np.intp]] | None = None) -> tuple[Floats, Outcome]:
    """The largest sum of the features is that of the most probable state under their sum.

    Where that is 0 all of them are constant on the face: their means agree already, and any total leaves them alone.
    """
    model = problem.model
    lower, units = _scaling_form(model)
    parts = [np.arange(model.n_weights)] if blocks is None else list(blocks)
    totals = []
    for part in parts:
        most, least = largest_sum(problem.family, part, units), (units * lower)[part]
        constant = most - float(least.sum()) <= scaling.NOISE * (abs(most) + float(np.abs(least).sum()))
        totals.append(1.0 if constant else most - float(least.sum()))
    outcome = scaling.gis(
        problem.family.moments,
        problem.observed,
        problem.start,
        problem.control,
        total=totals if blocks is not None else totals[0],
        lower=lower,
        units=units,
        blocks=blocks,
    )
    return outcome.state.parameters, outcome


def _gis_cyclic(problem: LogLinearProblem) -> tuple[Floats, Outcome]:
    places = problem.model.weight_slices
    return _gis(problem, [np.arange(own.start, own.stop) for own in places])


def _ascent_potentials(problem: LogLinearProblem) -> tuple[Floats, Outcome]:
    """On the potentials themselves: psi += step (observed - expected) / psi. A step to a psi below 0 is cut short."""

    def objective(potentials: Floats) -> tuple[float, Floats]:
        if not (potentials > 0.0).all():
            return -math.inf, np.zeros_like(potentials)
        value, slope = problem.smooth(np.log(potentials))
        return value, slope / potentials

    def scale(potentials: Floats, slope: Floats) -> Floats:
        return in_logs(np.log(potentials), slope * potentials) * potentials**2

    in_logs = problem.scale()
    outcome = gradient.ascent(objective, np.exp(problem.start), problem.control, scale=scale)
    return np.log(outcome.state.parameters), outcome


@dataclass(frozen=True)
class LogLinearSolver:
    """A way to find the weights of a log-linear model: which models it is for, and what reports call it.

    `solve` gives weights (n_weights,) and how the iteration ended, None for a closed form.
    """

    title: str
    solve: Callable[[LogLinearProblem], tuple[Floats, Outcome | None]]
    tables_only: bool = False
    takes_prior: bool = False
    corners: bool = False


#: The solvers that know log-linear models, by name.
OWN_SOLVERS = {
    "closed-form": LogLinearSolver(
        "closed form of a decomposable model: clique margins over separator margins", _closed_form, tables_only=True
    ),
    "ipf": LogLinearSolver("iterative proportional fitting on the junction tree", _ipf, tables_only=True),
    "gis": LogLinearSolver("generalised iterative scaling", _gis),
    "gis-cyclic": LogLinearSolver("iterative scaling, term after term", _gis_cyclic),
    "ascent-potentials": LogLinearSolver("gradient ascent on the potentials", _ascent_potentials, tables_only=True),
}
#: What exact inference gives to the solvers that know no model.
_ON = {"slope": "on exact moments", "information": "with the exact covariance", "products": "on covariance products"}


def method_named(name: str) -> LogLinearSolver:
    """The solver of this name: one of log-linear models, or one that is registered for every objective."""
    if name in OWN_SOLVERS:
        return OWN_SOLVERS[name]
    solver = named(name)

    def solve(problem: LogLinearProblem) -> tuple[Floats, Outcome]:
        outcome = solver.solve(problem.objective)
        return outcome.state.parameters, outcome

    title = f"{solver.title} {_ON[solver.uses]}"
    return LogLinearSolver(title, solve, takes_prior=True, corners=solver.corners)


# -- tables and features ---------------------------------------------------------------------------------------------


def table_weights(model: LogLinear, log_potentials: Floats) -> Floats:
    """Weights of a model of tables with these log-potentials (n_cells,); minus infinity becomes 0, the masks hold it.

    Of several tables on the same variables the first takes all.
    """
    finite = np.where(log_potentials > -np.inf, log_potentials, 0.0)[: model.n_cells]
    if model.is_identity:
        return finite
    weights = np.zeros(model.n_weights)
    done: set[int] = set()
    for (block,) in model.blocks:
        if block.scope not in done:
            done.add(block.scope)
            weights[block.columns] = finite[model.starts[block.scope] + block.cells]
    return weights


def feature_bounds(model: LogLinear) -> Floats:
    """A number that no feature falls below (n_weights,): its least value where that is negative, else 0."""
    return np.minimum(feature_ends(model)[0], 0.0)


def _scaling_form(model: LogLinear) -> tuple[Floats, Floats]:
    """What iterative scaling takes off the features of a model, and then multiplies them with: two of (n_weights,).

    The steps are those of the features as the user gave them, of which only negative ones are shifted: whatever their
    units are here is taken back. Where their sizes differ much, or some lie far from 0, the total of all would make
    their steps tiny: then the features stay in their units, all less their least values.
    """
    least, _ = feature_ends(model)
    used = np.zeros(model.n_weights, np.bool_)  # All but constants, which are 0 here.
    used[model.matrix.tocoo().col] = True
    sizes = model.units[used]
    apart = float(sizes.max(initial=0.0)) > SIZES * float(sizes.min(initial=np.inf))
    if apart or (offsets(model) * used).any():
        return np.where(features_of(model), least, 0.0), np.ones(model.n_weights)
    return np.minimum(least, 0.0), model.units


def largest_sum(family: LogLinearFamily, part: NDArray[np.intp], units: Floats | None = None) -> float:
    """The largest sum of some features in any joint state, times units (n_weights,), from the max-product pass."""
    chosen = np.zeros(family.model.n_weights)
    chosen[part] = 1.0 if units is None else units[part]
    return family.tree(chosen).most_probable().log_value
