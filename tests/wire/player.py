"""Plays wire cases against a listener: requests as Kafka's clients encode them, answers compared with Kafka's own.

A case is a list of steps in the format of ``vectors/wire.json``, which was recorded from Apache Kafka 4.2.0.
"""

import re
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, Final

from laststand.emulator.kafka_listener.message_codec import Writer, request_codec, response_codec
from laststand.emulator.kafka_listener.messages import Api, FieldDefinition, all_apis, api_named
from laststand.emulator.storage.fields import FieldReader as Reader
from tests.wire.batches import make_batch, summarize

ANSWER_TIMEOUT_S: Final = 15.0
SILENCE_S: Final = 1.5
_ATTEMPT_S: Final = 0.1
_COMMIT_S: Final = 5.0
_ANSWERED_BY_COMMITTED: Final = frozenset({"DescribeGroups", "ListGroups"})
"""Kafka joins a new group before the group's first record is committed, and describes it only afterwards."""
_TRANSACTIONAL_ID_NOT_FOUND: Final = 105
_GROUPS: Final = 12
"""So many that each partition of ``__consumer_offsets`` has one."""

_UNORDERED: Final = frozenset(
    {
        "brokers",
        "isrNodes",
        "apiKeys",
        "supportedFeatures",
        "finalizedFeatures",
        "groups",
        "members",
        "configs",
        "activeProducers",
        "topicPartitions",
        "currentVoters",
        "observers",
        "nodes",
        "listeners",
        "statesFilter",
        "synonyms",
        "results",
        "replicaElectionResults",
        "logDirs",
    }
)


class MismatchError(Exception):
    """An answer that Kafka would not give; the text says where."""


class ClosedError(Exception):
    """The listener closed the connection."""


