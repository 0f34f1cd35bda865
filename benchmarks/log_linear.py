"""A log-linear model of tables as arrays, so that contenders in other processes can be given it, and its judge."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contender import Data

Floats = NDArray[np.float64]
#: A law as an answer: variables and log-potential of each of its factors, whatever they are.
Factors = list[tuple[tuple[int, ...], Floats]]

#: All contenders are to come so close to every observed margin, as a share of all rows.
GAP = 1e-6


@dataclass(frozen=True)
class Cliques:
    """Variables are numbered, states too; one table of weights for each scope."""

    cards: tuple[int, ...]
    scopes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, data: Data) -> Cliques:
        """From the arrays of `arrays`."""
        ends, flat = data["scope_ends"].tolist(), data["scopes"].tolist()
        pieces = zip([0, *ends[:-1]], ends, strict=True)
        return cls(tuple(data["cards"].tolist()), tuple(tuple(flat[begin:end]) for begin, end in pieces))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Cards, scopes one after the other, and where each of them ends."""
        return {
            "cards": np.array(self.cards),
            "scopes": np.array([variable for scope in self.scopes for variable in scope], dtype=np.int64),
            "scope_ends": np.cumsum([len(scope) for scope in self.scopes]),
        }

    @classmethod
    def grid(cls, side: int) -> Cliques:
        """The neighbours in a square of binary variables."""
        at = np.arange(side * side).reshape(side, side)
        across = zip(at[:, :-1].ravel().tolist(), at[:, 1:].ravel().tolist(), strict=True)
        down = zip(at[:-1].ravel().tolist(), at[1:].ravel().tolist(), strict=True)
        return cls((2,) * side**2, (*across, *down))

    @classmethod
    def all_pairs(cls, cards: Sequence[int]) -> Cliques:
        """Every two variables of a table."""
        return cls(tuple(cards), tuple(itertools.combinations(range(len(cards)), 2)))

    @property
    def names(self) -> list[str]:
        return [f"v{index}" for index in range(len(self.cards))]

    @property
    def named_scopes(self) -> list[tuple[str, ...]]:
        return [tuple(f"v{variable}" for variable in scope) for scope in self.scopes]

    def shape(self, scope: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.cards[variable] for variable in scope)

    def split(self, flat: Floats) -> Iterator[Floats]:
        """The tables of all scopes from one vector."""
        begin = 0
        for scope in self.scopes:
            size = math.prod(self.shape(scope))
            yield flat[begin : begin + size].reshape(self.shape(scope))
            begin += size

    def factors(self, flat: Floats) -> Factors:
        """The answer of a contender that has a log-potential for each scope."""
        return list(zip(self.scopes, self.split(np.asarray(flat)), strict=True))

    def table(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        """Counts of all cells, from codes (variables, rows)."""
        cells = np.ravel_multi_index(tuple(codes.astype(np.intp)), self.cards)
        return np.bincount(cells, minlength=math.prod(self.cards)).reshape(self.cards)

    def margins(self, codes: NDArray[Any]) -> Floats:
        """Shares of all cells of all scopes, one scope after another, from codes (variables, rows)."""
        tables = []
        for scope in self.scopes:
            shape = self.shape(scope)
            cells = np.ravel_multi_index(tuple(codes[list(scope)].astype(np.intp)), shape)
            tables.append(np.bincount(cells, minlength=math.prod(shape)) / codes.shape[1])
        return np.concatenate(tables)


def draw(cliques: Cliques, rows: int, *, strength: float, seed: int) -> Data:
    """Rows drawn exactly from a model with normal weights, and their margins."""
    import suffice as sf

    rng = np.random.default_rng(seed)
    states = {name: list(range(card)) for name, card in zip(cliques.names, cliques.cards, strict=True)}
    size = sum(math.prod(cliques.shape(scope)) for scope in cliques.scopes)
    network = sf.MarkovNetwork(cliques.named_scopes, states=states).with_weights(rng.normal(0.0, strength, size))
    drawn = network.sample(rows, random_state=seed)
    codes = np.array([drawn[name] for name in cliques.names], dtype=np.uint8)
    return {"codes": codes, "margins": cliques.margins(codes), **cliques.arrays()}


class Judge:
    """Says how far the margins of a law are from those observed, and how probable it makes the rows."""

    def __init__(self, data: Data) -> None:
        self._cliques, self._codes, self._margins = Cliques.of(data), data["codes"].astype(np.intp), data["margins"]

    def __call__(self, _: str, answer: Any) -> str:
        gap, value = self.measure(answer)
        return f"gap {gap:.0e}, log-likelihood {value:.6f} a row"

    def measure(self, factors: Factors) -> tuple[float, float]:
        """Largest difference of a margin, and log-likelihood a row; from one junction tree for all contenders."""
        from suffice.engines.junction_tree import plan_tree

        cliques = self._cliques
        scopes = [*cliques.scopes, *(scope for scope, _ in factors)]
        plan = plan_tree(dict(enumerate(cliques.cards)), scopes)
        logs = [np.zeros(len(self._margins)), *(np.asarray(table).ravel() for _, table in factors)]
        log_z, margins = plan.moments()(np.concatenate(logs))
        value = -log_z + sum(
            float(np.asarray(table)[tuple(self._codes[list(scope)])].mean()) for scope, table in factors
        )
        return float(np.abs(margins[: len(self._margins)] - self._margins).max()), value
