"""Hidden variables where exact inference does not fit: stochastic maximum likelihood with two sets of chains.

The slope of the observed log-likelihood is ``E[f | rows] - E[f]``. The first expectation (the positive phase) comes
from chains that keep what their row shows and draw the rest, the second from free chains; both persist. A restricted
Boltzmann machine is the best known case (Smolensky 1986; Tieleman 2008).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.engines.gibbs import GibbsChains
from suffice.engines.junction_tree import plan_tree
from suffice.errors import OptionError
from suffice.families.laplace import Laplace
from suffice.fitting.contract import Found, Judgement
from suffice.fitting.control import Control, Outcome
from suffice.fitting.report import Report
from suffice.models.em.held_rows import HeldRows, refuse_unkept
from suffice.models.em.rows import ObservedRows, read_rows
from suffice.models.markov.approximate.certificate import (
    SampledMeasurement,
    estimated_log_z,
    measured,
    unmeasured,
    verdict,
)
from suffice.models.markov.approximate.family import SampledFamily
from suffice.models.markov.approximate.fit import sampling_plan
from suffice.models.markov.approximate.measure import measure_slope
from suffice.models.markov.approximate.problem import SampledProblem
from suffice.models.markov.approximate.solvers import TITLES, tolerance_of
from suffice.models.markov.family import LogLinearFamily
from suffice.models.markov.fitted import MarkovFitted
from suffice.models.markov.hidden.check import stationarity
from suffice.models.markov.hidden.positive_phase import ClampedRows, PositivePhase, RestartedChains
from suffice.models.markov.hidden.problem import MarkovEMProblem
from suffice.models.markov.hidden.start import crowding, random_weights
from suffice.models.markov.log_linear import LogLinear
from suffice.models.markov.priors import penalised_slope
from suffice.models.markov.specification import TOLERANCE, MarkovProblem
from suffice.solvers.stochastic import AscentSteps, stochastic_ascent

#: Rows whose mass is summed at a time.
BLOCK = 1024


def open_margins(rows: HeldRows, model: LogLinear) -> Floats:
    """Shares of the cells of all scopes (n_cells,), with what the rows leave open filled in evenly."""
    return np.asarray(rows.ask(_open_counts, _plain(model)) / rows.weight)


def _plain(model: LogLinear) -> LogLinear:
    """The scopes of a model as tables, which travel: features are functions of the user."""
    return LogLinear(model.domain, model.scopes)


def _open_counts(rows: ObservedRows, model: LogLinear) -> Floats:
    """Weights of the cells of all scopes (n_cells,), with what the rows leave open filled in evenly."""
    parts = [np.zeros(0)]
    for number, scope in enumerate(model.scopes):
        table = np.full((len(rows.weights), *model.shape(number)), 1.0)
        for axis, name in enumerate(scope):
            card, column = model.cards[name], rows.columns.get(name)
            known = np.full((len(rows.weights), card), 1.0 / card)
            if column is not None:
                known[column >= 0] = np.eye(card)[column[column >= 0]]
            table *= known.reshape(len(known), *(card if other == axis else 1 for other in range(len(scope))))
        parts.append(np.tensordot(rows.weights, table, 1).ravel())
    return np.concatenate(parts)


# -- the problem -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ClampedProblem(MarkovProblem):
    """Rows meet weights, where no junction tree fits: chains are clamped at what the rows show."""

    @cached_property
    def rows(self) -> HeldRows:
        """The rows, wherever they are."""
        if self.data.held is not None:
            return self.data.held
        refuse_unkept(self.data.statistics)
        return HeldRows.here(read_rows(self.data.statistics, self.model.domain))

    @cached_property
    def hidden(self) -> list[Hashable]:
        """The variables that no row shows."""
        return [name for name in self.model.domain.names if name not in self.rows.seen]

    @cached_property
    def family(self) -> LogLinearFamily:
        """By a junction tree where a small one does, else by chains."""
        return self.spec.family(self.model)

    @cached_property
    def crowd(self) -> int:
        """How many terms are on one hidden variable, or on one that shares a term with it."""
        return crowding(self.model, self.hidden)

    def _check_options(self) -> None:
        """Refuse what chains that are clamped at rows do not do."""
        options = self.spec.options
        if options["solver"] != "sml":
            raise OptionError(
                f"solver={options['solver']!r} needs whole rows; hidden variables are learned by 'sml', or exactly."
            )
        if options["batch_size"] is not None or options["n_init"] != 1:
            raise OptionError("batch_size and n_init do not go with solver='sml' and hidden variables: all rows count.")
        if isinstance(options["prior"], Laplace):
            raise OptionError("solver='sml' takes a normal prior; a Laplace prior goes with EM, solver='auto'.")

    def start(self, stream: np.random.Generator) -> Floats:
        """The weights to begin with (n_weights,); unless given, random ones for the terms of hidden variables.

        They are so small that the sum of all terms on a variable is of the size of one.
        """
        if self.spec.options["start"] is not None:
            return self.spec.start(self.model)
        return random_weights(self.model, self.hidden, stream, spread=self.crowd**-0.5)

    def sampled(self, control: Control, stream: np.random.Generator) -> SampledProblem:
        """What a solver sees, or a judge, in units of the features; stream: the random numbers of its chains."""
        model, spec = self.model, self.spec
        margins, start = open_margins(self.rows, model), self.start(stream)
        return SampledProblem(
            model, margins, self.data.weight, spec.penalty(model), control, start, spec.sampling, stream,
            step_size=spec.options["step_size"],
        ).in_units()  # fmt: skip

    def clamped(self, stream: np.random.Generator) -> PositivePhase:
        """Chains at the rows: they persist in this process, and begin anew in each round where rows are elsewhere."""
        here = self.rows.local
        if here is None:
            return RestartedChains.of(self.rows, self.model, self.spec.sampling)
        return ClampedRows.of(here, self.model, self.spec.sampling.chains, stream)

    def solve(self, control: Control) -> Found[MarkovFitted]:
        """Stochastic maximum likelihood."""
        self._check_options()
        stream = self.spec.solving_stream()
        problem = self.sampled(control, stream)
        clamped = self.clamped(stream)
        outcome = learn_clamped(problem, clamped, self.crowd)
        return Found(
            self.spec.fitted(self.family, outcome.state.parameters / problem.units),
            f"{TITLES['sml']}; chains: {clamped.words}",
            "maximum likelihood" if problem.penalty is None else "MAP",
            outcome,
            self.data.notes,
            sampling_plan(self.model, len(problem.sampler.layout.colours)),
            None if problem.penalty is None else "in the weights",
        )

    def judge(self, fitted: MarkovFitted) -> Judgement:
        """The gap by chains of its own, free ones and clamped ones, and the observed likelihood with its error."""
        options, stream = self.spec.options, self.spec.judging_stream()
        tolerance = TOLERANCE if options["tolerance"] is None else options["tolerance"]
        problem = self.sampled(Control(tolerance=tolerance), stream)
        clamped = self.clamped(stream)
        engine = f"stochastic: Gibbs sampling, {problem.sampling.chains:,} chains free, {clamped.words}"
        try:
            measurement = self._measured(problem, clamped, fitted.finite * problem.units, engine)
        except KeyboardInterrupt:  # The fit is done and is not thrown away.
            measurement = unmeasured(problem, engine)
        penalty = self.spec.penalty(self.model)
        return Judgement(
            measurement.log_likelihood,
            measurement.log_likelihood - (0.0 if penalty is None else penalty.value(fitted.finite)),
            measurement.certificate,
            gap=0.0,  # Of a fit by chains the verdict says whether it is done.
            empirical_entropy=self.data.entropy,
            notes=self.rows.notes,
            **verdict(measurement),
        )

    def _measured(
        self, problem: SampledProblem, clamped: PositivePhase, weights: Floats, engine: str
    ) -> SampledMeasurement:
        """Certificate and observed likelihood at the weights, in the units of the problem."""
        exact, error, unsure = None, None, ""
        if not isinstance(self.family, SampledFamily):
            family = self.family.over(problem.model)
            exact = stationarity(family, weights, self.rows, problem.penalty)
            log_z = family.margins(weights)[0]
        slope = measure_slope(problem, weights, problem.sampling.lengths, exact, clamped.means(problem, weights))
        if exact is None:
            log_z, deviation, unsure = estimated_log_z(problem, weights)
            error = problem.weight * deviation
        mass = self.rows.ask(_total_mass, (_plain(problem.model), problem.model.log_potentials(weights)))
        likelihood = mass - problem.weight * log_z
        return measured(slope, (likelihood, error, unsure), tolerance_of(problem), engine)

    def again(self, fitted: MarkovFitted, report: Report) -> Judgement:
        """What a file says about its fit: fresh chains are not run anew."""
        return Judgement(report.log_likelihood, report.objective, report.certificate)

    def standard_errors(self, fitted: MarkovFitted, judged: Judgement) -> Floats:
        """As those of EM, where a junction tree fits."""
        return MarkovEMProblem(self.spec, self.data).standard_errors(fitted, judged)

    def identity(self) -> Iterable[Any]:
        """Terms, rows, prior, start, and how the chains run."""
        model, penalty = self.model, self.spec.penalty(self.model)
        prior = () if penalty is None else penalty.identity
        observed = model.expected(open_margins(self.rows, model))
        names = ["sml, held", list(map(repr, model.scopes))]
        start = self.start(self.spec.solving_stream())
        return *names, self.spec.sampling.to_dict(), observed, self.data.weight, *prior, start


# -- learning and measuring --------------------------------------------------------------------------------------------


def learn_clamped(problem: SampledProblem, clamped: PositivePhase, crowd: int) -> Outcome:
    """Ascend the noisy slope: mean features of the chains that are clamped less those of the free chains.

    crowd: how many terms on one hidden variable move together; steps are shorter by so much, because weights that
    overshoot freeze the chains.
    """
    sampling, sampler = problem.sampling, problem.sampler
    problem.load(problem.start)
    free = sampler.start(sampling.chains, problem.seed)
    held = clamped.start(problem)
    sampler.sweep(free, sampling.burn_in)

    def noisy(x: Floats, chains: dict[str, Any], *, measuring: bool) -> Floats:
        problem.load(x)
        walk = GibbsChains.from_arrays(chains["free"])
        sampler.sweep(walk, sampling.sweeps)
        chains["free"] = walk.to_arrays()
        positive, chains["held"] = clamped.shares(problem, x, chains["held"])
        expected = problem.model.expected(positive - sampler.shares(walk))
        return penalised_slope(problem.penalty, x, expected, problem.weight)

    # All that is measured in these units is smaller by as much, the tolerance too.
    widened = float(crowd) ** 0.5
    return stochastic_ascent(
        noisy,
        problem.start,
        {"free": free.to_arrays(), "held": held},
        replace(problem.control, tolerance=tolerance_of(problem) / widened),
        spread=problem.spread * widened,
        noise=len(problem.start) * (1.0 / sampling.chains + clamped.noise) / crowd,
        steps=AscentSteps(problem.step_size),
    )


def _total_mass(rows: ObservedRows, parameters: tuple[LogLinear, Floats]) -> float:
    """The sum of the log masses of rows."""
    return float(rows.weights @ row_masses(*parameters, rows))


def row_masses(model: LogLinear, logs: Floats, rows: ObservedRows) -> Floats:
    """Log of the sum of exp(log-potentials) over the joint states that agree with each row (n,), exactly.

    The tree is that of the variables which some row does not show, given all others: of a restricted Boltzmann machine
    single hidden units, whatever its size.
    """
    shown = [name for name, codes in rows.columns.items() if (codes >= 0).all()]
    free = [name for name in model.domain.names if name not in shown]
    scopes = {tuple(name for name in free if name in scope) for scope in model.scopes} - {()}
    plan = plan_tree({name: model.cards[name] for name in free}, sorted(scopes, key=repr))
    tree = plan.load([None] * len(plan.scopes))
    masses = np.empty(len(rows.weights))
    for start in range(0, len(masses), BLOCK):
        some = slice(start, start + BLOCK)
        part = {name: codes[some] for name, codes in rows.columns.items()}
        n = len(masses[some])
        constant, factors = _sliced(model, logs, part, shown, free, n)
        partly = [name for name in free if name in part]
        codes = np.stack([part[name] for name in partly], axis=1) if partly else np.zeros((n, 0), np.int32)
        masses[some] = constant + tree.solve_rows(codes, partly, row_factors=factors).log_partition
    return masses


def _sliced(
    model: LogLinear, logs: Floats, codes: dict[Any, Any], shown: list[Any], free: list[Any], n: int
) -> tuple[Floats, dict[Any, Floats]]:
    """The log-potentials at what the rows show: sums (n,) of whole scopes, and factors (n, cards) of what is left."""
    constant, factors = np.zeros(n), dict[Any, Floats]()
    for number, scope in enumerate(model.scopes):
        known, left = [name for name in scope if name in shown], tuple(name for name in free if name in scope)
        table = np.transpose(model.part(logs, number), [scope.index(name) for name in (*known, *left)])
        values = table[tuple(codes[name] for name in known)] if known else np.broadcast_to(table, (n, *table.shape))
        if left:
            factors[left] = factors[left] + values if left in factors else np.array(values)
        else:
            constant += values
    return constant, factors
