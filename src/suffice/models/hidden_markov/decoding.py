"""What a fitted hidden Markov model says about sequences."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.engines.chain_blocks import blocks, map_blocks
from suffice.engines.chain_messages import filtered
from suffice.errors import DataError, EstimateError, OptionError
from suffice.families.base import as_floats, generator, take_states
from suffice.fitting.report import Curvature
from suffice.models.hidden_markov.emissions.contract import Emission
from suffice.models.hidden_markov.emissions.law import Mixture
from suffice.models.hidden_markov.expectation import Expectation
from suffice.models.hidden_markov.matching import labelled, match
from suffice.models.hidden_markov.observed import Observed, chains
from suffice.models.hidden_markov.parameters import Parameters
from suffice.models.hidden_markov.reading import (
    Opened,
    open_observations,
    open_paths,
    read_labels,
    read_weights,
    split_states,
)
from suffice.models.hidden_markov.standard_errors import curvature_of, standard_errors
from suffice.sources.sequences import is_table

Floats = NDArray[np.float64]

METHODS = ("viterbi", "posterior")


class Decoding:
    """Questions about sequences; every one takes `lengths`, `group`, `order` and `columns` as `fit` does.

    Answers by step come in the form of the sequences: a list of arrays for a list, one array for one sequence or for
    an array with lengths.
    """

    _emission: Emission
    _names: tuple[Hashable, ...]
    _columns: list[Hashable] | None
    _options: dict[str, Any]

    def _fitted(self) -> Parameters:
        raise NotImplementedError

    def _opened(self, sequences: Any, lengths: Any, group: Any, order: Any, columns: Any) -> tuple[Opened, Observed]:
        self._fitted()
        columns = self._known_columns(sequences) if columns is None else columns
        opened = open_observations(sequences, lengths, group, order, columns)
        data = self._emission.read(opened.columns)
        return opened, Observed(data, opened.sequences.offsets, np.ones(opened.sequences.n_sequences))

    def _known_columns(self, sequences: Any) -> list[Hashable] | None:
        """The columns that were learned from, of a table."""
        return self._columns if is_table(sequences) else None

    def _by_block(self, observed: Observed, task: Any) -> list[Any]:
        """Answers for blocks of sequences; the task gives log P of each sequence of a block, then its answer.

        What is impossible has no posterior, and is an error that names the sequence.
        """
        parameters = self._fitted()

        def work(span: tuple[int, int]) -> Any:
            return task(chains(observed.take(*span), self._emission, parameters))

        spans = blocks(observed.offsets, self._emission.size)
        found = map_blocks(work, spans, self._options["threads"])
        check_possible(np.concatenate([mass for mass, _ in found]))
        return [answer for _, answer in found]

    def _smoothed(self, observed: Observed) -> Floats:
        parts = self._by_block(observed, _posteriors)
        return np.concatenate(parts)

    def _filtered(self, observed: Observed) -> Floats:
        parts = self._by_block(observed, lambda chain: filtered(chain, threads=1))
        return np.concatenate(parts)

    def _check_possible(self, observed: Observed) -> None:
        """Raise where a sequence cannot be."""
        check_possible(Expectation(observed, self._emission, self._options["threads"]).log_likelihoods(self._fitted()))

    # -- likelihood --------------------------------------------------------------------------------------------------

    def log_likelihood(
        self, sequences: Any, *, lengths: Any = None, group: Any = None, order: Any = None, columns: Any = None
    ) -> Floats:
        """Log P(sequence) of each sequence (n,), states summed out; -inf where it is impossible."""
        _, observed = self._opened(sequences, lengths, group, order, columns)
        return Expectation(observed, self._emission, self._options["threads"]).log_likelihoods(self._fitted())

    def score(
        self, sequences: Any, states: Any = None, *, lengths: Any = None, group: Any = None, order: Any = None,
        sample_weight: Any = None, columns: Any = None,
    ) -> float:  # fmt: skip
        """Mean log-likelihood of a step (weighted), natural logarithm; `states` are not used."""
        _, observed = self._opened(sequences, lengths, group, order, columns)
        weights = read_weights(sample_weight, observed.n_sequences)
        total = float(weights @ np.diff(observed.offsets))
        if not total > 0:
            raise OptionError("The score of no steps is undefined: the sequences have no weight.")
        values = self.log_likelihood(sequences, lengths=lengths, group=group, order=order, columns=columns)
        return float(weights[weights > 0] @ values[weights > 0]) / total

    # -- states ------------------------------------------------------------------------------------------------------

    def predict(
        self,
        sequences: Any,
        *,
        method: str = "viterbi",
        lengths: Any = None,
        group: Any = None,
        order: Any = None,
        columns: Any = None,
    ) -> Any:
        """The states: of the most probable path ("viterbi"), or the most probable one at each step ("posterior")."""
        if method not in METHODS:
            raise OptionError(f"method is {method!r}; expected 'viterbi' or 'posterior'.")
        opened, observed = self._opened(sequences, lengths, group, order, columns)
        if method == "viterbi":
            codes = self._paths(observed, 1)[0][0]
        else:
            codes = self._smoothed(observed).argmax(axis=1)
        return opened.give(take_states(self._names, codes))

    def _paths(self, observed: Observed, most: int) -> tuple[Any, Floats]:
        def task(chain: Any) -> Any:
            codes, values = chain.best_paths(most, threads=1)
            return values[:, 0], (codes, values)

        found = self._by_block(observed, task)
        return np.concatenate([part[0] for part in found], axis=1), np.concatenate([part[1] for part in found])

    def best_paths(
        self,
        sequences: Any,
        n: int = 2,
        *,
        lengths: Any = None,
        group: Any = None,
        order: Any = None,
        columns: Any = None,
    ) -> Any:
        """The `n` most probable paths of each sequence with their log P(path, sequence), best first.

        For one sequence a list of pairs (states, log probability), else a list of such lists; fewer where there are
        fewer paths.
        """
        n = whole_number(n, "n")
        opened, observed = self._opened(sequences, lengths, group, order, columns)
        codes, values = self._paths(observed, n)
        found = []
        for s in range(observed.n_sequences):
            span = slice(int(observed.offsets[s]), int(observed.offsets[s + 1]))
            ranks = [rank for rank in range(n) if values[s, rank] > -np.inf]
            found.append([(take_states(self._names, codes[r, span]), float(values[s, r])) for r in ranks])
        return found[0] if opened.alone else found

    def posteriors(
        self, sequences: Any, *, lengths: Any = None, group: Any = None, order: Any = None, columns: Any = None
    ) -> Any:
        """P(state at a step | whole sequence) (steps, K): smoothing."""
        opened, observed = self._opened(sequences, lengths, group, order, columns)
        return opened.give(self._smoothed(observed))

    predict_proba = posteriors

    def filter(
        self, sequences: Any, *, lengths: Any = None, group: Any = None, order: Any = None, columns: Any = None
    ) -> Any:
        """P(state at a step | sequence up to that step) (steps, K)."""
        opened, observed = self._opened(sequences, lengths, group, order, columns)
        return opened.give(self._filtered(observed))

    def pairwise(
        self, sequences: Any, *, lengths: Any = None, group: Any = None, order: Any = None, columns: Any = None
    ) -> Any:
        """P(state at a step, state at the next | whole sequence) (steps - 1, K, K).

        A list of such arrays, but for one sequence that is no list of sequences.
        """
        opened, observed = self._opened(sequences, lengths, group, order, columns)
        whole = np.concatenate(self._by_block(observed, _pairs))
        rows = [whole[a + 1 : b] for a, b in zip(observed.offsets, observed.offsets[1:], strict=False)]
        return rows[0] if opened.alone else rows

    def sample_paths(
        self, sequences: Any, n: int = 1, *, random_state: Any = None, lengths: Any = None, group: Any = None,
        order: Any = None, columns: Any = None,
    ) -> Any:  # fmt: skip
        """`n` paths of states drawn from P(states | sequence): a list of `n` answers in the form of the sequences."""
        n = whole_number(n, "n")
        opened, observed = self._opened(sequences, lengths, group, order, columns)
        self._check_possible(observed)
        chain = chains(observed, self._emission, self._fitted())
        codes = chain.sample(n, random_state=generator(random_state), threads=self._options["threads"])
        return [opened.give(take_states(self._names, row)) for row in codes]

    # -- future and samples ------------------------------------------------------------------------------------------

    def forecast(
        self,
        sequences: Any,
        steps: int = 1,
        *,
        lengths: Any = None,
        group: Any = None,
        order: Any = None,
        columns: Any = None,
    ) -> Any:
        """P(state | sequence) (steps, K) for the steps that follow a sequence; a list where there are several.

        `forecast_law` makes laws of observations of them.
        """
        steps = whole_number(steps, "steps")
        opened, observed = self._opened(sequences, lengths, group, order, columns)
        rows = self._filtered(observed)
        ahead, found = rows[observed.offsets[1:] - 1], []
        for _ in range(steps):
            ahead = ahead @ self._fitted().transitions
            found.append(ahead)
        answer = np.stack(found, axis=1)
        return answer[0] if opened.alone else list(answer)

    def forecast_law(self, shares: Any) -> Mixture:
        """The law of an observation whose state has the probabilities `shares` (K,): a mixture of the emissions."""
        emission = self._fitted().emission
        weights = np.atleast_1d(as_floats(shares, "shares"))
        if weights.shape != (len(self._names),):
            raise OptionError(f"shares has shape {weights.shape}; expected one probability for each state.")
        if (weights < 0).any() or not weights.sum() > 0:
            raise OptionError(f"shares is {shares!r}; expected numbers of at least 0, not all of them 0.")
        laws = self._emission.laws({name: array.copy() for name, array in emission.items()})
        return Mixture(laws, weights=weights / weights.sum())

    def sample(self, steps: int = 1, n: int | None = None, *, random_state: Any = None) -> tuple[Any, Any]:
        """Observations and states of a new sequence; with `n` lists of as many."""
        rng, parameters = generator(random_state), self._fitted()
        steps, count = whole_number(steps, "steps"), 1 if n is None else whole_number(n, "n")
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
        return match(*self._compared(sequences, states, form), self._names)

    def accuracy(self, sequences: Any, states: Any, **form: Any) -> float:
        """Share of steps whose predicted state, matched to the true labels, is right.

        Steps without a true label are left out.
        """
        path, truth = self._compared(sequences, states, form)
        names = match(path, truth, self._names)
        return float(np.mean([names[a] == b for a, b in zip(path, truth, strict=True)]))

    def _compared(self, sequences: Any, states: Any, form: dict[str, Any]) -> tuple[list[Any], list[Any]]:
        """Predicted states and true labels of the steps that have one."""
        self._fitted()
        place = {name: form.get(name) for name in ("lengths", "group", "order", "columns")}
        if place["columns"] is None:
            place["columns"] = self._known_columns(sequences)
        place["columns"], states = split_states(sequences, states, place["group"], place["order"], place["columns"])
        found = self.predict(sequences, **{**form, **place})
        opened = open_observations(sequences, *place.values())
        path = np.concatenate(found) if isinstance(found, list) else found
        return labelled(path.tolist(), open_paths(states, opened, place["lengths"]).values.tolist())

    def standard_errors(
        self, sequences: Any, states: Any = None, *, lengths: Any = None, group: Any = None, order: Any = None,
        sample_weight: Any = None, columns: Any = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Standard errors from the observed information of these sequences, which should be those learned from.

        A dict with "initial" (K,), "transitions" (K, K) and "emissions" (a dict of arrays, laid out as the parameters
        of the laws). inf where the sequences do not determine a parameter, NaN where it lies on the edge, or where the
        objective still rises. `identifiability` names what is flat.
        """
        expectation, learner = self._whole(sequences, states, lengths, group, order, sample_weight, columns)
        return standard_errors(expectation, learner, self._fitted(), self._last_step)

    def identifiability(
        self, sequences: Any, states: Any = None, *, lengths: Any = None, group: Any = None, order: Any = None,
        sample_weight: Any = None, columns: Any = None,
    ) -> Curvature:  # fmt: skip
        """Whether these sequences, which should be those learned from, determine the parameters.

        Rank of the information of the objective, what is flat, and whether EM stands at a maximum: two passes for each
        free parameter. `fit` looks by itself where that costs little, and tells it in the certificate.
        """
        expectation, learner = self._whole(sequences, states, lengths, group, order, sample_weight, columns)
        found = curvature_of(expectation, learner, self._fitted(), self._names, self._last_step, self._runs)
        if found is None:
            raise EstimateError("No parameter is free, or the information is not finite: there is nothing to look at.")
        return found

    @property
    def _runs(self) -> tuple[float, ...]:
        """The objectives of the runs of EM."""
        return tuple(self.__dict__.get("_scores", ()))

    @property
    def _last_step(self) -> float:
        """What one more step of EM would change, as the certificate has it."""
        report = self.__dict__.get("report_")
        return 0.0 if report is None else float(report.certificate.moment_gap)

    def _whole(
        self, sequences: Any, states: Any, lengths: Any, group: Any, order: Any, sample_weight: Any, columns: Any
    ) -> tuple[Expectation, Any]:
        """The expectation of sequences with known states and weights, and the M-step."""
        self._fitted()
        columns = self._known_columns(sequences) if columns is None else columns
        columns, states = split_states(sequences, states, group, order, columns)
        opened, observed = self._opened(sequences, lengths, group, order, columns)
        labels, _ = read_labels(states, opened, lengths, self._names, False)
        weights = read_weights(sample_weight, observed.n_sequences)
        whole = Observed(observed.data, observed.offsets, weights, labels)
        self._check_possible(whole)
        learner = self._learner(self._emission)  # type: ignore[attr-defined]
        return Expectation(whole, self._emission, self._options["threads"]), learner


def check_possible(values: Floats) -> None:
    """Raise where the log-likelihood of a sequence (n,) says that it cannot be."""
    if (values == -np.inf).any():
        at = int(np.argmax(values == -np.inf))
        raise DataError(
            f"Sequence {at} is impossible under this model: no path of states has it, so that nothing can be said "
            "about its states. log_likelihood tells which sequences are."
        )


def whole_number(value: Any, name: str) -> int:
    """A whole number of at least 1."""
    if not (isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 1):
        raise OptionError(f"{name} is {value!r}; expected a whole number of at least 1.")
    return int(value)


def _posteriors(chain: Any) -> tuple[Floats, Floats]:
    found = chain.expectations(threads=1)
    return found.log_partition, found.posteriors


def _pairs(chain: Any) -> tuple[Floats, Floats]:
    found = chain.expectations(pairs=True, threads=1)
    return found.log_partition, found.pairs


def _side_by_side(columns: list[NDArray[Any]]) -> NDArray[Any]:
    if all(column.dtype.kind in "biuf" for column in columns):
        return np.stack(columns, axis=1)
    return np.stack([column.astype(object) for column in columns], axis=1)
