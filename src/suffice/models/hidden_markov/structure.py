"""What is given about the chain: start values, structural zeros, fixed parts and tied distributions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.checks import choice, listed_names
from suffice.choices import Topology, choices
from suffice.errors import EstimateError, OptionError, listing, shortened
from suffice.models.hidden_markov.chains import Observed
from suffice.models.hidden_markov.emissions.contract import Emission, Parameters
from suffice.models.hidden_markov.priors import PARTS
from suffice.options import doubles

TOPOLOGIES = (None, *choices(Topology))


@dataclass(frozen=True)
class TransitionStructure:
    """What is given about a model, and what it forbids.

    `initial` (K,), `transitions` (K, K) and `emission` are start values, or None. `first` (K,) and `pairs` (K, K) say
    which first states and transitions may happen; an emission holds its own zeros. States that are `lasting` (K,) have
    explicit durations, and no transition to themselves.
    """

    initial: Floats | None
    transitions: Floats | None
    emission: Parameters | None
    first: NDArray[np.bool_]
    pairs: NDArray[np.bool_]
    lasting: NDArray[np.bool_]

    @classmethod
    def read(
        cls, options: Mapping[str, Any], size: int, emission: Parameters | None, lasting: Sequence[bool] = ()
    ) -> TransitionStructure:
        """From the options of a model of so many states; `lasting` ones have explicit durations."""
        given = options["initial"]
        if isinstance(given, str) and given != "stationary":
            raise OptionError(f"initial is {given!r}; expected probabilities, or 'stationary'.")
        initial = None if isinstance(given, str) else read_rows(given, (size,), "initial")
        if not (options["transitions"] is None or hasattr(options["transitions"], "__len__")):
            raise OptionError(
                f"transitions is {options['transitions']!r}; expected probabilities of shape {(size, size)}. "
                "Transitions that follow covariates are those of a hidden node of a DynamicBayesianNetwork that is a "
                "GLM node, whose parents are the state before and the covariates."
            )
        transitions = read_rows(options["transitions"], (size, size), "transitions")
        first, pairs = allowed_cells(options["topology"], initial, transitions, size)
        last = np.array(lasting, bool) if len(lasting) else np.zeros(size, bool)
        _check_lasting(transitions, pairs, last)
        pairs = pairs & ~np.diag(last)
        return cls(initial, transitions, emission, first, pairs, last)

    def check_labels(
        self,
        observed: Observed,
        distributions: Emission,
        names: Sequence[Hashable],
        called: Callable[[int], str] = "Sequence {}".format,
    ) -> None:
        """Raise where known states go a way, or emit a symbol, that the structure forbids.

        `called` names a sequence by its number.
        """
        labels = observed.labels
        if labels is None:
            return
        begins = observed.offsets[:-1]
        wrong = np.zeros(len(labels), bool)
        wrong[begins] = (labels[begins] >= 0) & ~self.first[labels[begins]]
        inner = np.ones(len(labels), bool)
        inner[begins] = False
        later = np.flatnonzero(inner & (labels >= 0) & (np.roll(labels, 1) >= 0))
        wrong[later] |= ~(self.pairs | np.diag(self.lasting))[labels[later - 1], labels[later]]
        if wrong.any():
            step = int(np.argmax(wrong))
            number, step_there = observed.where(step)
            way = (
                f"begins in state {names[labels[step]]!r}"
                if not inner[step]
                else f"goes from {names[labels[step - 1]]!r} to {names[labels[step]]!r}"
            )
            raise EstimateError(
                f"{called(number)}, step {step_there} {way}, which has probability 0 by topology=, initial= or "
                "transitions=. Correct the states, or allow it."
            )
        self.check_symbols(observed, distributions, names, called)

    def check_counts(self, initial: Floats, transitions: Floats, names: Sequence[Hashable]) -> None:
        """Raise where first states (K,) or transitions (K, K) of a summary are some that the structure forbids."""
        wrong = np.argwhere(np.vstack([initial * ~self.first, transitions * ~self.pairs]))
        if len(wrong):
            row, after = wrong[0].tolist()
            way = (
                f"begins in state {names[after]!r}" if row == 0 else f"goes from {names[row - 1]!r} to {names[after]!r}"
            )
            raise EstimateError(
                f"A sequence of the summary {way}, which has probability 0 by topology=, initial= or transitions=. "
                "Correct the states, or allow it."
            )

    def check_symbols(
        self, observed: Observed, distributions: Emission, names: Sequence[Hashable], called: Callable[[int], str]
    ) -> None:
        """Raise where known states emit a symbol that the emissions forbid."""
        labels = observed.labels
        if self.emission is None or labels is None:
            return
        for begin in range(0, len(labels), 1 << 18):
            some = slice(begin, begin + (1 << 18))
            codes = labels[some]
            logs = distributions.log_densities(tuple(part[some] for part in observed.values), self.emission)
            wrong = (codes >= 0) & (logs[np.arange(len(codes)), codes] == -np.inf)
            if wrong.any():
                step = begin + int(np.argmax(wrong))
                number, step_there = observed.where(step)
                raise EstimateError(
                    f"{called(number)}, step {step_there} is in state {names[labels[step]]!r}, whose distribution in "
                    "emissions= gives its observation probability 0. Correct the states, or allow it."
                )


def _check_lasting(transitions: Floats | None, pairs: NDArray[np.bool_], lasting: NDArray[np.bool_]) -> None:
    """Raise where a state of explicit durations stays by its transitions too, or has nowhere to go."""
    for state in np.flatnonzero(lasting).tolist():
        if transitions is not None and transitions[state, state] > 0:
            raise OptionError(
                f"transitions[{state}, {state}] is {transitions[state, state]:g}; expected 0: durations= says how long "
                "that state lasts, and a segment of it is followed by another state."
            )
        if not np.delete(pairs[state], state).any():
            raise OptionError(
                f"State number {state} has explicit durations and no other state to go to, by topology= or "
                "transitions=. Leave it out of a dict durations=, or allow a transition."
            )


def read_rows(given: Any, shape: tuple[int, ...], name: str) -> Floats | None:
    """Rows of probabilities of the given shape, or None."""
    if given is None:
        return None
    values = getattr(given, "values", given)
    try:
        rows = np.array(doubles(values))
    except (TypeError, ValueError):
        raise OptionError(f"{name} is {shortened(given)}; expected probabilities of shape {shape}.") from None
    if rows.shape != shape:
        raise OptionError(f"{name} has shape {rows.shape}; expected {shape}, one entry for each state.")
    total = np.minimum(rows, 2.0).sum(axis=-1, keepdims=True)
    if not np.isfinite(rows).all() or (rows < 0).any() or np.abs(total - 1).max() > 1e-6:
        bad = ~np.isfinite(rows).all(axis=-1) | (rows < 0).any(axis=-1) | (np.abs(total[..., 0] - 1) > 1e-6)
        row = np.atleast_2d(rows)[int(np.argmax(bad))]
        raise OptionError(f"{name} holds the row {row.tolist()}; expected numbers of at least 0 that add up to 1.")
    return np.where(np.abs(total - 1) > shape[-1] * np.finfo(np.float64).eps, rows / total, rows)


def allowed_cells(
    topology: str | None, initial: Floats | None, transitions: Floats | None, size: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which first states (K,) and transitions (K, K) may happen: zeros of start values are kept."""
    choice(topology, "topology", TOPOLOGIES)
    first = np.ones(size, bool) if initial is None else initial > 0
    pairs = np.ones((size, size), bool) if transitions is None else transitions > 0
    if topology is None:
        return first, pairs
    away = np.arange(size)[None, :] - np.arange(size)[:, None]
    forward = away >= 0 if topology == "left-right" else (away == 0) | (away == 1)
    if transitions is None:
        pairs = forward
    elif (pairs & ~forward).any():
        raise OptionError(f"transitions has a cell above 0 that topology={topology!r} forbids.")
    return (np.arange(size) == 0 if initial is None else first), pairs


