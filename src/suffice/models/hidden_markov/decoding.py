"""What a fitted hidden Markov model says about sequences: states, their probabilities, what follows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.checks import choice
from suffice.choices import PathMethod, choices
from suffice.domain import is_missing, sort_states
from suffice.engines.chain import Chains
from suffice.engines.chain_blocks import blocks, map_blocks
from suffice.engines.chain_messages import filtered
from suffice.errors import DataError
from suffice.models.hidden_markov.chains import Observed, chains
from suffice.models.hidden_markov.durations.decoding import SegmentBlock
from suffice.models.hidden_markov.emissions.contract import Data
from suffice.models.hidden_markov.expectation import ChainExpectation
from suffice.models.hidden_markov.fitted import HiddenMarkovFitted
from suffice.models.hidden_markov.input import Opened, check_possible, numbered

Codes = NDArray[np.intp]
T = TypeVar("T")

#: Of one sequence an array, of several a list of them: labels of states, and shares of states at each step.
StatePaths = NDArray[Any] | list[NDArray[Any]]
StateShares = Floats | list[Floats]
#: Of a sequence its paths with their log-probabilities, best first; of several a list of such lists.
BestPaths = list[tuple[NDArray[Any], float]] | list[list[tuple[NDArray[Any], float]]]


class StateBlock(Protocol):
    """A block of sequences that answers, each time with log P of each of them (n,)."""

    def posteriors(self) -> tuple[Floats, Floats]:
        """P(state at a step | whole sequence) (steps, K)."""

    def filtered(self) -> tuple[Floats, Floats]:
        """P(state at a step | sequence up to that step) (steps, K)."""

    def pairs(self) -> tuple[Floats, Floats]:
        """P(state before a step, state at it | whole sequence) (steps, K, K)."""

    def paths(self, most: int) -> tuple[Floats, tuple[NDArray[Any], Floats]]:
        """The most probable paths (most, steps), and log P(path, sequence) (n, most)."""

    def ahead(self, steps: int) -> tuple[Floats, Floats]:
        """P(state | sequence) (n, steps, K) of the steps that follow."""

    def drawn(self, count: int, rng: np.random.Generator) -> NDArray[Any]:
        """Paths (count, steps) from P(states | sequence)."""


@dataclass(frozen=True, eq=False)
class PlainBlock:
    """A block of plain chains; `threads` serve those who draw, the others are one task of many."""

    chain: Chains
    threads: int | None

    def posteriors(self) -> tuple[Floats, Floats]:
        """By one pass forward and one backward."""
        expected = self.chain.expectations(threads=1)
        return expected.log_partition, expected.posteriors

    def filtered(self) -> tuple[Floats, Floats]:
        """By one pass forward."""
        return filtered(self.chain, threads=1)

    def pairs(self) -> tuple[Floats, Floats]:
        """As `posteriors`."""
        expected = self.chain.expectations(pairs=True, threads=1)
        assert expected.pairs is not None
        return expected.log_partition, expected.pairs

    def paths(self, most: int) -> tuple[Floats, tuple[NDArray[Any], Floats]]:
        """By Viterbi's recursion."""
        codes, values = self.chain.best_paths(most, threads=1)
        return values[:, 0], (codes, values)

    def ahead(self, steps: int) -> tuple[Floats, Floats]:
        """From the last state on."""
        log_z, rows = self.filtered()
        last, answers = rows[self.chain.offsets[1:] - 1], []
        (transitions,) = self.chain.transitions
        for _ in range(steps):
            last = last @ transitions
            answers.append(last)
        return log_z, np.stack(answers, axis=1)

    def drawn(self, count: int, rng: np.random.Generator) -> NDArray[Any]:
        """Read from the end."""
        return np.asarray(self.chain.sample(count, random_state=rng, threads=self.threads))


