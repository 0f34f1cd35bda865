"""Any exponential family of one column, or of proportions, through its sufficient statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain
from suffice.errors import DataError, EstimateError, OptionError
from suffice.families.exponential import Exponential
from suffice.families.exponential_family import ExponentialFamily
from suffice.families.gamma import Gamma
from suffice.families.normal import Normal
from suffice.families.poisson import Poisson
from suffice.families.vectors import VectorFamily
from suffice.fitting.summarizing import summarize
from suffice.models.hidden_markov.emissions.contract import (
    UNUSED,
    Data,
    Emission,
    Floats,
    Parameters,
    Statistics,
    never_learned,
)
from suffice.models.hidden_markov.emissions.family_floor import floor_of, highest, matched, possible
from suffice.models.hidden_markov.emissions.moments import MatchedPart, without_pull
from suffice.models.hidden_markov.emissions.reals import as_reals, called, in_range
from suffice.models.hidden_markov.emissions.standing import Standing
from suffice.statistics import empty_summary

COLUMN = "observation"


@dataclass(frozen=True, eq=False)
class FamilyEmission(Emission):
    """Laws of the family of `law`, which is unfitted and may have a prior or known parameters.

    Without either, one matrix product gives the sums of T(x) of all states and another all log densities. Else the
    summaries that the law itself learns from are kept, one for each state. `unit` (k,) are the parameters of the law of
    all steps; with `floor` they say how narrow a law may become.
    """

    size: int
    law: ExponentialFamily
    unit: Floats
    floor: float = 0.0
    title: Any = None

    kinds: ClassVar[Mapping[str, str]] = {"parameters": "real"}

    @cached_property
    def _options(self) -> dict[str, Any]:
        return self.law.get_params(deep=False)

    @cached_property
    def _matches(self) -> bool:
        free = all(self._options.get(name) is None for name in self.law.parameter_names)
        return floor_of(self.law).by_mean and free and self._options.get("prior") is None

    @cached_property
    def _most(self) -> float:
        """The largest concentration of a law; a prior holds laws up by itself."""
        held = self._matches or (isinstance(self.law, Normal) and self._options.get("variance") is None)
        return highest(self.law, self.unit, self.floor) if held and self._options.get("prior") is None else np.inf

    def _concentration(self, row: Floats) -> float:
        return floor_of(self.law).concentration(row)

    def _usual(self, row: Floats) -> dict[str, Any]:
        """Parameters by name."""
        if isinstance(self.law, VectorFamily):
            return {self.law.parameter_names[0]: row}
        return dict(zip(self.law.parameter_names, map(float, row), strict=True))

    # -- data --------------------------------------------------------------------------------------------------------

    def read(self, columns: Sequence[NDArray[Any]]) -> Data:
        """Values (steps,) or (steps, d), NaN for a gap; then log h and T (steps, k) where they are used."""
        values = self._values(columns)
        seen = _seen(values)
        # A law at some parameters knows the support: log h is -inf outside of it.
        base = np.zeros(len(values))
        base[seen] = self._supported(values[seen])
        self._refuse(values[seen], np.isneginf(base[seen]))
        if not self._matches:
            return (values,)
        statistics = np.zeros((len(values), len(self.law._to_natural(self._usual(self.unit)))))
        statistics[seen] = self.law.sufficient_statistics(values[seen])
        self._refuse(values[seen], np.logical_not(np.isfinite(statistics[seen]).all(axis=1)))
        return values, base, statistics

    def _values(self, columns: Sequence[NDArray[Any]]) -> Floats:
        if not isinstance(self.law, VectorFamily):
            (column,) = columns
            return in_range(as_reals(column, self.title), self.title, counts=self._counts)
        if len(columns) != len(self.unit):
            raise DataError(f"Steps hold {len(columns)} observations; the laws describe {len(self.unit)}.")
        return read_proportions(columns, self._options.get("columns"))

    @property
    def _counts(self) -> bool:
        return bool(self.law._variable(COLUMN).kind == "count")

    def _refuse(self, values: Floats, wrong: NDArray[np.bool_]) -> None:
        if wrong.any():
            found = values[wrong][0].tolist()
            raise DataError(
                f"{called(self.title)}: {found!r} is outside of the support of {type(self.law).__name__}, or on its "
                f"edge{'; expected a count' if self._counts else ''}. Leave it out, give it as a gap, or choose "
                "another law."
            )

    def _supported(self, values: Floats) -> Floats:
        try:
            with np.errstate(all="ignore"):
                return np.where(np.isnan(base := self.law.log_base_measure(values)), -np.inf, base)
        except (NotImplementedError, AttributeError, ValueError):
            return np.zeros(len(values))

    @property
    def known(self) -> Mapping[str, tuple[int, ...]]:
        """Parameters that the law was given with."""
        names = enumerate(self.law.parameter_names)
        return {"parameters": tuple(at for at, name in names if self._options.get(name) is not None)}

    @property
    def width(self) -> int:
        """One, or as many as there are proportions."""
        return len(self.unit) if isinstance(self.law, VectorFamily) else 1

    @property
    def n_arrays(self) -> int:
        """Values, and log h and T where they are used."""
        return 3 if self._matches else 1

    def spread(self, data: Data, weights: Floats) -> Floats:
        """In units of the column."""
        values = data[0].reshape(len(data[0]), -1)
        seen = _seen(values) & (weights > 0)
        if not seen.any():
            return np.zeros(values.shape)
        mean = np.average(values[seen], axis=0, weights=weights[seen])
        scale = np.sqrt(np.average((values[seen] - mean) ** 2, axis=0, weights=weights[seen]))
        return np.asarray((values - mean) / np.where(scale > 0, scale, 1.0))

    # -- expectation -------------------------------------------------------------------------------------------------

    def _at(self, row: Floats) -> Any:
        """The law with these parameters, in the order of their names; known ones are as given."""
        return self.law._with(**self._usual(row))

    def log_densities(self, data: Data, parameters: Parameters) -> Floats:
        """Eta . T - A + log h for all laws at once; laws at the edge of their family one by one."""
        values, rows = data[0], parameters["parameters"]
        seen = _seen(values)
        found = np.zeros((len(values), self.size))
        for at, row in enumerate(rows):
            eta = self.law._to_natural(self._usual(row)) if self._matches else np.array([np.nan])
            if np.isfinite(eta).all():
                found[:, at] = data[2] @ eta - self.law.log_normalizer(eta) + data[1]
            else:
                found[seen, at] = self._at(row).log_prob(values[seen])
        found[~seen] = 0.0
        return found

    def statistics(self, data: Data, weights: Floats, parameters: Parameters) -> Statistics:
        """Weight (size,), sums of T (size, k) and of log h (size,), or one summary for each state."""
        seen = _seen(data[0])
        weight = weights[seen].sum(axis=0)
        if self._matches:
            return {"weight": weight, "sums": weights.T @ data[2], "base": weights.T @ data[1]}
        summaries = np.empty(self.size, dtype=object)
        for at in range(self.size):
            some = seen & (weights[:, at] > 0)
            column = {COLUMN: data[0][some]}
            summaries[at] = summarize(self.law, column, weights[some, at]) if some.any() else self._nothing()
        return {"weight": weight, "summaries": summaries}

    def _nothing(self) -> Any:
        domain = Domain([self.law._variable(COLUMN)])
        return empty_summary(domain, self.law._ask(domain))

    # -- maximisation ------------------------------------------------------------------------------------------------

    def expected(self, statistics: Statistics, parameters: Parameters) -> Floats:
        """Eta . sum T - N A + sum log h, or what the law makes of its summary."""
        rows = parameters["parameters"]
        if not self._matches:
            pairs = zip(rows, statistics["summaries"], strict=True)
            return np.array([self._at(row)._log_likelihood(s) if s.weight > 0 else 0.0 for row, s in pairs])
        found = np.zeros(self.size)
        for at, row in enumerate(rows):
            eta, sums = self.law._to_natural(self._usual(row)), statistics["sums"][at]
            inner = float((np.where(sums == 0, 0.0, eta) * sums).sum())
            found[at] = inner - statistics["weight"][at] * self.law.log_normalizer(eta) + statistics["base"][at]
        return found

    def maximise(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        """Each law by its own maximum likelihood or conjugate posterior, no narrower than the floor lets it be."""
        rows = parameters["parameters"].copy()
        for at in range(self.size):
            found = self._learned(statistics, at, rows[at])
            rows[at] = rows[at] if found is None else found
        return {"parameters": rows}

    def _learned(self, statistics: Statistics, at: int, before: Floats) -> Floats | None:
        """The parameters of one law; None where its statistics determine none."""
        weight = statistics["weight"][at]
        if not weight > UNUSED and self._options.get("prior") is None:
            return None
        if self._matches:
            return matched(self.law, statistics["sums"][at] / weight, self._most)
        try:
            found = self._row(self.law.clone().fit(statistics["summaries"][at]))
        except EstimateError:
            if not np.isfinite(self._most):
                return None
            known = self._options.get("mean")  # A normal law of known mean whose steps all lie there.
            found = np.array([before[0] if known is None else float(known), 0.0])
        if np.isfinite(self._most):
            found[1] = max(found[1], 1.0 / self._most)
        return found

    def _row(self, law: Any) -> Floats:
        parts = [np.atleast_1d(law.parameters_[name]) for name in self.law.parameter_names]
        return np.concatenate(parts).astype(np.float64)

    def log_prior(self, parameters: Parameters) -> Floats:
        """Density of the law's own prior."""
        prior = self._options.get("prior")
        if prior is None or not hasattr(prior, "log_prob"):
            return np.zeros(self.size)
        return np.array([float(prior.log_prob(self._at(row)._prior_point())) for row in parameters["parameters"]])

    @property
    def without_prior(self) -> tuple[str, ...]:
        """The family, unless its laws have a conjugate prior."""
        return () if self._options.get("prior") is not None else (type(self.law).__name__,)

    def notes(self, parameters: Parameters, statistics: Statistics, names: Sequence[str]) -> tuple[str, ...]:
        """Which laws lie on the floor, and which could not be learned."""
        found = []
        for at, (name, row) in enumerate(zip(names, parameters["parameters"], strict=True)):
            family = type(self.law).__name__
            if statistics["weight"][at] > UNUSED and self._learned(statistics, at, row) is None:
                why = (
                    "no law fits its steps best" if self._options.get("prior") is None else "its posterior has no mode"
                )
                found.append(
                    f"the {family} law of {name} was left as it was: {why}. Use fewer states or a stronger prior"
                )
            elif self._concentration(row) >= self._most * (1 - 1e-6):
                found.append(
                    f"the {family} law of {name} is held at its floor, variance_floor={self.floor:g} of the spread of "
                    "the law of all steps"
                )
        return tuple(found)

    def standing(self, statistics: Statistics, parameters: Parameters, names: Sequence[str]) -> Standing:
        """Law by law: by its own certificate, or by the slope in its natural parameters."""
        found = Standing()
        for at, row in enumerate(parameters["parameters"]):
            if statistics["weight"][at] > UNUSED:
                found = found + self._standing_of(statistics, at, row, names[at])
        return found

    def _standing_of(self, statistics: Statistics, at: int, row: Floats, name: str) -> Standing:
        narrow = self._too_narrow(row, name)
        if narrow:
            return Standing(narrow, lost=None)
        family = type(self.law).__name__
        if not self._matches:
            try:
                certificate = self.law.clone().fit(statistics["summaries"][at]).report_.certificate
            except EstimateError:
                return Standing(decided=False, lost=None)
            edge = tuple(f"{family} law of {name}: {text}" for text in certificate.directions)
            return Standing(edge, certificate.exists is not None, None)
        eta = self.law._to_natural(self._usual(row))
        weight = float(statistics["weight"][at])
        if not np.isfinite(eta).all():
            return Standing((f"{family} law of {name} -> the edge of its family",), lost=None)
        # Half the squared Newton decrement: the log-likelihood is concave in the natural parameters.
        slope = statistics["sums"][at] / weight - self.law.expected_statistics(eta)
        step = np.linalg.lstsq(self.law.statistics_covariance(eta), slope, rcond=None)[0]
        return Standing(lost=max(0.5 * weight * float(slope @ step), 0.0), bound=False)

    def _too_narrow(self, row: Floats, name: str) -> tuple[str, ...]:
        if not self._concentration(row) >= self._most * (1 - 1e-6):
            return ()
        column = "the observations" if self.title is None else repr(self.title)
        return (f"spread of {column} in {name} -> 0",)

    def collapsed(self, parameters: Parameters, names: Sequence[str]) -> tuple[str, ...]:
        """Laws held at their floor."""
        rows = zip(parameters["parameters"], names, strict=True)
        return tuple(text for row, name in rows for text in self._too_narrow(row, name))

    @property
    def coercive(self) -> bool:
        """Rates with a gamma prior of shape above 1: its density goes to 0 at 0, and faster than any power at inf."""
        prior = self._options.get("prior")
        rates = isinstance(self.law, Poisson | Exponential)
        return rates and isinstance(prior, Gamma) and bool(prior.shape_ > 1)

    def moments(self, statistics: Statistics, parameters: Parameters, names: Sequence[str]) -> Iterator[MatchedPart]:
        """T(x) of each law, times the indicator of its state."""
        weight = np.asarray(statistics["weight"])
        total = float(weight.sum())
        for at, (name, law) in enumerate(zip(names, self.laws(parameters), strict=True)):
            if not weight[at] > UNUSED:
                continue
            whole = "sums" in statistics
            seen = statistics["sums"][at] / weight[at] if whole else law._observed(statistics["summaries"][at])
            told, titles = np.asarray(law.expected_statistics()), law.statistic_names
            if len(titles) != len(seen):
                titles = tuple(f"T{k + 1}" for k in range(len(seen)))
            share = weight[at] / total
            yield without_pull([f"{name}: {one}" for one in titles], share * seen, share * told)

    @property
    def has_conjugate_prior(self) -> bool:
        """Where the law has one."""
        return self._options.get("prior") is not None

    # -- further steps -----------------------------------------------------------------------------------------------

    def left(self, rest: Statistics, before: Statistics) -> Statistics:
        """Weights of at least 0, and means of T that some values have; summaries see to it themselves."""
        found = super().left(rest, before)
        for at, weight in enumerate(found["weight"] if self._matches else ()):
            if weight == 0:
                found["sums"][at], found["base"][at] = 0.0, 0.0
            elif not possible(self.law, found["sums"][at] / weight):
                raise never_learned("a mean that no observations have")
        return found

    def rescaled(self, statistics: Statistics) -> Self:
        """The law of all steps."""
        whole = {name: sums.sum(axis=0, keepdims=True) for name, sums in statistics.items()}
        one = replace(self, size=1, floor=0.0)
        found = one._learned(whole, 0, self.unit)
        return self if found is None else replace(self, unit=as_unit(found))

    # -- parameters as one vector ------------------------------------------------------------------------------------

    def vector(self, parameters: Parameters) -> Floats:
        """In units of the law of all steps; of large ones the logarithm, so that changes are shares of them."""
        found = parameters["parameters"] / np.abs(self.unit)
        return np.asarray((np.sign(found) * np.log1p(np.abs(found))).ravel())

    def at(self, vector: Floats, like: Parameters) -> Parameters:
        """Back from the units."""
        found = vector.reshape(self.size, len(self.unit))
        with np.errstate(over="ignore"):  # Of a point that was extrapolated too far; `inside` refuses it.
            return {"parameters": np.sign(found) * np.expm1(np.abs(found)) * np.abs(self.unit)}

    def inside(self, parameters: Parameters) -> bool:
        """Whether every law takes its parameters, and none is narrower than the floor."""
        try:
            for row in parameters["parameters"]:
                self._at(row)
        except OptionError:
            return False
        widest = max(self._concentration(row) for row in parameters["parameters"])
        return widest <= self._most * (1 + 1e-9)

    @property
    def n_free(self) -> NDArray[np.int64]:
        """Those that are not known."""
        if isinstance(self.law, VectorFamily):
            return np.full(self.size, len(self.unit), np.int64)
        known = sum(self._options.get(name) is None for name in self.law.parameter_names)
        return np.full(self.size, known, np.int64)

    # -- laws --------------------------------------------------------------------------------------------------------

    def laws(self, parameters: Parameters) -> list[Any]:
        """The laws, given."""
        return [self._at(row.copy()) for row in parameters["parameters"]]

    def parameters_of(self, laws: Any) -> Parameters:
        """From laws, or from the parameters of each state in the order of their names."""
        if isinstance(laws, str) or not isinstance(laws, Sequence | np.ndarray) or len(laws) != self.size:
            raise OptionError(f"emissions is {laws!r}; expected {self.size} laws, one for each state.")
        wrong = OptionError(f"emissions is {laws!r}; expected parameters of {type(self.law).__name__} laws.")
        if any(hasattr(law, "parameters_") and type(law) is not type(self.law) for law in laws):
            raise wrong
        try:
            found = np.array([self._row(law) if hasattr(law, "parameters_") else np.atleast_1d(law) for law in laws])
            found = found.astype(np.float64)
        except (TypeError, ValueError):
            raise wrong from None
        if found.shape != (self.size, len(self.unit)) or not replace(self, floor=0.0).inside({"parameters": found}):
            raise wrong
        return {"parameters": found}

    def check_start(self, given: Parameters) -> None:
        """Laws on or above the floor."""
        if not self.inside(given):
            raise OptionError(
                f"emissions holds a {type(self.law).__name__} law narrower than its floor, {self.floor:g} of the "
                "spread of the law of all steps. Begin with a wider law, or choose a smaller variance_floor."
            )

    def start(self, data: Data, weights: Floats, rng: np.random.Generator) -> Parameters:
        """Laws of random shares of the steps."""
        seen = _seen(data[0])
        some = tuple(part[seen] for part in data)
        shares = rng.dirichlet(np.ones(self.size), size=len(some[0])) * weights[seen, None]
        return self.maximise(self.statistics(some, shares, {}), {"parameters": np.stack([self.unit] * self.size)})

    def draw(self, codes: NDArray[np.intp], parameters: Parameters, rng: np.random.Generator) -> list[NDArray[Any]]:
        """From each law as many as it has steps."""
        found: NDArray[Any] | None = None
        for at, law in enumerate(self.laws(parameters)):
            mine = np.flatnonzero(codes == at)
            drawn = np.asarray(law.sample(len(mine), random_state=rng))
            found = np.empty((len(codes), *drawn.shape[1:]), drawn.dtype) if found is None else found
            found[mine] = drawn
        if found is None:
            return [np.zeros(0)]
        return [found] if found.ndim == 1 else list(found.T)

    def describe(self) -> dict[str, Any]:
        """The units."""
        return {"unit": self.unit}


