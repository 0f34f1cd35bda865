"""Exact answers in networks with generalised linear models among their nodes, where evidence makes them tables.

Nodes below what is asked and known sum to one and are left out. A node of states whose real parents are all known is a
table at these values. A known number whose real parents are known is a likelihood of its discrete parents: a private
node of two states that is observed; where it explains linear-Gaussian nodes, its effect joins their intercepts. What
remains are tables and linear-Gaussian nodes. Anything else has no closed form and is an error that names the node.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Flags, Floats
from suffice.domain import Domain, Variable
from suffice.errors import EstimateError, OptionError, listing
from suffice.graphs.directed import ancestors, topological_order
from suffice.models.bayesian.nodes.contract import Columns
from suffice.models.bayesian.nodes.linear_gaussian import LinearGaussianNode
from suffice.models.bayesian.nodes.table import TableNode
from suffice.models.bayesian.queries.exact import exact_inference
from suffice.models.bayesian.queries.tables import complete_rows, distributions_by_state, log_prob_of_whole_rows
from suffice.models.evidence import BY_SAMPLES, Evidence, Names, RowDistributions, read_evidence


@dataclass(frozen=True)
class SeenValue:
    """The name of the private node that stands for a number that was seen."""

    node: Hashable


@dataclass
class Reduced:
    """Nodes that exact engines take, what is known besides the user's evidence, and the log of a factor of all."""

    nodes: dict[Hashable, Any] = field(default_factory=dict)
    known: dict[Hashable, Hashable] = field(default_factory=dict)
    log_factor: float = 0.0
    #: Numbers that have become likelihoods; they are no nodes any more.
    folded: dict[Hashable, float] = field(default_factory=dict)


