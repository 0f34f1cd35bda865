"""How a command asks a model: one way for each kind, with the same verbs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

import numpy as np

from suffice.cli.application import rows
from suffice.errors import OptionError

#: Columns of an answer by name.
Columns = dict[Any, Any]


@dataclass(frozen=True)
class Form:
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
    further: Mapping[str, Any] = field(default_factory=dict)

    def check(self, who: str, *taken: str) -> None:
        """Refuse an option that was given and means nothing here."""
        for entry in fields(self):
            default = entry.default if entry.default is not MISSING else {}
            if entry.name not in taken and getattr(self, entry.name) != default:
                raise OptionError(f"{who} takes no {_FLAGS.get(entry.name, f'--{entry.name}')} here.")


_FLAGS = {"columns": "--column", "data": "rows", "further": "--option"}


def call(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """The answer; an option that the question does not have is a mistake of the user."""
    known = inspect.signature(function).parameters
    unknown = [name for name in options if name not in known]
    if unknown:
        free = [name for name, p in known.items() if p.kind is p.KEYWORD_ONLY]
        raise OptionError(f"{function.__name__} has no option {unknown[0]!r}; it has {', '.join(free) or 'none'}.")
    return function(*arguments, **options)


class Way:
    """The questions that any fitted object takes; kinds of models say more."""

    def __init__(self, model: Any) -> None:
        """Ask this model."""
        self.model = model

    @property
    def who(self) -> str:
        """The model in a sentence."""
        return f"A {type(self.model).__name__}"

    def score(self, data: Sequence[str], form: Form) -> dict[str, float]:
        """Mean log-likelihood and, where the kind has them, further figures."""
        form.check(self.who, "weight", "columns")
        if not hasattr(self.model, "score"):
            raise OptionError(f"{self.who} has no likelihood; score takes a fitted model.")
        named = {"columns": list(form.columns)} if form.columns else {}
        with rows(data) as found:
            return {"score": float(self.model.score(found, form.weight, **named))}

    def predict(self, data: Sequence[str], form: Form) -> Columns:
        """Predicted columns of all rows."""
        raise OptionError(f"{self.who} predicts nothing from other columns.")

    def sample(self, n: int, form: Form) -> Columns:
        """`n` rows drawn from the model."""
        form.check(self.who, "seed")
        if not hasattr(self.model, "sample"):
            raise OptionError(f"{self.who} cannot be sampled from.")
        found = np.asarray(self.model.sample(n, random_state=form.seed))
        names = getattr(self.model, "columns_", None)
        if found.ndim == 1:
            return {"x" if not names else names[0]: found}
        return {name: found[:, at] for at, name in enumerate(names or range(found.shape[1]))}

    def table(self, name: str) -> Any:
        """A table of parameters."""
        raise OptionError(f"{self.who} has no tables.")

    def structure(self, *, for_programs: bool = False) -> dict[str, Any]:
        """What the model is about, in a few words, or whole for programs."""
        return {}

    def figures(self) -> Any:
        """The parameters for programs."""
        return dict(getattr(self.model, "parameters_", None) or {})

    def parameters(self) -> str:
        """The parameters in a few lines."""
        found = getattr(self.model, "parameters_", None)
        return "" if found is None else "\n".join(f"{name} = {value}" for name, value in found.items())
