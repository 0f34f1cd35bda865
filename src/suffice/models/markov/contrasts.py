"""Effects of a log-linear model in treatment or sum contrasts: the parameters that the tables of its cliques have."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Floats
from suffice.checks import choice
from suffice.choices import Contrasts, choices
from suffice.domain import Variable
from suffice.errors import EstimateError, OptionError, listing, shortened
from suffice.fitting.inference import Inference
from suffice.fitting.parameter_table import EstimateTable
from suffice.models.markov.feature import Feature

if TYPE_CHECKING:
    from suffice.models.markov.declaration import MarkovNetwork

#: The effect of some variables at given states, in the order of the domain.
Effect = tuple[tuple[Hashable, Hashable], ...]


def effects(
    network: MarkovNetwork,
    coding: Contrasts = "treatment",
    *,
    reference: Mapping[Any, Any] | None = None,
    level: float = 0.95,
) -> EstimateTable:
    """Main effects and interactions of the tables, as a Poisson regression of the counts has them.

    Tables have more weights than free parameters, so that single weights say little. Effects are the free parameters:
    an effect of some variables is there for every part of a clique, and has ``prod (states - 1)`` numbers. Errors are
    those of `weight_covariance_`. The intercept of the regression is no parameter of a distribution.

    Args:
        network: a fitted network of tables, whose maximum is attained.
        coding: ``"treatment"``, against a reference state, as R's ``contr.treatment``; or ``"sum"``, against the mean,
            without the last state, whose effect is minus the sum of the others, as R's ``contr.sum``.
        reference: the reference state of some variables in treatment contrasts; the first unless said.
        level: probability of each interval.
    """
    choice(coding, "coding", choices(Contrasts))
    fitted = network.fitted_
    model, domain = fitted.model, fitted.domain
    features = [term.name for term in model.terms if isinstance(term, Feature)]
    if features:
        raise OptionError(
            f"Effects are those of tables; {listing(features)} are features: summary() has their weights."
        )
    if fitted.limits.any():
        raise EstimateError(
            "The maximum is not attained: some effects run to infinity, as the certificate of report_ says. A prior, "
            "such as prior=sf.Normal(variance=10), keeps all finite."
        )
    chosen = _references(domain.variables, coding, reference)
    rows: dict[Effect, Floats] = {}
    for term, own in zip(model.terms, model.weight_slices, strict=True):
        variables = [domain[name] for name in term]  # type: ignore[union-attr]
        kept = [_kept(variable, coding, chosen) for variable in variables]
        maps: Floats = np.ones((1, 1))
        for variable in variables:
            maps = np.asarray(np.kron(maps, _functionals(variable, coding, chosen)))
        for number, codes in enumerate(np.ndindex(*domain.shape(term))):  # type: ignore[arg-type]
            there = [
                (variable.name, states[code - 1])
                for variable, states, code in zip(variables, kept, codes, strict=True)
                if code
            ]
            effect = tuple(sorted(there, key=lambda part: domain.names.index(part[0])))
            if effect:
                rows.setdefault(effect, np.zeros(model.n_weights))[own] += maps[number]
    order = sorted(rows, key=lambda effect: (len(effect), [domain.names.index(name) for name, _ in effect]))
    matrix = np.array([rows[effect] for effect in order]).reshape(len(order), model.n_weights)
    names = tuple(":".join(f"{name}[{state}]" for name, state in effect) for effect in order)
    inference = Inference.of_covariance(
        names, matrix @ fitted.finite, lambda: matrix @ network.weight_covariance_ @ matrix.T, heading="effect"
    )
    against = ", ".join(f"{name}={state}" for name, state in chosen.items())
    words = f"treatment, against {against}" if coding == "treatment" else "sum to 0, the last state left out"
    return EstimateTable.of_estimates(inference, (("contrasts", words),), level)


def _references(
    variables: tuple[Variable, ...], coding: Contrasts, reference: Mapping[Any, Any] | None
) -> dict[Hashable, Hashable]:
    """The reference state of every variable."""
    chosen = {variable.name: variable.states[0] for variable in variables}
    if reference is None:
        return chosen
    if coding == "sum":
        raise OptionError("reference= has no effect with coding='sum', whose effects are against the mean.")
    if not isinstance(reference, Mapping) or not set(reference) <= set(chosen):
        raise OptionError(
            f"reference is {shortened(reference)}; expected a dict of {listing(chosen)} and their states."
        )
    known = {variable.name: variable for variable in variables}
    return chosen | {name: known[name].states[known[name].index(state)] for name, state in reference.items()}


def _kept(variable: Variable, coding: Contrasts, chosen: Mapping[Hashable, Hashable]) -> list[Hashable]:
    """The states that have an effect of their own."""
    if coding == "sum":
        return list(variable.states[:-1])
    return [state for code, state in enumerate(variable.states) if code != variable.index(chosen[variable.name])]


def _functionals(variable: Variable, coding: Contrasts, chosen: Mapping[Hashable, Hashable]) -> Floats:
    """What a function of the states is in the basis of a constant and the contrasts (card, card), constant first."""
    card = variable.card
    if coding == "sum":
        basis = np.column_stack([np.ones(card), np.vstack([np.eye(card - 1), -np.ones(card - 1)])])
    else:
        others = np.arange(card) != variable.index(chosen[variable.name])
        basis = np.column_stack([np.ones(card), np.eye(card)[:, others]])
    return np.asarray(np.linalg.inv(basis))
