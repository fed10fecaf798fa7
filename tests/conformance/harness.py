"""Runs conformance vectors: loading, dispatch by kind, comparison, report.

A file is ``{"schema": ..., "vectors": [...]}``. A vector is of the kind ``kind``, or, where it names none, as those of
controllers do, ``event.type``. A handler gets the vector and returns how the core's answer differs from what is
expected; it maps vocabulary and contains no rule. Kinds and single vectors in ``not_built.toml`` are skipped with the
reason given there.
"""

import json
import tomllib
import traceback
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from laststand.emulator.core.switches import ERAS, Switches

VECTORS: Final = Path(__file__).parent / "vectors"
OWN_VECTORS: Final = Path(__file__).parent / "own_vectors"
NOT_BUILT: Final = Path(__file__).parent / "not_built.toml"

SILENT_ERA: Final = "kafka-4.2"
"""The era of a vector whose configuration names none."""

KIP_ERA: Final = "kip-966"
"""The era of vectors that state what the KIP says."""

_OF_TRANSACTIONS: Final = "txn_commit"
"""An operation that only transactional groups have."""

Fields: TypeAlias = Mapping[str, Any]
"""A JSON object of a vector: its shape depends on the kind."""


class VectorFileError(Exception):
    """A file of vectors that cannot be read; the message says where and why."""


class Vector(msgspec.Struct, frozen=True, kw_only=True):
    """One fact, as the file states it."""

    id: str
    kind: str
    file: str
    raw: Fields

    @property
    def config(self) -> Fields:
        """Settings that differ from the era's."""
        return self._fields("config")

    @property
    def before(self) -> Fields:
        """State before."""
        return self._fields("before")

    @property
    def brokers(self) -> Fields:
        """Brokers before, by id (controller vectors)."""
        return self._fields("brokers")

    @property
    def event(self) -> Fields:
        """The one event of the vector (controller vectors)."""
        return self._fields("event")

    @property
    def steps(self) -> list[Fields]:
        """The operations of the vector, in order (broker vectors)."""
        return list(self.raw.get("steps") or [])

    @property
    def expect(self) -> Fields:
        """The outcome that must be seen afterwards."""
        return self._fields("expect")

    @property
    def final(self) -> Fields:
        """The final state by ``expect``; ``all_steps`` only means that the steps say it all."""
        return {key: value for key, value in self.expect.items() if key != "all_steps"}

    @property
    def switches(self) -> Switches:
        """The switches of the vector's era."""
        is_kip = "kip" in (self.raw.get("provenance"), self.raw.get("authority"))
        return ERAS[KIP_ERA if is_kip else SILENT_ERA]

    def _fields(self, name: str) -> Fields:
        value = self.raw.get(name)
        return value if isinstance(value, dict) else {}


Handler: TypeAlias = Callable[[Vector], list[str]]
"""Returns mismatches; none means that the vector passes."""


class NotBuilt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``not_built.toml``: kinds, and single vectors by id, with the reason why they are skipped."""

    kinds: dict[str, str] = {}
    vectors: dict[str, str] = {}


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A vector that the core does not agree with."""

    vector: Vector
    mismatches: tuple[str, ...]

    def describe(self) -> str:
        """Returns one line."""
        return f"FAIL {self.vector.id} ({self.vector.kind}): {'; '.join(self.mismatches)}"


class Report(msgspec.Struct, kw_only=True):
    """Outcome of a run: counts, failures in order, and the skipped ids by reason."""

    passed: int = 0
    failures: list[Failure] = msgspec.field(default_factory=list)
    skipped: dict[str, list[str]] = msgspec.field(default_factory=dict)

    def skip(self, vector: Vector, reason: str) -> None:
        """Counts a vector as skipped."""
        self.skipped.setdefault(reason, []).append(vector.id)

    def summary(self) -> str:
        """Returns the last line."""
        skipped = sum(len(ids) for ids in self.skipped.values())
        return f"{self.passed} passed, {len(self.failures)} failed, {skipped} skipped"


def load_vectors(directory: Path) -> list[Vector]:
    """Returns the vectors of every ``*.json`` in a directory, by file name and position.

    Raises:
        VectorFileError: no such directory, nothing in it, or a file that is no file of vectors.
    """
    if not directory.is_dir():
        raise VectorFileError(f"{directory}: no such directory")
    files = sorted(directory.glob("*.json"))
    if not files:
        raise VectorFileError(f"{directory}: no *.json in it")
    return [vector for file in files for vector in _load_file(file)]


