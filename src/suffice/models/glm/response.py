"""The response of a regression: numbers, two labels, successes out of trials, several labels, or several numbers."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import Variable, as_python, sort_states, state_key
from suffice.errors import DataError, EstimateError, MissingValueError, listing, shortened
from suffice.families import counting
from suffice.sources.arrays import NumberColumn
from suffice.sources.columns import Column, code_dtype
from suffice.sources.opening import any_column
from suffice.sources.states import Translation, resolve_states

#: As scikit-learn says it.
NO_RESPONSE = (
    "There is no response: give y=, an array or the name of a column. (GLM requires y to be passed, but the target y "
    "is None.)"
)


@dataclass(frozen=True, eq=False)
class Response:
    """`y` (n,) or (n, m) as the row distributions take it; `trials` (n,) or None; `classes` where y came as labels.

    `base` (n,) is a part of the log density of each row that `y` does not tell any more, or None.
    """

    y: Floats
    trials: Floats | None = None
    classes: tuple[Hashable, ...] | None = None
    base: Floats | None = None


def numbers(column: Column, what: str = "The response") -> Floats:
    """A column as numbers without missing values."""
    values = np.ascontiguousarray(column.floats(slice(0, len(column))), dtype=np.float64)
    check_finite(values, f"{what} {column.name!r}")
    return values


def check_finite(values: Floats, what: str, start: int = 0) -> None:
    """Raise at the first missing value or infinity."""
    # What is not finite makes the sum of squares so too, which BLAS adds up as fast as memory can be read.
    flat = values.reshape(-1) if values.flags.c_contiguous else None
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum() if flat is None else np.dot(flat, flat)):
            return
    good = np.isfinite(values)
    if good.all():
        return
    row = int(np.argmin(good if good.ndim == 1 else good.all(axis=1)))
    raise MissingValueError(
        f"{what} has a missing value or an infinite number (row {start + row}); a regression needs every value. Leave "
        "the row out, or fill the missing value."
    )


def factor_codes(column: Column, declared: Variable | None) -> tuple[Variable, NDArray[Any]]:
    """States and codes of a discrete column (n,); a missing value is an error."""
    variable = declared or column.infer()
    if variable.kind != "discrete":
        variable = Variable(column.name, "discrete")
    coded = column.code()
    settled = resolve_states(variable, coded)
    codes = np.empty(len(column), code_dtype(settled.card))
    Translation(settled, coded).write(slice(0, len(column)), codes)
    if (codes == settled.card).any():
        row = int(np.argmax(codes == settled.card))
        raise MissingValueError(
            f"Column {column.name!r} has a missing value (row {row}); a regression needs every value. Leave the row "
            "out, or give missing values a level of their own."
        )
    return settled, codes


def as_column(y: Any, name: Hashable = "y") -> Column:
    """A single column from anything that has one value a row; a table (n, 1) counts."""
    if isinstance(y, Column):
        return y
    try:
        values = np.asarray(y) if isinstance(y, list | tuple) or (hasattr(y, "__array__") and np.ndim(y) == 2) else y
    except ValueError:  # Lists of different lengths.
        raise DataError(f"{name} is {shortened(y)}; expected one value a row.") from None
    if isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    return any_column(name, values)


def read_shares(y: Any, trials: Any, states: tuple[Hashable, ...] | None) -> Response:
    """A response of two labels, or of successes out of trials."""
    pair = None if isinstance(y, Column) else _pair(y)
    if pair is not None:
        if trials is not None:
            raise DataError("The response has two columns, successes and failures; give no trials= beside it.")
        return shares_of_counts(pair[:, 0], pair.sum(axis=1))
    column = as_column(y)
    if trials is not None:
        return shares_of_counts(numbers(column), numbers(as_column(trials, "trials"), "The column of trials"))
    if states is None and isinstance(column, NumberColumn):
        values = numbers(column)
        if np.isin(values, (0.0, 1.0)).all():
            kinds = (False, True) if column.values.dtype.kind == "b" else (0, 1)
            return Response(values, None, kinds)
        if np.isin(values, (-1.0, 1.0)).all():
            return Response(0.5 * (values + 1.0), None, (-1, 1))
        if ((values >= 0.0) & (values <= 1.0)).all():
            raise DataError(
                "The response is continuous, shares between 0 and 1. Give the number of trials of each row with "
                "trials= and the successes as response, or successes and failures as two columns."
            )
    variable, codes = factor_codes(column, None if states is None else Variable.discrete(column.name, states))
    if states is None:
        check_labels(variable.states)
    if variable.card != 2:
        raise DataError(
            f"Only binary classification is supported: the response has {variable.card} labels, "
            f"{listing(variable.states)}, and the binomial family takes two. Declare both with "
            "family=Bernoulli(states=(failure, success)), or use family='multinomial'."
        )
    return Response(codes.astype(np.float64), None, variable.states)


def check_labels(states: tuple[Hashable, ...]) -> None:
    """Refuse numbers that are no labels, where nobody has declared them."""
    odd = [state for state in states if isinstance(state, float) and not state.is_integer()]
    if odd:
        raise DataError(
            f"Unknown label type: continuous. The response holds {odd[0]!r}; numbers that are not whole are labels "
            "only where they are declared: states=[...]."
        )


def check_truth(values: Floats, what: str, start: int = 0) -> None:
    """Raise at the first number of a binomial response that is neither 0 nor 1; what: the response, in words."""
    good = np.isin(values, (0.0, 1.0))
    if not good.all():
        row = int(np.argmin(good))
        raise DataError(
            f"{what} holds {float(values[row])!r} (row {start + row}); expected 0 and 1. Declare other labels "
            "with family=Bernoulli(states=(failure, success)), or give successes and failures as two columns, or "
            "successes with trials=."
        )


def _pair(y: Any) -> Floats | None:
    """Successes and failures (n, 2), where the response has two columns."""
    if not (hasattr(y, "shape") and len(y.shape) == 2 and y.shape[1] == 2):
        return None
    return np.asarray(y, dtype=np.float64)


def shares_of_counts(successes: Floats, trials: Floats, start: int = 0) -> Response:
    """Shares of successes out of trials, both whole numbers; start: the number of the first row."""
    if len(successes) != len(trials):
        raise DataError(f"There are {len(trials)} numbers of trials for {len(successes)} rows; give one a row.")
    whole = (successes == np.floor(successes)) & (trials == np.floor(trials))
    good = whole & (successes >= 0.0) & (successes <= trials)
    if not good.all():
        row = int(np.argmin(good))
        raise DataError(
            f"Row {start + row} has {successes[row]:g} successes out of {trials[row]:g} trials; expected whole numbers "
            "with 0 <= successes <= trials."
        )
    return Response(np.divide(successes, trials, out=np.zeros_like(trials), where=trials > 0.0), trials)


def read_labels(y: Any, states: tuple[Hashable, ...] | None) -> Response:
    """A response of several labels, as codes."""
    column = as_column(y)
    variable, codes = factor_codes(column, None if states is None else Variable.discrete(column.name, states))
    if states is None:
        check_labels(variable.states)
    refuse_single(variable.states)
    return Response(codes.astype(np.float64), None, tuple(as_python(state) for state in variable.states))


def read_ordered(y: Any, states: tuple[Hashable, ...] | None) -> Response:
    """A response of ordered labels, as codes from the lowest to the highest."""
    column = as_column(y)
    variable, codes = factor_codes(column, None if states is None else Variable.discrete(column.name, states))
    if states is None:
        check_labels(variable.states)
        check_ordered(variable.states, known=column.ordered)
    refuse_single(variable.states)
    return Response(codes.astype(np.float64), None, tuple(as_python(state) for state in variable.states))


def refuse_single(states: tuple[Hashable, ...]) -> None:
    """An error for labels of which there is only one."""
    if len(states) < 2:
        raise EstimateError(
            f"The response has the single label {listing(states)}, one class; nothing can be learned. Declare all "
            "labels with family=Categorical(states=[...]) and give a prior, or those of an ordinal family with "
            "states=[...]."
        )


def check_ordered(states: tuple[Hashable, ...], *, known: bool) -> None:
    """Raise unless the order of labels is known: told by the type of their column, or that of numbers or dates."""
    kinds = {state_key(state)[0] for state in states}
    natural = len(kinds) == 1 and kinds <= _ORDERED_KINDS and sort_states(states) == states
    if not (known or natural):
        raise DataError(
            f"The order of the labels {listing(states)} is not known. Give states=[...], from the lowest to the "
            "highest, or an ordered categorical column."
        )


#: Kinds of states that have one order.
_ORDERED_KINDS = {"number", "bool", "datetime", "date"}


def read_vectors(y: Any) -> Response:
    """A response of several numbers (n, m)."""
    values = np.ascontiguousarray(np.asarray(y, dtype=np.float64))
    if values.ndim == 1:
        values = values[:, None]
    check_finite(values, "The response")
    return Response(values)


def log_choices(successes: Floats, trials: Floats) -> Floats:
    """Log C(trials, successes)."""
    return counting.log_choices(successes, trials - successes + 1.0)
