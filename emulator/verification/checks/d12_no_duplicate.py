"""D12 NoDuplicate: an idempotent batch is in the log once; another one at most as often as it was sent."""

from emulator.verification.check import Check, Evidence, Premise

CHECK = Check(
    check_id="D12",
    name="NoDuplicate",
    needs=frozenset({Evidence.HISTORY}),
    premises=frozenset({Premise.SETTLED_RECORDS}),
    query="""
        SELECT run, topic, partition, max(base_offset) AS position,
               concat(topic, '-', partition, ': producer ', producer_id, ' epoch ', producer_epoch, ' sequence ',
                      base_sequence, ' is in the log ', count(*), ' times, at offsets ',
                      array_join(sort_array(collect_set(base_offset)), ', ')) AS sentence
        FROM (SELECT f.* FROM final_batch f
              JOIN settled_leader s ON s.run = f.run AND s.topic_id = f.topic_id AND s.partition = f.partition
                   AND s.leader = f.node
              WHERE f.producer_id IS NOT NULL AND NOT f.is_control)
        GROUP BY run, topic, topic_id, partition, producer_id, producer_epoch, base_sequence HAVING count(*) > 1
        UNION ALL
        SELECT f.run, f.topic, f.partition, f.base_offset,
               concat(f.topic, '-', f.partition, ': the batch with CRC ', f.crc, ' is in the log ', f.copies,
                      ' times, and was sent ', s.attempts, ' times')
        FROM (SELECT f.run, f.topic, f.partition, f.crc, f.record_count, max(f.base_offset) AS base_offset,
                     count(*) AS copies
              FROM final_batch f
              JOIN settled_leader s ON s.run = f.run AND s.topic_id = f.topic_id AND s.partition = f.partition
                   AND s.leader = f.node
              WHERE f.producer_id IS NULL GROUP BY f.run, f.topic, f.topic_id, f.partition, f.crc, f.record_count
              HAVING count(*) > 1) f
        JOIN (SELECT run, topic, partition, record_count, attempts, explode(crcs) AS crc FROM sent_batch) s
             ON s.run = f.run AND s.topic = f.topic AND s.partition = f.partition AND s.crc = f.crc
             AND s.record_count = f.record_count AND f.copies > s.attempts
    """,
)