def read_fixed(fixed: Any) -> frozenset[str]:
    """The names of the parts that are not learned."""
    names = () if fixed is None else listed_names(fixed, "fixed")
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise OptionError(f"fixed names {listing(unknown)}; expected some of {listing(PARTS)}.")
    return frozenset(map(str, names))


def read_tied(tied: Any, states: Sequence[Hashable]) -> tuple[tuple[int, ...], ...]:
    """Groups of states that share one emission, as numbers."""
    if tied is None:
        return ()
    if not isinstance(tied, list | tuple):
        raise OptionError(f"tied is {shortened(tied)}; expected groups of states such as [('a', 'b')].")
    groups: list[tuple[int, ...]] = []
    seen: set[int] = set()
    places = {state: code for code, state in enumerate(states)}
    for group in tied:
        listed_names(group, "tied")
        if not isinstance(group, list | tuple | set):
            raise OptionError(f"tied has the group {shortened(group)}; expected a list of two states or more.")
        unknown = [state for state in group if state not in places]
        if unknown:
            raise OptionError(f"tied names {listing(unknown)}; the states are {listing(states)}.")
        numbers = tuple(places[state] for state in group)
        if len(set(numbers)) < 2 or seen & set(numbers) or len(set(numbers)) != len(numbers):
            raise OptionError(f"tied has the group {group!r}; expected two states or more, each in one group only.")
        seen |= set(numbers)
        groups.append(numbers)
    return tuple(groups)
