"""Learning a network from rows with gaps: the parts of EM put together for the fit, its certificate and its errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from suffice.domain import Domain, Variable
from suffice.errors import OptionError, SizeError, SufficeWarning, listing
from suffice.families.base import generator
from suffice.fitting.control import Control, fingerprint
from suffice.models.bayesian.em.check import expected_again
from suffice.models.bayesian.em.mixed_expectation import MixedExpectation, Shape
from suffice.models.bayesian.em.start import starting_summary
from suffice.models.bayesian.em.steps import Expectation, NetworkEM, Nodes, shared
from suffice.models.bayesian.em.symmetry import symmetry_notes
from suffice.models.bayesian.em.table_expectation import TableExpectation
from suffice.models.em.rows import Rows
from suffice.models.em.runs import Runs, run_all
from suffice.statistics import Statistic, Summary

Learn = Callable[[Summary, Mapping[Hashable, Any]], Nodes]


@dataclass(frozen=True)
class ExpectationPlan:
    """How the E-step of a network is made; it can be copied and saved, as the E-step itself need not be."""

    rows: Rows
    families: Mapping[Hashable, Domain]
    statistics: tuple[Statistic, ...]
    threads: int = 1

    def __call__(self) -> Expectation:
        """The E-step: by one junction tree for tables alone, by blocks of rows where nodes are real."""
        rows = self.rows
        if any(variable.kind != "discrete" for variable in rows.domain.variables):
            private = [name for name in rows.domain.names if name not in self.families]
            if private:
                wide = list(dict.fromkeys(name.node for name in private))  # type: ignore[attr-defined]
                raise SizeError(
                    f"{listing(wide)} has so many joint states of its parents that EM learns it by a chain of its "
                    "causes, and networks with real nodes are learned from whole tables. Leave the rows with gaps in "
                    "this family out, give it fewer parents, or declare states= for the real columns."
                )
            parents = {name: family.names[:-1] for name, family in self.families.items()}
            return MixedExpectation(Shape(rows.domain, parents, self.statistics), rows.columns, rows.weights)
        names = tuple(rows.columns)
        empty = np.zeros((len(rows.weights), 0), np.int32)
        codes = np.stack([rows.columns[name] for name in names], axis=1) if names else empty
        return TableExpectation(rows.domain, names, codes, rows.weights, self.statistics, self.threads)


@dataclass(frozen=True)
class EMFit:
    """EM for one network and one summary.

    `families` are the domains (parents, node); `learners` say how nodes are learned, and `learn` learns all of them
    from statistics; `given` nodes stay as they are. `start` holds nodes to begin with. `stand_ins` are those among the
    given nodes that stand for others, whose families all rows show.
    """

    rows: Rows
    families: Mapping[Hashable, Domain]
    learners: Mapping[Hashable, Any]
    learn: Learn
    given: Mapping[Hashable, Any]
    start: Mapping[Hashable, Any]
    options: Mapping[str, Any]
    stand_ins: Mapping[Hashable, Any] = field(default_factory=dict)

    @cached_property
    def steady(self) -> dict[Hashable, Any]:
        """The learners of the steps: each node from its own family, and defined also for states without rows."""
        changes: dict[str, Any] = {"pool": (), "unseen": "uniform", "in_steps": True}
        return {name: _changed(learner, **changes) for name, learner in self.learners.items()}

    def alone(self, name: Hashable) -> Any:
        """The learner of a node that another one stands for: from the rows of its own family."""
        return _changed(self.learners[name], pool=())

    @cached_property
    def statistics(self) -> tuple[Statistic, ...]:
        """What complete rows would be asked for."""
        free = [name for name in self.families if name not in self.given]
        asked = (q for name in free for q in self.steady[name].statistics(self.families[name]))
        return tuple(dict.fromkeys(asked))

    @cached_property
    def extended(self) -> Rows:
        """The rows, with the private variables of wide nodes among those that are hidden; they have two states."""
        scopes = [question.columns for question in self.statistics]
        for node in self.given.values():
            scopes += [names for names, _ in getattr(node, "expectation_factors", list)()]
        private = dict.fromkeys(name for scope in scopes for name in scope if name not in self.rows.domain)
        more = Domain(Variable.discrete(name, (False, True)) for name in private)
        return replace(self.rows, domain=self.rows.domain.merge(more)) if private else self.rows

    @cached_property
    def problem(self) -> NetworkEM:
        """The E-step and the M-step."""
        rows, free = self.rows, tuple(name for name in self.families if name not in self.given)
        floor, size = self.options["variance_floor"], max(float(rows.weights.sum()), 1.0)
        if not (isinstance(floor, int | float) and 0 <= floor < 1):
            raise OptionError(f"variance_floor is {floor!r}; expected a share of the variance of a column, 0 to 1.")
        return NetworkEM(
            self.expect, lambda summary: self.learn(summary, self.steady), free, shared(self.learners, free),
            rows.units, float(floor), size,
        )  # fmt: skip

    @cached_property
    def plan(self) -> ExpectationPlan:
        """How the E-step is made."""
        return ExpectationPlan(self.extended, self.families, self.statistics, self.options["threads"])

    @cached_property
    def _expectation(self) -> Expectation:
        return self.plan()

    def expect(self, nodes: Mapping[Hashable, Any]) -> tuple[float, Summary]:
        """Observed log-likelihood at some nodes, and the expected statistics."""
        return self._expectation.expect(nodes)

    def run(self, control: Control) -> Runs[Nodes]:
        """All runs; the nodes are those of the best."""
        hidden = [name for name in self.rows.domain.names if name not in self.rows.columns]
        count = self.options["n_init"] if hidden else 1
        if not (isinstance(count, int | np.integer) and count >= 1):
            raise OptionError(f"n_init is {count!r}; expected a whole number of at least 1.")
        seeds = generator(self.options["random_state"]).spawn(int(count))
        starts = [lambda number=number, seed=seed: self._start(number, seed) for number, seed in enumerate(seeds)]
        runs = run_all(
            self.problem, starts, control,
            acceleration=self.options["acceleration"], fingerprint=self._fingerprint(control),
        )  # fmt: skip
        plain = {name: _changed(learner, pool=(), in_steps=True) for name, learner in self.learners.items()}
        nodes = self.problem.finished(runs.best, lambda summary: self.learn(summary, plain))
        return replace(runs, best=nodes, notes=self._notes(nodes, hidden))

    def _notes(self, nodes: Nodes, hidden: list[Hashable]) -> tuple[str, ...]:
        """What to say about the start that was given; nodes without one begin at random, whatever the seed."""
        if not self.start or not hidden:
            return ()
        notes = symmetry_notes(self._start(0, np.random.default_rng(0)), nodes, hidden)
        for note in notes:
            warnings.warn(note, SufficeWarning, stacklevel=2)
        return notes

    def _start(self, number: int, rng: np.random.Generator) -> Nodes:
        """The nodes to begin a run with; those that the user gave begin the first."""
        summary = starting_summary(self.extended, self.families, self.statistics, rng, number)
        nodes = self.problem.learned(summary)
        if number == 0:
            for name, node in self.start.items():
                if name in self.problem.free:
                    nodes[name] = nodes[name].with_parameters(node.parameters())
        return nodes

    def _fingerprint(self, control: Control) -> str:
        """What tells this fit from others; made only where a checkpoint needs it."""
        if control.checkpoint is None:
            return ""
        limits = {"max_iter", "max_seconds", "tolerance", "progress", "callback", "checkpoint", "threads"}
        options = {name: repr(value) for name, value in self.options.items() if name not in limits}
        columns = [[repr(name), values] for name, values in self.rows.columns.items()]
        return fingerprint(self.rows.domain, columns, self.rows.weights, options)

    # -- the judge ---------------------------------------------------------------------------------------------------

    def gap(self, nodes: Mapping[Hashable, Any]) -> float:
        """The largest change of a parameter by one more step, its expectations computed afresh by other code."""
        summary = expected_again(self.extended, nodes, self.statistics)
        moved = self.problem.learned(summary)
        away = self.problem.vector(moved) - self.problem.vector(nodes)
        return float(np.abs(away).max(initial=0.0))


def _changed(learner: Any, **options: Any) -> Any:
    """The learner with some options, where it has them; of tied nodes the one inside."""
    if hasattr(learner, "alone"):
        return replace(learner, alone=_changed(learner.alone, **options))
    return replace(learner, **{name: value for name, value in options.items() if hasattr(learner, name)})
