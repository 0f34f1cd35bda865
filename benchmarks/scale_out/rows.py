"""Random tables as folders of Parquet files, drawn anew from a seed, part by part."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

#: Rows of a file at most, and the least number of files; both are whole numbers of sequences.
PART_ROWS, PARTS = 250_000, 4
#: Columns of a table; steps of a sequence.
COLUMNS, STEPS = 20, 20
#: Part of the values that are missing, where some are.
MISSING = 0.1
#: Words and labels of a table of tokens.
WORDS, LABELS = 1000, 5
#: Labels of a table of newswire, and how many values each feature has: words about a token, their ends, shapes, flags.
NEWS_LABELS = 9
NEWS_FEATURES = (20_000,) * 3 + (5_000,) * 4 + (500,) * 5 + (50,) * 4 + (2,) * 4
#: Real columns that have missing values: each row has one of 2^4 patterns.
INCOMPLETE = 4

Columns = dict[str, Any]
#: Draws the columns of a part: the generator of the law, that of the part, its rows, and how many came before.
Draw = Callable[[np.random.Generator, np.random.Generator, int, int], Columns]

#: The edges of the networks: a binary tree.
EDGES = [(f"v{(child - 1) // 2}", f"v{child}") for child in range(1, COLUMNS)]


def write(folder: Path, draw: Draw, rows: int, seed: int) -> None:
    """Write a table; its law depends on the seed alone."""
    folder.mkdir()
    size = max(STEPS, min(PART_ROWS, rows // PARTS // STEPS * STEPS))
    for number, start in enumerate(range(0, rows, size)):
        law, part = np.random.default_rng(seed), np.random.default_rng([seed, number])
        pq.write_table(pa.table(draw(law, part, min(size, rows - start), start)), folder / f"part-{number:05d}.parquet")


def discrete(law: np.random.Generator, part: np.random.Generator, rows: int, start: int) -> Columns:
    """Text of three states in a tree: a child is its parent's state, or one of the next two."""
    stay = law.uniform(0.3, 0.8, COLUMNS)
    codes = [part.integers(0, 3, rows, dtype=np.int8)]
    for child in range(1, COLUMNS):
        step = (part.random(rows) > stay[child]) * part.integers(1, 3, rows, dtype=np.int8)
        codes.append((codes[(child - 1) // 2] + step) % 3)
    return {f"v{number}": texts(values, ["low", "middle", "high"]) for number, values in enumerate(codes)}


def discrete_missing(law: np.random.Generator, part: np.random.Generator, rows: int, start: int) -> Columns:
    """The same, a tenth of all values missing."""
    columns = discrete(law, part, rows, start)
    return {name: pa.array(values, mask=part.random(rows) < MISSING) for name, values in columns.items()}


def real_missing(law: np.random.Generator, part: np.random.Generator, rows: int, start: int) -> Columns:
    """A linear-Gaussian tree; the last columns have a tenth of their values missing."""
    weights = law.uniform(0.3, 0.8, COLUMNS)
    columns = [part.normal(size=rows)]
    for child in range(1, COLUMNS):
        columns.append(weights[child] * columns[(child - 1) // 2] + part.normal(size=rows))
    for values in columns[-INCOMPLETE:]:
        values[part.random(rows) < MISSING] = np.nan
    return {f"v{number}": values for number, values in enumerate(columns)}


def regression(law: np.random.Generator, part: np.random.Generator, rows: int, columns: int) -> Columns:
    """Normal columns with a common part, and a response of 0 and 1."""
    beta = law.normal(0.0, 0.5 / np.sqrt(columns), columns)
    X = part.normal(size=(rows, columns)) + 0.5 * part.normal(size=(rows, 1))
    y = part.random(rows) < 1.0 / (1.0 + np.exp(0.5 - X @ beta))
    return {**{f"x{number}": values for number, values in enumerate(X.T)}, "y": y.astype(np.int8)}


def narrow_regression(law: np.random.Generator, part: np.random.Generator, rows: int, start: int) -> Columns:
    """Five columns and the response."""
    return regression(law, part, rows, 5)


def wide_regression(law: np.random.Generator, part: np.random.Generator, rows: int, start: int) -> Columns:
    """As many columns as the other tables."""
    return regression(law, part, rows, COLUMNS - 1)


def chain(part: np.random.Generator, rows: int, count: int) -> NDArray[np.int64]:
    """The labels of sentences of equal length: a Markov chain."""
    sentences = -(-rows // STEPS)
    labels = np.empty((sentences, STEPS), np.int64)
    labels[:, 0] = part.integers(0, count, sentences)
    for step in range(1, STEPS):
        anew = part.random(sentences) < 0.6
        labels[:, step] = np.where(anew, part.integers(0, count, sentences), (labels[:, step - 1] + 1) % count)
    return labels.ravel()[:rows]


def tokens(law: np.random.Generator, part: np.random.Generator, rows: int, start: int) -> Columns:
    """Sentences with a word and a shape by each label."""
    label = chain(part, rows, LABELS)
    word = np.minimum(part.exponential(WORDS / 8, rows).astype(np.int64) + 40 * label, WORDS - 1)
    shape = np.where(part.random(rows) < 0.5, label, part.integers(0, LABELS, rows))
    place = np.arange(start, start + rows)
    return {
        "sentence": place // STEPS,
        "step": place % STEPS,
        "word": texts(word, [f"w{number}" for number in range(WORDS)]),
        "shape": texts(shape, [f"s{number}" for number in range(LABELS)]),
        "label": texts(label, [f"l{number}" for number in range(LABELS)]),
    }


def newswire(law: np.random.Generator, part: np.random.Generator, rows: int, start: int) -> Columns:
    """Sentences as for names in newswire: nine labels, and twenty features of few to many values."""
    label = chain(part, rows, NEWS_LABELS)
    place = np.arange(start, start + rows)
    columns = {"sentence": place // STEPS, "step": place % STEPS}
    for number, size in enumerate(NEWS_FEATURES):
        # Frequencies fall as those of words do, and half of the values follow the label.
        value = np.minimum(part.zipf(1.3, rows), size) - 1
        value = np.where(part.random(rows) < 0.5, (value * NEWS_LABELS + label) % size, value)
        columns[f"f{number}"] = texts(value, [f"{k}" for k in range(size)])
    return columns | {"label": texts(label, [f"l{number}" for number in range(NEWS_LABELS)])}


def wide_tokens(law: np.random.Generator, part: np.random.Generator, rows: int, start: int) -> Columns:
    """The same, in a table with as many columns as the others; the further ones are not read."""
    columns = tokens(law, part, rows, start)
    return columns | {f"z{number}": part.normal(size=rows) for number in range(COLUMNS - len(columns))}


def texts(codes: NDArray[Any], labels: list[str]) -> Any:
    """Text by code."""
    return np.array(labels, dtype=object)[codes]
