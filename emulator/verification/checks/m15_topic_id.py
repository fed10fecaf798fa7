"""M15 TopicId: a topic that is created again under its name has nothing of the one before (KIP-516)."""

from emulator.verification.check import Check, Evidence, Premise

CHECK = Check(
    check_id="M15",
    name="TopicId",
    needs=frozenset({Evidence.EVENTS}),
    premises=frozenset({Premise.LOG_OPENED}),
    query="""
        SELECT run, topic, partition, position,
               concat(topic, '-', partition, ': broker ', node, ' ', what, ' topic id ', coalesce(topic_id, 'none'))
                   AS sentence
        FROM (SELECT o.run, o.topic, o.partition, o.log_end_offset AS position, o.node, o.topic_id,
                     concat('found ', o.log_end_offset, ' records where none can be, in its first log of') AS what
              FROM (SELECT *, row_number() OVER (PARTITION BY run, node, topic_id, partition
                                                 ORDER BY incarnation, sequence) AS place FROM log_opened) o
              WHERE o.place = 1 AND o.log_end_offset > 0
              UNION ALL
              SELECT r.run, r.topic, r.partition, r.log_end_offset, r.node, r.topic_id,
                     concat('used a log of ', r.log_end_offset, ' records that it never opened as one of')
              FROM (SELECT run, topic, topic_id, partition, node, incarnation, sequence, epoch_start_offset
                           AS log_end_offset FROM became_leader
                    UNION ALL
                    SELECT run, topic, topic_id, partition, node, incarnation, sequence, log_end_offset
                    FROM became_follower) r
              LEFT ANTI JOIN log_opened o ON o.run = r.run AND o.node = r.node AND o.incarnation = r.incarnation
                   AND o.topic_id = r.topic_id AND o.partition = r.partition AND o.sequence < r.sequence
              WHERE r.log_end_offset > 0
              UNION ALL
              SELECT b.run, b.topic, b.partition, min(b.base_offset), b.node, b.topic_id, 'appended to a log of'
              FROM batch_appended b
              LEFT ANTI JOIN partition_changed p ON p.run = b.run AND p.topic_id = b.topic_id AND p.topic = b.topic
                   AND p.partition = b.partition
              GROUP BY b.run, b.topic, b.partition, b.node, b.topic_id)
    """,
)
