"""Whole rows of codes in memory, for the solvers that need more than the counts of cliques, and their summary."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from suffice.answers import CountTable
from suffice.array_types import Floats
from suffice.domain import Domain, Variable
from suffice.engines.gibbs import MOST_STATES, GibbsSampler
from suffice.errors import DataError, MissingValueError, OptionError, SizeError, listing
from suffice.fitting.summaries import resolved_domain
from suffice.models.markov.log_linear import LogLinear
from suffice.models.markov.observed import joint_counts
from suffice.models.markov.structure import Term
from suffice.sources.base import Batch, Source
from suffice.statistics import Counts, Summary

#: What asks for no rows, in place of chains that begin at them.
CHAINS_AT_ROWS = (
    "Chains of contrastive divergence, and of solver='sml' with batch_size=, begin at rows: use solver='sml' without "
    "batch_size=, or solver='pseudolikelihood'."
)


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Rows as columns of states (variables, n), in the order of the network's variables, with their weights (n,)."""

    states: NDArray[np.uint8]
    weights: Floats

    @property
    def shares(self) -> Floats:
        """Weights that add up to one."""
        return np.asarray(self.weights / self.weights.sum())

    @property
    def live(self) -> CodedRows:
        """The rows with weight."""
        keep = self.weights > 0.0
        return self if keep.all() else CodedRows(np.ascontiguousarray(self.states[:, keep]), self.weights[keep])

    @property
    def notes(self) -> tuple[str, ...]:
        """Of rows in memory there is nothing to say."""
        return ()

    def pseudo_likelihood(self, sampler: GibbsSampler, logs: Floats) -> tuple[float, Floats]:
        """Mean over rows of the sum of log p(site | others), and its slope by log-potential (cells,)."""
        sampler.load(logs)
        return sampler.pseudo_likelihood(self.states, self.shares)

    def draw(self, seed: int, sweep: int, count: int, sweeps: int) -> NDArray[np.uint8]:
        """Rows (variables, count) drawn by their weights; which ones is said by seed and sweep alone.

        sweeps: how many there are from one draw to the next, for rows that are fetched ahead.
        """
        return self.passing(draws_of(seed, sweep, count) * float(self.sums[-1]))

    @cached_property
    def sums(self) -> Floats:
        """The running sum of the weights."""
        return np.cumsum(self.weights)

    def passing(self, targets: Floats) -> NDArray[np.uint8]:
        """The rows (variables, n) at which the running sum of the weights passes these targets (n,)."""
        chosen = np.minimum(np.searchsorted(self.sums, targets, side="right"), len(self.sums) - 1)
        return np.ascontiguousarray(self.states[:, chosen])

    def close(self) -> None:
        """Rows in memory are let go with whoever holds them."""


def draws_of(seed: int, sweep: int, count: int) -> Floats:
    """Uniform numbers (count,) of a sweep of chains with this seed."""
    return np.random.Generator(np.random.Philox(key=[seed ^ (1 << 62), sweep])).random(count)


def model_scopes(model: LogLinear) -> list[tuple[int, ...]]:
    """The scopes of a model as numbers of its variables."""
    number = {name: column for column, name in enumerate(model.domain.names)}
    return [tuple(number[name] for name in scope) for scope in model.scopes]


def model_sampler(model: LogLinear, *, scan: str = "systematic") -> GibbsSampler:
    """The Gibbs sampler of a model."""
    return GibbsSampler(model.domain.shape(model.domain.names), model_scopes(model), scan=scan)


@dataclass(frozen=True, eq=False)
class _Batches:
    """Coded batches in the order of the rows: the domain, codes (variables, n) and weights (n,) of each; they add up.

    States seen are kept sorted, so that one that turns up late renumbers those before it, and every batch has codes of
    its own until all states are known.
    """

    parts: tuple[tuple[Domain, NDArray[np.uint8], Floats], ...]

    holds_rows: ClassVar[bool] = True
    instead: ClassVar[str] = CHAINS_AT_ROWS

    def __add__(self, other: _Batches) -> _Batches:
        return _Batches(self.parts + other.parts)

    def joined(self) -> tuple[Domain, CodedRows]:
        """The domain of all states, and all rows in its codes."""
        domain = self.parts[0][0]
        for other, _, _ in self.parts[1:]:
            domain = domain.merge(other)
        check_cards(domain)
        states = np.concatenate([_moved(codes, own, domain) for own, codes, _ in self.parts], axis=1)
        return domain, CodedRows(states, np.concatenate([weights for _, _, weights in self.parts]))


