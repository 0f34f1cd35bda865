"""The long run of a small chain: classes of states, the stationary distribution, hitting times, absorption."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, Ints
from suffice.domain import Domain, Variable
from suffice.errors import EstimateError, OptionError, listing
from suffice.models.markov_chain.fitted import MarkovChainFitted
from suffice.models.markov_chain.input import Vocabulary
from suffice.table import Table


def stationary(matrix: Floats) -> Floats:
    """The stationary distribution of an irreducible matrix (n, n).

    By elimination without subtractions (Grassmann, Taksar and Heyman): every probability is right to the last digits.
    """
    work = matrix.copy()
    n = len(work)
    for last in range(n - 1, 0, -1):
        out = work[last, :last].sum()
        work[:last, last] /= out
        work[:last, :last] += np.outer(work[:last, last], work[last, :last])
    shares = np.empty(n)
    shares[0] = 1.0
    for state in range(1, n):
        shares[state] = shares[:state] @ work[:state, state]
    return np.asarray(shares / shares.sum())


def classes(matrix: Floats) -> tuple[Ints, NDArray[np.bool_]]:
    """The class of states that reach each other, for each state (n,), and whether each class is closed."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    number, label = connected_components(csr_matrix((matrix > 0).astype(np.int8)), directed=True, connection="strong")
    closed = np.ones(number, dtype=np.bool_)
    sources, targets = np.nonzero(matrix > 0)
    leaving = label[sources] != label[targets]
    closed[label[sources[leaving]]] = False
    return label.astype(np.int64), closed


def reaching(matrix: Floats, targets: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """States from which some target can be reached."""
    reached = targets.copy()
    while True:
        more = reached | ((matrix > 0) @ reached)
        if (more == reached).all():
            return reached
        reached = more


def hitting(matrix: Floats, targets: NDArray[np.bool_]) -> Floats:
    """Expected number of steps until a target is hit (n,); infinite where it may never be.

    Solves ``h_i = 1 + sum_j P_ij h_j`` over the states that hit a target with certainty, 0 on the targets.
    """
    stopped = matrix.copy()
    stopped[targets] = 0.0
    lost = ~reaching(stopped, targets)
    certain = ~reaching(stopped, lost) & ~targets
    steps = np.where(targets, 0.0, np.inf)
    if certain.any():
        inner = np.eye(int(certain.sum())) - matrix[np.ix_(certain, certain)]
        steps[certain] = np.linalg.solve(inner, np.ones(len(inner)))
    return steps


def period(matrix: Floats, members: Ints) -> int:
    """The greatest common divisor of the lengths of all ways from a state of a class back to itself."""
    inside = matrix[np.ix_(members, members)] > 0
    depth = np.full(len(members), -1, np.int64)
    depth[0] = 0
    divisor, queue = 0, [0]
    for state in queue:
        for other in np.flatnonzero(inside[state]):
            if depth[other] < 0:
                depth[other] = depth[state] + 1
                queue.append(int(other))
            else:
                divisor = int(np.gcd(divisor, int(depth[state] + 1 - depth[other])))
    return divisor


@dataclass(frozen=True, eq=False)
class LongRun:
    """The long run of a chain of order 1: transition probabilities (n, n) between its words; the end mark absorbs."""

    matrix: Floats
    words: Vocabulary

    @classmethod
    def of(cls, chain: MarkovChainFitted) -> LongRun:
        """That of a fitted chain."""
        order, words = chain.distribution.order, chain.words
        if order != 1:
            raise OptionError(f"The long run is known for chains of order 1; this one has order {order}.")
        rows = chain.transitions.values
        if np.isnan(rows).any():
            raise EstimateError("Some rows are undefined (unseen='nan'); smooth the chain, or use unseen='uniform'.")
        if words.end is None:
            return cls(rows, words)
        end = int(words.places([words.end])[0])
        return cls(np.insert(rows, end, np.eye(words.card)[end], axis=0), words)

    def _over_states(self, name: str, values: Floats) -> Table:
        return Table(Domain([Variable.discrete(name, self.words.states)]), values)

    def stationary_distribution(self) -> Table:
        """The distribution that one step leaves as it is; unique where one closed class is reached from everywhere."""
        matrix, states = self.matrix, self.words.states
        label, closed = classes(matrix)
        if closed.sum() != 1:
            names = [[states[code] for code in np.flatnonzero(label == c)] for c in np.flatnonzero(closed)]
            raise EstimateError(
                f"The chain has {int(closed.sum())} closed classes ({listing(names, 4)}), each with a stationary "
                "distribution of its own, so that there is no single one."
            )
        members = np.flatnonzero(label == np.flatnonzero(closed)[0])
        shares = np.zeros(len(states))
        shares[members] = stationary(matrix[np.ix_(members, members)])
        return self._over_states("state", shares)

    def hitting_times(self, targets: Any) -> Table:
        """Expected number of steps from each state until a target (a state, or a list of them) is hit."""
        matrix, states = self.matrix, self.words.states
        several = isinstance(targets, list | set | frozenset) or (
            isinstance(targets, tuple) and self.words.variable.find(targets) is None
        )
        wanted = np.zeros(len(states), dtype=np.bool_)
        for target in targets if several else [targets]:
            wanted[self.words.place(target)] = True
        if not wanted.any():
            raise OptionError("Name at least one target.")
        return self._over_states("from", hitting(matrix, wanted))

    def communicating_classes(self) -> list[tuple[Hashable, ...]]:
        """The classes of states that reach each other, closed ones first."""
        matrix, states = self.matrix, self.words.states
        label, closed = classes(matrix)
        order = sorted(range(len(closed)), key=lambda c: (not closed[c], int(np.argmax(label == c))))
        return [tuple(states[code] for code in np.flatnonzero(label == c)) for c in order]

    def closed_classes(self) -> list[tuple[Hashable, ...]]:
        """The classes that are never left once entered; one of a single state is an absorbing state."""
        matrix = self.matrix
        return self.communicating_classes()[: int(classes(matrix)[1].sum())]

    def absorption_probabilities(self) -> Table:
        """Probability of ending in each closed class from each state.

        A `Table` over "from" and "class", the number of the class in `closed_classes`.
        """
        matrix, states = self.matrix, self.words.states
        groups = self.closed_classes()
        probabilities = np.zeros((len(states), len(groups)))
        inside = np.zeros(len(states), dtype=np.bool_)
        for number, members in enumerate(groups):
            places = [self.words.place(state) for state in members]
            probabilities[places, number] = 1.0
            inside[places] = True
        if not inside.all():
            outside = ~inside
            inner = np.eye(int(outside.sum())) - matrix[np.ix_(outside, outside)]
            probabilities[outside] = np.linalg.solve(inner, matrix[np.ix_(outside, inside)] @ probabilities[inside])
        axes = [Variable.discrete("from", states), Variable.discrete("class", range(len(groups)))]
        return Table(Domain(axes), probabilities)

    def is_ergodic(self) -> bool:
        """Whether every state is reached from every other, and not in a fixed rhythm only."""
        matrix = self.matrix
        label, _ = classes(matrix)
        return bool((label == label[0]).all()) and period(matrix, np.arange(len(matrix))) == 1
