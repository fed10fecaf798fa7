"""Adapters of the kinds of ``broker.json`` that a controller decides: AlterPartition validation and registration."""

from collections.abc import Mapping
from typing import Any, Final

from laststand.emulator.core import events, inputs, messages
from laststand.emulator.core.controller.controller import Controller
from laststand.emulator.core.effects import RecordEvent
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.metadata_version import BROKER_FEATURES, ELR_VERSION, LATEST, METADATA_VERSION
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.records import FeatureLevelRecord, MetadataBatch, Record, RegisterBrokerRecord
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    IncarnationId,
    LeaderEpoch,
    PartitionEpoch,
    TopicId,
)
from tests.conformance.controller_kinds import CAUSE, ask, step
from tests.conformance.controller_world import (
    CLUSTER,
    CONTROLLER,
    PARTITION,
    TOPIC,
    TOPIC_ID,
    broker,
    epoch_of,
    leader_of,
    partition_records,
)
from tests.conformance.harness import Fields, Handler, Vector, outcome_mismatches
from tests.conformance.unreadable import recovery_state

_NAMES: Final = {"L": 0, "F1": 1, "F2": 2, "F3": 3, "B": 4, "X": 9}
_ARGUMENTS: Final = frozenset(
    {
        "op",
        "sender",
        "sender_epoch",
        "broker_epoch",
        "isr",
        "leader_epoch",
        "partition_epoch",
        "leader_recovery_state",
        "recovery_state",
        "recovery",
        "stored_recovery",
        "expect",
        "note",
        "topic_known",
        "partition_known",
        "api_version",
        "version",
        "request_version",
    }
)


_ALTERNATIVE: Final = " / "


def _named(names: list[str]) -> tuple[BrokerId, ...]:
    return tuple(_name(name) for name in names)


def _name(name: str) -> BrokerId:
    return broker(_NAMES[name])


def run_alter_validation(vector: Vector) -> list[str]:
    before = vector.before
    [request] = vector.steps
    unknown = [name for name in request if name not in _ARGUMENTS and name[:3] not in ("f1_", "f2_", "f3_")]
    if unknown:
        return [f"the adapter does not know {unknown}"]
    state = PartitionState(
        topic_id=TOPIC_ID,
        replicas=_named(before["replicas"]),
        isr=_named(before["isr"]),
        leader=leader_of(-1) if before["leader"] in (None, -1) else _name(before["leader"]),
        leader_epoch=LeaderEpoch(before["leader_epoch"]),
        partition_epoch=PartitionEpoch(before["partition_epoch"]),
        leader_recovery_state=recovery_state(request.get("stored_recovery", _recovery_word(before))),
    )
    members = sorted({*before["replicas"], request.get("sender", "L")})
    registrations = [
        record
        for name in members
        if (record := _registration(name, before.get("brokers", {}).get(name, {}), request)) is not None
    ]
    records = [_metadata_version(), *registrations, *partition_records(state)]
    if _ALTERNATIVE in str(vector.final.get("error")):
        # One error for requests with topic names, another for those with topic ids.
        errors = [_answer(vector, records, state, {**request, "api_version": version})[0].name for version in (1, 3)]
        return outcome_mismatches(vector, {"error": _ALTERNATIVE.join(errors)})
    error, response, controller = _answer(vector, records, state, request)
    after = controller.image.partitions[PARTITION]
    actual = {
        "error": error.name,
        "error_level": "partition" if response.error is ErrorCode.NONE else "top",
        "isr": [_word(member) for member in after.isr],
        "partition_epoch": after.partition_epoch,
        "leader_epoch": after.leader_epoch,
        "leader_recovery_state": after.leader_recovery_state.name,
        "no_change": after == state,
    }
    return outcome_mismatches(vector, actual)


def _answer(
    vector: Vector, records: list[Record], state: PartitionState, request: Fields
) -> tuple[ErrorCode, messages.AlterPartitionResponse, Controller]:
    """Returns the error of the request or else of its partition, the response, and the controller afterwards."""
    controller = Controller(NodeProperties(), vector.switches, CLUSTER, CONTROLLER)
    _replay(controller, records)
    step(controller, inputs.Started(cause_id=CAUSE), now_ms=0)
    response, _ = ask(controller, _alter_request(state, request, controller), now_ms=1)
    assert isinstance(response, messages.AlterPartitionResponse)
    if response.error is not ErrorCode.NONE:
        return response.error, response, controller
    [result] = response.partitions
    return result.error, response, controller


def _registration(name: str, fields: Fields, request: Fields) -> RegisterBrokerRecord | None:
    prefix = f"{name.lower()}_"
    flags = {**fields, **{key.removeprefix(prefix): value for key, value in request.items() if key.startswith(prefix)}}
    if flags.get("unregistered") or flags.get("registered") is False:
        return None
    return RegisterBrokerRecord(
        broker_id=_name(name),
        incarnation_id=IncarnationId(name),
        broker_epoch=BrokerEpoch(fields.get("epoch", 100 + _NAMES[name])),
        log_dirs=(f"dir of {name}",),
        fenced=bool(flags.get("fenced", False)),
        in_controlled_shutdown=bool(flags.get("shutting_down", False)),
    )


