"""The one error of the admin client: what was asked, and Kafka's name for why it was not done."""

from laststand.emulator.core.errors import EmulatorError, ErrorCode


class AdminError(EmulatorError):
    """A node refused an administrator's request, or did not answer.

    Attributes:
        api: Kafka's name of the request.
        error: the protocol error; NETWORK_EXCEPTION or REQUEST_TIMED_OUT where no answer came.
        subject: what it is about, such as a partition; empty where it is the whole request.
        reason: the error message in the response; may be empty.
    """

    def __init__(self, *, api: str, error: ErrorCode, subject: str = "", reason: str = "") -> None:
        where = f"{api} {subject}" if subject else api
        super().__init__(f"{where}: {error.name} ({reason})" if reason else f"{where}: {error.name}")
        self.api = api
        self.error = error
        self.subject = subject
        self.reason = reason
