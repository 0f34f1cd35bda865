"""Write the bundled demo data: drawn from models that are written out here, with fixed seeds.

Run from the root of the project: ``python tools/make_demo_data.py``. ALARM is read from ``../shared/data/bn``.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from demo_notes import notes

import suffice as sf
from suffice.domain import Domain, Variable

ROWS = 5_000
FOLDER = Path("src/suffice/demo")
#: The network of Beinlich and others (1989) on patients under anaesthesia, and how many rows of it are learned from.
ALARM = Path("../shared/data/bn/alarm.bif.gz")
LEARNED_FROM = 200_000

#: Means of the temperature by infection; its standard deviation is the same for all.
TEMPERATURES = {"none": 36.8, "viral": 37.9, "bacterial": 38.6}
#: The dishonest casino: stay or change the die, and the faces of a fair and of a loaded one.
DICE = ("fair", "loaded")
STAY = {"fair": 0.95, "loaded": 0.9}
FACES = {"fair": [1 / 6] * 6, "loaded": [0.1] * 5 + [0.5]}
GAMES, ROLLS = 40, 100
#: Visits to a doctor in a year: log mean = intercept + age / 10 + smoker + drugs.
VISITS = {"intercept": -0.6, "age": 0.012, "smoker": 0.35, "drugs": 0.15}
#: Notes to learn from, and notes to try.
TRAIN, TEST = 400, 150


def infections() -> sf.BayesianNetwork:
    """Smoking and infection cause cough; an infection shows in the X-ray."""
    states = {
        "smoker": ["no", "yes"],
        "infection": list(TEMPERATURES),
        "cough": ["no", "yes"],
        "xray": ["clear", "shadow"],
    }
    tables = {
        "smoker": [0.78, 0.22],
        "infection": [0.6, 0.3, 0.1],
        "cough": [[[0.95, 0.05], [0.4, 0.6], [0.3, 0.7]], [[0.75, 0.25], [0.25, 0.75], [0.15, 0.85]]],
        "xray": [[0.97, 0.03], [0.85, 0.15], [0.3, 0.7]],
    }
    parents = {"smoker": [], "infection": [], "cough": ["smoker", "infection"], "xray": ["infection"]}
    domain = Domain([Variable.discrete(name, found) for name, found in states.items()])
    return sf.BayesianNetwork.from_tables(domain, parents, tables)


def write(name: str, header: Sequence[Any], rows: Iterable[Sequence[Any]]) -> None:
    """Write one gzipped CSV, the same bytes every time."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    pack(name, text.getvalue())


def pack(name: str, text: str) -> None:
    """Write one gzipped text, the same bytes every time."""
    with (FOLDER / name).open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
        packed.write(text.encode())


def write_infections() -> None:
    """Rows of the small network; a sixth of the X-rays was not taken."""
    sick = infections().sample(ROWS, random_state=5)
    rng = np.random.default_rng(6)
    warm = [
        TEMPERATURES[found] + 0.4 * noise for found, noise in zip(sick["infection"], rng.normal(size=ROWS), strict=True)
    ]
    xray = np.where(rng.random(ROWS) < 1 / 6, "", sick["xray"])
    columns = (sick["smoker"], sick["infection"], sick["cough"], xray, [f"{value:.2f}" for value in warm])
    write("infections.csv.gz", [*sick, "temperature"], zip(*columns, strict=True))


def alarm() -> sf.BayesianNetwork:
    """ALARM as this library learns it from rows of it, with every probability rounded to four digits."""
    drawn = sf.read(ALARM).sample(LEARNED_FROM, random_state=0)
    found = sf.BayesianNetwork(sf.read(ALARM), prior="bdeu").fit(drawn)
    domain = Domain([Variable.discrete(node, found.states(node)) for node in found.nodes])
    tables = {node: _rounded(found.table(node).values) for node in found.nodes}
    return sf.BayesianNetwork.from_tables(domain, {node: found.parents(node) for node in found.nodes}, tables)


def _rounded(rows: np.ndarray) -> np.ndarray:
    """Four digits, the largest of each row so that the row adds up to one."""
    digits = np.maximum(np.round(rows * 10_000), 1.0)
    best = rows.argmax(axis=-1)[..., None]
    np.put_along_axis(digits, best, 0.0, axis=-1)
    np.put_along_axis(digits, best, 10_000 - digits.sum(axis=-1, keepdims=True), axis=-1)
    return digits / 10_000


def write_alarm() -> None:
    """The network, and rows of it."""
    net = alarm()
    plain = FOLDER / "alarm.bif"
    net.write(plain)
    pack("alarm.bif.gz", plain.read_text(encoding="utf-8"))
    plain.unlink()
    drawn = net.sample(ROWS, random_state=1)
    write("alarm.csv.gz", list(drawn), zip(*drawn.values(), strict=True))


def write_casino() -> None:
    """Games of rolls, with the die that was in use."""
    rng = np.random.default_rng(2)
    rows = []
    for game in range(GAMES):
        die = DICE[int(rng.random() < 0.5)]
        for _ in range(ROLLS):
            rows.append((game, int(rng.choice(6, p=FACES[die])) + 1, die))
            if rng.random() >= STAY[die]:
                die = DICE[1 - DICE.index(die)]
    write("casino.csv.gz", ["game", "roll", "die"], rows)


def write_visits() -> None:
    """People, and how often they saw a doctor in a year."""
    rng = np.random.default_rng(3)
    age, smoker, drugs = rng.integers(18, 90, ROWS), rng.random(ROWS) < 0.25, rng.poisson(1.5, ROWS)
    mean = np.exp(VISITS["intercept"] + VISITS["age"] * age + VISITS["smoker"] * smoker + VISITS["drugs"] * drugs)
    words = np.where(smoker, "yes", "no")
    write("visits.csv.gz", ["age", "smoker", "drugs", "visits"], zip(age, words, drugs, rng.poisson(mean), strict=True))


def write_notes() -> None:
    """One word and its label a line, a blank line after each note."""
    parts = {"train": notes(TRAIN, seed=4, new=False), "test": notes(TEST, seed=5, new=True)}
    for name, part in parts.items():
        pack(f"notes-{name}.txt.gz", "\n".join("".join(f"{word}\t{label}\n" for word, label in note) for note in part))


if __name__ == "__main__":
    write_infections()
    write_alarm()
    write_casino()
    write_visits()
    write_notes()
