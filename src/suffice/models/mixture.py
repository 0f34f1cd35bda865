"""Mixtures that are learned: the states of a hidden Markov model whose sequences have one step each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from suffice.checks import weights_of
from suffice.errors import OptionError, listing
from suffice.fitting.fit import Fit
from suffice.fitting.report import Report
from suffice.fitting.samples import unused_target
from suffice.models.hidden_markov.declaration import HiddenMarkovModel
from suffice.models.hidden_markov.emissions.distributions import MixtureDistribution, MixtureFitted
from suffice.sources.sequences import open_sequences

#: Options of a hidden Markov model that speak of its transitions, or of what `Mixture` says itself.
IDLE = frozenset({"states", "emission", "transitions", "topology"})


class Mixture(MixtureDistribution):
    """``sum_m weights[m] f_m(x)``: the distribution of a step that comes from one of several distributions.

    Unfitted, also as the emission of a hidden Markov model: ``Mixture(Normal(), 3)``, three components in each state.
    Given: ``Mixture([Normal(0, 1), Normal(5, 2)], weights=[0.3, 0.7])``.

    Args:
        components: an unfitted distribution, or a list of given ones.
        n: how many components an unfitted mixture has.
        weights: one for each given component; equal unless said.

    >>> from suffice import Normal
    >>> Mixture([Normal(0, 1), Normal(10, 1)], weights=[0.25, 0.75]).mean()
    7.5
    """

    def fit(self, data: Any, y: Any = None, *, sample_weight: Any = None, columns: Any = None, **options: Any) -> Self:
        """Learn the components by EM: every step is a sequence of its own, and its state the component.

        Further options are those of `HiddenMarkovModel`, such as ``n_init`` and ``random_state``, but for those of
        transitions, of which there are none.
        """
        unused_target(self, y)
        idle = sorted(IDLE & options.keys())
        if idle:
            raise OptionError(
                f"{listing(idle)} of a Mixture would have no effect: its rows follow no order. Leave it out."
            )
        components = self._options["components"]
        if isinstance(components, tuple):
            raise OptionError("There is nothing to fit: the components are given. Give an unfitted distribution and n.")
        steps = open_sequences(data, columns=columns).values
        model = HiddenMarkovModel(int(self._options["n"]), emission=components, **options)
        model.fit(steps, lengths=np.ones(len(steps), np.int64), sample_weight=sample_weight)
        return self._adopt(Fit(MixtureFitted(tuple(model.emissions_), model.initial_), model.report_))

    def score(self, data: Any, y: Any = None, *, sample_weight: Any = None, columns: Any = None) -> float:
        """Mean log-likelihood of a row (weighted), natural logarithm; `y` is as in `fit`."""
        unused_target(self, y)
        rows = open_sequences(data, columns=columns).values
        weights = weights_of(sample_weight, len(rows), "row")
        used = weights > 0.0
        if not used.any():
            raise OptionError("The score of no rows is undefined: the data have no weight. Give rows.")
        return float(weights[used] @ np.atleast_1d(self.log_prob(rows))[used]) / float(weights.sum())

    def _task(self) -> Any:
        raise OptionError("A Mixture is learned by EM, which needs all rows at once. Give them to fit together.")

    def to_dict(self) -> dict[str, Any]:
        """Options, and what was learned."""
        state: dict[str, Any] = {"options": dict(self._options), "fitted": None}
        if self._bare_report() is not None:
            state |= {"fitted": self.fitted_.to_dict(), "report": self.report_.to_dict()}
        return state

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data."""
        model = cls(**plain["options"])
        if plain["fitted"] is not None:
            fitted = cls._of(tuple(plain["fitted"]["components"]), plain["fitted"]["weights"])
            model._adopt(Fit(fitted, Report.from_dict(plain["report"])))
        return model
