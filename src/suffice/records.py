"""Data classes that are quick to define: what they can do is written once, not compiled for each.

`dataclasses.dataclass` writes the methods of a class as text and compiles them, up to six and about a millisecond a
class. The first question of a process to a network passes some twenty classes, and that was a third of its time beyond
NumPy's. `record` is the same decorator with methods that all classes share. Type checkers see a data class, and
`dataclasses.fields`, `asdict` and `replace` take records as they take any other: what they need is made when they ask.

Here alone the fields of an instance are set or read past its own methods (`set_fields`, `fields_of`, `copy_with`), for
constructors of frozen classes and for copies.
"""

from __future__ import annotations

import sys
from inspect import get_annotations
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

if TYPE_CHECKING:
    from dataclasses import dataclass as record
    from dataclasses import replace as replace
else:

    def record(*, frozen: bool = False, eq: bool = True):
        """As `dataclass`, for a class that extends no other; all fields are arguments, and its own methods are kept."""

        def made(cls: type) -> type:
            shared = {"__init__": _init, "__repr__": _repr, "__dataclass_fields__": _LaterFields(cls, frozen)}
            if eq:
                shared |= {"__eq__": _eq, "__hash__": _hash if frozen else None}
            if frozen:
                shared |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
            own = [name for name, note in get_annotations(cls).items() if not note.startswith("ClassVar")]
            shared["__match_args__"] = tuple(own)
            for name, value in shared.items():
                if name not in cls.__dict__:
                    setattr(cls, name, value)
            return cls

        return made

    def replace(instance, /, **changes):
        """`dataclasses.replace`, loaded when it is first used."""
        from dataclasses import replace as replaced

        return replaced(instance, **changes)


__all__ = ["checked", "copy_with", "fields_of", "record", "replace", "set_fields"]

Record = TypeVar("Record")


def set_fields(instance: object, /, **values: object) -> None:
    """Set fields of an instance that may be frozen, all at once, which is quicker than one by one."""
    instance.__dict__.update(values)


def fields_of(instance: object, /) -> dict[str, Any]:
    """The fields that were set, by name: the instance's own dict, which changes with it."""
    return instance.__dict__


def copy_with(instance: Record, /, **values: object) -> Record:
    """A copy with the same fields but for some; no constructor is run."""
    made = object.__new__(type(instance))
    made.__dict__.update(instance.__dict__, **values)
    return made


def checked(instance: Record) -> Record:
    """The instance of a record or data class, as it came from a file, if every field holds what its annotation says.

    Files are read field by field, and what a damaged one holds may be of any type: better to say so at once than to
    fail when the field is used.
    """
    from suffice.errors import FileFormatError, shortened

    for cls in type(instance).__mro__:
        for name, note in get_annotations(cls).items():
            value = getattr(instance, name, None)
            if not _fits(value, _meant(note, sys.modules[cls.__module__].__dict__)):
                what = type(instance).__name__
                raise FileFormatError(f"{name} of this {what} is {shortened(value)}; expected {note}.")
    return instance


def _meant(note: object, names: dict[str, Any]) -> Any:
    """The type that an annotation names; Any where it cannot be had while the program runs."""
    if not isinstance(note, str):
        return note
    try:
        return eval(note, names)
    except (NameError, TypeError):  # Imported for type checkers only.
        return Any


def _fits(value: object, meant: Any) -> bool:
    """Whether a value is of a type; of containers the members are looked at too."""
    origin, inner = get_origin(meant), get_args(meant)
    if meant is Any or origin is ClassVar or isinstance(meant, TypeVar):
        return True
    if meant is None or meant is NoneType:
        return value is None
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is Literal:
        return any(value is one or (type(value) is type(one) and value == one) for one in inner)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        kinds = [inner[0]] * len(value) if inner[1:] == (Ellipsis,) else inner
        return len(kinds) == len(value) and all(map(_fits, value, kinds))
    if getattr(origin, "__name__", "") == "ndarray":
        return _is_array_of(value, inner[1])
    if origin in (list, frozenset, set):
        return isinstance(value, origin) and all(_fits(one, inner[0]) for one in value)
    if origin is dict or getattr(origin, "__name__", "") == "Mapping":
        return hasattr(value, "items") and all(_fits(k, inner[0]) and _fits(v, inner[1]) for k, v in value.items())
    kind = origin or meant
    if kind is float:
        return isinstance(value, float | int) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if getattr(kind, "__name__", "") == "Hashable":
        return _can_be_hashed(value)
    return isinstance(value, kind) if isinstance(kind, type) and not getattr(kind, "_is_protocol", False) else True


def _is_array_of(value: Any, dtype: Any) -> bool:
    """Whether a value is an array of the type of `NDArray[type]`: floats, whole numbers or truth values."""
    if type(value).__name__ != "ndarray":
        return False
    (member,) = get_args(dtype) or (Any,)
    kinds = {"float64": "f", "floating": "f", "bool": "b", "generic": "biufOUS"}
    name = getattr(member, "__name__", "Any")
    return member is Any or value.dtype.kind in kinds.get(name, "iu")


def _can_be_hashed(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


class _LaterFields:
    """The fields of a record as `dataclasses` knows them, made when they are first asked for."""

    def __init__(self, cls: type, frozen: bool) -> None:
        self._cls = cls
        self._frozen = frozen

    def __get__(self, instance: object, owner: type) -> Any:
        from dataclasses import dataclass

        made: Any = dataclass(init=False, repr=False, eq=False)(self._cls)
        made.__dataclass_params__.frozen = self._frozen  # Data classes that inherit from it look here.
        return made.__dataclass_fields__


def _init(self: Any, *values: object, **named: object) -> None:
    names = self.__match_args__
    if named or len(values) != len(names):
        values = _completed(self, values, named)
    self.__dict__.update(zip(names, values, strict=True))


def _completed(self: Any, values: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """All fields in order, from some by place, some by name, and the defaults of the rest."""
    what, names = type(self), self.__match_args__
    if len(values) > len(names):
        raise TypeError(f"{what.__name__} takes {len(names)} fields but {len(values)} were given.")
    given = dict(zip(names, values, strict=False))
    if wrong := [name for name in named if name not in names or name in given]:
        raise TypeError(f"{what.__name__} has the fields {', '.join(names)}; {wrong[0]!r} is none, or was given twice.")
    given |= named
    if missing := [name for name in names if name not in given and not hasattr(what, name)]:
        raise TypeError(f"{what.__name__} needs the fields {', '.join(missing)}.")
    return tuple([given[name] if name in given else getattr(what, name) for name in names])


def _values(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, name) for name in self.__match_args__])


def _repr(self: Any) -> str:
    shown = ", ".join(f"{name}={value!r}" for name, value in zip(self.__match_args__, _values(self), strict=True))
    return f"{type(self).__qualname__}({shown})"


def _eq(self: Any, other: object) -> bool:
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _refuse_to_set(self: Any, name: str, value: object) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")
