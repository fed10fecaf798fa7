"""Members of groups as processes that a run starts, stops and ends: alike in the client process and virtual time."""

from collections.abc import Sequence

from laststand.emulator.core import inputs
from laststand.emulator.core.client.group_member import GroupMember
from laststand.emulator.core.client.settings import MemberSettings
from laststand.emulator.core.client.steps import Abandoned, MemberEffect, MemberInput
from laststand.emulator.core.types import BrokerId


class MemberProcess:
    """One member, which can be stopped as by a signal: what happens to it meanwhile waits, and its timers do not fire.

    A killed member never gets the inputs that wait.

    Args:
        member: the state machine.

    Attributes:
        is_paused: whether it is stopped.
    """

    def __init__(self, member: GroupMember) -> None:
        self.member = member
        self.is_paused = False
        self._inbox: list[MemberInput | inputs.TimerFired] = []

    def step(self, incoming: MemberInput | inputs.TimerFired, *, now_ms: int) -> Sequence[MemberEffect]:
        """Steps the member with an input, after the inputs that waited."""
        if isinstance(incoming, Abandoned):
            self._inbox.clear()
        self._inbox.append(incoming)
        if self.is_paused:
            return ()
        waiting, self._inbox = self._inbox, []
        return [effect for each in waiting for effect in self.member.step(each, now_ms=now_ms)]

    def next_deadline_ms(self) -> int | None:
        """Returns when ``TimerFired`` is due, or ``None``."""
        return None if self.is_paused else self.member.next_deadline_ms()


class MemberMaker:
    """Names the members of a run: each process that joins gets a name of its own.

    Args:
        bootstrap: brokers, any of which is asked for metadata.
    """

    def __init__(self, bootstrap: tuple[BrokerId, ...]) -> None:
        self._bootstrap = bootstrap
        self._starts: dict[str, int] = {}

    def make(
        self,
        group_id: str,
        number: int,
        *,
        is_static: bool,
        topics: tuple[str, ...],
        settings: MemberSettings,
        reads: bool = True,
    ) -> tuple[str, MemberProcess]:
        """Returns a member that has not started yet, and its name in the history."""
        place = f"{group_id}-{number}"
        start = self._starts[place] = self._starts.get(place, -1) + 1
        name = f"{place}.{start}" if start else place
        member = GroupMember(
            name=name,
            group_id=group_id,
            settings=settings,
            bootstrap=self._bootstrap,
            topics=topics,
            instance_id=place if is_static else None,
            reads=reads,
        )
        return name, MemberProcess(member)
