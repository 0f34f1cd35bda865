"""Approximate solvers of Markov networks, from rows that stay where they are: as from rows in memory."""

from __future__ import annotations

import pickle
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import pytest

import suffice as sf
from suffice.models.em import held_rows
from suffice.models.markov import task
from suffice.models.markov.approximate import held_sample, rows
from suffice.models.markov.approximate.held_sample import KeepSample
from suffice.sources import shards as shards_of_batches
from suffice.sources import stream

pytestmark = pytest.mark.filterwarnings("ignore::suffice.errors.SufficeWarning")

ROWS, NAMES = 500, [f"v{number}" for number in range(13)]
EDGES = list(pairwise(NAMES))
SAMPLING = sf.GibbsSampling(chains=16, burn_in=5, draws=20)


def table() -> pd.DataFrame:
    """Thirteen columns, each of which follows the one before; the states of the first come in falling order."""
    rng = np.random.default_rng(0)
    columns = [np.sort(rng.integers(0, 3, ROWS))[::-1]]
    for _ in NAMES[1:]:
        columns.append(np.where(rng.random(ROWS) < 0.4, rng.integers(0, 3, ROWS), columns[-1]))
    return pd.DataFrame({name: np.array(["a", "b", "c"])[codes] for name, codes in zip(NAMES, columns, strict=True)})


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    table().to_parquet(path, row_group_size=50)
    return str(path)


