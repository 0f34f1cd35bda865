"""Tables of steps or nodes: which data are one, and answers for their rows in the kind of the table."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Generic, Self, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, Ints
from suffice.checks import column_name, is_name
from suffice.domain import Domain, Variable
from suffice.errors import CallError, DataError, MissingValueError, OptionError, listing, require
from suffice.fitting.matrices import matrix_of, one_column, same_values
from suffice.models.conditional_field.decoding import E, FieldDecoder, spans
from suffice.models.conditional_field.evaluation import Agreement, Evaluation
from suffice.models.sequence_answers import answers_of_sequences
from suffice.sources.base import Batch, Source
from suffice.sources.held import Held, Prepared, Settled, Work
from suffice.sources.mapped import RowTask, free_names
from suffice.sources.opening import open_source
from suffice.sources.releasing import Disclosed
from suffice.sources.sequences import is_table

F = TypeVar("F", bound="TableForm")
D = TypeVar("D", bound=FieldDecoder[Any])


class TableColumns(TypedDict, total=False):
    """The keywords by which a user says how a table is laid out: `TokenForm` and `NodeForm` have some of them each."""

    group: Hashable | None
    order: Hashable | None
    node: Hashable | None
    neighbours: Hashable | None
    columns: Any
    features: Hashable | None


@dataclass(frozen=True)
class TableForm:
    """How a table of examples is laid out; the fields are keywords of the model's methods."""

    group: Hashable | None = None
    columns: Any = None

    #: Without which a table cannot be read.
    needed: ClassVar[tuple[str, ...]] = ("group",)

    @classmethod
    def reading(cls, X: object, given: Mapping[str, Any]) -> Self | None:
        """The form of a table by these keywords; None where X is no table."""
        own = [field.name for field in fields(cls)]
        wrong = [f"{name}=" for name, value in given.items() if name not in own and value is not None]
        if wrong:
            takes = listing([f"{name}=" for name in own])
            raise CallError(f"Tables of this model are laid out by {takes}; found {listing(wrong)}. Leave it out.")
        form = cls(**{name: value for name, value in given.items() if name in own})
        return form if form._reads(X) else None

    def _reads(self, X: object) -> bool:
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, value in columns.items():
            if name != "columns":  # Of these there may be several.
                column_name(value, name)
        table = is_table(X) and not isinstance(X, list | tuple)
        missing = [f"{name}=" for name in self.needed if columns[name] is None]
        if table and missing:
            raise OptionError(
                f"X is a table; name its columns by {listing(missing)}, and the one of the labels by y=. group= tells "
                "the examples apart."
            )
        named = [f"{name}=" for name, value in columns.items() if value is not None]
        if named and not table:
            raise OptionError(
                f"{listing(named)} name columns of a table; X is a {type(X).__name__}. Leave it out, or give a table."
            )
        return table


def labelled_table(X: Any, y: Any) -> tuple[Any, Hashable | None]:
    """A table and the column of its labels.

    y: the name of that column, or labels of the rows of a table in memory, which join it as a column; that which holds
    the same labels is theirs, and no feature.
    """
    if y is None or is_name(y):
        return X, y
    matrix = matrix_of(X)
    if isinstance(X, Mapping):
        table = dict(X)
    elif matrix is not None and matrix.names is not None:
        table = matrix.columns()
    else:
        raise OptionError(
            f"y holds labels, beside a {type(X).__name__}; expected the name of the column that holds them. Join them "
            "to the table as a column, and give its name."
        )
    labels = one_column(y)
    rows = len(next(iter(table.values()), ()))
    if len(labels) != rows:
        raise DataError(f"y has {len(labels)} labels for {rows} rows of X; give one a row, or the name of a column.")
    there = next((name for name, column in table.items() if same_values(column, labels)), None)
    if there is not None:
        return X, there
    (name,) = free_names(["y"], table)
    return {**table, name: labels}, name


def codes_in_column(batch: Batch, label: Hashable, unit: str) -> NDArray[Any]:
    """The codes of a column of labels (rows,), of which none may be missing; unit: what has a label, in words."""
    codes: NDArray[Any] = batch.codes[batch.discrete.index(label)]
    missing = codes == batch.domain[label].card
    if missing.any():
        row = batch.number(int(np.argmax(missing)))
        raise MissingValueError(
            f"Column {label!r} has a missing value (row {row}); every {unit} needs a label. Fill it in, or leave the "
            f"{unit} out."
        )
    return codes


def finite_column(values: Floats, name: Hashable, batch: Batch) -> Floats:
    """The numbers (rows,) of a column of features, of which none may be missing."""
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise MissingValueError(
            f"Column {name!r} is {values[wrong[0]]} (row {batch.number(int(wrong[0]))}); expected a finite number. "
            "Fill it in, or leave the column out by columns=."
        )
    return values


