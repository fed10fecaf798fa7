"""The notations of actions' arguments: as keys of a step in YAML, and as words of a line.

Each field of an action's struct has, in its annotation, one object that defines both notations. So a new action is a
struct and nothing else: ``steps`` and ``lines`` read and write it by its fields.

A *subject* is what an action is done to: nodes, a link, a channel, a partition, a topic. In a line it stands alone
behind the verb; all other fields are ``key=value``.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from laststand.emulator.core.disk import DiskModel, ExactLoss, Keep, NamesFate, TruncationFate
from laststand.emulator.core.eras import node_rules
from laststand.emulator.core.errors import ConfigError, ErrorCode
from laststand.emulator.core.types import TopicPartition, Way
from laststand.emulator.core.zookeeper.inter_broker_protocol import PROPERTY as IBP_PROPERTY
from laststand.emulator.core.zookeeper.inter_broker_protocol import VERSIONS as IBP_VERSIONS
from laststand.emulator.core.zookeeper.inter_broker_protocol import is_ibp
from laststand.emulator.plan.channels import CONTROLLER_SYNC, SYNC, Channel, Link
from laststand.emulator.plan.names import Names
from laststand.emulator.plan.nodes import (
    CLIENT,
    GROUP_WORDS,
    ActiveController,
    DrawnFrom,
    DrawnNodes,
    NodeRef,
    QuorumNode,
    RackNodes,
    node_text,
    parse_node,
)
from laststand.emulator.plan.power import DiskLoss
from laststand.emulator.plan.yaml_cursor import Cursor, Fields

ValueT = TypeVar("ValueT")
EnumT = TypeVar("EnumT", bound=Enum)

YamlValue: TypeAlias = "str | int | bool | list[YamlValue] | dict[str, YamlValue]"
"""A value in a step."""

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min)")
_DURATIONS: Final = "a number and ms, s or min, such as 30 s"
_UNIT_MS: Final = {"ms": 1, "s": 1000, "min": 60_000}
_ARROW: Final = re.compile(r"(.+?)\s*(?:->|→)\s*(.+)")
GROUP_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")
_RELEASE: Final = re.compile(r"\d+\.\d+\.\d+")
_INT_MAX: Final = 2**31 - 1


def plain(text: str) -> YamlValue:
    """Returns a property's text as people write it in YAML: numbers and flags without quotes."""
    if text.isdecimal() and str(int(text)) == text:
        return int(text)
    return {"true": True, "false": False}.get(text, text)


class Words:
    """The words of a line behind its verb: those that stand alone, in order, and ``key=value`` pairs."""

    def __init__(self, words: Iterable[str]) -> None:
        given = tuple(words)
        self._alone = deque(word for word in given if "=" not in word)
        self._pairs = dict(word.split("=", 1) for word in given if "=" in word)

    def pop(self) -> str:
        """Returns the next word that stands alone, and removes it.

        Raises:
            ValueError: no such word is left.
        """
        if not self._alone:
            raise ValueError("a word is missing")
        return self._alone.popleft()

    def pop_pair(self, key: str) -> str | None:
        """Returns the value of a key, and removes the pair; ``None`` if there is none."""
        return self._pairs.pop(key, None)

    def has_pair(self, key: str) -> bool:
        """Returns whether a key is present."""
        return key in self._pairs

    def check_empty(self) -> None:
        """Checks that no word is left.

        Raises:
            ValueError: a word is left.
        """
        for word in (*self._alone, *self._pairs):
            raise ValueError(f"unexpected {word!r}")


class Option(NamedTuple):
    """An argument as an option of a command.

    Attributes:
        key: key in a step.
        word: key of the corresponding word in a line.
        help: for people.
        choices: allowed values; empty for any.
        metavar: placeholder of the value in the help.
        default: the value if a step leaves it out.
        is_required: whether it must be given.
    """

    key: str
    word: str
    help: str
    choices: tuple[str, ...] = ()
    metavar: str = "N"
    default: str | None = None
    is_required: bool = False


class Field(Protocol[ValueT]):
    """One argument of actions, in both notations."""

    @property
    def options(self) -> tuple[Option, ...]:
        """The options of a command for this field; none for a subject."""
        ...

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the field in a step."""
        ...

    @property
    def is_required(self) -> bool:
        """True if a step must have the field."""
        ...

    def read(self, fields: Fields, names: Names) -> ValueT:
        """Takes the argument out of a step.

        Raises:
            ScenarioError: the value is missing, or is not allowed.
        """
        ...

    def write(self, value: ValueT) -> dict[str, YamlValue]:
        """Returns the argument's entries in a step."""
        ...

    def parse(self, words: Words) -> ValueT:
        """Takes the argument out of a line.

        Raises:
            ValueError: the value is missing, or has another form.
        """
        ...

    def format(self, value: ValueT) -> list[str]:
        """Returns the argument's words in a line."""
        ...

    def problems(self, value: ValueT, names: Names) -> Iterator[str]:
        """Yields why such a value can never have an effect on a cluster."""
        ...


