"""Compares independent accounts of a run, so that one of them cannot be altered alone.

A broker's actions show in the history, in the controller's commits, and in its own files; the harness's actions show in
the nodes' reports. Each sentence here is about two of these that contradict each other.
"""

from collections.abc import Hashable, Iterator, Mapping
from typing import Final

import msgspec
import numpy as np

from laststand.emulator.core import events
from laststand.emulator.core.history import OperationType
from laststand.emulator.core.promises import rules_named_beside
from laststand.emulator.core.types import ClusterKind, MessageFate, NodeRole, TruncationReason
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.reading.run_directory import RunDirectory
from laststand.emulator.verification.tables.columns import NONE, Mask
from laststand.emulator.verification.tables.events import place_of
from laststand.emulator.verification.tables.matching import are_among, groups_of
from laststand.emulator.verification.tables.timeline import CollectedEvent, Timeline

_ALONE: Final[tuple[type[events.Event], ...]] = (
    events.BrokerRegistered,
    events.BrokerFenced,
    events.BrokerUnfenced,
    events.ControlledShutdownStarted,
    events.LogDirectoriesChanged,
    events.TopicCreated,
    events.TopicDeleted,
    events.ConfigChanged,
    events.FeatureChanged,
    events.ProducerIdsAllocated,
    events.PartitionChanged,
)
"""Events that exclude each other for one record. (A record that clears an ELR has several others beside its own.)"""

_SEEN: Final[tuple[type[events.Event], ...]] = (
    events.IncarnationEnded,
    events.FaultInjected,
    events.FaultHealed,
    events.ClusterSettled,
)
"""Events of the harness with the metadata that was committed by then."""

_RESTORE: Final = "restore"
"""The name of the ending in which the harness heals all faults."""
_ISOLATION: Final = "isolate"
_OF_PROCESSES: Final = ("pause", "disconnect")
_LASTING_ON_NODES: Final = (_ISOLATION, *_OF_PROCESSES)
"""Faults of nodes that last until they are healed."""


def contradictions_of_cluster(cluster: ClusterFacts, timeline: Timeline) -> Iterator[str]:
    """Yields a sentence for each pair of accounts of a cluster that contradict each other."""
    yield from _of_processes(timeline)
    yield from _of_faults(cluster)
    yield from _of_records(cluster)


def contradictions_of_plan(run: RunDirectory, timeline: Timeline) -> Iterator[str]:
    """Yields a sentence for each difference between ``cluster.yaml`` and what the harness or a node recorded."""
    for driver in drivers_of(timeline):
        if run.driver is None:
            yield f"cluster.yaml is missing or does not say what played the run: by the harness driver={driver}"
        elif run.driver != driver:
            yield f"cluster.yaml has driver={run.driver}, and the harness driver={driver}"
    own = {
        (int(each.started_node), each.started_incarnation): each.switches
        for each in timeline.of(events.IncarnationStarted)
        if each.switches
    }
    planned = dict(run.switches)
    for collected, started in _started_nodes(timeline):
        given = own.get((collected.node, collected.incarnation))
        if given is not None:
            for name in _differing(given, started):
                yield (
                    f"the harness gave incarnation {collected.incarnation} of node {collected.node} "
                    f"{name}={given[name]}, and it had {name}={started.switches[name]}"
                )
            continue
        for name in _differing(planned, started):
            yield (
                f"cluster.yaml has {name}={planned[name]}, "
                f"and incarnation {collected.incarnation} of node {collected.node} {name}={started.switches[name]}"
            )


def _differing(given: Mapping[str, str], started: events.NodeStarted) -> list[str]:
    """Returns the names of the rules for which a node reported another value than the one it was given."""
    return sorted(name for name in given.keys() & started.switches.keys() if given[name] != started.switches[name])


