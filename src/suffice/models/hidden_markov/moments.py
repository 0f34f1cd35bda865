"""What a fixed point of EM makes equal: statistics expected given the sequences, and by the parameters.

The E-step finds n(i, j), the expected transitions; at a fixed point they are n(i) transitions[i, j]. So it is with
first states, symbols, and the sufficient statistics of other laws, each times the indicator of its state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.fitting.report import CountedRows, MatchedStatistics, largest_and_even
from suffice.models.hidden_markov.emissions.categorical import CategoricalEmission
from suffice.models.hidden_markov.emissions.columns import ColumnsEmission
from suffice.models.hidden_markov.emissions.contract import UNUSED, Emission
from suffice.models.hidden_markov.emissions.contract import Parameters as Laws
from suffice.models.hidden_markov.emissions.contract import Statistics as Sums
from suffice.models.hidden_markov.emissions.family import FamilyEmission
from suffice.models.hidden_markov.emissions.gaussian import GaussianEmission
from suffice.models.hidden_markov.emissions.mixture import MixtureEmission
from suffice.models.hidden_markov.fitted import HiddenMarkovFitted
from suffice.models.hidden_markov.learning import Learner
from suffice.models.hidden_markov.parameters import Parameters, Statistics

Floats = NDArray[np.float64]

#: Statistics that are told of.
MOST = 4_000


@dataclass(frozen=True, eq=False)
class _Part:
    """Names, and for each what is expected given the sequences, what by the parameters, and what a prior adds."""

    names: list[str]
    seen: Floats
    told: Floats
    pull: Floats

    def chosen(self, places: NDArray[np.intp]) -> _Part:
        return _Part([self.names[at] for at in places], self.seen[places], self.told[places], self.pull[places])


@dataclass(frozen=True, eq=False)
class LearnedFrom:
    """The statistics that a fit makes equal, as they are given the sequences, and the M-step that learns from them.

    `errors` are the standard errors of the parameters, laid out as they are, where they were worked out with the fit.
    """

    statistics: Statistics
    learner: Learner
    errors: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file; the M-step follows from the options."""
        return {"statistics": self.statistics.to_dict(), "errors": self.errors}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], learner: Learner) -> LearnedFrom:
        """Rebuild from plain data."""
        return cls(Statistics.from_dict(plain["statistics"]), learner, plain["errors"])

    def matched(self, fitted: HiddenMarkovFitted) -> MatchedStatistics | None:
        """Shares of steps, and of transitions and first states among themselves; what is fixed is left out."""
        learner = self.learner
        parts = list(self._parts(fitted.parameters, fitted.states))
        if not parts:
            return None
        total = sum(len(part.names) for part in parts)
        parts = [part.chosen(largest_and_even(part.seen - part.told, MOST // len(parts))) for part in parts]
        seen, told, pull = (
            np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(_Part) if one.name != "names"
        )
        names = tuple(name for part in parts for name in part.names)
        about = (
            "Statistics expected given the sequences (the E-step), and by the parameters: a fixed point of EM matches "
            "them."
            if fitted.hidden
            else "Counts of the known states and what they emit, and as the parameters make them of their totals."
        )
        if learner.stationary:
            about += " A stationary first state moves the transitions a little off the line."
        if _conjugate(learner.emission):
            about += " The conjugate prior of the laws moves their statistics off the line."
        return MatchedStatistics(
            names, seen, told, pull if pull.any() else None, about=about, total=total if total > len(names) else None
        )

    def _parts(self, values: Parameters, states: Sequence[object]) -> Iterator[_Part]:
        learner, sums = self.learner, self.statistics
        if "initial" not in learner.fixed and not learner.stationary:
            names = [f"first {state}" for state in states]
            yield from _rows([names], sums.initial[None], values.initial[None], learner.first[None])
        if "transitions" not in learner.fixed:
            named = [[f"{a} → {b}" for b in states] for a in states]
            yield from _rows(named, sums.transitions, values.transitions, learner.pairs)
        if "emissions" not in learner.fixed:
            gathered = learner.emission.gathered(sums.emission, learner.tied)
            yield from _of_laws(learner.emission, gathered, values.emission, [str(state) for state in states])

    def rows_with_prior(self, states: Sequence[object], more: float, *, hidden: bool) -> list[CountedRows]:
        """First states, transitions and symbols that have pseudo-counts; `more` makes them the Dirichlet prior."""
        sums, learner = self.statistics, self.learner
        parts = [
            ("initial", [f"first {state}" for state in states], sums.initial[None], learner.first[None]),
            ("transitions", [f"{a} → {b}" for a in states for b in states], sums.transitions, learner.pairs),
        ]
        emission = learner.emission
        if isinstance(emission, CategoricalEmission):
            counts = emission.gathered(sums.emission, learner.tied)["counts"]
            parts.append(("emissions", [f"{a}: {b}" for a in states for b in emission.states], counts, emission.pseudo))
        return [
            CountedRows(tuple(names), counts, pseudo + more, hidden)
            for part, names, counts, pseudo in parts
            if part not in learner.fixed and pseudo.any()
        ]


def _rows(names: list[list[str]], counts: Floats, rows: Floats, pseudo: Floats) -> Iterator[_Part]:
    """Counts (K, M) and n(row) times its probabilities, in shares of all counts; a prior adds a - sum(a) p."""
    mass = counts.sum(axis=1, keepdims=True)
    kept = np.flatnonzero((mass[:, 0] > UNUSED) & np.isfinite(rows).all(axis=1))
    total = float(mass.sum())
    if not len(kept):
        return
    pull = pseudo - pseudo.sum(axis=1, keepdims=True) * rows
    flat = [((part[kept]) / total).ravel() for part in (counts, mass * rows, pull)]
    yield _Part([name for at in kept for name in names[at]], *flat)


def _of_laws(emission: Emission, sums: Sums, laws: Laws, names: list[str]) -> Iterator[_Part]:
    if isinstance(emission, CategoricalEmission):
        named = [[f"{name}: {symbol}" for symbol in emission.states] for name in names]
        yield from _rows(named, sums["counts"], laws["probabilities"], emission.pseudo)
    elif isinstance(emission, GaussianEmission):
        yield from _of_normal(emission, sums, laws, names)
    elif isinstance(emission, FamilyEmission):
        yield from _of_family(emission, sums, laws, names)
    elif isinstance(emission, MixtureEmission):
        m = emission.base.size // emission.size
        named = [[f"{name}.{at}" for at in range(m)] for name in names]
        yield from _rows(named, sums["shares"], laws["weights"], emission.pseudo)
        inner = [
            {key: value for key, value in part.items() if key not in ("weights", "shares")} for part in (sums, laws)
        ]
        yield from _of_laws(emission.base, inner[0], inner[1], [name for row in named for name in row])
    elif isinstance(emission, ColumnsEmission):
        titles = emission.columns or range(len(emission.parts))
        rows = zip(titles, emission.parts, emission._split(sums), emission._split(laws), strict=True)
        for title, part, own, given in rows:
            yield from _of_laws(part, own, given, [f"{name}, {title}" for name in names])


def _of_normal(emission: GaussianEmission, sums: Sums, laws: Laws, names: list[str]) -> Iterator[_Part]:
    """First and second moments about the centre of the columns and in their units, times the indicator of a state."""
    d, weight = len(emission.centre), np.asarray(sums["weight"])
    total = float(weight.sum())
    if not total > UNUSED:
        return
    share, away = weight / total, (laws["means"] - emission.centre) / emission.scale
    units = np.outer(emission.scale, emission.scale)
    seen, told = sums["sums"] / emission.scale / total, share[:, None] * away
    square = sums["products"] / units / total
    own = share[:, None, None] * (laws["covariances"] / units + away[:, :, None] * away[:, None, :])
    titles = [str(title) for title in emission.columns or ("x" if d == 1 else f"x{at}" for at in range(d))]
    named = [f"{name}: {title}" for name in names for title in titles]
    yield _Part(named, seen.ravel(), told.ravel(), np.zeros(seen.size))
    if emission.shape == "spherical":
        both = [np.trace(part * units, axis1=1, axis2=2) / np.mean(emission.scale**2) for part in (square, own)]
        yield _Part([f"{name}: sum of squares" for name in names], both[0], both[1], np.zeros(len(names)))
        return
    if emission.shape == "tied":
        square, own, names = square.sum(axis=0, keepdims=True), own.sum(axis=0, keepdims=True), ["all states"]
    at = np.diag_indices(d) if emission.shape == "diagonal" else np.triu_indices(d)
    pairs = [f"{titles[i]}²" if i == j else f"{titles[i]}·{titles[j]}" for i, j in zip(*at, strict=True)]
    named = [f"{name}: {pair}" for name in names for pair in pairs]
    yield _Part(named, square[:, at[0], at[1]].ravel(), own[:, at[0], at[1]].ravel(), np.zeros(len(named)))


def _of_family(emission: FamilyEmission, sums: Sums, laws: Laws, names: list[str]) -> Iterator[_Part]:
    """T(x) of each law, times the indicator of its state."""
    weight = np.asarray(sums["weight"])
    total = float(weight.sum())
    for at, (name, law) in enumerate(zip(names, emission.laws(laws), strict=True)):
        if not weight[at] > UNUSED:
            continue
        seen = sums["sums"][at] / weight[at] if "sums" in sums else law._observed(sums["summaries"][at])
        told = np.asarray(law.expected_statistics())
        whole = (
            law.statistic_names if len(law.statistic_names) == len(seen) else [f"T{k + 1}" for k in range(len(seen))]
        )
        share = weight[at] / total
        yield _Part([f"{name}: {one}" for one in whole], share * seen, share * told, np.zeros(len(seen)))


def _conjugate(emission: Emission) -> bool:
    """Whether some law has a prior that is not one of pseudo-counts."""
    if isinstance(emission, ColumnsEmission):
        return any(_conjugate(part) for part in emission.parts)
    if isinstance(emission, MixtureEmission):
        return _conjugate(emission.base)
    if isinstance(emission, FamilyEmission):
        return emission._options.get("prior") is not None
    return isinstance(emission, GaussianEmission) and emission.prior is not None
