"""Simulated processes: a core with its own clock, and the state that survives a process."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Generic, Protocol, TypeVar

from laststand.emulator.client.members import MemberProcess
from laststand.emulator.client.pace import TransactionMaker
from laststand.emulator.core import effects, events, inputs, messages, records
from laststand.emulator.core.broker.kraft.broker import Broker
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.invariants import PartitionMark
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.client import steps
from laststand.emulator.core.client.committed_records import committed_batches
from laststand.emulator.core.client.consumer import Consumer
from laststand.emulator.core.client.producer import Producer
from laststand.emulator.core.client.transactional_producer import TransactionalProducer
from laststand.emulator.core.controller.controller import Controller
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.node_clock import NodeClock
from laststand.emulator.core.properties import NodeProperties, TopicProperties
from laststand.emulator.core.release import lacking_level
from laststand.emulator.core.requester import Requester
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import (
    Acks,
    BrokerEpoch,
    BrokerId,
    BrokerState,
    CauseId,
    CorrelationId,
    IncarnationId,
    LeaderEpoch,
    MetadataOffset,
    NodeId,
    NodeRole,
    Offset,
    TopicPartition,
)
from laststand.emulator.plan import actions
from laststand.emulator.plan.nodes import CLIENT, CONTROLLER
from laststand.emulator.simulator.disk.disk import Disk
from laststand.emulator.simulator.nodes.batch_registry import ENCODE_RECORDS, BatchRegistry

CLUSTER_ID: Final = "simulated"

InputT = TypeVar("InputT")
_InputT_contra = TypeVar("_InputT_contra", contravariant=True)


class StateMachine(Protocol[_InputT_contra]):
    """The interface that every core has."""

    def step(self, incoming: _InputT_contra | inputs.TimerFired, *, now_ms: int) -> Sequence[effects.Effect]:
        """Reacts to an input."""
        ...

    def next_deadline_ms(self) -> int | None:
        """Returns when ``TimerFired`` is due."""
        ...


class Node(Generic[InputT]):
    """A process, and what survives it on its machine.

    Attributes:
        node_id: the node's id.
        core: while it runs.
        incarnation: of the process that runs or ran last; -1 before the first.
        clock: survives the process, as the machine's does.
        is_paused: stopped by a signal; inputs wait in ``inbox``.
        inbox: inputs that arrived during the pause.
        armed_ms: virtual time of the timer that is set.
        pending_crash: ends the process within a turn to come.
    """

    def __init__(self, node_id: NodeId) -> None:
        self.node_id = node_id
        self.core: StateMachine[InputT] | None = None
        self.incarnation = -1
        self.clock = NodeClock()
        self.is_paused = False
        self.inbox: list[InputT] = []
        self.armed_ms: int | None = None
        self.pending_crash: actions.CrashWithin[NodeId] | None = None
        self._timers_fired = 0

    def next_timer_cause(self) -> CauseId:
        """Returns the cause id of the timer that fires now, unique among the timers of brokers and controllers."""
        self._timers_fired += 1
        return CauseId(f"timer-{self.node_id}-{self.incarnation}-{self._timers_fired}")

    def to_input(self, outcome: inputs.ResponseReceived | inputs.RequestFailed) -> InputT:
        """Converts the outcome of a request to an input of this node's core."""
        raise NotImplementedError

    @property
    def more_properties(self) -> Mapping[str, str]:
        """The node's own properties in addition to those of every node, by Kafka's names."""
        return {}

    def end(self) -> None:
        """Notes that the process ended."""
        self.core = None
        self.is_paused = False
        self.inbox = []
        self.armed_ms = None
        self.pending_crash = None


class StepNode(Protocol):
    """Hands an input to a node."""

    def __call__(self, node: Node[InputT], incoming: InputT, /) -> None:
        """Steps its core and executes the effects; no effect if no process runs."""
        ...


