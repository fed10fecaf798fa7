"""The replica manager: what every broker does with its replicas, whoever assigns their roles."""

import pytest

from laststand.emulator.core import effects, inputs, messages
from laststand.emulator.core.broker.replicas.in_flight_requests import InFlightRequests
from laststand.emulator.core.broker.replicas.replica_manager import LogsState, ReplicaManager
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.types import BrokerEpoch, CauseId, NodeId, Offset, RequestId
from tests.unit.core.broker.hosting import FIRST, NAME, OWN, TOPIC_ID, Hosting

BROKER_EPOCH = BrokerEpoch(7)
PROVEN_EPOCH = BrokerEpoch(6)
CONTROLLER = NodeId(100)


class Managed:
    """The replicas of a broker that leads ``NAME`` with three records."""

    def __init__(self) -> None:
        self.hosting = Hosting(records=3)
        self.manager = ReplicaManager(self.hosting.config, self.hosting.image, InFlightRequests())
        self.manager.hosted.is_serving = True
        self.manager.hosted.add(self.hosting.partition)
        self.hosting.lead(OWN)

    def ask(self, request: messages.Request) -> list[messages.Response]:
        turn = self.hosting.turn()
        self.manager.handle_request(turn, RequestId(1), request, broker_epoch=BROKER_EPOCH, controller=CONTROLLER)
        return [effect.response for effect in turn.effects() if isinstance(effect, effects.SendResponse)]

    def open(self, *strays: inputs.StrayLog) -> None:
        turn = self.hosting.turn()
        self.manager.load_logs(turn)
        assert turn.effects() == [effects.LoadLogs()]
        loaded = inputs.LogsLoaded(cause_id=CauseId("unit"), logs=(), strays=strays)
        self.manager.open_logs(self.hosting.turn(), loaded)


@pytest.mark.parametrize(
    ("request_", "response"),
    [
        (messages.FetchRequest(partitions=()), messages.FetchResponse),
        (messages.ProduceRequest(acks=1, timeout_ms=1, partitions=()), messages.ProduceResponse),
        (messages.DeleteRecordsRequest(timeout_ms=1, partitions=()), messages.DeleteRecordsResponse),
        (messages.MetadataRequest(), messages.MetadataResponse),
        (messages.DescribeTopicPartitionsRequest(topics=(NAME.topic,)), messages.DescribeTopicPartitionsResponse),
        (messages.ListOffsetsRequest(partitions=()), messages.ListOffsetsResponse),
        (messages.OffsetForLeaderEpochRequest(partitions=()), messages.OffsetForLeaderEpochResponse),
        (messages.GetReplicaLogInfoRequest(partitions=()), messages.GetReplicaLogInfoResponse),
    ],
)
def test_every_broker_answers_these_requests(request_: messages.Request, response: type[messages.Response]) -> None:
    (answered,) = Managed().ask(request_)
    assert isinstance(answered, response)


def test_metadata_names_the_controller_and_log_info_the_incarnation() -> None:
    managed = Managed()
    (metadata,) = managed.ask(messages.MetadataRequest())
    (info,) = managed.ask(messages.GetReplicaLogInfoRequest(partitions=()))
    assert isinstance(metadata, messages.MetadataResponse)
    assert isinstance(info, messages.GetReplicaLogInfoResponse)
    assert (metadata.controller_id, info.broker_epoch) == (CONTROLLER, BROKER_EPOCH)


def test_a_request_that_only_one_kind_of_broker_serves_is_a_bug_here() -> None:
    managed = Managed()
    with pytest.raises(InvariantError, match="InitProducerIdRequest is not for a broker"):
        managed.ask(messages.InitProducerIdRequest())
    with pytest.raises(InvariantError, match="MetadataRequest failed, which a broker never sends"):
        managed.manager.handle_failure(managed.hosting.turn(), FIRST, messages.MetadataRequest())
    with pytest.raises(InvariantError, match="FetchResponse answers MetadataRequest"):
        managed.manager.handle_response(
            managed.hosting.turn(), FIRST, messages.MetadataRequest(), messages.FetchResponse(partitions=())
        )


