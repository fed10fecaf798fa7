"""ZooKeeper's tree of nodes: versions, sequential names, all-or-nothing transactions (ZooKeeper's ``DataTree``).

Writes are applied one at a time; each has a zxid, one for all operations of a transaction. The tree knows sessions only
as owners of ephemeral nodes, and no watches: it returns the changes.
"""

from typing import Final, assert_never

import msgspec

from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.identifiers import NodeVersion, SessionId, Zxid

ROOT: Final = "/"


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A node; ``creations`` counts all children that were ever created, and numbers the sequential ones."""

    data: bytes
    czxid: Zxid
    mzxid: Zxid
    version: NodeVersion = NodeVersion(0)
    ephemeral_owner: SessionId | None = None
    children: frozenset[str] = frozenset()
    creations: int = 0

    @property
    def stat(self) -> operations.NodeStat:
        """The node's metadata as a client gets it."""
        return operations.NodeStat(
            czxid=self.czxid,
            mzxid=self.mzxid,
            version=self.version,
            cversion=2 * self.creations - len(self.children),
            ephemeral_owner=self.ephemeral_owner,
        )


def parent_of(path: str) -> str:
    """Returns the path of a node's parent."""
    return path.rpartition("/")[0] or ROOT


class DataTree:
    """All nodes by path.

    Attributes:
        last_zxid: of the last write that changed something.
    """

    def __init__(self) -> None:
        self.last_zxid = Zxid(0)
        self._nodes: dict[str, Node] = {ROOT: Node(data=b"", czxid=Zxid(0), mzxid=Zxid(0))}

    def get(self, path: str) -> Node | None:
        """Returns a node."""
        return self._nodes.get(path)

    def owned_by(self, session_id: SessionId) -> tuple[str, ...]:
        """Returns the ephemeral nodes of a session, ascending."""
        return tuple(sorted(path for path, node in self._nodes.items() if node.ephemeral_owner == session_id))

    def read(self, operation: operations.Read) -> operations.OperationAnswer:
        """Answers a read."""
        node = self._nodes.get(operation.path)
        if node is None:
            return operations.OperationFailed(operations.ZooKeeperFailure.NO_NODE)
        match operation:
            case operations.GetData():
                return operations.DataRead(data=node.data, stat=node.stat)
            case operations.Exists():
                return operations.NodeFound(node.stat)
            case operations.GetChildren():
                return operations.ChildrenRead(children=tuple(sorted(node.children)), stat=node.stat)
            case _:
                assert_never(operation)

    def write(
        self, operation: operations.Write, session_id: SessionId
    ) -> tuple[operations.OperationAnswer, list[operations.NodeChanged]]:
        """Applies one write; returns its answer and what changed."""
        zxid = Zxid(self.last_zxid + 1)
        answer, change = self._apply(operation, session_id, zxid)
        if change is None:
            return answer, []
        self.last_zxid = zxid
        return answer, [change]

    def transact(
        self, transaction: operations.Transaction, session_id: SessionId
    ) -> tuple[operations.TransactionAnswer, list[operations.NodeChanged]]:
        """Applies all operations or none; the first one that fails decides."""
        before = dict(self._nodes)
        zxid = Zxid(self.last_zxid + 1)
        answers: list[operations.OperationAnswer] = []
        changes: list[operations.NodeChanged] = []
        for operation in transaction.operations:
            answer, change = self._apply(operation, session_id, zxid)
            if isinstance(answer, operations.OperationFailed):
                self._nodes = before
                return _failed(transaction, at=len(answers), answer=answer), []
            answers.append(
                msgspec.structs.replace(answer, stat=None) if isinstance(answer, operations.Created) else answer
            )
            if change is not None:
                changes.append(change)
        self.last_zxid = zxid
        return operations.TransactionAnswer(tuple(answers)), changes

    def _apply(
        self, operation: operations.Operation, session_id: SessionId, zxid: Zxid
    ) -> tuple[operations.OperationAnswer, operations.NodeChanged | None]:
        match operation:
            case operations.Create():
                return self._create(operation, session_id, zxid)
            case operations.SetData(path=path, data=data, version=version):
                node = self._nodes.get(path)
                refusal = _refusal(node, version)
                if node is None or refusal is not None:
                    return operations.OperationFailed(refusal or operations.ZooKeeperFailure.NO_NODE), None
                changed = msgspec.structs.replace(node, data=data, mzxid=zxid, version=NodeVersion(node.version + 1))
                self._nodes[path] = changed
                return operations.DataSet(changed.stat), operations.NodeChanged(
                    path=path, kind=operations.ZooKeeperEventKind.DATA_CHANGED
                )
            case operations.Delete(path=path, version=version):
                node = self._nodes.get(path)
                refusal = _refusal(node, version)
                if node is None or refusal is not None:
                    return operations.OperationFailed(refusal or operations.ZooKeeperFailure.NO_NODE), None
                if node.children:
                    return operations.OperationFailed(operations.ZooKeeperFailure.NOT_EMPTY), None
                self._remove(path)
                return operations.Deleted(), operations.NodeChanged(
                    path=path, kind=operations.ZooKeeperEventKind.DELETED
                )
            case operations.CheckVersion(path=path, version=version):
                refusal = _refusal(self._nodes.get(path), version)
                return (operations.Checked() if refusal is None else operations.OperationFailed(refusal)), None
            case operations.GetData() | operations.Exists() | operations.GetChildren():
                return self.read(operation), None
            case _:
                assert_never(operation)

    def _create(
        self, operation: operations.Create, session_id: SessionId, zxid: Zxid
    ) -> tuple[operations.OperationAnswer, operations.NodeChanged | None]:
        parent_path = parent_of(operation.path)
        parent = self._nodes.get(parent_path)
        if parent is None:
            return operations.OperationFailed(operations.ZooKeeperFailure.NO_NODE), None
        if parent.ephemeral_owner is not None:
            return operations.OperationFailed(operations.ZooKeeperFailure.NO_CHILDREN_FOR_EPHEMERALS), None
        path = operation.path
        if operation.kind is operations.NodeKind.SEQUENTIAL:
            path = f"{path}{parent.creations:010d}"
        if path in self._nodes:
            return operations.OperationFailed(operations.ZooKeeperFailure.NODE_EXISTS), None
        owner = session_id if operation.kind is operations.NodeKind.EPHEMERAL else None
        node = Node(data=operation.data, czxid=zxid, mzxid=zxid, ephemeral_owner=owner)
        self._nodes[path] = node
        self._nodes[parent_path] = msgspec.structs.replace(
            parent, children=parent.children | {path.rpartition("/")[2]}, creations=parent.creations + 1
        )
        return operations.Created(path=path, stat=node.stat), operations.NodeChanged(
            path=path, kind=operations.ZooKeeperEventKind.CREATED
        )

    def _remove(self, path: str) -> None:
        del self._nodes[path]
        parent = self._nodes[parent_of(path)]
        self._nodes[parent_of(path)] = msgspec.structs.replace(
            parent, children=parent.children - {path.rpartition("/")[2]}
        )


def _refusal(node: Node | None, version: NodeVersion | None) -> operations.ZooKeeperFailure | None:
    if node is None:
        return operations.ZooKeeperFailure.NO_NODE
    return None if version is None or version == node.version else operations.ZooKeeperFailure.BAD_VERSION


def _failed(
    transaction: operations.Transaction, *, at: int, answer: operations.OperationFailed
) -> operations.TransactionAnswer:
    undone = operations.OperationFailed(operations.ZooKeeperFailure.ROLLED_BACK)
    untried = operations.OperationFailed(operations.ZooKeeperFailure.NOT_EXECUTED)
    count = len(transaction.operations)
    return operations.TransactionAnswer((undone,) * at + (answer,) + (untried,) * (count - at - 1))
