"""C3 ClientHW: the log end offset that consumers receive does not go back."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from laststand.emulator.core.promises import PROMISES, Exemption
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Evidence, Finding, Premise, partition_check
from laststand.emulator.verification.tables.client_history import Poll


class _Progress(NamedTuple):
    """The end of a consumer's reads so far, and the number of its batches up to the one that ended there."""

    read_up_to: int = -1
    batches: int = 0


@partition_check(
    "C3",
    "ClientHW",
    source="KIP-207, the offset that ListOffsets returns does not go back",
    needs={Evidence.TOPIC_IDS},
    premises={Premise.POLLED_AGAIN},
    is_of_clients=True,
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    before: dict[tuple[str, str | None], Poll] = {}
    furthest: dict[tuple[str, str | None], _Progress] = {}
    received = Counter[tuple[str, str | None]]()
    skips_deleted = PROMISES["C3"].leaves_out(Exemption.DELETED_RECORDS)
    for poll in facts.polls:
        if poll.phase != "live":
            continue
        consumer = (poll.process, poll.topic_id)
        last, progress = before.get(consumer), furthest.get(consumer, _Progress())
        was_out_of_range = last is not None and last.error == "OFFSET_OUT_OF_RANGE"
        is_sent_back = poll.seek and was_out_of_range and poll.position < progress.read_up_to
        if is_sent_back and not (skips_deleted and _is_deleted(facts, poll, progress)):
            yield Finding(
                poll.position,
                f"{poll.process} on {facts} had read up to {progress.read_up_to}, was told OFFSET_OUT_OF_RANGE and "
                f"went on from {poll.position}",
            )
        before[consumer] = poll
        received[consumer] += len(poll.crcs)
        if poll.read_up_to is not None and poll.read_up_to > progress.read_up_to:
            furthest[consumer] = _Progress(poll.read_up_to, received[consumer])


def _is_deleted(facts: PartitionFacts, poll: Poll, progress: _Progress) -> bool:
    """Returns whether the last record that a consumer had read was deleted on purpose."""
    received = facts.received
    own = (
        received.has("process", poll.process) & received.has("topic_id", poll.topic_id) & received.has("phase", "live")
    )
    batch = next(received.rows(np.flatnonzero(own)[progress.batches - 1 : progress.batches]), None)
    crc, leader_epoch = (None, None) if batch is None else (batch.crc, batch.leader_epoch)
    return facts.is_deleted(poll.topic_id or "", progress.read_up_to - 1, crc=crc, leader_epoch=leader_epoch)
