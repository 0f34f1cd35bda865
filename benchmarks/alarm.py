"""The ALARM monitoring network: 37 discrete variables of an intensive care patient, and rows drawn from its graph.

Only graph and cards matter for counting, so the probabilities are drawn at random.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

# name: (number of states, parents)
VARIABLES: dict[str, tuple[int, tuple[str, ...]]] = {
    "hypovolemia": (2, ()),
    "left ventricular failure": (2, ()),
    "error of low output": (2, ()),
    "error of cauter": (2, ()),
    "anaesthesia": (2, ()),
    "anaphylaxis": (2, ()),
    "kinked tube": (2, ()),
    "inspired oxygen": (2, ()),
    "pulmonary embolus": (2, ()),
    "intubation": (3, ()),
    "disconnection": (2, ()),
    "ventilator setting": (3, ()),
    "history": (2, ("left ventricular failure",)),
    "end-diastolic volume": (3, ("hypovolemia", "left ventricular failure")),
    "stroke volume": (3, ("hypovolemia", "left ventricular failure")),
    "central venous pressure": (3, ("end-diastolic volume",)),
    "wedge pressure": (3, ("end-diastolic volume",)),
    "peripheral resistance": (3, ("anaphylaxis",)),
    "pulmonary artery pressure": (3, ("pulmonary embolus",)),
    "shunt": (2, ("intubation", "pulmonary embolus")),
    "ventilator": (4, ("ventilator setting",)),
    "ventilation of tube": (4, ("disconnection", "ventilator")),
    "pressure": (4, ("intubation", "kinked tube", "ventilation of tube")),
    "ventilation of lung": (4, ("intubation", "kinked tube", "ventilation of tube")),
    "minute volume": (4, ("intubation", "ventilation of lung")),
    "alveolar ventilation": (4, ("intubation", "ventilation of lung")),
    "arterial carbon dioxide": (3, ("alveolar ventilation",)),
    "expired carbon dioxide": (4, ("arterial carbon dioxide", "ventilation of lung")),
    "pulmonary oxygen": (3, ("inspired oxygen", "alveolar ventilation")),
    "arterial oxygen": (3, ("pulmonary oxygen", "shunt")),
    "catecholamine": (
        2,
        ("arterial carbon dioxide", "anaesthesia", "arterial oxygen", "peripheral resistance"),
    ),
    "heart rate": (3, ("catecholamine",)),
    "heart rate by pressure": (3, ("error of low output", "heart rate")),
    "heart rate by ECG": (3, ("error of cauter", "heart rate")),
    "heart rate by oximeter": (3, ("error of cauter", "heart rate")),
    "cardiac output": (3, ("heart rate", "stroke volume")),
    "blood pressure": (3, ("cardiac output", "peripheral resistance")),
}

_INDEX = {name: index for index, name in enumerate(VARIABLES)}
CARDS = [card for card, _ in VARIABLES.values()]
FAMILIES = [(*(_INDEX[parent] for parent in parents), _INDEX[name]) for name, (_, parents) in VARIABLES.items()]


def draw(rows: int, seed: int = 0) -> NDArray[np.uint8]:
    """Codes (37, rows) drawn from the graph, parents first, with tables from a Dirichlet law."""
    rng = np.random.default_rng(seed)
    codes = np.empty((len(CARDS), rows), np.uint8)
    for *parents, child in FAMILIES:
        configurations = math.prod(CARDS[parent] for parent in parents)
        table = np.cumsum(rng.dirichlet([0.5] * CARDS[child], configurations), axis=1, dtype=np.float32)
        for start in range(0, rows, 1 << 18):
            block = codes[:, start : start + (1 << 18)]
            place = np.zeros(block.shape[1], np.int64)
            for parent in parents:
                place = place * CARDS[parent] + block[parent]
            chance = rng.random(block.shape[1:], dtype=np.float32)
            block[child] = (chance[:, None] > table[place, :-1]).sum(axis=1)
    return codes
