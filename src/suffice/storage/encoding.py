"""Trees of values as plain JSON data, and back, without loss.

A tree is built from dicts, lists, tuples, frozensets, text, numbers, truth values, None, bytes, dates and times,
decimals, arrays and the library's own objects. What JSON has no word for becomes an object with the key ``"$"``, whose
value is a tag (see `docs/file-format.md`). An object is written as the name under which the package
exports its class and the state that ``to_dict()`` gives; reading builds only such classes, and those
that installed packages offer or the program has registered, by ``from_dict(state)``.
No other code is ever run.
"""

from __future__ import annotations

import json
import math
import reprlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import FileFormatError, MissingExtraError, OptionError, listing
from suffice.registry import Registry
from suffice.storage.scalars import READERS, SPECIAL, WRITERS, type_name

#: Containers inside containers. Far below Python's recursion limit, so that what was saved in a shallow call stack can
#: be loaded in a deep one.
MAX_DEPTH = 64
#: Python turns at most 4300 digits into an integer; the longest integer written stays below that.
MAX_INT_BITS = 14_000
#: An empty array takes no room in a file, whatever its other axes say; sums over the empty axis would take that room.
MAX_EMPTY = 2**24
MAX_AXES = 32

DTYPES: Mapping[str, np.dtype[Any]] = {
    name: np.dtype(name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64"),
        *("uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"),
    )
}

#: Stores an array, gives the fields of its node that say where.
Put = Callable[[NDArray[Any]], dict[str, Any]]
#: Type, shape and those fields; gives the array.
Take = Callable[[np.dtype[Any], tuple[int, ...], dict[str, Any]], NDArray[Any]]


#: Classes of other packages that may be built from files, by name; they offer them in the group of entry points.
CLASSES: Registry[type[Any]] = Registry("suffice.models")


def register(cls: type[Any]) -> None:
    """Let files hold objects of a class of one's own: ``to_dict()`` writes it, ``from_dict(state)`` builds it."""
    CLASSES.register(cls.__name__, lambda: cls)


def exported_class(name: object) -> type[Any] | None:
    """The class that the package exports, or another offers, under this name and that plain data rebuild, or None."""
    package: Any = sys.modules["suffice"]  # Looked up, not imported: what it exports stands above this module.
    if not isinstance(name, str):
        return None
    value = getattr(package, name) if name in package._EXPORTS else CLASSES.find(name)
    return value if isinstance(value, type) and callable(getattr(value, "from_dict", None)) else None


def _where(path: list[object]) -> str:
    return "content" + "".join(f"[{reprlib.repr(part)}]" for part in path)


def _shape_fits(shape: tuple[int, ...]) -> bool:
    return len(shape) <= MAX_AXES and (0 not in shape or math.prod(size for size in shape if size) <= MAX_EMPTY)


# --------------------------------------------------------------------------------------------------------------------
# Writing
# --------------------------------------------------------------------------------------------------------------------


