"""M19 CancelAtMinISR: a reassignment is cancelled only if min ISR of the remaining replicas are in sync (KIP-966)."""

from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.core.types import ChangeReason
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import listed


@partition_check(
    "M19",
    "CancelAtMinISR",
    source="KIP-966, Other behaviors",
    needs={Evidence.EVENTS},
    premises={Premise.REASSIGNMENT_CANCELLED},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    for change in facts.changes:
        new, old = change.new, change.old
        if old is None or not _is_cancelled(new, old):
            continue
        required = min(new.effective_min_isr, len(new.replicas))
        if len(new.isr) < required:
            yield Finding(
                new.metadata_offset,
                f"{facts} at metadata offset {new.metadata_offset}: the reassignment that was adding "
                f"{listed(old.adding_replicas)} was cancelled with ISR {listed(new.isr)}, fewer than the {required} "
                "members required",
                by=change.reported_by,
            )


def _is_cancelled(new: events.PartitionChanged, old: events.PartitionChanged) -> bool:
    was_moving = bool(old.adding_replicas or old.removing_replicas)
    is_moving = bool(new.adding_replicas or new.removing_replicas)
    is_back = set(new.replicas) == set(old.replicas) - set(old.adding_replicas)
    return was_moving and not is_moving and is_back and new.reason is ChangeReason.REASSIGNMENT
