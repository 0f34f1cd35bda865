"""Regressions of data that are not in memory: levels and labels in one pass, then rows prepared where they are."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.domain import Domain, Variable
from suffice.engines.linear_predictor import RowBlock, reduce_rows
from suffice.errors import DataError, MissingValueError, listing
from suffice.fitting.contract import Inputs
from suffice.models.glm import response as responses
from suffice.models.glm.design import Design, DesignRows, pooled_codes
from suffice.models.glm.family import Family, ResponseFamily
from suffice.models.glm.fit_options import FitOptions
from suffice.models.glm.held_rows import GATHERED, BlockWork, PreparedRows, RegressionRows, RowFigures
from suffice.models.glm.input import Coding, all_numbers, factor_of, offset_of
from suffice.models.glm.problem import sums_of_response
from suffice.models.glm.response import NO_RESPONSE, check_finite
from suffice.sources.base import Batch, Source
from suffice.sources.held import HeldHere, HeldLocal, Settled
from suffice.sources.reduction import Answers
from suffice.sources.releasing import Disclosed


@dataclass(frozen=True, eq=False)
class Roles:
    """Columns by what they are to a regression: `y` has one name, two of successes and failures, or several."""

    y: tuple[Hashable, ...]
    trials: Hashable | None = None
    offset: Hashable | None = None
    exposure: Hashable | None = None

    @classmethod
    def of(cls, source: Source, given: Inputs, made: tuple[Hashable, ...] = ()) -> Roles:
        """As given; all must be columns of the table, but for a response that is made."""
        if made:
            return replace(cls.of(source, Inputs(given.data, {**given.more, "y": source.columns[0]})), y=made)
        y = given["y"]
        if y is None:
            raise DataError(NO_RESPONSE)
        several = isinstance(y, tuple | list) and not _is_column(y, source)
        sides = {what: given[what] for what in ("trials", "offset", "exposure")}
        for what, names in {
            "y": tuple(y) if several else (y,),
            **{name: (one,) for name, one in sides.items()},
        }.items():
            for one in names:
                if one is not None and not _is_column(one, source):
                    raise DataError(
                        f"{what} is {type(one).__name__ if not isinstance(one, str) else repr(one)}; of data that is "
                        f"read in batches it must be the name of a column: {listing(source.columns)}."
                    )
        return cls(tuple(y) if several else (y,), **sides)

    @property
    def sides(self) -> tuple[Hashable, ...]:
        """The columns of numbers beside the response."""
        return tuple(name for name in (self.trials, self.offset, self.exposure) if name is not None)


def _is_column(name: object, source: Source) -> bool:
    try:
        return name in source.columns
    except (TypeError, ValueError):
        return False


# -- levels ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LevelCounts:
    """How many rows hold each state of the variables of a domain, whatever their weight."""

    domain: Domain
    counts: tuple[Ints, ...]

    def __add__(self, other: LevelCounts) -> LevelCounts:
        """Both sets of rows; states are merged by label."""
        merged = self.domain.merge(other.domain)
        counts = []
        for number, variable in enumerate(merged.variables):
            total = np.zeros(variable.card, dtype=np.int64)
            for one in (self, other):
                places = [variable.index(state) for state in one.domain.variables[number].states]
                total[places] += one.counts[number]
            counts.append(total)
        return LevelCounts(merged, tuple(counts))


def count_levels(batch: Batch) -> LevelCounts:
    """Those of one batch, all of whose variables are discrete."""
    variables = [batch.domain[name] for name in batch.discrete]
    counts = [
        np.bincount(codes, minlength=variable.card)[: variable.card].astype(np.int64)
        for variable, codes in zip(variables, batch.codes, strict=True)
    ]
    return LevelCounts(batch.domain, tuple(counts))


# -- the work ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RegressionWork(BlockWork):
    """What makes a design and a response of the rows of a shard.

    `label` is the response with its labels, where it has any; `order` (K,) gives the code that each label gets.
    """

    design: Design
    family: ResponseFamily
    link: str
    roles: Roles
    label: Variable | None = None
    order: Floats | None = None

    @property
    def made(self) -> tuple[Hashable, ...]:
        """The columns of the design and of the response that are not in the table."""
        return ()

    @property
    def raw(self) -> tuple[Hashable, ...]:
        """The columns that they are made of."""
        return ()

    def disclosed(self) -> Disclosed:
        """Products of two columns, and of each with the response, are counts where they are indicators."""
        factors = (factor.variable.name for factor in self.design.factors)
        return Disclosed.by_pairs((name,) for name in (*self.design.reals, *factors, *self.roles.y))

    def prepare(self, batch: Batch) -> PreparedRows:
        """The block of a shard."""
        table, weights = batch_table(batch, self.design), batch.weights
        y, base, trials = self._shares(batch) if self._has_trials else (*self._response(batch), None)
        offset, exposure = (
            None if name is None else _numbers(batch, name) for name in (self.roles.offset, self.roles.exposure)
        )
        counted = weights if trials is None else trials if weights is None else weights * trials
        block = self.design.block(table, y, counted, offset_of(offset, exposure, self.link), batch.start)
        return PreparedRows.of(replace(block, trials=trials), weights, base)

    @property
    def _has_trials(self) -> bool:
        """Whether the response is successes and failures, or successes out of trials."""
        return self.family.response == "shares" and (len(self.roles.y) == 2 or self.roles.trials is not None)

    def _response(self, batch: Batch) -> tuple[Floats, Floats | None]:
        """The response (n,) or (n, m), and a part of the log density of each row that it leaves out."""
        if self.label is not None:
            codes = batch.codes[batch.discrete.index(self.label.name)]
            _refuse_missing(batch, self.label.name, codes, self.label.card)
            return codes.astype(np.float64) if self.order is None else self.order[codes], None
        columns = [_numbers(batch, name) for name in self.roles.y]
        if self.family.response == "vectors":
            return np.column_stack(columns), None
        if self.family.response == "shares":
            responses.check_truth(columns[0], f"Column {self.roles.y[0]!r}", batch.start)
            return columns[0], None
        assert isinstance(self.family, Family)
        self.family.check(columns[0], batch.start, f"Column {self.roles.y[0]!r}")
        return self.family.encoded(columns[0])

    def _shares(self, batch: Batch) -> tuple[Floats, Floats, Floats]:
        """The share of successes, the log of the number of ways to choose them, and the trials."""
        successes = _numbers(batch, self.roles.y[0])
        given = self.roles.trials
        trials = successes + _numbers(batch, self.roles.y[1]) if given is None else _numbers(batch, given)
        shares = responses.shares_of_counts(successes, trials, batch.start).y
        return shares, responses.log_choices(successes, trials), trials


def _numbers(batch: Batch, name: Hashable) -> Floats:
    values: Floats = batch.reals[batch.real.index(name)]
    check_finite(values, f"Column {name!r}", batch.start)
    return values


def _refuse_missing(batch: Batch, name: Hashable, codes: Any, card: int) -> None:
    missing = codes == card
    if missing.any():
        raise MissingValueError(
            f"Column {name!r} has a missing value (row {batch.start + int(np.argmax(missing))}); a regression needs "
            "every value. Leave the row out, or fill the missing value."
        )


def batch_table(batch: Batch, design: Design) -> DesignRows:
    """The explanatory columns of a batch; a missing value is an error."""
    reals = np.empty((batch.rows, len(design.reals)))
    for number, name in enumerate(design.reals):
        reals[:, number] = _numbers(batch, name)
    codes = []
    for factor in design.factors:
        name = factor.variable.name
        column_codes = batch.codes[batch.discrete.index(name)]
        _refuse_missing(batch, name, column_codes, batch.domain[name].card)
        codes.append(pooled_codes(factor, batch.domain[name], column_codes, "raise"))
    return DesignRows(reals, tuple(codes))


# -- reading -----------------------------------------------------------------------------------------------------------


def read_levels(
    source: Source, names: Sequence[Hashable], coding: Coding, label: Variable | None
) -> tuple[Design, dict[Hashable, Variable]]:
    """The design of explanatory columns, and the variables of its factors and of the response with all states.

    One pass finds levels and labels, unless the types of all columns say that they are numbers. A column whose type
    does not say what it holds is a factor unless it holds numbers alone.
    """
    coding.check(names)
    inferred = {name: coding.declared(name) or source.infer([name])[name] for name in names}
    for name, variable in inferred.items():
        if variable.kind == "discrete" and variable.origin == "seen" and name not in coding.categorical:
            inferred[name] = Variable(name, "real") if source.holds_numbers(name) else variable
    asked = [v for v in (*inferred.values(), *([] if label is None else [label])) if v.kind == "discrete"]
    entries: dict[Hashable, Any] = {}
    settled: dict[Hashable, Variable] = {}
    if asked:
        levels = source.reduce(count_levels, Domain(asked))
        counted = {v.name: (v, counts) for v, counts in zip(levels.domain.variables, levels.counts, strict=True)}
        for name in (name for name in names if inferred[name].kind == "discrete"):
            variable, counts = counted[name]
            if variable.origin == "seen" and name not in coding.categorical and all_numbers(variable.states):
                continue
            coding.check_levels(variable)
            entries[name] = factor_of(variable, counts, coding, first=not entries)
            settled[name] = variable
        if label is not None:
            settled[label.name] = counted[label.name][0]
    coding.check_references(entries)
    return Design(coding.constant, tuple(entries.get(name, name) for name in names)), settled


def label_variable(source: Source, roles: Roles, options: FitOptions) -> Variable | None:
    """A response of labels is discrete; 0 and 1 as floats are numbers already, and so are trials."""
    kind = options.family.response
    if kind not in ("labels", "ordered", "shares") or len(roles.y) > 1 or roles.trials is not None:
        return None
    (y,) = roles.y
    if options.states is not None:
        return Variable.discrete(y, options.states)
    variable = source.infer([y])[y]
    if variable.kind == "discrete":
        return variable
    return None if kind == "shares" else Variable(y, "discrete")


def checked_label(label: Variable, options: FitOptions) -> Variable:
    """The response with its labels, of which a binomial one has two, or an error."""
    kind = options.family.response
    if kind == "shares" and options.states is None:
        for both in ((False, True), (0, 1), (-1, 1)):
            two = Variable.discrete(label.name, both)
            if label.states and all(two.find(state) is not None for state in label.states):
                return two
    if kind == "shares" and label.card != 2:
        raise DataError(
            f"The response has {label.card} labels: {listing(label.states)}; the binomial family takes two. Declare "
            "both with family=Bernoulli(states=(failure, success)), or use family='multinomial'."
        )
    if kind == "ordered" and options.states is None:
        responses.check_ordered(label.states, known=False)
    if kind != "shares":
        responses.refuse_single(label.states)
    return label


def hold_rows(
    source: Source, work: RegressionWork, states: Mapping[Hashable, Variable], memory_limit: int | str | None
) -> tuple[RegressionRows, RowFigures]:
    """The rows prepared where they are, and what they add up to; what is small in this process becomes one block.

    states: the variables of the factors and of the labels.
    """
    design, roles = work.design, work.roles
    numbers = [*design.reals, *(() if work.label is not None else roles.y), *roles.sides]
    read = [name for name in dict.fromkeys(numbers) if name not in work.made]
    domain = Domain([*(Variable(name, "real") for name in read), *states.values()])
    held = source.hold(work, Settled(domain, source.rows or 0, 0.0), raw=work.raw, memory_limit=memory_limit)
    family = work.family if isinstance(work.family, Family) else None
    figures, sums = held.sum(None, by=partial(opening_of, family=family)).parts
    if isinstance(held, HeldLocal) and figures.live * (design.size + 1) <= GATHERED:
        gathered: RowBlocks = held.sum(None, by=blocks_of)
        held.close()
        together = PreparedRows(gathered.joined(), figures.rows, figures.weight, figures.constant)
        held = HeldHere(work, [together])
    rows = RegressionRows(held, figures.live)
    rows.learn(("response", family), sums)
    return rows, figures


def opening_of(prepared: PreparedRows, _: None, *, family: Family | None) -> Answers:
    """What a shard says of itself, and what its response says alone, whatever the coefficients."""
    figures = RowFigures(prepared.rows, prepared.block.rows, prepared.weight, prepared.constant)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return Answers((figures, reduce_rows(prepared.block, partial(sums_of_response, family=family))))


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """Blocks of rows, one after the other."""

    blocks: tuple[RowBlock, ...]

    def __add__(self, other: RowBlocks) -> RowBlocks:
        """Both sets of rows."""
        return RowBlocks(self.blocks + other.blocks)

    def joined(self) -> RowBlock:
        """All rows as one block."""
        if len(self.blocks) == 1:
            return self.blocks[0]

        def together(values: Sequence[Any]) -> Any:
            return None if values[0] is None else np.concatenate(values)

        weights: list[Floats | None] = [block.weights for block in self.blocks]
        if any(one is not None for one in weights):
            weights = [np.ones(block.rows) if block.weights is None else block.weights for block in self.blocks]
        columns = ("dense", "y", "offset", "codes", "factors", "trials")
        parts = {name: together([getattr(block, name) for block in self.blocks]) for name in columns}
        return RowBlock(weights=together(weights), **parts)


def blocks_of(prepared: PreparedRows, _: None) -> RowBlocks:
    """The rows of a shard themselves, for shards in this process."""
    return RowBlocks((prepared.block,))
