"""What there is to see of a model: the one thing that pages, plots, notebooks and the command read of it.

A model draws its own portrait. What is quick to know stands in it; what takes work is a function that is called when
someone looks, so that the portrait of a model of any size costs nothing. A part that a model does not have is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.errors import OptionError, SufficeError
from suffice.fitting.report import CountedRows, MatchedStatistics
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.fitting.inference import Inference

T = TypeVar("T")
#: From the arguments of a fit by name and a generator to those of another fit, to rows drawn from a model.
Redraw = Callable[[Mapping[str, Any], np.random.Generator], Mapping[str, Any]]
#: Shares are coloured from 0 to 1, factors to both sides of 1, signed numbers to both sides of 0, others not at all.
Colours = Literal["share", "factor", "signed", "none"]

#: What regressions call the axis of their coefficients.
COEFFICIENT = "coefficient"
#: Rows of a table that are shown, and cells up to which it is made.
MOST_ROWS, MOST_CELLS = 64, 20_000


# -- the parts of a portrait -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Graph:
    """Nodes, and the edges between them: from parent to child where it is `directed`."""

    nodes: tuple[Hashable, ...]
    edges: tuple[tuple[Hashable, Hashable], ...]
    directed: bool = False


@dataclass(frozen=True)
class VariableDistribution:
    """The distribution of one variable: probabilities of its states, or a mixture of normal ones.

    `normals` are the components of a real variable as (weight, mean, standard deviation); the weights add up to one.
    """

    name: Hashable
    states: tuple[Hashable, ...] = ()
    probabilities: tuple[float, ...] = ()
    normals: tuple[tuple[float, float, float], ...] = ()

    @classmethod
    def normal(cls, name: Hashable, mean: float, deviation: float) -> VariableDistribution:
        """One normal distribution."""
        return cls(name, normals=((1.0, float(mean), float(deviation)),))

    @property
    def mean(self) -> float:
        """The mean of the mixture."""
        return sum(weight * mean for weight, mean, _ in self.normals)

    @property
    def deviation(self) -> float:
        """The standard deviation of the mixture: the spread within its components, and that of their means."""
        centre = self.mean
        return math.sqrt(sum(weight * (spread**2 + (mean - centre) ** 2) for weight, mean, spread in self.normals))


@dataclass(frozen=True, eq=False)
class Grid:
    """A table to be shown: `axes` name the columns with labels, `head` the others; `left_out` rows are not shown.

    `over` is written once above the head. `plain` are columns without colours.
    """

    title: str
    axes: tuple[str, ...]
    head: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    values: Floats
    colours: Colours
    left_out: int = 0
    over: str = ""
    plain: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class NamedMatrix:
    """Numbers by row and column, all of them."""

    rows: tuple[Hashable, ...]
    columns: tuple[Hashable, ...]
    values: Floats
    signed: bool = False


@dataclass(frozen=True, eq=False)
class Factors:
    """Tables over some variables whose product is the joint distribution up to a constant.

    `states` are those of the nodes; factors may have further variables of their own.
    """

    states: Mapping[Hashable, tuple[Hashable, ...]]
    tables: tuple[tuple[tuple[Hashable, ...], Floats], ...]

    @property
    def cards(self) -> dict[Hashable, int]:
        """How many states each variable has, the nodes first."""
        cards = {name: len(states) for name, states in self.states.items()}
        for scope, table in self.tables:
            for name, size in zip(scope, table.shape, strict=True):
                cards.setdefault(name, size)
        return cards


@dataclass(frozen=True)
class Interval:
    """A parameter with its estimates; those that do not exist are None."""

    name: str
    low: float
    high: float
    mle: float | None
    map: float | None
    mean: float | None

    @property
    def points(self) -> dict[str, float | None]:
        """The estimates by kind."""
        return {"mean": self.mean, "map": self.map, "mle": self.mle}


@dataclass(frozen=True)
class Estimates:
    """Parameters with their intervals, and what a reader of them has to know."""

    intervals: tuple[Interval, ...] = ()
    note: str = ""


@dataclass(frozen=True, eq=False)
class Likelihood:
    """The mean log-likelihood of a row, up to a constant, as a function of the parameters (k,).

    `value` is -inf where there is none. `statistics` is the number of those that it depends on.
    """

    names: tuple[str, ...]
    estimate: Floats
    value: Callable[[Floats], float]
    statistics: int


@dataclass(frozen=True, eq=False)
class DecodedStates:
    """Hidden states of a sequence of n steps: the most probable path, by places in `states`, and P(state) (n, K)."""

    states: tuple[Hashable, ...]
    path: tuple[int, ...]
    probabilities: Floats


@dataclass(frozen=True)
class Weight:
    """The weight of a feature for a label."""

    feature: Any
    label: Any
    weight: float


def _none(*_: object) -> None:
    return None


def _nothing() -> tuple[()]:
    return ()


def _no_estimates(level: float = 0.95, node: Hashable = None) -> Estimates:
    return Estimates()


@dataclass(frozen=True, eq=False)
class Portrait:
    """What there is to see of a model; of one that is not fitted, its title, its kind and its graph.

    Attributes:
        title: its class, in sentences.
        kind: the word by which the command knows models of its kind.
        graph: its structure.
        facts: what else it is about, by name.
        columns: the columns that it describes, where they have names.
        notes: what was noted when it was read from a file.
        n_params: the number of free parameters.
        parameters: all of them, for programs; `text` is the same for people, shortened.
        variables: the distribution of each variable; raises an error of the library where there is no room for it.
        tables: what makes each table; it may raise, or give None for a table that is too large.
        table: one table by the name that the model knows it by.
        factors: of a discrete network; None where a variable has no states.
        matched: what the fit makes equal, observed and expected.
        estimates: maximum likelihood, MAP and posterior mean with intervals of a level, of all nodes or of one.
        inference: what the fit says about each parameter: what summaries, intervals and tests read.
        inference_with: the same from the rows of the fit, where that needs them again.
        redraw: rows drawn from the fit, as the arguments of `fit` by name: made of those of the fit and a generator.
        parted: rows in one table as a list of series, each of which is drawn as a whole.
        again: an unfitted copy of the model whose fit begins where this one ended.
        likelihood: as a function of the parameters.
        rescaled: the portrait of a fit to so many rows with the same frequencies.
        transitions: from one state or label to the next: probabilities, or weights.
        precision: the precision matrix of a Gaussian graph, or with True the partial correlations.
        decoding: the hidden states of a sequence.
        top_features: the weights that are largest in size, so many of them, of one label or of all.
    """

    title: str
    kind: str = ""
    graph: Graph | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    columns: tuple[Hashable, ...] = ()
    notes: tuple[str, ...] = ()
    n_params: Callable[[], int | None] = _none
    parameters: Callable[[], Any] = dict
    text: Callable[[], str] = str
    variables: Callable[[], Sequence[VariableDistribution]] = _nothing
    tables: Sequence[Callable[[], Grid | None]] = ()
    table: Callable[[Any], Any] | None = None
    factors: Callable[[], Factors | None] = _none
    matched: Callable[[], MatchedStatistics | None] = _none
    estimates: Callable[[float, Hashable], Estimates] = _no_estimates
    inference: Callable[[], Inference | None] = _none
    inference_with: Callable[[Mapping[str, Any]], Inference] | None = None
    redraw: Redraw | None = None
    parted: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    again: Callable[[], Any] | None = None
    likelihood: Callable[[], Likelihood | None] = _none
    rescaled: Callable[[float], Portrait] | None = None
    transitions: Callable[[], NamedMatrix] | None = None
    precision: Callable[[bool], NamedMatrix] | None = None
    decoding: Callable[[Any], DecodedStates] | None = None
    top_features: Callable[[int, Any], Sequence[Weight]] | None = None


# -- what models draw with -------------------------------------------------------------------------------------------


def or_none(make: Callable[[], T]) -> T | None:
    """What is asked for, or None where the library says that there is none."""
    try:
        return make()
    except SufficeError:
        return None


def refitted(model: Any, **options: object) -> Any:
    """A copy of an estimator with other options, fitted to the same statistics; None where that has no answer."""
    return or_none(lambda: model.clone().set_params(**options).fit(model.statistics_))


def rescaled_by(model: Any) -> Callable[[float], Portrait]:
    """What gives the portrait of an estimator that is fitted to so many rows with the same frequencies."""

    def rescaled(size: float) -> Portrait:
        refitted: Portrait = model.clone().fit(model.statistics_ * (size / model.statistics_.weight)).portrait()
        return refitted

    return rescaled


def redrawn_rows(model: Any, given: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """As many rows as were learned, drawn from a model of rows: those of its fit are not needed."""
    if given:
        raise OptionError("A parametric bootstrap draws all rows from the fit; give none, or kind='case'.")
    weight = model.report_.weight
    if weight != round(weight):
        raise OptionError(f"A parametric bootstrap draws whole rows; the fit has learned {weight:g}. Give kind='case'.")
    return {"data": model.sample(round(weight), random_state=rng)}


def learned_portrait(model: Any) -> Portrait:
    """The portrait of a fitted value, with what the statistics that its estimator learned from show besides."""
    drawn: Portrait = model.fitted_.portrait()
    return replace(drawn, matched=model.matched_statistics, rescaled=rescaled_by(model))


def table_grid(table: Table, title: str, colours: Colours) -> Grid:
    """A table with its last variable along the columns."""
    *outer, last = table.domain.variables
    rows = table.values.reshape(-1, last.card)
    cells = [codes for codes, _ in zip(np.ndindex(*(v.card for v in outer)), range(MOST_ROWS), strict=False)]
    labels = tuple(tuple(str(v.states[code]) for v, code in zip(outer, codes, strict=True)) for codes in cells)
    head, axes = tuple(map(str, last.states)), tuple(str(variable.name) for variable in outer)
    over = "" if last.name == COEFFICIENT else str(last.name)
    return Grid(title, axes, head, labels, rows[:MOST_ROWS], colours, max(0, len(rows) - MOST_ROWS), over)


def matrix_grid(
    title: str,
    rows: Sequence[object],
    columns: Sequence[object],
    values: ArrayLike,
    colours: Colours,
    plain: tuple[int, ...] = (),
) -> Grid:
    """Numbers (rows, columns) under the names of both."""
    numbers = np.asarray(values, dtype=np.float64).reshape(len(rows), len(columns))
    labels = tuple((str(row),) for row in rows[:MOST_ROWS])
    left_out = max(0, len(rows) - MOST_ROWS)
    return Grid(title, ("",), tuple(map(str, columns)), labels, numbers[:MOST_ROWS], colours, left_out, plain=plain)


def dirichlet_intervals(rows: CountedRows, level: float) -> Iterator[Interval]:
    """Dirichlet rows: the cells of each have Beta distributions; a row has a mode where no parameter is below 1."""
    from scipy.special import betaincinv

    alpha = rows.counts + rows.alpha
    total, seen = alpha.sum(axis=1, keepdims=True), rows.counts.sum(axis=1, keepdims=True)
    ends = [betaincinv(alpha, total - alpha, share) for share in (0.5 - 0.5 * level, 0.5 + 0.5 * level)]
    excess = np.maximum(total - alpha.shape[1], 0.0)
    unique = (alpha >= 1.0).all(axis=1, keepdims=True) & (excess > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        likelihood = np.where((seen > 0) & (not rows.expected), rows.counts / seen, np.nan)
        mode = np.where(unique, (alpha - 1.0) / excess, np.nan)
    parts = (*ends, likelihood, mode, alpha / total)
    for name, low, high, *points in zip(rows.names, *(np.ravel(part).tolist() for part in parts), strict=True):
        yield Interval(name, low, high, *map(finite, points))


def counted_estimates(rows: Sequence[CountedRows], level: float, *, prior: bool) -> Estimates:
    """Of rows of a chain or of a hidden Markov model with their Dirichlet priors."""
    intervals = tuple(one for part in rows for one in dirichlet_intervals(part, level))
    if not prior:
        return Estimates(intervals)
    if not intervals:
        return Estimates(
            note="The prior acts on distributions whose posterior is not compared here, or through a mixture of rows."
        )
    if any(one.mle is not None for one in intervals):
        return Estimates(intervals)
    return Estimates(
        intervals,
        "Given the counts that the E-step expects: the intervals leave out that states are hidden, so they are a "
        "lower bound. Maximum likelihood needs a fit of its own, with prior=None; standard_errors_of(sequences) gives "
        "the errors of the observed information.",
    )


def long_run(transitions: Floats) -> Floats | None:
    """The share of each state in the long run, of transitions (K, K); None where some of them are not defined."""
    if not np.isfinite(transitions).all():
        return None
    size = len(transitions)
    # The least squares solution is a distribution also where several are stationary.
    system = np.vstack([transitions.T - np.eye(size), np.ones(size)])
    shares = np.linalg.lstsq(system, np.append(np.zeros(size), 1.0), rcond=None)[0]
    return np.asarray(np.clip(shares, 0.0, 1.0))


def normal_reach(level: float) -> float:
    """How many standard errors to both sides hold a share `level` of a normal distribution."""
    from scipy.special import ndtri

    return float(ndtri(0.5 + 0.5 * level))


def finite(value: float) -> float | None:
    """The number, or None where it is none."""
    return float(value) if np.isfinite(value) else None
