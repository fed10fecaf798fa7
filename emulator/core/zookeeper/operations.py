"""Requests to ZooKeeper and their answers, as values.

A client sends *steps*: single operations, or transactions, whose operations are executed all or not at all. Steps that
are sent together are pipelined, not atomic. Each step has one answer, in order; a step whose connection was lost has
none, and may have been executed.
"""

from collections.abc import Generator
from enum import Enum
from typing import TypeAlias, TypeVar

import msgspec

from laststand.emulator.core.zookeeper.identifiers import NodeVersion, SessionId, Zxid

ResultT = TypeVar("ResultT")


class NodeKind(Enum):
    """The kind of a new node (ZooKeeper's ``CreateMode``, the ones that Kafka uses)."""

    PERSISTENT = "persistent"
    EPHEMERAL = "ephemeral"
    """Vanishes with the session that created it; has no children."""

    SEQUENTIAL = "sequential"
    """Persistent; ten digits, the parent's number of creations so far, are added to its name."""


class Create(msgspec.Struct, frozen=True, kw_only=True):
    """Makes a node; its parent must exist."""

    path: str
    data: bytes = b""
    kind: NodeKind = NodeKind.PERSISTENT


class SetData(msgspec.Struct, frozen=True, kw_only=True):
    """Replaces a node's data, if it has the version named; ``None`` matches any."""

    path: str
    data: bytes
    version: NodeVersion | None


class Delete(msgspec.Struct, frozen=True, kw_only=True):
    """Removes a node without children, if it has the version named; ``None`` matches any."""

    path: str
    version: NodeVersion | None


class CheckVersion(msgspec.Struct, frozen=True, kw_only=True):
    """Fails a transaction unless the node has this version."""

    path: str
    version: NodeVersion


class GetData(msgspec.Struct, frozen=True, kw_only=True):
    """Reads a node; a watch is only set if the node exists."""

    path: str
    is_watched: bool = False


class Exists(msgspec.Struct, frozen=True, kw_only=True):
    """Asks whether a node exists; the watch is set in either case."""

    path: str
    is_watched: bool = False


class GetChildren(msgspec.Struct, frozen=True, kw_only=True):
    """Reads the names of a node's children, ascending."""

    path: str
    is_watched: bool = False


Write: TypeAlias = Create | SetData | Delete
Read: TypeAlias = GetData | Exists | GetChildren
Operation: TypeAlias = Write | CheckVersion | Read


class Transaction(msgspec.Struct, frozen=True):
    """Operations that happen together or not at all (ZooKeeper's ``multi``)."""

    operations: tuple[Write | CheckVersion, ...]


Step: TypeAlias = Write | Read | Transaction


class ZooKeeperFailure(Enum):
    """Reason why an operation did nothing (ZooKeeper's ``KeeperException.Code``)."""

    NO_NODE = "NONODE"
    NODE_EXISTS = "NODEEXISTS"
    BAD_VERSION = "BADVERSION"
    NOT_EMPTY = "NOTEMPTY"
    NO_CHILDREN_FOR_EPHEMERALS = "NOCHILDRENFOREPHEMERALS"
    SESSION_EXPIRED = "SESSIONEXPIRED"
    ROLLED_BACK = "ROLLEDBACK"
    """Undone, as a later operation of the transaction failed."""

    NOT_EXECUTED = "RUNTIMEINCONSISTENCY"
    """Not tried, as an earlier operation of the transaction failed."""


class NodeStat(msgspec.Struct, frozen=True, kw_only=True):
    """The server's metadata of a node."""

    czxid: Zxid
    mzxid: Zxid
    version: NodeVersion = NodeVersion(0)
    cversion: int = 0  # number of changes of the children
    ephemeral_owner: SessionId | None = None


class Created(msgspec.Struct, frozen=True, kw_only=True):
    """A node was made; ``path`` has the digits of a sequential one. Transactions answer with the path alone."""

    path: str
    stat: NodeStat | None


class DataSet(msgspec.Struct, frozen=True):
    """Data was replaced."""

    stat: NodeStat


class Deleted(msgspec.Struct, frozen=True):
    """The node is gone."""


class Checked(msgspec.Struct, frozen=True):
    """The node has the version."""


class DataRead(msgspec.Struct, frozen=True, kw_only=True):
    """A node as it was when the server answered."""

    data: bytes
    stat: NodeStat


class NodeFound(msgspec.Struct, frozen=True):
    """The node exists."""

    stat: NodeStat


class ChildrenRead(msgspec.Struct, frozen=True, kw_only=True):
    """The children's names, ascending."""

    children: tuple[str, ...]
    stat: NodeStat


class OperationFailed(msgspec.Struct, frozen=True):
    """The operation changed nothing."""

    reason: ZooKeeperFailure


OperationAnswer: TypeAlias = (
    Created | DataSet | Deleted | Checked | DataRead | NodeFound | ChildrenRead | OperationFailed
)


class TransactionAnswer(msgspec.Struct, frozen=True):
    """One answer per operation of a transaction; if one failed, all did."""

    answers: tuple[OperationAnswer, ...]

    @property
    def has_failed(self) -> bool:
        """True if ZooKeeper refused an operation, and therefore executed none of them."""
        return any(isinstance(answer, OperationFailed) for answer in self.answers)


StepAnswer: TypeAlias = OperationAnswer | TransactionAnswer

Steps: TypeAlias = tuple[Step, ...]
Answers: TypeAlias = tuple[StepAnswer, ...]

Program: TypeAlias = Generator[Steps, Answers, ResultT]
"""A procedure that waits for ZooKeeper: yields steps to be sent together, is resumed with their answers, and returns.

Kafka's handlers block on ZooKeeper; as a generator the same order of thought needs no thread. Steps whose connection
was lost are sent again, unchanged, by the runner of the program.
"""


class ZooKeeperEventKind(Enum):
    """The change of a node that a watch reports."""

    CREATED = "created"
    DELETED = "deleted"
    DATA_CHANGED = "data_changed"


class NodeChanged(msgspec.Struct, frozen=True, kw_only=True):
    """A watch on a node fired; it has to be set again."""

    path: str
    kind: ZooKeeperEventKind


class ChildrenChanged(msgspec.Struct, frozen=True):
    """A watch on a node's children fired; it has to be set again."""

    path: str


WatchEvent: TypeAlias = NodeChanged | ChildrenChanged


class TreeChange(msgspec.Struct, frozen=True, kw_only=True):
    """The change of one node by a write, from the server's transaction log; changes of one transaction share a zxid.

    ``data`` and ``version`` are the node's after the whole write; ``version`` is ``None`` where there is no node then.
    ``is_closing``: the node was deleted with its session, which a client closed in order.
    """

    zxid: Zxid
    path: str
    kind: ZooKeeperEventKind
    session_id: SessionId
    data: bytes
    version: NodeVersion | None
    is_closing: bool = False


def failure(answer: StepAnswer) -> ZooKeeperFailure | None:
    """Returns why an operation failed; of a transaction, the first reason that does not come from another part."""
    if isinstance(answer, OperationFailed):
        return answer.reason
    if isinstance(answer, TransactionAnswer):
        for inner in answer.answers:
            if isinstance(inner, OperationFailed) and inner.reason is not ZooKeeperFailure.ROLLED_BACK:
                return inner.reason
    return None
