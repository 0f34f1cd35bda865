"""What a network reads of the rows it is given: kinds and states, declared, learned, or left to the column."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from suffice.domain import Domain, Variable
from suffice.errors import listing
from suffice.models.bayesian.learning import NetworkLearning
from suffice.models.evidence import known_columns
from suffice.records import replace

if TYPE_CHECKING:
    from suffice.fitting.template import Purpose


class NetworkReading(NetworkLearning):
    """Mixed into the network, which gives the structure, the options and the fitted nodes."""

    _declared: dict[Hashable, Any]
    #: What is declared, as variables.
    _variables: dict[Hashable, Variable]

    @property
    def _hidden(self) -> dict[Hashable, Variable]:
        """The variables that are never observed."""
        raise NotImplementedError

    def _wanted(self, columns: Sequence[Hashable]) -> Mapping[Hashable, Variable | None]:
        """All nodes but the hidden ones: as declared, or as their kinds say."""
        hidden = self._hidden
        wanted = {n: self._variables.get(n) for n in self._parents if n not in hidden}
        if not self._options["nodes"]:
            return wanted
        from suffice.models.bayesian.nodes.kinds import wanted_column

        kinds = {n: self._chosen_kind(n) for n in wanted}
        return {n: v if kinds[n] is None else wanted_column(n, kinds[n], v) for n, v in wanted.items()}

    def _wanted_again(self, columns: Sequence[Hashable], purpose: Purpose) -> Mapping[Hashable, Variable | None]:
        """Kinds as learned. Rows that join may bring new states; those that are compared may lack columns."""
        if purpose == "compare":
            return {v.name: replace(v, origin="declared") for v in known_columns(self._observed_domain(), columns)}
        wanted = self._wanted(columns)
        if "_fitted" not in self.__dict__:
            return wanted
        return {n: Variable(n, self._variable(n).kind) if v is None else v for n, v in wanted.items()}

    def _variable(self, node: Hashable) -> Variable:
        """A fitted node as a variable; its states are those of the network, in their order."""
        variable: Variable = self._nodes()[node].domain[node]
        return Variable.discrete(node, variable.states) if variable.kind == "discrete" else variable

    def _observed_domain(self) -> Domain:
        """The fitted nodes without the hidden ones."""
        return Domain(self._variable(name) for name in self._nodes() if name not in self._hidden)

    def _notes_on_columns(self, columns: Sequence[Hashable]) -> tuple[str, ...]:
        """What a report says about columns that are not read."""
        found = [name for name in self._hidden if name in columns]
        return (f"{listing(found)} is hidden: the column of that name is not read",) if found else ()
