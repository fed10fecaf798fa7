"""Results of axe-core on a page that is open in a browser."""

from importlib.resources import files
from typing import NamedTuple

from playwright.sync_api import Page


class AxeResults(NamedTuple):
    """The rules that are violated, each with the beginning of an element, and how many rules hold."""

    violations: list[tuple[str, str]]
    passes: int


def run_axe(tab: Page, selector: str | None = None) -> AxeResults:
    """Asks axe-core about a page, or about the part of it that a selector names."""
    tab.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    found = tab.evaluate("selector => axe.run(selector ?? document)", selector)
    return AxeResults(
        violations=[(each["id"], node["html"][:120]) for each in found["violations"] for node in each["nodes"]],
        passes=len(found["passes"]),
    )