AnyField: TypeAlias = Field[Any]
"""A field whose type is known to its action only."""


class _Required(Enum):
    REQUIRED = "required"


REQUIRED: Final = _Required.REQUIRED


class _Scalar(Generic[ValueT]):
    """Base of fields with one key.

    Args:
        key: in a step.
        line: key in a line, if it differs.
        default: the value if a step has none.
        line_default: the value if a line has none, if it differs.
        help: the argument, in words for users.
    """

    choices: tuple[str, ...] = ()
    metavar: str = "N"

    def __init__(
        self,
        key: str,
        *,
        help: str,
        line: str | None = None,
        default: ValueT | _Required = REQUIRED,
        line_default: ValueT | _Required | None = None,
    ) -> None:
        self.keys: tuple[str, ...] = (key,)
        self._key = key
        self._help = help
        self._line = key if line is None else line
        self._default = default
        self._line_default = default if line_default is None else line_default

    @property
    def is_required(self) -> bool:
        return isinstance(self._default, _Required)

    @property
    def options(self) -> tuple[Option, ...]:
        has_default = not isinstance(self._default, _Required) and self._default is not None
        default = str(self.value_of(self._default)) if has_default else None  # type: ignore[arg-type]
        return (
            Option(
                self._key.replace("_", "-"),
                self._line,
                self._help,
                self.choices,
                self.metavar,
                default,
                self.is_required,
            ),
        )

    def read(self, fields: Fields, names: Names) -> ValueT:
        if isinstance(self._default, _Required):
            return self.value_at(fields.required(self._key), names)
        cursor = fields.optional(self._key)
        return self._default if cursor is None else self.value_at(cursor, names)

    def write(self, value: ValueT) -> dict[str, YamlValue]:
        return {} if value == self._default else {self._key: self.value_of(value)}

    def parse(self, words: Words) -> ValueT:
        word = words.pop_pair(self._line)
        if word is not None:
            return self._from_word(word)
        if isinstance(self._line_default, _Required):
            raise ValueError(f"{self._line}= is missing")
        return self._line_default

    def format(self, value: ValueT) -> list[str]:
        return [] if value == self._line_default else [f"{self._line}={self.word_of(value)}"]

    def problems(self, value: ValueT, names: Names) -> Iterator[str]:
        yield from ()

    def _from_word(self, word: str) -> ValueT:
        try:
            return self.from_word(word)
        except ValueError as error:
            raise ValueError(f"{self._key}: {error}") from None

    def value_at(self, cursor: Cursor, names: Names) -> ValueT:
        """Returns the value at a place of a step."""
        raise NotImplementedError

    def value_of(self, value: ValueT) -> YamlValue:
        """Returns the value in the form of a step."""
        return self.word_of(value)

    def from_word(self, word: str) -> ValueT:
        """Returns the value of a word.

        Raises:
            ValueError: the word has another form.
        """
        raise NotImplementedError

    def word_of(self, value: ValueT) -> str:
        """Returns the value as a word."""
        return str(value)


# --- Numbers and choices ------------------------------------------------------------------------------------------