class TreeEncoder:
    """Turns a tree into JSON data; arrays go where `put` puts them."""

    def __init__(self, put: Put) -> None:
        self._put = put
        self._path: list[object] = []

    def node(self, value: Any) -> Any:
        """The JSON data for a value."""
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            if value.bit_length() > MAX_INT_BITS:
                raise self._refusal("an integer of too many digits")
            return value
        if kind is float:
            return value if math.isfinite(value) else {"$": "float", "value": repr(value)}
        if kind is str:
            return value if _is_text(value) else {"$": "str", "utf-8": value.encode("utf-8", "surrogatepass").hex()}
        if kind is list:
            return [self._child(index, item) for index, item in enumerate(value)]
        if kind is tuple:
            return {"$": "tuple", "items": [self._child(index, item) for index, item in enumerate(value)]}
        if kind is dict:
            return self._mapping(value)
        if kind is np.ndarray:
            return self._array(value)
        if kind is frozenset:
            return {"$": "frozenset", "items": self._members(value)}
        return self._other(value)

    def _members(self, value: frozenset[Any]) -> list[Any]:
        """The members in the order of their JSON text: equal sets are written alike, in whatever order they iterate."""
        nodes = [self._child("member", item) for item in value]
        return sorted(nodes, key=lambda node: json.dumps(node, sort_keys=True))

    def _child(self, key: object, value: object) -> Any:
        self._path.append(key)
        if len(self._path) > MAX_DEPTH:
            raise OptionError(
                f"A value to save has containers nested more than {MAX_DEPTH} deep, or contains itself. Flatten it."
            )
        node = self.node(value)
        self._path.pop()
        return node

    def _mapping(self, value: dict[Any, Any]) -> dict[str, Any]:
        if "$" not in value and all(type(key) is str and _is_text(key) for key in value):
            return {key: self._child(key, item) for key, item in value.items()}
        pairs = [[self._child("key", key), self._child(key, item)] for key, item in value.items()]
        return {"$": "dict", "items": pairs}

    def _array(self, value: NDArray[Any]) -> dict[str, Any]:
        if value.dtype.name not in DTYPES:
            raise self._refusal(f"an array of type {value.dtype}; known types: {', '.join(DTYPES)}")
        if not _shape_fits(value.shape):
            raise self._refusal(f"an array of shape {value.shape}, with too many axes or too long beside an empty one")
        return {"$": "array", "dtype": value.dtype.name, "shape": list(value.shape), **self._put(value)}

    def _other(self, value: Any) -> Any:
        if isinstance(value, np.generic) and (value.dtype.name in DTYPES or value.dtype.kind in "US"):
            return self.node(value.item())
        if (writer := WRITERS.get(type_name(value))) is not None:
            tag, fields = writer
            try:
                parts = fields(value)
            except OptionError as error:
                raise self._refusal(str(error)) from None
            return {"$": tag, **{key: self._child(key, part) for key, part in parts.items()}}
        if hasattr(type(value), "to_dict"):
            name = type(value).__name__
            if exported_class(name) is not type(value):
                raise self._refusal(f"an object of class {name}, which suffice does not export and could not read back")
            return {"$": "object", "class": name, "state": self._child(name, value.to_dict())}
        raise self._refusal(f"a value of type {type(value).__name__}, which has no place in a file")

    def _refusal(self, what: str) -> OptionError:
        return OptionError(
            f"Cannot save {_where(self._path)}: it is {what}. Save numbers, text, dates, arrays, lists, tuples, "
            "frozensets, dicts and objects of this library; convert others first."
        )


def _is_text(value: str) -> bool:
    """Whether a string is valid Unicode: lone surrogates would not survive a JSON file."""
    if value.isascii():
        return True
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def put_inline(array: NDArray[Any]) -> dict[str, Any]:
    """The values of an array in C order, as JSON numbers; what is not finite as text."""
    if array.dtype.kind != "f":
        return {"values": array.ravel().tolist()}
    values: list[Any] = array.astype(np.float64).ravel().tolist()
    if not np.isfinite(array).all():
        values = [value if math.isfinite(value) else repr(value) for value in values]
    return {"values": values}


# --------------------------------------------------------------------------------------------------------------------
# Reading
# --------------------------------------------------------------------------------------------------------------------


