"""The commands that learn, and those that prepare it: fit, summarize, merge, round, plan."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli.application import (
    Column,
    Group,
    Hidden,
    Json,
    MinimumCount,
    Order,
    Output,
    Response,
    Seed,
    States,
    Structure,
    Weight,
    app,
    rows,
    summed,
)

if TYPE_CHECKING:
    from suffice.fitting.estimator import Estimator
    from suffice.statistics import Summary

_FIT = """Fit a model of known structure to rows.

Prints the receipt and writes the model.

\b
suffice fit "rain -> wet; sprinkler -> wet" rows.csv -o net.json --prior 1
suffice fit alarm.bif "part-*.csv" -o alarm.json --prior bdeu:10
suffice fit "A--B; B--C; A--C" rows.csv --solver ipf
suffice fit alarm.bif north.json south.json        (summaries of two sites)
suffice fit "y ~ x + z" rows.csv --model glm --option family=poisson
suffice fit rows.csv --model glm --response y --column x
suffice fit rows.csv --model hmm --option states=2 --group patient --column pulse
suffice fit corpus.txt --model chain --option order=2 --option smoothing=kneser-ney
suffice fit train.txt --model crf --prior normal:10

\b
STRUCTURE: arrows make a Bayesian network, lines a Markov network, or a
  Gaussian graph where all columns are real; chains and glm have none.
glm: a formula, or --response and --column; options of GLM: family, link,
  dispersion, ...; offset, exposure and trials name columns.
hmm: --option states=N or '["calm", "storm"]', --label with known states,
  --option emission=normal (categorical, poisson, ...; by the column unless
  said), covariance, topology, n_init, ...
chain: text, one sequence a line, or rows with --group and --column;
  options order, smoothing, bounds, tokens, unknown, min_count, ...
crf: text, one step a line (token, ..., label), a blank line between
  sequences; options constraints, boundaries, min_frequency, ...
