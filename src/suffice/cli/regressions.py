"""Generalised linear models from the command line: a formula, or a response and columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

import suffice as sf
from suffice.cli.application import rows
from suffice.cli.building import CommandOptions, made, weights_prior
from suffice.cli.commands import Columns, ModelCommands, ReadingOptions, call
from suffice.cli.texts import columns_in_memory
from suffice.errors import OptionError, require

#: Arguments of `fit` that name columns.
_SIDES = ("offset", "exposure", "trials")
_NAME = r"[A-Za-z_]\w*"
_SIMPLE = re.compile(rf"\s*({_NAME})\s*~\s*(\.|{_NAME}(?:\s*\+\s*{_NAME})*)\s*")


def _read_formula(text: str) -> tuple[str | None, list[str] | None, str | None]:
    """Response and columns of a sum of columns; any other formula is left to the reader of formulas."""
    simple = _SIMPLE.fullmatch(text)
    if simple is None:
        return None, None, text
    terms = simple[2]
    return simple[1], None if terms == "." else [name.strip() for name in terms.split("+")], None


def _with_rows(data: object) -> Any:
    if isinstance(data, sf.Summary):
        raise OptionError("A GLM needs rows; a summary keeps sums that are not enough for it.")
    return data


def _in_memory(data: object) -> Any:
    """The rows as a frame, which readers of formulas want."""
    pandas = require("pandas", extra="all", purpose="A formula")
    return pandas.DataFrame(columns_in_memory(_with_rows(data))[1]).infer_objects()


class RegressionCommands(ModelCommands):
    """A GLM."""

    @classmethod
    def fit(cls, files: Sequence[str], chosen: CommandOptions, reading: ReadingOptions) -> sf.GLM:
        """A fitted GLM."""
        chosen.check("glm")
        reading.check("--model glm", "weight", "response", "columns")
        options = chosen.options(prior=weights_prior(chosen.prior))
        if "estimate" in options:
            raise OptionError("--model glm takes no --estimate; with a prior it finds the MAP estimate.")
        sides = {name: str(options.pop(name)) for name in _SIDES if name in options}
        formula, data = (files[0], files[1:]) if "~" in files[0] else (None, files)
        if not data:
            raise OptionError(f"Expected DATA after the formula {formula!r}; found none.")
        response, columns = reading.response, list(reading.columns) or None
        if formula is not None:
            if reading.response is not None or reading.columns:
                raise OptionError("Give a formula, or --response and --column, not both.")
            response, columns, formula = _read_formula(formula)
        elif response is None:
            raise OptionError("Say what to explain: a formula such as 'y ~ x + z' before DATA, or --response y.")
        if formula is not None:
            options["formula"] = formula
        model: sf.GLM = made(sf.GLM, **options)
        with rows(data) as given:
            table = _in_memory(given) if formula else _with_rows(given)
            return model.fit(table, response, reading.weight, columns=columns, **sides)

    def score(self, data: Sequence[str], reading: ReadingOptions) -> dict[str, float]:
        """Mean log-likelihood of a row."""
        reading.check(self.who, "weight", "response", "further")
        response = reading.response or self.model.response_
        if response is None:
            raise OptionError("Say which column is the response with --response; the model does not keep its name.")
        with rows(data) as opened:
            sides = {name: str(value) for name, value in reading.further.items()}
            return {"score": float(self.model.score(self._rows(opened), response, reading.weight, **sides))}

    def _rows(self, opened: object) -> Any:
        return _with_rows(opened) if self.model.get_params(deep=False)["formula"] is None else _in_memory(opened)

    def predict(self, data: Sequence[str], reading: ReadingOptions) -> Columns:
        """Means, or the likeliest label of a response with labels; with `proba` the probabilities of labels."""
        reading.check(self.who, "proba", "further")
        labels = self.model.classes_ if self.model.family_name_ in ("binomial", "multinomial", "ordinal") else None
        with rows(data) as given:
            table = self._rows(given)
            if reading.proba:
                shares = call(self.model.predict_proba, table, **reading.further)
                names = labels if labels is not None else range(shares.shape[1])
                return {str(name): shares[:, column] for column, name in enumerate(names)}
            kind = {} if labels is None or "kind" in reading.further else {"kind": "class"}
            values = np.asarray(call(self.model.predict, table, **kind, **reading.further))
        if values.ndim == 1:
            return {"prediction": values}
        named = ("prediction", "low", "high") if "interval" in reading.further else range(values.shape[1])
        return {str(name): values[:, column] for column, name in zip(range(values.shape[1]), named, strict=True)}

    def sample(self, n: int, reading: ReadingOptions) -> Columns:
        """One response for each of the rows, `n` times."""
        reading.check(self.who, "seed", "data")
        if not reading.data:
            raise OptionError("A GLM draws responses for given rows; name them after the model.")
        generator = np.random.default_rng(reading.seed)
        with rows(reading.data) as given:
            table = self._rows(given)
            drawn = np.array([np.asarray(self.model.sample(table, generator)) for _ in range(max(n, 1))])
        size = drawn.shape[1]
        places = {"draw": np.repeat(np.arange(len(drawn)), size), "row": np.tile(np.arange(size), len(drawn))}
        return places | {"response": drawn.reshape(-1)}
