"""Templates, styles and scripts of pages: files of this package."""

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Final

import jinja2

from laststand.emulator.report.numbers import number
from laststand.emulator.report.words import offset_ranges, seconds
from laststand.emulator.verification.verdict.loss_report import OffsetRange

REPORT: Final = "laststand.emulator.report"


@cache
def asset(name: str, *, package: str = REPORT) -> str:
    """Returns the text of a file of this package, or of another."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


@cache
def template(name: str, *, package: str = REPORT) -> jinja2.Template:
    """Returns a template of this package, or of another package, which may import from this one's.

    It escapes every value that is not markup, and raises an error for undefined names.
    """

    def load(wanted: str) -> str:
        return asset(wanted, package=package if wanted == name else REPORT)

    loader = jinja2.FunctionLoader(load)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, loader=loader)
    environment.filters["seconds"] = seconds
    environment.filters["number"] = number
    environment.filters["ranges"] = _ranges
    return environment.get_template(name)


def digest(content: str) -> str:
    """Returns the digest by which a page's security policy allows an element's text."""
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def _ranges(offsets: tuple[OffsetRange, ...]) -> str:
    return offset_ranges([(span.first, span.last) for span in offsets])
