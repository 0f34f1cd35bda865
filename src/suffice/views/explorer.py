"""What a page needs to answer questions by itself: the factors of a discrete network, and its junction tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.engines.junction_tree import TreePlan, plan_tree
from suffice.errors import SufficeError
from suffice.fitting.portrait import Factors, Portrait

#: Cells of all cliques together up to which a page answers questions; beyond that it would be slow and large.
MOST_CELLS = 200_000


@dataclass(frozen=True)
class Explorer:
    """`data` is what the script of the page reads, or None; `reason` then says why the page stays static."""

    data: dict[str, Any] | None
    reason: str = ""


def explorer_of(portrait: Portrait, *, most_cells: int = MOST_CELLS) -> Explorer:
    """The junction tree of a discrete network with its factors; a network that is too large says so."""
    try:
        factors = portrait.factors()
        if factors is None:
            return Explorer(None)
        plan = plan_tree(factors.cards, [scope for scope, _ in factors.tables], limit_bytes=2**40)
    except SufficeError as error:
        return Explorer(None, f"This page is static: {error}")
    if plan.cells > most_cells:
        return Explorer(
            None,
            f"This page is static: exact answers need {plan.cells:,} cells of a junction tree, and pages explore "
            f"networks of up to {most_cells:,}. Ask the model itself, with query.",
        )
    if not all(np.isfinite(table).all() for _, table in factors.tables):
        return Explorer(None, "This page is static: some rows of the tables are not defined.")
    return Explorer(_exported(factors, plan))


def _exported(factors: Factors, plan: TreePlan) -> dict[str, Any]:
    """Variables by number, the nodes of the network first; every factor lies in one clique that holds its scope."""
    cards = factors.cards
    number = {name: index for index, name in enumerate(cards)}
    cliques = [tuple(number[name] for name in clique) for clique in plan.cliques]
    holders = [set(clique) for clique in cliques]
    tables = []
    for scope, table in factors.tables:
        large = [index for index, size in enumerate(table.shape) if size > 1]
        top = float(table.max(initial=0.0)) or 1.0
        if not large:
            continue
        names = [number[scope[index]] for index in large]
        home = min(
            (index for index, held in enumerate(holders) if held.issuperset(names)),
            key=lambda index: len(cliques[index]),
        )
        tables.append({"clique": home, "scope": names, "values": (table.ravel() / top).tolist()})
    return {
        "nodes": len(factors.states),
        "cards": list(cards.values()),
        "cliques": [list(clique) for clique in cliques],
        "parents": list(plan.tree.parents),
        "order": list(plan.tree.order),
        "factors": tables,
    }
