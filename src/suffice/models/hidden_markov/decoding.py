"""What a fitted hidden Markov model says about sequences."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.engines.chain_blocks import blocks, map_blocks
from suffice.engines.chain_messages import filtered
from suffice.errors import OptionError
from suffice.families.base import generator, take_states
from suffice.models.hidden_markov.emissions.contract import Emission
from suffice.models.hidden_markov.emissions.law import Mixture
from suffice.models.hidden_markov.expectation import Expectation
from suffice.models.hidden_markov.matching import match
from suffice.models.hidden_markov.observed import Observed, chains
from suffice.models.hidden_markov.parameters import Parameters
from suffice.models.hidden_markov.reading import Opened, open_observations, read_labels, read_weights, split_states
from suffice.models.hidden_markov.standard_errors import standard_errors

Floats = NDArray[np.float64]

METHODS = ("viterbi", "posterior")


class Decoding:
    """Questions about sequences; every one takes `lengths`, `group` and `columns` as `fit` does.

    Answers by step come in the form of the sequences: a list of arrays for a list, one array for one sequence or for
    an array with lengths.
    """

    _emission: Emission
    _names: tuple[Hashable, ...]
    _columns: list[Hashable] | None
    _options: dict[str, Any]

    def _fitted(self) -> Parameters:
        raise NotImplementedError

    def _opened(self, sequences: Any, lengths: Any, group: Any, columns: Any) -> tuple[Opened, Observed]:
        self._fitted()
        if columns is None and getattr(self, "_columns", None) is not None and hasattr(sequences, "columns"):
            columns = self._columns
        opened = open_observations(sequences, lengths, group, columns)
        data = self._emission.read(opened.columns)
        return opened, Observed(data, opened.sequences.offsets, np.ones(opened.sequences.n_sequences))

    def _by_block(self, observed: Observed, task: Any) -> Any:
        """Answers of a task for blocks of sequences, end to end."""
        parameters = self._fitted()

        def work(span: tuple[int, int]) -> Any:
            return task(chains(observed.take(*span), self._emission, parameters))

        spans = blocks(observed.offsets, self._emission.size)
        return map_blocks(work, spans, self._options["threads"])

    # -- likelihood --------------------------------------------------------------------------------------------------

    def log_likelihood(self, sequences: Any, *, lengths: Any = None, group: Any = None, columns: Any = None) -> Floats:
        """Log P(sequence) of each sequence (n,), states summed out; -inf where it is impossible."""
        _, observed = self._opened(sequences, lengths, group, columns)
        return Expectation(observed, self._emission, self._options["threads"]).log_likelihoods(self._fitted())

    def score(
        self, sequences: Any, states: Any = None, *, lengths: Any = None, group: Any = None,
        sample_weight: Any = None, columns: Any = None,
    ) -> float:  # fmt: skip
        """Mean log-likelihood of a step (weighted), natural logarithm; `states` are not used."""
        _, observed = self._opened(sequences, lengths, group, columns)
        weights = read_weights(sample_weight, observed.n_sequences)
        total = float(weights @ np.diff(observed.offsets))
        if not total > 0:
            raise OptionError("The score of no steps is undefined: the sequences have no weight.")
        values = self.log_likelihood(sequences, lengths=lengths, group=group, columns=columns)
        return float(weights[weights > 0] @ values[weights > 0]) / total

    # -- states ------------------------------------------------------------------------------------------------------

    def predict(
        self, sequences: Any, *, method: str = "viterbi", lengths: Any = None, group: Any = None, columns: Any = None
    ) -> Any:
        """The states: of the most probable path ("viterbi"), or the most probable one at each step ("posterior")."""
        if method not in METHODS:
            raise OptionError(f"method is {method!r}; expected 'viterbi' or 'posterior'.")
        opened, observed = self._opened(sequences, lengths, group, columns)
        if method == "viterbi":
            codes = self._paths(observed, 1)[0][0]
        else:
            parts = self._by_block(observed, lambda chain: chain.expectations(threads=1).posteriors)
            codes = np.concatenate(parts).argmax(axis=1)
        return opened.give(take_states(self._names, codes))

    def _paths(self, observed: Observed, most: int) -> tuple[Any, Floats]:
        found = self._by_block(observed, lambda chain: chain.best_paths(most, threads=1))
        codes, values = np.concatenate([part[0] for part in found], axis=1), np.concatenate([p[1] for p in found])
        if (values[:, 0] == -np.inf).any():
            at = int(np.argmin(values[:, 0]))
            raise OptionError(f"Sequence {at} is impossible under this model: no path of states has it.")
        return codes, values

    def best_paths(
        self, sequences: Any, n: int = 2, *, lengths: Any = None, group: Any = None, columns: Any = None
    ) -> Any:
        """The `n` most probable paths of each sequence with their log P(path, sequence), best first.

        For one sequence a list of pairs (states, log probability), else a list of such lists; fewer where there are
        fewer paths.
        """
        opened, observed = self._opened(sequences, lengths, group, columns)
        codes, values = self._paths(observed, n)
        found = []
        for s in range(observed.n_sequences):
            span = slice(int(observed.offsets[s]), int(observed.offsets[s + 1]))
            ranks = [rank for rank in range(n) if values[s, rank] > -np.inf]
            found.append([(take_states(self._names, codes[r, span]), float(values[s, r])) for r in ranks])
        return found if opened.as_list or observed.n_sequences > 1 else found[0]

    def posteriors(self, sequences: Any, *, lengths: Any = None, group: Any = None, columns: Any = None) -> Any:
        """P(state at a step | whole sequence) (steps, K): smoothing."""
        opened, observed = self._opened(sequences, lengths, group, columns)
        parts = self._by_block(observed, lambda chain: chain.expectations(threads=1).posteriors)
        return opened.give(np.concatenate(parts))

    predict_proba = posteriors

    def filter(self, sequences: Any, *, lengths: Any = None, group: Any = None, columns: Any = None) -> Any:
        """P(state at a step | sequence up to that step) (steps, K)."""
        opened, observed = self._opened(sequences, lengths, group, columns)
        parts = self._by_block(observed, lambda chain: filtered(chain, threads=1)[1])
        return opened.give(np.concatenate(parts))

    def pairwise(self, sequences: Any, *, lengths: Any = None, group: Any = None, columns: Any = None) -> Any:
        """P(state at a step, state at the next | whole sequence) (steps - 1, K, K); a list where there are several."""
        _, observed = self._opened(sequences, lengths, group, columns)
        parts = self._by_block(observed, lambda chain: chain.expectations(pairs=True, threads=1).pairs)
        whole = np.concatenate(parts)
        rows = [whole[a + 1 : b] for a, b in zip(observed.offsets, observed.offsets[1:], strict=False)]
        return rows if len(rows) > 1 else rows[0]

    def sample_paths(
        self, sequences: Any, n: int = 1, *, random_state: Any = None, lengths: Any = None, group: Any = None,
        columns: Any = None,
    ) -> Any:  # fmt: skip
        """`n` paths of states drawn from P(states | sequence): a list of `n` answers in the form of the sequences."""
        opened, observed = self._opened(sequences, lengths, group, columns)
        chain = chains(observed, self._emission, self._fitted())
        codes = chain.sample(n, random_state=generator(random_state), threads=self._options["threads"])
        return [opened.give(take_states(self._names, row)) for row in codes]

    # -- future and samples ------------------------------------------------------------------------------------------

    def forecast(
        self, sequences: Any, steps: int = 1, *, lengths: Any = None, group: Any = None, columns: Any = None
    ) -> Any:
        """P(state | sequence) (steps, K) for the steps that follow a sequence; a list where there are several.

        `forecast_law` makes laws of observations of them.
        """
        if not (isinstance(steps, int | np.integer) and steps >= 1):
            raise OptionError(f"steps is {steps!r}; expected a whole number of at least 1.")
        opened, observed = self._opened(sequences, lengths, group, columns)
        rows = np.concatenate(self._by_block(observed, lambda chain: filtered(chain, threads=1)[1]))
        ahead, found = rows[observed.offsets[1:] - 1], []
        for _ in range(steps):
            ahead = ahead @ self._fitted().transitions
            found.append(ahead)
        answer = np.stack(found, axis=1)
        return list(answer) if opened.as_list or len(answer) > 1 else answer[0]

    def forecast_law(self, shares: Any) -> Mixture:
        """The law of an observation whose state has the probabilities `shares` (K,): a mixture of the emissions."""
        weights = np.asarray(shares, dtype=np.float64)
        if weights.shape != (len(self._names),):
            raise OptionError(f"shares has shape {weights.shape}; expected one probability for each state.")
        return Mixture(self._emission.laws(self._fitted().emission), weights=weights / weights.sum())

    def sample(self, steps: int = 1, n: int | None = None, *, random_state: Any = None) -> tuple[Any, Any]:
        """Observations and states of a new sequence; with `n` lists of as many."""
        rng, parameters = generator(random_state), self._fitted()
        if not (isinstance(steps, int | np.integer) and steps >= 1):
            raise OptionError(f"steps is {steps!r}; expected a whole number of at least 1.")
        count = 1 if n is None else int(n)
        codes = np.empty((count, int(steps)), np.intp)
        rows = np.vstack([parameters.initial, parameters.transitions]).cumsum(axis=1)
        rows[:, -1] = 1.0
        before = np.zeros(count, np.intp)
        for t in range(int(steps)):
            u = rng.random(count)
            codes[:, t] = (u[:, None] >= rows[before]).sum(axis=1)
            before = codes[:, t] + 1
        columns = self._emission.draw(codes.ravel(), parameters.emission, rng)
        values = columns[0] if len(columns) == 1 else _side_by_side(columns)
        labels = take_states(self._names, codes.ravel())
        cuts = np.arange(1, count) * int(steps)
        if n is None:
            return values, labels
        return np.split(values, cuts), np.split(labels, cuts)

    # -- evaluation --------------------------------------------------------------------------------------------------

    def match_states(self, sequences: Any, states: Any, **form: Any) -> dict[Hashable, Hashable]:
        """Which true label each hidden state stands for, so that the most steps agree (an assignment problem).

        A hidden state that is left over stands for None.
        """
        return match(self._flat(self.predict(sequences, **form)), self._flat(states), self._names)

    def accuracy(self, sequences: Any, states: Any, **form: Any) -> float:
        """Share of steps whose predicted state, matched to the true labels, is right."""
        path, truth = self._flat(self.predict(sequences, **form)), self._flat(states)
        names = match(path, truth, self._names)
        return float(np.mean([names[a] == b for a, b in zip(path, truth, strict=True)]))

    @staticmethod
    def _flat(states: Any) -> list[Any]:
        """Labels of all sequences end to end."""
        if isinstance(states, np.ndarray) and states.ndim == 1 and states.dtype != object:
            return list(states.tolist())
        found: list[Any] = []
        for item in states:
            nested = isinstance(item, list | tuple | np.ndarray) or (isinstance(item, str) and len(item) > 1)
            found.extend(list(item) if nested else [item])
        return found

    def standard_errors(
        self, sequences: Any, states: Any = None, *, lengths: Any = None, group: Any = None,
        sample_weight: Any = None, columns: Any = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Standard errors from the observed information of these sequences, which should be those learned from.

        A dict with "initial" (K,), "transitions" (K, K) and "emissions" (a dict of arrays, laid out as the parameters
        of the laws). NaN where the information does not determine a parameter, or it lies on the edge.
        """
        columns, states = split_states(sequences, states, group, columns)
        opened, observed = self._opened(sequences, lengths, group, columns)
        labels, _ = read_labels(states, opened.sequences, lengths, self._names, False)
        weights = read_weights(sample_weight, observed.n_sequences)
        whole = Observed(observed.data, observed.offsets, weights, labels)
        learner = self._learner(self._emission)  # type: ignore[attr-defined]
        return standard_errors(Expectation(whole, self._emission, self._options["threads"]), learner, self._fitted())


def _side_by_side(columns: list[NDArray[Any]]) -> NDArray[Any]:
    if all(column.dtype.kind in "biuf" for column in columns):
        return np.stack(columns, axis=1)
    return np.stack([column.astype(object) for column in columns], axis=1)
