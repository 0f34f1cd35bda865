"""Questions to a fitted Bayesian network: queries, predictions, samples."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain
from suffice.errors import OptionError
from suffice.graphs.directed import topological_order
from suffice.models.mixed_inference import MixedInference
from suffice.models.network_inference import TableInference, coded_columns
from suffice.models.table_node import TableNode
from suffice.table import Table

Floats = NDArray[np.float64]


class NetworkAnswers:
    """What a fitted network answers; the network itself gives the structure and the fitted nodes."""

    _parents: dict[Hashable, tuple[Hashable, ...]]

    @property
    def nodes(self) -> tuple[Hashable, ...]:
        """The nodes, in the order in which the structure names them."""
        return tuple(self._parents)

    def _nodes(self) -> dict[Hashable, Any]:
        """The fitted nodes by name."""
        raise NotImplementedError

    def node(self, node: Hashable) -> Any:
        """The fitted node."""
        raise NotImplementedError

    def states(self, node: Hashable) -> tuple[Hashable, ...]:
        """The states of a node."""
        raise NotImplementedError

    def _infer(self) -> Any:
        if "_inference" not in self.__dict__:
            tables = all(isinstance(node, TableNode) for node in self._nodes().values())
            self._inference = TableInference(self._nodes()) if tables else MixedInference(self._nodes())
        return self._inference

    def query(self, variables: Any, given: Mapping[Any, Any] | None = None) -> Any:
        """P(variables | given), exactly: a table with axes in the order asked, or a mixture of normal laws.

        `given` holds states and values; a dict or array of likelihoods by state is soft evidence.
        """
        return self._infer().query(variables, given)

    def joint_marginal(self, variables: Sequence[Hashable]) -> Table:
        """P(variables), axes in the order asked."""
        return self._infer().query(list(variables), None)

    def marginals(self, given: Mapping[Any, Any] | None = None) -> dict[Hashable, Table]:
        """P(variable | given) of every variable, from one calibration."""
        return self._infer().marginals(given)

    def most_probable(self, given: Mapping[Any, Any] | None = None) -> dict[Hashable, Hashable]:
        """The most probable joint state that agrees with the evidence."""
        return self._infer().most_probable(given)

    def log_probability(self, given: Mapping[Any, Any] | None = None) -> float:
        """Log-probability of evidence; -inf where it is impossible."""
        return self._infer().log_probability(given)

    def log_likelihood(self, data: Any, *, columns: Any = None) -> Floats:
        """Log-probability of each row; gaps and absent columns are summed out."""
        infer = self._infer()
        parts = [infer.log_likelihood(found, n) for found, n in coded_columns(data, infer.domain, columns)]
        return np.concatenate(parts) if parts else np.empty(0)

    def predict_proba(self, data: Any, target: Hashable, *, columns: Any = None) -> Floats:
        """P(target | the other columns) of each row (n, card), states in the order of `states(target)`."""
        domain = self._infer().domain
        if domain[target].kind != "discrete":
            raise OptionError(f"{target!r} is real and has no table of probabilities; predict gives its mean.")
        return self._predicted(data, target, columns)

    def _predicted(self, data: Any, target: Hashable, columns: Any) -> Floats:
        infer = self._infer()
        others = Domain(variable for variable in infer.domain.variables if variable.name != target)
        parts = [infer.predict_rows(found, n, target) for found, n in coded_columns(data, others, columns)]
        return np.concatenate(parts) if parts else np.empty((0, infer.domain[target].card))

    def predict(self, data: Any, target: Hashable, *, columns: Any = None) -> NDArray[Any]:
        """The most probable state of the target given the other columns, or the mean of a real one, for each row."""
        if self._infer().domain[target].kind != "discrete":
            return self._predicted(data, target, columns)
        return self._labels(target, self.predict_proba(data, target, columns=columns).argmax(axis=1))

    def sample(
        self, n: int = 1, given: Mapping[Any, Any] | None = None, *, random_state: Any = None
    ) -> dict[Hashable, NDArray[Any]]:
        """`n` rows, as columns of states by node; with evidence from the exact posterior."""
        rng = np.random.default_rng(random_state)
        if given:
            drawn = self._infer().sample_given(given, n, rng)
            return {name: self._labels(name, codes) for name, codes in drawn.items()}
        columns: dict[Hashable, NDArray[Any]] = {}
        for name in topological_order(self._parents):
            columns[name] = self.node(name).sample(columns, rng, n)
        return {name: self._labels(name, columns[name]) for name in self.nodes}

    def _labels(self, name: Hashable, codes: NDArray[Any]) -> NDArray[Any]:
        if self.node(name).domain[name].kind != "discrete":
            return codes
        states = self.states(name)
        kinds = {type(state) for state in states}
        if len(kinds) == 1 and kinds <= {int, float, bool}:
            return np.array(states)[codes]
        labels = np.empty(len(states), dtype=object)
        labels[:] = states
        return labels[codes]
