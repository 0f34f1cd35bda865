"""Many examples as a few long arrays: the cliques of each template one after another, example by example."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, Ints
from suffice.checks import is_list
from suffice.errors import DataError, MissingValueError, listing
from suffice.models.conditional_field.labels import LARGEST, counted, too_large
from suffice.models.graph_crf.example import GraphExample, members_and_features

#: What messages call the things that have labels, and the places of their labels.
EXAMPLES = ("example", "node")
NODES, EDGES = "nodes", "edges"


@dataclass(frozen=True, eq=False)
class Cliques:
    """Cliques of one template: members (c, r), numbered inside of each example; features (c, F); offsets (n + 1,)."""

    members: Ints
    features: Floats
    offsets: Ints

    @property
    def owner(self) -> Ints:
        """The example of each clique (c,)."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def chosen(self, examples: Ints) -> Cliques:
        """Those of some examples, in the order asked."""
        counts = np.diff(self.offsets)[examples]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        places = np.repeat(self.offsets[examples] - offsets[:-1], counts) + np.arange(offsets[-1])
        return Cliques(self.members[places], self.features[places], offsets)


@dataclass(frozen=True, eq=False)
class Graphs:
    """n examples; the first template is that of the nodes, the second that of the edges."""

    names: tuple[str, ...]
    parts: tuple[Cliques, ...]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def offsets(self) -> Ints:
        """Where the nodes of each example begin (n + 1,)."""
        return self.parts[0].offsets

    def arrays(self) -> list[NDArray[Any]]:
        """What tells them from others."""
        return [array for part in self.parts for array in (part.members, part.features, part.offsets)]

    def places(self, template: int) -> Ints:
        """Members of all cliques of a template (c, r), numbered among the nodes of all examples."""
        part = self.parts[template]
        return part.members + self.offsets[part.owner][:, None]

    def chosen(self, examples: Ints) -> Graphs:
        """Some examples, in the order asked."""
        return Graphs(self.names, tuple(part.chosen(examples) for part in self.parts))

    def shape_key(self, example: int) -> tuple[Any, ...]:
        """What two examples have in common whose graphs are the same."""
        key: list[Any] = [int(self.offsets[example + 1] - self.offsets[example])]
        for part in self.parts[1:]:
            key.append(part.members[part.offsets[example] : part.offsets[example + 1]].tobytes())
        return tuple(key)

    def distinct(self) -> tuple[Ints, Ints]:
        """An example for each distinct one (k,), and which of them each equals (n,)."""
        known: dict[bytes, int] = {}
        firsts, label = [], []
        for example in range(len(self)):
            digest = hashlib.blake2b(repr(self.shape_key(example)).encode(), digest_size=16)
            for part in self.parts:
                digest.update(part.features[part.offsets[example] : part.offsets[example + 1]].tobytes())
            key = digest.digest()
            if key not in known:
                known[key] = len(known)
                firsts.append(example)
            label.append(known[key])
        return np.array(firsts, np.int64), np.array(label, np.int64)

    @property
    def widths(self) -> dict[str, tuple[int, int]]:
        """Members and features of the cliques of each template; no features where no example has such cliques."""
        return {
            name: (int(part.members.shape[1]), int(part.features.shape[1]))
            for name, part in zip(self.names, self.parts, strict=True)
        }


def read_graphs(X: Iterable[Any], names: Sequence[str], widths: Mapping[str, tuple[int, int]] | None = None) -> Graphs:
    """Check examples and join their arrays.

    names: the templates beyond nodes and edges; widths: members and features of each template, where a model knows
    them already.
    """
    examples = listed_examples(X)
    reader = _ExampleReader(tuple(names), dict(widths or {}))
    for number, example in enumerate(examples):
        reader.take(number, example)
    return reader.joined()


