"""What rows say about the weights of a Markov network."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Floats
from suffice.errors import EstimateError, OptionError, listing
from suffice.fitting.inference import CHOSEN, Drop, Inference
from suffice.models.markov import comparison
from suffice.models.markov.exact import ExactProblem
from suffice.models.markov.feature_spread import features_of
from suffice.solvers.held import held_drop
from suffice.solvers.penalties import GaussianPenalty

if TYPE_CHECKING:
    from suffice.models.markov.declaration import MarkovNetwork


#: Joint states up to which effects of several nodes are worked out.
MOST_STATES = 4_096


def inference_of(network: MarkovNetwork) -> Inference:
    """The weights, with their errors as `MarkovNetwork.standard_errors_` says."""
    fitted = network.fitted_
    problem = network._learned_by().problem(network._learned_data(), None)
    weights = Inference(
        tuple(str(name) for name in fitted.weight_names),
        np.asarray(fitted.weights, dtype=np.float64),
        lambda: network.standard_errors_,
        tested=features_of(fitted.model),
        marks=tuple(map(_mark, fitted.limits)),
        about="" if fitted.n_free is None else CHOSEN,
        head=partial(comparison.tests, network),
    )
    if not isinstance(problem, ExactProblem) or fitted.family.masks:
        return weights
    gaussian, plain = isinstance(problem.penalty, GaussianPenalty), problem.penalty is None
    # Of weights along some of which no distribution changes there is no profile.
    definite = gaussian or (plain and fitted.rank == len(fitted.finite))
    return replace(
        weights,
        effect=partial(_effect, network, problem) if plain or gaussian else None,
        make_covariance=partial(_covariance, network, problem) if plain or gaussian else None,
        drop=partial(_drop, problem, fitted.finite) if definite else None,
    )


def _mark(limit: float) -> str:
    if math.isnan(limit):
        return "no limit of its own: runs to infinity together with others"
    return "ran to its limit" if limit else ""


def _covariance(network: MarkovNetwork, problem: ExactProblem) -> Floats:
    """The inverse of the information; where it is singular the pseudo-inverse, infinite for what rows do not tell."""
    fitted, errors = network.fitted_, network.standard_errors_
    information = problem.data.weight * fitted.information
    if isinstance(problem.penalty, GaussianPenalty):
        return np.asarray(np.linalg.inv(information + problem.penalty.matrix()))
    covariance = np.linalg.pinv(information, rcond=1e-10, hermitian=True)
    open_ = np.isinf(errors)
    covariance[open_], covariance[:, open_] = np.nan, np.nan
    covariance[open_, open_] = np.inf
    return np.asarray(covariance)


def _effect(network: MarkovNetwork, problem: ExactProblem, clique: Any) -> tuple[Floats, Floats] | None:
    """The effects of some nodes together on log p, in coordinates that the weights tell, and their covariance.

    Differences along all of the nodes take away whatever does not hold each of them.
    """
    fitted, order = network.fitted_, network.fitted_.domain.names
    if not isinstance(clique, tuple) or len(clique) < 2 or not all(name in order for name in clique):
        return None
    shape = fitted.domain.shape(order)
    if math.prod(shape) > MOST_STATES:
        raise EstimateError(
            f"Effects are worked out over all joint states, of which there are {math.prod(shape):,}; the limit is "
            f"{MOST_STATES:,}. Name single weights instead."
        )
    model = fitted.near.model
    effects = model.design(model.all_states()).reshape(*shape, -1)
    for name in clique:
        effects = np.diff(effects, axis=order.index(name))
    _, sizes, rows = np.linalg.svd(effects.reshape(-1, effects.shape[-1]), full_matrices=False)
    rows_told = rows[sizes > 1e-9 * max(float(sizes.max(initial=0.0)), 1e-9)]
    if not len(rows_told):
        raise OptionError(f"The network has no term of {listing(clique)} together. score_test tests one left out.")
    covariance = rows_told @ _covariance(network, problem) @ rows_told.T
    if not np.isfinite(covariance).all():
        raise EstimateError(f"The rows do not tell the weights of {listing(clique)}.")
    return rows_told @ fitted.finite, covariance


def _drop(problem: ExactProblem, best: Floats, number: int) -> Drop:
    """Of a weight with all others free."""
    weight, family, penalty = problem.data.weight, problem.whole, problem.penalty
    observed = problem.model.expected(problem.margins)

    def evaluate(x: Floats) -> tuple[float, Floats, Floats]:
        log_z, expected = family.moments(x)
        value, slope = weight * (float(x @ observed) - log_z), weight * (observed - expected)
        information = weight * family.covariance(x)
        if not isinstance(penalty, GaussianPenalty):
            return value, slope, information
        return value - penalty.value(x), slope - penalty.slope(x), information + penalty.matrix()

    return held_drop(evaluate, best, number)
