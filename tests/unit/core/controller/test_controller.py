"""The state machine as a whole: what waits for the disk, time, restart, and the story of the last replica standing."""

import msgspec
import pytest

from laststand.emulator.core import admin_messages, effects, events, inputs, messages, records
from laststand.emulator.core.controller.controller import Controller
from laststand.emulator.core.controller.fencing import unfence_broker
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.errors import ConfigError, ErrorCode, InvariantError
from laststand.emulator.core.metadata_version import BROKER_FEATURES, ELR, ELR_VERSION, LATEST, LEVELS, METADATA_VERSION
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.switches import ERAS, SessionCheck, Switches, with_switch
from laststand.emulator.core.types import (
    BrokerEpoch,
    ConfigResource,
    FeatureUpgradeType,
    IncarnationId,
    LeaderRecoveryState,
    MetadataOffset,
    PartitionEpoch,
    RequestId,
    TopicId,
)
from tests.unit.core.controller.controller_driver import (
    CAUSE,
    CLUSTER,
    CONTROLLER,
    ORDERS,
    ControllerDriver,
    ids,
)

SESSION_MS = 2000
PROPERTIES = NodeProperties(min_insync_replicas=2, broker_session_timeout_ms=SESSION_MS)


def driver(era: str = "kip-966", *, switches: Switches | None = None) -> ControllerDriver:
    return ControllerDriver(switches or ERAS[era], PROPERTIES)


def booted(era: str = "kip-966", *, switches: Switches | None = None) -> ControllerDriver:
    made = driver(era, switches=switches)
    made.boot(0, 1, 2)
    created = made.create_topic("orders", ids(0, 1, 2))
    assert created.topics[0].error is ErrorCode.NONE
    return made


def elections(made: ControllerDriver) -> list[tuple[int | None, events.Election]]:
    changes = [event for event in made.events if isinstance(event, events.PartitionChanged)]
    return [(change.leader, change.election) for change in changes if change.election is not events.Election.NONE]


def expire(made: ControllerDriver, *broker_ids: int, alive: tuple[int, ...] = ()) -> None:
    made.now_ms += SESSION_MS
    for broker_id in alive:
        made.heartbeat(broker_id)
    made.now_ms += 1
    made.fire_timers()
    assert all(made.image.brokers[node].fenced for node in ids(*broker_ids))


# --- What waits for the disk --------------------------------------------------------------------------------------


def test_nothing_leaves_before_its_records_are_durable() -> None:
    made = booted()
    made.auto_sync = False
    before = len(made.published), len(made.events)
    altered = made.send(made.alter_request(0, (0, 1)))
    beaten = made.send(made.heartbeat_request(1))
    assert made.image.partitions[ORDERS].isr == ids(0, 1)
    assert altered not in made.responses
    assert beaten not in made.responses, "an answer read off state that is not durable must wait, too"
    assert (len(made.published), len(made.events)) == before
    made.sync()
    assert {altered, beaten} <= made.responses.keys()
    assert made.published[-1].records == made.log[-1].records
    assert isinstance(made.events[-1], events.AlterPartitionDecided)


def test_one_sync_releases_several_turns_events_first() -> None:
    made = booted()
    made.auto_sync = False
    made.send(made.alter_request(0, (0, 1)))
    made.send(made.alter_request(0, (0,)))
    effects = made.controller.step(
        inputs.MetadataCommitted(cause_id=CAUSE, end_offset=made.log[-1].end_offset), now_ms=made.now_ms
    )
    kinds = [type(effect).__name__ for effect in effects]
    assert kinds == ["RecordEvent"] * 4 + ["PublishMetadata", "SendResponse"] * 2


def test_a_partial_sync_releases_what_it_covers() -> None:
    made = booted()
    made.auto_sync = False
    first = made.send(made.alter_request(0, (0, 1)))
    second = made.send(made.alter_request(0, (0,)))
    made.synced = made.log[-2].end_offset
    made._take(made.controller.step(inputs.MetadataCommitted(cause_id=CAUSE, end_offset=made.synced), now_ms=0))
    assert first in made.responses
    assert second not in made.responses


