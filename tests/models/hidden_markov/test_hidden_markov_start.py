"""Where EM begins: sums over steps alone, the same wherever sequences are and in whatever order they come."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from suffice.models.hidden_markov import start as starting
from suffice.models.hidden_markov import start_rounds
from suffice.models.hidden_markov.expectation import ChainExpectation
from suffice.sources import shards as shards_of_batches
from suffice.sources import stream
from suffice.sources.held import Held
from suffice.sources.sequences import Sequences

pytestmark = pytest.mark.filterwarnings("ignore:The fit stopped")
EMISSIONS: dict[str, tuple[Any, list[str]]] = {
    "symbols": (sf.Categorical(), ["symbol"]),
    "normals": (sf.Normal(), ["u"]),
    "vectors": (sf.MultivariateNormal(), ["u", "v"]),
    "counts": (sf.Poisson(), ["count"]),
    "mixtures": (sf.Mixture(sf.Normal(), 2), ["u"]),
    "columns": ({"u": sf.Normal(), "symbol": sf.Categorical()}, ["u", "symbol"]),
}


def steps() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    lengths = rng.integers(1, 12, 40)
    state = rng.integers(0, 2, lengths.sum())
    return pd.DataFrame(
        {
            "person": np.repeat([f"p{number}" for number in range(40)], lengths),
            "symbol": np.array(["a", "b", "c"])[(state + (rng.random(len(state)) < 0.3)) % 3],
            "u": 1e6 + 4.0 * state + rng.normal(size=len(state)),
            "v": rng.normal(size=len(state)) - state,
            "count": rng.poisson(1 + 5 * state),
        }
    )


def fitted(data: Any, name: str, **options: Any) -> np.ndarray:
    emission, columns = EMISSIONS[name]
    options = {"random_state": 1, "max_iter": 5} | options
    model = sf.HiddenMarkovModel(2, emission, **options).fit(data, group="person", columns=columns)
    arrays = [model.transitions_, *model.fitted_.parameters.emission.values()]
    return np.concatenate([np.ravel(array) for array in arrays])


@pytest.fixture
def shards(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Small shards, and every answer that a round gives."""
    monkeypatch.setattr(shards_of_batches, "SHARD_BYTES", 1)
    monkeypatch.setattr(stream, "BATCH_ROWS", 40)
    answers: list[Any] = []
    plain = Held.sum

    def asked(self: Any, *arguments: Any, **options: Any) -> Any:
        answers.append(plain(self, *arguments, **options))
        return answers[-1]

    monkeypatch.setattr(Held, "sum", asked)
    return answers


def holds_sequences(answer: Any) -> bool:
    """Whether sequences or steps are somewhere in an answer."""
    if isinstance(answer, Sequences | ChainExpectation):
        return True
    if isinstance(answer, dict):
        return any(map(holds_sequences, answer.values()))
    if isinstance(answer, list | tuple):
        return any(map(holds_sequences, answer))
    return any(map(holds_sequences, vars(answer).values())) if hasattr(answer, "__dict__") else False


@pytest.mark.parametrize(("name", "few"), [*((name, True) for name in EMISSIONS), ("vectors", False)])
def test_a_random_start_does_not_depend_on_order_or_place(
    name: str, few: bool, tmp_path: Path, shards: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if few:
        for module in (starting, start_rounds):
            monkeypatch.setattr(module, "SAMPLE", 60)
    data = steps()
    there = fitted(data, name)
    people = np.random.default_rng(3).permutation(data["person"].unique())
    mixed = pd.concat([data[data["person"] == person] for person in people], ignore_index=True)
    np.testing.assert_allclose(fitted(mixed, name), there, rtol=1e-10, atol=1e-11)
    path = str(tmp_path / "steps.parquet")
    mixed.to_parquet(path, row_group_size=30)
    mixed.to_csv(tmp_path / "steps.csv", index=False)
    shards.clear()
    for source in (path, str(tmp_path / "steps.csv")):
        np.testing.assert_allclose(fitted(source, name), there, rtol=1e-10, atol=1e-11)
    assert shards
    assert not any(map(holds_sequences, shards))
    largest = max(sum(np.asarray(part).nbytes for part in getattr(one, "parts", ())) for one in shards)
    assert largest < 6_000  # Steps by range of marks, whatever the number of steps.


def test_a_long_sequence_is_looked_at_from_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (starting, start_rounds):
        monkeypatch.setattr(module, "SAMPLE", 50)
    rng = np.random.default_rng(0)
    x = np.repeat([0.0, 6.0] * 10, 20) + rng.normal(size=400)
    model = sf.HiddenMarkovModel(2, sf.Normal(), random_state=0).fit([x])
    assert sorted(law.mean_ for law in model.emissions_) == pytest.approx([0.0, 6.0], abs=0.3)


def test_marks_tell_sequences_apart_and_not_their_order() -> None:
    rng = np.random.default_rng(1)
    sequences = [rng.normal(size=length) for length in (3, 5, 2, 5)]

    def marks(some: list[np.ndarray]) -> np.ndarray:
        model = sf.HiddenMarkovModel(1, sf.Normal(), max_iter=1).fit(some)
        emission = model.fitted_.emission
        offsets = np.concatenate([[0], np.cumsum([len(one) for one in some])]).astype(np.int64)
        observed = Sequences(emission.read([np.concatenate(some)]), offsets)
        return start_rounds.sequence_marks(observed, emission)

    assert len(set(marks(sequences).tolist())) == 4
    assert set(marks(sequences[::-1]).tolist()) == set(marks(sequences).tolist())
    twice = [*sequences, sequences[0]]
    assert marks(twice)[0] == marks(twice)[4]
    assert marks([sequences[0], sequences[0][::-1].copy()])[0] != marks([sequences[0], sequences[0][::-1].copy()])[1]
