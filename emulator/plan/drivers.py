"""The drivers that can play a plan."""

from enum import Enum

from laststand.emulator.core.types import ClusterKind


class DriverName(Enum):
    """A driver. Values are those of ``--driver``."""

    PROCESS = "process"
    """Real processes on this machine's loopback."""

    DOCKER = "docker"
    """Real processes, each in a container."""

    SIMULATOR = "simulator"

    KAFKA = "kafka"
    """Processes of Apache Kafka, on this machine's loopback."""

    EXTERNAL = "external"
    """A cluster that somebody else runs; commands of the user's break it."""

    @property
    def has_processes(self) -> bool:
        """Nodes are real processes of the run, in containers or not."""
        return self not in (DriverName.SIMULATOR, DriverName.EXTERNAL)

    def plays(self, kind: ClusterKind) -> bool:
        """Returns whether the driver plays clusters of a kind."""
        return kind is ClusterKind.KRAFT or self not in (DriverName.KAFKA, DriverName.EXTERNAL)
