"""Sites that share no rows: questions of the package go out, sums come back, and a fit sees one more source.

A question holds everything that a site needs to answer it, so that sites keep nothing that they cannot make again.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from suffice.domain import Domain, Variable
from suffice.errors import DataError, OptionError, SufficeError, listing
from suffice.sources.base import Answer, Batch, Layout, Pace, Piece, Source
from suffice.sources.columns import Column
from suffice.sources.held import Held, Prepared, Settled, Work
from suffice.sources.kinds import WholeFloats
from suffice.sources.minimum import MinimumCount
from suffice.sources.opening import open_source
from suffice.sources.partitioned import whole_floats_of
from suffice.sources.partitions import Reading, add_those_with_rows
from suffice.sources.questions import check_named
from suffice.sources.reduction import map_in_order
from suffice.sources.releasing import check_no_rows, checked_minimum
from suffice.sources.site_columns import MergedColumns, SiteColumns, check_alike

#: Holds that a site keeps prepared: the one of a fit, and one that finds out what that one has to know.
_KEPT = 2


@dataclass(frozen=True)
class Question:
    """What a site is asked: sums over its rows, or, without a `reading`, what its columns are.

    `task` is asked of coded batches; with a `work`, of what that has prepared, with `parameters`, and the work itself
    answers where there is no task.
    """

    reading: Reading | None = None
    work: Work[Any] | None = None
    task: Callable[..., Any] | None = None
    parameters: Any = None


#: A site, or whatever brings a question to one and the answer back.
Asked = Callable[[Question], Any]


class Site:
    """The rows of one site, which answer questions by counts and sums.

    Args:
        data: Any table, file or array that the library reads.
        name: What errors call the site.
        columns: Names for the columns of arrays and lists; of anything that has names, the columns to use.
        minimum_count: Fewest rows behind anything that is released: a table of counts, a state of a column, a sum. An
            answer with rarer cells is an error at the site, which tells how many there are and not which.
        allow_rows: Let answers hold rows, or sums of few steps, from which a hidden Markov model takes a start.

    >>> site = Site({"x": ["a", "b", "a"]}, name="north")
    >>> site.answer(Question()).variables["x"].kind
    'discrete'
    """

    def __init__(
        self,
        data: object,
        *,
        name: str | None = None,
        columns: object = None,
        minimum_count: int | None = None,
        allow_rows: bool = False,
    ) -> None:
        """Keep the data; nothing is read yet."""
        if minimum_count is not None and allow_rows:
            raise OptionError("Rows have no minimum_count: give minimum_count= or allow_rows=True, not both.")
        self.name = name
        self._data, self._columns = data, columns
        self._allow_rows = allow_rows
        minimum = checked_minimum(minimum_count)
        self._minimum = None if minimum is None else MinimumCount(minimum, self._open)
        self._kept: list[tuple[bytes, Held[Any]]] = []
        if self._open().one_pass:
            raise DataError("The data of a site are read again and again; this source can be read only once.")

    def __repr__(self) -> str:
        """Name and columns."""
        return f"Site({self.name!r}, columns={list(self._open().columns)!r})"

    def answer(self, question: Question) -> Any:
        """What the rows answer; None of no rows. Questions that are not the library's own are refused."""
        if not isinstance(question, Question):
            raise OptionError(f"A site answers a suffice Question; it was asked {type(question).__name__}.")
        check_named(question)
        if question.reading is None:
            return self._described()
        answer = self._asked(question, question.reading)
        if not self._allow_rows:
            check_no_rows(answer)
        return answer

    __call__ = answer

    # -- answering ---------------------------------------------------------------------------------------------------

    def _open(self, reading: Reading | None = None) -> Source:
        source = open_source(self._data, columns=self._columns)
        return source if reading is None else reading.apply(source)

    def _described(self) -> SiteColumns:
        source = self._open()
        variables = {name: self._told(source._infer(name)) for name in source.columns}
        numbers = frozenset(name for name in source.columns if source.holds_numbers(name))
        return SiteColumns(variables, numbers, source.unordered)

    def _told(self, variable: Variable) -> Variable:
        """A column of categories, without its states where some are those of too few rows."""
        if self._minimum is None or not variable.states or self._minimum.tells(variable):
            return variable
        return Variable(variable.name, variable.kind)

    def _asked(self, question: Question, reading: Reading) -> Any:
        if self._minimum is not None:
            self._minimum.check_columns(reading)
        if question.work is None:
            assert question.task is not None
            if self._minimum is not None:
                self._minimum.check_task(question.task, reading)
            return self._open(reading).reduce(question.task, reading.domain)
        if self._minimum is not None:
            counted = self._minimum.checked_work(question.work, reading)
        held = self._held(question.work, reading)
        answer = None if held is None else held.sum(question.parameters, by=question.task)
        if self._minimum is not None and held is not None:
            self._minimum.check_answer(answer, (question.work, question.task, question.parameters), held, counted)
        return answer

    def _held(self, work: Work[Any], reading: Reading) -> Held[Any] | None:
        """The prepared rows, kept from an earlier question of the same kind; None of no rows."""
        mark = pickle.dumps((work, reading))
        for known, kept in self._kept:
            if known == mark:
                return kept
        source, layout = self._open(reading), reading.layout
        if source.rows == 0:
            return None
        settled = Settled(reading.domain, source.rows or 0, 0.0)
        held: Held[Any] = source.hold(work, settled, group=layout.group, order=layout.order, raw=layout.raw)
        self._kept.append((mark, held))
        if len(self._kept) > _KEPT:
            self._kept.pop(0)[1].close()
        return held


