"""Vectors about the ZooKeeper controller: elections, machines, brokers, ISR changes, reassignment, deletion."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from laststand.emulator.core import messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    CauseId,
    LeaderEpoch,
    LeaderRecoveryState,
    PartitionEpoch,
    RequestId,
    TopicPartition,
)
from laststand.emulator.core.zookeeper import control_messages
from laststand.emulator.core.zookeeper.controller import exchange, leader_election
from laststand.emulator.core.zookeeper.controller.context import (
    PartitionPhase,
    RegisteredBroker,
    Replica,
    ReplicaPhase,
)
from laststand.emulator.core.zookeeper.controller.controller import ZooKeeperController
from laststand.emulator.core.zookeeper.controller.leader_election import ElectionStrategy, Electorate, elect_leader
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.partition_state import LeaderAndIsr, PartitionLeadership
from laststand.emulator.core.zookeeper.nodes.topic import ReplicaAssignment
from tests.conformance.harness import Fields, Handler, Vector, mismatches
from tests.conformance.unreadable import recovery_state, refusal_of_bytes
from tests.conformance.zookeeper_world import (
    OTHER_TOPIC_ID,
    PARTITION,
    SETS,
    TERM,
    TOPIC_ID,
    ControllerWorld,
    assignment_of,
    broker,
    brokers,
    epoch_shown,
    error_name,
    leader_and_isr_of,
    shown,
)

# --- Elections ----------------------------------------------------------------------------------------------------


def run_elect(vector: Vector) -> list[str]:
    """A strategy on its own."""
    event = vector.event
    replicas, isr, live = brokers(event["assignment"]), brokers(event["isr"]), frozenset(brokers(event["live"]))
    leaving = frozenset(brokers(event.get("shutting_down") or ()))
    elected = None
    strategy = ElectionStrategy[event["strategy"]]
    electorate = Electorate(
        assignment=ReplicaAssignment(replicas=replicas),
        current=LeaderAndIsr(
            leader=None,
            leader_epoch=LeaderEpoch(0),
            isr=isr,
            leader_recovery_state=LeaderRecoveryState.RECOVERED,
            partition_epoch=PartitionEpoch(0),
        ),
        online=live - leaving,
        shutting_down=leaving & live,
        is_unclean_allowed=bool(event.get("unclean_enabled")),
    )
    written = elect_leader(strategy, electorate).elected
    match event["strategy"]:
        case "OFFLINE":
            unclean = bool(event.get("unclean_enabled"))
            elected = leader_election.offline_leader(replicas, isr, live, is_unclean_allowed=unclean)
        case "REASSIGN":
            elected = leader_election.reassign_leader(replicas, isr, live)
        case "PREFERRED":
            elected = leader_election.preferred_leader(replicas, isr, live)
        case "CONTROLLED_SHUTDOWN":
            elected = leader_election.controlled_shutdown_leader(replicas, isr, live, leaving)
    is_unclean = written is not None and written.leader_recovery_state is LeaderRecoveryState.RECOVERING
    return mismatches(vector.expect, {"elected": elected, "unclean": is_unclean})


def run_leader_election(vector: Vector) -> list[str]:
    """The partition machine elects by a strategy."""
    event, before = vector.event, vector.before
    world = ControllerWorld(vector)
    world.put_partition(before)
    world.put_live(event["live"])
    world.context.shutting_down |= set(brokers(event["shutting_down"]))
    world.context.offline_replicas |= {
        broker_id: frozenset({PARTITION}) for broker_id in brokers(event["offline_dirs"])
    }
    world.context.partition_phases[PARTITION] = PartitionPhase(before["partition_state"])
    if "cached_isr" in before:
        cached = msgspec.structs.replace(leader_and_isr_of(before), isr=brokers(before["cached_isr"]))
        world.context.leadership[PARTITION] = PartitionLeadership(leader_and_isr=cached, controller_epoch=TERM)
    if event["unclean_topic"]:
        world.allow_unclean()
    strategy = ElectionStrategy[event["strategy"]]
    if event["unclean_requested"]:
        strategy = ElectionStrategy.OFFLINE_UNCLEAN
    results = world.run(world.term.partitions.bring_online((PARTITION,), strategy))
    seen = {
        **world.state(),
        "elected": isinstance(results[PARTITION], LeaderAndIsr),
        "partition_state": world.context.phase_of(PARTITION).value,
        "leader_and_isr_to": world.leader_and_isr_to(),
    }
    return mismatches(vector.expect, seen, sets=SETS)


def _run_election(
    vector: Vector, strategy: ElectionStrategy, phase: PartitionPhase, world: ControllerWorld
) -> list[str]:
    world.context.partition_phases[PARTITION] = phase
    world.run(world.term.partitions.bring_online((PARTITION,), strategy))
    seen = {**world.state(), "partition_state": world.context.phase_of(PARTITION).value, "sends": world.sends()}
    return mismatches(vector.expect, seen, sets=SETS)


def run_offline_election(vector: Vector) -> list[str]:
    """An offline partition looks for a leader."""
    world = ControllerWorld(vector)
    world.put_partition(vector.before)
    world.put_live(vector.event["live"])
    if vector.event["unclean_allowed"]:
        world.allow_unclean()
    return _run_election(vector, ElectionStrategy.OFFLINE, PartitionPhase.OFFLINE, world)


def run_controlled_shutdown_election(vector: Vector) -> list[str]:
    """A leader that is about to go hands over."""
    world = ControllerWorld(vector)
    world.put_partition(vector.before)
    world.put_live(vector.event["live_or_shutting_down"])
    world.context.shutting_down |= set(brokers(vector.event["shutting_down"]))
    return _run_election(vector, ElectionStrategy.CONTROLLED_SHUTDOWN, PartitionPhase.ONLINE, world)


# --- State machines -----------------------------------------------------------------------------------------------

_ONE_REPLICA: Final[Fields] = {
    "replicas": [1],
    "isr": [1],
    "leader": 1,
    "leader_epoch": 0,
    "partition_epoch": 0,
}


def run_partition_transition(vector: Vector) -> list[str]:
    """One step of the partition machine."""
    world = ControllerWorld(vector)
    before = PartitionPhase(vector.before["partition_state"])
    is_stored = before in (PartitionPhase.ONLINE, PartitionPhase.OFFLINE)
    world.put_partition(_ONE_REPLICA if is_stored else {**_ONE_REPLICA, "stored": None})
    world.put_live([1])
    world.context.partition_phases[PARTITION] = before
    target = PartitionPhase(vector.event["to"])
    if target is PartitionPhase.ONLINE:
        results = world.run(world.term.partitions.bring_online((PARTITION,), ElectionStrategy.OFFLINE))
        is_valid = isinstance(results[PARTITION], LeaderAndIsr)
    else:
        is_valid = not world.term.partitions.enter((PARTITION,), target)
    state = world.context.phase_of(PARTITION).value
    return mismatches(vector.expect, {"partition_state": state, "valid": is_valid})


def run_replica_transition(vector: Vector) -> list[str]:
    """One step of the replica machine."""
    world = ControllerWorld(vector)
    world.put_partition({**_ONE_REPLICA, "replicas": [1, 2], "isr": [1, 2]})
    world.put_live([1, 2])
    replica = Replica(PARTITION, broker(2))
    world.context.replica_phases[replica] = ReplicaPhase(vector.before["replica_state"])
    illegal = world.run(world.term.replicas.enter((replica,), ReplicaPhase(vector.event["to"])))
    state = world.context.replica_phase_of(replica).value
    return mismatches(vector.expect, {"replica_state": state, "valid": not illegal})


def run_replica_offline(vector: Vector) -> list[str]:
    """A replica goes offline."""
    world = ControllerWorld(vector)
    world.put_partition(vector.before)
    world.put_live(vector.before["replicas"])
    replica = Replica(PARTITION, broker(vector.event["broker"]))
    world.run(world.term.replicas.enter((replica,), ReplicaPhase.OFFLINE))
    return mismatches(vector.expect, {**world.state(), "sends": world.sends()}, sets=SETS)


# --- Brokers and controllers come and go --------------------------------------------------------------------------


def run_broker_change(vector: Vector) -> list[str]:
    """One look at who is registered."""
    event = vector.event
    world = ControllerWorld(vector)
    world.put_partition(vector.before)
    world.put_brokers(vector.brokers)
    _find_phases(world)
    if event["unclean_topic"]:
        world.allow_unclean()
    registered = dict(world.context.brokers)
    for broker_id in brokers(event["dead"]):
        del registered[broker_id]
    for broker_id in brokers([*event["started"], *event["bounced"]]):
        registered[broker_id] = RegisteredBroker(broker_epoch=BrokerEpoch(1000 + broker_id))
    world.run(world.term.brokers.apply(registered))
    seen = {**world.state(), "partition_state": world.context.phase_of(PARTITION).value}
    return mismatches(vector.expect, seen, sets=SETS)


def _find_phases(world: ControllerWorld) -> None:
    """Puts machines where a running controller would have them."""
    context = world.context
    if not context.has_online_leader(PARTITION):
        context.partition_phases[PARTITION] = PartitionPhase.OFFLINE
    for broker_id in context.replicas_of(PARTITION):
        if not context.is_online(broker_id, PARTITION):
            context.replica_phases[Replica(PARTITION, broker_id)] = ReplicaPhase.OFFLINE


def run_controller_start(vector: Vector) -> list[str]:
    """A new controller takes over."""
    world = ControllerWorld(vector)
    world.put_partition(vector.before, is_cached=False)
    world.register(vector.event["live"])
    if vector.event["unclean_topic"]:
        world.allow_unclean()
    world.run(world.term.start())
    seen = {**world.state(), "partition_state": world.context.phase_of(PARTITION).value}
    return mismatches(vector.expect, seen, sets=SETS)


def run_controlled_shutdown(vector: Vector) -> list[str]:
    """A broker asks to be let go."""
    world = ControllerWorld(vector)
    if vector.before:
        world.put_partition(vector.before)
    world.put_brokers(vector.brokers)
    _find_phases(world)
    epoch = vector.event.get("broker_epoch")
    asked = None if epoch is None or epoch == -1 else BrokerEpoch(epoch)
    answer = world.run(world.term.shutdown.shut_down(broker(vector.event["broker"]), asked))
    seen = {
        **world.state(),
        "error": error_name(answer.error),
        "remaining_partitions": len(answer.remaining),
    }
    return mismatches(vector.expect, seen, sets=SETS)


# --- ISR changes --------------------------------------------------------------------------------------------------


def _members(new_isr: list[Any]) -> tuple[messages.IsrMember, ...]:
    members = [member if isinstance(member, list) else [member, -1] for member in new_isr]
    return tuple(
        messages.IsrMember(broker(number), None if epoch == -1 else BrokerEpoch(epoch)) for number, epoch in members
    )


def _ask_inactive(world: ControllerWorld, request: messages.AlterPartitionRequest) -> messages.AlterPartitionResponse:
    """Asks a broker that hosts a controller which was not elected."""
    asked = exchange.ControllerAsked(cause_id=CauseId("vector"), request_id=RequestId(0), request=request)
    (answer,) = ZooKeeperController(world.config).step(asked, now_ms=0)
    assert isinstance(answer, exchange.AnswerController)
    assert isinstance(answer.response, messages.AlterPartitionResponse)
    return answer.response


def run_alter_partition(vector: Vector) -> list[str]:
    """A leader asks for another ISR, in any generation of the request."""
    event = vector.event
    world = ControllerWorld(vector)
    world.put_partition(vector.before)
    world.put_brokers(vector.brokers)
    version = event.get("api_version", 0 if event["type"] == "zk_alter_isr" else 3)
    if "stored_partition_epoch" in event:
        world.raise_state_version(event["stored_partition_epoch"])
    if event.get("controller") == "zombie":
        world.move_on()
    data = messages.AlterPartitionData(
        topic=PARTITION.topic if event.get("topic_known", True) else "unknown",
        topic_id=TOPIC_ID if event.get("topic_known", True) else OTHER_TOPIC_ID,
        partition=PARTITION.partition if event.get("partition_known", True) else 7,
        leader_epoch=LeaderEpoch(event["leader_epoch"]),
        partition_epoch=PartitionEpoch(event["partition_epoch"]),
        new_isr=_members(event["new_isr"]),
        leader_recovery_state=recovery_state(event.get("leader_recovery_state", "RECOVERED")),
    )
    request = messages.AlterPartitionRequest(
        broker_id=broker(event["broker"]),
        broker_epoch=BrokerEpoch(event["broker_epoch"]),
        partitions=(data,),
        api_version=version,
    )
    refusal = refusal_of_bytes(request, event.get("leader_recovery_state", "RECOVERED"))
    if refusal is not None:
        response = refusal
    elif event.get("active", True):
        answers: list[messages.AlterPartitionResponse] = []
        world.run(world.term.alter_partition.handle(request, answers.append))
        [response] = answers
    else:
        response = _ask_inactive(world, request)
    is_top = response.error is not ErrorCode.NONE
    error = response.error if is_top else response.partitions[0].error
    seen = {
        **world.state(),
        "error": error_name(error),
        "error_level": "top" if is_top else "partition",
        "cached_partition_epoch": world.context.leadership[PARTITION].leader_and_isr.partition_epoch,
    }
    return mismatches(vector.expect, seen, sets=SETS)


def run_notification_handle(vector: Vector) -> list[str]:
    """Leaders wrote their ISR themselves, and said so."""
    event = vector.event
    world = ControllerWorld(vector)
    stored = event["stored"]
    world.put_partition({**vector.before, **(stored or {"stored": None})})
    cached = PartitionLeadership(leader_and_isr=leader_and_isr_of(vector.before), controller_epoch=TERM)
    world.context.leadership[PARTITION] = cached
    world.put_live(event["live"])
    for names in event["notifications"]:
        world.notify(names)
    world.run(world.term.notifications.handle_isr_changes())
    known = world.context.leadership[PARTITION].leader_and_isr
    return mismatches(
        vector.expect,
        {
            "cached_isr": list(known.isr),
            "cached_leader": shown(known.leader),
            "cached_leader_epoch": known.leader_epoch,
            "cached_partition_epoch": known.partition_epoch,
            "update_metadata_to": world.update_metadata_to(),
            "leader_and_isr_to": world.leader_and_isr_to(),
            "notifications_left": len(world.server.children(paths.ISR_CHANGE_NOTIFICATIONS)),
        },
    )


# --- Reassignment -------------------------------------------------------------------------------------------------


def run_compute_reassignment(vector: Vector) -> list[str]:
    """The lists of a reassignment."""
    lists = assignment_of(vector.event["current"]).reassign_to(brokers(vector.event["target"]))
    seen = {"replicas": list(lists.replicas), "adding": list(lists.adding), "removing": list(lists.removing)}
    return mismatches(vector.expect, seen, sets=SETS)


def run_reassign_request(vector: Vector) -> list[str]:
    """AlterPartitionReassignments for one partition."""
    event = vector.event
    world = ControllerWorld(vector)
    world.put_partition(vector.before)
    world.put_live(event["live"])
    _find_phases(world)
    if event["topic_deleting"]:
        world.context.topics_to_delete[PARTITION.topic] = None
    name = PARTITION if event["partition_known"] else TopicPartition("unknown", 0)
    target = None if event["target"] is None else brokers(event["target"])
    errors = world.run(world.term.reassignments.request({name: target}))
    seen = {
        **world.state(),
        "error": error_name(errors[name]),
        "in_progress": PARTITION in world.context.reassigning,
        "stop_replica": world.deletions(),
    }
    return mismatches(vector.expect, seen, sets=SETS)


def run_reassign(vector: Vector) -> list[str]:
    """A whole reassignment, as far as it gets."""
    event = vector.event
    world = ControllerWorld(vector)
    world.put_partition(vector.before)
    world.put_brokers(vector.brokers)
    _find_phases(world)
    target = brokers(event["target"])
    if event.get("via", "rpc") == "znode":
        wanted = world.context.assignments[PARTITION].reassign_to(target)
        error = world.run(world.term.reassignments.start(PARTITION, wanted))
    else:
        error = world.run(world.term.reassignments.request({PARTITION: target}))[PARTITION]
    if event["new_replica_catches_up"]:
        _catch_up(world)
    return mismatches(vector.expect, _reassigned(world, error), sets=SETS)


def run_reassign_resume(vector: Vector) -> list[str]:
    """A target's broker comes, and the reassignment goes on."""
    event = vector.event
    world = ControllerWorld(vector)
    world.put_partition(vector.before)
    world.put_brokers(vector.brokers)
    started = broker(event["broker_started"])
    registered = dict(world.context.brokers)
    world.context.brokers.pop(started, None)
    _find_phases(world)
    world.run(world.term.brokers.apply(registered))
    if event["new_replica_catches_up"]:
        _catch_up(world)
    return mismatches(vector.expect, _reassigned(world, ErrorCode.NONE), sets=SETS)


