"""A run as traces that the TLA+ specification of ``docs/tla`` can be asked about: one for each of its partitions.

::

    ---- MODULE Runs ----
    EXTENDS Trace
    Traces == <<
    <<
    [action |-> "Start", at |-> "0-0:0", broker |-> 0],
    ...

A trace ends with ``Finish``, where the harness says that the run ended; one that was cut off is not accepted. Each
line is an event, by the name of the action that takes it; ``at`` says where it was written: node, incarnation and
sequence. The specification has one partition, its replicas, and brokers that come and go. Runs of which it says
nothing are refused, with what it lacks.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, Union

from laststand.emulator.core import events
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.types import (
    ChangeReason,
    ConfigResource,
    NodeRole,
    TopicPartition,
    TruncationReason,
    Witness,
)
from laststand.emulator.plan.nodes import HARNESS
from laststand.emulator.report.shiviz import LoggedEvent

MODULE: Final = "Runs"
RULES: Final = (
    *("elr", "hw_requires_min_isr", "unclean_detection", "maximal_isr", "truncation", "ap_partition_epoch_check"),
    *("ap_broker_epoch_check", "clear_elr_on_min_isr_change", "truncate_before_hw", "roles_after_registration"),
    *("progress_of_this_term", "refusals_are_final", "answers_await_metadata", "untouched_logs_stay_proven"),
)
"""The switches that are constants of the specification."""

BOUNDS: Final = (
    *("MinIsr", "MaxRecords", "MaxLeaderEpoch", "MaxPartitionEpoch", "MaxFences", "MaxElections"),
    *("MaxUncleanShutdowns", "MaxStops", "MaxMinIsrChanges", "MaxRequests"),
)
"""Those that make a model finite; a trace is finite."""

_MIN_ISR: Final = "min.insync.replicas"

_Value: TypeAlias = Union[bool, int, str, tuple["_Value", ...], frozenset["_Value"], "_Record", None]


class _Record(dict[str, "_Value"]):
    """A record, by the names of its fields."""

    def __hash__(self) -> int:  # type: ignore[override]  # never changed once made
        return hash(tuple(self.items()))


_LACKS: Final = {
    ChangeReason.REASSIGNMENT: "reassignments",
    ChangeReason.FEATURES_CHANGED: "changes of features",
    ChangeReason.UNREGISTERED: "brokers that are unregistered",
    ChangeReason.UNCLEAN_RECOVERY: "unclean elections",
}
_NOT_CREATED: Final = _Record(
    leader=None, leaderEpoch=-1, partitionEpoch=-1, isr=frozenset(), elr=frozenset(), lastKnownLeader=None, minIsr=0
)
_DISK_LOST: Final = "replace_disk"


class NotSpecifiedError(ConfigError):
    """Something happened in a run that the specification does not have.

    Attributes:
        lacks: what that is.
    """

    def __init__(self, lacks: str, logged: LoggedEvent) -> None:
        self.lacks = lacks
        super().__init__(key="run", value=_place(logged), expected=f"no {lacks}: the specification has none")


def tla_module(runs: Iterable[Iterable[LoggedEvent]]) -> Iterator[str]:
    """Yields the lines of the module for runs, and checks that the specification has what happened in them.

    Raises:
        NotSpecifiedError: it has not.
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


def partition_traces(run: Iterable[LoggedEvent]) -> Iterator[Sequence[_Record]]:
    """Yields the lines of each partition of a run, in the order of time.

    Raises:
        ConfigError: it has none.
        NotSpecifiedError: something happened that the specification does not have.
    """
    logged = sorted(run, key=_order)
    created = {
        TopicPartition(each.event.topic, each.event.partition): each
        for each in logged
        if isinstance(each.event, events.PartitionChanged) and each.event.reason is ChangeReason.CREATED
    }
    if not created:
        raise ConfigError(key="run", value=None, expected="one in which a partition was created")
    for partition in created:
        yield tuple(_Trace(partition, logged).lines())


def _order(logged: LoggedEvent) -> tuple[bool, int, bool, int, int, int]:
    """Orders by time; what the harness did precedes what came of it, and the end of the run is the last."""
    is_end = isinstance(logged.event, events.RunEnded)
    return is_end, logged.time_ns, logged.node != HARNESS, logged.node, logged.incarnation, logged.sequence


