"""Solvers by name, for every model that has an objective: what they see is a vector and a function, never a model.

A model states its `Objective`; which of the registered solvers can maximise it follows from what the objective offers
and what the solver uses. A solver of somebody else is offered by all of them after one call::

    register(Solver("trust-region", "Newton within a trust region", my_function, uses="information"))

or, without a call, as an entry point of the group ``suffice.solvers`` that names such a `Solver`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from suffice.array_types import Floats
from suffice.errors import OptionError, listing
from suffice.fitting.control import Control, Outcome
from suffice.registry import Registry
from suffice.solvers import gradient
from suffice.solvers.newton import damped_newton, newton_cg

#: A guess of the diagonal of the inverse of the information (k,), from parameters and slope; None: there is no guess.
Scale = Callable[[Floats, Floats], Floats] | None


@dataclass(frozen=True, eq=False)
class Objective:
    """What is maximised, from where, and until when.

    `evaluate` gives the value of the smooth part and its slope (k,) at parameters (k,); `scale` makes a guess of the
    diagonal of the inverse information, when a solver asks. `information` gives minus the Hessian (k, k), and
    `products` a function that multiplies it by a vector; None where the model has none. With a `rate` (k,) the penalty
    ``sum_k rate_k |x_k - centre_k|`` is taken off. `gap` is the distance from stationarity, of parameters and slope,
    that the tolerance is about; None: the largest component of the slope. `memory` is how many changes of the slope a
    quasi-Newton method should remember.
    """

    evaluate: Callable[[Floats], tuple[float, Floats]]
    start: Floats
    control: Control
    scale: Callable[[], Scale] = lambda: None
    information: Callable[[Floats], Floats] | None = None
    products: Callable[[Floats], Callable[[Floats], Floats]] | None = None
    rate: Floats | None = None
    centre: Floats | None = None
    gap: Callable[[Floats, Floats], float] | None = None
    memory: int = 10


@dataclass(frozen=True)
class Solver:
    """A way to maximise an objective.

    `uses` is what it needs beside the slope; `corners` says that it is for objectives with an L1 penalty, and for no
    others. `title` is what reports call it.
    """

    name: str
    title: str
    solve: Callable[[Objective], Outcome]
    uses: Literal["slope", "information", "products"] = "slope"
    corners: bool = False

    def applies(self, objective: Objective) -> bool:
        """Whether the objective offers what the solver uses."""
        offered = {"slope": True, "information": objective.information, "products": objective.products}[self.uses]
        return offered is not None and self.corners == (objective.rate is not None)

    def maximise(self, objective: Objective) -> Outcome:
        """Maximise an objective; one that this solver cannot maximise is an error that names those that can."""
        if not self.applies(objective):
            others = [name for name, solver in registered().items() if solver.applies(objective)]
            needs = {"slope": "", "information": "second derivatives", "products": "products with second derivatives"}
            why = needs[self.uses] if self.corners == (objective.rate is not None) else ""
            why = why or (f"{'an' if self.corners else 'no'} L1 penalty")
            raise OptionError(f"solver={self.name!r} needs {why}; for this objective there are {listing(others, 20)}.")
        return self.solve(objective)


_solvers: Registry[Solver] = Registry("suffice.solvers", "a solver", ("auto",))


def register(solver: Solver) -> None:
    """Offer a solver under its name, which no other may have."""
    _solvers.add(solver.name, solver)


def unregister(name: str) -> None:
    """Take a solver out again."""
    _solvers.remove(name)


def registered() -> Mapping[str, Solver]:
    """All solvers by name, in the order in which they were registered, then those that other packages offer."""
    return {name: named(name) for name in _solvers.names()}


def named(name: object, others: Collection[str] = ()) -> Solver:
    """The solver of this name; others: names that the model at hand takes besides, for the message."""
    return _solvers.named(name, "solver", others)


def check_solver(name: object, own: Collection[str]) -> None:
    """Refuse what is neither one of a model's own solvers nor registered."""
    if not (isinstance(name, str) and name in own):
        named(name, own)


# -- those of the house ------------------------------------------------------------------------------------------------


def _lbfgs(objective: Objective) -> Outcome:
    return gradient.lbfgs(
        objective.evaluate,
        objective.start,
        objective.control,
        memory=objective.memory,
        scale=objective.scale(),
        gap=objective.gap,
    )


def _by_slope(function: Callable[..., Outcome]) -> Callable[[Objective], Outcome]:
    """Methods that end by the largest component of the slope."""

    def solve(objective: Objective) -> Outcome:
        return function(objective.evaluate, objective.start, objective.control, scale=objective.scale())

    return solve


def _newton(objective: Objective) -> Outcome:
    assert objective.information is not None
    return damped_newton(objective.evaluate, objective.information, objective.start, objective.control)


def _newton_cg(objective: Objective) -> Outcome:
    assert objective.products is not None
    start, control = objective.start, objective.control
    return newton_cg(objective.evaluate, objective.products, start, control, scale=objective.scale())


def _owlqn(objective: Objective) -> Outcome:
    """In the distance from the centre of the penalty, where it has its corners."""
    assert objective.rate is not None
    centre, gap = np.zeros_like(objective.start) if objective.centre is None else objective.centre, objective.gap
    outcome = gradient.owlqn(
        lambda distance: objective.evaluate(centre + distance),
        objective.rate,
        objective.start - centre,
        objective.control,
        memory=objective.memory,
        scale=objective.scale(),
        gap=None if gap is None else lambda distance, slope: gap(centre + distance, slope),
    )
    return replace(outcome, state=replace(outcome.state, parameters=centre + outcome.state.parameters))


register(Solver("lbfgs", "L-BFGS", _lbfgs))
register(Solver("newton", "Newton", _newton, uses="information"))
register(Solver("newton-cg", "Newton with conjugate gradients", _newton_cg, uses="products"))
register(Solver("cg", "conjugate gradient", _by_slope(gradient.conjugate_gradient)))
register(Solver("ascent", "gradient ascent", _by_slope(gradient.ascent)))
register(Solver("owlqn", "orthant-wise L-BFGS", _owlqn, corners=True))
