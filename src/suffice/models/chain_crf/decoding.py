"""Answers of a fitted chain about new sequences: best paths, marginals, samples, log-likelihoods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.checks import whole_number
from suffice.engines.chain import Chains
from suffice.models.chain_crf.blocks import SequenceBlock
from suffice.models.chain_crf.features import read_sequences
from suffice.models.chain_crf.rounds import FeatureSequences
from suffice.models.chain_crf.structure import ChainStructure, check_lengths
from suffice.models.conditional_field.decoding import FieldDecoder, spans
from suffice.models.conditional_field.marginals import Marginals


class ChainDecoder(FieldDecoder[FeatureSequences]):
    """A structure with its weights, asked about sequences."""

    def __init__(self, structure: ChainStructure, weights: Floats, threads: int | None = None) -> None:
        """See the class."""
        super().__init__(structure.labels)
        self.structure, self.weights, self.threads = structure, weights, threads

    def in_one_thread(self) -> ChainDecoder:
        """The same, for one of several shards that are worked on side by side."""
        return ChainDecoder(self.structure, self.weights, 1)

    def read(self, X: Iterable[Any]) -> FeatureSequences:
        """Sequences with the features of the fit; others are left out."""
        sequences = read_sequences(X, space=self.structure.space)
        check_lengths(self.structure, sequences.offsets)
        return sequences.reading(sequences.values.without_zeros().matrix)

    def best_codes(self, sequences: FeatureSequences) -> Ints:
        """The best path of each sequence (Viterbi)."""
        return np.concatenate([chains.best_paths(threads=self.threads)[0][0] for chains, _ in self._chains(sequences)])

    def best_lists(self, X: Iterable[Any], most: int) -> list[list[tuple[list[Any], float]]]:
        """The `most` best paths of each sequence with their log-probabilities."""
        most = whole_number(most, "k")
        lists: list[list[tuple[list[Any], float]]] = []
        for chains, _ in self._chains(self.read(X)):
            paths, values = chains.best_paths(most, threads=self.threads)
            logs = values - chains.log_partition(threads=self.threads)[:, None]
            named = [self.named(path, chains.offsets) for path in paths]
            for s in range(chains.sequences):
                ranks = np.flatnonzero(values[s] > -np.inf).tolist()
                lists.append([(named[rank][s], float(logs[s, rank])) for rank in ranks])
        return lists

    def marginals(self, sequences: FeatureSequences) -> list[Marginals]:
        """Posteriors (steps, K) of each sequence."""
        answers: list[Marginals] = []
        for chains, _ in self._chains(sequences):
            rows = chains.expectations(threads=self.threads).posteriors
            answers += [Marginals(rows[a:b], self.labels) for a, b in spans(chains.offsets)]
        return answers

    def drawn_codes(self, sequences: FeatureSequences, count: int, rng: np.random.Generator) -> Ints:
        """Paths (count, steps) drawn from their distribution."""
        drawn = [chains.sample(count, random_state=rng, threads=self.threads) for chains, _ in self._chains(sequences)]
        return np.concatenate(drawn, axis=1)

    def log_likelihoods(self, sequences: FeatureSequences, codes: Ints) -> Floats:
        """Log p(y | x) of each sequence (n,); -inf where the constraints forbid the path."""
        logs = [
            chains.log_weights(codes[slice(*steps)]) - chains.log_partition(threads=self.threads)
            for chains, steps in self._chains(sequences)
        ]
        return np.concatenate(logs)

    def _chains(self, sequences: FeatureSequences) -> Iterator[tuple[Chains, tuple[int, int]]]:
        block = SequenceBlock(self.structure, sequences, np.ones(len(sequences)), threads=self.threads, calls=None)
        yield from block.steps.chains(block.parts(self.weights))
