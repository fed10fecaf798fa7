"""M7 Recovering: an uncleanly elected leader recovers alone, and only it can end that (KIP-704)."""

from emulator.verification.check import Check, CheckKind
from emulator.verification.sentences import broker, listed

CHECK = Check(
    check_id="M7",
    name="Recovering",
    kind=CheckKind.RULE,
    statement=(
        "RECOVERING begins with an unclean election, keeps the ISR at one member, ends with an AlterPartition "
        "of the leader alone, and until the recovery step is through the leader appends and answers nothing."
    ),
    query=f"""
        SELECT run, topic, partition, metadata_offset AS position,
               concat(topic, '-', partition, ' at metadata offset ', metadata_offset, ' (', replace(reason, '_', ' '),
                      '): ', CASE WHEN size(isr) > 1 AND leader_recovery_state = 1
                           THEN concat('RECOVERING with ISR ', {listed("isr")})
                           WHEN leader_recovery_state = 0 AND election IN ('unclean', 'last_known_leader')
                           THEN concat({broker("leader")}, ' was elected uncleanly and need not recover')
                           WHEN leader_recovery_state = 0 THEN 'RECOVERED without an AlterPartition of the leader'
                           ELSE 'RECOVERING without an unclean election' END) AS sentence
        FROM change
        WHERE leader_recovery_state = 1 AND size(isr) > 1
              OR leader_recovery_state = 0 AND leader IS NOT NULL AND election IN ('unclean', 'last_known_leader')
              OR old.leader_recovery_state = 1 AND leader_recovery_state = 0 AND reason <> 'alter_partition'
              OR old.leader_recovery_state = 0 AND leader_recovery_state = 1
                 AND election NOT IN ('unclean', 'last_known_leader')
        UNION ALL
        SELECT s.run, s.topic, s.partition, b.base_offset,
               concat(s.topic, '-', s.partition, ': broker ', s.node, ' ', b.what, ' offset ', b.base_offset,
                      ' while it still recovered in epoch ', s.leader_epoch)
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