def drivers_of(timeline: Timeline) -> list[str]:
    """Returns the drivers that the harness recorded for a run; empty if it recorded none."""
    return sorted({started.driver for started in timeline.of(events.NodeStarted) if started.driver is not None})


def contradictions_of_partition(facts: PartitionFacts) -> Iterator[str]:
    """Yields a sentence for each pair of accounts of a partition that contradict each other."""
    yield from _of_acknowledgements(facts)
    yield from _of_leaders(facts)
    yield from _of_log_starts(facts)
    yield from _of_deleted_topics(facts)


def unknown_to_history(facts: PartitionFacts) -> Iterator[str]:
    """Yields a sentence for each kind of contradiction between brokers' answers to sends and the clients' history."""
    answered, sends = facts.answered, _AnsweredSends(facts)
    stranger = np.flatnonzero(~sends.are_known)
    for first in answered.rows(stranger[:1]):
        yield (
            f"{facts}: {len(stranger)} sends that brokers answered are in no history, "
            f"such as that at offset {first.event.base_offset} of broker {first.node}"
        )
    failed = np.flatnonzero(sends.are_of(OperationType.FAIL))
    is_twice = any(
        collected.event.fate is MessageFate.DUPLICATED
        for collected in facts.cluster.events.of(events.MessageIntercepted)
    )
    for first in answered.rows(failed[:1]) if not is_twice else ():
        yield (
            f"{facts}: {len(failed)} sends certainly failed by the history, and brokers answered them without error, "
            f"such as that at offset {first.event.base_offset} of broker {first.node}"
        )


def unseen_records(facts: PartitionFacts) -> int:
    """Returns the number of acknowledged records whose client did not see the acknowledgement."""
    sends = _AnsweredSends(facts)
    unseen = np.flatnonzero(sends.are_known & ~sends.are_of(OperationType.OK))
    _, first = np.unique(sends.numbers[unseen], return_index=True)
    return int(facts.answered["record_count"][unseen[first]].sum())


class _AnsweredSends:
    """The answers without error that brokers gave to sends of a partition.

    Attributes:
        numbers: for each answer, the number of its send.
        are_known: for each answer, whether a history contains its send.
    """

    def __init__(self, facts: PartitionFacts) -> None:
        names = dict[Hashable, int]()
        self._sent = facts.sent
        self._known = facts.sent.numbers("operation_id", names)
        self.numbers = facts.answered.numbers("cause_id", names)
        self.are_known: Mask = np.isin(self.numbers, self._known)

    def are_of(self, type_: OperationType) -> Mask:
        """Returns, for each answer, whether a history records this type of outcome for its send."""
        return np.isin(self.numbers, self._known[self._sent.has("type", type_)])


def _of_processes(timeline: Timeline) -> Iterator[str]:
    for end in timeline.of(events.IncarnationEnded):
        if end.end is events.IncarnationEnd.STOPPED and end.exit_code:
            yield (
                f"incarnation {end.ended_incarnation} of node {end.ended_node} stopped in order "
                f"and with exit code {end.exit_code}"
            )
    for collected, started in _started_nodes(timeline):
        if missing := sorted(rules_named_beside(started.switches) - started.switches.keys()):
            yield f"node {collected.node} does not say which rule it had: {', '.join(missing)}"


def _started_nodes(timeline: Timeline) -> Iterator[tuple[CollectedEvent[events.Event], events.NodeStarted]]:
    """Yields each start of a controller or broker."""
    for collected in timeline.events:
        started = collected.event
        if isinstance(started, events.NodeStarted) and started.role is not NodeRole.HARNESS:
            yield collected, started


