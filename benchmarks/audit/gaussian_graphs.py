"""Random Gaussian graphs: all solvers and priors, few rows; maxima by Newton's method, existence by duality.

Whether a positive definite matrix has given variances and edges is a small semi-definite programme. Its barrier gives a
lower and an upper bound of the largest smallest eigenvalue of such matrices, so the truth is proved either way.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import suffice as sf
from benchmarks.audit.judging import fitted_or_refused, value_record
from benchmarks.audit.record import Coverage, Existence, Problem, Record

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Rng = np.random.Generator
Found = Iterator[Record]

SOLVERS = ("auto", "auto", "regression", "ipf", "newton")
#: A smallest eigenvalue above the first exists for certain; one that is bounded by the second does not.
POSITIVE, NOTHING = 1e-6, 1e-7
#: Columns nearer to combinations of others than this, in shares of their variance, leave the oracle no digits.
STEEPEST = 1e6
#: Data sets of a problem of intervals.
DATA_SETS = 5
Z95 = 1.959963984540054


@dataclass(frozen=True)
class Graph:
    """Nodes 0 to p - 1 and the pairs (m, 2) that are joined."""

    p: int
    edges: list[tuple[int, int]]

    @property
    def names(self) -> list[str]:
        return [f"x{node}" for node in range(self.p)]

    @property
    def cliques(self) -> list[tuple[str, str]]:
        return [(f"x{a}", f"x{b}") for a, b in self.edges]

    @property
    def entries(self) -> tuple[Ints, Ints]:
        """Rows and columns of the free entries: the diagonal, then the edges."""
        pairs = np.array([(node, node) for node in range(self.p)] + self.edges, dtype=np.intp)
        return pairs[:, 0], pairs[:, 1]

    @property
    def apart(self) -> tuple[Ints, Ints]:
        """Rows and columns of the pairs that are not joined."""
        missing = [pair for pair in itertools.combinations(range(self.p), 2) if pair not in set(self.edges)]
        pairs = np.array(missing, dtype=np.intp).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]


def draw_graph(rng: Rng) -> Graph:
    """A cycle, or any graph of 2 to 6 nodes."""
    p = int(rng.integers(2, 7))
    if p > 3 and rng.random() < 0.35:
        order = rng.permutation(p).tolist()
        around = zip(order, [*order[1:], order[0]], strict=True)
        return Graph(p, sorted((min(a, b), max(a, b)) for a, b in around))
    chance = rng.uniform(0.2, 1.0)
    return Graph(p, [pair for pair in itertools.combinations(range(p), 2) if rng.random() < chance])


def draw_rows(rng: Rng, p: int, n: int) -> Floats:
    """Correlated columns in different units, away from 0; some are nearly alike."""
    mixed = rng.normal(size=(n, p)) @ (np.eye(p) + 0.5 * rng.normal(size=(p, p)))
    if p > 1 and rng.random() < 0.15:
        mixed[:, 0] = mixed[:, 1] + 10.0 ** rng.uniform(-2, 0) * mixed[:, 0]
    return np.asarray(mixed * 10.0 ** rng.uniform(-3, 3, size=p) + rng.normal(size=p))


# -- oracles ---------------------------------------------------------------------------------------------------------


def best_precision(S: Floats, graph: Graph, ridge: tuple[Floats, Floats] | None = None) -> Floats:
    """The precision with the largest ``log det K - tr(S K)``, less ``sum precision (K - mean)^2``, by damped Newton.

    ridge: mean and precision of the free entries, of a row and twice.
    """
    rows, columns = graph.entries
    twice = np.where(rows == columns, 1.0, 2.0)
    K = np.diag(1.0 / np.diag(S))
    value = selection_value(K, S, graph, ridge)
    for _ in range(500):
        W = np.linalg.inv(K)
        slope = twice * (W - S)[rows, columns]
        curvature = W[np.ix_(rows, rows)] * W[np.ix_(columns, columns)]
        curvature = curvature + W[np.ix_(rows, columns)] * W[np.ix_(columns, rows)]
        curvature = curvature * np.outer(twice, twice) / 2.0
        if ridge is not None:
            slope = slope - ridge[1] * (K[rows, columns] - ridge[0])
            curvature = curvature + np.diag(ridge[1])
        scale = 1.0 / np.sqrt(np.diag(curvature))
        step = scale * np.linalg.solve(curvature * np.outer(scale, scale), scale * slope)
        change = np.zeros_like(K)
        change[rows, columns] = change[columns, rows] = step
        length, ahead = 1.0, -math.inf
        while length > 1e-12 and not (ahead := selection_value(K + length * change, S, graph, ridge)) > value:
            length /= 2.0
        if not ahead > value:
            break
        rise, K, value = ahead - value, K + length * change, ahead
        if rise < 1e-16 * abs(value):
            break
    return K


def selection_value(K: Floats, S: Floats, graph: Graph, ridge: tuple[Floats, Floats] | None = None) -> float:
    """``log det K - tr(S K) - sum precision (K - mean)^2 / 2``; minus infinity where K is not positive definite."""
    try:
        half = np.linalg.cholesky(K)
    except np.linalg.LinAlgError:
        return -math.inf
    found = 2.0 * float(np.log(np.diag(half)).sum()) - float(np.vdot(S, K))
    if ridge is not None:
        rows, columns = graph.entries
        found -= 0.5 * float(ridge[1] @ (K[rows, columns] - ridge[0]) ** 2)
    return found


def has_completion(R: Floats, graph: Graph) -> bool | None:
    """Whether some positive definite matrix has the diagonal and the edges of R; None where it is too near to tell.

    The largest t for which ``R + Y - t I`` may be positive semi-definite, Y free where nothing is joined, by the
    barrier ``t + mu log det(R + Y - t I)``. At its maximum ``mu (R + Y - t I)^-1`` is feasible for the dual programme,
    and t is within p mu of the best.
    """
    rows, columns = graph.apart
    p, m = graph.p, len(rows)
    V = np.array(R)
    V[rows, columns] = V[columns, rows] = 0.0
    t, mu = float(np.linalg.eigvalsh(V)[0]) - 1.0, 1.0

    def height(V: Floats, t: float, mu: float) -> float:
        try:
            half = np.linalg.cholesky(V - t * np.eye(p))
        except np.linalg.LinAlgError:
            return -math.inf
        return t + 2.0 * mu * float(np.log(np.diag(half)).sum())

    while mu > 1e-8:
        mu *= 0.2
        for _ in range(50):
            W = np.linalg.inv(V - t * np.eye(p))
            slope = np.append(2.0 * mu * W[rows, columns], 1.0 - mu * np.trace(W))
            curvature = np.zeros((m + 1, m + 1))
            inner = (
                W[np.ix_(rows, rows)] * W[np.ix_(columns, columns)]
                + W[np.ix_(rows, columns)] * W[np.ix_(columns, rows)]
            )
            square = W @ W
            curvature[:m, :m] = 2.0 * mu * inner
            curvature[:m, m] = curvature[m, :m] = -2.0 * mu * square[rows, columns]
            curvature[m, m] = mu * np.trace(square)
            scale = 1.0 / np.sqrt(np.diag(curvature))
            try:
                step = scale * np.linalg.solve(curvature * np.outer(scale, scale), scale * slope)
            except np.linalg.LinAlgError:
                break
            change = np.zeros_like(V)
            change[rows, columns] = change[columns, rows] = step[:m]
            length, here = 1.0, height(V, t, mu)
            while length > 1e-10 and not height(V + length * change, t + length * step[m], mu) > here:
                length /= 2.0
            if length <= 1e-10:
                break
            V, t = V + length * change, t + length * float(step[m])
            if float(slope @ step) < 1e-8 * mu:
                break
        if t > POSITIVE:
            return True
    dual = mu * np.linalg.inv(V - t * np.eye(p))
    dual[rows, columns] = dual[columns, rows] = 0.0
    dual /= np.trace(dual)
    if np.linalg.eigvalsh(dual)[0] < -1e-9:
        return None
    return False if float(np.vdot(R, dual)) < NOTHING else None


# -- problems --------------------------------------------------------------------------------------------------------


def moments_of(rows: Floats) -> tuple[Floats, Floats]:
    """Standard deviations, and correlations (divisor n)."""
    away = rows - rows.mean(axis=0)
    away = away - away.mean(axis=0)
    units = np.sqrt((away**2).mean(axis=0))
    away = away / units
    return units, np.asarray(away.T @ away / len(rows))


def judge(graph: Graph, fitted: Any, label: str, R: Floats, units: Floats, ridge: Any = None) -> Found:
    """The value of a fit in units in which every column has variance 1: that of a row, without constants."""
    K = np.asarray(fitted.precision_) * np.outer(units, units)
    best = best_precision(R, graph, ridge)
    if np.diag(best).max() > STEEPEST:
        return
    size = selection_value(best, R, graph, ridge)
    yield value_record(label, fitted, 0.5 * rise(K, best, R, graph, ridge), 0.0, size)


def rise(K: Floats, best: Floats, R: Floats, graph: Graph, ridge: tuple[Floats, Floats] | None) -> float:
    """How much larger the objective is at one precision than at another, from their difference.

    Both values are differences of numbers as large as the precisions; the rise itself is not.
    """
    inverse, change = np.linalg.inv(np.linalg.cholesky(K)), best - K
    found = float(np.log1p(np.linalg.eigvalsh(inverse @ change @ inverse.T)).sum() - np.vdot(R, change))
    if ridge is not None:
        a, b = graph.entries
        found -= 0.5 * float(ridge[1] @ (change[a, b] * (K[a, b] + best[a, b] - 2.0 * ridge[0])))
    return found


def maximum(rng: Rng) -> Found:
    """Maximum likelihood from few or many rows."""
    graph = draw_graph(rng)
    n = int(rng.integers(2, graph.p + 3)) if rng.random() < 0.7 else 40
    whole = rng.random() < 0.2  # Small whole numbers: columns may be combinations of others.
    rows = np.asarray(rng.integers(0, 3, size=(n, graph.p)), dtype=np.float64) if whole else draw_rows(rng, graph.p, n)
    if (np.ptp(rows, axis=0) == 0.0).any():
        return
    units, R = moments_of(rows)
    truth = has_completion(R, graph)
    solver, stopped = str(rng.choice(SOLVERS)), rng.random() < 0.2
    model = sf.GaussianGraph(graph.cliques, graph.names, solver=solver, max_iter=2 if stopped else 1_000)  # type: ignore[arg-type]
    fitted = fitted_or_refused(lambda: model.fit(rows, columns=graph.names))
    if truth is not None:
        said = fitted if isinstance(fitted, str) else fitted.report_.certificate.exists
        kind = "auto" if solver == "auto" else "other solvers"
        yield Existence(f"GaussianGraph {kind}", truth, said)
    if truth and not isinstance(fitted, str):
        label = f"GaussianGraph {solver}, no prior" + (", max_iter=2" if stopped else "")
        yield from judge(graph, fitted, label, R, units)


def closed_form(rng: Rng) -> Found:
    """Chordal graphs: each new node is joined to a clique of the earlier ones. Existence asks for n > clique size."""
    p, cliques, edges = int(rng.integers(2, 7)), [[0]], list[tuple[int, int]]()
    for node in range(1, p):
        clique = cliques[int(rng.integers(len(cliques)))]
        kept = [other for other in clique if rng.random() < 0.7]
        edges += [(other, node) for other in kept]
        cliques.append([*kept, node])
    graph, n = Graph(p, sorted(edges)), int(rng.integers(2, 2 * p + 2))
    rows = draw_rows(rng, p, n)
    units, R = moments_of(rows)
    # Of n rows with a continuous law n - 1 columns about their mean are independent, and no more.
    truth = n - 1 >= max(map(len, cliques))
    model = sf.GaussianGraph(graph.cliques, graph.names, solver="closed-form")
    fitted = fitted_or_refused(lambda: model.fit(rows, columns=graph.names))
    said = fitted if isinstance(fitted, str) else fitted.report_.certificate.exists
    yield Existence("GaussianGraph closed form", truth, said)
    if truth and not isinstance(fitted, str):
        yield from judge(graph, fitted, "GaussianGraph closed-form, no prior", R, units)


def constant_column(rng: Rng) -> Found:
    """A column without spread has no maximum."""
    graph = draw_graph(rng)
    rows = draw_rows(rng, graph.p, int(rng.integers(3, 30)))
    rows[:, int(rng.integers(graph.p))] = rng.normal() * 10.0 ** rng.uniform(-6, 6)
    model = sf.GaussianGraph(graph.cliques, graph.names, solver=str(rng.choice(SOLVERS)))  # type: ignore[arg-type]
    fitted = fitted_or_refused(lambda: model.fit(rows, columns=graph.names))
    said = fitted if isinstance(fitted, str) else fitted.report_.certificate.exists
    yield Existence("GaussianGraph constant column", False, said)


def with_prior(rng: Rng) -> Found:
    """Wishart, normal-Wishart and normal priors: there is always a maximum."""
    graph, kind = draw_graph(rng), str(rng.choice(["Wishart", "NormalWishart", "Normal"]))
    p, n, stopped = graph.p, int(rng.integers(2, 30)), rng.random() < 0.2
    rows = draw_rows(rng, p, n)
    mean, away = rows.mean(axis=0), rows - rows.mean(axis=0)
    scatter, weight, ridge = away.T @ away, float(n), None
    root = rng.normal(size=(p, p + 2)) * rows.std(axis=0)[:, None]
    scale, dof = root @ root.T / p, p + 1.0 + 10.0 ** rng.uniform(-1, 1)
    prior: Any
    solver = str(rng.choice(SOLVERS)) if kind != "Normal" else str(rng.choice(["auto", "newton"]))
    if kind == "Wishart":
        prior, scatter, weight = sf.Wishart(dof, scale), scatter + scale, weight + dof - p - 1.0
    elif kind == "NormalWishart":
        centre, strength = rng.normal(size=p), 10.0 ** rng.uniform(-1, 1)
        prior = sf.NormalWishart(mean=centre, strength=strength, dof=dof, inverse_scale=scale)
        apart = np.outer(mean - centre, mean - centre) * (n * strength / (n + strength))
        scatter, weight = scatter + scale + apart, weight + dof - p
    S = scatter / weight
    units = np.sqrt(np.diag(S))
    if kind == "Normal":
        variance = 10.0 ** rng.uniform(-2, 2) / float(np.exp(np.log(np.diag(S)).mean())) ** 2
        prior = sf.Normal(mean=0.0, variance=variance)
        a, b = graph.entries
        ridge = np.zeros(len(a)), 2.0 / (weight * variance * (units[a] * units[b]) ** 2)
    model = sf.GaussianGraph(graph.cliques, graph.names, solver=solver, prior=prior, max_iter=2 if stopped else 1_000)  # type: ignore[arg-type]
    fitted = model.fit(rows, columns=graph.names)
    yield Existence("GaussianGraph, a prior", True, fitted.report_.certificate.exists)
    label = f"GaussianGraph, {kind}" + (", max_iter=2" if stopped else "")
    yield from judge(graph, fitted, label, S / np.outer(units, units), units, ridge)


def intervals(rng: Rng) -> Found:
    """95 % Wald intervals of the entries of the precision: one entry of each of a few data sets."""
    graph = draw_graph(rng)
    K = np.zeros((graph.p, graph.p))
    for a, b in graph.edges:
        K[a, b] = K[b, a] = rng.uniform(-1, 1)
    K += np.diag(np.abs(K).sum(axis=1) + rng.uniform(0.5, 1.5, size=graph.p))
    half, covered = np.linalg.inv(np.linalg.cholesky(K)), 0
    for _ in range(DATA_SETS):
        rows = rng.normal(size=(400, graph.p)) @ half
        fitted = sf.GaussianGraph(graph.cliques, graph.names).fit(rows, columns=graph.names)
        places = graph.entries
        at = int(rng.integers(len(places[0])))
        a, b = int(places[0][at]), int(places[1][at])
        covered += bool(abs(fitted.precision_[a, b] - K[a, b]) <= Z95 * fitted.standard_errors_[a, b])
    yield Coverage("GaussianGraph, Wald", covered, DATA_SETS)


PROBLEMS: dict[str, Problem] = {
    "gaussian-maximum": maximum,
    "gaussian-closed-form": closed_form,
    "gaussian-constant-column": constant_column,
    "gaussian-prior": with_prior,
    "gaussian-intervals": intervals,
}
