"""Describes a run's cluster for ``story.json``: processes, faults, steps, registrations. Nothing here is judged.

Here events of different nodes are ordered by time, as a picture does.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from laststand.emulator.core import events
from laststand.emulator.core.types import BrokerState
from laststand.emulator.verification.facts.cluster import ClusterFacts, begun_ns
from laststand.emulator.verification.story.run import (
    BrokenLink,
    Controllership,
    Fault,
    Heal,
    NodeProcess,
    PartitionStory,
    Registration,
    RunStory,
    Step,
)
from laststand.emulator.verification.tables.timeline import CollectedEvent

_NS_PER_US: Final = 1000
_STEP_CAUSE: Final = "step-"

_Process = tuple[int, int]
"""Node and incarnation."""


def time_us(time_ns: int, origin_ns: int) -> int:
    """Returns a time in microseconds since time 0 of the story."""
    return (time_ns - origin_ns) // _NS_PER_US


def run_story(cluster: ClusterFacts, partitions: Iterable[PartitionStory]) -> RunStory:
    """Returns the story of a run.

    Args:
        cluster: facts of the cluster.
        partitions: the stories of its partitions, by name.
    """
    origin_ns = cluster.origin_ns
    return RunStory(
        origin_ns=origin_ns,
        end_us=time_us(_end_ns(cluster, origin_ns), origin_ns),
        processes=tuple(_processes(cluster, origin_ns)),
        faults=tuple(_faults(cluster, origin_ns)),
        heals=tuple(_heals(cluster, origin_ns)),
        steps=tuple(
            Step(
                step=reached.event.step,
                text=reached.event.text,
                seen=reached.event.seen,
                time_us=time_us(reached.time_ns, origin_ns),
            )
            for reached in cluster.events.of(events.StepReached)
        ),
        registrations=tuple(
            Registration(
                broker=registered.event.broker_id,
                time_us=time_us(registered.time_ns, origin_ns),
                metadata_offset=registered.event.metadata_offset,
                is_first=registered.event.stored_broker_epoch is None,
                is_clean=registered.event.is_clean,
                event=cluster.place(registered),
            )
            for registered in cluster.registrations
        ),
        partitions=tuple(partitions),
        controllers=tuple(
            Controllership(
                broker=term.broker,
                controller_epoch=term.controller_epoch,
                begun_us=time_us(term.begun.time_ns, origin_ns),
                ended_us=None if term.ended is None else time_us(term.ended.time_ns, origin_ns),
                metadata_offset=term.begun.event.metadata_offset,
                event=cluster.place(term.begun),
            )
            for term in cluster.controllers.terms
        ),
        kafka_clients={
            client_id: name
            for started in cluster.events.of(events.NodeStarted)
            for name, client_id in started.event.kafka_clients.items()
        },
    )


def _end_ns(cluster: ClusterFacts, origin_ns: int) -> int:
    """Returns when the story ends: without the shutdown, which in virtual time may take no time."""
    for kind in (events.ClusterSettled, events.ShutdownBegan, events.RunEnded, events.StepReached):
        times = [each.time_ns for each in cluster.events.of(kind)]
        if times:
            return max(times) - (kind is events.ShutdownBegan)
    return origin_ns


def _processes(cluster: ClusterFacts, origin_ns: int) -> Iterator[NodeProcess]:
    started: dict[_Process, CollectedEvent[events.IncarnationStarted]] = {
        (each.event.started_node, each.event.started_incarnation): each
        for each in cluster.events.of(events.IncarnationStarted)
    }
    ended: dict[_Process, CollectedEvent[events.IncarnationEnded]] = {
        (each.event.ended_node, each.event.ended_incarnation): each
        for each in cluster.events.of(events.IncarnationEnded)
    }
    running: dict[_Process, int] = {}
    for change in cluster.events.of(events.BrokerStateChanged):
        if change.event.new is BrokerState.RUNNING:
            running.setdefault((change.node, change.incarnation), change.time_ns)
    for process in sorted(started.keys() | (cluster.started.keys() - _harness(cluster))):
        first, end = cluster.started.get(process), ended.get(process)
        begin = started.get(process) or first
        assert begin is not None, "a process is known by one of them"
        runs = running.get(process)
        yield NodeProcess(
            node=process[0],
            role="unknown" if first is None else first.event.role.value,
            incarnation=process[1],
            started_us=time_us(begin.time_ns, origin_ns),
            running_us=None if runs is None else time_us(runs, origin_ns),
            ended_us=None if end is None else time_us(end.time_ns, origin_ns),
            end=None if end is None else end.event.end,
            started_event=cluster.place(begin),
            ended_event=None if end is None else cluster.place(end),
        )


def _harness(cluster: ClusterFacts) -> frozenset[_Process]:
    return frozenset((each.node, each.incarnation) for each in cluster.events.of(events.IncarnationStarted))


def _faults(cluster: ClusterFacts, origin_ns: int) -> Iterator[Fault]:
    for injected, end in cluster.fault_periods:
        event = injected.event
        yield Fault(
            fault=event.fault,
            target=event.target,
            nodes=event.nodes,
            links=tuple(BrokenLink(source=link.source, target=link.target) for link in event.links),
            begun_us=time_us(begun_ns(injected), origin_ns),
            proved_us=None if event.proved_ns is None else time_us(event.proved_ns, origin_ns),
            healed_us=None if end is None else time_us(begun_ns(end), origin_ns),
            effect=event.effect,
            event=cluster.place(injected),
        )


def _heals(cluster: ClusterFacts, origin_ns: int) -> Iterator[Heal]:
    for healed in cluster.events.of(events.FaultHealed):
        cause_id = healed.event.cause_id
        number = cause_id.removeprefix(_STEP_CAUSE)
        yield Heal(
            fault=healed.event.fault,
            target=healed.event.target,
            begun_us=time_us(begun_ns(healed), origin_ns),
            step=int(number) if cause_id.startswith(_STEP_CAUSE) and number.isdigit() else None,
            event=cluster.place(healed),
        )