class _Broken(msgspec.Struct, kw_only=True):
    """A fault that is still in force.

    Attributes:
        rejoined: nodes to which an isolated node has a healed link again.
    """

    fault: events.FaultInjected
    rejoined: set[int] = msgspec.field(default_factory=set)

    def note(self, healed: events.FaultHealed) -> None:
        """Records the nodes to which the isolated node has a link again."""
        ends = ({link.source, link.target} for link in healed.links)
        self.rejoined.update(*(pair for pair in ends if pair & set(self.fault.nodes)))

    def is_mended_by(self, healed: events.FaultHealed, brokers: set[int]) -> bool:
        """Returns whether the fault is healed; an isolation also is once the node has links to all brokers again."""
        if self.fault.fault == _ISOLATION and self.rejoined and brokers <= self.rejoined:
            return True
        return healed.mends(self.fault)

    def is_over_by(self, end: events.IncarnationEnded) -> bool:
        """Returns whether the fault ended with the process that it affected; faults of links outlast processes."""
        return self.fault.fault in _OF_PROCESSES and end.ended_node in self.fault.nodes


def _of_faults(cluster: ClusterFacts) -> Iterator[str]:
    """Faults must be healed before the cluster settles, and a harness that restores the cluster must see it settle."""
    relevant: list[
        CollectedEvent[
            events.NodeStarted
            | events.FaultInjected
            | events.FaultHealed
            | events.IncarnationEnded
            | events.ClusterSettled
        ]
    ] = [
        *(start for start in cluster.started.values() if start.event.role is NodeRole.HARNESS),
        *cluster.events.of(events.FaultInjected),
        *cluster.events.of(events.FaultHealed),
        *cluster.events.of(events.IncarnationEnded),
        *cluster.events.of(events.ClusterSettled),
    ]
    brokers = {start.node for start in cluster.started.values() if start.event.role is NodeRole.BROKER}
    broken: list[_Broken] = []
    for each in sorted(relevant, key=place_of):
        match each.event:
            case events.NodeStarted():
                broken = []  # processes and proxies end with their harness
            case events.FaultInjected() as fault:
                if fault.effect is not None and (fault.links or fault.fault in _LASTING_ON_NODES):
                    broken.append(_Broken(fault=fault))
            case events.FaultHealed() as healed:
                for one in broken:
                    one.note(healed)
                broken = [one for one in broken if not one.is_mended_by(healed, brokers)]
            case events.IncarnationEnded() as end:
                broken = [one for one in broken if not one.is_over_by(end)]
            case events.ClusterSettled():
                for one in broken:
                    fault = one.fault
                    yield f"the cluster settled, and fault {fault.fault} on {fault.target} was not mended"
    is_whole = any(end.event.problem is None for end in cluster.events.of(events.RunEnded))
    is_restored = any(start.event.ending == _RESTORE for start in cluster.started.values())
    if is_whole and is_restored and not any(cluster.events.of(events.ClusterSettled)):
        yield "the harness restored the cluster at the end, and did not see it settle"


def _of_records(cluster: ClusterFacts) -> Iterator[str]:
    end = max(cluster.committed_offsets, default=-1) + 1
    for node, applied in sorted(cluster.last_applied.items()):
        if applied.end_offset > end:
            yield (
                f"broker {node} applied metadata up to {applied.end_offset}, "
                f"and the controller tells of no record from {end} on"
            )
    seen = max((offset for kind in _SEEN for offset in map(_offset_of, cluster.events.of(kind))), default=0)
    if seen > end:
        yield f"the harness saw metadata up to {seen}, and the controller tells of no record from {end} on"
    if cluster.kind is ClusterKind.ZOOKEEPER:
        return  # one transaction may have several events
    kinds: dict[int, type[events.Event]] = {}
    for kind in _ALONE:
        for offset in sorted(map(_offset_of, cluster.events.of(kind))):
            other = kinds.setdefault(offset, kind)
            if other is not kind and not cluster.quorum.is_forgotten(offset):
                yield f"metadata record {offset} is {other.__name__} and {kind.__name__}"


def _offset_of(collected: CollectedEvent[events.Event]) -> int:
    offset = getattr(collected.event, "metadata_offset", None)
    return offset if isinstance(offset, int) else 0