class Rounds:
    """Sites that fit a model together: parameters go out, sums come back, rows stay where they are.

    It is data for `fit`, `score` and `sf.summarize`, like a table of all rows.

    Args:
        sites: Sites, or functions from a `Question` to the answer of a site elsewhere, over whatever brings both there
            and back; a dict names them.

    >>> import suffice as sf
    >>> north, south = sf.Site({"x": ["a", "b"]}, name="north"), sf.Site({"x": ["a", "a"]}, name="south")
    >>> sf.BayesianNetwork({"x": []}).fit(sf.Rounds([north, south])).query(["x"]).values.tolist()
    [0.75, 0.25]
    """

    def __init__(self, sites: Iterable[Asked] | Mapping[str, Asked]) -> None:
        """Keep them; nothing is asked yet."""
        if isinstance(sites, Mapping):
            self.sites: dict[str, Asked] = dict(sites)
        else:
            listed = list(sites)
            names = [getattr(site, "name", None) or str(number) for number, site in enumerate(listed)]
            if len(set(names)) < len(names):
                raise OptionError(f"Sites need names of their own; these are {listing(names)}.")
            self.sites = dict(zip(names, listed, strict=True))
        if not self.sites:
            raise OptionError("There are no sites; give at least one.")
        wrong = [name for name, site in self.sites.items() if not callable(site)]
        if wrong:
            raise OptionError(
                f"Site {wrong[0]!r} is of type {type(self.sites[wrong[0]]).__name__}; expected sf.Site(data), or a "
                "function that brings a question to one."
            )

    def __repr__(self) -> str:
        """The names of the sites."""
        return f"Rounds({list(self.sites)!r})"

    @cached_property
    def described(self) -> MergedColumns:
        """The columns that all sites have, asked once."""
        return MergedColumns.of(dict(zip(self.sites, self.ask(Question()), strict=True)))

    @property
    def columns(self) -> list[Hashable]:
        """Their names."""
        return list(self.described.variables)

    def ask(self, question: Question, names: Sequence[str] | None = None) -> list[Any]:
        """The answers of all sites, or of those named, in their order; they are asked at the same time."""
        check_named(question)
        asked = list(self.sites) if names is None else list(names)
        return list(map_in_order(partial(self._answer, question), asked, len(asked)))

    def sum(self, question: Question, names: Sequence[str] | None = None) -> Any:
        """What the answers of the sites add up to, in their order; None where no site has rows."""
        asked = list(self.sites) if names is None else list(names)
        answers = self.ask(question, asked)
        try:
            check_alike({name: answer for name, answer in zip(asked, answers, strict=True) if answer is not None})
            if any(isinstance(answer, str | bytes | Mapping) for answer in answers):
                raise TypeError("no sums")
            return add_those_with_rows(answers)
        except TypeError:
            kinds = [f"{name!r}: {type(answer).__name__}" for name, answer in zip(asked, answers, strict=True)]
            raise DataError(
                f"The answers of the sites do not add up ({', '.join(kinds)}). A function in the place of a site "
                "returns what Site.answer returned there, and nothing else."
            ) from None

    def _answer(self, question: Question, name: str) -> Any:
        try:
            return self.sites[name](question)
        except SufficeError as error:
            error.args = (f"{error} This is site {name!r}, whose rows are counted from 0.",)
            raise
        except Exception as error:
            error.add_note(f"This is site {name!r}.")
            raise


