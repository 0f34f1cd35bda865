"""Regressions of rows that are not in memory: held in shards, they give the numbers of the rows in memory."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.models.glm import stream
from suffice.sources.held import Held, HeldLocal

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

N = 1200
RNG = np.random.default_rng(5)


def rows() -> Any:
    a, b = RNG.normal(size=N), RNG.normal(size=N)
    group = RNG.choice(["low", "mid", "top"], N)
    eta = 0.3 + 0.5 * a - 0.2 * b + 0.4 * (group == "top")
    frame = pd.DataFrame({"a": a, "b": b, "group": group, "whole": RNG.integers(0, 9, N)})
    frame["times"], frame["moved"] = RNG.integers(0, 3, N), 0.1 * RNG.normal(size=N)
    frame["size"] = RNG.random(N) + 0.5
    frame["real"] = eta + RNG.normal(size=N)
    frame["other"] = eta - a + RNG.normal(size=N)
    frame["count"] = RNG.poisson(np.exp(eta))
    frame["spread"] = RNG.poisson(np.exp(eta) * RNG.gamma(2.0, 0.5, N))
    frame["positive"] = RNG.gamma(2.0, np.exp(eta) / 2.0)
    frame["event"] = (RNG.random(N) < 1.0 / (1.0 + np.exp(-eta))).astype(int)
    frame["answer"] = np.where(frame["event"] > 0, "yes", "no")
    frame["trials"] = RNG.integers(1, 6, N)
    frame["hits"] = RNG.binomial(frame["trials"], 1.0 / (1.0 + np.exp(-eta)))
    frame["misses"] = frame["trials"] - frame["hits"]
    frame["class"] = np.array(["x", "y", "z"])[np.digitize(eta + RNG.logistic(size=N), [-0.5, 1.0])]
    frame["level"] = np.digitize(eta + RNG.logistic(size=N), [-0.5, 1.0])
    # The rank of some columns differs from shard to shard, and so do the levels that a shard holds.
    return frame.sort_values("group", ignore_index=True)


FRAME = rows()
COLUMNS = ["a", "b", "group", "whole"]

#: What is fitted, by name: the model, and what is said about the columns.
CASES: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "gaussian": (lambda: sf.GLM("gaussian"), {"y": "real"}),
    "gaussian, weights": (lambda: sf.GLM("gaussian"), {"y": "real", "sample_weight": "times", "offset": "moved"}),
    "gaussian, log": (lambda: sf.GLM("gaussian", link="log"), {"y": "positive"}),
    "conjugate": (lambda: sf.GLM("gaussian", prior=sf.NormalInverseGamma(2.0, 1.0, 1.0, 0.0)), {"y": "real"}),
    "ridge": (lambda: sf.GLM("gaussian", prior=sf.Normal(variance=0.1)), {"y": "real"}),
    "binomial": (lambda: sf.GLM("binomial"), {"y": "event", "sample_weight": "times"}),
    "binomial, labels": (lambda: sf.GLM("binomial", link="probit"), {"y": "answer"}),
    "binomial, pairs": (lambda: sf.GLM("binomial", covariance="robust"), {"y": ("hits", "misses")}),
    "binomial, trials": (lambda: sf.GLM("binomial", covariance="observed"), {"y": "hits", "trials": "trials"}),
    "binomial, lasso": (lambda: sf.GLM("binomial", prior=sf.Laplace(scale=0.5)), {"y": "event"}),
    "poisson": (lambda: sf.GLM("poisson"), {"y": "count", "exposure": "size"}),
    "poisson, lbfgs": (lambda: sf.GLM("poisson", solver="lbfgs"), {"y": "count"}),
    "poisson, newton-cg": (lambda: sf.GLM("poisson", solver="newton-cg"), {"y": "count"}),
    "gamma": (lambda: sf.GLM("gamma", link="log"), {"y": "positive"}),
    "inverse gaussian": (lambda: sf.GLM("inverse_gaussian", link="log"), {"y": "positive"}),
    "negative binomial": (lambda: sf.GLM("negative_binomial"), {"y": "spread"}),
    "softmax": (lambda: sf.GLM("multinomial", covariance="robust"), {"y": "class"}),
    "softmax, reference": (lambda: sf.GLM("multinomial", reference="x"), {"y": "class", "offset": "moved"}),
    "ordinal": (lambda: sf.GLM("ordinal", covariance="robust"), {"y": "level"}),
    "ordinal, states": (lambda: sf.GLM("ordinal", states=["x", "y", "z"]), {"y": "class", "sample_weight": "times"}),
    "vector": (lambda: sf.GLM("multivariate_gaussian"), {"y": ("real", "other")}),
    "vector, prior": (
        lambda: sf.GLM("multivariate_gaussian", prior=sf.Normal(variance=1.0)),
        {"y": ("real", "other")},
    ),
    "natural": (lambda: sf.GLM(sf.Exponential()), {"y": "positive", "columns": []}),
}


@pytest.fixture(scope="module")
def in_memory() -> dict[str, Any]:
    models = {name: make().fit(FRAME, **{"columns": COLUMNS, **given}) for name, (make, given) in CASES.items()}
    for model in models.values():
        model.matched_statistics()  # Made when first asked for, and by then questions travel.
    return models


@pytest.fixture(autouse=True)
def travelling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every question and its answer is sent away and comes back, in at least five shards that nobody joins here."""
    total = Held.sum
    monkeypatch.setattr(stream, "GATHERED", 0)
    monkeypatch.setattr("suffice.sources.stream.BATCH_ROWS", 170)
    monkeypatch.setattr("suffice.sources.shards.SHARD_BYTES", 8_000)

    def sent(self: Any, parameters: Any, by: Any = None, **more: Any) -> Any:
        assert self.shards >= 5 or not isinstance(self, HeldLocal)
        work, asked = pickle.loads(pickle.dumps((self.work, by)))
        question = pickle.loads(pickle.dumps(parameters))
        return pickle.loads(pickle.dumps(total(self, question, work.evaluate if asked is None else asked, **more)))

    monkeypatch.setattr(Held, "sum", sent)


