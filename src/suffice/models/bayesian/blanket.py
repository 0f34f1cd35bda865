"""The conditional log-likelihood of one discrete node given all others: sum over rows of log P(target | rest).

Only the tables of the target and of its children enter. With ``S_k(x)`` the sum of the logarithms of their cells where
the target is in its state k and everything else is as in x,

    P(k | x) = exp S_k(x) / sum_j exp S_j(x),

which is a softmax of indicators of cells: a logistic regression whose weights are logarithms of probabilities. Each row
of a table has the parameters theta with ``p = softmax(theta)``. The slope by a log-probability is the count of its cell
less the count expected under P(k | x); by theta, what is left of it when the share p of its row's sum is taken away.

That rows of tables add up to one is no restriction where every child can hand its normaliser on (Roos, Wettig,
Gruenwald, Myllymaki and Tirri 2005): dividing the rows of a child c by ``Z(u, k)``, u the states of its parents without
the target, asks for a table that sees u and the target to take Z, and whose own normaliser can be handed on in turn.
At the end is the target itself, whose normaliser does not depend on k and cancels. Naive Bayes and trees over it are
such structures. There the objective is a concave one in other coordinates: what is stationary is a maximum.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.errors import EstimateError
from suffice.fitting.report import in_standard_errors
from suffice.models.bayesian.nodes.table import TableNode

if TYPE_CHECKING:
    from suffice.models.bayesian.structure import Parents

EPSILON = float(np.finfo(np.float64).eps)
#: What rounding may leave of a difference of counts, as a share of them.
ROUNDING = 64 * EPSILON
#: An eigenvalue below this share of the largest one counts as zero.
FLAT = 1e-10
#: How far the dual point may be from the probabilities, as a share of them, for the bound to be taken.
NEAR = 0.5


def blanket_families(parents: Parents, target: Hashable) -> tuple[Hashable, ...]:
    """The nodes whose tables see the target: itself, then its children."""
    return (target, *(node for node, above in parents.items() if target in above))


def hands_on_normalisers(parents: Parents, target: Hashable, free: Sequence[Hashable]) -> bool:
    """Whether rows that add up to one are no restriction, for tables that are free (see the module)."""
    above = {node: set(parents[node]) - {target} for node in free}
    takers = [above[target]] if target in above else []
    waiting = [node for node in free if node != target]
    while waiting:
        ready = [node for node in waiting if any(above[node] <= scope for scope in takers)]
        if not ready:
            return False
        takers += [above[node] | {node} for node in ready]
        waiting = [node for node in waiting if node not in ready]
    return True


@dataclass(frozen=True, eq=False)
class BlanketTable:
    """A table that sees the target, among the rows at hand.

    `cells` (m, K) are the cells that each configuration of the other nodes meets, by state of the target, `card` is the
    number of states of the node, `pseudo` (k, card) what is added to the counts, `start` the position of its first cell
    among the parameters; None where the table is fixed.
    """

    node: TableNode
    cells: Ints
    pseudo: Floats
    start: int | None

    @property
    def card(self) -> int:
        """Number of states of the node."""
        return self.node.card

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.node.rows.size


@dataclass(frozen=True, eq=False)
class Blanket:
    """The rows as the target sees them: `counts` (m, K) of its states at m configurations of the nodes around it."""

    tables: tuple[BlanketTable, ...]
    counts: Floats

    @classmethod
    def of(
        cls,
        nodes: Sequence[TableNode],
        fixed: Sequence[Hashable],
        target: Hashable,
        columns: Mapping[Hashable, Any],
        weights: Floats,
        less: float = 0.0,
    ) -> Blanket:
        """From the tables that see the target and the distinct rows, as codes (n,) by node.

        less: what is taken off the pseudo-counts of a prior.
        """
        around = list(dict.fromkeys(name for node in nodes for name in node.domain.names if name != target))
        states = next(node.domain[target].card for node in nodes if target in node.domain.names)
        codes = np.stack([columns[name] for name in around]) if around else np.zeros((0, len(weights)), np.int64)
        distinct, numbered = np.unique(codes, axis=1, return_inverse=True) if around else (codes[:, :1], 0)
        cells = np.broadcast_to(numbered, (len(weights),)) * states + columns[target]
        counts = np.bincount(cells, weights, distinct.shape[1] * states).astype(np.float64).reshape(-1, states)
        given = {name: distinct[number][:, None] for number, name in enumerate(around)}
        given[target] = np.arange(states)[None, :]
        tables, start = [], 0
        for node in nodes:
            places = np.broadcast_arrays(*(given[name] for name in node.domain.names), counts)[:-1]
            met: Any = np.ravel_multi_index(tuple(places), node.domain.cards)
            free = node.name not in fixed
            tables.append(BlanketTable(node, met, _pseudo_counts(node, less), start if free else None))
            start += node.rows.size if free else 0
        return cls(tuple(tables), counts)

    @cached_property
    def free(self) -> tuple[BlanketTable, ...]:
        """The tables that are learned."""
        return tuple(table for table in self.tables if table.start is not None)

    @cached_property
    def size(self) -> int:
        """Number of parameters: one for each cell of the tables that are learned."""
        return sum(table.size for table in self.free)

    @cached_property
    def totals(self) -> Floats:
        """Weight (m,) of each configuration."""
        return np.asarray(self.counts.sum(axis=1))

    @cached_property
    def weight(self) -> float:
        """The weight of all rows."""
        return float(self.totals.sum())

    # -- the objective -----------------------------------------------------------------------------------------------

    def rows_of(self, theta: Floats) -> list[Floats]:
        """Logarithms of the rows (k, card) of the tables that are learned, at parameters (size,)."""
        rows = []
        for table, part in self._parts(theta):
            own = part.reshape(-1, table.card)
            own = own - own.max(axis=1, keepdims=True)
            rows.append(own - np.log(np.exp(own).sum(axis=1, keepdims=True)))
        return rows

    def _parts(self, vector: Floats) -> list[tuple[BlanketTable, Floats]]:
        ends = np.cumsum([table.size for table in self.free])
        return list(zip(self.free, np.split(vector, ends[:-1]), strict=True)) if self.free else []

    @cached_property
    def _offset(self) -> Floats:
        """What fixed tables add to the scores (m, K)."""
        offset = np.zeros_like(self.counts)
        with np.errstate(divide="ignore"):
            for table in self.tables:
                if table.start is None:
                    offset += np.log(table.node.rows.ravel()[table.cells])
        seen = np.where(self.counts > 0, offset, 0.0)
        if not np.isfinite(seen).all():
            raise EstimateError(
                "Some rows have probability 0 under the fixed tables around the target, whatever the others are. "
                "Correct fixed=, or leave those rows out."
            )
        return offset

    def log_posterior(self, rows: Sequence[Floats]) -> Floats:
        """Log P(target | rest) (m, K) where the learned tables have these log-probabilities."""
        scores = self._offset.copy()
        for table, own in zip(self.free, rows, strict=True):
            scores += own.ravel()[table.cells]
        scores -= scores.max(axis=1, keepdims=True)
        return np.asarray(scores - np.log(np.exp(scores).sum(axis=1, keepdims=True)))

    def log_likelihood(self, posterior: Floats) -> float:
        """Sum over rows of log P(target | rest), from its logarithms (m, K)."""
        return float((self.counts[self.counts > 0] * posterior[self.counts > 0]).sum())

    def log_prior(self, rows: Sequence[Floats]) -> float:
        """What the pseudo-counts add: sum of pseudo-count times log-probability."""
        pairs = zip(self.free, rows, strict=True)
        return float(sum((t.pseudo[t.pseudo != 0] * own[t.pseudo != 0]).sum() for t, own in pairs))

    def differences(self, posterior: Floats) -> Floats:
        """Observed less expected counts (size,) of the cells of the tables that are learned."""
        gaps = self.counts - self.totals[:, None] * np.exp(posterior)
        parts = [np.bincount(t.cells.ravel(), gaps.ravel(), minlength=t.size) for t in self.free]
        return np.concatenate(parts) if parts else np.zeros(0)

    def evaluate(self, theta: Floats) -> tuple[float, Floats]:
        """The objective and its slope (size,) by the parameters."""
        rows = self.rows_of(theta)
        posterior = self.log_posterior(rows)
        value = self.log_likelihood(posterior) + self.log_prior(rows)
        return value, self.slope(rows, posterior)

    def slope(self, rows: Sequence[Floats], posterior: Floats) -> Floats:
        """The slope (size,) of the objective by the parameters."""
        slopes = []
        for (table, part), own in zip(self._parts(self.differences(posterior)), rows, strict=True):
            gap = part.reshape(own.shape) + table.pseudo
            slopes.append((gap - np.exp(own) * gap.sum(axis=1, keepdims=True)).ravel())
        return np.concatenate(slopes) if slopes else np.zeros(0)

    # -- how near ----------------------------------------------------------------------------------------------------

    def variances(self, rows: Sequence[Floats], posterior: Floats) -> Floats:
        """Variance (size,) of what each slope is the surplus of, over targets drawn from P(target | rest).

        In the target's own table a row sees all states of the target; in those of its children it sees one of them.
        """
        shares, parts = np.exp(posterior), []
        spread = self.totals[:, None] * shares * (1.0 - shares)
        for table, own in zip(self.free, rows, strict=True):
            p = np.exp(own)
            met = np.bincount(table.cells.ravel(), spread.ravel(), minlength=table.size).reshape(p.shape)
            if table is not self.tables[0]:
                met = met * (1.0 - p) ** 2 + (met.sum(axis=1, keepdims=True) - met) * p**2
            parts.append((met + table.pseudo.sum(axis=1, keepdims=True) * p * (1.0 - p)).ravel())
        return np.concatenate(parts) if parts else np.zeros(0)

    @cached_property
    def rounding(self) -> Floats:
        """What rounding may leave of the slopes (size,): a share of the weight that their rows meet."""
        parts = []
        for table in self.free:
            met = np.bincount(table.cells.ravel(), np.repeat(self.totals, self.counts.shape[1]), minlength=table.size)
            met = (met.reshape(-1, table.card) + table.pseudo).sum(axis=1, keepdims=True)
            parts.append(np.broadcast_to(ROUNDING * met, (len(met), table.card)).ravel())
        return np.concatenate(parts) if parts else np.zeros(0)

    def gap(self, theta: Floats, slope: Floats) -> float:
        """The largest slope in standard errors."""
        rows = self.rows_of(theta)
        return in_standard_errors(slope, self.variances(rows, self.log_posterior(rows)), self.rounding)

    def scale(self, theta: Floats, slope: Floats) -> Floats:
        """A guess of the diagonal of the inverse information (size,), of which a quasi-Newton method makes more."""
        rows = self.rows_of(theta)
        spread = self.variances(rows, self.log_posterior(rows))
        return 1.0 / np.maximum(spread, 1e-3 * float(spread.max(initial=0.0)) or 1.0)

    @cached_property
    def indicators(self) -> Any:
        """Which cells of the learned tables are met (m K, size), sparse."""
        from scipy.sparse import csr_array

        met = [table.cells.ravel() + (table.start or 0) for table in self.free]
        n = self.counts.size
        places = np.stack(met, axis=1).ravel() if met else np.zeros(0, np.int64)
        return csr_array((np.ones(len(places)), places, np.arange(n + 1) * len(met)), shape=(n, self.size))

    def information(self, posterior: Floats) -> Floats:
        """Covariance (size, size) of the counts of all cells over targets drawn from P(target | rest)."""
        shares = np.exp(posterior)
        each = (self.totals[:, None] * shares).ravel()
        mean = self._averages(shares)
        whole = (self.indicators.T @ (self.indicators * each[:, None])).toarray()
        return np.asarray(whole - (mean.T @ (mean * self.totals[:, None])).toarray())

    def _averages(self, shares: Floats) -> Any:
        """The mean indicators of each configuration (m, size), sparse."""
        from scipy.sparse import csr_array

        m, states = shares.shape
        places = np.arange(m * states)
        return csr_array((shares.ravel(), places, np.arange(m + 1) * states), shape=(m, m * states)) @ self.indicators

    def rank(self, rows: Sequence[Floats]) -> int:
        """How many parameters P(target | rest) tells apart, at the configurations that were seen."""
        uniform = np.full_like(self.counts, -math.log(self.counts.shape[1]))
        bend = self.information(uniform)
        for table, own in zip(self.free, rows, strict=True):
            # The log-probabilities of a row move by (I - 1 p') times its parameters, on both sides.
            block = slice(table.start, table.start + table.size)  # type: ignore[operator]
            p = np.exp(own)
            side = bend[block].reshape(*p.shape, -1)
            bend[block] = (side - p[:, :, None] * side.sum(axis=1, keepdims=True)).reshape(table.size, -1)
            side = bend[:, block].reshape(-1, *p.shape)
            bend[:, block] = (side - side.sum(axis=2, keepdims=True) * p).reshape(-1, table.size)
        values = np.linalg.eigvalsh(bend)
        return int(np.count_nonzero(values > FLAT * max(float(values.max(initial=0.0)), 1e-300)))

    def loss_bound(self, posterior: Floats) -> float | None:
        """How much the log-likelihood without pseudo-counts can rise at most, as a logistic regression; None: unknown.

        By duality: for all q(k | x) with the observed counts of cells as expected ones, no parameters have more than
        the sum of ``q log q``. Where I d = g for the information I and the slope g, the probabilities
        ``P (1 + s - mean of s)`` with s the scores under d are such q, if they are not negative.
        """
        slope, bend = self.differences(posterior), self.information(posterior)
        values, vectors = np.linalg.eigh(bend)
        kept = values > len(values) * EPSILON * float(np.abs(values).max(initial=0.0))
        step = vectors[:, kept] @ ((vectors[:, kept].T @ slope) / values[kept])
        left = float(np.abs(slope - bend @ step).sum())
        shares = np.exp(posterior)
        change = (self.indicators @ step).reshape(shares.shape)
        change = change - (shares * change).sum(axis=1, keepdims=True)
        if float(np.abs(change).max(initial=0.0)) > NEAR:
            return None
        # What is left of ``q log q`` less the log-likelihood, because q has the observed counts of cells.
        gain = float((self.totals[:, None] * shares * (1.0 + change) * np.log1p(change)).sum())
        slack = left * (4.0 * float(np.abs(step).max(initial=0.0)) + 1.0)
        return max(gain, 0.0) + slack + ROUNDING * float((self.totals[:, None] * shares * np.abs(change)).sum())

    def penalised_bound(self, rows: Sequence[Floats], posterior: Floats) -> float | None:
        """How much the log-likelihood with pseudo-counts can rise at most, whatever the structure; None: unknown.

        As logarithms b of cells the objective is concave, and tables lie where each row has ``sum exp b = 1``; where
        this may be at most 1, the set is convex and the maximum no smaller. There, for any q(k | x), the dual value is
        ``sum w log(w / W) - entropies of q`` with w the pseudo-counts and observed less expected counts of the cells
        under q, at least 0, and W their sums by row. At ``q = P(k | x)`` it is above the objective by the sum of
        ``W KL(w / W || p)``, which is zero where the slopes are.
        """
        total = slack = 0.0
        pieces = self._parts(self.rounding)
        for (table, part), own, (_, rounding) in zip(
            self._parts(self.differences(posterior)), rows, pieces, strict=True
        ):
            w = part.reshape(own.shape) + table.pseudo
            if not (w >= 0.0).all():
                return None
            with np.errstate(divide="ignore", invalid="ignore"):
                apart = np.where(w > 0.0, np.log(w) - np.log(w.sum(axis=1, keepdims=True)) - own, 0.0)
            total += float((w * apart).sum())
            slack += float((rounding.reshape(own.shape) * (1.0 + np.abs(own) + np.abs(apart)))[w > 0.0].sum())
        return max(total, 0.0) + slack if math.isfinite(total + slack) else None


def _pseudo_counts(node: TableNode, less: float) -> Floats:
    """What a prior adds to the counts of a table (k, card)."""
    if node.alpha is None:
        return np.zeros_like(node.rows)
    return np.broadcast_to(node.alpha - less, node.rows.shape)
