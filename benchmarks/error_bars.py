"""How often 95 % intervals of answers hold the truth, over refits of data drawn from known networks; and their cost.

    python -m benchmarks.error_bars [--refits 200]

Each network has a rare state. Data are drawn from it, the network is learned, and a question is asked; the interval
should hold the answer of the true network in 93 to 97 of 100 refits. Seeds are fixed.
"""

import argparse
import time
from typing import Any

import numpy as np

import suffice as sf
from suffice.domain import Domain, Variable

#: By name: parents, cards, rare states as (node, state, probability), and the questions.
NETWORKS: dict[str, tuple[dict[str, tuple[str, ...]], dict[str, int], dict[str, float], list[Any]]] = {
    "rare cause": (
        {"cause": (), "sign": ("cause",)},
        {"cause": 2, "sign": 2},
        {"cause": 0.03},
        [("cause", {"sign": 1}), ("sign", {}), ("cause", {})],
    ),
    "naive Bayes": (
        {"class": (), **{f"f{k}": ("class",) for k in range(5)}},
        {"class": 2, **{f"f{k}": 2 for k in range(5)}},
        {"class": 0.05},
        [("class", {"f0": 1, "f1": 1, "f2": 0}), ("f3", {"f0": 1}), ("class", {f"f{k}": 1 for k in range(5)})],
    ),
    "collider": (
        {"a": (), "b": (), "c": ("a", "b"), "d": ("c",)},
        {"a": 2, "b": 2, "c": 2, "d": 2},
        {"a": 0.06},
        [("a", {"d": 1}), ("a", {"c": 1, "b": 1}), ("d", {})],
    ),
    "diamond": (
        {"x": (), "l": ("x",), "r": ("x",), "y": ("l", "r")},
        {"x": 3, "l": 3, "r": 2, "y": 3},
        {"x": 0.05},
        [("x", {"y": 1}), ("y", {"x": 2}), ("l", {"r": 1, "y": 0})],
    ),
}
LEVEL = 0.95


def truth(name: str) -> tuple[sf.BayesianNetwork, dict[str, list[int]]]:
    """The network that data are drawn from: rows of probabilities between 0.1 and 0.9, but for the rare state."""
    parents, cards, rare, _ = NETWORKS[name]
    rng = np.random.default_rng(list(NETWORKS).index(name))
    domain = Domain(Variable.discrete(node, range(card)) for node, card in cards.items())
    tables = {}
    for node, above in parents.items():
        table = 0.15 + rng.random(domain.shape([*above, node]))
        table /= table.sum(axis=-1, keepdims=True)
        if node in rare:
            table[..., :-1] *= (1 - rare[node]) / table[..., :-1].sum(axis=-1, keepdims=True)
            table[..., -1] = rare[node]
        tables[node] = table
    states = {node: list(range(card)) for node, card in cards.items()}
    return sf.BayesianNetwork.from_tables(domain, parents, tables), states


def coverage(name: str, prior: Any, method: Any, refits: int, rows: int) -> tuple[list[float], int]:
    """The share of refits whose interval of the last state holds the truth, by question; and intervals without ends."""
    known, states = truth(name)
    questions = NETWORKS[name][3]
    held, undefined = np.zeros(len(questions)), 0
    options = {"draws": 200, "random_state": 0} if method == "posterior" else {}
    for refit in range(refits):
        data = known.sample(rows, random_state=refit)
        net = sf.BayesianNetwork(NETWORKS[name][0], states=states, prior=prior).fit(data)
        for number, (asked, given) in enumerate(questions):
            low, high = (
                end.values[-1] for end in net.query(asked, given=given).interval(LEVEL, method=method, **options)
            )
            value = known.query(asked, given=given).values[-1]
            undefined += int(np.isnan(low) or np.isnan(high))
            held[number] += low <= value <= high
    return (held / refits).tolist(), undefined


def cost() -> list[tuple[str, float, float]]:
    """CPU seconds of a question, and of one with its error bar, where every question has new evidence: ALARM."""
    net = sf.read("src/suffice/demo/alarm.bif.gz")
    rows = net.sample(5000, random_state=0)
    net = sf.BayesianNetwork(net, prior=1.0).fit(rows)
    rng, names, lines = np.random.default_rng(0), list(net.nodes), []
    for _ in range(6):
        chosen = [names[k] for k in rng.choice(len(names), 4, replace=False)]
        asked, given = chosen[0], chosen[1:]
        questions = [{name: rows[name][row] for name in given} for row in range(400)]
        seconds = []
        for with_error in (False, True, False, True):
            start = time.process_time()
            for known in questions:
                answer = net.query(asked, given=known)
                _ = answer.standard_errors if with_error else None
            seconds.append((time.process_time() - start) / len(questions))
        lines.append((f"{asked} ({len(net.states(asked))} states)", seconds[2], seconds[3]))
    return lines


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--refits", type=int, default=200)
    parser.add_argument("--rows", type=int, default=500)
    options = parser.parse_args()
    print(f"Share of {options.refits} refits of {options.rows} rows whose 95 % interval holds the truth, by question")
    for name in NETWORKS:
        for prior, method in ((None, "delta"), ("jeffreys", "delta"), ("jeffreys", "posterior")):
            shares, undefined = coverage(name, prior, method, options.refits, options.rows)
            words = "  ".join(f"{share:6.1%}" for share in shares)
            print(f"  {name:12} prior {prior!s:9} {method:10} {words}   without ends: {undefined}", flush=True)
    print("CPU microseconds of a question to ALARM, and of one with its error bar (of repeated calls)")
    for name, plain, with_error in cost():
        ratio = with_error / plain
        print(f"  {name:30} {1e6 * plain:8.0f} {1e6 * with_error:8.0f}   {ratio:.1f} times", flush=True)


if __name__ == "__main__":
    main()
