"""Adapters of the controller's kinds: from a vector's words to the core's functions, and back."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from laststand.emulator.core import admin_messages, inputs, messages
from laststand.emulator.core.controller.configs import alter_config
from laststand.emulator.core.controller.controller import Controller
from laststand.emulator.core.controller.decision import Decision, ElrCause
from laststand.emulator.core.controller.elect_leaders import (
    elect_leaders,
    request_error,
    sweep_preferred,
    sweep_unclean,
)
from laststand.emulator.core.controller.features import is_elr_enabled, update_features
from laststand.emulator.core.controller.fencing import (
    begin_controlled_shutdown,
    fence_broker,
    unfence_broker,
    unregister_broker,
)
from laststand.emulator.core.controller.heartbeat import (
    BrokerControlState,
    BrokerProgress,
    heartbeat_intent,
    next_state,
)
from laststand.emulator.core.controller.min_isr import MIN_ISR, MinIsr
from laststand.emulator.core.controller.partition_change import (
    PartitionRules,
    PartitionTarget,
    next_partition_change,
)
from laststand.emulator.core.controller.reassignment import (
    ReplicationFactorChange,
    cancel_reassignment,
    reassign_partition,
)
from laststand.emulator.core.controller.reassignment_lists import (
    complete_reassignment,
    revert_reassignment,
    start_reassignment,
)
from laststand.emulator.core.controller.recovery import (
    RecoveryAction,
    ReplicaReport,
    choose_leader,
    decide_recovery,
    strategy_of_unclean_enable,
)
from laststand.emulator.core.controller.registration import Shutdown, shutdown_fallout
from laststand.emulator.core.controller.sessions import SessionKey, is_expired
from laststand.emulator.core.controller.topics import Chooser, check_placement, create_partition
from laststand.emulator.core.effects import AppendMetadata, ControllerEffect, RecordEvent, SendResponse
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.events import BrokerRegistered, Election
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.metadata_version import BROKER_FEATURES, LATEST, LEVELS, METADATA_VERSION, level_of
from laststand.emulator.core.properties import node_properties
from laststand.emulator.core.records import ClearElrRecord, ConfigRecord, RegisterBrokerRecord, TopicRecord
from laststand.emulator.core.switches import ERAS
from laststand.emulator.core.types import (
    BrokerEpoch,
    CauseId,
    ChangeReason,
    ConfigResource,
    ElectionType,
    FeatureUpgradeType,
    FenceReason,
    IncarnationId,
    LeaderEpoch,
    MetadataOffset,
    Offset,
    PartitionEpoch,
    RecoveryStrategy,
    RequestId,
    TopicId,
    TopicPartition,
)
from tests.conformance.controller_world import (
    CLUSTER,
    CONTROLLER,
    PARTITION,
    SETS,
    TOPIC,
    TOPIC_ID,
    World,
    broker,
    epoch_of,
    error_name,
    ids,
    leader_of,
    partition_fields,
    partition_state,
    properties_of,
    switches_of,
)
from tests.conformance.describe_kind import run_describe_topic_partitions
from tests.conformance.harness import Fields, Handler, Vector, mismatches
from tests.conformance.unreadable import recovery_state, refusal_of_bytes

CAUSE: Final = CauseId("vector")
_ELSEWHERE: Final = TopicPartition(TOPIC, 99)
_NOBODY: Final = -1
_NO_ELECTION: Final = 127


# --- The pipeline -------------------------------------------------------------------------------------------------


def _rules(vector: Vector) -> PartitionRules:
    return PartitionRules(
        metadata_level=level_of(vector.config.get("mv", "4.2")),
        elr_enabled=vector.config.get("elr_enabled", vector.switches.elr),
        last_known=switches_of(vector).last_known,
        elr_within_replicas=vector.switches.elr_within_replicas,
        reassignment_needs_all=vector.switches.reassignment_needs_all,
        reassignment_requires_min_isr=vector.switches.reassignment_requires_min_isr,
        clear_elr=vector.switches.clear_elr_on_min_isr_change,
        downgrade_ignores_elr=vector.switches.downgrade_ignores_elr,
    )


def _target(vector: Vector) -> PartitionTarget:
    event = vector.event
    lists = {
        field: ids(event[name])
        for name, field in (
            ("target_isr", "isr"),
            ("target_replicas", "replicas"),
            ("target_adding", "adding_replicas"),
            ("target_removing", "removing_replicas"),
        )
        if name in event
    }
    if "target_recovery_state" in event:
        lists["leader_recovery_state"] = recovery_state(event["target_recovery_state"])  # type: ignore[assignment]  # one struct, many types
    return PartitionTarget(
        acceptable=frozenset(ids(event["acceptable_leaders"])),
        election=ElectionType[event.get("election", "ONLINE")],
        unclean_replicas=frozenset(ids(event.get("unclean_shutdown_replicas", []))),
        **lists,  # type: ignore[arg-type]  # checked by msgspec's own names above
    )


def run_partition_change(vector: Vector) -> list[str]:
    switches = switches_of(vector)
    state = partition_state(vector.before, switches)
    change = next_partition_change(
        state,
        _target(vector),
        partition=0,
        rules=_rules(vector),
        min_isr=_effective(vector),
    )
    after = state if change is None else state.after(change.record)
    actual = {**partition_fields(after, switches), "no_change": change is None}
    return mismatches(vector.expect, actual, sets=SETS)


def run_elect_only(vector: Vector) -> list[str]:
    leader, election = _elect(vector, partition_state(vector.before, switches_of(vector)), _target(vector))
    is_unclean = election in (Election.UNCLEAN, Election.LAST_KNOWN_LEADER)
    return mismatches(vector.expect, {"elected": leader, "elected_unclean": is_unclean})


def _effective(vector: Vector) -> MinIsr:
    """Returns the min ISR of a vector, which names the effective one."""
    required = vector.config.get("min_isr", 1)
    return MinIsr(configured=required, partition0_replicas=required)


def _elect(vector: Vector, state: PartitionState, target: PartitionTarget) -> tuple[int, Election]:
    """Returns who leads after a change with that target, and how it was elected."""
    change = next_partition_change(state, target, partition=0, rules=_rules(vector), min_isr=_effective(vector))
    if change is None:
        return _NOBODY if state.leader is None else state.leader, Election.NONE
    leader = state.after(change.record).leader
    return _NOBODY if leader is None else leader, change.election


# --- Brokers that come and go -------------------------------------------------------------------------------------


def _after(vector: Vector, world: World, decisions: Iterable[Decision], **observed: object) -> list[str]:
    world.commit(decisions)
    return world.compare(vector, **observed)


def run_fence_broker(vector: Vector) -> list[str]:
    world = World(vector)
    decisions = fence_broker(world.view, broker(vector.event["broker"]), reason=FenceReason.SESSION_EXPIRED)
    return _after(vector, world, decisions)


def run_unfence_broker(vector: Vector) -> list[str]:
    world = World(vector)
    return _after(vector, world, unfence_broker(world.view, broker(vector.event["broker"])))


def run_controlled_shutdown(vector: Vector) -> list[str]:
    world = World(vector)
    return _after(vector, world, begin_controlled_shutdown(world.view, broker(vector.event["broker"])))


def run_broker_shutdown_detected(vector: Vector) -> list[str]:
    world = World(vector)
    shutdown = Shutdown.CLEAN if vector.event["clean"] else Shutdown.UNCLEAN
    return _after(vector, world, shutdown_fallout(world.view, broker(vector.event["broker"]), shutdown))


def run_unregister_broker(vector: Vector) -> list[str]:
    world = World(vector)
    outcome = unregister_broker(world.view, broker(vector.event["broker"]))
    return _after(vector, world, outcome.decisions, error=error_name(outcome.error))


def run_heartbeat_state(vector: Vector) -> list[str]:
    event = vector.event
    shutdown_offset = event.get("controlled_shutdown_offset")
    progress = BrokerProgress(
        applied_offset=MetadataOffset(event["metadata_offset"]),
        registration_offset=MetadataOffset(event["register_offset"]),
        has_leaderships=event["has_leaderships"],
        shutdown_offset=None if shutdown_offset is None else MetadataOffset(shutdown_offset),
        active_offsets=tuple(MetadataOffset(offset) for offset in event["active_offsets"]),
    )
    asked = heartbeat_intent(want_fence=event["want_fence"], want_shut_down=event["want_shut_down"])
    state = next_state(BrokerControlState(event["current_state"]), asked, progress)
    return mismatches(vector.expect, {"next_state": state.value})


def run_session_expired(vector: Vector) -> list[str]:
    event = vector.event
    expired = is_expired(last_contact=event["last_contact_ns"], now=event["now_ns"], timeout=event["timeout_ns"])
    return mismatches(vector.expect, {"expired": expired})


# --- Requests to a running controller -----------------------------------------------------------------------------


def step(controller: Controller, incoming: inputs.ControllerInput, *, now_ms: int) -> list[ControllerEffect]:
    effects = controller.step(incoming, now_ms=now_ms)
    for effect in list(effects):
        if isinstance(effect, AppendMetadata):
            synced = inputs.MetadataCommitted(cause_id=CAUSE, end_offset=effect.batch.end_offset)
            effects += controller.step(synced, now_ms=now_ms)
    return effects


def ask(
    controller: Controller, request: messages.Request, *, now_ms: int
) -> tuple[messages.Response, list[ControllerEffect]]:
    received = inputs.RequestReceived(cause_id=CAUSE, request_id=RequestId(1), request=request)
    effects = step(controller, received, now_ms=now_ms)
    [response] = [effect.response for effect in effects if isinstance(effect, SendResponse)]
    return response, effects


def run_alter_partition(vector: Vector) -> list[str]:
    event = vector.event
    world = World(vector)
    step(world.controller, inputs.Started(cause_id=CAUSE), now_ms=0)
    api_version = event.get("api_version", 3)
    data = messages.AlterPartitionData(
        topic=TOPIC if event.get("topic_known", True) else "unknown",
        topic_id=(TOPIC_ID if event.get("topic_known", True) else TopicId("unknown")) if api_version >= 2 else None,
        partition=0 if event.get("partition_known", True) else 99,
        leader_epoch=LeaderEpoch(event["leader_epoch"]),
        partition_epoch=PartitionEpoch(event["partition_epoch"]),
        new_isr=tuple(_member(member) for member in event["new_isr"]),
        leader_recovery_state=recovery_state(event.get("leader_recovery_state", "RECOVERED")),
    )
    request = messages.AlterPartitionRequest(
        broker_id=broker(event["broker"]),
        broker_epoch=BrokerEpoch(event.get("broker_epoch", _registered_epoch(vector, event["broker"]))),
        partitions=(data,),
        api_version=api_version,
    )
    refusal = refusal_of_bytes(request, event.get("leader_recovery_state", "RECOVERED"))
    response = refusal or ask(world.controller, request, now_ms=1)[0]
    assert isinstance(response, messages.AlterPartitionResponse)
    if response.error is not ErrorCode.NONE:
        return world.compare(vector, error=response.error.name, error_level="top")
    [result] = response.partitions
    found = world.compare(vector, error=error_name(result.error), error_level="partition")
    state = world.partition
    if result.error is ErrorCode.NONE and state is not None:
        answered = (result.leader, result.leader_epoch, result.isr, result.leader_recovery_state)
        committed = (state.leader, state.leader_epoch, state.isr, state.leader_recovery_state)
        if answered != committed or result.partition_epoch != state.partition_epoch:
            found.append(f"answer {result} beside state {state}")
    return found


def _registered_epoch(vector: Vector, broker_id: int) -> int:
    epoch: int = vector.brokers.get(str(broker_id), {}).get("epoch", -1)
    return epoch


def _member(member: list[int] | int) -> messages.IsrMember:
    broker_id, epoch = member if isinstance(member, list) else (member, -1)
    return messages.IsrMember(broker(broker_id), epoch_of(epoch))


def run_register_broker(vector: Vector) -> list[str]:
    event = vector.event
    stored = vector.before.get("registration")
    world = World(vector)
    broker_id = broker(event["broker"])
    if stored is not None:
        record = RegisterBrokerRecord(
            broker_id=broker_id,
            incarnation_id=IncarnationId(stored["incarnation"]),
            broker_epoch=BrokerEpoch(stored["epoch"]),
            log_dirs=("its dir",),
            fenced=stored["fenced"],
            in_controlled_shutdown=stored["in_controlled_shutdown"],
        )
        world.replay([record])
    world.replay_up_to(event["next_offset"])
    controller = world.controller
    step(controller, inputs.Started(cause_id=CAUSE), now_ms=0)
    now_ms = world.properties.broker_session_timeout_ms
    if stored is not None and event.get("session_valid", False):
        sign_of_life = messages.BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=BrokerEpoch(stored["epoch"]),
            current_metadata_offset=MetadataOffset(0),
            want_fence=stored["fenced"],
            want_shut_down=False,
        )
        ask(controller, sign_of_life, now_ms=now_ms)
    else:
        now_ms += 1
    request = messages.BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=CLUSTER if event.get("cluster_id_matches", True) else "another cluster",
        incarnation_id=IncarnationId(event["incarnation"]),
        log_dirs=("its dir",),
        features=BROKER_FEATURES if event.get("supports_finalized_features", True) else _ANCIENT,
        previous_broker_epoch=epoch_of(event.get("previous_broker_epoch")),
        api_version=event.get("api_version", 4),
    )
    response, effects = ask(controller, request, now_ms=now_ms)
    assert isinstance(response, messages.BrokerRegistrationResponse)
    events = [effect.event for effect in effects if isinstance(effect, RecordEvent)]
    judged = [event for event in events if isinstance(event, BrokerRegistered)]
    registered = controller.image.brokers.get(broker_id)
    registration: Mapping[str, object] | None = None
    if registered is not None:
        registration = {
            "epoch": registered.broker_epoch,
            "fenced": registered.fenced,
            "in_controlled_shutdown": registered.in_controlled_shutdown,
            "incarnation": registered.incarnation_id,
        }
    handling = "none" if not judged else "clean" if judged[0].is_clean else "unclean"
    return world.compare(
        vector, error=error_name(response.error), registration=registration, shutdown_handling=handling
    )


_ANCIENT: Final = (
    messages.FeatureRange(name=METADATA_VERSION, min_supported_version=LATEST + 1, max_supported_version=999),
)


def run_controller_activate(vector: Vector) -> list[str]:
    world = World(vector)
    records = [
        RegisterBrokerRecord(
            broker_id=broker(int(name)),
            incarnation_id=IncarnationId(name),
            broker_epoch=BrokerEpoch(fields["epoch"]),
            log_dirs=(f"dir-{name}",),
            fenced=fields["fenced"],
            in_controlled_shutdown=fields.get("in_controlled_shutdown", False),
        )
        for name, fields in vector.before["registrations"].items()
    ]
    world.replay(records)
    step(world.controller, inputs.Started(cause_id=CAUSE), now_ms=vector.event["now"])
    observed = {}
    for name in vector.expect.get("contact_times", {}):
        broker_id, epoch = (int(part) for part in name.split(":"))
        key = SessionKey(broker_id=broker(broker_id), broker_epoch=BrokerEpoch(epoch))
        observed[name] = world.controller.sessions.last_contact_ms(key)
    return world.compare(vector, contact_times=observed)


def run_bootstrap(vector: Vector) -> list[str]:
    features = vector.event["features"]
    era = "kip-966" if features.get("eligible.leader.replicas.version", 0) else "kafka-3.9"
    controller = Controller(properties_of(vector), ERAS[era], CLUSTER, CONTROLLER)
    effects = step(controller, inputs.Started(cause_id=CAUSE), now_ms=0)
    records = [record for e in effects if isinstance(e, AppendMetadata) for record in e.batch.records]
    names = sorted(controller.image.configs(ConfigResource.BROKER, ""))
    actual = {
        "error": None,
        "cluster_config_contains": names,
        "config_writes": _as_expected(_config_writes(records), vector.expect.get("config_writes")),
        "elr_enabled": is_elr_enabled(controller.image, ERAS[era]),
    }
    return mismatches(vector.expect, actual, sets=SETS)


# --- Elections, reassignment, topics, configuration ---------------------------------------------------------------


def _asked_partition(vector: Vector) -> TopicPartition:
    return PARTITION if vector.event.get("partition_known", True) else _ELSEWHERE


def run_elect_leaders(vector: Vector) -> list[str]:
    world = World(vector)
    name = vector.event["election_type"]
    partition = _asked_partition(vector)
    asked = admin_messages.ElectablePartition(topic=partition.topic, partition=partition.partition)
    number = (
        admin_messages.RequestedElection[name].value
        if name in admin_messages.RequestedElection.__members__
        else _NO_ELECTION
    )
    error = request_error(admin_messages.ElectLeadersRequest(election_type=number, partitions=(asked,)))
    if error is not ErrorCode.NONE:
        return _after(vector, world, (), error=error.name, error_level="top")
    outcome = elect_leaders(world.view, asked, admin_messages.RequestedElection(number))
    return _after(vector, world, outcome.decisions, error=error_name(outcome.error), error_level="partition")


def run_preferred_sweep(vector: Vector) -> list[str]:
    world = World(vector)
    return _after(vector, world, sweep_preferred(world.view))


def run_unclean_sweep(vector: Vector) -> list[str]:
    world = World(vector)
    return _after(vector, world, sweep_unclean(world.view))


def run_reassign(vector: Vector) -> list[str]:
    world = World(vector)
    is_allowed = vector.event.get("allow_replication_factor_change", True)
    outcome = reassign_partition(
        world.view,
        _asked_partition(vector),
        ids(vector.event["replicas"]),
        factor_change=ReplicationFactorChange.ALLOWED if is_allowed else ReplicationFactorChange.FORBIDDEN,
    )
    return _after(vector, world, outcome.decisions, error=error_name(outcome.error))


def run_cancel_reassign(vector: Vector) -> list[str]:
    world = World(vector)
    outcome = cancel_reassignment(world.view, _asked_partition(vector))
    return _after(vector, world, outcome.decisions, error=error_name(outcome.error))


def run_compute_reassignment(vector: Vector) -> list[str]:
    lists = start_reassignment(current=ids(vector.event["current"]), target=ids(vector.event["target"]))
    actual = {
        "replicas": list(lists.replicas),
        "adding": list(lists.adding),
        "removing": list(lists.removing),
    }
    return mismatches(vector.expect, actual, sets=SETS)


def run_complete_reassignment(vector: Vector) -> list[str]:
    event = vector.event
    completed = complete_reassignment(
        replicas=ids(event["replicas"]),
        adding=ids(event.get("adding", [])),
        removing=ids(event.get("removing", [])),
        isr=ids(event["target_isr"]),
        needs_all=vector.switches.reassignment_needs_all,
        min_isr=None,
    )
    actual: dict[str, object] = {"completed": completed is not None}
    if completed is not None:
        actual |= {"replicas": list(completed.replicas), "isr": list(completed.isr), "adding": [], "removing": []}
    return mismatches(vector.expect, actual, sets=SETS)


def run_revert_reassignment(vector: Vector) -> list[str]:
    state = partition_state(vector.before, switches_of(vector))
    reverted = revert_reassignment(replicas=state.replicas, adding=state.adding_replicas, isr=state.isr)
    actual = {"replicas": list(reverted.replicas), "isr": list(reverted.isr), "unclean": reverted.is_unclean}
    return mismatches(vector.expect, actual, sets=SETS)


def run_create_partition(vector: Vector) -> list[str]:
    event = vector.event
    world = World(vector)
    placement = check_placement(
        world.view,
        ids(event["replicas"]),
        chooser=Chooser.USER if event.get("manual", True) else Chooser.CONTROLLER,
        required_replicas=event.get("required_rf"),
    )
    for replicas in placement.assignments:
        world.replay([TopicRecord(name=TOPIC, topic_id=TOPIC_ID)])
        min_isr = vector.config.get("min_isr", 1)
        world.commit(
            [create_partition(world.view, TOPIC_ID, partition=0, replicas=replicas, min_isr=MinIsr(configured=min_isr))]
        )
    return world.compare(vector, error=error_name(placement.error))


def run_alter_config(vector: Vector) -> list[str]:
    event = vector.event
    world = World(vector)
    topic = TOPIC if event.get("topic_matches", True) else "another topic"
    if topic != TOPIC:
        world.replay([TopicRecord(name=topic, topic_id=TopicId("another-id"))])
    resource, name = {
        "topic": (ConfigResource.TOPIC, topic),
        "cluster": (ConfigResource.BROKER, ""),
        "broker": (ConfigResource.BROKER, str(event.get("broker", 1))),
    }[event["scope"]]
    key, value = event["key"], event.get("value")
    configured = world.image.config(resource, name, key)
    if configured is None and key == MIN_ISR and (value is None or resource is ConfigResource.TOPIC):
        # ``min_isr`` is what the topic has; and to delete is to have had.
        had = str(vector.config.get("min_isr", 1))
        world.replay([ConfigRecord(resource=resource, resource_name=name, name=key, value=had)])
    changes: dict[str, str | None]
    if event.get("api", "incremental") == "legacy":
        # Whatever the legacy request does not name is deleted.
        changes = dict.fromkeys(sorted(world.image.configs(resource, name)))
        changes |= {} if value is None else {key: str(value)}
    else:
        changes = {key: None if value is None else str(value)}
    outcome = alter_config(world.view, resource, name, changes)
    world.commit(outcome.decisions)
    writes = _as_expected(_config_writes(world.records), vector.expect.get("config_writes"))
    return world.compare(vector, error=error_name(outcome.error), config_writes=writes)


def run_clear_elr(vector: Vector) -> list[str]:
    another = TopicId("another-id")
    world = World(vector, extra=[TopicRecord(name="another topic", topic_id=another)])
    topic_id = None
    if vector.event["topic"]:
        topic_id = TOPIC_ID if vector.event.get("topic_matches", True) else another
    cause = ElrCause(reason=ChangeReason.MIN_ISR_CHANGED)
    return _after(vector, world, [Decision(record=ClearElrRecord(topic_id=topic_id), cause=cause)])


def run_effective_min_isr(vector: Vector) -> list[str]:
    event = vector.event
    min_isr = MinIsr(configured=event["configured"], partition0_replicas=event["partition0_replicas"])
    return mismatches(vector.expect, {"effective_min_isr": min_isr.effective(())})


def run_update_feature(vector: Vector) -> list[str]:
    event = vector.event
    world = World(vector)
    static = vector.before.get("static")
    if static is not None:
        values = static if isinstance(static, dict) else {"min.insync.replicas": static}
        world.properties = node_properties({name: str(value) for name, value in values.items()})
    level = event["level"]
    update = admin_messages.FeatureUpdate(
        feature=event["feature"],
        max_version_level=LEVELS.index(level) if level in LEVELS else int(level),
        upgrade_type=FeatureUpgradeType(event.get("upgrade_type", "UPGRADE")),
    )
    outcome = update_features(
        world.image,
        world.properties,
        world.switches,
        [update],
        is_left_over_ignored=world.switches.downgrade_ignores_elr,
    )
    world.commit(outcome.decisions)
    return world.compare(
        vector,
        error=error_name(outcome.error),
        elr_enabled=is_elr_enabled(world.image, world.switches),
        config_writes=_as_expected(_config_writes(world.records), vector.expect.get("config_writes")),
        cluster_config_contains=sorted(world.image.configs(ConfigResource.BROKER, "")),
    )


def _as_expected(writes: list[dict[str, Any]], expected: list[Fields] | None) -> list[Fields]:
    """Returns the expectation itself where it says the same but for order and for numbers that are not text."""

    def canonical(listed: Iterable[Fields]) -> list[str]:
        return sorted(str(sorted((key, str(value)) for key, value in write.items())) for write in listed)

    return expected if expected is not None and canonical(expected) == canonical(writes) else list(writes)


def _config_writes(records: Iterable[object]) -> list[dict[str, Any]]:
    writes = []
    for record in records:
        if isinstance(record, ConfigRecord):
            is_cluster = record.resource is ConfigResource.BROKER and record.resource_name == ""
            write: dict[str, Any] = {"scope": "cluster" if is_cluster else record.resource.value}
            if record.resource is ConfigResource.BROKER and not is_cluster:
                write["broker"] = int(record.resource_name)
            writes.append({**write, "key": record.name, "value": record.value})
    return writes


# --- Unclean recovery ---------------------------------------------------------------------------------------------


def run_kip966_recovery_decision(vector: Vector) -> list[str]:
    world = World(vector)
    state = partition_state(vector.before, switches_of(vector))
    strategy = RecoveryStrategy(vector.event["strategy"])
    decision = decide_recovery(state, active=world.view.active_brokers(), strategy=strategy)
    acceptable = world.view.active_brokers()
    leader, _ = _elect(vector, state, PartitionTarget(acceptable=acceptable))
    actual = {
        "action": decision.action.value,
        "must_hear_from": list(decision.must_hear_from),
        "leader": leader if decision.action is RecoveryAction.ELECT else _NOBODY,
    }
    return mismatches(vector.expect, actual, sets={"must_hear_from"})


def run_kip966_recovery_select(vector: Vector) -> list[str]:
    state = partition_state(vector.before, switches_of(vector))
    reports = tuple(
        ReplicaReport(
            broker_id=broker(response["broker"]),
            broker_epoch=BrokerEpoch(response["broker_epoch"]),
            last_written_leader_epoch=_epoch(response["last_written_leader_epoch"]),
            current_leader_epoch=LeaderEpoch(response["current_leader_epoch"]),
            log_end_offset=Offset(response["log_end_offset"]),
        )
        for response in vector.event["responses"]
    )
    epochs = {broker(int(name)): BrokerEpoch(fields["epoch"]) for name, fields in vector.brokers.items()}
    choice = choose_leader(state, reports, broker_epochs=epochs)
    leader = _NOBODY if choice.leader is None else choice.leader
    return mismatches(vector.expect, {"leader": leader, "discarded": list(choice.discarded)}, sets=SETS)


def _epoch(value: int) -> LeaderEpoch | None:
    return None if leader_of(value) is None else LeaderEpoch(value)


def run_kip966_config_map(vector: Vector) -> list[str]:
    value = str(vector.event["unclean_leader_election_enable"]).lower()
    return mismatches(vector.expect, {"strategy": strategy_of_unclean_enable(value).value})


KINDS: Final[Mapping[str, Handler]] = {
    "partition_change": run_partition_change,
    "elect_only": run_elect_only,
    "fence_broker": run_fence_broker,
    "unfence_broker": run_unfence_broker,
    "controlled_shutdown": run_controlled_shutdown,
    "broker_shutdown_detected": run_broker_shutdown_detected,
    "unregister_broker": run_unregister_broker,
    "heartbeat_state": run_heartbeat_state,
    "session_expired": run_session_expired,
    "alter_partition": run_alter_partition,
    "register_broker": run_register_broker,
    "controller_activate": run_controller_activate,
    "bootstrap": run_bootstrap,
    "elect_leaders": run_elect_leaders,
    "preferred_sweep": run_preferred_sweep,
    "unclean_sweep": run_unclean_sweep,
    "reassign": run_reassign,
    "cancel_reassign": run_cancel_reassign,
    "compute_reassignment": run_compute_reassignment,
    "complete_reassignment": run_complete_reassignment,
    "revert_reassignment": run_revert_reassignment,
    "create_partition": run_create_partition,
    "alter_config": run_alter_config,
    "clear_elr": run_clear_elr,
    "effective_min_isr": run_effective_min_isr,
    "update_feature": run_update_feature,
    "describe_topic_partitions": run_describe_topic_partitions,
    "kip966_recovery_decision": run_kip966_recovery_decision,
    "kip966_recovery_select": run_kip966_recovery_select,
    "kip966_config_map": run_kip966_config_map,
}