def _reassigned(world: ControllerWorld, error: ErrorCode) -> dict[str, Any]:
    return {
        **world.state(),
        "error": error_name(error),
        "in_progress": PARTITION in world.context.reassigning,
        "stop_replica": world.deletions(),
    }


def _catch_up(world: ControllerWorld) -> None:
    """The leader adds the targets to the ISR, one by one, and the controller hears of it."""
    for target in world.context.assignments[PARTITION].target_replicas:
        stored = world.stored()
        assert stored is not None
        current = stored.leader_and_isr
        if target in current.isr or PARTITION not in world.context.reassigning:
            continue
        assert current.leader is not None
        data = messages.AlterPartitionData(
            topic=PARTITION.topic,
            topic_id=TOPIC_ID,
            partition=PARTITION.partition,
            leader_epoch=current.leader_epoch,
            partition_epoch=current.partition_epoch,
            new_isr=tuple(messages.IsrMember(member, None) for member in (*current.isr, target)),
        )
        request = messages.AlterPartitionRequest(
            broker_id=current.leader,
            broker_epoch=world.context.brokers[current.leader].broker_epoch,
            partitions=(data,),
        )
        world.run(world.term.alter_partition.handle(request, lambda _: None))
        world.run(world.term.reassignments.complete_if_in_sync((PARTITION,)))


