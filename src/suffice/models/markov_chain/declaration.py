"""Markov chains of any order: initial and transition probabilities from sequences, smoothed as asked."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np

from suffice.attributes import Read
from suffice.checks import byte_count, choice, is_list, is_name, is_real, whole_number
from suffice.choices import Estimate, SmoothingName, UnseenRow, choices
from suffice.errors import OptionError, shortened
from suffice.fitting.driver import Fit
from suffice.fitting.estimator import SummaryEstimator, delegated, delegated_property
from suffice.fitting.report import MatchedStatistics
from suffice.fitting.samples import unused_target
from suffice.fitting.sklearn_face import role_of_sequences
from suffice.models.markov_chain.analysis import LongRun
from suffice.models.markov_chain.distributions import NextState
from suffice.models.markov_chain.fitted import MarkovChainFitted
from suffice.models.markov_chain.input import Vocabulary, read_again, splitter
from suffice.models.markov_chain.sampling import sample_sequences
from suffice.models.markov_chain.smoothing import Smoothing
from suffice.models.markov_chain.task import MarkovChainTask, matched
from suffice.models.sequence_lengths import lengths_apart
from suffice.options import Idle
from suffice.sources.ngrams import check_marks
from suffice.sources.sequences import FormOptions, SequenceForm
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait


_CHOICES: Mapping[str, tuple[Any, ...]] = {"estimate": (None, *choices(Estimate)), "unseen": choices(UnseenRow)}


class MarkovChain(SummaryEstimator):
    """A stationary Markov chain: ``p(x_1 ... x_T) = p(x_1) prod_t p(x_t | x_{t-k} ... x_{t-1})`` with k = `order`.

    Sequences come as a list of sequences of any lengths, as one array with ``lengths=``, as a table with ``group=``,
    as the path of a text file (one sequence a line) or as an iterator. Nothing is counted across their ends. The first
    steps have distributions of their own, given the start of the sequence.

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
        memory_limit: most bytes of a table in files or a database that are in memory at a time while its sequences are
            brought together, or a text such as "500MB"; by default a share of what is free. Of a text file or an
            iterator: most bytes for counting, beside the counts themselves; runs sorted on disk are merged.
        max_iter: most iterations, where weights or a prior are learned.
        tolerance: on the slope of what is maximised, in nats per event (or a row).
        max_seconds: most seconds.
        progress: show a bar.
        callback: called with the state after each iteration; True stops the fit.

    >>> chain = MarkovChain().fit(["aab", "aba"])
    >>> chain.probability("b", "a")
    0.6666666666666666
    """

    fitted_: MarkovChainFitted

    _role = role_of_sequences
    _idle = (
        Idle(
            "unseen",
            lambda given: given["smoothing"] is not None or is_real(given["prior"]),
            "smoothing and pseudo-counts say what a history never seen gets",
        ),
    )

    def __init__(
        self,
        order: int = 1,
        *,
        smoothing: SmoothingName | Smoothing | None = None,
        prior: Any = None,
        estimate: Estimate | None = None,
        states: Any = None,
        bounds: Any = False,
        unknown: Hashable | None = None,
        min_count: int = 1,
        tokens: Any = None,
        unseen: UnseenRow = "uniform",
        learn_prior: bool = False,
        memory_limit: int | str | None = None,
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
            choice(options[name], name, allowed)
        whole_number(order, "order", 0)
        if memory_limit is not None:
            byte_count(memory_limit, "memory_limit")
        whole_number(min_count, "min_count")
        if smoothing is not None and prior is not None:
            raise OptionError("Give either smoothing= or prior=: each says what events never seen get.")
        if min_count > 1 and unknown is None:
            raise OptionError("min_count needs unknown=, the state that stands for rare ones, such as '<unk>'.")
        if (estimate == "map" or learn_prior) and prior is None:
            raise OptionError("estimate='map' and learn_prior= speak of a prior; give prior=.")
        if not isinstance(unknown, Hashable):
            raise OptionError(f"unknown is {unknown!r}; expected a state, such as '<unk>'.")
        if states is not None and not (is_list(states) and all(map(is_name, states))):
            raise OptionError(f"states is {shortened(states)}; expected a list of states.")
        splitter(tokens)
        check_marks(bounds)
        self._task().smoothing  # noqa: B018  A way of smoothing that is none is refused here.

    def _task(self) -> MarkovChainTask:
        return MarkovChainTask(self._options)

    @classmethod
    def from_distribution(cls, distribution: NextState, words: Vocabulary, **options: Any) -> Self:
        """A chain whose distribution is given, as a file of another program holds it: without counts."""
        if not (hasattr(distribution, "order") and hasattr(words, "end")):
            kinds = f"{type(distribution).__name__}, {type(words).__name__}"
            raise OptionError(
                f"from_distribution takes the distribution of the next state and the words; found {kinds}."
            )
        bounds = False if words.end is None else (words.start, words.end)
        chain = cls(distribution.order, bounds=bounds, unknown=words.unknown, **options)
        return chain._adopt(Fit(MarkovChainFitted(distribution, words, **chain._task().how())))

    # -- fitting -----------------------------------------------------------------------------------------------------

    def fit(
        self,
        data: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        columns: Any = None,
        lengths: Any = None,
        group: Hashable | None = None,
        order: Hashable | None = None,
        held_out: Any = None,
    ) -> Self:
        """Learn the chain from sequences.

        Args:
            data: sequences in any of the accepted forms, the path of a text file, an iterator, or a `Summary`.
            y: lengths, as they are given second elsewhere: numbers of steps that add up to those of one array. What
                scikit-learn hands to every model is not used here, and a warning says so.
            sample_weight: one weight a sequence, or the column of a table that holds it; 2 counts as two sequences.
            columns: the column of a table that holds the states.
            lengths: number of steps of each sequence, where the data are one array.
            group: name of the column that tells the sequences of a table apart.
            order: name of the column that orders the steps of each sequence, such as a time; rows of a DuckDB, Dask,
                Spark or Ray table need it, since these come in no order of their own.
            held_out: further sequences, from which ``Interpolation("held-out")`` learns its weights.
        """
        form = self._form(data, y, SequenceForm(lengths, group, order, columns))
        return self._learn(data, None, sample_weight=sample_weight, form=form, held_out=held_out)

    _read_again = read_again

    def partial_fit(
        self,
        data: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        keep: float = 1.0,
        held_out: Any = None,
        **form: Unpack[FormOptions],
    ) -> Self:
        """Add sequences to those learned; equal to one fit on all. `keep` below 1 weights the earlier ones down."""
        given = self._form(data, y, SequenceForm(**form))
        return self._join(keep, data, None, sample_weight=sample_weight, form=given, held_out=held_out)

    def _form(self, data: Any, y: Any, form: SequenceForm) -> SequenceForm:
        """How sequences are laid out; a target that is none of it is remarked on."""
        form, rest = lengths_apart(form, data, y, None)
        unused_target(self, rest, " Lengths of sequences are lengths=.")
        return form

    def unlearn(
        self, data: Any, *, sample_weight: Any = None, held_out: Any = None, **form: Unpack[FormOptions]
    ) -> Self:
        """Take sequences out again; equal to a fit that never saw them."""
        return self._leave(data, sample_weight=sample_weight, form=SequenceForm(**form), held_out=held_out)

    def matched_statistics(self) -> MatchedStatistics | None:
        """Counted steps, and n(history) p(next | history); smoothing moves them apart. None without counts."""
        return matched(self.fitted_)

    counted_rows = delegated(MarkovChainFitted.counted_rows)
    # -- probabilities -----------------------------------------------------------------------------------------------

    @property
    def states_(self) -> tuple[Hashable, ...]:
        """Every state that can come next, in order; the end mark and the unknown state among them."""
        states: tuple[Hashable, ...] = self.fitted_.words.states
        return states

    def probability(self, word: Hashable, history: Any = ()) -> float:
        """``p(word | history)``: one state for order 1, or a list of states, oldest first.

        An empty history is the start of a sequence, which the start mark at the head of a shorter one stands for too.
        """
        return float(np.exp(self.log_probability(word, history)))

    log_probability = delegated(MarkovChainFitted.log_probability)
    row = delegated(MarkovChainFitted.row)
    initial_: Read[Table] = delegated_property(MarkovChainFitted.initial)
    transitions_: Read[Table] = delegated_property(MarkovChainFitted.transitions)
    unseen_histories_: Read[list[Any]] = delegated_property(MarkovChainFitted.unseen_histories)
    n_unseen_histories_: Read[int] = delegated_property(MarkovChainFitted.n_unseen_histories)
    background_: Read[Table] = delegated_property(MarkovChainFitted.background_table)
    interpolation_weight_: Read[Any] = delegated_property(MarkovChainFitted.interpolation_weight)
    prior_: Read[Any] = delegated_property(MarkovChainFitted.shared_prior)
    posterior = delegated(MarkovChainFitted.posterior)
    responsibilities = delegated(MarkovChainFitted.responsibilities)
    counts = delegated(MarkovChainFitted.counts)

    @property
    def standard_errors_(self) -> Table:
        """Standard errors of `transitions_`: ``sqrt(p (1 - p) / n(h))``, or posterior standard deviations.

        NaN for a history never seen, where nothing is smoothed.
        """
        table: Table = self.fitted_.standard_errors()
        return table

    # -- the long run ------------------------------------------------------------------------------------------------

    def stationary_distribution(self) -> Table:
        """The distribution that one step leaves as it is; unique where one closed class is reached from everywhere."""
        return LongRun.of(self.fitted_).stationary_distribution()

    def hitting_times(self, targets: Any) -> Table:
        """Expected number of steps from each state until a target (a state, or a list of them) is hit."""
        return LongRun.of(self.fitted_).hitting_times(targets)

    def communicating_classes(self) -> list[tuple[Hashable, ...]]:
        """The classes of states that reach each other, closed ones first."""
        return LongRun.of(self.fitted_).communicating_classes()

    def closed_classes(self) -> list[tuple[Hashable, ...]]:
        """The classes that are never left once entered; one of a single state is an absorbing state."""
        return LongRun.of(self.fitted_).closed_classes()

    @property
    def absorbing_states_(self) -> list[Hashable]:
        """States that are never left."""
        return [members[0] for members in self.closed_classes() if len(members) == 1]

    def absorption_probabilities(self) -> Table:
        """Probability of ending in each closed class from each state.

        A `Table` over "from" and "class", the number of the class in `closed_classes`.
        """
        return LongRun.of(self.fitted_).absorption_probabilities()

    def is_ergodic(self) -> bool:
        """Whether every state is reached from every other, and not in a fixed rhythm only."""
        return LongRun.of(self.fitted_).is_ergodic()

    # -- sequences ---------------------------------------------------------------------------------------------------

    def score(self, data: Any, y: Any = None, *, sample_weight: Any = None, **form: Unpack[FormOptions]) -> float:
        """Mean log-likelihood of an event: of a step, and with bounds of the end of a sequence too; `y` as in `fit`."""
        given = self._form(data, y, SequenceForm(**form))
        summary = self._read("compare", data, sample_weight=sample_weight, form=given).statistics
        if summary.weight <= 0:
            raise OptionError("The score of no sequences is undefined: the data have no weight.")
        return float(self.fitted_.log_likelihood(summary)) / summary.weight

    def perplexity(
        self, data: Any, *, sample_weight: Any = None, initial: bool | None = None, **form: Unpack[FormOptions]
    ) -> float:
        """``exp`` of the mean of -log p over the predicted events; infinite where one cannot be.

        initial: whether first states are among them. By default they are where sequences have bounds; in a plain chain
        the transitions alone are predicted.
        """
        summary = self._read("compare", data, sample_weight=sample_weight, form=SequenceForm(**form)).statistics
        first = self.fitted_.words.end is not None if initial is None else initial
        return float(self.fitted_.perplexity(summary, initial=first))

    score_samples = delegated(MarkovChainFitted.score_samples)

    def sample(
        self, n: int = 1, length: int | None = None, *, random_state: Any = None, history: Any = ()
    ) -> list[list[Hashable]]:
        """Draw `n` sequences that go on from a history, by default from the start.

        length: steps of each; with bounds a sequence ends with its end mark (which is left out), or after `length`
        steps (by default 1000).
        """
        return sample_sequences(self.fitted_, n, length, history, random_state)

    def portrait(self) -> Portrait:
        """What there is to see of it: what pages, plots and notebooks show."""
        from suffice.models.markov_chain.portrait import portrait_of_model

        return portrait_of_model(self)

    # -- files -------------------------------------------------------------------------------------------------------

    def _fitted_from(self, plain: Mapping[str, Any]) -> MarkovChainFitted:
        task = self._task()
        return MarkovChainFitted.from_dict(plain, self._options["order"], **task.how())