class _Trace:
    """The lines of one partition in the making."""

    def __init__(self, partition: TopicPartition, logged: Sequence[LoggedEvent]) -> None:
        self._partition = partition
        self._logged = logged
        self._state = _NOT_CREATED
        self._change: events.PartitionChanged | None = None
        self._min_isr = 1
        self._replicas: frozenset[int] = frozenset()
        self._offsets: list[int] = []
        self._log_ends: dict[int, int] = {}
        self._shutting_down: set[int] = set()
        self._processes: dict[int, str] = {}
        self._witnesses: dict[int, Witness] = {}
        self._is_guessed = False  # Reasons of changes are, where an observer reads the metadata of Kafka.

    def lines(self) -> Iterator[_Record]:
        """Yields them.

        Raises:
            NotSpecifiedError: something happened that the specification does not have.
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
            if TopicPartition(event.topic, event.partition) != self._partition:
                return
            yield from self._partition_line(each)
            return
        match event:
            case events.NodeStarted(role=NodeRole.BROKER):
                self._processes[node] = event.incarnation_id
                if event.witness is Witness.PROCESS:
                    yield "Start", {"broker": node}
            case events.NodeStopped() if node in self._processes:
                yield "Stop", {"broker": node}
            case events.FaultInjected(fault=fault) if fault == _DISK_LOST:
                for victim in event.nodes:
                    if victim in self._processes:
                        yield "LoseDisk", {"broker": victim}
            case events.MetadataApplied(start_offset=start, end_offset=end):
                if any(start <= offset < end for offset in self._offsets):
                    yield "Apply", {"broker": node, "end": end}
            case events.BrokerFenced():
                self._shutting_down.discard(event.broker_id)
                yield "Fence", {"broker": event.broker_id, **self._after(ChangeReason.BROKER_FENCED)}
            case events.BrokerRegistered():
                self._shutting_down.discard(event.broker_id)
                self._offsets.append(event.metadata_offset)
                yield (
                    "Register",
                    {
                        "broker": event.broker_id,
                        "brokerEpoch": event.broker_epoch,
                        "isClean": event.is_clean,
                        "isOfThisProcess": self._processes.get(event.broker_id) == event.incarnation_id,
                        "isWitnessed": self._witnesses.get(event.broker_id) is Witness.PROCESS,
                        **self._after(ChangeReason.BROKER_REGISTERED),
                    },
                )
            case events.BrokerUnfenced():
                self._look_ahead(position, each)
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
                self._look_ahead(position, each)
                yield "Fence", {"broker": event.broker_id, **self._after(ChangeReason.CONTROLLED_SHUTDOWN)}
            case events.ConfigChanged(name=name) if name == _MIN_ISR:
                yield from self._min_isr_line(position, each, event)
            case events.FeatureChanged() if self._state is not _NOT_CREATED:
                raise NotSpecifiedError(_LACKS[ChangeReason.FEATURES_CHANGED], each)
            case events.TopicDeleted(topic=topic) if topic == self._partition.topic:
                raise NotSpecifiedError("topics that are deleted", each)
            case events.ControllerActivated():
                raise NotSpecifiedError("controllers that take over from one another", each)

    # --- The controller ---------------------------------------------------------------------------------------------

    def _look_ahead(self, position: int, each: LoggedEvent) -> None:
        """Finds the change of the partition that follows in the same turn of the controller."""
        for later in self._logged[position + 1 :]:
            if later.time_ns != each.time_ns:
                return
            if later.node != each.node:
                continue
            if later.event.cause_id != each.event.cause_id or type(later.event) is type(each.event):
                return
            if isinstance(later.event, events.PartitionChanged) and self._is_own(later.event):
                self._note(later)
                return

    def _is_own(self, event: events.PartitionEvent) -> bool:
        return TopicPartition(event.topic, event.partition) == self._partition

    def _note(self, each: LoggedEvent) -> None:
        event = each.event
        assert isinstance(event, events.PartitionChanged), "asked for before"
        lacks = _LACKS.get(event.reason)
        if lacks is not None or event.adding_replicas or event.removing_replicas:
            raise NotSpecifiedError(lacks or _LACKS[ChangeReason.REASSIGNMENT], each)
        if event.election is events.Election.UNCLEAN:
            raise NotSpecifiedError("unclean elections", each)
        self._change = event

    def _after(self, reason: ChangeReason) -> dict[str, _Value]:
        """Returns the partition after a line, and the metadata offset of its change."""
        change, self._change = self._change, None
        if change is not None and (change.reason is reason or self._is_guessed):
            self._offsets.append(change.metadata_offset)
            self._state = self._state_of(change)
            return {"partition": self._state, "offset": change.metadata_offset}
        return {"partition": self._state, "offset": 0}

    def _state_of(self, change: events.PartitionChanged) -> _Record:
        return _Record(
            leader=change.leader,
            leaderEpoch=change.leader_epoch,
            partitionEpoch=change.partition_epoch,
            isr=frozenset(change.isr),
            elr=frozenset(change.elr),
            lastKnownLeader=change.last_known_leader,
            minIsr=self._effective_min_isr(),
        )

    def _effective_min_isr(self) -> int:
        return min(self._min_isr, len(self._replicas)) if self._replicas else self._min_isr

    def _min_isr_line(
        self, position: int, each: LoggedEvent, event: events.ConfigChanged
    ) -> Iterator[tuple[str, dict[str, _Value]]]:
        is_own = event.resource is ConfigResource.TOPIC and event.resource_name == self._partition.topic
        if (
            not is_own
            and self._state is _NOT_CREATED
            and event.resource is ConfigResource.BROKER
            and not event.resource_name
        ):
            self._min_isr = int(event.value or 1)
            return
        if not is_own:
            if event.resource is ConfigResource.BROKER:
                raise NotSpecifiedError("changes of min ISR other than a topic's", each)
            return
        if event.value is None:
            raise NotSpecifiedError("min ISR that is deleted", each)
        self._min_isr = int(event.value)
        self._offsets.append(event.metadata_offset)
        if self._state is _NOT_CREATED:
            return
        self._look_ahead(position, each)
        if self._change is None:
            self._state = _Record({**self._state, "minIsr": self._effective_min_isr()})
            yield "ChangeMinIsr", {"partition": self._state, "offset": event.metadata_offset}
        else:
            fields = self._after(ChangeReason.MIN_ISR_CHANGED)
            yield "ChangeMinIsr", {**fields, "offset": event.metadata_offset}

    # --- The partition ----------------------------------------------------------------------------------------------

    def _partition_line(self, each: LoggedEvent) -> Iterator[tuple[str, dict[str, _Value]]]:
        node, event = each.node, each.event
        match event:
            case events.PartitionChanged():
                yield from self._changed(each, event)
            case events.AlterPartitionDecided():
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
            case events.LogOpened():
                if event.log_start_offset:
                    raise NotSpecifiedError("records that are deleted", each)
                if event.log_end_offset > self._log_ends.get(node, 0):
                    raise NotSpecifiedError("logs that have more than was recorded", each)
                self._log_ends[node] = event.log_end_offset
                yield "OpenLog", {"broker": node, "end": event.log_end_offset, "hw": event.high_watermark}
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
                if event.reason not in (TruncationReason.DIVERGING_EPOCH, TruncationReason.HIGH_WATERMARK):
                    raise NotSpecifiedError(f"logs that are cut with reason {event.reason}", each)
                self._log_ends[node] = event.new_end_offset
                yield (
                    "Truncate",
                    {
                        "broker": node,
                        "reason": str(event.reason),
                        "end": event.new_end_offset,
                        "term": event.leader_epoch,
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
            case events.LogStartOffsetRaised():
                raise NotSpecifiedError("records that are deleted", each)
            case events.LogDeleted() | events.StrayDetected():
                raise NotSpecifiedError("logs that are deleted", each)

    def _changed(self, each: LoggedEvent, event: events.PartitionChanged) -> Iterator[tuple[str, dict[str, _Value]]]:
        if event.reason is ChangeReason.CREATED:
            self._replicas = frozenset(event.replicas)
            self._state = self._state_of(event)
            self._offsets.append(event.metadata_offset)
            yield "CreatePartition", {"partition": self._state, "offset": event.metadata_offset}
            return
        if event.partition_epoch == self._state["partitionEpoch"]:
            return  # It was found by looking ahead.
        self._note(each)
        if event.reason is ChangeReason.ALTER_PARTITION and self._is_guessed:
            yield "ChangeIsr", self._after(ChangeReason.ALTER_PARTITION)
        if event.reason is ChangeReason.ELECT_LEADERS:
            yield "ElectLeader", self._after(ChangeReason.ELECT_LEADERS)


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
