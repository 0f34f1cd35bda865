"""Lengths of sequences where calls of other libraries put them: second, as in ``fit(X, lengths)`` of hmmlearn."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import replace
from typing import Any

import numpy as np

from suffice.checks import is_list, whole_number
from suffice.errors import DataError, OptionError, listing, shortened
from suffice.sources.sequences import SequenceForm, is_table


def lengths_apart(
    form: SequenceForm, data: object, second: Any, otherwise: str | None = "known states"
) -> tuple[SequenceForm, Any]:
    """Numbers of steps that stand where something else is expected, as lengths; else the second argument as it is.

    They are whole numbers that add up to the steps of one array. What else has a value for each step is as long as
    these; otherwise: what that is called, None where it is not used.
    """
    if form.lengths is not None or form.group is not None:
        return form, second
    if not (isinstance(second, list | tuple) or len(getattr(second, "shape", ())) == 1):
        return form, second
    shape = getattr(data, "shape", None)
    single = (isinstance(shape, tuple) and len(shape) == 1) or isinstance(data, np.ndarray)
    single = single or (is_table(data) and hasattr(data, "__len__"))
    if otherwise is None and isinstance(data, list):
        single = not any(isinstance(step, Sized) and not isinstance(step, str | bytes) for step in data)
    numbers = np.asarray(second) if single and not any(isinstance(one, list | tuple) for one in second) else None
    if numbers is None or numbers.ndim != 1 or numbers.dtype.kind not in "iu" or (numbers < 1).any():
        return form, second
    steps = len(data) if isinstance(data, Sized) else 0
    if int(numbers.sum()) != steps:
        if len(numbers) == steps:
            return form, second
        both = "" if otherwise is None else f", and {otherwise} are as many"
        instead = "" if otherwise is None else ", or give states=[...]"
        raise DataError(
            f"The second argument is {listing(numbers.tolist())}, for an array of {steps} steps: lengths of sequences "
            f"add up to its steps{both}. These are {len(numbers)} numbers whose sum is {int(numbers.sum())}. Correct "
            f"the lengths{instead}."
        )
    if len(numbers) == steps:
        meaning = "a target, which is not used" if otherwise is None else otherwise
        instead = "leave it out" if otherwise is None else "states=[[...]] beside a list of sequences"
        raise OptionError(
            f"The second argument is {steps} times the number 1, for {steps} steps: {meaning}, or lengths of "
            f"sequences. Give lengths=[...], or {instead}."
        )
    return replace(form, lengths=numbers), None


def number_beside(value: Any, name: str) -> int:
    """A number that stands second, where lengths of sequences do in other calls; these are named in its error."""
    if is_list(value) or len(getattr(value, "shape", ())):
        raise OptionError(
            f"{name} is {shortened(value)}; expected a whole number. Lengths of sequences are given by name: lengths=."
        )
    return whole_number(value, name)
