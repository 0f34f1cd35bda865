"""Questions to a network that is too large for exact inference, answered by Gibbs sampling with stated errors."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, RandomState
from suffice.domain import Domain
from suffice.engines.chain_means import ChainMeans, Functions
from suffice.engines.gibbs import GibbsChains, GibbsSampler
from suffice.engines.tempering import Replicas, climbed, fresh_means
from suffice.errors import EstimateError, SamplingWarning, SizeError, listing, warn
from suffice.families.base import generator
from suffice.fitting.report import distrust
from suffice.models.bayesian.nodes.contract import Columns
from suffice.models.bayesian.queries.sampled_answers import SampledTable, certain_cells, possible_states
from suffice.models.evidence import RowDistributions, read_evidence
from suffice.models.markov.approximate.family import INSTEAD, SampledFamily
from suffice.models.markov.approximate.options import GibbsSampling
from suffice.models.markov.approximate.rows import model_sampler, model_scopes
from suffice.table import Table

#: Cells of the largest table that is estimated.
MOST_CELLS = 2**14
#: Variables that are looked at to see whether rows may be drawn by single chains.
WITNESSES = 64
#: Rows that are drawn at a time.
MOST_LANES = 1 << 16


class SampledPosterior:
    """The distribution given evidence, as chains: those sites whose state is known keep it."""

    def __init__(self, inference: GibbsInference, given: Mapping[Any, Any] | None, random_state: Any) -> None:
        """Read the evidence; soft evidence is a factor more."""
        self.domain = inference.domain
        self._sampling = inference.sampling
        self._seed = generator(inference.seed if random_state is None else random_state)
        known = read_evidence(self.domain, given)
        number = {name: site for site, name in enumerate(self.domain.names)}
        self._known = {number[name]: code for name, code in known.states.items()}
        scopes, logs = list(inference.scopes), [inference.logs]
        for name, values in known.likelihoods.items():
            scopes.append((number[name],))
            with np.errstate(divide="ignore"):
                logs.append(np.log(values))
        self._possible = possible_states(self.domain, known)
        self._sampler = GibbsSampler(self.domain.shape(self.domain.names), scopes, scan=self._sampling.scan)
        self._logs = np.concatenate(logs)
        self._sampler.load(self._logs)

    def _start(self, count: int, stream: np.random.Generator) -> GibbsChains:
        """Chains at random states, but for those that are known."""
        cards = np.array(self.domain.shape(self.domain.names))
        begin = (stream.random((len(cards), count)) * cards[:, None]).astype(np.uint8)
        clamped = np.zeros(len(cards), bool)
        for site, code in self._known.items():
            begin[site], clamped[site] = code, True
        return self._sampler.start(count, stream, states=begin, clamped=clamped if self._known else None)

    def _means(self, functions: Functions) -> tuple[ChainMeans, GibbsChains | Replicas]:
        """Means of some functions of the states, by chains that have forgotten their start, and these chains."""
        count, lengths = self._sampling.chains, self._sampling.lengths
        means, walk = fresh_means(
            self._sampler, self._logs, lambda: self._start(count, self._seed), functions, lengths, self._seed
        )
        self._check(walk.states)
        return means, walk

    def _check(self, states: NDArray[np.uint8]) -> None:
        if (self._sampler.log_values(states, self._logs) == -np.inf).any():
            raise EstimateError("The chains have not found a possible state. Give a longer burn_in, or other evidence.")

    def table(self, names: tuple[Hashable, ...]) -> SampledTable:
        """P(names), axes in that order, with standard errors."""
        domain = self.domain.select(names)
        shape = domain.shape(names)
        size = math.prod(shape)
        if size > MOST_CELLS:
            raise SizeError(f"The table of {listing(names)} has {size:,} cells; by sampling at most {MOST_CELLS:,}.")
        sites = [self.domain.names.index(name) for name in names]
        chains = np.arange(self._sampling.chains)

        def add(states: NDArray[np.uint8], out: Floats) -> None:
            cells = np.ravel_multi_index(tuple(states[sites].astype(np.intp)), shape)
            out[cells, chains] += 1.0

        table = self._labelled(domain, self._means((add, size))[0], slice(None))
        table.warn(f"P({', '.join(map(str, names))})")
        return table

    def tables(self) -> dict[Hashable, Table]:
        """P(variable) of every variable, from the same chains."""
        names = self.domain.names
        first, chains = np.cumsum([0, *self.domain.shape(names)]), np.arange(self._sampling.chains)

        def add(states: NDArray[np.uint8], out: Floats) -> None:
            out[first[:-1, None] + states, chains] += 1.0

        means, _ = self._means((add, int(first[-1])))
        answers = {
            name: self._labelled(self.domain.select([name]), means, slice(start, stop))
            for name, start, stop in zip(names, first[:-1], first[1:], strict=True)
        }
        worst = max(names, key=lambda name: (answers[name].r_hat or 1.0, -answers[name].effective_sample_size))
        answers[worst].warn(f"P({worst})")
        return dict(answers)

    def _witnesses(self) -> tuple[ChainMeans, GibbsChains | Replicas]:
        """Mean codes of some variables, enough to see whether chains mix, and these chains."""
        open_sites = [site for site in range(len(self.domain)) if site not in self._known]
        chosen = np.array(open_sites)[np.linspace(0, len(open_sites) - 1, min(len(open_sites), WITNESSES)).astype(int)]

        def add(states: NDArray[np.uint8], out: Floats) -> None:
            out += states[chosen]

        return self._means((add, len(chosen)))

    def _labelled(self, domain: Domain, means: ChainMeans, part: slice) -> SampledTable:
        names, count = domain.names, self._sampling.chains * self._sampling.draws
        mean, error = means.mean[part], means.error[part]
        here = ChainMeans(mean, error, means.effective_sample_size[part], means.r_hat[part], means.draws, means.levels)
        size, r_hat = here.mixing()
        size = min(size, float(count))
        # A cell that all chains were in, or none, may have missed about one draw in the effective number.
        error = np.where((mean <= 0.0) | (mean >= 1.0), 1.0 / max(size, 1.0), error)
        error = np.where(certain_cells(domain, names, self._possible), 0.0, error)
        shape = domain.shape(names)
        return SampledTable(
            domain, mean.reshape(shape), error.reshape(shape), size, count, r_hat=r_hat, levels=means.levels
        )

    def sample(self, n: int, *, random_state: Any = None) -> NDArray[np.uint8]:
        """Rows (n, variables): one chain each, after the burn-in; replicas where single chains do not mix."""
        seed = self._seed if random_state is None else generator(random_state)
        if not n:
            return np.zeros((0, len(self.domain)), np.uint8)
        if len(self._known) == len(self.domain):
            return self._start(n, seed).states.T
        means, walk = self._witnesses()
        size, r_hat = means.mixing()
        if words := distrust(size, self._sampling.chains * self._sampling.draws, r_hat=r_hat):
            warn(
                f"The rows drawn are not to be relied on: measured on {self._sampling.chains} chains, {words}.",
                SamplingWarning,
            )
        parts = []
        for start in range(0, n, MOST_LANES):
            chains = self._start(min(MOST_LANES, n - start), seed)
            if isinstance(walk, Replicas):
                burn_in = self._sampling.burn_in
                parts.append(climbed(self._sampler, self._logs, chains, burn_in, seed, walk.step)[1].states)
            else:
                self._sampler.sweep(chains, self._sampling.burn_in)
                parts.append(chains.states)
        states = np.concatenate(parts, axis=1)
        self._check(states)
        return states.T


class GibbsInference:
    """Answers by chains; what needs a sum over all joint states is refused, with what to call instead."""

    def __init__(self, family: SampledFamily, weights: Floats, sampling: GibbsSampling, seed: RandomState) -> None:
        """Take the distribution; seed: where a question brings none."""
        self.domain = family.model.domain
        self.sampling, self.seed = sampling, seed
        self.scopes, self.logs = model_scopes(family.model), family.potentials(weights)
        self._family = family

    def condition(self, given: Mapping[Any, Any] | None, random_state: object = None) -> SampledPosterior:
        """The distribution given evidence."""
        return SampledPosterior(self, given, random_state)

    def table(self, names: tuple[Hashable, ...], given: Mapping[Any, Any] | None, random_state: object = None) -> Table:
        """P(names | given), with standard errors."""
        return self.condition(given, random_state).table(names)

    def tables(self, given: Mapping[Any, Any] | None, random_state: object = None) -> dict[Hashable, Table]:
        """P(variable | given) of every variable, with standard errors."""
        return self.condition(given, random_state).tables()

    def predict_rows(self, columns: Columns, n: int, target: Hashable, threads: int | None) -> RowDistributions:
        """P(target | row) (n, card), exact where all other columns are known: it depends on the neighbours alone."""
        names = [name for name in self.domain.names if name != target]
        missing = [name for name in names if name not in columns or (columns[name] < 0).any()]
        if missing:
            raise SizeError(
                f"{listing(missing)} have missing values, which only exact inference sums out. {self._family.refusal}"
            )
        states = np.zeros((len(self.domain), n), np.uint8)
        for site, name in enumerate(self.domain.names):
            if name != target:
                states[site] = columns[name]
        sampler = model_sampler(self._family.model)
        sampler.load(self.logs)
        return sampler.conditional(self.domain.names.index(target), states).T, np.ones(n, dtype=bool)

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
