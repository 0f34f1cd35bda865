"""Works and questions for held data, in a module that workers in other processes can import too."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from suffice.errors import MissingValueError
from suffice.sources import open_source
from suffice.sources.base import Batch, Source
from suffice.sources.held import Held
from suffice.sources.partitioned import PartitionedSource

COLUMNS = ["s", "t", "x", "y"]
#: Coefficients of the design of `Gram`.
BETA = np.linspace(-0.3, 0.4, 7)


def hold(data: Any, work: Any, columns: list[str] = COLUMNS) -> Held[Any]:
    """The rows of a table, prepared; none of those elsewhere comes here."""
    source = open_source(data)
    held = source.hold(work, source.settle(source.infer(columns)))
    assert pulled(source) == 0
    return held


def pulled(source: Source) -> int:
    """How many rows a source of partitions has brought into this process; one in memory has none to bring."""
    return source.pulled if isinstance(source, PartitionedSource) else 0


def frame(rows: int = 3000) -> pd.DataFrame:
    """Two columns of states, of which one has a state that turns up late and sorts first, and two of numbers."""
    rng = np.random.default_rng(11)
    data = pd.DataFrame(
        {
            "s": np.array(["a", "b", "c"])[rng.integers(0, 3, rows)],
            "t": np.array(["u", "v"])[rng.integers(0, 2, rows)],
            "x": rng.normal(size=rows),
            "y": rng.gamma(2.0, size=rows),
        }
    )
    data.loc[rows - 5 :, "s"] = "0 comes late"
    return data


@dataclass(frozen=True)
class Gram:
    """Weighted cross products of a design of an intercept, the numbers and the states, as of a step of IRLS."""

    def prepare(self, batch: Batch) -> np.ndarray:
        states = [np.arange(1, batch.domain[name].card) for name in batch.discrete]
        dummies = [(codes == state) for codes, some in zip(batch.codes, states, strict=True) for state in some]
        return np.column_stack([np.ones(batch.rows), *batch.reals, *dummies]).astype(float)

    def evaluate(self, prepared: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        mean = 1 / (1 + np.exp(-(prepared @ parameters)))
        return np.asarray(prepared.T @ (prepared * (mean * (1 - mean))[:, None]))


def gram_of(data: pd.DataFrame, parameters: np.ndarray) -> np.ndarray:
    """The same from a frame in memory, by pandas."""
    dummies = [pd.get_dummies(data[name], dtype=float).iloc[:, 1:] for name in ("s", "t")]
    design = np.column_stack([np.ones(len(data)), data[["x", "y"]], *dummies])
    mean = 1 / (1 + np.exp(-(design @ parameters)))
    return np.asarray(design.T @ np.diag(mean * (1 - mean)) @ design)


@dataclass(frozen=True)
class DistinctRows:
    """Distinct rows of states with their counts; a round gives each of them a weight."""

    def prepare(self, batch: Batch) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
        rows, counts = np.unique(batch.codes, axis=1, return_counts=True)
        return rows, counts, tuple(batch.domain[name].card for name in batch.discrete)

    def evaluate(self, prepared: Any, parameters: float) -> np.ndarray:
        rows, counts, shape = prepared
        table = np.zeros(shape)
        np.add.at(table, tuple(rows), counts * parameters)
        return table


@dataclass(frozen=True)
class Places:
    """Which process prepared a shard, which one was asked, and how many rows it has."""

    def prepare(self, batch: Batch) -> tuple[int, int]:
        return os.getpid(), batch.rows

    def evaluate(self, prepared: tuple[int, int], parameters: object) -> tuple[tuple[int, int, int], ...]:
        return ((prepared[0], os.getpid(), prepared[1]),)


def steps() -> pd.DataFrame:
    """Sequences of a state and a number, whose rows are in any order."""
    rng = np.random.default_rng(4)
    lengths = rng.integers(1, 30, 60)
    data = pd.DataFrame(
        {
            "g": np.repeat([f"person {k}" for k in range(60)], lengths),
            "k": np.concatenate([np.arange(length) for length in lengths]),
            "s": np.array(["a", "b", "c"])[rng.integers(0, 3, lengths.sum())],
            "x": rng.normal(size=lengths.sum()),
        }
    )
    return data.assign(words=[["u", "v"][: k % 3] for k in data["k"]]).sample(frac=1, random_state=1, ignore_index=True)


@dataclass(frozen=True)
class Transitions:
    """Counts of neighbouring states in sequences, how many sequences there are, and how many words."""

    def prepare(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        assert batch.offsets is not None
        table = np.zeros((3, 3))
        for begin, end in pairwise(batch.offsets):
            np.add.at(table, (batch.codes[0, begin : end - 1], batch.codes[0, begin + 1 : end]), 1.0)
        words = sum(map(len, batch.raw["words"].to_pylist()))
        return table, np.array([len(batch.offsets) - 1, words])

    def evaluate(self, prepared: Any, parameters: float) -> np.ndarray:
        return np.append(prepared[0] * parameters, prepared[1])


def transitions_of(data: pd.DataFrame) -> np.ndarray:
    """The same by pandas."""
    ordered = data.sort_values(["g", "k"])
    following = ordered.groupby("g")["s"].shift(-1)
    return np.append(
        pd.crosstab(ordered["s"], following).to_numpy(), [data["g"].nunique(), data["words"].str.len().sum()]
    )


@dataclass(frozen=True)
class Running:
    """The state of each row, the running sum of a number in its sequence, and how many words it has."""

    def __call__(self, batch: Batch) -> dict[str, Any]:
        bounds = [0, batch.rows] if batch.offsets is None else batch.offsets
        sums = [np.cumsum(batch.reals[0][i:j]) for i, j in pairwise(bounds)]
        labels = np.array([*batch.domain[batch.discrete[0]].states, None], dtype=object)
        words = {"words_": list(map(len, batch.raw["words"].to_pylist()))} if batch.raw else {}
        return {"state": labels[batch.codes[0]], "sum": np.concatenate(sums), **words}


@dataclass(frozen=True)
class Refusing:
    """A work that takes no missing value, or fails as the code of a user may."""

    own: bool = False

    def prepare(self, batch: Batch) -> int:
        missing = np.isnan(batch.reals[0])
        if missing.any() and self.own:
            raise ZeroDivisionError("of my own")
        if missing.any():
            row = batch.start + int(missing.argmax())
            raise MissingValueError(f"Column {batch.real[0]!r} has a missing value (row {row}); none may be missing.")
        return batch.rows

    def evaluate(self, prepared: int, parameters: object) -> int:
        if parameters == "fail":
            raise LookupError("in a round")
        return prepared


def process(prepared: object, parameters: object) -> tuple[int, ...]:
    """Which process was asked."""
    return (os.getpid(),)


def slow_gram(prepared: np.ndarray, parameters: tuple[np.ndarray, float]) -> np.ndarray:
    """The Gram matrix, some time later."""
    time.sleep(parameters[1])
    return Gram().evaluate(prepared, parameters[0])


def shard_files(asked: str) -> frozenset[str]:
    """The names of the files of this executor of Spark; they are removed where that is asked."""
    folders = map(Path, os.environ["SPARK_LOCAL_DIRS"].split(","))
    found = [path for folder in folders for path in folder.glob("suffice-*/*")]
    for path in found:
        if asked == "remove":
            path.unlink()
    return frozenset(path.name for path in found)


def is_first(marker: str) -> bool:
    """Whether no process has asked before."""
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


@dataclass(frozen=True)
class Deadly:
    """A question whose first process is killed while it answers; the others, and the next, answer as they would."""

    question: Callable[[Any, Any], Any]
    marker: str

    def __call__(self, prepared: Any, parameters: Any) -> Any:
        if is_first(self.marker):
            os.kill(os.getpid(), signal.SIGKILL)
        return self.question(prepared, parameters)


@dataclass(frozen=True)
class Interrupting:
    """A slow question, in whose middle another process gets Ctrl-C, once."""

    question: Callable[[Any, Any], Any]
    marker: str
    process: int

    def __call__(self, prepared: Any, parameters: Any) -> Any:
        if is_first(self.marker):
            os.kill(self.process, signal.SIGINT)
            time.sleep(1.0)
        return self.question(prepared, parameters)


def waited(condition: Callable[[], bool]) -> None:
    """Wait until it holds; a worker may need some time to forget, or to come back."""
    for _ in range(300):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("still not after half a minute")
