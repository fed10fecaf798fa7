"""Builds the site: ``make site``, or ``python -m docs.site.build DIRECTORY --mkdocs PROGRAM``.

MkDocs with its theme Material makes static pages of the documents; the gallery and the playground lie beside them. The
result needs no network, and works under any path and from disk.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from docs.failures_table import DOCUMENT, Failure, all_failures_of, failures_of, transaction_failures_of
from docs.gallery import write_gallery
from docs.playground import build as playground
from docs.portable import pages_with_rules
from docs.site.pages import PLAYGROUND, ROOT, Pages, collect
from docs.site.reference import COMMANDS, INTERFACE, SCHEMA, reference_pages

CONFIG: Final = Path(__file__).parent / "mkdocs.yml"
GALLERY: Final = "gallery/index.html"
BESIDE: Final = frozenset({GALLERY, PLAYGROUND})
SIZE_MAX: Final = 25_000_000
IFRAME_WORKER: Final = ("iframe-worker", "1.0.4")
_READERS: Final = ROOT / "docs" / "README.md"
_HEADING: Final = re.compile(r"^## (.+)$", re.MULTILINE)
_PREFORMATTED: Final = re.compile(r"(<(?:pre|script|style|textarea).*?</(?:pre|script|style|textarea)>)", re.DOTALL)
_INDENT: Final = re.compile(r"\s*\n\s*")
_PAGE_OF_READERS: Final = re.compile(r"\[[^\]]+\]\(([^)#]+\.md)\)")

Navigation = list["str | dict[str, Navigation | str]"]


def navigation(readers: str) -> Navigation:
    """Returns the order of the site: the index of documents, whose headings are readers, then what is generated."""
    found: Navigation = ["README.md"]
    sections = _HEADING.split(readers)
    for heading, section in zip(sections[1::2], sections[2::2], strict=True):
        rows = "\n".join(line.split("|")[1] for line in section.splitlines() if line.startswith("| ["))
        named = _PAGE_OF_READERS.findall(rows)
        if named:
            found.append({heading: [os.path.normpath(f"docs/{name}") for name in named]})
    return [
        *found,
        {"Reference": [COMMANDS, INTERFACE, SCHEMA, "ARCHITECTURE.md", "CHANGELOG.md"]},
        {"Failures": "docs/catalogue/README.md"},
        {"Gallery": GALLERY},
        {"Playground": PLAYGROUND},
    ]


def generated_pages() -> dict[str, str]:
    """Returns the pages that the site has beside the documents, and those of which it says more."""
    return {**reference_pages(), **dict(pages_with_rules(failures(), drawn_failures(), f"../../{GALLERY}"))}


def failures() -> list[Failure]:
    """Returns every row of the tables of failures."""
    return all_failures_of(DOCUMENT.read_text(encoding="utf-8"))


def drawn_failures() -> list[Failure]:
    """Returns the rows that the site's gallery has: with those of clusters with ZooKeeper it would be too large."""
    document = DOCUMENT.read_text(encoding="utf-8")
    return [*failures_of(document), *transaction_failures_of(document)]


def write_sources(directory: Path, pages: Pages, order: Navigation) -> Path:
    """Writes what MkDocs reads below a directory; returns its configuration."""
    for path, text in pages.texts.items():
        place = directory / "pages" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    for path in pages.files:
        place = directory / "pages" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, place)
    configuration = directory / "mkdocs.yml"
    configuration.write_text(
        f"INHERIT: {json.dumps(str(CONFIG))}\ndocs_dir: pages\nnav: {json.dumps(order)}\n"
        f"plugins: {{mkdocstrings: {{handlers: {{python: {{paths: [{json.dumps(str(ROOT))}]}}}}}}}}\n",
        encoding="utf-8",
    )
    return configuration


def make(configuration: Path, directory: Path, *, mkdocs: str) -> None:
    """Has MkDocs write the site into a directory; a link that leads nowhere is an error.

    Raises:
        CalledProcessError: MkDocs, or npm, failed.
    """
    assets = configuration.parent / "pages" / "assets"
    assets.mkdir(exist_ok=True)
    with tarfile.open(playground.npm_package(*IFRAME_WORKER)) as package:
        shim = package.extractfile("package/shim/index.js")
        assert shim is not None
        (assets / "iframe-worker.js").write_bytes(shim.read())
    command = [mkdocs, "build", "--quiet", "--strict", "--config-file", str(configuration)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run([*command, "--site-dir", str(directory.absolute())], check=True, env=environment)
    # For the theme's authors, for other languages, and what search_index.js has, too.
    for path in (
        *directory.rglob("*.map"),
        *directory.rglob("lunr/**/*.js"),
        directory / "search" / "search_index.json",
    ):
        path.unlink()
    for path in directory.rglob("*.html"):
        path.write_text(without_indents(path.read_text(encoding="utf-8")), encoding="utf-8")


def without_indents(html: str) -> str:
    """Returns a page without the white space between its lines, which is a sixth of it."""
    parts = _PREFORMATTED.split(html)
    parts[::2] = [_INDENT.sub("\n", part) for part in parts[::2]]
    return "".join(parts)


def main(arguments: Sequence[str]) -> None:
    """Builds the site into a directory, in the place of what it holds."""
    parser = argparse.ArgumentParser(prog="python -m docs.site.build")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--mkdocs", required=True, help="the program")
    options = parser.parse_args(arguments)
    sources = options.directory.with_name(f"{options.directory.name}-sources")
    shutil.rmtree(sources, ignore_errors=True)
    pages = collect(generated_pages(), BESIDE)
    configuration = write_sources(sources, pages, navigation(_READERS.read_text(encoding="utf-8")))
    playground.build(sources / "pages" / "playground")
    gallery = sources / "pages" / "gallery"
    write_gallery(gallery, drawn_failures())
    shutil.rmtree(gallery / "runs")
    make(configuration, options.directory, mkdocs=options.mkdocs)
    size = sum(path.stat().st_size for path in options.directory.rglob("*") if path.is_file())
    if size > SIZE_MAX:
        raise SystemExit(f"the site has {size} bytes, and may have {SIZE_MAX}")
    sys.stdout.write(f"{options.directory / 'index.html'}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