def _of_acknowledgements(facts: PartitionFacts) -> Iterator[str]:
    """No message leaves a broker before the event about it is written."""
    if facts.cluster.is_seen_from_outside:
        return
    sent, answered, causes = facts.sent, facts.answered, dict[Hashable, int]()
    is_known = are_among(
        [sent["node"], sent["base_offset"], sent.numbers("operation_id", causes)],
        [answered["node"], answered["base_offset"], answered.numbers("cause_id", causes)],
    )
    is_acked, is_somewhere = sent.has("type", OperationType.OK), sent["base_offset"] != NONE
    unknown = np.flatnonzero(is_acked & is_somewhere & ~is_known)
    for first in sent.rows(unknown[:1]):
        yield (
            f"{facts}: {len(unknown)} acknowledgements are in the history and not in the events of who gave them, "
            f"such as that of offset {first.base_offset} by broker {first.node}"
        )
    nowhere = int(np.sum(is_acked & (sent["acks"] != 0) & ~is_somewhere))
    if nowhere:
        yield f"{facts}: {nowhere} acknowledgements name no offset"


def _of_leaders(facts: PartitionFacts) -> Iterator[str]:
    led = {
        (took.node, took.incarnation, took.event.topic_id, took.event.leader_epoch)
        for took in facts.events.of(events.BecameLeader)
    }
    batches = facts.events.rows(events.BatchAppended)
    own = batches.only(batches.has("role", events.AppendRole.LEADER))
    terms = groups_of(own["node"], own["incarnation"], own["topic_id"], own["current_leader_epoch"])
    acted = {
        (each.node, each.incarnation, each.event.topic_id, each.event.current_leader_epoch)
        for each in own.rows(np.array([places[0] for places in terms], np.int64))
    }
    for node, incarnation, _, leader_epoch in sorted(acted - led):
        yield (
            f"{facts}: incarnation {incarnation} of broker {node} appended as leader of epoch {leader_epoch}, "
            "and never became it"
        )


def _of_log_starts(facts: PartitionFacts) -> Iterator[str]:
    """The final log of a node that stopped in order must start at the log start offset that its events record.

    Nodes that write no events themselves are not checked.
    """
    if facts.cluster.is_seen_from_outside:
        return
    about_logs: list[CollectedEvent[events.PartitionEvent]] = [
        *facts.events.of(events.LogOpened),
        *facts.events.of(events.LogStartOffsetRaised),
        *facts.events.of(events.LogTruncated),
        *facts.events.of(events.LogDeleted),
    ]
    starts: dict[tuple[int, str], int] = {}
    for each in sorted(about_logs, key=place_of):
        key, event = (each.node, each.event.topic_id), each.event
        match event:
            case events.LogOpened():
                starts[key] = event.log_start_offset
            case events.LogStartOffsetRaised():
                starts[key] = event.new
            case events.LogTruncated():
                if event.reason is TruncationReason.RESTARTED or event.new_end_offset < starts.get(key, 0):
                    starts[key] = event.new_end_offset
            case _:
                starts.pop(key, None)
    for log in facts.final_logs:
        recorded_start = starts.get((log.node, log.topic_id or ""))
        if log.is_clean and recorded_start is not None and recorded_start != log.log_start_offset:
            yield (
                f"{facts}: the final log of broker {log.node} starts at {log.log_start_offset}, "
                f"and by its events at {recorded_start}"
            )


def _of_deleted_topics(facts: PartitionFacts) -> Iterator[str]:
    """The final consumer cannot read a partition to its end if the topic was deleted.

    Names that several topics had are left out: a client with old metadata names the deleted topic, but reads its
    successor.
    """
    deleted = facts.cluster.deleted_topics
    if facts.topic in facts.cluster.names_used_again:
        return
    if facts.states and facts.states.keys() <= deleted.keys() and facts.is_all_read:
        yield f"{facts}: the final consumer read it, and its topic was deleted"
