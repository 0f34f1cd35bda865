"""GLM nodes learned where the rows are: the same as from rows in memory, and no row in the process that asks."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import pytest

import suffice as sf
from suffice.answers import PatternTable
from suffice.errors import DataError, MissingValueError, OptionError
from suffice.models.em import held_rows
from suffice.sources import shards as shards_of_batches
from suffice.sources import stream

ROWS = 240
GLMS = {
    "success": sf.GLM("binomial"),
    "visits": sf.GLM("poisson"),
    "cost": sf.GLM("gamma", link="log"),
    "kind": sf.GLM("multinomial"),
    "count": sf.GLM("negative_binomial"),
    "size": sf.GLM("gaussian", prior=sf.Normal(variance=4.0)),
}
EDGES = [
    *(("x", "success"), ("u", "success"), ("x", "visits"), ("success", "visits")),
    *(("x", "cost"), ("x", "kind"), ("x", "count"), ("x", "size"), ("u", "size"), ("u", "w")),
]


def table() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    x = rng.normal(size=ROWS)
    u = rng.integers(0, 3, ROWS)
    success = rng.random(ROWS) < 1 / (1 + np.exp(-x - u))
    frame = pd.DataFrame(
        {
            "x": x,
            "u": np.array(["p", "q", "r"])[u],
            "success": np.where(success, "yes", "no"),
            "visits": rng.poisson(np.exp(0.3 * x + 0.2 * success)).astype(float),
            "cost": rng.gamma(2.0, size=ROWS) * np.exp(0.2 * x),
            "kind": np.array(["a", "b", "c"])[np.argmax(rng.gumbel(size=(ROWS, 3)) + np.outer(x, [0, 0.5, 1]), axis=1)],
            "count": rng.negative_binomial(2.0, 0.3, ROWS).astype(float),
            "size": 0.3 * x + u + rng.normal(size=ROWS),
            "w": np.array(["s", "t"])[(u + (rng.random(ROWS) < 0.3)) % 2],
        }
    )
    gaps = frame["w"].where(rng.random(ROWS) > 0.2, None)
    return frame.assign(gaps=gaps)


def sources(path: str) -> dict[str, Any]:
    return {
        "Parquet": path,
        "DuckDB": duckdb.sql(f"select * from '{path}'"),
        "Dask": dd.from_pandas(pd.read_parquet(path), npartitions=4),
    }


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    table().to_parquet(path, row_group_size=50)
    return str(path)


@pytest.fixture
def shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several small shards, and no distinct rows that are few enough to be brought together."""
    monkeypatch.setattr(held_rows, "FEW_NUMBERS", 0)
    monkeypatch.setattr(held_rows, "BLOCK_ROWS", 45)
    monkeypatch.setattr(shards_of_batches, "SHARD_BYTES", 1)
    monkeypatch.setattr(stream, "BATCH_ROWS", 60)


