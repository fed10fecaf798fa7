"""The event files of a ZooKeeper server: what its transaction log says, in the form of the simulated server's events.

Every zxid leaves an event, so that a missing one leaves a gap. An event has the time at which the server accepted its
transaction, which is before any client could learn of it.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from laststand.emulator.cluster.child import EndCause
from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.core import events
from laststand.emulator.core.eras import ZooKeeperSwitches, rule_texts
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.properties import node_properties, property_texts
from laststand.emulator.core.types import BrokerId, CauseId, IncarnationId, MetadataOffset, NodeId, NodeRole
from laststand.emulator.core.zookeeper.history import ZooKeeperHistory
from laststand.emulator.core.zookeeper.identifiers import SessionId
from laststand.emulator.node.event_writer import EventWriter
from laststand.emulator.storage.line_file import line_files, stream_lines
from laststand.emulator.storage.sync_ledger import durable_prefixes
from laststand.emulator.zookeeper.transaction_log import LoggedTransaction, TransactionLogReader

_CAUSE: Final = CauseId("zookeeper")
_NS_PER_MS: Final = 1_000_000


class _StartedLine(msgspec.Struct, tag_field="type", tag="NodeStarted"):
    incarnation_id: str
    wall_time_ns: int = 0


class _CommittedLine(msgspec.Struct):
    metadata_offset: int = 0


class ServerEvents:
    """Reads a server's transaction log, and writes its event files.

    Args:
        layout: of the cluster.
        has_sync_ledger: whether the server's syncs are recorded. Then writes that a power loss could still take do not
            count, until the server is started again.
        catch_up: copies what the nodes have written so far, if this process has only copies of their files.

    Attributes:
        log: the server's transaction log.
    """

    def __init__(
        self, layout: ClusterLayout, *, has_sync_ledger: bool, catch_up: Callable[[], None] = lambda: None
    ) -> None:
        if not isinstance(layout.switches, ZooKeeperSwitches):
            raise InvariantError("a ZooKeeper server in a cluster with other rules")
        self.log = TransactionLogReader(layout.data_directory(layout.controller_id))
        self._layout = layout
        self._has_sync_ledger = has_sync_ledger
        self._catch_up = catch_up
        self._history = ZooKeeperHistory(
            layout.switches.zookeeper,
            node_properties(dict(layout.properties)),
            incarnation_of=self._incarnation_of,
        )
        self._file: EventWriter | None = None
        self._time_ns = time.monotonic_ns()
        self._wall_ahead_ns = time.time_ns() - time.monotonic_ns()
        self._incarnations = _last_incarnations(layout)
        self._written_before = _last_written(layout)
        self._unwritten: list[tuple[events.Event, int]] = []
        self._sessions: dict[BrokerId, SessionId] = {}
        self._taken_wall_ns = 0

    @property
    def image(self) -> MetadataImage:
        """Committed metadata, as far as it was read."""
        return self._history.image

    def session_of(self, broker_id: BrokerId) -> SessionId | None:
        """Returns the session under which a broker registered last."""
        return self._sessions.get(broker_id)

    # --- Processes ------------------------------------------------------------------------------------------------

    def started(self, node_id: NodeId, incarnation: int) -> None:
        """Notes that a process is about to start; the log has all writes of earlier ones."""
        self._catch_up()
        if node_id == self._layout.controller_id:
            self.close()
            self._begin(incarnation, time_ns=time.monotonic_ns())
        else:
            self.read()
        self._incarnations[node_id] = incarnation

    def found(self) -> None:
        """Records a running server that another program started: its first process, from the begin of its log on."""
        self._catch_up()
        self._incarnations = _last_incarnations(self._layout)  # the brokers, too, were started by another program
        self.close()
        self._begin(0, time_ns=min([self._time_ns, *(time_ns for _, time_ns in self._unwritten)]))

    def _begin(self, incarnation: int, *, time_ns: int) -> None:
        """Begins the event file of a process with the writes that were read before."""
        layout = self._layout
        self._time_ns = time_ns
        self._file = EventWriter(
            str(layout.event_file(layout.controller_id, incarnation)),
            run=layout.run,
            node_id=layout.controller_id,
            incarnation=incarnation,
            clock=lambda: self._time_ns,
        )
        self._write(
            events.NodeStarted(
                cause_id=_CAUSE,
                role=NodeRole.ZOOKEEPER,
                incarnation_id=IncarnationId(f"zookeeper-{incarnation}"),
                switches=rule_texts(layout.switches),
                properties=property_texts(node_properties(dict(layout.properties))),
                wall_time_ns=time_ns + self._wall_ahead_ns,
            ),
            time_ns=time_ns,
        )
        missed, self._unwritten = self._unwritten, []
        for event, time_ns in missed:
            self._write(event, time_ns=time_ns)

    def ended(self, cause: EndCause) -> None:
        """Notes that the server's process ended."""
        self.read_all()
        if cause is EndCause.STOPPED:
            self._write(events.NodeStopped(cause_id=_CAUSE), time_ns=time.monotonic_ns())

    def close(self) -> None:
        """Reads all writes of the server's last process, and ends its file."""
        self._add_all(self.log.read_new())
        if self._file is not None:
            self._file.close()
        self._file = None

    def intercepted(self, event: events.MessageIntercepted) -> None:
        """Records that a message to or from the server was affected."""
        self._write(event, time_ns=time.monotonic_ns())

    # --- The log --------------------------------------------------------------------------------------------------

    def read(self) -> bool:
        """Reads the server's writes since the last call; returns whether there were any.

        Raises:
            StorageError: a file is not a transaction log, or the sync ledger cannot be read.
        """
        return self._add_all(self.log.read_new(synced=self._synced if self._has_sync_ledger else None))

    def read_all(self) -> bool:
        """Reads all writes of the server until now; see ``read``."""
        self._catch_up()
        return self.read()

    def _synced(self) -> Mapping[int, int]:
        return durable_prefixes(str(self._layout.ledger_directory(self._layout.controller_id)))

    def _add_all(self, transactions: Iterator[LoggedTransaction]) -> bool:
        has_read = False
        for transaction in transactions:
            self._add(transaction)
            has_read = True
        return has_read

    def _add(self, transaction: LoggedTransaction) -> None:
        self._taken_wall_ns = (transaction.wall_ms + 1) * _NS_PER_MS
        time_ns = transaction.wall_ms * _NS_PER_MS - self._wall_ahead_ns
        offset = MetadataOffset(transaction.zxid)
        is_known = transaction.zxid <= self._written_before
        if not transaction.changes:
            other = events.OtherRecordCommitted(cause_id=_CAUSE, metadata_offset=offset, record=transaction.name)
            if not is_known:
                self._write(other, time_ns=time_ns)
        for change in transaction.changes:
            for event in self._history.fold(change, cause_id=_CAUSE):
                if not is_known:
                    self._write(event, time_ns=time_ns)
        self._history.passed(transaction.zxid)
        self._history.image.pop_delta()

    def _write(self, event: events.Event, *, time_ns: int) -> None:
        if self._file is None:
            self._unwritten.append((event, time_ns))
            return
        self._time_ns = max(self._time_ns, time_ns)
        self._file.add(event)
        self._file.flush()

    def _incarnation_of(self, broker_id: BrokerId, session_id: SessionId) -> IncarnationId:
        """Returns the process that registers: the last one that was started. It has written its first line by then.

        Registrations under an earlier harness are recorded already; their processes are gone.
        """
        self._sessions[broker_id] = session_id
        found = self._started_before(broker_id)
        if found is None:
            self._catch_up()
            found = self._started_before(broker_id)
        if found is None:
            raise InvariantError(f"broker {broker_id} has registered, and no process of it was started")
        return IncarnationId(found)

    def _started_before(self, broker_id: BrokerId) -> str | None:
        """Returns the incarnation id of a broker's last process that had started when the transaction was taken on."""
        last = self._incarnations.get(broker_id, self._layout.last_incarnation(broker_id) or 0)
        for incarnation in range(last, -1, -1):
            path = self._layout.event_file(broker_id, incarnation)
            line = next(stream_lines(path), None) if path.exists() else None
            if line is not None:
                begun = msgspec.json.decode(line, type=_StartedLine)
                if begun.wall_time_ns <= self._taken_wall_ns:
                    return begun.incarnation_id
        return None


def _last_incarnations(layout: ClusterLayout) -> dict[NodeId, int]:
    found = {node_id: layout.last_incarnation(node_id) for node_id in layout.node_ids}
    return {node_id: last for node_id, last in found.items() if last is not None}


def _last_written(layout: ClusterLayout) -> int:
    """Returns the last zxid that earlier harnesses recorded; 0 if there were none."""
    last = 0
    for path in line_files(layout.directory / "events", f"{layout.controller_id}-*"):
        for line in stream_lines(path):
            with contextlib.suppress(msgspec.MsgspecError):  # the last line may be torn
                last = max(last, msgspec.json.decode(line, type=_CommittedLine).metadata_offset)
    return last
