"""C4 ResumedReader: a consumer misses no acknowledged record of a topic that was created again under its name.

A consumer keeps its position when the id of its topic changes. If the new topic already reaches that position, no
broker answers OFFSET_OUT_OF_RANGE, and the consumer never fetches the records below. An offset that it seeks is its own
choice (``auto.offset.reset``), so no records count as missed in a topic in which it seeks before it receives a batch.
"""

from collections.abc import Iterator
from typing import NamedTuple

from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.verification.facts.partition import ACKS_ALL, PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.rules.guarantee import Guarantee
from laststand.emulator.verification.rules.sentences import acks_setting, span
from laststand.emulator.verification.tables.late_topic_ids import id_by_name
from laststand.emulator.verification.tables.matching import are_among


class _Resumed(NamedTuple):
    """A consumer that went on in a new topic at the offset that it had reached in the topic before it."""

    process: str
    topic_id: str
    position: int


@partition_check(
    "C4",
    "ResumedReader",
    source="KAFKA-12257, a consumer of a topic that was deleted and created again",
    needs={Evidence.HISTORY, Evidence.TOPIC_IDS},
    premises={Premise.TOPIC_SUCCEEDED},
    is_of_clients=True,
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    exempts = PROMISES["C4"].leaves_out(Exemption.DELETED_RECORDS)
    acks_1 = Exemption.ACKS_1 if PROMISES["C4"].leaves_out(Exemption.ACKS_1) else None
    acked, received = facts.acked, facts.received
    for process, topic_id, position in _resumed(facts):
        is_passed = (acked["base_offset"] < position) & acked.has("topic_id", topic_id)
        own = received.only(received.has("process", process))
        is_given = are_among([acked["base_offset"], acked["crc"]], [own["base_offset"], own["crc"]])
        for batch in acked.rows(is_passed & ~is_given):
            deleted = facts.is_deleted(topic_id, batch.last_offset, crc=batch.crc, leader_epoch=batch.leader_epoch)
            if exempts and deleted:
                continue
            missed = span(batch.base_offset, min(batch.last_offset, position - 1))
            yield Finding(
                batch.base_offset,
                f"{facts} {missed}, acknowledged with {acks_setting(batch.acks)}, never reached {process}, which went "
                f"on at offset {position} when the topic was created again",
                # An administrator accepted it: the protocol does not notify consumers of a new topic.
                guarantee=Guarantee.EXCEEDED,
                exempted_by=None if batch.acks == ACKS_ALL else acks_1,
            )


def _resumed(facts: PartitionFacts) -> list[_Resumed]:
    last_topics: dict[str, str] = {}
    received: set[tuple[str, str]] = set()
    resumed: dict[tuple[str, str], _Resumed] = {}
    for poll in facts.polls:
        topic_id = poll.topic_id
        if poll.error is not None or topic_id is None or topic_id == id_by_name(facts.topic):
            continue
        reading = (poll.process, topic_id)
        if poll.seek:
            if reading not in received:
                resumed.pop(reading, None)
        elif last_topics.get(poll.process, topic_id) != topic_id and reading not in resumed:
            resumed[reading] = _Resumed(poll.process, topic_id, poll.position)
        if poll.crcs:
            received.add(reading)
        last_topics[poll.process] = topic_id
    return list(resumed.values())