class HostingBroker(Protocol):
    """A running broker as others see it, in a cluster of either kind."""

    @property
    def broker_epoch(self) -> BrokerEpoch | None:
        """The broker epoch as granted; ``None`` before it is registered."""
        ...

    @property
    def state(self) -> BrokerState:
        """The state of the broker's life cycle."""
        ...

    @property
    def image(self) -> MetadataImage:
        """The metadata that the broker has received."""
        ...

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """All hosted partitions."""
        ...

    def partition(self, name: TopicPartition) -> Partition | None:
        """Returns a hosted partition."""
        ...

    def committed_positions(self, name: TopicPartition) -> Mapping[tuple[str, TopicPartition], Offset] | None:
        """Returns the committed positions of a partition's groups; ``None`` if the broker does not coordinate them."""
        ...

    def topic_properties(self, topic: str) -> TopicProperties:
        """Returns a topic's effective properties."""
        ...


class BrokerNode(Node[inputs.BrokerInput]):
    """A broker: its disk stays.

    Args:
        broker_id: of the broker.
        controller_ids: the controllers of its cluster.

    Attributes:
        incarnation_id: id with which the running or last process registers; ``None`` before the first.
        disk: survives the process.
        broker: the core, while it runs.
        marks: state of each hosted partition that the oracle saw last.
    """

    def __init__(self, broker_id: BrokerId, controller_ids: tuple[NodeId, ...] = (CONTROLLER,)) -> None:
        super().__init__(broker_id)
        self.broker_id = broker_id
        self._controller_ids = controller_ids
        self.incarnation_id: IncarnationId | None = None
        self.disk = Disk()
        self.broker: HostingBroker | None = None
        self.marks: dict[TopicPartition, PartitionMark] = {}

    def boot(self, switches: Switches, properties: NodeProperties) -> None:
        """Makes a new process on the disk."""
        self.incarnation += 1
        self.incarnation_id = incarnation_name(self.broker_id, self.incarnation)
        self.marks = {}
        self.core = self.broker = Broker(
            BrokerConfig(
                broker_id=self.broker_id,
                controller_ids=self._controller_ids,
                cluster_id=CLUSTER_ID,
                incarnation_id=self.incarnation_id,
                log_dirs=(f"directory-{self.broker_id}-{self.disk.generation}",),
                previous_broker_epoch=self.disk.previous_broker_epoch(),
                properties=properties,
                switches=switches,
            ),
            ENCODE_RECORDS,
        )

    def metadata_end(self, name: TopicPartition) -> MetadataOffset:
        """Returns the metadata offset up to which the running process knows a partition."""
        assert self.broker is not None
        return self.broker.image.next_offset

    def to_input(self, outcome: inputs.ResponseReceived | inputs.RequestFailed) -> inputs.BrokerInput:
        """Returns the outcome unchanged."""
        return outcome

    def end(self) -> None:
        """Notes that the process ended; the disk stays."""
        super().end()
        self.broker = None


class MetadataNode(Node[inputs.ControllerInput]):
    """A node that has the metadata: node 100, or one of several controllers.

    Attributes:
        durable: the committed metadata.
    """

    role: ClassVar[NodeRole]

    def __init__(self, node_id: NodeId = CONTROLLER) -> None:
        super().__init__(node_id)
        self.durable = MetadataImage()

    @property
    def committed_end_offset(self) -> MetadataOffset:
        """The end (exclusive) of the committed metadata."""
        raise NotImplementedError

    @property
    def length(self) -> int:
        """The number of batches it has written, synced or not."""
        raise NotImplementedError

    def boot(self, switches: Switches, properties: NodeProperties) -> tuple[events.ControllerEvent, ...]:
        """Creates a new process; returns the events that its predecessor did not report."""
        raise NotImplementedError

    def start_refusal(self, switches: Switches) -> str | None:
        """Returns why a process would end at once on its disk, or ``None``."""
        return None

    def lose_election(self) -> bool:
        """Loses the ``quorum-state`` file; returns whether there was one."""
        return False

    @property
    def has_state(self) -> bool:
        """True if the ``quorum-state`` file exists, or the node needs none."""
        return True

    @property
    def has_first_disk(self) -> bool:
        """The node's disk was never replaced."""
        return True

    def replace_disk(self) -> None:
        """Gives the node an empty disk, if other controllers hold the metadata."""
        raise NotImplementedError

    def lose_unsynced(self) -> None:
        """Loses the unsynced data."""
        raise NotImplementedError

    def to_input(self, outcome: inputs.ResponseReceived | inputs.RequestFailed) -> inputs.ControllerInput:
        """Returns the outcome unchanged."""
        return outcome


