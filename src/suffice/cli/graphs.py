"""Questions to networks and graphs, whose names, states and values come as text."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from typing import Any

import suffice as sf
from suffice.cli.application import rows
from suffice.cli.building import CommandOptions, build_graph, pairs
from suffice.cli.commands import ByRows, Columns, ReadingOptions
from suffice.cli.structures import read_structure
from suffice.errors import OptionError, listing, meant


class GraphCommands(ByRows):
    """A network or a graph, whose variables, states and values come as text; a Bayesian network unless a subclass."""

    @classmethod
    def fit(cls, files: Sequence[str], chosen: CommandOptions, reading: ReadingOptions) -> Any:
        """A fitted network or graph of the structure in the first file."""
        structure = cls._structure(files, reading)
        with rows(files[1:]) as data:
            return build_graph(structure, chosen, data).fit(data, sample_weight=reading.weight)

    @classmethod
    def summarize(cls, files: Sequence[str], chosen: CommandOptions, reading: ReadingOptions) -> Any:
        """The statistics that its fit needs."""
        structure = cls._structure(files, reading)
        with rows(files[1:]) as data:
            model = build_graph(structure, chosen, data)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "The summary holds")  # The command says so itself.
                return sf.summarize(model, data, sample_weight=reading.weight, minimum_count=reading.minimum_count)

    @staticmethod
    def _structure(files: Sequence[str], reading: ReadingOptions) -> Any:
        reading.check("A network or a graph", "weight", "minimum_count")
        if len(files) < 2:
            raise OptionError(f"Expected STRUCTURE and DATA; found only {files[0]!r}.")
        return read_structure(files[0])

    @property
    def nodes(self) -> tuple[Hashable, ...]:
        """The variables."""
        return () if self.portrait.graph is None else self.portrait.graph.nodes

    def states(self, name: Hashable) -> tuple[Hashable, ...]:
        """The states of a variable; none where it is real."""
        return tuple(self.model.states(name))

    def named(self, text: str) -> Hashable:
        """The variable of this name: itself, or the one that is printed so."""
        if text in self.nodes:
            return text
        alike = [node for node in self.nodes if str(node) == text]
        if len(alike) != 1:
            near = meant(text, self.nodes)
            if "=" in text and any(str(node) == text.partition("=")[0] for node in self.nodes):
                near = f" What is known is given by --given {text}."
            raise OptionError(f"The model has no variable {text!r}; it has {listing(self.nodes, 20)}.{near}")
        return alike[0]

    def evidence(self, given: Sequence[str]) -> dict[Hashable, Any]:
        """What is known, by variable: the state that is printed as the text, the number, or weights of states."""
        known: dict[Hashable, Any] = {}
        for item in given:
            name, value = self._cut(item)
            if name in known:
                raise OptionError(f"--given says {name!r} twice. Say it once; weights of states are NAME=a:0.8,b:0.2.")
            known[name] = self._value(name, value)
        return known

    def _cut(self, item: str) -> tuple[Hashable, str]:
        """Variable and value of ``name=value``, where the name may hold the sign too: the longest known name counts."""
        parts = item.split("=")
        names = {str(node): node for node in self.nodes}
        for cut in range(len(parts) - 1, 0, -1):
            name = "=".join(parts[:cut])
            if name in names:
                return self.named(name), "=".join(parts[cut:])
        ((first, value),) = pairs([item], "--given").items()
        return self.named(first), value

    def _value(self, name: Hashable, text: str) -> Any:
        """A state, a number, or (``a:0.8,b:0.2``) the likelihood of each state: evidence short of certainty."""
        states = self.states(name)
        if states and ":" in text and not any(str(state) == text for state in states):
            weights = dict(_weighed(name, part) for part in text.split(","))
            return {self._value(name, state): weight for state, weight in weights.items()}
        if not states:
            try:
                return float(text)
            except ValueError:
                raise OptionError(f"{name!r} is real; {text!r} is not a number. Give one.") from None
        alike = [text] if text in states else [state for state in states if str(state) == text]
        if len(alike) != 1:
            raise OptionError(f"{name!r} has no state {text!r}; it has {listing(states, 20)}.{meant(text, states)}")
        return alike[0]

    def query(self, variables: Sequence[str], given: Sequence[str]) -> Any:
        """P(variables | given)."""
        names = [self.named(text) for text in variables]
        return self.model.query(names if len(names) > 1 else names[0], given=self.evidence(given) or None)

    def predict(self, data: Sequence[str], reading: ReadingOptions) -> Columns:
        """The most probable state of the target, or the mean of a real one; with `proba` all probabilities."""
        reading.check(self.who, "target", "proba", "further")
        if reading.target is None:
            raise OptionError(f"Say which variable to predict with --target; the model has {listing(self.nodes)}.")
        name = self.named(reading.target)
        with rows(data) as opened:
            if not reading.proba:
                return {str(name): self.model.predict(opened, name)}
            if not self.states(name):
                raise OptionError(f"{name!r} is real and has no probabilities of states; leave out --proba.")
            shares = self.model.predict_proba(opened, name)
        return {str(state): shares[:, k] for k, state in enumerate(self.states(name))}

    def sample(self, n: int, reading: ReadingOptions) -> Columns:
        """`n` rows, given what is known."""
        reading.check(self.who, "given", "seed")
        return dict(self.model.sample(n, self.evidence(reading.given) or None, random_state=reading.seed))

    def table(self, name: str) -> Any:
        """The table of a node."""
        return self.model.table(self.named(name))


class MarkovCommands(GraphCommands):
    """A Markov network."""

    def table(self, name: str) -> Any:
        """The potential of a clique given as ``A,B``."""
        return self.model.potential(tuple(self.named(part.strip()) for part in name.split(",")))


class GaussianCommands(GraphCommands):
    """A Gaussian graph, all of whose variables are real."""

    def states(self, name: Hashable) -> tuple[Hashable, ...]:
        """None."""
        return ()

    def table(self, name: str) -> Any:
        """None."""
        raise OptionError(f"{self.who} has no tables; show prints its partial correlations.")


def _weighed(name: Hashable, part: str) -> tuple[str, float]:
    state, _, weight = part.strip().rpartition(":")
    try:
        return state, float(weight)
    except ValueError:
        raise OptionError(f"{name!r}: {part!r} is not a state and its weight, as in yes:0.8.") from None
