"""The options of a Markov network, checked when it is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from suffice.errors import OptionError, listing
from suffice.models.markov.approximate.options import APPROXIMATE, read_batch, read_sampling
from suffice.models.markov.learning import solver_names

CHOICES: dict[str, tuple[Any, ...]] = {
    "on_inconsistent": ("raise", "warn"),
    "missing": ("em", "raise"),
    "acceleration": (None, "squarem", "lbfgs"),
}


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse what makes no sense."""
    read_sampling(options["sampling"])
    read_batch(options["batch_size"])
    for option, known in {"solver": (*solver_names(), *APPROXIMATE), **CHOICES}.items():
        if options[option] not in known:
            raise OptionError(f"{option} is {options[option]!r}; expected one of {listing(known, 20)}.")
    for name in ("n_init", "m_steps"):
        value = options[name]
        if name == "m_steps" and value is None:
            continue
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
            raise OptionError(f"{name} is {value!r}; expected a whole number of at least 1.")
