"""Exceptions that end a program which waits for ZooKeeper."""

from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.core.zookeeper import operations


class ControllerMovedError(EmulatorError):
    """Another controller has been elected: this one must stop its current work.

    Kafka's ``ControllerMovedException``.
    """

    def __init__(self) -> None:
        super().__init__("another controller has been elected")


class ZooKeeperRefusedError(EmulatorError):
    """ZooKeeper refused an operation for a reason that its sender cannot handle (Kafka's ``KeeperException``).

    Attributes:
        path: the node.
        reason: the server's.
    """

    def __init__(self, *, path: str, reason: operations.ZooKeeperFailure) -> None:
        super().__init__(f"{path}: {reason.value}")
        self.path = path
        self.reason = reason


class MalformedNodeError(EmulatorError):
    """The content of a node is JSON, but not in Kafka's format.

    Attributes:
        what: the node, in words.
        reason: the mistake.
    """

    def __init__(self, *, what: str, reason: str) -> None:
        super().__init__(f"{what}: {reason}")
        self.what = what
        self.reason = reason
