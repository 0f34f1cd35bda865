"""How large a network is, before anything of that size is made: tables, parent states that occur, junction tree."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain, Variable, declare
from suffice.engines.junction_tree import TreePlan, plan_tree
from suffice.engines.memory import default_limit, in_words
from suffice.engines.rows import distinct_rows
from suffice.errors import OptionError, listing, unknown_variable
from suffice.fitting.fit import Fit
from suffice.fitting.summaries import resolved_domain
from suffice.models.bayesian.all_fixed import without_unseen
from suffice.models.bayesian.fitted import NetworkFitted
from suffice.models.bayesian.learning import NodeLearning
from suffice.models.bayesian.nodes.contract import NodeKind
from suffice.models.bayesian.nodes.kinds import read_kind
from suffice.models.bayesian.nodes.noisy_max_chain import card_of
from suffice.models.bayesian.task import NetworkTask
from suffice.models.evidence import MOST_CELLS
from suffice.models.row_answers import coded_columns

#: Kinds of node whose numbers are those of all joint states of the discrete parents.
KINDS = ("table", "constrained-table", "linear-gaussian")
_NO_LIMIT = 1 << 4096


@dataclass(frozen=True)
class NodeSize:
    """Size of a node: joint states of its discrete parents, numbers of all of them, and joint states that occur."""

    name: Hashable
    kind: str
    parents: tuple[Hashable, ...]
    configurations: int
    cells: int
    observed: int | None

    @property
    def bytes(self) -> int:
        """Memory of the numbers, were all of them kept."""
        return 8 * self.cells


@dataclass(frozen=True)
class SizeReport:
    """Sizes of all nodes, and the plan of exact inference (None where no node is discrete).

    Tables of more than `limit_cells` cells are not made in full: `too_large` names their nodes. `fits` says whether the
    junction tree stays within `limit_bytes`.
    """

    nodes: tuple[NodeSize, ...]
    plan: TreePlan | None
    limit_cells: int
    limit_bytes: int

    @property
    def cells(self) -> int:
        """Numbers of all nodes."""
        return sum(node.cells for node in self.nodes)

    @property
    def bytes(self) -> int:
        """Memory of all nodes, were all numbers kept."""
        return 8 * self.cells

    @property
    def too_large(self) -> tuple[Hashable, ...]:
        """Nodes whose table would not be made in full."""
        return tuple(node.name for node in self.nodes if node.cells > self.limit_cells)

    @property
    def width(self) -> int | None:
        """Variables of the largest clique of the junction tree, less one."""
        return None if self.plan is None else self.plan.width

    @property
    def tree_bytes(self) -> int | None:
        """Memory of one calibration."""
        return None if self.plan is None else self.plan.bytes

    @property
    def fits(self) -> bool:
        """Whether exact inference stays within the limit of memory."""
        return self.plan is None or self.plan.bytes <= self.limit_bytes

    def __getitem__(self, name: Hashable) -> NodeSize:
        """The size of a node."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise unknown_variable(name, [node.name for node in self.nodes])

    def __str__(self) -> str:
        rows = [("node", "kind", "parents", "configurations", "observed", "cells", "bytes")]
        for node in sorted(self.nodes, key=lambda node: -node.cells):
            seen = "" if node.observed is None else f"{node.observed:,}"
            figures = (f"{node.configurations:,}", seen, f"{node.cells:,}", in_words(node.bytes))
            rows.append((str(node.name), node.kind, str(len(node.parents)), *figures))
        rows.append(("all", "", "", "", "", f"{self.cells:,}", in_words(self.bytes)))
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        if self.plan is not None:
            verdict = "" if self.fits else f"; more than the limit of {in_words(self.limit_bytes)}"
            lines.append(f"{self.plan}{verdict}")
        if self.too_large:
            lines.append(f"too large for a full table ({self.limit_cells:,} cells): {listing(self.too_large)}")
        return "\n".join(lines)

    __repr__ = __str__


def size_report(
    task: NetworkTask,
    declared: Mapping[Hashable, Any],
    fit: Fit[NetworkFitted] | None,
    data: Any,
    columns: Any,
) -> SizeReport:
    """The report of a network, with cards from the fitted nodes, from declared states, or from data.

    Nodes that were learned from rows know which parent configurations occur.
    """
    if data is None and columns is not None:
        raise OptionError("columns= names those of data=, which is not given. Leave it out, or give data=.")
    learning, fitted = task.learning, None if fit is None else fit.fitted
    counted = fit is not None and fit.data is not None
    nodes = {} if fitted is None or data is not None else fitted.nodes
    known = {**{name: declare(name, states) for name, states in declared.items()}, **learning.hidden}
    domain = _known_domain(learning, known, fitted) if data is None else _domain_of_data(task, data, columns)
    observed: dict[Hashable, int | None] = {} if data is None else _observed(learning, data, columns, domain)
    chosen, sizes = _chosen(learning), []
    for name, parents in learning.parents.items():
        kind, configurations, cells = _size(domain, parents, name)
        if name in nodes:
            node = nodes[name]
            if node.kind != kind:
                kind, cells = node.kind, cells if node.kind in KINDS else node.n_params
            seen = None if node.n_unseen is None else node.n_configurations - node.n_unseen
            observed[name] = seen if counted else None
        elif name in chosen:
            family = learning.family(name, domain)
            kind, cells = chosen[name].kind, chosen[name].n_params(family) or 0
        sizes.append(NodeSize(name, kind, parents, configurations, cells, observed.get(name)))
    return SizeReport(tuple(sizes), _plan(learning, domain, nodes), MOST_CELLS, default_limit())


