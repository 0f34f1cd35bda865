"""Any exponential family of one column, or of proportions, through its sufficient statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.errors import DataError, EstimateError, ExistenceWarning, FloorWarning, OptionError, Remark
from suffice.families.base import Distribution
from suffice.families.exponential_family import ExponentialFamily
from suffice.families.fitted import FamilyFitted
from suffice.families.member import FamilyMember
from suffice.families.members import Members, most_likely_row, row_of
from suffice.families.task import FamilyProblem
from suffice.families.vectors import VectorFamily
from suffice.fitting.control import Control
from suffice.fitting.summaries import SummaryData
from suffice.fitting.summarizing import summarize
from suffice.models.hidden_markov.emissions.contract import (
    UNUSED,
    Data,
    Emission,
    Parameters,
    Statistics,
    never_learned,
)
from suffice.models.hidden_markov.emissions.moments import MatchedPart, without_pull
from suffice.models.hidden_markov.emissions.reals import StepError, as_reals, called, in_range
from suffice.models.hidden_markov.emissions.standing import Standing
from suffice.statistics import Summary, empty_summary

COLUMN = "observation"
#: How parameters without a closed form are found in an M-step.
CONTROL = Control(max_iter=200, tolerance=1e-11)


@dataclass(frozen=True, eq=False)
class FamilyEmission(Emission):
    """Members of the family of `distribution`, which is unfitted and may have a prior or known parameters.

    Without either, one matrix product gives the sums of T(x) of all states and another all log densities. Else the
    summaries that the family itself learns from are kept, one for each state. `unit` (k,) are the parameters of the
    distribution of all steps; with `floor` they say how narrow that of a state may become.
    """

    size: int
    distribution: ExponentialFamily
    unit: Floats
    floor: float = 0.0
    title: Any = None

    kinds: ClassVar[Mapping[str, str]] = {"parameters": "real"}

    @cached_property
    def _family(self) -> FamilyMember:
        family: FamilyMember = self.distribution._family
        return family

    @cached_property
    def _prior(self) -> Any:
        return self.distribution.get_params(deep=False).get("prior")

    @cached_property
    def _learns(self) -> bool:
        """Whether every parameter is learned, by maximum likelihood."""
        return self._prior is None and not set(self._family.parameter_names) & set(self._family.known)

    @property
    def _matches(self) -> bool:
        """Whether the sums of T are enough."""
        return self._family.by_mean and self._learns

    @cached_property
    def _most(self) -> float:
        """The largest concentration of a state, from the distribution of all steps; a prior holds it up by itself."""
        names = self._family.parameter_names
        spread_learned = names[-1] not in self._family.known
        if self._prior is not None or not (self._matches or (not self._family.by_mean and spread_learned)):
            return np.inf
        whole = self._members(self.unit[None]).concentration[0]
        return float(whole / self.floor) if self.floor > 0 and whole > 0 else np.inf

    def _members(self, rows: Floats) -> Members:
        return Members(self._family, rows)

    # -- data --------------------------------------------------------------------------------------------------------

    def read(self, columns: Sequence[NDArray[Any]]) -> Data:
        """Values (steps,) or (steps, d), NaN for a missing one; then log h and T (steps, k) where they are used."""
        values = self._values(columns)
        seen = _seen(values)
        # Log h is -inf outside of the support.
        base = np.zeros(len(values))
        base[seen] = self._supported(values[seen])
        self._refuse(values, np.isneginf(base))
        if not self._matches:
            return (values,)
        statistics = np.zeros((len(values), self._members(self.unit[None]).natural.shape[1]))
        statistics[seen] = self._family.sufficient_statistics(values[seen])
        self._refuse(values, np.logical_not(np.isfinite(statistics).all(axis=1)))
        return values, base, statistics

    def _values(self, columns: Sequence[NDArray[Any]]) -> Floats:
        if not isinstance(self.distribution, VectorFamily):
            (column,) = columns
            return in_range(as_reals(column, self.title), self.title, counts=self._counts)
        if len(columns) != len(self.unit):
            raise DataError(
                f"Steps hold {len(columns)} observations; expected {len(self.unit)}, one for each column of the "
                f"distributions."
            )
        return read_proportions(columns, self._family.known.get("columns"))

    @property
    def _counts(self) -> bool:
        return self._family.variable(COLUMN).kind == "count"

    def _refuse(self, values: Floats, wrong: NDArray[np.bool_]) -> None:
        if wrong.any():
            step = int(np.argmax(wrong))
            raise StepError(
                step,
                f"{called(self.title)}: {values[step].tolist()!r}",
                f" is outside of the support of {self._family.title}, or on its edge"
                f"{'; expected a count' if self._counts else ''}. Leave it out, give it as a missing value, or choose "
                "another distribution.",
            )

    def _supported(self, values: Floats) -> Floats:
        try:
            with np.errstate(all="ignore"):
                base = self._family.log_base_measure(values)
        except (AttributeError, ValueError):  # One that depends on a parameter that is learned.
            return np.zeros(len(values))
        return np.where(np.isnan(base), -np.inf, base)

    @property
    def known(self) -> Mapping[str, tuple[int, ...]]:
        """Parameters that were given."""
        names = enumerate(self._family.parameter_names)
        return {"parameters": tuple(column for column, name in names if name in self._family.known)}

    @property
    def width(self) -> int:
        """One, or as many as there are proportions."""
        return len(self.unit) if isinstance(self.distribution, VectorFamily) else 1

    @property
    def n_arrays(self) -> int:
        """Values, and log h and T where they are used."""
        return 3 if self._matches else 1

    # -- where EM begins ---------------------------------------------------------------------------------------------

    def points(self, data: Data) -> Floats:
        """As they are, or on the circle."""
        return self._family.points(np.asarray(data[0], dtype=np.float64))

    def totals(self, data: Data, weights: Floats) -> Statistics:
        """The statistics of one distribution of all steps, in the first state."""
        shares = np.zeros((len(weights), self.size))
        shares[:, 0] = weights
        return self.statistics(data, shares, {})

    def start(self, totals: Statistics, rng: np.random.Generator) -> Parameters:
        """The distribution of all steps."""
        alike = {name: np.repeat(sums[:1], self.size, axis=0) for name, sums in totals.items()}
        return self.maximise(alike, self.before(totals, rng))

    def before(self, totals: Statistics, rng: np.random.Generator) -> Parameters:
        """The unit."""
        return {"parameters": np.stack([self.unit] * self.size)}

    # -- expectation -------------------------------------------------------------------------------------------------

    def log_densities(self, data: Data, parameters: Parameters) -> Floats:
        """Of all states at once where T is used, else one by one; 0 for a missing value."""
        values, members = data[0], self._members(parameters["parameters"])
        seen = _seen(values)
        logs = np.zeros((len(values), self.size))
        if self._matches:
            logs[seen] = members.log_prob(values[seen], data[2][seen], data[1][seen])
        else:
            logs[seen] = np.stack([member.log_prob(values[seen]) for member in members.each], axis=1)
        return logs

    def statistics(self, data: Data, weights: Floats, parameters: Parameters) -> Statistics:
        """Weight (size,), sums of T (size, k) and of log h (size,), or one summary for each state."""
        seen = _seen(data[0])
        weight = weights[seen].sum(axis=0)
        if self._matches:
            return {"weight": weight, "sums": weights.T @ data[2], "base": weights.T @ data[1]}
        summaries = np.empty(self.size, dtype=object)
        for state in range(self.size):
            some = seen & (weights[:, state] > 0)
            column = {COLUMN: data[0][some]}
            summaries[state] = (
                summarize(self.distribution, column, sample_weight=weights[some, state])
                if some.any()
                else self._nothing()
            )
        return {"weight": weight, "summaries": summaries}

    def _nothing(self) -> Summary:
        domain = Domain([self._family.variable(COLUMN)])
        return empty_summary(domain, self._family.ask(domain))

    # -- maximisation ------------------------------------------------------------------------------------------------

    def expected(self, statistics: Statistics, parameters: Parameters) -> Floats:
        """Eta . sum T - N A + sum log h, or what the family makes of its summaries."""
        members = self._members(parameters["parameters"])
        if self._matches:
            return members.log_likelihood(statistics["weight"], statistics["sums"], statistics["base"])
        pairs = zip(members.each, statistics["summaries"], strict=True)
        return np.array([member.log_likelihood(summary) if summary.weight > 0 else 0.0 for member, summary in pairs])

    def maximise(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        """Each by its own maximum likelihood or conjugate posterior, no narrower than the floor lets it be."""
        before = parameters["parameters"]
        rows = [self._learned(statistics, state, row) for state, row in enumerate(before)]
        return {"parameters": np.array([old if new is None else new for new, old in zip(rows, before, strict=True)])}

    def _learned(self, statistics: Statistics, state: int, before: Floats) -> Floats | None:
        """The parameters of one state; None where its statistics determine none."""
        weight = statistics["weight"][state]
        if not weight > UNUSED and self._prior is None:
            return None
        if self._matches:
            return most_likely_row(self._family, statistics["sums"][state] / weight, self._most)
        try:
            row = row_of(self._family, self._fit(statistics["summaries"][state]).parameters)
        except EstimateError:
            if not np.isfinite(self._most):
                return None
            known = self._family.known.get("mean")  # A normal distribution of known mean whose steps all lie there.
            row = np.array([before[0] if known is None else float(known), 0.0])
        if np.isfinite(self._most):
            row[1] = max(row[1], 1.0 / self._most)
        return row

    def _problem(self, summary: Summary) -> FamilyProblem:
        return self.distribution._task().problem(SummaryData(summary), None)

    def _fit(self, summary: Summary) -> FamilyFitted:
        return self._problem(summary).solve(CONTROL).fitted

    def log_prior(self, parameters: Parameters) -> Floats:
        """Density of the family's own prior."""
        if not isinstance(self._prior, Distribution):
            return np.zeros(self.size)
        members = self._members(parameters["parameters"]).each
        return np.array([float(self._prior.log_prob(member.prior_point())) for member in members])

    @property
    def without_prior(self) -> tuple[str, ...]:
        """The family, unless it has a conjugate prior."""
        return () if self._prior is not None else (self._family.title,)

    def notes(self, parameters: Parameters, statistics: Statistics, names: Sequence[str]) -> tuple[str, ...]:
        """Which states lie on the floor, and which could not be learned."""
        family, lines = self._family.title, []
        for state, (name, row) in enumerate(zip(names, parameters["parameters"], strict=True)):
            if statistics["weight"][state] > UNUSED and self._learned(statistics, state, row) is None:
                why = "no distribution fits its steps best" if self._prior is None else "its posterior has no mode"
                unlearned = f"the {family} distribution of {name} was left as it was: {why}. Use fewer states or a "
                lines.append(Remark(f"{unlearned}stronger prior", ExistenceWarning))
            elif self._is_narrow(row):
                held = f"the {family} distribution of {name} is held at its floor, variance_floor={self.floor:g} of "
                lines.append(Remark(f"{held}the spread of the distribution of all steps", FloorWarning))
        return tuple(lines)

    def _is_narrow(self, row: Floats) -> bool:
        """Whether a state lies on the floor."""
        return bool(self._members(row[None]).concentration[0] >= self._most * (1 - 1e-6))

    def standing(self, statistics: Statistics, parameters: Parameters, names: Sequence[str]) -> Standing:
        """State by state: by its own certificate, or by the slope in its natural parameters."""
        states = np.flatnonzero(statistics["weight"] > UNUSED).tolist()
        rows = parameters["parameters"]
        return sum((self._standing_of(statistics, state, rows[state], names[state]) for state in states), Standing())

    def _standing_of(self, statistics: Statistics, state: int, row: Floats, name: str) -> Standing:
        narrow = self.collapsed({"parameters": row[None]}, [name])
        if narrow:
            return Standing(narrow, lost=None)
        family = self._family.title
        if not self._matches:
            problem = self._problem(statistics["summaries"][state])
            try:
                certificate = problem.judge(problem.solve(CONTROL).fitted).certificate
            except EstimateError:
                return Standing(decided=False, lost=None)
            edge = tuple(f"{family} distribution of {name}: {text}" for text in certificate.directions)
            return Standing(edge, certificate.exists is not None, None)
        weight = float(statistics["weight"][state])
        lost = self._members(row[None]).decrement(0, statistics["sums"][state] / weight)
        if lost is None:
            return Standing((f"{family} distribution of {name} -> the edge of its family",), lost=None)
        return Standing(lost=weight * lost, bound=False)

    def collapsed(self, parameters: Parameters, names: Sequence[str]) -> tuple[str, ...]:
        """States held at their floor."""
        column = "the observations" if self.title is None else repr(self.title)
        rows = zip(parameters["parameters"], names, strict=True)
        return tuple(f"spread of {column} in {name} -> 0" for row, name in rows if self._is_narrow(row))

    @property
    def coercive(self) -> bool:
        """As the family says of its prior."""
        return isinstance(self._prior, Distribution) and self._family.is_coercive(self._prior)

    def moments(self, statistics: Statistics, parameters: Parameters, names: Sequence[str]) -> Iterator[MatchedPart]:
        """T(x) of each state, times its indicator."""
        weight = np.asarray(statistics["weight"])
        total = float(weight.sum())
        for state, member in enumerate(self._members(parameters["parameters"]).each):
            if not weight[state] > UNUSED:
                continue
            if "sums" in statistics:
                seen = statistics["sums"][state] / weight[state]
            else:
                seen = member.observed(statistics["summaries"][state])
            titles = self._family.statistic_names
            if len(titles) != len(seen):
                titles = tuple(f"T{k + 1}" for k in range(len(seen)))
            share, expected = weight[state] / total, np.asarray(member.expected_statistics())
            yield without_pull([f"{names[state]}: {one}" for one in titles], share * seen, share * expected)

    @property
    def has_conjugate_prior(self) -> bool:
        """Where the family has one."""
        return self._prior is not None

    # -- further steps -----------------------------------------------------------------------------------------------

    def left(self, rest: Statistics, before: Statistics) -> Statistics:
        """Weights of at least 0, and means of T that some values have; summaries see to it themselves."""
        left = super().left(rest, before)
        for state, weight in enumerate(left["weight"] if self._matches else ()):
            if weight == 0:
                left["sums"][state], left["base"][state] = 0.0, 0.0
                continue
            mean = left["sums"][state] / weight
            if not (np.isfinite(mean).all() and self._family.is_possible(mean)):
                raise never_learned("a mean that no observations have")
        return left

    def rescaled(self, statistics: Statistics) -> Self:
        """The units of all steps."""
        whole = {name: sums.sum(axis=0, keepdims=True) for name, sums in statistics.items()}
        row = replace(self, size=1, floor=0.0)._learned(whole, 0, self.unit)
        return self if row is None else replace(self, unit=as_unit(row))

    # -- parameters as one vector ------------------------------------------------------------------------------------

    def vector(self, parameters: Parameters) -> Floats:
        """In units of the distribution of all steps; of large ones the logarithm, so that changes are shares."""
        scaled = parameters["parameters"] / np.abs(self.unit)
        return np.asarray((np.sign(scaled) * np.log1p(np.abs(scaled))).ravel())

    def at(self, vector: Floats, like: Parameters) -> Parameters:
        """Back from the units."""
        rows = vector.reshape(self.size, len(self.unit))
        with np.errstate(over="ignore"):  # Of a point that was extrapolated too far; `inside` refuses it.
            return {"parameters": np.sign(rows) * np.expm1(np.abs(rows)) * np.abs(self.unit)}

    def inside(self, parameters: Parameters) -> bool:
        """Whether the family has all these parameters, and none is narrower than the floor."""
        try:
            widest = self._members(parameters["parameters"]).concentration.max()
        except OptionError:
            return False
        return bool(widest <= self._most * (1 + 1e-9))

    @property
    def n_free(self) -> NDArray[np.int64]:
        """Those that are not known."""
        free = len(self.unit) if isinstance(self.distribution, VectorFamily) else self._family.n_params
        return np.full(self.size, free, np.int64)

    # -- distributions -----------------------------------------------------------------------------------------------

    def distributions(self, parameters: Parameters) -> list[Any]:
        """The distributions, given."""
        return [
            self.distribution._with(dict(member.parameters_))
            for member in self._members(parameters["parameters"].copy()).each
        ]

    def parameters_of(self, distributions: Any) -> Parameters:
        """From distributions, or from the parameters of each state in the order of their names."""
        if (
            isinstance(distributions, str)
            or not isinstance(distributions, Sequence | np.ndarray)
            or len(distributions) != self.size
        ):
            raise OptionError(
                f"emissions is {distributions!r}; expected {self.size} distributions, one for each state."
            )
        wrong = OptionError(
            f"emissions is {distributions!r}; expected parameters of {self._family.title} distributions."
        )
        if any(
            isinstance(distribution, Distribution) and type(distribution) is not type(self.distribution)
            for distribution in distributions
        ):
            raise wrong
        try:
            rows = np.array([self._given(distribution) for distribution in distributions]).astype(np.float64)
        except (TypeError, ValueError):
            raise wrong from None
        if rows.shape != (self.size, len(self.unit)) or not replace(self, floor=0.0).inside({"parameters": rows}):
            raise wrong
        return {"parameters": rows}

    def _given(self, distribution: Any) -> NDArray[Any]:
        return (
            row_of(self._family, distribution.parameters_)
            if isinstance(distribution, Distribution)
            else np.atleast_1d(distribution)
        )

    def check_start(self, given: Parameters) -> None:
        """States on or above the floor."""
        if not self.inside(given):
            raise OptionError(
                f"emissions holds a {self._family.title} distribution narrower than its floor, {self.floor:g} of the "
                "spread of the distribution of all steps. Begin with a wider distribution, or choose a smaller "
                "variance_floor."
            )

    def draw(self, codes: NDArray[np.intp], parameters: Parameters, rng: np.random.Generator) -> list[NDArray[Any]]:
        """From each state as many as it has steps."""
        values = self._members(parameters["parameters"]).sample(codes, rng)
        return [values] if values.ndim == 1 else list(values.T)

    def describe(self) -> dict[str, Any]:
        """The units."""
        return {"unit": self.unit}


