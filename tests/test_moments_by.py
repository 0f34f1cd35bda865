"""Moments of real columns by joint states of discrete ones: asked, answered, added, taken out, aligned and saved."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import suffice as sf
from suffice.answers import MomentSums
from suffice.grouped_answers import MomentsByTable
from suffice.sources import open_source, summarize_source
from suffice.statistics import Moments, MomentsBy, Statistic, Summary

ASKED = MomentsBy(("x", "y"), ("a", "b"))


def table(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "x": rng.normal(1e5, 1.0, rows),
            "a": rng.choice(list("pqr"), rows),
            "y": rng.normal(size=rows),
            "b": rng.choice([1, 2], rows),
        }
    )


def summary(frame: pd.DataFrame, *statistics: Statistic, weights: Any = None, missing: Any = "raise") -> Summary:
    source = open_source(frame, sample_weight=weights)
    return summarize_source(source, source.infer(), statistics or (ASKED,), missing=missing)


def test_against_a_loop_over_the_groups() -> None:
    frame = table(200)
    found = summary(frame)[ASKED]
    groups = list(frame.groupby(["a", "b"]))
    assert len(found) == len(groups) == 6
    for place, ((a, b), part) in enumerate(groups):
        assert found.cells[place].tolist() == ["pqr".index(a), b - 1]
        values = part[["x", "y"]].to_numpy()
        assert found.weight[place] == len(part)
        np.testing.assert_allclose(found.mean[place], values.mean(axis=0), rtol=1e-14)
        away = values - values.mean(axis=0)
        np.testing.assert_allclose(found.scatter[place], away.T @ away, rtol=1e-10)
        np.testing.assert_allclose(found.at(place).scatter, found.scatter[place], rtol=1e-15)


def test_groups_together_are_the_moments_of_all_rows() -> None:
    found = summary(table(100), ASKED, Moments(("x", "y")))
    assert found[ASKED].pooled() == found[Moments(("x", "y"))]
    assert found[ASKED].select([1]).pooled() == found[Moments(("x", "y"))].select([1])
    nothing = summary(table(0), ASKED)[ASKED]
    assert nothing.pooled() == MomentSums(np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2, 2)))


def test_no_discrete_variable_is_one_group() -> None:
    asked = MomentsBy(("x", "y"))
    found = summary(table(50), asked, Moments(("x", "y")))
    assert found[asked].cells.shape == (1, 0)
    assert found[asked].at(0) == found[Moments(("x", "y"))]


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 99))
def test_parts_add_and_subtract(first: int, second: int, seed: int) -> None:
    frame = table(first + second, seed)
    left, right = summary(frame[:first]), summary(frame[first:])
    whole = summary(frame)
    assert left + right == whole == right + left
    back = (left + right) - right
    assert (back.rows, back[ASKED].cells.tolist()) == (first, left.align(whole.domain)[ASKED].cells.tolist())
    for name in MomentsByTable.pairs:
        mine, theirs = getattr(back[ASKED], name)[0], getattr(left[ASKED], name)[0]
        np.testing.assert_allclose(mine, theirs, rtol=1e-13, atol=1e-13)


def test_states_are_matched_by_label() -> None:
    frame = table(60)
    early, late = frame[frame.a != "p"], frame[frame.a == "p"]
    assert summary(early).domain["a"].states == ("q", "r")
    assert summary(early) + summary(late) == summary(frame)


def test_weights_count_rows() -> None:
    frame = table(30)
    weights = np.arange(30) % 3
    assert summary(frame, weights=weights)[ASKED] == summary(frame.loc[frame.index.repeat(weights)])[ASKED]
    twice = 2.0 * summary(frame)
    assert twice[ASKED] == summary(pd.concat([frame, frame]))[ASKED]
    assert len((summary(frame) * 0.0)[ASKED]) == 0


def test_gaps() -> None:
    frame = table(40)
    frame.loc[3, "x"] = np.nan
    frame.loc[5, "a"] = None
    with pytest.raises(sf.MissingValueError, match="Column 'x' has 1 missing value"):
        summary(frame)
    assert summary(frame, missing="available")[ASKED] == summary(frame.drop([3, 5]))[ASKED]


def test_rows_never_in_are_refused() -> None:
    frame = table(20)
    other = table(20, seed=1)
    with pytest.raises(sf.MergeError, match="never in"):
        summary(frame[frame.a == "p"]) - summary(other[other.a == "q"][:1])


@pytest.mark.parametrize("ending", [".json", ".suffice"])
def test_saved_and_loaded(tmp_path: Path, ending: str) -> None:
    found = summary(table(50))
    path = tmp_path / f"summary{ending}"
    found.write(path)
    assert sf.read(path) == found


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("cells", lambda cells: cells[::-1].copy()),
        ("cells", lambda cells: cells + 9),
        ("cells", lambda cells: cells.astype(np.int64)),
        ("weight_pair", lambda pair: pair * 0.0),
        ("total_pair", lambda pair: pair[:, :, :1]),
        ("cross_pair", lambda pair: pair * np.nan),
    ],
)
def test_damaged_answers_are_refused(name: str, change: Any) -> None:
    found = summary(table(50))
    plain = found.to_dict()
    answer = plain["answers"][0]["answer"]
    assert MomentsByTable.from_dict(answer, ASKED.columns, found.domain) == found[ASKED]
    with pytest.raises(sf.FileFormatError):
        MomentsByTable.from_dict({**answer, name: change(answer[name])}, ASKED.columns, found.domain)


def test_questions_are_checked() -> None:
    with pytest.raises(sf.OptionError, match="names a variable twice"):
        MomentsBy(("x",), ("x",))
    with pytest.raises(sf.OptionError, match="give a list of them"):
        MomentsBy(("x",), "ab")  # type: ignore[arg-type]
    with pytest.raises(sf.OptionError, match="needs discrete variables, and 'y' is real"):
        summary(table(5), MomentsBy(("x",), ("y",)))
    with pytest.raises(sf.OptionError, match="needs real variables, and 'a' is discrete"):
        summary(table(5), MomentsBy(("a",), ("b",)))
