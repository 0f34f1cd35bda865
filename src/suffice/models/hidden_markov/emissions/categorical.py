"""Distributions of states: a table with one row of probabilities for each hidden state."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import Origin, Variable
from suffice.engines.chain_statistics import counts_by_code
from suffice.errors import DataError, OptionError, listing
from suffice.families.base import state_codes, take_states
from suffice.families.bernoulli import Bernoulli
from suffice.families.categorical import Categorical
from suffice.families.categoricals import Categoricals
from suffice.models.hidden_markov.emissions.contract import (
    UNUSED,
    Data,
    Emission,
    Parameters,
    Statistics,
    Symbols,
)
from suffice.models.hidden_markov.emissions.moments import MatchedPart
from suffice.models.hidden_markov.emissions.moments import of_rows as moments_of_rows
from suffice.models.hidden_markov.emissions.standing import Standing, of_rows
from suffice.options import doubles
from suffice.sources.columns import Coded
from suffice.sources.sequences import code_states, translated
from suffice.sources.states import resolve_states
from suffice.statistics import Counts, Statistic


@dataclass(frozen=True)
class CategoricalEmission(Emission):
    """P(symbol | state), with `pseudo` counts (size, M) added to those seen; two states may be a Bernoulli's.

    Cells that are False in `allowed` (size, M) stay 0. `origin` says where the states come from: those that were
    declared are closed, others grow with further steps.
    """

    size: int
    states: tuple[Hashable, ...]
    pseudo: Floats
    bernoulli: bool = False
    allowed: NDArray[np.bool_] | None = None
    origin: Origin = "declared"
    _variable: Variable = field(init=False, repr=False, compare=False)

    kinds: ClassVar[Mapping[str, str]] = {"probabilities": "simplex"}

    def __post_init__(self) -> None:
        """Code the states once."""
        object.__setattr__(self, "_variable", Variable.discrete("observation", self.states))

    # -- data --------------------------------------------------------------------------------------------------------

    def read(self, columns: Sequence[NDArray[Any]]) -> Data:
        """Codes (steps,), -1 for a missing value."""
        if len(columns) != 1:
            raise DataError(f"The data have {len(columns)} columns; states that emit one symbol a step take 1.")
        (column,) = columns
        if isinstance(column, Coded):
            return (translated(resolve_states(self._variable, column), column),)
        return (code_states(column, self._variable)[0],)

    # -- where EM begins ---------------------------------------------------------------------------------------------

    def points(self, data: Data) -> Floats:
        """States have no distances."""
        return np.zeros((len(data[0]), 0))

    def totals(self, data: Data, weights: Floats) -> Statistics:
        """Counts (M,)."""
        seen = data[0] >= 0
        return {"counts": np.bincount(data[0][seen], weights[seen], minlength=len(self.states)).astype(np.float64)}

    def start(self, totals: Statistics, rng: np.random.Generator) -> Parameters:
        """Random rows about the frequencies of all steps."""
        noise = rng.gamma(2.0, size=(self.size, len(self.states)))
        return self._normalised((totals["counts"] + 1.0) * noise)

    def before(self, totals: Statistics, rng: np.random.Generator) -> Parameters:
        """Equal probabilities."""
        return self._normalised(np.ones((self.size, len(self.states))))

    def from_guess(self, statistics: Statistics, before: Parameters) -> Parameters:
        """Shares of the symbols and one more step of any symbol: what no step of a guess shows may be seen later."""
        return self._normalised(statistics["counts"] + self.pseudo + 1.0 / len(self.states))

    def idle(self, statistics: Statistics, before: Parameters) -> Parameters:
        """Equal probabilities."""
        return before

    def _normalised(self, counts: Floats) -> Parameters:
        rows = counts if self.allowed is None else counts * self.allowed
        return {"probabilities": rows / rows.sum(axis=1, keepdims=True)}

    # -- expectation -------------------------------------------------------------------------------------------------

    @staticmethod
    def _rows(parameters: Parameters) -> Categoricals:
        """P(symbol | state), one distribution for each state."""
        return Categoricals(parameters["probabilities"])

    def log_densities(self, data: Data, parameters: Parameters) -> Floats:
        """Log probabilities."""
        return self._rows(parameters).log_prob(data[0])

    def potentials(self, data: Data, parameters: Parameters, out: Floats | None = None) -> tuple[Floats, Floats]:
        """Rows of the table, each divided by its largest entry: nothing is exponentiated."""
        # Each symbol once, and what a missing value has.
        table = self._rows(parameters).prob(np.append(np.arange(len(self.states)), -1))
        top = table.max(axis=1)
        top[top == 0] = 1.0
        # The code -1 of a missing value wraps to the last row; `take` is several times faster than an index.
        scaled, logs = table / top[:, None], np.log(top)
        return np.take(scaled, data[0], axis=0, out=out, mode="wrap"), np.take(logs, data[0], mode="wrap")

    def symbols(self, data: Data) -> Symbols:
        """Codes of states, and one for missing values, which every state shows with probability 1."""
        known = len(self.states)
        every = np.arange(known + bool((data[0] < 0).any()))
        every[known:] = -1

        def table(parameters: Parameters) -> Floats:
            return self._rows(parameters).prob(every)

        return Symbols(data[0], len(every), table, lambda counts: {"counts": counts[:known].T.copy()})

    def statistics(self, data: Data, weights: Floats, parameters: Parameters) -> Statistics:
        """Counts (size, M)."""
        return {"counts": counts_by_code(data[0], weights, len(self.states)).T}

    # -- maximisation ------------------------------------------------------------------------------------------------

    def expected(self, statistics: Statistics, parameters: Parameters) -> Floats:
        """Counts times log probabilities."""
        return self._rows(parameters).log_likelihood(statistics["counts"])

    def maximise(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        """Counts and pseudo-counts divided by their sum."""
        counts = statistics["counts"] + self.pseudo
        rows = Categoricals.most_likely(counts, before=parameters["probabilities"], least=UNUSED)
        return {"probabilities": rows.probabilities}

    def log_prior(self, parameters: Parameters) -> Floats:
        """Pseudo-counts times log probabilities: the density of Dirichlet(1 + pseudo-counts)."""
        return self._rows(parameters).log_likelihood(self.pseudo)

    @property
    def _may(self) -> NDArray[np.bool_]:
        """Cells (size, M) that may have a probability."""
        return np.ones((self.size, len(self.states)), bool) if self.allowed is None else self.allowed

    def standing(self, statistics: Statistics, parameters: Parameters, names: Sequence[str]) -> Standing:
        """Of the rows of counts and pseudo-counts."""
        counts, table = statistics["counts"] + self.pseudo, parameters["probabilities"]
        return of_rows(counts, table, self._may, lambda cell: f"P({self.states[cell[1]]!r} | {names[cell[0]]})")

    def unseen(self, statistics: Statistics) -> tuple[str, ...]:
        """Symbols that some state may show and no step does."""
        counts = statistics["counts"].sum(axis=0)
        never = (counts == 0) & (self._may & (self.pseudo == 0)).any(axis=0) & bool(counts.any())
        return tuple(
            f"P({self.states[symbol]!r} | state) -> 0: never seen" for symbol in np.flatnonzero(never).tolist()
        )

    @property
    def coercive(self) -> bool:
        """With a pseudo-count for every symbol."""
        return bool((self.pseudo[self._may] > 0).all())

    def vector(self, parameters: Parameters) -> Floats:
        """The table, row by row."""
        return np.asarray(parameters["probabilities"].ravel())

    def at(self, vector: Floats, like: Parameters) -> Parameters:
        """The table."""
        return {"probabilities": vector.reshape(self.size, len(self.states))}

    def inside(self, parameters: Parameters) -> bool:
        """No negative probability."""
        return bool((parameters["probabilities"] >= 0).all())

    @property
    def n_free(self) -> NDArray[np.int64]:
        """M - 1, less those that are forbidden."""
        return Categoricals(self.pseudo).n_params(self.allowed)

    def moments(self, statistics: Statistics, parameters: Parameters, names: Sequence[str]) -> Iterator[MatchedPart]:
        """Counts of symbols."""
        named = [[f"{name}: {symbol}" for symbol in self.states] for name in names]
        yield from moments_of_rows(named, statistics["counts"], parameters["probabilities"], self.pseudo)

    def counted(self, statistics: Statistics, names: Sequence[str]) -> tuple[list[str], Floats, Floats] | None:
        """The symbols of each state."""
        return [f"{a}: {b}" for a in names for b in self.states], statistics["counts"], self.pseudo

    # -- further steps -----------------------------------------------------------------------------------------------

    def describe_with(self, columns: Sequence[NDArray[Any]]) -> dict[str, Any]:
        """The states, with those of further steps unless they are closed."""
        if self.origin == "declared":
            return self.describe()
        variable = Variable.discrete("observation", self.states, self.origin)
        return self.describe() | {"states": list(code_states(columns[0], variable)[1])}

    def questions(self, by: Hashable, names: Sequence[Hashable]) -> tuple[Statistic, ...]:
        """Counts of symbols by state."""
        return (Counts((by, *names)),)

    def laid_out(self, statistics: Statistics, wider: Self) -> Statistics:
        """Counts in the columns of their states."""
        counts = np.zeros((self.size, len(wider.states)))
        counts[:, [wider._variable.index(state) for state in self.states]] = statistics["counts"]
        return {"counts": counts}

    # -- distributions
    # --------------------------------------------------------------------------------------------------------

    def distributions(self, parameters: Parameters) -> list[Any]:
        """Categorical or Bernoulli distributions."""
        if self.bernoulli:
            return [Bernoulli(float(row[1]), states=self.states) for row in parameters["probabilities"]]
        return [Categorical(self.states, row) for row in parameters["probabilities"]]

    def parameters_of(self, distributions: Any) -> Parameters:
        """From a matrix (size, M), a vector of success probabilities (size,), or a list of distributions."""
        table = self._table_of(distributions)
        if table.shape != (self.size, len(self.states)):
            raise OptionError(
                f"emissions has shape {table.shape}; expected {(self.size, len(self.states))}: one row for each hidden "
                f"state, one column for each of {listing(self.states)}."
            )
        if not ((table >= 0).all() and np.abs(np.minimum(table, 2.0).sum(axis=1) - 1).max() < 1e-6):
            raise OptionError(
                "emissions has a row that is no distribution; expected numbers of at least 0 that add up to 1."
            )
        off = np.abs(table.sum(axis=1, keepdims=True) - 1) > len(self.states) * np.finfo(np.float64).eps
        return {"probabilities": np.where(off, table / table.sum(axis=1, keepdims=True), table)}

    def _table_of(self, distributions: Any) -> Floats:
        if (
            isinstance(distributions, Sequence)
            and len(distributions)
            and all(hasattr(distribution, "parameters_") for distribution in distributions)
        ):
            return np.stack([self._row(distribution) for distribution in distributions])
        try:
            table = np.array(doubles(getattr(distributions, "values", distributions)))
        except (TypeError, ValueError):
            raise OptionError(
                f"emissions is {distributions!r}; expected probabilities of shape {(self.size, len(self.states))}, or "
                "one distribution for each hidden state."
            ) from None
        return np.stack([1 - table, table], axis=1) if self.bernoulli and table.ndim == 1 else table

    def restricted(self, given: Parameters) -> Self:
        """Zeros of given rows are forbidden, and take no pseudo-counts."""
        allowed = given["probabilities"] > 0
        return replace(self, allowed=allowed, pseudo=self.pseudo * allowed)

    def _row(self, distribution: Any) -> Floats:
        if isinstance(distribution, Bernoulli):
            return np.array([1 - distribution.probability_, distribution.probability_])
        if not isinstance(distribution, Categorical):
            raise OptionError(
                f"emissions holds {distribution!r}; expected distributions of the symbols {listing(self.states)}."
            )
        places = state_codes(self._variable, list(distribution.states_))
        row = np.zeros(len(self.states))
        row[places] = distribution.probabilities_
        return row

    def draw(self, codes: NDArray[np.intp], parameters: Parameters, rng: np.random.Generator) -> list[NDArray[Any]]:
        """A symbol of the state of each step."""
        return [take_states(self.states, self._rows(parameters).draw(codes, rng))]

    def describe(self) -> dict[str, Any]:
        """The states, and where they come from."""
        return {"states": list(self.states), "origin": self.origin}
