"""KIP-966's unclean recovery manager, driven by hand: what is asked of whom, which answers count, who is elected."""

from collections.abc import Callable
from typing import Literal

import msgspec
import pytest

from laststand.emulator.core import admin_messages, effects, inputs, messages, records
from laststand.emulator.core.controller import unclean_recovery
from laststand.emulator.core.controller.unclean_recovery import UncleanRecoveries
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.errors import ErrorCode, InvariantError
from laststand.emulator.core.events import (
    DrawReceived,
    Election,
    PartitionChanged,
    UncleanLeaderElected,
    UncleanMethod,
    UncleanRecoveryDropped,
    UncleanRecoveryStarted,
)
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.switches import Switches, era_switches, with_switch
from laststand.emulator.core.types import (
    BrokerEpoch,
    ConfigResource,
    CorrelationId,
    LeaderEpoch,
    LeaderRecoveryState,
    Offset,
    RequestFailure,
    RequestId,
    TopicId,
    TopicPartition,
)
from tests.unit.core.controller.controller_driver import CAUSE, CONTROLLER, ORDERS, ControllerDriver, ids

TIMEOUT_MS = 10_000
RETRY_BACKOFF_MS = 70
SESSION_MS = 50


def driver(
    *,
    strategy: Literal["None", "Balanced", "Aggressive"] = "Balanced",
    switches: Switches | None = None,
    partitions: int = 1,
) -> ControllerDriver:
    """Returns a controller with brokers 1, 2 and 3, of which each partition has a replica; nothing is lost yet."""
    properties = NodeProperties(
        min_insync_replicas=2,
        broker_session_timeout_ms=SESSION_MS,
        auto_leader_rebalance_enable=False,
        unclean_recovery_manager_enabled=True,
        unclean_recovery_strategy=strategy,
        unclean_recovery_timeout_ms=TIMEOUT_MS,
        unclean_recovery_retry_backoff_ms=RETRY_BACKOFF_MS,
    )
    cluster = ControllerDriver(switches or Switches(), properties)
    cluster.boot(1, 2, 3)
    cluster.create_topic("orders", *([ids(1, 2, 3)] * partitions))
    return cluster


def fence(cluster: ControllerDriver, *broker_ids: int) -> None:
    for broker_id in broker_ids:
        cluster.heartbeat(broker_id, "fence")


def restart_uncleanly(cluster: ControllerDriver, *broker_ids: int) -> None:
    """New processes without proof of a clean shutdown; they are unfenced at once."""
    for broker_id in broker_ids:
        cluster.now_ms += 2 * SESSION_MS  # else the old process might still live
        keep_alive(cluster)
        assert cluster.register(broker_id, f"again-{broker_id}-{cluster.now_ms}").error is ErrorCode.NONE
        cluster.heartbeat(broker_id)


def keep_alive(cluster: ControllerDriver) -> None:
    for broker_id, broker in sorted(cluster.image.brokers.items()):
        if not broker.fenced:
            cluster.heartbeat(broker_id)


def lose_all(cluster: ControllerDriver, *unclean: int) -> None:
    """Fences 1, 2, 3 in this order, which leaves 2 and 3 in the ELR; those given come back uncleanly."""
    fence(cluster, 1, 2, 3)
    assert state(cluster).leader is None
    restart_uncleanly(cluster, *unclean)


def state(cluster: ControllerDriver, partition: TopicPartition = ORDERS) -> PartitionState:
    return cluster.image.partitions[partition]


def asked(cluster: ControllerDriver) -> dict[int, effects.SendRequest]:
    """Takes the requests that were sent since the last call, by broker."""
    taken = {int(request.destination): request for request in cluster.requests}
    assert len(taken) == len(cluster.requests), "two requests to one broker at once"
    cluster.requests.clear()
    return taken


def partitions_of(request: effects.SendRequest) -> int:
    assert isinstance(request.request, messages.GetReplicaLogInfoRequest)
    return len(request.request.partitions)


def answer(
    cluster: ControllerDriver,
    request: effects.SendRequest,
    *,
    last_epoch: int | None,
    end: int,
    broker_epoch: int | None = None,
    leader_epoch: int | None = None,
    limit: int = 1000,
) -> None:
    """Answers like the broker that was asked, with the same log for every partition."""
    assert isinstance(request.request, messages.GetReplicaLogInfoRequest)
    registered = cluster.broker_epochs[ids(request.destination)[0]]
    told = tuple(
        messages.ReplicaLogInfo(
            topic_id=topic_id,
            partition=partition,
            error=ErrorCode.NONE if index < limit else ErrorCode.REQUEST_LIMIT_REACHED,
            last_written_leader_epoch=None if last_epoch is None else LeaderEpoch(last_epoch),
            current_leader_epoch=(
                state(cluster, TopicPartition("orders", partition)).leader_epoch
                if leader_epoch is None
                else LeaderEpoch(leader_epoch)
            ),
            log_end_offset=Offset(end),
        )
        for index, (topic_id, partition) in enumerate(request.request.partitions)
    )
    response = messages.GetReplicaLogInfoResponse(
        broker_epoch=registered if broker_epoch is None else BrokerEpoch(broker_epoch), partitions=told
    )
    cluster.step(inputs.ResponseReceived(cause_id=CAUSE, correlation_id=request.correlation_id, response=response))


