"""Random brokers and a random administrator against one controller: whatever is asked for, the state stays sound.

Beside what ``test_controller_random`` does there are reassignments, elections of every type, min ISR up and down, and
the feature going and coming. M3 is checked as each change was decided: a new min ISR, or a new replica count of
partition 0, alone changes no partition under the KIP's rules.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from laststand.emulator.core import admin_messages, events
from laststand.emulator.core.controller import invariants
from laststand.emulator.core.controller.features import is_elr_enabled
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.metadata_version import ELR_VERSION
from laststand.emulator.core.switches import ERAS, Switches
from laststand.emulator.core.types import ConfigResource, FeatureUpgradeType, MetadataOffset, TopicPartition
from tests.unit.core.controller.controller_driver import ids
from tests.unit.core.controller.test_controller_random import ControllerMachine, broker_ids

PARTITIONS = (TopicPartition("orders", 0), TopicPartition("payments", 0), TopicPartition("payments", 1))
partitions = st.sampled_from(PARTITIONS)


class AdministeredMachine(ControllerMachine):
    def __init__(self) -> None:
        super().__init__()
        self.told = 0

    @rule(partition=partitions, replicas=st.lists(broker_ids, max_size=4, unique=True))
    def reassign(self, partition: TopicPartition, replicas: list[int]) -> None:
        target = admin_messages.ReassignablePartition(
            topic=partition.topic, partition=partition.partition, replicas=ids(*replicas) or None
        )
        self.driver.send(admin_messages.AlterPartitionReassignmentsRequest(partitions=(target,)))

    @rule(partition=partitions, election=st.sampled_from(admin_messages.RequestedElection), leader=broker_ids)
    def elect(self, partition: TopicPartition, election: admin_messages.RequestedElection, leader: int) -> None:
        asked = admin_messages.ElectablePartition(
            topic=partition.topic, partition=partition.partition, desired_leader=ids(leader)[0]
        )
        self.driver.send(admin_messages.ElectLeadersRequest(election_type=election, partitions=(asked,)))

    @rule(topic=st.sampled_from(("orders", "payments", None)), min_isr=st.integers(1, 4))
    def set_min_isr(self, topic: str | None, min_isr: int) -> None:
        change = admin_messages.AlterableConfig(
            name="min.insync.replicas", operation=admin_messages.ConfigOperation.SET, value=str(min_isr)
        )
        resource = ConfigResource.BROKER if topic is None else ConfigResource.TOPIC
        asked = admin_messages.AlterConfigsResource(resource=resource, resource_name=topic or "", configs=(change,))
        self.driver.send(admin_messages.IncrementalAlterConfigsRequest(resources=(asked,)))

    @rule(level=st.integers(0, 1), upgrade_type=st.sampled_from(FeatureUpgradeType))
    def set_feature(self, level: int, upgrade_type: FeatureUpgradeType) -> None:
        update = admin_messages.FeatureUpdate(feature=ELR_VERSION, max_version_level=level, upgrade_type=upgrade_type)
        self.driver.send(admin_messages.UpdateFeaturesRequest(feature_updates=(update,)))

    @rule(broker_id=broker_ids)
    def unregister(self, broker_id: int) -> None:
        self.driver.send(admin_messages.UnregisterBrokerRequest(broker_id=ids(broker_id)[0]))

    @invariant()
    def partitions_are_sound(self) -> None:
        check_members(self.driver.image, ERAS[self.era])

    @invariant()
    def the_stream_folds_to_every_committed_state(self) -> None:
        for batch in self.driver.published[self.followed :]:
            for index, record in enumerate(batch.records):
                before = dict(self.folded.partitions)
                self.folded.replay(record, offset=MetadataOffset(batch.base_offset + index))
                for partition, after in self.folded.partitions.items():
                    if partition in before and before[partition] != after:
                        invariants.check_m9_epochs(partition, before=before[partition], after=after)
            check_members(self.folded, ERAS[self.era])
        self.followed = len(self.driver.published)
        if self.driver.synced == self.driver.image.next_offset:
            assert self.folded.partitions == self.driver.image.partitions

    @invariant()
    def the_elr_has_members_only_while_the_isr_is_too_small(self) -> None:
        if not is_elr_enabled(self.driver.image, ERAS[self.era]):
            return
        for event in self.driver.events[self.told :]:
            if isinstance(event, events.PartitionChanged) and event.elr:
                assert len(event.isr) < event.effective_min_isr, event
        self.told = len(self.driver.events)


def check_members(image: MetadataImage, switches: Switches) -> None:
    active = frozenset(broker.broker_id for broker in image.brokers.values() if broker.is_active)
    for partition, state in image.partitions.items():
        invariants.check_m1_members(partition, state)
        if switches.elr_within_replicas:
            invariants.check_m17_elr_replicas(partition, state)
        invariants.check_m2_active_leader(partition, state, active=active)
        assert set(state.last_known_elr) <= set(state.replicas)
        assert state.last_known_leader is None or state.last_known_leader in state.replicas


TestAdministeredController = AdministeredMachine.TestCase
TestAdministeredController.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
