"""Does the maximum of the likelihood exist? Labels that some direction of the weights separates from all others.

Along a direction d the likelihood of labels y falls nowhere if no other labels score more, that is
``d . phi(y) >= d . phi(y')`` for every y', and it rises for ever if some score less. Then the supremum is only reached
at infinity. Best and worst labels under d decide it, exactly.

Where the likelihood bends enough at the weights of a fit, there is no such d (`ends_nearby`). Where there are few
weights it is looked for among all: maximise ``g . d`` for the slope g at weights of 0, which is the mean of
``phi(y) - phi(y')`` over all y', subject to ``d . (phi(y) - phi(y')) >= 0`` and ``|d_j| <= 1``. Of these conditions,
too many to write down, those are added one after another that the last d breaks most.

How often an example counts says nothing about it, so that every one counts once here: a light example beside heavy
ones would be lost in rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import ConvergenceWarning, warn
from suffice.fitting.report import Certificate, Report, confirmed
from suffice.models.chain_crf.features import Sequences
from suffice.models.chain_crf.objective import Block, ChainObjective
from suffice.models.chain_crf.structure import Structure
from suffice.models.label_certificate import ends_nearby
from suffice.models.label_rank import FeatureRank

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Scores of the labels given, and the highest scores of any labels, of each example (n,), under weights (k,).
Extremes = Callable[[Floats], tuple[Floats, Floats]]

#: Scores that differ by less than this share of their range are equal but for rounding.
ROUNDING = 1e-10
#: Weights that a report names.
MOST_NAMED = 20
#: Conditions that are added before the question is left open, and most weights for which it is asked.
ROUNDS, MOST_WEIGHTS = 500, 100
#: What a linear programme may leave of its conditions, and a rise below which it has found none.
FEASIBLE, NO_RISE = 1e-10, 1e-9
#: Most weights for which the curvature is asked: two evaluations for each.
MOST_CURVED = 200
#: Standard errors that a fit with the usual tolerance may be away from the maximum.
AWAY, USUAL = 0.1, 1e-5
NO_MAXIMUM = "no maximum: the labels are separated, and weights run to infinity; give a prior"


def recedes(extremes: Extremes, direction: Floats) -> bool:
    """Whether the likelihood rises for ever along a direction (k,)."""
    own, top = extremes(direction)
    minus_own, minus_bottom = extremes(-direction)
    slack = ROUNDING * (np.abs(own) + np.abs(top) + np.abs(minus_bottom))
    return bool((top - own <= slack).all() and (minus_bottom - minus_own > 1e4 * slack).any())


def decide(
    best_features: Callable[[Floats], Floats], observed: Floats, slope: Floats
) -> tuple[bool | None, Floats | None]:
    """Whether the maximum exists (None: not decided), and a direction (k,) along which the likelihood rises if not.

    best_features(d): the features (k,) of the best labels under d, summed over examples as in `observed` (k,); slope
    (k,): that of the log-likelihood at weights of 0, where every example counts once.
    """
    from scipy import optimize

    sizes = np.maximum(np.abs(observed), np.abs(observed - slope))
    units = np.where(sizes > 0.0, sizes, 1.0)
    aim, cuts = slope / units, np.zeros((0, len(slope)))
    least = NO_RISE * float(np.abs(aim).sum())
    options: Any = {"primal_feasibility_tolerance": FEASIBLE, "dual_feasibility_tolerance": FEASIBLE}
    for _ in range(ROUNDS):
        bounds = np.zeros(len(cuts))
        found: Any = optimize.linprog(-aim, -cuts, bounds, bounds=(-1.0, 1.0), method="highs", options=options)
        if found.x is None or -found.fun <= least:
            return (None, None) if found.x is None else (True, None)
        direction = found.x / units
        cut = (observed - best_features(direction)) / units
        size = float(np.abs(cut).max(initial=0.0))
        if float(cut @ found.x) >= -1e-9 * max(size, 1.0):
            return False, direction
        cuts = np.vstack([cuts, cut / size])
    return None, None


def at_their_ends(observed: Floats, low: Floats, high: Floats) -> Floats:
    """Weights whose feature has the lowest (-1) or the highest (+1) sum that any labels could give it, else 0."""
    slack = 1e-12 * (np.abs(low) + np.abs(high))
    moves = high > low
    return np.where(moves & (observed >= high - slack), 1.0, np.where(moves & (observed <= low + slack), -1.0, 0.0))


@dataclass(frozen=True, eq=False)
class Standing:
    """Whether the maximum exists (None: not decided) and, if not, a direction (k,) along which the likelihood rises.

    rise: half the squared Newton decrement, where the curvature that proved a maximum told it.
    """

    exists: bool | None = None
    direction: Floats | None = None
    rise: float | None = None

    def judged(self, certificate: Certificate, names: Callable[[], Sequence[tuple[Any, ...]]]) -> Certificate:
        """The certificate with what is known about the maximum."""
        if self.exists is None:
            return certificate
        found = () if self.direction is None else _said(self.direction, names())
        return replace(certificate, exists=self.exists, directions=found)


#: Nothing is known.
UNDECIDED = Standing()


def settled(report: Report, tolerance: float, relative: float) -> Report:
    """The report of a fit that has converged only where there is a maximum, and where the certificate agrees.

    relative: the norm of the slope at the weights returned, relative to theirs, which is what most solvers watch.
    """
    if report.converged and report.certificate.exists is False:
        warn(f"The fit has not converged: {NO_MAXIMUM}.", ConvergenceWarning)
        return replace(report, converged=False, stop_reason="no maximum")
    found = report.certificate
    if found.monte_carlo is not None:  # Fresh chains have confirmed the fit, or have not.
        return report
    # Where weights are large, as those of features in small units are, their norm hides the slope. The decrement does
    # not depend on units.
    if found.value_gap is not None and not found.bound:
        decrement = math.sqrt(2.0 * found.value_gap * report.weight)
        if decrement > AWAY * max(1.0, tolerance / USUAL):
            return confirmed(report, tolerance, decrement)
    return confirmed(report, tolerance, min(relative, found.moment_gap))


def standing_of(
    extremes: Extremes, candidates: Sequence[Floats], few: Callable[[], Any], near: Callable[[], float | None]
) -> Standing:
    """Try some directions; ask whether the curvature proves a maximum, near(); then, with few weights, try all.

    few() are the arguments of `decide`, near() is the answer of `ends_nearby`.
    """
    for direction in candidates:
        if direction.any() and recedes(extremes, direction):
            return Standing(False, direction)
    rise = near() if len(candidates[0]) <= MOST_CURVED else None
    if rise is not None:
        return Standing(True, rise=rise)
    return Standing(*decide(*few())) if len(candidates[0]) <= MOST_WEIGHTS else UNDECIDED


def _said(direction: Floats, names: Sequence[tuple[Any, ...]]) -> tuple[str, ...]:
    """What runs to infinity, by name, the largest first."""
    moved = np.flatnonzero(np.abs(direction) > 1e-9 * np.abs(direction).max(initial=0.0))
    order = moved[np.argsort(-np.abs(direction[moved]), kind="stable")][:MOST_NAMED]
    return tuple(
        f"{' '.join(map(str, names[place]))} to {'+' if direction[place] > 0 else '-'}infinity" for place in order
    )


# -- chains ------------------------------------------------------------------------------------------------------------


def path_standing(
    objective: ChainObjective, sequences: Sequences, codes: Ints, weights: Floats, rank: FeatureRank
) -> Standing:
    """Whether the likelihood of labelled sequences has a maximum; weights (k,): where a fit ended."""
    block = objective.block.evenly()
    low, high = path_ends(block, sequences)
    observed = block.observed(codes)

    def best_features(x: Floats) -> Floats:
        paths = [chains.best_paths()[0][0] for chains, _ in block.steps.chains(block.parts(x))]
        return block.observed(np.concatenate(paths))

    def few() -> Any:
        return best_features, observed, observed - block.expected(np.zeros_like(weights))[1]

    def near() -> float | None:
        ranges = path_ranges(block.structure, sequences)
        return ends_nearby(objective, weights, ranges, rank.value) if rank.exact else None

    directions = at_their_ends(observed, low, high), weights
    return standing_of(path_extremes(block, codes), directions, few, near)


def path_extremes(block: Block, codes: Ints) -> Extremes:
    """Scores of paths, for codes (steps,) of the labels given."""

    def found(x: Floats) -> tuple[Floats, Floats]:
        own, top = [], []
        for chains, steps in block.steps.chains(block.parts(x)):
            own.append(chains.log_weights(codes[slice(*steps)]))
            top.append(chains.best_paths()[1][:, 0])
        return np.concatenate(own), np.concatenate(top)

    return found


def path_ends(block: Block, sequences: Sequences) -> tuple[Floats, Floats]:
    """Bounds (k,) of the sum of every feature over all paths."""
    structure, design, offsets = block.structure, sequences.design, sequences.offsets
    steps = np.repeat(block.shares, np.diff(offsets))
    values = design.values if len(design.values) else np.ones(len(design.indices))
    each = values * steps[design.row_of_entry]
    rises = np.bincount(design.indices, np.maximum(each, 0.0), design.columns).astype(np.float64)
    falls = np.bincount(design.indices, np.minimum(each, 0.0), design.columns).astype(np.float64)
    moves = float(block.shares @ (np.diff(offsets) - 1))
    size, features = structure.size, structure.packing.features
    cells = np.ones((size, size))
    high = structure.joined(
        rises[features],
        moves * cells,
        float(block.shares.sum()) * np.ones((2, size)),
        rises[structure.conditioned][:, None, None] * cells,
    )
    low = structure.joined(
        falls[features], 0.0 * cells, np.zeros((2, size)), falls[structure.conditioned][:, None, None] * cells
    )
    return low, high


def path_ranges(structure: Structure, sequences: Sequences) -> Floats:
    """Bounds (k,) of the range of every feature over the paths of any one sequence."""
    from scipy import sparse

    design, offsets, size = sequences.design, sequences.offsets, structure.size
    values = np.abs(design.values) if len(design.values) else np.ones(len(design.indices))
    owner = np.repeat(np.arange(len(sequences)), np.diff(offsets))[design.row_of_entry]
    sums = sparse.coo_array((values, (owner, design.indices)), shape=(len(sequences), design.columns))
    reach = np.asarray(sums.tocsr().max(axis=0).todense(), np.float64).ravel()
    return structure.joined(
        reach[structure.packing.features],
        np.full((size, size), float(np.diff(offsets).max() - 1)),
        np.ones((2, size)),
        np.broadcast_to(reach[structure.conditioned][:, None, None], (len(structure.conditioned), size, size)),
    )