def fail(cluster: ControllerDriver, request: effects.SendRequest) -> None:
    failed = inputs.RequestFailed(
        cause_id=CAUSE, correlation_id=request.correlation_id, failure=RequestFailure.DISCONNECTED
    )
    cluster.step(failed)


def wait(cluster: ControllerDriver, duration_ms: int) -> None:
    cluster.now_ms += duration_ms
    keep_alive(cluster)
    cluster.fire_timers()


def dropped(cluster: ControllerDriver) -> list[str]:
    return [event.reason for event in cluster.events if isinstance(event, UncleanRecoveryDropped)]


def elected(cluster: ControllerDriver) -> list[UncleanLeaderElected]:
    return [event for event in cluster.events if isinstance(event, UncleanLeaderElected)]


# --- Balanced -----------------------------------------------------------------------------------------------------


def test_balanced_asks_once_all_of_the_last_known_elr_are_unfenced() -> None:
    cluster = driver()
    lose_all(cluster, 1, 2)
    assert asked(cluster) == {}, "broker 3 of the ELR is still fenced"

    fence(cluster, 3)
    restart_uncleanly(cluster, 3)

    assert state(cluster).last_known_elr == ids(2, 3)
    assert set(asked(cluster)) == {1, 2, 3}


def test_the_last_record_s_epoch_decides_before_the_log_s_length() -> None:
    cluster = driver()
    lose_all(cluster, 1, 2, 3)
    requests = asked(cluster)

    answer(cluster, requests[1], last_epoch=0, end=500)
    answer(cluster, requests[2], last_epoch=2, end=50)
    assert state(cluster).leader is None
    answer(cluster, requests[3], last_epoch=1, end=100)

    after = state(cluster)
    assert (after.leader, after.isr, after.elr) == (2, ids(2), ())
    assert after.leader_recovery_state is LeaderRecoveryState.RECOVERING
    [event] = elected(cluster)
    assert (event.method, event.strategy) == (UncleanMethod.LONGEST_LOG, "Balanced")
    assert (event.leader, event.candidates, event.must_hear_from) == (2, ids(1, 2, 3), ids(2, 3))
    assert [(told.broker_id, told.last_written_leader_epoch, told.log_end_offset) for told in event.answers] == [
        (1, 0, 500),
        (2, 2, 50),
        (3, 1, 100),
    ]
    assert event.why.startswith("it holds leader epoch 2 and ends at 50; broker 1 holds leader epoch 0 and ends at 500")
    changes = [change for change in cluster.events if isinstance(change, PartitionChanged)]
    assert (changes[-1].reason, changes[-1].election) == ("unclean_recovery", Election.UNCLEAN)
    assert cluster.controller.recoveries.next_deadline_ms() is None


def test_balanced_never_chooses_without_the_last_known_elr() -> None:
    cluster = driver()
    lose_all(cluster, 1, 2, 3)
    requests = asked(cluster)
    answer(cluster, requests[1], last_epoch=2, end=500)
    answer(cluster, requests[2], last_epoch=2, end=50)

    wait(cluster, 3 * TIMEOUT_MS)
    assert state(cluster).leader is None

    answer(cluster, requests[3], last_epoch=1, end=10)
    assert state(cluster).leader == 1


def test_balanced_waits_for_the_others_until_the_timeout() -> None:
    cluster = driver()
    lose_all(cluster, 1, 2, 3)
    requests = asked(cluster)
    answer(cluster, requests[2], last_epoch=1, end=50)
    answer(cluster, requests[3], last_epoch=1, end=60)

    wait(cluster, TIMEOUT_MS - 1)
    assert state(cluster).leader is None
    wait(cluster, 1)
    assert state(cluster).leader == 3


def test_balanced_also_waits_for_replicas_that_are_down_by_one_reading_of_the_kip() -> None:
    cluster = driver()
    lose_all(cluster, 2, 3)  # broker 1, in neither ISR nor ELR, is still fenced
    for broker_id, request in asked(cluster).items():
        answer(cluster, request, last_epoch=None, end=0)
        assert state(cluster).leader is None, broker_id

    wait(cluster, TIMEOUT_MS - 1)
    assert state(cluster).leader is None
    cluster.heartbeat(1)
    answer(cluster, asked(cluster)[1], last_epoch=0, end=300)
    assert state(cluster).leader == 1


def test_balanced_waits_until_the_timeout_for_replicas_that_stay_down() -> None:
    cluster = driver()
    lose_all(cluster, 2, 3)
    for request in asked(cluster).values():
        answer(cluster, request, last_epoch=None, end=0)

    wait(cluster, TIMEOUT_MS)
    assert state(cluster).leader == 2


