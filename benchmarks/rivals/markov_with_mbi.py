"""mbi: mirror descent over exact marginals, in 64 bits."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import jax
import numpy as np
from mbi import Domain, LinearMeasurement, MarkovRandomField, estimation

from benchmarks.contender import Data, Run
from benchmarks.log_linear import GAP, Cliques

#: Iterations between two looks at the margins, and the most seconds of CPU spent on finding out how many are needed.
BLOCK, PATIENCE = 50, 10.0


class _EnoughError(Exception):
    """The margins are close enough, or time is up."""


def fit(data: Data, *, method: str) -> Run:
    """As many iterations as bring the margins close enough; the first call compiles, and finds out how many."""
    cliques = Cliques.of(data)
    domain = Domain(cliques.names, cliques.cards)
    tables = list(zip(cliques.named_scopes, cliques.split(data["margins"]), strict=True))
    measured = [LinearMeasurement(table.ravel(), names) for names, table in tables]
    estimator = getattr(estimation, method)()
    looks: list[float] = []  # The first block compiles, so the clock starts after it.

    def look(marginals: Any) -> None:
        looks.append(time.process_time())
        found = [np.asarray(marginals.project(names).datavector()) for names, _ in tables]
        off = max(float(np.abs(f - table.ravel()).max()) for f, (_, table) in zip(found, tables, strict=True))
        if off <= GAP or looks[-1] - looks[0] > PATIENCE:
            raise _EnoughError

    def run() -> object:
        if not looks:
            with contextlib.suppress(_EnoughError):
                estimator.estimate(domain, measured, known_total=1.0, iters=1_000_000, callback_fn=look)
        model = estimator.estimate(domain, measured, known_total=1.0, iters=BLOCK * len(looks))
        assert isinstance(model, MarkovRandomField)
        place = {name: at for at, name in enumerate(cliques.names)}
        return [
            (tuple(place[name] for name in names), np.asarray(model.potentials[names].values))
            for names in model.potentials.cliques
        ]

    return run


def calibrations(data: Data, *, times: int) -> Run:
    """Compiled before; log Z is not among its answers."""
    from mbi import CliqueVector, Factor, marginal_oracles

    cliques = Cliques.of(data)
    domain = Domain(cliques.names, cliques.cards)
    tables = dict(zip(cliques.named_scopes, cliques.split(data["logs"]), strict=True))
    vector = CliqueVector(
        domain, list(tables), {names: Factor(domain.project(names), table) for names, table in tables.items()}
    )
    oracle = marginal_oracles.default_oracle(vector.cliques, domain, has_constraints=False)
    compiled = jax.jit(lambda potentials: oracle(potentials, 1.0))

    def run() -> object:
        for _ in range(times):
            jax.block_until_ready(compiled(vector))
        return None

    return run
