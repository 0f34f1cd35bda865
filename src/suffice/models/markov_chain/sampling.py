"""Sequences drawn from a fitted chain."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.checks import whole_number
from suffice.errors import EstimateError, OptionError
from suffice.families.base import generator
from suffice.models.markov_chain import laws
from suffice.models.markov_chain.answers import ChainAnswers

Integers = NDArray[np.int64]

#: Steps after which a sample of a chain with bounds is cut.
MOST_STEPS = 1000


class ChainSamples(ChainAnswers):
    """Drawing from a fitted chain; mixed into `MarkovChain`."""

    def sample(
        self, n: int = 1, length: int | None = None, *, random_state: Any = None, history: Any = ()
    ) -> list[list[Hashable]]:
        """Draw `n` sequences that go on from a history, by default from the start.

        length: steps of each; with bounds a sequence ends with its end mark (which is left out), or after `length`
        steps (by default 1000).
        """
        words = self._known()
        if length is None and words.end is None:
            raise OptionError("Say how long the sequences are to be by length=; without bounds they have no end.")
        most = MOST_STEPS if length is None else length
        n, most = whole_number(n, "n", 0), whole_number(most, "length")
        rng = generator(random_state)
        end = None if words.end is None else int(words.places([words.end])[0])
        drawn: list[list[Hashable]] = [[] for _ in range(n)]
        past = np.tile(self._history(history), (n, 1))
        live = np.arange(n)
        for _ in range(most):
            if len(live) == 0:
                break
            word = self._draw(past[live], rng)
            going = np.ones(len(live), dtype=np.bool_) if end is None else word != end
            for at, code in zip(live[going].tolist(), word[going].tolist(), strict=True):
                drawn[at].append(words.states[code])
            past[live] = np.concatenate([past[live], word[:, None]], axis=1)[:, 1:]
            live = live[going]
        return drawn

    def _draw(self, past: Integers, rng: np.random.Generator) -> Integers:
        """One next word for each past; equal pasts share their row."""
        if past.shape[1] == 0:
            past = np.zeros((len(past), 1), np.int64)
        distinct, inverse = np.unique(past, axis=0, return_inverse=True)
        distinct = distinct[:, : self._law.order]
        inverse = np.asarray(inverse).ravel()
        at = rng.random(len(past))
        found = np.empty(len(past), np.int64)
        for place, history in enumerate(distinct):
            mine = np.flatnonzero(inverse == place)
            rising = np.cumsum(laws.row(self._law, history))
            if rising[-1] <= 0:
                raise EstimateError(f"Nothing is known to follow {self._named(history)!r}; smooth the chain.")
            found[mine] = np.minimum(np.searchsorted(rising, at[mine] * rising[-1], side="right"), len(rising) - 1)
        return found

    def _named(self, history: Integers) -> list[Hashable]:
        words = self._words
        return [words.start if code == words.card else words.states[code] for code in history.tolist()]