class TreeDecoder:
    """Turns JSON data back into the tree; arrays come from where `take` finds them."""

    def __init__(self, take: Take) -> None:
        self._take = take
        self._path: list[object] = []

    def tree(self, node: object) -> Any:
        """The value; whatever is wrong with the data is a `FileFormatError` that says where."""
        try:
            return self._tree(node)
        except MissingExtraError:
            raise
        except Exception as error:  # Damaged data can make any constructor fail in any way: the file is to blame.
            raise FileFormatError(f"at {_where(self._path)}: {_cause(error)}") from error

    def _tree(self, node: Any) -> Any:
        kind = type(node)
        if kind is dict:
            if "$" in node:
                return self._tagged(node["$"], {key: part for key, part in node.items() if key != "$"})
            return {key: self._child(key, part) for key, part in node.items()}
        if kind is list:
            return [self._child(index, part) for index, part in enumerate(node)]
        if kind is float and not math.isfinite(node):
            raise FileFormatError("a number beyond the range of a float64")
        return node

    def _child(self, key: object, node: object) -> Any:
        self._path.append(key)
        if len(self._path) > MAX_DEPTH:
            raise FileFormatError(f"containers are nested more than {MAX_DEPTH} deep")
        value = self._tree(node)
        self._path.pop()
        return value

    def _tagged(self, tag: object, fields: dict[str, Any]) -> Any:
        if tag == "tuple":
            return tuple(self._child(index, part) for index, part in enumerate(_listed(tag, fields, "items")))
        if tag == "frozenset":
            return self._set(_listed(tag, fields, "items"))
        if tag == "dict":
            return self._mapping(_listed(tag, fields, "items"))
        if tag == "array":
            return self._array(fields)
        if tag == "object":
            return self._object(fields)
        if not isinstance(tag, str) or tag not in READERS:
            known = sorted({"array", "dict", "frozenset", "object", "tuple", *READERS})
            raise FileFormatError(f"the tag {reprlib.repr(tag)} is unknown; known tags: {listing(known, len(known))}")
        parts = {key: self._child(key, part) for key, part in fields.items()}
        try:
            return READERS[tag](**parts)
        except MissingExtraError:
            raise
        except Exception as error:
            raise FileFormatError(f"this is no {tag}: {_cause(error)}") from error

    def _set(self, items: list[Any]) -> frozenset[Any]:
        result = frozenset(self._child("member", item) for item in items)
        if len(result) != len(items):
            raise FileFormatError("a member of a set occurs twice")
        return result

    def _mapping(self, items: list[Any]) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for pair in items:
            if type(pair) is not list or len(pair) != 2:
                raise FileFormatError("an item of a dict is not a pair of a key and a value")
            key = self._child("key", pair[0])
            result[key] = self._child(key, pair[1])
        if len(result) != len(items):
            raise FileFormatError("a key occurs twice")
        return result

    def _array(self, fields: dict[str, Any]) -> NDArray[Any]:
        name, shape = fields.pop("dtype", None), tuple(_listed("array", fields, "shape", more=True))
        del fields["shape"]
        if not isinstance(name, str) or name not in DTYPES:
            raise FileFormatError(f"an array has the type {reprlib.repr(name)}; known types: {', '.join(DTYPES)}")
        if any(type(size) is not int or size < 0 for size in shape) or not _shape_fits(shape):
            raise FileFormatError(f"an array has the shape {reprlib.repr(shape)}")
        return self._take(DTYPES[name], shape, fields)

    def _object(self, fields: dict[str, Any]) -> Any:
        if set(fields) != {"class", "state"} or type(fields["state"]) is not dict:
            raise FileFormatError("an object needs exactly a class and a state")
        kind = exported_class(fields["class"])
        if kind is None:
            raise FileFormatError(f"{reprlib.repr(fields['class'])} is no class of suffice that a file may hold")
        state = self._child(kind.__name__, fields["state"])
        try:
            return kind.from_dict(state)
        except MissingExtraError:
            raise
        except Exception as error:
            raise FileFormatError(f"this is no {kind.__name__}: {_cause(error)}") from error


def _listed(tag: str, fields: dict[str, Any], key: str, *, more: bool = False) -> list[Any]:
    """The list that a node must have under `key`, and nothing else unless `more`."""
    if type(fields.get(key)) is not list or (len(fields) != 1 and not more):
        raise FileFormatError(f"the tag {tag!r} needs a list {key!r}" + ("" if more else " and nothing else"))
    entries: list[Any] = fields[key]
    return entries


def _cause(error: Exception) -> str:
    """What went wrong, in words."""
    if isinstance(error, RecursionError):
        return "containers are nested too deeply"
    if isinstance(error, KeyError):
        return f"{reprlib.repr(error.args[0])} is missing or unknown" if error.args else "a part is missing"
    return str(error) if isinstance(error, FileFormatError) else f"{type(error).__name__}: {error}"


def take_inline(dtype: np.dtype[Any], shape: tuple[int, ...], fields: dict[str, Any]) -> NDArray[Any]:
    """An array from its values in C order."""
    values = _listed("array", fields, "values")
    if len(values) != math.prod(shape):
        raise FileFormatError(f"an array of shape {shape} has {len(values)} values")
    if dtype.kind == "f":
        return _floats(dtype, values).reshape(shape)
    wanted = bool if dtype.kind == "b" else int
    if not set(map(type, values)) <= {wanted}:
        raise FileFormatError(f"an array of type {dtype.name} holds a value that is no {wanted.__name__}")
    return np.array(values, dtype=dtype).reshape(shape)


def _floats(dtype: np.dtype[Any], values: list[Any]) -> NDArray[Any]:
    """Numbers, and the words for what is not finite, as floats of one width, without rounding any."""
    words = [value for value in values if type(value) is str]
    if not set(words) <= set(SPECIAL) or not set(map(type, values)) <= {float, int, str}:
        raise FileFormatError(f"an array of type {dtype.name} holds a value that is no number")
    wide = np.array([SPECIAL[value] if type(value) is str else value for value in values], dtype=np.float64)
    with np.errstate(all="ignore"):
        result = wide.astype(dtype)
    if not np.array_equal(result.astype(np.float64), wide, equal_nan=True) or np.isfinite(wide).sum() != len(
        values
    ) - len(words):
        raise FileFormatError(f"an array holds a number beyond the range or the digits of a {dtype.name}")
    return result
