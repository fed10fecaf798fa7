"""Finds orders that a node received although neither the harness nor a broker recorded that it gave them.

Each order is recorded twice: by its giver before it is given, and by the node that receives it before it is obeyed. The
giver is the harness, or the broker that relays an order of a Kafka client. A given order may be lost on the way, but a
node must not receive an order more often than it was given.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from laststand.emulator.core import events
from laststand.emulator.verification.doubts.doubt import Doubt
from laststand.emulator.verification.facts.cluster import ClusterFacts

_SHOWN_CHARACTERS: Final = 200


def unknown_orders(cluster: ClusterFacts) -> Iterator[Doubt]:
    """Yields a doubt for each order that was received more often than it was given; equal orders share a doubt."""
    on_record: list[events.OrderGiven | events.OrderRelayed] = [
        *(collected.event for collected in cluster.events.of(events.OrderGiven)),
        *(collected.event for collected in cluster.events.of(events.OrderRelayed)),
    ]
    given = Counter((int(order.given_to), order.api, order.order) for order in on_record)
    received = Counter(
        (collected.node, collected.event.api, collected.event.order)
        for collected in cluster.events.of(events.OrderReceived)
    )
    givers = {
        (collected.node, collected.event.api, collected.event.order): collected.event.giver
        for collected in cluster.events.of(events.OrderReceived)
    }
    for node, api, order in sorted(received - given):
        shown = order if len(order) <= _SHOWN_CHARACTERS else f"{order[:_SHOWN_CHARACTERS]}..."
        giver = givers[node, api, order]
        sentence = f"node {node} got an order that the harness did not give, from {giver}: {api} {shown}"
        yield Doubt(about=None, sentence=sentence, node=node)
