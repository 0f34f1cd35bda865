"""Write the bundled demo data: 5,000 visits to a clinic, drawn from laws of the library with a fixed seed.

Run from the root of the project: ``python tools/make_demo_data.py``.
"""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import suffice as sf

ROWS = 5_000
TARGET = Path("src/suffice/demo/clinic.csv.gz")

COLUMNS = {
    "ward": sf.Categorical(["surgery", "medicine", "children"], [0.35, 0.5, 0.15]),
    "smoker": sf.Categorical(["no", "yes"], [0.78, 0.22]),
    "visits": sf.Poisson(rate=2.4),
    "wait": sf.Gamma(shape=2.5, rate=0.08),
    "temperature": sf.Normal(mean=37.1, variance=0.36),
}


def main() -> None:
    """Draw each column with a seed of its own and write one gzipped CSV, the same bytes every time."""
    drawn = {name: law.sample(ROWS, random_state=seed) for seed, (name, law) in enumerate(COLUMNS.items())}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(drawn)
    for row in zip(*drawn.values(), strict=True):
        ward, smoker, visits, wait, temperature = row
        writer.writerow([ward, smoker, int(visits), f"{wait:.2f}", f"{temperature:.2f}"])
    with TARGET.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
        packed.write(text.getvalue().encode())


if __name__ == "__main__":
    main()