class ReducedInference:
    """Questions to a fitted network with nodes that exact engines do not take as they are."""

    kind = "mixed"
    plan = None

    def __init__(self, nodes: Mapping[Hashable, Any]) -> None:
        """Take the fitted nodes."""
        self.nodes = dict(nodes)
        self.parents = {name: node.domain.names[:-1] for name, node in self.nodes.items()}
        self.domain = Domain(node.domain[name] for name, node in self.nodes.items())
        self._kept: dict[frozenset[Hashable], Any] = {}

    def _real(self, name: Hashable) -> bool:
        return self.domain[name].kind != "discrete"

    # -- rewriting ---------------------------------------------------------------------------------------------------

    def _relevant(self, names: Iterable[Hashable]) -> list[Hashable]:
        """Some nodes and all above them, parents first."""
        kept = ancestors(self.parents, names)
        return [name for name in topological_order(self.parents) if name in kept]

    def _reduced(self, names: Sequence[Hashable], evidence: Evidence) -> Reduced:
        reduced = Reduced()
        for name in self._relevant([*names, *evidence.names]):
            node = self.nodes[name]
            if not node.is_exact:
                self._as_table(reduced, name, evidence)
            elif node.linear:
                reduced.nodes[name] = _folded(node, reduced.folded)
            else:
                reduced.nodes[name] = node
        return reduced

    def _as_table(self, reduced: Reduced, name: Hashable, evidence: Evidence) -> None:
        """Add a generalised linear model at the values that are known."""
        node = self.nodes[name]
        hidden = [parent for parent in node.real_parents if parent not in evidence.values]
        if hidden:
            raise OptionError(
                f"{name!r} is a GLM node and its real parents {listing(hidden)} are not among the evidence: its "
                f"distribution given the evidence has no closed form. Give their values, or: {BY_SAMPLES}"
            )
        if self._real(name) and name not in evidence.values:
            raise OptionError(
                f"{name!r} is a node of the {node.learned.family} family that is not among the evidence, and its "
                f"distribution given the evidence has no closed form. predict gives its mean. {BY_SAMPLES}"
            )
        values = {p: evidence.values[p] for p in (*node.real_parents, name) if p in evidence.values}
        logs = node.log_table(values)
        if np.isnan(logs).any():
            raise EstimateError(
                f"{name!r} is undefined for states of its parents that never occurred (unseen='nan'). Give the model a "
                "prior, or use unseen='uniform'."
            )
        scope = [variable for variable in node.domain.variables if variable.kind == "discrete"]
        if not self._real(name):
            reduced.nodes[name] = TableNode.given(Domain(scope), np.exp(logs))
            return
        reduced.folded[name] = evidence.values[name]
        top = float(logs.max())
        reduced.log_factor += top
        if scope and top > -np.inf:
            likelihood = np.exp(logs - top)
            seen = Variable.discrete(SeenValue(name), (False, True))
            both = np.stack([1.0 - likelihood, likelihood], axis=-1)
            reduced.nodes[seen.name] = TableNode.given(Domain([*scope, seen]), both)
            reduced.known[seen.name] = True

    def _inner(self, reduced: Reduced) -> Any:
        """The exact engine of what remains; kept where no number entered it."""
        key = frozenset(reduced.nodes)
        as_they_are = all(reduced.nodes[name] is self.nodes.get(name) for name in reduced.nodes)
        if not as_they_are:
            return exact_inference(reduced.nodes)
        if key not in self._kept:
            self._kept[key] = exact_inference(reduced.nodes)
        return self._kept[key]

    def _conditioned(
        self, names: Sequence[Hashable], given: Mapping[Any, Any] | None
    ) -> tuple[Reduced, dict[Hashable, Any]]:
        reduced = self._reduced(names, read_evidence(self.domain, given))
        inner = {name: value for name, value in (given or {}).items() if name in reduced.nodes}
        return reduced, inner | reduced.known

    # -- one question ------------------------------------------------------------------------------------------------

    def query(self, variables: Names, given: Mapping[Any, Any] | None) -> Any:
        """A table of discrete variables, or the distribution of linear-Gaussian ones, by the engine of what remains."""
        names = self.domain.names_of(variables)
        known = [name for name in names if name in read_evidence(self.domain, given).values]
        if known:
            raise OptionError(f"{listing(known)} is among the evidence: its value is known. Ask for the others.")
        reduced, inner = self._conditioned(names, given)
        if reduced.log_factor == -np.inf:
            raise _impossible(given)
        return self._inner(reduced).query(variables, inner)

    def marginals(self, given: Mapping[Any, Any] | None) -> dict[Hashable, Any]:
        """The distribution of every variable given the evidence, the observed ones left out where they are real."""
        known = read_evidence(self.domain, given).values
        asked = [name for name in self.domain.names if name not in known]
        return {name: self.query(name, given) for name in asked}

    def map_query(self, given: Mapping[Any, Any] | None) -> dict[Hashable, Hashable]:
        """Not defined: densities and probabilities do not compare."""
        raise OptionError(
            "The most probable joint state is defined for networks of tables and for linear-Gaussian networks; this "
            "one has real and discrete nodes. Name discrete variables: map_query(given, variables=[...])."
        )

    def log_probability(self, given: Mapping[Any, Any] | None) -> float:
        """Log probability of states times density of values; -inf where they are impossible."""
        reduced, inner = self._conditioned((), given)
        if reduced.log_factor == -np.inf or not reduced.nodes:
            return reduced.log_factor
        return float(self._inner(reduced).log_probability(inner)) + reduced.log_factor

    def sample_given(self, given: Mapping[Any, Any], n: int, rng: np.random.Generator) -> dict[Hashable, NDArray[Any]]:
        """`n` rows by node, codes and numbers: what is above the evidence from the posterior, then parents first."""
        reduced, inner = self._conditioned((), given)
        if reduced.log_factor == -np.inf:
            raise _impossible(given)
        drawn: dict[Hashable, NDArray[Any]] = {}
        if reduced.nodes:
            drawn = dict(self._inner(reduced).sample_given(inner, n, rng))
        drawn |= {name: np.full(n, value) for name, value in reduced.folded.items()}
        for name in topological_order(self.parents):
            if name not in drawn:
                drawn[name] = self.nodes[name].sample(drawn, rng, n)
        return {name: drawn[name] for name in self.domain.names}

    # -- many rows ---------------------------------------------------------------------------------------------------

    def log_likelihood(
        self, columns: Columns, n: int, *, threads: int | None = None, calls: int | None = None
    ) -> Floats:
        """Log density of each row; missing values are summed and integrated out, distinct rows once each."""
        logs, rows = log_prob_of_whole_rows(self.nodes, columns, n)
        kept = self._relevant(columns)
        others = [self.nodes[name] for name in kept if not self.nodes[name].is_exact]
        shown = complete_rows(columns, {name for node in others for name in node.domain.names}, n)
        rows, some = rows[~shown[rows]], rows[shown[rows]]
        if len(some) and columns:
            part = {name: values[some] for name, values in columns.items()}
            placeholders = {node.name: _placeholder_of(node, part[node.name]) for node in others}
            inner = self._with_placeholders(kept, placeholders)
            logs[some] = inner.log_likelihood(part, len(some), threads=threads, calls=calls)
            for node in others:
                logs[some] += node.log_prob(part) - placeholders[node.name].log_prob(part)
        for given, same in self._distinct(columns, rows):
            logs[same] = self.log_probability(given)
        return logs

    def predict_rows(
        self, columns: Columns, n: int, target: Hashable, *, threads: int | None = None
    ) -> RowDistributions:
        """P(target | row) (n, card) of a discrete target, or the mean (n,) of a real one."""
        known = {name: values for name, values in columns.items() if name != target}
        if not self._real(target):
            return self.distributions_of_rows(known, n, [target], threads=threads)
        node = self.nodes[target]
        means, possible = np.empty(n), np.ones(n, dtype=bool)
        below = [name for name in self._relevant([target, *known]) if target in self.parents[name]]
        rest = np.arange(n)
        if not node.linear and not below:
            rest = np.flatnonzero(~complete_rows(known, self.parents[target], n))
            direct = np.setdiff1d(np.arange(n), rest)
            if len(direct):
                means[direct] = node.mean({name: values[direct] for name, values in known.items()}, len(direct))
        if not node.linear:
            _refuse_below(target, below)
        for given, same in self._distinct(known, rest):
            if self.log_probability(given) == -np.inf:
                possible[same] = False
            elif node.linear:
                means[same] = np.ravel(self.query(target, given).mean)[0]
            else:
                means[same] = self._mean(target, given)
        return means, possible

    def _mean(self, target: Hashable, given: Mapping[Any, Any]) -> float:
        """E[target | given] of a generalised linear model: over the joint states of its parents that are not known."""
        node = self.nodes[target]
        hidden = [name for name in node.real_parents if name not in given]
        if hidden:
            raise OptionError(
                f"The real parents {listing(hidden)} of {target!r} are not known, and its mean given the other columns "
                f"has no closed form. Give their columns. {BY_SAMPLES}"
            )
        free = [name for name in self.parents[target] if name not in given]
        distribution = self.query(free, given).values.ravel() if free else np.ones(1)
        shape = self.domain.shape(free)
        codes = np.indices(shape, dtype=np.int32).reshape(len(shape), len(distribution))
        columns: dict[Hashable, Any] = dict(zip(free, codes, strict=True))
        for name, value in read_evidence(self.domain, given).known.items():
            columns[name] = np.full(len(distribution), value, dtype=np.float64 if self._real(name) else np.int32)
        return float(distribution @ node.mean(columns, len(distribution)))

    def marginals_of_rows(
        self, columns: Columns, n: int, *, threads: int | None = None
    ) -> tuple[dict[Hashable, Floats], Flags]:
        """P(node | row) of every node and row (n, card), where all have states; and which rows are possible (n,)."""
        possible, marginals = np.ones(n, dtype=bool), {}
        for name in self.domain.names:
            marginals[name], shown = self.distributions_of_rows(columns, n, [name], threads=threads)
            possible &= shown
        return marginals, possible

    def distributions_of_rows(
        self, columns: Columns, n: int, names: Sequence[Hashable], *, threads: int | None = None
    ) -> RowDistributions:
        """P(names | row) of each row (n, cards...), all names discrete."""
        scope = tuple(names)
        probabilities, possible = np.zeros((n, *self.domain.shape(scope))), np.ones(n, dtype=bool)
        rest = np.arange(n)
        for easy in (self._neighbours_known, self._others_known):
            if len(rest) and columns:
                chosen, work = easy(columns, n, scope)
                done, rest = rest[chosen[rest]], rest[~chosen[rest]]
                if len(done):
                    part = {name: values[done] for name, values in columns.items()}
                    probabilities[done], possible[done] = work(part, len(done), threads)
        for given, same in self._distinct(columns, rest):
            if self.log_probability(given) == -np.inf:
                possible[same] = False
            else:
                probabilities[same] = self.query(list(scope), given).values
        return probabilities, possible

    def _neighbours_known(self, columns: Columns, n: int, scope: tuple[Hashable, ...]) -> tuple[Flags, Any]:
        """Rows in which all neighbours of a single target are known, and how they are answered."""
        target = scope[0]
        if len(scope) > 1 or target in columns:
            return np.zeros(n, dtype=bool), None
        near = [name for name in self._relevant([target, *columns]) if target in (name, *self.parents[name])]
        nodes = {name: self.nodes[name] for name in near}
        needed = {other for name in near for other in (name, *self.parents[name])} - {target}
        return complete_rows(columns, needed, n), lambda part, size, threads: distributions_by_state(
            nodes, part, size, self.domain[target]
        )

    def _others_known(self, columns: Columns, n: int, scope: tuple[Hashable, ...]) -> tuple[Flags, Any]:
        """Rows that show the whole families of all generalised linear models, and how they are answered."""
        kept = self._relevant([*scope, *columns])
        others = [self.nodes[name] for name in kept if not self.nodes[name].is_exact]
        shown = {name for node in others for name in node.domain.names}

        def work(part: Columns, size: int, threads: int | None) -> Any:
            inner = self._with_placeholders(
                kept, {node.name: _placeholder_of(node, part[node.name]) for node in others}
            )
            return inner.distributions_of_rows(part, size, scope, threads=threads)

        return np.zeros(n, dtype=bool) if shown & set(scope) else complete_rows(columns, shown, n), work

    def _with_placeholders(self, kept: Sequence[Hashable], placeholders: Mapping[Hashable, Any]) -> Any:
        """Exact inference with other nodes in the place of those whose whole families are shown by all rows.

        A factor that a row shows entirely says nothing about the rest of the row, so that any other will do.
        """
        return exact_inference({name: placeholders.get(name, self.nodes[name]) for name in kept})

    def _distinct(self, columns: Columns, rows: NDArray[np.intp]) -> Iterable[tuple[dict[Hashable, Any], Any]]:
        """The distinct ones of some rows as evidence, and the numbers of the rows that are like it."""
        if not len(rows):
            return
        names = list(columns)
        values = np.stack([np.asarray(columns[name], np.float64)[rows] for name in names], axis=1) if names else None
        if values is None:
            yield {}, rows
            return
        missing = [
            np.isnan(values[:, column]) if self._real(n) else values[:, column] < 0 for column, n in enumerate(names)
        ]
        values[np.stack(missing, axis=1)] = np.inf  # Missing values are alike, which NaN is not.
        distinct, places = np.unique(values, axis=0, return_inverse=True)
        for number, row in enumerate(distinct):
            given = {name: self._label(name, value) for name, value in zip(names, row, strict=True) if value < np.inf}
            yield given, rows[places.ravel() == number]

    def _label(self, name: Hashable, value: float) -> Any:
        return float(value) if self._real(name) else self.domain[name].states[int(value)]


