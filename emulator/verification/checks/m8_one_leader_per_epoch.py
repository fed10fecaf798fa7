"""M8 OneLeaderPerEpoch: an epoch has one leader, and every batch of that epoch comes from it."""

from emulator.verification.check import Check, Premise

CHECK = Check(
    check_id="M8",
    name="OneLeaderPerEpoch",
    premises=frozenset({Premise.LED}),
    query="""
        SELECT run, max(topic) AS topic, partition, leader_epoch AS position,
               concat(max(topic), '-', partition, ' epoch ', leader_epoch, ' has more than one leader: ',
                      array_join(sort_array(collect_set(concat('broker ', leader, ' ', source))), ', ')) AS sentence
        FROM (SELECT run, topic, topic_id, partition, leader_epoch, leader, 'by the controller' AS source
              FROM partition_changed WHERE leader IS NOT NULL
              UNION ALL
              SELECT run, topic, topic_id, partition, leader_epoch, node, 'by its own word' FROM became_leader
              UNION ALL
              SELECT DISTINCT run, topic, topic_id, partition, leader_epoch, node, 'by what it appended'
              FROM batch_appended WHERE role = 'leader')
        GROUP BY run, topic_id, partition, leader_epoch HAVING count(DISTINCT leader) > 1
    """,
)
