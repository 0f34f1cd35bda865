"""A state that turns up late renumbers those before it: fits of rows that come in batches equal those in memory."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import suffice as sf

NAMES = [f"v{number}" for number in range(13)]
EDGES = list(pairwise(NAMES))


def late_states(rows: int = 600) -> pd.DataFrame:
    """Thirteen columns, too many for a joint table; the first states in order come last in some of them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: np.array(["a", "b"])[rng.integers(0, 2, rows)] for name in NAMES})
    frame.loc[rows // 4 :, "v1"] = frame["v0"][rows // 4 :]
    frame.loc[: rows // 2 - 1, "v0"] = "b"
    frame.loc[:99, "v5"] = "c"
    frame.loc[200:, "v5"] = "b"
    return frame


def dask_frame(frame: pd.DataFrame, folder: Path) -> Any:
    parts = [frame[:0], frame[:70], frame[70:80], frame[80:80], frame[80:]]
    for number, part in enumerate(parts):
        part.to_parquet(folder / f"part{number}.parquet")
    return pytest.importorskip("dask.dataframe").read_parquet(folder / "part*.parquet")


def parquet_file(frame: pd.DataFrame, folder: Path) -> Path:
    frame.to_parquet(folder / "rows.parquet", row_group_size=50)
    return folder / "rows.parquet"


def csv_file(frame: pd.DataFrame, folder: Path) -> Path:
    frame.to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


FORMS: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "Parquet": parquet_file,
    "CSV": csv_file,
    "polars lazy": lambda frame, _: pl.LazyFrame(frame),
    "DuckDB": lambda frame, _: pytest.importorskip("duckdb").from_df(frame),
    "Arrow reader": lambda frame, _: pa.Table.from_pandas(frame).to_reader(max_chunksize=64),
    "Dask": dask_frame,
}


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[pd.DataFrame, Path], Any]:
    monkeypatch.setattr("suffice.sources.stream.BATCH_ROWS", 64)
    monkeypatch.setattr("suffice.sources.csv.BLOCK_BYTES", 2048)
    return FORMS[request.param]


def law_of(solver: Any, data: Any) -> Any:
    sampling = sf.GibbsSampling(chains=8, burn_in=5, draws=20)
    model = sf.MarkovNetwork(EDGES, solver=solver, sampling=sampling, random_state=0, max_iter=20)
    return model.fit(data)


@pytest.mark.filterwarnings("ignore::suffice.SufficeWarning")
@pytest.mark.parametrize("solver", ["pseudolikelihood", "sml", "cd", "loopy-bp"])
def test_approximate_markov_networks(solver: str, form: Any, tmp_path: Path) -> None:
    frame = late_states()
    streamed, here = law_of(solver, form(frame, tmp_path)), law_of(solver, frame)
    assert streamed.statistics_.domain["v5"].states == ("a", "b", "c")
    assert streamed.statistics_ == here.statistics_
    # Shards add up in another order than rows, which shows in the last digits of a weight that runs to infinity.
    np.testing.assert_allclose(streamed.weights_, here.weights_, rtol=1e-14, atol=1e-12)


@pytest.mark.filterwarnings("ignore:.*no maximum:suffice.ConvergenceWarning")
def test_weights_of_rows_travel_with_their_codes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.sources.stream.BATCH_ROWS", 64)
    frame = late_states().assign(w=np.random.default_rng(1).integers(0, 4, 600))
    model = sf.MarkovNetwork(EDGES, solver="pseudolikelihood")
    streamed = model.fit(parquet_file(frame, tmp_path), sample_weight="w").weights_
    here = model.fit(frame[NAMES], sample_weight=frame["w"].to_numpy()).weights_
    np.testing.assert_allclose(streamed, here, rtol=0.0, atol=1e-12)


def test_more_states_than_a_byte_holds_are_refused_in_batches_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("suffice.sources.stream.BATCH_ROWS", 64)
    frame = late_states().assign(v0=[f"s{number}" for number in range(600)])
    with pytest.raises(sf.errors.SizeError, match="states; approximate solvers take at most 255"):
        sf.MarkovNetwork(EDGES, solver="pseudolikelihood").fit(parquet_file(frame, tmp_path))


# -- other models whose batches are coded ----------------------------------------------------------------------------


def _gappy(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(v1=frame["v1"].where(np.arange(len(frame)) % 7 > 0, None))


FITS: dict[str, Callable[[Any], Any]] = {
    "tables": lambda data: sf.BayesianNetwork([("v0", "v1"), ("v5", "v1")]).fit(data).table("v1").values,
    "log-linear": lambda data: sf.MarkovNetwork([("v0", "v1"), ("v5", "v1"), ("v0", "v5")]).fit(data).weights_,
    "regression": lambda data: sf.GLM("binomial").fit(data, y="v3", columns=["v0", "v5"]).coefficients_,
    "labels": lambda data: sf.GLM("multinomial").fit(data, y="v5", columns=["v4", "v6"]).coefficients_,
    "chain": lambda data: sf.MarkovChain(prior=1.0).fit(data, group="v0", order="n", columns="v5").transitions_.values,
}


@pytest.mark.parametrize("name", FITS)
def test_every_model_that_reads_in_batches(name: str, form: Any, tmp_path: Path) -> None:
    frame = late_states()
    frame = frame.assign(n=np.arange(len(frame)))
    data = form(frame, tmp_path)
    if name == "chain" and isinstance(data, pa.RecordBatchReader):
        return  # An iterator of sequences.
    if isinstance(data, pa.RecordBatchReader) and name in ("regression", "labels"):
        with pytest.raises(sf.errors.DataError, match="can be read only once"):
            FITS[name](data)
        return
    np.testing.assert_allclose(FITS[name](data), FITS[name](frame), rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("kind", ["network", "field"])
def test_em_from_batches(kind: str, form: Any, tmp_path: Path) -> None:
    frame = _gappy(late_states())
    data = form(frame, tmp_path)
    if isinstance(data, pa.RecordBatchReader):
        with pytest.raises(sf.errors.DataError, match="can be read only once"):
            sf.BayesianNetwork([("v0", "v1")]).fit(data)
        return
    model: Any = sf.BayesianNetwork if kind == "network" else sf.MarkovNetwork
    fits = [model([("v0", "v1"), ("v5", "v1")], tolerance=1e-10).fit(where) for where in (data, frame)]
    streamed, here = (fit.query(["v0", "v1", "v5"]).values for fit in fits)
    np.testing.assert_allclose(streamed, here, rtol=0.0, atol=1e-9)


def test_a_first_batch_without_a_single_state(form: Any, tmp_path: Path) -> None:
    """A column of labels whose first partition is empty is a factor all the same."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"u": ["c", "b", "a"] * 200, "x": np.arange(600), "y": rng.integers(0, 2, 600)})
    data = form(frame, tmp_path)
    if isinstance(data, pa.RecordBatchReader):
        pytest.skip("A regression reads its rows several times.")
    fits = [sf.GLM("binomial").fit(where, y="y", columns=["x", "u"]).coefficients_ for where in (data, frame)]
    np.testing.assert_allclose(fits[0], fits[1], rtol=0.0, atol=1e-9)
