"""Markov chains from the command line: texts, one sequence a line, or rows with a column of states."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import suffice as sf
from suffice.cli.application import are_summaries, rows, summed
from suffice.cli.building import Wish, counts_prior, made
from suffice.cli.commands import Columns, Form, ModelCommands
from suffice.cli.texts import columns_in_memory, files_of, lines_of
from suffice.errors import OptionError
from suffice.sources.sequences import open_sequences

_TABLES = (".csv", ".csv.gz", ".parquet")


def read_sequences(files: Sequence[str], form: Form, tokens: Any) -> tuple[Any, dict[str, Any]]:
    """Sequences and how they are told apart: a summary, a table in memory, the path of a text, or lines of several."""
    if are_summaries(files):
        return summed(files), {}
    if form.group or form.order or form.columns or any(name.lower().endswith(_TABLES) for name in files):
        beside = [name for name in (form.group, form.order, form.weight) if name]
        names = [*beside, *form.columns]
        with rows(files) as opened:
            _, table = columns_in_memory(opened, names if form.columns else None)
        return table, {"group": form.group, "order": form.order, "columns": list(form.columns) or None}
    paths = files_of(files)
    if len(paths) == 1 and paths[0] != "-":
        return Path(paths[0]), {}
    split = list if tokens == "characters" else str.split
    return [list(split(line)) for _, _, line in lines_of(paths) if line.strip()], {}


class ChainCommands(ModelCommands):
    """A MarkovChain."""

    @classmethod
    def fit(cls, files: Sequence[str], wish: Wish, form: Form) -> sf.MarkovChain:
        """A fitted chain."""
        wish.check("chain")
        form.check("--model chain", "weight", "group", "order", "columns")
        options = wish.options(prior=counts_prior(wish.prior))
        model: sf.MarkovChain = made(sf.MarkovChain, **options)
        data, form_of = read_sequences(files, form, model.get_params(deep=False)["tokens"])
        return model.fit(data, form.weight, **form_of)

    @classmethod
    def summarize(cls, files: Sequence[str], wish: Wish, form: Form) -> sf.Summary:
        """The counts that a chain of this order learns from."""
        wish.check("chain")
        form.check("--model chain", "weight", "group", "order", "columns")
        model: sf.MarkovChain = made(sf.MarkovChain, **wish.options())
        data, form_of = read_sequences(files, form, model.get_params(deep=False)["tokens"])
        return sf.summarize(model, open_sequences(data, **form_of) if form_of else data, form.weight)

    @property
    def _tokens(self) -> Any:
        return self.model.get_params(deep=False)["tokens"]

    def score(self, data: Sequence[str], form: Form) -> dict[str, float]:
        """Mean log-likelihood of a step, and the perplexity."""
        form.check(self.who, "weight", "group", "order", "columns")
        sequences, form_of = read_sequences(data, form, self._tokens)
        score = float(self.model.score(sequences, form.weight, **form_of))
        return {"score": score, "perplexity": float(self.model.perplexity(sequences, form.weight, **form_of))}

    def predict(self, data: Sequence[str], form: Form) -> Columns:
        """What most probably follows each sequence, and how probable it is; with `proba` the whole row."""
        form.check(self.who, "group", "order", "columns", "proba")
        tails = [path[-self.model.order :] for path in self._paths(data, form)]
        laws = [self.model.row(tail) for tail in tails]
        if not laws:
            return {"next": [], "probability": []}
        (name,) = laws[0].variables
        states, shares = laws[0].states[name], np.array([law.values for law in laws])
        if form.proba:
            return {str(state): shares[:, code] for code, state in enumerate(states)}
        best = shares.argmax(axis=1)
        return {"next": [states[code] for code in best], "probability": shares[np.arange(len(best)), best]}

    def _paths(self, data: Sequence[str], form: Form) -> list[list[Hashable]]:
        if form.group or form.order or form.columns or any(name.lower().endswith(_TABLES) for name in data):
            table, form_of = read_sequences(data, form, self._tokens)
            sequences = open_sequences(table, **form_of).single()
            return [list(sequences[number]) for number in range(len(sequences))]
        split = list if self._tokens == "characters" else str.split
        return [list(split(line)) for _, _, line in lines_of(data) if line.strip()]

    def sample(self, n: int, form: Form) -> Columns:
        """`n` sequences, step by step."""
        form.check(self.who, "seed", "length")
        if form.length is None and not self.model.get_params(deep=False)["bounds"]:
            raise OptionError("Say how many steps each sequence is to have with --length; the chain has no ends.")
        drawn = self.model.sample(n, form.length, random_state=form.seed)
        numbers = [number for number, path in enumerate(drawn) for _ in path]
        return {"sequence": numbers, "state": [state for path in drawn for state in path]}
