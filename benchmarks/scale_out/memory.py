"""The memory of fits from Parquet files: the peak of a fresh process, which should not follow the rows."""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.contender import cpu_seconds, peak_memory
from benchmarks.scale_out.engines import alone
from benchmarks.scale_out.fits import MEMORY
from benchmarks.scale_out.rows import write

#: The largest memory over the smallest, up to which it is called flat.
FLAT = 1.2


def draw(name: str, folder: Path, rows: int, seed: int) -> None:
    write(folder / "rows", MEMORY[name].draw, rows, seed)


def measure(name: str, folder: Path, iterations: int, limit: str | None) -> tuple[int, float]:
    """Fit in this process: the largest memory it ever had, in bytes, and its CPU seconds."""
    warnings.simplefilter("ignore")  # A fit of few iterations says that it has not converged.
    begin = cpu_seconds()
    MEMORY[name].fitted(str(folder / "rows" / "*.parquet"), max_iter=iterations, memory_limit=limit)
    # Not `ru_maxrss`, which a process takes over from the one that started it.
    return peak_memory(), cpu_seconds() - begin


def compare(
    names: Iterable[str], sizes: Iterable[int], seed: int, iterations: int, limit: str | None
) -> Iterator[tuple[str, ...]]:
    """A row for each fit: megabytes by number of rows, the largest over the smallest, and CPU seconds of the last."""
    for name in names:
        peaks, seconds = [], 0.0
        for rows in sizes:
            with tempfile.TemporaryDirectory(prefix="scale-out-") as folder:
                alone(draw, name, Path(folder), rows, seed)
                peak, seconds = alone(measure, name, Path(folder), iterations, limit)
            peaks.append(peak / 1e6)
            print(f"{name}, {rows:,} rows: {peaks[-1]:,.0f} MB, {seconds:.1f} CPU s", file=sys.stderr, flush=True)
        ratio = max(peaks) / min(peaks)
        flat = f"flat within {FLAT - 1:.0%}: {'yes' if ratio <= FLAT else 'no'}"
        yield (MEMORY[name].title, *(f"{peak:,.0f}" for peak in peaks), f"{ratio:.2f}", flat, f"{seconds:.1f}")


def head(sizes: Iterable[int]) -> tuple[str, ...]:
    """MB by number of rows."""
    return (
        "peak MB of a process",
        *(f"{rows:,} rows" for rows in sizes),
        "largest / smallest",
        "",
        "CPU s of the last",
    )
