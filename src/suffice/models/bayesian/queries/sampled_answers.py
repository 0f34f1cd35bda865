"""Answers from weighted samples: approximate, with their standard errors."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.engines.importance import effective_size, pareto_shape
from suffice.errors import OptionError, SamplingWarning, listing, warn
from suffice.fitting.report import distrust
from suffice.models.evidence import Evidence, Names
from suffice.table import Table


class SampledTable(Table):
    """A table of probabilities estimated from samples.

    `standard_errors` is a table of the same shape, `effective_sample_size` the number of independent draws from the
    posterior that would be about as good, `n` the number of samples drawn. Of Markov chains `r_hat` says whether they
    agree (1: they do; above 1.05 a warning was given), and `levels` how many temperatures it took; of weighted samples
    `pareto_k` is the shape of the tail of their weights (above 0.7 a few samples decide), and both are None.
    """

    approximate = True

    def __init__(
        self,
        domain: Domain,
        values: Floats,
        errors: Floats,
        effective_sample_size: float,
        n: int,
        *,
        r_hat: float | None = None,
        levels: int | None = None,
        pareto_k: float | None = None,
    ) -> None:
        """Take probabilities and standard errors, one axis for each variable."""
        super().__init__(domain, values)
        self.standard_errors = Table(domain, errors)
        self.effective_sample_size = effective_sample_size
        self.n, self.r_hat, self.levels, self.pareto_k = n, r_hat, levels, pareto_k

    def warn(self, what: str) -> None:
        """Warn where the answer to a question is not to be relied on."""
        warn_of(what, self.effective_sample_size, self.n, r_hat=self.r_hat, pareto_k=self.pareto_k)

    def __str__(self) -> str:
        note = _note(self.n, self.effective_sample_size, self.standard_errors.values, self.r_hat, self.pareto_k)
        return f"{super().__str__()}\n{note}"

    __repr__ = __str__


class SampledDistribution:
    """The distribution of discrete and real variables as weighted draws; approximate.

    `weights` (n,) add up to one. `draws` (n,) by name are labels of discrete variables and numbers of real ones.
    `possible` says by name which states (card,) the evidence leaves; without an entry, all.
    """

    approximate = True

    def __init__(
        self,
        domain: Domain,
        columns: Sequence[NDArray[Any]],
        weights: Floats,
        log_probability: float,
        possible: Mapping[Hashable, NDArray[np.bool_]] | None = None,
    ) -> None:
        """Take codes and numbers (n,), a column for each variable."""
        self.domain = domain
        self.weights = weights
        #: Estimate of the log-probability (density) of the evidence.
        self.log_probability = log_probability
        self._columns = dict(zip(domain.names, columns, strict=True))
        self._possible = dict(possible or {})

    @property
    def names(self) -> tuple[Hashable, ...]:
        """The real variables, in the order asked."""
        return tuple(v.name for v in self.domain.variables if v.kind != "discrete")

    @property
    def n(self) -> int:
        """Samples drawn."""
        return len(self.weights)

    @property
    def effective_sample_size(self) -> float:
        """(sum w)^2 / sum w^2: from 1 (one sample has all the weight) to n."""
        return effective_size(self.weights)

    @cached_property
    def pareto_k(self) -> float | None:
        """The shape of the tail of the weights: above 0.7 a few samples decide; None for too few samples."""
        return pareto_shape(self.weights)

    def warn(self, what: str) -> None:
        """Warn where an answer to a question is not to be relied on."""
        warn_of(what, self.effective_sample_size, self.n, pareto_k=self.pareto_k)

    @property
    def draws(self) -> dict[Hashable, NDArray[Any]]:
        """Labels and numbers (n,) by name."""
        draws: dict[Hashable, NDArray[Any]] = {}
        for variable in self.domain.variables:
            labels = np.empty(variable.card, dtype=object)
            labels[:] = variable.states
            column = self._columns[variable.name]
            draws[variable.name] = labels[column] if variable.kind == "discrete" else column
        return draws

    # -- discrete variables ------------------------------------------------------------------------------------------

    def table(self, variables: Names) -> SampledTable:
        """Probabilities of discrete variables, axes in the order asked."""
        names = self.domain.names_of(variables)
        real = [name for name in names if self.domain[name].kind != "discrete"]
        if real:
            raise OptionError(f"{listing(real)} is real and has no table; see mean and covariance.")
        shape = self.domain.shape(names)
        columns = tuple(self._columns[name] for name in names)
        cells = np.ravel_multi_index(columns, shape) if shape else np.zeros(self.n, np.intp)
        size = math.prod(shape)
        sums = np.bincount(cells, self.weights, size)
        p: Floats = np.asarray(sums / sums.sum(), dtype=np.float64)
        squares = np.bincount(cells, self.weights**2, size)
        # Of a ratio of weighted sums: sum w^2 (indicator - p)^2.
        errors = np.sqrt(np.maximum((1 - 2 * p) * squares + p**2 * (self.weights**2).sum(), 0.0))
        # A cell with none or all of the weight may have as little (as much) as one draw in the effective number.
        errors = np.where((p <= 0) | (p >= 1), 1 / self.effective_sample_size, errors)
        errors = np.where(certain_cells(self.domain, names, self._possible), 0.0, errors)
        return SampledTable(
            self.domain.select(names),
            p.reshape(shape),
            errors.reshape(shape),
            self.effective_sample_size,
            self.n,
            pareto_k=self.pareto_k,
        )

    # -- real variables ----------------------------------------------------------------------------------------------

    @property
    def _numbers(self) -> Floats:
        return np.stack([np.asarray(self._columns[name], dtype=np.float64) for name in self.names], axis=1)

    @property
    def mean(self) -> Floats:
        """Mean of the real variables (u,)."""
        return np.asarray(self.weights @ self._numbers)

    @property
    def standard_errors(self) -> Floats:
        """Standard errors of the means (u,)."""
        return np.sqrt(self.weights**2 @ (self._numbers - self.mean) ** 2)

    @property
    def covariance(self) -> Floats:
        """Covariance of the real variables (u, u)."""
        away = self._numbers - self.mean
        return np.asarray((self.weights[:, None] * away).T @ away)

    def __str__(self) -> str:
        lines = [
            f"{name!r}: mean {mean:.6g}, standard error {error:.2g}"
            for name, mean, error in zip(self.names, self.mean, self.standard_errors, strict=True)
        ]
        discrete = [v.name for v in self.domain.variables if v.kind == "discrete"]
        lines += [f"with {listing(discrete)}: see table(...)"] if discrete else []
        note = _note(self.n, self.effective_sample_size, self.standard_errors, k=self.pareto_k)
        return "\n".join([*lines, note])

    __repr__ = __str__


def possible_states(domain: Domain, evidence: Evidence) -> dict[Hashable, NDArray[np.bool_]]:
    """Which states (card,) of each discrete variable with evidence it does not exclude."""
    possible = {name: np.arange(domain[name].card) == code for name, code in evidence.states.items()}
    return possible | {name: values > 0 for name, values in evidence.likelihoods.items()}


def certain_cells(
    domain: Domain, names: Sequence[Hashable], possible: Mapping[Hashable, NDArray[np.bool_]]
) -> NDArray[np.bool_]:
    """Cells whose probability is 0, or 1, by the evidence itself and not by chance (cells,)."""
    left = np.ones(1, dtype=bool)
    for name in names:
        left = np.outer(left, possible.get(name, np.ones(domain[name].card, dtype=bool))).ravel()
    return np.ones_like(left) if left.sum() == 1 else ~left


def warn_of(what: str, effective: float, n: int, **diagnostics: float | None) -> None:
    """Warn where an answer to `what` is not to be relied on; diagnostics: those of `distrust`."""
    words = distrust(effective, n, **diagnostics)
    if words:
        warn(f"The sampled answer to {what} is not to be relied on: {words}.", SamplingWarning)


def _note(n: int, effective: float, errors: Floats, r_hat: float | None = None, k: float | None = None) -> str:
    largest = float(errors.max(initial=0.0))
    kind = "weighted samples" if r_hat is None else "draws of Markov chains"
    rest = "" if r_hat is None else f", R-hat {r_hat:.3f}"
    rest += "" if k is None or k < 0.5 else f", Pareto k {k:.2f}"
    return f"approximate: {n:,} {kind}, worth {effective:,.0f}{rest}; largest standard error {largest:.2g}"
