"""The queue of ISR changes, through a whole broker: what a controller that does not answer must not set off.

And what an answer must not set off that is ahead of the metadata it was given by.
"""

import msgspec
import pytest

from laststand.emulator.core import effects, inputs, messages, records
from laststand.emulator.core.broker.kraft.alter_partition_sender import AlterPartitionSender
from laststand.emulator.core.broker.kraft.controller_channel import ControllerChannel
from laststand.emulator.core.broker.replicas.in_flight_requests import InFlightRequests
from laststand.emulator.core.broker.replicas.isr import IsrProposal, PendingShrink
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.switches import Switches, era_switches
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    ConfigResource,
    LeaderEpoch,
    MetadataOffset,
    PartitionEpoch,
    RequestFailure,
    TopicId,
)
from tests.unit.core.broker.hosting import FIRST, NAME, OWN, TOPIC_ID, Hosting
from tests.unit.core.broker.kraft.test_broker_steps import CAUSE, EVERY_RULE_ON, Life, fetch, produce

RAISED = records.ConfigRecord(
    resource=ConfigResource.TOPIC, resource_name=NAME.topic, name="min.insync.replicas", value="2"
)
"""Min ISR is 2 now, and was 1."""
BEFORE_KIP_903 = msgspec.structs.replace(EVERY_RULE_ON, ap_broker_epoch_check=False)
SHRUNK = records.PartitionChangeRecord(topic_id=TOPIC_ID, partition=NAME.partition, isr=(OWN,), elr=(FIRST,))


def take_alter_partitions(life: Life) -> list[effects.SendRequest]:
    taken = [sent for sent in life.in_flight if isinstance(sent.request, messages.AlterPartitionRequest)]
    life.in_flight = [sent for sent in life.in_flight if sent not in taken]
    return taken


def shrunk(switches: Switches = EVERY_RULE_ON, *more: records.Record) -> tuple[Life, effects.SendRequest]:
    """A leader whose only follower never fetched, and the proposal to drop it; with more metadata before that."""
    life = Life(switches)
    life.serve()
    if more:
        life.metadata(*more)
    life.ask(produce(acks=1))
    life.advance(60_000)
    (sent,) = take_alter_partitions(life)
    return life, sent


def test_after_a_failure_nothing_is_sent_before_the_backoff_is_over() -> None:
    life, sent = shrunk()
    life.step(
        inputs.RequestFailed(cause_id=CAUSE, correlation_id=sent.correlation_id, failure=RequestFailure.DISCONNECTED)
    )
    life.ask(produce(acks=1))
    life.advance(49)
    assert take_alter_partitions(life) == []
    life.advance(1)
    (again,) = take_alter_partitions(life)
    assert again.request == sent.request


def test_after_an_error_of_the_whole_request_nothing_is_sent_before_the_backoff_is_over() -> None:
    life, sent = shrunk()
    refusal = messages.AlterPartitionResponse(error=ErrorCode.STALE_BROKER_EPOCH)
    life.step(inputs.ResponseReceived(cause_id=CAUSE, correlation_id=sent.correlation_id, response=refusal))
    life.ask(fetch(0))
    assert take_alter_partitions(life) == []
    life.advance(50)
    assert len(take_alter_partitions(life)) == 1


def test_a_change_that_the_answer_does_not_name_is_sent_again_at_once() -> None:
    life, sent = shrunk()
    life.answer(sent, messages.AlterPartitionResponse(error=ErrorCode.NONE))
    (again,) = take_alter_partitions(life)
    assert again.request == sent.request


def proposal(partition: int, *, topic_id: TopicId | None = TOPIC_ID) -> IsrProposal:
    return IsrProposal(
        partition=NAME._replace(partition=partition),
        topic_id=topic_id,
        leader_epoch=LeaderEpoch(0),
        partition_epoch=PartitionEpoch(0),
        members=(),
        state=PendingShrink((OWN, FIRST), frozenset({FIRST})),
    )


def at(now_ms: int) -> Turn:
    return Turn(now_ms=now_ms, cause_id=CAUSE)


