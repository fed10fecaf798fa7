"""L3 Leader: once every fault is over, each partition is led by the broker that was elected.

A partition without any candidate is excused; one that was reassigned away may still be in the ELR, and is none (S37).
"""

from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.facts.settled_state import settled_states
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import listed


@partition_check(
    "L3",
    "Leader",
    source="Kafka's PartitionChangeBuilder",
    needs={Evidence.EVENTS},
    premises={Premise.OWN_WORD, Premise.SETTLED, Premise.COMMITTED},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    led = {(each.event.topic_id, each.event.leader_epoch, each.node) for each in facts.events.of(events.BecameLeader)}
    for state in settled_states(facts):
        if state.leader is None and not {*state.isr, *state.elr}.isdisjoint(state.replicas):
            problem = f"is led by nobody (ISR {listed(state.isr)}, ELR {listed(state.elr)})"
        elif state.leader is not None and (state.topic_id, state.leader_epoch, state.leader) not in led:
            problem = f"is led by broker {state.leader} in epoch {state.leader_epoch}, which never heard of that"
        else:
            continue
        yield Finding(state.metadata_offset, f"{facts} {problem}, though the cluster had settled")
