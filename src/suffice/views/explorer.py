"""What a page needs to answer questions by itself: the factors of a discrete network, and its junction tree."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.engines.junction_tree import TreePlan, plan_tree
from suffice.errors import SufficeError

Floats = NDArray[np.float64]
Factor = tuple[tuple[Hashable, ...], Floats]

#: Cells of all cliques together up to which a page answers questions; beyond that it would be slow and large.
MOST_CELLS = 200_000


@dataclass(frozen=True)
class Explorer:
    """`data` is what the script of the page reads, or None; `reason` then says why the page stays static."""

    data: dict[str, Any] | None
    reason: str = ""


def explorer_of(model: Any, *, most_cells: int = MOST_CELLS) -> Explorer:
    """The junction tree of a discrete network with its factors; a network that is too large says so."""
    try:
        factors = _factors(model)
        if factors is None:
            return Explorer(None)
        cards = _cards(model, factors)
        plan = plan_tree(cards, [scope for scope, _ in factors], limit_bytes=2**40)
    except SufficeError as error:
        return Explorer(None, f"This page is static: {error}")
    if plan.cells > most_cells:
        return Explorer(
            None,
            f"This page is static: exact answers need {plan.cells:,} cells of a junction tree, and pages explore "
            f"networks of up to {most_cells:,}. Ask the model itself, with query.",
        )
    if not all(np.isfinite(table).all() for _, table in factors):
        return Explorer(None, "This page is static: some rows of the tables are not defined.")
    return Explorer(_exported(model.nodes, cards, factors, plan))


def _factors(model: Any) -> list[Factor] | None:
    """The tables whose product is the law; None where a variable has no states or there is no such law."""
    if callable(getattr(model, "node", None)):
        nodes = [model.node(name) for name in model.nodes]
        if not all(variable.kind == "discrete" for node in nodes for variable in node.domain.variables):
            return None
        return [(tuple(names), np.asarray(table)) for node in nodes for names, table in node.factors()]
    if hasattr(model, "plan_") and callable(getattr(model, "factors", None)):
        return [(table.variables, table.values) for table in model.factors()]
    return None


def _cards(model: Any, factors: Sequence[Factor]) -> dict[Hashable, int]:
    """States of all variables, private ones of the factors included."""
    cards: dict[Hashable, int] = {name: len(model.states(name)) for name in model.nodes}
    for scope, table in factors:
        for name, size in zip(scope, table.shape, strict=True):
            cards.setdefault(name, size)
    return cards


def _exported(
    nodes: Sequence[Hashable], cards: dict[Hashable, int], factors: Sequence[Factor], plan: TreePlan
) -> dict[str, Any]:
    """Variables by number, the nodes of the network first; every factor lies in one clique that holds its scope."""
    number = {name: at for at, name in enumerate([*nodes, *(name for name in cards if name not in set(nodes))])}
    cliques = [tuple(number[name] for name in clique) for clique in plan.cliques]
    holders = [set(clique) for clique in cliques]
    tables = []
    for scope, table in factors:
        large = [at for at, size in enumerate(table.shape) if size > 1]
        top = float(table.max(initial=0.0)) or 1.0
        if not large:
            continue
        names = [number[scope[at]] for at in large]
        home = min((at for at, held in enumerate(holders) if held.issuperset(names)), key=lambda at: len(cliques[at]))
        tables.append({"clique": home, "scope": names, "values": (table.ravel() / top).tolist()})
    return {
        "nodes": len(nodes),
        "cards": [cards[name] for name in number],
        "cliques": [list(clique) for clique in cliques],
        "parents": list(plan.tree.parents),
        "order": list(plan.tree.order),
        "factors": tables,
    }
