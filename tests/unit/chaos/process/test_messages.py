"""Faults of single messages at a node that is down: what lasts is in force from its start on, as in virtual time."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from laststand.chaos.process import message_faults
from laststand.chaos.process.faults import messages
from laststand.chaos.process.message_faults import MessageFaults
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.core.types import NodeId, Way
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Channel
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.rpc.interception import InterceptionOrder
from laststand.emulator.simulator.run.simulation import Simulation

DOWN = NodeId(1)
FETCHES = Channel(NodeId(2), DOWN, "Fetch", Way.REQUEST)


def target_of(monkeypatch: pytest.MonkeyPatch, *, is_running: bool) -> tuple[ProcessTarget, Any]:
    """A target whose nodes do not answer, and its cluster."""

    async def silent(*_: object, **__: object) -> None:
        return None

    monkeypatch.setattr(message_faults, "send_order", silent)
    monkeypatch.setattr(MessageFaults, "intercepted", lambda *_: 0)
    interceptions: dict[NodeId, tuple[InterceptionOrder, ...]] = {}
    cluster = SimpleNamespace(interceptions=interceptions, is_running=lambda _: is_running)
    faults = MessageFaults(cast("Any", cluster), note=lambda _: None)
    return cast("ProcessTarget", SimpleNamespace(cluster=cluster, messages=faults)), cluster


async def test_a_delay_at_a_node_that_is_down_is_in_force_from_its_start_on(monkeypatch: pytest.MonkeyPatch) -> None:
    target, cluster = target_of(monkeypatch, is_running=False)
    outcome = await messages.delay(target, actions.DelayMessages(channel=FETCHES, delay_ms=50))
    assert outcome.affected
    assert [(each.kind.api, each.delay_ms) for each in cluster.interceptions[DOWN]] == [("Fetch", 50)]


async def test_a_hold_at_a_node_that_is_down_is_in_force_from_its_start_on(monkeypatch: pytest.MonkeyPatch) -> None:
    target, cluster = target_of(monkeypatch, is_running=False)
    assert (await messages.hold(target, actions.Hold(channel=FETCHES))).affected
    assert len(cluster.interceptions[DOWN]) == 1


async def test_what_is_counted_ends_with_a_process_and_is_unproved(monkeypatch: pytest.MonkeyPatch) -> None:
    target, cluster = target_of(monkeypatch, is_running=False)
    assert not (await messages.lose_next(target, actions.LoseNext(channel=FETCHES, count=1))).affected
    assert not any(cluster.interceptions.values())


async def test_a_running_node_that_does_not_answer_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    target, _ = target_of(monkeypatch, is_running=True)
    assert not (await messages.delay(target, actions.DelayMessages(channel=FETCHES, delay_ms=50))).affected


def test_virtual_time_says_the_same() -> None:
    """The fetches of the process that is started later are late, too."""
    plan = "cluster brokers=3\ntopic orders replicas=(1,0,2) min.insync.replicas=1\n"
    simulation = Simulation(parse_plan(plan))
    simulation.begin()
    assert simulation.play(actions.Kill(nodes=(DOWN,)))
    assert simulation.play(actions.DelayMessages(channel=FETCHES, delay_ms=50))
    assert FETCHES in simulation.cluster.network.interferences
    assert simulation.play(actions.Start(nodes=(DOWN,)))
    assert FETCHES in simulation.cluster.network.interferences