def _refuse_below(target: Hashable, below: Sequence[Hashable]) -> None:
    if below:
        raise OptionError(
            f"{target!r} explains {listing(below)}, which is known or stands above what is known: its mean given them "
            f"has no closed form. {BY_SAMPLES}"
        )


def placeholder(variable: Variable, mean: float, variance: float) -> Any:
    """A node without parents for a variable that all rows show: equal probabilities, or a normal distribution."""
    if variable.kind == "discrete":
        return TableNode.given(Domain([variable]), np.full(variable.card, 1.0 / variable.card))
    return LinearGaussianNode.given(Domain([variable]), [mean], variance if variance > 0 else 1.0)


def _placeholder_of(node: Any, values: NDArray[Any]) -> Any:
    """What stands for a node, by the values of a column."""
    return placeholder(node.variable, float(np.mean(values)), float(np.var(values)))


def _folded(node: LinearGaussianNode, folded: Mapping[Hashable, float]) -> Any:
    """A regression whose known parents have joined the intercept."""
    known = [name for name in node.real_parents if name in folded]
    if not known:
        return node
    weights = np.asarray(node.weights_, dtype=np.float64)
    places = [1 + node.real_parents.index(name) for name in known]
    left = [column for column in range(weights.shape[-1]) if column not in places]
    moved = weights[..., left].copy()
    moved[..., 0] += weights[..., places] @ np.array([folded[name] for name in known])
    family = Domain(variable for variable in node.domain.variables if variable.name not in known)
    return LinearGaussianNode.given(family, moved, node.variance_)


def _impossible(given: object) -> EstimateError:
    return EstimateError(f"The evidence {given!r} has density 0 under the network, so nothing follows from it.")
