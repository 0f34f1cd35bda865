"""Map a task over pieces of work, in threads where it pays, and add the answers in order."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar

from suffice.checks import whole_number
from suffice.errors import DataError

if TYPE_CHECKING:
    from concurrent.futures import Future

#: How errors speak of a row of the table.
_ROW = re.compile(r"\brow (\d+)\b")
Item = TypeVar("Item")
Result = TypeVar("Result")


def add_in_order(
    pieces: Iterable[Callable[[], Any]],
    task: Callable[[Any], Any],
    *,
    threads: int | None = None,
    report: Callable[[int], None] | None = None,
) -> Any:
    """The sum of ``task(piece())`` over all pieces; `report` is told the rows done.

    Neighbours are added first, then pairs of neighbours, and so on. The tree depends on the order of the pieces alone,
    so that sums of floats are the same for any number of threads; and answers that grow with the rows are copied only
    a logarithmic number of times.
    """

    def work(piece: Callable[[], Any]) -> tuple[Any, int]:
        batch = piece()
        with naming(batch.origins):
            return task(batch), batch.rows

    done = 0

    def answers() -> Iterator[Any]:
        nonlocal done
        for answer, rows in map_in_order(work, pieces, threads):
            done += rows
            yield answer
            if report is not None:
                report(done)

    return add_answers(answers())


@dataclass(frozen=True, order=True)
class Origin:
    """A file that rows were read from; `first` is the number in the table of its first row."""

    first: int
    path: str


@contextmanager
def counted_from(start: int) -> Iterator[None]:
    """Let an error about rows that were read as a table of their own speak of them by their numbers in the whole."""
    try:
        yield
    except DataError as error:
        error.args = (_ROW.sub(lambda row: f"row {int(row[1]) + start}", str(error)),)
        raise


@contextmanager
def naming(origins: Sequence[Origin]) -> Iterator[None]:
    """Let an error about data say which file its row was read from, and which row of that file it is."""
    try:
        yield
    except DataError as error:
        text = str(error)
        if origins and not any(repr(origin.path) in text for origin in origins):
            number = _ROW.search(text)
            row = -1 if number is None else int(number[1])
            before = [origin for origin in sorted(origins) if origin.first <= row]
            if before:
                where = f"That is row {row - before[-1].first} of {before[-1].path!r}."
            else:
                where = f"Read from {' or '.join(dict.fromkeys(repr(origin.path) for origin in origins))}."
            error.args = (f"{text} {where}",)
        raise


@dataclass(frozen=True, eq=False)
class Answers:
    """Several answers, each added to its like."""

    parts: tuple[Any, ...]

    def __add__(self, other: Answers) -> Answers:
        """Of both sets of rows."""
        return Answers(tuple(mine + theirs for mine, theirs in zip(self.parts, other.parts, strict=True)))


def add_answers(answers: Iterable[Any]) -> Any:
    """The sum of answers, at least one, by a tree that depends on their order alone."""
    tree: list[tuple[int, Any]] = []
    for answer in answers:
        level = 0
        while tree and tree[-1][0] == level:
            answer = tree.pop()[1] + answer
            level += 1
        tree.append((level, answer))
    answer = tree.pop()[1]
    while tree:
        answer = tree.pop()[1] + answer
    return answer


def map_in_order(work: Callable[[Item], Result], items: Iterable[Item], threads: int | None = None) -> Iterator[Result]:
    """The results in the order of the items, with at most one item a thread in flight and one waiting.

    A single item is worked in the calling thread: starting others would not pay.
    """
    if threads is not None:
        whole_number(threads, "threads", otherwise=", or None for all cores")
    iterator = iter(items)
    first = list(islice(iterator, 2))
    if len(first) < 2 or _count(threads) < 2:
        yield from map(work, chain(first, iterator))
        return
    yield from _map_in_threads(work, chain(first, iterator), _count(threads))


def _count(threads: int | None) -> int:
    from suffice.kernels.threads import thread_count

    return thread_count() if threads is None else threads


def _map_in_threads(work: Callable[[Item], Result], items: Iterator[Item], threads: int) -> Iterator[Result]:
    from concurrent.futures import ThreadPoolExecutor

    executor = ThreadPoolExecutor(threads, thread_name_prefix="suffice")
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(executor.submit(work, item))
            if len(waiting) > threads:
                yield _result(waiting.popleft())
        while waiting:
            yield _result(waiting.popleft())
    finally:
        # After an error or Ctrl-C nothing waits for the work in flight; it is short and its results are dropped.
        executor.shutdown(wait=not waiting, cancel_futures=True)


def _result(future: Future[Result]) -> Result:
    """The result, once it is there; in short waits, as Ctrl-C may come just before one and is only seen after it."""
    from concurrent.futures import wait

    while not future.done():
        wait([future], timeout=0.2)
    return future.result()
