"""What an audit found, as tables in Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from benchmarks.audit.record import Coverage, Existence, Record, Sampled, Value
from benchmarks.audit.running import Findings

R = TypeVar("R", Value, Existence, Coverage, Sampled)

#: A factor by which an estimate may be off.
FACTOR = 10.0


def markdown(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; numbers as they are, floats in two digits."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.3g}"
    return str(value)


def _by_model(records: Iterable[Record], kind: type[R]) -> dict[str, list[R]]:
    found: dict[str, list[R]] = {}
    for record in records:
        if isinstance(record, kind):
            found.setdefault(record.model, []).append(record)
    return dict(sorted(found.items()))


def values(records: Sequence[Record]) -> str:
    """Distances from the optimum, claimed and true."""
    header = ["model", "fits", "bounds", "violated", "estimates", "> 10x too small", "> 10x too large", "unknown"]
    header.append("largest true gap of a converged fit")
    rows = []
    for model, found in _by_model(records, Value).items():
        known = [record for record in found if record.claimed is not None]
        bounds = [record for record in known if record.bound]
        estimates = [record for record in known if not record.bound]
        row: list[object] = [model, len(found), len(bounds), sum(record.violated for record in found), len(estimates)]
        row += [sum(map(too_small, estimates)), sum(map(too_large, estimates)), len(found) - len(known)]
        row.append(max((record.truth for record in found if record.converged), default=math.nan))
        rows.append(row)
    return markdown(header, rows)


def too_small(record: Value) -> bool:
    """Whether an estimate is less than a tenth of the truth, by more than rounding."""
    assert record.claimed is not None
    return record.truth > FACTOR * record.claimed + record.rounding


def too_large(record: Value) -> bool:
    """Whether an estimate is more than ten times the truth, by more than rounding."""
    assert record.claimed is not None
    return record.claimed > FACTOR * record.truth + record.rounding


def existence(records: Sequence[Record]) -> str:
    """The confusion matrix of verdicts."""
    header = ("model", "exists: True", "None", "refused", "does not: False or refused", "None", "wrong True")
    rows = []
    for model, found in _by_model(records, Existence).items():

        def count(truth: bool, *said: object, of: list[Existence] = found) -> int:
            return sum(record.truth is truth and any(record.said is word for word in said) for record in of)

        row: list[object] = [model, count(True, True), count(True, None)]
        row.append(sum(record.truth and isinstance(record.said, str) for record in found))
        refused = sum(not record.truth and isinstance(record.said, str) for record in found)
        row += [count(False, False) + refused, count(False, None), count(False, True), count(True, False)]
        rows.append(row)
    return markdown((*header, "wrong False"), rows)


def coverage(records: Sequence[Record]) -> str:
    """Shares of intervals that held the truth, and how many binomial standard deviations they are off."""
    rows = []
    for model, found in _by_model(records, Coverage).items():
        for level in sorted({record.level for record in found}):
            n = sum(record.intervals for record in found if record.level == level)
            covered = sum(record.covered for record in found if record.level == level)
            z = (covered - n * level) / math.sqrt(n * level * (1.0 - level)) if n else math.nan
            rows.append((model, n, level, covered / n if n else math.nan, z))
    return markdown(("model", "intervals", "nominal", "covered", "z"), rows)


def sampled(records: Sequence[Record]) -> str:
    """Distances of sampled answers from exact ones, in their own standard errors; those that warned stand apart."""
    rows = []
    for model, found in _by_model(records, Sampled).items():
        z = np.array([record.z for record in found if not record.warned])
        row: list[object] = [model, len(found), float(z.mean()) if len(z) else math.nan]
        row += [float(z.std(ddof=1)) if len(z) > 1 else math.nan]
        row += [float(np.mean(np.abs(z) <= 1.96)) if len(z) else math.nan, float(np.abs(z).max(initial=0.0))]
        rows.append((*row, len(found) - len(z)))
    return markdown(("model", "n", "mean z", "sd z", "within 1.96", "largest in size", "warned"), rows)


def mishaps(findings: Findings) -> str:
    """Refusals by kind of problem; wrong records and foreign errors one by one."""
    lines: list[str] = []
    kinds: dict[tuple[str, str], int] = {}
    for mishap in findings.refused:
        key = mishap.repeat.partition(":")[0], mishap.text[:100]
        kinds[key] = kinds.get(key, 0) + 1
    if kinds:
        lines += [
            markdown(("problem", "refused", "with"), ((k, n, text) for (k, text), n in sorted(kinds.items()))),
            "",
        ]
    lines += [f"WRONG {repeat}: {record}" for repeat, record in findings.wrong]
    lines += [f"FOREIGN {mishap.repeat}: {mishap.text}\n{mishap.trace}" for mishap in findings.foreign]
    return "\n".join(lines)


#: Title and table of each kind of record.
TABLES: tuple[tuple[str, type[Record], Callable[[Sequence[Record]], str]], ...] = (
    ("Values: the distance from the optimum in nats per row", Value, values),
    ("Existence of the maximum", Existence, existence),
    ("Coverage of intervals", Coverage, coverage),
    ("Sampled answers, in their own standard errors", Sampled, sampled),
)


#: Parts of names of figures that have one right value, which a report claims without saying how far it is off.
FIGURES = ("log evidence", ": objective", ": log-likelihood", ": rise in total")
#: Words of sampled answers, which no one model gives.
SAMPLED = ("expected", "log", "query")


def class_of(model: str) -> str:
    """The public class that a row is about; figures with one right value stand apart."""
    first = model.replace(",", "").replace(":", "").split()[0]
    if first in SAMPLED:
        return model
    return f"{first}, figures" if any(part in model for part in FIGURES) else first


def page(findings: Findings, *, short: bool = False) -> str:
    """All tables that have rows, and what went wrong; short: a row a public class."""
    parts, records = [], findings.records
    if short:
        records = [replace(record, model=class_of(record.model)) for record in records]
    for title, kind, table in TABLES:
        if any(isinstance(record, kind) for record in records):
            parts.append(f"## {title}\n\n{table(records)}")
    wrong, foreign, refused = len(findings.wrong), len(findings.foreign), len(findings.refused)
    words = f"{findings.problems} problems, {wrong} violated bounds, wrong verdicts or far answers"
    counted = f"{words}, {foreign} foreign errors, {refused} refused"
    parts.append(f"## {counted}\n\n{mishaps(findings)}".rstrip())
    return "\n\n".join(parts) + "\n"
