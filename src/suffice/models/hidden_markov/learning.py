"""The M-step of a chain, and the counts that it learns from where every state is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.checks import is_real
from suffice.errors import OptionError, listing
from suffice.families.categoricals import Categoricals
from suffice.models.hidden_markov.chains import Observed
from suffice.models.hidden_markov.durations.distributions import Duration, Staying, TableDuration
from suffice.models.hidden_markov.durations.options import read_durations
from suffice.models.hidden_markov.durations.segments import known_segments
from suffice.models.hidden_markov.emissions import contract
from suffice.models.hidden_markov.emissions.contract import UNUSED, Emission
from suffice.models.hidden_markov.emissions.standing import Standing
from suffice.models.hidden_markov.parameters import ChainParameters, Statistics, stationary
from suffice.models.hidden_markov.priors import PARTS, pseudo_counts, split_prior
from suffice.models.hidden_markov.stationary_start import maximise_stationary
from suffice.models.hidden_markov.structure import TransitionStructure, read_fixed, read_tied

#: Expected steps below which a state is reported as unused.
UNUSED_STEPS = 1e-3
#: How often states of explicit durations leave where a plain chain begins from their transitions.
_LEAVING = 0.1


@dataclass(frozen=True, eq=False)
class ChainRows:
    """First states, one row, or transitions, one row for each state: arrays (rows, K).

    `counts` are counted or expected, `pseudo` those of the prior, `allowed` says which cells may be above 0.
    """

    part: str
    counts: Floats
    pseudo: Floats
    probabilities: Floats
    allowed: NDArray[np.bool_]

    def called(self, cell: tuple[int, ...], names: Sequence[object]) -> str:
        """A cell, row and state, in words."""
        row, state = cell
        first = f"first state {names[state]!r}"
        return f"P({first if self.part == 'initial' else f'{names[row]!r} -> {names[state]!r}'})"


@dataclass(frozen=True, eq=False)
class Learner:
    """The M-step: pseudo-counts of first states (K,) and transitions (K, K), what is fixed, which states are tied.

    `stationary` says that the first state has the stationary distribution of the transitions, which are then found by a
    few steps of a quasi-Newton method. `durations` are those that states begin with, none in a plain chain; `given`
    says which of them are start values, and `pseudo_durations` (D, K) are those of tables.
    """

    emission: Emission
    structure: TransitionStructure
    first: Floats
    pairs: Floats
    fixed: frozenset[str] = frozenset()
    tied: tuple[tuple[int, ...], ...] = ()
    stationary: bool = False
    durations: tuple[Duration, ...] = ()
    given: tuple[bool, ...] = ()
    pseudo_durations: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    @classmethod
    def read(cls, options: Mapping[str, Any], emission: Emission, states: Sequence[Any]) -> Learner:
        """As the options of a model with these states say."""
        prior, size, estimate = split_prior(options["prior"]), len(states), options["estimate"]
        given = options["emissions"]
        named = isinstance(options["prior"], Mapping) and "durations" in prior
        durations, known = read_durations(options.get("durations"), states)
        explicit = [not isinstance(duration, Staying) for duration in durations]
        if explicit and isinstance(options["initial"], str):
            raise OptionError(
                "initial='stationary' is the distribution that plain transitions leave as it is; with explicit "
                "durations= a sequence begins with a segment. Leave initial= out, or give its probabilities."
            )
        emitted = None if given is None else emission.parameters_of(given)
        structure = TransitionStructure.read(options, size, emitted, explicit)
        return cls(
            emission,
            structure,
            pseudo_counts(prior.get("initial"), (size,), estimate, "initial") * structure.first,
            pseudo_counts(prior.get("transitions"), (size, size), estimate, "transitions") * structure.pairs,
            read_fixed(options["fixed"]),
            read_tied(options["tied"], states),
            isinstance(options["initial"], str),
            durations,
            known,
            _pseudo_durations(prior.get("durations"), durations, estimate, named=named),
        )

    @cached_property
    def free(self) -> frozenset[str]:
        """The parts that are learned: a stationary first state follows from the transitions."""
        none = {"initial"} if self.stationary else set()
        return frozenset(PARTS) - self.fixed - none - (set() if self.durations else {"durations"})

    def plain(self) -> Learner:
        """The same with states that stay by their transitions, by which EM finds where durations begin."""
        of, lasting = self.structure, np.diag(self.structure.lasting)
        transitions = of.transitions
        if transitions is not None:
            transitions = np.where(
                of.lasting[:, None], _LEAVING * transitions + (1.0 - _LEAVING) * lasting, transitions
            )
        structure = replace(of, transitions=transitions, pairs=of.pairs | lasting, lasting=np.zeros_like(of.lasting))
        return replace(self, structure=structure, durations=(), given=())

    def from_plain(self, plain: ChainParameters) -> ChainParameters:
        """Parameters that last about as long; values that were given are kept."""
        of, transitions = self.structure, plain.transitions
        leaving = 1.0 - np.diag(transitions)
        means = 1.0 / np.maximum(leaving, 1e-6)
        rows = np.where(of.pairs, np.maximum(transitions, 1e-12), 0.0)
        rows = np.where(of.lasting[:, None], rows / rows.sum(axis=1, keepdims=True), transitions)
        triples = zip(self.durations, self.given, means.tolist(), strict=True)
        durations = tuple(one if given else one.lasting(mean) for one, given, mean in triples)
        return replace(plain, transitions=rows if of.transitions is None else of.transitions, durations=durations)

    @property
    def repeated(self) -> list[int]:
        """States whose distribution is that of an earlier one."""
        return [state for group in self.tied for state in group[1:]]

    def gathered(self, statistics: Statistics) -> contract.Statistics:
        """The statistics of what states emit, those of states that share a distribution in the first of them."""
        return self.emission.gathered(statistics.emission, self.tied)

    def learn(self, statistics: Statistics, before: ChainParameters) -> ChainParameters:
        """Parameters from statistics; rows without counts stay as they were."""
        initial, transitions, emission = before.initial, before.transitions, before.emission
        if "transitions" in self.free:
            counts = statistics.transitions + self.pairs
            if self.stationary:
                transitions = maximise_stationary(statistics.initial + self.first, counts, transitions)
            else:
                transitions = Categoricals.most_likely(counts, before=transitions, least=UNUSED).probabilities
        if self.stationary:
            initial = stationary(transitions)
        elif "initial" in self.free:
            counts = statistics.initial + self.first
            initial = Categoricals.most_likely(counts, before=initial, least=UNUSED).probabilities
        if "emissions" in self.free:
            emission = self.emission.maximise_tied(statistics.emission, emission, self.tied)
        durations = before.durations
        if "durations" in self.free and statistics.segments is not None:
            triples = self._segments(statistics, durations)
            durations = tuple(one.learned(ended, cut, pseudo) for one, ended, cut, pseudo in triples)
        return ChainParameters(initial, transitions, emission, durations)

    def _segments(
        self, statistics: Statistics, durations: Sequence[Duration]
    ) -> Iterator[tuple[Duration, Floats, Floats, Floats]]:
        """The distribution of each state, counts (D,) of its segments that ended and were cut, and pseudo-counts."""
        counts = statistics.segments
        assert counts is not None
        yield from zip(durations, counts.ended.T, counts.cut.T, self.pseudo_durations.T, strict=True)

    def standing_of_durations(
        self, statistics: Statistics, durations: Sequence[Duration], names: Sequence[str]
    ) -> Standing:
        """Where durations stand whose segments are all known."""
        parts = zip(self._segments(statistics, durations), names, strict=True)
        return sum((one.standing(ended, cut, more, name) for (one, ended, cut, more), name in parts), Standing())

    def value_of_durations(self, statistics: Statistics, durations: Sequence[Duration]) -> Floats:
        """Log-likelihood and log prior of each state's durations (K,)."""
        parts = self._segments(statistics, durations)
        return np.array([one.log_likelihood(ended, cut) + one.log_prior(more) for one, ended, cut, more in parts])

    def check_start(self, states: Sequence[object]) -> None:
        """Raise where start values are beyond a floor, or differ between states that share a distribution."""
        given = self.structure.emission
        if given is None or "emissions" in self.fixed:
            return
        self.emission.check_start(given)
        for name, array in given.items():
            if not np.array_equal(array, contract.alike(array, self.tied, self.emission.size)):
                groups = [tuple(states[state] for state in group) for group in self.tied]
                raise OptionError(
                    f"emissions holds different {name} for states that share one distribution by tied={groups!r}. Give "
                    "them the same distribution."
                )

    # -- parameters as one vector ------------------------------------------------------------------------------------

    def vector(self, parameters: ChainParameters) -> Floats:
        """The free parameters one after another, in comparable units; a stationary first state is none of them."""
        parts = [np.zeros(0)]
        if "initial" in self.free:
            parts.append(parameters.initial)
        if "transitions" in self.free:
            parts.append(parameters.transitions.ravel())
        if "emissions" in self.free:
            parts.append(self.emission.vector(parameters.emission))
        if "durations" in self.free:
            parts += [one.vector() for one in parameters.durations]
        return np.concatenate(parts)

    def at(self, vector: Floats, like: ChainParameters) -> ChainParameters:
        """The parameters that a vector holds; what is fixed is as in `like`, to the bit."""
        size, begin = len(like.initial), 0
        initial, transitions, emission = like.initial, like.transitions, like.emission
        if "initial" in self.free:
            initial, begin = vector[:size], size
        if "transitions" in self.free:
            transitions = vector[begin : begin + size * size].reshape(size, size)
            begin += size * size
        if self.stationary:
            initial = stationary(transitions)
        durations, end = like.durations, len(vector)
        if "durations" in self.free:
            sizes = [len(one.numbers) for one in durations]
            end -= sum(sizes)
            parts = np.split(vector[end:], np.cumsum(sizes)[:-1])
            durations = tuple(one.of_vector(part) for one, part in zip(durations, parts, strict=True))
        if "emissions" in self.free:
            emission = self.emission.at(vector[begin:end], like.emission)
        return ChainParameters(initial, transitions, emission, durations)

    def inside(self, parameters: ChainParameters) -> bool:
        """Whether rows hold finite numbers of at least 0, and the distributions take theirs."""
        sizes = parameters.initial.sum() + parameters.transitions.sum(axis=1)
        rows = (parameters.initial >= 0).all() and (parameters.transitions >= 0).all() and np.isfinite(sizes).all()
        lasting = all(one.inside() for one in parameters.durations)
        return bool(rows) and lasting and self.emission.inside(parameters.emission)

    @property
    def n_params(self) -> int:
        """Free parameters: what is fixed, forbidden or tied does not count."""
        count = 0
        if "initial" in self.free:
            count += int(self.structure.first.sum()) - 1
        if "transitions" in self.free:
            count += int((self.structure.pairs.sum(axis=1) - 1).sum())
        if "emissions" in self.free:
            count += int(np.delete(self.emission.n_free, self.repeated).sum()) + self.emission.n_shared
        if "durations" in self.free:
            count += sum(one.n_params for one in self.durations)
        return count

    # -- the objective -----------------------------------------------------------------------------------------------

    def rows(self, statistics: Statistics, parameters: ChainParameters) -> list[ChainRows]:
        """The rows of the chain that are learned."""
        sums, of = statistics, self.structure
        parts = [
            ChainRows("initial", sums.initial[None], self.first[None], parameters.initial[None], of.first[None]),
            ChainRows("transitions", sums.transitions, self.pairs, parameters.transitions, of.pairs),
        ]
        return [rows for rows in parts if rows.part in self.free]

    def complete_log_likelihood(self, statistics: Statistics, parameters: ChainParameters) -> float:
        """Log-likelihood of complete sequences with these statistics, or the expected one."""
        chain = Categoricals(parameters.initial).log_likelihood(statistics.initial)
        chain = chain + Categoricals(parameters.transitions).log_likelihood(statistics.transitions).sum()
        emitted = self.emission.expected(statistics.emission, parameters.emission).sum()
        lasting = 0.0
        if parameters.durations:
            parts = self._segments(statistics, parameters.durations)
            lasting = sum(one.log_likelihood(ended, cut) for one, ended, cut, _ in parts)
        return float(chain + emitted + lasting)

    def log_prior(self, parameters: ChainParameters) -> float:
        """Log prior density up to a constant, of what is not fixed."""
        value = 0.0
        # Of a stationary first state too: its pseudo-counts are a prior of the transitions.
        if "initial" in self.free or self.stationary:
            value += float(Categoricals(parameters.initial).log_likelihood(self.first))
        if "transitions" in self.free:
            value += float(Categoricals(parameters.transitions).log_likelihood(self.pairs).sum())
        if "emissions" in self.free:
            value += float(sum(np.delete(self.emission.log_prior(parameters.emission), self.repeated).tolist()))
        if "durations" in self.free:
            columns = zip(parameters.durations, self.pseudo_durations.T, strict=True)
            value += sum(one.log_prior(pseudo) for one, pseudo in columns)
        return value


