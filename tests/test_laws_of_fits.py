"""What holds for every model that reads rows: their order is nothing, nor is that of columns, nor what states are
called, and a weight counts repetitions.
"""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from table_fits import READERS, TABLES, parameters, same, same_figures

#: Other names, that sort the other way round.
NAMES = {"x": "2 x", "y": "1 y", "p": "2 p", "q": "1 q"}


def frame_of(name: str) -> pd.DataFrame:
    return pd.DataFrame(TABLES[READERS[name][0]])


@pytest.mark.parametrize("name", READERS)
def test_the_order_of_rows_is_nothing(name: str) -> None:
    frame, read = frame_of(name), READERS[name][1]
    shuffled = frame.iloc[np.random.default_rng(3).permutation(len(frame))].reset_index(drop=True)
    same(read(frame), read(shuffled))


@pytest.mark.parametrize("name", [name for name in READERS if name != "multivariate-normal"])
def test_the_order_of_columns_is_nothing(name: str) -> None:
    frame, read = frame_of(name), READERS[name][1]
    same(read(frame), read(frame[frame.columns[::-1]]))


@pytest.mark.parametrize("name", READERS)
def test_a_weight_counts_repetitions(name: str) -> None:
    frame, read = frame_of(name), READERS[name][1]
    times = np.random.default_rng(4).integers(0, 4, len(frame))
    repeated = frame.loc[frame.index.repeat(times)].reset_index(drop=True)
    one, other = read(repeated), read(frame, times)
    same_figures(one.report_, other.report_)
    for path, value in numbers_of(one).items():
        np.testing.assert_allclose(numbers_of(other)[path], value, rtol=1e-9, atol=1e-10, err_msg=path)


@pytest.mark.parametrize("name", [name for name in READERS if READERS[name][0] in ("rows", "gaps", "mixed")])
def test_the_names_of_states_are_nothing(name: str) -> None:
    frame, read = frame_of(name), READERS[name][1]
    same_figures(read(frame).report_, read(frame.replace(NAMES)).report_)


def numbers_of(model: Any) -> dict[str, Any]:
    """All numbers of a fit that are no counts of rows."""
    from table_fits import numbers

    found = dict(numbers(parameters(model)))
    return {
        path: value
        for path, value in found.items()
        if isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")
    }
