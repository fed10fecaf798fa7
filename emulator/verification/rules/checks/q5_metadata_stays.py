"""Q5 MetadataStays: the log of whoever leads the quorum last has every metadata record that was committed."""

from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.quorum import COMPARED, record_key, without_cause
from laststand.emulator.verification.rules.check import ClusterCheck, Evidence, Finding, Premise


def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    quorum = cluster.quorum
    log = quorum.last_leaders_log
    if log is None:
        return
    last = quorum.elections[-1]
    kept = {record_key(event): without_cause(event) for event in log.events if type(event) in COMPARED}
    for reported in quorum.committed_records():
        key, event = record_key(reported.event), without_cause(reported.event)
        if kept.get(key) != event:
            what = _described(event)
            yield Finding(
                key[0],
                f"{what} was committed at metadata offset {key[0]}, and is not in the log of controller {last.node}, "
                f"which leads last, in epoch {last.event.quorum_epoch}",
            )


def _described(event: events.Event) -> str:
    match event:
        case events.PartitionChanged():
            return f"{event.topic}-{event.partition} with leader {event.leader} and ISR {list(event.isr)}"
        case events.BrokerFenced():
            return f"the fencing of broker {event.broker_id}"
        case events.BrokerRegistered():
            return f"the registration of broker {event.broker_id}"
        case _:
            return f"a {type(event).__name__}"


CHECK = ClusterCheck(
    check_id="Q5",
    name="MetadataStays",
    source="KIP-595; Raft, figure 3",
    needs=frozenset({Evidence.FINAL_LOGS}),
    premises=frozenset({Premise.QUORUM, Premise.LAST_LEADERS_LOG, Premise.QUORUM_DISKS, Premise.OWN_WORD}),
    find=_find,
)
