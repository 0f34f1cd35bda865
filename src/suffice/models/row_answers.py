"""What a fitted value answers about every row: an array of rows in this process, columns of a frame of others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain, Variable
from suffice.families.base import take_states
from suffice.models.evidence import RowDistributions, check_possible, known_columns
from suffice.sources.base import Batch, closed
from suffice.sources.mapped import RowTask, free_names
from suffice.sources.opening import open_source

#: Columns of rows by name: codes (-1 where missing), numbers (NaN).
CodedColumns = Mapping[Hashable, NDArray[Any]]
#: What the columns of answers are called where rows are answered by a frame.
PREDICTION, LOG_PROBABILITY = "prediction", "log_probability"


@dataclass(frozen=True, eq=False)
class RowQuestion(ABC):
    """A question about each row; it travels to where the rows are.

    `fitted` answers; `threads` are those of one process, None for one on each core.
    """

    fitted: Any
    threads: int | None

    @abstractmethod
    def __call__(self, columns: CodedColumns, n: int) -> RowDistributions:
        """The answers (n, ...), and which rows are possible (n,)."""

    @abstractmethod
    def example(self) -> NDArray[Any]:
        """The answer to one row (1, ...), which tells shape and type of all others."""

    @property
    @abstractmethod
    def names(self) -> Sequence[Hashable]:
        """What the columns of answers are called in a frame."""

    def travelling(self) -> Self:
        """Without what the fitted value keeps for further questions; frames have their own workers."""
        return replace(self, fitted=replace(self.fitted), threads=1)


class RowNumber(RowQuestion):
    """One number of each row."""

    column: ClassVar[str] = LOG_PROBABILITY

    def example(self) -> NDArray[Any]:
        """A number."""
        return np.zeros(1)

    @property
    def names(self) -> Sequence[Hashable]:
        """One column."""
        return [self.column]


class RowProbability(RowNumber):
    """Log-probability (density) of each row under a network; what a row lacks is summed out."""

    def __call__(self, columns: CodedColumns, n: int) -> RowDistributions:
        """Of rows (n,); none is impossible."""
        return self.fitted.inference.log_likelihood(columns, n, threads=self.threads), np.ones(n, dtype=bool)


@dataclass(frozen=True, eq=False)
class RowPrediction(RowQuestion):
    """P(target | the other columns) of each row, or the mean of a real target; as `labels` the most probable state."""

    target: Hashable
    labels: bool

    def __call__(self, columns: CodedColumns, n: int) -> RowDistributions:
        """Of rows (n, states) or (n,)."""
        answers, possible = self.fitted.inference.predict_rows(columns, n, self.target, threads=self.threads)
        return self._labelled(answers.argmax(axis=1)) if self._best else answers, possible

    def example(self) -> NDArray[Any]:
        """The first state, a row of zeros, or a number."""
        if self._best:
            return self._labelled(np.zeros(1, int))
        return np.zeros((1, self._variable.card) if self._variable.kind == "discrete" else 1)

    @property
    def names(self) -> Sequence[Hashable]:
        """A column for each state, or one."""
        alone = self._best or self._variable.kind != "discrete"
        return [PREDICTION] if alone else self._variable.states

    @property
    def _best(self) -> bool:
        return self.labels and self._variable.kind == "discrete"

    @property
    def _variable(self) -> Variable:
        variable: Variable = self.fitted.domain[self.target]
        return variable

    def _labelled(self, codes: NDArray[np.intp]) -> NDArray[Any]:
        return take_states(self._variable.states, codes)


@dataclass(frozen=True, eq=False)
class AnswerRows(RowTask):
    """Answers as columns for the rows of a batch."""

    question: RowQuestion
    names: tuple[str, ...]

    def __call__(self, batch: Batch) -> dict[Hashable, Any]:
        """A column for each name."""
        answers, possible = self.question(coded(batch), batch.rows)
        check_possible(possible, batch.number)
        return self._columns(answers)

    def example(self) -> dict[Hashable, Any]:
        """The columns of one row."""
        return self._columns(self.question.example())

    def _columns(self, answers: NDArray[Any]) -> dict[Hashable, Any]:
        values = answers.reshape(len(answers), -1)
        return {name: values[:, number] for number, name in enumerate(self.names)}


def answers_of_rows(question: RowQuestion, data: Any, domain: Domain, columns: Any, nodes: Domain | None = None) -> Any:
    """The answers (n, ...) to all rows of a table in this process; of a Dask or Spark frame such a frame.

    domain, nodes: as in `coded_columns`. Rows from which nothing follows are an error that names the first.
    """
    source = open_source(data, columns=columns)
    if source.residence == "elsewhere":
        names = known_names(domain if nodes is None else nodes, source.columns)
        task = AnswerRows(question.travelling(), free_names(question.names, source.columns))
        read = [name for name in names if name in domain]
        return source.map(task, closed(domain.select(read)), raw=() if read else names[:1])
    parts = [question(coded_rows, n) for coded_rows, n in coded_columns(source, domain, None, nodes)]
    if not parts:
        return question.example()[:0]
    check_possible(np.concatenate([possible for _, possible in parts]))
    return np.concatenate([answers for answers, _ in parts])


def coded_columns(
    data: Any, domain: Domain, columns: Any, nodes: Domain | None = None
) -> Iterator[tuple[CodedColumns, int]]:
    """The columns that the domain knows, batch by batch, with their length: codes (-1 where missing), numbers (NaN).

    The states of a fitted model are closed: a label that it never saw is an error, not a missing value. Data without a
    column of `nodes` (by default the domain) are an error.
    """
    source = open_source(data, columns=columns)
    names = known_names(domain if nodes is None else nodes, source.columns)
    read = {name: replace(domain[name], origin="declared") for name in names if name in domain}
    if not read:
        yield from (({}, batch.rows) for batch in source.batches(source.infer(names[:1])))
        return
    for batch in source.batches(source.infer(read, read)):
        yield coded(batch), batch.rows


def known_names(nodes: Domain, columns: Sequence[Hashable]) -> list[Hashable]:
    """The nodes that the data have a column of."""
    return [variable.name for variable in known_columns(nodes, columns)]


def coded(batch: Batch) -> CodedColumns:
    """The columns of a batch by name."""
    columns: dict[Hashable, NDArray[Any]] = dict(zip(batch.real, batch.reals, strict=True))
    for name, codes in zip(batch.discrete, batch.codes, strict=True):
        signed = codes.astype(np.int32)
        signed[signed == batch.domain[name].card] = -1
        columns[name] = signed
    return columns