def _load_file(file: Path) -> list[Vector]:
    try:
        content = json.loads(file.read_text())
    except json.JSONDecodeError as error:
        raise VectorFileError(f"{file}:{error.lineno}:{error.colno}: {error.msg}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise VectorFileError(f"{file}: {error}") from None
    entries = content.get("vectors") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise VectorFileError(f"{file}: expected an object with a list 'vectors'")
    return [_vector(file, index, entry) for index, entry in enumerate(entries)]


def _vector(file: Path, index: int, entry: object) -> Vector:
    where = f"{file}: vectors[{index}]"
    if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
        raise VectorFileError(f"{where}: expected an object with a string 'id'")
    event = entry.get("event")
    kind = entry["kind"] if "kind" in entry else event.get("type") if isinstance(event, dict) else None
    if not isinstance(kind, str):
        raise VectorFileError(f"{where} ({entry['id']}): expected a string in 'event.type' or 'kind'")
    return Vector(id=entry["id"], kind=_variant(kind, entry), file=file.name, raw=entry)


def _variant(kind: str, entry: Fields) -> str:
    """Returns the kind of a vector: each type of record, and offsets with transactions, are kinds of their own."""
    given = entry.get("given")
    if isinstance(given, dict) and isinstance(given.get("record"), str):
        return f"{kind}.{given['record']}"
    steps = entry.get("steps")
    operations = [step.get("op") for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
    return f"{kind}.transactional" if _OF_TRANSACTIONS in operations else kind


def load_not_built(file: Path = NOT_BUILT) -> NotBuilt:
    """Returns the list of what is skipped.

    Raises:
        VectorFileError: the file is malformed.
    """
    try:
        return msgspec.convert(tomllib.loads(file.read_text()), NotBuilt)
    except (OSError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise VectorFileError(f"{file}: {error}") from None


def run_vectors(vectors: list[Vector], kinds: Mapping[str, Handler], not_built: NotBuilt) -> Report:
    """Runs every vector whose kind is built. A handler that raises makes its vector fail, not the run."""
    report = Report()
    for vector in vectors:
        reason = not_built.vectors.get(vector.id) or not_built.kinds.get(vector.kind)
        handler = kinds.get(vector.kind)
        if reason is not None:
            report.skip(vector, f"not built yet: {reason}")
        elif handler is None:
            report.skip(vector, f"unknown kind {vector.kind}")
        elif mismatches := _run(handler, vector):
            report.failures.append(Failure(vector=vector, mismatches=tuple(mismatches)))
        else:
            report.passed += 1
    return report


def _run(handler: Handler, vector: Vector) -> list[str]:
    if not any(isinstance(each.get("expect"), dict) for each in (vector.raw, *vector.steps)):
        return ["it has no object 'expect', so it states no fact"]
    try:
        return handler(vector)
    except Exception as error:  # a vector is foreign data: whatever it does to the core, the others still count
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return [f"{type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"]


def mismatches(
    expect: Fields, actual: Fields, *, sets: Collection[str] = (), informative: Collection[str] = ()
) -> list[str]:
    """Returns how ``actual`` differs from the keys of ``expect``.

    Args:
        expect: expected values; only these keys are compared.
        actual: what was observed. A key that was not observed is a mismatch, never ignored.
        sets: keys whose lists are compared without order.
        informative: keys that no implementation has to show.
    """
    found = []
    for key, expected in expect.items():
        if key in informative:
            continue
        if key not in actual:
            found.append(f"{key}: expected {_show(expected)}, but the adapter does not observe it")
            continue
        observed = actual[key]
        is_equal = _sorted(expected) == _sorted(observed) if key in sets else expected == observed
        if not is_equal:
            found.append(f"{key}: expected {_show(expected)}, actual {_show(observed)}")
    return found


def step_mismatches(index: int, step: Fields, observed: Fields, *, outcome: str | None = None) -> list[str]:
    """Returns how a step differs from its own ``expect``, and from every other key of a ``check``.

    Args:
        index: the step's position.
        step: the step. Its ``expect`` is an object of observed keys, or one value: the outcome of the operation.
        observed: what can be seen after the step.
        outcome: key of ``observed`` under which the operation's outcome is; ``None`` if it has none to compare.
    """
    expected: dict[str, Any] = {}
    if step["op"] == "check":
        expected = {key: value for key, value in step.items() if key not in ("op", "expect", "note")}
    if "expect" in step:
        expect = step["expect"]
        expected |= expect if isinstance(expect, dict) else {outcome or f"outcome of {step['op']}": expect}
    return numbered(index, mismatches(expected, observed))


def numbered(index: int, found: list[str]) -> list[str]:
    """Returns mismatches of a step with its position."""
    return [f"step {index}: {text}" for text in found]


def outcome_mismatches(vector: Vector, observed: Fields, *, sets: Collection[str] = ()) -> list[str]:
    """Returns the mismatches of a vector whose steps have one outcome together, whichever of them states it."""
    found = mismatches(vector.final, observed, sets=sets)
    for index, step in enumerate(vector.steps):
        found += step_mismatches(index, step, observed)
    return found


def _sorted(value: object) -> object:
    return sorted(value, key=str) if isinstance(value, (list, tuple, set, frozenset)) else value


def _show(value: object) -> str:
    return json.dumps(value, default=str)
