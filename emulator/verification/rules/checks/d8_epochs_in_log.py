"""D8 EpochsInLog: leader epochs do not fall along a log, and a leader appends in its own epoch (KIP-101).

Judged by appends, by final logs, and by the epochs that a process loaded as it opened a log. No event records the
contents of its epoch cache in between.
"""

from collections.abc import Iterator
from itertools import pairwise

from laststand.emulator.core import events
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.rules.check import Finding, Premise, partition_check
from laststand.emulator.verification.tables.final_logs import successive


@partition_check("D8", "EpochsInLog", source="KIP-101; Kafka's LeaderEpochFileCache", premises={Premise.LOG_OPENED})
def _find(facts: PartitionFacts) -> Iterator[Finding]:
    batches = facts.events.rows(events.BatchAppended)
    epochs_of, current = batches["leader_epoch"], batches["current_leader_epoch"]
    is_leader = batches.has("role", events.AppendRole.LEADER)
    for appended in batches.rows((epochs_of > current) | (is_leader & (epochs_of != current))):
        event = appended.event
        yield Finding(
            event.base_offset,
            f"{facts}: broker {appended.node} appended a batch of epoch {event.leader_epoch} as "
            f"{event.role.value} in epoch {event.current_leader_epoch}",
        )
    for opened in facts.events.of(events.LogOpened):
        log = opened.event
        rise = all(one[0] < other[0] and one[1] < other[1] for one, other in pairwise(log.epochs))
        has_epochs = bool(log.epochs) or log.log_start_offset == log.log_end_offset
        if not has_epochs or not rise or any(start > log.log_end_offset for _, start in log.epochs):
            yield Finding(
                opened.sequence,
                f"{facts}: broker {opened.node} opened a log from {log.log_start_offset} to {log.log_end_offset} "
                f"with epochs {log.epochs}",
            )
    for before, after in successive(facts.final_batches):
        falls = after["leader_epoch"] < before["leader_epoch"]
        for left, found in zip(before.rows(falls), after.rows(falls), strict=True):
            yield Finding(
                found.base_offset,
                f"{facts}: in the final log of broker {found.node} (topic id {found.topic_id}) epoch "
                f"{found.leader_epoch} at {found.base_offset} follows epoch {left.leader_epoch}",
            )
