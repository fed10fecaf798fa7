"""Exit codes, as Jepsen's. Click's own 2 and Python's own 1 are never used."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit code of the process."""

    VALID = 0
    """``run``: as expected; ``verify``: every run is valid; ``--no-verify``: played."""

    VIOLATION = 1
    """``run``: not as expected; ``verify``: a run is a violation."""

    UNKNOWN = 2
    """Undecided; ``--no-verify``: the run did not reach its end."""

    INTERRUPTED = 130
    """Ctrl-C; another signal ends in 128 and its number (``signals.py``)."""

    CLOSED_PIPE = 141
    """The reader of the output is gone (``streams.py``)."""

    USAGE = 254
    """A user error, found before anything started; or stdout cannot be written."""

    INTERNAL = 255
    """An uncaught exception."""
