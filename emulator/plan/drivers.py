"""What can play a plan."""

from enum import Enum


class DriverName(Enum):
    """A driver. Values are those of ``--driver``."""

    PROCESS = "process"
    DOCKER = "docker"
    SIMULATOR = "simulator"

    @property
    def has_processes(self) -> bool:
        """Whether nodes are real processes, in containers or not."""
        return self is not DriverName.SIMULATOR
