"""Stochastic gradient ascent on rows as they come: least mean squares for every canonical response."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.engines.linear_predictor import linear_predictor, transpose_product, weighted
from suffice.errors import DataError, EstimateError, OptionError
from suffice.fitting.control import Outcome, State
from suffice.fitting.report import Certificate
from suffice.models.glm.families import Family
from suffice.models.glm.figures import is_number
from suffice.models.glm.input import Rows
from suffice.models.glm.laws import RowLaw
from suffice.models.glm.learned import Learned
from suffice.models.glm.links import Link
from suffice.models.glm.priors import Penalties
from suffice.models.glm.problem import totals
from suffice.models.glm.rows import Read
from suffice.solvers.information import Information
from suffice.solvers.online import step_sizes

Floats = NDArray[np.float64]


def online_update(
    read: Read, family: Family, link: Link, penalties: Penalties, options: Mapping[str, Any], before: Learned | None
) -> Learned:
    """One pass over the rows in their order.

    For each row, or batch of rows, ``theta += step (score x - share of the prior)``. Over one pass the shares of the
    prior add up to the whole prior: each row brings one over the number of rows of it.
    """
    if not isinstance(read.rows, Rows):
        raise DataError("partial_fit takes rows in memory: give a file piece by piece.")
    if penalties.laplace is not None or penalties.conjugate is not None:
        raise OptionError("partial_fit takes a Gaussian prior or none; use fit for other priors.")
    design, law = read.design, RowLaw(family, link)
    beta, updates = np.zeros(design.size), 0
    if before is not None:
        if before.design.names != design.names:
            raise DataError(
                f"The rows have the coefficients {', '.join(design.names[:8])}; the model has learned "
                f"{', '.join(before.design.names[:8])}. Give the same columns and levels (categorical=)."
            )
        beta, updates = before.beta[:, 0], before.updates
    elif options["start"] is not None:
        beta = np.asarray(options["start"], dtype=np.float64).ravel()
        if beta.shape != (design.size,):
            raise EstimateError(f"start has {len(beta)} numbers for {design.size} coefficients, intercept first.")
    theta = design.internal(beta).copy()
    schedule = step_sizes(options["step_size"], options["decay"])
    rows = read.rows.block.rows
    for part in design.layout.parts(read.rows.block, int(options["batch_size"])):
        score = law(linear_predictor(design.layout, part, theta), part.y)[1]
        move = transpose_product(design.layout, part, weighted(score, part.weights))
        if penalties.gaussian is not None:
            move = move - part.rows / rows * penalties.gaussian.slope(theta)
        theta = theta + schedule(updates) * move
        updates += 1
        if not np.isfinite(theta).all():
            raise EstimateError("The steps have run away to infinity; use a smaller step_size, or scale the columns.")
    return _learned(read, law, theta, (updates, options["dispersion"]), before)


def _learned(read: Read, law: RowLaw, theta: Floats, made: tuple[int, Any], before: Learned | None) -> Learned:
    """made: the number of updates, and the dispersion where that is known."""
    design, (updates, given) = read.design, made
    estimated = law.family.free_dispersion and not is_number(given)
    sums = replace(totals(read.rows, design.layout, law, theta), weight=read.weight)
    phi = law.family.ml_dispersion(sums) if estimated else float(given) if law.family.free_dispersion else 1.0
    value = law.family.log_likelihood(sums, max(phi, 1e-300)) + read.constant
    size = getattr(law.family, "size", None)
    outcome = Outcome(State(theta, value, np.inf, updates), False, "rows as they come", ())
    return Learned(
        design,
        law.family.name,
        law.link.name,
        design.public(theta)[:, None],
        Information(np.zeros((0, 0))),
        phi,
        phi,
        size,
        value,
        value,
        sums.deviance,
        sums.deviance,
        sums.pearson,
        read.weight + (0.0 if before is None else before.weight),
        read.weight - design.size,
        design.size + int(estimated),
        read.classes,
        updates=updates,
        certificate=Certificate(float("inf")),
        outcome=outcome,
        method="stochastic gradient ascent",
    )
