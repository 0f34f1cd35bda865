"""Chains against the enumeration of all label paths."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.engines.chain import Chains, chains_from_logs, chains_of
from suffice.errors import OptionError
from suffice.kernels import chain as kernels
from suffice.kernels.choice import force

PATHS = ["numpy", "compiled"]


def problem(seed: Any, lengths: Any = (3, 1, 4, 0, 2), size: Any = 3, by_step: Any = False, zeros: Any = 0.0) -> Any:
    """Random potentials, transitions, ends and offsets, some of them zero."""
    rng = np.random.default_rng(seed)
    steps = sum(lengths)

    def numbers(*shape: Any) -> Any:
        found = rng.gamma(1.0, size=shape)
        return np.where(rng.random(shape) < zeros, 0.0, found)

    offsets = np.concatenate(([0], np.cumsum(lengths)))
    shape = (steps, size, size) if by_step else (size, size)
    return numbers(steps, size), numbers(*shape), numbers(size), numbers(size), offsets


def enumerate_paths(potentials: Any, transitions: Any, initial: Any, final: Any, offsets: Any) -> Any:
    """All paths of each sequence with their weights."""
    for first, last in itertools.pairwise(offsets):
        found = []
        for path in itertools.product(range(potentials.shape[1]), repeat=last - first):
            weight = 1.0
            for t, label in enumerate(path):
                weight *= potentials[first + t, label]
                if t:
                    near = transitions if transitions.ndim == 2 else transitions[first + t]
                    weight *= near[path[t - 1], label]
            if path:
                weight *= initial[path[0]] * final[path[-1]]
            found.append((path, weight))
        yield first, found


def chains(given: Any, **more: Any) -> Any:
    potentials, transitions, initial, final, offsets = given
    return chains_of(potentials, transitions, offsets=offsets, initial=initial, final=final, **more)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("by_step", [False, True])
@pytest.mark.parametrize("zeros", [0.0, 0.25])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_expectations_are_those_of_all_paths(path: Any, by_step: Any, zeros: Any, size: Any) -> None:
    given = problem(size, size=size, by_step=by_step, zeros=zeros)
    weights = np.array([1.0, 0.5, 2.0, 1.0, 3.0])
    with force(path):
        found = chains(given).expectations(weights, pairs=True)
        masses = chains(given).log_partition()
    sums = np.zeros((size, size))
    for s, (first, paths) in enumerate(enumerate_paths(*given)):
        total = sum(weight for _, weight in paths)
        length = given[4][s + 1] - first
        rows, pairs = np.zeros((length, size)), np.zeros((length, size, size))
        for labels, weight in paths if total else ():
            for t, label in enumerate(labels):
                rows[t, label] += weight / total
                if t:
                    pairs[t, labels[t - 1], label] += weight / total
        sums += weights[s] * pairs.sum(axis=0)
        expected = np.log(total) if total else -np.inf
        assert found.log_partition[s] == pytest.approx(expected, rel=1e-12, abs=1e-12)
        assert masses[s] == pytest.approx(expected, rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(found.posteriors[first : first + length], rows, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(found.pairs[first : first + length], pairs, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found.transition_sums, sums, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("by_step", [False, True])
@pytest.mark.parametrize("most", [1, 2, 7])
def test_best_paths_are_those_of_a_sorted_list(path: Any, by_step: Any, most: Any) -> None:
    given = problem(5, by_step=by_step, zeros=0.2)
    with force(path):
        paths, values = chains(given).best_paths(most)
    for s, (first, listed) in enumerate(enumerate_paths(*given)):
        listed = sorted((entry for entry in listed if entry[1] > 0.0), key=lambda entry: -entry[1])[:most]
        assert np.isneginf(values[s, len(listed) :]).all()
        for rank, (labels, weight) in enumerate(listed):
            assert values[s, rank] == pytest.approx(np.log(weight), rel=1e-12, abs=1e-12)
            assert tuple(paths[rank, first : first + len(labels)]) == labels
        if len(listed) < most:
            assert (paths[len(listed) :, first : given[4][s + 1]] == -1).all()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("by_step", [False, True])
def test_samples_follow_the_law_of_paths(path: Any, by_step: Any) -> None:
    given = problem(8, lengths=(3, 2), size=2, by_step=by_step)
    n = 20_000
    with force(path):
        drawn = chains(given).sample(n, random_state=0)
    for s, (first, paths) in enumerate(enumerate_paths(*given)):
        total = sum(weight for _, weight in paths)
        here = drawn[:, first : given[4][s + 1]]
        for labels, weight in paths:
            p = weight / total
            share = (here == np.array(labels)).all(axis=1).mean()
            assert abs(share - p) < 5.0 * np.sqrt(p * (1.0 - p) / n) + 1e-12


def test_both_paths_draw_alike() -> None:
    given = problem(3)
    drawn = []
    for path in PATHS:
        with force(path):
            drawn.append(chains(given).sample(50, random_state=1))
    np.testing.assert_array_equal(*drawn)


@pytest.mark.parametrize("path", PATHS)
def test_log_weights_less_log_partition_sum_to_one(path: Any) -> None:
    given = problem(2, lengths=(3,))
    law = chains(given)
    with force(path):
        total = law.log_partition()[0]
    logs = [law.log_weights(np.array(labels))[0] for labels in itertools.product(range(3), repeat=3)]
    assert np.exp(np.array(logs) - total).sum() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("by_step", [False, True])
def test_underflow_goes_to_log_space(path: Any, by_step: Any) -> None:
    """The future rules out every label but one whose forward share is below the smallest number."""
    scores = np.array([[0.0, -900.0], [0.0, 0.0], [-np.inf, 0.0], [0.0, 0.0]])
    matrix = np.array([[0.0, -np.inf], [-5.0, 0.0]])
    offsets = np.array([0, 3, 4])
    matrices = np.broadcast_to(matrix, (4, 2, 2)) if by_step else matrix
    with force(path):
        law = chains_from_logs(scores, matrices, offsets=offsets)
        found = law.expectations(np.array([2.0, 1.0]), pairs=True)
        drawn = law.sample(3, random_state=0)
    np.testing.assert_allclose(found.log_partition, [-900.0, np.log(2.0)], rtol=1e-14)
    np.testing.assert_allclose(found.posteriors, np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.5, 0.5]]), atol=1e-15)
    np.testing.assert_allclose(found.transition_sums, [[0, 0], [0, 4]], atol=1e-15)
    assert (drawn[:, :3] == 1).all()


@pytest.mark.parametrize("path", PATHS)
def test_mass_lost_only_on_the_way_back_is_found_again(path: Any) -> None:
    """Each forward row is large enough, but the label that wins in the end had a share of 1e-300 on the way."""
    scores = np.array([[0.0, -345.0], [0.0, -345.0], [-345.0, 0.0], [-347.0, 0.0], [0.0, 0.3]])
    matrix = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    law = chains_from_logs(scores, matrix, offsets=np.array([0, 4, 5]))
    with force(path):
        found = law.expectations()
    share = 1.0 / (1.0 + np.exp(2.0))
    np.testing.assert_allclose(found.posteriors[:4], [[share, 1.0 - share]] * 4, rtol=1e-12)
    np.testing.assert_allclose(found.transition_sums, np.diag([3.0 * share, 3.0 - 3.0 * share]), rtol=1e-12)


@pytest.mark.parametrize("path", PATHS)
def test_a_sequence_without_a_path_weighs_nothing(path: Any) -> None:
    law = chains_of([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [1.0, 1.0]], offsets=[0, 2, 3])
    with force(path):
        found, (paths, values) = law.expectations(), law.best_paths()
        drawn = law.sample(2, random_state=0)
    assert found.log_partition[0] == -np.inf
    assert values[0, 0] == -np.inf
    np.testing.assert_array_equal(found.posteriors[:2], 0.0)
    np.testing.assert_array_equal(found.transition_sums, 0.0)
    np.testing.assert_array_equal(paths[0, :2], -1)
    np.testing.assert_array_equal(drawn[:, :2], -1)


def test_large_numbers_are_taken_out() -> None:
    rng = np.random.default_rng(0)
    scores, matrix = rng.normal(size=(6, 3)) + 5000.0, rng.normal(size=(3, 3)) - 3000.0
    found = chains_from_logs(scores, matrix, offsets=[0, 6]).log_partition()[0]
    plain = chains_from_logs(scores - 5000.0, matrix + 3000.0, offsets=[0, 6]).log_partition()[0]
    assert found == pytest.approx(plain + 6 * 5000.0 - 5 * 3000.0, rel=1e-13)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.lists(st.integers(0, 6), min_size=1, max_size=6), st.integers(1, 6), st.booleans())
def test_both_paths_agree(seed: Any, lengths: Any, size: Any, by_step: Any) -> None:
    given = problem(seed, lengths=lengths, size=size, by_step=by_step, zeros=0.1)
    answers = []
    for path in PATHS:
        with force(path):
            answers.append((chains(given).expectations(pairs=True), chains(given).best_paths(3)))
    (one, best), (two, other) = answers
    for name in ("log_partition", "posteriors", "transition_sums", "pairs"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(best[1], other[1], rtol=1e-12, atol=1e-12)


def test_sums_do_not_depend_on_threads(monkeypatch: Any) -> None:
    monkeypatch.setattr(kernels, "PIECE", 400)
    given = problem(1, lengths=tuple(range(1, 60)), size=4)
    with force("compiled"):
        found = [chains(given).expectations(threads=threads) for threads in (1, 2, 3)]
    assert len(kernels.pieces(np.asarray(given[4]), 4)) > 20
    for other in found[1:]:
        np.testing.assert_array_equal(other.transition_sums, found[0].transition_sums)
        np.testing.assert_array_equal(other.posteriors, found[0].posteriors)


def test_pieces_cover_every_sequence_once() -> None:
    offsets = np.array([0, 0, 5, 5, 1_000_000, 1_000_001, 1_000_001])
    spans = kernels.pieces(offsets, 10)
    assert spans[0][0] == 0
    assert spans[-1][1] == 6
    assert all(a[1] == b[0] for a, b in itertools.pairwise(spans))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offsets": [0, 2]}, "rise from 0 to 3"),
        ({"transitions": np.ones((3, 2))}, "transitions have shape"),
        ({"initial": np.ones(3)}, "initial has shape"),
        ({"potentials": np.full((3, 2), np.nan)}, "not a number"),
        ({"potentials": np.full((3, 2), -1.0)}, "not negative"),
    ],
)
def test_what_does_not_fit_is_refused(change: Any, message: Any) -> None:
    given = {"potentials": np.ones((3, 2)), "transitions": np.ones((2, 2)), "offsets": [0, 3], **change}
    with pytest.raises(OptionError, match=message):
        chains_of(given.pop("potentials"), given.pop("transitions"), **given)


def test_weights_must_be_one_for_each_sequence() -> None:
    law: Chains = chains_of(np.ones((3, 2)), np.ones((2, 2)), offsets=[0, 3])
    with pytest.raises(OptionError, match="1 sequences"):
        law.expectations(np.ones(2))
