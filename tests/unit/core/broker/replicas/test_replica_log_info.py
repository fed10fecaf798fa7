"""A replica's answer to a request for facts about its log (KIP-966, GetReplicaLogInfo)."""

from laststand.emulator.core import messages
from laststand.emulator.core.broker.replicas.replica_log_info import SERVED_MAX, replica_log_info
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerEpoch, LeaderEpoch, Offset, TopicId
from tests.unit.core.broker.hosting import FIRST, NAME, OWN, TOPIC_ID, Hosting

EPOCH = BrokerEpoch(5)


def asked(hosting: Hosting, *partitions: tuple[TopicId, int]) -> tuple[messages.ReplicaLogInfo, ...]:
    response = replica_log_info(hosting.hosted, messages.GetReplicaLogInfoRequest(partitions=partitions), EPOCH)
    assert response.broker_epoch == EPOCH
    return response.partitions


def hosting_orders() -> Hosting:
    hosting = Hosting(records=5)
    hosting.image.topic_names[TOPIC_ID] = NAME.topic
    hosting.lead(OWN, FIRST, leader_epoch=7)
    hosting.fetch(FIRST, 3)
    return hosting


def test_the_log_is_reported_with_the_epoch_of_its_last_record_and_that_of_the_metadata() -> None:
    (told,) = asked(hosting_orders(), (TOPIC_ID, 0))
    assert told == messages.ReplicaLogInfo(
        topic_id=TOPIC_ID,
        partition=0,
        error=ErrorCode.NONE,
        last_written_leader_epoch=LeaderEpoch(0),
        current_leader_epoch=LeaderEpoch(7),
        log_end_offset=Offset(5),
        high_watermark=Offset(3),
    )


def test_what_is_not_there_and_what_is_too_much_is_refused_in_its_place() -> None:
    unknown = TopicId("unknown")
    told = asked(hosting_orders(), (unknown, 0), (TOPIC_ID, 1), *[(TOPIC_ID, 0)] * SERVED_MAX)
    assert [info.error for info in told[:3]] == [
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
    ]
    assert [info.error for info in told[SERVED_MAX - 1 :]] == [
        ErrorCode.NONE,
        ErrorCode.REQUEST_LIMIT_REACHED,
        ErrorCode.REQUEST_LIMIT_REACHED,
    ]
