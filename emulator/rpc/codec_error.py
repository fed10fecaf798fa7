"""The error for bytes from the network that are not the expected message."""

from laststand.emulator.core.errors import EmulatorError


class CodecError(EmulatorError):
    """A peer sent bytes that are not a valid message.

    Attributes:
        message: name of the expected message.
        reason: the cause in words.
    """

    def __init__(self, *, message: str, reason: str) -> None:
        super().__init__(f"{message}: {reason}")
        self.message = message
        self.reason = reason
