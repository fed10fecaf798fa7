"""D1 AckedDurable: what was acknowledged to an acks=all producer stays where it was acknowledged to be."""

from emulator.verification.check import Check, Premise
from emulator.verification.sentences import span

CHECK = Check(
    check_id="D1",
    name="AckedDurable",
    premises=frozenset({Premise.ACKED_ALL, Premise.FINAL_LOG}),
    query=f"""
        SELECT run, topic, partition, base_offset AS position,
               concat(topic, '-', partition, ' ', {span("base_offset", "last_offset")}, ' (epoch ',
                      coalesce(CAST(leader_epoch AS STRING), '?'), '), acknowledged by broker ',
                      coalesce(CAST(node AS STRING), '?'), ': ', loss_class,
                      coalesce(concat('; broker ', lacking_node, ' was elected in epoch ', lacking_epoch,
                                      ' with a log that ended at ', lacking_end_offset), '')) AS sentence
        FROM lost_batch WHERE acks = -1
    """,
)
