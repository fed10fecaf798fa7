"""Reads a YAML document with its line numbers, so that every error names file, line and key.

A ``Cursor`` is a position in the document. Its methods take out values of one type each and raise ``ScenarioError``
where the document has something else; a mapping is read through ``Fields``, which records the keys that were taken and
fails for any others.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, NoReturn

import yaml

from laststand.emulator.core.errors import EmulatorError, shown, suggestion
from laststand.emulator.user_yaml import compose_yaml

_DEPTH_MAX: Final = 50
_TOO_DEEP: Final = f"nested more than {_DEPTH_MAX} deep"
_DIGITS_MAX: Final = 1_000
_ENDLESS_NUMBER: Final = re.compile(rf"\d{{{_DIGITS_MAX}}}")
_NULL_TAG: Final = "tag:yaml.org,2002:null"
_INT_TAG: Final = "tag:yaml.org,2002:int"
_KINDS: Final = {yaml.ScalarNode: "a single value", yaml.SequenceNode: "a list", yaml.MappingNode: "a mapping"}


class ScenarioError(EmulatorError):
    """A scenario file that cannot be played.

    Attributes:
        path: the file.
        line: counted from 1.
        key: the key at fault, ``None`` for the file itself.
        reason: the mistake, and what would be right.
    """

    def __init__(self, *, path: Path, line: int, key: str | None, reason: str) -> None:
        what = reason if key is None else f"{key}: {reason}"
        super().__init__(f"{path}:{line}: {what}")
        self.path = path
        self.line = line
        self.key = key
        self.reason = reason


class Cursor:
    """A node of the document, and the key that leads to it."""

    def __init__(self, *, path: Path, node: yaml.Node, key: str | None) -> None:
        self._path = path
        self._node = node
        self.key = key

    @property
    def line(self) -> int:
        """Line of the node, from 1."""
        return self._node.start_mark.line + 1

    @property
    def is_scalar(self) -> bool:
        return isinstance(self._node, yaml.ScalarNode)

    @property
    def is_list(self) -> bool:
        return isinstance(self._node, yaml.SequenceNode)

    @property
    def is_mapping(self) -> bool:
        return isinstance(self._node, yaml.MappingNode)

    def fail(self, reason: str) -> NoReturn:
        """Raises the error about this place."""
        raise ScenarioError(path=self._path, line=self.line, key=self.key, reason=reason)

    def _expected(self, what: str) -> NoReturn:
        found = _KINDS[type(self._node)]
        if isinstance(self._node, yaml.ScalarNode):
            found = repr(shown(self._node.value)) if self._node.tag != _NULL_TAG else "nothing"
        self.fail(f"expected {what}, found {found}")

    def text(self) -> str:
        """Returns a scalar value as it is written.

        Raises:
            ScenarioError: it is no scalar value, or empty.
        """
        if not isinstance(self._node, yaml.ScalarNode) or self._node.tag == _NULL_TAG:
            self._expected("a single value")
        return str(self._node.value)

    def flow_text(self) -> str:
        """Returns the part of the document on one line, as YAML."""
        return yaml.serialize(_flow(self._node), width=10_000).strip()

    def integer(self, *, low: int, high: int = 2**31 - 1) -> int:
        """Returns a whole number from ``low`` to ``high``.

        Raises:
            ScenarioError: the value is not such a number.
        """
        span = f"a whole number from {low} on" if high == 2**31 - 1 else f"a whole number from {low} to {high}"
        if not isinstance(self._node, yaml.ScalarNode) or self._node.tag != _INT_TAG:
            self._expected(span)
        try:
            value = int(self._node.value.replace("_", ""), 0)
        except ValueError:  # 010 and 1:30 are whole numbers to YAML
            self._expected(span)
        if not low <= value <= high:
            self._expected(span)
        return value

    def choice(self, allowed: Iterable[str]) -> str:
        """Returns one of the allowed words.

        Raises:
            ScenarioError: it is another word.
        """
        words = tuple(allowed)
        text = self.text()
        if text not in words:
            self.fail(f"{shown(text)!r} is not allowed, allowed: {', '.join(words)}{suggestion(text, words)}")
        return text

    def items(self) -> list["Cursor"]:
        """Returns the members of a list.

        Raises:
            ScenarioError: it is no list.
        """
        if not isinstance(self._node, yaml.SequenceNode):
            self._expected("a list")
        return [Cursor(path=self._path, node=node, key=self.key) for node in self._node.value]

    def fields(self) -> "Fields":
        """Returns the entries of a mapping; use it as a context manager.

        Raises:
            ScenarioError: it is no mapping, or a key occurs twice.
        """
        if not isinstance(self._node, yaml.MappingNode):
            self._expected("a mapping")
        entries: dict[str, Cursor] = {}
        places: dict[str, Cursor] = {}
        for key_node, value_node in self._node.value:
            key = str(key_node.value)
            places[key] = Cursor(path=self._path, node=key_node, key=key)
            if key in entries:
                places[key].fail("is there twice")
            entries[key] = Cursor(path=self._path, node=value_node, key=key)
        return Fields(self, entries, places)


def _flow(node: yaml.Node) -> yaml.Node:
    if isinstance(node, yaml.MappingNode):
        entries = [(_flow(key), _flow(value)) for key, value in node.value]
        return yaml.MappingNode(tag=node.tag, value=entries, flow_style=True)
    if isinstance(node, yaml.SequenceNode):
        return yaml.SequenceNode(tag=node.tag, value=[_flow(each) for each in node.value], flow_style=True)
    return node


class Fields:
    """Entries of a mapping. Leaving the ``with`` block fails for entries that were not taken."""

    def __init__(self, owner: Cursor, entries: Mapping[str, Cursor], places: Mapping[str, Cursor]) -> None:
        self.owner = owner
        self._entries = dict(entries)
        self._places = dict(places)
        self._known: list[str] = []

    def __enter__(self) -> "Fields":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.refuse_rest()

    def refuse_rest(self) -> None:
        """Refuses entries that were not taken.

        Raises:
            ScenarioError: there are some.
        """
        for key in self._entries:
            self._places[key].fail(f"unknown key, allowed: {', '.join(self._known)}{suggestion(key, self._known)}")

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys that were not taken yet, in the order of the file."""
        return tuple(self._entries)

    def optional(self, key: str) -> Cursor | None:
        """Removes and returns an entry; ``None`` if there is none."""
        self._known.append(key)
        return self._entries.pop(key, None)

    def required(self, key: str) -> Cursor:
        """Takes out an entry.

        Raises:
            ScenarioError: the entry is missing.
        """
        found = self.optional(key)
        if found is None:
            misspelt = next((f", which {each!r} resembles" for each in self._entries if suggestion(each, [key])), "")
            self.owner.fail(f"needs the key {key!r}{misspelt}")
        return found

    def allow(self, keys: Iterable[str]) -> None:
        """Adds keys to the allowed ones, for the error message."""
        self._known.extend(keys)

    def pop_all(self, keys: Iterable[str]) -> list[tuple[str, Cursor]]:
        """Removes and returns every entry whose key is among ``keys``."""
        wanted = frozenset(keys)
        self.allow(sorted(wanted))
        return [(key, self._entries.pop(key)) for key in list(self._entries) if key in wanted]

    def pop_rest(self) -> list[tuple[str, Cursor]]:
        """Removes and returns the remaining entries."""
        rest = list(self._entries.items())
        self._entries.clear()
        return rest


