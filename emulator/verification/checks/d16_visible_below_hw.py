"""D16 VisibleBelowHW: a consumer is given only what the broker that serves it calls committed."""

from emulator.verification.check import Check, Evidence, Premise

CHECK = Check(
    check_id="D16",
    name="VisibleBelowHW",
    needs=frozenset({Evidence.EVENTS}),
    premises=frozenset({Premise.CONSUMED_BY_EPOCH}),
    query="""
        SELECT c.run, c.topic, c.partition, c.base_offset AS position,
               concat(c.topic, '-', c.partition, ' offset ', c.base_offset, ': broker ', c.node, ' gave it to ',
                      c.process, ' in epoch ', c.served_epoch, ' and never had a high watermark above ',
                      coalesce(max(h.high_watermark), 0)) AS sentence
        FROM received_batch c
        LEFT JOIN (
            SELECT run, node, topic, partition, leader_epoch, max(high_watermark) AS high_watermark
            FROM (SELECT run, node, topic, partition, leader_epoch, new AS high_watermark FROM high_watermark_advanced
                  UNION ALL SELECT run, node, topic, partition, leader_epoch, new FROM follower_high_watermark_updated
                  UNION ALL SELECT run, node, topic, partition, leader_epoch, high_watermark FROM became_leader
                  UNION ALL SELECT run, node, topic, partition, -1, high_watermark FROM log_opened)
            GROUP BY run, node, topic, partition, leader_epoch) h
             ON h.run = c.run AND h.node = c.node AND h.topic = c.topic AND h.partition = c.partition
             AND h.leader_epoch <= c.served_epoch
        WHERE c.served_epoch IS NOT NULL
        GROUP BY c.run, c.topic, c.partition, c.node, c.process, c.served_epoch, c.base_offset, c.last_offset
        HAVING c.last_offset >= coalesce(max(h.high_watermark), 0)
    """,
)
