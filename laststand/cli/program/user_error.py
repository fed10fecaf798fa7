"""User errors."""

from laststand.emulator.core.errors import EmulatorError


class UserError(EmulatorError):
    """The request is wrong, and the message says how to fix it. Ends in exit code 254."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
