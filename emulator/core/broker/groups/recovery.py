"""Records for a log of ``__consumer_offsets`` whose leader was elected uncleanly (KIP-704)."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from laststand.emulator.core.coordinator_records import LoadedRecord
from laststand.emulator.core.group_records import GroupMetadata, GroupRecord, GroupRemoved, PositionsHeld
from laststand.emulator.core.types import GroupRecovery

GENERATION_JUMP: Final = 1000
"""Distance from the newest generation in a log that lost records to the next one."""


def fences(records: Sequence[LoadedRecord], recovery: GroupRecovery, *, now_ms: int) -> Iterator[GroupRecord]:
    """Yields records that give every group a generation id above all that lost records can have used.

    The groups have no members afterwards: former members get UNKNOWN_MEMBER_ID, and join again.
    """
    latest: dict[str, GroupMetadata] = {}
    for record, _ in records:
        match record:
            case GroupMetadata(group_id=group_id):
                latest[group_id] = record
            case GroupRemoved(group_id=group_id):
                latest.pop(group_id, None)
            case _:
                pass
    for each in latest.values():
        if each.protocol_type:
            generation_id = each.generation_id + GENERATION_JUMP
            yield replace(
                each, generation_id=generation_id, protocol_name=None, leader=None, members=(), state_ms=now_ms
            )
    if recovery is GroupRecovery.HOLD:
        yield PositionsHeld()
