"""Conjunctions: what happened at once that rules often do not reckon with, counted in pairs.

Two tables. A broker that applies several changes of a partition as one difference does not see what lay in between:
the pair is a reason of one of the changes, and what was *hidden*. A request that arrives late, or is lost, was sent
under epochs that may be others by then: the pair is its API and fate, and which epoch changed meanwhile.

A pair that never occurs in a sweep is a gap of the profiles; ``MUST_OCCUR`` has those without which a sweep of the
default era proves nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Final, NamedTuple

from emulator.core.events import (
    BrokerRegistered,
    LogDeleted,
    LogTruncated,
    MetadataApplied,
    PartitionChanged,
    TopicDeleted,
)
from emulator.core.messages import AlterPartitionRequest, FetchRequest, ProduceRequest, Request
from emulator.core.types import BrokerId, ChangeReason, MetadataOffset, NodeId, TopicPartition
from emulator.simulator.wire import RequestFate

_REASONS: Final = (
    ChangeReason.ALTER_PARTITION,
    ChangeReason.BROKER_FENCED,
    ChangeReason.BROKER_REGISTERED,
    ChangeReason.BROKER_UNFENCED,
    ChangeReason.CONTROLLED_SHUTDOWN,
    ChangeReason.ELECT_LEADERS,
    ChangeReason.REASSIGNMENT,
    ChangeReason.UNREGISTERED,
)

_HIDDEN: Final = (
    "another_led",
    "led_itself",
    "followed_two",
    "left_isr",
    "moved_away",
    "follower_moved_away",
    "follower_cut_log",
    "follower_deleted_log",
    "topic_recreated",
)
"""What the difference does not show.

``another_led``: it leads before and after, and another broker did in between. ``led_itself``: it led in between only.
``followed_two``: it follows before and after, and in between another leader. ``left_isr``: it is in the ISR before and
after, and was not. ``moved_away``: it is a replica before and after, and was none. ``follower_moved_away``: the same of
another replica of a partition that it leads. ``follower_cut_log``, ``follower_deleted_log``: another replica of a
partition that it leads did so before the difference was applied. ``topic_recreated``: the partition is one of another
topic.
"""

_EPOCHS: Final = {
    "Fetch": ("leader_epoch", "partition_epoch", "broker_epoch"),
    "Produce": ("leader_epoch", "partition_epoch"),
    "AlterPartition": ("leader_epoch", "partition_epoch", "broker_epoch"),
}
"""By API: of the partitions that it names, and of the broker that sends it."""

CONJUNCTIONS: Final = (
    *(f"coalesced:{reason}+{hidden}" for reason, hidden in product(_REASONS, _HIDDEN)),
    *(
        f"request:{api}_{fate.value}+{epoch}"
        for api, epochs in _EPOCHS.items()
        for fate in RequestFate
        for epoch in epochs
        if (fate, epoch) != (RequestFate.LOST, "broker_epoch")
    ),
)
"""All pairs that are counted.