def test_a_recovery_waits_for_a_replica_that_answered_and_went_away() -> None:
    cluster = driver()
    lose_all(cluster, 1, 2, 3)
    requests = asked(cluster)
    answer(cluster, requests[1], last_epoch=0, end=300)
    fence(cluster, 1)
    answer(cluster, requests[2], last_epoch=None, end=0)
    answer(cluster, requests[3], last_epoch=None, end=0)
    assert state(cluster).leader is None

    cluster.heartbeat(1)
    assert state(cluster).leader == 1


def test_by_the_other_reading_balanced_elects_once_all_live_replicas_answered() -> None:
    cluster = driver(switches=with_switch(Switches(), "recovery_waits", "off"))
    lose_all(cluster, 2, 3)
    for request in asked(cluster).values():
        answer(cluster, request, last_epoch=None, end=0)
    assert state(cluster).leader == 2


def test_kafka_s_memory_is_the_last_known_leader_alone() -> None:
    cluster = driver(switches=era_switches("kafka-4.2"))
    lose_all(cluster, 1, 2, 3)

    [started] = [event for event in cluster.events if isinstance(event, UncleanRecoveryStarted)]
    assert (state(cluster).last_known_elr, started.must_hear_from) == ((), ids(3))


def test_the_controller_wants_to_be_woken_at_the_timeout_and_when_a_broker_may_be_asked_again() -> None:
    cluster = driver(strategy="Aggressive")
    recoveries = cluster.controller.recoveries
    assert recoveries.next_deadline_ms() is None
    lose_all(cluster, 1, 2, 3)
    begun = [event for event in cluster.events if isinstance(event, UncleanRecoveryStarted)]
    assert len(begun) == 1
    timeout_at_ms = recoveries.next_deadline_ms()
    assert timeout_at_ms is not None
    assert cluster.now_ms < timeout_at_ms <= cluster.now_ms + TIMEOUT_MS
    fail(cluster, asked(cluster)[2])
    assert recoveries.next_deadline_ms() == cluster.now_ms + RETRY_BACKOFF_MS
    wait(cluster, RETRY_BACKOFF_MS)
    assert recoveries.next_deadline_ms() == timeout_at_ms
    cluster.send(elect(admin_messages.RequestedElection.LONGEST_LOG_AGGRESSIVE))
    assert recoveries.next_deadline_ms() == timeout_at_ms, "the earlier one counts"


# --- Aggressive and None ------------------------------------------------------------------------------------------


def test_aggressive_chooses_among_replicas_that_answered_by_the_timeout() -> None:
    cluster = driver(strategy="Aggressive")
    lose_all(cluster, 1, 2)  # broker 3 stays in the ELR, fenced
    requests = asked(cluster)
    answer(cluster, requests[1], last_epoch=0, end=5)
    assert state(cluster).leader is None

    wait(cluster, TIMEOUT_MS)
    assert (state(cluster).leader, state(cluster).elr) == (1, ())


def test_aggressive_takes_the_first_answer_after_the_timeout() -> None:
    cluster = driver(strategy="Aggressive")
    lose_all(cluster, 1, 2)
    requests = asked(cluster)
    wait(cluster, TIMEOUT_MS)
    assert state(cluster).leader is None

    answer(cluster, requests[2], last_epoch=0, end=5)
    assert state(cluster).leader == 2


def test_none_waits_for_the_administrator() -> None:
    cluster = driver(strategy="None")
    lose_all(cluster, 1, 2, 3)
    wait(cluster, 10 * TIMEOUT_MS)

    assert asked(cluster) == {}
    assert state(cluster).leader is None


def test_without_the_manager_none_does_not_take_the_last_known_leader_either() -> None:
    leaders = {}
    for strategy in ("Balanced", "None"):
        cluster = driver(strategy=strategy)
        cluster.properties = msgspec.structs.replace(cluster.properties, unclean_recovery_manager_enabled=False)
        cluster.restart()
        lose_all(cluster, 1, 2, 3)
        leaders[strategy] = state(cluster).leader
        told = [(event.method, event.candidates, event.leader) for event in elected(cluster)]
        expected = [(UncleanMethod.LAST_KNOWN_LEADER, ids(3), 3)] if strategy == "Balanced" else []
        assert told == expected
        assert asked(cluster) == {}
    assert leaders == {"Balanced": 3, "None": None}


def sweep(cluster: ControllerDriver) -> None:
    end_ms = cluster.now_ms + 1000 * cluster.properties.leader_imbalance_check_interval_seconds
    while cluster.now_ms < end_ms:
        cluster.now_ms += SESSION_MS // 2
        keep_alive(cluster)
        cluster.fire_timers()


def reassign(cluster: ControllerDriver, *replicas: int) -> None:
    asked_for = admin_messages.ReassignablePartition(
        topic=ORDERS.topic, partition=ORDERS.partition, replicas=ids(*replicas) or None
    )
    request = admin_messages.AlterPartitionReassignmentsRequest(partitions=(asked_for,))
    cluster.ask(request, admin_messages.AlterPartitionReassignmentsResponse)


