"""The recursion by time: every sequence is what it is alone, whatever lies beside it."""

import numpy as np
import pytest

from suffice.engines.chain import chains_of
from suffice.kernels import choice


@pytest.mark.parametrize("by_step", [False, True])
def test_a_sequence_beside_others_is_what_it_is_alone(by_step: bool) -> None:
    rng = np.random.default_rng(8)
    lengths = np.array([3, 1, 7, 0, 7, 2])
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    steps, weights = int(offsets[-1]), rng.random(len(lengths))
    potentials, ends = rng.random((steps, 3)), rng.random((2, 3))
    transitions = rng.random((steps, 3, 3) if by_step else (3, 3))
    with choice.force("numpy"):
        given = {"offsets": offsets, "initial": ends[0], "final": ends[1]}
        found = chains_of(potentials, transitions, **given).expectations(weights, pairs=True)
        sums = np.zeros((3, 3))
        for s, length in enumerate(lengths):
            span = slice(offsets[s], offsets[s + 1])
            own = {"offsets": [0, length], "initial": ends[0], "final": ends[1]}
            alone = chains_of(potentials[span], transitions[span] if by_step else transitions, **own)
            expected = alone.expectations([weights[s]], pairs=True)
            np.testing.assert_allclose(found.log_partition[s], expected.log_partition[0], rtol=1e-13)
            np.testing.assert_allclose(found.posteriors[span], expected.posteriors, rtol=1e-12)
            assert found.pairs is not None
            assert expected.pairs is not None
            np.testing.assert_allclose(found.pairs[span], expected.pairs, rtol=1e-12, atol=1e-16)
            sums += expected.transition_sums
    np.testing.assert_allclose(found.transition_sums, sums, rtol=1e-12)


def test_a_sequence_without_a_path_leaves_the_others_alone() -> None:
    potentials = np.array([[0.2, 0.8], [0.0, 0.0], [0.5, 0.5], [0.3, 0.7]])
    with choice.force("numpy"):
        found = chains_of(potentials, np.full((2, 2), 0.5), offsets=[0, 2, 4]).expectations()
    assert found.log_partition[0] == -np.inf
    np.testing.assert_array_equal(found.posteriors[:2], 0.0)
    np.testing.assert_allclose(found.posteriors[2:], potentials[2:] / potentials[2:].sum(axis=1, keepdims=True))
    np.testing.assert_allclose(found.transition_sums, np.outer(potentials[2], potentials[3]), rtol=1e-14)
