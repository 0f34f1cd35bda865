"""Labels drawn from p(labels | example): Gibbs sampling of all examples at once, or exact draws from junction trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, Ints
from suffice.engines.chain_means import ChainMeans
from suffice.engines.gibbs import GibbsChains, GibbsSampler
from suffice.engines.tempering import Lengths, Replicas, fresh_means
from suffice.fitting.report import FEW, MIXED, MonteCarlo, distrust
from suffice.models.conditional_field.marginals import Marginals
from suffice.models.graph_crf.graphs import Graphs
from suffice.models.graph_crf.inference import GraphInference, Union, unary_scores
from suffice.models.graph_crf.objective import GraphObjective
from suffice.models.graph_crf.structure import CliqueStructure

#: Annealing: the first and the last temperature, how many there are, sweeps at each, and chains.
HOT, COLD, TEMPERATURES, SWEEPS, CHAINS = 2.0, 0.05, 30, 3, 6
#: Fresh chains that measure a fit, and how long they run.
JUDGES, JUDGING = 32, Lengths(burn_in=200, draws=20, thin=10, seconds=5.0)
#: Chains that answer for marginals, at most and at least, and numbers that they keep; how long they run.
MOST, FEWEST, NUMBERS = 64, 8, 1 << 23
ANSWERS = Lengths(burn_in=100, draws=400, seconds=20.0)


class GibbsLabels:
    """Chains of Gibbs sampling over the labels of some examples, side by side."""

    def __init__(
        self, structure: CliqueStructure, graphs: Graphs, examples: Ints, *, threads: int | None = None
    ) -> None:
        """See the class."""
        self.union = Union(structure, graphs, examples)
        self.sampler = GibbsSampler([structure.size] * self.union.count, self.union.scopes, threads=threads)

    def draw(
        self, logs: Floats, start: Ints | None, count: int, sweeps: int, rng: np.random.Generator
    ) -> tuple[Ints, GibbsChains]:
        """The labels (count, nodes) of chains after some sweeps, from labels (count, nodes) or at random."""
        self.sampler.load(logs)
        chains = self.sampler.start(count, rng, states=None if start is None else start.T)
        self.sampler.sweep(chains, sweeps)
        return chains.states.T.astype(np.int64), chains

    def marginals(
        self, logs: Floats, rng: np.random.Generator, lengths: Lengths
    ) -> tuple[ChainMeans, GibbsChains | Replicas]:
        """Shares of the labels of all nodes (nodes * K,), row by row, by fresh chains, and these chains."""
        size = self.union.structure.size
        first, cells = size * np.arange(self.union.count), size * self.union.count
        count = int(np.clip(NUMBERS // max(cells, 1), FEWEST, MOST))
        chains = np.arange(count)
        self.sampler.load(logs)

        def add(states: NDArray[np.uint8], out: Floats) -> None:
            out[first[:, None] + states, chains] += 1.0

        return fresh_means(self.sampler, logs, lambda: self.sampler.start(count, rng), (add, cells), lengths, rng)

    def annealed(self, logs: Floats, start: Ints, rng: np.random.Generator) -> Ints:
        """Labels (chains + 1, nodes) of low energy: the start, and where chains go that cool down from it."""
        chains = self.sampler.start(CHAINS, rng, states=np.tile(start[:, None], (1, CHAINS)))
        for temperature in np.geomspace(HOT, COLD, TEMPERATURES):
            self.sampler.load(logs / temperature)
            self.sampler.sweep(chains, SWEEPS)
        self.sampler.load(logs * 1e4)  # So cold that only the best label of a node is drawn.
        self.sampler.sweep(chains, 20)
        return np.concatenate([start[None], chains.states.T.astype(np.int64)])


def slope_by_chains(objective: GraphObjective, x: Floats) -> tuple[Floats, Floats, MonteCarlo]:
    """The slope (k,) of the log-likelihood and the prior, with wide examples measured by fresh chains, and its errors.

    The chains start at random labels and at cold ones, not where those of the fit stood: thrown into the distribution
    of a picture whose labels hang together, they may stay where their first sweeps lead, and R-hat then says so.
    """
    if objective.apart is None:
        raise AssertionError("GibbsChains measure examples that are too wide.")
    structure, (graphs, codes, shares) = objective.structure, objective.apart
    judge = GibbsLabels(structure, graphs, np.arange(len(graphs)), threads=objective.engine.threads)
    scores = structure.scores(x, graphs)
    logs = judge.union.flat(unary_scores(structure, graphs, scores), scores)
    rng = np.random.default_rng(0)
    judge.sampler.load(logs)

    def add(states: NDArray[np.uint8], out: Floats) -> None:
        for chain in range(states.shape[1]):
            out[:, chain] += structure.observed(graphs, states[:, chain].astype(np.int64), shares)

    functions = (add, structure.length)
    means, _ = fresh_means(judge.sampler, logs, lambda: judge.sampler.start(JUDGES, rng), functions, JUDGING, rng)
    slope = objective.narrow(x)[1] + structure.observed(graphs, codes, shares) - means.mean
    slope = np.asarray(slope - objective.penalties.smooth(x)[1])
    size, r_hat = means.mixing()
    draws, largest = JUDGING.draws, float(np.max(means.error, initial=0.0))
    chains = MonteCarlo(JUDGES, draws, largest, min(size, float(JUDGES * draws)), r_hat, levels=means.levels)
    return slope, means.error, chains


@dataclass(frozen=True, eq=False)
class SampledNodes:
    """What chains say about labels of nodes: errors (nodes, K), and effective size and R-hat by example (n,).

    All are 0, infinite and 1 where inference was exact.
    """

    errors: Floats
    sizes: Floats
    r_hats: Floats

    def words(self) -> str:
        """What is against the examples that mix least; empty where nothing is."""
        worst = int(np.argmax(np.where(self.sizes < FEW, np.inf, self.r_hats)))
        against = distrust(float(self.sizes[worst]), MOST * ANSWERS.draws, r_hat=float(self.r_hats[worst]))
        return f"of example {worst} {against}" if against else ""


class SampledMarginals(Marginals):
    """Marginals by Gibbs sampling: as `Marginals`, with `standard_errors` (nodes, label) and what the chains say.

    `effective_sample_size` is the number of independent draws that would be as good, at the node with the fewest; an
    `r_hat` near 1 says that the chains agree, one above 1.05 that they do not. Parts of the array have none of these.
    """

    standard_errors: Floats | None
    effective_sample_size: float | None
    r_hat: float | None

    @classmethod
    def drawn(
        cls, values: Floats, labels: tuple[Any, ...], sampled: SampledNodes, example: int, nodes: tuple[int, int]
    ) -> SampledMarginals:
        """The marginals of one example, whose nodes have these places."""
        marginals = cls(values, labels)
        marginals.standard_errors = sampled.errors[slice(*nodes)]
        marginals.effective_sample_size, marginals.r_hat = float(sampled.sizes[example]), float(sampled.r_hats[example])
        return marginals

    def __array_finalize__(self, source: Any) -> None:
        """What is known about an array is not known about its parts."""
        super().__array_finalize__(source)
        self.standard_errors = self.effective_sample_size = self.r_hat = None


def sampled_nodes(
    structure: CliqueStructure,
    graphs: Graphs,
    scores: Sequence[Floats],
    wide: Ints,
    table: Floats,
    rng: np.random.Generator,
    threads: int | None = None,
) -> tuple[SampledNodes, dict[int, float]]:
    """Write marginals of the nodes of wide examples by Gibbs sampling into a table (nodes, K).

    All examples run side by side; those whose chains do not mix are done again, each by itself, where replicas may take
    over. Also returned: the examples that took replicas, with how far apart their rungs were.
    """
    unary = unary_scores(structure, graphs, scores)
    sampled = SampledNodes(np.zeros(table.shape), np.full(len(graphs), np.inf), np.ones(len(graphs)))
    tempered: dict[int, float] = {}

    def measure(examples: Ints, lengths: Lengths) -> None:
        labels = GibbsLabels(structure, graphs, examples, threads=threads)
        means, walk = labels.marginals(labels.union.flat(unary, scores), rng, lengths)
        places, size = labels.union.nodes, structure.size
        table[places], sampled.errors[places] = means.mean.reshape(-1, size), means.error.reshape(-1, size)
        for example in examples.tolist():
            own = np.repeat(labels.union.owner == example, size)
            sampled.sizes[example], sampled.r_hats[example] = means.mixing(own)
            if isinstance(walk, Replicas):
                tempered[example] = walk.step

    measure(wide, replace(ANSWERS, tempering=False))
    for example in wide[sampled.r_hats[wide] > MIXED].tolist():
        measure(np.array([example]), ANSWERS)
    return sampled, tempered


def exact_draws(inference: GraphInference, scores: Sequence[Floats], count: int, rng: np.random.Generator) -> Ints:
    """Independent draws (count, nodes); examples too wide are left at -1."""
    graphs, size = inference.graphs, inference.structure.size
    unary = unary_scores(inference.structure, graphs, scores)
    codes = np.full((count, int(graphs.offsets[-1])), -1, np.int64)
    chosen = inference.chosen
    alone = np.isin(graphs.parts[0].owner, chosen.alone)
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
