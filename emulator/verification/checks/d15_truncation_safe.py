"""D15 TruncationSafe: no follower truncates what the leader of an earlier epoch committed.

Within one epoch nothing says whether the leader committed a batch before a follower cut it off.
"""

from emulator.verification.check import Check, Premise

CHECK = Check(
    check_id="D15",
    name="TruncationSafe",
    premises=frozenset({Premise.HIGH_WATERMARK_MOVED, Premise.TRUNCATED}),
    query="""
        SELECT t.run, t.topic, t.partition, min(b.base_offset) AS position,
               concat(t.topic, '-', t.partition, ': broker ', t.node, ' truncated its log from ', t.old_end_offset,
                      ' to ', t.new_end_offset, ' (', replace(t.reason, '_', ' '), ') in epoch ', t.leader_epoch,
                      ', and with it ', count(DISTINCT b.base_offset), ' batches from offset ', min(b.base_offset),
                      ' on that had been committed') AS sentence
        FROM log_truncated t
        JOIN batch_appended b ON b.run = t.run AND b.topic_id = t.topic_id AND b.partition = t.partition
             AND b.node = t.node AND b.base_offset >= t.new_end_offset AND b.last_offset < t.old_end_offset
             AND (b.incarnation < t.incarnation OR b.incarnation = t.incarnation AND b.sequence < t.sequence)
        -- Committed by the leader of an earlier epoch, which had that very batch.
        JOIN batch_appended l ON l.run = b.run AND l.topic_id = b.topic_id AND l.partition = b.partition
             AND l.base_offset = b.base_offset AND l.leader_epoch = b.leader_epoch AND l.crc = b.crc
        JOIN (SELECT run, topic_id, partition, node, leader_epoch, max(new) AS new,
                     max(struct(incarnation, sequence)) AS place
              FROM high_watermark_advanced GROUP BY run, topic_id, partition, node, leader_epoch) h
             ON h.run = l.run AND h.topic_id = l.topic_id AND h.partition = l.partition AND h.node = l.node
             AND h.new > l.last_offset AND h.leader_epoch < t.leader_epoch
             AND struct(l.incarnation, l.sequence) < h.place
        LEFT ANTI JOIN change u ON u.run = t.run AND u.topic_id = t.topic_id AND u.partition = t.partition
             AND u.election IN ('unclean', 'last_known_leader') AND u.leader_epoch > h.leader_epoch
             AND u.leader_epoch <= t.leader_epoch
        GROUP BY t.run, t.topic, t.partition, t.node, t.old_end_offset, t.new_end_offset, t.reason, t.leader_epoch,
                 t.incarnation, t.sequence
    """,
)
