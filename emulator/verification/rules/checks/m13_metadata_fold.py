"""M13 MetadataFold: brokers act only on committed metadata."""

from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import broker


@partition_check(
    "M13",
    "MetadataFold",
    source="KIP-631; Kafka's ReplicaManager.applyDelta",
    needs={Evidence.EVENTS},
    premises={Premise.LED},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    states = {(change.new.topic_id, change.new.partition_epoch): change.new for change in facts.changes}
    roles: list[tuple[int, events.BecameLeader | events.BecameFollower, int | None]] = [
        *((role.node, role.event, role.node) for role in facts.events.of(events.BecameLeader)),
        *((role.node, role.event, role.event.leader) for role in facts.events.of(events.BecameFollower)),
    ]
    for node, event, leader in roles:
        state = states.get((event.topic_id, event.partition_epoch))
        if state is None:
            problem = "which the controller never committed"
        elif (state.leader, state.leader_epoch) != (leader, event.leader_epoch):
            problem = f"and the controller had committed leader {broker(state.leader)} of epoch {state.leader_epoch}"
        else:
            continue
        yield Finding(
            event.partition_epoch,
            f"{facts}: broker {node} acted on partition epoch {event.partition_epoch} with leader {broker(leader)} of "
            f"epoch {event.leader_epoch}, {problem}",
        )
