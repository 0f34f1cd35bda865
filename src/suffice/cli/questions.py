"""The commands that ask a fitted model: query, table, score, predict, sample, show; convert, and the demo."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from suffice.cli.application import (
    Column,
    Data,
    Given,
    Group,
    Json,
    Model,
    Order,
    Output,
    Response,
    Seed,
    Weight,
    app,
    read_model,
)

Further = Annotated[
    list[str] | None,
    typer.Option(
        "--option", help="Further argument as NAME=VALUE: offset or kind (glm), method (hmm); may be repeated."
    ),
]


@app.command()
def query(
    model: Model,
    variables: Annotated[list[str], typer.Argument(metavar="VARIABLE...", help="What is asked about.")],
    given: Given = None,
    json: Json = False,
) -> None:
    """P(variables | given), exact."""
    from suffice.cli.kinds import commands_of
    from suffice.cli.showing import say

    say(commands_of(read_model(model)).query(variables, given or []), as_json=json)


@app.command()
def table(
    model: Model,
    node: Annotated[
        str,
        typer.Argument(help="A node; a clique as A,B; initial, transitions or emissions; a history such as 'the dog'."),
    ],
    json: Json = False,
) -> None:
    """A table of parameters: that of a node, a clique, a chain, an hmm, a glm."""
    from suffice.cli.kinds import commands_of
    from suffice.cli.showing import say

    say(commands_of(read_model(model)).table(node), as_json=json)


@app.command()
def score(
    model: Model,
    data: Data,
    weight: Weight = None,
    response: Response = None,
    group: Group = None,
    order: Order = None,
    column: Column = None,
    option: Further = None,
    json: Json = False,
) -> None:
    """Mean log-likelihood of rows.

    Of a row, of a step in a chain or hmm, of a sequence in a crf; natural logarithm.
    """
    from suffice.cli.building import read_options
    from suffice.cli.commands import ReadingOptions
    from suffice.cli.kinds import commands_of
    from suffice.cli.showing import lines, say

    read = ReadingOptions(weight=weight, response=response, group=group, order=order, columns=tuple(column or ()))
    reading = replace(read, further=read_options(option or []))
    figures = commands_of(read_model(model)).score(data, reading)
    say(figures, as_json=json, text=repr(figures["score"]) if len(figures) == 1 else lines(figures))


@app.command()
def predict(
    model: Model,
    data: Data,
    target: Annotated[str | None, typer.Option(help="Which column to predict, where the model has several.")] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Probabilities of all states instead of the best one.")
    ] = False,
    group: Group = None,
    order: Order = None,
    column: Column = None,
    option: Further = None,
    output: Output = None,
    json: Json = False,
) -> None:
    """Predict a column from the others.

    Of an hmm the states, of a crf the labels, of a chain what follows each sequence.
    """
    from suffice.cli.building import read_options
    from suffice.cli.commands import ReadingOptions
    from suffice.cli.kinds import commands_of
    from suffice.cli.showing import write_rows

    read = ReadingOptions(group=group, order=order, columns=tuple(column or ()), target=target, proba=proba)
    reading = replace(read, further=read_options(option or []))
    write_rows(commands_of(read_model(model)).predict(data, reading), output, as_json=json)


@app.command()
def sample(
    model: Model,
    data: Annotated[
        list[str] | None, typer.Argument(metavar="[DATA...]", help="Rows or sequences that a glm or crf speaks about.")
    ] = None,
    n: Annotated[int, typer.Option("-n", help="Number of rows; of a chain, hmm or crf of sequences.")] = 10,
    length: Annotated[int | None, typer.Option(help="Steps of each sequence (chain, hmm).")] = None,
    given: Given = None,
    seed: Seed = None,
    output: Output = None,
    json: Json = False,
) -> None:
    """Draw rows from a fitted model."""
    from suffice.cli.commands import ReadingOptions
    from suffice.cli.kinds import commands_of
    from suffice.cli.showing import write_rows

    reading = ReadingOptions(given=tuple(given or ()), seed=seed, length=length, data=tuple(data or ()))
    write_rows(commands_of(read_model(model)).sample(n, reading), output, as_json=json)


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="File of a model.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="File to write; the ending says the format.")],
    json: Json = False,
) -> None:
    """Write a model in another format."""
    from suffice.cli.commands import seen
    from suffice.cli.showing import say
    from suffice.formats import write

    model = read_model(source)
    write(model, target)
    portrait = seen(model)
    notes = portrait.notes
    facts = {"model": portrait.title, "file": str(target), "notes": notes}
    say(facts, as_json=json, text="\n".join([f"written to {target}", *(f"note: {note}" for note in notes)]))


@app.command()
def report(model: Model, output: Output = None, json: Json = False) -> None:
    """Page of a fitted model: what was learned, its graph, its explorer and its report, in one file."""
    from suffice.cli.showing import say
    from suffice.errors import OptionError

    fitted = read_model(model)
    if not hasattr(fitted, "report_"):
        raise OptionError(f"{str(model)!r} holds no report of a fit. Fit it to rows first: suffice fit ... --report.")
    page = model.with_suffix(".html") if output is None else output
    fitted.report_.to_html(page)
    say({"model": type(fitted).__name__, "file": str(page)}, as_json=json, text=f"written to {page}")


@app.command()
def show(model: Model, json: Json = False) -> None:
    """Structure, size, parameters and report of a model."""
    from suffice.cli.kinds import description
    from suffice.cli.showing import lines, say

    facts = description(read_model(model), for_programs=json)
    if json:
        say({name: part.to_dict() if name == "report" else part for name, part in facts.items()}, as_json=True)
        return
    last = [str(facts.pop(name, "")) for name in ("parameters", "report")]
    say(facts, as_json=False, text="\n\n".join([lines(facts), *filter(None, last)]))


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where to write the models and their reports.")] = Path("suffice-demo"),
    json: Json = False,
) -> None:
    """Fit models of every kind to bundled data.

    Prints the receipts; writes the models and a page that shows them.
    """
    from suffice.cli.showing import say
    from suffice.demo import run

    exhibits = run(folder, say=_silence if json else typer.echo)
    if json:
        say({exhibit.name: exhibit.model.report_.to_dict() for exhibit in exhibits}, as_json=True)


def _silence(text: str) -> None:
    """Say nothing: what a program reads comes at the end."""
