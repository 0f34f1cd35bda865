"""Updates that touch the weights of a minibatch's features alone are those of all weights written out."""

from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.kernels.choice import force
from suffice.models.chain_crf.stochastic import ChainStochastic

pytest.importorskip("numba")

NAMES = [f"w{i}" for i in range(40)]
NORMAL = sf.Normal(variance=0.7)


def sentences(seed: int, count: int = 20, *, numbers: bool = False) -> Any:
    """Sequences of 1 to 6 steps with a few of many features, and labels that have something to do with them."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(count):
        steps = rng.integers(1, 7)
        chosen = [rng.choice(NAMES, size=3, replace=False).tolist() for _ in range(steps)]
        X.append([{name: float(rng.normal()) for name in names} for names in chosen] if numbers else chosen)
        Y.append([f"L{(int(names[0][1:]) + int(rng.integers(0, 2))) % 3}" for names in chosen])
    return X, Y


def both(X: Any, Y: Any, *, sample_weight: Any = None, **options: Any) -> Any:
    """The model by compiled loops, and the one by NumPy, where every update is written out."""
    found = []
    for path in ("compiled", "numpy"):
        with force(path):
            found.append(sf.ChainCRF(random_state=3, **options).fit(X, Y, sample_weight=sample_weight))
    return found


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "sgd"},
        {"solver": "sgd", "prior": NORMAL},
        {"solver": "sgd", "prior": NORMAL, "average": True, "decay": 0.5},
        {"solver": "sgd", "prior": NORMAL, "batch_size": 5, "boundaries": True, "average": True},
        {"solver": "sgd", "average": True, "all_possible_states": True, "all_possible_transitions": True},
        {"solver": "sgd", "prior": NORMAL, "constraints": [("L0", "L0")], "labels": ["L0", "L1", "L2", "L3"]},
        {"solver": "adam", "prior": NORMAL, "batch_size": 2},
        {"solver": "perceptron"},
        {"solver": "perceptron", "batch_size": 3, "boundaries": True},
        {"solver": "sgd", "prior": sf.Laplace(scale=2.0)},
        {"solver": "sgd", "prior": sf.Normal(mean=0.2, variance=2.0), "average": True},
        {"solver": "sgd", "prior": NORMAL, "conditioned_transitions": ["w1"]},
    ],
    ids=str,
)
@pytest.mark.parametrize("numbers", [False, True])
def test_sparse_updates_are_the_dense_ones(options: Any, numbers: bool) -> None:
    X, Y = sentences(0, numbers=numbers)
    if "constraints" in options:
        Y = [[("L3" if t and y[t - 1] == label == "L0" else label) for t, label in enumerate(y)] for y in Y]
        Y = [["L1" if label == "L0" else label for label in y] for y in Y]
    weights = np.arange(1.0, len(X) + 1.0) / 4.0
    sparse, dense = both(X, Y, sample_weight=weights, max_iter=4, step_size=0.3, **options)
    assert np.abs(dense.weights_).max() > 0.1
    np.testing.assert_allclose(sparse.weights_, dense.weights_, rtol=1e-10, atol=1e-12)
    assert sparse.report_.objective == pytest.approx(dense.report_.objective, rel=1e-12)


@pytest.mark.filterwarnings("ignore:Stochastic ascent runs away")
@pytest.mark.parametrize("average", [False, True])
def test_a_prior_that_takes_all_in_a_few_updates_loses_no_digits(average: bool) -> None:
    """Steps of 0.9 / precision leave a tenth of each weight: the scale is multiplied out again and again.

    The first step takes more than all of it, 1 - 1.5 < 0.
    """
    X, Y = sentences(1, count=30)
    variance = 0.02
    steps = [1.5 * variance * len(X)] + [0.9 * variance * len(X)] * 29
    options: Any = {"prior": sf.Normal(variance=variance), "solver": "sgd", "average": average, "max_iter": 3}
    sparse, dense = both(X, Y, step_size=steps, **options)
    np.testing.assert_allclose(sparse.weights_, dense.weights_, rtol=1e-9, atol=1e-12)


def test_minibatches_that_need_log_space_are_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a first step of 4,000 "b" is L1, "a" is L0 and L0 never follows L1: no scaled row holds "b a"."""
    X = [[["a"], ["a"], ["b"], ["b"]], [["c"], ["d"]], [["b"], ["a"]], [["c"], ["a"], ["b"]]]
    Y = [["L0", "L0", "L1", "L1"], ["L1", "L0"], ["L1", "L0"], ["L0", "L1", "L1"]]
    written, update = [], ChainStochastic.update

    def counted(self: Any, kept: Any, chosen: Any) -> None:
        written.append(len(chosen))
        update(self, kept, chosen)

    monkeypatch.setattr(ChainStochastic, "update", counted)
    options: Any = {"solver": "sgd", "step_size": [4000.0, 1.0, 0.1], "average": True, "max_iter": 2, "shuffle": False}
    with pytest.warns(sf.ConvergenceWarning, match="runs away"):
        sparse, dense = both(X, Y, prior=sf.Normal(variance=1e6), all_possible_transitions=True, **options)
    all_of_numpy = 2 * len(X)
    assert 0 < len(written) - all_of_numpy < all_of_numpy
    np.testing.assert_allclose(sparse.weights_, dense.weights_, rtol=1e-9, atol=1e-12)


def test_calls_one_after_another_go_on() -> None:
    X, Y = sentences(3)
    for solver in ("sgd", "perceptron"):
        options: Any = {"solver": solver, "average": True, "step_size": 0.2}
        with force("compiled"):
            whole = sf.ChainCRF(**options).partial_fit(X, Y).partial_fit(X, Y)
        with force("numpy"):
            parts = sf.ChainCRF(**options).partial_fit(X, Y).partial_fit(X, Y)
        np.testing.assert_allclose(whole.weights_, parts.weights_, rtol=1e-10, atol=1e-12)