def _seen(values: Floats) -> NDArray[np.bool_]:
    """Steps that are no gaps (steps,)."""
    gaps = np.isnan(values)
    return np.asarray(~(gaps if gaps.ndim == 1 else gaps.any(axis=1)))


def as_unit(row: Floats) -> Floats:
    """Parameters of the law of all steps as units: none of them is 0."""
    return np.where(row != 0, row, 1.0)


def read_proportions(columns: Sequence[NDArray[Any]], titles: Any) -> Floats:
    """Rows (steps, d) that add up to one; NaN in all columns for a gap."""
    names = titles or [None] * len(columns)
    rows = np.stack([as_reals(column, name) for column, name in zip(columns, names, strict=True)], axis=1)
    gaps = np.isnan(rows)
    partly = gaps.any(axis=1) & ~gaps.all(axis=1)
    if partly.any():
        step = int(np.argmax(partly))
        raise DataError(f"Step {step} has a gap in some of its proportions; give all of them, or none.")
    wrong = ~gaps.any(axis=1) & ((rows <= 0).any(axis=1) | (np.abs(rows.sum(axis=1) - 1) > 1e-6))
    if wrong.any():
        step = int(np.argmax(wrong))
        raise DataError(
            f"Step {step} holds {rows[step].tolist()}; a Dirichlet law describes proportions above 0 that add up to "
            "one. Divide each row by its sum, and leave rows with zeros out."
        )
    return rows
