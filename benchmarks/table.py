"""Outcomes as text, and the table of the last run in README.md."""

from __future__ import annotations

import os
import platform
import re
from importlib import metadata
from pathlib import Path

from benchmarks.harness import Outcome, Problem

README = Path(__file__).with_name("README.md")
PACKAGES = ("suffice", "numpy", "numba", "pandas", "polars", "duckdb", "pgmpy", "pyagrum")
HEAD = ("", "wall ms", "CPU ms", "x floor", "x ours", "first s", "MB", "answer")


def rows(outcome: Outcome, problem: Problem) -> list[tuple[str, ...]]:
    """Cells of the table: ratios are of CPU time, to the floor and to our own single thread."""
    cpu = {result.name: result.cpu for result in outcome.results}
    floor, ours = cpu.get(problem.FLOOR), cpu.get(problem.OURS)
    return [
        (
            result.name,
            _milliseconds(result.wall),
            _milliseconds(result.cpu),
            _ratio(result.cpu, floor),
            _ratio(result.cpu, ours),
            f"{result.first:.2f}",
            f"{result.memory / 1e6:.0f}",
            result.quality,
        )
        for result in outcome.results
    ]


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:,.1f}" if seconds < 10 else f"{1e3 * seconds:,.0f}"


def _ratio(seconds: float, base: float | None) -> str:
    return "" if not base else f"{seconds / base:.2f}" if seconds < 10 * base else f"{seconds / base:.0f}"


def text(outcome: Outcome, problem: Problem) -> str:
    """A table for the terminal."""
    table = [HEAD, *rows(outcome, problem)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if place in (0, len(widths) - 1) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
    return "\n".join([_heading(outcome), *lines, *_absent(outcome)])


def markdown(outcome: Outcome, problem: Problem) -> str:
    """The same table for README.md."""
    lines = [f"| {' | '.join(row)} |" for row in (HEAD, *rows(outcome, problem))]
    lines.insert(1, "|---|" + "---:|" * (len(HEAD) - 2) + "---|")
    return "\n".join([_heading(outcome), "", *lines, "", *_absent(outcome), machine()])


def _heading(outcome: Outcome) -> str:
    return f"{outcome.title}; minimum of {outcome.repeats} repeats in turns."


def _absent(outcome: Outcome) -> list[str]:
    lines = [f"Left out, too slow for so many rows: {'; '.join(outcome.slow)}."] if outcome.slow else []
    return [*lines, f"Not installed: {', '.join(outcome.absent)}."] if outcome.absent else lines


def machine() -> str:
    """What the figures were measured on."""
    versions = []
    for package in PACKAGES:
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    return f"Measured on {_processor()}{system}, {', '.join(versions)}."


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", info.read_text()) if info.exists() else None
    return f"{found[1].strip()}, " if found else ""


def save(outcome: Outcome, problem: Problem, name: str) -> None:
    """Put the table between the marks of that name in README.md, at the end of the file if there are none yet."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    content = README.read_text()
    if begin not in content:
        content = f"{content.rstrip()}\n\n## {name}\n\n{begin}\n{end}\n"
    before, _, rest = content.partition(begin)
    README.write_text(f"{before}{begin}\n{markdown(outcome, problem)}\n{end}{rest.partition(end)[2]}")
