"""The Markdown pages of the site: every document that the first ones lead to, at its own path.

A link to a file that is no document leads to a page that shows the file, one to a folder to its README, or to a list
of its files. So what a reader follows on the site is what a reader follows in the repository.
"""

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

ROOT: Final = Path(__file__).parents[2]
ROOTS: Final = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "docs/README.md", "hazards/README.md")
PLAYGROUND: Final = "playground/index.html"
_COPIED: Final = frozenset({".png", ".svg", ".html"})
_LANGUAGES: Final = {
    ".py": "python",
    ".java": "java",
    ".yaml": "yaml",
    ".json": "json",
    ".xml": "xml",
    ".patch": "diff",
}
_PLAN: Final = re.compile(r"^```plan\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FENCE: Final = re.compile(r"\s*(`{3,}|~{3,})")
_LINK: Final = re.compile(r"\]\(([^()\s]+)\)")
_LIST_ITEM: Final = re.compile(r"( *)(?:[-*]|\d+\.) ")
_LIST_INDENT: Final = 4
"""Spaces that Python's Markdown asks for below an item of a list; GitHub asks for two or three."""

_NOT_FOUND: Final = "---\nsearch: {exclude: true}\n---\n"
"""Begins a page that the search passes over."""


class BrokenLinkError(Exception):
    """A document leads to a path that does not exist."""

    def __init__(self, page: str, target: str) -> None:
        super().__init__(f"{page}: no file or folder {target}")


class Pages(NamedTuple):
    """The sources of the site.

    Attributes:
        texts: Markdown, by path below the repository.
        files: paths below the repository that are copied as they are.
    """

    texts: dict[str, str]
    files: frozenset[str]


def collect(generated: dict[str, str], built: frozenset[str], roots: tuple[str, ...] = ROOTS) -> Pages:
    """Returns every page that is reached from the roots and from generated pages, and the files that they show.

    Args:
        generated: pages that are written for the site alone, by path.
        built: paths that the build adds, which pages may lead to.
        roots: the first documents.

    Raises:
        BrokenLinkError: a link leads nowhere.
    """
    texts: dict[str, str] = {}
    files = set()
    waiting = [*roots, *generated]
    while waiting:
        path = waiting.pop()
        if path in texts:
            continue
        links = _Links(path, known=built | generated.keys())
        text = generated[path] if path in generated else _page(path)
        texts[path] = rewrite(with_buttons(text, posixpath.relpath(PLAYGROUND, posixpath.dirname(path))), links.follow)
        waiting += links.pages
        files |= links.files
    return Pages(texts, frozenset(files))


class _Links:
    """The links of one page; collects what they lead to."""

    def __init__(self, page: str, *, known: frozenset[str]) -> None:
        self._page = page
        self._known = known
        self.pages: list[str] = []
        self.files: set[str] = set()

    def follow(self, target: str) -> str:
        """Returns what a link leads to on the site."""
        name, mark, anchor = target.partition("#")
        if not name or ":" in name:
            return target
        path = posixpath.normpath(posixpath.join(posixpath.dirname(self._page), name))
        if path in self._known:
            return target
        place = ROOT / path
        if place.suffix in _COPIED and place.is_file():
            self.files.add(path)
            return target
        if place.is_dir():
            self.pages.append(f"{path}/README.md")
            return f"{name.rstrip('/')}/README.md{mark}{anchor}"
        if not place.is_file():
            raise BrokenLinkError(self._page, target)
        shown = "" if place.suffix == ".md" else ".md"
        self.pages.append(path + shown)
        return name + shown + mark + anchor


def _page(path: str) -> str:
    """Returns the Markdown of a document, of a file that is none, or of a folder without a README."""
    place = ROOT / path
    if place.is_file():
        return place.read_text(encoding="utf-8")
    shown = ROOT / path.removesuffix(".md")
    if shown.is_file():
        text = shown.read_text(encoding="utf-8")
        language = _LANGUAGES.get(shown.suffix, "text")
        return f"{_NOT_FOUND}# {shown.name}\n\n`{path.removesuffix('.md')}`\n\n`````{language}\n{text}\n`````\n"
    names = sorted(f"{each.name}/" if each.is_dir() else each.name for each in place.parent.iterdir())
    listed = "".join(f"- [{name}]({name})\n" for name in names if not name.startswith(("__pycache__", ".")))
    return f"{_NOT_FOUND}# {place.parent.relative_to(ROOT)}\n\n{listed}"


def with_buttons(text: str, playground: str) -> str:
    """Returns a document with a button after each plan, which plays it in the playground at that path."""
    button = "\n\n[Play it]({}#plan={}){{ .md-button }}"
    return _PLAN.sub(lambda plan: f"```text\n{plan[1]}```" + button.format(playground, quote(plan[1])), text)


def rewrite(text: str, follow: Callable[[str], str]) -> str:
    """Returns a document with other links, in the Markdown that the generator reads."""
    return "\n".join(_with_deeper_lists(_with_links(text.splitlines(), follow))) + "\n"


def _with_links(lines: list[str], follow: Callable[[str], str]) -> Iterator[tuple[str, bool]]:
    """Yields each line, and whether it is of a code block."""
    fence = None
    for line in lines:
        mark = _FENCE.match(line)
        if mark is not None and (fence is None or mark[1] == fence):
            fence = mark[1] if fence is None else None
            yield line, True
        elif fence is not None:
            yield line, True
        else:
            parts = line.split("`")  # a link is outside of code
            parts[::2] = [_LINK.sub(lambda link: f"]({follow(link[1])})", part) for part in parts[::2]]
            yield "`".join(parts), False


def _with_deeper_lists(lines: Iterator[tuple[str, bool]]) -> Iterator[str]:
    """Yields lines with an empty one before each list, and what is below an item at the indent that is asked for."""
    before = ""
    deeper: int | None = None
    for line, is_code in lines:
        item = None if is_code else _LIST_ITEM.match(line)
        if item is not None and not item[1]:
            if before and deeper is None:
                yield ""
            deeper = _LIST_INDENT - len(item[0])
            yield line
        elif deeper is not None and line.startswith("  "):
            yield " " * deeper + line
        else:
            deeper = None if line else deeper
            yield line
        before = line
