"""One member of a group in the client process: drives its state machine, and can be stopped as by a signal."""

from collections.abc import Sequence
from typing import assert_never

from laststand.emulator.client.fetches import Fetches
from laststand.emulator.client.history import History
from laststand.emulator.client.members import MemberProcess
from laststand.emulator.client.shell import Links, Shell
from laststand.emulator.core import effects, inputs
from laststand.emulator.core.client.steps import (
    Abandoned,
    GroupCommitRecorded,
    GroupIdentity,
    GroupMemberRecorded,
    GroupReadRecorded,
    LeaveOffered,
    MemberInput,
    MemberRecord,
)
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
        self._shell: Shell[MemberInput, MemberRecord] = Shell(
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
    def identity(self) -> GroupIdentity:
        """The member as commits of positions name it."""
        return self._process.member.identity

    def start(self) -> None:
        """Joins the group; everything else happens in callbacks."""
        self._shell.step(inputs.Started(cause_id=CauseId(self._name)))

    def leave(self) -> None:
        """Leaves the group."""
        self._shell.step(LeaveOffered(cause_id=CauseId(self._name)))

    def pause(self, *, is_paused: bool) -> None:
        """Pauses the member, or resumes it with the inputs that wait."""
        self._process.is_paused = is_paused
        self._shell.step(inputs.TimerFired(cause_id=CauseId(self._name)))

    async def stop(self) -> None:
        """Ends the member without a LeaveGroup request."""
        self._process.is_paused = False
        self._shell.step(Abandoned(cause_id=CauseId(self._name)))
        await self._shell.close()

    def _attachments(self, request: effects.SendRequest) -> Sequence[Attachment]:
        self._fetches.note_request(request)
        return ()

    def _record(self, recorded: MemberRecord) -> None:
        match recorded:
            case GroupMemberRecorded():
                self._history.add_group_member(recorded, process=self._name)
            case GroupReadRecorded():
                self._history.add_group_read(recorded, process=self._name)
            case GroupCommitRecorded():
                self._history.add_group_commit(recorded, process=self._name)
            case _:
                assert_never(recorded)
