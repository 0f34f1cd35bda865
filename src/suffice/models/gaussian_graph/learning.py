"""The choice of a method for a Gaussian graph, and what has to hold before it is used."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from suffice.errors import EstimateError, OptionError, listing
from suffice.families.gaussian import NO_SPREAD
from suffice.iteration import Control, Outcome
from suffice.models.gaussian_graph.structure import GraphStructure
from suffice.solvers.covariance_selection import Ridge, by_newton, by_regressions, by_scaling, closed_form

Floats = NDArray[np.float64]

SOLVERS = ("auto", "closed-form", "regression", "ipf", "newton")
#: A variance in the units of its column, left when the others are known, below which the likelihood runs away.
VANISHING = 1e-11


@dataclass(frozen=True)
class Problem:
    """Covariances S (p, p) of `weight` rows, prior rows among them, and the graph; `ridge` holds entries of K."""

    structure: GraphStructure
    S: Floats
    weight: float
    ridge: Ridge | None
    control: Control
    start: Floats | None


@dataclass(frozen=True)
class Learned:
    """The precision (p, p), how it was found and why so."""

    precision: Floats
    method: str
    outcome: Outcome | None


def learn(problem: Problem, solver: str) -> Learned:
    """The precision that is zero on all non-edges and has the largest objective, ``N (log det K - tr(S K)) / 2``."""
    if solver not in SOLVERS:
        raise OptionError(f"solver is {solver!r}; expected one of {listing(SOLVERS)}.")
    units = np.sqrt(np.diag(problem.S))
    structure = problem.structure
    if problem.ridge is None:
        refuse_constant(units, structure.nodes)
    elif not (units > 0).all():
        units = np.where(units > 0, units, 1.0)
    scale = np.outer(units, units)
    try:
        found, method, outcome = _solve(problem, problem.S / scale, units, solver)
        np.linalg.cholesky(found)
    except np.linalg.LinAlgError:
        raise EstimateError(
            "Some columns are so nearly combinations of others that their precision cannot be told in float64. Leave "
            "out columns, or give a prior such as Wishart(dof, inverse_scale)."
        ) from None
    precision = found / scale
    precision[~_support(structure)] = 0.0
    _refuse_runaway(found, structure, problem)
    return Learned((precision + precision.T) / 2, method, outcome)


def _solve(problem: Problem, R: Floats, units: Floats, solver: str) -> tuple[Floats, str, Outcome | None]:
    """In units in which every column has variance 1."""
    structure, control = problem.structure, problem.control
    definite = _is_definite(R)
    chosen, reason = _choose(problem, definite, solver)
    start = np.eye(len(R)) if problem.start is None else problem.start * np.outer(units, units)
    if problem.ridge is None and not definite:
        _refuse_singular(R, structure, problem.weight)
    if chosen == "closed-form":
        return closed_form(R, structure.tree), f"closed form{reason}", None
    if chosen == "regression":
        outcome, method = _by_regressions(R, start, problem, definite)
    elif chosen == "ipf":
        outcome, method = _by_scaling(R, start, problem)
    else:
        ridge = problem.ridge
        if ridge is not None:
            spread = np.concatenate([units**2, np.prod(units[structure.pairs], axis=1)])
            ridge = Ridge(ridge.mean * spread, ridge.precision / spread**2 / problem.weight)
        outcome = by_newton(R, start, structure.pairs, control, ridge=ridge, problem="newton")
        method = "Newton"
    return outcome.state.parameters.reshape(R.shape), method + reason, outcome


def _by_scaling(R: Floats, start: Floats, problem: Problem) -> tuple[Outcome, str]:
    structure = problem.structure
    outcome = by_scaling(R, start, structure.tour, problem.control, problem="ipf")
    clusters = max(len(cluster) for cluster in structure.tree.clusters)
    return outcome, f"IPF over {len(structure.cliques)} cliques, clusters of up to {clusters} nodes"


def _by_regressions(R: Floats, start: Floats, problem: Problem, definite: bool) -> tuple[Outcome, str]:
    """By regressions; where columns are so alike that rounding holds them off, by proportional fitting instead.

    The sweeps watch the covariance, whose small changes may be large ones of a precision that is nearly singular. So
    the edges are measured once more, from the precision itself.
    """
    structure, control = problem.structure, problem.control
    method = "regression of each node on its neighbours"
    begin = R if definite else _completion(R, structure)
    outcome = by_regressions(R, begin, structure.pairs, control, problem="regression")
    left = _edge_gap(outcome, R, structure)
    if not outcome.converged or left <= control.tolerance:
        return outcome, method
    scaled, how = _by_scaling(R, start, problem)
    if _edge_gap(scaled, R, structure) < left:
        return scaled, f"{how}, as columns are too alike for regressions"
    return replace(outcome, converged=False, stop_reason="stalled"), method


def _edge_gap(outcome: Outcome, R: Floats, structure: GraphStructure) -> float:
    """The largest gap of an edge or a variance at a precision; infinite where it is not positive definite."""
    K = outcome.state.parameters.reshape(R.shape)
    try:
        half = np.linalg.inv(np.linalg.cholesky(K))
    except np.linalg.LinAlgError:
        return math.inf
    rows, columns = np.concatenate([np.tile(np.arange(len(R))[:, None], 2), structure.pairs]).T
    W = half.T @ half
    spread = np.diag(W)
    return float(np.max(np.abs(W - R)[rows, columns] / np.sqrt(spread[rows] * spread[columns] + W[rows, columns] ** 2)))


def _choose(problem: Problem, definite: bool, solver: str) -> tuple[str, str]:
    """The solver, and why where it was left open."""
    cycle = problem.structure.cycle
    if problem.ridge is not None:
        if solver not in ("auto", "newton"):
            raise OptionError(f"solver={solver!r} knows no normal prior on the precision; use 'newton' or 'auto'.")
        return "newton", "" if solver == "newton" else " (the prior is not conjugate)"
    if solver == "closed-form" and cycle:
        raise OptionError(f"There is no closed form: the cycle {listing(cycle)} has no chord. Use solver='auto'.")
    if solver != "auto":
        return solver, ""
    if not cycle:
        return "closed-form", " (the graph is chordal)"
    if definite:
        return "regression", f" (the cycle {listing(cycle, 6)} has no chord)"
    return "ipf", " (the graph has a chordless cycle and the covariance is singular)"


def _is_definite(block: Floats) -> bool:
    """Whether a matrix with a unit diagonal has no eigenvalue that is 0 up to rounding."""
    try:
        np.linalg.cholesky(block - NO_SPREAD * len(block) * np.eye(len(block)))
    except np.linalg.LinAlgError:
        return False
    return True


def _completion(R: Floats, structure: GraphStructure) -> Floats:
    """A positive definite matrix that agrees with a singular R on the edges: its completion over a chordal cover."""
    if all(_is_definite(R[np.ix_(cluster, cluster)]) for cluster in structure.tree.clusters):
        return np.asarray(np.linalg.inv(closed_form(R, structure.tree)), dtype=np.float64)
    raise EstimateError(
        "The regressions need a positive definite covariance to begin with, and the observed one is singular, also "
        "on a chordal cover of the graph. Use solver='ipf'."
    )


# -- what has no maximum ---------------------------------------------------------------------------------------------


def refuse_constant(units: Floats, nodes: Sequence[Hashable]) -> None:
    """Raise where a column has no spread."""
    constant = [name for name, unit in zip(nodes, units, strict=True) if not unit > 0]
    if constant:
        raise EstimateError(
            f"{listing(constant)} {'is' if len(constant) == 1 else 'are'} constant, so the likelihood grows without "
            "bound. Leave the column out, or give a prior."
        )


def _refuse_singular(R: Floats, structure: GraphStructure, weight: float) -> None:
    """Raise where a clique has a singular covariance: its likelihood alone grows without bound."""
    for clique in structure.cliques:
        if not _is_definite(R[np.ix_(clique, clique)]):
            names = [structure.nodes[at] for at in clique]
            few = (
                f" A clique of {len(clique)} nodes needs more than {len(clique)} rows." if weight <= len(clique) else ""
            )
            raise EstimateError(
                f"The covariance of the clique {listing(names, 8)} is singular over {weight:g} rows, so the likelihood "
                f"grows without bound and there is no maximum.{few} Leave out edges or columns, or give a prior such "
                "as Wishart(dof, inverse_scale)."
            )


def _refuse_runaway(K: Floats, structure: GraphStructure, problem: Problem) -> None:
    """Raise where the precision, in the units of the columns, has run away."""
    worst = int(np.argmax(np.diag(K)))
    if problem.ridge is None and not K[worst, worst] < 1.0 / VANISHING:
        raise EstimateError(
            f"The likelihood seems to grow without bound: the rest of {structure.nodes[worst]!r} given the others has "
            f"a share of {1.0 / float(K[worst, worst]):.1e} of its variance. {problem.weight:g} rows are too few for "
            "this graph; leave out edges, or give a prior such as Wishart(dof, inverse_scale)."
        )


def _support(structure: GraphStructure) -> NDArray[np.bool_]:
    present = np.eye(len(structure.nodes), dtype=bool)
    rows, columns = structure.pairs.T
    present[rows, columns] = present[columns, rows] = True
    return present


# -- certificate -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """What the precision is worth, measured from it alone: see `measure`."""

    moment_gap: float
    value_gap: float | None
    exists: bool | None
    spurious: int


def measure(structure: GraphStructure, K: Floats, W: Floats, S: Floats, ridge: Ridge | None, weight: float) -> Measured:
    """How far the edges of W = K^-1 are from those of S, and how much the objective can still rise (nats a row).

    Put S on the diagonal and the edges of W. If the result V is positive definite then ``-log det V - p`` bounds the
    objective ``log det K - tr(S K)`` of every K from above (duality), so the maximum exists and the gap is at most
    ``(tr(V K) - p - log det(V K)) / 2``. With a normal prior the bound is that of a function at least as curved.
    """
    rows, columns = np.concatenate([np.tile(np.arange(len(K))[:, None], 2), structure.pairs]).T
    deviation = np.sqrt(np.outer(np.diag(W), np.diag(W)) + W**2)
    off = ~_support(structure)
    spurious = int(np.count_nonzero(K[off]) // 2)
    if ridge is not None:
        twice = np.where(rows == columns, 0.5, 1.0)
        slope = twice * (W - S)[rows, columns] - ridge.precision * (K[rows, columns] - ridge.mean) / weight
        gap = float(np.max(np.abs(slope) / (twice * deviation[rows, columns])))
        return Measured(gap, 0.5 * weight * float(slope @ (slope / ridge.precision)), True, spurious)
    gap = float(np.max(np.abs((W - S) / deviation)[rows, columns]))
    V = W.copy()
    V[rows, columns] = V[columns, rows] = S[rows, columns]
    half = np.linalg.cholesky(K)
    away = half.T @ V @ half - np.eye(len(K))
    size = float(np.linalg.norm(away))
    if size < 0.5:  # e - log(1 + e) is at most e^2 / (2 (1 - |e|)), summed over the eigenvalues e.
        return Measured(gap, 0.25 * size * size / (1.0 - size), True, spurious)
    values = np.linalg.eigvalsh(away)
    if not values[0] > -1.0:
        return Measured(gap, None, None, spurious)
    return Measured(gap, 0.5 * float((values - np.log1p(values)).sum()), True, spurious)


def log_likelihood(K: Floats, scatter: Floats, weight: float) -> float:
    """Sum of log densities of rows whose products about the mean are `scatter`."""
    sign, log_det = np.linalg.slogdet(K)
    assert sign > 0
    return 0.5 * float(weight * (log_det - len(K) * math.log(2 * math.pi)) - np.vdot(scatter, K))