def _pseudo_durations(prior: object, durations: Sequence[Duration], estimate: str | None, *, named: bool) -> Floats:
    """Pseudo-counts (D, K) of the durations of states that have a table; named: whether the prior is for them alone."""
    tables = [one.allowed if isinstance(one, TableDuration) else np.zeros(0, bool) for one in durations]
    longest = max((len(allowed) for allowed in tables), default=0)
    if named and not longest:
        raise OptionError("prior has pseudo-counts for durations, and no state has a table of them by durations=.")
    counts = pseudo_counts(prior, (longest,), estimate, "durations")
    columns = [counts * np.pad(allowed, (0, longest - len(allowed))) for allowed in tables]
    return np.stack(columns, axis=1) if columns else np.zeros((0, 0))


def counted(observed: Observed, emission: Emission, size: int, like: ChainParameters) -> Statistics:
    """The statistics of sequences whose states are all known: counts, to the last digit."""
    labels, weights = observed.labels, observed.step_weights
    assert labels is not None
    initial: Floats = np.bincount(labels[observed.offsets[:-1]], observed.weights, size).astype(np.float64)
    inner = np.ones(len(labels), bool)
    inner[observed.offsets[:-1]] = False
    later = np.flatnonzero(inner)
    cells = labels[later - 1].astype(np.int64) * size + labels[later]
    pairs: Floats = np.bincount(cells, weights[later], size * size).astype(np.float64).reshape(size, size)
    sums: contract.Statistics = {}
    for begin in range(0, len(labels), 1 << 20):
        some = slice(begin, begin + (1 << 20))
        rows = np.zeros((len(labels[some]), size))
        rows[np.arange(len(rows)), labels[some]] = weights[some]
        part = emission.statistics(tuple(piece[some] for piece in observed.values), rows, like.emission)
        sums = contract.add(sums, part) if sums else part
    if not like.durations:
        return Statistics(initial, pairs, sums)
    staying = [isinstance(one, Staying) for one in like.durations]
    return Statistics(initial, pairs * ~np.diag(~np.array(staying)), sums, segments=known_segments(observed, staying))


