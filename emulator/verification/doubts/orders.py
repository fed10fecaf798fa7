"""Orders that a node received and the harness did not give, on behalf of the harness or by its leave.

Each order is put on record twice: in the harness's events before it is given, or for a client of Kafka in those of the
broker that it asked, and in the node's before it is obeyed.
An order may have been given and not have come; one that came was given, and as often as it came.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from laststand.emulator.core import events
from laststand.emulator.verification.doubts.doubt import Doubt
from laststand.emulator.verification.facts.cluster import ClusterFacts

_SHOWN_CHARACTERS: Final = 200


def unknown_orders(cluster: ClusterFacts) -> Iterator[Doubt]:
    """Yields a doubt for each order that came from somebody else; of equal ones, one."""
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
