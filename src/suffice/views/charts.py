"""Charts as SVG: lines, points about the diagonal, and intervals; colours come from the page."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WIDE, HIGH = 460.0, 280.0
LEFT, RIGHT, TOP, BOTTOM = 66.0, 14.0, 14.0, 44.0
#: Longer names of parameters are cut; a pointer over them shows the rest.
LONGEST_NAME = 46


@dataclass(frozen=True)
class Scale:
    """A map from numbers to pixels, with the numbers that are written at the axis."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]
    log: bool = False

    @classmethod
    def over(
        cls, values: Sequence[float] | Floats, start: float, end: float, *, log: bool = False, whole: bool = False
    ) -> Scale:
        """A scale that shows all values, from `start` to `end` pixels; with `whole` all ticks are whole numbers."""
        finite = np.asarray(values, dtype=np.float64)
        finite = finite[np.isfinite(finite)]
        if log:
            finite = np.log10(finite[finite > 0])
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
        if not high > low:
            width = max(abs(low) * 1e-3, 1e-12) if low else 1.0
            low, high = low - width, high + width
        step = _step((high - low) / 5, whole=log or whole)
        low, high = step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9)
        ticks = tuple(step * k for k in range(round(low / step), round(high / step) + 1))
        return cls(low, high, start, end, ticks, log)

    def at(self, value: float) -> float:
        """The pixel of a number."""
        value = math.log10(value) if self.log else value
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def text(self, tick: float) -> str:
        """What is written at a tick."""
        if self.log:
            return f"1e{round(tick):d}"
        step = self.ticks[1] - self.ticks[0] if len(self.ticks) > 1 else 1.0
        digits = next((d for d in range(7) if abs(round(step * 10**d) / (step * 10**d) - 1) < 1e-6), 7)
        if digits > 6 or max(abs(self.low), abs(self.high)) >= 1e7:
            return f"{tick:.4g}"
        return f"{tick:,.{digits}f}"


def _step(rough: float, *, whole: bool) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(nice for nice in (1.0, 2.0, 2.5, 5.0, 10.0) if nice * power >= rough * (1 - 1e-9))
    return max(1.0, round(step)) if whole else step


def _frame(x: Scale, y: Scale, labels: tuple[str, str], title: str) -> list[str]:
    parts = [
        f'<svg class="chart" role="img" aria-label="{html.escape(title)}" viewBox="0 0 {WIDE:.0f} {HIGH:.0f}" '
        'xmlns="http://www.w3.org/2000/svg">'
    ]
    for tick in y.ticks:
        at = y.start + (tick - y.low) / (y.high - y.low) * (y.end - y.start)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDE - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 8}" y="{at + 3.5:.1f}" text-anchor="end">{y.text(tick)}</text>')
    for tick in x.ticks:
        at = x.start + (tick - x.low) / (x.high - x.low) * (x.end - x.start)
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{HIGH - BOTTOM}"/>')
        below = HIGH - BOTTOM + 16
        parts.append(f'<text class="tick" x="{at:.1f}" y="{below}" text-anchor="middle">{x.text(tick)}</text>')
    middle, turn = (LEFT + WIDE - RIGHT) / 2, (TOP + HIGH - BOTTOM) / 2
    parts.append(f'<text class="axis" x="{middle}" y="{HIGH - 6}" text-anchor="middle">{html.escape(labels[0])}</text>')
    parts.append(
        f'<text class="axis" transform="translate(13 {turn}) rotate(-90)" text-anchor="middle">'
        f"{html.escape(labels[1])}</text>"
    )
    return parts


def line_chart(values: Sequence[float], labels: tuple[str, str], title: str, *, log: bool = False) -> str:
    """A line through values at 0, 1, 2, ...; with `log` values that are not positive are left out."""
    kept = [(k, v) for k, v in enumerate(values) if math.isfinite(v) and (v > 0 or not log)]
    x = Scale.over([k for k, _ in kept] or [0.0, 1.0], LEFT, WIDE - RIGHT, whole=True)
    y = Scale.over([v for _, v in kept], HIGH - BOTTOM, TOP, log=log)
    parts = _frame(x, y, labels, title)
    points = " ".join(f"{x.at(k):.1f},{y.at(v):.1f}" for k, v in kept)
    parts.append(f'<polyline class="line" points="{points}" fill="none"/>')
    if len(kept) <= 60:
        parts += [f'<circle class="dot" cx="{x.at(k):.1f}" cy="{y.at(v):.1f}" r="2.6"/>' for k, v in kept]
    return "".join([*parts, "</svg>"])


