"""A run as traces for the TLA+ specification of ``docs/tla``: one for each of its partitions.

::

    ---- MODULE Runs ----
    EXTENDS Trace
    Traces == <<
    <<
    [action |-> "Start", at |-> "0-0:0", broker |-> 0],
    ...

A trace ends with ``Finish``, when the harness recorded the end of the run; an incomplete trace is not accepted. Each
line is an event, with the name of the action that it corresponds to; ``at`` is its place: node, incarnation and
sequence. The specification has one partition, its replicas, and brokers that start and end. Runs that it does not cover
are refused, with the reason. A topic that is created again counts as another topic, with traces of its own.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias, Union

from laststand.emulator.core import events
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.metadata_version import CLEAN_SHUTDOWN_PROOF, ELR_VERSION, METADATA_VERSION
from laststand.emulator.core.types import (
    CauseId,
    ChangeReason,
    ConfigResource,
    FenceReason,
    LeaderEpoch,
    NodeRole,
    StrayCleanup,
    TopicId,
    TruncationReason,
    Witness,
)
from laststand.emulator.plan.nodes import HARNESS
from laststand.emulator.report.shiviz import LoggedEvent
from laststand.emulator.verification.facts.quorum import NEW_DISK

MODULE: Final = "Runs"
RULES: Final = (
    *("elr", "hw_requires_min_isr", "unclean_detection", "maximal_isr", "truncation", "ap_partition_epoch_check"),
    *("ap_broker_epoch_check", "clear_elr_on_min_isr_change", "truncate_before_hw", "roles_after_registration"),
    *("progress_of_this_term", "refusals_are_final", "answers_await_metadata", "untouched_logs_stay_proven"),
    *("elr_within_replicas", "reassignment_requires_min_isr", "cancel_requires_min_isr", "downgrade_ignores_elr"),
    *("min_isr_per_partition", "truncation_sync", "lower_start_is_durable", "last_known", "reassignment_needs_all"),
)
"""The switches that are constants of the specification."""

BOUNDS: Final = (
    *("Spares", "MinIsr", "MaxRecords", "MaxLeaderEpoch", "MaxPartitionEpoch", "MaxFences", "MaxElections"),
    *("MaxUncleanShutdowns", "MaxStops", "MaxMinIsrChanges", "MaxReassignments", "MaxUncleanElections"),
    *("MaxFeatureChanges", "MaxRequests"),
)
"""Those that make a model finite; a trace is finite."""

_MIN_ISR: Final = "min.insync.replicas"

_Value: TypeAlias = Union[bool, int, str, tuple["_Value", ...], frozenset["_Value"], "_Record", None]


class _Record(dict[str, "_Value"]):
    """A record, by the names of its fields."""

    def __hash__(self) -> int:  # type: ignore[override]  # never changed once made
        return hash(tuple(self.items()))


class Rejection(NamedTuple):
    """The first line that the specification cannot follow.

    Attributes:
        line: number of the line in the trace, from 1.
        action: the action that does not allow it.
        place: node, incarnation and sequence of the event.
        event: the event itself, if the run is available.
    """

    line: int
    action: str
    place: str
    event: str = ""


class _Incarnation(NamedTuple):
    """A partition of one topic, not of another topic with the same name."""

    topic: str
    partition: int
    topic_id: TopicId


_NOT_CREATED: Final = _Record(
    leader=None,
    leaderEpoch=-1,
    partitionEpoch=-1,
    isr=frozenset(),
    elr=frozenset(),
    lastKnownElr=frozenset(),
    lastKnownLeader=None,
    minIsr=1,
    hasElr=True,
    replicas=frozenset(),
    adding=frozenset(),
    removing=frozenset(),
)
_GONE: Final[dict[str, "_Value"]] = {
    "leader": None,
    "lastKnownLeader": None,
    **dict.fromkeys(("isr", "elr", "lastKnownElr", "replicas", "adding", "removing"), frozenset()),
}
"""Nobody is a replica of a partition that is deleted."""

_LINES_OF_REASONS: Final = {
    ChangeReason.ELECT_LEADERS: "ElectLeader",
    ChangeReason.UNCLEAN_RECOVERY: "ElectLeader",
    ChangeReason.REASSIGNMENT: "Reassign",
    ChangeReason.MIN_ISR_CHANGED: "ChangeMinIsr",
    ChangeReason.FEATURES_CHANGED: "ForgetElr",
}
"""Changes that are lines of their own; the others belong to the line of what set them off."""

_CUTS: Final = {
    TruncationReason.RESTARTED: "RestartLog",
    TruncationReason.RECOVERED: "RecoverLog",
}
_CUT_OFF: Final = Rejection(0, "Finish", "the trace ends before it")


class NotSpecifiedError(ConfigError):
    """The specification does not cover something that happened in a run.

    Attributes:
        lacks: what the specification lacks.
    """

    def __init__(self, lacks: str, logged: LoggedEvent) -> None:
        self.lacks = lacks
        super().__init__(key="run", value=_place(logged), expected=f"no {lacks}: the specification has none")


def tla_module(runs: Iterable[Iterable[LoggedEvent]]) -> Iterator[str]:
    """Yields the lines of the module for runs, and checks that the specification covers them.

    Raises:
        NotSpecifiedError: it does not.
    """
    yield f"---- MODULE {MODULE} ----"
    yield "EXTENDS Trace"
    traces = [trace for run in runs for trace in partition_traces(run)]
    nodes = {line["broker"] for trace in traces for line in trace if "broker" in line}
    yield f"Nodes == {_text(frozenset(nodes))}"
    yield "Traces == <<"
    for number, trace in enumerate(traces):
        yield "<<"
        yield ",\n".join(map(_text, trace))
        yield ">>" if number == len(traces) - 1 else ">>,"
    yield ">>"
    yield "===="


def tla_configuration(rules: Mapping[str, str]) -> Iterator[str]:
    """Yields the lines of TLC's configuration.

    Args:
        rules: values of switches by name; the specification has some of them.
    """
    yield "CONSTANTS"
    yield "  None = None"
    yield "  Brokers <- Nodes"
    yield "  Runs <- Traces"
    yield from (f'  {name} = "{rules[name]}"' for name in RULES)
    yield from (f"  {bound} = 1000000" for bound in BOUNDS)
    yield "INIT Begins"
    yield "NEXT Step"
    yield "VIEW Position"


def outcomes_of(output: str) -> tuple[Rejection | None, ...]:
    """Returns TLC's result for each trace, from its output: ``None`` if TLC accepted the trace.

    Raises:
        ConfigError: TLC did not finish.
    """
    found: dict[int, Rejection | None] = {
        int(trace): None for trace in re.findall(r'^<<"accepted", (\d+)>>', output, re.MULTILINE)
    }
    for trace, line, action, place in re.findall(
        r'^<<"rejected", (\d+), (\d+), "(\w+)", "([^"]+)">>', output, re.MULTILINE
    ):
        found[int(trace)] = Rejection(int(line), action, place)
    ended = re.search(r'^<<"traces", (\d+)>>', output, re.MULTILINE)
    if "No error has been found" not in output or ended is None or len(found) > int(ended[1]):
        raise ConfigError(key="traces", value=output[-2000:], expected="the output of TLC, which saw all of them")
    # A trace that came to no end of its own was cut off.
    return tuple(found.get(trace, _CUT_OFF) for trace in range(1, int(ended[1]) + 1))


def partition_traces(run: Iterable[LoggedEvent]) -> Iterator[Sequence[_Record]]:
    """Yields the lines of each partition of a run, in the order of time.

    Raises:
        ConfigError: the run has no partitions.
        NotSpecifiedError: the specification does not cover something that happened.
    """
    events_of_run = list(run)
    controllers = frozenset(
        each.node
        for each in events_of_run
        if isinstance(each.event, events.NodeStarted) and each.event.role is NodeRole.CONTROLLER
    )
    logged = _answers_first(sorted(events_of_run, key=partial(_order, controllers=controllers)))
    created = [
        _incarnation(each.event)
        for each in logged
        if isinstance(each.event, events.PartitionChanged) and each.event.reason is ChangeReason.CREATED
    ]
    if not created:
        raise ConfigError(key="run", value=None, expected="one in which a partition was created")
    for partition in created:
        yield tuple(_Trace(partition, logged).lines())


def _incarnation(event: events.PartitionEvent) -> _Incarnation:
    return _Incarnation(event.topic, event.partition, event.topic_id)


def _order(logged: LoggedEvent, *, controllers: frozenset[int]) -> tuple[bool, int, bool, bool, int, int, int]:
    """Orders by time; the harness's actions precede their consequences, and the end of the run is last.

    Within a moment of virtual time a controller commits a change before brokers apply it.
    """
    is_end = isinstance(logged.event, events.RunEnded)
    is_broker = logged.node not in controllers
    place = (logged.node, logged.incarnation, logged.sequence)
    return is_end, logged.time_ns, logged.node != HARNESS, is_broker, *place


def _answers_first(logged: Sequence[LoggedEvent]) -> Sequence[LoggedEvent]:
    """Returns the events with a leader's updates from a response before the high watermark that they allow.

    Both are in one turn, and the high watermark is recorded first.
    """
    ordered: list[LoggedEvent] = []
    for each in logged:
        position = len(ordered)
        if isinstance(each.event, events.AlterPartitionAnswered):
            while position and _is_allowed_by(ordered[position - 1], each):
                position -= 1
        ordered.insert(position, each)
    return ordered


def _is_allowed_by(advanced: LoggedEvent, answered: LoggedEvent) -> bool:
    return isinstance(advanced.event, events.HighWatermarkAdvanced) and (
        advanced.node,
        advanced.incarnation,
        advanced.time_ns,
        advanced.event.cause_id,
    ) == (answered.node, answered.incarnation, answered.time_ns, answered.event.cause_id)


class _Trace:
    """The lines of one partition in the making."""

    def __init__(self, partition: _Incarnation, logged: Sequence[LoggedEvent]) -> None:
        self._partition = partition
        self._logged = logged
        self._state = _NOT_CREATED
        self._change: events.PartitionChanged | None = None
        self._min_isrs: dict[tuple[ConfigResource, str], str] = {}
        self._static_min_isr = "1"
        self._levels: dict[str, int] = {}
        self._feature_cause: CauseId | None = None
        self._offsets: list[int] = []
        self._log_ends: dict[int, int] = {}
        self._shutting_down: set[int] = set()
        self._processes: dict[int, str] = {}
        self._witnesses: dict[int, Witness] = {}
        self._controllers: set[int] = set()
        self._opened: set[int] = set()
        self._is_guessed = False  # Reasons of changes are, where an observer reads the metadata of Kafka.

    def lines(self) -> Iterator[_Record]:
        """Yields the lines of the trace.

        Raises:
            NotSpecifiedError: the specification does not cover something that happened.
        """
        for position, each in enumerate(self._logged):
            for action, fields in self._line(position, each):
                yield _Record(action=action, at=_place(each), **fields)
            if isinstance(each.event, events.RunEnded):
                yield _Record(action="Finish", at=_place(each))

    def _line(self, position: int, each: LoggedEvent) -> Iterator[tuple[str, dict[str, _Value]]]:
        node, event = each.node, each.event
        if isinstance(event, events.NodeStarted):
            self._witnesses[node] = event.witness
            self._is_guessed = self._is_guessed or event.witness is not Witness.PROCESS
        if node in self._processes and self._witnesses[node] is not Witness.PROCESS:
            return  # What an observer noticed of a broker is not all that it did.
        if isinstance(event, events.PartitionEvent):
            self._check_strays(each, event)
            if _incarnation(event) == self._partition:
                yield from self._partition_line(position, each)
            return
        match event:
            case events.NodeStarted(role=NodeRole.BROKER):
                self._processes[node] = event.incarnation_id
                self._opened.discard(node)
                if event.witness is Witness.PROCESS:
                    yield "Start", {"broker": node}
            case events.NodeStarted(role=NodeRole.CONTROLLER):
                self._controllers.add(node)
                self._static_min_isr = event.properties.get(_MIN_ISR, self._static_min_isr)
            case events.NodeStopped() if node in self._processes:
                yield "Stop", {"broker": node, "hasOpened": node in self._opened}
            case events.FaultInjected(fault=fault) if fault == NEW_DISK:
                for victim in event.nodes:
                    if victim in self._processes:
                        yield "LoseDisk", {"broker": victim}
            case events.MetadataApplied(start_offset=start, end_offset=end):
                self._opened.add(node)
                if any(start <= offset < end for offset in self._offsets):
                    yield "Apply", {"broker": node, "end": end}
            case events.BrokerFenced():
                self._shutting_down.discard(event.broker_id)
                is_gone = event.reason is FenceReason.UNREGISTERED
                reason = ChangeReason.UNREGISTERED if is_gone else ChangeReason.BROKER_FENCED
                yield "Unregister" if is_gone else "Fence", {"broker": event.broker_id, **self._after(reason)}
            case events.BrokerRegistered():
                self._shutting_down.discard(event.broker_id)
                self._offsets.append(event.metadata_offset)
                yield (
                    "Register",
                    {
                        "broker": event.broker_id,
                        "brokerEpoch": event.broker_epoch,
                        "isClean": event.is_clean,
                        "isProofTaken": self._levels.get(METADATA_VERSION, CLEAN_SHUTDOWN_PROOF)
                        >= CLEAN_SHUTDOWN_PROOF,
                        "isOfThisProcess": self._processes.get(event.broker_id) == event.incarnation_id,
                        "isWitnessed": self._witnesses.get(event.broker_id) is Witness.PROCESS,
                        **self._after(ChangeReason.BROKER_REGISTERED),
                    },
                )
            case events.BrokerUnfenced():
                self._look_ahead(position, each, ChangeReason.BROKER_UNFENCED)
                yield (
                    "Unfence",
                    {
                        "broker": event.broker_id,
                        "brokerEpoch": event.broker_epoch,
                        "isShuttingDown": event.broker_id in self._shutting_down,
                        **self._after(ChangeReason.BROKER_UNFENCED),
                    },
                )
            case events.ControlledShutdownStarted():
                self._shutting_down.add(event.broker_id)
                self._look_ahead(position, each, ChangeReason.CONTROLLED_SHUTDOWN)
                yield "Fence", {"broker": event.broker_id, **self._after(ChangeReason.CONTROLLED_SHUTDOWN)}
            case events.ConfigChanged(name=name) if name == _MIN_ISR:
                yield from self._min_isr_line(position, each, event)
            case events.FeatureChanged(name=name, feature_level=level):
                self._levels[name] = level
                self._feature_cause = event.cause_id
                if name == ELR_VERSION and self._state is not _NOT_CREATED:
                    self._state = _Record({**self._state, "hasElr": level > 0})
                    yield "ChangeFeature", {"partition": self._state}
            case events.TopicDeleted(topic=topic, topic_id=topic_id):
                if (topic, topic_id) == (self._partition.topic, self._partition.topic_id):
                    self._offsets.append(event.metadata_offset)
                    epoch = self._state["partitionEpoch"]
                    assert isinstance(epoch, int), "always"
                    self._state = _Record({**self._state, **_GONE, "partitionEpoch": epoch + 1})
                    yield "DeletePartition", {"partition": self._state, "offset": event.metadata_offset}
            case events.ControllerActivated():
                raise NotSpecifiedError("controllers that take over from one another", each)

    # --- The controller ---------------------------------------------------------------------------------------------

    def _look_ahead(self, position: int, each: LoggedEvent, reason: ChangeReason) -> None:
        """Finds the change of the partition that follows in the same turn of the controller."""
        for later in self._logged[position + 1 :]:
            if later.time_ns != each.time_ns:
                return
            if later.node != each.node:
                continue
            if later.event.cause_id != each.event.cause_id or type(later.event) is type(each.event):
                return
            if isinstance(later.event, events.PartitionChanged) and _incarnation(later.event) == self._partition:
                if later.event.reason is reason or self._is_guessed:
                    self._change = later.event
                return

    def _after(self, reason: ChangeReason) -> dict[str, _Value]:
        """Returns the partition after a line, the metadata offset of its change, and whether that elected uncleanly."""
        change, self._change = self._change, None
        if change is not None and (change.reason is reason or self._is_guessed):
            self._offsets.append(change.metadata_offset)
            self._state = self._state_of(change)
            is_unclean = change.election is events.Election.UNCLEAN
            return {"partition": self._state, "offset": change.metadata_offset, "isUnclean": is_unclean}
        return {"partition": self._state, "offset": 0, "isUnclean": False}

    def _state_of(self, change: events.PartitionChanged) -> _Record:
        return _Record(
            leader=change.leader,
            leaderEpoch=change.leader_epoch,
            partitionEpoch=change.partition_epoch,
            isr=frozenset(change.isr),
            elr=frozenset(change.elr),
            lastKnownElr=frozenset(change.last_known_elr),
            lastKnownLeader=change.last_known_leader,
            minIsr=self._min_isr(),
            hasElr=self._levels.get(ELR_VERSION, 1) > 0,
            replicas=frozenset(change.replicas),
            adding=frozenset(change.adding_replicas),
            removing=frozenset(change.removing_replicas),
        )

    def _min_isr(self) -> int:
        """Returns the partition's ``min.insync.replicas``: a topic's value, else a broker's, else the default."""
        places = (
            (ConfigResource.TOPIC, self._partition.topic),
            *((ConfigResource.BROKER, str(node)) for node in self._controllers),
            (ConfigResource.BROKER, ""),
        )
        return int(next((self._min_isrs[place] for place in places if place in self._min_isrs), self._static_min_isr))

    def _min_isr_line(
        self, position: int, each: LoggedEvent, event: events.ConfigChanged
    ) -> Iterator[tuple[str, dict[str, _Value]]]:
        place = (event.resource, event.resource_name)
        if event.resource is ConfigResource.TOPIC and event.resource_name != self._partition.topic:
            return
        if event.resource is ConfigResource.BROKER and event.resource_name in map(str, self._processes):
            if event.value is not None:
                raise NotSpecifiedError("min ISR of a single broker", each)
            return
        if event.value is None:
            self._min_isrs.pop(place, None)
        else:
            self._min_isrs[place] = event.value
        self._offsets.append(event.metadata_offset)
        if not self._state["replicas"]:
            return
        if event.cause_id == self._feature_cause:
            self._state = _Record({**self._state, "minIsr": self._min_isr()})
            yield "ChangeFeature", {"partition": self._state, "offset": event.metadata_offset}
            return
        self._look_ahead(position, each, ChangeReason.MIN_ISR_CHANGED)
        if self._change is None:
            self._state = _Record({**self._state, "minIsr": self._min_isr()})
            yield "ChangeMinIsr", {"partition": self._state, "offset": event.metadata_offset}
        else:
            fields = self._after(ChangeReason.MIN_ISR_CHANGED)
            yield "ChangeMinIsr", {**fields, "offset": event.metadata_offset}

    # --- The partition ----------------------------------------------------------------------------------------------

    def _partition_line(self, position: int, each: LoggedEvent) -> Iterator[tuple[str, dict[str, _Value]]]:
        yield from self._controller_line(each)
        yield from self._log_line(position, each)
        yield from self._broker_line(each.node, each.event)

    def _controller_line(self, each: LoggedEvent) -> Iterator[tuple[str, dict[str, _Value]]]:
        match each.event:
            case events.PartitionChanged() as event:
                yield from self._changed(each, event)
            case events.AlterPartitionDecided() as event:
                yield (
                    "Decide",
                    {
                        "broker": event.broker_id,
                        "leaderEpoch": event.leader_epoch,
                        "partitionEpoch": event.partition_epoch,
                        "members": frozenset(zip(event.proposed_isr, event.broker_epochs, strict=True)),
                        "error": event.error,
                        **self._after(ChangeReason.ALTER_PARTITION),
                    },
                )

    def _log_line(self, position: int, each: LoggedEvent) -> Iterator[tuple[str, dict[str, _Value]]]:
        node, event = each.node, each.event
        match event:
            case events.LogOpened():
                yield from self._unrecorded(each, event)
                self._log_ends[node] = event.log_end_offset
                yield (
                    "OpenLog",
                    {
                        "broker": node,
                        "start": event.log_start_offset,
                        "end": event.log_end_offset,
                        "hw": event.high_watermark,
                    },
                )
            case events.BatchAppended():
                self._log_ends[node] = event.last_offset + 1
                fields: dict[str, _Value] = {
                    "broker": node,
                    "base": event.base_offset,
                    "last": event.last_offset,
                    "epoch": event.leader_epoch,
                    "crc": str(event.crc),
                }
                if event.role is events.AppendRole.LEADER:
                    yield "Produce", fields
                else:
                    yield "Fetch", {**fields, "term": event.current_leader_epoch}
            case events.LogTruncated():
                self._log_ends[node] = event.new_end_offset
                yield (
                    _CUTS.get(event.reason, "Truncate"),
                    {
                        "broker": node,
                        "reason": str(event.reason),
                        "end": event.new_end_offset,
                        "term": event.leader_epoch,
                    },
                )
            case events.LogStartOffsetRaised():
                yield "RaiseLogStart", {"broker": node, "new": event.new}
            case events.LogDeleted():
                self._log_ends[node] = 0
                yield "DeleteLog", {"broker": node, "end": self._about_to_apply(position, each)}

    def _broker_line(self, node: int, event: events.Event) -> Iterator[tuple[str, dict[str, _Value]]]:
        match event:
            case events.BecameLeader():
                yield (
                    "Lead",
                    {
                        "broker": node,
                        "leaderEpoch": event.leader_epoch,
                        "partitionEpoch": event.partition_epoch,
                        "isr": frozenset(event.isr),
                        "start": event.epoch_start_offset,
                    },
                )
            case events.BecameFollower():
                yield (
                    "Follow",
                    {
                        "broker": node,
                        "leader": event.leader,
                        "leaderEpoch": event.leader_epoch,
                        "partitionEpoch": event.partition_epoch,
                        "end": event.log_end_offset,
                    },
                )
            case events.HighWatermarkAdvanced():
                yield (
                    "AdvanceHighWatermark",
                    {
                        "broker": node,
                        "new": event.new,
                        "term": event.leader_epoch,
                        "isr": frozenset(event.committed_isr),
                        "maximal": frozenset(event.maximal_isr),
                        "reports": frozenset(
                            (each.broker_id, each.log_end_offset)
                            for each in event.replicas
                            if each.log_end_offset is not None
                        ),
                    },
                )
            case events.FollowerHighWatermarkUpdated():
                yield "UpdateHighWatermark", {"broker": node, "new": event.new, "term": event.leader_epoch}
            case events.AlterPartitionProposed():
                yield (
                    "Propose",
                    {
                        "broker": node,
                        "leaderEpoch": event.leader_epoch,
                        "partitionEpoch": event.partition_epoch,
                        "isr": frozenset(event.proposed_isr),
                    },
                )
            case events.AlterPartitionAnswered():
                yield (
                    "TakeAnswer",
                    {
                        "broker": node,
                        "outcome": str(event.outcome),
                        "partitionEpoch": event.partition_epoch,
                        "isr": frozenset(event.committed_isr),
                    },
                )

    def _about_to_apply(self, position: int, each: LoggedEvent) -> int:
        """Returns the end of the metadata that a broker says later in this turn to have applied; 0 if it has before."""
        for later in self._logged[position + 1 :]:
            if later.time_ns != each.time_ns:
                return 0
            is_own = (later.node, later.event.cause_id) == (each.node, each.event.cause_id)
            if is_own and isinstance(later.event, events.MetadataApplied):
                return later.event.end_offset
        return 0

    def _unrecorded(self, each: LoggedEvent, opened: events.LogOpened) -> Iterator[tuple[str, dict[str, _Value]]]:
        """Yields batches that a process appended and did not record, because it ended within that turn.

        Other replicas have recorded them, unless it was the leader; then its batches are taken for one batch.
        """
        end = self._log_ends.get(each.node, 0)
        while opened.log_start_offset <= end < opened.log_end_offset:
            epoch = next((epoch for epoch, start in reversed(opened.epochs) if start <= end), None)
            batch = self._appended_elsewhere(end, epoch)
            if epoch is None and batch is None:
                raise NotSpecifiedError("logs with records of which no epoch is known", each)
            epoch = epoch if batch is None else batch.leader_epoch
            last = opened.log_end_offset - 1 if batch is None else batch.last_offset
            crc = f"of {_place(each)}" if batch is None else str(batch.crc)
            yield "Keep", {"broker": each.node, "base": end, "last": last, "epoch": epoch, "crc": crc}
            end = last + 1

    def _appended_elsewhere(self, base: int, epoch: LeaderEpoch | None) -> events.BatchAppended | None:
        batches = (each.event for each in self._logged if isinstance(each.event, events.BatchAppended))
        return next(
            (
                batch
                for batch in batches
                if (_incarnation(batch), batch.base_offset) == (self._partition, base)
                and epoch in (None, batch.leader_epoch)
            ),
            None,
        )

    def _check_strays(self, each: LoggedEvent, event: events.PartitionEvent) -> None:
        """Refuses a run in which a topic inherits records from one of the same name (S27)."""
        is_kept = isinstance(event, events.StrayDetected) and event.action is StrayCleanup.OFF
        is_of_other = _incarnation(event)[:2] == self._partition[:2] and event.topic_id != self._partition.topic_id
        if is_kept and is_of_other:
            raise NotSpecifiedError("logs that a topic takes over from one of the same name", each)

    def _changed(self, each: LoggedEvent, event: events.PartitionChanged) -> Iterator[tuple[str, dict[str, _Value]]]:
        if event.reason is ChangeReason.CREATED:
            self._state = self._state_of(event)
            self._offsets.append(event.metadata_offset)
            yield "CreatePartition", {"partition": self._state, "offset": event.metadata_offset}
            return
        if event.partition_epoch == self._state["partitionEpoch"]:
            return  # It was found by looking ahead.
        self._change = event
        if event.reason is ChangeReason.ALTER_PARTITION and self._is_guessed:
            yield "ChangeIsr", self._after(ChangeReason.ALTER_PARTITION)
        if event.reason in _LINES_OF_REASONS:
            yield _LINES_OF_REASONS[event.reason], self._after(event.reason)


def with_events(outcomes: Sequence[Rejection | None], run: Iterable[LoggedEvent]) -> tuple[Rejection | None, ...]:
    """Returns TLC's results with the corresponding events."""
    places = {each.place for each in outcomes if each is not None}
    written = {place: str(logged.event) for logged in run if (place := _place(logged)) in places} if places else {}
    return tuple(each and each._replace(event=written.get(each.place, "")) for each in outcomes)


def _place(logged: LoggedEvent) -> str:
    return f"{logged.node}-{logged.incarnation}:{logged.sequence}"


def _text(value: _Value) -> str:
    match value:
        case bool():
            return str(value).upper()
        case None:
            return "None"
        case str():
            return f'"{value}"'
        case int():
            return str(value)
        case tuple():
            return f"<<{', '.join(map(_text, value))}>>"
        case frozenset():
            return f"{{{', '.join(sorted(map(_text, value)))}}}"
        case _:
            return f"[{', '.join(f'{name} |-> {_text(each)}' for name, each in value.items())}]"
