"""Checks that faults of single messages took effect: a message of their kind met the fate while they were in force.

The node that was dialled records the message, the harness the fault. Both read the machine's clock, which a fault
of a node's clock does not change.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Final

from laststand.emulator.core import events
from laststand.emulator.core.types import MessageFate
from laststand.emulator.verification.tables.timeline import Timeline

HOLD: Final = "hold"

FATES: Final[Mapping[str, MessageFate]] = {
    HOLD: MessageFate.HELD,
    "lose_messages": MessageFate.LOST,
    "duplicate_messages": MessageFate.DUPLICATED,
    "delay_messages": MessageFate.DELAYED,
}
"""The effect of each message fault on a message."""


def faults_without_message(timeline: Timeline) -> Iterator[events.FaultInjected]:
    """Yields the faults of messages that met no message while they were in force.

    A fault ends at the latest when the next one of the same messages begins.
    """
    touched = [
        (collected.time_ns, collected.event)
        for collected in timeline.events
        if isinstance(collected.event, events.MessageIntercepted)
    ]
    ends_ns: dict[str, float] = {}
    for fault in reversed([fault for fault in timeline.of(events.FaultInjected) if fault.fault in FATES]):
        begun_ns = -math.inf if fault.begun_ns is None else fault.begun_ns
        ended_ns = ends_ns.get(fault.target, math.inf)
        if not any(
            message.channel == fault.target and message.fate is FATES[fault.fault] and begun_ns <= time_ns <= ended_ns
            for time_ns, message in touched
        ):
            yield fault
        ends_ns[fault.target] = math.inf if fault.begun_ns is None else fault.begun_ns
