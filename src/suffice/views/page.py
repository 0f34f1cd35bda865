"""The page of a report: one file that asks nothing of the network, and is coloured and moved by its own parts alone."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
from pathlib import Path

import numpy as np

from suffice.errors import SufficeError
from suffice.fitting.portrait import Graph, Grid, Interval, Portrait, VariableDistribution, or_none
from suffice.fitting.report import STANDARD_ERRORS, MatchedStatistics, Report, largest_and_even
from suffice.views.charts import density_chart, diagonal_chart, interval_chart, line_chart
from suffice.views.drawing import draw_graph
from suffice.views.explorer import Explorer, explorer_of
from suffice.views.layout import place_graph

ASSETS = Path(__file__).with_name("assets")
#: Nodes up to which a graph is drawn, and tables that are shown; more would not be readable.
MOST_NODES, MOST_TABLES = 250, 120
#: Parameters whose estimates are drawn, those that the prior moves most.
MOST_INTERVALS = 40
#: Statistics that are drawn; of more, those with the largest gaps and an even choice of the others.
MOST_POINTS = 1500
#: Steps of the colours of a table.
SHADES = 20
#: Letters of a cell at least, and of a row of a table beyond which it takes the whole width of the page.
LEAST_CELL, WIDE_TABLE = 8, 56
WIDE_MARK = ' class="wide"'


#: Graphs wider than a phone, and than a page, in pixels, can be made to fit; a box that is ticked needs no script.
FITTING, FAR = 300.0, 1_100.0
FIT = '<label class="{}"><input type="checkbox" id="fit"> Fit to the width</label>'


def page_of(report: Report, portrait: Portrait | None, title: str | None = None) -> str:
    """The page as text; `portrait` is None for a report that stands alone, `title` in place of the model's."""
    style, script = (ASSETS.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "explorer.js"))
    explorer = Explorer(None) if portrait is None else explorer_of(portrait)
    body = "\n".join(filter(None, _sections(report, portrait or Portrait(report.model), explorer, title)))
    data = (
        "" if explorer.data is None else f'<script type="application/json" id="network">{_json(explorer.data)}</script>'
    )
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri 'none'; "
        "form-action 'none'"
    )
    tab = html.escape(f"{title or report.model} · suffice")
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n<title>{tab}</title>\n<style>{style}</style>\n</head>\n'
        f"<body>\n{body}\n{data}\n<script>{script}</script>\n</body>\n</html>\n"
    )


