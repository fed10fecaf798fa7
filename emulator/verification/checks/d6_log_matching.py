"""D6 LogMatching: replicas agree on everything that both call committed.

Each replica's final log is compared with one reference, the settled leader's (or, where there is none, the one with the
highest high watermark), below the lower of both high watermarks and from the higher of both log starts. Each side is
first summed up in a digest that does not depend on order; batches are looked at only where two digests differ.
"""

from emulator.verification.check import Check, Premise
from emulator.verification.sentences import span

_REPLICA = """
    SELECT l.run, l.topic, l.topic_id, l.partition, l.node, l.log_start_offset,
           least(coalesce(h.high_watermark, 0), l.log_end_offset) AS high_watermark
    FROM final_log l
    JOIN partition_state p ON p.run = l.run AND p.topic_id = l.topic_id AND p.partition = l.partition
         AND array_contains(p.replicas, l.node)
    LEFT JOIN last_high_watermark h ON h.run = l.run AND h.node = l.node AND h.topic_id = l.topic_id
         AND h.partition = l.partition
"""

_REFERENCE = f"""
    SELECT r.run, r.topic_id, r.partition,
           max_by(r.node, struct(s.leader IS NOT NULL, r.high_watermark, r.node)) AS node,
           max_by(r.high_watermark, struct(s.leader IS NOT NULL, r.high_watermark, r.node)) AS high_watermark,
           max_by(r.log_start_offset, struct(s.leader IS NOT NULL, r.high_watermark, r.node)) AS log_start_offset
    FROM ({_REPLICA}) r
    LEFT JOIN settled_leader s ON s.run = r.run AND s.topic_id = r.topic_id AND s.partition = r.partition
         AND s.leader = r.node
    GROUP BY r.run, r.topic_id, r.partition
"""

_PAIR = f"""
    SELECT r.run, r.topic, r.topic_id, r.partition, r.node, e.node AS reference,
           least(r.high_watermark, e.high_watermark) AS below, greatest(r.log_start_offset, e.log_start_offset) AS above
    FROM ({_REPLICA}) r JOIN ({_REFERENCE}) e ON e.run = r.run AND e.topic_id = r.topic_id AND e.partition = r.partition
    WHERE r.node <> e.node
"""

_BATCH = "b.base_offset, b.last_offset, b.leader_epoch, b.crc, b.record_count"

_DIFFERING = f"""
    SELECT /*+ BROADCAST(p) */ p.run, p.topic, p.topic_id, p.partition, p.node, p.reference, p.below,
           p.above
    FROM pair p
    JOIN final_batch b ON b.run = p.run AND b.topic_id = p.topic_id AND b.partition = p.partition
         AND b.node IN (p.node, p.reference) AND b.last_offset < p.below AND b.base_offset >= p.above
    GROUP BY p.run, p.topic, p.topic_id, p.partition, p.node, p.reference, p.below, p.above
    HAVING count_if(b.node = p.node) <> count_if(b.node = p.reference)
           OR bit_xor(xxhash64({_BATCH})) <> 0
"""

_SIDE = """
    SELECT /*+ BROADCAST(p) */ p.run, p.topic, p.partition, p.node AS replica, p.reference, b.node,
           b.base_offset, b.last_offset, b.leader_epoch, b.crc, b.record_count
    FROM differing p JOIN final_batch b ON b.run = p.run AND b.topic_id = p.topic_id AND b.partition = p.partition
         AND b.node IN (p.node, p.reference) AND b.last_offset < p.below AND b.base_offset >= p.above
"""

CHECK = Check(
    check_id="D6",
    name="LogMatching",
    premises=frozenset({Premise.FINAL_REPLICAS}),
    query=f"""
        WITH pair AS ({_PAIR}), differing AS ({_DIFFERING})
        SELECT run, topic, partition, base_offset AS position,
               concat(topic, '-', partition, ' ', {span("base_offset", "last_offset")}, ': broker ', min(node),
                      ' has a batch of epoch ', leader_epoch, ' with CRC ', crc, ' below the common high watermark ',
                      'that broker ', IF(min(node) = replica, reference, replica), ' does not have there') AS sentence
        FROM ({_SIDE})
        GROUP BY run, topic, partition, replica, reference, base_offset, last_offset, leader_epoch, crc, record_count
        HAVING count(DISTINCT node) < 2
    """,
)
