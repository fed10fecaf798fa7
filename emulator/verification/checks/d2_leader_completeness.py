"""D2 LeaderCompleteness: a new leader has everything that leaders before it called committed."""

from emulator.verification.check import Check, Premise

CHECK = Check(
    check_id="D2",
    name="LeaderCompleteness",
    premises=frozenset({Premise.LED_AFTER_COMMIT}),
    query="""
        SELECT b.run, b.topic, b.partition, b.leader_epoch AS position,
               concat(b.topic, '-', b.partition, ': broker ', b.node, ' began to lead in epoch ', b.leader_epoch,
                      ' with a log that ended at ', b.epoch_start_offset, ', though the high watermark had been at ',
                      h.high_watermark, ' in epoch ', h.leader_epoch) AS sentence
        FROM leader_term b
        JOIN (SELECT run, topic_id, partition, leader_epoch, max(new) AS high_watermark
              FROM high_watermark_advanced GROUP BY run, topic_id, partition, leader_epoch) h
             ON h.run = b.run AND h.topic_id = b.topic_id AND h.partition = b.partition
             AND h.leader_epoch < b.leader_epoch AND h.high_watermark > b.epoch_start_offset
        LEFT ANTI JOIN change u ON u.run = b.run AND u.topic_id = b.topic_id AND u.partition = b.partition
             AND u.election IN ('unclean', 'last_known_leader') AND u.leader_epoch > h.leader_epoch
             AND u.leader_epoch <= b.leader_epoch
    """,
)
