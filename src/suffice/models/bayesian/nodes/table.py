"""A node with a table: P(node | parents), one row of probabilities for each joint state of the parents.

Rows are kept for all parent configurations while that is small, and for the configurations seen beyond: memory follows
the rows of the data, not the product of the cards. Configurations that are not kept share one row, the default.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Codes, Flags, Floats
from suffice.domain import MOST_AXES, Domain
from suffice.engines.memory import in_words
from suffice.errors import EstimateError, FileFormatError, OptionError, SizeError, listing
from suffice.models.bayesian.nodes.contract import NO_POSTERIOR, Columns, Factor, UnitFree
from suffice.options import doubles
from suffice.records import checked, record, replace, set_fields
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.answers import CountTable
    from suffice.fitting.inference import Inference
    from suffice.models.bayesian.em.coordinates import Coordinates, Units
    from suffice.models.bayesian.error_bars.spread import ParameterSpread
    from suffice.models.bayesian.nodes.posterior import DirichletTable
    from suffice.statistics import Summary


#: Cells of the largest table that is written out.
MOST_CELLS = 2**24


@record(frozen=True, eq=False)
class TableNode(UnitFree):
    """A fitted table.

    `rows` (k, card) holds the probabilities of the kept parent configurations: all of them in lexicographic order
    where `configurations` is None, else those listed there (k, p). `counts` (k, card) are the weights seen, `default`
    (card,) is the row of configurations that are not kept, and `alpha` the prior's pseudo-counts, if any.
    """

    domain: Domain
    rows: Floats
    counts: Floats
    default: Floats
    configurations: Codes | None = None
    alpha: Floats | None = None
    estimate: str = "mle"
    #: Standard errors from the observed information, where rows had missing values.
    observed: Any = None

    kind: ClassVar[str] = "table"
    #: Whether every row may be any distribution, whatever the others are.
    independent: ClassVar[bool] = True

    def __init__(
        self,
        domain: Domain,
        rows: Floats,
        counts: Floats,
        default: Floats,
        configurations: Codes | None = None,
        alpha: Floats | None = None,
        estimate: str = "mle",
        observed: Any = None,
    ) -> None:
        """Keep all at once, which is quicker than field by field in a frozen class."""
        set_fields(self, domain=domain, rows=rows, counts=counts, default=default, configurations=configurations)
        set_fields(self, alpha=alpha, estimate=estimate, observed=observed)

    def __repr__(self) -> str:
        """All but the standard errors, which hold the rows that were learned and all other nodes."""
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__ if name != "observed")
        return f"{type(self).__qualname__}({shown})"

    # -- shape -------------------------------------------------------------------------------------------------------

    @property
    def card(self) -> int:
        """Number of states of the node."""
        return self.domain.variables[-1].card

    @property
    def n_configurations(self) -> int:
        """Number of joint states of the parents, seen or not."""
        return math.prod(self.domain.cards[:-1])

    @classmethod
    def given(cls, domain: Domain, values: Any) -> TableNode:
        """A table whose probabilities are given, axes (parents, node); every row must add up to one."""
        name, shape = domain.names[-1], domain.shape(domain.names)
        try:
            table = np.array(doubles(values))  # A copy: what the caller does to his array later is his.
        except (TypeError, ValueError):
            raise OptionError(
                f"The table of {name!r} is {values!r}; expected numbers of shape {shape} (parents, node)."
            ) from None
        if table.shape != shape:
            turned = " Give its transpose: parents first, the states of the node last." * (table.shape == shape[::-1])
            raise OptionError(f"The table of {name!r} has shape {table.shape}; expected {shape}.{turned}")
        rows = table.reshape(-1, domain.variables[-1].card)
        wrong = ~((rows >= 0).all(axis=1) & (np.abs(np.minimum(rows, 2.0).sum(axis=1) - 1) <= 1e-6))
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            places = np.unravel_index(first, shape[:-1]) if len(domain) > 1 else ()
            where = {v.name: v.states[int(code)] for v, code in zip(domain.variables, places, strict=False)}
            sums = np.minimum(table, 2.0).sum(axis=0)  # So that nothing overflows.
            columns = rows.ndim == 2 and len(domain) > 1 and bool((np.abs(sums - 1) <= 1e-6).all())
            turned = " Its columns do: give its transpose, parents first, the states of the node last." * columns
            raise OptionError(
                f"The table of {name!r} has a row that is not a distribution{f' at {where!r}' if where else ''}: "
                f"{listing(rows[first].tolist())}, which adds up to {sum(rows[first].tolist()):g}; expected numbers of "
                f"at least 0 that add up to 1.{turned}"
            )
        return cls(domain, rows, np.zeros_like(rows), np.full(rows.shape[1], 1.0 / rows.shape[1]))

    @property
    def n_params(self) -> int:
        """Free parameters: card - 1 for each parent configuration, seen or not, however many rows are kept."""
        return (self.card - 1) * self.n_configurations

    def told(self, possible: Flags | None) -> int:
        """States less one of each parent configuration that some row has, of the states that are possible there."""
        seen = self.counts.any(axis=1)
        if possible is None:
            return (self.card - 1) * int(np.count_nonzero(seen))
        flat = possible.reshape(-1, self.card)
        if self.configurations is not None:
            flat = possible[tuple(self.configurations.T)]
        return int((flat[seen].sum(axis=1) - 1).clip(0).sum())

    @property
    def n_unseen(self) -> int:
        """Number of parent configurations without any weight in the data."""
        configurations = len(self.rows) if self.configurations is None else self.n_configurations
        return configurations - int(np.count_nonzero(self.counts.any(axis=1)))

    def unseen(self, most: int = 100) -> list[dict[Hashable, Hashable]]:
        """The first parent configurations without any weight, by label."""
        never: list[dict[Hashable, Hashable]] = []
        seen = {tuple(c) for c in self._kept()[self.counts.sum(axis=1) > 0].tolist()}
        parents = self.domain.variables[:-1]
        for codes in itertools.product(*(range(p.card) for p in parents)):
            if len(never) == most:
                break
            if codes not in seen:
                never.append({p.name: p.states[code] for p, code in zip(parents, codes, strict=True)})
        return never

    def cell_names(self, kept: NDArray[Any]) -> list[str]:
        """``state | parent=state, ...`` of all cells of some of the kept rows."""
        names = []
        for codes in self._kept()[kept]:
            states = (f"{v.name}={v.states[code]}" for v, code in zip(self.domain.variables[:-1], codes, strict=True))
            given = " | " + ", ".join(states) if self.parents else ""
            names += [f"{self.name}={state}{given}" for state in self.domain.variables[-1].states]
        return names

    def _kept(self) -> Codes:
        if self.configurations is not None:
            return self.configurations
        every = list(itertools.product(*map(range, self.domain.shape(self.parents))))
        return np.array(every, dtype=np.int32).reshape(len(self.rows), -1)

    # -- reading -----------------------------------------------------------------------------------------------------

    @property
    def table_(self) -> Table:
        """P(node | parents) with axes (parents, node); a table too large for memory is an error."""
        if self.configurations is None:
            return Table.over(self.domain, self.rows.reshape(self.domain.cards))
        return Table(self.domain, self.dense(self.rows, self.default))

    def dense(self, rows: Floats, default: Floats) -> Floats:
        """The full array of a quantity kept by row."""
        shape = self.domain.shape(self.domain.names)
        if self.configurations is None:
            return rows.reshape(shape)
        if math.prod(shape) > MOST_CELLS or len(shape) > MOST_AXES:
            raise SizeError(
                f"The table of {self.name!r} given {listing(self.parents)} has {math.prod(shape):,} cells "
                f"({in_words(8 * math.prod(shape))}) and {len(shape)} axes; {len(self.rows):,} of "
                f"{self.n_configurations:,} parent configurations have a row. Read those through node(name).rows and "
                ".configurations."
            )
        full = np.broadcast_to(default, shape).copy()
        full[tuple(self.configurations.T)] = rows
        return full

    @property
    def standard_errors_(self) -> Table:
        """Of each probability: sqrt(p (1 - p) / n) for maximum likelihood, else the posterior standard deviation."""
        self._refuse_conditional("standard errors")
        if self.observed is not None:
            return Table(self.domain, self.observed.of(self.name))
        if self.alpha is None:
            size = self.counts.sum(axis=1, keepdims=True)
            with np.errstate(divide="ignore", invalid="ignore"):
                errors = np.where(size > 0, np.sqrt(self.rows * (1 - self.rows) / size), np.inf)
            return Table(self.domain, self.dense(errors, np.full(self.card, np.inf)))
        deviations = np.sqrt(self.posterior_.variance().values)
        return Table(self.domain, deviations)

    def _refuse_conditional(self, what: str) -> None:
        """Raise for a table that was learned for the target, whose conditional distribution does not determine it."""
        if self.estimate == "conditional":
            raise EstimateError(
                f"The table of {self.name!r} was learned for the target (objective='conditional'), and many tables "
                f"give the same P(target | rest): it has no {what}. Use objective='joint'."
            )

    def spread_of(self, group: Sequence[Any], summary: Summary | None) -> ParameterSpread:
        """The covariance of the probabilities, and draws of them."""
        from suffice.models.bayesian.error_bars.spread import TableSpread

        return TableSpread.of(self)

    def inference(self) -> Inference:
        """What the rows say about each parameter."""
        from suffice.models.bayesian.nodes.estimates import of_table

        return of_table(self)

    def error_table(self) -> Table:
        """The standard errors by label."""
        return self.standard_errors_

    @property
    def posterior_(self) -> DirichletTable:
        """The Dirichlet posteriors of the rows; needs a prior. Configurations without rows keep the prior."""
        from suffice.models.bayesian.nodes.posterior import DirichletTable

        return DirichletTable(Table(self.domain, self.dense(*self._posterior_rows())))

    def _posterior_rows(self) -> tuple[Floats, Floats]:
        """Pseudo-counts after the data of the kept rows (k, card), and of all other configurations (card,)."""
        self._refuse_conditional("posterior")
        if self.alpha is None:
            raise EstimateError(f"{self.name!r} was fitted without a prior, so it has no posterior. Give prior=.")
        if self.observed is not None:
            raise EstimateError(NO_POSTERIOR)
        # Tables with rows left out have one pseudo-count for all cells.
        return self.counts + self.alpha, self.alpha[0] if len(self.alpha) else np.full(self.card, np.nan)

    def credible_intervals(self, level: float = 0.95) -> tuple[Table, Table]:
        """Lower and upper ends of the central posterior interval of each probability; needs a prior."""
        return self.posterior_.intervals(level)

    def factors(self) -> list[Factor]:
        """The table itself; of one with too many axes, without the parents that have one state."""
        if len(self.domain) <= MOST_AXES or self.configurations is None:
            return [(self.domain.names, self.table_.values)]
        several = [axis for axis, parent in enumerate(self.domain.variables[:-1]) if parent.card > 1]
        names = [*(self.parents[axis] for axis in several), self.name]
        small = replace(self, domain=self.domain.select(names), configurations=self.configurations[:, several])
        return [(small.domain.names, small.table_.values)]

    def expectation_factors(self) -> list[Factor]:
        """The table itself."""
        return [(self.domain.names, self.table_.values)]

    # -- the objective -----------------------------------------------------------------------------------------------

    def log_likelihood(self, summary: Summary) -> float:
        """Sum over rows of the data of log P(node | parents), -inf where an impossible event occurs."""
        from scipy.special import xlogy

        cells, weights = self._counted(summary).items()
        return float(xlogy(weights, self.probability_of(cells)).sum())

    def probability_of(self, cells: NDArray[Any]) -> Floats:
        """P(node | parents) of joint codes (n, p + 1)."""
        return np.asarray(self._rows_of(cells[:, :-1])[np.arange(len(cells)), cells[:, -1]])

    def _rows_of(self, configurations: NDArray[Any]) -> Floats:
        """The rows of parent configurations (n, p)."""
        if self.configurations is None:
            if not self.parents:
                return np.broadcast_to(self.rows[0], (len(configurations), self.card))
            return np.asarray(self.rows[np.ravel_multi_index(tuple(configurations.T), self.domain.shape(self.parents))])
        from suffice.models.bayesian.nodes.lookup import row_positions

        positions = row_positions(self.configurations, configurations)
        return np.where(positions[:, None] >= 0, self.rows[np.maximum(positions, 0)], self.default)

    def gap(self, summary: Summary) -> float:
        """Slope of the objective in the probabilities: (counts + pseudo-counts) - p sum, a row of the data."""
        both = self._weighed(summary)
        slope = both - np.nan_to_num(self.rows) * both.sum(axis=1, keepdims=True)
        return float(np.abs(slope).max(initial=0.0) / max(summary.weight, 1.0))

    def steepest(self, summary: Summary, least: float = 0.0) -> tuple[float, float]:
        """Of the slopes in the logarithms of the probabilities, see `steepest_cells`."""
        from suffice.models.bayesian.nodes.table_objective import steepest_cells

        both = self._weighed(summary)
        return steepest_cells(both, both.sum(axis=1, keepdims=True), self.rows)

    def loss_bound(self, summary: Summary) -> float | None:
        """What the shares of the (pseudo-)counts have more than the rows, see `cell_losses`."""
        from suffice.models.bayesian.nodes.table_objective import cell_losses

        both = self._weighed(summary)
        loss = float(cell_losses(both, both.sum(axis=1, keepdims=True), self.rows).sum())
        return loss if math.isfinite(loss) else None

    def edges(self, summary: Summary) -> tuple[str, ...]:
        """The events that were never seen though the states of their parents were, and have no prior weight."""
        both = self._weighed(summary)
        never = (both <= 0) & (both.sum(axis=1, keepdims=True) > 0)
        return self.never_seen(int(np.count_nonzero(never)), int(np.argmax(never)))

    def never_seen(self, number: int, first: int) -> tuple[str, ...]:
        """That so many cells have probability 0, in words, with the name of the first of them."""
        row, state = divmod(first, self.card)
        more = f" and {number - 1:,} more of {self.name!r}" if number > 1 else ""
        return (f"log P({self.cell_names(np.array([row]))[state]}){more} -> -inf (never seen)",) if number else ()

    def _weighed(self, summary: Summary) -> Floats:
        """Counts and pseudo-counts (k, card), as learning weighs the logarithms of the probabilities by them."""
        counts = self._counts_of(self._counted(summary))
        return counts if self.alpha is None else counts + (self.alpha - (1.0 if self.estimate == "map" else 0.0))

    def _counted(self, summary: Summary) -> CountTable:
        """The counts of the family in a summary."""
        from suffice.statistics import Counts

        counts: CountTable = summary[Counts(self.domain.names)]
        return counts

    def _counts_of(self, table: CountTable) -> Floats:
        """Weights (k, card) of rows of the data, by the parent configurations that have a row."""
        if self.configurations is None:
            return table.dense().reshape(-1, self.card)
        from suffice.models.bayesian.nodes.table_layout import counts_by_row

        return counts_by_row(table, self.card, self.domain)[1]

    def log_prior(self) -> float:
        """Log prior density up to a constant, as learning maximises it: sum (alpha - 1) log p.

        The posterior mean under alpha is the mode under alpha + 1, so both maximise some Dirichlet posterior.
        """
        if self.alpha is None:
            return 0.0
        from scipy.special import xlogy

        return float(xlogy(self.alpha - (1.0 if self.estimate == "map" else 0.0), self.rows).sum())

    def parameters(self) -> Floats:
        """The probabilities, row by row."""
        return self.rows.ravel()

    def with_parameters(self, vector: Floats) -> Self:
        """The table with other probabilities; rows that add up to one but for rounding are divided by their sum."""
        rows = vector.reshape(self.rows.shape)
        total = rows.sum(axis=1, keepdims=True)
        if not ((rows >= 0).all() and (np.abs(total - 1) < 1e-6).all()):
            raise EstimateError(f"The table of {self.name!r} would have a row that is not a distribution.")
        return replace(self, rows=rows / total)

    def coordinates(self, units: Units) -> Coordinates:
        """Logarithms of the probabilities of each row, relative to its largest one."""
        from suffice.models.bayesian.em.coordinates import TableCoordinates

        return TableCoordinates(self)

    def without_prior(self) -> Self:
        """The same table without pseudo-counts."""
        return replace(self, alpha=None)

    def log_evidence(self) -> float | None:
        """Log marginal likelihood of the family under its Dirichlet rows; None without a prior."""
        if self.alpha is None:
            return None
        from suffice.families.categoricals import Dirichlets

        return float(Dirichlets(self.alpha).log_evidence(self.counts).sum())

    # -- use ---------------------------------------------------------------------------------------------------------

    def log_prob(self, columns: Columns) -> Floats:
        """Log P(node | parents) of each row."""
        cells = np.stack([columns[name] for name in self.domain.names], axis=1)
        with np.errstate(divide="ignore"):
            return np.log(self.probability_of(cells))

    def predictive_log_prob(self, columns: Columns) -> Floats:
        """Log P(node | parents, rows learned) of each row: the posterior mean; needs a prior."""
        codes = np.stack([columns[name] for name in self.domain.names], axis=1)
        weights = self.posterior_weights(codes[:, :-1])
        return np.asarray(np.log(weights[np.arange(len(codes)), codes[:, -1]] / weights.sum(axis=1)))

    def posterior_weights(self, configurations: NDArray[Any]) -> Floats:
        """Pseudo-counts after the data (n, card) at parent configurations (n, p); needs a prior."""
        rows, default = self._posterior_rows()
        return replace(self, rows=rows, default=default)._rows_of(configurations)

    def sample(self, columns: Columns, rng: np.random.Generator, n: int) -> NDArray[Any]:
        """One code for each row, by inverting the cumulative row."""
        above = (
            np.stack([columns[name] for name in self.parents], axis=1) if self.parents else np.zeros((n, 0), np.int32)
        )
        cumulative = np.cumsum(self._rows_of(above), axis=1)
        undefined = np.isnan(cumulative[:, -1])
        if undefined.any():
            parents, codes = self.domain.variables[:-1], above[undefined][0].tolist()
            where = {v.name: v.states[code] for v, code in zip(parents, codes, strict=True)}
            raise EstimateError(
                f"The row of {self.name!r} at {where!r} is undefined (unseen='nan'), so nothing can be drawn from it. "
                "Fit with a prior=, or unseen='uniform'."
            )
        return np.asarray((rng.random(n)[:, None] * cumulative[:, -1:] >= cumulative).sum(axis=1).astype(np.int32))

    # -- files -------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": self.kind, **{name: value for name, value in vars(self).items() if name != "observed"}}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data, checking shapes and probabilities."""
        node = checked(cls(**{key: value for key, value in plain.items() if key != "kind"}))
        arrays = (node.rows, node.counts)
        if any(a.dtype != np.float64 or a.ndim != 2 or a.shape[1] != node.card for a in arrays):
            raise FileFormatError(f"The table of {node.name!r} does not have rows of {node.card} probabilities.")
        kept = node.n_configurations if node.configurations is None else len(node.configurations)
        if len(node.rows) != kept or node.counts.shape != node.rows.shape:
            raise FileFormatError(f"The table of {node.name!r} has {len(node.rows)} rows; expected {kept}.")
        if node.default.shape != (node.card,) or (node.alpha is not None and not _fits_rows(node.alpha, node.rows)):
            raise FileFormatError(f"The table of {node.name!r} has a default row or a prior of another shape.")
        codes, cards = node.configurations, node.domain.shape(node.parents)
        if codes is not None and (codes.shape != (kept, len(cards)) or ((codes < 0) | (codes >= cards)).any()):
            raise FileFormatError(f"The table of {node.name!r} lists configurations that its parents do not have.")
        sums = node.rows.sum(axis=1)
        if (node.rows < 0).any() or not (np.isnan(sums) | (np.abs(sums - 1) < 1e-9)).all():
            raise FileFormatError(f"The table of {node.name!r} holds a row that is not a distribution.")
        return node


def _fits_rows(alpha: Floats, rows: Floats) -> bool:
    """Whether pseudo-counts belong to the rows of a table: one for all, or one for each cell."""
    return alpha.shape in ((), rows.shape) and bool((np.isfinite(alpha) & (alpha > 0)).all())
