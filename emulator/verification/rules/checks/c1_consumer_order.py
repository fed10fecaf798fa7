"""C1 ConsumerOrder: a consumer's offsets rise by one, without skip or repeat, until it seeks."""

from collections.abc import Iterator

import numpy as np

from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Finding, Premise, partition_check
from laststand.emulator.verification.tables.client_history import Poll


@partition_check(
    "C1",
    "ConsumerOrder",
    source="Jepsen's Kafka workload, nonmonotonic-poll and poll-skip",
    premises={Premise.CONSUMED},
    is_of_clients=True,
)
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    expected: dict[str, int] = {}
    for poll in facts.polls:
        problem = _problem(poll, expected.get(poll.process))
        if problem is not None:
            yield Finding(poll.position, f"{poll.process} on {facts} {problem}")
        read_up_to = poll.read_up_to
        expected[poll.process] = poll.position if read_up_to is None else read_up_to


def _problem(poll: Poll, expected: int | None) -> str | None:
    position, firsts, lasts = poll.position, poll.firsts, poll.lasts
    if not poll.seek and expected is not None and expected < position:
        return f"skipped offsets {expected}-{position - 1}"
    if not poll.seek and expected is not None and expected > position:
        return f"went back from offset {expected} to {position} without a seek"
    if firsts and firsts[0] > position:
        return f"asked for offset {position} and got {firsts[0]}"
    if lasts and lasts[0] < position:
        return f"asked for offset {position} and got a batch up to {lasts[0]}"
    if len(firsts) > 1 and np.any(np.asarray(firsts)[1:] != np.asarray(lasts)[:-1] + 1):
        offsets = ", ".join(f"{first}-{last}" for first, last in zip(firsts, lasts, strict=True))
        return f"got batches from offset {position} on that do not follow each other: {offsets}"
    return None
