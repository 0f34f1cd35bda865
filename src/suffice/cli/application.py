"""The application that the commands enter, the options that several of them have, and how they open rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    help="Learn the parameters of probabilistic graphical models.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # Loading rich takes longer than everything else that --help needs.
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="File to write; the ending says the format.")]
Given = Annotated[list[str] | None, typer.Option("--given", help="What is known, as VARIABLE=STATE; may be repeated.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Seed of random numbers.")]
Weight = Annotated[str | None, typer.Option(help="Column of weights of the rows.")]
MinimumCount = Annotated[int | None, typer.Option(help="Fewest rows behind every cell and sum that is released.")]
Group = Annotated[str | None, typer.Option(help="Column that tells sequences apart (chain, hmm).")]
Order = Annotated[str | None, typer.Option(help="Column by which the steps of a sequence are sorted (chain, hmm).")]
Column = Annotated[list[str] | None, typer.Option(help="Column to read (chain, hmm, glm); may be repeated.")]
Response = Annotated[str | None, typer.Option(help="Column of the response (glm).")]
Hidden = Annotated[
    list[str] | None,
    typer.Option(help="Hidden variable as NAME=NUMBER, NAME=a,b,c or NAME=real; may be repeated."),
]
States = Annotated[
    list[str] | None,
    typer.Option(help="States of a variable as NAME=a,b,c (or =real), or a JSON file of them; may be repeated."),
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="File of a fitted model.")]
Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...", help="CSV or Parquet files, globs, - for CSV from stdin, or summaries (.json, .suffice)."
    ),
]
Structure = Annotated[
    str,
    typer.Argument(metavar="STRUCTURE", help="A file (.bif, .xmlbif, .net, .uai, .json, .csv), or edges as text."),
]


def _version(wanted: bool) -> None:
    if wanted:
        from suffice import __version__

        typer.echo(f"suffice {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error arose; may stand anywhere.")] = False,
) -> None:
    """Learn the parameters of probabilistic graphical models."""


@contextmanager
def rows(data: Sequence[str]) -> Iterator[Any]:
    """The data as the library opens them: paths, or the sum of summaries.

    ``-`` is CSV from stdin, plain or gzipped, kept in a file for the time of the command.
    """
    given = list(data)
    if "-" in given:
        import tempfile

        from suffice.errors import SufficeError

        with tempfile.TemporaryDirectory() as folder:
            path = str(_stdin(Path(folder)))
            paths = [path if item == "-" else item for item in given]
            try:
                yield path if len(paths) == 1 else paths
            except SufficeError as error:
                raise type(error)(str(error).replace(repr(path), "that came from stdin")) from None
        return
    if are_summaries(given):
        yield summed(given)
        return
    yield given[0] if len(given) == 1 else given


def _stdin(folder: Path) -> Path:
    """The bytes of stdin in a file whose ending tells whether they are gzipped."""
    content = sys.stdin.buffer.read()
    path = folder / ("stdin.csv.gz" if content.startswith(b"\x1f\x8b") else "stdin.csv")
    path.write_bytes(content)
    return path


def are_summaries(data: Sequence[str]) -> bool:
    """Whether the data are named as files of summaries are."""
    return any(item.lower().endswith((".json", ".suffice")) for item in data)


def summed(paths: Sequence[str | Path]) -> Any:
    """The sum of the summaries in some files."""
    import suffice as sf
    from suffice.errors import OptionError

    total: Any = None
    for path in paths:
        summary = sf.read(path)
        if not isinstance(summary, sf.Summary):
            raise OptionError(
                f"{path} holds a {type(summary).__name__}, not a summary. Make one with suffice summarize."
            )
        total = summary if total is None else total + summary
    return total


def read_model(path: Path) -> Any:
    """The model in a file; the factors of a UAI file become the Markov network of their product."""
    import suffice as sf
    from suffice.errors import OptionError
    from suffice.formats.networks import FactorNetwork

    if not path.suffix and not path.exists():  # Else its ending would be called unknown.
        raise OptionError(f"There is no file {str(path)!r}. Check the path and the folder it is read from.")
    model = sf.read(path)
    if not isinstance(model, FactorNetwork):
        return model
    potentials: dict[Any, Any] = {}
    for scope, table in model.factors:
        potentials[scope] = potentials[scope] * table if scope in potentials else table
    states = {variable.name: list(variable.states) for variable in model.domain.variables}
    return sf.MarkovNetwork.from_potentials({s: t for s, t in potentials.items() if s}, states=states)
