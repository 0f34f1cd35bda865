"""The rows of a regression, wherever they stay: prepared once, then asked round after round."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.engines.linear_predictor import RowBlock, reduce_rows
from suffice.sources.held import Held, HeldHere
from suffice.sources.reduction import Answers

Answer = TypeVar("Answer")
#: What questions see of a block.
View = Callable[[RowBlock], RowBlock]

#: Numbers of a design up to which shards in this process are put together: what is small is decided row by row.
GATHERED = 3_000_000


def spread_rows(rows: int, every: int) -> NDArray[np.intp]:
    """The numbers of some rows, one drawn from each stretch of so many.

    The generator has a fixed seed: a fit meets the same rows every time. Unlike rows at equal distances these do not
    keep step with a pattern that the rows may follow in their order.
    """
    firsts = every * np.arange(rows // every)
    return firsts + np.random.default_rng(0).integers(0, every, len(firsts))


@dataclass(frozen=True, eq=False)
class PreparedRows:
    """The rows of a shard.

    `block` has those with weight: the others say nothing, and at the coefficients of these a link may not even allow
    them. `rows` is the number of all, `weight` their weight, and `constant` the part of their log-likelihood that no
    coefficient enters.
    """

    block: RowBlock
    rows: int
    weight: float
    constant: float = 0.0

    @classmethod
    def of(cls, block: RowBlock, weights: Floats | None, base: Floats | None) -> PreparedRows:
        """From all rows; weights: how many rows each stands for; base: a part of the log density of each."""
        weight = float(block.rows) if weights is None else float(weights.sum())
        constant = 0.0 if base is None else float(base.sum() if weights is None else weights @ base)
        live = block
        if block.weights is not None and not block.weights.all():
            live = block.chosen(np.flatnonzero(block.weights), block.start)
        return cls(live, block.rows, weight, constant)


@dataclass(frozen=True)
class RowFigures:
    """What shards add up to before anything is asked of their rows: rows in all, those with weight, and sums."""

    rows: int
    live: int
    weight: float
    constant: float

    def __add__(self, other: RowFigures) -> RowFigures:
        """Both sets of rows."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return RowFigures(*(mine + theirs for mine, theirs in pairs))


class BlockWork:
    """The work on blocks of rows, which answer questions; rows that are a block already have nothing to prepare."""

    def prepare(self, batch: Any) -> PreparedRows:
        """The rows of a shard."""
        return PreparedRows.of(batch, batch.weights, None)

    def evaluate(self, prepared: PreparedRows, question: Callable[[RowBlock], Answer]) -> Answer:
        """What the rows of a shard answer: the parameters of a round are a question, which holds the coefficients."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return reduce_rows(prepared.block, question)


@dataclass(frozen=True, eq=False)
class Together:
    """Several questions in one round."""

    questions: tuple[Callable[[RowBlock], Any], ...]

    def __call__(self, block: RowBlock) -> Answers:
        """All answers of a block."""
        return Answers(tuple(question(block) for question in self.questions))


def _viewed(block: RowBlock, *, view: View, question: Callable[[RowBlock], Answer]) -> Answer:
    return question(view(block))


def _twice_viewed(block: RowBlock, *, first: View, then: View) -> RowBlock:
    return then(first(block))


def _live_rows(block: RowBlock) -> int:
    return block.rows if block.weights is None else int(np.count_nonzero(block.weights))


def _response_alone(block: RowBlock) -> RowBlock:
    return RowBlock(block.dense[:, :0], block.y, block.weights, block.offset)


def _one_response(block: RowBlock, *, column: int) -> RowBlock:
    return replace(block, y=np.ascontiguousarray(block.y[:, column]))


class RegressionRows:
    """All rows of a fit; `rows` counts those with weight.

    In memory they are one block, whose rows can be met in any order. Elsewhere they are shards, which answer where they
    are. Questions hold no rows and can travel.
    """

    def __init__(self, held: Held[PreparedRows], rows: int, view: View | None = None) -> None:
        """Keep them; view: what questions see of a block, in place of all."""
        self.held, self.rows, self._view = held, rows, view
        self._known: dict[Hashable, Any] = {}
        self._waiting: dict[Hashable, Callable[[RowBlock], Any]] = {}
        self._spread: dict[int, RowBlock] = {}

    @classmethod
    def of(cls, block: RowBlock) -> RegressionRows:
        """Rows that are in memory."""
        return cls(HeldHere(BlockWork(), [PreparedRows.of(block, block.weights, None)]), block.rows)

    @cached_property
    def in_memory(self) -> bool:
        """Whether the rows are one block of this process."""
        return isinstance(self.held, HeldHere) and self.held.shards == 1

    @cached_property
    def block(self) -> RowBlock:
        """The rows, where they are in memory."""
        assert isinstance(self.held, HeldHere)
        (prepared,) = self.held.prepared
        return prepared.block if self._view is None else self._view(prepared.block)

    def reduce(self, question: Callable[[RowBlock], Answer]) -> Answer:
        """The sum of the answers of all rows: one round."""
        waiting, self._waiting = self._waiting, {}
        if not waiting:
            alone: Answer = self.held.sum(self.asked(question))
            return alone
        together = Together((self.asked(question), *waiting.values()))
        answer, *others = self.held.sum(together).parts
        self._known.update(zip(waiting, others, strict=True))
        first: Answer = answer
        return first

    def asked(self, question: Callable[[RowBlock], Answer]) -> Callable[[RowBlock], Answer]:
        """A question as it is put to whole blocks."""
        return question if self._view is None else partial(_viewed, view=self._view, question=question)

    def expect(self, name: Hashable, question: Callable[[RowBlock], Any]) -> None:
        """A question that `once` will ask under a name: it goes with the next round, whatever that asks."""
        if name not in self._known:
            self._waiting[name] = question

    def once(self, name: Hashable, question: Callable[[RowBlock], Answer]) -> Answer:
        """The answer to a question that has been asked under this name before, or is asked now."""
        if name not in self._known:
            self._waiting.pop(name, None)
            self._known[name] = self.reduce(question)
        answer: Answer = self._known[name]
        return answer

    def learn(self, name: Hashable, answer: Any) -> None:
        """Keep the answer to a question that `once` will ask under a name."""
        self._known[name] = answer

    def taken(self, name: Hashable) -> Any:
        """The answer to a question that was expected, which is then asked anew; None where it was not."""
        self._waiting.pop(name, None)
        return self._known.pop(name, None)

    def spread(self, every: int) -> RowBlock:
        """Some rows in memory, one of each stretch of so many; gathered once, as solver and judge meet the same."""
        if every not in self._spread:
            self._spread[every] = self.block.chosen(spread_rows(self.rows, every))
        return self._spread[every]

    def without_columns(self) -> RegressionRows:
        """The same rows, of which response, weights and offset are all there is to see."""
        return RegressionRows(self.held, self.rows, _response_alone)

    def chosen(self, view: View) -> RegressionRows | None:
        """Those of the rows that a view shows; None where it shows none with weight."""
        seen = view if self._view is None else partial(_twice_viewed, first=self._view, then=view)
        some = RegressionRows(self.held, 0, seen)
        some.rows = int(some.reduce(_live_rows))
        return some if some.rows else None

    def one_response(self, column: int) -> RegressionRows:
        """The same rows with one column of a response of several."""
        return RegressionRows(self.held, self.rows, partial(_one_response, column=column))

    def reduce_all(self, *questions: Callable[[RowBlock], Any]) -> tuple[Any, ...]:
        """The answers to several questions, in one round."""
        return self.reduce(Together(questions)).parts
