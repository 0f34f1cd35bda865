"""Whether a log-linear model has a maximum of the likelihood, and the limit distribution where it has none.

The expected statistics of all distributions form the marginal polytope. The maximum exists if and only if the observed
ones lie inside it; on its boundary the likelihood rises without end along a direction, towards a distribution on the
cells of the smallest face that holds them: the extended maximum (Barndorff-Nielsen 1978; Fienberg and Rinaldo 2012). A
zero margin always means the boundary; positive margins do not mean the inside.

The cells of the face come from one linear programme. Take any distribution with the observed statistics, such as that
of the rows themselves, and let v be a change of it that leaves the statistics alone: of either sign where the
distribution is positive, not below 0 elsewhere. The changes form a cone that does not depend on the counts. With ``v =
s + r``, ``0 <= s <= 1`` and ``r >= 0`` on the cells where the distribution is 0, the largest sum of s has s = 1 on
those that some distribution with these statistics makes positive and 0 on the rest, so that no threshold has to be
tuned. Its dual solution is a direction along which exactly the rest vanishes. Where only margins are known, another
programme finds a distribution first, or proves that there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from suffice.array_types import Flags, Floats
from suffice.errors import EstimateError
from suffice.graphs.decomposition import decompose
from suffice.graphs.nodes import Node
from suffice.solvers.face_programmes import positive_cells, shortest_direction
from suffice.solvers.local_faces import local_face
from suffice.solvers.polytope import MarginalPolytope, Scopes

#: A linear programme with more cells of the junction tree than this is not tried.
MOST_CELLS = 10_000
#: A linear programme that has not ended then is given up, and the question is left open.
SECONDS = 20.0
#: Totals to which margins are scaled to find a distribution: the solver's tolerance is 1e-7 whatever they are. The
#: second is for margins that agree only to fewer digits. Cells below the share of the total that comes with it count as
#: zero.
SCALES = ((1e6, 1e-11), (1.0, 1e-6))
#: Up to this many cells the observed margins of the clusters are looked at, which may settle the question alone.
SEEN_CELLS = 1_000_000
#: Up to this many cells the direction is made as short as possible, so that it can be read.
READABLE_CELLS = 2_000


class NoJointDistributionError(EstimateError):
    """No distribution at all has the observed statistics."""


@dataclass(frozen=True, eq=False)
class Face:
    """The smallest face of the marginal polytope that holds the observed statistics.

    exists: whether that is the whole polytope, None if not decided; `reason` says how it was found. `direction`
    (weights,): along it the likelihood rises towards the extended maximum; zeros if the maximum exists. `support`
    (cells of the clusters,) marks what is positive in the limit; `complete` is False where only the zero margins are
    known. `scope_support`: the same for each scope.
    """

    exists: bool | None
    reason: str
    direction: Floats
    scope_support: tuple[Flags, ...]
    support: Flags | None
    polytope: MarginalPolytope
    complete: bool = True

    def masks(self) -> list[tuple[tuple[Node, ...], Floats]]:
        """Factors that put the distribution on the face: scopes, and tables of 0 and minus infinity; () if it is all.

        Added to the log-potentials they make every solver converge: on the face the maximum exists. Scopes of the model
        come first, clusters only where the scopes do not suffice. A cluster joins variables as the triangulation does.
        """
        masks = [
            (scope, _log_mask(alive))
            for scope, alive in zip(self.polytope.scopes, self.scope_support, strict=True)
            if not alive.all()
        ]
        if self.support is None:
            return masks
        implied = self.polytope.spread(self.scope_support)
        for cluster, alive, known in zip(
            self.polytope.clusters, self.polytope.tables(self.support), self.polytope.tables(implied), strict=True
        ):
            if (alive != known).any():
                masks.append((cluster, _log_mask(alive)))
        return masks

    def lost_states(self, states: Mapping[Any, Sequence[Any]]) -> tuple[str, ...]:
        """Which joint states of a cluster vanish though the margins of all scopes are positive there."""
        lost = []
        for scope, values in self.masks():
            if scope not in self.polytope.scopes:
                for cell in np.argwhere(values < 0):
                    parts = [f"{node}={states[node][code]}" for node, code in zip(scope, cell, strict=True)]
                    lost.append(f"P({', '.join(parts)}) -> 0")
        return tuple(lost)

    def n_states(self) -> int | None:
        """Joint states that are positive in the limit; None where the face is not known."""
        if self.support is None or not self.complete:
            return None
        return self.polytope.count_states(self.support)


def _log_mask(alive: Flags) -> Floats:
    return np.where(alive, 0.0, -np.inf)


def smallest_face(
    cards: Mapping[Any, int],
    scopes: Scopes,
    observed: Floats,
    total: float,
    *,
    design: Any = None,
    margin: Callable[[tuple[Node, ...]], Floats | None] | None = None,
    shares: Floats | None = None,
    names: Sequence[object] | None = None,
    most_cells: int = MOST_CELLS,
) -> Face:
    """Find the smallest face that holds the observed statistics.

    cards of all variables; scopes of the potentials; observed (weights,), sums over rows whose weights add up to total
    (or shares, and 1). design: (cells of all scopes one after another, weights), sparse or dense, the map from weights
    to log-potentials; None means one weight for each cell, and `observed` is then all margins one after another.
    `margin(scope)`, if given, returns the observed table of a scope, None or zeros where it is not known: with those of
    all clusters of the junction tree the answer does not depend on the size of the counts, and comes faster. shares
    (cells of all scopes,): the observed share of each cell; in large models the scopes are judged by themselves first,
    which finds what runs to infinity alone or with few others, and makes the rest of the programme easier. Raises
    NoJointDistributionError where no distribution at all has the observed statistics, with an inequality that they
    break; `names` of the weights make it readable.
    """
    polytope = MarginalPolytope.of(cards, scopes, design)
    target = np.asarray(observed, dtype=np.float64) / total
    never = _never_seen(polytope, target)
    alive, n_cells = _scope_cells(polytope, never), sum(polytope.tree.sizes)
    away = -never / _least(polytope, never)  # Along it the cells that are not alive fall by 1 or more.
    if shares is not None and design is not None and most_cells and n_cells > READABLE_CELLS:
        answer = local_face(cards, polytope.scopes, polytope.matrix, shares)
        if answer is not None and not answer[0].all():
            alive = [known & answer[0][a:b] for known, (a, b) in zip(alive, pairwise(polytope.ends), strict=True)]
            away = away + answer[1]
    decomposable = _is_decomposable(polytope)
    large = f"the junction tree has {n_cells:,} cells, and the linear programme takes at most {most_cells:,}"
    if n_cells > (most_cells if margin is None else max(most_cells, SEEN_CELLS)) and not decomposable:
        return _undecided(polytope, target, away, alive, large)
    possible = polytope.spread(alive)
    if len(possible) and not possible.any():
        raise NoJointDistributionError(
            "No joint distribution has the observed margins: every joint state falls in a cell with a margin of zero. "
            "Check the margins, or take them from one table."
        )
    nowhere = np.zeros(polytope.n_weights)
    if decomposable:
        reason = "a decomposable model: the maximum exists if and only if no margin is zero"
        return _face(polytope, target, away, possible, nowhere, reason)
    seen = None if margin is None else _seen(polytope, margin)
    if seen is None and n_cells <= most_cells:
        seen = _some_distribution(polytope, target, possible, names)
    if seen is not None and seen[possible].all():
        reason = "every cell that the zero margins leave is positive in a distribution with these margins"
        return _face(polytope, target, away, possible, nowhere, reason)
    if n_cells > most_cells:
        return _undecided(polytope, target, away, alive, large)
    answer = None if seen is None else _programme(polytope, possible, seen & possible)
    if answer is None:
        return _undecided(polytope, target, away, alive, "the solver of the linear programme gave up")
    support, direction = answer
    if not support[possible].all() and len(possible) <= READABLE_CELLS:
        shortest = _shortest(polytope, target, possible, support)
        direction = direction if shortest is None else shortest
    reason = f"a linear programme on {int(possible.sum()):,} cells of the junction tree"
    return _face(polytope, target, away, support, direction, reason)


def _no_distribution(target: Floats, direction: Floats, names: Sequence[object] | None) -> str:
    """In every joint state the direction adds up to at least 1 less than the observed statistics ask for on average."""
    largest = float(np.abs(direction).max())
    direction = direction / largest
    asked = float(target @ direction)
    highest = round(asked - 1.0 / largest, 12) + 0.0
    used = np.flatnonzero(np.abs(direction) > 1e-9)
    terms = [f"{direction[i]:+.4g} [{names[i] if names is not None else f'weight {i}'}]" for i in used[:12]]
    rest = f" ... ({len(used) - 12} more)" if len(used) > 12 else ""
    return (
        "No joint distribution has the observed margins, even where any two of them agree. In every joint state the "
        f"sum {' '.join(terms)}{rest}, a term counting where its cell holds, is at most {highest:.6g}; the margins ask "
        f"for {asked:.6g} on average. Check the margins, or take them from one table."
    )


def _never_seen(polytope: MarginalPolytope, target: Floats) -> Floats:
    """For each weight its sign (1, -1) if its statistic has one sign and was observed as zero; 0 for all others.

    No cell in which such a statistic acts was seen.
    """
    if polytope.design is None:
        return np.asarray(target == 0.0, dtype=np.float64)
    entries = polytope.matrix.tocoo()
    used = np.zeros((2, polytope.n_weights), dtype=bool)
    used[0, entries.col[entries.data > 0]] = True
    used[1, entries.col[entries.data < 0]] = True
    return np.where(target == 0.0, used[0].astype(np.float64) - used[1], 0.0)


def _scope_cells(polytope: MarginalPolytope, never: Floats) -> list[Flags]:
    """Cells of each scope in which none of these statistics acts."""
    cells = (never if polytope.design is None else polytope.matrix @ never) == 0.0
    return [np.asarray(cells[start:end], dtype=bool) for start, end in pairwise(polytope.ends)]


def _is_decomposable(polytope: MarginalPolytope) -> bool:
    """Whether the scopes with a weight for each cell make a decomposable model, and hold every other scope."""
    full = list(polytope.scopes)
    if polytope.design is not None:
        entries = polytope.matrix.tocsc()
        own = np.zeros(entries.shape[0], dtype=bool)
        own[entries.indices[entries.indptr[:-1][np.diff(entries.indptr) == 1]]] = True
        parts = zip(polytope.scopes, pairwise(polytope.ends), strict=True)
        full = [scope for scope, (start, end) in parts if own[start:end].all()]
    held = all(any(set(scope) <= set(other) for other in full) for scope in polytope.scopes)
    return held and decompose(full, polytope.cards).tree is not None


def _seen(polytope: MarginalPolytope, margin: Callable[[tuple[Node, ...]], Floats | None]) -> Flags | None:
    """Cells of the clusters that were observed (cells,); None unless the margins of all clusters are known."""
    parts = []
    for cluster in polytope.clusters:
        table = margin(cluster)
        if table is None or not np.any(table):
            return None
        parts.append(np.asarray(table).ravel() > 0)
    return np.concatenate(parts) if parts else np.zeros(0, dtype=bool)


def _undecided(polytope: MarginalPolytope, target: Floats, away: Floats, alive: Sequence[Flags], why: str) -> Face:
    tables = tuple(
        cells.reshape([polytope.cards[node] for node in scope])
        for scope, cells in zip(polytope.scopes, alive, strict=True)
    )
    if all(cells.all() for cells in alive):
        return Face(None, why, np.zeros(polytope.n_weights), tables, None, polytope, complete=False)
    reason = f"statistics observed as zero; whether that is all is not decided: {why}"
    direction = _with_zeros(polytope, target, away, np.zeros(polytope.n_weights))
    return Face(False, reason, direction, tables, None, polytope, complete=False)


def _face(
    polytope: MarginalPolytope, target: Floats, away: Floats, support: Flags, direction: Floats, reason: str
) -> Face:
    exists = bool(support.all())
    direction = np.zeros(polytope.n_weights) if exists else _with_zeros(polytope, target, away, direction)
    return Face(exists, reason, direction, tuple(polytope.scope_support(support)), support, polytope)


def _least(polytope: MarginalPolytope, never: Floats) -> float:
    """The least size of the statistics that were never seen, in the cells where they act."""
    if polytope.design is None or not never.any():
        return 1.0
    return float(np.abs(polytope.matrix[:, never != 0.0].data).min())


def _with_zeros(polytope: MarginalPolytope, target: Floats, away: Floats, direction: Floats) -> Floats:
    """Go away from cells that are known to vanish fast enough to beat whatever the direction adds in them.

    Along the direction d the log of a cell moves by a_x'd, at most the sum of the largest parts of the scopes, and on
    the face by the observed t'd.
    """
    if not (direction.any() and away.any()):
        return direction + away
    most = sum(float((design @ direction).max()) for design in polytope.designs)
    return direction + away * (1.0 + max(0.0, most - float(target @ direction)))


# -- the linear programme --------------------------------------------------------------------------------------------


def _equations(polytope: MarginalPolytope) -> Any:
    """Agreement on the separators, totals and statistics as functions of all cells: sparse (equations, cells)."""
    from scipy import sparse

    return sparse.vstack([polytope.agreement, polytope.totals, polytope.moments], format="csc")


def _some_distribution(
    polytope: MarginalPolytope, target: Floats, possible: Flags, names: Sequence[object] | None
) -> Flags | None:
    """Cells that are positive in some distribution with these statistics; an error if there is no such distribution.

    None where the programme finds neither a distribution nor an inequality that the statistics break.
    """
    from scipy import optimize

    right = np.concatenate([np.zeros(polytope.agreement.shape[0]), np.ones(polytope.totals.shape[0]), target])
    matrix = _equations(polytope)[:, possible]
    seen = np.zeros_like(possible)
    for total, zero in SCALES:
        answer = optimize.linprog(
            np.zeros(matrix.shape[1]),
            A_eq=matrix,
            b_eq=total * right,
            bounds=(0.0, None),
            method="highs-ipm",
            options={"time_limit": SECONDS},
        )
        if answer.success and answer.x is not None:
            seen[possible] = answer.x > zero * total
            return seen
    direction = _shortest(polytope, target, possible, seen)
    if direction is None:
        return None
    raise NoJointDistributionError(_no_distribution(target, direction, names))


def _programme(polytope: MarginalPolytope, possible: Flags, seen: Flags) -> tuple[Flags, Floats] | None:
    """Cells of the face, and a direction (weights,) that leaves them and lowers every other possible cell."""
    equations = _equations(polytope)
    answer = positive_cells(equations, possible & ~seen, seen, SECONDS)
    if answer is None:
        return None
    support, multipliers = answer
    return support, multipliers[equations.shape[0] - polytope.n_weights :]


def _shortest(polytope: MarginalPolytope, target: Floats, possible: Flags, support: Flags) -> Floats | None:
    """The direction with the least sum of |weights| that is 0 on the face and at most -1 on every other cell.

    Cells are those of the clusters, with free messages on the separators: some messages make every cluster cell off
    the face at most -1. The average of the observed statistics is not below 0, which says something new only where no
    distribution has them and the face is empty.
    """
    from scipy import sparse

    free = sparse.vstack([polytope.agreement, polytope.totals], format="csr").T.tocsr()
    average = np.concatenate([target, np.zeros(free.shape[1])])
    average[len(average) - polytope.totals.shape[0] :] = 1.0
    return shortest_direction(polytope.moments.T.tocsr(), free, support, possible & ~support, SECONDS, average)
