"""A source answers: it cuts a table into batches, codes them by label, and adds up what a task makes of each."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.checks import byte_count
from suffice.domain import Domain, Variable
from suffice.errors import DataError, MissingColumnError, OptionError, listing, meant
from suffice.sources.columns import Codes, Column
from suffice.sources.held import Held, HeldLocal, Prepared, Settled, Work, survey
from suffice.sources.kinds import DecidedKinds, Declarations, WholeFloats, check_declared
from suffice.sources.mapped import Columns, mapped_columns, write_columns
from suffice.sources.reduction import Origin, add_in_order
from suffice.sources.scratch import Scratch, free_memory

#: Rows of a batch: enough to pay for a task, few enough that a batch of 40 columns of codes stays near the cache.
BATCH_ROWS = 262_144
#: Rows of a table that does not tell how many it has, as far as that decides how it is cut.
_MANY = 10_000_000


class Additive(Protocol):
    """What a task returns: answers that add up."""

    def __add__(self, other: Self, /) -> Self:
        """Both sets of rows."""
        ...


Answer = TypeVar("Answer", bound=Additive)
Progress = Callable[[int, int | None], None]


class Pace(NamedTuple):
    """How a pass runs: batches at a time (None for all cores), and who is told of the rows done and the rows in all."""

    threads: int | None = None
    progress: Progress | None = None


@dataclass(frozen=True)
class Batch:
    """Some rows, coded.

    `codes` (discrete, rows) is C-contiguous uint8, uint16 or uint32; the code ``card`` of a variable is a missing
    value. `reals` (real, rows) is float64 and holds real and count variables; NaN is a missing value. `weights` is
    (rows,) or None. `start` is the number of the first row, from 0. `domain` has the states filled in; in data that is
    read once they are the states seen so far. `complete` says that no code is a missing value, and `finite` that all
    numbers are finite; where they are false, that is not known yet. Where rows are the steps of sequences, whole ones
    one after the other, `offsets` (sequences + 1,) says where each begins, and the end; `raw` holds columns that are
    not to be coded, as Arrow arrays. `numbers` (rows,) are the numbers of the rows where they do not count up from
    `start`. `origins` are the files that they were read from.
    """

    domain: Domain
    discrete: tuple[Hashable, ...]
    codes: Codes
    real: tuple[Hashable, ...]
    reals: Floats
    weights: Floats | None
    rows: int
    start: int = 0
    complete: bool = False
    offsets: Ints | None = None
    raw: Mapping[Hashable, Any] = field(default_factory=dict)
    numbers: Ints | None = None
    origins: tuple[Origin, ...] = ()
    finite: bool = False

    def number(self, row: int) -> int:
        """The number that a row of this batch has in the table, for messages."""
        return self.start + row if self.numbers is None else int(self.numbers[row])

    def part(self, rows: slice) -> Batch:
        """Some rows of a table, which are no sequences."""
        if rows.start == 0 and rows.stop >= self.rows:
            return self
        codes, reals = np.ascontiguousarray(self.codes[:, rows]), np.ascontiguousarray(self.reals[:, rows])
        weights = None if self.weights is None else self.weights[rows]
        first, count = self.start + rows.start, len(range(self.rows)[rows])
        known = self.complete
        return Batch(
            self.domain, self.discrete, codes, self.real, reals, weights, count, first, known, finite=self.finite
        )

    @classmethod
    def empty(cls, domain: Domain) -> Batch:
        """No rows."""
        discrete, real = by_kind(domain)
        codes = np.empty((len(discrete), 0), np.uint8)
        return cls(domain, discrete, codes, real, np.empty((len(real), 0)), None, 0)


Piece = Callable[[], Batch]


@dataclass(frozen=True)
class Layout:
    """How shards are laid out: the columns that tell sequences apart and order their steps, and those not coded."""

    group: Hashable | None = None
    order: Hashable | None = None
    raw: tuple[Hashable, ...] = ()

    @property
    def keys(self) -> tuple[Hashable, ...]:
        """The columns of the group and of the order."""
        return tuple(name for name in (self.group, self.order) if name is not None)

    @property
    def beside(self) -> tuple[Hashable, ...]:
        """All columns that are read beside the variables."""
        return (*self.keys, *self.raw)


def by_kind(domain: Domain) -> tuple[tuple[Hashable, ...], tuple[Hashable, ...]]:
    """Names of the discrete variables, and of the real and count variables, in order."""
    if not domain.numbers:
        return domain.names, ()
    return tuple(v.name for v in domain.variables if v.kind == "discrete"), domain.numbers


class Source(ABC):
    """A table of any size that can be read in batches, as often as a fit needs.

    `columns` names the columns, without the one that holds the weights. `passes` is the number of times the rows have
    been read. `unordered` names what has rows that come in no order of their own; empty where they keep theirs.
    """

    unordered: str = ""
    #: Whether the rows can be read only once.
    one_pass = False
    #: Where the rows are: in the memory of this process, where it reads them again and again, on other machines, or at
    #: sites that do not let them go.
    residence: ClassVar[Literal["memory", "read", "elsewhere", "sites"]] = "read"
    #: Texts that stand for a missing value.
    missing_texts: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, columns: Iterable[Hashable]) -> None:
        """Keep the names; they must differ."""
        self.columns = tuple(columns)
        self.passes = 0
        #: Whether the rows have weights.
        self.weighted = False
        #: Columns whose kind nobody has declared, each with what is to be done where it cannot be told.
        self.undeclared: Mapping[Hashable, Declarations] = {}
        #: Of columns of floats, as far as they have been looked at, whether they hold whole numbers; None: they do not.
        self._whole: dict[Hashable, WholeFloats | None] = {}
        #: The column of weights, where the table has one.
        self._weight_name: Hashable | None = None
        check_names(self.columns)

    @property
    @abstractmethod
    def rows(self) -> int | None:
        """Number of rows, or None where only reading would tell."""

    @abstractmethod
    def weigh(self, weights: Column) -> None:
        """Take the weights from a column that is no part of the table."""

    def weigh_by(self, name: Hashable) -> None:
        """Take the weights from a column of the table, which is then no longer one of `columns`."""
        self.check_columns([name])
        self._weight_name = name
        self.columns = tuple(column for column in self.columns if column != name)

    def _with_weights(self, domain: Domain) -> tuple[Hashable, ...]:
        """The columns to read: those of the variables, and that of the weights."""
        return domain.names if self._weight_name is None else (*domain.names, self._weight_name)

    @abstractmethod
    def _infer(self, name: Hashable) -> Variable:
        """The variable that a column holds, by its type."""

    def holds_numbers(self, name: Hashable) -> bool:
        """Whether the type of a column says that it holds numbers or truth values; else its values may still."""
        return self._infer(name).kind == "real"

    def promoted(self, name: Hashable) -> str:
        """In words, integers in some parts of a column that is one of floats in others; empty where all are alike."""
        return ""

    @abstractmethod
    def _pieces(self, domain: Domain, threads: int | None) -> Generator[Piece]:
        """Calls that each code one batch; they may run in any thread and in any order. At least one."""

    def columns_in_parts(self, domain: Domain) -> Iterator[Mapping[Hashable, Column]]:
        """The columns of a domain, some rows at a time and not yet coded, in one pass."""
        raise OptionError(
            f"The rows of {type(self).__name__} are not brought together: name the column that tells sequences apart "
            "by group=."
        )

    def infer(
        self,
        names: Iterable[Hashable] | None = None,
        declared: Mapping[Any, Variable] = MappingProxyType({}),
    ) -> Domain:
        """Kinds of the named columns (all by default): declared ones as declared, the others by the column's type.

        Text, truth values, categories, integers and dates are discrete; floats and decimals are real. Categorical
        columns bring their categories, also those that no row holds; other states are found while reading.
        """
        wanted = self.columns if names is None else tuple(names)
        self.check_columns((*wanted, *declared))
        given = [declared.get(name) for name in wanted]
        return Domain.of(
            [v if v is not None and v.states else self._resolved(n, v) for n, v in zip(wanted, given, strict=True)]
        )

    def _resolved(self, name: Hashable, declared: Variable | None) -> Variable:
        """As declared, but a discrete variable declared without states takes the categories that the column brings."""
        if declared is not None and (declared.kind != "discrete" or declared.states or declared.origin != "seen"):
            return declared
        inferred = self._infer(name)
        return inferred if declared is None or inferred.kind == "discrete" else declared

    def decide_kinds(self, domain: Domain, undeclared: Mapping[Hashable, Declarations]) -> DecidedKinds:
        """The domain in which floats that are few whole numbers are states, and the names that a user is told of.

        `undeclared` has the columns whose kind nobody declared, each with what is to be done where it holds many
        integers: that is an error as soon as rows show it. See `suffice.sources.kinds` for the rule.
        """
        self.undeclared = undeclared
        floats = [name for name in undeclared if domain[name].kind == "real"]
        unseen = [name for name in floats if name not in self._whole]
        new = self._whole_floats(unseen) if unseen else {}
        self._whole |= {name: new.get(name) for name in unseen}
        whole = {name: numbers for name in floats if (numbers := self._whole[name]) is not None}
        few = tuple(name for name, numbers in whole.items() if numbers.few)
        widened = tuple(name for name, numbers in whole.items() if numbers.widened)
        if few:
            domain = Domain(Variable(v.name, "discrete") if v.name in few else v for v in domain.variables)
        return DecidedKinds(domain, few, widened)

    @abstractmethod
    def _whole_floats(self, names: Sequence[Hashable]) -> Mapping[Hashable, WholeFloats]:
        """Whether columns of floats hold whole numbers alone; those that are left out do not."""

    def batches(self, domain: Domain) -> Iterator[Batch]:
        """The rows of the variables of a domain, batch by batch: one pass."""
        self.check_columns(domain)
        self.passes += 1
        with closing(self._pieces(domain, 1)) as pieces:
            for piece in pieces:
                yield piece()

    def reduce(
        self,
        task: Callable[[Batch], Answer],
        domain: Domain,
        *,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Answer:
        """The sum of ``task(batch)`` over all batches, added in the order of the rows.

        The result does not depend on the number of threads. Few batches are in memory at a time. `progress` is called
        with the rows done and the rows in all (None where unknown).
        """
        self.check_columns(domain)
        self.passes += 1
        return self._reduced(task, domain, Pace(threads, progress))

    def _reduced(self, task: Callable[[Batch], Answer], domain: Domain, pace: Pace) -> Answer:
        """What `reduce` gives."""
        total, (threads, progress) = self.rows, pace
        report = None if progress is None else (lambda done: progress(done, total))
        with closing(self._pieces(domain, threads)) as pieces:
            answer: Answer = add_in_order(pieces, task, threads=threads, report=report)
        return answer

    def settle(self, domain: Domain, *, threads: int | None = None, progress: Progress | None = None) -> Settled:
        """States, missing values and weight of the variables of a domain, after which codes are equal everywhere.

        One pass over the columns of which the data say less than that without being read; none where there are none.
        """
        self.check_columns(domain)
        known = self._known_missing(domain)
        left = Domain(v for v in domain.variables if v.name not in known)
        if not len(left) and self.rows is not None and (weight := self._known_weight) is not None:
            settled = Settled(left, self.rows, weight)
        else:
            settled = self.reduce(survey, left, threads=threads, progress=progress)
            check_declared(settled.domain, self.undeclared)
        everything = Domain(settled.domain[v.name] if v.name in left else v for v in domain.variables)
        missing = {**settled.missing, **{name: count for name, count in known.items() if count}}
        return Settled(everything, settled.rows, settled.weight, missing)

    def _known_missing(self, domain: Domain) -> Mapping[Hashable, int]:
        """The rows without a value of those variables of which all is known that `settle` asks for, by name."""
        return {}

    @property
    def _known_weight(self) -> float | None:
        """The sum of the weights of all rows, where it is known before they are read."""
        return None if self.weighted or self.rows is None else float(self.rows)

    def hold(
        self,
        work: Work[Prepared],
        settled: Settled,
        *,
        group: Hashable | None = None,
        order: Hashable | None = None,
        raw: Iterable[Hashable] = (),
        memory_limit: int | str | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Held[Prepared]:
        """Prepare every shard once and keep it where its rows are; see `suffice.sources.held`.

        Args:
            work: What the rounds need of a shard, and what they ask it.
            settled: What `settle` has found; codes are those of its domain.
            group: The column that tells sequences apart: shards then hold whole ones, and batches have `offsets`.
                Without `order`, rows of a sequence keep theirs and sequences come in the order of their first rows.
            order: The column by which the steps of each sequence are sorted; sequences then come in the order of their
                names. Data whose rows have no order of their own need it with `group`.
            raw: Columns that the work gets as Arrow arrays, such as lists of features, in `Batch.raw`.
            memory_limit: Most bytes of prepared shards in memory, or a text such as "2GB"; beyond it they are written
                to a scratch folder, and prepared again in each round where that has no room. By default half of the
                memory that is free; data in memory are then one shard that stays there.
            threads: Shards prepared and asked at a time; None for all cores.
            progress: Called with the rows done and the rows in all.
        """
        layout = Layout(group, order, tuple(raw))
        self._check_layout(settled.domain, layout)
        if memory_limit is not None and self.residence in ("elsewhere", "sites"):
            raise OptionError(
                "memory_limit= is for rows that are prepared in this process; these stay where they are. Limit their "
                "memory there, and leave memory_limit= out."
            )
        limit = None if memory_limit is None else byte_count(memory_limit, "memory_limit")
        return self._prepared(work, settled, layout, limit, Pace(threads, progress))

    def _prepared(
        self, work: Work[Prepared], settled: Settled, layout: Layout, limit: int | None, pace: Pace
    ) -> Held[Prepared]:
        """What `hold` gives; limit: the memory that was asked for, in bytes."""
        scratch, (threads, progress) = Scratch(), pace

        def shards() -> Generator[Piece]:
            self.passes += 1
            return self._shards(settled, layout, threads, limit, scratch)

        again = not (self.unordered or self.one_pass or layout.keys)
        room = self._default_limit() if limit is None else limit
        return HeldLocal(work, settled, shards, scratch, room, again=again, threads=threads, progress=progress)

    def _default_limit(self) -> int | None:
        """Most bytes of prepared shards in memory where nobody has set a limit; None where all stay there."""
        return free_memory() // 2

    def map(
        self,
        task: Callable[[Batch], Columns],
        domain: Domain,
        *,
        group: Hashable | None = None,
        order: Hashable | None = None,
        raw: Iterable[Hashable] = (),
        path: str | os.PathLike[str] | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Any:
        """Columns that a task makes of every row, such as predictions, where the rows are.

        What comes back is of the kind that came in: a frame of Dask, Spark or Ray with these columns, not computed yet,
        and with what tells rows apart: the index of a Dask DataFrame, all columns of the others. With `group` its rows
        come in the order of the shuffle, and bring the columns of group and order along. The task is asked once in this
        process, about a row of first states and zeros, for its types. Tables, files and queries in this process give an
        iterator of Arrow record batches in the order of the rows, of which few are in memory at a time.

        Args:
            task: Makes columns of a batch: a dict from names to arrays of one value a row. It travels as a `Work` does.
            domain: The variables, whose states are closed: another value is an error that names its row.
            group: As in `hold`: batches then hold whole sequences; what comes back is in the order of the table still.
            order: As in `hold`.
            raw: As in `hold`.
            path: A Parquet file to write to, in place of what would come back; its path is returned once it is whole.
                For Dask, Spark and Ray a folder of such files.
            threads: Batches at a time; None for all cores.
            progress: Called with the rows done and the rows in all (None where unknown).
        """
        layout = Layout(group, order, tuple(raw))
        self._check_layout(domain, layout)
        path = None if path is None else os.fspath(path)
        return self._mapped(task, closed(domain), layout, path, Pace(threads, progress))

    def _mapped(
        self, task: Callable[[Batch], Columns], domain: Domain, layout: Layout, path: str | None, pace: Pace
    ) -> Any:
        """What `map` gives, of closed variables."""
        total, scratch, (threads, progress) = self.rows, Scratch(), pace
        settled = Settled(domain, _MANY if total is None else total, 0.0)

        def report(done: int) -> None:
            if progress is not None:
                progress(done, total)

        self.passes += 1
        pieces = self._shards(settled, layout, threads, None, scratch)
        batches = mapped_columns(task, pieces, scratch, threads, report)
        return batches if path is None else write_columns(batches, path)

    def _check_layout(self, domain: Domain, layout: Layout) -> None:
        """Raise unless these columns can be read, and sequences be put in order."""
        self.check_columns((*domain, *layout.beside))
        if layout.group is not None and layout.group == layout.order:
            raise OptionError(
                f"group= and order= both name {layout.group!r}; one tells sequences apart, the other their "
                "steps. Name two columns."
            )
        if layout.group is not None and layout.order is None and self.unordered:
            raise OptionError(
                f"The rows of {self.unordered} come in no order of their own, and the steps of a sequence have one. "
                "Name the column that orders the steps of each sequence by order=, such as a time or a number."
            )

    def _shards(
        self, settled: Settled, layout: Layout, threads: int | None, limit: int | None, scratch: Scratch
    ) -> Generator[Piece]:
        """Calls that each make the batch of a shard, in one pass; they may run in any thread and in any order.

        limit: the memory that was asked for, in bytes; scratch: where rows may be written on their way.
        """
        if layout.beside:
            raise OptionError(f"{type(self).__name__} cannot be held with group=, order= or raw=.")
        return self._pieces(settled.domain, threads)

    def check_columns(self, names: Iterable[Hashable]) -> None:
        """Raise unless there are columns of these names."""
        asked = dict.fromkeys(names)
        missing = asked.keys() - self.columns
        if missing:
            raise missing_columns([name for name in asked if name in missing], self.columns)


def closed(domain: Domain) -> Domain:
    """With no other states than these."""
    return Domain(replace(v, origin="declared") if v.kind == "discrete" and v.states else v for v in domain.variables)


def check_names(names: tuple[Hashable, ...]) -> None:
    """Raise if there is no column, or two of the same name."""
    if not names:
        raise DataError("The data have no columns; give at least one.")
    if len(set(names)) != len(names):
        twice = next(name for number, name in enumerate(names) if name in names[:number])
        raise DataError(f"Two columns are named {twice!r}; rename one of them, so that columns can be found by name.")


def missing_columns(
    names: Sequence[Hashable], known: Sequence[Hashable], where: str = "the data"
) -> MissingColumnError:
    """The error for columns that are not there; for a single one, with the name that comes nearest."""
    near = meant(names[0], known) if len(names) == 1 else ""
    what = f"is no column {names[0]!r}" if len(names) == 1 else f"are no columns {listing(names)}"
    unnamed = known == tuple(range(len(known)))
    hint = " Name the columns of an array by columns=, in their order." if unnamed else ""
    return MissingColumnError(f"There {what} in {where}.{near} Its columns are: {listing(known)}.{hint}")
