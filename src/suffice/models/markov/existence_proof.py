"""A short proof that the maximum of the likelihood of a model of tables exists.

It exists if and only if some distribution that is positive everywhere has the observed margins t. Let a positive
distribution p have the margins m. What lacks is d = t - m, and a signed measure with these margins is known: by the
parts of a table that are orthogonal under the uniform distribution (Hoeffding 1948), with h_I the part on the variables
I alone,

    e(x) = sum over all I inside of a scope of h_I(x_I) / (joint states of all other variables).

In a clique K of a junction tree only the parts with I inside of K are left. The part h_I of the margin on I is at most
``prod over I of (2 - 2 / card)`` times as large as that margin, which a scope C holds in sums of |C| / |I| cells, so
with ``|d| <= gap`` everywhere

    |e(x_K)| <= gap * s_K,    s_K = sum over scopes C of (prod over C and K of (3 - 2 / card) - 1) |C| / |K|.

Where every cell of p in every clique is above that, p + e is positive in all cliques, its cliques agree on their
separators, and so it is the family of margins of a positive distribution with the margins t.
"""

from __future__ import annotations

from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np

from suffice.array_types import Floats
from suffice.engines.junction_tree import TreeMoments, TreePlan
from suffice.models.markov.family import LogLinearFamily

#: Most sweeps that are tried, and the most cells that one of them may pass over: a fit should not take twice as long.
SWEEPS, WORK = 60, 5_000_000
#: Most of Newton's steps.
STEPS = 12
#: Sweeps before the first look.
FIRST = 2
#: How exactly the cells of the cliques are known, relative to their size.
SLACK = 1e-6
#: Margins are computed no more exactly than this.
ROUNDING = 1e-15


def shown_to_exist(family: LogLinearFamily, margins: Floats) -> bool:
    """Whether a few sweeps of proportional fitting find a distribution that proves it for the margins (n_cells,).

    family: all distributions of the model. False means that nothing was shown.
    """
    totals = np.add.reduceat(margins, family.model.starts[:-1]) if len(margins) else margins
    if not (margins > 0.0).all() or (np.abs(totals - 1.0) > ROUNDING * 1e3).any():
        return False
    if _shown_by_newton(family, margins):
        return True
    scaling = family.scaling(margins)
    if scaling.work > WORK:
        return False
    scaling.record()  # A fit that begins at the same distribution need not do these sweeps again.
    shares, before, reach = spreads(family.plan), np.inf, np.inf
    for sweep in range(SWEEPS):
        change = scaling.sweep()
        last = change <= 4 * ROUNDING or change > 0.9 * before or sweep == SWEEPS - 1
        if last or (sweep >= FIRST - 1 and change <= reach):
            gap, reach = _measure(scaling.moments, scaling.log_potentials, margins, shares)
            if gap <= reach or last:
                return gap <= reach
        before = change
    return False


def _shown_by_newton(family: LogLinearFamily, margins: Floats) -> bool:
    """Whether a few of Newton's steps on the table of all joint states do; a fit goes on from there."""
    newton = family.newton(margins)
    if newton is None:
        return False
    share, state = float(spreads(family.plan)[0]), newton.start
    for _ in range(STEPS):
        if state.gap + ROUNDING <= state.memory["least"] / share * (1.0 - SLACK):
            return True
        if state.memory["stalled"]:
            break
        state = replace(newton.step(state), iteration=state.iteration + 1)
    return False


def proves_existence(family: LogLinearFamily, weights: Floats, margins: Floats) -> bool:
    """Whether the distribution at these weights proves that the maximum for the margins (n_cells,) exists."""
    gap, reach = _measure(family.tree_moments, family.potentials(weights), margins, spreads(family.plan))
    return bool((margins > 0.0).all()) and gap <= reach


def _measure(moments: TreeMoments, logs: Floats, margins: Floats, shares: Floats) -> tuple[float, float]:
    """The largest difference of the margins, and below which difference the distribution proves existence."""
    _, fitted, tables = moments.distributions(logs)
    least = np.array([float(table.min()) for table in tables[: len(shares)]])
    gap = float(np.abs(fitted - margins).max(initial=0.0)) + ROUNDING
    reach = np.divide(least, shares, out=np.where(least > 0.0, np.inf, 0.0), where=shares > 0.0)
    return gap, float(np.min(reach, initial=np.inf)) * (1.0 - SLACK)


_spreads: WeakKeyDictionary[TreePlan, Floats] = WeakKeyDictionary()


def spreads(plan: TreePlan) -> Floats:
    """s_K for each clique of the plan (cliques,), as the module says; kept as long as the plan."""
    if plan not in _spreads:
        _spreads[plan] = _spread(plan)
    return _spreads[plan]


def _spread(plan: TreePlan) -> Floats:
    layout = plan.layout
    scopes = [scope for scope in plan.numbers if scope]
    touching: list[list[int]] = [[] for _ in layout.cards]
    for number, scope in enumerate(scopes):
        for variable in scope:
            touching[variable].append(number)
    # One entry for every clique, variable of it, and scope with that variable.
    counts = np.array([len(numbers) for numbers in touching], np.intp)
    members = np.concatenate([np.zeros(0, np.intp), *(np.array(clique, np.intp) for clique in layout.cliques)])
    cliques = np.repeat(np.arange(len(layout.cliques)), [len(clique) for clique in layout.cliques])
    pairs = [np.asarray(touching[variable], np.intp) for variable in members]
    keys = np.repeat(cliques, counts[members]) * len(scopes) + np.concatenate([np.zeros(0, np.intp), *pairs])
    logs = np.repeat(np.log(3.0 - 2.0 / np.array(layout.cards, np.float64))[members], counts[members])
    met, group = np.unique(keys, return_inverse=True)
    parts = np.expm1(np.bincount(group, logs, len(met)))
    cells = np.array([layout.size(scope) for scope in scopes], np.float64)
    sums = np.bincount(met // max(len(scopes), 1), parts * cells[met % max(len(scopes), 1)], len(layout.cliques))
    return np.asarray(sums / np.array(layout.sizes, np.float64))