def elect_preferred(cluster: ControllerDriver) -> None:
    asked_for = admin_messages.ElectablePartition(topic=ORDERS.topic, partition=ORDERS.partition)
    request = admin_messages.ElectLeadersRequest(
        election_type=admin_messages.RequestedElection.PREFERRED, partitions=(asked_for,)
    )
    cluster.ask(request, admin_messages.ElectLeadersResponse)


def reassign_and_cancel(cluster: ControllerDriver) -> None:
    reassign(cluster, 3, 2)
    reassign(cluster)


def restart_the_last_known_leader(cluster: ControllerDriver) -> None:
    fence(cluster, 3)
    restart_uncleanly(cluster, 3)


def restart_another(cluster: ControllerDriver) -> None:
    fence(cluster, 1)
    restart_uncleanly(cluster, 1)


def unregister(cluster: ControllerDriver) -> None:
    cluster.ask(admin_messages.UnregisterBrokerRequest(broker_id=ids(1)[0]), admin_messages.UnregisterBrokerResponse)


TOUCHES = (
    sweep,
    lambda cluster: reassign(cluster, 3, 2, 1),
    lambda cluster: reassign(cluster, 3, 2),
    reassign_and_cancel,
    elect_preferred,
    restart_the_last_known_leader,
    restart_another,
    unregister,
)


@pytest.mark.parametrize("touch", TOUCHES)
def test_without_the_manager_nothing_makes_none_take_the_last_known_leader(
    touch: Callable[[ControllerDriver], None],
) -> None:
    cluster = driver(strategy="None")
    cluster.properties = msgspec.structs.replace(
        cluster.properties,
        unclean_recovery_manager_enabled=False,
        auto_leader_rebalance_enable=True,
        leader_imbalance_check_interval_seconds=1,
    )
    cluster.restart()
    lose_all(cluster, 1, 2, 3)
    assert (state(cluster).isr, state(cluster).elr, state(cluster).last_known_leader) == ((), (), 3)
    touch(cluster)
    assert state(cluster).leader is None


@pytest.mark.parametrize(
    "election", [admin_messages.RequestedElection.UNCLEAN, admin_messages.RequestedElection.DESIGNATED]
)
@pytest.mark.parametrize("era", ["kip-966", "kafka-4.2"])
def test_under_none_an_administrator_may_have_an_unclean_leader(
    election: admin_messages.RequestedElection, era: str
) -> None:
    cluster = driver(strategy="None", switches=era_switches(era))
    cluster.properties = msgspec.structs.replace(cluster.properties, unclean_recovery_manager_enabled=False)
    cluster.restart()
    lose_all(cluster, 1, 2, 3)
    desired = ids(3)[0] if election is admin_messages.RequestedElection.DESIGNATED else None
    asked_for = admin_messages.ElectablePartition(
        topic=ORDERS.topic, partition=ORDERS.partition, desired_leader=desired
    )
    request = admin_messages.ElectLeadersRequest(election_type=election, partitions=(asked_for,))
    assert cluster.ask(request, admin_messages.ElectLeadersResponse).partitions[0].error is ErrorCode.NONE
    assert state(cluster).leader is not None


# --- Answers that do not count ------------------------------------------------------------------------------------


def test_an_answer_of_an_earlier_incarnation_is_dropped_and_asked_for_again() -> None:
    cluster = driver()
    lose_all(cluster, 1, 2, 3)
    requests = asked(cluster)
    answer(cluster, requests[1], last_epoch=1, end=10)
    answer(cluster, requests[2], last_epoch=1, end=20)
    answer(cluster, requests[3], last_epoch=9, end=99, broker_epoch=1)
    assert state(cluster).leader is None
    assert asked(cluster) == {}, "not at once"

    wait(cluster, RETRY_BACKOFF_MS)
    answer(cluster, asked(cluster)[3], last_epoch=1, end=15)

    assert state(cluster).leader == 2
    assert elected(cluster)[0].discarded == ids(3)


def test_an_answer_of_older_metadata_is_dropped_and_asked_for_again() -> None:
    cluster = driver()
    lose_all(cluster, 1, 2, 3)
    requests = asked(cluster)
    for broker_id in (1, 2):
        answer(cluster, requests[broker_id], last_epoch=1, end=10 * broker_id)
    answer(cluster, requests[3], last_epoch=9, end=99, leader_epoch=state(cluster).leader_epoch - 1)
    assert state(cluster).leader is None
    assert asked(cluster) == {}, "not at once"

    wait(cluster, RETRY_BACKOFF_MS)
    answer(cluster, asked(cluster)[3], last_epoch=1, end=15)
    assert (state(cluster).leader, elected(cluster)[0].discarded) == (2, ids(3))


