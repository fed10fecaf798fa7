"""SVG as text. Every value in an attribute or a text is escaped here."""

from collections.abc import Iterable
from html import escape
from typing import Final

import numpy as np

from laststand.emulator.report.axes import Floats
from laststand.emulator.verification.tables.integers import Ints

_NEAR_X: Final = 1.0
_NEAR_Y: Final = 0.5
_LEVEL: Final = 0.05


def element(name: str, *content: str, **attributes: str | float | None) -> str:
    """Returns an element.

    Args:
        name: of the element.
        content: elements, or text that ``text`` has escaped.
        attributes: ``class_`` is ``class``, an underscore within is a hyphen; those that are ``None`` are left out.
    """
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{words}>{''.join(content)}</{name}>" if content else f"<{name}{words}/>"


def text(words: str, x: float, y: float, class_: str, *, anchor: str | None = None) -> str:
    """Returns words at a place."""
    return element("text", escape(words), x=x, y=y, class_=class_, text_anchor=anchor)


def title(words: str) -> str:
    """Returns the text that is shown at the pointer, and read out by screen readers."""
    return element("title", escape(words))


def rect(x: float, y: float, width: float, height: float, class_: str, *content: str) -> str:
    """Returns a rectangle."""
    return element("rect", *content, x=x, y=y, width=max(width, 0.0), height=max(height, 0.0), class_=class_)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    """Returns a line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def polyline(xs: Floats, ys: Floats) -> str:
    """Returns the data of an open path."""
    kept = visible(xs, ys)
    return "M" + "L".join(_points(xs[kept], ys[kept]))


def area(xs: Floats, tops: Floats, bottoms: Floats) -> str:
    """Returns the data of a closed path between two curves."""
    above, below = visible(xs, tops), visible(xs, bottoms)[::-1]
    return f"M{'L'.join([*_points(xs[above], tops[above]), *_points(xs[below], bottoms[below])])}Z"


def visible(xs: Floats, ys: Floats) -> Ints:
    """Returns the points of a curve that its shape needs, including the first and the last.

    A point is left out if it is near the previous visible point, or if the curve is level there.
    """
    places_x, places_y = xs.tolist(), ys.tolist()
    kept, x, y = [0], places_x[0], places_y[0]
    for place in range(1, len(xs) - 1):
        off = abs(places_y[place] - y)
        step = abs(places_y[place + 1] - places_y[place])
        is_near = off < _NEAR_Y and abs(places_x[place] - x) < _NEAR_X
        is_level = off < _LEVEL and step < _LEVEL
        if step >= _NEAR_Y or not (is_near or is_level):
            kept.append(place)
            x, y = places_x[place], places_y[place]
    if len(xs) > 1:
        kept.append(len(xs) - 1)
    return np.array(kept, np.int64)


def boxes(found: Iterable[tuple[float, float, float, float]]) -> str:
    """Returns the data of a path of rectangles: left, top, right, bottom."""
    return "".join(
        f"M{_number(left)} {_number(top)}H{_number(right)}V{_number(bottom)}H{_number(left)}Z"
        for left, top, right, bottom in found
    )


def _points(xs: Floats, ys: Floats) -> list[str]:
    return [f"{_number(x)} {_number(y)}" for x, y in zip(xs.tolist(), ys.tolist(), strict=True)]


def _value(value: str | float) -> str:
    return escape(value) if isinstance(value, str) else _number(value)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
