"""How a command learns and asks models: one set of commands for each kind, with the same verbs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.calls import meant_argument
from suffice.cli.application import rows
from suffice.errors import OptionError
from suffice.fitting.estimator import Estimator
from suffice.fitting.portrait import Portrait

if TYPE_CHECKING:
    from suffice.cli.building import CommandOptions

#: Columns of an answer by name.
Columns = dict[Any, Any]


@dataclass(frozen=True)
class ReadingOptions:
    """What the options of a command say about rows and answers; what was not said is empty."""

    weight: str | None = None
    response: str | None = None
    group: str | None = None
    order: str | None = None
    columns: tuple[str, ...] = ()
    label: str | None = None
    target: str | None = None
    proba: bool = False
    given: tuple[str, ...] = ()
    seed: int | None = None
    length: int | None = None
    data: tuple[str, ...] = ()
    minimum_count: int | None = None
    further: Mapping[str, Any] = field(default_factory=dict)

    def check(self, who: str, *taken: str) -> None:
        """Refuse an option that was given and means nothing here."""
        for entry in fields(self):
            default = entry.default if entry.default is not MISSING else {}
            if entry.name not in taken and vars(self)[entry.name] != default:
                flag, value = _FLAGS.get(entry.name, f"--{entry.name}"), vars(self)[entry.name]
                raise OptionError(f"{who} takes no {flag} here.{_meant_number(value)}")


def _meant_number(value: object) -> str:
    """For a message: a number that stands where rows do is how many are asked for."""
    return f" Give their number by -n {value[0]}." if isinstance(value, tuple) and value and value[0].isdigit() else ""


_FLAGS = {"columns": "--column", "minimum_count": "--minimum-count", "data": "rows", "further": "--option"}


def call(function: Callable[..., Any], *arguments: object, **options: object) -> Any:
    """The answer; an option that the question does not have is a mistake of the user."""
    known = inspect.signature(function).parameters
    unknown = [name for name in options if name not in known]
    if unknown:
        free = [name for name, p in known.items() if p.kind is p.KEYWORD_ONLY]
        raise OptionError(
            f"{function.__name__} has no option {unknown[0]!r}; it has {', '.join(free) or 'none'}."
            f"{meant_argument(unknown[0], free)}"
        )
    return function(*arguments, **options)


class ModelCommands:
    """The verbs of the command for one kind of model; those that a kind does not have are refused in a sentence."""

    def __init__(self, model: Any, portrait: Portrait) -> None:
        """Ask this model."""
        self.model, self.portrait = model, portrait

    @property
    def who(self) -> str:
        """The model in a sentence."""
        return f"A {self.portrait.title}"

    # -- learning ----------------------------------------------------------------------------------------------------

    @classmethod
    def fit(cls, files: Sequence[str], chosen: CommandOptions, reading: ReadingOptions) -> Any:
        """A fitted model."""
        raise OptionError(f"--model {chosen.kind} cannot be fitted from the command line.")

    @classmethod
    def summarize(cls, files: Sequence[str], chosen: CommandOptions, reading: ReadingOptions) -> Any:
        """The statistics that a fit needs."""
        raise OptionError(
            f"--model {chosen.kind!r}: a summary holds counts and sums; expected bayes, markov, gaussian or chain."
        )

    # -- asking ------------------------------------------------------------------------------------------------------

    def query(self, variables: Sequence[str], given: Sequence[str]) -> Any:
        """P(variables | given)."""
        raise OptionError(f"{self.who} has no variables to ask about; this needs a network or a graph.")

    def score(self, data: Sequence[str], reading: ReadingOptions) -> dict[str, float]:
        """Mean log-likelihood and, where the kind has them, further figures."""
        raise OptionError(f"{self.who} has no likelihood of rows; score takes a fitted model.")

    def predict(self, data: Sequence[str], reading: ReadingOptions) -> Columns:
        """Predicted columns of all rows."""
        raise OptionError(f"{self.who} predicts nothing from other columns.")

    def sample(self, n: int, reading: ReadingOptions) -> Columns:
        """`n` rows drawn from the model."""
        raise OptionError(f"{self.who} cannot be sampled from.")

    def table(self, name: str) -> Any:
        """A table of parameters."""
        if self.portrait.table is None:
            raise OptionError(f"{self.who} has no tables.")
        return self.portrait.table(name)


class ByRows(ModelCommands):
    """A model of single rows, which says how probable they are."""

    def score(self, data: Sequence[str], reading: ReadingOptions) -> dict[str, float]:
        """Mean log-likelihood of a row."""
        reading.check(self.who, "weight", "columns")
        named = {"columns": list(reading.columns)} if reading.columns else {}
        with rows(data) as opened:
            return {"score": float(self.model.score(opened, sample_weight=reading.weight, **named))}


class DistributionCommands(ByRows):
    """A distribution of one column or of several."""

    def sample(self, n: int, reading: ReadingOptions) -> Columns:
        """`n` rows drawn from the distribution."""
        reading.check(self.who, "seed")
        drawn = np.asarray(self.model.sample(n, random_state=reading.seed))
        names = self.portrait.columns
        if drawn.ndim == 1:
            return {names[0] if names else "x": drawn}
        return {name: drawn[:, column] for column, name in enumerate(names or range(drawn.shape[1]))}


def seen(content: object) -> Portrait:
    """What there is to see of what a file holds; of what is no model, its name."""
    return content.portrait() if isinstance(content, Estimator) else Portrait(type(content).__name__)
