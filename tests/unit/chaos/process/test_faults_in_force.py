"""Faults in force: what was injected and not healed, whatever its kind."""

from collections.abc import Iterator

import pytest

from laststand.chaos.process.faults_in_force import FaultsInForce
from laststand.emulator.core import events
from laststand.emulator.core.types import CauseId, IncarnationId, MetadataOffset, NodeId, NodeRole
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Link
from laststand.emulator.plan.faults import fault_events

ONE = (NodeId(1),)
CUT = actions.Cut(link=Link(NodeId(0), NodeId(1)))
LYING = actions.LoseSyncs(nodes=ONE)


def events_of(action: actions.Action, *, second: int, effect: str | None = "seen") -> Iterator[events.Event]:
    return fault_events(
        action,
        effect=effect,
        cause_id=CauseId("step"),
        before=MetadataOffset(0),
        after=MetadataOffset(0),
        broken=(),
        begun_ns=second * 1_000_000_000,
        proved_ns=second * 1_000_000_000,
    )


@pytest.mark.parametrize(
    ("actions", "left"),
    [
        ((actions.Kill(nodes=ONE),), ["kill on node 1"]),
        ((LYING, actions.SlowDisk(nodes=ONE, delay_ms=40)), ["lose_syncs on node 1", "slow_disk on node 1"]),
        ((CUT, LYING, actions.Isolate(nodes=ONE), actions.HealAll()), ["lose_syncs on node 1"]),
        ((CUT, actions.ClockRate(nodes=ONE, rate_ppm=2_000_000), actions.HealAll()), ["clock on node 1"]),
        ((LYING, actions.Isolate(nodes=ONE), actions.HealNodes(nodes=ONE)), ["lose_syncs on node 1"]),
        ((LYING, actions.LoseSyncs(nodes=ONE, state=actions.Switched.OFF)), []),
        ((actions.Isolate(nodes=ONE), actions.HealNodes(nodes=ONE)), []),
        ((actions.Kill(nodes=ONE), actions.Pause(nodes=(NodeId(2),)), actions.Start(nodes=ONE)), ["pause on node 2"]),
        ((actions.Pause(nodes=ONE), actions.Resume(nodes=ONE)), []),
        ((actions.Reset(link=CUT.link),), []),
    ],
)
def test_a_fault_is_in_force_until_it_is_healed(actions: tuple[actions.Action, ...], left: list[str]) -> None:
    faults = FaultsInForce()
    for second, action in enumerate(actions, start=1):
        for event in events_of(action, second=second):
            faults.note(event, now_s=second)
    assert [line.partition(" for ")[0] for line in faults.describe(now_s=10.0)] == left


def test_the_client_of_a_link_is_named() -> None:
    faults = FaultsInForce()
    started = events.NodeStarted(
        cause_id=CauseId("harness"),
        role=NodeRole.HARNESS,
        incarnation_id=IncarnationId("harness"),
        switches={},
        properties={},
        wall_time_ns=0,
        kafka_clients={"app": NodeId(1001)},
    )
    faults.note(started, now_s=0)
    for event in events_of(actions.Cut(link=Link(NodeId(1001), NodeId(0))), second=1):
        faults.note(event, now_s=1)
    (line,) = faults.describe(now_s=2.0)
    assert line.startswith("cut on link app->0 for ")


def test_a_line_has_target_age_and_effect() -> None:
    faults = FaultsInForce()
    for event in (*events_of(CUT, second=2, effect="swallowed"), *events_of(LYING, second=3, effect=None)):
        faults.note(event, now_s=9.0)
    assert faults.describe(now_s=4.5) == (
        "cut on link 0->1 for 2.5 s: swallowed",
        "lose_syncs on node 1 for 1.5 s: no effect was seen",
    )
