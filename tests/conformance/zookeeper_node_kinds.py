"""Vectors about ZooKeeper itself: nodes' contents, protocol versions, elections, fencing, registration, own writes."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from laststand.emulator.core.broker.zookeeper.isr import IsrWrite, write_isr
from laststand.emulator.core.broker.zookeeper.isr_notifier import IsrChangeNotifier, notify
from laststand.emulator.core.types import BrokerEpoch, TopicId
from laststand.emulator.core.zookeeper import control_messages, operations
from laststand.emulator.core.zookeeper.broker_registration import register_broker
from laststand.emulator.core.zookeeper.control_versions import has_field
from laststand.emulator.core.zookeeper.controller.controller_election import ControllerTerm, register_controller
from laststand.emulator.core.zookeeper.errors import ControllerMovedError, MalformedNodeError, ZooKeeperRefusedError
from laststand.emulator.core.zookeeper.identifiers import ControllerEpoch, NodeVersion, SessionId
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.partition_state import (
    PartitionLeadership,
    decode_state,
    encode_state,
)
from laststand.emulator.core.zookeeper.nodes.small_nodes import (
    RegisteredEndpoint,
    decode_isr_notification,
    encode_controller,
)
from laststand.emulator.core.zookeeper.nodes.topic import (
    ReplicaAssignment,
    TopicAssignment,
    decode_topic,
    encode_topic,
)
from laststand.emulator.core.zookeeper.server import ZooKeeperServer
from tests.conformance.harness import Fields, Handler, Vector, mismatches
from tests.conformance.zookeeper_world import (
    PARTITION,
    TERM,
    ControllerWorld,
    broker,
    brokers,
    era_of,
    ibp_of,
    in_zookeeper,
    leader_and_isr_of,
    named_partition,
    shown,
)

# --- Contents -----------------------------------------------------------------------------------------------------


def _leadership(fields: Fields) -> PartitionLeadership:
    content = {"partition_epoch": 0, **fields}
    return PartitionLeadership(
        leader_and_isr=leader_and_isr_of(content), controller_epoch=ControllerEpoch(fields["controller_epoch"])
    )


def run_state_encode(vector: Vector) -> list[str]:
    """A state node as the release writes it."""
    data = encode_state(_leadership(vector.event), state_format=era_of(vector).rules.state_format)
    return mismatches(vector.expect, {"json": json.loads(data)})


def _decoded_state(vector: Vector) -> PartitionLeadership | None:
    version = NodeVersion(vector.event["zk_version"])
    return decode_state(vector.event["text"].encode(), version, state_format=era_of(vector).rules.state_format)


def run_state_decode(vector: Vector) -> list[str]:
    """A state node as the release reads it."""
    try:
        decoded = _decoded_state(vector)
    except MalformedNodeError:
        return mismatches(vector.expect, {"error": "malformed"})
    if decoded is None:
        return mismatches(vector.expect, {"decoded": None})
    content = decoded.leader_and_isr
    return mismatches(
        vector.expect,
        {
            "leader": shown(content.leader),
            "isr": list(content.isr),
            "leader_epoch": content.leader_epoch,
            "controller_epoch": decoded.controller_epoch,
            "leader_recovery_state": content.leader_recovery_state.name,
            "partition_epoch": content.partition_epoch,
        },
    )


def run_state_rewrite(vector: Vector) -> list[str]:
    """The fields of a state node that are left once the release has read and written it."""
    decoded = _decoded_state(vector)
    if decoded is None:
        return mismatches(vector.expect, {"json": None})
    data = encode_state(decoded, state_format=era_of(vector).rules.state_format)
    return mismatches(vector.expect, {"json": json.loads(data)})


def run_topic_encode(vector: Vector) -> list[str]:
    """A topic node as the release writes it."""
    topic_id = vector.event.get("topic_id")
    topic = TopicAssignment(
        topic_id=None if topic_id is None else TopicId(topic_id),
        partitions={
            int(number): ReplicaAssignment(
                replicas=brokers(fields["replicas"]),
                adding=brokers(fields["adding"]),
                removing=brokers(fields["removing"]),
            )
            for number, fields in vector.event["partitions"].items()
        },
    )
    data = encode_topic(topic, topic_format=era_of(vector).rules.topic_format)
    return mismatches(vector.expect, {"json": json.loads(data)})


def run_topic_decode(vector: Vector) -> list[str]:
    """A topic node as the release reads it."""
    topic = decode_topic(vector.event["text"].encode(), topic_format=era_of(vector).rules.topic_format)
    partitions = {
        str(number): {
            "replicas": list(assignment.replicas),
            "adding": list(assignment.adding),
            "removing": list(assignment.removing),
        }
        for number, assignment in topic.partitions.items()
    }
    return mismatches(vector.expect, {"topic_id": topic.topic_id, "partitions": partitions})


def run_topic_rewrite(vector: Vector) -> list[str]:
    """The fields of a topic node that are left once the release has read and written it."""
    topic_format = era_of(vector).rules.topic_format
    topic = decode_topic(vector.event["text"].encode(), topic_format=topic_format)
    return mismatches(vector.expect, {"json": json.loads(encode_topic(topic, topic_format=topic_format))})


# --- Notifications ------------------------------------------------------------------------------------------------


def run_notification_write(vector: Vector) -> list[str]:
    """Notifications as leaders leave them."""
    world = ControllerWorld(vector)
    for batch in vector.event["batches"]:
        world.run(notify(frozenset(named_partition(text) for text in batch)))
    parent = paths.ISR_CHANGE_NOTIFICATIONS
    children = world.server.children(parent)
    contents = [world.server.data(f"{parent}/{child}") or b"" for child in children]
    named = {name for content in contents for name in decode_isr_notification(content)}
    versions = {json.loads(content)["version"] for content in contents}
    return mismatches(
        vector.expect,
        {
            "children": list(children),
            "named": [f"{name.topic}:{name.partition}" for name in sorted(named)],
            "json_version": versions.pop() if len(versions) == 1 else sorted(versions),
        },
    )


def run_notification_due(vector: Vector) -> list[str]:
    """Collected changes: told at a look, or not yet."""
    notifier = IsrChangeNotifier(now_ms=vector.event["started_ms"])
    for change_ms in vector.event["changes_ms"]:
        notifier.note(PARTITION, now_ms=change_ms)
    return mismatches(vector.expect, {"due": notifier.is_due(now_ms=vector.event["now_ms"])})


# --- Protocol versions --------------------------------------------------------------------------------------------


def run_ibp(vector: Vector) -> list[str]:
    """Requests and other behaviour of a node of that protocol version."""
    ibp = ibp_of(vector)
    request = control_messages.LeaderAndIsrRequest(controller_id=broker(0), controller_epoch=TERM, partitions=())
    return mismatches(
        vector.expect,
        {
            "isr_change": ibp.isr_change.value,
            "leader_and_isr_version": ibp.leader_and_isr_version,
            "update_metadata_version": ibp.update_metadata_version,
            "stop_replica_version": ibp.stop_replica_version,
            "broker_epoch_sent": has_field(
                control_messages.LeaderAndIsrRequest, "broker_epoch", ibp.leader_and_isr_version
            ),
            "topic_ids_sent": has_field(control_messages.LeaderAndIsrPartition, "topic_id", ibp.leader_and_isr_version),
            "leader_recovery_state_sent": has_field(
                control_messages.LeaderAndIsrPartition, "leader_recovery_state", ibp.leader_and_isr_version
            ),
            "stop_replica_leader_epoch_sent": has_field(
                control_messages.StopReplicaPartition, "leader_epoch", ibp.stop_replica_version
            ),
            "recovering_recorded": ibp.records_leader_recovery,
            "request_type": request.request_type.name,
        },
    )


def run_alter_partition_request(vector: Vector) -> list[str]:
    """In which version a leader asks, and whether its recovery state arrives."""
    ibp = ibp_of(vector)
    version = ibp.alter_partition_version(
        are_topic_ids_known=vector.event["topic_ids_known"],
        controller_max_version=vector.event["controller_max_version"],
    )
    return mismatches(vector.expect, {"version": version, "recovery_state_sent": ibp.sends_recovery_state(version)})


# --- A leader's own write -----------------------------------------------------------------------------------------


def run_leader_write(vector: Vector) -> list[str]:
    """A leader sets its state node."""
    world = ControllerWorld(vector)
    stored = vector.before.get("stored")
    if stored is not None:
        world.put_stored(stored)
    asked = _leadership({**vector.event, "partition_epoch": vector.event["expected_partition_epoch"]})
    write = IsrWrite(name=PARTITION, wanted=asked)
    version = world.run(write_isr(write, state_format=world.era.rules.state_format))
    after = world.stored()
    content = None if after is None else after.leader_and_isr
    return mismatches(
        vector.expect,
        {
            "succeeded": version is not None,
            "partition_epoch": version,
            "stored_isr": None if content is None else list(content.isr),
            "stored_partition_epoch": None if content is None else content.partition_epoch,
            "stored_leader": None if content is None else shown(content.leader),
            "stored_leader_epoch": None if content is None else content.leader_epoch,
            "stored_leader_recovery_state": None if content is None else content.leader_recovery_state.name,
            "stored_controller_epoch": None if after is None else after.controller_epoch,
        },
    )


# --- The controller's node ----------------------------------------------------------------------------------------


def _in_zookeeper_with_lost_answer(
    server: ZooKeeperServer, session_id: SessionId, program: operations.Program[ControllerTerm]
) -> ControllerTerm:
    """Runs a program; the first transaction is executed, its answer lost, and so it is sent again."""
    answers: operations.Answers | None = None
    is_lost = False
    while True:
        try:
            steps = next(program) if answers is None else program.send(answers)
        except StopIteration as stop:
            term: ControllerTerm = stop.value
            return term
        if not is_lost and any(isinstance(step, operations.Transaction) for step in steps):
            is_lost = True
            server.execute(session_id, steps)
        answers = server.execute(session_id, steps)


def run_controller_election(vector: Vector) -> list[str]:
    """A broker tries to become the controller."""
    server = ZooKeeperServer()
    session_id = server.open_session(timeout_ms=6000, now_ms=0)
    before = vector.before
    if before["controller_epoch"] is not None:
        data = str(before["controller_epoch"]).encode()
        server.execute(session_id, (operations.Create(path=paths.CONTROLLER_EPOCH, data=data),))
    if before["controller"] is not None:
        data = encode_controller(broker(before["controller"]), now_ms=0)
        server.execute(
            session_id, (operations.Create(path=paths.CONTROLLER, data=data, kind=operations.NodeKind.EPHEMERAL),)
        )
    program = register_controller(broker(vector.event["broker"]), now_ms=0)
    run = _in_zookeeper_with_lost_answer if vector.event.get("lost_answer") else in_zookeeper
    seen: dict[str, Any] = {"elected": True, "error": None}
    try:
        term = run(server, session_id, program)
    except ControllerMovedError:
        seen = {"elected": False, "error": "CONTROLLER_MOVED"}
    else:
        assert server.data(paths.CONTROLLER_EPOCH) == str(term.controller_epoch).encode()
    controller, epoch = server.data(paths.CONTROLLER), server.data(paths.CONTROLLER_EPOCH)
    stat = server.stat(paths.CONTROLLER_EPOCH)
    seen |= {
        "controller": None if controller is None else json.loads(controller)["brokerid"],
        "controller_epoch": None if epoch is None else int(epoch),
        "epoch_zk_version": None if stat is None else stat.version,
    }
    return mismatches(vector.expect, seen)


_BEFORE: Final[Fields] = {
    "replicas": [1, 2, 3],
    "isr": [1, 2, 3],
    "leader": 1,
    "leader_epoch": 5,
    "partition_epoch": 7,
}


def run_fenced_write(vector: Vector) -> list[str]:
    """A controller writes, in its term or after it."""
    world = ControllerWorld(vector)
    world.put_partition(_BEFORE)
    controller = operations.Create(
        path=paths.CONTROLLER, data=encode_controller(broker(9), now_ms=0), kind=operations.NodeKind.EPHEMERAL
    )
    world.server.execute(world.session_id, (controller,))
    if vector.event["epoch_version"] == "stale":
        world.move_on()
    is_stale = vector.event.get("node_version") == "stale"
    writes: Mapping[str, Callable[[], operations.Write]] = {
        "set_state": lambda: operations.SetData(
            path=paths.state_node(PARTITION), data=b"{}", version=NodeVersion(6 if is_stale else 7)
        ),
        "create_state": lambda: operations.Create(path=paths.state_node(PARTITION), data=b"{}"),
        "set_assignment": lambda: operations.SetData(path=paths.topic_node(PARTITION.topic), data=b"{}", version=None),
        "delete_controller": lambda: operations.Delete(path=paths.CONTROLLER, version=None),
    }
    zxid = world.server.last_zxid
    try:
        (answer,) = world.run(world.term.store.write([writes[vector.event["write"]]()]))
    except ControllerMovedError:
        error: str | None = "CONTROLLER_MOVED"
    else:
        error = answer.reason.value if isinstance(answer, operations.OperationFailed) else None
    return mismatches(vector.expect, {"error": error, "written": world.server.last_zxid > zxid})


# --- Registration -------------------------------------------------------------------------------------------------


def run_register_broker(vector: Vector) -> list[str]:
    """A broker registers where there may be a node of its id already."""
    world = ControllerWorld(vector)
    own, previous, other = (world.server.open_session(timeout_ms=6000, now_ms=0) for _ in range(3))
    broker_id = broker(vector.event["broker"])
    path = paths.broker_node(broker_id)
    owner = {"absent": None, "own_session": own, "other_session": other, "own_previous_session": previous}
    session_id = owner[vector.before["node"]]
    if session_id is not None:
        world.server.execute(session_id, (operations.Create(path=path, kind=operations.NodeKind.EPHEMERAL),))
    stat = world.server.stat(path)
    former = None if stat is None else BrokerEpoch(stat.czxid)
    program = register_broker(
        broker_id,
        RegisteredEndpoint(),
        node_version=ibp_of(vector).broker_node_version,
        session_id=own,
        previous_session_id=previous,
        now_ms=0,
    )
    try:
        epoch = in_zookeeper(world.server, own, program)
    except ZooKeeperRefusedError as error:
        return mismatches(vector.expect, {"error": error.reason.value, "broker_epoch": None})
    return mismatches(vector.expect, {"error": None, "broker_epoch": "kept" if epoch == former else "new"})


KINDS: Final[Mapping[str, Handler]] = {
    "zk_state_encode": run_state_encode,
    "zk_state_decode": run_state_decode,
    "zk_state_rewrite": run_state_rewrite,
    "zk_topic_encode": run_topic_encode,
    "zk_topic_decode": run_topic_decode,
    "zk_topic_rewrite": run_topic_rewrite,
    "zk_notification_write": run_notification_write,
    "zk_notification_due": run_notification_due,
    "zk_ibp": run_ibp,
    "zk_alter_partition_request": run_alter_partition_request,
    "zk_leader_write": run_leader_write,
    "zk_controller_election": run_controller_election,
    "zk_fenced_write": run_fenced_write,
    "zk_register_broker": run_register_broker,
}
