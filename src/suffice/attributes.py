"""Attributes that are read from what an object holds: a fitted value, a report, the parameters of a distribution.

Each is a property for Python, so that it is completed, documented and shown as one, and has a type for checkers:

>>> class Normal:
...     parameters_ = {"mean": 2.0}
...     fitted_ = 3 + 4j
...     size_: Read[float] = reads("fitted_.real", "How large it is.")
...     mean_: float
>>> read_parameters(Normal, ["mean"])
>>> Normal().mean_, Normal().size_, Normal.size_.__doc__
(2.0, 3.0, 'How large it is.')
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Protocol, Self, TypeVar, overload

T = TypeVar("T")
V = TypeVar("V", covariant=True)


class Read(Protocol[V]):
    """The type of an attribute whose value is a V."""

    @overload
    def __get__(self, instance: None, owner: type[Any], /) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type[Any], /) -> V: ...


def reads(path: str, words: str) -> Any:
    """The property that reads ``self.path``, with what it says about itself."""
    return property(attrgetter(path), doc=words)


def computed(function: Callable[[Any], T]) -> Read[T]:
    """The property that a function of the object computes, with the words of the function."""
    made: Any = property(function)
    reading: Read[T] = made
    return reading


def read_parameters(kind: type[object], names: Iterable[str]) -> None:
    """Let instances read their usual parameters with a trailing underscore; the class declares their types."""
    for name in names:
        if f"{name}_" not in vars(kind):
            setattr(kind, f"{name}_", property(_parameter(name), doc=f"The parameter `{name}`, given or fitted."))


def _parameter(name: str) -> Callable[[Any], Any]:
    return lambda instance: instance.parameters_[name]
