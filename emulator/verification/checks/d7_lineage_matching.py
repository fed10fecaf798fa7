"""D7 LineageMatching: a leader epoch has one history, whichever log tells it."""

from emulator.verification.check import Check, Premise

CHECK = Check(
    check_id="D7",
    name="LineageMatching",
    premises=frozenset({Premise.REPLICATED}),
    query="""
        SELECT run, max(topic) AS topic, partition, base_offset AS position,
               concat(max(topic), '-', partition, ' offset ', base_offset, ' of epoch ', leader_epoch,
                      ' is not one batch: ', array_join(sort_array(collect_set(concat('broker ', node,
                      ' has one up to ', last_offset, ' with CRC ', crc))), ', ')) AS sentence
        FROM batch_appended
        GROUP BY run, topic_id, partition, leader_epoch, base_offset
        HAVING count(DISTINCT last_offset, crc) > 1
    """,
)
