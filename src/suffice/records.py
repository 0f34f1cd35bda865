"""Data classes that are quick to define: what they can do is written once, not compiled for each.

`dataclasses.dataclass` writes the methods of a class as text and compiles them, up to six and about a millisecond a
class. The first question of a process to a network passes some twenty classes, and that was a third of its time beyond
NumPy's. `record` is the same decorator with methods that all classes share. Type checkers see a data class, and
`dataclasses.fields`, `asdict` and `replace` take records as they take any other: what they need is made when they ask.
"""

from __future__ import annotations

from inspect import get_annotations
from typing import TYPE_CHECKING, Any

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


__all__ = ["record", "replace"]


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


def _init(self: Any, *values: Any, **named: Any) -> None:
    names = self.__match_args__
    if named or len(values) != len(names):
        values = _completed(self, values, named)
    self.__dict__.update(zip(names, values, strict=True))


def _completed(self: Any, values: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """All fields in order, from some by place, some by name, and the defaults of the rest."""
    what, names = type(self), self.__match_args__
    if len(values) > len(names):
        raise TypeError(f"{what.__name__} takes {len(names)} fields but {len(values)} were given.")
    found = dict(zip(names, values, strict=False))
    if wrong := [name for name in named if name not in names or name in found]:
        raise TypeError(f"{what.__name__} has the fields {', '.join(names)}; {wrong[0]!r} is none, or was given twice.")
    found |= named
    if missing := [name for name in names if name not in found and not hasattr(what, name)]:
        raise TypeError(f"{what.__name__} needs the fields {', '.join(missing)}.")
    return tuple([found[name] if name in found else getattr(what, name) for name in names])


def _values(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, name) for name in self.__match_args__])


def _repr(self: Any) -> str:
    shown = ", ".join(f"{name}={value!r}" for name, value in zip(self.__match_args__, _values(self), strict=True))
    return f"{type(self).__qualname__}({shown})"


def _eq(self: Any, other: object) -> bool:
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _refuse_to_set(self: Any, name: str, value: Any) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")
