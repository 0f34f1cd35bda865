"""Tables of tokens: a row is a step of a sequence, a cell a feature as in a dict; shards of them become sparse designs.

A column of text or of categories gives the feature ``column:value``, a column of numbers or truth values the feature
``column`` with that value, a column of lists the names in them. A step whose text is missing lacks the feature.
"""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, Ints, Numbers
from suffice.domain import Domain, Variable
from suffice.engines.label_scores import Matrix, ranges
from suffice.errors import DataError, MissingValueError
from suffice.models.chain_crf.features import FeatureSpace
from suffice.models.chain_crf.rounds import ChainShard, FeatureSequences, LabelledChainWork
from suffice.models.chain_crf.structure import SeenLabels
from suffice.models.conditional_field.labels import LARGEST, too_large
from suffice.models.conditional_field.shards import PartOfVector
from suffice.models.conditional_field.tables import codes_in_column, finite_column, weights_in_column
from suffice.sources.base import Batch
from suffice.sources.reduction import Answers
from suffice.sources.releasing import Disclosed
from suffice.sources.sequences import Sequences, label_windows

#: Columns of the design of each entry, -1 for none, and the values of the entries.
Entries = tuple[NDArray[np.int32], Floats]


def features_of_states(variable: Variable) -> list[tuple[str, float]]:
    """Name and value of the feature that each state of a column stands for."""
    name, typed = str(variable.name), variable.origin == "category"
    features = []
    for state in variable.states:
        if isinstance(state, str) or typed:
            features.append((f"{name}:{state}", 1.0))
        elif isinstance(state, bool | int | float):
            features.append((name, _finite(float(state), name)))
        else:
            raise DataError(
                f"Column {name!r} holds {state!r}, of type {type(state).__name__}; a feature is a number, truth value "
                "or text. Turn it into one of them, or leave the column out by columns=."
            )
    return features


def _finite(value: float, name: Hashable) -> float:
    if not abs(value) <= LARGEST:
        raise DataError(too_large(f"Column {name!r}", value))
    return value


@dataclass(frozen=True)
class NameSet:
    """The names in a column of lists; those of several shards are one vocabulary."""

    names: frozenset[str]

    def __add__(self, other: NameSet) -> NameSet:
        """The names of both."""
        return NameSet(self.names | other.names)


@dataclass(frozen=True)
class CountNames:
    """The work that finds the names in a column of lists."""

    name: Hashable

    def prepare(self, batch: Batch) -> NameSet:
        """Those of one shard."""
        return NameSet(frozenset(listed_names(batch.raw[self.name], self.name)[1]))

    def evaluate(self, prepared: NameSet, parameters: object) -> NameSet:
        """What was found."""
        return prepared


