"""Hidden Markov models from the command line: rows of a table, sequences told apart by a column."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import suffice as sf
from suffice.cli.application import rows
from suffice.cli.building import CommandOptions, counts_prior, made
from suffice.cli.commands import Columns, ModelCommands, ReadingOptions, call
from suffice.cli.texts import columns_in_memory
from suffice.domain import Domain
from suffice.errors import OptionError
from suffice.families.registry import family_named
from suffice.sources.sequence_tables import step_order


def _read(files: Sequence[str], reading: ReadingOptions) -> tuple[Domain, dict[Hashable, NDArray[Any]], list[Hashable]]:
    """What the columns hold, the columns, and the names of those that are observed."""
    beside = [name for name in (reading.group, reading.order, reading.label) if name is not None]
    with rows(files) as opened:
        if isinstance(opened, sf.Summary):
            raise OptionError("A hidden Markov model needs sequences; a summary does not keep them.")
        domain, table = columns_in_memory(opened, [*beside, *reading.columns] if reading.columns else None)
    return domain, table, [name for name in table if name not in beside]


def _emission(given: object, domain: Domain, names: Sequence[Hashable]) -> Any:
    """The distribution of what is seen: as said, by the name of its family, or by the columns."""
    if isinstance(given, str):
        return family_named(given)()
    if isinstance(given, dict):
        return {name: family_named(str(text))() for name, text in given.items()}
    if isinstance(given, list):
        return [family_named(str(text))() for text in given]
    kinds = [domain[name].kind for name in names]
    if len(names) > 1 and all(kind != "discrete" for kind in kinds):
        return sf.MultivariateNormal()
    distributions: list[Any] = [sf.Categorical() if kind == "discrete" else sf.Normal() for kind in kinds]
    return distributions[0] if len(distributions) == 1 else distributions


class HiddenChainCommands(ModelCommands):
    """A HiddenMarkovModel."""

    @classmethod
    def fit(cls, files: Sequence[str], chosen: CommandOptions, reading: ReadingOptions) -> sf.HiddenMarkovModel:
        """A fitted hidden Markov model."""
        chosen.check("hmm")
        reading.check("--model hmm", "group", "order", "columns", "label")
        options = chosen.options(prior=counts_prior(chosen.prior))
        if "states" not in options:
            raise OptionError(
                "Say how many hidden states there are with --option states=2, or name them in a JSON list."
            )
        domain, table, names = _read(files, reading)
        emission = _emission(options.pop("emission", None), domain, names)
        model: sf.HiddenMarkovModel = made(sf.HiddenMarkovModel, options.pop("states"), emission, **options)
        known = None
        if reading.label is not None:
            from suffice.sources.sequences import open_sequences

            known = open_sequences(table, group=reading.group, order=reading.order, columns=[reading.label])
        return model.fit(table, known, group=reading.group, order=reading.order, columns=names)

    def _opened(
        self, data: Sequence[str], reading: ReadingOptions
    ) -> tuple[dict[Hashable, NDArray[Any]], dict[str, Any]]:
        chosen = reading.columns or self.portrait.columns
        beside = [name for name in (reading.group, reading.order) if name is not None]
        with rows(data) as opened:
            if isinstance(opened, sf.Summary):
                raise OptionError("A hidden Markov model needs sequences; a summary does not keep them.")
            _, table = columns_in_memory(opened, [*beside, *chosen] if chosen else None)
        return table, {"group": reading.group, "order": reading.order, "columns": list(chosen) or None}

    def score(self, data: Sequence[str], reading: ReadingOptions) -> dict[str, float]:
        """Mean log-likelihood of a step."""
        reading.check(self.who, "group", "order", "columns")
        table, arguments = self._opened(data, reading)
        return {"score": float(self.model.score(table, **arguments))}

    def predict(self, data: Sequence[str], reading: ReadingOptions) -> Columns:
        """The most probable path of states, in the order of the rows; with `proba` the posteriors of all states."""
        reading.check(self.who, "group", "order", "columns", "proba", "further")
        table, arguments = self._opened(data, reading)
        asked = self.model.predict_proba if reading.proba else self.model.predict
        answer = call(asked, table, **arguments, **reading.further)
        steps = np.concatenate(answer) if isinstance(answer, list) else np.asarray(answer)
        ordered = np.empty_like(steps)
        ordered[step_order(table, reading.group, reading.order, len(steps))] = steps
        first = {name: table[name] for name in (reading.group, reading.order) if name is not None}
        if reading.proba:
            return first | {str(state): ordered[:, code] for code, state in enumerate(self.model.states_)}
        return first | {"state": ordered}

    def sample(self, n: int, reading: ReadingOptions) -> Columns:
        """`n` sequences with their states."""
        reading.check(self.who, "seed", "length")
        if reading.length is None:
            raise OptionError("Say how many steps each sequence is to have with --length.")
        seen, states = self.model.sample(reading.length, n, random_state=reading.seed)
        values = np.concatenate([np.asarray(part) for part in seen])
        names = list(self.portrait.columns)
        wide = values.reshape(len(values), -1)
        names = names if len(names) == wide.shape[1] else [f"x{column}" for column in range(wide.shape[1])]
        first = {"sequence": np.repeat(np.arange(n), reading.length), "state": np.concatenate(states)}
        return first | {name: wide[:, column] for column, name in enumerate(names)}
