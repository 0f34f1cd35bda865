"""The command ``python -m benchmarks``."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
from typing import Any

from benchmarks import problems, table
from benchmarks.harness import run


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(problems.__path__))


def problem_of(name: str) -> Any:
    return importlib.import_module(f"benchmarks.problems.{name}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Time a problem beside other libraries.")
    parser.add_argument("names", metavar="NAME", nargs="*", help="problems to run; all of them are shown by --list")
    parser.add_argument("--list", action="store_true", help="name the problems")
    parser.add_argument("--rows", type=int, help="number of rows, if not that of the problem")
    parser.add_argument("--repeats", type=int, help="timed repeats of each contender")
    parser.add_argument(
        "--only", metavar="WORD", action="append", default=[], help="contenders with this in their name"
    )
    parser.add_argument("--save", action="store_true", help="put the table into benchmarks/README.md")
    options = parser.parse_args()
    unknown = set(options.names) - set(names())
    if unknown or not (options.names or options.list):
        parser.error(f"{f'no problem {unknown.pop()!r}; ' if unknown else ''}known problems: {', '.join(names())}")
    if options.list:
        for name in names():
            problem = problem_of(name)
            print(f"{name:<12}{problem.title(problem.ROWS)}")
    for name in options.names:
        problem = problem_of(name)
        outcome = run(problem, options.rows or problem.ROWS, options.repeats or problem.REPEATS, options.only)
        print(table.text(outcome, problem), flush=True)
        if options.save:
            table.save(outcome, problem)


if __name__ == "__main__":
    main()
