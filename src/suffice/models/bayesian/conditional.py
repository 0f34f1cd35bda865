"""Networks trained for their target: the tables around it maximise the sum of log P(target | rest), see `blanket`.

All other nodes are learned as ever; they do not enter P(target | rest).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.errors import EstimateError, OptionError, Remark, SeparationWarning, listing
from suffice.fitting.contract import Found, Judgement
from suffice.fitting.control import Control
from suffice.fitting.report import Certificate, MatchedStatistics
from suffice.models.bayesian.blanket import Blanket, blanket_families, hands_on_normalisers
from suffice.models.bayesian.certificate import closed_form_certificate
from suffice.models.bayesian.complete import CompleteProblem
from suffice.models.bayesian.fitted import NetworkFitted
from suffice.models.bayesian.learning import NodeLearning
from suffice.models.conditional_field.existence import MOST_WEIGHTS, decide
from suffice.records import replace
from suffice.solvers.registry import Objective, named
from suffice.statistics import Counts, Summary

#: What nodes are called whose tables were learned for the target.
CONDITIONAL = "conditional"
#: Most cells for which a matrix of second derivatives is made.
MOST_CELLS = 2000
#: The unit of slopes.
SLOPE_UNIT = "nats per unit of the logarithm of a cell"
#: What an estimate is called, without a prior and with one.
ESTIMATES = {False: "maximum likelihood", True: "MAP"}
NO_MAXIMUM = Remark(
    "no maximum: the states of the target are separated, and tables run to 0 and 1; give a prior", SeparationWarning
)


def check_conditional(learning: NodeLearning, domain: Domain) -> None:
    """Refuse what the conditional likelihood does not take, with the way that there is."""
    target, options = learning.options["target"], learning.options
    names = blanket_families(learning.parents, target)
    around = dict.fromkeys(name for node in names for name in (*learning.parents[node], node))
    hidden = [name for name in around if name in learning.hidden]
    if hidden:
        raise OptionError(
            f"objective='conditional' needs every node around {target!r} in the rows; {listing(hidden)} is hidden. Use "
            "objective='joint', which learns hidden nodes by EM."
        )
    real = [name for name in around if domain[name].kind != "discrete"]
    if real:
        instead = "GLM(family='gaussian')" if target in real else "GLM(family='multinomial')"
        raise OptionError(
            f"objective='conditional' learns tables; {listing(real)} around the target {target!r} is real. Use "
            f"objective='joint', or the regression of {target!r} on the others, {instead}."
        )
    kinds = [name for name in names if learning.chosen_kind(name) not in (None, "table")]
    if kinds:
        raise OptionError(f"objective='conditional' learns tables; nodes= makes {listing(kinds)} of another kind.")
    tied = [name for name in names if len(learning.group_of(name)) > 1]
    if tied:
        raise OptionError(f"objective='conditional' learns each table by itself; {listing(tied)} is tied.")
    if options["estimate"] == "mean":
        raise OptionError(
            "estimate='mean' is the mean of a posterior that objective='conditional' does not have. Leave estimate= "
            "out: pseudo-counts are then added to the counts; or say estimate='map'."
        )
    if options["start"] is not None:
        raise OptionError("start= has no effect with objective='conditional', which begins at shares of counts.")


@dataclass(frozen=True, eq=False)
class ConditionalProblem(CompleteProblem):
    """Complete rows meet a network whose tables around the target are learned for it."""

    @property
    def target(self) -> Hashable:
        """The node that is to be told from the others."""
        target: Hashable = self.learning.options["target"]
        return target

    @property
    def names(self) -> tuple[Hashable, ...]:
        """The nodes whose tables see the target, itself first."""
        return blanket_families(self.learning.parents, self.target)

    @cached_property
    def free(self) -> tuple[Hashable, ...]:
        """Those of them that are learned."""
        return tuple(name for name in self.names if name not in self.learning.fixed)

    @property
    def penalised(self) -> bool:
        """Whether a prior speaks of the tables."""
        return self.learning.options["prior"] is not None

    @property
    def _around(self) -> tuple[Any, Floats]:
        """The distinct rows (n, d) of the target and its surroundings, and their weights: as such, or from counts."""
        question = self.learning.around_target()
        if question in self.summary.answers:
            patterns: Any = self.summary[question]
            return patterns.rows, patterns.weights
        counts: Any = self.summary[Counts(question.columns)]
        cells, weights = counts.items()
        return cells, weights

    def blanket(self, fitted: NetworkFitted) -> Blanket:
        """The rows as the target sees them, with the tables of a fitted value."""
        rows, weights = self._around
        codes = dict(zip(self.learning.around_target().columns, rows.T.astype(np.int64), strict=True))
        nodes = [fitted.nodes[name] for name in self.names]
        large = [node.name for node in nodes if node.configurations is not None]
        if large:
            raise EstimateError(
                f"The tables of {listing(large)} are too large to be kept whole, as objective='conditional' needs them."
                " Use objective='joint', or fewer parents."
            )
        less = 1.0 if self.learning.options["estimate"] == "map" else 0.0
        low = [n.name for n in nodes if n.alpha is not None and n.name in self.free and (n.alpha < less).any()]
        if low:
            raise EstimateError(
                f"The pseudo-counts of {listing(low)} are below 1: with estimate='map' the objective has no maximum. "
                "Leave estimate= out, or give pseudo-counts of at least 1."
            )
        return Blanket.of(nodes, tuple(self.learning.fixed), self.target, codes, weights, less)

    # -- solving -----------------------------------------------------------------------------------------------------

    def solve(self, control: Control) -> Found[NetworkFitted]:
        """The closed form for all nodes, then those around the target from there."""
        from suffice.engines.workers import with_one_blas_thread

        first = super().solve(control)
        blanket = self.blanket(first.fitted)
        name = self.learning.options["solver"]
        solver = named("lbfgs" if name == "auto" else name, ("auto",))
        start = [np.log(node.counts + 1.0) for node in (table.node for table in blanket.free)]
        objective = Objective(
            blanket.evaluate,
            np.concatenate([part.ravel() for part in start]) if start else np.zeros(0),
            control,
            scale=lambda: blanket.scale,
            gap=blanket.gap,
            memory=30,
        )
        outcome = with_one_blas_thread(lambda: solver.maximise(objective))
        rows = blanket.rows_of(outcome.state.parameters)
        nodes = dict(first.fitted.nodes)
        for table, own in zip(blanket.free, rows, strict=True):
            shares = np.exp(own)
            nodes[table.node.name] = replace(table.node, rows=shares / shares.sum(axis=1, keepdims=True))
        for node in self.free:
            nodes[node] = replace(nodes[node], estimate=CONDITIONAL)
        return Found(
            replace(first.fitted, nodes=nodes),
            f"{solver.title} for the tables around {self.target!r}; closed form for all others",
            f"{ESTIMATES[self.penalised]} of {self.target!r} given all others",
            outcome,
            first.notes,
            parameterisation="in the logarithms of the probabilities" if self.penalised else None,
        )

    # -- judging -----------------------------------------------------------------------------------------------------

    def judge(self, fitted: NetworkFitted) -> Judgement:
        """Slopes, what is left to the maximum and whether there is one; other nodes each by itself."""
        blanket = self.blanket(fitted)
        rows = _log_rows(blanket)
        posterior = blanket.log_posterior(rows)
        value = blanket.log_likelihood(posterior)
        slope = blanket.slope(rows, posterior)
        others = [(node, own) for node, own in self._pairs(fitted) if node.name not in self.free]
        other_gap, closed = closed_form_certificate(others, self.summary.weight)
        small = blanket.size <= MOST_CELLS
        exists, directions = self._existence(blanket)
        loss = self._loss(blanket, rows, posterior) if exists is not False else None
        if loss is not None:
            loss = None if closed.value_gap is None else loss / max(blanket.weight, 1e-300) + closed.value_gap
        finite = bool(np.isfinite(slope).all())
        gap = blanket.gap(np.concatenate([own.ravel() for own in rows]), slope) if finite and rows else 0.0
        gap = gap if finite else np.nan
        certificate = Certificate(
            max(gap, closed.moment_gap),
            loss,
            bound=loss is not None,
            exists=None if exists is None else exists and closed.exists,
            directions=(*directions, *closed.directions),
            slope=max(float(np.abs(slope).max(initial=0.0)), closed.slope or 0.0),
            slope_unit=SLOPE_UNIT,
        )
        return Judgement(
            value,
            value + blanket.log_prior(rows),
            certificate,
            max(gap, other_gap),
            matched=partial(self.conditional_matches, fitted),
            n_params=blanket.rank(rows) if small else None,
            verdict=NO_MAXIMUM if exists is False else "",
            notes=(NO_MAXIMUM,) if exists is False else (),
        )

    def _pairs(self, fitted: NetworkFitted) -> list[tuple[Any, Summary]]:
        return list(zip(self._leading(fitted), self._own_statistics, strict=True))

    def _loss(self, blanket: Blanket, rows: list[Floats], posterior: Floats) -> float | None:
        """A bound of what the objective can still rise: with pseudo-counts, or as that of a logistic regression."""
        if self.penalised:
            return blanket.penalised_bound(rows, posterior)
        small = blanket.size <= MOST_CELLS
        if not small or not hands_on_normalisers(self.learning.parents, self.target, self.free):
            return None
        return blanket.loss_bound(posterior)

    def _existence(self, blanket: Blanket) -> tuple[bool | None, tuple[str, ...]]:
        """Whether the maximum exists: with pseudo-counts it does, else as that of a logistic regression.

        A cell without any weight in its row stays where it is, and says nothing about it.
        """
        if not blanket.free:
            return True, ()
        if all((table.pseudo > 0).all() for table in blanket.free):
            return True, ()
        if any(table.pseudo.any() for table in blanket.free) or blanket.size > MOST_WEIGHTS:
            return None, ()
        if len(blanket.free) < len(blanket.tables) or not hands_on_normalisers(
            self.learning.parents, self.target, self.free
        ):
            return None, ()
        exists, direction = separated(blanket)
        if direction is None:
            return exists, ()
        names = [name for table in blanket.free for name in table.node.cell_names(np.arange(len(table.node.rows)))]
        size = np.abs(direction)
        order = np.argsort(-size, kind="stable")[: np.count_nonzero(size > 1e-9 * size.max())]
        return exists, tuple(f"log P({names[j]}) -> {'+' if direction[j] > 0 else '-'}inf" for j in order[:20])

    def conditional_matches(self, fitted: NetworkFitted) -> MatchedStatistics:
        """Counts of the cells around the target, and those expected under P(target | rest), a row."""
        blanket = self.blanket(fitted)
        rows = _log_rows(blanket)
        slope = blanket.slope(rows, blanket.log_posterior(rows)) / max(blanket.weight, 1e-300)
        observed, pull, names = [], [], []
        for table, own in zip(blanket.free, rows, strict=True):
            counts = np.bincount(table.cells.ravel(), blanket.counts.ravel(), minlength=table.size)
            observed.append(counts / max(blanket.weight, 1e-300))
            prior = table.pseudo - np.exp(own) * table.pseudo.sum(axis=1, keepdims=True)
            pull.append(prior.ravel() / max(blanket.weight, 1e-300))
            names += table.node.cell_names(np.arange(len(table.node.rows)))
        seen, pulled = np.concatenate(observed), np.concatenate(pull)
        about = f"cells around {self.target!r}: their share of the rows, and that expected given all others"
        return MatchedStatistics(
            tuple(names), seen, seen + pulled - slope, pulled if self.penalised else None, about=about
        )

    def identity(self) -> Iterable[Any]:
        """The structure, the rows around the target, and what steers the way."""
        options = self.learning.options
        chosen = (options["solver"], options["estimate"], repr(options["prior"]))
        rows, weights = self._around
        return (
            "BayesianNetwork",
            repr(self.learning.parents),
            repr(self.target),
            *chosen,
            rows,
            weights,
        )


def _log_rows(blanket: Blanket) -> list[Floats]:
    """The logarithms of the rows of the learned tables, as they are."""
    with np.errstate(divide="ignore"):
        return [np.log(table.node.rows) for table in blanket.free]


def separated(blanket: Blanket) -> tuple[bool | None, Floats | None]:
    """Whether the maximum of the logistic regression on the cells exists, and a direction (size,) if not."""
    states = blanket.counts.shape[1]
    features, seen = blanket.indicators, np.flatnonzero(blanket.counts.ravel() > 0)
    configurations = seen // states
    observed = np.asarray(features[seen].sum(axis=0)).ravel()
    means = np.zeros(blanket.counts.size)
    np.add.at(means.reshape(-1, states), configurations, 1.0 / states)

    def best(direction: Floats) -> Floats:
        top = (features @ direction).reshape(-1, states).argmax(axis=1)
        return np.asarray(features[configurations * states + top[configurations]].sum(axis=0)).ravel()

    return decide(best, observed, observed - np.asarray(means @ features).ravel())