def listed_examples(X: Iterable[Any]) -> list[GraphExample]:
    """The examples of a list; tuples (nodes, edges, edge features) and mappings are taken too."""
    if isinstance(X, GraphExample):
        raise DataError("X is one GraphExample; expected a list of them, such as [example].")
    if isinstance(X, Mapping) or not is_list(X):
        raise DataError(f"X is a {type(X).__name__}; expected a list of GraphExample.")
    examples = []
    for number, one in enumerate(X):
        if isinstance(one, GraphExample):
            examples.append(one)
        elif isinstance(one, tuple) and 1 <= len(one) <= 3:
            examples.append(GraphExample(*one))
        elif isinstance(one, Mapping) and set(one) <= {"nodes", "edges", "edge_features", "cliques"} and "nodes" in one:
            examples.append(GraphExample(**one))
        else:
            raise DataError(
                f"Example {number} is a {type(one).__name__}; expected a GraphExample, or a tuple of nodes, edges and "
                "edge features."
            )
    if not examples:
        raise DataError("X holds no examples; expected at least one.")
    return examples


class _ExampleReader:
    """Takes examples one after the other and checks them."""

    def __init__(self, names: tuple[str, ...], widths: dict[str, tuple[int, int]]) -> None:
        self.names, self.widths = (NODES, EDGES, *names), widths
        self.members: dict[str, list[Ints]] = {name: [] for name in self.names}
        self.features: dict[str, list[Floats]] = {name: [] for name in self.names}

    def take(self, number: int, example: GraphExample) -> None:
        """Check one example and keep its arrays."""
        where = f"Example {number}"
        nodes = example.nodes
        if nodes.ndim != 2:
            raise DataError(f"{where}: nodes has shape {nodes.shape}; expected (nodes, features).")
        if not len(nodes):
            raise DataError(f"{where} has no nodes; every graph needs at least one.")
        self._keep(where, NODES, np.arange(len(nodes))[:, None], nodes)
        members = _members(where, EDGES, example.edges, len(nodes))
        if len(members) and members.shape[1] != 2:
            raise DataError(f"{where}: edges has shape {members.shape}; expected (edges, 2).")
        _refuse_repeated(where, EDGES, np.sort(members, axis=1), members)
        self._keep(where, EDGES, members, example.edge_features)
        unknown = [name for name in example.cliques if name not in self.names[2:]]
        if unknown:
            raise DataError(
                f"{where} has cliques of {listing(unknown)}; the templates of the model are {listing(self.names[2:])}. "
                "Name them in templates=."
            )
        for name in self.names[2:]:
            given, features = members_and_features(example.cliques.get(name, np.zeros((0, 0), np.int64)))
            members = _members(where, name, given, len(nodes))
            _refuse_repeated(where, name, members, members)
            self._keep(where, name, members, features)

    def _keep(self, where: str, name: str, members: Ints, given: Any) -> None:
        count = len(members)
        if count == 0 and name != NODES:
            # Without cliques nothing is known about their width; an empty array says nothing about it.
            self.members[name].append(np.zeros((0, 0), np.int64))
            self.features[name].append(np.zeros((0, 0)))
            if given is not None and np.size(given):
                raise DataError(f"{where}: there are no {name}, and {len(given)} rows of their features.")
            return
        features = np.ones((count, 1)) if given is None else _numbers(where, name, given, count)
        width = (members.shape[1], features.shape[1])
        if name not in self.widths:
            self.widths[name] = width
        expected = self.widths[name]
        if expected[1] == 0 < width[1]:
            raise DataError(f"{where} has {name}, and the examples of the fit had none: there are no weights for them.")
        if width[0] != expected[0]:
            raise DataError(f"{where}: cliques of {name!r} have {width[0]} members; those before had {expected[0]}.")
        if width[1] != expected[1]:
            raise DataError(f"{where}: {name} have {width[1]} features; expected {expected[1]}, as before.")
        self.members[name].append(members)
        self.features[name].append(features)

    def joined(self) -> Graphs:
        """All examples."""
        parts = []
        for name in self.names:
            size, width = self.widths.get(name, (2 if name == EDGES else 0, 0))
            offsets = np.concatenate([[0], np.cumsum([len(one) for one in self.members[name]])]).astype(np.int64)
            members = np.concatenate([one.reshape(len(one), size) for one in self.members[name]])
            features = np.concatenate([one.reshape(len(one), width) for one in self.features[name]])
            parts.append(Cliques(members, np.ascontiguousarray(features), offsets))
        return Graphs(self.names, tuple(parts))