@pytest.fixture
def apart(shards: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of several shards never come together in one place."""

    def together(*arguments: object) -> None:
        raise AssertionError("rows of several shards were brought together")

    monkeypatch.setattr(PatternTable, "__add__", together)


def figures(net: sf.BayesianNetwork) -> np.ndarray:
    nodes = [net.node(name) for name in GLMS]
    parts = [part for node in nodes for part in (node.parameters(), node.standard_errors_, node.dispersion_)]
    report = net.report_
    matched = net.matched_statistics()
    assert matched is not None
    more = [report.log_likelihood, report.objective, report.aic, report.bic, net.table("w").values]
    return np.concatenate([np.ravel(part) for part in (*parts, *more, matched.observed, matched.expected)])


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize("child", ["w", "gaps"])
def test_a_network_with_glm_nodes_is_that_of_rows_in_memory(child: str, parquet: str) -> None:
    """Complete rows, and EM beside families that all rows show."""
    edges = EDGES if child == "w" else [*EDGES, ("w", "gaps")]
    there = sf.BayesianNetwork(edges, nodes=GLMS).fit(pd.read_parquet(parquet))
    for name, data in sources(parquet).items():
        here = sf.BayesianNetwork(edges, nodes=GLMS).fit(data)
        np.testing.assert_allclose(figures(here), figures(there), rtol=1e-10, atol=1e-11, err_msg=name)
        assert here.converged_ == there.converged_
        assert here.report_.rows == ROWS
        own, other = here.report_.certificate.moment_gap, there.report_.certificate.moment_gap
        assert own == pytest.approx(other, rel=1e-3, abs=1e-10)
        bounds = [report.certificate.value_gap for report in (here.report_, there.report_)]
        assert (bounds[0] is None) == (bounds[1] is None)
        assert here.report_.certificate.exists == there.report_.certificate.exists
        assert any("rounds over" in note for note in here.report_.warnings)
        assert here.score(data) == pytest.approx(there.score(pd.read_parquet(parquet)), rel=1e-12)


@pytest.mark.usefixtures("apart")
def test_each_node_is_the_regression_of_its_column(parquet: str) -> None:
    """The oracle is `GLM` itself, on rows in memory."""
    frame = pd.read_parquet(parquet)
    net = sf.BayesianNetwork(EDGES, nodes=GLMS).fit(parquet)
    for name, model in GLMS.items():
        parents = [above for above, below in EDGES if below == name]
        alone = sf.GLM(**model.get_params(deep=False)).fit(frame[parents], frame[name])
        np.testing.assert_allclose(np.ravel(net.node(name).parameters_), np.ravel(alone.parameters_), rtol=1e-8)


@pytest.mark.usefixtures("shards")
def test_tied_nodes_are_learned_from_the_rows_of_all(parquet: str) -> None:
    rng = np.random.default_rng(9)
    frame = pd.DataFrame({"x": rng.normal(size=200), "z": rng.normal(size=200)})
    for name, parent in (("y", "x"), ("v", "z")):
        frame[name] = np.where(rng.random(200) < 1 / (1 + np.exp(-frame[parent])), "yes", "no")
    path = str(Path(parquet).with_name("tied.parquet"))
    frame.to_parquet(path, row_group_size=40)
    options: dict[str, Any] = {"nodes": {"y": sf.GLM("binomial")}, "tied": [["y", "v"]]}
    here, there = (sf.BayesianNetwork([("x", "y"), ("z", "v")], **options).fit(data) for data in (path, frame))
    both = np.concatenate([frame["x"], frame["z"]])[:, None], np.concatenate([frame["y"], frame["v"]])
    alone = sf.GLM("binomial").fit(*both)
    for name in ("y", "v"):
        np.testing.assert_allclose(here.node(name).parameters(), there.node(name).parameters(), rtol=1e-10)
        np.testing.assert_allclose(here.node(name).parameters(), np.ravel(alone.parameters_), rtol=1e-8)


@pytest.mark.usefixtures("apart")
def test_a_value_that_the_family_does_not_have_and_a_missing_one_are_errors(parquet: str, tmp_path: Path) -> None:
    frame = table()
    frame.loc[130, "visits"] = -1.5
    path = str(tmp_path / "odd.parquet")
    frame.to_parquet(path, row_group_size=50)
    nodes = {"visits": sf.GLM("poisson")}
    for data in sources(path).values():
        with pytest.raises(DataError, match=r"'visits' holds -1\.5; the poisson family .* at least 0"):
            sf.BayesianNetwork([("x", "visits")], nodes=nodes).fit(data)
    frame.loc[130, "visits"] = np.nan
    frame.to_parquet(path, row_group_size=50)
    for data in sources(path).values():
        with pytest.raises(OptionError, match="'visits' has missing values or is hidden"):
            sf.BayesianNetwork([("x", "visits")], nodes=nodes).fit(data)
        with pytest.raises(MissingValueError, match="'visits' has 1 missing value"):
            sf.BayesianNetwork([("x", "visits")], nodes=nodes, missing="raise").fit(data)


@pytest.mark.usefixtures("apart")
def test_a_fit_lets_its_rows_go(parquet: str) -> None:
    net = sf.BayesianNetwork(EDGES, nodes=GLMS).fit(parquet)
    assert len(pickle.dumps(net)) < 40_000
    again = pickle.loads(pickle.dumps(net))
    np.testing.assert_array_equal(figures(again), figures(net))
    with pytest.raises(OptionError, match=r"240 rows that were learned .* GLM nodes and stayed where they were"):
        net.partial_fit(parquet)


def test_few_rows_of_a_file_are_kept_and_others_may_join(parquet: str) -> None:
    frame = pd.read_parquet(parquet)
    net = sf.BayesianNetwork(EDGES, nodes=GLMS).fit(parquet)
    np.testing.assert_array_equal(figures(net), figures(sf.BayesianNetwork(EDGES, nodes=GLMS).fit(frame)))
    twice = sf.BayesianNetwork(EDGES, nodes=GLMS).fit(pd.concat([frame, frame]))
    np.testing.assert_allclose(figures(net.partial_fit(parquet)), figures(twice), rtol=1e-10)
