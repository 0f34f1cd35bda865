"""Questions and answers as plain trees, for files that travel: the library's own records and functions, by name.

Nothing else is read back: what a file names must stand in the list of `NAMED`, and no code travels.
"""

from __future__ import annotations

import copyreg
import importlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from types import MethodType
from typing import Any

import numpy as np

from suffice.errors import FileFormatError, OptionError
from suffice.sources.named import NAMED
from suffice.storage import exported_class

#: The key of a dict that stands for something else; its value says for what.
_KEY = "is"


def packed(value: Any) -> Any:
    """A tree that the storage writes."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if isinstance(value, list | tuple | frozenset):
        return (
            type(value)(packed(part) for part in value) if type(value) in (list, tuple, frozenset) else _record(value)
        )
    if isinstance(value, Mapping) and not hasattr(value, "to_dict"):
        return {_KEY: "dict", "items": [(packed(key), packed(part)) for key, part in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.kind in "OUS":
        return {_KEY: "objects", "shape": value.shape, "items": [packed(part) for part in value.ravel().tolist()]}
    if isinstance(value, partial):
        return {_KEY: "partial", "of": packed(value.func), "args": packed(value.args), "named": packed(value.keywords)}
    if isinstance(value, MethodType):
        return {_KEY: "method", "name": value.__name__, "of": packed(value.__self__)}
    if callable(value) and hasattr(value, "__qualname__"):
        return {_KEY: "name", "name": _name(value)}
    if isinstance(value, np.ndarray | np.generic) or type(value).__module__.partition(".")[0] != "suffice":
        return value
    if exported_class(type(value).__name__) is type(value):
        return value
    return _record(value)


def _name(value: Any) -> str:
    name = f"{value.__module__}:{value.__qualname__}"
    if name not in NAMED:
        raise OptionError(f"{name} has no place in a file that travels between sites; call the sites instead.")
    return name


def _record(value: Any) -> dict[str, Any]:
    make, arguments, state = (*value.__reduce_ex__(2), None)[:3]
    if make is not copyreg.__newobj__ or arguments[0] is not type(value):  # type: ignore[attr-defined]
        raise OptionError(f"A {type(value).__name__} has no place in a file that travels between sites.")
    if is_dataclass(value) and isinstance(state, dict):  # What was computed from the fields is computed again.
        state = {field.name: state[field.name] for field in fields(value) if field.name in state}
    return {_KEY: "record", "name": _name(type(value)), "args": packed(arguments[1:]), "state": packed(state)}


def unpacked(tree: Any) -> Any:
    """The value of a tree; a name that is not the library's own is an error."""
    if isinstance(tree, list | tuple | frozenset):
        return type(tree)(unpacked(part) for part in tree)
    if not isinstance(tree, dict):
        return tree
    kind = tree.get(_KEY)
    if kind == "dict":
        return {unpacked(key): unpacked(part) for key, part in tree["items"]}
    if kind == "objects":
        values = np.empty(len(tree["items"]), dtype=object)
        values[:] = [unpacked(part) for part in tree["items"]]
        return values.reshape(tree["shape"])
    if kind == "partial":
        return partial(unpacked(tree["of"]), *unpacked(tree["args"]), **unpacked(tree["named"]))
    if kind == "method":
        return getattr(unpacked(tree["of"]), _method(tree))
    if kind == "name":
        return _named(tree["name"])
    if kind == "record":
        return _built(_named(tree["name"]), unpacked(tree["args"]), unpacked(tree["state"]))
    raise FileFormatError(f"it holds {kind!r}, which is no part of a question or an answer")


def _method(tree: dict[str, Any]) -> str:
    name = tree["name"]
    of = tree["of"]
    if not (isinstance(of, dict) and f"{of.get('name')}.{name}" in NAMED):
        raise FileFormatError(f"it names {name!r}, which is no question of this library")
    return str(name)


def _named(name: object) -> Any:
    if not isinstance(name, str) or name not in NAMED:
        raise FileFormatError(f"it names {name!r}, which is no question or answer of this library")
    module, _, qualified = name.partition(":")
    value: Any = importlib.import_module(module)
    for part in qualified.split("."):
        value = getattr(value, part)
    return value


def _built(kind: type[Any], arguments: tuple[Any, ...], state: Any) -> Any:
    value = kind.__new__(kind, *arguments)
    if hasattr(value, "__setstate__"):
        value.__setstate__(state)
        return value
    for part in state if isinstance(state, tuple) else (state,):
        for name, entry in (part or {}).items():
            object.__setattr__(value, name, entry)
    return value
