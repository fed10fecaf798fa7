"""The liveness that a schedule asks for after healing."""

import pytest

from laststand.emulator.core.quorum_rules import QuorumRules
from laststand.emulator.simulator.quorum.oracle import QuorumCheck
from tests.simulation.quorum.cluster import QuorumCluster
from tests.simulation.quorum.schedule import QuorumSchedule


def test_a_healed_quorum_that_commits_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = QuorumSchedule(4, QuorumRules())
    for source in schedule.cluster.members:
        for target in schedule.cluster.members:
            schedule.cluster.cut(source, target)
    monkeypatch.setattr(QuorumCluster, "heal", lambda _: None)

    outcome = schedule.play()

    assert [finding.check for finding in outcome.findings] == [QuorumCheck.PROGRESS]
