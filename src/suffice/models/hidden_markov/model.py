"""Hidden Markov models: a chain of states that are not seen, each with a law of what is seen."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from suffice.errors import EstimateError, OptionError, SufficeWarning, listing
from suffice.families.base import generator
from suffice.fitting.control import Outcome, fingerprint
from suffice.fitting.report import Certificate, Report, confirmed
from suffice.models.em.runs import run_all
from suffice.models.hidden_markov.build import Wish, build_emission
from suffice.models.hidden_markov.certificate import climbed_certificate, counted_certificate
from suffice.models.hidden_markov.check import stationarity_gap
from suffice.models.hidden_markov.decoding import Decoding
from suffice.models.hidden_markov.emissions.contract import Emission, counts_left
from suffice.models.hidden_markov.expectation import Expectation
from suffice.models.hidden_markov.learning import HiddenMarkovEM, Learner, undefined
from suffice.models.hidden_markov.observed import Observed
from suffice.models.hidden_markov.parameters import Parameters, Statistics
from suffice.models.hidden_markov.plain import HiddenMarkovFile
from suffice.models.hidden_markov.priors import pseudo_counts, split_prior
from suffice.models.hidden_markov.reading import open_observations, read_labels, read_weights, split_states, state_names
from suffice.models.hidden_markov.results import Results
from suffice.models.hidden_markov.standard_errors import curvature_of, is_cheap
from suffice.models.hidden_markov.start import Start, known_counts
from suffice.models.hidden_markov.structure import Structure, read_fixed, read_tied

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait

Floats = NDArray[np.float64]

ESTIMATES = (None, "mean", "map")


class HiddenMarkovModel(Results, Decoding, HiddenMarkovFile):  # type: ignore[misc]  # sequences have a form of their own
    """P(x, z) = initial[z_1] f(x_1 | z_1) prod_t transitions[z_(t-1), z_t] f(x_t | z_t), with z hidden.

    Sequences are a list (of lists, texts or arrays), one array with `lengths`, or a table with a `group` column; all
    give the same fit. Where every state is known the estimate is a count; else Baum-Welch (EM) with exact
    expectations, which never lowers the likelihood. Gaps (None, NaN) in observations and in known states may be
    anywhere.

    Args:
        states: how many hidden states, or their names.
        emission: the law of what is seen in a state, unfitted: `Categorical`, `Bernoulli`, `Normal`,
            `MultivariateNormal`, `Poisson` or any other exponential family of one column, `Dirichlet` for proportions;
            `Mixture` of one; or a list (or dict by column) of laws for columns that are independent given the state.
            One law of one column serves several columns alike.
        covariance: of `MultivariateNormal`: "full", "diagonal", "spherical", or "tied", one for all states.
        prior: a number of pseudo-counts for first states, transitions and symbols, or a dict with some of "initial",
            "transitions" and "emissions": numbers, arrays, `Dirichlet`, or the conjugate prior of the law. A number
            says nothing about densities such as `Normal`; the report notes that they have no prior.
        estimate: with a prior, "mean" (default: pseudo-counts are added as they are) or "map" (one less is added). In
            EM adding pseudo-counts climbs to the mode under Dirichlet(1 + pseudo-counts); densities take their mode.
        initial: start values (K,), or "stationary": the first state has the stationary law of the transitions. Zeros
            of all start values stay zero in every run.
        transitions: start values (K, K).
        emissions: start values: a matrix for symbols, else one law for each state.
        topology: "left-right" (no way back), "linear" (stay or go to the next), or None.
        fixed: parts that keep their start values: some of "initial", "transitions", "emissions".
        tied: groups of states that share one emission.
        n_init: runs of EM; the first begins at the start values, the best is kept.
        random_state: seed of the starts.
        acceleration: None, or "squarem".
        variance_floor: share of the variance of a column below which no variance falls. For gamma, beta, Dirichlet and
            exponential laws, share of the spread of the law of all steps.
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
        order: Any = None,
        sample_weight: Any = None,
        columns: Any = None,
    ) -> Self:
        """Learn from sequences.

        Args:
            sequences: a list of sequences, one array, or a table: a frame, a Parquet or CSV file, a DuckDB relation.
            states: known states, in the form of the sequences (or the name of a column); None for a step, or for a
                whole sequence, that is not known.
            lengths: steps of each sequence, where they are given as one array.
            group: column of a table that tells sequences apart.
            order: column of a table that orders the steps of each sequence, such as a time; rows of a DuckDB, Dask or
                Spark table need it, since these come in no order of their own.
            sample_weight: one weight a sequence; 2 counts as two sequences.
            columns: columns of a table to read.

        Returns:
            self
        """
        fresh = self._fresh()
        observed = fresh._read(sequences, states, lengths, group, order, sample_weight, columns, known=None)
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
        form = {"lengths": None, "group": None, "order": None, "sample_weight": None, "columns": None} | dict(form)
        observed = fresh._read(sequences, states, *form.values(), known=self)
        if not fresh._is_closed(observed):
            raise OptionError(
                "Only sequences whose states are all known, and whose steps have all columns or none, can be added or "
                "taken out."
            )
        start = fresh._start(observed, fresh._learner(fresh._emission))
        more, before = known_counts(Expectation(observed, fresh._emission), start, np.random.default_rng(0))
        held = replace(self._statistics, emission=self._emission.laid_out(self._statistics.emission, fresh._emission))
        joined = held + more if sign > 0 else _left(held - more, held, fresh._emission)
        fresh._emission = fresh._emission.rescaled(joined.emission)
        learner = fresh._learner(fresh._emission)
        fresh._close(joined, before, learner, rows=self.report_.rows + sign * observed.n_steps)
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
        self,
        sequences: Any,
        states: Any,
        lengths: Any,
        group: Any,
        order: Any,
        weight: Any,
        columns: Any,
        *,
        known: Any,
    ) -> Observed:
        """Observed sequences; the emission is built from them, or grows by them where one is known."""
        if known is not None and columns is None:
            columns = known._known_columns(sequences)
        columns, states = split_states(sequences, states, group, order, columns)
        opened = open_observations(sequences, lengths, group, order, columns)
        names = state_names(self._options["states"]) if known is None else known._names
        counted = known is None and isinstance(self._options["states"], int | np.integer)
        labels, self._names = read_labels(states, opened, lengths, names, counted)
        hidden = labels is None or bool((labels < 0).any())
        if known is None:
            self._columns = opened.sequences.columns
        settled = None if known is None else known._emission.describe_with(opened.columns)
        weights = read_weights(weight, opened.sequences.n_sequences)
        steps = np.repeat(weights, opened.sequences.lengths)
        if known is None and not steps.any():
            raise EstimateError("All sequences have the weight 0: there is nothing to learn from.")
        self._build(hidden, opened.columns, settled, opened.sequences.variables, steps)
        data = self._emission.read(opened.columns)
        observed = Observed(data, opened.sequences.offsets, weights, labels)
        if not hidden and not self._is_closed(observed) and known is None:
            self._build(True, opened.columns, None, opened.sequences.variables, steps)
        return observed

    def _build(
        self, hidden: bool, columns: Any, known: Any = None, variables: Any = None, weights: Floats | None = None
    ) -> None:
        """The emission, which keeps the zeros of given start values."""
        options, prior = self._options, split_prior(self._options["prior"]).get("emissions")
        wish = Wish(
            len(self._names), options["covariance"], options["variance_floor"], prior, options["estimate"], hidden,
            None if variables is None else tuple(variables), weights,
        )  # fmt: skip
        emission = build_emission(options["emission"], wish, columns, self._columns, known)
        given = options["emissions"]
        self._emission = emission if given is None else emission.restricted(emission.parameters_of(given))

    def _learner(self, emission: Emission) -> Learner:
        options, prior, size = self._options, split_prior(self._options["prior"]), len(self._names)
        structure, estimate = self._structure(emission), options["estimate"]
        return Learner(
            emission,
            pseudo_counts(prior.get("initial"), (size,), estimate, "initial") * structure.first,
            pseudo_counts(prior.get("transitions"), (size, size), estimate, "transitions") * structure.pairs,
            read_fixed(options["fixed"]),
            read_tied(options["tied"], self._names),
            isinstance(options["initial"], str),
        )

    def _structure(self, emission: Emission) -> Structure:
        given = self._options["emissions"]
        laws = None if given is None else emission.parameters_of(given)
        return Structure.read(self._options, len(self._names), laws)

    def _start(self, observed: Observed, learner: Learner) -> Start:
        structure = self._structure(learner.emission)
        if structure.emission is not None and "emissions" not in learner.fixed:
            learner.emission.check_start(structure.emission)
            learner.check_tied(structure.emission, self._names)
        structure.check_labels(observed, learner.emission, self._names)
        return Start(observed, learner, structure, self._options["threads"])

    def _is_closed(self, observed: Observed) -> bool:
        """Whether the estimate is a count: every state is known, and no law expects anything of its own."""
        known = observed.labels is not None and bool((observed.labels >= 0).all())
        return known and self._emission.in_closed_form(observed.data)

    def _learn_from(self, observed: Observed) -> None:
        learner = self._learner(self._emission)
        start = self._start(observed, learner)
        if self._is_closed(observed):
            expectation = Expectation(observed, self._emission)
            statistics, before = known_counts(expectation, start, generator(self._options["random_state"]))
            self._close(statistics, before, learner, rows=observed.n_steps)
        else:
            self._climb(observed, start)

    # -- closed form -------------------------------------------------------------------------------------------------

    def _close(self, statistics: Statistics, before: Parameters, learner: Learner, *, rows: int) -> None:
        """The estimate where every state is known: one division."""
        self._values = learner.learn(statistics, before)
        self._statistics = self._expected = statistics
        expected = self._emission.expected(statistics.emission, self._values.emission).sum()
        chain = _chain_log_likelihood(statistics, self._values)
        moved = learner.learn(statistics, self._values)
        problem = HiddenMarkovEM(Expectation(_nothing(), self._emission), learner)
        gap = float(np.abs(problem.vector(moved) - problem.vector(self._values)).max(initial=0.0))
        value = float(expected) + chain
        notes = self._notes(statistics, learner)
        weight = float(statistics.visits.sum())
        structure = self._structure(self._emission)
        certificate = counted_certificate(statistics, self._values, learner, structure, self._names, gap)
        self._record(
            value, value + learner.log_prior(self._values), rows, weight, None,
            "counts of known states", certificate, notes,
        )  # fmt: skip

    # -- EM ----------------------------------------------------------------------------------------------------------

    def _climb(self, observed: Observed, start: Start) -> None:
        expectation = Expectation(observed, self._emission, self._options["threads"])
        problem = HiddenMarkovEM(expectation, start.learner)
        control = self._control()
        seeds = _seeds(self._options["random_state"], int(self._options["n_init"]))
        starts = [lambda number=number, seed=seed: start.begin(number, seed) for number, seed in enumerate(seeds)]
        mark = "" if control.checkpoint is None else self._fingerprint(observed)
        runs = run_all(problem, starts, control, acceleration=self._options["acceleration"], fingerprint=mark)
        self._values, self._statistics = runs.best, None
        statistics = self._expected = expectation.expect(self._values)
        notes = self._notes(statistics, start.learner)
        if any("unused" in note for note in notes):
            warnings.warn("; ".join(note for note in notes if "unused" in note), SufficeWarning, stacklevel=4)
        notes = (*notes, *runs.notes)
        if len(runs.scores) > 1:
            notes = (*notes, f"objectives of {len(runs.scores)} runs: {', '.join(f'{s:.6f}' for s in runs.scores)}")
        certificate = climbed_certificate(
            statistics, self._values, start.learner, start.structure, self._names,
            stationarity_gap(problem, self._values),
        )  # fmt: skip
        if is_cheap(observed, start.learner, self._values, runs.evaluations):
            found = curvature_of(
                expectation, start.learner, self._values, self._names, certificate.moment_gap, runs.scores
            )
            certificate = replace(certificate, curvature=found)
            notes = notes if found is None else (*found.warnings(), *notes)
        objective = problem.objective(statistics, self._values)
        self._record(
            statistics.log_likelihood, objective, observed.n_steps, observed.weight, runs.outcome,
            "Baum-Welch (EM with exact expectations)", certificate, notes, passes=runs.evaluations,
        )  # fmt: skip
        self._scores = runs.scores

    def _notes(self, statistics: Statistics, learner: Learner) -> tuple[str, ...]:
        """What the report should say of the answer."""
        prior = split_prior(self._options["prior"]).get("emissions")
        left_open = undefined(statistics, learner, self._names, prior)
        if "emissions" in learner.fixed:
            return left_open
        sums = self._emission.gathered(statistics.emission, learner.tied)
        called = [f"state {name!r}" for name in self._names]
        return (*left_open, *self._emission.notes(self._values.emission, sums, called))

    def _fingerprint(self, observed: Observed) -> str:
        limits = {"max_iter", "max_seconds", "tolerance", "progress", "callback", "checkpoint", "threads"}
        options = {name: repr(value) for name, value in self._options.items() if name not in limits}
        labels = np.zeros(0, np.int32) if observed.labels is None else observed.labels
        return fingerprint(options, list(observed.data), observed.offsets, observed.weights, labels)

    def _record(
        self, value: float, objective: float, rows: int, weight: float, outcome: Outcome | None,
        method: str, certificate: Certificate, notes: tuple[str, ...], *, passes: int = 1,
    ) -> None:  # fmt: skip
        """The receipt."""
        report = Report(
            model="HiddenMarkovModel", rows=rows, weight=weight, passes=max(passes, 1), method=method,
            estimate=self._estimate_name(outcome), log_likelihood=value, objective=objective,
            n_params=self._count_params(), certificate=certificate, warnings=notes,
        )  # fmt: skip
        if outcome is not None:
            report = replace(
                report, converged=outcome.converged, iterations=outcome.state.iteration, history=outcome.history,
                stop_reason=outcome.stop_reason,
            )  # fmt: skip
            self.report_ = self._upheld(report, outcome)
        else:
            # What is lost is computed without the M-step: half the square of a gap in standard deviations.
            lost = math.sqrt(2.0 * (certificate.value_gap or 0.0))
            self.report_ = confirmed(report, gap=max(certificate.moment_gap, lost))

    def _estimate_name(self, outcome: Outcome | None) -> str:
        if not split_prior(self._options["prior"]) and not np.any(self._emission.log_prior(self._values.emission)):
            return "maximum likelihood"
        if outcome is None:
            return "MAP" if self._options["estimate"] == "map" else "posterior mean"
        return "MAP" if self._options["estimate"] == "map" else "MAP under pseudo-counts + 1"

    def portrait(self) -> Portrait:
        """What there is to see of it: what pages, plots and notebooks show."""
        from suffice.models.hidden_markov.portrait import portrait_of

        return portrait_of(self)

    def _summary_of(self, data: Any, sample_weight: Any, columns: Any) -> Any:
        """Sequences are no table of rows, so that `summarize` cannot ask for them."""
        raise OptionError(
            "A hidden Markov model has no summary of rows: it learns from sequences. Counts of known states add up by "
            "partial_fit(sequences, states)."
        )


def _seeds(random_state: Any, count: int) -> list[np.random.Generator]:
    rng = generator(random_state)
    try:
        return rng.spawn(count)
    except TypeError:  # A generator that was not made from a seed sequence, such as that of a RandomState.
        return [np.random.default_rng(int(seed)) for seed in rng.integers(0, 2**62, size=count)]


def _nothing() -> Observed:
    return Observed((), np.zeros(1, np.int64), np.zeros(0))


def _left(rest: Statistics, before: Statistics, emission: Emission) -> Statistics:
    """Statistics after a subtraction, with rounding set to 0; what no sequences can leave is an error."""
    first, pairs = (counts_left(getattr(rest, name), getattr(before, name)) for name in ("initial", "transitions"))
    return Statistics(first, pairs, emission.left(rest.emission, before.emission))


def _chain_log_likelihood(statistics: Statistics, values: Parameters) -> float:
    from scipy.special import xlogy

    first = xlogy(statistics.initial, values.initial).sum()
    return float(first + xlogy(statistics.transitions, values.transitions).sum())
