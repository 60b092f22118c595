"""Plots as inline SVG: no script, nothing fetched."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 640, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 12, 12, 34
_COLOURS = 6  # classes s0 … s5 of the report's style

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Series:
    name: str
    points: Sequence[Point]
    dots: bool = False


def _number(value: float) -> str:
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _ticks(low: float, high: float) -> list[float]:
    step = 10 ** math.floor(math.log10((high - low) / 4))
    for factor in (1, 2, 5, 10):
        if (high - low) / (step * factor) <= 5:
            step *= factor
            break
    first = math.ceil(low / step - 1e-9)
    return [step * i for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1, 2, 5) if len(decades) <= 4 else (1,)
    ticks = [factor * 10.0**decade for decade in decades for factor in factors]
    return [tick for tick in ticks if low <= tick <= high]


def plot(
    title: str, x_name: str, y_name: str, series: Sequence[Series], log_x: bool = False
) -> str:
    """A figure with all series on one pair of axes; a sentence where there is nothing to draw."""
    points = [point for each in series for point in each.points if not log_x or point[0] > 0]
    if not points:
        return f"<figure><figcaption>{escape(title)}</figcaption><p>No data.</p></figure>"
    x_low, x_high = min(x for x, _ in points), max(x for x, _ in points)
    if not log_x:
        x_low = min(0.0, x_low)
    if x_high <= x_low:
        x_high = x_low * 1.1 + 1e-6
    y_high = max(max(y for _, y in points) * 1.05, 1e-9)

    def across(x: float) -> float:
        if log_x:
            share = math.log(x / x_low) / math.log(x_high / x_low)
        else:
            share = (x - x_low) / (x_high - x_low)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def down(y: float) -> float:
        return _TOP + (1 - y / y_high) * (_HEIGHT - _TOP - _BOTTOM)

    parts = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">']
    parts += _grid(
        across,
        down,
        _log_ticks(x_low, x_high) if log_x else _ticks(x_low, x_high),
        y_high,
    )
    parts.append(
        f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 3}" text-anchor="end">{escape(x_name)}</text>'
    )
    parts.append(f'<text x="4" y="{_TOP + 2}">{escape(y_name)}</text>')
    for index, each in enumerate(series):
        place = [(across(x), down(y)) for x, y in each.points if not log_x or x > 0]
        parts.append(_shape(place, f"s{index % _COLOURS}", each.dots))
    parts.append("</svg>")
    legend = "".join(
        f'<span class="s{index % _COLOURS}">{escape(each.name)}</span>'
        for index, each in enumerate(series)
    )
    caption = f"<figcaption>{escape(title)}<span class='legend'>{legend}</span></figcaption>"
    return f"<figure>{caption}{''.join(parts)}</figure>"


def _grid(
    across: Callable[[float], float],
    down: Callable[[float], float],
    xs: list[float],
    y_high: float,
) -> list[str]:
    parts = []
    for y in _ticks(0, y_high):
        at = down(y)
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(
            f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{_number(y)}</text>'
        )
    for x in xs:
        at = across(x)
        parts.append(
            f'<text x="{at:.1f}" y="{_HEIGHT - 18}" text-anchor="middle">{_number(x)}</text>'
        )
    return parts


def _shape(place: list[Point], style: str, dots: bool) -> str:
    if dots:
        circles = (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2"/>' for x, y in place)
        return f'<g class="{style} dots">{"".join(circles)}</g>'
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in place)
    return f'<polyline class="{style}" points="{path}"/>'
