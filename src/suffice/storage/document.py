"""The JSON text of a file: a header that says what it is, then the content."""

from __future__ import annotations

import json
import reprlib
import sys
from collections.abc import Iterable
from typing import Any

from suffice.errors import FileFormatError
from suffice.storage.encoding import Put, Take, TreeDecoder, TreeEncoder, put_inline, take_inline

#: Raised whenever an older version of the library could not read what this one writes.
FORMAT_VERSION = 1
HEADER = ("format", "version", "library", "content")


def dumps(tree: object) -> str:
    """The JSON text of a tree, arrays inline; the same tree gives the same text in every process."""
    return write_text(tree, put_inline)


def loads(text: str) -> Any:
    """The tree of a JSON text; anything else is a `FileFormatError`."""
    return read_text(text, take_inline)


def write_text(tree: object, put: Put) -> str:
    """The JSON text of a tree, with the arrays where `put` puts them."""
    content = TreeEncoder(put).node(tree)
    values = ("suffice", FORMAT_VERSION, _library(), content)
    return _laid_out(dict(zip(HEADER, values, strict=True)), "") + "\n"


def read_text(text: str, take: Take) -> Any:
    """The tree of a JSON text, with the arrays that `take` finds."""
    document = parse(text)
    _check_header(document)
    return TreeDecoder(take).tree(document["content"])


def parse(text: str) -> Any:
    """The plain values of a JSON text; a key that occurs twice, NaN and Infinity are refused."""
    try:
        return json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_no_constant)
    except FileFormatError:
        raise
    except RecursionError as error:
        raise FileFormatError("containers are nested too deeply") from error
    except ValueError as error:
        raise FileFormatError(f"it is no valid JSON: {error}. Check that the file is whole.") from error


def _library() -> str:
    package: Any = sys.modules["suffice"]
    return str(package.__version__)


def _check_header(document: object) -> None:
    if type(document) is not dict or document.get("format") != "suffice":
        raise FileFormatError("it is a JSON file of another kind, not one written by suffice")
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise FileFormatError(f"it has the format version {reprlib.repr(version)}; expected a whole number from 1")
    if version > FORMAT_VERSION:
        raise FileFormatError(
            f"it has the format version {version}, written by suffice {reprlib.repr(document.get('library'))}; this is "
            f"suffice {_library()}, which reads versions up to {FORMAT_VERSION}. To read it, upgrade suffice "
            "(python -m pip install -U suffice)"
        )
    if set(document) != set(HEADER):
        raise FileFormatError(f"it has the parts {reprlib.repr(list(document))}; expected {list(HEADER)}")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise FileFormatError(f"a key occurs twice in the object with the keys {reprlib.repr(list(result))}")
    return result


def _no_constant(word: str) -> Any:
    raise FileFormatError(f"it is no valid JSON: {word} is not a JSON number. Check that the file is whole.")


def _laid_out(node: Any, margin: str) -> str:
    """JSON text with a line for each part, but flat lists and the values of an array on one line."""
    if type(node) not in (dict, list) or not node or _is_flat(node):
        return _compact(node)
    inner = margin + "  "
    if type(node) is dict:
        lines = [f"{_compact(key)}: {_laid_out(part, inner)}" for key, part in node.items()]
        return "{\n" + ",\n".join(inner + line for line in lines) + f"\n{margin}}}"
    return "[\n" + ",\n".join(inner + _laid_out(part, inner) for part in node) + f"\n{margin}]"


def _is_flat(node: dict[str, Any] | list[Any]) -> bool:
    """Whether nothing in it deserves a line of its own."""
    if isinstance(node, list):
        return _no_containers(node)
    if node.get("$") == "array":
        return True
    parts = [part for part in node.values() if type(part) is not list or not ("$" in node and _no_containers(part))]
    return _no_containers(parts)


def _no_containers(parts: Iterable[Any]) -> bool:
    return not any(type(part) in (dict, list) for part in parts)


#: Keeps the letters of all languages readable; text that UTF-8 cannot hold never gets here.
_compact = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
