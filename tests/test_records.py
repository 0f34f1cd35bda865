"""Records are data classes in all but the way they are made: each is compared with one that `dataclasses` makes."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from functools import cached_property
from typing import Any, ClassVar

import pytest

from suffice.records import record, replace


@record(frozen=True)
class Point:
    """A record."""

    x: int
    y: tuple[int, ...] = (7,)
    name: str = "origin"

    UNIT: ClassVar[str] = "cm"

    @cached_property
    def far(self) -> int:
        """A derived number."""
        return self.x + sum(self.y)


def twin() -> Any:
    """The same class by the standard library."""
    fields: list[Any] = [("x", int), ("y", tuple, (7,)), ("name", str, "origin")]
    return dataclasses.make_dataclass("Point", fields, frozen=True)


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((1,), {}),
    ((1, (2, 3)), {}),
    ((1, (2, 3), "p"), {}),
    ((), {"x": 1}),
    ((1,), {"name": "p"}),
    ((), {"name": "p", "y": (), "x": 4}),
]


@pytest.mark.parametrize(("values", "named"), CALLS)
def test_text_equality_and_hash_are_those_of_a_data_class(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    found, expected = Point(*values, **named), twin()(*values, **named)
    assert repr(found) == repr(expected)
    assert dataclasses.asdict(found) == dataclasses.asdict(expected)
    assert found == Point(*values, **named)
    assert hash(found) == hash(expected)
    assert found != Point(99)
    assert found != expected


@pytest.mark.parametrize(
    ("values", "named"), [((), {}), ((1, (), "p", 4), {}), ((1,), {"x": 2}), ((1,), {"z": 2}), ((), {"name": "p"})]
)
def test_calls_that_a_data_class_refuses_are_refused(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        twin()(*values, **named)
    with pytest.raises(TypeError, match="Point"):
        Point(*values, **named)


def test_a_frozen_record_does_not_change() -> None:
    point: Any = Point(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="'x'"):
        point.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="'x'"):
        del point.x
    assert (point.far, point.far, point) == (8, 8, Point(1))


def test_a_record_is_replaced_copied_and_pickled() -> None:
    point = Point(1, (2,))
    assert replace(point, x=5) == Point(5, (2,)) == dataclasses.replace(point, x=5)
    assert copy.copy(point) == copy.deepcopy(point) == pickle.loads(pickle.dumps(point)) == point
    assert [field.name for field in dataclasses.fields(Point)] == ["x", "y", "name"]
    with pytest.raises(TypeError, match="z"):
        replace(point, z=1)  # type: ignore[call-arg]


@record(eq=False)
class Block:
    """A record that changes, with an equality of its own: the same object."""

    at: int
    names: list[str]


def test_a_record_that_is_not_frozen_changes_and_is_equal_to_itself_alone() -> None:
    block = Block(1, [])
    block.at = 2
    assert (block.at, block == block, block == Block(2, [])) == (2, True, False)
    assert hash(block) == object.__hash__(block)


@dataclasses.dataclass(frozen=True)
class Standard(Point):
    """A data class of a record."""

    z: int = 3


def test_a_data_class_inherits_the_fields_of_a_record() -> None:
    assert repr(Standard(1, (), "s", 4)) == "Standard(x=1, y=(), name='s', z=4)"
    assert dataclasses.asdict(Standard(1)) == {"x": 1, "y": (7,), "name": "origin", "z": 3}
    assert Standard(1) != Point(1)
