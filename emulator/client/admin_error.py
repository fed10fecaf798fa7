"""The error of the admin client: the request, and Kafka's name of the reason why it failed."""

from laststand.emulator.core.errors import EmulatorError, ErrorCode


class AdminError(EmulatorError):
    """A node refused an administrator's request, or did not answer.

    Attributes:
        api: Kafka's name of the request.
        error: the protocol error; NETWORK_EXCEPTION or REQUEST_TIMED_OUT if no answer came.
        subject: the subject of the error, such as a partition; empty for the whole request.
        reason: the error message in the response; may be empty.
    """

    def __init__(self, *, api: str, error: ErrorCode, subject: str = "", reason: str = "") -> None:
        where = f"{api} {subject}" if subject else api
        super().__init__(f"{where}: {error.name} ({reason})" if reason else f"{where}: {error.name}")
        self.api = api
        self.error = error
        self.subject = subject
        self.reason = reason