def test_a_sync_of_what_was_never_appended_is_a_bug() -> None:
    made = driver()
    beyond = MetadataOffset(made.image.next_offset + 1)
    with pytest.raises(InvariantError):
        made.controller.step(inputs.MetadataCommitted(cause_id=CAUSE, end_offset=beyond), now_ms=0)


def test_a_stop_waits_for_answers_that_wait() -> None:
    made = booted()
    made.auto_sync = False
    made.send(made.alter_request(0, (0, 1)))
    assert made.controller.step(inputs.ShutdownRequested(cause_id=CAUSE), now_ms=0) == []
    synced = inputs.MetadataCommitted(cause_id=CAUSE, end_offset=made.log[-1].end_offset)
    assert made.controller.step(synced, now_ms=0)[-1] == effects.StopNode()


def test_a_request_for_a_broker_is_a_bug() -> None:
    made = driver()
    stray = inputs.RequestReceived(cause_id=CAUSE, request_id=RequestId(99), request=messages.MetadataRequest())
    with pytest.raises(InvariantError):
        made.controller.step(stray, now_ms=0)


# --- Start and restart --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("era", "level", "min_isr"), [("kip-966", 1, "2"), ("kafka-4.2", 1, "2"), ("kafka-3.9", 0, None)]
)
def test_bootstrap_turns_elr_on_where_the_era_has_it(era: str, level: int, min_isr: str | None) -> None:
    made = driver(era)
    assert made.image.feature_level("eligible.leader.replicas.version") == level
    assert made.image.feature_level("metadata.version") > 0
    assert made.image.config(ConfigResource.BROKER, "", "min.insync.replicas") == min_isr


def test_a_new_cluster_needs_a_version_that_has_the_features_of_its_rules() -> None:
    old = NodeProperties(metadata_version=LEVELS[ELR - 1])
    with pytest.raises(ConfigError, match="elr on"):
        ControllerDriver(Switches(), old)
    made = ControllerDriver(Switches(elr=False), old)
    assert made.image.feature_level(METADATA_VERSION) == ELR - 1


@pytest.mark.parametrize(("rebalances", "first_ms"), [(True, 7_000), (False, 50_000)])
def test_leaders_move_back_at_their_interval_if_at_all(*, rebalances: bool, first_ms: int) -> None:
    properties = NodeProperties(
        auto_leader_rebalance_enable=rebalances,
        leader_imbalance_check_interval_seconds=7,
        unclean_leader_election_interval_ms=50_000,
    )
    assert ControllerDriver(Switches(), properties).controller.next_deadline_ms() == first_ms


def test_a_restart_keeps_what_was_durable_and_nothing_else() -> None:
    made = booted()
    durable = dict(made.image.partitions)
    made.auto_sync = False
    made.send(made.alter_request(0, (0,)))
    assert made.image.partitions != durable
    made.restart()
    assert made.image.partitions == durable
    made.auto_sync = True
    assert made.alter(0, (0, 1)).partitions[0].error is ErrorCode.NONE


def test_a_restart_writes_no_second_bootstrap() -> None:
    made = booted()
    batches = len(made.log)
    made.restart()
    assert len(made.log) == batches


def test_after_a_restart_every_unfenced_broker_gets_a_full_session() -> None:
    made = booted()
    expire(made, 2, alive=(0, 1))
    made.now_ms += SESSION_MS - 1
    made.restart()
    made.now_ms += SESSION_MS
    made.fire_timers()
    assert not made.image.brokers[ids(0)[0]].fenced
    made.now_ms += 1
    made.fire_timers()
    assert all(registration.fenced for registration in made.image.brokers.values())


def test_replay_refuses_a_gap() -> None:
    made = driver()
    fresh = Controller(PROPERTIES, ERAS["kip-966"], CLUSTER, CONTROLLER)
    with pytest.raises(InvariantError):
        fresh.replay(records.MetadataBatch(base_offset=MetadataOffset(1), records=made.log[0].records))


