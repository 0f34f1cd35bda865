"""How many parameters of a log-linear model can be told apart: the rank of its statistics.

Weights that move the expected statistics in no direction leave the distribution as it is. The number of parameters is
therefore the dimension of the span of the statistics a_x, less the constant that the normaliser takes: the rank of
their covariance under any distribution that is positive everywhere. On a face of the marginal polytope it is smaller,
because the statistics vary less there (Fienberg and Rinaldo 2012): with |F| positive cells, the saturated model has |F|
- 1 parameters left, and the degrees of freedom are the difference of the two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from suffice.array_types import Flags, Floats
from suffice.errors import SizeError
from suffice.graphs.nodes import Node
from suffice.solvers.faces import Face
from suffice.solvers.polytope import MarginalPolytope, Scopes

#: A singular value below this share of the largest one counts as zero.
TOLERANCE = 1e-9
#: An eigenvalue of a correlation below this share of the largest one counts as zero: it is the square of one.
CORRELATION = 1e-10
#: Statistics and separator cells together up to which the rank is computed; the matrix is dense then.
MOST_ROWS = 4_000
#: Subsets of scopes up to which the closed formula is summed.
MOST_SUBSETS = 5_000_000


def table_rank(scopes: Scopes, cards: Mapping[Any, int]) -> int:
    """Free parameters of the model with one weight for each cell of each scope.

    The model has an interaction term for every non-empty subset of a scope, with ``prod (card - 1)`` parameters; the
    empty subset is the normaliser and does not count. Variables with a single state add nothing.
    """
    sets = {frozenset(node for node in scope if cards[node] > 1) for scope in scopes}
    if sum(2 ** len(scope) for scope in sets) <= MOST_SUBSETS:
        terms = {
            frozenset(term) for scope in sets for size in range(1, len(scope) + 1) for term in combinations(scope, size)
        }
        return sum(math.prod([cards[node] - 1 for node in term]) for term in terms)
    return _by_inclusion([scope for scope in sets if not any(scope < other for other in sets)], cards)


def _by_inclusion(scopes: list[frozenset[Node]], cards: Mapping[Any, int]) -> int:
    """The same sum without listing subsets, adding one scope at a time.

    All terms inside a scope S, the empty one included, have prod_S card parameters together. A new scope adds its own
    less those inside its intersections with the scopes before it, which are scopes of a smaller model.
    """
    total = 0
    for number, scope in enumerate(scopes):
        shared = {scope & before for before in scopes[:number]}
        inner = [part for part in shared if part and not any(part < other for other in shared)]
        total += math.prod([cards[node] for node in scope]) - 1 - _by_inclusion(inner, cards)
    return total


def rank(polytope: MarginalPolytope, support: Flags | None = None) -> int:
    """Dimension of the statistics over the joint states whose cluster cells are all in the support (default: all).

    Tables mu on the support that agree on the separators form a space V; the statistics map it to a space of dimension
    rank([agreement; moments]) - rank(agreement), one more than that of the distributions among them.
    """
    from scipy import sparse

    kept = np.ones(int(polytope.starts[-1]), dtype=bool) if support is None else support
    agreement = sparse.vstack([polytope.agreement, _components(polytope)], format="csr")[:, kept]
    moments = sparse.vstack([polytope.moments, polytope.totals[:1]], format="csr")[:, kept]
    return matrix_rank(sparse.vstack([agreement, moments])) - matrix_rank(agreement) - 1


def _components(polytope: MarginalPolytope) -> Any:
    """Totals of the trees of the forest, less that of the first: rows that make all totals agree."""
    from scipy import sparse

    totals = polytope.totals
    if totals.shape[0] < 2:
        return sparse.csr_array((0, totals.shape[1]))
    return totals[1:] - sparse.vstack([totals[:1]] * (totals.shape[0] - 1), format="csr")


def matrix_rank(matrix: Any) -> int:
    """Numerical rank of a sparse or dense matrix, rows scaled to length one."""
    from scipy import sparse

    rows = sparse.csr_array(matrix)
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    rows = sparse.csr_array(sparse.diags_array(1.0 / lengths[lengths > 0]) @ rows[lengths > 0])
    if min(rows.shape) == 0:
        return 0
    if min(rows.shape) > MOST_ROWS:
        raise SizeError(
            f"The rank of {rows.shape[0]:,} statistics on {rows.shape[1]:,} cells would take a dense matrix; up to "
            f"{MOST_ROWS:,} are computed."
        )
    values = np.linalg.svd(rows.toarray(), compute_uv=False)
    return int((values > TOLERANCE * values[0]).sum())


def column_space(matrix: Floats) -> Floats:
    """An orthonormal basis (n, rank) of the span of the columns of a matrix (n, k), whatever their units."""
    sizes = np.linalg.norm(matrix, axis=0)
    left, values, _ = np.linalg.svd(matrix[:, sizes > 0.0] / sizes[sizes > 0.0], full_matrices=False)
    return np.asarray(left[:, values > TOLERANCE * values.max(initial=0.0)])


def inverse_and_flat(information: Floats, still: float = 0.0) -> tuple[Floats, Floats, Floats]:
    """The pseudo-inverse of a symmetric matrix (k, k) that is not negative, and directions along which it is 0.

    What counts as zero is decided on the matrix scaled to a diagonal of ones, in which a rare event and an income in
    cents weigh the same. With a generalised inverse G from there and the projector P on the range, the pseudo-inverse
    is P G P; where nothing counts as zero it is G itself, the inverse. The directions (k, f) are orthonormal.

    The third (k,) is how much of each coordinate lies in such directions, from 0 to 1, in the matrix scaled to a
    diagonal of ones. still: a row counts as 0 where the root of its diagonal is no more than this share of the largest.
    """
    scale = np.sqrt(np.clip(np.diagonal(information), 0.0, None))
    varies = scale > still * scale.max(initial=0.0)
    result = np.zeros_like(information)
    flat, shares = np.eye(len(scale))[:, ~varies], np.where(varies, 0.0, 1.0)
    if not varies.any():
        return result, flat, shares
    sizes = scale[varies]
    values, vectors = np.linalg.eigh(information[np.ix_(varies, varies)] / np.outer(sizes, sizes))
    curved = values > CORRELATION * max(values[-1], 0.0)
    inverse = (vectors[:, curved] / values[curved]) @ vectors[:, curved].T / np.outer(sizes, sizes)
    if not curved.all():
        lost = vectors[:, ~curved] / sizes[:, None]
        basis, _ = np.linalg.qr(lost / np.abs(lost).max(axis=0))
        inverse -= basis @ (basis.T @ inverse)
        inverse -= (inverse @ basis) @ basis.T
        wide = np.zeros((len(scale), basis.shape[1]))
        wide[varies] = basis
        flat, shares[varies] = np.hstack([flat, wide]), np.sqrt(np.sum(vectors[:, ~curved] ** 2, axis=1))
    result[np.ix_(varies, varies)] = inverse
    return result, flat, shares


def dimensions(face: Face) -> tuple[int | None, int | None]:
    """Parameters and degrees of freedom on the face of an extended maximum: (rank, |F| - 1 - rank).

    Where the maximum exists these are those of the model. None where the face is not known.
    """
    states = face.n_states()
    if states is None or face.support is None:
        return None, None
    dimension = rank(face.polytope, face.support)
    return dimension, states - 1 - dimension
