"""Q5 MetadataStays: the log of the last leader of the quorum has every committed metadata record.

Committed batches are looked up in that log by end offset and by the epoch of the leader that appended them: a batch
with another epoch is another one. Laststand's controllers store events beside their records, which are compared with
the reported events; logs of Apache Kafka have no such events.
"""

from collections.abc import Iterator

from laststand.emulator.core import events
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.quorum import COMPARED, record_key, without_cause
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, cluster_check


@cluster_check(
    "Q5",
    "MetadataStays",
    source="KIP-595; Raft, figure 3",
    needs={Evidence.FINAL_LOGS},
    premises={Premise.QUORUM, Premise.LAST_LEADERS_LOG, Premise.QUORUM_DISKS},
)
def _find(cluster: ClusterFacts) -> Iterator[Finding]:
    quorum = cluster.quorum
    log = quorum.last_leaders_log
    if log is None:
        return
    last = quorum.elections[-1]
    epochs = {batch.end_offset: batch.leader_epoch for batch in log.batches}
    begins = {elected.event.quorum_epoch: elected.event.log_end_offset for elected in quorum.elections}
    for commit in quorum.commits_of_leaders():
        # Where ``commit_own_epoch`` is off, a leader may commit records of an earlier leader.
        is_own = commit.high_watermark > begins.get(commit.quorum_epoch, 0)
        if is_own and epochs.get(commit.high_watermark) != commit.quorum_epoch:
            offset = commit.high_watermark - 1
            yield Finding(
                offset,
                f"a record of epoch {commit.quorum_epoch} was committed at metadata offset {offset}, and is not in "
                f"the log of controller {last.node}, which leads last, in epoch {last.event.quorum_epoch}",
            )
    if cluster.is_seen_from_outside:
        return
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