def _alter_request(state: PartitionState, request: Fields, controller: Controller) -> messages.AlterPartitionRequest:
    sender = _name(request.get("sender", "L"))
    registered = controller.image.brokers[sender].broker_epoch
    api_version = request.get("api_version", request.get("version", request.get("request_version", 3)))
    is_known = request.get("topic_known", True)
    data = messages.AlterPartitionData(
        topic=TOPIC if is_known else "unknown",
        topic_id=(TOPIC_ID if is_known else TopicId("unknown")) if api_version >= 2 else None,
        partition=0 if request.get("partition_known", True) else 99,
        leader_epoch=LeaderEpoch(request.get("leader_epoch", state.leader_epoch)),
        partition_epoch=PartitionEpoch(request.get("partition_epoch", state.partition_epoch)),
        new_isr=tuple(_member(name, request, controller) for name in request.get("isr", ["L"])),
        leader_recovery_state=recovery_state(_recovery_word(request)),
    )
    sent_epoch = request.get("sender_epoch", request.get("broker_epoch", registered))
    return messages.AlterPartitionRequest(
        broker_id=sender, broker_epoch=BrokerEpoch(sent_epoch), partitions=(data,), api_version=api_version
    )


def _recovery_word(fields: Fields) -> Any:
    names = ("leader_recovery_state", "recovery_state", "recovery")
    return next((fields[name] for name in names if name in fields), "RECOVERED")


def _member(name: str, request: Fields, controller: Controller) -> messages.IsrMember:
    registration = controller.image.brokers.get(_name(name))
    current = -1 if registration is None else registration.broker_epoch
    return messages.IsrMember(_name(name), epoch_of(request.get(f"{name.lower()}_epoch", current)))


def _word(broker_id: BrokerId) -> str:
    return next(name for name, value in _NAMES.items() if value == broker_id)


def _metadata_version() -> Record:
    return FeatureLevelRecord(name=METADATA_VERSION, feature_level=LATEST)


def _replay(controller: Controller, records: list[Record]) -> None:
    controller.replay(MetadataBatch(base_offset=controller.image.next_offset, records=tuple(records)))


def run_registration(vector: Vector) -> list[str]:
    before = vector.before
    [request] = vector.steps
    isr, elr = _named(before.get("isr", [])), _named(before.get("elr", []))
    replicas = tuple(sorted({*isr, *elr}))
    state = PartitionState(
        topic_id=TOPIC_ID,
        replicas=replicas,
        isr=isr,
        leader=next((member for member in isr if member != _name("B")), None),
        leader_epoch=LeaderEpoch(0),
        partition_epoch=PartitionEpoch(0),
        elr=elr,
    )
    # With as many needed as there are, whoever leaves cleanly stays eligible: that is how the two cases differ.
    controller = Controller(NodeProperties(min_insync_replicas=len(replicas)), vector.switches, CLUSTER, CONTROLLER)
    records = [_metadata_version()]
    if vector.config.get("elr_enabled", vector.switches.elr):
        records.append(FeatureLevelRecord(name=ELR_VERSION, feature_level=1))
    stored = {name: 100 + value for name, value in _NAMES.items() if broker(value) in replicas}
    stored.pop("B", None)
    if before.get("stored_broker_epoch") is not None:
        stored["B"] = before["stored_broker_epoch"]
    for name, epoch in stored.items():
        records.append(
            RegisterBrokerRecord(
                broker_id=_name(name),
                incarnation_id=IncarnationId("same" if name == "B" else name),
                broker_epoch=BrokerEpoch(epoch),
                log_dirs=(f"dir of {name}",),
                fenced=False,
            )
        )
    _replay(controller, records + partition_records(state))
    # Epochs are offsets of the log, so it reaches beyond those that are stored.
    _replay(controller, [_metadata_version()] * (max(stored.values(), default=0) + 1 - controller.image.next_offset))
    step(controller, inputs.Started(cause_id=CAUSE), now_ms=0)
    _, effects = ask(
        controller,
        messages.BrokerRegistrationRequest(
            broker_id=_name(request["broker"]),
            cluster_id=CLUSTER,
            incarnation_id=IncarnationId(request["incarnation"]),
            log_dirs=("dir of B",),
            features=BROKER_FEATURES,
            previous_broker_epoch=epoch_of(request.get("previous_broker_epoch")),
            api_version=request.get("request_version", 4),
        ),
        now_ms=NodeProperties().broker_session_timeout_ms + 1,
    )
    judged = [e.event for e in effects if isinstance(e, RecordEvent) and isinstance(e.event, events.BrokerRegistered)]
    after = controller.image.partitions[PARTITION]
    actual: dict[str, Any] = {
        "clean": judged[0].is_clean if judged else None,
        "removed_from_isr_and_elr": _name("B") not in (*after.isr, *after.elr),
        "isr": [_word(member) for member in after.isr],
        "elr": [_word(member) for member in after.elr],
    }
    return outcome_mismatches(vector, actual, sets={"elr"})


KINDS: Final[Mapping[str, Handler]] = {
    "alter_validation": run_alter_validation,
    "registration": run_registration,
}
