"""`python -m benchmarks.audit --seed 1 --problems 10000`: audit the certificates of all models."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from benchmarks.audit.registry import PROBLEMS
from benchmarks.audit.running import Findings, Turn, run, run_one, run_turn
from benchmarks.audit.tables import page


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; 1 where a bound is violated, a verdict wrong, a sampled answer far off or an error foreign."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of all problems")
    parser.add_argument("--problems", type=int, default=1000, help="how many, shared evenly between the kinds")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share them")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="kinds whose name begins like this")
    parser.add_argument("--repeat", metavar="KIND:INDEX", help="run one problem of this seed, and show its records")
    parser.add_argument("--list", action="store_true", help="name the kinds of problem")
    parser.add_argument("--short", action="store_true", help="a row for each public class, not for each way to fit it")
    parser.add_argument("--times", action="store_true", help="show the time of each kind")
    options = parser.parse_args(arguments)
    chosen = {
        name: problem
        for name, problem in PROBLEMS.items()
        if not options.only or any(name.startswith(only) for only in options.only)
    }
    if options.list:
        print(*PROBLEMS, sep="\n")
        return 0
    if options.repeat:
        kind, _, index = options.repeat.partition(":")
        if kind not in PROBLEMS or not index.isdigit():
            parser.error(f"--repeat {options.repeat}: expected KIND:INDEX with a kind that --list names")
        findings = Findings()
        run_one(kind, int(index), PROBLEMS[kind], options.seed, findings)
        print(*findings.records, sep="\n")
    elif not chosen:
        parser.error(f"no kind of problem begins like {' or '.join(options.only)}; --list names them")
    else:
        clock = _Clock()
        if options.jobs == 1:
            findings = run(chosen, options.problems, options.seed, clock)
        else:
            with ProcessPoolExecutor(options.jobs) as pool:
                each = partial(pool.map, _run_by_name, chunksize=5)
                findings = run(chosen, options.problems, options.seed, clock, each)
        if options.times:
            print(clock.said(), file=sys.stderr)
    print(page(findings, short=options.short), end="")
    return 0 if findings.passed else 1


def _run_by_name(turn: Turn) -> Findings:
    """Run a problem in a process that knows it by its name."""
    return run_turn(PROBLEMS, turn)


class _Clock:
    """Progress on the standard error output, and the time that each kind has taken."""

    def __init__(self) -> None:
        self.last = self.shown = time.monotonic()
        self.seconds: dict[str, list[float]] = {}

    def __call__(self, done: int, count: int, kind: str) -> None:
        now = time.monotonic()
        self.seconds.setdefault(kind, []).append(now - self.last)
        self.last = now
        if now - self.shown > 5.0 or done == count:
            self.shown = now
            print(f"{done} of {count} problems", file=sys.stderr, flush=True)

    def said(self) -> str:
        found = sorted(self.seconds.items(), key=lambda item: -sum(item[1]))
        return "\n".join(f"{sum(t):8.1f} s  {1e3 * sum(t) / len(t):8.1f} ms each  {kind}" for kind, t in found)


if __name__ == "__main__":
    sys.exit(main())
