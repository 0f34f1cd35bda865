"""Files whose arrays are mapped: what was written comes back, to write on without a trace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.sources.shard_files import mapped_objects, write_objects


@pytest.mark.parametrize("by", ["pickle", "cloudpickle"])
def test_objects_come_back(by: str, tmp_path: Path) -> None:
    pytest.importorskip(by)
    rng = np.random.default_rng(2)
    values: list[Any] = [
        {"C": rng.normal(size=(5, 3)), "F": np.asfortranarray(rng.normal(size=(4, 7))), "none": np.empty((0, 2))},
        (np.arange(3, dtype=np.int8), "text", np.array(["ab", "c"]), np.arange(10)[::3]),
        None,
    ]
    path = tmp_path / "folder" / "objects"
    write_objects(path, values, by)
    first, second, third = mapped_objects(path)
    assert third is None
    for name, right in values[0].items():
        np.testing.assert_array_equal(first[name], right)
        assert first[name].flags.c_contiguous == right.flags.c_contiguous
    for value, right in zip(second, values[1], strict=True):
        np.testing.assert_array_equal(value, right)
    first["C"][:] = 0.0
    np.testing.assert_array_equal(next(mapped_objects(path))["C"], values[0]["C"])
    assert first["C"].ctypes.data % 64 == 0


def test_an_empty_file_and_one_that_was_not_finished(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "objects"
    write_objects(path, [], "pickle")
    assert list(mapped_objects(path)) == []

    def failing() -> Iterator[Any]:
        yield np.ones(3)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_objects(path.with_name("other"), failing(), "pickle")
    assert [one.name for one in path.parent.iterdir()] == ["objects"]
    with pytest.raises(FileNotFoundError):
        mapped_objects(path.with_name("other"))
