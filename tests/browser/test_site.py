"""The site in a browser, from disk: links are whole, the search finds, and nothing is asked of a network."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from docs.playground.build import npm_package
from docs.site import build
from docs.site.pages import ROOT, collect

MKDOCS = ROOT / ".venv-site" / "bin" / "mkdocs"
LOADED_MS = 120_000
RESOURCE = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=[\"']?(?:https?:)?//")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the site without gallery and playground, which have tests of their own."""
    if not MKDOCS.exists() or shutil.which("npm") is None:
        pytest.skip("no generator of the site, or no npm: make site installs the former")
    sources = tmp_path_factory.mktemp("sources")
    order = build.navigation((ROOT / "docs" / "README.md").read_text(encoding="utf-8"))
    configuration = build.write_sources(sources, collect(build.generated_pages(), build.BESIDE), order)
    for name in build.BESIDE:
        (sources / "pages" / name).parent.mkdir()
        (sources / "pages" / name).write_text("<p>elsewhere</p>", encoding="utf-8")
    site = tmp_path_factory.mktemp("site") / "under" / "a path"
    try:
        npm_package(*build.IFRAME_WORKER)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"a package of npm cannot be had: {error}")
    try:
        build.make(configuration, site, mkdocs=str(MKDOCS))  # strict: a link or an anchor that is none fails
    except subprocess.CalledProcessError as error:
        pytest.fail(f"the site has broken links: {error}")
    return site


@pytest.fixture(scope="module")
def page(browser: Browser, site: Path) -> Page:
    page = browser.new_page()
    page.on("request", lambda request: None if request.url.startswith(("file:", "data:")) else pytest.fail(request.url))
    page.goto((site / "index.html").as_uri())
    return page


def test_no_page_has_a_resource_of_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 100
    assert [path for path in pages if RESOURCE.search(path.read_text(encoding="utf-8"))] == []


def test_the_documents_take_12_megabytes(site: Path) -> None:
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < 12_000_000


def test_the_search_finds(page: Page) -> None:
    page.keyboard.press("/")
    page.keyboard.type("unclean.recovery.strategy")
    page.wait_for_selector(".md-search-result__link", timeout=LOADED_MS)
    assert "recovery" in (page.text_content(".md-search-result__list") or "")


def test_a_link_is_followed_and_the_interface_is_documented(page: Page, site: Path) -> None:
    page.goto((site / "reference" / "python.html").as_uri())
    assert "Plays a scenario, as" in (page.text_content("article") or "")
    page.get_by_role("link", name="Everybody").first.click()
    page.wait_for_selector("h1:has-text('Install')", timeout=LOADED_MS)
