"""Functions that read a switch, and who calls whom: the measure of a place that documents name for a rule."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final, NamedTuple

from tests.unit.docs.places import ROOT

_READERS: Final = ("core", "storage", "node")
"""Packages of ``emulator`` in which rules are."""


class _Function(NamedTuple):
    """A function: its last name, every name in it that it looks up on something, or calls, and its class's fields.

    ``fields`` has those that are set where the class is made, by each name that they are set by.
    """

    name: str
    uses: frozenset[str]
    fields: Mapping[str, frozenset[str]]


def reads_switch(place: str, switch: str) -> bool:
    """Returns whether the place ``file::name`` reads a switch, or calls a function that does, or is called by one.

    Calls are told apart by name only. A class, a field or a constant counts by what it contains, or by who uses it.
    """
    path, _, name = place.partition("::")
    last = name.rpartition(".")[2]
    own = _uses_in(path, name)
    readers = _readers(switch)
    return bool(switch in own or own & readers or last in readers or any(last in uses for uses in _uses_by(switch)))


@cache
def _functions() -> tuple[_Function, ...]:
    paths = [path for package in _READERS for path in sorted((ROOT / "emulator" / package).rglob("*.py"))]
    return tuple(
        function for path in paths for function in _functions_in(ast.parse(path.read_text(encoding="utf-8")).body, {})
    )


def _functions_in(body: list[ast.stmt], fields: Mapping[str, frozenset[str]]) -> Iterator[_Function]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _functions_in(node.body, _fields_of(node))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield _Function(node.name, _names_in(node), fields)


def _fields_of(node: ast.ClassDef) -> Mapping[str, frozenset[str]]:
    fields: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
    for each in ast.walk(node):
        target = each.targets[0] if isinstance(each, ast.Assign) else getattr(each, "target", None)
        if (
            isinstance(each, ast.Assign | ast.AnnAssign)
            and isinstance(target, ast.Attribute)
            and each.value is not None
        ):
            for name in _names_in(each.value):
                fields[name] |= {target.attr}
    return fields


@cache
def _readers(switch: str) -> frozenset[str]:
    return frozenset(function.name for function in _reading(switch))


@cache
def _uses_by(switch: str) -> tuple[frozenset[str], ...]:
    """Returns what each of the functions uses that read a switch."""
    return tuple(function.uses for function in _reading(switch))


@cache
def _reading(switch: str) -> tuple[_Function, ...]:
    """Returns the functions that read a switch, or a field of their class that was set by it."""
    return tuple(
        function
        for function in _functions()
        if function.name != "__init__" and {switch, *function.fields.get(switch, ())} & function.uses
    )


@cache
def _uses_in(path: str, name: str) -> frozenset[str]:
    found: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
    for defined, node in _defined(ast.parse((ROOT / "emulator" / path).read_text(encoding="utf-8")).body):
        found[defined] |= _names_in(node)
    return found[name]


def _defined(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.stmt]]:
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node
            yield from _defined(node.body, f"{prefix}{node.name}.")


def _names_in(node: ast.AST) -> frozenset[str]:
    names: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute):
            names.add(each.attr)
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Name):
            names.add(each.func.id)
    return frozenset(names)
