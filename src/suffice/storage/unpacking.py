"""Text files, plain or gzipped, read in one way: a damaged one is an error of ours that names it."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from typing import IO, Any

from suffice.errors import FileFormatError

FilePath = str | os.PathLike[str]


@contextlib.contextmanager
def unpacked(path: FilePath) -> Iterator[IO[bytes]]:
    """The bytes of a file; one whose name ends in ``.gz`` is unpacked on the way."""
    name = os.fspath(path)
    if not name.endswith(".gz"):
        with open(path, "rb") as stream:
            yield stream
        return
    import gzip
    import zlib

    with gzip.open(path, "rb") as stream:
        try:
            yield stream  # type: ignore[misc]
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise FileFormatError(
                f"{name!r} cannot be unpacked: the gzipped content is damaged or cut short: {error}."
            ) from error


@contextlib.contextmanager
def unpacked_text(path: FilePath, encoding: str = "utf-8", newline: str | None = None) -> Iterator[IO[str]]:
    """The text of a file, which is decoded as it is read."""
    with unpacked(path) as binary:
        stream: Any = io.TextIOWrapper(binary, encoding=encoding, newline=newline)
        try:
            yield stream
        finally:
            stream.detach()
