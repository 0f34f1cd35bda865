"""Linear hypotheses about parameters, ``R beta = q``, from text, names or matrices."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.errors import OptionError, listing, meant, shortened

#: A hypothesis as `wald_test` takes it: text, the name of a parameter or several, values by name, R, or R and q.
Hypothesis = str | Sequence[str] | Mapping[str, float] | Floats | tuple[Any, Any]

_NUMBER = re.compile(r"\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?")


@dataclass(frozen=True, eq=False)
class LinearForm:
    """A linear form of the parameters: coefficients (k,) and a constant."""

    coefficients: Floats
    constant: float

    def __add__(self, other: LinearForm) -> LinearForm:
        return LinearForm(self.coefficients + other.coefficients, self.constant + other.constant)

    def times(self, factor: float) -> LinearForm:
        """A multiple."""
        return LinearForm(self.coefficients * factor, self.constant * factor)

    @property
    def is_number(self) -> bool:
        """Whether no parameter enters."""
        return not self.coefficients.any()


def restrictions(asked: Hypothesis, names: Sequence[str]) -> tuple[Floats, Floats]:
    """The matrix R (r, k) and the values q (r,) of a hypothesis about parameters of these names.

    Text such as ``"a = b, 2*c - d/3 = 1"`` is read with the names in it as they are; ``a = b = 0`` are two equations,
    and an expression by itself is tested to be 0. Backquotes may stand around a name.
    """
    if isinstance(asked, str):
        forms = _forms(asked, names)
    elif isinstance(asked, Mapping):
        forms = [_parameter(name, names) + _constant(-float(value), names) for name, value in asked.items()]
    elif isinstance(asked, list | tuple) and all(isinstance(one, str) for one in asked):
        forms = [form for one in asked for form in _forms(one, names)]
    else:
        return _matrices(asked, names)
    if not forms:
        raise OptionError(
            "The hypothesis names no parameter; give a name as summary() has it, or text such as 'a = b'."
        )
    empty = next((form for form in forms if form.is_number), None)
    if empty is not None:
        raise OptionError(f"A part of the hypothesis {shortened(asked)} holds no parameter; nothing is left to test.")
    return np.array([form.coefficients for form in forms]), np.array([-form.constant for form in forms])


def _forms(text: str, names: Sequence[str]) -> list[LinearForm]:
    """Those of a text, which may be a name as it is."""
    return [_parameter(text, names)] if text in names else _Reader(text, names).forms()


def _matrices(asked: Any, names: Sequence[str]) -> tuple[Floats, Floats]:
    """R, or R and q, as arrays."""
    matrix, values = asked if isinstance(asked, tuple) and len(asked) == 2 else (asked, None)
    try:
        R = np.atleast_2d(np.asarray(matrix, dtype=np.float64))
        q = np.zeros(len(R)) if values is None else np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        raise OptionError(
            f"The hypothesis is {shortened(asked)}; expected text such as 'a = b, c = 0', names, values by name, or a "
            "matrix with a column for each parameter."
        ) from None
    if R.ndim != 2 or R.shape[1] != len(names) or q.shape != (len(R),) or not len(R):
        raise OptionError(
            f"The matrix of the hypothesis has the shape {R.shape} and {q.size} values; expected {len(names)} columns, "
            f"one for each of {listing(names)}, and a value for each row."
        )
    if not (np.isfinite(R).all() and np.isfinite(q).all() and R.any(axis=1).all()):
        raise OptionError("The matrix of the hypothesis has a row of zeros, or a number that is not finite.")
    return R, q


def _parameter(name: str, names: Sequence[str]) -> LinearForm:
    if name not in names:
        raise OptionError(f"There is no parameter {name!r}.{meant(name, names)} There are {listing(names)}.")
    one = np.zeros(len(names))
    one[names.index(name)] = 1.0
    return LinearForm(one, 0.0)


def _constant(value: float, names: Sequence[str]) -> LinearForm:
    return LinearForm(np.zeros(len(names)), value)


class _Reader:
    """Reads equations: names as they are, the longest first, numbers, ``+ - * / ( ) = ,``."""

    def __init__(self, text: str, names: Sequence[str]) -> None:
        self.text, self.names = text, names
        self.known = sorted(names, key=len, reverse=True)
        self.tokens = self._tokens()
        self.next = 0

    def forms(self) -> list[LinearForm]:
        """A form for each equation, which is to be 0."""
        forms: list[LinearForm] = []
        while self.next < len(self.tokens):
            sides = [self._sum()]
            while self._taken("="):
                sides.append(self._sum())
            forms += [one + other.times(-1.0) for one, other in pairwise(sides)] or sides
            if self.next < len(self.tokens) and not self._taken(","):
                raise self._error(f"{self._shown()} is not expected there")
        return forms

    def _tokens(self) -> list[Any]:
        text, start, tokens = self.text, 0, list[Any]()
        while start < len(text):
            rest = text[start:]
            number = _NUMBER.match(rest)
            name = next((one for one in self.known if rest.startswith(one) and _ends(one, rest)), None)
            if rest[0].isspace():
                start += 1
            elif rest[0] == "`" and "`" in rest[1:]:
                quoted = rest[1 : rest.index("`", 1)]
                tokens.append(_parameter(quoted, self.names))
                start += len(quoted) + 2
            elif name is not None:
                tokens.append(_parameter(name, self.names))
                start += len(name)
            elif number is not None:
                tokens.append(_constant(float(number[0]), self.names))
                start += len(number[0])
            elif rest[0] in "+-*/()=,":
                tokens.append(rest[0])
                start += 1
            else:
                word = re.match(r"[^\s+\-*/()=,]+", rest)
                wrong = rest[0] if word is None else word[0]
                raise OptionError(
                    f"There is no parameter {wrong!r}.{meant(wrong, self.names)} There are {listing(self.names)}."
                )
        return tokens

    def _error(self, why: str) -> OptionError:
        return OptionError(
            f"The hypothesis {self.text!r} cannot be read: {why}. Expected equations such as 'a = b, 2*c - d = 1'."
        )

    def _shown(self) -> str:
        token = self.tokens[self.next] if self.next < len(self.tokens) else "the end"
        return f"{token!r}" if isinstance(token, str) else "a parameter or a number"

    def _taken(self, sign: str) -> bool:
        taken = self.next < len(self.tokens) and self.tokens[self.next] == sign
        self.next += taken
        return taken

    def _sum(self) -> LinearForm:
        total = self._product()
        while True:
            if self._taken("+"):
                total = total + self._product()
            elif self._taken("-"):
                total = total + self._product().times(-1.0)
            else:
                return total

    def _product(self) -> LinearForm:
        product = self._atom()
        while True:
            if self._taken("*"):
                other = self._atom()
                if not (product.is_number or other.is_number):
                    raise self._error("a product of parameters is not linear")
                number, form = (product, other) if product.is_number else (other, product)
                product = form.times(number.constant)
            elif self._taken("/"):
                other = self._atom()
                if not other.is_number or other.constant == 0.0:
                    raise self._error("it divides by a parameter or by 0")
                product = product.times(1.0 / other.constant)
            else:
                return product

    def _atom(self) -> LinearForm:
        if self._taken("-"):
            return self._atom().times(-1.0)
        if self._taken("+"):
            return self._atom()
        if self._taken("("):
            inner = self._sum()
            if not self._taken(")"):
                raise self._error("a parenthesis is not closed")
            return inner
        if self.next < len(self.tokens) and isinstance(self.tokens[self.next], LinearForm):
            self.next += 1
            form: LinearForm = self.tokens[self.next - 1]
            return form
        raise self._error(f"{self._shown()} stands where a parameter or a number is expected")


def _ends(name: str, rest: str) -> bool:
    """Whether a name that text begins with is not the beginning of a longer word."""
    after = rest[len(name) : len(name) + 1]
    return not ((name[-1].isalnum() or name[-1] == "_") and (after.isalnum() or after == "_"))
