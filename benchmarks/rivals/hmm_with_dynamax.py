"""dynamax, on JAX, after its compilation."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from dynamax.hidden_markov_model import CategoricalHMM, DiagonalGaussianHMM

from benchmarks.contender import Data, Run
from benchmarks.problems.hmm import ITERATIONS, SYMBOLS

#: Its own priors are weak; these leave maximum likelihood, but for that of the normal laws, which it always has.
_FLAT = {"initial_probs_concentration": 1.0, "transition_matrix_concentration": 1.0}


def fit(data: Data, *, law: str) -> Run:
    """A given number of steps from given values, all sequences of one length in a batch."""
    jax.config.update("jax_enable_x64", True)
    size, length = len(data["initial"]), int(data["lengths"][0])
    whole = (len(data["x"]) // length) * length
    rows = jnp.asarray(data["x"][:whole].reshape(-1, length, 1))
    chain = {"initial_probs": jnp.asarray(data["initial"]), "transition_matrix": jnp.asarray(data["transitions"])}

    def run() -> object:
        if law == "symbols":
            model: Any = CategoricalHMM(size, 1, SYMBOLS, emission_prior_concentration=1.0, **_FLAT)
            state, props = model.initialize(**chain, emission_probs=jnp.asarray(data["symbols"])[:, None, :])
        else:
            model = DiagonalGaussianHMM(size, 1, **_FLAT)
            deviations = jnp.sqrt(jnp.asarray(data["variances"]))[:, None]
            means = jnp.asarray(data["means"])[:, None]
            state, props = model.initialize(**chain, emission_means=means, emission_scale_diags=deviations)
        found, _ = model.fit_em(state, props, rows, num_iters=ITERATIONS, verbose=False)
        starts, edges = np.asarray(found.initial.probs), np.asarray(found.transitions.transition_matrix)
        if law == "symbols":
            return starts, edges, np.asarray(found.emissions.probs)[:, 0], data["means"], data["variances"]
        means, deviations = np.asarray(found.emissions.means)[:, 0], np.asarray(found.emissions.scale_diags)[:, 0]
        return starts, edges, data["symbols"], means, deviations**2

    return run
