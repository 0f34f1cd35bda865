"""Questions to a network that is too large for exact inference, answered by Gibbs sampling with stated errors."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain
from suffice.engines.gibbs import Chains, GibbsSampler, track
from suffice.errors import EstimateError, SizeError, listing
from suffice.models.bayesian.nodes.contract import Columns
from suffice.models.bayesian.queries.sampled_answers import SampledTable
from suffice.models.evidence import read_evidence
from suffice.models.markov.approximate.law import INSTEAD, SampledFamily
from suffice.models.markov.approximate.options import GibbsSampling
from suffice.models.markov.approximate.rows import model_sampler, model_scopes
from suffice.table import Table

Floats = NDArray[np.float64]

#: Cells of the largest table that is estimated.
MOST_CELLS = 2**14


class SampledPosterior:
    """The law given evidence, as chains: those sites whose state is known keep it."""

    def __init__(self, inference: GibbsInference, given: Mapping[Any, Any] | None, random_state: Any) -> None:
        """Read the evidence; soft evidence is a factor more."""
        self.domain = inference.domain
        self._sampling = inference.sampling
        self._seed = np.random.default_rng(inference.seed if random_state is None else random_state)
        known = read_evidence(self.domain, given)
        number = {name: place for place, name in enumerate(self.domain.names)}
        self._known = {number[name]: code for name, code in known.states.items()}
        scopes, logs = list(inference.scopes), [inference.logs]
        for name, values in known.likelihoods.items():
            scopes.append((number[name],))
            with np.errstate(divide="ignore"):
                logs.append(np.log(values))
        self._sampler = GibbsSampler(self.domain.shape(self.domain.names), scopes, scan=self._sampling.scan)
        self._logs = np.concatenate(logs)
        self._sampler.load(self._logs)

    def _chains(self, count: int, generator: np.random.Generator) -> Chains:
        """Chains that have forgotten their start."""
        cards = np.array(self.domain.shape(self.domain.names))
        begin = (generator.random((len(cards), count)) * cards[:, None]).astype(np.uint8)
        clamped = np.zeros(len(cards), bool)
        for site, code in self._known.items():
            begin[site], clamped[site] = code, True
        chains = self._sampler.start(count, generator, states=begin, clamped=clamped if self._known else None)
        self._sampler.sweep(chains, self._sampling.burn_in)
        if (self._sampler.log_values(chains.states, self._logs) == -np.inf).any():
            raise EstimateError("The chains have not found a possible state. Give a longer burn_in, or other evidence.")
        return chains

    def table(self, names: tuple[Hashable, ...]) -> SampledTable:
        """P(names), axes in that order, with standard errors."""
        domain = self.domain.select(names)
        shape = domain.shape(names)
        size = math.prod(shape)
        if size > MOST_CELLS:
            raise SizeError(f"The table of {listing(names)} has {size:,} cells; by sampling at most {MOST_CELLS:,}.")
        sites = [self.domain.names.index(name) for name in names]
        lanes = np.arange(self._sampling.chains)

        def add(states: NDArray[np.uint8], out: Floats) -> None:
            cells = np.ravel_multi_index(tuple(states[sites].astype(np.intp)), shape)
            out[cells, lanes] += 1.0

        found = track(self._sampler, self._chains(len(lanes), self._seed), (add, size), self._sampling.draws)
        return self._labelled(domain, found.mean, found.error, float(found.effective_sample_size.min()))

    def tables(self) -> dict[Hashable, Table]:
        """P(variable) of every variable, from the same chains."""
        first = np.cumsum([0, *self.domain.shape(self.domain.names)])
        lanes = np.arange(self._sampling.chains)

        def add(states: NDArray[np.uint8], out: Floats) -> None:
            out[first[:-1, None] + states, lanes] += 1.0

        chains = self._chains(len(lanes), self._seed)
        found = track(self._sampler, chains, (add, int(first[-1])), self._sampling.draws)
        answers: dict[Hashable, Table] = {}
        for name, start, stop in zip(self.domain.names, first[:-1], first[1:], strict=True):
            part = slice(start, stop)
            size = float(found.effective_sample_size[part].min())
            answers[name] = self._labelled(self.domain.select([name]), found.mean[part], found.error[part], size)
        return answers

    def _labelled(self, domain: Domain, mean: Floats, error: Floats, size: float) -> SampledTable:
        shape = domain.shape(domain.names)
        count = self._sampling.chains * self._sampling.draws
        return SampledTable(domain, mean.reshape(shape), error.reshape(shape), size, count)

    def sample(self, n: int, *, random_state: Any = None) -> NDArray[np.uint8]:
        """Rows (n, variables): one chain each, after the burn-in."""
        seed = self._seed if random_state is None else np.random.default_rng(random_state)
        return self._chains(n, seed).states.T if n else np.zeros((0, len(self.domain)), np.uint8)


class GibbsInference:
    """Answers by chains; what needs a sum over all joint states is refused, with what to call instead."""

    def __init__(self, family: SampledFamily, weights: Floats, sampling: GibbsSampling, seed: Any) -> None:
        """Take the law; seed: where a question brings none."""
        self.domain = family.model.domain
        self.sampling, self.seed = sampling, seed
        self.scopes, self.logs = model_scopes(family.model), family.potentials(weights)
        self._family = family

    def condition(self, given: Mapping[Any, Any] | None, random_state: Any = None) -> SampledPosterior:
        """The law given evidence."""
        return SampledPosterior(self, given, random_state)

    def table(self, names: tuple[Hashable, ...], given: Mapping[Any, Any] | None, random_state: Any = None) -> Table:
        """P(names | given), with standard errors."""
        return self.condition(given, random_state).table(names)

    def tables(self, given: Mapping[Any, Any] | None, random_state: Any = None) -> dict[Hashable, Table]:
        """P(variable | given) of every variable, with standard errors."""
        return self.condition(given, random_state).tables()

    def predict_rows(self, columns: Columns, n: int, target: Hashable, threads: int | None) -> Floats:
        """P(target | row) (n, card), exact where all other columns are known: it depends on the neighbours alone."""
        names = [name for name in self.domain.names if name != target]
        missing = [name for name in names if name not in columns or (columns[name] < 0).any()]
        if missing:
            raise SizeError(
                f"{listing(missing)} have gaps, which only exact inference sums out. {self._family.refusal}"
            )
        states = np.zeros((len(self.domain), n), np.uint8)
        for place, name in enumerate(self.domain.names):
            if name != target:
                states[place] = columns[name]
        sampler = model_sampler(self._family.model)
        sampler.load(self.logs)
        return sampler.conditional(self.domain.names.index(target), states).T

    def _refuse(self) -> NoReturn:
        raise SizeError(f"{self._family.refusal} {INSTEAD}")

    def most_probable(self, given: Mapping[Any, Any] | None) -> NoReturn:
        """Not without exact inference."""
        self._refuse()

    def log_probability(self, given: Mapping[Any, Any] | None) -> NoReturn:
        """Not without exact inference."""
        self._refuse()

    def log_likelihood(self, columns: Columns, n: int, threads: int | None) -> NoReturn:
        """Not without exact inference."""
        self._refuse()
