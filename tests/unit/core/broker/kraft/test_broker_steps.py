"""A whole broker, input by input: start, shutdown, waiting requests, order of effects."""

import msgspec
import pytest

from laststand.emulator.core import inputs, messages
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.broker.kraft.broker import Broker
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.effects import (
    AppendToLog,
    BrokerEffect,
    CloseConnection,
    CloseLogs,
    LoadLogs,
    OpenMetadataStream,
    RecordEvent,
    SendRequest,
    SendResponse,
    StopNode,
    WriteHighWatermarks,
)
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.events import ProduceAnswered
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.records import (
    MetadataBatch,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    TopicRecord,
)
from laststand.emulator.core.requester import Requester
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    BrokerState,
    CauseId,
    IncarnationId,
    LeaderEpoch,
    MetadataOffset,
    NodeId,
    Offset,
    RequestFailure,
    RequestId,
    TopicId,
    TopicPartition,
)
from laststand.emulator.simulator.nodes.batch_registry import ENCODE_RECORDS
from tests.unit.core.broker.hosting import FIRST, NAME, OWN, TOPIC_ID

CAUSE = CauseId("unit")
OWN_EPOCH = BrokerEpoch(5)
PREVIOUS_EPOCH = BrokerEpoch(2)
EVERY_RULE_ON = Switches()


def registered(broker_id: BrokerId, epoch: int, *, fenced: bool = False) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=IncarnationId(f"incarnation-{broker_id}"),
        broker_epoch=BrokerEpoch(epoch),
        log_dirs=(),
        fenced=fenced,
    )


class Life:
    """Broker 0 with everything around it played by the test."""

    def __init__(
        self,
        switches: Switches = EVERY_RULE_ON,
        *,
        previous_broker_epoch: BrokerEpoch | None = PREVIOUS_EPOCH,
        properties: NodeProperties | None = None,
    ) -> None:
        self.now_ms = 0
        self.broker = Broker(
            BrokerConfig(
                broker_id=OWN,
                controller_ids=(NodeId(100),),
                cluster_id="unit",
                incarnation_id=IncarnationId("incarnation-0"),
                previous_broker_epoch=previous_broker_epoch,
                switches=switches,
                properties=properties or NodeProperties(),
            ),
            ENCODE_RECORDS,
        )
        self.in_flight: list[SendRequest] = []
        self.answers: dict[RequestId, messages.Response] = {}
        self.requests = 0

    def step(self, incoming: inputs.BrokerInput) -> list[BrokerEffect]:
        effects = self.broker.step(incoming, now_ms=self.now_ms)
        self.in_flight += [effect for effect in effects if isinstance(effect, SendRequest)]
        for effect in effects:
            if isinstance(effect, SendResponse):
                assert effect.request_id not in self.answers, "answered twice"
                self.answers[effect.request_id] = effect.response
        return effects

    def take(
        self, kind: type[messages.BrokerHeartbeatRequest] | type[messages.BrokerRegistrationRequest]
    ) -> SendRequest:
        (sent,) = [effect for effect in self.in_flight if isinstance(effect.request, kind)]
        self.in_flight.remove(sent)
        return sent

    def answer(self, sent: SendRequest, response: messages.Response) -> list[BrokerEffect]:
        return self.step(inputs.ResponseReceived(cause_id=CAUSE, correlation_id=sent.correlation_id, response=response))

    def metadata(self, *records: Record) -> list[BrokerEffect]:
        batch = MetadataBatch(base_offset=self.broker.image.next_offset, records=records)
        return self.step(inputs.MetadataReceived(cause_id=CAUSE, batches=(batch,)))

    def ask(self, request: messages.Request, requester: Requester | None = None) -> RequestId:
        self.requests += 1
        request_id = RequestId(self.requests)
        cause_id = CauseId(f"op-{request_id}")
        self.step(
            inputs.RequestReceived(cause_id=cause_id, request_id=request_id, request=request, requester=requester)
        )
        return request_id

    def advance(self, ms: int) -> None:
        end_ms = self.now_ms + ms
        while (deadline := self.broker.next_deadline_ms()) is not None and deadline <= end_ms:
            self.now_ms = max(self.now_ms, deadline)
            self.step(inputs.TimerFired(cause_id=CAUSE))
        self.now_ms = end_ms

    def register(self) -> None:
        response = messages.BrokerRegistrationResponse(error=ErrorCode.NONE, broker_epoch=OWN_EPOCH)
        self.answer(self.take(messages.BrokerRegistrationRequest), response)

    def serve(self, *, is_fenced: bool = False) -> None:
        """Comes up as leader of one partition that broker 1 follows; its metadata may still call it fenced."""
        self.step(inputs.Started(cause_id=CAUSE))
        self.step(inputs.MetadataStreamOpened(cause_id=CAUSE, end_offset=MetadataOffset(0)))
        self.step(inputs.LogsLoaded(cause_id=CAUSE, logs=()))
        self.register()
        self.metadata(
            registered(OWN, OWN_EPOCH, fenced=is_fenced),
            registered(FIRST, 6),
            TopicRecord(name=NAME.topic, topic_id=TOPIC_ID),
            PartitionRecord(topic_id=TOPIC_ID, partition=0, replicas=(OWN, FIRST), isr=(OWN, FIRST), leader=OWN),
        )
        response = messages.BrokerHeartbeatResponse(error=ErrorCode.NONE, is_caught_up=True, is_fenced=False)
        self.answer(self.take(messages.BrokerHeartbeatRequest), response)


