"""M16 Reassign: a reassignment completes only when the replicas that its rule names are in sync (KIP-455, KIP-966).

KIP-966: all added replicas, and min ISR members. Kafka up to 4.2: every target replica (KAFKA-15665). Kafka since 4.3:
all added replicas, if they are at least as many as the removed ones, or else every target replica (KAFKA-19975).
"""

from collections.abc import Iterator, Mapping

from laststand.emulator.core import events
from laststand.emulator.core.types import ChangeReason
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import listed


@partition_check(
    "M16",
    "Reassign",
    source="KIP-455; KIP-966, Other behaviors; KAFKA-15665; "
    "Kafka's PartitionReassignmentReplicas and PartitionChangeBuilder",
    needs={Evidence.EVENTS},
    premises={Premise.REASSIGNMENT_COMPLETED},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    for change in facts.changes:
        new, old = change.new, change.old
        if old is None:
            continue
        problems = [
            _problem(new, old, rules, is_unclean=change.is_unclean)
            for rules in facts.cluster.controllers_rules or ({},)
        ]
        # With controllers of several eras, the rules of none allow this completion.
        if (problem := problems[-1]) is not None and all(problems):
            yield Finding(
                new.metadata_offset,
                f"{facts} at metadata offset {new.metadata_offset}: from replicas {listed(old.replicas)} (adding "
                f"{listed(old.adding_replicas)}, removing {listed(old.removing_replicas)}) to {listed(new.replicas)} "
                f"with ISR {listed(new.isr)}, {problem}",
            )


def _problem(
    new: events.PartitionChanged, old: events.PartitionChanged, switches: Mapping[str, str], *, is_unclean: bool
) -> str | None:
    was_moving = bool(old.adding_replicas or old.removing_replicas)
    is_moving = bool(new.adding_replicas or new.removing_replicas)
    if was_moving and not is_moving and new.reason is not ChangeReason.REASSIGNMENT:
        asks_for_min_isr = switches.get("reassignment_requires_min_isr") == "on"
        is_smaller = not asks_for_min_isr and len(old.adding_replicas) < len(old.removing_replicas)
        needs_all = switches.get("reassignment_needs_all") != "off" or is_smaller
        needed = new.replicas if needs_all else sorted(set(old.adding_replicas) - set(old.removing_replicas))
        in_sync = old.isr if is_unclean and not asks_for_min_isr else new.isr
        missing = [replica for replica in needed if replica not in in_sync]
        if missing:
            return f"without {', '.join(map(str, missing))} in the ISR"
        required = min(new.effective_min_isr, len(new.replicas))
        if asks_for_min_isr and len(new.isr) < required:
            return f"fewer than the {required} members required"
        if set(new.replicas) - set(old.replicas) or set(new.replicas) & set(old.removing_replicas):
            return "which is not the target"
    if set(old.replicas) - set(new.replicas) and new.leader_epoch == old.leader_epoch:
        return "in the same leader epoch"
    return None
