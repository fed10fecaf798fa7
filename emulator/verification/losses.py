"""Which acknowledged batches are not where they must be, and how badly.

A batch acknowledged to its producer must be in the settled leader's final log at its offset, must have been in the log
of every leader elected after it, and must have been read by the consumer that reads everything at the end. Records
below a log start that was raised on purpose, and those of deleted topics, are excused.
"""

from enum import Enum
from typing import Final


class LossClass(Enum):
    """What is left of an acknowledged record."""

    GONE_EVERYWHERE = "gone everywhere"
    """No final log holds it."""

    ONLY_UNELECTABLE = "only on replicas that cannot be elected"
    """A final log holds it, none of a member of ISR or ELR."""

    NOT_ON_LEADER = "not on the leader, though on replicas that may be elected"
    """The logs of leader and candidates disagree."""

    GONE_FOR_A_TIME = "back at the end, though a leader was elected without it"
    """Readers of that leader missed it."""

    UNREAD = "acked but unread"
    """The leader holds it, and the final consumer did not get it."""


LOST_BATCH: Final = f"""
    SELECT * FROM (
        SELECT a.*, s.leader, s.leader_epoch AS settled_epoch, l.leader_epoch AS lacking_epoch, l.node AS lacking_node,
               l.epoch_start_offset AS lacking_end_offset, coalesce(c.holders, array()) AS holders,
               CASE
                   WHEN s.leader IS NULL AND p.run IS NULL THEN NULL
                   WHEN array_contains(c.holders, s.leader) THEN CASE
                       WHEN l.run IS NOT NULL THEN '{LossClass.GONE_FOR_A_TIME.value}'
                       WHEN r.run IS NULL AND f.run IS NOT NULL THEN '{LossClass.UNREAD.value}'
                   END
                   WHEN s.leader IS NULL AND m.run IS NOT NULL THEN NULL
                   WHEN c.holders IS NULL THEN '{LossClass.GONE_EVERYWHERE.value}'
                   WHEN NOT arrays_overlap(c.holders, array_union(p.isr, p.elr)) THEN
                       IF(s.leader IS NULL AND array_contains(c.holders, p.last_known_leader), NULL,
                          '{LossClass.ONLY_UNELECTABLE.value}')
                   WHEN s.leader IS NULL THEN NULL
                   ELSE '{LossClass.NOT_ON_LEADER.value}'
               END AS loss_class
        FROM acked_batch a
        LEFT JOIN partition_state p ON p.run = a.run AND p.topic_id = a.topic_id AND p.partition = a.partition
        LEFT JOIN settled_leader s ON s.run = a.run AND s.topic_id = a.topic_id AND s.partition = a.partition
        LEFT JOIN final_copy c ON c.run = a.run AND c.topic_id = a.topic_id AND c.partition = a.partition
             AND c.base_offset = a.base_offset AND c.crc = a.crc AND c.last_offset = a.last_offset
        LEFT JOIN deleted_below d ON d.run = a.run AND d.topic_id = a.topic_id AND d.partition = a.partition
        LEFT JOIN (SELECT q.run, q.topic_id, q.partition, q.operation_id,
                          min(b.leader_epoch) AS leader_epoch, min_by(b.node, b.leader_epoch) AS node,
                          min_by(b.epoch_start_offset, b.leader_epoch) AS epoch_start_offset
                   FROM acked_batch q
                   JOIN became_leader b ON b.run = q.run AND b.topic_id = q.topic_id AND b.partition = q.partition
                        AND b.leader_epoch > q.acked_epoch AND b.epoch_start_offset <= q.last_offset
                   GROUP BY q.run, q.topic_id, q.partition, q.operation_id) l
             ON l.run = a.run AND l.topic_id = a.topic_id AND l.partition = a.partition
             AND l.operation_id = a.operation_id
        LEFT JOIN (SELECT DISTINCT run, topic, partition, batch.base_offset, batch.crc
                   FROM (SELECT run, topic, partition, explode(batches) AS batch FROM poll_operation
                         WHERE phase = 'final')) r
             ON r.run = a.run AND r.topic = a.topic AND r.partition = a.partition AND r.base_offset = a.base_offset
             AND r.crc = a.crc
        LEFT JOIN (SELECT DISTINCT run, topic, partition FROM final_read_operation WHERE type = 'ok') f
             ON f.run = a.run AND f.topic = a.topic AND f.partition = a.partition
        LEFT JOIN (SELECT DISTINCT p.run, p.topic_id, p.partition
                   FROM (SELECT run, topic_id, partition, explode(replicas) AS replica FROM partition_state) p
                   LEFT JOIN node_directory n ON n.run = p.run AND n.node = p.replica WHERE n.run IS NULL) m
             ON m.run = a.run AND m.topic_id = a.topic_id AND m.partition = a.partition
        WHERE d.log_start_offset IS NULL OR a.last_offset >= d.log_start_offset)
    WHERE loss_class IS NOT NULL
"""
"""One row per acknowledged batch (any acks) that is not where it must be. Where a replica's directory is missing and
there is no settled leader, nothing is called lost: that evidence is incomplete, not bad."""
