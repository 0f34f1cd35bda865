"""Questions to networks and graphs, whose names, states and values come as text."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

import suffice as sf
from suffice.cli.application import rows
from suffice.cli.building import pairs
from suffice.cli.ways import Columns, Form, Way
from suffice.errors import OptionError, listing

#: A print shows at most this many edges, nodes with their tables, weights, and rows of a matrix.
EDGES, NODES, WEIGHTS, MATRIX = 20, 5, 20, 12


def answer(model: Any, variables: Sequence[str], given: Sequence[str]) -> Any:
    """P(variables | given)."""
    names = [named(model, text) for text in variables]
    return model.query(names if len(names) > 1 else names[0], given=evidence(model, given) or None)


def named(model: Any, text: str) -> Hashable:
    """The variable of this name: itself, or the one that is printed so."""
    nodes = _nodes(model)
    if text in nodes:
        return text
    alike = [node for node in nodes if str(node) == text]
    if len(alike) != 1:
        raise OptionError(f"The model has no variable {text!r}; it has {listing(nodes, 20)}.")
    return alike[0]


def _nodes(model: Any) -> tuple[Hashable, ...]:
    if not hasattr(model, "nodes"):
        raise OptionError(f"A {type(model).__name__} has no variables to ask about; this needs a network or a graph.")
    return tuple(model.nodes)


def evidence(model: Any, given: Sequence[str]) -> dict[Hashable, Any]:
    """What is known, by variable: the state that is printed as the text, the number, or weights of states."""
    found: dict[Hashable, Any] = {}
    for item in given:
        name, value = _cut(model, item)
        if name in found:
            raise OptionError(f"--given says {name!r} twice. Say it once; weights of states are NAME=a:0.8,b:0.2.")
        found[name] = _value(model, name, value)
    return found


def _cut(model: Any, item: str) -> tuple[Hashable, str]:
    """Variable and value of ``name=value``, where the name may hold the sign too: the longest known name counts."""
    parts = item.split("=")
    names = {str(node): node for node in _nodes(model)}
    for at in range(len(parts) - 1, 0, -1):
        name = "=".join(parts[:at])
        if name in names:
            return named(model, name), "=".join(parts[at:])
    ((first, value),) = pairs([item], "--given").items()
    return named(model, first), value


def _value(model: Any, name: Hashable, text: str) -> Any:
    """A state, a number, or (``a:0.8,b:0.2``) the likelihood of each state, which is evidence short of certainty."""
    states = _states(model, name)
    if states and ":" in text and not any(str(state) == text for state in states):
        weights = dict(_weighed(name, part) for part in text.split(","))
        return {_value(model, name, state): weight for state, weight in weights.items()}
    if not states:
        try:
            return float(text)
        except ValueError:
            raise OptionError(f"{name!r} is real; {text!r} is not a number.") from None
    alike = [text] if text in states else [state for state in states if str(state) == text]
    if len(alike) != 1:
        raise OptionError(f"{name!r} has no state {text!r}; it has {listing(states, 20)}.")
    return alike[0]


def _weighed(name: Hashable, part: str) -> tuple[str, float]:
    state, _, weight = part.strip().rpartition(":")
    try:
        return state, float(weight)
    except ValueError:
        raise OptionError(f"{name!r}: {part!r} is not a state and its weight, as in yes:0.8.") from None


def _states(model: Any, name: Hashable) -> tuple[Hashable, ...]:
    """The states of a variable; none where it is real."""
    return () if isinstance(model, sf.GaussianGraph) else tuple(model.states(name))


class GraphWay(Way):
    """A Bayesian network, a Markov network or a Gaussian graph."""

    def predict(self, data: Sequence[str], form: Form) -> Columns:
        """The most probable state of the target, or the mean of a real one; with `proba` all probabilities."""
        form.check(self.who, "target", "proba", "further")
        if form.target is None:
            raise OptionError(
                f"Say which variable to predict with --target; the model has {listing(_nodes(self.model))}."
            )
        name = named(self.model, form.target)
        with rows(data) as found:
            if not form.proba:
                return {str(name): self.model.predict(found, name)}
            if not _states(self.model, name):
                raise OptionError(f"{name!r} is real and has no probabilities of states; leave out --proba.")
            shares = self.model.predict_proba(found, name)
        return {str(state): shares[:, k] for k, state in enumerate(self.model.states(name))}

    def sample(self, n: int, form: Form) -> Columns:
        """`n` rows, given what is known."""
        form.check(self.who, "given", "seed")
        known = evidence(self.model, form.given)
        drawn = self.model.sample(n, known, random_state=form.seed) if known else None
        found = self.model.sample(n, random_state=form.seed) if drawn is None else drawn
        if isinstance(self.model, sf.GaussianGraph) and isinstance(found, np.ndarray):
            return {name: found[:, at] for at, name in enumerate(self.model.nodes)}
        return dict(found)

    def table(self, name: str) -> Any:
        """The table of a node, or the potential of a clique given as ``A,B``."""
        if isinstance(self.model, sf.MarkovNetwork):
            return self.model.potential(tuple(named(self.model, part.strip()) for part in name.split(",")))
        if not hasattr(self.model, "table"):
            raise OptionError(f"{self.who} has no tables; show prints its partial correlations.")
        return self.model.table(named(self.model, name))

    def structure(self, *, for_programs: bool = False) -> dict[str, Any]:
        """Sizes and edges: all of them for programs, the first for people."""
        if for_programs:
            nodes, edges = self.model.nodes, self.model.edges
            return {"variables": len(nodes), "edges": len(edges), "structure": {"nodes": nodes, "edges": edges}}
        edges, mark = self.model.edges, " -> " if isinstance(self.model, sf.BayesianNetwork) else " -- "
        shown = "; ".join(mark.join(map(str, edge)) for edge in edges[:EDGES])
        rest = f"; ... ({len(edges) - EDGES} more)" if len(edges) > EDGES else ""
        return {"variables": len(self.model.nodes), "edges": len(edges), "structure": shown + rest}

    def figures(self) -> Any:
        """All tables or weights by name, or mean and covariance."""
        if isinstance(self.model, sf.BayesianNetwork):
            return {node: self.model.table(node) for node in self.model.nodes}
        if isinstance(self.model, sf.MarkovNetwork):
            names = map(_weight_name, self.model.weight_names_)
            return dict(zip(names, self.model.weights_, strict=True))
        return {"mean": self.model.mean_, "precision": self.model.precision_}

    def parameters(self) -> str:
        """Tables, weights or partial correlations: the first of them."""
        model = self.model
        if isinstance(model, sf.BayesianNetwork):
            shown = [f"{_family(model, node)}\n{model.table(node)}" for node in model.nodes[:NODES]]
            return "\n\n".join(shown) + _more(model.nodes, NODES, "nodes")
        if isinstance(model, sf.MarkovNetwork):
            pairs_ = zip(model.weight_names_[:WEIGHTS], model.weights_, strict=False)
            lines = [f"{weight:>12.6g}  {_weight_name(name)}" for name, weight in pairs_]
            return "\n".join(lines) + _more(model.weight_names_, WEIGHTS, "weights")
        matrix = str(np.round(model.partial_correlations_[:MATRIX, :MATRIX], 3))
        return f"partial correlations of {', '.join(map(str, model.nodes[:MATRIX]))}\n{matrix}" + _more(
            model.nodes, MATRIX, "nodes"
        )


def _family(model: Any, node: Hashable) -> str:
    parents = ", ".join(map(str, model.parents(node)))
    return f"P({node} | {parents})" if parents else f"P({node})"


def _weight_name(name: Any) -> str:
    return " ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def _more(items: Sequence[Any], shown: int, what: str) -> str:
    return f"\n... ({len(items) - shown} more {what})" if len(items) > shown else ""
