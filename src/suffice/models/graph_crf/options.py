"""What the options of a `GraphCRF` may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from suffice.checks import choice, whole_number
from suffice.engines.workers import worker_count
from suffice.errors import OptionError, listing
from suffice.families.base import generator
from suffice.models.conditional_field.learning import STOCHASTIC, check_solver
from suffice.models.graph_crf.graphs import EDGES, NODES
from suffice.models.graph_crf.task import GraphTask
from suffice.models.graph_crf.templates import FORMS

EXPECTATIONS = ("auto", "exact", "sampled", "gibbs")


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse options that make no sense."""
    check_solver(options)
    if options["inference"] == "gibbs" and options["solver"] not in ("auto", *STOCHASTIC):
        raise OptionError(
            f"inference='gibbs' gives noisy gradients, and solver={options['solver']!r} needs exact ones. Use "
            "solver='sgd' or 'adam', or another inference."
        )
    templates = options["templates"]
    if templates is not None and not (
        isinstance(templates, Mapping) and all(isinstance(name, str) for name in templates)
    ):
        raise OptionError(f"templates is {templates!r}; expected a dict from names to forms of their weights.")
    if templates and {NODES, EDGES} & set(templates):
        raise OptionError(f"templates may not be named {NODES!r} or {EDGES!r}: these are there already.")
    for name, form in {EDGES: options["edge_weights"], **(templates or {})}.items():
        if not (callable(form) or isinstance(form, np.ndarray) or (isinstance(form, str) and form in FORMS)):
            raise OptionError(
                f"The weights of {name} are {form!r}; expected one of {listing(FORMS)}, or a function of labels."
            )
    choice(options["expectations"], "expectations", EXPECTATIONS)
    whole_number(options["patience"], "patience")
    worker_count(options["threads"])
    generator(options["random_state"])
    task = GraphTask(options)
    task.engine  # noqa: B018  Refuses what makes no sense.
    task.plan("sgd", expectations="exact")
