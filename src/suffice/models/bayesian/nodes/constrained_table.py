"""A table whose rows keep constraints: they rise or fall along the states of parents, or stay within bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.errors import EstimateError, FileFormatError
from suffice.fitting.report import in_standard_errors
from suffice.models.bayesian.nodes.contract import Columns, FittedNode
from suffice.models.bayesian.nodes.table import TableNode
from suffice.models.bayesian.nodes.table_region import KEPT, TableLimits, TableRegion, region_of
from suffice.records import replace, set_fields
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.fitting.inference import Inference
    from suffice.models.bayesian.em.coordinates import Coordinates, Units
    from suffice.models.bayesian.error_bars.spread import ParameterSpread
    from suffice.statistics import Summary


@dataclass(frozen=True, eq=False, init=False, repr=False)
class ConstrainedTableNode(TableNode):
    """A fitted table with the constraints that it keeps, by code; `method` and `notes` say how it was learned."""

    arcs: tuple[tuple[int, ...] | None, ...] = ()
    order: tuple[int, ...] = ()
    lower: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    upper: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    learned: str = ""
    remarks: tuple[str, ...] = ()

    kind: ClassVar[str] = "constrained-table"
    #: Rows hold each other: none may be any distribution.
    independent: ClassVar[bool] = False

    def __init__(
        self,
        domain: Domain,
        rows: Floats,
        counts: Floats,
        default: Floats,
        configurations: None = None,
        alpha: Floats | None = None,
        estimate: str = "mle",
        observed: Any = None,
        *,
        arcs: tuple[tuple[int, ...] | None, ...],
        order: tuple[int, ...],
        lower: Floats,
        upper: Floats,
        learned: str = "",
        remarks: tuple[str, ...] = (),
    ) -> None:
        """Keep all; every parent configuration has a row."""
        super().__init__(domain, rows, counts, default, None, alpha, estimate, observed)
        set_fields(self, arcs=arcs, order=order, lower=lower, upper=upper, learned=learned, remarks=remarks)

    @property
    def region(self) -> TableRegion:
        """All tables that keep the constraints."""
        return region_of(self.domain.cards, TableLimits(self.arcs, self.order, self.lower, self.upper))

    @property
    def n_params(self) -> int:
        """Free parameters: the dimension of the region. Inequalities take none, equations that bounds make do."""
        return int(self.region.n_params)

    @property
    def method(self) -> str | None:
        """How the table was learned."""
        return self.learned or None

    @property
    def solver(self) -> str:
        """The same."""
        return self.learned

    @property
    def notes(self) -> tuple[str, ...]:
        """What learning has to say."""
        return self.remarks

    # -- the objective -----------------------------------------------------------------------------------------------

    def _optimality(self, summary: Summary) -> tuple[Floats, Floats, float | None]:
        """The weights of the logarithms, the slopes that multipliers leave of them, and the bound of the loss."""
        from suffice.models.bayesian.nodes.table_optimality import optimality

        both = self._weighed(summary)
        return both, *optimality(self.region, self.rows, both)

    def gap(self, summary: Summary) -> float:
        """Slope that the constraints do not hold, a row of the data."""
        if self.estimate == "given":
            return 0.0
        return float(np.abs(self._optimality(summary)[1]).max(initial=0.0) / max(summary.weight, 1.0))

    def steepest(self, summary: Summary, least: float = 0.0) -> tuple[float, float]:
        """Of the slopes in the logarithms of the probabilities, those that no multiplier of a constraint balances."""
        if self.estimate == "given":
            return 0.0, 0.0
        both, left, _ = self._optimality(summary)
        total = both.sum(axis=1, keepdims=True)
        left = np.where(np.abs(left) <= KEPT * 1e-3 * np.maximum(total, 1.0), 0.0, left)
        spread = total * self.rows * (1 - self.rows)
        return in_standard_errors(left, spread), float(np.abs(left).max(initial=0.0))

    def loss_bound(self, summary: Summary) -> float | None:
        """What the dual value of multipliers that the table itself gives has more than its objective."""
        return self._optimality(summary)[2]

    def edges(self, summary: Summary) -> tuple[str, ...]:
        """Events that were never seen, whose probability is 0 and need not be."""
        both = self._weighed(summary)
        free = np.zeros_like(self.rows, dtype=bool)
        for block in self.region.blocks:
            moves = np.abs(block.polytopes.span).max(axis=1, initial=0.0) > KEPT
            self.region.unpacked(np.broadcast_to(moves, (len(block.rows), len(moves))), block.rows, free)
        never = (both <= 0) & (both.sum(axis=1, keepdims=True) > 0) & (self.rows <= 0) & free
        return self.never_seen(int(np.count_nonzero(never)), int(np.argmax(never)))

    def with_parameters(self, vector: Floats) -> Self:
        """The table with other probabilities; EstimateError where they break a constraint."""
        node = super().with_parameters(vector)
        broken = self.region.violation(node.rows)
        if broken > KEPT:
            raise EstimateError(f"The table of {self.name!r} would break its constraints by {broken:.3g}.")
        return node

    def begun(self) -> Self:
        """Half of the way to a table that rises strictly: rows that counts at random have pooled would stay alike."""
        inside, region = np.empty_like(self.rows), self.region
        for block in region.blocks:
            region.unpacked(block.polytopes.inside, block.rows, inside)
        return replace(self, rows=0.5 * (self.rows + inside))

    def coordinates(self, units: Units) -> Coordinates:
        """Directions in which the table moves while the constraints that bind stay equations."""
        from suffice.models.bayesian.nodes.table_face import FaceCoordinates

        return FaceCoordinates(self)

    # -- errors ------------------------------------------------------------------------------------------------------

    @property
    def standard_errors_(self) -> Table:
        """Of each probability, by the information of the rows, the constraints that bind taken as equations.

        Inf for what the rows leave open.
        """
        if self.observed is not None:
            return Table(self.domain, self.observed.of(self.name))
        if self.estimate == "given":
            raise EstimateError(f"{self.name!r} was not learned from rows, so its table has no standard errors.")
        from suffice.models.bayesian.nodes.table_face import FaceCoordinates

        return Table(self.domain, FaceCoordinates(self).own_errors())

    def inference(self) -> Inference:
        """What the rows say about each parameter."""
        from suffice.fitting.inference import Inference

        return Inference(
            tuple(f"P({cell})" for cell in self.cell_names(np.arange(len(self.rows)))),
            self.rows.ravel(),
            lambda: self.error_table().values.ravel(),
            lowest=0.0,
            highest=1.0,
            tested=np.zeros(self.rows.size, dtype=bool),
        )

    def spread_of(self, group: Sequence[Any], summary: Summary | None) -> ParameterSpread:
        """By the information of the rows along the face of the constraints that bind."""
        return FittedNode.spread_of(self, group, summary)

    @property
    def posterior_(self) -> Any:
        """Refused: the posterior is cut off where the constraints are."""
        raise EstimateError(
            f"{self.name!r} has constraints: its posterior has no closed form. Its table is the MAP estimate, and "
            "standard_errors_ give its spread."
        )

    def predictive_log_prob(self, columns: Columns) -> Floats:
        """Refused, as `posterior_` is."""
        return np.asarray(self.posterior_)

    def log_evidence(self) -> float | None:
        """None: it has no closed form."""
        return None

    # -- files -------------------------------------------------------------------------------------------------------

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data, checking shapes, probabilities and constraints."""
        options = {**plain}
        for key in ("arcs", "order", "remarks"):
            options[key] = tuple(tuple(part) if isinstance(part, list) else part for part in plain[key])
        node = super().from_dict(options)
        cards = node.domain.cards
        sound = sorted(node.order) == list(range(cards[-1])) and len(node.arcs) == len(cards) - 1
        sound = sound and all(
            arc is None or sorted(arc) == list(range(card)) for arc, card in zip(node.arcs, cards, strict=False)
        )
        bounds = (node.lower, node.upper)
        sound = sound and all(
            isinstance(a, np.ndarray) and a.dtype == np.float64 and a.shape == node.rows.shape for a in bounds
        )
        if not sound or node.region.violation(node.rows) > KEPT:
            raise FileFormatError(f"The table of {node.name!r} has constraints that do not fit it.")
        return node


def with_limits(node: TableNode, limits: TableLimits) -> ConstrainedTableNode:
    """A given table that keeps constraints; EstimateError where it does not."""
    given = ConstrainedTableNode(
        node.domain,
        node.rows,
        node.counts,
        node.default,
        estimate="given",
        arcs=limits.arcs,
        order=limits.order,
        lower=limits.lower,
        upper=limits.upper,
    )
    return replace(given.with_parameters(given.parameters()), rows=node.rows)
