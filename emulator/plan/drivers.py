"""What can play a plan."""

from enum import Enum


class DriverName(Enum):
    """A driver. Values are those of ``--driver``."""

    PROCESS = "process"
    SIMULATOR = "simulator"
