"""Tables of tokens: the same weights as from lists of dicts, wherever the rows are, and labels back row by row."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf

Columns = ["word", "capital", "size", "count", "before"]


def tagged(count: int = 80) -> tuple[list[list[dict[str, Any]]], list[list[str]], pd.DataFrame]:
    """Sentences as lists of dicts, their labels, and the same as a table; the first step has no word before it."""
    rng = np.random.default_rng(0)
    X, y, rows = [], [], []
    for s in range(count):
        steps, labels, before = [], [], None
        for t in range(int(rng.integers(1, 9))):
            label = int(rng.integers(3))
            word = f"w{int(rng.integers(8)) + 5 * label}"
            step = {
                "word": word,
                "capital": bool(rng.random() < 0.3),
                "size": float(rng.integers(1, 9)) / 8.0,
                "count": int(rng.integers(3)),
            }
            steps.append(step if before is None else {**step, "before": before})
            labels.append("ABC"[label])
            rows.append({"sentence": f"s{s:03}", "step": t, **step, "before": before, "label": labels[-1]})
            before = word
        X.append(steps)
        y.append(labels)
    return X, y, pd.DataFrame(rows)


def lists_of(X: list[list[dict[str, Any]]]) -> list[list[list[str]]]:
    """Names of features in place of dicts."""
    return [[[f"{name}={value}" for name, value in step.items()] for step in steps] for steps in X]


def opened(kind: str, frame: pd.DataFrame, folder: Path) -> Any:
    """A table as some kind of data."""
    path = str(folder / "tokens.parquet")
    frame.to_parquet(path, row_group_size=97, index=False)
    if kind == "pandas":
        return frame
    if kind == "polars":
        return pytest.importorskip("polars").from_pandas(frame)
    if kind == "arrow":
        return pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False)
    if kind == "csv":
        frame.to_csv(folder / "tokens.csv", index=False)
        return str(folder / "tokens.csv")
    if kind == "duckdb":
        return pytest.importorskip("duckdb").sql(f"select * from '{path}'")
    return path


def by_name(model: sf.ChainCRF) -> dict[Any, float]:
    """Weights by name: the order of features follows the data."""
    return dict(zip(model.weight_names_, model.weights_.tolist(), strict=True))


def assert_same(model: sf.ChainCRF, reference: sf.ChainCRF) -> None:
    """The same weights to 1e-10, and the same measurements."""
    found, expected = by_name(model), by_name(reference)
    assert found.keys() == expected.keys()
    assert max(abs(found[name] - expected[name]) for name in expected) < 1e-10
    assert model.report_.log_likelihood == pytest.approx(reference.report_.log_likelihood, rel=1e-12)
    assert model.report_.n_params == reference.report_.n_params
    assert model.report_.certificate.exists == reference.report_.certificate.exists
    assert model.report_.rows == reference.report_.rows


OPTIONS: dict[str, dict[str, Any]] = {
    "prior": {"prior": sf.Normal(variance=10.0), "max_iter": 12},
    "no prior": {"max_iter": 12},
    "rare features": {
        "prior": sf.Normal(variance=10.0),
        "min_frequency": 6,
        "boundaries": True,
        "bias": True,
        "conditioned_transitions": ["size"],
        "max_iter": 12,
    },
    "all pairs": {"prior": sf.Normal(variance=10.0), "all_possible_states": True, "max_iter": 12},
    "hashed": {"prior": sf.Normal(variance=10.0), "hashing": 37, "max_iter": 12},
    "constraints": {
        "prior": sf.Normal(variance=10.0),
        "constraints": [("C", None)],
        "labels": list("ABC"),
        "max_iter": 12,
    },
}


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "parquet", "csv", "duckdb"])
def test_tables_give_the_weights_of_lists(kind: str, tmp_path: Path) -> None:
    """Rows in any order, in one shard and in many, in memory and on disk."""
    X, y, frame = tagged()
    reference = sf.ChainCRF(prior=sf.Normal(variance=10.0), max_iter=12).fit(X, y)
    shuffled = frame.sample(frac=1.0, random_state=1)
    table = opened(kind, shuffled, tmp_path)
    for limit in (None, "20KB"):
        options: dict[str, Any] = {"prior": sf.Normal(variance=10.0), "max_iter": 12, "memory_limit": limit}
        model = sf.ChainCRF(**options).fit(table, "label", group="sentence", order="step")
        assert_same(model, reference)
        assert model.report_.plan is not None
        assert ("in 1 shard in memory" in model.report_.plan) == (limit is None)
        assert ("scratch folder" in model.report_.plan) == (limit is not None)
        score = model.score(table, "label", group="sentence", order="step")
        assert score == pytest.approx(reference.score(X, y), rel=1e-12)
    best = np.array([label for labels in reference.predict(X) for label in labels])
    labels = model.predict(table, group="sentence", order="step")
    assert not isinstance(labels, pd.Series) or labels.index.equals(shuffled.index)
    assert np.asarray(labels).tolist() == best[shuffled.index].tolist()
    marginals = np.concatenate(reference.predict_marginals(X))[shuffled.index]
    found = model.predict_marginals(table, group="sentence", order="step")
    np.testing.assert_allclose(np.asarray(found), marginals, rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
def test_dask_frames_give_the_weights_of_lists() -> None:
    """Shuffled partitions, by columns and by lists, by L-BFGS and by minibatches; labels with their keys."""
    dask, frames = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    X, y, frame = tagged()
    frame = frame.assign(names=[step for steps in lists_of(X) for step in steps])
    with dask.config.set({"dataframe.convert-string": False}):  # Lists would become their text.
        table = frames.from_pandas(frame.sample(frac=1.0, random_state=0).reset_index(drop=True), npartitions=4)
    options: dict[str, Any] = {"prior": sf.Normal(variance=10.0), "max_iter": 12}
    layout: dict[str, Any] = {"group": "sentence", "order": "step"}
    reference = sf.ChainCRF(**options).fit(X, y)
    model = sf.ChainCRF(**options).fit(table, "label", columns=Columns, **layout)
    assert_same(model, reference)
    assert "in 4 shards" in str(model.report_.plan)
    score = model.score(table, "label", **layout)
    assert score == pytest.approx(reference.score(X, y), rel=1e-12)
    labels = model.predict(table, **layout).compute().sort_values(["sentence", "step"])["predicted"]
    assert labels.tolist() == [label for best in reference.predict(X) for label in best]
    by_names = sf.ChainCRF(**options).fit(table, "label", features="names", **layout)
    assert_same(by_names, sf.ChainCRF(**options).fit(lists_of(X), y))
    sgd = sf.ChainCRF(solver="sgd", step_size=0.01, max_iter=2).fit(table, "label", features="names", **layout)
    assert sgd.score(lists_of(X), y) > -np.log(3) * np.mean([len(best) for best in y])


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
@pytest.mark.parametrize("case", OPTIONS)
def test_options_mean_the_same_for_tables(case: str) -> None:
    """Rare features, boundaries, bias, features of transitions, all pairs, hashed names, constraints."""
    X, y, frame = tagged()
    if case == "constraints":
        kept = [s for s, labels in enumerate(y) if labels[-1] != "C"]
        X, y = [X[s] for s in kept], [y[s] for s in kept]
        frame = frame[frame["sentence"].isin([f"s{s:03}" for s in kept])]
    reference = sf.ChainCRF(**OPTIONS[case]).fit(X, y)
    model = sf.ChainCRF(**OPTIONS[case], memory_limit="20KB").fit(frame, "label", group="sentence", order="step")
    assert_same(model, reference)


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["pandas", "parquet"])
def test_a_column_of_lists_gives_the_weights_of_lists_of_names(kind: str, tmp_path: Path) -> None:
    """Lists of names, alone and beside columns."""
    X, y, frame = tagged()
    names = lists_of(X)
    frame = frame.assign(names=[step for steps in names for step in steps])
    reference = sf.ChainCRF(prior=sf.Normal(variance=10.0), max_iter=12).fit(names, y)
    table = opened(kind, frame, tmp_path)
    options: dict[str, Any] = {"prior": sf.Normal(variance=10.0), "max_iter": 12, "memory_limit": "20KB"}
    layout: dict[str, Any] = {"group": "sentence", "order": "step", "features": "names"}
    model = sf.ChainCRF(**options).fit(table, "label", **layout)
    assert_same(model, reference)
    best = [label for labels in reference.predict(names) for label in labels]
    assert np.asarray(model.predict(table, **layout)).tolist() == best
    both = [
        [{**dict.fromkeys(listed, True), "size": step["size"]} for listed, step in zip(*steps, strict=True)]
        for steps in zip(names, X, strict=True)
    ]
    beside = sf.ChainCRF(prior=sf.Normal(variance=10.0), max_iter=12).fit(both, y)
    assert_same(sf.ChainCRF(**options).fit(table, "label", columns="size", **layout), beside)


@pytest.mark.parametrize("solver", ["sgd", "adam", "perceptron"])
def test_minibatches_go_from_shard_to_shard(solver: str, tmp_path: Path) -> None:
    """Without a shuffle the updates are those of all sequences in one list; with one, each shard is met once a pass."""
    X, y, frame = tagged()
    X = [[{name: value for name, value in step.items() if name != "count"} for step in steps] for steps in X]
    prior = None if solver == "perceptron" else sf.Normal(variance=4.0)
    options: dict[str, Any] = {"prior": prior, "solver": solver, "max_iter": 3, "average": True, "step_size": 0.05}
    layout: dict[str, Any] = {"group": "sentence", "order": "step", "columns": [n for n in Columns if n != "count"]}
    reference = sf.ChainCRF(**options, shuffle=False).fit(X, y)
    assert_same(sf.ChainCRF(**options, shuffle=False, memory_limit="20KB").fit(frame, "label", **layout), reference)
    drawn = sf.ChainCRF(**options, memory_limit="20KB").fit(frame, "label", **layout)
    again = sf.ChainCRF(**options, memory_limit="20KB").fit(frame, "label", **layout)
    np.testing.assert_array_equal(drawn.weights_, again.weights_)
    assert drawn.score(X, y) > -1.1 * np.log(3) * np.mean([len(labels) for labels in y])


@pytest.mark.parametrize("limit", [None, "20KB"])
@pytest.mark.parametrize(
    "options",
    [
        {"solver": "sgd", "prior": sf.Normal(variance=4.0), "average": True},
        {"solver": "adam", "boundaries": True, "bias": True, "step_size": 0.05},
        {"solver": "perceptron", "conditioned_transitions": ["size"]},
        {"hashing": 37, "min_frequency": 4},
        {"labels": list("DCBA"), "all_possible_states": True},
    ],
    ids=["sgd", "adam", "perceptron", "hashed", "labels"],
)
def test_tables_join_as_lists_do(options: dict[str, Any], limit: str | None) -> None:
    """Call by call, with features and a label that the first call has not seen."""
    _, y, frame = tagged()
    steps = np.concatenate([[s] * len(labels) for s, labels in enumerate(y)])
    early = frame["label"].where(frame["label"] != "A", "B").where(steps < 40, frame["label"])
    frame["label"] = early
    frame["word"] = frame["word"].where(steps >= 40, frame["word"].str.slice(0, 2))
    listed: list[list[dict[str, Any]]] = [
        [{name: row[name] for name in Columns if not pd.isna(row[name])} for _, row in rows.iterrows()]
        for _, rows in frame.groupby("sentence", sort=True)
    ]
    y = [rows["label"].tolist() for _, rows in frame.groupby("sentence", sort=True)]
    layout: dict[str, Any] = {"group": "sentence", "order": "step"}
    reference, model = sf.ChainCRF(**options), sf.ChainCRF(**options, memory_limit=limit)
    for first, last in ((0, 40), (40, 80), (20, 60)):
        reference.partial_fit(listed[first:last], y[first:last])
        model.partial_fit(frame[(steps >= first) & (steps < last)], "label", **layout)
        assert model.labels_ == reference.labels_
        assert_same(model, reference)


def test_evaluations_of_tables_are_those_of_lists(tmp_path: Path) -> None:
    """Rates of labels and chunks, of all rows and of shards; labels that the fit has not seen are missed."""
    X, y, frame = tagged()
    names = {"A": "B-x", "B": "I-x", "C": "O"}
    y = [[names[label] for label in labels] for labels in y]
    frame["label"] = [label for labels in y for label in labels]
    model = sf.ChainCRF(prior=sf.Normal(variance=10.0), memory_limit="20KB")
    model.fit(frame, "label", group="sentence", order="step")
    y[7][0] = frame.loc[frame["sentence"] == "s007", "label"] = "B-new"
    y[7] = ["B-new"] * len(y[7])
    right = model.evaluate(X, y)
    assert right.spans is not None
    frame.to_parquet(tmp_path / "tokens.parquet", row_group_size=97, index=False)
    for table in (frame.sample(frac=1.0, random_state=0), str(tmp_path / "tokens.parquet")):
        assert model.evaluate(table, "label", group="sentence", order="step") == right
        assert model.accuracy(table, "label", group="sentence", order="step") == right.accuracy
    assert right.labels["B-new"].recall == 0.0


def test_weights_and_validation_of_tables() -> None:
    """A column of weights, those of 0 left out; a fit that ends by another table."""
    X, y, frame = tagged()
    weights = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
    by_row = frame.assign(weight=np.repeat(weights, [len(labels) for labels in y]))
    options: dict[str, Any] = {"prior": sf.Normal(variance=10.0)}
    reference = sf.ChainCRF(**options).fit(X, y, sample_weight=weights)
    model = sf.ChainCRF(**options, memory_limit="20KB").fit(
        by_row, "label", sample_weight="weight", group="sentence", order="step"
    )
    found, expected = by_name(model), by_name(reference)
    assert max(abs(found[name] - expected[name]) for name in expected) < 1e-4
    assert all(found[name] == 0.0 for name in found.keys() - expected.keys())
    assert model.report_.weight == weights.sum()
    half = frame["sentence"] < "s040"
    stopped = sf.ChainCRF().fit(
        frame[half], "label", group="sentence", order="step", validation=(frame[~half], "label")
    )
    listed = sf.ChainCRF().fit(X[:40], y[:40], validation=(X[40:], y[40:]))
    assert stopped.report_.stop_reason == listed.report_.stop_reason == "early stopping"
    assert stopped.report_.iterations == listed.report_.iterations


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prior": sf.Normal(variance=10.0), "conditioned_transitions": ["size"]},
        {"constraints": [("D", None)], "labels": list("ABCD")},
    ],
    ids=["no prior", "conditioned", "constraints"],
)
def test_a_shard_whose_sequences_are_all_left_out_adds_nothing(options: dict[str, Any]) -> None:
    """The first half of a table has the weight 0: shards of it hold no step at all, and no last one."""
    X, y, frame = tagged()
    weights = np.repeat([0.0, 1.0], len(X) // 2)
    by_row = frame.assign(weight=np.repeat(weights, [len(labels) for labels in y]))
    options = {**options, "all_possible_states": True, "max_iter": 3}
    reference = sf.ChainCRF(**options).fit(X[len(X) // 2 :], y[len(X) // 2 :])
    model = sf.ChainCRF(**options, memory_limit="20KB").fit(
        by_row, "label", sample_weight="weight", group="sentence", order="step"
    )
    assert model.report_.n_params == reference.report_.n_params
    assert model.report_.log_likelihood == pytest.approx(reference.report_.log_likelihood, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m, f: m.fit(f, "label"), "group="),
        (lambda m, f: m.fit(f, "labels", group="sentence"), "Did you mean 'label'"),
        (lambda m, f: m.fit([[{"a": 1}]], [["x"]], group="sentence"), "X is a list"),
        (lambda m, f: m.fit(f, group="sentence"), "y is missing"),
        (lambda m, f: m.partial_fit(f, "label"), "X is a table; name its columns by 'group='"),
        (lambda m, f: m.fit([[{"a": 1}]], [["x"]]).sample_labels(f), "X is a table (DataFrame)"),
        (lambda m, f: m.partial_fit(f, "label", group="sentence", node="step"), "found 'node='"),
        (
            lambda m, f: m.fit([np.eye(2), np.eye(2)], [["A", "B"]] * 2).predict(f, group="sentence"),
            "The model was fitted to arrays",
        ),
        (lambda m, f: m.fit([[{"a": 1}]]), "y is missing"),
        (lambda m, f: m.fit([[{"a": 1}]], [["x"]]).score_samples([[{"a": 1}]]), "y is missing"),
        (lambda m, f: sf.summarize(m, f), "its fit goes over them again and again"),
        (lambda m, f: sf.GraphCRF().fit([sf.GraphExample([[1.0]])]), "y is missing"),
        (lambda m, f: m.fit(f.assign(label=None), "label", group="sentence"), "label"),
        (lambda m, f: m.fit(f.assign(size=np.nan), "label", group="sentence", columns=["size"]), "'size' is nan"),
        (lambda m, f: m.fit(f, "label", group="sentence", features="word"), "column of lists"),
        (lambda m, f: m.fit(f, "label", group="sentence", columns=["label"]), "another part"),
        (lambda m, f: m.fit(f.iloc[:0], "label", group="sentence"), "no rows"),
        (lambda m, f: m.set_params(memory_limit="1GB").fit([[{"a": 1}]], [["x"]]), "memory_limit"),
        (lambda m, f: m.set_params(solver="sgd", expectations="gibbs").fit(f, "label", group="sentence"), "'gibbs'"),
        (
            lambda m, f: m.set_params(constraints=[("A", "B")]).fit(f, "label", group="sentence", order="step"),
            "'B' after 'A'",
        ),
    ],
)
def test_errors_say_what_to_do(call: Any, words: str) -> None:
    """What was given, what was expected, and how to give it."""
    _, _, frame = tagged(12)
    with pytest.raises(sf.SufficeError) as error:
        call(sf.ChainCRF(), frame)
    assert words in str(error.value)


MEMORY = """
import resource, sys, warnings
import suffice as sf
warnings.simplefilter("ignore")
options = {"prior": sf.Normal(variance=1.0), "max_iter": 2, "memory_limit": "2MB", "threads": 1}
model = sf.ChainCRF(**options).fit(sys.argv[1], "label", group="sentence")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, model.report_.plan)
"""


def test_memory_does_not_follow_the_tokens(tmp_path: Path) -> None:
    """Peak memory of fits from Parquet in processes of their own: lists of features would take 1.4 kB a token."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(0)
    words = np.array([f"w{number}" for number in range(500)])
    peaks = []
    for count in (20_000, 160_000):
        label = rng.integers(0, 3, count)
        columns: dict[str, Any] = {"sentence": np.arange(count) // 10, "label": np.array(list("ABC"))[label]}
        columns |= {f"f{j}": words[rng.integers(0, 400, count) + 50 * label] for j in range(4)}
        path = str(tmp_path / f"{count}.parquet")
        pq.write_table(pa.table(columns), path, row_group_size=10_000)
        run = subprocess.run([sys.executable, "-c", MEMORY, path], capture_output=True, text=True, check=True)
        peak, plan = run.stdout.split(" ", 1)
        assert "scratch folder" in plan or count == 20_000
        peaks.append(int(peak))
    assert peaks[1] < peaks[0] + 40
