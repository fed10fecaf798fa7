"""D3 CandidateCompleteness: a replica that may be elected has every committed record.

Judged at two moments: when a process that has opened its log is unfenced as a candidate, and at the end of the run, by
the final log. A replica whose disk lost data is left to D1 and D2, because the guarantee decides whether it may lack
records; so are records that some leader lacked.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from laststand.emulator.core import events
from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.core.types import ClusterKind
from laststand.emulator.verification.facts.batches import TermPlace
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.facts.quorum import NEW_DISK
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.rules.sentences import listed

_DISK_FAULTS: Final = ("power_loss", NEW_DISK)


class _Candidate(NamedTuple):
    """A replica that may be elected in a state, and the end of its log.

    Attributes:
        exempted_by: the exemption of the replica, if it has one.
    """

    state: events.PartitionChanged
    node: int
    log_end_offset: int
    exempted_by: Exemption | None


@partition_check(
    "D3",
    "CandidateCompleteness",
    source="KIP-966, ELR invariants",
    needs={Evidence.EVENTS, Evidence.FINAL_LOGS, Evidence.TOPIC_IDS},
    premises={Premise.HIGH_WATERMARK_MOVED},
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    committed = facts.committed
    damaged = set(_damaged(facts)) if PROMISES["D3"].leaves_out(Exemption.LOST_DISKS) else set()
    for state, node, log_end_offset, exemption in (*_unfenced(facts), *_final(facts)):
        if node not in _candidates(facts, state):
            continue
        if node in damaged:
            exemption = Exemption.LOST_DISKS
        elif node in _leaving(facts, state):
            exemption = Exemption.LEAVING_REPLICAS
        for high_watermark, of_commits in _kept(facts, committed.get(state.topic_id, {}), state):
            if log_end_offset < high_watermark:
                yield Finding(
                    log_end_offset,
                    f"{facts}: broker {node} may be elected by partition epoch {state.partition_epoch} (ISR "
                    f"{listed(state.isr)}, ELR {listed(state.elr)}), and its log ends at {log_end_offset}, though the "
                    f"high watermark had been at {high_watermark}",
                    exempted_by=exemption or of_commits,
                )
                break


def _candidates(facts: PartitionFacts, state: events.PartitionChanged) -> tuple[int, ...]:
    isr = tuple(member for member in state.isr if member in state.replicas)
    return (*isr, *state.elr) if facts.cluster.has_elr(state.metadata_offset) else isr


def _leaving(facts: PartitionFacts, state: events.PartitionChanged) -> Collection[int]:
    exempts = PROMISES["D3"].leaves_out(Exemption.LEAVING_REPLICAS) and facts.cluster.kind is ClusterKind.ZOOKEEPER
    return state.removing_replicas if exempts else ()


def _deleted_topics(facts: PartitionFacts) -> Mapping[str, int]:
    """Returns the metadata offset of the deletion, or of its request, from which on each topic id is left out."""
    deleted = facts.cluster.deleted_topics if PROMISES["D3"].leaves_out(Exemption.DELETED_TOPICS) else {}
    begun = facts.cluster.deletions_begun if PROMISES["D3"].leaves_out(Exemption.TOPICS_BEING_DELETED) else {}
    return {**deleted, **begun}


def _damaged(facts: PartitionFacts) -> Iterator[int]:
    """Yields the nodes whose disks may have lost data: by a power loss, or by a fault of the disk."""
    for ended in facts.cluster.events.of(events.IncarnationEnded):
        if ended.event.end is events.IncarnationEnd.POWER_LOST:
            yield ended.event.ended_node
    for fault in facts.cluster.events.of(events.FaultInjected):
        if fault.event.fault in _DISK_FAULTS and fault.event.target.isdigit():
            yield int(fault.event.target)


def _unfenced(facts: PartitionFacts) -> Iterator[_Candidate]:
    """Yields each replica when its process is first unfenced, with its log as that process opened it."""
    epochs: dict[int, tuple[int, int]] = {}
    for registration in facts.cluster.registrations:
        process = facts.cluster.process_of(registration.event)
        if process is not None:
            epochs[registration.event.broker_epoch] = process
    found = {
        (log.node, log.incarnation, log.event.topic_id): log for log in reversed([*facts.events.of(events.LogOpened)])
    }
    seen: set[tuple[int, int]] = set()  # a process whose session in ZooKeeper expired registers again
    for unfenced in sorted(facts.cluster.events.of(events.BrokerUnfenced), key=lambda each: each.event.metadata_offset):
        broker_epoch, at = unfenced.event.broker_epoch, unfenced.event.metadata_offset
        process = epochs.get(broker_epoch)
        if process is None or process in seen:
            continue
        seen.add(process)
        for topic_id, state in {c.new.topic_id: c.new for c in facts.changes if c.new.metadata_offset < at}.items():
            opened = found.get((*process, topic_id))
            if opened is not None and _deleted_topics(facts).get(topic_id, at) >= at:
                yield _Candidate(state, opened.node, opened.event.log_end_offset, None)


def _final(facts: PartitionFacts) -> Iterator[_Candidate]:
    """Yields each replica at the end of the run; if its last process was killed, it is exempt."""
    for log in facts.final_logs:
        state = facts.states.get(log.topic_id or "")
        incarnation = facts.cluster.last_incarnation.get(log.node)
        if state is None or incarnation is None:
            continue
        is_exempt = PROMISES["D3"].leaves_out(Exemption.KILLED_PROCESSES)
        is_killed = (log.node, incarnation) in facts.cluster.killed
        exemption = Exemption.KILLED_PROCESSES if is_exempt and is_killed else None
        if state.topic_id not in _deleted_topics(facts):
            yield _Candidate(state, log.node, log.log_end_offset, exemption)


def _kept(
    facts: PartitionFacts, committed: Mapping[TermPlace, int], state: events.PartitionChanged
) -> tuple[tuple[int, None], tuple[int, Exemption]]:
    """Returns the offsets up to which a candidate must have the log: committed before, and lacked by no leader since.

    The first result counts commits since the last unclean election, the second one all commits; earlier ones are
    exempt.
    """
    kept = kept_before = 0
    for place, high_watermark in committed.items():
        leader_epoch = place.leader_epoch
        lacking = facts.first_lacking(state.topic_id, after=place, last_offset=high_watermark - 1)
        is_lost = lacking is not None and lacking.leader_epoch <= state.leader_epoch
        unclean = PROMISES["D3"].leaves_out(Exemption.UNCLEAN_ELECTIONS) and any(
            leader_epoch < change.new.leader_epoch <= state.leader_epoch
            for change in facts.changes
            if change.is_unclean and change.new.topic_id == state.topic_id
        )
        if leader_epoch < state.leader_epoch and not is_lost:
            kept_before = max(kept_before, high_watermark)
            kept = kept if unclean else max(kept, high_watermark)
    return (kept, None), (kept_before, Exemption.UNCLEAN_ELECTIONS)
