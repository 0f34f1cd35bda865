"""Answers of a fitted chain about new sequences: best paths, marginals, samples, log-likelihoods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.engines.chain import Chains
from suffice.models.chain_crf.features import Sequences
from suffice.models.chain_crf.labels import label_codes, label_key
from suffice.models.chain_crf.objective import Block
from suffice.models.chain_crf.structure import Structure
from suffice.models.labelled import whole_number

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Marginals(np.ndarray):
    """Probabilities of labels, (steps, K) for a sequence and (K,) for a step, read by place or by label.

    ``marginals[t]["B-NP"]`` is the probability of that label at step t, ``marginals[:, 0]`` that of the first label at
    all steps, ``marginals.of(label)`` that of any label. `labels` gives the order. Brackets read whole numbers, and
    tuples of them, as places. A part has labels as long as its last axis is that of all labels, and so have copies by
    the module `copy`; what is computed from marginals has none.
    """

    labels: tuple[Any, ...]

    def __new__(cls, values: Floats, labels: tuple[Any, ...]) -> Marginals:
        """Values (..., K) with the labels of the last axis."""
        found = np.asarray(values).view(cls)
        found.labels = labels
        return found

    def __array_finalize__(self, source: Any) -> None:
        """Nobody knows what a view or a result has along its last axis; only brackets do."""
        self.labels = ()

    def __getitem__(self, key: Any) -> Any:
        """By place as in any array, or by label along the last axis."""
        if isinstance(key, str) or (isinstance(key, tuple) and not all(map(_is_place, key))):
            return self.of(key)
        found = super().__getitem__(key)
        if isinstance(found, Marginals) and found.ndim and self.labels:
            rows = isinstance(key, int | np.integer | slice) and self.ndim > 1
            found.labels = self.labels if rows or _same_columns(self, key) else ()
        return found

    def of(self, label: Any) -> Any:
        """The probability of a label, along the last axis."""
        if not self.labels:
            raise KeyError(f"{label!r}: this array has no labels; it was computed, or holds a part of the columns.")
        place = label_codes(self.labels).get(label_key(label))
        if place is None:
            raise KeyError(f"{label!r} is no label; the labels are {self.labels}.")
        return np.asarray(self)[..., place][()]

    def __reduce__(self) -> Any:
        """Pickles keep the labels."""
        found: Any = super().__reduce__()
        make, arguments, state = found
        return make, arguments, (self.labels, state)

    def __setstate__(self, state: Any) -> None:
        """See `__reduce__`."""
        self.labels, inner = state
        super().__setstate__(inner)

    def __copy__(self) -> Marginals:
        """The same numbers with the same labels; NumPy's own `copy` has none, since it also serves to sort."""
        return Marginals(np.array(self), self.labels)

    def __deepcopy__(self, memo: Any) -> Marginals:
        """See `__copy__`."""
        return self.__copy__()

    def keys(self) -> tuple[Any, ...]:
        """The labels."""
        return self.labels

    def items(self) -> list[tuple[Any, Any]]:
        """Labels with their probabilities."""
        return [(label, np.asarray(self)[..., place][()]) for place, label in enumerate(self.labels)]


def _is_place(key: Any) -> bool:
    """Whether arrays take this as (a part of) an index."""
    return key is None or key is Ellipsis or isinstance(key, int | np.integer | slice | np.ndarray | list)


def _same_columns(marginals: Marginals, key: Any) -> bool:
    """Whether what an index takes out of an array still has all columns along its last axis, in their order."""
    columns = np.broadcast_to(np.arange(marginals.shape[-1]), marginals.shape)[key]
    return columns.shape[-1] == marginals.shape[-1] and bool((columns == np.arange(marginals.shape[-1])).all())


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
        block = Block(self.structure, sequences, np.ones(len(sequences)), threads=self.threads, calls=None, once=True)
        yield from block.steps.chains(block.parts(self.weights))

    def _named(self, codes: Ints) -> list[Any]:
        labels = self.structure.labels
        return [labels[code] for code in codes.tolist()]


def _spans(offsets: Ints) -> Iterator[tuple[int, int]]:
    return zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
