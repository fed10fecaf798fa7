"""M9 EpochMono: partition epochs rise by one with each change, leader epochs by one with each change of leader."""

from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import broker
from laststand.emulator.verification.tables.events import place_of
from laststand.emulator.verification.tables.timeline import CollectedEvent


@partition_check(
    "M9", "EpochMono", source="Kafka's PartitionChangeBuilder", needs={Evidence.EVENTS}, premises={Premise.CHANGED}
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    for change in facts.changes:
        new, old = change.new, change.old
        if old is None:
            continue
        rise = new.leader_epoch - old.leader_epoch
        is_another = new.leader != old.leader
        if new.partition_epoch != old.partition_epoch + 1 or rise not in (0, 1) or (is_another and rise != 1):
            yield Finding(
                new.metadata_offset,
                f"{facts} at metadata offset {new.metadata_offset}: leader epoch {old.leader_epoch} to "
                f"{new.leader_epoch}, partition epoch {old.partition_epoch} to {new.partition_epoch}, leader "
                f"{broker(old.leader)} to {broker(new.leader)}",
            )
    yield from _went_back(facts)


def _went_back(facts: PartitionFacts) -> Iterator[Finding]:
    highest: dict[tuple[str, int, int], int] = {}
    roles: list[CollectedEvent[events.BecameLeader] | CollectedEvent[events.BecameFollower]] = [
        *facts.events.of(events.BecameLeader),
        *facts.events.of(events.BecameFollower),
    ]
    for role in sorted(roles, key=place_of):
        process = (role.event.topic_id, role.node, role.incarnation)
        partition_epoch, before = role.event.partition_epoch, highest.get(process, -1)
        if partition_epoch < before:
            yield Finding(
                partition_epoch,
                f"{facts}: broker {role.node} applied partition epoch {partition_epoch} after {before}",
            )
        highest[process] = max(before, partition_epoch)
