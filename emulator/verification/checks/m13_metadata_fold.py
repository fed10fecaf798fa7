"""M13 MetadataFold: brokers act only on what the controller committed."""

from emulator.verification.check import Check, Evidence, Premise
from emulator.verification.sentences import broker

CHECK = Check(
    check_id="M13",
    name="MetadataFold",
    needs=frozenset({Evidence.EVENTS}),
    premises=frozenset({Premise.LED}),
    query=f"""
        SELECT r.run, r.topic, r.partition, r.partition_epoch AS position,
               concat(r.topic, '-', r.partition, ': broker ', r.node, ' acted on partition epoch ', r.partition_epoch,
                      ' with leader ', {broker("r.leader")}, ' of epoch ', r.leader_epoch, IF(c.run IS NULL,
                      ', which the controller never committed',
                      concat(', and the controller had committed leader ', {broker("c.leader")}, ' of epoch ',
                             c.leader_epoch))) AS sentence
        FROM (SELECT run, topic, topic_id, partition, node, partition_epoch, leader_epoch, node AS leader
              FROM became_leader
              UNION ALL
              SELECT run, topic, topic_id, partition, node, partition_epoch, leader_epoch, leader
              FROM became_follower) r
        LEFT JOIN change c ON c.run = r.run AND c.topic_id = r.topic_id AND c.partition = r.partition
             AND c.partition_epoch = r.partition_epoch
        WHERE c.run IS NULL OR c.leader_epoch <> r.leader_epoch OR NOT (c.leader <=> r.leader)
    """,
)
