"""Markov chains from the command line: texts, one sequence a line, or rows with a column of states."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import suffice as sf
from suffice.cli.application import are_summaries, rows, summed
from suffice.cli.building import CommandOptions, counts_prior, made
from suffice.cli.commands import Columns, ModelCommands, ReadingOptions
from suffice.cli.texts import columns_in_memory, files_of, lines_of
from suffice.errors import OptionError
from suffice.sources.sequences import open_sequences

_TABLES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")


def read_sequences(files: Sequence[str], reading: ReadingOptions, tokens: object) -> tuple[Any, dict[str, Any]]:
    """Sequences and how they are told apart: a summary, a table in memory, the path of a text, or lines of several."""
    if are_summaries(files):
        return summed(files), {}
    if reading.group or reading.order or reading.columns or any(name.lower().endswith(_TABLES) for name in files):
        beside = [name for name in (reading.group, reading.order, reading.weight) if name]
        names = [*beside, *reading.columns]
        with rows(files) as opened:
            _, table = columns_in_memory(opened, names if reading.columns else None)
        return table, {"group": reading.group, "order": reading.order, "columns": list(reading.columns) or None}
    paths = files_of(files)
    if len(paths) == 1 and paths[0] != "-":
        return Path(paths[0]), {}
    split = list if tokens == "characters" else str.split
    return [list(split(line)) for _, _, line in lines_of(paths) if line.strip()], {}


class ChainCommands(ModelCommands):
    """A MarkovChain."""

    @classmethod
    def fit(cls, files: Sequence[str], chosen: CommandOptions, reading: ReadingOptions) -> sf.MarkovChain:
        """A fitted chain."""
        chosen.check("chain")
        reading.check("--model chain", "weight", "group", "order", "columns")
        options = chosen.options(prior=counts_prior(chosen.prior))
        model: sf.MarkovChain = made(sf.MarkovChain, **options)
        data, arguments = read_sequences(files, reading, model.get_params(deep=False)["tokens"])
        return model.fit(data, sample_weight=reading.weight, **arguments)

    @classmethod
    def summarize(cls, files: Sequence[str], chosen: CommandOptions, reading: ReadingOptions) -> sf.Summary:
        """The counts that a chain of this order learns from."""
        chosen.check("chain")
        reading.check("--model chain", "weight", "group", "order", "columns", "minimum_count")
        model: sf.MarkovChain = made(sf.MarkovChain, **chosen.options())
        data, arguments = read_sequences(files, reading, model.get_params(deep=False)["tokens"])
        opened = open_sequences(data, **arguments) if arguments else data
        return sf.summarize(model, opened, sample_weight=reading.weight, minimum_count=reading.minimum_count)

    @property
    def _tokens(self) -> Any:
        return self.model.get_params(deep=False)["tokens"]

    def score(self, data: Sequence[str], reading: ReadingOptions) -> dict[str, float]:
        """Mean log-likelihood of a step, and the perplexity."""
        reading.check(self.who, "weight", "group", "order", "columns")
        sequences, arguments = read_sequences(data, reading, self._tokens)
        score = float(self.model.score(sequences, sample_weight=reading.weight, **arguments))
        return {
            "score": score,
            "perplexity": float(self.model.perplexity(sequences, sample_weight=reading.weight, **arguments)),
        }

    def predict(self, data: Sequence[str], reading: ReadingOptions) -> Columns:
        """What most probably follows each sequence, and how probable it is; with `proba` the whole row."""
        reading.check(self.who, "group", "order", "columns", "proba")
        tails = [path[-self.model.order :] for path in self._paths(data, reading)]
        distributions = [self.model.row(tail) for tail in tails]
        if not distributions:
            return {"next": [], "probability": []}
        (name,) = distributions[0].variables
        states, shares = (
            distributions[0].states[name],
            np.array([distribution.values for distribution in distributions]),
        )
        if reading.proba:
            return {str(state): shares[:, code] for code, state in enumerate(states)}
        best = shares.argmax(axis=1)
        return {"next": [states[code] for code in best], "probability": shares[np.arange(len(best)), best]}

    def _paths(self, data: Sequence[str], reading: ReadingOptions) -> list[list[Hashable]]:
        if reading.group or reading.order or reading.columns or any(name.lower().endswith(_TABLES) for name in data):
            table, arguments = read_sequences(data, reading, self._tokens)
            sequences = open_sequences(table, **arguments).single()
            return [list(sequences[number]) for number in range(len(sequences))]
        split = list if self._tokens == "characters" else str.split
        return [list(split(line)) for _, _, line in lines_of(data) if line.strip()]

    def sample(self, n: int, reading: ReadingOptions) -> Columns:
        """`n` sequences, step by step."""
        reading.check(self.who, "seed", "length")
        if reading.length is None and not self.model.get_params(deep=False)["bounds"]:
            raise OptionError("Say how many steps each sequence is to have with --length; the chain has no ends.")
        drawn = self.model.sample(n, reading.length, random_state=reading.seed)
        numbers = [number for number, path in enumerate(drawn) for _ in path]
        return {"sequence": numbers, "state": [state for path in drawn for state in path]}