# --- Sessions -----------------------------------------------------------------------------------------------------


def test_a_session_lasts_exactly_its_timeout() -> None:
    made = booted()
    made.now_ms = SESSION_MS
    made.fire_timers()
    assert not any(broker.fenced for broker in made.image.brokers.values())
    made.now_ms = SESSION_MS + 1
    made.fire_timers()
    assert all(broker.fenced for broker in made.image.brokers.values())
    assert [event.reason for event in made.events if isinstance(event, events.BrokerFenced)] == ["session_expired"] * 3


def test_brokers_that_expire_together_are_fenced_one_by_one() -> None:
    made = booted()
    expire(made, 0, 1, alive=(2,))
    assert [leader for leader, _ in elections(made)] == [0, 1, 2]
    assert made.image.partitions[ORDERS].leader_epoch == 2


@pytest.mark.parametrize(
    ("check", "error"),
    [
        (SessionCheck.CONTACT_TIME, ErrorCode.DUPLICATE_BROKER_REGISTRATION),
        (SessionCheck.UNFENCED, ErrorCode.NONE),
    ],
)
def test_a_fenced_broker_restarts_at_once_only_where_the_check_says_so(check: SessionCheck, error: ErrorCode) -> None:
    made = booted(switches=with_switch(ERAS["kip-966"], "session_check", check.value))
    assert made.register(2, "next").error is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    made.heartbeat(2, "fence")
    assert made.register(2, "next").error is error


def test_the_same_incarnation_keeps_its_epoch_and_writes_nothing() -> None:
    made = booted()
    epoch, batches = made.broker_epochs[ids(2)[0]], len(made.log)
    assert made.register(2, "incarnation-2").broker_epoch == epoch
    assert len(made.log) == batches


def test_controlled_shutdown_moves_leaders_then_waits_for_the_others() -> None:
    made = booted()
    made.heartbeat(0, "shut_down")
    assert made.image.partitions[ORDERS].leader == 1
    assert made.image.partitions[ORDERS].isr == ids(1, 2)
    assert made.heartbeat(0, "shut_down").should_shut_down
    assert made.image.brokers[ids(0)[0]].fenced


# --- The story ----------------------------------------------------------------------------------------------------


def last_replica_standing(made: ControllerDriver, *, previous: BrokerEpoch | None = None) -> None:
    expire(made, 0, alive=(1, 2))
    expire(made, 1, alive=(2,))
    expire(made, 2)
    made.register(2, "emptied", previous=previous)
    made.heartbeat(2)


def test_without_elr_the_emptied_broker_leads() -> None:
    made = booted("kafka-3.9")
    last_replica_standing(made)
    state = made.image.partitions[ORDERS]
    assert (state.leader, state.isr, state.elr) == (2, ids(2), ())
    assert elections(made)[-1] == (2, events.Election.ISR)


@pytest.mark.parametrize("era", ["kip-966", "kafka-4.2"])
def test_with_elr_the_partition_waits_for_the_eligible_one(era: str) -> None:
    made = booted(era)
    last_replica_standing(made)
    state = made.image.partitions[ORDERS]
    assert (state.leader, state.isr, state.elr) == (None, (), ids(1))
    assert state.last_known_leader == 2
    made.heartbeat(0)
    assert made.image.partitions[ORDERS].leader is None
    made.heartbeat(1)
    state = made.image.partitions[ORDERS]
    assert (state.leader, state.isr, state.elr) == (1, ids(1), ())
    assert elections(made)[-1] == (1, events.Election.ELR)


def test_what_detection_finds_is_what_keeps_the_emptied_broker_out() -> None:
    made = booted(switches=with_switch(ERAS["kip-966"], "unclean_detection", "off"))
    last_replica_standing(made)
    assert made.image.partitions[ORDERS].leader == 2
    registered = [event for event in made.events if isinstance(event, events.BrokerRegistered)][-1]
    assert registered.is_clean
    assert registered.previous_broker_epoch is None


