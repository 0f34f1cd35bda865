"""The options of a Markov network, checked when it is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suffice.checks import choice, whole_number
from suffice.choices import Acceleration, MissingValues, OnInconsistent, choices
from suffice.errors import OptionError, shortened
from suffice.models.markov.approximate.options import APPROXIMATE, read_batch, read_sampling
from suffice.models.markov.learning import OWN_SOLVERS
from suffice.models.options_of_em import idle_without_em
from suffice.options import Idle
from suffice.solvers.registry import check_solver

CHOICES: dict[str, tuple[Any, ...]] = {
    "on_inconsistent": choices(OnInconsistent),
    "missing": choices(MissingValues),
    "acceleration": (None, *choices(Acceleration)),
}

IDLE = (
    *(
        Idle(name, lambda given: given["solver"] not in ("sml", "cd"), "it is one of solver='sml' and solver='cd'")
        for name in ("batch_size", "step_size")
    ),
    *idle_without_em("variables", "acceleration", "m_steps"),
    Idle("check_existence", lambda given: given["prior"] is not None, "with a prior the maximum exists"),
    Idle(
        "start",
        lambda given: given["solver"] == "closed-form" and given["missing"] == "raise" and not given["hidden"],
        "a closed form begins nowhere",
    ),
)


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse what makes no sense."""
    if not (options["states"] is None or isinstance(options["states"], Mapping)):
        raise OptionError(f"states is {shortened(options['states'])}; expected a dict {{variable: states}}, or None.")
    read_sampling(options["sampling"])
    read_batch(options["batch_size"])
    check_solver(options["solver"], ("auto", *OWN_SOLVERS, *APPROXIMATE))
    for option, known in CHOICES.items():
        choice(options[option], option, known)
    whole_number(options["n_init"], "n_init")
    if options["m_steps"] is not None:
        whole_number(options["m_steps"], "m_steps", otherwise=", or None")