def test_logs_that_are_not_open_are_left_as_they_are_at_the_end() -> None:
    managed = Managed()
    states = [managed.manager.logs_state]
    managed.manager.load_logs(managed.hosting.turn())
    assert [*states, managed.manager.logs_state] == [LogsState.UNTOUCHED, LogsState.LOADING]
    turn = managed.hosting.turn()
    managed.manager.exit(turn, broker_epoch=BROKER_EPOCH, proven_epoch=PROVEN_EPOCH)
    assert turn.effects() == [effects.StopNode(proven_epoch=PROVEN_EPOCH)]


def test_open_logs_are_closed_with_their_high_watermarks_and_the_brokers_epoch() -> None:
    managed = Managed()
    managed.open()
    assert managed.manager.logs_state is LogsState.OPEN
    turn = managed.hosting.turn()
    managed.manager.exit(turn, broker_epoch=BROKER_EPOCH, proven_epoch=PROVEN_EPOCH)
    written, closed = turn.effects()
    assert written == effects.WriteHighWatermarks(high_watermarks=((NAME, Offset(3)),))
    assert closed == effects.CloseLogs(broker_epoch=BROKER_EPOCH)


def test_the_earliest_of_all_deadlines_is_due_and_only_what_is_due_is_done() -> None:
    managed = Managed()
    stray = inputs.StrayLog(partition=NAME._replace(partition=5), topic_id=TOPIC_ID)
    assert managed.manager.next_deadline_ms() is None
    managed.open(stray)
    began_ms = managed.hosting.now_ms
    waits = messages.FetchPartition(topic=NAME.topic, topic_id=None, partition=0, fetch_offset=Offset(3))
    assert managed.ask(messages.FetchRequest(max_wait_ms=500, min_bytes=1, partitions=(waits,))) == []
    assert managed.manager.next_deadline_ms() == began_ms + 500
    managed.hosting.now_ms += 499
    early = managed.hosting.turn()
    managed.manager.handle_timers(early)
    assert early.effects() == []
    managed.hosting.now_ms += 1
    due = managed.hosting.turn()
    managed.manager.handle_timers(due)
    assert [type(effect) for effect in due.effects()] == [effects.SendResponse]
    managed.hosting.now_ms = began_ms + managed.hosting.config.properties.stray_delete_delay_ms
    last = managed.hosting.turn()
    managed.manager.handle_timers(last)
    assert effects.DeleteStrayLog(partition=stray.partition, topic_id=TOPIC_ID) in last.effects()


def test_what_waits_is_answered_at_the_end_of_the_step_that_it_waited_for() -> None:
    managed = Managed()
    waits = messages.FetchPartition(topic=NAME.topic, topic_id=None, partition=0, fetch_offset=Offset(3))
    assert managed.ask(messages.FetchRequest(max_wait_ms=500, min_bytes=1, partitions=(waits,))) == []
    turn = managed.hosting.append()
    managed.manager.check_recoveries(turn)
    assert not [effect for effect in turn.effects() if isinstance(effect, effects.SendResponse)]
    managed.manager.settle(turn, BROKER_EPOCH)
    (answered,) = [effect.response for effect in turn.effects() if isinstance(effect, effects.SendResponse)]
    assert isinstance(answered, messages.FetchResponse)
    assert answered.partitions[0].high_watermark == 4


@pytest.mark.parametrize(("log_start_offset", "raised"), [(0, False), (2, True)])
def test_a_log_begins_where_retention_cut_it(log_start_offset: int, *, raised: bool) -> None:
    managed = Managed()
    turn = managed.hosting.turn()
    deleted = inputs.SegmentsDeleted(
        cause_id=CauseId("unit"), partition=NAME, log_start_offset=Offset(log_start_offset)
    )
    managed.manager.handle_segments_deleted(turn, deleted)
    assert managed.hosting.partition.log.log_start_offset == log_start_offset
    assert (NAME in turn.advanced) is raised