@dataclass(frozen=True, eq=False)
class StateDecoder:
    """A fitted value, asked about sequences; answers have the form of the sequences.

    What is impossible has no posterior, and is an error that names it; `called` are the sequences in words.
    """

    fitted: HiddenMarkovFitted
    asked: Opened[Data]
    threads: int | None
    called: Callable[[int], str] = numbered

    def states(self, method: str) -> Any:
        """The most probable path of states ("viterbi"), or the most probable state at each step ("posterior")."""
        return self.asked.give(self.fitted.named(self.codes(method)))

    def codes(self, method: str) -> Codes:
        """As `states`, the numbers (steps,) of the states."""
        choice(method, "method", choices(PathMethod))
        codes: Codes = self._paths(1)[0][0] if method == "viterbi" else self._posteriors().argmax(axis=1)
        return codes

    def decoded(self) -> tuple[float, Any]:
        """Log P(path, sequence) of the most probable paths of all sequences together, and their states."""
        codes, values = self._paths(1)
        return float(values.sum()), self.asked.give(self.fitted.named(codes[0]))

    def scores(self) -> Floats:
        """Log P(sequence) of each sequence (n,), states summed out; -inf where it is impossible."""
        expectation = ChainExpectation(self.asked.sequences, self.fitted.emission, self.threads)
        return expectation.log_likelihoods(self.fitted.parameters)

    def smoothed(self) -> Any:
        """P(state at a step | whole sequence) (steps, K)."""
        return self.asked.give(self._posteriors())

    def _posteriors(self) -> Floats:
        return np.concatenate(self._by_block(lambda block: block.posteriors()))

    def filtered(self) -> Any:
        """P(state at a step | sequence up to that step) (steps, K)."""
        return self.asked.give(self._filtered())

    def _filtered(self) -> Floats:
        return np.concatenate(self._by_block(lambda block: block.filtered()))

    def pairs(self) -> Any:
        """P(state at a step, state at the next | whole sequence) (steps - 1, K, K) of each sequence."""
        whole = np.concatenate(self._by_block(lambda block: block.pairs()))
        return self.asked.give_each([rows[1:] for rows in self.asked.sequences.split(whole)])

    def _paths(self, most: int) -> tuple[Codes, Floats]:
        """The most probable paths (most, steps) of all sequences, best first, and log P(path, sequence) (n, most)."""
        parts = self._by_block(lambda block: block.paths(most))
        return np.concatenate([part[0] for part in parts], axis=1), np.concatenate([part[1] for part in parts])

    def best(self, most: int) -> Any:
        """Of each sequence its most probable paths by name, each with its log-probability."""
        codes, values = self._paths(most)
        answers = []
        offsets = self.asked.sequences.offsets.tolist()
        for s, logs in enumerate(values.tolist()):
            span = slice(offsets[s], offsets[s + 1])
            answers.append([(self.fitted.named(codes[r, span]), log) for r, log in enumerate(logs) if log > -np.inf])
        return self.asked.give_each(answers)

    def drawn_paths(self, n: int, rng: np.random.Generator) -> list[Any]:
        """`n` answers: paths of states drawn from P(states | sequence)."""
        fitted, observed = self.fitted, self.asked.sequences
        check_possible(ChainExpectation(observed, fitted.emission, self.threads).log_likelihoods(fitted.parameters))
        codes = self._block(observed).drawn(n, rng)
        return [self.asked.give(fitted.named(row)) for row in codes]

    def ahead(self, steps: int) -> Any:
        """P(state | sequence) (steps, K) for the steps that follow each sequence."""
        rows = np.concatenate(self._by_block(lambda block: block.ahead(steps), steps))
        return self.asked.give_each(list(rows))

    def _block(self, observed: Observed, more: int = 0) -> StateBlock:
        """Some sequences, which `more` steps may follow."""
        fitted = self.fitted
        if fitted.parameters.durations:
            return SegmentBlock.of(observed, fitted.emission, fitted.parameters, more)
        return PlainBlock(chains(observed, fitted.emission, fitted.parameters), self.threads)

    def _by_block(self, task: Callable[[StateBlock], tuple[Floats, T]], more: int = 0) -> list[T]:
        """Answers for blocks of sequences; the task gives log P of each sequence of a block, then its answer."""
        fitted, observed = self.fitted, self.asked.sequences

        def work(span: tuple[int, int]) -> tuple[Floats, T]:
            return task(self._block(observed.take(*span), more))

        parts = map_blocks(work, blocks(observed.offsets, fitted.emission.size), self.threads)
        check_possible(np.concatenate([mass for mass, _ in parts]), self.called)
        return [answer for _, answer in parts]


# -- hidden states and true labels -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LabelledStates:
    """How many steps (state, label) have a state and a true label; those without a label are left out."""

    states: tuple[Hashable, ...]
    labels: Sequence[Hashable]
    counts: Floats

    def __post_init__(self) -> None:
        """Refuse nothing to compare."""
        if not self.counts.any():
            raise DataError("No step has a true label: there is nothing to compare the states with.")

    @classmethod
    def of(cls, path: Sequence[Any], truth: Sequence[Any], states: tuple[Hashable, ...]) -> LabelledStates:
        """Of predicted states and true labels, step by step."""
        pairs = [(state, label) for state, label in zip(path, truth, strict=True) if not is_missing(label)]
        labels = sort_states([label for _, label in pairs])
        rows, columns = {s: i for i, s in enumerate(states)}, {s: i for i, s in enumerate(labels)}
        counts = np.zeros((len(states), len(labels)))
        for state, label in pairs:
            counts[rows[state], columns[label]] += 1
        return cls(states, labels, counts)

    def _matched(self) -> tuple[list[int], list[int]]:
        from scipy.optimize import linear_sum_assignment

        left, right = linear_sum_assignment(-self.counts)
        return left.tolist(), right.tolist()

    def match(self) -> dict[Hashable, Hashable]:
        """The true label of each state, one to one, that makes the most steps agree; None for a state left over."""
        pairs = zip(*self._matched(), strict=True)
        return dict.fromkeys(self.states) | {self.states[i]: self.labels[j] for i, j in pairs}

    def accuracy(self) -> float:
        """The share of steps whose state, matched to the true labels, is right."""
        return float(self.counts[self._matched()].sum() / self.counts.sum())
