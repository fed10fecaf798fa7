"""D4 NoGlobalLoss: data does not vanish from every replica unless every replica that held it lost its page cache."""

from emulator.verification.check import Check, Premise
from emulator.verification.losses import LossClass
from emulator.verification.sentences import span

CHECK = Check(
    check_id="D4",
    name="NoGlobalLoss",
    premises=frozenset({Premise.ACKED_ALL, Premise.FINAL_LOG}),
    query=f"""
        SELECT run, topic, partition, base_offset AS position,
               concat(topic, '-', partition, ' ', {span("base_offset", "last_offset")}, ': ', held,
                      ' replicas held it and ', lost, ' lost it with its page cache, yet no log has it') AS sentence
        FROM (SELECT l.run, l.topic, l.partition, l.base_offset, l.last_offset, count(DISTINCT b.node) AS held,
                     count(DISTINCT p.lost_node) AS lost
              FROM lost_batch l
              JOIN batch_appended b ON b.run = l.run AND b.topic_id = l.topic_id AND b.partition = l.partition
                   AND b.base_offset = l.base_offset AND b.crc = l.crc
              LEFT JOIN power_lost p ON p.run = b.run AND p.topic_id = b.topic_id AND p.partition = b.partition
                   AND p.lost_node = b.node AND p.lost_incarnation >= b.incarnation
                   AND p.new_end_offset <= l.last_offset
              WHERE l.acks = -1 AND l.loss_class = '{LossClass.GONE_EVERYWHERE.value}'
              GROUP BY l.run, l.topic, l.partition, l.topic_id, l.base_offset, l.last_offset, l.crc)
        WHERE held > lost
    """,
)
