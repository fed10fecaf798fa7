"""``docs/unknown.md`` has every doubt that makes a verdict unknown, in the words in which it is told."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[3]
_PAGE = (_ROOT / "docs/unknown.md").read_text(encoding="utf-8")
_VERIFICATION = _ROOT / "emulator/verification"
_MODULES = (
    "doubts/accounts",
    "doubts/evidence",
    "doubts/fencings",
    "judge",
    "reading/lines",
    "reading/metadata_log",
    "doubts/orders",
    "reading/run_plan",
    "doubts/seals",
    "slices/judgement",
    "verify",
    "reading/zookeeper_log",
)
_GAP = "…"


def _template(node: ast.expr) -> str | None:
    """Returns a sentence with a gap for each value in it; ``None`` for what is no text."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=values):
            parts = [part.value if isinstance(part, ast.Constant) else _GAP for part in values]
            return "".join(map(str, parts))
        case _:
            return None


def _sentences(source: str) -> Iterator[str]:
    """Yields what a module says of evidence: sentences of doubts, and what is yielded or appended as one."""
    for node in ast.walk(ast.parse(source)):
        found: ast.expr | None = None
        match node:
            case ast.Call(func=ast.Name(id="Doubt"), keywords=keywords):
                found = next(each.value for each in keywords if each.arg == "sentence")
            case ast.Assign(targets=[ast.Name(id="sentence")], value=value):
                found = value
            case ast.Call(func=ast.Name(id="report_unjudged"), args=[_, ast.Tuple(elts=[value])]):
                found = value
            case ast.Yield(value=ast.expr() as value):
                found = value
            case ast.Call(func=ast.Attribute(attr="append", value=ast.Name(id="sentences")), args=[value]):
                found = value
            case ast.Call(func=ast.Attribute(attr="append", value=ast.Attribute(attr="contradictions")), args=[value]):
                found = value
        template = None if found is None else _template(found)
        if template:
            yield template


def doubts() -> list[str]:
    sources = [(_VERIFICATION / f"{name}.py").read_text() for name in _MODULES]
    return sorted({sentence for source in sources for sentence in _sentences(source)})


def test_the_program_is_read() -> None:
    assert len(doubts()) > 20
    assert "the harness did not reach the end of the run" in doubts()


@pytest.mark.parametrize("sentence", doubts())
def test_every_doubt_is_explained(sentence: str) -> None:
    assert f"`{sentence}`" in _PAGE


def test_no_doubt_is_explained_that_there_is_not() -> None:
    told = [line.split("|")[1].strip() for line in _PAGE.splitlines() if line.startswith("| `")]
    known = doubts()
    assert [each for each in told if each.strip("`") not in known] == []
