"""Sequences in shards: every round gives what all sequences together give, and a shard keeps its own columns alone."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import suffice as sf
from field_parts import field_data, field_objective
from label_paths import log_likelihood, random_sequences
from suffice.models.chain_crf.rounds import ChainShard, ReadSequences
from suffice.models.chain_crf.task import ChainCRFTask, ChainData
from suffice.models.conditional_field.shards import PartOfVector
from suffice.models.conditional_field.task import FieldProblem
from suffice.sources.held import HeldHere


def tagged(seed: int = 0, count: int = 60) -> Any:
    """Sentences whose words are told by their labels, some of them rare."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(count):
        labels = rng.integers(0, 3, size=int(rng.integers(1, 9))).tolist()
        words = [int(rng.integers(8)) + 5 * label for label in labels]
        X.append([{"word": f"w{w}", "even": w % 2 == 0, "size": float(w) / 4.0} for w in words])
        y.append(["ABC"[label] for label in labels])
    return X, y


def cut(data: Any, pieces: int) -> ChainData:
    """The same data in shards, each with the columns of its own features."""
    shards = []
    for numbers in np.array_split(np.arange(data.rows), pieces):
        examples = data.examples.take(int(numbers[0]), int(numbers[-1]) + 1)
        first = int(data.examples.offsets[numbers[0]])
        codes = data.codes[first : first + examples.n_steps]
        matrix = examples.values
        own, indices = np.unique(matrix.indices, return_inverse=True)
        narrow = type(matrix)(matrix.indptr, indices.astype(np.int32), matrix.values, len(own))
        shards.append(ChainShard(examples.reading(narrow), codes, data.weights[numbers], own))
    travelled = pickle.loads(pickle.dumps(shards))
    return ChainData.of(HeldHere(ReadSequences(), travelled), data.structure, layout=data.layout)


CASES: dict[str, dict[str, Any]] = {
    "maximum likelihood": {},
    "prior": {"prior": sf.Normal(variance=2.0), "boundaries": True, "bias": True},
    "conditioned": {"prior": sf.Normal(variance=2.0), "conditioned_transitions": ["size", "even"]},
    "constraints": {"constraints": [("A", "B"), (None, "C")]},
}


@pytest.mark.parametrize("case", CASES)
def test_rounds_of_shards_give_what_the_whole_gives(case: str) -> None:
    """Value, slope, variance, rank, ends and ranges; the slope also against finite differences."""
    X, y = tagged()
    if case == "constraints":
        kept = [k for k, labels in enumerate(y) if labels[0] != "C" and "AB" not in "".join(labels)]
        X, y = [X[k] for k in kept], [y[k] for k in kept]
    weights = np.random.default_rng(3).integers(1, 4, len(X)).astype(float)
    model = sf.ChainCRF(**CASES[case])
    task: ChainCRFTask = model._task()
    whole = field_data(model, X, y, weights)
    parts = cut(whole, 7)
    one, many = task.objective(whole), task.objective(parts)
    x = np.random.default_rng(1).normal(size=whole.structure.length) * 0.3
    value, slope = one.smooth(x)
    assert many.smooth(x)[0] == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(many.smooth(x)[1], slope, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(many.variance(x), one.variance(x), rtol=1e-11, atol=1e-12)
    for j in range(0, len(x), 7):
        step = np.zeros(len(x))
        step[j] = 1e-5
        rise = (many.smooth(x + step)[0] - many.smooth(x - step)[0]) / 2e-5
        assert rise == pytest.approx(slope[j], rel=1e-6, abs=1e-6)
    assert task.rank(parts, many, bounded=False) == task.rank(whole, one, bounded=False)
    labels, together = task.separable(parts, many), task.separable(whole, one)
    for found, expected in zip([*labels.ends(), labels.ranges()], [*together.ends(), together.ranges()], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(labels.best_features(x), together.best_features(x), rtol=1e-12)
    np.testing.assert_allclose(labels.first_slope(), together.first_slope(), rtol=1e-11, atol=1e-11)
    assert labels.separation(x) == together.separation(x)


def test_the_log_likelihood_of_shards_is_that_of_all_paths() -> None:
    """Against the sum over every path of every sequence."""
    X, Y = random_sequences(5)
    model = sf.ChainCRF(labels=[0, 1, 2])
    data = cut(field_data(model, X, Y), 3)
    x = np.random.default_rng(2).normal(size=18)
    states, transitions = x[:9].reshape(3, 3), x[9:].reshape(3, 3)
    found = model._task().objective(data).log_likelihood(x)
    assert found == pytest.approx(log_likelihood(X, Y, states, transitions), rel=1e-12)


@pytest.mark.parametrize("options", [{"prior": sf.Normal(variance=2.0), "max_iter": 12}, {"max_iter": 12}])
def test_a_fit_of_shards_takes_the_steps_of_the_whole(options: dict[str, Any]) -> None:
    """At the same number of iterations the weights, the judgement and the shares of labels are equal."""
    X, y = tagged(4)
    model = sf.ChainCRF(**options)
    with pytest.warns(sf.ConvergenceWarning):
        model.fit(X, y)
    task: ChainCRFTask = model._task()
    parts = cut(field_data(model, X, y), 5)
    problem = task.problem(parts, None)
    assert isinstance(problem, FieldProblem)
    solution = problem.solve(model._control())
    assert solution.outcome is not None
    assert solution.outcome.stop_reason == model.report_.stop_reason
    assert "Raise max_iter" in solution.outcome.warning
    np.testing.assert_allclose(solution.fitted.weights, model.weights_, rtol=0, atol=1e-10)
    judged = problem.judge(solution.fitted)
    report = model.report_
    assert judged.log_likelihood == pytest.approx(report.log_likelihood, rel=1e-12)
    assert judged.certificate.moment_gap == pytest.approx(report.certificate.moment_gap, rel=1e-6)
    assert judged.certificate.exists == report.certificate.exists
    np.testing.assert_allclose(judged.kept.shares, np.asarray(model.label_shares_), rtol=1e-14)


def test_a_shard_answers_for_its_own_weights_alone() -> None:
    """What comes back has as many entries as the shard has weights, and sums are those of written-out vectors."""
    X, y = tagged()
    model = sf.ChainCRF()
    parts = cut(field_data(model, X, y), 20)
    objective = model._task().objective(parts)
    x = np.zeros(objective.structure.length)
    from suffice.models.chain_crf.rounds import PlacedWeights, expected

    answer = parts.held.sum(PlacedWeights(parts.layout, x), expected, shards=[3]).parts[1]
    assert answer.places is not None
    assert len(answer.values) < 0.7 * objective.structure.length
    rng = np.random.default_rng(0)
    for length in (5, 40):
        vectors = []
        for _ in range(4):
            places = np.sort(rng.choice(length, 4, replace=False))
            vectors.append(PartOfVector(length, rng.normal(size=4), places))
        total = vectors[0] + vectors[1] + (vectors[2] + vectors[3])
        np.testing.assert_allclose(total.whole(), sum(v.whole() for v in vectors), rtol=1e-14)


def test_objectives_of_lists_are_one_shard() -> None:
    """Data in memory are one shard, which has all threads."""
    X, y = tagged()
    objective = field_objective(sf.ChainCRF(), X, y)
    assert objective.rounds.held.shards == 1