def test_a_broker_that_restarts_after_its_answer_is_asked_again() -> None:
    cluster = driver()
    lose_all(cluster, 1, 2, 3)
    requests = asked(cluster)
    answer(cluster, requests[1], last_epoch=1, end=10)
    answer(cluster, requests[2], last_epoch=1, end=99)
    fence(cluster, 2)
    restart_uncleanly(cluster, 2)  # with less than it had said
    assert dropped(cluster) == ["wait_last_known_elr"]

    requests = {3: requests[3], **asked(cluster)}
    answer(cluster, requests[3], last_epoch=1, end=30)
    answer(cluster, requests[2], last_epoch=1, end=20)
    answer(cluster, requests[1], last_epoch=1, end=10)
    assert state(cluster).leader == 3


def test_a_broker_that_restarts_during_an_aggressive_recovery_is_asked_again() -> None:
    cluster = driver(strategy="Aggressive")
    lose_all(cluster, 1, 2, 3)
    requests = asked(cluster)
    answer(cluster, requests[2], last_epoch=1, end=99)
    fence(cluster, 2)
    restart_uncleanly(cluster, 2)
    requests = {**requests, **asked(cluster)}
    for broker_id, end in ((1, 10), (2, 20), (3, 30)):
        answer(cluster, requests[broker_id], last_epoch=1, end=end)

    assert state(cluster).leader == 3
    assert elected(cluster)[0].discarded == ids(2)


def test_a_request_that_fails_is_sent_again() -> None:
    cluster = driver()
    lose_all(cluster, 1, 2, 3)
    requests = asked(cluster)
    fail(cluster, requests[2])
    assert asked(cluster) == {}

    wait(cluster, RETRY_BACKOFF_MS)
    assert set(asked(cluster)) == {2}


def test_a_replica_that_knows_the_topic_not_yet_is_asked_again() -> None:
    cluster = driver()
    lose_all(cluster, 1, 2, 3)
    correlation_id = asked(cluster)[1].correlation_id
    unknown = messages.ReplicaLogInfo(topic_id=state(cluster).topic_id, partition=0, error=ErrorCode.UNKNOWN_TOPIC_ID)
    response = messages.GetReplicaLogInfoResponse(broker_epoch=cluster.broker_epochs[ids(1)[0]], partitions=(unknown,))
    cluster.step(inputs.ResponseReceived(cause_id=CAUSE, correlation_id=correlation_id, response=response))
    assert asked(cluster) == {}, "not at once"

    wait(cluster, RETRY_BACKOFF_MS)
    assert set(asked(cluster)) == {1}


def test_what_stands_beside_an_error_says_nothing_of_the_replica() -> None:
    cluster = driver(strategy="Aggressive")
    lose_all(cluster, 1, 2, 3)
    failed = messages.ReplicaLogInfo(
        topic_id=state(cluster).topic_id,
        partition=0,
        error=ErrorCode.KAFKA_STORAGE_ERROR,
        last_written_leader_epoch=LeaderEpoch(9),
        current_leader_epoch=state(cluster).leader_epoch,
        log_end_offset=Offset(900),
    )
    requests = asked(cluster)
    response = messages.GetReplicaLogInfoResponse(broker_epoch=cluster.broker_epochs[ids(1)[0]], partitions=(failed,))
    cluster.step(inputs.ResponseReceived(cause_id=CAUSE, correlation_id=requests[1].correlation_id, response=response))
    for broker_id in (2, 3):
        answer(cluster, requests[broker_id], last_epoch=0, end=10)
    assert state(cluster).leader is None, "broker 1 may still answer"
    wait(cluster, TIMEOUT_MS)
    assert state(cluster).leader == 2


def test_an_answer_that_nobody_asked_for_is_a_bug() -> None:
    cluster = driver()
    with pytest.raises(InvariantError, match="no request 7 under way"):
        cluster.step(
            inputs.RequestFailed(cause_id=CAUSE, correlation_id=CorrelationId(7), failure=RequestFailure.TIMED_OUT)
        )


# --- Limits -------------------------------------------------------------------------------------------------------


def test_what_exceeds_the_replica_s_limit_is_asked_for_again_at_once() -> None:
    cluster = driver(partitions=5)
    lose_all(cluster, 1, 2, 3)
    requests = asked(cluster)
    served = [partitions_of(requests[1])]
    answer(cluster, requests[1], last_epoch=1, end=10, limit=2)
    for _ in range(2):
        request = asked(cluster)[1]
        served.append(partitions_of(request))
        answer(cluster, request, last_epoch=1, end=10, limit=2)
    assert (served, asked(cluster)) == ([5, 3, 1], {})

    answer(cluster, requests[2], last_epoch=1, end=20)
    answer(cluster, requests[3], last_epoch=1, end=30)
    assert {state(cluster, TopicPartition("orders", index)).leader for index in range(5)} == {3}


def test_a_replica_that_serves_nothing_is_not_asked_in_a_loop() -> None:
    cluster = driver()
    lose_all(cluster, 1, 2, 3)
    answer(cluster, asked(cluster)[1], last_epoch=1, end=10, limit=0)
    assert asked(cluster) == {}