def opened(kind: str, tmp_path: Path) -> Any:
    if kind == "dask":
        return pytest.importorskip("dask.dataframe").from_pandas(FRAME, npartitions=5)
    path = tmp_path / "rows.parquet"
    FRAME.to_parquet(path, row_group_size=170)
    return path if kind == "parquet" else pytest.importorskip("duckdb").sql(f"from '{path}'")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", ["parquet", "duckdb", "dask"])
def test_every_response_from_every_source_is_that_of_the_rows_in_memory(
    kind: str, name: str, in_memory: dict[str, Any], tmp_path: Path
) -> None:
    (make, given), expected = CASES[name], in_memory[name]
    model = make().fit(opened(kind, tmp_path), **{"columns": COLUMNS, **given})
    assert model.report_.rows == N
    assert model.report_.iterations == expected.report_.iterations
    assert model.report_.weight == expected.report_.weight
    scale = np.abs(np.asarray(expected.standard_errors_))
    np.testing.assert_allclose(np.asarray(model.parameters_), np.asarray(expected.parameters_), atol=1e-10)
    np.testing.assert_allclose(np.asarray(model.standard_errors_), scale, rtol=1e-9)
    for figure in ("deviance_", "null_deviance_", "log_likelihood_", "pearson_chi2_", "dispersion_", "df_resid_"):
        assert getattr(model, figure) == pytest.approx(getattr(expected, figure), rel=1e-10, nan_ok=True)
    assert model.report_.certificate.moment_gap < 1e-5
    assert model.report_.certificate.exists is not False
    seen, wanted = model.matched_statistics(), expected.matched_statistics()
    np.testing.assert_allclose(seen.observed, wanted.observed, rtol=1e-10, atol=1e-12)


