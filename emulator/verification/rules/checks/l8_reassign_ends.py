"""L8 ReassignEnds: once every fault is over, no reassignment is left unfinished.

A partition that no replica may lead when the cluster settles cannot finish one, and is excused.
"""

from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import listed


@partition_check("L8", "ReassignEnds", source="KIP-455", premises={Premise.REASSIGNMENT, Premise.SETTLED})
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    for settled in facts.cluster.events.of(events.ClusterSettled):
        settled_at = settled.event.metadata_offset
        states = {c.new.topic_id: c.new for c in facts.changes if c.new.metadata_offset < settled_at}
        deleted = facts.cluster.deleted_topics if PROMISES["L8"].leaves_out(Exemption.DELETED_TOPICS) else {}
        for topic_id, state in states.items():
            is_moving = bool(state.adding_replicas or state.removing_replicas)
            if is_moving and state.leader is not None and topic_id not in deleted:
                yield Finding(
                    settled_at,
                    f"{facts} is still adding {listed(state.adding_replicas)} and removing "
                    f"{listed(state.removing_replicas)}",
                )
