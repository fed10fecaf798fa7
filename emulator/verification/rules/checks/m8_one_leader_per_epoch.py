"""M8 OneLeaderPerEpoch: an epoch has one leader, and every batch of that epoch comes from it."""

from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.tables.matching import groups_of


@partition_check(
    "M8",
    "OneLeaderPerEpoch",
    source="Raft (Ongaro and Ousterhout 2014), Election Safety; KIP-101",
    needs={Evidence.TOPIC_IDS},
    premises={Premise.LED},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    leaders: dict[tuple[str, int], set[tuple[int, str]]] = {}
    for change in facts.changes:
        new = change.new
        if new.leader is not None:
            leaders.setdefault((new.topic_id, new.leader_epoch), set()).add((new.leader, "by the controller"))
    for led in facts.events.of(events.BecameLeader):
        key = (led.event.topic_id, led.event.leader_epoch)
        leaders.setdefault(key, set()).add((led.node, "by its own word"))
    batches = facts.events.rows(events.BatchAppended)
    for places in groups_of(batches["topic_id"], batches["leader_epoch"], batches["node"], batches["role"]):
        [appended] = batches.rows(places[:1])
        if appended.event.role is events.AppendRole.LEADER:
            key = (appended.event.topic_id, appended.event.leader_epoch)
            leaders.setdefault(key, set()).add((appended.node, "by what it appended"))
    for (_, leader_epoch), found in leaders.items():
        if len({leader for leader, _ in found}) > 1:
            sources = ", ".join(sorted(f"broker {leader} {source}" for leader, source in found))
            yield Finding(leader_epoch, f"{facts} epoch {leader_epoch} has more than one leader: {sources}")
