"""The site's pages: each link leads somewhere, each document is reached, and the order is that of docs/README.md."""

import re
from pathlib import Path

import pytest

from docs.site.build import BESIDE, generated_pages, navigation, without_indents
from docs.site.pages import ROOT, BrokenLinkError, Pages, collect, rewrite
from docs.site.reference import COMMANDS

READERS = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pages() -> Pages:
    return collect(generated_pages(), BESIDE)


def test_every_document_is_on_the_site(pages: Pages) -> None:
    documents = {
        str(path.relative_to(ROOT)) for folder in ("docs", "hazards") for path in (ROOT / folder).rglob("*.md")
    }
    assert {each for each in documents if "/target/" not in each} - pages.texts.keys() == set()


def test_what_the_site_is_ordered_by_is_there(pages: Pages) -> None:
    order = navigation(READERS)
    named = re.findall(r"[\w./-]+\.(?:md|html)", str(order))
    assert set(named) - pages.texts.keys() == BESIDE
    assert [next(iter(each)) for each in order if isinstance(each, dict)][:2] == [
        "Everybody",
        "My partition is offline",
    ]


def test_every_command_has_its_help(pages: Pages) -> None:
    text = pages.texts[COMMANDS]
    for command in ("laststand run", "laststand topics create", "laststand scenarios schema"):
        assert f"## {command}\n" in text
    assert text.count("Usage: ") > 60


def test_links_lead_to_pages_of_files_and_folders() -> None:
    found = collect(
        {"docs/a.md": "[code](../emulator/core/switches.py#x) [folder](examples/ci) `[no](link)`"}, frozenset(), ()
    )
    text = found.texts["docs/a.md"]
    assert text == "[code](../emulator/core/switches.py.md#x) [folder](examples/ci/README.md) `[no](link)`\n"
    assert "class Switches" in found.texts["emulator/core/switches.py.md"]
    assert "(test_cluster.py.md)" in found.texts["docs/examples/ci/README.md"]


def test_a_plan_has_a_button_that_plays_it() -> None:
    found = collect({"docs/a.md": "```plan\nwait 1\nkill 0\n```\n"}, BESIDE, ())
    assert "[Play it](../playground/index.html#plan=wait%201%0Akill%200%0A){ .md-button }" in found.texts["docs/a.md"]


def test_a_link_that_leads_nowhere_is_named() -> None:
    with pytest.raises(BrokenLinkError, match=r"docs/a\.md: no file or folder gone\.md"):
        collect({"docs/a.md": "[x](gone.md)"}, frozenset(), ())


def test_lists_are_as_deep_as_the_generator_asks() -> None:
    text = "So:\n- one\n  more\n  - two\n\n1. three\n   ```\n   code\n   ```\nEnd\n"
    expected = "So:\n\n- one\n    more\n    - two\n\n1. three\n    ```\n    code\n    ```\nEnd\n"
    assert rewrite(text, str) == expected


def test_links_in_code_stay() -> None:
    text = "```\n[a](b)\n```\n"
    assert rewrite(text, lambda target: "elsewhere") == text


def test_code_keeps_its_lines() -> None:
    assert without_indents("<p>\n\n   a</p>\n  <pre>\n  x\n</pre>") == "<p>\na</p>\n<pre>\n  x\n</pre>"


def test_the_sites_files_are_where_the_readme_says() -> None:
    readme = Path(ROOT / "docs/site/README.md").read_text(encoding="utf-8")
    names = {path.name for path in (ROOT / "docs/site").iterdir() if path.suffix in (".py", ".yml")} - {"__init__.py"}
    assert names == set(re.findall(r"^\| `([\w.]+)`", readme, flags=re.MULTILINE))
