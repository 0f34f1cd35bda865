"""Whole fits under two or more versions of the compiled loops, in turns: which of them is worth its lines.

Speed of a loop alone says little about a fit: reading, scores, the M-step and the report take their share. So a way to
write a loop is judged here by the CPU time of the whole fit, from data to report, of one thread:

    git worktree add ../before REVISION
    python -m benchmarks.kernel_choice before=../before/src now=src

Every version runs in a process of its own. The processes take turns, the minimum of the repeats counts, and a first
fit, which loads or compiles the loops, is not counted. Data are drawn from the seed KERNEL_CHOICE_SEED, 0 by default.
The last column is the largest relative difference between log-likelihoods: all versions must give the same fit.
`kernel_choice.md` holds the tables that decided what the loops are written in.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

Fit = Callable[[], float]
#: What the data are drawn from.
SEED = int(os.environ.get("KERNEL_CHOICE_SEED", "0"))
ROOT = Path(__file__).resolve().parent.parent


def _steps(states: int, lengths: Any, rng: Any) -> Any:
    """A chain of states that tends to stay, one sequence after another."""
    upper = (0.9 * np.eye(states) + 0.1 * rng.dirichlet(np.ones(states), states)).cumsum(axis=1)
    draws, path = rng.random(int(lengths.sum())), np.empty(int(lengths.sum()), np.int64)
    state = 0
    for t, draw in enumerate(draws):
        state = path[t] = min(int(np.searchsorted(upper[state], draw)), states - 1)
    return path


def hidden_markov(states: int, sequences: int, length: int, law: str) -> Fit:
    """Ten steps of Baum-Welch from a start that is given."""
    import suffice as sf

    rng = np.random.default_rng(SEED)
    lengths = rng.integers(length // 2, length + 1, sequences) if sequences > 1 else np.array([length])
    path = _steps(states, lengths, rng)
    transitions = 0.7 * np.eye(states) + 0.3 * rng.dirichlet(np.ones(states), states)
    emission: Any
    start: Any
    if law == "normal":
        rows: Any = 2.0 * path + rng.normal(size=len(path))
        emission, start = sf.Normal(), [sf.Normal(2.0 * k, 2.0) for k in range(states)]
    else:
        laws = rng.dirichlet(np.full(20, 0.3), states)
        rows = np.minimum((rng.random(len(path))[:, None] > laws.cumsum(axis=1)[path]).sum(axis=1), 19)
        emission, start = sf.Categorical(states=range(20)), rng.dirichlet(np.ones(20), states)

    def fit() -> float:
        initial = np.full(states, 1 / states)
        options = {"initial": initial, "transitions": transitions, "emissions": start, "max_iter": 10, "tolerance": 0.0}
        model = sf.HiddenMarkovModel(states, emission, threads=1, **options)
        return float(model.fit(rows, lengths=lengths.tolist()).report_.log_likelihood)

    return fit


def chain_crf(labels: int, sequences: int, features: int, solver: str = "lbfgs") -> Fit:
    """Thirty iterations of L-BFGS, or three epochs of stochastic ascent; each step has seven of the features."""
    import suffice as sf

    rng = np.random.default_rng(SEED)
    lengths = rng.integers(8, 41, sequences)
    path = _steps(labels, lengths, rng)
    words = np.minimum(rng.zipf(1.3, (len(path), 6)), features) * labels + path[:, None] * (
        rng.random((len(path), 1)) < 0.5
    )
    steps = [["b", *(f"{k}={word}" for k, word in enumerate(row))] for row in words.tolist()]
    bounds = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    X = [steps[a:b] for a, b in pairwise(bounds)]
    y = [[f"y{k}" for k in path[a:b].tolist()] for a, b in pairwise(bounds)]

    def fit() -> float:
        most = 30 if solver == "lbfgs" else 3
        options: dict[str, Any] = {
            "solver": solver,
            "max_iter": most,
            "tolerance": 0.0,
            "threads": 1,
            "random_state": 0,
        }
        return float(sf.ChainCRF(sf.Normal(variance=1.0), **options).fit(X, y).report_.log_likelihood)

    return fit


def network_em() -> Fit:
    """Ten steps of EM in ALARM, a fifth of the cells missing."""
    import suffice as sf
    from benchmarks.alarm import CARDS, FAMILIES, draw
    from benchmarks.network import Network

    network = Network(tuple(CARDS), tuple(family[:-1] for family in FAMILIES))
    codes = draw(3000)
    gone = np.random.default_rng(1).random(codes.shape) < 0.2
    columns = {}
    for at, name in enumerate(network.names):
        states = np.array([*network.states(at), None], object)
        columns[name] = states[np.where(gone[at], len(states) - 1, codes[at])]

    def fit() -> float:
        model = sf.BayesianNetwork(network.structure, max_iter=10, tolerance=0.0, threads=1)
        return float(model.fit(columns).report_.log_likelihood)

    return fit


def calibration() -> Fit:
    """All marginals of ALARM given three observations, for 300 cases of evidence."""
    import suffice as sf
    from benchmarks.alarm import CARDS, FAMILIES, draw
    from benchmarks.network import Network

    network = Network(tuple(CARDS), tuple(family[:-1] for family in FAMILIES))
    codes = draw(2000)
    states = [np.array(network.states(at), object) for at in range(len(network.names))]
    columns = {name: states[at][codes[at]] for at, name in enumerate(network.names)}
    model = sf.BayesianNetwork(network.structure, prior=1.0).fit(columns)
    seen = np.random.default_rng(1).integers(0, len(network.names), (300, 3))

    def fit() -> float:
        total = 0.0
        for case, nodes in enumerate(seen.tolist()):
            evidence = {network.names[at]: columns[network.names[at]][case] for at in nodes}
            asked = [name for name in network.names if name not in evidence]
            total += sum(float(model.query([name], evidence).values[0]) for name in asked[:5])
        return total

    return fit


def markov_network(side: int) -> Fit:
    """A grid of three-state variables, fitted by L-BFGS to a law drawn at random."""
    import suffice as sf

    rng = np.random.default_rng(SEED)
    rows = rng.integers(0, 3, (4000, side * side))
    rows[:, 1:] = np.where(rng.random(rows[:, 1:].shape) < 0.4, rows[:, :-1], rows[:, 1:])
    names = [f"v{k}" for k in range(side * side)]
    edges = [(names[k], names[k + 1]) for k in range(side * side) if (k + 1) % side]
    edges += [(names[k], names[k + side]) for k in range(side * (side - 1))]
    columns = {name: rows[:, k] for k, name in enumerate(names)}

    def fit() -> float:
        model = sf.MarkovNetwork(edges, solver="lbfgs", max_iter=60, tolerance=1e-9, check_existence=False)
        return float(model.fit(columns).report_.log_likelihood)

    return fit


def ising(solver: str) -> Fit:
    """A lattice of 20 x 20 spins by sampling or pseudo-likelihood."""
    import suffice as sf

    rng = np.random.default_rng(SEED)
    edges = sf.MarkovNetwork.grid_edges(20, 20)
    nodes: list[Any] = sorted({node for edge in edges for node in edge}, key=str)
    spins = rng.choice([-1, 1], (2000, len(nodes)))

    def fit() -> float:
        model = sf.MarkovNetwork.ising(edges, solver=solver, max_iter=30, random_state=0)
        model.fit(spins, columns=nodes)
        return float(np.sum(model.weights_))

    return fit


def linear_gaussian(rows: int, nodes: int) -> Fit:
    """A linear-Gaussian network from rows in memory: cross-products of all columns in double-double."""
    import suffice as sf

    rng = np.random.default_rng(SEED)
    names = [f"x{k}" for k in range(nodes)]
    data = rng.normal(10.0, 1.0, (rows, nodes))
    edges = [(names[a], names[b]) for b in range(1, nodes) for a in range(max(0, b - 3), b)]
    columns = {name: data[:, k].copy() for k, name in enumerate(names)}

    def fit() -> float:
        return float(sf.BayesianNetwork(edges, threads=1).fit(columns).report_.log_likelihood)

    return fit


def gaussian_graph(rows: int, nodes: int) -> Fit:
    """A Gaussian graph on a ring, from rows in memory."""
    import suffice as sf

    data = np.random.default_rng(SEED).normal(10.0, 1.0, (rows, nodes))
    names = [f"x{k}" for k in range(nodes)]
    edges = [(names[k], names[(k + 1) % nodes]) for k in range(nodes)]
    columns = {name: data[:, k].copy() for k, name in enumerate(names)}

    def fit() -> float:
        return float(sf.GaussianGraph(edges).fit(columns).report_.log_likelihood)

    return fit


def multivariate_normal(rows: int, columns: int) -> Fit:
    """The mean and the covariance of an array, rows with weights."""
    import suffice as sf

    rng = np.random.default_rng(SEED)
    data, weights = rng.normal(10.0, 1.0, (rows, columns)), rng.random(rows)

    def fit() -> float:
        return float(sf.MultivariateNormal().fit(data, sample_weight=weights).report_.log_likelihood)

    return fit


PROBLEMS: dict[str, Callable[[], Fit]] = {
    "HMM, 2 states, normal, 1,000 sequences of 50-100": lambda: hidden_markov(2, 1000, 100, "normal"),
    "HMM, 2 states, symbols, 1,000 sequences of 50-100": lambda: hidden_markov(2, 1000, 100, "symbols"),
    "HMM, 10 states, normal, 400 sequences of 50-100": lambda: hidden_markov(10, 400, 100, "normal"),
    "HMM, 10 states, symbols, 40 sequences of 500-1,000": lambda: hidden_markov(10, 40, 1000, "symbols"),
    "HMM, 50 states, symbols, 200 sequences of 50-100": lambda: hidden_markov(50, 200, 100, "symbols"),
    "HMM, 10 states, normal, one sequence of 20,000": lambda: hidden_markov(10, 1, 20_000, "normal"),
    "chain CRF, 4 labels, 1,500 sequences": lambda: chain_crf(4, 1500, 300),
    "chain CRF, 20 labels, 1,000 sequences": lambda: chain_crf(20, 1000, 300),
    "chain CRF, 20 labels, 300 sequences, sgd": lambda: chain_crf(20, 300, 300, "sgd"),
    "EM in ALARM, 3,000 rows": network_em,
    "marginals of ALARM, 300 cases": calibration,
    "Markov network, 5 x 5 grid of 3 states": lambda: markov_network(5),
    "Ising 20 x 20, sampled": lambda: ising("sml"),
    "Ising 20 x 20, pseudo-likelihood": lambda: ising("pseudolikelihood"),
    "linear-Gaussian network, 300,000 x 12": lambda: linear_gaussian(300_000, 12),
    "Gaussian graph, 300,000 x 12": lambda: gaussian_graph(300_000, 12),
    "multivariate normal, 300,000 x 12, weighted": lambda: multivariate_normal(300_000, 12),
}


def work(name: str) -> None:
    """Fit once for each line that comes in; write the CPU seconds and the value of the fit."""
    warnings.simplefilter("ignore")
    fit = PROBLEMS[name]()
    for _ in sys.stdin:
        begin = time.process_time()
        value = fit()
        print(time.process_time() - begin, repr(value), flush=True)


class Version:
    """One process with one version of the package."""

    def __init__(self, source: str, problem: str) -> None:
        """Start it."""
        single = {"SUFFICE_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        path = os.pathsep.join((str(Path(source).resolve()), str(ROOT)))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.kernel_choice", "--work", problem],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **single, "SUFFICE_KERNELS": "compiled", "PYTHONPATH": path},
        )

    def fit(self) -> tuple[float, float]:
        """CPU seconds and value."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        seconds, value = self._process.stdout.readline().split()
        return float(seconds), float(value)

    def end(self) -> None:
        """Let it end."""
        self._process.communicate()