def open_document(path: Path, text: str) -> Cursor:
    """Returns the top of a YAML document.

    Raises:
        ScenarioError: the text is no YAML, or is empty.
    """
    try:
        node = compose_yaml(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        raise ScenarioError(path=path, line=line, key=None, reason=f"no YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise ScenarioError(path=path, line=1, key=None, reason=f"no YAML: {error}") from None
    except RecursionError:
        raise ScenarioError(path=path, line=1, key=None, reason=_TOO_DEEP) from None
    if node is None:
        raise ScenarioError(path=path, line=1, key=None, reason="the file is empty")
    _check_nodes(path, node)
    return Cursor(path=path, node=node, key=None)


def _check_nodes(path: Path, top: yaml.Node) -> None:
    """Refuses values that no reader handles: deeply nested ones, and endless numbers."""
    deepest: dict[int, int] = {}
    waiting = [(top, 1)]
    while waiting:
        node, depth = waiting.pop()
        if deepest.get(id(node), 0) >= depth:  # an alias: the node stands in several places
            continue
        deepest[id(node)] = depth
        line = node.start_mark.line + 1
        if depth > _DEPTH_MAX:
            raise ScenarioError(path=path, line=line, key=None, reason=_TOO_DEEP)
        match node:
            case yaml.ScalarNode(value=str(value)) if too_long_number(value):
                raise ScenarioError(path=path, line=line, key=None, reason=f"{shown(value)!r} has too many digits")
            case yaml.SequenceNode(value=items):
                waiting += [(item, depth + 1) for item in items]
            case yaml.MappingNode(value=pairs):
                waiting += [(each, depth + 1) for pair in pairs for each in pair]


def too_long_number(text: str) -> bool:
    """Returns whether a text has a number with more digits than any number in a document can have."""
    return len(text) > _DIGITS_MAX and _ENDLESS_NUMBER.search(text) is not None
