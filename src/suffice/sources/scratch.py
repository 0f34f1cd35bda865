"""What does not fit in memory: a folder that is gone when nobody needs it any more, and how much memory there is."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

#: Taken for the free memory of a machine that does not tell.
_UNKNOWN = 4 << 30
#: Room on the disk that is left to others, in bytes.
_RESERVE = 256 << 20
#: How the names of folders begin, and the file that says that one is in use.
_PREFIX, _LOCK = "suffice-", "in-use"


class Scratch:
    """Objects in files of a folder of their own, in the folder that TMPDIR names.

    The folder is made when it is first needed. It is removed by `close`, when nobody refers to it any more, and when
    the process ends, also by an error or by Ctrl-C. What a killed process has left is removed by the next that needs
    such a folder.
    """

    def __init__(self) -> None:
        """No folder yet."""
        self._folder: Path | None = None
        self._count = 0

    @property
    def folder(self) -> Path:
        """Where the files are."""
        if self._folder is None:
            _remove_abandoned(Path(tempfile.gettempdir()))
            self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
            self._remove = weakref.finalize(self, _remove, self._folder, _locked(self._folder))
        return self._folder

    def file(self) -> Path:
        """The path of a file that is not there yet."""
        self._count += 1
        return self.folder / f"{self._count}.pickle"

    def has_room(self, size: int) -> bool:
        """Whether so many bytes can be written and leave room for others."""
        return shutil.disk_usage(self.folder).free >= size + _RESERVE

    def close(self) -> None:
        """Remove the folder with all that is in it."""
        if self._folder is not None:
            self._remove()
            self._folder = None


def _locked(folder: Path) -> BinaryIO | None:
    """The file of a folder that is locked as long as its process lives; None where the system has no such locks.

    It has its name once it is locked, so that nobody finds it open.
    """
    try:
        import fcntl
    except ModuleNotFoundError:
        return None
    lock = open(folder / "new-lock", "wb")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.rename(folder / "new-lock", folder / _LOCK)
    except OSError:
        lock.close()
        return None
    return lock


def _remove(folder: Path, lock: BinaryIO | None) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
        lock.close()


def _remove_abandoned(parent: Path) -> None:
    """Remove folders whose locks nobody holds any more: their processes were killed."""
    try:
        import fcntl
    except ModuleNotFoundError:
        return
    for path in parent.glob(f"{_PREFIX}*/{_LOCK}"):
        try:
            with open(path, "rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path.parent, ignore_errors=True)
        except OSError:
            continue  # In use, gone by now, or of somebody else.


def append(path: Path, value: object) -> None:
    """Write an object at the end of a file."""
    with open(path, "ab") as file:
        pickle.dump(value, file, protocol=5)


def read_all(path: Path) -> Iterator[Any]:
    """The objects of a file, in the order in which they were written."""
    with open(path, "rb") as file:
        end = os.fstat(file.fileno()).st_size
        while file.tell() < end:
            yield pickle.load(file)


def size_of(value: object) -> int:
    """Bytes that an object takes when it is written; its arrays are not copied to find out."""
    buffers: list[pickle.PickleBuffer] = []
    inline = len(pickle.dumps(value, protocol=5, buffer_callback=buffers.append))
    return inline + sum(buffer.raw().nbytes for buffer in buffers)


def free_memory() -> int:
    """Memory that can be had without taking it from others, in bytes: of the machine or of the control group."""
    return max(0, min(_available(), _control_group()))


def _available() -> int:
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return _UNKNOWN


def _control_group() -> int:
    try:
        limit, used = (Path(f"/sys/fs/cgroup/memory.{name}").read_text().strip() for name in ("max", "current"))
    except OSError:
        return 1 << 62
    return int(limit) - int(used) if limit.isdecimal() else 1 << 62