def produce(
    *,
    acks: int = -1,
    size: int = 100,
    timeout_ms: int = 1000,
    name: TopicPartition = NAME,
    topic_id: TopicId | None = None,
) -> messages.ProduceRequest:
    batch = BatchDescriptor(
        base_offset=Offset(0), last_offset=Offset(0), leader_epoch=LeaderEpoch(0), crc=1, size=size, record_count=1
    )
    asked = messages.ProducePartition(topic=name.topic, topic_id=topic_id, partition=name.partition, batch=batch)
    return messages.ProduceRequest(acks=acks, timeout_ms=timeout_ms, partitions=(asked,))


def fetch(
    offset: int,
    *,
    replica: BrokerId | None = FIRST,
    max_wait_ms: int = 500,
    min_bytes: int = 1,
    name: TopicPartition = NAME,
    topic_id: TopicId = TOPIC_ID,
) -> messages.FetchRequest:
    asked = messages.FetchPartition(
        topic=name.topic,
        topic_id=topic_id,
        partition=name.partition,
        fetch_offset=Offset(offset),
        current_leader_epoch=LeaderEpoch(0),
        log_start_offset=Offset(0),
    )
    return messages.FetchRequest(partitions=(asked,), replica_id=replica, max_wait_ms=max_wait_ms, min_bytes=min_bytes)


def error_of(response: messages.Response | None) -> ErrorCode:
    assert isinstance(response, messages.ProduceResponse)
    return response.partitions[0].error


def high_watermark_of(response: messages.Response | None) -> Offset | None:
    assert isinstance(response, messages.FetchResponse)
    return response.partitions[0].high_watermark


def test_logs_are_loaded_when_the_image_reaches_the_end_that_the_stream_named() -> None:
    life = Life()
    effects = life.step(inputs.Started(cause_id=CAUSE))
    assert any(isinstance(effect, OpenMetadataStream) for effect in effects)
    life.step(inputs.MetadataStreamOpened(cause_id=CAUSE, end_offset=MetadataOffset(2)))
    assert not any(isinstance(effect, LoadLogs) for effect in life.metadata(registered(FIRST, 0)))
    assert any(isinstance(effect, LoadLogs) for effect in life.metadata(registered(OWN, 1)))


def test_registration_carries_the_proof_of_the_clean_shutdown() -> None:
    life = Life()
    life.step(inputs.Started(cause_id=CAUSE))
    request = life.take(messages.BrokerRegistrationRequest).request
    assert isinstance(request, messages.BrokerRegistrationRequest)
    assert request.previous_broker_epoch == 2


