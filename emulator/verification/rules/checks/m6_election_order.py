"""M6 ElectionOrder: leaders come from the ISR, else from the ELR, and only then uncleanly (KIP-966)."""

from collections.abc import Iterator
from typing import Final

from laststand.emulator.core import events
from laststand.emulator.core.types import ChangeReason
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.facts.partition_evidence import UNCLEAN
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import broker, listed

_CHANGES_THE_ISR: Final = (ChangeReason.ALTER_PARTITION, ChangeReason.REASSIGNMENT)


@partition_check(
    "M6",
    "ElectionOrder",
    source="KIP-966, Unclean recovery; Kafka's PartitionChangeBuilder",
    needs={Evidence.EVENTS},
    premises={Premise.ELECTED},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    for change in facts.changes:
        new, old = change.new, change.old
        if old is None or new.leader is None or new.leader_epoch == old.leader_epoch:
            continue
        problem = _problem(new, old, new.leader, facts.cluster)
        if problem is not None:
            yield Finding(
                new.metadata_offset,
                f"{facts} at metadata offset {new.metadata_offset}: leader {broker(new.leader)} {problem}; before it "
                f"was ISR {listed(old.isr)} and ELR {listed(old.elr)}",
            )


def _problem(
    new: events.PartitionChanged, old: events.PartitionChanged, leader: int, cluster: ClusterFacts
) -> str | None:
    is_alone = new.isr == (leader,)
    if new.election is events.Election.ISR:
        if leader not in new.isr:
            return "is not in the ISR"
        if new.reason not in _CHANGES_THE_ISR and leader not in old.isr:
            return "was not in the ISR"
    if new.election is events.Election.ELR:
        if leader not in old.elr:
            return "was not in the ELR"
        if not is_alone:
            return "shares its ISR, which had to be empty"
    if new.election in UNCLEAN:
        if not is_alone:
            return "shares its ISR, though it was elected uncleanly"
        candidates = [
            candidate
            for candidate in {*old.isr, *old.elr} - {leader}
            if candidate != new.broker_id and cluster.is_active(candidate, new.metadata_offset)
        ]
        if candidates and new.reason is not ChangeReason.ELECT_LEADERS:
            return f"was elected uncleanly, though broker {max(candidates)} was active and had every record"
    return "was elected, though there was no candidate" if new.election is events.Election.NO_CANDIDATE else None
