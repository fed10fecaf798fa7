"""Finds the acknowledged batches, with the broker that acknowledged each, and the epoch."""

from collections.abc import Hashable
from functools import partial

import numpy as np

from laststand.emulator.core import events
from laststand.emulator.core.history import ForeignProcess, OperationType
from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.core.types import Acks
from laststand.emulator.verification.facts.batches import LAST_INCARNATION, AckedBatch
from laststand.emulator.verification.facts.partition_evidence import PartitionEvidence
from laststand.emulator.verification.tables.client_history import SentBatch
from laststand.emulator.verification.tables.columns import NONE, Mask, Table
from laststand.emulator.verification.tables.integers import Ints
from laststand.emulator.verification.tables.matching import keys_of


def acked_batches(facts: PartitionEvidence) -> Table[AckedBatch]:
    """Returns every acknowledged batch with an offset, except those of deleted topics.

    For a Kafka client, a broker records that it wrote the answer to the client's socket. An answer that a fault may
    have dropped on its way to the client does not count as an acknowledgement.

    Each batch has two epochs. ``leader_epoch`` is the epoch in which the acknowledging broker appended the batch, by
    its own log. ``acked_epoch`` is the epoch in which that broker acknowledged it, by the broker's recorded answer. It
    is later where the producer retried; leaders elected in between need not have the batch. Without a recorded answer
    the acknowledging epoch is unknown: the client's leader epoch may have been over, and leaders elected since then
    need not have the batch.

    For leaders that do not record their appends, the append epoch is taken from a copy in a final log, or from the
    client; neither is later than the true epoch. With acks=all the acknowledging epoch is then the last one in which
    that broker became leader with the batch in its log: it may have appended the batch in an epoch that had ended
    without its knowledge, and it answers only once the batch is replicated.

    If client and leader name different topic ids, the id of the topic created later counts: the client may still
    believe in a deleted topic while the leader answers for its successor, and the other way round (S41).
    """
    sent = facts.sent.only(facts.sent.has("type", OperationType.OK) & (facts.sent["base_offset"] != NONE))
    sent = sent.only(~_may_be_unseen(facts, sent))
    topics, answered_epochs, incarnations = _answered_by_leaders(facts, sent)
    base_offsets, counts = sent["base_offset"], sent["record_count"]
    appended = _appended_epochs(facts, topics, sent)
    if facts.cluster.is_seen_from_outside:
        copied = _copied_epochs(facts, topics, sent)
        appended = np.maximum(np.maximum(appended, sent["leader_epoch"]), copied)
        may_be_later = (copied != NONE) & (sent["acks"] == Acks.ALL)
        answered_epochs = np.where(
            may_be_later, _last_terms(facts, topics, sent, after_epochs=appended), answered_epochs
        )
    producers: dict[Hashable, int] = {}
    operations: dict[Hashable, int] = {}
    columns = {
        "topic_id": topics,
        "base_offset": base_offsets,
        "last_offset": base_offsets + counts - 1,
        "crc": sent["crc"],
        "record_count": counts,
        "acks": sent["acks"],
        "process": sent.numbers("process", producers),
        "operation_id": sent.numbers("operation_id", operations),
        "node": sent["node"],
        "leader_epoch": appended,
        "acked_epoch": np.maximum(answered_epochs, appended),
        "acked_incarnation": np.where(answered_epochs < appended, LAST_INCARNATION, incarnations),
    }
    words = {"topic_id": facts.topic_numbers, "process": producers, "operation_id": operations}
    acked = Table.built(AckedBatch, columns, words)
    if not all(PROMISES[check_id].leaves_out(Exemption.DELETED_TOPICS) for check_id in ("D1", "D4", "C2", "C4")):
        return acked
    deleted = [facts.topic_number(topic_id) for topic_id in facts.cluster.deleted_topics]
    return acked.only(~np.isin(topics, np.array(deleted, np.int64)))


def _may_be_unseen(facts: PartitionEvidence, sent: Table[SentBatch]) -> Mask:
    """Returns, for each acknowledgement, whether a fault may have dropped it on its way to the client."""
    are_unseen = np.zeros(len(sent), bool)
    if not facts.cluster.silences:
        return are_unseen
    names = dict[Hashable, int]()
    processes, ended_ns = sent.numbers("process", names), sent["ended_ns"]
    for name, number in names.items():
        process = ForeignProcess.parse(str(name))
        if process is None:
            continue
        for silence in facts.cluster.silences:
            if (silence.source, silence.target) == (process.link, process.node):
                is_during = (ended_ns >= silence.begun_ns) & (ended_ns <= silence.ended_ns)
                are_unseen |= (processes == number) & is_during
    return are_unseen


