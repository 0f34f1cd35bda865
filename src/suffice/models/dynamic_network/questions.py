"""What a fitted network answers about series: probabilities, posteriors of every slice, what follows, best paths."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.checks import is_list, is_name
from suffice.domain import Domain, Variable
from suffice.errors import EstimateError, OptionError, listing, unknown_variable
from suffice.models.dynamic_network.interface import plan_slices
from suffice.models.dynamic_network.intervention import under
from suffice.models.dynamic_network.learning import family_rows
from suffice.models.dynamic_network.linear import LinearSeries, is_linear
from suffice.models.dynamic_network.mixtures import NormalMixtures, NumberFamilies, states_of
from suffice.models.dynamic_network.series import Series
from suffice.models.dynamic_network.slice_chains import SliceChains
from suffice.models.dynamic_network.structure import is_timed, name_of, renamed
from suffice.models.evidence import checked_given, read_evidence
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.models.dynamic_network.fitted import DynamicFitted

#: Nodes to carry that no family asks for.
NO_MORE: Mapping[Hashable, int] = MappingProxyType({})


def chains_of(
    fitted: DynamicFitted, series: Series, carried: Mapping[Hashable, int] = NO_MORE, threads: int = 1
) -> SliceChains:
    """Series as chains under a fitted network; carried: nodes whose states are to be told, and of how many slices."""
    nodes, structure = fitted.nodes, fitted.structure
    tables = {
        family: node.is_exact and all(v.kind == "discrete" for v in node.domain.variables)
        for family, node in nodes.items()
    }
    cards = {
        name: table.shape[axis]
        for family, node in nodes.items()
        if tables[family]
        for scope, table in node.expectation_factors()
        for axis, name in enumerate(scope)
    }
    known = structure.variables(fitted.domain)
    private = Domain(
        Variable.discrete(name, range(cards[name])) for name in sorted(cards, key=repr) if name not in known
    )
    nothing: dict[Hashable, tuple[Any, ...]] = dict.fromkeys(nodes, ())
    return SliceChains(
        series, plan_slices(series, structure, fitted.domain, nothing, private, tables, carried), threads
    )


def log_likelihoods(fitted: DynamicFitted, series: Series) -> Floats:
    """Of each series (n,), missing values and hidden nodes summed out."""
    if is_linear(series, fitted.domain, fitted.structure.nodes):
        return linear_log_likelihoods(fitted, series)
    return chains_of(fitted, series).log_likelihoods(fitted.nodes)


def linear_of(fitted: DynamicFitted, series: Series) -> LinearSeries:
    """Series as linear systems under a fitted network."""
    return LinearSeries(series, fitted.structure, fitted.domain, tuple(fitted.nodes))


def linear_log_likelihoods(fitted: DynamicFitted, series: Series) -> Floats:
    """Of each series (n,), numbers that are missing integrated out."""
    linear = linear_of(fitted, series)
    logs, _ = linear.systems(fitted.nodes).filtered()
    total = np.empty(series.n_series)
    total[linear.order] = logs
    for family in fitted.nodes:
        if not any(name_of(name) in linear.unseen for name in fitted.structure.family_names(family)):
            rows = family_rows(series, fitted.structure, [family])
            owner = series.owner[series.rows_of(fitted.structure.span(family))]
            total += np.bincount(owner, fitted.nodes[family].log_prob(rows.columns), minlength=series.n_series)
    return total


#: By node an array (slices, states), mean and variance (slices, 2), or `NormalMixtures`.
Answer = dict[Hashable, Any]


@dataclass(frozen=True, eq=False)
class SliceAnswers:
    """Questions about every slice of some series; answers are a dict by node, of several series a list of these."""

    fitted: DynamicFitted
    series: Series
    threads: int = 1
    #: How many particles answer, and their generator; None where answers are exact.
    particles: tuple[int, np.random.Generator] | None = None

    @cached_property
    def _linear(self) -> bool:
        """Whether Kalman's recursions answer: numbers are missing, and states are not."""
        return is_linear(self.series, self.fitted.domain, self.fitted.structure.nodes)

    # -- posteriors --------------------------------------------------------------------------------------------------

    def filtered(self, nodes: Any) -> Any:
        """P(node in a slice | the series up to it), an array (slices, states) of each node."""
        return self._split(self._answered(self._asked(nodes), ahead=True))

    def smoothed(self, nodes: Any) -> Any:
        """P(node in a slice | the whole series), an array (slices, states) of each node."""
        return self._split(self._answered(self._asked(nodes), ahead=False))

    def _asked(self, nodes: Any) -> list[Hashable]:
        """The nodes asked for; by default those of states that some slice does not show."""
        domain = self.fitted.domain
        if nodes is None:
            unseen = [name for name in self._told if not self._shown(name)]
            if not unseen:
                raise OptionError(
                    "Every slice shows all nodes: there is nothing to tell. Name nodes, or give series in which they "
                    "are missing."
                )
            return unseen
        names = list(nodes) if is_list(nodes) and not self._is_node(nodes) else [nodes]
        for name in names:
            if name not in domain:
                raise unknown_variable(name, self.fitted.structure.nodes)
            if name not in self._told and not self._shown(name):
                raise OptionError(
                    f"{name!r} holds numbers and is no linear-Gaussian node: where states are not seen, nothing short "
                    "says how it is distributed. Ask for its parents."
                )
        return names

    @cached_property
    def _told(self) -> list[Hashable]:
        """The nodes whose distributions can be told: those of states, and regressions."""
        nodes = self.fitted.structure.nodes
        if self.particles is not None:
            return list(nodes)
        return [n for n in nodes if self._linear or self.fitted.domain[n].kind == "discrete" or self._number(n).linear]

    def _number(self, node: Hashable) -> NumberFamilies:
        """The families of a node of numbers."""
        unseen = frozenset(name for name in self._states if not self._shown(name))
        return NumberFamilies(self.fitted, self.series, node, unseen)

    @property
    def _states(self) -> list[Hashable]:
        return states_of(self.fitted, self.fitted.structure.nodes)

    def _is_node(self, nodes: Any) -> bool:
        return is_name(nodes) and nodes in self.fitted.structure.nodes

    def _shown(self, name: Hashable) -> bool:
        return name in self.series.columns and not self.series.missing(name).any()

    def _answered(self, names: Sequence[Hashable], *, ahead: bool) -> Answer:
        if self.particles is not None:
            from suffice.models.dynamic_network.particles import ParticleFilter

            return ParticleFilter(self.fitted, self.series, *self.particles).filtered(names)
        if self._linear:
            return self._normal(names, ahead=ahead)
        answers = self._posteriors(states_of(self.fitted, names), ahead=ahead)
        return {name: answers[name] if name in answers else self._mixtures(name, ahead=ahead) for name in names}

    def _mixtures(self, name: Hashable, *, ahead: bool) -> NormalMixtures:
        """Of a node of numbers, in every slice."""
        if self._shown(name):
            values = self.series.columns[name][:, None]
            return NormalMixtures(np.ones_like(values), values, np.zeros_like(values))
        number = self._number(name)
        chains = chains_of(self.fitted, self.series, number.depths, self.threads)
        logs, rows = (chains.filtered if ahead else chains.smoothed)(self.fitted.nodes)
        self._check_possible(logs)
        return number.mixtures(chains, rows)

    def _normal(self, names: Sequence[Hashable], *, ahead: bool) -> Answer:
        """By node of numbers mean and variance (slices, 2); nodes of states are all seen here."""
        linear = linear_of(self.fitted, self.series)
        systems = linear.systems(self.fitted.nodes)
        _, states = systems.filtered() if ahead else systems.smoothed()
        answers: Answer = {}
        for name in names:
            if self.fitted.domain[name].kind == "discrete":
                answers[name] = np.eye(self.fitted.domain[name].card)[self.series.columns[name]]
                continue
            answers[name] = np.zeros((self.series.n_slices, 2))
            if self._shown(name):
                answers[name][:, 0] = self.series.columns[name]
                continue
            slot = linear.places[name, 0]
            for time, here in enumerate(states):
                rows = linear.rows(time)
                answers[name][rows, 0] = here.means[:, slot]
                answers[name][rows, 1] = here.covariances[:, slot, slot]
        return answers

    def _posteriors(self, names: Sequence[Hashable], *, ahead: bool) -> Answer:
        """By node (slices, states); nodes that are carried anyway are told together, the others one at a time."""
        answers: Answer = {}
        for name in [name for name in names if self._shown(name)]:
            answers[name] = np.eye(self.fitted.domain[name].card)[self.series.columns[name]]
        unseen = [name for name in names if name not in answers]
        plain = chains_of(self.fitted, self.series, NO_MORE, self.threads)
        kept = {name for name, _ in plain.plan.interface.positions}
        for together in [[n for n in unseen if n in kept], *([n] for n in unseen if n not in kept)]:
            if not together:
                continue
            alone = dict.fromkeys(together, 1)
            chains = plain if together[0] in kept else chains_of(self.fitted, self.series, alone, self.threads)
            logs, rows = (chains.filtered if ahead else chains.smoothed)(self.fitted.nodes)
            self._check_possible(logs)
            answers |= {name: chains.marginal(rows, name) for name in together}
        return {name: answers[name] for name in names}

    def _check_possible(self, logs: Floats) -> None:
        impossible = np.flatnonzero(np.isneginf(logs))
        if len(impossible):
            raise EstimateError(
                f"{len(impossible)} series have probability 0 under the network, the first is series "
                f"{int(impossible[0])}. Fit with a prior, so that every event keeps some probability."
            )

    def _split(self, answers: Answer) -> Any:
        """By series, as they were given."""
        offsets = self.series.offsets
        parts = [
            {name: values[offsets[i] : offsets[i + 1]] for name, values in answers.items()}
            for i in range(self.series.n_series)
        ]
        return parts if self.series.listed else parts[0]

    # -- the future --------------------------------------------------------------------------------------------------

    def ahead(self, slices: int, nodes: Any, inputs: Any, do: Any = None) -> Any:
        """P(node in a later slice | the series), an array (later slices, states) of each node."""
        series = under(self.fitted, extended(self.fitted, self.series, slices, inputs), do, later=slices)
        longer = replace(self, series=series)
        answers = longer._answered(longer._told if nodes is None else longer._asked(nodes), ahead=False)
        parts = longer._split(answers)
        by_series = parts if self.series.listed else [parts]
        cut = [{name: values[-slices:] for name, values in one.items()} for one in by_series]
        return cut if self.series.listed else cut[0]

    # -- paths -------------------------------------------------------------------------------------------------------

    def best(self) -> Any:
        """The most probable states of all nodes in all slices together, and numbers: as seen, or their means."""
        if self._linear:
            # The mode of a normal distribution is its mean.
            names = self.fitted.structure.nodes
            means = {name: values[:, 0] for name, values in self._normal(names, ahead=False).items()}
            return self._split(means | {n: self.fitted.labels(n, self.series.columns[n]) for n in self._states})
        chains = chains_of(self.fitted, self.series, NO_MORE, self.threads)
        logs, states = chains.best(self.fitted.nodes)
        self._check_possible(logs)
        codes = {name: states[name] if name in states else self.series.columns[name] for name in self._states}
        answers: Answer = {}
        for name in self.fitted.structure.nodes:
            if name in codes:
                answers[name] = self.fitted.labels(name, codes[name])
            elif self._shown(name):
                answers[name] = self.series.columns[name]
            elif name in self._told:
                answers[name] = self._number(name).means(codes)
        return self._split(answers)


