"""EM in ALARM with a fifth of the cells missing: the cost of a step, and the time to the same likelihood.

pyAgrum runs until its own rule stops it. The log-likelihood of the observed cells that it has reached by then, worked
out for all by one junction tree and outside the timing, is what the others have to reach.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.alarm import CARDS, FAMILIES, draw
from benchmarks.contender import Contender, Data
from benchmarks.network import Network

NAME = "em"
ROWS = 10_000
REPEATS = 3
MISSING = 0.2

_OURS = "benchmarks.rivals.em_with_suffice"
_PYAGRUM = "benchmarks.rivals.em_with_pyagrum"

# The one that sets the mark is first: answers are judged in this order.
CONTENDERS = (
    Contender("pyAgrum, until it stops, run once", _PYAGRUM, "fit", {"rate": 1e-4}, "pyagrum", once=True),
    Contender("suffice, 3 steps", _OURS, "fit", {"steps": 3}),
    Contender("suffice, 13 steps", _OURS, "fit", {"steps": 13}),
    Contender("suffice, 50 steps", _OURS, "fit", {"steps": 50}),
)


def title(rows: int) -> str:
    return f"EM in ALARM, {rows:,} rows with {MISSING:.0%} of the cells missing"


def make(rows: int, seed: int) -> Data:
    """Codes (37, rows); a gap is 255."""
    network = Network(tuple(CARDS), tuple(family[:-1] for family in FAMILIES))
    codes = draw(rows, seed)
    codes[np.random.default_rng(seed + 1).random(codes.shape) < MISSING] = 255
    return {"codes": codes, **network.arrays()}


def judge(data: Data) -> Callable[[str, Any], str]:
    """Steps, CPU time of a step, the log-likelihood of the observed cells, and how it compares with pyAgrum's.

    An answer is (CPU seconds of each step, all tables in one array). The likelihood is that of the tables, from one
    junction tree for all contenders.
    """
    import suffice as sf

    network = Network.of(data)
    domain = sf.Domain([sf.Variable.discrete(name, network.states(at)) for at, name in enumerate(network.names)])
    from_tables, labelled = sf.BayesianNetwork.from_tables, text_columns(data)
    mark: list[float] = []

    def verdict(name: str, answer: Any) -> str:
        seconds, flat = answer
        tables = dict(zip(network.names, network.split(np.asarray(flat)), strict=True))
        net = from_tables(domain, network.structure, tables)
        value = float(net.score_samples(labelled).mean())
        step = 1e3 * float(np.median(seconds))
        said = f"{len(seconds)} steps of {step:,.0f} CPU ms, log-likelihood {value:.5f} a row"
        if name.startswith("pyAgrum"):
            mark.append(value)
        return f"{said}, {value - mark[0]:+.5f} beside pyAgrum" if mark and not name.startswith("pyAgrum") else said

    return verdict


def text_columns(data: Data) -> dict[str, Any]:
    """Columns of states as text, None for a gap."""
    network = Network.of(data)
    columns = {}
    for at, name in enumerate(network.names):
        labels = np.array([*network.states(at), None], dtype=object)
        codes = data["codes"][at]
        columns[name] = labels[np.where(codes == 255, len(labels) - 1, codes)]
    return columns
