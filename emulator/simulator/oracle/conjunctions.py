"""Conjunctions: coinciding events that protocol rules often overlook, counted in pairs.

There are two tables. A broker that applies several changes of a partition as one difference does not see the states in
between: the pair is the reason of one of the changes, or a kind of record that came with them, and the *hidden* change.
A request that arrives late, or is lost, was sent under epochs that may have changed since: the pair is its API and
fate, and the changed epoch. In the default era no broker sends OffsetForLeaderEpoch: fetch responses report divergence.

A pair that never occurs in a sweep is a gap of the profiles; ``MUST_OCCUR`` has those without which a sweep of the
default era proves nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Final, NamedTuple

from laststand.emulator.core import events, messages
from laststand.emulator.core.types import BrokerId, ChangeReason, MetadataOffset, NodeId, TopicId, TopicPartition
from laststand.emulator.simulator.network.wire import RequestFate, api_name

_REASONS: Final = (
    ChangeReason.ALTER_PARTITION,
    ChangeReason.BROKER_FENCED,
    ChangeReason.BROKER_REGISTERED,
    ChangeReason.BROKER_UNFENCED,
    ChangeReason.CONTROLLED_SHUTDOWN,
    ChangeReason.ELECT_LEADERS,
    ChangeReason.FEATURES_CHANGED,
    ChangeReason.MIN_ISR_CHANGED,
    ChangeReason.REASSIGNMENT,
    ChangeReason.UNCLEAN_RECOVERY,
    ChangeReason.UNREGISTERED,
)

_RECORDS: Final = ("config_record", "feature_record", "registration_record")
"""Metadata that is about no partition."""

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
"""Reasons why the difference of two images hides a term.

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
    "GetReplicaLogInfo": ("leader_epoch", "partition_epoch", "target_broker_epoch"),
    "InitProducerId": ("target_broker_epoch",),
    "BrokerHeartbeat": ("broker_epoch",),
    "BrokerRegistration": ("broker_epoch",),
}
"""The epochs of each API: of the partitions that it names, of the broker that sends it, and of the broker asked."""

