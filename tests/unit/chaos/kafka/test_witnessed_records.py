"""Events that the harness writes of the records of Kafka's controller."""

from pathlib import Path

import msgspec
from msgspec import UNSET

from laststand.chaos.kafka.witness import NodeWitness
from laststand.emulator.cluster.child import EndCause
from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.core.events import (
    AnyEvent,
    BrokerRegistered,
    BrokerUnfenced,
    FileSealed,
    NodeStarted,
    OtherRecordCommitted,
)
from laststand.emulator.core.records import BrokerRegistrationChangeRecord, Record, RegisterBrokerRecord
from laststand.emulator.core.switches import era_switches
from laststand.emulator.core.types import BrokerEpoch, BrokerId, IncarnationId, MetadataOffset, NodeId
from laststand.emulator.kafka.metadata_log import CONTROL_RECORD, CommittedBatch
from laststand.emulator.kafka.metadata_records import OtherRecord
from laststand.emulator.plan.nodes import CONTROLLER

ZERO = BrokerId(NodeId(0))
FIRST, SECOND = BrokerEpoch(1), BrokerEpoch(4)


def registration(*, epoch: BrokerEpoch, incarnation: str = "first") -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=ZERO, incarnation_id=IncarnationId(incarnation), broker_epoch=epoch, log_dirs=()
    )


def change(*, fenced: bool | None) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker_id=ZERO, broker_epoch=FIRST, fenced=UNSET if fenced is None else fenced
    )


def controller_events(directory: Path, *records: Record | OtherRecord) -> list[AnyEvent]:
    """Returns what is written of records that were committed one after the other, from offset 0 on."""
    (directory / "events").mkdir()
    layout = ClusterLayout(
        run="test",
        directory=directory,
        controller_ids=(CONTROLLER,),
        broker_ids=(ZERO,),
        switches=era_switches("kafka-4.2"),
        properties=(),
        toxiproxy=None,
    )
    witness = NodeWitness(layout)
    witness.started(CONTROLLER, 0)
    for offset, record in enumerate(records):
        witness.committed(CommittedBatch(MetadataOffset(offset), (record,)))
    witness.ended(CONTROLLER, 0, EndCause.KILLED)
    lines = layout.event_file(CONTROLLER, 0).read_bytes().splitlines()
    started, *events, sealed = (msgspec.json.decode(line, type=AnyEvent) for line in lines)
    assert isinstance(started, NodeStarted)
    assert isinstance(sealed, FileSealed)
    return events


def test_every_record_leaves_an_event_with_its_offset(tmp_path: Path) -> None:
    # Kafka 4.4 writes a change of a registration that tells of cordoned directories alone (KIP-1066), before and after
    # a broker is unfenced: no event of ours has a word for it.
    records: list[Record | OtherRecord] = [
        CONTROL_RECORD,
        registration(epoch=FIRST),
        change(fenced=None),
        change(fenced=False),
        change(fenced=None),
    ]
    events = controller_events(tmp_path, *records)
    kinds = [OtherRecordCommitted, BrokerRegistered, OtherRecordCommitted, BrokerUnfenced, OtherRecordCommitted]
    assert [type(event) for event in events] == kinds
    assert [getattr(event, "metadata_offset", None) for event in events] == [0, 1, 2, 3, 4]
    others = [event.record for event in events if isinstance(event, OtherRecordCommitted)]
    assert others == ["ControlRecord", "BrokerRegistrationChangeRecord", "BrokerRegistrationChangeRecord"]


def test_a_process_that_asks_again_is_not_registered_twice(tmp_path: Path) -> None:
    records: list[Record | OtherRecord] = [
        CONTROL_RECORD,
        registration(epoch=FIRST),
        registration(epoch=FIRST),
        registration(epoch=SECOND, incarnation="second"),
    ]
    events = controller_events(tmp_path, *records)
    assert [type(event) for event in events] == [
        OtherRecordCommitted,
        BrokerRegistered,
        OtherRecordCommitted,
        BrokerRegistered,
    ]