class Connection:
    """A blocking connection of a client."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, 5)
        self._buffer = b""
        self._next = 0
        self.pending: list[tuple[Api, int]] = []

    def send(self, name: str, version: int, body: dict[str, Any], *, client_id: str = "vec") -> None:
        """Sends a request."""
        api = api_named(name)
        self._next += 1
        writer = Writer()
        writer.append(struct.pack(">hhih", api.key, version, self._next, len(client_id)) + client_id.encode())
        if version in api.flexible:
            writer.append(b"\0")
        request_codec(api.key, version).write(_as_bytes(body), writer)
        frame = b"".join(writer.buffers())
        self.send_bytes(struct.pack(">i", len(frame)) + frame)
        self.pending.append((api, version))

    def send_bytes(self, data: bytes) -> None:
        """Sends bytes."""
        self._socket.sendall(data)

    def half_close(self) -> None:
        """Sends nothing more."""
        self._socket.shutdown(socket.SHUT_WR)

    def frame(self, *, timeout_s: float = ANSWER_TIMEOUT_S) -> bytes:
        """Returns the next answer's bytes.

        Raises:
            ClosedError: the connection is over.
            TimeoutError: none came.
        """
        self._socket.settimeout(timeout_s)
        (size,) = struct.unpack(">i", self._take(4))
        return self._take(size)

    def receive(self, *, timeout_s: float = ANSWER_TIMEOUT_S) -> dict[str, Any]:
        """Returns the answer to the oldest request that has none; errors as of ``frame``."""
        frame = self.frame(timeout_s=timeout_s)
        api, version = self.pending.pop(0)
        return decode(api, version, frame)

    def ask(self, name: str, version: int, body: dict[str, Any]) -> dict[str, Any]:
        """Sends a request and returns its answer."""
        self.send(name, version, body)
        return self.receive()

    def close(self) -> None:
        """Closes the connection."""
        self._socket.close()

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            try:
                more = self._socket.recv(1 << 16)
            except ConnectionError:
                more = b""
            if not more:
                raise ClosedError
            self._buffer += more
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken


def decode(api: Api, version: int, frame: bytes) -> dict[str, Any]:
    """Returns an answer with the fields that its version has, and those tagged ones that are there."""
    reader = Reader(frame)
    reader.position = 4
    if version in api.flexible and api.name != "ApiVersions":
        assert reader.raw_bytes(1) == b"\0", "no header has tagged fields"
    message = response_codec(api.key, version).read(reader)
    assert reader.position == len(frame), "nothing follows an answer"
    return _present(api.response, message, version)


def _present(fields: Sequence[FieldDefinition], message: dict[str, Any], version: int) -> dict[str, Any]:
    present: dict[str, Any] = {}
    for field in fields:
        value = message[field.name]
        if version not in field.versions or (field.tag is not None and value == field.default):
            continue
        if field.type == "records":
            value = summarize(value or b"")
        elif field.type == "bytes" and not field.is_array:
            value = f"hex:{(value or b'').hex()}"
        elif field.fields and value is not None:
            value = (
                [_present(field.fields, each, version) for each in value]
                if field.is_array
                else _present(field.fields, value, version)
            )
        present[field.name] = list(value) if field.is_array and value is not None else value
    return present


def _as_bytes(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _as_bytes(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_as_bytes(each) for each in value]
    return bytes.fromhex(value[4:]) if isinstance(value, str) and value.startswith("hex:") else value


class Cluster:
    """The addresses of a listener's brokers.

    Args:
        bootstrap: any of them.
    """

    def __init__(self, bootstrap: tuple[str, int]) -> None:
        with closing(Connection(bootstrap)) as connection:
            brokers = connection.ask("Metadata", 12, {"topics": []})["brokers"]
        self.addresses: dict[int, tuple[str, int]] = {
            broker["nodeId"]: (broker["host"], broker["port"]) for broker in brokers
        }

    def coordinator(self, key: str, *, is_transactional: bool = False) -> int:
        """Returns the broker that coordinates a group or a transactional id, once it has loaded it."""
        nodes: list[int] = []

        def is_found() -> bool:
            with closing(Connection(next(iter(self.addresses.values())))) as connection:
                asked = {"keyType": int(is_transactional), "coordinatorKeys": [key]}
                (found,) = connection.ask("FindCoordinator", 4, asked)["coordinators"]
            if found["errorCode"]:
                return False
            with closing(Connection(self.addresses[found["nodeId"]])) as connection:
                if is_transactional:
                    (answer,) = connection.ask("DescribeTransactions", 0, {"transactionalIds": [key]})[
                        "transactionStates"
                    ]
                else:
                    groups = {"groups": [{"groupId": key, "topics": []}], "requireStable": False}
                    (answer,) = connection.ask("OffsetFetch", 8, groups)["groups"]
            nodes.append(found["nodeId"])
            return answer["errorCode"] in (0, _TRANSACTIONAL_ID_NOT_FOUND)

        _await(is_found, f"the coordinator of {key}")
        return nodes[-1]


class CasePlayer:
    """Plays one case.

    Args:
        cluster: to be asked.
        case: as in the file.
        run: makes names of topics unique among plays.
    """

    def __init__(self, cluster: Cluster, case: dict[str, Any], *, run: str) -> None:
        self._cluster = cluster
        self._case = case
        self._run = run
        self._values: dict[str, Any] = {}
        self._connections: dict[object, Connection] = {}

    def play(self) -> None:
        """Plays all steps.

        Raises:
            MismatchError: an answer is not what Kafka gives.
        """
        try:
            for number, step in enumerate(self._case["steps"]):
                if "topic" in step:
                    self._make_topic(step)
                elif "sleepMs" in step:
                    time.sleep(step["sleepMs"] / 1000)  # the case is about a time of the listener
                else:
                    answer = self._exchange(step)
                    if answer is not None and "expect" in step:
                        self._match(step["expect"], answer, f"step {number}", step)
        finally:
            for connection in self._connections.values():
                connection.close()

    # --- Requests -------------------------------------------------------------------------------------------------

    def _exchange(self, step: dict[str, Any]) -> dict[str, Any] | None:
        wait_s = _COMMIT_S if step.get("api") in _ANSWERED_BY_COMMITTED else step.get("withinMs", 0) / 1000
        deadline = time.monotonic() + wait_s
        while True:
            answer = self._once(step)
            if answer is None or self._is_final(step, answer) or time.monotonic() > deadline:
                break
            time.sleep(_ATTEMPT_S)  # between two looks at the listener
        if answer is not None:
            for name, path in step.get("capture", {}).items():
                self._values[name] = _at(answer, path)
        return answer

    def _is_final(self, step: dict[str, Any], answer: dict[str, Any]) -> bool:
        if step.get("api") in _ANSWERED_BY_COMMITTED and not self._is_expected(step, answer):
            return False
        codes = set(_errors_in(answer))
        if codes & set(step.get("retry", ())):
            return False
        until = step.get("until")
        return until is None or bool(_at(answer, until["path"]) == self._filled(until["is"]))

    def _is_expected(self, step: dict[str, Any], answer: dict[str, Any]) -> bool:
        try:
            self._match(step.get("expect", {"$any": None}), answer, "", step)
        except MismatchError:
            return False
        return True

    def _once(self, step: dict[str, Any]) -> dict[str, Any] | None:
        name = step.get("recv") or step.get("conn") or ("broker", step.get("broker", 1))
        try:
            if "recv" in step:
                return self._connections[name].receive(timeout_s=step.get("timeoutS", ANSWER_TIMEOUT_S))
            if name not in self._connections:
                node = self._node(self._filled(step.get("broker", 1)))
                self._connections[name] = Connection(self._cluster.addresses[node])
            return self._ask(self._connections[name], step)
        except (ClosedError, ConnectionError):
            self._connections.pop(name).close()
            return {"closed": True}
        except TimeoutError:
            self._connections.pop(name).close()
            return {"timedOut": True}

    def _node(self, broker: int | str) -> int:
        """Returns the broker that a step asks: by its id, or the coordinator of a group, or one that is not."""
        if isinstance(broker, int):
            return broker
        kind, _, key = broker.partition(":")
        coordinator = self._cluster.coordinator(str(self._filled(key)), is_transactional=kind == "txcoord")
        if kind in ("coord", "txcoord"):
            return coordinator
        return next(node for node in sorted(self._cluster.addresses) if node != coordinator)

    def _ask(self, connection: Connection, step: dict[str, Any]) -> dict[str, Any] | None:
        if "raw" in step:
            connection.send_bytes(bytes.fromhex(step["raw"].replace(" ", "")))
            if step.get("halfClose"):
                connection.half_close()
            frame = connection.frame(timeout_s=step.get("timeoutS", 5))
            return (
                {"frame": frame.hex()} if "as" not in step else decode(api_named(step["as"][0]), step["as"][1], frame)
            )
        if "pipeline" in step:
            for name, version, body in step["pipeline"]:
                connection.send(name, version, self._filled(body))
            return {"answers": [connection.receive() for _ in step["pipeline"]]}
        client_id = self._filled(step.get("clientId", "vec"))
        connection.send(step["api"], step["version"], self._filled(step["request"]), client_id=client_id)
        if step.get("noResponse"):
            connection.pending.pop()
        if step.get("wait", True) is False:
            return None
        if step.get("noResponse"):
            try:
                connection.frame(timeout_s=SILENCE_S)
            except TimeoutError:
                return {"noResponse": True}
            return {"noResponse": False}
        return connection.receive(timeout_s=step.get("timeoutS", ANSWER_TIMEOUT_S))

    def _make_topic(self, step: dict[str, Any]) -> None:
        """Creates a topic, and waits until each broker shows its leaders and the leaders answer."""
        name = self._filled(f"@{step['topic']}")
        assignment = step.get("assignment", [[1, 2, 3]])
        connections = {node: Connection(address) for node, address in self._cluster.addresses.items()}
        topic = {
            "name": name,
            "numPartitions": -1,
            "replicationFactor": -1,
            "assignments": [{"partitionIndex": i, "brokerIds": replicas} for i, replicas in enumerate(assignment)],
            "configs": [{"name": key, "value": value} for key, value in step.get("configs", {}).items()],
        }
        try:
            (created,) = connections[1].ask("CreateTopics", 7, {"topics": [topic], "timeoutMs": 20_000})["topics"]
            if created["errorCode"]:
                raise MismatchError(f"topic {name}: error {created['errorCode']}, {created['errorMessage']}")
            self._values[f"#{step['topic']}"] = created["topicId"]
            for connection in connections.values():
                _await(lambda asked=connection: _shows(asked, name, assignment), f"{name} on every broker")
            for index, replicas in enumerate(assignment):
                _await(lambda i=index, r=replicas: _is_led(connections[r[0]], name, i), f"{name} to be led")
        finally:
            for connection in connections.values():
                connection.close()

    # --- Values ---------------------------------------------------------------------------------------------------

    def _filled(self, value: Any) -> Any:
        """Returns a value of the case with names, captured values and batches in place."""
        match value:
            case {"$batch": batch}:
                return f"hex:{make_batch(**self._filled(batch)).hex()}"
            case {"$concat": parts}:
                return "hex:" + "".join(self._filled(part)[4:] for part in parts)
            case {"$subscription": topics}:
                names = [self._filled(topic).encode() for topic in topics]
                listed = b"".join(struct.pack(">h", len(name)) + name for name in names)
                return f"hex:{(struct.pack('>hi', 0, len(names)) + listed + struct.pack('>i', -1)).hex()}"
            case dict():
                return {key: self._filled(each) for key, each in value.items()}
            case list():
                return [self._filled(each) for each in value]
            case str() if value.startswith("@"):
                return f"{re.sub('[^a-z0-9]+', '-', self._case['id'])}.{value[1:]}{self._run}"
            case str() if value.startswith("#"):
                return self._values[value]
            case str() if (found := re.fullmatch(r"\$\{([^}]+)\}([+-]\d+)?", value)) is not None:
                captured = self._values[found[1]]
                return captured if found[2] is None else captured + int(found[2])
            case _:
                return value

    def _match(self, expected: Any, answer: Any, path: str, step: dict[str, Any]) -> None:
        match expected:
            case {"$any": seen}:
                if answer is None and seen is not None and not path.endswith(".errorMessage"):
                    raise MismatchError(f"{path}: null, expected something like {seen!r}")
            case {"$in": choices}:
                if answer not in self._filled(choices):
                    raise MismatchError(f"{path}: {answer!r}, expected one of {choices!r}")
            case {"$ge": least}:
                if answer < least:
                    raise MismatchError(f"{path}: {answer!r}, expected at least {least}")
            case dict():
                self._match_fields(expected, answer, path, step)
            case list():
                self._match_elements(expected, answer, path, step)
            case _:
                if self._filled(expected) != answer:
                    raise MismatchError(f"{path}: {answer!r}, expected {self._filled(expected)!r}")

    def _match_fields(self, expected: dict[str, Any], answer: Any, path: str, step: dict[str, Any]) -> None:
        fields = {name: value for name, value in expected.items() if name != "$partial"}
        if not isinstance(answer, dict) or fields.keys() - answer.keys():
            raise MismatchError(f"{path}: {answer!r}, expected {expected!r}")
        for name, value in fields.items():
            self._match(value, answer[name], f"{path}.{name}", step)
        more = answer.keys() - fields.keys()
        if more and not expected.get("$partial"):
            raise MismatchError(f"{path}: unexpected {sorted(more)}")

    def _match_elements(self, expected: list[Any], answer: Any, path: str, step: dict[str, Any]) -> None:
        if not isinstance(answer, list) or len(answer) != len(expected):
            raise MismatchError(f"{path}: {answer!r}, expected {expected!r}")
        name = path.rpartition(".")[2]
        if name not in _UNORDERED and name not in step.get("unordered", ()):
            for number, (wanted, got) in enumerate(zip(expected, answer, strict=True)):
                self._match(wanted, got, f"{path}[{number}]", step)
            return
        rest = list(answer)
        for number, wanted in enumerate(expected):
            for got in rest:
                try:
                    self._match(wanted, got, f"{path}[{number}]", step)
                except MismatchError:
                    continue
                rest.remove(got)
                break
            else:
                raise MismatchError(f"{path}[{number}]: nothing of {rest!r} matches {wanted!r}")


def warm_up(cluster: Cluster) -> None:
    """Waits until there are coordinators: their topic is made when the first one is looked for."""
    for number in range(_GROUPS):
        cluster.coordinator(f"warm-up-{number}")
        cluster.coordinator(f"warm-up-{number}", is_transactional=True)


def _await(is_so: Any, what: str) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        if time.monotonic() > deadline:
            raise MismatchError(f"waited 30 s for {what}")
        time.sleep(_ATTEMPT_S)  # between two looks at the listener


def _shows(connection: Connection, name: str, assignment: list[list[int]]) -> bool:
    asked = {"topics": [{"name": name}], "allowAutoTopicCreation": False}
    (topic,) = connection.ask("Metadata", 12, asked)["topics"]
    shown = {each["partitionIndex"]: (each["leaderId"], sorted(each["isrNodes"])) for each in topic["partitions"]}
    return shown == {index: (replicas[0], sorted(replicas)) for index, replicas in enumerate(assignment)}


def _is_led(connection: Connection, name: str, index: int) -> bool:
    partition = {"partitionIndex": index, "timestamp": -1}
    asked = {"replicaId": -1, "topics": [{"name": name, "partitions": [partition]}]}
    return bool(connection.ask("ListOffsets", 7, asked)["topics"][0]["partitions"][0]["errorCode"] == 0)


def _errors_in(answer: Any) -> Iterator[int]:
    if isinstance(answer, dict):
        yield from (value for name, value in answer.items() if name == "errorCode" and isinstance(value, int))
        for value in answer.values():
            yield from _errors_in(value)
    elif isinstance(answer, list):
        for value in answer:
            yield from _errors_in(value)


def _at(answer: Any, path: str) -> Any:
    """Returns a value of an answer; ``None`` if it is not there."""
    try:
        for part in path.split("."):
            answer = answer[int(part)] if part.lstrip("-").isdigit() else answer.get(part)
    except (IndexError, AttributeError):
        return None
    return answer


def known_apis(case: dict[str, Any]) -> bool:
    """Returns whether this program has the messages of all that a case asks."""
    names = {api.name for api in all_apis().values()}
    return set(case["apis"]) <= names