"""


@app.command(help=_FIT)
def fit(
    files: Annotated[list[str], typer.Argument(metavar="[STRUCTURE] DATA...", help="Structure, and rows.")],
    output: Output = None,
    model: Annotated[
        str | None, typer.Option(help="bayes, markov, gaussian, glm, chain, hmm or crf; else as the structure says.")
    ] = None,
    prior: Annotated[
        str | None, typer.Option(help="1, bdeu:10, k2; linear:2:1 of real nodes; on weights normal:10, laplace:1.")
    ] = None,
    estimate: Annotated[str | None, typer.Option(help="mean or map, with a prior.")] = None,
    solver: Annotated[str | None, typer.Option(help="Method, where the model has several.")] = None,
    weight: Weight = None,
    hidden: Hidden = None,
    states: States = None,
    response: Response = None,
    group: Group = None,
    order: Order = None,
    column: Column = None,
    label: Annotated[str | None, typer.Option(help="Column of known states (hmm).")] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="Any further option of the model, as NAME=VALUE (JSON or text).")
    ] = None,
    seed: Seed = None,
    report: Annotated[Path | None, typer.Option(help="Write the report as an HTML page.")] = None,
    progress: Annotated[bool | None, typer.Option(help="Show progress; on a terminal unless said.")] = None,
    json: Json = False,
) -> None:
    """Fit a model; the help of the command is `_FIT`."""
    from suffice.cli.building import CommandOptions, pairs, read_states
    from suffice.cli.commands import ReadingOptions

    chosen = CommandOptions(
        kind=model,
        prior=prior,
        estimate=estimate,
        solver=solver,
        hidden=pairs(hidden or [], "--hidden"),
        states=read_states(states or []),
        further=pairs(option or [], "--option"),
        seed=seed,
        progress=sys.stderr.isatty() if progress is None else progress,
    )
    reading = ReadingOptions(
        weight=weight, response=response, group=group, order=order, columns=tuple(column or ()), label=label
    )
    _check_targets(output, report, model)
    _finish(_commands(model).fit(files, chosen, reading), output, report, json)


def _check_targets(output: Path | None, report: Path | None, kind: str | None) -> None:
    """Refuse before the work what could not be written after it."""
    import os

    from suffice.errors import OptionError
    from suffice.formats import check_writable

    if output is not None:
        check_writable(output)
        if ".arpa" in output.suffixes and kind != "chain":
            raise OptionError(f"{str(output)!r}: ARPA files hold n-grams, which come from --model chain.")
    for path in (output, report):
        if path is None:
            continue
        folder = path.absolute().parent
        if not folder.is_dir():
            raise OptionError(f"There is no folder {str(path.parent)!r} to write {path.name!r} into.")
        if path.is_dir():
            raise OptionError(f"{str(path)!r} is a folder; name a file to write.")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise OptionError(f"{str(path)!r} cannot be written: permission denied.")


def _commands(kind: str | None) -> Any:
    """The commands of the kind that ``--model`` names; without it the structure says which network or graph."""
    from suffice.cli.kinds import commands_for

    return commands_for("bayes" if kind is None else kind)


def _finish(fitted: Estimator, output: Path | None, report: Path | None, json: bool) -> None:
    """Write and print; a fit that was interrupted is kept, and ends the command as an interrupt does."""
    from suffice.cli.showing import say

    if output is not None:
        fitted.write(output)
    if report is not None:
        fitted.report_.to_html(report)
    written = "".join(f"\nwritten to {path}" for path in (output, report) if path is not None)
    say(fitted.report_.to_dict(), as_json=json, text=f"{fitted.report_}{written}")
    if fitted.report_.stop_reason == "interrupted":
        raise KeyboardInterrupt


@app.command()
def summarize(
    files: Annotated[list[str], typer.Argument(metavar="[STRUCTURE] DATA...", help="Structure, and rows.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="File of the summary, .json or .suffice.")],
    weight: Weight = None,
    states: States = None,
    hidden: Hidden = None,
    model: Annotated[str | None, typer.Option(help="chain, of sequences; else as the structure says.")] = None,
    group: Group = None,
    order: Order = None,
    column: Column = None,
    option: Annotated[list[str] | None, typer.Option(help="Option of a chain, as NAME=VALUE: order, ...")] = None,
    with_rows: Annotated[bool, typer.Option("--with-rows", help="Write the file even if it holds rows.")] = False,
    minimum_count: MinimumCount = None,
    json: Json = False,
) -> None:
    """Write the statistics that a fit needs.

    Sites can share them in place of rows; `merge` adds them up, and `fit` takes them as data. Missing values, hidden
    variables and GLM nodes need the distinct rows themselves: such a file is written with --with-rows only. With
    --minimum-count nothing is written where a cell, or a sum, is of fewer rows.
    """
    from suffice.cli.building import CommandOptions, pairs, read_states
    from suffice.cli.commands import ReadingOptions
    from suffice.cli.showing import say
    from suffice.errors import OptionError, listing
    from suffice.formats import write

    chosen = CommandOptions(
        kind=model,
        hidden=pairs(hidden or [], "--hidden"),
        states=read_states(states or []),
        further=pairs(option or [], "--option"),
        progress=sys.stderr.isatty(),
    )
    reading = ReadingOptions(
        weight=weight, group=group, order=order, columns=tuple(column or ()), minimum_count=minimum_count
    )
    summary = _commands(model).summarize(files, chosen, reading)
    if summary.holds_rows and not with_rows:
        raise OptionError(
            f"The file would hold the distinct rows of {listing(summary.row_columns)}: missing values, hidden "
            "variables and GLM nodes are learned from them. Nothing was written. Give --with-rows to write them, or "
            "leave out what needs rows."
        )
    write(summary, output)
    answers = len(summary.answers)
    facts = {"rows": summary.rows, "weight": summary.weight, "statistics": answers, "holds_rows": summary.holds_rows}
    kept = f"{summary.rows:,} rows in {answers} statistic{'s' * (answers != 1)}, written to {output}"
    say({**facts, "file": str(output)}, as_json=json, text=kept + _warned(summary))


def _warned(summary: Summary) -> str:
    """What to know before a file of statistics leaves the house."""
    from suffice.errors import listing

    return f"\nit holds the distinct rows of {listing(summary.row_columns)}" if summary.holds_rows else ""


@app.command()
def merge(
    summaries: Annotated[list[Path], typer.Argument(help="Files of summaries.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="File of the sum, .json or .suffice.")],
    json: Json = False,
) -> None:
    """Add up summaries.

    A fit of the sum equals a fit of all rows together.
    """
    from suffice.cli.showing import say
    from suffice.formats import write

    total = summed(summaries)
    write(total, output)
    facts = {"rows": total.rows, "weight": total.weight, "holds_rows": total.holds_rows, "file": str(output)}
    text = f"{total.rows:,} rows of {len(summaries)} summaries, written to {output}"
    say(facts, as_json=json, text=text + _warned(total))


@app.command()
def plan(
    structure: Structure,
    data: Annotated[list[str] | None, typer.Argument(help="Rows, from which the states are read.")] = None,
    states: Annotated[
        list[str] | None,
        typer.Option(help="As in fit; a number is that of the states of each variable of which nothing is known."),
    ] = None,
    hidden: Hidden = None,
    model: Annotated[str | None, typer.Option(help="bayes, markov or gaussian; else as the structure says.")] = None,
    json: Json = False,
) -> None:
    """Say how large a fit would be, without fitting.

    Width of the junction tree, bytes, and the method that would be chosen.
    """
    from suffice.cli.building import GRAPHS, CommandOptions, pairs, read_states
    from suffice.cli.planning import describe_plan
    from suffice.cli.showing import lines, say
    from suffice.cli.structures import read_structure
    from suffice.errors import OptionError

    numbers = [int(text) for text in states or [] if text.isdigit()]
    declared = read_states([text for text in states or [] if not text.isdigit()])
    each = numbers[-1] if numbers else 2
    if model is not None and model not in GRAPHS:
        raise OptionError(f"--model {model!r}: expected one of {', '.join(GRAPHS)}; the others have no plan.")
    chosen = CommandOptions(kind=model, states=declared, hidden=pairs(hidden or [], "--hidden"))
    opened = read_structure(structure)
    if not data:
        facts = describe_plan(opened, None, chosen, each)
    else:
        with rows(data) as given:
            facts = describe_plan(opened, given, chosen, each)
    say(facts, as_json=json, text=lines(facts))


@app.command("round")
def answer_round(
    question: Annotated[Path, typer.Argument(help="File of a question, that a fit across sites has written.")],
    data: Annotated[list[str], typer.Argument(help="Rows of this site.")],
    site: Annotated[str, typer.Option(help="Name of this site, as the fit knows it.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="File of the answer; else beside it.")] = None,
    minimum_count: MinimumCount = None,
    column: Column = None,
    json: Json = False,
) -> None:
    """Answer one round of a fit across sites that share no rows.

    The answer holds counts and sums, and no rows. `sf.FileRounds` writes the questions and reads the answers.
    """
    import suffice as sf
    from suffice.cli.showing import say
    from suffice.sources.round_files import write_answer

    answer = question.with_name(f"{question.stem.replace('question', 'answer')}-{site}.json")
    answer = answer if output is None else output
    with rows(data) as opened:
        write_answer(question, sf.Site(opened, columns=column or None, minimum_count=minimum_count), site, answer)
    say({"file": str(answer)}, as_json=json, text=f"answered, written to {answer}")
