"""Questions to a fitted chain: probabilities, tables, likelihoods, perplexity, samples."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain, Variable
from suffice.errors import DataError, EstimateError, NotFittedError, OptionError, SizeError
from suffice.families.dirichlet import Dirichlet
from suffice.families.dirichlet_mixture import DirichletMixture
from suffice.models.markov_chain import laws
from suffice.models.markov_chain.levels import at_places
from suffice.models.markov_chain.reading import Given, Vocabulary, opened, windows_of
from suffice.models.markov_chain.rows import Histories
from suffice.sources.ngrams import sequence_windows
from suffice.sources.sequences import code_states
from suffice.statistics import Summary
from suffice.table import Table

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Cells up to which tables over all histories are made.
MOST_CELLS = 2**24


class ChainAnswers:
    """What a fitted chain can be asked; mixed into `MarkovChain`."""

    _law: laws.Law
    _words: Vocabulary
    _levels: Any
    _prior: Any
    _weights: tuple[Floats, ...]
    _background: Floats | None

    # -- probabilities -----------------------------------------------------------------------------------------------

    @property
    def states_(self) -> tuple[Hashable, ...]:
        """Every state that can come next, in order; the end mark and the unknown state among them."""
        return self._known().states

    def _known(self) -> Vocabulary:
        if "_words" not in self.__dict__:
            raise NotFittedError("This MarkovChain has learned nothing yet. Call fit first.")
        return self._words

    def _counted(self) -> None:
        """A question about counts needs some."""
        if self._levels is None:
            raise self._without_counts()

    @staticmethod
    def _without_counts() -> EstimateError:
        return EstimateError(
            "This chain comes from a file of probabilities, without counts: there are none to look at, to add to or to "
            "take from. Fit a chain on the sequences themselves."
        )

    def _history(self, history: Any) -> Integers:
        """Numbers (order,) of a history, oldest first, padded with the start mark."""
        words = self._known()
        order = self._law.order
        if history is None:
            given: list[Any] = []
        elif isinstance(history, list | tuple) and words.variable.find(tuple(history)) is None:
            given = list(history)
        elif isinstance(history, str) and words.variable.find(history) is None and history != words.start:
            whole = words.unknown is None and all(words.variable.find(letter) is not None for letter in history)
            given = list(history) if whole else [history]
        else:
            given = list(history) if isinstance(history, np.ndarray) else [history]
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
        places = self._history(history)
        window = np.array([*places, self._known().place(word)], dtype=np.int64)
        return float(self._law.log_prob(window[None, :])[0])

    def row(self, history: Any = ()) -> Table:
        """The law of the next state after a history, as a `Table`."""
        places = self._history(history)
        return self._table(("to",), self._shown(laws.row(self._law, places)))

    @property
    def initial_(self) -> Table:
        """The law of the first state, a `Table` over "to"."""
        self._known()
        return self._table(("to",), laws.row(self._law, self._history(())))

    @property
    def transitions_(self) -> Table:
        """``p(to | from)``, a `Table` with one row for each history: axes "from", "to", or "from_2", "from_1", "to"."""
        self._known()
        return self._table(self._axes(), self._all_rows())

    def _axes(self) -> tuple[str, ...]:
        order = self._law.order
        return ("from", "to") if order == 1 else (*(f"from_{lag}" for lag in range(order, 0, -1)), "to")

    def _table(self, axes: tuple[str, ...], values: Floats) -> Table:
        words = self._known()
        variables = [Variable.discrete(axis, words.words if axis != "to" else words.states) for axis in axes]
        return Table(Domain(variables), values)

    def _histories(self) -> Integers:
        """Numbers of every history of words (histories, order); too many are an error."""
        words = self._known()
        order = self._law.order
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
        words = self._known()
        order = self._law.order
        histories = self._histories()
        windows = np.empty((len(histories), words.card, order + 1), np.int64)
        windows[:, :, :-1] = histories[:, None, :]
        windows[:, :, -1] = np.arange(words.card)
        found = np.exp(self._law.log_prob(windows.reshape(-1, order + 1)))
        shape = (len(words.words),) * order + (words.card,)
        return self._shown(found.reshape(shape))

    def _shown(self, rows: Floats) -> Floats:
        """Rows (..., card) as tables show them: NaN where nothing is known and that was asked for."""
        if getattr(self, "unseen", "") == "nan" and self._is_plain():
            return np.where(rows.sum(axis=-1, keepdims=True) > 0, rows, np.nan)
        return rows

    def _is_plain(self) -> bool:
        options: dict[str, Any] = self.__dict__["_options"]
        return options["smoothing"] is None and options["prior"] is None

    def _totals(self) -> Floats:
        """How often each history was seen, in the shape of the table without its last axis."""
        words = self._known()
        order = self._law.order
        self._counted()
        histories = self._histories()
        context = self._levels.contexts(histories)[order]
        totals = self._levels.totals(order + 1)
        found = at_places(totals, context, 0.0)
        return found.reshape((len(words.words),) * order)

    @property
    def unseen_histories_(self) -> list[Any]:
        """Histories that occur in the data and are never followed: states for order 1, else tuples, at most 100."""
        words = self._known()
        self._counted()
        order = self._law.order
        if order == 0:
            return []
        total = self._levels.totals(order + 1)
        at = np.flatnonzero(total <= 0)
        spelled = self._levels.words(order)[at]
        inside = (spelled < words.card).all(axis=1)
        if words.end is not None:
            inside &= (spelled != words.places([words.end])[0]).all(axis=1)
        rows = spelled[inside][:100]
        named = [tuple(words.states[code] for code in row) for row in rows]
        return [name[0] for name in named] if order == 1 else named

    # -- what smoothing and priors did -------------------------------------------------------------------------------

    @property
    def background_(self) -> Table:
        """The law of the next state by itself: what an interpolation ends at, or the mean of a Dirichlet prior."""
        self._known()
        if self._background is not None:
            return self._table(("to",), self._background)
        if self._prior is not None and not self._prior.each:
            means = self._prior.alphas / self._prior.alphas.sum(axis=1, keepdims=True)
            return self._table(("to",), self._prior.weights @ means)
        if isinstance(self._law, laws.BackoffLaw) and not self._is_plain():
            return self._table(("to",), np.exp(self._law.log_p[0][:-1]))
        raise EstimateError("This chain has no background: nothing is smoothed, or every row has its own prior.")

    @property
    def interpolation_weight_(self) -> Any:
        """The weight of the background.

        A number where all histories share it; else a `Table` over the histories. With Dirichlet rows of strength |b|
        it is ``|b| / (|b| + n(h))``: the prior counts for less where more was seen. Orders above 1 have one number for
        each length of history, shortest first.
        """
        self._known()
        if self._law.order == 0:
            raise EstimateError("A chain of order 0 has no histories, so that there is no weight of a background.")
        if self._weights and all(len(found) == 1 for found in self._weights):
            each = [float(found[0]) for found in self._weights]
            return each[0] if len(each) == 1 else tuple(each)
        if isinstance(self._law, laws.MixtureLaw):
            return self._weight_table(self._mixture_weights())
        if self._prior is not None:
            mass = self._prior.alphas.sum(axis=1)
            mass = mass if self._prior.each else mass[0]
            if self.__dict__["_options"]["estimate"] == "map":
                mass = mass - self._words.card
            totals = self._totals()
            if totals.shape != np.shape(mass) and np.ndim(mass):
                raise EstimateError("The rows have priors of their own.")
            return self._weight_table(
                np.where(totals + mass > 0, mass / np.where(totals + mass > 0, totals + mass, 1), 1)
            )
        if isinstance(self._law, laws.BackoffLaw) and not self._is_plain():
            context = self._levels.contexts(self._histories())[self._law.order]
            logs = at_places(self._law.log_weight[-1], context, 0.0)
            return self._weight_table(np.exp(logs).reshape((len(self._words.words),) * self._law.order))
        raise EstimateError("Nothing is smoothed in this chain, so that there is no weight of a background.")

    def _mixture_weights(self) -> Floats:
        law = self._law
        assert isinstance(law, laws.MixtureLaw)
        context = law.levels.contexts(self._histories())[law.order]
        share = at_places(law.share[-1], context, law.unseen)
        return np.asarray(share.sum(axis=1)).reshape((len(self._words.words),) * law.order)

    def _weight_table(self, values: Floats) -> Table:
        return self._table(self._axes()[:-1], values)

    @property
    def prior_(self) -> Any:
        """The prior of the rows: a `Dirichlet` or a `DirichletMixture`, as given or as learned."""
        self._known()
        prior = self._prior
        if prior is None or prior.each:
            raise EstimateError("The rows of this chain do not share a prior.")
        if len(prior.weights) == 1:
            return Dirichlet(prior.alphas[0])
        return DirichletMixture(weights=prior.weights, alphas=prior.alphas)

    def posterior(self, history: Any = ()) -> Any:
        """The posterior of the row after a history: rows are learned independently of each other."""
        counts = self.counts(history)
        if (
            self._prior is not None
            and self._prior.first is not None
            and (self._history(history) == self._words.card).all()
        ):
            return Dirichlet(self._prior.first).posterior(counts)
        if self._prior is not None and self._prior.each:
            at = int(self._history(history)[0])
            if at == self._words.card:
                raise EstimateError("The first state has no prior of its own.")
            return Dirichlet(self._prior.alphas[at]).posterior(counts)
        return self.prior_.posterior(counts)

    def responsibilities(self, history: Any = ()) -> Floats:
        """Posterior probability of each component of a mixture prior for the row after a history (C,)."""
        prior = self.prior_
        if not isinstance(prior, DirichletMixture):
            raise EstimateError("The prior of the rows is no mixture.")
        return prior.responsibilities(self.counts(history))

    def counts(self, history: Any = ()) -> Floats:
        """How often each state came next after a history, in the order of `states_`."""
        places = self._history(history)
        self._counted()
        depth = int(laws.whole_history(places[None, :], self._words.card)[0])
        context = self._levels.contexts(places[None, :])[depth]
        run = self._levels.find(depth + 1, np.repeat(context, self._words.card), np.arange(self._words.card))
        return at_places(self._levels.levels[depth].count, run, 0.0)

    def standard_errors(self) -> Table:
        """Standard errors of `transitions_`: ``sqrt(p (1 - p) / n(h))``, or posterior standard deviations.

        NaN for a history never seen, where nothing is smoothed.
        """
        self._known()
        options: dict[str, Any] = self.__dict__["_options"]
        if options["smoothing"] is not None or isinstance(self._law, laws.MixtureLaw) or options["estimate"] == "map":
            raise EstimateError("Standard errors are known for maximum likelihood and for means of Dirichlet rows.")
        table = self.transitions_
        total = self._totals()[..., None]
        if self._prior is not None:
            mass = self._prior.alphas.sum(axis=1)
            total = total + (mass[:, None] if self._prior.each else mass[0]) + 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.sqrt(table.values * (1.0 - table.values) / total)
        return self._table(self._axes(), np.where(total > 0, found, np.nan))

    @property
    def n_unseen_histories_(self) -> int:
        """Number of histories that were never followed by anything, seen or not."""
        words = self._known()
        self._counted()
        order = self._law.order
        if order == 0:
            return 0
        seen = Histories.of(self._levels, initial=False)
        return int(len(words.words) ** order - np.count_nonzero((seen.level == order) & self._inside(seen)))

    def _inside(self, seen: Histories) -> NDArray[np.bool_]:
        return np.asarray(
            ~self._levels.begins[self._law.order - 1][np.where(seen.level == self._law.order, seen.place, 0)]
        )

    # -- likelihoods -------------------------------------------------------------------------------------------------

    def _summary_log_likelihood(self, summary: Summary) -> float:
        windows, weights = windows_of(summary, self._layout, self._known())  # type: ignore[attr-defined]
        if len(weights) == 0:
            return 0.0
        return float(weights @ self._law.log_prob(windows.astype(np.int64)))

    def _summary_for(
        self, data: Any, sample_weight: Any, columns: Any, lengths: Any, group: Any, order: Any
    ) -> Summary:  # fmt: skip
        self._known()
        if isinstance(data, Summary):
            return data
        model: Any = self
        # Every state is read, so that one which is not known scores as such.
        options = {**model._options, "states": None}
        reader = type(model)(**{**options, "prior": None, "estimate": None, "learn_prior": False, "smoothing": None})
        summary: Summary = reader._summary_of(Given(data, lengths, group, None, order), sample_weight, columns)[0]
        return summary

    def log_likelihood(
        self,
        data: Any,
        sample_weight: Any = None,
        *,
        columns: Any = None,
        lengths: Any = None,
        group: Any = None,
        order: Any = None,
    ) -> float:
        """Sum over all events, natural logarithm; -inf where one cannot be."""
        return self._summary_log_likelihood(self._summary_for(data, sample_weight, columns, lengths, group, order))

    def score(
        self,
        data: Any,
        sample_weight: Any = None,
        *,
        columns: Any = None,
        lengths: Any = None,
        group: Any = None,
        order: Any = None,
    ) -> float:
        """Mean log-likelihood of an event: of a step, and with bounds of the end of a sequence too."""
        summary = self._summary_for(data, sample_weight, columns, lengths, group, order)
        if summary.weight <= 0:
            raise OptionError("The score of no sequences is undefined: the data have no weight.")
        return self._summary_log_likelihood(summary) / summary.weight

    def perplexity(
        self,
        data: Any,
        sample_weight: Any = None,
        *,
        columns: Any = None,
        lengths: Any = None,
        group: Any = None,
        order: Any = None,
        initial: bool | None = None,
    ) -> float:
        """``exp`` of the mean of -log p over the predicted events; infinite where one cannot be.

        initial: whether first states are among them. By default they are where sequences have bounds; in a plain chain
        the transitions alone are predicted.
        """
        summary = self._summary_for(data, sample_weight, columns, lengths, group, order)
        windows, weights = windows_of(summary, self._layout, self._known())  # type: ignore[attr-defined]
        if self._law.order > 0 and not (self._words.end is not None if initial is None else initial):
            later = windows[:, -2] != self._words.card
            windows, weights = windows[later], weights[later]
        if weights.sum() <= 0:
            raise DataError("There are no transitions: every sequence has a single step.")
        return float(np.exp(-(weights @ self._law.log_prob(windows.astype(np.int64))) / weights.sum()))

    def score_samples(
        self, data: Any, *, columns: Any = None, lengths: Any = None, group: Any = None, order: Any = None
    ) -> Floats:
        """Log-likelihood of each sequence (n_sequences,)."""
        words = self._known()
        options: dict[str, Any] = self.__dict__["_options"]
        sequences = opened(Given(data, lengths, group, None, order), options["tokens"], columns).single()
        codes, found = code_states(sequences.values)
        if (codes < 0).any():
            raise DataError("The sequences hold gaps; a Markov chain needs every state.")
        places = words.places(found)[codes]
        end = None if words.end is None else int(words.places([words.end])[0])
        windows, offsets = sequence_windows(places, sequences.offsets, self._law.order, words.card, end)
        return np.add.reduceat(self._law.log_prob(windows), offsets[:-1])
