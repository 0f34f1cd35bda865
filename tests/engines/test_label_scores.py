"""Chains with sparse features against dense arithmetic, on both paths."""

from typing import Any

import numpy as np
import pytest

from suffice.engines.chain import chains_from_logs
from suffice.engines.label_scores import ChainWeights, Matrix, Packing, ScoredSteps
from suffice.kernels import chain as kernels
from suffice.kernels.chain_batches import batches
from suffice.kernels.choice import force
from suffice.sources.sequences import Sequences


def problem(seed: int, size: int, plain: bool, lengths: Any = None) -> tuple[Any, Any, Any, Any]:
    """A random design, a packing with whole and with partial rows, offsets, and weights."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, size=12) if lengths is None else lengths
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    steps, width = int(offsets[-1]), 7
    dense = (rng.random((steps, width)) < 0.4) * (np.ones((steps, width)) if plain else rng.normal(size=(steps, width)))
    rows, columns = np.nonzero(dense)
    indptr = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=steps))))
    values = np.zeros(0) if plain else dense[rows, columns]
    mask = rng.random((width, size)) < 0.5
    mask[0] = True
    features, labels = np.nonzero(mask)
    pointers = np.concatenate(([0], np.cumsum(np.bincount(features, minlength=width))))
    packing = Packing(pointers, labels.astype(np.int32), size)
    ends = rng.normal(size=(2, size))
    weights = ChainWeights(rng.normal(size=len(labels)), rng.normal(size=(size, size)), ends, np.zeros((0, size, size)))
    return Matrix(indptr, columns.astype(np.int32), values, width), packing, offsets, (weights, dense, mask)


@pytest.mark.parametrize("path", ["numpy", "compiled"])
@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("size", [2, 5, 8])
def test_expected_features_are_those_of_dense_arrays(path: str, plain: bool, size: int) -> None:
    design, packing, offsets, (weights, dense, mask) = problem(size, size, plain)
    shares = np.random.default_rng(1).random(len(offsets) - 1)
    logs = dense @ packing.dense(weights.states)
    law = chains_from_logs(
        logs, weights.transitions, offsets=offsets, initial=weights.ends[0], final=weights.ends[1]
    ).expectations(shares)
    rows = law.posteriors * np.repeat(shares, np.diff(offsets))[:, None]
    with force(path):
        found = ScoredSteps(design, packing, offsets).expected(weights, shares)
    np.testing.assert_allclose(found.log_partition, law.log_partition, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.states, (dense.T @ rows)[mask], rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(found.transitions, law.transition_sums, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(found.ends[0], rows[offsets[:-1]].sum(axis=0), rtol=1e-11)
    np.testing.assert_allclose(found.ends[1], rows[offsets[1:] - 1].sum(axis=0), rtol=1e-11)


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("size", [3, 22, 41])
def test_many_sequences_side_by_side_are_those_of_dense_arrays(plain: bool, size: int) -> None:
    """Batches of 32 sequences and of 8, two that are left over, and one that is too long for any of them."""
    lengths = np.append(np.random.default_rng(2).integers(15, 30, size=90), 2000)
    design, packing, offsets, (weights, dense, mask) = problem(size, size, plain, lengths)
    shares = np.random.default_rng(1).random(len(lengths))
    law = chains_from_logs(
        dense @ packing.dense(weights.states),
        weights.transitions,
        offsets=offsets,
        initial=weights.ends[0],
        final=weights.ends[1],
    ).expectations(shares)
    rows = law.posteriors * np.repeat(shares, lengths)[:, None]
    with force("compiled"):
        steps = ScoredSteps(design, packing, offsets)
        found = steps.expected(weights, shares)
    members = batches(lengths, size)
    assert [part.shape for part in members] == [(2, 32), (3, 8)]
    chosen = np.concatenate([part.ravel() for part in members])
    assert len(np.unique(chosen)) == 88
    assert 90 not in chosen
    np.testing.assert_allclose(found.log_partition, law.log_partition, rtol=1e-12)
    np.testing.assert_allclose(found.states, (dense.T @ rows)[mask], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(found.transitions, law.transition_sums, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(found.ends[0], rows[offsets[:-1]].sum(axis=0), rtol=1e-11)
    np.testing.assert_allclose(found.ends[1], rows[offsets[1:] - 1].sum(axis=0), rtol=1e-11)


def test_sequences_in_need_of_log_space_leave_their_batch() -> None:
    """One loses its mass on the way forward and one at its end; the others of their batch keep their sums."""
    packing = Packing(np.arange(0, 16, 5), np.tile(np.arange(5, dtype=np.int32), 3), 5)
    features = [[2] * 4] * 40
    features[7], features[9] = [2, 0, 1, 2], [2, 2, 2, 0]
    design = Matrix(np.arange(161), np.concatenate(features).astype(np.int32), np.zeros(0), 3)
    states = np.zeros((3, 5))
    states[0, 0], states[2] = 900.0, [0.3, -0.2, 0.1, 0.0, 0.4]
    ends = np.zeros((2, 5))
    ends[1, 0] = -np.inf
    transitions = np.where(np.arange(5)[:, None] == np.arange(5), 0.5, -0.1)
    transitions[0, 1:], transitions[1:, 0] = -np.inf, -np.inf
    weights = ChainWeights(states.ravel(), transitions, ends, np.zeros((0, 5, 5)))
    found = {}
    for path in ("numpy", "compiled"):
        with force(path):
            found[path] = ScoredSteps(design, packing, np.arange(0, 161, 4)).expected(weights, np.ones(40))
    assert np.isfinite(found["numpy"].log_partition).all()
    for part in ("log_partition", "states", "transitions", "ends"):
        np.testing.assert_allclose(
            getattr(found["compiled"], part), getattr(found["numpy"], part), rtol=1e-11, atol=1e-12
        )


@pytest.mark.parametrize("plain", [True, False])
def test_observed_features_are_those_of_the_path(plain: bool) -> None:
    design, packing, offsets, (_, dense, mask) = problem(3, 4, plain)
    rng = np.random.default_rng(0)
    codes, shares = rng.integers(0, 4, size=len(dense)), rng.random(len(offsets) - 1)
    rows = np.eye(4)[codes] * np.repeat(shares, np.diff(offsets))[:, None]
    found = ScoredSteps(design, packing, offsets).observed(codes, shares)
    np.testing.assert_allclose(found.states, (dense.T @ rows)[mask], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found.ends[0], rows[offsets[:-1]].sum(axis=0), rtol=1e-12)
    assert found.transitions.sum() == pytest.approx((shares * (np.diff(offsets) - 1)).sum(), rel=1e-12)


def test_scores_that_underflow_are_done_in_log_space() -> None:
    """The only path that the ends allow has a potential that is 0 as a number."""
    packing = Packing(np.arange(0, 11, 5), np.tile(np.arange(5, dtype=np.int32), 2), 5)
    design = Matrix(np.array([0, 1, 2]), np.array([0, 1], np.int32), np.zeros(0), 2)
    states = np.zeros(10)
    states[0], states[9] = 900.0, 3.0
    ends = np.full((2, 5), -np.inf)
    ends[:, 4] = 0.0
    transitions = np.where(np.eye(5) > 0, 0.0, -np.inf)
    weights = ChainWeights(states, transitions, ends, np.zeros((0, 5, 5)))
    for path in ("numpy", "compiled"):
        with force(path):
            found = ScoredSteps(design, packing, np.array([0, 2])).expected(weights, np.ones(1))
        assert found.log_partition[0] == pytest.approx(3.0, rel=1e-12)
        np.testing.assert_allclose(found.states.reshape(2, 5)[:, 4], 1.0, rtol=1e-12)


def test_sums_do_not_depend_on_threads_or_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    design, packing, offsets, (weights, _, _) = problem(5, 6, True)
    with force("compiled"):
        whole = ScoredSteps(design, packing, offsets, threads=1).expected(weights, np.ones(len(offsets) - 1))
        monkeypatch.setattr(kernels, "PIECE", 300)
        steps = [ScoredSteps(design, packing, offsets, threads=threads) for threads in (1, 3)]
        found = [one.expected(weights, np.ones(len(offsets) - 1)) for one in steps]
    assert len(steps[0].pieces) > 5
    np.testing.assert_array_equal(found[0].states, found[1].states)
    np.testing.assert_array_equal(found[0].transitions, found[1].transitions)
    np.testing.assert_allclose(found[0].states, whole.states, rtol=1e-12, atol=1e-14)


def test_sums_side_by_side_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "PIECE", 16_000)
    design, packing, offsets, (weights, _, _) = problem(5, 6, True, np.full(200, 4))
    with force("compiled"):
        steps = [ScoredSteps(design, packing, offsets, threads=threads) for threads in (1, 3)]
        found = [one.expected(weights, np.ones(200)) for one in steps]
    assert len(steps[0].pieces) > 3
    assert len(batches(np.diff(offsets), 6)[0]) > 3
    np.testing.assert_array_equal(found[0].states, found[1].states)
    np.testing.assert_array_equal(found[0].transitions, found[1].transitions)


def test_a_part_of_the_sequences_is_cut_out() -> None:
    design, _, offsets, (_, dense, _) = problem(6, 3, False)
    sequences = Sequences(design, offsets)
    chosen, (steps, places) = sequences.chosen([4, 1]), sequences.steps_of([4, 1])
    part = chosen.values
    expected = np.concatenate([dense[offsets[4] : offsets[5]], dense[offsets[1] : offsets[2]]])
    found = np.zeros_like(expected)
    for row in range(part.rows):
        span = slice(part.indptr[row], part.indptr[row + 1])
        found[row, part.indices[span]] = part.values[span]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(dense[steps], expected)
    assert places.tolist() == chosen.offsets.tolist() == [0, offsets[5] - offsets[4], len(expected)]
