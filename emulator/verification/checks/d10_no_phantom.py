"""D10 NoPhantom: nothing is in a log, or reaches a consumer, that no producer sent to that partition."""

from emulator.verification.check import Check, Evidence, Premise
from emulator.verification.sentences import span

CHECK = Check(
    check_id="D10",
    name="NoPhantom",
    needs=frozenset({Evidence.HISTORY}),
    premises=frozenset({Premise.STORED}),
    query=f"""
        WITH sent AS (
            SELECT DISTINCT run, topic, partition, process, first_record_id, record_count, explode(crcs) AS crc
            FROM sent_batch)
        SELECT run, topic, partition, base_offset AS position,
               concat(topic, '-', partition, ' ', {span("base_offset", "last_offset")}, ': ', what,
                      ' has a batch with CRC ', crc, ' and ', record_count,
                      ' records that no producer sent') AS sentence
        FROM (SELECT b.run, b.topic, b.partition, b.base_offset, b.last_offset, b.crc, b.record_count, b.what
              FROM (SELECT run, topic, partition, base_offset, last_offset, crc, record_count,
                           concat('the final log of broker ', node) AS what
                    FROM final_batch WHERE NOT is_control
                    UNION ALL
                    SELECT run, topic, partition, base_offset, last_offset, crc, record_count,
                           concat('the event log of broker ', node)
                    FROM batch_appended WHERE role = 'leader') b
              LEFT ANTI JOIN sent s ON s.run = b.run AND s.topic = b.topic AND s.partition = b.partition
                   AND s.crc = b.crc AND s.record_count = b.record_count
              UNION ALL
              SELECT c.run, c.topic, c.partition, c.base_offset, c.last_offset, c.crc, c.record_count, c.process
              FROM consumed_batch c
              LEFT ANTI JOIN sent s ON s.run = c.run AND s.topic = c.topic AND s.partition = c.partition
                   AND s.crc = c.crc AND s.process = c.producer
                   -- A consumer that starts within a batch is given the rest of it.
                   AND s.first_record_id <= c.first_record_id
                   AND s.first_record_id + s.record_count = c.first_record_id + c.record_count)
    """,
)
