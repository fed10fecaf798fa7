"""Slow links in virtual time: latency, jitter and direction."""

from itertools import pairwise

from laststand.emulator.core.types import NodeId, Way
from laststand.emulator.plan.channels import Channel, Direction, Link
from laststand.emulator.simulator.network.network import LATENCY_MS, Latency, Network

ZERO, ONE = NodeId(0), NodeId(1)
LINK = Link(ZERO, ONE)
THERE, BACK = (Channel(ZERO, ONE, "Fetch", way) for way in (Way.REQUEST, Way.RESPONSE))


def network(direction: Direction) -> Network:
    slow = Network()
    slow.latencies[LINK] = Latency(LINK, 40, jitter_ms=0, direction=direction)
    return slow


def test_only_messages_of_the_direction_take_longer() -> None:
    for direction, there, back in (
        (Direction.BOTH, 40, 40),
        (Direction.REQUESTS, 40, LATENCY_MS),
        (Direction.RESPONSES, LATENCY_MS, 40),
    ):
        slow = network(direction)
        assert (slow.arrival_ms(THERE, now_ms=7), slow.arrival_ms(BACK, now_ms=7)) == (7 + there, 7 + back)


def test_jitter_is_within_its_bounds_the_same_each_time_and_keeps_the_order_of_a_channel() -> None:
    first, second = (Latency(LINK, 40, jitter_ms=15, direction=Direction.BOTH) for _ in range(2))
    arrivals = [first.arrival_ms(THERE, now_ms=now_ms) for now_ms in range(0, 1000, 3)]
    assert arrivals == [second.arrival_ms(THERE, now_ms=now_ms) for now_ms in range(0, 1000, 3)]
    assert all(earlier <= later for earlier, later in pairwise(arrivals))
    alone = Latency(LINK, 40, jitter_ms=15, direction=Direction.BOTH)
    delays = {alone.arrival_ms(THERE, now_ms=now_ms) - now_ms for now_ms in range(0, 100_000, 100)}
    assert (min(delays), max(delays)) == (25, 55)
