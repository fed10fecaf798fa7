"""Requests of administrators to a whole controller: limits, lists that mean all, several things in one request."""

import msgspec
import pytest

from laststand.emulator.core import admin_messages, events, messages
from laststand.emulator.core.controller import admin_handler
from laststand.emulator.core.controller.elect_leaders import ELECT_LIMIT, sweep_preferred, sweep_unclean
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.effective_config import effective_topic_properties
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.metadata_version import ELR, ELR_VERSION, LATEST, METADATA_VERSION, level_of
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.release import features_of, latest_metadata_version
from laststand.emulator.core.switches import ERAS, ClearElr, Switches, with_switch
from laststand.emulator.core.types import BrokerId, ConfigResource, FeatureUpgradeType, NodeId, TopicId, TopicPartition
from tests.unit.core.controller.controller_driver import CONTROLLER, ORDERS, ControllerDriver, ids

OF_3_9 = level_of("3.9")

MIN_ISR = "min.insync.replicas"


def driver(*, switches: Switches | None = None) -> ControllerDriver:
    properties = NodeProperties(min_insync_replicas=2, auto_leader_rebalance_enable=False)
    made = ControllerDriver(switches or Switches(), properties)
    made.boot(0, 1, 2)
    made.create_topic("orders", ids(0, 1, 2))
    return made


def view_of(made: ControllerDriver) -> ClusterView:
    return ClusterView(image=made.image, properties=made.properties, switches=made.switches, node_id=CONTROLLER)


def elect(
    made: ControllerDriver, election: int, *asked: admin_messages.ElectablePartition
) -> admin_messages.ElectLeadersResponse:
    return made.ask(
        admin_messages.ElectLeadersRequest(election_type=election, partitions=asked),
        admin_messages.ElectLeadersResponse,
    )


# --- ElectLeaders -------------------------------------------------------------------------------------------------


def test_an_election_type_that_does_not_exist_fails_the_request() -> None:
    assert (
        elect(driver(), 127, admin_messages.ElectablePartition(topic="orders", partition=0)).error
        is ErrorCode.INVALID_REQUEST
    )


def test_a_designated_leader_is_per_partition_so_not_for_all() -> None:
    request = admin_messages.ElectLeadersRequest(
        election_type=admin_messages.RequestedElection.DESIGNATED, partitions=None
    )
    assert driver().ask(request, admin_messages.ElectLeadersResponse).error is ErrorCode.INVALID_REQUEST


def test_all_partitions_means_those_that_need_an_election() -> None:
    made = driver()
    made.create_topic("events", ids(1, 2), ids(2, 1))
    made.create_topic("adverts", ids(0))  # needs none, and comes first
    made.heartbeat(1, "fence")
    made.heartbeat(1)

    request = admin_messages.ElectLeadersRequest(
        election_type=admin_messages.RequestedElection.PREFERRED, partitions=None
    )
    response = made.ask(request, admin_messages.ElectLeadersResponse)

    [result] = response.partitions
    assert (result.topic_partition, result.error) == (
        TopicPartition("events", 0),
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,  # broker 1 is back, and in no ISR yet
    )


def test_a_request_is_served_a_thousand_partitions() -> None:
    asked = [admin_messages.ElectablePartition(topic="nowhere", partition=index) for index in range(ELECT_LIMIT + 2)]

    results = elect(driver(), admin_messages.RequestedElection.PREFERRED, *asked).partitions

    assert [result.error for result in results] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * ELECT_LIMIT + [
        ErrorCode.REQUEST_LIMIT_REACHED
    ] * 2


def test_no_partitions_is_not_all_partitions() -> None:
    assert elect(driver(), admin_messages.RequestedElection.UNCLEAN).partitions == ()


def test_the_search_for_preferred_leaders_mends_every_partition_that_it_finds() -> None:
    made = driver()
    made.create_topic("events", ids(1, 2), ids(1, 0))
    made.heartbeat(1, "fence")
    made.heartbeat(1)
    names = [TopicPartition("events", index) for index in (0, 1)]
    for index, name in enumerate(names):
        state = made.image.partitions[name]
        member = state.leader
        assert member is not None
        isr = tuple(messages.IsrMember(broker_id, made.broker_epochs[broker_id]) for broker_id in (member, *ids(1)))
        data = messages.AlterPartitionData(
            topic="events",
            topic_id=state.topic_id,
            partition=index,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            new_isr=isr,
        )
        request = messages.AlterPartitionRequest(
            broker_id=member, broker_epoch=made.broker_epochs[member], partitions=(data,)
        )
        made.ask(request, messages.AlterPartitionResponse)
    assert len(sweep_preferred(view_of(made))) == 2


