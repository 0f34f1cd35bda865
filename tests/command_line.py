"""What a run of the command gives back, and a table for it to work on."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Answer:
    """What a command gave back."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The output of ``--json``."""
        return json.loads(self.out)

    @property
    def rows(self) -> list[dict[str, str]]:
        """The output as CSV."""
        return list(csv.DictReader(io.StringIO(self.out)))


Command = Callable[..., Answer]


def table(n: int = 120) -> dict[str, list[Any]]:
    """Columns of every kind: states, whole numbers, reals, weights, and a group of twelve rows each."""
    rng = np.random.default_rng(7)
    rain, sprinkler = rng.random(n) < 0.3, rng.random(n) < 0.5
    wet = rng.random(n) < 0.1 + 0.6 * rain + 0.2 * sprinkler
    x, z = rng.normal(size=n).round(4), rng.normal(size=n).round(4)
    words = np.array(["no", "yes"])
    return {
        "rain": words[rain.astype(int)].tolist(),
        "sprinkler": words[sprinkler.astype(int)].tolist(),
        "wet": words[wet.astype(int)].tolist(),
        "x": x.tolist(),
        "z": z.tolist(),
        "visits": rng.poisson(np.exp(0.2 + 0.5 * x)).tolist(),
        "level": (np.repeat(rng.integers(0, 2, n // 6), 6) * 4.0 + rng.normal(size=n)).round(4).tolist(),
        "game": (np.arange(n) // 12).tolist(),
        "weight": (1 + np.arange(n) % 3).tolist(),
    }


def write_csv(path: str, columns: dict[str, list[Any]], rows: slice = slice(None)) -> None:
    with open(path, "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(list(zip(*columns.values(), strict=True))[rows])
