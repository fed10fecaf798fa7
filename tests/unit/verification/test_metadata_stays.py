"""Q5 where nobody but the logs tells what was committed: on Apache Kafka."""

from types import SimpleNamespace
from typing import cast

from laststand.emulator.core import events
from laststand.emulator.core.types import CauseId, LeaderEpoch, MetadataOffset
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.quorum import LoggedBatch, MetadataLog
from laststand.emulator.verification.rules.check import ClusterCheck
from laststand.emulator.verification.rules.checks import CHECKS

[CHECK] = [check for check in CHECKS if isinstance(check, ClusterCheck) and check.check_id == "Q5"]


def committed(end: int, *, epoch: int) -> events.MetadataCommittedUpTo:
    return events.MetadataCommittedUpTo(
        cause_id=CauseId("kafka"),
        directory_id=None,
        quorum_epoch=LeaderEpoch(epoch),
        high_watermark=MetadataOffset(end),
        is_leader=True,
    )


def findings(log: tuple[LoggedBatch, ...], *commits: events.MetadataCommittedUpTo) -> list[str]:
    quorum = SimpleNamespace(
        last_leaders_log=MetadataLog(log, (), log[-1].end_offset, None),
        elections=(SimpleNamespace(node=102, event=SimpleNamespace(quorum_epoch=2, log_end_offset=3)),),
        commits_of_leaders=lambda: commits,
    )
    cluster = cast(ClusterFacts, SimpleNamespace(quorum=quorum, is_seen_from_outside=True))
    return [finding.sentence for finding in CHECK.find(cluster)]


LOG = (LoggedBatch(0, 3, 1, crc=7), LoggedBatch(3, 5, 2, crc=8))


def test_what_was_committed_is_in_the_log_of_the_last_leader() -> None:
    assert findings(LOG, committed(3, epoch=1), committed(5, epoch=2)) == []


def test_another_record_stands_where_one_was_committed() -> None:
    [text] = findings(LOG, committed(3, epoch=1), committed(5, epoch=1))
    assert text == (
        "a record of epoch 1 was committed at metadata offset 4, and is not in the log of controller 102, which leads "
        "last, in epoch 2"
    )


def test_a_committed_record_is_beyond_the_end() -> None:
    [text] = findings(LOG, committed(9, epoch=1))
    assert "at metadata offset 8" in text
