"""Hidden Markov models: a chain of states that are not seen, each with a law of what is seen."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from suffice.errors import EstimateError, NotFittedError, OptionError, SufficeWarning, listing
from suffice.families.base import generator
from suffice.iteration import Outcome, fingerprint
from suffice.models.em.runs import run_all
from suffice.models.hidden_markov.build import Wish, build_emission
from suffice.models.hidden_markov.check import stationarity_gap
from suffice.models.hidden_markov.decoding import Decoding
from suffice.models.hidden_markov.emissions.contract import Emission
from suffice.models.hidden_markov.expectation import Expectation
from suffice.models.hidden_markov.learning import HiddenMarkovEM, Learner, undefined
from suffice.models.hidden_markov.observed import Observed
from suffice.models.hidden_markov.parameters import Parameters, Statistics
from suffice.models.hidden_markov.plain import HiddenMarkovFile
from suffice.models.hidden_markov.priors import pseudo_counts, split_prior
from suffice.models.hidden_markov.reading import (
    open_observations,
    read_labels,
    read_weights,
    split_states,
    state_names,
)
from suffice.models.hidden_markov.start import Start, known_counts
from suffice.models.hidden_markov.structure import allowed_cells, read_fixed, read_rows, read_tied
from suffice.report import Certificate, Report

Floats = NDArray[np.float64]

SCALE = "largest change by one more EM step; real parameters in units of their columns"
ESTIMATES = (None, "mean", "map")


class HiddenMarkovModel(Decoding, HiddenMarkovFile):  # type: ignore[misc]  # sequences have a form of their own
    """P(x, z) = initial[z_1] f(x_1 | z_1) prod_t transitions[z_(t-1), z_t] f(x_t | z_t), with z hidden.

    Sequences are a list (of lists, texts or arrays), one array with `lengths`, or a table with a `group` column; all
    give the same fit. Where every state is known the estimate is a count; else Baum-Welch (EM) with exact
    expectations, which never lowers the likelihood. Gaps (None, NaN) in observations and in known states may be
    anywhere.

    Args:
        states: how many hidden states, or their names.
        emission: the law of what is seen in a state, unfitted: `Categorical`, `Bernoulli`, `Normal`,
            `MultivariateNormal`, `Poisson` or any other exponential family of one column; `Mixture` of one; or a list
            (or dict by column) of laws for columns that are independent given the state. One law of one column serves
            several columns alike.
        covariance: of `MultivariateNormal`: "full", "diagonal", "spherical", or "tied", one for all states.
        prior: a number of pseudo-counts for first states, transitions and symbols, or a dict with some of "initial",
            "transitions" and "emissions": numbers, arrays, `Dirichlet`, or the conjugate prior of the law. A number
            says nothing about densities such as `Normal`; the report notes that they have no prior.
        estimate: with a prior, "mean" (default: pseudo-counts are added as they are) or "map" (one less is added). In
            EM adding pseudo-counts climbs to the mode under Dirichlet(1 + pseudo-counts); other laws take their mode.
        initial: start values (K,), or "stationary": the first state has the stationary law of the transitions.
        transitions: start values (K, K); zeros stay zero.
        emissions: start values: a matrix for symbols, else one law for each state.
        topology: "left-right" (no way back), "linear" (stay or go to the next), or None.
        fixed: parts that keep their start values: some of "initial", "transitions", "emissions".
        tied: groups of states that share one emission.
        n_init: runs of EM; the first begins at the start values, the best is kept.
        random_state: seed of the starts.
        acceleration: None, or "squarem".
        variance_floor: share of the variance of a column below which no variance falls.
        threads: of the E-step; None for all cores. The result does not depend on them.
        max_iter: most steps of a run.
        tolerance: EM stops when no parameter changes by more; real ones in units of their columns.
        max_seconds: most seconds of all runs together.
        progress: show a bar.
        callback: called with the state after each step; True stops.
        checkpoint: file from which an interrupted fit goes on.

    >>> from suffice import Categorical
    >>> model = HiddenMarkovModel(["F", "L"], emission=Categorical(), prior=1.0)
    >>> model.fit(["HTHH", "HHT"], states=["FFLL", "LLF"]).transitions_.round(3)
    array([[0.5, 0.5],
           [0.4, 0.6]])
    """

    _emission: Emission
    _values: Parameters
    _statistics: Statistics | None
    _names: tuple[Hashable, ...]

    def __init__(
        self,
        states: Any,
        emission: Any,
        *,
        covariance: str = "full",
        prior: Any = None,
        estimate: str | None = None,
        initial: Any = None,
        transitions: Any = None,
        emissions: Any = None,
        topology: str | None = None,
        fixed: Any = (),
        tied: Any = None,
        n_init: int = 1,
        random_state: Any = 0,
        acceleration: str | None = None,
        variance_floor: float = 1e-6,
        threads: int | None = None,
        max_iter: int = 1000,
        tolerance: float = 1e-6,
        max_seconds: float | None = None,
        progress: bool = False,
        callback: Any = None,
        checkpoint: Any = None,
    ) -> None:
        """See the class."""
        options = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        super().__init__(**options)
        names = state_names(states)
        split_prior(prior)
        read_tied(tied, names)
        if read_fixed(fixed) - {name for name in ("initial", "transitions", "emissions") if options[name] is not None}:
            raise OptionError(
                f"fixed is {fixed!r}; what is fixed needs start values, by initial=, transitions= or emissions=."
            )
        if estimate not in ESTIMATES:
            raise OptionError(f"estimate is {estimate!r}; expected one of {listing(ESTIMATES)}.")
        if not (isinstance(n_init, int | np.integer) and n_init >= 1):
            raise OptionError(f"n_init is {n_init!r}; expected a whole number of at least 1.")

    # -- fitting -----------------------------------------------------------------------------------------------------

    def fit(  # type: ignore[override]
        self,
        sequences: Any,
        states: Any = None,
        *,
        lengths: Any = None,
        group: Any = None,
        sample_weight: Any = None,
        columns: Any = None,
    ) -> Self:
        """Learn from sequences.

        Args:
            sequences: a list of sequences, one array, or a table.
            states: known states, in the form of the sequences (or the name of a column); None for a step, or for a
                whole sequence, that is not known.
            lengths: steps of each sequence, where they are given as one array.
            group: column of a table that tells sequences apart.
            sample_weight: one weight a sequence; 2 counts as two sequences.
            columns: columns of a table to read.

        Returns:
            self
        """
        fresh = self._fresh()
        observed = fresh._read(sequences, states, lengths, group, sample_weight, columns, known=None)
        fresh._learn_from(observed)
        return self._become(fresh)

    def partial_fit(self, sequences: Any, states: Any = None, **form: Any) -> Self:  # type: ignore[override]
        """Add sequences whose states are all known to those learned: equal to one fit of all."""
        if "_values" not in self.__dict__:
            return self.fit(sequences, states, **form)
        return self._change(sequences, states, form, 1)

    def unlearn(self, sequences: Any, states: Any = None, **form: Any) -> Self:  # type: ignore[override]
        """Take sequences whose states are all known out again."""
        return self._change(sequences, states, form, -1)

    def _change(self, sequences: Any, states: Any, form: Mapping[str, Any], sign: int) -> Self:
        self._fitted()
        if self._statistics is None:
            raise OptionError(
                "This model was learned by EM, which needs all sequences at once; only counts of known states can be "
                "added to. Fit all sequences together."
            )
        fresh = self._fresh()
        form = {"lengths": None, "group": None, "sample_weight": None, "columns": None} | dict(form)
        observed = fresh._read(sequences, states, *form.values(), known=self)
        if not _complete(observed):
            raise OptionError("Only sequences whose states are all known can be added or taken out.")
        start = fresh._start(observed, fresh._learner(self._emission))
        more, before = known_counts(Expectation(observed, self._emission), start, np.random.default_rng(0))
        assert self._statistics is not None
        joined = self._statistics + more if sign > 0 else _left(self._statistics - more, self._statistics)
        fresh._close(joined, before, start.learner, rows=self.report_.rows + sign * observed.n_steps)
        return self._become(fresh)

    def _fresh(self) -> Self:
        fresh = copy.copy(self)
        fresh.__dict__.update({"_options": dict(self._options)})
        return fresh

    def _become(self, fresh: Self) -> Self:
        self.__dict__.clear()
        self.__dict__.update(fresh.__dict__)
        return self

    def _read(
        self, sequences: Any, states: Any, lengths: Any, group: Any, weight: Any, columns: Any, *, known: Any
    ) -> Observed:
        """Observed sequences; the emission is built from them unless one is known."""
        columns, states = split_states(sequences, states, group, columns)
        opened = open_observations(sequences, lengths, group, columns)
        names = state_names(self._options["states"]) if known is None else known._names
        counted = known is None and isinstance(self._options["states"], int | np.integer)
        labels, self._names = read_labels(states, opened.sequences, lengths, names, counted)
        hidden = labels is None or bool((labels < 0).any())
        if known is None:
            wish = self._wish(hidden)
            self._columns = opened.sequences.columns
            self._emission = build_emission(self._options["emission"], wish, opened.columns, self._columns)
        data = self._emission.read(opened.columns)
        return Observed(data, opened.sequences.offsets, read_weights(weight, opened.sequences.n_sequences), labels)

    def _wish(self, hidden: bool) -> Wish:
        options, prior = self._options, split_prior(self._options["prior"]).get("emissions")
        size = len(state_names(options["states"]))
        return Wish(size, options["covariance"], options["variance_floor"], prior, options["estimate"], hidden)

    def _learner(self, emission: Emission) -> Learner:
        options, prior, size = self._options, split_prior(self._options["prior"]), len(self._names)
        is_stationary = isinstance(options["initial"], str)
        if is_stationary and options["initial"] != "stationary":
            raise OptionError(f"initial is {options['initial']!r}; expected probabilities, or 'stationary'.")
        first, pairs = self._allowed()
        estimate = options["estimate"]
        return Learner(
            emission,
            pseudo_counts(prior.get("initial"), (size,), estimate, "initial") * first,
            pseudo_counts(prior.get("transitions"), (size, size), estimate, "transitions") * pairs,
            read_fixed(options["fixed"]),
            read_tied(options["tied"], self._names),
            is_stationary,
        )

    def _given(self) -> tuple[Floats | None, Floats | None]:
        size, initial = len(state_names(self._options["states"])), self._options["initial"]
        first = None if isinstance(initial, str) else read_rows(initial, (size,), "initial")
        return first, read_rows(self._options["transitions"], (size, size), "transitions")

    def _allowed(self) -> tuple[Any, Any]:
        initial, transitions = self._given()
        size = len(state_names(self._options["states"]))
        return allowed_cells(self._options["topology"], initial, transitions, size)

    def _start(self, observed: Observed, learner: Learner) -> Start:
        initial, transitions = self._given()
        given = self._options["emissions"]
        emission = None if given is None else learner.emission.parameters_of(given)
        first, pairs = self._allowed()
        return Start(observed, learner, initial, transitions, emission, pairs, first, self._options["threads"])

    def _learn_from(self, observed: Observed) -> None:
        if not observed.weights.sum() > 0:
            raise EstimateError("All sequences have the weight 0: there is nothing to learn from.")
        learner = self._learner(self._emission)
        start = self._start(observed, learner)
        if _complete(observed) and not hasattr(self._emission, "base"):
            expectation = Expectation(observed, self._emission)
            statistics, before = known_counts(expectation, start, generator(self._options["random_state"]))
            self._close(statistics, before, learner, rows=observed.n_steps)
        else:
            self._climb(observed, start)

    # -- closed form -------------------------------------------------------------------------------------------------

    def _close(self, statistics: Statistics, before: Parameters, learner: Learner, *, rows: int) -> None:
        """The estimate where every state is known: one division."""
        self._values = learner.learn(statistics, before)
        self._statistics = statistics
        expected = self._emission.expected(statistics.emission, self._values.emission).sum()
        chain = _chain_log_likelihood(statistics, self._values)
        moved = learner.learn(statistics, self._values)
        problem = HiddenMarkovEM(Expectation(_nothing(), self._emission), learner)
        gap = float(np.abs(problem.vector(moved) - problem.vector(self._values)).max(initial=0.0))
        value = float(expected) + chain
        notes = self._notes(statistics, learner)
        weight = float(statistics.visits.sum())
        self._record(
            value, value + learner.log_prior(self._values), rows, weight, None,
            "counts of known states", gap, notes,
        )  # fmt: skip

    # -- EM ----------------------------------------------------------------------------------------------------------

    def _climb(self, observed: Observed, start: Start) -> None:
        expectation = Expectation(observed, self._emission, self._options["threads"])
        problem = HiddenMarkovEM(expectation, start.learner)
        control = self._control()
        seeds = generator(self._options["random_state"]).spawn(int(self._options["n_init"]))
        starts = [lambda number=number, seed=seed: start.begin(number, seed) for number, seed in enumerate(seeds)]
        mark = "" if control.checkpoint is None else self._fingerprint(observed)
        runs = run_all(problem, starts, control, acceleration=self._options["acceleration"], fingerprint=mark)
        self._values, self._statistics = runs.best, None
        statistics = expectation.expect(self._values)
        notes = self._notes(statistics, start.learner)
        if any("unused" in note for note in notes):
            warnings.warn("; ".join(note for note in notes if "unused" in note), SufficeWarning, stacklevel=4)
        if len(runs.scores) > 1:
            notes = (*notes, f"objectives of {len(runs.scores)} runs: {', '.join(f'{s:.6f}' for s in runs.scores)}")
        gap = stationarity_gap(problem, self._values)
        objective = problem.objective(statistics, self._values)
        self._record(
            statistics.log_likelihood, objective, observed.n_steps, observed.weight, runs.outcome,
            "Baum-Welch (EM with exact expectations)", gap, notes, passes=runs.evaluations,
        )  # fmt: skip
        self._scores = runs.scores

    def _notes(self, statistics: Statistics, learner: Learner) -> tuple[str, ...]:
        """What the report should say of the answer."""
        prior = split_prior(self._options["prior"]).get("emissions")
        left_open = undefined(statistics, learner, self._names, prior)
        return (*left_open, *self._emission.notes(self._values.emission))

    def _fingerprint(self, observed: Observed) -> str:
        limits = {"max_iter", "max_seconds", "tolerance", "progress", "callback", "checkpoint", "threads"}
        options = {name: repr(value) for name, value in self._options.items() if name not in limits}
        labels = np.zeros(0, np.int32) if observed.labels is None else observed.labels
        return fingerprint(options, list(observed.data), observed.offsets, observed.weights, labels)

    def _record(
        self, value: float, objective: float, rows: int, weight: float, outcome: Outcome | None,
        method: str, gap: float, notes: tuple[str, ...], *, passes: int = 1,
    ) -> None:  # fmt: skip
        """The receipt."""
        report = Report(
            model="HiddenMarkovModel", rows=rows, weight=weight, passes=max(passes, 1), method=method,
            estimate=self._estimate_name(outcome), log_likelihood=value, objective=objective,
            n_params=self.n_params_, certificate=Certificate(gap, scale=SCALE), warnings=notes,
        )  # fmt: skip
        if outcome is not None:
            report = replace(
                report, converged=outcome.converged, iterations=outcome.state.iteration, history=outcome.history,
                stop_reason=outcome.stop_reason,
            )  # fmt: skip
        self.report_ = report

    def _estimate_name(self, outcome: Outcome | None) -> str:
        if not split_prior(self._options["prior"]) and not np.any(self._emission.log_prior(self._values.emission)):
            return "maximum likelihood"
        if outcome is None:
            return "MAP" if self._options["estimate"] == "map" else "posterior mean"
        return "MAP" if self._options["estimate"] == "map" else "MAP under pseudo-counts + 1"

    # -- results -----------------------------------------------------------------------------------------------------

    def _fitted(self) -> Parameters:
        if "_values" not in self.__dict__:
            raise NotFittedError("This HiddenMarkovModel has no parameters yet. Call fit first.")
        return self._values

    @property
    def states_(self) -> tuple[Hashable, ...]:
        """The hidden states, in the order of the parameters."""
        self._fitted()
        return self._names

    @property
    def initial_(self) -> Floats:
        """P(first state) (K,)."""
        return self._fitted().initial

    @property
    def transitions_(self) -> Floats:
        """P(next state | state) (K, K)."""
        return self._fitted().transitions

    @property
    def emissions_(self) -> list[Any]:
        """The law of each state."""
        return self._emission.laws(self._fitted().emission)

    @property
    def emission_probabilities_(self) -> Floats:
        """P(symbol | state) (K, M), where symbols are emitted."""
        found = self._fitted().emission
        if set(found) != {"probabilities"}:
            raise OptionError("The states do not emit symbols; read their laws in emissions_.")
        return found["probabilities"]

    @property
    def symbols_(self) -> tuple[Hashable, ...]:
        """The symbols, in the order of the columns of emission_probabilities_."""
        self._fitted()
        return tuple(self._emission.describe().get("states", ()))

    @property
    def scores_(self) -> tuple[float, ...]:
        """The objective that each run of EM reached."""
        self._fitted()
        return tuple(self.__dict__.get("_scores", ()))

    @property
    def n_params_(self) -> int:
        """Free parameters: what is fixed, forbidden or tied does not count."""
        learner, (first, pairs) = self._learner(self._emission), self._allowed()
        found = 0
        if "initial" not in learner.fixed and not learner.stationary:
            found += int(first.sum()) - 1
        if "transitions" not in learner.fixed:
            found += int((pairs.sum(axis=1) - 1).sum())
        if "emissions" not in learner.fixed:
            alike = sum(len(group) - 1 for group in learner.tied)
            found += (len(self._names) - alike) * self._emission.n_params + self._emission.n_shared
        return found


def _complete(observed: Observed) -> bool:
    return observed.labels is not None and bool((observed.labels >= 0).all())


def _nothing() -> Observed:
    return Observed((), np.zeros(1, np.int64), np.zeros(0))


def _left(rest: Statistics, before: Statistics) -> Statistics:
    """Statistics after a subtraction, with rounding set to 0; a real negative count is an error."""
    for name in ("initial", "transitions"):
        counts, held = getattr(rest, name), getattr(before, name)
        counts[np.abs(counts) <= 1e-9 * np.maximum(held, 1.0)] = 0.0
        if (counts < 0).any():
            raise EstimateError("These sequences were never learned: taking them out would leave negative counts.")
    return rest


def _chain_log_likelihood(statistics: Statistics, values: Parameters) -> float:
    from scipy.special import xlogy

    first = xlogy(statistics.initial, values.initial).sum()
    return float(first + xlogy(statistics.transitions, values.transitions).sum())
