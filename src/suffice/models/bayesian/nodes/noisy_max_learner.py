"""How a noisy-MAX node is learned: the weights of maximum likelihood, or the MAP, by Newton's method.

The likelihood is one of a noisy-OR for each state above the lowest, with weights of its own: among the rows that do not
exceed the state, is it reached? Each is learned by itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.errors import EstimateError, listing
from suffice.models.bayesian.nodes.contract import NodeLearner
from suffice.models.bayesian.nodes.graded import Grades
from suffice.models.bayesian.nodes.noisy_max import NoisyMaxNode, labels_of, places_of, weight_labels
from suffice.models.bayesian.nodes.noisy_max_chain import ChainCounts, chain_scopes, learned_by_chain
from suffice.models.bayesian.nodes.noisy_max_trials import Pseudo, Trials, levels_of, pseudo_of
from suffice.solvers.nonnegative import newton_nonnegative
from suffice.statistics import Counts, Statistic, Summary

#: An eigenvalue of the information, in units of its diagonal, below which a direction has no curvature.
FLAT = 1e-11
#: Weight that the start of EM adds to each joint state of a family whose node has two states.
MADE_UP = 0.5


@dataclass(frozen=True)
class NoisyMaxLearner(NodeLearner):
    """Learns a noisy-MAX, or a noisy-OR, from the counts of its family, expected ones too.

    `grades` says which states cause what, and of what class the node is. `pseudo` is a number s of pseudo-counts: each
    cause alone, the leak too, brings about every state s times. The weights are then the mode of the posterior in what
    each cause brings about, whose prior is Dirichlet(1 + s, ...) each: of two states, Beta(1 + s, 1 + s). `unseen` says
    what becomes of the weight of a state that never occurs where there is no prior: 0, noted (``"uniform"``), NaN
    (``"nan"``), or an error (``"raise"``). `in_steps` says that `learn` is a step of EM: a family with many joint
    states is then learned from the expected counts of its chain of causes.
    """

    grades: Grades
    leak: bool = True
    pseudo: float | None = None
    unseen: str = "uniform"
    in_steps: bool = False

    def for_em(self, *, filled: bool) -> Self:
        """A step of EM."""
        return replace(self, in_steps=True, unseen="uniform" if filled else self.unseen)

    def statistics(self, domain: Domain) -> tuple[Statistic, ...]:
        """The counts of the family, or of its chain."""
        if self._by_chain(domain):
            return tuple(Counts(scope) for scope in chain_scopes(domain, self.leak))
        return (Counts(domain.names),)

    def _by_chain(self, domain: Domain) -> bool:
        return self.in_steps and learned_by_chain(domain)

    def learn(self, domain: Domain, summary: Summary) -> NoisyMaxNode:
        """The fitted node."""
        return self._from_chain(domain, summary) if self._by_chain(domain) else self._from_family(domain, summary)

    def _from_chain(self, domain: Domain, summary: Summary) -> NoisyMaxNode:
        """One step of EM: how often a cause stayed below a state, of the rows that did not reach it before."""
        order, inactive = self.grades.read(domain)
        counts = ChainCounts.of(domain, places_of(domain, inactive, self.leak), self.leak, order, summary)
        below, reached = np.array([pseudo_of(self.pseudo, level) for level in range(1, len(order))]).T
        failed = counts.failed + below
        tried = failed + counts.worked + reached
        never = tried <= 0
        with np.errstate(divide="ignore"):
            weights = -np.log(np.where(never, 1.0, failed / np.where(never, 1.0, tried))) + 0.0
        if self.unseen == "nan":
            weights[never] = np.nan
        return self._node(domain, order, inactive, weights, counts.total, never, np.isinf(weights))

    def _from_family(self, domain: Domain, summary: Summary) -> NoisyMaxNode:
        table = summary[Counts(domain.names)]
        order, inactive = self.grades.read(domain)
        levels = levels_of(places_of(domain, inactive, self.leak), self.leak, order, *table.items())
        states = domain.variables[-1].states
        learned = [
            self._level(states[code], domain, trials, pseudo_of(self.pseudo, level))
            for level, (code, trials) in enumerate(zip(order[1:], levels, strict=True), 1)
        ]
        weights, errors, never, always, rested = (list(parts) for parts in zip(*learned, strict=True))
        return self._node(
            domain,
            order,
            inactive,
            np.stack(weights, axis=1),
            table.total,
            np.stack(never, axis=1),
            np.stack(always, axis=1),
            errors=np.stack(errors, axis=1).ravel(),
            rested=all(rested),
        )

    def _level(
        self, state: Hashable, domain: Domain, trials: Trials, pseudo: Pseudo
    ) -> tuple[Floats, Floats, NDArray[np.bool_], NDArray[np.bool_], bool]:
        """Of one state: weights and errors (m,), causes that never occur or always work, and whether Newton rested."""
        trials = self._caused(state, domain, trials)
        never = np.zeros(trials.m, dtype=bool) if self.pseudo else (trials.seen + trials.absent) <= 0
        always = np.zeros(trials.m, dtype=bool) if self.pseudo else ~never & (trials.absent <= 0)
        reduced, kept = trials.without(never | always)
        weights = np.where(always, np.inf, np.nan if self.unseen == "nan" else 0.0)
        weights[kept], errors, rested = _solved(reduced, pseudo)
        spread = np.full(trials.m, np.nan)
        spread[kept] = errors
        return weights, spread, never, always, rested

    def _node(
        self,
        domain: Domain,
        order: tuple[int, ...],
        inactive: tuple[int, ...],
        weights: Floats,
        size: float,
        never: NDArray[np.bool_],
        always: NDArray[np.bool_],
        *,
        errors: Floats | None = None,
        rested: bool = True,
    ) -> NoisyMaxNode:
        """The node with weights (m, L), and what there is to say about it."""
        states, name = domain.variables[-1].states, domain.names[-1]
        labels = weight_labels(labels_of(domain, inactive, self.leak), [states[code] for code in order[1:]])
        return self.grades.node_class(
            domain,
            weights.ravel(),
            order,
            inactive,
            self.leak,
            errors=errors,
            pseudo=self.pseudo,
            size=size,
            estimate="map" if self.pseudo else "mle",
            notes=self._notes(name, labels, never.ravel(), rested),
            directions=tuple(
                f"weight of {labels[weight]!r} in {name!r} -> inf" for weight in np.flatnonzero(always).tolist()
            ),
        )

    def _caused(self, state: Hashable, domain: Domain, trials: Trials) -> Trials:
        """The trials without present rows that nothing causes: an error unless the start of EM has made them up."""
        uncaused = (trials.active == trials.m).all(axis=1)
        silent = float(trials.present[uncaused].sum())
        if silent > (MADE_UP if self.in_steps else 0.0):
            raise EstimateError(
                f"{domain.names[-1]!r} is {state!r} in rows of weight {silent:g} in which no parent is active, and "
                f"without a leak that is impossible. Use {self.grades.node_class.option}(leak=True)."
            )
        return replace(trials, active=trials.active[~uncaused], present=trials.present[~uncaused])

    def _notes(
        self, name: Hashable, labels: Sequence[Hashable], never: NDArray[np.bool_], rested: bool
    ) -> tuple[str, ...]:
        notes = []
        if never.any():
            causes = listing([labels[cause] for cause in np.flatnonzero(never).tolist()])
            if self.unseen == "raise":
                raise EstimateError(
                    f"The causes {causes} of {name!r} never occur, so their weight is undefined. Give a prior=, or "
                    "unseen='uniform' or 'nan'."
                )
            notes.append(
                f"The causes {causes} of {name!r} never occur; their weight is {0 if self.unseen != 'nan' else 'NaN'}."
            )
        if not rested:
            notes.append(f"The weights of {name!r} did not come to rest; the certificate says how far they are.")
        return tuple(notes)


def _solved(trials: Trials, pseudo: Pseudo) -> tuple[Floats, Floats, bool]:
    """Weights and standard errors (m,) of a problem whose maximum exists, and whether Newton came to rest."""
    if not trials.m:
        return np.zeros(0), np.zeros(0), True
    failed, worked = pseudo
    held = trials.seen + worked <= 0  # Causes of absent rows only have the weight 0.
    inner, kept = trials.without(held)
    weights, errors = np.zeros(trials.m), np.full(trials.m, np.nan)
    if not inner.m:
        return weights, errors, True
    # Every cause, and the leak, at the strength that explains the share of rows on its own, divided among them.
    share = (inner.seen + worked) / (inner.seen + inner.absent + (failed + worked))
    start = -np.log1p(-np.minimum(share, 0.999)) / max(float((inner.active < inner.m).sum(axis=1).max(initial=1)), 1)
    best, rested = newton_nonnegative(lambda x: inner.objective(x, pseudo), np.maximum(start, 1e-9))
    weights[kept] = best
    errors[kept] = standard_errors(best, inner.objective(best, pseudo)[2])
    return weights, errors, rested


def standard_errors(weights: Floats, information: Floats) -> Floats:
    """Square roots of the diagonal of the inverse information (m,) of the weights above 0; NaN for the others.

    Inf for weights in a direction without curvature, which the rows do not determine.
    """
    errors = np.full(len(weights), np.nan)
    inside = np.flatnonzero((weights > 0) & (np.diag(information) > 0))
    units = np.sqrt(np.diag(information)[inside])
    values, vectors = np.linalg.eigh(information[np.ix_(inside, inside)] / units / units[:, None])
    flat = values <= FLAT * max(len(inside), 1)
    free = (np.abs(vectors[:, flat]) > 1e-6).any(axis=1)
    variance = (vectors**2 / np.where(flat, np.inf, values)).sum(axis=1)
    errors[inside] = np.where(free, np.inf, np.sqrt(variance) / units)
    return errors