def _moved(codes: NDArray[np.uint8], old: Domain, new: Domain) -> NDArray[np.uint8]:
    """Codes (variables, n) of one domain in those of another that has all of its states."""
    if old == new:
        return codes
    moved = np.empty_like(codes)
    for row, name in enumerate(new.names):
        moves = np.array([new[name].index(state) for state in old[name].states], np.uint8)
        moved[row] = moves[codes[row]]
    return moved


def check_cards(domain: Domain) -> None:
    """An error where a variable has more states than fit into a byte."""
    most = max(domain.shape(domain.names), default=1)
    if most > MOST_STATES:
        raise SizeError(f"A variable has {most:,} states; approximate solvers take at most {MOST_STATES}.")


@dataclass(frozen=True)
class _Coded:
    """The task that keeps the rows of a batch; it can be sent to other processes."""

    nodes: tuple[Hashable, ...]

    def __call__(self, batch: Batch) -> _Batches:
        """The rows of a batch, with the domain of its codes."""
        rows = coded_rows(batch, self.nodes)
        return _Batches(((batch.domain.select(self.nodes), rows.states, rows.weights),))


def coded_rows(batch: Batch, nodes: tuple[Hashable, ...]) -> CodedRows:
    """Codes in the order of the nodes, and weights; missing values are an error."""
    domain = batch.domain.select(nodes)
    check_cards(domain)
    part = batch.codes[[batch.discrete.index(name) for name in nodes]] if batch.discrete != nodes else batch.codes
    missing = part >= np.array(domain.shape(nodes))[:, None]
    if missing.any():
        column, row = (int(indices[0]) for indices in np.nonzero(missing))
        raise MissingValueError(
            f"Column {nodes[column]!r} has a missing value in row {batch.start + row}. Markov networks learn from "
            "whole rows: drop the rows with missing values, or fill them."
        )
    weights = np.ones(batch.rows) if batch.weights is None else batch.weights
    return CodedRows(part.astype(np.uint8, copy=False), weights)


def read_rows(
    source: Source, wanted: Mapping[Hashable, Variable | None], nodes: Sequence[Hashable]
) -> tuple[Domain, CodedRows, int]:
    """All rows of a source, their domain, and their number; missing values are an error."""
    domain = resolved_domain(source, wanted)
    wrong = [variable.name for variable in domain.variables if variable.kind != "discrete"]
    if wrong:
        raise OptionError(f"{listing(wrong)} hold numbers; a Markov network needs states. Declare them in states=.")
    whole, rows = source.reduce(_Coded(tuple(nodes)), domain).joined()
    return whole, rows.live, len(rows.weights)


def summary_of_rows(domain: Domain, terms: Sequence[Term], rows: CodedRows, count: int) -> Summary:
    """The counts of all scopes of a model, as a pass for them would give."""
    if not len(rows.weights):
        raise DataError("There are no rows to learn from.")
    model = LogLinear(domain, terms)
    plain = None if (rows.weights == 1.0).all() else rows.weights
    counts = model_sampler(model).counts(rows.states, plain)
    answers: dict[Any, Any] = {}
    for number, scope in enumerate(model.scopes):
        answers[Counts(scope)] = CountTable.of(model.part(counts, number))
    return Summary(domain, answers, count, float(rows.weights.sum()))


def rows_of_summary(summary: Summary, nodes: tuple[Hashable, ...]) -> CodedRows | None:
    """The rows that a summary counts, where it counts all variables together."""
    joint = joint_counts(summary, nodes)
    if joint is None or max(summary.domain.shape(nodes), default=1) > MOST_STATES:
        return None
    return CodedRows(np.ascontiguousarray(joint[0].T.astype(np.uint8)), np.asarray(joint[1], dtype=np.float64))
