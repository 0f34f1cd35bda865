"""Runs problems, each from a seed of its own, and keeps what they found, what was refused and what went wrong."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

import suffice as sf
from benchmarks.audit.record import Existence, Problem, Record, Sampled, Value

#: The kind of a problem, its number within the kind, and the seed of all.
Turn = tuple[str, int, int]


@dataclass(frozen=True)
class Mishap:
    """An exception that a problem ended with: `repeat` is what ``--repeat`` takes to run it again."""

    repeat: str
    text: str
    trace: str = ""


@dataclass
class Findings:
    """All that an audit found; `wrong` has the records that must not be, with the problem they come from."""

    records: list[Record] = field(default_factory=list)
    refused: list[Mishap] = field(default_factory=list)
    foreign: list[Mishap] = field(default_factory=list)
    wrong: list[tuple[str, Record]] = field(default_factory=list)
    problems: int = 0

    @property
    def passed(self) -> bool:
        """Whether no bound was violated, no verdict wrong, no sampled answer far off, and no error foreign."""
        return not self.wrong and not self.foreign

    def join(self, other: Findings) -> None:
        """Take over what another run found."""
        for name in ("records", "refused", "foreign", "wrong"):
            getattr(self, name).extend(getattr(other, name))
        self.problems += other.problems

    def keep(self, repeat: str, record: Record) -> None:
        """Keep a record, and judge it."""
        self.records.append(record)
        violated = isinstance(record, Value) and record.violated
        if violated or (isinstance(record, Existence | Sampled) and record.wrong):
            self.wrong.append((repeat, record))


def seed_of(seed: int, kind: str, index: int) -> np.random.SeedSequence:
    """The seed of one problem: it depends on the kind and the number within it, and on nothing that runs before."""
    own = np.random.SeedSequence([seed, *kind.encode()])
    return np.random.SeedSequence(own.entropy, spawn_key=(index,))


def run_one(kind: str, index: int, problem: Problem, seed: int, findings: Findings) -> None:
    """Run one problem. Warnings that are not the library's own count as errors; its own are part of its answer."""
    repeat = f"{kind}:{index}"
    findings.problems += 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", sf.SufficeWarning)
        try:
            for record in problem(np.random.default_rng(seed_of(seed, kind, index))):
                findings.keep(repeat, record)
        except sf.SufficeError as error:
            findings.refused.append(Mishap(repeat, f"{type(error).__name__}: {error}"))
        except Exception as error:
            findings.foreign.append(Mishap(repeat, f"{type(error).__name__}: {error}", traceback.format_exc()))


def run(
    problems: Mapping[str, Problem],
    count: int,
    seed: int,
    progress: Callable[[int, int, str], None] | None = None,
    each: Callable[[list[Turn]], Iterable[Findings]] | None = None,
) -> Findings:
    """Share `count` problems evenly between the kinds, in turn; each: how turns are run, if not one by one."""
    findings, kinds = Findings(), list(problems)
    turns = [(kinds[number % len(kinds)], number // len(kinds), seed) for number in range(count)]
    results = (run_turn(problems, turn) for turn in turns) if each is None else each(turns)
    for number, (turn, found) in enumerate(zip(turns, results, strict=True)):
        findings.join(found)
        if progress is not None:
            progress(number + 1, count, turn[0])
    return findings


def run_turn(problems: Mapping[str, Problem], turn: Turn) -> Findings:
    """Run the problem of one turn."""
    kind, index, seed = turn
    findings = Findings()
    run_one(kind, index, problems[kind], seed, findings)
    return findings
