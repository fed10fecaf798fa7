"""Which acknowledged batches are not where they must be, and how badly.

A batch acknowledged to its producer must be in the settled leader's final log at its offset, must have been in the log
of every leader elected after it, and must have been read by the consumer that reads everything at the end. Records
below a log start that was raised on purpose, and those of deleted topics, are excused. So is what a replica holds of a
partition that nobody may lead: no leader was elected without it, and whom an administrator elects decides its fate.
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
    SELECT *, lacking.leader_epoch AS lacking_epoch, lacking.node AS lacking_node,
           lacking.log_end_offset AS lacking_end_offset
    FROM (SELECT *, CASE
               WHEN leader IS NULL AND state_run IS NULL THEN NULL
               WHEN array_contains(holders, leader) THEN CASE
                   WHEN lacking IS NOT NULL THEN '{LossClass.GONE_FOR_A_TIME.value}'
                   WHEN is_all_read AND NOT is_read THEN '{LossClass.UNREAD.value}'
               END
               WHEN leader IS NULL AND has_gap THEN NULL
               WHEN size(holders) = 0 THEN '{LossClass.GONE_EVERYWHERE.value}'
               WHEN leader IS NULL AND lacking IS NULL AND size(array_union(isr, elr)) = 0 THEN NULL
               WHEN NOT arrays_overlap(holders, array_union(isr, elr)) THEN
                   IF(leader IS NULL AND array_contains(holders, last_known_leader), NULL,
                      '{LossClass.ONLY_UNELECTABLE.value}')
               WHEN leader IS NULL AND lacking IS NULL THEN NULL
               WHEN leader IS NULL THEN '{LossClass.GONE_FOR_A_TIME.value}'
               ELSE '{LossClass.NOT_ON_LEADER.value}'
           END AS loss_class
    FROM (SELECT a.*, p.run AS state_run, p.isr, p.elr, p.last_known_leader, s.leader, s.leader_epoch AS settled_epoch,
                 array_min(filter(t.terms, x -> x.leader_epoch > a.acked_epoch AND x.log_end_offset <= a.last_offset))
                     AS lacking,
                 coalesce(c.holders, array()) AS holders, r.run IS NOT NULL AS is_read,
                 f.run IS NOT NULL AS is_all_read, m.run IS NOT NULL AS has_gap
          FROM acked_batch a
          LEFT JOIN partition_state p ON p.run = a.run AND p.topic_id = a.topic_id AND p.partition = a.partition
          LEFT JOIN settled_leader s ON s.run = a.run AND s.topic_id = a.topic_id AND s.partition = a.partition
          LEFT JOIN leader_terms t ON t.run = a.run AND t.topic_id = a.topic_id AND t.partition = a.partition
          LEFT JOIN final_copy c ON c.run = a.run AND c.topic_id = a.topic_id AND c.partition = a.partition
               AND c.base_offset = a.base_offset AND c.crc = a.crc AND c.last_offset = a.last_offset
          LEFT JOIN deleted_below d ON d.run = a.run AND d.topic_id = a.topic_id AND d.partition = a.partition
          LEFT JOIN (SELECT DISTINCT run, topic, partition, base_offset, crc FROM received_batch
                     WHERE phase = 'final') r
               ON r.run = a.run AND r.topic = a.topic AND r.partition = a.partition AND r.base_offset = a.base_offset
               AND r.crc = a.crc
          LEFT JOIN (SELECT DISTINCT run, topic, partition FROM final_read_operation WHERE type = 'ok') f
               ON f.run = a.run AND f.topic = a.topic AND f.partition = a.partition
          LEFT JOIN (SELECT DISTINCT p.run, p.topic_id, p.partition
                     FROM (SELECT run, topic_id, partition, explode(replicas) AS replica FROM partition_state) p
                     LEFT ANTI JOIN node_directory n ON n.run = p.run AND n.node = p.replica) m
               ON m.run = a.run AND m.topic_id = a.topic_id AND m.partition = a.partition
          WHERE d.log_start_offset IS NULL OR a.last_offset >= d.log_start_offset))
    WHERE loss_class IS NOT NULL
"""
"""One row per acknowledged batch (any acks) that is not where it must be. Where a replica's directory is missing and
there is no settled leader, nothing is called lost: that evidence is incomplete, not bad."""