def diagonal_chart(observed: Floats, expected: Floats, names: Sequence[str], title: str) -> str:
    """Observed statistics along, expected ones upwards; on the line they agree."""
    both = np.concatenate([observed, expected])
    x = Scale.over(both, LEFT, WIDE - RIGHT)
    y = Scale.over(both, HIGH - BOTTOM, TOP)
    parts = _frame(x, y, ("observed", "expected under the fit"), title)
    ends = (x.low, x.high)
    line = f'x1="{x.at(ends[0]):.1f}" y1="{y.at(ends[0]):.1f}" x2="{x.at(ends[1]):.1f}" y2="{y.at(ends[1]):.1f}"'
    parts.append(f'<line class="diagonal" {line}/>')
    for name, seen, told in zip(names, observed, expected, strict=True):
        if math.isfinite(seen) and math.isfinite(told):
            said = html.escape(f"{name}: observed {seen:.6g}, expected {told:.6g}")
            place = f'cx="{x.at(float(seen)):.1f}" cy="{y.at(float(told)):.1f}"'
            parts.append(f'<circle class="point" {place} r="3.4"><title>{said}</title></circle>')
    return "".join([*parts, "</svg>"])


@dataclass(frozen=True)
class Interval:
    """A parameter with its estimates; those that do not exist are None."""

    name: str
    low: float
    high: float
    mle: float | None
    map: float | None
    mean: float | None


def interval_chart(intervals: Sequence[Interval], title: str) -> str:
    """Posterior intervals with the estimates upon them, one row for each parameter."""
    step, longest = 22.0, max(len(one.name) for one in intervals)
    name_room = 24.0 + 7.2 * min(longest, LONGEST_NAME)
    wide, high = 860.0, step * len(intervals) + 44.0
    numbers = [v for one in intervals for v in (one.low, one.high, one.mle, one.map, one.mean) if v is not None]
    x = Scale.over(numbers, name_room + 10, wide - 16)
    parts = [
        f'<svg class="chart wide" role="img" aria-label="{html.escape(title)}" viewBox="0 0 {wide:.0f} {high:.0f}" '
        'xmlns="http://www.w3.org/2000/svg">'
    ]
    for tick in x.ticks:
        at = x.at(tick)
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="6" y2="{high - 28:.0f}"/>')
        parts.append(f'<text class="tick" x="{at:.1f}" y="{high - 12:.0f}" text-anchor="middle">{x.text(tick)}</text>')
    for row, one in enumerate(intervals):
        y = 16 + step * row
        text = one.name if len(one.name) <= LONGEST_NAME else one.name[: LONGEST_NAME - 1] + "…"
        parts.append(
            f'<text class="label" x="{name_room:.0f}" y="{y + 4:.1f}" text-anchor="end">{html.escape(text)}'
            f"<title>{html.escape(one.name)}</title></text>"
            f'<line class="interval" x1="{x.at(one.low):.1f}" x2="{x.at(one.high):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        parts += [_mark(kind, x.at(v), y) for kind in ("mean", "map", "mle") if (v := getattr(one, kind)) is not None]
    return "".join([*parts, "</svg>"])


def _mark(kind: str, x: float, y: float) -> str:
    if kind == "mle":
        return f'<circle class="mle" cx="{x:.1f}" cy="{y:.1f}" r="4.2" fill="none"/>'
    if kind == "map":
        return f'<path class="map" d="M{x:.1f} {y - 4.6:.1f} l4.6 4.6 l-4.6 4.6 l-4.6 -4.6 z"/>'
    return f'<line class="mean" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 7:.1f}" y2="{y + 7:.1f}"/>'
