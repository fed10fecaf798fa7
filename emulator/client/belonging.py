"""One member of a group in the client process: drives its state machine, and can be stopped as by a signal."""

from collections.abc import Sequence

from laststand.emulator.client.fetches import Fetches
from laststand.emulator.client.history import History
from laststand.emulator.client.members import MemberProcess
from laststand.emulator.client.shell import Links, Shell
from laststand.emulator.core import effects, inputs
from laststand.emulator.core.client import steps
from laststand.emulator.core.types import CauseId
from laststand.emulator.rpc.data_codec import Attachment


class RunningMember:
    """A member at work.

    Args:
        name: in the history.
        process: the state machine.
    """

    def __init__(self, name: str, process: MemberProcess, *, links: Links, history: History) -> None:
        self._name = name
        self._process = process
        self._history = history
        self._fetches = Fetches(is_committed_only=True)
        self._shell: Shell[steps.MemberInput, steps.MemberRecord] = Shell(
            core=process,
            links=links,
            history=history,
            to_input=self._fetches.to_input,
            record=self._record,
            attachments=self._attachments,
        )

    @property
    def is_over(self) -> bool:
        """True if the member has left its group, or died."""
        return self._process.member.is_over

    @property
    def identity(self) -> steps.GroupIdentity:
        """The member as commits of positions name it."""
        return self._process.member.identity

    def start(self) -> None:
        """Joins the group; everything else happens in callbacks."""
        self._shell.step(inputs.Started(cause_id=CauseId(self._name)))

    def leave(self) -> None:
        """Leaves the group."""
        self._shell.step(steps.LeaveOffered(cause_id=CauseId(self._name)))

    def pause(self, *, is_paused: bool) -> None:
        """Pauses the member, or resumes it with the inputs that wait."""
        self._process.is_paused = is_paused
        self._shell.step(inputs.TimerFired(cause_id=CauseId(self._name)))

    async def stop(self) -> None:
        """Ends the member without a LeaveGroup request."""
        self._process.is_paused = False
        self._shell.step(steps.Abandoned(cause_id=CauseId(self._name)))
        await self._shell.close()

    def _attachments(self, request: effects.SendRequest) -> Sequence[Attachment]:
        self._fetches.note_request(request)
        return ()

    def _record(self, recorded: steps.MemberRecord) -> None:
        self._history.add(recorded, process=self._name)
