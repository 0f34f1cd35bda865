"""Chain CRFs from the command line: text with one step a line, and a fixed template of features.

The last field of a step is the label when a model is learned or scored; `sources.tagged_text` has the template.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import suffice as sf
from suffice.cli.building import CommandOptions, made, weights_prior
from suffice.cli.commands import Columns, ModelCommands, ReadingOptions
from suffice.cli.texts import lines_of
from suffice.errors import DataError, OptionError
from suffice.sources.tagged_text import Steps, features, fields_of, read_steps


class TaggingCommands(ModelCommands):
    """A ChainCRF."""

    @classmethod
    def fit(cls, files: Sequence[str], chosen: CommandOptions, reading: ReadingOptions) -> sf.ChainCRF:
        """A fitted CRF."""
        chosen.check("crf")
        reading.check("--model crf")
        options = chosen.options(prior=weights_prior(chosen.prior))
        if "estimate" in options:
            raise OptionError("--model crf takes no --estimate; with a prior it finds the MAP.")
        if options.get("hashing") is not None:
            raise OptionError("--option hashing keeps no names of features, which later commands need; leave it out.")
        sequences = read_steps(lines_of(files))
        width = len(sequences[0][0])
        if width < 2:
            raise DataError(f"The steps of {files[0]} have one field; expected at least two, the label last.")
        X = [features(steps, width - 1) for steps in sequences]
        model: sf.ChainCRF = made(sf.ChainCRF, **options)
        return model.fit(X, [[step[-1] for step in steps] for steps in sequences])

    def _width(self) -> int:
        """How many fields the features of the model look at."""
        width = fields_of(self.model.feature_names_)
        if width is None:
            raise OptionError("This ChainCRF was not learned by the command; its features are made in Python.")
        return width

    def _read(self, data: Sequence[str], labelled: bool) -> tuple[list[Steps], Any]:
        sequences, width = read_steps(lines_of(data)), self._width()
        held = len(sequences[0][0])
        if held < width + labelled:
            wanted = f"{width} and the label" if labelled else f"{width}"
            raise DataError(f"The steps of {data[0]} have {held} fields; the model expects {wanted}.")
        return sequences, [features(steps, width) for steps in sequences]

    def score(self, data: Sequence[str], reading: ReadingOptions) -> dict[str, float]:
        """Mean log-likelihood of the labels of a sequence, and the share of labels that are predicted right."""
        reading.check(self.who)
        sequences, X = self._read(data, labelled=True)
        y = [[step[-1] for step in steps] for steps in sequences]
        return {"score": float(self.model.score(X, y)), "accuracy": float(self.model.accuracy(X, y))}

    def predict(self, data: Sequence[str], reading: ReadingOptions) -> Columns:
        """The labels of each step; with `proba` the probability of every label."""
        reading.check(self.who, "proba")
        sequences, X = self._read(data, labelled=False)
        first = _places(sequences)
        if reading.proba:
            shares = np.concatenate([np.asarray(part) for part in self.model.predict_marginals(X)])
            return first | {str(label): shares[:, code] for code, label in enumerate(self.model.labels_)}
        return first | {"label": [label for path in self.model.predict(X) for label in path]}

    def sample(self, n: int, reading: ReadingOptions) -> Columns:
        """`n` paths of labels for each of the sequences."""
        reading.check(self.who, "seed", "data")
        if not reading.data:
            raise OptionError("A ChainCRF draws labels for given sequences; name their file after the model.")
        sequences, X = self._read(reading.data, labelled=False)
        drawn = self.model.sample_labels(X, n, random_state=reading.seed)
        first = _places(sequences)
        return first | {f"draw {k}": [label for paths in drawn for label in paths[k]] for k in range(n)}


def _places(sequences: Sequence[Steps]) -> Columns:
    return {
        "sequence": [number for number, steps in enumerate(sequences) for _ in steps],
        "token": [step[0] for steps in sequences for step in steps],
    }
