"""M10 APAccept: the controller takes an ISR only from the leader, based on its current state (KIP-497, KIP-903)."""

from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.core.types import ChangeReason
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.facts.partition_evidence import NO_ERROR
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import broker, listed


@partition_check(
    "M10",
    "APAccept",
    source="KIP-497; KIP-841; KIP-903; Kafka's ReplicationControlManager.validateAlterPartitionData",
    needs={Evidence.EVENTS},
    premises={Premise.PROPOSAL_ACCEPTED},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    states: dict[tuple[str, int], events.PartitionChanged] = {
        (change.new.topic_id, change.new.partition_epoch): change.new for change in facts.changes
    }
    for decided in facts.events.of(events.AlterPartitionDecided):
        event = decided.event
        if event.error != NO_ERROR:
            continue
        on = states.get((event.topic_id, event.partition_epoch))
        made = states.get((event.topic_id, event.partition_epoch + 1))
        for problem in (_problem(event, on), *_stale_members(event, made, facts.cluster)):
            if problem is not None:
                yield Finding(
                    event.partition_epoch,
                    f"{facts}: an AlterPartition of broker {event.broker_id} to ISR {listed(event.proposed_isr)} on "
                    f"partition epoch {event.partition_epoch} was accepted, though {problem}",
                )


def _problem(event: events.AlterPartitionDecided, on: events.PartitionChanged | None) -> str | None:
    if on is None:
        return "there was no such epoch"
    if on.leader != event.broker_id:
        return f"{broker(on.leader)} led"
    if on.leader_epoch != event.leader_epoch:
        return f"the leader epoch was {on.leader_epoch}"
    if event.broker_id not in event.proposed_isr:
        return "the leader is not in it"
    if set(event.proposed_isr) - set(on.replicas):
        return "it has a broker that is no replica"
    return None


def _stale_members(
    event: events.AlterPartitionDecided, made: events.PartitionChanged | None, cluster: ClusterFacts
) -> Iterator[str]:
    if made is None or made.reason is not ChangeReason.ALTER_PARTITION:
        return
    registered = cluster.registered_before(made.metadata_offset)
    for member, broker_epoch in zip(event.proposed_isr, event.broker_epochs, strict=False):
        if broker_epoch is not None and member in registered and registered[member].broker_epoch != broker_epoch:
            yield f"broker {member} was registered under epoch {registered[member].broker_epoch}, not {broker_epoch}"
