"""No check that cannot fail: every value that a vector expects is compared, and nothing is expected in silence.

Each expectation is falsified in turn, one leaf at a time; the vector must then fail. An expectation that no handler
knows, be it of the end, of a check or of an operation, must fail it too.
"""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.harness import OWN_VECTORS, VECTORS, NotBuilt, Vector, load_not_built, load_vectors, run_vectors
from tests.conformance.kinds import KINDS

_WORDS = ("all_steps", "hazard", "fatal_message")
"""Keys of an expectation that state no value, or one that is Java's text."""

_Place = tuple[str | int, ...]


def _built(directory: Path) -> list[Vector]:
    not_built = load_not_built()
    return [
        vector
        for vector in load_vectors(directory)
        if vector.kind not in not_built.kinds and vector.id not in not_built.vectors
    ]


def _passes(vector: Vector, raw: dict[str, Any]) -> bool:
    changed = Vector(id=vector.id, kind=vector.kind, file=vector.file, raw=raw)
    return run_vectors([changed], KINDS, NotBuilt()).passed == 1


def _leaves(value: object, place: _Place) -> Iterator[_Place]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, (*place, key))
    elif place[-1] not in _WORDS:
        yield place


def _is_check(step: dict[str, Any]) -> bool:
    return step["op"] == "check" or str(step["op"]).startswith("expect_")


def _expected_values(raw: dict[str, Any]) -> Iterator[_Place]:
    if "expect" in raw:
        yield from _leaves(raw["expect"], ("expect",))
    for index, step in enumerate(raw.get("steps") or []):
        for key, value in step.items():
            if key in ("expect", "returns") or (_is_check(step) and key not in ("op", "note")):
                yield from _leaves(value, ("steps", index, key))


def _at(raw: dict[str, Any], place: _Place) -> Any:
    found: Any = raw
    for key in place:
        found = found[key]
    return found


def _falsified(value: object) -> object:
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case list():
            return [*value, "falsified"]
        case _:
            return f"{value} falsified"


@pytest.mark.parametrize("directory", [VECTORS, OWN_VECTORS], ids=lambda directory: str(directory.name))
def test_every_expected_value_is_compared(directory: Path) -> None:
    unnoticed = []
    count = 0
    for vector in _built(directory):
        for place in _expected_values(dict(vector.raw)):
            raw = copy.deepcopy(dict(vector.raw))
            _at(raw, place[:-1])[place[-1]] = _falsified(_at(raw, place))
            count += 1
            if _passes(vector, raw):
                unnoticed.append((vector.id, place))
    assert unnoticed == []
    assert count > 1000


@pytest.mark.parametrize("directory", [VECTORS, OWN_VECTORS], ids=lambda directory: str(directory.name))
def test_an_expectation_that_nobody_knows_fails_the_vector(directory: Path) -> None:
    unnoticed = []
    for vector in _built(directory):
        places: list[_Place] = [("expect", "unheard_of")] if "expect" in vector.raw else []
        for index, step in enumerate(vector.raw.get("steps") or []):
            if _is_check(step):
                places.append(("steps", index, "unheard_of"))
            elif isinstance(step.get("expect"), dict):
                places.append(("steps", index, "expect", "unheard_of"))
            elif "expect" not in step:
                places.append(("steps", index, "expect"))
        for place in places:
            raw = copy.deepcopy(dict(vector.raw))
            _at(raw, place[:-1])[place[-1]] = "unheard of"
            if _passes(vector, raw):
                unnoticed.append((vector.id, place))
    assert unnoticed == []


def test_every_kind_has_an_own_vector() -> None:
    own = {vector.kind for vector in load_vectors(OWN_VECTORS)}
    assert KINDS.keys() - own == set()
