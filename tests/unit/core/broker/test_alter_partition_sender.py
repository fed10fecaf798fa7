"""The queue of ISR changes, through a whole broker: what a controller that does not answer must not set off."""

from emulator.core.effects import SendRequest
from emulator.core.errors import ErrorCode
from emulator.core.inputs import RequestFailed, RequestFailure, ResponseReceived
from emulator.core.messages import AlterPartitionRequest, AlterPartitionResponse
from tests.unit.core.broker.test_broker_steps import CAUSE, Life, fetch, produce


def take_alter_partitions(life: Life) -> list[SendRequest]:
    taken = [sent for sent in life.in_flight if isinstance(sent.request, AlterPartitionRequest)]
    life.in_flight = [sent for sent in life.in_flight if sent not in taken]
    return taken


def shrunk() -> tuple[Life, SendRequest]:
    """A leader whose only follower never fetched, and the proposal to drop it."""
    life = Life()
    life.serve()
    life.ask(produce(acks=1))
    life.advance(60_000)
    (sent,) = take_alter_partitions(life)
    return life, sent


def test_after_a_failure_nothing_is_sent_before_the_backoff_is_over() -> None:
    life, sent = shrunk()
    life.step(RequestFailed(cause_id=CAUSE, correlation_id=sent.correlation_id, failure=RequestFailure.DISCONNECTED))
    life.ask(produce(acks=1))
    life.advance(49)
    assert take_alter_partitions(life) == []
    life.advance(1)
    (again,) = take_alter_partitions(life)
    assert again.request == sent.request


def test_after_an_error_of_the_whole_request_nothing_is_sent_before_the_backoff_is_over() -> None:
    life, sent = shrunk()
    refusal = AlterPartitionResponse(error=ErrorCode.STALE_BROKER_EPOCH)
    life.step(ResponseReceived(cause_id=CAUSE, correlation_id=sent.correlation_id, response=refusal))
    life.ask(fetch(0))
    assert take_alter_partitions(life) == []
    life.advance(50)
    assert len(take_alter_partitions(life)) == 1