# --- Deletion -----------------------------------------------------------------------------------------------------


def run_topic_deletion(vector: Vector) -> list[str]:
    """A topic is deleted, as far as its brokers let it."""
    event = vector.event
    world = ControllerWorld(vector)
    world.put_partition(vector.before)
    world.put_live(event["live"])
    _find_phases(world)
    if event["reassigning"]:
        current = world.context.assignments[PARTITION]
        world.context.assignments[PARTITION] = ReplicaAssignment(
            replicas=current.replicas, adding=current.replicas[-1:]
        )
        world.context.reassigning[PARTITION] = None
    phases: dict[str, str] = {}
    for step in event["steps"]:
        before = set(world.context.replicas_of(PARTITION))
        _delete(world, step)
        phases = {
            str(broker_id): world.context.replica_phase_of(Replica(PARTITION, broker_id)).value
            for broker_id in sorted(before)
        }
    is_gone = world.server.data(paths.topic_node(PARTITION.topic)) is None
    return mismatches(
        vector.expect,
        {
            "replica_states": {} if is_gone else phases,
            "ineligible": PARTITION.topic in world.context.topics_ineligible_for_deletion,
            "deleted": is_gone,
            "stop_replica": world.deletions(),
        },
    )


def _delete(world: ControllerWorld, step: Fields) -> None:
    match step["op"]:
        case "delete":
            world.ask_to_delete()
            world.run(world.term.read_deletions())
        case "stopped":
            _answer_stop_replica(world, broker(step["broker"]), ErrorCode.NONE)
        case "failed":
            _answer_stop_replica(world, broker(step["broker"]), ErrorCode.KAFKA_STORAGE_ERROR)
        case "broker_started":
            registered = {
                **world.context.brokers,
                broker(step["broker"]): RegisteredBroker(broker_epoch=BrokerEpoch(1000)),
            }
            world.run(world.term.brokers.apply(registered))
        case unknown:
            raise ValueError(f"operation {unknown}")


