"""Random fits of every kind of model that leaves a choice open, drawn from a seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

import suffice as sf

#: From the name of a way to the objective that it has reached; "auto" is what the library chooses.
Fit = Callable[[str], float]


@dataclass(frozen=True)
class Instance:
    """One fit: what it is, the ways to it besides "auto", and how much of the objective a row may be lost."""

    title: str
    ways: tuple[str, ...]
    fit: Fit
    rows: int


def between(rng: np.random.Generator, low: float, high: float) -> float:
    """A number that is uniform on the logarithmic scale."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def markov(rng: np.random.Generator) -> Instance:
    """Pairs of a random graph, from a tree to a thicket; cards, strength and rows at random."""
    n = int(between(rng, 4, 30))
    cards = rng.integers(2, 5, n)
    order = rng.permutation(n).tolist()
    edges = {tuple(sorted(pair)) for pair in pairwise(order)}
    most = min(n * (n - 1) // 2, n + int(rng.integers(0, max(n // 2, 3))))
    while len(edges) < most:
        near = int(rng.integers(0, n - 1))
        far = min(n - 1, near + 1 + int(rng.integers(0, 4)))
        edges.add(tuple(sorted((order[near], order[far]))))
        most -= far == near
    pairs = sorted(edges)
    strength, rows = between(rng, 0.1, 1.5), int(between(rng, 200, 20_000))
    size = sum(int(cards[a] * cards[b]) for a, b in pairs)
    states = {f"v{k}": list(range(int(card))) for k, card in enumerate(cards)}
    scopes = [(f"v{a}", f"v{b}") for a, b in pairs]
    network = sf.MarkovNetwork(scopes, states=states).with_weights(rng.normal(0.0, strength, size))
    drawn = network.sample(rows, random_state=int(rng.integers(2**31)))
    data = {name: np.asarray(drawn[name]) for name in states}

    def fit(way: str) -> float:
        model = sf.MarkovNetwork(scopes, states=states, solver=way, tolerance=1e-7).fit(data)  # type: ignore[arg-type]
        return float(model.report_.objective)

    title = f"{n} variables, {len(pairs)} pairs, {size} cells, strength {strength:.2f}, {rows} rows"
    return Instance(title, ("ipf", "lbfgs", "newton-cg", "newton", "cg"), fit, rows)


def gaussian(rng: np.random.Generator) -> Instance:
    """A random graph with a precision that may be nearly singular."""
    p, degree = int(between(rng, 5, 120)), float(rng.uniform(1.5, 8.0))
    above = np.triu_indices(p, 1)
    chosen = rng.choice(len(above[0]), min(len(above[0]), max(1, int(p * degree / 2))), replace=False)
    edges = np.stack([above[0][chosen], above[1][chosen]], axis=1)
    K = np.zeros((p, p))
    K[edges[:, 0], edges[:, 1]] = rng.uniform(0.3, 1.0, len(edges)) * rng.choice([-1.0, 1.0], len(edges))
    K += K.T
    away = between(rng, 1e-4, 0.5)
    K = np.eye(p) - (1.0 - away) / np.linalg.eigvalsh(K)[0] * K
    rows = int(between(rng, 2.0, 50.0) * p) + 20
    x = rng.normal(size=(rows, p)) @ np.linalg.inv(np.linalg.cholesky(K))
    S, pairs = np.cov(x.T, bias=True), [(int(a), int(b)) for a, b in edges]

    def fit(way: str) -> float:
        graph = sf.GaussianGraph(pairs, nodes=range(p), solver=way)  # type: ignore[arg-type]
        return float(graph.fit(covariance=S, n=rows).report_.objective)

    title = f"{p} nodes, {len(pairs)} edges, least eigenvalue {away:.1e}, {rows} rows"
    return Instance(title, ("regression", "newton", "ipf", "lbfgs"), fit, rows)


def regression(rng: np.random.Generator) -> Instance:
    """Columns that depend on each other more or less, of scales that differ."""
    rows, columns = int(between(rng, 100, 30_000)), int(between(rng, 2, 120))
    columns = min(columns, max(2, rows // 20))
    family = str(rng.choice(["binomial", "poisson", "gamma", "gaussian"]))
    common, scale = rng.uniform(0.0, 2.0), np.exp(rng.normal(0.0, rng.uniform(0.0, 1.0), columns))
    X = (rng.normal(size=(rows, columns)) + common * rng.normal(size=(rows, 1))) * scale
    beta = rng.normal(0.0, 0.5 / math.sqrt(columns * (1.0 + common**2)), columns) / scale
    eta = X @ beta
    y = _responses(family, eta, rng)
    link = {"link": "log"} if family == "gamma" else {}

    def fit(way: str) -> float:
        model = sf.GLM(family, solver=way, tolerance=1e-7, **link)  # type: ignore[arg-type]
        return float(model.fit(X, y).report_.objective)

    title = f"{family}, {rows} x {columns}, common part {common:.1f}"
    return Instance(title, ("irls", "newton", "lbfgs", "newton-cg", "cg"), fit, rows)


def _responses(family: str, eta: Any, rng: np.random.Generator) -> Any:
    if family == "binomial":
        return (rng.random(len(eta)) < 1.0 / (1.0 + np.exp(-eta))).astype(float)
    if family == "poisson":
        return rng.poisson(np.exp(eta)).astype(float)
    return rng.gamma(2.0, np.exp(eta) / 2.0) if family == "gamma" else eta + rng.normal(size=len(eta))


def field(rng: np.random.Generator) -> Instance:
    """Sentences of words, most of them rare."""
    count, labels, words = int(between(rng, 5, 150)), int(rng.integers(2, 10)), int(between(rng, 50, 3_000))
    X, y = [], []
    for length in rng.integers(4, 30, count).tolist():
        tags = rng.integers(0, labels, length)
        names = np.minimum(rng.zipf(1.4, (length, 4)), words) + words * (rng.random((length, 4)) < 0.3) * tags[:, None]
        X.append([["b", *(f"{k}={word}" for k, word in enumerate(row))] for row in names.tolist()])
        y.append([f"y{tag}" for tag in tags.tolist()])
    variance = between(rng, 0.1, 10.0)

    def fit(way: str) -> float:
        prior = sf.Normal(variance=variance)
        model = sf.ChainCRF(prior=prior, solver=way, tolerance=1e-5, max_iter=2_000)  # type: ignore[arg-type]
        return float(model.fit(X, y).report_.objective)

    title = f"{count} sentences, {labels} labels, {words} words, prior variance {variance:.1f}"
    return Instance(title, ("lbfgs", "newton-cg"), fit, sum(map(len, y)))


PATHS = ("numpy", "compiled")


def on_path(run: Callable[[], float]) -> Fit:
    """A fit by NumPy, by compiled loops, or by what is chosen between them."""
    from suffice.kernels import choice

    def fit(way: str) -> float:
        with choice.force(way):
            return run()

    return fit


def hidden_markov(rng: np.random.Generator) -> Instance:
    """Ten steps of Baum-Welch: NumPy or compiled."""
    states, steps, sequences = int(rng.integers(2, 13)), int(between(rng, 100, 60_000)), int(between(rng, 1, 50))
    lengths = np.diff(np.linspace(0, steps, min(sequences, steps // 5) + 1).astype(int)).tolist()
    real = bool(rng.random() < 0.5)
    x: Any = rng.normal(size=steps) + rng.integers(0, 3, steps) if real else rng.integers(0, 6, steps)
    seed = int(rng.integers(2**31))

    def run() -> float:
        emission: Any = sf.Normal() if real else sf.Categorical(states=range(6))
        model = sf.HiddenMarkovModel(states, emission, max_iter=10, tolerance=0.0, random_state=seed)
        return float(model.fit(x, lengths=lengths).report_.objective)

    title = f"{states} states, {'real' if real else 'symbols'}, {steps} steps in {len(lengths)} sequences"
    return Instance(title, PATHS, on_path(run), steps)


def expectation(rng: np.random.Generator) -> Instance:
    """Five steps of EM in a tree of variables with missing values: NumPy or compiled."""
    n, rows = int(between(rng, 3, 30)), int(between(rng, 50, 20_000))
    structure = {f"v{k}": [f"v{int(rng.integers(0, k))}"] if k else [] for k in range(n)}
    codes = rng.integers(0, 3, (n, rows))
    data = {f"v{k}": np.array(["a", "b", "c", None], object)[row] for k, row in enumerate(codes)}
    for column in data.values():
        column[rng.random(rows) < 0.1] = None

    def run() -> float:
        return float(sf.BayesianNetwork(structure, max_iter=5, tolerance=0.0).fit(data).report_.objective)

    return Instance(f"{n} variables, {rows} rows", PATHS, on_path(run), rows)


def tables(rng: np.random.Generator) -> Instance:
    """A network from complete rows: NumPy or compiled."""
    n, rows = int(between(rng, 3, 40)), int(between(rng, 100, 1_000_000))
    structure = {f"v{k}": [f"v{at}" for at in rng.permutation(k)[: rng.integers(0, 4)].tolist()] for k in range(n)}
    data = {f"v{k}": rng.integers(0, 3, rows).astype(np.uint8) for k in range(n)}

    def run() -> float:
        return float(sf.BayesianNetwork(structure).fit(data).report_.objective)

    return Instance(f"{n} variables, {rows} rows", PATHS, on_path(run), rows)


def linear(rng: np.random.Generator) -> Instance:
    """A linear-Gaussian network: NumPy or compiled."""
    n, rows = int(between(rng, 2, 40)), int(between(rng, 50, 100_000))
    structure = {f"v{k}": [f"v{at}" for at in rng.permutation(k)[: rng.integers(0, 4)].tolist()] for k in range(n)}
    data = {f"v{k}": rng.normal(size=rows) for k in range(n)}

    def run() -> float:
        return float(sf.BayesianNetwork(structure).fit(data).report_.objective)

    return Instance(f"{n} columns, {rows} rows", PATHS, on_path(run), rows)


KINDS: dict[str, Callable[[np.random.Generator], Instance]] = {
    "MarkovNetwork": markov,
    "GaussianGraph": gaussian,
    "GLM": regression,
    "ChainCRF": field,
    "kernels, HiddenMarkovModel": hidden_markov,
    "kernels, EM": expectation,
    "kernels, tables": tables,
    "kernels, linear-Gaussian": linear,
}


def drawn(kind: str, seed: int, count: int) -> Iterator[Instance]:
    """Instances of a kind; each has a stream of its own, so that one can be drawn again without the others."""
    for at in range(count):
        yield KINDS[kind](np.random.default_rng([seed, list(KINDS).index(kind), at]))
