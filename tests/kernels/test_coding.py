"""Recoding by a table."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from suffice.errors import DataError
from suffice.kernels import choice
from suffice.kernels.coding import remap

PATHS = ("numpy", "compiled")
INTEGERS: list[Any] = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
UNSIGNED = [np.uint8, np.uint16, np.uint32]


@st.composite
def problems(draw: st.DrawFn) -> tuple[NDArray[Any], NDArray[Any], int]:
    dtype: Any = draw(st.sampled_from(INTEGERS))
    table = draw(hnp.arrays(draw(st.sampled_from(UNSIGNED)), st.sampled_from([0, 1, 4, 127, 128, 129, 255, 256, 300])))
    info = np.iinfo(dtype)
    codes = draw(
        hnp.arrays(
            dtype,
            st.integers(0, 20),
            elements=st.one_of(
                st.integers(int(info.min), int(info.max)), st.integers(0, min(int(info.max), len(table) + 1))
            ),
        )
    )
    return codes, table, draw(st.integers(0, int(np.iinfo(table.dtype).max)))


@pytest.mark.parametrize("path", PATHS)
@given(problems())
@settings(max_examples=200)
def test_codes_in_range_are_looked_up_and_others_become_gaps(
    path: str, problem: tuple[NDArray[Any], NDArray[Any], int]
) -> None:
    codes, table, gap = problem
    with choice.force(path):
        found = remap(codes, table, gap)
    assert found.dtype == table.dtype
    assert found.tolist() == [int(table[code]) if 0 <= code < len(table) else gap for code in codes.tolist()]


@pytest.mark.parametrize("path", PATHS)
def test_the_result_can_be_written_to_a_wider_array(path: str) -> None:
    codes = np.arange(-1, 99_999, dtype=np.int64) % 5 - 1
    out = np.empty(100_000, np.uint16)
    with choice.force(path):
        assert remap(codes, np.array([3, 2, 1, 0], np.uint8), 200, out=out) is out
    np.testing.assert_array_equal(out, np.where(codes < 0, 200, 3 - codes))


def test_arguments_are_checked() -> None:
    table = np.zeros(2, np.uint8)
    with pytest.raises(DataError, match="type float64"):
        remap(np.zeros(3), table, 0)
    with pytest.raises(DataError, match="code 256 of a missing value does not fit in the type uint8"):
        remap(np.zeros(3, int), table, 256)
    with pytest.raises(DataError, match=r"out has shape \(4,\)"):
        remap(np.zeros(3, int), table, 0, out=np.zeros(4, np.uint8))
    with pytest.raises(DataError, match="at least uint16"):
        remap(np.zeros(3, int), table.astype(np.uint16), 0, out=np.zeros(3, np.uint8))
