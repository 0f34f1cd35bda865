"""Hidden variables where exact inference does not fit: stochastic maximum likelihood with two sets of chains.

The slope of the observed log-likelihood is ``E[f | rows] - E[f]``. The first expectation (the positive phase) comes
from chains that keep what their row shows and draw the rest, the second from free chains; both persist. A restricted
Boltzmann machine is the best known case (Smolensky 1986; Tieleman 2008).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.engines.annealing import log_partition
from suffice.engines.gibbs import Chains
from suffice.engines.junction_tree import plan_tree
from suffice.fitting.report import Certificate
from suffice.models.em.rows import Rows
from suffice.models.markov.approximate.measure import Measured, doubt, drawn, fresh_chains
from suffice.models.markov.approximate.problem import SampledProblem
from suffice.models.markov.approximate.solvers import TITLES, Fitted, tolerance_of
from suffice.models.markov.hidden.check import stationarity
from suffice.models.markov.law import LawFamily
from suffice.models.markov.log_linear import LogLinear
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
    def of(cls, rows: Rows, model: LogLinear, chains: int, seed: np.random.Generator) -> HeldRows:
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


def open_margins(rows: Rows, model: LogLinear) -> Floats:
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


# -- learning --------------------------------------------------------------------------------------------------------


def learn_held(problem: SampledProblem, held: HeldRows, crowd: int) -> Fitted:
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
        problem=inside.fingerprint("sml"),
    )
    title = f"{TITLES['sml']}; rows held in {len(held.shares):,} chains"
    return Fitted(outcome.state.parameters / units, title, outcome)


def _slope(problem: SampledProblem, weights: Floats, away: Floats) -> Floats:
    """Slope of the objective a row, from the difference of two vectors of shares (n_cells,)."""
    return np.asarray(problem.model.expected(away) + problem.prior_slope(weights))


# -- how near --------------------------------------------------------------------------------------------------------


def measure_held(
    problem: SampledProblem, held: HeldRows, rows: Rows, weights: Floats, exact: LawFamily | None
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
    certificate = Certificate(
        float(np.abs(slope).max(initial=0.0)),
        exact=False,
        scale=scale + ("" if (units == 1.0).all() else ", in units of its spread"),
        engine=f"stochastic: Gibbs sampling, {sampling.chains:,} chains free, {len(held.shares):,} held at rows",
        monte_carlo=carlo,
    )
    penalty = 0.0 if problem.penalty is None else problem.penalty.value(weights)
    return Measured(certificate, likelihood, likelihood - penalty, doubt=against, likelihood_doubt=unsure)


def row_masses(model: LogLinear, logs: Floats, rows: Rows) -> Floats:
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
