"""What depends on a structure alone, worked out once and kept while it is among the last few that were asked for.

Fits of the same structure to other data (folds, bootstrap samples, batches) share it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from suffice.engines.junction_tree import TreePlan, plan_tree
from suffice.engines.memory import check_limit
from suffice.graphs.decomposition import Decomposition, decompose
from suffice.graphs.nodes import Node

#: How many structures are kept, and the most cells that the tables of a plan may have to be kept.
KEPT, CELLS = 8, 2**18

T = TypeVar("T")


class Kept(Generic[T]):
    """The last few answers, by what was asked; threads may share it."""

    def __init__(self, most: int = KEPT) -> None:
        self._lock = threading.Lock()
        self._answers: OrderedDict[Hashable, T] = OrderedDict()
        self._most = most

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._answers.clear()

    def answer(self, key: Hashable, make: Callable[[], T], *, keep: Callable[[T], bool] = lambda _: True) -> T:
        """The answer to a question that is hashable; made, and kept if `keep` says so, if it is not known."""
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]
        answer = make()
        if keep(answer):
            with self._lock:
                self._answers[key] = answer
                while len(self._answers) > self._most:
                    self._answers.popitem(last=False)
        return answer


_plans: Kept[TreePlan] = Kept()
_decompositions: Kept[Decomposition] = Kept()


def _key(cards: Mapping[Any, int], scopes: Sequence[Sequence[Node]]) -> Any:
    """Cards and scopes, hashable. 1, 1.0 and True are equal, and still different names."""
    return tuple((type(node), node, card) for node, card in cards.items()), tuple(map(tuple, scopes))


def plan_once(cards: Mapping[Any, int], scopes: Sequence[Sequence[Node]], limit_bytes: int | None = None) -> TreePlan:
    """The plan of `plan_tree`. It holds where tables lie and what happens to them, and none of their numbers."""
    check_limit(limit_bytes)
    key = *_key(cards, scopes), limit_bytes
    return _plans.answer(
        key, lambda: plan_tree(cards, scopes, limit_bytes=limit_bytes), keep=lambda plan: plan.cells <= CELLS
    )


def decompose_once(cards: Mapping[Any, int], scopes: Sequence[Sequence[Node]]) -> Decomposition:
    """The clique tree of the scopes if they make a decomposable model, by `decompose`."""
    return _decompositions.answer(_key(cards, scopes), lambda: decompose(scopes, cards))


def forget() -> None:
    """Let go of everything that is kept."""
    _plans.clear()
    _decompositions.clear()
