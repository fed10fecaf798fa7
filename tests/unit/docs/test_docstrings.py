"""Docstrings are plain English: a subject that is named, and the usual words."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

_ROOT: Final = Path(__file__).parents[3]
_PACKAGES: Final = ("emulator", "chaos", "laststand", "docs", "proto", "benchmarks", "tests")
_OPEN: Final = r"(What|How|Who|Whose|Whom|Where|When|Since|That|Which|Why|Whether)\b"
_FIRST: Final = re.compile(_OPEN)
"""First words that leave the subject open. A property is *true if*, a function *returns whether*."""

_CODE: Final = re.compile(r"``.*?``")
_WORDS: Final = re.compile(
    r"\b(deeds?|anew|for ever|nobody told|of which nobody|(did|does) not bite|bites)\b", re.IGNORECASE
)
_SUSPECT: Final = re.compile(rf"[\"']\s*{_OPEN}")
"""A module without it, and without those words, has no docstring to refuse, and need not be parsed."""


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Yields line, kind and text of every docstring, those below attributes among them."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for place, statement in enumerate(body if isinstance(body, list) else ()):
            match statement:
                case ast.Expr(value=ast.Constant(value=str() as text)):
                    yield statement.lineno, "attribute" if place else _kind(node), " ".join(text.split())


def _kind(node: ast.AST) -> str:
    decorators = [ast.unparse(each) for each in getattr(node, "decorator_list", ())]
    is_property = isinstance(node, ast.FunctionDef) and any(each.endswith("property") for each in decorators)
    return "property" if is_property else type(node).__name__


def refusal(kind: str, text: str) -> str | None:
    """Returns why a docstring is refused, if it is."""
    first = _FIRST.match(text)
    if first is not None:
        return f"{kind} begins with {first[1]}: name the subject"
    found = _WORDS.search(_CODE.sub("", text))
    return found and f"says {found[0]!r}: action, again, without end, report, take effect"


def refusals(source: str) -> Iterator[tuple[int, str]]:
    """Yields the docstrings of a module that are refused: their lines, and why."""
    if _SUSPECT.search(source) or _WORDS.search(" ".join(source.split())):
        for line, kind, text in docstrings(ast.parse(source)):
            if (why := refusal(kind, text)) is not None:
                yield line, why


@pytest.mark.parametrize("package", _PACKAGES)
def test_docstrings_name_their_subject_in_usual_words(package: str) -> None:
    # laststand/emulator and laststand/chaos are links, which rglob does not follow: their files are read once.
    refused = [
        f"{path.relative_to(_ROOT)}:{line}: {why}"
        for path in sorted((_ROOT / package).rglob("*.py"))
        if "generated" not in path.parts
        for line, why in refusals(path.read_text(encoding="utf-8"))
    ]
    assert refused == []


def test_a_docstring_is_refused_where_it_stands() -> None:
    assert [line for line, _ in refusals('x = 1\n"""\nHow much."""\ny = 2\n"""It bites."""\n')] == [2, 5]
    assert list(refusals('x = 1\n"""A number."""\n')) == []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("attribute", "Since when what is so has been so."),
        ("ClassDef", "Who writes the events of a process."),
        ("FunctionDef", "Whether the log is flushed."),
        ("property", "Whether the log is flushed."),
        ("Module", "The deeds of a plan."),
    ],
)
def test_a_riddle_is_refused(kind: str, text: str) -> None:
    assert refusal(kind, text) is not None


@pytest.mark.parametrize(
    ("kind", "text"),
    [("FunctionDef", "Returns whether the log is flushed."), ("property", "True if the log is flushed.")],
)
def test_a_sentence_is_not(kind: str, text: str) -> None:
    assert refusal(kind, text) is None


def test_all_kinds_of_docstrings_are_found() -> None:
    source = '"""M."""\nx = 1\n"""A."""\nclass C:\n    """C."""\n    @property\n    def p(self):\n        """P."""\n'
    assert [(kind, text) for _, kind, text in docstrings(ast.parse(source))] == [
        ("Module", "M."),
        ("attribute", "A."),
        ("ClassDef", "C."),
        ("property", "P."),
    ]
