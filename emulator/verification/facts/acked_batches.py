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
    """Returns every batch that a producer was told is in the log, but for those of deleted topics.

    A broker writes down that it handed an answer to the socket of a client of Kafka. An answer that went on its way
    while a fault may have swallowed it is none that the client was told.

    Whoever acknowledged a batch has it in its own log: that copy has the epoch in which it was appended. It may
    have been acknowledged in a later one, when the producer tried again; leaders elected in between need not have
    it. The leader's own answer names that epoch. Without that event it is unknown: the client may have believed in an
    epoch that was over, and leaders elected since then need not have the batch. Of leaders that do not record what they
    append, the epoch in a copy that is left has to do, or the client's: neither is later than the true one. With
    acks=all the true one may be any in which that leader led again with the batch: it may have got it in a term that
    was over without its knowledge, and answers once it is replicated. So the last of them counts.
    Of the topic ids that both name, that of the later topic counts: a client may believe in a topic that was
    deleted while it is answered for its successor, and a leader may answer for one that the client knows to be gone
    (S41).
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
    """Returns which acknowledgements a fault may have swallowed on the way to their client."""
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
    """Returns by batch the topic that its answers name, or else the one the client believed in, and their term.

    That is leader epoch and incarnation of the last answer.
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
    """Returns by batch the last epoch of a copy in a final log; ``NONE`` if no log has one."""
    final = facts.final_batches
    if not len(final) or not len(sent):
        return np.full(len(sent), NONE)
    own, copied = keys_of(
        [topics, sent["base_offset"], sent["crc"]], [facts.topics(final), final["base_offset"], final["crc"]]
    )
    return _last_epochs(own, copied, final["leader_epoch"])


def _last_terms(facts: PartitionEvidence, topics: Ints, sent: Table[SentBatch], *, after_epochs: Ints) -> Ints:
    """Returns by batch the last epoch in which the acknowledging broker began to lead with it."""
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
    """Returns the place of a topic among those of this name, in the order of their creation."""
    return list(facts.states).index(topic_id) if topic_id in facts.states else -1
