"""Any exponential family of one column, through its sufficient statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain
from suffice.errors import DataError, EstimateError, OptionError
from suffice.families.exponential import ExponentialFamily
from suffice.fitting import summarize
from suffice.models.hidden_markov.emissions.contract import UNUSED, Data, Emission, Floats, Parameters, Statistics
from suffice.models.hidden_markov.emissions.gaussian import as_reals
from suffice.statistics import empty_summary

COLUMN = "observation"
#: Laws whose maximum likelihood matches the mean of T(x), where nothing about them is known.
BY_MEAN = frozenset({"Poisson", "Exponential", "Gamma", "Beta", "InverseGamma"})


@dataclass(frozen=True, eq=False)
class FamilyEmission(Emission):
    """Laws of the family of `law`, which is unfitted and may have a prior or known parameters.

    Without either, one matrix product gives the sums of T(x) of all states and another all log densities. Else the
    summaries that the law itself learns from are kept, one for each state.
    """

    size: int
    law: ExponentialFamily
    unit: Floats

    kinds: ClassVar[Mapping[str, str]] = {"parameters": "real"}

    @cached_property
    def _options(self) -> dict[str, Any]:
        return self.law.get_params(deep=False)

    @cached_property
    def _matches(self) -> bool:
        free = all(self._options.get(name) is None for name in self.law.parameter_names)
        return type(self.law).__name__ in BY_MEAN and free and self._options.get("prior") is None

    def _usual(self, row: Floats) -> dict[str, Any]:
        """Parameters by name."""
        return dict(zip(self.law.parameter_names, map(float, row), strict=True))

    # -- data --------------------------------------------------------------------------------------------------------

    def read(self, columns: Sequence[NDArray[Any]]) -> Data:
        """Values (steps,), NaN for a gap; then log h and T (steps, k) where they are used."""
        (column,) = columns
        values = as_reals(column)
        seen = ~np.isnan(values)
        # A law at some parameters knows the support: log h is -inf outside of it.
        base = np.zeros(len(values))
        base[seen] = self._supported(values[seen])
        if (base[seen] == -np.inf).any():
            wrong = values[seen][base[seen] == -np.inf]
            raise DataError(f"The observation {wrong[0]!r} is outside of the support of {type(self.law).__name__}.")
        if not self._matches:
            return (values,)
        statistics = np.zeros((len(values), len(self.law._to_natural(self._usual(self.unit)))))
        statistics[seen] = self.law.sufficient_statistics(values[seen])
        return values, base, statistics

    def _supported(self, values: Floats) -> Floats:
        try:
            with np.errstate(all="ignore"):
                return np.where(np.isnan(base := self.law.log_base_measure(values)), -np.inf, base)
        except (NotImplementedError, AttributeError, ValueError):
            return np.zeros(len(values))

    @property
    def n_arrays(self) -> int:
        """Values, and log h and T where they are used."""
        return 3 if self._matches else 1

    def spread(self, data: Data) -> Floats:
        """In units of the column."""
        values = data[0]
        seen = values[~np.isnan(values)]
        scale = seen.std() if len(seen) and seen.std() > 0 else 1.0
        return np.asarray(((values - (seen.mean() if len(seen) else 0.0)) / scale)[:, None])

    # -- expectation -------------------------------------------------------------------------------------------------

    def _at(self, row: Floats) -> Any:
        """The law with these parameters, in the order of their names; known ones are as given."""
        return self.law._with(**dict(zip(self.law.parameter_names, map(float, row), strict=True)))

    def log_densities(self, data: Data, parameters: Parameters) -> Floats:
        """Eta . T - A + log h for all laws at once; laws at the edge of their family one by one."""
        values, rows = data[0], parameters["parameters"]
        seen = ~np.isnan(values)
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
        seen = ~np.isnan(data[0])
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
        """Each law by its own maximum likelihood or conjugate posterior."""
        rows = parameters["parameters"].copy()
        prior = self._options.get("prior")
        for at in range(self.size):
            if not statistics["weight"][at] > UNUSED and prior is None:
                continue
            if self._matches:
                mean = statistics["sums"][at] / statistics["weight"][at]
                rows[at] = self._matched(mean)
            else:
                rows[at] = self._row(self.law.clone().fit(statistics["summaries"][at]))
        return {"parameters": rows}

    def _matched(self, mean: Floats) -> Floats:
        try:
            found = self.law._check(self.law._from_mean(mean))
            return np.array([float(found[name]) for name in self.law.parameter_names])
        except (np.linalg.LinAlgError, FloatingPointError, EstimateError, OptionError) as error:
            raise EstimateError(
                f"No {type(self.law).__name__} law has the expected statistics {mean.tolist()}, as where all steps of "
                f"a state are equal ({error}). Use fewer states, or give the law a prior."
            ) from error

    def _row(self, law: Any) -> Floats:
        return np.array([float(law.parameters_[name]) for name in self.law.parameter_names])

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

    # -- parameters as one vector ------------------------------------------------------------------------------------

    def vector(self, parameters: Parameters) -> Floats:
        """In units of the law of all steps."""
        return np.asarray((parameters["parameters"] / self.unit).ravel())

    def at(self, vector: Floats, like: Parameters) -> Parameters:
        """Back from the units."""
        return {"parameters": vector.reshape(self.size, len(self.unit)) * self.unit}

    def inside(self, parameters: Parameters) -> bool:
        """Whether every law takes its parameters."""
        try:
            for row in parameters["parameters"]:
                self._at(row)
        except OptionError:
            return False
        return True

    @property
    def n_params(self) -> int:
        """Those that are not known."""
        return sum(self._options.get(name) is None for name in self.law.parameter_names)

    # -- laws --------------------------------------------------------------------------------------------------------

    def laws(self, parameters: Parameters) -> list[Any]:
        """The laws, given."""
        return [self._at(row) for row in parameters["parameters"]]

    def parameters_of(self, laws: Any) -> Parameters:
        """From laws, or from the parameters of each state in the order of their names."""
        if np.ndim(laws) == 0 or len(laws) != self.size:
            raise OptionError(f"emissions is {laws!r}; expected {self.size} laws, one for each state.")
        rows = [self._row(law) if hasattr(law, "parameters_") else np.atleast_1d(law) for law in laws]
        found = np.array(rows, dtype=np.float64)
        if found.shape != (self.size, len(self.unit)) or not self.inside({"parameters": found}):
            raise OptionError(f"emissions is {laws!r}; expected parameters of {type(self.law).__name__}.")
        return {"parameters": found}

    def start(self, data: Data, rng: np.random.Generator) -> Parameters:
        """Laws of random thirds of the steps."""
        values = data[0][~np.isnan(data[0])]
        weights = rng.dirichlet(np.ones(self.size), size=len(values))
        return self.maximise(
            self.statistics(tuple(part[~np.isnan(data[0])] for part in data), weights, {}),
            {"parameters": np.stack([self.unit] * self.size)},
        )

    def draw(self, codes: NDArray[np.intp], parameters: Parameters, rng: np.random.Generator) -> list[NDArray[Any]]:
        """From each law as many as it has steps."""
        laws = self.laws(parameters)
        found: NDArray[Any] | None = None
        for at, law in enumerate(laws):
            mine = np.flatnonzero(codes == at)
            drawn = np.asarray(law.sample(len(mine), random_state=rng))
            found = np.empty(len(codes), drawn.dtype) if found is None else found
            found[mine] = drawn
        return [np.zeros(0) if found is None else found]

    def describe(self) -> dict[str, Any]:
        """The units."""
        return {"unit": self.unit}
