"""What a fit is made of, in four nouns: the one module to read before a model is written.

A **task** is what a model declares, made from its options. It reads what a user gives into data of its own, and sets a
**problem**: data meet parameters. A problem is solved, which gives a **fitted** value, and judged at that value by code
that no solver touches. The driver (`fitting.driver`) puts the four together and writes the receipt; the estimator
(`fitting.estimator`) is the face that users of scikit-learn know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

if TYPE_CHECKING:
    from suffice.array_types import Floats
    from suffice.fitting.control import Control, Outcome
    from suffice.fitting.portrait import Portrait
    from suffice.fitting.report import Certificate, MatchedStatistics

#: Why rows are read: to be learned, to join those learned or to leave them, or to be compared with the model.
Purpose = Literal["fit", "join", "compare"]


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a user gives to a fit: `data`, and by name whatever else the model reads (`y`, `sample_weight`, ...)."""

    data: Any
    more: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        """What was given under a name; None where nothing was."""
        return self.more.get(name)


class Data(Protocol):
    """What a task has read: its rows (or sequences, or examples), their weight, and the passes over them.

    Data that keep no statistics may have `marks()`, which tell their rows from others (`suffice.fitting.row_marks`).
    """

    @property
    def rows(self) -> int:
        """How many there are."""

    @property
    def weight(self) -> float:
        """The sum of their weights."""

    @property
    def passes(self) -> int:
        """How often they were read; 0 for a summary."""


class Fitted(Protocol):
    """A value: parameters and names. It holds no data, no options, and no caches that change answers."""

    @property
    def title(self) -> str:
        """What it is, in the first line of the receipt."""

    @property
    def n_params(self) -> int:
        """Free parameters: a rank, never a count of weights."""

    @property
    def score_samples(self) -> Callable[..., Floats]:
        """The log-likelihood of each row (or sequence, or example), given as users of the model give them."""

    def portrait(self) -> Portrait:
        """What there is to see of it: pages, plots, notebooks and the command read nothing else."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for files."""


F = TypeVar("F", bound=Fitted)
D = TypeVar("D", bound=Data)


@dataclass(frozen=True, eq=False)
class Found(Generic[F]):
    """What a solver has found, and how.

    `outcome` is None for a closed form; `partly` says that some part of it has none and was iterated. `estimate` is one
    of "maximum likelihood", "MAP" and "posterior mean", or names what else was aimed at. `notes` are for the receipt.
    With `later` it is judged when someone first looks. `passes` are those over the data, where solving goes over them
    again; None where reading was all.
    """

    fitted: F
    method: str
    estimate: str
    outcome: Outcome | None = None
    notes: tuple[str, ...] = ()
    plan: str | None = None
    parameterisation: str | None = None
    later: bool = False
    passes: int | None = None
    partly: bool = False


@dataclass(frozen=True, eq=False)
class Judgement:
    """What was measured at a fitted value.

    `log_likelihood` and `objective` are sums in nats. `gap` is the distance from stationarity in the unit of the
    solver's tolerance, where the certificate's own gap has another one, and `slope` the norm of the gradient in a unit
    of the model's. `matched` gives both sides of what the fit makes equal, worked out when someone asks; `kept` is
    what a model keeps of the measurement in a form of its own. `n_params` counts the free parameters that the rows
    determine, where these are fewer than those of the fitted value. `verdict` is why the fit cannot be called converged
    whatever its solver says; empty where nothing speaks against it. `unreliable` is why the chains that measured it are
    not to be relied on: a warning of its own where the verdict is none, because the solver has stopped before. `marks`
    tell the rows from others, where their data do not.
    """

    log_likelihood: float
    objective: float
    certificate: Certificate
    gap: float | None = None
    slope: float | None = None
    matched: Callable[[], MatchedStatistics | None] | None = None
    kept: Any = None
    log_evidence: float | None = None
    empirical_entropy: float | None = None
    n_params: int | None = None
    verdict: str = ""
    unreliable: str = ""
    notes: tuple[str, ...] = ()
    marks: Mapping[str, Any] = field(default_factory=dict)


class Problem(Protocol[F]):
    """Data meet parameters."""

    def solve(self, control: Control) -> Found[F]:
        """Find parameters."""

    def judge(self, fitted: F) -> Judgement:
        """Measure a fitted value anew. Nothing that `solve` has computed enters."""

    def identity(self) -> Iterable[Any]:
        """What tells this problem from others: the data, the start, the options that steer the way."""


class Task(Protocol[D, F]):
    """What a model declares, made from its options; frozen."""

    def read(self, given: Inputs, known: F | None, purpose: Purpose) -> D:
        """Read what was given, under the names of a fitted value where one is known."""

    def problem(self, data: D, start: F | None) -> Problem[F]:
        """The problem of these data, from a start where one is given."""
