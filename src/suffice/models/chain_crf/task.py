"""The fit of a chain: sequences become one sparse design, and their labels codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, Ints
from suffice.checks import number, whole_number
from suffice.engines.workers import worker_count
from suffice.families.base import generator
from suffice.models.chain_crf.existence import SeparablePaths
from suffice.models.chain_crf.features import DesignedSequences, listed_sequences, read_sequences
from suffice.models.chain_crf.fitted import ChainCRFFitted
from suffice.models.chain_crf.objective import ChainObjective, make_objective
from suffice.models.chain_crf.rank import bounded_rank, chain_rank
from suffice.models.chain_crf.stochastic import ChainStochastic
from suffice.models.chain_crf.structure import ChainStructure, ChainWeightOptions, check_paths, structure_of, transfer
from suffice.models.conditional_field.fitted import FieldFitted
from suffice.models.conditional_field.labels import label_codes, label_key, read_labels
from suffice.models.conditional_field.learning import STOCHASTIC, check_solver
from suffice.models.conditional_field.rank import FeatureRank
from suffice.models.conditional_field.task import FieldData, FieldTask

Mask = NDArray[np.bool_]
ChainData = FieldData[DesignedSequences]


@dataclass(frozen=True, eq=False)
class ChainCRFTask(FieldTask[ChainObjective, DesignedSequences, ChainStructure]):
    """What a `ChainCRF` declares."""

    without_checkpoint = STOCHASTIC

    # -- reading -----------------------------------------------------------------------------------------------------

    def listed(self, X: Iterable[Any]) -> list[Any]:
        """The sequences in a list, none of them empty."""
        return listed_sequences(X)

    def coded(self, listed: list[Any], known: FieldFitted[ChainStructure] | None) -> DesignedSequences:
        """Sequences; features that a fitted value has not seen enter it."""
        space = None if known is None else known.structure.space
        hashing, bias = self.options["hashing"], self.options["bias"]
        return read_sequences(listed, space=space, hashing=hashing, bias=bias, grow=True)

    def compared(self, X: Iterable[Any], y: Iterable[Any], structure: ChainStructure) -> tuple[DesignedSequences, Ints]:
        """Sequences and the codes of their labels, which a structure must know."""
        sequences = read_sequences(X, space=structure.space)
        codes, _ = read_labels(y, sequences.offsets, structure.labels)
        check_paths(codes, sequences.offsets, structure.allowed, structure.ends, structure.labels)
        return sequences.reading(sequences.values.without_zeros()), codes

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
        options = ChainWeightOptions(
            self.options["all_possible_states"],
            self.options["all_possible_transitions"],
            self.options["boundaries"],
            self.options["conditioned_transitions"],
            self.options["constraints"],
        )
        structure = structure_of(examples, codes, labels, options, before, columns=columns)
        return FieldData(examples.reading(examples.values.without_zeros()), codes, weights, structure)

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

    def arrays(self, examples: DesignedSequences) -> list[NDArray[Any]]:
        """What tells sequences from others."""
        return [*examples.values.arrays(), examples.offsets]

    # -- the problem -------------------------------------------------------------------------------------------------

    def objective(self, data: ChainData) -> ChainObjective:
        """The penalised log-likelihood."""
        penalties, threads = self.penalties(data.structure), self.options["threads"]
        return make_objective(data.structure, data.examples, data.codes, data.weights, penalties, threads=threads)

    def stochastic(
        self, data: ChainData, objective: ChainObjective, solver: str, *, online: bool = False
    ) -> ChainStochastic:
        """The gradient from a few sequences; online: in their order, each call for itself."""
        plan = self.plan(solver, expectations=self.options["expectations"], online=online)
        examples = (data.structure, data.examples, data.codes, data.weights)
        return ChainStochastic(*examples, objective.penalties, plan, unit=1.0 if online else None)

    def moved(self, vector: Floats, before: ChainStructure, structure: ChainStructure) -> Floats:
        """What was not seen before enters with a weight of 0."""
        return transfer(vector, before, structure)

    def rank(self, data: ChainData, objective: ChainObjective, *, bounded: bool) -> FeatureRank:
        """The rank of the features, or a bound of it."""
        return bounded_rank(data.structure) if bounded else chain_rank(objective.block, data.examples)

    def separable(self, data: ChainData, objective: ChainObjective) -> SeparablePaths:
        """The paths given, to be told from all others."""
        return SeparablePaths(objective.block, data.examples, data.codes)

    def fitted(
        self, data: ChainData, weights: Floats, rank: FeatureRank, updates: int, walk: Mapping[str, Floats]
    ) -> ChainCRFFitted:
        """The fitted value."""
        return ChainCRFFitted(data.structure, weights, rank, updates, walk)

    def plan_in_words(self, data: ChainData, objective: ChainObjective) -> str:
        """One forward and one backward pass."""
        return f"forward-backward over {len(data.codes):,} steps"


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse options that make no sense."""
    check_solver(options)
    number(options["min_frequency"], "min_frequency", 0)
    if options["hashing"] is not None:
        whole_number(options["hashing"], "hashing, the number of columns,")
    whole_number(options["patience"], "patience")
    worker_count(options["threads"])
    generator(options["random_state"])
    ChainCRFTask(options).plan("sgd", expectations=options["expectations"])
