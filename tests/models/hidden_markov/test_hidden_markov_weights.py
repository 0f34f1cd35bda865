"""A weight of a sequence is its repetition, from the start of EM on: the same runs, not only the same optimum."""

from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.models.hidden_markov import start as starting
from suffice.models.hidden_markov import start_rounds

HMM = sf.HiddenMarkovModel


def steps(seed: int, n: int, law: str) -> list[Any]:
    """Sequences of two states that stay, of lengths 5 to 20."""
    rng = np.random.default_rng(seed)
    found: list[Any] = []
    for _ in range(n):
        length = int(rng.integers(5, 21))
        states = (rng.random(length) < 0.3).cumsum() % 2
        if law == "symbols":
            found.append(["abc"[k] for k in (rng.integers(0, 2, length) + states)])
        elif law == "counts":
            found.append(rng.poisson(2 + 6 * states))
        elif law == "columns":
            found.append(np.column_stack([rng.normal(states * 3.0), rng.gamma(2.0 + states)]))
        else:
            found.append(np.round(rng.normal(states * 2.5), 3))
    return found


LAWS: dict[str, Any] = {
    "symbols": (sf.Categorical(), "symbols"),
    "normal": (sf.Normal(), "reals"),
    "counts": (sf.Poisson(), "counts"),
    "mixture": (sf.Mixture(sf.Normal(), 2), "reals"),
    "columns": ([sf.Normal(), sf.Gamma()], "columns"),
    "vector": (sf.MultivariateNormal(), "columns"),
}
WEIGHTS = [3, 1, 2, 0, 1, 4, 1, 2]


def repeated(sequences: list[Any], how: str) -> list[Any]:
    pairs = list(zip(sequences, WEIGHTS, strict=True))
    if how == "side by side":
        return [sequence for sequence, n in pairs for _ in range(n)]
    return [sequence for time in range(max(WEIGHTS)) for sequence, n in pairs if n > time]


@pytest.mark.filterwarnings("ignore:The fit stopped")
@pytest.mark.parametrize("how", ["side by side", "at the end"])
@pytest.mark.parametrize("kind", LAWS)
def test_weighted_sequences_are_learned_as_repeated_ones(kind: str, how: str) -> None:
    law, draw = LAWS[kind]
    sequences = steps(1, len(WEIGHTS), draw)
    options: dict[str, Any] = {"n_init": 3, "max_iter": 40, "tolerance": 1e-7}
    weighted = HMM(2, law, **options).fit(sequences, sample_weight=WEIGHTS)
    written_out = HMM(2, law, **options).fit(repeated(sequences, how))
    np.testing.assert_allclose(weighted.scores_, written_out.scores_, rtol=1e-9)
    assert weighted.report_.iterations == written_out.report_.iterations
    np.testing.assert_allclose(weighted.report_.history, written_out.report_.history, rtol=1e-9)
    np.testing.assert_allclose(weighted.transitions_, written_out.transitions_, rtol=1e-6, atol=1e-9)
    for left, right in zip(
        weighted.fitted_.parameters.emission.values(), written_out.fitted_.parameters.emission.values(), strict=True
    ):
        np.testing.assert_allclose(left, right, rtol=1e-6, atol=1e-9)


def test_the_sample_of_the_start_is_of_distinct_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    """With more steps than are looked at, repetitions do not crowd other sequences out."""
    for module in (starting, start_rounds):
        monkeypatch.setattr(module, "SAMPLE", 60)
    sequences = steps(2, len(WEIGHTS), "reals")
    weighted = HMM(2, sf.Normal(), max_iter=3, tolerance=0.5).fit(sequences, sample_weight=WEIGHTS)
    written_out = HMM(2, sf.Normal(), max_iter=3, tolerance=0.5).fit(repeated(sequences, "side by side"))
    np.testing.assert_allclose(weighted.report_.history, written_out.report_.history, rtol=1e-10)


def test_known_states_and_gaps_are_weighted_too() -> None:
    sequences = steps(3, len(WEIGHTS), "reals")
    states = [[None if at % 3 else int(value > 1.2) for at, value in enumerate(part)] for part in sequences]
    for part in sequences[:3]:
        part[2] = np.nan
    weighted = HMM([0, 1], sf.Normal(), max_iter=30, tolerance=1e-4).fit(sequences, states, sample_weight=WEIGHTS)
    written_out = HMM([0, 1], sf.Normal(), max_iter=30, tolerance=1e-4).fit(
        repeated(sequences, "side by side"), repeated(states, "side by side")
    )
    np.testing.assert_allclose(weighted.report_.history, written_out.report_.history, rtol=1e-10)


def test_floors_are_those_of_the_weighted_steps() -> None:
    """The floor is a share of the variance of the column, in which a weight counts as repetitions."""
    sequences, weights = [np.zeros(6), np.array([0.0, 10.0])], [5, 1]
    weighted = HMM(2, sf.Normal(), variance_floor=0.01, max_iter=50).fit(sequences, sample_weight=weights)
    written_out = HMM(2, sf.Normal(), variance_floor=0.01, max_iter=50).fit([sequences[0]] * 5 + [sequences[1]])
    left, right = (sorted(law.variance_ for law in model.emissions_) for model in (weighted, written_out))
    assert left == pytest.approx(right, rel=1e-9)
