"""A network and rows with missing values or hidden nodes: one problem of EM, for nodes of any kinds.

The E-step answers the statistics that complete rows would answer, in expectation; the M-step is what complete rows are
learned by. Nodes whose whole families all rows show are learned from the rows as they are, beside EM.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.engines.workers import worker_count
from suffice.errors import EstimateError, OptionWarning, Remark, SizeError, listing
from suffice.fitting.contract import Found, Judgement
from suffice.fitting.control import LIMITS, Control
from suffice.fitting.report import Certificate, MatchedStatistics
from suffice.fitting.summaries import SummaryData
from suffice.models.bayesian.certificate import SLOPE_UNIT
from suffice.models.bayesian.complete import ESTIMATES, estimate_in_words, notes_on_nodes, prepare
from suffice.models.bayesian.em.expectation import ExpectationOfJudge, NetworkExpectation, row_scores
from suffice.models.bayesian.em.observed import (
    difference,
    family_summary,
    keeps_inside,
    never_in_leaves,
    never_shown,
    placeholders,
    refuse_impossible,
)
from suffice.models.bayesian.em.standard_errors import ObservedErrors, Parts
from suffice.models.bayesian.em.start import starting_summary
from suffice.models.bayesian.em.symmetry import symmetry_notes
from suffice.models.bayesian.em.table_expectation import TablePlans
from suffice.models.bayesian.fitted import NetworkFitted
from suffice.models.bayesian.learning import NodeLearning
from suffice.models.bayesian.node_scores import matched_statistics_of
from suffice.models.bayesian.nodes.contract import Node, largest
from suffice.models.bayesian.nodes.noisy_max_chain import Auxiliary
from suffice.models.bayesian.options import check_start
from suffice.models.em.held_rows import HeldData, HeldRows
from suffice.models.em.information import NOT_COMPUTED, STOPPED, ObservedInformation, score_differences
from suffice.models.em.latent import Expected, LatentProblem, Starts
from suffice.models.em.restarts import Runs
from suffice.models.em.rows import read_rows
from suffice.statistics import Statistic, Summary

Nodes = dict[Hashable, Any]

#: How a report names what EM makes of the estimates of nodes: the posterior mean of complete rows as M-step climbs to a
#: mode, that of the Dirichlet posterior with one pseudo-count more in each cell.
BY_EM = ESTIMATES | {"mean": "MAP"}
#: What the report says about it.
ONE_MORE = "under Dirichlet priors of the pseudo-counts + 1, of which each M-step is a posterior mean, "
#: Rows that all E-steps together may go through to say what they determine, where EM itself took fewer steps.
MOST_ROWS = 200_000


@dataclass(frozen=True, eq=False)
class NetworkEMProblem(LatentProblem[Nodes, Summary, NetworkFitted]):
    """Rows that do not show everything meet a network. `domain` has the hidden nodes among its variables.

    The parameters of EM are nodes by name, with placeholders for those whose families all rows show.
    """

    learning: NodeLearning
    data: SummaryData
    domain: Domain

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles make the E-step anew."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    # -- what is known -----------------------------------------------------------------------------------------------

    @cached_property
    def rows(self) -> HeldRows:
        """The rows, wherever they are."""
        if isinstance(self.data, HeldData) and self.data.held is not None:
            return self.data.held
        return HeldRows.here(read_rows(self.data.statistics, self.domain))

    def at_rest(self) -> NetworkEMProblem:
        """The same without engines, and without rows that are held elsewhere."""
        return replace(self, data=self.data.at_rest()) if isinstance(self.data, HeldData) else copy(self)

    @cached_property
    def _prepared(self) -> tuple[dict[Hashable, Any], dict[Hashable, Any]]:
        return prepare(self.learning, self.domain, self.data.weight)

    @property
    def fixed(self) -> dict[Hashable, Any]:
        """The nodes that the user has fixed."""
        return self._prepared[0]

    @property
    def learners(self) -> dict[Hashable, Any]:
        """How complete rows would be learned from."""
        return self._prepared[1]

    @cached_property
    def placeholders(self) -> dict[Hashable, Any]:
        """By name what stands for nodes whose whole families all rows show."""
        families = {name: self.learning.family(name, self.domain) for name in self.learning.parents}
        return placeholders(self.rows, families, self.learners, self.fixed)

    @cached_property
    def given(self) -> dict[Hashable, Any]:
        """The nodes that EM does not learn."""
        return {**self.fixed, **self.placeholders}

    @cached_property
    def free(self) -> tuple[Hashable, ...]:
        """The nodes that EM learns."""
        return tuple(name for name in self.learning.parents if name not in self.given)

    @cached_property
    def families(self) -> dict[Hashable, Domain]:
        """Parents and node of each node, as EM has them."""
        family, alone = self.learning.family, self.placeholders
        return {n: self.domain.select([n]) if n in alone else family(n, self.domain) for n in self.learning.parents}

    @cached_property
    def floor(self) -> float:
        """Share of the variance of a column below which EM lets no variance of it fall."""
        return float(self.learning.options["variance_floor"])

    @cached_property
    def _steady(self) -> dict[Hashable, Any]:
        """The learners of the steps: each node from its own family, and defined also for states without rows."""
        return {name: learner.for_em(filled=True) for name, learner in self.learners.items()}

    @cached_property
    def statistics(self) -> tuple[Statistic, ...]:
        """What complete rows would be asked for."""
        asked = (q for name in self.free for q in self._steady[name].statistics(self.families[name]))
        return tuple(dict.fromkeys(asked))

    @cached_property
    def extended(self) -> Domain:
        """All nodes, and the private variables of wide ones, which are hidden."""
        scopes = [question.columns for question in self.statistics]
        for node in self.given.values():
            scopes += [names for names, _ in node.expectation_factors()]
        private = dict.fromkeys(n for scope in scopes for n in scope if isinstance(n, Auxiliary))
        return self.domain.merge(Domain(name.variable for name in private))

    @cached_property
    def _unseen(self) -> list[Hashable]:
        """The nodes of which no row shows a value."""
        seen = set(self.rows.seen)
        return [name for name in self.domain.names if name not in seen]

    @cached_property
    def _notes_on_columns(self) -> tuple[str, ...]:
        """What to say about columns without a single value; one of numbers to be learned is an error."""
        empty = [name for name in self._unseen if name not in self.learning.hidden]
        if not self.data.weight > 0 or not empty:
            return ()
        real = [name for name in empty if self.domain[name].kind != "discrete" and name not in self.fixed]
        if real:
            raise EstimateError(
                f"The columns {listing(real)} hold no value at all, so nothing can be learned about them. Leave them "
                "out, or declare them hidden={name: 'real'} if that is what they are."
            )
        return (f"The columns {listing(empty)} hold no value at all and are treated as hidden, see hidden=.",)

    # -- the steps ---------------------------------------------------------------------------------------------------

    @property
    def weight(self) -> float:
        """The weight of the rows."""
        return self.rows.weight

    @property
    def starts(self) -> Starts:
        """One, but where nodes are hidden."""
        options = self.learning.options
        return Starts(options["n_init"] if self._unseen else 1, options["random_state"], options["acceleration"])

    @cached_property
    def _given_start(self) -> dict[Hashable, Any]:
        """The nodes to begin with that the user gave."""
        start = check_start(self.learning.options["start"], tuple(self.learning.parents))
        return {name: self.learning.given_node(name, values, self.domain) for name, values in start.items()}

    def start(self, number: int, rng: np.random.Generator) -> Nodes:
        """The nodes to begin a run with; those that the user gave begin the first."""
        summary = starting_summary(self.rows, self.extended, self.families, self.statistics, rng, number)
        nodes = self._learned(summary, self._steady)
        nodes = {name: node.begun() if name in self.free else node for name, node in nodes.items()}
        if number == 0:
            for name, node in self._given_start.items():
                if name in self.free:
                    nodes[name] = nodes[name].with_parameters(node.parameters())
        return nodes

    @cached_property
    def _plans(self) -> TablePlans:
        """The junction trees of networks of tables: those of the steps, of their judge and of the information."""
        return TablePlans(self.extended, self.statistics)

    @cached_property
    def _expectation(self) -> NetworkExpectation:
        return self._new_expectation()

    def _new_expectation(self) -> NetworkExpectation:
        """An E-step, which keeps what it needs of rows that are one shard in this process."""
        private = [name for name in self.extended.names if isinstance(name, Auxiliary)]
        if private and self.extended.numbers:
            wide = list(dict.fromkeys(name.node for name in private))
            raise SizeError(
                f"{listing(wide)} has so many joint states of its parents that EM learns it by a chain of its "
                "causes, and networks with real nodes are learned from whole tables. Leave the rows with missing "
                "values in this family out, give it fewer parents, or declare states= for the real columns."
            )
        parents = {name: family.names[:-1] for name, family in self.families.items()}
        alone = self.rows.local is not None
        threads = worker_count(self.learning.options["threads"]) if alone else 1
        return NetworkExpectation(self._plans, parents, threads, keep=alone)

    def expect(self, parameters: Nodes) -> Expected[Summary]:
        """Observed log-likelihood at some nodes, and the expected statistics."""
        expected: Expected[Summary] = self.rows.ask(self._expectation, parameters)
        return expected

    def maximise(self, statistics: Summary, before: Nodes) -> Nodes:
        """The nodes of some statistics, variances held above their floors."""
        return self._learned(statistics, self._steady)

    def _learned(self, statistics: Summary, learners: Mapping[Hashable, Any]) -> Nodes:
        """The objective of a variance has one peak: the best value above a floor is the floor if the peak is below."""
        nodes = self.learning.learned(statistics, self.domain, learners, self.given)
        return {name: self._held(node) if name in self.free else node for name, node in nodes.items()}

    def _held(self, node: Node) -> Node:
        return node.held(self._least(node))

    def _least(self, node: Node) -> float:
        """The least variance that EM allows a node."""
        return self.floor * self.rows.units.get(node.domain.names[-1], (0.0, 1.0))[1] ** 2

    def log_prior(self, parameters: Nodes) -> float:
        """Log prior density of the parameters up to a constant; of nodes that share theirs, once."""
        leading = self.learning.leading
        return float(sum(parameters[name].log_prior() for name in self.free if name in leading))

    # -- parameters as one vector ------------------------------------------------------------------------------------

    def vector(self, parameters: Nodes) -> Floats:
        """Parameters of the free nodes one after another, regressions in units of their columns."""
        units, nodes = self.rows.units, [parameters[name] for name in self.free]
        return np.concatenate([np.zeros(0), *(n.in_units(n.parameters(), units, forward=True) for n in nodes)])

    def at(self, vector: Floats, like: Nodes) -> Nodes:
        """The nodes with these parameters; EstimateError where some are outside their range."""
        nodes, begin = dict(like), 0
        for name in self.free:
            size = like[name].parameters().size
            part = like[name].in_units(vector[begin : begin + size], self.rows.units, forward=False)
            nodes[name] = like[name].with_parameters(part)
            begin += size
        return nodes

    def prepared(self, start: Nodes) -> Nodes:
        """The start as the M-step would write it: a noisy-OR, say, with the trials that its weights have."""
        like = self.maximise(self.expect(start).statistics, start)
        return {n: node.with_parameters(start[n].parameters()) if n in self.free else node for n, node in like.items()}

    def hold(self, vector: Floats, like: Nodes) -> Floats:
        """Variances below their floors brought up to them."""
        try:
            nodes = self.at(vector, like)
            held = {name: self._held(nodes[name]) for name in self.free}
        except EstimateError:
            return vector
        return vector if all(held[name] is nodes[name] for name in self.free) else self.vector(held)

    # -- the fit -----------------------------------------------------------------------------------------------------

    def solve(self, control: Control) -> Found[NetworkFitted]:
        """Climb from every start, and keep the best; options and columns that do not fit are an error before that."""
        self._prepared, self._notes_on_columns  # noqa: B018
        return super().solve(control)

    def found(self, runs: Runs[Nodes]) -> Found[NetworkFitted]:
        """The nodes of the best run, and those that all rows show."""
        learning, options = self.learning, self.learning.options
        nodes = self._finished(runs.best)
        notes = (*self.data.notes, *self._notes_on_columns, *self._notes_on_start(nodes))
        nodes, more = self._with_shown(nodes)
        outcome = runs.outcome
        outcome = replace(
            outcome,
            history=tuple(value + more for value in outcome.history),
            state=replace(outcome.state, objective=outcome.state.objective + more),
        )
        scores = tuple(score + more for score in runs.scores)
        fitted = NetworkFitted(nodes, tuple(learning.hidden), learning.leading, scores, runs.evaluations)
        leading = [nodes[name] for name in learning.leading]
        stopped = [node.stopped for node in leading if node.stopped]
        by_steps = ONE_MORE if any(node.estimate == "mean" for node in leading) else ""
        return Found(
            fitted,
            "EM, exact expected statistics",
            estimate_in_words(BY_EM, leading),
            replace(outcome, converged=False, stop_reason=stopped[0]) if stopped else outcome,
            notes,
            self.plan_in_words(fitted),
            None if options["prior"] is None else by_steps + "in the probabilities of each row",
        )

    def _finished(self, nodes: Nodes) -> Nodes:
        """The nodes with what learning from the expected statistics says about them besides their parameters."""
        learners = {name: learner.for_em(filled=False) for name, learner in self.learners.items()}
        finished = self._learned(self.expect(nodes).statistics, learners)
        for name in self.free:
            if not np.isnan(finished[name].parameters()).any():
                finished[name] = finished[name].with_parameters(nodes[name].parameters())
        return finished

    def _notes_on_start(self, nodes: Nodes) -> tuple[str, ...]:
        """What to say about the start that was given; nodes without one begin at random, whatever the seed."""
        if not self._given_start or not self._unseen:
            return ()
        notes = symmetry_notes(self.start(0, np.random.default_rng(0)), nodes, self._unseen)
        return tuple(Remark(note, OptionWarning) for note in notes)

    def _with_shown(self, nodes: Nodes) -> tuple[Nodes, float]:
        """The nodes with those that others stood for, learned from the rows; and what they add to the objective."""
        if not self.placeholders:
            return nodes, 0.0
        refuse_impossible(self.rows, {name: self.fixed[name] for name in self.placeholders if name in self.fixed})
        shown = {}
        for name in self.placeholders:
            family, learner = self.learning.family(name, self.domain), self.learners[name].of_family()
            shown[name] = self.fixed.get(name) or learner.learn(family, family_summary(self.rows, family, learner))
        return {**nodes, **shown}, difference(self.rows, shown, self.placeholders)

    def identity(self) -> Iterable[Any]:
        """Rows, and options that steer the way."""
        options = {name: repr(value) for name, value in self.learning.options.items() if name not in LIMITS}
        return *self.rows.identity(), options

    # -- the judge ---------------------------------------------------------------------------------------------------

    def expect_again(self, parameters: Nodes) -> Expected[Summary]:
        """Row by row, through the engines that answer queries."""
        expected: Expected[Summary] = self.rows.ask(ExpectationOfJudge(self._plans), parameters)
        return expected

    def parts(self, parameters: Nodes) -> Parts:
        """Free coordinates of the nodes that EM learns; tied nodes move together."""
        groups = [self.learning.group_of(name) for name in self.learning.leading if name not in self.placeholders]
        return Parts(parameters, groups, self.rows.units)

    def observed_information(self, parameters: Nodes) -> ObservedInformation:
        """Of the objective, in the free coordinates of the nodes.

        The score of the observed rows is the expected score of the complete ones (Fisher's identity). Its derivative,
        by central differences, is minus the information; at statistics that stay as they are, that of complete rows.
        """
        parts = self.parts(parameters)
        # By an E-step of its own: the last bits of one may depend on the nodes that it saw first, and a network that
        # was read from a file must say what its fit has said.
        ask, expectation = self.rows.ask, self._new_expectation()
        observed = score_differences(
            lambda delta: parts.score(moved := parts.moved(delta), ask(expectation, moved).statistics), parts.size
        )
        expected = ask(expectation, parameters).statistics
        complete = score_differences(lambda delta: parts.score(parts.moved(delta), expected), parts.size)
        scale = np.abs(np.diag(complete))
        return ObservedInformation(parts.names, observed, observed, scale, scale)

    def judge(self, fitted: NetworkFitted) -> Judgement:
        """One more step by other code, what runs to the edge, and what the rows determine."""
        nodes, leading = dict(fitted.nodes), [fitted.nodes[name] for name in self.learning.leading]
        log_likelihood = self.log_likelihood(fitted)
        parameters = {**nodes, **self.placeholders}
        expected = self.expect_again(parameters)
        gap = self.change(parameters, expected)
        fixed = self.learning.fixed
        free = {name: node for name, node in nodes.items() if name not in fixed}
        slopes = self._slopes(nodes, expected.statistics)
        own_gap, edges = self._edges(free, slopes)
        errors_of_slope, slope = largest(slopes)
        gap = max(gap, own_gap)
        errors = ObservedErrors(self, parameters, gap)
        most = max(fitted.expectations, MOST_ROWS / max(self.rows.count, 1))
        affordable = 2 * errors.parts.size <= most and gap <= STOPPED
        curvature = errors.curvature(fitted.scores) if affordable else None
        exists = False if edges else True if keeps_inside(free.values()) else None
        determined = (NOT_COMPUTED,) if curvature is None else curvature.warnings()
        return Judgement(
            log_likelihood,
            log_likelihood + float(sum(node.log_prior() for node in leading)),
            Certificate(
                errors_of_slope,
                exists=exists,
                directions=edges,
                slope=slope,
                slope_unit=SLOPE_UNIT,
                curvature=curvature,
            ),
            gap,
            matched=partial(self.matched, fitted),
            kept=errors.at_rest(),
            notes=(*notes_on_nodes(self.learning, leading), *determined, *self.rows.notes),
            n_params=None if curvature is None else fitted.n_params - len(curvature.flat),
        )

    def log_likelihood(self, fitted: NetworkFitted) -> float:
        """Of the rows, whose missing values are summed out, by the engines that answer queries."""
        if isinstance(self.data, HeldData):
            return float(self.rows.ask(row_scores, dict(fitted.nodes)))
        return fitted.log_likelihood(self.data.statistics)

    def plan_in_words(self, fitted: NetworkFitted) -> str | None:
        """The junction tree of a fit; None where there is none, as a table that all rows show does not fit."""
        try:
            plan = fitted.inference.plan
        except SizeError:
            return None
        return None if plan is None else str(plan)

    def _slopes(self, nodes: Nodes, expected: Summary) -> list[tuple[float, float]]:
        """The slopes of the nodes that EM learns, in standard errors and as they are, at expected statistics.

        By Fisher's identity they are those of the objective: what the E-step expects of each statistic, less what the
        parameters expect. Nodes that share their parameters have one slope.
        """
        learned = [name for name in self.learning.leading if name not in self.placeholders]
        return [nodes[n].steepest(self._steady[n].pooled(expected), self._least(nodes[n])) for n in learned]

    def _edges(self, free: Mapping[Hashable, Any], slopes: list[tuple[float, float]]) -> tuple[float, tuple[str, ...]]:
        """The largest slope a row of nodes that all rows show, and what runs to the edge; `free` nodes are not fixed.

        The slopes of those nodes are added to `slopes`.
        """
        gap, directions = 0.0, [direction for node in free.values() for direction in node.directions]
        for name in [name for name in self.placeholders if name in free]:
            own = family_summary(self.rows, free[name].domain, self.learners[name].of_family())
            gap = max(gap, free[name].gap(own))
            slopes.append(free[name].steepest(own))
            directions += free[name].edges(own)
        alone = {name: node for name, node in free.items() if len(self.learning.group_of(name)) == 1}
        expected = {name: node for name, node in alone.items() if name not in self.placeholders}
        directions += never_shown(self.rows, expected)
        inner = {parent for parents in self.learning.parents.values() for parent in parents}
        leaves = {name: node for name, node in expected.items() if name not in inner}
        directions += never_in_leaves(self.rows, leaves, {name: self.learners[name].of_family() for name in leaves})
        return gap, tuple(dict.fromkeys(directions))

    def matched(self, fitted: NetworkFitted) -> MatchedStatistics | None:
        """Expected shares of the cells of the tables, and as the parents' counts and the tables make them."""
        return matched_statistics_of([(fitted.nodes[name], None) for name in self.learning.leading])
