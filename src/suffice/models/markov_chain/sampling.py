"""Sequences drawn from a fitted chain."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from suffice.array_types import Ints
from suffice.checks import draw_count, whole_number
from suffice.errors import EstimateError, OptionError
from suffice.families.base import generator
from suffice.models.markov_chain.distributions import row
from suffice.models.markov_chain.fitted import MarkovChainFitted

#: Steps after which a sample of a chain with bounds is cut.
MOST_STEPS = 1000


def sample_sequences(
    chain: MarkovChainFitted, n: int, length: int | None, history: Any, random_state: Any
) -> list[list[Hashable]]:
    """`n` sequences that go on from a history, to their end mark or for `length` steps."""
    words = chain.words
    if length is None and words.end is None:
        raise OptionError("length is None, and without bounds sequences have no end; give length=.")
    most = MOST_STEPS if length is None else length
    n, most = draw_count(n), whole_number(most, "length")
    rng = generator(random_state)
    end = None if words.end is None else int(words.places([words.end])[0])
    drawn: list[list[Hashable]] = [[] for _ in range(n)]
    past = np.tile(chain.history_codes(history), (n, 1))
    live = np.arange(n)
    for _ in range(most):
        if len(live) == 0:
            break
        word = _draw(chain, past[live], rng)
        going = np.ones(len(live), dtype=np.bool_) if end is None else word != end
        for sequence, code in zip(live[going].tolist(), word[going].tolist(), strict=True):
            drawn[sequence].append(words.states[code])
        past[live] = np.concatenate([past[live], word[:, None]], axis=1)[:, 1:]
        live = live[going]
    return drawn


def _draw(chain: MarkovChainFitted, past: Ints, rng: np.random.Generator) -> Ints:
    """One next word for each past; equal pasts share their row."""
    if past.shape[1] == 0:
        past = np.zeros((len(past), 1), np.int64)
    distinct, inverse = np.unique(past, axis=0, return_inverse=True)
    distinct = distinct[:, : chain.distribution.order]
    inverse = np.asarray(inverse).ravel()
    uniform = rng.random(len(past))
    drawn = np.empty(len(past), np.int64)
    for number, history in enumerate(distinct):
        mine = np.flatnonzero(inverse == number)
        rising = np.cumsum(row(chain.distribution, history))
        if rising[-1] <= 0:
            raise EstimateError(f"Nothing is known to follow {_named(chain, history)!r}; smooth the chain.")
        drawn[mine] = np.minimum(np.searchsorted(rising, uniform[mine] * rising[-1], side="right"), len(rising) - 1)
    return drawn


def _named(chain: MarkovChainFitted, history: Ints) -> list[Hashable]:
    words = chain.words
    return [words.start if code == words.card else words.states[code] for code in history.tolist()]
