"""Plots with Matplotlib, the extra ``viz``: each function takes a fitted model and returns the Axes it drew on.

`network`, `table`, `convergence`, `moments`, `posterior`, `mle_vs_map`, `likelihood_surface`, `precision`, `states`,
`top_features` and `transitions`; `tornado` takes the sensitivity of an answer. All of them take ``ax=``; without it a
new figure is made.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Floats
from suffice.errors import (
    DataError,
    EstimateError,
    MissingAttributeError,
    NotFittedError,
    OptionError,
    UnknownStateError,
    listing,
    meant,
    require,
    shortened,
)
from suffice.fitting.portrait import Interval, Likelihood, Portrait
from suffice.table import Table
from suffice.views.layout import HEIGHT, place_graph, short_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from suffice.fitting.estimator import Estimator
    from suffice.models.bayesian.error_bars.sensitivity import Sensitivity


__all__ = [
    *("convergence", "likelihood_surface", "mle_vs_map", "moments", "network", "posterior", "precision", "states"),
    *("table", "top_features", "tornado", "transitions"),
]

INK, ACCENT, COLD, KNOWN, SOFT = "#1c2430", "#0b6e75", "#b4532a", "#7a2e8e", "#7a8494"
#: Cells up to which a heat map writes its numbers.
MOST_WRITTEN = 400
#: Contours of a log-likelihood, 4, 3, 2 and 1 standard deviations away, and the lowest value that has a colour.
DEVIATIONS, LOWEST = (-8.0, -4.5, -2.0, -0.5), -50.0


def network(model: Estimator, *, ax: Axes | None = None) -> Axes:
    """The graph of a model: in layers where its edges have a direction, by distances where they have none."""
    portrait: Portrait = model.portrait()
    if portrait.graph is None:
        raise OptionError(f"A {portrait.title} has no graph to draw; networks and Gaussian graphs have one.")
    directed, placement = portrait.graph.directed, place_graph(portrait.graph)
    size = (max(3.0, placement.width / 90), max(2.0, placement.height / 90))
    ax = _axes(ax, "network", figsize=size)
    patches = require("matplotlib.patches", extra="viz", purpose="plot.network")
    for route in placement.routes:
        points = np.array(route)
        ax.plot(points[:-1, 0], points[:-1, 1], color=SOFT, linewidth=1.2, zorder=1)
        ends = dict(zip(("xytext", "xy"), points[-2:].tolist(), strict=True))
        if directed:
            ends["xy"] = [ends["xy"][0], ends["xy"][1] - HEIGHT / 2]
        arrow = {"arrowstyle": "-|>" if directed else "-", "color": SOFT, "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", **ends, arrowprops=arrow, zorder=1)
    for node, (x, y) in placement.places.items():
        wide = placement.widths[node]
        box = (x - wide / 2, y - HEIGHT / 2)
        style = "round,pad=0,rounding_size=8"
        ax.add_patch(
            patches.FancyBboxPatch(box, wide, HEIGHT, boxstyle=style, facecolor="white", edgecolor=ACCENT, zorder=2)
        )
        ax.text(x, y, short_name(node), ha="center", va="center", fontsize=8, color=INK, zorder=3)
    ax.set_xlim(-8, placement.width + 8)
    ax.set_ylim(placement.height + 8, -8)
    ax.set_aspect("equal")
    ax.set_axis_off()
    return ax


def table(model: Estimator | Table, node: object = None, *, ax: Axes | None = None) -> Axes:
    """A table as a heat map, its last variable along the columns.

    Args:
        model: a `Table`; or a network, of which `node` names the node, P(node | parents), or the clique, its potential.
        node: which table of a network.
        ax: the Axes to draw on.
    """
    shown = model if isinstance(model, Table) else _table_of(model.portrait(), node)
    *outer, last = shown.domain.variables
    rows = [
        ", ".join(f"{v.name}={v.states[code]}" for v, code in zip(outer, codes, strict=True))
        for codes in np.ndindex(*(v.card for v in outer))
    ]
    values = shown.values.reshape(-1, last.card)
    ax = _axes(ax, "table", figsize=(1.6 + 0.9 * last.card, 0.8 + 0.35 * len(values)))
    _heat(ax, values, rows if outer else [""], last.states, signed=bool((values < 0).any()))
    ax.set_xlabel(str(last.name))
    return ax


def _table_of(portrait: Portrait, node: object) -> Table:
    if node is None:
        raise OptionError(f"Say which table of the {portrait.title} to plot: plot.table(model, node).")
    chosen = None if portrait.table is None else portrait.table(node)
    if not isinstance(chosen, Table):
        raise OptionError(f"A {portrait.title} has no table {node!r} of states to plot.")
    return chosen


def convergence(model: Estimator, *, log: bool = False, ax: Axes | None = None) -> Axes:
    """The objective of each iteration; with `log`, how far it lies below the best, on a log scale."""
    report = model.report_
    history = np.asarray(report.history, dtype=np.float64)
    if len(history) < 2:
        raise OptionError(f"This {model.portrait().title} was fitted without iterations: {report.method}.")
    ax = _axes(ax, "convergence")
    steps = np.arange(len(history))
    if log:
        below = np.nanmax(history) - history
        kept = below > 0
        ax.semilogy(steps[kept], below[kept], color=ACCENT, marker=".")
        ax.set_ylabel("below the best objective")
    else:
        ax.plot(steps, history, color=ACCENT, marker=".")
        ax.set_ylabel("objective")
    ax.set_xlabel("iteration")
    ax.locator_params(axis="x", integer=True)
    return ax


def moments(model: Estimator, *, ax: Axes | None = None) -> Axes:
    """Observed statistics along, expected ones upwards; the title is the certificate.

    Strokes lead to where a prior pulls the points, upright ones span two standard errors of sampled expectations.
    """
    portrait: Portrait = model.portrait()
    matched = portrait.matched()
    if matched is None:
        raise OptionError(f"A {portrait.title} keeps no pairs of observed and expected statistics to plot.")
    ax = _axes(ax, "moments", figsize=(4.6, 4.6))
    both = np.concatenate([matched.observed, matched.expected])
    ends = [float(both.min()), float(both.max())]
    ax.plot(ends, ends, color=SOFT, linestyle="--", linewidth=1)
    if matched.pull is not None:
        ax.hlines(matched.expected, matched.observed, matched.observed + matched.pull, color=KNOWN, alpha=0.6)
    if matched.errors is not None:
        far = 2 * matched.errors
        ax.vlines(matched.observed, matched.expected - far, matched.expected + far, color=SOFT, linewidth=1)
    ax.scatter(matched.observed, matched.expected, s=16, color=ACCENT, alpha=0.6)
    ax.set_xlabel("observed")
    ax.set_ylabel("expected under the fit")
    ax.set_title(f"moment gap {model.report_.certificate.moment_gap:.1e}", fontsize=10)
    return ax


def posterior(model: Estimator, *, node: Hashable = None, level: float = 0.95, ax: Axes | None = None) -> Axes:
    """Posterior intervals of the parameters, with maximum likelihood, MAP and posterior mean upon them.

    Args:
        model: a distribution or a network that was fitted with a prior; or a regression, with Wald intervals.
        node: of a network, the node whose table is shown; all of them by default.
        level: the share of the posterior inside of the intervals.
        ax: the Axes to draw on.
    """
    intervals = _estimates(model.portrait(), node, level)
    ax = _axes(ax, "posterior", figsize=(6.4, 0.9 + 0.3 * len(intervals)))
    ranks = np.arange(len(intervals))
    ax.hlines(
        ranks, [one.low for one in intervals], [one.high for one in intervals], color=ACCENT, alpha=0.35, linewidth=6
    )
    for kind, mark, colour, label in _KINDS:
        points = [(v, y) for y, one in zip(ranks, intervals, strict=True) if (v := one.points[kind]) is not None]
        if points:
            face = "none" if kind == "mle" else colour
            x, y = zip(*points, strict=True)
            ax.plot(x, y, linestyle="none", marker=mark, color=colour, markerfacecolor=face, label=label)
    ax.set_yticks(ranks, [one.name for one in intervals])
    ax.invert_yaxis()
    ax.legend(fontsize=8)
    return ax


_KINDS = (
    ("mean", "|", INK, "posterior mean"),
    ("map", "D", KNOWN, "MAP"),
    ("mle", "o", COLD, "maximum likelihood"),
)


def _estimates(portrait: Portrait, node: Hashable, level: float) -> tuple[Interval, ...]:
    intervals = portrait.estimates(level, node).intervals
    if not intervals:
        raise EstimateError(
            f"This {portrait.title} has no posterior to plot. Fit it with a prior=, or name a node with a table."
        )
    return intervals


def mle_vs_map(
    model: Any,
    *,
    parameter: str | None = None,
    node: Hashable = None,
    data: Any = None,
    sizes: Sequence[float] | None = None,
    level: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """How maximum likelihood, MAP and posterior mean approach one another as the number of rows grows.

    Args:
        model: a distribution or a network that was fitted with a prior.
        parameter: its name, as `posterior` writes it; by default the one that the prior moves most.
        node: of a network, the node whose table is meant.
        data: rows whose beginnings are fitted; by default as many rows as asked for with the same frequencies.
        sizes: numbers of rows.
        level: the share of the posterior inside of the band.
        ax: the Axes to draw on.
    """
    portrait: Portrait = model.portrait()
    if data is None and portrait.rescaled is None:
        raise OptionError(
            f"A {portrait.title} keeps no statistics that a smaller fit could learn from: give data=, rows whose "
            "beginnings are fitted."
        )
    names = {one.name: one for one in _estimates(portrait, node, level)}
    if parameter is None:
        parameter = max(names.values(), key=lambda one: abs((one.mle or 0.0) - (one.mean or 0.0))).name
    if parameter not in names:
        raise OptionError(f"There is no parameter {parameter!r}; there are {listing(names)}.")
    known = max(model.report_.weight, 1.0) if data is None else float(_length(data))
    chosen = np.geomspace(1, known if data is not None else 10 * known, 24) if sizes is None else np.asarray(sizes)
    if data is not None:
        chosen = np.unique(np.clip(np.round(chosen), 1, known).astype(int))
    intervals = []
    for size in chosen.tolist():
        if data is not None:
            seen = model.clone().fit(_beginning(data, int(size))).portrait()
        elif portrait.rescaled is not None:
            seen = portrait.rescaled(size)
        intervals.append({one.name: one for one in seen.estimates(level, node).intervals}.get(parameter))
    ax = _axes(ax, "mle_vs_map")
    kept = [(size, one) for size, one in zip(chosen.tolist(), intervals, strict=True) if one is not None]
    x = [size for size, _ in kept]
    band = [one.low for _, one in kept], [one.high for _, one in kept]
    ax.fill_between(x, *band, color=ACCENT, alpha=0.15, label=f"{level:.0%} interval")
    for kind, mark, colour, label in _KINDS:
        values = [np.nan if (y := one.points[kind]) is None else y for _, one in kept]
        if not np.isnan(values).all():
            ax.plot(x, values, color=colour, marker=mark, markersize=4, linewidth=1.2, label=label)
    ax.set_xscale("log")
    ax.set_xlabel("rows")
    ax.set_ylabel(parameter)
    ax.legend(fontsize=8)
    return ax


def _length(data: Any) -> int:
    return len(next(iter(data.values()))) if isinstance(data, dict) else len(data)


def _beginning(data: Any, size: int) -> Any:
    return {name: values[:size] for name, values in data.items()} if isinstance(data, dict) else data[:size]


def likelihood_surface(model: Estimator, *, points: int = 41, ax: Axes | None = None) -> Axes:
    """The log-likelihood (sum over rows, less its maximum) around the estimate of a model with two parameters.

    A distribution of two parameters, such as `Normal` or `Gamma`, or a Markov network with two features. The contours
    lie 1, 2, 3 and 4 standard deviations away: at -k²/2.
    """
    likelihood, weight = _two_parameters(model.portrait()), model.report_.weight
    names, centre = likelihood.names, likelihood.estimate
    top = likelihood.value(centre)

    def drop(point: Floats) -> float:
        change = weight * (likelihood.value(point) - top)
        return change if np.isfinite(change) else -np.inf

    grids = [_reach(drop, centre, axis, points) for axis in (0, 1)]
    surface = np.array([[drop(np.array([a, b])) for a in grids[0]] for b in grids[1]])
    ax = _axes(ax, "likelihood_surface")
    # The estimate of a model with a prior is not where the likelihood has its maximum.
    shown = np.clip(surface - max(0.0, float(surface.max())), LOWEST, 0.0)
    ax.contourf(grids[0], grids[1], shown, levels=20, cmap="GnBu_r", alpha=0.8)
    ax.contour(grids[0], grids[1], shown, levels=list(DEVIATIONS), colors=INK, linestyles="solid", linewidths=0.8)
    ax.plot(*centre, marker="*", color=COLD, markersize=12, linestyle="none", label="estimate")
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    ax.legend(fontsize=8)
    return ax


def _reach(drop: Callable[[Floats], float], centre: Floats, axis: int, points: int) -> Floats:
    """A grid along one axis that ends where the log-likelihood has fallen by 10."""
    ends = []
    for sign in (-1.0, 1.0):
        step = max(abs(float(centre[axis])), 1.0) * 1e-3
        while step < 1e6 and drop(_moved(centre, axis, sign * step)) > -10.0:
            step *= 1.5
        while drop(_moved(centre, axis, sign * step)) == -np.inf and step > 1e-12:
            step *= 0.9
        ends.append(float(centre[axis]) + sign * step)
    return np.linspace(ends[0], ends[1], points)


def _moved(point: Floats, axis: int, step: float) -> Floats:
    moved = point.copy()
    moved[axis] += step
    return moved


def _two_parameters(portrait: Portrait) -> Likelihood:
    """The likelihood of a model with two statistics, and so with two parameters."""
    likelihood = portrait.likelihood()
    if likelihood is None or not likelihood.statistics == len(likelihood.names) == 2:
        count = "none" if likelihood is None else likelihood.statistics
        raise OptionError(
            f"A likelihood surface needs a model of two statistics; this {portrait.title} has {count}. Distributions "
            "such as Normal and Gamma have two, and Markov networks with two features."
        )
    return likelihood


def precision(model: Estimator, *, partial: bool = False, ax: Axes | None = None) -> Axes:
    """The precision of a Gaussian graph as a heat map; with `partial` the partial correlations."""
    portrait: Portrait = model.portrait()
    if portrait.precision is None:
        raise NotFittedError(f"This {portrait.title} has no precision_. Fit a GaussianGraph first.")
    matrix = portrait.precision(partial)
    size = len(matrix.rows)
    ax = _axes(ax, "precision", figsize=(1.6 + 0.55 * size, 1.2 + 0.55 * size))
    _heat(ax, matrix.values, matrix.rows, matrix.columns, signed=True)
    ax.set_title("partial correlations" if partial else "precision", fontsize=10)
    return ax


def states(
    model: Estimator, sequence: object, *, truth: Sequence[Hashable] | None = None, ax: Axes | None = None
) -> Axes:
    """The states of one sequence under a hidden Markov model: posteriors as shades, the most probable path as a line.

    Args:
        model: a fitted `HiddenMarkovModel`.
        sequence: one sequence of observations.
        truth: the true states, drawn as dots.
        ax: the Axes to draw on.
    """
    portrait: Portrait = model.portrait()
    if portrait.decoding is None:
        raise OptionError(f"A {portrait.title} has no hidden states to decode; a fitted HiddenMarkovModel has them.")
    decoded = portrait.decoding(sequence)
    names, path = decoded.states, decoded.path
    number = {name: code for code, name in enumerate(names)}
    if truth is not None and len(truth) != len(path):
        raise DataError(f"truth has {len(truth)} states, and the sequence {len(path)} steps. Give one state a step.")
    strange = [] if truth is None else [state for state in truth if state not in number]
    if strange:
        raise UnknownStateError(
            f"truth holds {shortened(strange[0])}, which is no state of the model.{meant(strange[0], names)} Its "
            f"states "
            f"are: {listing(names)}. Rename the labels, as by the dict that match_states gives."
        )
    ax = _axes(ax, "states", figsize=(9.0, 0.8 + 0.5 * len(names)))
    ax.imshow(decoded.probabilities.T, aspect="auto", cmap="GnBu", vmin=0, vmax=1, interpolation="nearest")
    ax.plot(np.arange(len(path)), path, drawstyle="steps-mid", color=COLD, linewidth=1.4, label="most probable path")
    if truth is not None:
        ax.plot(
            [number[state] for state in truth], linestyle="none", marker=".", markersize=3, color=INK, label="truth"
        )
    ax.set_yticks(range(len(names)), [str(name) for name in names])
    ax.set_xlabel("step")
    ax.legend(fontsize=8, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False)
    return ax


def transitions(model: Estimator, *, ax: Axes | None = None) -> Axes:
    """Weights of the transitions of a CRF, or their probabilities in a chain or a hidden Markov model."""
    portrait: Portrait = model.portrait()
    if portrait.transitions is None:
        raise OptionError(f"A fitted {portrait.title} has no transitions; chains, HMMs and chain CRFs have them.")
    matrix = portrait.transitions()
    ax = _axes(ax, "transitions", figsize=(1.6 + 0.7 * len(matrix.columns), 1.2 + 0.55 * len(matrix.rows)))
    _heat(ax, matrix.values, matrix.rows, matrix.columns, signed=matrix.signed)
    ax.set_xlabel("to")
    ax.set_ylabel("from")
    return ax


def top_features(model: Estimator, n: int = 20, *, label: Hashable = None, ax: Axes | None = None) -> Axes:
    """The n weights of features of a chain CRF that are largest in size, as bars; of one label, or of all.

    Args:
        model: a fitted `ChainCRF`.
        n: how many weights.
        label: the label whose weights are shown; all by default.
        ax: the Axes to draw on.
    """
    portrait: Portrait = model.portrait()
    if portrait.top_features is None:
        raise OptionError(f"A {portrait.title} has no weights of features by label; a fitted ChainCRF has them.")
    weights = sorted(portrait.top_features(n, label), key=lambda one: -one.weight)
    names = [str(one.feature) if label is not None else f"{one.feature} → {one.label}" for one in weights]
    ax = _axes(ax, "top_features", figsize=(6.4, 0.9 + 0.26 * len(weights)))
    values = [one.weight for one in weights]
    ax.barh(range(len(weights)), values, color=[ACCENT if value >= 0 else COLD for value in values])
    ax.axvline(0.0, color=SOFT, linewidth=0.8)
    ax.set_yticks(range(len(weights)), names)
    ax.invert_yaxis()
    ax.set_xlabel("weight")
    ax.set_title("largest weights" if label is None else f"largest weights of {label}", fontsize=10)
    return ax


def tornado(
    sensitivity: Sensitivity, n: int = 10, *, level: float = 0.95, odds: float | None = None, ax: Axes | None = None
) -> Axes:
    """How far an answer moves as each parameter of a network goes over its range by itself, the widest bar on top.

    Args:
        sensitivity: what `BayesianNetwork.sensitivity` gives.
        n: how many bars.
        level: of the interval that the rows leave each parameter.
        odds: instead of the interval, a factor by which the odds of each parameter are divided and multiplied.
        ax: the Axes to draw on.
    """
    bars = sensitivity.tornado(n, level=level, odds=odds)
    ax = _axes(ax, "tornado", figsize=(6.4, 1.2 + 0.3 * len(bars)))
    for row, bar in enumerate(bars):
        for end, colour in ((bar.at_low, COLD), (bar.at_high, ACCENT)):
            ax.barh(row, end - sensitivity.value, left=sensitivity.value, color=colour)
    ax.axvline(sensitivity.value, color=INK, linewidth=0.8)
    ax.set_yticks(range(len(bars)), [bar.name for bar in bars])
    ax.invert_yaxis()
    ax.set_xlabel(f"P({sensitivity.target}={sensitivity.state})")
    return ax


def __getattr__(name: str) -> Any:
    """The error for a plot that there is not."""
    raise MissingAttributeError(
        f"suffice.plot has no {name!r}.{meant(name, __all__)} Its plots are: {listing(__all__)}."
    )


# -- shared ----------------------------------------------------------------------------------------------------------


def _axes(ax: Axes | None, name: str, figsize: tuple[float, float] = (6.0, 4.0)) -> Axes:
    """The Axes given, or those of a new figure."""
    pyplot = require("matplotlib.pyplot", extra="viz", purpose=f"plot.{name}")
    return pyplot.subplots(figsize=figsize, layout="constrained")[1] if ax is None else ax


def _heat(ax: Axes, values: Floats, rows: Sequence[object], columns: Sequence[object], *, signed: bool) -> None:
    top = float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) or 1.0
    low, high, colours = (-top, top, "RdBu") if signed else (0.0, max(top, 1.0) if top <= 1 else top, "GnBu")
    ax.imshow(values, aspect="auto", cmap=colours, vmin=low, vmax=high, interpolation="nearest")
    ax.set_xticks(range(len(columns)), [str(column) for column in columns])
    ax.set_yticks(range(len(rows)), [str(row) for row in rows])
    if values.size > MOST_WRITTEN:
        return
    for (row, column), value in np.ndenumerate(values):
        dark = abs(value) > 0.6 * high
        ax.text(column, row, f"{value:.3g}", ha="center", va="center", fontsize=8, color="white" if dark else INK)
