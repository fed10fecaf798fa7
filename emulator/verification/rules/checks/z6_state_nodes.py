"""Z6 StateNodes: a state node's leader is in its ISR and changes only with the leader epoch, which never goes back."""

from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check


@partition_check(
    "Z6",
    "StateNodes",
    source="Kafka's ZkPartitionStateMachine and KafkaController",
    needs={Evidence.EVENTS},
    premises={Premise.COMMITTED},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    leaders: dict[tuple[str, int], set[int | None]] = {}
    for change in facts.changes:
        old, new = change.old, change.new
        leaders.setdefault((new.topic_id, new.leader_epoch), set()).add(new.leader)
        what = f"{facts}: write {new.metadata_offset}"
        if new.leader is not None and new.leader not in new.isr:
            yield Finding(new.leader_epoch, f"{what} made broker {new.leader} lead, and ISR {list(new.isr)}")
        if old is None:
            continue
        if new.leader_epoch < old.leader_epoch:
            yield Finding(
                new.leader_epoch, f"{what} went back from leader epoch {old.leader_epoch} to {new.leader_epoch}"
            )
        if new.leader_epoch == old.leader_epoch and new.leader != old.leader:
            yield Finding(new.leader_epoch, f"{what} changed the leader of epoch {new.leader_epoch}")
    for led in facts.events.of(events.BecameLeader):
        epoch = led.event.leader_epoch
        written = leaders.get((led.event.topic_id, epoch))
        if written is not None and led.node not in written:
            yield Finding(epoch, f"{facts}: broker {led.node} leads in epoch {epoch}, and its state node never said so")