def _answer_stop_replica(world: ControllerWorld, broker_id: BrokerId, error: ErrorCode) -> None:
    asked = control_messages.StopReplicaRequest(
        controller_id=world.config.broker_id,
        controller_epoch=TERM,
        partitions=(
            control_messages.StopReplicaPartition(name=PARTITION, leader_epoch=LeaderEpoch(0), is_deleted=True),
        ),
    )
    response = control_messages.StopReplicaResponse(
        error=ErrorCode.NONE, partitions=(control_messages.PartitionError(name=PARTITION, error=error),)
    )
    world.run(world.term.deletion.handle_answer(broker_id, asked, response))


# --- Control requests ---------------------------------------------------------------------------------------------


def run_control_batch(vector: Vector) -> list[str]:
    """One batch of control requests."""
    event = vector.event
    world = ControllerWorld(vector)
    world.put_partition(vector.before)
    world.put_live(event["live"])
    context = world.context
    leadership = context.leadership[PARTITION]
    if not event["leadership_known"]:
        del context.leadership[PARTITION]
    if event["topic_deleting"]:
        context.topics_to_delete[PARTITION.topic] = None
    context.offline_replicas |= {
        broker_id: frozenset({PARTITION}) for broker_id in brokers(event.get("offline_dirs") or ())
    }
    batch = world.term.batch
    for add in event["adds"]:
        to = brokers(add["brokers"])
        match add["add"]:
            case "leader_and_isr":
                assignment = context.assignments[PARTITION]
                batch.add_leader_and_isr(to, PARTITION, leadership, assignment, is_new=add["is_new"])
            case "stop_replica":
                batch.add_stop_replica(to, PARTITION, is_deleted=add["delete"])
            case "update_metadata":
                batch.add_update_metadata(to, (PARTITION,))
    batch.close()
    return _batch_mismatches(vector, world)


