"""Outcomes as text, the rows that are lost, and the tables of the last run in saved.md."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from benchmarks.contender import Timing
from benchmarks.harness import Outcome, Result

SAVED = Path(__file__).with_name("saved.md")
PACKAGES = ("suffice", "numpy", "scipy", "numba", "pandas", "polars", "duckdb", "pgmpy", "pyagrum", "scikit-learn")
#: CPU seconds that stand in for none: some systems count them in hundredths.
LEAST = 1e-9
HEAD = ("", "CPU ms", "wall ms", "fresh process", "fresh environment", "lead", "MB", "answer")


@dataclass(frozen=True)
class Lead:
    """How many times the CPU time of one of our rows its best rival takes: below 1, the row is lost.

    when: the call that is compared: the tenth, the first of a process, or the first of an environment, which is
    compared with the first of a rival's process.
    """

    row: str
    rival: str
    when: str
    ratio: float


def leads(outcome: Outcome) -> list[Lead]:
    """Of all our rows that have a rival for the same work."""
    found = []
    for ours in (result for result in outcome.results if result.contender.ours):
        rivals = [other for other in outcome.results if _rival(ours, other)]
        for when in ("tenth", "process", "environment"):
            own = timing_of(ours, when)
            others = [(timing.cpu, other.name) for other in rivals if (timing := timing_of(other, when)) is not None]
            if own is not None and others:
                seconds, name = min(others)
                found.append(Lead(ours.name, name, when, seconds / max(own.cpu, LEAST)))
    return found


def _rival(ours: Result, other: Result) -> bool:
    return not (other.contender.ours or other.contender.limit) and other.contender.work == ours.contender.work


def timing_of(result: Result, when: str) -> Timing | None:
    """The call that is compared; rivals compile nothing that lasts, so their environments are never fresh."""
    if when == "tenth":
        return result.late
    return result.environment or result.process if when == "environment" else result.process


def lost(outcome: Outcome) -> list[str]:
    """One line for each row that a rival takes less time for."""
    return [
        f"lost ({_call(lead.when)}): {lead.row}, {lead.ratio:.2f} of {lead.rival}"
        for lead in leads(outcome)
        if lead.ratio < 1.0
    ]


def _call(when: str) -> str:
    return "tenth call" if when == "tenth" else f"first call of a fresh {when}"


def rows(outcome: Outcome) -> list[tuple[str, ...]]:
    """Cells of the table; of first calls the CPU milliseconds, and the wall clock in brackets."""
    ratios = {lead.row: lead.ratio for lead in leads(outcome) if lead.when == "tenth"}
    return [
        (
            result.name,
            _milliseconds(result.late.cpu),
            _milliseconds(result.late.wall),
            _both(result.process),
            _both(result.environment),
            _lead(ratios.get(result.name)),
            f"{result.memory / 1e6:.0f}",
            result.quality,
        )
        for result in outcome.results
    ]


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:,.2f}" if seconds < 0.01 else f"{1e3 * seconds:,.{1 if seconds < 1 else 0}f}"


def _both(timing: Timing | None) -> str:
    return "" if timing is None else f"{1e3 * timing.cpu:,.0f} ({1e3 * timing.wall:,.0f})"


def _lead(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}{' LOST' if ratio < 1.0 else ''}"


def text(outcome: Outcome) -> str:
    """A table for the terminal."""
    table = [HEAD, *rows(outcome)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if place in (0, len(widths) - 1) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
    return "\n".join([_heading(outcome), *lines, *_absent(outcome)])


def markdown(outcome: Outcome) -> str:
    """The same table for saved.md, with the rows that are lost below it."""
    lines = [f"| {' | '.join(row)} |" for row in (HEAD, *rows(outcome))]
    lines.insert(1, "|---|" + "---:|" * (len(HEAD) - 2) + "---|")
    below = [f"- {line}" for line in lost(outcome)]
    below += [""] if below else []
    return "\n".join([_heading(outcome), "", *lines, "", *below, *_absent(outcome), machine()])


def _heading(outcome: Outcome) -> str:
    return (
        f"{outcome.title}; seed {outcome.seed}, minimum of {outcome.repeats} repeats in turns, load {outcome.load:.1f}."
    )


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


def save(outcome: Outcome, name: str, path: Path = SAVED) -> None:
    """Put the table between the marks of that name in saved.md, at the end of the file if there are none yet."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    content = path.read_text() if path.exists() else "# Tables of the last runs\n"
    if begin not in content:
        content = f"{content.rstrip()}\n\n## {name}\n\n{begin}\n{end}\n"
    before, _, rest = content.partition(begin)
    path.write_text(f"{before}{begin}\n{markdown(outcome)}\n{end}{rest.partition(end)[2]}")
