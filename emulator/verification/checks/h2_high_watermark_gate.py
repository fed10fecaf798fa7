"""H2 HWGate: a high watermark moves only while the committed ISR has at least min ISR members (KIP-966)."""

from emulator.verification.check import Check, Premise
from emulator.verification.sentences import listed

CHECK = Check(
    check_id="H2",
    name="HWGate",
    premises=frozenset({Premise.HIGH_WATERMARK_MOVED}),
    query=f"""
        SELECT h.run, h.topic, h.partition, h.new AS position,
               concat(h.topic, '-', h.partition, ': broker ', h.node, ' moved its high watermark from ', h.old, ' to ',
                      h.new, ' in epoch ', h.leader_epoch, ' with ISR ', {listed("h.committed_isr")}, IF(
                      size(h.committed_isr) < m.required_isr, concat(', fewer than the ', m.required_isr, ' required'),
                      ', which the controller never committed in that epoch')) AS sentence
        FROM high_watermark_advanced h
        JOIN required_isr m ON m.run = h.run AND m.topic_id = h.topic_id AND m.partition = h.partition
        LEFT JOIN (SELECT DISTINCT run, topic_id, partition, leader_epoch, array_sort(isr) AS isr
                   FROM partition_changed) c
             ON c.run = h.run AND c.topic_id = h.topic_id AND c.partition = h.partition
             AND c.leader_epoch = h.leader_epoch AND c.isr = array_sort(h.committed_isr)
        WHERE size(h.committed_isr) < m.required_isr OR c.run IS NULL
    """,
)