@pytest.fixture
def shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several small shards, and nobody who reads all rows."""
    monkeypatch.setattr(shards_of_batches, "SHARD_BYTES", 1)
    monkeypatch.setattr(stream, "BATCH_ROWS", 100)

    def read_rows(source: Any, *others: Any) -> Any:
        assert source.residence == "memory"
        return rows.read_rows(source, *others)

    monkeypatch.setattr(task, "read_rows", read_rows)


def network(solver: Any, **more: Any) -> sf.MarkovNetwork:
    options = {"sampling": SAMPLING, "random_state": 0, "max_iter": 15, **more}
    return sf.MarkovNetwork(EDGES, solver=solver, **options)


def sources(path: str) -> dict[str, Any]:
    frame = dd.from_pandas(pd.read_parquet(path), npartitions=4)
    return {"Parquet": path, "DuckDB": duckdb.sql(f"select * from '{path}'"), "Dask": frame}


SOLVERS: dict[str, dict[str, Any]] = {
    "pseudolikelihood": {"solver": "pseudolikelihood"},
    "a normal prior": {"solver": "pseudolikelihood", "prior": sf.Normal(variance=2.0)},
    "a Laplace prior": {"solver": "pseudolikelihood", "prior": sf.Laplace(scale=0.1)},
    "contrastive divergence": {"solver": "cd"},
    "minibatches": {"solver": "sml", "batch_size": 20},
    "persistent chains": {"solver": "sml"},
    "loopy propagation": {"solver": "loopy-bp"},
}


@pytest.mark.usefixtures("shards")
@pytest.mark.parametrize("kind", SOLVERS)
def test_a_network_learned_where_its_rows_are_is_that_of_rows_in_memory(kind: str, parquet: str) -> None:
    frame = pd.read_parquet(parquet)
    there = network(**SOLVERS[kind]).fit(frame)
    for name, data in sources(parquet).items():
        here = network(**SOLVERS[kind]).fit(data)
        np.testing.assert_allclose(here.weights_, there.weights_, rtol=0, atol=1e-10, err_msg=name)
        np.testing.assert_allclose(here.history_, there.history_, rtol=1e-10, atol=1e-10, err_msg=name)
        assert here.statistics_ == there.statistics_
        assert here.report_.log_likelihood == pytest.approx(there.report_.log_likelihood, rel=1e-10)
        assert here.report_.objective == pytest.approx(there.report_.objective, rel=1e-10)
        held = any(re.search("over (10|[2-9]) shards; the rows stayed", note) for note in here.report_.warnings)
        assert held == (kind not in ("persistent chains", "loopy propagation"))
        assert here.score(data) == pytest.approx(there.score(frame), rel=1e-10)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(here)).weights_, here.weights_)


@pytest.mark.usefixtures("shards")
def test_what_travels_are_log_potentials_and_sums(parquet: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    evaluate = KeepSample.evaluate

    def measured(self: KeepSample, shard: Any, logs: Any) -> Any:
        answer = evaluate(*pickle.loads(pickle.dumps((self, shard, logs))))
        sizes.append(len(pickle.dumps((logs, answer))))
        return answer

    monkeypatch.setattr(KeepSample, "evaluate", measured)
    cells = 12 * 9
    network("pseudolikelihood").fit(parquet)
    assert sizes
    assert max(sizes) < 2 * 8 * cells + 1000 < table().size


@pytest.mark.usefixtures("shards")
def test_weights_of_rows_and_shards_that_are_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Rows are drawn by the running sum of the weights; equal shards are told apart by nothing, and need not be.
    monkeypatch.setattr(held_sample, "AHEAD", 1_000)
    half = table()[:100].assign(w=np.arange(100) % 3)
    frame = pd.concat([half, half, table()[100:150].assign(w=2)], ignore_index=True)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    for solver in ("cd", "pseudolikelihood"):
        here = network(solver).fit(str(tmp_path / "rows.parquet"), sample_weight="w")
        there = network(solver).fit(frame[NAMES], sample_weight=frame["w"].to_numpy())
        np.testing.assert_allclose(here.weights_, there.weights_, rtol=0, atol=1e-10)
        assert here.report_.rows == there.report_.rows == 250


@pytest.mark.usefixtures("shards")
def test_rows_with_missing_values_are_named(tmp_path: Path) -> None:
    frame = table()
    frame.loc[[3, 300], "v4"] = None
    frame.to_parquet(tmp_path / "gaps.parquet")
    with pytest.raises(sf.errors.MissingValueError, match=r"'v4' \(2 of 500 rows\).*drop the rows"):
        network("pseudolikelihood").fit(tmp_path / "gaps.parquet")
    with pytest.raises(sf.errors.MissingValueError, match=r"'v4' \(2 of 500 rows\).*missing='em'"):
        network("sml", missing="raise").fit(tmp_path / "gaps.parquet")


@pytest.mark.usefixtures("shards")
def test_chains_clamped_at_rows_begin_anew_where_too_many_rows_differ(
    parquet: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = [("h", "k"), *(("h", name) for name in NAMES)]
    hidden = sf.MarkovNetwork(
        edges, hidden={"h": 2, "k": 2}, solver="sml", sampling=SAMPLING, random_state=0, max_iter=5
    )
    there = hidden.clone().fit(pd.read_parquet(parquet))
    np.testing.assert_array_equal(hidden.clone().fit(parquet).weights_, there.weights_)
    monkeypatch.setattr(held_rows, "FEW_NUMBERS", 1_000)
    fits = {name: hidden.clone().fit(data) for name, data in sources(parquet).items()}
    # Equal rows in several shards, others in each, and as one row with a weight.
    frame = pd.read_parquet(parquet).sample(frac=1.0, random_state=1)
    pd.concat([frame, frame[:100]]).assign(w=np.repeat([0.5, 1.0, 0.5], [100, 400, 100])).to_parquet(
        tmp_path / "rows.parquet", row_group_size=70
    )
    fits["in another order"] = hidden.clone().fit(str(tmp_path / "rows.parquet"), sample_weight="w")
    first = fits["Parquet"]
    assert "begun anew at rows in each round, for 5 sweeps" in first.report_.method
    for name, fit in fits.items():
        np.testing.assert_allclose(fit.weights_, first.weights_, rtol=0, atol=1e-10, err_msg=name)
        assert fit.report_.log_likelihood == pytest.approx(first.report_.log_likelihood, rel=1e-10)
        assert any("the rows stayed" in note for note in fit.report_.warnings)


@pytest.mark.parametrize("declared", [True, False])
def test_few_variables_of_many_joint_states_are_learned_from_rows_too(declared: bool, parquet: str) -> None:
    # Beyond 65,536 joint states no joint counts are kept. A variable apart from all others changes no other weight.
    frame, names = pd.read_parquet(parquet)[NAMES[:12]], NAMES[:12]
    options: dict[str, Any] = {"solver": "pseudolikelihood", "tolerance": 1e-9}
    if declared:
        options["states"] = {name: ["a", "b", "c"] for name in names}
    few = sf.MarkovNetwork(list(pairwise(names)), **options)
    many = sf.MarkovNetwork([*pairwise(names), (NAMES[12],)], solver="pseudolikelihood", tolerance=1e-9)
    expected = many.fit(pd.read_parquet(parquet)).weights_[: 11 * 9]
    for data in (frame, parquet):
        weights = few.clone().fit(data).weights_
        np.testing.assert_allclose(weights, expected, rtol=0, atol=1e-6)


def test_sites_learn_by_sums_and_release_no_rows_that_are_drawn() -> None:
    frame = table()
    rounds = sf.Rounds([sf.Site(frame[:200], name="a"), sf.Site(frame[200:].reset_index(drop=True), name="b")])
    here, there = network("pseudolikelihood").fit(rounds), network("pseudolikelihood").fit(frame)
    np.testing.assert_allclose(here.weights_, there.weights_, rtol=0, atol=1e-10)
    with pytest.raises(sf.errors.DataError, match="holds rows, and none are released"):
        network("cd").fit(rounds)