class ControllerNode(MetadataNode):
    """The controller of a KRaft cluster: its metadata log stays.

    Attributes:
        log: appended batches, synced or not.
        events: of each batch.
        synced: number of durable batches.
        published: number of batches that brokers may read; their events are in the event log.
        durable: the image of the durable batches; the controller's own image may be ahead of it.
        draw: the number that the controller draws; an action sets it, because playing a plan draws nothing.
    """

    role = NodeRole.CONTROLLER

    def __init__(self) -> None:
        super().__init__()
        self.log: list[records.MetadataBatch] = []
        self.events: list[tuple[events.ControllerEvent, ...]] = []
        self.synced = 0
        self.published = 0
        self.draw = 0
        self.controller: Controller

    @property
    def committed_end_offset(self) -> MetadataOffset:
        """The end of the metadata that the controller takes to be committed."""
        return self.controller.committed_end_offset

    @property
    def served_epoch(self) -> LeaderEpoch | None:
        """0 while the controller runs: it has no other epoch, because it is the only one."""
        return None if self.core is None else LeaderEpoch(0)

    def may_read_metadata(self, requester: Requester) -> bool:
        """Returns whether a principal may open a metadata stream, or continue to read from it."""
        return self.controller.may_read_metadata(requester)

    @property
    def length(self) -> int:
        """Batches of the log."""
        return len(self.log)

    def start_refusal(self, switches: Switches) -> str | None:
        """Returns which feature level of the log a release lacks."""
        image = MetadataImage()
        for batch in self.log:
            _replay(image, batch)
        return lacking_level(image.features, switches)

    def boot(self, switches: Switches, properties: NodeProperties) -> tuple[events.ControllerEvent, ...]:
        """Creates a new process that replays the log; returns the events that its predecessor did not report."""
        self.incarnation += 1
        self.core = self.controller = Controller(properties, switches, CLUSTER_ID, CONTROLLER)
        for batch in self.log:
            self.controller.replay(batch)
        self.sync_to(len(self.log))
        unreported = tuple(event for events in self.events[self.published :] for event in events)
        self.published = len(self.log)
        return unreported

    def append(self, effect: effects.AppendMetadata) -> int:
        """Appends to the page cache; returns the present number of batches."""
        self.log.append(effect.batch)
        self.events.append(effect.events)
        return len(self.log)

    def lose_unsynced(self) -> None:
        """Loses the unsynced data."""
        del self.log[self.synced :]
        del self.events[self.synced :]

    def sync_to(self, length: int) -> None:
        """Makes the first ``length`` batches durable."""
        for batch in self.log[self.synced : length]:
            _replay(self.durable, batch)
        self.synced = max(self.synced, length)


def _replay(image: MetadataImage, batch: records.MetadataBatch) -> None:
    for index, record in enumerate(batch.records):
        image.replay(record, offset=MetadataOffset(batch.base_offset + index))


class ProducerNode(Node[steps.ProducerInput]):
    """A producer of the client process; it lives as long as the run."""

    def __init__(self, name: str, core: Producer, acks: Acks) -> None:
        super().__init__(CLIENT)
        self.name = name
        self.producer = core
        self.core = core
        self.acks = acks
        self.next_record_id = 0

    def to_input(self, outcome: inputs.ResponseReceived | inputs.RequestFailed) -> steps.ProducerInput:
        """Returns the outcome unchanged."""
        return outcome