def extended(fitted: DynamicFitted, series: Series, slices: int, inputs: Any) -> Series:
    """Series with later slices, of which nothing is known but the inputs."""
    from suffice.models.dynamic_network.reading import read_later_inputs

    later = read_later_inputs(fitted, inputs, slices, series)
    lengths = series.lengths + slices
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    old = np.repeat(offsets[:-1] - series.offsets[:-1], series.lengths) + np.arange(series.n_slices)
    new = np.setdiff1d(np.arange(int(offsets[-1])), old)
    columns: dict[Hashable, NDArray[Any]] = {}
    for name, values in series.columns.items():
        columns[name] = np.full(int(offsets[-1]), -1 if values.dtype.kind == "i" else np.nan, values.dtype)
        columns[name][old] = values
        if name in later:
            columns[name][new] = later[name]
    cut = {name: np.zeros(int(offsets[-1]), bool) for name in series.cut}
    for name, mask in series.cut.items():
        cut[name][old] = mask
    return replace(series, columns=columns, cut=cut, offsets=offsets)


def answer_one(fitted: DynamicFitted, variable: Any, given: Any, do: Any, inputs: Any) -> Table | NormalMixtures:
    """The distribution of one node in one slice."""
    node, number = _node_of_slice(fitted, variable, "variable")
    known: dict[tuple[Hashable, int], Any] = {}
    for name, value in (checked_given(given) or {}).items():
        position = _node_of_slice(fitted, name, "given")
        evidence = read_evidence(Domain([fitted.domain[position[0]]]), {position[0]: value})
        if evidence.likelihoods:
            raise OptionError(f"given= has soft evidence of {name!r}; expected one of its states.")
        known |= dict.fromkeys([position], *evidence.known.values())
    timed = [name[1] for name in (do if isinstance(do, Mapping) else ()) if is_timed(name)]
    slices = max([number, *(time for _, time in known), *timed]) + 1
    columns: dict[Hashable, NDArray[Any]] = {}
    if fitted.structure.inputs or inputs is not None:
        columns |= fitted._inputs(inputs, slices)
    for (name, time), value in known.items():
        empty = np.full(slices, np.nan) if fitted.domain[name].kind != "discrete" else np.full(slices, -1, np.int32)
        columns.setdefault(name, empty)[time] = value
    domain = Domain(fitted.domain[name] for name in columns)
    series = Series(domain, columns, np.array([0, slices], np.int64), np.ones(1), slices, listed=False)
    asked = SliceAnswers(fitted, under(fitted, series, do))
    if node not in asked._told:
        raise OptionError(
            f"{node!r} holds numbers and is no linear-Gaussian node: nothing short tells how it is distributed."
        )
    answer = asked._answered([node], ahead=False)[node]
    if fitted.domain[node].kind == "discrete":
        return Table(Domain([renamed(fitted.domain[node], (node, number))]), answer[number])
    if isinstance(answer, NormalMixtures):
        return answer[number]
    return NormalMixtures(np.ones((1, 1)), answer[number, :1][None], answer[number, 1:][None])


def _node_of_slice(fitted: DynamicFitted, name: Any, option: str) -> tuple[Hashable, int]:
    """A node and a slice, as users name them."""
    nodes = fitted.structure.nodes
    if not is_timed(name) or name[0] not in nodes or name[1] < 0:
        raise OptionError(
            f"{option} names {name!r}; expected a node and the number of a slice, such as {(nodes[0], 3)!r}. The nodes "
            f"are: {listing(nodes)}."
        )
    return name[0], int(name[1])
