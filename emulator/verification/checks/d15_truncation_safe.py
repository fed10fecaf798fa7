"""D15 TruncationSafe: no follower truncates what the leader of an earlier epoch committed.

Within one epoch nothing says whether the leader committed a batch before a follower cut it off.
"""

from collections.abc import Iterator, Sequence

from emulator.core.events import BatchAppended, HighWatermarkAdvanced, LogTruncated
from emulator.verification.check import Finding, PartitionCheck, Premise
from emulator.verification.partition_facts import PartitionFacts
from emulator.verification.sentences import words
from emulator.verification.timeline import CollectedEvent

_Identity = tuple[str, int, int, int]
"""Topic id, base offset, leader epoch and CRC of a batch."""


def _find(facts: PartitionFacts) -> Iterator[Finding]:
    truncations = facts.events.of(LogTruncated)
    if not truncations:
        return
    committed = _committed_epochs(facts)
    unclean = [(change.new.topic_id, change.new.leader_epoch) for change in facts.changes if change.is_unclean]
    for truncation in truncations:
        cut = truncation.event

        def counts(epoch: int, cut: LogTruncated = cut) -> bool:
            return epoch < cut.leader_epoch and not any(
                topic_id == cut.topic_id and epoch < unclean_epoch <= cut.leader_epoch
                for topic_id, unclean_epoch in unclean
            )

        offsets = {
            batch.base_offset
            for batch in _cut_off(facts, truncation)
            if any(counts(epoch) for epoch in committed.get(_identity(batch), ()))
        }
        if offsets:
            yield Finding(
                min(offsets),
                f"{facts}: broker {truncation.node} truncated its log from {cut.old_end_offset} to "
                f"{cut.new_end_offset} ({words(cut.reason)}) in epoch {cut.leader_epoch}, and with it {len(offsets)} "
                f"batches from offset {min(offsets)} on that had been committed",
            )


def _cut_off(facts: PartitionFacts, truncation: CollectedEvent[LogTruncated]) -> Iterator[BatchAppended]:
    cut = truncation.event
    appended = [
        batch
        for batch in facts.events.of(BatchAppended)
        if batch.node == truncation.node and batch.event.topic_id == cut.topic_id
    ]
    for batch in _log_at((truncation.incarnation, truncation.sequence), appended):
        if batch.base_offset >= cut.new_end_offset and batch.last_offset < cut.old_end_offset:
            yield batch


def _committed_epochs(facts: PartitionFacts) -> dict[_Identity, set[int]]:
    """By batch, the epochs of the leaders that had it when they called it committed."""
    terms: dict[tuple[str, int], dict[int, tuple[int, tuple[int, int]]]] = {}
    for advanced in facts.events.of(HighWatermarkAdvanced):
        event = advanced.event
        epochs = terms.setdefault((event.topic_id, advanced.node), {})
        new, place = epochs.get(event.leader_epoch, (0, (-1, -1)))
        told = (advanced.incarnation, advanced.sequence)
        epochs[event.leader_epoch] = (max(new, event.new), max(place, told))
    appended: dict[tuple[str, int], list[CollectedEvent[BatchAppended]]] = {}
    for batch in facts.events.of(BatchAppended):
        appended.setdefault((batch.event.topic_id, batch.node), []).append(batch)
    committed: dict[_Identity, set[int]] = {}
    for log, epochs in terms.items():
        for epoch, (new, place) in epochs.items():
            for there in _log_at(place, appended.get(log, [])):
                if new > there.last_offset:
                    committed.setdefault(_identity(there), set()).add(epoch)
    return committed


def _log_at(place: tuple[int, int], appended: Sequence[CollectedEvent[BatchAppended]]) -> list[BatchAppended]:
    """What was in a log at a moment; an append below its end tells that what had been there was gone."""
    log: list[BatchAppended] = []
    for batch in sorted(appended, key=lambda batch: (batch.incarnation, batch.sequence)):
        if (batch.incarnation, batch.sequence) < place:
            while log and log[-1].last_offset >= batch.event.base_offset:
                log.pop()
            log.append(batch.event)
    return log


def _identity(batch: BatchAppended) -> _Identity:
    return (batch.topic_id, batch.base_offset, batch.leader_epoch, batch.crc)


CHECK = PartitionCheck(
    check_id="D15",
    name="TruncationSafe",
    premises=frozenset({Premise.HIGH_WATERMARK_MOVED, Premise.TRUNCATED}),
    find=_find,
)
