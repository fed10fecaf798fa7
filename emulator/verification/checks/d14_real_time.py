"""D14 RealTime: what is sent after an acknowledgement lies after what was acknowledged.

Both with acks=all: a deposed leader may still give a batch with acks=1 an offset that its successor gave away.
"""

from collections.abc import Iterator

from emulator.core.history import OperationType
from emulator.verification.check import Evidence, Finding, PartitionCheck, Premise
from emulator.verification.client_history import SentBatch
from emulator.verification.partition_facts import ACKS_ALL, PartitionFacts


def _find(facts: PartitionFacts) -> Iterator[Finding]:
    histories: dict[tuple[str, str], list[tuple[int, SentBatch]]] = {}
    for sent in facts.sent:
        # A client that is behind may give a batch of the new topic the id of the deleted one of that name.
        if sent.type is not OperationType.OK or sent.acks != ACKS_ALL or sent.topic_id in facts.cluster.deleted_topics:
            continue
        places = histories.setdefault((sent.history, sent.topic_id or sent.topic), [])
        places.append((sent.completed, sent))
        if sent.invoked is not None:
            places.append((sent.invoked, sent))
    for places in histories.values():
        highest = -1
        for place, sent in sorted(places, key=lambda placed: placed[0]):
            if sent.base_offset is None:
                continue
            if place == sent.completed:
                highest = max(highest, sent.base_offset)
            elif sent.base_offset <= highest:
                yield Finding(
                    sent.base_offset,
                    f"{facts} offset {sent.base_offset} was given to a batch of {sent.process} that was sent after "
                    f"offset {highest} had been acknowledged with acks=all",
                )


CHECK = PartitionCheck(
    check_id="D14",
    name="RealTime",
    needs=frozenset({Evidence.HISTORY}),
    premises=frozenset({Premise.SENT_AFTER_ACK}),
    find=_find,
)