def _answered_by_leaders(facts: PartitionEvidence, sent: Table[SentBatch]) -> tuple[Ints, Ints, Ints]:
    """Returns, by batch, its topic, and leader epoch and incarnation of the last answer that acknowledged it.

    The topic is the one that responses name, or else the one that the client named.
    """
    topics, epochs = facts.topics(sent), np.full(len(sent), NONE)
    incarnations = np.full(len(sent), LAST_INCARNATION)
    answered, causes = facts.answered, dict[Hashable, int]()
    own, answers = keys_of(
        [sent["node"], sent["base_offset"], sent.numbers("operation_id", causes)],
        [answered["node"], answered["base_offset"], answered.numbers("cause_id", causes)],
    )
    order = np.argsort(answers, kind="stable")
    begin, end = (np.searchsorted(answers, own, side, sorter=order) for side in ("left", "right"))
    place = np.append(order, 0)[begin]
    is_plain = (end - begin == 1) & (np.append(facts.topics(answered), -1)[place] == topics)
    named_epochs = np.append(answered["leader_epoch"], NONE)[place]
    epochs = np.where(is_plain & (named_epochs != NONE), named_epochs, epochs)
    incarnations = np.where(
        is_plain & (named_epochs != NONE), np.append(answered["incarnation"], 0)[place], incarnations
    )
    last = facts.last_topic_id
    rest = np.flatnonzero(~is_plain & ((end > begin) | sent.has("topic_id", None)))
    for number, batch in zip(rest.tolist(), sent.rows(rest), strict=True):
        found = list(answered.rows(order[begin[number] : end[number]]))
        named = [*(answer.event.topic_id for answer in found), *([] if batch.topic_id is None else [batch.topic_id])]
        topic_id = max(named, key=partial(_created, facts), default=last)
        of_topic = [
            (answer.event.leader_epoch, answer.incarnation)
            for answer in found
            if answer.event.topic_id == topic_id and answer.event.leader_epoch is not None
        ]
        topics[number] = facts.topic_number(topic_id)
        epochs[number], incarnations[number] = max(of_topic, default=(epochs[number], incarnations[number]))
    return topics, epochs, incarnations


def _appended_epochs(facts: PartitionEvidence, topics: Ints, sent: Table[SentBatch]) -> Ints:
    """Returns by batch the last epoch in which the acknowledging broker appended it; ``NONE`` if it did not."""
    batches = facts.events.rows(events.BatchAppended)
    if not len(batches) or not len(sent):
        return np.full(len(sent), NONE)
    own, appended = keys_of(
        [topics, sent["node"], sent["base_offset"], sent["crc"]],
        [facts.topics(batches), batches["node"], batches["base_offset"], batches["crc"]],
    )
    return _last_epochs(own, appended, batches["leader_epoch"])


def _copied_epochs(facts: PartitionEvidence, topics: Ints, sent: Table[SentBatch]) -> Ints:
    """Returns, by batch, the last epoch of a copy in a final log; ``NONE`` if no log has one."""
    final = facts.final_batches
    if not len(final) or not len(sent):
        return np.full(len(sent), NONE)
    own, copied = keys_of(
        [topics, sent["base_offset"], sent["crc"]], [facts.topics(final), final["base_offset"], final["crc"]]
    )
    return _last_epochs(own, copied, final["leader_epoch"])


def _last_terms(facts: PartitionEvidence, topics: Ints, sent: Table[SentBatch], *, after_epochs: Ints) -> Ints:
    """Returns by batch the last epoch that the acknowledging broker began to lead with the batch in its log."""
    epochs, last_offsets = after_epochs.copy(), sent["base_offset"] + sent["record_count"] - 1
    for topic_id, terms in facts.terms.items():
        is_of_topic = topics == facts.topic_number(topic_id)
        for term in terms:
            leads_again = (sent["node"] == term.node) & (last_offsets < term.log_end_offset)
            epochs[is_of_topic & leads_again & (epochs < term.leader_epoch)] = term.leader_epoch
    return epochs


def _last_epochs(own: Ints, held: Ints, leader_epochs: Ints) -> Ints:
    order = np.lexsort((leader_epochs, held))
    places = order[np.maximum(np.searchsorted(held, own, "right", sorter=order) - 1, 0)]
    return np.where(held[places] == own, leader_epochs[places], NONE)


def _created(facts: PartitionEvidence, topic_id: str) -> int:
    """Returns the position of a topic among all topics of this name, in the order of their creation; -1 if unknown."""
    return list(facts.states).index(topic_id) if topic_id in facts.states else -1
