"""Charts as SVG: lines, points about the diagonal, and intervals; colours come from the page."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from suffice.array_types import Floats
from suffice.fitting.portrait import Interval, VariableDistribution
from suffice.fitting.report import MatchedStatistics

WIDE, HIGH = 460.0, 280.0
LEFT, RIGHT, TOP, BOTTOM = 66.0, 14.0, 14.0, 44.0
#: Room for a line of the name of a parameter, for a capital, and for other letters; names take up to two lines.
NAME_ROOM, WIDE_LETTER, LETTER = 312.0, 7.5, 6.2
#: Points of a density.
DENSITY_POINTS = 49
#: Half the room for a letter at a tick.
HALF_LETTER = 3.1


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
        # Ticks at the ends of a range that rounding has closed are one number.
        step = (self.ticks[1] - self.ticks[0] if len(self.ticks) > 1 else 1.0) or 1.0
        digits = next((d for d in range(7) if abs(round(step * 10**d) / (step * 10**d) - 1) < 1e-6), 7)
        if digits > 6 or max(abs(self.low), abs(self.high)) >= 1e7:
            return f"{tick:.4g}"
        return f"{tick:,.{digits}f}"


def _step(rough: float, *, whole: bool) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(nice for nice in (1.0, 2.0, 2.5, 5.0, 10.0) if nice * power >= rough * (1 - 1e-9))
    return max(1.0, round(step)) if whole else step


def _left(y: Scale) -> float:
    """Where the first tick of the other axis stands: right of the numbers of this one."""
    return max(LEFT, 32.0 + 2 * HALF_LETTER * max(len(y.text(tick)) for tick in y.ticks))


def _frame(x: Scale, y: Scale, labels: tuple[str, str], title: str) -> list[str]:
    left = x.start
    parts = [
        f'<svg class="chart" role="img" aria-label="{html.escape(title)}" viewBox="0 0 {WIDE:.0f} {HIGH:.0f}" '
        'xmlns="http://www.w3.org/2000/svg">'
    ]
    for tick in y.ticks:
        pixel = y.start + (tick - y.low) / (y.high - y.low) * (y.end - y.start)
        parts.append(f'<line class="grid" x1="{left:.1f}" x2="{WIDE - RIGHT}" y1="{pixel:.1f}" y2="{pixel:.1f}"/>')
        parts.append(
            f'<text class="tick" x="{left - 8:.1f}" y="{pixel + 3.5:.1f}" text-anchor="end">{y.text(tick)}</text>'
        )
    for tick in x.ticks:
        pixel = x.start + (tick - x.low) / (x.high - x.low) * (x.end - x.start)
        parts.append(f'<line class="grid" x1="{pixel:.1f}" x2="{pixel:.1f}" y1="{TOP}" y2="{HIGH - BOTTOM}"/>')
        parts.append(_tick(pixel, HIGH - BOTTOM + 16, x.text(tick), WIDE - 4))
    middle, turn = (left + WIDE - RIGHT) / 2, (TOP + HIGH - BOTTOM) / 2
    parts.append(f'<text class="axis" x="{middle}" y="{HIGH - 6}" text-anchor="middle">{html.escape(labels[0])}</text>')
    parts.append(
        f'<text class="axis" transform="translate(13 {turn}) rotate(-90)" text-anchor="middle">'
        f"{html.escape(labels[1])}</text>"
    )
    return parts


def _tick(x: float, y: float, text: str, end: float) -> str:
    """A number below an axis, which ends before the edge of the chart."""
    beyond = x + HALF_LETTER * len(text) > end
    where, anchor = (end, "end") if beyond else (x, "middle")
    return f'<text class="tick" x="{where:.1f}" y="{y:.0f}" text-anchor="{anchor}">{text}</text>'


def line_chart(values: Sequence[float], labels: tuple[str, str], title: str, *, log: bool = False) -> str:
    """A line through values at 0, 1, 2, ...; with `log` values that are not positive are left out."""
    kept = [(k, v) for k, v in enumerate(values) if math.isfinite(v) and (v > 0 or not log)]
    y = Scale.over([v for _, v in kept], HIGH - BOTTOM, TOP, log=log)
    x = Scale.over([k for k, _ in kept] or [0.0, 1.0], _left(y), WIDE - RIGHT, whole=True)
    parts = _frame(x, y, labels, title)
    points = " ".join(f"{x.at(k):.1f},{y.at(v):.1f}" for k, v in kept)
    parts.append(f'<polyline class="line" points="{points}" fill="none"/>')
    if len(kept) <= 60:
        parts += [f'<circle class="dot" cx="{x.at(k):.1f}" cy="{y.at(v):.1f}" r="2.6"/>' for k, v in kept]
    return "".join([*parts, "</svg>"])


def diagonal_chart(matched: MatchedStatistics, title: str) -> str:
    """Observed statistics along, expected ones upwards; on the line they agree.

    A stroke leads from a point to where the prior puts it, and an upright one spans two standard errors to both sides.
    """
    observed, expected = matched.observed, matched.expected
    none = np.zeros(len(observed))
    ends_along = observed + (none if matched.pull is None else matched.pull)
    reach = none if matched.errors is None else 2 * matched.errors
    both = np.concatenate([observed, expected, ends_along, expected - reach, expected + reach])
    y = Scale.over(both, HIGH - BOTTOM, TOP)
    x = Scale.over(both, _left(y), WIDE - RIGHT)
    parts = _frame(x, y, ("observed", "expected under the fit"), title)
    ends = (x.low, x.high)
    line = f'x1="{x.at(ends[0]):.1f}" y1="{y.at(ends[0]):.1f}" x2="{x.at(ends[1]):.1f}" y2="{y.at(ends[1]):.1f}"'
    parts.append(f'<line class="diagonal" {line}/>')
    rows = (part.tolist() for part in (observed, expected, ends_along, reach))
    for name, seen, fitted, pulled, far in zip(matched.names, *rows, strict=True):
        if not (math.isfinite(seen) and math.isfinite(fitted)):
            continue
        along, up = f"{x.at(seen):.1f}", f"{y.at(fitted):.1f}"
        text = f"{name}: observed {seen:.6g}, expected {fitted:.6g}"
        if pulled != seen:
            text += f", the prior adds {pulled - seen:.3g}"
            parts.append(f'<line class="pull" x1="{along}" x2="{x.at(pulled):.1f}" y1="{up}" y2="{up}"/>')
        if far > 0:
            text += f", standard error {far / 2:.2g}"
            spans = f'y1="{y.at(fitted - far):.1f}" y2="{y.at(fitted + far):.1f}"'
            parts.append(f'<line class="error" x1="{along}" x2="{along}" {spans}/>')
        parts.append(
            f'<circle class="point" cx="{along}" cy="{up}" r="3.4"><title>{html.escape(text)}</title></circle>'
        )
    return "".join([*parts, "</svg>"])


def density_chart(variable: VariableDistribution) -> str:
    """A normal distribution or a mixture as a curve, with its mean and one and a half deviations to both sides."""
    wide, base, tall = 220.0, 46.0, 38.0
    mean, deviation = variable.mean, variable.deviation
    heights = _heights(variable, DENSITY_POINTS)
    points = " ".join(
        f"{wide * along / (DENSITY_POINTS - 1):.1f},{base - tall * height:.1f}" for along, height in enumerate(heights)
    )
    parts = len(variable.normals)
    caption = f"mean {mean:.5g}, standard deviation {deviation:.5g}" + (f", {parts} components" if parts > 1 else "")
    ticks = ""
    for z in (-1.5, 0.0, 1.5):
        along, text = f"{wide * (z + 3) / 6:.1f}", f"{mean + z * deviation:.4g}"
        ticks += f'<line class="grid" x1="{along}" x2="{along}" y1="6" y2="{base}"/>'
        ticks += f'<text class="tick" x="{along}" y="{base + 13}" text-anchor="middle">{text}</text>'
    return (
        f'<svg class="bell" role="img" aria-label="{caption}" viewBox="0 0 {wide:.0f} {base + 18:.0f}" '
        f'xmlns="http://www.w3.org/2000/svg">{ticks}<polyline class="line" points="{points}" fill="none"/></svg>'
        f"<p>{caption}</p>"
    )


def _heights(variable: VariableDistribution, n: int) -> list[float]:
    """The density at n places, from three standard deviations below the mean to three above, the highest of them 1.

    A component without spread is a point, drawn a hundredth of the deviation wide.
    """
    places = np.linspace(-3.0, 3.0, n)
    if len(variable.normals) == 1 or not variable.deviation > 0:
        return [math.exp(-z * z / 2) for z in places.tolist()]
    weights, means, spreads = np.array(variable.normals).T
    centres, widths = (means - variable.mean) / variable.deviation, np.maximum(spreads / variable.deviation, 0.01)
    away = (places[:, None] - centres) / widths
    density = np.exp(-0.5 * away**2) @ (weights / widths)
    return list((density / density.max()).tolist())


def text_width(text: str) -> float:
    """About the width of a name in pixels; capitals are wide."""
    return sum(WIDE_LETTER if letter.isupper() or letter in "mw=_%@" else LETTER for letter in text)


def name_lines(name: str) -> list[str]:
    """A name on one or two lines, broken at a bar or after a comma; what is too long loses the middle of a line."""
    if text_width(name) <= NAME_ROOM:
        return [name]
    bars = [cut + 1 for cut in range(len(name)) if name.startswith(" | ", cut)]
    breaks = [*bars, *(cut + 2 for cut in range(len(name)) if name.startswith(", ", cut))]
    pairs = [(name[:cut].rstrip(), name[cut:]) for cut in breaks]
    fitting = [pair for pair in pairs if max(map(text_width, pair)) <= NAME_ROOM]
    if fitting:
        return list(fitting[0] if bars else min(fitting, key=lambda pair: max(map(text_width, pair))))
    half = len(name) // 2
    return [_shortened(part) for part in (pairs[0] if pairs else (name[:half], name[half:]))]


def _shortened(text: str) -> str:
    """The text without its middle, as far as it does not fit."""
    kept = text
    while text_width(kept) > NAME_ROOM:
        most = (len(kept) - 2) // 2
        kept = f"{text[:most]}…{text[-most:]}"
    return kept


def interval_chart(intervals: Sequence[Interval], title: str) -> str:
    """Posterior intervals with the estimates upon them, one row for each parameter."""
    lines = [name_lines(one.name) for one in intervals]
    step = 22.0 if max(map(len, lines)) == 1 else 30.0
    name_room = 14.0 + max(text_width(line) for some in lines for line in some)
    wide, high = 860.0, step * len(intervals) + 44.0
    numbers = [v for one in intervals for v in (one.low, one.high, *one.points.values()) if v is not None]
    x = Scale.over(numbers, name_room + 10, wide - 16)
    parts = [
        f'<svg class="chart wide" role="img" aria-label="{html.escape(title)}" viewBox="0 0 {wide:.0f} {high:.0f}" '
        'xmlns="http://www.w3.org/2000/svg">'
    ]
    for tick in x.ticks:
        pixel = x.at(tick)
        parts.append(f'<line class="grid" x1="{pixel:.1f}" x2="{pixel:.1f}" y1="6" y2="{high - 28:.0f}"/>')
        parts.append(_tick(pixel, high - 12, x.text(tick), wide - 4))
    for row, one in enumerate(intervals):
        y = 16 + step * row
        first = y + 4 - 6 * (len(lines[row]) - 1)
        text = "".join(
            f'<tspan x="{name_room:.0f}" y="{first + 12 * number:.1f}">{html.escape(line)}</tspan>'
            for number, line in enumerate(lines[row])
        )
        parts.append(
            f'<text class="label" text-anchor="end">{text}<title>{html.escape(one.name)}</title></text>'
            f'<line class="interval" x1="{x.at(one.low):.1f}" x2="{x.at(one.high):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        parts += [_mark(kind, x.at(v), y) for kind, v in one.points.items() if v is not None]
    return "".join([*parts, "</svg>"])


def _mark(kind: str, x: float, y: float) -> str:
    if kind == "mle":
        return f'<circle class="mle" cx="{x:.1f}" cy="{y:.1f}" r="4.2" fill="none"/>'
    if kind == "map":
        return f'<path class="map" d="M{x:.1f} {y - 4.6:.1f} l4.6 4.6 l-4.6 4.6 l-4.6 -4.6 z"/>'
    return f'<line class="mean" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 7:.1f}" y2="{y + 7:.1f}"/>'
