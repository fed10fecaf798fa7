"""M10 APAccept: the controller takes an ISR only from the leader, on the state that it has (KIP-497, KIP-903)."""

from emulator.verification.check import Check, Premise
from emulator.verification.sentences import broker, listed

CHECK = Check(
    check_id="M10",
    name="APAccept",
    premises=frozenset({Premise.PROPOSAL_ACCEPTED}),
    query=f"""
        SELECT run, topic, partition, partition_epoch AS position,
               concat(topic, '-', partition, ': an AlterPartition of broker ', broker_id, ' to ISR ',
                      {listed("proposed_isr")}, ' on partition epoch ', partition_epoch, ' was accepted, though ',
                      problem) AS sentence
        FROM (SELECT d.run, d.topic, d.partition, d.partition_epoch, d.broker_id, d.proposed_isr, CASE
                  WHEN s.run IS NULL THEN 'there was no such epoch'
                  WHEN NOT (s.leader <=> d.broker_id) THEN concat({broker("s.leader")}, ' led')
                  WHEN s.leader_epoch <> d.leader_epoch THEN concat('the leader epoch was ', s.leader_epoch)
                  WHEN NOT array_contains(d.proposed_isr, d.broker_id) THEN 'the leader is not in it'
                  WHEN size(array_except(d.proposed_isr, s.replicas)) > 0 THEN 'it has a broker that is no replica'
              END AS problem
              FROM alter_partition_decided d
              LEFT JOIN change s ON s.run = d.run AND s.topic_id = d.topic_id AND s.partition = d.partition
                   AND s.partition_epoch = d.partition_epoch
              WHERE d.error = 'NONE'
              UNION ALL
              SELECT d.run, d.topic, d.partition, d.partition_epoch, d.broker_id, d.proposed_isr,
                     concat('broker ', r.broker_id, ' was registered under epoch ', r.broker_epoch, ', not ',
                            d.member.broker_epochs)
              FROM (SELECT *, explode(arrays_zip(proposed_isr, broker_epochs)) AS member
                    FROM alter_partition_decided WHERE error = 'NONE') d
              JOIN change n ON n.run = d.run AND n.topic_id = d.topic_id AND n.partition = d.partition
                   AND n.partition_epoch = d.partition_epoch + 1 AND n.reason = 'alter_partition'
              JOIN (SELECT *, lead(metadata_offset) OVER (PARTITION BY run, broker_id ORDER BY metadata_offset)
                              AS next_offset FROM broker_registered) r
                   ON r.run = d.run AND r.broker_id = d.member.proposed_isr AND r.metadata_offset < n.metadata_offset
                   AND (r.next_offset IS NULL OR n.metadata_offset < r.next_offset)
                   AND r.broker_epoch <> d.member.broker_epochs)
        WHERE problem IS NOT NULL
    """,
)