def test_a_refused_registration_is_tried_again_after_a_heartbeat_interval() -> None:
    life = Life()
    life.step(inputs.Started(cause_id=CAUSE))
    response = messages.BrokerRegistrationResponse(error=ErrorCode.DUPLICATE_BROKER_REGISTRATION)
    life.answer(life.take(messages.BrokerRegistrationRequest), response)
    life.advance(1999)
    assert life.in_flight == []
    life.advance(1)
    life.take(messages.BrokerRegistrationRequest)


def test_a_refused_heartbeat_is_tried_again_after_a_heartbeat_interval_however_often() -> None:
    life = Life()
    life.serve()
    life.advance(2000)
    for _ in range(3):
        refusal = messages.BrokerHeartbeatResponse(error=ErrorCode.STALE_BROKER_EPOCH)
        life.answer(life.take(messages.BrokerHeartbeatRequest), refusal)
        life.advance(1999)
        assert not any(isinstance(sent.request, messages.BrokerHeartbeatRequest) for sent in life.in_flight)
        life.advance(1)


def test_what_a_timer_sets_off_has_the_cause_that_the_driver_gave_it() -> None:
    life = Life()
    life.serve()
    life.now_ms += 60_000
    effects = life.step(inputs.TimerFired(cause_id=CauseId("timer-0-1-7")))
    causes = {effect.cause_id for effect in effects if isinstance(effect, SendRequest)}
    assert causes == {"timer-0-1-7"}


def test_it_asks_to_be_unfenced_as_soon_as_logs_are_open_and_its_registration_is_seen() -> None:
    life = Life()
    life.step(inputs.Started(cause_id=CAUSE))
    life.step(inputs.MetadataStreamOpened(cause_id=CAUSE, end_offset=MetadataOffset(0)))
    life.register()
    not_yet = messages.BrokerHeartbeatResponse(error=ErrorCode.NONE)
    heartbeat = life.take(messages.BrokerHeartbeatRequest)
    assert isinstance(heartbeat.request, messages.BrokerHeartbeatRequest)
    assert heartbeat.request.want_fence
    life.metadata(registered(OWN, OWN_EPOCH, fenced=True))
    life.step(inputs.LogsLoaded(cause_id=CAUSE, logs=()))
    life.answer(heartbeat, not_yet)
    heartbeat = life.take(messages.BrokerHeartbeatRequest)
    assert isinstance(heartbeat.request, messages.BrokerHeartbeatRequest)
    assert not heartbeat.request.want_fence
    assert heartbeat.request.current_metadata_offset == 0


def loads_logs(effects: list[BrokerEffect]) -> bool:
    return LoadLogs() in effects


def test_logs_are_opened_and_roles_taken_once_the_metadata_has_this_very_process() -> None:
    life = Life()
    life.step(inputs.Started(cause_id=CAUSE))
    life.step(inputs.MetadataStreamOpened(cause_id=CAUSE, end_offset=MetadataOffset(1)))
    before = msgspec.structs.replace(registered(OWN, 3), incarnation_id=IncarnationId("the-one-before"))
    assert not loads_logs(life.metadata(before))
    life.register()
    assert loads_logs(life.metadata(registered(OWN, OWN_EPOCH, fenced=True)))


def test_without_that_rule_logs_are_opened_as_soon_as_the_metadata_is_there() -> None:
    life = Life(Switches(roles_after_registration=False))
    life.step(inputs.Started(cause_id=CAUSE))
    life.step(inputs.MetadataStreamOpened(cause_id=CAUSE, end_offset=MetadataOffset(1)))
    before = msgspec.structs.replace(registered(OWN, 3), incarnation_id=IncarnationId("the-one-before"))
    assert loads_logs(life.metadata(before))


