"""Places that documents name: ``file::name``, a file and what it defines.

Paths of the product begin at ``emulator`` or at the repository, paths of tests at ``tests``.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]


def place_problems(where: str) -> Iterator[str]:
    """Yields what is wrong with the places of a table's cell, which ``<br>`` separates."""
    for place in where.split("<br>"):
        reference = re.fullmatch(r"`(?P<path>[\w/]+\.py)::(?P<name>[\w.]+)`", place)
        if reference is None:
            yield f"{place!r} is not `file::name`"
            continue
        paths = [ROOT / folder / reference["path"] for folder in ("emulator", ".")]
        path = next((path for path in paths if path.is_file()), None)
        if path is None:
            yield f"no file {reference['path']}"
        elif reference["name"] not in _names_in(path):
            yield f"no {reference['name']} in {reference['path']}"


def named_test_problem(test: str) -> str | None:
    """Returns what is wrong with a test that a table's cell names, a path under ``tests``, or ``None``."""
    reference = re.fullmatch(r"`(?P<path>[\w/]+\.py)::(?P<name>test_\w+)(\[(?P<case>[^`]+)\])?`", test)
    if reference is None:
        return f"{test!r} is not `path::test`"
    path = ROOT / "tests" / reference["path"]
    if not path.is_file():
        return f"no file tests/{reference['path']}"
    if reference["name"] not in _names_in(path):
        return f"no {reference['name']} in tests/{reference['path']}"
    if reference["name"] == "test_script" and not (path.parent / "testdata" / f"{reference['case']}.txt").is_file():
        return f"no script {reference['case']}"
    return None


@cache
def _names_in(path: Path) -> frozenset[str]:
    return frozenset(_defined(ast.parse(path.read_text(encoding="utf-8")).body))


def _defined(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    for node in body:
        match node:
            case ast.ClassDef(name=name):
                yield prefix + name
                yield from _defined(node.body, f"{prefix}{name}.")
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield prefix + name
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield prefix + name
            case ast.Assign(targets=targets):
                yield from (prefix + target.id for target in targets if isinstance(target, ast.Name))
