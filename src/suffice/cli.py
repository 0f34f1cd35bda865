"""The command ``suffice``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Learn the parameters of probabilistic graphical models.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


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
) -> None:
    """Learn the parameters of probabilistic graphical models."""


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where to write the fitted models.")] = Path("suffice-demo"),
) -> None:
    """Fit the bundled clinic data, print the receipts and write the models."""
    from suffice.demo import run

    run(folder, say=typer.echo)


def main() -> None:
    """Run the command; an error made on purpose is one sentence on stderr and exit code 2."""
    from suffice.errors import SufficeError

    try:
        app()
    except SufficeError as error:
        typer.echo(f"suffice: {error}", err=True)
        raise SystemExit(2) from None
