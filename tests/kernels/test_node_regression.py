"""One sweep of regressions: the compiled loop beside the NumPy path, and both beside the theorem."""

import numpy as np
import pytest

from suffice.kernels.node_regression import sweep


def problem(seed: int, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    S = np.cov(rng.standard_normal((5 * p, p)).T, bias=True)
    near = [sorted({(j - 1) % p, (j + 1) % p, (j + p // 2) % p} - {j}) for j in range(p)]
    near[0] = [n for n in near[0] if n != p // 2]  # Rows need not be of one length.
    near[p // 2] = [n for n in near[p // 2] if n != 0]
    starts = np.cumsum([0, *map(len, near)]).astype(np.int64)
    return S, starts, np.concatenate(near).astype(np.int64)


@pytest.mark.parametrize("seed", range(3))
def test_the_compiled_sweep_equals_that_of_numpy(seed: int) -> None:
    S, starts, neighbours = problem(seed, 8)
    answers = []
    for compiled in (False, True):
        W, weights = S.copy(), np.zeros(len(neighbours))
        changes = [sweep(S, W, starts, neighbours, weights, compiled=compiled) for _ in range(3)]
        answers.append((W, weights, np.array(changes)))
    for ours, theirs in zip(*answers, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_sweep_raises_the_determinant_and_keeps_the_edges(compiled: bool) -> None:
    S, starts, neighbours = problem(5, 8)
    W, weights = S.copy(), np.zeros(len(neighbours))
    last = np.linalg.slogdet(W)[1]
    for _ in range(4):
        sweep(S, W, starts, neighbours, weights, compiled=compiled)
        now = np.linalg.slogdet(W)[1]
        assert now >= last - 1e-13
        last = now
    nodes = np.repeat(np.arange(8), np.diff(starts))
    np.testing.assert_allclose(W[nodes, neighbours], S[nodes, neighbours], atol=1e-9)
    np.testing.assert_allclose(np.diag(W), np.diag(S))


@pytest.mark.parametrize("compiled", [False, True])
def test_a_matrix_that_is_not_positive_definite_is_told(compiled: bool) -> None:
    S = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    starts, neighbours = np.array([0, 1, 2, 2]), np.array([1, 0])
    assert sweep(S, S.copy(), starts, neighbours, np.zeros(2), compiled=compiled) == -1.0
