"""KIP-73: replicas that are throttled, as leaders and as followers see them."""

import msgspec
import pytest

from laststand.emulator.core import records
from laststand.emulator.core.types import ConfigResource, MetadataOffset, Offset
from tests.unit.core.broker.hosting import FIRST, OWN, SECOND, Hosting, batch
from tests.unit.core.broker.replicas.test_delayed_fetch import BATCH_BYTES, Waiting, sizes
from tests.unit.core.broker.replicas.test_fetcher import requests_of
from tests.unit.core.broker.replicas.test_follower import Following, sent

RATE = BATCH_BYTES // 2
LEADER, FOLLOWER = "leader.replication.throttled", "follower.replication.throttled"


def configure(hosting: Hosting, name: str, value: str, resource: ConfigResource, resource_name: str) -> None:
    record = records.ConfigRecord(resource=resource, resource_name=resource_name, name=name, value=value)
    hosting.image.replay(record, offset=MetadataOffset(hosting.image.next_offset))


def throttle(hosting: Hosting, side: str, replicas: str, *, broker: str = "0") -> None:
    """Sets a rate for one broker and throttled replicas for the topic."""
    configure(hosting, f"{side}.rate", str(RATE), ConfigResource.BROKER, broker)
    field = f"{side}.replicas".replace(".", "_")
    for partition in hosting.hosted:
        partition.topic_properties = msgspec.structs.replace(partition.topic_properties, **{field: replicas})


def leading(replicas: str = "*", *, isr: tuple[int, ...] = (OWN, SECOND), broker: str = "0") -> Waiting:
    waiting = Waiting()
    hosting = waiting.hosting
    hosting.lead(*(each for each in (OWN, FIRST, SECOND) if each in isr), leader_epoch=2, partition_epoch=2)
    throttle(hosting, LEADER, replicas, broker=broker)
    waiting.handler.quota.reconfigure(hosting.image)
    waiting.append()
    waiting.append()
    return waiting


def test_a_follower_out_of_sync_gets_nothing_more_above_the_rate() -> None:
    waiting = leading()
    name = waiting.hosting.partition.name
    assert sizes(waiting.ask(name, max_bytes=BATCH_BYTES)) == [BATCH_BYTES]
    assert waiting.ask(name, offset=1) == {}
    assert waiting.grow() == {}
    waiting.hosting.now_ms += 500
    turn = waiting.hosting.turn()
    waiting.handler.handle_timer(turn)
    assert not waiting.handler
    waiting.hosting.now_ms += 1600
    assert sizes(waiting.ask(name, offset=1)) == [2 * BATCH_BYTES]


@pytest.mark.parametrize("case", ["in sync", "a consumer", "another partition", "another broker", "another's rate"])
def test_others_are_not_throttled(case: str) -> None:
    replicas = {"another partition": "1:0", "another broker": "0:1,0:2"}.get(case, "0:0")
    isr = (OWN, FIRST, SECOND) if case == "in sync" else (OWN, SECOND)
    waiting = leading(replicas, isr=isr, broker="1" if case == "another's rate" else "0")
    name = waiting.hosting.partition.name
    waiting.hosting.partition.log.high_watermark = Offset(2)
    replica = None if case == "a consumer" else FIRST
    waiting.ask(name, replica=FIRST, max_bytes=BATCH_BYTES)
    assert sizes(waiting.ask(name, replica=replica, offset=1)) == [BATCH_BYTES]


def test_a_follower_above_its_rate_asks_later() -> None:
    following = Following()
    hosting = following.hosting
    throttle(hosting, FOLLOWER, "0:0")
    following.pool.quota.reconfigure(hosting.image)
    request = sent(following.follow())
    assert requests_of(following.hear(request, batches=(batch(5, 0),), high_watermark=Offset(9))) == []
    assert requests_of(following.wait(999)) == []
    request = sent(following.wait(1001))
    assert request.partitions[0].fetch_offset == 6


def test_a_follower_that_has_caught_up_is_not_throttled() -> None:
    following = Following()
    throttle(following.hosting, FOLLOWER, "*")
    following.pool.quota.reconfigure(following.hosting.image)
    request = sent(following.follow())
    assert sent(following.hear(request, batches=(batch(5, 0),), high_watermark=Offset(6)))
