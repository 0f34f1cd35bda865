"""Observed sequences as chains of segments, and the segments of known states."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from suffice.array_types import Floats
from suffice.engines.segment_chains import SegmentChains
from suffice.errors import EstimateError
from suffice.models.hidden_markov.chains import Observed
from suffice.models.hidden_markov.durations.distributions import Duration, Staying
from suffice.models.hidden_markov.emissions.contract import Emission
from suffice.models.hidden_markov.parameters import ChainParameters, SegmentCounts


def tables_of(durations: Sequence[Duration], most: int) -> tuple[Floats, Floats]:
    """Log-probabilities (D, K) of lasting d + 1 steps, and as long or longer; -inf beyond what a state may last."""
    pairs = [duration.logs(most) for duration in durations]
    longest = max(len(lasts) for lasts, _ in pairs)
    lasts, stays = np.full((2, longest, len(pairs)), -np.inf)
    for state, (ending, reaching) in enumerate(pairs):
        lasts[: len(ending), state], stays[: len(ending), state] = ending, reaching
    return lasts, stays


def segment_chains(
    observed: Observed, emission: Emission, parameters: ChainParameters, *, more: int = 0, calls: int | None = None
) -> SegmentChains:
    """The sequences as chains of segments; `more` steps may follow them."""
    scores = np.array(emission.log_densities(observed.values, parameters.emission))
    if observed.labels is not None:
        known = observed.labels >= 0
        scores[known[:, None] & (np.arange(scores.shape[1]) != observed.labels[:, None])] = -np.inf
    longest = int(observed.lengths.max(initial=0)) + more
    with np.errstate(divide="ignore"):
        first, moves = np.log(parameters.initial), np.log(parameters.transitions)
    lasts, stays = tables_of(parameters.durations, max(longest, 1))
    return SegmentChains(scores, observed.offsets, first, moves, lasts, stays, calls)


def known_segments(observed: Observed, staying: Sequence[bool]) -> SegmentCounts:
    """The segments of sequences whose states are all known; those of states that stay are single steps."""
    labels = observed.labels
    assert labels is not None
    size, steps = len(staying), np.arange(len(labels))
    begins = np.ones(len(labels), bool)
    begins[1:] = (labels[1:] != labels[:-1]) | np.asarray(staying)[labels[1:]]
    begins[observed.offsets[:-1]] = True
    first = np.flatnonzero(begins)
    lengths = np.diff(np.append(first, len(labels)))
    last = np.isin(first + lengths, observed.offsets[1:])
    counts = np.zeros((2, int(lengths.max(initial=0)), size))
    weights = observed.step_weights[steps[first]]
    np.add.at(counts, (last.astype(int), lengths - 1, labels[first]), weights)
    return SegmentCounts(counts[0], counts[1])


def check_segments(
    observed: Observed,
    durations: Sequence[Duration],
    names: Sequence[Hashable],
    called: Callable[[int], str],
) -> None:
    """Raise where a known state lasts longer than it can."""
    labels = observed.labels
    if labels is None:
        return
    changes = np.ones(len(labels), bool)
    changes[1:] = labels[1:] != labels[:-1]
    changes[observed.offsets[:-1]] = True
    first = np.flatnonzero(changes)
    lengths = np.diff(np.append(first, len(labels)))
    longest = int(lengths.max(initial=1))
    for state, duration in enumerate(durations):
        if isinstance(duration, Staying):
            continue
        some = first[labels[first] == state]
        steps = lengths[labels[first] == state]
        most = len(duration.logs(longest)[0])
        if len(steps) and steps.max() > most:
            number, step = observed.where(int(some[np.argmax(steps)]))
            raise EstimateError(
                f"{called(number)} is in state {names[state]!r} for {int(steps.max())} steps from step {step} on; by "
                f"durations= it lasts {most} at most. Correct the states, or allow longer durations."
            )
