"""The oracle's own arithmetic of high watermarks.

A leader may call a record committed once every member of the maximal ISR has it (Kafka's ``Partition``), and
only while the controller-committed ISR, as the leader knows it, has at least min(min ISR, replication factor) members
(KIP-966). Both are computed here from reported log ends and committed records, not taken from what a node concluded.
"""

from typing import Final

LAST_HIGH_WATERMARK: Final = """
    SELECT run, node, topic_id, partition, max_by(high_watermark, struct(incarnation, sequence)) AS high_watermark
    FROM (SELECT run, node, incarnation, sequence, topic_id, partition, new AS high_watermark
          FROM high_watermark_advanced
          UNION ALL SELECT run, node, incarnation, sequence, topic_id, partition, new
          FROM follower_high_watermark_updated
          UNION ALL SELECT run, node, incarnation, sequence, topic_id, partition, high_watermark FROM log_opened
          UNION ALL SELECT run, node, incarnation, sequence, topic_id, partition, least(high_watermark, new_end_offset)
          FROM log_truncated)
    GROUP BY run, node, topic_id, partition
"""
"""Each replica's high watermark by its own last event about it."""

REQUIRED_ISR: Final = """
    SELECT run, topic_id, partition, min(least(required, replication_factor)) AS required_isr
    FROM (SELECT run, topic_id, partition, effective_min_isr AS required, size(replicas) AS replication_factor
          FROM partition_changed
          UNION ALL
          SELECT p.run, p.topic_id, p.partition, try_cast(c.value AS BIGINT), size(p.replicas)
          FROM partition_changed p
          JOIN config_changed c ON c.run = p.run AND c.name = 'min.insync.replicas'
               AND (c.resource = 'topic' AND c.resource_name = p.topic))
    GROUP BY run, topic_id, partition
"""
"""Members that a committed ISR needs before the high watermark may move: the least that was ever in force."""


def least_log_end(members: str, replicas: str) -> str:
    """SQL for the least log end offset among ``members``, as ``replicas`` reports them; null if one is unknown."""
    ends = f"transform(filter({replicas}, r -> array_contains({members}, r.broker_id)), r -> r.log_end_offset)"
    return f"IF(size({ends}) < size({members}) OR exists({ends}, x -> x IS NULL), NULL, array_min({ends}))"
