"""M6 ElectionOrder: leaders come from the ISR, else from the ELR, and only then uncleanly (KIP-966)."""

from emulator.verification.check import Check, Premise
from emulator.verification.sentences import broker, listed

CHECK = Check(
    check_id="M6",
    name="ElectionOrder",
    premises=frozenset({Premise.ELECTED}),
    query=f"""
        WITH elected AS (
            SELECT c.run, c.topic, c.partition, c.metadata_offset, c.reason, c.election, c.leader, c.isr, c.old,
                   c.broker_id,
                   max(IF(b.run IS NULL, NULL, candidate)) AS active_candidate
            FROM (SELECT *, explode_outer(IF(election IN ('unclean', 'last_known_leader'),
                             array_except(array_union(old.isr, old.elr), array(leader)), array())) AS candidate
                  FROM change
                  WHERE old IS NOT NULL AND leader IS NOT NULL AND leader_epoch <> old.leader_epoch
                        AND election <> 'none') c
            LEFT JOIN broker_status b ON b.run = c.run AND b.broker_id = c.candidate
                 AND b.active_from < c.metadata_offset AND c.metadata_offset < b.active_to
                 AND NOT (b.broker_id <=> c.broker_id) AND c.reason <> 'elect_leaders'
            GROUP BY ALL),
        judged AS (
            SELECT e.*, CASE
                WHEN e.election = 'isr' AND NOT array_contains(e.isr, e.leader) THEN 'is not in the ISR'
                WHEN e.election = 'isr' AND e.reason NOT IN ('alter_partition', 'reassignment')
                     AND NOT array_contains(e.old.isr, e.leader) THEN 'was not in the ISR'
                WHEN e.election = 'elr' AND NOT array_contains(e.old.elr, e.leader) THEN 'was not in the ELR'
                WHEN e.election = 'elr' AND NOT (e.isr <=> array(e.leader)) THEN 'shares its ISR, which had to be empty'
                WHEN e.election IN ('unclean', 'last_known_leader') AND NOT (e.isr <=> array(e.leader))
                     THEN 'shares its ISR, though it was elected uncleanly'
                WHEN e.active_candidate IS NOT NULL THEN concat('was elected uncleanly, though broker ',
                     e.active_candidate, ' was active and had every record')
                WHEN e.election = 'no_candidate' THEN 'was elected, though there was no candidate'
            END AS problem FROM elected e)
        SELECT run, topic, partition, metadata_offset AS position,
               concat(topic, '-', partition, ' at metadata offset ', metadata_offset, ': leader ', {broker("leader")},
                      ' ', problem, '; before it was ISR ', {listed("old.isr")}, ' and ELR ', {listed("old.elr")})
                   AS sentence
        FROM judged WHERE problem IS NOT NULL
    """,
)
