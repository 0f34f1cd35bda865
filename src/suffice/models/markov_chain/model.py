"""Markov chains of any order: initial and transition probabilities from sequences, smoothed as asked."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain, Variable, as_python
from suffice.errors import EstimateError, FileFormatError, NotFittedError, OptionError, listing
from suffice.fitting.report import Certificate, CountedRows, MatchedStatistics, Report
from suffice.fitting.template import Solution, TemplateEstimator
from suffice.models.markov_chain.analysis import ChainAnalysis
from suffice.models.markov_chain.certificate import certify, log_likelihood, objective
from suffice.models.markov_chain.laws import Law, law_from_plain
from suffice.models.markov_chain.moments import matched_counts, rows_with_prior
from suffice.models.markov_chain.reading import Given, Vocabulary, read_summary, splitter
from suffice.models.markov_chain.rows import RowPrior
from suffice.models.markov_chain.sampling import ChainSamples
from suffice.models.markov_chain.smoothing import AbsoluteDiscount, Interpolation, Katz, KneserNey, Smoothing
from suffice.models.markov_chain.solve import Solved, Wishes, solve
from suffice.records import checked
from suffice.sources.ngrams import Layout, check_marks
from suffice.statistics import Statistic, Summary

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait

Floats = NDArray[np.float64]

_BY_NAME: Mapping[str, Smoothing] = {
    "deleted": Interpolation("deleted"),
    "interpolation": Interpolation("deleted"),
    "held-out": Interpolation("held-out"),
    "absolute": AbsoluteDiscount(),
    "katz": Katz(),
    "kneser-ney": KneserNey(),
}
_CHOICES: Mapping[str, tuple[Any, ...]] = {"estimate": (None, "mean", "map"), "unseen": ("uniform", "nan", "raise")}


class MarkovChain(ChainSamples, ChainAnalysis, TemplateEstimator):
    """A stationary Markov chain: ``p(x_1 ... x_T) = p(x_1) prod_t p(x_t | x_{t-k} ... x_{t-1})`` with k = `order`.

    Sequences come as a list of sequences of any lengths, as one array with ``lengths=``, as a table with ``group=``,
    as the path of a text file (one sequence a line) or as an iterator. Nothing is counted across their ends. The first
    steps have laws of their own, given the start of the sequence.

    Args:
        order: number of states that the next one depends on; 0 for steps that depend on none (single words).
        smoothing: None for relative frequencies; `Interpolation`, `AbsoluteDiscount`, `Katz` or `KneserNey`, or their
            names "deleted", "held-out", "absolute", "katz", "kneser-ney".
        prior: pseudo-counts of the rows: a number, numbers by state, an array (states, states), a `Dirichlet`, a
            `DirichletMixture`, or ``{"initial": ..., "transitions": ...}``.
        estimate: with a prior, "mean" of the posterior (default) or "map", its mode.
        states: the states in order; by default those seen, sorted.
        bounds: whether the end of a sequence is an event: True for the marks "<s>" and "</s>", or two marks.
        unknown: the state that stands for every state not known, such as "<unk>". With None sequences that hold one
            score -inf, and a question that names one is an error.
        min_count: states seen less often are unknown.
        tokens: how texts become sequences: "words", "characters" or a function. Files are read as words.
        unseen: the row of a history never seen, where nothing is smoothed: "uniform", "nan" or "raise". With "nan"
            tables show NaN, and events after such a history score -inf.
        learn_prior: whether the prior of the rows is learned from them, starting from the one given (EM).
        max_iter: most iterations, where weights or a prior are learned.
        tolerance: on the slope of what is maximised, in nats an event (or a row).
        max_seconds: most seconds.
        progress: show a bar.
        callback: called with the state after each iteration; True stops the fit.

    >>> chain = MarkovChain().fit(["aab", "aba"])
    >>> chain.probability("b", "a")
    0.6666666666666666
    """

    _law: Law
    _words: Vocabulary

    def __init__(
        self,
        order: int = 1,
        *,
        smoothing: Any = None,
        prior: Any = None,
        estimate: str | None = None,
        states: Any = None,
        bounds: Any = False,
        unknown: Hashable | None = None,
        min_count: int = 1,
        tokens: Any = None,
        unseen: str = "uniform",
        learn_prior: bool = False,
        max_iter: int = 1000,
        tolerance: float = 1e-9,
        max_seconds: float | None = None,
        progress: bool = False,
        callback: Any = None,
    ) -> None:
        """See the class."""
        options = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        super().__init__(**options)
        for name, allowed in _CHOICES.items():
            if options[name] not in allowed:
                raise OptionError(f"{name} is {options[name]!r}; expected one of {listing(allowed)}.")
        for name, value, least in (("order", order, 0), ("min_count", min_count, 1)):
            if not (isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= least):
                raise OptionError(f"{name} is {value!r}; expected a whole number of at least {least}.")
        if smoothing is not None and prior is not None:
            raise OptionError("Give either smoothing= or prior=: each says what events never seen get.")
        if min_count > 1 and unknown is None:
            raise OptionError("min_count needs unknown=, the state that stands for rare ones, such as '<unk>'.")
        if (estimate == "map" or learn_prior) and prior is None:
            raise OptionError("estimate='map' and learn_prior= speak of a prior; give prior=.")
        if not isinstance(unknown, Hashable):
            raise OptionError(f"unknown is {unknown!r}; expected a state, such as '<unk>'.")
        if states is not None and (
            not isinstance(states, Iterable) or not all(isinstance(s, Hashable) for s in states)
        ):
            raise OptionError(f"states is {states!r}; expected a list of states.")
        splitter(tokens)
        check_marks(bounds)
        self._way()

    def _way(self) -> Smoothing | None:
        """The way of smoothing."""
        given = self._options["smoothing"]
        if isinstance(given, str):
            if given not in _BY_NAME:
                raise OptionError(f"smoothing is {given!r}; known names are {listing(_BY_NAME)}.")
            return _BY_NAME[given]
        if given is not None and not isinstance(given, Smoothing):
            raise OptionError(
                f"smoothing is {given!r}; expected Interpolation, AbsoluteDiscount, Katz or KneserNey, or a name."
            )
        return given

    @property
    def _layout(self) -> Layout:
        start, end = check_marks(self._options["bounds"])
        closed = None if self._options["unknown"] is not None else self._declared
        return Layout(int(self._options["order"]), start, end, closed)

    @property
    def _declared(self) -> tuple[Hashable, ...] | None:
        given = self._options["states"]
        return None if given is None else Variable.discrete("states", given).states

    def _wishes(self) -> Wishes:
        o = self._options
        estimate = o["estimate"] or ("mle" if o["prior"] is None else "mean")
        chosen = (o["prior"], estimate, self._declared, as_python(o["unknown"]), int(o["min_count"]))
        return Wishes(self._way(), *chosen, o["unseen"], bool(o["learn_prior"]), self._control())

    # -- fitting -----------------------------------------------------------------------------------------------------

    def fit(
        self,
        data: Any,
        sample_weight: Any = None,
        *,
        columns: Any = None,
        lengths: Any = None,
        group: Hashable | None = None,
        order: Hashable | None = None,
        held_out: Any = None,
    ) -> Self:
        """Learn the chain from sequences.

        Args:
            data: sequences in any of the accepted forms, the path of a text file, an iterator, or a `Summary`.
            sample_weight: one weight a sequence, or the column of a table that holds it; 2 counts as two sequences.
            columns: the column of a table that holds the states.
            lengths: number of steps of each sequence, where the data are one array.
            group: name of the column that tells the sequences of a table apart.
            order: name of the column that orders the steps of each sequence, such as a time; rows of a DuckDB, Dask or
                Spark table need it, since these come in no order of their own.
            held_out: further sequences, from which ``Interpolation("held-out")`` learns its weights.
        """
        return super().fit(self._given(data, lengths, group, held_out, order), sample_weight, columns=columns)

    def partial_fit(
        self,
        data: Any,
        sample_weight: Any = None,
        *,
        columns: Any = None,
        keep: float = 1.0,
        lengths: Any = None,
        group: Hashable | None = None,
        order: Hashable | None = None,
        held_out: Any = None,
    ) -> Self:
        """Add sequences to those learned; equal to one fit on all. `keep` below 1 weights the earlier ones down."""
        self._refuse_without_counts()
        given = self._given(data, lengths, group, held_out, order)
        return super().partial_fit(given, sample_weight, columns=columns, keep=keep)

    def unlearn(
        self,
        data: Any,
        sample_weight: Any = None,
        *,
        columns: Any = None,
        lengths: Any = None,
        group: Hashable | None = None,
        order: Hashable | None = None,
        held_out: Any = None,
    ) -> Self:
        """Take sequences out again; equal to a fit that never saw them."""
        self._refuse_without_counts()
        return super().unlearn(self._given(data, lengths, group, held_out, order), sample_weight, columns=columns)

    def _refuse_without_counts(self) -> None:
        """A chain from a file of probabilities has nothing that sequences could be added to or taken from."""
        if "_law" in self.__dict__ and "summary_" not in self.__dict__:
            raise self._without_counts()

    @staticmethod
    def _given(data: Any, lengths: Any, group: Any, held_out: Any, order: Any) -> Any:
        if isinstance(data, Summary):
            if any(option is not None for option in (lengths, group, held_out, order)):
                raise OptionError(
                    "A Summary holds counts already; give neither lengths, group, order nor held_out beside it."
                )
            return data
        return Given(data, lengths, group, held_out, order)

    def _summary_of(self, data: Any, sample_weight: Any, columns: Any) -> tuple[Summary, int]:
        if isinstance(data, Summary):
            return super()._summary_of(data, sample_weight, columns)
        given = data if isinstance(data, Given) else Given(data)
        return read_summary(given, self._layout, self._options["tokens"], sample_weight, columns), 1

    def _wanted(self, columns: Sequence[Hashable]) -> Mapping[Hashable, Variable | None]:
        return dict.fromkeys(columns)

    def _ask(self, domain: Domain) -> tuple[Statistic, ...]:
        return (self._layout.question,)

    def _own(self, summary: Summary) -> Summary:
        """The summary, where it answers the question of this chain."""
        summary[self._layout.question]
        return summary

    def _solve(self, summary: Summary) -> Solution:
        wishes = self._wishes()
        solved = solve(summary, self._layout, wishes)
        self._law, self._words = solved.law, solved.words
        self._prior, self._weights, self._background = solved.prior, solved.weights, solved.background
        self._levels = solved.levels
        self._solved = solved
        notes = [*solved.notes, *self._unseen_notes(wishes)]
        estimate = "maximum likelihood" if wishes.estimate == "mle" else f"posterior {wishes.estimate}"
        return Solution(
            method=solved.method,
            estimate=estimate if wishes.smoothing is None else "smoothed frequencies",
            outcome=solved.outcome,
            log_evidence=solved.log_evidence,
            plan=f"order {self.order}, {solved.words.card:,} states, {len(solved.levels.levels[-1]):,} distinct runs",
            warnings=tuple(notes),
        )

    def _unseen_notes(self, wishes: Wishes) -> list[str]:
        """What to say about histories without a count."""
        if wishes.smoothing is not None or wishes.prior is not None:
            return []
        dangling = self.unseen_histories_
        if not dangling:
            return []
        if wishes.unseen == "raise":
            raise EstimateError(
                f"Histories that are never followed have no row: {listing(dangling)}. Give a prior= or smoothing=, or "
                "unseen='uniform' or 'nan'."
            )
        filled = "uniform" if wishes.unseen == "uniform" else "NaN"
        return [f"{len(dangling)} histories are never followed, their rows are {filled}: {listing(dangling, 4)}"]

    def _learn(self, summary: Summary, passes: int) -> Self:
        try:
            return super()._learn(summary, passes)
        finally:
            self.__dict__.pop("_solved", None)

    def _log_likelihood(self, summary: Summary) -> float:
        solved: Solved | None = self.__dict__.get("_solved")
        if solved is not None:
            return log_likelihood(solved.law, solved.levels)
        return self._summary_log_likelihood(summary)

    def _certify(self, summary: Summary) -> Certificate:
        return certify(self._solved, self._wishes().estimate)

    def matched_statistics(self) -> MatchedStatistics | None:
        """Counted steps, and n(history) p(next | history); smoothing moves them apart. None without counts."""
        self._fitted_words()
        if self._levels is None:
            return None
        wishes = self._wishes()
        prior = self._prior if wishes.smoothing is None else None
        return matched_counts(self._law, self._levels, self._words, prior, wishes.estimate)

    def counted_rows(self) -> list[CountedRows]:
        """The rows that were met with their counts and pseudo-counts; empty without a prior."""
        self._fitted_words()
        if self._levels is None or self._prior is None or self._way() is not None:
            return []
        return rows_with_prior(self._levels, self._words, self._prior)

    def _objective(self, summary: Summary, log_likelihood: float) -> float:
        return objective(self._solved, self._wishes().estimate, log_likelihood)

    @property
    def n_params_(self) -> int:
        """Free parameters: ``card - 1`` for each history of 0 to `order` states."""
        words = self._fitted_words()
        return int(sum(len(words.words) ** n for n in range(self.order + 1)) * (words.card - 1))

    def _fitted_words(self) -> Vocabulary:
        if "_words" not in self.__dict__:
            raise NotFittedError("This MarkovChain has learned nothing yet. Call fit first.")
        return self._words

    def portrait(self) -> Portrait:
        """What there is to see of it: what pages, plots and notebooks show."""
        from suffice.models.markov_chain.portrait import portrait_of

        return portrait_of(self)

    # -- files -------------------------------------------------------------------------------------------------------

    @classmethod
    def from_law(cls, law: Law, words: Vocabulary, **options: Any) -> Self:
        """A chain whose law is given, as a file of another program holds it."""
        bounds = False if words.end is None else (words.start, words.end)
        chain = cls(law.order, bounds=bounds, unknown=words.unknown, **options)
        chain._law, chain._words = law, words
        chain._prior, chain._weights, chain._background = None, (), None
        chain._levels = None  # The runs of the law are there, their counts are not.
        return chain

    def _fitted_state(self) -> dict[str, Any]:
        words, prior = self._words, self._prior
        held = None
        if prior is not None:
            held = {"weights": prior.weights, "alphas": prior.alphas, "first": prior.first, "each": prior.each}
        return {
            "law": self._law.to_plain(),
            "states": list(words.states),
            "marks": [words.start, words.end, words.unknown],
            "prior": held,
            "weights": list(self._weights),
            "background": self._background,
            "levels": None if self._levels is None or hasattr(self._law, "levels") else self._levels.to_plain(),
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        from suffice.models.markov_chain.levels import Levels

        self._law = law_from_plain(state["law"])
        self._words = checked(Vocabulary(tuple(state["states"]), *state["marks"]))
        if self._words.card != self._law.card:
            raise FileFormatError(f"The chain has {self._words.card} states and a law of {self._law.card}.")
        if self._law.order != self._options["order"]:
            raise FileFormatError(f"The chain is of order {self._options['order']!r}, its law of {self._law.order}.")
        held = state["prior"]
        self._prior = None if held is None else RowPrior(held["weights"], held["alphas"], held["first"], held["each"])
        self._weights, self._background = tuple(state["weights"]), state["background"]
        given = state["levels"]
        self._levels = getattr(self._law, "levels", None) if given is None else Levels.from_plain(given)

    def to_plain(self) -> dict[str, Any]:
        """Options, law, counts and report as plain data; a chain from elsewhere has neither counts nor report."""
        plain = super().to_plain()
        if "report_" not in self.__dict__ and "_law" in self.__dict__:
            plain |= {"fitted": self._fitted_state(), "summary": None, "report": None}
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data."""
        if plain["fitted"] is None or plain["summary"] is not None:
            return super().from_plain(plain)
        model = super().from_plain({**plain, "fitted": None})
        model._restore(plain["fitted"])
        model._levels = None
        if plain["report"] is not None:
            model.report_ = Report.from_plain(plain["report"])
        return model
