"""Converts steps of the core to calls of kazoo, and kazoo's results to answers of the core."""

from typing import Any, Final, assert_never

from kazoo.exceptions import (
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
)

from laststand.emulator.core.zookeeper.identifiers import NodeVersion, SessionId, Zxid
from laststand.emulator.core.zookeeper.operations import (
    Checked,
    CheckVersion,
    ChildrenRead,
    Create,
    Created,
    DataRead,
    DataSet,
    Delete,
    Deleted,
    Exists,
    GetChildren,
    GetData,
    NodeFound,
    NodeKind,
    NodeStat,
    OperationAnswer,
    OperationFailed,
    SetData,
    Step,
    StepAnswer,
    Transaction,
    TransactionAnswer,
    Write,
    ZooKeeperFailure,
)

_ANY_VERSION: Final = -1

_FAILURES: Final = {
    NoNodeError: ZooKeeperFailure.NO_NODE,
    NodeExistsError: ZooKeeperFailure.NODE_EXISTS,
    BadVersionError: ZooKeeperFailure.BAD_VERSION,
    NotEmptyError: ZooKeeperFailure.NOT_EMPTY,
    NoChildrenForEphemeralsError: ZooKeeperFailure.NO_CHILDREN_FOR_EPHEMERALS,
    SessionExpiredError: ZooKeeperFailure.SESSION_EXPIRED,
    RolledBackError: ZooKeeperFailure.ROLLED_BACK,
    RuntimeInconsistency: ZooKeeperFailure.NOT_EXECUTED,
}


def submit(client: Any, step: Step, *, on_node: object, on_children: object) -> Any:
    """Sends a step; returns kazoo's asynchronous result.

    Args:
        client: kazoo's.
        step: the step to send.
        on_node: receives events of a node's watch, if the step sets one.
        on_children: called by a watch on children.
    """
    match step:
        case Create(path=path, data=data, kind=kind):
            return client.create_async(path, data, include_data=True, **_kind(kind))
        case SetData(path=path, data=data, version=version):
            return client.set_async(path, data, _version(version))
        case Delete(path=path, version=version):
            return client.delete_async(path, _version(version))
        case GetData(path=path, is_watched=is_watched):
            return client.get_async(path, watch=on_node if is_watched else None)
        case Exists(path=path, is_watched=is_watched):
            return client.exists_async(path, watch=on_node if is_watched else None)
        case GetChildren(path=path, is_watched=is_watched):
            return client.get_children_async(path, watch=on_children if is_watched else None, include_data=True)
        case Transaction(operations=operations):
            return _transaction(client, operations).commit_async()
        case _:
            assert_never(step)


def _transaction(client: Any, operations: tuple[Write | CheckVersion, ...]) -> Any:
    transaction = client.transaction()
    for operation in operations:
        match operation:
            case Create(path=path, data=data, kind=kind):
                transaction.create(path, data, **_kind(kind))
            case SetData(path=path, data=data, version=version):
                transaction.set_data(path, data, _version(version))
            case Delete(path=path, version=version):
                transaction.delete(path, _version(version))
            case CheckVersion(path=path, version=checked):
                transaction.check(path, checked)
    return transaction


def _kind(kind: NodeKind) -> dict[str, bool]:
    return {"ephemeral": kind is NodeKind.EPHEMERAL, "sequence": kind is NodeKind.SEQUENTIAL}


def _version(version: NodeVersion | None) -> int:
    return _ANY_VERSION if version is None else version


def is_lost(result: Any) -> bool:
    """Returns whether a connection or session ended before the answer: then it is unknown what was executed."""
    return isinstance(result.exception, ConnectionLoss | ConnectionClosedError | SessionExpiredError)


def stat_of(result: Any) -> NodeStat | None:
    """Returns a node's metadata from ``exists`` or ``get_children``; ``None`` if there is none.

    Raises:
        KazooException: it failed for another reason.
    """
    if isinstance(result.exception, NoNodeError):
        return None
    if result.exception is not None:
        raise result.exception
    found = result.value[1] if isinstance(result.value, tuple) and not hasattr(result.value, "czxid") else result.value
    return None if found is None else _stat(found)


def answer_of(step: Step, result: Any) -> StepAnswer:
    """Returns a result of kazoo's as an answer to the core.

    Raises:
        KazooException: the server refused the step for a reason that the core has no word for.
    """
    if result.exception is not None:
        return _failed(result.exception)
    if isinstance(step, Transaction):
        pairs = zip(step.operations, result.value, strict=True)
        return TransactionAnswer(tuple(_answer(operation, value) for operation, value in pairs))
    return _answer(step, result.value)


def _answer(operation: Write | CheckVersion | GetData | Exists | GetChildren, value: Any) -> OperationAnswer:
    if isinstance(value, Exception):
        return _failed(value)
    match operation:
        case Create():
            if isinstance(value, str):
                return Created(path=value, stat=None)
            path, stat = value
            return Created(path=path, stat=_stat(stat))
        case SetData():
            return DataSet(_stat(value))
        case Delete():
            return Deleted()
        case CheckVersion():
            return Checked()
        case GetData():
            data, stat = value
            return DataRead(data=data, stat=_stat(stat))
        case Exists():
            return OperationFailed(ZooKeeperFailure.NO_NODE) if value is None else NodeFound(_stat(value))
        case GetChildren():
            children, stat = value
            return ChildrenRead(children=tuple(sorted(children)), stat=_stat(stat))
        case _:
            assert_never(operation)


def _failed(error: Exception) -> OperationFailed:
    reason = _FAILURES.get(type(error))
    if reason is None:
        raise error
    return OperationFailed(reason)


def _stat(stat: Any) -> NodeStat:
    return NodeStat(
        czxid=Zxid(stat.czxid),
        mzxid=Zxid(stat.mzxid),
        version=NodeVersion(stat.version),
        cversion=stat.cversion,
        ephemeral_owner=SessionId(stat.ephemeralOwner) if stat.ephemeralOwner else None,
    )