class SitesSource(Source):
    """The rows of all sites, of which none is ever seen here."""

    residence = "sites"

    def __init__(self, rounds: Rounds) -> None:
        """Ask all sites for their columns."""
        self._rounds, self._known = rounds, rounds.described
        self.unordered = self._known.unordered
        super().__init__(self._known.variables)

    @property
    def rows(self) -> int | None:
        """Not known before the sites are asked."""
        return None

    def weigh(self, weights: Column) -> None:
        """An array cannot be matched with sites."""
        raise OptionError("The rows of several sites cannot be matched with an array of weights; name a column.")

    def holds_numbers(self, name: Hashable) -> bool:
        """By the types at all sites."""
        return name in self._known.numbers

    def promoted(self, name: Hashable) -> str:
        """Integers at some sites, and floats at others."""
        return self._known.promoted.get(name, "")

    def _infer(self, name: Hashable) -> Variable:
        return self._known.variables[name]

    def _whole_floats(self, names: Sequence[Hashable]) -> Mapping[Hashable, WholeFloats]:
        """By one question to all sites."""
        return whole_floats_of(self, names)

    def columns_in_parts(self, domain: Domain) -> Iterator[Mapping[Hashable, Column]]:
        """Sequences are not brought together."""
        raise OptionError(
            "Sequences stay at the sites of sf.Rounds, whole ones at each: name the column that tells them apart by "
            "group=, and known states, labels and weights by their columns, in place of lengths= and of arrays."
        )

    def _pieces(self, domain: Domain, threads: int | None) -> Generator[Piece]:
        raise OptionError(
            "This looks at single rows, and those of sf.Rounds stay at their sites. Predict and impute at each site, "
            "with the fitted model; use a solver that asks for sums."
        )

    def _reading(self, domain: Domain, layout: Layout | None = None) -> Reading:
        return Reading(domain, self._weight_name, self.undeclared, layout or Layout(), layout is not None)

    def _reduced(self, task: Callable[[Batch], Answer], domain: Domain, pace: Pace) -> Answer:
        """Over the rows of all sites; threads are their own affair."""
        answer: Answer = self._rounds.sum(Question(self._reading(domain), None, task))
        if pace.progress is not None:
            pace.progress(int(getattr(answer, "rows", 0)), None)
        return answer

    def _prepared(
        self, work: Work[Prepared], settled: Settled, layout: Layout, limit: int | None, pace: Pace
    ) -> Held[Prepared]:
        """Each site prepares its rows when it is first asked; a sequence is whole at one site."""
        self.passes += 1
        return HeldAtSites(work, self._rounds, self._reading(settled.domain, layout))


class HeldAtSites(Held[Prepared]):
    """The rows of sites: each of them is a shard."""

    tells_of_few = False

    def __init__(self, work: Work[Prepared], rounds: Rounds, reading: Reading) -> None:
        """Nothing was asked yet."""
        super().__init__(work)
        self._rounds, self._reading = rounds, reading
        self.location = f"at {len(rounds.sites)} sites"

    @property
    def shards(self) -> int:
        """How many sites there are."""
        return len(self._rounds.sites)

    def _total(self, task: Callable[[Prepared, Any], Any], parameters: Any, chosen: Sequence[int] | None) -> Any:
        names = list(self._rounds.sites)
        by = None if task == self.work.evaluate else task
        question = Question(self._reading, self.work, by, parameters)
        total = self._rounds.sum(question, names if chosen is None else [names[number] for number in chosen])
        return task(self.work.prepare(Batch.empty(self._reading.domain)), parameters) if total is None else total
