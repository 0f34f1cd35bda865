"""The command ``python -m benchmarks``."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import secrets
import sys
from collections.abc import Iterator
from typing import Any

from benchmarks import guard, problems, table
from benchmarks.harness import run


def names() -> list[str]:
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(problems.__path__))


def cases(name: str) -> list[Any]:
    """The problems of a module: the module itself, or what its `cases` lists; those without data are named."""
    module: Any = importlib.import_module(f"benchmarks.problems.{name.replace('-', '_')}")
    return list(module.cases()) if hasattr(module, "cases") else [module]


def sizes(problem: Any, rows: int | None) -> list[tuple[str, int]]:
    """The sizes to run, each with the name of its table."""
    several = getattr(problem, "SIZES", None)
    if rows is not None or several is None:
        return [(problem.NAME, rows or problem.ROWS)]
    return [(f"{problem.NAME}, {size:,} rows", size) for size in several]


def main() -> None:
    options = _options()
    if options.list:
        for name in names():
            for problem in cases(name):
                print(f"{name:<16}{problem.title(problem.ROWS)}")
        return
    lost, slower = [], []
    for problem, name, rows in _wanted(options):
        if options.table and options.table not in name:
            continue
        outcome = run(problem, rows, options.repeats or problem.REPEATS, options.only, seed=options.seed)
        print(table.text(outcome), flush=True)
        print(flush=True)
        lost += [f"{name}, {line}" for line in table.lost(outcome)]
        if options.check:
            slower += guard.slower(outcome, name, options.margin)
        if options.save:
            table.save(outcome, name)
            guard.save(outcome, name)
    print(*([f"{len(lost)} figures are lost:", *lost] if lost else ["No row is lost."]), sep="\n")
    if options.check:
        print(*(slower or ["No ratio is below the saved one by more than the margin."]), sep="\n")
        sys.exit(1 if slower else 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Time problems beside other libraries.")
    parser.add_argument("names", metavar="NAME", nargs="*", help="problems to run, all if none is named")
    parser.add_argument("--list", action="store_true", help="name the problems")
    parser.add_argument("--seed", type=int, help="what graphs and data are drawn from; another for each run if absent")
    parser.add_argument("--rows", type=int, help="number of rows, if not that of the problem")
    parser.add_argument("--repeats", type=int, help="timed repeats of each contender, after the first nine calls")
    parser.add_argument("--table", metavar="WORD", help="tables with this in their name")
    parser.add_argument(
        "--only", metavar="WORD", action="append", default=[], help="contenders with this in their name"
    )
    parser.add_argument("--save", action="store_true", help="put tables and ratios into saved.md and saved.json")
    parser.add_argument("--check", action="store_true", help="fail where a ratio to a rival is below the saved one")
    parser.add_argument("--margin", type=float, default=guard.MARGIN, help="by how many times, for --check")
    options = parser.parse_args()
    unknown = set(options.names) - set(names())
    if unknown:
        parser.error(f"no problem {unknown.pop()!r}; known problems: {', '.join(names())}")
    if options.seed is None:
        options.seed = secrets.randbelow(10**6)
    return options


def _wanted(options: argparse.Namespace) -> Iterator[tuple[Any, str, int]]:
    """Problem, name of its table, rows."""
    for module in options.names or names():
        for problem in cases(module):
            for name, rows in sizes(problem, options.rows):
                yield problem, name, rows


if __name__ == "__main__":
    main()
