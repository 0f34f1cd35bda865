"""The vectorised exponential against that of NumPy."""

import math

import numpy as np
import pytest

from suffice.kernels.compiled.exponentials import LEAST, exponentials


@pytest.mark.parametrize("least", [-1e-6, -0.5, -1.0, -30.0, -707.9])
def test_no_number_is_further_off_than_two_units_of_its_last_place(least: float) -> None:
    logs = np.random.default_rng(0).uniform(least, 0.0, 20_001)
    logs[17] = 0.0
    found = logs.copy()
    shift, lowest = exponentials(found, np.array([0, len(logs)], np.uint64))
    expected = np.exp(logs)
    assert shift == 0.0
    assert lowest == logs.min()
    assert (np.abs(found - expected) <= 2.0 * np.spacing(expected)).all()


def test_each_table_is_shifted_by_its_largest_number() -> None:
    logs = np.array([3.0, 1.0, -5.0, -5.0, -6.0, 900.0])
    found = logs.copy()
    shift, lowest = exponentials(found, np.array([0, 2, 5, 5, 6], np.uint64))
    assert shift == 3.0 - 5.0 + 0.0 + 900.0
    assert lowest == -2.0
    np.testing.assert_allclose(found, [1.0, math.exp(-2.0), 1.0, 1.0, math.exp(-1.0), 1.0], rtol=4e-16)


def test_zeros_stay_zeros_and_what_is_lost_is_told() -> None:
    logs = np.array([-math.inf, 4.0, -math.inf, -math.inf])
    shift, lowest = exponentials(logs, np.array([0, 2, 4], np.uint64))
    assert (shift, lowest) == (4.0, 0.0)
    assert logs.tolist() == [0.0, 1.0, 0.0, 0.0]
    logs = np.array([0.0, LEAST, LEAST - 1.0, -math.inf])
    assert exponentials(logs, np.array([0, 4], np.uint64)) == (0.0, LEAST - 1.0)
    assert logs[1] == pytest.approx(math.exp(LEAST), rel=1e-15)
    assert logs[2:].tolist() == [0.0, 0.0]
