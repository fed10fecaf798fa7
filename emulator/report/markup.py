"""SVG as text. Everything that is put into an attribute or a text is escaped here."""

from collections.abc import Iterable
from html import escape

from emulator.report.axes import Floats


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
    """Returns what is shown beside the pointer, and read to who cannot see."""
    return element("title", escape(words))


def rect(x: float, y: float, width: float, height: float, class_: str, *content: str) -> str:
    """Returns a rectangle."""
    return element("rect", *content, x=x, y=y, width=max(width, 0.0), height=max(height, 0.0), class_=class_)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    """Returns a line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def polyline(xs: Floats, ys: Floats) -> str:
    """Returns the data of an open path."""
    return "M" + "L".join(_points(xs, ys))


def area(xs: Floats, tops: Floats, bottoms: Floats) -> str:
    """Returns the data of a closed path between two curves."""
    return f"M{'L'.join([*_points(xs, tops), *_points(xs[::-1], bottoms[::-1])])}Z"


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
