"""Tables of tokens, read where they are: settled names, held shards, and labels back in the kind of the table."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Domain, Variable
from suffice.errors import DataError, OptionError, listing
from suffice.models.chain_crf.decoding import ChainDecoder
from suffice.models.chain_crf.features import FeatureSpace
from suffice.models.chain_crf.rounds import FeatureSequences
from suffice.models.chain_crf.structure import ChainStructure, check_lengths
from suffice.models.chain_crf.tokens import (
    CountNames,
    FeatureColumns,
    NameSet,
    TokenFeatures,
    TokenWork,
)
from suffice.models.conditional_field.tables import ScoreExamples, reads_table
from suffice.models.sequence_answers import answers_of_sequences
from suffice.sources.base import Batch, Source
from suffice.sources.held import Held, Settled
from suffice.sources.mapped import RowTask, free_names
from suffice.sources.opening import open_source
from suffice.sources.sequences import Sequences


@dataclass(frozen=True)
class TokenForm:
    """How a table of tokens is laid out: what tells sequences apart, what orders steps, and what holds features."""

    group: Hashable | None = None
    order: Hashable | None = None
    columns: Any = None
    features: Hashable | None = None

    def reads(self, X: object) -> bool:
        """Whether X is a table to be read by this form; an error where it cannot be."""
        return reads_table(X, vars(self), ("group",))


class TokenTable:
    """A table of tokens that is open: its source, its form, and how it is held."""

    def __init__(self, X: object, form: TokenForm, options: Mapping[str, Any], sample_weight: object = None) -> None:
        """options: those of the model."""
        self.source: Source = open_source(X, sample_weight=sample_weight)
        self.form, self.options = form, options
        beside = [name for name in (form.group, form.order, form.features) if name is not None]
        self.source.check_columns(beside)

    def _columns(self, label: Hashable | None, space: FeatureSpace | None) -> list[Hashable]:
        """The columns that hold features: those named, or all others; of a model those that it knows features of."""
        form, known = self.form, self.source.columns
        if form.columns is not None:
            named = form.columns
            names = [named] if isinstance(named, str) or not isinstance(named, Iterable) else list(named)
            self.source.check_columns(names)
        elif form.features is not None:
            names = []
        else:
            names = [name for name in known if name not in (form.group, form.order, label)]
            if space is not None and space.kind == "named":
                heads = {part for name in space.names for part in _heads(name)}
                names = [name for name in names if str(name) in heads]
        if not names and form.features is None:
            raise DataError(f"None of the columns {listing(known)} holds features; name them by columns= or features=.")
        taken = [name for name in names if name in (form.group, form.order, form.features, label)]
        if taken:
            raise OptionError(f"columns= names {listing(taken)}, which has another part; name columns of features.")
        return names

    def settled(self, label: Variable | None, space: FeatureSpace | None = None) -> Settled:
        """States of the columns of features and of the labels, in one pass."""
        names = self._columns(None if label is None else label.name, space)
        if not names and label is None:  # Lists alone have no states to be settled.
            return Settled(Domain(), 0, 0.0)
        declared = {} if label is None else {label.name: label}
        domain = self.source.infer([*names, *declared], declared)
        return self.source.settle(domain, threads=self.options["threads"])

    def features(
        self, settled: Settled, label: Hashable | None, space: FeatureSpace | None
    ) -> tuple[TokenFeatures, FeatureSpace]:
        """How rows become a design; the names in a column of lists are found in one more pass."""
        domain, name = settled.domain, self.form.features
        own = Domain(variable for variable in domain.variables if variable.name != label)
        vocabulary = None
        if name is not None:
            listed = replace(settled, domain=Domain(domain.variables[-1:]))
            with self.source.hold(CountNames(name), listed, raw=[name], threads=self.options["threads"]) as held:
                names: NameSet = held.sum(None)
            vocabulary = name, names.names
        columns = FeatureColumns(space, self.options["hashing"])
        return TokenFeatures.of(own, vocabulary, columns, self.options["bias"])

    @property
    def _raw(self) -> list[Hashable]:
        return [] if self.form.features is None else [self.form.features]

    def held(self, label: Hashable, labels: tuple[Any, ...] | None, space: FeatureSpace | None) -> HeldTokens:
        """The sequences of the table with their labels, where they are.

        labels: those there may be; None: those seen. space: the columns of a fit; None: all that there are.
        """
        self._check_label(label)
        variable = Variable(label, "discrete") if labels is None else Variable.discrete(label, labels)
        settled = self.settled(variable, space)
        if not settled.rows:
            raise DataError("The table has no rows; expected at least one sequence.")
        work, space = self.features(settled, label, space)
        held: Held[Any] = self.source.hold(
            TokenWork(work, label),
            settled,
            raw=self._raw,
            memory_limit=self.options["memory_limit"],
            threads=self.options["threads"],
            group=self.form.group,
            order=self.form.order,
        )
        return HeldTokens(held, space, settled.domain[label].states, self.source.passes)

    def scores(self, label: Hashable, decoder: ChainDecoder) -> Floats:
        """Log p(labels | sequence) of each sequence (n,)."""
        structure = decoder.structure
        self._check_label(label)
        settled = self.settled(Variable.discrete(label, structure.labels), structure.space)
        features, _ = self.features(settled, label, structure.space)
        ask = ScoreExamples(decoder, SequencesOf(structure, features), label, "step")
        form, threads = self.form, self.options["threads"]
        logs = answers_of_sequences(ask, self.source, settled, form.group, form.order, threads, self._raw)
        return np.array(logs, dtype=np.float64)

    def _check_label(self, label: Hashable | None) -> None:
        if label is None:
            raise OptionError("y is missing: name the column of the table that holds the labels, as in y='label'.")
        self.source.check_columns([label])

    def mapped(self, task: LabelRows) -> Any:
        """What a task makes of every row, whole sequences at a time."""
        fitted_space = task.structure.space
        settled = self.settled(None, fitted_space)
        work, _ = self.features(settled, None, fitted_space)
        wanted = task.structure.labels if task.marginals else ["predicted"]
        asked = replace(task, features=work, names=free_names(wanted, self.source.columns))
        form, threads = self.form, self.options["threads"]
        return self.source.map(
            asked, settled.domain, group=form.group, order=form.order, raw=self._raw, threads=threads
        )


@dataclass(frozen=True, eq=False)
class HeldTokens:
    """Labelled sequences of a table in shards, their features and labels, and the passes that it took to hold them."""

    held: Held[Any]
    space: FeatureSpace
    labels: tuple[Any, ...]
    passes: int


def _heads(name: str) -> list[str]:
    """The columns that a feature may come from: its name, and all that stands before a colon of it."""
    return [name, *(name[:end] for end, letter in enumerate(name) if letter == ":")]


@dataclass(frozen=True, eq=False)
class SequencesOf:
    """The sequences of a batch with the features of a structure."""

    structure: ChainStructure
    features: TokenFeatures

    def __call__(self, batch: Batch) -> FeatureSequences:
        """Whole ones."""
        assert batch.offsets is not None
        check_lengths(self.structure, batch.offsets)
        return Sequences(self.features.design(batch), batch.offsets)


@dataclass(frozen=True, eq=False)
class LabelRows(RowTask):
    """Labels, or their probabilities, for the rows of whole sequences; it travels to where the rows are."""

    structure: ChainStructure
    weights: Floats
    marginals: bool
    features: TokenFeatures | None = None
    names: tuple[str, ...] = ()

    def __call__(self, batch: Batch) -> dict[Hashable, Any]:
        """Columns of one value a row."""
        assert self.features is not None
        decoder = ChainDecoder(self.structure, self.weights, 1)
        sequences = SequencesOf(self.structure, self.features)(batch)
        if self.marginals:
            rows = np.concatenate(decoder.marginals(sequences))
            return dict(zip(self.names, rows.T, strict=True))
        return {self.names[0]: [decoder.labels[code] for code in decoder.best_codes(sequences).tolist()]}

    def example(self) -> dict[Hashable, Any]:
        """A probability for each label, or the first label."""
        if self.marginals:
            return dict.fromkeys(self.names, np.zeros(1))
        return {self.names[0]: [self.structure.labels[0]]}
