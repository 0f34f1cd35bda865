"""What there is to see of a Markov network with what it has learned from: estimates, errors, rows drawn again."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Floats
from suffice.errors import OptionError
from suffice.families.multivariate_normal import MultivariateNormal
from suffice.families.normal import Normal
from suffice.fitting.portrait import (
    Estimates,
    Graph,
    Interval,
    Likelihood,
    Portrait,
    normal_reach,
    or_none,
    redrawn_rows,
    rescaled_by,
)
from suffice.models.em.rows import has_missing
from suffice.models.markov.estimates import inference_of

if TYPE_CHECKING:
    from suffice.fitting.inference import Inference
    from suffice.models.markov.declaration import MarkovNetwork


#: Weights up to which a covariance of all features is made.
MOST_WEIGHTS = 400


def network_portrait(network: MarkovNetwork, *, fitted: bool) -> Portrait:
    """What there is to see of a network: of one that was fitted also the means of the features."""
    graph = Graph(network.nodes, network.edges)
    if not fitted:
        return Portrait(type(network).__name__, "markov", graph=graph)
    drawn: Portrait = network.fitted_.portrait()
    return replace(
        drawn,
        title=type(network).__name__,
        graph=graph,
        n_params=lambda: network.n_params_,
        matched=network.matched_statistics,
        estimates=partial(_estimates, network),
        inference=partial(_inference, network),
        redraw=partial(_redraw, network),
        again=partial(_again, network),
        likelihood=partial(_likelihood, network),
        rescaled=rescaled_by(network),
    )


def _likelihood(network: MarkovNetwork) -> Likelihood | None:
    matched = network.matched_statistics()
    if matched is None:
        return None

    def value(weights: Floats) -> float:
        return float(weights @ matched.observed - network.log_partition(weights))

    return Likelihood(tuple(map(str, network.weight_names_)), network.weights_, value, len(matched.observed))


def _inference(network: MarkovNetwork) -> Inference:
    return inference_of(network)


def _redraw(network: MarkovNetwork, given: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """As many rows as were learned, of the variables that are not hidden."""
    if has_missing(network.statistics_) and not network._learned_by().spec.hidden:
        raise OptionError("Rows with missing values cannot be drawn from the fit, which says not which are missing.")
    drawn = redrawn_rows(network, given, rng)["data"]
    observed = network._learned_by().spec.observed
    return {"data": {name: np.asarray(drawn[name]) for name in observed}}


def _again(network: MarkovNetwork) -> MarkovNetwork:
    """A copy that begins where the fit ended, where others would begin elsewhere."""
    again = network.clone()
    states = {variable.name: list(variable.states) for variable in network.fitted_.domain.variables}
    hidden = network._learned_by().spec.hidden
    kept = {name: labels for name, labels in states.items() if name not in hidden}
    again.set_params(states=kept)
    return again.set_params(start=network.fitted_.finite, n_init=1) if hidden else again


def _estimates(network: MarkovNetwork, level: float = 0.95, node: Hashable = None) -> Estimates:
    """Means of the features, which are identified where weights are not."""
    if network._learned_by().options["prior"] is None:
        return Estimates()
    intervals = tuple(_of_features(network, level))
    if not intervals:
        return Estimates(
            note="Estimates are not compared: there are too many weights, or the distribution is sampled, or values "
            "are missing."
        )
    return Estimates(
        intervals,
        "Means of the features, which are identified where weights are not. Maximum likelihood makes them those of "
        "the rows; the intervals are normal, from the curvature at the MAP.",
    )


def _of_features(network: MarkovNetwork, level: float) -> Iterator[Interval]:
    """Means of the features under the MAP, and of the rows, where maximum likelihood puts them.

    The weights have about the covariance ``(N C + P)^-1`` with the covariance C of the features and the precision P of
    a normal prior, and so their means ``C (N C + P)^-1 C``.
    """
    if len(network.weight_names_) > MOST_WEIGHTS:
        return
    matched = or_none(network.matched_statistics)
    covariance = None if matched is None else or_none(lambda: network.information_)
    if matched is None or covariance is None or matched.errors is not None:
        return
    precision = _precision(network._learned_by().options["prior"], len(covariance))
    spread = covariance @ np.linalg.pinv(network.report_.weight * covariance + precision, hermitian=True) @ covariance
    reach = normal_reach(level) * np.sqrt(np.maximum(np.diagonal(spread), 0.0))
    for name, seen, fitted, far in zip(matched.names, matched.observed, matched.expected, reach, strict=True):
        yield Interval(str(name), float(fitted - far), float(fitted + far), float(seen), float(fitted), None)


def _precision(prior: object, size: int) -> Floats:
    """Of a normal prior of the weights (size, size); 0 for others, which have no curvature where they are smooth."""
    if isinstance(prior, MultivariateNormal):
        return np.asarray(np.linalg.inv(prior.covariance_))
    if isinstance(prior, Normal):
        return np.diag(np.broadcast_to(1.0 / np.asarray(prior.variance_, dtype=np.float64), (size,)))
    return np.zeros((size, size))