def remarks(
    statistics: Statistics, values: ChainParameters, learner: Learner, states: Sequence[object], prior: object
) -> tuple[str, ...]:
    """What a report should say of the answer; prior: that of the model, as its options have it."""
    left_open = undefined(statistics, learner, states, split_prior(prior).get("emissions"))
    if "emissions" not in learner.free:
        return left_open
    called = [f"state {name!r}" for name in states]
    return (*left_open, *learner.emission.notes(values.emission, learner.gathered(statistics), called))


def estimate_name(options: Mapping[str, Any], emission: Emission, values: ChainParameters, *, hidden: bool) -> str:
    """What was aimed at; EM climbs to the mode under pseudo-counts + 1 where they are added as they are."""
    if not split_prior(options["prior"]) and not np.any(emission.log_prior(values.emission)):
        return "maximum likelihood"
    if options["estimate"] == "map":
        return "MAP"
    return "MAP" if hidden else "posterior mean"


def parameterisation(options: Mapping[str, Any], emission: Emission, values: ChainParameters) -> str | None:
    """Where the mode that EM climbs to is not that of the prior as it was given."""
    penalised = estimate_name(options, emission, values, hidden=True) == "MAP" and options["estimate"] != "map"
    return "under Dirichlet priors of the pseudo-counts + 1" if penalised else None


def undefined(
    statistics: Statistics, learner: Learner, states: Sequence[object], prior: object = None
) -> tuple[str, ...]:
    """What the counts leave undetermined, in words, and what a `prior` of the emissions that is a number leaves out."""
    if not learner.free and len(learner.fixed) > 2:
        return ()
    notes = []
    plain = learner.emission.without_prior
    if is_real(prior) and plain and "emissions" not in learner.fixed:
        notes.append(
            f"the prior {prior} counts states and symbols: the distributions of {listing(plain)} have no prior, and "
            "were learned by maximum likelihood; give the distribution a conjugate prior, or prior={'emissions': ...}"
        )
    visits = statistics.visits
    leaving = (statistics.transitions + learner.pairs).sum(axis=1)
    for code, state in enumerate(states):
        if visits[code] < UNUSED_STEPS:
            notes.append(f"state {state!r} is unused: {visits[code]:.2g} expected steps")
        elif not leaving[code] > UNUSED and "transitions" not in learner.fixed:
            notes.append(f"no transition leaves state {state!r}: its row was left as it began")
    return tuple(notes)
