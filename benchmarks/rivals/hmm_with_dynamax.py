"""dynamax, on JAX, after its compilation."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from dynamax.hidden_markov_model import CategoricalHMM, DiagonalGaussianHMM

from benchmarks.contender import Data, Run
from benchmarks.problems.hmm import ITERATIONS, SYMBOLS


def fit(data: Data, *, law: str) -> Run:
    """A given number of steps from given values, all sequences of one length in a batch."""
    size, length = len(data["initial"]), int(data["lengths"][0])
    whole = (len(data["x"]) // length) * length
    rows = jnp.asarray(data["x"][:whole].reshape(-1, length, 1))
    chain = {"initial_probs": jnp.asarray(data["initial"]), "transition_matrix": jnp.asarray(data["transitions"])}

    def run() -> object:
        if law == "symbols":
            model: Any = CategoricalHMM(size, 1, SYMBOLS)
            state, props = model.initialize(**chain, emission_probs=jnp.asarray(data["symbols"])[:, None, :])
        else:
            model = DiagonalGaussianHMM(size, 1)
            deviations = jnp.sqrt(jnp.asarray(data["variances"]))[:, None]
            means = jnp.asarray(data["means"])[:, None]
            state, props = model.initialize(**chain, emission_means=means, emission_scale_diags=deviations)
        model.fit_em(state, props, rows, num_iters=ITERATIONS, verbose=False)
        return None

    return run
