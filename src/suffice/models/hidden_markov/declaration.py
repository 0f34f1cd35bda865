"""Hidden Markov models: a chain of states that are not seen, each with a distribution of what is seen."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Self, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats
from suffice.attributes import Read
from suffice.checks import choice, weights_of
from suffice.choices import CovarianceShape, Estimate, PathMethod, Squarem, Topology, choices
from suffice.errors import EstimateError, OptionError, warn
from suffice.families.base import generator
from suffice.fitting.contract import Inputs, Judgement
from suffice.fitting.driver import Fit, run, solve
from suffice.fitting.estimator import StatesEstimator, delegated, delegated_property, frame_of
from suffice.fitting.report import CountedRows, Curvature, Report
from suffice.fitting.sklearn_face import role_of_sequences
from suffice.models.hidden_markov.counting import KnownSequences
from suffice.models.hidden_markov.decoding import BestPaths, LabelledStates, StateDecoder, StatePaths, StateShares
from suffice.models.hidden_markov.expectation import ChainExpectation
from suffice.models.hidden_markov.fitted import HiddenMarkovFitted
from suffice.models.hidden_markov.input import (
    inputs_of,
    open_observations,
    open_paths,
    read_again,
    split_form,
)
from suffice.models.hidden_markov.matched import LearnedFrom
from suffice.models.hidden_markov.options import IDLE, check_options
from suffice.models.hidden_markov.parameters import Statistics
from suffice.models.hidden_markov.standard_errors import standard_errors
from suffice.models.hidden_markov.tables import PROBABILITIES
from suffice.models.hidden_markov.task import HiddenMarkovTask
from suffice.models.sequence_lengths import number_beside
from suffice.options import RunOptions, own_options
from suffice.sources.sequences import ColumnOptions, FormOptions, SequenceForm

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait
    from suffice.statistics import Summary


class HiddenMarkovModel(StatesEstimator):
    """P(x, z) = initial[z_1] f(x_1 | z_1) prod_t transitions[z_(t-1), z_t] f(x_t | z_t), with z hidden.

    Sequences are a list (of lists, texts or arrays), one array with `lengths`, or a table with a `group` column; all
    give the same fit. Where every state is known the estimate is a count; else Baum-Welch (EM) with exact
    expectations, which never lowers the likelihood. Missing values (None, NaN) in observations and in known states may
    be anywhere. Questions about sequences take `lengths`, `group`, `order` and `columns` as `fit` does; answers by step
    have the form of the sequences: a list of arrays for a list, one array for one sequence or an array with lengths.

    Args:
        states: how many hidden states, or their names.
        emission: the distribution of what is seen in a state, unfitted: `Categorical`, `Bernoulli`, `Normal`,
            `MultivariateNormal`, `Poisson`, `StudentT`, `VonMises` or any other family of one column, `Dirichlet` for
            proportions; `Mixture` of one; or a list (or dict by column) of distributions for columns that are
            independent given the state. One distribution of one column serves several columns alike. `GLM` makes the
            first column a response, and the others covariates.
        covariance: of `MultivariateNormal`: "full", "diagonal", "spherical", or "tied", one for all states; "tied" is
            for the variance of `Normal` too.
        prior: a number of pseudo-counts for first states, transitions, symbols and tables of durations, or a dict with
            some of "initial", "transitions", "emissions", "durations": numbers, arrays, `Dirichlet`, or the conjugate
            prior of the distribution. A number says nothing about densities such as `Normal`; the report notes it.
        estimate: with a prior, "mean" (default: pseudo-counts are added as they are) or "map" (one less is added). In
            EM adding pseudo-counts climbs to the mode under Dirichlet(1 + pseudo-counts); densities take their mode.
        initial: start values (K,), or "stationary": the first state has the stationary distribution of the transitions.
            Zeros of all start values stay zero in every run.
        transitions: start values (K, K).
        durations: how long states last, where that is not geometric: the longest duration of a table, its start values,
            `Poisson` or `NegativeBinomial` (of the steps after the first); a list or dict by state. Such a state has
            no transition to itself. A sequence begins with a segment; its end cuts the last one, which may last longer.
        emissions: start values: a matrix for symbols, else one distribution for each state.
        topology: "left-right" (no way back), "linear" (stay or go to the next), or None.
        fixed: parts that keep their start values: some of "initial", "transitions", "emissions", "durations".
        tied: groups of states that share one emission.
        n_init: runs of EM; the first begins at the start values, the best is kept.
        random_state: seed of the starts.
        acceleration: None, or "squarem".
        variance_floor: share of the variance of a column below which no variance falls. For gamma, beta, Dirichlet and
            exponential distributions, share of the spread of the distribution of all steps.
        threads: of the E-step; None for all cores. The result does not depend on them.
        memory_limit: most bytes of sequences that are kept in memory of a table in files or a database, or a text such
            as "2GB"; beyond it they are kept in a scratch folder. By default a share of what is free.
        max_iter: most steps of a run.
        tolerance: EM stops when no parameter changes by more; real ones in units of their columns.
        run: see `RunOptions`.

    >>> from suffice import Categorical
    >>> model = HiddenMarkovModel(["F", "L"], emission=Categorical(), prior=1.0)
    >>> model.fit(["HTHH", "HHT"], states=["FFLL", "LLF"]).transitions_.round(3)
    array([[0.5, 0.5],
           [0.4, 0.6]])
    """

    _idle = IDLE
    _role = role_of_sequences

    def __init__(
        self,
        states: Any,
        emission: Any,
        *,
        covariance: CovarianceShape = "full",
        prior: Any = None,
        estimate: Estimate | None = None,
        initial: Any = None,
        transitions: Any = None,
        durations: Any = None,
        emissions: Any = None,
        topology: Topology | None = None,
        fixed: Any = (),
        tied: Any = None,
        n_init: int = 1,
        random_state: Any = 0,
        acceleration: Squarem | None = None,
        variance_floor: float = 1e-6,
        threads: int | None = None,
        memory_limit: int | str | None = None,
        max_iter: int = 1000,
        tolerance: float = 1e-6,
        **run: Unpack[RunOptions],
    ) -> None:
        """See the class."""
        super().__init__(**own_options(locals()))
        check_options(self._options)

    def _task(self) -> HiddenMarkovTask:
        return HiddenMarkovTask(self._options)

    def _adopt(self, fit: Fit[Any]) -> Self:
        """Take over a fit, judged now, counts too: what speaks against it is a warning at the line of the fit."""
        fit.report  # noqa: B018
        return super()._adopt(fit)

    # -- fitting -----------------------------------------------------------------------------------------------------

    def _summarized(self, given: Inputs) -> Summary:
        return self._task().summarize(given)

    def fit(
        self,
        sequences: Any,
        states: Any = None,
        *,
        lengths: ArrayLike | None = None,
        group: Hashable | None = None,
        order: Hashable | None = None,
        sample_weight: ArrayLike | None = None,
        columns: Sequence[Hashable] | None = None,
    ) -> Self:
        """Learn from sequences.

        Args:
            sequences: a list of sequences, one array, or a table: a frame, a Parquet or CSV file, a DuckDB relation; or
                a `Summary` of sequences whose states were all known.
            states: known states, in the form of the sequences (or the name of a column); None for a step, or for a
                whole sequence, that is not known. Numbers of steps that add up to those of one array are `lengths`.
            lengths: steps of each sequence, where they are given as one array.
            group: column of a table that tells sequences apart.
            order: column of a table that orders the steps of each sequence, such as a time; rows of a DuckDB, Dask,
                Spark or Ray table need it, since these come in no order of their own.
            sample_weight: one weight a sequence; 2 counts as two sequences.
            columns: columns of a table to read.

        Returns:
            self
        """
        self._refuse_idle()
        return self._learn(inputs_of(sequences, states, sample_weight, SequenceForm(lengths, group, order, columns)))

    _read_again = read_again

    def partial_fit(
        self, sequences: Any, states: Any = None, *, sample_weight: ArrayLike | None = None, **form: Unpack[FormOptions]
    ) -> Self:
        """Add sequences whose states are all known to those learned: equal to one fit of all."""
        given = inputs_of(sequences, states, sample_weight, SequenceForm(**form))
        return self._learn(given) if self._bare_report() is None else self._change(given, 1)

    def unlearn(
        self, sequences: Any, states: Any = None, *, sample_weight: ArrayLike | None = None, **form: Unpack[FormOptions]
    ) -> Self:
        """Take sequences whose states are all known out again."""
        return self._change(inputs_of(sequences, states, sample_weight, SequenceForm(**form)), -1)

    def _learn(self, given: Inputs) -> Self:
        fit = run(self._task(), given, self._control())
        fit.frame = frame_of(given.data)
        return self._adopt(fit)

    def _change(self, given: Inputs, sign: int) -> Self:
        known = self.fitted_
        if known.hidden:
            raise OptionError(
                "This model was learned by EM, which needs all sequences at once; only counts of known states can be "
                "added to. Fit all sequences together."
            )
        task = self._task()
        more = cast(KnownSequences, task.read(given, known, "join"))
        joined = task.joined(more, known, self.statistics_, self.report_.rows, sign)
        fit = solve(task.counting(joined), joined, self._control())
        fit.frame = None if self._fit is None else self._fit.frame
        return self._adopt(fit)

    # -- what was learned --------------------------------------------------------------------------------------------

    @property
    def fitted_(self) -> HiddenMarkovFitted:
        """What was learned: a frozen value."""
        fitted: HiddenMarkovFitted = super().fitted_
        return fitted

    @property
    def states_(self) -> tuple[Hashable, ...]:
        """The hidden states, in the order of the parameters."""
        return self.fitted_.states

    @property
    def columns_(self) -> list[Hashable] | None:
        """The names of what is seen at a step; None where it has none."""
        return self.fitted_.columns

    initial_: Read[Floats] = delegated_property(HiddenMarkovFitted.initial)
    durations_: Read[list[Any]] = delegated_property(HiddenMarkovFitted.durations)
    transitions_: Read[Floats] = delegated_property(HiddenMarkovFitted.transitions)
    emissions_: Read[list[Any]] = delegated_property(HiddenMarkovFitted.emissions)
    # The names of hmmlearn.
    startprob_ = initial_
    transmat_ = transitions_
    means_: Read[Floats] = delegated_property(HiddenMarkovFitted.means)
    covars_: Read[Floats] = delegated_property(HiddenMarkovFitted.covariances)
    emission_probabilities_: Read[Floats] = delegated_property(HiddenMarkovFitted.symbol_probabilities)
    symbols_: Read[tuple[Hashable, ...]] = delegated_property(HiddenMarkovFitted.symbols)

    @property
    def scores_(self) -> tuple[float, ...]:
        """The objective that each run of EM reached, -inf for a run that failed; empty where states were counted."""
        return self.fitted_.scores

    @property
    def n_expectations_(self) -> int:
        """How often EM went through the sequences, all runs together; 0 where states were counted."""
        return self.fitted_.passes

    @property
    def statistics_(self) -> Statistics:
        """Counts of first states and transitions, and the statistics of what states emit.

        Expected given the sequences where states are hidden.
        """
        return self._learned_from().statistics

    def _learned_from(self) -> LearnedFrom:
        held: LearnedFrom = self._judgement().kept
        return held

    def counted_rows(self) -> list[CountedRows]:
        """Rows of first states, transitions and symbols with their counts and priors; empty without a prior."""
        # EM climbs to the mode under pseudo-counts + 1; of known states the pseudo-counts are the prior.
        more = 1.0 if self.fitted_.hidden or self._options["estimate"] == "map" else 0.0
        return self._learned_from().rows_with_prior(self.fitted_, more)

    @property
    def standard_errors_(self) -> dict[str, Any]:
        """Standard errors from the observed information of the sequences that were learned from.

        A dict with "initial" (K,), "transitions" (K, K) and "emissions" (a dict of arrays, laid out as the parameters
        of the distributions). inf where the sequences do not determine a parameter, NaN where it lies on the edge, or
        where the objective still rises. `identifiability` names what is flat.
        """
        return self._learned_from().standard_errors(self.fitted_)

    # -- likelihood --------------------------------------------------------------------------------------------------

    def score_samples(self, sequences: Any, lengths: ArrayLike | None = None, **form: Unpack[ColumnOptions]) -> Floats:
        """Log P(sequence) of each sequence (n,), states summed out; -inf where it is impossible."""
        return np.asarray(self._answered(sequences, SequenceForm(lengths, **form), StateDecoder.scores))

    def score(
        self, sequences: Any, states: Any = None, *, sample_weight: ArrayLike | None = None, **form: Unpack[FormOptions]
    ) -> float:
        """Mean log-likelihood of a step (weighted), natural logarithm; `states` are not used but as `lengths`."""
        fitted = self.fitted_
        given = inputs_of(sequences, states, sample_weight, SequenceForm(**form))
        if given["states"] is not None:
            warn("states are not used: the score is of sequences, whatever their states. accuracy compares states.")
        there = self._task().log_likelihood(replace(given, more={**given.more, "states": None}), fitted)
        if there is not None:
            return there[0] / there[1]
        observed = fitted.open(sequences, given["form"]).sequences
        observed = replace(observed, sample_weight=weights_of(sample_weight, len(observed)))
        if not observed.weight > 0:
            raise OptionError("The score of no steps is undefined: the sequences have no weight.")
        expectation = ChainExpectation(observed, fitted.emission, self._options["threads"])
        values, used = expectation.log_likelihoods(fitted.parameters), observed.weights > 0
        return float(observed.weights[used] @ values[used]) / observed.weight

    # -- states ------------------------------------------------------------------------------------------------------

    def predict(
        self,
        sequences: Any,
        lengths: ArrayLike | None = None,
        *,
        method: PathMethod = "viterbi",
        group: Hashable | None = None,
        order: Hashable | None = None,
        columns: Sequence[Hashable] | None = None,
    ) -> StatePaths:
        """The states: of the most probable path ("viterbi"), or the most probable one at each step ("posterior").

        Of a Dask, Spark or Ray frame with `group` one of the same kind: a row for each of its rows, with group, order
        and the column "state" ("state_" where it has one already); not computed yet.
        """
        choice(method, "method", choices(PathMethod))
        form = SequenceForm(lengths, group, order, columns)
        there = self._task().decoded(sequences, form, self.fitted_, method)
        answer = self._answered(sequences, form, methodcaller("states", method)) if there is None else there
        return cast(StatePaths, answer)

    def predict_proba(
        self,
        sequences: Any,
        lengths: ArrayLike | None = None,
        *,
        group: Hashable | None = None,
        order: Hashable | None = None,
        columns: Sequence[Hashable] | None = None,
    ) -> StateShares:
        """P(state at a step | whole sequence) (steps, K): smoothing.

        Of a frame of Dask, Spark or Ray a frame, as in `predict`, with a column for each state.
        """
        form = SequenceForm(lengths, group, order, columns)
        there = self._task().decoded(sequences, form, self.fitted_, PROBABILITIES)
        return cast(StateShares, self._answered(sequences, form, StateDecoder.smoothed) if there is None else there)

    def decode(
        self,
        sequences: Any,
        lengths: ArrayLike | None = None,
        *,
        group: Hashable | None = None,
        order: Hashable | None = None,
        columns: Sequence[Hashable] | None = None,
    ) -> tuple[float, StatePaths]:
        """Log P(path, sequence) of the most probable path, summed over sequences, and its states as in `predict`."""
        form = SequenceForm(lengths, group, order, columns)
        there = self._task().answered(sequences, form, self.fitted_, methodcaller("best", 1))
        if there is None:
            return self._asked(sequences, form).decoded()
        return float(np.sum([log for [(_, log)] in there])), [path for [(path, _)] in there]

    def filter(self, sequences: Any, lengths: ArrayLike | None = None, **form: Unpack[ColumnOptions]) -> StateShares:
        """P(state at a step | sequence up to that step) (steps, K)."""
        return cast(StateShares, self._answered(sequences, SequenceForm(lengths, **form), StateDecoder.filtered))

    def pairwise(self, sequences: Any, lengths: ArrayLike | None = None, **form: Unpack[ColumnOptions]) -> StateShares:
        """P(state at a step, state at the next | whole sequence) (steps - 1, K, K).

        A list of such arrays, but for one sequence that is no list of sequences.
        """
        return cast(StateShares, self._answered(sequences, SequenceForm(lengths, **form), StateDecoder.pairs))

    def best_paths(self, sequences: Any, n: int = 2, **form: Unpack[FormOptions]) -> BestPaths:
        """The `n` most probable paths of each sequence with their log P(path, sequence), best first.

        For one sequence a list of pairs (states, log probability), else a list of such lists; fewer where there are
        fewer paths.
        """
        n = number_beside(n, "n")
        return cast(BestPaths, self._answered(sequences, SequenceForm(**form), methodcaller("best", n)))

    def sample_paths(
        self, sequences: Any, n: int = 1, *, random_state: Any = None, **form: Unpack[FormOptions]
    ) -> list[NDArray[Any]] | list[list[NDArray[Any]]]:
        """`n` paths of states drawn from P(states | sequence): a list of `n` answers in the form of the sequences."""
        n = number_beside(n, "n")
        return self._asked(sequences, SequenceForm(**form)).drawn_paths(n, generator(random_state))

    # -- future and samples ------------------------------------------------------------------------------------------

    def forecast(self, sequences: Any, steps: int = 1, **form: Unpack[FormOptions]) -> StateShares:
        """P(state | sequence) (steps, K) for the steps that follow a sequence; a list where there are several.

        `forecast_distribution` makes distributions of observations of them.
        """
        steps = number_beside(steps, "steps")
        return cast(StateShares, self._answered(sequences, SequenceForm(**form), methodcaller("ahead", steps)))

    forecast_distribution = delegated(HiddenMarkovFitted.forecast_distribution)

    def sample(self, steps: int = 1, n: int | None = None, *, random_state: Any = None) -> tuple[Any, Any]:
        """Observations and states of a new sequence; with `n` lists of as many.

        Observations are arrays; of a model of several columns that was fitted to a frame they are frames of that kind.
        """
        frame = None if self._fit is None else self._fit.frame
        return self.fitted_.sample(steps, n, random_state=random_state, frame=frame)

    # -- evaluation --------------------------------------------------------------------------------------------------

    def match_states(
        self, sequences: Any, states: Any, *, method: PathMethod = "viterbi", **form: Unpack[FormOptions]
    ) -> dict[Hashable, Hashable]:
        """Which true label each hidden state stands for, so that the most steps agree (an assignment problem).

        A hidden state that is left over stands for None. method: as in `predict`.
        """
        return self._labelled(sequences, states, SequenceForm(**form), method).match()

    def accuracy(
        self, sequences: Any, states: Any, *, method: PathMethod = "viterbi", **form: Unpack[FormOptions]
    ) -> float:
        """Share of steps whose predicted state, matched to the true labels, is right.

        Steps without a true label are left out. method: as in `predict`.
        """
        return self._labelled(sequences, states, SequenceForm(**form), method).accuracy()

    def _labelled(self, sequences: Any, states: Any, form: SequenceForm, method: PathMethod) -> LabelledStates:
        """Predicted states beside true labels."""
        choice(method, "method", choices(PathMethod))
        there = self._task().labelled(sequences, states, form, self.fitted_, method)
        if there is not None:
            return there
        form, states = split_form(self.fitted_.form_of(sequences, form), sequences, states)
        answer = self.predict(sequences, method=method, **vars(form))
        path = np.concatenate(answer) if isinstance(answer, list) else answer
        truth = open_paths(states, open_observations(sequences, form), form.lengths)
        return LabelledStates.of(path.tolist(), truth.values.tolist(), self.states_)

    def standard_errors_of(
        self, sequences: Any, states: Any = None, *, sample_weight: ArrayLike | None = None, **form: Unpack[FormOptions]
    ) -> dict[str, Any]:
        """As `standard_errors_`, of sequences that are given again: where the fit has not worked them out."""
        problem = self._task().compared(inputs_of(sequences, states, sample_weight, SequenceForm(**form)), self.fitted_)
        values, step = self.fitted_.parameters, self._learned_from().step
        return standard_errors(problem.observed_information(values), problem.learner, values, step)

    def identifiability(
        self, sequences: Any, states: Any = None, *, sample_weight: ArrayLike | None = None, **form: Unpack[FormOptions]
    ) -> Curvature:
        """Whether these sequences, which should be those learned from, determine the parameters.

        Rank of the information of the objective, what is flat, and whether EM stands at a maximum: two passes for each
        free parameter. `fit` looks by itself where that costs little, and tells it in the certificate.
        """
        problem = self._task().compared(inputs_of(sequences, states, sample_weight, SequenceForm(**form)), self.fitted_)
        information = problem.observed_information(self.fitted_.parameters)
        if information is None:
            raise EstimateError("No parameter is free, or the information is not finite: there is nothing to look at.")
        return information.curvature(self._learned_from().step, self.scores_)

    def _answered(self, sequences: Any, form: SequenceForm, ask: Callable[[StateDecoder], Any]) -> Any:
        """What is asked about sequences: of a table in files or elsewhere answers come here, its steps do not."""
        there = self._task().answered(sequences, form, self.fitted_, ask)
        return ask(self._asked(sequences, form)) if there is None else there

    def _asked(self, sequences: Any, form: SequenceForm) -> StateDecoder:
        """Who answers about sequences."""
        fitted = self.fitted_
        return StateDecoder(fitted, fitted.open(sequences, form), self._options["threads"])

    def portrait(self) -> Portrait:
        """What there is to see of it: what pages, plots and notebooks show."""
        from suffice.models.hidden_markov.portrait import portrait_of_model

        return portrait_of_model(self)

    # -- files -------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Options, what was learned and what from, and the report as plain data; no sequence is kept."""
        plain = super().to_dict()
        if plain["fitted"] is not None:
            plain["learned_from"] = self._learned_from().to_dict()
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data, checking shapes and rows."""
        model = cls._with_options(plain)
        if plain["fitted"] is not None:
            fitted = HiddenMarkovFitted.from_dict(plain["fitted"], model._options)
            learner = model._task().learner(fitted.emission, fitted.states)
            held = LearnedFrom.from_dict(plain["learned_from"], learner, fitted)
            report = Report.from_dict(plain["report"])
            figures = (report.log_likelihood, report.objective, report.certificate)
            judged = Judgement(*figures, gap=held.step, matched=partial(held.matched, fitted), kept=held)
            model._adopt(Fit(fitted, report, judged))
        return model