def compare(versions: dict[str, str], problem: str, repeats: int) -> str:
    """One row of the table: milliseconds of each version, the others as a multiple of the first, and the difference."""
    running = [Version(source, problem) for source in versions.values()]
    values = np.array([version.fit()[1] for version in running])
    seconds = np.array([[version.fit()[0] for version in running] for _ in range(repeats)]).min(axis=0)
    for version in running:
        version.end()
    apart = float(np.abs(values - values[0]).max() / max(abs(values[0]), 1e-300))
    times = [f"{1e3 * seconds[0]:,.0f}", *(f"{1e3 * s:,.0f} ({s / seconds[0]:.2f})" for s in seconds[1:])]
    return f"| {problem} | {' | '.join(times)} | {apart:.0e} |"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("versions", nargs="*", metavar="NAME=FOLDER", help="the folder that holds the package")
    parser.add_argument("--only", default="", metavar="WORD", help="problems whose name holds this word")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--work", metavar="PROBLEM", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given.work)
        return
    versions = dict(version.split("=", 1) for version in given.versions) or {"now": "src"}
    print(f"| CPU ms of a whole fit | {' | '.join(versions)} | difference |")
    print(f"|---|{'---|' * len(versions)}---|")
    for problem in PROBLEMS:
        if given.only in problem:
            print(compare(versions, problem, given.repeats), flush=True)


if __name__ == "__main__":
    main()
