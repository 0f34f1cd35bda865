"""dynamax, on JAX, after its compilation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from dynamax.hidden_markov_model import CategoricalHMM

from benchmarks.contender import Data, Run
from benchmarks.problems.dynamic import STATES, SYMBOLS


def smooth(data: Data) -> Run:
    """All series of one length in a batch."""
    jax.config.update("jax_enable_x64", True)
    model = CategoricalHMM(STATES, 1, SYMBOLS)
    params, _ = model.initialize(
        initial_probs=jnp.full(STATES, 1.0 / STATES),
        transition_matrix=jnp.asarray(data["moves"][0]),
        emission_probs=jnp.asarray(data["emits"][0])[:, None, :],
    )
    rows = jnp.asarray(data["seen"])
    smoother = jax.jit(jax.vmap(lambda one: model.smoother(params, one).smoothed_probs))

    def run() -> object:
        return np.asarray(smoother(rows))

    return run
