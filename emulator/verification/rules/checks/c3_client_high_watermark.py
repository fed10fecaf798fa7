"""C3 ClientHW: the log end that consumers are told does not go back."""

from collections.abc import Iterator

from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, PartitionCheck, Premise
from laststand.emulator.verification.tables.client_history import Poll


def _find(facts: PartitionFacts) -> Iterator[Finding]:
    before: dict[tuple[str, str | None], Poll] = {}
    furthest: dict[tuple[str, str | None], int] = {}
    for poll in facts.polls:
        if poll.phase != "live":
            continue
        consumer = (poll.process, poll.topic_id)
        last, had_read = before.get(consumer), furthest.get(consumer, -1)
        was_told = last is not None and last.error == "OFFSET_OUT_OF_RANGE"
        exempts = PROMISES["C3"].leaves_out(Exemption.DELETED_RECORDS)
        is_deleted = exempts and had_read < facts.deleted_below.get(poll.topic_id or "", 0)
        if poll.seek and was_told and poll.position < had_read and not is_deleted:
            yield Finding(
                poll.position,
                f"{poll.process} on {facts} had read up to {had_read}, was told OFFSET_OUT_OF_RANGE and went on from "
                f"{poll.position}",
            )
        before[consumer] = poll
        if poll.read_up_to is not None:
            furthest[consumer] = max(had_read, poll.read_up_to)


CHECK = PartitionCheck(
    check_id="C3",
    name="ClientHW",
    source="KIP-207, the offset that ListOffsets returns does not go back",
    needs=frozenset({Evidence.TOPIC_IDS}),
    premises=frozenset({Premise.POLLED_AGAIN}),
    find=_find,
)