def _whole(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise ValueError(f"{word!r} is no whole number") from None


class Whole(_Scalar[int]):
    """A whole number from ``low`` to ``high``."""

    def __init__(
        self,
        key: str,
        *,
        help: str,
        low: int = 0,
        high: int = _INT_MAX,
        line: str | None = None,
        default: int | _Required = REQUIRED,
    ) -> None:
        super().__init__(key, help=help, line=line, default=default)
        self._low, self._high = low, high

    @property
    def _what(self) -> str:
        return self._line

    def value_at(self, cursor: Cursor, names: Names) -> int:
        return cursor.integer(low=self._low, high=self._high)

    def value_of(self, value: int) -> YamlValue:
        return value

    def from_word(self, word: str) -> int:
        return _whole(word)

    def problems(self, value: int, names: Names) -> Iterator[str]:
        if value < self._low:
            yield f"expected {self._what} from {self._low} on"
        elif value > self._high:
            yield f"expected {self._what} up to {self._high}"


class OptionalWhole(_Scalar[int | None]):
    """A whole number of at least ``low``, or ``None`` without one."""

    def __init__(self, key: str, *, help: str, low: int) -> None:
        super().__init__(key, help=help, default=None)
        self._low = low

    def parse(self, words: Words) -> int | None:
        word = words.pop_pair(self._line)
        return None if word is None else _whole(word)

    def format(self, value: int | None) -> list[str]:
        return [] if value is None else [f"{self._line}={value}"]

    def value_at(self, cursor: Cursor, names: Names) -> int:
        return cursor.integer(low=self._low)

    def value_of(self, value: int | None) -> YamlValue:
        assert value is not None
        return value

    def problems(self, value: int | None, names: Names) -> Iterator[str]:
        if value is not None and value < self._low:
            yield f"expected {self._line} from {self._low} on"


class Number(Whole):
    """A whole number that stands alone in a line."""

    @property
    def _what(self) -> str:
        return "a number"

    def parse(self, words: Words) -> int:
        return int(words.pop())

    def format(self, value: int) -> list[str]:
        return [str(value)]


class Duration(Whole):
    """A time, in ms: ``40 ms`` in a step, ``ms=40`` or the like in a line."""

    metavar = "DURATION"

    def value_at(self, cursor: Cursor, names: Names) -> int:
        value = duration_ms(cursor)
        for problem in self.problems(value, names):
            cursor.fail(problem)
        return value

    def value_of(self, value: int) -> YamlValue:
        return f"{value} ms"

    def from_word(self, word: str) -> int:
        if word.lstrip("-").isdecimal():
            return int(word)
        try:
            return milliseconds(word)
        except ValueError:
            raise ValueError(f"{word!r} is no duration, allowed: {_DURATIONS}") from None


class Span(Duration):
    """A time that stands alone in a line."""

    @property
    def _what(self) -> str:
        return "a time"

    def parse(self, words: Words) -> int:
        return int(words.pop())

    def format(self, value: int) -> list[str]:
        return [str(value)]


def duration_ms(cursor: Cursor) -> int:
    """Returns a duration such as ``30 s``, ``500 ms`` or ``2 min`` in ms.

    Raises:
        ScenarioError: the text is not a duration.
    """
    try:
        return milliseconds(cursor.text())
    except ValueError:
        cursor.fail(f"{cursor.text()!r} is no duration, allowed: {_DURATIONS}")


def milliseconds(text: str) -> int:
    """Returns the ms of a duration such as ``1.5 s``.

    Raises:
        ValueError: the text is not a duration.
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    milliseconds = float(match[1]) * _UNIT_MS[match[2]]
    return max(1, int(milliseconds)) if milliseconds else 0


class Choice(_Scalar[EnumT]):
    """One of the values of an enum."""

    def __init__(
        self,
        key: str,
        kind: type[EnumT],
        *,
        help: str,
        default: EnumT | _Required = REQUIRED,
        line_default: EnumT | _Required | None = None,
    ) -> None:
        super().__init__(key, help=help, default=default, line_default=line_default)
        self.kind = kind
        self.choices = tuple(str(each.value) for each in kind)

    def value_at(self, cursor: Cursor, names: Names) -> EnumT:
        return read_enum(cursor, self.kind)

    def from_word(self, word: str) -> EnumT:
        return self.kind(word)

    def word_of(self, value: EnumT) -> str:
        return str(value.value)


def read_enum(cursor: Cursor, kind: type[EnumT]) -> EnumT:
    """Returns the member of an enum with the value at a place of a step."""
    return kind(cursor.choice([str(each.value) for each in kind]))


class ProtocolVersion(_Scalar[str | None]):
    """An ``inter.broker.protocol.version``, a release or one of its versions; ``None`` if a step has none."""

    metavar = "VERSION"

    def __init__(self, *, help: str) -> None:
        super().__init__(IBP_PROPERTY, help=help, default=None)

    @property
    def options(self) -> tuple[Option, ...]:
        return (Option(IBP_PROPERTY.replace(".", "-"), IBP_PROPERTY, self._help, metavar=self.metavar),)

    def value_at(self, cursor: Cursor, names: Names) -> str:
        version = cursor.text()
        for problem in self.problems(version, names):
            cursor.fail(problem)
        return version

    def from_word(self, word: str) -> str:
        return word

    def problems(self, value: str | None, names: Names) -> Iterator[str]:
        if value is not None and not is_ibp(value):
            yield f"no version {value!r}; expected {IBP_VERSIONS[0]} to {IBP_VERSIONS[-1]}, or a release"


class NodeEra(_Scalar[str | None]):
    """An era, and a node's changes of it: ``kafka-3.9``, ``kip-966,elr=off``; ``None`` if a step has none."""

    metavar = "ERA"

    def __init__(self, *, help: str) -> None:
        super().__init__("era", help=help, default=None)

    def value_at(self, cursor: Cursor, names: Names) -> str:
        era = cursor.text()
        for problem in self.problems(era, names):
            cursor.fail(problem)
        return era

    def from_word(self, word: str) -> str:
        return word

    def problems(self, value: str | None, names: Names) -> Iterator[str]:
        if value is None:
            return
        try:
            node_rules(value)
        except ConfigError as error:
            yield str(error)


class KafkaRelease(_Scalar[str | None]):
    """A release of Apache Kafka, such as 4.2.0; ``None`` if a step has none."""

    metavar = "VERSION"

    def __init__(self, *, help: str) -> None:
        super().__init__("kafka", help=help, default=None)

    def value_at(self, cursor: Cursor, names: Names) -> str:
        release = cursor.text()
        for problem in self.problems(release, names):
            cursor.fail(problem)
        return release

    def from_word(self, word: str) -> str:
        return word

    def problems(self, value: str | None, names: Names) -> Iterator[str]:
        if value is not None and _RELEASE.fullmatch(value) is None:
            yield f"no release {value!r}; expected one such as 4.2.0"


# --- Nodes and links ----------------------------------------------------------------------------------------------


class Nodes:
    """Subject: nodes, ``node`` or ``nodes`` in a step, or a group: ``any: 1``, ``random: 2 of isr``, ``rack: a``."""

    keys: tuple[str, ...] = ("node", "nodes", *GROUP_WORDS)
    options: tuple[Option, ...] = ()
    is_required = True

    def read(self, fields: Fields, names: Names) -> tuple[NodeRef, ...]:
        if "nodes" in fields.keys:
            nodes = tuple(self._node(each, names) for each in fields.required("nodes").items())
            once = [node for node in nodes if not isinstance(node, QuorumNode)]  # a role may stand for two controllers
            if not nodes or len(set(once)) < len(once):
                fields.owner.fail("nodes: allowed: different nodes, at least one")
            return nodes
        for word in GROUP_WORDS:
            if word in fields.keys:
                return (names.group(fields.required(word), word),)
        return (self._node(fields.required("node"), names),)

    def _node(self, cursor: Cursor, names: Names) -> NodeRef:
        return names.node_or_group(cursor)

    def write(self, value: Sequence[NodeRef]) -> dict[str, YamlValue]:
        words: list[YamlValue] = [node_value(each) for each in value]
        match value:
            case [DrawnNodes(drawn_from=DrawnFrom.BROKERS, count=count)]:
                return {"any": count}
            case [DrawnNodes() as drawn]:
                return {"random": drawn.inner}
            case [RackNodes(rack=rack)]:
                return {"rack": rack}
            case [_]:
                return {"node": words[0]}
            case _:
                return {"nodes": words}

    def parse(self, words: Words) -> tuple[NodeRef, ...]:
        return tuple(parse_node(each) for each in words.pop().split(","))

    def format(self, value: Sequence[NodeRef]) -> list[str]:
        return [",".join(map(str, value))]

    def problems(self, value: Sequence[NodeRef], names: Names) -> Iterator[str]:
        for node in value:
            yield from names.node_problems(node)


class Brokers(Nodes):
    """Subject: brokers only."""

    def _node(self, cursor: Cursor, names: Names) -> NodeRef:
        node = names.node_or_group(cursor)
        return names.broker(cursor) if isinstance(node, int | ActiveController | QuorumNode) else node

    def problems(self, value: Sequence[NodeRef], names: Names) -> Iterator[str]:
        for node in value:
            yield from names.broker_problems(node)


class Disks(Nodes):
    """Subject: brokers, and controllers if there are several: a single one has the only copy of the metadata."""

    def _node(self, cursor: Cursor, names: Names) -> NodeRef:
        node = names.node_or_group(cursor)
        if names.controllers > 1 or not isinstance(node, int | ActiveController | QuorumNode):
            return node
        return names.broker(cursor)

    def problems(self, value: Sequence[NodeRef], names: Names) -> Iterator[str]:
        for node in value:
            yield from names.node_problems(node) if names.controllers > 1 else names.broker_problems(node)


class Principals(Nodes):
    """Subject: nodes as senders of requests, including the client process."""

    def _node(self, cursor: Cursor, names: Names) -> NodeRef:
        return CLIENT if cursor.text() == node_text(CLIENT) else super()._node(cursor, names)

    def problems(self, value: Sequence[NodeRef], names: Names) -> Iterator[str]:
        yield from super().problems([node for node in value if node != CLIENT], names)


class ControllerField:
    """Subject: one of several controllers, ``node`` in a step."""

    keys: tuple[str, ...] = ("node",)
    options: tuple[Option, ...] = ()
    is_required = True

    def read(self, fields: Fields, names: Names) -> NodeRef:
        return names.controller(fields.required("node"))

    def write(self, value: NodeRef) -> dict[str, YamlValue]:
        return {"node": node_value(value)}

    def parse(self, words: Words) -> NodeRef:
        return parse_node(words.pop())

    def format(self, value: NodeRef) -> list[str]:
        return [str(value)]

    def problems(self, value: NodeRef, names: Names) -> Iterator[str]:
        yield from names.controller_problems(value)


def node_value(node: NodeRef) -> YamlValue:
    """Returns a node in the form of a step."""
    text = node_text(node)
    return int(text) if text.isdecimal() else text


class Ends:
    """Subject: a link, ``from`` and ``to`` in a step."""

    keys: tuple[str, ...] = ("from", "to")
    options: tuple[Option, ...] = ()
    is_required = True

    def read(self, fields: Fields, names: Names) -> Link[NodeRef]:
        source, target = fields.required("from"), fields.required("to")
        link = Link(names.end(source, source.text()), names.end(target, target.text()))
        for problem in self.problems(link, names):
            target.fail(problem)
        return link

    def write(self, value: Link[NodeRef]) -> dict[str, YamlValue]:
        return {"from": node_value(value.source), "to": node_value(value.target)}

    def parse(self, words: Words) -> Link[NodeRef]:
        return _parse_link(words.pop())

    def format(self, value: Link[NodeRef]) -> list[str]:
        return [f"{value.source}->{value.target}"]

    def problems(self, value: Link[NodeRef], names: Names) -> Iterator[str]:
        yield from names.link_problems(value)


class Arrow(Ends):
    """Subject: a link, written as one value under a key, such as ``responses: 0 -> 1``."""

    def __init__(self, key: str) -> None:
        self.keys = (key,)

    def read(self, fields: Fields, names: Names) -> Link[NodeRef]:
        cursor = fields.required(self.keys[0])
        match = _ARROW.fullmatch(cursor.text().strip())
        if match is None:
            cursor.fail(f"{cursor.text()!r} is no link, allowed: a -> b")
        link = Link(names.end(cursor, match[1]), names.end(cursor, match[2]))
        for problem in self.problems(link, names):
            cursor.fail(problem)
        return link

    def write(self, value: Link[NodeRef]) -> dict[str, YamlValue]:
        return {self.keys[0]: f"{node_text(value.source)} -> {node_text(value.target)}"}


def _parse_link(word: str) -> Link[NodeRef]:
    source, arrow, target = word.partition("->")
    if not arrow:
        raise ValueError(word)
    return Link(parse_node(source), parse_node(target))


class Messages:
    """Subject: a channel, such as ``requests: AlterPartition`` beside ``from`` and ``to``, or ``responses:``."""

    keys: tuple[str, ...] = ("requests", "responses", "from", "to")
    options: tuple[Option, ...] = ()
    is_required = True

    def read(self, fields: Fields, names: Names) -> Channel[NodeRef]:
        way = next((each for each in Way if f"{each.value}s" in fields.keys), None)
        if way is None:
            fields.owner.fail("needs one of requests and responses, with the name of an API")
        api = fields.required(f"{way.value}s").choice(names.apis)
        source, target = fields.required("from"), fields.required("to")
        channel = Channel(names.end(source, source.text()), names.end(target, target.text()), api, way)
        for problem in self.problems(channel, names):
            target.fail(problem)
        return channel

    def write(self, value: Channel[NodeRef]) -> dict[str, YamlValue]:
        return {f"{value.way.value}s": value.api, "from": node_value(value.source), "to": node_value(value.target)}

    def parse(self, words: Words) -> Channel[NodeRef]:
        link = _parse_link(words.pop())
        return Channel(link.source, link.target, words.pop(), Way(words.pop()))

    def format(self, value: Channel[NodeRef]) -> list[str]:
        return [f"{value.source}->{value.target}", value.api, value.way.value]

    def problems(self, value: Channel[NodeRef], names: Names) -> Iterator[str]:
        if value.api != SYNC:
            yield from names.channel_problems(value)
        elif value != CONTROLLER_SYNC:
            yield f"{SYNC} is only there as {CONTROLLER_SYNC}"


# --- Topics, partitions, producers --------------------------------------------------------------------------------


def _partition(word: str) -> TopicPartition:
    topic, _, index = word.rpartition("-")
    if not topic or not index.isdecimal():
        raise ValueError(f"{word!r} is no partition, allowed: TOPIC-NUMBER, such as orders-0")
    return TopicPartition(topic, int(index))


class PartitionField:
    """Subject: a partition."""

    keys: tuple[str, ...] = ("partition",)
    options: tuple[Option, ...] = ()
    is_required = True

    def read(self, fields: Fields, names: Names) -> TopicPartition:
        return names.partition(fields.required("partition"))

    def write(self, value: TopicPartition) -> dict[str, YamlValue]:
        return {"partition": str(value)}

    def parse(self, words: Words) -> TopicPartition:
        return _partition(words.pop())

    def format(self, value: TopicPartition) -> list[str]:
        return [str(value)]

    def problems(self, value: TopicPartition, names: Names) -> Iterator[str]:
        yield from names.partition_problems(value)


class PartitionList:
    """Subject: partitions, ``partitions`` in a step."""

    keys: tuple[str, ...] = ("partitions",)
    options: tuple[Option, ...] = ()
    is_required = True

    def read(self, fields: Fields, names: Names) -> tuple[TopicPartition, ...]:
        cursor = fields.required("partitions")
        partitions = tuple(names.partition(each) for each in cursor.items())
        if not partitions:
            cursor.fail("allowed: partitions, at least one")
        return partitions

    def write(self, value: tuple[TopicPartition, ...]) -> dict[str, YamlValue]:
        return {"partitions": [str(each) for each in value]}

    def parse(self, words: Words) -> tuple[TopicPartition, ...]:
        return tuple(_partition(word) for word in words.pop().split(","))

    def format(self, value: tuple[TopicPartition, ...]) -> list[str]:
        return [",".join(map(str, value))]

    def problems(self, value: tuple[TopicPartition, ...], names: Names) -> Iterator[str]:
        for each in value:
            yield from names.partition_problems(each)


class PartitionOption(_Scalar[TopicPartition]):
    """A partition in addition to a subject of another kind: ``partition=orders-0`` in a line."""

    metavar = "TOPIC-N"

    def value_at(self, cursor: Cursor, names: Names) -> TopicPartition:
        return names.partition(cursor)

    def from_word(self, word: str) -> TopicPartition:
        return _partition(word)

    def problems(self, value: TopicPartition, names: Names) -> Iterator[str]:
        yield from names.partition_problems(value)


class OptionalPartition(_Scalar[TopicPartition | None]):
    """As ``PartitionOption``; ``None`` without one."""

    metavar = "TOPIC-N"

    def __init__(self, key: str, *, help: str) -> None:
        super().__init__(key, help=help, default=None)

    def value_at(self, cursor: Cursor, names: Names) -> TopicPartition:
        return names.partition(cursor)

    def from_word(self, word: str) -> TopicPartition:
        return _partition(word)

    def problems(self, value: TopicPartition | None, names: Names) -> Iterator[str]:
        if value is not None:
            yield from names.partition_problems(value)


class GroupOption(_Scalar[str]):
    """A consumer group in addition to a subject of another kind."""

    metavar = "GROUP"

    def value_at(self, cursor: Cursor, names: Names) -> str:
        text = cursor.text()
        if not GROUP_NAME.fullmatch(text):
            cursor.fail("expected a group: letters, digits, '.', '_' and '-'")
        return text

    def from_word(self, word: str) -> str:
        return word

    def problems(self, value: str, names: Names) -> Iterator[str]:
        if not GROUP_NAME.fullmatch(value):
            yield "expected a group: letters, digits, '.', '_' and '-'"


class TopicOption(_Scalar[str | None]):
    """A topic in addition to a subject of another kind; ``None`` without one."""

    metavar = "TOPIC"

    def value_at(self, cursor: Cursor, names: Names) -> str:
        return names.topic(cursor)

    def from_word(self, word: str) -> str:
        return word

    def problems(self, value: str | None, names: Names) -> Iterator[str]:
        if value is not None:
            yield from names.topic_problems(value)


class TopicField:
    """Subject: a topic that exists or existed."""

    keys: tuple[str, ...] = ("name",)
    options: tuple[Option, ...] = ()
    is_required = True

    def read(self, fields: Fields, names: Names) -> str:
        return names.topic(fields.required("name"))

    def write(self, value: str) -> dict[str, YamlValue]:
        return {"name": value}

    def parse(self, words: Words) -> str:
        return words.pop()

    def format(self, value: str) -> list[str]:
        return [value]

    def problems(self, value: str, names: Names) -> Iterator[str]:
        yield from names.topic_problems(value)


PRODUCER_ALL: Final = "producer-all"
PRODUCER_LEADER: Final = "producer-leader"

TRANSACTIONAL: Final = "transactional"
"""The transactional id of all transactional producers, and the first of them."""


def transactional_name(number: int) -> str:
    """Returns the name of a transactional producer: each is a process, and all have one transactional id."""
    return f"{TRANSACTIONAL}-{number}" if number else TRANSACTIONAL


def member_producer_name(group_id: str, number: int) -> str:
    """Returns the name of a member's own transactional producer, and its transactional id."""
    return f"{TRANSACTIONAL}-{group_id}-{number}"


READERS: Final = "readers"
PIPE: Final = "pipe"
GROUPS: Final = (READERS, PIPE)
"""The consumer groups of schedules that are drawn; one commits its positions with transactions."""

COMMITTED_READER: Final = "committed-reader"
"""The consumer that is given committed records only, beside it."""

PLANNED_PRODUCERS: Final = {"all": PRODUCER_ALL, "1": PRODUCER_LEADER, "0": "producer-none"}
"""Producers of a plan that brings its own clients, by the acks that its lines name."""


class ProducerField(_Scalar[str]):
    """A producer: by its name in a step, by its acks in a line."""

    def __init__(self) -> None:
        super().__init__("producer", help="Name of the producer.", line="acks")

    def value_at(self, cursor: Cursor, names: Names) -> str:
        return names.producer(cursor)

    def value_of(self, value: str) -> YamlValue:
        return value

    def from_word(self, word: str) -> str:
        return PLANNED_PRODUCERS[word]

    def word_of(self, value: str) -> str:
        return next((acks for acks, name in PLANNED_PRODUCERS.items() if name == value), value)

    def problems(self, value: str, names: Names) -> Iterator[str]:
        if value == PLANNED_PRODUCERS["0"]:
            yield "expected acks all or 1"


# --- What a loss of power takes -----------------------------------------------------------------------------------


_ONE_JOURNAL: Final = "not on a disk with an ordered journal, where truncation says what becomes of names, too"


class LossField:
    """The outcome of a power loss: ``keep``, a ``seed``, and the exact ``kept``, ``truncation``, ``names``.

    In a line, ``kept`` and ``truncation`` belong together. On a ``disk`` with an ordered journal, ``truncation`` says
    what becomes of names, too.
    """

    keys: tuple[str, ...] = ("keep", "seed", "kept", "truncation", "names", "disk")
    options: tuple[Option, ...] = (
        Option("keep", "keep", "What is left of the bytes that were not synced.", tuple(each.value for each in Keep)),
        Option("seed", "seed", "Seed of the random choice of what is left; random if not given."),
        Option(
            "disk",
            "disk",
            "The file system whose rules decide what is lost; posix if not given.",
            tuple(each.value for each in DiskModel),
        ),
    )
    is_required = False

    def read(self, fields: Fields, names: Names) -> DiskLoss:
        keep, seed = fields.optional("keep"), fields.optional("seed")
        kept, truncation, fate = fields.optional("kept"), fields.optional("truncation"), fields.optional("names")
        named = fields.optional("disk")
        disk = DiskModel.POSIX if named is None else read_enum(named, DiskModel)
        if fate is not None and disk.has_ordered_journal:
            fate.fail(_ONE_JOURNAL)
        exact = None
        if kept is not None or truncation is not None or fate is not None:
            cut = TruncationFate.UNDONE if truncation is None else read_enum(truncation, TruncationFate)
            names_default = NamesFate(cut.value) if disk.has_ordered_journal else NamesFate.UNDONE
            exact = ExactLoss(
                kept=0 if kept is None else kept.integer(low=0),
                truncation=cut,
                names=names_default if fate is None else read_enum(fate, NamesFate),
            )
        return DiskLoss(
            keep=Keep.NONE if keep is None else read_enum(keep, Keep),
            seed=None if seed is None else seed.integer(low=0),
            exact=exact,
            disk=disk,
        )

    def write(self, value: DiskLoss) -> dict[str, YamlValue]:
        written: dict[str, YamlValue] = {"keep": value.keep.value}
        if value.seed is not None:
            written["seed"] = value.seed
        if value.exact is not None:
            written["kept"] = value.exact.kept
            written["truncation"] = value.exact.truncation.value
            if not value.disk.has_ordered_journal:
                written["names"] = value.exact.names.value
        if value.disk is not DiskModel.POSIX:
            written["disk"] = value.disk.value
        return written

    def parse(self, words: Words) -> DiskLoss:
        keep, kept, truncation = (words.pop_pair(key) for key in ("keep", "kept", "truncation"))
        names = words.pop_pair("names")
        seed = words.pop_pair("seed")
        disk = DiskModel(words.pop_pair("disk") or DiskModel.POSIX)
        if names is not None and disk.has_ordered_journal:
            raise ValueError(_ONE_JOURNAL)
        if (kept is None) != (truncation is None) or (kept is None and names is not None):
            raise ValueError("kept= and truncation= belong together, and names= to them")
        exact = None
        if kept is not None and truncation is not None:
            default = truncation if disk.has_ordered_journal else NamesFate.KEPT.value
            fate = NamesFate(names or default)
            exact = ExactLoss(kept=int(kept), truncation=TruncationFate(truncation), names=fate)
        return DiskLoss(
            keep=Keep.NONE if keep is None else Keep(keep),
            seed=None if seed is None else _whole(seed),
            exact=exact,
            disk=disk,
        )

    def format(self, value: DiskLoss) -> list[str]:
        exact = value.exact
        words = [f"keep={value.keep.value}"]
        if exact is not None:
            words += [f"kept={exact.kept}", f"truncation={exact.truncation.value}"]
            if exact.names is not NamesFate.KEPT and not value.disk.has_ordered_journal:
                words.append(f"names={exact.names.value}")
        words += [] if value.disk is DiskModel.POSIX else [f"disk={value.disk.value}"]
        return words if value.seed is None else [*words, f"seed={value.seed}"]

    def problems(self, value: DiskLoss, names: Names) -> Iterator[str]:
        if value.exact is not None and value.exact.kept < 0:
            yield "expected kept from 0 on"


class OptionalLoss:
    """A ``DiskLoss``, or ``None`` if a step or line has none."""

    keys: tuple[str, ...] = LossField.keys
    options: tuple[Option, ...] = LossField.options
    is_required = False
    _loss: Final = LossField()

    def read(self, fields: Fields, names: Names) -> DiskLoss | None:
        if not any(key in fields.keys for key in self.keys):
            fields.allow(self.keys)
            return None
        return self._loss.read(fields, names)

    def write(self, value: DiskLoss | None) -> dict[str, YamlValue]:
        return {} if value is None else self._loss.write(value)

    def parse(self, words: Words) -> DiskLoss | None:
        return self._loss.parse(words) if words.has_pair("keep") else None

    def format(self, value: DiskLoss | None) -> list[str]:
        return [] if value is None else self._loss.format(value)

    def problems(self, value: DiskLoss | None, names: Names) -> Iterator[str]:
        if value is not None:
            yield from self._loss.problems(value, names)


# --- Answers ------------------------------------------------------------------------------------------------------


class Answers:
    """The answers of the controller that are expected, by Kafka's names; without a list only success."""

    keys: tuple[str, ...] = ("answer",)
    options: tuple[Option, ...] = ()
    is_required = False

    def read(self, fields: Fields, names: Names) -> tuple[ErrorCode, ...]:
        cursor = fields.optional("answer")
        if cursor is None:
            return (ErrorCode.NONE,)
        answers = tuple(read_error(each) for each in cursor.items())
        if not answers:
            cursor.fail("allowed: a list of error names, NONE among them where it may succeed")
        return answers

    def write(self, value: tuple[ErrorCode, ...]) -> dict[str, YamlValue]:
        return {} if value == (ErrorCode.NONE,) else {"answer": [each.name for each in value]}

    def parse(self, words: Words) -> tuple[ErrorCode, ...]:
        word = words.pop_pair("answer")
        return (ErrorCode.NONE,) if word is None else tuple(ErrorCode[each] for each in word.split(","))

    def format(self, value: tuple[ErrorCode, ...]) -> list[str]:
        return [] if value == (ErrorCode.NONE,) else [f"answer={','.join(each.name for each in value)}"]

    def problems(self, value: tuple[ErrorCode, ...], names: Names) -> Iterator[str]:
        yield from ()


def read_error(cursor: Cursor) -> ErrorCode:
    """Returns one of Kafka's errors by its name."""
    return ErrorCode[cursor.choice([each.name for each in ErrorCode])]
