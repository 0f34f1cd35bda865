"""The fit of a chain: sequences become one sparse design, and their labels codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, Ints
from suffice.checks import number, truth, whole_number
from suffice.engines.workers import worker_count
from suffice.errors import DataError, OptionError
from suffice.families.base import generator
from suffice.fitting.contract import Inputs, Purpose
from suffice.models.chain_crf.existence import SeparablePaths
from suffice.models.chain_crf.features import DesignedSequences, listed_sequences, read_sequences
from suffice.models.chain_crf.fitted import ChainCRFFitted
from suffice.models.chain_crf.layout import ChainLayout
from suffice.models.chain_crf.objective import ChainObjective
from suffice.models.chain_crf.rank import bounded_rank, chain_rank
from suffice.models.chain_crf.rounds import ChainRounds, ChainShard, FeatureSequences, ReadSequences, digest
from suffice.models.chain_crf.stochastic import ChainStochastic, ShardEpoch
from suffice.models.chain_crf.structure import (
    ChainStructure,
    ChainWeightOptions,
    SeenLabels,
    check_paths,
    constraints_of,
    structure_of,
    transfer,
)
from suffice.models.chain_crf.tables import HeldTokens, TokenForm, TokenTable
from suffice.models.chain_crf.tokens import seen_labels
from suffice.models.conditional_field.fitted import FieldFitted
from suffice.models.conditional_field.labels import counted, label_codes, label_key, read_labels
from suffice.models.conditional_field.learning import STOCHASTIC, check_solver
from suffice.models.conditional_field.rank import FeatureRank
from suffice.models.conditional_field.stochastic import Epochs, ShardedStochastic
from suffice.models.conditional_field.tables import TableForm
from suffice.models.conditional_field.task import FieldData, FieldTask, Watch
from suffice.sources.held import HeldHere

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ChainData(FieldData[FeatureSequences]):
    """Labelled sequences, and how the weights lie for the columns that they are held with."""

    layout: ChainLayout = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class ChainCRFTask(FieldTask[ChainObjective, DesignedSequences, ChainData, ChainStructure]):
    """What a `ChainCRF` declares."""

    without_checkpoint = STOCHASTIC
    form = TokenForm

    # -- reading -----------------------------------------------------------------------------------------------------

    def read(self, given: Inputs, known: FieldFitted[ChainStructure] | None, purpose: Purpose) -> ChainData:
        """Sequences in lists, or those of a table of tokens."""
        form = given["form"]
        if form is None:
            return super().read(given, known, purpose)
        tokens, before = self.table(given.data, form, given["y"], given["sample_weight"]), None
        if known is None or purpose != "join":
            held = tokens.held(self.declared(known), None)
        else:
            before = known.structure
            held = tokens.joined(self.declared(known), before)
        data = self.structured_tokens(held, before)
        if given["validation"] is None:
            return data
        return replace(data, watch=self.watch_tokens(given["validation"], form, data.structure))

    def table(self, X: object, form: TableForm, y: object = None, sample_weight: object = None) -> TokenTable:
        """A table of tokens that is open."""
        assert isinstance(form, TokenForm)
        return TokenTable(X, form, self.options, y, sample_weight)

    def structured_tokens(self, tokens: HeldTokens, before: ChainStructure | None = None) -> ChainData:
        """The data of held sequences: one round tells which weights there are, beside those there were `before`."""
        space, size, least = tokens.space, len(tokens.labels), self.options["min_frequency"]
        seen, counts = tokens.held.sum((space.width, size), seen_labels).parts
        least = 0 if before is not None else least
        kept = counts.whole() >= least if least > 0 else np.ones(space.width, np.bool_)
        if space.bias:
            kept[-1] = True
        named = space.kind == "named"
        narrow = space.of_columns(kept) if named else space
        seen = seen.of_columns(kept, renumber=named)
        columns = None if named or not least > 0 else kept
        structure = structure_of(narrow, seen, tokens.labels, self.weight_options, before, columns=columns)
        layout = structure.layout.spread_over(np.flatnonzero(kept), space.width) if named else structure.layout
        return ChainData.of(tokens.held, structure, layout=layout, passes=tokens.passes)

    def compared_tokens(self, X: object, y: object, form: TokenForm, structure: ChainStructure) -> ChainData:
        """Held sequences of a table with the features and labels of a structure."""
        tokens = self.table(X, form, y).held(structure.labels, structure.space)
        return ChainData.of(tokens.held, structure, layout=structure.layout, passes=tokens.passes)

    def watch_tokens(self, validation: Any, form: TokenForm, structure: ChainStructure) -> Watch:
        """The mean log-likelihood of a validation table, as a function of the weights."""
        if not isinstance(validation, tuple | list) or len(validation) != 2:
            raise OptionError("validation is a pair (table, y): a table of the same form, and its column of labels.")
        try:
            data = self.compared_tokens(validation[0], validation[1], form, structure)
        except DataError as error:
            raise type(error)(f"In the validation set: {error}") from None
        objective = type(self)({**self.options, "prior": None}).objective(data)
        return lambda weights: objective.log_likelihood(weights) / data.rows

    def listed(self, X: Iterable[Any]) -> list[Any]:
        """The sequences in a list, none of them empty."""
        return listed_sequences(X)

    def coded(self, listed: list[Any], known: FieldFitted[ChainStructure] | None) -> DesignedSequences:
        """Sequences; features that a fitted value has not seen enter it."""
        space = None if known is None else known.structure.space
        hashing, bias = self.options["hashing"], self.options["bias"]
        return read_sequences(listed, space=space, hashing=hashing, bias=bias, grow=True)

    def compared(self, X: Iterable[Any], y: Iterable[Any], structure: ChainStructure) -> tuple[FeatureSequences, Ints]:
        """Sequences and the codes of their labels, which a structure must know."""
        sequences = read_sequences(X, space=structure.space)
        codes, _ = read_labels(y, sequences.offsets, structure.labels)
        check_paths(codes, sequences.offsets, structure.allowed, structure.ends, structure.labels)
        return sequences.reading(sequences.values.without_zeros().matrix), codes

    def structured(
        self,
        examples: DesignedSequences,
        named: Any,
        codes: Ints,
        labels: tuple[Any, ...],
        weights: Floats,
        known: FieldFitted[ChainStructure] | None,
    ) -> ChainData:
        """The data; labels that a fitted value has not seen enter it after its own."""
        before = None if known is None else known.structure
        if self.options["labels"] is None and before is not None:
            old = label_codes(before.labels)
            labels = (*before.labels, *(label for label in labels if label_key(label) not in old))
            codes, _ = read_labels(named, examples.offsets, labels)
        examples, columns = self._frequent(examples, weights) if before is None else (examples, None)
        options = self.weight_options
        design, offsets = examples.values, examples.offsets
        check_paths(codes, offsets, *constraints_of(options.constraints, labels), labels)
        seen = SeenLabels.of(design.matrix, codes, offsets, len(labels))
        structure = structure_of(design.space, seen, labels, options, before, columns=columns)
        return self.together(examples.reading(design.without_zeros().matrix), codes, weights, structure)

    def together(
        self, examples: FeatureSequences, codes: Ints, weights: Floats, structure: ChainStructure
    ) -> ChainData:
        """Labelled sequences in this process, as one shard."""
        held = HeldHere(ReadSequences(), [ChainShard(examples, codes, weights)])
        return ChainData.of(held, structure, layout=structure.layout)

    @property
    def weight_options(self) -> ChainWeightOptions:
        """What the options say about the weights."""
        return ChainWeightOptions(
            self.options["all_possible_states"],
            self.options["all_possible_transitions"],
            self.options["boundaries"],
            self.options["conditioned_transitions"],
            self.options["constraints"],
        )

    def _frequent(self, sequences: DesignedSequences, weights: Floats) -> tuple[DesignedSequences, Mask | None]:
        """Without features that are at too few steps, and which columns have weights, where the columns stay."""
        least, design = self.options["min_frequency"], sequences.values
        space, matrix = design.space, design.matrix
        if not least > 0:
            return sequences, None
        steps = np.repeat(weights, sequences.lengths)[matrix.row_of_entry]
        if space.kind == "columns" and len(matrix.values):
            steps = steps * (matrix.values != 0.0)
        kept = np.bincount(matrix.indices, steps, minlength=space.width) >= least
        if space.bias:
            kept[-1] = True
        if space.kind == "named":
            return sequences.reading(design.narrowed(kept)), None
        return sequences.reading(design.entries_of(kept)), kept

    def marks(self, data: ChainData) -> Iterable[Any]:
        """What tells labelled sequences from others."""
        return list(data.held.sum(None, digest))

    # -- the problem -------------------------------------------------------------------------------------------------

    def objective(self, data: ChainData) -> ChainObjective:
        """The penalised log-likelihood."""
        rounds = ChainRounds(data.held, data.layout, self.options["threads"])
        penalties = self.penalties(data.structure)
        return ChainObjective(data.structure, rounds, rounds.features(), penalties, data.weight)

    def stochastic(self, data: ChainData, objective: ChainObjective, solver: str, *, online: bool = False) -> Epochs:
        """The gradient from a few sequences; online: in their order, each call for itself."""
        plan = self.plan(solver, expectations=self.options["expectations"], online=online)
        if not data.together:
            unit = 1.0 if online else data.weight / data.rows
            epoch = ShardEpoch(data.layout, objective.penalties, plan, unit, data.rows)
            return ShardedStochastic(data.held, epoch)
        examples = (data.layout, data.examples, data.codes, data.weights)
        return ChainStochastic(*examples, objective.penalties, plan, unit=1.0 if online else None)

    def moved(self, vector: Floats, before: ChainStructure, structure: ChainStructure) -> Floats:
        """What was not seen before enters with a weight of 0."""
        return transfer(vector, before, structure)

    def rank(self, data: ChainData, objective: ChainObjective, *, bounded: bool) -> FeatureRank:
        """The rank of the features, or a bound of it."""
        return bounded_rank(data.layout) if bounded else chain_rank(objective.rounds)

    def separable(self, data: ChainData, objective: ChainObjective) -> SeparablePaths:
        """The paths given, to be told from all others."""
        return SeparablePaths(objective.rounds, data.rows, data.steps)

    def fitted(
        self, data: ChainData, weights: Floats, rank: FeatureRank, updates: int, walk: Mapping[str, Floats]
    ) -> ChainCRFFitted:
        """The fitted value."""
        return ChainCRFFitted(data.structure, weights, rank, updates, walk)

    def plan_in_words(self, data: ChainData, objective: ChainObjective) -> str:
        """One forward and one backward pass."""
        steps = f"forward-backward over {data.steps:,} steps"
        held = data.held
        if data.together:
            return steps
        return f"{steps} in {counted(held.shards, 'shard')} {held.location}, {counted(held.rounds, 'round')}"


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse options that make no sense."""
    check_solver(options)
    number(options["min_frequency"], "min_frequency", 0)
    for name in ("all_possible_states", "all_possible_transitions"):
        if options[name] is not None:
            truth(options[name], name)
    if options["hashing"] is not None:
        whole_number(options["hashing"], "hashing, the number of columns,")
    whole_number(options["patience"], "patience")
    worker_count(options["threads"])
    generator(options["random_state"])
    ChainCRFTask(options).plan("sgd", expectations=options["expectations"])
