"""D14 RealTime: what is sent after an acknowledgement lies after what was acknowledged.

Both with acks=all: a deposed leader may still give a batch with acks=1 an offset that its successor gave away.
"""

from emulator.verification.check import Check, Evidence, Premise

CHECK = Check(
    check_id="D14",
    name="RealTime",
    needs=frozenset({Evidence.HISTORY}),
    premises=frozenset({Premise.SENT_AFTER_ACK}),
    query="""
        SELECT run, topic, partition, base_offset AS position,
               concat(topic, '-', partition, ' offset ', base_offset, ' was given to a batch of ', process,
                      ' that was sent after offset ', before, ' had been acknowledged with acks=all') AS sentence
        FROM (SELECT *, max(acknowledged) OVER (PARTITION BY run, history, incarnation, partition ORDER BY at
                            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
              FROM (SELECT run, topic, coalesce(topic_id, topic) AS incarnation, partition, process, history,
                           invoked AS at, base_offset, CAST(NULL AS BIGINT) AS acknowledged
                    FROM sent_batch WHERE type = 'ok' AND acks = -1
                    UNION ALL
                    SELECT run, topic, coalesce(topic_id, topic), partition, process, history, completed, NULL,
                           base_offset
                    FROM sent_batch WHERE type = 'ok' AND acks = -1)) told
        -- A client that is behind may give a batch of the new topic the id of the deleted one of that name.
        WHERE base_offset <= before
              AND NOT EXISTS (SELECT 1 FROM topic_deleted d WHERE d.run = told.run AND d.topic_id = told.incarnation)
    """,
)
