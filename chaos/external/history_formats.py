"""Forms of histories: Jepsen's EDN, the output of Kafka's verifiable clients, and JSON lines (docs/histories.md)."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from laststand.chaos.external.appended_lists import ListRead
from laststand.chaos.external.foreign_clocks import clock_set_back, clocks_that_differ
from laststand.chaos.external.foreign_history import ForeignEnd, ForeignOperation, ForeignPoll, ForeignSend
from laststand.emulator.core.errors import ConfigError, MissingToolError, shown
from laststand.emulator.core.history import OperationType
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.user_files import read_text

_TYPES: Final = {each.value: each for each in OperationType}
_EDN: Final = ".edn"
_NS_PER_MS: Final = 1_000_000


class _SendLine(msgspec.Struct, frozen=True, tag_field="f", tag="send", forbid_unknown_fields=True):
    """A line of the documented form: a send's invocation or outcome."""

    type: OperationType
    process: str
    id: str
    topic: str
    partition: int
    value: str
    offset: int | None = None
    acks: int = -1
    time_ns: int = 0


class _PollLine(msgspec.Struct, frozen=True, tag_field="f", tag="poll", forbid_unknown_fields=True):
    """A line of the documented form: records that a consumer received."""

    process: str
    topic: str
    partition: int
    records: tuple[tuple[int, str], ...]
    seek: bool = False
    time_ns: int = 0


class _EndLine(msgspec.Struct, frozen=True, tag_field="f", tag="end", forbid_unknown_fields=True):
    """A line of the documented form: the partition ended there when it was read last."""

    topic: str
    partition: int
    end: int


_LINE: Final[msgspec.json.Decoder[_SendLine | _PollLine | _EndLine]] = msgspec.json.Decoder(
    _SendLine | _PollLine | _EndLine
)


class ForeignHistory(NamedTuple):
    """A history that others wrote.

    Attributes:
        operations: ordered by time, or file by file if that order is unknown.
        problem: why the order is unknown; ``None`` if it is known.
    """

    operations: list[ForeignOperation]
    problem: str | None


def read_foreign_history(paths: Sequence[Path]) -> ForeignHistory:
    """Reads the files of one history; several are merged by the times in them.

    Raises:
        ConfigError: a line has none of the formats, or one of several files lacks times; the text names the file.
        MissingToolError: EDN cannot be read.
    """
    histories = {path: _read(path) for path in paths}
    if len(histories) == 1:
        return ForeignHistory(histories[paths[0]], None)
    problems = [clock_set_back(path.name, _timed(path, operations)) for path, operations in histories.items()]
    operations = list(itertools.chain.from_iterable(histories.values()))
    merged = sorted(operations, key=_time_of)
    names = {id(each): path.name for path, its_own in histories.items() for each in its_own}
    problems.append(clocks_that_differ(merged, lambda each: names[id(each)]))
    problem = next(filter(None, problems), None)
    return ForeignHistory(merged if problem is None else operations, problem)


def _time_of(operation: ForeignOperation) -> int:
    return 1 << 63 if isinstance(operation, ForeignEnd) else operation.time_ns


def _timed(path: Path, operations: Sequence[ForeignOperation]) -> Iterator[ForeignSend | ForeignPoll | ListRead]:
    for each in operations:
        if not isinstance(each, ForeignEnd):
            if not each.time_ns:
                raise ConfigError(
                    key="FILE", value=str(path), expected="times in all lines: several files are merged by them"
                )
            yield each


def _read(path: Path) -> list[ForeignOperation]:
    try:
        lines = read_text(path).splitlines()
    except UnicodeDecodeError as error:
        raise ConfigError(key="FILE", value=str(path), expected=f"a text ({error.reason})") from None
    if path.suffix == _EDN:
        return list(_of_jepsen(path, lines))
    return list(_of_json(path, lines))


def _refusal(path: Path, number: int, line: object, reason: str) -> ConfigError:
    return ConfigError(key=f"{path}:{number}", value=shown(str(line)), expected=reason)


# --- JSON lines ---------------------------------------------------------------------------------------------------


