"""Which engine takes which example: nodes alone, paths, junction trees, and what is too wide for any of these."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Ints
from suffice.engines.junction_tree import TreePlan
from suffice.engines.registry import Planner
from suffice.models.conditional_field.labels import counted
from suffice.models.graph_crf.graphs import Graphs
from suffice.models.graph_crf.shapes import Paths, paths_of, plan_of
from suffice.models.graph_crf.structure import CliqueStructure

Scope = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ShapeGroup:
    """Examples (b,) of one shape, and the cliques of each that join two nodes or more, as (template, number) pairs."""

    examples: Ints
    scopes: tuple[Scope, ...]
    cliques: tuple[tuple[int, int], ...]
    plan: TreePlan | None = None
    paths: Paths | None = None
    planner: Planner | None = None


@dataclass(frozen=True, eq=False)
class EngineChoice:
    """Examples whose nodes stand alone (a,), groups of paths, groups with junction trees, and those too wide (w,).

    engine: the name of the registered engine that works on the groups instead of junction trees.
    """

    alone: Ints
    paths: tuple[ShapeGroup, ...]
    trees: tuple[ShapeGroup, ...]
    wide: Ints
    engine: str = ""

    def in_words(self, wide: str) -> str:
        """What a report says about it; wide: how those too wide are worked on."""
        words = []
        for number, what in (
            (len(self.alone), "softmax of each node"),
            (sum(len(group.examples) for group in self.paths), "forward-backward"),
        ):
            if number:
                words.append(f"{what} for {counted(number, 'graph')}")
        if self.trees:
            count = sum(len(group.examples) for group in self.trees)
            plans = [group.plan for group in self.trees if group.plan is not None]
            shapes = counted(len(self.trees), "shape")
            if self.engine:
                words.append(f"engine {self.engine!r} for {counted(count, 'graph')} ({shapes})")
            else:
                width, largest = max(plan.width for plan in plans), max(plan.largest for plan in plans)
                words.append(
                    f"junction trees for {counted(count, 'graph')} ({shapes}, width {width}, "
                    f"largest table {largest:,} cells)"
                )
        if len(self.wide):
            words.append(f"{wide} for {counted(len(self.wide), 'graph')} too wide for exact inference")
        return ", ".join(words)


def groups_of(structure: CliqueStructure, graphs: Graphs) -> list[ShapeGroup]:
    """Examples of the same shape together."""
    by_key: dict[tuple[Any, ...], list[int]] = {}
    for example in range(len(graphs)):
        by_key.setdefault(graphs.shape_key(example), []).append(example)
    groups = []
    for examples in by_key.values():
        first = examples[0]
        scopes: list[Scope] = []
        cliques: list[tuple[int, int]] = []
        for number, (template, part) in enumerate(zip(structure.templates, graphs.parts, strict=True)):
            if template.size < 2:
                continue
            members = part.members[part.offsets[first] : part.offsets[first + 1]].tolist()
            scopes += map(tuple, members)
            cliques += [(number, clique) for clique in range(len(members))]
        groups.append(ShapeGroup(np.array(examples, np.int64), tuple(scopes), tuple(cliques)))
    return groups


def chosen_by_shape(structure: CliqueStructure, graphs: Graphs, most_cells: int) -> EngineChoice:
    """The engine for each example; a junction tree may have up to `most_cells` cells."""
    counts = np.diff(graphs.offsets)
    alone, paths, trees, wide = [], [], [], []
    for group in groups_of(structure, graphs):
        count = int(counts[group.examples[0]])
        if not group.scopes:
            alone.append(group.examples)
            continue
        along = paths_of(count, group.scopes)
        if along is not None:
            paths.append(ShapeGroup(group.examples, group.scopes, group.cliques, paths=along))
            continue
        scopes = tuple((node,) for node in range(count)) + tuple(dict.fromkeys(group.scopes))
        plan = plan_of(count, structure.size, scopes, most_cells)
        if plan is None:
            wide.append(group.examples)
        else:
            trees.append(ShapeGroup(group.examples, group.scopes, group.cliques, plan=plan))
    nothing = np.zeros(0, np.int64)
    return EngineChoice(
        np.concatenate([nothing, *alone]), tuple(paths), tuple(trees), np.sort(np.concatenate([nothing, *wide]))
    )


def chosen_by_name(engine: str, planner: Planner, structure: CliqueStructure, graphs: Graphs) -> EngineChoice:
    """All examples that have cliques by a registered engine."""
    groups, nothing = groups_of(structure, graphs), np.zeros(0, np.int64)
    alone = [group.examples for group in groups if not group.scopes]
    trees = tuple(replace(group, planner=planner) for group in groups if group.scopes)
    return EngineChoice(np.concatenate([nothing, *alone]), (), trees, nothing, engine)


def everything(graphs: Graphs) -> EngineChoice:
    """All examples as too wide."""
    return EngineChoice(np.zeros(0, np.int64), (), (), np.arange(len(graphs)))


@dataclass(frozen=True, eq=False)
class PathSteps:
    """All paths one after another, as the engine of chains takes them.

    nodes (s,): the node of each step, among all; offsets (p + 1,) of the paths; owner (p,): the example of each;
    links: for each template with such cliques its number, the steps (m,) they lead into, the cliques (m,) and whether
    they are turned (m,).
    """

    nodes: Ints
    offsets: Ints
    owner: Ints
    links: tuple[tuple[int, Ints, Ints, NDArray[np.bool_]], ...]


def steps_of(graphs: Graphs, groups: tuple[ShapeGroup, ...]) -> PathSteps:
    """Lay the paths of all examples one after another."""
    nodes, firsts, owners = [], [], []
    links: dict[int, list[tuple[Ints, Ints, NDArray[np.bool_]]]] = {}
    start = 0
    for group in groups:
        paths = group.paths
        if paths is None:
            continue
        count, examples = len(paths.order), group.examples
        begins = start + count * np.arange(len(examples))
        nodes.append((graphs.offsets[examples][:, None] + paths.order).ravel())
        firsts.append(np.tile(paths.first, len(examples)))
        owners.append(np.repeat(examples, int(paths.first.sum())))
        inner = np.flatnonzero(~paths.first)
        template, clique = np.array([group.cliques[number] for number in paths.link[inner]], np.int64).reshape(-1, 2).T
        for number in np.unique(template).tolist():
            mine = template == number
            offsets = graphs.parts[number].offsets[examples]
            links.setdefault(number, []).append(
                (
                    (begins[:, None] + inner[mine]).ravel(),
                    (offsets[:, None] + clique[mine]).ravel(),
                    np.tile(paths.turned[inner[mine]], len(examples)),
                )
            )
        start += count * len(examples)
    begin = np.flatnonzero(np.concatenate([np.zeros(0, np.bool_), *firsts]))
    joined = [
        (number, *(np.concatenate(column) for column in zip(*parts, strict=True))) for number, parts in links.items()
    ]
    return PathSteps(
        np.concatenate([np.zeros(0, np.int64), *nodes]),
        np.append(begin, start),
        np.concatenate([np.zeros(0, np.int64), *owners]),
        tuple(joined),  # type: ignore[arg-type]
    )
