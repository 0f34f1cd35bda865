"""Objects in files whose arrays are mapped into memory: whoever reads them copies nothing."""

from __future__ import annotations

import importlib
import mmap
import os
import pickle
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

#: Where a part of a file may begin: arrays lie as processors like them.
_ALIGNMENT = 64


def write_objects(path: Path, values: Iterable[Any], by: str) -> None:
    """Write objects, packed by a pickler, to a file that is there when it is whole: two may write it at once."""
    path.parent.mkdir(exist_ok=True)
    beside = path.with_name(f"{path.name}.{uuid4().hex}")
    pickler = importlib.import_module(by)
    try:
        with open(beside, "wb") as file:
            for value in values:
                buffers: list[pickle.PickleBuffer] = []
                body = pickler.dumps(value, protocol=5, buffer_callback=buffers.append)
                parts = [body, *(buffer.raw() for buffer in buffers)]
                sizes = [len(parts), *(memoryview(part).nbytes for part in parts)]
                _write(file, struct.pack(f"<{len(sizes)}q", *sizes))
                for part in parts:
                    _write(file, part)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def _write(file: BinaryIO, part: Any) -> None:
    file.write(bytes(-file.tell() % _ALIGNMENT))
    file.write(part)


def mapped_objects(path: Path) -> Iterator[Any]:
    """The objects of a file that is there now, in their order; what is written to their arrays changes no file."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if size else b"")
    return _objects(view)


def _objects(view: memoryview) -> Iterator[Any]:
    end = 0

    def taken(size: int) -> memoryview:
        nonlocal end
        begin = end + -end % _ALIGNMENT
        end = begin + size
        return view[begin:end]

    while end < len(view):
        (count,) = struct.unpack("<q", taken(8))
        sizes = struct.unpack(f"<{count}q", view[end : end + 8 * count])
        end += 8 * count
        body, *buffers = [taken(size) for size in sizes]
        yield pickle.loads(body, buffers=buffers)
