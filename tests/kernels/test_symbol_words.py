"""Words of symbols against the list of all state paths, against logarithms, and against the other path of a fit."""

import itertools
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.engines.chain import chains_of
from suffice.engines.symbol_chains import SymbolChains
from suffice.kernels import choice
from suffice.kernels.symbol_words import SymbolWords, word_length

Case = dict[str, Any]


def drawn(seed: int, size: int, card: int, lengths: list[int]) -> Case:
    """Sequences with a random chain; the last symbol is a missing value."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(card), size).T.copy()
    table[-1] = 1.0
    return {
        "codes": rng.integers(-1, card - 1, sum(lengths)).astype(np.int32),
        "offsets": np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        "initial": rng.dirichlet(np.ones(size)),
        "transitions": rng.dirichlet(np.ones(size), size),
        "table": table,
        "weights": rng.random(len(lengths)),
    }


def enumerated(case: Case) -> tuple[Any, Any, Any, Any]:
    """log Z, first states, transitions and symbols by every path of states."""
    size, card = len(case["initial"]), len(case["table"])
    logs, initial, joint, symbols = [], np.zeros(size), np.zeros((size, size)), np.zeros((card, size))
    for s, weight in enumerate(case["weights"]):
        codes = case["codes"][case["offsets"][s] : case["offsets"][s + 1]] % card
        paths = list(itertools.product(range(size), repeat=len(codes)))
        masses = []
        for path in paths:
            mass = case["initial"][path[0]] * case["table"][codes[0], path[0]]
            for t in range(1, len(path)):
                mass *= case["transitions"][path[t - 1], path[t]] * case["table"][codes[t], path[t]]
            masses.append(mass)
        total = sum(masses)
        logs.append(np.log(total))
        for path, mass in zip(paths, masses, strict=True):
            share = weight * mass / total
            initial[path[0]] += share
            for t, state in enumerate(path):
                symbols[codes[t], state] += share
                if t:
                    joint[path[t - 1], state] += share
    return logs, initial, joint, symbols


@pytest.mark.parametrize(("size", "card"), [(1, 3), (2, 2), (2, 5), (3, 3), (4, 30), (2, 1)])
def test_sums_equal_those_of_all_paths(size: int, card: int) -> None:
    case = drawn(size * 100 + card, size, card, [1, 2, 5, 7, 1, 4])
    words = SymbolWords.of(case["codes"], case["offsets"], card, size)
    found = words.expectations(case["initial"], case["transitions"], case["table"], case["weights"])
    for part, expected in zip(found, enumerated(case), strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-12, atol=1e-15)
    logs = words.log_masses(case["initial"], case["transitions"], case["table"])
    np.testing.assert_allclose(logs, enumerated(case)[0], rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("card", [2, 4, 9, 40])
def test_words_of_any_length_give_what_steps_give(card: int) -> None:
    case = drawn(card, 3, card, [1, 3_000, 17, 64, 65])
    words = SymbolWords.of(case["codes"], case["offsets"], card, 3)
    assert words.length == {2: 8, 4: 4, 9: 2, 40: 2}[card]
    found = words.expectations(case["initial"], case["transitions"], case["table"], case["weights"])
    rows = case["table"][case["codes"]]
    chains = chains_of(rows, case["transitions"], offsets=case["offsets"], initial=case["initial"])
    with choice.force("numpy"):
        expected = chains.expectations(case["weights"])
    each = np.repeat(case["weights"], np.diff(case["offsets"]))[:, None] * expected.posteriors
    symbols = np.zeros((card, 3))
    np.add.at(symbols, case["codes"] % card, each)
    np.testing.assert_allclose(found[0], expected.log_partition, rtol=1e-12)
    np.testing.assert_allclose(found[1], each[case["offsets"][:-1]].sum(axis=0), rtol=1e-11)
    np.testing.assert_allclose(found[2], expected.transition_sums, rtol=1e-11)
    np.testing.assert_allclose(found[3], symbols, rtol=1e-11)


def test_what_is_impossible_or_too_small_asks_for_logarithms() -> None:
    case = drawn(1, 2, 3, [6, 6, 3])
    case["codes"] = np.array([0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1], np.int32)
    case["table"] = np.array([[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]])
    words = SymbolWords.of(case["codes"], case["offsets"], 3, 2)
    logs = words.log_masses(case["initial"], case["transitions"], case["table"])
    assert np.isnan(logs).tolist() == [True, False, True]
    case["table"][1] = 1e-210
    assert np.isnan(words.log_masses(case["initial"], case["transitions"], case["table"])).tolist() == [
        True,
        False,
        True,
    ]


def test_many_states_or_symbols_and_empty_sequences_take_other_loops() -> None:
    assert word_length(6, 2) == 4
    assert word_length(6, 7) == 0
    assert word_length(20_000, 2) == 0
    with choice.force("compiled"):
        assert SymbolChains.of(np.zeros(4, np.int32), np.array([0, 4, 4]), 2, 2, calls=1) is None
        assert SymbolChains.of(np.zeros(4, np.int32), np.array([0, 4]), 2, 2, calls=1) is not None
    with choice.force("numpy"):
        assert SymbolChains.of(np.zeros(4, np.int32), np.array([0, 4]), 2, 2, calls=1) is None


@pytest.mark.parametrize("lengths", [[900], [40] * 20 + [1]])
@pytest.mark.parametrize("missing", [False, True])
def test_a_fit_is_the_same_on_both_paths(lengths: list[int], missing: bool) -> None:
    rng = np.random.default_rng(len(lengths))
    steps = [rng.integers(0, 4, n).astype(object) for n in lengths]
    if missing:
        for values in steps[:5]:
            values[rng.random(len(values)) < 0.2] = None
    model = sf.HiddenMarkovModel(
        3, emission=sf.Categorical(states=[0, 1, 2, 3]), random_state=3, max_iter=30, tolerance=0.0
    )
    fitted = {}
    for mode in ("numpy", "compiled"):
        with choice.force(mode):
            with pytest.warns(sf.ConvergenceWarning):
                found = model.fit(steps)
            logs = found.score_samples(steps)
            measured = np.array([found.report_.log_likelihood, found.report_.certificate.moment_gap])
            history = np.array(found.history_)
            fitted[mode] = [found.transitions_, found.emission_probabilities_, history, np.asarray(logs), measured]
    for left, right in zip(fitted["numpy"], fitted["compiled"], strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-8, atol=1e-11)


def test_threads_change_no_bit() -> None:
    steps = list(np.random.default_rng(5).integers(0, 3, (30, 50_000)))
    answers = []
    for threads in (1, 2):
        model = sf.HiddenMarkovModel(
            2, emission=sf.Categorical(states=[0, 1, 2]), random_state=1, max_iter=3, tolerance=0.0, threads=threads
        )
        with pytest.warns(sf.ConvergenceWarning):
            model.fit(steps)
        answers.append((model.transitions_.tobytes(), model.emission_probabilities_.tobytes()))
    assert answers[0] == answers[1]
