"""Absolute discounting, Katz backoff and Kneser-Ney smoothing: from counted runs to a distribution, level by level.

Every level n gives the runs of n words a probability from their own counts and the level above, and every history the
weight with which it hands over to the shorter one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.engines.ngram_tree import blocks, sums_by
from suffice.models.markov_chain.distributions import BackoffDistribution, safe_log
from suffice.models.markov_chain.levels import Levels
from suffice.models.markov_chain.smoothing import AbsoluteDiscount, Katz, KneserNey

#: Where counts do not determine discounts: what Kneser-Ney takes off runs that occur once, twice and more often.
_USUAL = (0.5, 1.0, 1.5)
_FEW = "runs of {} words are too few or too even to give {}; took {}"


def kneser_ney_distribution(levels: Levels, options: KneserNey) -> tuple[BackoffDistribution, list[str]]:
    """Interpolated Kneser-Ney, modified or not."""
    adjusted = adjusted_counts(levels)
    notes: list[str] = []

    def discounts(n: int) -> tuple[float, ...]:
        if options.discounts is not None:
            return tuple(options.discounts)
        taken, note = _chen_goodman(n, adjusted[n - 1]) if options.modified else _one_discount(n, adjusted[n - 1])
        notes.extend([note] if note else [])
        return taken

    first = [] if options.uniform else [partial(_taken, discounts=(0.0, 0.0, 0.0))]
    taking = [partial(_taken, discounts=discounts(n)) for n in range(1 + len(first), len(adjusted) + 1)]
    return _interpolated(levels, adjusted, [*first, *taking]), notes


def absolute_distribution(levels: Levels, options: AbsoluteDiscount) -> tuple[BackoffDistribution, list[str]]:
    """Absolute discounting, interpolated or by backoff."""
    counts = [level.count for level in levels.levels]
    notes: list[str] = []
    taking = []
    for n, mine in enumerate(counts):
        if options.backoff and n == 0 and _all_seen(mine):
            taking.append(partial(np.minimum, 0.0))
            continue
        taken, note = ((options.discount,) * 3, "") if options.discount is not None else _one_discount(n + 1, mine)
        notes.extend([note] if note else [])
        taking.append(partial(np.minimum, taken[0]))
    if options.backoff:
        return _backed_off(levels, [mine - take(mine) for mine, take in zip(counts, taking, strict=True)]), notes
    return _interpolated(levels, counts, taking), notes


def katz_distribution(levels: Levels, options: Katz) -> tuple[BackoffDistribution, list[str]]:
    """Katz backoff by Good-Turing counts."""
    notes: list[str] = []
    kept = []
    for n, level in enumerate(levels.levels):
        if n == 0 and _all_seen(level.count):
            kept.append(level.count)
            continue
        ratios = _good_turing(level.count, int(options.most))
        if ratios is None:
            discount, _ = _one_discount(n + 1, level.count)
            notes.append(_FEW.format(n + 1, "Good-Turing counts", f"an absolute discount of {discount[0]:.3g}"))
            kept.append(level.count - np.minimum(level.count, discount[0]))
            continue
        places = np.clip(np.round(level.count), 0, len(ratios) - 1).astype(np.int64)
        kept.append(level.count * ratios[places])
    return _backed_off(levels, kept), notes


def _all_seen(counts: Floats) -> bool:
    """Whether every word has a count, so that single words have nobody to give a share to."""
    return bool((counts[:-1] > 0).all())


def adjusted_counts(levels: Levels) -> list[Floats]:
    """For each level, the number of distinct words before a run; counts themselves at the top and after the start."""
    adjusted = [levels.levels[-1].count]
    for n in range(levels.order, 0, -1):
        above, mine = levels.levels[n], levels.levels[n - 1]
        before = sums_by(above.suffix, above.count > 0, len(mine))
        np.copyto(before, mine.count, where=levels.begins[n - 1])
        adjusted.insert(0, before)
    return adjusted


# --------------------------------------------------------------------------------------------------------------------
# The two recursions
# --------------------------------------------------------------------------------------------------------------------


def _interpolated(
    levels: Levels, counts: list[Floats], taking: Sequence[Callable[[Floats], Floats]]
) -> BackoffDistribution:
    """``p(w | h) = (n(h, w) - taken) / n(h) + weight(h) p(w | h')``, weight(h) = all that was taken / n(h).

    counts: of each level; taking: what is taken off counts, for each level.
    """
    lower = _bottom(levels, counts[0], taking[0](counts[0]))
    log_p, log_weight = [safe_log(lower)], []
    for n in range(2, levels.order + 2):
        level, mine, take = levels.levels[n - 1], counts[n - 1], taking[n - 1]
        total, weight = levels.totals(n, mine), np.zeros(len(levels.levels[n - 2]))
        for part in blocks(len(level)):
            np.add.at(weight, level.history[part].astype(np.intp), take(mine[part]))
        seen = total > 0
        np.divide(weight, total, out=weight, where=seen)
        weight[~seen] = 1.0
        fresh = np.empty(len(level))
        for part in blocks(len(level)):
            history, count = level.history[part], mine[part]
            whole = total[history]
            own = np.divide(count - take(count), whole, out=np.zeros(len(whole)), where=whole > 0)
            fresh[part] = own + weight[history] * lower[level.suffix[part]]
        last = n == levels.order + 1
        log_p.append(_logged(fresh, in_place=last))
        log_weight.append(_logged(weight, in_place=True))
        lower = fresh
    return BackoffDistribution(levels, tuple(log_p), tuple(log_weight))


def _logged(values: Floats, *, in_place: bool) -> Floats:
    """Natural logarithms, -inf at zero, in the memory of the values where nobody needs these."""
    with np.errstate(divide="ignore"):
        return np.log(values, out=values if in_place else None)


def _backed_off(levels: Levels, kept: list[Floats]) -> BackoffDistribution:
    """``p(w | h) = kept / n(h)`` for words seen after h, else weight(h) p(w | h')."""
    first = levels.levels[0].count
    words = kept[0][:-1]
    zero = first[:-1] <= 0
    lower = np.append(_bottom_backed_off(words, first[:-1], zero), 0.0)
    log_p, log_weight = [safe_log(lower)], []
    for n in range(2, levels.order + 2):
        level = levels.levels[n - 1]
        seen = level.count > 0
        total = levels.totals(n)
        own = np.where(total > 0, 1.0 / np.where(total > 0, total, 1.0), 0.0)
        p = np.where(seen, kept[n - 1] * own[level.history], 0.0)
        mass, covered = levels.totals(n, p), levels.totals(n, np.where(seen, lower[level.suffix], 0.0))
        # Where every word was seen after a history nobody is left to take the share: it stays with the words.
        types = levels.totals(n, seen.astype(np.float64))
        full = (types >= levels.card) | (covered >= 1.0 - 1e-12)
        rest = np.where(full, 1.0, 1.0 - covered)
        weight = np.where(total > 0, np.where(full, 0.0, (1.0 - mass) / rest), 1.0)
        scale = np.where(full & (mass > 0), 1.0 / np.where(mass > 0, mass, 1.0), 1.0)
        lower = np.where(seen, p * scale[level.history], weight[level.history] * lower[level.suffix])
        log_p.append(safe_log(lower))
        log_weight.append(safe_log(np.maximum(weight, 0.0)))
    return BackoffDistribution(levels, tuple(log_p), tuple(log_weight))


def _bottom(levels: Levels, counts: Floats, taken: Floats) -> Floats:
    """Level 1: what is taken goes to the uniform distribution; the start mark is never next."""
    total = float(counts[:-1].sum())
    if total <= 0:
        return np.append(np.full(levels.card, 1.0 / levels.card), 0.0)
    share = float(taken[:-1].sum()) / total
    return np.asarray(np.append((counts - taken)[:-1] / total + share / levels.card, 0.0))


def _bottom_backed_off(kept: Floats, counts: Floats, zero: NDArray[np.bool_]) -> Floats:
    """Level 1 of a backoff: words never seen share what is taken; where all were seen nothing is taken."""
    total = float(counts.sum())
    if total <= 0:
        return np.full(len(counts), 1.0 / len(counts))
    if not zero.any():
        return np.asarray(counts / total)
    return np.where(zero, (1.0 - kept.sum() / total) / zero.sum(), kept / total)


# --------------------------------------------------------------------------------------------------------------------
# Discounts from counts of counts
# --------------------------------------------------------------------------------------------------------------------


def _numbers(counts: Floats, most: int) -> Floats:
    """How many runs occur exactly 0, 1, ... `most` times; runs with other weights are none of them."""
    numbers = np.zeros(most + 1)
    for part in blocks(len(counts)):
        mine = counts[part][counts[part] <= most]
        whole = mine.astype(np.int64)
        numbers += np.bincount(whole[whole == mine], minlength=most + 1)
    return numbers


def _one_discount(n: int, counts: Floats) -> tuple[tuple[float, ...], str]:
    """``n1 / (n1 + 2 n2)``."""
    _, once, twice = _numbers(counts, 2)
    if once == 0 or twice == 0:
        return (0.5,) * 3, _FEW.format(n, "a discount", "0.5")
    return (once / (once + 2.0 * twice),) * 3, ""


def _chen_goodman(n: int, counts: Floats) -> tuple[tuple[float, ...], str]:
    """``D_r = r - (r + 1) Y n_{r+1} / n_r`` for r = 1, 2, 3 with ``Y = n1 / (n1 + 2 n2)``."""
    numbers = _numbers(counts, 4)
    if (numbers[1:] > 0).all():
        y = numbers[1] / (numbers[1] + 2.0 * numbers[2])
        discounts = tuple(float(r - (r + 1) * y * numbers[r + 1] / numbers[r]) for r in (1, 2, 3))
        if all(0 <= d <= r for r, d in enumerate(discounts, start=1)):
            return discounts, ""
    return _USUAL, _FEW.format(n, "three discounts", ", ".join(map(str, _USUAL)))


def _taken(counts: Floats, discounts: tuple[float, ...]) -> Floats:
    """What is taken off each count, never more than there is."""
    table = np.array([0.0, *discounts])
    return np.asarray(np.minimum(counts, table[np.ceil(np.minimum(counts, 3.0)).astype(np.intp)]))


def _good_turing(counts: Floats, most: int) -> Floats | None:
    """Ratio of the corrected to the raw count, for counts 0 to most + 1 (the last stands for all above); or None."""
    numbers = _numbers(counts, most + 1)
    if (numbers[1 : most + 1] <= 0).any():
        return None
    r = np.arange(1, most + 1)
    shared = (most + 1) * numbers[most + 1] / numbers[1]
    if shared >= 1:
        return None
    ratios = ((r + 1) * numbers[2:] / (r * numbers[1:-1]) - shared) / (1.0 - shared)
    if (ratios <= 0).any() or (ratios > 1).any():
        return None
    return np.concatenate([[1.0], ratios, [1.0]])
