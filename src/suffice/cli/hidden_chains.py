"""Hidden Markov models from the command line: rows of a table, sequences told apart by a column."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import suffice as sf
from suffice.cli.application import rows
from suffice.cli.building import Wish, counts_prior, made
from suffice.cli.commands import Columns, Form, ModelCommands, call
from suffice.cli.texts import columns_in_memory
from suffice.domain import Domain
from suffice.errors import OptionError
from suffice.sources.sequence_tables import step_order

#: Other names of distributions.
_ALSO = {"gaussian": "normal", "multivariategaussian": "multivariatenormal"}


def _read(files: Sequence[str], form: Form) -> tuple[Domain, dict[Hashable, NDArray[Any]], list[Hashable]]:
    """What the columns hold, the columns, and the names of those that are observed."""
    beside = [name for name in (form.group, form.order, form.label) if name is not None]
    with rows(files) as opened:
        if isinstance(opened, sf.Summary):
            raise OptionError("A hidden Markov model needs sequences; a summary does not keep them.")
        domain, table = columns_in_memory(opened, [*beside, *form.columns] if form.columns else None)
    return domain, table, [name for name in table if name not in beside]


def _emission(given: Any, domain: Domain, names: Sequence[Hashable]) -> Any:
    """The law of what is seen: as said, or by the columns."""
    if isinstance(given, str):
        return _law(given)
    if isinstance(given, dict):
        return {name: _law(text) for name, text in given.items()}
    if isinstance(given, list):
        return [_law(text) for text in given]
    kinds = [domain[name].kind for name in names]
    if len(names) > 1 and all(kind != "discrete" for kind in kinds):
        return sf.MultivariateNormal()
    laws: list[Any] = [sf.Categorical() if kind == "discrete" else sf.Normal() for kind in kinds]
    return laws[0] if len(laws) == 1 else laws


def _law(text: Any) -> Any:
    known = (
        *(sf.Categorical, sf.Bernoulli, sf.Normal, sf.MultivariateNormal, sf.Poisson, sf.Exponential, sf.Gamma),
        *(sf.Geometric, sf.NegativeBinomial, sf.Beta, sf.InverseGamma),
    )
    by_name: dict[str, Any] = {law.__name__.lower(): law for law in known}
    name = str(text).lower().replace("_", "").replace("-", "")
    distribution = by_name.get(_ALSO.get(name, name))
    if distribution is None:
        raise OptionError(f"emission {text!r} is no law; expected one of {', '.join(law.__name__ for law in known)}.")
    return distribution()


class HiddenChainCommands(ModelCommands):
    """A HiddenMarkovModel."""

    @classmethod
    def fit(cls, files: Sequence[str], wish: Wish, form: Form) -> sf.HiddenMarkovModel:
        """A fitted hidden Markov model."""
        wish.check("hmm")
        form.check("--model hmm", "group", "order", "columns", "label")
        options = wish.options(prior=counts_prior(wish.prior))
        if "states" not in options:
            raise OptionError(
                "Say how many hidden states there are with --option states=2, or name them in a JSON list."
            )
        domain, table, names = _read(files, form)
        emission = _emission(options.pop("emission", None), domain, names)
        model: sf.HiddenMarkovModel = made(sf.HiddenMarkovModel, options.pop("states"), emission, **options)
        known = None
        if form.label is not None:
            from suffice.sources.sequences import open_sequences

            known = open_sequences(table, group=form.group, order=form.order, columns=[form.label])
        return model.fit(table, known, group=form.group, order=form.order, columns=names)

    def _opened(self, data: Sequence[str], form: Form) -> tuple[dict[Hashable, NDArray[Any]], dict[str, Any]]:
        chosen = form.columns or self.portrait.columns
        beside = [name for name in (form.group, form.order) if name is not None]
        with rows(data) as opened:
            if isinstance(opened, sf.Summary):
                raise OptionError("A hidden Markov model needs sequences; a summary does not keep them.")
            _, table = columns_in_memory(opened, [*beside, *chosen] if chosen else None)
        return table, {"group": form.group, "order": form.order, "columns": list(chosen) or None}

    def score(self, data: Sequence[str], form: Form) -> dict[str, float]:
        """Mean log-likelihood of a step."""
        form.check(self.who, "group", "order", "columns")
        table, form_of = self._opened(data, form)
        return {"score": float(self.model.score(table, **form_of))}

    def predict(self, data: Sequence[str], form: Form) -> Columns:
        """The most probable path of states, in the order of the rows; with `proba` the posteriors of all states."""
        form.check(self.who, "group", "order", "columns", "proba", "further")
        table, form_of = self._opened(data, form)
        asked = self.model.predict_proba if form.proba else self.model.predict
        answer = call(asked, table, **form_of, **form.further)
        steps = np.concatenate(answer) if isinstance(answer, list) else np.asarray(answer)
        ordered = np.empty_like(steps)
        ordered[step_order(table, form.group, form.order, len(steps))] = steps
        first = {name: table[name] for name in (form.group, form.order) if name is not None}
        if form.proba:
            return first | {str(state): ordered[:, code] for code, state in enumerate(self.model.states_)}
        return first | {"state": ordered}

    def sample(self, n: int, form: Form) -> Columns:
        """`n` sequences with their states."""
        form.check(self.who, "seed", "length")
        if form.length is None:
            raise OptionError("Say how many steps each sequence is to have with --length.")
        seen, states = self.model.sample(form.length, n, random_state=form.seed)
        values = np.concatenate([np.asarray(part) for part in seen])
        names = list(self.portrait.columns)
        wide = values.reshape(len(values), -1)
        names = names if len(names) == wide.shape[1] else [f"x{column}" for column in range(wide.shape[1])]
        first = {"sequence": np.repeat(np.arange(n), form.length), "state": np.concatenate(states)}
        return first | {name: wide[:, column] for column, name in enumerate(names)}
