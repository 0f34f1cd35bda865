"""How a noisy-OR node is learned: the weights of maximum likelihood, or the MAP, by Newton's method."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import Domain, Variable
from suffice.errors import EstimateError, OptionError, listing
from suffice.models.bayesian.nodes.contract import NodeLearner
from suffice.models.bayesian.nodes.noisy_or import NoisyOrNode, labels_of, places_of
from suffice.models.bayesian.nodes.noisy_or_chain import ChainCounts, chain_scopes, learned_by_chain
from suffice.models.bayesian.nodes.noisy_or_trials import Trials
from suffice.solvers.nonnegative import newton_nonnegative
from suffice.statistics import Counts, Statistic, Summary

#: An eigenvalue of the information, in units of its diagonal, below which a direction has no curvature.
FLAT = 1e-11
#: Weight that the start of EM adds to each joint state of a family whose node has two states.
MADE_UP = 0.5


@dataclass(frozen=True)
class NoisyOrLearner(NodeLearner):
    """Learns a noisy-OR from the counts of its family, expected ones too.

    `active` gives, for each parent and last the node, the active states, or None for all but the first. `pseudo` is a
    number s of pseudo-counts: each cause alone fails s times and works s times, the leak too. The weights are then the
    mode of the posterior in the inhibition probabilities q, whose prior is Beta(1 + s, 1 + s) each. `unseen` says what
    becomes of the weight of a state that never occurs where there is no prior: 0, noted (``"uniform"``), NaN
    (``"nan"``), or an error (``"raise"``). `in_steps` says that `learn` is a step of EM: a family with many joint
    states is then learned from the expected counts of its chain of causes.
    """

    active: tuple[tuple[Hashable, ...] | None, ...]
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

    def learn(self, domain: Domain, summary: Summary) -> NoisyOrNode:
        """The fitted node."""
        return self._from_chain(domain, summary) if self._by_chain(domain) else self._from_family(domain, summary)

    def _from_chain(self, domain: Domain, summary: Summary) -> NoisyOrNode:
        """One step of EM: the share of rows in which a cause failed, of those in which nothing was caused before."""
        present, inactive = read_active(domain, self.active)
        counts = ChainCounts.of(domain, places_of(domain, inactive, self.leak), self.leak, present, summary)
        failed, tried = counts.failed + (self.pseudo or 0.0), counts.failed + counts.worked + 2 * (self.pseudo or 0.0)
        never, labels = tried <= 0, labels_of(domain, inactive, self.leak)
        with np.errstate(divide="ignore"):
            weights = -np.log(np.where(never, 1.0, failed / np.where(never, 1.0, tried))) + 0.0
        if self.unseen == "nan":
            weights[never] = np.nan
        return NoisyOrNode(
            domain,
            weights,
            present,
            inactive,
            self.leak,
            pseudo=self.pseudo,
            size=counts.total,
            estimate="map" if self.pseudo else "mle",
            notes=self._notes(domain, labels, never, rested=True),
            directions=_unbounded(domain, labels, np.isinf(weights)),
        )

    def _from_family(self, domain: Domain, summary: Summary) -> NoisyOrNode:
        table = summary[Counts(domain.names)]
        present, inactive = read_active(domain, self.active)
        trials = Trials.of(places_of(domain, inactive, self.leak), self.leak, present, *table.items())
        labels = labels_of(domain, inactive, self.leak)
        trials = self._caused(domain.variables[-1].states[present], domain, trials)
        never = np.zeros(trials.m, dtype=bool) if self.pseudo else (trials.seen + trials.absent) <= 0
        always = np.zeros(trials.m, dtype=bool) if self.pseudo else ~never & (trials.absent <= 0)
        reduced, kept = trials.without(never | always)
        weights = np.where(always, np.inf, np.nan if self.unseen == "nan" else 0.0)
        weights[kept], errors, rested = self._solved(reduced)
        spread = np.full(trials.m, np.nan)
        spread[kept] = errors
        return NoisyOrNode(
            domain,
            weights,
            present,
            inactive,
            self.leak,
            errors=spread,
            pseudo=self.pseudo,
            size=table.total,
            estimate="map" if self.pseudo else "mle",
            notes=self._notes(domain, labels, never, rested),
            directions=_unbounded(domain, labels, always),
        )

    def _caused(self, state: Hashable, domain: Domain, trials: Trials) -> Trials:
        """The trials without present rows that nothing causes: an error unless the start of EM has made them up."""
        uncaused = (trials.active == trials.m).all(axis=1)
        silent = float(trials.present[uncaused].sum())
        if silent > (MADE_UP if self.in_steps else 0.0):
            raise EstimateError(
                f"{domain.names[-1]!r} is {state!r} in rows of weight {silent:g} in which no parent is active, and "
                "without a leak that is impossible. Use NoisyOr(leak=True)."
            )
        return replace(trials, active=trials.active[~uncaused], present=trials.present[~uncaused])

    def _solved(self, trials: Trials) -> tuple[Floats, Floats, bool]:
        """Weights and standard errors (m,) of a problem whose maximum exists, and whether Newton came to rest."""
        if not trials.m:
            return np.zeros(0), np.zeros(0), True
        pseudo = self.pseudo or 0.0
        held = trials.seen + pseudo <= 0  # Causes of absent rows only have the weight 0.
        inner, kept = trials.without(held)
        weights, errors = np.zeros(trials.m), np.full(trials.m, np.nan)
        if not inner.m:
            return weights, errors, True
        # Every cause, and the leak, at the strength that explains the share of rows on its own, divided among them.
        share = (inner.seen + pseudo) / (inner.seen + inner.absent + 2 * pseudo)
        start = -np.log1p(-np.minimum(share, 0.999)) / max(
            float((inner.active < inner.m).sum(axis=1).max(initial=1)), 1
        )
        best, rested = newton_nonnegative(lambda x: inner.objective(x, pseudo), np.maximum(start, 1e-9))
        weights[kept] = best
        errors[kept] = standard_errors(best, inner.objective(best, pseudo)[2])
        return weights, errors, rested

    def _notes(
        self, domain: Domain, labels: Sequence[Hashable], never: NDArray[np.bool_], rested: bool
    ) -> tuple[str, ...]:
        name, notes = domain.names[-1], []
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


def _unbounded(domain: Domain, labels: Sequence[Hashable], always: NDArray[np.bool_]) -> tuple[str, ...]:
    """The weights that run to infinity, in words."""
    return tuple(
        f"weight of {labels[cause]!r} in {domain.names[-1]!r} -> inf" for cause in np.flatnonzero(always).tolist()
    )


def read_active(domain: Domain, active: Sequence[tuple[Hashable, ...] | None]) -> tuple[int, tuple[int, ...]]:
    """The code of the node's present state, and the inactive code of each parent; the node must have two states."""
    node = domain.variables[-1]
    if node.card != 2:
        raise OptionError(
            f"nodes[{node.name!r}] is 'noisy-or', which has two states; found {node.card}: {listing(node.states)}. "
            "Declare two states=, or choose 'table'."
        )
    *parents, absent = (_inactive(v, states) for v, states in zip(domain.variables, active, strict=True))
    return 1 - absent, tuple(parents)


def _inactive(variable: Variable, active: tuple[Hashable, ...] | None) -> int:
    """The code of the one state that is not active: the first unless said."""
    if active is None:
        return 0
    codes = {variable.index(state) for state in active}
    rest = [code for code in range(variable.card) if code not in codes]
    if len(rest) != 1:
        raise OptionError(
            f"active={{{variable.name!r}: {listing(active)}}} leaves {len(rest)} of the states "
            f"{listing(variable.states)} inactive; exactly one must be."
        )
    return rest[0]


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
