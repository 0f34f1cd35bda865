"""Mixtures of distributions: each state has several components with weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.errors import OptionError
from suffice.families.categoricals import Categoricals
from suffice.models.hidden_markov.emissions.contract import UNUSED, Data, Emission, Parameters, Statistics
from suffice.models.hidden_markov.emissions.distributions import MixtureDistribution
from suffice.models.hidden_markov.emissions.moments import MatchedPart, of_rows


@dataclass(frozen=True)
class MixtureEmission(Emission):
    """``sum_m weights[k, m] f(x | component (k, m))``; `base` holds the size * m components, those of a state together.

    `pseudo` counts (size, m) are added to those of the components. Components that are False in `allowed` (size, m)
    keep the weight 0.
    """

    size: int
    base: Emission
    pseudo: Floats
    allowed: NDArray[np.bool_] | None = None

    @property
    def _m(self) -> int:
        return self.base.size // self.size

    @property
    def kinds(self) -> Mapping[str, str]:  # type: ignore[override]
        """Weights, and those of the components."""
        return {"weights": "simplex", **self.base.kinds}

    @property
    def known(self) -> Mapping[str, tuple[int, ...]]:
        """As the components."""
        return self.base.known

    @property
    def width(self) -> int:
        """As the components."""
        return self.base.width

    @property
    def n_arrays(self) -> int:
        """As the components."""
        return self.base.n_arrays

    @staticmethod
    def _inner(arrays: Mapping[str, Any]) -> dict[str, Any]:
        return {name: array for name, array in arrays.items() if name not in ("weights", "shares")}

    # -- data --------------------------------------------------------------------------------------------------------

    def read(self, columns: Sequence[NDArray[Any]]) -> Data:
        """As the components read."""
        return self.base.read(columns)

    def in_closed_form(self, data: Data) -> bool:
        """Never: which component a step came from is hidden."""
        return False

    # -- where EM begins ---------------------------------------------------------------------------------------------

    def points(self, data: Data) -> Floats:
        """As the components."""
        return self.base.points(data)

    def keys(self, data: Data) -> Data:
        """As the components."""
        return self.base.keys(data)

    def totals(self, data: Data, weights: Floats) -> Statistics:
        """Those of the components."""
        return self.base.totals(data, weights)

    def start(self, totals: Statistics, rng: np.random.Generator) -> Parameters:
        """Equal weights."""
        return {"weights": self._even(), **self.base.start(totals, rng)}

    def before(self, totals: Statistics, rng: np.random.Generator) -> Parameters:
        """Equal weights; components of states begin at random, as nothing tells them apart."""
        return {"weights": self._even(), **self.base.before(totals, rng)}

    @property
    def in_pieces(self) -> bool:
        """One piece for each component."""
        return True

    def guessed(self, data: Data, shares: Floats, ranks: Floats, before: Parameters) -> Statistics:
        """Steps of each state are cut along the direction of their largest spread."""
        piece = np.minimum((ranks * self._m).astype(np.intp), self._m - 1)
        parts = np.where(piece[:, :, None] == np.arange(self._m), 0.9, 0.0) + 0.1 / self._m
        both = (parts * shares[:, :, None]).reshape(len(shares), self.base.size)
        return self.base.guessed(data, both, np.repeat(ranks, self._m, axis=1), self._inner(before))

    def from_guess(self, statistics: Statistics, before: Parameters) -> Parameters:
        """Equal weights."""
        return {"weights": self._even(), **self.base.from_guess(statistics, self._inner(before))}

    def idle(self, statistics: Statistics, before: Parameters) -> Parameters:
        """Equal weights."""
        return {"weights": self._even(), **self.base.idle(statistics, self._inner(before))}

    # -- expectation -------------------------------------------------------------------------------------------------

    def _parts(self, data: Data, parameters: Parameters) -> tuple[Floats, Floats]:
        """Log of weight times density (steps, size, m), and its sum over components (steps, size)."""
        logs = self.base.log_densities(data, self._inner(parameters)).reshape(-1, self.size, self._m)
        with np.errstate(divide="ignore"):
            logs = logs + np.log(parameters["weights"])
        top = logs.max(axis=2, keepdims=True)
        top = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            return logs, np.log(np.exp(logs - top).sum(axis=2)) + top[:, :, 0]

    def log_densities(self, data: Data, parameters: Parameters) -> Floats:
        """Log-sum over components."""
        return self._parts(data, parameters)[1]

    def statistics(self, data: Data, weights: Floats, parameters: Parameters) -> Statistics:
        """Expected steps of each component (size, m), and the statistics of the components."""
        logs, total = self._parts(data, parameters)
        safe = np.where(np.isfinite(total), total, 0.0)
        shares = np.exp(logs - safe[:, :, None]) * weights[:, :, None]
        inner = self.base.statistics(data, shares.reshape(len(weights), self.base.size), self._inner(parameters))
        return {"shares": shares.sum(axis=0), **inner}

    # -- maximisation ------------------------------------------------------------------------------------------------

    def expected(self, statistics: Statistics, parameters: Parameters) -> Floats:
        """Of the components, and of which one it was."""
        from scipy.special import xlogy

        inner = self.base.expected(self._inner(statistics), self._inner(parameters)).reshape(self.size, self._m)
        return np.asarray(inner.sum(axis=1) + xlogy(statistics["shares"], parameters["weights"]).sum(axis=1))

    def maximise(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        """Shares as weights, and each component by itself."""
        counts = statistics["shares"] + self.pseudo
        weights = Categoricals.most_likely(counts, before=parameters["weights"], least=UNUSED).probabilities
        return {"weights": weights, **self.base.maximise(self._inner(statistics), self._inner(parameters))}

    def log_prior(self, parameters: Parameters) -> Floats:
        """Of weights and components."""
        inner = self.base.log_prior(self._inner(parameters)).reshape(self.size, self._m).sum(axis=1)
        return np.asarray(inner + Categoricals(parameters["weights"]).log_likelihood(self.pseudo))

    @property
    def without_prior(self) -> tuple[str, ...]:
        """Of the components; pseudo-counts go to the weights alone."""
        return self.base.without_prior

    def collapsed(self, parameters: Parameters, names: Sequence[str]) -> tuple[str, ...]:
        """Of the components."""
        inner = [f"component {component} of {name}" for name in names for component in range(self._m)]
        return self.base.collapsed(self._inner(parameters), inner)

    def unseen(self, statistics: Statistics) -> tuple[str, ...]:
        """Of the components."""
        return self.base.unseen(self._inner(statistics))

    @property
    def coercive(self) -> bool:
        """Of the components, and with a pseudo-count for each."""
        may = np.ones((self.size, self._m), bool) if self.allowed is None else self.allowed
        return self.base.coercive and bool((self.pseudo[may] > 0).all())

    def notes(self, parameters: Parameters, statistics: Statistics, names: Sequence[str]) -> tuple[str, ...]:
        """Of the components."""
        inner = [f"component {component} of {name}" for name in names for component in range(self._m)]
        return self.base.notes(self._inner(parameters), self._inner(statistics), inner)

    def moments(self, statistics: Statistics, parameters: Parameters, names: Sequence[str]) -> Iterator[MatchedPart]:
        """Shares of the components, and what they make equal themselves."""
        named = [[f"{name}.{component}" for component in range(self._m)] for name in names]
        yield from of_rows(named, statistics["shares"], parameters["weights"], self.pseudo)
        inner = [name for row in named for name in row]
        yield from self.base.moments(self._inner(statistics), self._inner(parameters), inner)

    @property
    def has_conjugate_prior(self) -> bool:
        """As the components."""
        return self.base.has_conjugate_prior

    # -- parameters as one vector ------------------------------------------------------------------------------------

    def vector(self, parameters: Parameters) -> Floats:
        """Weights, then components."""
        return np.concatenate([parameters["weights"].ravel(), self.base.vector(self._inner(parameters))])

    def at(self, vector: Floats, like: Parameters) -> Parameters:
        """Weights, then components."""
        cut = self.base.size
        weights = vector[:cut].reshape(self.size, self._m)
        return {"weights": weights, **self.base.at(vector[cut:], self._inner(like))}

    def inside(self, parameters: Parameters) -> bool:
        """Weights of at least 0, and components."""
        return bool((parameters["weights"] >= 0).all()) and self.base.inside(self._inner(parameters))

    @property
    def n_free(self) -> NDArray[np.int64]:
        """M - 1 weights and m components; those without weight do not count."""
        used = np.ones((self.size, self._m), np.int64) if self.allowed is None else self.allowed.astype(np.int64)
        return np.asarray(used.sum(axis=1) - 1 + (used * self.base.n_free.reshape(self.size, self._m)).sum(axis=1))

    @property
    def n_shared(self) -> int:
        """As the components share."""
        return self.base.n_shared

    # -- distributions
    # --------------------------------------------------------------------------------------------------------

    def distributions(self, parameters: Parameters) -> list[Any]:
        """Mixtures."""
        inner = self.base.distributions(self._inner(parameters))
        return [
            MixtureDistribution(inner[state * self._m : (state + 1) * self._m], weights=row)
            for state, row in enumerate(parameters["weights"])
        ]

    def parameters_of(self, distributions: Any) -> Parameters:
        """From one mixture for each state."""
        if (
            not isinstance(distributions, Sequence)
            or len(distributions) != self.size
            or not all(isinstance(x, MixtureDistribution) for x in distributions)
        ):
            raise OptionError(
                f"emissions is {distributions!r}; expected a list of {self.size} mixtures, one for each state."
            )
        if any(len(distribution.components_) != self._m for distribution in distributions):
            raise OptionError(f"emissions has a mixture without {self._m} components.")
        inner = self.base.parameters_of([part for distribution in distributions for part in distribution.components_])
        return {"weights": np.stack([distribution.weights_ for distribution in distributions]), **inner}

    def restricted(self, given: Parameters) -> Self:
        """Components of weight 0 stay without weight; those of the others keep their zeros."""
        allowed = given["weights"] > 0
        base = self.base.restricted(self._inner(given))
        return replace(self, base=base, allowed=allowed, pseudo=self.pseudo * allowed)

    def check_start(self, given: Parameters) -> None:
        """As the components say."""
        self.base.check_start(self._inner(given))

    def _even(self) -> Floats:
        """Equal weights of the components that may have some."""
        used = np.ones((self.size, self._m)) if self.allowed is None else self.allowed.astype(np.float64)
        return np.asarray(used / used.sum(axis=1, keepdims=True))

    def draw(self, codes: NDArray[np.intp], parameters: Parameters, rng: np.random.Generator) -> list[NDArray[Any]]:
        """A component, then a step of it."""
        chosen = Categoricals(parameters["weights"]).draw(codes, rng)
        return self.base.draw(codes * self._m + chosen, self._inner(parameters), rng)

    def describe(self) -> dict[str, Any]:
        """As the components."""
        return self.base.describe()
