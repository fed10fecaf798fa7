"""M4 CandidateFloor: a partition keeps enough candidates for what its min ISR promises (KIP-966)."""

from collections.abc import Iterator
from typing import Final

from laststand.emulator.core.types import ChangeReason
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import listed, words

_TAKES_SOME_AWAY: Final = (
    ChangeReason.BROKER_REGISTERED,
    ChangeReason.FEATURES_CHANGED,
)


@partition_check(
    "M4", "CandidateFloor", source="KIP-966, ELR invariants", needs={Evidence.EVENTS}, premises={Premise.BELOW_MIN_ISR}
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    for change in facts.changes:
        new, old = change.new, change.old
        if old is None or not change.has_elr or change.is_unclean or new.reason in _TAKES_SOME_AWAY:
            continue
        had_enough = len(old.isr) + len(old.elr) >= new.effective_min_isr == old.effective_min_isr
        has_enough = len(new.isr) + len(new.elr) >= new.effective_min_isr
        if had_enough and not has_enough and set(old.replicas) <= set(new.replicas):
            yield Finding(
                new.metadata_offset,
                f"{facts} at metadata offset {new.metadata_offset} ({words(new.reason)}): ISR {listed(new.isr)} and "
                f"ELR {listed(new.elr)} have fewer than the {new.effective_min_isr} members required, before it was "
                f"ISR {listed(old.isr)} and ELR {listed(old.elr)}",
                by=change.reported_by,
            )