def test_a_request_has_no_more_partitions_than_the_kip_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    assert unclean_recovery.REQUEST_PARTITIONS_MAX == 2000
    monkeypatch.setattr(unclean_recovery, "REQUEST_PARTITIONS_MAX", 3)
    cluster = driver(partitions=5, strategy="None")
    lose_all(cluster, 1, 2, 3)
    change_strategy(cluster, "Aggressive")

    sizes = [partitions_of(request) for request in asked(cluster).values()]
    assert sizes == [3, 3, 3]


# --- What ends a recovery -----------------------------------------------------------------------------------------


def change_strategy(cluster: ControllerDriver, strategy: str) -> None:
    change = admin_messages.AlterableConfig(
        name="unclean.recovery.strategy", operation=admin_messages.ConfigOperation.SET, value=strategy
    )
    topic = admin_messages.AlterConfigsResource(
        resource=ConfigResource.TOPIC, resource_name="orders", configs=(change,)
    )
    response = cluster.ask(
        admin_messages.IncrementalAlterConfigsRequest(resources=(topic,)),
        admin_messages.IncrementalAlterConfigsResponse,
    )
    assert response.resources[0].error is ErrorCode.NONE


def test_another_controller_process_begins_anew() -> None:
    cluster = driver()
    lose_all(cluster, 1, 2, 3)
    requests = asked(cluster)
    answer(cluster, requests[1], last_epoch=1, end=10)

    cluster.restart()

    requests = asked(cluster)
    assert set(requests) == {1, 2, 3}
    for broker_id, request in requests.items():
        answer(cluster, request, last_epoch=1, end=broker_id)
    assert state(cluster).leader == 3


def test_a_deleted_topic_is_recovered_no_further() -> None:
    cluster = driver()
    lose_all(cluster, 1, 2, 3)
    requests = asked(cluster)
    cluster.ask(admin_messages.DeleteTopicsRequest(topics=("orders",)), admin_messages.DeleteTopicsResponse)
    assert dropped(cluster) == ["deleted"]

    told = messages.GetReplicaLogInfoResponse(broker_epoch=cluster.broker_epochs[ids(1)[0]], partitions=())
    cluster.step(inputs.ResponseReceived(cause_id=CAUSE, correlation_id=requests[1].correlation_id, response=told))
    assert elected(cluster) == []


def test_a_topic_of_the_same_name_is_not_taken_for_the_deleted_one() -> None:
    # Both may be in the metadata before the controller looks again: it then begins with the new topic anew.
    cluster = driver()
    lose_all(cluster, 1, 2, 3)
    deleted = state(cluster)
    asked(cluster)
    recreated = TopicId("another")
    view = ClusterView(
        image=cluster.image, properties=cluster.properties, switches=cluster.switches, node_id=CONTROLLER
    )
    recoveries = UncleanRecoveries(view)

    def told() -> list[tuple[str, TopicId]]:
        events = recoveries.advance(now_ms=0, cause_id=CAUSE).events
        wanted = (event for event in events if isinstance(event, UncleanRecoveryStarted | UncleanRecoveryDropped))
        return [(type(event).__name__, event.topic_id) for event in wanted]

    assert told() == [("UncleanRecoveryStarted", deleted.topic_id)]
    partition = records.PartitionRecord(topic_id=recreated, partition=0, replicas=ids(1, 2), isr=(), leader=None)
    for record in (
        records.RemoveTopicRecord(topic_id=deleted.topic_id),
        records.TopicRecord(name="orders", topic_id=recreated),
        partition,
    ):
        cluster.image.replay(record, offset=cluster.image.next_offset)
    assert told() == [("UncleanRecoveryDropped", deleted.topic_id), ("UncleanRecoveryStarted", recreated)]


def test_a_designated_leader_that_is_eligible_is_no_unclean_one() -> None:
    cluster = driver()
    cluster.ask(elect(admin_messages.RequestedElection.DESIGNATED, desired=2), admin_messages.ElectLeadersResponse)
    assert (state(cluster).leader, elected(cluster)) == (2, [])


def test_the_longest_log_is_a_clean_election_where_a_member_of_the_isr_lives() -> None:
    cluster = driver()
    cluster.image.partitions[ORDERS] = msgspec.structs.replace(state(cluster), leader=None)
    request_id = cluster.send(elect(admin_messages.RequestedElection.LONGEST_LOG_BALANCED))
    assert errors(cluster, request_id) == [ErrorCode.NONE]
    assert (state(cluster).leader, elected(cluster)) == (1, [])


def test_with_the_manager_on_no_request_takes_the_last_known_leader() -> None:
    cluster = driver()
    lose_all(cluster, 1, 2, 3)
    assert state(cluster).last_known_leader == 3
    request_id = cluster.send(elect(admin_messages.RequestedElection.PREFERRED))
    assert errors(cluster, request_id) == [ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE]
    assert state(cluster).leader is None