def test_a_proved_clean_restart_stays_eligible() -> None:
    made = booted()
    last_replica_standing(made, previous=made.broker_epochs[ids(2)[0]])
    assert made.image.partitions[ORDERS].leader == 2
    assert elections(made)[-1] == (2, events.Election.ELR)


# --- AlterPartition -----------------------------------------------------------------------------------------------


def test_an_old_partition_epoch_is_refused_unless_the_check_is_off() -> None:
    made = booted()
    made.alter(0, (0, 1))
    assert made.alter(0, (0, 1, 2), age=1).partitions[0].error is ErrorCode.INVALID_UPDATE_VERSION
    lax = booted(switches=with_switch(ERAS["kip-966"], "ap_partition_epoch_check", "off"))
    lax.alter(0, (0, 1))
    assert lax.alter(0, (0, 1, 2), age=1).partitions[0].error is ErrorCode.NONE


def test_a_member_of_an_earlier_incarnation_is_refused_unless_the_check_is_off() -> None:
    for switches, error in (
        (ERAS["kip-966"], ErrorCode.INELIGIBLE_REPLICA),
        (with_switch(ERAS["kip-966"], "ap_broker_epoch_check", "off"), ErrorCode.NONE),
    ):
        made = booted(switches=switches)
        made.alter(0, (0, 1))
        made.broker_epochs[ids(2)[0]] = BrokerEpoch(0)
        assert made.alter(0, (0, 1, 2)).partitions[0].error is error


