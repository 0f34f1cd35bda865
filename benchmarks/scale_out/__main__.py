"""The command ``python -m benchmarks.scale_out``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.audit.tables import markdown
from benchmarks.scale_out import memory, race, rates, rounds
from benchmarks.scale_out.engines import ENGINES, WORKERS, alone, present
from benchmarks.scale_out.fits import MEMORY, ROUNDS
from benchmarks.scale_out.rows import COLUMNS
from benchmarks.table import machine

SAVED = Path(__file__).with_name("saved.md")
MEMORY_ROWS = (1_000_000, 5_000_000, 20_000_000)


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale_out", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the tables depend on it alone")
    parser.add_argument("--rows", type=int, nargs="+", help="rows of a table; several for --memory")
    parser.add_argument("--iterations", type=int, default=5, help="iterations of the fits whose rounds are timed")
    parser.add_argument("--memory", action="store_true", help="measure memory, not seconds")
    parser.add_argument("--rates", action="store_true", help="measure CPU time a row of one core")
    parser.add_argument(
        "--memory-limit",
        type=lambda text: None if text == "default" else text,
        default="32MB",
        help="the memory_limit= of fits whose memory is measured; 'default' for none",
    )
    parser.add_argument("--engine", action="append", choices=ENGINES, help="where rows may be; all of them by default")
    known = ", ".join((*ROUNDS, "race", *MEMORY))
    parser.add_argument("--only", metavar="WORD", action="append", help=f"parts with this in their name: {known}")
    parser.add_argument("--save", action="store_true", help=f"put the tables into {SAVED.name}")
    options = parser.parse_args(given)
    options.rows = options.rows or (MEMORY_ROWS if options.memory else (5_000_000,))
    options.engine = options.engine or list(ENGINES)
    names = [*MEMORY] if options.memory else [*rates.RATES] if options.rates else [*ROUNDS, "race"]
    options.names = [name for name in names if not options.only or any(word in name for word in options.only)]
    if not options.names:
        parser.error(f"--only {' '.join(options.only)}: no such part; there are {', '.join(names)}")
    if not options.memory and len(options.rows) > 1:
        parser.error(f"--rows: {len(options.rows)} numbers; several are for --memory")
    return options


def seconds(options: argparse.Namespace) -> Iterator[str]:
    """Rounds of each fit, and the regression beside others."""
    (rows,) = options.rows
    yield f"## {rows:,} rows"
    yield (
        f"Local reader with threads for all cores, Dask with {WORKERS} processes of one thread, Spark "
        f"local[{WORKERS}]; no variables of the environment are set for BLAS or threads. Load of the machine at the "
        f"start: {os.getloadavg()[0]:.1f}. Fits of {options.iterations} iterations (the regression beside others to "
        f"its end, the best of {race.FITS}), each in a fresh process, after one of {rounds.WARM_ROWS:,} rows; engines "
        "are started before. A round is the median one of the question that takes most of the time. CPU time is that "
        "of all processes together: workers and the virtual machine of Spark count."
    )
    for name in options.names:
        with tempfile.TemporaryDirectory(prefix="scale-out-") as folder:
            if name == "race":
                alone(rounds.draw, "IRLS", Path(folder), rows, options.seed)
                cells, below = race.compare(Path(folder), options.engine)
                yield "### Logistic regression beside other libraries, 5 columns"
                yield markdown(race.HEAD, cells)
                yield from below
            else:
                fit = ROUNDS[name]
                yield f"### {name}: {fit.title} ({rows // fit.share:,})"
                cells = rounds.compare(name, Path(folder), rows, options.seed, options.iterations, options.engine)
                yield markdown(rounds.HEAD, cells)
    absent = [engine for engine in options.engine if not present(engine)]
    if absent:
        yield f"Not installed: {', '.join(absent)}."


def megabytes(options: argparse.Namespace) -> Iterator[str]:
    """Peak memory of each fit."""
    yield "## Memory"
    yield (
        f"Fits from Parquet files of {COLUMNS} columns with memory_limit={options.memory_limit!r}, "
        f"{options.iterations} iterations, each in a fresh process. With a tenth missing in "
        "all real columns nearly every row has a pattern of its own, so few of them have missing values; of tokens "
        "the columns of sequence, step, label and features are read."
    )
    cells = memory.compare(options.names, options.rows, options.seed, options.iterations, options.memory_limit)
    yield markdown(memory.head(options.rows), cells)


def per_row(options: argparse.Namespace) -> Iterator[str]:
    """CPU time of one core."""
    (rows,) = options.rows
    yield "## Rates"
    cells = []
    for name in options.names:
        with tempfile.TemporaryDirectory(prefix="scale-out-") as folder:
            cells.append(rates.cells(name, Path(folder), rows, options.seed, options.iterations))
    yield markdown(rates.HEAD, cells)


def main(given: Sequence[str] | None = None) -> int:
    options = arguments(given)
    made = []
    parts = megabytes if options.memory else per_row if options.rates else seconds
    for block in parts(options):
        print(block, end="\n\n", flush=True)
        made.append(block)
    command = " ".join(["python -m benchmarks.scale_out", *(sys.argv[1:] if given is None else given)])
    made.append(f"`{command}`. {machine()}")
    print(made[-1])
    if options.save:
        save(made)
    return 0


def save(blocks: Sequence[str]) -> None:
    """Put the blocks into the file, in place of those that were under the same heading."""
    kept = SAVED.read_text().split("\n## ") if SAVED.exists() else ["# What a large fit costs\n"]
    heading = blocks[0].removeprefix("## ")
    kept = [part.rstrip("\n") for part in kept if part.partition("\n")[0] != heading]
    SAVED.write_text("\n\n## ".join([*kept, "\n\n".join(blocks).removeprefix("## ")]) + "\n")


if __name__ == "__main__":
    sys.exit(main())