def test_a_leader_that_was_designated_meanwhile_ends_the_recovery() -> None:
    cluster = driver()
    lose_all(cluster, 1, 2, 3)
    requests = asked(cluster)
    cluster.ask(elect(admin_messages.RequestedElection.DESIGNATED, desired=1), admin_messages.ElectLeadersResponse)
    assert (state(cluster).leader, dropped(cluster)) == (1, ["elected"])
    assert elected(cluster)[0].method is UncleanMethod.DESIGNATED

    answer(cluster, requests[3], last_epoch=9, end=99)
    assert state(cluster).leader == 1


def test_balanced_begins_anew_when_a_replica_it_needs_goes_away() -> None:
    cluster = driver()
    lose_all(cluster, 1, 2, 3)
    fence(cluster, 3)
    assert dropped(cluster) == ["wait_last_known_elr"]

    cluster.requests.clear()
    cluster.heartbeat(3)
    assert len([event for event in cluster.events if isinstance(event, UncleanRecoveryStarted)]) == 2


# --- ElectLeaders -------------------------------------------------------------------------------------------------


def elect(
    election: admin_messages.RequestedElection, *, desired: int | None = None, partitions: int = 1
) -> admin_messages.ElectLeadersRequest:
    desired_leader = None if desired is None else ids(desired)[0]
    return admin_messages.ElectLeadersRequest(
        election_type=election,
        partitions=tuple(
            admin_messages.ElectablePartition(topic="orders", partition=index, desired_leader=desired_leader)
            for index in range(partitions)
        ),
    )


def errors(cluster: ControllerDriver, request_id: RequestId) -> list[ErrorCode] | None:
    response = cluster.responses.get(request_id)
    if response is None:
        return None
    assert isinstance(response, admin_messages.ElectLeadersResponse)
    return [result.error for result in response.partitions]


@pytest.mark.parametrize(
    "election", [admin_messages.RequestedElection.LONGEST_LOG_AGGRESSIVE, admin_messages.RequestedElection.UNCLEAN]
)
def test_an_administrator_s_recovery_is_answered_when_it_has_elected(
    election: admin_messages.RequestedElection,
) -> None:
    cluster = driver(strategy="None")
    lose_all(cluster, 1, 2, 3)
    request_id = cluster.send(elect(election))
    requests = asked(cluster)
    assert errors(cluster, request_id) is None

    for broker_id, request in requests.items():
        answer(cluster, request, last_epoch=1, end=broker_id)
    assert (errors(cluster, request_id), state(cluster).leader) == ([ErrorCode.NONE], 3)
    [started] = [event for event in cluster.events if isinstance(event, UncleanRecoveryStarted)]
    assert (started.origin, started.strategy) == ("requested", "Aggressive")


def test_an_administrator_s_recovery_is_counted_while_it_runs() -> None:
    def counts() -> tuple[int, int]:
        health = cluster.controller.health()
        return health.unclean_recoveries, health.manual_election_required

    cluster = driver(strategy="None")
    lose_all(cluster, 1, 2, 3)
    assert counts() == (0, 1)
    cluster.send(elect(admin_messages.RequestedElection.UNCLEAN))
    assert counts() == (1, 0), "the administrator has done what was waited for"

    for broker_id, request in asked(cluster).items():
        answer(cluster, request, last_epoch=1, end=broker_id)
    assert state(cluster).leader == 3
    assert counts() == (0, 0)


def test_an_administrator_s_recovery_that_is_given_up_is_counted_no_more() -> None:
    cluster = driver(strategy="None")
    lose_all(cluster, 1, 2, 3)
    cluster.send(elect(admin_messages.RequestedElection.UNCLEAN))
    cluster.now_ms += TIMEOUT_MS
    cluster.fire_timers()
    health = cluster.controller.health()
    assert (health.unclean_recoveries, health.manual_election_required) == (0, 1)


