"""Replicas that the high watermark waits for though they are no members, and that then fall silent (KAFKA-15021, S30).

Nothing that the leader hears moves the high watermark any more: members have everything, and no record follows.
"""

from laststand.emulator.core import inputs, messages, records
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerEpoch, RequestId, TopicId
from tests.unit.core.broker.hosting import FIRST, NAME, OWN, SECOND
from tests.unit.core.broker.kraft.test_broker_steps import CAUSE, Life, error_of, fetch, produce, registered


def waiting_for_a_joiner() -> tuple[Life, RequestId]:
    """Broker 2 had everything but was refused as a member; now only it lacks the last record."""
    life = Life()
    life.serve()
    third = TopicId("id-of-payments")
    life.metadata(
        registered(SECOND, 8),
        records.TopicRecord(name="payments", topic_id=third),
        records.PartitionRecord(
            topic_id=third, partition=0, replicas=(OWN, FIRST, SECOND), isr=(OWN, FIRST), leader=OWN
        ),
    )
    name = NAME._replace(topic="payments")
    life.ask(fetch(0, replica=FIRST, name=name, topic_id=third, max_wait_ms=0))
    life.ask(fetch(0, replica=SECOND, name=name, topic_id=third, max_wait_ms=0))
    (sent,) = [effect for effect in life.in_flight if isinstance(effect.request, messages.AlterPartitionRequest)]
    life.in_flight.remove(sent)
    refused = messages.AlterPartitionResult(
        topic="payments", topic_id=third, partition=0, error=ErrorCode.INELIGIBLE_REPLICA
    )
    response = messages.AlterPartitionResponse(error=ErrorCode.NONE, partitions=(refused,))
    life.step(inputs.ResponseReceived(cause_id=CAUSE, correlation_id=sent.correlation_id, response=response))
    waiting = life.ask(produce(name=name, timeout_ms=120_000))
    life.ask(fetch(1, replica=FIRST, name=name, topic_id=third, max_wait_ms=0))
    assert waiting not in life.answers
    return life, waiting


def test_a_joiner_that_is_fenced_is_not_waited_for() -> None:
    life, waiting = waiting_for_a_joiner()
    life.metadata(records.BrokerRegistrationChangeRecord(broker_id=SECOND, broker_epoch=BrokerEpoch(8), fenced=True))
    assert error_of(life.answers[waiting]) is ErrorCode.NONE


def test_a_joiner_that_lags_is_not_waited_for() -> None:
    life, waiting = waiting_for_a_joiner()
    life.advance(60_000)
    assert error_of(life.answers[waiting]) is ErrorCode.NONE
