"""Clients of Kafka of a cluster, up or down: their connections, and what brokers answered, by events and histories."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from laststand.chaos.standing.resumption import find_leftovers
from laststand.emulator.client.history import read_history
from laststand.emulator.cluster.layout import foreign_history_files
from laststand.emulator.core import events
from laststand.emulator.core.history import ForeignProcess, OperationType, PollOperation, SendOperation
from laststand.emulator.core.types import NodeId
from laststand.emulator.storage.line_file import line_files, read_texts

_EVENT: Final[msgspec.json.Decoder[events.AnyEvent]] = msgspec.json.Decoder(events.AnyEvent)
_OF_CLIENTS: Final = (b'"ClientConnected"', b'"ClientDisconnected"', b'"kafka_clients"')


class ClientConnection(msgspec.Struct, kw_only=True):
    """A connection of a client to a broker, and the outcomes of its records.

    Attributes:
        client_id: the id that the client gave.
        link: name of the client whose addresses it dialled; ``None`` if no harness knows it.
        broker: the broker that it is connected to.
        connection: number of the connection in the broker's process.
        software: name and version that the client gave.
        address: of the client, or of its proxy.
        is_connected: whether it is open, as far as the broker knows.
        acked: records that were acknowledged.
        refused: records that certainly were not appended.
        unknown: records whose acknowledgement the client did not get.
        read: records in batches that fetches gave.
    """

    client_id: str
    link: str | None
    broker: NodeId
    connection: int
    software: str = ""
    address: str = ""
    is_connected: bool = False
    acked: int = 0
    refused: int = 0
    unknown: int = 0
    read: int = 0


def client_connections(directory: Path) -> list[ClientConnection]:
    """Returns the connections of clients of Kafka in a run directory, by client id, broker and time.

    Raises:
        OSError: a file cannot be read.
        msgspec.MsgspecError: a line is not an event or an operation.
    """
    names: dict[NodeId, str] = {}
    running = find_leftovers(directory).processes
    found: dict[ForeignProcess, ClientConnection] = {}

    def connection(process: ForeignProcess) -> ClientConnection:
        return found.setdefault(
            process,
            ClientConnection(
                client_id=process.client_id,
                link=names.get(process.link),
                broker=process.node,
                connection=process.connection,
            ),
        )

    for event in _events(directory):
        match event:
            case events.NodeStarted(kafka_clients=clients):
                names.update((client_id, name) for name, client_id in clients.items())
            case events.ClientConnected() if (process := ForeignProcess.parse(event.process)) is not None:
                known = connection(process)
                known.software, known.address = event.software, event.address
                known.is_connected = (process.node, process.incarnation) in running
            case events.ClientDisconnected() if (process := ForeignProcess.parse(event.process)) is not None:
                connection(process).is_connected = False
            case _:
                pass
    for operation in _operations(directory):
        process = ForeignProcess.parse(operation.process)
        if process is not None:
            _count(connection(process), operation)
    order = sorted(
        found, key=lambda process: (process.client_id, process.node, process.incarnation, process.connection)
    )
    return [found[process] for process in order]


def _events(directory: Path) -> Iterator[events.Event]:
    """Yields events about clients, those of the harness first."""
    files = line_files(directory / "events", "harness-*")
    for path in (*files, *(path for path in line_files(directory / "events") if path not in files)):
        for line in read_texts(path).content.splitlines():
            if any(word in line for word in _OF_CLIENTS):
                yield _EVENT.decode(line)


def _operations(directory: Path) -> Iterator[SendOperation | PollOperation]:
    for path in foreign_history_files(directory):
        yield from (line for line in read_history(path) if isinstance(line, SendOperation | PollOperation))


def _count(connection: ClientConnection, operation: SendOperation | PollOperation) -> None:
    match operation:
        case PollOperation(batches=batches):
            connection.read += sum(batch.record_count for batch in batches)
        # Unknown until its completion is read.
        case SendOperation(type=OperationType.INVOKE, record_count=records):
            connection.unknown += records
        case SendOperation(type=OperationType.OK, record_count=records):
            connection.unknown -= records
            connection.acked += records
        case SendOperation(type=OperationType.FAIL, record_count=records):
            connection.unknown -= records
            connection.refused += records
        case _:
            pass