def _batch_mismatches(vector: Vector, world: ControllerWorld) -> list[str]:
    is_new: dict[str, bool] = {}
    is_deleted: dict[str, bool] = {}
    stop_epochs: dict[str, int] = {}
    sent = []
    told: dict[str, Any] | None = None
    for to, request in world.requests():
        match request:
            case control_messages.LeaderAndIsrRequest():
                sent.append(f"LeaderAndIsr->{to}")
                is_new |= {str(to): partition.is_new for partition in request.partitions}
            case control_messages.UpdateMetadataRequest():
                sent.append(f"UpdateMetadata->{to}")
                for partition in request.partitions:
                    told = {
                        "leader": _leader_shown(partition.leader),
                        "leader_epoch": partition.leader_epoch,
                        "isr": list(partition.isr),
                        "partition_epoch": partition.partition_epoch,
                        "replicas": list(partition.replicas),
                        "offline_replicas": list(partition.offline_replicas),
                    }
            case control_messages.StopReplicaRequest():
                sent.append(f"StopReplica->{to}")
                is_deleted |= {str(to): partition.is_deleted for partition in request.partitions}
                stop_epochs |= {str(to): epoch_shown(partition.leader_epoch) for partition in request.partitions}
    expect = dict(vector.expect)
    found: list[str] = []
    if isinstance(expect.get("update_metadata_partition"), dict):
        found = mismatches(expect.pop("update_metadata_partition"), told or {})
    seen = {
        "sent": sent,
        "is_new": is_new,
        "delete": is_deleted,
        "stop_leader_epoch": stop_epochs,
        "update_metadata_partition": told,
    }
    return found + mismatches(expect, seen)


def _leader_shown(leader: BrokerId | control_messages.NoLeaderReason) -> int:
    return leader.value if isinstance(leader, control_messages.NoLeaderReason) else leader


KINDS: Final[Mapping[str, Handler]] = {
    "zk_elect": run_elect,
    "zk_leader_election": run_leader_election,
    "zk_offline_election": run_offline_election,
    "zk_controlled_shutdown_election": run_controlled_shutdown_election,
    "zk_partition_transition": run_partition_transition,
    "zk_replica_transition": run_replica_transition,
    "zk_replica_offline": run_replica_offline,
    "zk_broker_change": run_broker_change,
    "zk_controller_start": run_controller_start,
    "zk_controlled_shutdown_rpc": run_controlled_shutdown,
    "zk_alter_isr": run_alter_partition,
    "zk_alter_partition": run_alter_partition,
    "zk_notification_handle": run_notification_handle,
    "zk_compute_reassignment": run_compute_reassignment,
    "zk_reassign_request": run_reassign_request,
    "zk_reassign_run": run_reassign,
    "zk_reassign_resume": run_reassign_resume,
    "zk_topic_deletion": run_topic_deletion,
    "zk_control_batch": run_control_batch,
}
