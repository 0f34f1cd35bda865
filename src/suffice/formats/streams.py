"""Content of files and streams: bounded in size, unpacked when gzipped, decoded; and files replaced whole."""

from __future__ import annotations

import codecs
import os
from typing import IO, TYPE_CHECKING, NamedTuple, TypeVar

from suffice.errors import FileFormatError
from suffice.formats.networks import FactorNetwork, TableNetwork
from suffice.records import replace

if TYPE_CHECKING:
    from collections.abc import Callable

FilePath = str | os.PathLike[str]
Source = FilePath | IO[str] | IO[bytes]
Network = TypeVar("Network", bound=TableNetwork | FactorNetwork)

#: A gzipped file of a few kilobytes may stand for gigabytes; the largest published networks have ten megabytes.
MOST_BYTES = 2**28


class Content(NamedTuple):
    """What was read: text, or bytes that are not decoded yet, and the name for messages."""

    data: str | bytes
    name: str


def read(source: Source) -> Content:
    """All of a file or stream, unpacked if it is gzipped."""
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        if os.path.isdir(name):
            raise FileFormatError(f"Cannot read {name!r}: it is a folder, not a file.")
        with open(name, "rb") as stream:
            return Content(_unpacked(stream.read(MOST_BYTES + 1), name), name)
    name = str(getattr(source, "name", "<stream>"))
    data = source.read(MOST_BYTES + 1)
    return Content(_bounded(data, name) if isinstance(data, str) else _unpacked(data, name), name)


def _bounded(data: str | bytes, name: str) -> str | bytes:
    if len(data) > MOST_BYTES:
        raise FileFormatError(f"{name}: the content is larger than {MOST_BYTES} bytes, the most that is read.")
    return data


def _unpacked(data: bytes, name: str) -> bytes:
    if data.startswith(b"\x1f\x8b"):
        import gzip
        import io
        import zlib

        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
                data = packed.read(MOST_BYTES + 1)
        except (EOFError, OSError, zlib.error) as error:
            raise FileFormatError(f"{name}: the gzipped content is damaged or cut short: {error}.") from error
    unpacked = _bounded(data, name)
    assert isinstance(unpacked, bytes)
    return unpacked


def decoded(content: Content) -> tuple[str, tuple[str, ...]]:
    """The text, and a note when it is not UTF-8.

    Old files of the text formats are Latin-1, in which every byte is a character: nothing but labels can be wrong.
    """
    data = content.data
    if isinstance(data, str):
        return data, ()
    try:
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return data.decode("utf-16"), ()
        return data.removeprefix(codecs.BOM_UTF8).decode("utf-8"), ()
    except UnicodeDecodeError as error:
        if error.encoding.startswith("utf-16"):
            raise FileFormatError(f"{content.name}: the text is no UTF-16, as it says: {error.reason}.") from error
        return data.decode("latin-1"), ("The file is not UTF-8 and was read as Latin-1.",)


def load_text(source: Source, parse: Callable[[str, str], Network]) -> Network:
    """Parse the text of a file or stream."""
    content = read(source)
    text, notes = decoded(content)
    network = parse(text, content.name)
    return replace(network, notes=(*notes, *network.notes)) if notes else network


def write(path: FilePath, text: str) -> None:
    """Replace a file whole, in UTF-8; one whose name ends in .gz is packed, the same bytes every time."""
    from suffice.storage.files import replacing

    data = text.encode("utf-8")
    with replacing(path) as stream:
        if os.fspath(path).lower().endswith(".gz"):
            import gzip

            with gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as packed:
                packed.write(data)
        else:
            stream.write(data)
