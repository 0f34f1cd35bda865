"""Tables of nodes: the same weights as from a list of graphs, in one shard and in many, in memory and on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf

LAYOUT: dict[str, Any] = {"group": "graph", "node": "name", "neighbours": "joined", "columns": ["a", "b"]}


def labelled(count: int = 40) -> tuple[list[sf.GraphExample], list[list[str]], pd.DataFrame]:
    """Small graphs of all shapes, as a list and as a table whose nodes name all or half of their neighbours."""
    rng = np.random.default_rng(0)
    X, y, rows = [], [], []
    for g in range(count):
        size = int(rng.integers(1, 6))
        edges = [(i, j) for i in range(size) for j in range(i + 1, size) if rng.random() < 0.5]
        features = rng.normal(size=(size, 2))
        labels = ["u" if value > 0 else "v" for value in features[:, 0] + rng.normal(size=size)]
        X.append(sf.GraphExample(features, edges))
        y.append(labels)
        for i in range(size):
            joined = [f"n{j}" for k, j in edges if k == i] + [f"n{k}" for k, j in edges if j == i and g % 2]
            values = {"a": features[i, 0], "b": features[i, 1], "joined": joined, "label": labels[i]}
            rows.append({"graph": g, "name": f"n{i}", **values})
    return X, y, pd.DataFrame(rows)


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prior": sf.Normal(variance=3.0)},
        {"inference": "pseudo-likelihood"},
        {"inference": "loopy"},
        {"inference": "loopy", "prior": sf.Normal(variance=3.0)},
    ],
)
def test_tables_give_the_weights_of_lists(options: dict[str, Any], tmp_path: Path) -> None:
    """Weights at the same number of iterations, the judgement, and the labels of rows in any order."""
    X, y, frame = labelled()
    frame.to_parquet(tmp_path / "nodes.parquet", index=False)
    reference = sf.GraphCRF(**options, max_iter=6).fit(X, y)
    shuffled = frame.sample(frac=1.0, random_state=0)
    for table, limit in ((shuffled, None), (shuffled, "5KB"), (str(tmp_path / "nodes.parquet"), "5KB")):
        model = sf.GraphCRF(**options, max_iter=6, memory_limit=limit).fit(table, "label", **LAYOUT)
        np.testing.assert_allclose(model.weights_, reference.weights_, rtol=0, atol=1e-10)
        assert model.weight_names_ == reference.weight_names_
        report, expected = model.report_, reference.report_
        assert report.log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-12)
        assert report.n_params == expected.n_params
        assert report.rows == expected.rows
        assert report.certificate.exists == expected.certificate.exists
        assert report.certificate.moment_gap == pytest.approx(expected.certificate.moment_gap, rel=1e-6)
        assert ("scratch folder" in str(report.plan)) == (limit is not None)
    apart = {**LAYOUT, "columns": None}
    beside = sf.GraphCRF(**options, max_iter=6).fit(frame.drop(columns="label"), frame["label"].tolist(), **apart)
    np.testing.assert_allclose(beside.weights_, reference.weights_, rtol=0, atol=1e-10)
    best = np.array([label for labels in reference.predict(X) for label in labels])
    found = reference.predict(shuffled, **LAYOUT)
    assert found.tolist() == best[shuffled.index].tolist()


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
@pytest.mark.parametrize("options", [{}, {"prior": sf.Normal(variance=3.0)}, {"inference": "pseudo-likelihood"}])
def test_a_shard_whose_graphs_are_all_left_out_adds_nothing(options: dict[str, Any]) -> None:
    """The first half of a table has the weight 0: shards of it hold no node at all."""
    X, y, frame = labelled(20)
    frame["weight"] = np.where(frame["graph"] < 10, 0.0, 1.0)
    reference = sf.GraphCRF(**options, max_iter=3).fit(X[10:], y[10:])
    model = sf.GraphCRF(**options, max_iter=3, memory_limit="3KB").fit(frame, "label", sample_weight="weight", **LAYOUT)
    np.testing.assert_allclose(model.weights_, reference.weights_, rtol=0, atol=1e-10)
    assert model.report_.n_params == reference.report_.n_params
    assert model.report_.log_likelihood == pytest.approx(reference.report_.log_likelihood, rel=1e-12)


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
@pytest.mark.parametrize(
    "options", [{"solver": "sgd", "batch_size": 3}, {"solver": "adam", "step_size": 0.01}, {"solver": "perceptron"}]
)
def test_stochastic_steps_over_tables(options: dict[str, Any]) -> None:
    """One shard takes the steps of a list; of several, the same seed draws the same."""
    X, y, frame = labelled()
    reference = sf.GraphCRF(**options, max_iter=2, shuffle=False).fit(X, y)
    alone = sf.GraphCRF(**options, max_iter=2, shuffle=False).fit(frame, "label", **LAYOUT)
    np.testing.assert_allclose(alone.weights_, reference.weights_, rtol=1e-10, atol=1e-12)
    model, again = (
        sf.GraphCRF(**options, max_iter=2, memory_limit="5KB").fit(frame, "label", **LAYOUT) for _ in range(2)
    )
    assert "scratch folder" in str(model.report_.plan)
    assert again.weights_.tolist() == model.weights_.tolist()


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
def test_each_graph_of_a_shard_is_met_once_in_a_pass() -> None:
    """Steps so short that their order does not matter add up to the slope, from one shard or from many."""
    X, y, frame = labelled()
    options: dict[str, Any] = {"solver": "sgd", "step_size": 1e-7, "max_iter": 2}
    reference = sf.GraphCRF(**options).fit(X, y)
    model = sf.GraphCRF(**options, memory_limit="5KB").fit(frame, "label", **LAYOUT)
    np.testing.assert_allclose(model.weights_, reference.weights_, rtol=1e-4)


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
def test_answers_to_tables_are_those_to_lists() -> None:
    X, y, frame = labelled(12)
    model = sf.GraphCRF(max_iter=6, prior=sf.Normal(variance=3.0)).fit(X, y)
    np.testing.assert_allclose(model.score_samples(frame, "label", **LAYOUT), model.score_samples(X, y), rtol=1e-12)
    assert model.score(frame, "label", **LAYOUT) == pytest.approx(model.score(X, y), rel=1e-12)
    weights = np.arange(12) % 3
    weighted = frame.assign(weight=weights[frame["graph"]])
    expected = model.score(X, y, sample_weight=weights)
    assert model.score(weighted, "label", sample_weight="weight", **LAYOUT) == pytest.approx(expected, rel=1e-12)
    shares = np.concatenate(model.predict_marginals(X))
    np.testing.assert_allclose(model.predict_marginals(frame, **LAYOUT), shares, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
@pytest.mark.parametrize("limit", [None, "3KB"])
def test_tables_join_and_are_compared_as_lists_are(limit: str | None) -> None:
    X, y, frame = labelled()
    options: dict[str, Any] = {"solver": "adam", "step_size": 0.05, "batch_size": 1}
    reference, model = sf.GraphCRF(**options), sf.GraphCRF(**options, memory_limit=limit)
    for first, last in ((0, 20), (20, 40)):
        reference.partial_fit(X[first:last], y[first:last])
        model.partial_fit(frame[(frame["graph"] >= first) & (frame["graph"] < last)], "label", **LAYOUT)
        np.testing.assert_allclose(model.weights_, reference.weights_, rtol=1e-10, atol=1e-12)
    assert model.evaluate(frame, "label", **LAYOUT) == reference.evaluate(X, y)
    assert model.accuracy(frame, "label", **LAYOUT) == reference.accuracy(X, y)
    with pytest.raises(sf.DataError, match="1 columns of features; the model was fitted to 2"):
        model.partial_fit(frame, "label", **{**LAYOUT, "columns": ["a"]})


def test_the_question_whether_a_maximum_exists_is_that_of_lists() -> None:
    """Labels that a feature separates have none, in shards as in a list."""
    X, _, frame = labelled(12)
    apart = [["u" if row[0] > 0 else "v" for row in example.nodes] for example in X]
    frame["label"] = [label for labels in apart for label in labels]
    with pytest.warns(sf.SeparationWarning, match="no maximum: the labels are separated"):
        model = sf.GraphCRF(memory_limit="3KB", max_iter=30).fit(frame, "label", **LAYOUT)
    assert model.report_.certificate.exists is False


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m, f: m.fit(f, "label", group="graph"), "node="),
        (lambda m, f: m.fit(f, **LAYOUT), "y is missing"),
        (lambda m, f: m.fit(f.assign(a=f["a"].where(f.index != 9)), "label", **LAYOUT), "Column 'a' is nan (row 9)"),
        (
            lambda m, f: m.fit(f.assign(label=f["label"].where(f.index != 9, None)), "label", **LAYOUT),
            "Column 'label' has a missing value (row 9); every node needs a label",
        ),
        (lambda m, f: m.fit(f.assign(joined=[["x"]] * len(f)), "label", **LAYOUT), "names the neighbour 'x'"),
        (lambda m, f: m.set_params(inference="gibbs").fit(f, "label", **LAYOUT), "list of GraphExample"),
        (lambda m, f: m.fit([sf.GraphExample([[1.0]])], [["u"]], group="graph"), "X is a list"),
        (lambda m, f: m.set_params(memory_limit=10).fit([sf.GraphExample([[1.0]])], [["u"]]), "memory_limit"),
    ],
)
def test_errors_say_what_to_do(call: Any, words: str) -> None:
    """What was given, what was expected, and how to give it."""
    with pytest.raises(sf.SufficeError) as error:
        call(sf.GraphCRF(), labelled(6)[2])
    assert words in str(error.value)
