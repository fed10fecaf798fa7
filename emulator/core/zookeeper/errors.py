"""Exceptions that end a program which waits for ZooKeeper."""

from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.core.zookeeper import operations


class ControllerMovedError(EmulatorError):
    """Another controller has been elected: this one must stop what it was doing.

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
    """A node whose content is JSON but not what Kafka writes there.

    Attributes:
        what: the node, in words.
        reason: what is wrong with it.
    """

    def __init__(self, *, what: str, reason: str) -> None:
        super().__init__(f"{what}: {reason}")
        self.what = what
        self.reason = reason
