"""D15 TruncationSafe: no follower cuts off what was acknowledged."""

from emulator.verification.check import Check, Premise

CHECK = Check(
    check_id="D15",
    name="TruncationSafe",
    premises=frozenset({Premise.ACKED_ALL, Premise.TRUNCATED}),
    query="""
        SELECT t.run, t.topic, t.partition, min(b.base_offset) AS position,
               concat(t.topic, '-', t.partition, ': broker ', t.node, ' cut its log from ', t.old_end_offset, ' to ',
                      t.new_end_offset, ' (', replace(t.reason, '_', ' '), ') in epoch ', t.leader_epoch,
                      ', and with it ', count(*), ' batches from offset ', min(b.base_offset),
                      ' on that had been acknowledged') AS sentence
        FROM log_truncated t
        JOIN batch_appended b ON b.run = t.run AND b.topic_id = t.topic_id AND b.partition = t.partition
             AND b.node = t.node AND b.base_offset >= t.new_end_offset AND b.last_offset < t.old_end_offset
             AND (b.incarnation < t.incarnation OR b.incarnation = t.incarnation AND b.sequence < t.sequence)
        JOIN acked_batch a ON a.run = b.run AND a.topic_id = b.topic_id AND a.partition = b.partition
             AND a.base_offset = b.base_offset AND a.crc = b.crc AND a.acks = -1 AND a.acked_epoch < t.leader_epoch
             -- What a deposed leader appended in vain may come again under its successor, at the same offset.
             AND a.leader_epoch = b.leader_epoch
        LEFT ANTI JOIN change u ON u.run = t.run AND u.topic_id = t.topic_id AND u.partition = t.partition
             AND u.election IN ('unclean', 'last_known_leader') AND u.leader_epoch > a.acked_epoch
             AND u.leader_epoch <= t.leader_epoch
        GROUP BY t.run, t.topic, t.partition, t.node, t.old_end_offset, t.new_end_offset, t.reason, t.leader_epoch,
                 t.incarnation, t.sequence
    """,
)
