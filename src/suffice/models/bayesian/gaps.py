"""What a network does about gaps and hidden nodes: it asks for the distinct rows and learns from them by EM."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, cast

from suffice.domain import Domain, Variable
from suffice.errors import EstimateError, SizeError, listing
from suffice.models.bayesian.learning import NetworkLearning
from suffice.records import replace

if TYPE_CHECKING:
    from suffice.fitting.control import Control, Outcome
    from suffice.fitting.report import Certificate
    from suffice.models.bayesian.em.fit import EMFit
    from suffice.models.bayesian.em.standard_errors import ObservedErrors
    from suffice.statistics import Summary

#: Rows that all E-steps together may go through to say what they determine, where EM itself took fewer steps.
MOST_ROWS = 200_000


class NetworkGaps(NetworkLearning):
    """Mixed into the network, which gives the structure, the options and the fitted nodes."""

    summary_: Summary
    #: Objective of each EM run.
    scores_: tuple[float, ...]
    #: How often expected statistics were computed, in all EM runs together.
    n_expectations_: int
    #: What answers questions to the fitted nodes.
    _infer: Callable[[], Any]
    #: Standard errors after EM; None where the rows show all nodes.
    _errors: ObservedErrors | None

    @property
    def _hidden(self) -> dict[Hashable, Variable]:
        """The variables that are never observed: a number of states, a list of them, or "real"."""
        if not self._options["hidden"]:
            return {}
        from suffice.models.em.hidden import hidden_variables

        return hidden_variables(self._options["hidden"])

    def _complete(self, summary: Summary) -> Summary:
        """The statistics of a closed form, where a summary holds distinct rows that show all nodes; else the summary.

        Such rows are what is left when those with gaps are unlearned; with others they may join again.
        """
        from suffice.models.em.rows import has_gaps, read_rows

        if not has_gaps(summary) or self._hidden or not set(self._parents) <= set(summary.domain.names):
            return summary
        rows = read_rows(summary, summary.domain)
        if not rows.show(self._parents):
            return summary
        from suffice.models.em.rows import batch_of
        from suffice.sources.tally import tally
        from suffice.statistics import Summary

        found = tally(batch_of(rows, rows.columns), self._asked(summary.domain), "available")
        return Summary(found.domain, found.answers, summary.rows, summary.weight)

    def _em(self, summary: Summary) -> EMFit:
        """The EM problem of a summary."""
        # EM and its engines load when rows have gaps.
        from suffice.models.bayesian.em.fit import EMFit
        from suffice.models.bayesian.em.given import check_start
        from suffice.models.bayesian.em.shown import stand_ins
        from suffice.models.bayesian.nodes.kinds import kind_of
        from suffice.models.em.rows import read_rows

        domain = summary.domain.merge(Domain(self._hidden.values()))
        families = {node: self._family(node, domain) for node in self._parents}
        given = self._given_nodes(domain)
        start = {
            name: kind_of(families[name], getattr(values, "kind", self._chosen_kind(name))).given(
                families[name], values, self._wishes(name, domain)
            )
            for name, values in check_start(self._options["start"], tuple(self._parents)).items()
        }

        def learn(expected: Summary, learners: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
            return self._learned(expected, domain, learners, given)

        rows, learners = read_rows(summary, domain), self._learners(domain)
        given |= (others := stand_ins(rows, families, learners, given))
        families |= {name: domain.select([name]) for name in others}
        return EMFit(rows, families, learners, learn, given, start, self._options, others)

    def _notes_on_gaps(self, summary: Summary, given: Mapping[Hashable, Any]) -> tuple[str, ...]:
        """What to say about columns without a single value; one of numbers to be learned is an error."""
        from suffice.models.em.rows import read_rows

        seen = read_rows(summary, summary.domain).columns
        empty = [name for name in summary.domain.names if name not in seen and name not in self._hidden]
        if not summary.weight > 0 or not empty:
            return ()
        real = [name for name in empty if summary.domain[name].kind != "discrete" and name not in given]
        if real:
            raise EstimateError(
                f"The columns {listing(real)} hold no value at all, so nothing can be learned about them. Leave them "
                "out, or declare them hidden={name: 'real'} if that is what they are."
            )
        return (f"The columns {listing(empty)} hold no value at all and are treated as hidden, see hidden=.",)

    def _run_em(self, summary: Summary, control: Control) -> tuple[dict[Hashable, Any], Outcome, tuple[str, ...]]:
        """The nodes, how the best run ended, and notes on its start."""
        fit = self._em(summary)
        runs = fit.run(control)
        nodes, more = self._with_shown(runs.best, fit)
        history = tuple(value + more for value in runs.outcome.history)
        state = replace(runs.outcome.state, objective=runs.outcome.state.objective + more)
        self.scores_, self.n_expectations_ = tuple(score + more for score in runs.scores), runs.evaluations
        return nodes, replace(runs.outcome, history=history, state=state), runs.notes

    def _plan_in_words(self) -> str | None:
        """The junction tree of a fit by EM; None where there is none, as a table that all rows show does not fit."""
        try:
            plan = getattr(self._infer(), "plan", None)
        except SizeError:
            return None
        return None if plan is None else str(plan)

    def _with_shown(self, nodes: Mapping[Hashable, Any], fit: EMFit) -> tuple[dict[Hashable, Any], float]:
        """The nodes with those that others stood for, learned from the rows; and what they add to the objective."""
        from suffice.models.bayesian.em.shown import difference, family_summary, refuse_impossible

        if not fit.stand_ins:
            return dict(nodes), 0.0
        given = self._given_nodes(fit.rows.domain)
        refuse_impossible(fit.rows, {name: given[name] for name in fit.stand_ins if name in given})
        found = {}
        for name in fit.stand_ins:
            family = self._family(name, fit.rows.domain)
            learner = fit.alone(name)
            found[name] = given.get(name) or learner.learn(family, family_summary(fit.rows, family, learner))
        return {**nodes, **found}, difference(fit.rows, found, fit.stand_ins)

    def _em_certificate(self, summary: Summary) -> Certificate:
        from suffice.fitting.report import Certificate
        from suffice.models.bayesian.em.shown import family_summary, keeps_inside, never_in_leaves, never_shown
        from suffice.models.em.reports import STOPPED

        fit, nodes = self._em(summary), self._nodes()
        gap, free = fit.gap({**nodes, **fit.stand_ins}), self._free()
        found = [direction for node in free.values() for direction in getattr(node, "directions", ())]
        for name in [name for name in fit.stand_ins if name in free]:
            own = family_summary(fit.rows, nodes[name].domain, fit.alone(name))
            gap = max(gap, nodes[name].gap(own))
            found += nodes[name].edges(own)
        alone = {name: node for name, node in free.items() if len(self._group_of(name)) == 1}
        expected = {name: node for name, node in alone.items() if name not in fit.stand_ins}
        found += never_shown(fit.rows, expected)
        inner = {parent for parents in self._parents.values() for parent in parents}
        leaves = {name: node for name, node in expected.items() if name not in inner}
        found += never_in_leaves(fit.rows, leaves, {name: fit.alone(name) for name in leaves})
        edges = tuple(dict.fromkeys(found))
        scale = "change of a parameter, in units of its columns, by one more EM step"
        errors = self._observed_errors(fit, gap)
        self._errors, self._shown = errors, frozenset(fit.stand_ins)
        steps = 2 * errors.size
        most = max(self.__dict__.get("n_expectations_", 0), MOST_ROWS / max(len(fit.rows.weights), 1))
        told = steps <= most and gap <= STOPPED
        curvature = errors.curvature(self.__dict__.get("scores_", ())) if told else None
        exists = False if edges else True if keeps_inside(free.values()) else None
        return Certificate(gap, exists=exists, directions=edges, scale=scale, curvature=curvature)

    def _observed_errors(self, fit: EMFit, step: float) -> ObservedErrors:
        """Errors from the observed information; step: the largest change by one more step of EM."""
        from suffice.models.bayesian.em.standard_errors import ObservedErrors

        groups = [self._group_of(name) for name in self._leading() if name not in fit.stand_ins]
        return ObservedErrors(fit.plan, {**self._nodes(), **fit.stand_ins}, groups, fit.rows.units, step)

    def _objective(self, summary: Summary, log_likelihood: float) -> float:
        """What closed forms maximise and EM climbs: the log-likelihood, and the log prior up to a constant."""
        return log_likelihood + float(sum(node.log_prior() for node in self._leading().values()))

    def _with_errors(self, node: Any) -> Any:
        """A node that gives its standard errors from the observed information, where rows had gaps."""
        summary = self.__dict__.get("summary_")
        if summary is None or len(summary.answers) != 1 or not hasattr(node, "observed"):
            return node
        from suffice.models.em.rows import has_gaps

        if not has_gaps(summary) or node.name not in self._free():
            return node
        if "_errors" not in self.__dict__ and self._complete(summary) is not summary:
            self._errors, self._shown = None, frozenset(self._parents)
        if "_errors" not in self.__dict__:
            fit, network = self._em(summary), cast(Any, self)
            self._errors = self._observed_errors(fit, network.report_.certificate.moment_gap)
            self._shown = frozenset(fit.stand_ins)
        return node if node.name in self._shown else replace(node, observed=self._errors)
