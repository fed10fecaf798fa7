"""The alarm works: with a rule off the simulator finds what it prevents, and with everything on it finds nothing."""

import pytest

from emulator.simulator.explorer import Ambition, Orders
from emulator.simulator.oracle.finding import CheckKind
from emulator.simulator.shrink import goal_of, shrink
from emulator.simulator.sweep import sweep


def test_the_canary_is_found_and_shrunk() -> None:
    orders = Orders(switches=(("elr", "off"),), profiles=("restarts",), ambition=Ambition.OUTCOME)
    report = sweep(iter(range(300)), orders)
    (schedule,) = report.findings
    assert any(finding.kind is CheckKind.OUTCOME for finding in schedule.outcome.findings)
    shrunk = shrink(schedule.plan, goal_of(schedule.outcome.findings), limit_s=20)
    assert shrunk is not None
    assert shrunk.finding.kind is CheckKind.OUTCOME
    assert shrunk.plan.length <= 15


@pytest.mark.parametrize("profile", ["steady", "isr-churn", "elections", "restarts", "controller", "partitions"])
def test_nothing_is_found_with_every_rule_on(profile: str) -> None:
    report = sweep(iter(range(20)), Orders(profiles=(profile,)), keep_going=True)
    assert [str(finding) for schedule in report.findings for finding in schedule.outcome.findings] == []
    assert report.acks > 20 * 10
