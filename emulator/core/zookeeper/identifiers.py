"""The vocabulary of small values that only ZooKeeper-mode Kafka has."""

from typing import NewType

SessionId = NewType("SessionId", int)
"""A client's session with the server; ephemeral nodes belong to one."""

Zxid = NewType("Zxid", int)
"""Position of a write in the server's total order. A broker epoch is the zxid that created the broker's node."""

NodeVersion = NewType("NodeVersion", int)
"""Number of times that a node's data was set; 0 when it was created. A partition epoch is one."""

ControllerEpoch = NewType("ControllerEpoch", int)
"""Term of a controller: the content of ``/controller_epoch``, which each election raises by one."""