def _seen(values: Floats) -> NDArray[np.bool_]:
    """Steps that are not missing (steps,)."""
    missing = np.isnan(values)
    return np.asarray(~(missing if missing.ndim == 1 else missing.any(axis=1)))


def as_unit(row: Floats) -> Floats:
    """Parameters of the distribution of all steps as units: none of them is 0."""
    return np.where(row != 0, row, 1.0)


def read_proportions(columns: Sequence[NDArray[Any]], titles: Any) -> Floats:
    """Rows (steps, d) that add up to one; NaN in all columns for a missing value."""
    names = titles or [None] * len(columns)
    rows = np.stack([as_reals(column, name) for column, name in zip(columns, names, strict=True)], axis=1)
    missing = np.isnan(rows)
    partly = missing.any(axis=1) & ~missing.all(axis=1)
    if partly.any():
        step = int(np.argmax(partly))
        raise DataError(f"Step {step} has a missing value in some of its proportions; give all of them, or none.")
    wrong = ~missing.any(axis=1) & ((rows <= 0).any(axis=1) | (np.abs(rows.sum(axis=1) - 1) > 1e-6))
    if wrong.any():
        step = int(np.argmax(wrong))
        raise DataError(
            f"Step {step} holds {rows[step].tolist()}; a Dirichlet distribution describes proportions above 0 that add "
            "up to one. Divide each row by its sum, and leave rows with zeros out."
        )
    return rows