def _hash(text: str) -> str:
    """The text as a content-security policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(data: object) -> str:
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _sections(report: Report, portrait: Portrait, explorer: Explorer, title: str | None) -> list[str]:
    try:
        variables, silence = list(portrait.variables()), ""
    except SufficeError as error:
        variables, silence = [], f"The distributions of single variables are not shown: {error}"
    foot = "Made by suffice. This file is complete: it loads nothing and sends nothing."
    return [
        *(_top(report, portrait.graph, title), _warnings(report), _figures(report)),
        "<main>",
        *(_graph(portrait.graph, bool(variables)), _variables(variables, silence, explorer), _tables(portrait)),
        *(_convergence(report), _moments(report, portrait), _estimates(portrait), _receipt(report)),
        "</main>",
        f"<footer>{foot}</footer>",
    ]


def _section(identity: str, title: str, *parts: str, note: str = "") -> str:
    paragraph = f'<p class="note">{html.escape(note)}</p>' if note else ""
    return f'<section id="{identity}"><h2>{html.escape(title)}</h2>{paragraph}{"".join(parts)}</section>'


# -- what comes first ------------------------------------------------------------------------------------------------


def _top(report: Report, graph: Graph | None, title: str | None) -> str:
    origin = f"{report.estimate} from {report.rows:,} rows"
    origin = origin if title is None else f"{report.model} · {origin}"
    shape = "" if graph is None else f" · {len(graph.nodes):,} nodes, {len(graph.edges):,} edges"
    return f"<header><h1>{html.escape(title or report.model)}</h1><p>{html.escape(origin + shape)}</p></header>"


def _warnings(report: Report) -> str:
    """What a reader has to know before anything else."""
    texts = [text[:1].upper() + text[1:] for text in report.warnings]
    if report.certificate.exists is False:
        # One sentence says it, with what runs away; a warning to the same effect adds what was returned instead.
        beginning = "The maximum is not attained"
        more = [text.partition(": ")[2] for text in texts if text.startswith(beginning)]
        texts = [text for text in texts if not text.startswith(beginning)]
        named = "; ".join(report.certificate.directions[:3]) or "the estimate lies on the edge"
        texts.insert(0, f"{beginning}: {named}. " + "".join(f"{text[:1].upper()}{text[1:]}." for text in more if text))
    if not report.converged:
        texts.insert(0, f"The fit has not converged: {report.stop_reason}.")
    if not texts:
        return '<aside class="fine" role="status">No warnings.</aside>'
    items = "".join(f"<li>{html.escape(text)}</li>" for text in texts)
    word = "warning" if len(texts) == 1 else "warnings"
    head = f'<h2 id="warned">{len(texts)} {word}</h2>'
    return f'<aside class="warnings" aria-labelledby="warned">{head}<ul>{items}</ul></aside>'


def _figures(report: Report) -> str:
    """The figures that one looks for first."""
    gap = report.certificate.value_gap
    away = "unknown" if gap is None else f"{'≤' if report.certificate.bound else '≈'} {_tiny(gap)}"
    exact = report.is_exact or report.certificate.formula != ""
    cells = [
        ("log-likelihood", _amount(report.log_likelihood), "sum, natural log"),
        ("parameters", f"{report.n_params:,}", f"AIC {_amount(report.aic)}"),
        ("moment gap", _tiny(report.certificate.moment_gap), STANDARD_ERRORS),
        ("from the optimum", *(("exact", "a closed form") if exact else (away, "nats per row"))),
    ]
    shown = "".join(
        f"<div><dt>{html.escape(label)}</dt><dd>{html.escape(value)}<small>{html.escape(unit)}</small></dd></div>"
        for label, value, unit in cells
    )
    return f'<dl class="figures">{shown}</dl>'


def _tiny(value: float) -> str:
    return "0" if value == 0 else f"{value:.1e}"


def _amount(value: float) -> str:
    return f"{value:,.2f}" if math.isfinite(value) and abs(value) < 1e9 else f"{value:.4g}"


# -- the model -------------------------------------------------------------------------------------------------------


def _graph(graph: Graph | None, linked: bool) -> str:
    """The graph; a sentence where it has too many nodes."""
    if graph is None:
        return ""
    size = f"{len(graph.nodes):,} nodes and {len(graph.edges):,} edges"
    if len(graph.nodes) > MOST_NODES:
        note = f"A graph of {size} is not drawn; the limit is {MOST_NODES} nodes."
        return _section("graph", "Graph", note=note)
    placement = place_graph(graph)
    number = {node: str(index) for index, node in enumerate(graph.nodes)}
    title = f"Graph of {size}"
    drawn = draw_graph(
        placement,
        title=title,
        link=lambda node: f"#v{number[node]}" if linked else None,
        identity=number.__getitem__,
    )
    fit = FIT.format("fit far" if placement.width > FAR else "fit") if placement.width > FITTING else ""
    return _section(
        "graph", "Graph", f'{fit}<div class="scroll" tabindex="0" role="region" aria-label="{title}">{drawn}</div>'
    )


def _variables(variables: list[VariableDistribution], silence: str, explorer: Explorer) -> str:
    """The distribution of each variable as bars; with an explorer each state is a button."""
    if not variables:
        return _section("distributions", "Variables", note=silence) if silence else ""
    live = explorer.data is not None
    cards = "".join(_card(index, one, live) for index, one in enumerate(variables))
    if not live:
        return _section("distributions", "Variables", f'<div class="cards">{cards}</div>', note=explorer.reason)
    bar = (
        '<div class="evidence"><p id="verdict" role="status" aria-live="polite">Exploring needs JavaScript.</p>'
        '<div id="chips"></div><button type="button" id="clear" hidden>Clear all</button>'
        '<label class="filter">Find <input id="filter" type="search" placeholder="name of a variable"></label></div>'
    )
    note = (
        "Choose a state to set it as evidence, and choose it again to retract it. All other distributions are then "
        "exact posteriors, computed in this page on the junction tree of the model."
    )
    inside = f'<div id="explorer">{bar}<div class="cards">{cards}</div></div>'
    return _section("distributions", "Variables", inside, note=note)


def _card(index: int, variable: VariableDistribution, live: bool) -> str:
    name = html.escape(str(variable.name))
    pairs = zip(variable.states, variable.probabilities, strict=True)
    rows = "".join(_bar(index, variable.name, str(state), share, live) for state, share in pairs)
    inside = density_chart(variable) if variable.normals else rows
    return f'<article class="card" id="v{index}" aria-label="{name}"><h3>{name}</h3>{inside}</article>'


def _bar(index: int, name: object, state: str, share: float, live: bool) -> str:
    text = html.escape(state)
    inside = (
        f'<span class="state" title="{text}">{text}</span><svg class="bar" aria-hidden="true" height="10">'
        f'<rect class="rail" width="100%" height="10" rx="3"/><rect class="fill" width="{100 * share:.4f}%" '
        f'height="10" rx="3"/></svg><span class="share">{100 * share:.1f} %</span>'
    )
    if not live:
        return f'<div class="row">{inside}</div>'
    label = html.escape(f"{name} = {state}: {100 * share:.1f} %")
    mark = f'data-variable="{index}" data-probability="{share!r}" aria-pressed="false" aria-label="{label}"'
    return f'<button type="button" class="row" {mark}>{inside}</button>'


def _tables(portrait: Portrait) -> str:
    grids = [grid for make in portrait.tables[:MOST_TABLES] if (grid := or_none(make)) is not None]
    more = max(0, len(portrait.tables) - MOST_TABLES)
    if not grids:
        return ""
    opened = len(grids) <= 8
    parts = "".join(_grid(grid, opened) for grid in grids)
    return _section(
        "tables",
        "Tables",
        f'<div class="tables">{parts}</div>',
        note=f"{more:,} more tables are not shown." if more else "",
    )


def _grid(grid: Grid, opened: bool) -> str:
    head = "".join(f'<th class="named" scope="col">{html.escape(text)}</th>' for text in grid.axes)
    head += "".join(f'<th scope="col">{html.escape(text)}</th>' for text in grid.head)
    if grid.over:
        above = f'<th colspan="{len(grid.axes)}"></th>' if grid.axes else ""
        over = f'<th class="over" scope="colgroup" colspan="{len(grid.head)}">{html.escape(grid.over)}</th>'
        head = f"{above}{over}</tr><tr>{head}"
    columns = zip(grid.axes, *grid.labels, strict=True) if grid.axes else ()
    letters = sum(max(map(len, some)) for some in columns)
    wide = letters + sum(max(len(text), LEAST_CELL) for text in grid.head) > WIDE_TABLE
    marks = _marks(grid)
    body = []
    for labels, values, shades in zip(grid.labels, grid.values.tolist(), marks, strict=True):
        names = "".join(f'<th scope="row">{html.escape(text)}</th>' for text in labels)
        pairs = zip(values, shades, strict=True)
        cells = "".join(f'<td class="{shade}">{_short(value)}</td>' for value, shade in pairs)
        body.append(f"<tr>{names}{cells}</tr>")
    more = f'<p class="note">{grid.left_out:,} more rows</p>' if grid.left_out else ""
    return (
        f"<details{' open' if opened else ''}{WIDE_MARK if wide else ''}><summary>{html.escape(grid.title)}</summary>"
        f'<div class="scroll" tabindex="0" role="region" aria-label="{html.escape(grid.title)}"><table class="heat">'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>{more}</details>"
    )


def _marks(grid: Grid) -> list[list[str]]:
    """The classes that colour the cells: of shares as they are, of factors by their logarithm, of others by size."""
    values = grid.values
    if grid.colours == "factor":
        with np.errstate(divide="ignore"):
            values = np.log(values)
    finite = np.isfinite(values)
    finite[:, list(grid.plain)] = False
    top = 1.0 if grid.colours == "share" else float(np.abs(values[finite]).max(initial=0.0)) or 1.0
    share = np.clip(np.abs(np.where(np.isnan(values), 0.0, values)) / top, 0.0, 1.0)
    plain = np.isnan(values) | (grid.colours == "none")
    plain[:, list(grid.plain)] = True
    marks = np.char.add(np.where(values < 0, "low", "heat"), np.round(SHADES * share).astype(int).astype(str))
    return [[str(mark) for mark in row] for row in np.where(plain, "plain", marks)]


def _short(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "undefined" if math.isnan(value) else f"{'-' * (value < 0)}∞"


# -- the fit ---------------------------------------------------------------------------------------------------------


def _convergence(report: Report) -> str:
    history = [value for value in report.history if math.isfinite(value)]
    if len(history) < 2:
        return ""
    best = max(history)
    first = line_chart(history, ("iteration", "objective"), "Objective by iteration")
    apart = abs(history[-1] - report.objective) > 1e-6 * max(1.0, abs(report.objective))
    caption = "The objective of each iteration."
    if apart:
        caption = (
            "The objective of each iteration, in the solver's own units and without constants; in those of the receipt "
            f"it ends at {_amount(report.objective)}."
        )
    parts = [f"<figure>{first}<figcaption>{html.escape(caption)}</figcaption></figure>"]
    left = [best - value for value in history]
    if sum(value > 0 for value in left) >= 3:
        second = line_chart(left, ("iteration", "below the best"), "Distance to the best objective", log=True)
        parts.append(f"<figure>{second}<figcaption>How far below the best, on a log scale.</figcaption></figure>")
    state = "Converged" if report.converged else "Not converged"
    why = "" if report.converged else f": {report.stop_reason}"
    note = f"{state} after {report.iterations:,} iterations{why}."
    return _section("convergence", "Convergence", f'<div class="figure-row">{"".join(parts)}</div>', note=note)


def _moments(report: Report, portrait: Portrait) -> str:
    lines = "".join(
        f"<tr><th>{html.escape(label)}</th><td>{html.escape(text)}</td></tr>"
        for label, text in report.certificate.lines()
    )
    table = f'<table class="receipt">{lines}</table>'
    try:
        matched = portrait.matched()
    except SufficeError as error:
        return _section("certificate", "Certificate", table, note=str(error))
    if matched is None or not len(matched.names):
        return _section("certificate", "Certificate", table)
    chosen = matched.select(largest_and_even(matched.gaps, MOST_POINTS))
    chart = diagonal_chart(chosen, "Observed and expected statistics")
    figure = f"<figure>{chart}<figcaption>{html.escape(_caption_of(matched))}</figcaption></figure>"
    return _section(
        "certificate", "Observed and expected, and the certificate", f'<div class="figure-row">{figure}{table}</div>'
    )


def _caption_of(matched: MatchedStatistics) -> str:
    """The caption of the chart of statistics."""
    gaps = np.abs(matched.gaps)
    worst, total = int(np.nanargmax(gaps)) if np.isfinite(gaps).any() else 0, matched.total or len(gaps)
    some = "" if total == len(gaps) else f", {len(gaps):,} of them kept"
    with_prior = "" if matched.pull is None else " once the prior is added"
    caption = (
        f"{matched.about} {total:,} statistics{some}; the largest gap{with_prior} is {_tiny(float(gaps[worst]))}, of "
        f"{matched.names[worst]}. Points on the line are matched"
    )
    if matched.pull is not None:
        return f"{caption}; strokes show where the prior pulls them.".strip()
    return f"{caption}; a prior or a sampled engine moves them off it.".strip()


def _estimates(portrait: Portrait) -> str:
    estimates = portrait.estimates(0.95, None)
    intervals, noted = estimates.intervals, estimates.note
    if not intervals:
        return _section("estimates", "Estimates side by side", note=noted) if noted else ""
    by_size = sorted(range(len(intervals)), key=lambda index: -_moved(intervals[index]))
    shown = [intervals[index] for index in sorted(by_size[:MOST_INTERVALS])]
    kinds = {"mle": "maximum likelihood", "map": "MAP", "mean": "posterior mean"}
    has = [kind for kind in kinds if any(one.points[kind] is not None for one in shown)]
    legend = (
        "".join(f'<li class="of-{kind}">{kinds[kind]}</li>' for kind in has)
        + '<li class="of-interval">95 % interval</li>'
    )
    some = f"The {len(shown)} of {len(intervals):,} parameters that the prior moves most."
    note = f"{some if len(shown) < len(intervals) else ''} {noted}".strip()
    title = "Estimates and their intervals"
    chart = f'<div class="scroll" tabindex="0" role="region" aria-label="{title}">{interval_chart(shown, title)}</div>'
    return _section("estimates", "Estimates side by side", f'<ul class="legend">{legend}</ul>{chart}', note=note)


def _moved(one: Interval) -> float:
    """How far the prior moves an estimate; -1 where there is none without it."""
    point = one.map if one.mean is None else one.mean
    return -1.0 if one.mle is None or point is None else abs(one.mle - point)


def _receipt(report: Report) -> str:
    rows = "".join(
        f"<tr><th>{html.escape(label)}</th><td>{html.escape(text)}</td></tr>" for label, text in report.lines()
    )
    return _section("receipt", "Receipt", f'<table class="receipt">{rows}</table>')
