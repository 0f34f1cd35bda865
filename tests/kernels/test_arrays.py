"""The one form of arrays that compiled loops see."""

import numpy as np

from suffice.kernels.arrays import frozen


def test_a_fit_array_is_not_copied_and_stays_writable() -> None:
    array = np.arange(6.0).reshape(2, 3)
    view = frozen(array)
    assert np.shares_memory(view, array)
    assert not view.flags.writeable
    assert array.flags.writeable


def test_others_are_copied_into_shape() -> None:
    array = np.arange(12.0).reshape(3, 4)
    buffer = bytearray(8 * 5 + 1)
    odd = np.frombuffer(memoryview(buffer)[1:], np.float64)
    assert not odd.flags.aligned
    for other in (array.T, array[:, ::2], odd, array.astype(np.float32)):
        view = frozen(other, np.float64)
        assert view.flags.c_contiguous
        assert view.flags.aligned
        assert view.dtype == np.float64
        np.testing.assert_array_equal(view, other)