@pytest.mark.parametrize(
    ("previous_broker_epoch", "rule", "proven_epoch"),
    [(BrokerEpoch(2), True, OWN_EPOCH), (None, True, None), (BrokerEpoch(2), False, None)],
)
def test_shutdown_before_logs_were_opened_renews_the_proof_that_they_are_in_order(
    previous_broker_epoch: BrokerEpoch | None, *, rule: bool, proven_epoch: BrokerEpoch | None
) -> None:
    life = Life(Switches(untouched_logs_stay_proven=rule), previous_broker_epoch=previous_broker_epoch)
    life.step(inputs.Started(cause_id=CAUSE))
    life.register()
    effects = life.step(inputs.ShutdownRequested(cause_id=CAUSE))
    assert effects[-1] == StopNode(proven_epoch=proven_epoch)


@pytest.mark.parametrize(
    ("previous_broker_epoch", "proven_epoch"), [(BrokerEpoch(2), OWN_EPOCH), (None, None)], ids=["clean", "unclean"]
)
def test_shutdown_while_logs_are_loaded_renews_the_proof_with_which_loading_began(
    previous_broker_epoch: BrokerEpoch | None, proven_epoch: BrokerEpoch | None
) -> None:
    life = Life(Switches(untouched_logs_stay_proven=False), previous_broker_epoch=previous_broker_epoch)
    life.step(inputs.Started(cause_id=CAUSE))
    life.step(inputs.MetadataStreamOpened(cause_id=CAUSE, end_offset=MetadataOffset(1)))
    life.register()
    assert loads_logs(life.metadata(registered(OWN, OWN_EPOCH, fenced=True)))
    effects = life.step(inputs.ShutdownRequested(cause_id=CAUSE))
    assert effects[-1] == StopNode(proven_epoch=proven_epoch)


def test_shutdown_before_logs_were_opened_leaves_them_alone() -> None:
    life = Life()
    life.step(inputs.Started(cause_id=CAUSE))
    effects = life.step(inputs.ShutdownRequested(cause_id=CAUSE))
    assert isinstance(effects[-1], StopNode)
    assert life.broker.next_deadline_ms() is None
    assert life.step(inputs.TimerFired(cause_id=CAUSE)) == []


def test_shutdown_waits_for_the_controller_then_closes_the_logs() -> None:
    life = Life()
    life.serve()
    life.step(inputs.ShutdownRequested(cause_id=CAUSE))
    assert life.broker.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN
    heartbeat = life.take(messages.BrokerHeartbeatRequest)
    leave = messages.BrokerHeartbeatResponse(error=ErrorCode.NONE, is_fenced=True, should_shut_down=True)
    effects = life.answer(heartbeat, leave)
    assert [type(effect) for effect in effects if not isinstance(effect, RecordEvent)] == [
        WriteHighWatermarks,
        CloseLogs,
    ]
    assert effects[-1] == CloseLogs(broker_epoch=OWN_EPOCH)


def test_shutdown_does_not_wait_for_ever_for_a_silent_controller() -> None:
    life = Life()
    life.serve()
    life.step(inputs.ShutdownRequested(cause_id=CAUSE))
    life.advance(9000)
    assert life.broker.state is BrokerState.SHUTTING_DOWN


def test_acks_all_waits_for_the_follower_and_file_effects_come_first() -> None:
    life = Life()
    life.serve()
    life.requests += 1
    effects = life.step(inputs.RequestReceived(cause_id=CAUSE, request_id=RequestId(1), request=produce()))
    assert isinstance(effects[0], AppendToLog)
    assert RequestId(1) not in life.answers
    life.ask(fetch(1))
    assert error_of(life.answers[RequestId(1)]) is ErrorCode.NONE


def test_acks_all_times_out_and_the_record_stays() -> None:
    life = Life()
    life.serve()
    request_id = life.ask(produce(timeout_ms=300))
    life.advance(300)
    assert error_of(life.answers[request_id]) is ErrorCode.REQUEST_TIMED_OUT
    partition = life.broker.partition(NAME)
    assert partition is not None
    assert partition.log.log_end_offset == 1


def test_waiting_requests_learn_that_leadership_is_lost() -> None:
    life = Life()
    life.serve()
    parked = life.ask(fetch(0, min_bytes=10_000))
    waiting = life.ask(produce())
    assert parked not in life.answers
    life.metadata(PartitionChangeRecord(topic_id=TOPIC_ID, partition=0, leader=FIRST))
    assert error_of(life.answers[waiting]) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    answer = life.answers[parked]
    assert isinstance(answer, messages.FetchResponse)
    assert answer.partitions[0].error is ErrorCode.FENCED_LEADER_EPOCH


