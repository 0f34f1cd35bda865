"""What a fitted hidden Markov model shows of itself."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import NotFittedError, OptionError
from suffice.fitting.report import CountedRows, MatchedStatistics, Report
from suffice.models.hidden_markov.emissions.contract import Emission
from suffice.models.hidden_markov.learning import Learner
from suffice.models.hidden_markov.moments import matched_sums, rows_with_prior
from suffice.models.hidden_markov.parameters import Parameters

Floats = NDArray[np.float64]


class Results:
    """Parameters and figures; arrays are read-only, since answers are made from them."""

    _emission: Emission
    _names: tuple[Hashable, ...]
    _values: Parameters
    report_: Report

    def _fitted(self) -> Parameters:
        if "_values" not in self.__dict__:
            raise NotFittedError("This HiddenMarkovModel has no parameters yet. Call fit first.")
        return self._values

    @property
    def states_(self) -> tuple[Hashable, ...]:
        """The hidden states, in the order of the parameters."""
        self._fitted()
        return self._names

    @property
    def initial_(self) -> Floats:
        """P(first state) (K,)."""
        return _shown(self._fitted().initial)

    @property
    def transitions_(self) -> Floats:
        """P(next state | state) (K, K)."""
        return _shown(self._fitted().transitions)

    @property
    def emissions_(self) -> list[Any]:
        """The law of each state."""
        found = self._fitted().emission
        return self._emission.laws({name: array.copy() for name, array in found.items()})

    @property
    def emission_probabilities_(self) -> Floats:
        """P(symbol | state) (K, M), where symbols are emitted."""
        found = self._fitted().emission
        if set(found) != {"probabilities"}:
            raise OptionError("The states do not emit symbols; read their laws in emissions_.")
        return _shown(found["probabilities"])

    @property
    def symbols_(self) -> tuple[Hashable, ...]:
        """The symbols, in the order of the columns of emission_probabilities_."""
        self._fitted()
        return tuple(self._emission.describe().get("states", ()))

    def matched_statistics(self) -> MatchedStatistics | None:
        """First states, transitions and statistics of the laws: expected given the sequences, and by the parameters.

        A fixed point of EM makes them equal. None in a model from a file that does not hold them.
        """
        values, expected = self._fitted(), self.__dict__.get("_expected")
        if expected is None:
            return None
        hidden = self.__dict__["_statistics"] is None
        return matched_sums(expected, values, self._learner(self._emission), self._names, hidden=hidden)

    def counted_rows(self) -> list[CountedRows]:
        """Rows of first states, transitions and symbols with their counts and priors; empty without a prior."""
        self._fitted()
        expected = self.__dict__.get("_expected")
        if expected is None:
            return []
        options, known = self.__dict__["_options"], self.__dict__["_statistics"] is not None
        # EM climbs to the mode under pseudo-counts + 1; of known states the pseudo-counts are the prior.
        more = 0.0 if known and options["estimate"] != "map" else 1.0
        return rows_with_prior(expected, self._learner(self._emission), self._names, more, hidden=not known)

    @property
    def scores_(self) -> tuple[float, ...]:
        """The objective that each run of EM reached; -inf for a run that failed."""
        self._fitted()
        return tuple(self.__dict__.get("_scores", ()))

    @property
    def n_params_(self) -> int:
        """Free parameters: what is fixed, forbidden or tied does not count."""
        self._fitted()
        return int(self.report_.n_params)

    @property
    def aic_(self) -> float | None:
        """Akaike's criterion, ``2 k - 2 log_likelihood``."""
        self._fitted()
        return self.report_.aic

    @property
    def bic_(self) -> float | None:
        """The Bayesian criterion, ``k log(steps) - 2 log_likelihood``."""
        self._fitted()
        return self.report_.bic

    def _learner(self, emission: Emission) -> Learner:
        raise NotImplementedError

    def _structure(self, emission: Emission) -> Any:
        raise NotImplementedError

    def _count_params(self) -> int:
        learner, structure = self._learner(self._emission), self._structure(self._emission)
        found = 0
        if "initial" not in learner.fixed and not learner.stationary:
            found += int(structure.first.sum()) - 1
        if "transitions" not in learner.fixed:
            found += int((structure.pairs.sum(axis=1) - 1).sum())
        if "emissions" not in learner.fixed:
            repeated = [law for group in learner.tied for law in group[1:]]
            found += int(np.delete(self._emission.n_free, repeated).sum()) + self._emission.n_shared
        return found


def _shown(array: Floats) -> Floats:
    """A view that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view