CONJUNCTIONS: Final = (
    *(f"coalesced:{kind}+{hidden}" for kind, hidden in product((*_REASONS, *_RECORDS), _HIDDEN)),
    *(
        f"request:{api}_{fate.value}+{epoch}"
        for api, epochs in _EPOCHS.items()
        for fate in RequestFate
        for epoch in epochs
        if (fate, epoch) != (RequestFate.LOST, "broker_epoch") or api == "BrokerRegistration"
    ),
)
"""All pairs that are counted.

Nobody gives up a request after its sender's broker epoch has changed, unless by that request: with that process its
requests are gone.
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
    "coalesced:config_record+left_isr",
    "coalesced:config_record+topic_recreated",
    "coalesced:controlled_shutdown+another_led",
    "coalesced:elect_leaders+another_led",
    "coalesced:elect_leaders+follower_cut_log",
    "coalesced:elect_leaders+led_itself",
    "coalesced:reassignment+followed_two",
    "coalesced:reassignment+follower_moved_away",
    "coalesced:reassignment+moved_away",
    "coalesced:registration_record+followed_two",
    "coalesced:registration_record+left_isr",
    "coalesced:unregistered+another_led",
    "coalesced:unregistered+followed_two",
    "request:AlterPartition_late+leader_epoch",
    "request:AlterPartition_late+partition_epoch",
    "request:AlterPartition_lost+leader_epoch",
    "request:AlterPartition_lost+partition_epoch",
    "request:BrokerHeartbeat_late+broker_epoch",
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
    change: events.PartitionChanged | None


class Conjunctions:
    """Counts the pairs of one run.

    Args:
        mark: is called with each pair.
        now_ms: virtual time.

    """

    def __init__(self, mark: Callable[[str], None], now_ms: Callable[[], int]) -> None:
        self._mark = mark
        self._now_ms = now_ms
        self._states: dict[TopicPartition, list[_State]] = {}
        self._cuts: dict[TopicPartition, list[tuple[int, NodeId, str]]] = {}
        self._committed_ms: dict[MetadataOffset, int] = {}
        self._changed_ms: dict[tuple[object, str], int] = {}
        self._names: dict[tuple[TopicId, int], TopicPartition] = {}
        self._records: list[tuple[MetadataOffset, str]] = []

    # --- What happens -----------------------------------------------------------------------------------------------

    def changed(self, name: TopicPartition, event: events.PartitionChanged) -> None:
        """A partition's state was committed."""
        states = self._states.setdefault(name, [])
        if states and states[-1].offset >= event.metadata_offset:
            return  # reported again by the controller's next process
        now_ms = self._now_ms()
        self._names[event.topic_id, name.partition] = name
        before = states[-1].change if states else None
        if before is not None:
            self._changed_ms[name, "partition_epoch"] = now_ms
            if before.leader_epoch != event.leader_epoch:
                self._changed_ms[name, "leader_epoch"] = now_ms
        states.append(_State(event.metadata_offset, event))
        self._committed_ms[event.metadata_offset] = now_ms

    def deleted(self, event: events.TopicDeleted) -> None:
        """Notes that a topic was deleted."""
        for name, states in self._states.items():
            if name.topic == event.topic and states[-1].offset < event.metadata_offset:
                states.append(_State(event.metadata_offset, None))

    def registered(self, event: events.BrokerRegistered) -> None:
        """A broker has another epoch."""
        self._changed_ms[event.broker_id, "broker_epoch"] = self._now_ms()
        self._records.append((event.metadata_offset, "registration_record"))

    def configured(self, event: events.ConfigChanged) -> None:
        """A configuration entry was set or deleted."""
        self._records.append((event.metadata_offset, "config_record"))

    def feature_changed(self, event: events.FeatureChanged) -> None:
        """A feature has another level."""
        self._records.append((event.metadata_offset, "feature_record"))

    def log_changed(
        self, node_id: NodeId, name: TopicPartition, event: events.LogTruncated | events.LogDeleted
    ) -> None:
        """Notes that a replica truncated or deleted its log."""
        what = "follower_cut_log" if isinstance(event, events.LogTruncated) else "follower_deleted_log"
        self._cuts.setdefault(name, []).append((self._now_ms(), node_id, what))

    # --- What comes together ----------------------------------------------------------------------------------------

    def applied(self, broker_id: BrokerId, event: events.MetadataApplied) -> None:
        """A broker applies the difference between two images."""
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
                if not hidden:
                    continue
                kinds: dict[str, None] = dict.fromkeys(change.reason for change in seen if change is not None)
                kinds |= dict.fromkeys(
                    kind for offset, kind in self._records if event.start_offset <= offset < event.end_offset
                )
                for pair in (f"coalesced:{kind}+{each}" for kind, each in product(kinds, hidden)):
                    self._mark(pair)

    def _hidden(
        self,
        name: TopicPartition,
        broker_id: BrokerId,
        before: events.PartitionChanged,
        seen: Sequence[events.PartitionChanged | None],
        after: events.PartitionChanged,
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

    def request_ended(
        self, sender: NodeId, target: NodeId, request: messages.Request, sent_ms: int, fate: RequestFate
    ) -> None:
        """A request that was sent then arrived late, or is lost."""
        api = api_name(request)
        epochs = _EPOCHS.get(api, ())
        if not epochs:
            return
        names = self._partitions_of(request)
        for epoch in epochs:
            match epoch:
                case "broker_epoch":
                    has_changed = self._has_changed(sender, "broker_epoch", sent_ms)
                case "target_broker_epoch":
                    has_changed = self._has_changed(target, "broker_epoch", sent_ms)
                case _:
                    has_changed = any(self._has_changed(name, epoch, sent_ms) for name in names)
            if has_changed:
                self._mark(f"request:{api}_{fate.value}+{epoch}")

    def _has_changed(self, key: object, epoch: str, sent_ms: int) -> bool:
        return self._changed_ms.get((key, epoch), -1) > sent_ms

    def _partitions_of(self, request: messages.Request) -> list[TopicPartition]:
        match request:
            case messages.FetchRequest() | messages.ProduceRequest() | messages.AlterPartitionRequest():
                return [TopicPartition(asked.topic, asked.partition) for asked in request.partitions]
            case messages.GetReplicaLogInfoRequest():
                return [self._names[asked] for asked in request.partitions if asked in self._names]
            case _:
                return []
