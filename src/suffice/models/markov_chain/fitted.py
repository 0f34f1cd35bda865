"""What a Markov chain learns: the distribution of the next state given those before; and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, Ints
from suffice.checks import listed_names, truth
from suffice.domain import Domain, Variable
from suffice.errors import DataError, EstimateError, FileFormatError, OptionError, SizeError, listing
from suffice.families.dirichlet import Dirichlet
from suffice.families.dirichlet_mixture import DirichletMixture
from suffice.fitting.report import CountedRows
from suffice.models.markov_chain.distributions import (
    BackoffDistribution,
    LevelMixture,
    NextState,
    distribution_from_dict,
    row,
    whole_history,
)
from suffice.models.markov_chain.input import Vocabulary, opened, windows_of
from suffice.models.markov_chain.levels import Levels, at_places
from suffice.models.markov_chain.matched import rows_with_prior
from suffice.models.markov_chain.rows import Histories, RowPrior
from suffice.records import checked
from suffice.sources.ngrams import WindowLayout, sequence_windows
from suffice.sources.sequences import ColumnOptions, SequenceForm, code_states
from suffice.statistics import Summary
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait
    from suffice.sources.base import Batch, Source


#: Cells up to which tables over all histories are made.
MOST_CELLS = 2**24


@dataclass(frozen=True, eq=False)
class MarkovChainFitted:
    """``p(next | history)`` over the words of a vocabulary.

    `levels` are the runs that were counted, None where a chain comes from a file of probabilities. `prior` is the prior
    of the rows, `weights` those of an interpolation for each length of history, `background` what it ends at.
    `smoothed`, `estimate` ("mle", "mean", "map") and `unseen` say how the rows were made, `tokens` how texts become
    states.
    """

    distribution: NextState
    words: Vocabulary
    levels: Levels | None = None
    prior: RowPrior | None = None
    weights: tuple[Floats, ...] = ()
    background: Floats | None = None
    smoothed: bool = False
    estimate: str = "mle"
    unseen: str = "uniform"
    tokens: object = None

    title = "MarkovChain"

    @property
    def n_params(self) -> int:
        """Free parameters: ``card - 1`` for each history of 0 to `order` states."""
        histories = sum(len(self.words.words) ** n for n in range(self.distribution.order + 1))
        return int(histories * (self.words.card - 1))

    @property
    def is_plain(self) -> bool:
        """Whether the rows are relative frequencies."""
        return not self.smoothed and self.prior is None

    @property
    def counted(self) -> Levels:
        """The counted runs; a question about counts needs some."""
        if self.levels is None:
            raise EstimateError(
                "This chain comes from a file of probabilities, without counts: there are none to look at, to add to "
                "or to take from. Fit a chain on the sequences themselves."
            )
        return self.levels

    # -- probabilities -----------------------------------------------------------------------------------------------

    def history_codes(self, history: Any) -> Ints:
        """Numbers (order,) of a history, oldest first, padded with the start mark."""
        words = self.words
        order = self.distribution.order
        if isinstance(history, list | tuple):
            listed_names(history, "history")
        if history is None:
            given: list[Any] = []
        elif isinstance(history, list | tuple) and words.variable.find(tuple(history)) is None:
            given = list(history)
        elif isinstance(history, str) and words.variable.find(history) is None and history != words.start:
            whole = words.unknown is None and all(words.variable.find(letter) is not None for letter in history)
            given = list(history) if whole else [history]
        else:
            given = list(history) if isinstance(history, np.ndarray) and history.ndim else [history]
        places = [words.place(state, history=True) for state in given[len(given) - min(order, len(given)) :]]
        if len(places) < order and places and places[0] != words.card:
            raise OptionError(
                f"The history {history!r} has {len(places)} states; a chain of order {order} needs {order}, or a "
                f"history that begins with the start mark {words.start!r}."
            )
        return np.array([words.card] * (order - len(places)) + places, dtype=np.int64)

    def probability(self, word: Hashable, history: Any = ()) -> float:
        """``p(word | history)``: one state for order 1, or a list of states, oldest first.

        An empty history is the start of a sequence, which the start mark at the head of a shorter one stands for too.
        """
        return float(np.exp(self.log_probability(word, history)))

    def log_probability(self, word: Hashable, history: Any = ()) -> float:
        """Natural logarithm of `probability`; -inf for what cannot be."""
        places = self.history_codes(history)
        window = np.array([*places, self.words.place(word)], dtype=np.int64)
        return float(self.distribution.log_prob(window[None, :])[0])

    def row(self, history: Any = ()) -> Table:
        """The distribution of the next state after a history, as a `Table`."""
        places = self.history_codes(history)
        return self._table(("to",), self._shown(row(self.distribution, places)))

    @property
    def initial(self) -> Table:
        """The distribution of the first state, a `Table` over "to"."""
        return self._table(("to",), row(self.distribution, self.history_codes(())))

    @property
    def transitions(self) -> Table:
        """``p(to | from)``, a `Table` with one row for each history: axes "from", "to", or "from_2", "from_1", "to"."""
        return self._table(self._axes(), self._all_rows())

    def _axes(self) -> tuple[str, ...]:
        order = self.distribution.order
        return ("from", "to") if order == 1 else (*(f"from_{lag}" for lag in range(order, 0, -1)), "to")

    def _table(self, axes: tuple[str, ...], values: Floats) -> Table:
        words = self.words
        variables = [Variable.discrete(axis, words.words if axis != "to" else words.states) for axis in axes]
        return Table(Domain(variables), values)

    def _histories(self) -> Ints:
        """Numbers of every history of words (histories, order); too many are an error."""
        words = self.words
        order = self.distribution.order
        if order == 0:
            return np.empty((1, 0), np.int64)
        codes = words.places(words.words)
        size = len(codes) ** order
        if size * words.card > MOST_CELLS:
            raise SizeError(
                f"A table of {len(codes):,} states and order {order} has {size * words.card:,} cells; ask for "
                "probability(word, history) or row(history)."
            )
        grid = np.meshgrid(*[codes] * order, indexing="ij")
        return np.stack([axis.ravel() for axis in grid], axis=1)

    def _all_rows(self) -> Floats:
        words = self.words
        order = self.distribution.order
        histories = self._histories()
        windows = np.empty((len(histories), words.card, order + 1), np.int64)
        windows[:, :, :-1] = histories[:, None, :]
        windows[:, :, -1] = np.arange(words.card)
        rows = np.exp(self.distribution.log_prob(windows.reshape(-1, order + 1)))
        shape = (len(words.words),) * order + (words.card,)
        return self._shown(rows.reshape(shape))

    def _shown(self, rows: Floats) -> Floats:
        """Rows (..., card) as tables show them: NaN where nothing is known and that was asked for."""
        if self.unseen == "nan" and self.is_plain:
            return np.where(rows.sum(axis=-1, keepdims=True) > 0, rows, np.nan)
        return rows

    def _totals(self) -> Floats:
        """How often each history was seen, in the shape of the table without its last axis."""
        words = self.words
        order = self.distribution.order
        histories = self._histories()
        context = self.counted.contexts(histories)[order]
        totals = self.counted.totals(order + 1)
        counts = at_places(totals, context, 0.0)
        return counts.reshape((len(words.words),) * order)

    @property
    def unseen_histories(self) -> list[Any]:
        """Histories that occur in the data and are never followed: states for order 1, else tuples, at most 100."""
        words = self.words
        order = self.distribution.order
        if order == 0:
            return []
        total = self.counted.totals(order + 1)
        runs = np.flatnonzero(total <= 0)
        spelled = self.counted.words(order)[runs]
        inside = (spelled < words.card).all(axis=1)
        if words.end is not None:
            inside &= (spelled != words.places([words.end])[0]).all(axis=1)
        rows = spelled[inside][:100]
        named = [tuple(words.states[code] for code in row) for row in rows]
        return [name[0] for name in named] if order == 1 else named

    # -- what smoothing and priors did -------------------------------------------------------------------------------

    @property
    def background_table(self) -> Table:
        """The distribution of the next state by itself: an interpolation's end, or the mean of a Dirichlet prior."""
        if self.background is not None:
            return self._table(("to",), self.background)
        if self.prior is not None and not self.prior.each:
            means = self.prior.alphas / self.prior.alphas.sum(axis=1, keepdims=True)
            return self._table(("to",), self.prior.weights @ means)
        if isinstance(self.distribution, BackoffDistribution) and not self.is_plain:
            return self._table(("to",), np.exp(self.distribution.log_p[0][:-1]))
        raise EstimateError("This chain has no background: nothing is smoothed, or every row has its own prior.")

    @property
    def interpolation_weight(self) -> Any:
        """The weight of the background.

        A number where all histories share it; else a `Table` over the histories. With Dirichlet rows of strength |b|
        it is ``|b| / (|b| + n(h))``: the prior counts for less where more was seen. Orders above 1 have one number for
        each length of history, shortest first.
        """
        if self.distribution.order == 0:
            raise EstimateError("A chain of order 0 has no histories, so that there is no weight of a background.")
        if self.weights and all(len(weights) == 1 for weights in self.weights):
            each = [float(weights[0]) for weights in self.weights]
            return each[0] if len(each) == 1 else tuple(each)
        if isinstance(self.distribution, LevelMixture):
            return self._weight_table(self._mixture_weights())
        if self.prior is not None:
            mass = self.prior.alphas.sum(axis=1)
            mass = mass if self.prior.each else mass[0]
            if self.estimate == "map":
                mass = mass - self.words.card
            totals = self._totals()
            if totals.shape != np.shape(mass) and np.ndim(mass):
                raise EstimateError("The rows have priors of their own.")
            return self._weight_table(
                np.where(totals + mass > 0, mass / np.where(totals + mass > 0, totals + mass, 1), 1)
            )
        if isinstance(self.distribution, BackoffDistribution) and not self.is_plain:
            context = self.counted.contexts(self._histories())[self.distribution.order]
            logs = at_places(self.distribution.log_weight[-1], context, 0.0)
            return self._weight_table(np.exp(logs).reshape((len(self.words.words),) * self.distribution.order))
        raise EstimateError("Nothing is smoothed in this chain, so that there is no weight of a background.")

    def _mixture_weights(self) -> Floats:
        distribution = self.distribution
        assert isinstance(distribution, LevelMixture)
        context = distribution.levels.contexts(self._histories())[distribution.order]
        share = at_places(distribution.share[-1], context, distribution.unseen)
        return np.asarray(share.sum(axis=1)).reshape((len(self.words.words),) * distribution.order)

    def _weight_table(self, values: Floats) -> Table:
        return self._table(self._axes()[:-1], values)

    @property
    def shared_prior(self) -> Any:
        """The prior of the rows: a `Dirichlet` or a `DirichletMixture`, as given or as learned."""
        prior = self.prior
        if prior is None or prior.each:
            raise EstimateError("The rows of this chain do not share a prior. Fit it with prior=.")
        if len(prior.weights) == 1:
            return Dirichlet(prior.alphas[0])
        return DirichletMixture(weights=prior.weights, alphas=prior.alphas)

    def posterior(self, history: Any = ()) -> Any:
        """The posterior of the row after a history: rows are learned independently of each other."""
        counts = self.counts(history)
        if (
            self.prior is not None
            and self.prior.first is not None
            and (self.history_codes(history) == self.words.card).all()
        ):
            return Dirichlet(self.prior.first).posterior(counts)
        if self.prior is not None and self.prior.each:
            code = int(self.history_codes(history)[0])
            if code == self.words.card:
                raise EstimateError("The first state has no prior of its own.")
            return Dirichlet(self.prior.alphas[code]).posterior(counts)
        return self.shared_prior.posterior(counts)

    def responsibilities(self, history: Any = ()) -> Floats:
        """Posterior probability of each component of a mixture prior for the row after a history (C,)."""
        prior = self.shared_prior
        if not isinstance(prior, DirichletMixture):
            raise EstimateError("The prior of the rows is no mixture.")
        return prior.responsibilities(self.counts(history))

    def counts(self, history: Any = ()) -> Floats:
        """How often each state came next after a history, in the order of `states_`."""
        places = self.history_codes(history)
        depth = int(whole_history(places[None, :], self.words.card)[0])
        context = self.counted.contexts(places[None, :])[depth]
        run = self.counted.find(depth + 1, np.repeat(context, self.words.card), np.arange(self.words.card))
        return at_places(self.counted.levels[depth].count, run, 0.0)

    def standard_errors(self) -> Table:
        """Standard errors of `transitions_`: ``sqrt(p (1 - p) / n(h))``, or posterior standard deviations.

        NaN for a history never seen, where nothing is smoothed.
        """
        if self.smoothed or isinstance(self.distribution, LevelMixture) or self.estimate == "map":
            raise EstimateError("Standard errors are known for maximum likelihood and for means of Dirichlet rows.")
        table = self.transitions
        total = self._totals()[..., None]
        if self.prior is not None:
            mass = self.prior.alphas.sum(axis=1)
            total = total + (mass[:, None] if self.prior.each else mass[0]) + 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = np.sqrt(table.values * (1.0 - table.values) / total)
        return self._table(self._axes(), np.where(total > 0, errors, np.nan))

    @property
    def n_unseen_histories(self) -> int:
        """Number of histories that were never followed by anything, seen or not."""
        words = self.words
        order = self.distribution.order
        if order == 0:
            return 0
        seen = Histories.of(self.counted, initial=False)
        return int(len(words.words) ** order - np.count_nonzero((seen.level == order) & self._inside(seen)))

    def _inside(self, seen: Histories) -> NDArray[np.bool_]:
        order = self.distribution.order
        return np.asarray(~self.counted.begins[order - 1][np.where(seen.level == order, seen.run, 0)])

    # -- likelihoods -------------------------------------------------------------------------------------------------

    def windows(self, summary: Summary) -> tuple[Ints, Floats]:
        """The windows (m, order + 1) that a summary counts, in numbers of words, and their weights (m,)."""
        words = self.words
        layout = WindowLayout(self.distribution.order, words.start, words.end, None)
        windows, weights = windows_of(summary, layout, words)
        return windows.astype(np.int64), weights

    def log_likelihood(self, summary: Summary) -> float:
        """Sum over all counted events, natural logarithm; -inf where one cannot be."""
        windows, weights = self.windows(summary)
        return float(weights @ self.distribution.log_prob(windows)) if len(weights) else 0.0

    def perplexity(self, summary: Summary, *, initial: bool) -> float:
        """``exp`` of the mean of -log p over the predicted events, first states among them or not."""
        windows, weights = self.windows(summary)
        if self.distribution.order > 0 and not truth(initial, "initial"):
            later = windows[:, -2] != self.words.card
            windows, weights = windows[later], weights[later]
        if weights.sum() <= 0:
            raise DataError("There are no transitions: every sequence has a single step.")
        return float(np.exp(-(weights @ self.distribution.log_prob(windows)) / weights.sum()))

    def score_samples(self, rows: Any, lengths: Any = None, **form: Unpack[ColumnOptions]) -> Floats:
        """Log-likelihood of each sequence (n_sequences,); -inf where one cannot be."""
        shape = SequenceForm(lengths, **form)
        source = shape.elsewhere(rows)
        if source is not None:
            return self._scores_there(source, shape)
        sequences = opened(rows, shape, self.tokens).single()
        codes, states = code_states(sequences.values)
        if (codes < 0).any():
            number, step = sequences.where(int(np.argmax(codes < 0)))
            raise _no_state(f"Sequence {number}", step)
        return self.scores_of(codes, states, sequences.offsets)

    def _scores_there(self, source: Source, form: SequenceForm) -> Floats:
        """Of the sequences of a table that stay where they are."""
        from suffice.models.sequence_answers import answers_of_sequences

        names = form.observations(source)
        if len(names) != 1:
            raise DataError(f"A Markov chain has one column of states; the table has {listing(names)}. Name one.")
        settled = source.settle(Domain([Variable(names[0], "discrete")]))
        scores = answers_of_sequences(ScoreSequences(self), source, settled, form.group, form.order, None)
        return np.array(scores, dtype=np.float64)

    def scores_of(self, codes: NDArray[Any], states: Sequence[Hashable], offsets: Ints) -> Floats:
        """Of sequences as codes (steps,) of some states."""
        words, order = self.words, self.distribution.order
        end = None if words.end is None else int(words.places([words.end])[0])
        windows, bounds = sequence_windows(words.places(states)[codes], offsets, order, words.card, end)
        return np.add.reduceat(self.distribution.log_prob(windows), bounds[:-1])

    def counted_rows(self) -> list[CountedRows]:
        """The rows that were met with their counts and pseudo-counts; empty without a prior."""
        if self.levels is None or self.prior is None or self.smoothed:
            return []
        return rows_with_prior(self.levels, self.words, self.prior)

    def portrait(self) -> Portrait:
        """What there is to see of it."""
        from suffice.models.markov_chain.portrait import portrait_of

        return portrait_of(self)

    # -- files -------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file; how the rows were made is in the options."""
        words, prior = self.words, self.prior
        held = None
        if prior is not None:
            held = {"weights": prior.weights, "alphas": prior.alphas, "first": prior.first, "each": prior.each}
        apart = self.levels is not None and self.distribution.levels is None
        return {
            "distribution": self.distribution.to_dict(),
            "states": list(words.states),
            "marks": [words.start, words.end, words.unknown],
            "prior": held,
            "weights": list(self.weights),
            "background": self.background,
            "levels": self.counted.to_dict() if apart else None,
            "counted": self.levels is not None,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], order: int, **how: Any) -> MarkovChainFitted:
        """Rebuild from plain data, checking it; how: the fields that say how the rows were made."""
        distribution = distribution_from_dict(plain["distribution"])
        words = checked(Vocabulary(tuple(plain["states"]), *plain["marks"]))
        if words.card != distribution.card:
            raise FileFormatError(f"The chain has {words.card} states and a distribution of {distribution.card}.")
        if distribution.order != order:
            raise FileFormatError(f"The chain is of order {order!r}, its distribution of {distribution.order}.")
        held, given = plain["prior"], plain["levels"]
        prior = None if held is None else RowPrior(held["weights"], held["alphas"], held["first"], held["each"])
        levels = distribution.levels if given is None else Levels.from_dict(given)
        rest = (prior, tuple(plain["weights"]), plain["background"])
        return cls(distribution, words, levels if plain["counted"] else None, *rest, **how)


@dataclass(frozen=True, eq=False)
class ScoreSequences:
    """The log-likelihood of each sequence of a batch."""

    fitted: MarkovChainFitted

    def __call__(self, batch: Batch, called: Callable[[int], str]) -> Sequence[float]:
        """Of sequences that are called so."""
        assert batch.offsets is not None
        codes, states = batch.codes[0], batch.domain.variables[0].states
        missing = codes == len(states)
        if missing.any():
            step = int(np.argmax(missing))
            number = int(np.searchsorted(batch.offsets, step, side="right")) - 1
            raise _no_state(called(number), step - int(batch.offsets[number]))
        scores: list[float] = self.fitted.scores_of(codes, states, batch.offsets).tolist()
        return scores


def _no_state(sequence: str, step: int) -> DataError:
    return DataError(
        f"{sequence} has a missing value at step {step}; a Markov chain needs every state. Cut the sequence in two "
        "there."
    )
