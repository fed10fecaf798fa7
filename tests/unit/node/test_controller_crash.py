"""A controller that dies at any file operation never takes back what it acknowledged or streamed.

A scripted history runs on the file system in memory. It is repeated once per file operation and outcome of that
operation, with and without a loss of power afterwards; then the log is opened and replayed, and must hold

- every batch that was streamed, as the beginning of the history that a controller without accident writes;
- every fact that an answer stated;

and what the two processes wrote down is, once each, what the records that were found call for.
"""

import contextlib
from collections.abc import Iterable

import pytest

from laststand.emulator.core import admin_messages, effects, events, inputs, messages, records
from laststand.emulator.core.controller.controller import Controller
from laststand.emulator.core.disk import Keep
from laststand.emulator.core.errors import ErrorCode, StorageError
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.metadata_version import BROKER_FEATURES
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import (
    BrokerId,
    CauseId,
    IncarnationId,
    MetadataOffset,
    NodeId,
    RequestId,
    TopicId,
    TopicPartition,
)
from laststand.emulator.node.controller_turn import ControllerTurns
from laststand.emulator.node.event_writer import encode_event
from laststand.emulator.node.metadata_journal import MetadataJournal
from laststand.emulator.node.unreported_events import unreported_events
from tests.memory_filesystem import CrashPoint, FaultOutcome, MemoryFileSystem, SimulatedCrashError

DATA_DIR = "/data"
CAUSE = CauseId("test")
SESSION_MS = NodeProperties().broker_session_timeout_ms
ORDERS = TopicId("orders" + "A" * 16)
PAYMENTS = TopicId("payments" + "A" * 14)
BROKERS = tuple(BrokerId(NodeId(number)) for number in range(3))


def requests(*messages: messages.Request) -> list[inputs.ControllerInput]:
    return [
        inputs.RequestReceived(cause_id=CAUSE, request_id=RequestId(number), request=message)
        for number, message in enumerate(messages)
    ]


def register(broker_id: BrokerId) -> messages.BrokerRegistrationRequest:
    return messages.BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id="cluster",
        incarnation_id=IncarnationId(f"incarnation-{broker_id}"),
        log_dirs=(f"directory-{broker_id}",),
        features=BROKER_FEATURES,
    )


def heartbeat(controller: Controller, broker_id: BrokerId) -> messages.BrokerHeartbeatRequest:
    return messages.BrokerHeartbeatRequest(
        broker_id=broker_id,
        broker_epoch=controller.image.brokers[broker_id].broker_epoch,
        current_metadata_offset=controller.image.next_offset,
        want_fence=False,
        want_shut_down=False,
    )


def create(name: str, topic_id: TopicId) -> admin_messages.CreateTopicsRequest:
    topic = admin_messages.CreatableTopic(name=name, topic_id=topic_id, assignments=(BROKERS, BROKERS[::-1]))
    return admin_messages.CreateTopicsRequest(topics=(topic,))


def shrink(controller: Controller) -> messages.AlterPartitionRequest:
    state = controller.image.partitions[TopicPartition("orders", 0)]
    return messages.AlterPartitionRequest(
        broker_id=BROKERS[0],
        broker_epoch=controller.image.brokers[BROKERS[0]].broker_epoch,
        partitions=(
            messages.AlterPartitionData(
                topic="orders",
                topic_id=ORDERS,
                partition=0,
                leader_epoch=state.leader_epoch,
                partition_epoch=state.partition_epoch,
                new_isr=(messages.IsrMember(BROKERS[0]), messages.IsrMember(BROKERS[1])),
            ),
        ),
    )


class History:
    """Plays the script on a disk and keeps what left the controller."""

    def __init__(self, filesystem: MemoryFileSystem) -> None:
        self.streamed: list[records.MetadataBatch] = []
        self.answers: list[messages.Response] = []
        self.controller = new_controller()
        if not filesystem.exists(DATA_DIR):
            filesystem.make_directory(DATA_DIR)
        filesystem.sync_directory("/")
        journal = MetadataJournal(filesystem, DATA_DIR)
        self.found = list(journal.batches)
        self.kept = journal.events
        self.told: list[events.Event] = []
        self.turns = ControllerTurns(self.controller, journal)

    def play(self) -> None:
        self.turn([inputs.Started(cause_id=CAUSE)])
        self.turn(requests(*(register(broker) for broker in BROKERS)))
        self.turn(requests(*(heartbeat(self.controller, broker) for broker in BROKERS)))
        self.turn(requests(create("orders", ORDERS), create("payments", PAYMENTS), create("orders", PAYMENTS)))
        self.turn(requests(shrink(self.controller)))
        epoch = self.controller.image.brokers[BROKERS[1]].broker_epoch
        self.turn(requests(messages.AllocateProducerIdsRequest(broker_id=BROKERS[1], broker_epoch=epoch)))
        self.turn(requests(heartbeat(self.controller, BROKERS[1])), now_ms=SESSION_MS - 1)
        self.turn(
            [inputs.TimerFired(cause_id=CAUSE)], now_ms=SESSION_MS + 1
        )  # fences the brokers that said nothing since
        self.turn([inputs.TimerFired(cause_id=CAUSE)], now_ms=SESSION_MS + 1)
        self.turn(requests(admin_messages.DeleteTopicsRequest(topics=("payments",))), now_ms=SESSION_MS + 1)

    def turn(self, inputs: list[inputs.ControllerInput], *, now_ms: int = 0) -> None:
        events, departures = self.turns.run(inputs, now_ms=now_ms)
        self.told += events
        for departure in departures:
            match departure:
                case effects.PublishMetadata(batch=batch):
                    self.streamed.append(batch)
                case effects.SendResponse(response=response):
                    self.answers.append(response)
                case effects.DrawNumber():
                    pass
                case _:
                    raise AssertionError(departure)


