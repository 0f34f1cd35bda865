"""Fields of data classes that come from files: each must hold what its annotation says."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from suffice.errors import FileFormatError
from suffice.records import checked


@dataclass(frozen=True)
class Fields:
    """One field of every kind."""

    UNIT: ClassVar[str] = "cm"

    number: float = 1.5
    count: int = 2
    flag: bool = True
    way: Literal["up", "down"] = "up"
    maybe: str | None = None
    pair: tuple[int, str] = (1, "a")
    many: tuple[float, ...] = (1.0, 2)
    names: list[str] | None = None
    by_name: Mapping[str, int] | None = None
    key: Hashable = ("a", 1)
    floats: NDArray[np.float64] | None = None
    codes: NDArray[np.int64] | None = None
    anything: Any = None


GOOD: list[dict[str, Any]] = [
    {},
    {"number": 2},
    {"many": ()},
    {"names": ["a"], "by_name": {"a": 1}},
    {"floats": np.zeros(2), "codes": np.zeros(2, np.uint8)},
    {"anything": object()},
]
WRONG: list[tuple[str, Any]] = [
    *(
        ("number", "1.5"),
        ("number", True),
        ("count", 2.0),
        ("count", False),
        ("flag", 1),
        ("way", "left"),
        ("maybe", 3),
    ),
    *(("pair", (1,)), ("pair", [1, "a"]), ("pair", ("a", 1)), ("many", (1.0, "2")), ("names", ["a", 1])),
    *(("by_name", {"a": "b"}), ("by_name", [1]), ("key", ["a"]), ("floats", [0.0]), ("floats", np.zeros(2, int))),
    ("codes", np.zeros(2)),
]


@pytest.mark.parametrize("changes", GOOD)
def test_what_fits_is_returned_as_it_is(changes: dict[str, Any]) -> None:
    fields = replace(Fields(), **changes)
    assert checked(fields) is fields


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_what_does_not_fit_is_named(name: str, value: Any) -> None:
    with pytest.raises(FileFormatError, match=rf"^{name} of this Fields is .*; expected "):
        checked(replace(Fields(), **{name: value}))
