"""Tables of tokens, read where they are: settled names, held shards, and labels back in the kind of the table."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any

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
from suffice.models.conditional_field.labels import label_codes, label_key
from suffice.models.conditional_field.tables import FieldTable, ReadExamples, TableForm
from suffice.sources.base import Batch
from suffice.sources.held import Held, Settled
from suffice.sources.sequences import Sequences


@dataclass(frozen=True)
class TokenForm(TableForm):
    """How a table of tokens is laid out: what tells sequences apart, what orders steps, and what holds features."""

    order: Hashable | None = None
    features: Hashable | None = None


class TokenTable(FieldTable[TokenForm, ChainDecoder]):
    """A table of tokens that is open: its source, its form, and how it is held."""

    @property
    def beside(self) -> list[Hashable]:
        """The columns that say how the table is laid out."""
        form = self.form
        return [name for name in (form.group, form.order, form.features) if name is not None]

    @property
    def order(self) -> Hashable | None:
        """The column that orders the steps of a sequence."""
        return self.form.order

    @property
    def raw(self) -> list[Hashable]:
        """A column of lists of names is read as it is."""
        return [] if self.form.features is None else [self.form.features]

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
        return self.settle(names, label)

    def features(
        self, settled: Settled, label: Hashable | None, space: FeatureSpace | None, *, grow: bool = False
    ) -> tuple[TokenFeatures, FeatureSpace]:
        """How rows become a design; the names in a column of lists are found in one more pass.

        space: the columns of a fit, which are all there are, or with `grow` the first ones.
        """
        if space is not None and space.kind == "columns":
            raise DataError(
                "The model was fitted to arrays, whose features are numbered; a table of tokens has named ones. Give "
                "arrays, or fit a table."
            )
        domain, name = settled.domain, self.form.features
        own = Domain(variable for variable in domain.variables if variable.name != label)
        vocabulary = None
        if name is not None:
            listed = replace(settled, domain=Domain(domain.variables[-1:]))
            with self.source.hold(CountNames(name), listed, raw=[name], threads=self.options["threads"]) as held:
                names: NameSet = held.sum(None)
            vocabulary = name, names.names
        columns = FeatureColumns(space, self.options["hashing"], grow=grow)
        return TokenFeatures.of(own, vocabulary, columns, self.options["bias"])

    def held(self, labels: tuple[Any, ...] | None, space: FeatureSpace | None) -> HeldTokens:
        """The sequences of the table with their labels, where they are.

        labels: those there may be; None: those seen. space: the columns of a fit; None: all that there are.
        """
        settled = self._labelled(labels, space)
        return self._held(settled, *self.features(settled, self.label, space))

    def joined(self, labels: tuple[Any, ...] | None, known: ChainStructure) -> HeldTokens:
        """As `held`, for sequences that join a fit: features and labels that it has not seen come after its own."""
        settled = self._labelled(labels, None)
        if labels is None:
            old = label_codes(known.labels)
            seen = settled.domain[self.label].states
            new = [state for state in seen if label_key(state) not in old]
            both = Variable.discrete(self.label, (*known.labels, *new))
            domain = Domain(both if variable.name == self.label else variable for variable in settled.domain.variables)
            settled = replace(settled, domain=domain)
        return self._held(settled, *self.features(settled, self.label, known.space, grow=True))

    def _labelled(self, labels: tuple[Any, ...] | None, space: FeatureSpace | None) -> Settled:
        label = self.checked_label()
        variable = Variable(label, "discrete") if labels is None else Variable.discrete(label, labels)
        settled = self.settled(variable, space)
        if not settled.rows:
            raise DataError("The table has no rows; expected at least one sequence.")
        return settled

    def _held(self, settled: Settled, work: TokenFeatures, space: FeatureSpace) -> HeldTokens:
        held = self.hold(TokenWork(work, self.label), settled)
        return HeldTokens(held, space, settled.domain[self.label].states, self.source.passes)

    def read_by(self, decoder: ChainDecoder, label: Variable | None) -> tuple[Settled, ReadExamples[FeatureSequences]]:
        """What is settled of the columns that a fitted value has features of, and how it reads them."""
        structure = decoder.structure
        settled = self.settled(label, structure.space)
        features, _ = self.features(settled, None if label is None else label.name, structure.space)
        return settled, ReadExamples(decoder.in_one_thread(), SequencesOf(structure, features))


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
