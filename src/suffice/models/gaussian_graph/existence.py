"""Does a Gaussian graph have a maximum? A completion proves that it does, a matrix of the graph that it does not.

Let R be the covariance in units in which every variance is 1, and m the largest smallest eigenvalue that any matrix
with the diagonal and the edges of R has. The maximum exists where m > 0. By duality m is also the least ``tr(R K)`` of
all positive semi-definite K of trace 1 with the zeros of the graph: the likelihood grows for ever along such a K with
``tr(R K) = 0``. So each answer has a witness that is checked by itself, however it was found.

Witnesses are looked for along the maxima of ``log det K - tr((R + e I) K)``, which always exist: as e falls, W - e I
becomes a completion, or e K tends to a K of the second kind, of the largest rank that there is.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from suffice.array_types import Floats
from suffice.engines.workers import with_one_blas_thread
from suffice.families.gaussian import NO_SPREAD
from suffice.fitting.control import Control
from suffice.models.gaussian_graph.structure import GraphStructure
from suffice.solvers.covariance_newton import by_newton
from suffice.solvers.covariance_selection import closed_form

#: A variance in the units of its column, left when the others are known, below which the likelihood runs away.
VANISHING = 1e-11
#: Most nodes for which witnesses are looked for before the fit.
MOST_NODES = 300
#: The path along which they are looked for: what is added to every variance.
PATH = 100.0 ** -np.arange(0.5, 5.0)
#: A K whose mean precision, in the units of the columns, is below this is not on its way to infinity.
AFAR = 1e3
#: Equations, or unknowns, up to which the zeros of the graph are solved for.
MOST_EQUATIONS = 600
#: Nodes of a part of the graph that is looked at by itself, and parts of a graph.
PART_NODES, PARTS = (6, 9), 100
#: Levenberg-Marquardt steps to the zeros of the graph, and ranks that are tried.
STEPS, CUTS = 40, 4
#: Nodes whose share of a runaway precision is below this are not named.
NAMED = 1e-6


@dataclass(frozen=True, eq=False)
class Verdict:
    """Whether the maximum exists (None: not decided), and the witness: a completion of R, or a K that runs away."""

    exists: bool | None
    completion: Floats | None = None
    runaway: Floats | None = None


def decide(R: Floats, structure: GraphStructure) -> Verdict:
    """Whether a maximum exists, for R (p, p) with a unit diagonal."""
    if is_definite(R):
        return Verdict(True, R)
    clusters = structure.tree.clusters
    if all(is_definite(R[np.ix_(cluster, cluster)]) for cluster in clusters):
        return Verdict(True, np.asarray(np.linalg.inv(closed_form(R, structure.tree)), dtype=np.float64))
    for clique in structure.cliques:
        runaway = _of_clique(R, clique, structure)
        if runaway is not None:
            return Verdict(False, runaway=runaway)
    if len(R) > MOST_NODES:
        return Verdict(None)
    return with_one_blas_thread(lambda: _along_the_path(R, structure))


def _along_the_path(R: Floats, structure: GraphStructure) -> Verdict:
    K: Floats = np.eye(len(R))
    control = Control(max_iter=60, tolerance=1e-6)
    for more in PATH:
        try:
            outcome = by_newton(R + more * np.eye(len(R)), K, structure.pairs, control)
            K = outcome.state.parameters.reshape(R.shape)
            verdict = judge(K, R, structure)
        except np.linalg.LinAlgError:
            break
        if verdict.exists is not None:
            return verdict
    return _in_parts(np.diag(K), R, structure)


def _in_parts(sizes: Floats, R: Floats, structure: GraphStructure) -> Verdict:
    """Whether a part of the graph has no maximum, so that the whole has none; parts are about nodes of large sizes."""
    for centre, most in itertools.product(np.argsort(-sizes, kind="stable")[:PARTS].tolist(), PART_NODES):
        part = sorted(_ball(structure.graph, centre, most))
        if not 4 <= len(part) < len(R):
            continue
        inside = set(part)
        edges = tuple((a, b) for a, b in structure.pairs.tolist() if a in inside and b in inside)
        verdict = decide(R[np.ix_(part, part)], GraphStructure(tuple(part), edges))
        if verdict.runaway is not None:
            K = np.zeros_like(R)
            K[np.ix_(part, part)] = verdict.runaway
            return Verdict(False, runaway=K)
    return Verdict(None)


def _ball(graph: dict[int, set[int]], centre: int, most: int) -> list[int]:
    """The nodes nearest to one of them, by edges; itself first."""
    nodes = [centre]
    for node in nodes:
        nodes += [near for near in sorted(graph[node]) if near not in nodes]
        if len(nodes) >= most:
            break
    return nodes[:most]


def judge(K: Floats, R: Floats, structure: GraphStructure) -> Verdict:
    """What a positive definite K (p, p) of the graph says about the maximum."""
    V = completed(np.asarray(np.linalg.inv(K), np.float64), R, structure)
    if is_definite(V):
        return Verdict(True, V)
    if not np.trace(K) > AFAR * len(K):
        return Verdict(None)
    runaway = _nearest_runaway(K, R, structure)
    return Verdict(None) if runaway is None else Verdict(False, runaway=runaway)


def completed(W: Floats, R: Floats, structure: GraphStructure) -> Floats:
    """W (p, p) with the diagonal and the edges of R."""
    rows, columns = structure.entries
    V = (W + W.T) / 2
    V[rows, columns] = V[columns, rows] = R[rows, columns]
    return V


def is_definite(block: Floats) -> bool:
    """Whether a matrix with a unit diagonal has no eigenvalue that is 0 up to rounding."""
    try:
        np.linalg.cholesky(block - NO_SPREAD * len(block) * np.eye(len(block)))
    except np.linalg.LinAlgError:
        return False
    return True


def least_variance(K: Floats, R: Floats) -> float:
    """A bound of m from above, by a symmetric K (p, p) of the graph: see the module.

    What K lacks of being positive semi-definite, rounding included, is added to its diagonal first.
    """
    values = np.linalg.eigvalsh(K)
    lacks = max(0.0, -float(values[0])) + NO_SPREAD * float(np.abs(values).max())
    return float(np.vdot(R, K) + lacks * np.trace(R)) / float(np.trace(K) + lacks * len(K))


def _vanishes(K: Floats, R: Floats) -> bool:
    """Whether ``tr(R K) = 0`` but for rounding: p products of numbers whose rounding adds up over p nodes."""
    return bool(np.trace(K) > 0 and least_variance(K, R) <= min(2 * NO_SPREAD * len(R) ** 2, VANISHING))


def _of_clique(R: Floats, clique: tuple[int, ...], structure: GraphStructure) -> Floats | None:
    """The K of a combination of the nodes of a clique that has no variance."""
    block = R[np.ix_(clique, clique)]
    if is_definite(block):
        return None
    _, vectors = np.linalg.eigh(block)
    K = np.zeros_like(R)
    K[np.ix_(clique, clique)] = np.outer(vectors[:, 0], vectors[:, 0])
    return K if _vanishes(K, R) else None


def _nearest_runaway(K: Floats, R: Floats, structure: GraphStructure) -> Floats | None:
    """A K of the graph with ``R K = 0``, near to one that is on its way to infinity.

    It is ``(N Y)(N Y)'``, where N spans the directions without variance: positive semi-definite whatever Y is. Y begins
    at what K has of it, and goes by Levenberg-Marquardt steps to where the zeros of the graph are.
    """
    values, vectors = np.linalg.eigh(R)
    N = vectors[:, values <= NO_SPREAD * len(R) * 4]
    for cut in range(CUTS):
        candidate: Floats | None = K
        for number in (cut, 0, 0):  # Once the zeros are nearly there, what is left behind shows more clearly.
            candidate = None if candidate is None else _with_zeros(N, _largest(N.T @ candidate @ N, number), structure)
            if candidate is not None and _vanishes(candidate, R):
                return candidate
    return None


def _largest(A: Floats, cut: int) -> Floats:
    """Y with ``Y Y'`` near A (m, m) and no more columns than A has large directions.

    What does not run to infinity is left far behind: Y ends where sizes fall most, or second most, as `cut` says.
    """
    sizes, turns = np.linalg.eigh((A + A.T) / 2)
    sizes, turns = sizes[::-1], turns[:, ::-1]
    if not len(sizes) or not sizes[0] > 0:
        return np.zeros((len(A), 0))
    kept = sizes[sizes > 1e-13 * sizes[0]]
    falls = np.append(kept[:-1] / kept[1:], 0.0)
    count = int(np.argsort(-falls, kind="stable")[min(cut, len(falls) - 1)]) + 1
    return np.asarray(turns[:, :count] * np.sqrt(kept[:count] / kept.sum()))


def _with_zeros(N: Floats, Y: Floats, structure: GraphStructure) -> Floats | None:
    """``(N Y)(N Y)'`` with the zeros of the graph, for a Y near the given one; None where none was found."""
    rows, columns = np.nonzero(np.triu(~structure.support, 1))
    if not Y.size or min(len(rows), Y.size) > MOST_EQUATIONS:
        return None
    before = math.inf
    for _ in range(STEPS):
        F = N @ Y
        left = np.einsum("ij,ij->i", F[rows], F[columns])
        size = float(np.abs(left).max(initial=0.0))
        if size < 1e-16 or size > 0.9 * before:
            break
        before = size
        # A change G of Y moves entry (a, b) by N_a G F_b' + F_a G' N_b'.
        turned = N[rows][:, :, None] * F[columns][:, None, :] + N[columns][:, :, None] * F[rows][:, None, :]
        Y = Y - _damped(turned.reshape(len(rows), Y.size), left).reshape(Y.shape)
    F = N @ Y
    K = np.where(structure.support, F @ F.T, 0.0)
    return K / np.trace(K) if np.trace(K) > 0.5 else None


def _damped(J: Floats, left: Floats) -> Floats:
    """A Levenberg-Marquardt step: fast also where many Y near each other have the zeros (Fan and Yuan 2005)."""
    damping = float(np.linalg.norm(left))
    if J.shape[0] < J.shape[1]:
        return np.asarray(J.T @ np.linalg.solve(J @ J.T + damping * np.eye(len(J)), left))
    return np.asarray(np.linalg.solve(J.T @ J + damping * np.eye(J.shape[1]), J.T @ left))


def running(K: Floats) -> list[int]:
    """The places of the nodes whose precisions run to infinity along K (p, p)."""
    shares: list[int] = np.flatnonzero(np.diag(K) > NAMED * np.trace(K)).tolist()
    return shares
