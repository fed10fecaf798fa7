"""D13 ProducerOrder: the batches of an idempotent producer lie in the log in the order of their sequence numbers."""

from emulator.verification.check import Check, Premise

CHECK = Check(
    check_id="D13",
    name="ProducerOrder",
    premises=frozenset({Premise.SETTLED_SEQUENCES}),
    query="""
        SELECT run, topic, partition, base_offset AS position,
               concat(topic, '-', partition, ' offset ', base_offset, ': sequence ', base_sequence, ' of producer ',
                      producer_id, ' epoch ', producer_epoch, ' comes after sequence ', before) AS sentence
        FROM (SELECT f.*, lag(f.base_sequence) OVER (
                         PARTITION BY f.run, f.topic_id, f.partition, f.producer_id, f.producer_epoch
                         ORDER BY f.base_offset) AS before
              FROM final_batch f
              JOIN settled_leader s ON s.run = f.run AND s.topic_id = f.topic_id AND s.partition = f.partition
                   AND s.leader = f.node
              WHERE f.producer_id IS NOT NULL AND NOT f.is_control)
        -- The numbers wrap around after 2^31 - 1, so a fall by more than half of them is a rise.
        WHERE base_sequence < before AND before - base_sequence < 1073741824
    """,
)
