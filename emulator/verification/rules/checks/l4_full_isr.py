"""L4 ISRfull: once every fault is over, all replicas of a partition that is led are in its ISR."""

from collections.abc import Iterator

from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.facts.settled_state import settled_states
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import listed


@partition_check(
    "L4",
    "ISRfull",
    source="Kafka's Partition.maybeExpandIsr",
    needs={Evidence.EVENTS},
    premises={Premise.SETTLED, Premise.COMMITTED},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    for state in settled_states(facts):
        if state.leader is not None and set(state.isr) != set(state.replicas):
            yield Finding(
                state.metadata_offset,
                f"{facts} has ISR {listed(state.isr)} of replicas {listed(state.replicas)}, though the cluster had "
                "settled",
            )
