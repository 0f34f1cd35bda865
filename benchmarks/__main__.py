"""The command ``python -m benchmarks``."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
from typing import Any

from benchmarks import problems, table
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
            for problem in cases(name):
                print(f"{name:<16}{problem.title(problem.ROWS)}")
    for problem in (problem for name in options.names for problem in cases(name)):
        for name, rows in sizes(problem, options.rows):
            outcome = run(problem, rows, options.repeats or problem.REPEATS, options.only)
            print(table.text(outcome, problem), flush=True)
            if options.save:
                table.save(outcome, problem, name)


if __name__ == "__main__":
    main()
