"""M9 EpochMono: partition epochs rise by one with each change, leader epochs by one with each change of leader."""

from emulator.verification.check import Check, Premise
from emulator.verification.sentences import broker

CHECK = Check(
    check_id="M9",
    name="EpochMono",
    premises=frozenset({Premise.CHANGED}),
    query=f"""
        WITH change AS (
            SELECT *, lag(struct(leader, leader_epoch, partition_epoch)) OVER (
                       PARTITION BY run, topic_id, partition ORDER BY metadata_offset) AS old
            FROM partition_changed),
        applied AS (
            SELECT *, max(partition_epoch) OVER (PARTITION BY run, topic_id, partition, node, incarnation
                       ORDER BY sequence ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
            FROM (SELECT run, topic, topic_id, partition, node, incarnation, sequence, partition_epoch
                  FROM became_leader
                  UNION ALL
                  SELECT run, topic, topic_id, partition, node, incarnation, sequence, partition_epoch
                  FROM became_follower))
        SELECT run, topic, partition, metadata_offset AS position,
               concat(topic, '-', partition, ' at metadata offset ', metadata_offset, ': leader epoch ',
                      old.leader_epoch, ' to ', leader_epoch,
                      ', partition epoch ', old.partition_epoch, ' to ', partition_epoch,
                      ', leader ', {broker("old.leader")}, ' to ', {broker("leader")}) AS sentence
        FROM change
        WHERE old IS NOT NULL AND (partition_epoch <> old.partition_epoch + 1
              OR leader_epoch NOT IN (old.leader_epoch, old.leader_epoch + 1)
              OR (NOT (leader <=> old.leader) AND leader_epoch <> old.leader_epoch + 1))
        UNION ALL
        SELECT run, topic, partition, partition_epoch,
               concat(topic, '-', partition, ': broker ', node, ' applied partition epoch ', partition_epoch, ' after ',
                      before)
        FROM applied WHERE partition_epoch < before
    """,
)