def accepted(life: Life, *, after: int, partition: int = 0) -> messages.AlterPartitionResponse:
    """The ISR is the leader now, by metadata that ends so many records after what the leader has."""
    result = messages.AlterPartitionResult(
        topic=NAME.topic,
        topic_id=TOPIC_ID,
        partition=partition,
        error=ErrorCode.NONE,
        leader=OWN,
        leader_epoch=life.broker.image.partitions[NAME].leader_epoch,
        isr=(OWN,),
        partition_epoch=PartitionEpoch(1),
    )
    end_offset = MetadataOffset(life.broker.image.next_offset + after)
    return messages.AlterPartitionResponse(error=ErrorCode.NONE, partitions=(result,), metadata_end_offset=end_offset)


def known(life: Life) -> tuple[tuple[BrokerId, ...], tuple[BrokerId, ...], int]:
    """The ISR that is committed, the one that bounds the high watermark, and that."""
    partition = life.broker.partition(NAME)
    assert partition is not None
    return partition.committed_isr, partition.maximal_isr, partition.log.high_watermark


def test_an_accepted_isr_is_taken_with_the_metadata_that_it_was_accepted_by() -> None:
    life, sent = shrunk()
    life.answer(sent, accepted(life, after=2))
    assert known(life) == ((OWN, FIRST), (OWN, FIRST), 0)
    life.metadata(RAISED)
    assert known(life) == ((OWN, FIRST), (OWN, FIRST), 0)
    life.metadata(SHRUNK)
    assert known(life) == ((OWN,), (OWN,), 0), "one member may not commit any more"


def test_without_the_rule_a_leader_commits_alone_by_a_min_isr_that_was_replaced() -> None:
    life, sent = shrunk(era_switches("kafka-4.2"))
    life.answer(sent, accepted(life, after=2))
    assert known(life) == ((OWN,), (OWN,), 1)


def test_an_accepted_isr_is_taken_at_once_where_the_metadata_was_quicker() -> None:
    life, sent = shrunk()
    life.answer(sent, accepted(life, after=0))
    assert known(life) == ((OWN,), (OWN,), 1)


def test_metadata_that_arrives_together_is_taken_together() -> None:
    life, _ = shrunk()
    life.metadata(RAISED, SHRUNK)
    assert known(life) == ((OWN,), (OWN,), 0), "the new ISR was judged by the min ISR before it"


def test_a_refusal_does_not_wait() -> None:
    life, sent = shrunk()
    (result,) = accepted(life, after=0).partitions
    refused = messages.AlterPartitionResult(
        topic=result.topic, topic_id=result.topic_id, partition=0, error=ErrorCode.INELIGIBLE_REPLICA
    )
    ahead = MetadataOffset(life.broker.image.next_offset + 5)
    life.answer(
        sent, messages.AlterPartitionResponse(error=ErrorCode.NONE, partitions=(refused,), metadata_end_offset=ahead)
    )
    life.advance(15_000)
    assert len(take_alter_partitions(life)) == 1, "the change was not proposed again"


def test_an_answer_that_waits_holds_up_no_other_partition() -> None:
    other = records.PartitionRecord(topic_id=TOPIC_ID, partition=1, replicas=(OWN, FIRST), isr=(OWN, FIRST), leader=OWN)
    life, sent = shrunk(EVERY_RULE_ON, other)
    assert isinstance(sent.request, messages.AlterPartitionRequest)
    assert [data.partition for data in sent.request.partitions] == [0, 1]
    life.answer(sent, accepted(life, after=2))
    (again,) = take_alter_partitions(life)
    assert isinstance(again.request, messages.AlterPartitionRequest)
    assert [data.partition for data in again.request.partitions] == [1]


def test_an_answer_that_waited_is_of_no_effect_once_another_leads() -> None:
    life, sent = shrunk()
    life.answer(sent, accepted(life, after=2))
    life.metadata(records.PartitionChangeRecord(topic_id=TOPIC_ID, partition=NAME.partition, leader=FIRST))
    life.metadata(
        records.PartitionChangeRecord(topic_id=TOPIC_ID, partition=NAME.partition, leader=OWN, isr=(OWN, FIRST))
    )
    assert known(life) == ((OWN, FIRST), (OWN, FIRST), 0)


