"""What the audit writes down of one random problem: what the library claimed, and what an oracle found.

An oracle shares no code with the library: it lists every state, runs a generic optimiser, a linear programme or its own
recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Value:
    """The distance of a fit from its optimum: `truth` by an oracle, `claimed` by the certificate, in nats per row.

    `bound` says whether the certificate calls its number proven. `rounding` is what float64 cannot tell from 0 in the
    objective of a row; a bound that is exceeded by less is kept. `converged` is what the fit says of itself.
    """

    model: str
    truth: float
    claimed: float | None
    bound: bool
    converged: bool
    rounding: float = 1e-12

    @property
    def violated(self) -> bool:
        """Whether a number that was called proven is too small."""
        return self.bound and self.claimed is not None and self.truth > self.claimed + self.rounding


@dataclass(frozen=True)
class Existence:
    """Whether a maximum is attained: `truth` by an oracle; `said` is the certificate's, or "refused" by an error."""

    model: str
    truth: bool
    said: bool | str | None

    @property
    def wrong(self) -> bool:
        """Whether the verdict is the opposite of the truth; to refuse a fit is to say that there is no maximum."""
        return self.said is not None and (self.said is True) is not self.truth


@dataclass(frozen=True)
class Coverage:
    """How many of `intervals` of a nominal `level` held the parameters that rows were drawn from."""

    model: str
    covered: int
    intervals: int
    level: float = 0.95


@dataclass(frozen=True)
class Sampled:
    """An answer by sampling: how many of its own standard errors it is from the exact one; `warned` of it or not."""

    model: str
    z: float
    warned: bool = False

    @property
    def wrong(self) -> bool:
        """Whether it is further off than chance allows once in 10^8 answers, and does not say so."""
        return not self.warned and not abs(self.z) <= FAR


#: Standard errors that an answer may be off: those of a few effective samples have tails heavier than a normal law's.
FAR = 6.0


Record = Value | Existence | Coverage | Sampled
#: Draws one random problem, fits it, asks the oracle, and yields what was found.
Problem = Callable[[np.random.Generator], Iterator[Record]]
