"""Drives a ``Controller`` by hand: durable log, clock and disk are the test's."""

from typing import TypeVar

from laststand.emulator.core import admin_messages, events, inputs, messages, records
from laststand.emulator.core.controller.controller import Controller
from laststand.emulator.core.effects import (
    AppendMetadata,
    ControllerEffect,
    DrawNumber,
    PublishMetadata,
    RecordEvent,
    SendRequest,
    SendResponse,
)
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.metadata_version import BROKER_FEATURES
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.requester import Requester
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    CauseId,
    IncarnationId,
    LeaderRecoveryState,
    MetadataOffset,
    NodeId,
    RequestId,
    TopicId,
    TopicPartition,
)

CLUSTER = "cluster"
CONTROLLER = NodeId(100)
CAUSE = CauseId("test")
ORDERS = TopicPartition("orders", 0)
APPLIED_ALL = MetadataOffset(1_000_000)

ResponseType = TypeVar("ResponseType")


def ids(*values: int) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(NodeId(value)) for value in values)


class ControllerDriver:
    """A controller, its durable log, and everything that it let out.

    Attributes:
        log: appended batches; those below ``synced`` are durable.
        published: batches in the order of publication.
        events: events in the order of writing.
        requests: what it sent, for the test to take and answer.
        draws_wanted: how many numbers it asked for.
    """

    def __init__(self, switches: Switches, properties: NodeProperties) -> None:
        self.switches = switches
        self.properties = properties
        self.now_ms = 0
        self.log: list[records.MetadataBatch] = []
        self.synced = MetadataOffset(0)
        self.published: list[records.MetadataBatch] = []
        self.events: list[events.Event] = []
        self.responses: dict[RequestId, messages.Response] = {}
        self.requests: list[SendRequest] = []
        self.draws_wanted = 0
        self.auto_sync = True
        self.broker_epochs: dict[BrokerId, BrokerEpoch] = {}
        self._requests = 0
        self.controller = Controller(properties, switches, CLUSTER, CONTROLLER)
        self.step(inputs.Started(cause_id=CAUSE))

    @property
    def image(self) -> MetadataImage:
        return self.controller.image

    def step(self, incoming: inputs.ControllerInput) -> list[ControllerEffect]:
        effects = self.controller.step(incoming, now_ms=self.now_ms)
        self._take(effects)
        if self.auto_sync:
            self.sync()
        return effects

    def sync(self) -> None:
        end = self.log[-1].end_offset if self.log else MetadataOffset(0)
        while self.synced < end:
            self.synced = end
            self._take(
                self.controller.step(inputs.MetadataCommitted(cause_id=CAUSE, end_offset=end), now_ms=self.now_ms)
            )

    def _take(self, effects: list[ControllerEffect]) -> None:
        for effect in effects:
            match effect:
                case AppendMetadata(batch=batch, events=events):
                    assert not self.log or batch.base_offset == self.log[-1].end_offset
                    told = {getattr(event, "metadata_offset", None) for event in events} - {None}
                    assert told == set(range(batch.base_offset, batch.end_offset)), "a record without an event"
                    self.log.append(batch)
                case PublishMetadata(batch=batch):
                    assert batch.end_offset <= self.synced, "published before it was durable"
                    self.published.append(batch)
                case RecordEvent(event=event):
                    offset = getattr(event, "metadata_offset", None)
                    assert offset is None or offset < self.synced, "event of a record that is not durable"
                    self.events.append(event)
                case SendResponse(request_id=request_id, response=response):
                    assert request_id not in self.responses, "answered twice"
                    assert self.controller.committed_end_offset == self.synced
                    self.responses[request_id] = response
                case SendRequest():
                    self.requests.append(effect)
                case DrawNumber():
                    self.draws_wanted += 1
                case _:
                    pass

    def send(self, request: messages.Request, requester: Requester | None = None) -> RequestId:
        self._requests += 1
        request_id = RequestId(self._requests)
        received = inputs.RequestReceived(cause_id=CAUSE, request_id=request_id, request=request, requester=requester)
        self.step(received)
        return request_id

    def ask(
        self, request: messages.Request, expected: type[ResponseType], requester: Requester | None = None
    ) -> ResponseType:
        response = self.responses[self.send(request, requester)]
        assert isinstance(response, expected)
        return response

    def register(
        self,
        broker_id: int,
        incarnation: str,
        *,
        previous: BrokerEpoch | None = None,
        features: tuple[messages.FeatureRange, ...] = BROKER_FEATURES,
    ) -> messages.BrokerRegistrationResponse:
        [node] = ids(broker_id)
        response = self.ask(
            messages.BrokerRegistrationRequest(
                broker_id=node,
                cluster_id=CLUSTER,
                incarnation_id=IncarnationId(incarnation),
                log_dirs=(f"dir-{broker_id}",),
                features=features,
                previous_broker_epoch=previous,
            ),
            messages.BrokerRegistrationResponse,
        )
        if response.broker_epoch is not None:
            self.broker_epochs[node] = response.broker_epoch
        return response

    def heartbeat_request(self, broker_id: int, *wants: str) -> messages.BrokerHeartbeatRequest:
        [node] = ids(broker_id)
        return messages.BrokerHeartbeatRequest(
            broker_id=node,
            broker_epoch=self.broker_epochs[node],
            current_metadata_offset=APPLIED_ALL,
            want_fence="fence" in wants,
            want_shut_down="shut_down" in wants,
        )

    def heartbeat(self, broker_id: int, *wants: str) -> messages.BrokerHeartbeatResponse:
        return self.ask(self.heartbeat_request(broker_id, *wants), messages.BrokerHeartbeatResponse)

    def boot(self, *broker_ids: int) -> None:
        for broker_id in broker_ids:
            self.register(broker_id, f"incarnation-{broker_id}")
            self.heartbeat(broker_id)

    def create_topic(self, name: str, *assignments: tuple[BrokerId, ...]) -> admin_messages.CreateTopicsResponse:
        topic = admin_messages.CreatableTopic(name=name, topic_id=TopicId(f"{name}-id"), assignments=assignments)
        return self.ask(admin_messages.CreateTopicsRequest(topics=(topic,)), admin_messages.CreateTopicsResponse)

    def fire_timers(self) -> None:
        deadline = self.controller.next_deadline_ms()
        while deadline is not None and deadline <= self.now_ms:
            self.step(inputs.TimerFired(cause_id=CAUSE))
            deadline = self.controller.next_deadline_ms()

    def alter_request(self, sender: int, isr: tuple[int, ...], *, age: int = 0) -> messages.AlterPartitionRequest:
        [node] = ids(sender)
        state = self.image.partitions[ORDERS]
        data = messages.AlterPartitionData(
            topic=ORDERS.topic,
            topic_id=state.topic_id,
            partition=0,
            leader_epoch=state.leader_epoch,
            partition_epoch=type(state.partition_epoch)(state.partition_epoch - age),
            new_isr=tuple(messages.IsrMember(member, self.broker_epochs.get(member)) for member in ids(*isr)),
            leader_recovery_state=LeaderRecoveryState.RECOVERED,
        )
        return messages.AlterPartitionRequest(broker_id=node, broker_epoch=self.broker_epochs[node], partitions=(data,))

    def alter(self, sender: int, isr: tuple[int, ...], *, age: int = 0) -> messages.AlterPartitionResponse:
        return self.ask(self.alter_request(sender, isr, age=age), messages.AlterPartitionResponse)

    def restart(self) -> None:
        """Loses everything that is not durable."""
        self.log = [batch for batch in self.log if batch.end_offset <= self.synced]
        self.controller = Controller(self.properties, self.switches, CLUSTER, CONTROLLER)
        for batch in self.log:
            self.controller.replay(batch)
        self.step(inputs.Started(cause_id=CAUSE))