def listed_names(lists: Any, column: Hashable) -> tuple[Ints, list[str], Ints]:
    """Names of each row (rows,), the names that occur, and the number (entries,) of each entry among them."""
    import pyarrow as pa
    import pyarrow.compute as compute
    import pyarrow.types as types

    if types.is_null(lists.type):
        return np.zeros(len(lists), np.int64), [], np.zeros(0, np.int64)
    if not (types.is_list(lists.type) or types.is_large_list(lists.type)):
        raise DataError(
            f"Column {column!r} is of type {lists.type}; features= names a column of lists of names. A column of one "
            "value a row goes to columns=."
        )
    flat = lists.flatten()
    if flat.null_count:
        raise MissingValueError(f"A list in column {column!r} holds a missing value; expected names of features.")
    if len(flat) and not (
        types.is_string(flat.type) or types.is_large_string(flat.type) or types.is_dictionary(flat.type)
    ):
        raise DataError(f"The lists in column {column!r} are of type {flat.type}; names of features are text.")
    coded = flat if types.is_dictionary(flat.type) else flat.cast(pa.large_string()).dictionary_encode()
    counts = compute.fill_null(compute.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    return counts.astype(np.int64), coded.dictionary.to_pylist(), coded.indices.to_numpy(zero_copy_only=False)


class FeatureColumns:
    """Names of features get columns of a design: new ones, those of a space that is known, or by their digest."""

    def __init__(self, space: FeatureSpace | None, hashing: int | None, *, grow: bool = False) -> None:
        """space: the columns of an earlier fit; its names are all there are unless they `grow`. hashing: the width."""
        self._known, self._hashing = space, hashing
        self._grows = space is None or grow
        if space is not None and space.kind == "hashed":
            self._hashing = space.width - space.bias
        self._places: dict[str, int] = {} if space is None else dict(space.places)

    def of(self, names: Iterable[str]) -> NDArray[np.int32]:
        """The column of each name; -1 for one that a known space does not have."""
        if self._hashing is not None:
            columns = [zlib.crc32(name.encode()) % self._hashing for name in names]
        elif self._grows:
            columns = [self._places.setdefault(name, len(self._places)) for name in names]
        else:
            columns = [self._places.get(name, -1) for name in names]
        return np.array(columns, np.int32)

    def space(self, bias: bool) -> FeatureSpace:
        """All columns, once every name has been met."""
        if self._known is not None:
            if not self._grows or self._hashing is not None:
                return self._known
            bias = self._known.bias
        if self._hashing is not None:
            return FeatureSpace("hashed", self._hashing + bias, bias=bias)
        return FeatureSpace("named", len(self._places) + bias, tuple(self._places), bias)


@dataclass(frozen=True, eq=False)
class TokenFeatures:
    """How rows of a table become rows of a sparse design.

    `states` gives, by column, the column of the design and the value of each state, the last ones for a missing value;
    `numbers` the columns of the design of real columns; `lists` those of the names in a column of lists.
    """

    states: Mapping[Hashable, Entries]
    numbers: Mapping[Hashable, int]
    lists: tuple[Hashable, Mapping[str, int]] | None
    width: int
    bias: bool

    @classmethod
    def of(
        cls, domain: Domain, vocabulary: tuple[Hashable, Iterable[str]] | None, columns: FeatureColumns, bias: bool
    ) -> tuple[TokenFeatures, FeatureSpace]:
        """For the variables of a domain and the names in a column of lists, with the space that they make."""
        states, numbers = {}, {}
        for variable in domain.variables:
            if variable.kind == "discrete":
                features = features_of_states(variable)
                own = np.append(columns.of(name for name, _ in features), np.int32(-1))
                states[variable.name] = own, np.array([*(value for _, value in features), 0.0])
            else:
                numbers[variable.name] = int(columns.of([str(variable.name)])[0])
        lists = None
        if vocabulary is not None:
            names = sorted(vocabulary[1])
            lists = vocabulary[0], dict(zip(names, columns.of(names).tolist(), strict=True))
        space = columns.space(bias)
        return cls(states, numbers, lists, space.width, space.bias), space

    def design(self, batch: Batch) -> Matrix:
        """The features of the rows of a batch, entries of value 0 among them."""
        places, amounts = [], []
        for name, codes in zip(batch.discrete, batch.codes, strict=True):
            if name in self.states:
                own, values = self.states[name]
                places.append(own[codes])
                amounts.append(values[codes])
        for name, values in zip(batch.real, batch.reals, strict=True):
            if self.numbers[name] >= 0:
                places.append(np.full(batch.rows, self.numbers[name], np.int32))
                amounts.append(_numbers(values, name, batch))
        if self.bias:
            places.append(np.full(batch.rows, self.width - 1, np.int32))
            amounts.append(np.ones(batch.rows))
        columns = np.stack(places, axis=1) if places else np.zeros((batch.rows, 0), np.int32)
        kept = columns >= 0
        values = np.stack(amounts, axis=1)[kept] if places else np.zeros(0)
        counts = kept.sum(axis=1)
        design = Matrix(np.concatenate(([0], np.cumsum(counts))), columns[kept], values, self.width)
        return design if self.lists is None else self._with_lists(design, batch)

    def _with_lists(self, design: Matrix, batch: Batch) -> Matrix:
        """With the names in lists, after the other entries of each row."""
        assert self.lists is not None
        name, columns = self.lists
        counts, names, numbers = listed_names(batch.raw[name], name)
        own = np.array([*(columns.get(one, -1) for one in names), -1], np.int32)[numbers]
        rows = np.repeat(np.arange(batch.rows), counts)[own >= 0]
        own = own[own >= 0]
        before, further = np.diff(design.indptr), np.bincount(rows, minlength=batch.rows)
        indptr = np.concatenate(([0], np.cumsum(before + further)))
        indices, values = np.empty(indptr[-1], np.int32), np.ones(indptr[-1])
        first = ranges(indptr[:-1], before)
        indices[first], values[first] = design.indices, design.values
        indices[ranges(indptr[:-1] + before, further)] = own
        return Matrix(indptr, indices, values, self.width)


def _numbers(values: Floats, name: Hashable, batch: Batch) -> Floats:
    if len(finite_column(values, name, batch)):
        _finite(float(np.abs(values).max()), name)
    return values


def compact(design: Matrix) -> tuple[Matrix, Ints]:
    """A design with the columns that it has entries in alone, and which these are; no values where all are 1."""
    seen = np.zeros(design.columns, np.bool_)
    seen[design.indices] = True
    own = np.flatnonzero(seen)
    number = (np.cumsum(seen) - 1).astype(np.int32)
    values = np.zeros(0) if (design.values == 1.0).all() else design.values
    return Matrix(design.indptr, number[design.indices], values, len(own)), own


@dataclass(frozen=True, eq=False)
class TokenWork(LabelledChainWork):
    """Whole sequences of a table become shards of labelled sequences; those of weight 0 are left out."""

    features: TokenFeatures
    label: Hashable

    def disclosed(self) -> Disclosed:
        """The columns of features by label, and labels that follow each other."""
        tables = tuple((name, self.label) for name in (*self.features.states, *self.features.numbers))
        return Disclosed(tables, (("neighbouring labels", partial(_neighbours, label=self.label)),))

    def prepare(self, batch: Batch) -> ChainShard:
        """The design, the codes of labels and the weights of the sequences of a batch."""
        assert batch.offsets is not None
        matrix, own = compact(self.features.design(batch))
        codes: Numbers = codes_in_column(batch, self.label, "step").astype(np.int32)
        examples: FeatureSequences = Sequences(matrix, batch.offsets)
        weights = weights_in_column(batch, "step", "sequence")
        if weights.all():
            return ChainShard(examples, codes, weights, own)
        kept = np.flatnonzero(weights)
        return ChainShard(examples.chosen(kept), codes[examples.steps_of(kept)[0]], weights[kept], own)


def _neighbours(shard: ChainShard, domain: Domain, *, label: Hashable) -> Floats:
    return label_windows(shard.codes, shard.examples.offsets, domain[label].card)


def seen_labels(shard: ChainShard, shape: tuple[int, int]) -> Answers:
    """What a shard shows of the weights there may be, and the weight of the steps that have each feature (width,)."""
    width, size = shape
    examples = replace(shard.examples, values=shard.everywhere(width).values)
    seen = SeenLabels.of(examples.values, shard.codes, examples.offsets, size)
    steps = np.repeat(shard.weights, examples.lengths)[shard.examples.values.row_of_entry]
    counts = np.bincount(shard.examples.values.indices, steps, shard.examples.values.columns).astype(np.float64)
    return Answers((seen, PartOfVector(width, counts, shard.own)))
