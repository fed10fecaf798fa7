"""M7 Recovering: after an unclean election the state is RECOVERING until the leader has recovered (KIP-704).

Kafka also stores that state, though it acts on it nowhere; M18 has what a leader must not do meanwhile.
"""

from collections.abc import Iterator

from laststand.emulator.core.types import ChangeReason, LeaderRecoveryState
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.facts.partition_evidence import Change
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import broker, listed, words


@partition_check("M7", "Recovering", source="KIP-704", needs={Evidence.EVENTS}, premises={Premise.UNCLEAN_ELECTION})
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    for change in facts.changes:
        problem = _problem(change)
        if problem is not None:
            new = change.new
            yield Finding(
                new.metadata_offset,
                f"{facts} at metadata offset {new.metadata_offset} ({words(new.reason)}): {problem}",
            )


def _problem(change: Change) -> str | None:
    new = change.new
    was = None if change.old is None else change.old.leader_recovery_state
    if new.leader_recovery_state is LeaderRecoveryState.RECOVERING:
        if len(new.isr) > 1:
            return f"RECOVERING with ISR {listed(new.isr)}"
        if was is LeaderRecoveryState.RECOVERED and not change.is_unclean:
            return "RECOVERING without an unclean election"
        return None
    was_ended = was is LeaderRecoveryState.RECOVERING and new.reason is not ChangeReason.ALTER_PARTITION
    if change.is_unclean and change.has_recovery_state and (new.leader is not None or was_ended):
        return f"{broker(new.leader)} was elected uncleanly and need not recover"
    return "RECOVERED without an AlterPartition of the leader" if was_ended else None