Nobody gives up a request after its sender's broker epoch has changed: with that process its requests are gone.
"""


MUST_OCCUR: Final = (
    "coalesced:alter_partition+followed_two",
    "coalesced:alter_partition+left_isr",
    "coalesced:alter_partition+led_itself",
    "coalesced:broker_fenced+another_led",
    "coalesced:broker_fenced+followed_two",
    "coalesced:broker_fenced+left_isr",
    "coalesced:broker_fenced+led_itself",
    "coalesced:broker_fenced+moved_away",
    "coalesced:broker_fenced+topic_recreated",
    "coalesced:broker_unfenced+left_isr",
    "coalesced:controlled_shutdown+another_led",
    "coalesced:elect_leaders+another_led",
    "coalesced:elect_leaders+follower_cut_log",
    "coalesced:elect_leaders+led_itself",
    "coalesced:reassignment+followed_two",
    "coalesced:reassignment+follower_moved_away",
    "coalesced:reassignment+moved_away",
    "coalesced:unregistered+another_led",
    "coalesced:unregistered+followed_two",
    "request:AlterPartition_late+leader_epoch",
    "request:AlterPartition_late+partition_epoch",
    "request:AlterPartition_lost+leader_epoch",
    "request:AlterPartition_lost+partition_epoch",
    "request:Fetch_late+broker_epoch",
    "request:Fetch_late+leader_epoch",
    "request:Fetch_late+partition_epoch",
    "request:Fetch_lost+leader_epoch",
    "request:Fetch_lost+partition_epoch",
    "request:Produce_lost+leader_epoch",
    "request:Produce_lost+partition_epoch",
)
"""Pairs that every broad sweep of the default era meets, or it proves nothing."""


class _State(NamedTuple):
    """A partition from a metadata offset on; ``None`` once its topic is deleted."""

    offset: MetadataOffset
    change: PartitionChanged | None


class Conjunctions:
    """Counts the pairs of one run.

    Args:
        mark: is told each pair.
        now_ms: virtual time.
    """

    def __init__(self, mark: Callable[[str], None], now_ms: Callable[[], int]) -> None:
        self._mark = mark
        self._now_ms = now_ms
        self._states: dict[TopicPartition, list[_State]] = {}
        self._cuts: dict[TopicPartition, list[tuple[int, NodeId, str]]] = {}
        self._committed_ms: dict[MetadataOffset, int] = {}
        self._changed_ms: dict[tuple[object, str], int] = {}

    # --- What happens -----------------------------------------------------------------------------------------------

    def changed(self, name: TopicPartition, event: PartitionChanged) -> None:
        """A partition's state was committed."""
        states = self._states.setdefault(name, [])
        if states and states[-1].offset >= event.metadata_offset:
            return  # told again by the controller's next process
        now_ms = self._now_ms()
        before = states[-1].change if states else None
        if before is not None:
            self._changed_ms[name, "partition_epoch"] = now_ms
            if before.leader_epoch != event.leader_epoch:
                self._changed_ms[name, "leader_epoch"] = now_ms
        states.append(_State(event.metadata_offset, event))
        self._committed_ms[event.metadata_offset] = now_ms

    def deleted(self, event: TopicDeleted) -> None:
        """A topic is gone."""
        for name, states in self._states.items():
            if name.topic == event.topic and states[-1].offset < event.metadata_offset:
                states.append(_State(event.metadata_offset, None))

    def registered(self, event: BrokerRegistered) -> None:
        """A broker has another epoch."""
        self._changed_ms[event.broker_id, "broker_epoch"] = self._now_ms()

    def log_changed(self, node_id: NodeId, name: TopicPartition, event: LogTruncated | LogDeleted) -> None:
        """A replica cut or deleted its log."""
        what = "follower_cut_log" if isinstance(event, LogTruncated) else "follower_deleted_log"
        self._cuts.setdefault(name, []).append((self._now_ms(), node_id, what))

    # --- What comes together ----------------------------------------------------------------------------------------

    def applied(self, broker_id: BrokerId, event: MetadataApplied) -> None:
        """A broker acts on the difference between two images."""
        if not event.start_offset:  # before that it knew of nothing
            return
        for name, states in self._states.items():
            if states[-1].offset < event.start_offset:
                continue
            within = [state for state in states if event.start_offset <= state.offset < event.end_offset]
            if len(within) < 2:
                continue
            earlier = [state for state in states if state.offset < event.start_offset]
            before = earlier[-1].change if earlier else None
            after = within[-1].change
            if before is not None and after is not None:
                seen = [state.change for state in within]
                hidden = list(self._hidden(name, broker_id, before, seen, after))
                reasons = dict.fromkeys(change.reason for change in seen if change is not None)
                for pair in (f"coalesced:{reason}+{each}" for reason, each in product(reasons, hidden)):
                    self._mark(pair)

    def _hidden(
        self,
        name: TopicPartition,
        broker_id: BrokerId,
        before: PartitionChanged,
        seen: Sequence[PartitionChanged | None],
        after: PartitionChanged,
    ) -> Iterator[str]:
        if before.topic_id != after.topic_id:
            yield "topic_recreated"
            return
        between = [change for change in seen[:-1] if change is not None]
        leads = broker_id == before.leader == after.leader
        leaders = {change.leader for change in between} - {None}
        if leads and leaders - {broker_id}:
            yield "another_led"
        if broker_id not in (before.leader, after.leader) and broker_id in leaders:
            yield "led_itself"
        if broker_id not in (before.leader, after.leader) and leaders - {before.leader, after.leader, broker_id}:
            yield "followed_two"
        if any(broker_id not in change.isr for change in between) and broker_id in {*before.isr} & {*after.isr}:
            yield "left_isr"
        stayed = set(before.replicas) & set(after.replicas)
        gone = {replica for change in between for replica in stayed - set(change.replicas)}
        if broker_id in gone:
            yield "moved_away"
        if leads and gone - {broker_id}:
            yield "follower_moved_away"
        if leads:
            since_ms = min((self._committed_ms[change.metadata_offset] for change in between), default=self._now_ms())
            cuts = self._cuts.get(name, ())
            yield from sorted({what for at_ms, node, what in cuts if at_ms >= since_ms and node != broker_id})

    def request_ended(self, sender: NodeId, request: Request, sent_ms: int, fate: RequestFate) -> None:
        """A request that was sent then arrived late, or is lost."""
        if not isinstance(request, FetchRequest | ProduceRequest | AlterPartitionRequest):
            return
        names = [TopicPartition(asked.topic, asked.partition) for asked in request.partitions]
        keys: list[object] = [*names, sender]
        api = type(request).__name__.removesuffix("Request")
        for epoch in _EPOCHS[api]:
            if any(self._changed_ms.get((key, epoch), -1) > sent_ms for key in keys):
                self._mark(f"request:{api}_{fate.value}+{epoch}")
