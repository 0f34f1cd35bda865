"""Write the bundled demo data, drawn from laws and a network of the library with fixed seeds.

Run from the root of the project: ``python tools/make_demo_data.py``.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import suffice as sf
from suffice.domain import Domain, Variable

ROWS = 5_000
FOLDER = Path("src/suffice/demo")

COLUMNS = {
    "ward": sf.Categorical(["surgery", "medicine", "children"], [0.35, 0.5, 0.15]),
    "smoker": sf.Categorical(["no", "yes"], [0.78, 0.22]),
    "visits": sf.Poisson(rate=2.4),
    "wait": sf.Gamma(shape=2.5, rate=0.08),
    "temperature": sf.Normal(mean=37.1, variance=0.36),
}


#: Means of the temperature by infection; its standard deviation is the same for all.
TEMPERATURES = {"none": 36.8, "viral": 37.9, "bacterial": 38.6}


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
    with (FOLDER / name).open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
        packed.write(text.getvalue().encode())


def main() -> None:
    """Draw visits from independent laws, and infections from a network; a sixth of the X-rays was not taken."""
    drawn = {name: law.sample(ROWS, random_state=seed) for seed, (name, law) in enumerate(COLUMNS.items())}
    visits = zip(*drawn.values(), strict=True)
    write("clinic.csv.gz", list(drawn), ([w, s, int(v), f"{wait:.2f}", f"{t:.2f}"] for w, s, v, wait, t in visits))
    sick = infections().sample(ROWS, random_state=5)
    rng = np.random.default_rng(6)
    warm = [
        TEMPERATURES[found] + 0.4 * noise for found, noise in zip(sick["infection"], rng.normal(size=ROWS), strict=True)
    ]
    xray = np.where(rng.random(ROWS) < 1 / 6, "", sick["xray"])
    columns = (sick["smoker"], sick["infection"], sick["cough"], xray, [f"{value:.2f}" for value in warm])
    write("infections.csv.gz", [*sick, "temperature"], zip(*columns, strict=True))


if __name__ == "__main__":
    main()
