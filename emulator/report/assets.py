"""Templates, styles and scripts of pages: files of this package."""

import base64
import hashlib
from functools import cache
from importlib.resources import files

import jinja2

from emulator.report.words import number, offset_ranges, seconds
from emulator.verification.loss_report import OffsetRange


@cache
def asset(name: str) -> str:
    """Returns the text of a file of this package."""
    return files("emulator.report").joinpath(name).read_text(encoding="utf-8")


@cache
def template(name: str) -> jinja2.Template:
    """Returns a template. It escapes every value that is not markup, and refuses names that nobody gave it."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters["seconds"] = seconds
    environment.filters["number"] = number
    environment.filters["ranges"] = _ranges
    return environment.from_string(asset(name))


def digest(content: str) -> str:
    """Returns what a page's policy knows an element's text by."""
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def _ranges(offsets: tuple[OffsetRange, ...]) -> str:
    return offset_ranges([(span.first, span.last) for span in offsets])
