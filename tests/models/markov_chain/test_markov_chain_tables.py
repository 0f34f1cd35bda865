"""Chains of tables that stay where they are: the same counts from lists, frames, files, databases and partitions."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf


def steps(people: int = 60, seed: int = 4) -> pd.DataFrame:
    """Walks of several lengths, one a person, in order; some states turn up late."""
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(people):
        letters = "abc" if person < people // 2 else "0abcd"
        state = 0
        for time in range(int(rng.integers(1, 25))):
            state = state if rng.random() < 0.5 else int(rng.integers(len(letters)))
            rows.append((f"p{person:03d}", time, letters[state], 1.0 + person % 3))
    return pd.DataFrame(rows, columns=["person", "time", "state", "weight"])


STEPS = steps()
FORM: dict[str, Any] = {"group": "person", "columns": "state"}
CHAINS = {
    "order 0": sf.MarkovChain(0),
    "order 1": sf.MarkovChain(1),
    "order 2, bounds": sf.MarkovChain(2, bounds=True),
    "order 3": sf.MarkovChain(3),
    "interpolation": sf.MarkovChain(2, smoothing=sf.Interpolation("deleted")),
    "discounts": sf.MarkovChain(3, smoothing="kneser-ney", bounds=True),
    "a learned prior": sf.MarkovChain(1, prior=1.0, learn_prior=True),
    "unknown words": sf.MarkovChain(1, unknown="?", min_count=20, smoothing="absolute"),
    "declared states": sf.MarkovChain(1, states=list("dcba0"), prior=0.5),
}


def lists(frame: pd.DataFrame) -> list[list[str]]:
    return [group["state"].tolist() for _, group in frame.groupby("person", sort=False)]


def assert_same(left: sf.MarkovChain, right: sf.MarkovChain) -> None:
    assert left.states_ == right.states_
    assert left.statistics_ == right.statistics_
    assert left.n_iter_ == right.n_iter_
    assert left.report_.log_likelihood == pytest.approx(right.report_.log_likelihood, rel=1e-12)
    for history in ("aaa", "abc"):
        row, other = (np.asarray(chain.row(list(history)).values) for chain in (left, right))
        np.testing.assert_allclose(row, other, rtol=1e-10)


@pytest.mark.parametrize("name", CHAINS)
def test_tables_elsewhere_give_the_counts_of_lists(name: str, tmp_path: Path) -> None:
    duckdb, dask = pytest.importorskip("duckdb"), pytest.importorskip("dask.dataframe")
    path, mixed = tmp_path / "steps.parquet", tmp_path / "mixed.csv"
    shuffled = STEPS.sample(frac=1.0, random_state=5).reset_index(drop=True)
    STEPS.to_parquet(path, row_group_size=37)
    shuffled.to_csv(mixed, index=False)
    right = CHAINS[name].clone().fit(lists(STEPS))
    assert_same(CHAINS[name].clone().fit(STEPS, **FORM), right)
    for limit in (None, 4_000):
        small = CHAINS[name].clone().set_params(memory_limit=limit)
        assert_same(small.fit(path, **FORM), right)
        assert_same(small.fit(str(mixed), order="time", **FORM), right)
    assert_same(CHAINS[name].clone().fit(duckdb.from_df(shuffled), order="time", **FORM), right)
    assert_same(CHAINS[name].clone().fit(dask.from_pandas(shuffled, npartitions=4), order="time", **FORM), right)


def test_a_chain_is_scored_joined_and_left_where_the_table_is(tmp_path: Path) -> None:
    early, late = tmp_path / "early.parquet", tmp_path / "late.parquet"
    half = STEPS["person"] < "p030"
    STEPS[half].to_parquet(early, row_group_size=50)
    STEPS[~half].to_parquet(late, row_group_size=50)
    whole = sf.MarkovChain(2, prior=1.0).fit(lists(STEPS))
    chain = sf.MarkovChain(2, prior=1.0, memory_limit=5_000).fit(early, **FORM).partial_fit(late, **FORM)
    assert_same(chain, whole)
    assert chain.score(late, **FORM) == pytest.approx(whole.score(lists(STEPS[~half])), rel=1e-13)
    assert chain.perplexity(late, **FORM) == pytest.approx(whole.perplexity(lists(STEPS[~half])), rel=1e-13)
    never = sf.MarkovChain(2, prior=1.0).fit(lists(STEPS[half]))
    np.testing.assert_allclose(chain.unlearn(late, **FORM).transitions_.values, never.transitions_.values, rtol=1e-12)


def test_summaries_of_tables_with_groups_add_up(tmp_path: Path) -> None:
    path, chain = tmp_path / "steps.parquet", sf.MarkovChain(2)
    half = STEPS["person"] < "p030"
    STEPS[half].to_parquet(path)
    parts = [sf.summarize(chain, data, group="person", order="time", columns="state") for data in (path, STEPS[~half])]
    assert parts[0] + parts[1] == sf.summarize(chain, lists(STEPS))
    assert_same(sf.MarkovChain(2).fit(parts[0] + parts[1]), sf.MarkovChain(2).fit(lists(STEPS)))
    with pytest.raises(sf.OptionError, match="group= tells sequences"):
        sf.summarize(sf.Categorical(), STEPS, columns="state", group="person")
    with pytest.raises(sf.OptionError, match="group= tells sequences"):
        sf.summarize(sf.Counts(("state",)), STEPS, group="person")


def test_weights_and_missing_values_name_the_row(tmp_path: Path) -> None:
    path = tmp_path / "steps.parquet"
    STEPS.to_parquet(path, row_group_size=41)
    weighted = [sf.MarkovChain().fit(data, sample_weight="weight", **FORM) for data in (STEPS, path)]
    assert_same(weighted[1], weighted[0])
    repeated = [walk for walk, weight in zip(lists(STEPS), [1, 2, 3] * 20, strict=True) for _ in range(weight)]
    np.testing.assert_allclose(weighted[1].transitions_.values, sf.MarkovChain().fit(repeated).transitions_.values)
    STEPS.assign(weight=range(len(STEPS))).to_parquet(path)
    with pytest.raises(sf.DataError, match=r"weights 'weight' changes within a sequence \(row"):
        sf.MarkovChain().fit(path, sample_weight="weight", **FORM)
    STEPS.assign(state=STEPS["state"].where(STEPS.index != 77)).to_parquet(path)
    with pytest.raises(sf.MissingValueError, match=r"'state' has a missing value \(row 77\)"):
        sf.MarkovChain(memory_limit=4_000).fit(path, **FORM)
    with pytest.raises(sf.DataError, match=r"2 observations \('time', 'state'\)"):
        sf.MarkovChain().fit(path, group="person", columns=["time", "state"])


PEAK = """
import re, sys
import suffice as sf
chain = sf.MarkovChain(3, memory_limit="8MB").fit(sys.argv[1], group="group", columns="state")
print(chain.report_.rows, re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read in /proc")
def test_memory_does_not_follow_the_steps(tmp_path: Path) -> None:
    peaks = []
    for rows in (400_000, 1_600_000):
        numbers = np.arange(rows)
        table = pd.DataFrame({"group": numbers // 7, "state": np.array(list("abcd"))[(numbers * 7919 >> 4) % 4]})
        path = tmp_path / f"{rows}.parquet"
        table.to_parquet(path, row_group_size=50_000)
        answer = subprocess.run([sys.executable, "-c", PEAK, path], capture_output=True, text=True, check=True)
        counted, peak = map(int, answer.stdout.split())
        assert counted == rows
        peaks.append(peak)
    # Three times the rows more would be 100 MB of labels alone.
    assert peaks[1] < 1.2 * peaks[0]