def test_a_change_that_comes_up_when_the_backoff_ends_is_sent_with_the_one_that_waited() -> None:
    properties = NodeProperties(alter_partition_retry_backoff_ms=70)
    config = msgspec.structs.replace(Hosting().config, properties=properties)
    sender = AlterPartitionSender(config, ControllerChannel(config, InFlightRequests()))
    assert sender.submit(proposal(0)) is ErrorCode.NONE
    sender.send_queued(at(0), BrokerEpoch(5))
    sender.handle_failure(at(0))
    assert sender.submit(proposal(1)) is ErrorCode.NONE
    early, turn = at(69), at(70)
    sender.send_queued(early, BrokerEpoch(5))
    assert early.effects() == []
    sender.send_queued(turn, BrokerEpoch(5))
    (sent,) = [effect for effect in turn.effects() if isinstance(effect, effects.SendRequest)]
    assert isinstance(sent.request, messages.AlterPartitionRequest)
    assert [data.partition for data in sent.request.partitions] == [0, 1]


def test_the_timer_sends_again_what_waited_when_the_backoff_ends() -> None:
    sender = AlterPartitionSender(Hosting().config, ControllerChannel(Hosting().config, InFlightRequests()))
    sender.submit(proposal(0))
    sender.send_queued(at(0), BrokerEpoch(5))
    sender.handle_failure(at(0))
    early, turn = at(49), at(50)
    sender.handle_timer(early, BrokerEpoch(6))
    assert (early.effects(), sender.next_deadline_ms()) == ([], 50)
    sender.handle_timer(turn, BrokerEpoch(6))
    (sent,) = [effect for effect in turn.effects() if isinstance(effect, effects.SendRequest)]
    assert isinstance(sent.request, messages.AlterPartitionRequest)
    assert (sent.request.broker_epoch, len(sent.request.partitions)) == (6, 1)
    assert sender.next_deadline_ms() is None


def test_an_answer_settles_only_what_was_asked() -> None:
    life, sent = shrunk()
    (result,) = accepted(life, after=0).partitions
    others = tuple(msgspec.structs.replace(result, partition=number) for number in (7, 0, 0, 8))
    response = messages.AlterPartitionResponse(
        error=ErrorCode.NONE, partitions=others, metadata_end_offset=MetadataOffset(0)
    )
    life.answer(sent, response)
    assert known(life) == ((OWN,), (OWN,), 1)


def test_answers_wait_side_by_side() -> None:
    other = records.PartitionRecord(topic_id=TOPIC_ID, partition=1, replicas=(OWN, FIRST), isr=(OWN, FIRST), leader=OWN)
    life, sent = shrunk(EVERY_RULE_ON, other)
    life.answer(sent, accepted(life, after=2))
    (again,) = take_alter_partitions(life)
    life.answer(again, accepted(life, after=1, partition=1))
    life.metadata(RAISED, RAISED)
    isrs = [
        partition.committed_isr
        for name in (0, 1)
        if (partition := life.broker.partition(NAME._replace(partition=name)))
    ]
    assert isrs == [(OWN,), (OWN,)]


def test_a_request_names_topics_by_id_if_it_has_the_ids_of_all() -> None:
    sender = AlterPartitionSender(Hosting().config, ControllerChannel(Hosting().config, InFlightRequests()))
    sender.submit(proposal(0))
    sender.submit(proposal(1, topic_id=None))
    turn = at(0)
    sender.send_queued(turn, BrokerEpoch(5))
    (sent,) = [effect for effect in turn.effects() if isinstance(effect, effects.SendRequest)]
    assert isinstance(sent.request, messages.AlterPartitionRequest)
    assert sent.request.api_version == 1
    assert [data.topic_id for data in sent.request.partitions] == [None, None]


@pytest.mark.parametrize(("rules", "version"), [(EVERY_RULE_ON, 3), (BEFORE_KIP_903, 2)])
def test_a_leader_names_broker_epochs_if_its_release_does(rules: Switches, version: int) -> None:
    _, sent = shrunk(rules)
    assert isinstance(sent.request, messages.AlterPartitionRequest)
    assert sent.request.api_version == version
    (data,) = sent.request.partitions
    assert {member.broker_epoch is None for member in data.new_isr} == {version == 2}
