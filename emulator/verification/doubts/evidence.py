"""Checks that the evidence is complete; anything missing makes a verdict ``unknown``.

A check can judge only what the logs contain. If a file is missing, has a gap, has an invalid line, or if the run did
not go as planned, then silence proves nothing. Each reason is a sentence; if it concerns one kind of evidence the
sentence names it, so that checks that need that kind become ``unknown``, too, instead of raising a false alarm.

One incomplete line is normal: the last line of a process that was killed while it wrote. Any other is a doubt.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import numpy as np

from laststand.emulator.core import events
from laststand.emulator.core.types import NodeRole, Witness
from laststand.emulator.verification.doubts.accounts import (
    contradictions_of_cluster,
    contradictions_of_partition,
    contradictions_of_plan,
    drivers_of,
    unknown_to_history,
)
from laststand.emulator.verification.doubts.doubt import Doubt
from laststand.emulator.verification.doubts.fencings import unexplained_fencings
from laststand.emulator.verification.doubts.message_faults import HOLD, faults_without_message
from laststand.emulator.verification.doubts.orders import unknown_orders
from laststand.emulator.verification.doubts.seals import alterations, newer_formats, seal_doubts
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.partition import NO_ACKS, PartitionFacts
from laststand.emulator.verification.reading.census import FileCensus, HistoryCensus
from laststand.emulator.verification.reading.metadata_log import contradictions_of_log
from laststand.emulator.verification.reading.run import RunEvidence
from laststand.emulator.verification.reading.zookeeper_log import contradictions_of_zookeeper
from laststand.emulator.verification.rules.check import Evidence
from laststand.emulator.verification.tables.timeline import Timeline
from laststand.emulator.verification.tables.vocabulary import tag

_SHOWN_CHARACTERS: Final = 80
_LEAVES_METADATA_LOGS: Final = ("process", "docker")
"""Drivers whose controllers write a log to disk."""
_KILLED: Final = frozenset({events.IncarnationEnd.KILLED, events.IncarnationEnd.POWER_LOST})


class Readings(msgspec.Struct, frozen=True, kw_only=True):
    """The gaps and contradictions in the evidence about one partition.

    Attributes:
        missing: brokers whose replica left no directory, once for each topic of that name.
        contradictions: a sentence for each pair of accounts of the partition that disagree.
        answers: sentences about answers of brokers that the history contradicts.
        is_unread: whether records were acknowledged and the final consumer did not read the partition to its end.
        error: the error of that consumer, if it recorded one.
        has_unclear_id: whether an event names the topic without its id, and several topics had that name.
        unasked: number of acknowledged records without an offset, after whose acknowledgement no read began.
        deleted: number of acknowledged records that may have been deleted although no step asked for it; 0 unless the
            only evidence is from clients.
    """

    topic: str
    partition: int
    missing: tuple[int, ...]
    is_unread: bool
    error: str | None
    contradictions: tuple[str, ...]
    answers: tuple[str, ...]
    has_unclear_id: bool
    deleted: int
    unasked: int


def readings_of(facts: PartitionFacts) -> Readings:
    """Returns the gaps and contradictions in the evidence about a partition."""
    missing = tuple(node for state in facts.states.values() for node in facts.missing_replicas(state))
    return Readings(
        topic=facts.topic,
        partition=facts.partition,
        missing=missing,
        is_unread=not facts.is_all_read and bool(np.any(facts.acked["acks"] != NO_ACKS)),
        error=max((read.error for read in facts.final_reads if read.error is not None), default=None),
        contradictions=tuple(contradictions_of_partition(facts)),
        answers=tuple(unknown_to_history(facts)),
        has_unclear_id=facts.has_unclear_id,
        deleted=facts.unexplained_deletions if facts.cluster.is_seen_by_clients_alone else 0,
        unasked=sum(batch.record_count for batch in facts.unplaced.unasked),
    )


def find_doubts(evidence: RunEvidence) -> tuple[Doubt, ...]:
    """Returns the doubts about a run that was read by one process, in a fixed order."""
    return doubts_of(evidence, [readings_of(partition) for partition in evidence.facts.partitions()])


def doubts_of(evidence: RunEvidence, readings: Sequence[Readings]) -> tuple[Doubt, ...]:
    """Returns the doubts about a run, in a fixed order.

    Args:
        evidence: the run's files, history and timeline.
        readings: of its partitions, by name.
    """
    timeline = evidence.timeline
    return (
        *newer_formats(evidence),
        *_about_harness(timeline, may_miss_steps=evidence.run.may_miss_steps),
        *doubts_about_files(timeline, evidence.files),
        *unknown_orders(evidence.facts.cluster),
        *_about_bugs(evidence.facts.cluster),
        *_about_controller(evidence),
        *_about_topics(evidence, readings),
        *_about_history(timeline, evidence.history),
        *seal_doubts(evidence),
        *alterations(evidence),
        *_about_accounts(evidence, readings),
        *_about_reads(readings),
        *unexplained_fencings(timeline),
    )


def _about_harness(timeline: Timeline, *, may_miss_steps: bool) -> Iterator[Doubt]:
    started = list(timeline.of(events.IncarnationStarted))
    ended = {(end.ended_node, end.ended_incarnation): end for end in timeline.of(events.IncarnationEnded)}
    is_seen_by_clients = any(node.witness is Witness.CLIENTS for node in timeline.of(events.NodeStarted))
    if not started and not is_seen_by_clients:
        yield Doubt(about=Evidence.EVENTS, sentence="the harness's event file is missing or names no process")
        return
    finish = list(timeline.of(events.RunEnded))
    if not finish:
        yield Doubt(about=None, sentence="the harness did not reach the end of the run")
    for end in finish:
        if end.problem is not None:
            yield Doubt(about=None, sentence=f"the plan did not reach its end: {end.problem}")
    idle = list(faults_without_message(timeline))
    for fault in timeline.of(events.FaultInjected):
        may_be_idle = may_miss_steps and fault.fault == HOLD  # a random plan may hold messages that are never sent
        if fault.effect is None or (fault in idle and not may_be_idle):
            yield Doubt(
                about=None,
                sentence=f"fault {fault.fault} on {fault.target} had no effect",
                node=fault.nodes[0] if fault.nodes else None,
            )
    for process in started:
        end_of_it = ended.get((process.started_node, process.started_incarnation))
        node, incarnation = process.started_node, process.started_incarnation
        name = f"incarnation {incarnation} of node {node}"
        if end_of_it is None:
            yield Doubt(
                about=Evidence.EVENTS,
                sentence=f"how {name} ended was not recorded",
                node=node,
                incarnation=incarnation,
            )
        elif end_of_it.end is events.IncarnationEnd.UNEXPECTED and end_of_it.exit_code is None:
            yield Doubt(
                about=None,
                sentence=f"{name} was ended by a signal that no step sent",
                node=node,
                incarnation=incarnation,
            )
        elif end_of_it.end is events.IncarnationEnd.UNEXPECTED:
            yield Doubt(
                about=None,
                sentence=f"{name} ended by itself with exit code {end_of_it.exit_code}",
                node=node,
                incarnation=incarnation,
            )
    own = {
        (each.started_node, each.started_incarnation)
        for each in timeline.of(events.IncarnationStarted)
        if each.switches
    }
    rules = {
        msgspec.json.encode(each.event.switches, order="sorted")
        for each in timeline.events
        if isinstance(each.event, events.NodeStarted)
        and each.event.switches
        and (each.node, each.incarnation) not in own
    }
    if len(rules) > 1:
        yield Doubt(about=None, sentence="the nodes of the run did not all have the same switches")


def _about_bugs(cluster: ClusterFacts) -> Iterator[Doubt]:
    """A node that continues after a bug proves no more than one that the bug ended."""
    for collected in cluster.events.of(events.OperationFailed):
        failed = collected.event
        yield Doubt(
            about=None,
            sentence=f"node {collected.node} failed at {failed.operation}, by a bug: {failed.error}",
            node=collected.node,
            incarnation=collected.incarnation,
        )


def doubts_about_files(timeline: Timeline, files: tuple[FileCensus, ...]) -> Iterator[Doubt]:
    """Yields the doubts about event files: missing files, and lines that are no events or belong to others."""
    found = {census.file_name: census for census in files if census.lines or census.torn}
    ends = {(end.ended_node, end.ended_incarnation): end.end for end in timeline.of(events.IncarnationEnded)}
    announced = {process.event_file.rpartition("/")[2]: process for process in timeline.of(events.IncarnationStarted)}
    for name in sorted(announced.keys() - found.keys()):
        yield Doubt(
            about=Evidence.EVENTS,
            sentence=f"event file {name} is missing or empty",
            file=f"events/{name}",
            node=announced[name].started_node,
            incarnation=announced[name].started_incarnation,
        )
    harness = {
        (collected.node, collected.incarnation) for collected in timeline.events if _is_of_harness(collected.event)
    }
    if len(set[str]().union(*(census.runs for census in files))) > 1:
        yield Doubt(about=Evidence.EVENTS, sentence="the events are not all of one run")
    for name, census in sorted(found.items()):
        process = announced.get(name)
        end = None
        if process is not None:
            key = (process.started_node, process.started_incarnation)
            end = ends.get(key)
            if census.parts and key not in census.parts:
                yield Doubt(
                    about=Evidence.EVENTS,
                    sentence=f"event file {name} has the events of another process",
                    file=f"events/{name}",
                )
        elif not census.parts.keys() <= harness:
            yield Doubt(
                about=Evidence.EVENTS,
                sentence=f"event file {name} is of no process that the harness started",
                file=f"events/{name}",
            )
        for sentence in _file_problems(census, end):
            yield Doubt(about=Evidence.EVENTS, sentence=f"event file {name} {sentence}", file=f"events/{name}")


def _is_of_harness(event: events.Event) -> bool:
    return isinstance(event, events.NodeStarted) and event.role is NodeRole.HARNESS


def _file_problems(census: FileCensus, end: events.IncarnationEnd | None) -> Iterator[str]:
    corrupt, samples = census.corrupt, list(census.samples)
    if census.torn is not None and end not in _KILLED:
        corrupt += 1
        samples.append(census.torn)
    if corrupt:
        yield f"has {corrupt} lines that are no events, such as {samples[0][:_SHOWN_CHARACTERS]!r}"
    if census.unknown_types:
        yield f"has events of unknown type {', '.join(sorted(census.unknown_types))}"
    if census.incomplete:
        yield f"has events with missing or impossible fields: {', '.join(sorted(census.incomplete))}"
    if len(census.parts) > 1:
        yield "mixes lines of several incarnations"
    for part in census.parts.values():
        if not part.is_gapless:
            yield f"has gaps: {part.count} events, numbered {part.first} to {part.last}"
        if part.first_type != tag(events.NodeStarted):
            yield f"begins with {part.first_type} instead of {tag(events.NodeStarted)}"
        if end is events.IncarnationEnd.STOPPED and part.last_type != tag(events.NodeStopped):
            yield f"ends with {part.last_type}, though the process was not killed"


def _about_controller(evidence: RunEvidence) -> Iterator[Doubt]:
    """Every metadata record leaves an event with its offset, so a missing event shows as a gap in the offsets."""
    for gone in evidence.facts.cluster.quorum.forgotten:
        sentence = (
            f"controllers forgot the metadata that they had committed from offset {gone.begin} to {gone.end - 1}, so "
            "that these offsets stand for two records each"
        )
        yield Doubt(about=Evidence.EVENTS, sentence=sentence, node=gone.elected.node)
    for sentence in evidence.contradictions:
        yield Doubt(about=Evidence.EVENTS, sentence=sentence)
    known = evidence.facts.cluster.kind.first_metadata_offset - 1
    for offset in sorted(evidence.facts.cluster.committed_offsets):
        if offset > known + 1:
            yield Doubt(
                about=Evidence.EVENTS,
                sentence=f"nothing is known of the metadata records {known + 1}-{offset - 1}",
                metadata_offset=known + 1,
            )
        known = offset


def _about_topics(evidence: RunEvidence, readings: Sequence[Readings]) -> Iterator[Doubt]:
    for topic in evidence.facts.cluster.names_used_again:
        sentence = f"topic {topic} was deleted and created again, and has no id that tells the two apart"
        yield Doubt(about=Evidence.TOPIC_IDS, sentence=sentence, topic=topic)
    for each in readings:
        if each.has_unclear_id:
            sentence = (
                f"what is told of {each.topic}-{each.partition} without an id may be of several topics of that name"
            )
            yield Doubt(about=Evidence.TOPIC_IDS, sentence=sentence, topic=each.topic, partition=each.partition)


def _about_history(timeline: Timeline, census: HistoryCensus) -> Iterator[Doubt]:
    for client in timeline.of(events.ClientStarted):
        if client.history_file.rpartition("/")[2] not in census.seals:
            yield Doubt(
                about=Evidence.HISTORY,
                sentence=f"history file {client.history_file} is missing",
                file=client.history_file,
            )
    if census.lines == 0:
        yield Doubt(about=Evidence.HISTORY, sentence="the history is missing or empty")
        return
    if census.corrupt:
        yield Doubt(about=Evidence.HISTORY, sentence=f"the history has {census.corrupt} lines that are no operations")
    if not census.is_gapless:
        whole = census.lines - census.corrupt
        yield Doubt(
            about=Evidence.HISTORY, sentence=f"the history has gaps: {whole} lines, numbered up to {census.last}"
        )
    if census.repeated:
        yield Doubt(about=Evidence.HISTORY, sentence=f"{census.repeated} sends were begun or completed more than once")
    if census.invoked.keys() != census.completed:
        yield Doubt(
            about=Evidence.HISTORY,
            sentence=f"{len(census.invoked)} sends were begun and {len(census.completed)} completed",
        )
    if not any(records for stream, records in census.acked.items() if stream.acks != NO_ACKS):
        yield Doubt(about=None, sentence="no record was acknowledged")


def _about_accounts(evidence: RunEvidence, readings: Sequence[Readings]) -> Iterator[Doubt]:
    for sentence in contradictions_of_plan(evidence.run, evidence.timeline):
        yield Doubt(about=None, sentence=sentence)
    if not evidence.facts.cluster.is_seen_from_outside:  # else the events were made from the same log
        yield from _about_metadata_logs(evidence)
    for node, log_of_server in evidence.zookeeper_logs.items():
        written = (each.event for each in evidence.facts.cluster.events.of(events.ZnodeWritten))
        changes = evidence.timeline.of(events.PartitionChanged)
        for sentence in contradictions_of_zookeeper(node, log_of_server, written, changes):
            yield Doubt(about=Evidence.EVENTS, sentence=sentence, node=node)
    for sentence in contradictions_of_cluster(evidence.facts.cluster, evidence.timeline):
        yield Doubt(about=Evidence.EVENTS, sentence=sentence)
    for each in readings:
        for sentence in each.contradictions:
            yield Doubt(about=Evidence.EVENTS, sentence=sentence, topic=each.topic, partition=each.partition)
        for sentence in each.answers:
            yield Doubt(about=Evidence.HISTORY, sentence=sentence, topic=each.topic, partition=each.partition)


def _about_metadata_logs(evidence: RunEvidence) -> Iterator[Doubt]:
    drivers = (evidence.run.driver, *drivers_of(evidence.timeline))
    is_on_disk = any(driver in _LEAVES_METADATA_LOGS for driver in drivers)
    for node in _nodes_of(NodeRole.CONTROLLER, evidence.timeline):
        log = evidence.metadata_logs.get(node)
        if log is not None:
            others = [other for each, other in evidence.metadata_logs.items() if each != node]
            for sentence in contradictions_of_log(node, log, evidence.facts.cluster, others=others):
                yield Doubt(about=Evidence.EVENTS, sentence=sentence, node=node)
        elif is_on_disk:
            yield Doubt(
                about=Evidence.FINAL_LOGS, sentence=f"the log of controller {node} on disk is missing", node=node
            )
    for node in _nodes_of(NodeRole.ZOOKEEPER, evidence.timeline):
        if is_on_disk and node not in evidence.zookeeper_logs:
            yield Doubt(
                about=Evidence.FINAL_LOGS, sentence=f"the log of ZooKeeper server {node} on disk is missing", node=node
            )


def _nodes_of(role: NodeRole, timeline: Timeline) -> list[int]:
    started = (
        collected
        for collected in timeline.events
        if isinstance(collected.event, events.NodeStarted) and collected.event.role is role
    )
    return sorted({collected.node for collected in started})


def _about_reads(readings: Sequence[Readings]) -> Iterator[Doubt]:
    missing: Counter[int] = Counter()
    for each in readings:
        missing.update(each.missing)
        if each.is_unread:
            why = "" if each.error is None else f": {each.error}"
            yield Doubt(
                about=None,
                sentence=f"the final consumer did not read {each.topic}-{each.partition}{why}",
                topic=each.topic,
                partition=each.partition,
            )
        if each.unasked:
            yield Doubt(
                about=None,
                sentence=f"{each.unasked} acknowledged records of {each.topic}-{each.partition} have no offset, and no "
                "read began after their acknowledgement",
                topic=each.topic,
                partition=each.partition,
            )
        if each.deleted:
            yield Doubt(
                about=None,
                sentence=f"{each.deleted} acknowledged records of {each.topic}-{each.partition} are below its log "
                "start or of another topic of that name, and no step asked for their deletion",
                topic=each.topic,
                partition=each.partition,
            )
    for node, count in sorted(missing.items()):
        yield Doubt(
            about=Evidence.FINAL_LOGS,
            sentence=f"the logs of broker {node} are missing ({count} partitions' replicas)",
            node=node,
        )
