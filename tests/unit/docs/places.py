"""Places in the code that documents name: ``file::name``, a file under ``emulator`` and what it defines."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]


def place_problems(where: str) -> Iterator[str]:
    """Yields what is wrong with the places of a table's cell, which ``<br>`` separates."""
    for place in where.split("<br>"):
        reference = re.fullmatch(r"`(?P<path>[\w/]+\.py)::(?P<name>[\w.]+)`", place)
        if reference is None:
            yield f"{place!r} is not `file::name`"
            continue
        path = ROOT / "emulator" / reference["path"]
        if not path.is_file():
            yield f"no file {reference['path']}"
        elif reference["name"] not in set(_defined(ast.parse(path.read_text(encoding="utf-8")).body)):
            yield f"no {reference['name']} in {reference['path']}"


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
