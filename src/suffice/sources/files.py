"""Paths and globs to a list of files, and the errors of reading them."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from urllib.request import url2pathname

from suffice.errors import DataError, listing, require

#: Endings that are read, by format.
ENDINGS = {"parquet": (".parquet",), "csv": (".csv", ".csv.gz", ".tsv", ".tsv.gz")}
_KNOWN = " or ".join(ending for endings in ENDINGS.values() for ending in endings)


def format_of(path: str) -> str | None:
    """``"parquet"``, ``"csv"`` or None, by the ending."""
    low = path.lower()
    return next((name for name, endings in ENDINGS.items() if low.endswith(endings)), None)


def are_paths(values: Sequence[object]) -> bool:
    """Whether a list holds paths: `Path` objects, or text that ends as a file does."""
    return len(values) > 0 and all(
        isinstance(value, Path) or (isinstance(value, str) and format_of(value) is not None) for value in values
    )


def find_files(given: Iterable[str | Path]) -> tuple[str, list[str]]:
    """Format and files, sorted within each glob or folder; nothing found is an error."""
    files = [file for path in given for file in _expand(str(path))]
    formats = {format_of(file) for file in files}
    if len(formats) != 1:
        raise DataError(
            f"The files are of different formats: {listing(files)}. Give Parquet files or CSV files, not both."
        )
    (format_,) = formats
    assert format_ is not None
    return format_, files


def is_remote(path: str) -> bool:
    """Whether a path names a file system of its own, as ``s3://bucket/rows.parquet`` does."""
    return "://" in path and not path.startswith("file://")


def opened(path: str) -> Any:
    """What a reader takes: the path of a file of this machine, or an open file of another file system."""
    if not is_remote(path):
        return path
    fsspec = require("fsspec", extra="remote", purpose=f"Reading {path!r}")
    return fsspec.open(path, "rb", compression="infer").open()


def _expand_remote(path: str) -> list[str]:
    """The files of a URL, of a pattern or of a folder there."""
    fsspec = require("fsspec", extra="remote", purpose=f"Reading {path!r}")
    try:
        system, inner = fsspec.core.url_to_fs(path)
    except (ImportError, ValueError) as error:
        raise DataError(f"Cannot open {path!r}: {error}") from error
    if glob.has_magic(inner):
        files = system.glob(inner)
    elif system.isdir(inner):
        files = [file for file in system.ls(inner, detail=False) if format_of(file)]
    else:
        files = [inner] if system.exists(inner) else []
    if not files:
        raise DataError(f"There is no file {path!r} that ends in {_KNOWN}. Check the path and what may be read there.")
    return sorted(system.unstrip_protocol(file) for file in files)


def _expand(path: str) -> list[str]:
    if is_remote(path):
        files = _expand_remote(path)
        _check_endings(files)
        return files
    path = url2pathname(urlparse(path).path) if path.startswith("file://") else path
    folder = Path(path)
    if folder.is_dir():
        files = sorted(str(file) for file in folder.iterdir() if format_of(file.name) and file.name[0] not in "._")
        if not files:
            raise DataError(f"The folder {path!r} holds no file that ends in {_KNOWN}.")
        return files
    if folder.is_file():
        files = [path]
    elif glob.has_magic(path):
        files = sorted(file for file in glob.glob(path, recursive=True) if Path(file).is_file())
        if not files:
            raise DataError(f"No file matches {path!r}. Check the pattern and the folder it is read from.")
    else:
        raise DataError(f"There is no file {path!r}. Check the path and the folder it is read from.")
    _check_endings(files)
    return files


def _check_endings(files: Sequence[str]) -> None:
    odd = [file for file in files if format_of(file) is None]
    if odd:
        raise DataError(f"Cannot tell the format of {odd[0]!r} by its ending; expected {_KNOWN}.")


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Name the file in the error for one that is damaged or not what its ending says."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, EOFError) as error:
        reason = str(error).rstrip(".")
        raise DataError(f"Cannot read the file {path!r}: {reason}. It may be damaged or of another format.") from error