def new_controller() -> Controller:
    return Controller(NodeProperties(), Switches(), "cluster", NodeId(100))


def fold(batches: Iterable[records.MetadataBatch]) -> MetadataImage:
    image = MetadataImage()
    for batch in batches:
        for index, record in enumerate(batch.records):
            image.replay(record, offset=MetadataOffset(batch.base_offset + index))
    return image


def check_facts(answers: list[messages.Response], image: MetadataImage, *, deleted: set[str]) -> None:
    """Checks every fact stated in an answer; facts only grow in the script, so they still hold in what was replayed."""
    registered = dict(
        zip((a for a in answers if isinstance(a, messages.BrokerRegistrationResponse)), BROKERS, strict=False)
    )
    for answer in answers:
        match answer:
            case messages.BrokerRegistrationResponse(error=ErrorCode.NONE, broker_epoch=broker_epoch):
                assert image.brokers[registered[answer]].broker_epoch == broker_epoch
            case admin_messages.CreateTopicsResponse(topics=(result,)) if result.error is ErrorCode.NONE:
                assert result.name in image.topics or result.name in deleted
            case messages.AlterPartitionResponse(error=ErrorCode.NONE, partitions=(altered,)):
                assert altered.error is ErrorCode.NONE
                assert image.partitions[TopicPartition("orders", 0)].partition_epoch >= altered.partition_epoch
            case messages.AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=length):
                assert image.next_producer_id >= start + length
            case admin_messages.DeleteTopicsResponse(topics=(result,)):
                assert result.name not in image.topics
            case messages.BrokerHeartbeatResponse() | admin_messages.CreateTopicsResponse():
                pass
            case _:
                raise AssertionError(answer)


def offset_of(event: events.Event) -> int:
    return int(getattr(event, "metadata_offset", -1))


def of_records(events: list[events.Event]) -> list[events.Event]:
    return [event for event in events if offset_of(event) >= 0]


def undisturbed() -> tuple[History, list[str]]:
    filesystem = MemoryFileSystem()
    history = History(filesystem)
    history.play()
    return history, filesystem.operations


WHOLE, OPERATIONS = undisturbed()


def test_the_script_reaches_its_subject() -> None:
    image = WHOLE.controller.image

    assert [type(answer).__name__ for answer in WHOLE.answers].count("BrokerRegistrationResponse") == len(BROKERS)
    assert set(image.topics) == {"orders"}
    assert image.partitions[TopicPartition("orders", 0)].leader == BROKERS[1]
    assert image.next_producer_id > 0
    assert sum("sync" in operation for operation in OPERATIONS) >= 10


@pytest.mark.parametrize("loss", [None, *Keep], ids=lambda keep: "kill" if keep is None else f"power-{keep.value}")
@pytest.mark.parametrize("outcome", FaultOutcome, ids=lambda outcome: outcome.value)
def test_nothing_that_left_is_taken_back(outcome: FaultOutcome, loss: Keep | None) -> None:
    for operation in range(1, len(OPERATIONS) + 1):
        filesystem = MemoryFileSystem()
        filesystem.restart(crash_at=CrashPoint(operation=operation, outcome=outcome))
        streamed: list[records.MetadataBatch] = []
        answers: list[messages.Response] = []
        told: list[events.Event] = []
        with contextlib.suppress(SimulatedCrashError, StorageError):
            history = History(filesystem)
            streamed, answers, told = history.streamed, history.answers, history.told
            history.play()
            pytest.fail("the accident did not happen")
        if loss is not None:
            filesystem.lose_power(keep=loss, seed=operation)

        filesystem.restart()
        successor = History(filesystem)
        found = successor.found

        where = f"operation {operation}: {OPERATIONS[operation - 1]}"
        assert found[: len(streamed)] == streamed, where
        assert found == WHOLE.streamed[: len(found)], where
        deleted = {"payments"} if len(found) == len(WHOLE.streamed) else set[str]()
        check_facts(answers, fold(found), deleted=deleted)
        told += unreported_events(successor.kept, frozenset(map(encode_event, told)))
        end_offset = found[-1].end_offset if found else 0
        assert of_records(told) == [event for event in of_records(WHOLE.told) if offset_of(event) < end_offset], where
        successor.turn([inputs.Started(cause_id=CAUSE)])


def test_a_lost_batch_would_be_noticed() -> None:
    with pytest.raises((AssertionError, KeyError)):
        check_facts(WHOLE.answers, fold(WHOLE.streamed[:3]), deleted={"payments"})
