"""D14 RealTime: a batch that is sent after an acknowledgement gets an offset above the acknowledged one.

A deposed leader may still give a batch with acks=1 an offset that its successor has used: that is exempt.
"""

from collections.abc import Iterator

import numpy as np

from laststand.emulator.core.history import OperationType
from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.verification.facts.partition import ACKS_ALL, PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.tables.client_history import SentBatch
from laststand.emulator.verification.tables.columns import NONE, Table
from laststand.emulator.verification.tables.matching import groups_of


@partition_check(
    "D14",
    "RealTime",
    source="Linearizability (Herlihy and Wing 1990): real-time order",
    needs={Evidence.HISTORY},
    premises={Premise.SENT_AFTER_ACK},
    is_of_clients=True,
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    sent = facts.sent
    exempts = PROMISES["D14"].leaves_out(Exemption.DELETED_TOPICS)
    # A client with old metadata may give a batch of the new topic the id of the deleted one.
    deleted = [facts.topic_number(topic_id) for topic_id in facts.cluster.deleted_topics if exempts]
    is_of_deleted = np.isin(facts.topics(sent), np.array(deleted, np.int64))
    is_acked = sent.has("type", OperationType.OK) & (sent["base_offset"] != NONE)
    if not PROMISES["D14"].leaves_out(Exemption.ACKS_1):
        is_acked &= sent["acks"] == ACKS_ALL
    acked = sent.only(is_acked & ~is_of_deleted)
    unnamed = acked.has("topic_id", None) | acked.has("topic_id", "") | acked.has("topic_id", facts.topic)
    topics = np.where(unnamed, facts.topic_number(facts.topic), facts.topics(acked))
    for places in groups_of(acked["history"], topics):
        yield from _sent_too_low(facts, acked.only(places))


def _sent_too_low(facts: PartitionFacts, acked: Table[SentBatch]) -> Iterator[Finding]:
    """Finds batches of one history that were sent after a higher offset had been acknowledged."""
    begun = np.flatnonzero(acked["invoked"] != NONE)
    places = np.concatenate([np.arange(len(acked)), begun])
    positions = np.concatenate([acked["completed"], acked["invoked"][begun]])
    order = np.argsort(positions, kind="stable")
    places, is_ack = places[order], positions[order] == acked["completed"][places[order]]
    offsets, counts = acked["base_offset"][places], acked["record_count"][places]
    is_of_all = acked["acks"][places] == ACKS_ALL
    is_found = np.zeros(len(places), np.bool_)
    for counted, exemption in ((is_of_all, None), (np.ones_like(is_of_all), Exemption.ACKS_1)):
        highest = np.maximum.accumulate(np.where(is_ack & counted, offsets + counts - 1, -1))
        is_wrong = ~is_ack & counted & (offsets <= highest) & ~is_found
        is_found |= is_wrong
        for sent, before in zip(acked.rows(places[is_wrong]), highest[is_wrong].tolist(), strict=True):
            yield Finding(
                sent.base_offset or 0,
                f"{facts} offset {sent.base_offset} was given to a batch of {sent.process} that was sent after offset "
                f"{before} had been acknowledged{' with acks=all' if exemption is None else ''}",
                exempted_by=exemption,
            )
