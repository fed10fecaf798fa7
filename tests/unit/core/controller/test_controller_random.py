"""Random brokers against one controller: after each step the invariants hold and the stream says what the image says.

The disk is slow at random: a step may leave records unsynced, and a restart then loses them. The driver asserts on the
way that no reply, event or batch leaves before its records are durable.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from laststand.emulator.core import messages, records
from laststand.emulator.core.controller import invariants
from laststand.emulator.core.controller.min_isr import MinIsr, configured_min_isr
from laststand.emulator.core.controller.registration import Shutdown
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.metadata_version import BROKER_FEATURES
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.switches import ERAS
from laststand.emulator.core.types import BrokerEpoch, IncarnationId, MetadataOffset
from tests.unit.core.controller.controller_driver import CLUSTER, CONTROLLER, ORDERS, ControllerDriver, ids

BROKERS = (0, 1, 2, 3)
PROPERTIES = NodeProperties(min_insync_replicas=3, broker_session_timeout_ms=1000)

broker_ids = st.sampled_from(BROKERS)
isrs = st.lists(broker_ids, min_size=1, max_size=4, unique=True).map(tuple)


class ControllerMachine(RuleBasedStateMachine):
    era = "kip-966"

    def __init__(self) -> None:
        super().__init__()
        self.driver = ControllerDriver(ERAS[self.era], PROPERTIES)
        self.driver.boot(*BROKERS)
        self.driver.create_topic("orders", ids(0, 1, 2, 3))
        self.driver.create_topic("payments", ids(2, 3, 0), ids(1, 2, 3))
        self.incarnations = dict.fromkeys(BROKERS, 0)
        self.folded = MetadataImage()
        self.followed = 0

    def _learn_epoch(self, broker_id: int) -> None:
        # A registration whose answer is held back is learned of from the image once it is there.
        [node] = ids(broker_id)
        if node in self.driver.image.brokers:
            self.driver.broker_epochs[node] = self.driver.image.brokers[node].broker_epoch

    @rule(broker_id=broker_ids, wants=st.sampled_from([(), ("fence",), ("shut_down",), ("fence", "shut_down")]))
    def heartbeat(self, broker_id: int, wants: tuple[str, ...]) -> None:
        self._learn_epoch(broker_id)
        self.driver.send(self.driver.heartbeat_request(broker_id, *wants))

    @rule(broker_id=broker_ids)
    def serve(self, broker_id: int) -> None:
        self.heartbeat(broker_id, ())

    @rule(broker_id=broker_ids, shutdown=st.sampled_from(Shutdown))
    def restart_broker(self, broker_id: int, shutdown: Shutdown) -> None:
        [node] = ids(broker_id)
        self._learn_epoch(broker_id)
        self.incarnations[broker_id] += 1
        previous: BrokerEpoch | None = None
        if shutdown is Shutdown.CLEAN:
            previous = self.driver.broker_epochs.get(node)
        request = messages.BrokerRegistrationRequest(
            broker_id=node,
            cluster_id=CLUSTER,
            incarnation_id=IncarnationId(f"incarnation-{broker_id}-{self.incarnations[broker_id]}"),
            log_dirs=(f"dir-{broker_id}",),
            features=BROKER_FEATURES,
            previous_broker_epoch=previous,
        )
        self.driver.send(request)

    @rule(sender=broker_ids, isr=isrs, age=st.integers(-1, 1))
    def alter_partition(self, sender: int, isr: tuple[int, ...], age: int) -> None:
        for broker_id in BROKERS:
            self._learn_epoch(broker_id)
        self.driver.send(self.driver.alter_request(sender, isr, age=age))

    @rule(isr=isrs)
    def alter_partition_as_leader(self, isr: tuple[int, ...]) -> None:
        leader = self.driver.image.partitions[ORDERS].leader
        if leader is not None:
            self.alter_partition(leader, (leader, *(member for member in isr if member != leader)), 0)

    @rule(ms=st.integers(1, 1200))
    def pass_time(self, ms: int) -> None:
        self.driver.now_ms += ms
        self.driver.fire_timers()

    @rule()
    def slow_disk(self) -> None:
        self.driver.auto_sync = False

    @rule()
    def sync(self) -> None:
        self.driver.auto_sync = True
        self.driver.sync()

    @precondition(lambda self: self.driver.synced > 0)
    @rule()
    def restart_controller(self) -> None:
        self.driver.restart()

    @invariant()
    def partitions_are_sound(self) -> None:
        image = self.driver.image
        check_image(image, era=self.era)

    @invariant()
    def the_stream_folds_to_every_committed_state(self) -> None:
        for batch in self.driver.published[self.followed :]:
            fold_checked(self.folded, batch, era=self.era)
        self.followed = len(self.driver.published)
        if self.driver.synced == self.driver.image.next_offset:
            self.assert_folded_equals_image()

    def assert_folded_equals_image(self) -> None:
        image = self.driver.image
        durable = MetadataImage()
        for batch in self.driver.log:
            if batch.end_offset <= self.driver.synced:
                fold_checked(durable, batch, era=self.era)
        for folded in (self.folded, durable):
            assert folded.next_offset == image.next_offset
            assert folded.partitions == image.partitions
            assert folded.brokers == image.brokers
            assert folded.features == image.features


def check_image(image: MetadataImage, *, era: str) -> None:
    active = frozenset(broker.broker_id for broker in image.brokers.values() if broker.is_active)
    for partition, state in image.partitions.items():
        configured = configured_min_isr(image, topic=partition.topic, node_id=CONTROLLER, static=PROPERTIES)
        required = MinIsr(configured=configured).effective(state.replicas)
        invariants.check_partition(
            partition, state, active=active, effective_min_isr=required if ERAS[era].elr else None
        )


def fold_checked(image: MetadataImage, batch: records.MetadataBatch, *, era: str) -> None:
    """Replays a published batch and checks each record against the state before it."""
    for index, record in enumerate(batch.records):
        partitions, brokers = dict(image.partitions), dict(image.brokers)
        image.replay(record, offset=MetadataOffset(batch.base_offset + index))
        for partition, after in image.partitions.items():
            before = partitions.get(partition)
            if before is not None and before != after:
                invariants.check_m9_epochs(partition, before=before, after=after)
        for broker_id, registration in image.brokers.items():
            if registration != brokers.get(broker_id):
                invariants.check_m12_broker_epoch(before=brokers.get(broker_id), after=registration)
    check_image(image, era=era)


class ShippedMachine(ControllerMachine):
    era = "kafka-4.2"


class WithoutElrMachine(ControllerMachine):
    era = "kafka-3.9"


SETTINGS = settings(max_examples=60, stateful_step_count=40, deadline=None)

TestKipController = ControllerMachine.TestCase
TestKipController.settings = SETTINGS
TestShippedController = ShippedMachine.TestCase
TestShippedController.settings = SETTINGS
TestControllerWithoutElr = WithoutElrMachine.TestCase
TestControllerWithoutElr.settings = SETTINGS
