"""D5 ConsumedStable: what a consumer was given stays in the log."""

from emulator.verification.check import Check, Premise
from emulator.verification.sentences import span

CHECK = Check(
    check_id="D5",
    name="ConsumedStable",
    premises=frozenset({Premise.CONSUMED}),
    query=f"""
        SELECT run, topic, partition, base_offset AS position,
               concat(topic, '-', partition, ' ', {span("base_offset", "last_offset")}, ' of epoch ', batch_epoch,
                      ', given to ', process, ': ', coalesce(concat('broker ', lacking.node, ' was elected in epoch ',
                      lacking.leader_epoch, ' with a log that ended at ', lacking.log_end_offset),
                      concat('not in the final log of leader ', leader))) AS sentence
        FROM (SELECT c.run, c.topic, c.partition, c.base_offset, c.last_offset, c.leader_epoch AS batch_epoch,
                     c.process, s.leader, f.run IS NOT NULL AS is_on_leader,
                     array_min(filter(l.terms, x -> x.leader_epoch > greatest(c.served_epoch, c.leader_epoch)
                         AND c.served_epoch IS NOT NULL AND x.log_end_offset <= c.last_offset)) AS lacking
              FROM consumed_batch c
              LEFT JOIN settled_leader s ON s.run = c.run AND s.topic_id = c.topic_id AND s.partition = c.partition
              LEFT JOIN leader_terms l ON l.run = c.run AND l.topic_id = c.topic_id AND l.partition = c.partition
              LEFT JOIN (SELECT DISTINCT run, topic_id, partition, node, last_offset, crc FROM final_batch) f
                   ON f.run = s.run AND f.topic_id = s.topic_id AND f.partition = s.partition
                   AND f.node = s.leader AND f.last_offset = c.last_offset AND f.crc = c.crc
              LEFT JOIN deleted_below d ON d.run = c.run AND d.topic_id = c.topic_id AND d.partition = c.partition
              LEFT JOIN topic_deleted t ON t.run = c.run AND t.topic_id = c.topic_id
              WHERE t.run IS NULL AND (d.run IS NULL OR c.last_offset >= d.log_start_offset))
        WHERE lacking IS NOT NULL OR (leader IS NOT NULL AND NOT is_on_leader)
    """,
)
