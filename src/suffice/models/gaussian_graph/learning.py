"""The choice of a method for a Gaussian graph, and what has to hold before it is used."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from suffice.array_types import Floats
from suffice.errors import EstimateError, OptionError, listing
from suffice.fitting.control import Control, Outcome
from suffice.models.gaussian_graph.certificate import in_units, measure, ridge_in_units, units_of
from suffice.models.gaussian_graph.existence import VANISHING, Verdict, decide, is_definite, judge, running
from suffice.models.gaussian_graph.structure import GraphStructure
from suffice.solvers.covariance_newton import EntryObjective, Ridge, by_newton
from suffice.solvers.covariance_selection import (
    by_regressions,
    by_scaling,
    closed_form,
    regressions_pay,
)
from suffice.solvers.registry import named, registered

#: What a solver may leave of the objective, in nats per row, when rounding holds it off the maximum.
UNTOLD = 1e-6
UNLIKE = (
    "Some columns are so nearly combinations of others that their precision cannot be told in float64. Leave out "
    "columns, or give a prior such as Wishart(dof, inverse_scale)."
)
#: The solvers that know Gaussian graphs; any that is registered maximises the objective of the free entries too.
OWN_SOLVERS = ("closed-form", "regression", "ipf", "newton")


@dataclass(frozen=True)
class Selection:
    """Covariances S (p, p) of `weight` rows, prior rows among them, and the graph; `ridge` holds entries of K."""

    structure: GraphStructure
    S: Floats
    weight: float
    ridge: Ridge | None
    control: Control
    start: Floats | None

    def mark(self, solver: str) -> str:
        """What a checkpoint of this solver belongs to: "auto" may pass from one to another."""
        return f"{self.control.problem} {solver}"


@dataclass(frozen=True)
class LearnedPrecision:
    """The precision (p, p), how it was found and why so.

    stands: whether a measurement of its own has shown that it has converged, so that no judge denies it.
    """

    precision: Floats
    method: str
    outcome: Outcome | None
    stands: bool = False


def learn(selection: Selection, solver: str) -> LearnedPrecision:
    """The precision that is zero on all non-edges and has the largest objective, ``N (log det K - tr(S K)) / 2``."""
    structure, units = selection.structure, units_of(selection.S)
    if selection.ridge is None:
        refuse_constant(np.diag(selection.S), structure.nodes)
    R = in_units(selection.S)
    try:
        verdict = Verdict(True, R) if selection.ridge is not None else decide(R, structure)
        _refuse_without_maximum(verdict, selection)
        scaled, method, outcome = _solve(selection, R, units, verdict, solver)
        np.linalg.cholesky(scaled)
    except np.linalg.LinAlgError:
        raise EstimateError(UNLIKE) from None
    if verdict.exists is None:
        _refuse_without_maximum(judge(scaled, R, structure), selection)
    precision = scaled / units[:, None] / units
    precision[~structure.support] = 0.0
    _refuse_vanishing(scaled, structure, selection)
    precision = (precision + precision.T) / 2
    if outcome is None or not outcome.converged:
        return LearnedPrecision(precision, method, outcome)
    return _held_to_account(LearnedPrecision(precision, method, outcome), outcome, selection)


def _held_to_account(learned: LearnedPrecision, outcome: Outcome, selection: Selection) -> LearnedPrecision:
    """What was learned, where what a solver takes for the end stands up to the certificate."""
    measurement = measure(selection.structure, learned.precision, selection.S, selection.ridge, selection.weight)
    far = measurement.value_gap is None or measurement.value_gap > UNTOLD
    near = measurement.gap <= 10.0 * selection.control.tolerance
    if far and not near:
        raise EstimateError(UNLIKE)
    if measurement.exists is None and not is_definite(in_units(selection.S)):
        why = "the covariance is singular, and it is not known whether there is a maximum"
        return replace(learned, outcome=_stalled(outcome, why))
    return replace(learned, stands=near and not measurement.spurious)


def _stalled(outcome: Outcome, why: str) -> Outcome:
    """The outcome of a solver that is wrong to say that it has converged."""
    return replace(outcome, converged=False, stop_reason="stalled", warning=f"The fit has not converged: {why}.")


def _solve(
    selection: Selection, R: Floats, units: Floats, verdict: Verdict, solver: str
) -> tuple[Floats, str, Outcome | None]:
    """In units in which every column has variance 1."""
    structure = selection.structure
    chosen, reason = _choose(selection, verdict.completion is R, solver)
    start = None if selection.start is None else selection.start * units[:, None] * units
    if chosen == "closed-form":
        return closed_form(R, structure.tree), f"closed form{reason}", None
    if chosen == "regression":
        outcome, method = _by_regressions(R, start, selection, verdict)
    elif chosen == "ipf":
        outcome, method = _by_scaling(R, np.eye(len(R)) if start is None else start, selection)
    elif chosen == "newton":
        outcome, method = _by_newton(R, start, selection), "Newton"
    else:
        function = EntryObjective(R, structure.pairs, _ridge_in_units(selection))
        outcome, method = _by_registered(chosen, function, np.eye(len(R)) if start is None else start, selection)
    return outcome.state.parameters.reshape(R.shape), method + reason, outcome


def _by_newton(R: Floats, start: Floats | None, selection: Selection) -> Outcome:
    pairs, ridge = selection.structure.pairs, _ridge_in_units(selection)
    return by_newton(R, start, pairs, selection.control, ridge=ridge, problem=selection.mark("newton"))


def _ridge_in_units(selection: Selection) -> Ridge | None:
    if selection.ridge is None:
        return None
    return ridge_in_units(selection.ridge, units_of(selection.S), selection.structure, selection.weight)


def _by_registered(name: str, function: EntryObjective, start: Floats, selection: Selection) -> tuple[Outcome, str]:
    """By a solver that knows no model, on the free entries of the precision."""
    solver = named(name)
    objective = function.objective(start, replace(selection.control, problem=selection.mark(name)))
    if not solver.applies(objective):
        others = [other for other, registered_solver in registered().items() if registered_solver.applies(objective)]
        raise OptionError(f"solver={name!r} needs an L1 penalty, and this objective has none: use {listing(others)}.")
    outcome = solver.solve(objective)
    precision = function.matrix(outcome.state.parameters).ravel()
    outcome = replace(outcome, state=replace(outcome.state, parameters=precision))
    return outcome, f"{solver.title} on the free entries of the precision"


def _by_scaling(R: Floats, start: Floats, selection: Selection) -> tuple[Outcome, str]:
    structure = selection.structure
    outcome = by_scaling(R, start, structure.tour, selection.control, problem=selection.mark("ipf"))
    clusters = max(len(cluster) for cluster in structure.tree.clusters)
    return outcome, f"IPF over {len(structure.cliques)} cliques, clusters of up to {clusters} nodes"


def _by_regressions(R: Floats, start: Floats | None, selection: Selection, verdict: Verdict) -> tuple[Outcome, str]:
    """By regressions; where columns are so alike that rounding holds them off, by Newton's method instead.

    The sweeps watch the covariance, whose small changes may be large ones of a precision that is nearly singular. So
    the edges are measured once more, from the precision itself.
    """
    structure, control = selection.structure, selection.control
    method = "regression of each node on its neighbours"
    if verdict.completion is None:
        raise EstimateError(
            "The regressions need a positive definite matrix with the variances and edges of the covariance to begin "
            "with, and none was found. Use solver='ipf'."
        )
    outcome = by_regressions(R, verdict.completion, structure.pairs, control, problem=selection.mark("regression"))
    left = _edge_gap(outcome, R, structure)
    if not outcome.converged or left <= control.tolerance:
        return outcome, method
    other = _by_newton(R, start, selection)
    if _edge_gap(other, R, structure) < left:
        return other, "Newton, as columns are too alike for regressions"
    return _stalled(outcome, f"rounding holds an edge {left:.1e} off the covariance of the rows"), method


def _edge_gap(outcome: Outcome, R: Floats, structure: GraphStructure) -> float:
    """The largest gap of an edge or a variance at a precision; infinite where it is not positive definite."""
    K = outcome.state.parameters.reshape(R.shape)
    try:
        half = np.linalg.inv(np.linalg.cholesky(K))
    except np.linalg.LinAlgError:
        return math.inf
    rows, columns = structure.entries
    W = half.T @ half
    spread = np.diag(W)
    return float(np.max(np.abs(W - R)[rows, columns] / np.sqrt(spread[rows] * spread[columns] + W[rows, columns] ** 2)))


def _choose(selection: Selection, definite: bool, solver: str) -> tuple[str, str]:
    """The solver, and why where it was left open."""
    cycle = selection.structure.cycle
    if selection.ridge is not None and solver in ("closed-form", "regression", "ipf"):
        raise OptionError(f"solver={solver!r} knows no normal prior on the precision; use 'newton' or 'auto'.")
    if selection.ridge is not None and solver == "auto":
        return "newton", " (the prior is not conjugate)"
    if solver == "closed-form" and cycle:
        raise OptionError(f"There is no closed form: the cycle {listing(cycle)} has no chord. Use solver='auto'.")
    if solver != "auto":
        return solver, ""
    if not cycle:
        return "closed-form", " (the graph is chordal)"
    reason = f" (the cycle {listing(cycle, 6)} has no chord)"
    # A step of Newton's method costs the cube of the nodes, a sweep of regressions nodes times edges and many more
    # calls: those are worth it where they are compiled.
    structure = selection.structure
    return "regression" if definite and regressions_pay(
        len(structure.nodes), len(structure.edges)
    ) else "newton", reason


# -- what has no maximum ---------------------------------------------------------------------------------------------


def refuse_constant(variances: Floats, nodes: Sequence[Hashable]) -> None:
    """Raise where a column has no spread."""
    constant = [name for name, variance in zip(nodes, variances, strict=True) if not variance > 0]
    if constant:
        raise EstimateError(
            f"{listing(constant)} {'is' if len(constant) == 1 else 'are'} constant, so the likelihood grows without "
            "bound. Leave the column out, or give a prior."
        )


def _refuse_without_maximum(verdict: Verdict, selection: Selection) -> None:
    """Raise where the likelihood grows without bound, and say along which nodes."""
    if verdict.runaway is None:
        return
    structure, weight = selection.structure, selection.weight
    places = running(verdict.runaway)
    names = listing([structure.nodes[node] for node in places], 8)
    inside = {node for node in places if structure.support[np.ix_(places, places)].all()}
    if inside:
        clique = min((c for c in structure.cliques if inside <= set(c)), key=len, default=tuple(places))
        few = f" A clique of {len(clique)} nodes needs more than {len(clique)} rows." if weight <= len(clique) else ""
        members = listing([structure.nodes[node] for node in clique], 8)
        sentence = f"The covariance of the clique {members} is singular over {weight:g} rows, so the likelihood"
    else:
        enough = max(len(cluster) for cluster in structure.tree.clusters) + 1
        few = f" More rows may give it one; {enough} always do, unless columns are combinations of others."
        sentence = (
            f"No positive definite matrix has the variances and the edges of this covariance of {weight:g} rows: the "
            f"precisions of {names} run to infinity together, along which the likelihood"
        )
    raise EstimateError(
        f"{sentence} grows without bound and there is no maximum.{few} Leave out edges or columns, or give a prior "
        "such as Wishart(dof, inverse_scale)."
    )


def _refuse_vanishing(K: Floats, structure: GraphStructure, selection: Selection) -> None:
    """Raise where a precision, in the units of the columns, is too large to be told."""
    worst = int(np.argmax(np.diag(K)))
    if selection.ridge is None and not K[worst, worst] < 1.0 / VANISHING:
        raise EstimateError(
            f"The rest of {structure.nodes[worst]!r} given the others has a share of {1.0 / K[worst, worst]:.1e} of "
            f"its variance, too small to be told in float64: {selection.weight:g} rows are too few for this graph, or "
            "columns are combinations of others. Leave out edges or columns, or give a prior such as Wishart(dof, "
            "inverse_scale)."
        )