def _numbers(where: str, name: str, given: Any, count: int) -> Floats:
    """Features (count, F), all finite."""
    what = {NODES: "nodes", EDGES: "edge_features"}.get(name, f"features of {name!r}")
    row = {NODES: "node", EDGES: "edge"}.get(name, "clique")
    try:
        numbers = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{where}: {what} hold values that are not numbers; expected numbers.") from None
    if numbers.ndim != 2:
        raise DataError(f"{where}: {what} has shape {numbers.shape}; expected ({count}, features).")
    if len(numbers) != count:
        raise DataError(
            f"{where}: {counted(count, row)} and {counted(len(numbers), 'row')} of {what}; they must be as many."
        )
    wrong = np.argwhere(~np.isfinite(numbers))
    if len(wrong):
        i, j = wrong[0].tolist()
        raise MissingValueError(
            f"{where}, {row} {i}: feature {j} is {numbers[i, j]}; every feature needs a finite number."
        )
    if numbers.size and np.abs(numbers).max() > LARGEST:
        i, j = np.unravel_index(int(np.argmax(np.abs(numbers))), numbers.shape)
        raise DataError(too_large(f"{where}, {row} {i}: feature {j}", float(numbers[i, j])))
    return numbers


def _members(where: str, name: str, given: Any, count: int) -> Ints:
    """Members of cliques (c, r): whole numbers of nodes, no node twice in a clique."""
    row = "edge" if name == EDGES else f"clique of {name!r}"
    members = np.asarray(given)
    if members.ndim != 2:
        raise DataError(f"{where}: the members of {name!r} have shape {members.shape}; expected (cliques, members).")
    if not len(members):
        return np.zeros((0, members.shape[1]), np.int64)
    if members.dtype.kind not in "iu":
        raise DataError(f"{where}: the members of {name!r} have type {members.dtype}; expected whole numbers of nodes.")
    outside = np.argwhere((members < 0) | (members >= count))
    if len(outside):
        i, j = outside[0].tolist()
        raise DataError(f"{where}, {row} {i}: node {members[i, j]} does not exist; expected 0 to {count - 1}.")
    ordered = np.sort(members, axis=1)
    twice = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    if len(twice):
        shown = members[twice[0]].tolist()
        what = "joins a node to itself" if name == EDGES else "names a node twice"
        raise DataError(f"{where}, {row} {int(twice[0])}: {shown} {what}; expected different nodes.")
    return members.astype(np.int64)


def _refuse_repeated(where: str, name: str, keys: Ints, members: Ints) -> None:
    """No two cliques of a template have the same members."""
    if not len(keys):
        return
    _, firsts, label = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    label = label.reshape(-1)
    again = np.flatnonzero(firsts[label] != np.arange(len(keys)))
    if len(again):
        i = int(again[0])
        row = "edge" if name == EDGES else f"clique of {name!r}"
        raise DataError(
            f"{where}, {row} {i}: {members[i].tolist()} is there already, as number {int(firsts[label[i]])}. Join "
            "their features in one row."
        )


def flat_labels(y: Iterable[Any] | None, graphs: Graphs) -> Any:
    """Labels with those of pictures, arrays of several axes, laid out row by row; a lone node may have a lone label."""
    if y is None:
        raise DataError("y is missing: the model is one of labels given X. Give the labels of each example as y.")
    if not is_list(y):
        raise DataError(f"y is a {type(y).__name__}; expected the labels of each example in a list.")
    given = list(y)
    if (np.diff(graphs.offsets) == 1).all() and not any(np.ndim(one) for one in given):
        return [[one] for one in given]
    for number, one in enumerate(given):
        rows = one if isinstance(one, list | tuple) else ()
        if (
            rows
            and all(isinstance(row, list | tuple | np.ndarray) for row in rows)
            and _nodes(graphs, number) > len(rows)
        ):
            raise DataError(
                f"Example {number} of y is a list of lists; expected one label for each node, or an array (height, "
                "width) of the labels of a picture: np.array(labels)."
            )
    return [one.ravel() if isinstance(one, np.ndarray) and one.ndim > 1 else one for one in given]


def _nodes(graphs: Graphs, example: int) -> int:
    return int(graphs.offsets[example + 1] - graphs.offsets[example]) if example < len(graphs) else 0
