"""The fit of a chain: sequences become one sparse design, and their labels codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.checks import number, whole_number
from suffice.engines.workers import worker_count
from suffice.errors import DataError, OptionError
from suffice.families.base import generator
from suffice.fitting.contract import Inputs, Purpose
from suffice.models.chain_crf.existence import path_standing
from suffice.models.chain_crf.features import Sequences, listed_sequences, read_sequences
from suffice.models.chain_crf.fitted import ChainFitted
from suffice.models.chain_crf.objective import ChainObjective, make_objective
from suffice.models.chain_crf.rank import bounded_rank, chain_rank
from suffice.models.chain_crf.stochastic import ChainStochastic
from suffice.models.chain_crf.structure import Structure, Wanted, check_paths, structure_of, transfer
from suffice.models.conditional_field.existence import Standing
from suffice.models.conditional_field.labels import (
    check_labels,
    label_codes,
    label_key,
    listed_labels,
    read_labels,
    sequence_weights,
)
from suffice.models.conditional_field.learning import STOCHASTIC, check_solver, chosen_solver
from suffice.models.conditional_field.priors import read_prior
from suffice.models.conditional_field.rank import FeatureRank
from suffice.models.conditional_field.task import FieldData, FieldTask, Watch

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ChainTask(FieldTask[ChainObjective]):
    """What a `ChainCRF` declares."""

    without_checkpoint = STOCHASTIC

    def read(self, given: Inputs, known: ChainFitted | None, purpose: Purpose) -> FieldData:
        """Sequences and labels; features and labels that a fitted value has not seen enter it."""
        options, before = self.options, None if known is None else known.structure

        def coded(some: Any) -> Sequences:
            space = None if before is None else before.space
            return read_sequences(some, space=space, hashing=options["hashing"], bias=options["bias"], grow=True)

        listed = listed_sequences(given.data)
        sequences = coded(listed)
        named = listed_labels(given["y"], sequences.offsets)
        weights = sequence_weights(given["sample_weight"], len(sequences))
        declared = None if options["labels"] is None else check_labels(options["labels"])
        if not weights.all():  # Read first as they stand, so that an error names the place that the user knows.
            read_labels(named, sequences.offsets, declared)
            kept = np.flatnonzero(weights).tolist()
            sequences, named, weights = coded([listed[s] for s in kept]), [named[s] for s in kept], weights[kept]
        codes, labels = read_labels(named, sequences.offsets, declared)
        if declared is None and before is not None:
            old = label_codes(before.labels)
            labels = (*before.labels, *(label for label in labels if label_key(label) not in old))
            codes, _ = read_labels(named, sequences.offsets, labels)
        sequences, columns = self._frequent(sequences, weights) if before is None else (sequences, None)
        structure = structure_of(sequences, codes, labels, self._wishes(), before, columns=columns)
        watch = None if given["validation"] is None else self._watch(given["validation"], structure)
        return FieldData(sequences.without_zeros(), codes, weights, structure, watch)

    def _frequent(self, sequences: Sequences, weights: Floats) -> tuple[Sequences, Mask | None]:
        """Without features that are at too few steps, and which columns have weights, where the columns stay."""
        least, space, design = self.options["min_frequency"], sequences.space, sequences.design
        if not least > 0:
            return sequences, None
        steps = np.repeat(weights, np.diff(sequences.offsets))[design.row_of_entry]
        if space.kind == "columns" and len(design.values):
            steps = steps * (design.values != 0.0)
        kept = np.bincount(design.indices, steps, minlength=space.width) >= least
        if space.bias:
            kept[-1] = True
        return (sequences.narrowed(kept), None) if space.kind == "named" else (sequences.entries_of(kept), kept)

    def _wishes(self) -> Wanted:
        options = self.options
        return Wanted(
            options["all_possible_states"],
            options["all_possible_transitions"],
            options["boundaries"],
            options["conditioned_transitions"],
            options["constraints"],
        )

    def solver(self, objective: ChainObjective) -> str:
        """The solver asked for, or the one that "auto" stands for."""
        return chosen_solver(self.options["solver"], objective)

    def objective(self, data: FieldData) -> ChainObjective:
        """The penalised log-likelihood."""
        penalties, threads = self.penalties(data.structure), self.options["threads"]
        return make_objective(data.structure, data.examples, data.codes, data.weights, penalties, threads=threads)

    def stochastic(
        self, data: FieldData, objective: ChainObjective, solver: str, *, online: bool = False
    ) -> ChainStochastic:
        """The gradient from a few sequences; online: in their order, each call for itself."""
        plan = self.plan(solver, expectations=self.options["expectations"], online=online)
        unit = 1.0 if online else None
        examples = (data.structure, data.examples, data.codes, data.weights)
        return ChainStochastic(*examples, objective.penalties, plan, unit=unit)

    def moved(self, vector: Floats, before: Structure, structure: Structure) -> Floats:
        """What was not seen before enters with a weight of 0."""
        return transfer(vector, before, structure)

    def rank(self, data: FieldData, objective: ChainObjective, *, bounded: bool) -> FeatureRank:
        """The rank of the features, or a bound of it."""
        return bounded_rank(data.structure) if bounded else chain_rank(objective.block, data.examples)

    def existence(self, data: FieldData, objective: ChainObjective, weights: Floats, rank: FeatureRank) -> Standing:
        """Whether some direction of the weights separates the labels given from all others."""
        return path_standing(objective, data.examples, data.codes, weights, rank)

    def fitted(self, data: FieldData, weights: Floats, rank: FeatureRank, updates: int, walk: Any) -> ChainFitted:
        """The fitted value."""
        return ChainFitted(data.structure, weights, rank, updates, walk)

    def plan_in_words(self, data: FieldData, objective: ChainObjective) -> str:
        """One forward and one backward pass."""
        return f"forward-backward over {len(data.codes):,} steps"

    def _watch(self, validation: Any, structure: Structure) -> Watch:
        """The mean log-likelihood of a validation set, as a function of the weights."""
        if not isinstance(validation, tuple | list) or len(validation) != 2:
            raise OptionError("validation is a pair (X, y) of sequences and their labels.")
        try:
            sequences = read_sequences(validation[0], space=structure.space)
            codes, _ = read_labels(validation[1], sequences.offsets, structure.labels)
            check_paths(codes, sequences.offsets, structure.allowed, structure.ends, structure.labels)
        except DataError as error:
            raise type(error)(f"In the validation set: {error}") from None
        objective = make_objective(
            structure,
            sequences.without_zeros(),
            codes,
            np.ones(len(sequences)),
            read_prior(None, structure.length),
            threads=self.options["threads"],
        )
        return lambda weights: objective.log_likelihood(weights) / len(sequences)


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse options that make no sense."""
    check_solver(options)
    number(options["min_frequency"], "min_frequency", 0)
    if options["hashing"] is not None:
        whole_number(options["hashing"], "hashing, the number of columns,")
    whole_number(options["patience"], "patience")
    worker_count(options["threads"])
    generator(options["random_state"])
    ChainTask(options).plan("sgd", expectations=options["expectations"])
