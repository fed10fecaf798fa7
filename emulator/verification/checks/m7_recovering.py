"""M7 Recovering: that a leader was elected uncleanly is on record until it says that it has recovered (KIP-704).

Kafka keeps that record, too, though it acts on it nowhere: what a leader must not do meanwhile is M18.
"""

from emulator.verification.check import Check, Premise
from emulator.verification.sentences import broker, listed

CHECK = Check(
    check_id="M7",
    name="Recovering",
    premises=frozenset({Premise.UNCLEAN_ELECTION}),
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
    """,
)