def _of_json(path: Path, lines: Sequence[str]) -> Iterator[ForeignOperation]:
    verifiable = _Verifiable(path.stem)
    for number, line in enumerate(lines, start=1):
        if not line.startswith("{"):
            continue  # Kafka's tools print warnings between their lines
        try:
            content = msgspec.json.decode(line)
            if "name" in content:
                yield from verifiable.read(content, number)
            else:
                yield _of_line(_LINE.decode(line))
        except (msgspec.MsgspecError, KeyError, TypeError, RecursionError) as error:
            raise _refusal(path, number, line, f"a line of docs/histories.md ({error})") from None


def _of_line(line: _SendLine | _PollLine | _EndLine) -> ForeignOperation:
    partition = TopicPartition(line.topic, line.partition)
    match line:
        case _SendLine():
            return ForeignSend(
                line.type, line.process, line.id, partition, line.value, line.offset, line.acks, line.time_ns
            )
        case _PollLine():
            return ForeignPoll(line.process, partition, line.records, line.seek, line.time_ns)
        case _EndLine():
            return ForeignEnd(partition, line.end)


class _Verifiable:
    """Reads the output of kafka-verifiable-producer, or of kafka-verifiable-consumer --verbose."""

    def __init__(self, process: str) -> None:
        self._process = process
        self._assigned: set[TopicPartition] = set()
        self._started_ns: int | None = None

    def read(self, line: Mapping[str, Any], number: int) -> Iterator[ForeignOperation]:
        """Yields the operations of a line. Errors of sends name no partition, and counts of records are not records."""
        time_ns = line.get("timestamp", 0) * _NS_PER_MS
        if line["name"] == "startup_complete":
            self._started_ns = time_ns
        elif line["name"] == "partitions_assigned":
            self._assigned |= {TopicPartition(each["topic"], each["partition"]) for each in line["partitions"]}
        elif line["name"] == "producer_send_success":
            yield ForeignSend(
                OperationType.OK,
                self._process,
                f"{self._process}-{number}",
                TopicPartition(line["topic"], line["partition"]),
                str(line["value"]),
                line["offset"],
                time_ns=time_ns,
                after_ns=self._started_ns,
            )
        elif line["name"] == "record_data":
            partition = TopicPartition(line["topic"], line["partition"])
            is_seek = partition in self._assigned
            self._assigned.discard(partition)
            records = ((line["offset"], str(line["value"])),)
            yield ForeignPoll(self._process, partition, records, is_seek, time_ns)


# --- Jepsen -------------------------------------------------------------------------------------------------------


def _of_jepsen(path: Path, lines: Sequence[str]) -> Iterator[ForeignOperation]:
    try:
        import edn_format
    except ImportError:
        raise MissingToolError(tool="edn_format", expected="pip install 'laststand[jepsen]'") from None
    reader = _Jepsen()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield from reader.read(_plain(edn_format.loads(line)))
        except Exception as error:  # the parser of EDN raises whatever its grammar meets
            raise _refusal(path, number, line, f"an operation of Jepsen's Kafka workload ({error})") from None


def _plain(value: Any) -> Any:
    """Returns EDN as dictionaries, lists, texts and numbers."""
    import edn_format

    if isinstance(value, edn_format.Keyword):
        return value.name
    if isinstance(value, Mapping):
        return {_plain(key): _plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(each) for each in value]
    return value


class _Begun(NamedTuple):
    """An operation without an outcome yet: its number, and its request."""

    number: int
    asked: list[tuple[object, ...]]


