"""What an answer rests on: what each finding moved, what an observation would tell, and which nodes take part."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Floats
from suffice.errors import OptionError, listing
from suffice.graphs.directed import requisite
from suffice.models.bayesian.error_bars.answers import NetworkQuestion
from suffice.models.bayesian.fitted import NetworkFitted
from suffice.models.evidence import read_evidence
from suffice.records import record
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.models.bayesian.posterior import LearnedParameters


@record(frozen=True, eq=False)
class Explanation:
    """What P(target | given) rests on.

    `before` and `after` are the answers without the findings and with all of them. `without` has the answer without
    each finding by itself, and `in_order` the answers as findings come in, one after the other. `information` says of
    every node that is not known what observing it would tell about the target on average: mutual information in nats,
    the largest first. `relevant` are the nodes that take part in the answer, and `edges` the arcs among them; findings
    that are not among them say nothing about the target beside the others.
    """

    target: Hashable
    before: Table
    after: Table
    without: Mapping[Hashable, Table]
    in_order: Mapping[Hashable, Table]
    information: Mapping[Hashable, float]
    relevant: tuple[Hashable, ...]
    edges: tuple[tuple[Hashable, Hashable], ...]

    @property
    def moved(self) -> dict[Hashable, float]:
        """How far each finding moves the answer beside the others, the farthest first.

        In nats: the divergence sum p log(p / q) of the answer p from the one without it, q.
        """
        far = {name: _divergence(self.after.values, table.values) for name, table in self.without.items()}
        return dict(sorted(far.items(), key=lambda pair: -pair[1]))

    def __str__(self) -> str:
        states = self.after.domain.variables[0].states
        best = int(self.after.values.argmax())
        before, after = self.before.values[best], self.after.values[best]
        lines = [f"P({self.target}={states[best]}): {before:.4g} before, {after:.4g} now"]
        for name, far in self.moved.items():
            lines.append(f"  without {name}: {self.without[name].values[best]:.4g} ({far:.2g} nats)")
        for name, nats in list(self.information.items())[:5]:
            lines.append(f"  observing {name} would tell {nats:.2g} nats")
        return "\n".join(lines)

    __repr__ = __str__


def _divergence(p: Floats, q: Floats) -> float:
    some = p > 0
    with np.errstate(divide="ignore"):
        return max(float((p[some] * (np.log(p[some]) - np.log(q[some]))).sum()), 0.0)


def explanation_of(parameters: LearnedParameters, target: Hashable, given: Any, do: Any) -> Explanation:
    """What the answer to one question rests on."""
    fitted = parameters.fitted
    question = NetworkQuestion.of(fitted, target, given, do)
    asked, findings = question.asked, dict(given or {})
    if len(question.names) != 1 or asked.domain[question.names[0]].kind != "discrete":
        raise OptionError(
            f"explain is about one discrete node; asked about {listing(question.names)}. Compare query(...) with and "
            "without each finding for others."
        )
    if target in findings or target in (do or {}):
        raise OptionError(f"{target!r} is the target and known: there is nothing to explain.")
    fixed = dict(do or {})

    def answer(known: Mapping[Any, Any]) -> Table:
        table: Table = asked.inference.query(target, {**known, **fixed})
        return table

    read = read_evidence(asked.domain, findings)
    soft = set(read.likelihoods)
    needed = requisite(asked.parents, [target], (set(findings) - soft) | set(fixed), soft)
    taking = [name for name in asked.nodes if name in needed or (name in findings and _bears(asked, name, needed))]
    seen: dict[Hashable, Any] = {}
    in_order = {}
    for name, state in findings.items():
        seen[name] = state
        in_order[name] = answer(seen)
    return Explanation(
        target,
        answer({}),
        answer(findings),
        {name: answer({n: s for n, s in findings.items() if n != name}) for name in findings},
        in_order,
        _information(asked, target, {**findings, **fixed}, soft),
        tuple(taking),
        tuple((parent, child) for child in taking for parent in asked.parents[child] if parent in taking),
    )


def _bears(asked: NetworkFitted, name: Hashable, needed: set[Hashable]) -> bool:
    """Whether a known node is a parent of one that takes part, or takes part itself."""
    return name in needed or any(name in asked.parents[child] for child in needed)


def _information(
    asked: NetworkFitted, target: Hashable, known: Mapping[Any, Any], soft: Sequence[Hashable] | set[Hashable]
) -> dict[Hashable, float]:
    """Mutual information of the target and each unknown discrete node, given what is known: one question a state."""
    infer = asked.inference
    others = [v.name for v in asked.domain.variables if v.kind == "discrete" and v.name != target]
    others = [name for name in others if name not in known or name in soft]
    shares, before = infer.query(target, known), infer.marginals(known)
    total = dict.fromkeys(others, 0.0)
    for state, share in zip(shares.domain.variables[0].states, shares.values.tolist(), strict=True):
        if share > 0:
            after = infer.marginals({**known, target: state})
            for name in others:
                total[name] += share * _divergence(after[name].values, before[name].values)
    return dict(sorted(total.items(), key=lambda pair: -pair[1]))
