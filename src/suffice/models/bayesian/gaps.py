"""What a network does about gaps and hidden nodes: it asks for the distinct rows and learns from them by EM."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from suffice.domain import Domain, Variable, declare
from suffice.errors import EstimateError, OptionError, listing
from suffice.iteration import Control, Outcome
from suffice.models.bayesian.learning import NetworkLearning
from suffice.models.bayesian.nodes.kinds import kind_of
from suffice.models.bayesian.rows import check_start, has_gaps, read_rows
from suffice.report import Certificate
from suffice.statistics import Summary

if TYPE_CHECKING:
    from suffice.models.bayesian.em.fit import EMFit


class NetworkGaps(NetworkLearning):
    """Mixed into the network, which gives the structure, the options and the fitted nodes."""

    summary_: Summary
    #: Objective of each EM run.
    scores_: tuple[float, ...]
    #: How often expected statistics were computed, in all EM runs together.
    n_expectations_: int

    @property
    def _hidden(self) -> dict[Hashable, Variable]:
        """The variables that are never observed: a number of states, a list of them, or "real"."""
        found: dict[Hashable, Variable] = {}
        for name, value in (self._options["hidden"] or {}).items():
            if isinstance(value, int) and value < 1:
                raise OptionError(f"hidden[{name!r}] is {value}; expected a number of states of at least 1.")
            found[name] = declare(name, range(value) if isinstance(value, int) else value)
        return found

    def _em(self, summary: Summary) -> EMFit:
        """The EM problem of a summary."""
        # EM and its engines load when rows have gaps.
        from suffice.models.bayesian.em.fit import EMFit

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

        rows = read_rows(summary, domain)
        return EMFit(rows, families, self._learners(domain), learn, given, start, self._options)

    def _notes_on_gaps(self, summary: Summary, given: Mapping[Hashable, Any]) -> tuple[str, ...]:
        """What to say about columns without a single value; one of numbers to be learned is an error."""
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
        runs = self._em(summary).run(control)
        self.scores_, self.n_expectations_ = runs.scores, runs.evaluations
        return runs.nodes, runs.outcome, runs.notes

    def _em_certificate(self, summary: Summary) -> Certificate:
        gap = self._em(summary).gap(self._nodes())
        edges = tuple(direction for node in self._free().values() for direction in getattr(node, "directions", ()))
        scale = "change of a parameter, in units of its columns, by one more EM step"
        return Certificate(gap, exists=False if edges else None, directions=edges, scale=scale)

    def _objective(self, summary: Summary, log_likelihood: float) -> float:
        """What closed forms maximise and EM climbs: the log-likelihood, and the log prior up to a constant."""
        if self._options["prior"] is None:
            return log_likelihood
        return log_likelihood + float(sum(node.log_prior() for node in self._leading().values()))

    def _with_errors(self, node: Any) -> Any:
        """A node that gives its standard errors from the observed information, where rows had gaps."""
        summary = self.__dict__.get("summary_")
        if summary is None or not has_gaps(summary) or not hasattr(node, "observed") or node.name not in self._free():
            return node
        if "_errors" not in self.__dict__:
            from suffice.models.bayesian.em.standard_errors import ObservedErrors

            fit = self._em(summary)
            groups = [self._group_of(name) for name in self._leading()]
            self._errors = ObservedErrors(fit.plan, self._nodes(), groups, fit.rows.units)
        return replace(node, observed=self._errors)
