"""Labels drawn from p(labels | example): Gibbs sampling of all examples at once, or exact draws from junction trees."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from suffice.engines.chain_means import track
from suffice.engines.gibbs import Chains, GibbsSampler
from suffice.models.graph_crf.graphs import Graphs
from suffice.models.graph_crf.inference import Inference, Union, unary_scores
from suffice.models.graph_crf.objective import GraphObjective
from suffice.models.graph_crf.structure import Structure
from suffice.report import MonteCarlo

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Annealing: the first and the last temperature, how many there are, sweeps at each, and chains.
HOT, COLD, TEMPERATURES, SWEEPS, CHAINS = 2.0, 0.05, 30, 3, 6
#: Fresh chains that measure a fit, draws of each, sweeps before them, and temperatures on the way down.
JUDGES, DRAWS, BEFORE, STAIRS = 32, 20, 100, 20


class GibbsLabels:
    """Chains of Gibbs sampling over the labels of some examples, side by side."""

    def __init__(self, structure: Structure, graphs: Graphs, examples: Ints, *, threads: int | None = None) -> None:
        """See the class."""
        self.union = Union(structure, graphs, examples)
        self.sampler = GibbsSampler([structure.size] * self.union.count, self.union.scopes, threads=threads)

    def draw(
        self, logs: Floats, start: Ints | None, count: int, sweeps: int, rng: np.random.Generator
    ) -> tuple[Ints, Chains]:
        """The labels (count, nodes) of chains after some sweeps, from labels (count, nodes) or at random."""
        self.sampler.load(logs)
        chains = self.sampler.start(count, rng, states=None if start is None else start.T)
        self.sampler.sweep(chains, sweeps)
        return chains.states.T.astype(np.int64), chains

    def marginals(
        self, logs: Floats, tables: list[Floats], rng: np.random.Generator, *, chains: int = 64, sweeps: int = 200
    ) -> None:
        """Write shares of the cells over draws, the first fifth left out, into the tables of the templates."""
        _, running = self.draw(logs, None, chains, sweeps // 5, rng)
        total = np.zeros(len(logs))
        for _ in range(sweeps):
            self.sampler.sweep(running)
            total += self.sampler.shares(running)
        self.union.write(total / sweeps, tables)

    def annealed(self, logs: Floats, start: Ints, rng: np.random.Generator) -> Ints:
        """Labels (chains + 1, nodes) of low energy: the start, and where chains go that cool down from it."""
        chains = self.sampler.start(CHAINS, rng, states=np.tile(start[:, None], (1, CHAINS)))
        for temperature in np.geomspace(HOT, COLD, TEMPERATURES):
            self.sampler.load(logs / temperature)
            self.sampler.sweep(chains, SWEEPS)
        self.sampler.load(logs * 1e4)  # So cold that only the best label of a node is drawn.
        self.sampler.sweep(chains, 20)
        return np.concatenate([start[None], chains.states.T.astype(np.int64)])


def slope_by_chains(objective: GraphObjective, x: Floats) -> tuple[Floats, MonteCarlo]:
    """The slope (k,) of the log-likelihood and the prior, with wide examples measured by fresh chains.

    The chains start at random labels, not where those of the fit stood, and cool down to the law slowly: thrown into
    the law of a picture whose labels hang together, they would stay where their first sweeps lead.
    """
    if objective.apart is None:
        raise AssertionError("Chains measure examples that are too wide.")
    structure, (graphs, codes, shares) = objective.structure, objective.apart
    judge = GibbsLabels(structure, graphs, np.arange(len(graphs)), threads=objective.engine.threads)
    scores = structure.scores(x, graphs)
    logs = judge.union.flat(unary_scores(structure, graphs, scores), scores)
    chains = judge.sampler.start(JUDGES, np.random.default_rng(0))
    for share in np.linspace(1.0 / STAIRS, 1.0, STAIRS):
        judge.sampler.load(share * logs)
        judge.sampler.sweep(chains, BEFORE // STAIRS)
    judge.sampler.sweep(chains, BEFORE)

    def add(states: NDArray[np.uint8], out: Floats) -> None:
        for chain in range(states.shape[1]):
            out[:, chain] += structure.observed(graphs, states[:, chain].astype(np.int64), shares)

    means = track(judge.sampler, chains, (add, structure.length), DRAWS)
    slope = objective.narrow(x)[1] + structure.observed(graphs, codes, shares) - means.mean
    slope = np.asarray(slope - objective.penalties.smooth(x)[1])
    found = MonteCarlo(
        chains=JUDGES,
        draws=DRAWS,
        error=float(np.max(means.error, initial=0.0)),
        effective_sample_size=float(np.min(means.effective_sample_size, initial=np.inf)),
        r_hat=float(np.max(means.r_hat, initial=1.0)),
    )
    return slope, found


def exact_draws(inference: Inference, scores: Sequence[Floats], count: int, rng: np.random.Generator) -> Ints:
    """Independent draws (count, nodes); examples too wide are left at -1."""
    graphs, size = inference.graphs, inference.structure.size
    unary = unary_scores(inference.structure, graphs, scores)
    codes = np.full((count, int(graphs.offsets[-1])), -1, np.int64)
    routes = inference.routes
    alone = np.isin(graphs.parts[0].owner, routes.alone)
    if alone.any():
        shares = np.exp(unary[alone] - unary[alone].max(axis=1, keepdims=True))
        sums = np.cumsum(shares, axis=1)
        aim = rng.random((count, len(shares), 1)) * sums[:, -1:]
        codes[:, alone] = np.minimum((sums <= aim).sum(axis=2), size - 1)
    chains, steps = inference.chains(unary, scores), inference.steps
    if chains is not None and steps is not None:
        codes[:, steps.nodes] = chains.sample(count, random_state=rng, threads=inference.threads)
    for tree in inference.trees:
        tree.draw(unary, scores, codes, rng)
    return codes
