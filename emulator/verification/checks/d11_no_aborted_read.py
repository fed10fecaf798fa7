"""D11 NoAbortedRead: what was refused for certain is nowhere."""

from emulator.verification.check import Check, Evidence, Premise

CHECK = Check(
    check_id="D11",
    name="NoAbortedRead",
    needs=frozenset({Evidence.HISTORY}),
    premises=frozenset({Premise.REFUSED}),
    query="""
        SELECT s.run, s.topic, s.partition, f.base_offset AS position,
               concat(s.topic, '-', s.partition, ' offset ', f.base_offset, ': ', f.holder, ' has the batch with CRC ',
                      f.crc, ' that ', s.process, ' was refused for certain') AS sentence
        FROM (SELECT run, process, topic, partition, record_count, explode(crcs) AS crc
              FROM sent_batch WHERE type = 'fail') s
        JOIN (SELECT run, topic, partition, base_offset, crc, record_count, concat('the final log of broker ', node)
                     AS holder
              FROM final_batch
              UNION ALL
              SELECT run, topic, partition, base_offset, crc, record_count, process FROM received_batch) f
             ON f.run = s.run AND f.topic = s.topic AND f.partition = s.partition AND f.crc = s.crc
             AND f.record_count = s.record_count
    """,
)