class TransactionalProducerNode(Node[steps.TransactionalProducerInput]):
    """A transactional producer of the client process; it lives as long as the run."""

    def __init__(self, name: str, core: TransactionalProducer, batches: BatchRegistry) -> None:
        super().__init__(CLIENT)
        self.name = name
        self.producer = core
        self.core = core
        self.maker = TransactionMaker(name)
        self.fetches = Fetches(batches, is_committed_only=True)

    def to_input(self, outcome: inputs.ResponseReceived | inputs.RequestFailed) -> steps.TransactionalProducerInput:
        """Returns a fetch's answer with its records."""
        return self.fetches.to_input(outcome)


class MemberNode(Node[steps.MemberInput]):
    """A member of a group, of the client process."""

    def __init__(self, name: str, process: MemberProcess, batches: BatchRegistry) -> None:
        super().__init__(CLIENT)
        self.name = name
        self.process = process
        self.core = process
        self.fetches = Fetches(batches, is_committed_only=True)

    def to_input(self, outcome: inputs.ResponseReceived | inputs.RequestFailed) -> steps.MemberInput:
        """Returns a fetch's answer with its records."""
        return self.fetches.to_input(outcome)


class ConsumerNode(Node[steps.ConsumerInput]):
    """A consumer; ``node_id`` is where its links begin."""

    def __init__(
        self, name: str, core: Consumer, batches: BatchRegistry, *, node_id: NodeId, is_committed_only: bool
    ) -> None:
        super().__init__(node_id)
        self.name = name
        self.consumer = core
        self.core = core
        self.fetches = Fetches(batches, is_committed_only=is_committed_only)

    def to_input(self, outcome: inputs.ResponseReceived | inputs.RequestFailed) -> steps.ConsumerInput:
        """Returns a fetch's answer with its records."""
        return self.fetches.to_input(outcome)


class Fetches:
    """Fetches of one client that wait for a response; ``batches`` has the records of each batch."""

    def __init__(self, batches: BatchRegistry, *, is_committed_only: bool) -> None:
        self._is_committed_only = is_committed_only
        self._batches = batches
        self._asked: dict[CorrelationId, messages.FetchPartition] = {}

    def note_request(self, effect: effects.SendRequest) -> None:
        """Notes the offset that a fetch reads from."""
        if isinstance(effect.request, messages.FetchRequest):
            self._asked[effect.correlation_id] = effect.request.partitions[0]

    def to_input(
        self, outcome: inputs.ResponseReceived | inputs.RequestFailed
    ) -> inputs.ResponseReceived | inputs.RequestFailed | steps.RecordsReceived:
        """Returns a fetch response with its records, any other outcome unchanged."""
        asked = self._asked.pop(outcome.correlation_id, None)
        if asked is None or not isinstance(outcome, inputs.ResponseReceived):
            return outcome
        response = outcome.response
        assert isinstance(response, messages.FetchResponse), "a fetch is answered by a fetch response"
        if response.error is not ErrorCode.NONE or not response.partitions:
            answer = messages.FetchPartitionResponse(topic=asked.topic, partition=asked.partition, error=response.error)
        else:
            answer = response.partitions[0]
        given = answer.batches
        if self._is_committed_only:
            given = tuple(committed_batches(given, answer.aborted_transactions))
        polled = tuple(part for batch in given if (part := self._batches.polled(batch, position=asked.fetch_offset)))
        last = answer.batches[-1] if answer.batches else None
        return steps.RecordsReceived(
            cause_id=outcome.cause_id,
            correlation_id=outcome.correlation_id,
            response=answer,
            polled=polled,
            next_position=None if last is None else last.next_offset,
            next_leader_epoch=None if last is None else last.leader_epoch,
        )


def incarnation_name(broker_id: BrokerId, incarnation: int) -> IncarnationId:
    """Returns the identity that a broker process registers with."""
    return IncarnationId(f"incarnation-{broker_id}-{incarnation}")
