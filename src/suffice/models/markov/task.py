"""How a Markov network reads data, and which problem it makes of them.

Rows are counted in one pass; a contingency table or margins become the counts that their rows would give. Where
variables are hidden or values missing, the distinct rows are kept instead. Which solver is asked for, and what the data
lack, makes one of four problems: exact learning, learning by sampling, EM, and chains that are held at rows.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from suffice.answers import Answer, PatternTable
from suffice.domain import Domain, Variable, declare
from suffice.engines.junction_tree import TreePlan
from suffice.engines.plans import plan_once
from suffice.errors import (
    DataError,
    EstimateError,
    MergeError,
    MissingValueError,
    OptionError,
    SizeError,
    SufficeWarning,
    listing,
)
from suffice.fitting.contract import Inputs, Judgement, Problem, Purpose
from suffice.fitting.summaries import SummaryData, SummaryTask, answered
from suffice.models.em.hidden import hidden_variables
from suffice.models.em.rows import has_gaps
from suffice.models.markov.approximate.law import SampledFamily
from suffice.models.markov.approximate.options import APPROXIMATE, GibbsSampling, read_sampling
from suffice.models.markov.approximate.rows import Rows, read_rows, summary_of_rows
from suffice.models.markov.contingency import (
    Cells,
    answering,
    is_margins,
    joint_counts,
    joint_entropy,
    note_total,
    read_cells,
    read_margins,
    summary_of_cells,
    summary_of_margins,
)
from suffice.models.markov.feature import Feature
from suffice.models.markov.feature_rank import untold_notes
from suffice.models.markov.feature_spread import constant_features
from suffice.models.markov.fitted import MarkovFitted
from suffice.models.markov.law import LawFamily, Masks, limit_masks
from suffice.models.markov.log_linear import LogLinear
from suffice.models.markov.numbers import check_size, real_numbers
from suffice.models.markov.priors import read_penalty
from suffice.models.markov.structure import Term
from suffice.solvers.margins import describe, find_conflict
from suffice.solvers.penalties import LaplacePenalty, Penalty
from suffice.statistics import Counts, Patterns, Statistic, Summary

if TYPE_CHECKING:
    from suffice.fitting.report import Report
    from suffice.sources.base import Source

Floats = NDArray[np.float64]
Ask = Callable[[Domain], tuple[Statistic, ...]]

#: Up to this many variables are counted together, to be compared with the saturated model ...
JOINT_VARIABLES = 12
#: ... and the counts are kept up to this many joint states: a fitted network must not hold its rows.
JOINT_CELLS = 2**16
#: With an approximate solver a junction tree of up to this many bytes is used all the same, for exact answers.
EXACT_BYTES = 64_000_000
#: The tolerance of a fit, and of EM, whose steps get small long before the weights stand still.
TOLERANCE, EM_TOLERANCE = 1e-10, 1e-7


@dataclass(frozen=True, eq=False)
class MarkovData(SummaryData):
    """Statistics of rows; what makes margins those of no distribution; and what else the problem needs.

    `conflicts` are sentences on margins that disagree. `sample` are the rows themselves, in memory, for solvers that
    need more than counts. `entropy` is that of the observed joint states, where they were counted together.
    """

    conflicts: tuple[str, ...] = ()
    sample: Rows | None = None
    entropy: float | None = None


def warn_conflict(sentence: str) -> str:
    """Warn that no distribution has the margins; gives the sentence."""
    warnings.warn(f"{sentence} They are fitted as far as it goes.", SufficeWarning, stacklevel=2)
    return sentence


class WeightsProblem(Problem[MarkovFitted], Protocol):
    """Data of a Markov network meet weights."""

    def again(self, fitted: MarkovFitted, report: Report) -> Judgement:
        """What a file says about its fit, without measuring it anew."""

    def standard_errors(self, fitted: MarkovFitted, judged: Judgement) -> Floats:
        """Standard errors of the weights (n_weights,)."""


@dataclass(frozen=True, eq=False)
class MarkovTask(SummaryTask[MarkovFitted]):
    """The weights of a log-linear model.

    by_rows: whether what was learned before are distinct rows, so that rows which join them are read as such.
    """

    terms: tuple[Term, ...]
    nodes: tuple[Hashable, ...]
    by_rows: bool = False

    # -- what the options say ----------------------------------------------------------------------------------------

    @property
    def by_sampling(self) -> bool:
        """Whether the solver needs no exact inference."""
        return self.options["solver"] in APPROXIMATE

    @cached_property
    def hidden(self) -> dict[Hashable, Variable]:
        """The hidden variables; states= may name the states that hidden= counts."""
        found = hidden_variables(self.options["hidden"])
        for name, variable in found.items():
            if variable.kind != "discrete":
                raise OptionError(f"hidden[{name!r}] is {variable.kind!r}; a Markov network needs states. Count them.")
            if name in self._stated:
                stated, counted = self._stated[name], isinstance(self.options["hidden"][name], int)
                if stated.card != variable.card if counted else stated.states != variable.states:
                    raise OptionError(
                        f"{name!r} has {stated.card} states in states= and {variable.card} in hidden=, or other ones. "
                        "Declare it once."
                    )
                found[name] = stated
        return found

    @cached_property
    def _stated(self) -> dict[Hashable, Variable]:
        return {name: declare(name, states) for name, states in (self.options["states"] or {}).items()}

    @property
    def declared(self) -> dict[Hashable, Variable]:
        """The variables whose states are declared."""
        return {**self._stated, **self.hidden}

    @property
    def observed(self) -> tuple[Hashable, ...]:
        """The variables that data have columns of."""
        return tuple(name for name in self.nodes if name not in self.hidden)

    @property
    def sampling(self) -> GibbsSampling:
        """How chains run."""
        return read_sampling(self.options["sampling"])

    def check_hidden(self) -> None:
        """Reject `hidden=` names that are not in the model."""
        given = self.options["hidden"]
        if given is not None and not isinstance(given, Mapping):
            raise OptionError(f"hidden is {given!r}; expected a dict by variable, such as hidden={{'class': 3}}.")
        unknown = [name for name in given or () if name not in self.nodes]
        if unknown:
            raise OptionError(
                f"hidden= names {listing(unknown)}, which no term names; there are {listing(self.nodes)}."
            )
        if given and not self.observed:
            raise OptionError("All variables are hidden, so no row says anything. Leave some to be observed.")

    def plan(self, model: LogLinear) -> TreePlan:
        """The junction tree of a model, planned once for the same numbers of states."""
        try:
            return plan_once(model.cards, model.scopes, self.options["memory_limit"])
        except SizeError as error:
            raise SizeError(
                f"{error} Or learn without exact inference: solver='sml' (stochastic maximum likelihood) or "
                "'pseudolikelihood'."
            ) from None

    def family(self, model: LogLinear, masks: Masks = ()) -> LawFamily:
        """The distributions of a model: by a junction tree; by chains where it is large and the solver approximate."""
        limit = self.options["memory_limit"]
        if not self.by_sampling:
            return LawFamily(model, masks, memory_limit=limit)
        try:
            plan = plan_once(model.cards, model.scopes, EXACT_BYTES if limit is None else min(limit, EXACT_BYTES))
            return LawFamily(model, masks, plan=plan, memory_limit=limit)
        except SizeError as error:
            return SampledFamily(model, masks, refusal=str(error).partition(" Use a structure")[0])

    def start(self, model: LogLinear) -> Floats:
        """The weights to begin with (n_weights,); zeros unless given."""
        given = self.options["start"]
        if given is None:
            return np.zeros(model.n_weights)
        start = real_numbers(given, "start=")
        check_size(start[np.isfinite(start)], "start=", least=0.0)
        if start.shape != (model.n_weights,) or not np.isfinite(start).all():
            raise OptionError(
                f"start has shape {start.shape}; expected {model.n_weights} finite weights, in the order of "
                "weight_names_."
            )
        # No data move the weight of a constant: it is 0 by convention, or where a prior puts it.
        return np.array(start) if self.options["prior"] is not None else np.where(constant_features(model), 0.0, start)

    def penalty(self, model: LogLinear) -> Penalty | None:
        """What the prior takes off the objective; None without a prior."""
        return read_penalty(self.options["prior"], model.n_weights)

    def fitted(self, family: LawFamily, weights: Floats, limits: Floats | None = None, **runs: Any) -> MarkovFitted:
        """A fitted value; limits: where weights run to infinity."""
        nowhere = np.zeros(len(weights)) if limits is None else limits
        return MarkovFitted(family, weights, nowhere, **self.how(family.model, weights), **runs)

    def how(self, model: LogLinear, weights: Floats) -> dict[str, Any]:
        """What steers the chains of a fitted value, and how many weights a Laplace prior leaves free."""
        penalty = self.penalty(model)
        free = int(np.count_nonzero(weights != penalty.mean)) if isinstance(penalty, LaplacePenalty) else None
        return {"sampling": self.sampling, "seed": self.options["random_state"], "n_free": free}

    def given(self, weights: Any, domain: Domain | None) -> MarkovFitted:
        """A value with given weights (n_weights,), which may be infinite; domain: known states, else all declared."""
        if domain is None:
            missing = [name for name in self.nodes if name not in self.declared]
            if missing:
                raise OptionError(
                    f"Given weights need the states of all variables; declare {listing(missing)} in states=."
                )
            domain = Domain(self.declared[name] for name in self.nodes)
        model = LogLinear(domain, self.terms)
        array = real_numbers(weights, "The list of weights")
        if array.shape != (model.n_weights,):
            raise OptionError(f"The weights have shape {array.shape}; expected {model.n_weights} numbers.")
        if np.isnan(array).any():
            names = [model.weight_names[k] for k in np.flatnonzero(np.isnan(array))]
            raise OptionError(
                f"The weights of {listing(names)} are NaN. In a fit whose maximum is not attained they run to infinity "
                "together, and no weights give the distribution; use the fitted network itself, or write it to a file."
            )
        limits = np.where(np.isinf(array), array, 0.0)
        family = self.family(model, limit_masks(model, limits))
        fitted = self.fitted(family, np.where(np.isinf(array), 0.0, array), limits)
        if not fitted.is_sampled and fitted.log_partition == -np.inf:
            raise OptionError("The infinite weights rule out every joint state. Give weights that leave one.")
        return fitted

    def fitted_from(self, plain: Mapping[str, Any]) -> MarkovFitted:
        """A fitted value out of a file."""
        fitted = MarkovFitted.from_dict(plain, self.nodes, self.terms, self.options["memory_limit"])
        return replace(fitted, **self.how(fitted.model, fitted.finite))

    def tabulated(self, known: MarkovFitted | None) -> list[Term]:
        """The terms for a file: functions are written as their tables, where the states are known."""
        domain = None if known is None else known.domain
        if domain is None and len(self.declared) == len(self.nodes):
            domain = Domain(self.declared.values())
        return [
            term.tabulated(domain) if isinstance(term, Feature) and domain is not None else term for term in self.terms
        ]

    def model_notes(self, model: LogLinear, penalty: Penalty | None) -> tuple[str, ...]:
        """What a report says about variables without terms, and about weights that no data tell."""
        free = [name for name in self.nodes if not any(name in scope for scope in model.scopes)]
        uniform = (f"no term names {listing(free)}: uniform",) if free else ()
        return (*uniform, *untold_notes(model, penalty))

    # -- the statistics ----------------------------------------------------------------------------------------------

    def required(
        self, columns: Sequence[Hashable], known: MarkovFitted | None, purpose: Purpose
    ) -> Mapping[Hashable, Variable | None]:
        """All variables that are not hidden; rows that are compared have the states of the fit."""
        states = self._states(known, purpose)
        return {name: states.get(name) for name in self.observed}

    def _states(self, known: MarkovFitted | None, purpose: Purpose) -> dict[Hashable, Variable]:
        """The variables whose states are known before the data are read: any other state is an error."""
        if purpose != "compare" or known is None:
            return self.declared
        return {v.name: Variable.discrete(v.name, v.states) for v in known.domain.variables}

    def asked(self, domain: Domain, known: MarkovFitted | None, purpose: Purpose) -> tuple[Statistic, ...]:
        """Counts of all variables together where they are few, else of every scope; or the distinct rows."""
        if self.hidden:
            return self._patterns(domain)
        _check_kinds(domain)
        few, cells = len(self.nodes) <= JOINT_VARIABLES, math.prod(domain.shape(self.nodes))
        model = LogLinear(domain.select(self.nodes), self.terms)
        if self.by_sampling:
            return (Counts(self.nodes),) if few and cells <= JOINT_CELLS else tuple(map(Counts, model.scopes))
        if all(domain[name].card for name in self.nodes):
            self.plan(model)  # Too large? Then say so before any counting.
        closed = all(domain[name].origin == "declared" for name in self.nodes)
        if few and not (closed and cells > JOINT_CELLS):
            return (Counts(self.nodes),)
        further = known.family.extra_scopes if known is not None and purpose == "compare" else ()
        return tuple(Counts(scope) for scope in (*model.scopes, *further))

    def _patterns(self, domain: Domain) -> tuple[Statistic, ...]:
        """The distinct rows."""
        _check_kinds(domain)
        whole = domain.merge(Domain(self.hidden.values())).select(self.nodes)
        if all(variable.card for variable in whole.variables) and not self.by_sampling:
            self.plan(LogLinear(whole, self.terms))  # Too large? Then say so before any counting.
        return (Patterns(self.observed),)

    def whole_domain(self, summary: Summary) -> Domain:
        """All variables of a summary and the hidden ones, in the order of the nodes; without states they are errors."""
        domain = summary.domain.merge(Domain(self.hidden.values())).select(self.nodes)
        for variable in domain.variables:
            if variable.card == 0:
                raise OptionError(f"Column {variable.name!r} has no values and no declared states. Give states=.")
        if not summary.weight > 0:
            raise EstimateError("There are no rows to learn from: their total weight is 0.")
        return domain

    # -- reading -----------------------------------------------------------------------------------------------------

    def read(self, given: Inputs, known: MarkovFitted | None, purpose: Purpose) -> MarkovData:
        """Rows, a contingency table, margins by clique or a `Summary`, as the statistics that the fit needs."""
        ask: Ask = lambda domain: self.asked(domain, known, purpose)  # noqa: E731
        data = self._read(given, known, purpose, ask)
        return replace(data, statistics=self.check(data.statistics, known, purpose))

    def read_joint(self, given: Inputs, known: MarkovFitted) -> tuple[NDArray[Any], Floats]:
        """The joint states of the observed variables (k, variables) in the codes of a fit, and their counts (k,)."""
        ask: Ask = self._patterns if self.hidden else lambda domain: (Counts(self.nodes),)
        summary = self.check(self._read(given, known, "compare", ask, jointly=True).statistics, known, "compare")
        if has_gaps(summary):
            patterns: PatternTable = summary[next(iter(summary.answers))]
            if (patterns.rows < 0).any():
                raise EstimateError("The rows have missing values, so there is no saturated model to compare with.")
            return patterns.rows.astype(np.intp), patterns.weights
        joint = joint_counts(summary, self.nodes)
        if joint is None:
            raise MergeError(
                "The data do not hold joint counts of all variables. Give rows, or a table of all of them."
            )
        return joint

    def _read(
        self, given: Inputs, known: MarkovFitted | None, purpose: Purpose, ask: Ask, *, jointly: bool = False
    ) -> MarkovData:
        data, columns, weight = given.data, given["columns"], given["sample_weight"]
        if isinstance(data, Summary):
            return MarkovData(super().read(given, known, purpose).statistics)
        states, by_rows = self._states(known, purpose), bool(self.hidden) or (purpose == "join" and self.by_rows)
        margins = is_margins(data, self.observed)
        cells = None if margins else read_cells(data, columns, states, self.observed)
        if (margins or cells is not None) and weight is not None:
            raise OptionError("A table of counts holds its weights already; give no sample_weight beside it.")
        if margins and by_rows:
            raise DataError(
                "Margins of cliques say too little where variables are hidden or rows have missing values: EM needs "
                "the rows, or a table of all variables that are seen."
            )
        if margins:
            return self._of_margins(data, states)
        if cells is not None:
            statistics = (
                self._rows_of_cells(cells, states) if by_rows else summary_of_cells(cells, self.nodes, states, ask)
            )
            return MarkovData(statistics, 1, note_total("The table", cells.weights))
        from suffice.sources import open_source

        # Opened once, so that the source counts the passes of both attempts.
        source = open_source(data, columns=columns, sample_weight=weight)
        if by_rows:
            return self._counted(source, known, purpose, self._patterns)
        try:
            if self.by_sampling and not jointly and len(self.nodes) > JOINT_VARIABLES:
                return self._of_sample(source, known, purpose)
            return self._counted(source, known, purpose, ask)
        except MissingValueError as error:
            if self.by_sampling and self.options["solver"] != "sml":
                raise
            if self.options["missing"] == "raise":
                raise MissingValueError(f"{error} missing='em' learns from rows with missing values.") from None
            return self._counted(source, known, purpose, self._patterns)

    def _counted(self, source: Source, known: MarkovFitted | None, purpose: Purpose, ask: Ask) -> MarkovData:
        """One pass over an open source."""
        required = self.required(source.columns, known, purpose)
        data = answered(source, required, ask, progress=bool(self.options["progress"]))
        return MarkovData(data.statistics, data.passes, data.notes)

    def _of_sample(self, source: Source, known: MarkovFitted | None, purpose: Purpose) -> MarkovData:
        """Rows of many variables are read into memory as codes, and counted there."""
        domain, rows, count = read_rows(source, self.required(source.columns, known, purpose), self.nodes)
        summary = summary_of_rows(domain, self.terms, rows, count)
        return MarkovData(summary, max(source.passes, 1), sample=rows)

    def _rows_of_cells(self, cells: Cells, states: Mapping[Hashable, Variable]) -> Summary:
        """The cells of a table as distinct rows: tables have all variables but the hidden ones."""
        missing = [name for name in self.observed if name not in cells.domain]
        if missing:
            raise DataError(f"The table has the variables {listing(cells.domain.names)}; it lacks {listing(missing)}.")
        domain = Domain(states.get(name, cells.domain[name]) for name in self.observed)
        table = cells.over(domain)
        answer = PatternTable(np.argwhere(table > 0).astype(np.int32), table[table > 0])
        total = math.fsum(cells.weights)
        return Summary(domain, {Patterns(self.observed): answer}, math.ceil(total - 1e-9), total)

    def _of_margins(self, data: Mapping[Any, Any], states: Mapping[Hashable, Variable]) -> MarkovData:
        tables = read_margins(data, states, self.nodes)
        held = [set(table.variables) for table in tables]
        for term in self.terms:
            for scope in (term,) if isinstance(term, tuple) else term.placements:
                if not any(keys.issuperset(scope) for keys in held):
                    raise DataError(
                        f"No margin holds {tuple(scope)!r}; the margins are those of {listing(list(data))}. Give one "
                        "for every term of the model."
                    )
        scopes, arrays = [table.variables for table in tables], [table.values for table in tables]
        labels = {name: states for table in tables for name, states in table.states.items()}
        conflicts: tuple[str, ...] = ()
        conflict = find_conflict(scopes, arrays)
        if conflict is not None:
            sentence = describe(conflict, scopes, labels)
            if self.options["on_inconsistent"] == "raise":
                raise DataError(f"{sentence} on_inconsistent='warn' fits them all the same, as far as it goes.")
            conflicts = (warn_conflict(sentence),)
        return MarkovData(summary_of_margins(tables, states), 1, note_total("The margins", arrays[0]), conflicts)

    def check(self, summary: Summary, known: MarkovFitted | None, purpose: Purpose) -> Summary:
        """A summary of the network's variables; of those that are compared, in the codes of the fit."""
        missing = [name for name in self.observed if name not in summary.domain]
        if missing:
            raise MergeError(
                f"The summary holds {listing(summary.domain.names)}; the network needs {listing(missing)}."
            )
        summary = self._as_rows(summary) if self.hidden else summary
        if purpose != "compare" or known is None:
            return summary
        for name in self.observed:
            for state in summary.domain[name].states:
                known.domain[name].index(state)
        # The order of states is the network's: a category column of the rows may list the same states in another.
        return summary.align(
            Domain(known.domain[v.name] if v.name in known.domain else v for v in summary.domain.variables)
        )

    def _as_rows(self, summary: Summary) -> Summary:
        """The distinct rows of a summary; one that counts all variables together holds them too."""
        if has_gaps(summary):
            return summary
        joint = joint_counts(summary, self.observed)
        if joint is None:
            raise MergeError(
                f"EM needs the distinct rows of {listing(self.observed)}, and the summary answers "
                f"{listing(summary.answers, 3)}. Summarise the data for this model with suffice.summarize(model, data),"
                " or fit all rows at once."
            )
        answers: dict[Statistic, Answer] = {}
        answers[Patterns(self.observed)] = PatternTable.of(joint[0].astype(np.int32), joint[1])
        return Summary(summary.domain.select(self.observed), answers, summary.rows, summary.weight)

    # -- joining, leaving, keeping -----------------------------------------------------------------------------------

    def joined(self, earlier: SummaryData, later: SummaryData, keep: float) -> SummaryData:
        """Rows that were learned, weighted by `keep`, and rows that join them."""
        first, second = self._alike(earlier.statistics, later.statistics)
        return replace(_markov_data(later), statistics=first * keep + second, sample=None)

    def without(self, earlier: SummaryData, leaving: SummaryData) -> SummaryData:
        """Rows that were learned, without those that leave."""
        first, second = self._alike(earlier.statistics, leaving.statistics)
        return replace(_markov_data(leaving), statistics=first - second, sample=None)

    def _alike(self, earlier: Summary, later: Summary) -> tuple[Summary, Summary]:
        """Two summaries that answer the same: as distinct rows where one of them holds these."""
        later = answering(later, list(earlier.answers))
        if has_gaps(earlier) == has_gaps(later):
            return earlier, later
        return self._as_rows(earlier), self._as_rows(later)

    def condensed(self, data: SummaryData) -> MarkovData:
        """Counts of more joint states than are kept are summed to those of the scopes; their entropy stays known."""
        summary = data.statistics
        entropy = _row_entropy(summary) if has_gaps(summary) else joint_entropy(summary, self.nodes)
        if Counts(self.nodes) in summary.answers and math.prod(summary.domain.shape(self.nodes)) > JOINT_CELLS:
            scopes = LogLinear(summary.domain.select(self.nodes), self.terms).scopes
            summary = answering(summary, [Counts(scope) for scope in scopes])
        return replace(_markov_data(data), statistics=summary, entropy=entropy)

    def kept(self, data: SummaryData) -> MarkovData:
        """All but the rows, which are held while the fit needs them and no longer."""
        return replace(_markov_data(data), sample=None)

    # -- the problem -------------------------------------------------------------------------------------------------

    def problem(self, data: SummaryData, start: MarkovFitted | None) -> WeightsProblem:
        """Exact learning, learning by sampling, EM, or chains that are held at rows."""
        held = _markov_data(data)
        if has_gaps(held.statistics):
            if self.by_sampling:
                from suffice.models.markov.hidden.held import HeldProblem

                return HeldProblem(self, held)
            from suffice.models.markov.hidden.problem import EMProblem

            return EMProblem(self, held)
        if self.by_sampling:
            from suffice.models.markov.approximate.fit import SamplingProblem

            return SamplingProblem(self, held)
        from suffice.models.markov.exact import ExactProblem

        return ExactProblem(self, held)


def _markov_data(data: SummaryData) -> MarkovData:
    """Data of a file are statistics alone."""
    return data if isinstance(data, MarkovData) else MarkovData(data.statistics, data.passes, data.notes)


def _check_kinds(domain: Domain) -> None:
    wrong = [variable.name for variable in domain.variables if variable.kind != "discrete"]
    if wrong:
        raise OptionError(f"{listing(wrong)} hold numbers; a Markov network needs states. Declare them in states=.")


def _row_entropy(summary: Summary) -> float | None:
    """Entropy of distinct rows in nats; None where some values are missing."""
    patterns: PatternTable = summary[next(iter(summary.answers))]
    if (patterns.rows < 0).any():
        return None
    shares = patterns.weights / summary.weight
    return -math.fsum((shares * np.log(shares)).tolist())
