"""M11 ISRGrowth: an ISR grows only when its leader asks for it, or by the election of a leader.

If a reassignment may be cancelled with no replica in sync, one that remains is put into the ISR (S39).
"""

from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.core.types import ChangeReason
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import listed, words


@partition_check(
    "M11",
    "ISRGrowth",
    source="KIP-497; KIP-966, Controller behaviors",
    needs={Evidence.EVENTS},
    premises={Premise.ISR_GREW},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    for change in facts.changes:
        new, old = change.new, change.old
        if old is None or not set(new.isr) - set(old.isr) or new.reason is ChangeReason.ALTER_PARTITION:
            continue
        is_election = change.is_unclean or new.election is events.Election.ELR
        if not is_election or new.isr != (new.leader,):
            yield Finding(
                new.metadata_offset,
                f"{facts} at metadata offset {new.metadata_offset} ({words(new.reason)}): the ISR grew from "
                f"{listed(old.isr)} to {listed(new.isr)}",
                by=change.reported_by,
            )
