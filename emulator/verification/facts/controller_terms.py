"""Controllers over time and the writes of each, by the transaction log of a ZooKeeper server.

A session is a broker's that registered under it. Each election makes ``/controller`` and raises the controller epoch by
one, from 0, in one transaction; so the n-th creation is the controller of epoch n (``KafkaZkClient``).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from laststand.emulator.core import events
from laststand.emulator.core.types import ZnodeWrite
from laststand.emulator.verification.tables.timeline import CollectedEvent

CONTROLLER_NODE: Final = "/controller"

_REGISTRATIONS: Final = "/brokers/ids/"


class ControllerTerm(NamedTuple):
    """A time in which one broker was controller.

    Attributes:
        broker: the elected broker; ``None`` if its registration is not recorded.
        controller_epoch: its controller epoch.
        session_id: of the broker.
        begun: when it was elected.
        ended: when its node was deleted; ``None`` if it was not.
    """

    broker: int | None
    controller_epoch: int
    session_id: int
    begun: CollectedEvent[events.ZnodeWritten]
    ended: CollectedEvent[events.ZnodeWritten] | None


class Writer(NamedTuple):
    """The author of a write.

    Attributes:
        broker: the broker's id.
        controller_epoch: its epoch as controller; ``None`` for a leader, not a controller, that wrote its ISR.
    """

    broker: int
    controller_epoch: int | None

    def __str__(self) -> str:
        """Returns the writer in the form of sentences."""
        if self.controller_epoch is None:
            return f"broker {self.broker}, the leader itself,"
        return f"broker {self.broker}, controller in epoch {self.controller_epoch},"


class ControllerTerms:
    """The terms of a run in their order, none in a KRaft cluster."""

    def __init__(self, changes: Iterable[CollectedEvent[events.ZnodeWritten]]) -> None:
        written = sorted(changes, key=lambda each: each.event.metadata_offset)
        self._brokers = dict(_registered(written))
        self._writers: dict[tuple[int, str], int] = {
            (each.event.metadata_offset, each.event.path): each.event.session_id for each in written
        }
        self.terms = tuple(self._terms([each for each in written if each.event.path == CONTROLLER_NODE]))

    def writer(self, metadata_offset: int, path: str) -> Writer | None:
        """Returns the writer of a node in a transaction; ``None`` if it is unrecorded."""
        session_id = self._writers.get((metadata_offset, path))
        broker = None if session_id is None else self._brokers.get(session_id)
        if broker is None:
            return None
        epochs = [
            term.controller_epoch
            for term in self.terms
            if term.session_id == session_id and term.begun.event.metadata_offset <= metadata_offset
        ]
        return Writer(broker, epochs[-1] if epochs else None)

    def _terms(self, changes: list[CollectedEvent[events.ZnodeWritten]]) -> Iterator[ControllerTerm]:
        elections = [each for each in changes if each.event.write is ZnodeWrite.CREATED]
        for controller_epoch, begun in enumerate(elections, start=1):
            ended = next(
                (
                    each
                    for each in changes
                    if each.event.write is ZnodeWrite.DELETED
                    and each.event.metadata_offset > begun.event.metadata_offset
                ),
                None,
            )
            session_id = begun.event.session_id
            yield ControllerTerm(self._brokers.get(session_id), controller_epoch, session_id, begun, ended)


def state_node(topic: str, partition: int) -> str:
    """Returns the path of a partition's state node."""
    return f"/brokers/topics/{topic}/partitions/{partition}/state"


def _registered(written: list[CollectedEvent[events.ZnodeWritten]]) -> Mapping[int, int]:
    """Returns the broker id by session, for each session that registered a broker."""
    return {
        each.event.session_id: int(each.event.path.removeprefix(_REGISTRATIONS))
        for each in written
        if each.event.path.startswith(_REGISTRATIONS) and each.event.write is ZnodeWrite.CREATED
    }
