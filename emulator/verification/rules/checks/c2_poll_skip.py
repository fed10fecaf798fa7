"""C2 PollSkip: consumers that read past an acknowledged record have received it.

A record that a reader received under the id of an earlier topic of the name belongs to that topic if a log of it had
the record. Otherwise it belongs to the present topic: the reader had old metadata, or did not know the topic's id.
"""

from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.core.history import OperationType
from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.verification.facts.partition import ACKS_ALL, PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import acks_setting
from laststand.emulator.verification.tables.matching import are_among


@partition_check(
    "C2",
    "PollSkip",
    source="Jepsen's Kafka workload, lost-write and unseen",
    needs={Evidence.HISTORY},
    premises={Premise.ACKED_ALL, Premise.READ_AT_THE_END},
    is_of_clients=True,
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    reads = [read for read in facts.final_reads if read.type is OperationType.OK]
    start = max((read.start_offset for read in reads if read.start_offset is not None), default=None)
    end = max((read.end_offset for read in reads if read.end_offset is not None), default=None)
    if start is None or end is None:
        return
    acked, received = facts.acked, facts.received
    exemption = Exemption.ACKS_1 if PROMISES["C2"].leaves_out(Exemption.ACKS_1) else None
    is_passed = (acked["base_offset"] >= start) & (acked["last_offset"] < end)
    topics = facts.topics(acked)
    own = [acked["base_offset"], acked["crc"]]
    given = [received["base_offset"], received["crc"]]
    received_rows = [facts.topics(received), *given]
    stored = facts.events.rows(events.BatchAppended)
    is_of_received = are_among(received_rows, [facts.topics(stored), stored["base_offset"], stored["crc"]])
    is_given = are_among([topics, *own], received_rows) | are_among(own, [each[~is_of_received] for each in given])
    for batch in acked.rows(is_passed & ~is_given):
        yield Finding(
            batch.base_offset,
            f"{facts} offset {batch.base_offset} was acknowledged with {acks_setting(batch.acks)}, and no consumer was "
            f"ever given it, though the final one read up to {end}",
            exempted_by=None if batch.acks == ACKS_ALL else exemption,
        )
