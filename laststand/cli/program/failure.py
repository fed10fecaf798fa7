"""Failures outside of this program that cannot be found in advance."""

from laststand.cli.program.exit_codes import ExitCode
from laststand.emulator.core.errors import EmulatorError


class CommandFailedError(EmulatorError):
    """A command could not do its work; the message says why, and a stack trace would not help.

    Attributes:
        exit_code: of the process.
    """

    def __init__(self, message: str, *, exit_code: ExitCode = ExitCode.INTERNAL) -> None:
        super().__init__(message)
        self.exit_code = exit_code