def test_an_empty_first_partition_says_nothing_about_a_column() -> None:
    dd = pytest.importorskip("dask.dataframe")
    empty = FRAME.iloc[:0]
    parts = dd.from_map(lambda part: empty if part == 0 else FRAME.iloc[(part - 1) * 300 : part * 300], range(5))
    model = sf.GLM("poisson").fit(parts, y="count", columns=COLUMNS)
    expected = sf.GLM("poisson").fit(FRAME, y="count", columns=COLUMNS)
    np.testing.assert_allclose(model.parameters_, expected.parameters_, atol=1e-12)


def test_prepared_rows_beyond_the_memory_limit_give_the_same_digits(tmp_path: Path) -> None:
    path = opened("parquet", tmp_path)
    near = sf.GLM("binomial").fit(path, y="event", columns=COLUMNS)
    far = sf.GLM("binomial", memory_limit="40kB").fit(path, y="event", columns=COLUMNS)
    np.testing.assert_array_equal(far.parameters_, near.parameters_)
    with pytest.raises(sf.OptionError, match="memory_limit"):
        sf.GLM(memory_limit="much")


@pytest.mark.parametrize("name", ["gaussian", "binomial", "gamma", "softmax", "ordinal"])
def test_a_fit_takes_few_rounds_more_than_steps(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[Any] = []
    total = HeldLocal._total

    def counted(held: HeldLocal[Any], *asked: Any) -> Any:
        rounds.append(asked)
        return total(held, *asked)

    monkeypatch.setattr(HeldLocal, "_total", counted)
    make, given = CASES[name]
    model = make().set_params(covariance="expected").fit(opened("parquet", tmp_path), columns=COLUMNS, **given)
    assert len(rounds) <= model.report_.iterations + 7
    assert model.report_.passes == 2  # Once for the levels, once for the rows.
    rounds.clear()
    bare = make().set_params(covariance="expected").fit(opened("parquet", tmp_path), columns=["a", "b"], **given)
    assert bare.report_.passes == (1 if name in ("gaussian", "gamma") else 2)


def test_stochastic_ascent_draws_shards(tmp_path: Path) -> None:
    options: dict[str, Any] = {"solver": "sgd", "tolerance": 1e-5}
    model = sf.GLM("poisson", **options).fit(opened("parquet", tmp_path), y="count", columns=COLUMNS)
    expected = sf.GLM("poisson").fit(FRAME, y="count", columns=COLUMNS)
    assert model.converged_
    errors = np.asarray(expected.standard_errors_)
    assert np.abs((np.asarray(model.parameters_) - np.asarray(expected.parameters_)) / errors).max() < 1e-4


@pytest.mark.parametrize("kind", ["parquet", "dask"])
def test_one_pass_over_shards_is_one_over_their_rows(kind: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"step_size": 0.01, "decay": 0.5, "batch_size": 1, "prior": sf.Normal(variance=2.0)}
    model = sf.GLM("poisson", **options).partial_fit(opened(kind, tmp_path), y="count", columns=["a", "b"])
    expected = sf.GLM("poisson", **options).partial_fit(FRAME, y="count", columns=["a", "b"])
    np.testing.assert_allclose(model.parameters_, expected.parameters_, rtol=1e-12)
    assert model.updates_ == expected.updates_ == N
    assert model.log_likelihood_ == pytest.approx(expected.log_likelihood_, rel=1e-12)


def test_scores_are_summed_where_the_rows_are(tmp_path: Path) -> None:
    model = sf.GLM("binomial").fit(FRAME, y="answer", columns=COLUMNS)
    for kind in ("parquet", "duckdb", "dask"):
        source = opened(kind, tmp_path)
        assert model.score(source, "answer") == pytest.approx(model.score(FRAME, "answer"), rel=1e-13)
        weighted = model.score(source, "answer", sample_weight="size", offset="moved")
        assert weighted == pytest.approx(model.score(FRAME, "answer", sample_weight="size", offset="moved"), rel=1e-13)


def test_predictions_for_a_distributed_frame_are_one() -> None:
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(FRAME, npartitions=5)
    model = sf.GLM("poisson").fit(FRAME, y="count", columns=COLUMNS)
    far = model.predict(frame, exposure="size")
    assert isinstance(far, dd.DataFrame)
    np.testing.assert_array_equal(far.compute()["prediction"], model.predict(FRAME, exposure="size"))
    near = model.predict(FRAME, interval=0.9)
    np.testing.assert_array_equal(model.predict(frame, interval=0.9).compute(), near)  # type: ignore[attr-defined]
    three = sf.GLM("multinomial").fit(FRAME, y="class", columns=COLUMNS)
    shares = three.predict_proba(frame).compute()  # type: ignore[attr-defined]
    assert list(shares.columns) == ["x", "y", "z"]
    np.testing.assert_array_equal(shares, three.predict_proba(FRAME))
    assert (three.predict(frame, kind="class").compute()["prediction"] == three.predict(FRAME, kind="class")).all()  # type: ignore[attr-defined]
    two = sf.GLM("binomial").fit(FRAME, y="answer", columns=COLUMNS)
    np.testing.assert_array_equal(two.predict_proba(frame).compute()[["no", "yes"]], two.predict_proba(FRAME))  # type: ignore[attr-defined]
    known = FRAME[FRAME["group"] != "top"]
    pooled = sf.GLM("poisson", unknown="pool").fit(known, y="count", columns=COLUMNS)
    np.testing.assert_array_equal(pooled.predict(frame).compute()["prediction"], pooled.predict(FRAME))  # type: ignore[attr-defined]


def test_the_report_says_where_the_rows_stayed(tmp_path: Path) -> None:
    model = sf.GLM("binomial").fit(opened("parquet", tmp_path), y="event", columns=COLUMNS)
    plan = str(model.report_.plan)
    assert "shards in memory, " in plan
    assert "rounds" in plan
    assert sf.GLM("binomial").fit(FRAME, y="event", columns=COLUMNS).report_.plan is None


def test_several_responses_of_a_family_of_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(sf.DataError, match="2 columns, 'count', 'whole'; the poisson family takes one"):
        sf.GLM("poisson").fit(opened("parquet", tmp_path), y=("count", "whole"), columns=["a"])


@pytest.mark.filterwarnings("ignore::suffice.SufficeWarning")
@pytest.mark.parametrize("family", ["poisson", "binomial"])
def test_separated_rows_leave_the_fit_where_they_are(
    family: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Digits and iterations of the limit are those of rows in memory; a shard may hold no row that is left."""
    monkeypatch.setattr(stream, "GATHERED", 0)
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b", "c", "d"], N // 4)
    event = (rng.poisson(2.0, N) if family == "poisson" else rng.random(N) < 0.4).astype(int)
    frame = pd.DataFrame({"x": rng.normal(size=N), "group": group, "event": np.where(group == "b", 0, event)})
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path, row_group_size=100)
    columns = ["x", "group"]
    here, there = (sf.GLM(family).fit(data, y="event", columns=columns) for data in (frame, path))
    assert here.separated_
    assert there.separated_
    assert there.n_iter_ == here.n_iter_ < 10
    np.testing.assert_allclose(there.coefficients_, here.coefficients_, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(there.standard_errors_, here.standard_errors_, rtol=1e-9)
    for name in ("log_likelihood", "rows", "n_params", "converged"):
        assert getattr(there.report_, name) == pytest.approx(getattr(here.report_, name), rel=1e-12)
    assert there.report_.certificate.directions == here.report_.certificate.directions


@pytest.mark.filterwarnings("ignore::suffice.SufficeWarning")
def test_rows_that_are_all_decided_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "GATHERED", 0)
    x = np.random.default_rng(0).normal(size=N)
    frame = pd.DataFrame({"x": x, "event": (x > 0).astype(int)})
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path, row_group_size=100)
    here, there = (sf.GLM("binomial").fit(data, y="event", columns=["x"]) for data in (frame, path))
    assert there.report_.log_likelihood == here.report_.log_likelihood == 0.0
    assert there.coefficients_["x"] == np.inf