class _Jepsen:
    """Reads operations of Jepsen's Kafka workloads, by key.

    The operations are ``send``, ``poll``, and ``txn`` with these inside (``jepsen.tests.kafka``), or ``txn`` with
    ``append`` and ``r`` inside (``jepsen.tests.cycle.append``).
    """

    def __init__(self) -> None:
        self._begun: dict[object, _Begun] = {}
        self._count = 0
        self._jumps: set[object] = set()
        self._subscribed: set[object] = set()
        self._is_list: dict[object, bool] = {}
        self._appended: set[tuple[object, str]] = set()

    def read(self, op: Mapping[str, Any]) -> Iterator[ForeignOperation]:
        """Yields the operations of a line."""
        process, kind, function = op["process"], _TYPES[op["type"]], op["f"]
        if not isinstance(process, int):
            return  # the nemesis
        if function in ("assign", "subscribe"):
            if kind is OperationType.OK:
                self._jumps.add(process)
                (self._subscribed.add if function == "subscribe" else self._subscribed.discard)(process)
            return
        if function not in ("send", "poll", "txn"):
            return
        begun = self._of(process, kind, op["value"])
        time_ns = op.get("time", 0)
        for place, (verb, *arguments) in enumerate(op["value"]):
            identity = f"jepsen-{begun.number}-{place}"
            if verb == "send":
                key, value = arguments
                offset, value = value if isinstance(value, list) else (None, value)
                partition = self._partition(key, is_list=False)
                yield ForeignSend(kind, f"process-{process}", identity, partition, str(value), offset, time_ns=time_ns)
            elif verb == "poll":
                if kind is OperationType.OK:
                    yield from self._polls(process, arguments[0], time_ns)
            elif verb == "append":
                key, element = arguments
                partition = self._partition(key, is_list=True)
                name = f"{identity}-append-{element}"
                send = ForeignSend(kind, f"process-{process}", name, partition, str(element), time_ns=time_ns)
                yield send._replace(transaction=begun.number)
            elif verb == "r":
                key, elements = arguments
                partition = self._partition(key, is_list=True)
                if kind is OperationType.INVOKE:
                    yield ListRead(f"process-{process}", identity, partition, None, time_ns)
                elif kind is OperationType.OK:
                    given = _elements(elements)
                    yield ListRead(f"process-{process}", identity, partition, given, time_ns)
            else:
                raise ValueError(f"{verb} is none of send, poll, append and r")

    def _of(self, process: int, kind: OperationType, asked: list[list[Any]]) -> _Begun:
        """Returns the operation that is begun, or that this is the outcome of."""
        wanted = [_asked(*each) for each in asked]
        if kind is not OperationType.INVOKE:
            if process not in self._begun:
                raise ValueError(f"process {process} has nothing begun")
            begun = self._begun.pop(process)
            if begun.asked != wanted:
                raise ValueError(f"process {process} began something else")
            return begun
        if process in self._begun:
            raise ValueError(f"process {process} has begun something, and has no outcome yet")
        for verb, *rest in wanted:
            if verb == "append":
                key, element = rest[0], str(rest[1])
                if (key, element) in self._appended:
                    raise ValueError(f"{element} is appended to {key} twice, so reads do not say which one they have")
                self._appended.add((key, element))
        self._count += 1
        self._begun[process] = _Begun(self._count, wanted)
        return self._begun[process]

    def _partition(self, key: object, *, is_list: bool) -> TopicPartition:
        if self._is_list.setdefault(str(key), is_list) is not is_list:
            raise ValueError(f"{key} is a queue or a list, and not both")
        return TopicPartition(f"key-{key}", 0)

    def _polls(self, process: int, given: Mapping[Any, Any], time_ns: int) -> Iterator[ForeignPoll]:
        # A group is rebalanced at any time: it is not known whether such a consumer's jump was requested.
        is_seek = process in self._jumps or process in self._subscribed
        self._jumps.discard(process)
        for key, pairs in given.items():
            records = tuple((offset, str(value)) for offset, value in pairs if offset is not None)
            partition = self._partition(key, is_list=False)
            yield ForeignPoll(f"process-{process}", partition, records, is_seek, time_ns)


def _asked(verb: object, *arguments: Any) -> tuple[object, ...]:
    """Returns the common part of an invocation and its outcome."""
    if verb not in ("append", "r"):
        return (verb,)
    if len(arguments) != 2:
        raise ValueError(f"{verb} has a key and a value")
    key, value = arguments
    if verb == "r":
        return verb, str(key)
    if value is None or isinstance(value, list | dict):
        raise ValueError("append has one element")
    return verb, str(key), str(value)


def _elements(given: object) -> tuple[str, ...]:
    """Returns the elements of a list, which is nil before the first append."""
    if given is not None and not isinstance(given, list):
        raise ValueError("r gives a list, or nil")
    return tuple(map(str, given or ()))
