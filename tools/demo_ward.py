"""A network of an intensive-care ward of 37 variables, written out by code: structure by hand, tables by a rule.

Every variable has ordered states. The state of a child lies around a weighted sum of the places of its parents' states,
as on a scale from 0 to 1: ``P(k | parents) ~ base[k] exp(-((place[k] - mean) / spread)^2 / 2)``. Weights and base
rates are drawn with a fixed seed, so the network is the same every time.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

import suffice as sf
from suffice.domain import Domain, Variable

YES_NO = ("no", "yes")
LEVELS = ("low", "normal", "high")
FLOWS = ("none", "low", "normal", "high")

#: Variable -> states, parents (``-name`` where more of the parent means less of the child).
WARD: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "age": (("young", "middle", "old"), ()),
    "smoker": (YES_NO, ()),
    "bleeding": (YES_NO, ()),
    "embolism": (YES_NO, ()),
    "allergy": (YES_NO, ()),
    "infection": (("none", "mild", "severe"), ()),
    "anaesthesia": (("light", "right", "deep"), ()),
    "tube_place": (("correct", "one_lung", "stomach"), ()),
    "tube_kinked": (YES_NO, ()),
    "leak": (YES_NO, ()),
    "ventilator_setting": (LEVELS, ()),
    "ventilator_fault": (YES_NO, ()),
    "sensor_fault": (YES_NO, ()),
    "diabetes": (YES_NO, ("age",)),
    "asthma": (YES_NO, ("smoker",)),
    "heart_failure": (YES_NO, ("age", "diabetes")),
    "blood_volume": (LEVELS, ("-bleeding", "heart_failure")),
    "stroke_volume": (LEVELS, ("blood_volume", "-heart_failure")),
    "vessel_resistance": (LEVELS, ("-allergy", "-infection")),
    "lung_resistance": (LEVELS, ("embolism", "asthma")),
    "machine_flow": (FLOWS, ("ventilator_setting", "-ventilator_fault")),
    "lung_flow": (FLOWS, ("machine_flow", "-tube_place", "-tube_kinked")),
    "airway_pressure": (LEVELS, ("machine_flow", "tube_kinked", "-leak")),
    "gas_exchange": (FLOWS, ("lung_flow", "-lung_resistance")),
    "oxygen": (LEVELS, ("gas_exchange", "-embolism")),
    "carbon_dioxide": (LEVELS, ("-gas_exchange",)),
    "exhaled_carbon_dioxide": (FLOWS, ("carbon_dioxide", "lung_flow")),
    "stress": (LEVELS, ("carbon_dioxide", "-oxygen", "-anaesthesia", "-vessel_resistance")),
    "heart_rate": (LEVELS, ("stress",)),
    "cardiac_output": (LEVELS, ("heart_rate", "stroke_volume")),
    "blood_pressure": (LEVELS, ("cardiac_output", "vessel_resistance")),
    "vein_pressure": (LEVELS, ("blood_volume",)),
    "lung_artery_pressure": (LEVELS, ("embolism", "heart_failure")),
    "temperature": (LEVELS, ("infection",)),
    "white_cells": (LEVELS, ("infection",)),
    "pulse_oximeter": (LEVELS, ("oxygen", "-sensor_fault")),
    "rate_on_monitor": (LEVELS, ("heart_rate", "-sensor_fault")),
}
SPREAD = 0.36
RARE = 0.12


def ward() -> sf.BayesianNetwork:
    """The network."""
    rng = np.random.default_rng(37)
    states = {name: found for name, (found, _) in WARD.items()}
    parents = {name: [parent.lstrip("-") for parent in found] for name, (_, found) in WARD.items()}
    tables = {name: _table(name, states, rng) for name in WARD}
    domain = Domain([Variable.discrete(name, found) for name, found in states.items()])
    return sf.BayesianNetwork.from_tables(domain, parents, tables)


def _table(name: str, states: dict[str, tuple[str, ...]], rng: np.random.Generator) -> NDArray[Any]:
    """P(name | parents) with axes (parents, name), rounded to four digits and made to sum to 1 again."""
    own, given = WARD[name]
    if not given:
        return _root(own, rng)
    weights = rng.dirichlet(np.full(len(given), 4.0))
    sizes = [len(states[parent.lstrip("-")]) for parent in given]
    places = np.linspace(0.0, 1.0, len(own))
    base = rng.uniform(0.6, 1.4, len(own))
    table = np.empty((*sizes, len(own)))
    for cell in itertools.product(*map(range, sizes)):
        shares = [k / (size - 1) for k, size in zip(cell, sizes, strict=True)]
        signed = [1.0 - s if parent[0] == "-" else s for s, parent in zip(shares, given, strict=True)]
        table[cell] = base * np.exp(-(((places - weights @ signed) / SPREAD) ** 2) / 2.0)
    table = np.round(table / table.sum(axis=-1, keepdims=True), 4)
    largest = table.argmax(axis=-1)[..., None]
    rest = np.take_along_axis(table, largest, -1) + 1.0 - table.sum(axis=-1, keepdims=True)
    np.put_along_axis(table, largest, rest, -1)
    return np.round(table, 4)


def _root(own: tuple[str, ...], rng: np.random.Generator) -> NDArray[Any]:
    """Levels have their middle as the usual state, all others their first."""
    usual = 1 if own[0] in ("low", "light", "young") else 0
    shares = np.full(len(own), RARE) * rng.uniform(0.5, 1.5, len(own))
    shares[usual] = 0.0
    shares = np.round(shares, 4)
    shares[usual] = 1.0 - shares.sum()
    return np.round(shares, 4)
