"""A broker's registration: an ephemeral node, whose czxid is the broker epoch (``KafkaZkClient.registerBroker``).

The node may exist already. A node of this session is kept, with its epoch. A node of the process's previous session is
deleted and created again, as the server may be slow to expire that session (KAFKA-7165). For any other session the
error is NODEEXISTS, and the process ends: a killed broker cannot come back before its old session is gone.
"""

from laststand.emulator.core.types import BrokerEpoch, BrokerId
from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.errors import ZooKeeperRefusedError
from laststand.emulator.core.zookeeper.identifiers import SessionId
from laststand.emulator.core.zookeeper.nodes import paths
from laststand.emulator.core.zookeeper.nodes.small_nodes import RegisteredEndpoint, encode_broker


def make_persistent_paths() -> operations.Program[None]:
    """Creates the top-level nodes, unless an earlier process has."""
    for path in paths.PERSISTENT_PATHS:
        yield (operations.Create(path=path),)


def register_broker(
    broker_id: BrokerId,
    endpoint: RegisteredEndpoint,
    *,
    node_version: int,
    session_id: SessionId,
    previous_session_id: SessionId | None,
    now_ms: int,
) -> operations.Program[BrokerEpoch]:
    """Registers; returns the broker epoch.

    Args:
        broker_id: this broker.
        endpoint: the address where the broker listens.
        node_version: version of the node's content, by the protocol version.
        session_id: of the session that is to own the node.
        previous_session_id: of the process's previous session; ``None`` if it had none.
        now_ms: goes into the node.

    Raises:
        ZooKeeperRefusedError: NODEEXISTS: another process owns the node.
    """
    path = paths.broker_node(broker_id)
    data = encode_broker(endpoint, version=node_version, now_ms=now_ms)
    # Created empty and then set, in one transaction: so its own node can be distinguished after a lost answer.
    creation = operations.Transaction(
        (
            operations.Create(path=path, kind=operations.NodeKind.EPHEMERAL),
            operations.SetData(path=path, data=data, version=None),
        )
    )
    while True:
        (answer,) = yield (creation,)
        match answer:
            case operations.TransactionAnswer(answers=(operations.Created(), operations.DataSet(stat=stat))):
                return _epoch_of(stat)
        reason = operations.failure(answer)
        if reason is not operations.ZooKeeperFailure.NODE_EXISTS:
            raise ZooKeeperRefusedError(path=path, reason=reason or operations.ZooKeeperFailure.NOT_EXECUTED)
        (found,) = yield (operations.GetData(path=path),)
        if not isinstance(found, operations.DataRead):
            continue  # gone since
        owner = found.stat.ephemeral_owner
        if owner == session_id:
            return _epoch_of(found.stat)
        if owner is None or owner != previous_session_id:
            raise ZooKeeperRefusedError(path=path, reason=operations.ZooKeeperFailure.NODE_EXISTS)
        yield (operations.Delete(path=path, version=None),)


def _epoch_of(stat: operations.NodeStat) -> BrokerEpoch:
    return BrokerEpoch(stat.czxid)
