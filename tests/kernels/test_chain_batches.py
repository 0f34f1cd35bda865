"""Sequences worked on side by side: the same answers as one by one in NumPy, whatever their lengths."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from suffice.engines.chain import Chains, chains_of
from suffice.engines.chain_blocks import blocks
from suffice.kernels import chain_logs, choice
from suffice.kernels.chain_batches import WIDTHS, batches


def problem(size: int, lengths: list[int], seed: int = 0) -> Chains:
    rng = np.random.default_rng(seed)
    return chains_of(
        rng.random((sum(lengths), size)),
        rng.dirichlet(np.ones(size), size),
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        initial=rng.random(size),
        final=rng.random(size),
    )


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 10, 17])
@pytest.mark.parametrize(
    "lengths", [[9] * 8, [30, 1, 0, 5, 7, 7, 2, 0, 1, 12, 11] * 3, [100, 90, 80] * 7, [3, 400, 2, 500, 4] * 9]
)
def test_both_paths_agree(size: int, lengths: list[int]) -> None:
    chains = problem(size, lengths)
    weights = np.random.default_rng(1).random(len(lengths))
    with choice.force("numpy"):
        plain, masses = chains.expectations(weights), chains.log_partition()
    with choice.force("compiled"):
        found, again = chains.expectations(weights), chains.log_partition()
        twice = chains.expectations(weights, threads=2)
    np.testing.assert_allclose(found.log_partition, plain.log_partition, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(again, masses, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.posteriors, plain.posteriors, rtol=1e-11, atol=1e-300)
    np.testing.assert_allclose(found.transition_sums, plain.transition_sums, rtol=1e-11)
    np.testing.assert_array_equal(found.transition_sums, twice.transition_sums)
    np.testing.assert_array_equal(found.posteriors, twice.posteriors)


def test_batches_hold_every_sequence_once_and_none_that_would_run_alone() -> None:
    lengths = np.array([5, 0, 7, 1000, *[6] * 36, 5, 5])
    wide, narrow = batches(lengths, 2)
    assert wide.tolist() == [[2, *range(4, 35)]]
    assert narrow.tolist() == [[35, 36, 37, 38, 39, 0, 40, 41]]  # All others but the long and the empty one.
    assert [len(part) for part in batches(np.array([10_000]), 2)] == [0, 0]


@pytest.mark.parametrize(("width", "busy"), WIDTHS)
def test_a_batch_is_made_where_enough_of_it_is_busy(width: int, busy: float) -> None:
    least, number = int(np.ceil(busy * width)), WIDTHS.index((width, busy))
    assert len(batches(np.full(least, 7), 2)[number]) == 1
    assert len(batches(np.full(least - 1, 7), 2)[number]) == 0


@pytest.mark.parametrize("n", [1, 32])
def test_masses_that_grow_do_not_overflow(n: int) -> None:
    size, length = 20, 2000
    chains = chains_of(np.ones((n * length, size)), np.ones((size, size)), offsets=np.arange(n + 1) * length)
    with choice.force("compiled"):
        np.testing.assert_allclose(chains.log_partition(), np.full(n, length * np.log(size)), rtol=1e-12)


def stuck(n: int, length: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Steps and transitions of sequences that can never leave the first label."""
    return np.full((n * length, 2), [1.0, 0.5]), np.array([[1.0, 0.0], [0.5, 0.5]])


def test_one_sequence_without_a_path_leaves_the_others_alone() -> None:
    potentials, transitions = stuck(32, 6)
    potentials[6 * 3 + 4] = [0.0, 1.0]  # The fourth sequence is in the first label, and must not be.
    chains = chains_of(potentials, transitions, offsets=np.arange(33) * 6, initial=[1.0, 0.0])
    with choice.force("compiled"):
        found = chains.expectations()
    assert found.log_partition[3] == -np.inf
    assert (found.posteriors[18:24] == 0.0).all()
    np.testing.assert_allclose(np.delete(found.log_partition, 3), 0.0, atol=1e-15)
    np.testing.assert_allclose(found.transition_sums, [[155.0, 0.0], [0.0, 0.0]], rtol=1e-14)


def test_a_sequence_of_a_batch_that_underflows_is_done_again_in_logs() -> None:
    length = 50
    potentials = np.random.default_rng(5).random((32 * length, 2)) * 0.5 + 0.5
    potentials[2 * length : 3 * length] = [1.0, 1e-8]
    potentials[3 * length - 1] = [0.0, 1.0]  # This sequence must take a transition of 1e-250.
    transitions = np.array([[1.0, 1e-250], [0.0, 1.0]])
    check_in_logs(chains_of(potentials, transitions, offsets=np.arange(33) * length, initial=[1.0, 0.0]))


def test_numbers_of_all_sizes_lose_some_sequences_on_the_way_back() -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        potentials, transitions = 10.0 ** rng.uniform(-180, 0, (40 * 6, 3)), 10.0 ** rng.uniform(-180, 0, (3, 3))
        check_in_logs(chains_of(potentials, transitions, offsets=np.arange(41) * 6))


def check_in_logs(chains: Chains) -> None:
    """The answers of the loops are those of log space, sequence by sequence."""
    with choice.force("compiled"):
        found = chains.expectations()
    sums = np.zeros_like(found.transition_sums)
    for s in range(chains.sequences):
        span = slice(int(chains.offsets[s]), int(chains.offsets[s + 1]))
        value, rows, joint = chain_logs.expectations(
            chains.scores(span), chains.log_transitions, chains.log_ends, np.zeros((0, 0, 0))
        )
        assert found.log_partition[s] == pytest.approx(value + chains.shifts[s], rel=1e-12)
        np.testing.assert_allclose(found.posteriors[span], rows, rtol=1e-9, atol=1e-12)
        sums += joint
    np.testing.assert_allclose(found.transition_sums, sums, rtol=1e-9, atol=1e-12)


def test_blocks_of_an_expectation_hold_whole_batches() -> None:
    sizes = [last - first for first, last in blocks(np.arange(201) * 500, 10)]
    assert sizes == [32, 32, 32, 32, 32, 32, 8]
    assert [last - first for first, last in blocks(np.arange(201) * 500, 2)] == [200]
    ragged = np.concatenate(([0], np.cumsum(np.random.default_rng(0).integers(250, 750, 1000))))
    bounds = blocks(ragged, 10)
    assert (bounds[0][0], bounds[-1][1]) == (0, 1000)
    assert all(last == first for (_, last), (first, _) in pairwise(bounds))
    assert all((last - first) % 32 == 0 for first, last in bounds[:-1])
