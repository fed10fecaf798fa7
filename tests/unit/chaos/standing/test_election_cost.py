"""The cost of electing a replica, on logs written down as their epochs."""

import msgspec
import pytest

from laststand.chaos.standing.election_cost import candidates, common_end
from laststand.chaos.standing.inspection import InspectedPartition, Replica
from laststand.chaos.standing.status import PartitionStatus, StatusReport
from laststand.cli.commands.inspect import _print as print_inspected
from laststand.cli.output.output import Output
from laststand.cli.standing.status_text import print_status
from laststand.emulator.core.batch import EpochEntry
from laststand.emulator.core.types import BrokerId, LeaderEpoch, LeaderRecoveryState, NodeId, Offset, TopicId


def broker(number: int) -> BrokerId:
    return BrokerId(NodeId(number))


def replica(
    number: int, epochs: str, *, state: str = "running", start: int = 0, high_watermark: int | None = None
) -> Replica:
    """A log such as ``001122``: one digit per record, its leader epoch, from offset ``start`` on."""
    entries: list[EpochEntry] = []
    for offset, digit in enumerate(epochs, start=start):
        if not entries or entries[-1].leader_epoch != int(digit):
            entries.append(EpochEntry(LeaderEpoch(int(digit)), Offset(offset)))
    return Replica(
        broker_id=broker(number),
        state=state,
        fenced=state != "running",
        roles=(),
        source="broker",
        log_start_offset=Offset(start),
        log_end_offset=Offset(start + len(epochs)),
        high_watermark=None if high_watermark is None else Offset(high_watermark),
        last_written_leader_epoch=LeaderEpoch(int(epochs[-1])) if epochs else None,
        epochs=tuple(entries),
    )


def slow_common_end(left: str, right: str) -> int:
    """The same, record by record."""
    return next(
        (offset for offset, (one, other) in enumerate(zip(left, right, strict=False)) if one != other),
        min(len(left), len(right)),
    )


LOGS = ["", "0", "00", "0011", "0012", "001122", "00112", "1", "01", "0022", "000000", "112233", "0002"]


@pytest.mark.parametrize("left", LOGS)
@pytest.mark.parametrize("right", LOGS)
def test_logs_part_where_their_epochs_do(left: str, right: str) -> None:
    assert common_end(replica(0, left), replica(1, right)) == slow_common_end(left, right)


def test_what_was_deleted_from_the_front_does_not_part_logs() -> None:
    assert common_end(replica(0, "001122"), replica(1, "1122", start=2)) == 6
    assert common_end(replica(0, "001133"), replica(1, "1122", start=2)) == 4


def inspected(*replicas: Replica) -> InspectedPartition:
    status = PartitionStatus(
        topic="orders",
        topic_id=TopicId("id"),
        partition=0,
        leader=None,
        leader_epoch=3,
        replicas=tuple(each.broker_id for each in replicas),
        isr=(),
        elr=(),
        last_known_elr=(),
        min_insync_replicas=2,
    )
    return InspectedPartition(partition=status, replicas=replicas)


def test_a_leader_that_recovers_is_shown_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    status = inspected().partition
    recovering = msgspec.structs.replace(status, leader_recovery_state=LeaderRecoveryState.RECOVERING)
    for shown, word in ((status, ""), (recovering, ", RECOVERING")):
        print_inspected(InspectedPartition(partition=shown, replicas=()))
        assert capsys.readouterr().out.splitlines()[0].endswith(f"min ISR 2{word}")
        report = StatusReport(
            directory="d",
            supervisor_pid=1,
            era="kip-966",
            session_timeout_ms=1,
            network_faults=False,
            nodes=(),
            partitions=(shown,),
            faults=(),
            clients=(),
            problem=None,
        )
        print_status(report, output=Output.TEXT)
        assert ("RECOVERING" in capsys.readouterr().out) is bool(word)


def test_a_candidate_loses_what_others_have_beyond_the_common_part() -> None:
    found = candidates(
        inspected(
            replica(0, "0000", high_watermark=4),
            replica(1, "00001111", high_watermark=6),
            replica(2, "000022", state="down", high_watermark=4),
        )
    )
    assert [(each.broker_id, each.records_lost, each.committed_lost) for each in found] == [(0, 4, 2), (1, 2, 0)]
    assert [(loss.broker_id, loss.state, loss.first_offset, loss.records) for loss in found[0].losses] == [
        (1, "running", 4, 4),
        (2, "down", 4, 2),
    ]


def test_only_live_replicas_with_a_log_are_candidates() -> None:
    found = candidates(
        inspected(
            replica(0, "00", state="paused"),
            Replica(broker_id=broker(1), state="running", fenced=False, roles=(), source=None),
            replica(2, "00"),
        )
    )
    assert [(each.broker_id, each.records_lost) for each in found] == [(2, 0)]