@pytest.mark.parametrize(
    ("api_version", "topic", "topic_id", "error"),
    [
        (1, "orders", None, ErrorCode.NONE),
        (1, "nowhere", "orders-id", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (2, "nowhere", "orders-id", ErrorCode.NONE),
        (2, "orders", "another", ErrorCode.UNKNOWN_TOPIC_ID),
        (2, "orders", None, ErrorCode.UNKNOWN_TOPIC_ID),
    ],
)
def test_topics_are_named_by_id_from_version_two_on(
    api_version: int, topic: str, topic_id: str | None, error: ErrorCode
) -> None:
    made = booted()
    request = made.alter_request(0, (0, 1))
    wanted = None if topic_id is None else TopicId(topic_id)
    data = msgspec.structs.replace(request.partitions[0], topic=topic, topic_id=wanted)
    request = msgspec.structs.replace(request, api_version=api_version, partitions=(data,))
    (result,) = made.ask(request, messages.AlterPartitionResponse).partitions
    assert (result.error, result.topic, result.topic_id) == (error, topic, topic_id)


@pytest.mark.parametrize(
    ("api_version", "word"), [(1, ErrorCode.FENCED_LEADER_EPOCH), (2, ErrorCode.NEW_LEADER_ELECTED)]
)
def test_a_change_that_moved_the_leadership_says_so_from_version_two_on(api_version: int, word: ErrorCode) -> None:
    # Broker 0 proposes the ISR that completes the reassignment which takes it out.
    made = booted()
    made.alter(0, (0, 1))
    move = admin_messages.ReassignablePartition(topic="orders", partition=0, replicas=ids(1, 2))
    made.ask(
        admin_messages.AlterPartitionReassignmentsRequest(partitions=(move,)),
        admin_messages.AlterPartitionReassignmentsResponse,
    )
    proposal = msgspec.structs.replace(made.alter_request(0, (0, 1, 2)), api_version=api_version)
    (result,) = made.ask(proposal, messages.AlterPartitionResponse).partitions
    assert (result.error, result.leader, result.isr) == (word, None, ())
    assert made.image.partitions[ORDERS].leader == 1


@pytest.mark.parametrize(
    ("api_version", "refusal"),
    [
        (1, ErrorCode.OPERATION_NOT_ATTEMPTED),
        (2, ErrorCode.INELIGIBLE_REPLICA),
        (3, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_a_version_before_topic_ids_has_another_word_for_a_fenced_member(api_version: int, refusal: ErrorCode) -> None:
    made = booted()
    made.alter(0, (0, 1))
    proposal = msgspec.structs.replace(made.alter_request(0, (0, 1, 2)), api_version=api_version)
    made.heartbeat(2, "fence")
    assert made.ask(proposal, messages.AlterPartitionResponse).partitions[0].error is refusal


@pytest.mark.parametrize(("api_version", "error"), [(0, ErrorCode.NONE), (1, ErrorCode.INVALID_REQUEST)])
def test_a_version_without_recovery_state_says_that_the_leader_has_recovered(
    api_version: int, error: ErrorCode
) -> None:
    # KIP-704: nobody can begin to recover by a proposal.
    made = booted()
    request = made.alter_request(0, (0,))
    (data,) = request.partitions
    data = msgspec.structs.replace(data, leader_recovery_state=LeaderRecoveryState.RECOVERING)
    request = msgspec.structs.replace(request, api_version=api_version, partitions=(data,))
    assert made.ask(request, messages.AlterPartitionResponse).partitions[0].error is error
    assert made.image.partitions[ORDERS].leader_recovery_state is LeaderRecoveryState.RECOVERED


def test_an_answer_has_the_recovery_state_after_the_change() -> None:
    made = booted()
    made.image.partitions[ORDERS] = msgspec.structs.replace(
        made.image.partitions[ORDERS], leader_recovery_state=LeaderRecoveryState.RECOVERING, isr=ids(0)
    )
    request = made.alter_request(0, (0,))
    (data,) = request.partitions
    data = msgspec.structs.replace(data, leader_recovery_state=LeaderRecoveryState.RECOVERING)
    (answer,) = made.ask(
        msgspec.structs.replace(request, partitions=(data,)), messages.AlterPartitionResponse
    ).partitions
    assert (answer.error, answer.leader_recovery_state) == (ErrorCode.NONE, LeaderRecoveryState.RECOVERING)


def view_of(made: ControllerDriver) -> ClusterView:
    return ClusterView(image=made.image, properties=made.properties, switches=made.switches, node_id=CONTROLLER)


def test_a_broker_that_shuts_down_is_not_active() -> None:
    made = booted()
    (leaving,) = ids(2)
    made.image.brokers[leaving] = msgspec.structs.replace(made.image.brokers[leaving], in_controlled_shutdown=True)
    assert view_of(made).active_brokers() == set(ids(0, 1))


def test_a_broker_that_shut_down_leads_nothing_when_it_is_unfenced() -> None:
    made = booted()
    (leaving,) = ids(2)
    registration = made.image.brokers[leaving]
    made.image.brokers[leaving] = msgspec.structs.replace(registration, fenced=True, in_controlled_shutdown=True)
    made.image.partitions[ORDERS] = msgspec.structs.replace(
        made.image.partitions[ORDERS], leader=None, isr=(), elr=(leaving,)
    )
    (unfenced,) = unfence_broker(view_of(made), leaving)
    assert isinstance(unfenced.record, records.BrokerRegistrationChangeRecord)


def test_a_broker_that_is_unfenced_is_put_into_no_isr() -> None:
    made = booted()
    made.heartbeat(2, "fence")
    made.heartbeat(2)
    assert made.image.partitions[ORDERS].isr == ids(0, 1)


@pytest.mark.parametrize(("refusals_are_final", "late"), [("on", "INVALID_UPDATE_VERSION"), ("off", "NONE")])
def test_a_copy_of_a_refused_proposal_is_not_carried_out_later(refusals_are_final: str, late: str) -> None:
    made = booted(switches=with_switch(ERAS["kip-966"], "refusals_are_final", refusals_are_final))
    made.alter(0, (0, 1))
    proposal = made.alter_request(0, (0, 1, 2))
    made.heartbeat(2, "fence")
    refused = made.responses[made.send(proposal)]
    assert [result.error.name for result in getattr(refused, "partitions", ())] == ["INELIGIBLE_REPLICA"]
    changes = [event for event in made.events if isinstance(event, events.PartitionChanged)]
    assert changes[-1].broker_id == 0, "whose proposal it was, if it changed anything"
    made.heartbeat(2)
    copy = made.responses[made.send(proposal)]
    assert [result.error.name for result in getattr(copy, "partitions", ())] == [late]


def test_a_partition_named_twice_in_one_request_is_judged_twice() -> None:
    made = booted()
    request = made.alter_request(0, (0, 1))
    twice = type(request)(
        broker_id=request.broker_id, broker_epoch=request.broker_epoch, partitions=request.partitions * 2
    )
    response = made.responses[made.send(twice)]
    errors = [result.error for result in getattr(response, "partitions", ())]
    assert errors == [ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION]
    assert made.image.partitions[ORDERS].partition_epoch == PartitionEpoch(1)


# --- Topics and producer ids --------------------------------------------------------------------------------------


def test_placement_goes_round_the_unfenced_brokers() -> None:
    made = driver()
    made.boot(0, 1, 2, 3)
    made.heartbeat(1, "fence")
    topic = admin_messages.CreatableTopic(name="t", topic_id=TopicId("t-id"), num_partitions=4, replication_factor=2)
    made.ask(admin_messages.CreateTopicsRequest(topics=(topic,)), admin_messages.CreateTopicsResponse)
    assert [made.image.partitions[partition].replicas for partition in made.image.partitions_of("t")] == [
        ids(0, 2),
        ids(2, 3),
        ids(3, 0),
        ids(0, 2),
    ]


def test_placement_goes_round_the_fenced_brokers_too() -> None:
    made = driver()
    made.boot(0, 1, 2, 3)
    for broker_id in (1, 2, 3):
        made.heartbeat(broker_id, "fence")
    topic = admin_messages.CreatableTopic(name="t", topic_id=TopicId("t-id"), num_partitions=2, replication_factor=4)
    made.ask(admin_messages.CreateTopicsRequest(topics=(topic,)), admin_messages.CreateTopicsResponse)
    assert [made.image.partitions[partition].replicas for partition in made.image.partitions_of("t")] == [
        ids(0, 1, 2, 3),
        ids(0, 2, 3, 1),
    ]


def test_fenced_brokers_are_chosen_last_and_stay_out_of_the_isr() -> None:
    made = driver()
    made.boot(0, 1, 2)
    made.heartbeat(1, "fence")
    topic = admin_messages.CreatableTopic(name="t", topic_id=TopicId("t-id"), num_partitions=1, replication_factor=3)
    made.ask(admin_messages.CreateTopicsRequest(topics=(topic,)), admin_messages.CreateTopicsResponse)
    state = made.image.partitions[made.image.partitions_of("t")[0]]
    assert state.replicas == ids(0, 2, 1)
    assert state.isr == ids(0, 2)


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (admin_messages.CreatableTopic(name="orders", topic_id=TopicId("x")), ErrorCode.TOPIC_ALREADY_EXISTS),
        (admin_messages.CreatableTopic(name="", topic_id=TopicId("x")), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (admin_messages.CreatableTopic(name="..", topic_id=TopicId("x")), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (admin_messages.CreatableTopic(name="a b", topic_id=TopicId("x")), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (admin_messages.CreatableTopic(name="n", topic_id=TopicId("orders-id")), ErrorCode.INVALID_REQUEST),
        (
            admin_messages.CreatableTopic(name="n", topic_id=TopicId("x"), num_partitions=0),
            ErrorCode.INVALID_PARTITIONS,
        ),
        (
            admin_messages.CreatableTopic(name="n", topic_id=TopicId("x"), replication_factor=4),
            ErrorCode.INVALID_REPLICATION_FACTOR,
        ),
        (
            admin_messages.CreatableTopic(name="n", topic_id=TopicId("x"), replication_factor=0),
            ErrorCode.INVALID_REPLICATION_FACTOR,
        ),
        (
            admin_messages.CreatableTopic(name="n", topic_id=TopicId("x"), assignments=(ids(0, 0),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            admin_messages.CreatableTopic(name="n", topic_id=TopicId("x"), assignments=(ids(0, 1), ids(0))),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            admin_messages.CreatableTopic(name="n", topic_id=TopicId("x"), assignments=(ids(7),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            admin_messages.CreatableTopic(name="n", topic_id=TopicId("x"), assignments=(ids(0),), num_partitions=1),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            admin_messages.CreatableTopic(name="n", topic_id=TopicId("x"), configs=(("no.such", "1"),)),
            ErrorCode.INVALID_CONFIG,
        ),
    ],
)
def test_a_topic_that_cannot_be_created_leaves_nothing(topic: admin_messages.CreatableTopic, error: ErrorCode) -> None:
    made = booted()
    batches = len(made.log)
    response = made.ask(admin_messages.CreateTopicsRequest(topics=(topic,)), admin_messages.CreateTopicsResponse)
    assert response.topics[0].error is error
    assert response.topics[0].error_message
    assert len(made.log) == batches


def test_a_topic_comes_with_its_configuration_and_goes_with_it() -> None:
    made = booted()
    topic = admin_messages.CreatableTopic(name="t", topic_id=TopicId("t-id"), configs=(("min.insync.replicas", "1"),))
    made.ask(admin_messages.CreateTopicsRequest(topics=(topic,)), admin_messages.CreateTopicsResponse)
    created = [event for event in made.events if isinstance(event, events.PartitionChanged)][-1]
    assert (created.reason, created.effective_min_isr) == ("created", 1)
    deleted = made.ask(
        admin_messages.DeleteTopicsRequest(topics=("t", "t", "missing")), admin_messages.DeleteTopicsResponse
    )
    assert [result.error for result in deleted.topics] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert (
        made.ask(admin_messages.DeleteTopicsRequest(topics=("t",)), admin_messages.DeleteTopicsResponse).topics[0].error
        is ErrorCode.NONE
    )
    assert "t" not in made.image.topics
    assert made.image.configs(ConfigResource.TOPIC, "t") == {}
    assert [event.topic for event in made.events if isinstance(event, events.TopicCreated)] == ["orders", "t"]


def test_producer_id_blocks_are_given_once() -> None:
    made = booted()
    starts = []
    for broker_id in (0, 1):
        [node] = ids(broker_id)
        request = messages.AllocateProducerIdsRequest(broker_id=node, broker_epoch=made.broker_epochs[node])
        starts.append(made.ask(request, messages.AllocateProducerIdsResponse).producer_id_start)
    assert starts == [0, 1000]
    blocks = [event for event in made.events if isinstance(event, events.ProducerIdsAllocated)]
    assert [(block.broker_id, block.next_producer_id) for block in blocks] == [(0, 1000), (1, 2000)]
    stale = messages.AllocateProducerIdsRequest(broker_id=ids(0)[0], broker_epoch=BrokerEpoch(0))
    assert made.ask(stale, messages.AllocateProducerIdsResponse).error is ErrorCode.STALE_BROKER_EPOCH


def test_a_process_that_registers_again_with_other_log_directories_is_written_down() -> None:
    made = booted()
    [node] = ids(0)
    request = messages.BrokerRegistrationRequest(
        broker_id=node,
        cluster_id=CLUSTER,
        incarnation_id=made.image.brokers[node].incarnation_id,
        log_dirs=("another",),
        features=BROKER_FEATURES,
    )
    assert made.ask(request, messages.BrokerRegistrationResponse).error is ErrorCode.NONE
    [changed] = [event for event in made.events if isinstance(event, events.LogDirectoriesChanged)]
    assert (changed.broker_id, changed.log_dirs) == (0, ("another",))


def test_a_controller_asserts_that_broker_epochs_rise() -> None:
    made = booted()
    expire(made, 0)
    brokers = made.image.brokers
    brokers[ids(0)[0]] = msgspec.structs.replace(brokers[ids(0)[0]], broker_epoch=BrokerEpoch(10_000))
    with pytest.raises(InvariantError, match=r"^M12: "):
        made.register(0, incarnation="second")


# --- What a registration must say ---------------------------------------------------------------------------------


def registration(
    broker_id: int,
    *,
    log_dirs: tuple[str, ...] = ("new",),
    features: tuple[messages.FeatureRange, ...] = BROKER_FEATURES,
) -> messages.BrokerRegistrationRequest:
    [node] = ids(broker_id)
    return messages.BrokerRegistrationRequest(
        broker_id=node,
        cluster_id=CLUSTER,
        incarnation_id=IncarnationId("unseen"),
        log_dirs=log_dirs,
        features=features,
    )


def test_a_process_has_a_session_from_its_registration_on() -> None:
    # Another one of the same id is refused while it may live, though it has sent no heartbeat yet (KIP-631).
    made = booted()
    assert made.register(9, "one").error is ErrorCode.NONE
    assert made.register(9, "another").error is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    made.now_ms += made.properties.broker_session_timeout_ms + 1
    assert made.register(9, "another").error is ErrorCode.NONE
    assert made.register(9, "a third").error is ErrorCode.DUPLICATE_BROKER_REGISTRATION


RESERVED = "AAAAAAAAAAAAAAAAAAAAAQ"
"""One of the directory ids that Kafka keeps for itself (``DirectoryId.java``)."""


@pytest.mark.parametrize(
    ("log_dirs", "error"),
    [
        (("new",), ErrorCode.NONE),
        (("new", "newer"), ErrorCode.NONE),
        ((), ErrorCode.INVALID_REGISTRATION),
        (("new", "new"), ErrorCode.INVALID_REGISTRATION),
        (("new", RESERVED), ErrorCode.INVALID_REGISTRATION),
        (("new", "dir-1"), ErrorCode.INVALID_REGISTRATION),  # broker 1 has it
    ],
)
def test_log_directories_are_named_once_and_have_one_owner(log_dirs: tuple[str, ...], error: ErrorCode) -> None:
    made = booted()
    assert made.ask(registration(9, log_dirs=log_dirs), messages.BrokerRegistrationResponse).error is error


def feature(name: str, low: int, high: int) -> messages.FeatureRange:
    return messages.FeatureRange(name=name, min_supported_version=low, max_supported_version=high)


@pytest.mark.parametrize(
    ("metadata", "elr", "error"),
    [
        ((1, LATEST), (0, 1), ErrorCode.NONE),
        ((LATEST, LATEST), (1, 1), ErrorCode.NONE),
        ((LATEST, LATEST + 1), (1, 2), ErrorCode.NONE),
        ((1, LATEST - 1), (0, 1), ErrorCode.UNSUPPORTED_VERSION),
        ((LATEST + 1, LATEST + 2), (0, 1), ErrorCode.UNSUPPORTED_VERSION),
        ((1, LATEST), (0, 0), ErrorCode.UNSUPPORTED_VERSION),
        ((1, LATEST), None, ErrorCode.UNSUPPORTED_VERSION),
        (None, (0, 1), ErrorCode.INVALID_REGISTRATION),
    ],
)
def test_a_broker_must_support_the_features_as_they_are(
    metadata: tuple[int, int] | None, elr: tuple[int, int] | None, error: ErrorCode
) -> None:
    ranges = {METADATA_VERSION: metadata, ELR_VERSION: elr}
    features = tuple(feature(name, *levels) for name, levels in ranges.items() if levels is not None)
    made = booted()
    assert made.ask(registration(9, features=features), messages.BrokerRegistrationResponse).error is error


@pytest.mark.parametrize("elr", [(), (feature(ELR_VERSION, 1, 1),)])
def test_what_a_broker_supports_of_a_feature_that_is_off_does_not_matter(
    elr: tuple[messages.FeatureRange, ...],
) -> None:
    made = booted()
    off = admin_messages.FeatureUpdate(
        feature=ELR_VERSION, max_version_level=0, upgrade_type=FeatureUpgradeType.SAFE_DOWNGRADE
    )
    made.ask(admin_messages.UpdateFeaturesRequest(feature_updates=(off,)), admin_messages.UpdateFeaturesResponse)
    assert made.image.feature_level(ELR_VERSION) == 0
    request = registration(9, features=(feature(METADATA_VERSION, 1, LATEST), *elr))
    assert made.ask(request, messages.BrokerRegistrationResponse).error is ErrorCode.NONE
