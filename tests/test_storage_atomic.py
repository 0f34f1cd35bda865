"""A file is written whole or not at all, whatever happens meanwhile."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice import storage
from suffice.errors import FileFormatError, OptionError


@pytest.mark.parametrize("ending", storage.ENDINGS)
@pytest.mark.parametrize("call", ["fsync", "replace", "chmod"])
def test_a_failure_while_writing_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, ending: str
) -> None:
    path = tmp_path / f"m{ending}"
    storage.save(path, "old")

    def fail(*_: Any) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(os, call, fail)
        with pytest.raises(OSError, match="the disk is full"):
            storage.save(path, ["new", np.arange(1000)])
    assert storage.load(path) == "old"
    assert os.listdir(tmp_path) == [path.name]


def test_what_cannot_be_saved_is_refused_before_a_file_is_touched(tmp_path: Path) -> None:
    storage.save(tmp_path / "m.json", "old")
    with pytest.raises(OptionError, match="set"):
        storage.save(tmp_path / "m.json", {"a": {1, 2}})
    assert storage.load(tmp_path / "m.json") == "old"
    assert os.listdir(tmp_path) == ["m.json"]


INTERRUPTED = """
import os, sys, time
import numpy as np
import suffice as sf
from suffice import storage

def wait(*_):
    print("writing", flush=True)
    time.sleep(60)

setattr(os, sys.argv[2], wait)
storage.save(sys.argv[1], np.arange(100_000.0))
"""


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_killed_process_leaves_the_old_file(tmp_path: Path, call: str) -> None:
    path = tmp_path / "m.suffice"
    storage.save(path, "old")
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED, str(path), call], stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert storage.load(path) == "old"
    # The half-written file has another name, and does not stand in the way of the next one.
    storage.save(path, "new")
    assert storage.load(path) == "new"


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_what_a_killed_writer_left_is_removed_by_the_next_one_unless_it_is_in_use(tmp_path: Path) -> None:
    path = tmp_path / "m.suffice"
    command = [sys.executable, "-c", INTERRUPTED, str(path), "fsync"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "writing\n"
        killed.send_signal(signal.SIGKILL)
    (left,) = tmp_path.glob(".suffice-*.tmp")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as busy:
        assert busy.stdout is not None
        assert busy.stdout.readline() == "writing\n"
        (held,) = set(tmp_path.glob(".suffice-*.tmp")) - {left}
        storage.save(path, "just now")
        assert left.exists()  # It may belong to a writer that has only begun.
        for old in (left, held):
            os.utime(old, (0, 0))
        storage.save(tmp_path / "other.suffice", "another file")
        assert left.exists()
        storage.save(path, "new")
        assert not left.exists()
        assert held.exists()
        busy.kill()
    assert storage.load(path) == "new"


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")
def test_permissions_are_kept_and_new_files_follow_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    before = os.umask(0o027)
    try:
        storage.save(path, 1)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o606)
        storage.save(path, 2)
        assert stat.S_IMODE(path.stat().st_mode) == 0o606
    finally:
        os.umask(before)


def test_a_file_that_may_not_be_written_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.json"
    storage.save(path, "old")
    # Some users may write anything, whatever the permissions say, so the answer of the system is put in its mouth.
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match=r"m\.json"):
        storage.save(path, "new")
    assert storage.load(path) == "old"
    assert os.listdir(tmp_path) == ["m.json"]


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "inner" / "m.json")
    storage.save(link, 1)
    assert link.is_symlink()
    assert storage.load(tmp_path / "inner" / "m.json") == 1


def test_paths_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"m\.pkl.*'\.json'.*'\.suffice'"):
        storage.save(tmp_path / "m.pkl", 1)
    with pytest.raises(OptionError, match=r"'\.json'.*'\.suffice'"):
        storage.load(str(tmp_path / "m"))
    wrongs: tuple[Any, ...] = (5, None, 1.5, b"m.json", ["m.json"])
    for wrong in wrongs:
        for call in (sf.read, sf.Normal(0, 1).write, storage.load, lambda path: storage.save(path, 1)):
            with pytest.raises(OptionError, match="expected the path of a file"):
                call(wrong)
    with pytest.raises(FileNotFoundError, match=r"nowhere"):
        storage.save(tmp_path / "nowhere" / "m.json", 1)
    with pytest.raises(FileNotFoundError, match=r"missing\.json"):
        storage.load(tmp_path / "missing.json")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(FileFormatError, match=r"folder\.json.*is a folder"):
        storage.load(tmp_path / "folder.json")
    with pytest.raises(IsADirectoryError):
        storage.save(tmp_path / "folder.json", 1)
    assert os.listdir(tmp_path) == ["folder.json"]
    storage.save(tmp_path / "LOUD.JSON", 1)
    assert storage.load(tmp_path / "LOUD.JSON") == 1
