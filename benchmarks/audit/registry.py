"""All kinds of problem, by name."""

from __future__ import annotations

from benchmarks.audit import (
    families,
    gaussian_graphs,
    markov_networks,
    networks,
    random_fields,
    regressions,
    sampled_answers,
    sequences,
)
from benchmarks.audit.record import Problem

#: The modules that hold problems: each has a dict PROBLEMS.
MODULES = (
    families,
    regressions,
    networks,
    sequences,
    markov_networks,
    sampled_answers,
    gaussian_graphs,
    random_fields,
)

PROBLEMS: dict[str, Problem] = {name: problem for module in MODULES for name, problem in module.PROBLEMS.items()}
