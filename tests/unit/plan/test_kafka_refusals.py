"""Actions that cannot be done to Apache Kafka are refused, and all others are not."""

import pytest

from laststand.emulator.core import admin_messages
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.plan import actions
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.kafka_refusals import refused_kind
from laststand.emulator.plan.lines import parse_action
from laststand.emulator.plan.plan_lint import refusal

PLAYED = {
    "kill",
    "stop",
    "start",
    "pause",
    "resume",
    "power_loss",
    "replace_disk",
    "flip_bit",
    "isolate",
    "cut",
    "heal",
    "expire",
    "hold",
    "release",
    "release_newest",
    "lose",
    "duplicate",
    "delay",
}


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("slow-disk 1 ms=200", "disk"),
        ("clock-jump 1 ms=3000", "clock"),
        ("wait 120", "state"),
        ("hold 100->0 GetReplicaLogInfo request", "call each other, and no broker"),
        ("hold 100->101 AlterPartition request", "do not call"),
        ("hold 0->101 Vote request", "do not call"),
        ("hold 0->100 Fetch response", "Stream"),
        ("hold 0->1 Stream response", "controller"),
        ("hold 0->100 LeaderAndIsr request", "do not call"),
        ("hold 100->100 Sync response", "disk"),
        ("revoke 0 operation=cluster_action", "ends itself"),
        ("revoke 1000,0 operation=all", "ends itself"),
        ("expire-certificate 0", "TLS"),
    ],
)
def test_an_action_is_refused_with_the_reason(line: str, word: str) -> None:
    refused = refusal(parse_action(line), DriverName.KAFKA)
    assert refused is not None
    assert word in refused


def test_records_are_deleted() -> None:
    deletion = actions.DeleteRecords(partition=TopicPartition("orders", 0), offset=None)
    assert refusal(deletion, DriverName.KAFKA) is None


@pytest.mark.parametrize(("election", "is_refused"), [("UNCLEAN", False), ("PREFERRED", False), ("DESIGNATED", True)])
def test_elections_are_those_of_kafka(election: str, is_refused: bool) -> None:  # noqa: FBT001 - a column of the table
    asked = actions.ElectLeaders(
        election=admin_messages.RequestedElection[election], partitions=(TopicPartition("orders", 0),)
    )
    assert (refusal(asked, DriverName.KAFKA) is not None) is is_refused


@pytest.mark.parametrize(
    "line",
    [
        "kill 1",
        "power-loss 1",
        "isolate 1",
        "hold 0->100 Stream response",
        "hold 0->101 Stream response",
        "hold 101->102 Vote request",
        "lose 101->100 FetchMetadata response",
        "lose 0->1 Fetch response",
        "duplicate-next 0->100 AlterPartition request count=1",
        "delay 1->0 OffsetForLeaderEpoch request ms=50",
        "grant 0 operation=cluster_action",
        "revoke 0 operation=describe",
        "revoke 100 operation=cluster_action",
        "revoke 0 operation=all topic=orders",
    ],
)
def test_an_action_is_played(line: str) -> None:
    assert refusal(parse_action(line), DriverName.KAFKA) is None


def test_processes_links_and_requests_are_played() -> None:
    refused = {row.verb for row in actions.ACTION_SPECS.values() if refused_kind(row.kind) is not None}
    assert not refused & PLAYED
