"""EM in ALARM with a fifth of the cells missing: the cost of a step, and the likelihood that is reached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.alarm import CARDS, FAMILIES, draw
from benchmarks.contender import Contender, Data
from benchmarks.network import Network

NAME = "em"
ROWS = 10_000
REPEATS = 1
FLOOR = ""
OURS = "suffice, 3 steps"
MISSING = 0.2

_OURS = "benchmarks.rivals.em_with_suffice"
_PYAGRUM = "benchmarks.rivals.em_with_pyagrum"
_COMPILED = {"SUFFICE_KERNELS": "compiled"}

CONTENDERS = (
    Contender(OURS, _OURS, "fit", {"steps": 3}, environment=_COMPILED),
    Contender("suffice, 13 steps", _OURS, "fit", {"steps": 13}, environment=_COMPILED),
    Contender("pyAgrum, 3 steps", _PYAGRUM, "fit", {"steps": 3}, "pyagrum"),
)


def title(rows: int) -> str:
    return f"EM in ALARM, {rows:,} rows with {MISSING:.0%} of the cells missing"


def make(rows: int) -> Data:
    """Codes (37, rows); a gap is 255."""
    network = Network(tuple(CARDS), tuple(family[:-1] for family in FAMILIES))
    codes = draw(rows)
    codes[np.random.default_rng(1).random(codes.shape) < MISSING] = 255
    return {"codes": codes, **network.arrays()}


def judge(data: Data) -> Callable[[str, Any], str]:
    """The log-likelihood of the observed cells under the answer, from one junction tree for all contenders."""
    import suffice as sf

    network = Network.of(data)
    domain = sf.Domain([sf.Variable.discrete(name, network.states(at)) for at, name in enumerate(network.names)])
    labelled = text_columns(data)

    def verdict(_: str, answer: Any) -> str:
        steps, flat = answer
        tables = dict(zip(network.names, network.split(np.asarray(flat)), strict=True))
        net = sf.BayesianNetwork.from_tables(domain, network.structure, tables)
        value = float(net.log_likelihood(labelled).mean())
        return f"{steps} steps, log-likelihood {value:.5f} a row"

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
