"""The options of a Markov network, checked when it is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suffice.checks import choice, whole_number
from suffice.choices import Acceleration, MissingValues, OnInconsistent, choices
from suffice.models.markov.approximate.options import APPROXIMATE, read_batch, read_sampling
from suffice.models.markov.learning import OWN_SOLVERS
from suffice.solvers.registry import check_solver

CHOICES: dict[str, tuple[Any, ...]] = {
    "on_inconsistent": choices(OnInconsistent),
    "missing": choices(MissingValues),
    "acceleration": (None, *choices(Acceleration)),
}


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse what makes no sense."""
    read_sampling(options["sampling"])
    read_batch(options["batch_size"])
    check_solver(options["solver"], ("auto", *OWN_SOLVERS, *APPROXIMATE))
    for option, known in CHOICES.items():
        choice(options[option], option, known)
    whole_number(options["n_init"], "n_init")
    if options["m_steps"] is not None:
        whole_number(options["m_steps"], "m_steps", otherwise=", or None")
