"""C2 PollSkip: readers that come past an acknowledged record have seen it."""

from emulator.verification.check import Check, Evidence, Premise

CHECK = Check(
    check_id="C2",
    name="PollSkip",
    needs=frozenset({Evidence.HISTORY}),
    premises=frozenset({Premise.ACKED_ALL, Premise.READ_AT_THE_END}),
    query="""
        SELECT a.run, a.topic, a.partition, a.base_offset AS position,
               concat(a.topic, '-', a.partition, ' offset ', a.base_offset, ' was acknowledged with acks=all, and no ',
                      'consumer was ever given it, though the final one read up to ', f.end_offset) AS sentence
        FROM acked_batch a
        JOIN (SELECT run, topic, partition, max(start_offset) AS start_offset, max(end_offset) AS end_offset
              FROM final_read_operation WHERE type = 'ok' GROUP BY run, topic, partition) f
             ON f.run = a.run AND f.topic = a.topic AND f.partition = a.partition
             AND f.start_offset <= a.base_offset AND f.end_offset > a.last_offset
        LEFT ANTI JOIN received_batch c ON c.run = a.run AND c.topic = a.topic AND c.partition = a.partition
             AND c.base_offset = a.base_offset AND c.crc = a.crc
        WHERE a.acks = -1
    """,
)