# --- Partitions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (admin_messages.CreatablePartitions(name="nowhere", count=2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (admin_messages.CreatablePartitions(name="orders", count=1), ErrorCode.INVALID_PARTITIONS),
        (admin_messages.CreatablePartitions(name="orders", count=0), ErrorCode.INVALID_PARTITIONS),
        (
            admin_messages.CreatablePartitions(name="orders", count=3, assignments=(ids(0, 1, 2),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            admin_messages.CreatablePartitions(name="orders", count=2, assignments=(ids(0, 1),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            admin_messages.CreatablePartitions(name="orders", count=2, assignments=(ids(0, 1, 9),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (admin_messages.CreatablePartitions(name="orders", count=2, assignments=(ids(2, 1, 0),)), ErrorCode.NONE),
        (admin_messages.CreatablePartitions(name="orders", count=3), ErrorCode.NONE),
    ],
)
def test_partitions_are_added(asked: admin_messages.CreatablePartitions, error: ErrorCode) -> None:
    made = driver()
    [result] = made.ask(
        admin_messages.CreatePartitionsRequest(topics=(asked,)), admin_messages.CreatePartitionsResponse
    ).topics

    assert result.error is error
    expected = asked.count if error is ErrorCode.NONE else 1
    assert len(made.image.partitions) == expected
    if asked.assignments and error is ErrorCode.NONE:
        assert made.image.partitions[TopicPartition("orders", 1)].replicas == ids(2, 1, 0)


def test_new_partitions_need_as_many_brokers_as_the_topic_has_replicas() -> None:
    made = driver()
    made.ask(admin_messages.UnregisterBrokerRequest(broker_id=ids(2)[0]), admin_messages.UnregisterBrokerResponse)

    request = admin_messages.CreatePartitionsRequest(
        topics=(admin_messages.CreatablePartitions(name="orders", count=2),)
    )
    [result] = made.ask(request, admin_messages.CreatePartitionsResponse).topics

    assert result.error is ErrorCode.INVALID_REPLICATION_FACTOR


def test_one_request_may_start_and_cancel_and_fail() -> None:
    made = driver()
    made.create_topic("events", ids(0))
    request = admin_messages.AlterPartitionReassignmentsRequest(
        partitions=(
            admin_messages.ReassignablePartition(topic="events", partition=0, replicas=ids(1)),
            admin_messages.ReassignablePartition(topic="events", partition=0, replicas=None),
            admin_messages.ReassignablePartition(topic="events", partition=0, replicas=None),
            admin_messages.ReassignablePartition(topic="events", partition=0, replicas=()),
            admin_messages.ReassignablePartition(topic="events", partition=7, replicas=ids(0)),
        )
    )
    response = made.ask(request, admin_messages.AlterPartitionReassignmentsResponse)

    assert [result.error for result in response.partitions] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_reassignments_are_listed_of_the_partitions_that_are_named() -> None:
    made = driver()
    made.create_topic("events", ids(0), ids(0))
    moves = tuple(
        admin_messages.ReassignablePartition(topic="events", partition=index, replicas=ids(1)) for index in (0, 1)
    )
    made.ask(
        admin_messages.AlterPartitionReassignmentsRequest(partitions=moves),
        admin_messages.AlterPartitionReassignmentsResponse,
    )

    def listed(*names: tuple[str, int]) -> list[tuple[str, int]]:
        request = admin_messages.ListPartitionReassignmentsRequest(partitions=names or None)
        response = made.ask(request, admin_messages.ListPartitionReassignmentsResponse)
        return [(moving.topic, moving.partition) for moving in response.partitions]

    assert listed() == [("events", 0), ("events", 1)]
    assert listed(("events", 1), ("orders", 0), ("nowhere", 0)) == [("events", 1)]


def test_the_replica_count_may_be_held_fixed() -> None:
    target = admin_messages.ReassignablePartition(topic="orders", partition=0, replicas=ids(0, 1))
    request = admin_messages.AlterPartitionReassignmentsRequest(
        partitions=(target,), allow_replication_factor_change=False
    )
    [result] = driver().ask(request, admin_messages.AlterPartitionReassignmentsResponse).partitions

    assert result.error is ErrorCode.INVALID_REPLICATION_FACTOR


# --- Configuration ------------------------------------------------------------------------------------------------


def set_configs(made: ControllerDriver, *changes: admin_messages.AlterableConfig, topic: str = "orders") -> ErrorCode:
    resource = admin_messages.AlterConfigsResource(resource=ConfigResource.TOPIC, resource_name=topic, configs=changes)
    request = admin_messages.IncrementalAlterConfigsRequest(resources=(resource,))
    return made.ask(request, admin_messages.IncrementalAlterConfigsResponse).resources[0].error


def setting(name: str, value: str | None) -> admin_messages.AlterableConfig:
    return admin_messages.AlterableConfig(name=name, operation=admin_messages.ConfigOperation.SET, value=value)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ((setting(MIN_ISR, "2"), setting(MIN_ISR, "3")), ErrorCode.INVALID_REQUEST),
        ((setting(MIN_ISR, None),), ErrorCode.INVALID_REQUEST),
        (
            (admin_messages.AlterableConfig(name=MIN_ISR, operation=admin_messages.ConfigOperation.DELETE, value="2"),),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            (
                admin_messages.AlterableConfig(
                    name=MIN_ISR, operation=admin_messages.ConfigOperation.SUBTRACT, value="2"
                ),
            ),
            ErrorCode.INVALID_CONFIG,
        ),
        ((setting("flush.ms", "5"), setting(MIN_ISR, "none")), ErrorCode.INVALID_CONFIG),
    ],
    ids=["twice", "without a value", "a deletion with one", "no list", "one of two is wrong"],
)
def test_a_resource_is_changed_as_a_whole_or_not_at_all(
    changes: tuple[admin_messages.AlterableConfig, ...], error: ErrorCode
) -> None:
    made = driver()
    assert set_configs(made, *changes) is error
    assert made.image.configs(ConfigResource.TOPIC, "orders") == {}


def test_a_resource_that_is_named_twice_is_changed_by_neither() -> None:
    made = driver()
    resource = admin_messages.AlterConfigsResource(
        resource=ConfigResource.TOPIC, resource_name="orders", configs=(setting("flush.ms", "1"),)
    )
    response = made.ask(
        admin_messages.IncrementalAlterConfigsRequest(resources=(resource, resource)),
        admin_messages.IncrementalAlterConfigsResponse,
    )

    assert [result.error for result in response.resources] == [ErrorCode.INVALID_REQUEST] * 2
    assert made.image.configs(ConfigResource.TOPIC, "orders") == {}


@pytest.mark.parametrize("name", ["", "7", "one"])
def test_what_does_not_exist_has_no_configuration(name: str) -> None:
    resource = ConfigResource.TOPIC if not name else ConfigResource.BROKER
    request = admin_messages.DescribeConfigsRequest(
        resources=(admin_messages.DescribeConfigsResource(resource=resource, resource_name=name),)
    )
    [described] = driver().ask(request, admin_messages.DescribeConfigsResponse).resources

    assert described.error in (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        ErrorCode.INVALID_REQUEST,
    )
    assert described.error_message
    assert described.configs == ()


@pytest.mark.parametrize(
    ("rule", "min_isr", "elr"),
    [
        (ClearElr.SATISFIED, "1", ()),
        (ClearElr.SATISFIED, "2", (1, 2)),
        (ClearElr.SATISFIED, "4", (1, 2)),
        (ClearElr.ALWAYS, "1", ()),
        (ClearElr.ALWAYS, "4", ()),
        (ClearElr.OFF, "1", (1, 2)),
    ],
)
def test_a_new_min_isr_and_the_elr(rule: ClearElr, min_isr: str, elr: tuple[int, ...]) -> None:
    made = driver(switches=Switches(clear_elr_on_min_isr_change=rule))
    set_configs(made, setting(MIN_ISR, "3"))
    made.alter(0, (0, 1))
    made.alter(0, (0,))
    before = made.image.partitions[ORDERS]
    assert before.elr == ids(1, 2)

    assert set_configs(made, setting(MIN_ISR, min_isr)) is ErrorCode.NONE

    after = made.image.partitions[ORDERS]
    assert after.elr == ids(*elr)
    assert after.leader_epoch == before.leader_epoch
    if not elr:
        *config, change = made.events[-3 if rule is ClearElr.ALWAYS else -2 :]
        assert [type(event) for event in config] == [events.ConfigChanged, events.ElrCleared][: len(config)]
        assert isinstance(change, events.PartitionChanged)
        assert (change.reason, change.elr) == ("min_isr_changed", ())


def test_clearing_an_elr_is_written_down_where_there_was_none() -> None:
    made = driver(switches=Switches(clear_elr_on_min_isr_change=ClearElr.ALWAYS))
    set_configs(made, setting(MIN_ISR, "3"))
    assert [type(event) for event in made.events[-2:]] == [events.ConfigChanged, events.ElrCleared]


def test_a_cluster_default_leaves_topics_alone_that_have_their_own() -> None:
    made = driver()
    made.create_topic("events", ids(0, 1, 2))
    set_configs(made, setting(MIN_ISR, "3"), topic="orders")
    set_configs(made, setting(MIN_ISR, "3"), topic="events")
    set_configs(
        made,
        admin_messages.AlterableConfig(name=MIN_ISR, operation=admin_messages.ConfigOperation.DELETE),
        topic="events",
    )
    made.alter(0, (0, 1))
    assert made.image.partitions[ORDERS].elr == ids(2)

    resource = admin_messages.AlterConfigsResource(
        resource=ConfigResource.BROKER, resource_name="", configs=(setting(MIN_ISR, "1"),)
    )
    made.ask(
        admin_messages.IncrementalAlterConfigsRequest(resources=(resource,)),
        admin_messages.IncrementalAlterConfigsResponse,
    )

    assert made.image.partitions[ORDERS].elr == ids(2)


@pytest.mark.parametrize("node_id", [CONTROLLER, NodeId(0)])
def test_brokers_and_the_controller_resolve_alike(node_id: NodeId) -> None:
    made = driver(switches=Switches(elr=False))
    static = NodeProperties(min_insync_replicas=4)

    def value() -> int:
        return effective_topic_properties(
            made.image, topic="orders", node_id=node_id, static=static
        ).min_insync_replicas

    def set_on(resource: ConfigResource, name: str, text: str) -> None:
        changes = admin_messages.AlterConfigsResource(
            resource=resource, resource_name=name, configs=(setting(MIN_ISR, text),)
        )
        made.ask(
            admin_messages.IncrementalAlterConfigsRequest(resources=(changes,)),
            admin_messages.IncrementalAlterConfigsResponse,
        )

    found = [value()]
    set_on(ConfigResource.BROKER, "", "3")
    found.append(value())
    set_on(ConfigResource.BROKER, "0", "2")
    found.append(value())
    set_on(ConfigResource.TOPIC, "orders", "1")
    found.append(value())

    assert found == [4, 3, 2 if node_id == NodeId(0) else 3, 1]


# --- Features and brokers -----------------------------------------------------------------------------------------


def update(*updates: tuple[str, int], upgrade_type: FeatureUpgradeType) -> admin_messages.UpdateFeaturesRequest:
    return admin_messages.UpdateFeaturesRequest(
        feature_updates=tuple(
            admin_messages.FeatureUpdate(feature=name, max_version_level=level, upgrade_type=upgrade_type)
            for name, level in updates
        )
    )


@pytest.mark.parametrize(
    ("updates", "error"),
    [
        ([(METADATA_VERSION, ELR - 1)], ErrorCode.INVALID_UPDATE_VERSION),
        ([(METADATA_VERSION, ELR - 1), (ELR_VERSION, 0)], ErrorCode.NONE),
        ([(ELR_VERSION, 0), (METADATA_VERSION, ELR - 1)], ErrorCode.NONE),
        ([(ELR_VERSION, 0), (ELR_VERSION, 1)], ErrorCode.INVALID_REQUEST),
        ([(ELR_VERSION, 0), (METADATA_VERSION, LATEST + 1)], ErrorCode.INVALID_UPDATE_VERSION),
    ],
)
def test_features_change_together_or_not_at_all(updates: list[tuple[str, int]], error: ErrorCode) -> None:
    made = driver()
    response = made.ask(
        update(*updates, upgrade_type=FeatureUpgradeType.UNSAFE_DOWNGRADE), admin_messages.UpdateFeaturesResponse
    )

    assert response.error is error
    changed = made.image.feature_level(ELR_VERSION) == 0
    assert changed is (error is ErrorCode.NONE)


def test_a_cluster_that_never_had_the_feature_may_go_below_the_version_that_it_needs() -> None:
    made = driver(switches=Switches(elr=False))
    request = update((METADATA_VERSION, ELR - 1), upgrade_type=FeatureUpgradeType.UNSAFE_DOWNGRADE)
    assert made.ask(request, admin_messages.UpdateFeaturesResponse).error is ErrorCode.NONE


def test_the_level_at_hand_leaves_the_elr_alone() -> None:
    made = driver()
    for broker_id in (1, 2):
        made.heartbeat(broker_id, "fence")
    eligible = made.image.partitions[ORDERS].elr
    assert eligible
    made.ask(update((ELR_VERSION, 1), upgrade_type=FeatureUpgradeType.UPGRADE), admin_messages.UpdateFeaturesResponse)
    assert made.image.partitions[ORDERS].elr == eligible


def test_a_feature_that_a_registered_broker_lacks_stays_off() -> None:
    made = driver()
    down = update((ELR_VERSION, 0), (METADATA_VERSION, OF_3_9), upgrade_type=FeatureUpgradeType.SAFE_DOWNGRADE)
    ups = [
        update((ELR_VERSION, 1), upgrade_type=FeatureUpgradeType.UPGRADE),
        update((METADATA_VERSION, LATEST), upgrade_type=FeatureUpgradeType.UPGRADE),
    ]
    assert made.ask(down, admin_messages.UpdateFeaturesResponse).error is ErrorCode.NONE
    made.now_ms += 20_000  # the sessions are over
    assert made.register(2, "of 3.9", features=features_of(ERAS["kafka-3.9"])).error is ErrorCode.NONE
    refused = [made.ask(each, admin_messages.UpdateFeaturesResponse).error for each in ups]
    made.now_ms += 20_000
    made.register(2, "of 4.2", features=features_of(ERAS["kafka-4.2"]))
    accepted = [made.ask(each, admin_messages.UpdateFeaturesResponse).error for each in reversed(ups)]

    assert refused == [ErrorCode.INVALID_UPDATE_VERSION] * 2
    assert accepted == [ErrorCode.NONE] * 2


def test_a_broker_whose_release_lacks_the_metadata_version_is_not_let_in() -> None:
    made = driver()
    off = update((ELR_VERSION, 0), upgrade_type=FeatureUpgradeType.SAFE_DOWNGRADE)
    made.ask(off, admin_messages.UpdateFeaturesResponse)
    answer = made.register(9, "of 3.9", features=features_of(ERAS["kafka-3.9"]))
    assert answer.error is ErrorCode.UNSUPPORTED_VERSION


def test_a_controller_of_3_9_begins_with_its_own_metadata_version_and_raises_it_no_further() -> None:
    made = driver(switches=ERAS["kafka-3.9"])
    assert made.image.feature_level(METADATA_VERSION) == OF_3_9
    raised = made.ask(
        update((METADATA_VERSION, OF_3_9 + 1), upgrade_type=FeatureUpgradeType.UPGRADE),
        admin_messages.UpdateFeaturesResponse,
    )
    assert raised.error is ErrorCode.INVALID_UPDATE_VERSION
    described = made.ask(admin_messages.DescribeFeaturesRequest(), admin_messages.DescribeFeaturesResponse)
    assert {each.name: each.max_supported_version for each in described.features} == {
        ELR_VERSION: 0,
        METADATA_VERSION: OF_3_9,
    }


@pytest.mark.parametrize(
    ("rules", "level"),
    [
        (ERAS["kafka-0.11"], OF_3_9),
        (with_switch(ERAS["kafka-3.9"], "partition_verification", "off"), OF_3_9),
        (ERAS["kafka-4.2"], LATEST),
        (with_switch(ERAS["kip-966"], "elr", "off"), LATEST),
    ],
)
def test_the_metadata_versions_of_a_release_follow_from_its_rules(rules: Switches, level: int) -> None:
    assert latest_metadata_version(rules) == level


def test_a_feature_that_the_switch_forbids_is_not_supported() -> None:
    made = driver(switches=Switches(elr=False))
    response = made.ask(
        update((ELR_VERSION, 1), upgrade_type=FeatureUpgradeType.UPGRADE), admin_messages.UpdateFeaturesResponse
    )

    assert response.error is ErrorCode.UNSUPPORTED_VERSION


def test_a_broker_that_was_forgotten_while_it_shut_down_starts_over() -> None:
    made = driver()
    made.heartbeat(0, "shut_down")  # it leads, so it may not stop at once
    assert made.image.brokers[BrokerId(NodeId(0))].in_controlled_shutdown
    made.ask(
        admin_messages.UnregisterBrokerRequest(broker_id=BrokerId(NodeId(0))), admin_messages.UnregisterBrokerResponse
    )
    made.register(0, "another")

    assert [made.heartbeat(0).is_fenced for _ in range(2)] == [False, False]
    assert not made.image.brokers[BrokerId(NodeId(0))].in_controlled_shutdown


def test_topic_ids_that_are_taken_are_refused_in_one_request() -> None:
    made = driver()
    twins = tuple(
        admin_messages.CreatableTopic(name=name, topic_id=TopicId("same"), num_partitions=1) for name in ("a", "b")
    )
    response = made.ask(admin_messages.CreateTopicsRequest(topics=twins), admin_messages.CreateTopicsResponse)

    assert [result.error for result in response.topics] == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize(("downgrade_ignores_elr", "elr"), [(True, ()), (False, (1,))])
def test_an_elr_that_a_downgrade_left_is_gone_when_the_feature_returns(
    *, downgrade_ignores_elr: bool, elr: tuple[int, ...]
) -> None:
    made = driver(switches=Switches(downgrade_ignores_elr=downgrade_ignores_elr))
    made.heartbeat(2, "fence")
    made.heartbeat(1, "fence")
    assert made.image.partitions[ORDERS].elr == (1,)
    made.ask(
        update((ELR_VERSION, 0), upgrade_type=FeatureUpgradeType.SAFE_DOWNGRADE), admin_messages.UpdateFeaturesResponse
    )
    assert made.image.partitions[ORDERS].elr == (1,), "it goes with the next change"
    for _ in range(2):  # the second is no upgrade, and forgets nothing
        made.ask(
            update((ELR_VERSION, 1), upgrade_type=FeatureUpgradeType.UPGRADE), admin_messages.UpdateFeaturesResponse
        )
        assert made.image.partitions[ORDERS].elr == elr
    cleared = [event for event in made.events if isinstance(event, events.ElrCleared)]
    assert len(cleared) == downgrade_ignores_elr


def test_a_feature_returns_without_a_word_where_nothing_is_left_over() -> None:
    made = driver()
    made.ask(
        update((ELR_VERSION, 0), upgrade_type=FeatureUpgradeType.SAFE_DOWNGRADE), admin_messages.UpdateFeaturesResponse
    )
    made.ask(update((ELR_VERSION, 1), upgrade_type=FeatureUpgradeType.UPGRADE), admin_messages.UpdateFeaturesResponse)
    assert not any(isinstance(event, events.ElrCleared) for event in made.events)


@pytest.mark.parametrize("upgrade_type", list(FeatureUpgradeType))
def test_the_level_at_hand_is_no_change_of_any_kind(upgrade_type: FeatureUpgradeType) -> None:
    response = driver().ask(update((ELR_VERSION, 1), upgrade_type=upgrade_type), admin_messages.UpdateFeaturesResponse)
    assert response.error is ErrorCode.NONE


def test_a_new_min_isr_of_one_topic_leaves_the_elr_of_the_others() -> None:
    made = driver()
    made.create_topic("events", ids(0, 1, 2))
    made.heartbeat(2, "fence")
    made.heartbeat(1, "fence")
    events = TopicPartition("events", 0)
    assert [made.image.partitions[name].elr for name in (ORDERS, events)] == [ids(1), ids(1)]
    set_configs(made, setting(MIN_ISR, "1"))
    assert [made.image.partitions[name].elr for name in (ORDERS, events)] == [(), ids(1)]


@pytest.mark.parametrize(
    ("resource", "name", "written"),
    [
        (ConfigResource.TOPIC, "orders", 1),
        (ConfigResource.BROKER, "1", 1),
        (ConfigResource.BROKER, "", 2),  # again, so that every broker sees it
    ],
)
def test_a_value_that_is_set_again_is_written_again_for_the_cluster_alone(
    resource: ConfigResource, name: str, written: int
) -> None:
    made = driver()
    before = sum(isinstance(event, events.ConfigChanged) for event in made.events)
    change = admin_messages.AlterConfigsResource(
        resource=resource, resource_name=name, configs=(setting("flush.ms", "77"),)
    )
    if resource is ConfigResource.BROKER:
        change = msgspec.structs.replace(change, configs=(setting("log.flush.interval.ms", "77"),))
    for _ in range(2):
        request = admin_messages.IncrementalAlterConfigsRequest(resources=(change,))
        [result] = made.ask(request, admin_messages.IncrementalAlterConfigsResponse).resources
        assert result.error is ErrorCode.NONE, result
    assert sum(isinstance(event, events.ConfigChanged) for event in made.events) - before == written


def test_the_search_for_unclean_leaders_mends_every_partition_whose_topic_allows_it() -> None:
    made = driver()
    made.create_topic("events", ids(1), ids(1))
    made.create_topic("payments", ids(1))
    set_configs(made, setting("unclean.leader.election.enable", "true"), topic="events")
    for name, state in list(made.image.partitions.items()):
        made.image.partitions[name] = msgspec.structs.replace(state, leader=None, isr=(), elr=())
    decisions = sweep_unclean(view_of(made))
    assert [getattr(decision.record, "leader", None) for decision in decisions] == [1, 1]


def test_an_item_may_be_taken_from_a_list() -> None:
    made = driver()
    set_configs(made, setting("cleanup.policy", "compact,delete"))
    absent = admin_messages.AlterableConfig(
        name="cleanup.policy", operation=admin_messages.ConfigOperation.SUBTRACT, value="missing"
    )
    assert set_configs(made, absent) is ErrorCode.NONE
    assert made.image.config(ConfigResource.TOPIC, "orders", "cleanup.policy") == "compact,delete"
    taken = admin_messages.AlterableConfig(
        name="cleanup.policy", operation=admin_messages.ConfigOperation.SUBTRACT, value="compact, missing"
    )
    assert set_configs(made, taken) is ErrorCode.NONE
    assert made.image.config(ConfigResource.TOPIC, "orders", "cleanup.policy") == "delete"
    nothing = admin_messages.AlterableConfig(
        name="cleanup.policy", operation=admin_messages.ConfigOperation.APPEND, value=""
    )
    assert set_configs(made, nothing) is ErrorCode.NONE
    given = admin_messages.AlterableConfig(
        name="cleanup.policy", operation=admin_messages.ConfigOperation.APPEND, value="delete,compact"
    )
    assert set_configs(made, given) is ErrorCode.NONE
    assert made.image.config(ConfigResource.TOPIC, "orders", "cleanup.policy") == "delete,compact"


def test_what_a_running_node_cannot_change_is_described_as_read_only() -> None:
    def read_only(resource: ConfigResource, name: str) -> dict[str, bool]:
        request = admin_messages.DescribeConfigsRequest(
            resources=(admin_messages.DescribeConfigsResource(resource=resource, resource_name=name),)
        )
        [described] = driver().ask(request, admin_messages.DescribeConfigsResponse).resources
        return {config.name: config.read_only for config in described.configs}

    broker = read_only(ConfigResource.BROKER, "1")
    assert broker["replica.lag.time.max.ms"]
    assert not broker[MIN_ISR]
    assert not any(read_only(ConfigResource.TOPIC, "orders").values())


def test_a_broker_is_described_with_its_id_which_nobody_changes() -> None:
    made = driver()
    asked = admin_messages.DescribeConfigsResource(
        resource=ConfigResource.BROKER, resource_name="1", configuration_keys=("broker.id", "node.id")
    )
    request = admin_messages.DescribeConfigsRequest(resources=(asked,))
    [described] = made.ask(request, admin_messages.DescribeConfigsResponse).resources
    assert [(config.name, config.value, config.read_only) for config in described.configs] == [
        ("broker.id", "1", True),
        ("node.id", "1", True),
    ]
    assert [[each.value for each in config.synonyms] for config in described.configs] == [["1", "-1"], ["1"]]
    change = admin_messages.AlterConfigsResource(
        resource=ConfigResource.BROKER, resource_name="1", configs=(setting("broker.id", "7"),)
    )
    altered = admin_messages.IncrementalAlterConfigsRequest(resources=(change,))
    [result] = made.ask(altered, admin_messages.IncrementalAlterConfigsResponse).resources
    assert result.error is ErrorCode.INVALID_REQUEST


def test_a_min_isr_that_the_isr_has_ends_the_memory_of_who_was_eligible() -> None:
    made = driver()
    state = made.image.partitions[ORDERS]
    made.image.partitions[ORDERS] = msgspec.structs.replace(state, isr=ids(0), last_known_elr=ids(1))
    set_configs(made, setting(MIN_ISR, "1"))
    assert made.image.partitions[ORDERS].last_known_elr == ()


def test_a_cancelled_reassignment_elects_as_its_topic_allows() -> None:
    # The first that remains is put into the ISR and is down; where losses are allowed, another that remains leads.
    made = driver(switches=Switches(cancel_requires_min_isr=False))
    set_configs(made, setting("unclean.leader.election.enable", "true"))
    made.heartbeat(0, "fence")
    moving = msgspec.structs.replace(
        made.image.partitions[ORDERS], adding_replicas=ids(2), isr=ids(2), elr=(), leader=ids(2)[0]
    )
    made.image.partitions[ORDERS] = moving
    target = admin_messages.ReassignablePartition(topic="orders", partition=0, replicas=None)
    request = admin_messages.AlterPartitionReassignmentsRequest(partitions=(target,))
    [result] = made.ask(request, admin_messages.AlterPartitionReassignmentsResponse).partitions
    after = made.image.partitions[ORDERS]
    assert (result.error, after.replicas, after.leader) == (ErrorCode.NONE, ids(0, 1), 1)


@pytest.mark.parametrize(("elr", "highest"), [(True, 1), (False, 0)])
def test_features_are_described_as_far_as_the_switches_let_them_go(*, elr: bool, highest: int) -> None:
    described = (
        driver(switches=Switches(elr=elr))
        .ask(admin_messages.DescribeFeaturesRequest(), admin_messages.DescribeFeaturesResponse)
        .features
    )
    assert {feature.name: feature.max_supported_version for feature in described} == {
        ELR_VERSION: highest,
        METADATA_VERSION: LATEST,
    }


def test_the_search_for_unclean_leaders_begins_by_itself() -> None:
    made = driver()
    made.properties = msgspec.structs.replace(made.properties, broker_session_timeout_ms=10**9)
    made.restart()
    set_configs(made, setting("unclean.leader.election.enable", "true"))
    state = made.image.partitions[ORDERS]
    made.image.partitions[ORDERS] = msgspec.structs.replace(state, leader=None, isr=(), elr=())
    made.now_ms += made.properties.unclean_leader_election_interval_ms
    made.fire_timers()
    assert made.image.partitions[ORDERS].leader == 0


# --- CreateTopics -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "error"), [(10, ErrorCode.NONE), (11, ErrorCode.POLICY_VIOLATION)])
def test_one_request_makes_no_more_partitions_than_kafka_lets_it(
    count: int, error: ErrorCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert admin_handler.PARTITIONS_PER_REQUEST_MAX == 10_000
    monkeypatch.setattr(admin_handler, "PARTITIONS_PER_REQUEST_MAX", 10)
    topic = admin_messages.CreatableTopic(
        name="wide", topic_id=TopicId("wide"), num_partitions=count - 1, replication_factor=1
    )
    single = admin_messages.CreatableTopic(name="one", topic_id=TopicId("one"), replication_factor=1)
    request = admin_messages.CreateTopicsRequest(topics=(topic, single))
    response = driver().ask(request, admin_messages.CreateTopicsResponse)
    assert [result.error for result in response.topics] == [error, error]


@pytest.mark.parametrize(("added", "error"), [(10, ErrorCode.NONE), (11, ErrorCode.POLICY_VIOLATION)])
def test_one_request_adds_no_more_partitions_than_kafka_lets_it(
    added: int, error: ErrorCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_handler, "PARTITIONS_PER_REQUEST_MAX", 10)
    made = driver()
    present = len(made.image.partitions_of("orders"))
    wide = admin_messages.CreatablePartitions(name="orders", count=present + added)
    response = made.ask(admin_messages.CreatePartitionsRequest(topics=(wide,)), admin_messages.CreatePartitionsResponse)
    assert [result.error for result in response.topics] == [error]
    assert len(made.image.partitions_of("orders")) == present + (added if error is ErrorCode.NONE else 0)
