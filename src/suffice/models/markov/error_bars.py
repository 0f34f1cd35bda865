"""Error bars of what a Markov network answers: how probabilities follow the weights, and how far these are known.

With features f and weights w, d log P(q, e) / dw = E[f | q, e] - E[f], so that d P(q | e) / dw is P(q | e) times the
difference of E[f | q, e] and E[f | e]. Both are margins of calibrated trees. The weights are known up to the inverse of
the information of all rows, and of the precision of a normal prior.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from functools import cached_property, update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import numpy as np

from suffice.array_types import Floats
from suffice.errors import EstimateError
from suffice.models.evidence import read_evidence
from suffice.models.markov.fitted import MarkovFitted
from suffice.models.uncertain import LaterSpread, UncertainTable
from suffice.records import record
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.models.markov.declaration import MarkovNetwork

P = ParamSpec("P")


@record(frozen=True, eq=False)
class WeightSpread:
    """How P(names | given) varies with the weights, known up to a covariance (n_weights, n_weights).

    drawable: whether the weights have a posterior, by a normal prior.
    """

    fitted: MarkovFitted
    covariance: Floats
    drawable: bool
    names: tuple[Hashable, ...]
    given: Mapping[Any, Any] | None

    @cached_property
    def slopes(self) -> tuple[Floats, Floats]:
        """P(names | given) (a,), and its derivatives by all weights (a, n_weights)."""
        domain, known = self.fitted.domain, read_evidence(self.fitted.domain, self.given)
        tree = self.fitted.near.tree(self.fitted.finite)
        asked = [name for name in self.names if name not in known.states]
        shape = domain.shape(asked)
        logs, means = np.empty(math.prod(shape)), np.zeros((math.prod(shape), len(self.fitted.finite)))
        for row, codes in enumerate(np.ndindex(*shape)):
            states = {**known.states, **dict(zip(asked, codes, strict=True))}
            posterior = tree.condition(states, known.likelihoods)
            logs[row] = posterior.log_partition
            if posterior.log_partition > -np.inf:
                margins = [part.ravel() for part in posterior.factor_marginals()]
                cells = np.concatenate([np.zeros(0), *margins])[: self.fitted.near.model.n_cells]
                means[row] = self.fitted.near.model.expected(cells)
        shares = np.exp(logs - np.logaddexp.reduce(logs))
        slopes = shares[:, None] * (means - shares @ means)
        chosen = tuple(known.states.get(name, slice(None)) for name in self.names)
        values, every = np.zeros(domain.shape(self.names)), np.zeros((*domain.shape(self.names), means.shape[1]))
        values[chosen], every[chosen] = shares.reshape(shape), slopes.reshape(*shape, -1)
        return values.ravel(), every.reshape(values.size, -1)

    def errors(self) -> Floats:
        """Standard errors (a,); NaN where the answer is 0 or 1 because weights have run to infinity."""
        values, slopes = self.slopes
        errors = np.sqrt(np.maximum(np.einsum("ai,ij,aj->a", slopes, self.covariance, slopes, optimize=True), 0.0))
        open_ones = np.zeros(self.fitted.domain.shape(self.names), dtype=bool)
        known = read_evidence(self.fitted.domain, self.given).states
        if not known.keys() >= set(self.names):
            open_ones[tuple(known.get(name, slice(None)) for name in self.names)] = True
        edge = ((values <= 0) | (values >= 1)) & open_ones.ravel()
        return np.where(edge & bool((self.fitted.limits != 0).any()), np.nan, errors)

    def draws(self, n: int, rng: np.random.Generator) -> Floats:
        """The answers (n, a) at draws of the weights from the normal distribution around the mode."""
        if not self.drawable:
            raise EstimateError(
                "The weights were learned without a normal prior, so they have no posterior to draw from. Give prior=, "
                "such as prior=sf.Normal(variance=10), or use method='delta'."
            )
        from suffice.models.markov.inference import ExactInference

        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        answers = []
        for _ in range(n):
            weights = self.fitted.finite + root @ rng.standard_normal(len(values))
            log_z = self.fitted.near.margins(weights)[0]
            table = ExactInference(self.fitted.near, weights, log_z).table(self.names, self.given)
            answers.append(table.values.ravel())
        return np.array(answers)


def weight_spread(network: MarkovNetwork, variables: object, given: Mapping[Any, Any] | None) -> WeightSpread:
    """What the answer to one question varies by; where nothing is known about the weights together, why not."""
    fitted = network.fitted_
    drawable = network.get_params(deep=False)["prior"] is not None
    return WeightSpread(fitted, network.weight_covariance_, drawable, tuple(fitted.domain.names_of(variables)), given)


def answered(method: Callable[Concatenate[Any, P], Table]) -> Callable[Concatenate[Any, P], UncertainTable]:
    """The question of a Markov network about some variables, whose answer carries its error bar."""

    def ask(network: Any, /, *args: P.args, **options: P.kwargs) -> UncertainTable:
        answer = method(network.fitted_, *args, **options)
        return _carried(network, answer, *_asked(*args, **options))

    return update_wrapper(ask, method)


def _asked(variables: Any, given: Any = None, **_: Any) -> tuple[Any, Any]:
    return variables, None if given is None else dict(given)


def _carried(network: Any, answer: Any, variables: object, given: Any) -> UncertainTable:
    """An exact answer with what it varies by; one of chains, which has errors of its own, as it is."""
    if type(answer) is not Table:
        chained: UncertainTable = answer
        return chained
    return UncertainTable.of(answer, LaterSpread(weight_spread, network._with_fit(network._fit), variables, given))