def test_a_request_is_answered_as_a_whole_when_its_last_recovery_ends() -> None:
    cluster = driver(strategy="None", partitions=2)
    lose_all(cluster, 1, 2, 3)
    cluster.ask(
        elect(admin_messages.RequestedElection.DESIGNATED, desired=1), admin_messages.ElectLeadersResponse
    )  # of partition 0
    request_id = cluster.send(elect(admin_messages.RequestedElection.LONGEST_LOG_BALANCED, partitions=3))
    assert errors(cluster, request_id) is None

    for broker_id, request in asked(cluster).items():
        answer(cluster, request, last_epoch=1, end=broker_id)
    assert errors(cluster, request_id) == [
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_an_administrator_s_recovery_times_out_and_elects_nobody_later() -> None:
    cluster = driver(strategy="None")
    lose_all(cluster, 1, 2, 3)
    request_id = cluster.send(elect(admin_messages.RequestedElection.LONGEST_LOG_AGGRESSIVE))
    requests = asked(cluster)
    wait(cluster, TIMEOUT_MS)
    assert errors(cluster, request_id) == [ErrorCode.REQUEST_TIMED_OUT]
    assert dropped(cluster) == ["timed_out"]

    answer(cluster, requests[1], last_epoch=1, end=10)
    assert state(cluster).leader is None


def test_after_a_request_timed_out_the_topic_s_own_recovery_goes_on() -> None:
    cluster = driver(strategy="Balanced")
    lose_all(cluster, 1, 2, 3)
    cluster.send(elect(admin_messages.RequestedElection.LONGEST_LOG_AGGRESSIVE))
    wait(cluster, TIMEOUT_MS)

    strategies = [event.strategy for event in cluster.events if isinstance(event, UncleanRecoveryStarted)]
    assert strategies == ["Balanced", "Aggressive", "Balanced"]


def test_a_balanced_election_that_would_have_to_wait_is_refused() -> None:
    cluster = driver(strategy="None")
    lose_all(cluster, 1, 2, 3)
    fence(cluster, 3)
    response = cluster.ask(
        elect(admin_messages.RequestedElection.LONGEST_LOG_BALANCED), admin_messages.ElectLeadersResponse
    )
    [result] = response.partitions
    assert (result.error, result.error_message) == (
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        "wait_last_known_elr",
    )


def test_a_requested_recovery_ends_when_a_replica_it_needs_goes_away() -> None:
    cluster = driver(strategy="None")
    lose_all(cluster, 1, 2, 3)
    request_id = cluster.send(elect(admin_messages.RequestedElection.LONGEST_LOG_BALANCED))
    fence(cluster, 2)
    assert errors(cluster, request_id) == [ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE]


def test_the_longest_log_is_a_clean_election_where_a_clean_candidate_lives() -> None:
    cluster = driver()
    lose_all(cluster)
    cluster.heartbeat(2)
    assert state(cluster).leader == 2
    response = cluster.ask(
        elect(admin_messages.RequestedElection.LONGEST_LOG_BALANCED), admin_messages.ElectLeadersResponse
    )
    assert response.partitions[0].error is ErrorCode.ELECTION_NOT_NEEDED


def test_without_the_manager_there_is_no_longest_log() -> None:
    cluster = driver(strategy="None")
    cluster.properties = msgspec.structs.replace(cluster.properties, unclean_recovery_manager_enabled=False)
    cluster.restart()
    lose_all(cluster, 1, 2, 3)
    response = cluster.ask(
        elect(admin_messages.RequestedElection.LONGEST_LOG_AGGRESSIVE), admin_messages.ElectLeadersResponse
    )
    assert response.partitions[0].error is ErrorCode.UNSUPPORTED_VERSION


# --- Without the manager ------------------------------------------------------------------------------------------


def blind(era: str) -> ControllerDriver:
    """Returns a controller that takes unclean leaders unseen, with brokers 1 and 2 alive but out of sync."""
    properties = NodeProperties(unclean_leader_election_enable=True, auto_leader_rebalance_enable=False)
    cluster = ControllerDriver(era_switches(era), properties)
    cluster.boot(1, 2, 3)
    cluster.create_topic("orders", *([ids(3, 1, 2)] * 2))
    fence(cluster, 1, 2)
    for broker_id in (1, 2):
        cluster.heartbeat(broker_id)
    assert (state(cluster).leader, state(cluster).isr) == (3, ids(3))
    return cluster


def test_the_controller_asks_for_a_draw_when_it_starts_and_when_it_has_used_one() -> None:
    cluster = blind("kip-966")
    assert cluster.draws_wanted == 1
    cluster.step(inputs.NumberDrawn(cause_id=CAUSE, number=1))
    fence(cluster, 3)

    assert [(event.leader, event.method, event.draw) for event in elected(cluster)] == [
        (2, UncleanMethod.RANDOM, 1),
        (1, UncleanMethod.RANDOM, 2),
    ]
    assert elected(cluster)[0].candidates == ids(1, 2)
    assert cluster.draws_wanted == 2
    assert [event.number for event in cluster.events if isinstance(event, DrawReceived)] == [1]


def test_kafka_takes_the_first_and_draws_nothing() -> None:
    cluster = blind("kafka-3.9")
    fence(cluster, 3)
    assert [(event.leader, event.method, event.draw) for event in elected(cluster)] == [
        (1, UncleanMethod.FIRST, None),
        (1, UncleanMethod.FIRST, None),
    ]
    assert cluster.draws_wanted == 0


@pytest.mark.parametrize(("era", "last_known_elr"), [("kip-966", (2,)), ("kafka-4.2", ())])
def test_the_kip_remembers_the_last_known_elr_until_the_isr_is_large_enough(
    era: str, last_known_elr: tuple[int, ...]
) -> None:
    cluster = driver(switches=era_switches(era))
    lose_all(cluster, 1, 2, 3)
    for broker_id, request in asked(cluster).items():
        answer(cluster, request, last_epoch=1, end=broker_id)
    assert (state(cluster).leader, state(cluster).last_known_elr) == (3, ids(*last_known_elr))

    cluster.alter(3, (3, 2))
    assert state(cluster).last_known_elr == ()
