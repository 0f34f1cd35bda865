"""The types of text: what the fields of a CSV column are taken for, and the label that each of them stands for."""

from __future__ import annotations

import datetime
import re
from typing import Any, Final, Literal

from suffice.domain import Variable
from suffice.sources.columns import number_label

TextType = Literal["whole", "truth", "number", "text", "empty"]

#: The words that stand for a missing value unless they are declared as states; the same as those of pandas.
MISSING_TEXTS = frozenset(
    {
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
        *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    }
)
#: In place of a label: the text is not of the type of the column.
MISFIT: Final = object()

_TRUTH = {"True": True, "TRUE": True, "true": True, "False": False, "FALSE": False, "false": False}
# Patterns that Python and Arrow read alike.
_WHOLE = r"[ \t]*[+-]?[0-9]+[ \t]*"
_NUMBER = r"(?i:[ \t]*[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?)[ \t]*)"
_IS_WHOLE, _IS_NUMBER = re.compile(_WHOLE), re.compile(_NUMBER)


def type_of(texts: Any) -> TextType:
    """What all of some texts, an Arrow array, are; missing values are left out."""
    import pyarrow as pa
    import pyarrow.compute as compute

    held = texts.filter(compute.invert(compute.is_in(texts, pa.array(sorted(MISSING_TEXTS)))))
    if len(held) == 0:
        return "empty"
    if compute.all(compute.is_in(held, pa.array(list(_TRUTH)))).as_py():
        return "truth"
    if compute.all(compute.match_substring_regex(held, f"^{_WHOLE}$")).as_py():
        return "whole"
    return "number" if compute.all(compute.match_substring_regex(held, f"^{_NUMBER}$")).as_py() else "text"


def common_type(left: TextType, right: TextType) -> TextType:
    """The type of a column of which one part has the type `left` and another `right`."""
    if left == right or right == "empty":
        return left
    if left == "empty":
        return right
    return "number" if {left, right} == {"whole", "number"} else "text"


def is_number(text: str) -> bool:
    """Whether a text can be read as a number."""
    return _IS_NUMBER.fullmatch(text) is not None


def label_of(type_: TextType, text: str) -> Any:
    """The label of a text in a column of some type: None for a missing value, `MISFIT` for a text of another type.

    Python raises ValueError for a whole number of thousands of digits.
    """
    if text in MISSING_TEXTS:
        return None
    if type_ == "text":
        return text
    if type_ == "truth":
        return _TRUTH.get(text, MISFIT)
    if type_ == "whole" and _IS_WHOLE.fullmatch(text):
        return int(text)
    return number_label(float(text)) if type_ == "number" and is_number(text) else MISFIT


def declared_label(variable: Variable, text: str) -> Any:
    """The declared state that a text stands for; else a missing value, or the text, which is then unknown."""
    if variable.find(text) is not None:
        return text
    for convert in (int, float, _TRUTH.__getitem__, datetime.datetime.fromisoformat, datetime.date.fromisoformat):
        try:
            label = convert(text)
        except (ValueError, KeyError):
            continue
        if variable.find(label) is not None:
            return label
    return None if text in MISSING_TEXTS else text