@dataclass(frozen=True)
class NameMissing:
    """An error that names the row of a value that is missing: a label, or a number."""

    unit: str

    def __call__(self, batch: Batch) -> int:
        """Of the rows of a batch, as they lie in the table."""
        for name in batch.discrete:
            codes_in_column(batch, name, self.unit)
        for name, values in zip(batch.real, batch.reals, strict=True):
            finite_column(values, name, batch)
        return 0


def weights_in_column(batch: Batch, unit: str, one: str) -> Floats:
    """The weight of each example (n,) of a batch, which its rows share; one, unit: it and its rows in words."""
    assert batch.offsets is not None
    if batch.weights is None:
        return np.ones(len(batch.offsets) - 1)
    own = batch.weights[batch.offsets[:-1]]
    if (np.repeat(own, np.diff(batch.offsets)) != batch.weights).any():
        raise DataError(f"The {unit}s of a {one} have different weights; a weight is that of a whole {one}.")
    return own


@dataclass(frozen=True, eq=False)
class ReadExamples(Generic[E]):
    """How batches become examples that a decoder is asked about."""

    decoder: FieldDecoder[E]
    read: Callable[[Batch], E]

    def labels(self, batch: Batch, label: Hashable) -> Ints:
        """Codes (rows,) of the labels of a batch."""
        return codes_in_column(batch, label, self.decoder.words[1]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class ScoreExamples(Generic[E]):
    """Log p(labels | example) of each example of a batch."""

    examples: ReadExamples[E]
    label: Hashable

    def __call__(self, batch: Batch, called: Callable[[int], str]) -> Sequence[float]:
        """Of examples that are called so."""
        codes = self.examples.labels(batch, self.label)
        logs: list[float] = self.examples.decoder.log_likelihoods(self.examples.read(batch), codes).tolist()
        return logs


@dataclass(frozen=True, eq=False)
class SumScores(Generic[E]):
    """The work of scoring: the log-likelihood of the examples of a shard, each times its weight, and their weight."""

    examples: ReadExamples[E]
    label: Hashable

    def prepare(self, batch: Batch) -> Floats:
        """Both sums (2,)."""
        one, unit = self.examples.decoder.words
        weights = weights_in_column(batch, unit, one)
        logs = np.array(ScoreExamples(self.examples, self.label)(batch, str))
        used = weights > 0.0
        return np.array([weights[used] @ logs[used], weights.sum()])

    def disclosed(self) -> Disclosed:
        """Nothing of joint states: one sum over all rows."""
        return Disclosed()

    def evaluate(self, prepared: Floats, parameters: None) -> Floats:
        """As they are."""
        return prepared


@dataclass(frozen=True, eq=False)
class CompareLabels(Generic[E]):
    """The work of comparing labels with those predicted."""

    examples: ReadExamples[E]
    label: Hashable

    def prepare(self, batch: Batch) -> Agreement:
        """What the examples of a shard say."""
        examples, decoder = self.examples.read(batch), self.examples.decoder
        codes, labels = self.examples.labels(batch, self.label).tolist(), batch.domain[self.label].states
        truth = [[labels[code] for code in codes[a:b]] for a, b in spans(examples.offsets)]
        return Agreement.of(truth, decoder.named(decoder.best_codes(examples), examples.offsets))

    def evaluate(self, prepared: Agreement, parameters: None) -> Agreement:
        """As it is."""
        return prepared


@dataclass(frozen=True, eq=False)
class LabelRows(RowTask, Generic[E]):
    """The best labels of the rows of whole examples, or probabilities of all labels; it travels to the rows."""

    examples: ReadExamples[E]
    marginals: bool
    names: tuple[str, ...]

    def __call__(self, batch: Batch) -> dict[Hashable, Any]:
        """Columns of one value a row."""
        examples, decoder = self.examples.read(batch), self.examples.decoder
        if self.marginals:
            return dict(zip(self.names, np.concatenate(decoder.marginals(examples)).T, strict=True))
        return {self.names[0]: [decoder.labels[code] for code in decoder.best_codes(examples).tolist()]}

    def example(self) -> dict[Hashable, Any]:
        """A probability for each label, or the first label."""
        labels = self.examples.decoder.labels
        return dict.fromkeys(self.names, np.zeros(1)) if self.marginals else {self.names[0]: [labels[0]]}


class FieldTable(ABC, Generic[F, D]):
    """A table of examples that is open, read where it is."""

    #: What messages call a row.
    unit: ClassVar[str] = "step"

    def __init__(
        self, X: object, form: F, options: Mapping[str, Any], y: object = None, sample_weight: object = None
    ) -> None:
        """options: those of the model; y: labels, or the name of their column; sample_weight: that of the weights."""
        X, self.label = labelled_table(X, y)
        self.source: Source = open_source(X, sample_weight=sample_weight)
        self.form, self.options = form, options
        self.source.check_columns(self.beside)

    @property
    @abstractmethod
    def beside(self) -> list[Hashable]:
        """The columns that say how the table is laid out."""

    @property
    @abstractmethod
    def order(self) -> Hashable | None:
        """The column that orders the rows of an example."""

    @property
    @abstractmethod
    def raw(self) -> list[Hashable]:
        """Columns that are read as they are."""

    @abstractmethod
    def read_by(self, decoder: D, label: Variable | None) -> tuple[Settled, ReadExamples[Any]]:
        """What is settled of the columns that a fitted value reads, and of those of labels, and how it reads them."""

    def settle(self, names: Sequence[Hashable], label: Variable | None) -> Settled:
        """States of columns of features and of labels, in one pass; a missing number or label is an error.

        Its row is named before examples are brought together, which gives rows other numbers.
        """
        declared = {} if label is None else {label.name: label}
        threads = self.options["threads"]
        domain = self.source.infer([*names, *declared], {**self.kinds(names), **declared})
        settled = self.source.settle(domain, threads=threads)
        needed = [v for v in settled.domain.variables if v.kind == "real" or v.name in declared]
        missing = [variable for variable in needed if settled.missing.get(variable.name)]
        if missing:
            self.source.reduce(NameMissing(self.unit), Domain(missing), threads=threads)
        return settled

    def kinds(self, names: Sequence[Hashable]) -> dict[Hashable, Variable]:
        """What columns of features are, where that does not depend on what they hold."""
        return {}

    def checked_label(self) -> Hashable:
        """The column of labels; an error where there is none."""
        if self.label is None:
            raise OptionError("y is missing: name the column of the table that holds the labels, as in y='label'.")
        self.source.check_columns([self.label])
        return self.label

    def hold(self, work: Work[Prepared], settled: Settled) -> Held[Prepared]:
        """Whole examples, prepared where they are."""
        return self.source.hold(
            work,
            settled,
            raw=self.raw,
            memory_limit=self.options["memory_limit"],
            threads=self.options["threads"],
            group=self.form.group,
            order=self.order,
        )

    # -- answers of a fitted value -----------------------------------------------------------------------------------

    def scores(self, decoder: D) -> Floats:
        """Log p(labels | example) of each example (n,)."""
        label = self.checked_label()
        settled, examples = self.read_by(decoder, Variable.discrete(label, decoder.labels))
        ask, threads = ScoreExamples(examples, label), self.options["threads"]
        logs = answers_of_sequences(ask, self.source, settled, self.form.group, self.order, threads, self.raw)
        return np.array(logs, dtype=np.float64)

    def score(self, decoder: D) -> float:
        """Mean log-likelihood of an example (weighted)."""
        label = self.checked_label()
        settled, examples = self.read_by(decoder, Variable.discrete(label, decoder.labels))
        with self.hold(SumScores(examples, label), settled) as held:
            total, weight = held.sum(None).tolist()
        if not weight > 0.0:
            raise DataError(f"sample_weight is 0 for every {decoder.words[0]}; nothing is left.")
        return float(total / weight)

    def evaluated(self, decoder: D) -> Evaluation:
        """How good predicted labels are; those that the fit has not seen count as missed."""
        label = self.checked_label()
        settled, examples = self.read_by(decoder, Variable(label, "discrete"))
        with self.hold(CompareLabels(examples, label), settled) as held:
            agreement: Agreement = held.sum(None)
        return agreement.evaluation()

    def mapped(self, decoder: D, *, marginals: bool) -> Any:
        """The label of every row, or the probabilities of all labels."""
        settled, examples = self.read_by(decoder, None)
        wanted = decoder.labels if marginals else ["predicted"]
        task = LabelRows(examples, marginals, free_names(wanted, self.source.columns))
        threads = self.options["threads"]
        return self.source.map(
            task, settled.domain, group=self.form.group, order=self.order, raw=self.raw, threads=threads
        )


def in_the_kind_of(X: Any, answer: Any) -> Any:
    """Columns for the rows of a table, as what the table is.

    Of pandas and polars a Series (several columns: a frame), of Arrow an array (a table), of files, queries and
    anything else in this process NumPy's array; what engines elsewhere give stays there.
    """
    pa = require("pyarrow", extra="files", purpose="An answer for the rows of a table")
    if not isinstance(answer, Iterable) or hasattr(answer, "columns"):
        return answer
    table = pa.Table.from_batches(list(answer))
    one = table.num_columns == 1
    pd, pl = sys.modules.get("pandas"), sys.modules.get("polars")
    if pd is not None and isinstance(X, pd.DataFrame):
        frame = table.to_pandas().set_axis(X.index)
        return frame[table.column_names[0]] if one else frame
    if pl is not None and isinstance(X, pl.DataFrame):
        frame = pl.from_arrow(table)
        return frame.to_series() if one else frame
    if isinstance(X, pa.Table | pa.RecordBatch):
        return table.column(0) if one else table
    columns = [column.to_numpy(zero_copy_only=False) for column in (part.combine_chunks() for part in table.columns)]
    return columns[0] if one else np.stack(columns, axis=1)
