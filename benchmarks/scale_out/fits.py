"""The fits that are timed and weighed: how their rows are drawn, how they are made, and their parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import suffice as sf
from benchmarks.scale_out import rows

SEQUENCES = {"group": "sentence", "order": "step"}


@dataclass(frozen=True)
class Fit:
    """A model by its options, what `fit` is told, and the numbers it has learnt; `share`: one in so many rows."""

    title: str
    draw: rows.Draw
    model: Callable[..., Any]
    parameters: Callable[[Any], NDArray[Any]]
    options: Mapping[str, Any] = field(default_factory=dict)
    share: int = 1

    def fitted(self, data: Any, **options: Any) -> Any:
        """The fit of a table."""
        return self.model(**options).fit(data, **self.options)


def network(**options: Any) -> sf.BayesianNetwork:
    """The tree that the rows were drawn from."""
    return sf.BayesianNetwork(rows.EDGES, **options)


def tables(model: Any) -> NDArray[Any]:
    return np.concatenate([np.ravel(model.table(f"v{number}").values) for number in range(rows.COLUMNS)])


def weights(model: Any) -> NDArray[Any]:
    return np.concatenate([np.ravel(model.node(f"v{number}").weights_) for number in range(1, rows.COLUMNS)])


def logistic(**options: Any) -> sf.GLM:
    return sf.GLM("binomial", solver="irls", **options)


def coefficients(model: Any) -> NDArray[Any]:
    return np.asarray(model.parameters_)


def hidden_chain(**options: Any) -> sf.HiddenMarkovModel:
    return sf.HiddenMarkovModel(3, emission=sf.Categorical(), random_state=0, **options)


def field_of_chains(**options: Any) -> sf.ChainCRF:
    return sf.ChainCRF(prior=sf.Normal(variance=10.0), **options)


def field_weights(model: Any) -> NDArray[Any]:
    return np.asarray(model.weights_)


_TOKENS = {**SEQUENCES, "y": "label", "columns": ["word", "shape"]}

#: The fits that are timed round by round.
ROUNDS = {
    "EM": Fit(
        f"a network of {rows.COLUMNS} discrete columns, 10 % of the values missing",
        rows.discrete_missing,
        network,
        tables,
    ),
    "IRLS": Fit("logistic regression, 5 columns", rows.narrow_regression, logistic, coefficients, {"y": "y"}),
    "CRF": Fit(
        f"a chain CRF, {rows.LABELS} labels, 2 feature columns, sentences of {rows.STEPS}; a tenth of the rows",
        rows.tokens,
        field_of_chains,
        field_weights,
        _TOKENS,
        share=10,
    ),
}

#: The fits whose memory is measured.
MEMORY = {
    "tables": Fit("network of tables", rows.discrete, network, tables),
    "tables-missing": Fit("network of tables, 10 % missing, EM", rows.discrete_missing, network, tables),
    "gaussian-missing": Fit(
        f"linear-Gaussian network, 10 % missing in {rows.INCOMPLETE} of the columns, EM",
        rows.real_missing,
        network,
        weights,
    ),
    "glm": Fit(
        f"logistic regression, {rows.COLUMNS - 1} columns", rows.wide_regression, logistic, coefficients, {"y": "y"}
    ),
    "hmm": Fit(
        "hidden Markov model, group=, Baum-Welch",
        rows.wide_tokens,
        hidden_chain,
        lambda model: np.asarray(model.transitions_),
        {**SEQUENCES, "columns": "shape"},
    ),
    "chain": Fit(
        "Markov chain, group=",
        rows.wide_tokens,
        sf.MarkovChain,
        lambda model: np.asarray(model.transitions_.values),
        {**SEQUENCES, "columns": "label"},
    ),
    "crf": Fit("chain CRF, group=, 2 feature columns", rows.wide_tokens, field_of_chains, field_weights, _TOKENS),
}
