"""What sequences say about the transitions of a chain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Floats
from suffice.errors import EstimateError, OptionError
from suffice.fitting.inference import Drop, Inference, binomial_drop

if TYPE_CHECKING:
    from suffice.models.markov_chain.declaration import MarkovChain
    from suffice.models.markov_chain.fitted import MarkovChainFitted


def inference_of(fitted: MarkovChainFitted) -> Inference:
    """P(next | history) of every history."""
    table = fitted.transitions
    names = tuple(f"P({where[-1]}{_given(where[:-1])})" for where, _ in table.items())
    prior = fitted.prior

    def row_sizes() -> Floats:
        return np.repeat(fitted._totals().ravel(), fitted.words.card)

    def drop(number: int) -> Drop | None:
        size = float(row_sizes()[number])
        return binomial_drop(size, float(table.values.flat[number])) if size > 0.0 else None

    def ends(level: float) -> Floats:
        return _credible(fitted, level)

    return Inference(
        names,
        table.values.ravel(),
        lambda: fitted.standard_errors().values.ravel(),
        lambda: _covariance(fitted),
        lowest=0.0,
        highest=1.0,
        tested=np.zeros(table.values.size, dtype=bool),
        drop=drop if fitted.is_plain else None,
        posterior=None if prior is None or fitted.estimate == "map" else ends,
    )


def _given(history: tuple[Any, ...]) -> str:
    return f" | {', '.join(map(str, history))}" if history else ""


def _covariance(fitted: MarkovChainFitted) -> Floats:
    """Block by block: cells of a row share what is left of its probability."""
    shares = fitted.transitions.values.reshape(-1, fitted.words.card)
    variances = fitted.standard_errors().values.reshape(shares.shape) ** 2
    whole = np.zeros((shares.size, shares.size))
    card = fitted.words.card
    for number, (row, variance) in enumerate(zip(shares, variances, strict=True)):
        # One over the size of the row, from its most even cell.
        cell = int(np.argmax(row * (1.0 - row)))
        scale = variance[cell] / max(row[cell] * (1.0 - row[cell]), 1e-300)
        whole[number * card : (number + 1) * card, number * card : (number + 1) * card] = scale * (
            np.diag(row) - np.outer(row, row)
        )
    return whole


def _credible(fitted: MarkovChainFitted, level: float) -> Floats:
    """Quantiles of the Dirichlet posterior of each row."""
    order, parts = fitted.distribution.order, []
    if order > 1:
        raise EstimateError("Posterior intervals of all rows are for chains of order 0 and 1; see posterior(history).")
    for history in fitted.words.words if order else [()]:
        posterior = fitted.posterior(history)
        parts.append(np.asarray(posterior.intervals(level), dtype=np.float64).reshape(-1, 2))
    return np.concatenate(parts)


def told_parameters(fitted: MarkovChainFitted, support: MarkovChainFitted) -> int:
    """Parameters that the sequences tell: of each history that they have, the states that may come next less one.

    support: a chain of no higher order over the same states, which says what may come.
    """
    below, _ = support.counted.events()
    following = Counter(map(tuple, below[:, :-1].tolist()))
    own, _ = fitted.counted.events()
    histories = np.unique(own[:, :-1], axis=0)
    suffixes = histories[:, fitted.distribution.order - support.distribution.order :]
    return sum(following[tuple(suffix)] - 1 for suffix in suffixes.tolist())


def redrawn(model: MarkovChain, given: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """As many sequences as the fit had, of the same lengths where they have no marks of their end."""
    data = given.get("data")
    if set(given) - {"data"} or not isinstance(data, list | tuple) or not data:
        raise OptionError(
            "Sequences are drawn in the number and lengths of those of the fit: bootstrap(sequences, "
            "kind='parametric'), a list of sequences and nothing beside it."
        )
    if model.fitted_.words.end is not None:
        return {"data": model.sample(len(data), random_state=rng)}
    return {"data": [model.sample(1, len(sequence), random_state=rng)[0] for sequence in data]}
