"""All kinds of problem, by name."""

from __future__ import annotations

from benchmarks.audit import gaussian_graphs, markov_networks, random_fields, sampled_answers
from benchmarks.audit.record import Problem

#: The modules that hold problems: each has a dict PROBLEMS.
MODULES = (markov_networks, sampled_answers, gaussian_graphs, random_fields)

PROBLEMS: dict[str, Problem] = {name: problem for module in MODULES for name, problem in module.PROBLEMS.items()}
