"""Counts the events of a run, and how often rules were applied."""

from laststand.emulator.core import events
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import BrokerId, NodeId, Offset, TopicPartition
from laststand.emulator.simulator.nodes.nodes import HostingBroker


class Tally:
    """Counts of events in one run.

    Attributes:
        acks: batches acknowledged with acks=all.
        acks_of_any_kind: batches acknowledged with acks=all or acks=1.
        elections: leaders that were elected after creation.
        truncations: number of truncated logs.
        unclean_restarts: registrations without proof of a clean shutdown.
        proposals: ISR changes that leaders proposed.
        fetch_errors: fetches that were refused, of partitions that are led.
        marks: how often each rule applied.
    """

    def __init__(self) -> None:
        self.acks = 0
        self.acks_of_any_kind = 0
        self.elections = 0
        self.truncations = 0
        self.unclean_restarts = 0
        self.proposals = 0
        self.fetch_errors = 0
        self.marks: dict[str, int] = {}
        self._elr: dict[TopicPartition, tuple[BrokerId, ...]] = {}
        self._cut: set[tuple[NodeId, TopicPartition]] = set()

    def mark(self, name: str) -> None:
        """Counts that a rule was applied."""
        self.marks[name] = self.marks.get(name, 0) + 1

    def partition_changed(self, event: events.PartitionChanged) -> None:
        """A partition's state was committed."""
        self.mark(f"partition_changed:{event.reason}")
        if event.election not in (events.Election.NONE, events.Election.NO_CANDIDATE) and event.reason != "created":
            self.elections += 1
        if event.election is not events.Election.NONE:
            self.mark(f"election:{event.election.value}")
        name = TopicPartition(event.topic, event.partition)
        former = set(self._elr.get(name, ())) - set(event.replicas)
        if former and not former & set(event.elr):
            self.mark("elr:reassigned_away")
        self._elr[name] = event.elr

    def seen(self, event: events.Event) -> None:
        """Counts events that need no further data."""
        match event:
            case events.AlterPartitionAnswered():
                self.mark(f"answered:{event.outcome}")
            case events.RecoveryFinished():
                self.mark("recovery_step:finished")
            case events.StrayDetected():
                self.mark(f"stray:{event.reason}")
            case events.StrayDeleted():
                self.mark("stray:deleted")
            case events.UncleanRecoveryStarted():
                self.mark(f"unclean_recovery:{event.strategy}")
            case events.UncleanRecoveryDropped():
                self.mark(f"unclean_recovery_dropped:{event.reason}")
            case events.ProduceAnswered(error=ErrorCode.UNKNOWN_TOPIC_ID.name):
                self.mark("produce:UNKNOWN_TOPIC_ID")
            case events.UncleanLeaderElected():
                self.mark(f"unclean_leader:{event.method.value}")
            case _:
                pass

    def superseded(self, broker_id: BrokerId, broker: HostingBroker | None) -> None:
        """Notes that a registration ended. A broker that leads by it, but hosts nothing, waits for another (S36)."""
        if broker is not None and not broker.partitions and _leads(broker.image, broker_id):
            self.mark("roles:held_back")

    def registered(self, event: events.BrokerRegistered) -> None:
        """A broker registered."""
        if event.stored_broker_epoch is not None and event.previous_broker_epoch != event.stored_broker_epoch:
            self.unclean_restarts += 1
            self.mark("registered:unclean")

    def fenced(self, event: events.BrokerFenced | events.ControlledShutdownStarted) -> None:
        """A broker may lead no longer."""
        self.mark(f"fenced:{event.reason}" if isinstance(event, events.BrokerFenced) else "controlled_shutdown")

    def decided(self, event: events.AlterPartitionDecided) -> None:
        """The controller judged a proposal."""
        self.mark(f"alter_partition:{event.error}")

    def answered(self, event: events.AlterPartitionAnswered, *, with_metadata: bool) -> None:
        """Notes that a leader acts on an AlterPartition response; with metadata in one step, it had waited (S38)."""
        if with_metadata and event.error == ErrorCode.NONE.name:
            self.mark("answered:held_back")

    def opened(self, node_id: NodeId, name: TopicPartition) -> None:
        """A process opens a log, which recovery has synced."""
        self._cut.discard((node_id, name))

    def truncated(self, node_id: NodeId, event: events.LogTruncated, *, high_watermark: Offset) -> None:
        """Notes that a log was truncated; ``high_watermark`` is the true one."""
        self.truncations += 1
        self._cut.add((node_id, TopicPartition(event.topic, event.partition)))
        self.mark(f"truncated:{event.reason}")
        if event.new_end_offset < high_watermark:
            self.mark("truncated:below_high_watermark")

    def power_lost(self, event: events.PowerLost) -> None:
        """A log went through a power loss."""
        if event.new_end_offset < event.old_end_offset:
            self.mark("power_loss:bytes")
        if (event.lost_node, TopicPartition(event.topic, event.partition)) in self._cut:
            self.mark("power_loss:after_truncation")


def _leads(image: MetadataImage, broker_id: BrokerId) -> bool:
    return any(state.leader == broker_id for state in image.partitions.values())