def test_acks_zero_has_no_answer_and_its_failure_closes_the_connection() -> None:
    life = Life()
    life.serve()
    good = life.step(inputs.RequestReceived(cause_id=CAUSE, request_id=RequestId(1), request=produce(acks=0)))
    assert not any(isinstance(effect, SendResponse | CloseConnection) for effect in good)
    bad = produce(acks=0, size=1 << 30)
    effects = life.step(inputs.RequestReceived(cause_id=CAUSE, request_id=RequestId(2), request=bad))
    assert effects[-1] == CloseConnection(request_id=RequestId(2))


def test_invalid_acks_are_refused() -> None:
    life = Life()
    life.serve()
    assert error_of(life.answers[life.ask(produce(acks=2))]) is ErrorCode.INVALID_REQUIRED_ACKS


def test_a_fetch_answers_with_the_high_watermark_from_before_it() -> None:
    life = Life()
    life.serve()
    life.ask(produce(acks=1))
    assert high_watermark_of(life.answers[life.ask(fetch(1, max_wait_ms=0))]) == 0
    assert high_watermark_of(life.answers[life.ask(fetch(1, max_wait_ms=0))]) == 1


def test_a_risen_high_watermark_wakes_consumers_but_not_followers() -> None:
    life = Life()
    life.serve()
    life.ask(produce(acks=1))
    consumer = life.ask(fetch(0, replica=None))
    follower = life.ask(fetch(1))
    assert consumer in life.answers
    assert follower not in life.answers
    life.advance(500)
    assert follower in life.answers


def test_bytes_that_arrive_wake_a_follower_at_once_if_one_append_waits() -> None:
    life = Life()
    life.serve()
    parked = life.ask(fetch(0))
    life.ask(produce())
    assert parked in life.answers


def test_bytes_that_arrive_while_several_appends_wait_are_answered_a_millisecond_later() -> None:
    life = Life()
    life.serve()
    life.ask(produce())
    life.ask(produce())
    parked = life.ask(fetch(1, min_bytes=10_000))
    cause = life.ask(produce(size=20_000))
    assert parked not in life.answers
    life.now_ms += 1
    effects = life.step(inputs.TimerFired(cause_id=CAUSE))
    assert parked in life.answers
    (response,) = [effect for effect in effects if isinstance(effect, SendResponse)]
    assert response.cause_id == f"op-{cause}"


def test_a_fetch_that_diverges_leaves_no_trace() -> None:
    # KAFKA-13141 (S20).
    life = Life()
    life.serve()
    life.ask(produce(acks=1))
    asked = messages.FetchPartition(
        topic=NAME.topic,
        topic_id=TOPIC_ID,
        partition=0,
        fetch_offset=Offset(9),
        current_leader_epoch=LeaderEpoch(0),
        last_fetched_epoch=LeaderEpoch(0),
    )
    answer = life.answers[life.ask(messages.FetchRequest(partitions=(asked,), replica_id=FIRST))]
    assert isinstance(answer, messages.FetchResponse)
    assert answer.partitions[0].diverging_end_offset == 1
    partition = life.broker.partition(NAME)
    assert partition is not None
    assert partition.followers[FIRST].log_end_offset is None
    assert partition.log.high_watermark == 0


def test_an_unreachable_peer_is_reported_once_and_asked_again() -> None:
    life = Life()
    life.step(inputs.Started(cause_id=CAUSE))
    told: list[str] = []
    for _ in range(3):
        sent = life.take(messages.BrokerRegistrationRequest)
        failed = inputs.RequestFailed(
            cause_id=CAUSE, correlation_id=sent.correlation_id, failure=RequestFailure.DISCONNECTED
        )
        told += [effect.event.describe() for effect in life.step(failed) if isinstance(effect, RecordEvent)]
        life.advance(200)
    assert told == ["PeerUnreachable peer=100 failure=disconnected"]


