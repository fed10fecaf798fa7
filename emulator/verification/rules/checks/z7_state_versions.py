"""Z7 StateVersions: each write of a state node raises its version by one, and the leader epoch by at most one."""

from collections.abc import Iterator

from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check


@partition_check(
    "Z7",
    "StateVersions",
    source="KIP-497; ZooKeeper's compare-and-set by version",
    needs={Evidence.EVENTS},
    premises={Premise.CHANGED},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    for change in facts.changes:
        new, old = change.new, change.old
        if old is None or (new.leader, new.leader_epoch, new.isr, new.partition_epoch) == (
            old.leader,
            old.leader_epoch,
            old.isr,
            old.partition_epoch,
        ):
            continue  # the first write, or one of the topic's node
        rise = (new.partition_epoch - old.partition_epoch, new.leader_epoch - old.leader_epoch)
        if rise not in ((1, 0), (1, 1)):
            yield Finding(
                new.metadata_offset,
                f"{facts}: write {new.metadata_offset} took the state node from version {old.partition_epoch} to "
                f"{new.partition_epoch}, and from leader epoch {old.leader_epoch} to {new.leader_epoch}",
            )
