"""Files on disk: written whole or not at all, and read with every size checked before any room is made for it."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import stat
import time
import zlib
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import FileFormatError, MissingExtraError, OptionError, shortened
from suffice.storage.document import dumps, loads, read_text, write_text

if TYPE_CHECKING:
    from zipfile import ZipInfo

ENDINGS = (".json", ".suffice")

FilePath = str | os.PathLike[str]

TEXT, ARRAYS = "model.json", "arrays.npy"
STALE_SECONDS = 60.0  #: A temporary file that has rested so long, and that nobody holds, is left from a kill.
WORD = 8  # Bytes of a float64, the unit in which places are counted.


def save(path: FilePath, tree: object, *, ending: str | None = None) -> None:
    """Write a tree or an object to a file; the ending of the path says how, unless `ending` does.

    Either the whole file is there afterwards or what was there before, also after a crash. The permissions of an
    existing file are kept.
    """
    if (ending or ending_of(path)) == ".json":
        text = dumps(tree).encode("utf-8")
        with replacing(path) as stream:
            stream.write(text)
    else:
        arrays = Packer()
        text = write_text(tree, arrays.put).encode("utf-8")
        with replacing(path) as stream:
            _write_zip(stream, text, arrays)


def load(path: FilePath, *, ending: str | None = None) -> Any:
    """Read the tree or object of a file; a damaged, newer or hostile file is a `FileFormatError`."""
    ending = ending or ending_of(path)
    if os.path.isdir(path):
        raise FileFormatError(f"Cannot read {os.fspath(path)!r}: it is a folder, not a file.")
    with open(path, "rb") as stream:
        try:
            if os.fstat(stream.fileno()).st_size == 0:
                raise FileFormatError("it is empty")
            return _read_json(stream) if ending == ".json" else _read_zip(stream)
        except MissingExtraError:
            raise
        except Exception as error:  # A damaged zip makes `zipfile` fail in many ways: the file is to blame.
            cause = str(error) if isinstance(error, FileFormatError) else f"{type(error).__name__}: {error}"
            raise FileFormatError(f"Cannot read {os.fspath(path)!r}: {cause.rstrip('.')}.") from error


def ending_of(path: FilePath) -> str:
    """The ending of a path, in small letters; an unknown one is an error that lists the known ones."""
    if not isinstance(path, str | os.PathLike):
        raise OptionError(f"path is {shortened(path)} ({type(path).__name__}); expected the path of a file, as text.")
    ending = os.path.splitext(str(os.fspath(path)))[1].lower()
    if ending not in ENDINGS:
        raise OptionError(
            f"{os.fspath(path)!r} ends in {ending!r}; expected '.json' (one readable text) or '.suffice' (a zip, for "
            "large arrays)."
        )
    return ending


# --------------------------------------------------------------------------------------------------------------------
# Writing
# --------------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def replacing(path: FilePath) -> Iterator[IO[bytes]]:
    """A new file in the same folder that takes the place of `path` once all of it is on disk."""
    target = os.path.realpath(path)  # A link stays a link; what it points to is replaced.
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "The folder to write into does not exist", folder)
    mode = stat.S_IMODE(os.stat(target).st_mode) if os.path.exists(target) else None
    if mode is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "The file may not be written", target)
    start = f".suffice-{zlib.crc32(os.fsencode(os.path.basename(target))):08x}-"
    _remove_stale(folder, start)
    temporary = os.path.join(folder, f"{start}{os.urandom(8).hex()}.tmp")
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0)
    handle = os.open(temporary, flags, 0o666 if mode is None else mode & 0o700)
    try:
        with os.fdopen(handle, "w+b") as stream:
            _hold(stream.fileno())
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _remove_stale(folder: str, start: str) -> None:
    """Remove what writers of the same file left behind when they were killed.

    Such a file has not been touched for a while and no process holds it. Where one cannot be told, it stays.
    """
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(start) and name.endswith(".tmp"):
                path = os.path.join(folder, name)
                with contextlib.suppress(OSError):
                    if time.time() - os.stat(path).st_mtime > STALE_SECONDS and not _is_held(path):
                        os.unlink(path)


def _hold(handle: int) -> None:
    """Show other processes that someone writes here; the system lets go when the process ends, however it ends."""
    if os.name == "posix":
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_held(path: str) -> bool:
    """Whether a living process writes here; other systems refuse to remove a file that is open."""
    if os.name != "posix":
        return False
    import fcntl

    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _sync_folder(folder: str) -> None:
    """Make the new name durable where the system can; the content already is."""
    if os.name == "posix":
        with contextlib.suppress(OSError):
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


class Packer:
    """Lays arrays end to end, each from a whole float64 on."""

    def __init__(self) -> None:
        self.arrays: list[NDArray[Any]] = []
        self.length = 0

    def put(self, array: NDArray[Any]) -> dict[str, Any]:
        """Append an array; its node says where it starts, counted in float64."""
        offset = self.length
        self.arrays.append(array)
        self.length += -(-array.nbytes // WORD)
        return {"offset": offset}

    def chunks(self) -> Iterator[NDArray[np.uint8]]:
        """The bytes of all arrays in order, little-endian, each filled up with zeros."""
        for array in self.arrays:
            flat = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(-1)
            yield flat.view(np.uint8)
            if rest := -array.nbytes % WORD:
                yield np.zeros(rest, np.uint8)


def _npy_header(length: int) -> bytes:
    """The 128 bytes before the values of a .npy file that holds one vector of float64.

    Written here and compared as a whole when reading, so that no header of a stranger is ever interpreted.
    """
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({length},), }}"
    return b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + text.ljust(117).encode("ascii") + b"\n"


def _write_zip(stream: IO[bytes], text: bytes, arrays: Packer) -> None:
    import zipfile

    header = _npy_header(arrays.length)
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        with archive.open(_member(TEXT, len(text)), "w") as member:
            member.write(text)
        with archive.open(_member(ARRAYS, len(header) + WORD * arrays.length), "w") as member:
            member.write(header)
            for chunk in arrays.chunks():
                member.write(chunk.data)


def _member(name: str, size: int) -> ZipInfo:
    """The same bytes on every day and every system."""
    from zipfile import ZipInfo

    info = ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.create_system = 3
    info.external_attr = 0o644 << 16
    info.file_size = size
    return info


# --------------------------------------------------------------------------------------------------------------------
# Reading
# --------------------------------------------------------------------------------------------------------------------


def _read_json(stream: IO[bytes]) -> Any:
    content = stream.read()
    if content.startswith(b"PK"):
        raise FileFormatError("it is a zip, not a JSON text. If suffice wrote it, its name should end in '.suffice'")
    return loads(content.decode("utf-8"))


def _read_zip(stream: IO[bytes]) -> Any:
    import zipfile

    room = os.fstat(stream.fileno()).st_size
    try:
        archive = zipfile.ZipFile(stream)
    except zipfile.BadZipFile as error:
        raise FileFormatError("it is no zip, or its end is missing") from error
    with archive:
        members = archive.infolist()
        if [member.filename for member in members] != [TEXT, ARRAYS]:
            raise FileFormatError(f"it does not hold {TEXT} and {ARRAYS}, in that order and nothing else")
        for member in members:
            if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
                raise FileFormatError(f"{member.filename} is compressed; suffice stores it as it is")
        if sum(member.file_size for member in members) > room:
            raise FileFormatError("its parts claim to be larger than the file")
        text, values = (archive.read(member) for member in members)
    arrays = Unpacker(values)
    tree = read_text(text.decode("utf-8"), arrays.take)
    arrays.finish()
    return tree


class Unpacker:
    """Gives out the arrays of the flat file in order: no part twice, none left over."""

    def __init__(self, content: bytes) -> None:
        header = _npy_header(0)
        length, rest = divmod(len(content) - len(header), WORD)
        if length < 0 or rest or not content.startswith(_npy_header(length)):
            raise FileFormatError(f"{ARRAYS} is not one vector of float64, as its size says")
        self._values = np.frombuffer(content, dtype=np.uint8, offset=len(header))
        self._place = 0

    def take(self, dtype: np.dtype[Any], shape: tuple[int, ...], fields: dict[str, Any]) -> NDArray[Any]:
        """The next array, in memory of its own."""
        if set(fields) != {"offset"} or type(fields["offset"]) is not int or fields["offset"] * WORD != self._place:
            raise FileFormatError(f"an array does not start at {self._place // WORD}, where the one before it ends")
        size = math.prod(shape) * dtype.itemsize
        if size > len(self._values) - self._place:
            raise FileFormatError(f"an array of shape {shape} and type {dtype.name} goes beyond the end of {ARRAYS}")
        content = self._values[self._place : self._place + size]
        if dtype.kind == "b" and (content > 1).any():
            raise FileFormatError("an array of type bool holds a byte that is neither 0 nor 1")
        self._place += -(-size // WORD) * WORD
        return content.view(dtype.newbyteorder("<")).astype(dtype, copy=True).reshape(shape)

    def finish(self) -> None:
        """Check that nothing is left over."""
        if self._place != len(self._values):
            raise FileFormatError(f"{ARRAYS} holds values that belong to no array")