def test_an_append_that_timed_out_leaves_those_that_wait_beside_it() -> None:
    life = Life()
    life.serve()
    early = life.ask(produce(timeout_ms=300))
    late = life.ask(produce(timeout_ms=900))
    life.advance(300)
    assert error_of(life.answers[early]) is ErrorCode.REQUEST_TIMED_OUT
    assert late not in life.answers
    life.ask(fetch(2))
    assert error_of(life.answers[late]) is ErrorCode.NONE


def test_a_timeout_reports_which_partitions_of_the_request_were_refused_at_once() -> None:
    life = Life()
    life.serve()
    (known,) = produce(timeout_ms=300).partitions
    unknown = msgspec.structs.replace(known, topic="missing")
    request_id = life.ask(messages.ProduceRequest(acks=-1, timeout_ms=300, partitions=(unknown, known)))
    life.advance(300)
    response = life.answers[request_id]
    assert isinstance(response, messages.ProduceResponse)
    assert [answer.error for answer in response.partitions] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REQUEST_TIMED_OUT,
    ]


def test_a_replica_that_asks_a_former_leader_gets_the_leader() -> None:
    # KIP-951.
    life = Life()
    life.serve()
    life.metadata(PartitionChangeRecord(topic_id=TOPIC_ID, partition=0, leader=FIRST))
    answer = life.answers[life.ask(fetch(0))]
    assert isinstance(answer, messages.FetchResponse)
    (told,) = answer.partitions
    assert told.error is ErrorCode.FENCED_LEADER_EPOCH
    assert (told.current_leader, told.current_leader_epoch) == (FIRST, 1)


def told(effects: list[BrokerEffect]) -> list[ProduceAnswered]:
    events = (effect.event for effect in effects if isinstance(effect, RecordEvent))
    return [event for event in events if isinstance(event, ProduceAnswered)]


def answered(life: Life, request_id: RequestId) -> messages.ProducePartitionResponse:
    response = life.answers[request_id]
    assert isinstance(response, messages.ProduceResponse)
    (answer,) = response.partitions
    return answer


def test_an_answered_append_is_reported_with_all_that_the_answer_rests_on() -> None:
    life = Life()
    life.serve()
    life.ask(produce(acks=1))
    request_id = life.ask(produce())
    (event,) = told(life.step(inputs.RequestReceived(cause_id=CAUSE, request_id=RequestId(77), request=fetch(2))))
    assert event.describe() == (
        "ProduceAnswered orders-0 acks=-1 error=NONE base_offset=1 record_count=1 high_watermark=2"
        " committed_isr=(0,1) leader_epoch=0"
    )
    assert (event.topic_id, event.cause_id) == (TOPIC_ID, f"op-{request_id}")
    answer = answered(life, request_id)
    assert (answer.error, answer.base_offset, answer.log_start_offset) == (ErrorCode.NONE, 1, 0)


def test_a_refused_append_is_reported_with_who_leads() -> None:
    life = Life()
    life.serve()
    life.metadata(PartitionChangeRecord(topic_id=TOPIC_ID, partition=0, leader=FIRST))
    incoming = inputs.RequestReceived(cause_id=CAUSE, request_id=RequestId(77), request=produce())
    (event,) = told(life.step(incoming))
    assert (event.error, event.base_offset, event.leader_epoch) == ("NOT_LEADER_OR_FOLLOWER", None, 1)
    answer = answered(life, RequestId(77))
    assert (answer.current_leader, answer.current_leader_epoch, answer.base_offset) == (FIRST, 1, None)


def test_an_append_to_nothing_is_reported_without_a_log() -> None:
    life = Life()
    life.serve()
    missing = NAME._replace(topic="missing")
    incoming = inputs.RequestReceived(cause_id=CAUSE, request_id=RequestId(77), request=produce(name=missing))
    (event,) = told(life.step(incoming))
    assert (event.topic_id, event.high_watermark, event.committed_isr, event.leader_epoch) == ("", 0, (), None)