def _chosen(learning: NodeLearning) -> dict[Hashable, NodeKind]:
    """The kinds of the nodes that are not stored by joint states of their parents, as nodes= names them."""
    kinds = {name: learning.chosen_kind(name) for name in learning.parents}
    chosen = {name: read_kind(name, kind) for name, kind in kinds.items() if kind is not None}
    return {name: kind for name, kind in chosen.items() if kind.kind not in KINDS}


def _size(domain: Domain, parents: Sequence[Hashable], name: Hashable) -> tuple[str, int, int]:
    """Kind, joint states of the discrete parents, and numbers of a node."""
    configurations = math.prod(domain[p].card for p in parents if domain[p].kind == "discrete")
    real = sum(domain[p].kind != "discrete" for p in parents)
    if domain[name].kind != "discrete":
        return "linear-gaussian", configurations, configurations * (real + 2)
    return "table" if not real else "mixed parents", configurations, configurations * domain[name].card


def _known_domain(learning: NodeLearning, known: Mapping[Hashable, Variable], fitted: NetworkFitted | None) -> Domain:
    if fitted is not None:
        return fitted.domain
    known = without_unseen(known)
    unknown = [name for name in learning.parents if name not in known]
    if unknown:
        raise OptionError(f"The states of {listing(unknown)} are not known. Give data, declare states=, or fit first.")
    return Domain(known[name] for name in learning.parents)


def _domain_of_data(task: NetworkTask, data: Any, columns: Any) -> Domain:
    """Declared and hidden variables, the others as one pass over the data finds them."""
    from suffice.sources import open_source

    hidden = task.learning.hidden
    source = open_source(data, columns=columns)
    domain = resolved_domain(source, task.required(source.columns, None, "fit"))
    for batch in source.batches(domain):
        domain = domain.merge(batch.domain)
    return Domain(hidden[name] if name in hidden else domain[name] for name in task.learning.parents)


def _observed(learning: NodeLearning, data: Any, columns: Any, domain: Domain) -> dict[Hashable, int | None]:
    """Joint states of the discrete parents that occur, by node; rows with a missing value among them do not count."""
    above = {n: tuple(p for p in all_ if domain[p].kind == "discrete") for n, all_ in learning.parents.items()}
    families = {parents for parents in above.values() if not set(parents) & set(learning.hidden)}
    seen: dict[tuple[Hashable, ...], NDArray[np.int32]] = {}
    for batch, n in coded_columns(data, Domain(v for v in domain.variables if v.name not in learning.hidden), columns):
        for parents in families:
            codes = np.stack([batch[p] for p in parents], axis=1) if parents else np.zeros((n, 0), np.int32)
            rows = np.concatenate([seen.get(parents, codes[:0]), codes[(codes >= 0).all(axis=1)]])
            seen[parents] = rows[distinct_rows(rows, domain.shape(parents))[0]]
    return {n: len(seen[parents]) for n, parents in above.items() if parents in seen}


def _plan(learning: NodeLearning, domain: Domain, fitted: Mapping[Hashable, Any]) -> TreePlan | None:
    """The junction tree of the families; real nodes that depend on one another join their discrete parents."""
    cards = {v.name: v.card for v in domain.variables if v.kind == "discrete"}
    if not cards:
        return None
    scopes = {name: {p for p in (*learning.parents[name], name) if p in cards} for name in learning.parents}
    group = {name: name for name in learning.parents}
    for name in learning.parents:
        for parent in learning.parents[name]:
            if name not in cards and parent not in cards and group[name] != group[parent]:
                kept, gone = group[parent], group[name]
                scopes[kept] |= scopes.pop(gone)
                group |= {member: kept for member in group if group[member] == gone}
    parts = [
        names
        for name, node in fitted.items()
        if name in cards and node.kind not in KINDS
        for names, _ in node.factors()
    ]
    for name, kind in _chosen(learning).items():
        if name not in fitted:
            parts += kind.factor_scopes(learning.family(name, domain)) or []
    split = {names[-1] for names in parts}
    private = {name: card_of(name) for names in parts for name in names if name not in cards}
    ordered = [[node for node in cards if node in scope] for name, scope in scopes.items() if name not in split]
    return plan_tree(cards | private, [scope for scope in [*ordered, *parts] if scope], limit_bytes=_NO_LIMIT)
