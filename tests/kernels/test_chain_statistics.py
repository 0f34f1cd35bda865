"""Sums over steps and densities of steps, on both paths, against plain NumPy and SciPy."""

import numpy as np
import pytest
from scipy import stats

from suffice.engines.chain_blocks import blocks, map_blocks
from suffice.engines.chain_statistics import counts_by_code, diagonal_potentials, products_by_weight
from suffice.kernels import choice


@pytest.mark.parametrize("mode", ["numpy", "compiled"])
def test_rows_are_added_by_code(mode: str) -> None:
    rng = np.random.default_rng(0)
    codes, weights = rng.integers(-1, 4, 200).astype(np.int32), rng.random((200, 3))
    with choice.force(mode):
        found = counts_by_code(codes, weights, 4)
    np.testing.assert_allclose(found, [weights[codes == code].sum(axis=0) for code in range(4)], rtol=1e-13)


@pytest.mark.parametrize("mode", ["numpy", "compiled"])
@pytest.mark.parametrize("d", [1, 3])
def test_densities_are_scaled_by_the_largest(mode: str, d: int) -> None:
    rng = np.random.default_rng(1)
    x, means, variances = rng.normal(size=(50, d)), rng.normal(size=(4, d)), rng.random((4, d)) + 0.1
    with choice.force(mode):
        rows, shift = diagonal_potentials(x, means, variances)
    logs = stats.norm(means, np.sqrt(variances)).logpdf(x[:, None]).sum(axis=2)
    np.testing.assert_allclose(np.log(rows) + shift[:, None], logs, rtol=1e-12)
    assert (rows.max(axis=1) == 1.0).all()


@pytest.mark.parametrize("d", [2, 9])
def test_products_are_weighted_sums(d: int) -> None:
    rng = np.random.default_rng(2)
    x, weights = rng.normal(size=(40, d)), rng.random((40, 3))
    found = products_by_weight(x, weights)
    np.testing.assert_allclose(found["weight"], weights.sum(axis=0))
    np.testing.assert_allclose(found["sums"], np.einsum("nk,ni->ki", weights, x))
    np.testing.assert_allclose(found["products"], np.einsum("nk,ni,nj->kij", weights, x, x))


def test_blocks_hold_whole_sequences_in_order() -> None:
    offsets = np.concatenate([[0], np.cumsum(np.random.default_rng(3).integers(1, 90_000, 40))])
    spans = blocks(offsets, 4)
    assert [a for a, _ in spans[1:]] == [b for _, b in spans[:-1]]
    assert (spans[0][0], spans[-1][1]) == (0, 40)
    assert map_blocks(lambda span: span, spans, 2) == spans
