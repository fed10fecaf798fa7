"""M18 RecoveryFirst: an uncleanly elected leader recovers before it serves (KIP-704)."""

from emulator.verification.check import Check, Premise

CHECK = Check(
    check_id="M18",
    name="RecoveryFirst",
    premises=frozenset({Premise.RECOVERY_STARTED}),
    query="""
        SELECT s.run, s.topic, s.partition, b.base_offset AS position,
               concat(s.topic, '-', s.partition, ': broker ', s.node, ' ', b.what, ' offset ', b.base_offset,
                      ' while it still recovered in epoch ', s.leader_epoch) AS sentence
        FROM recovery_started s
        LEFT JOIN (SELECT run, node, incarnation, topic_id, partition, leader_epoch, min(sequence) AS sequence
                   FROM recovery_finished GROUP BY run, node, incarnation, topic_id, partition, leader_epoch) f
             ON f.run = s.run AND f.node = s.node AND f.incarnation = s.incarnation AND f.topic_id = s.topic_id
             AND f.partition = s.partition AND f.leader_epoch = s.leader_epoch AND f.sequence > s.sequence
        JOIN (SELECT run, node, incarnation, sequence, topic_id, partition, leader_epoch, base_offset,
                     'appended at' AS what
              FROM batch_appended WHERE role = 'leader'
              UNION ALL
              SELECT run, node, incarnation, sequence, topic_id, partition, leader_epoch, base_offset, 'acknowledged'
              FROM produce_answered WHERE error = 'NONE') b
             ON b.run = s.run AND b.node = s.node AND b.incarnation = s.incarnation AND b.topic_id = s.topic_id
             AND b.partition = s.partition AND b.leader_epoch = s.leader_epoch AND b.sequence > s.sequence
             AND (f.run IS NULL OR b.sequence < f.sequence)
    """,
)
