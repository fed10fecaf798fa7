"""D16 VisibleBelowHW: a consumer receives only records below the high watermark of the broker that serves it."""

from collections.abc import Iterable, Iterator

from laststand.emulator.core import events
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.tables.client_history import ReceivedBatch
from laststand.emulator.verification.tables.columns import NONE
from laststand.emulator.verification.tables.matching import groups_of

_BEFORE_ALL = -1
"""Epoch of a high watermark that a log was opened with."""


_Marks = dict[tuple[int, int], dict[int, int]]
"""The highest high watermark by node and topic, and by leader epoch."""


@partition_check(
    "D16",
    "VisibleBelowHW",
    source="Kafka documentation, Replication; KIP-392 for followers that serve",
    needs={Evidence.EVENTS},
    premises={Premise.OWN_WORD, Premise.CONSUMED_BY_EPOCH},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    served = facts.received.only(facts.received["served_epoch"] != NONE)
    marks = _high_watermarks(facts) if len(served) else {}
    of_topic = facts.topics(served)
    for places in groups_of(served["node"], served["served_epoch"], of_topic):
        first = places[0]
        node, epoch, topic = int(served["node"][first]), int(served["served_epoch"][first]), int(of_topic[first])
        reached = _reached(marks, node, epoch, topic)
        early = list(served.rows(places[served["last_offset"][places] >= reached]))
        if (node, topic) not in marks:
            early = [batch for batch in early if batch.last_offset >= _of_any_topic(marks, node, epoch)]
        for process, base_offset in {
            (batch.process, batch.base_offset) for batch in _in_the_topic(facts, topic, early)
        }:
            yield Finding(
                base_offset,
                f"{facts} offset {base_offset}: broker {node} gave it to {process} in epoch {epoch} and never had a "
                f"high watermark above {reached}",
            )


def _in_the_topic(facts: PartitionFacts, topic: int, given: Iterable[ReceivedBatch]) -> Iterator[ReceivedBatch]:
    """Yields the batches but for those that the broker appended only in another topic of the name.

    A client may still use the id of a topic that was deleted.
    """
    batches = facts.events.rows(events.BatchAppended)
    topics = facts.topics(batches)
    for batch in given:
        is_it = (batches["node"] == batch.node) & (batches["last_offset"] == batch.last_offset)
        is_it &= batches["crc"] == batch.crc
        if not is_it.any() or (topics[is_it] == topic).any():
            yield batch


def _reached(marks: _Marks, node: int, epoch: int, topic: int) -> int:
    return max((mark for of, mark in marks.get((node, topic), {}).items() if of <= epoch), default=0)


def _of_any_topic(marks: _Marks, node: int, epoch: int) -> int:
    return max((_reached(marks, node, epoch, topic) for of, topic in marks if of == node), default=0)


def _high_watermarks(facts: PartitionFacts) -> _Marks:
    found: _Marks = {}

    def note(node: int, topic: int, leader_epoch: int, high_watermark: int) -> None:
        epochs = found.setdefault((node, topic), {})
        epochs[leader_epoch] = max(epochs.get(leader_epoch, 0), high_watermark)

    for moves in (
        facts.events.rows(events.HighWatermarkAdvanced),
        facts.events.rows(events.FollowerHighWatermarkUpdated),
    ):
        nodes, epochs, topics = moves["node"], moves["leader_epoch"], facts.topics(moves)
        for places in groups_of(nodes, epochs, topics):
            first = places[0]
            note(int(nodes[first]), int(topics[first]), int(epochs[first]), int(moves["new"][places].max()))
    for led in facts.events.of(events.BecameLeader):
        note(led.node, facts.topic_number(led.event.topic_id), led.event.leader_epoch, led.event.high_watermark)
    for opened in facts.events.of(events.LogOpened):
        note(opened.node, facts.topic_number(opened.event.topic_id), _BEFORE_ALL, opened.event.high_watermark)
    return found
