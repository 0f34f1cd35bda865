"""Answers of a fitted chain about new sequences: best paths, marginals, samples, log-likelihoods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.checks import whole_number
from suffice.engines.chain import Chains
from suffice.models.chain_crf.features import Sequences
from suffice.models.chain_crf.objective import Block
from suffice.models.chain_crf.structure import Structure
from suffice.models.conditional_field.marginals import Marginals

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Decoder:
    """A structure with its weights, asked about sequences."""

    def __init__(self, structure: Structure, weights: Floats, threads: int | None) -> None:
        """See the class."""
        self.structure, self.weights, self.threads = structure, weights, threads

    def best(self, sequences: Sequences, most: int = 1) -> list[list[tuple[list[Any], float]]]:
        """The `most` best paths of each sequence with their log-probabilities."""
        most = whole_number(most, "k")
        found: list[list[tuple[list[Any], float]]] = []
        for chains, _ in self._chains(sequences):
            paths, values = chains.best_paths(most, threads=self.threads)
            logs = values - chains.log_partition(threads=self.threads)[:, None]
            for s in range(chains.sequences):
                span = slice(chains.offsets[s], chains.offsets[s + 1])
                ranks = np.flatnonzero(values[s] > -np.inf).tolist()
                found.append([(self._named(paths[r, span]), float(logs[s, r])) for r in ranks])
        return found

    def paths(self, sequences: Sequences) -> list[list[Any]]:
        """The best path of each sequence."""
        found: list[list[Any]] = []
        for chains, _ in self._chains(sequences):
            paths, _ = chains.best_paths(threads=self.threads)
            found += [self._named(paths[0, a:b]) for a, b in _spans(chains.offsets)]
        return found

    def marginals(self, sequences: Sequences) -> list[Marginals]:
        """Posteriors (steps, K) of each sequence."""
        found: list[Marginals] = []
        for chains, _ in self._chains(sequences):
            rows = chains.expectations(threads=self.threads).posteriors
            found += [Marginals(rows[a:b], self.structure.labels) for a, b in _spans(chains.offsets)]
        return found

    def samples(self, sequences: Sequences, n: int, rng: np.random.Generator) -> list[list[list[Any]]]:
        """For each sequence n paths drawn from their law."""
        n = whole_number(n, "n", 0)
        found: list[list[list[Any]]] = []
        for chains, _ in self._chains(sequences):
            paths = chains.sample(n, random_state=rng, threads=self.threads)
            found += [[self._named(path) for path in paths[:, a:b]] for a, b in _spans(chains.offsets)]
        return found

    def log_likelihoods(self, sequences: Sequences, codes: Ints) -> Floats:
        """Log p(y | x) of each sequence (n,); -inf where the constraints forbid the path."""
        found = [
            chains.log_weights(codes[slice(*steps)]) - chains.log_partition(threads=self.threads)
            for chains, steps in self._chains(sequences)
        ]
        return np.concatenate(found)

    def _chains(self, sequences: Sequences) -> Iterator[tuple[Chains, tuple[int, int]]]:
        block = Block(self.structure, sequences, np.ones(len(sequences)), threads=self.threads, calls=None)
        yield from block.steps.chains(block.parts(self.weights))

    def _named(self, codes: Ints) -> list[Any]:
        labels = self.structure.labels
        return [labels[code] for code in codes.tolist()]


def _spans(offsets: Ints) -> Iterator[tuple[int, int]]:
    return zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
