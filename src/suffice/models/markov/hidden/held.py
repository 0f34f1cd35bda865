"""Hidden variables where exact inference does not fit: stochastic maximum likelihood with two sets of chains.

The slope of the observed log-likelihood is ``E[f | rows] - E[f]``. The first expectation (the positive phase) comes
from chains that keep what their row shows and draw the rest, the second from free chains; both persist. A restricted
Boltzmann machine is the best known case (Smolensky 1986; Tieleman 2008).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.engines.annealing import log_partition
from suffice.engines.gibbs import Chains
from suffice.engines.junction_tree import plan_tree
from suffice.errors import OptionError
from suffice.families.laplace import Laplace
from suffice.fitting.contract import Found, Judgement
from suffice.fitting.control import Control
from suffice.fitting.report import Report
from suffice.models.em.rows import ObservedRows, read_rows
from suffice.models.markov.approximate.fit import sampling_plan
from suffice.models.markov.approximate.law import SampledFamily
from suffice.models.markov.approximate.measure import Measured, doubt, drawn, fresh_chains, unmeasured
from suffice.models.markov.approximate.problem import SampledProblem
from suffice.models.markov.approximate.solvers import TITLES, Ascended, tolerance_of
from suffice.models.markov.approximate.verdict import verdict
from suffice.models.markov.fitted import MarkovFitted
from suffice.models.markov.hidden.check import stationarity
from suffice.models.markov.hidden.problem import EMProblem
from suffice.models.markov.hidden.start import crowding, random_weights
from suffice.models.markov.law import LawFamily
from suffice.models.markov.log_linear import LogLinear
from suffice.models.markov.specification import TOLERANCE, MarkovData, Specification
from suffice.solvers.stochastic import Steps, stochastic_ascent

Floats = NDArray[np.float64]

#: Rows whose mass is summed at a time.
BLOCK = 1024
#: Parts of the draws whose means give the error of the positive phase.
PARTS = 20


@dataclass(frozen=True, eq=False)
class HeldRows:
    """Where chains are held: codes (sites, chains), 1 where they stay (sites, chains), shares of the rows (chains,)."""

    states: NDArray[np.uint8]
    clamped: NDArray[np.uint8]
    shares: Floats

    @classmethod
    def of(cls, rows: ObservedRows, model: LogLinear, chains: int, seed: np.random.Generator) -> HeldRows:
        """At least one chain for each distinct row, and about `chains` in all, by the weights of the rows."""
        shares = rows.weights / rows.weights.sum()
        copies = np.maximum(1, np.round(chains * shares)).astype(np.intp)
        which = np.repeat(np.arange(len(shares)), copies)
        cards = np.array(model.domain.shape(model.domain.names))
        drawn = (seed.random((len(cards), len(which))) * cards[:, None]).astype(np.int32)
        blank = np.full(len(shares), -1, np.int32)
        codes = np.stack([rows.columns.get(name, blank) for name in model.domain.names])[:, which]
        states = np.where(codes >= 0, codes, drawn).astype(np.uint8)
        return cls(states, (codes >= 0).astype(np.uint8), (shares / copies)[which])


def open_margins(rows: ObservedRows, model: LogLinear) -> Floats:
    """Shares of the cells of all scopes (n_cells,), with what the rows leave open filled in evenly."""
    weight, parts = float(rows.weights.sum()), [np.zeros(0)]
    for place, scope in enumerate(model.scopes):
        table = np.full((len(rows.weights), *model.shape(place)), 1.0)
        for axis, name in enumerate(scope):
            card, column = model.cards[name], rows.columns.get(name)
            known = np.full((len(rows.weights), card), 1.0 / card)
            if column is not None:
                known[column >= 0] = np.eye(card)[column[column >= 0]]
            table *= known.reshape(len(known), *(card if at == axis else 1 for at in range(len(scope))))
        parts.append(np.tensordot(rows.weights, table, 1).ravel() / weight)
    return np.concatenate(parts)


# -- the problem -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class HeldProblem:
    """Distinct rows meet weights, where no junction tree fits: chains are held at what the rows show.

    `known` holds the last measurement by fresh chains with its weights, as in `approximate.fit`.
    """

    spec: Specification
    data: MarkovData
    known: list[tuple[Floats, Measured]] = field(default_factory=list)

    @cached_property
    def model(self) -> LogLinear:
        """Variables and terms."""
        return LogLinear(self.spec.whole_domain(self.data.statistics), self.spec.terms)

    @cached_property
    def rows(self) -> ObservedRows:
        """The distinct rows."""
        return read_rows(self.data.statistics, self.model.domain)

    @cached_property
    def hidden(self) -> list[Hashable]:
        """The variables that no row shows."""
        return [name for name in self.model.domain.names if name not in self.rows.columns]

    @cached_property
    def seed(self) -> np.random.Generator:
        """One stream of random numbers for solver and judge."""
        return np.random.default_rng(self.spec.options["random_state"])

    @cached_property
    def family(self) -> LawFamily:
        """By a junction tree where a small one does, else by chains."""
        return self.spec.family(self.model)

    @cached_property
    def crowd(self) -> int:
        """How many terms are on one hidden variable, or on one that shares a term with it."""
        return crowding(self.model, self.hidden)

    def _check_options(self) -> None:
        """Refuse what chains that are held at rows do not do."""
        options = self.spec.options
        if options["solver"] != "sml":
            raise OptionError(
                f"solver={options['solver']!r} needs whole rows; hidden variables are learned by 'sml', or exactly."
            )
        if options["batch_size"] is not None or options["n_init"] != 1:
            raise OptionError("batch_size and n_init do not go with solver='sml' and hidden variables: all rows count.")
        if isinstance(options["prior"], Laplace):
            raise OptionError("solver='sml' takes a normal prior; a Laplace prior goes with EM, solver='auto'.")

    @cached_property
    def start(self) -> Floats:
        """The weights to begin with (n_weights,); unless given, random ones for the terms of hidden variables.

        They are so small that the sum of all terms on a variable is of the size of one.
        """
        if self.spec.options["start"] is not None:
            return self.spec.start(self.model)
        return random_weights(self.model, self.hidden, self.seed, spread=self.crowd**-0.5)

    def sampled(self, control: Control) -> SampledProblem:
        """What the solver sees."""
        model, spec = self.model, self.spec
        start, margins, weight = self.start, open_margins(self.rows, model), self.data.weight
        return SampledProblem(
            model, margins, weight, spec.penalty(model), control, start, spec.sampling, self.seed,
            step_size=spec.options["step_size"],
        )  # fmt: skip

    def solve(self, control: Control) -> Found[MarkovFitted]:
        """Stochastic maximum likelihood, measured by fresh chains."""
        self._check_options()
        problem = self.sampled(control)
        ended = learn_held(problem, self.held, self.crowd)
        self.known[:] = [(ended.weights, self._measure(problem, ended.weights))]
        return Found(
            self.spec.fitted(self.family, ended.weights),
            ended.title,
            "maximum likelihood" if problem.penalty is None else "MAP",
            ended.outcome,
            self.data.notes,
            sampling_plan(self.model, len(problem.sampler.layout.colours)),
            None if problem.penalty is None else "in the weights",
        )

    @cached_property
    def held(self) -> HeldRows:
        """Where chains are held."""
        return HeldRows.of(self.rows, self.model, self.spec.sampling.chains, self.seed)

    def _measure(self, problem: SampledProblem, weights: Floats) -> Measured:
        exact = None if isinstance(self.family, SampledFamily) else self.family
        try:
            return measure_held(problem, self.held, self.rows, weights, exact)
        except KeyboardInterrupt:  # The fit is done and is not thrown away.
            return unmeasured(problem, "sml")

    def judge(self, fitted: MarkovFitted) -> Judgement:
        """The gap by fresh chains, and the observed likelihood with its error."""
        if self.known and np.array_equal(self.known[0][0], fitted.finite):
            measured = self.known[0][1]
        else:
            tolerance = self.spec.options["tolerance"]
            problem = self.sampled(Control(tolerance=TOLERANCE if tolerance is None else tolerance))
            measured = self._measure(problem, fitted.finite)
        return Judgement(
            measured.log_likelihood,
            measured.objective,
            measured.certificate(),
            gap=0.0,  # Of a fit by chains the verdict says whether it is done.
            empirical_entropy=self.data.entropy,
            verdict=verdict(measured, None),
        )

    def again(self, fitted: MarkovFitted, report: Report) -> Judgement:
        """What a file says about its fit: fresh chains are not run anew."""
        return Judgement(report.log_likelihood, report.objective, report.certificate)

    def standard_errors(self, fitted: MarkovFitted, judged: Judgement) -> Floats:
        """As those of EM, where a junction tree fits."""
        return EMProblem(self.spec, self.data).standard_errors(fitted, judged)

    def identity(self) -> Iterable[Any]:
        """Terms, rows, prior, start, and how the chains run."""
        model, penalty = self.model, self.spec.penalty(self.model)
        prior = () if penalty is None else penalty.identity
        observed = model.expected(open_margins(self.rows, model))
        names = ["sml, held", list(map(repr, model.scopes))]
        return *names, self.spec.sampling.to_plain(), observed, self.data.weight, *prior, self.start


# -- learning --------------------------------------------------------------------------------------------------------


def learn_held(problem: SampledProblem, held: HeldRows, crowd: int) -> Ascended:
    """Ascend the noisy slope: mean features of the chains that are held less those of the free chains.

    crowd: how many terms on one hidden variable move together; steps are shorter by so much, because weights that
    overshoot freeze the chains.
    """
    inside, units = problem.in_units()
    sampling, sampler = inside.sampling, inside.sampler
    inside.load(inside.start)
    free = sampler.start(sampling.chains, inside.seed)
    bound = sampler.start(len(held.shares), inside.seed, states=held.states, clamped=held.clamped)
    for chains in (free, bound):
        sampler.sweep(chains, sampling.burn_in)

    def noisy(x: Floats, chains: dict[str, Any], *, measuring: bool) -> Floats:
        inside.load(x)
        walks = {"free": Chains.from_arrays(chains["free"]), "held": Chains.from_arrays(chains["held"], bound.clamped)}
        for name, walk in walks.items():
            sampler.sweep(walk, sampling.sweeps)
            chains[name] = walk.to_arrays()
        return _slope(inside, x, sampler.counts(walks["held"].states, held.shares) - sampler.shares(walks["free"]))

    count, wide = len(inside.start), float(crowd) ** 0.5
    outcome = stochastic_ascent(
        noisy,
        inside.start,
        {"free": free.to_arrays(), "held": bound.to_arrays()},
        replace(inside.control, tolerance=tolerance_of(inside) / wide),
        spread=inside.spread * wide,  # All that is measured in these units is smaller by as much, the tolerance too.
        noise=count * (1.0 / sampling.chains + float(np.sum(held.shares**2))) / crowd,
        steps=Steps(inside.step_size),
    )
    title = f"{TITLES['sml']}; rows held in {len(held.shares):,} chains"
    return Ascended(outcome.state.parameters / units, title, outcome)


def _slope(problem: SampledProblem, weights: Floats, away: Floats) -> Floats:
    """Slope of the objective a row, from the difference of two vectors of shares (n_cells,)."""
    return np.asarray(problem.model.expected(away) + problem.prior_slope(weights))


# -- how near --------------------------------------------------------------------------------------------------------


def measure_held(
    problem: SampledProblem, held: HeldRows, rows: ObservedRows, weights: Floats, exact: LawFamily | None
) -> Measured:
    """Certificate and observed likelihood at the weights; exact: the same laws by a junction tree, where one fits."""
    inside, units = problem.in_units()
    sampling, sampler = inside.sampling, inside.sampler
    found = fresh_chains(inside, weights * units)
    bound = sampler.start(len(held.shares), inside.seed, states=held.states, clamped=held.clamped)
    sampler.sweep(bound, sampling.burn_in)
    means = np.zeros((PARTS, inside.model.n_weights))
    for part in range(PARTS):
        for _ in range(max(1, sampling.draws // PARTS)):
            sampler.sweep(bound)
            means[part] += inside.model.expected(sampler.counts(bound.states, held.shares))
    means /= max(1, sampling.draws // PARTS)
    slope = means.mean(axis=0) - found.mean + inside.prior_slope(weights * units)
    error = np.sqrt(found.error**2 + means.var(axis=0, ddof=1) / PARTS)
    exact_slope, likelihood_error, unsure = None, None, ""
    if exact is not None:
        log_z = exact.margins(weights)[0]
        exact_slope = np.asarray(stationarity(exact, weights, rows, problem.penalty) / units)
    else:
        logs = problem.model.log_potentials(weights)
        estimate = log_partition(problem.sampler, logs, chains=sampling.chains, random_state=problem.seed)
        log_z, likelihood_error, unsure = estimate.value, problem.weight * estimate.standard_error, estimate.distrust
    masses = row_masses(problem.model, problem.model.log_potentials(weights), rows)
    likelihood = float(rows.weights @ masses) - problem.weight * log_z
    carlo = replace(
        drawn(sampling, found, error),
        exact_gap=None if exact_slope is None else float(np.abs(exact_slope).max(initial=0.0)),
        log_likelihood_error=likelihood_error,
    )
    judged = slope if exact_slope is None else exact_slope
    against = (carlo.distrust if exact_slope is None else "") or doubt(inside, judged, error, tolerance_of(inside))
    what = "feature's mean, expected given the rows and expected under the law"
    scale = (
        "largest slope of the objective, a row" if problem.penalty is not None else f"largest difference of a {what}"
    )
    penalty = 0.0 if problem.penalty is None else problem.penalty.value(weights)
    return Measured(
        float(np.abs(slope).max(initial=0.0)),
        scale + ("" if (units == 1.0).all() else ", in units of its spread"),
        f"stochastic: Gibbs sampling, {sampling.chains:,} chains free, {len(held.shares):,} held at rows",
        likelihood,
        likelihood - penalty,
        carlo,
        doubt=against,
        likelihood_doubt=unsure,
    )


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
    found = np.empty(len(rows.weights))
    for start in range(0, len(found), BLOCK):
        some = slice(start, start + BLOCK)
        part = {name: codes[some] for name, codes in rows.columns.items()}
        n = len(found[some])
        constant, factors = _sliced(model, logs, part, shown, free, n)
        partly = [name for name in free if name in part]
        codes = np.stack([part[name] for name in partly], axis=1) if partly else np.zeros((n, 0), np.int32)
        found[some] = constant + tree.solve_rows(codes, partly, row_factors=factors).log_partition
    return found


def _sliced(
    model: LogLinear, logs: Floats, codes: dict[Any, Any], shown: list[Any], free: list[Any], n: int
) -> tuple[Floats, dict[Any, Floats]]:
    """The log-potentials at what the rows show: sums (n,) of whole scopes, and factors (n, cards) of what is left."""
    constant, factors = np.zeros(n), dict[Any, Floats]()
    for place, scope in enumerate(model.scopes):
        known, left = [name for name in scope if name in shown], tuple(name for name in free if name in scope)
        table = np.transpose(model.part(logs, place), [scope.index(name) for name in (*known, *left)])
        values = table[tuple(codes[name] for name in known)] if known else np.broadcast_to(table, (n, *table.shape))
        if left:
            factors[left] = factors[left] + values if left in factors else np.array(values)
        else:
            constant += values
    return constant, factors
